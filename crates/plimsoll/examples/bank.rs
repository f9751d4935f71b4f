//! A bank in one process: accounts, an index by owner, clerks who move money around, and an auditor
//! who adds everything up while they do.
//!
//! ```text
//! cargo run --release --example bank
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll::{
    Database, Error, Freshness, IndexKind, Key, KeyRange, Options, Partitioning, Schema, Snapshot, TableId,
    TableSpec,
};

const ACCOUNTS: u64 = 2_000;
const CLERKS: u64 = 4;
const OPENING_BALANCE: i64 = 1_000;
const OWNERS: [&str; 5] = ["Ada", "Barbara", "Edsger", "Grace", "Leslie"];

/// The tables. An index is a table like any other: its key is what is looked up, then the primary
/// key.
#[derive(Clone, Copy)]
struct Bank {
    /// Account number → balance.
    accounts: TableId,
    /// (Owner, account number) → nothing.
    by_owner: TableId,
}

fn account(number: u64) -> Key {
    Key::of_u64(number)
}

fn owned(owner: &str, number: u64) -> Key {
    Key::build().text(owner).u64(number).finish()
}

/// Why a transfer was refused. The database needs `From<plimsoll::Error>`, all else is the bank's
/// business.
#[derive(Debug)]
enum Refusal {
    /// There is too little in the account.
    Poor,
    /// There is no such account.
    Unknown,
    /// The database said no.
    Database(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Database(error)
    }
}

impl Bank {
    /// Opens the accounts, some hundred in a transaction.
    fn found(&self, db: &Database) -> Result<(), Error> {
        for first in (0..ACCOUNTS).step_by(200) {
            db.transact(|txn| -> Result<(), Error> {
                for number in first..(first + 200).min(ACCOUNTS) {
                    let owner = OWNERS[number as usize % OWNERS.len()];
                    txn.insert(self.accounts, &account(number), &OPENING_BALANCE.to_be_bytes())?;
                    // The entry is there if and only if the account is: no need to look.
                    txn.put(self.by_owner, &owned(owner, number), b"")?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Moves money, all or nothing. `?` leaves the closure when another clerk was faster; it is
    /// then run again.
    fn transfer(&self, db: &Database, from: u64, to: u64, amount: i64) -> Result<(), Refusal> {
        db.transact(|txn| {
            let balance = |value: Option<Vec<u8>>| value.as_deref().and_then(money).ok_or(Refusal::Unknown);
            let left = balance(txn.get(self.accounts, &account(from))?)? - amount;
            if left < 0 {
                return Err(Refusal::Poor);
            }
            txn.put(self.accounts, &account(from), &left.to_be_bytes())?;
            // Sees the line above, should both be the same account.
            let sum = balance(txn.get(self.accounts, &account(to))?)? + amount;
            txn.put(self.accounts, &account(to), &sum.to_be_bytes())?;
            Ok(())
        })
    }

    /// All the money there is, as of a snapshot.
    fn total(&self, snapshot: &Snapshot) -> Result<i64, Error> {
        let accounts: Vec<Key> = (0..ACCOUNTS).map(account).collect();
        let balances = snapshot.get_many(self.accounts, &accounts)?;
        Ok(balances.iter().flatten().filter_map(|value| money(value)).sum())
    }
}

fn money(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_be_bytes)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Declare the tables. All entries of one owner share a shard, found by the first bytes of the
    // key.
    let mut schema = Schema::new();
    let accounts = schema.table("accounts", IndexKind::Hash)?;
    let owner_prefix = Partitioning::Hash { bytes: 3 };
    let by_owner = schema.add(TableSpec::new("accounts by owner", IndexKind::Ordered, owner_prefix))?;
    let bank = Bank { accounts, by_owner };

    // Old versions are kept for two seconds, for those who want to look back.
    let options = Options { shards: 2, max_staleness: Duration::from_secs(2), ..Options::default() };
    let db = Database::open(schema, options)?;
    bank.found(&db)?;
    println!("{ACCOUNTS} accounts of {} owners, {OPENING_BALANCE} each", OWNERS.len());

    // Clerks move money; each handle is cheap to clone and may be used by all threads.
    let (stop, moved, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    thread::scope(|scope| -> Result<(), Error> {
        for clerk in 0..CLERKS {
            let (db, stop, moved, refused) = (db.clone(), &stop, &moved, &refused);
            scope.spawn(move || {
                let mut random = Random(clerk + 1);
                while !stop.load(Relaxed) {
                    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                    let amount = random.below(700) as i64;
                    match bank.transfer(&db, from, to, amount) {
                        Ok(()) => moved.fetch_add(1, Relaxed),
                        Err(Refusal::Poor | Refusal::Unknown) => refused.fetch_add(1, Relaxed),
                        Err(Refusal::Database(error)) => return eprintln!("a clerk gives up: {error}"),
                    };
                }
            });
        }
        let audited = audit(&db, bank);
        stop.store(true, Relaxed);
        audited
    })?;
    let (moved, refused) = (moved.into_inner(), refused.into_inner());
    let per_second = moved as f64 / began.elapsed().as_secs_f64();
    println!("{moved} transfers by {CLERKS} clerks ({per_second:.0}/s), {refused} refused for lack of money");

    // One owner's accounts, by the index, in one snapshot.
    let snapshot = db.snapshot(Freshness::Newest)?;
    let name = Key::build().text("Grace").finish();
    let mut richest = None;
    let mut fortune = 0;
    for row in snapshot.scan(bank.by_owner, KeyRange::prefix(&name))? {
        let (key, _) = row?;
        let number = key.to_bytes().last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let balance = snapshot.get(bank.accounts, &account(number))?.as_deref().and_then(money).unwrap_or(0);
        fortune += balance;
        richest = richest.max(Some((balance, number)));
    }
    if let Some((balance, number)) = richest {
        println!("Grace owns {fortune}, of it {balance} in account {number}");
    }
    drop(snapshot);

    for table in db.memory()? {
        println!("{:<18} {:>5} rows {:>6} KiB", table.name, table.rows, table.bytes / 1024);
    }
    db.close();
    println!(
        "closed: {}",
        db.snapshot(Freshness::Newest).err().map_or("no".into(), |error| error.to_string())
    );
    Ok(())
}

/// Adds everything up, again and again, while the clerks go on: not a cent may be missing.
fn audit(db: &Database, bank: Bank) -> Result<(), Error> {
    // A session of its own: it has not seen what the clerks are doing, so it may look back.
    let auditor = db.session();
    for number in 1..=3 {
        thread::sleep(Duration::from_millis(400));
        let then = auditor.snapshot(Freshness::Stale(Duration::from_millis(300)))?;
        let now = auditor.snapshot(Freshness::Newest)?;
        for (name, snapshot) in [("then", then), ("now", now)] {
            let (total, again) = (bank.total(&snapshot)?, bank.total(&snapshot)?);
            assert_eq!(total, ACCOUNTS as i64 * OPENING_BALANCE, "money is neither made nor lost");
            assert_eq!(total, again, "a snapshot does not change");
            let age_ms = snapshot.staleness().as_millis();
            println!("audit {number}, {name:<4} ({age_ms:>3} ms old): {total} in all");
        }
    }
    Ok(())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
        (x ^ x >> 31) % bound
    }
}
