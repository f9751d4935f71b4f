//! A client of a cluster: opens an account, pays into it, and reads it in a snapshot.
//!
//! With a node running, `plimsoll start --table account:hash`, say where it answers over HTTP; or
//! give the cluster's file:
//!
//! `cargo run --release --example visit -- 127.0.0.1:8401 ann 5`

use plimsoll::{Database, Error, Freshness, Key, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cluster, owner, amount] = &arguments[..] else {
        return Err("give the cluster's file or the address of a node, an owner and an amount".into());
    };
    let amount: u64 = amount.parse()?;
    let db = Database::connect(&plimsoll::find(cluster, None)?, Options::default())?;
    let account = db.table("account").ok_or("the cluster has no table `account`")?;
    let key = Key::build().text(owner).finish();
    let number = |bytes: Vec<u8>| bytes.try_into().map(u64::from_be_bytes).unwrap_or_default();

    let balance = db.transact(|txn| -> Result<u64, Error> {
        let balance = txn.get(account, &key)?.map_or(0, number) + amount;
        txn.put(account, &key, &balance.to_be_bytes())?;
        Ok(balance)
    });
    println!("{owner} has {}", balance?);

    let snapshot = db.snapshot(Freshness::Newest)?;
    let seen = snapshot.get(account, &key)?.map_or(0, number);
    println!("a snapshot at {:?}, {:?} old, says {seen}", snapshot.timestamp(), snapshot.staleness());
    Ok(())
}
