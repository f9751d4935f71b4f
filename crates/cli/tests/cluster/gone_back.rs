//! Clusters whose nodes do not wait for their disks: when one was killed and comes back, all go
//! back to one timestamp.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Cluster, Database, Error, Freshness, Key, Options, TokenError};

use crate::scene::{Ends, Scene, fill, noted_move, number, path, plimsoll, total};
use crate::waiting::{PATIENCE, until};

const ACCOUNTS: u64 = 60;
/// Others connect besides, and there are four places.
const CLIENTS: u64 = 2;
/// What was answered as long before a node was killed is on all disks then.
const ON_DISK: Duration = Duration::from_secs(2);

/// Connects as soon as the nodes let this client in.
fn connect(file: &Path) -> Database {
    let cluster = Cluster::read(file).unwrap();
    let options = || Options { patience: PATIENCE, ..Options::default() };
    until("the nodes let a client in", || Database::connect(&cluster, options()).ok())
}

/// Moves that were acknowledged until the client was told that some may be lost: their numbers, and
/// when they were.
type Moves = Vec<(u64, Instant)>;

/// Moves money, and makes a note of each move in the same transaction. Connects anew when moves may
/// be lost.
fn moves(file: &Path, client: u64, stop: &AtomicBool) -> Vec<Moves> {
    let (mut db, mut done) = (connect(file), vec![Moves::new()]);
    for round in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        let (accounts, entries) = (db.table("account").unwrap(), db.table("entry").unwrap());
        match noted_move(&db, [accounts, entries], ACCOUNTS, client, round) {
            Ok(()) => done.last_mut().unwrap().push((round, Instant::now())),
            Err(Error::Lost) => {
                db = connect(file);
                done.push(Moves::new());
            }
            // Clients that connect anew may have taken all places for a moment.
            Err(Error::Unreachable { .. } | Error::InDoubt { .. } | Error::CutOff { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    done
}

/// Checks that no money is missing, and of the moves only the last before a client was told so, if
/// they were acknowledged when a node was about to be killed or gone. Returns how many are missing.
fn check(db: &Database, done: &[Vec<Moves>], gone: &[(Instant, Instant)]) -> usize {
    assert_eq!(total(db, ACCOUNTS), ACCOUNTS * 1000);
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let entries = db.table("entry").unwrap();
    let rows: BTreeSet<Key> = snapshot.scan(entries, ..).unwrap().map(|row| row.unwrap().0).collect();
    let may_be_lost = |at: Instant| gone.iter().any(|&(kill, back)| kill < at + ON_DISK && at < back);
    let mut missing = 0;
    for (client, eras) in (0..).zip(done) {
        for (era, moves) in eras.iter().enumerate() {
            let there = |&(round, _): &(u64, Instant)| rows.contains(&number(client, round));
            let lost = &moves[moves.iter().take_while(|moved| there(moved)).count()..];
            assert!(!lost.iter().any(there), "client {client} has lost moves before others: {lost:?}");
            assert!(lost.is_empty() || era + 1 < eras.len(), "client {client} was not told of {lost:?}");
            assert!(lost.iter().all(|&(_, at)| may_be_lost(at)), "{lost:?} of client {client} were on disk");
            missing += lost.len();
        }
    }
    missing
}

#[test]
fn all_nodes_go_back_to_one_timestamp_when_one_of_them_comes_back() {
    let mut scene = Scene::under("durability = \"async\"\n", &[1, 2, 1]);
    (1..=3).for_each(|id| scene.start(id));
    let file = scene.file();
    let first = connect(&file);
    fill(&first, ACCOUNTS);
    let token = first.token().unwrap();
    thread::sleep(ON_DISK);
    let (stop, mut gone) = (AtomicBool::new(false), Vec::new());
    let done: Vec<Vec<Moves>> = thread::scope(|scope| {
        let ends = Ends(&stop);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (file, stop) = (&file, &stop);
                scope.spawn(move || moves(file, client, stop))
            })
            .collect();
        for ids in [&[3][..], &[1], &[2], &[1, 2, 3]] {
            thread::sleep(2 * ON_DISK);
            let kill = Instant::now();
            ids.iter().for_each(|&id| scene.kill(id));
            thread::sleep(Duration::from_millis(300));
            ids.iter().for_each(|&id| scene.start(id));
            until("a client is served", || scene.connect_within(Duration::from_secs(1)).ok());
            until("all are there", || (1..=3).all(|id| scene.is_ready(id)).then_some(()));
            gone.push((kill, Instant::now()));
        }
        thread::sleep(ON_DISK);
        drop(ends);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let kept: usize = done.iter().flatten().map(Vec::len).sum();
    let db = connect(&file);
    let missing = check(&db, &done, &gone);
    assert!(kept > 100 && 0 < missing && missing < kept / 2, "{missing} of {kept} moves are missing");
    assert!(done.iter().all(|eras| eras.len() > 2), "clients were told: {done:?}");
    // A client that has not done anything meanwhile is told as well.
    assert!(matches!(first.snapshot(Freshness::Newest), Err(Error::Lost)));
    assert!(matches!(db.session_with(token), Err(TokenError::Lost)));
    // A stop in order loses nothing.
    drop((first, db));
    thread::sleep(ON_DISK);
    (1..=3).for_each(|id| scene.signal(id, "-TERM"));
    (1..=3).for_each(|id| scene.wait(id));
    (1..=3).for_each(|id| scene.start(id));
    assert_eq!(check(&connect(&file), &done, &gone), missing);
}

#[test]
fn while_a_node_is_gone_that_the_others_need_to_come_back_they_say_which() {
    let mut scene = Scene::under("durability = \"async\"\n", &[1, 1, 1]);
    (1..=3).for_each(|id| scene.start(id));
    fill(&connect(&scene.file()), ACCOUNTS);
    thread::sleep(ON_DISK);
    [1, 2].into_iter().for_each(|id| scene.kill(id));
    scene.start(1);
    let file = scene.file();
    let says = || {
        let status = plimsoll(&["status", path(&file)]).output().unwrap();
        String::from_utf8_lossy(&status.stdout).into_owned()
    };
    let waits = "nothing is served before node 2";
    until("they say whom they wait for", || (says().matches(waits).count() == 2).then_some(()));
    assert!(scene.connect_within(Duration::from_millis(500)).is_err());
    scene.start(2);
    assert_eq!(total(&connect(&file), ACCOUNTS), ACCOUNTS * 1000);
    until("they say so no more", || (!says().contains(waits)).then_some(()));
}
