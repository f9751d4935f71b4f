//! Plimsoll as a library: each client's thread asks the shards, which are other threads.

use std::path::Path;

use plimsoll::{Database, Error, IndexKind, Key, Options, Partitioning, Schema, TableId, TableSpec};

use super::{Client, Durability, Store, Table, present};
use crate::Failure;

/// What was set.
pub const SETTINGS: &str = "a shard per core, not pinned, occ/dst, ordered tables whose keys are dealt out to \
     the shards; sync: a data directory; none: no directory, so nothing is written";

/// An open database.
pub struct Plimsoll {
    db: Database,
    tables: [TableId; 2],
}

impl Plimsoll {
    pub(super) fn open(durability: Durability, path: &Path) -> Result<Plimsoll, Failure> {
        let mut schema = Schema::new();
        let mut add = |table: Table| {
            let partitioning = Partitioning::Hash { bytes: 8 };
            schema.add(TableSpec::new(table.name(), IndexKind::Ordered, partitioning))
        };
        let tables = [add(Table::Puts)?, add(Table::Counters)?];
        let data_dir = (durability == Durability::Sync).then(|| path.join("plimsoll"));
        let db = Database::open(schema, Options { data_dir, ..Options::default() })?;
        Ok(Plimsoll { db, tables })
    }

    fn table(&self, table: Table) -> TableId {
        let [puts, counters] = self.tables;
        if table == Table::Puts { puts } else { counters }
    }
}

impl Store for Plimsoll {
    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }
}

impl Client for &Plimsoll {
    fn load(&mut self, table: Table, values: &[Vec<u8>]) -> Result<(), Failure> {
        self.db.transact(|txn| {
            for (key, value) in (0..).zip(values) {
                txn.put(self.table(table), &Key::of_u64(key), value)?;
            }
            Ok::<_, Failure>(())
        })
    }

    fn put(&mut self, key: u64, value: &[u8]) -> Result<(), Failure> {
        let table = self.table(Table::Puts);
        self.db.transact(|txn| txn.put(table, &Key::of_u64(key), value))?;
        Ok(())
    }

    fn update(&mut self, keys: [u64; 2], change: fn(&[u8]) -> Vec<u8>) -> Result<(), Failure> {
        let table = self.table(Table::Counters);
        self.db.transact(|txn| {
            for key in keys {
                let value = txn.get(table, &Key::of_u64(key))?.unwrap_or_default();
                txn.put(table, &Key::of_u64(key), &change(&value))?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    fn get(&mut self, table: Table, key: u64) -> Result<Vec<u8>, Failure> {
        let column = self.table(table);
        // A snapshot of its own would cost hops to the shard and back besides.
        let row = self.db.transact(|txn| txn.get(column, &Key::of_u64(key)))?;
        present(row, table, key)
    }
}
