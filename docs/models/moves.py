"""A slot that moves between shards with logs, while their processes end.

The rules are those of docs/protocols/moves.md. A shard's log, of which the disk has a prefix, has
("write", n); ("out", term, to): the slot has left; ("in", term, n): it has arrived with n writes in it;
("gone", term): the receiver is known to have it, and the parcel may go. Parcels and what is said of them
are messages between two lives. The first shard has the slot in term 0.

Asked: no acknowledged write is lost; never do two shards own the slot; in the end one does.

Mutants:
  parcel_early       the parcel leaves before "out" is on disk
  taken_early        the receiver says that it has taken over before "in" is on disk
  dropped_when_sent  the sender keeps the parcel no longer than until it is sent
  old_parcel         a parcel is taken over whatever its term is
  ack_early          a write is acknowledged before it is on disk

Left out: locks, marks and the bound that comes with the rows; maps of others.
"""

from typing import NamedTuple, Optional

from search import main, search


class Shard(NamedTuple):
    life: int
    log: tuple
    disk: int  # how many entries are on disk


class Parcel(NamedTuple):
    term: int
    to: int
    writes: int


class View(NamedTuple):
    """What a log says of the slot."""

    owns: bool
    term: int
    writes: int
    parcel: Optional[Parcel]  # what the shard has to send until it is taken over


class State(NamedTuple):
    shards: tuple
    sent: frozenset
    writes: int  # how many there were
    acknowledged: int
    hops: int  # how many moves have begun


def view(number, log):
    owns, term, writes, parcel = number == 0, 0, 0, None
    for entry in log:
        if entry[0] == "write":
            writes = entry[1]
        elif entry[0] == "out":
            owns, term, parcel = False, entry[1], Parcel(entry[1], entry[2], writes)
        elif entry[0] == "in":
            owns, term, writes = True, entry[1], entry[2]
            if parcel and parcel.term < term:
                parcel = None
        elif entry[0] == "gone":
            parcel = None
    return View(owns, term, writes, parcel)


class Model:
    """A slot moves by these hops, pairs of shards; each shard crashes so many times."""

    def __init__(self, removed, shards=2, hops=((0, 1),), crashes=1, writes=3):
        self.removed, self.hops, self.crashes, self.writes = removed, hops, crashes, writes
        self.start = State((Shard(0, (), 0),) * shards, frozenset(), 0, 0, 0)

    def enters(self, state, number, *entry):
        """The shards, one of which has one more entry: on disk at once after its last crash."""
        shard = state.shards[number]
        log = shard.log + (entry,)
        disk = len(log) if shard.life >= self.crashes else shard.disk
        return self.replaced(state, number, Shard(shard.life, log, disk))

    @staticmethod
    def replaced(state, number, shard):
        return state.shards[:number] + (shard,) + state.shards[number + 1:]

    def on_disk(self, shard, kind, term, rule):
        """Whether the entry of this kind and term is on disk, or the rule that wants that is removed."""
        places = [place for place, entry in enumerate(shard.log) if entry[:2] == (kind, term)]
        return not places or places[0] < shard.disk or rule in self.removed

    def steps(self, state):
        steps = []
        for number, shard in enumerate(state.shards):
            steps += self.of_disk(state, number, shard)
            steps += self.of_owner(state, number, shard)
            steps += self.of_sender(state, number, shard)
        for message in sorted(state.sent):  # the order of a set differs from run to run
            if state.shards[message[1]].life == message[2]:
                steps += self.arrival(state, message)
        for number, shard in enumerate(state.shards):
            steps += self.of_receiver(state, number, shard)
        return steps

    def of_disk(self, state, number, shard):
        if shard.life >= self.crashes:
            return
        if shard.disk < len(shard.log):
            shards = self.replaced(state, number, shard._replace(disk=shard.disk + 1))
            yield f"s{number} has {shard.log[shard.disk]} on disk", state._replace(shards=shards)
        for kept in sorted({shard.disk, len(shard.log)}):
            log = shard.log[:kept]
            shards = self.replaced(state, number, Shard(shard.life + 1, log, kept))
            sent = frozenset(message for message in state.sent if message[1] != number)
            yield f"s{number} comes back with {log} of {shard.log}", state._replace(shards=shards, sent=sent)

    def of_owner(self, state, number, shard):
        own = view(number, shard.log)
        if own.owns and state.writes < self.writes:
            write = state.writes + 1
            shards = self.enters(state, number, "write", write)
            yield f"s{number} writes {write}", state._replace(shards=shards, writes=write)
        for place, entry in enumerate(shard.log):
            if entry[0] == "write" and entry[1] > state.acknowledged:
                if place < shard.disk or "ack_early" in self.removed:
                    yield f"write {entry[1]} is acknowledged", state._replace(acknowledged=entry[1])
        if state.hops < len(self.hops) and self.hops[state.hops][0] == number and own.owns:
            shards = self.enters(state, number, "out", own.term + 1, self.hops[state.hops][1])
            yield f"s{number} cuts", state._replace(shards=shards, hops=state.hops + 1)

    def of_sender(self, state, number, shard):
        """A parcel is sent over every new channel until it is known to be taken over."""
        parcel = view(number, shard.log).parcel
        if not parcel:
            return
        if self.on_disk(shard, "out", parcel.term, "parcel_early"):
            life = state.shards[parcel.to].life
            message = ("parcel", parcel.to, life, number, parcel.term, parcel.writes)
            if message not in state.sent:
                yield f"s{number} sends the parcel", state._replace(sent=state.sent | {message})
        sent = any(message[0] == "parcel" and message[3] == number for message in state.sent)
        if sent and "dropped_when_sent" in self.removed:
            shards = self.enters(state, number, "gone", parcel.term)
            yield f"s{number} drops the parcel", state._replace(shards=shards)

    def of_receiver(self, state, number, shard):
        """What has arrived is said to the shard that still has the parcel."""
        for entry in shard.log:
            if entry[0] != "in" or not self.on_disk(shard, "in", entry[1], "taken_early"):
                continue
            for sender, its in enumerate(state.shards):
                parcel = view(sender, its.log).parcel
                message = ("taken", sender, its.life, number, entry[1], 0)
                if parcel and parcel[:2] == (entry[1], number) and message not in state.sent:
                    sent = state.sent | {message}
                    yield f"s{number} says that it has taken over", state._replace(sent=sent)

    def arrival(self, state, message):
        kind, to, _, sender, term, writes = message
        shard, sent = state.shards[to], state.sent - {message}
        own = view(to, shard.log)
        if kind == "taken":
            if own.parcel and own.parcel.term == term:
                shards = self.enters(state, to, "gone", term)
                yield f"s{to} drops the parcel", state._replace(shards=shards, sent=sent)
            else:
                yield f"s{to} knows", state._replace(sent=sent)
        elif term > own.term or "old_parcel" in self.removed:
            shards = self.enters(state, to, "in", term, writes)
            yield f"s{to} takes over {writes} writes in term {term}", state._replace(shards=shards, sent=sent)
        elif self.on_disk(shard, "in", term, "taken_early"):
            answer = ("taken", sender, state.shards[sender].life, to, term, 0)
            yield f"s{to} says again that it has it", state._replace(sent=sent | {answer})

    @staticmethod
    def wrong(state):
        views = [view(number, shard.log) for number, shard in enumerate(state.shards)]
        owners = [number for number, own in enumerate(views) if own.owns]
        if len(owners) > 1:
            return f"two shards own the slot: {owners}"
        have = [own.writes for own in views if own.owns]
        have += [own.parcel.writes for own in views if own.parcel]
        if max(have, default=-1) < state.acknowledged:
            return f"write {state.acknowledged} was acknowledged, and what is left has {have}"
        return None

    @staticmethod
    def wrong_at_end(state):
        if not any(view(number, shard.log).owns for number, shard in enumerate(state.shards)):
            return "no shard owns the slot"
        return None


def run(removed, **case):
    model = Model(removed, **case)
    return search(model.start, model.steps, model.wrong, model.wrong_at_end)


CASES = {
    "one move": dict(writes=2),
    "one move, three writes": dict(large=True),
    "one move, two crashes each": dict(crashes=2, writes=1, large=True),
    "there and back": dict(hops=((0, 1), (1, 0)), writes=1),
    "there and back, two writes": dict(hops=((0, 1), (1, 0)), writes=2),
    "from shard to shard": dict(shards=3, hops=((0, 1), (1, 2)), writes=1, large=True),
}
MUTANTS = {
    "parcel_early": ["one move"],
    "taken_early": ["one move"],
    "dropped_when_sent": ["one move"],
    "old_parcel": ["there and back, two writes"],
    "ack_early": ["one move"],
}

if __name__ == "__main__":
    main(run, CASES, MUTANTS)
