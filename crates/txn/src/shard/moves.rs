//! Slots move from shard to shard while transactions run.
//!
//! The owner of some slots is asked to give them to another shard ([`Common::Move`]). It
//!
//! 1. **drains**: it refuses new locks in the slots until nobody holds any there, nor on any range;
//! 2. **cuts**: in one step it takes the rows out of its store, with all their versions, and notes
//!    in its placement map
//!    that the slots belong to the other, one term later. From now on it refuses whatever is asked
//!    about them;
//! 3. **sends** the rows, with a bound above all its marks and with its floor, and keeps them until
//!    the other has
//!    answered. A broken channel makes it send them again.
//!
//! The receiver puts them in and notes that it owns the slots, in one step as well; only then it
//! serves them. In between nobody does: transactions abort and try again, and snapshots wait and go
//! on at their timestamp.
//!
//! Nothing else is told of a move. A coordinator goes by its own map. What it sends to a shard that
//! does not own the slot of a key is refused with [`Abort::StaleTerm`], and the map follows the
//! refusal ([`Common::Map`]). A scan must find every row of its range exactly once, so it says
//! which slots its coordinator takes the shard to own ([`crate::procedure::Reads`]), and is refused
//! if the shard owns others: as each slot has one owner in one map, the shards that have served a
//! scan have served every slot once.
//!
//! Why this is serializable: a transaction that holds locks keeps its slots from moving. One that
//! has read without locks finds, when it validates, that its rows are gone or the versions of its
//! ranges have changed. Whoever has read at a timestamp, validated or dropped a lock has left that
//! timestamp in a mark; the bound that comes with the rows is above all marks, so later writers are
//! ordered after them wherever the slot is. Versions move with the rows, so that a snapshot finds
//! in the new place what it would have found in the old.
//!
//! Left out: a move is one step on either side, however large the slots are; while its receiver is
//! dead, what was sent is in doubt, and the slots are served by nobody.

use std::sync::Arc;

use plimsoll_runtime::Handled;
use plimsoll_store::MovedRow;
use plimsoll_types::Ticket;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{
    Abort, ColumnGroup, Key, Moved, Placement, SLOTS, ShardId, Slot, TableId, Timestamp, TxnId,
};

use crate::base::{Base, Layout};
use crate::messages::{Common, CommonReply, MoveOutcome, Parcel};
use crate::procedure::Reads;
use crate::slots::{Leaving, Moves, SlotSet};
use crate::timestamp::Scheme;

/// How long a shard waits between looks whether locks are gone, in nanoseconds: at first, and at
/// most.
const LOOK_NS: (u64, u64) = (100_000, 20_000_000);
/// So many moves of slots are remembered one by one.
const JOURNAL_MAX: usize = 4 * SLOTS;
/// About how many bytes of rows travel in one message.
const PARCEL_BYTES: usize = 1 << 18;

impl Layout {
    /// The slot of a key, unless its table is everywhere.
    #[inline]
    fn slot(&self, table: TableId, key: &Key) -> Option<Slot> {
        self.tables[table.index()].partitioning.slot(key)
    }
}

impl<S: Scheme> Base<S> {
    /// The placement map as this shard knows it.
    pub fn placement(&self) -> &Arc<Placement> {
        &self.layout.placement
    }

    /// Differs before and after anything about slots has changed here.
    pub(crate) fn map(&self) -> u64 {
        self.moves.changes
    }

    fn change_map(&mut self, moved: &[Moved]) {
        self.moves.changes += 1;
        let placement = Arc::make_mut(&mut self.layout.placement);
        for &moved in moved {
            if placement.merge(moved) {
                self.moves.journal.push(moved.0);
            }
        }
        if self.moves.journal.len() > JOURNAL_MAX {
            self.moves.journal = placement.moved().into_iter().map(|(slot, ..)| slot).collect();
            self.moves.told.clear();
        }
    }

    /// Whether what is asked of this shard is here. If it is elsewhere, the coordinator will be
    /// told where it is.
    pub(crate) fn serves(&mut self, txn: TxnId, reads: &Reads) -> bool {
        if !reads.gets.iter().all(|(column, ..)| self.has(*column)) {
            return false;
        }
        let mine = |(table, key): (TableId, &Key)| {
            self.layout.slot(table, key).is_none_or(|slot| self.owner(slot) == self.shard)
        };
        let gets = reads.gets.iter().map(|(column, key, _)| (column.table, key)).all(mine);
        if !gets && !planted(Mutant::MapUnchecked) {
            self.tell_map(txn.coordinator);
            return false;
        }
        self.serves_scans(txn, reads)
    }

    /// Whether there is such a column group: another process may ask for anything.
    fn has(&self, column: ColumnGroup) -> bool {
        let table = self.layout.tables.get(column.table.index());
        table.is_some_and(|table| usize::from(column.group) < table.groups.len())
    }

    /// The same of the ranges only, for who asks [`Base::may_lock`] of each key.
    pub(crate) fn serves_scans(&mut self, txn: TxnId, reads: &Reads) -> bool {
        if !reads.scans.iter().all(|(scan, _)| self.has(scan.column)) {
            return false;
        }
        let ranges = reads.scans.iter().any(|(scan, _)| !self.everywhere(scan.column.table));
        let scans = !ranges || reads.owned == self.layout.placement.fingerprint(self.shard);
        let serves = scans || planted(Mutant::ScanUnchecked);
        if !serves {
            self.tell_map(txn.coordinator);
        }
        serves
    }

    /// Whether a row is on this shard, or a copy of it.
    pub(crate) fn keeps(&self, table: TableId, key: &Key) -> bool {
        match self.layout.slot(table, key) {
            Some(slot) => self.owner(slot) == self.shard,
            None => self.layout.placement.is_holder(self.shard),
        }
    }

    /// Whether a coordinator may lock a key here, to write it: rows of immutable tables are only loaded.
    pub(crate) fn may_write(&mut self, txn: TxnId, column: ColumnGroup, key: &Key) -> Result<(), Abort> {
        self.may_lock(txn, column, key)?;
        if self.immutable(column.table) { Err(Abort::Refused) } else { Ok(()) }
    }

    /// Whether a coordinator may lock a key here.
    pub(crate) fn may_lock(&mut self, txn: TxnId, column: ColumnGroup, key: &Key) -> Result<(), Abort> {
        if !self.has(column) {
            return Err(Abort::StaleTerm);
        }
        let Some(slot) = self.layout.slot(column.table, key) else { return Ok(()) };
        let mine = self.owner(slot) == self.shard || planted(Mutant::MapUnchecked);
        if mine && !self.moves.drains(slot) {
            return Ok(());
        }
        self.tell_map(txn.coordinator);
        Err(Abort::StaleTerm)
    }

    /// Whether new locks may be taken on records that were read here, or on ranges.
    pub(crate) fn may_lock_reads(&self) -> bool {
        self.moves.leaving.as_ref().is_none_or(|leaving| !leaving.sent.is_empty())
    }

    #[cold]
    pub(crate) fn tell_map(&mut self, coordinator: ShardId) {
        let known = coordinator.index() < self.layout.processes.len() && coordinator != self.shard;
        if known && !self.moves.behind.contains(&coordinator) {
            self.moves.behind.push(coordinator);
        }
    }

    /// Says, of a batch for a shard, which slots this shard takes that shard to own.
    pub fn seal(&self, shard: ShardId, reads: &mut Reads) {
        if !reads.scans.is_empty() {
            reads.owned = self.layout.placement.fingerprint(shard);
        }
    }

    pub(crate) fn move_slots(
        &mut self,
        from: ShardId,
        slots: &[Slot],
        to: ShardId,
        asked: &mut bool,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        if !std::mem::replace(asked, true) {
            let placement = &self.layout.placement;
            let refused = match () {
                () if self.moves.leaving.is_some() || self.moves.kept => Some(MoveOutcome::Busy),
                () if !placement.is_holder(to) || to == self.shard => Some(MoveOutcome::NoSuchPlace),
                () if slots.iter().any(|slot| usize::from(slot.0) >= SLOTS) => Some(MoveOutcome::NoSuchPlace),
                () if !self.votes.reaches(to) => Some(MoveOutcome::Unreachable),
                () if slots.iter().any(|&slot| placement.shard(slot) != self.shard) => {
                    Some(MoveOutcome::NotHere)
                }
                () if slots.is_empty() => Some(MoveOutcome::Moved),
                () => None,
            };
            if let Some(refused) = refused {
                self.tell_map(from);
                return Handled::Reply(CommonReply::MoveOver(refused));
            }
            self.moves.leaving = Some(Leaving {
                slots: slots.to_vec(),
                set: Arc::new(SlotSet::new(slots.iter().copied())),
                to,
                asker: from,
                ticket,
                until: None,
                look: 0,
                wait: LOOK_NS.0,
                sent: Vec::new(),
            });
        }
        match self.moves.over.iter().position(|(over, _)| *over == ticket) {
            Some(at) => Handled::Reply(CommonReply::MoveOver(self.moves.over.swap_remove(at).1)),
            None => Handled::Wait,
        }
    }

    /// While something is loaded that belongs to slots of this shard, they stay.
    pub fn keep_slots(&mut self, keep: bool) {
        self.moves.kept = keep;
    }

    /// Looks whether what leaves can be cut off.
    pub(crate) fn tick_moves(&mut self, clock: Timestamp) {
        let Some(leaving) = &self.moves.leaving else { return };
        if !leaving.sent.is_empty() || clock.0 < leaving.look {
            return;
        }
        let (slots, set, layout) = (leaving.slots.clone(), leaving.set.clone(), self.layout.clone());
        let wanted = |table: TableId, key: &Key| set.has(layout.slot(table, key));
        if !self.votes.reaches(leaving.to) {
            return self.move_over(MoveOutcome::Unreachable);
        }
        if !self.store.busy(wanted) || planted(Mutant::MoveUnderLocks) {
            return self.cut(&slots, wanted);
        }
        let Moves { leaving: Some(leaving), patience_ns, .. } = &mut self.moves else { return };
        if clock.0 >= *leaving.until.get_or_insert(clock.0.saturating_add(*patience_ns)) {
            return self.move_over(MoveOutcome::Locked);
        }
        leaving.look = clock.0 + leaving.wait;
        leaving.wait = (2 * leaving.wait).min(LOOK_NS.1);
    }

    /// Takes slots out and sends them away.
    fn cut(&mut self, slots: &[Slot], wanted: impl Fn(TableId, &Key) -> bool) {
        let (floor, marked) = (self.store.floor(), self.store.marked());
        let mut pinned = S::Observed::default();
        self.scheme.observe_pinned(&mut pinned);
        let rows = self.store.take_out(&wanted);
        let mut installs = Vec::new();
        if let Some(all) = &mut self.installs {
            installs = all.extract_if(.., |install| wanted(install.column.table, &install.key)).collect();
        }
        let to = self.moves.leaving.as_ref().expect("something leaves").to;
        let moved = |&slot: &Slot| (slot, to, self.layout.placement.term(slot) + 1);
        let slots: Vec<Moved> = slots.iter().map(moved).collect();
        self.change_map(&slots);
        let mut parcels = vec![Vec::new()];
        let mut bytes = 0;
        for row in rows.into_iter().flat_map(|row| row.pieces(PARCEL_BYTES)) {
            if bytes >= PARCEL_BYTES {
                parcels.push(Vec::new());
                bytes = 0;
            }
            bytes += row.bytes();
            parcels.last_mut().expect("there is one at least").push(row);
        }
        let of = parcels.len() as u32;
        let leaving = self.moves.leaving.as_mut().expect("something leaves");
        leaving.sent = (0..)
            .zip(parcels)
            .map(|(number, rows)| {
                Arc::new(Parcel {
                    slots: slots.clone(),
                    number,
                    of,
                    rows,
                    floor,
                    marked,
                    pinned: pinned.clone(),
                    installs: if number == 0 { std::mem::take(&mut installs) } else { Vec::new() },
                })
            })
            .collect();
        self.send_parcels();
    }

    fn send_parcels(&mut self) {
        let Moves { leaving: Some(leaving), outgoing, .. } = &mut self.moves else { return };
        let parcels = leaving.sent.iter().map(|parcel| Common::Parcel(parcel.clone()));
        outgoing.extend(parcels.map(|parcel| (leaving.to, parcel)));
    }

    fn move_over(&mut self, outcome: MoveOutcome) {
        let leaving = self.moves.leaving.take().expect("something leaves");
        self.tell_map(leaving.asker);
        self.moves.over.push((leaving.ticket, outcome));
        self.released.push(leaving.ticket);
    }

    /// Some of what another shard gives to this one. Takes it over when all of it is here.
    pub(crate) fn receive_parcel(&mut self, from: ShardId, parcel: Arc<Parcel<S>>) {
        let slots = parcel.slots.clone();
        let placement = &self.layout.placement;
        let to_me = slots.iter().all(|&(_, to, _)| to == self.shard);
        let news = |&(slot, _, term): &Moved| term > placement.term(slot);
        let count = slots.iter().filter(|moved| news(moved)).count();
        // None is news if it was taken over before, and all are otherwise.
        if !to_me || 0 < count && count < slots.len() {
            return;
        }
        if count > 0 {
            let arriving = &mut self.moves.arriving;
            let at = arriving.iter().position(|(sender, _)| *sender == from).unwrap_or_else(|| {
                arriving.push((from, Vec::new()));
                arriving.len() - 1
            });
            let parcels = &mut arriving[at].1;
            if parcel.number == 0 {
                parcels.clear();
            }
            if parcel.number as usize != parcels.len() {
                return;
            }
            parcels.push(parcel);
            let all = parcels[0].of as usize;
            if parcels.len() < all || parcels.iter().any(|parcel| parcel.slots != slots) {
                return;
            }
            let (_, parcels) = arriving.swap_remove(at);
            self.take_over(&parcels);
        }
        self.moves.outgoing.push((from, Common::TakenOver(slots)));
    }

    fn take_over(&mut self, parcels: &[Arc<Parcel<S>>]) {
        let Parcel { slots, floor, marked, pinned, .. } = &*parcels[0];
        if let Some(installs) = &mut self.installs {
            installs.extend(parcels.iter().flat_map(|parcel| parcel.installs.iter().cloned()));
        }
        let moved = SlotSet::new(slots.iter().map(|&(slot, ..)| slot));
        // Whoever sends others has a bug, or is nobody's friend.
        let known = |row: &&MovedRow| {
            let spec = self.layout.tables.get(row.table.index());
            let groups = |spec: &plimsoll_types::TableSpec| spec.groups.len() == row.records.len();
            spec.is_some_and(groups) && moved.has(self.layout.slot(row.table, &row.key))
        };
        let rows: Vec<&MovedRow> = parcels.iter().flat_map(|parcel| &parcel.rows).filter(known).collect();
        self.store.put_in(rows, *floor, *marked);
        self.scheme.adopt(pinned);
        self.change_map(slots);
    }

    /// The receiver has what was sent.
    pub(crate) fn taken_over(&mut self, from: ShardId, slots: &[Moved]) {
        let sent = self.moves.leaving.as_ref().and_then(|leaving| Some((leaving.to, leaving.sent.first()?)));
        if sent.is_some_and(|(to, parcel)| to == from && parcel.slots == slots) {
            self.move_over(MoveOutcome::Moved);
        }
    }

    /// Learns where slots are. What is here only this shard itself gives away, and only a parcel
    /// brings anything.
    pub(crate) fn learn_map(&mut self, moved: &[Moved]) {
        let placement = &self.layout.placement;
        let news = |&&(slot, to, term): &&Moved| {
            to != self.shard && placement.shard(slot) != self.shard && term > placement.term(slot)
        };
        let news: Vec<Moved> = moved.iter().filter(news).copied().collect();
        if !news.is_empty() {
            self.change_map(&news);
        }
    }

    /// A shard can be reached again, or not any more.
    pub(crate) fn connected_moves(&mut self, peer: ShardId, up: bool) {
        self.moves.arriving.retain(|(sender, _)| *sender != peer);
        self.moves.told.remove(&peer);
        if up && self.moves.leaving.as_ref().is_some_and(|leaving| leaving.to == peer) {
            self.send_parcels();
        }
    }

    /// What is to be sent at the end of a pass.
    pub(crate) fn outgoing_moves(&mut self) -> Vec<(ShardId, Common<S>)> {
        let mut outgoing = std::mem::take(&mut self.moves.outgoing);
        let Moves { behind, journal, told, .. } = &mut self.moves;
        for coordinator in behind.drain(..) {
            let placement = &self.layout.placement;
            let told = told.insert(coordinator, journal.len()).unwrap_or_default();
            let news =
                journal[told..].iter().map(|&slot| (slot, placement.shard(slot), placement.term(slot)));
            let news: Vec<Moved> = news.collect();
            if !news.is_empty() {
                outgoing.push((coordinator, Common::Map(news)));
            }
        }
        outgoing
    }
}
