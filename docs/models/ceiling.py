"""DST on a shard with a log: gates, ceilings, votes and locks that come back.

The rules are those of docs/durability.md and of crates/txn/src/shard/durable.rs: what leaves a shard waits
until all that it depends on is on disk, and a ceiling in the log bounds the marks, which are not logged.
Shard X has the records x and z, and a log, of which the disk has a prefix. When its process is killed, it
comes back with what is on disk, or with more: it stamps above all that its log names, and has the locks
of all whose outcome it does not know. Shard Y has the record y and never fails. Transactions are

  ("ro", s, keys)            a snapshot at s that reads these keys, one after the other
  ("occ", s, reads, writes)  reads, locks, stamps, validates, RECORD, outcome; s is its first stamp
  ("2pc", s, reads, writes)  the same under client_2pc: PREPARE locks what is read as well, and votes
  ("one", s, reads, writes)  everything on X, in one step
  ("own", s)                 coordinated on X: reads x there and writes y

Asked: what was acknowledged is there; versions of a record have rising stamps; the history is serializable;
no transaction is stuck.

Mutants:
  no_ceiling           the log has no ceilings
  ceiling_ungated      a snapshot's answer leaves before the ceiling above its mark is on disk
  val_ungated          the same of the answer to a validation
  ceiling_only         stamps in the log do not bound what comes after
  ceiling_not_carried  a shard that comes back twice has only the ceilings of its last life
  read_ungated         what was read is told before it is on disk
  answer_early         a client is answered before its transaction is on disk
  vote_early           a vote is told before it is on disk
  vote_leaves_early    a RECORD leaves for another shard before what was read here is on disk
  no_relock            a shard that comes back has no locks of writers in doubt
  reads_not_relocked   under client_2pc: nor of readers
  late_record          RECORD, since nobody else has the locks now
  own_vote_only        under client_2pc: voters that find the outcome alone take their own vote for the stamp

Left out: scans and absent keys, moves, several shards that fail: votes.py has those.
"""

from typing import NamedTuple, Optional

from search import has_cycle, main, search

KEYS = ("x", "z")


class Entry(NamedTuple):
    kind: str  # install, record, refuse, outcome, ceiling
    transaction: int = -1
    stamp: int = 0
    writes: tuple = ()
    reads: tuple = ()  # held by a record under client_2pc
    commits: bool = False


class Record(NamedTuple):
    mark: int = 0
    owner: Optional[int] = None
    bound: int = 0  # the owner's stamp is this or larger
    readers: frozenset = frozenset()  # of client_2pc, until their outcome

    def freed(self, number):
        """Without a transaction's locks."""
        mine = self.owner == number
        return self._replace(owner=None if mine else self.owner, bound=0 if mine else self.bound,
                             readers=self.readers - {number})


class X(NamedTuple):
    life: int
    log: tuple
    disk: int  # how many entries are on disk
    floor: int  # all new stamps are above
    records: tuple

    def record(self, key):
        return self.records[KEYS.index(key)]

    def vote(self, number):
        """A transaction's vote, and how much has to be on disk for it to be there."""
        for place, entry in enumerate(self.log):
            if entry.kind in ("record", "refuse") and entry.transaction == number:
                return entry, place + 1
        return None, 0

    def knows(self, number):
        return any(e.kind == "outcome" and e.transaction == number for e in self.log)


class Y(NamedTuple):
    record: Record
    versions: tuple  # pairs of stamp and transaction
    votes: frozenset  # (transaction, record or refuse, stamp)

    def vote(self, number):
        return next((vote for vote in self.votes if vote[0] == number), None)


class Transaction(NamedTuple):
    step: int
    state: str  # running, done, aborted, unknown, dead
    stamp: int
    reads: tuple  # (key, stamp, transaction)
    pending: Optional[tuple]  # an answer on its way, what has to be on disk, and in which life
    life: int  # the life of X that it depends on, -1: none
    told: Optional[bool]  # whether its client was told that it is committed


class State(NamedTuple):
    x: X
    y: Y
    transactions: tuple


def versions(log, key):
    """Stamp, transaction, and how much has to be on disk for the version to be there."""
    found = [(0, -1, 0)]
    for place, entry in enumerate(log):
        if entry.kind == "install" and key in entry.writes:
            found.append((entry.stamp, entry.transaction, place + 1))
        elif entry.kind == "outcome" and entry.commits and key in entry.writes:
            found.append((entry.stamp, entry.transaction, 0))  # all votes are on disk
    return found


def plan(transaction):
    """The steps of a transaction: what, and which key or shard."""
    kind = transaction[0]
    if kind == "ro":
        return [step for key in transaction[2] for step in (("look", key), ("hear", key))]
    if kind == "one":
        return [("at once", "x"), ("answer", "x")]
    if kind == "own":
        return [("own read", "x"), ("lock", "y"), ("own validate", "x"), ("own vote", "y"), ("tell", ""),
                ("learn", "y")]
    reads, writes = transaction[2:]
    steps = [step for key in reads for step in (("read", key), ("hear", key))]
    if kind == "2pc":
        keys = list(dict.fromkeys(reads + writes))
        return steps + [("prepare", key) for key in keys] + [("tell", "")] + [("learn", k) for k in keys]
    steps += [("lock", key) for key in writes]
    steps += [step for key in reads if key not in writes for step in (("validate", key), ("hear", key))]
    shards = list(dict.fromkeys("y" if key == "y" else "x" for key in writes))
    return steps + [("vote", s) for s in shards] + [("tell", "")] + [("learn", s) for s in shards]


def voting_keys(transaction):
    if transaction[0] == "own":
        return ("y",)
    if transaction[0] == "2pc":
        return tuple(dict.fromkeys(transaction[2] + transaction[3]))
    return transaction[3]


def written(transaction):
    return {"ro": lambda: (), "own": lambda: ("y",)}.get(transaction[0], lambda: transaction[3])()


class Model:
    """X crashes so many times; the clients of these transactions may die."""

    def __init__(self, removed, transactions, crashes=1, dies=()):
        self.removed, self.transactions, self.crashes, self.dies = removed, transactions, crashes, dies
        self.plans = [plan(transaction) for transaction in transactions]
        self.start = State(
            X(0, (), 0, 0, (Record(),) * len(KEYS)),
            Y(Record(), ((0, -1),), frozenset()),
            tuple(Transaction(0, "running", t[1], (), None, -1, None) for t in transactions),
        )

    # What a log bounds.

    def bounds(self, entry):
        bounds = entry.kind == "ceiling" or "ceiling_only" not in self.removed
        return entry.stamp if bounds else 0

    def covered(self, x, stamp):
        """X with something in its log that bounds a mark, and how much of it has to be on disk."""
        for place, entry in enumerate(x.log):
            if self.bounds(entry) >= stamp:
                return x, place + 1
        return self.enters(x, Entry("ceiling", stamp=stamp)), len(x.log) + 1

    def enters(self, x, entry):
        log = x.log + (entry,)
        return x._replace(log=log, disk=len(log) if x.life >= self.crashes else x.disk)

    @staticmethod
    def with_record(x, key, record):
        place = KEYS.index(key)
        return x._replace(records=x.records[:place] + (record,) + x.records[place + 1:])

    def came_back(self, x, log):
        """X after a crash that has left this log."""
        without = tuple(entry for entry in log if entry.kind != "ceiling")
        kept = without if "ceiling_not_carried" in self.removed else log
        bounding = without if "no_ceiling" in self.removed else log
        floor = max(map(self.bounds, bounding), default=0)
        after = X(x.life + 1, kept, len(kept), floor, (Record(),) * len(KEYS))
        for entry in log:
            if entry.kind != "record" or x._replace(log=log).knows(entry.transaction):
                continue
            for key in entry.writes if "no_relock" not in self.removed else ():
                record = after.record(key)._replace(owner=entry.transaction, bound=entry.stamp)
                after = self.with_record(after, key, record)
            for key in entry.reads if "reads_not_relocked" not in self.removed else ():
                record = after.record(key)
                record = record._replace(readers=record.readers | {entry.transaction})
                after = self.with_record(after, key, record)
        return after

    # Steps.

    def steps(self, state):
        steps = list(self.of_disk(state))
        for place, entry in enumerate(state.x.log):
            number = entry.transaction
            in_doubt = entry.kind == "record" and not state.x.knows(number) and place < state.x.disk
            # It asks when nobody is going to tell it.
            if in_doubt and state.transactions[number].state != "running":
                steps.append(self.x_asks(state, number, entry))
        for number in self.dies:
            steps += self.of_death(state, number)
        for number, transaction in enumerate(state.transactions):
            if transaction.state == "running":
                what, key = self.plans[number][transaction.step]
                step = getattr(self, what.replace(" ", "_"))
                steps += [(f"T{number} {what} {key}: {how}", after)
                          for how, after in step(Turn(self, state, number), key)]
        return steps

    def of_disk(self, state):
        x = state.x
        if x.life >= self.crashes:
            return
        if x.disk < len(x.log):
            yield f"on disk: {x.log[x.disk].kind}", state._replace(x=x._replace(disk=x.disk + 1))
        for kept in sorted({x.disk, len(x.log)}):
            after = self.came_back(x, x.log[:kept])
            what = f"X COMES BACK with {kept} of {len(x.log)} entries, above {after.floor}"
            yield what, state._replace(x=after)

    def concluded(self, x, number, entry, commits, stamp):
        """X with the outcome of a transaction, whose locks it has."""
        records = tuple(
            (record._replace(mark=max(record.mark, stamp))
             if commits and (key in entry.writes or number in record.readers) else record).freed(number)
            for key, record in zip(KEYS, x.records)
        )
        outcome = Entry("outcome", number, stamp, entry.writes, commits=commits)
        return self.enters(x._replace(records=records), outcome)

    def x_asks(self, state, number, entry):
        commits, stamp, y = True, entry.stamp, state.y
        if "y" in voting_keys(self.transactions[number]):
            vote = y.vote(number)
            if vote is None:
                y = y._replace(record=y.record.freed(number), votes=y.votes | {(number, "refuse", 0)})
            commits = vote is not None and vote[1] == "record"
            if commits and "own_vote_only" not in self.removed:
                stamp = max(stamp, vote[2])
        x = self.concluded(state.x, number, entry, commits, stamp)
        return f"X finds the outcome of T{number}: {commits}", state._replace(x=x, y=y)

    def of_death(self, state, number):
        """The client of a transaction dies, and Y asks X."""
        x, y, transaction = state.x, state.y, state.transactions[number]
        turn = Turn(self, state, number)
        if transaction.state == "running":
            yield f"the client of T{number} dies", turn.with_(state="dead")
        vote = y.vote(number)
        holds = y.record.owner == number or number in y.record.readers
        if transaction.state != "dead" or vote is None or vote[1] != "record" or not holds:
            return
        stamp, commits = vote[2], True
        if any(key in KEYS for key in voting_keys(self.transactions[number])):
            entry, position = x.vote(number)
            if entry is None:
                yield f"X refuses T{number}", state._replace(x=self.enters(x, Entry("refuse", number)))
                return
            if position > x.disk and "vote_early" not in self.removed:
                return
            commits = entry.kind == "record"
            if commits and "own_vote_only" not in self.removed:
                stamp = max(stamp, entry.stamp)
        writes = "y" in written(self.transactions[number])
        yield f"Y finds the outcome of T{number}: {commits}", turn.y_learns(commits, stamp, writes)

    # Steps of snapshots.

    def look(self, turn, key):
        at = self.transactions[turn.number][1]
        record = turn.record(key)
        marked = record._replace(mark=max(record.mark, at))
        waits = record.owner is not None and record.bound <= at
        if key == "y":
            y = turn.state.y._replace(record=marked)
            if not waits:
                yield "reads", turn.heard(key, max(v for v in y.versions if v[0] <= at), y=y)
            elif marked != record:
                yield "marks", turn.state._replace(y=y)
            return
        x, need = self.covered(turn.state.x, at)
        if self.removed & {"no_ceiling", "ceiling_ungated"}:
            need = 0
        x = self.with_record(x, key, marked)
        if waits:
            if x != turn.state.x:
                yield "marks", turn.state._replace(x=x)
            return
        found = max(v for v in versions(x.log, key) if v[0] <= at)
        if "read_ungated" not in self.removed:
            need = max(need, found[2])
        yield f"needs {need}", turn.goes_on(x=x, pending=((key,) + found[:2], need, x.life))

    def hear(self, turn, _):
        """An answer arrives that left when what it needs was on disk."""
        value, need, life = turn.transaction.pending
        x = turn.state.x
        if life != x.life:
            if self.transactions[turn.number][0] == "ro":
                yield "asks again", turn.with_(step=turn.transaction.step - 1, pending=None)
            else:
                yield "aborts", turn.aborted()
        elif need <= x.disk:
            reads = turn.transaction.reads + ((value,) if value else ())
            yield "arrives", turn.goes_on(reads=reads, pending=None)

    # Steps before the votes.

    def read(self, turn, key):
        stamp = lambda found: max(turn.transaction.stamp, found[0] + 1)
        if key == "y":
            found = turn.state.y.versions[-1]
            yield "reads", turn.heard(key, found, stamp=stamp(found))
            return
        x = turn.state.x
        found = versions(x.log, key)[-1]
        need = 0 if "read_ungated" in self.removed else found[2]
        pending = ((key,) + found[:2], need, x.life)
        yield f"needs {need}", turn.goes_on(stamp=stamp(found), pending=pending)

    def own_read(self, turn, key):
        x = turn.state.x
        found = versions(x.log, key)[-1]
        reads = turn.transaction.reads + ((key,) + found[:2],)
        stamp = max(turn.transaction.stamp, found[0] + 1)
        yield "reads", turn.goes_on(reads=reads, stamp=stamp, life=x.life, pending=(None, found[2], x.life))

    def lock(self, turn, key):
        transaction, x = turn.transaction, turn.state.x
        record, newest = turn.record(key), turn.newest(key)
        if key != "y" and transaction.life not in (-1, x.life):
            yield "its locks are lost", turn.aborted()
        elif record.owner is not None or record.readers - {turn.number} or turn.was_overwritten(key):
            yield "aborts", turn.aborted()
        else:
            floor = 0 if key == "y" else x.floor
            stamp = max(transaction.stamp, record.mark + 1, floor + 1, newest[0] + 1)
            life = transaction.life if key == "y" else x.life
            locked = record._replace(owner=turn.number, bound=stamp)
            yield f"@{stamp}", turn.goes_on(record=(key, locked), stamp=stamp, life=life)

    def validate(self, turn, key):
        record, stamp = turn.record(key), turn.transaction.stamp
        marked = record._replace(mark=max(record.mark, stamp))
        if record.owner not in (None, turn.number) or turn.was_overwritten(key):
            yield "aborts", turn.aborted()
        elif key == "y":
            yield "valid", turn.goes_on(record=(key, marked), step=turn.transaction.step + 2)
        else:
            x, need = self.validated(turn, key, marked)
            yield f"needs {need}", turn.goes_on(x=x, pending=(None, need, x.life))

    def validated(self, turn, key, marked):
        x, need = self.covered(turn.state.x, turn.transaction.stamp)
        if self.removed & {"no_ceiling", "val_ungated"}:
            need = 0
        return self.with_record(x, key, marked), need

    def own_validate(self, turn, key):
        record, transaction = turn.record(key), turn.transaction
        gone = transaction.life != turn.state.x.life
        if gone or record.owner not in (None, turn.number) or turn.was_overwritten(key):
            yield "aborts", turn.aborted()
            return
        marked = record._replace(mark=max(record.mark, transaction.stamp))
        x, need = self.validated(turn, key, marked)
        yield "valid", turn.goes_on(x=x, pending=(None, max(need, transaction.pending[1]), x.life))

    # Votes and outcomes.

    def own_vote(self, turn, _):
        """RECORD leaves X for Y, when all that was read on X is on disk."""
        (_, need, life), x, y = turn.transaction.pending, turn.state.x, turn.state.y
        if life == x.life and need > x.disk and "vote_leaves_early" not in self.removed:
            return
        if life != x.life or y.record.owner != turn.number:
            yield "aborts", turn.aborted()
        else:
            votes = y.votes | {(turn.number, "record", turn.transaction.stamp)}
            yield "RECORD", turn.goes_on(y=y._replace(votes=votes))

    def vote(self, turn, shard):
        number, transaction, x, y = turn.number, turn.transaction, turn.state.x, turn.state.y
        if shard == "y":
            votes = y.votes | {(number, "record", transaction.stamp)}
            yield "RECORD", turn.goes_on(y=y._replace(votes=votes))
            return
        if x.vote(number)[0]:
            yield "has voted", turn.goes_on()
            return
        writes = tuple(key for key in self.transactions[number][3] if key in KEYS)
        owners = {x.record(key).owner for key in writes}
        held = transaction.life == x.life and owners == {number}
        if held or "late_record" in self.removed and owners <= {None, number}:
            record = Entry("record", number, transaction.stamp, writes)
            yield "RECORD", turn.goes_on(x=self.enters(x, record))
        else:
            yield "REFUSE", turn.goes_on(x=self.enters(x, Entry("refuse", number)))

    def prepare(self, turn, key):
        """Locks, stamps and votes for one key."""
        number, transaction, x, y = turn.number, turn.transaction, turn.state.x, turn.state.y
        writes, record = key in self.transactions[number][3], turn.record(key)
        taken = record.owner is not None or writes and record.readers - {number}
        if key != "y" and x.vote(number)[0]:
            yield "has voted", turn.goes_on()
            return
        refused = key == "y" and y.vote(number) == (number, "refuse", 0)
        if taken or refused or turn.was_overwritten(key):
            if key == "y":
                y = y._replace(votes=y.votes | {(number, "refuse", 0)})
                yield "REFUSE", turn.goes_on(y=y)
            else:
                yield "REFUSE", turn.goes_on(x=self.enters(x, Entry("refuse", number)))
            return
        floor = 0 if key == "y" else x.floor
        above = max(record.mark, floor) + 1 if writes else 0
        stamp = max(transaction.stamp, above, turn.newest(key)[0] + 1)
        held = record._replace(owner=number, bound=stamp) if writes else record._replace(
            readers=record.readers | {number})
        if key == "y":
            y = y._replace(record=held, votes=y.votes | {(number, "record", stamp)})
            yield f"RECORD @{stamp}", turn.goes_on(y=y)
        else:
            entry = Entry("record", number, stamp, (key,) if writes else (), () if writes else (key,))
            x = self.enters(self.with_record(x, key, held), entry)
            yield f"RECORD @{stamp}", turn.goes_on(x=x, life=x.life)

    def tell(self, turn, _):
        """All votes are heard, and the client is told the outcome."""
        number, x, y = turn.number, turn.state.x, turn.state.y
        keys, votes = voting_keys(self.transactions[number]), []
        if any(key in KEYS for key in keys):
            entry, position = x.vote(number)
            if entry is None:
                refused = self.enters(x, Entry("refuse", number))
                yield "X is asked, and refuses", turn.state._replace(x=refused)
                return
            if position > x.disk and "vote_early" not in self.removed:
                return
            votes.append((entry.kind, entry.stamp))
        if "y" in keys:
            vote = y.vote(number)
            if vote is None:
                return
            votes.append(vote[1:])
        commits = all(kind == "record" for kind, _ in votes)
        stamp = max(stamp for _, stamp in votes) if commits else turn.transaction.stamp
        yield f"commits: {commits}", turn.goes_on(stamp=stamp, told=commits)

    def learn(self, turn, shard):
        number, transaction, x = turn.number, turn.transaction, turn.state.x
        if shard == "y":
            writes = "y" in written(self.transactions[number])
            yield "learns", turn.y_learns(transaction.told, transaction.stamp, writes, goes_on=True)
            return
        if x.knows(number):
            yield "knows", turn.goes_on()
            return
        entry, _ = x.vote(number)
        if entry is None:
            yield "refuses", turn.state._replace(x=self.enters(x, Entry("refuse", number)))
        elif transaction.told and entry.kind == "refuse":
            yield "was told otherwise", turn.with_(state="BROKEN")
        else:
            after = self.concluded(x, number, entry, transaction.told, transaction.stamp)
            yield "learns", turn.goes_on(x=after)

    # Everything in one step.

    def at_once(self, turn, _):
        _, stamp, reads, writes = self.transactions[turn.number]
        x = turn.state.x
        owned = any(x.record(key).owner is not None for key in reads + writes)
        if owned or any(x.record(key).readers for key in writes):
            yield "aborts", turn.aborted()
            return
        seen = tuple((key,) + versions(x.log, key)[-1][:2] for key in reads)
        stamp = max([stamp] + [found[1] + 1 for found in seen])
        for key in writes:
            newest = versions(x.log, key)[-1][0]
            stamp = max(stamp, x.record(key).mark + 1, x.floor + 1, newest + 1)
        for key in dict.fromkeys(reads + writes):
            record = x.record(key)
            x = self.with_record(x, key, record._replace(mark=max(record.mark, stamp)))
        x = self.enters(x, Entry("install", turn.number, stamp, writes))
        yield f"@{stamp}", turn.goes_on(x=x, reads=seen, stamp=stamp, pending=(None, len(x.log), x.life))

    def answer(self, turn, _):
        (_, need, life), x = turn.transaction.pending, turn.state.x
        if "answer_early" in self.removed or life == x.life and need <= x.disk:
            yield "is told", turn.goes_on(told=True)
        elif life != x.life:
            yield "never comes", turn.with_(state="unknown")

    # What is wrong.

    @staticmethod
    def wrong(state):
        if any(transaction.state == "BROKEN" for transaction in state.transactions):
            return "a client was told that it is committed, and the log says REFUSE"
        for key in ("y",) + KEYS:
            found = state.y.versions if key == "y" else versions(state.x.log, key)
            if any(after[0] <= before[0] for before, after in zip(found, found[1:])):
                return f"stamps of {key} do not rise: {found}"
        return None

    def wrong_at_end(self, state):
        running = [n for n, t in enumerate(state.transactions) if t.state == "running"]
        if running and not any(self.plans[n][state.transactions[n].step][0] == "look" for n in running):
            return f"stuck: {running}"
        order = {key: [v[1] for v in versions(state.x.log, key)] for key in KEYS}
        order["y"] = [v[1] for v in state.y.versions]
        installed = {writer for writers in order.values() for writer in writers}
        committed, edges = set(), set()
        for number, transaction in enumerate(state.transactions):
            if transaction.state == "done" and transaction.told is not False:
                committed.add(number)
            if transaction.state in ("unknown", "dead") and number in installed:
                committed.add(number)
        for number in committed:
            for key in written(self.transactions[number]):
                if number not in order[key]:
                    return f"T{number} was acknowledged and has lost its write of {key}"
        for key, writers in order.items():
            edges |= {(a, b) for a, b in zip(writers, writers[1:]) if a >= 0}
            for number in committed:
                for read, _, writer in state.transactions[number].reads:
                    if read != key:
                        continue
                    if writer not in writers:
                        return f"T{number} has read {key} by T{writer}, which is lost"
                    if writer >= 0:
                        edges.add((writer, number))
                    later = [w for w in writers[writers.index(writer) + 1:] if w != number]
                    edges |= {(number, w) for w in later[:1]}
        if has_cycle(edges):
            return f"not serializable: {sorted(edges)}"
        return None


class Turn:
    """A step of one transaction: the state, and states after it."""

    def __init__(self, model, state, number):
        self.model, self.state, self.number = model, state, number
        self.transaction = state.transactions[number]

    def record(self, key):
        return self.state.y.record if key == "y" else self.state.x.record(key)

    def newest(self, key):
        return self.state.y.versions[-1] if key == "y" else versions(self.state.x.log, key)[-1][:2]

    def was_overwritten(self, key):
        """Whether the transaction has read another version than the newest."""
        return any(read[0] == key and read[1:] != self.newest(key) for read in self.transaction.reads)

    def with_(self, x=None, y=None, **changes):
        """The state with another transaction, and perhaps other shards."""
        after = self.transaction._replace(**changes)
        transactions = self.state.transactions
        transactions = transactions[:self.number] + (after,) + transactions[self.number + 1:]
        return State(self.state.x if x is None else x, self.state.y if y is None else y, transactions)

    def goes_on(self, x=None, y=None, record=None, **changes):
        """The same after its present step."""
        if record is not None:
            key, changed = record
            if key == "y":
                y = self.state.y._replace(record=changed)
            else:
                x = self.model.with_record(self.state.x, key, changed)
        step = changes.pop("step", self.transaction.step + 1)
        over = step >= len(self.model.plans[self.number])
        return self.with_(x, y, step=step, state="done" if over else "running", **changes)

    def heard(self, key, found, y=None, **changes):
        """After a read of Y, whose answer needs nothing."""
        reads = self.transaction.reads + ((key,) + found,)
        return self.goes_on(y=y, step=self.transaction.step + 2, reads=reads, **changes)

    def aborted(self):
        """After an abort before any vote: its locks go."""
        x, y, number = self.state.x, self.state.y, self.number
        if x.vote(number)[0] is None:
            x = x._replace(records=tuple(record.freed(number) for record in x.records))
        y = y._replace(record=y.record.freed(number))
        return self.with_(x, y, state="aborted", reads=())

    def y_learns(self, commits, stamp, writes, goes_on=False):
        y, number = self.state.y, self.number
        record = y.record._replace(mark=max(y.record.mark, stamp)) if commits else y.record
        versions_ = y.versions + (((stamp, number),) if commits and writes else ())
        y = y._replace(record=record.freed(number), versions=versions_)
        return self.goes_on(y=y) if goes_on else self.with_(y=y)


def run(removed, **case):
    model = Model(removed, **case)
    return search(model.start, model.steps, model.wrong, model.wrong_at_end)


def occ(stamp, reads, writes):
    return ("occ", stamp, tuple(reads), tuple(writes))


def two_phase(stamp, reads, writes):
    return ("2pc", stamp, tuple(reads), tuple(writes))


def one(stamp, reads, writes):
    return ("one", stamp, tuple(reads), tuple(writes))


def ro(stamp, keys):
    return ("ro", stamp, tuple(keys))


FORK = [occ(9, "", "y"), ro(10, "xy"), one(7, "", "x"), ro(8, "yx")]
LARGER_VOTE = [ro(6, "y"), two_phase(1, "x", "y"), one(1, "", "x"), ro(6, "xy")]
CASES = {
    "fork: RO saw T and the old x, then w(x)": dict(transactions=FORK),
    "fork by r(x)w(y)@9, w(x)@1, RO@8": dict(
        transactions=[occ(9, "x", "y"), occ(1, "", "x"), ro(9, "yx")]),
    "a writer of x and y, two ROs": dict(
        transactions=[occ(1, "", "xy"), ro(3, "xy"), ro(6, "yx")]),
    "write skew": dict(transactions=[occ(1, "x", "y"), occ(1, "y", "x"), ro(6, "xy")], large=True),
    "one step, and a reader elsewhere": dict(
        transactions=[one(1, "x", "x"), occ(1, "x", "y"), ro(6, "yx")]),
    "one step that has read: r(z)w(x)@9, w(z)@1": dict(
        transactions=[one(9, "z", "x"), occ(1, "", "z"), ro(6, "xz")]),
    "a ceiling far ahead, one step, RO": dict(
        transactions=[ro(9, "z"), one(1, "", "x"), ro(6, "xy")]),
    "a ceiling far ahead, one step, RW": dict(
        transactions=[ro(9, "z"), one(1, "", "x"), occ(1, "x", "y")]),
    "a vote that leaves X": dict(transactions=[one(1, "", "x"), ("own", 1), ro(6, "yx")]),
    "two crashes: RO, then w(x)": dict(
        transactions=[occ(9, "", "y"), ro(10, "xy"), occ(1, "", "x")], crashes=2),
    "two crashes, fork": dict(transactions=FORK, crashes=2),
    "client_2pc: a read that is held": dict(
        transactions=[two_phase(1, "x", "y"), occ(1, "", "x"), ro(6, "yx")], large=True),
    "client_2pc: y has the larger vote": dict(transactions=LARGER_VOTE),
    "client_2pc: the client dies": dict(
        transactions=[ro(6, "y"), two_phase(1, "", "xy"), ro(6, "xy")], dies=(1,)),
    "client_2pc: it dies, a writer, a reader": dict(transactions=LARGER_VOTE, dies=(1,), large=True),
    "a late RECORD after another writer": dict(transactions=[occ(1, "x", "xy"), occ(1, "x", "x")]),
}
MUTANTS = {
    "no_ceiling": ["fork: RO saw T and the old x, then w(x)"],
    "ceiling_ungated": ["fork: RO saw T and the old x, then w(x)"],
    "val_ungated": ["fork by r(x)w(y)@9, w(x)@1, RO@8"],
    "ceiling_only": ["one step that has read: r(z)w(x)@9, w(z)@1"],
    "ceiling_not_carried": ["two crashes, fork"],
    "read_ungated": ["a ceiling far ahead, one step, RO"],
    "answer_early": ["one step, and a reader elsewhere"],
    "vote_early": ["a writer of x and y, two ROs"],
    "vote_leaves_early": ["a vote that leaves X"],
    "no_relock": ["a writer of x and y, two ROs"],
    "reads_not_relocked": ["client_2pc: y has the larger vote"],
    "late_record": ["a late RECORD after another writer"],
    "own_vote_only": ["client_2pc: the client dies"],
}

if __name__ == "__main__":
    main(run, CASES, MUTANTS)
