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
use plimsoll_types::history::{Read, ScanRead, Version};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, Order, TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::{Range, ReadRef};
use crate::local::scanned;
use crate::procedure::Scan;
use crate::shipped::{AnyAccess, Item};
use crate::timestamp::Scheme;
use crate::trace::What;
use crate::work::in_order;

/// What is written; `None` deletes.
type Value = Option<Vec<u8>>;

/// The writer of a record, and the value.
type Write = (TxnId, Value);

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

/// Where a value that was read comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// From this version.
    Version(Version),
    /// From this transaction, which was not decided yet.
    Pending(TxnId),
}

plimsoll_types::wire!(
    enum Source {
        Version(version) = 0,
        Pending(txn) = 1,
    }
);

impl Source {
    /// The version, if its writer was decided in this life of the shard, or its versions were read
    /// from the log.
    fn version<S: Scheme>(&self, base: &Base<S>) -> Option<Version> {
        match *self {
            Source::Version(version) => Some(version),
            Source::Pending(writer) => {
                let mut installs = base.installs.iter().flatten().rev();
                installs.find(|install| install.txn == writer).map(|install| Version::At(install.stamp))
            }
        }
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
    /// Its reads, if the run is recorded.
    reads: Vec<(ColumnGroup, Key, Source)>,
    scans: Vec<PendingScan>,
}

#[derive(Clone, Debug)]
struct PendingScan {
    column: ColumnGroup,
    /// What was read of the range, with its rows in ascending order.
    low: Key,
    high: Option<Key>,
    rows: Vec<(Key, Source)>,
}

plimsoll_types::wire!(struct PendingScan { column, low, high, rows });

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
                    // What was deleted stays so: a record has one writer in a transaction that
                    // others may see before it is decided.
                    let source = match value {
                        Some(_) => Source::Pending(*writer),
                        None => Source::Version(Version::Absent),
                    };
                    self.doings.reads.push((column, key.clone(), source));
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
            self.doings.reads.push((column, key.clone(), Source::Version(version)));
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
                    Some((writer, value)) => value.as_ref().map(|_| Source::Pending(*writer)),
                    None => stored.map(|_| Source::Version(Version::At(head.unwrap_or_default()))),
                };
                seen.extend(read.map(|source| (key.clone(), source)));
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

/// What a transaction has done on a server, as its log has it: by key, for rows have other places
/// after a restart.
pub struct LoggedEffects {
    rows: Vec<(ColumnGroup, Key)>,
    ranges: Vec<Range>,
    /// With the pending values; a record that it has announced only has none.
    writes: Vec<(ColumnGroup, Key, Option<Value>)>,
    reads: Vec<(ColumnGroup, Key, Source)>,
    scans: Vec<PendingScan>,
}

plimsoll_types::wire!(struct LoggedEffects { rows, ranges, writes, reads, scans });

impl LoggedEffects {
    /// If the run is recorded: names the versions that were read of writers that are decided by
    /// now. A shard that comes back may begin with an image that is newer than these, and does not
    /// see them decided.
    pub fn name_versions<S: Scheme>(&mut self, base: &Base<S>) {
        let scanned = self.scans.iter_mut().flat_map(|scan| &mut scan.rows).map(|(_, source)| source);
        for source in self.reads.iter_mut().map(|(_, _, source)| source).chain(scanned) {
            if let Some(version) = source.version(base) {
                *source = Source::Version(version);
            }
        }
    }

    /// Takes the place of what the transaction has done so far: it has done this as well. Its stamp
    /// will not be below `lb`.
    pub fn restore<S: Scheme>(
        self,
        base: &mut Base<S>,
        pending: &mut Pending,
        txn: TxnId,
        lb: Timestamp,
    ) -> Effects {
        let LoggedEffects { rows, mut ranges, writes, reads, scans } = self;
        let mut effects = Effects { reads, scans, ..Effects::default() };
        for (column, key) in rows {
            match base.store.find(column, &key).row() {
                Some(row) => effects.rows.push(At { row, column }),
                None => ranges.push((column.table, key.clone(), Some(key.just_after()))),
            }
        }
        effects.ranges = ranges;
        for (column, key, value) in writes {
            let at = base.place_of(column, &key);
            let writers = pending.writers.entry(at).or_default();
            match writers.iter_mut().find(|(writer, _)| *writer == txn) {
                Some(writer) => writer.1 = lb,
                None => writers.push((txn, lb)),
            }
            show_writers(base, pending, at);
            if let Some(value) = value {
                let writes = pending.writes.entry((column, key.clone())).or_default();
                match writes.iter_mut().find(|(writer, _)| *writer == txn) {
                    Some(write) => write.1 = value,
                    None => writes.push((txn, value)),
                }
            }
            effects.writes.push((column, key, at));
        }
        effects
    }
}

impl Effects {
    /// The same for the log.
    pub fn logged<S: Scheme>(&self, base: &Base<S>, pending: &Pending, txn: TxnId) -> LoggedEffects {
        let row = |at: &At| (at.column, base.store.key(at.column.table, at.row));
        let write = |(column, key, _): &(ColumnGroup, Key, At)| {
            let writes = pending.writes.get(&(*column, key.clone()));
            let own = writes.and_then(|writes| writes.iter().find(|(writer, _)| *writer == txn));
            (*column, key.clone(), own.map(|(_, value)| value.clone()))
        };
        let mut logged = LoggedEffects {
            rows: self.rows.iter().map(row).collect(),
            ranges: self.ranges.clone(),
            writes: self.writes.iter().map(write).collect(),
            reads: self.reads.clone(),
            scans: self.scans.clone(),
        };
        logged.name_versions(base);
        logged
    }

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
        for (column, key, source) in self.reads {
            let version = source.version(base);
            seen.reads.extend(version.map(|version| Read { column, key, version }));
        }
        for PendingScan { column, low, high, rows } in self.scans {
            let row = |(key, source): (Key, Source)| match source.version(base)? {
                Version::At(stamp) => Some((key, stamp)),
                Version::Absent => None,
            };
            let rows: Option<Vec<_>> = rows.into_iter().map(row).collect();
            seen.scans.extend(rows.map(|rows| ScanRead { column, low, high, rows }));
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
