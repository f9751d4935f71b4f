//! Marks: what a timestamp scheme keeps beside each record, leaf and absent cell.

use plimsoll_types::Timestamp;

/// An upper bound of the timestamps of everything that has read or written an item, or nothing at all
/// for schemes that do without. Two implementations: [`Timestamp`] (DST) and `()`.
pub trait Mark: Copy + Default + Send + std::fmt::Debug + 'static {
    /// As aligned as a record with such a mark has to be.
    type Aligned: Copy + Default + Send + std::fmt::Debug + 'static;
    /// Raises the mark to at least `to`; marks never fall.
    fn raise(&mut self, to: Timestamp);
    /// The mark; [`Timestamp::ZERO`] if none is kept.
    fn get(self) -> Timestamp;
}

/// Half a cache line.
#[derive(Clone, Copy, Default, Debug)]
#[repr(align(32))]
pub struct HalfLine;

impl Mark for Timestamp {
    /// A record has 32 bytes. Of those that an allocator aligns to 16, up to half lie on two lines, both to be fetched.
    type Aligned = HalfLine;

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
    type Aligned = ();

    #[inline]
    fn raise(&mut self, _: Timestamp) {}

    #[inline]
    fn get(self) -> Timestamp {
        Timestamp::ZERO
    }
}
