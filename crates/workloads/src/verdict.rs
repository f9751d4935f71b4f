//! What a condition that is asked many times comes to.

use crate::Check;

/// Counts how often something was true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    asked: u64,
    violated: u64,
    /// The first violation.
    first: String,
}

impl Verdict {
    /// Expects this, or says what is so instead.
    pub(crate) fn expect(&mut self, ok: bool, otherwise: impl FnOnce() -> String) {
        self.asked += 1;
        if !ok {
            if self.violated == 0 {
                self.first = otherwise();
            }
            self.violated += 1;
        }
    }

    /// Expects two numbers to be equal.
    pub(crate) fn same(&mut self, what: impl std::fmt::Display, a: i64, b: impl Into<i64>) {
        let b = b.into();
        self.expect(a == b, || format!("{what}: {a} and {b}"));
    }

    /// Adds what was judged elsewhere.
    pub(crate) fn join(&mut self, other: &Verdict) {
        if self.violated == 0 {
            self.first.clone_from(&other.first);
        }
        self.asked += other.asked;
        self.violated += other.violated;
    }

    /// The verdict, by this name.
    pub(crate) fn check(&self, name: impl Into<String>) -> Check {
        let detail = match self.violated {
            0 => format!("holds for {}", self.asked),
            _ => format!("violated by {} of {}, first: {}", self.violated, self.asked, self.first),
        };
        Check { name: name.into(), ok: self.violated == 0, detail }
    }
}
