//! The library as its users see it.

mod lifecycle;
mod memory;
mod pairs;
mod scans;
mod snapshots;
mod stats;
mod tables;
mod tokens;
mod transactions;

use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{Database, Error, Freshness, IndexKind, Key, Options, Schema, TableId};

/// A database with one table.
fn open(index: IndexKind, shards: usize) -> (Database, TableId) {
    open_with(index, Options { shards, ..Options::default() })
}

fn open_with(index: IndexKind, options: Options) -> (Database, TableId) {
    let mut schema = Schema::new();
    let table = schema.table("numbers", index).unwrap();
    (Database::open(schema, options).unwrap(), table)
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

fn put(db: &Database, table: TableId, key: u64, value: u64) {
    let done: Result<(), Error> = db.transact(|txn| txn.put(table, &Key::of_u64(key), &value.to_be_bytes()));
    done.unwrap();
}

/// Has somebody else do something, in the middle of a transaction of this thread.
fn elsewhere<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn now(db: &Database, table: TableId, key: u64) -> u64 {
    number(db.snapshot(Freshness::Newest).unwrap().get(table, &Key::of_u64(key)).unwrap())
}

fn bytes(db: &Database) -> usize {
    db.memory().unwrap()[0].bytes
}

/// The table soon needs no more memory than it did.
fn settles(db: &Database, table: TableId, before: usize) {
    let began = Instant::now();
    loop {
        put(db, table, 1, 99);
        let after = bytes(db);
        if after <= before + 1000 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{after} bytes, {before} before");
    }
}
