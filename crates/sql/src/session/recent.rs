//! Which session of a node has written a key lately: to tell a client who was in its way, and to
//! know early that a transaction will be refused.
//!
//! A transaction that has committed notes the keys that it has written, with its timestamp, in the
//! ring of its session's [stripe]. A transaction that fails because a key has changed looks into
//! all of them. Nothing correct rests on it: sessions of other nodes note nothing here, large
//! transactions note their first keys only, and what is old makes room for what is new.
//!
//! The timestamps are kept a second time, in slots by the hash of the key, each with that of the
//! last key: whether a row has been written since a transaction's snapshot is asked each time that
//! one is reserved.
//!
//! [stripe]: super::stripes

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::stripes::Stripes;
use crate::store::Space;

/// Maximum number of writes that a stripe keeps.
const WRITES_MAX: usize = 256;

/// Maximum number of writes that are kept of one transaction.
const WRITES_OF_ONE_MAX: usize = 64;

/// Maximum length of a key that is kept, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// Bits of the number of a slot.
const SLOT_BITS: u32 = 12;

/// A session that has written.
#[derive(Clone, Debug)]
pub(super) struct Author {
    /// Its number.
    pub(super) session: u32,
    /// What it calls itself.
    pub(super) application: Arc<str>,
}

/// A write of a transaction that has committed.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// Where.
    pub(super) space: Space,
    /// What was written.
    pub(super) key: Vec<u8>,
    /// The session that wrote it.
    pub(super) author: Author,
    /// The timestamp of the transaction.
    pub(super) stamp: u64,
}

/// The last write of the keys that share a slot. Both change one after the other, so they may be of
/// different writes for a moment.
#[derive(Default)]
struct Last {
    hash: AtomicU64,
    stamp: AtomicU64,
}

/// The last writes of a node's sessions.
pub(super) struct Recent {
    writes: Stripes<VecDeque<Write>>,
    slots: Box<[Last]>,
}

impl Default for Recent {
    fn default() -> Recent {
        let slots = (0..1 << SLOT_BITS).map(|_| Last::default()).collect();
        Recent { writes: Stripes::default(), slots }
    }
}

impl Recent {
    /// A transaction has committed that has written these keys.
    pub(super) fn note(&self, author: &Author, stamp: u64, keys: impl Iterator<Item = (Space, Vec<u8>)>) {
        let mut kept = Vec::new();
        for (space, key) in keys {
            if let Some((slot, hash)) = self.slot(&key) {
                slot.hash.store(hash, Relaxed);
                slot.stamp.store(stamp, Relaxed);
            }
            if key.len() <= KEY_BYTES_MAX && kept.len() < WRITES_OF_ONE_MAX {
                kept.push(Write { space, key, author: author.clone(), stamp });
            }
        }
        if kept.is_empty() {
            return;
        }
        self.writes.with(author.session, |writes| {
            for write in kept {
                if writes.len() >= WRITES_MAX {
                    writes.pop_front();
                }
                writes.push_back(write);
            }
        });
    }

    /// The slot of a key, and its hash.
    fn slot(&self, key: &[u8]) -> Option<(&Last, u64)> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let place = usize::try_from(hash >> (u64::BITS - SLOT_BITS)).ok()?;
        Some((self.slots.get(place)?, hash))
    }

    /// Whether a session of this node is known to have written a key that this snapshot does not see.
    pub(super) fn is_newer(&self, snapshot: u64, key: &[u8]) -> bool {
        let slot = self.slot(key);
        slot.is_some_and(|(slot, hash)| {
            slot.stamp.load(Relaxed) > snapshot && slot.hash.load(Relaxed) == hash
        })
    }

    /// The last write of one of these keys that a snapshot does not see.
    pub(super) fn last(&self, snapshot: u64, is_it: impl Fn(Space, &[u8]) -> bool) -> Option<Write> {
        let mut last: Option<Write> = None;
        self.writes.each(|writes| {
            for write in writes {
                let is_later = write.stamp > last.as_ref().map_or(snapshot, |last| last.stamp);
                if is_later && is_it(write.space, &write.key) {
                    last = Some(write.clone());
                }
            }
        });
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_is_found_that_a_snapshot_does_not_see() {
        let recent = Recent::default();
        let author = |session| Author { session, application: Arc::from("") };
        let key = |key: u8| (Space::Parted, vec![key]);
        recent.note(&author(1), 10, [key(1), key(2)].into_iter());
        recent.note(&author(2), 20, [key(2)].into_iter());
        let who = |snapshot, key: u8| {
            let write = recent.last(snapshot, |_, written| written == [key]);
            write.map(|write| (write.author.session, write.stamp))
        };
        assert_eq!(who(5, 1), Some((1, 10)));
        assert_eq!(who(10, 1), None);
        assert_eq!(who(5, 2), Some((2, 20)), "the last one");
        let many = (0..u16::MAX).map(|key| (Space::Parted, key.to_be_bytes().to_vec()));
        (0..100).for_each(|stamp| recent.note(&author(17), 100 + stamp, many.clone()));
        assert_eq!(who(5, 1), None, "what is old makes room");
        assert_eq!(who(5, 2), Some((2, 20)), "but not in other stripes");
    }

    #[test]
    fn a_key_is_newer_than_the_snapshots_before_its_last_write() {
        let recent = Recent::default();
        let author = Author { session: 1, application: Arc::from("") };
        let key = |number: u32| number.to_be_bytes().to_vec();
        for stamp in [10, 20, 30] {
            recent.note(&author, stamp, [(Space::Parted, key(7))].into_iter());
        }
        assert!(recent.is_newer(29, &key(7)) && !recent.is_newer(30, &key(7)));
        let others = (0..100_000).filter(|&number| number != 7 && recent.is_newer(0, &key(number)));
        assert_eq!(others.count(), 0, "keys that share its slot are others");
        let long = vec![7; KEY_BYTES_MAX + 1];
        let many = (0..WRITES_OF_ONE_MAX).map(|_| key(1)).chain([long.clone()]);
        recent.note(&author, 40, many.map(|key| (Space::Parted, key)));
        assert!(recent.is_newer(39, &long), "keys for which the ring has no room have slots");
    }
}
