//! Planted bugs, to show that the tests of this crate bite. Outside of the tests of this crate the
//! answer is a constant, and the question compiles to nothing.

/// A rule that can be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// What a start has read is synced, but not written again.
    TailNotRewritten,
    /// A batch counts if it is whole, whichever segment it was written for and whatever is before
    /// it.
    ChainUnchecked,
    /// A sync that failed is done again as it is.
    SyncRepeated,
    /// The first batch that is not whole is the end of the log, whatever is behind it.
    MiddleCut,
    /// The name of a segment is not synced before its first batch is.
    NameUnsynced,
    /// Some parts of an entry count as the entry.
    PartsCount,
    /// After entries whose fate is in doubt the log goes on behind them.
    DoubtKept,
    /// A later segment does not void what earlier ones have of the same indexes.
    OverlapKept,
    /// What was a segment once, but was not begun anew, stays and is used again.
    UnbegunReused,
}

#[cfg(test)]
pub(crate) use switch::{plant, planted};

/// Whether this bug is planted: never, outside of tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn planted(_: Mistake) -> bool {
    false
}

#[cfg(test)]
mod switch {
    use std::cell::Cell;

    use super::Mistake;

    impl Mistake {
        pub(crate) const ALL: [Mistake; 9] = [
            Mistake::TailNotRewritten,
            Mistake::ChainUnchecked,
            Mistake::SyncRepeated,
            Mistake::MiddleCut,
            Mistake::NameUnsynced,
            Mistake::PartsCount,
            Mistake::DoubtKept,
            Mistake::OverlapKept,
            Mistake::UnbegunReused,
        ];
    }

    thread_local! {
        static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread, or removes it.
    pub(crate) fn plant(mistake: Option<Mistake>) {
        PLANTED.set(mistake);
    }

    /// Whether this bug is planted in this thread.
    pub(crate) fn planted(mistake: Mistake) -> bool {
        PLANTED.get() == Some(mistake)
    }
}
