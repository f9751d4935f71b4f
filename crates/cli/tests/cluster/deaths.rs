//! Clients and nodes that are killed or fall silent, and what that is to the others.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{
    Cluster, Database, Error, Freshness, IndexKind, Key, OpenError, Options, Partitioning, TableSpec,
};

use crate::scene::{Scene, account, balance, fill, total};
use crate::waiting::{PATIENCE, until};

/// The other half of a test, in a process of its own, which does not outlive the test.
struct Client(Child);

impl Client {
    fn start(body: &str, scene: &Scene) -> Client {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", body, "--ignored", "--nocapture"])
            .env("PLIMSOLL_TEST_CLUSTER", scene.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Client(child)
    }

    /// Hears it out until it has said this.
    fn says(&mut self, words: &str) -> String {
        let mut said = Vec::new();
        let stdout = self.0.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&said).contains(words) {
            let mut some = [0; 256];
            let read = stdout.read(&mut some).unwrap();
            assert!(read > 0, "{words:?} is said: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&some[..read]);
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a client while it transacts.
pub fn kill_a_client(scene: &Scene) {
    let mut victim = Client::start("deaths::victim", scene);
    victim.says("transacting");
    thread::sleep(Duration::from_millis(200));
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
    scene.kill(1);
    scene.start(1);
    let db = scene.connect();
    let rows = db.snapshot(Freshness::Newest).unwrap().scan(entries, ..).unwrap().count();
    assert_eq!(rows, 0, "an empty one");
}

fn made(name: &str) -> TableSpec {
    TableSpec::new(name, IndexKind::Hash, Partitioning::Hash { bytes: 0 })
}

/// A client that has stood still until others had all places and left again.
fn cut_off(scene: &Scene) -> Client {
    let mut client = Client::start("deaths::sleeper", scene);
    client.says("under way");
    client.signal("-STOP");
    let others: Vec<Database> = (0..4)
        .map(|_| until("a place is free", || scene.connect_within(Duration::from_secs(1)).ok()))
        .collect();
    let table = others[0].table("account").unwrap();
    others[0].transact(|txn| txn.put(table, &account(0), &7u64.to_be_bytes())).unwrap();
    others[0].create_table(made("meanwhile")).unwrap();
    drop(others);
    client.signal("-CONT");
    // It dials, and is refused.
    thread::sleep(Duration::from_secs(1));
    client
}

#[test]
fn a_client_that_was_taken_for_dead_comes_back_in_another_place() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let mut client = cut_off(&scene);
    client.0.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    let said = client.says("end");
    assert!(said.contains("it was 7 in attempt 2, and the old snapshot is gone"), "{said}");
}

#[test]
fn a_client_that_was_taken_for_dead_does_not_come_back_to_nodes_that_have_lost_what_it_knew() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let mut client = cut_off(&scene);
    (1..=2).for_each(|id| scene.kill(id));
    (1..=2).for_each(|id| scene.start(id));
    drop(scene.connect());
    client.0.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    let said = client.says("end");
    assert!(said.contains("CutOff") && said.contains("what they held is gone"), "{said}");
}

#[test]
fn while_a_node_is_gone_what_needs_it_fails_at_once_and_when_it_is_back_it_is_used_again() {
    const ACCOUNTS: u64 = 300;
    // One that stands still is taken for dead after two seconds of silence, and two more without an
    // answer to who dials it; and comes back with what it had.
    let scenes =
        [("occ", "-KILL", 2), ("two_pl", "-KILL", 2), ("client_2pc", "-KILL", 2), ("occ", "-STOP", 8)];
    for (protocol, signal, seconds) in scenes {
        let mut scene = Scene::under(&format!("protocol = \"{protocol}\"\n"), &[1, 1, 1]);
        (1..=3).for_each(|id| scene.start(id));
        let db = scene.connect();
        fill(&db, ACCOUNTS);
        let table = db.table("account").unwrap();
        let stop = AtomicBool::new(false);
        let moved = |from: u64, to: u64| {
            db.transact(|txn| -> Result<(), Error> {
                let had = balance(txn.get(table, &account(from))?);
                let other = balance(txn.get(table, &account(to))?);
                txn.put(table, &account(from), &(had - 1).to_be_bytes())?;
                txn.put(table, &account(to), &(other + 1).to_be_bytes())
            })
        };
        let counts = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|client| {
                    let (moved, stop) = (&moved, &stop);
                    scope.spawn(move || {
                        let (mut done, mut failed) = (0, 0);
                        for round in 0.. {
                            if stop.load(SeqCst) {
                                break;
                            }
                            let (from, to) =
                                ((client + 7 * round) % ACCOUNTS, (3 * client + 11 * round + 1) % ACCOUNTS);
                            match if from == to { Ok(()) } else { moved(from, to) } {
                                Ok(()) => done += 1,
                                Err(Error::Unreachable { .. } | Error::InDoubt { .. }) => failed += 1,
                                Err(other) => panic!("{protocol}: {other}"),
                            }
                        }
                        (done, failed)
                    })
                })
                .collect();
            thread::sleep(Duration::from_millis(500));
            scene.signal(3, signal);
            thread::sleep(Duration::from_secs(seconds));
            let begun = Instant::now();
            stop.store(true, SeqCst);
            let counts: Vec<(u64, u64)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(begun.elapsed() < PATIENCE / 2, "{protocol}: nobody waits for the whole patience");
            counts
        });
        // A thread that waited its patience for each would have failed once, if at all.
        let failed: u64 = counts.iter().map(|(_, failed)| failed).sum();
        assert!(failed > 40, "{protocol}: {counts:?}");
        let begun = Instant::now();
        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        let read = (0..ACCOUNTS).map(|number| snapshot.get(table, &account(number)));
        let found: Vec<bool> = read.map(|read| read.is_ok()).collect();
        assert!(found.contains(&true) && found.contains(&false), "{protocol}: of two nodes");
        assert!(begun.elapsed() < PATIENCE, "{protocol}");
        if signal == "-KILL" {
            continue;
        }
        scene.signal(3, "-CONT");
        let sum = || {
            let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
            let values = db.snapshot(Freshness::Newest).ok()?.get_many(table, &keys).ok()?;
            Some(values.into_iter().map(balance).sum::<u64>())
        };
        assert_eq!(until("it is used again", sum), ACCOUNTS * 1000, "{protocol}");
    }
}

/// Not a test: the client of [`cut_off`].
#[test]
#[ignore = "a child process: `cut_off` starts it and stops it"]
fn sleeper() {
    let Some(file) = std::env::var_os("PLIMSOLL_TEST_CLUSTER") else { return };
    let cluster = Cluster::read(Path::new(&file)).unwrap();
    let options = Options { patience: PATIENCE, ..Options::default() };
    let db = Database::connect(&cluster, options).unwrap();
    let table = db.table("account").unwrap();
    db.transact(|txn| txn.put(table, &account(0), &1u64.to_be_bytes())).unwrap();
    let dreams = db.create_table(made("dreams")).unwrap();
    let (snapshot, token) = (db.snapshot(Freshness::Newest).unwrap(), db.token().unwrap());
    let mut attempt = 0;
    let read = db.transact(|txn| -> Result<u64, Error> {
        attempt += 1;
        let before = balance(txn.get(table, &account(0))?);
        if attempt == 1 {
            assert_eq!(before, 1);
            println!("under way");
            std::io::stdin().lock().read_line(&mut String::new()).unwrap();
        }
        txn.put(table, &account(0), &(before + 1).to_be_bytes())?;
        Ok(before)
    });
    match read {
        Ok(before) => {
            assert_eq!(snapshot.get(table, &account(0)), Err(Error::SnapshotGone));
            let newer = db.session_with(token).unwrap().snapshot(Freshness::Newest).unwrap();
            assert_eq!(balance(newer.get(table, &account(0)).unwrap()), 8);
            // The tables that it has made, and those that others have made meanwhile.
            let meanwhile = db.table("meanwhile").unwrap();
            for (number, table) in (7u64..).zip([dreams, meanwhile]) {
                db.transact(|txn| txn.put(table, &account(0), &number.to_be_bytes())).unwrap();
                assert_eq!(db.transact(|txn| txn.get(table, &account(0))).map(balance), Ok(number));
            }
            println!("it was {before} in attempt {attempt}, and the old snapshot is gone; end");
        }
        Err(error) => println!("{error:?}; end"),
    }
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
