//! The library as its users see it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{
    Database, Error, Freshness, IndexKind, KEY_MAX, Key, KeyRange, LEGAL_PAIRS, OpenError, Options, Pair,
    Partitioning, Protocol, Row, SLOTS, Schema, SchemaError, Scheme, ShardId, Slot, TableId, TableSpec,
    VALUE_MAX,
};

/// A database with one table.
fn open(index: IndexKind, shards: usize) -> (Database, TableId) {
    open_with(index, Options { shards, ..Options::default() })
}

fn open_with(index: IndexKind, options: Options) -> (Database, TableId) {
    let mut schema = Schema::new();
    let table = schema.table("numbers", index).unwrap();
    (Database::open(schema, options).unwrap(), table)
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

fn put(db: &Database, table: TableId, key: u64, value: u64) {
    let done: Result<(), Error> = db.transact(|txn| txn.put(table, &Key::of_u64(key), &value.to_be_bytes()));
    done.unwrap();
}

fn now(db: &Database, table: TableId, key: u64) -> u64 {
    number(db.snapshot(Freshness::Newest).unwrap().get(table, &Key::of_u64(key)).unwrap())
}

fn bytes(db: &Database) -> usize {
    db.memory().unwrap()[0].bytes
}

fn interactive_pairs() -> impl Iterator<Item = Pair> {
    LEGAL_PAIRS.into_iter().filter(|pair| pair.interactive().is_ok())
}

#[test]
fn what_runs_whole_procedures_only_is_refused_with_a_choice() {
    let pair = Pair::parse("rococo/dst").expect("there is such a pair");
    let refusal = Database::open(Schema::new(), Options { pair, ..Options::default() }).err();
    let text = refusal.expect("a closure is no procedure").to_string();
    assert!(text.contains("choose occ, two_pl or client_2pc"), "{text}");
}

#[test]
fn counters_are_exact_however_many_threads_raise_them() {
    let (db, table) = open(IndexKind::Hash, 3);
    let attempts = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for round in 0..100 {
                    // Two counters, perhaps on two shards, always raised together.
                    let raised: Result<(), Error> = db.transact(|txn| {
                        attempts.fetch_add(1, SeqCst);
                        for key in [Key::of_u64(round % 2), Key::of_u64(2 + round % 3)] {
                            let sum = number(txn.get(table, &key)?) + 1;
                            txn.put(table, &key, &sum.to_be_bytes())?;
                        }
                        Ok(())
                    });
                    raised.unwrap();
                }
            });
        }
    });
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let keys: Vec<Key> = (0..5).map(Key::of_u64).collect();
    let counted: Vec<u64> = snapshot.get_many(table, &keys).unwrap().into_iter().map(number).collect();
    assert_eq!(counted[..2].iter().sum::<u64>(), 600, "{counted:?}");
    assert_eq!(counted[2..].iter().sum::<u64>(), 600, "{counted:?}");
    assert!(attempts.load(SeqCst) >= 600);
}

#[test]
fn a_transaction_that_always_meets_another_gives_up_when_its_patience_is_over() {
    let options = Options { shards: 1, patience: Duration::from_millis(50), ..Options::default() };
    let (db, table) = open_with(IndexKind::Hash, options);
    let lost: Result<(), Error> = db.transact(|txn| {
        txn.get(table, &Key::of_u64(1))?;
        put(&db, table, 1, 1);
        txn.put(table, &Key::of_u64(1), &[0; 8])
    });
    let Err(Error::Contended { attempts, waited, .. }) = lost else { panic!("{lost:?}") };
    assert!(attempts > 1 && waited >= Duration::from_millis(50), "{attempts} attempts in {waited:?}");
    assert_eq!(now(&db, table, 1), 1);
}

#[test]
fn a_conflict_is_repeated_even_if_the_closure_keeps_it_to_itself() {
    let (db, table) = open(IndexKind::Hash, 1);
    let mut attempts = 0;
    let done: Result<u64, Error> = db.transact(|txn| {
        attempts += 1;
        let before = number(txn.get(table, &Key::of_u64(1))?);
        if attempts == 1 {
            put(&db, table, 1, 10);
        }
        let _ = txn.put(table, &Key::of_u64(1), &(before + 1).to_be_bytes());
        Ok(before)
    });
    assert_eq!((done, attempts, now(&db, table, 1)), (Ok(10), 2, 11));
}

/// An error type of the user's own.
#[derive(Debug, PartialEq)]
enum Refusal {
    NotToday,
    Database(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Database(error)
    }
}

#[test]
fn an_error_of_the_closures_own_rolls_back_and_is_returned() {
    let (db, table) = open(IndexKind::Ordered, 2);
    put(&db, table, 1, 7);
    let refused: Result<(), Refusal> = db.transact(|txn| {
        for key in 0..10 {
            txn.put(table, &Key::of_u64(key), &[0; 8])?;
        }
        assert_eq!(txn.scan(table, ..)?.len(), 10, "a transaction sees its own writes");
        Err(Refusal::NotToday)
    });
    assert_eq!(refused, Err(Refusal::NotToday));
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let rows: Vec<Row> = snapshot.scan(table, ..).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, [(Key::of_u64(1), 7u64.to_be_bytes().to_vec())]);
}

#[test]
fn an_insert_of_what_exists_is_an_error_that_the_transaction_survives() {
    let mut schema = Schema::new();
    let spec = TableSpec::new("halves", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
    let table = schema.add(spec.with_groups(&["left", "right"])).unwrap();
    let db = Database::open(schema, Options { shards: 2, ..Options::default() }).unwrap();
    let key = Key::build().text("k").finish();
    let done: Result<(), Error> = db.transact(|txn| {
        txn.put(table.group(1), &key, b"right")?;
        let exists = Error::Exists { table: "halves".into() };
        assert_eq!(txn.insert_row(table, &key, &[b"l", b"r"]), Err(exists.clone()), "half of it is there");
        txn.insert(table.group(0), &key, b"left")?;
        assert_eq!(txn.insert(table, &key, b"left"), Err(exists), "the first group stands for the table");
        let count = Error::ValueCount { table: "halves".into(), values: 1, groups: 2 };
        assert_eq!(txn.insert_row(table, &key, &[b"l"]), Err(count));
        Ok(())
    });
    assert_eq!(done, Ok(()));
    let both = |db: &Database| {
        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        [0, 1].map(|group| snapshot.get(table.group(group), &key).unwrap())
    };
    assert_eq!(both(&db), [Some(b"left".to_vec()), Some(b"right".to_vec())]);
    let again: Result<(), Error> = db.transact(|txn| {
        txn.delete(table, &key)?;
        txn.insert_row(table, &key, &[b"l", b""])
    });
    assert_eq!(again, Ok(()));
    assert_eq!(both(&db), [Some(b"l".to_vec()), Some(vec![])]);
    let gone: Result<(), Error> = db.transact(|txn| txn.delete(table, &key));
    assert_eq!((gone, both(&db)), (Ok(()), [None, None]));
}

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
            let held = bytes(&db);
            assert!(held > before + 1000 * 16, "{held} bytes, {before} before");
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

/// The table soon needs no more memory than it did.
fn settles(db: &Database, table: TableId, before: usize) {
    let began = Instant::now();
    loop {
        put(db, table, 1, 99);
        let after = bytes(db);
        if after <= before + 1000 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{after} bytes, {before} before");
    }
}

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

#[test]
fn what_makes_no_sense_is_an_error_and_not_a_panic() {
    let (db, table) = open(IndexKind::Hash, 2);
    let key = Key::of_u64(1);
    let (foreign, group) = (TableId(7), table.group(1));
    let (no_table, no_group) = (
        Error::NoSuchTable { table: foreign, tables: 1 },
        Error::NoSuchGroup { table: "numbers".into(), group: 1 },
    );
    let not_ordered = Error::NotOrdered { table: "numbers".into() };
    let (long_key, long_value) = (Key::new(&[7; KEY_MAX + 1]), vec![0; VALUE_MAX + 1]);
    let (key_too_long, value_too_long) =
        (Error::KeyTooLong { bytes: KEY_MAX + 1 }, Error::ValueTooLong { bytes: VALUE_MAX + 1 });
    let done: Result<(), Error> = db.transact(|txn| {
        assert_eq!(txn.get(foreign, &key), Err(no_table.clone()));
        assert_eq!(txn.put(foreign, &key, b""), Err(no_table.clone()));
        assert_eq!(txn.insert_row(foreign, &key, &[]), Err(no_table.clone()));
        assert_eq!(txn.delete(foreign, &key), Err(no_table.clone()));
        assert_eq!(txn.scan(foreign, ..), Err(no_table.clone()));
        assert_eq!(txn.get(group, &key), Err(no_group.clone()));
        assert_eq!(txn.insert(group, &key, b""), Err(no_group.clone()));
        assert_eq!(txn.scan(table, ..), Err(not_ordered.clone()));
        assert_eq!(txn.get(table, &long_key), Err(key_too_long.clone()));
        assert_eq!(txn.put(table, &long_key, b""), Err(key_too_long.clone()));
        assert_eq!(txn.insert(table, &long_key, b""), Err(key_too_long.clone()));
        assert_eq!(txn.delete(table, &long_key), Err(key_too_long.clone()));
        assert_eq!(txn.put(table, &key, &long_value), Err(value_too_long.clone()));
        assert_eq!(txn.insert(table, &key, &long_value), Err(value_too_long.clone()));
        Ok(())
    });
    assert_eq!(done, Ok(()), "none of this ends a transaction");
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    assert_eq!(snapshot.get(foreign, &key), Err(no_table));
    assert_eq!(snapshot.get_many(group, &[]), Err(no_group));
    assert_eq!(snapshot.get_many(table, &[key, long_key]), Err(key_too_long));
    assert_eq!(snapshot.scan(table, ..).err(), Some(not_ordered));
}

#[test]
fn the_longest_key_and_the_longest_value_fit() {
    let (db, table) = open(IndexKind::Ordered, 2);
    let (key, value) = (Key::new(&[0xff; KEY_MAX]), vec![7; VALUE_MAX]);
    let done: Result<(), Error> = db.transact(|txn| txn.put(table, &key, &value));
    done.unwrap();
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    assert!(snapshot.get(table, &key).unwrap().as_ref() == Some(&value));
    let rows: Vec<Row> = snapshot.scan(table, KeyRange::prefix(&key)).unwrap().map(Result::unwrap).collect();
    assert!(rows == [(key, value)]);
}

#[test]
fn a_database_that_cannot_be_opened_says_why() {
    let mut schema = Schema::new();
    schema.table("a", IndexKind::Hash).unwrap();
    assert_eq!(schema.table("a", IndexKind::Ordered), Err(SchemaError::DuplicateTable("a".into())));
    assert_eq!(schema.table("", IndexKind::Hash), Err(SchemaError::NoName));
    let mut placed = |partitioning| schema.add(TableSpec::new("b", IndexKind::Hash, partitioning));
    let wrong = |bytes| Err(SchemaError::PartitionKey { table: "b".into(), bytes });
    assert_eq!(placed(Partitioning::Modulo { bytes: 0 }), wrong(0));
    assert_eq!(placed(Partitioning::Range { bytes: 9, span: 1 }), wrong(9));
    assert_eq!(placed(Partitioning::Range { bytes: 8, span: 0 }), Err(SchemaError::EmptySpan("b".into())));
    let spread = |within, parts| Partitioning::Spread { bytes: 4, within, parts };
    assert_eq!(placed(spread(5, 7)), wrong(9));
    assert_eq!(placed(Partitioning::Spread { bytes: 0, within: 4, parts: 7 }), wrong(0));
    assert_eq!(placed(spread(4, 0)), Err(SchemaError::EmptySpan("b".into())));
    let immutable = TableSpec::new("b", IndexKind::Hash, Partitioning::Everywhere).immutable();
    assert_eq!(schema.add(immutable), Err(SchemaError::Immutable("b".into())));
    let mut grouped = |groups: &[&str]| {
        let mut spec = TableSpec::new("b", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
        spec.groups = groups.iter().map(|&group| group.to_owned()).collect();
        schema.add(spec)
    };
    assert_eq!(grouped(&[]), Err(SchemaError::GroupCount { table: "b".into(), groups: 0 }));
    assert_eq!(grouped(&["x"; 256]), Err(SchemaError::GroupCount { table: "b".into(), groups: 256 }));
    let twice = Err(SchemaError::GroupName { table: "b".into(), group: "x".into() });
    assert_eq!(grouped(&["x", "x"]), twice);
    let open = |options| Database::open(schema.clone(), options);
    let none = open(Options { shards: 0, ..Options::default() });
    assert!(matches!(none, Err(OpenError::NoShards)));
    let many = open(Options { shards: 1025, ..Options::default() });
    assert!(matches!(many, Err(OpenError::TooManyShards { shards: 1025 })));
    let asked = Duration::from_secs(100 * 365 * 24 * 3600);
    let forever = open(Options { max_staleness: asked, ..Options::default() });
    assert!(matches!(forever, Err(OpenError::MaxStaleness { .. })));
    let Err(error) = forever else { panic!("opened") };
    assert_eq!(error.to_string(), "old versions can be kept for 86400s, not for 3153600000s");
}

#[test]
fn everything_ends_with_a_clear_error_once_the_database_is_closed() {
    let (db, table) = open(IndexKind::Ordered, 2);
    (0..1000).for_each(|key| put(&db, table, key, key));
    let (other, key) = (db.clone(), Key::of_u64(1));
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let mut rows = snapshot.scan(table, ..).unwrap();
    assert!(rows.next().is_some());
    let interrupted: Result<(), Error> = db.transact(|txn| {
        txn.get(table, &key)?;
        txn.put(table, &key, b"")?;
        other.close();
        assert_eq!(txn.get(table, &key), Err(Error::Closed));
        Ok(())
    });
    assert_eq!(interrupted, Err(Error::Closed), "what was not committed is not reported as committed");
    assert_eq!(snapshot.get(table, &key), Err(Error::Closed));
    let last = rows.by_ref().find(Result::is_err);
    assert_eq!((last, rows.next()), (Some(Err(Error::Closed)), None));
    assert_eq!(db.snapshot(Freshness::Newest).err(), Some(Error::Closed));
    assert_eq!(db.memory(), Err(Error::Closed));
    assert_eq!(db.transact(|txn| txn.put(table, &key, b"")), Err(Error::Closed));
    db.close();
}

#[test]
fn closing_waits_for_operations_that_have_begun_and_refuses_the_others() {
    for _ in 0..20 {
        let (db, table) = open(IndexKind::Hash, 2);
        thread::scope(|scope| {
            for client in 0..4 {
                let db = &db;
                scope.spawn(move || {
                    loop {
                        let done: Result<(), Error> = db.transact(|txn| {
                            let sum = number(txn.get(table, &Key::of_u64(1))?) + 1;
                            txn.put(table, &Key::of_u64(client), &sum.to_be_bytes())
                        });
                        match done.and_then(|()| db.snapshot(Freshness::Newest)) {
                            Ok(snapshot) => drop(snapshot),
                            Err(error) => return assert_eq!(error, Error::Closed),
                        }
                    }
                });
            }
            thread::sleep(Duration::from_millis(2));
            db.close();
        });
    }
}

#[test]
fn a_closure_that_panics_leaves_neither_a_lock_nor_a_snapshot_behind() {
    let (db, table) = open(IndexKind::Hash, 2);
    (0..100).for_each(|i| put(&db, table, 1, i));
    let before = bytes(&db);
    for _ in 0..10 {
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _snapshot = db.snapshot(Freshness::Newest).unwrap();
            db.transact(|txn| -> Result<(), Error> {
                txn.get(table, &Key::of_u64(1))?;
                txn.put(table, &Key::of_u64(1), &[0; 8])?;
                txn.get(table, &Key::of_u64(2))?;
                std::panic::resume_unwind(Box::new("the closure's own"))
            })
        }));
        assert!(panicked.is_err());
    }
    (0..1000).for_each(|i| put(&db, table, 1, i));
    assert_eq!(now(&db, table, 1), 999);
    settles(&db, table, before);
}

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

#[test]
fn a_transaction_whose_own_inserts_split_what_it_has_read_commits() {
    let (db, table) = open(IndexKind::Ordered, 2);
    let attempts = AtomicU32::new(0);
    let inserted: Result<(), Error> = db.transact(|txn| {
        attempts.fetch_add(1, SeqCst);
        for key in 0..300 {
            txn.insert(table, &Key::of_u64(key), b"x")?;
        }
        Ok(())
    });
    inserted.unwrap();
    assert_eq!(attempts.load(SeqCst), 1);
    assert_eq!(db.snapshot(Freshness::Newest).unwrap().scan(table, ..).unwrap().count(), 300);
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
        // A row that comes and one that goes do so on all of them; each transaction is on the next shard.
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

#[test]
fn so_many_transactions_run_and_the_others_wait_for_their_turn() {
    let options = Options {
        shards: 1,
        transactions_per_shard: 2,
        patience: Duration::from_millis(50),
        ..Options::default()
    };
    let (db, table) = open_with(IndexKind::Hash, options);
    let (running, most) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for thread in 0..8 {
            let (db, running, most) = (&db, &running, &most);
            scope.spawn(move || {
                for round in 0..50 {
                    let done: Result<(), Error> = db.transact(|txn| {
                        most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                        let key = Key::of_u64(thread * 50 + round);
                        let put = txn.put(table, &key, b"x");
                        running.fetch_sub(1, SeqCst);
                        put
                    });
                    done.unwrap();
                }
            });
        }
    });
    assert!((1..=2).contains(&most.load(SeqCst)));
    // Nobody waits for ever for those who do not end.
    let nested: Result<Result<(), Error>, Error> = db.transact(|_| {
        let inner: Result<Result<(), Error>, Error> = db.transact(|_| Ok(db.transact(|_| Ok(()))));
        inner
    });
    assert!(matches!(nested, Ok(Err(Error::Overloaded { transactions: 2, .. }))));
    let none = Options { transactions_per_shard: 0, ..Options::default() };
    assert!(matches!(Database::open(Schema::new(), none), Err(OpenError::NoTransactions)));
}

#[test]
fn a_transaction_may_have_tens_of_thousands_of_operations() {
    const ROWS: u64 = 20_000;
    let value = |number: u64| number.to_be_bytes();
    for shards in [1, 2] {
        let (db, table) = open(IndexKind::Ordered, shards);
        put(&db, table, ROWS, 1);
        let done: Result<(), Error> = db.transact(|txn| {
            // Scattered, so that the inserts split each other's leaves.
            let numbers = || (0..ROWS).map(|i| i * 7919 % ROWS);
            for number in numbers() {
                txn.insert(table, &Key::of_u64(number), &value(number))?;
            }
            for number in numbers() {
                let key = Key::of_u64(number);
                assert_eq!(txn.get(table, &key)?.as_deref(), Some(&value(number)[..]));
                match number % 3 {
                    0 => txn.delete(table, &key)?,
                    1 => txn.put(table, &key, &value(number + 1))?,
                    _ => assert!(matches!(txn.insert(table, &key, b""), Err(Error::Exists { .. }))),
                }
            }
            let rows = txn.scan(table, ..)?;
            assert_eq!(rows.len() as u64, ROWS - ROWS.div_ceil(3) + 1);
            Ok(())
        });
        done.unwrap();
        let snapshot = db.snapshot(Freshness::Newest).unwrap();
        let rows: Vec<Row> = snapshot.scan(table, ..).unwrap().map(Result::unwrap).collect();
        let expected = (0..ROWS).filter(|number| number % 3 != 0);
        let expected =
            expected.map(|number| (Key::of_u64(number), value(number + u64::from(number % 3 == 1))));
        let expected = expected.chain([(Key::of_u64(ROWS), value(1))]);
        assert!(rows.into_iter().eq(expected.map(|(key, value)| (key, value.to_vec()))));
    }
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
                        // One that only reads is serializable as well, whether or not there are snapshots.
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
