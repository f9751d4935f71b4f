//! PREPARE: everything that a transaction needs of a shard before the shard votes, in one message.
//!
//! The shard, in one step, **checks** that everything is as the transaction has read it and that no
//! other transaction's lock is in the way, and **locks** it: writes exclusively, reads shared,
//! absent keys and ranges as ranges. A locked read needs no validation later, and is pinned to the
//! stamp when its lock is dropped, so the stamp need not be known yet.

use plimsoll_store::Holder;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ColumnGroup, Key, ShardId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::{Range, ReadRef};
use crate::local::scanned;
use crate::locks::Locks;
use crate::optimistic;
use crate::protocol::ActiveTransaction;
use crate::records::Linked;
use crate::timestamp::Scheme;
use crate::work::{Packed, Write};

/// Everything that a transaction needs of one shard.
pub struct Prepare<S: Scheme> {
    /// The transaction.
    holder: Holder,
    /// What it is ordered after so far.
    observed: S::Observed,
    /// Its reads of records that it does not write, with what must still be so.
    reads: Vec<ReadRef>,
    /// Its scanned ranges, and its absent keys as ranges: nothing may be inserted there.
    ranges: Vec<Range>,
    /// Its writes, with what it has read of their records.
    writes: Vec<Write>,
    /// The values of the writes.
    values: Packed,
    /// All participants, and the lives in which they take part.
    participants: Vec<(ShardId, u64)>,
    /// The furthest stamp that the coordinator believes. A participant whose clock is far ahead of
    /// the others' must not vote for a larger one: after the votes nobody can refuse it. (A message
    /// that was under way for long looks the same; the attempt is over then, and the next one is
    /// not.)
    most: Timestamp,
}

plimsoll_types::wire!(<S: Scheme> struct Prepare<S> {
    holder, observed, reads, ranges, writes, values, participants, most
});

/// The coordinator.
impl<S: Scheme> Prepare<S> {
    /// The request to one shard, which may be the coordinator's own.
    pub(crate) fn new(
        base: &Base<S>,
        open: &ActiveTransaction<S>,
        shard: ShardId,
        participants: &[(ShardId, u64)],
    ) -> Prepare<S> {
        let overwritten = open.work.writes.overwritten(shard);
        let (mut reads, mut ranges) = (optimistic::all_reads(open, shard), ranges(base, open, shard));
        if shard == base.shard {
            reads.extend(&open.work.local_reads);
            ranges.extend(open.work.local_ranges.iter().cloned());
        }
        // A check of a write includes what was read of its record.
        reads.retain(|read| overwritten.binary_search(read).is_err());
        Prepare {
            holder: open.holder,
            observed: open.work.observed.clone(),
            reads,
            ranges,
            writes: open.work.writes.of(shard).cloned().collect(),
            values: open.work.writes.pack(shard),
            participants: participants.to_vec(),
            most: base.furthest(),
        }
    }

    /// The transaction.
    pub(crate) fn txn(&self) -> TxnId {
        self.holder.txn
    }

    /// What it writes.
    pub(crate) fn written(&self) -> impl Iterator<Item = (ColumnGroup, &Key)> {
        self.writes.iter().map(|write| (write.column, &write.key))
    }
}

/// The participant.
impl<S: Scheme> Prepare<S> {
    /// All participants, for the vote.
    pub(crate) fn participants(&mut self) -> Vec<(ShardId, u64)> {
        std::mem::take(&mut self.participants)
    }

    /// The values to be written, for the vote.
    pub(crate) fn values(&mut self) -> Packed {
        std::mem::take(&mut self.values)
    }

    /// What the transaction is ordered after now.
    pub(crate) fn observed(&self) -> &S::Observed {
        &self.observed
    }

    /// Whether the request is consistent: the receiver is a participant, no participant is listed
    /// twice, and there is a value for each write. Any other request comes from a faulty or hostile
    /// peer.
    pub(crate) fn agrees(&self, participants: &[(ShardId, u64)], receiver: ShardId) -> bool {
        let valued = self.values.iter().map(|(column, key, _)| (column, key));
        let mut shards: Vec<ShardId> = participants.iter().map(|&(shard, _)| shard).collect();
        shards.sort_unstable();
        shards.is_sorted_by(|one, next| one < next) && shards.contains(&receiver) && self.written().eq(valued)
    }

    /// Whether everything is as the transaction has read it, no other transaction's lock is in the
    /// way, and the least stamp that fits here is not too far ahead for the coordinator.
    pub(crate) fn check(&mut self, base: &mut Base<S>) -> Result<(), Abort> {
        let Prepare { holder, observed, reads, ranges, writes, values, most, .. } = self;
        let reads_here = !reads.is_empty() || !ranges.is_empty();
        if reads_here && !base.may_lock_reads() {
            return Err(Abort::StaleTerm);
        }
        // Reads first: that a row exists is an answer only if nothing else has changed.
        if !reads.iter().all(|read| base.still_valid(holder.txn, read)) {
            return Err(Abort::Validation);
        }
        base.admit_writes(writes.iter(), Some(values))?;
        writes.iter_mut().try_for_each(|write| base.check(&holder.txn, write, observed))?;
        // From within the process it is the same clock.
        let elsewhere = base.votes.in_another_process(holder.txn.coordinator);
        match S::CLOCKED && elsewhere && S::lower_bound(observed) > *most {
            true => Err(Abort::ClockAhead),
            false => Ok(()),
        }
    }

    /// Takes locks that were found free. The bounds were read in this same step, so a reader that
    /// raises a mark from now on sees the owner. Returns the lower bound that is published with the
    /// locks of writes, which is the smallest stamp that the shard can vote for; and the keys that
    /// had to be linked.
    pub(crate) fn lock(&mut self, base: &mut Base<S>, locks: &mut Locks) -> (Timestamp, Vec<Linked>) {
        let Prepare { holder, observed, reads, ranges, writes, .. } = self;
        let mut linked = Vec::new();
        for write in writes {
            linked.extend(base.grant(*holder, write, observed, &mut locks.exclusive).1);
        }
        for read in reads.iter().filter(|_| !planted(Mutant::ReadsNotHeld)) {
            if let ReadRef::Row { at, .. } = *read
                && base.share(*holder, at, locks)
            {
                base.step_locks(holder.txn, at, false);
            }
        }
        for range in ranges.drain(..).filter(|_| !planted(Mutant::RangesNotHeld)) {
            base.share_range(*holder, range, locks);
        }
        (S::lower_bound(observed), linked)
    }
}

/// The absent keys and ranges that were read on a shard by messages.
fn ranges<S: Scheme>(base: &Base<S>, open: &ActiveTransaction<S>, shard: ShardId) -> Vec<Range> {
    let mut ranges = Vec::new();
    for part in open.parts.of(shard) {
        for ((column, key, _), got) in part.reads.gets.iter().zip(&part.fetched.gets) {
            if got.value.is_none() && !base.immutable(column.table) {
                ranges.push((column.table, key.clone(), Some(key.just_after())));
            }
        }
        for ((scan, _), answer) in part.reads.scans.iter().zip(&part.fetched.scans) {
            if scan.limit > 0 && !base.immutable(scan.column.table) {
                let (low, high) = scanned(scan, &answer.rows, answer.more);
                ranges.push((scan.column.table, low, high));
            }
        }
    }
    ranges
}
