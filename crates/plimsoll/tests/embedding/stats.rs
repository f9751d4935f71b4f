//! What a database counts.

use std::time::Duration;

use plimsoll::{Abort, Database, Error, Freshness, IndexKind, Key, Options, Outcomes};

use super::{elsewhere, open_with};

fn outcomes(committed: u64, aborted: u64) -> Outcomes {
    Outcomes { committed, aborted, in_doubt: 0 }
}

#[test]
fn transactions_are_counted_once_and_their_aborted_attempts_by_reason() {
    let (db, table) = open_with(IndexKind::Hash, Options { shards: 2, ..Options::default() });
    let key = Key::of_u64(1);
    let put = |db: &Database| db.transact(|txn| txn.put(table, &key, b"value"));
    put(&db).expect("it commits");
    // Another commits between the first attempt's read and its write: there is a second.
    let mut attempts = 0;
    let done: Result<(), Error> = db.transact(|txn| {
        txn.get(table, &key)?;
        attempts += 1;
        if attempts == 1 {
            elsewhere(|| put(&db))?;
        }
        txn.put(table, &key, b"other")
    });
    done.expect("it commits in the end");
    assert_eq!(attempts, 2);
    db.transact(|txn| txn.get(table, &key).map(drop)).expect("it commits");
    db.snapshot(Freshness::Newest).expect("it is taken");
    let given_up: Result<(), Error> = db.transact(|txn| {
        txn.put(table, &key, b"never")?;
        txn.insert(table, &key, b"there is one")
    });
    assert!(matches!(given_up, Err(Error::Exists { .. })), "{given_up:?}");

    // All sessions together.
    let stats = db.session().stats();
    assert_eq!((stats.read_write, stats.read_only, stats.overloaded), (outcomes(3, 1), outcomes(2, 0), 0));
    let conflicts = stats.aborts(Abort::WriteConflict) + stats.aborts(Abort::Validation);
    assert_eq!((conflicts, stats.aborts(Abort::User)), (1, 1), "{stats:?}");
    let text = stats.prometheus();
    for line in [
        "# TYPE plimsoll_transactions_total counter",
        "plimsoll_transactions_total{type=\"read_write\",outcome=\"committed\"} 3",
        "plimsoll_transactions_total{type=\"read_write\",outcome=\"aborted\"} 1",
        "plimsoll_transactions_total{type=\"read_only\",outcome=\"committed\"} 2",
        "plimsoll_attempts_aborted_total{reason=\"user\"} 1",
        "plimsoll_transactions_overloaded_total 0",
        "plimsoll_answers_early_total 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing: {text}");
    }
}

#[test]
fn who_is_not_let_in_and_who_loses_patience_is_counted() {
    let patience = Duration::from_millis(20);
    let (db, table) = open_with(
        IndexKind::Hash,
        Options { shards: 1, transactions_per_shard: 1, patience, ..Options::default() },
    );
    let key = Key::of_u64(1);
    let done: Result<(), Error> = db.transact(|txn| {
        let other: Result<(), Error> = elsewhere(|| db.transact(|txn| txn.put(table, &key, b"other")));
        assert!(matches!(other, Err(Error::Overloaded { .. })), "{other:?}");
        txn.put(table, &key, b"own")
    });
    done.expect("it commits");
    let stats = db.stats();
    assert_eq!((stats.read_write, stats.overloaded), (outcomes(1, 0), 1));

    // Whatever it does, somebody else has been there.
    let (db, table) =
        open_with(IndexKind::Hash, Options { shards: 1, patience: Duration::ZERO, ..Options::default() });
    let rival: Result<(), Error> = db.transact(|txn| {
        txn.get(table, &key)?;
        elsewhere(|| db.transact(|txn| txn.put(table, &key, b"rival")))?;
        txn.put(table, &key, b"own")
    });
    assert!(matches!(rival, Err(Error::Contended { .. })), "{rival:?}");
    assert_eq!(db.stats().read_write, outcomes(1, 1));
}

#[test]
fn a_write_of_no_bytes_is_a_write() {
    let (db, table) = open_with(IndexKind::Hash, Options { shards: 2, ..Options::default() });
    let (nothing, other) = (Key::new(b""), Key::of_u64(1));
    let put = |value: &[u8]| -> Result<(), Error> {
        db.transact(|txn| {
            txn.put(table, &nothing, value)?;
            // The shard is told of the write here, and the commit has nothing to take along.
            txn.get(table, &other).map(drop)
        })
    };
    let there = || db.snapshot(Freshness::Newest)?.get(table, &nothing);
    put(b"").expect("it commits");
    assert_eq!(there(), Ok(Some(Vec::new())));
    let deleted: Result<(), Error> = db.transact(|txn| {
        txn.delete(table, &nothing)?;
        txn.get(table, &other).map(drop)
    });
    deleted.expect("it commits");
    assert_eq!((there(), db.stats().read_write), (Ok(None), outcomes(2, 0)));
}
