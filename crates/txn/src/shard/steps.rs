//! What transactions do to records, step by step, for whoever watches.
//!
//! A recorded history tells what a transaction read and wrote. Its *steps* tell how: which lock it
//! took and what bound it found under it, which mark it raised from where to where, whom it waited
//! for, what its stamp had to exceed. The simulator draws them as a picture. They are kept in
//! `Base::steps`, which is `None` unless somebody watches; every place that notes a step goes
//! through `Base::step`, which then costs a branch, and computes nothing.
//!
//! Example, under DST: a snapshot at @9 reads `x`: `Raises { x, 5, 9 }`, `Reads { x, @4 }`. A
//! writer comes: `Locks { x, bound: 9, lb: 10 }`, `Stamps { @10, least: 10 }`, `Installs { x, @10,
//! 9, 10 }`.
//!
//! A *bound* here is what a writer of the item would have to exceed: its mark, that of the leaf
//! around it, and the floor. The bounds of an item never fall (I5), though a record may be
//! collected and linked again in between.
//!
//! A transaction that runs in one step gets its number at the end of it. Its steps carry that
//! number all the same: nobody else can draw one meanwhile (`Base::coming`).
//!
//! Left out: reads of immutable tables, which leave no trace; what a coordinator computes.

use std::ops::ControlFlow;

use plimsoll_store::{At, Cover, LockId, Mark, Visited};
use plimsoll_types::history::{Read, Version};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::{Fetched, ReadRef};
use crate::procedure::{Reads, Scan};
use crate::timestamp::Scheme;
use crate::trace::{Item, What, note};
use crate::work::Footprint;

/// Something that was read, what it is, and its bound before it is pinned.
pub(crate) type Watched = (ReadRef, Item, Timestamp);

impl<S: Scheme> Base<S> {
    /// Notes a step if somebody watches. What it says is computed only then.
    #[inline]
    pub(crate) fn step(&mut self, txn: TxnId, what: impl FnOnce(&mut Self) -> What) {
        if self.steps.is_some() {
            self.watched_step(txn, what);
        }
    }

    #[cold]
    #[inline(never)]
    fn watched_step(&mut self, txn: TxnId, what: impl FnOnce(&mut Self) -> What) {
        let what = what(self);
        note(&mut self.steps, txn, || what);
    }

    /// A record by its key.
    pub(crate) fn item(&self, at: At) -> Item {
        Item::Record(at.column, self.store.key(at.column.table, at.row))
    }

    /// What stands for a locked range: the first leaf of it.
    pub(crate) fn item_of_range(&mut self, lock: LockId) -> Item {
        for table in (0..self.store.tables()).map(|table| TableId(table as u16)) {
            let range = self.store.ranges(table).iter().find(|range| range.lock == lock);
            let first = range.and_then(|range| range.iter().next());
            if let Some((low, high)) = first.map(|(low, high)| (low.clone(), high.cloned())) {
                return match self.store.spec(table).index {
                    IndexKind::Ordered => Item::Cover(table, self.leaves(table, &low, high.as_ref())[0]),
                    IndexKind::Hash => Item::Record(table.row(), low),
                };
            }
        }
        panic!("a locked range belongs to a table")
    }

    /// What a writer of an item must exceed.
    pub(crate) fn bound_of(&mut self, item: &Item) -> Timestamp {
        match item {
            Item::Record(column, key) => {
                let place = self.store.find(*column, key);
                let record = place.row().map(|row| self.store.record(At { row, column: *column }));
                self.store.bound(record, column.table, place.cover())
            }
            Item::Cover(table, cover) => self.store.cover_mark(*table, *cover).get().join(self.store.floor()),
        }
    }

    /// What covers a range, with its bounds, if somebody watches.
    #[inline]
    pub(crate) fn watched_range(&mut self, scan: &Scan) -> Vec<(Item, Timestamp)> {
        if self.steps.is_none() || self.immutable(scan.column.table) {
            return Vec::new();
        }
        let table = scan.column.table;
        let leaves = self.leaves(table, &scan.low, scan.high.as_ref());
        self.with_bounds(leaves.into_iter().map(|cover| Item::Cover(table, cover)).collect())
    }

    #[cold]
    #[inline(never)]
    fn with_bounds(&mut self, items: Vec<Item>) -> Vec<(Item, Timestamp)> {
        items.into_iter().map(|item| (item.clone(), self.bound_of(&item))).collect()
    }

    /// The bounds of everything that was read, if somebody watches.
    #[inline]
    pub(crate) fn watched_all(&mut self, reads: impl Iterator<Item = ReadRef>) -> Vec<Watched> {
        if self.steps.is_none() { Vec::new() } else { self.bounds_of_all(reads) }
    }

    #[cold]
    #[inline(never)]
    fn bounds_of_all(&mut self, reads: impl Iterator<Item = ReadRef>) -> Vec<Watched> {
        let mut found: Vec<Watched> = Vec::new();
        for read in reads {
            let item = match read {
                ReadRef::Row { at, .. } => self.item(at),
                ReadRef::Cover { table, cover, .. } => Item::Cover(table, cover),
                ReadRef::Stale | ReadRef::Immutable => continue,
            };
            let bound = self.bound_of(&item);
            // What is read twice is pinned once.
            if found.iter().all(|(_, known, _)| *known != item) {
                found.push((read, item, bound));
            }
        }
        found
    }

    /// Notes that everything was pinned whose bounds were looked up before.
    pub(crate) fn step_pinned(&mut self, txn: TxnId, before: Vec<Watched>, validates: bool) {
        for (read, item, before) in before {
            let bounds = (before, self.bound_of(&item));
            let current = !validates || self.still_valid(txn, &read);
            note(&mut self.steps, txn, || What::Pins { item, bounds, current });
        }
    }

    /// Pins everything that was read directly from this store, and notes it. Who calls this pins
    /// once more, which changes nothing, and so need not look at any bound itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn pin_watched(&mut self, txn: TxnId, work: &Footprint<S>, stamp: Timestamp) {
        let pins = work.pins.iter().map(|&at| ReadRef::Row { at, head: None });
        let before = self.bounds_of_all(pins.chain(work.local_reads.iter().copied()));
        before.iter().for_each(|(read, ..)| self.pin(read, stamp));
        self.step_pinned(txn, before, false);
    }

    /// Everything in a batch of reads that carries a mark, with its bound, if somebody watches.
    #[inline]
    pub(crate) fn watched_reads(&mut self, reads: &Reads) -> Vec<(Item, Timestamp)> {
        if self.steps.is_none() { Vec::new() } else { self.bounds_of_reads(reads) }
    }

    #[cold]
    #[inline(never)]
    fn bounds_of_reads(&mut self, reads: &Reads) -> Vec<(Item, Timestamp)> {
        let mut items: Vec<Item> = Vec::new();
        for (column, key, _) in &reads.gets {
            if self.immutable(column.table) {
                continue;
            }
            let place = self.store.find(*column, key);
            items.push(match place.row() {
                Some(_) => Item::Record(*column, key.clone()),
                None => Item::Cover(column.table, place.cover()),
            });
        }
        let mut bounds = self.with_bounds(items);
        for (scan, _) in &reads.scans {
            bounds.extend(self.watched_range(scan));
        }
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// The leaves that cover a range, with their bounds, if somebody watches.
    #[inline]
    pub(crate) fn watched_leaves(&mut self, table: TableId, low: &Key, high: Option<&Key>) -> Vec<Watched> {
        if self.steps.is_none() {
            return Vec::new();
        }
        let leaves = self.leaves(table, low, high);
        self.watched_all(leaves.into_iter().map(|cover| ReadRef::Cover { table, cover, version: 0 }))
    }

    #[cold]
    #[inline(never)]
    fn leaves(&mut self, table: TableId, low: &Key, high: Option<&Key>) -> Vec<Cover> {
        let mut leaves = Vec::new();
        self.store.scan(table, low, high, |_, visited| {
            if let Visited::Leaf(cover, ..) = visited {
                leaves.push(cover);
            }
            ControlFlow::Continue(())
        });
        leaves
    }

    /// Notes which of these bounds a snapshot read has raised, or would have.
    pub(crate) fn step_raised(&mut self, txn: TxnId, before: Vec<(Item, Timestamp)>) {
        for (item, before) in before {
            let bounds = (before, self.bound_of(&item));
            // A leaf may lie beyond where the scan stopped.
            if bounds.0 < bounds.1 || matches!(item, Item::Record(..)) {
                note(&mut self.steps, txn, || What::Raises { item, bounds });
            }
        }
    }

    /// Notes what a batch of reads has found.
    pub(crate) fn step_fetched(&mut self, txn: TxnId, reads: &Reads, fetched: &Fetched<S>) {
        if self.steps.is_none() {
            return;
        }
        for ((column, key, _), got) in reads.gets.iter().zip(&fetched.gets) {
            if got.read != ReadRef::Immutable {
                note(&mut self.steps, txn, || What::Reads(Item::Record(*column, key.clone()), got.version));
            }
        }
        for ((scan, _), scanned) in reads.scans.iter().zip(&fetched.scans) {
            for (key, got) in scanned.rows.iter().filter(|(_, got)| got.read != ReadRef::Immutable) {
                note(&mut self.steps, txn, || {
                    What::Reads(Item::Record(scan.column, key.clone()), got.version)
                });
            }
        }
    }

    /// Notes that somebody waits for the owner of a record.
    pub(crate) fn step_waits(&mut self, txn: TxnId, at: At) {
        self.step(txn, |base| {
            let owner = base.store.lock(at).and_then(|lock| lock.owner);
            What::Waits(base.item(at), owner.map(|owner| owner.txn))
        });
    }

    /// Notes a lock that was just granted.
    pub(crate) fn step_locks(&mut self, txn: TxnId, at: At, exclusive: bool) {
        self.step(txn, |base| {
            let item = base.item(at);
            let bound = base.bound_of(&item);
            let lb = base.store.lock(at).map_or(Timestamp::ZERO, |lock| lock.lb);
            What::Locks { item, exclusive, bound, lb }
        });
    }

    /// The commit stamp, from a scheme that knows it at once.
    #[inline]
    pub(crate) fn stamp(&mut self, txn: TxnId, observed: &S::Observed) -> Timestamp {
        let stamp = self.scheme.stamp(observed);
        self.step(txn, |_| What::Stamps { stamp, least: S::lower_bound(observed) });
        stamp
    }

    /// Notes that somebody stands in the way of a write, or that it comes too late. An attempt that
    /// has no number yet goes another way instead.
    #[cold]
    #[inline(never)]
    pub(crate) fn step_refused(&mut self, txn: Option<&TxnId>, column: ColumnGroup, key: &Key) {
        let (Some(&txn), true) = (txn, self.steps.is_some()) else { return };
        let row = self.store.find(column, key).row();
        let lock = row.and_then(|row| self.store.lock(At { row, column }));
        let holder = lock.and_then(|lock| lock.owner.or(lock.sharers.first().copied()));
        let by = holder.map(|holder| holder.txn).filter(|&by| by != txn);
        let item = Item::Record(column, key.clone());
        note(&mut self.steps, txn, || What::Refused(item, Abort::WriteConflict, by));
    }

    /// Notes what was read directly from this store, from what is recorded of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn step_read_here(&mut self, txn: TxnId, work: &Footprint<S>) {
        let Some(recorded) = work.recorded.as_deref().filter(|_| self.steps.is_some()) else { return };
        for Read { column, key, version } in &recorded.reads {
            if self.home(column.table, key) == self.shard {
                let version = match version {
                    Version::At(stamp) => Some(*stamp),
                    Version::Absent => None,
                };
                note(&mut self.steps, txn, || What::Reads(Item::Record(*column, key.clone()), version));
            }
        }
        for scan in &recorded.scans {
            let rows = scan.rows.iter().filter(|(key, _)| self.home(scan.column.table, key) == self.shard);
            let rows: Vec<_> = rows.cloned().collect();
            self.step_scanned(txn, scan.column, &rows);
        }
    }

    /// Notes a transaction that is read, stamped and pinned in one step, before it is.
    #[cold]
    #[inline(never)]
    pub(crate) fn step_one_step(&mut self, txn: TxnId, work: &Footprint<S>, stamp: Timestamp) {
        self.step_read_here(txn, work);
        let least = S::lower_bound(&work.observed);
        note(&mut self.steps, txn, || What::Stamps { stamp, least });
        self.pin_watched(txn, work, stamp);
    }

    /// Notes rows that a scan has read.
    pub(crate) fn step_scanned(&mut self, txn: TxnId, column: ColumnGroup, rows: &[(Key, Timestamp)]) {
        for (key, stamp) in rows {
            note(&mut self.steps, txn, || What::Reads(Item::Record(column, key.clone()), Some(*stamp)));
        }
    }

    /// Notes what a read at a snapshot is about to do.
    #[cold]
    #[inline(never)]
    pub(crate) fn step_reads_at(
        &mut self,
        txn: TxnId,
        snapshot: &S::Snapshot,
        column: ColumnGroup,
        key: &Key,
    ) {
        let (record, mark) = (Item::Record(column, key.clone()), S::read_mark(snapshot));
        let place = self.store.find(column, key);
        let at = place.row().map(|row| At { row, column });
        let item = at.map_or(Item::Cover(column.table, place.cover()), |_| record.clone());
        let before = self.bound_of(&item);
        let raises = match at {
            Some(at) => self.store.would_raise(at, mark),
            None => size_of::<S::Mark>() > 0,
        };
        let bounds = (before, if raises { before.join(mark) } else { before });
        note(&mut self.steps, txn, || What::Raises { item, bounds });
        // Who has to wait reads again later.
        if !at.is_some_and(|at| self.must_wait(at, mark)) {
            let found = at.map(|at| self.store.visible(at, |stamp| S::sees(snapshot, stamp)));
            let version = found.and_then(Result::ok).flatten().map(|(stamp, _)| stamp);
            note(&mut self.steps, txn, || What::Reads(record, version));
        }
    }
}
