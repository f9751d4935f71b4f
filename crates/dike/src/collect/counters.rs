//! The kernel's counters, as text from `/proc` and as numbers.
//!
//! One reader for all machines: here the files are read, elsewhere a loop of the shell prints them,
//! framed:
//!
//! ```text
//! dike-collect begin 4711.25      seconds since the machine was started
//! cpu  1557643 68804 91381 ...    /proc/stat as far as it is about processors
//! dike-collect memory             /proc/meminfo
//! dike-collect disks              /proc/diskstats
//! dike-collect network            /proc/net/dev
//! dike-collect end
//! ```
//!
//! Nothing of it is trusted. A line that is not understood is skipped, a frame without its end is
//! dropped, and what is missing in a frame is missing in the sample. The number of devices is
//! bounded.

use std::collections::BTreeMap;

/// The most disks and the most interfaces that are looked at.
const DEVICES_MAX: usize = 1024;

/// What `/proc/diskstats` counts in, whatever the disk's own sectors are.
const SECTOR_BYTES: u64 = 512;

/// The counters of a machine at one moment. Counts grow from its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Time of all cores together: user, nice, system, idle, waiting for disks, interrupts (two
    /// kinds), stolen.
    pub cpu_ticks: Option<[u64; 8]>,
    pub cores: u32,
    pub memory_total_bytes: Option<u64>,
    pub memory_available_bytes: Option<u64>,
    pub disks: BTreeMap<String, DiskCounters>,
    pub interfaces: BTreeMap<String, InterfaceCounters>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DiskCounters {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceCounters {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// Which file a line is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Processor,
    Memory,
    Disks,
    Network,
}

impl Counters {
    /// Takes in one line.
    pub(super) fn read(&mut self, section: Section, line: &str) {
        // A line that is not understood says nothing.
        let _ = match section {
            Section::Processor => self.read_processor(line),
            Section::Memory => self.read_memory(line),
            Section::Disks => self.read_disk(line),
            Section::Network => self.read_interface(line),
        };
    }

    fn read_processor(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(' ')?;
        if name != "cpu" {
            let number = name.strip_prefix("cpu")?;
            if !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()) {
                self.cores = self.cores.saturating_add(1);
            }
            return Some(());
        }
        let mut ticks = [0; 8];
        let mut fields = rest.split_whitespace();
        // Older kernels have no stolen time; idle time is always there.
        for (index, tick) in ticks.iter_mut().enumerate() {
            match fields.next() {
                Some(field) => *tick = field.parse().ok()?,
                None if index > 3 => break,
                None => return None,
            }
        }
        self.cpu_ticks = Some(ticks);
        Some(())
    }

    fn read_memory(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(':')?;
        let bytes = rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)?;
        match name {
            "MemTotal" => self.memory_total_bytes = Some(bytes),
            "MemAvailable" => self.memory_available_bytes = Some(bytes),
            _ => {}
        }
        Some(())
    }

    fn read_disk(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = *fields.get(2)?;
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        if ["loop", "ram", "zram", "fd", "sr"].iter().any(|kind| is_numbered(name, kind)) {
            return Some(());
        }
        let disk = DiskCounters {
            reads: number(3)?,
            read_bytes: number(5)?.checked_mul(SECTOR_BYTES)?,
            writes: number(7)?,
            written_bytes: number(9)?.checked_mul(SECTOR_BYTES)?,
        };
        if self.disks.len() < DEVICES_MAX {
            self.disks.insert(name.to_owned(), disk);
        }
        Some(())
    }

    fn read_interface(&mut self, line: &str) -> Option<()> {
        let (name, rest) = line.split_once(':')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let interface = InterfaceCounters { received_bytes: number(0)?, sent_bytes: number(8)? };
        if self.interfaces.len() < DEVICES_MAX {
            self.interfaces.insert(name.trim().to_owned(), interface);
        }
        Some(())
    }

    /// Drops the partitions of disks that are there as a whole: their work would count twice.
    pub(super) fn drop_partitions(&mut self) {
        let names: Vec<String> = self.disks.keys().cloned().collect();
        self.disks.retain(|name, _| !names.iter().any(|disk| is_partition(name, disk)));
    }
}

/// `loop0` is a numbered `loop`.
fn is_numbered(name: &str, kind: &str) -> bool {
    let number = name.strip_prefix(kind);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// `sda1` is a partition of `sda`, and `nvme0n1p1` one of `nvme0n1`.
fn is_partition(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    if disk.ends_with(|last: char| last.is_ascii_digit()) {
        is_numbered(rest, "p")
    } else {
        is_numbered(rest, "")
    }
}

/// The counters of a machine and when they were read, by a clock of that machine that never jumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// In nanoseconds since its start.
    pub clock_ns: u64,
    pub counters: Counters,
}

/// Puts frames together from lines.
#[derive(Debug, Default)]
pub(super) struct Framing {
    open: Option<(Frame, Section)>,
}

/// What begins a line between the sections.
const PREFIX: &str = "dike-collect ";

impl Framing {
    /// Takes in one line. Returns the frame that it ends.
    pub(super) fn line(&mut self, line: &str) -> Option<Frame> {
        let Some(word) = line.strip_prefix(PREFIX) else {
            let (frame, section) = self.open.as_mut()?;
            frame.counters.read(*section, line);
            return None;
        };
        if let Some(uptime) = word.strip_prefix("begin ") {
            let clock_ns = nanoseconds(uptime);
            let frame = |clock_ns| (Frame { clock_ns, counters: Counters::default() }, Section::Processor);
            self.open = clock_ns.map(frame);
            return None;
        }
        match word {
            "memory" => self.open.as_mut()?.1 = Section::Memory,
            "disks" => self.open.as_mut()?.1 = Section::Disks,
            "network" => self.open.as_mut()?.1 = Section::Network,
            "end" => {
                let (mut frame, section) = self.open.take()?;
                frame.counters.drop_partitions();
                return (section == Section::Network).then_some(frame);
            }
            _ => {}
        }
        None
    }
}

/// Reads seconds with hundredths.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.trim().split_once('.')?;
    let hundredths = (hundredths.len() == 2).then(|| hundredths.parse::<u64>().ok()).flatten()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(hundredths * 10_000_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: &str = "\
dike-collect begin 4711.25
cpu  100 20 30 400 50 6 7 8 0 0
cpu0 50 10 15 200 25 3 3 4 0 0
cpu1 50 10 15 200 25 3 4 4 0 0
dike-collect memory
MemTotal:       24683656 kB
MemAvailable:   24230984 kB
dike-collect disks
   7       0 loop0 1 0 2 0 3 0 4 0 0 0 0 0 0 0 0 0 0
 254       0 vda 11 0 20 0 30 0 40 0 0 0 0 0 0 0 0 0 0
 254       1 vda1 10 0 20 0 30 0 40 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 1 0 2 0 3 0 4 0 0 0 0
 259       1 nvme0n1p1 1 0 2 0 3 0 4 0 0 0 0
dike-collect network
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth0:77 10 0 0 0 0 0 0 88 10 0 0 0 0 0 0
dike-collect end
";

    fn frames(text: &str) -> Vec<Frame> {
        let mut framing = Framing::default();
        text.lines().filter_map(|line| framing.line(line)).collect()
    }

    #[test]
    fn a_frame_is_read() {
        let [frame] = &frames(FRAME)[..] else { panic!("there is one frame") };
        assert_eq!(frame.clock_ns, 4_711_250_000_000);
        let counters = &frame.counters;
        assert_eq!(counters.cpu_ticks, Some([100, 20, 30, 400, 50, 6, 7, 8]));
        assert_eq!(counters.cores, 2);
        assert_eq!(counters.memory_total_bytes, Some(24_683_656 << 10));
        assert_eq!(counters.memory_available_bytes, Some(24_230_984 << 10));
        let disks: Vec<&String> = counters.disks.keys().collect();
        assert_eq!(disks, ["nvme0n1", "vda"], "partitions and loops do not count");
        let vda = DiskCounters { reads: 11, read_bytes: 10_240, writes: 30, written_bytes: 20_480 };
        assert_eq!(counters.disks["vda"], vda);
        let eth0 = InterfaceCounters { received_bytes: 77, sent_bytes: 88 };
        assert_eq!(counters.interfaces["eth0"], eth0);
        assert_eq!(counters.interfaces.len(), 2);
    }

    #[test]
    fn a_frame_that_was_cut_off_is_dropped_and_the_next_is_read() {
        for cut in 0..FRAME.len() - 2 {
            let text = format!("{}\n{FRAME}", &FRAME[..cut]);
            let read = frames(&text);
            assert_eq!(read.len(), 1, "cut after {cut} bytes");
            assert_eq!(read[0], frames(FRAME)[0]);
        }
    }

    proptest! {
        #[test]
        fn hostile_lines_never_panic(lines in proptest::collection::vec(
            prop_oneof![
                "[ -~]{0,80}",
                "\\PC{0,40}",
                "(cpu|cpu0|MemTotal:|  8 0 sda |eth0:)[0-9. -]{0,80}",
                "dike-collect (begin |end|memory|disks|network)?[0-9. -]{0,20}",
            ],
            0..60,
        )) {
            let mut framing = Framing::default();
            for line in FRAME.lines().chain(lines.iter().map(String::as_str)).chain(FRAME.lines()) {
                let _ = framing.line(line);
            }
        }

        #[test]
        fn what_was_written_is_read(
            ticks: [u64; 8],
            disk: [u32; 4],
            interface: [u64; 2],
            total_kib in 0_u64..1 << 50,
            clock_cs in 0..1_u64 << 40,
        ) {
            let ticks_text = ticks.map(|tick| tick.to_string()).join(" ");
            let [reads, read, writes, written] = disk;
            let [received, sent] = interface;
            let text = format!(
                "dike-collect begin {}.{:02}\ncpu  {ticks_text} 0 0\n\
                 dike-collect memory\nMemTotal: {total_kib} kB\n\
                 dike-collect disks\n 8 0 sda {reads} 0 {read} 0 {writes} 0 {written} 0 0 0 0\n\
                 dike-collect network\neth0: {received} 0 0 0 0 0 0 0 {sent} 0\ndike-collect end\n",
                clock_cs / 100,
                clock_cs % 100,
            );
            let [frame] = &frames(&text)[..] else { panic!("there is one frame") };
            prop_assert_eq!(frame.clock_ns, clock_cs * 10_000_000);
            prop_assert_eq!(frame.counters.cpu_ticks, Some(ticks));
            prop_assert_eq!(frame.counters.memory_total_bytes, Some(total_kib << 10));
            let expected = DiskCounters {
                reads: reads.into(),
                read_bytes: u64::from(read) << 9,
                writes: writes.into(),
                written_bytes: u64::from(written) << 9,
            };
            prop_assert_eq!(frame.counters.disks["sda"], expected);
            let expected = InterfaceCounters { received_bytes: received, sent_bytes: sent };
            prop_assert_eq!(frame.counters.interfaces["eth0"], expected);
        }
    }
}
