//! The descriptor of a table: its columns, its keys, its place.
//! Its bytes are in [`encoding::descriptor`](crate::encoding::descriptor).

use crate::types::Oid;

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub oid: Oid,
    /// The type's modifier, -1 if it has none.
    pub modifier: i32,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// What it is if nothing is said: an expression as text.
    pub default: Option<String>,
    /// What it is in rows that were written before it was added, as
    /// [`value`](crate::encoding::value) has it; none is NULL.
    pub missing: Option<Vec<u8>>,
    /// Whether the column is no longer there. Its place stays, since rows were written with it.
    pub dropped: bool,
}

/// Where rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// By a hash of this number of the primary key's first columns; 0: of all its columns.
    Hash(u16),
    /// On every shard.
    Everywhere,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its number, from 16384 on; also its OID.
    pub id: u32,
    /// The number that its rows are kept under: another one after `TRUNCATE`.
    pub rows: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Positions of the primary key's columns; none: rows have a hidden number.
    pub primary: Vec<u16>,
    /// The name of the primary key's constraint.
    pub primary_name: String,
    /// Where its rows are.
    pub placement: Placement,
}
