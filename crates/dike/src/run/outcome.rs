//! What came of every attempt: all that is ever measured.

use std::time::Duration;

use crate::target::Cause;
use crate::transactions::Transaction;

/// How an attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its transaction is committed.
    Committed,
    /// Its transaction has rolled back as its inputs wanted.
    RolledBack,
    /// It failed, and the transaction will be attempted again.
    Retried(Cause),
    /// It failed, and the transaction is given up.
    Failed(Cause),
}

/// One attempt of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whose it was, from 0.
    pub terminal: u32,
    /// What it was.
    pub transaction: Transaction,
    /// Its home warehouse; 0 for a transaction that touches none.
    pub warehouse: u32,
    /// How many warehouses its inputs name, home included.
    pub warehouses: u32,
    /// From 1. Tries to connect are attempts.
    pub attempt: u32,
    /// When the transaction was due, since the run began: in an open loop by the clock, else when the
    /// terminal was free.
    pub due: Duration,
    /// When this attempt began, since the run began.
    pub start: Duration,
    /// How long this attempt took.
    pub latency_ns: u64,
    /// How it ended.
    pub ended: Ended,
}

impl Outcome {
    /// When it ended, since the run began.
    pub fn end(&self) -> Duration {
        self.start + Duration::from_nanos(self.latency_ns)
    }

    /// How long the client has waited since the transaction was due: earlier attempts, pauses and queueing
    /// included.
    pub fn waited(&self) -> Duration {
        self.end().saturating_sub(self.due)
    }
}

/// Whoever wants to know what came of attempts. Called by terminals, from many threads, after each attempt:
/// it must not block.
pub trait Observer: Send + Sync {
    /// An attempt has ended.
    fn record(&self, outcome: &Outcome);
}
