//! `plimsoll dike` as its users meet it: the program, a real PostgreSQL, and what goes wrong in
//! between.

#[path = "../../dike/tests/common/mod.rs"]
mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::Server;
use plimsoll_dike::chaos::journal::Phase;
use plimsoll_dike::metrics::{Document, Run};
use tempfile::TempDir;

/// A database with one loaded warehouse, and a directory to work in.
struct Scene {
    server: Server,
    folder: TempDir,
}

impl Scene {
    /// * `more`: what the configuration has besides the target and the data.
    fn set(more: impl FnOnce(&Server) -> String) -> Scene {
        let (server, folder) = (Server::postgres(), tempfile::tempdir().expect("a directory"));
        let text = format!(
            "[target]\nendpoints = [\"127.0.0.1:{}\"]\ndatabase = \"postgres\"\nconnect_timeout_ms = 500\n\
             [data]\nwarehouses = 1\nitems = 100\ncustomers_per_district = 30\n\
             [retry]\nreconnect_max_ms = 100.0\n{}",
            server.port,
            more(&server)
        );
        let scene = Scene { server, folder };
        fs::write(scene.path("dike.toml"), text).expect("written");
        let loaded = scene.dike("load").output().expect("it starts");
        assert_eq!(loaded.status.code(), Some(0), "{}", said(&loaded));
        assert!(said(&loaded).contains("loaded 1 warehouses"), "{}", said(&loaded));
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these words, its configuration, and a process group of its own, as a shell
    /// has it.
    fn dike(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.arg("dike").args(words.split_whitespace()).args(["--config", "dike.toml"]);
        command.current_dir(&self.folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn begin(&self, words: &str) -> Child {
        self.dike(words).spawn().expect("it starts")
    }

    /// The file into which a run has written its results without being told where.
    fn unnamed(&self) -> Option<PathBuf> {
        let names = fs::read_dir(&self.folder).expect("a directory").flatten().map(|entry| entry.path());
        let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let mut results = names.filter(|path| {
            name(path).is_some_and(|name| name.starts_with("dike-") && name.ends_with(".json"))
        });
        results.next()
    }
}

fn runs(file: &Path) -> Vec<Run> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Document::from_json(&text).expect("a document").runs
}

/// Everything that the program has said.
fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|of| String::from_utf8_lossy(of).into_owned());
    format!("{out}---\n{err}")
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "this never happens: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// State, parent and group of a process.
fn look(pid: u32) -> Option<(String, u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn children_of(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| look(pid).is_some_and(|(_, of, _)| of == parent)).collect()
}

/// Sends a signal; a negative number is a group.
fn kill(signal: &str, pid: i64) {
    let sent = Command::new("kill").args([signal, "--", &pid.to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

#[test]
fn ctrl_c_in_the_middle_of_a_fault_undoes_it_and_leaves_the_results() {
    let scene = Scene::set(|server| {
        let pid_file = server.as_machine("db").pid_file.expect("it has one");
        format!(
            "[run]\nterminals = 2\nwarmup_s = 0\nduration_s = 60\n\
             [[machines.processes]]\nname = \"db\"\npid_file = {pid_file:?}\n\
             [[chaos.faults]]\nat_s = 1\nfor_s = 50\nfault = \"pause\"\nwhere = [\"db\"]\n\
             [[chaos.faults]]\nat_s = 1\nfor_s = 50\nfault = \"cpu\"\nload_percent = 5\nwhere = [\"localhost\"]\n"
        )
    });
    let run = scene.begin("run --json run.json --report run.html --check");
    let server = scene.server.pid().expect("it runs");
    let stands_still = || look(server).is_some_and(|(state, ..)| state == "T");
    let busy = |guard: &u32| {
        let words = fs::read(format!("/proc/{guard}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("dike\0stress")
    };
    eventually("the server stands still", stands_still);
    eventually("a worker loads this machine", || children_of(run.id()).iter().any(busy));
    let guards = children_of(run.id());
    std::thread::sleep(Duration::from_secs(1));
    // What a terminal does.
    kill("-INT", -i64::from(run.id()));
    let output = run.wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!stands_still(), "the server goes on");
    assert!(guards.len() >= 2 && guards.iter().all(|guard| look(*guard).is_none()), "{guards:?} are gone");
    for expected in ["ending with the results so far", "[pause db]", "was ended early"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let last = String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_owned);
    assert_eq!(
        last.as_deref(),
        Some("! postgresql, repetition 1 was ended early: these are the results so far")
    );

    let [run] = &runs(&scene.path("run.json"))[..] else { panic!("one run") };
    assert!(run.about.interrupted && (1..30).contains(&run.seconds), "{}", run.seconds);
    let undone = run.journal.entries.iter().filter(|entry| entry.phase == Phase::Undone);
    let mut undone: Vec<&str> = undone.map(|entry| entry.fault.as_str()).collect();
    undone.sort_unstable();
    assert_eq!(undone, ["cpu", "pause"], "{:?}", run.journal);
    assert!(run.faults.iter().all(|fault| fault.to_seconds.is_some()), "{:?}", run.faults);
    assert!(run.checks.iter().all(|check| check.ok), "{:?}", run.checks);
    let page = fs::read_to_string(scene.path("run.html")).expect("the page");
    assert!(page.contains("class=\"fault\"") && page.contains("was ended early"));
}

#[test]
fn a_database_that_dies_in_mid_run_is_counted_and_said_and_the_run_goes_on() {
    let mut scene = Scene::set(|_| "[run]\nterminals = 2\nwarmup_s = 0\nduration_s = 6\n".to_owned());
    let run = scene.begin("run");
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(1500));
    scene.server.kill();
    std::thread::sleep(Duration::from_millis(1500));
    scene.server.start_again();
    let output = run.wait_with_output().expect("it ends");
    let words = said(&output);
    assert!(begun.elapsed() > Duration::from_secs(6), "the run goes on to its end");
    assert_eq!(output.status.code(), Some(0), "{words}");
    for expected in ["outage ", "errors ", "unreachable ", "the results are in dike-2"] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let file = scene.unnamed().expect("results on disk");
    let [run] = &runs(&file)[..] else { panic!("one run") };
    let summary = run.summary();
    assert!(summary.errors > 0 && summary.outages.len() == 1, "{:?}", summary.outages);
    assert!(run.committed_by_second().last().is_some_and(|&commits| commits > 0), "it has come back");
    assert!(run.offline_terminals.iter().any(|&offline| offline > 0.5), "{:?}", run.offline_terminals);
    fs::remove_file(file).expect("removed");

    // This time it stays dead, and there is nobody to check the conditions of.
    let run = scene.begin("run --check --set run.duration_s=3 --set target.connect_timeout_ms=300");
    std::thread::sleep(Duration::from_millis(1500));
    scene.server.kill();
    let output = run.wait_with_output().expect("it ends");
    let words = said(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    for expected in ["the database did not come back", "that consistency was checked does not hold"] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    assert_eq!(runs(&scene.unnamed().expect("results on disk")).len(), 1);

    let output = scene.dike("run").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("(unreachable)"), "{}", said(&output));
}

#[test]
fn repetitions_are_on_disk_when_they_end_and_bad_input_is_a_sentence() {
    let scene =
        Scene::set(|_| "[run]\nterminals = 2\nwarmup_s = 0\nduration_s = 1\nrepeats = 100\n".to_owned());
    let mut run = scene.begin("run --quiet");
    eventually("the first repetition is on disk", || scene.unnamed().is_some());
    run.kill().expect("killed");
    run.wait().expect("it ends");
    let file = scene.unnamed().expect("results on disk");
    assert!(!runs(&file).is_empty() && runs(&file).iter().all(|run| run.throughput_tps() > 0.0));

    let refused = |words: &str, sentence: &str| {
        let output = scene.dike(words).output().expect("it starts");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(sentence), "{words}: {said}");
    };
    refused("run --set run.terminal=4", "unknown field `terminal`");
    refused("run --set run.terminals=0", "run.terminals is 0: it has to be 1 to 100000");
    refused("run --set mix.payment=44", "the weights in mix sum to 101");
    refused("run --set data.warehouses=2", "the database was loaded with data.warehouses = 1, not 2");
    refused("run --set target.endpoints=['127.0.0.1:1']", "127.0.0.1:1: ");
    refused(
        "run --json /nowhere/run.json",
        "cannot write /nowhere/run.json: the directory /nowhere does not exist",
    );
    let older = fs::read_to_string(&file).expect("a document").replacen("\"version\":1", "\"version\":0", 1);
    fs::write(scene.path("older.json"), older).expect("written");
    let mut report = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    let output = report.args(["dike", "report", "older.json"]).current_dir(&scene.folder).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("older.json: ") && said(&output).contains("older program"),
        "{}",
        said(&output)
    );
}
