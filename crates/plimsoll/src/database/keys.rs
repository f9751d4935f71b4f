//! How operations name their data: tables, columns and ranges of keys.

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_txn::procedure::Scan;
use plimsoll_types::{Key, Order};

/// Names a table of one database. Another database refuses it ([`Error::NoSuchTable`]), even if it
/// has a table in the same position. All that are connected to one cluster have the same ids.
///
/// [`Error::NoSuchTable`]: crate::Error::NoSuchTable
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId {
    /// Position among the tables of the database.
    position: u16,
    /// Tells the table from those of other databases.
    identity: u64,
}

impl TableId {
    pub(crate) fn new(table: plimsoll_types::TableId, identity: u64) -> TableId {
        TableId { position: table.0, identity }
    }

    /// A column group of the table, from 0.
    pub const fn group(self, group: u8) -> ColumnGroup {
        ColumnGroup { table: self, group }
    }

    /// The table's first, often only, column group.
    pub const fn row(self) -> ColumnGroup {
        self.group(0)
    }

    /// The table as the shards know it.
    pub(super) fn stored(self) -> plimsoll_types::TableId {
        plimsoll_types::TableId(self.position)
    }

    pub(super) fn identity(self) -> u64 {
        self.identity
    }
}

/// A number that was not given out before in this process.
pub(crate) fn new_identity() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    DRAWN.fetch_add(1, Relaxed)
}

/// A column group of a table; with a key it names a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnGroup {
    /// The table.
    pub table: TableId,
    /// Position in [`TableSpec::groups`](crate::TableSpec::groups).
    pub group: u8,
}

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

/// A range of keys, a limit on its rows, and their order. Every range of the language is one, of
/// keys or of references to keys. A range whose end is not above its start is empty.
///
/// ```
/// use std::ops::Bound::{Excluded, Unbounded};
/// use plimsoll::{Key, KeyRange};
///
/// let (low, high) = (Key::of_u64(10), Key::of_u64(20));
/// let all = KeyRange::from(..);
/// let some = KeyRange::from(&low..&high).limit(3);
/// let with_its_end = KeyRange::from(&low..=&high);
/// let the_last_three = KeyRange::from(..).reverse().limit(3);
/// let after = KeyRange::from((Excluded(low), Unbounded));
/// let mine = KeyRange::prefix(&Key::build().text("alice").finish());
/// # let _ = (all, some, with_its_end, the_last_three, after, mine);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    low: Bound<Key>,
    high: Bound<Key>,
    limit: usize,
    order: Order,
}

impl KeyRange {
    /// The keys that start with `prefix`.
    pub fn prefix(prefix: &Key) -> KeyRange {
        let high = prefix.prefix_end().map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange::from((Bound::Included(prefix.clone()), high))
    }

    /// The same range, at most its first `rows` rows; in descending order, its last.
    pub fn limit(self, rows: usize) -> KeyRange {
        KeyRange { limit: rows, ..self }
    }

    /// The same range, from its other end.
    pub fn reverse(self) -> KeyRange {
        let order = match self.order {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        };
        KeyRange { order, ..self }
    }

    /// The keys that it names.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &Key> {
        [&self.low, &self.high].into_iter().filter_map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        })
    }

    /// What the shards are asked for.
    pub(super) fn scan(self, column: plimsoll_types::ColumnGroup) -> Scan {
        let low = match self.low {
            Bound::Included(key) => key,
            Bound::Excluded(key) => key.just_after(),
            Bound::Unbounded => Key::MIN,
        };
        let high = match self.high {
            Bound::Included(key) => Some(key.just_after()),
            Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let empty = high.as_ref().is_some_and(|high| *high <= low);
        Scan { column, low, high, limit: if empty { 0 } else { self.limit }, order: self.order }
    }
}

impl<R: RangeBounds<Key>> From<R> for KeyRange {
    fn from(range: R) -> KeyRange {
        let (low, high) = (range.start_bound().cloned(), range.end_bound().cloned());
        KeyRange { low, high, limit: usize::MAX, order: Order::Ascending }
    }
}
