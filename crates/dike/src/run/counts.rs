//! How what becomes of attempts is counted: kinds and causes by number, as [`Recorder`]s want them,
//! and the running sums of the line that moves.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::config::Config;
use crate::metrics::recorder::Layout;
use crate::report::live::Counters;
use crate::target::Cause;
use crate::transactions::Transaction;

/// What a roll-back is called that a transaction's inputs want (clause 2.4.1.4).
pub const INTENDED: &str = "intended";

/// Causes for which an attempt fails that are no conflicts.
const FAILURES: [Cause; 8] = [
    Cause::Unreachable,
    Cause::Unavailable,
    Cause::Disconnected,
    Cause::Timeout,
    Cause::InDoubt,
    Cause::Constraint,
    Cause::Unexpected,
    Cause::Other,
];

/// Causes for which it is tried again.
const CONFLICTS: [Cause; 3] = [Cause::Serialization, Cause::Deadlock, Cause::LockTimeout];

/// The number of a roll-back that was intended, among aborts.
pub const INTENDED_NUMBER: usize = CONFLICTS.len();

/// What the recorders of this run count.
pub fn layout(config: &Config) -> Layout {
    let names = |causes: &[Cause]| causes.iter().map(|cause| cause.name().to_owned()).collect::<Vec<_>>();
    let mut aborts = names(&CONFLICTS);
    aborts.push(INTENDED.to_owned());
    Layout {
        kinds: kinds(config).map(|transaction| transaction.name().to_owned()).collect(),
        aborts,
        errors: names(&FAILURES),
        warm_up_seconds: config.run.warmup_s,
    }
}

/// The number of each transaction, by its place in [`Transaction::ALL`]; 0 for those that are never
/// run.
pub fn numbers(config: &Config) -> [usize; 9] {
    let mut numbers = [0; 9];
    kinds(config).enumerate().for_each(|(number, transaction)| numbers[transaction as usize] = number);
    numbers
}

fn kinds(config: &Config) -> impl Iterator<Item = Transaction> + '_ {
    Transaction::ALL.into_iter().filter(|&transaction| config.mix.ever(transaction))
}

/// The number of a cause: among aborts if it is a conflict, else among errors.
pub fn number_of(cause: Cause) -> usize {
    let causes: &[Cause] = if cause.is_conflict() { &CONFLICTS } else { &FAILURES };
    causes.iter().position(|&known| known == cause).expect("every cause is in one of the lists")
}

/// Sums of all terminals since the run's start.
#[derive(Default)]
pub struct Running {
    pub committed: AtomicU64,
    pub aborted: AtomicU64,
    pub failed: AtomicU64,
    pub offline: AtomicU32,
    /// Latencies in microseconds since somebody has looked.
    latencies_us: Mutex<Vec<u32>>,
}

impl Running {
    /// A transaction has committed.
    pub fn commit(&self, latency_ns: u64) {
        self.committed.fetch_add(1, Relaxed);
        let us = u32::try_from(latency_ns / 1_000).unwrap_or(u32::MAX);
        self.latencies_us.lock().expect("nobody panics with it").push(us);
    }

    /// The sums now.
    pub fn counters(&self, elapsed_ns: u64) -> Counters {
        Counters {
            elapsed_ns,
            committed: self.committed.load(Relaxed),
            aborted: self.aborted.load(Relaxed),
            failed: self.failed.load(Relaxed),
            offline: self.offline.load(Relaxed),
        }
    }

    /// The 99th percentile of latencies since this was asked last.
    pub fn p99_us(&self) -> Option<u64> {
        let mut latencies = std::mem::take(&mut *self.latencies_us.lock().expect("nobody panics with it"));
        let rank = (latencies.len() * 99).div_ceil(100).checked_sub(1)?;
        Some((*latencies.select_nth_unstable(rank).1).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_number_of_its_own() {
        let layout = layout(&Config::default());
        for cause in CONFLICTS {
            assert!(cause.is_conflict());
            assert_eq!(layout.aborts[number_of(cause)], cause.name());
        }
        for cause in FAILURES {
            assert!(!cause.is_conflict());
            assert_eq!(layout.errors[number_of(cause)], cause.name());
        }
        assert_eq!(layout.aborts[INTENDED_NUMBER], INTENDED);
    }

    #[test]
    fn the_percentile_is_of_what_came_since_the_last_look() {
        let running = Running::default();
        assert_eq!(running.p99_us(), None);
        (1..=200).for_each(|us| running.commit(us * 1_000));
        assert_eq!(running.p99_us(), Some(198));
        running.commit(5_000);
        assert_eq!((running.p99_us(), running.p99_us()), (Some(5), None));
    }
}
