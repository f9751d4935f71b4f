//! Records and their versions.
//!
//! A record is a small header: the mark, the newest version, a lock word, and the head of a chain of older
//! versions. Waiters and readers of a lock live in a side table ([`crate::Lock`]); what they need of the
//! header is one word that is zero when nobody holds it.
//!
//! Older versions are nodes of a slab, newest first. A record is *empty* before its first install, while an
//! inserter holds its lock; a deletion installs a *tombstone*, a version without a value.

use plimsoll_types::Timestamp;

use crate::Mark;

/// Position of a record in the lock table plus one; 0 = unlocked.
type LockWord = u32;

const STATE: u32 = 0b11 << 30;
const EMPTY: u32 = 0 << 30;
const PRESENT: u32 = 1 << 30;
const TOMBSTONE: u32 = 2 << 30;
/// Some version below the oldest of the chain was dropped.
const TRIMMED: u32 = 1 << 29;
/// The garbage queue holds an entry for this record.
const QUEUED: u32 = 1 << 28;
const LEN: u32 = QUEUED - 1;

/// The longest value, in bytes.
pub const VALUE_MAX: usize = LEN as usize;

/// One record's header.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<M: Mark> {
    /// Upper bound of the timestamps of everything that has read or written this record. In ordered tables
    /// the mark of the covering leaf counts as well.
    pub mark: M,
    /// Stamp of the newest version. [`Timestamp::MAX`] in a row that was unlinked, so that nobody who
    /// remembers it mistakes the row's next use for what he read.
    pub(crate) stamp: Timestamp,
    pub(crate) lock: LockWord,
    /// Position in the version slab plus one; 0 = no older version.
    pub(crate) older: u32,
    pub(crate) value: u32,
    /// State, flags and length of the newest value.
    pub(crate) meta: u32,
    pub(crate) _aligned: [M::Aligned; 0],
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
    pub(crate) fn len(&self) -> Option<usize> {
        (self.meta & STATE == PRESENT).then_some((self.meta & LEN) as usize)
    }
}

impl<M: Mark> Record<M> {
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
    pub(crate) fn len(&self) -> usize {
        (self.meta & LEN) as usize
    }

    #[inline]
    pub(crate) fn set(&mut self, stamp: Timestamp, value: Option<(u32, usize)>) {
        self.stamp = stamp;
        self.mark.raise(stamp);
        let flags = self.meta & (TRIMMED | QUEUED);
        match value {
            Some((handle, len)) => {
                self.value = handle;
                self.meta = flags | PRESENT | len as u32;
            }
            None => {
                self.value = 0;
                self.meta = flags | TOMBSTONE;
            }
        }
    }

    /// The newest version as a node of the chain.
    #[inline]
    pub(crate) fn as_version(&self) -> Version {
        Version { stamp: self.stamp, older: self.older, value: self.value, meta: self.meta & (STATE | LEN) }
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
    fn a_record_with_a_mark_is_half_a_cache_line_and_never_on_two() {
        assert_eq!(align_of::<Record<Timestamp>>(), 32);
        assert_eq!(size_of::<Record<Timestamp>>(), 32);
        assert_eq!(size_of::<Record<()>>(), 24);
        assert_eq!(size_of::<Version>(), 24);
    }
}
