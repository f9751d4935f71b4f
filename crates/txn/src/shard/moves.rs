//! Slots move from shard to shard while transactions run.
//!
//! The owner of some slots is asked to give them to another shard ([`Common::Move`]). It
//!
//! 1. **drains**: it refuses new locks in the slots until no transaction holds a lock there, nor on
//!    any range;
//! 2. **cuts**: in one step it takes the rows out of its store, with all their versions, and notes
//!    in its placement map that the other shard owns the slots, one term later. From now on it
//!    refuses every request about them;
//! 3. **sends** the rows, with a bound above all its marks and with its floor, and keeps them until
//!    the other shard has answered. If the channel breaks it sends them again.
//!
//! The receiver stores the rows and notes that it owns the slots, in one step as well; it serves
//! them from then on. In between no shard serves them: read-write transactions abort and try again,
//! and snapshot reads wait and continue at their timestamp.
//!
//! Only these two shards learn of a move directly. A coordinator uses its own map. A shard that
//! does not own the slot of a key refuses the request with [`Abort::StaleTerm`], and sends the
//! newer map after the refusal ([`Common::Map`]). A scan must find every row of its range exactly
//! once. So it names the slots that its coordinator believes the shard to own
//! ([`crate::procedure::Reads`]), and the shard refuses if it owns others: each slot has one owner
//! in one map, so the shards that have served a scan have served every slot once.
//!
//! Why this is serializable: a transaction that holds locks keeps its slots from moving. A
//! transaction that has read without locks finds at validation that its rows are gone or the
//! versions of its ranges have changed. A transaction that has read at a timestamp, validated or
//! dropped a lock has left its timestamp in a mark. The bound that travels with the rows is above
//! all marks, so later writers are ordered after that transaction wherever the slot is. Versions
//! move with the rows, so a snapshot finds at the receiver the same versions as before.
//!
//! A bound that is far ahead of the receiver's clock would push all its writers as far ahead. So
//! slots with such a bound do not leave if the shard that asks for the move has a better clock, and
//! a receiver takes them over only when its clock is there.
//!
//! Shards that log keep a move over their deaths (`durable.rs`). The sender's log says that slots
//! have left, and the receiver's has the rows that have arrived; each shard tells the other only
//! when that is on disk. A sender that comes back finds in its log what it had cut and the receiver
//! has not confirmed, and sends it again.
//!
//! Left out: a move is one step on either side, however large the slots are. While the receiver is
//! dead, the move is in doubt and no shard serves the slots.

use std::sync::Arc;

use plimsoll_runtime::Handled;
use plimsoll_store::MovedRow;
use plimsoll_types::Ticket;
use plimsoll_types::history::Install;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{
    Abort, ColumnGroup, Key, Moved, Placement, SLOTS, ShardId, Slot, TableId, Timestamp, TxnId,
};

use crate::base::{Base, Layout};
use crate::journal::Arrival;
use crate::messages::{Common, CommonReply, MoveOutcome, Parcel};
use crate::procedure::Reads;
use crate::slots::{DepartingSlots, Moves, SlotSet};
use crate::timestamp::Scheme;

/// How long a shard waits between checks for locks, in nanoseconds: at first, and at most.
const LOOK_NS: (u64, u64) = (100_000, 20_000_000);
/// How many moves of slots the journal lists one by one, at most.
const JOURNAL_MAX: usize = 4 * SLOTS;
/// Size of a message with moving rows, in bytes (approximate).
const PARCEL_BYTES: usize = 1 << 18;

impl Layout {
    /// The slot of a key; `None` if its table is on every shard.
    #[inline]
    fn slot(&self, table: TableId, key: &Key) -> Option<Slot> {
        self.tables[table.index()].partitioning.slot(key)
    }
}

impl<S: Scheme> Parcel<S> {
    /// The largest stamp that the receiver will order writers after once it has taken the slots
    /// over.
    fn reach(&self) -> Timestamp {
        let records = self.rows.iter().flat_map(|row| &row.records);
        let newest = records.filter_map(|record| record.versions.last()).map(|(stamp, _)| *stamp).max();
        let forgotten = self.forgotten.iter().copied().max();
        self.floor.join(self.marked).join(newest.max(forgotten).unwrap_or_default())
    }
}

impl<S: Scheme> Base<S> {
    /// The placement map as this shard knows it.
    pub fn placement(&self) -> &Arc<Placement> {
        &self.layout.placement
    }

    /// A counter that changes whenever this shard's placement map changes.
    pub(crate) fn map(&self) -> u64 {
        self.moves.changes
    }

    pub(super) fn change_map(&mut self, moved: &[Moved]) {
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

    /// Whether this shard has all the rows that a request asks for. If not, it will tell the
    /// coordinator where they are.
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

    /// Whether a column group exists: a request of another process may name any.
    fn has(&self, column: ColumnGroup) -> bool {
        let table = self.layout.tables.get(column.table.index());
        table.is_some_and(|table| usize::from(column.group) < table.groups.len())
    }

    /// The same for the ranges only, for callers that ask [`Base::may_lock`] for each key.
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

    /// Whether this shard stores a key's row, or a copy of it.
    pub(crate) fn keeps(&self, table: TableId, key: &Key) -> bool {
        match self.layout.slot(table, key) {
            Some(slot) => self.owner(slot) == self.shard,
            None => self.layout.placement.is_holder(self.shard),
        }
    }

    /// Whether a coordinator may lock a key here in order to write it. Rows of immutable tables are
    /// only loaded.
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

    /// Whether new locks may be taken here on ranges and on records that were read.
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

    /// Notes in a batch for `shard` which slots this shard's map says that it owns.
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
        most: Timestamp,
        asked: &mut bool,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        if !std::mem::replace(asked, true) {
            let behind_ns = self.furthest().0.saturating_sub(most.0);
            let placement = &self.layout.placement;
            let refused = match () {
                // Going back to a cut takes no slot back.
                () if self.known_cut().is_some() => Some(MoveOutcome::Busy),
                () if !placement.is_holder(to) => Some(MoveOutcome::NoSuchPlace),
                () if slots.iter().any(|slot| usize::from(slot.0) >= SLOTS) => Some(MoveOutcome::NoSuchPlace),
                () if slots.iter().any(|&slot| placement.shard(slot) != self.shard) => {
                    Some(MoveOutcome::NotHere)
                }
                () if slots.is_empty() || to == self.shard => Some(MoveOutcome::Moved),
                () if self.moves.leaving.is_some() || self.moves.kept => Some(MoveOutcome::Busy),
                () if !self.votes.reaches(to) => Some(MoveOutcome::Unreachable),
                () if self.too_far(from, behind_ns) => Some(MoveOutcome::ClockAhead),
                () => None,
            };
            if let Some(refused) = refused {
                self.tell_map(from);
                return Handled::Reply(CommonReply::MoveOver(refused));
            }
            self.moves.leaving = Some(DepartingSlots {
                slots: slots.to_vec(),
                set: Arc::new(SlotSet::new(slots.iter().copied())),
                to,
                asker: from,
                behind_ns,
                ticket: Some(ticket),
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

    /// Whether what would move along with slots is too far ahead for the shard that asks, whose
    /// clock is so far behind this one. A receiver could not take over the slots before its clock
    /// has arrived there, and no shard would serve them until then.
    fn too_far(&self, asker: ShardId, behind_ns: u64) -> bool {
        let most = Timestamp(self.furthest().0 - behind_ns);
        S::CLOCKED
            && self.votes.in_another_process(asker)
            && self.store.marked().join(self.store.floor()) > most
    }

    /// While `keep` is set, no slot leaves this shard: rows are being loaded into them.
    pub fn keep_slots(&mut self, keep: bool) {
        self.moves.kept = keep;
    }

    /// Cuts the leaving slots if no lock is in the way.
    pub(crate) fn tick_moves(&mut self, clock: Timestamp) {
        self.take_over_complete();
        let Some(leaving) = &self.moves.leaving else { return };
        if !leaving.sent.is_empty() || clock.0 < leaving.look {
            return;
        }
        let (slots, set, layout) = (leaving.slots.clone(), leaving.set.clone(), self.layout.clone());
        let (asker, behind_ns) = (leaving.asker, leaving.behind_ns);
        let wanted = |table: TableId, key: &Key| set.has(layout.slot(table, key));
        if !self.votes.reaches(leaving.to) {
            return self.move_over(MoveOutcome::Unreachable);
        }
        if !self.store.busy(wanted) || planted(Mutant::MoveUnderLocks) {
            return match self.too_far(asker, behind_ns) {
                true => self.move_over(MoveOutcome::ClockAhead),
                false => self.cut(&slots, wanted),
            };
        }
        let Moves { leaving: Some(leaving), patience_ns, .. } = &mut self.moves else { return };
        if clock.0 >= *leaving.until.get_or_insert(clock.0.saturating_add(*patience_ns)) {
            return self.move_over(MoveOutcome::Locked);
        }
        leaving.look = clock.0 + leaving.wait;
        leaving.wait = (2 * leaving.wait).min(LOOK_NS.1);
    }

    /// Takes the slots out of the store and sends them.
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
        self.log_left(&slots);
        let leaving = self.pack(&slots, rows, floor, marked, pinned, installs);
        self.moves.leaving.as_mut().expect("something leaves").sent = leaving;
        self.send_parcels();
    }

    /// The messages with which slots leave.
    fn pack(
        &self,
        slots: &[Moved],
        rows: Vec<MovedRow>,
        floor: Timestamp,
        marked: Timestamp,
        pinned: S::Observed,
        mut installs: Vec<Install>,
    ) -> Vec<Arc<Parcel<S>>> {
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
        let (of, forgotten) = (parcels.len() as u32, self.forgotten());
        (0..)
            .zip(parcels)
            .map(|(number, rows)| {
                Arc::new(Parcel {
                    slots: slots.to_vec(),
                    number,
                    of,
                    rows,
                    floor,
                    forgotten: forgotten.clone(),
                    marked,
                    pinned: pinned.clone(),
                    installs: if number == 0 { std::mem::take(&mut installs) } else { Vec::new() },
                })
            })
            .collect()
    }

    /// The log says that slots have left, and not that they have arrived: they leave again.
    /// `marked` is above every mark that the shard may have had.
    pub(super) fn leave_again(&mut self, slots: Vec<Moved>, rows: Vec<MovedRow>, marked: Timestamp) {
        let Some(&(_, to, _)) = slots.first() else { return };
        let mut pinned = S::Observed::default();
        self.scheme.observe_pinned(&mut pinned);
        let sent = self.pack(&slots, rows, self.store.floor(), marked, pinned, Vec::new());
        let slots: Vec<Slot> = slots.iter().map(|&(slot, ..)| slot).collect();
        self.moves.leaving = Some(DepartingSlots {
            set: Arc::new(SlotSet::new(slots.iter().copied())),
            slots,
            to,
            asker: to,
            behind_ns: 0,
            ticket: None,
            until: None,
            look: 0,
            wait: 0,
            sent,
        });
    }

    /// Takes out the rows of slots that have left, as the log says.
    pub(super) fn take_slots(&mut self, slots: &[Moved]) -> Vec<MovedRow> {
        let (set, layout) = (SlotSet::new(slots.iter().map(|&(slot, ..)| slot)), self.layout.clone());
        let rows = self.store.take_out(|table, key| set.has(layout.slot(table, key)));
        self.change_map(slots);
        rows
    }

    pub(super) fn send_parcels(&mut self) {
        let Moves { leaving: Some(leaving), outgoing, .. } = &mut self.moves else { return };
        let parcels = leaving.sent.iter().map(|parcel| Common::Parcel(parcel.clone()));
        outgoing.extend(parcels.map(|parcel| (leaving.to, parcel)));
    }

    fn move_over(&mut self, outcome: MoveOutcome) {
        let leaving = self.moves.leaving.take().expect("something leaves");
        self.tell_map(leaving.asker);
        if let Some(ticket) = leaving.ticket {
            self.moves.over.push((ticket, outcome));
            self.released.push(ticket);
        }
    }

    /// Takes a parcel of moving slots. When all parcels have arrived, this shard takes over the
    /// slots.
    pub(crate) fn receive_parcel(&mut self, from: ShardId, parcel: Arc<Parcel<S>>) {
        let slots = parcel.slots.clone();
        let placement = &self.layout.placement;
        let to_me = slots.iter().all(|&(_, to, _)| to == self.shard);
        let news = |&(slot, _, term): &Moved| term > placement.term(slot);
        let count = slots.iter().filter(|moved| news(moved)).count();
        // If this shard took the slots over before, none of these entries is newer than its map;
        // otherwise all are.
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
                self.moves.early.retain(|(sender, _)| *sender != from);
            }
            if parcel.number as usize != parcels.len() {
                return;
            }
            parcels.push(parcel);
            let all = parcels[0].of as usize;
            if parcels.len() < all || parcels.iter().any(|parcel| parcel.slots != slots) {
                return;
            }
            let reach = parcels.iter().map(|parcel| parcel.reach()).max().unwrap_or_default();
            if self.believe(from, reach).is_err() {
                self.moves.early.push((from, reach));
                return;
            }
            let (_, parcels) = self.moves.arriving.swap_remove(at);
            self.take_over(&parcels);
        }
        self.moves.outgoing.push((from, Common::TakenOver(slots)));
    }

    /// Takes over slots whose stamps were too far ahead when they arrived, once the clock is there.
    fn take_over_complete(&mut self) {
        while let Some(at) = self.moves.early.iter().position(|&(_, reach)| reach <= self.furthest()) {
            let (from, _) = self.moves.early.swap_remove(at);
            let arriving = &mut self.moves.arriving;
            if let Some(at) = arriving.iter().position(|(sender, _)| *sender == from) {
                let (_, parcels) = arriving.swap_remove(at);
                self.take_over(&parcels);
                self.moves.outgoing.push((from, Common::TakenOver(parcels[0].slots.clone())));
            }
        }
    }

    fn take_over(&mut self, parcels: &[Arc<Parcel<S>>]) {
        let Parcel { slots, floor, marked, forgotten, pinned, .. } = &*parcels[0];
        if let Some(installs) = &mut self.installs {
            installs.extend(parcels.iter().flat_map(|parcel| parcel.installs.iter().cloned()));
        }
        let moved = SlotSet::new(slots.iter().map(|&(slot, ..)| slot));
        // Rows outside the slots, or of unknown tables, come from a faulty or hostile peer.
        let known = |row: &&MovedRow| {
            let spec = self.layout.tables.get(row.table.index());
            let groups = |spec: &plimsoll_types::TableSpec| spec.groups.len() == row.records.len();
            spec.is_some_and(groups) && moved.has(self.layout.slot(row.table, &row.key))
        };
        let rows: Vec<&MovedRow> = parcels.iter().flat_map(|parcel| &parcel.rows).filter(known).collect();
        self.scheme.adopt(pinned);
        self.arrive(slots, rows.iter().copied(), *floor, *marked, forgotten);
        if self.journal.is_some() {
            let rows = rows.into_iter().cloned().collect();
            let (slots, forgotten) = (slots.clone(), forgotten.clone());
            self.log_arrived(Arrival { slots, rows, floor: *floor, marked: *marked, forgotten });
        }
    }

    /// Slots arrive, or the log says that they have.
    pub(super) fn arrive<'a>(
        &mut self,
        slots: &[Moved],
        rows: impl IntoIterator<Item = &'a MovedRow>,
        floor: Timestamp,
        marked: Timestamp,
        forgotten: &[Timestamp],
    ) {
        self.store.put_in(rows, floor, marked);
        let absences = self.absences.iter_mut().zip(forgotten);
        absences.for_each(|(mine, other)| mine.forgotten.raise(*other));
        self.change_map(slots);
    }

    /// The receiver has taken over the slots.
    pub(crate) fn taken_over(&mut self, from: ShardId, slots: &[Moved]) {
        let sent = self.moves.leaving.as_ref().and_then(|leaving| Some((leaving.to, leaving.sent.first()?)));
        if sent.is_some_and(|(to, parcel)| to == from && parcel.slots == slots) {
            self.log_gone();
            self.move_over(MoveOutcome::Moved);
        }
    }

    /// Learns from a peer where slots are. It changes no entry to or from this shard: only the
    /// shard itself gives its slots away, and it gains slots only by parcels.
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

    /// The channel to a shard was connected, or was reset.
    pub(crate) fn connected_moves(&mut self, peer: ShardId, up: bool) {
        self.moves.arriving.retain(|(sender, _)| *sender != peer);
        self.moves.early.retain(|(sender, _)| *sender != peer);
        self.moves.told.remove(&peer);
        if up && self.moves.leaving.as_ref().is_some_and(|leaving| leaving.to == peer) {
            self.send_parcels();
        }
    }

    /// Takes the messages to be sent at the end of a pass.
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
