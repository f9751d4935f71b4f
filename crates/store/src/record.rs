//! Records and their versions.
//!
//! A record is one cache line: the mark, the newest version, a lock word, the head of a chain of
//! older versions, the head of its row's key, and the newest value itself if that is short. So
//! whoever follows the index to a record has waited for memory once when he knows that it is the
//! right one, marks it, and reads it. Waiters and readers of a lock live in a side table
//! ([`crate::Lock`]); what they need of the record is one word that is zero when nobody holds it.
//!
//! Older versions are nodes of a slab, newest first. A record is *empty* before its first install,
//! while an inserter holds its lock; a deletion installs a *tombstone*, a version without a value.
//! Where versions between two others were dropped, a node without a value says so.

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Key, Timestamp};

use crate::Mark;
use crate::values::Values;

/// Position of a record in the lock table plus one; 0 = unlocked.
type LockWord = u32;

const STATE: u32 = 0b11 << 30;
const EMPTY: u32 = 0 << 30;
const PRESENT: u32 = 1 << 30;
const TOMBSTONE: u32 = 2 << 30;
/// Of a node of the chain: it stands for versions that were dropped. Its stamp is that of the oldest
/// of them.
const GONE: u32 = 3 << 30;
/// Some version below the oldest of the chain was dropped.
const TRIMMED: u32 = 1 << 29;
/// The garbage queue holds an entry for this record; a held snapshot keeps this node.
const QUEUED: u32 = 1 << 28;
const LEN: u32 = QUEUED - 1;

/// The longest value, in bytes.
pub const VALUE_MAX: usize = LEN as usize;
/// The longest newest value that is in its record, in bytes.
const SHORT_MAX: usize = 16;

/// One record.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Record<M: Mark> {
    /// Upper bound of the timestamps of everything that has read or written this record. In ordered
    /// tables the mark of the covering leaf counts as well.
    pub mark: M,
    /// Stamp of the newest version. [`Timestamp::MAX`] in a row that was unlinked, so that nobody
    /// who remembers it mistakes the row's next use for what he read.
    pub(crate) stamp: Timestamp,
    pub(crate) lock: LockWord,
    /// Position in the version slab plus one; 0 = no older version.
    pub(crate) older: u32,
    /// Where the newest value is, if it is a long one.
    value: u32,
    /// State, flags and length of the newest value.
    pub(crate) meta: u32,
    /// The head of the row's key.
    pub(crate) head: u128,
    short: [u8; SHORT_MAX],
}

/// An older version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Version {
    pub stamp: Timestamp,
    pub older: u32,
    pub value: u32,
    pub meta: u32,
}

impl Version {
    fn len(&self) -> Option<usize> {
        (self.meta & STATE == PRESENT).then_some((self.meta & LEN) as usize)
    }

    /// Its value; `None` of a tombstone.
    #[inline]
    pub(crate) fn value<'a>(&self, values: &'a Values) -> Option<&'a [u8]> {
        self.len().map(|len| values.get(self.value, len))
    }

    /// Gives its value's memory back.
    pub(crate) fn free(&self, values: &mut Values) {
        if let Some(len) = self.len() {
            values.free(self.value, len);
        }
    }

    /// Whether it stands for versions that were dropped.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.meta & STATE == GONE
    }

    /// From now on it stands for versions that were dropped, the oldest of them itself.
    pub(crate) fn set_gone(&mut self) {
        self.meta = GONE;
    }

    /// Whether a snapshot that is held keeps it.
    pub(crate) fn is_kept(&self) -> bool {
        self.meta & QUEUED != 0
    }

    pub(crate) fn set_kept(&mut self, kept: bool) {
        self.meta = if kept { self.meta | QUEUED } else { self.meta & !QUEUED };
    }

    /// Bytes it takes, with its value.
    pub(crate) fn footprint(&self) -> usize {
        size_of::<Version>() + self.len().map_or(0, Values::footprint)
    }
}

impl<M: Mark> Record<M> {
    /// An empty record of a row with such a key.
    pub(crate) fn new(mark: M, key: &Key) -> Record<M> {
        Record { mark, head: key.head(), ..Record::default() }
    }

    /// A record of a row that is not linked any more.
    pub(crate) fn unlinked(head: u128) -> Record<M> {
        Record { head, stamp: Timestamp::MAX, ..Record::default() }
    }

    /// Whether its row is not linked any more. Then it is only read.
    #[inline]
    pub fn is_unlinked(&self) -> bool {
        self.stamp == Timestamp::MAX
    }

    /// The newest version's stamp; meaningless while the record is empty.
    #[inline]
    pub fn stamp(&self) -> Timestamp {
        self.stamp
    }

    /// Whether nothing was ever installed: an insert is under way or was undone.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.meta & STATE == EMPTY
    }

    /// Whether the newest version is a value.
    #[inline]
    pub fn is_present(&self) -> bool {
        self.meta & STATE == PRESENT
    }

    /// Whether the newest version is a deletion.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.meta & STATE == TOMBSTONE
    }

    /// Whether somebody holds a lock on it.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.lock != 0
    }

    #[inline]
    fn len(&self) -> usize {
        (self.meta & LEN) as usize
    }

    /// The newest value, if there is one.
    #[inline]
    pub(crate) fn value<'a>(&'a self, values: &'a Values) -> Option<&'a [u8]> {
        let len = self.len();
        let value = || if len <= SHORT_MAX { &self.short[..len] } else { values.get(self.value, len) };
        self.is_present().then(value)
    }

    /// Makes a version the newest; what was has been hidden or dropped.
    #[inline]
    pub(crate) fn set(&mut self, stamp: Timestamp, value: Option<&[u8]>, values: &mut Values) {
        self.stamp = stamp;
        if !planted(Mutant::UnmarkedInstall) {
            self.mark.raise(stamp);
        }
        self.meta &= TRIMMED | QUEUED;
        match value {
            Some(value) => {
                match self.short.get_mut(..value.len()) {
                    Some(short) => short.copy_from_slice(value),
                    None => self.value = values.store(value),
                }
                self.meta |= PRESENT | value.len() as u32;
            }
            None => self.meta |= TOMBSTONE,
        }
    }

    /// The newest version as a node of the chain, where no value is in its record.
    #[inline]
    pub(crate) fn hide(&self, values: &mut Values) -> Version {
        let short = self.is_present() && self.len() <= SHORT_MAX;
        let value = if short { values.store(&self.short[..self.len()]) } else { self.value };
        Version { stamp: self.stamp, older: self.older, value, meta: self.meta & (STATE | LEN) }
    }

    /// Gives the newest value's memory back.
    #[inline]
    pub(crate) fn drop_newest(&self, values: &mut Values) {
        if self.footprint() > 0 {
            values.free(self.value, self.len());
        }
    }

    /// Bytes that the newest value takes elsewhere.
    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        let long = self.is_present() && self.len() > SHORT_MAX;
        if long { Values::footprint(self.len()) } else { 0 }
    }

    /// Says that its newest version was dropped. Another is installed in the same step.
    pub(crate) fn set_gone(&mut self) {
        self.meta = self.meta & (TRIMMED | QUEUED) | GONE;
    }

    #[inline]
    pub(crate) fn is_trimmed(&self) -> bool {
        self.meta & TRIMMED != 0
    }

    pub(crate) fn set_trimmed(&mut self) {
        self.meta |= TRIMMED;
    }

    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        self.meta & QUEUED != 0
    }

    #[inline]
    pub(crate) fn set_queued(&mut self, queued: bool) {
        if queued {
            self.meta |= QUEUED;
        } else {
            self.meta &= !QUEUED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_cache_line_with_or_without_a_mark() {
        assert_eq!((size_of::<Record<Timestamp>>(), align_of::<Record<Timestamp>>()), (64, 64));
        assert_eq!((size_of::<Record<()>>(), align_of::<Record<()>>()), (64, 64));
        assert_eq!(size_of::<Version>(), 24);
    }
}
