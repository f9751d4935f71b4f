//! Statistics: how the transactions that this process has coordinated have ended.
//!
//! A client of a cluster coordinates its own transactions, so it alone knows of each whether it was
//! committed, and how often it was attempted. A node sees votes, locks and installs, shard by
//! shard, and counts those (`docs/cluster.md`).
//!
//! Every transaction is counted once, when it ends, by whether it has written anything; every
//! aborted attempt is counted by its reason. Example: a transaction that writes meets another twice
//! and then commits. That makes one `read_write.committed` and two aborts for `write_conflict`.
//! Left out: durations, which a client can measure itself.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_types::Abort;

/// How many reasons there are.
const REASONS: usize = Abort::ALL.len();

/// Numbers of transactions, by how they have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcomes {
    /// Committed.
    pub committed: u64,
    /// Ended with an error: the closure's own, or because patience was over. They have written
    /// nothing.
    pub aborted: u64,
    /// Ended without a known outcome: [`Error::InDoubt`](crate::Error::InDoubt).
    pub in_doubt: u64,
}

/// The snapshot that is open longest, in a transaction or as a [`Snapshot`](crate::Snapshot).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OldestSnapshot {
    /// How long it has been open.
    pub age: Duration,
    /// Old versions in this process that are kept for it, or for others that began close to it. A
    /// client of a cluster has none: `plimsoll status` tells what the nodes keep.
    pub versions: usize,
    /// Bytes of these versions.
    pub bytes: usize,
}

/// The result of [`Database::stats`](crate::Database::stats): everything since the database was
/// opened or connected, through any of its handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Transactions that have written something.
    pub read_write: Outcomes,
    /// Transactions that have written nothing, and snapshots.
    pub read_only: Outcomes,
    /// Transactions that never began: [`Error::Overloaded`](crate::Error::Overloaded).
    pub overloaded: u64,
    /// Transactions that were answered before this process's clock had reached their timestamps,
    /// because these were further ahead than clocks may be apart. Then some clock is wrong, and a
    /// snapshot that another client takes at once may not show what was written. Once the database
    /// is closed, only those before it last connected again are counted.
    pub early_answers: u64,
    /// The snapshot that this process has had open longest, at the moment. One that was taken
    /// within the last milliseconds may be missing.
    pub oldest_snapshot: Option<OldestSnapshot>,
    aborts: [u64; REASONS],
}

impl Stats {
    /// How many attempts were aborted for this reason. Each was followed by another attempt, unless
    /// patience was over or the reason is [`Abort::User`].
    pub fn aborts(&self, reason: Abort) -> u64 {
        self.aborts[reason.index()]
    }

    /// The same in the text format of Prometheus, for a program to append to its own metrics.
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
        let oldest = self.oldest_snapshot.unwrap_or_default();
        for (name, help, value) in [
            ("seconds", "Age of the snapshot that is open longest.", oldest.age.as_secs_f64()),
            ("versions", "Old versions kept here for that snapshot.", oldest.versions as f64),
            ("bytes", "Bytes of these versions.", oldest.bytes as f64),
        ] {
            let _ = writeln!(text, "# HELP plimsoll_open_snapshot_{name} {help}");
            let _ = writeln!(text, "# TYPE plimsoll_open_snapshot_{name} gauge");
            let _ = writeln!(text, "plimsoll_open_snapshot_{name} {value}");
        }
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

/// Counters that client threads increment. They order nothing.
#[derive(Default)]
pub(super) struct Tally {
    /// By whether the transaction has written, and by [`End`].
    ended: [[AtomicU64; 3]; 2],
    overloaded: AtomicU64,
    /// By reason.
    aborts: [AtomicU64; REASONS],
}

impl Tally {
    /// Counts a transaction that has ended, by whether it has written anything.
    pub(super) fn ended(&self, wrote: bool, end: End) {
        self.ended[usize::from(wrote)][end as usize].fetch_add(1, Relaxed);
    }

    /// Counts an aborted attempt.
    pub(super) fn aborted(&self, reason: Abort) {
        self.aborts[reason.index()].fetch_add(1, Relaxed);
    }

    /// Counts a transaction that was not admitted.
    pub(super) fn overloaded(&self) {
        self.overloaded.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self, early_answers: u64, oldest_snapshot: Option<OldestSnapshot>) -> Stats {
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
            oldest_snapshot,
            aborts: std::array::from_fn(|reason| self.aborts[reason].load(Relaxed)),
        }
    }
}
