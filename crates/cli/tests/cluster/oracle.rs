//! Schemes with an oracle: it publishes what commits, stalls, dies, and begins anew with all
//! others.

use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Database, Error, Freshness};
use serde_json::Value;

use crate::deaths::kill_a_client;
use crate::scene::{Scene, account, balance, fill, path, plimsoll, total, transfers};
use crate::waiting::until;

/// What the oracle says of itself: how many numbers are published, and how many it knows of that
/// are not.
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
    let written = write(&impatient);
    assert!(
        matches!(written, Err(Error::Unreachable { .. } | Error::InDoubt { .. })),
        "{scheme}: {written:?}"
    );
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
fn snapshots_that_were_fetched_ahead_are_taken_while_the_oracle_stalls() {
    for (scheme, options) in
        [("gts", "prefetch = true\nbatch = false\n"), ("vts", "prefetch = true\ncompress = false\n")]
    {
        let mut scene = Scene::under(&format!("scheme = \"{scheme}\"\n"), &[1, 1]);
        let text = std::fs::read_to_string(scene.file()).unwrap();
        std::fs::write(scene.file(), text.replace("[oracle]\n", &format!("[oracle]\n{options}"))).unwrap();
        (1..=3).for_each(|id| scene.start(id));
        drop(scene.connect());
        let db = scene.connect_within(Duration::from_secs(4)).unwrap();
        fill(&db, 8);
        let table = db.table("account").unwrap();
        let write = |value: u64| -> Result<(), Error> {
            db.transact(|txn| (0..8).try_for_each(|n| txn.put(table, &account(n), &value.to_be_bytes())))
        };
        // A copy may be older than what was written just now.
        let newest = || db.snapshot(Freshness::Newest).unwrap().get(table, &account(7)).unwrap();
        let seen = |value: u64| {
            until("it is in a snapshot", || {
                newest().filter(|newest| *newest == value.to_be_bytes()).map(|_| ())
            })
        };
        write(77).unwrap();
        seen(77);
        scene.signal(3, "-STOP");
        until("the nodes have noticed", || (scene.get(1, "/ready").0 == 503).then_some(()));
        let begun = Instant::now();
        assert!(write(78).is_err(), "nothing commits");
        while begun.elapsed() < Duration::from_secs(6) {
            let asked = Instant::now();
            assert_eq!(total(&db, 8), 8 * 77, "what was published last");
            assert!(
                asked.elapsed() < Duration::from_secs(2),
                "and nobody is waited for: {:?}",
                asked.elapsed()
            );
            thread::sleep(Duration::from_millis(20));
        }
        scene.signal(3, "-CONT");
        until("it commits again", || write(79).ok());
        seen(79);
    }
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
