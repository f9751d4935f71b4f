//! Executes pieces on the store of their server, before their place in the order is known.
//!
//! An immediate piece executes when it starts; its transaction gets its stamp later. Until then its
//! writes are *pending*: later immediate pieces see them, snapshots do not, and wait for them if
//! their stamp may be within the snapshot, as they wait for the owner of a lock. Of several pending
//! writes of one record the first is installed first, because each later writer is a successor of
//! it in the dependency graph.
//!
//! A deferred piece executes in the same way, in the step in which its transaction is installed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_store::{At, Holder, Mark, Visited};
use plimsoll_types::history::{Install, Read, ScanRead, Version};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, Order, TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::{Range, ReadRef};
use crate::local::scanned;
use crate::procedure::Scan;
use crate::shipped::{AnyAccess, Item};
use crate::timestamp::Scheme;
use crate::trace::What;
use crate::work::in_order;

/// The writer of a record, and the value; `None` deletes.
type Write = (TxnId, Option<Vec<u8>>);

/// Pending writes, by record in the order in which they will be installed.
#[derive(Debug, Default)]
pub struct Pending {
    writes: BTreeMap<(ColumnGroup, Key), Vec<Write>>,
    /// By record: the undecided transactions that may write it, with lower bounds of their stamps.
    writers: BTreeMap<At, Vec<(TxnId, Timestamp)>>,
}

impl Pending {
    fn newest(&self, column: ColumnGroup, key: &Key) -> Option<&Write> {
        if self.writes.is_empty() {
            return None;
        }
        self.writes.get(&(column, key.clone())).and_then(|writes| writes.last())
    }

    fn push(&mut self, column: ColumnGroup, key: &Key, txn: TxnId, value: Option<Vec<u8>>) {
        let writes = self.writes.entry((column, key.clone())).or_default();
        match writes.last_mut().filter(|(last, _)| *last == txn) {
            Some((_, last)) => *last = value,
            None => writes.push((txn, value)),
        }
    }

    /// Removes a transaction's pending write of a record and returns it.
    fn take(&mut self, column: ColumnGroup, key: &Key, txn: TxnId) -> Option<Option<Vec<u8>>> {
        let writes = self.writes.get_mut(&(column, key.clone()))?;
        let at = writes.iter().position(|(writer, _)| *writer == txn)?;
        let (_, value) = writes.remove(at);
        if writes.is_empty() {
            self.writes.remove(&(column, key.clone()));
        }
        Some(value)
    }

    /// How many records have pending writes, plus how many records undecided transactions may
    /// write.
    pub fn len(&self) -> usize {
        self.writes.len() + self.writers.len()
    }
}

/// What a transaction has done on a server before it is decided.
#[derive(Debug, Default)]
pub struct Effects {
    /// Present records that were read: their rows stay until the transaction is decided.
    rows: Vec<At>,
    /// Absent keys and ranges that were read.
    ranges: Vec<Range>,
    /// Records that it may write, with their keys.
    writes: Vec<(ColumnGroup, Key, At)>,
    /// Its reads, if the run is recorded: the version, or its writer if the version is not
    /// installed yet.
    reads: Vec<(ColumnGroup, Key, Result<Version, TxnId>)>,
    scans: Vec<PendingScan>,
}

#[derive(Debug)]
struct PendingScan {
    column: ColumnGroup,
    /// What was read of the range, with its rows in ascending order.
    low: Key,
    high: Option<Key>,
    rows: Vec<(Key, Result<Timestamp, TxnId>)>,
}

/// A transaction's reads on a server, if the run is recorded.
#[derive(Clone, Debug, Default)]
pub struct RecordedReads {
    /// Point reads.
    pub reads: Vec<Read>,
    /// Range scans.
    pub scans: Vec<ScanRead>,
}

plimsoll_types::wire!(struct RecordedReads { reads, scans });

/// A piece in execution.
pub struct Execution<'a, S: Scheme> {
    pub base: &'a mut Base<S>,
    pub pending: &'a mut Pending,
    pub txn: TxnId,
    /// What its transaction must be ordered after.
    pub observed: &'a mut S::Observed,
    pub doings: &'a mut Effects,
    /// The transaction's stamp will not be below this.
    pub least: Timestamp,
    /// The items that an immediate piece has declared. Deferred pieces have announced their writes.
    pub declared: Option<&'a [Item]>,
    /// The value read last, if it was pending.
    buffer: Vec<u8>,
}

impl<'a, S: Scheme> Execution<'a, S> {
    pub fn new(
        base: &'a mut Base<S>,
        pending: &'a mut Pending,
        txn: TxnId,
        observed: &'a mut S::Observed,
        doings: &'a mut Effects,
        least: Timestamp,
    ) -> Self {
        Execution { base, pending, txn, observed, doings, least, declared: None, buffer: Vec::new() }
    }

    fn recording(&self) -> bool {
        self.base.installs.is_some()
    }

    /// Announces that the transaction may write a record: it is ordered after all transactions that
    /// have read or written it so far, and from here on snapshots that may see the write wait for
    /// it. Links the key if it is absent.
    pub fn announce(&mut self, column: ColumnGroup, key: &Key) -> At {
        let place = self.base.store.find(column, key);
        if let Some(at) = place.row().map(|row| At { row, column })
            && let Some(writers) = self.pending.writers.get(&at)
            && writers.iter().any(|(writer, _)| *writer == self.txn)
        {
            return at;
        }
        self.base.observe_overwritten(self.observed, column, place);
        let row = place.row().or_else(|| self.base.store.link(column.table, key).row());
        let at = At { row: row.expect("a linked row exists"), column };
        let lb = self.least.max(S::lower_bound(self.observed));
        self.pending.writers.entry(at).or_default().push((self.txn, lb));
        self.base.counters.locks += 1;
        show_writers(self.base, self.pending, at);
        self.base.step_locks(self.txn, at, true);
        self.doings.writes.push((column, key.clone(), at));
        at
    }

    /// For a read of a deferred piece: the transaction is ordered after the present version.
    pub fn observe(&mut self, column: ColumnGroup, key: &Key) {
        let place = self.base.store.find(column, key);
        let head = place.row().and_then(|row| self.base.head(At { row, column }));
        S::observe(self.observed, head.unwrap_or(self.base.absence()));
    }

    fn write(&mut self, column: ColumnGroup, key: &Key, value: Option<&[u8]>) {
        assert!(!self.base.immutable(column.table), "immutable tables are not written");
        assert!(!self.base.copied(column.table), "a piece writes on one server");
        if let Some(declared) = self.declared.filter(|_| self.recording()) {
            let covers = |item: &Item| item.write && item.column == column && begins_with(key, &item.key);
            assert!(declared.iter().any(covers), "{key:?} of {column:?} is written without being declared");
        }
        self.announce(column, key);
        self.pending.push(column, key, self.txn, value.map(<[u8]>::to_vec));
    }

    /// Whether a record is present, as this piece sees it.
    fn present(&mut self, column: ColumnGroup, key: &Key) -> bool {
        match self.pending.newest(column, key) {
            Some((_, value)) => value.is_some(),
            None => {
                let row = self.base.store.find(column, key).row();
                row.is_some_and(|row| self.base.store.newest(At { row, column }).is_some())
            }
        }
    }
}

impl<S: Scheme> AnyAccess for Execution<'_, S> {
    fn get_any(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        let place = self.base.store.find(column, key);
        if self.base.immutable(column.table) {
            return Ok(place.row().and_then(|row| self.base.store.newest(At { row, column })));
        }
        let recording = self.recording();
        if let Some((writer, value)) = self.pending.newest(column, key) {
            if *writer != self.txn {
                match value {
                    Some(_) => self.doings.rows.extend(place.row().map(|row| At { row, column })),
                    // Once the writer is decided the row may be collected, and may belong to
                    // another key when this transaction is decided.
                    None => self.doings.ranges.push((column.table, key.clone(), Some(key.just_after()))),
                }
                if recording {
                    self.doings.reads.push((column, key.clone(), Err(*writer)));
                }
            }
            let Some(value) = value else { return Ok(None) };
            self.buffer.clear();
            self.buffer.extend_from_slice(value);
            return Ok(Some(&self.buffer));
        }
        let at = place.row().map(|row| At { row, column });
        let head = at.and_then(|at| self.base.head(at));
        S::observe(self.observed, head.unwrap_or(self.base.absence()));
        let found = at.filter(|at| self.base.store.newest(*at).is_some());
        match found {
            Some(at) => self.doings.rows.push(at),
            None => self.doings.ranges.push((column.table, key.clone(), Some(key.just_after()))),
        }
        if recording {
            let version = found.and(head).map_or(Version::Absent, Version::At);
            self.doings.reads.push((column, key.clone(), Ok(version)));
        }
        Ok(found.and_then(|at| self.base.store.newest(at)))
    }

    fn put_any(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort> {
        self.write(column, key, Some(value));
        Ok(())
    }

    fn insert_any(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort> {
        for (group, value) in values.iter().enumerate() {
            let column = table.group(group as u8);
            if self.present(column, key) {
                // That the row exists is something that the transaction has read.
                self.get_any(column, key)?;
                return Err(Abort::User);
            }
            self.write(column, key, Some(value));
        }
        Ok(())
    }

    fn delete_any(&mut self, table: TableId, key: &Key) -> Result<(), Abort> {
        for group in 0..self.base.groups(table) {
            self.write(table.group(group), key, None);
        }
        Ok(())
    }

    fn scan_any(
        &mut self,
        scan: &Scan,
        visit: &mut dyn FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        if scan.limit == 0 {
            return Ok(());
        }
        let ColumnGroup { table, group } = scan.column;
        let immutable = self.base.immutable(table);
        let recording = self.recording() && !immutable;
        S::observe(self.observed, self.base.absence());
        let Execution { base, pending, txn, observed, doings, .. } = self;
        let ahead = in_order(&pending.writes, scan.column, &scan.low, scan.high.as_ref(), scan.order);
        let mut ahead = ahead.peekable();
        let (mut left, mut seen, mut stopped) = (scan.limit, Vec::new(), false);
        let mut show = |key: &Key, value: &[u8]| {
            left -= 1;
            let flow = visit(key, value);
            if left == 0 { ControlFlow::Break(()) } else { flow }
        };
        base.store.scan_in(scan.order, table, &scan.low, scan.high.as_ref(), |rows, visited| {
            let Visited::Row(row) = visited else { return ControlFlow::Continue(()) };
            let key = rows.key(row);
            let record = rows.record(row, group);
            let head = (!record.is_empty()).then(|| record.stamp());
            if let Some(head) = head {
                S::observe(observed, head);
            }
            let stored = rows.newest(row, group);
            // Every pending write has a row.
            while ahead.next_if(|(at, _)| scan.order.compare(at, &key).is_lt()).is_some() {}
            let writes = ahead.next_if(|(at, _)| **at == key).map_or(&[][..], |(_, writes)| writes);
            if recording {
                // An own write is not a read; the version that it hides is.
                let read = match writes.iter().rfind(|(writer, _)| writer != txn) {
                    Some((writer, value)) => value.as_ref().map(|_| Err(*writer)),
                    None => stored.map(|_| Ok(head.unwrap_or_default())),
                };
                seen.extend(read.map(|whose| (key.clone(), whose)));
            }
            let value = writes.last().map_or(stored, |(_, value)| value.as_deref());
            stopped = value.is_some_and(|value| show(&key, value).is_break());
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if !immutable {
            doings.ranges.push((table, scan.low.clone(), scan.high.clone()));
        }
        if recording {
            let (low, high) = scanned(scan, &seen, stopped);
            if scan.order == Order::Descending {
                seen.reverse();
            }
            doings.scans.push(PendingScan { column: scan.column, low, high, rows: seen });
        }
        Ok(())
    }
}

/// Whether a key begins with these bytes.
fn begins_with(key: &Key, prefix: &Key) -> bool {
    key >= prefix && (prefix.is_empty() || prefix.prefix_end().is_none_or(|end| *key < end))
}

/// Sets the record's lock owner, for snapshots, to the undecided writer with the smallest lower
/// bound.
fn show_writers<S: Scheme>(base: &mut Base<S>, pending: &Pending, at: At) {
    let writers = pending.writers.get(&at).map_or(&[][..], Vec::as_slice);
    let first = writers.iter().min_by_key(|(_, lb)| *lb);
    let owner = first.map(|(txn, _)| Holder { age: 0, txn: *txn });
    let lock = base.store.lock_mut(at);
    lock.lb = first.map_or(Timestamp::ZERO, |(_, lb)| *lb);
    if std::mem::replace(&mut lock.owner, owner).map(|owner| owner.txn) != owner.map(|owner| owner.txn) {
        // The waiting readers look again: the new owner may be in their way, or there is no owner.
        base.released.append(&mut lock.readers);
    }
    base.store.tidy_lock(at);
}

impl Effects {
    /// Undoes everything that the transaction has done here.
    pub fn undo<S: Scheme>(self, base: &mut Base<S>, pending: &mut Pending, txn: TxnId) {
        for (column, key, at) in self.writes {
            pending.take(column, &key, txn);
            gone(base, pending, txn, at);
        }
    }

    /// The transaction has its stamp: pins its reads, installs its writes, and returns its recorded
    /// reads and the number of records written.
    pub fn install<S: Scheme>(
        self,
        base: &mut Base<S>,
        pending: &mut Pending,
        txn: TxnId,
        stamp: Timestamp,
    ) -> (RecordedReads, u64) {
        let mut seen = RecordedReads::default();
        for (column, key, version) in self.reads {
            let version = version.unwrap_or_else(|writer| match installed(base, column, &key, writer) {
                Some(stamp) => Version::At(stamp),
                None => Version::Absent,
            });
            seen.reads.push(Read { column, key, version });
        }
        for PendingScan { column, low, high, rows } in self.scans {
            let stamp = |key: &Key, writer| installed(base, column, key, writer).expect("a row was read");
            let rows = rows.into_iter().map(|(key, whose)| {
                let stamp = whose.unwrap_or_else(|writer| stamp(&key, writer));
                (key, stamp)
            });
            let rows = rows.collect();
            seen.scans.push(ScanRead { column, low, high, rows });
        }
        if size_of::<S::Mark>() > 0 {
            base.counters.pins += (self.rows.len() + self.ranges.len()) as u64;
            for at in self.rows {
                base.pin(&ReadRef::Row { at, head: None }, stamp);
            }
            for (table, low, high) in &self.ranges {
                pin_range(base, *table, low, high.as_ref(), stamp);
            }
        }
        let mut writes = 0;
        for (column, key, at) in self.writes {
            if let Some(value) = pending.take(column, &key, txn) {
                base.install(txn, at, stamp, value.as_deref());
                writes += 1;
            }
            gone(base, pending, txn, at);
        }
        (seen, writes)
    }
}

/// The stamp of a write that was pending when it was read, and is installed now; `None` if it is a
/// deletion.
fn installed<S: Scheme>(base: &Base<S>, column: ColumnGroup, key: &Key, writer: TxnId) -> Option<Timestamp> {
    let installs = base.installs.as_ref().expect("what is read is noted in recorded runs only");
    let of_record =
        |install: &&Install| install.txn == writer && install.column == column && install.key == *key;
    let install = installs.iter().rev().find(of_record).expect("whoever was read is decided before");
    (!install.delete).then_some(install.stamp)
}

/// The transaction will not write this record any more.
fn gone<S: Scheme>(base: &mut Base<S>, pending: &mut Pending, txn: TxnId, at: At) {
    if let Some(writers) = pending.writers.get_mut(&at) {
        writers.retain(|(writer, _)| *writer != txn);
        if writers.is_empty() {
            pending.writers.remove(&at);
        }
    }
    show_writers(base, pending, at);
    base.step(txn, |base| What::Unlocks(base.item(at)));
}

/// Raises the marks of what covers a range, or an absent key.
fn pin_range<S: Scheme>(base: &mut Base<S>, table: TableId, low: &Key, high: Option<&Key>, stamp: Timestamp) {
    if base.store.spec(table).index == IndexKind::Ordered {
        base.store.scan(table, low, high, |_, visited| {
            if let Visited::Leaf(_, mark, _) = visited {
                mark.raise(stamp);
            }
            ControlFlow::Continue(())
        });
        return;
    }
    let place = base.store.find(table.row(), low);
    match place.row() {
        // Another transaction has linked a row for the key since, in order to insert it.
        Some(row) => (0..base.groups(table)).for_each(|group| {
            base.pin(&ReadRef::Row { at: At { row, column: table.group(group) }, head: None }, stamp);
        }),
        None => base.pin(&ReadRef::Cover { table, cover: place.cover(), version: 0 }, stamp),
    }
}
