//! Executes pieces whose data is on this shard directly on the store.
//!
//! [`Local`] runs a read-write piece: nothing else runs on the shard meanwhile, so a record that is
//! free now is free until the end of the step, and the piece makes the checks of a lock request as
//! it goes. A record that another transaction has locked ends the attempt ([`Local::stop`] tells
//! this from an abort by the procedure itself). [`AtSnapshot`] runs a read-only piece at a
//! snapshot.

use std::ops::ControlFlow;

use plimsoll_store::{At, Lock, Mark, Visited};
use plimsoll_types::history::{Read, ScanRead, Version};
use plimsoll_types::{Abort, ColumnGroup, Key, Order, TableId, Timestamp, TxnId};

use plimsoll_types::mutants::{Mutant, planted};

use crate::attempt::{Recorded, Stop};
use crate::base::Base;
use crate::fetched::ReadRef;
use crate::procedure::{Access, Scan};
use crate::timestamp::Scheme;
use crate::work::{Change, Footprint, Write, Writes};

/// The range that a scan has read, if it visited `rows` and perhaps stopped behind them: it says
/// nothing about keys beyond.
pub(crate) fn scanned<T>(scan: &Scan, rows: &[(Key, T)], stopped: bool) -> (Key, Option<Key>) {
    scan.read_up_to(rows.last().filter(|_| stopped).map(|(last, _)| last))
}

/// The same for the record of a run, whose rows are in ascending order.
pub(crate) fn scan_read(scan: &Scan, mut rows: Vec<(Key, Timestamp)>, stopped: bool) -> ScanRead {
    let (low, high) = scanned(scan, &rows, stopped);
    if scan.order == Order::Descending {
        rows.reverse();
    }
    ScanRead { column: scan.column, low, high, rows }
}

/// Executes read-write pieces on the store of their shard.
pub struct Local<'a, S: Scheme> {
    pub(crate) base: &'a mut Base<S>,
    pub(crate) work: &'a mut Footprint<S>,
    /// The transaction, if it may hold locks here already.
    pub(crate) txn: Option<&'a TxnId>,
    /// Whether reads will be validated or locked later; otherwise they only have to be pinned.
    pub(crate) track: bool,
    /// Why the attempt has ended, if not by the procedure's own decision: another transaction holds
    /// a lock, or the piece writes a table that other shards have copies of.
    pub(crate) stop: Option<Stop>,
}

impl<S: Scheme> Local<'_, S> {
    fn blocked<T>(&mut self) -> Result<T, Abort> {
        self.stop = Some(Stop::Conflict);
        Err(Abort::WriteConflict)
    }

    #[inline]
    fn remember_record(&mut self, at: At, head: Option<Timestamp>) {
        if self.track {
            self.work.local_reads.push(ReadRef::Row { at, head });
        } else if size_of::<S::Mark>() > 0 {
            self.work.pins.push(at);
        }
    }

    #[inline]
    fn remember(&mut self, read: ReadRef) {
        if self.track || size_of::<S::Mark>() > 0 {
            self.work.local_reads.push(read);
        }
    }

    fn write(&mut self, column: ColumnGroup, key: &Key, change: Change, value: &[u8]) -> Result<(), Abort> {
        assert!(!self.base.immutable(column.table), "immutable tables are not written");
        if self.base.copied(column.table) {
            self.stop = Some(Stop::Elsewhere);
            return Err(Abort::WriteConflict);
        }
        let Footprint { writes, observed, pins, .. } = &mut *self.work;
        if change != Change::Delete
            && let Err(full) =
                self.base.admit(writes.written_bytes() + plimsoll_store::written_bytes(value.len()))
        {
            self.stop = Some(Stop::Abort(self.base.refused(full)));
            return Err(full);
        }
        if let Some(again) = writes.again(column, key, change, value) {
            return again;
        }
        match self.base.check_write(self.txn, (column, key, change), None, observed) {
            Ok(place) => {
                // A record that was just read and is now overwritten gets its mark with the new
                // version.
                if pins.last().is_some_and(|at| column == at.column && place.row() == Some(at.row)) {
                    pins.pop();
                }
                writes.push(column, key, change, self.base.shard, value).place = Some(place);
                Ok(())
            }
            Err(Abort::WriteConflict) => {
                self.base.step_refused(self.txn, column, key);
                self.blocked()
            }
            Err(abort) => {
                // That the record exists is something that this transaction has read.
                self.read_for_error(column, key);
                Err(abort)
            }
        }
    }

    fn read_for_error(&mut self, column: ColumnGroup, key: &Key) {
        let place = self.base.store.find(column, key);
        if let Some(row) = place.row() {
            let at = At { row, column };
            let head = self.base.head(at);
            self.remember_record(at, head);
        }
    }
}

impl<S: Scheme> Access for Local<'_, S> {
    #[inline]
    fn expect(&mut self, column: ColumnGroup, keys: impl Iterator<Item = Key>) {
        self.base.store.expect(column, keys);
    }

    #[inline]
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        if self.base.immutable(column.table) {
            let row = self.base.store.find(column, key).row();
            return Ok(row.and_then(|row| self.base.store.newest(At { row, column })));
        }
        if self.work.writes.find(column, key).is_some() {
            let own = self.work.writes.find(column, key);
            return Ok(own.and_then(|own| self.work.writes.value(own)));
        }
        let place = self.base.store.find(column, key);
        let Some(row) = place.row() else {
            S::observe(&mut self.work.observed, self.base.absence());
            let version = self.base.store.cover_version(column.table, place.cover());
            self.remember(ReadRef::Cover { table: column.table, cover: place.cover(), version });
            if self.track {
                self.work.local_ranges.push((column.table, key.clone(), Some(key.just_after())));
            }
            self.work.record_read(column, key, None);
            return Ok(None);
        };
        let at = At { row, column };
        let record = self.base.store.record(at);
        if self.base.store.lock_of(record).is_some_and(|lock| lock.owned_by_other(self.txn)) {
            return self.blocked();
        }
        let head = (!record.is_empty()).then(|| record.stamp());
        let version = record.is_present().then(|| record.stamp());
        S::observe(&mut self.work.observed, head.unwrap_or(self.base.absence()));
        self.remember_record(at, head);
        if head.is_none() {
            // The empty row may be collected, and its key linked again as another row.
            let version = self.base.store.cover_version(column.table, place.cover());
            self.remember(ReadRef::Cover { table: column.table, cover: place.cover(), version });
        }
        self.work.record_read(column, key, version);
        Ok(self.base.store.newest(at))
    }

    fn put(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort> {
        self.write(column, key, Change::Put, value)
    }

    fn insert(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort> {
        for (group, value) in values.iter().enumerate() {
            self.write(table.group(group as u8), key, Change::Insert, value)?;
        }
        Ok(())
    }

    fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Abort> {
        for group in 0..self.base.groups(table) {
            self.write(table.group(group), key, Change::Delete, &[])?;
        }
        Ok(())
    }

    fn scan(&mut self, scan: &Scan, visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>) -> Result<(), Abort> {
        if scan.limit == 0 {
            return Ok(());
        }
        let ColumnGroup { table, group } = scan.column;
        let immutable = self.base.immutable(table);
        let track = self.track && !immutable;
        let (txn, remember) = (self.txn, !immutable && (track || size_of::<S::Mark>() > 0));
        let Footprint { observed, local_reads, local_ranges, recorded, writes, .. } = &mut *self.work;
        S::observe(observed, self.base.absence());
        let mut blocked = false;
        let mut rows_seen = Vec::new();
        let mut stopped = false;
        let own = writes.in_range(scan.column, &scan.low, scan.high.as_ref(), scan.order);
        let mut merged =
            MergedRows { own: own.peekable(), order: scan.order, writes, left: scan.limit, visit };
        if track {
            local_ranges.push((table, scan.low.clone(), scan.high.clone()));
        }
        self.base.store.scan_in(scan.order, table, &scan.low, scan.high.as_ref(), |rows, visited| {
            match visited {
                Visited::Leaf(leaf, _, version) => {
                    if remember {
                        local_reads.push(ReadRef::Cover { table, cover: leaf, version });
                    }
                }
                Visited::Row(row) => {
                    if rows.record(row, group).is_locked()
                        && rows.lock(row, group).is_some_and(|lock| lock.owned_by_other(txn))
                    {
                        blocked = true;
                        return ControlFlow::Break(());
                    }
                    let record = rows.record(row, group);
                    let head = (!record.is_empty()).then(|| record.stamp());
                    if let Some(head) = head {
                        S::observe(observed, head);
                    }
                    if track {
                        // The leaf's mark replaces the record's mark, but its version does not
                        // replace the record's version.
                        local_reads.push(ReadRef::Row { at: At { row, column: scan.column }, head });
                    }
                    let Some(value) = rows.newest(row, group) else { return ControlFlow::Continue(()) };
                    let key = rows.key(row);
                    if recorded.is_some() {
                        rows_seen.push((key.clone(), head.unwrap_or_default()));
                    }
                    if merged.stored(&key, value).is_break() {
                        stopped = true;
                        return ControlFlow::Break(());
                    }
                }
            }
            ControlFlow::Continue(())
        });
        if !blocked && !stopped {
            merged.finish();
        }
        drop(merged);
        if let Some(recorded) = recorded {
            recorded.scans.push(scan_read(scan, rows_seen, stopped));
        }
        if blocked { self.blocked() } else { Ok(()) }
    }
}

/// Stored rows in the order of a scan with the transaction's own writes on top.
pub(crate) struct MergedRows<'a, I: Iterator<Item = &'a Write>, V> {
    /// The own writes in the range, in the same order.
    pub own: std::iter::Peekable<I>,
    pub order: Order,
    pub writes: &'a Writes,
    /// How many rows may still be shown, at least one.
    pub left: usize,
    pub visit: V,
}

impl<'a, I: Iterator<Item = &'a Write>, V: FnMut(&Key, &[u8]) -> ControlFlow<()>> MergedRows<'a, I, V> {
    /// Shows these stored rows, and the own rows between and behind them.
    pub fn show_all<'b>(mut self, rows: impl IntoIterator<Item = (&'b Key, &'b [u8])>) {
        if !rows.into_iter().any(|(key, value)| self.stored(key, value).is_break()) {
            self.finish();
        }
    }

    #[inline]
    fn show(&mut self, key: &Key, value: &[u8]) -> ControlFlow<()> {
        self.left -= 1;
        (self.visit)(key, value)?;
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Shows the next stored row. Own rows before it come first; an own write of the same key
    /// replaces it.
    #[inline]
    fn stored(&mut self, key: &Key, value: &[u8]) -> ControlFlow<()> {
        let order = self.order;
        while let Some(own) = self.own.next_if(|own| order.compare(&own.key, key).is_le()) {
            if let Some(value) = self.writes.value(own) {
                self.show(&own.key, value)?;
            }
            if own.key == *key {
                return ControlFlow::Continue(());
            }
        }
        self.show(key, value)
    }

    /// Shows the own rows behind the last stored one.
    fn finish(&mut self) {
        while let Some(own) = self.own.next() {
            if let Some(value) = self.writes.value(own)
                && self.show(&own.key, value).is_break()
            {
                return;
            }
        }
    }
}

/// Executes read-only pieces at a snapshot on the store of their shard.
pub struct AtSnapshot<'a, S: Scheme> {
    pub(crate) base: &'a mut Base<S>,
    pub(crate) txn: TxnId,
    pub(crate) snapshot: &'a S::Snapshot,
    pub(crate) recorded: Option<&'a mut Recorded>,
    /// The attempt ended because a writer may still commit within the snapshot.
    pub(crate) blocked: bool,
    /// The attempt ended because the store has dropped a version that the snapshot may see.
    pub(crate) too_old: bool,
    /// Rows read so far.
    pub(crate) rows: usize,
}

/// Ends an attempt of a piece that will be repeated; no user ever sees it.
const AGAIN: Abort = Abort::WriteConflict;

const READ_ONLY: &str = "a read-only transaction does not write";

impl<S: Scheme> Access for AtSnapshot<'_, S> {
    #[inline]
    fn expect(&mut self, column: ColumnGroup, keys: impl Iterator<Item = Key>) {
        self.base.store.expect(column, keys);
    }

    #[inline]
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        let place = self.base.store.find(column, key);
        self.rows += 1;
        if self.base.immutable(column.table) {
            return Ok(place.row().and_then(|row| self.base.store.newest(At { row, column })));
        }
        let mark = S::read_mark(self.snapshot);
        if self.base.steps.is_some() {
            self.base.step_reads_at(self.txn, self.snapshot, column, key);
        }
        let Some(row) = place.row() else {
            self.base.raise_cover_for_read(column.table, place.cover(), mark);
            if self.base.may_have_forgotten(self.txn, self.snapshot) {
                self.too_old = true;
                return Err(AGAIN);
            }
            if let Some(recorded) = &mut self.recorded {
                recorded.reads.push(Read { column, key: key.clone(), version: Version::Absent });
            }
            return Ok(None);
        };
        let at = At { row, column };
        let wait =
            |lock: &Lock| S::WAITS && !planted(Mutant::NoWait) && lock.owner.is_some() && lock.lb <= mark;
        let forgotten = self.base.may_have_forgotten(self.txn, self.snapshot);
        let (raised, found) = self.base.store.read_at(at, mark, wait, |stamp| S::sees(self.snapshot, stamp));
        self.base.counters.mark_raises += u64::from(raised);
        match found {
            Some(Ok(None)) if forgotten => {
                self.too_old = true;
                Err(AGAIN)
            }
            Some(Ok(found)) => {
                if let Some(recorded) = &mut self.recorded {
                    let version = found.map_or(Version::Absent, |(stamp, _)| Version::At(stamp));
                    recorded.reads.push(Read { column, key: key.clone(), version });
                }
                Ok(found.map(|(_, value)| value))
            }
            Some(Err(_)) => {
                self.too_old = true;
                Err(AGAIN)
            }
            None => {
                self.blocked = true;
                Err(AGAIN)
            }
        }
    }

    fn put(&mut self, _: ColumnGroup, _: &Key, _: &[u8]) -> Result<(), Abort> {
        panic!("{READ_ONLY}")
    }

    fn insert(&mut self, _: TableId, _: &Key, _: &[&[u8]]) -> Result<(), Abort> {
        panic!("{READ_ONLY}")
    }

    fn delete(&mut self, _: TableId, _: &Key) -> Result<(), Abort> {
        panic!("{READ_ONLY}")
    }

    fn scan(
        &mut self,
        scan: &Scan,
        mut visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        if scan.limit == 0 {
            return Ok(());
        }
        if self.base.may_have_forgotten(self.txn, self.snapshot) {
            self.too_old = true;
            return Err(AGAIN);
        }
        let group = scan.column.group;
        let mark = S::read_mark(self.snapshot);
        let (snapshot, recording) = (self.snapshot, self.recorded.is_some());
        let (mut blocked, mut too_old, mut stopped) = (false, false, false);
        let (mut raised, mut seen, mut left) = (0, 0, scan.limit);
        let mut rows_seen = Vec::new();
        let before = self.base.watched_range(scan);
        let (table, low, high) = (scan.column.table, &scan.low, scan.high.as_ref());
        self.base.store.scan_in(scan.order, table, low, high, |rows, visited| {
            match visited {
                Visited::Leaf(_, leaf_mark, _) => {
                    raised += u64::from(size_of::<S::Mark>() > 0 && leaf_mark.get() < mark);
                    if !planted(Mutant::LeafNotMarked) && !planted(Mutant::NoRaise) {
                        leaf_mark.raise(mark);
                    }
                }
                Visited::Row(row) => {
                    seen += 1;
                    if S::WAITS
                        && !planted(Mutant::NoWait)
                        && rows.record(row, group).is_locked()
                        && rows.lock(row, group).is_some_and(|lock| lock.owner.is_some() && lock.lb <= mark)
                    {
                        blocked = true;
                        return ControlFlow::Break(());
                    }
                    match rows.visible(row, group, |stamp| S::sees(snapshot, stamp)) {
                        Ok(None) => {}
                        Ok(Some((stamp, value))) => {
                            let key = rows.key(row);
                            if recording {
                                rows_seen.push((key.clone(), stamp));
                            }
                            left -= 1;
                            if visit(&key, value).is_break() || left == 0 {
                                stopped = true;
                                return ControlFlow::Break(());
                            }
                        }
                        Err(_) => {
                            too_old = true;
                            return ControlFlow::Break(());
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        self.base.counters.mark_raises += raised;
        self.base.step_raised(self.txn, before);
        self.rows += seen;
        (self.blocked, self.too_old) = (blocked, too_old);
        if blocked || too_old {
            return Err(AGAIN);
        }
        if let Some(recorded) = &mut self.recorded {
            self.base.step_scanned(self.txn, scan.column, &rows_seen);
            recorded.scans.push(scan_read(scan, rows_seen, stopped));
        }
        Ok(())
    }
}
