//! Nodes: what they run and hold, with a file and without one, and what they need and say.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Cluster, Database, Error, Freshness, Key, Options};
use serde_json::{Value, json};

use crate::scene::{Scene, account, balance, fill, free_ports, path, plimsoll, refused, total, transfers};
use crate::waiting::{PATIENCE, until};

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
    let cluster = until("the node describes itself", || plimsoll::find(&at(1), None).ok());
    assert_eq!(cluster.tables.iter().map(|table| &*table.name).collect::<Vec<_>>(), ["account", "entry"]);
    let db = Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap();
    fill(&db, 8);
    transfers(&db, 1, 8, 10);
    let shown = plimsoll(&["status", &at(1)]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    // Its directory is its own, now and later.
    let taken = ["start", "--listen", &at(2), "--http", &at(3), "--table", "account", "--data-dir"];
    let again = ["start", "--listen", &at(2), "--http", &at(3)];
    assert!(refused(&[&again[..], &alone[..], &[&one[..]]].concat()).contains("in use"));
    drop((db, node));
    let stranger = [&taken[..], &[&one[..], "--cluster", "shop"]].concat();
    assert!(refused(&stranger).contains("node 1 of cluster \"plimsoll\""));

    // Two nodes that are told of each other.
    let first = [&alone[..], &[&one[..], "--node", "1", "--peers"]].concat();
    let peers = [format!("2={}", at(2)), format!("1={}", at(0))];
    std::fs::remove_dir_all(&one).unwrap();
    let _one = run(0, 1, &[&first[..], &[&peers[0][..]]].concat());
    let second = [&alone[..], &[&other[..], "--node", "2", "--peers", &peers[1][..]]].concat();
    let two = run(2, 3, &second);
    let cluster =
        until("a node describes both", || plimsoll::find(&format!("{},{}", at(1), at(3)), None).ok());
    let db = Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap();
    fill(&db, 8);
    transfers(&db, 1, 8, 10);
    let shown = plimsoll(&["status", &format!("{},{}", at(1), at(3))]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");

    // One of them knows no more of the other than where it listens, and that they are connected.
    let json = plimsoll(&["status", &at(1), "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&json.stdout).expect("JSON and nothing else");
    let other = &status["nodes"][1];
    assert!(other["state"].is_null() && other["seen"] == json!({ "connected": 1, "of": 1 }), "{other}");
    assert_eq!(status["shards"][1]["leader"], 2, "{status}");
    let shown = plimsoll(&["status", &at(1)]).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success() && text.contains("not asked") && !text.contains("down"), "{text}");
    drop(two);
    until("the other is missed", || {
        let shown = plimsoll(&["status", &at(1)]).output().unwrap();
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        (shown.status.code() == Some(1) && text.contains("none: node 2 is not connected")).then_some(())
    });
}

/// A process that ends with its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
fn a_move_says_that_it_waits_for_nodes_and_ends_when_it_is_told_to() {
    let mut scene = Scene::new(&[1, 1]);
    scene.start(1);
    let file = scene.file();
    let arguments = ["move", path(&file), "--slots", "0..9", "--to", "0"];
    let mut moving = Killed(plimsoll(&arguments).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(moving.0.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("not connected to all nodes of cluster \"bank\" yet"), "{line}");
    let told = Instant::now();
    let killed = Command::new("kill").args(["-TERM", &moving.0.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(moving.0.wait().unwrap().code(), Some(1), "it was interrupted");
    assert!(told.elapsed() < Duration::from_secs(5), "{:?}", told.elapsed());
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
fn the_first_file_of_the_documentation_works_as_it_is_printed_and_under_names_of_hosts() {
    let scene = Scene::new(&[1]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cluster.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let block = docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    // On other ports, which nobody has.
    let mut text = block.to_owned();
    for (printed, free) in ["7401", "8401", "7402", "8402"].into_iter().zip(free_ports(4)) {
        text = text.replace(&format!("127.0.0.1:{printed}"), &format!("localhost:{free}"));
    }
    let file = scene.directory.join("bank.toml");
    std::fs::write(&file, text).unwrap();
    let secret = scene.directory.join("bank.secret");
    assert!(refused(&["start", path(&file), "--node", "1"]).contains("make one with `plimsoll secret"));
    assert!(plimsoll(&["secret", path(&secret)]).output().unwrap().status.success());
    assert!(refused(&["secret", path(&secret)]).contains("exists already"));
    let start = |id: &str| {
        let mut command = plimsoll(&["start", path(&file), "--node", id]);
        Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let (_one, _two) = (start("1"), start("2"));
    let status = |place: &str| plimsoll(&["status", place]).output().unwrap();
    until("all nodes are connected", || status(path(&file)).status.success().then_some(()));
    let cluster = Cluster::read(&file).unwrap();
    let addresses: Vec<String> =
        cluster.nodes.iter().filter_map(|node| Some(node.http.as_ref()?.to_string())).collect();
    assert!(addresses[0].starts_with("localhost:"), "{addresses:?}");
    let shown = status(&addresses.join(","));
    assert!(shown.status.success(), "{shown:?}");
    let db = Database::connect(&cluster, Options { patience: PATIENCE, ..Options::default() }).unwrap();
    assert!(db.snapshot(Freshness::Stale(Duration::from_secs(1))).is_ok());
}
