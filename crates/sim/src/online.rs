//! What DST promises of timestamps, watched while a world runs (`docs/protocols/dst.md`).
//!
//! The judge finds out in the end whether a history is serializable; this sees the very install
//! that breaks a promise, and knows nothing of graphs. Every version that is installed and every
//! transaction that commits is held against what is known at that moment:
//!
//! * *Dependency order* (I2). Who reads a version is above it, below the next one, and the versions
//!   of a record have increasing stamps. A transaction that writes is strictly so; one that reads
//!   at a snapshot sees its own timestamp.
//! * *Frozen prefix* (I3). Once a transaction at s has read a record, a range or an absence, nobody
//!   installs a version there at s or below. Rows that move to another shard meanwhile stay as
//!   frozen as they were (I5).
//! * *One timestamp* (I4). A transaction installs the same stamp everywhere, and it is the one that
//!   its client was told.
//!
//! Copies of a table are one table here: a transaction installs one version on all of them.
//!
//! Example: a snapshot at @9 reads `x` = 1, written at @5, and commits. From now on `x` is frozen
//! at @9. T, whose coordinator has not asked for the mark, installs `x` at @7: "T1.4 installs
//! account 00000001 at @7, and T2.1 has read it at @9 (I3)".

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use plimsoll_types::history::{Install, ScanRead, Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, TableSpec, Timestamp, TxnId};

use crate::judge;

/// Violations that are kept.
const KEPT: usize = 3;

/// All that is known of timestamps so far.
pub(crate) struct Online {
    columns: BTreeMap<ColumnGroup, Column>,
    /// What each transaction has installed, or was told.
    stamps: BTreeMap<TxnId, Timestamp>,
    tables: Arc<[TableSpec]>,
    violations: Vec<String>,
}

#[derive(Default)]
struct Column {
    records: BTreeMap<Key, Record>,
    /// Those that were scanned.
    ranges: Vec<Range>,
}

#[derive(Default)]
struct Record {
    /// In the order of their stamps.
    versions: Vec<Written>,
    frozen: ReadMarks,
}

struct Written {
    stamp: Timestamp,
    txn: TxnId,
    delete: bool,
}

/// The highest timestamps at which something was read.
#[derive(Default)]
struct ReadMarks {
    /// By a transaction at a snapshot, which sees what has its timestamp.
    snapshot: Option<(Timestamp, TxnId)>,
    /// By one that comes before what has its timestamp.
    writer: Option<(Timestamp, TxnId)>,
}

impl ReadMarks {
    fn freeze(&mut self, reader: &Reader) {
        let place = if reader.at_snapshot { &mut self.snapshot } else { &mut self.writer };
        let new = (reader.at, reader.txn);
        if place.is_none_or(|(at, _)| at < reader.at) {
            *place = Some(new);
        }
    }

    /// Who has read what this would change.
    fn forbids(&self, txn: TxnId, stamp: Timestamp) -> Option<(TxnId, Timestamp, &'static str)> {
        let by = |frozen: Option<(Timestamp, TxnId)>, invariant| {
            let (at, reader) = frozen.filter(|&(at, reader)| stamp <= at && reader != txn)?;
            Some((reader, at, invariant))
        };
        by(self.snapshot, "I3").or_else(|| by(self.writer, "I2"))
    }
}

struct Range {
    low: Key,
    high: Option<Key>,
    frozen: ReadMarks,
}

impl Range {
    fn has(&self, key: &Key) -> bool {
        *key >= self.low && self.high.as_ref().is_none_or(|high| key < high)
    }
}

/// Who has read.
struct Reader {
    txn: TxnId,
    at: Timestamp,
    at_snapshot: bool,
}

impl Reader {
    /// The version of a record that it must have read.
    fn sees<'a>(&self, record: &'a Record) -> Option<&'a Written> {
        let visible = |written: &&Written| {
            let within = written.stamp < self.at || self.at_snapshot && written.stamp == self.at;
            within && written.txn != self.txn
        };
        record.versions.iter().rev().find(visible)
    }
}

impl Online {
    /// Nothing is known yet.
    pub(crate) fn new(tables: Arc<[TableSpec]>) -> Online {
        Online { columns: BTreeMap::new(), stamps: BTreeMap::new(), tables, violations: Vec::new() }
    }

    /// The promises that were broken, the first ones.
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    fn violated(&mut self, what: String) {
        if self.violations.len() < KEPT {
            self.violations.push(what);
        }
    }

    fn name(&self, column: ColumnGroup, key: &Key) -> String {
        format!("{} {key:?}", judge::name(&self.tables, column))
    }

    /// A shard installs a version.
    pub(crate) fn installed(&mut self, install: &Install) {
        let &Install { txn, column, ref key, stamp, delete } = install;
        let told = *self.stamps.entry(txn).or_insert(stamp);
        let Column { records, ranges } = self.columns.entry(column).or_default();
        let record = records.entry(key.clone()).or_default();
        let place = record.versions.partition_point(|written| written.stamp < stamp);
        if record.versions.get(place).is_some_and(|written| (written.stamp, written.txn) == (stamp, txn)) {
            // On another copy.
            return;
        }
        let next = record.versions.get(place).map(|next| (next.txn, next.stamp));
        record.versions.insert(place, Written { stamp, txn, delete });
        let forbidden = record.frozen.forbids(txn, stamp).or_else(|| {
            // Most ranges were read before, wherever they are.
            let mut above =
                ranges.iter().filter_map(|range| Some((range, range.frozen.forbids(txn, stamp)?)));
            above.find(|(range, _)| range.has(key)).map(|(_, forbidden)| forbidden)
        });
        if told == stamp && next.is_none() && forbidden.is_none() {
            return;
        }
        let installs = format!("{txn:?} installs {} at {stamp:?}", self.name(column, key));
        if told != stamp {
            self.violated(format!("{installs}, and has another timestamp, {told:?} (I4)"));
        }
        if let Some((other, at)) = next {
            self.violated(format!("{installs}, and {other:?} has installed it at {at:?} before (I2)"));
        }
        if let Some((reader, at, invariant)) = forbidden {
            self.violated(format!("{installs}, and {reader:?} has read it at {at:?} ({invariant})"));
        }
    }

    /// A client was told that its transaction has committed.
    pub(crate) fn recorded(&mut self, transaction: &Transaction) {
        let Some(at) = transaction.timestamp else { return };
        let reader = Reader { txn: transaction.id, at, at_snapshot: transaction.read_only };
        for read in &transaction.reads {
            self.read(&reader, read.column, &read.key, read.version);
        }
        for scan in &transaction.scans {
            self.scanned(&reader, scan);
        }
        let told = *self.stamps.entry(reader.txn).or_insert(at);
        if told != at {
            let id = reader.txn;
            self.violated(format!("{id:?} installs at {told:?}, and its client was told {at:?} (I4)"));
        }
    }

    fn read(&mut self, reader: &Reader, column: ColumnGroup, key: &Key, version: Version) {
        let record = self.columns.entry(column).or_default().records.entry(key.clone()).or_default();
        record.frozen.freeze(reader);
        let sees = reader.sees(record);
        let right = match (sees, version) {
            (None, Version::Absent) => true,
            (None, Version::At(stamp)) => stamp == Timestamp::ZERO,
            (Some(written), Version::Absent) => written.delete,
            (Some(written), Version::At(stamp)) => !written.delete && written.stamp == stamp,
        };
        if right {
            return;
        }
        let there = match sees {
            None => "there is nothing but what was loaded".to_owned(),
            Some(Written { stamp, txn, delete: true }) => format!("{txn:?} has deleted it at {stamp:?}"),
            Some(Written { stamp, txn, delete: false }) => format!("{txn:?} has written it at {stamp:?}"),
        };
        let found = match version {
            Version::Absent => "found it absent".to_owned(),
            Version::At(stamp) => format!("read what is at {stamp:?}"),
        };
        let invariant = if reader.at_snapshot { "I3" } else { "I2" };
        let (Reader { txn, at, .. }, record) = (reader, self.name(column, key));
        self.violated(format!(
            "{txn:?} at {at:?} looked at {record} and {found}, although {there} ({invariant})"
        ));
    }

    fn scanned(&mut self, reader: &Reader, scan: &ScanRead) {
        let ScanRead { column, low, high, rows } = scan;
        for (key, stamp) in rows {
            self.read(reader, *column, key, Version::At(*stamp));
        }
        if high.as_ref().is_some_and(|high| high <= low) {
            return;
        }
        let end = high.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let within = self.columns.entry(*column).or_default().records.range((Bound::Included(low), end));
        let live = |record: &Record| reader.sees(record).is_some_and(|written| !written.delete);
        let missed = within
            .filter(|(key, record)| live(record) && rows.iter().all(|(row, _)| row != *key))
            .map(|(key, _)| key.clone());
        for key in missed.collect::<Vec<_>>() {
            self.read(reader, *column, &key, Version::Absent);
        }
        let mut range = Range { low: low.clone(), high: high.clone(), frozen: ReadMarks::default() };
        range.frozen.freeze(reader);
        let ranges = &mut self.columns.entry(*column).or_default().ranges;
        match ranges.iter_mut().find(|known| known.low == range.low && known.high == range.high) {
            Some(known) => known.frozen.freeze(reader),
            None => ranges.push(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_types::history::Read;
    use plimsoll_types::{IndexKind, Partitioning, ShardId, TableId};

    use super::*;

    fn column() -> ColumnGroup {
        TableId(0).row()
    }

    fn txn(number: u64) -> TxnId {
        TxnId { coordinator: ShardId(0), number }
    }

    fn install(number: u64, key: u64, stamp: u64) -> Install {
        let key = Key::of_u64(key);
        Install { txn: txn(number), column: column(), key, stamp: Timestamp(stamp), delete: false }
    }

    fn transaction(number: u64, read_only: bool, at: u64) -> Transaction {
        Transaction {
            id: txn(number),
            label: "test",
            read_only,
            timestamp: Some(Timestamp(at)),
            session: 0,
            begin: 0,
            end: 0,
            writes: None,
            reads: Vec::new(),
            scans: Vec::new(),
        }
    }

    fn reads(number: u64, read_only: bool, at: u64, key: u64, version: Version) -> Transaction {
        let read = Read { column: column(), key: Key::of_u64(key), version };
        Transaction { reads: vec![read], ..transaction(number, read_only, at) }
    }

    fn scans(number: u64, read_only: bool, at: u64, range: [u64; 2], rows: &[(u64, u64)]) -> Transaction {
        let [low, high] = range.map(Key::of_u64);
        let rows = rows.iter().map(|&(key, stamp)| (Key::of_u64(key), Timestamp(stamp))).collect();
        let scan = ScanRead { column: column(), low, high: Some(high), rows };
        Transaction { scans: vec![scan], ..transaction(number, read_only, at) }
    }

    fn online() -> Online {
        Online::new([TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 })].into())
    }

    fn at(stamp: u64) -> Version {
        Version::At(Timestamp(stamp))
    }

    #[test]
    fn what_was_read_at_a_snapshot_is_frozen_up_to_it() {
        let mut online = online();
        online.installed(&install(1, 7, 5));
        online.recorded(&reads(2, true, 9, 7, at(5)));
        online.recorded(&scans(3, true, 9, [10, 20], &[]));
        online.installed(&install(4, 7, 10));
        online.installed(&install(5, 20, 9));
        assert_eq!(online.violations(), [""; 0], "above what was read, and beside it");
        online.installed(&install(6, 12, 9));
        online.installed(&install(7, 7, 9));
        let told = online.violations();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told[0].contains("T0.6 installs") && told[0].contains("T0.3 has read it at @9 (I3)"),
            "{told:?}"
        );
        assert!(told[1].contains("has installed it at @10 before (I2)"), "{told:?}");
        assert!(
            told[2].contains("T0.7 installs") && told[2].contains("T0.2 has read it at @9 (I3)"),
            "{told:?}"
        );
    }

    #[test]
    fn a_writer_is_strictly_between_what_it_read_and_the_next_version() {
        let mut online = online();
        online.installed(&install(1, 7, 5));
        online.recorded(&reads(2, false, 9, 7, at(5)));
        online.installed(&install(2, 7, 9));
        assert_eq!(online.violations(), [""; 0], "its own write is not in its way");
        online.recorded(&reads(3, false, 9, 7, at(9)));
        online.recorded(&reads(4, true, 9, 7, at(9)));
        let told = online.violations();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("T0.3 at @9 looked at t ") && told[0].contains("written it at @5 (I2)"),
            "{told:?}"
        );
        online.installed(&install(5, 8, 4));
        online.recorded(&reads(6, false, 3, 8, Version::Absent));
        online.installed(&install(7, 8, 3));
        assert!(online.violations()[2].contains("T0.6 has read it at @3 (I2)"), "{:?}", online.violations());
    }

    #[test]
    fn whoever_scans_sees_all_that_is_visible_and_nothing_else() {
        let mut online = online();
        online.installed(&install(1, 7, 5));
        online.installed(&install(2, 8, 6));
        online.installed(&Install { delete: true, ..install(3, 8, 8) });
        online.recorded(&scans(4, true, 7, [0, 20], &[(7, 5), (8, 6), (9, 0)]));
        online.recorded(&scans(5, true, 8, [0, 20], &[(7, 5)]));
        assert_eq!(online.violations(), [""; 0]);
        online.recorded(&scans(6, true, 8, [0, 20], &[(8, 6)]));
        let told = online.violations();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("T0.3 has deleted it at @8 (I3)"), "{told:?}");
        assert!(told[1].contains("found it absent, although T0.1 has written it at @5 (I3)"), "{told:?}");
    }

    #[test]
    fn a_transaction_has_one_timestamp_on_all_shards_and_copies() {
        let mut online = online();
        online.installed(&install(1, 7, 5));
        online.installed(&install(1, 7, 5));
        online.recorded(&reads(1, false, 5, 7, at(0)));
        assert_eq!(online.violations(), [""; 0]);
        online.installed(&install(1, 8, 6));
        online.installed(&install(2, 9, 6));
        online.recorded(&reads(2, false, 7, 10, Version::Absent));
        let told = online.violations();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("at @6, and has another timestamp, @5 (I4)"), "{told:?}");
        assert!(told[1].contains("installs at @6, and its client was told @7 (I4)"), "{told:?}");
    }
}
