//! What to check, and the verdict.

use std::fmt;

/// How many violations of one kind a [`Report`] spells out; the rest are only counted.
pub const KEPT_PER_KIND: usize = 3;

/// What a history promises. Without any option set it promises to be serializable, nothing more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Timestamps and stamps are numbers of one order, which is the order of serialization (DST,
    /// GTS): I1, I2 and I4 hold and a replay in that order explains every read.
    pub scalar: bool,
    /// Order agrees with the clock. With `scalar`: whatever begins after an RW was answered is
    /// ordered after that RW. Otherwise: the history is strictly serializable, ROs included.
    pub realtime: bool,
    /// The transactions of a session are ordered as the session ran them: it reads its writes, and
    /// its reads do not go back in time.
    pub sessions: bool,
    /// Nothing was in flight when recording ended: every install belongs to a recorded transaction,
    /// and every transaction has installed as much as its coordinator says.
    pub complete: bool,
}

/// One thing that must not have happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The name of the anomaly or of the violated rule, e.g. `"write skew (G2-item)"`.
    pub kind: &'static str,
    /// What happened, in words.
    pub detail: String,
}

/// The verdict on a history.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Committed transactions judged.
    pub transactions: u64,
    /// Edges of the dependency graph.
    pub edges: u64,
    /// The violations found, at most [`KEPT_PER_KIND`] of a kind, in the order of the checks.
    pub violations: Vec<Violation>,
    /// How many violations were found altogether, by kind, in the order in which the kinds turned
    /// up.
    pub totals: Vec<(&'static str, u64)>,
}

impl Report {
    /// Whether nothing was found.
    pub fn passed(&self) -> bool {
        self.totals.is_empty()
    }

    /// How many violations were found altogether.
    pub fn total(&self) -> u64 {
        self.totals.iter().map(|(_, total)| total).sum()
    }

    /// Counts a violation, and describes it unless there are enough of its kind already.
    pub(crate) fn add(&mut self, kind: &'static str, detail: impl FnOnce() -> String) {
        let seen = match self.totals.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, total)) => {
                *total += 1;
                *total
            }
            None => {
                self.totals.push((kind, 1));
                1
            }
        };
        if seen <= KEPT_PER_KIND as u64 {
            self.violations.push(Violation { kind, detail: detail() });
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

impl fmt::Display for Report {
    /// One line with the sizes, one for each violation spelt out, one for each kind cut short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed() { "passed" } else { "FAILED" };
        write!(f, "{verdict}: {} transactions, {} dependencies", self.transactions, self.edges)?;
        for violation in &self.violations {
            write!(f, "\n{violation}")?;
        }
        for (kind, total) in &self.totals {
            if *total > KEPT_PER_KIND as u64 {
                write!(f, "\n{kind}: {} more", total - KEPT_PER_KIND as u64)?;
            }
        }
        Ok(())
    }
}
