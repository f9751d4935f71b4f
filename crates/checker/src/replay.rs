//! A replay in the order of timestamps: what a scalar scheme claims, taken at its word.
//!
//! The claim (protocol invariants I1 to I4): every history is equivalent to running its
//! transactions one after the other by timestamp, the RWs of a timestamp before its ROs,
//! independent RWs of one timestamp in any order. So the replay keeps the state of every record,
//! applies versions in the order of their stamps, and compares each read and each scan with what
//! the state holds at that point: for an RW the newest version below its timestamp, for an RO the
//! newest one up to and including it.
//!
//! Example: versions x@5 and x@9. An RO with snapshot @9 has to read x@9; with @8, x@5. An RW with
//! timestamp @9 has to read x@5, and since it is overwritten at its own timestamp, it is not
//! independent of that writer: also a violation.
//!
//! * **I1**: the stamps of a record's installs strictly increase in the order of its shard.
//! * **I2**, a dependency goes from a smaller to a larger timestamp, follows: ww from I1, wr and rw
//!   from every RW reading the newest version below its timestamp and nothing it read changing at
//!   it.
//! * **I4**: all versions of a transaction carry one stamp, its timestamp.
//!
//! A history that passes has no cycle, whatever `graph.rs` says; the two are independent judges of
//! the same thing. Of a record that nobody read in its initial version, only that is unknown
//! whether it was loaded; its absence before the first install is always accepted.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_types::Timestamp;

use crate::index::Index;
use crate::report::Report;
use crate::words::Words;
use plimsoll_types::history::Version;

/// Checks I1, I2 and I4.
pub(crate) fn check(index: &Index, words: &Words, report: &mut Report) {
    check_chain_order(index, words, report);
    check_uniform_stamps(index, words, report);
    let mut order: Vec<(Timestamp, bool, u32)> = Vec::new();
    for (number, txn) in index.history.transactions.iter().enumerate() {
        match txn.timestamp {
            Some(timestamp) => order.push((timestamp, txn.read_only, number as u32)),
            None => report.add("no timestamp", || {
                words.begin();
                format!("{} committed without a timestamp", words.txn(number as u32))
            }),
        }
    }
    order.sort_unstable();
    let versions = index.by_stamp();
    let mut replay = Replay::new(index, words);
    let mut applied = 0;
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        let timestamp = same[0].0;
        let below = applied + versions[applied..].partition_point(|version| version.0 < timestamp);
        let through = below + versions[below..].partition_point(|version| version.0 == timestamp);
        versions[applied..below].iter().for_each(|&(_, record, position)| replay.apply(record, position));
        let first_read_only = same.partition_point(|&(_, read_only, _)| !read_only);
        let (read_write, read_only) = same.split_at(first_read_only);
        for &(_, _, txn) in read_write {
            replay.compare(txn, report);
            if read_write.len() > 1 {
                replay.check_independent(txn, &versions[below..through], report);
            }
        }
        versions[below..through].iter().for_each(|&(_, record, position)| replay.apply(record, position));
        for &(_, _, txn) in read_only {
            replay.compare(txn, report);
        }
        applied = through;
    }
}

fn check_chain_order(index: &Index, words: &Words, report: &mut Report) {
    for record in (0..index.records()).filter(|&record| !index.increasing(record)) {
        for pair in index.chain(record).windows(2).filter(|pair| pair[0].stamp >= pair[1].stamp) {
            report.add("stamps do not increase (I1)", || {
                words.begin();
                let (first, second) = (words.txn(pair[0].writer), words.txn(pair[1].writer));
                let (record, before, after) = (words.record(record), pair[0].stamp, pair[1].stamp);
                format!(
                    "{first} installed {record} at {before:?}, and then {second} installed it at {after:?}"
                )
            });
        }
    }
}

fn check_uniform_stamps(index: &Index, words: &Words, report: &mut Report) {
    const KIND: &str = "stamps of one transaction differ (I4)";
    // The first install of each writer that was not recorded: no timestamp is known of it.
    let mut first: Vec<Option<(Timestamp, u32)>> = vec![None; index.unknown.len()];
    for record in 0..index.records() {
        for version in index.chain(record) {
            let text = |other: String| {
                words.begin();
                let (record, stamp) = (words.record(record), version.stamp);
                format!("{} installed {record} at {stamp:?}{other}", words.txn(version.writer))
            };
            match index.transaction(version.writer) {
                Some(txn) => {
                    if txn.timestamp.is_some_and(|timestamp| timestamp != version.stamp) {
                        report.add(KIND, || text(String::new()));
                    }
                }
                None => {
                    let at = version.writer as usize - index.history.transactions.len();
                    let (stamp, other) = *first[at].get_or_insert((version.stamp, record));
                    if stamp != version.stamp {
                        report.add(KIND, || text(format!(" and {} at {stamp:?}", words.record(other))));
                    }
                }
            }
        }
    }
}

/// The state of the database at one point of the replay.
struct Replay<'a, 'h> {
    index: &'a Index<'h>,
    words: &'a Words<'a, 'h>,
    /// The present position of each record.
    present: Vec<u32>,
    /// Ranks of the live rows of all scanned columns.
    live: BTreeSet<u32>,
}

impl<'a, 'h> Replay<'a, 'h> {
    fn new(index: &'a Index<'h>, words: &'a Words<'a, 'h>) -> Replay<'a, 'h> {
        let live = (0..index.ranks()).filter(|&rank| index.loaded(index.at_rank(rank))).collect();
        Replay { index, words, present: vec![0; index.records() as usize], live }
    }

    fn apply(&mut self, record: u32, position: u32) {
        self.present[record as usize] = position;
        if let Some(rank) = self.index.rank(record) {
            match self.is_live(record) {
                true => self.live.insert(rank),
                false => self.live.remove(&rank),
            };
        }
    }

    fn is_live(&self, record: u32) -> bool {
        match self.present[record as usize] {
            0 => self.index.loaded(record),
            position => !self.index.chain(record)[position as usize - 1].delete,
        }
    }

    /// Compares all that a transaction read with the present state.
    fn compare(&self, txn: u32, report: &mut Report) {
        for (read, record) in self.index.reads(txn) {
            self.compare_one(txn, record, read.version, report);
        }
        for (scan, rows) in self.index.scans(txn) {
            let mut seen: Vec<u32> = Vec::with_capacity(rows.len());
            for ((_, stamp), &record) in scan.rows.iter().zip(rows) {
                self.compare_one(txn, record, Version::At(*stamp), report);
                seen.extend(self.index.rank(record));
            }
            seen.sort_unstable();
            for rank in self.live.range(self.index.range(scan)) {
                if seen.binary_search(rank).is_err() {
                    self.compare_one(txn, self.index.at_rank(*rank), Version::Absent, report);
                }
            }
        }
    }

    fn compare_one(&self, txn: u32, record: u32, version: Version, report: &mut Report) {
        let present = self.present[record as usize];
        let same = match version {
            Version::Absent => !self.is_live(record),
            Version::At(stamp) => self.is_live(record) && self.index.position(record, stamp) == Some(present),
        };
        if same {
            return;
        }
        // A version that does not exist has been reported already.
        let kind = match version {
            Version::Absent => "live row not seen (replay)",
            Version::At(stamp) => match self.index.position(record, stamp) {
                None => return,
                Some(_) if self.stamp(record) < stamp => "read from the future (replay)",
                Some(_) => "stale read (replay)",
            },
        };
        report.add(kind, || {
            self.words.begin();
            let (name, place) = (self.words.txn(txn), self.words.record(record));
            let read = match version {
                Version::Absent => format!("{name} found no {place}"),
                Version::At(stamp) => format!("{name} read {place} at {stamp:?}"),
            };
            format!("{read}, but {}", self.describe_present(record))
        });
    }

    /// The stamp of the present version.
    fn stamp(&self, record: u32) -> Timestamp {
        match self.present[record as usize] {
            0 => Timestamp::ZERO,
            position => self.index.chain(record)[position as usize - 1].stamp,
        }
    }

    fn describe_present(&self, record: u32) -> String {
        match self.present[record as usize] {
            0 if self.index.loaded(record) => "at its timestamp the loaded row was there".to_owned(),
            0 => "at its timestamp nobody had written it".to_owned(),
            position => {
                let version = self.index.chain(record)[position as usize - 1];
                let verb = if version.delete { "deleted" } else { "written" };
                format!("at its timestamp it had been {verb} by {}", self.words.txn(version.writer))
            }
        }
    }

    /// Nothing that an RW read is changed by another one of the same timestamp. Two that write one
    /// record violate I1.
    fn check_independent(&self, txn: u32, changed: &[(Timestamp, u32, u32)], report: &mut Report) {
        let writers = changed
            .iter()
            .map(|&(_, record, position)| (record, self.index.chain(record)[position as usize - 1].writer));
        let others: BTreeMap<u32, u32> = writers.filter(|&(_, writer)| writer != txn).collect();
        if others.is_empty() {
            return;
        }
        let mut depends = |record: u32| {
            if let Some(&writer) = others.get(&record) {
                report.add("dependent transactions of one timestamp (I2)", || {
                    self.words.begin();
                    let (reader, writer) = (self.words.txn(txn), self.words.txn(writer));
                    format!(
                        "{reader} read the version of {} that {writer} replaced",
                        self.words.record(record)
                    )
                });
            }
        };
        self.index.reads(txn).for_each(|(_, record)| depends(record));
        for (scan, _) in self.index.scans(txn) {
            let range = self.index.range(scan);
            for &record in others.keys() {
                if self.index.rank(record).is_some_and(|rank| range.contains(&rank)) {
                    depends(record);
                }
            }
        }
    }
}
