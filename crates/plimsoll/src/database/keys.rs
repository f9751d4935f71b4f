//! How operations name their data: columns and ranges of keys.

use std::ops;

use plimsoll_types::{ColumnGroup, Key, TableId};

/// Names a column group; a table stands for its first one, which is often the only one.
pub trait Column {
    /// The column group.
    fn column(self) -> ColumnGroup;
}

impl Column for TableId {
    fn column(self) -> ColumnGroup {
        self.row()
    }
}

impl Column for ColumnGroup {
    fn column(self) -> ColumnGroup {
        self
    }
}

/// A range of keys, and a limit on its rows. A range whose end is not above its start is empty.
///
/// ```
/// use plimsoll::{Key, KeyRange};
///
/// let all = KeyRange::from(..);
/// let some = KeyRange::from(Key::of_u64(10)..Key::of_u64(20)).limit(3);
/// let from_here_on = KeyRange::from(Key::of_u64(10)..);
/// let mine = KeyRange::prefix(&Key::build().text("alice").finish());
/// # let _ = (all, some, from_here_on, mine);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    pub(super) low: Key,
    /// The first key beyond the range; `None`: it reaches to the end of the table.
    pub(super) high: Option<Key>,
    pub(super) limit: usize,
}

impl KeyRange {
    /// The keys that start with `prefix`.
    pub fn prefix(prefix: &Key) -> KeyRange {
        KeyRange { low: prefix.clone(), high: prefix.prefix_end(), limit: usize::MAX }
    }

    /// The same range, at most its first `rows` rows.
    pub fn limit(self, rows: usize) -> KeyRange {
        KeyRange { limit: rows, ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.limit == 0 || self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

impl From<ops::RangeFull> for KeyRange {
    fn from(_: ops::RangeFull) -> KeyRange {
        KeyRange { low: Key::MIN, high: None, limit: usize::MAX }
    }
}

impl From<ops::RangeFrom<Key>> for KeyRange {
    fn from(range: ops::RangeFrom<Key>) -> KeyRange {
        KeyRange { low: range.start, high: None, limit: usize::MAX }
    }
}

impl From<ops::RangeTo<Key>> for KeyRange {
    fn from(range: ops::RangeTo<Key>) -> KeyRange {
        KeyRange { low: Key::MIN, high: Some(range.end), limit: usize::MAX }
    }
}

impl From<ops::Range<Key>> for KeyRange {
    fn from(range: ops::Range<Key>) -> KeyRange {
        KeyRange { low: range.start, high: Some(range.end), limit: usize::MAX }
    }
}

/// The smallest key above a key.
pub(super) fn just_after(key: &Key) -> Key {
    let mut bytes = key.to_bytes();
    bytes.push(0);
    Key::new(&bytes)
}
