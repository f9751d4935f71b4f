//! Lists tell the order of everything that was appended to them, so what clients were told of them
//! is a history like those that shards record, and the same checker judges it.
//!
//! A *version* of a list is what a transaction has left of it: the list up to its last number. The
//! versions of a list are those that the last look shows, in its order. What a transaction was told
//! of a list has to be one of them, and then it has read that version.

use std::collections::BTreeMap;

use plimsoll_checker::Options;
use plimsoll_types::history::{History, Install, Read, Transaction, Version};
use plimsoll_types::{ColumnGroup, Key, ShardId, TableId, Timestamp, TxnId};

use super::deed::{Deed, Effect};
use crate::workload::append::End;

/// The lists as they are in the end.
pub(super) type Lists = BTreeMap<u64, Vec<u64>>;

/// What is wrong with what was told of lists. `sessions` says whether each session has to see what
/// it has seen before.
pub(super) fn judge(deeds: &[Deed], lists: &Lists, sessions: bool) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let writers = writers(deeds);
    let mut installs = Vec::new();
    // By list: after how many numbers each version ends.
    let mut ends: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (&list, numbers) in lists {
        let ends = ends.entry(list).or_default();
        let mut last = None;
        for (place, number) in numbers.iter().enumerate() {
            let Some(&writer) = writers.get(&(list, *number)) else {
                wrong.push((
                    "lost or resurrected write",
                    format!("{number} is in list {list}, and none appended it"),
                ));
                continue;
            };
            if deeds[writer].how == End::Aborted {
                let why = format!("{number} is in list {list}, and what appended it has failed");
                wrong.push(("lost or resurrected write", why));
            }
            if last != Some(writer) {
                ends.push(place);
                installs.push(install(writer, list, place));
            }
            last = Some(writer);
            *ends.last_mut().expect("a version has begun") = place + 1;
            installs.last_mut().expect("likewise").stamp = Timestamp(place as u64 + 1);
        }
    }
    let mut transactions = Vec::new();
    for (number, deed) in deeds.iter().enumerate() {
        wrong.extend(missing(deed, lists).into_iter().map(|why| ("lost or resurrected write", why)));
        let is_there = installs.iter().any(|install| install.txn == id(number));
        if deed.how == End::Committed || deed.how == End::Unknown && is_there {
            let mut reads = Vec::new();
            for effect in &deed.effects {
                let Effect::Read(list, told) = effect else { continue };
                let none = Vec::new();
                let (all, ends) = (lists.get(list).unwrap_or(&none), ends.get(list));
                let is_version = told.is_empty() || ends.is_some_and(|ends| ends.contains(&told.len()));
                if !all.starts_with(told) || !is_version {
                    let why =
                        format!("session {} was told that list {list} is {told:?}: {all:?}", deed.session);
                    wrong.push(("no version of a list", why));
                }
                let version = Version::At(Timestamp(told.len() as u64));
                reads.push(Read { column: COLUMN, key: Key::of_u64(*list), version });
            }
            transactions.push(transaction(number, deed, reads));
        }
    }
    let mut found: Vec<(String, String)> =
        wrong.into_iter().map(|(kind, why)| (kind.to_owned(), why)).collect();
    if found.is_empty() {
        found.extend(checked(transactions, installs, sessions));
    }
    found
}

/// The lists' place in the history.
const COLUMN: ColumnGroup = TableId(0).row();

/// Has the checker look: at all transactions, and whether those that write are strict.
fn checked(transactions: Vec<Transaction>, installs: Vec<Install>, sessions: bool) -> Vec<(String, String)> {
    let mut history = History { transactions, installs: vec![installs] };
    let mut found = check(&history, Options { sessions, ..Options::default() });
    history.transactions.retain(|transaction| !transaction.read_only);
    found.extend(check(&history, Options { realtime: true, sessions: true, ..Options::default() }));
    found
}

fn check(history: &History, options: Options) -> Vec<(String, String)> {
    let report = plimsoll_checker::check(history, options, &|_| "list".to_owned());
    let told = report.violations.into_iter();
    told.map(|violation| (violation.kind.to_owned(), violation.detail)).collect()
}

fn id(number: usize) -> TxnId {
    TxnId { number: number as u64 + 1, coordinator: ShardId(0) }
}

fn install(writer: usize, list: u64, place: usize) -> Install {
    let (column, key, stamp) = (COLUMN, Key::of_u64(list), Timestamp(place as u64 + 1));
    Install { txn: id(writer), column, key, stamp, delete: false }
}

fn transaction(number: usize, deed: &Deed, reads: Vec<Read>) -> Transaction {
    let is_known = deed.how == End::Committed;
    Transaction {
        id: id(number),
        label: if is_known { "deed" } else { "in doubt" },
        read_only: !deed.writes(),
        timestamp: None,
        // What a session does next does not wait for what was never answered.
        session: if is_known { deed.session } else { u32::MAX / 2 + number as u32 },
        begin: deed.begin,
        end: if is_known { deed.end } else { u64::MAX },
        writes: None,
        reads,
        scans: Vec::new(),
    }
}

/// Who appended what.
fn writers(deeds: &[Deed]) -> BTreeMap<(u64, u64), usize> {
    let mut writers = BTreeMap::new();
    for (number, deed) in deeds.iter().enumerate() {
        for effect in &deed.effects {
            if let Effect::Append(list, appended) = *effect {
                writers.insert((list, appended), number);
            }
        }
    }
    writers
}

/// What a transaction has appended that is not there, or is there twice.
fn missing(deed: &Deed, lists: &Lists) -> Vec<String> {
    let mut wrong = Vec::new();
    for effect in &deed.effects {
        let Effect::Append(list, number) = effect else { continue };
        let times = lists.get(list).map_or(0, |numbers| numbers.iter().filter(|it| *it == number).count());
        match times {
            0 if deed.how == End::Committed => {
                wrong
                    .push(format!("{number} was appended to list {list} and acknowledged, and is not there"));
            }
            0 | 1 => {}
            _ => wrong.push(format!("{number} stands {times} times in list {list}")),
        }
    }
    wrong
}
