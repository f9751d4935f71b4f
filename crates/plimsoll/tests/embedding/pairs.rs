//! Pairs of a protocol and a scheme: which run closures, and what holds under each of them.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, LEGAL_PAIRS, Options, Pair, Partitioning, Row, SLOTS, Schema,
    ShardId, Slot, TableSpec,
};

use crate::{now, number, open_with, put};

fn interactive_pairs() -> impl Iterator<Item = Pair> {
    LEGAL_PAIRS.iter().copied().filter(|pair| pair.interactive().is_ok())
}

#[test]
fn what_runs_whole_procedures_only_is_refused_with_a_choice() {
    let pair = Pair::parse("rococo/dst").expect("there is such a pair");
    let refusal = Database::open(Schema::new(), Options { pair, ..Options::default() }).err();
    let text = refusal.expect("a closure is no procedure").to_string();
    assert!(text.contains("choose occ, two_pl or client_2pc"), "{text}");
}

#[test]
fn every_pair_keeps_transfers_whole_and_says_what_its_snapshots_are() {
    const ACCOUNTS: u64 = 8;
    for pair in interactive_pairs() {
        let (db, table) = open_with(IndexKind::Ordered, Options { shards: 2, pair, ..Options::default() });
        (0..ACCOUNTS).for_each(|account| put(&db, table, account, 100));
        let sum_of = |rows: Vec<Row>| rows.into_iter().map(|(_, value)| number(Some(value))).sum::<u64>();
        thread::scope(|scope| {
            for seed in 0..3 {
                let db = db.clone();
                scope.spawn(move || {
                    for round in 0..60u64 {
                        let (from, to) = ((round + seed) % ACCOUNTS, (3 * round + 1) % ACCOUNTS);
                        let moved: Result<(), Error> = db.transact(|txn| {
                            for (account, by) in [(from, -1), (to, 1)] {
                                let sum =
                                    number(txn.get(table, &Key::of_u64(account))?).wrapping_add_signed(by);
                                txn.put(table, &Key::of_u64(account), &sum.to_be_bytes())?;
                            }
                            Ok(())
                        });
                        moved.unwrap();
                        // One that only reads is serializable as well, whether or not there are
                        // snapshots.
                        let seen: Result<Vec<Row>, Error> = db.transact(|txn| txn.scan(table, ..));
                        assert_eq!(sum_of(seen.unwrap()), 100 * ACCOUNTS, "{pair}");
                    }
                });
            }
        });
        let newest = db.snapshot(Freshness::Newest);
        match pair.has_snapshots() {
            true => {
                let rows = newest.unwrap().scan(table, ..).unwrap().collect::<Result<_, _>>().unwrap();
                assert_eq!(sum_of(rows), 100 * ACCOUNTS, "{pair}");
            }
            false => assert_eq!(newest.err(), Some(Error::NoSnapshots { scheme: pair.scheme })),
        }
        if pair.has_snapshots() && !pair.has_staleness() {
            let stale = db.snapshot(Freshness::Stale(Duration::from_millis(1)));
            assert_eq!(stale.err(), Some(Error::NoStaleness { scheme: pair.scheme }));
        }
    }
}

#[test]
fn a_session_sees_its_own_writes_under_every_scheme_with_snapshots() {
    for pair in interactive_pairs().filter(|pair| pair.has_snapshots()) {
        let (db, table) = open_with(IndexKind::Hash, Options { shards: 2, pair, ..Options::default() });
        for round in 1..100 {
            put(&db, table, round % 5, round);
            assert_eq!(now(&db, table, round % 5), round, "{pair}");
        }
    }
}

#[test]
fn slots_move_from_shard_to_shard_while_everybody_works() {
    const ACCOUNTS: u64 = 40;
    let slots: Vec<Slot> = (0..SLOTS as u16).map(Slot).collect();
    for pair in interactive_pairs().filter(|pair| pair.serializable()) {
        let (db, table) = open_with(IndexKind::Ordered, Options { shards: 3, pair, ..Options::default() });
        (0..ACCOUNTS).for_each(|account| put(&db, table, account, 100));
        let over = AtomicBool::new(false);
        let before = pair.has_snapshots().then(|| db.snapshot(Freshness::Newest).unwrap());
        let mut scan = before.iter().flat_map(|snapshot| snapshot.scan(table, ..).unwrap());
        assert_eq!(scan.next().is_some(), pair.has_snapshots());
        thread::scope(|scope| {
            for seed in 0..3 {
                let (db, over) = (&db, &over);
                scope.spawn(move || {
                    for round in 0.. {
                        if over.load(SeqCst) {
                            break;
                        }
                        let (from, to) = ((round + seed) % ACCOUNTS, (3 * round + 1) % ACCOUNTS);
                        let moved: Result<(), Error> = db.transact(|txn| {
                            if from != to {
                                for (key, by) in [(from, -1i64), (to, 1)] {
                                    let sum = number(txn.get(table, &Key::of_u64(key))?) as i64 + by;
                                    txn.put(table, &Key::of_u64(key), &sum.to_be_bytes())?;
                                }
                            }
                            // A row that comes and goes.
                            let ghost = Key::of_u64(1000 + seed);
                            match txn.get(table, &ghost)? {
                                Some(_) => txn.delete(table, &ghost),
                                None => txn.insert(table, &ghost, &0u64.to_be_bytes()),
                            }
                        });
                        moved.unwrap();
                    }
                });
            }
            // Everything to one shard, back, and about.
            for (round, some) in
                [&slots[..], &slots[..2000], &slots[1000..3000], &slots[..]].into_iter().enumerate()
            {
                let to = ShardId([1, 0, 2, 0][round]);
                db.move_slots(some, to).unwrap();
                db.move_slots(some, to).expect("there is nothing to do");
                let rows: Vec<Row> = db.transact(|txn| -> Result<_, Error> { txn.scan(table, ..) }).unwrap();
                let accounts = rows.iter().filter(|(key, _)| *key < Key::of_u64(ACCOUNTS));
                let sums: Vec<u64> = accounts.map(|(_, value)| number(Some(value.clone()))).collect();
                assert_eq!(
                    (sums.len() as u64, sums.iter().sum()),
                    (ACCOUNTS, 100 * ACCOUNTS),
                    "{pair}, round {round}"
                );
            }
            over.store(true, SeqCst);
        });
        // What is loaded later finds its place.
        let late = TableSpec::new("late", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
        let late = db.create_loaded(late, (0..100).map(|key| (Key::of_u64(key), vec![vec![1]]))).unwrap();
        let found = db.transact(|txn| -> Result<_, Error> {
            (0..100).try_fold(0, |found, key| {
                Ok(found + usize::from(txn.get(late, &Key::of_u64(key))?.is_some()))
            })
        });
        assert_eq!(found, Ok(100), "{pair}");
        // Of the past nothing has changed.
        let values: Vec<u64> = scan.map(|row| number(Some(row.unwrap().1))).collect();
        let keys: Vec<Key> = (0..ACCOUNTS).map(Key::of_u64).collect();
        if let Some(before) = &before {
            assert_eq!(values, [100; ACCOUNTS as usize - 1], "{pair}");
            let values = before.get_many(table, &keys).unwrap();
            assert!(values.into_iter().all(|value| number(value) == 100), "{pair}");
        }
        let none = db.move_slots(&[Slot(7), Slot(5000)], ShardId(1)).unwrap_err();
        assert!(matches!(none, Error::NoSuchSlot { slot: 5000 }), "{none}");
        let nowhere = db.move_slots(&slots, ShardId(3)).unwrap_err();
        assert!(matches!(nowhere, Error::NoSuchShard { shard: 3, shards: 3 }), "{nowhere}");
    }
}
