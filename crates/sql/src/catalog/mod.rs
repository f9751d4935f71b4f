//! Tables: what is known of them, and where that is kept.

pub mod descriptor;
pub mod owners;
pub mod pg;

pub use descriptor::{
    Action, Check, Column, Identity, Index, IndexPart, Placement, Reference, Relation, Sequence, Table,
};

use crate::types::Oid;

/// The schema of tables whose schema is not named.
pub const PUBLIC: &str = "public";

impl Column {
    /// A column that may be NULL.
    pub fn new(name: impl Into<String>, oid: Oid, modifier: i32) -> Column {
        Column {
            name: name.into(),
            oid,
            modifier,
            not_null: false,
            default: None,
            missing: None,
            dropped: false,
            identity: None,
        }
    }
}

impl Table {
    /// A table without columns.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Table {
        let name = name.into();
        Table {
            id: 0,
            rows: 0,
            schema: schema.into(),
            columns: Vec::new(),
            primary: Vec::new(),
            primary_name: format!("{name}_pkey"),
            name,
            primary_id: 0,
            placement: Placement::Hash(0),
            indexes: Vec::new(),
            checks: Vec::new(),
            references: Vec::new(),
            referrers: Vec::new(),
        }
    }

    /// Its columns that are there, with their positions.
    pub fn live(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.dropped)
    }

    /// The position among the columns that are there of a column's position among all.
    pub fn live_place(&self, position: usize) -> Option<usize> {
        self.live().position(|(at, _)| at == position)
    }
}
