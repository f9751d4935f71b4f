//! Who may begin a transaction: so many at a time, the others wait.
//!
//! This is the clients' side, where threads may block; no shard ever comes here.
#![allow(clippy::disallowed_types)]

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// Counts the transactions that run.
pub(super) struct Admission {
    running: Mutex<usize>,
    ended: Condvar,
    limit: usize,
}

/// A transaction's place; dropped, it is free for the next.
pub(super) struct Admitted<'a>(&'a Admission);

impl Admission {
    pub(super) fn new(limit: usize) -> Admission {
        Admission { running: Mutex::new(0), ended: Condvar::new(), limit }
    }

    /// Waits for a place, but no longer than `patience`.
    pub(super) fn admit(&self, patience: Duration) -> Result<Admitted<'_>, Error> {
        let began = Instant::now();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut usize| *running >= self.limit;
        let (mut running, _) =
            self.ended.wait_timeout_while(running, patience, full).unwrap_or_else(PoisonError::into_inner);
        if *running >= self.limit {
            return Err(Error::Overloaded { transactions: *running, waited: began.elapsed() });
        }
        *running += 1;
        Ok(Admitted(self))
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        *self.0.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.ended.notify_one();
    }
}
