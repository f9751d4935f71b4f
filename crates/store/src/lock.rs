//! Locks: the rare state beside a record.

use plimsoll_types::Ticket;
use plimsoll_types::{Timestamp, TxnId};

/// Names a lock in the store's lock table.
pub type LockId = u32;

/// A transaction as lock tables know it: its id and its age. The age is the clock of its *first*
/// attempt, kept over retries; a smaller number is older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Holder {
    /// When the transaction was first attempted, in nanoseconds.
    pub age: u64,
    /// The present attempt; also breaks ties between equal ages.
    pub txn: TxnId,
}

plimsoll_types::wire!(struct Holder { age, txn });

/// A request for a lock that could not be granted yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// Who asks.
    pub holder: Holder,
    /// Whether the exclusive lock is wanted.
    pub exclusive: bool,
    /// The parked request.
    pub ticket: Ticket,
}

/// The lock of a record or of a range, while somebody holds it or waits for it.
#[derive(Debug, Default)]
pub struct Lock {
    /// The holder of the exclusive lock. Only one, under every protocol.
    pub owner: Option<Holder>,
    /// Lower bound of the owner's timestamp, above the bound the record had when the lock was
    /// granted.
    pub lb: Timestamp,
    /// Holders of the shared lock (2PL only).
    pub sharers: Vec<Holder>,
    /// Requests for the lock, in the order they are considered (2PL only).
    pub waiting: Vec<Waiter>,
    /// Read-only transactions that wait for this owner to be gone.
    pub readers: Vec<Ticket>,
}

impl Lock {
    /// Whether nobody holds the lock or waits for it.
    pub fn is_idle(&self) -> bool {
        self.owner.is_none() && self.sharers.is_empty() && self.waiting.is_empty() && self.readers.is_empty()
    }

    /// Whether `txn` holds the exclusive lock.
    pub fn owned_by(&self, txn: TxnId) -> bool {
        self.owner.is_some_and(|owner| owner.txn == txn)
    }

    /// Whether somebody other than `txn` holds the exclusive lock.
    pub fn owned_by_other(&self, txn: Option<&TxnId>) -> bool {
        self.owner.as_ref().is_some_and(|owner| Some(&owner.txn) != txn)
    }
}
