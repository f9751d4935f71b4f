//! Admission: a bounded number of transactions runs at a time, and further ones wait.
//!
//! Only client threads, which may block, come here; no shard does.
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

/// Permission to run a transaction. Dropping it admits the next one.
pub(super) struct Admitted<'a>(&'a Admission);

impl Admission {
    pub(super) fn new(limit: usize) -> Admission {
        Admission { running: Mutex::new(0), ended: Condvar::new(), limit }
    }

    /// Waits until the transaction may run, for `patience` at most.
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
