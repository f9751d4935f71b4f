//! A shard's data.
//!
//! Single-owner and synchronous: every method is one step, and a caller's sequence of calls between
//! two messages is one step as well. What protocols do with marks, stamps and locks is their
//! business; the store keeps the promises that outlive a transaction:
//!
//! * **I1** the chain of a record decreases from the head (asserted for scalar stamps by the
//!   protocols), and `mark >= head.stamp`;
//! * **I3** versions leave the chain only when no snapshot sees them ([`garbage`](crate::garbage));
//! * **I5** marks are monotone: an unlinked row's marks move to the leaf or cell that covers its
//!   key, and a tombstone's stamp into the partition's *floor*, before anything is forgotten.

use std::borrow::Borrow;
use std::hint::black_box;
use std::mem;
use std::ops::ControlFlow;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ColumnGroup, Key, Order, TableId, TableSpec, Timestamp, TxnId};
use plimsoll_types::{Slab, Ticket};

use crate::chunks::Chunks;
use crate::garbage::Garbage;
use crate::lock::{Holder, Lock, LockId};
use crate::ranges::RangeLock;
use crate::record::Version;
use crate::table::{Cover, Index, Place, Table, TableMemory};
use crate::vacancies::Vacancies;
use crate::values::Values;
use crate::{HashIndex, Mark, Record, RowId, Tails};

/// Names a record: a row of a table and one of its column groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct At {
    /// The row.
    pub row: RowId,
    /// The table and the group.
    pub column: ColumnGroup,
}

plimsoll_types::wire!(struct At { row, column });

/// The version a snapshot asks for is gone: nobody knew of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotTooOld;

/// Older versions, shared by all tables.
#[derive(Debug)]
pub(crate) struct Versions {
    pub(crate) nodes: Chunks<Version>,
    free: Vacancies,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { nodes: Chunks::default(), free: Vacancies::new(Chunks::<Version>::SHIFT) }
    }
}

impl Versions {
    /// Stores a node and returns its position plus one.
    #[inline]
    fn insert(&mut self, version: Version) -> u32 {
        let position = self.free.take().or_else(|| {
            self.nodes.restore(self.free.restore()? as usize);
            self.free.take()
        });
        let position = position.unwrap_or_else(|| self.nodes.extend(1) as u32);
        self.nodes[position as usize] = version;
        position + 1
    }

    /// Frees a node and returns what was in it.
    pub(crate) fn take(&mut self, position: u32) -> Version {
        let version = self.nodes[position as usize];
        if let Some(chunk) = self.free.put(position) {
            self.nodes.release(chunk as usize);
        }
        version
    }
}

/// So many records are brought into the caches at once: more than an order of TPC-C has lines.
pub(crate) const EXPECTED: usize = 16;

/// What a store has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Keys looked for, and walks over ranges begun.
    pub lookups: u64,
    /// Rows that walks over ranges have met.
    pub scanned: u64,
    /// Keys linked into an index.
    pub links: u64,
    /// Versions installed.
    pub installs: u64,
    /// Versions that were kept when another was installed.
    pub kept: u64,
}

/// Memory of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMemory {
    /// Bytes of rows, values, versions and indexes.
    pub used: usize,
    /// Bytes that were freed and are kept for what comes next.
    pub free: usize,
}

/// All tables of one shard.
#[derive(Debug)]
pub struct Store<M: Mark> {
    pub(crate) tables: Vec<Table<M>>,
    pub(crate) values: Values,
    pub(crate) versions: Versions,
    locks: Slab<Lock>,
    pub(crate) garbage: Garbage,
    /// The partition's floor: a mark for everything at once, raised before tombstones are
    /// forgotten.
    floor: Timestamp,
    /// A mark for everything at once, at or above the floor: what rows that have come from
    /// elsewhere were marked with.
    pub(crate) least: Timestamp,
    /// Whether hidden versions are kept until the watermark passes; otherwise they are dropped at
    /// once.
    history: bool,
    operations: Operations,
    written: u64,
}

/// What a value of this length counts in [`Store::written`]: itself, its record and its place in an
/// index.
#[inline]
pub fn written_bytes(len: usize) -> u64 {
    (2 * size_of::<Record<Timestamp>>() + len) as u64
}

/// The records of one table, while its index is being walked.
pub struct Rows<'a, M: Mark> {
    records: &'a mut Chunks<Record<M>>,
    tails: &'a Tails,
    values: &'a Values,
    versions: &'a Versions,
    locks: &'a Slab<Lock>,
    groups: usize,
}

/// What a walk over a range meets: a leaf, then its rows, then the next leaf.
pub enum Visited<'a, M> {
    /// A leaf that overlaps the range, its mark and its version.
    Leaf(Cover, &'a mut M, u64),
    /// A row in the range.
    Row(RowId),
}

impl<M: Mark> Store<M> {
    /// An empty store. Without `history` a record keeps its newest version only.
    pub fn new(history: bool) -> Store<M> {
        Store {
            tables: Vec::new(),
            values: Values::default(),
            versions: Versions::default(),
            locks: Slab::default(),
            garbage: Garbage::default(),
            floor: Timestamp::ZERO,
            least: Timestamp::ZERO,
            history,
            operations: Operations::default(),
            written: 0,
        }
    }

    /// Adds a table; its id is its position.
    pub fn create_table(&mut self, spec: TableSpec) -> TableId {
        self.tables.push(Table::new(spec));
        TableId(u16::try_from(self.tables.len() - 1).expect("a database has fewer than 65,536 tables"))
    }

    /// A table's declaration.
    pub fn spec(&self, table: TableId) -> &TableSpec {
        &self.tables[table.index()].spec
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Memory of a table.
    pub fn memory(&self, table: TableId) -> TableMemory {
        self.tables[table.index()].memory()
    }

    /// Memory of the whole store.
    pub fn in_all(&self) -> StoreMemory {
        let (values, free_values) = self.values.bytes();
        let free_versions = self.versions.free.len() * size_of::<Version>();
        let free_rows: usize = self.tables.iter().map(Table::free_bytes).sum();
        // A table counts the values and the versions of its rows.
        let of_rows = |table: &Table<M>| table.memory().bytes - table.value_bytes;
        let rows: usize = self.tables.iter().map(of_rows).sum();
        StoreMemory {
            used: rows - free_rows + values + self.versions.nodes.bytes() - free_versions,
            free: free_rows + free_values + free_versions,
        }
    }

    /// Bytes of all values and records that were ever installed: the store's memory grows by no more
    /// than that.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What it has done so far.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// The partition's floor.
    #[inline]
    pub fn floor(&self) -> Timestamp {
        self.floor
    }

    /// Rows that were deleted at this stamp or below may have been forgotten.
    pub fn raise_floor(&mut self, to: Timestamp) {
        self.floor.raise(to);
        self.least.raise(to);
    }

    /// Everything counts as marked with this stamp.
    pub fn bound_all(&mut self, least: Timestamp) {
        self.least.raise(least);
    }

    /// Where a key is, or would be. Of a row, the record of this column group is what the search
    /// touches.
    #[inline]
    pub fn find(&mut self, column: ColumnGroup, key: &Key) -> Place {
        self.operations.lookups += 1;
        self.tables[column.table.index()].find(column.group, key)
    }

    /// Brings buckets, records and newest values into the processor's caches, of several keys at
    /// once: one read after the other, each would wait for memory by itself. Changes nothing; in an
    /// ordered table it does nothing.
    #[inline]
    pub fn expect(&self, column: ColumnGroup, keys: impl Iterator<Item = impl Borrow<Key>>) {
        let table = &self.tables[column.table.index()];
        let Index::Hash(index) = &table.index else { return };
        let known = table.rows() as RowId;
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            // Step by step, for the lines of one step say where those of the next are.
            let mut rows = [0; EXPECTED];
            let mut found = 0;
            for (row, key) in rows.iter_mut().zip(keys.by_ref()) {
                *row = index.likely(HashIndex::hash(key.borrow().head(), key.borrow().tail()));
                found += 1;
            }
            let rows = rows[..found].iter().filter(|&&row| row < known);
            let records = rows.map(|&row| table.record(At { row, column }));
            black_box(records.clone().fold(0, |touched, record| touched ^ record.meta));
            let values = records.filter_map(|record| record.value(&self.values)?.first());
            black_box(values.fold(0, |touched, byte| touched ^ byte));
        }
    }

    /// Links a row of empty records under a key that has none; changes the version of what covers
    /// it.
    pub fn link(&mut self, table: TableId, key: &Key) -> Place {
        self.operations.links += 1;
        self.tables[table.index()].link(key)
    }

    /// The new leaf that covers the upper part of the range since the last link in the table, if
    /// that has split one.
    pub fn last_link_split(&self, table: TableId) -> Option<Cover> {
        match &self.tables[table.index()].index {
            Index::Ordered(index) => index.last_split().map(|(_, upper)| upper.into()),
            Index::Hash(_) => None,
        }
    }

    /// The key of a linked row.
    pub fn key(&self, table: TableId, row: RowId) -> Key {
        self.tables[table.index()].key(row)
    }

    /// A record.
    #[inline]
    pub fn record(&self, at: At) -> &Record<M> {
        self.tables[at.column.table.index()].record(at)
    }

    /// A record.
    #[inline]
    pub fn record_mut(&mut self, at: At) -> &mut Record<M> {
        self.tables[at.column.table.index()].record_mut(at)
    }

    /// The version of what covers a key: it changes whenever a key is linked there.
    #[inline]
    pub fn cover_version(&self, table: TableId, cover: Cover) -> u64 {
        self.tables[table.index()].cover_version(cover)
    }

    /// The mark of what covers a key.
    #[inline]
    pub fn cover_mark(&self, table: TableId, cover: Cover) -> M {
        self.tables[table.index()].cover_mark(cover)
    }

    /// The mark of what covers a key.
    #[inline]
    pub fn cover_mark_mut(&mut self, table: TableId, cover: Cover) -> &mut M {
        self.tables[table.index()].cover_mark_mut(cover)
    }

    /// What a writer of a key must exceed: the record's mark if there is one, the mark of the leaf
    /// that covers it (scans pin leaves only) or, for a key without a row, of its cell; and the
    /// floor.
    #[inline]
    pub fn bound(&self, record: Option<&Record<M>>, table: TableId, cover: Cover) -> Timestamp {
        let table = &self.tables[table.index()];
        let mark = record.map_or(Timestamp::ZERO, |record| record.mark.get());
        let cover = match (&table.index, record) {
            (Index::Hash(_), Some(_)) => Timestamp::ZERO,
            _ => table.cover_mark(cover).get(),
        };
        mark.join(cover).join(self.least)
    }

    /// The newest value of a record; `None` if it is absent.
    #[inline]
    pub fn newest(&self, at: At) -> Option<&[u8]> {
        self.value(self.record(at))
    }

    /// The newest value of a record at hand.
    #[inline]
    pub fn value<'a>(&'a self, record: &'a Record<M>) -> Option<&'a [u8]> {
        record.value(&self.values)
    }

    /// The lock of a record at hand.
    #[inline]
    pub fn lock_of(&self, record: &Record<M>) -> Option<&Lock> {
        match record.lock {
            0 => None,
            word => self.locks.get(word - 1),
        }
    }

    /// The version of a record that a snapshot sees, with its stamp.
    #[inline]
    pub fn visible(
        &self,
        at: At,
        sees: impl Fn(Timestamp) -> bool,
    ) -> Result<Option<(Timestamp, &[u8])>, SnapshotTooOld> {
        visible(self.record(at), &self.versions, &self.values, sees)
    }

    /// Whether [`Store::read_at`] would raise the mark of a record.
    pub fn would_raise(&self, at: At, mark: Timestamp) -> bool {
        would_raise(self.record(at), self.least, mark)
    }

    /// The snapshot read of a record as one step: raises its mark to `mark`, unless what writers of
    /// it must exceed is that high anyway, and only then looks at its lock. `wait` decides whether
    /// the lock is in the way. Returns whether the mark was raised, with the version that the
    /// snapshot sees; `None` to wait.
    #[inline]
    #[allow(clippy::type_complexity)]
    pub fn read_at(
        &mut self,
        at: At,
        mark: Timestamp,
        wait: impl Fn(&Lock) -> bool,
        sees: impl Fn(Timestamp) -> bool,
    ) -> (bool, Option<Result<Option<(Timestamp, &[u8])>, SnapshotTooOld>>) {
        let record = self.tables[at.column.table.index()].record_mut(at);
        let raise = would_raise(record, self.least, mark);
        if raise {
            record.mark.raise(mark);
        }
        let gated = planted(Mutant::GatedWait) && record.mark.get() > mark;
        if record.lock != 0 && !gated && self.locks.get(record.lock - 1).is_some_and(wait) {
            return (raise, None);
        }
        (raise, Some(visible(record, &self.versions, &self.values, sees)))
    }

    /// Installs a version (`None`: a tombstone). The mark rises with it, never falls. Returns the
    /// stamp of the version it hides, if there is one.
    pub fn install(&mut self, at: At, stamp: Timestamp, value: Option<&[u8]>) -> Option<Timestamp> {
        self.operations.installs += 1;
        self.written += written_bytes(value.map_or(0, <[u8]>::len));
        let table = &mut self.tables[at.column.table.index()];
        let record = &mut table.records[at.row as usize * table.groups + usize::from(at.column.group)];
        let mut hides = value.is_none();
        let hidden = (!record.is_empty()).then_some(record.stamp);
        table.value_bytes -= record.footprint();
        table.was_written |= stamp > Timestamp::ZERO;
        if hidden.is_some() && self.history {
            self.operations.kept += 1;
            let version = record.hide(&mut self.values);
            table.value_bytes += version.footprint();
            record.older = self.versions.insert(version);
            hides = true;
        } else {
            record.drop_newest(&mut self.values);
        }
        if planted(Mutant::StoredMark) || planted(Mutant::LoweredMark) {
            record.mark = M::default();
        }
        record.set(stamp, value, &mut self.values);
        assert!(
            size_of::<M>() == 0 || record.mark.get() >= stamp,
            "I1: the mark of a record is at least the stamp of its newest version"
        );
        table.value_bytes += record.footprint();
        if hides && !record.is_queued() {
            record.set_queued(true);
            self.garbage.push(stamp, at);
        }
        hidden
    }

    /// Sets the version of a record, which has one or none: it is forgotten, whatever its stamp is.
    pub fn replace(&mut self, at: At, stamp: Timestamp, value: Option<&[u8]>) {
        assert_eq!(self.record(at).older, 0, "a record that is replaced has no older versions");
        let history = mem::replace(&mut self.history, false);
        let replaced = self.install(at, stamp, value);
        self.history = history;
        if replaced.is_some_and(|replaced| replaced != stamp) {
            self.record_mut(at).set_trimmed();
        }
    }

    /// An empty store without tables that keeps as many versions as this one.
    pub fn anew(&self) -> Store<M> {
        Store::new(self.history)
    }

    /// Whether anything but loaded rows was ever in a table.
    pub fn was_written(&self, table: TableId) -> bool {
        self.tables[table.index()].was_written
    }

    /// Whether a row may be loaded: this key has none, or one in which nothing was ever written and
    /// nothing is locked.
    pub fn is_vacant(&mut self, table: TableId, key: &Key) -> bool {
        self.find(table.row(), key).row().is_none_or(|row| self.is_blank(table, row))
    }

    fn is_blank(&self, table: TableId, row: RowId) -> bool {
        let mut groups = 0..self.spec(table).groups.len() as u8;
        groups.all(|group| {
            let record = self.record(At { row, column: table.group(group) });
            record.is_empty() && !record.is_locked()
        })
    }

    /// Puts a row into the store before it serves, with stamp [`Timestamp::ZERO`].
    pub fn load(&mut self, table: TableId, key: &Key, values: &[&[u8]]) {
        let row = match self.find(table.row(), key).row() {
            Some(row) => row,
            None => self.link(table, key).row().expect("a linked row exists"),
        };
        assert!(self.is_blank(table, row), "a key is loaded once");
        for (group, value) in values.iter().enumerate() {
            self.install(At { row, column: table.group(group as u8) }, Timestamp::ZERO, Some(value));
        }
    }

    /// Walks over `low <= key < high` of an ordered table in key order: every leaf that overlaps
    /// the range, whether or not it holds keys of it, and after each leaf its rows.
    pub fn scan(
        &mut self,
        table: TableId,
        low: &Key,
        high: Option<&Key>,
        visit: impl FnMut(&mut Rows<'_, M>, Visited<'_, M>) -> ControlFlow<()>,
    ) {
        self.scan_in(Order::Ascending, table, low, high, visit);
    }

    /// The same in ascending or in descending order.
    pub fn scan_in(
        &mut self,
        order: Order,
        table: TableId,
        low: &Key,
        high: Option<&Key>,
        mut visit: impl FnMut(&mut Rows<'_, M>, Visited<'_, M>) -> ControlFlow<()>,
    ) {
        let operations = &mut self.operations;
        operations.lookups += 1;
        let table = &mut self.tables[table.index()];
        let Index::Ordered(index) = &mut table.index else {
            panic!("only ordered tables are scanned; {} is a hash table", table.spec.name)
        };
        let mut rows = Rows {
            records: &mut table.records,
            tails: &table.tails,
            values: &self.values,
            versions: &self.versions,
            locks: &self.locks,
            groups: table.groups,
        };
        let epoch = table.epoch;
        index.scan_leaves(low, high, order, &table.tails, |leaf, mark, version, _, in_range| {
            visit(&mut rows, Visited::Leaf(leaf.into(), mark, version + epoch))?;
            operations.scanned += in_range.len() as u64;
            (0..in_range.len()).try_for_each(|at| {
                let at = if order == Order::Ascending { at } else { in_range.len() - 1 - at };
                visit(&mut rows, Visited::Row(in_range[at]))
            })
        });
    }

    /// The lock of a record, if anybody holds it or waits for it.
    #[inline]
    pub fn lock(&self, at: At) -> Option<&Lock> {
        self.lock_of(self.record(at))
    }

    /// The lock of a record, made if there is none yet.
    pub fn lock_mut(&mut self, at: At) -> &mut Lock {
        let word = match self.record(at).lock {
            0 => {
                let word = self.locks.insert(Lock::default()) + 1;
                self.record_mut(at).lock = word;
                word
            }
            word => word,
        };
        self.locks.get_mut(word - 1).expect("a lock word names a lock")
    }

    /// Frees the lock of a record if it is idle. A row without a value goes to the garbage
    /// collector, which left it alone while it was locked.
    pub fn tidy_lock(&mut self, at: At) {
        if !self.record(at).is_unlinked() && self.lock(at).is_none_or(Lock::is_idle) {
            let record = self.record_mut(at);
            let word = mem::take(&mut record.lock);
            let garbage = !record.is_present() && !record.is_queued();
            if garbage {
                record.set_queued(true);
                let stamp = record.stamp;
                self.garbage.push(stamp, at);
            }
            if word != 0 {
                self.locks.remove(word - 1);
            }
        }
    }

    /// The lock with this id.
    pub fn lock_by_id(&self, lock: LockId) -> Option<&Lock> {
        self.locks.get(lock)
    }

    /// The lock with this id.
    pub fn lock_by_id_mut(&mut self, lock: LockId) -> Option<&mut Lock> {
        self.locks.get_mut(lock)
    }

    /// All locks of records and of ranges, in the order of their ids.
    pub fn locks_mut(&mut self) -> impl Iterator<Item = &mut Lock> {
        self.locks.iter_mut().map(|(_, lock)| lock)
    }

    /// How many locks are held or waited for.
    pub fn locks(&self) -> usize {
        self.locks.len()
    }

    /// The locked ranges of a table, by transaction.
    #[inline]
    pub fn ranges(&self, table: TableId) -> &[RangeLock] {
        &self.tables[table.index()].ranges
    }

    /// Locks a range. Returns whether it is the transaction's first of the table.
    pub fn lock_range(&mut self, table: TableId, holder: Holder, low: Key, high: Option<Key>) -> bool {
        let ranges = &mut self.tables[table.index()].ranges;
        if let Some(range) = ranges.iter_mut().find(|range| range.txn == holder.txn) {
            range.add(low, high);
            return false;
        }
        let lock = self.locks.insert(Lock { sharers: vec![holder], ..Lock::default() });
        ranges.push_mut(RangeLock::new(holder.txn, lock)).add(low, high);
        true
    }

    /// Unlocks all ranges of a table that a transaction has locked. Returns them, and the tickets
    /// of those who waited for one of them.
    pub fn unlock_ranges(&mut self, table: TableId, txn: TxnId) -> Option<(RangeLock, Vec<Ticket>)> {
        let ranges = &mut self.tables[table.index()].ranges;
        let range = ranges.remove(ranges.iter().position(|range| range.txn == txn)?);
        let lock = self.locks.remove(range.lock).expect("a locked range has a lock");
        Some((range, lock.waiting.iter().map(|waiter| waiter.ticket).collect()))
    }
}

impl<M: Mark> Rows<'_, M> {
    /// A record of the table.
    #[inline]
    pub fn record(&mut self, row: RowId, group: u8) -> &mut Record<M> {
        &mut self.records[row as usize * self.groups + usize::from(group)]
    }

    /// A row's key.
    #[inline]
    pub fn key(&self, row: RowId) -> Key {
        let head = self.records[row as usize * self.groups].head;
        if Key::head_is_long(head) {
            Key::from_parts(head, self.tails.get(row))
        } else {
            Key::from_parts(head, None)
        }
    }

    /// The newest value of a record; `None` if it is absent.
    #[inline]
    pub fn newest(&self, row: RowId, group: u8) -> Option<&[u8]> {
        self.records[row as usize * self.groups + usize::from(group)].value(self.values)
    }

    /// The version of a record that a snapshot sees, with its stamp.
    #[inline]
    pub fn visible(
        &self,
        row: RowId,
        group: u8,
        sees: impl Fn(Timestamp) -> bool,
    ) -> Result<Option<(Timestamp, &[u8])>, SnapshotTooOld> {
        let record = &self.records[row as usize * self.groups + usize::from(group)];
        visible(record, self.versions, self.values, sees)
    }

    /// The lock of a record, if anybody holds it or waits for it.
    #[inline]
    pub fn lock(&self, row: RowId, group: u8) -> Option<&Lock> {
        match self.records[row as usize * self.groups + usize::from(group)].lock {
            0 => None,
            word => self.locks.get(word - 1),
        }
    }
}

/// Whether a read at a snapshot raises the mark of a record: not if writers must exceed it anyway.
#[inline]
fn would_raise<M: Mark>(record: &Record<M>, floor: Timestamp, mark: Timestamp) -> bool {
    let raise = size_of::<M>() > 0 && record.mark.get() < mark && floor < mark;
    raise && !planted(Mutant::NoRaise) && !(planted(Mutant::SkipWithoutRaise) && record.lock != 0)
}

#[inline]
fn visible<'a, M: Mark>(
    record: &'a Record<M>,
    versions: &Versions,
    values: &'a Values,
    sees: impl Fn(Timestamp) -> bool,
) -> Result<Option<(Timestamp, &'a [u8])>, SnapshotTooOld> {
    if record.is_empty() {
        return Ok(None);
    }
    if sees(record.stamp) {
        return Ok(record.value(values).map(|value| (record.stamp, value)));
    }
    let mut next = record.older;
    while next != 0 {
        let node = &versions.nodes[next as usize - 1];
        if sees(node.stamp) {
            if node.is_gone() {
                return Err(SnapshotTooOld);
            }
            let newest = record.value(values).filter(|_| planted(Mutant::NewestValue));
            return Ok(node.value(values).map(|value| (node.stamp, newest.unwrap_or(value))));
        }
        next = node.older;
    }
    if record.is_trimmed() { Err(SnapshotTooOld) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::{IndexKind, Partitioning, TxnId};

    use super::*;
    use crate::lock::Holder;

    const T: TableId = TableId(0);

    fn store(index: IndexKind, groups: &[&str]) -> Store<Timestamp> {
        let mut store = Store::new(true);
        store.create_table(TableSpec::new("t", index, Partitioning::Hash { bytes: 0 }).with_groups(groups));
        store
    }

    fn at(store: &mut Store<Timestamp>, key: u64, group: u8) -> At {
        let key = Key::of_u64(key);
        let row = store.find(T.row(), &key).row().or_else(|| store.link(T, &key).row());
        At { row: row.expect("a linked row exists"), column: T.group(group) }
    }

    fn put(store: &mut Store<Timestamp>, key: u64, stamp: u64, value: Option<&[u8]>) -> At {
        let at = at(store, key, 0);
        store.install(at, Timestamp(stamp), value);
        at
    }

    fn seen(store: &Store<Timestamp>, at: At, s: u64) -> Result<Option<Vec<u8>>, SnapshotTooOld> {
        Ok(store.visible(at, |stamp| stamp.0 <= s)?.map(|(_, value)| value.to_vec()))
    }

    /// Every snapshot that may still begin is at `begins` or above.
    fn collect(store: &mut Store<Timestamp>, begins: u64) {
        store.collect(|stamp| stamp.0 <= begins, |held, stamp| stamp.0 <= held[0]);
    }

    #[test]
    fn a_snapshot_sees_the_newest_version_at_or_below_it() {
        let mut store = store(IndexKind::Hash, &["row"]);
        let x = put(&mut store, 1, 5, Some(b"five"));
        put(&mut store, 1, 9, Some(b"nine"));
        put(&mut store, 1, 12, None);
        assert_eq!(seen(&store, x, 4), Ok(None), "before the first version");
        assert_eq!(seen(&store, x, 5), Ok(Some(b"five".to_vec())));
        assert_eq!(seen(&store, x, 11), Ok(Some(b"nine".to_vec())));
        assert_eq!(seen(&store, x, 12), Ok(None), "deleted");
        assert_eq!(store.record(x).mark, Timestamp(12), "I1: the mark is at least the newest stamp");
    }

    #[test]
    fn what_the_watermark_has_passed_is_freed_and_noticed_when_asked_for() {
        let mut store = store(IndexKind::Hash, &["row"]);
        let empty = store.memory(T).bytes;
        let x = put(&mut store, 1, 5, Some(&[5; 100]));
        let one_version = store.memory(T).bytes;
        for stamp in 6..=50 {
            put(&mut store, 1, stamp, Some(&[stamp as u8; 100]));
        }
        assert_eq!(store.garbage(), 1, "a record has one entry however often it is written");
        collect(&mut store, 30);
        assert_eq!(seen(&store, x, 30), Ok(Some(vec![30; 100])));
        assert_eq!(seen(&store, x, 29), Err(SnapshotTooOld), "never absent, never another version");
        collect(&mut store, 50);
        assert_eq!(store.memory(T).bytes, one_version);
        assert!(one_version > empty);
        assert_eq!(store.garbage(), 0);
    }

    #[test]
    fn a_deleted_row_is_unlinked_once_passed_and_lives_on_in_floor_and_cover() {
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let mut store = store(index, &["row"]);
            let x = put(&mut store, 1, 5, Some(b"x"));
            put(&mut store, 1, 9, None);
            // A reader of the absence.
            store.record_mut(x).mark.raise(Timestamp(20));
            collect(&mut store, 8);
            assert!(store.find(T.row(), &Key::of_u64(1)).row().is_some(), "a snapshot @8 may still want it");
            collect(&mut store, 9);
            let place = store.find(T.row(), &Key::of_u64(1));
            assert_eq!(place.row(), None);
            assert_eq!(store.floor(), Timestamp(9), "absent reads take the deletion from the floor");
            assert_eq!(store.bound(None, T, place.cover()), Timestamp(20), "I5: the mark is not forgotten");
            assert_eq!(store.record(x).stamp(), Timestamp::MAX, "nobody mistakes the row's next use");
            assert_eq!(store.memory(T).rows, 0);
        }
    }

    #[test]
    fn the_memory_of_many_rows_that_are_gone_is_given_back_and_taken_again() {
        for groups in [&["row"][..], &["a", "b", "c"]] {
            let mut store = store(IndexKind::Hash, groups);
            let write = |store: &mut Store<Timestamp>, stamp: u64, value: Option<&[u8]>| {
                for key in 0..10_000 {
                    for group in 0..groups.len() as u8 {
                        let at = at(store, key, group);
                        store.install(at, Timestamp(stamp), value);
                    }
                }
                collect(store, stamp);
                while store.can_collect() {
                    collect(store, stamp);
                }
                store.in_all()
            };
            let full = write(&mut store, 5, Some(&[7; 100]));
            let empty = write(&mut store, 6, None);
            // What is left is the index, and of each kind of slot a block that is empty and one that
            // never became full.
            let of_rows = 9_900 * (64 + 112) * groups.len();
            assert!(empty.used <= full.used - of_rows, "{full:?} {empty:?}");
            assert!(empty.free < 400_000 * groups.len(), "{empty:?}");
            let again = write(&mut store, 7, Some(&[8; 100]));
            assert!(again.used >= full.used && again.free < 400_000 * groups.len(), "{full:?} {again:?}");
            let last = at(&mut store, 9_999, groups.len() as u8 - 1);
            assert_eq!(seen(&store, last, 7), Ok(Some(vec![8; 100])));
            assert_eq!(store.memory(T).rows, 10_000);
        }
    }

    #[test]
    fn a_locked_row_is_left_alone_and_collected_when_its_lock_goes() {
        let mut store = store(IndexKind::Ordered, &["row"]);
        let holder = Holder { age: 1, txn: TxnId { coordinator: plimsoll_types::ShardId(0), number: 1 } };
        let x = put(&mut store, 1, 5, None);
        store.lock_mut(x).owner = Some(holder);
        let empty = at(&mut store, 2, 0);
        store.lock_mut(empty).owner = Some(holder);
        collect(&mut store, u64::MAX);
        assert_eq!(store.memory(T).rows, 2);
        for at in [x, empty] {
            store.lock_mut(at).owner = None;
            store.tidy_lock(at);
        }
        collect(&mut store, u64::MAX);
        assert_eq!(store.memory(T).rows, 0, "a tombstone, and an insert that was undone");
        assert!(store.lock(x).is_none());
    }

    #[test]
    fn a_row_goes_when_all_its_column_groups_are_gone() {
        let mut store = store(IndexKind::Hash, &["a", "b"]);
        put(&mut store, 1, 5, Some(b"a"));
        let b = at(&mut store, 1, 1);
        store.install(b, Timestamp(5), Some(b"b"));
        put(&mut store, 1, 6, None);
        collect(&mut store, u64::MAX);
        assert_eq!(store.newest(b), Some(&b"b"[..]));
        store.install(b, Timestamp(7), None);
        collect(&mut store, u64::MAX);
        assert_eq!(store.memory(T).rows, 0);
    }

    #[test]
    fn linking_a_key_changes_the_version_of_its_cover_and_unlinking_does_not() {
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let mut store = store(index, &["row"]);
            put(&mut store, 7, 1, Some(b"x"));
            let cover = store.find(T.row(), &Key::of_u64(1)).cover();
            let before = store.cover_version(T, cover);
            put(&mut store, 1, 5, None);
            let linked = store.cover_version(T, cover);
            assert_ne!(linked, before);
            collect(&mut store, u64::MAX);
            assert_eq!(store.find(T.row(), &Key::of_u64(1)).row(), None);
            assert_eq!(store.cover_version(T, cover), linked);
        }
    }

    #[test]
    fn expecting_records_changes_nothing_whether_or_not_they_are_there() {
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let mut store = store(index, &["a", "b"]);
            let wanted = || (0..50).map(Key::of_u64);
            store.expect(T.group(1), wanted());
            for number in 0..40 {
                store.load(T, &Key::of_u64(number), &[b"a", &[number as u8]]);
            }
            let before = store.operations();
            store.expect(T.group(1), wanted());
            store.expect(T.group(1), std::iter::empty::<Key>());
            assert_eq!(store.operations(), before);
            for number in 0..50 {
                let row = store.find(T.row(), &Key::of_u64(number)).row();
                let value = row.and_then(|row| store.newest(At { row, column: T.group(1) }));
                assert_eq!(value, (number < 40).then_some(&[number as u8][..]), "tuple {number}");
            }
        }
    }

    #[test]
    fn values_of_all_lengths_are_read_wherever_they_are_and_their_memory_comes_back() {
        // Values in their records, values elsewhere, and tombstones, in all orders.
        let versions: Vec<Option<Vec<u8>>> =
            (0..300u64).map(|i| (i * 7 % 41 < 40).then(|| vec![i as u8; (i * 7 % 41) as usize])).collect();
        for history in [true, false] {
            let mut store: Store<Timestamp> = Store::new(history);
            store.create_table(TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 0 }));
            let x = at(&mut store, 1, 0);
            let empty = store.memory(T).bytes;
            for (stamp, value) in (1..).zip(&versions) {
                store.install(x, Timestamp(stamp), value.as_deref());
                assert_eq!(store.newest(x), value.as_deref());
                let oldest = if history { 1 } else { stamp };
                for (seen, value) in (oldest..=stamp).zip(&versions[oldest as usize - 1..]) {
                    let visible = store.visible(x, |stamp| stamp.0 <= seen).expect("nothing was collected");
                    assert_eq!(visible, value.as_deref().map(|value| (Timestamp(seen), value)));
                }
            }
            store.install(x, Timestamp(1000), Some(b"sixteen bytes ok"));
            collect(&mut store, u64::MAX);
            assert_eq!(store.memory(T).bytes, empty, "a short value takes no more than its record");
            store.install(x, Timestamp(1001), Some(b"seventeen of them"));
            collect(&mut store, u64::MAX);
            assert_eq!(store.memory(T).bytes, empty + 32);
        }
    }

    #[test]
    fn without_history_only_the_newest_version_is_kept() {
        let mut store: Store<()> = Store::new(false);
        store.create_table(TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 0 }));
        store.load(T, &Key::of_u64(1), &[b"loaded"]);
        let bytes = store.memory(T).bytes;
        let row = store.find(T.row(), &Key::of_u64(1)).row().expect("a loaded row exists");
        for stamp in 1..100 {
            store.install(At { row, column: T.row() }, Timestamp(stamp), Some(b"newer!"));
        }
        assert_eq!(store.memory(T).bytes, bytes);
        assert_eq!(store.garbage(), 0);
    }

    #[test]
    fn a_scan_meets_every_leaf_of_its_range_and_its_rows_in_order() {
        let mut store = store(IndexKind::Ordered, &["row"]);
        for key in (0..1000).rev() {
            put(&mut store, key, 1, Some(&key.to_be_bytes()));
        }
        let (mut keys, mut leaves) = (Vec::new(), 0);
        store.scan(T, &Key::of_u64(100), Some(&Key::of_u64(400)), |rows, visited| {
            match visited {
                Visited::Leaf(_, mark, _) => {
                    leaves += 1;
                    mark.raise(Timestamp(77));
                }
                Visited::Row(row) => keys.push(rows.key(row).leading_int(8)),
            }
            ControlFlow::Continue(())
        });
        assert_eq!(keys, (100..400).collect::<Vec<_>>());
        assert!(leaves > 1);
        // The marks of the leaves stand in for those of their records and of the keys between them.
        for key in 100..400 {
            let place = store.find(T.row(), &Key::of_u64(key));
            let at = place.row().map(|row| At { row, column: T.row() });
            let record = at.map(|at| store.record(at));
            assert_eq!(store.bound(record, T, place.cover()), Timestamp(77));
        }
    }
}
