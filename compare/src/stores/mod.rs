//! The stores, each with its two tables behind one trait.
//!
//! Each store is used as its documentation recommends for many small transactions. What was set is
//! a sentence beside the code that sets it, and in the report.

mod fjall;
mod plimsoll;
mod redb;
mod sqlite;

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::Failure;

/// A store of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreName {
    /// This one; ratios are to it.
    Plimsoll,
    /// A copy-on-write B-tree.
    Redb,
    /// A log-structured merge tree.
    Fjall,
    /// A B-tree with a log.
    Sqlite,
}

impl StoreName {
    /// The stores; the first is the reference.
    pub const ALL: [StoreName; 4] =
        [StoreName::Plimsoll, StoreName::Redb, StoreName::Fjall, StoreName::Sqlite];

    /// What was set.
    pub fn settings(self) -> &'static str {
        match self {
            StoreName::Plimsoll => plimsoll::SETTINGS,
            StoreName::Redb => redb::SETTINGS,
            StoreName::Fjall => fjall::SETTINGS,
            StoreName::Sqlite => sqlite::SETTINGS,
        }
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreName::Plimsoll => "plimsoll",
            StoreName::Redb => "redb",
            StoreName::Fjall => "fjall",
            StoreName::Sqlite => "sqlite",
        })
    }
}

/// When a commit returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When it is on disk.
    Sync,
    /// Before.
    None,
}

impl Durability {
    /// All of them.
    pub const ALL: [Durability; 2] = [Durability::Sync, Durability::None];
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Durability::Sync { "sync" } else { "none" })
    }
}

/// The tables of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Each key is written by one client.
    Puts,
    /// Each key is written by all.
    Counters,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 2] = [Table::Puts, Table::Counters];

    /// Its name in a store.
    pub fn name(self) -> &'static str {
        if self == Table::Puts { "puts" } else { "counters" }
    }
}

/// An open store.
pub trait Store: Sync {
    /// What a client's thread works with.
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure>;
}

/// A client of a store. Each method is one transaction, which is committed when it returns.
pub trait Client {
    /// Writes the first rows of a table: their keys count from 0.
    fn load(&mut self, table: Table, values: &[Vec<u8>]) -> Result<(), Failure>;

    /// Writes a row of [`Table::Puts`].
    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), Failure>;

    /// Reads two rows of [`Table::Counters`] and writes what comes of them.
    fn update(&mut self, keys: [u64; 2], change: fn(&[u8]) -> Vec<u8>) -> Result<(), Failure>;

    /// Reads a row.
    fn get(&mut self, table: Table, key: u64) -> Result<Vec<u8>, Failure>;
}

/// Opens a store in a directory, with what is there.
pub fn open(name: StoreName, durability: Durability, path: &Path) -> Result<Box<dyn Store>, Failure> {
    Ok(match name {
        StoreName::Plimsoll => Box::new(plimsoll::Plimsoll::open(durability, path)?),
        StoreName::Redb => Box::new(redb::Redb::open(durability, path)?),
        StoreName::Fjall => Box::new(fjall::Fjall::open(durability, path)?),
        StoreName::Sqlite => Box::new(sqlite::Sqlite::open(durability, path)?),
    })
}

/// A row that must be there.
fn present<T>(row: Option<T>, table: Table, key: u64) -> Result<T, Failure> {
    row.ok_or_else(|| format!("row {key} of {} is gone", table.name()).into())
}
