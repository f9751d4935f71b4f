//! Snapshots: what is in them, how old they are, and what they keep.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Error, Freshness, IndexKind, Key, OldestSnapshot, Options, Row, Snapshot};

use crate::{bytes, now, number, open, open_with, put, settles};

#[test]
fn a_snapshot_stays_as_it_was_while_writers_go_on() {
    let (db, table) = open(IndexKind::Ordered, 2);
    const ACCOUNTS: u64 = 100;
    (0..ACCOUNTS).for_each(|key| put(&db, table, key, 1000));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                for round in 0.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    let (from, to) = ((round * 7 + writer) % ACCOUNTS, (round * 3) % ACCOUNTS);
                    let moved: Result<(), Error> = db.transact(|txn| {
                        let (from, to) = (Key::of_u64(from), Key::of_u64(to));
                        let left = number(txn.get(table, &from)?) - 1;
                        txn.put(table, &from, &left.to_be_bytes())?;
                        let sum = number(txn.get(table, &to)?) + 1;
                        txn.put(table, &to, &sum.to_be_bytes())
                    });
                    moved.unwrap();
                }
            });
        }
        for _ in 0..10 {
            let snapshot = db.snapshot(Freshness::Newest).unwrap();
            let look = || snapshot.scan(table, ..).unwrap().collect::<Result<Vec<Row>, Error>>().unwrap();
            let first = look();
            assert_eq!(
                first.iter().map(|(_, value)| number(Some(value.clone()))).sum::<u64>(),
                1000 * ACCOUNTS
            );
            thread::sleep(Duration::from_millis(3));
            assert_eq!(look(), first);
            for (key, value) in &first {
                assert_eq!(snapshot.get(table, key).unwrap().as_ref(), Some(value));
            }
        }
        stop.store(true, SeqCst);
    });
}

#[test]
fn what_begins_after_a_snapshot_is_not_in_it_and_what_ended_before_is() {
    let (db, table) = open(IndexKind::Hash, 4);
    for round in 1..200u64 {
        put(&db, table, round % 9, round);
        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        put(&db, table, round % 9, 0);
        // Read only now: nothing but the timestamp keeps the write out.
        assert_eq!(number(snapshot.get(table, &Key::of_u64(round % 9)).unwrap()), round);
        // Another session, another thread.
        let session = db.session();
        let seen = thread::scope(|scope| scope.spawn(|| now(&session, table, round % 9)).join().unwrap());
        assert_eq!(seen, 0);
    }
}

#[test]
fn a_stale_snapshot_reads_the_past_but_never_before_what_its_session_has_seen() {
    let max_staleness = Duration::from_secs(5);
    let (db, table) = open_with(IndexKind::Hash, Options { shards: 2, max_staleness, ..Options::default() });
    put(&db, table, 1, 1);
    thread::sleep(Duration::from_millis(60));
    put(&db, table, 1, 2);
    let stale = Freshness::Stale(Duration::from_millis(40));
    let reader = db.session();
    let snapshot = reader.snapshot(stale).unwrap();
    assert_eq!(number(snapshot.get(table, &Key::of_u64(1)).unwrap()), 1, "as it was");
    assert!(snapshot.staleness() > Duration::from_millis(39), "{:?}", snapshot.staleness());
    // The writer's own session is past that.
    let own = db.snapshot(stale).unwrap();
    assert_eq!(number(own.get(table, &Key::of_u64(1)).unwrap()), 2);
    assert!(own.staleness() < snapshot.staleness() && own.timestamp() > snapshot.timestamp());
    // So is the reader, once it has looked at the present.
    assert_eq!(now(&reader, table, 1), 2);
    assert_eq!(number(reader.snapshot(stale).unwrap().get(table, &Key::of_u64(1)).unwrap()), 2);
    let long_ago = Freshness::Stale(Duration::from_secs(6));
    let too_stale = Error::TooStale { asked: Duration::from_secs(6), max: max_staleness };
    assert_eq!(db.snapshot(long_ago).err(), Some(too_stale));
    assert_eq!(number(db.session().snapshot(stale).unwrap().get(table, &Key::of_u64(9)).unwrap()), 0);
}

#[test]
fn versions_are_kept_for_an_open_snapshot_and_given_back_after_it() {
    for shards in [1, 3] {
        let (db, table) = open(IndexKind::Hash, shards);
        let update = |times: u64| (0..times).for_each(|i| put(&db, table, 1, i));
        update(100);
        let before = bytes(&db);
        for _ in 0..3 {
            let snapshot = db.snapshot(Freshness::Newest).unwrap();
            update(1000);
            settles(&db, table, before);
            assert_eq!(number(snapshot.get(table, &Key::of_u64(1)).unwrap()) % 100, 99);
            drop(snapshot);
            settles(&db, table, before);
        }
        let snapshots = (0..1000).map(|_| db.snapshot(Freshness::Newest).unwrap());
        snapshots.for_each(drop);
        update(1000);
        settles(&db, table, before);
    }
}

#[test]
fn what_is_overwritten_again_and_again_under_open_snapshots_is_kept_once_for_each() {
    for (index, shards, times) in
        [(IndexKind::Ordered, 1, 100_000), (IndexKind::Ordered, 2, 5000), (IndexKind::Hash, 1, 5000)]
    {
        let (db, table) = open(index, shards);
        let key = Key::of_u64(1);
        let put = |value: u64| {
            let value = [&value.to_be_bytes()[..], &[7; 92]].concat();
            let done: Result<(), Error> = db.transact(|txn| txn.put(table, &key, &value));
            done.unwrap();
        };
        put(0);
        let before = bytes(&db);
        let first = db.snapshot(Freshness::Newest).unwrap();
        (1..=times).for_each(put);
        let second = db.snapshot(Freshness::Newest).unwrap();
        (1..=1000).for_each(|value| put(value + times));
        let value = |snapshot: &Snapshot| {
            let value = snapshot.get(table, &key).unwrap().unwrap();
            u64::from_be_bytes(value[..8].try_into().unwrap())
        };
        assert_eq!((value(&first), value(&second)), (0, times));
        // Two versions more, of 100 bytes each; those of the last millisecond go with the next one.
        let soon = |enough: &dyn Fn(&OldestSnapshot) -> bool| {
            let began = Instant::now();
            loop {
                put(3 * times);
                let (held, oldest) = (bytes(&db), db.stats().oldest_snapshot);
                if held <= before + 500 && oldest.is_some_and(|oldest| enough(&oldest)) {
                    return;
                }
                assert!(
                    began.elapsed() < Duration::from_secs(5),
                    "{held} bytes, {before} before: {oldest:?}"
                );
            }
        };
        let one = |oldest: &OldestSnapshot| oldest.versions == 1 && (100..200).contains(&oldest.bytes);
        soon(&one);
        drop(first);
        soon(&one);
        assert_eq!(value(&second), times);
        drop(second);
        let began = Instant::now();
        while db.stats().oldest_snapshot.is_some() {
            assert!(began.elapsed() < Duration::from_secs(5), "no snapshot is open");
        }
    }
}

#[test]
fn rows_that_come_and_go_under_an_open_snapshot_leave_nothing_behind() {
    for index in [IndexKind::Ordered, IndexKind::Hash] {
        let (db, table) = open(index, 1);
        put(&db, table, 1, 1);
        let before = bytes(&db);
        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        for key in 2..3000 {
            put(&db, table, key, key);
            let gone: Result<(), Error> = db.transact(|txn| txn.delete(table, &Key::of_u64(key)));
            gone.unwrap();
        }
        let began = Instant::now();
        while db.memory().unwrap()[0].rows > 1 || bytes(&db) > before + 20_000 {
            put(&db, table, 1, 99);
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", db.memory());
        }
        assert_eq!(number(snapshot.get(table, &Key::of_u64(1)).unwrap()), 1);
        assert_eq!(snapshot.get(table, &Key::of_u64(7)).unwrap(), None);
        if index == IndexKind::Ordered {
            assert_eq!(snapshot.scan(table, ..).unwrap().count(), 1);
        }
    }
}
