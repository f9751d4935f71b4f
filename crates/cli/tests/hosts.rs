//! Nodes on hosts of their own, and what happens to hosts: one is cut off, comes back, and another
//! dies without a word.
//!
//! A host is a network namespace with an address and a cable to a switch. All of it is inside
//! namespaces that this test makes for itself and that end with it, so it needs no rights and
//! leaves nothing behind. Unlike a process that is killed on the machine of its peers, a host that
//! dies or is cut off closes no connection: nobody hears of it but by silence.
//!
//! Clients append to lists and read them all the while. What they saw is judged by a checker that
//! knows nothing of this database.

mod lists;
mod waiting;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Cluster, Database, Options};
use plimsoll_runtime::sim::EPOCH_NS;
use plimsoll_sim::workload::append::{Attempted, End, Operation};

use lists::{Planned, judge};
use waiting::{PATIENCE, until};

const NODES: usize = 3;
const CLIENTS: u32 = 8;
const LISTS: u64 = 24;
/// If it is set, namespaces that cannot be made are a failure.
const REQUIRED: &str = "PLIMSOLL_HOSTS_REQUIRED";
/// Tells the child process what its cluster runs.
const PROTOCOL: &str = "PLIMSOLL_HOSTS_PROTOCOL";

fn address(host: usize) -> String {
    format!("10.0.0.{host}")
}

/// Runs a command that has to succeed.
fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("there is `ip`");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A node's host and the cable to the switch.
struct Host {
    number: usize,
    node: Child,
    /// The node starts when something is written here.
    _go: ChildStdin,
}

impl Host {
    /// A host that is connected, and its node.
    fn start(number: usize, file: &Path) -> Host {
        let mut node = Command::new("unshare")
            .args(["--net", "--", "sh", "-c", "read _ && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_plimsoll")])
            .args([Path::new("start"), file])
            .args(["--node", &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is `unshare`");
        let pid = node.id();
        let network = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net"));
        until("it has a network of its own", || {
            let own = network(&pid.to_string()).ok()?;
            (own != network("self").ok()?).then_some(())
        });
        ip(&format!("link add port{number} type veth peer name eth0 netns {pid}"));
        ip(&format!("link set port{number} master switch up"));
        let inside = |arguments: &str| {
            let mut command = Command::new("nsenter");
            let status = command
                .args([&format!("--net=/proc/{pid}/ns/net"), "ip"])
                .args(arguments.split(' '))
                .status();
            assert!(status.expect("there is `nsenter`").success(), "{arguments}");
        };
        inside(&format!("address add {}/24 dev eth0", address(number)));
        inside("link set eth0 up");
        inside("link set lo up");
        let mut go = node.stdin.take().expect("it was piped");
        go.write_all(b"go\n").expect("it waits");
        Host { number, node, _go: go }
    }

    /// Pulls the cable out, or puts it in again.
    fn plug(&self, state: &str) {
        ip(&format!("link set port{} {state}", self.number));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

#[test]
fn hosts_that_are_cut_off_and_die_break_no_promise() {
    in_namespaces("occ");
}

#[test]
fn hosts_that_are_cut_off_and_die_break_no_promise_under_two_pl() {
    in_namespaces("two_pl");
}

/// Runs the test `inside` in a world of its own, if one can be made.
fn in_namespaces(protocol: &str) {
    let new = ["--user", "--map-root-user", "--net", "--mount", "--"];
    let probe = "ip link add switch type bridge && ip link add port type veth peer name eth0";
    let possible = Command::new("unshare").args(new).args(["sh", "-c", probe]).output();
    if !possible.as_ref().is_ok_and(|output| output.status.success()) {
        let why = format!("this test needs `unshare` and `ip`, and namespaces of its own: {possible:?}");
        assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {why}");
        eprintln!("NOT RUN: {why}");
        return;
    }
    let inside = std::env::current_exe().expect("this test has a file");
    let status = Command::new("unshare")
        .args(new)
        .arg(inside)
        .args(["--exact", "inside", "--ignored", "--nocapture"])
        .env(PROTOCOL, protocol)
        .status()
        .expect("it was there just now");
    assert!(status.success(), "see above");
}

fn file() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("plimsoll-hosts-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("there is room");
    let protocol = std::env::var(PROTOCOL).expect("it is set by whoever starts this test");
    let mut text =
        format!("cluster = \"hosts\"\nprotocol = \"{protocol}\"\nclients = 16\nsecret_file = \"secret\"\n");
    for id in 1..=NODES {
        let host = address(id);
        text += &format!("[[node]]\nid = {id}\naddress = \"{host}:7400\"\nhttp = \"{host}:8400\"\n");
    }
    text += "[[table]]\nname = \"list\"\nindex = \"hash\"\n";
    std::fs::write(directory.join("secret"), "correct horse battery\n").expect("there is room");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(directory.join("secret"), closed).expect("it is ours");
    std::fs::write(directory.join("cluster.toml"), text).expect("there is room");
    directory.join("cluster.toml")
}

/// What the tests above run in worlds of their own.
#[test]
#[ignore = "a child process: `hosts_that_are_cut_off_and_die_break_no_promise` starts it in namespaces of its own"]
fn inside() {
    ip("link set lo up");
    ip("link add switch type bridge");
    ip("address add 10.0.0.254/24 dev switch");
    ip("link set switch up");
    let file = file();
    let mut hosts: Vec<Host> = (1..=NODES).map(|number| Host::start(number, &file)).collect();
    let cluster = Cluster::read(&file).expect("it was written just now");
    let connect = |patience| Database::connect(&cluster, Options { patience, ..Options::default() });
    drop(connect(PATIENCE).expect("all nodes run"));

    // By list: how many appends have committed.
    let appended: Vec<AtomicU64> = (0..LISTS).map(|_| AtomicU64::new(0)).collect();
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let now = || EPOCH_NS + begun.elapsed().as_nanos() as u64;
    let counts = || appended.iter().map(|count| count.load(Relaxed)).collect::<Vec<u64>>();
    let in_use = |since: &[u64]| counts().iter().zip(since).filter(|(now, then)| now > then).count() as u64;
    let all_in_use = |what: &str| {
        let since = counts();
        until(what, || (in_use(&since) == LISTS).then_some(()));
    };
    // What was under way is over after the first of these times.
    let some_in_use = |what: &str| {
        thread::sleep(Duration::from_secs(4));
        let since = counts();
        thread::sleep(Duration::from_secs(4));
        let lists = in_use(&since);
        assert!(0 < lists && lists < LISTS, "{lists} lists of {LISTS} are appended to {what}");
    };
    let attempts: Vec<Attempted> = thread::scope(|scope| {
        let client = |session| {
            let db = connect(Duration::from_secs(2)).expect("all nodes run");
            let table = db.table("list").expect("it is in the file");
            let mut attempts = Vec::new();
            for round in 0.. {
                if over.load(Relaxed) {
                    break;
                }
                let attempted = Planned::new(session, round, 0..LISTS).attempt(&db, table, now);
                for operation in attempted.operations.iter().filter(|_| attempted.how == End::Committed) {
                    if let Operation::Append(list, _) = operation {
                        appended[*list as usize].fetch_add(1, Relaxed);
                    }
                }
                attempts.push(attempted);
                thread::sleep(Duration::from_millis(2));
            }
            attempts
        };
        let clients: Vec<_> = (0..CLIENTS).map(|session| scope.spawn(move || client(session))).collect();
        // Whatever fails here, the clients have to be told that it is over.
        let story = catch_unwind(AssertUnwindSafe(|| {
            all_in_use("every list is appended to");
            hosts[1].plug("down");
            some_in_use("while a host of three is cut off");
            hosts[1].plug("up");
            all_in_use("every list is appended to after the cut");
            // No farewell: the namespace goes with its only process, and with it the cable.
            drop(hosts.remove(2));
            some_in_use("with a host of three dead");
        }));
        over.store(true, Relaxed);
        let attempts =
            clients.into_iter().flat_map(|client| client.join().expect("no client panics")).collect();
        if let Err(panic) = story {
            resume_unwind(panic);
        }
        attempts
    });

    judge(&attempts);
    drop(hosts);
    let _ = std::fs::remove_dir_all(file.parent().expect("it is in a directory"));
}
