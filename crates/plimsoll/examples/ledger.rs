//! A ledger that is killed and goes on: a database with a data directory.
//!
//! ```text
//! cargo run --release --example ledger -- /tmp/ledger
//! ```
//!
//! Moves money between accounts until it is killed, with `kill -9` if you like, and says how many
//! transfers were committed. Started again it finds all of them: the accounts have as much money as
//! in the beginning, and no transfer that was told is missing. With `async` behind the directory it
//! does not wait for the disk; then the last transfers may be missing, about a twentieth of a
//! second of them, and the money is whole all the same.

use std::path::{Path, PathBuf};

use plimsoll::{
    Database, Durability, Error, Freshness, IndexKind, Key, Options, Partitioning, Schema, TableSpec,
};

/// Accounts, over all shards.
pub const ACCOUNTS: u64 = 64;
/// What is in each of them in the beginning.
pub const OPENING_BALANCE: i64 = 1_000;

fn number(value: &[u8]) -> i64 {
    i64::from_be_bytes(value.try_into().expect("the ledger's values are numbers"))
}

/// What a directory has: the money in all accounts, and how many transfers were committed.
pub fn look(db: &Database) -> Result<(i64, i64), Error> {
    let accounts = db.table("accounts").expect("the ledger has it");
    let transfers = db.table("transfers").expect("the ledger has it");
    let snapshot = db.snapshot(Freshness::Newest)?;
    let mut money = 0;
    for row in snapshot.scan(accounts, ..)? {
        money += number(&row?.1);
    }
    Ok((money, snapshot.get(transfers, &Key::of_u64(0))?.map_or(0, |count| number(&count))))
}

/// Opens the ledger in a directory, and makes the accounts if there are none.
pub fn open(
    path: &Path,
    shards: usize,
    durability: Durability,
) -> Result<Database, Box<dyn std::error::Error>> {
    let mut schema = Schema::new();
    let accounts =
        schema.add(TableSpec::new("accounts", IndexKind::Ordered, Partitioning::Hash { bytes: 8 }))?;
    schema.table("transfers", IndexKind::Hash)?;
    let (data_dir, durability) = (Some(path.to_owned()), Some(durability));
    let options = Options { shards, data_dir, durability, ..Options::default() };
    let db = Database::open(schema, options)?;
    // All of them or none.
    db.transact(|txn| {
        if txn.get(accounts, &Key::of_u64(0))?.is_none() {
            for account in 0..ACCOUNTS {
                txn.insert(accounts, &Key::of_u64(account), &OPENING_BALANCE.to_be_bytes())?;
            }
        }
        Ok::<_, Error>(())
    })?;
    Ok(db)
}

/// Moves money, and calls `told` with the number of transfers after each.
pub fn transfer(db: &Database, mut told: impl FnMut(i64) -> bool) -> Result<(), Error> {
    let accounts = db.table("accounts").expect("the ledger has it");
    let transfers = db.table("transfers").expect("the ledger has it");
    let mut random = 1u64;
    loop {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (from, to) = (random >> 33 & (ACCOUNTS - 1), random >> 45 & (ACCOUNTS - 1));
        let count = db.transact(|txn| {
            let of = |txn: &mut plimsoll::Txn<'_>, account| {
                Ok::<_, Error>(txn.get(accounts, &Key::of_u64(account))?.map_or(0, |value| number(&value)))
            };
            let (poorer, richer) = (of(txn, from)? - 1, of(txn, to)? + 1);
            if from != to {
                txn.put(accounts, &Key::of_u64(from), &poorer.to_be_bytes())?;
                txn.put(accounts, &Key::of_u64(to), &richer.to_be_bytes())?;
            }
            let count = txn.get(transfers, &Key::of_u64(0))?.map_or(0, |count| number(&count)) + 1;
            txn.put(transfers, &Key::of_u64(0), &count.to_be_bytes())?;
            Ok::<_, Error>(count)
        })?;
        if !told(count) {
            return Ok(());
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).map(PathBuf::from);
    let path = path.ok_or("say where the ledger is: cargo run --release --example ledger -- DIR")?;
    let durability = match std::env::args().nth(2).as_deref() {
        None => Durability::Sync,
        Some("async") => Durability::Async,
        Some(other) => return Err(format!("{other} is not async: leave it out to wait for the disk").into()),
    };
    let db = open(&path, 2, durability)?;
    let (money, transfers) = look(&db)?;
    println!("{money} in {ACCOUNTS} accounts after {transfers} transfers");
    transfer(&db, |count| {
        println!("{count}");
        true
    })?;
    Ok(())
}
