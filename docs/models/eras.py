"""`async`: how shards of several processes go back to one timestamp together.

The rules are those of docs/durability.md and of crates/txn/src/shard/cut.rs. Each shard is a process of
its own. Its disk says which era it has begun, with which cut, and where it has closed since. A shard that
comes back asks the others in rounds, and tells them what its disk says and whether its present life has
begun that era. From a whole round of answers follows what it does: it begins an era, asks again, or serves.
A shard that serves closes further and further. It is over when one asks that has not begun its era.

Asked, for crashes at any moment: shards that have begun the same era have the same cut; it is not below
where all had closed in an era before, nor above where one had; no two shards serve different eras at a
time; and when no more crashes come, all serve.

Mutants:
  own_cut           an era's cut is where the shard that begins it has closed itself
  old_era_answers   a shard that serves tells where it has closed, and goes on
  serves_alone      a shard serves when it has begun an era, whatever the others have
  begun_ignored     an answer counts as that of a life that has begun its era
  answer_forgotten  a shard serves by answers that it has got before it answered a life that had not begun

Left out: what is in the logs, and clients without data, of which the simulator has mutants; a disk that
loses what was synced.
"""

from typing import NamedTuple

from search import main, search

CLOSES = 2
"""How often a shard closes in an era, at most."""


class Shard(NamedTuple):
    era: int  # what its disk says
    base: int
    closed: int
    phase: str  # down, asks, serves, over
    begun: bool  # the present life has begun the era
    doubted: bool  # it has answered a life that has not, in this round
    answers: tuple  # by shard: what it has told in this round


class State(NamedTuple):
    shards: tuple
    crashes: int  # that may still come
    known: int  # where all have closed, in one era
    lost: bool  # an era has begun below that, or above where its shard had closed


def told(shard):
    return (shard.era, shard.base, shard.closed, shard.begun)


def steps_of(removed):
    def steps(state):
        found = []

        def step(what, *changed, **ghosts):
            shards = list(state.shards)
            for place, shard in changed:
                shards[place] = shard
            then = state._replace(shards=tuple(shards), **ghosts)
            if len({shard.era for shard in shards}) == 1:
                then = then._replace(known=max(then.known, min(shard.closed for shard in shards)))
            found.append((what, then))

        for place, shard in enumerate(state.shards):
            none = (None,) * len(state.shards)
            fresh = shard._replace(phase="asks", begun=False, doubted=False, answers=none)
            if shard.phase == "down":
                step(f"{place} comes back", (place, fresh))
                continue
            if state.crashes > 0:
                down = fresh._replace(phase="down")
                step(f"{place} crashes", (place, down), crashes=state.crashes - 1)
            if shard.phase == "over":
                step(f"{place} starts anew", (place, fresh))
            elif shard.phase == "serves":
                if shard.closed < shard.base + CLOSES:
                    step(f"{place} closes", (place, shard._replace(closed=shard.closed + 1)))
            else:
                asks(state, place, shard, step)
        return found

    def asks(state, place, shard, step):
        for other, its in enumerate(state.shards):
            if other == place or shard.answers[other] is not None or its.phase in ("down", "over"):
                continue
            answers = shard.answers[:other] + (told(its),) + shard.answers[other + 1:]
            asker = (place, shard._replace(answers=answers))
            if shard.begun and shard.era == its.era:
                step(f"{place} asks {other}", asker)
            elif its.phase == "asks":
                step(f"{place} asks {other}", asker, (other, its._replace(doubted=True)))
            elif "old_era_answers" in removed:
                step(f"{place} asks {other}", asker)
            else:
                step(f"{place} asks {other}, which is over", (other, its._replace(phase="over")))
        others = [answer for other, answer in enumerate(shard.answers) if other != place]
        if None not in others:
            decides(state, place, shard, others, step)

    def decides(state, place, shard, others, step):
        again = shard._replace(doubted=False, answers=(None,) * len(state.shards))
        later = max(others)
        if later[0] > shard.era:
            return begins(state, place, again, later[0], later[1], step)
        if "serves_alone" in removed and shard.begun:
            return step(f"{place} serves", (place, again._replace(phase="serves")))
        if min(others)[0] < shard.era:
            return step(f"{place} waits", (place, again))
        if not shard.begun:
            closed = [closed for (_, _, closed, _) in others] if "own_cut" not in removed else []
            return begins(state, place, again, shard.era + 1, min([shard.closed, *closed]), step)
        if shard.doubted and "answer_forgotten" not in removed:
            return step(f"{place} asks again", (place, again))
        if "begun_ignored" in removed or all(begun for (_, _, _, begun) in others):
            return step(f"{place} serves", (place, again._replace(phase="serves")))
        return step(f"{place} waits", (place, again))

    def begins(state, place, shard, era, base, step):
        lost = state.lost or base < state.known or base > shard.closed
        shard = shard._replace(era=era, base=base, closed=base, begun=True)
        step(f"{place} begins {era} at {base}", (place, shard), lost=lost)

    return steps


def wrong(state):
    if state.lost:
        return "an era begins below where all had closed, or above where one had"
    bases = {}
    for shard in state.shards:
        if bases.setdefault(shard.era, shard.base) != shard.base:
            return "one era with two cuts"
    eras = {shard.era for shard in state.shards if shard.phase in ("serves", "over")}
    return "two eras are served" if len(eras) > 1 else None


def wrong_at_end(state):
    if any(shard.phase != "serves" for shard in state.shards):
        return "not all serve"
    return None


def run(removed, shards, crashes):
    shard = Shard(0, 0, 0, "down", False, False, (None,) * shards)
    start = State((shard,) * shards, crashes, 0, False)
    return search(start, steps_of(removed), wrong, wrong_at_end)


CASES = {
    "two shards, three crashes": dict(shards=2, crashes=3),
    "two shards, four crashes": dict(shards=2, crashes=4, large=True),
    "three shards, a crash": dict(shards=3, crashes=1, large=True),
}
MUTANTS = {
    "own_cut": ["two shards, three crashes"],
    "old_era_answers": ["two shards, three crashes"],
    "serves_alone": ["two shards, three crashes"],
    "begun_ignored": ["two shards, three crashes"],
    "answer_forgotten": ["two shards, three crashes"],
}

if __name__ == "__main__":
    main(run, CASES, MUTANTS)
