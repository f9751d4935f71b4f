//! What a machine did in an interval: the difference between two frames.
//!
//! For a counter that went from a to b the interval has b - a. A counter that went back (a device
//! was taken out and put in again, a machine was started anew) has no difference: its device is
//! missing in that sample.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counters::{Counters, Frame};

/// What is known about a host at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reading", rename_all = "snake_case")]
pub enum Reading {
    /// What it did in an interval.
    Sample(Sample),
    /// Nothing is known for a while.
    Gap(Gap),
}

/// What a host did in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The name of the host.
    pub host: String,
    /// The end of the interval, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// Its length by the host's own clock, in nanoseconds.
    pub interval_ns: u64,
    /// The processors.
    pub cpu: Option<Cpu>,
    /// The memory at the end of the interval.
    pub memory: Option<Memory>,
    /// The disks, without their partitions.
    pub disks: Vec<Disk>,
    /// The network interfaces.
    pub interfaces: Vec<Interface>,
    /// The processes that are looked at.
    pub processes: Vec<ProcessSample>,
}

/// Shares of the time of all cores together, from 0 to 1. What is missing to 1 is interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// How many cores.
    pub cores: u32,
    /// In programs.
    pub user: f64,
    /// In the kernel for programs.
    pub system: f64,
    /// Idle, while somebody waited for a disk.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle otherwise.
    pub idle: f64,
}

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What is not available to a program that asks for it.
    pub used_bytes: u64,
    /// All.
    pub total_bytes: u64,
}

/// What a disk did in the interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Reads that were done.
    pub reads: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Writes that were done.
    pub writes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

/// What a network interface did in the interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
}

/// What a process did in the interval, with its descendants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Its name.
    pub name: String,
    /// How many there were at the end.
    pub processes: u32,
    /// How many cores they kept busy.
    pub cores: f64,
    /// Their memory at the end: what each has alone, and what the one that shares most shares.
    pub memory_bytes: u64,
    /// Bytes that they had read from disks, if that may be known.
    pub read_bytes: Option<u64>,
    /// Bytes that they had written to disks, if that may be known.
    pub written_bytes: Option<u64>,
}

/// A time for which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The name of the host.
    pub host: String,
    /// From when, in nanoseconds since the start of the run.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Why.
    pub why: String,
}

impl Reading {
    /// The name of the host.
    pub fn host(&self) -> &str {
        match self {
            Reading::Sample(sample) => &sample.host,
            Reading::Gap(gap) => &gap.host,
        }
    }

    /// The end of its time, in nanoseconds since the start of the run.
    pub fn at_ns(&self) -> u64 {
        match self {
            Reading::Sample(sample) => sample.at_ns,
            Reading::Gap(gap) => gap.to_ns,
        }
    }
}

impl Sample {
    /// All disks together: bytes read and written. Without those that only pass on to others
    /// (device mapper, RAID).
    pub fn disk_bytes(&self) -> (u64, u64) {
        let real =
            self.disks.iter().filter(|disk| !disk.name.starts_with("dm-") && !disk.name.starts_with("md"));
        real.fold((0, 0), |(read, written), disk| (read + disk.read_bytes, written + disk.written_bytes))
    }

    /// All interfaces together but the loopback: bytes received and sent.
    pub fn network_bytes(&self) -> (u64, u64) {
        let real = self.interfaces.iter().filter(|interface| interface.name != "lo");
        real.fold((0, 0), |(received, sent), one| (received + one.received_bytes, sent + one.sent_bytes))
    }
}

/// The difference between two frames of a host; nothing if it was started anew between them.
pub(super) fn sample(host: &str, at_ns: u64, before: &Frame, after: &Frame) -> Option<Sample> {
    let interval_ns = after.clock_ns.checked_sub(before.clock_ns).filter(|length| *length > 0)?;
    let (old, new) = (&before.counters, &after.counters);
    let disks = changes(&old.disks, &new.disks, |name, old, new| {
        Some(Disk {
            name: name.to_owned(),
            reads: new.reads.checked_sub(old.reads)?,
            read_bytes: new.read_bytes.checked_sub(old.read_bytes)?,
            writes: new.writes.checked_sub(old.writes)?,
            written_bytes: new.written_bytes.checked_sub(old.written_bytes)?,
        })
    });
    let interfaces = changes(&old.interfaces, &new.interfaces, |name, old, new| {
        Some(Interface {
            name: name.to_owned(),
            received_bytes: new.received_bytes.checked_sub(old.received_bytes)?,
            sent_bytes: new.sent_bytes.checked_sub(old.sent_bytes)?,
        })
    });
    let host = host.to_owned();
    let (cpu, memory, processes) = (cpu(old, new), memory(new), Vec::new());
    Some(Sample { host, at_ns, interval_ns, cpu, memory, disks, interfaces, processes })
}

fn changes<C, D>(
    old: &BTreeMap<String, C>,
    new: &BTreeMap<String, C>,
    change: impl Fn(&str, &C, &C) -> Option<D>,
) -> Vec<D> {
    new.iter().filter_map(|(name, new)| change(name, old.get(name)?, new)).collect()
}

fn cpu(old: &Counters, new: &Counters) -> Option<Cpu> {
    let (old, ticks) = (old.cpu_ticks?, new.cpu_ticks?);
    // The kernel may count idle time back a little: that is nothing, not for ever.
    let spent: [f64; 8] = std::array::from_fn(|index| ticks[index].saturating_sub(old[index]) as f64);
    let total: f64 = spent.iter().sum();
    let share = |ticks: f64| if total > 0.0 { ticks / total } else { 0.0 };
    let [user, nice, system, idle, iowait, _, _, steal] = spent;
    if total == 0.0 {
        return None;
    }
    Some(Cpu {
        cores: new.cores,
        user: share(user + nice),
        system: share(system),
        iowait: share(iowait),
        steal: share(steal),
        idle: share(idle),
    })
}

fn memory(counters: &Counters) -> Option<Memory> {
    let (total_bytes, available) = (counters.memory_total_bytes?, counters.memory_available_bytes?);
    Some(Memory { used_bytes: total_bytes.saturating_sub(available), total_bytes })
}

#[cfg(test)]
mod tests {
    use super::super::counters::{DiskCounters, InterfaceCounters};
    use super::*;

    fn frame(clock_ns: u64, factor: u64) -> Frame {
        let disk = DiskCounters { reads: factor, read_bytes: 512 * factor, writes: 2, written_bytes: 1024 };
        let interface = InterfaceCounters { received_bytes: 10 * factor, sent_bytes: factor };
        let lo = InterfaceCounters { received_bytes: 1000 * factor, sent_bytes: 1000 * factor };
        let counters = Counters {
            cpu_ticks: Some([factor, factor, 2 * factor, 4 * factor, factor, 0, 0, factor]),
            cores: 2,
            memory_total_bytes: Some(100),
            memory_available_bytes: Some(40),
            disks: BTreeMap::from([("sda".to_owned(), disk), ("dm-0".to_owned(), disk)]),
            interfaces: BTreeMap::from([("eth0".to_owned(), interface), ("lo".to_owned(), lo)]),
        };
        Frame { clock_ns, counters }
    }

    #[test]
    fn a_sample_is_what_was_done_between_two_frames() {
        let sample = sample("n1", 9, &frame(1_000, 1), &frame(3_000, 11)).unwrap();
        assert_eq!((sample.at_ns, sample.interval_ns), (9, 2_000));
        let cpu = sample.cpu.unwrap();
        assert_eq!((cpu.user, cpu.system, cpu.idle, cpu.iowait, cpu.steal), (0.2, 0.2, 0.4, 0.1, 0.1));
        assert_eq!(sample.memory, Some(Memory { used_bytes: 60, total_bytes: 100 }));
        assert_eq!(sample.disk_bytes(), (5_120, 0), "what the device mapper passes on counts once");
        assert_eq!(sample.network_bytes(), (100, 10));
        let text = serde_json::to_string(&Reading::Sample(sample.clone())).unwrap();
        assert_eq!(serde_json::from_str::<Reading>(&text).unwrap(), Reading::Sample(sample));
    }

    #[test]
    fn a_machine_or_a_device_that_was_started_anew_has_no_difference() {
        assert_eq!(sample("n1", 9, &frame(3_000, 1), &frame(1_000, 2)), None);
        let sample = sample("n1", 9, &frame(1_000, 5), &frame(3_000, 2)).unwrap();
        assert!(sample.disks.is_empty() && sample.interfaces.is_empty() && sample.cpu.is_none());
    }
}
