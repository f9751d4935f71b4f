//! OCC: optimistic concurrency control (Silo, FaRM, DrTM+R), distributed.
//!
//! A transaction reads without locks and buffers its writes. To commit, its coordinator
//!
//! 1. **locks** the write set, remote shards first and its own last: a record that is locked, or
//!    has a newer version than the one that was read, ends the attempt. The answer carries the
//!    bounds of the overwritten records;
//! 2. takes its **stamp**, above all versions read and all bounds. It is final: nothing below
//!    changes it;
//! 3. **validates** the read set: each shard, in one step, pins every record to the stamp and then
//!    checks that it still has the version read and is not locked by another transaction;
//! 4. **installs** the writes under the stamp and unlocks. Readers that waited wake up.
//!
//! Worked example, under DST: T reads `x` at @5 and writes `y`, whose mark is 7. It locks `y` and
//! learns the bound 7; its stamp is 8. Validation raises the mark of `x` to 8. Now W overwrites
//! `x`: it finds the bound 8 and commits at 9 or later. That is after T, which is right, because T
//! has not seen W's version.
//!
//! With [`ProtocolOptions::one_round`](crate::attempt::ProtocolOptions::one_round) the coordinator
//! proposes a stamp, and shards that are only read validate at it while the locks are taken. They
//! validate again if the final stamp is larger.
//!
//! The order of these steps makes the protocol correct; `docs/protocols/occ.md` says why for each.
//! The coordinator's own shard is locked last: when no other shard has reads to validate, the rest
//! of the transaction's code, its local locks, stamp, validation and local installs are one step,
//! and no other transaction ever sees its locks there.
//!
//! Within one process shards share its fate: a transaction whose locks are all held and whose reads
//! are all valid is committed, and INSTALL, which cannot be lost, is its record. If a transaction
//! writes in another process, the shards that it writes vote ([`crate::votes`]), and keep the
//! writes until they hear the outcome. There are two cases. If the coordinator's shard is one of
//! them, it votes last, in the step described above, and the others lock and vote in one message
//! ([`Request::Prepare`]); they hold their reads until the outcome, because the stamp is not known
//! when they check. If it is not one of them, they vote between steps 3 and 4, and validate when
//! they vote. A transaction that has all its data on one other shard does everything after its
//! reads there, in one message ([`Request::Commit`]).
//!
//! Left out: durability.

mod coordinator;
mod participant;
mod read_set;

use std::collections::BTreeMap;

use plimsoll_runtime::Messages;
use plimsoll_store::Holder;
use plimsoll_types::{Abort, Timestamp, TxnId};

use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::fetched::ReadRef;
use crate::locks::Locks;
use crate::prepare::Prepare;
use crate::records::Linked;
use crate::timestamp::Scheme;
use crate::work::{Packed, Write};

/// OCC on one shard.
pub struct Occ<S: Scheme> {
    base: Base<S>,
    /// The locks that each transaction holds here.
    held: BTreeMap<TxnId, Locks>,
    /// [`ProtocolOptions::one_round`](crate::attempt::ProtocolOptions::one_round).
    one_round: bool,
}

/// Requests to a participant.
pub enum Request<S: Scheme> {
    /// Locks the write set on this shard, all of it or nothing.
    Lock {
        /// The transaction that locks.
        holder: Holder,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
        /// What to lock.
        writes: Vec<Write>,
        /// Records that were read on this shard and are not written. They are locked as well, which
        /// makes validation later unnecessary, and pinned when they are unlocked.
        reads: Vec<ReadRef>,
    },
    /// Locks all reads and writes of the transaction on this shard, or nothing, and votes. The
    /// coordinator's shard votes last.
    Prepare(Prepare<S>),
    /// Everything after the reads of a transaction that reads and writes on this shard only: locks,
    /// stamps, validates and installs in one step.
    Commit {
        /// The transaction.
        holder: Holder,
        /// What it is ordered after so far.
        observed: S::Observed,
        /// Its writes.
        writes: Vec<Write>,
        /// The values of the writes.
        values: Packed,
        /// Its reads of records that it does not write.
        reads: Vec<ReadRef>,
    },
    /// Installs the write set on this shard, and unlocks it.
    Install {
        /// The transaction that holds the locks.
        txn: TxnId,
        /// The commit stamp.
        stamp: Timestamp,
        /// The writes.
        writes: Packed,
        /// Whether to answer when it is done.
        answer: bool,
    },
    /// Drops all locks of the transaction here.
    Abort(TxnId),
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Lock { holder, observed, writes, reads } = 2,
    Install { txn, stamp, writes, answer } = 3,
    Abort(txn) = 4,
    Prepare(prepare) = 5,
    Commit { holder, observed, writes, values, reads } = 6
});

/// Answers of a participant.
pub enum Reply<S: Scheme> {
    /// All is locked.
    Locked {
        /// The bounds of the overwritten records.
        observed: S::Observed,
        /// Keys that had to be linked.
        linked: Vec<Linked>,
    },
    /// Nothing is locked, for this reason.
    Refused(Abort),
    /// Committed, with this stamp.
    Committed(Timestamp),
    /// All is installed.
    Installed,
}

plimsoll_types::wire!(<S: Scheme> enum Reply<S> {
    Locked { observed, linked } = 2,
    Refused(abort) = 3,
    Installed = 4,
    Committed(stamp) = 5
});

impl<S: Scheme> Messages for Occ<S> {
    type Request = Envelope<S, Request<S>>;
    type Reply = Answer<S, Reply<S>>;
}
