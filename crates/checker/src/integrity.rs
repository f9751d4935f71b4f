//! Do coordinators and shards tell the same story?
//!
//! Found here: reads of versions that nobody committed (Adya's G1a), transactions and versions that
//! exist twice, records on two shards, writes by read-only transactions, and, in a complete
//! recording, installs without a transaction and transactions without their installs. A damaged
//! recording shows up here as well, before it is mistaken for an anomaly.

use crate::index::Index;
use crate::report::Report;
use crate::words::Words;
use plimsoll_types::history::Version;

/// Compares the two sides of a history.
pub(crate) fn check(index: &Index, words: &Words, report: &mut Report) {
    check_transactions(index, words, report);
    check_installs(index, words, report);
    for txn in 0..index.history.transactions.len() as u32 {
        check_reads(index, words, report, txn);
    }
}

fn check_transactions(index: &Index, words: &Words, report: &mut Report) {
    for &txn in &index.recorded_twice {
        report.add("recorded twice", || {
            words.begin();
            format!("two committed transactions are called {}", words.txn(txn))
        });
    }
    for (number, txn) in index.history.transactions.iter().enumerate() {
        if txn.end < txn.begin {
            report.add("answered before it began", || {
                words.begin();
                let name = words.txn(number as u32);
                format!("{name} began at {} ns and was answered at {} ns", txn.begin, txn.end)
            });
        }
    }
}

fn check_installs(index: &Index, words: &Words, report: &mut Report) {
    for &(record, [first, second]) in &index.split {
        report.add("record on two shards", || {
            let record = words.record(record);
            format!("{record} was installed on shards {} and {}: its order is unknown", first.0, second.0)
        });
    }
    let mut written = vec![0u32; index.transactions() as usize];
    for record in 0..index.records() {
        let chain = index.chain(record);
        for (at, version) in chain.iter().enumerate() {
            written[version.writer as usize] += 1;
            let position = at as u32 + 1;
            let known = index.position(record, version.stamp);
            if known != Some(position) {
                report.add("one stamp for two versions", || {
                    words.begin();
                    let other = match known {
                        Some(known @ 1..) => words.txn(chain[known as usize - 1].writer),
                        _ => "the initial load".to_owned(),
                    };
                    let (record, stamp) = (words.record(record), version.stamp);
                    format!(
                        "{} and {other} both made the version {stamp:?} of {record}",
                        words.txn(version.writer)
                    )
                });
            }
            if at > 0 && chain[at - 1].writer == version.writer {
                report.add("installed twice", || {
                    words.begin();
                    let (record, stamp) = (words.record(record), chain[at - 1].stamp);
                    format!(
                        "{} installed {record} at {stamp:?} and again at {:?}",
                        words.txn(version.writer),
                        version.stamp
                    )
                });
            }
        }
    }
    for (number, &written) in written.iter().enumerate() {
        let name = || {
            words.begin();
            words.txn(number as u32)
        };
        match index.transaction(number as u32) {
            Some(txn) if txn.read_only && written > 0 => {
                report.add("write by a read-only transaction", || {
                    format!("{} installed {}", name(), versions(written))
                });
            }
            Some(txn) if index.options.complete && txn.writes.is_some_and(|writes| writes != written) => {
                report.add("lost install", || {
                    let writes = txn.writes.unwrap_or(0);
                    format!("{} wrote {writes} records, but the shards installed {written}", name())
                });
            }
            None if index.options.complete => {
                report.add("install without a commit", || {
                    format!("{} installed {}", name(), versions(written))
                });
            }
            _ => {}
        }
    }
}

fn check_reads(index: &Index, words: &Words, report: &mut Report, txn: u32) {
    for (read, record) in index.reads(txn) {
        if let Version::At(stamp) = read.version {
            check_live(index, words, report, txn, record, stamp);
        }
    }
    for (scan, rows) in index.scans(txn) {
        for ((key, stamp), &record) in scan.rows.iter().zip(rows) {
            check_live(index, words, report, txn, record, *stamp);
            if *key < scan.low || scan.high.as_ref().is_some_and(|high| key >= high) {
                report.add("row outside its range", || {
                    words.begin();
                    format!(
                        "{} scanned {} and saw {}",
                        words.txn(txn),
                        words.range(scan),
                        words.record(record)
                    )
                });
            }
        }
        let mut once = rows.to_vec();
        once.sort_unstable();
        if let Some(twice) = once.windows(2).find(|pair| pair[0] == pair[1]) {
            report.add("row seen twice by one scan", || {
                words.begin();
                format!(
                    "{} scanned {} and saw {} twice",
                    words.txn(txn),
                    words.range(scan),
                    words.record(twice[0])
                )
            });
        }
    }
}

/// `1 version`, `2 versions`.
fn versions(count: u32) -> String {
    format!("{count} version{}", if count == 1 { "" } else { "s" })
}

/// A live row was read: its version exists, was committed, and is no tombstone.
fn check_live(
    index: &Index,
    words: &Words,
    report: &mut Report,
    txn: u32,
    record: u32,
    stamp: plimsoll_types::Timestamp,
) {
    const UNKNOWN: &str = "aborted or unknown version (G1a)";
    let read = || {
        words.begin();
        format!("{} read {} at {stamp:?}", words.txn(txn), words.record(record))
    };
    match index.position(record, stamp) {
        Some(0) => {}
        None => {
            report.add(UNKNOWN, || format!("{}, a version that no committed transaction installed", read()))
        }
        Some(position) => {
            let version = index.chain(record)[position as usize - 1];
            if version.delete {
                report.add("deleted row read as live", || {
                    format!("{}, which is the tombstone of {}", read(), words.txn(version.writer))
                });
            }
            if index.options.complete && index.transaction(version.writer).is_none() {
                report.add(UNKNOWN, || format!("{}, which {} installed", read(), words.txn(version.writer)));
            }
        }
    }
}
