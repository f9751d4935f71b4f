//! The tables that a database begins with, and the limits of a database.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_types::{IndexKind, Partitioning, SchemaError, TABLES_MAX, TableId, TableSpec, check_table};

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
