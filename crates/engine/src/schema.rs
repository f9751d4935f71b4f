//! The tables that a database begins with, the rules for a table, and the limits of a database.
//!
//! Everything that the layers below take for granted about a table is checked here, once.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_types::{IndexKind, Partitioning, TableId, TableSpec};

use crate::error::SchemaError;

/// Maximum number of tables of a database.
pub const TABLES_MAX: usize = 1024;
/// Maximum number of shards of a database.
pub const SHARDS_MAX: usize = 1024;
/// Maximum time for which old versions can be kept.
pub const STALENESS_MAX: Duration = Duration::from_secs(24 * 3600);

/// Declares the tables that a database begins with; transactions name a table by its id. More can
/// be made later, by `Database::create_table`.
///
/// ```
/// use plimsoll_engine::{Schema, SchemaError};
/// use plimsoll_types::{IndexKind, Partitioning, TableSpec};
///
/// let mut schema = Schema::new();
/// let users = schema.table("users", IndexKind::Hash)?;
/// // Orders of one user, named by the first 8 bytes of the key, live on one shard.
/// let by_user = Partitioning::Hash { bytes: 8 };
/// let orders = schema.add(TableSpec::new("orders", IndexKind::Ordered, by_user))?;
/// assert_ne!(users, orders);
/// assert_eq!(schema.table("users", IndexKind::Hash), Err(SchemaError::DuplicateTable("users".into())));
/// # Ok::<(), SchemaError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schema {
    tables: Vec<TableSpec>,
}

impl Schema {
    /// No tables yet.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// The tables, in the order of their ids.
    pub fn tables(&self) -> &[TableSpec] {
        &self.tables
    }

    /// Adds a table with one column group, whose rows are spread over the shards by a hash of their
    /// keys.
    pub fn table(&mut self, name: &str, index: IndexKind) -> Result<TableId, SchemaError> {
        self.add(TableSpec::new(name, index, Partitioning::Hash { bytes: 0 }))
    }

    /// Adds a table with column groups and a placement of the caller's choice.
    pub fn add(&mut self, spec: TableSpec) -> Result<TableId, SchemaError> {
        if spec.immutable {
            return Err(SchemaError::Immutable(Arc::from(&*spec.name)));
        }
        self.declare(spec)
    }

    /// The same with immutable tables, which somebody has to load.
    pub(crate) fn declare(&mut self, spec: TableSpec) -> Result<TableId, SchemaError> {
        check_table(&spec)?;
        let name = || Arc::from(&*spec.name);
        if self.tables.iter().any(|other| other.name == spec.name) {
            return Err(SchemaError::DuplicateTable(name()));
        }
        if self.tables.len() == TABLES_MAX {
            return Err(SchemaError::TooManyTables);
        }
        let table = TableId(self.tables.len() as u16);
        self.tables.push(spec);
        Ok(table)
    }
}

/// Checks whether a table can be made.
pub fn check_table(spec: &TableSpec) -> Result<(), SchemaError> {
    let table = || Arc::from(&*spec.name);
    if spec.name.is_empty() {
        return Err(SchemaError::NoName);
    }
    if spec.groups.is_empty() || spec.groups.len() > usize::from(u8::MAX) {
        return Err(SchemaError::GroupCount { table: table(), groups: spec.groups.len() });
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
