"""`async`: what a crash leaves of a database whose shards do not wait for their disks.

The rules are those of docs/durability.md and of crates/txn/src/shard/cut.rs. Two shards with a record
each, `a` and `b`, and a log each, of which the disk has a prefix when the power fails. Transactions are
DST over OCC in one process: all locks held and all reads valid is committed, and each shard installs by
an entry of its own. A shard closes at C: from then on it stamps above C. What is kept is what has a stamp
up to the cut, the smallest C that the disks of both have last. An image replaces the beginning of a log.

Asked, for a failure at any moment and any prefixes: what is kept is a prefix of the serial order. It has
whole transactions only, and with each all that it has read or overwritten. An image has nothing above
the cut.

Mutants:
  own_cut           each shard goes back to the last C of its own log
  complete_only     no cut: kept is what the logs have on disk as a whole
  closes_over_owner a shard closes at C although a transaction that may get a stamp below holds a lock
  no_floor          a shard that has closed at C may stamp below it
  image_too_new     an image is taken whatever the cut is
  cut_not_on_disk   an image is taken when the shards have closed, and not when that is on disk

Left out: eras, which are in eras.py; what is not a record of these two.
"""

from typing import NamedTuple, Optional

from search import main, search

HOME = {"a": 0, "b": 1}


class Record(NamedTuple):
    mark: int
    owner: Optional[int]
    bound: int  # the owner's stamp is this or larger
    versions: tuple  # pairs of stamp and transaction, -1 loaded it


class Shard(NamedTuple):
    log: tuple  # ("install", stamp, transaction) or ("close", C)
    floor: int
    closes: tuple  # where it will still close
    image: Optional[tuple]  # the newest version in it, and how much of the log it replaces
    flushed: int  # what is on disk for sure, where that matters


class Transaction(NamedTuple):
    step: int
    state: str
    stamp: int
    reads: tuple  # (key, stamp, transaction)


class State(NamedTuple):
    records: tuple
    shards: tuple
    transactions: tuple

    def replaced(self, field, place, value):
        old = getattr(self, field)
        return self._replace(**{field: old[:place] + (value,) + old[place + 1:]})


def closed(log):
    """The last C that a log has."""
    return max((entry[1] for entry in log if entry[0] == "close"), default=0)


class Model:
    """Transactions are (first stamp, keys read, keys written). Shards close at these C. One of them may
    take an image."""

    def __init__(self, removed, transactions, closes=(3,), imaging=None):
        self.removed, self.transactions, self.imaging = removed, transactions, imaging
        self.steps_of = [
            [("read", key) for key in reads]
            + [("lock", key) for key in writes]
            + [("decide", "")]
            + [("validate", key) for key in reads if key not in writes]
            + [("install", key) for key in writes]
            for _, reads, writes in transactions
        ]
        self.start = State(
            (Record(0, None, 0, ((0, -1),)),) * 2,
            (Shard((), 0, tuple(closes), None, 0),) * 2,
            tuple(Transaction(0, "running", first, ()) for first, _, _ in transactions),
        )

    def steps(self, state):
        steps = []
        for number in (0, 1):
            steps += self.of_shard(state, number)
        for number, transaction in enumerate(state.transactions):
            if transaction.state == "running":
                what, after = self.step(state, number, *self.steps_of[number][transaction.step])
                steps.append((f"T{number} {what}", after))
        return steps

    def of_shard(self, state, number):
        shard, record = state.shards[number], state.records[number]
        if self.imaging is not None and shard.flushed < len(shard.log):
            after = shard._replace(flushed=len(shard.log))
            yield f"s{number} flushes", state.replaced("shards", number, after)
        if shard.closes:
            at = shard.closes[0]
            if record.owner is None or record.bound > at or "closes_over_owner" in self.removed:
                floor = shard.floor if "no_floor" in self.removed else max(shard.floor, at)
                log = shard.log + (("close", at),)
                after = shard._replace(log=log, floor=floor, closes=shard.closes[1:])
                yield f"s{number} closes at {at}", state.replaced("shards", number, after)
        if self.imaging == number and shard.image is None and shard.log:
            early = "cut_not_on_disk" in self.removed
            cut = min(closed(s.log if early else s.log[:s.flushed]) for s in state.shards)
            newest = record.versions[-1]
            if cut >= newest[0] or "image_too_new" in self.removed:
                after = shard._replace(image=(newest, len(shard.log)))
                yield f"s{number} takes an image of {newest}", state.replaced("shards", number, after)

    def step(self, state, number, step, key):
        """What a transaction does next, and the state after it."""
        transaction = state.transactions[number]

        def goes_on(state, **changes):
            after = transaction._replace(step=transaction.step + 1, **changes)
            if after.step == len(self.steps_of[number]):
                after = after._replace(state="done")
            return f"{step} {key}", state.replaced("transactions", number, after)

        if step == "decide":
            return goes_on(state)
        place = HOME[key]
        record, shard = state.records[place], state.shards[place]
        newest = record.versions[-1]
        seen = next((read[1:] for read in transaction.reads if read[0] == key), newest)
        if step == "read":
            stamp = max(transaction.stamp, newest[0] + 1)
            return goes_on(state, stamp=stamp, reads=transaction.reads + ((key,) + newest,))
        if step == "install":
            stamp = transaction.stamp
            after = Record(max(record.mark, stamp), None, record.bound, record.versions + ((stamp, number),))
            log = shard.log + (("install", stamp, number),)
            state = state.replaced("records", place, after)
            return goes_on(state.replaced("shards", place, shard._replace(log=log)))
        if record.owner not in (None, number) or seen != newest:
            return "aborts", self.aborted(state, number)
        if step == "lock":
            stamp = max(transaction.stamp, record.mark + 1, shard.floor + 1, newest[0] + 1)
            after = record._replace(owner=number, bound=stamp)
            return goes_on(state.replaced("records", place, after), stamp=stamp)
        after = record._replace(mark=max(record.mark, transaction.stamp))
        return goes_on(state.replaced("records", place, after))

    @staticmethod
    def aborted(state, number):
        free = lambda record: record._replace(owner=None) if record.owner == number else record
        transaction = state.transactions[number]._replace(state="aborted", reads=())
        state = state._replace(records=tuple(map(free, state.records)))
        return state.replaced("transactions", number, transaction)

    def wrong(self, state):
        """The power fails now, and the disks have any prefixes."""
        one, other = state.shards
        for first in range(one.flushed, len(one.log) + 1):
            for second in range(other.flushed, len(other.log) + 1):
                found = self.wrong_with(state, (one.log[:first], other.log[:second]))
                if found:
                    return f"{found} (on disk: {first} and {second} entries)"
        return None

    def kept(self, logs):
        """By shard, the transactions whose installs are kept."""
        if "complete_only" in self.removed:
            on = lambda number: {s for s in (0, 1) for e in logs[s] if e[0] == "install" and e[2] == number}
            whole = {
                number for number, (_, _, writes) in enumerate(self.transactions)
                if on(number) == {HOME[key] for key in writes}
            }
            return [[e[2] for e in log if e[0] == "install" and e[2] in whole] for log in logs]
        cuts = [closed(log) for log in logs]
        cuts = cuts if "own_cut" in self.removed else [min(cuts)] * 2
        return [
            [e[2] for e in log if e[0] == "install" and e[1] <= cut] for log, cut in zip(logs, cuts)
        ]

    def wrong_with(self, state, logs):
        if self.imaging is not None:
            image = state.shards[self.imaging].image
            cut = min(map(closed, logs))
            if image and len(logs[self.imaging]) >= image[1] and image[0][0] > cut:
                return f"the image has a version @{image[0][0]} above the cut {cut}"
            if image:
                return None
        by_shard = self.kept(logs)
        kept = set(by_shard[0]) | set(by_shard[1])
        for number in kept:
            for key in self.transactions[number][2]:
                if number not in by_shard[HOME[key]]:
                    return f"T{number} is kept and its write of {key} is not"
            for key, _, writer in state.transactions[number].reads:
                if writer >= 0 and writer not in kept:
                    return f"T{number} is kept and T{writer}, whose {key} it has read, is not"
        for key, place in HOME.items():
            writers = [writer for _, writer in state.records[place].versions]
            for before, after in zip(writers, writers[1:]):
                if after in kept and before >= 0 and before not in kept:
                    return f"T{after} is kept and T{before}, whose {key} it has overwritten, is not"
        return None


def run(removed, **case):
    model = Model(removed, **case)
    return search(model.start, model.steps, model.wrong)


TWO = ((1, "", "ab"), (4, "a", "a"))
SKEW = ((4, "a", "b"), (1, "", "a"), (2, "b", "b"))
THREE = ((1, "", "ab"), (1, "b", "a"), (4, "", "b"))
CASES = {
    "T0 w(a,b), T1 r(a)w(a)": dict(transactions=TWO, closes=(3, 5)),
    "T0 r(a)w(b), T1 w(a), T2 r(b)w(b)": dict(transactions=SKEW, large=True),
    "T0 w(a,b), T1 r(b)w(a), T2 w(b)": dict(transactions=THREE, large=True),
    "the same, closing twice": dict(transactions=THREE, closes=(3, 5)),
    "an image": dict(transactions=TWO, closes=(3, 6), imaging=0),
}
MUTANTS = {
    "own_cut": ["T0 w(a,b), T1 r(a)w(a)"],
    "complete_only": ["T0 w(a,b), T1 r(a)w(a)"],
    "closes_over_owner": ["T0 w(a,b), T1 r(a)w(a)"],
    "no_floor": ["the same, closing twice"],
    "image_too_new": ["an image"],
    "cut_not_on_disk": ["an image"],
}

if __name__ == "__main__":
    main(run, CASES, MUTANTS)
