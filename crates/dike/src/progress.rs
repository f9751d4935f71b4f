//! The line that moves while something long goes on.
//!
//! It lives on standard error, so that standard output holds the result and nothing else: one line that is
//! drawn over on a terminal, a plain line every two seconds elsewhere, nothing if that was asked for.

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
    title: &'static str,
    bar: ProgressBar,
    printed: Instant,
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

    /// Says something once.
    pub fn note(self, sentence: &str) {
        if self != Progress::Silent {
            // A standard error that nobody reads is no reason to fail.
            let _ = writeln!(std::io::stderr(), "{sentence}");
        }
    }

    /// Begins a line for something of `length` parts.
    pub fn line(self, title: &'static str, length: u64) -> Line {
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
        bar.set_prefix(title);
        Line { progress: self, title, bar, printed: Instant::now() }
    }
}

impl Line {
    /// Shows how far it is.
    pub fn show(&mut self, position: u64, message: impl FnOnce() -> String) {
        match self.progress {
            Progress::Silent => {}
            Progress::Live => {
                self.bar.set_message(message());
                self.bar.set_position(position);
            }
            Progress::Plain => {
                if self.printed.elapsed() >= PLAIN_EVERY {
                    self.printed = Instant::now();
                    let _ = writeln!(std::io::stderr(), "{}: {}", self.title, message());
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
