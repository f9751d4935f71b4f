//! Pieces whose data was fetched: they execute where the transaction is coordinated, over what the
//! shards have answered, and their writes are buffered.

use std::ops::ControlFlow;

use plimsoll_store::At;
use plimsoll_types::{Abort, ColumnGroup, Key, TableId};

use crate::attempt::Recorded;
use crate::base::Base;
use crate::fetched::Got;
use crate::local::{MergedRows, scan_read};
use crate::parts::FetchedBatches;
use crate::procedure::{Access, Scan};
use crate::timestamp::Scheme;
use crate::work::{Change, Footprint};

/// Executes pieces over fetched values.
pub struct Remote<'a, S: Scheme> {
    pub(crate) base: &'a mut Base<S>,
    pub(crate) parts: &'a mut FetchedBatches<S>,
    pub(crate) work: &'a mut Footprint<S>,
}

impl<'a, S: Scheme> Remote<'a, S> {
    pub(crate) fn new(
        base: &'a mut Base<S>,
        parts: &'a mut FetchedBatches<S>,
        work: &'a mut Footprint<S>,
    ) -> Self {
        Remote { base, parts, work }
    }

    fn write(&mut self, column: ColumnGroup, key: &Key, change: Change, value: &[u8]) -> Result<(), Abort> {
        assert!(!self.base.immutable(column.table), "immutable tables are not written");
        if let Some(again) = self.work.writes.again(column, key, change, value) {
            return again;
        }
        // A row met by a scan is a row read.
        let read = self.parts.find(column, key).map(|(part, got)| (part.shard, got.read));
        let home = self.base.home(column.table, key);
        let expected = |shard| read.filter(|(read, _)| *read == shard).map(|(_, read)| read);
        self.work.writes.push(column, key, change, home, value).expected = expected(home);
        for shard in self.base.other_copies(column.table, home) {
            self.work.writes.push_copy(shard).expected = expected(shard);
        }
        Ok(())
    }
}

impl<S: Scheme> Access for Remote<'_, S> {
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort> {
        if self.base.at_hand(column.table) {
            let row = self.base.store.find(column, key).row();
            return Ok(row.and_then(|row| self.base.store.newest(At { row, column })));
        }
        if self.work.writes.find(column, key).is_some() {
            let own = self.work.writes.find(column, key);
            return Ok(own.and_then(|own| self.work.writes.value(own)));
        }
        let Some((part, got)) = self.parts.find(column, key) else {
            panic!("a piece reads what it declares; {key:?} of table {} was not declared", column.table.0)
        };
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

    fn scan(&mut self, scan: &Scan, visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>) -> Result<(), Abort> {
        if scan.limit == 0 {
            return Ok(());
        }
        let mut parts = self.parts.since(0).iter().flat_map(|part| {
            part.reads.scans.iter().zip(&part.fetched.scans).map(move |(asked, rows)| (part, asked, rows))
        });
        let same = |asked: &Scan| {
            asked.column == scan.column
                && asked.low == scan.low
                && asked.high == scan.high
                && asked.order == scan.order
                && asked.limit >= scan.limit
        };
        let Some((part, _, scanned)) = parts.find(|(_, (asked, _), _)| same(asked)) else {
            panic!("a piece scans what it declares; a scan of table {} was not declared", scan.column.table.0)
        };
        if let Some(recorded) = &mut self.work.recorded {
            record_scan(recorded, scan, &scanned.rows);
        }
        // Of what lies behind the last row that was fetched nothing is known.
        let end = scanned.rows.last().filter(|_| scanned.more).map(|(key, _)| key);
        let writes = &self.work.writes;
        let own = writes.in_range(scan.column, &scan.low, scan.high.as_ref(), scan.order);
        let own = own.take_while(|own| end.is_none_or(|end| scan.order.compare(&own.key, end).is_le()));
        let rows = scanned.rows.iter().filter_map(|(key, got)| Some((key, part.fetched.value(got)?)));
        let (own, order) = (own.peekable(), scan.order);
        MergedRows { own, order, writes, left: scan.limit, visit }.show_all(rows);
        Ok(())
    }
}

/// Notes a scan whose rows were all fetched.
pub(crate) fn record_scan(recorded: &mut Recorded, scan: &Scan, rows: &[(Key, Got)]) {
    let rows: Vec<_> = rows.iter().filter_map(|(key, got)| Some((key.clone(), got.version?))).collect();
    let stopped = rows.len() >= scan.limit;
    recorded.scans.push(scan_read(scan, rows, stopped));
}
