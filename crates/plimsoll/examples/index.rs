//! Secondary indexes: users by city, and by an address that only one of them can have.
//!
//! An index is a table. Its key is what is looked up; if that is not unique, the primary key
//! follows, and is read from there. The transaction that writes a row writes its entries, so table
//! and index agree in every snapshot and for every other transaction.
//!
//! `cargo run --example index`

use plimsoll::{Database, Error, Freshness, IndexKind, Key, KeyRange, Options, Schema, Snapshot, TableId};

#[derive(Clone, Copy)]
struct Users {
    /// Number → city.
    users: TableId,
    /// (City, number) → nothing.
    by_city: TableId,
    /// Address → number.
    by_address: TableId,
}

fn in_city(city: &str) -> Key {
    Key::build().text(city).finish()
}

fn entry(city: &str, user: u64) -> Key {
    Key::build().text(city).u64(user).finish()
}

impl Users {
    /// [`Error::Exists`] if another user has the address.
    fn add(&self, db: &Database, user: u64, city: &str, address: &str) -> Result<(), Error> {
        db.transact(|txn| {
            txn.insert(self.by_address, &Key::build().text(address).finish(), &user.to_be_bytes())?;
            txn.insert(self.users, &Key::of_u64(user), city.as_bytes())?;
            txn.put(self.by_city, &entry(city, user), b"")
        })
    }

    fn moves(&self, db: &Database, user: u64, city: &str) -> Result<(), Error> {
        db.transact(|txn| {
            if let Some(before) = txn.get(self.users, &Key::of_u64(user))? {
                txn.delete(self.by_city, &entry(&String::from_utf8_lossy(&before), user))?;
                txn.put(self.users, &Key::of_u64(user), city.as_bytes())?;
                txn.put(self.by_city, &entry(city, user), b"")?;
            }
            Ok(())
        })
    }

    /// The users of a city, with what their rows say, read at the same snapshot.
    fn living_in(&self, snapshot: &Snapshot, city: &str) -> Result<Vec<(u64, String)>, Error> {
        let mut users = Vec::new();
        for row in snapshot.scan(self.by_city, KeyRange::prefix(&in_city(city)))? {
            let mut parts = row?.0.read();
            parts.text()?;
            users.push(parts.u64()?);
        }
        let keys: Vec<Key> = users.iter().copied().map(Key::of_u64).collect();
        let rows = snapshot.get_many(self.users, &keys)?;
        let city = |row: Option<Vec<u8>>| String::from_utf8_lossy(&row.unwrap_or_default()).into_owned();
        Ok(users.into_iter().zip(rows.into_iter().map(city)).collect())
    }
}

/// The lines that the example prints.
pub fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut schema = Schema::new();
    let users = Users {
        users: schema.table("users", IndexKind::Hash)?,
        by_city: schema.table("users by city", IndexKind::Ordered)?,
        by_address: schema.table("users by address", IndexKind::Hash)?,
    };
    let db = Database::open(schema, Options { shards: 2, ..Options::default() })?;
    users.add(&db, 1, "Lund", "ada@example.org")?;
    users.add(&db, 2, "Lund", "grace@example.org")?;
    users.add(&db, 3, "Lundby", "edsger@example.org")?;
    let taken = users.add(&db, 4, "Lund", "ada@example.org");
    let before = db.snapshot(Freshness::Newest)?;
    users.moves(&db, 1, "Lundby")?;
    let after = db.snapshot(Freshness::Newest)?;

    let mut lines = vec![format!("{}", taken.expect_err("the address is taken"))];
    for (when, snapshot) in [("before", &before), ("after", &after)] {
        for city in ["Lund", "Lundby"] {
            lines.push(format!("{when}: {city} {:?}", users.living_in(snapshot, city)?));
        }
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
