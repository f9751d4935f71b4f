//! Clusters whose nodes keep what is committed: they are killed and come back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use plimsoll::{Database, Error, Freshness, Key};

use crate::scene::{Ends, Scene, account, fill, noted_move, number, path, plimsoll, refused, total};
use crate::waiting::until;

const ACCOUNTS: u64 = 60;
const CLIENTS: u64 = 3;

fn kept(protocol: &str) -> Scene {
    Scene::under(&format!("durability = \"sync\"\nprotocol = \"{protocol}\"\n"), &[1, 1, 1])
}

/// Moves money, and makes a note of each move in the same transaction. Returns the moves that were
/// acknowledged.
fn moves(db: &Database, client: u64, stop: &AtomicBool) -> Vec<u64> {
    let (accounts, entries) = (db.table("account").unwrap(), db.table("entry").unwrap());
    let mut done = Vec::new();
    for round in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        match noted_move(db, [accounts, entries], ACCOUNTS, client, round) {
            Ok(()) => done.push(round),
            Err(Error::Unreachable { .. } | Error::InDoubt { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    done
}

/// Checks that no money and no acknowledged move is missing.
fn check(db: &Database, done: &[Vec<u64>]) {
    assert_eq!(total(db, ACCOUNTS), ACCOUNTS * 1000);
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let entries = db.table("entry").unwrap();
    let rows: BTreeSet<Key> = snapshot.scan(entries, ..).unwrap().map(|row| row.unwrap().0).collect();
    for (client, rounds) in (0..).zip(done) {
        let missing: Vec<_> =
            rounds.iter().filter(|&&round| !rows.contains(&number(client, round))).collect();
        assert!(missing.is_empty(), "of client {client}, {} moves: {missing:?}", rounds.len());
    }
}

#[test]
fn what_was_acknowledged_outlives_nodes_that_are_killed_and_nobody_else_has_to_be_started_anew() {
    for protocol in ["occ", "two_pl", "client_2pc"] {
        nodes_are_killed_and_come_back(protocol, kept(protocol));
    }
}

#[test]
fn what_was_acknowledged_outlives_an_oracle_that_is_killed() {
    for (scheme, protocol) in [("gts", "occ"), ("gts", "two_pl"), ("vts", "occ"), ("vts", "two_pl")] {
        let keys = format!("durability = \"sync\"\nscheme = \"{scheme}\"\nprotocol = \"{protocol}\"\n");
        // The third is the oracle.
        nodes_are_killed_and_come_back(scheme, Scene::under(&keys, &[1, 1]));
    }
}

fn nodes_are_killed_and_come_back(what: &str, mut scene: Scene) {
    (1..=3).for_each(|id| scene.start(id));
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    let stop = AtomicBool::new(false);
    let done: Vec<Vec<u64>> = thread::scope(|scope| {
        let ends = Ends(&stop);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || moves(db, client, stop))
            })
            .collect();
        for id in [3, 1, 2] {
            thread::sleep(Duration::from_millis(400));
            scene.kill(id);
            thread::sleep(Duration::from_millis(200));
            scene.start(id);
            until("it has its place again", || scene.is_ready(id).then_some(()));
        }
        thread::sleep(Duration::from_millis(400));
        drop(ends);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(done.iter().all(|rounds| rounds.len() > 10), "{what}: {done:?}");
    check(&db, &done);
    // All at once, and the client lives on.
    (1..=3).for_each(|id| scene.kill(id));
    (1..=3).for_each(|id| scene.start(id));
    let known = || db.snapshot(Freshness::Newest).ok()?.get(db.table("account")?, &account(0)).ok();
    until("the client is connected again", known);
    until("all are there", || (scene.status().1).then_some(()));
    check(&db, &done);
    drop(db);
    check(&scene.connect(), &done);
}

#[test]
fn a_client_of_a_node_that_may_have_gone_back_is_told_so() {
    let mut scene = Scene::under("durability = \"async\"\n", &[2]);
    scene.start(1);
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    scene.kill(1);
    scene.start(1);
    let told = || match db.snapshot(Freshness::Newest) {
        Err(Error::Lost) => Some(()),
        _ => None,
    };
    until("the client is told", told);
    let again = scene.connect();
    let now = || again.snapshot(Freshness::Newest).ok();
    until("a new client is served", now);
}

#[test]
fn a_node_without_the_directory_that_it_had_is_refused() {
    let mut scene = kept("occ");
    (1..=3).for_each(|id| scene.start(id));
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    until("they have met", || (scene.status().1).then_some(()));
    drop(db);
    // Nobody of those who have met it need live on.
    (1..=3).for_each(|id| scene.kill(id));
    let (there, aside) = (scene.data_dir(2), scene.directory.join("aside"));
    std::fs::rename(&there, &aside).unwrap();
    (1..=3).for_each(|id| scene.start(id));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(scene.get(1, "/ready").0, 503);
    assert!(scene.connect_within(Duration::from_millis(500)).is_err());
    let status = plimsoll(&["status", path(&scene.file())]).output().unwrap();
    let said = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(said.contains("give it the data directory that it had"), "{said}");
    // With its own it is welcome.
    scene.kill(2);
    std::fs::remove_dir_all(&there).unwrap();
    std::fs::rename(&aside, &there).unwrap();
    scene.start(2);
    assert_eq!(total(&scene.connect(), ACCOUNTS), ACCOUNTS * 1000);
}

#[test]
fn a_directory_is_looked_through_and_damage_is_told_with_its_place_and_refused() {
    let mut scene = kept("occ");
    (1..=3).for_each(|id| scene.start(id));
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    (0..20).for_each(|number| {
        let entries = db.table("entry").unwrap();
        db.transact(|txn| txn.put(entries, &Key::of_u64(number), b"x")).unwrap();
    });
    drop(db);
    let directory = scene.data_dir(1);
    let begun =
        || std::fs::read_to_string(directory.join("owner")).ok()?.contains("\"begun\": true").then_some(());
    until("it has noted that there is a log", begun);
    assert!(refused(&["verify", path(&directory)]).contains("in use"));
    (1..=3).for_each(|id| scene.kill(id));
    let look = |more: &[&str]| {
        let output = plimsoll(&[&["verify", path(&directory)], more].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = look(&[]);
    assert!(code == Some(0) && said.contains("node 1 of cluster \"bank\"") && said.contains("entries 0 to"));
    assert!(said.ends_with("\nNothing is wrong.\n"), "{said}");
    // A bit in the length of the first batch's body: what is behind it may be zeros that fill it
    // up.
    const FIRST_BATCH: usize = 512 + 4;
    let segment = directory.join("shard-00000").join(format!("log-{:020}", 1));
    let flip = || {
        let mut bytes = std::fs::read(&segment).unwrap();
        bytes[FIRST_BATCH] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
    };
    flip();
    let (code, said) = look(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &report["good"]), (Some(1), &false.into()));
    let says = report["shards"][0]["files"][0]["says"].as_str().unwrap();
    assert!(says.contains("is damaged at byte"), "{says}");
    let file = scene.file();
    let start = ["start", path(&file), "--node", "1", "--data-dir", path(&directory)];
    let heard = refused(&start);
    assert!(heard.contains("damaged at byte") && heard.contains("backup"), "{heard}");
    flip();
    assert_eq!(look(&[]).0, Some(0), "nothing has changed it");
    std::fs::remove_dir_all(directory.join("shard-00000")).unwrap();
    let (code, said) = look(&[]);
    assert!(code == Some(1) && said.contains("its log is missing"), "{said}");
    assert!(refused(&start).contains("bring its files back"));
    assert!(refused(&["verify", path(&scene.directory)]).contains("the data directory cannot be used"));
}

#[test]
fn what_cannot_be_kept_is_refused_with_the_way_out() {
    let scene = kept("occ");
    let file = scene.file();
    let start = ["start", path(&file), "--node", "1"];
    let says = |more: &[&str], said: &str| {
        let heard = refused(&[&start[..], more].concat());
        assert!(heard.contains(said), "{heard}");
    };
    says(&[], "--data-dir");
    says(&["--data-dir", "x", "--durability", "none"], "says durability = \"sync\"");
    let bare = Scene::new(&[1]);
    let file = bare.file();
    let heard = refused(&["start", path(&file), "--data-dir", "x"]);
    assert!(heard.contains("write durability = \"sync\" into it"), "{heard}");
    let without = ["start", "--table", "account", "--durability"];
    assert!(refused(&[&without[..], &["sync"]].concat()).contains("--data-dir"));
    let none = [&without[..], &["none", "--data-dir", "x"]].concat();
    assert!(refused(&none).contains("--durability none keeps nothing"));
    // A file where the directory should be.
    let blocked = scene.data_dir(1);
    std::fs::write(&blocked, "").unwrap();
    says(&["--data-dir", path(&blocked)], "the data directory cannot be used");
    std::fs::remove_file(&blocked).unwrap();
    let text = std::fs::read_to_string(scene.file()).unwrap();
    let under_vts = text.replace("\"sync\"", "\"async\"\nscheme = \"vts\"");
    std::fs::write(scene.file(), format!("{under_vts}[oracle]\naddress = \"127.0.0.1:1\"\n")).unwrap();
    says(&["--data-dir", path(&blocked)], "vts has none that order everything");
}
