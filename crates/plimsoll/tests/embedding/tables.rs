//! Tables: found by name, made later, loaded, and those with a copy everywhere.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, Options, Pair, Partitioning, Protocol, Row, Schema,
    SchemaError, Scheme, TableSpec,
};

use crate::{now, number, open, open_with, put};

#[test]
fn tables_are_found_by_name_and_their_memory_is_told() {
    let mut schema = Schema::new();
    let (a, b) =
        (schema.table("a", IndexKind::Hash).unwrap(), schema.table("b", IndexKind::Ordered).unwrap());
    let db = Database::open(schema, Options { shards: 2, ..Options::default() }).unwrap();
    assert_eq!([db.table("a"), db.table("b"), db.table("c")], [Some(a), Some(b), None]);
    (0..10).for_each(|key| put(&db, b, key, key));
    let memory = db.memory().unwrap();
    let rows: Vec<_> = memory.iter().map(|table| (&*table.name, table.rows)).collect();
    assert_eq!(rows, [("a", 0), ("b", 10)]);
    assert!(memory[1].bytes > 10 * (8 + 8));
}

/// Rows `0..rows` with one value each.
fn rows(rows: u64) -> impl Iterator<Item = (Key, Vec<Vec<u8>>)> {
    (0..rows).map(|key| (Key::of_u64(key), vec![key.to_be_bytes().to_vec()]))
}

#[test]
fn a_table_can_be_made_while_others_are_written() {
    let (db, table) = open(IndexKind::Hash, 2);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..).take_while(|_| !stop.load(SeqCst)).for_each(|value| put(&db, table, value % 7, value));
        });
        for number in 0..20 {
            let spec = |name: &str| TableSpec::new(name, IndexKind::Ordered, Partitioning::Hash { bytes: 8 });
            let made = db.create_table(spec(&format!("made {number}"))).unwrap();
            put(&db, made, 1, number);
            assert_eq!(now(&db, made, 1), number);
            let again = db.create_table(spec(&format!("made {number}")));
            assert!(matches!(again, Err(Error::Schema(SchemaError::DuplicateTable(_)))));
        }
        stop.store(true, SeqCst);
    });
    assert_eq!(db.memory().unwrap().len(), 21);
    db.close();
    let late = TableSpec::new("late", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
    assert_eq!(db.create_table(late), Err(Error::Closed));
}

#[test]
fn an_immutable_table_with_a_copy_everywhere_is_loaded_read_and_never_written() {
    let (db, table) = open(IndexKind::Hash, 3);
    let spec = TableSpec::new("prices", IndexKind::Ordered, Partitioning::Everywhere).immutable();
    let empty = db.create_table(spec.clone());
    assert_eq!(empty, Err(Error::Schema(SchemaError::Immutable("prices".into()))));
    let prices = db.create_loaded(spec, rows(3000)).unwrap();
    assert_eq!(db.memory().unwrap()[1].rows, 3 * 3000);
    for key in 0..12 {
        let bought: Result<u64, Error> = db.transact(|txn| {
            let price = number(txn.get(prices, &Key::of_u64(key))?);
            txn.put(table, &Key::of_u64(key), &price.to_be_bytes())?;
            Ok(price)
        });
        assert_eq!((bought.unwrap(), now(&db, table, key)), (key, key));
    }
    let written = db.transact(|txn| txn.put(prices, &Key::of_u64(1), b"less"));
    assert_eq!(written, Err(Error::Immutable { table: "prices".into() }));
    let deleted = db.transact(|txn| txn.delete(prices, &Key::of_u64(1)));
    assert_eq!(deleted, Err(Error::Immutable { table: "prices".into() }));
    let all = db.snapshot(Freshness::Newest).unwrap().scan(prices, ..).unwrap().count();
    assert_eq!(all, 3000);
}

#[test]
fn a_table_with_a_copy_everywhere_is_read_at_hand_and_written_on_all_shards() {
    for protocol in [Protocol::Occ, Protocol::TwoPl, Protocol::Client2pc] {
        let pair = Pair { protocol, scheme: Scheme::Dst };
        let (db, table) = open_with(IndexKind::Hash, Options { pair, shards: 3, ..Options::default() });
        let rates = TableSpec::new("rates", IndexKind::Ordered, Partitioning::Everywhere);
        let rates = db.create_loaded(rates, rows(10)).unwrap();
        assert_eq!(db.memory().unwrap()[1].rows, 3 * 10);
        let sum = |rows: Vec<Row>| rows.iter().map(|(_, value)| number(Some(value.clone()))).sum::<u64>();
        thread::scope(|scope| {
            for thread in 0..3 {
                let db = &db;
                scope.spawn(move || {
                    for step in 0..50 {
                        let (from, to) = (Key::of_u64(step % 10), Key::of_u64((step + 1 + thread) % 10));
                        let moved: Result<(), Error> = db.transact(|txn| {
                            let (has, gets) = (number(txn.get(rates, &from)?), number(txn.get(rates, &to)?));
                            if has > 0 {
                                txn.put(rates, &from, &(has - 1).to_be_bytes())?;
                                txn.put(rates, &to, &(gets + 1).to_be_bytes())?;
                            }
                            // One of the others: a shard of its own.
                            txn.put(table, &Key::of_u64(thread), &step.to_be_bytes())
                        });
                        moved.unwrap();
                        let snapshot = db.snapshot(Freshness::Newest).unwrap();
                        let all = snapshot.scan(rates, ..).unwrap();
                        assert_eq!(sum(all.map(Result::unwrap).collect()), 45);
                    }
                });
            }
        });
        // A row that comes and one that goes do so on all of them; each transaction is on the next
        // shard.
        let (new, old) = (Key::of_u64(77), Key::of_u64(3));
        let both: Result<(), Error> = db.transact(|txn| {
            txn.insert(rates, &new, b"here")?;
            txn.delete(rates, &old)
        });
        both.unwrap();
        for _ in 0..6 {
            let found: Result<_, Error> =
                db.transact(|txn| Ok((txn.get(rates, &new)?, txn.get(rates, &old)?)));
            assert_eq!(found, Ok((Some(b"here".to_vec()), None)));
            let again: Result<(), Error> = db.transact(|txn| txn.insert(rates, &new, b"twice"));
            assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
        }
    }
}

#[test]
fn a_load_with_a_bad_row_makes_nothing() {
    let (db, _) = open(IndexKind::Hash, 2);
    let spec = || TableSpec::new("loaded", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
    let twice = db.create_loaded(spec(), rows(10).chain(rows(1)));
    assert_eq!(twice, Err(Error::Exists { table: "loaded".into() }));
    let two_values = db.create_loaded(spec(), [(Key::of_u64(1), vec![vec![1], vec![2]])]);
    assert_eq!(two_values, Err(Error::ValueCount { table: "loaded".into(), values: 2, groups: 1 }));
    assert_eq!(db.table("loaded"), None);
    let loaded = db.create_loaded(spec(), rows(10)).unwrap();
    put(&db, loaded, 3, 33);
    let sum: u64 = (0..10).map(|key| now(&db, loaded, key)).sum();
    assert_eq!(sum, 45 - 3 + 33);
}
