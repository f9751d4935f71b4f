//! fjall: a log-structured merge tree with a journal.

use std::path::Path;

use fjall::{KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace};

use super::{Client, Durability, Store, Table, present};
use crate::Failure;

/// What was set.
pub const SETTINGS: &str = "transactions of a single writer; sync: PersistMode::SyncData, which is enough on \
     Linux and cheaper than SyncAll; none: PersistMode::Buffer";

/// An open database.
pub struct Fjall {
    db: SingleWriterTxDatabase,
    tables: [SingleWriterTxKeyspace; 2],
    mode: PersistMode,
}

impl Fjall {
    pub(super) fn open(durability: Durability, path: &Path) -> Result<Fjall, Failure> {
        let mode = match durability {
            Durability::Sync => PersistMode::SyncData,
            Durability::None => PersistMode::Buffer,
        };
        let db = SingleWriterTxDatabase::builder(path.join("fjall")).open()?;
        let table = |table: Table| db.keyspace(table.name(), KeyspaceCreateOptions::default);
        Ok(Fjall { tables: [table(Table::Puts)?, table(Table::Counters)?], db, mode })
    }

    fn table(&self, table: Table) -> &SingleWriterTxKeyspace {
        let [puts, counters] = &self.tables;
        if table == Table::Puts { puts } else { counters }
    }
}

impl Store for Fjall {
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }
}

impl Client for &Fjall {
    fn load(&mut self, table: Table, values: &[Vec<u8>]) -> Result<(), Failure> {
        let mut transaction = self.db.write_tx().durability(Some(self.mode));
        for (key, value) in (0u64..).zip(values) {
            transaction.insert(self.table(table), key.to_be_bytes(), value.as_slice());
        }
        Ok(transaction.commit()?)
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        let mut transaction = self.db.write_tx().durability(Some(self.mode));
        transaction.insert(self.table(Table::Puts), key.to_be_bytes(), value);
        Ok(transaction.commit()?)
    }

    fn update(&mut self, keys: [u64; 2], change: fn(&[u8]) -> Vec<u8>) -> Result<(), Failure> {
        let table = self.table(Table::Counters);
        let mut transaction = self.db.write_tx().durability(Some(self.mode));
        for key in keys {
            let value = present(transaction.get(table, key.to_be_bytes())?, Table::Counters, key)?;
            transaction.insert(table, key.to_be_bytes(), change(&value));
        }
        Ok(transaction.commit()?)
    }

    fn get(&mut self, table: Table, key: u64) -> Result<Vec<u8>, Failure> {
        let row = self.db.read_tx().get(self.table(table), key.to_be_bytes())?;
        Ok(present(row, table, key)?.to_vec())
    }
}
