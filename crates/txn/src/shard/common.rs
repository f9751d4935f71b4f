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
            Common::ReadAt { snapshot, .. }
                if S::place(snapshot).is_some_and(|at| self.believe(from, at).is_err()) =>
            {
                self.refused(Abort::ClockAhead);
                CommonReply::ClockAhead
            }
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
            Common::Validate { stamp, .. } if self.believe(from, *stamp).is_err() => {
                self.refused(Abort::ClockAhead);
                CommonReply::ClockAhead
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
                self.receive_scheme(from, message);
                return Handled::Done;
            }
            Common::LowWater { low, held, asks } => {
                self.asked |= *asks;
                if let (Some(watermark), Some(&process)) =
                    (&self.watermark, self.layout.processes.get(from.index()))
                {
                    // What it holds it holds itself, whatever it says.
                    let holder = self.layout.first_shard(process.into());
                    held.iter_mut().for_each(|held| held.holder = holder);
                    watermark.heard(process.into(), self.votes.life(from), low, held);
                }
                return Handled::Done;
            }
            Common::Standing(comeback) => return self.tell_standing(from, *comeback, ticket),
            Common::Era => return self.tell_era(),
            Common::Close { to, known } => return self.close(from, *to, *known, ticket),
            Common::Unclosed => {
                self.note_unclosed(from);
                return Handled::Done;
            }
            Common::Session(message) => {
                self.receive_session(from, message);
                return Handled::Done;
            }
            Common::Move { slots, to, most, asked } => {
                return self.move_slots(from, slots, *to, *most, asked, ticket);
            }
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
            Common::Tables { from, made } => CommonReply::Tables(self.make_tables(*from, made)),
            Common::Load { table, rows } => CommonReply::LoadOver(self.load_rows(from, *table, rows)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_runtime::LowWater;
    use plimsoll_types::{
        IndexKind, Key, Partitioning, Placement, SLOTS, Slot, TableId, TableSpec, Timestamp, TxnId,
    };

    use super::*;
    use crate::base::Layout;
    use crate::messages::Parcel;
    use crate::procedure::Reads;
    use crate::testing::scheme_config;
    use crate::timestamp::MAX_OFFSET_NS;
    use crate::timestamps::Dst;

    const CLOCK_NS: u64 = 1_000_000_000_000;
    const HOUR_NS: u64 = 3_600_000_000_000;
    const OTHER: ShardId = ShardId(1);

    /// A shard whose clock has just been read. There is one other, in another process.
    fn base() -> Base<Dst> {
        let spec =
            TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 8 }).with_groups(&["row"]);
        let layout = Layout {
            tables: [spec].into(),
            placement: Arc::new(Placement::even(2)),
            processes: [0, 1].into(),
        };
        let mut base = Base::new(&layout, &scheme_config(0, 2), LowWater::among(0..1, 1, &[1]));
        base.pass(Timestamp(CLOCK_NS));
        base
    }

    /// Reads a key that is not there, for a shard, at a snapshot; whether that was refused.
    fn refuses(base: &mut Base<Dst>, from: ShardId, at_ns: u64) -> bool {
        let column = TableId(0).group(0);
        let here = |key: &Key| base.home(TableId(0), key) == base.shard;
        let mut reads = Reads::default();
        reads.get(column, (0..).map(Key::of_u64).find(here).expect("some keys belong here"));
        let txn = TxnId { coordinator: from, number: 1 };
        match base.handle(from, &mut Common::read_at(txn, Timestamp(at_ns), reads), 0) {
            Handled::Reply(CommonReply::ClockAhead) => true,
            Handled::Reply(CommonReply::Fetched(Some(_))) => false,
            _ => panic!("nobody is in the way"),
        }
    }

    #[test]
    fn of_another_process_a_snapshot_is_believed_up_to_half_a_second_ahead_of_the_clock() {
        let mut base = base();
        let furthest_ns = CLOCK_NS + MAX_OFFSET_NS;
        assert!(!refuses(&mut base, OTHER, furthest_ns));
        let raised = base.counters.mark_raises;
        assert!(refuses(&mut base, OTHER, furthest_ns + 1) && refuses(&mut base, OTHER, u64::MAX >> 1));
        assert_eq!((base.counters.mark_raises, base.counters.future_stamps), (raised, 2));
        assert_eq!(base.suspect().map(|suspect| suspect.from), Some(OTHER));
        assert_eq!(base.suspect(), None, "it is told once");
        // The shard has slept; its clock is read when the message arrives.
        base.read_clock(Timestamp(CLOCK_NS + HOUR_NS));
        assert!(!refuses(&mut base, OTHER, furthest_ns + 1));
        base.read_clock(Timestamp(CLOCK_NS));
        assert!(!refuses(&mut base, OTHER, CLOCK_NS + HOUR_NS), "what was believed once is believed");
    }

    #[test]
    fn shards_of_one_process_believe_each_other() {
        let mut base = base();
        assert!(!refuses(&mut base, ShardId(0), CLOCK_NS + HOUR_NS));
        assert_eq!(base.counters.future_stamps, 0);
    }

    #[test]
    fn slots_with_marks_that_are_too_far_ahead_are_taken_over_when_the_clock_is_there() {
        let mut base = base();
        let slot = (0..SLOTS as u16).map(Slot).find(|slot| base.owner(*slot) == OTHER);
        let slot = slot.expect("the other shard has some");
        let slots = vec![(slot, ShardId(0), base.placement().term(slot) + 1)];
        let parcel = || Parcel {
            slots: slots.clone(),
            number: 0,
            of: 1,
            rows: Vec::new(),
            floor: Timestamp::ZERO,
            marked: Timestamp(CLOCK_NS + HOUR_NS),
            forgotten: Vec::new(),
            pinned: Timestamp::ZERO,
            installs: Vec::new(),
        };
        // It comes twice, because the channel was reset.
        base.receive_parcel(OTHER, Arc::new(parcel()));
        base.connected_moves(OTHER, false);
        base.receive_parcel(OTHER, Arc::new(parcel()));
        base.pass(Timestamp(CLOCK_NS + HOUR_NS - MAX_OFFSET_NS - 1));
        assert_eq!((base.owner(slot), base.counters.future_stamps), (OTHER, 2));
        assert_eq!(base.moves.due(), Some(CLOCK_NS + HOUR_NS - MAX_OFFSET_NS));
        base.pass(Timestamp(CLOCK_NS + HOUR_NS - MAX_OFFSET_NS));
        assert_eq!((base.owner(slot), base.moves.due()), (ShardId(0), None));
        let told = base.outgoing_moves();
        assert!(told.iter().any(|(to, told)| *to == OTHER && matches!(told, Common::TakenOver(_))));
    }
}
