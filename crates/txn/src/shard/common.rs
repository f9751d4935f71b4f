//! How a shard handles the requests that are the same under every protocol.

use plimsoll_runtime::Handled;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Ticket};

use crate::base::Base;
use crate::fetched::BatchFailure;
use crate::messages::{Common, CommonReply};
use crate::timestamp::Scheme;

impl<S: Scheme> Base<S> {
    /// Handles a request that is the same under every protocol.
    pub(crate) fn handle(
        &mut self,
        from: ShardId,
        request: &mut Common<S>,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        Handled::Reply(match request {
            Common::ReadAt { txn, reads, .. } | Common::Read { txn, reads } if !self.serves(*txn, reads) => {
                // The coordinator repeats a snapshot read on another shard, so it does not count as
                // refused.
                if let Common::Read { .. } = request {
                    self.refused(Abort::StaleTerm);
                }
                CommonReply::Elsewhere
            }
            Common::ReadAt { txn, snapshot, reads, waited } => {
                match self.fetch(*txn, Some(snapshot), reads) {
                    Ok(fetched) => {
                        self.counters.snapshot_reads += 1;
                        CommonReply::Fetched(Some(fetched))
                    }
                    Err(BatchFailure::TooOld) => CommonReply::Fetched(None),
                    // The reader waits for one owner of a record at most: its mark keeps all later
                    // owners out of this snapshot.
                    Err(BatchFailure::Wait(at)) if self.is_stuck(at) => CommonReply::OutOfReach,
                    Err(BatchFailure::Wait(at)) => {
                        self.step_waits(*txn, at);
                        let record = (at.column, self.store.key(at.column.table, at.row));
                        let owner = self.store.lock(at).and_then(|lock| lock.owner);
                        if let (false, Some(owner)) = (self.queues, owner) {
                            // It waits for the same one again if it was released because a channel
                            // was reset that is back by now.
                            assert!(
                                *waited.entry(record).or_insert(owner.txn) == owner.txn,
                                "a snapshot read waits for one owner of a record at most"
                            );
                        }
                        self.store.lock_mut(at).readers.push(ticket);
                        self.counters.read_only_waits += 1;
                        return Handled::Wait;
                    }
                }
            }
            Common::Read { txn, reads } => {
                let mut fetched = self.fetch(*txn, None, reads).expect("the newest version is never gone");
                if planted(Mutant::EarlyBound) {
                    for (column, key, _) in &reads.gets {
                        let place = self.store.find(*column, key);
                        self.observe_overwritten(&mut fetched.observed, *column, place);
                    }
                }
                CommonReply::Fetched(Some(fetched))
            }
            Common::Validate { txn, stamp, reads } => {
                if planted(Mutant::EarlyStamp) {
                    stamp.0 = stamp.0.saturating_sub(1_000_000);
                }
                let valid = self.validate(*txn, *stamp, reads);
                if !valid {
                    self.refused(Abort::Validation);
                }
                CommonReply::Validated(valid)
            }
            Common::Snapshot(freshness) => {
                // Call `lost` even if the snapshot is ready: it forgets the ticket, whose number
                // will be reused.
                let lost = self.scheme.lost(ticket);
                match self.scheme.snapshot(*freshness) {
                    Some(snapshot) => CommonReply::Snapshot(snapshot.clone(), self.hold(snapshot)),
                    None if lost => CommonReply::OutOfReach,
                    None => {
                        self.scheme.want_snapshot(ticket);
                        match self.scheme.lost(ticket) {
                            true => CommonReply::OutOfReach,
                            false => return Handled::Wait,
                        }
                    }
                }
            }
            Common::Stamp { asked } => {
                if !std::mem::replace(asked, true) {
                    self.scheme.want_stamp(ticket);
                }
                match self.scheme.take_stamp(ticket) {
                    Some(stamp) => CommonReply::Stamp(stamp),
                    None if self.scheme.lost(ticket) => CommonReply::OutOfReach,
                    None => return Handled::Wait,
                }
            }
            Common::Scheme(message) => {
                match S::inquiry(message) {
                    Some(inquiry) => {
                        let left = self.votes.undecided(inquiry);
                        self.scheme.answer(from, message, left);
                    }
                    None => self.scheme.receive(from, message, &mut self.released),
                }
                return Handled::Done;
            }
            Common::LowWater { low, asks } => {
                self.asked |= *asks;
                if let (Some(watermark), Some(&process)) =
                    (&self.watermark, self.layout.processes.get(from.index()))
                {
                    watermark.heard(process.into(), low);
                }
                return Handled::Done;
            }
            Common::Move { slots, to, asked } => return self.move_slots(from, slots, *to, asked, ticket),
            Common::Parcel(parcel) => {
                self.receive_parcel(from, parcel.clone());
                return Handled::Done;
            }
            Common::TakenOver(slots) => {
                self.taken_over(from, slots);
                return Handled::Done;
            }
            Common::Map(moved) => {
                self.learn_map(moved);
                return Handled::Done;
            }
            Common::Load { table, rows } => CommonReply::LoadOver(self.load_rows(from, *table, rows)),
        })
    }
}
