//! Marks: what a timestamp scheme keeps beside each record, leaf and absent cell.

use plimsoll_types::Timestamp;

/// An upper bound of the timestamps of everything that has read or written an item, or nothing at
/// all for schemes that do without. Two implementations: [`Timestamp`] (DST) and `()`.
pub trait Mark: Copy + Default + Send + std::fmt::Debug + 'static {
    /// Raises the mark to at least `to`; marks never fall.
    fn raise(&mut self, to: Timestamp);
    /// The mark; [`Timestamp::ZERO`] if none is kept.
    fn get(self) -> Timestamp;
}

impl Mark for Timestamp {
    #[inline]
    fn raise(&mut self, to: Timestamp) {
        // A mark that is high enough is not stored again: the line stays clean.
        if *self < to {
            *self = to;
        }
    }

    #[inline]
    fn get(self) -> Timestamp {
        self
    }
}

impl Mark for () {
    #[inline]
    fn raise(&mut self, _: Timestamp) {}

    #[inline]
    fn get(self) -> Timestamp {
        Timestamp::ZERO
    }
}
