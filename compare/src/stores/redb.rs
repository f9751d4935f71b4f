//! redb: a copy-on-write B-tree in one file, with one writer at a time.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Client, Durability, Store, Table, present};
use crate::Failure;

/// What was set.
pub const SETTINGS: &str = "writers take turns, as they must; sync: Durability::Immediate; none: \
     Durability::None, which hands nothing on before the next commit that is Immediate";

/// An open database.
pub struct Redb {
    db: Database,
    durability: redb::Durability,
}

fn definition(table: Table) -> TableDefinition<'static, u64, &'static [u8]> {
    TableDefinition::new(table.name())
}

impl Redb {
    pub(super) fn open(durability: Durability, path: &Path) -> Result<Redb, Failure> {
        let durability = match durability {
            Durability::Sync => redb::Durability::Immediate,
            Durability::None => redb::Durability::None,
        };
        Ok(Redb { db: Database::create(path.join("redb"))?, durability })
    }

    fn write(
        &self,
        table: Table,
        body: impl FnOnce(&mut redb::Table<'_, u64, &'static [u8]>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(self.durability)?;
        body(&mut transaction.open_table(definition(table))?)?;
        Ok(transaction.commit()?)
    }
}

impl Store for Redb {
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }
}

impl Client for &Redb {
    fn load(&mut self, table: Table, values: &[Vec<u8>]) -> Result<(), Failure> {
        self.write(table, |rows| {
            for (key, value) in (0..).zip(values) {
                rows.insert(key, value.as_slice())?;
            }
            Ok(())
        })
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        self.write(Table::Puts, |rows| {
            rows.insert(key, value)?;
            Ok(())
        })
    }

    fn update(&mut self, keys: [u64; 2], change: fn(&[u8]) -> Vec<u8>) -> Result<(), Failure> {
        self.write(Table::Counters, |rows| {
            for key in keys {
                let value = change(present(rows.get(key)?, Table::Counters, key)?.value());
                rows.insert(key, value.as_slice())?;
            }
            Ok(())
        })
    }

    fn get(&mut self, table: Table, key: u64) -> Result<Vec<u8>, Failure> {
        let rows = self.db.begin_read()?.open_table(definition(table))?;
        Ok(present(rows.get(key)?, table, key)?.value().to_vec())
    }
}
