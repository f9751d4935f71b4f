//! A cluster as its users have it: nodes are processes, clients come from outside, and somebody pulls a plug.

mod waiting;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{
    Abort, Cluster, Database, Error, Freshness, Key, OpenError, Options, TokenError, Txn, VALUE_MAX,
    WRITTEN_MAX_CLUSTER,
};
use plimsoll_runtime::real::FRAME_MAX;
use serde_json::Value;

use waiting::{PATIENCE, until};

/// A directory with the file of a cluster, and the nodes that run.
struct Scene {
    directory: PathBuf,
    http: Vec<u16>,
    nodes: Vec<Option<Child>>,
}

/// Whether the scheme that these keys name has an oracle.
fn has_oracle(keys: &str) -> bool {
    ["gts", "vts"].iter().any(|scheme| keys.contains(scheme))
}

/// Ports that nobody has at this moment.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

impl Scene {
    /// Nodes 1, 2, ... of so many shards; none runs yet.
    fn new(shards: &[usize]) -> Scene {
        Scene::under("", shards)
    }

    /// The same with more at the beginning of the file.
    fn under(keys: &str, shards: &[usize]) -> Scene {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("plimsoll-cluster-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let ports = free_ports(2 * shards.len() + 2);
        let mut text = format!("{keys}cluster = \"bank\"\nclients = 4\nsecret_file = \"secret\"\n");
        for (place, shards) in shards.iter().enumerate() {
            let (port, http) = (ports[2 * place], ports[2 * place + 1]);
            text += &format!(
                "[[node]]\nid = {}\naddress = \"127.0.0.1:{port}\"\nhttp = \"127.0.0.1:{http}\"\nshards = {shards}\n",
                place + 1
            );
        }
        if has_oracle(keys) {
            let (port, http) = (ports[2 * shards.len()], ports[2 * shards.len() + 1]);
            text += &format!("[oracle]\naddress = \"127.0.0.1:{port}\"\nhttp = \"127.0.0.1:{http}\"\n");
        }
        text += "[[table]]\nname = \"account\"\nindex = \"hash\"\n[[table]]\nname = \"entry\"\n";
        std::fs::write(directory.join("cluster.toml"), text).unwrap();
        std::fs::write(directory.join("secret"), "correct horse battery\n").unwrap();
        let http = ports.chunks(2).map(|pair| pair[1]).collect();
        Scene { directory, http, nodes: (0..=shards.len()).map(|_| None).collect() }
    }

    /// Two nodes and an oracle that is node 3 here, all of them running.
    fn with_oracle(scheme: &str, keys: &str) -> Scene {
        let mut scene = Scene::under(&format!("scheme = \"{scheme}\"\n{keys}"), &[1, 1]);
        (1..=3).for_each(|id| scene.start(id));
        scene
    }

    fn file(&self) -> PathBuf {
        self.directory.join("cluster.toml")
    }

    fn start(&mut self, id: usize) {
        let number = id.to_string();
        let who = if id == self.nodes.len() { ["--role", "oracle"] } else { ["--node", &number] };
        let child = plimsoll(&["start", path(&self.file()), who[0], who[1]])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.nodes[id - 1] = Some(child);
    }

    /// Starts a node, and keeps what it says.
    fn start_logged(&mut self, id: usize) -> std::process::ChildStderr {
        let mut command = plimsoll(&["start", path(&self.file()), "--node", &id.to_string()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = child.stderr.take().unwrap();
        self.nodes[id - 1] = Some(child);
        log
    }

    /// Starts a node that logs JSON, into a file.
    fn start_with_json_log(&mut self, id: usize) -> PathBuf {
        let log = self.directory.join(format!("{id}.log"));
        let number = id.to_string();
        let mut command = plimsoll(&["start", path(&self.file()), "--node", &number, "--log", "json"]);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        self.nodes[id - 1] = Some(command.spawn().unwrap());
        log
    }

    fn connect(&self) -> Database {
        let cluster = Cluster::read(&self.file()).unwrap();
        Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap()
    }

    /// What `plimsoll status --json` says, and whether all is well.
    fn status(&self) -> (Value, bool) {
        let output = plimsoll(&["status", path(&self.file()), "--json"]).output().unwrap();
        (serde_json::from_slice(&output.stdout).expect("JSON and nothing else"), output.status.success())
    }

    /// What a node answers to a GET.
    fn get(&self, id: usize, path: &str) -> (u16, String) {
        let url = format!("http://127.0.0.1:{}{path}", self.http[id - 1]);
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build()
            .into();
        let mut answer = agent.get(&url).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    fn signal(&mut self, id: usize, signal: &str) {
        let child = self.nodes[id - 1].as_mut().expect("the node runs");
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

fn plimsoll(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.args(arguments);
    command
}

fn account(number: u64) -> Key {
    Key::of_u64(number)
}

fn balance(value: Option<Vec<u8>>) -> u64 {
    u64::from_be_bytes(value.expect("accounts stay").try_into().expect("a number"))
}

/// Moves money between accounts that are on different shards, again and again, and looks at all of them.
fn transfers(db: &Database, client: u64, accounts: u64, rounds: u64) {
    let table = db.table("account").unwrap();
    for round in 0..rounds {
        let (from, to) = ((client + round) % accounts, (client + 3 * round + 1) % accounts);
        if from == to {
            continue;
        }
        db.transact(|txn| -> Result<(), Error> {
            let had = balance(txn.get(table, &account(from))?);
            let other = balance(txn.get(table, &account(to))?);
            txn.put(table, &account(from), &(had - 1).to_be_bytes())?;
            txn.put(table, &account(to), &(other + 1).to_be_bytes())
        })
        .unwrap();
        assert_eq!(total(db, accounts), accounts * 1000, "in every snapshot");
    }
}

fn total(db: &Database, accounts: u64) -> u64 {
    let table = db.table("account").unwrap();
    let keys: Vec<Key> = (0..accounts).map(account).collect();
    match db.snapshot(Freshness::Newest) {
        Ok(snapshot) => snapshot.get_many(table, &keys).unwrap().into_iter().map(balance).sum(),
        Err(Error::NoSnapshots { .. }) => {
            let read = |txn: &mut Txn<'_>| -> Result<u64, Error> {
                keys.iter().try_fold(0, |sum, key| Ok(sum + balance(txn.get(table, key)?)))
            };
            db.transact(read).unwrap()
        }
        Err(error) => panic!("{error}"),
    }
}

/// Opens accounts with 1,000 each.
fn fill(db: &Database, accounts: u64) {
    let table = db.table("account").unwrap();
    db.transact(|txn| -> Result<(), Error> {
        (0..accounts).try_for_each(|number| txn.insert(table, &account(number), &1000u64.to_be_bytes()))
    })
    .unwrap();
}

#[test]
fn clients_transact_against_nodes_that_are_other_processes() {
    const ACCOUNTS: u64 = 12;
    let mut scene = Scene::new(&[1, 2]);
    scene.start(1);
    scene.start(2);
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    thread::scope(|scope| {
        for client in 0..3 {
            let scene = &scene;
            scope.spawn(move || transfers(&scene.connect(), client, ACCOUNTS, 60));
        }
    });
    assert_eq!(total(&db, ACCOUNTS), ACCOUNTS * 1000);

    // Scans, over all shards and in order; what is there already; what one client wrote another sees.
    let entries = db.table("entry").unwrap();
    db.transact(|txn| -> Result<(), Error> {
        (0..50).try_for_each(|number| txn.insert(entries, &Key::of_u64(number), b"entry"))
    })
    .unwrap();
    let other = scene.connect();
    let scanned: Vec<Key> = other
        .snapshot(Freshness::Newest)
        .unwrap()
        .scan(entries, ..)
        .unwrap()
        .map(|row| row.unwrap().0)
        .collect();
    assert_eq!(scanned, (0..50).map(Key::of_u64).collect::<Vec<_>>());
    let twice = other.transact(|txn| txn.insert(entries, &Key::of_u64(7), b"again"));
    assert!(matches!(twice, Err(Error::Exists { .. })), "{twice:?}");

    let (status, well) = until("the cluster is ready", || Some(scene.status()).filter(|(_, well)| *well));
    assert!(well);
    let rows = |node: usize| status["nodes"][node]["state"]["tables"].as_array().unwrap().clone();
    let count = |node: usize| rows(node).iter().map(|table| table["rows"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(count(0) + count(1), ACCOUNTS + 50, "{status}");
    assert!(count(0) > 0 && count(1) > 0, "both hold some: {status}");
    assert_eq!(scene.get(1, "/ready").0, 200);
    assert_eq!(scene.get(1, "/health"), (200, "the shards make passes\n".to_owned()));
    let (code, metrics) = scene.get(2, "/metrics");
    assert_eq!(code, 200);
    assert!(metrics.contains("plimsoll_table_rows{table=\"account\"}"), "{metrics}");
    assert!(metrics.contains("plimsoll_peer_connected{peer=\"1\"} 2\n"), "{metrics}");

    // Who leads which shard, and what the clocks say.
    let leaders = |status: &Value| -> Vec<Option<u64>> {
        status["shards"].as_array().unwrap().iter().map(|shard| shard["leader"].as_u64()).collect()
    };
    assert_eq!(leaders(&status), [Some(1), Some(2), Some(2)], "{status}");
    let slots = status["shards"].as_array().unwrap().iter().map(|shard| shard["slots"].as_u64().unwrap());
    assert_eq!(slots.sum::<u64>(), 4096, "{status}");
    let ahead = until("the clocks have been compared", || {
        let (status, _) = scene.status();
        assert_eq!(status["clock_reference"], 1);
        status["nodes"][1]["clock_ahead_seconds"]
            .as_f64()
            .zip(status["nodes"][1]["clock_error_seconds"].as_f64())
    });
    assert!(ahead.0.abs() <= ahead.1 + 0.5, "they have one clock: {ahead:?}");
    let shown = plimsoll(&["status", path(&scene.file())]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let words: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    for row in [["0", "node", "1"], ["1", "node", "2"], ["2", "node", "2"]] {
        assert!(words.iter().any(|words| words[..] == row), "{row:?}: {shown}");
    }
    assert!(shown.contains("clocks are compared with that of node 1"), "{shown}");

    // All is unlocked, and nobody remembers a vote.
    until("votes are forgotten", || {
        let (status, _) = scene.status();
        let shards = |node: usize| status["nodes"][node]["state"]["shards"].as_array().unwrap().clone();
        let left = |shard: &Value| shard["locks"].as_u64().unwrap() + shard["votes"].as_u64().unwrap();
        (0..2).all(|node| shards(node).iter().map(left).sum::<u64>() == 0).then_some(())
    });

    // SIGTERM is a way to stop.
    scene.signal(1, "-TERM");
    let status = until("the node stops", || scene.nodes[0].as_mut().unwrap().try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let (status, well) = scene.status();
    assert!(!well, "a node is down");
    assert_eq!(leaders(&status), [None, Some(2), Some(2)], "{status}");
    until("the other has noticed", || (scene.get(2, "/ready").0 == 503).then_some(()));
    let alone = scene.connect_within(Duration::from_secs(2));
    assert!(
        matches!(&alone, Err(OpenError::Unreachable { nodes, .. }) if nodes == &[1]),
        "{:?}",
        alone.err()
    );
}

impl Scene {
    fn connect_within(&self, patience: Duration) -> Result<Database, OpenError> {
        let cluster = Cluster::read(&self.file()).unwrap();
        Database::connect(&cluster, Options { patience, ..Options::default() })
    }
}

/// The sum of a metric over a node's shards, of those samples that have these labels.
fn metric(text: &str, name: &str, labels: &str) -> u64 {
    let of = |line: &str| {
        let (sample, value) = line.rsplit_once(' ')?;
        let rest = sample.strip_prefix(name)?.strip_prefix('{')?;
        rest.contains(labels).then(|| value.parse::<u64>().expect("a whole number"))
    };
    text.lines().filter_map(of).sum()
}

#[test]
fn clients_count_how_transactions_end_and_nodes_count_votes_installs_and_refusals() {
    const ACCOUNTS: u64 = 12;
    const ROUNDS: u64 = 10;
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let (db, rival) = (scene.connect(), scene.connect());
    let table = db.table("account").unwrap();
    fill(&db, ACCOUNTS);
    // Each writes on both nodes.
    for _ in 0..ROUNDS {
        let written: Result<(), Error> = db.transact(|txn| {
            (0..ACCOUNTS).try_for_each(|number| txn.put(table, &account(number), &1000u64.to_be_bytes()))
        });
        written.unwrap();
    }
    assert_eq!(total(&db, ACCOUNTS), ACCOUNTS * 1000);
    // Another overwrites what this one has read.
    let mut attempts = 0;
    let met: Result<(), Error> = db.transact(|txn| {
        attempts += 1;
        let had = balance(txn.get(table, &account(0))?);
        if attempts == 1 {
            rival.transact(|txn| txn.put(table, &account(0), &1u64.to_be_bytes()))?;
        }
        txn.put(table, &account(0), &(had + 1).to_be_bytes())
    });
    met.unwrap();
    let given_up = db.transact(|txn| txn.insert(table, &account(0), b"there is one"));
    assert!(matches!(given_up, Err(Error::Exists { .. })), "{given_up:?}");

    let stats = db.stats();
    let aborts = |stats: &plimsoll::Stats| Abort::ALL.map(|reason| stats.aborts(reason)).iter().sum::<u64>();
    assert_eq!((stats.read_write.committed, stats.read_write.aborted), (ROUNDS + 2, 0), "{stats:?}");
    // A snapshot was taken, and an insert has found that there was nothing for it to do.
    assert_eq!((stats.read_only.committed, stats.read_only.aborted), (1, 1), "{stats:?}");
    assert!(attempts >= 2 && aborts(&stats) >= attempts && stats.aborts(Abort::User) == 1, "{stats:?}");
    assert_eq!((rival.stats().read_write.committed, rival.stats().read_only.committed), (1, 0));
    let line = format!(
        "plimsoll_transactions_total{{type=\"read_write\",outcome=\"committed\"}} {}\n",
        stats.read_write.committed
    );
    assert!(stats.prometheus().contains(&line), "{}", stats.prometheus());

    // The nodes have seen parts of them; the last outcomes are on their way.
    let metrics = |id: usize| scene.get(id, "/metrics").1;
    for id in 1..=2 {
        until("all outcomes are known", || {
            let text = metrics(id);
            let (votes, outcomes) = ("plimsoll_votes_total", "plimsoll_outcomes_total");
            let all = metric(&text, votes, "vote=\"record\"") >= ROUNDS
                && metric(&text, outcomes, "outcome=\"committed\"") >= ROUNDS
                && metric(&text, "plimsoll_installs_total", "") >= ROUNDS;
            all.then_some(())
        });
        let text = metrics(id);
        assert!(metric(&text, "plimsoll_snapshot_reads_total", "") >= 1, "{text}");
        assert!(text.contains("plimsoll_outcomes_asked_total{shard="), "{text}");
    }
    let refused: u64 = (1..=2).map(|id| metric(&metrics(id), "plimsoll_aborts_total", "reason=")).sum();
    assert!(refused >= 1, "{}{}", metrics(1), metrics(2));
}

#[test]
fn a_client_that_is_given_a_token_sees_what_another_has_written() {
    let mut scene = Scene::under("max_staleness_ms = 120000\n", &[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let (first, second) = (scene.connect(), scene.connect());
    fill(&first, 4);
    let table = first.table("account").unwrap();
    let write = |db: &Database, amount: u64| {
        db.transact(|txn| txn.put(table, &account(1), &amount.to_be_bytes())).unwrap();
        db.token().unwrap().to_string()
    };
    let long_ago = Freshness::Stale(Duration::from_secs(60));
    let stale = |db: &Database| db.snapshot(long_ago).unwrap().get(table, &account(1)).unwrap();
    let token = write(&first, 2000);
    assert_eq!(stale(&second.session()), None, "a minute ago there was nothing");
    let session = second.session_with(token.parse().unwrap()).unwrap();
    assert_eq!(balance(stale(&session)), 2000);
    let seen: Result<u64, Error> = session.transact(|txn| Ok(balance(txn.get(table, &account(1))?)));
    assert_eq!(seen, Ok(2000));
    // And back.
    let token = write(&session, 3000);
    assert_eq!(balance(stale(&first)), 2000, "what its own session has seen");
    assert_eq!(balance(stale(&first.session_with(token.parse().unwrap()).unwrap())), 3000);
    // What was read only is handed on as well.
    let reader = second.session();
    assert_eq!(balance(reader.snapshot(Freshness::Newest).unwrap().get(table, &account(1)).unwrap()), 3000);
    let third = scene.connect();
    let token = reader.token().unwrap().to_string();
    assert_eq!(balance(stale(&third.session_with(token.parse().unwrap()).unwrap())), 3000);
    let invented = third.session_with("v1-ffffffffffffffff".parse().unwrap()).err();
    assert!(matches!(invented, Some(TokenError::Ahead(_))), "{invented:?}");
}

/// Starts the other half of a test in a process of its own, and kills it while it transacts.
fn kill_a_client(scene: &Scene) {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env("PLIMSOLL_TEST_CLUSTER", scene.file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    let mut stdout = victim.stdout.take().unwrap();
    while !String::from_utf8_lossy(&said).contains("transacting") {
        let mut some = [0; 64];
        let read = stdout.read(&mut some).unwrap();
        assert!(read > 0, "the victim lives: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&some[..read]);
    }
    thread::sleep(Duration::from_millis(200));
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[test]
fn a_client_that_dies_leaves_no_lock_and_its_place_to_others() {
    for protocol in ["occ", "two_pl", "client_2pc"] {
        a_client_dies_under(protocol);
    }
}

fn a_client_dies_under(protocol: &str) {
    let mut scene = Scene::under(&format!("protocol = \"{protocol}\"\n"), &[1, 1]);
    scene.start(1);
    scene.start(2);
    let db = scene.connect();
    let table = db.table("account").unwrap();
    kill_a_client(&scene);

    // What it had locked is free again, and what it wrote is there on both sides or on none.
    until("the records can be written", || {
        let written = db.transact(|txn| -> Result<(u64, u64), Error> {
            let both = (balance(txn.get(table, &account(0))?), balance(txn.get(table, &account(1))?));
            txn.put(table, &account(0), &both.0.to_be_bytes())?;
            txn.put(table, &account(1), &both.1.to_be_bytes())?;
            Ok(both)
        });
        let (one, other) = written.unwrap();
        assert_eq!(one, other, "{protocol}: all or nothing");
        assert!(one > 0, "{protocol}: it has written");
        Some(())
    });
    // There are four places; one is taken. All others can be taken, that of the dead one included.
    let others: Vec<Database> = (0..3).map(|_| scene.connect()).collect();
    let full = scene.connect_within(PATIENCE);
    assert!(matches!(full, Err(OpenError::Full { clients: 4 })), "{protocol}: {:?}", full.err());
    drop(others);
    until("a place is free again", || scene.connect_within(Duration::from_secs(1)).ok());
}

#[test]
fn slots_move_between_nodes_while_clients_transact() {
    const ACCOUNTS: u64 = 12;
    let mut scene = Scene::new(&[1, 2]);
    (1..=2).for_each(|id| scene.start(id));
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    let file = scene.file();
    let moved = |slots: &str, to: &str| {
        let arguments = ["move", path(&file), "--slots", slots, "--to", to, "--json"];
        let Output { status, stdout, stderr } = plimsoll(&arguments).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        serde_json::from_slice::<Value>(&stdout).unwrap()["moved"].as_u64().unwrap()
    };
    thread::scope(|scope| {
        for client in 0..2 {
            let scene = &scene;
            scope.spawn(move || transfers(&scene.connect(), client, ACCOUNTS, 150));
        }
        assert_eq!(moved("0..2048", "0"), 2048);
        assert_eq!(moved("1000..3000", "2"), 2000);
        assert_eq!(moved("0..4096", "1"), 4096);
    });
    // One that has seen it all, and one whose map is of the first day.
    assert_eq!([&db, &scene.connect()].map(|db| total(db, ACCOUNTS)), [ACCOUNTS * 1000; 2]);
    let (status, _) = scene.status();
    let shards = |node: usize| status["nodes"][node]["state"]["shards"].as_array().unwrap().clone();
    let slots: Vec<u64> =
        [0, 1].into_iter().flat_map(shards).map(|shard| shard["slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [0, 4096, 0], "{status}");
    let rows = status["nodes"][0]["state"]["tables"][0]["rows"].as_u64();
    assert_eq!(rows, Some(0), "nothing was left behind");
    assert!(shards(1)[0]["map_version"].as_u64() >= Some(4096), "{status}");

    for (slots, to, said) in [("5..5", "0", "slots are numbered"), ("0..9", "3", "there is no such shard")] {
        assert!(refused(&["move", path(&file), "--slots", slots, "--to", to]).contains(said));
    }
}

#[test]
fn a_reader_gives_up_when_its_patience_is_over_whoever_it_waits_for() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let db = scene.connect();
    fill(&db, 12);
    let table = db.table("account").unwrap();
    let keys: Vec<Key> = (0..12).map(account).collect();
    let impatient = until("it is connected", || scene.connect_within(Duration::from_millis(300)).ok());
    // Whoever writes waits for the second node, with locks on the first.
    scene.signal(2, "-STOP");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            db.transact(|txn| -> Result<(), Error> {
                keys.iter().try_for_each(|key| txn.put(table, key, &1000u64.to_be_bytes()))
            })
        });
        thread::sleep(Duration::from_millis(100));
        let begun = Instant::now();
        let read = impatient.snapshot(Freshness::Newest).unwrap().get_many(table, &keys);
        assert!(matches!(read, Err(Error::Unreachable { .. })), "{read:?}");
        let read = impatient.transact(|txn| -> Result<u64, Error> {
            keys.iter().try_fold(0, |sum, key| Ok(sum + balance(txn.get(table, key)?)))
        });
        assert!(read.is_err(), "{read:?}");
        assert!(begun.elapsed() < PATIENCE, "it does not wait for ever");
        scene.signal(2, "-CONT");
        writer.join().unwrap().unwrap();
    });
    assert_eq!(total(&db, 12), 12_000);
}

#[test]
fn clients_that_come_together_all_find_a_place() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    drop(scene.connect());
    let scene = &scene;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..25).for_each(|_| drop(scene.connect())));
        }
    });
}

#[test]
fn a_node_without_data_is_small_and_so_is_a_connection_at_rest() {
    let mut scene = Scene::new(&[1]);
    let text = std::fs::read_to_string(scene.file()).unwrap();
    std::fs::write(scene.file(), text.replace("clients = 4", "clients = 100")).unwrap();
    scene.start(1);
    let resident = |scene: &Scene| {
        let state: Value = serde_json::from_str(&scene.get(1, "/status").1).unwrap();
        state["resident_bytes"].as_u64().unwrap()
    };
    let first = scene.connect();
    let before = resident(&scene);
    assert!(before < 128 << 20, "{before}");
    let others: Vec<Database> = (0..60).map(|_| scene.connect()).collect();
    for (number, db) in others.iter().enumerate() {
        db.transact(|txn| txn.put(db.table("account").unwrap(), &account(number as u64), &[1; 8])).unwrap();
    }
    // What they have used goes back to the system when they have rested for a while.
    let limit = before + others.len() as u64 * (64 << 10);
    let deadline = Instant::now() + PATIENCE;
    while resident(&scene) > limit {
        assert!(Instant::now() < deadline, "{} bytes instead of {before}", resident(&scene));
        thread::sleep(Duration::from_millis(50));
    }
    drop(first);
}

#[test]
fn a_node_that_is_killed_takes_its_data_along_and_says_so() {
    let mut scene = Scene::new(&[1, 1]);
    scene.start(1);
    scene.start(2);
    let patient = scene.connect();
    let entries = patient.table("entry").unwrap();
    patient
        .transact(|txn| -> Result<(), Error> {
            (0..40).try_for_each(|number| txn.put(entries, &Key::of_u64(number), b"entry"))
        })
        .unwrap();
    let db = scene.connect_within(Duration::from_secs(3)).unwrap();
    let mut dead = scene.nodes[1].take().unwrap();
    dead.kill().unwrap();
    dead.wait().unwrap();

    // What the other holds can be read and written; what is lost is an error, not an absence.
    let mut found = [0, 0];
    for number in 0..40 {
        let key = Key::of_u64(number);
        let written = db.transact(|txn| -> Result<(), Error> {
            assert!(txn.get(entries, &key)?.is_some(), "nothing is missing");
            txn.put(entries, &key, b"again")
        });
        match written {
            Ok(()) => found[0] += 1,
            Err(Error::Contended { .. } | Error::Unreachable { .. }) => found[1] += 1,
            Err(other) => panic!("{other}"),
        }
        if found.iter().all(|&count| count > 0) {
            break;
        }
    }
    assert!(found.iter().all(|&count| count > 0), "{found:?}");

    // Started again it is empty, and nobody takes that for the truth.
    scene.start(2);
    until("it listens", || std::net::TcpListener::bind(("127.0.0.1", scene.http[1])).err());
    thread::sleep(Duration::from_millis(500));
    assert_eq!([scene.get(1, "/ready").0, scene.get(2, "/ready").0], [503, 503]);
    assert!(scene.connect_within(Duration::from_millis(500)).is_err());

    // All nodes again are a cluster again.
    let mut other = scene.nodes[0].take().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    scene.start(1);
    let db = scene.connect();
    let rows = db.snapshot(Freshness::Newest).unwrap().scan(entries, ..).unwrap().count();
    assert_eq!(rows, 0, "an empty one");
}

#[test]
fn a_cluster_runs_the_protocol_and_the_scheme_of_its_file() {
    for (protocol, scheme) in [("two_pl", "dst"), ("occ", "none"), ("two_pl", "rc")] {
        let mut scene = Scene::under(&format!("protocol = \"{protocol}\"\nscheme = \"{scheme}\"\n"), &[1, 1]);
        let log = scene.start_logged(1);
        scene.start(2);
        let db = scene.connect();
        fill(&db, 8);
        thread::scope(|scope| {
            (0..2).for_each(|client| {
                drop(scope.spawn({
                    let db = &db;
                    move || transfers(db, client, 8, 20)
                }))
            });
        });
        let snapshot = db.snapshot(Freshness::Newest).err();
        match scheme {
            "dst" => assert_eq!(snapshot, None),
            _ => assert!(matches!(snapshot, Some(Error::NoSnapshots { .. })), "{snapshot:?}"),
        }
        let (status, _) = scene.status();
        assert_eq!((&status["protocol"], &status["scheme"]), (&protocol.into(), &scheme.into()));
        assert_eq!(status["serializable"], scheme != "rc");
        assert_eq!(status["nodes"][1]["state"]["scheme"], scheme);
        let shown = plimsoll(&["status", path(&scene.file())]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains(&format!("{protocol}/{scheme}")), "{shown}");
        assert_eq!(shown.contains("NOT serializable"), scheme == "rc", "{shown}");
        drop(scene);
        let mut text = String::new();
        { log }.read_to_string(&mut text).unwrap();
        assert_eq!(text.contains("NOT serializable"), scheme == "rc", "{text}");
    }
}

/// What the oracle says of itself: how many numbers are published, and how many it knows of that are not.
fn oracle(scene: &Scene) -> (u64, u64) {
    let (code, text) = scene.get(3, "/status");
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 200);
    let number = |field: &str| state["oracle"][field].as_u64().unwrap();
    (number("published"), number("unpublished"))
}

#[test]
fn an_oracle_publishes_commits_and_a_client_that_dies_holds_none_back() {
    for (scheme, keys) in
        [("gts", ""), ("gts", "protocol = \"two_pl\"\n"), ("vts", ""), ("vts", "protocol = \"two_pl\"\n")]
    {
        let scene = Scene::with_oracle(scheme, keys);
        let db = scene.connect();
        fill(&db, 8);
        thread::scope(|scope| {
            for client in 0..2 {
                let db = &db;
                scope.spawn(move || transfers(db, client, 8, 20));
            }
        });
        let (status, well) = scene.status();
        assert!(well, "{status}");
        assert_eq!(status["oracle"]["state"]["ready"], true);
        assert!(scene.get(3, "/metrics").1.contains("plimsoll_oracle_published_total"));
        assert!(scene.get(1, "/metrics").1.contains("plimsoll_peer_connected{peer=\"oracle\"} 1\n"));

        // Its numbers are taken for installed when nobody knows of anything that is not.
        kill_a_client(&scene);
        if scheme == "vts" {
            until("it is missed", || (oracle(&scene).1 > 0).then_some(()));
        }
        until("every number is published", || (oracle(&scene).1 == 0).then_some(()));
        let table = db.table("account").unwrap();
        db.transact(|txn| txn.put(table, &account(5), &77u64.to_be_bytes())).unwrap();
        let read = |n| balance(db.snapshot(Freshness::Newest).unwrap().get(table, &account(n)).unwrap());
        assert_eq!(read(5), 77);
        assert_eq!(read(0), read(1), "what the dead client wrote is there on both sides or on none");
        // Who overwrites what it has written is seen by those who know of neither.
        let both: Result<(), Error> =
            db.transact(|txn| (0..2).try_for_each(|n| txn.put(table, &account(n), &u64::MAX.to_be_bytes())));
        both.unwrap();
        let other = scene.connect();
        let seen = || other.snapshot(Freshness::Newest).unwrap().get(table, &account(1)).unwrap();
        until("others see it", || (balance(seen()) == u64::MAX).then_some(()));
        drop((db, other));
        until("the last has left", || oracle_sees(&scene, 0).then_some(()));
        until("a client that leaves takes nothing along", || (oracle(&scene).1 == 0).then_some(()));
    }
}

/// Whether so many clients are connected to the oracle.
fn oracle_sees(scene: &Scene, clients: u64) -> bool {
    let state: Value = serde_json::from_str(&scene.get(3, "/status").1).unwrap();
    let peers = state["peers"].as_array().unwrap().clone();
    let connected = peers.iter().filter(|peer| peer["node"].is_null()).map(|peer| peer["connected"].as_u64());
    connected.map(Option::unwrap_or_default).sum::<u64>() == clients
}

#[test]
fn an_oracle_that_stalls_stops_commits_for_as_long_and_nothing_is_lost() {
    ["gts", "vts"].into_iter().for_each(commits_stop_while_the_oracle_stalls);
}

fn commits_stop_while_the_oracle_stalls(scheme: &str) {
    let mut scene = Scene::with_oracle(scheme, "");
    let db = scene.connect();
    fill(&db, 8);
    let table = db.table("account").unwrap();
    let before = db.snapshot(Freshness::Newest).unwrap();
    let impatient = scene.connect_within(Duration::from_secs(4)).unwrap();
    scene.signal(3, "-STOP");
    let begun = Instant::now();
    let write = |db: &Database| -> Result<(), Error> {
        db.transact(|txn| txn.put(table, &account(0), &1000u64.to_be_bytes()))
    };
    assert!(matches!(write(&impatient), Err(Error::Unreachable { .. } | Error::InDoubt { .. })));
    let snapshot = impatient.snapshot(Freshness::Newest).err();
    assert!(matches!(snapshot, Some(Error::Unreachable { .. })), "{snapshot:?}");
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    // What was seen before is still seen.
    assert_eq!(balance(before.get(table, &account(3)).unwrap()), 1000);
    until("the nodes have noticed", || (scene.get(1, "/ready").0 == 503).then_some(()));
    thread::scope(|scope| {
        let patient = scope.spawn(|| transfers(&db, 1, 8, 10));
        thread::sleep(Duration::from_millis(300));
        scene.signal(3, "-CONT");
        patient.join().unwrap();
    });
    write(&impatient).unwrap();
    assert_eq!(total(&impatient, 8), 8000);
    until("every number is published", || (oracle(&scene).1 == 0).then_some(()));
}

#[test]
fn an_oracle_that_dies_is_missed_by_all_and_not_let_in_again_before_all_are_new() {
    ["gts", "vts"].into_iter().for_each(an_oracle_is_replaced_with_all_others);
}

fn an_oracle_is_replaced_with_all_others(scheme: &str) {
    let mut scene = Scene::with_oracle(scheme, "");
    let db = scene.connect();
    fill(&db, 8);
    let table = db.table("account").unwrap();
    let before = db.snapshot(Freshness::Newest).unwrap();
    let impatient = scene.connect_within(Duration::from_secs(2)).unwrap();
    let mut dead = scene.nodes[2].take().unwrap();
    dead.kill().unwrap();
    dead.wait().unwrap();
    let write = |db: &Database| -> Result<(), Error> {
        db.transact(|txn| txn.put(table, &account(0), &1000u64.to_be_bytes()))
    };
    let failed = write(&impatient);
    assert!(matches!(failed, Err(Error::Unreachable { .. } | Error::InDoubt { .. })), "{failed:?}");
    assert_eq!(balance(before.get(table, &account(3)).unwrap()), 1000);
    let shown = |scene: &Scene| {
        let output = plimsoll(&["status", path(&scene.file())]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(shown(&scene).contains("without the oracle nothing commits"), "{}", shown(&scene));

    // Its next life would give out numbers that are too small.
    scene.start(3);
    until("it is said what is to be done", || {
        shown(&scene).contains("only when all processes of the cluster have been started anew").then_some(())
    });
    assert!(write(&impatient).is_err());
    let newcomer = scene.connect_within(Duration::from_secs(1)).err();
    assert!(newcomer.is_some(), "nobody comes in");
    for id in [1, 2] {
        let mut node = scene.nodes[id - 1].take().unwrap();
        node.kill().unwrap();
        node.wait().unwrap();
        scene.start(id);
    }
    let db = scene.connect();
    fill(&db, 8);
    assert_eq!(total(&db, 8), 8000);
}

#[test]
fn a_node_without_a_file_is_a_whole_database_that_describes_itself() {
    let scene = Scene::new(&[1]);
    let ports = free_ports(4);
    let at = |place: usize| format!("127.0.0.1:{}", ports[place]);
    let directory = |node: &str| path(&scene.directory.join(node)).to_owned();
    let (one, other) = (directory("one"), directory("other"));
    let alone = ["--table", "account:hash", "--table", "entry", "--shards", "1", "--data-dir"];
    let run = |listen: usize, http: usize, more: &[&str]| {
        let (listen, http) = (at(listen), at(http));
        let mut command = plimsoll(&["start", "--listen", &listen, "--http", &http]);
        command.args(more).stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    };
    let node = run(0, 1, &[&alone[..], &[&one[..]]].concat());
    let cluster = until("the node describes itself", || Cluster::find(&at(1), None).ok());
    assert_eq!(cluster.tables.iter().map(|table| &*table.name).collect::<Vec<_>>(), ["account", "entry"]);
    let db = Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap();
    fill(&db, 8);
    transfers(&db, 1, 8, 10);
    let shown = plimsoll(&["status", &at(1)]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    // Its directory is its own, now and later.
    let taken = ["start", "--listen", &at(2), "--http", &at(3), "--table", "account", "--data-dir"];
    assert!(refused(&[&taken[..], &[&one[..]]].concat()).contains("in use by another process"));
    drop((db, node));
    let stranger = [&taken[..], &[&one[..], "--cluster", "shop"]].concat();
    assert!(refused(&stranger).contains("belongs to node 1 of cluster \"plimsoll\""));

    // Two nodes that are told of each other.
    let first = [&alone[..], &[&one[..], "--node", "1", "--peers"]].concat();
    let peers = [format!("2={}", at(2)), format!("1={}", at(0))];
    std::fs::remove_dir_all(&one).unwrap();
    let _one = run(0, 1, &[&first[..], &[&peers[0][..]]].concat());
    let second = [&alone[..], &[&other[..], "--node", "2", "--peers", &peers[1][..]]].concat();
    let _two = run(2, 3, &second);
    let cluster =
        until("a node describes both", || Cluster::find(&format!("{},{}", at(1), at(3)), None).ok());
    let db = Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap();
    fill(&db, 8);
    transfers(&db, 1, 8, 10);
    let shown = plimsoll(&["status", &format!("{},{}", at(1), at(3))]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
}

/// A process that ends with its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cluster of two nodes that have loaded a benchmark, or are about to.
fn loaded(keys: &str) -> Scene {
    let mut scene = Scene::under(keys, &[1, 1]);
    let text = std::fs::read_to_string(scene.file()).unwrap();
    let text = text.replace("[[table]]\nname = \"account\"\nindex = \"hash\"\n", "");
    std::fs::write(scene.file(), text.replace("[[table]]\nname = \"entry\"\n", "")).unwrap();
    (1..=2 + usize::from(has_oracle(keys))).for_each(|id| scene.start(id));
    scene
}

/// A short run, and what every such run has to show.
fn bench(scene: &Scene, arguments: &[&str]) -> Value {
    bench_at(path(&scene.file()), arguments)
}

/// The same, with the cluster found in this place.
fn bench_at(place: &str, arguments: &[&str]) -> Value {
    let short = ["--warmup", "100ms", "--duration", "400ms", "--quiet", "--json"];
    let cluster = ["--cluster", place];
    let output = plimsoll(&[&["bench"], arguments, &cluster[..], &short[..]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {} {said}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let run = document["runs"][0].clone();
    assert_eq!(run["config"]["cluster"], "bank");
    for figure in ["committed", "messages_per_transaction", "cpu_seconds", "throughput_tps"] {
        assert!(run[figure].as_f64().is_some_and(|figure| figure > 0.0), "{arguments:?}: {figure} of {run}");
    }
    let checks = run["checks"].as_array().unwrap();
    assert!(checks.len() >= 3 && checks.iter().all(|check| check["ok"] == true), "{checks:?}");
    run
}

#[test]
fn a_benchmark_runs_as_a_client_of_a_cluster_that_has_loaded_it() {
    let scene = loaded("workload = \"smallbank --accounts 1000 --distributed 20\"\n");
    let run = bench(&scene, &["smallbank", "--rate", "300"]);
    assert_eq!(run["config"]["accounts"], 1000);
    let rate = run["throughput_tps"].as_f64().unwrap();
    assert!((100.0..600.0).contains(&rate), "as many as were due: {rate}");
    assert!(run["tables"]["savings"]["rows"].as_u64() == Some(2000), "{}", run["tables"]);
    assert!(run["transactions"]["balance"]["latency_us"]["p99"].as_f64() > Some(0.0), "{run}");

    // A second run would be judged by what the first has done.
    let file = scene.file();
    let again = |more: &[&str]| refused(&[&["bench", "smallbank", "--cluster", path(&file)], more].concat());
    assert!(again(&["--duration", "100ms"]).contains("start the nodes anew"));
    assert!(again(&["--accounts", "5"]).contains("--accounts is said by the cluster's file"));
    assert!(again(&["--check"]).contains("leave it out"));
    assert!(
        refused(&["bench", "tpcc", "--cluster", path(&file)]).contains("have loaded smallbank, not tpcc")
    );
    let other = loaded("workload = \"smallbank --duration 5s\"\n");
    assert!(refused(&["start", path(&other.file()), "--node", "1"]).contains("--duration is no matter of"));
    let tables = Scene::new(&[1]);
    let none = refused(&["bench", "tpcc", "--cluster", path(&tables.file())]);
    assert!(none.contains("has loaded no benchmark"), "{none}");
}

#[test]
fn a_benchmark_finds_its_cluster_by_the_addresses_of_nodes_of_which_one_answers() {
    let scene = loaded("workload = \"smallbank --accounts 500\"\n");
    let nobody = free_ports(1)[0];
    let addresses = format!("127.0.0.1:{nobody},127.0.0.1:{}", scene.http[1]);
    until("a node describes the cluster", || Cluster::find(&addresses, None).ok());
    // Nodes tell everything but the secret.
    let secret = scene.directory.join("secret");
    let said = refused(&["bench", "smallbank", "--cluster", &addresses, "--duration", "100ms"]);
    assert!(said.contains("does not know the secret"), "{said}");
    let run = bench_at(&addresses, &["smallbank", "--secret-file", path(&secret), "--concurrency", "4"]);
    assert_eq!(run["config"]["accounts"], 500);
}

#[test]
fn a_run_ends_with_the_name_of_a_node_that_is_gone() {
    let mut scene = loaded("workload = \"smallbank --accounts 1000 --distributed 20\"\n");
    let file = scene.file();
    let arguments =
        ["bench", "smallbank", "--cluster", path(&file), "--warmup", "0s", "--duration", "60s", "--quiet"];
    let run = plimsoll(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let clients = || {
        let peers = scene.status().0["nodes"][0]["state"]["peers"].clone();
        peers
            .as_array()
            .and_then(|peers| peers.iter().find(|peer| peer["node"].is_null())?["connected"].as_u64())
    };
    until("the client is there", || clients().filter(|&connected| connected > 0));
    thread::sleep(Duration::from_millis(500));
    scene.signal(2, "-KILL");
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("node 2 cannot be reached"), "{said}");
}

#[test]
fn a_bank_and_tuples_are_consistent_on_a_cluster_under_other_protocols_and_schemes() {
    let scene = loaded("protocol = \"two_pl\"\nworkload = \"smallbank --accounts 500\"\n");
    let run = bench(&scene, &["smallbank", "--concurrency", "4"]);
    assert_eq!((&run["protocol"], &run["tables"]["checking"]["rows"]), (&"two_pl".into(), &1000.into()));
    drop(scene);
    for keys in ["scheme = \"gts\"\n", "scheme = \"vts\"\n", "protocol = \"two_pl\"\nscheme = \"vts\"\n"] {
        let scene = loaded(&format!("{keys}workload = \"micro --tuples 1000\"\n"));
        let run = bench(&scene, &["micro", "--read-only", "20"]);
        assert!(run["oracle_messages"].as_u64() > Some(0), "{run}");
    }
    let scene = loaded("scheme = \"vts\"\nworkload = \"smallbank --accounts 500\"\n");
    bench(&scene, &["smallbank", "--concurrency", "4"]);
}

#[test]
fn orders_are_taken_by_clients_that_read_the_items_of_a_node() {
    let small = "tpcc --warehouses 2 --items 200 --customers 30";
    for (keys, spread) in
        [("", ""), ("protocol = \"two_pl\"\n", " --spread"), ("protocol = \"client_2pc\"\n", "")]
    {
        let scene = loaded(&format!("{keys}workload = \"{small}{spread}\"\n"));
        let run = bench(&scene, &["tpcc", "--concurrency", "4"]);
        assert!(run["transactions"]["new_order"]["committed"].as_u64() > Some(0), "{run}");
        assert_eq!(run["tables"]["item"]["rows"], 400, "each node has a copy of all");
    }
}

#[test]
fn a_table_with_a_copy_on_every_node_is_written_on_all_of_them() {
    let mut scene = Scene::under("one_round = true\n", &[1, 2]);
    let text = std::fs::read_to_string(scene.file()).unwrap();
    let rate = "[[table]]\nname = \"rate\"\npartition = { by = \"everywhere\" }\n";
    std::fs::write(scene.file(), text + rate).unwrap();
    (1..=2).for_each(|id| scene.start(id));
    let clients = [scene.connect(), scene.connect()];
    let table = |db: &Database, name: &str| db.table(name).unwrap();
    let (euro, franc) = (Key::new(b"euro"), Key::new(b"franc"));
    let set: Result<(), plimsoll::Error> = clients[0].transact(|txn| {
        [&euro, &franc]
            .iter()
            .try_for_each(|key| txn.put(table(&clients[0], "rate"), key, &100u64.to_be_bytes()))
    });
    set.unwrap();
    thread::scope(|scope| {
        for (number, db) in clients.iter().enumerate() {
            let (euro, franc) = (&euro, &franc);
            scope.spawn(move || {
                let (rate, account) = (table(db, "rate"), table(db, "account"));
                for round in 0..40u64 {
                    let moved: Result<(), plimsoll::Error> = db.transact(|txn| {
                        let (up, down) = (balance(txn.get(rate, euro)?), balance(txn.get(rate, franc)?));
                        txn.put(rate, euro, &(up + 1).to_be_bytes())?;
                        txn.put(rate, franc, &(down - 1).to_be_bytes())?;
                        txn.put(account, &self::account(round), &(number as u64).to_be_bytes())
                    });
                    moved.unwrap();
                    let seen = db.snapshot(Freshness::Newest).unwrap();
                    let sum = [euro, franc].map(|key| balance(seen.get(rate, key).unwrap()));
                    assert_eq!(sum[0] + sum[1], 200, "client {number}, round {round}");
                }
            });
        }
    });
    let rows = |node: usize| scene.status().0["nodes"][node]["state"]["tables"][2].clone();
    assert_eq!((&rows(0)["rows"], &rows(1)["rows"]), (&2.into(), &4.into()), "one per shard: {}", rows(0));
    let seen = clients[1].snapshot(Freshness::Newest).unwrap();
    assert_eq!(balance(seen.get(table(&clients[1], "rate"), &euro).unwrap()), 180);
}

#[test]
fn a_node_that_starts_says_for_whom_it_waits() {
    let mut scene = Scene::new(&[1, 1]);
    let log = scene.start_with_json_log(2);
    let said = || std::fs::read_to_string(&log).unwrap();
    until("it says so", || said().contains("not connected to node 1 after 5s").then_some(()));
    assert!(said().contains("that no other process is node 2"));
}

#[test]
fn what_is_read_may_be_longer_than_a_message_and_what_is_written_may_not() {
    const ROWS: u64 = 12;
    let mut scene = Scene::new(&[1]);
    scene.start(1);
    let db = scene.connect();
    let table = db.table("entry").unwrap();
    let long = |number: u64| vec![number as u8; VALUE_MAX];
    let keys: Vec<Key> = (0..ROWS).map(Key::of_u64).collect();
    for number in 0..ROWS {
        let put = |txn: &mut Txn<'_>| txn.put(table, &keys[number as usize], &long(number));
        db.transact(put).unwrap();
    }
    assert!(VALUE_MAX * ROWS as usize > FRAME_MAX);
    let right = |number: u64, value: &[u8]| {
        value.len() == VALUE_MAX && value.iter().all(|&byte| byte == number as u8)
    };
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let values = snapshot.get_many(table, &keys).unwrap();
    assert!((0..ROWS).zip(&values).all(|(number, value)| right(number, value.as_ref().unwrap())));
    let rows = snapshot.scan(table, ..).unwrap().map(Result::unwrap);
    assert!((0..ROWS).eq(rows.enumerate().map(|(number, (key, value))| {
        assert!(key == keys[number] && right(number as u64, &value));
        number as u64
    })));
    let scanned = db.transact(|txn| txn.scan(table, ..)).unwrap();
    assert!(scanned.iter().zip(&keys).all(|((key, _), asked)| key == asked));
    assert!(
        scanned.len() == keys.len()
            && (0..ROWS).zip(&scanned).all(|(number, (_, value))| right(number, value))
    );

    let write = |bytes: usize| {
        db.transact(|txn| keys.iter().take(4).try_for_each(|key| txn.put(table, key, &vec![9; bytes])))
    };
    assert_eq!(write(VALUE_MAX), Err(Error::TooMuchWritten { max: WRITTEN_MAX_CLUSTER }));
    assert!(right(0, &db.snapshot(Freshness::Newest).unwrap().get(table, &keys[0]).unwrap().unwrap()));
    assert_eq!(write(VALUE_MAX - 100), Ok(()));
}

/// Not a test: what [`kill_a_client`] kills.
#[test]
#[ignore = "a child process: `kill_a_client` starts it and kills it"]
fn victim() {
    let Some(file) = std::env::var_os("PLIMSOLL_TEST_CLUSTER") else { return };
    let cluster = Cluster::read(Path::new(&file)).unwrap();
    let db = Database::connect(&cluster, Options::default()).unwrap();
    let table = db.table("account").unwrap();
    for round in 1u64.. {
        db.transact(|txn| -> Result<(), Error> {
            txn.put(table, &account(0), &round.to_be_bytes())?;
            txn.put(table, &account(1), &round.to_be_bytes())
        })
        .unwrap();
        if round == 1 {
            println!("transacting");
        }
    }
}

#[test]
fn writes_that_need_a_dead_node_lock_nothing_on_the_others() {
    for protocol in ["occ", "two_pl", "client_2pc"] {
        let mut scene = Scene::under(&format!("protocol = \"{protocol}\"\n"), &[1, 1]);
        scene.start(1);
        scene.start(2);
        drop(scene.connect());
        let db = scene.connect_within(Duration::from_secs(1)).unwrap();
        let entries = db.table("entry").unwrap();
        let put = |numbers: std::ops::Range<u64>| {
            db.transact(|txn| -> Result<(), Error> {
                numbers.clone().try_for_each(|number| txn.put(entries, &Key::of_u64(number), b"entry"))
            })
        };
        put(0..6).unwrap();
        let tables = scene.status().0["nodes"][0]["state"]["tables"].clone();
        let alive =
            tables.as_array().unwrap().iter().map(|table| table["rows"].as_u64().unwrap()).sum::<u64>();
        assert!(0 < alive && alive < 6, "{protocol}: both nodes have some of {tables}");
        let mut dead = scene.nodes[1].take().unwrap();
        dead.kill().unwrap();
        dead.wait().unwrap();
        thread::sleep(Duration::from_millis(300));
        assert!(put(0..6).is_err(), "{protocol}");
        let written = (0..6).filter(|&number| put(number..number + 1).is_ok()).count() as u64;
        assert_eq!(written, alive, "{protocol}: every row of the node that lives can be written");
    }
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = plimsoll(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let mut scene = Scene::new(&[1, 1]);
    let file = scene.file();
    let file = path(&file);
    assert!(refused(&["start"]).contains("--table account:hash --table entry"));
    assert!(refused(&["start", "--table", "a:tree"]).contains("`hash` or `ordered`, not `tree`"));
    assert!(refused(&["start", "--table", "a", "--listen", "0.0.0.0:1"]).contains("add --advertise"));
    assert!(refused(&["start", "--table", "a", "--scheme", "gts"]).contains("write a file"));
    let peers = |peers| refused(&["start", "--table", "a", "--node", "1", "--peers", peers]);
    assert!(peers("127.0.0.1:7402").contains("write ID=ADDR"));
    assert!(peers("1=127.0.0.1:7402").contains("two nodes have the number 1"));
    assert!(peers("2=127.0.0.1:7401").contains("both have the address"));
    assert!(refused(&["start", file, "--table", "a"]).contains("cannot be used with"));
    assert!(refused(&["status", "127.0.0.1:9"]).contains("no node describes its cluster"));
    assert!(refused(&["start", "/nowhere/cluster.toml"]).contains("/nowhere/cluster.toml"));
    assert!(refused(&["start", file]).contains("--node with one of 1, 2"));
    assert!(refused(&["start", file, "--role", "oracle"]).contains("needs none under dst"));
    assert!(refused(&["start", file, "--node", "7"]).contains("has no node 7, only 1, 2"));
    scene.start(1);
    until("node 1 is up", || std::net::TcpListener::bind(("127.0.0.1", scene.http[0])).err());
    assert!(refused(&["start", file, "--node", "1"]).contains("is node 1 running already?"));

    // Without a secret nothing leaves the machine.
    let open = std::fs::read_to_string(scene.file()).unwrap().replace("secret_file = \"secret\"\n", "");
    let open_file = scene.directory.join("open.toml");
    std::fs::write(&open_file, open.replace("address = \"127.0.0.1", "address = \"192.0.2.1")).unwrap();
    let ports = free_ports(1);
    let listen = std::fs::read_to_string(&open_file).unwrap();
    let listen =
        listen.replace("shards = 1\n", &format!("shards = 1\nlisten = \"127.0.0.1:{}\"\n", ports[0]));
    std::fs::write(&open_file, listen).unwrap();
    assert!(refused(&["start", path(&open_file), "--node", "2"]).contains("without a secret"));

    // A client that knows another secret, or another version of the file, is told so, where others are let in.
    scene.start(2);
    drop(scene.connect());
    let cluster = Cluster::read(&scene.file()).unwrap();
    let why = |cluster: &Cluster| {
        let options = Options { patience: PATIENCE, ..Options::default() };
        let error = Database::connect(cluster, options).err().expect("it is not let in");
        assert!(matches!(error, OpenError::Refused(_)), "{error:?}");
        error.to_string()
    };
    let secret = Some(b"another secret, just as long".to_vec());
    let stranger = why(&Cluster { secret, ..cluster.clone() });
    assert_eq!(stranger, "a node refuses this client: it does not know the secret of the cluster");
    let stranger = why(&Cluster { secret: None, ..cluster.clone() });
    assert_eq!(stranger, "a node refuses this client: it does not know the secret of the cluster");
    let stranger = why(&Cluster { id: cluster.id ^ 1, ..cluster });
    assert_eq!(stranger, "a node refuses this client: it belongs to another cluster");
}

/// Says something to a node, hears it out, and tells from which address.
fn stranger(node: SocketAddr, says: &[u8]) -> String {
    #[allow(clippy::disallowed_types)] // A socket of the standard library, for one who does not belong there.
    let mut stream = std::net::TcpStream::connect(node).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(says).unwrap();
    let heard = stream.read_to_end(&mut Vec::new()).expect("the node answers and closes the connection");
    assert!(heard > 0, "it says why");
    stream.local_addr().unwrap().to_string()
}

#[test]
fn a_node_logs_json_that_says_whom_it_has_refused_and_why() {
    let mut scene = Scene::new(&[1]);
    let log = scene.start_with_json_log(1);
    drop(scene.connect());
    let cluster = Cluster::read(&scene.file()).unwrap();
    let node = cluster.nodes[0].address;
    let magic = "it does not speak this protocol";
    // A hello of a version that does not exist: its length, its kind, the magic number, the version.
    let version = [&11u32.to_le_bytes()[..], &[1], b"plimsoll", &[0xff, 0xff]].concat();
    let strangers = [
        (stranger(node, b"GET /admin HTTP/1.1\r\n\r\n"), magic),
        (stranger(node, &u32::MAX.to_le_bytes()), magic),
        (stranger(node, &version), "it speaks another version of the protocol"),
    ];
    let secret = Some(b"another secret, just as long".to_vec());
    let options = Options { patience: PATIENCE, ..Options::default() };
    assert!(Database::connect(&Cluster { secret, ..cluster }, options).is_err());

    // Every line that is whole is an object with the same fields.
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines: Vec<Value> = whole.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for line in &lines {
            for field in ["timestamp", "level", "target"] {
                assert!(line[field].is_string(), "{field} of {line}");
            }
            assert!(line["fields"]["message"].is_string(), "the message of {line}");
        }
        lines
    };
    let refused = |line: &Value, why: &str| {
        line["level"] == "WARN"
            && line["fields"]["message"] == format!("handshake came to nothing: refused: {why}")
    };
    for (address, why) in &strangers {
        until("it is logged who was refused, and why", || {
            lines().into_iter().find(|line| refused(line, why) && line["fields"]["with"] == **address)
        });
    }
    until("it is logged that somebody did not know the secret", || {
        lines().into_iter().find(|line| refused(line, "it does not know the secret of the cluster"))
    });
    let lines = lines();
    let up = lines.iter().find(|line| line["fields"]["message"] == "up").expect("it says that it is up");
    let fields = ["cluster", "process", "protocol", "scheme"].map(|field| up["fields"][field].as_str());
    assert_eq!(fields, [Some("bank"), Some("node 1"), Some("occ"), Some("dst")], "{up}");
    assert_eq!((&up["level"], &up["fields"]["shards"]), (&"INFO".into(), &1.into()), "{up}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("admin"), "what strangers send is in no log: {text}");
}
