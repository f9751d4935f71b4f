//! SQLite: a B-tree in one file, with a log.
//!
//! SQLite lets one connection write at a time, and others ask again after a sleep. A lock in the
//! process makes them wait in turn, which is faster with many clients: so all writers share one
//! connection behind a lock, and each reader has its own.

use std::path::{Path, PathBuf};

#[expect(clippy::disallowed_types, reason = "clients share a connection, and there are no shards here")]
use std::sync::Mutex;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{Client, Durability, Store, Table, present};
use crate::Failure;

/// What was set.
pub const SETTINGS: &str = "bundled, WAL, one connection for all writers behind a lock and one for each \
     reader, statements prepared once; sync: synchronous = FULL; none: synchronous = OFF";

/// An open database.
pub struct Sqlite {
    file: PathBuf,
    #[expect(clippy::disallowed_types, reason = "see above")]
    writer: Mutex<Connection>,
}

impl Sqlite {
    pub(super) fn open(durability: Durability, path: &Path) -> Result<Sqlite, Failure> {
        let file = path.join("sqlite");
        let writer = Connection::open(&file)?;
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(
            None,
            "synchronous",
            match durability {
                Durability::Sync => "FULL",
                Durability::None => "OFF",
            },
        )?;
        for table in Table::ALL {
            let name = table.name();
            writer.execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {name} (key INTEGER PRIMARY KEY, value BLOB NOT NULL)"
            ))?;
        }
        #[expect(clippy::disallowed_types, reason = "see above")]
        let writer = Mutex::new(writer);
        Ok(Sqlite { file, writer })
    }

    fn write(&self, body: impl FnOnce(&Connection) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut connection = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        body(&transaction)?;
        Ok(transaction.commit()?)
    }
}

fn write_row(connection: &Connection, table: Table, key: u64, value: &[u8]) -> Result<(), Failure> {
    let mut put = connection.prepare_cached(match table {
        Table::Puts => "REPLACE INTO puts (key, value) VALUES (?1, ?2)",
        Table::Counters => "REPLACE INTO counters (key, value) VALUES (?1, ?2)",
    })?;
    put.execute(params![i64::try_from(key)?, value])?;
    Ok(())
}

fn read_row(connection: &Connection, table: Table, key: u64) -> Result<Vec<u8>, Failure> {
    let mut get = connection.prepare_cached(match table {
        Table::Puts => "SELECT value FROM puts WHERE key = ?1",
        Table::Counters => "SELECT value FROM counters WHERE key = ?1",
    })?;
    let row = get.query_row(params![i64::try_from(key)?], |row| row.get(0)).optional()?;
    present(row, table, key)
}

/// A client, with its connection for reading.
struct Reader<'a> {
    of: &'a Sqlite,
    connection: Connection,
}

impl Store for Sqlite {
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(Reader { of: self, connection: Connection::open(&self.file)? }))
    }
}

impl Client for Reader<'_> {
    fn load(&mut self, table: Table, values: &[Vec<u8>]) -> Result<(), Failure> {
        self.of.write(|connection| {
            for (key, value) in (0..).zip(values) {
                write_row(connection, table, key, value)?;
            }
            Ok(())
        })
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        self.of.write(|connection| write_row(connection, Table::Puts, key, value))
    }

    fn update(&mut self, keys: [u64; 2], change: fn(&[u8]) -> Vec<u8>) -> Result<(), Failure> {
        self.of.write(|connection| {
            for key in keys {
                let value = change(&read_row(connection, Table::Counters, key)?);
                write_row(connection, Table::Counters, key, &value)?;
            }
            Ok(())
        })
    }

    fn get(&mut self, table: Table, key: u64) -> Result<Vec<u8>, Failure> {
        read_row(&self.connection, table, key)
    }
}
