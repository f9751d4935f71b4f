//! What the line that moves while a benchmark loads and runs says.
//!
//! The caller samples its counters as often as it likes and passes the elapsed time with them;
//! nothing here reads a clock. Rates are those since the sample before, at least `RATE_OVER` ago,
//! so that they are current but do not flicker.

use std::time::Duration;

use plimsoll_page::progress::{self, Progress};
use plimsoll_page::units;

use super::model::per;

/// Shortest time over which a live rate is taken.
const RATE_OVER: Duration = Duration::from_millis(500);

/// How far loading is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadSample {
    /// Since loading began.
    pub elapsed: Duration,
    /// Units loaded: warehouses, blocks of accounts.
    pub units: u64,
    /// Rows loaded.
    pub rows: u64,
    /// Memory that the database holds.
    pub memory_bytes: u64,
}

/// How far a run is. Counters count from the start of the run, warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunSample {
    /// Since the run began.
    pub elapsed: Duration,
    /// Transactions committed.
    pub committed: u64,
    /// Attempts that concurrency control aborted.
    pub aborted: u64,
    /// Memory that the database holds.
    pub memory_bytes: u64,
}

/// The progress of loading.
pub struct LoadLine {
    line: progress::Line,
    units: u64,
}

/// The progress of a run.
pub struct RunLine {
    line: progress::Line,
    length: Duration,
    /// The sample that the live rate is taken from, and that rate.
    base: RunSample,
    rate: f64,
    abort_share: f64,
}

impl LoadLine {
    /// Begins a line for loading `units` units.
    pub fn new(progress: Progress, title: impl Into<String>, units: u64) -> LoadLine {
        LoadLine { line: progress.line(title, units), units }
    }

    /// Shows how far loading is.
    pub fn show(&mut self, sample: LoadSample) {
        let all = self.units;
        self.line.show(sample.units, || {
            let rate = per(sample.memory_bytes as f64, sample.elapsed.as_secs_f64());
            format!(
                "{}/{} loaded · {} rows · {} · {}/s",
                units::thousands(sample.units),
                units::thousands(all),
                units::thousands(sample.rows),
                units::bytes(sample.memory_bytes),
                units::bytes(rate as u64)
            )
        });
    }
}

impl RunLine {
    /// Begins a line for running that long, warm-up included.
    pub fn new(progress: Progress, title: impl Into<String>, length: Duration) -> RunLine {
        let line = progress.line(title, length.as_millis() as u64);
        RunLine { line, length, base: RunSample::default(), rate: 0.0, abort_share: 0.0 }
    }

    /// Shows how far a run is; `warm` tells that the warm-up is over.
    pub fn show(&mut self, sample: RunSample, warm: bool) {
        let since = sample.elapsed.saturating_sub(self.base.elapsed);
        if since >= RATE_OVER {
            let committed = sample.committed.saturating_sub(self.base.committed) as f64;
            let aborted = sample.aborted.saturating_sub(self.base.aborted) as f64;
            self.rate = per(committed, since.as_secs_f64());
            self.abort_share = per(aborted, committed + aborted);
            self.base = sample;
        }
        self.line.show(sample.elapsed.as_millis() as u64, || {
            format!(
                "{:.1}/{:.1} s · {}/s · {} aborted · {}{}",
                sample.elapsed.as_secs_f64(),
                self.length.as_secs_f64(),
                units::rate(self.rate),
                units::percent(self.abort_share),
                units::bytes(sample.memory_bytes),
                if warm { "" } else { " · warming up" }
            )
        });
    }

    /// Shows a phase that has no samples: checking a history, auditing.
    pub fn busy(&mut self, what: &str) {
        self.line.busy(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_rate_is_that_since_the_last_sample_half_a_second_ago() {
        let mut line = RunLine::new(Progress::Silent, "occ/dst", Duration::from_secs(10));
        let at = |ms, committed, aborted| RunSample {
            elapsed: Duration::from_millis(ms),
            committed,
            aborted,
            memory_bytes: 1 << 20,
        };
        line.show(at(1000, 100_000, 0), false);
        assert_eq!((line.rate, line.abort_share), (100_000.0, 0.0));
        line.show(at(1100, 110_000, 0), true);
        assert_eq!(line.rate, 100_000.0);
        line.show(at(2000, 250_000, 50_000), true);
        assert_eq!((line.rate, line.abort_share), (150_000.0, 0.25));
    }
}
