//! What clients of sessions have done, as they know it.

use crate::workload::append::End;

/// One thing that a transaction does, or is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// This number was appended to a list.
    Append(u64, u64),
    /// A list was read and held these numbers, besides those that the transaction itself had
    /// appended.
    Read(u64, Vec<u64>),
    /// A row with this id was inserted.
    Insert(Rows, u64),
    /// Rows with these ids were removed.
    Remove(Rows, Vec<u64>),
}

/// A table whose rows have ids that no two transactions give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rows {
    /// `transfer`
    Transfers,
    /// `ticket`
    Tickets,
    /// `child`
    Children,
}

impl Rows {
    /// All of them.
    pub const ALL: [Rows; 3] = [Rows::Transfers, Rows::Tickets, Rows::Children];

    /// The name of the table.
    pub fn table(self) -> &'static str {
        match self {
            Rows::Transfers => "transfer",
            Rows::Tickets => "ticket",
            Rows::Children => "child",
        }
    }
}

/// A transaction of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// Whose it was.
    pub session: u32,
    /// When it began, in nanoseconds of an outside observer.
    pub begin: u64,
    /// When it was answered.
    pub end: u64,
    /// How it ended. [`End::Aborted`] until its client has asked for the commit,
    /// [`End::Unknown`] until that is answered.
    pub how: End,
    /// What it did, as far as it came.
    pub effects: Vec<Effect>,
}

impl Deed {
    /// Whether it writes; a transaction that does not reads at a snapshot, or commits like one that
    /// does.
    pub fn writes(&self) -> bool {
        self.effects.iter().any(|effect| !matches!(effect, Effect::Read(..)))
    }
}

/// What clients of sessions leave behind.
#[derive(Clone, Default, Debug)]
pub struct Deeds {
    /// All of them, each client's in its order.
    pub all: Vec<Deed>,
    /// Numbers of the sequence that were given out, whatever became of the transaction.
    pub numbers: Vec<i64>,
    /// How often each statement was answered, by the word that it is known by, and how often with
    /// an error.
    pub told: std::collections::BTreeMap<(&'static str, String), u64>,
}

impl Deeds {
    /// Takes what another client has left.
    pub(crate) fn join(&mut self, mut other: Deeds) {
        self.all.append(&mut other.all);
        self.numbers.append(&mut other.numbers);
        for (what, count) in other.told {
            *self.told.entry(what).or_default() += count;
        }
    }
}
