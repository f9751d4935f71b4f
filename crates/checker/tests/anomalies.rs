//! One script per anomaly, with its verdict in the same file.
//!
//! A script in `tests/histories` tells a history and, after a line `--`, the report that the
//! checker has to print. Its lines:
//!
//! ```text
//! # Prose.
//! check scalar realtime sessions complete      which promises to check; none: serializability
//! T1.7 rw payment @9 [10 20] session 3         attempt 7 of shard 1, an RW (or ro), its timestamp, when it
//!                                              began and ended, its session (optional)
//!   read account 01 @5                         what it read; or `absent`
//!   scan account [01 09) 02@5 03@0             a scan and the rows it saw; `end` for no upper bound
//!   write account 01                           what it installed, stamped with its timestamp,
//!   delete account 02 @7                       or with another one
//!   writes 3                                   what its coordinator says it installed, if that is not so
//! order account 01: T2.1 T1.7                  the order of a record's installs, if not that of the file
//! install T9.1 account 01 @5                   an install by a transaction that is not among the committed
//! shard 1                                      installs from here on are on this shard
//! ```
//!
//! With `UPDATE_SCRIPTS=1` in the environment the reports are rewritten instead; read the
//! difference.

use std::path::Path;

use plimsoll_checker::{Options, check};
use plimsoll_types::history::{History, Install, Read, ScanRead, Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, ShardId, TableId, Timestamp, TxnId};

macro_rules! scripts {
    ($($test:ident: $file:literal,)*) => {
        $(#[test] fn $test() { run($file); })*
        const FILES: &[&str] = &[$($file),*];
    };
}

scripts! {
    a_read_of_a_version_nobody_committed_is_a_dirty_read: "dirty_read",
    a_read_of_an_aborted_transactions_version_is_a_dirty_read: "aborted_read",
    writes_installed_in_different_orders_are_a_write_cycle: "dirty_write",
    two_that_read_each_others_writes_are_a_circular_flow: "circular_flow",
    an_update_between_read_and_write_is_lost: "lost_update",
    an_insert_between_absent_read_and_insert_is_lost: "lost_insert",
    two_that_overwrite_what_the_other_read_are_a_write_skew: "write_skew",
    a_half_seen_transaction_is_a_fractured_read: "fractured_read",
    a_dependency_seen_without_its_cause_is_a_read_skew: "read_skew",
    an_insert_into_a_scanned_range_is_a_phantom: "phantom",
    two_inserts_into_scanned_ranges_are_a_phantom_write_skew: "phantom_write_skew",
    two_readers_that_disagree_on_the_order_are_a_long_fork: "long_fork",
    a_write_skew_does_not_hide_a_long_fork: "hidden_long_fork",
    a_reader_can_break_what_is_serializable_without_it: "read_only_anomaly",
    the_cycle_with_fewest_anti_dependencies_is_told: "strongest_evidence",
    an_absent_read_comes_before_the_insert: "absent_read",
    an_absence_between_two_inserts_is_ambiguous: "reinsert_ambiguous",
    an_absence_that_fits_nowhere_may_go_unseen: "reinsert_unseen",
    an_absence_that_was_over_is_not_read_if_real_time_counts: "reinsert_strict",
    an_absence_that_overlaps_may_be_read_although_real_time_counts: "reinsert_overlap",
    what_one_has_yet_to_write_is_not_what_one_saw: "own_version",
    what_one_has_yet_to_write_is_not_what_one_saw_by_timestamp: "own_version_scalar",
    ones_own_tombstone_is_not_what_one_saw: "own_tombstone",
    ones_own_tombstone_is_not_what_one_saw_by_timestamp: "own_tombstone_scalar",
    an_absence_between_two_inserts_is_dated_by_a_timestamp: "reinsert_scalar",
    an_absence_is_not_that_of_a_later_delete: "reinsert_clock",
    a_reader_behind_its_timestamp_is_stale: "stale_reader",
    a_scan_that_misses_a_row_is_reported: "missed_row",
    a_loaded_row_cannot_be_absent: "lost_row",
    a_tombstone_is_no_row: "tombstone_read",
    a_reader_that_began_after_the_answer_sees_the_write: "realtime",
    without_timestamps_time_is_part_of_the_graph: "realtime_graph",
    a_session_reads_its_writes_and_never_backwards: "sessions",
    without_timestamps_a_session_is_part_of_the_graph: "sessions_graph",
    stamps_of_a_record_increase: "i1",
    stamps_of_a_transaction_are_its_timestamp: "i4",
    dependent_transactions_of_one_timestamp_are_reported: "equal_dependent",
    independent_transactions_of_one_timestamp_pass: "equal_independent",
    a_snapshot_includes_its_own_timestamp: "snapshot_inclusive",
    a_serial_history_with_deletes_and_scans_passes: "clean",
    stamps_without_an_order_pass: "clean_unordered",
    a_damaged_recording_is_told_apart: "damaged",
    what_was_in_flight_at_the_end_is_forgiven: "in_flight",
    installs_are_counted_if_the_recording_is_complete: "lost_install",
}

#[test]
fn every_script_is_run() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(FILES.contains(&name.as_str()), "no test runs {name}");
    }
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

fn run(name: &str) {
    let path = folder().join(name).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (script, expected) = text.split_once("--\n").expect("a line `--` ends the history");
    let parsed = Script::parse(script);
    let names = |column: ColumnGroup| parsed.tables[column.table.index()].clone();
    let report = check(&parsed.history, parsed.options, &names).to_string();
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, format!("{script}--\n{report}\n")).unwrap();
    } else {
        assert_eq!(report, expected.trim_end(), "{name}");
    }
}

#[derive(Default)]
struct Script {
    history: History,
    options: Options,
    tables: Vec<String>,
    shard: usize,
}

impl Script {
    fn parse(text: &str) -> Script {
        let mut script = Script::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["check", promises @ ..] => promises.iter().for_each(|promise| match *promise {
                    "scalar" => script.options.scalar = true,
                    "realtime" => script.options.realtime = true,
                    "sessions" => script.options.sessions = true,
                    "complete" => script.options.complete = true,
                    other => panic!("no promise is called {other}"),
                }),
                ["shard", shard] => script.shard = shard.parse().unwrap(),
                ["order", table, key, writers @ ..] => script.reorder(table, key, writers),
                ["install", id, table, key, at] => {
                    script.install(txn_id(id), table, key, stamp(at), false);
                }
                [id, kind @ ("rw" | "ro"), label, rest @ ..] => script.transaction(id, kind, label, rest),
                [verb, rest @ ..] => script.step(verb, rest),
            }
        }
        script
    }

    fn transaction(&mut self, id: &str, kind: &str, label: &str, rest: &[&str]) {
        let mut txn = Transaction {
            id: txn_id(id),
            label: String::from(label).leak(),
            read_only: kind == "ro",
            timestamp: None,
            session: 1000 + self.history.transactions.len() as u32,
            begin: 0,
            end: 1000,
            writes: Some(0),
            reads: vec![],
            scans: vec![],
        };
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            match word.chars().next().unwrap() {
                '@' => txn.timestamp = Some(stamp(word)),
                '[' => {
                    txn.begin = word[1..].parse().unwrap();
                    txn.end = rest.next().unwrap().trim_end_matches(']').parse().unwrap();
                }
                _ => {
                    assert_eq!(*word, "session");
                    txn.session = rest.next().unwrap().parse().unwrap();
                }
            }
        }
        self.history.transactions.push(txn);
    }

    fn step(&mut self, verb: &str, rest: &[&str]) {
        let column = |script: &mut Script| script.table(rest[0]);
        match (verb, rest) {
            ("read", [_, key, version]) => {
                let version = match *version {
                    "absent" => Version::Absent,
                    at => Version::At(stamp(at)),
                };
                let read = Read { column: column(self), key: key_of(key), version };
                self.last().reads.push(read);
            }
            ("scan", [_, low, high, rows @ ..]) => {
                let high = high.trim_end_matches(')');
                let scan = ScanRead {
                    column: column(self),
                    low: key_of(low.trim_start_matches('[')),
                    high: (high != "end").then(|| key_of(high)),
                    rows: rows
                        .iter()
                        .map(|row| {
                            let (key, at) = row.split_once('@').unwrap();
                            (key_of(key), Timestamp(at.parse().unwrap()))
                        })
                        .collect(),
                };
                self.last().scans.push(scan);
            }
            ("write" | "delete", [table, key, at @ ..]) => {
                let at =
                    at.first().map(|at| stamp(at)).or(self.last().timestamp).expect("a write has a stamp");
                *self.last().writes.as_mut().unwrap() += 1;
                let id = self.last().id;
                self.install(id, table, key, at, verb == "delete");
            }
            ("writes", [count]) => self.last().writes = Some(count.parse().unwrap()),
            _ => panic!("no step is called {verb} {rest:?}"),
        }
    }

    fn install(&mut self, txn: TxnId, table: &str, key: &str, stamp: Timestamp, delete: bool) {
        let install = Install { txn, column: self.table(table), key: key_of(key), stamp, delete };
        self.history.installs.resize(self.history.installs.len().max(self.shard + 1), vec![]);
        self.history.installs[self.shard].push(install);
    }

    fn reorder(&mut self, table: &str, key: &str, writers: &[&str]) {
        let (column, key) = (self.table(table), key_of(key.trim_end_matches(':')));
        let writers: Vec<TxnId> = writers.iter().map(|id| txn_id(id)).collect();
        let installs = &mut self.history.installs[self.shard];
        let of_record = |install: &Install| install.column == column && install.key == key;
        let mut sorted: Vec<Install> = installs.iter().filter(|i| of_record(i)).cloned().collect();
        sorted.sort_by_key(|install| writers.iter().position(|id| *id == install.txn));
        let places = installs.iter_mut().filter(|install| of_record(install));
        places.zip(sorted).for_each(|(place, install)| *place = install);
    }

    fn last(&mut self) -> &mut Transaction {
        self.history.transactions.last_mut().expect("a step belongs to a transaction")
    }

    fn table(&mut self, name: &str) -> ColumnGroup {
        let at = self.tables.iter().position(|known| known == name).unwrap_or_else(|| {
            self.tables.push(name.to_owned());
            self.tables.len() - 1
        });
        TableId(at as u16).row()
    }
}

fn txn_id(text: &str) -> TxnId {
    let (shard, number) = text.trim_start_matches('T').split_once('.').expect("an id is like T1.7");
    TxnId { number: number.parse().unwrap(), coordinator: ShardId(shard.parse().unwrap()) }
}

fn stamp(text: &str) -> Timestamp {
    Timestamp(text.strip_prefix('@').expect("a stamp is like @5").parse().unwrap())
}

fn key_of(text: &str) -> Key {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    Key::new(&(0..text.len()).step_by(2).map(byte).collect::<Vec<u8>>())
}
