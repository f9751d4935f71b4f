//! The tables that a database begins with.

use plimsoll_engine::SchemaError;
use plimsoll_types::{IndexKind, TableSpec};

use crate::database::{TableId, new_identity};

/// Declares the tables that a database begins with; transactions name a table by its id. More can
/// be made later, by [`Database::create_table`](crate::Database::create_table).
///
/// ```
/// use plimsoll::{IndexKind, Partitioning, Schema, SchemaError, TableSpec};
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
    declared: plimsoll_engine::Schema,
    /// Of each table.
    identities: Vec<u64>,
}

impl Schema {
    /// No tables yet.
    pub fn new() -> Schema {
        Schema::default()
    }

    /// The tables, in the order in which they were declared.
    pub fn tables(&self) -> &[TableSpec] {
        self.declared.tables()
    }

    /// Adds a table with one column group, whose rows are spread over the shards by a hash of their
    /// keys.
    pub fn table(&mut self, name: &str, index: IndexKind) -> Result<TableId, SchemaError> {
        let table = self.declared.table(name, index)?;
        Ok(self.identify(table))
    }

    /// Adds a table with column groups and a placement of the caller's choice.
    pub fn add(&mut self, spec: TableSpec) -> Result<TableId, SchemaError> {
        let table = self.declared.add(spec)?;
        Ok(self.identify(table))
    }

    fn identify(&mut self, table: plimsoll_types::TableId) -> TableId {
        let identity = new_identity();
        self.identities.push(identity);
        TableId::new(table, identity)
    }

    /// The tables with their identities.
    pub(crate) fn identified(&self) -> impl Iterator<Item = (&TableSpec, u64)> {
        self.tables().iter().zip(self.identities.iter().copied())
    }
}
