//! The participant: locks, validates, installs, votes.

use plimsoll_store::Holder;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, Timestamp, TxnId};

use super::Occ;
use crate::fetched::ReadRef;
use crate::prepare::Prepare;
use crate::records::Linked;
use crate::timestamp::Scheme;
use crate::votes::{self, Voter};
use crate::work::{Packed, Write};

impl<S: Scheme> Occ<S> {
    pub(super) fn lock(
        &mut self,
        holder: Holder,
        observed: &mut S::Observed,
        writes: &mut [Write],
        reads: &[ReadRef],
    ) -> Result<Vec<Linked>, Abort> {
        if !self.base.votes.admit(holder.txn) {
            return Err(Abort::Refused);
        }
        self.base.admit_writes(writes.iter(), None)?;
        for write in writes.iter_mut() {
            self.base.check(&holder.txn, write, observed)?;
        }
        let mut locked = Vec::with_capacity(reads.len());
        for read in reads {
            let ReadRef::Row { at, head } = *read else { continue };
            let taken = match planted(Mutant::ValidatedAtLock) {
                true => self.base.validate(holder.txn, S::lower_bound(observed), &[*read]).then_some(false),
                false => self.base.lock_read(holder, at, head),
            };
            match taken {
                Some(true) => locked.push(at),
                Some(false) => {}
                None => {
                    locked.into_iter().for_each(|at| self.base.unlock(at, holder.txn));
                    return Err(Abort::Validation);
                }
            }
        }
        // All are free. The bounds were read in this same step, so a reader that raises a mark from
        // now on sees the owner.
        let held = self.held.entry(holder.txn).or_default();
        held.exclusive.append(&mut locked);
        Ok(self.grant(holder, writes, observed))
    }

    /// Takes locks that were found free. Returns the keys that had to be linked.
    pub(super) fn grant(&mut self, holder: Holder, writes: &[Write], observed: &S::Observed) -> Vec<Linked> {
        let held = &mut self.held.entry(holder.txn).or_default().exclusive;
        let mut linked = Vec::new();
        for write in writes {
            linked.extend(self.base.grant(holder, write, observed, held).1);
        }
        linked
    }

    /// Checks, locks and votes, in one step. Returns the keys that had to be linked.
    pub(super) fn prepare(&mut self, prepare: &mut Prepare<S>) -> Result<Vec<Linked>, Abort> {
        let txn = prepare.txn();
        let participants = prepare.participants();
        // Another voter may have asked for this vote before PREPARE arrived. Then the vote was
        // REFUSE, and stays REFUSE.
        let last = participants.iter().any(|&(shard, _)| shard == txn.coordinator);
        let new = last && !self.held.contains_key(&txn) && prepare.agrees(&participants, self.base.shard);
        if !(new && self.base.votes.admit(txn) && self.base.votes.unvoted(txn) || planted(Mutant::LateRecord))
        {
            return Err(Abort::Refused);
        }
        if let Err(abort) = prepare.check(&mut self.base) {
            votes::vote(self, txn);
            return Err(abort);
        }
        let (stamp, linked) = prepare.lock(&mut self.base, self.held.entry(txn).or_default());
        votes::enter_record(self, txn, stamp, prepare.values(), participants);
        Ok(linked)
    }

    /// Commits a transaction that reads and writes on this shard only. No other transaction comes
    /// between the steps, so its own inserts can be linked after its ranges were validated.
    pub(super) fn commit_alone(
        &mut self,
        holder: Holder,
        observed: &mut S::Observed,
        writes: &mut [Write],
        values: &Packed,
        reads: &[ReadRef],
    ) -> Result<Timestamp, Abort> {
        if !self.base.votes.admit(holder.txn) {
            return Err(Abort::Refused);
        }
        let admitted = self.base.admit_writes(writes.iter(), Some(values));
        let checked = admitted.and_then(|()| {
            writes.iter_mut().try_for_each(|write| self.base.check(&holder.txn, write, observed))
        });
        let stamp = self.base.stamp(holder.txn, observed);
        let valid = self.base.validate(holder.txn, stamp, reads);
        let refused = match checked {
            // That a row exists is an answer only if nothing else has changed.
            Err(Abort::User) | Ok(()) if !valid => Some(Abort::Validation),
            checked => checked.err(),
        };
        if let Some(abort) = refused {
            self.base.votes.close(holder.txn);
            return Err(abort);
        }
        self.grant(holder, writes, observed);
        self.install(holder.txn, stamp, values);
        self.base.votes.committed_alone(holder.txn, stamp);
        Ok(stamp)
    }

    pub(super) fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.base.install_locked(txn, stamp, writes);
        let locks = self.held.remove(&txn).unwrap_or_default();
        self.base.drop_locks(txn, &locks, Some(stamp));
    }

    pub(super) fn unlock(&mut self, txn: TxnId) {
        if let Some(locks) = self.held.remove(&txn) {
            self.base.drop_locks(txn, &locks, None);
        }
    }
}

impl<S: Scheme> Voter for Occ<S> {
    fn ready(&mut self, txn: TxnId, stamp: Timestamp, reads: &[ReadRef]) -> bool {
        self.held.contains_key(&txn) && self.base.validate(txn, stamp, reads)
    }

    fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.install(txn, stamp, writes);
    }

    fn release(&mut self, txn: TxnId) {
        self.unlock(txn);
    }
}
