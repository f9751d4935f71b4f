"""Votes that are kept in logs: one transaction, two voters or three, and processes that end.

The rules are those of docs/protocols/votes.md, with logs as in docs/durability.md. A voter is a shard
with a log, of which the disk has a prefix; a process that is killed comes back with what is on its disk,
or with more. The coordinator may die at any moment; its shard may begin another life while messages of
the former one are still on their way. A voter's log has RECORD (R), REFUSE (X), an outcome (+ or -),
C (the coordinator's own shard votes last: RECORD and outcome at once), or says that it has forgotten
(f+ or f-).

Asked: there is one outcome, for the client as well; a voter that must install can; no voter stays in
doubt or keeps locks for ever.

Mutants:
  vote_early            a vote is told before it is on disk
  own_early             the same of the vote of the coordinator's own shard, when it votes last
  told_early            voters tell each other votes and outcomes before they are on disk
  ack_early             a voter acknowledges an outcome before it is on disk
  forgets_early         a voter forgets when the others know the outcome, and not on disk
  refusal_not_planted   a voter that is asked and has no vote says REFUSE and enters nothing
  record_without_locks  RECORD although the locks were lost
  aborts_alone          a coordinator that has sent RECORD aborts by itself
  former_life_heard     a voter that knows of a later life of the coordinator listens to the former

Left out: everything but votes. Locks are one bit, stamps and reads are in ceiling.py.
"""

from typing import NamedTuple, Optional

from search import main, search


class Voter(NamedTuple):
    life: int
    log: tuple
    disk: int  # how many entries are on disk
    locked: bool  # the transaction has its locks, in this life
    told: frozenset  # what the others have said, pairs of voter and R or K ("it knows")


class Coordinator(NamedTuple):
    state: str  # run, + or - (decided), dead
    heard: tuple  # by voter: None, sent, R, X
    acknowledged: frozenset
    client: Optional[str]  # the outcome that the client was told
    outlived: frozenset  # voters that know of a later life of its shard


def vote(log):
    return next((entry for entry in log if entry in ("R", "X", "C")), None)


def outcome(log):
    if "+" in log or "C" in log:
        return "+"
    return "-" if "-" in log or "X" in log else None


def position(log, *entries):
    """How long the log has to be on disk for it to have one of these entries there; 0 if it has none."""
    return next((place + 1 for place, entry in enumerate(log) if entry in entries), 0)


def outcome_position(log):
    return position(log, "+", "-", "C") or (position(log, "X") if outcome(log) == "-" else 0)


class Steps:
    """The steps that are possible in a state."""

    def __init__(self, model, state):
        self.model, self.removed = model, model.removed
        self.voters, self.sent, self.coordinator = state
        self.steps = []

    def add(self, what, voters=None, sent=None, **coordinator):
        self.steps.append((what, (
            self.voters if voters is None else voters,
            self.sent if sent is None else sent,
            self.coordinator._replace(**coordinator),
        )))

    def with_voter(self, number, **changes):
        """The voters, one of them changed. After its last crash a voter's log is on disk at once."""
        voter = self.voters[number]._replace(**changes)
        if voter.life >= self.model.crashes:
            voter = voter._replace(disk=len(voter.log))
        return self.voters[:number] + (voter,) + self.voters[number + 1:]

    def enters(self, number, entry, **changes):
        return self.with_voter(number, log=self.voters[number].log + (entry,), **changes)

    def heard(self, number, what):
        heard = self.coordinator.heard
        return heard[:number] + (what,) + heard[number + 1:]

    def all(self):
        for number in range(len(self.voters)):
            self.disk_and_crash(number)
            self.requests(number)
            self.asks(number)
            self.forgets(number)
            self.hears_the_outcome(number)
        self.coordinates()
        return self.steps

    def disk_and_crash(self, number):
        voter, coordinator, own = self.voters[number], self.coordinator, self.model.own
        if coordinator.state != "dead" and number not in coordinator.outlived:
            if self.model.former_life or own is not None and self.voters[own].life > 0:
                outlived = coordinator.outlived | {number}
                self.add(f"v{number} hears of a later life of the coordinator", outlived=outlived)
        if voter.life < self.model.crashes:
            if voter.disk < len(voter.log):
                self.add(f"v{number} has {voter.log[voter.disk]} on disk",
                         self.with_voter(number, disk=voter.disk + 1))
            for kept in sorted({voter.disk, len(voter.log)}):
                log = voter.log[:kept]
                locked = vote(log) == "R" and outcome(log) is None
                after = Voter(voter.life + 1, log, kept, locked, frozenset())
                voters = self.voters[:number] + (after,) + self.voters[number + 1:]
                sent = frozenset(message for message in self.sent if message[0] != number)
                dies = number == own and coordinator.state != "dead"
                self.add(f"v{number} comes back with {log} of {voter.log}", voters, sent,
                         state="dead" if dies else coordinator.state)
        last = number == own and coordinator.state == "run" and voter.life == 0
        if voter.locked and vote(voter.log) is None and not last:
            self.add(f"v{number} refuses by itself", self.enters(number, "X", locked=False))

    def is_deaf(self, number):
        outlived = number in self.coordinator.outlived
        return outlived and "former_life_heard" not in self.removed

    def requests(self, number):
        """RECORD arrives, if the life that it was sent to is still there."""
        voter = self.voters[number]
        for message in sorted(self.sent, key=repr):
            if message != (number, voter.life):
                continue
            sent = self.sent - {message}
            if self.is_deaf(number):
                self.add(f"v{number} is deaf", sent=sent)
            elif vote(voter.log):
                self.add(f"v{number} has voted", sent=sent)
            elif voter.locked or "record_without_locks" in self.removed:
                self.add(f"v{number}: RECORD", self.enters(number, "R"), sent)
            else:
                self.add(f"v{number}: REFUSE", self.enters(number, "X"), sent)

    def asks(self, number):
        """A voter in doubt that hears nothing from the coordinator asks the others."""
        voter = self.voters[number]
        recorded = position(voter.log, "R")
        if not recorded or recorded > voter.disk or outcome(voter.log) or not self.is_alone(number):
            return
        for other, its in enumerate(self.voters):
            if other == number or other in {teller for teller, _ in voter.told}:
                continue
            early = "told_early" in self.removed
            if vote(its.log) is None:
                if "refusal_not_planted" in self.removed:
                    self.add(f"v{other} says REFUSE to v{number}",
                             self.enters(number, "-", locked=False))
                else:
                    self.add(f"v{number} asks v{other}, which refuses",
                             self.enters(other, "X", locked=False))
            elif outcome(its.log) and (position(its.log, "+", "-", "X", "C") <= its.disk or early):
                self.add(f"v{number} learns {outcome(its.log)} from v{other}",
                         self.enters(number, outcome(its.log), locked=False))
            elif vote(its.log) == "R" and (position(its.log, "R") <= its.disk or early):
                told = voter.told | {(other, "R")}
                if len(told) == len(self.voters) - 1:
                    self.add(f"v{number} knows that all have recorded",
                             self.enters(number, "+", locked=False, told=told))
                else:
                    self.add(f"v{number} hears R of v{other}", self.with_voter(number, told=told))

    def is_alone(self, number):
        return self.coordinator.state == "dead" or number in self.coordinator.outlived

    def forgets(self, number):
        """A voter that knows the outcome, and whose coordinator is gone, tells the others, and forgets
        when all have said that they know."""
        voter = self.voters[number]
        known = outcome(voter.log)
        if not known or not self.is_alone(number) or vote(voter.log) not in ("R", "C"):
            return
        for other, its in enumerate(self.voters):
            if other == number or (other, "K") in voter.told:
                continue
            if outcome_position(voter.log) > voter.disk:
                continue
            if vote(its.log) == "R" and outcome(its.log) is None:
                self.add(f"v{number} tells v{other} {known}",
                         self.enters(other, known, locked=False))
            elif outcome(its.log) or vote(its.log) is None:
                on_disk = position(its.log, "+", "-", "X", "C") <= its.disk
                if vote(its.log) is None or on_disk or "forgets_early" in self.removed:
                    self.add(f"v{number} hears that v{other} knows",
                             self.with_voter(number, told=voter.told | {(other, "K")}))
        knowing = sum(what == "K" for _, what in voter.told)
        if knowing == len(self.voters) - 1:
            self.forget(number)

    def forget(self, number):
        voter = self.voters[number]
        if voter.log and voter.log[0][0] != "f":
            log = ("f" + (outcome(voter.log) or "-"),)
            self.add(f"v{number} forgets",
                     self.with_voter(number, log=log, disk=1, locked=False, told=frozenset()))

    def hears_the_outcome(self, number):
        """The coordinator tells the outcome, a voter acknowledges it, and forgets when all have."""
        voter, coordinator, own = self.voters[number], self.coordinator, self.model.own
        state = coordinator.state
        if state not in "+-" or number == own or self.is_deaf(number):
            return
        mine = vote(voter.log)
        if mine == "R" and outcome(voter.log) is None:
            self.add(f"v{number} is told {state}", self.enters(number, state, locked=False))
        if number not in coordinator.acknowledged and (outcome(voter.log) or mine is None):
            on_disk = outcome_position(voter.log) <= voter.disk
            if mine is None or on_disk or "ack_early" in self.removed:
                if mine is None and state == "+" and voter.log[:1] != ("f+",):
                    self.add(f"v{number} has no vote, and the outcome is +", state="broken")
                else:
                    acknowledged = coordinator.acknowledged | {number}
                    self.add(f"v{number} acknowledges", acknowledged=acknowledged)
        others = len(self.voters) - (own is not None)
        if len(coordinator.acknowledged) == others:
            self.forget(number)

    def coordinates(self):
        coordinator, own = self.coordinator, self.model.own
        if self.model.dies and coordinator.state in ("run", "+", "-"):
            self.add("the coordinator dies", state="dead")
        if coordinator.state != "run":
            return
        for number, voter in enumerate(self.voters):
            if number == own:
                continue
            heard = coordinator.heard[number]
            if heard is None:
                self.add(f"RECORD to v{number}", sent=self.sent | {(number, voter.life)},
                         heard=self.heard(number, "sent"))
            elif heard == "sent":
                mine = vote(voter.log)
                on_disk = position(voter.log, "R", "X") <= voter.disk
                if mine and (on_disk or "vote_early" in self.removed):
                    self.add(f"v{number} votes {mine}", heard=self.heard(number, mine))
                under_way = any(message[0] == number for message in self.sent)
                if mine is None and not under_way and not self.is_deaf(number):
                    self.add(f"v{number} is asked, and refuses",
                             self.enters(number, "X", locked=False))
        others = [heard for number, heard in enumerate(coordinator.heard) if number != own]
        if "X" in others:
            self.add("decides -", state="-")
        elif all(heard == "R" for heard in others):
            self.decides_last()
        if "aborts_alone" in self.removed and "sent" in others:
            self.add("gives up alone", state="-")

    def decides_last(self):
        own = self.model.own
        if own is None:
            self.add("decides +, and tells the client", state="+", client="+")
            return
        voter = self.voters[own]
        if vote(voter.log) is None and voter.locked:
            self.add("votes last", self.enters(own, "C", locked=False))
        if vote(voter.log) == "C":
            if position(voter.log, "C") <= voter.disk or "own_early" in self.removed:
                self.add("decides +, and tells the client", state="+", client="+")
        if vote(voter.log) == "X":
            self.add("decides -", state="-")


class Model:
    """`voters` vote; with `own` the last of them is the coordinator's shard and votes last; each crashes
    so many times; the coordinator `dies` or not; with `former_life` voters may hear of a later life of
    its shard while the former one still speaks."""

    def __init__(self, removed, voters=2, own=False, crashes=1, dies=True, former_life=False):
        self.removed, self.crashes = removed, crashes
        self.dies, self.former_life = dies, former_life
        self.own = voters - 1 if own else None
        voter = Voter(0, (), 0, True, frozenset())
        coordinator = Coordinator("run", (None,) * voters, frozenset(), None, frozenset())
        self.start = ((voter,) * voters, frozenset(), coordinator)

    def steps(self, state):
        return Steps(self, state).all()

    def wrong(self, state):
        voters, _, coordinator = state
        if coordinator.state == "broken":
            return "the outcome is +, and a voter has no vote"
        outcomes = {outcome(voter.log) for voter in voters} - {None}
        outcomes |= {"-" for voter in voters if vote(voter.log) == "X"}
        outcomes |= {entry[1] for voter in voters for entry in voter.log if entry[0] == "f"}
        outcomes |= {what for what in (coordinator.client, coordinator.state) if what in ("+", "-")}
        logs = " ".join("".join(voter.log) or "." for voter in voters)
        if "+" in outcomes:
            for number, voter in enumerate(voters):
                undecided = number == self.own and coordinator.state == "run"
                if not {"R", "C", "+", "f+"} & set(voter.log) and not undecided:
                    return f"it is committed, and a voter has nothing: {logs}"
        if len(outcomes) > 1:
            return f"there are two outcomes: {logs}, the client was told {coordinator.client}"
        return None

    def wrong_at_end(self, state):
        for number, voter in enumerate(state[0]):
            if vote(voter.log) == "R" and outcome(voter.log) is None:
                return f"v{number} is in doubt for ever"
            if voter.locked:
                return f"v{number} keeps its locks for ever"
        return None


def run(removed, **case):
    model = Model(removed, **case)
    return search(model.start, model.steps, model.wrong, model.wrong_at_end)


CASES = {
    "two voters": dict(),
    "the coordinator stays": dict(dies=False),
    "two crashes each": dict(crashes=2, large=True),
    "the own shard votes last": dict(own=True),
    "the own shard votes last of three": dict(voters=3, own=True, large=True),
    "a former life of the coordinator": dict(former_life=True, dies=False),
}
MUTANTS = {
    "vote_early": ["two voters"],
    "own_early": ["the own shard votes last"],
    "told_early": ["two voters"],
    "ack_early": ["two voters"],
    "forgets_early": ["two voters"],
    "refusal_not_planted": ["two voters"],
    "record_without_locks": ["two voters"],
    "aborts_alone": ["two voters"],
    "former_life_heard": ["a former life of the coordinator"],
}

if __name__ == "__main__":
    main(run, CASES, MUTANTS)
