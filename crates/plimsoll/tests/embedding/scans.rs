//! Scans: their order and limits, over shards and chunks, at a snapshot and in a transaction.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::thread;

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, KeyRange, LEGAL_PAIRS, Options, Partitioning, Row, Schema,
    TableId, TableSpec,
};

use crate::{elsewhere, open, open_with, put};

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
    let is = |range: KeyRange, expected: &[Row]| {
        let rows: Vec<Row> = snapshot.scan(table, range.clone()).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, expected, "a snapshot's scan of {range:?}");
        let rows: Result<_, Error> = db.transact(|txn| txn.scan(table, range.clone()));
        assert_eq!(rows.unwrap(), expected, "a transaction's scan of {range:?}");
        assert_eq!(by_cursor(&db, table, range.clone()), expected, "a cursor over {range:?}");
    };
    let check = |range: KeyRange, expected: &[Row]| {
        is(range.clone(), expected);
        let reversed: Vec<Row> = expected.iter().rev().cloned().collect();
        is(range.clone().reverse(), &reversed);
        is(range.clone().reverse().limit(17), &reversed[..reversed.len().min(17)]);
        is(range.reverse().reverse().limit(17), &expected[..expected.len().min(17)]);
    };
    let (low, high) = (expected[100].0.clone(), expected[300].0.clone());
    check((&low..=&high).into(), &expected[100..301]);
    check((..=&high).into(), &expected[..301]);
    check((Excluded(&low), Included(&high)).into(), &expected[101..301]);
    check((Excluded(&low), Unbounded).into(), &expected[101..]);
    check((Excluded(&low), Excluded(&low)).into(), &[]);
    check((&low..=&low).into(), &expected[100..101]);
    check((..).into(), &expected);
    check((low.clone()..high.clone()).into(), &expected[100..300]);
    check((..high.clone()).into(), &expected[..300]);
    check((high..low.clone()).into(), &[]);
    is(KeyRange::from(..).limit(0), &[]);
    is(KeyRange::from(..).reverse().limit(0), &[]);
    let prefix = expected.iter().filter(|(key, _)| key.to_bytes().starts_with(b"1f-")).cloned();
    check(KeyRange::prefix(&Key::new(b"1f-")), &prefix.collect::<Vec<_>>());
}

/// What a cursor finds in a transaction of its own.
fn by_cursor(db: &Database, table: TableId, range: KeyRange) -> Vec<Row> {
    let rows: Result<Vec<Row>, Error> = db.transact(|txn| {
        let (mut cursor, mut rows) = (txn.cursor(table, range.clone())?, Vec::new());
        while let Some(row) = cursor.next(txn)? {
            rows.push(row);
        }
        assert_eq!(cursor.next(txn), Ok(None), "the end is the end");
        Ok(rows)
    });
    rows.unwrap()
}

#[test]
fn from_either_end_scans_and_cursors_see_own_writes_and_no_phantoms_under_all_pairs() {
    const ROWS: u64 = 1000;
    for pair in LEGAL_PAIRS.iter().filter(|pair| pair.interactive().is_ok()) {
        let (db, table) =
            open_with(IndexKind::Ordered, Options { shards: 3, pair: *pair, ..Options::default() });
        let filled: Result<(), Error> =
            db.transact(|txn| (0..ROWS).try_for_each(|key| txn.put(table, &Key::of_u64(key), &[1])));
        filled.unwrap();
        let done: Result<(), Error> = db.transact(|txn| {
            // More than a batch is deleted at the end, and some rows are added there.
            for key in 600..ROWS {
                txn.delete(table, &Key::of_u64(key))?;
            }
            txn.put(table, &Key::of_u64(ROWS + 7), &[2])?;
            txn.put(table, &Key::of_u64(597), &[3])?;
            let last = [(ROWS + 7, 2), (599, 1), (598, 1), (597, 3), (596, 1)];
            let last = last.map(|(key, value)| (Key::of_u64(key), vec![value]));
            assert_eq!(txn.scan(table, KeyRange::from(..).reverse().limit(5))?, last, "{pair}");
            assert_eq!(txn.scan(table, ..)?.len(), 601, "{pair}");
            // Deletes what a cursor meets, every other row of it.
            let mut cursor = txn.cursor(table, KeyRange::from(..).reverse())?;
            let mut met = 0;
            while let Some((key, _)) = cursor.next(txn)? {
                if met % 2 == 0 {
                    txn.delete(table, &key)?;
                }
                met += 1;
            }
            assert_eq!((met, txn.scan(table, ..)?.len()), (601, 300), "{pair}");
            Ok(())
        });
        assert_eq!((done, pair), (Ok(()), pair));
        assert_eq!(by_cursor(&db, table, (..).into()).len(), 300, "{pair}");

        // Several append behind the last row, and none takes a place that another has taken.
        for by_cursor in [false, true] {
            let append = || {
                db.transact(|txn| -> Result<(), Error> {
                    let last = KeyRange::from(..).reverse().limit(1);
                    let last = match by_cursor {
                        false => txn.scan(table, last)?.pop(),
                        true => txn.cursor(table, last)?.next(txn)?,
                    };
                    let next = last.map_or(Ok(0), |(key, _)| key.read().u64())? + 1;
                    txn.put(table, &Key::of_u64(next), &[])
                })
            };
            let rows = || db.transact(|txn| txn.scan(table, ..)).unwrap().len();
            let before = rows();
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (0..10).for_each(|_| append().unwrap()));
                }
            });
            assert_eq!(rows(), before + 30, "{pair}");
        }
    }
}

#[test]
fn what_a_cursor_has_passed_is_still_so_at_the_commit_and_what_lies_behind_may_change() {
    let (db, table) = open(IndexKind::Ordered, 2);
    let filled: Result<(), Error> =
        db.transact(|txn| (0..3000).try_for_each(|key| txn.put(table, &Key::of_u64(key), &[1])));
    filled.unwrap();
    for (disturbed, expected) in [(5, 2), (2900, 1)] {
        let mut attempts = 0;
        let done: Result<(), Error> = db.transact(|txn| {
            attempts += 1;
            let mut cursor = txn.cursor(table, ..)?;
            for key in 0..300 {
                assert_eq!(cursor.next(txn)?.unwrap().0, Key::of_u64(key));
            }
            if attempts == 1 {
                elsewhere(|| put(&db, table, disturbed, 2));
            }
            // What was passed can be written, and is read as written.
            txn.put(table, &Key::of_u64(7), &[attempts])?;
            assert_eq!(txn.get(table, &Key::of_u64(7))?, Some(vec![attempts]));
            Ok(())
        });
        assert_eq!((done, attempts), (Ok(()), expected), "row {disturbed} has changed");
    }
}

#[test]
fn a_cursor_belongs_to_the_attempt_that_has_made_it() {
    let (db, table) = open(IndexKind::Ordered, 2);
    put(&db, table, 1, 1);
    let mut kept = None;
    let done: Result<(), Error> = db.transact(|txn| {
        kept = Some(txn.cursor(table, ..)?);
        Ok(())
    });
    done.unwrap();
    let mut kept = kept.unwrap();
    assert_eq!(db.transact(|txn| kept.next(txn)), Err(Error::ForeignCursor));
    let sentence = Error::ForeignCursor.to_string();
    assert!(sentence.ends_with("make it in the closure"), "{sentence}");
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
            elsewhere(|| put(&db, table, 5995, 1)); // A phantom.
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
    let (mut rows, mut reversed) =
        (snapshot.scan(table, ..).unwrap(), snapshot.scan(table, KeyRange::from(..).reverse()).unwrap());
    for key in 0..ROWS {
        assert_eq!(rows.next(), Some(Ok((Key::of_u64(key), vec![1]))));
        assert_eq!(reversed.next(), Some(Ok((Key::of_u64(ROWS - 1 - key), vec![1]))));
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
    assert_eq!((rows.next(), reversed.next()), (None, None));
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
