//! Scans: their order and limits, over shards and chunks, at a snapshot and in a transaction.

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, KeyRange, Options, Partitioning, Row, Schema, TableId,
    TableSpec,
};

use crate::{open, put};

#[test]
fn a_scan_over_all_shards_is_in_key_order() {
    let (db, table) = open(IndexKind::Ordered, 4);
    let texts: Vec<String> =
        (0..500).map(|i| format!("{:x}-a-key-that-has-a-tail-{i}", i * 7919 % 500)).collect();
    for some in texts.chunks(100) {
        let done: Result<(), Error> = db.transact(|txn| {
            some.iter().try_for_each(|text| txn.insert(table, &Key::new(text.as_bytes()), text.as_bytes()))
        });
        done.unwrap();
    }
    let mut expected: Vec<Row> =
        texts.iter().map(|text| (Key::new(text.as_bytes()), text.as_bytes().to_vec())).collect();
    expected.sort();
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let check = |range: KeyRange, expected: &[Row]| {
        let rows: Vec<Row> = snapshot.scan(table, range.clone()).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, expected, "a snapshot's scan of {range:?}");
        let rows: Result<_, Error> = db.transact(|txn| txn.scan(table, range.clone()));
        assert_eq!(rows.unwrap(), expected, "a transaction's scan of {range:?}");
    };
    let (low, high) = (expected[100].0.clone(), expected[300].0.clone());
    check((..).into(), &expected);
    check((low.clone()..high.clone()).into(), &expected[100..300]);
    check(KeyRange::from(low.clone()..).limit(17), &expected[100..117]);
    check((..high.clone()).into(), &expected[..300]);
    check((high..low.clone()).into(), &[]);
    check(KeyRange::from(..).limit(0), &[]);
    let prefix = expected.iter().filter(|(key, _)| key.to_bytes().starts_with(b"1f-")).cloned();
    check(KeyRange::prefix(&Key::new(b"1f-")), &prefix.collect::<Vec<_>>());
}

#[test]
fn a_transactions_scan_sees_its_own_writes_and_no_phantoms() {
    let (db, table) = open(IndexKind::Ordered, 3);
    (0..600).for_each(|key| put(&db, table, key * 10, key));
    let mut attempts = 0;
    let done: Result<usize, Error> = db.transact(|txn| {
        attempts += 1;
        // More than a chunk is deleted before the rows that are wanted, some are added in between.
        for key in 0..300 {
            txn.delete(table, &Key::of_u64(key * 10))?;
        }
        txn.put(table, &Key::of_u64(3005), &[1; 8])?;
        let rows = txn.scan(table, KeyRange::from(..).limit(270))?;
        let all = txn.scan(table, ..)?.len();
        assert_eq!(rows.len(), 270);
        assert_eq!(rows[0].0, Key::of_u64(3000));
        assert_eq!(rows[1], (Key::of_u64(3005), vec![1; 8]));
        assert_eq!(rows[269].0, Key::of_u64(3000 + 268 * 10));
        if attempts == 1 {
            put(&db, table, 5995, 1); // A phantom.
        }
        Ok(all)
    });
    assert_eq!(done, Ok(302));
    assert!(attempts > 1, "the phantom was noticed");
}

#[test]
fn a_large_scan_goes_on_at_its_snapshot_whatever_happens_between_its_chunks() {
    let (db, table) = open(IndexKind::Ordered, 2);
    const ROWS: u64 = 5000;
    for low in (0..ROWS).step_by(250) {
        let done: Result<(), Error> =
            db.transact(|txn| (low..low + 250).try_for_each(|key| txn.put(table, &Key::of_u64(key), &[1])));
        done.unwrap();
    }
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let mut rows = snapshot.scan(table, ..).unwrap();
    for key in 0..ROWS {
        assert_eq!(rows.next(), Some(Ok((Key::of_u64(key), vec![1]))));
        if key % 500 == 0 {
            // Behind the scan and before it: rows deleted, changed, added.
            let done: Result<(), Error> = db.transact(|txn| {
                for key in [key.saturating_sub(100), key + 300] {
                    (key..key + 50).try_for_each(|key| txn.delete(table, &Key::of_u64(key)))?;
                }
                txn.put(table, &Key::of_u64(key + 400), &[2])?;
                txn.put(table, &Key::build().u64(key + 1).u8(0).finish(), &[3])
            });
            done.unwrap();
        }
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn rows_that_share_a_partition_key_are_found_wherever_a_range_begins() {
    let mut schema = Schema::new();
    let placements = [
        Partitioning::Hash { bytes: 4 },
        Partitioning::Modulo { bytes: 4 },
        Partitioning::Range { bytes: 4, span: 2 },
        Partitioning::Spread { bytes: 3, within: 1, parts: 3 },
        Partitioning::Hash { bytes: 12 },
    ];
    let tables: Vec<TableId> = (0..)
        .zip(placements)
        .map(|(i, placement)| {
            schema.add(TableSpec::new(&format!("t{i}"), IndexKind::Ordered, placement)).unwrap()
        })
        .collect();
    let db = Database::open(schema, Options { shards: 3, ..Options::default() }).unwrap();
    let key = |a: u32, b: u64| Key::build().u32(a).u64(b).finish();
    for &table in &tables {
        let filled: Result<(), Error> = db.transact(|txn| {
            (0..8).try_for_each(|a| (0..5).try_for_each(|b| txn.insert(table, &key(a, b), &[])))
        });
        filled.unwrap();
        let count = |range: KeyRange| {
            let snapshot = db.snapshot(Freshness::Newest).unwrap();
            let there = snapshot.scan(table, range.clone()).unwrap().count();
            let also: Result<Vec<Row>, Error> = db.transact(|txn| txn.scan(table, range.clone()));
            assert_eq!(also.unwrap().len(), there);
            there
        };
        assert_eq!(count((..).into()), 40);
        assert_eq!(count(KeyRange::prefix(&Key::build().u32(3).finish())), 5);
        assert_eq!(count((key(3, 1)..key(3, 4)).into()), 3);
        assert_eq!(count((key(3, 1)..key(5, 2)).into()), 11);
        assert_eq!(count((key(7, 1)..).into()), 4);
        assert_eq!(count((Key::new(&[0])..Key::new(&[0, 0, 0, 2])).into()), 10);
    }
}
