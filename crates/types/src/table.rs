//! What a table is: its name, its index, its column groups and its placement.

use crate::{Partitioning, TableId};

/// How a table's keys are indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// A hash table: point reads and writes.
    Hash,
    /// A B+tree: range scans as well.
    Ordered,
}

crate::wire!(
    enum IndexKind {
        Hash = 0,
        Ordered = 1,
    }
);

/// Declares a table. A secondary index is an ordinary table whose key holds the indexed columns and
/// the primary key, written by the same transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSpec {
    /// Unique in the database.
    pub name: String,
    /// Hash or ordered.
    pub index: IndexKind,
    /// Names of the column groups, at least one. Each group of a row is a record of its own, with
    /// its own mark, lock and versions, so that writers of one group do not conflict with readers
    /// of another.
    pub groups: Vec<String>,
    /// How rows are placed.
    pub partitioning: Partitioning,
    /// Loaded before serving and never written: reads of it need neither marks nor validation.
    pub immutable: bool,
}

crate::wire!(struct TableSpec { name, index, groups, partitioning, immutable });

impl TableSpec {
    /// A table with one column group.
    pub fn new(name: &str, index: IndexKind, partitioning: Partitioning) -> TableSpec {
        TableSpec {
            name: name.to_owned(),
            index,
            groups: vec!["row".to_owned()],
            partitioning,
            immutable: false,
        }
    }

    /// The same table with these column groups.
    pub fn with_groups(mut self, groups: &[&str]) -> TableSpec {
        assert!(!groups.is_empty(), "a table has at least one column group");
        self.groups = groups.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// The same table, loaded before serving and never written.
    pub fn immutable(mut self) -> TableSpec {
        self.immutable = true;
        self
    }
}

/// One column group of one table: with a key, it names a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnGroup {
    /// The table.
    pub table: TableId,
    /// Position in [`TableSpec::groups`].
    pub group: u8,
}

crate::wire!(struct ColumnGroup { table, group });

impl TableId {
    /// The table's first, often only, column group.
    #[inline]
    pub const fn row(self) -> ColumnGroup {
        self.group(0)
    }

    /// A column group of the table.
    #[inline]
    pub const fn group(self, group: u8) -> ColumnGroup {
        ColumnGroup { table: self, group }
    }
}
