//! Worlds of many seeds: the same twice, without a violation, and caught where there is one.

use std::collections::BTreeSet;
use std::thread;

use plimsoll_runtime::sim::Fault;
use plimsoll_sim::plan::{FaultsName, Plan, Selection, WorkloadName, schemes};
use plimsoll_sim::run::{Outcome, run};
use plimsoll_sim::shrink::shrink;
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use plimsoll_types::mutants::Mutant;

/// Each once.
const PROTOCOLS: [&str; 6] = ["occ", "wait_die", "wound_wait", "no_wait", "client_2pc", "rococo"];

fn world(seed: u64, selection: &Selection) -> (Plan, Outcome) {
    let plan = Plan::drawn(seed, selection).unwrap();
    let outcome = run(&plan, None);
    (plan, outcome)
}

fn passes(seed: u64, selection: &Selection) {
    let (plan, outcome) = world(seed, selection);
    let violations = &outcome.violations;
    assert!(violations.is_empty(), "seed {seed}, {} {}: {violations:#?}", plan.pair(), plan.workload.name());
    assert!(outcome.transactions > 0, "seed {seed}, {} {}", plan.pair(), plan.workload.name());
}

/// Everything that came of a world.
fn told(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

#[test]
fn every_world_is_the_same_twice() {
    let mut hashes = BTreeSet::new();
    let mut twice = |seed, selection: &Selection| {
        let (first, second) = (world(seed, selection), world(seed, selection));
        assert_eq!(first.0, second.0);
        assert_eq!(told(&first.1), told(&second.1), "seed {seed}, {}", first.0.pair());
        assert!(hashes.insert(first.1.hash), "worlds of different seeds differ");
    };
    (0..40).for_each(|seed| twice(seed, &Selection::default()));
    let pairs = PROTOCOLS
        .iter()
        .flat_map(|&protocol| schemes(protocol).into_iter().map(move |scheme| (protocol, scheme)));
    for (seed, (protocol, scheme)) in (40..).zip(pairs) {
        twice(seed, &Selection { protocol: Some(protocol), scheme: Some(scheme), ..Selection::default() });
    }
}

#[test]
fn a_world_is_the_same_whether_or_not_its_messages_are_encoded() {
    for protocol in PROTOCOLS {
        for scheme in schemes(protocol) {
            for seed in 0..2 {
                let selection =
                    Selection { protocol: Some(protocol), scheme: Some(scheme), ..Selection::default() };
                let plan = Plan::drawn(seed, &selection).unwrap();
                let [encoded, not] =
                    [true, false].map(|encoded| run(&Plan { encoded, ..plan.clone() }, None));
                assert_eq!(told(&encoded), told(&not), "seed {seed}, {}", plan.pair());
            }
        }
    }
}

#[test]
fn worlds_with_drawn_faults_violate_nothing() {
    // On two threads: no other test here takes as long.
    thread::scope(|scope| {
        for odd in 0..2 {
            scope.spawn(move || (odd..600).step_by(2).for_each(|seed| passes(seed, &Selection::default())));
        }
    });
}

#[test]
fn worlds_that_scan_from_either_end_violate_nothing_and_are_the_same_when_encoded() {
    let selection = Selection { workload: Some(WorkloadName::Reverse), ..Selection::default() };
    (0..300).for_each(|seed| passes(seed, &selection));
    for protocol in PROTOCOLS.into_iter().filter(|&protocol| protocol != "rococo") {
        for (seed, scheme) in (0..).zip(schemes(protocol)) {
            let pair = Selection { protocol: Some(protocol), scheme: Some(scheme), ..selection.clone() };
            let plan = Plan::drawn(seed, &pair).unwrap();
            let [encoded, not] = [true, false].map(|encoded| run(&Plan { encoded, ..plan.clone() }, None));
            assert_eq!(told(&encoded), told(&not), "seed {seed}, {}", plan.pair());
        }
    }
}

#[test]
fn worlds_of_rococo_violate_nothing_and_nobody_aborts() {
    let drawn = Selection { protocol: Some("rococo"), ..Selection::default() };
    (0..300).for_each(|seed| passes(seed, &drawn));
    let crashes = Selection {
        fronts: Some(1),
        knobs: vec![("crashes_per_s".to_owned(), "50".to_owned())],
        ..drawn.clone()
    };
    (0..60).for_each(|seed| passes(seed, &crashes));
    let aborts = |seed| world(seed, &Selection { scheme: Some("dst"), ..drawn.clone() }).1.aborts;
    assert_eq!((0..40).map(aborts).sum::<u64>(), 0);
}

#[test]
fn every_protocol_under_every_scheme_and_workload_violates_nothing() {
    for protocol in PROTOCOLS {
        for scheme in schemes(protocol).into_iter().filter(|&scheme| scheme != "rc") {
            // Those of SQL have tests of their own: see tests/sql.rs.
            let runs = |workload: &WorkloadName| !workload.is_sql() && workload.runs_under(protocol, scheme);
            for workload in WorkloadName::ALL.iter().copied().filter(runs) {
                for (seed, faults) in [(1, FaultsName::None), (2, FaultsName::All)] {
                    passes(
                        seed,
                        &Selection {
                            protocol: Some(protocol),
                            scheme: Some(scheme),
                            workload: Some(workload),
                            faults,
                            ..Selection::default()
                        },
                    );
                }
            }
        }
    }
}

#[test]
fn read_committed_is_caught_under_every_workload_and_shrinks_to_a_history_that_can_be_read() {
    let mut fewer_keys = 0;
    // There is no SQL without snapshots.
    for workload in WorkloadName::ALL.iter().copied().filter(|workload| !workload.is_sql()) {
        let selection = Selection { scheme: Some("rc"), workload: Some(workload), ..Selection::default() };
        let caught =
            (0..100).map(|seed| world(seed, &selection)).find(|(_, outcome)| !outcome.violations.is_empty());
        let (plan, outcome) =
            caught.unwrap_or_else(|| panic!("{} is serializable under rc", workload.name()));
        let kind = outcome.violations[0].kind.clone();
        let (small, smaller) = shrink(&plan, outcome, |plan| run(plan, None));
        assert!(smaller.violations.iter().any(|violation| violation.kind == kind));
        // What a client of TPC-E does depends on what others did: of these few can be left out.
        let most = if workload == WorkloadName::Tpce { 100 } else { 10 };
        assert!(small.only.len() <= most, "{}: {:?}", workload.name(), small.only);
        assert!(!small.only.is_empty(), "{}", workload.name());
        assert_eq!(run(&small, None).violations, smaller.violations, "what was shrunk can be run again");
        fewer_keys += usize::from(small.keys < plan.keys);
    }
    assert!(fewer_keys > 0, "no workload fails with fewer keys");
}

#[test]
fn only_machines_without_data_crash_whatever_the_plan_says() {
    let knobs = vec![("crashes_per_s".to_owned(), "50".to_owned())];
    let selection = Selection { fronts: Some(1), knobs, ..Selection::default() };
    let mut crashes = 0;
    for seed in 0..20 {
        let plan = Plan::drawn(seed, &selection).unwrap();
        for plan in [Plan { fronts: 0, ..plan.clone() }, plan] {
            let outcome = run(&plan, None);
            for fault in &outcome.faults {
                if let Fault::Crash(machine) = fault.fault {
                    assert!(plan.mortal().contains(&machine), "seed {seed}: machine {machine} has data");
                    crashes += 1;
                }
            }
            if plan.fronts == 0 {
                assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
            }
        }
    }
    assert!(crashes > 0);
}

#[test]
fn worlds_with_the_fewest_keys_violate_nothing() {
    for workload in WorkloadName::ALL.iter().copied() {
        let keys = Some(*workload.keys().start());
        let fewest = Selection { workload: Some(workload), keys, ..Selection::default() };
        (0..20).for_each(|seed| passes(seed, &fewest));
        let all = Selection { keys: Some(*workload.keys().end()), ..fewest.clone() };
        let drawn = Selection { keys: None, ..fewest };
        assert_eq!(Plan::drawn(1, &all), Plan::drawn(1, &drawn));
    }
    let rococo = Selection {
        protocol: Some("rococo"),
        workload: Some(WorkloadName::Pieces),
        keys: Some(1),
        ..Selection::default()
    };
    (0..20).for_each(|seed| passes(seed, &rococo));
}

#[test]
fn snapshots_that_are_held_while_few_keys_are_overwritten_find_what_they_saw() {
    let few = |scheme, mutant| Selection {
        scheme: Some(scheme),
        workload: Some(WorkloadName::Random),
        keys: Some(1),
        clients: Some(5),
        mutant,
        ..Selection::default()
    };
    for scheme in ["dst", "gts", "vts"] {
        (0..40).for_each(|seed| passes(seed, &few(scheme, None)));
    }
    let caught = (0..400).find(|&seed| {
        let (_, outcome) = world(seed, &few("dst", Some(Mutant::NewerHeldForgotten)));
        !outcome.violations.is_empty()
    });
    passes(caught.expect("what only the newer of two snapshots sees is missed"), &few("dst", None));
}

#[test]
fn a_client_that_is_slow_is_not_stuck() {
    // As far as clocks may be apart that are not set right when faults end.
    let offset_ns = (MAX_OFFSET_NS / 2).to_string();
    let selection = Selection {
        protocol: Some("occ"),
        scheme: Some("dst"),
        workload: Some(WorkloadName::Cycle),
        shards: Some(1),
        fronts: Some(1),
        moves: Some(0),
        clients: Some(1),
        transactions: Some(400),
        knobs: vec![("offset_ns".to_owned(), offset_ns)],
        ..Selection::default()
    };
    let (_, outcome) = world(1, &selection);
    // Faults end after 20 s. Clients have 20 s from then on, and some time for each transaction:
    // the world needs the latter.
    assert!(outcome.virtual_ns > 40_000_000_000, "every answer waits for a clock: {} ns", outcome.virtual_ns);
    assert_eq!(outcome.violations, []);
}

#[test]
fn a_fault_that_is_left_out_leaves_the_others_as_they_were() {
    let worlds = (0..100).map(|seed| Plan::drawn(seed, &Selection::default()).unwrap());
    let (plan, all) =
        worlds.map(|plan| (plan.clone(), run(&plan, None).faults)).find(|(_, all)| all.len() > 2).unwrap();
    let skipped = run(&Plan { skip: vec![all[1].index], ..plan }, None).faults;
    assert_eq!(all[0], skipped[0]);
    assert_eq!(all[1].fault, skipped[1].fault, "it is drawn, and does not happen");
}

#[test]
fn a_selection_that_names_no_fault_is_refused() {
    let selection = Selection { knobs: vec![("los".to_owned(), "1".to_owned())], ..Selection::default() };
    let refused = Plan::drawn(0, &selection).unwrap_err();
    assert!(refused.contains("no fault los:") && refused.contains(" loss, "), "{refused}");
    let selection = Selection { knobs: vec![("loss".to_owned(), "2".to_owned())], ..Selection::default() };
    assert!(Plan::drawn(0, &selection).unwrap_err().contains("from 0.0 to 1.0"));
}

#[test]
fn a_pair_that_is_not_legal_is_refused_with_those_that_are() {
    let selection = Selection { protocol: Some("client_2pc"), scheme: Some("gts"), ..Selection::default() };
    let refusal = Plan::drawn(0, &selection).unwrap_err();
    let legal = "choose one of client_2pc/dst, client_2pc/none";
    assert_eq!(refusal, format!("client_2pc/gts is not a legal pair: {legal}"));
}

#[test]
fn in_an_exported_history_every_attempt_begins_before_it_ends() {
    let drawn = |seed| (seed, Selection { workload: Some(WorkloadName::Append), ..Selection::default() });
    // In this one transactions take no virtual time.
    let at_once =
        Selection { protocol: Some("occ"), scheme: Some("none"), faults: FaultsName::All, ..drawn(0).1 };
    for (seed, selection) in (0..20).map(drawn).chain([(810_002, at_once)]) {
        let text = plimsoll_sim::export::lines(&world(seed, &selection).1);
        let mut under_way = BTreeSet::new();
        for line in text.lines() {
            let part = |name: &str| {
                let rest = &line[line.find(name).expect("every line has it") + name.len()..];
                rest[..rest.find(',').expect("and more behind it")].to_owned()
            };
            let session = part("\"process\":");
            let fits = match part("\"type\":").as_str() {
                "\"invoke\"" => under_way.insert(session),
                _ => under_way.remove(&session),
            };
            assert!(fits, "seed {seed}: {line}");
        }
        assert!(under_way.is_empty(), "seed {seed}: {under_way:?} never ended");
    }
}

#[test]
fn an_exported_history_has_two_lines_for_every_attempt_and_every_number_twice() {
    let selection = Selection { workload: Some(WorkloadName::Append), ..Selection::default() };
    let outcome = world(11, &selection).1;
    let text = plimsoll_sim::export::lines(&outcome);
    let of =
        |kind: &str| text.lines().filter(|line| line.contains(&format!(r#""type":"{kind}""#))).count() as u64;
    assert_eq!(of("ok"), outcome.transactions + 1, "the judge looks at the end");
    assert_eq!(of("fail"), outcome.aborts);
    assert_eq!(of("invoke"), of("ok") + of("fail"));
    let mut appends: Vec<&str> =
        text.match_indices("[\"append\"").map(|(at, _)| text[at..].split(']').next().unwrap()).collect();
    appends.sort_unstable();
    assert!(!appends.is_empty() && appends.len().is_multiple_of(2));
    assert!(appends.chunks(2).all(|pair| pair[0] == pair[1]));
    assert!(appends.chunks(2).is_sorted_by(|a, b| a[0] < b[0]));
}
