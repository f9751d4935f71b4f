"""What the models of this folder share: a search through all interleavings.

A model is a start, a function that lists the steps that are possible in a state, and conditions. States
are tuples that can be hashed. A mutant is a model without one of its rules: a search has to find what
goes wrong then, or the rule is no rule.
"""

import sys
import time

LIMIT = 3_000_000
"""States after which a search gives up."""


def search(start, steps, wrong, wrong_at_end=None):
    """Visits all states, depth first.

    `steps(state)` lists pairs of what happens and the next state, `wrong(state)` says what is wrong with
    any state, `wrong_at_end(state)` what is wrong with one without steps; both say None if nothing is.
    Returns what is wrong (None if nothing is), how it came to that, and the number of states.
    """
    came_from = {start: None}
    todo = [start]
    while todo:
        state = todo.pop()
        following = steps(state)
        found = wrong(state)
        if found is None and not following and wrong_at_end is not None:
            found = wrong_at_end(state)
        if found is not None:
            return found, _way(came_from, state), len(came_from)
        for what, then in following:
            if then not in came_from:
                came_from[then] = (state, what)
                todo.append(then)
        if len(came_from) > LIMIT:
            raise SystemExit(f"more than {LIMIT} states")
    return None, [], len(came_from)


def _way(came_from, state):
    way = []
    while came_from[state] is not None:
        state, what = came_from[state]
        way.append(what)
    return way[::-1]


def has_cycle(edges):
    """Whether a directed graph, given as pairs, has a cycle. Pairs of equals do not count."""
    after = {}
    for a, b in edges:
        if a != b:
            after.setdefault(a, set()).add(b)
    done, open_ = set(), set()

    def visit(node):
        if node in open_:
            return True
        if node in done:
            return False
        open_.add(node)
        found = any(visit(other) for other in after.get(node, ()))
        open_.discard(node)
        done.add(node)
        return found

    return any(visit(node) for node in list(after))


def main(run, cases, mutants):
    """Runs a model: `run(removed, **case)` searches a case of which some rules are removed.

    `cases` maps names to arguments; of those whose argument `large` is set only `--all` runs the rules.
    `mutants` maps each rule to the cases in one of which its absence must be found. `-t` tells how it
    came to what was found. Ends with status 1 if anything is not as expected.
    """
    all_, tell = "--all" in sys.argv, "-t" in sys.argv
    states, surprises = 0, 0

    def one(removed, name):
        nonlocal states
        case = {key: value for key, value in cases[name].items() if key != "large"}
        found, way, visited = run(frozenset(removed), **case)
        states += visited
        label = "/".join(removed) or "all rules"
        print(f"{label:22} {name:44} {visited:9,} states  {found or 'holds'}", flush=True)
        if tell and way:
            print("    " + "\n    ".join(way))
        return found

    for name, case in cases.items():
        if all_ or not case.get("large"):
            surprises += one((), name) is not None
    for rule, names in mutants.items():
        if not any(one((rule,), name) for name in names):
            surprises += 1
            print(f"NOT CAUGHT: {rule}")
    seconds = time.process_time()
    print(f"{states:,} states in {seconds:.1f} s of a core, {len(mutants)} mutants, {surprises} surprises")
    sys.exit(surprises > 0)
