//! Pieces whose data was fetched: they execute where the transaction is coordinated, over what the shards
//! have answered, and their writes are buffered.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_checker::ScanRead;
use plimsoll_store::At;
use plimsoll_types::{Abort, ColumnGroup, Key, ShardId, TableId};

use crate::base::Base;
use crate::fetched::{Fetched, Got, ReadRef};
use crate::local::scanned_to;
use crate::procedure::{Access, Reads, Scan};
use crate::timestamp::Scheme;
use crate::work::{Change, Recorded, Work};

/// A batch of reads that was sent to a shard, and its answer.
#[derive(Debug)]
pub(crate) struct Part<S: Scheme> {
    pub shard: ShardId,
    pub reads: Reads,
    pub fetched: Fetched<S>,
    /// Whether the records that were read have been locked since.
    pub locked: bool,
}

/// Executes pieces over fetched values.
pub(crate) struct Remote<'a, S: Scheme> {
    pub base: &'a mut Base<S>,
    pub parts: &'a [Part<S>],
    pub work: &'a mut Work<S>,
    /// Where the last get was found: the next is usually behind it.
    pub cursor: (usize, usize),
}

impl<'a, S: Scheme> Remote<'a, S> {
    pub fn new(base: &'a mut Base<S>, parts: &'a [Part<S>], work: &'a mut Work<S>) -> Self {
        Remote { base, parts, work, cursor: (0, 0) }
    }

    fn find(&mut self, column: ColumnGroup, key: &Key) -> Option<(&'a Part<S>, &'a Got)> {
        let parts = self.parts;
        let is = |part: &Part<S>, i: usize| {
            part.reads.gets.get(i).is_some_and(|(c, k, _)| *c == column && k == key)
        };
        let (part, index) = self.cursor;
        let position = match parts.get(part).is_some_and(|part| is(part, index)) {
            true => Some((part, index)),
            false => parts
                .iter()
                .enumerate()
                .find_map(|(p, part)| (0..part.reads.gets.len()).find(|&i| is(part, i)).map(|i| (p, i))),
        };
        position.map(|(part, index)| {
            self.cursor = (part, index + 1);
            (&parts[part], &parts[part].fetched.gets[index])
        })
    }

    fn write(&mut self, column: ColumnGroup, key: &Key, change: Change, value: &[u8]) -> Result<(), Abort> {
        assert!(!self.base.immutable(column.table), "immutable tables are not written");
        if let Some(again) = self.work.writes.again(column, key, change, value) {
            return again;
        }
        let scanned = |scan: &&(Key, Got)| scan.0 == *key;
        let expected = self.find(column, key).map(|(_, got)| got.read).or_else(|| {
            // A row met by a scan is a row read.
            let parts = self.parts.iter().flat_map(|part| part.reads.scans.iter().zip(&part.fetched.scans));
            parts
                .filter(|((scan, _), _)| scan.column == column)
                .find_map(|(_, rows)| rows.rows.iter().find(scanned).map(|(_, got)| got.read))
        });
        let shard = self.base.home(column.table, key);
        self.work.writes.push(column, key, change, shard, value).expected = expected;
        Ok(())
    }
}

impl<S: Scheme> Access for Remote<'_, S> {
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        if self.base.everywhere(column.table) {
            let row = self.base.store.find(column.table, key).row();
            return Ok(row.and_then(|row| self.base.store.newest(At { row, column })));
        }
        if self.work.writes.find(column, key).is_some() {
            let own = self.work.writes.find(column, key);
            return Ok(own.and_then(|own| self.work.writes.value(own)));
        }
        let (part, got) = self.find(column, key).unwrap_or_else(|| {
            panic!("a piece reads what it declares; {key:?} of table {} was not declared", column.table.0)
        });
        self.work.record_read(column, key, got.version);
        Ok(part.fetched.value(got))
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

    fn scan(
        &mut self,
        scan: &Scan,
        mut visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let mut parts = self.parts.iter().flat_map(|part| {
            part.reads.scans.iter().zip(&part.fetched.scans).map(move |(asked, rows)| (part, asked, rows))
        });
        let same = |asked: &Scan| {
            asked.column == scan.column
                && asked.low == scan.low
                && asked.high == scan.high
                && asked.limit >= scan.limit
        };
        let Some((part, (asked, _), scanned)) = parts.find(|(_, (asked, _), _)| same(asked)) else {
            panic!("a piece scans what it declares; a scan of table {} was not declared", scan.column.table.0)
        };
        if let Some(recorded) = &mut self.work.recorded {
            record_scan(recorded, scan, &scanned.rows);
        }
        let rows = scanned.rows.iter().filter_map(|(key, got)| Some((key, part.fetched.value(got)?)));
        if !self.work.writes.touch(scan.column.table) {
            for (key, value) in rows.take(scan.limit) {
                if visit(key, value).is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut merged: BTreeMap<&Key, &[u8]> = rows.collect();
        // Of what lies behind the last row that was fetched nothing is known.
        let full = scanned.rows.len() >= asked.limit;
        let end = scanned.rows.last().filter(|_| full).map(|(key, _)| key.clone());
        for own in self.work.writes.in_range(scan.column, &scan.low, scan.high.as_ref()) {
            if end.as_ref().is_some_and(|end| own.key > *end) {
                break;
            }
            match self.work.writes.value(own) {
                Some(value) => merged.insert(&own.key, value),
                None => merged.remove(&own.key),
            };
        }
        for (key, value) in merged.into_iter().take(scan.limit) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Notes a scan whose rows were all fetched.
pub(crate) fn record_scan(recorded: &mut Recorded, scan: &Scan, rows: &[(Key, Got)]) {
    let rows: Vec<_> = rows.iter().filter_map(|(key, got)| Some((key.clone(), got.version?))).collect();
    let high = scanned_to(scan, &rows, rows.len() >= scan.limit);
    recorded.scans.push(ScanRead { column: scan.column, low: scan.low.clone(), high, rows });
}

/// The reads of a part that are not writes as well, which are checked when they are locked.
pub(crate) fn only_read<S: Scheme>(part: &Part<S>, work: &Work<S>) -> Vec<ReadRef> {
    let is_row = |read: &ReadRef| matches!(read, ReadRef::Row { .. });
    let written: Vec<ReadRef> =
        work.writes.of(part.shard).filter_map(|write| write.expected).filter(is_row).collect();
    part.fetched.read_refs().filter(|read| !written.contains(read)).collect()
}
