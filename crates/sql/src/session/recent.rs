//! Which session of a node has written a key lately, to tell a client who was in its way.
//!
//! A transaction that has committed notes the keys that it has written, with its timestamp, in the
//! ring of its session's [stripe]. A transaction that fails because a key has changed looks into
//! all of them. Nothing correct rests on it: sessions of other nodes note nothing here, large
//! transactions note their first keys only, and what is old makes room for what is new.
//!
//! [stripe]: super::stripes

use std::collections::VecDeque;
use std::sync::Arc;

use super::stripes::Stripes;
use crate::store::Space;

/// Maximum number of writes that a stripe keeps.
const WRITES_MAX: usize = 256;

/// Maximum number of writes that are kept of one transaction.
const WRITES_OF_ONE_MAX: usize = 64;

/// Maximum length of a key that is kept, in bytes.
const KEY_BYTES_MAX: usize = 256;

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

/// The last writes of a node's sessions.
#[derive(Default)]
pub(super) struct Recent(Stripes<VecDeque<Write>>);

impl Recent {
    /// A transaction has committed that has written these keys.
    pub(super) fn note(&self, author: &Author, stamp: u64, keys: impl Iterator<Item = (Space, Vec<u8>)>) {
        let mut keys = keys.filter(|(_, key)| key.len() <= KEY_BYTES_MAX).take(WRITES_OF_ONE_MAX).peekable();
        if keys.peek().is_none() {
            return;
        }
        self.0.with(author.session, |writes| {
            for (space, key) in keys {
                if writes.len() >= WRITES_MAX {
                    writes.pop_front();
                }
                writes.push_back(Write { space, key, author: author.clone(), stamp });
            }
        });
    }

    /// The last write of one of these keys that a snapshot does not see.
    pub(super) fn last(&self, snapshot: u64, is_it: impl Fn(Space, &[u8]) -> bool) -> Option<Write> {
        let mut last: Option<Write> = None;
        self.0.each(|writes| {
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
}
