//! `plimsoll bench --processes`: real processes, real sockets.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn bench(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.arg("bench").args(arguments.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The standard error of a run, for whoever reads why a test has failed.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs two processes for a moment, and checks what every such run has to show. Returns the only
/// run of the document.
fn run(arguments: &str) -> Value {
    let small =
        "--processes 2 --shards 1 --oversubscribe --warmup 100ms --duration 400ms --check --quiet --json";
    let output = bench(&format!("{arguments} {small}")).output().expect("the benchmark starts");
    assert!(output.status.success(), "{arguments} ended with {}: {}", output.status, said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let run = document["runs"][0].clone();
    assert_eq!((&run["config"]["processes"], &run["config"]["shards"]), (&2.into(), &1.into()));
    for figure in ["committed", "distributed_share", "messages_per_transaction", "cpu_seconds"] {
        assert!(run[figure].as_f64().is_some_and(|figure| figure > 0.0), "{arguments}: {figure} of {run}");
    }
    let checks = run["checks"].as_array().expect("checks");
    assert!(checks.len() >= 4 && checks.iter().all(|check| check["ok"] == true), "{arguments}: {checks:?}");
    for name in ["history is serializable", "every outcome is known everywhere", "invariants online"] {
        assert!(checks.iter().any(|check| check["name"] == name), "{arguments}: no {name} in {checks:?}");
    }
    run
}

#[test]
fn a_bank_in_two_processes_is_serializable_under_every_protocol() {
    for protocol in ["occ", "two_pl", "two_pl --lock-policy wound_wait", "client_2pc"] {
        let run = run(&format!("smallbank --protocol {protocol} --accounts 2000 --distributed 20"));
        let links = run["links"].as_array().expect("links");
        let ends: Vec<_> = links.iter().map(|link| (link["from"].as_u64(), link["to"].as_u64())).collect();
        assert_eq!(ends, [(Some(0), Some(1)), (Some(1), Some(0))]);
        assert!(
            links.iter().all(|link| link["bytes"].as_u64() > Some(0) && link["resets"] == 0),
            "{links:?}"
        );
    }
}

#[test]
fn all_six_transactions_use_accounts_of_either_process() {
    for protocol in ["occ", "two_pl", "client_2pc"] {
        let run = run(&format!("smallbank --protocol {protocol} --accounts 2000 --global"));
        assert_eq!((&run["config"]["global"], &run["config"]["distributed"]), (&true.into(), &50.0.into()));
        let transactions = run["transactions"].as_object().expect("transactions");
        let elsewhere = |of: &Value| of["distributed_share"].as_f64().is_some_and(|s| s > 0.0 && s < 1.0);
        assert!(transactions.len() == 6 && transactions.values().all(elsewhere), "{protocol}: {run}");
    }
}

#[test]
fn the_oracle_is_a_process_of_its_own() {
    for scheme in ["gts", "vts"] {
        let run = run(&format!("smallbank --scheme {scheme} --accounts 2000 --distributed 20"));
        assert!(run["oracle_messages"].as_u64() > Some(0), "{run}");
        // Three processes, each of which sends to both others.
        assert_eq!(run["links"].as_array().map(Vec::len), Some(6), "{scheme}");
    }
}

#[test]
fn orders_in_two_processes_are_consistent() {
    for protocol in ["occ", "two_pl", "client_2pc"] {
        let run = run(&format!("tpcc --protocol {protocol} --warehouses 2 --items 200 --customers 30"));
        let rows = |table: &str| run["tables"][table]["rows"].as_u64().expect("rows");
        assert_eq!((rows("warehouse"), rows("stock")), (2, 400), "each process loads its own warehouse");
    }
}

#[test]
fn one_warehouse_can_be_spread_over_two_processes() {
    for protocol in ["occ", "two_pl", "client_2pc", "rococo"] {
        let run =
            run(&format!("tpcc --protocol {protocol} --warehouses 1 --spread --items 200 --customers 30"));
        let rows = |table: &str| run["tables"][table]["rows"].as_u64().expect("rows");
        assert_eq!((rows("warehouse"), rows("district"), rows("stock")), (1, 10, 200));
        assert!(
            run["links"]
                .as_array()
                .is_some_and(|links| links.iter().all(|link| link["bytes"].as_u64() > Some(0)))
        );
    }
}

#[test]
fn one_client_alone_asks_whoever_has_the_other_record() {
    let run = run(
        "micro --coordinators 1 --concurrency 1 --tuples-per-transaction 2 --participants 2 --read-only 0",
    );
    assert_eq!((&run["config"]["coordinators"], &run["distributed_share"]), (&1.into(), &1.0.into()));
    assert_eq!(
        run["aborts"].as_object().map(|aborts| aborts.values().all(|count| count == 0)),
        Some(true),
        "{run}"
    );
}

/// The processes that another has started.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|&process| parent_of(process) == Some(parent)).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not after 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn long_run() -> (Child, Vec<u32>) {
    let run =
        bench("smallbank --processes 2 --shards 1 --oversubscribe --accounts 1000 --duration 1m --quiet")
            .spawn()
            .expect("the benchmark starts");
    let children = until("two processes are started", || {
        let children = children_of(run.id());
        (children.len() == 2).then_some(children)
    });
    std::thread::sleep(Duration::from_millis(300));
    (run, children)
}

fn kill(process: u32) {
    signal("-9", process);
}

fn signal(signal: &str, process: u32) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(status.expect("there is a kill").success());
}

#[test]
fn an_axis_that_is_interrupted_ends_with_the_loads_that_were_measured() {
    let mut run = bench(
        "smallbank --processes 2 --shards 1 --oversubscribe --accounts 1000 --warmup 100ms --duration 2s \
         --load 1,3,50 --json",
    )
    .spawn()
    .expect("the benchmark starts");
    let mut told = BufReader::new(run.stderr.take().expect("it is a pipe")).lines().map_while(Result::ok);
    let first = told.next().unwrap_or_default();
    assert!(first.starts_with("3 loads, 3 runs of 2.1 s: about 6.3 s, and the time"), "{first}");
    assert!(told.any(|line| line.starts_with("load 3, 2 of 3: about ")), "it told no such load");
    signal("-INT", run.id());
    let rest: Vec<String> = told.collect();
    let output = run.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}: {rest:?}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let loads = |of: &str| -> Vec<Value> {
        document[of].as_array().expect("a list").iter().map(|one| one["at_load"].clone()).collect()
    };
    assert_eq!((loads("points"), loads("runs")), (vec!["1".into()], vec!["1".into(), "3".into()]));
    assert_eq!((&document["interrupted"], &document["runs"][1]["interrupted"]), (&true.into(), &true.into()));
    assert_eq!(document["runs"][1]["config"]["concurrency"], 3);
}

#[test]
fn processes_are_told_the_rate_of_a_share() {
    let output = bench(
        "smallbank --processes 2 --shards 1 --oversubscribe --accounts 1000 --warmup 100ms --duration 1s \
         --load 20% --quiet --json",
    )
    .output()
    .expect("the benchmark starts");
    assert!(output.status.success(), "{}: {}", output.status, said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let point = &document["points"][0];
    let (rate, reached) = (point["rate"].as_f64(), point["throughput_tps"]["median"].as_f64());
    let (rate, reached) = (rate.expect("it has one"), reached.expect("it has one"));
    // Without it they would reach five times as much.
    assert!((0.5 * rate..1.5 * rate).contains(&reached), "{reached} of {rate}");
}

#[test]
fn a_process_that_is_killed_ends_the_run_with_its_name_and_leaves_none_behind() {
    let (run, children) = long_run();
    kill(children[1]);
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    let name = format!("plimsoll: process 1 (pid {}) ended before the run did, with signal: 9", children[1]);
    assert!(said.contains(&name), "{said}");
    assert!(children.iter().all(|&child| parent_of(child).is_none()), "{children:?}");
}

#[test]
fn processes_end_when_the_one_that_leads_them_is_killed() {
    let (mut run, children) = long_run();
    kill(run.id());
    run.wait().expect("it ends");
    let command = |child: u32| fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
    until("they have ended", || {
        (children.iter().all(|&child| !command(child).contains("--member"))).then_some(())
    });
}
