//! A world as text: what happened, line by line, in the order of virtual time.

use std::fmt::Write;

use plimsoll_checker::{Transaction, Version};
use plimsoll_runtime::sim::{EPOCH_NS, Event};

use crate::run::{Outcome, answered_ns};

/// The trace of a world: events, faults and transactions.
pub fn render(events: &[(u64, Event)], outcome: &Outcome) -> String {
    let mut lines: Vec<(u64, String)> =
        events.iter().filter_map(|(time_ns, event)| Some((*time_ns, line(event, outcome)?))).collect();
    for transaction in &outcome.history.transactions {
        let shard = transaction.id.coordinator.0;
        let answered = answered_ns(transaction);
        if answered.is_some() {
            let begin = transaction.begin.saturating_sub(EPOCH_NS);
            lines.push((begin, format!("shard {shard}  {:?} {} begins", transaction.id, transaction.label)));
        }
        // Of who was never answered nobody knows when it began. It stands at the end.
        lines.push((answered.unwrap_or(outcome.virtual_ns), ended(transaction, outcome)));
    }
    lines.sort_by_key(|(time_ns, _)| *time_ns);
    let mut text = String::new();
    for (time_ns, line) in lines {
        let _ = writeln!(text, "{:>12.3} ms  {line}", time_ns as f64 / 1e6);
    }
    text
}

fn line(event: &Event, outcome: &Outcome) -> Option<String> {
    let fault = |index: &u32| {
        let fault = outcome.faults.iter().find(|fault| fault.index == *index);
        fault.map_or_else(String::new, |fault| format!("{:?}", fault.fault))
    };
    Some(match event {
        Event::Pass { shard, messages, polls, .. } if messages + polls > 0 => {
            format!("shard {}  pass: {messages} messages, {polls} tasks", shard.0)
        }
        Event::Pass { .. } => return None,
        Event::Sent { from, to, sequence, messages } => {
            format!("shard {}  → {}  batch {sequence} of {messages}", from.0, to.0)
        }
        Event::Delivered { from, to, sequence, sent_ns } => {
            format!("shard {}  ← {}  batch {sequence}, sent at {:.3} ms", to.0, from.0, *sent_ns as f64 / 1e6)
        }
        Event::Transmitted { from, to, sequence, arrives_ns: [None, None] } => {
            format!("shard {}  ↛ {}  batch {sequence} is lost", from.0, to.0)
        }
        Event::Transmitted { .. } => return None,
        Event::Reset { shard, peer, .. } => format!("shard {}  channel to {} is reset", shard.0, peer.0),
        Event::Start { shard, life } => format!("shard {}  begins life {life}", shard.0),
        Event::Disk { shard, verb, file, length, fault } => {
            let name = file.map_or_else(|| "the directory".to_owned(), |file| file.to_string());
            let fault = fault.map_or_else(String::new, |fault| format!(" FAILS: {fault:?}"));
            format!("shard {}  disk: {verb:?} {name}, {length} bytes{fault}", shard.0)
        }
        Event::Crashed { shard, power, .. } => {
            format!("shard {}  crashes{}", shard.0, if *power { ", and the power fails" } else { "" })
        }
        Event::Begins { index } => format!("FAULT {index} begins: {}", fault(index)),
        Event::Ends { index } => format!("FAULT {index} ends: {}", fault(index)),
    })
}

fn ended(transaction: &Transaction, outcome: &Outcome) -> String {
    let mut text =
        format!("shard {}  {:?} {}", transaction.id.coordinator.0, transaction.id, transaction.label);
    if let Some(timestamp) = transaction.timestamp {
        let _ = write!(text, " @{:.6} ms", (timestamp.0 as f64 - EPOCH_NS as f64) / 1e6);
    }
    let table = |column: plimsoll_types::ColumnGroup| outcome.tables[column.table.index()].name.as_str();
    for read in &transaction.reads {
        let version = match read.version {
            Version::At(stamp) => format!("@{}", short(stamp.0)),
            Version::Absent => "absent".to_owned(),
        };
        let _ = write!(text, ", read {} {:?} {version}", table(read.column), read.key);
    }
    for scan in &transaction.scans {
        let _ = write!(text, ", scanned {} rows of {}", scan.rows.len(), table(scan.column));
    }
    let installs = outcome.history.installs.iter().flatten().filter(|install| install.txn == transaction.id);
    for install in installs {
        let verb = if install.delete { "deleted" } else { "wrote" };
        let stamp = short(install.stamp.0);
        let _ = write!(text, ", {verb} {} {:?} @{stamp}", table(install.column), install.key);
    }
    text
}

/// A stamp, relative to the beginning of the world if it is a time.
fn short(stamp: u64) -> String {
    match stamp.checked_sub(EPOCH_NS - EPOCH_NS / 1000) {
        Some(_) => format!("{:.6} ms", (stamp as f64 - EPOCH_NS as f64) / 1e6),
        None => stamp.to_string(),
    }
}
