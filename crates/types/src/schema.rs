//! The rules for a table, and why one cannot be declared.
//!
//! Everything that the layers above take for granted about a table is checked here, once: of the
//! tables that a database begins with, of those that are made later, and of those that another
//! process names.

use std::fmt;
use std::sync::Arc;

use crate::{Partitioning, TableSpec};

/// Maximum number of tables of a database.
pub const TABLES_MAX: usize = 1024;
/// Maximum length of a table's name and the names of its column groups together, in bytes. So all
/// tables of a database fit into one message.
pub const DECLARATION_MAX: usize = 16 << 10;

/// Why a table cannot be declared.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SchemaError {
    /// A table has no name.
    NoName,
    /// There already is a table with this name.
    DuplicateTable(Arc<str>),
    /// More than [`TABLES_MAX`] tables.
    TooManyTables,
    /// A table has no column group, or more than 255.
    GroupCount {
        /// The table.
        table: Arc<str>,
        /// How many it has.
        groups: usize,
    },
    /// A column group has no name, or the name of another group.
    GroupName {
        /// The table.
        table: Arc<str>,
        /// The name.
        group: Arc<str>,
    },
    /// The partition key of `Modulo`, `Range` and `Spread` has 1 to 8 bytes.
    PartitionKey {
        /// The table.
        table: Arc<str>,
        /// The length asked for, in bytes.
        bytes: u8,
    },
    /// A `Range` whose slots are zero keys wide, or a `Spread` over no parts.
    EmptySpan(Arc<str>),
    /// An immutable table has to be made together with its rows.
    Immutable(Arc<str>),
    /// The name and the column groups of a table take more than [`DECLARATION_MAX`] bytes.
    TooLong {
        /// The table.
        table: Arc<str>,
        /// The length of its declaration, in bytes.
        bytes: usize,
    },
    /// Names with a dot in them are kept for a cluster's own tables.
    KeptName(Arc<str>),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchemaError::NoName => write!(f, "a table needs a name"),
            SchemaError::DuplicateTable(table) => write!(f, "there is a table {table:?} already"),
            SchemaError::TooManyTables => write!(f, "a database has at most {TABLES_MAX} tables"),
            SchemaError::GroupCount { table, groups } => {
                write!(f, "table {table:?} has {groups} column groups; 1 to 255 are possible")
            }
            SchemaError::GroupName { table, group } if group.is_empty() => {
                write!(f, "a column group of table {table:?} needs a name")
            }
            SchemaError::GroupName { table, group } => {
                write!(f, "table {table:?} has two column groups {group:?}")
            }
            SchemaError::PartitionKey { table, bytes } => {
                write!(f, "the partition key of table {table:?} has {bytes} bytes; 1 to 8 are possible")
            }
            SchemaError::EmptySpan(table) => {
                write!(
                    f,
                    "the ranges or parts by which table {table:?} is placed are empty; choose a span, or a number of \
                     parts, of at least 1"
                )
            }
            SchemaError::Immutable(table) => {
                write!(f, "table {table:?} is immutable and would stay empty: make it by `create_loaded`")
            }
            SchemaError::TooLong { table, bytes } => {
                let start: String = table.chars().take(20).collect();
                write!(
                    f,
                    "the names of table {start:?}... and of its column groups take {bytes} bytes; at most \
                     {DECLARATION_MAX} are possible"
                )
            }
            SchemaError::KeptName(table) => {
                write!(
                    f,
                    "table {table:?}: names with a dot in them are kept for the database's own tables; choose another \
                     name"
                )
            }
        }
    }
}

impl std::error::Error for SchemaError {}

/// Checks whether a table can be made.
pub fn check_table(spec: &TableSpec) -> Result<(), SchemaError> {
    let table = || Arc::from(&*spec.name);
    if spec.name.is_empty() {
        return Err(SchemaError::NoName);
    }
    if spec.groups.is_empty() || spec.groups.len() > usize::from(u8::MAX) {
        return Err(SchemaError::GroupCount { table: table(), groups: spec.groups.len() });
    }
    let bytes = spec.name.len() + spec.groups.iter().map(String::len).sum::<usize>();
    if bytes > DECLARATION_MAX {
        return Err(SchemaError::TooLong { table: table(), bytes });
    }
    for (position, group) in spec.groups.iter().enumerate() {
        if group.is_empty() || spec.groups[..position].contains(group) {
            return Err(SchemaError::GroupName { table: table(), group: Arc::from(&**group) });
        }
    }
    match spec.partitioning {
        Partitioning::Modulo { bytes } | Partitioning::Range { bytes, .. } if !(1..=8).contains(&bytes) => {
            return Err(SchemaError::PartitionKey { table: table(), bytes });
        }
        Partitioning::Spread { bytes: bytes @ 0, .. } => {
            return Err(SchemaError::PartitionKey { table: table(), bytes });
        }
        Partitioning::Spread { bytes, within, .. } if bytes.saturating_add(within) > 8 => {
            return Err(SchemaError::PartitionKey { table: table(), bytes: bytes.saturating_add(within) });
        }
        Partitioning::Range { span: 0, .. } | Partitioning::Spread { parts: 0, .. } => {
            return Err(SchemaError::EmptySpan(table()));
        }
        _ => {}
    }
    Ok(())
}
