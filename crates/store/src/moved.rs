//! Rows on their way from one shard to another.
//!
//! A row moves with all its versions, so that snapshots find the same in its new place. Its marks
//! do not: the new place takes one bound for everything, above all marks of the old one
//! ([`Store::marked`]), because absent keys and ranges have marks as well, and theirs belong to no
//! row. Nobody who has read something before the move may take it for valid afterwards, there or
//! here: rows that were taken out are unlinked, rows that come in get row numbers that nobody has
//! seen, and the versions of all leaves and cells change.

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Key, TableId, Timestamp};

use crate::store::At;
use crate::table::Index;
use crate::{Mark, RowId, Store};

/// A row with all its versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedRow {
    /// Its table.
    pub table: TableId,
    /// Its key.
    pub key: Key,
    /// One per column group.
    pub records: Vec<MovedRecord>,
}

/// The versions of a record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MovedRecord {
    /// Stamps and values, the oldest first; a tombstone has no value.
    pub versions: Vec<(Timestamp, Option<Vec<u8>>)>,
    /// Stamps of those of them that only say that versions were dropped there.
    pub gaps: Vec<Timestamp>,
    /// Whether there were older ones.
    pub trimmed: bool,
}

plimsoll_types::wire!(struct MovedRow { table, key, records });
plimsoll_types::wire!(struct MovedRecord { versions, gaps, trimmed });

impl MovedRow {
    /// The row in pieces of about so many bytes, or of one version each, if it is larger.
    pub fn pieces(self, bytes: usize) -> Vec<MovedRow> {
        if self.bytes() <= bytes {
            return vec![self];
        }
        let MovedRow { table, key, records } = self;
        let groups = records.len();
        let piece = |group, version: (Timestamp, _), gap, trimmed| {
            let mut records = vec![MovedRecord::default(); groups];
            let gaps = if gap { vec![version.0] } else { Vec::new() };
            records[group] = MovedRecord { versions: vec![version], gaps, trimmed };
            MovedRow { table, key: key.clone(), records }
        };
        let records = records.into_iter().enumerate();
        records
            .flat_map(|(group, MovedRecord { versions, gaps, trimmed })| {
                let gap = move |version: &(Timestamp, _)| gaps.contains(&version.0);
                versions.into_iter().map(move |version| (group, gap(&version), version, trimmed))
            })
            .map(|(group, gap, version, trimmed)| piece(group, version, gap, trimmed))
            .collect()
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let versions = self.records.iter().flat_map(|record| &record.versions);
        versions.map(|(_, value)| 32 + value.as_ref().map_or(0, Vec::len)).sum::<usize>() + 64
    }
}

impl<M: Mark> Store<M> {
    /// The rows with such keys that are linked, in every table.
    fn rows_with(&self, wanted: &impl Fn(TableId, &Key) -> bool) -> Vec<(TableId, RowId)> {
        let tables = (0..).map(TableId).zip(&self.tables);
        let rows = tables.flat_map(|(id, table)| {
            let rows = (0..table.rows()).map(|row| row as RowId);
            let linked = rows.filter(|&row| table.is_linked(row));
            linked.filter(move |&row| wanted(id, &table.key(row))).map(move |row| (id, row))
        });
        rows.collect()
    }

    /// Whether anybody holds, or waits for, the lock of a row with such a key, or of any range.
    pub fn busy(&self, wanted: impl Fn(TableId, &Key) -> bool) -> bool {
        if self.locks() == 0 {
            return false;
        }
        let ranges = self.tables.iter().any(|table| !table.ranges.is_empty());
        let locked = |(table, row): (TableId, RowId)| {
            let groups = 0..self.tables[table.index()].groups as u8;
            groups.into_iter().any(|group| self.record(At { row, column: table.group(group) }).is_locked())
        };
        ranges || self.rows_with(&wanted).into_iter().any(locked)
    }

    /// How many rows a table has had at the same time at most. Their numbers are below.
    pub fn row_numbers(&self, table: TableId) -> RowId {
        self.tables[table.index()].rows() as RowId
    }

    /// The newest versions of the row with a number; `None` if it is not linked or has none.
    pub fn newest_of(&self, table: TableId, row: RowId) -> Option<MovedRow> {
        let of_table = &self.tables[table.index()];
        if !of_table.is_linked(row) {
            return None;
        }
        let newest = |group| {
            let record = self.record(At { row, column: table.group(group) });
            let version = || (record.stamp, record.value(&self.values).map(<[u8]>::to_vec));
            MovedRecord {
                versions: if record.is_empty() { Vec::new() } else { vec![version()] },
                gaps: Vec::new(),
                trimmed: record.is_trimmed() || record.older != 0,
            }
        };
        let records: Vec<_> = (0..of_table.groups as u8).map(newest).collect();
        let empty = records.iter().all(|record| record.versions.is_empty());
        (!empty).then(|| MovedRow { table, key: of_table.key(row), records })
    }

    /// Sets the records of a row to what [`Store::newest_of`] has given. The row may be there, with
    /// one version of each record.
    pub fn replace_row(&mut self, row: &MovedRow) {
        let found = self.find(row.table.row(), &row.key).row();
        let number = found.or_else(|| self.link(row.table, &row.key).row()).expect("a linked row exists");
        for (group, record) in (0..).zip(&row.records) {
            let at = At { row: number, column: row.table.group(group) };
            for (stamp, value) in &record.versions {
                self.replace(at, *stamp, value.as_deref());
            }
            if record.trimmed {
                self.record_mut(at).set_trimmed();
            }
        }
    }

    /// An upper bound of all marks.
    pub fn marked(&self) -> Timestamp {
        let mut marked = self.least;
        for table in &self.tables {
            let records = 0..table.records.len();
            records.for_each(|record| marked.raise(table.records[record].mark.get()));
            marked.raise(table.cover_marks());
        }
        marked
    }

    /// Takes all rows with such keys out; nobody has a lock on any of them. Whatever is put under
    /// their row numbers later gets a larger stamp than what was read there.
    pub fn take_out(&mut self, wanted: impl Fn(TableId, &Key) -> bool) -> Vec<MovedRow> {
        let rows = self.rows_with(&wanted);
        self.tables.iter_mut().for_each(|table| table.change_covers());
        let rows: Vec<MovedRow> =
            rows.into_iter().filter_map(|(table, row)| self.take_row(table, row)).collect();
        let versions = rows.iter().flat_map(|row| &row.records).flat_map(|record| &record.versions);
        self.least.raise(versions.map(|(stamp, _)| *stamp).max().unwrap_or_default());
        rows
    }

    /// Unlinks a row; one that has no versions moves nowhere.
    fn take_row(&mut self, table: TableId, row: RowId) -> Option<MovedRow> {
        let groups = 0..self.tables[table.index()].groups as u8;
        let records: Vec<MovedRecord> =
            groups.map(|group| self.take_versions(At { row, column: table.group(group) })).collect();
        let key = self.key(table, row);
        self.tables[table.index()].unlink(row);
        let empty = records.iter().all(|record| record.versions.is_empty());
        (!empty).then_some(MovedRow { table, key, records })
    }

    /// Empties a record.
    fn take_versions(&mut self, at: At) -> MovedRecord {
        let record = *self.record(at);
        assert!(!record.is_locked(), "what is locked does not move");
        let (mut versions, mut gaps) = (Vec::new(), Vec::new());
        if !record.is_empty() {
            versions.push((record.stamp, record.value(&self.values).map(<[u8]>::to_vec)));
        }
        let table = &mut self.tables[at.column.table.index()];
        table.value_bytes -= record.footprint();
        record.drop_newest(&mut self.values);
        let mut next = record.older;
        while next != 0 {
            let version = self.versions.take(next - 1);
            versions.push((version.stamp, version.value(&self.values).map(<[u8]>::to_vec)));
            gaps.extend(version.is_gone().then_some(version.stamp));
            table.value_bytes -= version.footprint();
            version.free(&mut self.values);
            next = version.older;
        }
        versions.reverse();
        MovedRecord { versions, gaps, trimmed: record.is_trimmed() }
    }

    /// Puts in what another store's [`Store::take_out`] has given, with that store's
    /// [`Store::floor`] and [`Store::marked`]. A row that follows itself is a row in
    /// [`MovedRow::pieces`].
    pub fn put_in<'a>(
        &mut self,
        rows: impl IntoIterator<Item = &'a MovedRow>,
        floor: Timestamp,
        marked: Timestamp,
    ) {
        self.raise_floor(floor);
        if !planted(Mutant::MarksLeftBehind) {
            self.least.raise(marked);
        }
        self.tables.iter_mut().for_each(|table| table.change_covers());
        let mut last: Option<(&MovedRow, RowId)> = None;
        for row in rows {
            let table = row.table;
            let number = match last {
                Some((last, number)) if last.table == table && last.key == row.key => number,
                _ => {
                    assert!(self.find(table.row(), &row.key).row().is_none(), "a row is on one shard");
                    self.tables[table.index()].link_unused(&row.key)
                }
            };
            last = Some((row, number));
            for (group, record) in (0..).zip(&row.records) {
                let at = At { row: number, column: table.group(group) };
                for (stamp, value) in &record.versions {
                    self.install(at, *stamp, value.as_deref());
                    if value.is_none() && record.gaps.contains(stamp) {
                        self.record_mut(at).set_gone();
                    }
                }
                if record.trimmed {
                    self.record_mut(at).set_trimmed();
                }
            }
        }
    }
}

impl<M: Mark> crate::table::Table<M> {
    /// An upper bound of the marks of all leaves or cells.
    fn cover_marks(&self) -> Timestamp {
        match &self.index {
            Index::Hash(_) => self.cell_marks(),
            Index::Ordered(index) => index.marks(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use plimsoll_types::{IndexKind, Partitioning, ShardId, TableSpec, TxnId};

    use super::*;
    use crate::Holder;

    fn store() -> Store<Timestamp> {
        let mut store = Store::new(true);
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let spec = TableSpec::new("t", index, Partitioning::Hash { bytes: 0 });
            store.create_table(TableSpec { groups: vec!["a".to_owned(), "b".to_owned()], ..spec });
        }
        store
    }

    fn at(store: &mut Store<Timestamp>, table: u16, key: u64, group: u8) -> At {
        let (table, key) = (TableId(table), Key::of_u64(key));
        let row = store.find(table.row(), &key).row().or_else(|| store.link(table, &key).row());
        At { row: row.expect("it was linked"), column: table.group(group) }
    }

    fn seen(store: &mut Store<Timestamp>, table: u16, key: u64, s: u64) -> Option<Vec<u8>> {
        let row = store.find(TableId(table).row(), &Key::of_u64(key)).row()?;
        let at = At { row, column: TableId(table).group(0) };
        let seen = store.visible(at, |stamp| stamp.0 <= s).expect("it is not too old");
        seen.map(|(_, value)| value.to_vec())
    }

    fn even(_: TableId, key: &Key) -> bool {
        key.leading_int(8).is_multiple_of(2)
    }

    #[test]
    fn rows_move_with_their_versions_and_above_all_marks() {
        let (mut from, mut to) = (store(), store());
        for table in 0..2 {
            for key in 0..100 {
                for (stamp, value) in
                    [(10 + key, Some(&b"old"[..])), (200 + key, None), (400 + key, Some(b"new"))]
                {
                    let at = at(&mut from, table, key, 0);
                    from.install(at, Timestamp(stamp), value);
                }
            }
            let ghost = Key::of_u64(1000 + 2 * u64::from(table));
            from.link(TableId(table), &ghost);
        }
        let absent = from.find(TableId(1).row(), &Key::of_u64(5000)).cover();
        from.cover_mark_mut(TableId(1), absent).raise(Timestamp(777));
        let covers: Vec<u64> = (0..2)
            .map(|table| {
                let cover = from.find(TableId(table).row(), &Key::of_u64(4)).cover();
                from.cover_version(TableId(table), cover)
            })
            .collect();
        let read = at(&mut from, 0, 4, 0);
        let marked = from.marked();
        assert_eq!(marked, Timestamp(777));

        let rows = from.take_out(even);
        assert_eq!(rows.len(), 100, "50 of each table; ghosts stay behind");
        for table in 0..2u16 {
            assert_eq!((0..100).filter(|&key| seen(&mut from, table, key, 1000).is_some()).count(), 50);
            let cover = from.find(TableId(table).row(), &Key::of_u64(4)).cover();
            assert_ne!(from.cover_version(TableId(table), cover), covers[usize::from(table)]);
        }
        assert_eq!(from.record(read).stamp(), Timestamp::MAX, "whoever has read it finds it gone");
        to.put_in(&rows, from.floor(), marked);
        for (s, expected) in
            [(9, None), (150, Some(b"old".to_vec())), (350, None), (600, Some(b"new".to_vec()))]
        {
            assert_eq!(seen(&mut to, 0, 4, s), expected, "@{s}");
            assert_eq!(seen(&mut to, 1, 98, s), if s == 9 { None } else { expected }, "@{s}");
        }
        let absent = to.find(TableId(0).row(), &Key::of_u64(4242));
        assert_eq!(to.bound(None, TableId(0), absent.cover()), Timestamp(777));
        assert_eq!(to.floor(), Timestamp::ZERO, "no snapshot is too old because of marks");

        // Row numbers are used up, memory is not.
        let bytes = |store: &Store<Timestamp>| store.tables[0].value_bytes;
        let half = bytes(&from);
        let back = to.take_out(even);
        assert_eq!(back, rows, "they come back as they went");
        let pieces: Vec<MovedRow> = back.into_iter().flat_map(|row| row.pieces(1)).collect();
        from.put_in(&pieces, to.floor(), to.marked());
        assert_eq!(seen(&mut from, 0, 4, 150), Some(b"old".to_vec()));
        assert_ne!(at(&mut from, 0, 4, 0).row, read.row, "a row number that nobody has seen");
        from.take_out(even);
        assert_eq!(bytes(&from), half);
    }

    #[test]
    fn what_is_locked_is_busy() {
        let mut store = store();
        let odd = at(&mut store, 0, 1, 1);
        store.lock_mut(odd);
        assert!(!store.busy(even));
        assert!(store.busy(|_, _| true));
        let txn = TxnId { coordinator: ShardId(0), number: 1 };
        assert!(store.lock_range(TableId(1), Holder { age: 1, txn }, Key::MIN, None));
        assert!(store.busy(even), "a range may be anywhere");
        assert!(store.unlock_ranges(TableId(1), txn).is_some());
        assert!(!store.busy(even));
    }

    #[test]
    fn scans_see_the_changed_version_as_well() {
        let mut store = store();
        at(&mut store, 1, 7, 0);
        let mut versions = || {
            let mut versions = Vec::new();
            store.scan(TableId(1), &Key::MIN, None, |_, visited| {
                if let crate::Visited::Leaf(leaf, _, version) = visited {
                    versions.push((leaf, version));
                }
                ControlFlow::Continue(())
            });
            let (leaf, version) = versions[0];
            assert_eq!(store.cover_version(TableId(1), leaf), version);
            store.take_out(|_, _| false);
            version
        };
        assert_ne!(versions(), versions());
    }
}
