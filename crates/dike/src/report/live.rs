//! The line that moves while a benchmark runs.
//!
//! A pure function of two samples of the run's counters, an older and a newer one, and of what the
//! controls intend and achieve right now. The caller decides how often and where it is shown; over
//! at least half a second between samples a rate is current and does not flicker.
//!
//! ```text
//!  72 s of 300 s  12,480 tx/s  aborts 3.1%  p99 18.2 ms  CI 148 of 150  2 of 180 terminals offline
//! ```

use super::units;
use crate::control::SECOND_NS;

/// Counters since the run's start, of all terminals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Time since the run's start.
    pub elapsed_ns: u64,
    /// Transactions committed.
    pub committed: u64,
    /// Attempts rolled back by the database.
    pub aborted: u64,
    /// Attempts that failed otherwise.
    pub failed: u64,
    /// Terminals that have no connection now.
    pub offline: u32,
}

/// What does not change during a run.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its length in seconds, warm-up included.
    pub seconds: u64,
    /// Seconds of warm-up.
    pub warm_up_seconds: u64,
    /// Terminals of this client.
    pub terminals: u32,
}

/// What else is known right now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now<'a> {
    /// The 99th percentile of latencies between the samples, in microseconds.
    pub p99_us: Option<u64>,
    /// Controls: a short name, intended, achieved.
    pub controls: &'a [(&'a str, f64, f64)],
    /// Faults that are in force.
    pub faults: &'a [&'a str],
}

/// The line, without a line break.
pub fn line(frame: Frame, before: Counters, after: Counters, now: Now<'_>) -> String {
    let seconds = after.elapsed_ns.saturating_sub(before.elapsed_ns) as f64 / SECOND_NS as f64;
    let committed = after.committed.saturating_sub(before.committed);
    let aborted = after.aborted.saturating_sub(before.aborted);
    let failed = after.failed.saturating_sub(before.failed);
    let rate = if seconds > 0.0 { committed as f64 / seconds } else { 0.0 };
    let elapsed = after.elapsed_ns / SECOND_NS;
    let mut parts = vec![format!("{elapsed:>3} s of {} s", frame.seconds)];
    if elapsed < frame.warm_up_seconds {
        parts.push("warming up".to_owned());
    }
    parts.push(format!("{} tx/s", units::rate(rate)));
    if aborted > 0 {
        parts.push(format!("aborts {}", units::percent(aborted as f64 / (committed + aborted) as f64)));
    }
    if failed > 0 {
        parts.push(format!("errors {}/s", units::rate(failed as f64 / seconds.max(1e-9))));
    }
    if let Some(us) = now.p99_us {
        parts.push(format!("p99 {}", units::duration_us(us as f64)));
    }
    for (name, intended, achieved) in now.controls {
        parts.push(format!("{name} {} of {}", units::value(*achieved), units::value(*intended)));
    }
    if after.offline > 0 {
        parts.push(format!("{} of {} terminals offline", after.offline, frame.terminals));
    }
    for fault in now.faults {
        parts.push(format!("[{fault}]"));
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { seconds: 300, warm_up_seconds: 60, terminals: 180 };

    #[test]
    fn the_line_says_rates_since_the_sample_before() {
        let before = Counters { elapsed_ns: 71_500_000_000, committed: 800_000, ..Counters::default() };
        let after = Counters {
            elapsed_ns: 72_000_000_000,
            committed: 806_240,
            aborted: 200,
            offline: 2,
            ..Counters::default()
        };
        let now =
            Now { p99_us: Some(18_200), controls: &[("CI", 150.0, 148.2)], faults: &["network delay n3"] };
        assert_eq!(
            line(FRAME, before, after, now),
            " 72 s of 300 s  12,480 tx/s  aborts 3.1%  p99 18.2 ms  CI 148 of 150  2 of 180 terminals offline  \
             [network delay n3]"
        );
    }

    #[test]
    fn the_warm_up_is_named_and_the_first_sample_divides_by_nothing() {
        let nothing = Counters::default();
        assert_eq!(line(FRAME, nothing, nothing, Now::default()), "  0 s of 300 s  warming up  0 tx/s");
    }
}
