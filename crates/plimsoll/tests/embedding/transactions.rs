//! Transactions: all or nothing, alone or among many, repeated where they meet others, in turns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, LEGAL_PAIRS, OpenError, Options, Pair, Partitioning, Row,
    Schema, TableSpec, Txn,
};

use crate::{bytes, elsewhere, now, number, open, open_with, put, settles};

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
        elsewhere(|| put(&db, table, 1, 1));
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
            elsewhere(|| put(&db, table, 1, 10));
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
        Ok(())
    });
    assert_eq!(done, Ok(()));
    let count = Error::ValueCount { table: "halves".into(), values: 1, groups: 2 };
    assert_eq!(db.transact(|txn| txn.insert_row(table, &key, &[b"l"])), Err(count));
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

#[test]
fn so_many_transactions_run_and_the_others_wait_for_their_turn() {
    let options = Options { shards: 1, transactions_per_shard: 2, ..Options::default() };
    let (db, table) = open_with(IndexKind::Hash, options.clone());
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
    let (db, _) = open_with(IndexKind::Hash, Options { patience: Duration::from_millis(50), ..options });
    let third: Result<Result<(), Error>, Error> =
        db.transact(|_| elsewhere(|| db.transact(|_| Ok(elsewhere(|| db.transact(|_| Ok(())))))));
    assert!(matches!(third, Ok(Err(Error::Overloaded { transactions: 2, .. }))));
    let none = Options { transactions_per_shard: 0, ..Options::default() };
    assert!(matches!(Database::open(Schema::new(), none), Err(OpenError::NoTransactions)));
}

#[test]
fn a_transaction_within_another_is_refused_and_the_outer_one_goes_on() {
    for pair in ["occ/dst", "two_pl/dst"] {
        let options = Options { shards: 2, pair: Pair::parse(pair).unwrap(), ..Options::default() };
        let (db, table) = open_with(IndexKind::Hash, options);
        let (other, there) = open(IndexKind::Hash, 1);
        let raise = |txn: &mut Txn<'_>, table| {
            let sum = number(txn.get(table, &Key::of_u64(1))?) + 1;
            txn.put(table, &Key::of_u64(1), &sum.to_be_bytes())
        };
        let done: Result<(), Error> = db.transact(|txn| {
            raise(txn, table)?;
            assert_eq!(db.session().transact(|txn| raise(txn, table)), Err(Error::Nested));
            // A snapshot is no transaction, and another database is not in the way.
            assert_eq!(now(&db, table, 1), 0);
            other.transact(|txn| raise(txn, there))?;
            raise(txn, table)
        });
        assert_eq!((done, now(&db, table, 1), now(&other, there, 1)), (Ok(()), 2, 1), "{pair}");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            db.transact(|_| -> Result<(), Error> { std::panic::resume_unwind(Box::new("the closure's own")) })
        }));
        assert!(panicked.is_err());
        assert_eq!(db.transact(|txn| raise(txn, table)), Ok(()), "it was over");
    }
}

#[test]
fn many_records_are_read_in_the_order_of_their_keys_and_own_writes_among_them() {
    for pair in LEGAL_PAIRS.iter().filter(|pair| pair.interactive().is_ok()) {
        let (db, table) =
            open_with(IndexKind::Hash, Options { shards: 3, pair: *pair, ..Options::default() });
        // More than one round takes, in number and in bytes.
        let filled: Result<(), Error> = db.transact(|txn| {
            (0..1000).try_for_each(|key| txn.put(table, &Key::of_u64(key), &key.to_be_bytes()))?;
            (1000..1006).try_for_each(|key| txn.put(table, &Key::of_u64(key), &vec![7; 700_000]))
        });
        filled.unwrap();
        let done: Result<(), Error> = db.transact(|txn| {
            txn.put(table, &Key::of_u64(5), &500u64.to_be_bytes())?;
            txn.delete(table, &Key::of_u64(6))?;
            txn.get(table, &Key::of_u64(7))?;
            let numbers = [1001, 5, 6, 7, 8, 7, 2000, 1002].into_iter().chain(0..1006);
            let keys: Vec<Key> = numbers.clone().map(Key::of_u64).collect();
            let values = txn.get_many(table, &keys)?;
            assert_eq!(values.len(), keys.len());
            for (key, value) in numbers.zip(values) {
                match key {
                    6 | 2000 => assert_eq!(value, None),
                    1000.. => assert_eq!(value, Some(vec![7; 700_000])),
                    5 => assert_eq!(number(value), 500),
                    _ => assert_eq!(number(value), key),
                }
            }
            // What was read has to be so at the commit, and can be written.
            txn.put(table, &Key::of_u64(8), &80u64.to_be_bytes())?;
            txn.get_many(table, &[]).map(|values| assert!(values.is_empty()))
        });
        assert_eq!((done, pair), (Ok(()), pair));
    }
}

#[test]
fn many_records_that_were_read_are_still_so_at_the_commit() {
    let (db, table) = open(IndexKind::Hash, 3);
    let keys: Vec<Key> = (0..20).map(Key::of_u64).collect();
    let mut attempts = 0;
    let done: Result<u64, Error> = db.transact(|txn| {
        attempts += 1;
        let sum = txn.get_many(table, &keys)?.into_iter().map(number).sum();
        if attempts == 1 {
            elsewhere(|| put(&db, table, 13, 4));
        }
        txn.put(table, &Key::of_u64(30), &[0; 8])?;
        Ok(sum)
    });
    assert_eq!((done, attempts), (Ok(4), 2));
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
