//! The ends of long keys.

use std::collections::HashMap;

use plimsoll_types::Key;

use crate::RowId;

/// The tails of the keys of a table's rows, for those rows whose key is longer than its head.
#[derive(Debug, Default)]
pub struct Tails {
    tails: HashMap<RowId, Box<[u8]>>,
}

impl Tails {
    /// The tail of a row's key.
    pub fn get(&self, row: RowId) -> Option<&[u8]> {
        self.tails.get(&row).map(|tail| &**tail)
    }

    /// Remembers the tail of a new row's key, if it has one. Returns the bytes taken.
    pub fn insert(&mut self, row: RowId, key: &Key) -> usize {
        let Some(tail) = key.tail() else { return 0 };
        self.tails.insert(row, tail.into());
        tail.len()
    }

    /// Forgets an unlinked row. Returns the bytes freed.
    pub fn remove(&mut self, row: RowId) -> usize {
        if self.tails.is_empty() {
            return 0;
        }
        self.tails.remove(&row).map_or(0, |tail| tail.len())
    }

    /// Whether the row has this key, given that the heads agree.
    #[inline]
    pub fn matches(&self, row: RowId, key: &Key) -> bool {
        match key.tail() {
            None => true,
            Some(tail) => self.get(row) == Some(tail),
        }
    }
}
