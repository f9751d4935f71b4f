//! The line that moves while a benchmark loads and runs.
//!
//! It lives on standard error, so that standard output holds the result and nothing else. On a terminal it
//! is one line that is drawn over; elsewhere (a log, a pipe) a plain line appears about every two seconds;
//! with `--quiet` nothing at all.
//!
//! The caller samples its counters as often as it likes, ten times a second looks alive, and passes the
//! elapsed time with them; nothing here reads a clock. Rates are those since the sample before, at least
//! [`RATE_OVER`] ago, so that they are current but do not flicker.
//!
//! Dropping a line removes it, also when the run ends in an error.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::model::per;
use super::units;

/// Shortest time over which a live rate is taken.
const RATE_OVER: Duration = Duration::from_millis(500);
/// Time between plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(2);

/// Where progress goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nowhere.
    Silent,
    /// Lines to standard error.
    Plain,
    /// One moving line on the terminal.
    Live,
}

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

/// The progress of one load or one run.
pub struct Line {
    progress: Progress,
    title: String,
    begun: Instant,
    bar: ProgressBar,
    printed: Option<Duration>,
    /// The sample that the live rate is taken from, and that rate.
    base: RunSample,
    rate: f64,
    abort_share: f64,
}

impl Progress {
    /// Chooses for standard error as it is.
    pub fn stderr(quiet: bool) -> Progress {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Progress::Silent,
            (false, true) => Progress::Live,
            (false, false) => Progress::Plain,
        }
    }

    /// Says something once: a warning, the start of a phase.
    pub fn note(self, sentence: impl fmt::Display) {
        if self != Progress::Silent {
            print_line(&sentence.to_string());
        }
    }

    /// Begins a line for something of `length` parts.
    fn line(self, title: impl Into<String>, length: u64) -> Line {
        let title = title.into();
        let bar = match self {
            Progress::Live => {
                ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10))
            }
            _ => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("{prefix} [{bar:12}] {wide_msg}")
            .expect("the template is a constant that parses")
            .progress_chars("━╸ ");
        bar.set_style(style);
        bar.set_length(length);
        bar.set_prefix(title.clone());
        Line {
            progress: self,
            title,
            begun: Instant::now(),
            bar,
            printed: None,
            base: RunSample::default(),
            rate: 0.0,
            abort_share: 0.0,
        }
    }

    /// Begins a line for loading so many units.
    pub fn load(self, title: impl Into<String>, units: u64) -> Line {
        self.line(title, units)
    }

    /// Begins a line for running that long, warm-up included.
    pub fn run(self, title: impl Into<String>, length: Duration) -> Line {
        self.line(title, length.as_millis() as u64)
    }
}

impl Line {
    /// Shows how far loading is.
    pub fn loading(&mut self, sample: LoadSample) {
        let rate = per(sample.memory_bytes as f64, sample.elapsed.as_secs_f64());
        let message = format!(
            "{}/{} loaded · {} rows · {} · {}/s",
            units::thousands(sample.units),
            units::thousands(self.bar.length().unwrap_or(0)),
            units::thousands(sample.rows),
            units::bytes(sample.memory_bytes),
            units::bytes(rate as u64)
        );
        self.show(sample.units, sample.elapsed, message);
    }

    /// Shows how far a run is; `warm` tells that the warm-up is over.
    pub fn running(&mut self, sample: RunSample, warm: bool) {
        let since = sample.elapsed.saturating_sub(self.base.elapsed);
        if since >= RATE_OVER {
            let committed = sample.committed.saturating_sub(self.base.committed) as f64;
            let aborted = sample.aborted.saturating_sub(self.base.aborted) as f64;
            self.rate = per(committed, since.as_secs_f64());
            self.abort_share = per(aborted, committed + aborted);
            self.base = sample;
        }
        let message = format!(
            "{:.1}/{:.1} s · {}/s · {} aborted · {}{}",
            sample.elapsed.as_secs_f64(),
            self.bar.length().unwrap_or(0) as f64 / 1e3,
            units::rate(self.rate),
            units::percent(self.abort_share),
            units::bytes(sample.memory_bytes),
            if warm { "" } else { " · warming up" }
        );
        self.show(sample.elapsed.as_millis() as u64, sample.elapsed, message);
    }

    /// Shows that so many steps of all are done, and what is next.
    pub fn steps(&mut self, done: u64, all: u64, next: &str) {
        let elapsed = self.begun.elapsed();
        self.show(done, elapsed, format!("{done}/{all} · {next}"));
        // A step can take long: the line is there while it does.
        self.bar.tick();
    }

    /// Shows a phase that has no samples: checking a history, auditing.
    pub fn busy(&mut self, what: impl Into<String>) {
        self.bar.set_message(what.into());
        self.bar.tick();
    }

    fn show(&mut self, position: u64, elapsed: Duration, message: String) {
        match self.progress {
            Progress::Silent => {}
            Progress::Live => {
                self.bar.set_message(message);
                self.bar.set_position(position);
            }
            Progress::Plain => {
                if elapsed >= self.printed.unwrap_or_default() + PLAIN_EVERY {
                    self.printed = Some(elapsed);
                    print_line(&format!("{}: {message}", self.title));
                }
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A standard error that nobody reads is no reason to fail.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_rate_is_that_since_the_last_sample_half_a_second_ago() {
        let mut line = Progress::Silent.run("occ/dst", Duration::from_secs(10));
        let at = |ms, committed, aborted| RunSample {
            elapsed: Duration::from_millis(ms),
            committed,
            aborted,
            memory_bytes: 1 << 20,
        };
        line.running(at(1000, 100_000, 0), false);
        assert_eq!((line.rate, line.abort_share), (100_000.0, 0.0));
        line.running(at(1100, 110_000, 0), true);
        assert_eq!(line.rate, 100_000.0);
        line.running(at(2000, 250_000, 50_000), true);
        assert_eq!((line.rate, line.abort_share), (150_000.0, 0.25));
    }

    #[test]
    fn a_plain_line_appears_every_two_seconds() {
        let mut line = Progress::Plain.load("loading tpcc", 4);
        let mut printed = Vec::new();
        for ms in (0..=5000).step_by(500) {
            line.loading(LoadSample { elapsed: Duration::from_millis(ms), ..LoadSample::default() });
            printed.push(line.printed);
        }
        printed.dedup();
        assert_eq!(printed, [None, Some(Duration::from_secs(2)), Some(Duration::from_secs(4))]);
    }
}
