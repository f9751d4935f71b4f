//! What the program says of what was not done, or does not hold.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

mod waiting;

fn plimsoll(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(words.split(' '));
    command
}

fn run(words: &str) -> Output {
    plimsoll(words).output().expect("the binary is there")
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let short = "--duration 100ms --warmup 0s --quiet";
    for words in [
        &format!("bench smallbank --accounts 100 {short}"),
        &format!("bench smallbank --accounts 100 {short} --json"),
        "bench smallbank --tables",
        "bench tpcc --explain-pieces",
        "bench net --duration 20ms --runs 1 --in-flight 1 --json",
        "sim --seed 1",
        "sim --seed 1 --json",
        "completions bash",
        "man",
    ] {
        let mut command = plimsoll(words);
        command.stdout(Stdio::from(full.try_clone().expect("a descriptor")));
        let output = command.stderr(Stdio::piped()).output().expect("the binary is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains("plimsoll: cannot write to standard output"), "{words}: {said}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = plimsoll("bench smallbank --tables").stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_sweep_that_was_interrupted_says_so_and_how_far_it_came() {
    let mut command = plimsoll("sim --seeds 0..1000000 --workload random --threads 1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
    waiting::until("it ends", || child.try_wait().expect("it is ours"));
    let output = child.wait_with_output().expect("it has ended");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("/1,000,000 worlds") && said.contains("so far: interrupted"), "{said}");
}

#[test]
fn a_world_of_sql_sessions_is_repeated_by_the_command_that_it_prints() {
    let world = |words: &str| {
        let output = run(&format!("{words} --json"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        document["worlds"][0].clone()
    };
    let first = world("sim --workload sql --seed 3 --shards 2 --clients 2 --transactions 4");
    assert!(first["transactions"].as_u64() > Some(0) && first["workload"] == "sql", "{first}");
    let again = first["again"].as_str().and_then(|again| again.strip_prefix("plimsoll "));
    assert_eq!(world(again.expect("a command")), first);
}

#[test]
fn no_world_has_sql_sessions_where_there_is_no_sql() {
    let output = run("sim --workload sql --seed 3 --scheme gts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("choose occ/dst or two_pl/dst"), "{said}");
}

#[test]
fn stale_snapshots_are_judged_by_what_they_promise() {
    let output =
        run("bench smallbank --accounts 1000 --staleness 1ms --duration 300ms --warmup 0s --check --json");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
fn what_does_not_hold_has_no_check_mark_also_where_it_need_not() {
    let words =
        "bench micro --tuples 20 --distributed 50 --scheme rc --duration 300ms --warmup 0s --check --quiet";
    let output = run(&format!("{words} --json"));
    assert!(output.status.success(), "rc promises nothing");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let checks = document["runs"][0]["checks"].as_array().expect("checks").clone();
    let history =
        checks.iter().find(|check| check["name"] == "history is serializable").expect("it was checked");
    assert_eq!((&history["ok"], &history["allowed"]), (&Value::Bool(false), &Value::Bool(true)), "{history}");
    let text = String::from_utf8(run(words).stdout).expect("UTF-8");
    let line = text.lines().find(|line| line.contains("history is serializable")).expect("it is told");
    assert!(line.contains("– not: history is serializable") && !line.contains('✓'), "{text}");
    assert!(text.contains("as rc allows"), "{text}");
}
