//! OCC: optimistic concurrency control (Silo, FaRM, DrTM+R), distributed.
//!
//! A transaction reads without locks and buffers its writes. To commit, its coordinator
//!
//! 1. **locks** the write set, remote shards first and its own last: a record that is locked, or no longer the
//!    version that was read, ends the attempt. The answer carries the bounds of what is overwritten;
//! 2. takes its **stamp**, above all versions read and all bounds. It is final: nothing below changes it;
//! 3. **validates** the read set: at each shard, in one step, pins every record to the stamp and then looks
//!    whether it is still the version read and not locked by another;
//! 4. **installs** the writes under the stamp and unlocks. Readers that waited wake up.
//!
//! Worked example, under DST: T reads `x` at @5 and writes `y`, whose mark is 7. It locks `y` and learns the
//! bound 7; its stamp is 8. Validating, it raises the mark of `x` to 8. Now W overwrites `x`: it finds the bound
//! 8 and commits at 9 or later, after T, as it must, for T has not seen it.
//!
//! With [`ProtocolOptions::one_round`] shards that are only read are asked to validate along with the locks, at a stamp that
//! is proposed, and again if the final one is larger.
//!
//! The order of these steps is what makes it correct; `docs/protocols/occ.md` says why for each. The last shard
//! to be locked is the coordinator's own: when no other shard has reads to validate, the rest of the
//! transaction's code, its local locks, stamp, validation and local installs are one step, and its locks there
//! are never seen by anyone.
//!
//! Within one process shards share its fate: a transaction whose locks are all held and whose reads are all valid is
//! committed, and INSTALL, which cannot be lost, is its record. One that writes in another process lets the shards it
//! writes vote ([`crate::votes`]), and those keep the writes until they hear the outcome. If the coordinator's shard is one
//! of them it votes last, in the step described above, and the others lock and vote in one message
//! ([`Request::Prepare`]); what they have read is held until then, because the stamp is not known when they look. If it is
//! not, they vote between steps 3 and 4, and validate when they vote. One that has all its data on one other shard does
//! everything after its reads there, in one message ([`Request::Commit`]).
//!
//! Left out: durability.

mod coordinator;
mod participant;
mod read_set;

use std::collections::BTreeMap;

use plimsoll_runtime::{Handled, Node};
use plimsoll_store::Holder;
use plimsoll_types::Ticket;
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::base::{Base, Common, CommonReply};
use crate::fetched::ReadRef;
use crate::locks::Locks;
use crate::prepare::Prepare;
use crate::records::Linked;
use crate::timestamp::Scheme;
use crate::votes;
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
    /// The same under every protocol.
    Common(Common<S>),
    /// Locks the write set on this shard, all of it or nothing.
    Lock {
        /// Who locks.
        holder: Holder,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
        /// What to lock.
        writes: Vec<Write>,
        /// Records that were read on this shard and are not written. They are locked as well, which is as
        /// good as validating them later, and pinned when they are unlocked.
        reads: Vec<ReadRef>,
    },
    /// Locks all that the transaction has read and writes on this shard, or nothing, and votes. The coordinator's shard
    /// votes last.
    Prepare(Prepare<S>),
    /// All that is left of a transaction that has read and writes on this shard only: locks, stamps, validates and
    /// installs in one step.
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
    /// What has to do with votes.
    Vote(votes::Request),
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Common(common) = 0,
    Lock { holder, observed, writes, reads } = 1,
    Install { txn, stamp, writes, answer } = 2,
    Abort(txn) = 3,
    Vote(request) = 4,
    Prepare(prepare) = 5,
    Commit { holder, observed, writes, values, reads } = 6
});

/// What it answers.
pub enum Reply<S: Scheme> {
    /// The same under every protocol.
    Common(CommonReply<S>),
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
    /// What has to do with votes.
    Vote(votes::Reply),
}

plimsoll_types::wire!(<S: Scheme> enum Reply<S> {
    Common(common) = 0,
    Locked { observed, linked } = 1,
    Refused(abort) = 2,
    Installed = 3,
    Vote(reply) = 4,
    Committed(stamp) = 5
});

impl<S: Scheme> Node for Occ<S> {
    type Request = Request<S>;
    type Reply = Reply<S>;

    fn handle(&mut self, from: ShardId, request: &mut Request<S>, ticket: Ticket) -> Handled<Reply<S>> {
        Handled::Reply(match request {
            Request::Common(common) => return self.base.handle(from, common, ticket).map(Reply::Common),
            Request::Lock { holder, observed, writes, reads } => {
                match self.lock(*holder, observed, writes, reads) {
                    Ok(linked) => Reply::Locked { observed: observed.clone(), linked },
                    Err(abort) => Reply::Refused(self.base.refused(abort)),
                }
            }
            Request::Prepare(prepare) => match self.prepare(prepare) {
                Ok(linked) => Reply::Locked { observed: prepare.observed().clone(), linked },
                Err(abort) => Reply::Refused(self.base.refused(abort)),
            },
            Request::Commit { holder, observed, writes, values, reads } => {
                match self.commit_alone(*holder, observed, writes, values, reads) {
                    Ok(stamp) => Reply::Committed(stamp),
                    Err(abort) => Reply::Refused(self.base.refused(abort)),
                }
            }
            Request::Install { txn, stamp, writes, answer } => {
                self.install(*txn, *stamp, writes);
                match answer {
                    true => Reply::Installed,
                    false => return Handled::Done,
                }
            }
            Request::Abort(txn) => {
                self.unlock(*txn);
                self.base.votes.close(*txn);
                return Handled::Done;
            }
            Request::Vote(request) => return votes::handle(self, from, request).map(Reply::Vote),
        })
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.base.released
    }

    fn pass(&mut self, clock: Timestamp) {
        self.base.pass(clock);
        votes::tick(self, clock);
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        self.base.connected(peer, life);
    }

    fn due(&self) -> Option<u64> {
        self.base.due()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Request<S>)>) {
        send.extend(self.base.votes.outgoing().map(|(to, request)| (to, Request::Vote(request))));
        self.base.outgoing(|to, common| send.push((to, Request::Common(common))));
    }

    fn park(&mut self) {
        self.base.park();
    }
}
