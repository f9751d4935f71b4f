//! 2PL: strict two-phase locking, distributed, with a choice of conflict policies.
//!
//! Growing phase: a read locks its record, shared, or exclusively if the transaction has declared
//! that it will write it; a blind write locks its record before the commit. Writes are buffered.
//! When the last lock is granted the commit stamp is final: above the versions read and above the
//! bounds of the overwritten records, read while the exclusive lock is held. Shrinking phase: each
//! shard installs the writes, raises the marks of records that were only read (PIN) and only then
//! releases the locks: the next writer must find the mark when it gets its lock.
//!
//! Worked example, under DST: T holds a shared lock on `x` (@5) and upgrades it. Between the two
//! grants a read-only transaction has read `x` at 9 without waiting, because shared locks never
//! make a snapshot wait. The upgrade reads the bound again: it is 9, and T commits at 10. With the
//! bound of the first grant it would commit at 6, underneath that reader.
//!
//! *Conflicts.* Wait-die: a transaction that is older than all conflicting ones waits, others
//! abort. Wound-wait: an older transaction takes the lock from a younger holder (whose coordinator
//! is told, unless it is already committing), others wait. No-wait: abort. The age is that of the
//! first attempt. Waiting requests conflict with later ones like owners do: under wait-die in the
//! order of arrival, under wound-wait in the order of age.
//!
//! *Phantoms.* A scan locks its range on the shard: an exact predicate lock, with which inserts
//! into the range conflict ([`crate::locks`]). A locked absent key is an empty row.
//!
//! A step that runs on the coordinator's own shard to the end, commit included, only checks for
//! locks: see [`crate::protocol`]. Within one process PIN and the release of shared locks travel
//! with the install. Locks in other processes may be lost: there a separate round pins records that
//! were only read and asks whether their locks are still held, and shards that are written vote
//! ([`crate::votes`]).

mod coordinator;
mod participant;

use std::collections::BTreeMap;

use plimsoll_runtime::Messages;
use plimsoll_store::{At, Holder, LockId};
use plimsoll_types::Ticket;
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::attempt::LockPolicy;
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::fetched::Fetched;
use crate::locks::Locks;
use crate::procedure::Reads;
use crate::timestamp::Scheme;
use crate::work::{Packed, Write};

/// 2PL on one shard.
pub struct TwoPl<S: Scheme> {
    base: Base<S>,
    policy: LockPolicy,
    /// Each transaction's locks here, and what it waits for.
    held: BTreeMap<TxnId, HeldLocks>,
    /// Transactions that this shard coordinates, and whether they were wounded (wound-wait).
    running: BTreeMap<TxnId, Running>,
    outgoing: Vec<(ShardId, Request<S>)>,
}

#[derive(Debug, Default)]
struct HeldLocks {
    locks: Locks,
    /// How many of its exclusive locks, the first, the coordinator knows the bounds of.
    told: usize,
    /// Its parked request.
    ticket: Option<Ticket>,
    /// The queues that its request stands in. When the request is handled again, it may wait in
    /// another queue, or in none.
    queued: Vec<WaitsFor>,
    /// Why it must not wait any longer: its coordinator has given it up, or this shard has refused
    /// it.
    cancelled: Option<Abort>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WaitsFor {
    Record(At),
    Range(LockId),
}

#[derive(Debug, Default)]
struct Running {
    wounded: bool,
    /// All locks are held: it cannot be wounded any more.
    committing: bool,
    /// Shards that may have a parked request of it.
    asked: Vec<ShardId>,
}

/// Requests to a participant.
pub enum Request<S: Scheme> {
    /// Locks the reads and blind writes, then reads.
    Acquire {
        /// The transaction that locks.
        holder: Holder,
        /// What to lock and read.
        reads: Reads,
        /// What to lock exclusively without reading.
        writes: Vec<Write>,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
    },
    /// Installs the writes on this shard, pins records that were only read, and releases all locks.
    Finish {
        /// The transaction that holds the locks.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
        /// The writes.
        writes: Packed,
        /// Whether to answer when it is done.
        answer: bool,
    },
    /// To a shard in another process where nothing is written: pins the reads, and releases all
    /// locks.
    Pin {
        /// The transaction that holds the locks.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
    },
    /// Releases all locks.
    Abort(TxnId),
    /// To the coordinator's shard: an older transaction wants a lock of this one.
    Wound(TxnId),
    /// To a participant: the transaction does not wait any longer.
    Cancel(TxnId),
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Acquire { holder, reads, writes, observed } = 2,
    Finish { txn, stamp, writes, answer } = 3,
    Abort(txn) = 4,
    Wound(txn) = 5,
    Cancel(txn) = 6,
    Pin { txn, stamp } = 7
});

/// Answers of a participant.
pub enum Reply<S: Scheme> {
    /// All is locked; these are the values read. The bounds of overwritten records are observed as
    /// well.
    Acquired(Fetched<S>),
    /// The transaction must abort.
    Refused(Abort),
    /// All is installed.
    Finished,
    /// Whether all locks were still held.
    Pinned(bool),
}

plimsoll_types::wire!(<S: Scheme> enum Reply<S> {
    Acquired(fetched) = 2,
    Refused(abort) = 3,
    Finished = 4,
    Pinned(held) = 5
});

impl<S: Scheme> Messages for TwoPl<S> {
    type Request = Envelope<S, Request<S>>;
    type Reply = Answer<S, Reply<S>>;
}
