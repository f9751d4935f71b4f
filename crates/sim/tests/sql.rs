//! Sessions of SQL in worlds: nothing is violated, everything is met, the same seed is the same
//! world. Longer sweeps are `plimsoll sim --workload sql`.

use std::collections::BTreeMap;

use plimsoll_sim::plan::{Plan, Selection, WorkloadName};
use plimsoll_sim::run::{Outcome, run};

fn selection() -> Selection {
    Selection { workload: Some(WorkloadName::Sql), transactions: Some(12), ..Selection::default() }
}

fn passes(seed: u64, selection: &Selection) -> Outcome {
    let plan = Plan::drawn(seed, selection).expect("the selection is possible");
    let outcome = run(&plan, None);
    let violations = &outcome.violations;
    assert!(violations.is_empty(), "seed {seed}, {}: {violations:#?}", plan.pair());
    outcome
}

#[test]
fn sessions_under_faults_violate_nothing_and_meet_everything() {
    let mut told: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for seed in 0..30 {
        let outcome = passes(seed, &selection());
        for (what, count) in outcome.deeds.told {
            *told.entry(what).or_default() += count;
        }
    }
    let count = |label: &str, state: &str| told.get(&(label, state.to_owned())).copied().unwrap_or(0);
    for label in [
        "append",
        "read",
        "read all",
        "sum",
        "transfer",
        "take seat",
        "leave seat",
        "child",
        "remove parent",
        "parent",
        "remove children",
        "number",
        "create index",
        "drop index",
        "add column",
        "drop column",
        "savepoint",
        "rollback to",
        "commit",
    ] {
        assert!(count(label, "") > 0, "{label} has not succeeded: {told:?}");
    }
    for (label, state) in
        [("commit", "40001"), ("take seat", "23505"), ("remove parent", "23503"), ("read", "55P03")]
    {
        assert!(count(label, state) > 0, "{label} has not met {state}: {told:?}");
    }
}

#[test]
fn sessions_on_shards_that_log_violate_nothing_while_machines_crash() {
    let knobs = [("crashes_per_s", "20"), ("down_ns", "20000000")];
    let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let crashing = Selection { logs: true, knobs, ..selection() };
    (0..9).for_each(|seed| drop(passes(seed, &crashing)));
}

/// Under 2PL a block with savepoints keeps its locks while it waits for a row that another session
/// has reserved, which may wait for these locks.
#[test]
fn sessions_that_hold_locks_do_not_wait_for_each_other_for_ever() {
    let selection = Selection { transactions: None, protocol: Some("wound_wait"), ..selection() };
    drop(passes(56, &selection));
}

#[test]
fn a_world_of_sessions_is_the_same_twice() {
    for seed in 100..104 {
        let [first, second] = [(); 2].map(|()| passes(seed, &selection()));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.deeds.all, second.deeds.all, "seed {seed}");
    }
}

#[test]
fn sessions_need_a_pair_that_has_sql() {
    let refused = |protocol, scheme| {
        let pair = Selection { protocol: Some(protocol), scheme: Some(scheme), ..selection() };
        Plan::drawn(0, &pair).expect_err("there is no SQL")
    };
    for (protocol, scheme) in [("occ", "gts"), ("client_2pc", "dst"), ("rococo", "dst")] {
        let why = refused(protocol, scheme);
        assert!(why.contains("choose occ/dst or two_pl/dst"), "{why}");
    }
}
