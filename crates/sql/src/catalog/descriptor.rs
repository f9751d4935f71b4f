//! Descriptors of what has a name among tables: tables themselves, with all that belongs to them,
//! and sequences. Their bytes are in [`encoding::descriptor`](crate::encoding::descriptor).

use std::sync::Arc;

use crate::types::Oid;

/// What a schema and a name stand for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Relation {
    /// A table.
    Table(Arc<Table>),
    /// An index, the primary key's too: the name of its table, which is in the same schema.
    Index(String),
    /// A sequence.
    Sequence(Arc<Sequence>),
}

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
    /// Whether its default is the next number of a sequence of its own, and who may say otherwise.
    pub identity: Option<Identity>,
}

/// When a statement may give a value to an identity column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Only if it says `OVERRIDING SYSTEM VALUE`.
    Always,
    /// It may.
    ByDefault,
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
    /// The OID of the primary key's index; 0 if there is none.
    pub primary_id: u32,
    /// Where its rows are.
    pub placement: Placement,
    /// Its indexes besides the primary key, in the order in which they were made.
    pub indexes: Vec<Index>,
    /// What has to be true of each row.
    pub checks: Vec<Check>,
    /// The keys of other tables, or of its own, that its rows name.
    pub references: Vec<Reference>,
    /// The tables whose rows name its keys: schema and name, each once.
    pub referrers: Vec<(String, String)>,
}

/// An index: an entry for every row, in an order of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// Its OID.
    pub id: u32,
    /// The number that its entries are kept under: another one after `TRUNCATE`.
    pub rows: u32,
    /// Its name, in the table's schema.
    pub name: String,
    /// What its entries are in the order of.
    pub parts: Vec<IndexPart>,
    /// Whether no two rows may have equal entries without a NULL.
    pub unique: bool,
    /// Whether it was made by a `UNIQUE` constraint, which has its name.
    pub is_constraint: bool,
    /// Whether it has an entry for every row. Until then it is kept up and not read.
    pub is_ready: bool,
}

/// A part of an index's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexPart {
    /// The position of the column.
    pub column: u16,
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether NULL comes before all values.
    pub nulls_first: bool,
}

/// A `CHECK` constraint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Its OID.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The condition as text. A row is refused if it is false; NULL is not.
    pub condition: String,
}

/// A `FOREIGN KEY` constraint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Its OID.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// The positions of the columns that name a key.
    pub columns: Vec<u16>,
    /// The schema of the table whose key they name.
    pub to_schema: String,
    /// The name of that table.
    pub to_table: String,
    /// The positions there of the columns that they equal, in the same order.
    pub to_columns: Vec<u16>,
    /// Whether all of them or none are NULL (`MATCH FULL`).
    pub is_full: bool,
    /// What becomes of rows whose key is changed.
    pub on_update: Action,
    /// What becomes of rows whose key is deleted.
    pub on_delete: Action,
    /// Whether a transaction may put the test off to its end.
    pub is_deferrable: bool,
    /// Whether it does so unless it says otherwise.
    pub is_deferred: bool,
}

/// What becomes of rows that name a key which is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// There may be none when the statement, or the transaction, is over.
    NoAction,
    /// There may be none.
    Restrict,
    /// They go as well, or get the new key.
    Cascade,
    /// They name none any more.
    SetNull,
    /// They name the key of their defaults.
    SetDefault,
}

/// A sequence of numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// Its number, which is its OID.
    pub id: u32,
    /// The number that its state is kept under: another one after it was restarted.
    pub rows: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub oid: Oid,
    /// The first number.
    pub start: i64,
    /// What is added for the next; not 0.
    pub increment: i64,
    /// The least number.
    pub least: i64,
    /// The largest number.
    pub largest: i64,
    /// How many numbers a session takes at once.
    pub cache: i64,
    /// Whether it begins again at its other end.
    pub cycles: bool,
    /// The table and the position of the column that it goes with, in its own schema.
    pub owner: Option<(String, u16)>,
}
