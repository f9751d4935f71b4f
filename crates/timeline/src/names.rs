//! Records, stamps and faults as people call them.
//!
//! A key is bytes, and only its table knows what they mean; the lengths that occur in the
//! simulator's tables tell enough. `account 1/3` is the third account of partition 1, `order
//! 2/7/31` an order of a district of a warehouse.

use plimsoll_runtime::sim::{Fault, Link};
use plimsoll_types::{ColumnGroup, Key, TableSpec};

use super::model::Stamp;

/// Whether the stamps of a scheme are times.
pub(super) fn are_times(scheme: &str) -> bool {
    matches!(scheme, "dst" | "rc")
}

/// A stamp of a scheme; a time is that of the virtual world.
pub(super) fn stamp(stamp: Option<Stamp>, scheme: &str) -> String {
    match stamp {
        None | Some(Stamp::Beginning) => "0 (initial)".to_owned(),
        Some(Stamp::Never(_)) => "∞".to_owned(),
        Some(Stamp::At(time)) if are_times(scheme) => format!("{:.6} ms", time as f64 / 1e6),
        Some(Stamp::At(number)) if scheme == "vts" => {
            format!("{}:{}", number >> 48, number & ((1 << 48) - 1))
        }
        Some(Stamp::At(number)) => number.to_string(),
    }
}

/// A table, with its group of columns if it has several.
pub(super) fn table(tables: &[TableSpec], column: ColumnGroup) -> String {
    match tables.get(column.table.index()) {
        Some(spec) if spec.groups.len() > 1 => {
            format!("{}.{}", spec.name, spec.groups[usize::from(column.group)])
        }
        Some(spec) => spec.name.clone(),
        // A world that panicked leaves no tables behind.
        None => format!("table {}", column.table.0),
    }
}

/// A key as people write it: numbers, as far as its length tells.
pub(super) fn short(key: &Key) -> String {
    let bytes = key.to_bytes();
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    match bytes.len() {
        8 if bytes[..4] == [0; 4] => number(&bytes).to_string(),
        9 if bytes[1..5] == [0; 4] => format!("{}/{}", bytes[0], number(&bytes[1..])),
        // A warehouse, a district, and what is in it.
        5 | 9 | 10 | 13 => {
            let parts = [&bytes[..4], &bytes[4..5]].into_iter().chain(bytes[5..].chunks(4));
            parts.map(|bytes| number(bytes).to_string()).collect::<Vec<_>>().join("/")
        }
        length if length > 0 && length % 4 == 0 => {
            let numbers: Vec<String> = bytes.chunks(4).map(|bytes| number(bytes).to_string()).collect();
            numbers.join("/")
        }
        _ => format!("{key:?}"),
    }
}

/// In words, how long a link or a disk takes that a fault slows down by a factor. A factor that was
/// drawn may be one.
fn slowed(factor: u64) -> String {
    match factor {
        1 => "as long as before".to_owned(),
        factor => format!("{factor} times as long"),
    }
}

/// A fault: its kind, in words, the machines concerned, and whether it lasts.
pub fn in_words(fault: &Fault) -> (&'static str, String, Vec<usize>, bool) {
    let both = |link: &Link| vec![link.from, link.to];
    match fault {
        Fault::Partition(links) => {
            let cut: Vec<String> = links.iter().map(|link| format!("{} → {}", link.from, link.to)).collect();
            let mut machines: Vec<usize> = links.iter().flat_map(both).collect();
            machines.sort_unstable();
            machines.dedup();
            ("partition", format!("partition: nothing gets from machine {}", cut.join(", ")), machines, true)
        }
        Fault::Slowdown(link, factor) => {
            let words = format!("slow link: machine {} → {} takes {}", link.from, link.to, slowed(*factor));
            ("slow", words, both(link), true)
        }
        Fault::Clog(link) => {
            let words = format!(
                "clogged link: machine {} → {} delivers nothing until it is free",
                link.from, link.to
            );
            ("clog", words, both(link), true)
        }
        Fault::Step(machine, by_ns) => {
            let way = if *by_ns < 0 { "back" } else { "forward" };
            let by_ms = by_ns.unsigned_abs() as f64 / 1e6;
            let words = format!("the clock of machine {machine} is set {way} by {by_ms:.3} ms");
            ("clock", words, vec![*machine], false)
        }
        Fault::Reset(shard, peer) => {
            ("reset", format!("shard {} resets its channel to {}", shard.0, peer.0), Vec::new(), false)
        }
        Fault::FutureStamp(shard, peer) => {
            let words = format!("shard {} sends {} a timestamp an hour ahead of its clock", shard.0, peer.0);
            ("clock", words, Vec::new(), false)
        }
        Fault::Pause(machine) => ("pause", format!("machine {machine} stands still"), vec![*machine], true),
        Fault::Crash(machine) => ("crash", format!("machine {machine} is down"), vec![*machine], true),
        Fault::Blackout => ("crash", "all machines are down".to_owned(), Vec::new(), true),
        Fault::SlowDisk(machine, factor) => {
            ("disk", format!("the disks of machine {machine} take {}", slowed(*factor)), vec![*machine], true)
        }
        Fault::StallDisk(machine) => {
            ("disk", format!("the disks of machine {machine} do nothing"), vec![*machine], true)
        }
        Fault::FullDisk(machine) => {
            ("disk", format!("the disks of machine {machine} are full"), vec![*machine], true)
        }
    }
}
