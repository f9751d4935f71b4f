//! 2PL: strict two-phase locking, distributed, with a choice of what to do about conflicts.
//!
//! Growing phase: a record is locked when it is read, shared, or exclusively if the transaction has
//! declared that it will write it; what it only writes is locked before it commits. Writes are
//! buffered. When the last lock is granted the commit stamp is final: above the versions read and
//! above the bounds of what is overwritten, the bounds taken while the exclusive lock is held.
//! Shrinking phase: each shard installs the writes, raises the marks of what was only read (PIN)
//! and only then releases the locks; the mark of a record must not be missing when the next writer
//! gets its lock.
//!
//! Worked example, under DST: T holds a shared lock on `x` (@5) and upgrades it. Between the two
//! grants a read-only transaction has read `x` at 9 without waiting, for shared locks make nobody
//! wait. The bound is read again at the upgrade: 9, and T commits at 10. With the bound of the
//! first grant it would commit at 6, underneath that reader.
//!
//! *Conflicts.* Wait-die: whoever is older than all that stand in its way waits, others abort.
//! Wound-wait: whoever is older takes the lock away (its owner's coordinator is told, unless it is
//! already committing), others wait. No-wait: abort. Age is that of the first attempt. Waiting
//! requests count as standing in the way of later ones they conflict with, under wait-die in the
//! order of arrival, under wound-wait in the order of age.
//!
//! *Phantoms.* A scan locks its range on the shard: an exact predicate lock, which inserts into the
//! range conflict with ([`crate::locks`]). A locked absent key is an empty row.
//!
//! A step that runs on the coordinator's own shard to the end, commit included, only checks for
//! locks: see [`crate::protocol`]. Within one process PIN and the release of shared locks travel
//! with the install. In other processes locks may be lost: there what was only read is pinned in a
//! round of its own, which asks whether its locks are still held, and what is written is voted on
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
    /// What each transaction has locked here, or waits for.
    held: BTreeMap<TxnId, Held>,
    /// Transactions this shard coordinates, and whether they were wounded (wound-wait).
    running: BTreeMap<TxnId, Running>,
    outgoing: Vec<(ShardId, Request<S>)>,
}

#[derive(Debug, Default)]
struct Held {
    locks: Locks,
    /// Its parked request.
    ticket: Option<Ticket>,
    /// The queues it stands in. Handled again, a request may come to wait elsewhere, or not at all.
    queued: Vec<WaitsFor>,
    /// Why waiting ends: its coordinator has given it up, or this shard has refused it.
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
    /// All locks are held: too late to wound it.
    committing: bool,
    /// Shards that may have a parked request of it.
    asked: Vec<ShardId>,
}

/// What a participant is asked.
pub enum Request<S: Scheme> {
    /// Locks what is read, and what is written blindly, then reads.
    Acquire {
        /// Who locks.
        holder: Holder,
        /// What to lock and read.
        reads: Reads,
        /// What to lock exclusively without reading.
        writes: Vec<Write>,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
    },
    /// Installs the writes on this shard, pins what was only read, and releases all locks.
    Finish {
        /// Who holds the locks.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
        /// The writes.
        writes: Packed,
        /// Whether to answer when it is done.
        answer: bool,
    },
    /// In another process than the coordinator, where nothing is written: pins what was read, and
    /// releases all locks.
    Pin {
        /// Who holds the locks.
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

/// What it answers.
pub enum Reply<S: Scheme> {
    /// All is locked; this was read. What is overwritten is observed as well.
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
