//! The line that moves while something long goes on.
//!
//! It lives on standard error, so that standard output holds the result and nothing else. On a
//! terminal it is one line that is drawn over; elsewhere (a log, a pipe) a plain line appears about
//! every two seconds; if that was asked for, nothing at all. Dropping a line removes it, also when
//! what it shows ends in an error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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

/// The progress of one thing.
pub struct Line {
    progress: Progress,
    title: String,
    bar: ProgressBar,
    begun: Instant,
    /// Since `begun`, when the last plain line was printed.
    printed: Duration,
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
    pub fn note(self, sentence: &str) {
        if self != Progress::Silent {
            // A standard error that nobody reads is no reason to fail.
            let _ = writeln!(std::io::stderr(), "{sentence}");
        }
    }

    /// Begins a line for something of `length` parts.
    pub fn line(self, title: impl Into<String>, length: u64) -> Line {
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
        bar.set_prefix(title.clone());
        Line { progress: self, title, bar, begun: Instant::now(), printed: Duration::ZERO }
    }
}

impl Line {
    /// Shows how many parts are done. The caller samples as often as it likes: ten times a second
    /// looks alive.
    pub fn show(&mut self, position: u64, message: impl FnOnce() -> String) {
        match self.progress {
            Progress::Silent => {}
            Progress::Live => {
                self.bar.set_position(position);
                // This draws.
                self.bar.set_message(message());
            }
            Progress::Plain => {
                if self.is_due(self.begun.elapsed()) {
                    self.progress.note(&format!("{}: {}", self.title, message()));
                }
            }
        }
    }

    /// Shows a step that can take long and says nothing meanwhile: on a terminal the line is there
    /// while it does.
    pub fn busy(&mut self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Whether a plain line is due so long after the beginning; it is taken to be printed then.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let due = elapsed >= self.printed + PLAIN_EVERY;
        if due {
            self.printed = elapsed;
        }
        due
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_line_appears_every_two_seconds() {
        let mut line = Progress::Plain.line("loading", 4);
        let due = |ms: &u64| line.is_due(Duration::from_millis(*ms));
        let printed: Vec<u64> = (0..=5000).step_by(500).filter(due).collect();
        assert_eq!(printed, [2000, 4000]);
    }

    #[test]
    fn nothing_is_put_together_for_nobody() {
        let mut line = Progress::Silent.line("loading", 4);
        line.show(1, || unreachable!("nobody looks"));
    }
}
