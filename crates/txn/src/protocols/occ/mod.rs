//! OCC: optimistic concurrency control (Silo, FaRM, DrTM+R), distributed.
//!
//! A transaction reads without locks and buffers its writes. To commit, its coordinator
//!
//! 1. **locks** the write set, remote shards first and its own last: a record that is locked, or no
//!    longer the
//!    version that was read, ends the attempt. The answer carries the bounds of what is
//!    overwritten;
//! 2. takes its **stamp**, above all versions read and all bounds. It is final: nothing below
//!    changes it;
//! 3. **validates** the read set: at each shard, in one step, pins every record to the stamp and
//!    then looks
//!    whether it is still the version read and not locked by another;
//! 4. **installs** the writes under the stamp and unlocks. Readers that waited wake up.
//!
//! Worked example, under DST: T reads `x` at @5 and writes `y`, whose mark is 7. It locks `y` and
//! learns the bound 7; its stamp is 8. Validating, it raises the mark of `x` to 8. Now W overwrites
//! `x`: it finds the bound 8 and commits at 9 or later, after T, as it must, for T has not seen it.
//!
//! With [`ProtocolOptions::one_round`] shards that are only read are asked to validate along with
//! the locks, at a stamp that is proposed, and again if the final one is larger.
//!
//! The order of these steps is what makes it correct; `docs/protocols/occ.md` says why for each.
//! The last shard to be locked is the coordinator's own: when no other shard has reads to validate,
//! the rest of the transaction's code, its local locks, stamp, validation and local installs are
//! one step, and its locks there are never seen by anyone.
//!
//! Within one process shards share its fate: a transaction whose locks are all held and whose reads
//! are all valid is committed, and INSTALL, which cannot be lost, is its record. One that writes in
//! another process lets the shards it writes vote ([`crate::votes`]), and those keep the writes
//! until they hear the outcome. If the coordinator's shard is one of them it votes last, in the
//! step described above, and the others lock and vote in one message ([`Request::Prepare`]); what
//! they have read is held until then, because the stamp is not known when they look. If it is not,
//! they vote between steps 3 and 4, and validate when they vote. One that has all its data on one
//! other shard does everything after its reads there, in one message ([`Request::Commit`]).
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
    /// What each transaction has locked here.
    held: BTreeMap<TxnId, Locks>,
    /// [`ProtocolOptions::one_round`].
    one_round: bool,
}

/// What a participant is asked.
pub enum Request<S: Scheme> {
    /// Locks the write set on this shard, all of it or nothing.
    Lock {
        /// Who locks.
        holder: Holder,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
        /// What to lock.
        writes: Vec<Write>,
        /// Records that were read on this shard and are not written. They are locked as well, which
        /// is as good as validating them later, and pinned when they are unlocked.
        reads: Vec<ReadRef>,
    },
    /// Locks all that the transaction has read and writes on this shard, or nothing, and votes. The
    /// coordinator's shard votes last.
    Prepare(Prepare<S>),
    /// All that is left of a transaction that has read and writes on this shard only: locks,
    /// stamps, validates and installs in one step.
    Commit {
        /// The transaction.
        holder: Holder,
        /// What it is ordered after so far.
        observed: S::Observed,
        /// What it writes.
        writes: Vec<Write>,
        /// And the values.
        values: Packed,
        /// What it has read and does not write.
        reads: Vec<ReadRef>,
    },
    /// Installs the write set on this shard, and unlocks it.
    Install {
        /// Who holds the locks.
        txn: TxnId,
        /// The commit stamp.
        stamp: Timestamp,
        /// The writes.
        writes: Packed,
        /// Whether to answer when it is done.
        answer: bool,
    },
    /// Unlocks whatever the transaction has locked here.
    Abort(TxnId),
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Lock { holder, observed, writes, reads } = 2,
    Install { txn, stamp, writes, answer } = 3,
    Abort(txn) = 4,
    Prepare(prepare) = 5,
    Commit { holder, observed, writes, values, reads } = 6
});

/// What it answers.
pub enum Reply<S: Scheme> {
    /// All is locked.
    Locked {
        /// What is overwritten.
        observed: S::Observed,
        /// Keys that had to be linked.
        linked: Vec<Linked>,
    },
    /// Nothing is locked, and why.
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
