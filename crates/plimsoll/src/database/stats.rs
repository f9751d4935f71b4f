//! How transactions have ended that this process has coordinated.
//!
//! A client of a cluster coordinates its own transactions, so it alone knows of each whether it was committed, and how
//! often it was attempted. A node sees votes, locks and installs, shard by shard, and counts those (`docs/cluster.md`).
//!
//! Every transaction is counted once, when it ends, by whether it has written anything; every attempt that was aborted
//! is counted by its reason. Example. A transaction that writes meets another twice and then commits: one
//! `read_write.committed`, two aborts for `write_conflict`. Left out: how long it took, which a client can measure itself.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_types::Abort;

/// How many reasons there are.
const REASONS: usize = Abort::ALL.len();

/// Transactions by how they have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcomes {
    /// Committed.
    pub committed: u64,
    /// Given up with an error, of the closure's own or because patience was over. They have written nothing.
    pub aborted: u64,
    /// Those of which nobody could say in time: [`Error::InDoubt`](crate::Error::InDoubt).
    pub in_doubt: u64,
}

/// What [`Database::stats`](crate::Database::stats) tells: everything since the database was opened or connected, through any of
/// its handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Transactions that have written something.
    pub read_write: Outcomes,
    /// Transactions that have written nothing, and snapshots.
    pub read_only: Outcomes,
    /// Transactions that never began: [`Error::Overloaded`](crate::Error::Overloaded).
    pub overloaded: u64,
    /// Transactions that were answered before this process's clock had reached their timestamps, because these were further
    /// ahead than clocks may be apart: some clock is wrong, and a snapshot that somebody else has taken at once may not show what
    /// was written. 0 once the database is closed.
    pub early_answers: u64,
    aborts: [u64; REASONS],
}

impl Stats {
    /// How many attempts were aborted for this reason. All but those by [`Abort::User`] were followed by another, unless
    /// patience was over.
    pub fn aborts(&self, reason: Abort) -> u64 {
        self.aborts[reason.index()]
    }

    /// The same in the text format of Prometheus, for a program that has metrics of its own to show: append it there.
    pub fn prometheus(&self) -> String {
        let mut text = "# HELP plimsoll_transactions_total Transactions that this process has coordinated.\n\
                        # TYPE plimsoll_transactions_total counter\n"
            .to_owned();
        for (kind, outcomes) in [("read_write", self.read_write), ("read_only", self.read_only)] {
            let Outcomes { committed, aborted, in_doubt } = outcomes;
            for (outcome, count) in [("committed", committed), ("aborted", aborted), ("in_doubt", in_doubt)] {
                let labels = format!("{{type=\"{kind}\",outcome=\"{outcome}\"}}");
                let _ = writeln!(text, "plimsoll_transactions_total{labels} {count}");
            }
        }
        text += "# HELP plimsoll_attempts_aborted_total Attempts that were aborted, by reason.\n\
                 # TYPE plimsoll_attempts_aborted_total counter\n";
        for reason in Abort::ALL {
            let count = self.aborts(reason);
            let _ = writeln!(text, "plimsoll_attempts_aborted_total{{reason=\"{reason}\"}} {count}");
        }
        text += "# HELP plimsoll_transactions_overloaded_total Transactions that waited in vain for their turn.\n\
                 # TYPE plimsoll_transactions_overloaded_total counter\n";
        let _ = writeln!(text, "plimsoll_transactions_overloaded_total {}", self.overloaded);
        text += "# HELP plimsoll_answers_early_total Answers that did not wait for a clock that is wrong.\n\
                 # TYPE plimsoll_answers_early_total counter\n";
        let _ = writeln!(text, "plimsoll_answers_early_total {}", self.early_answers);
        text
    }
}

/// How a transaction has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Committed,
    Aborted,
    InDoubt,
}

/// What is counted while clients run. Nothing is ordered by it.
#[derive(Default)]
pub(super) struct Tally {
    /// By whether they have written, and by [`End`].
    ended: [[AtomicU64; 3]; 2],
    overloaded: AtomicU64,
    /// By reason.
    aborts: [AtomicU64; REASONS],
}

impl Tally {
    /// A transaction has ended that has written something, or nothing.
    pub(super) fn ended(&self, wrote: bool, end: End) {
        self.ended[usize::from(wrote)][end as usize].fetch_add(1, Relaxed);
    }

    /// An attempt was aborted.
    pub(super) fn aborted(&self, reason: Abort) {
        self.aborts[reason.index()].fetch_add(1, Relaxed);
    }

    /// A transaction was not let in.
    pub(super) fn overloaded(&self) {
        self.overloaded.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self, early_answers: u64) -> Stats {
        let count = |wrote: bool, end: End| self.ended[usize::from(wrote)][end as usize].load(Relaxed);
        let outcomes = |wrote| Outcomes {
            committed: count(wrote, End::Committed),
            aborted: count(wrote, End::Aborted),
            in_doubt: count(wrote, End::InDoubt),
        };
        Stats {
            read_write: outcomes(true),
            read_only: outcomes(false),
            overloaded: self.overloaded.load(Relaxed),
            early_answers,
            aborts: std::array::from_fn(|reason| self.aborts[reason].load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_types::{IndexKind, Key, TableId};

    use super::*;
    use crate::{Database, Error, Freshness, Options, Schema};

    fn open(options: Options) -> (Database, TableId) {
        let mut schema = Schema::new();
        let table = schema.table("numbers", IndexKind::Hash).expect("it can be declared");
        (Database::open(schema, options).expect("it can be opened"), table)
    }

    fn outcomes(committed: u64, aborted: u64) -> Outcomes {
        Outcomes { committed, aborted, in_doubt: 0 }
    }

    #[test]
    fn transactions_are_counted_once_and_their_aborted_attempts_by_reason() {
        let (db, table) = open(Options { shards: 2, ..Options::default() });
        let key = Key::of_u64(1);
        let put = |db: &Database| db.transact(|txn| txn.put(table, &key, b"value"));
        put(&db).expect("it commits");
        // Another commits between the first attempt's read and its write: there is a second.
        let mut attempts = 0;
        let done: Result<(), Error> = db.transact(|txn| {
            txn.get(table, &key)?;
            attempts += 1;
            if attempts == 1 {
                put(&db)?;
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
        assert_eq!(
            (stats.read_write, stats.read_only, stats.overloaded),
            (outcomes(3, 1), outcomes(2, 0), 0)
        );
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
        let (db, table) =
            open(Options { shards: 1, transactions_per_shard: 1, patience, ..Options::default() });
        let key = Key::of_u64(1);
        let outer: Result<(), Error> = db.transact(|txn| {
            let inner: Result<(), Error> = db.transact(|txn| txn.put(table, &key, b"inner"));
            assert!(matches!(inner, Err(Error::Overloaded { .. })), "{inner:?}");
            txn.put(table, &key, b"outer")
        });
        outer.expect("it commits");
        let stats = db.stats();
        assert_eq!((stats.read_write, stats.overloaded), (outcomes(1, 0), 1));

        // Whatever it does, somebody else has been there.
        let (db, table) = open(Options { shards: 1, patience: Duration::ZERO, ..Options::default() });
        let rival: Result<(), Error> = db.transact(|txn| {
            txn.get(table, &key)?;
            db.transact(|txn| txn.put(table, &key, b"rival"))?;
            txn.put(table, &key, b"own")
        });
        assert!(matches!(rival, Err(Error::Contended { .. })), "{rival:?}");
        assert_eq!(db.stats().read_write, outcomes(1, 1));
    }

    #[test]
    fn a_write_of_no_bytes_is_a_write() {
        let (db, table) = open(Options { shards: 2, ..Options::default() });
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
}
