//! One test for each reason to refuse, and one for each way to say yes.

use clap::Parser;
use plimsoll_runtime::sim::{Fault, Occurrence};
use plimsoll_sim::plan::{Nth, Plan};
use plimsoll_sim::run::{Outcome, Violation, run};
use plimsoll_sim::shrink::shrink;

use super::*;
use crate::cli::{Cli, Command};

fn simulation(line: &str) -> Result<SimPlan, String> {
    let words = std::iter::once("plimsoll").chain(line.split_whitespace());
    match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Sim(args) => args.validate(2, 7).map_err(|refusal| refusal.to_string()),
        _ => unreachable!("a line of sim is given"),
    }
}

#[test]
fn a_simulation_without_flags_runs_a_thousand_worlds() {
    let plan = simulation("sim").unwrap();
    assert_eq!(plan.worlds, Worlds::Seeds(0..1000));
    assert_eq!((plan.threads, plan.trace, plan.shrink), (2, false, true));
    assert_eq!(simulation("sim --soak 10m").unwrap().worlds, Worlds::Soak(7, Duration::from_secs(600)));
    assert_eq!(simulation("sim --seeds 1_000..2_000").unwrap().worlds, Worlds::Seeds(1000..2000));
}

#[test]
fn a_simulation_that_cannot_be_is_refused_in_one_sentence() {
    let refused =
        |line: &str, sentence: &str| assert_eq!(simulation(line).expect_err("must be refused"), sentence);
    refused("sim --seeds 5..5", "--seeds 5..5 is empty: give the smaller number first");
    refused("sim --seed 1 --export x", "--export writes histories of lists: add --workload append");
    refused(
        "sim --seed 1 --timeline /no/such/folder/world.html",
        "cannot write /no/such/folder/world.html: the directory /no/such/folder does not exist",
    );
    refused(
        "sim --seed 1 --timeline world.html --json world.html",
        "--timeline and --json both write world.html: give each a file of its own",
    );
    assert!(simulation("sim --timeline world.html").unwrap_err().contains("--seed"));
    refused("sim --seeds 0..9 --timeline world.html", "--timeline is about one world: name it with --seed");
    refused("sim --soak 0s", "--soak 0s runs nothing: give a time such as 10m");
    refused("sim --shards 0", "--shards 0 is too small: give 1 or more");
    assert!(simulation("sim --one-round true").unwrap_err().contains("add --protocol occ --scheme dst"));
    assert!(simulation("sim --one-round true --protocol occ --scheme dst").is_ok());
    refused("sim --fault loss", "`--fault loss` has no value: write a name and a value, such as loss=0.01");
    let unknown = simulation("sim --fault los=1").unwrap_err();
    assert!(unknown.starts_with("there is no fault los: choose among loss, duplication, "), "{unknown}");
    assert!(unknown.ends_with(", acknowledge_ns"), "{unknown}");
    refused("sim --fault loss=much", "loss is a number from 0.0 to 1.0, not much");
    refused("sim --fault loss=1.5", "loss is a number from 0.0 to 1.0, not 1.5");
    refused("sim --fault shards_per_machine=0", "shards_per_machine is a whole number from 1 to 64, not 0");
    refused("sim --fault drift_ppm=2000000", "drift_ppm is a whole number from 0 to 100_000, not 2000000");
    assert!(simulation("sim --fault drift_ppm=100_000 --fault loss=1 --fault clog_ns=0").is_ok());
    refused(
        "sim --fault torn_writes=0.5",
        "torn_writes makes no difference: no transaction uses a disk without --durability sync",
    );
    refused("sim --protocol rococo --moves 7", "slots do not move under rococo: leave --moves out");
    refused(
        "sim --transactions 5 --only 0.6",
        "--only 0.6 is not among the 5 transactions of a client, the first of which is 1",
    );
    refused(
        "sim --transactions 5 --shards 1 --fronts 0 --clients 3 --only 3.1",
        "--only names client 3, and there are 3, numbered from 0 on",
    );
    assert!(simulation("sim --only 7").unwrap_err().contains("`7` is not a transaction"));
    refused("sim --keys 3", "--keys needs to know of which workload: add --workload");
    refused(
        "sim --workload cycle --keys 2",
        "--keys 2 is not possible under cycle: give a number from 3 to 8",
    );
    assert!(simulation("sim --seed 1 --seeds 0..2").unwrap_err().contains("cannot be used with"));
    assert!(simulation("sim --seeds 7").unwrap_err().contains("`7` is not a range"));
    assert_eq!(simulation("sim --json -").unwrap().json, JsonOutput::Stdout);
    assert!(simulation("sim --trace").unwrap_err().contains("--seed"));
    assert!(simulation("sim --scheme tso").unwrap_err().contains("tso"));
    assert!(simulation("sim --seed 1 --json /no/such/place/x.json").unwrap_err().contains("does not exist"));
}

#[test]
fn crashes_are_refused_where_no_machine_may_crash() {
    let refused =
        |line: &str, sentence: &str| assert_eq!(simulation(line).expect_err("must be refused"), sentence);
    refused(
        "sim --fronts 0 --fault crashes_per_s=5",
        "only machines without data crash, and there are none: give --fronts 1 or more, add --durability \
         sync, or leave crashes_per_s out",
    );
    refused(
        "sim --workload tpcc --fault crashes_per_s=5",
        "no machine may crash under tpcc: leave crashes_per_s out, or choose another workload",
    );
    let said = simulation("sim --durability sync --workload tpcc").expect_err("must be refused");
    assert!(said.starts_with("clients of tpcc count what they were told"), "{said}");
    refused(
        "sim --durability async --moves 3",
        "slots do not move under --durability async: leave --moves out, or choose sync",
    );
    refused(
        "sim --durability async --scheme none",
        "none has no cut to go back to: choose dst or gts, or --durability sync",
    );
    refused(
        "sim --durability async --protocol rococo",
        "rococo has no cut to go back to: choose another protocol, or --durability sync",
    );
    for line in [
        "sim --durability sync --protocol rococo --fault crashes_per_s=5",
        "sim --durability async --fault crashes_per_s=5",
        "sim --durability sync --moves 3",
        "sim --durability sync --scheme gts --fault crashes_per_s=5",
        "sim --durability sync --scheme vts --fault crashes_per_s=5",
        "sim --durability sync --fronts 0 --fault crashes_per_s=5 --fault torn_writes=0.5",
        "sim --fault crashes_per_s=5",
        "sim --fronts 1 --fault crashes_per_s=5",
        "sim --fronts 0 --fault crashes_per_s=0",
        "sim --workload tpcc --faults all",
    ] {
        assert!(simulation(line).is_ok(), "{line}");
    }
}

/// The world that is run by the command line which a world is told to be run again with.
fn again(world: &Plan, plan: &SimPlan) -> Plan {
    let line = crate::sim::again(world, &plan.selection);
    let parsed = simulation(line.strip_prefix("plimsoll ").expect("the program is named"));
    let parsed = parsed.unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
    let Worlds::Seed(seed) = parsed.worlds else { panic!("{line} is about one world") };
    assert!(!parsed.shrink, "{line} runs the world as it is");
    Plan::drawn(seed, &parsed.selection).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

/// What comes of a world that fails whatever it is made of, with four faults.
fn failed() -> Outcome {
    let fault = |index| Occurrence { index, begin_ns: 0, end_ns: 1, fault: Fault::Pause(0) };
    let violations = vec![Violation { kind: "planted".to_owned(), detail: String::new() }];
    Outcome { violations, faults: (0..4).map(fault).collect(), ..Outcome::default() }
}

#[test]
fn whatever_a_world_is_shrunk_to_is_what_its_command_line_gives() {
    for line in [
        "sim",
        "sim --fronts 2 --fault crashes_per_s=50 --fault loss=0.1",
        "sim --fault crashes_per_s=50",
        "sim --protocol rococo",
        "sim --workload cycle --keys 5 --faults all",
        "sim --workload tpcc --faults none --moves 7",
        "sim --protocol occ --scheme dst --one-round true --skip 1,2 --faults network",
        "sim --protocol two_pl --scheme rc --fault shards_per_machine=3",
    ] {
        let plan = simulation(line).expect("it is possible");
        for seed in 0..10 {
            let world = Plan::drawn(seed, &plan.selection).expect("it is possible");
            let run = |world: &Plan| {
                assert_eq!(again(world, &plan), *world, "{line}");
                failed()
            };
            let (small, _) = shrink(&world, run(&world), run);
            let sizes = (small.transactions, small.clients, small.shards, small.fronts, small.moves);
            assert_eq!(sizes, (1, 1, 1, 0, 0), "{line}, seed {seed}");
            assert_eq!(small.keys, *small.workload.keys().start(), "{line}, seed {seed}");
            assert!((0..4).all(|index| small.skip.contains(&index)), "{line}, seed {seed}");
        }
    }
}

#[test]
fn transactions_without_which_a_world_fails_as_well_are_left_out() {
    let line = "sim --protocol occ --scheme dst --workload random --shards 2 --fronts 0 --clients 3 --transactions 9";
    let plan = simulation(line).expect("it is possible");
    let world = Plan::drawn(1, &plan.selection).expect("it is possible");
    // It takes these two, and as many clients and transactions as there have to be for them.
    let both = [Nth { client: 5, place: 3 }, Nth { client: 2, place: 7 }];
    let run = |world: &Plan| {
        assert_eq!(again(world, &plan), *world);
        let runs = |nth: &Nth| {
            nth.client < world.clients_in_all() && nth.place <= world.transactions && world.runs(*nth)
        };
        if both.iter().all(runs) { failed() } else { Outcome::default() }
    };
    let (small, _) = shrink(&world, run(&world), run);
    assert_eq!((small.only, small.transactions, small.clients), (both.to_vec(), 7, 3));
    assert_eq!(small.skip.len(), 4);
}

#[test]
fn a_world_that_was_shrunk_fails_in_the_same_way_when_its_command_line_is_run() {
    let line = "sim --protocol occ --scheme rc --workload cycle --fronts 1 --fault crashes_per_s=20";
    let plan = simulation(line).expect("it is possible");
    let mut worlds = (0..100).map(|seed| Plan::drawn(seed, &plan.selection).expect("it is possible"));
    let caught = worlds.find_map(|world| {
        let outcome = run(&world, None);
        (!outcome.violations.is_empty()).then_some((world, outcome))
    });
    let (world, outcome) = caught.expect("read committed is not serializable");
    let kind = outcome.violations[0].kind.clone();
    let (small, smaller) = shrink(&world, outcome, |world| run(world, None));
    assert_ne!(small, world, "it shrinks");
    let outcome = run(&again(&small, &plan), None);
    assert!(outcome.violations.iter().any(|violation| violation.kind == kind), "{:?}", outcome.violations);
    assert_eq!((outcome.hash, outcome.violations), (smaller.hash, smaller.violations));
}
