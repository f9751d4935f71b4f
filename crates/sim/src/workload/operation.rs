//! What a random transaction does with a row: [`Operation`].
//!
//! Rows are numbered within their partition. The value of a row is a number, and a transaction
//! writes its own everywhere, so what was read tells who wrote it.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Reads, Scan};
use plimsoll_txn::shipped::Items;
use plimsoll_types::{Abort, Key, TableId};

use crate::client::Seen;

/// The key of a row.
pub fn key(partition: u64, row: u64) -> Key {
    Key::build().u8(partition as u8).u64(row).finish()
}

/// What all rows of a partition have in common.
pub fn all(partition: u64) -> Key {
    Key::new(&[partition as u8])
}

/// The number that is a row's value.
pub fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().expect("all values are numbers"))
}

/// One thing that is done.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Reads a row.
    Get(TableId, Key),
    /// Reads a row and writes it.
    Update(TableId, Key),
    /// Writes a row, whether or not it is there.
    Put(TableId, Key),
    /// Inserts a row; if it is there, the transaction is over.
    Insert(TableId, Key),
    /// Deletes a row, whether or not it is there.
    Delete(TableId, Key),
    /// Reads a range.
    Scan(Scan),
}

plimsoll_types::wire!(
    enum Operation {
        Get(table, key) = 0,
        Update(table, key) = 1,
        Put(table, key) = 2,
        Insert(table, key) = 3,
        Delete(table, key) = 4,
        Scan(scan) = 5,
    }
);

impl Operation {
    /// Declares what it reads.
    pub fn reads(&self, reads: &mut Reads) {
        match self {
            Operation::Get(table, key) => reads.get(table.row(), key.clone()),
            Operation::Update(table, key) => reads.update(table.row(), key.clone()),
            Operation::Scan(scan) => reads.scan(scan.clone()),
            Operation::Put(..) | Operation::Insert(..) | Operation::Delete(..) => {}
        }
    }

    /// Names the row that it touches. What a range is called depends on who else names its rows.
    pub fn items(&self, items: &mut Items) {
        match self {
            Operation::Get(table, key) => items.read(table.row(), key.clone()),
            Operation::Update(table, key)
            | Operation::Put(table, key)
            | Operation::Insert(table, key)
            | Operation::Delete(table, key) => items.write(table.row(), key.clone()),
            Operation::Scan(_) => unreachable!("whoever scans names what is scanned"),
        }
    }

    /// Does it for the transaction whose number is `own`, and notes the rows that it sees.
    pub fn execute<A: Access>(&self, own: u64, seen: &mut Seen, access: &mut A) -> Result<(), Abort> {
        let own = own.to_be_bytes();
        match self {
            Operation::Get(table, key) | Operation::Update(table, key) => {
                if let Some(value) = access.get(table.row(), key)? {
                    seen.push((table.row(), key.clone(), number(value)));
                }
                match self {
                    Operation::Update(..) => access.put(table.row(), key, &own),
                    _ => Ok(()),
                }
            }
            Operation::Put(table, key) => access.put(table.row(), key, &own),
            Operation::Insert(table, key) => access.insert(*table, key, &[&own]),
            Operation::Delete(table, key) => access.delete(*table, key),
            Operation::Scan(scan) => access.scan(scan, |key, value| {
                seen.push((scan.column, key.clone(), number(value)));
                ControlFlow::Continue(())
            }),
        }
    }
}
