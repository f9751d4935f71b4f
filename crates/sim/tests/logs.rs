//! Worlds whose shards keep logs, and whose machines crash, those with data too.

use plimsoll_runtime::sim::Fault;
use plimsoll_sim::plan::{Plan, Selection};
use plimsoll_sim::run::run;

const WORLDS: u64 = 20;

#[test]
fn machines_with_data_crash_and_nothing_that_was_answered_is_lost() {
    let (mut crashes, mut committed, mut from_images, mut moves) = (0, 0, 0, 0);
    for seed in 0..WORLDS {
        let knobs = [("crashes_per_s", "10"), ("down_ns", "20000000")];
        let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let plan = Plan::drawn(seed, &Selection { logs: true, knobs, ..Selection::default() });
        let plan = plan.expect("logs go with everything that is drawn");
        let outcome = run(&plan, None);
        assert_eq!(outcome.violations, [], "seed {seed}");
        committed += outcome.transactions;
        (from_images, moves) = (from_images + outcome.from_images, moves + outcome.moves);
        let with_data =
            |fault: &&_| matches!(fault, Fault::Crash(machine) if !plan.without_data().contains(machine));
        crashes += outcome.faults.iter().map(|occurrence| &occurrence.fault).filter(with_data).count();
    }
    assert!(
        crashes > WORLDS as usize && committed > 100 * WORLDS && from_images > WORLDS && moves > WORLDS,
        "{crashes} crashes, {committed} committed, {from_images} shards back from images, {moves} moves"
    );
}

#[test]
fn oracles_crash_and_nothing_that_was_answered_is_lost() {
    for scheme in ["gts", "vts"] {
        let (mut crashes, mut committed) = (0, 0);
        for seed in 0..WORLDS {
            let knobs = [("crashes_per_s", "10"), ("down_ns", "20000000")];
            let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let selection = Selection { scheme: Some(scheme), logs: true, knobs, ..Selection::default() };
            let plan = Plan::drawn(seed, &selection).expect("logs go with either");
            let outcome = run(&plan, None);
            assert_eq!(outcome.violations, [], "{scheme}, seed {seed}");
            committed += outcome.transactions;
            // That of the oracle is the last.
            let of_oracle = |occurrence: &&plimsoll_runtime::sim::Occurrence| {
                occurrence.fault == Fault::Crash(plan.mortal().end - 1)
            };
            crashes += outcome.faults.iter().filter(of_oracle).count();
        }
        assert!(
            crashes > WORLDS as usize && committed > 100 * WORLDS,
            "{scheme}: {crashes} crashes, {committed} committed"
        );
    }
}

#[test]
fn a_reader_does_not_ask_for_the_same_snapshot_again_within_a_step() {
    // A shard comes back with versions that the oracle has not published; these worlds did not end.
    for (seed, scheme, protocol) in [(395, "vts", "occ"), (955, "gts", "wait_die")] {
        let knobs = vec![("crashes_per_s".to_owned(), "10".to_owned())];
        let (scheme, protocol) = (Some(scheme), Some(protocol));
        let selection = Selection { scheme, protocol, logs: true, knobs, ..Selection::default() };
        let outcome = run(&Plan::drawn(seed, &selection).expect("the knob exists"), None);
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

#[test]
fn reads_of_a_former_life_are_void_and_what_an_image_lacks_is_forgotten() {
    // A read at a snapshot follows its row to another shard, which begins another life before the
    // reader commits; and a row that is deleted in an image is dropped while a snapshot from before
    // is held.
    for (seed, protocol) in [(630757, "occ"), (631228, "wait_die")] {
        let knobs = vec![("crashes_per_s".to_owned(), "10".to_owned())];
        let (scheme, protocol) = (Some("gts"), Some(protocol));
        let selection = Selection { scheme, protocol, logs: true, knobs, ..Selection::default() };
        let outcome = run(&Plan::drawn(seed, &selection).expect("the knob exists"), None);
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

#[test]
fn a_world_is_judged_when_the_shards_that_crashed_last_are_back() {
    // All clients are done before a shard that crashed serves again, before the clock of the first
    // shard is where another has stamped, or before one that serves begins anew with another.
    for (seed, to_cut) in [(500573, true), (502394, true), (503038, false), (600105, true)] {
        let knobs = vec![("crashes_per_s".to_owned(), "10".to_owned())];
        let selection = Selection { logs: true, to_cut, knobs, ..Selection::default() };
        let outcome = run(&Plan::drawn(seed, &selection).expect("the knob exists"), None);
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

#[test]
fn a_database_that_does_not_wait_for_its_disk_goes_back_to_one_timestamp() {
    for (scheme, worlds) in [("dst", 2 * WORLDS), ("gts", WORLDS)] {
        let (mut alone, mut together, mut committed, mut lost, mut from_images) = (0, 0, 0, 0, 0);
        for seed in 0..worlds {
            let knobs = [("crashes_per_s", "10"), ("down_ns", "20000000")];
            let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let selection =
                Selection { scheme: Some(scheme), logs: true, to_cut: true, knobs, ..Selection::default() };
            let plan = Plan::drawn(seed, &selection).expect("logs go with everything that is drawn");
            let outcome = run(&plan, None);
            assert_eq!(outcome.violations, [], "{scheme}, seed {seed}");
            (committed, lost) = (committed + outcome.transactions, lost + outcome.lost);
            from_images += outcome.from_images;
            for occurrence in &outcome.faults {
                match occurrence.fault {
                    Fault::Crash(_) => alone += 1,
                    Fault::Blackout => together += 1,
                    _ => {}
                }
            }
        }
        assert!(
            alone > worlds
                && together > worlds / 2
                && committed > 50 * worlds
                && lost > worlds / 2
                && from_images > worlds / 2,
            "{scheme}: {alone} machines crashed and {together} times all, {committed} committed, {lost} lost, \
             {from_images} shards back from images"
        );
    }
}

#[test]
fn a_client_that_is_over_reads_no_other_era_and_one_that_follows_hears_the_oracle() {
    // A walk at a snapshot goes on with shards that have gone back to a cut; what the oracle has
    // sent before a client's shard follows an era is lost, and the client waits for ever.
    for seed in [183, 241, 287, 480] {
        let knobs = vec![("crashes_per_s".to_owned(), "10".to_owned())];
        let selection =
            Selection { scheme: Some("gts"), logs: true, to_cut: true, knobs, ..Selection::default() };
        let outcome = run(&Plan::drawn(seed, &selection).expect("the knob exists"), None);
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

#[test]
fn what_has_started_under_rococo_is_finished_by_those_who_come_back() {
    let (mut crashes, mut committed, mut from_images) = (0, 0, 0);
    for seed in 0..WORLDS {
        let knobs = [("crashes_per_s", "3"), ("down_ns", "20000000")];
        let knobs = knobs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let selection = Selection { protocol: Some("rococo"), logs: true, knobs, ..Selection::default() };
        let plan = Plan::drawn(seed, &selection).expect("rococo goes with logs");
        let outcome = run(&plan, None);
        assert_eq!(outcome.violations, [], "seed {seed}");
        (committed, from_images) = (committed + outcome.transactions, from_images + outcome.from_images);
        let with_data =
            |fault: &&_| matches!(fault, Fault::Crash(machine) if !plan.without_data().contains(machine));
        crashes += outcome.faults.iter().map(|occurrence| &occurrence.fault).filter(with_data).count();
    }
    assert!(
        crashes > WORLDS as usize && committed > 100 * WORLDS && from_images > WORLDS,
        "{crashes} crashes, {committed} committed, {from_images} shards back from images"
    );
}
