//! What processes of this machine did, each with its descendants: a cluster on one machine can be
//! told apart.
//!
//! The time of a process and of those of its children that have ended and were waited for is in
//! `/proc/PID/stat`, and the same holds for the bytes in `/proc/PID/io`. So the sum over a family
//! only grows while its members come and go, unless one is orphaned and leaves the family: then
//! that interval has too little, never less than nothing.
//!
//! Memory of the members cannot be added: a database's processes share most of theirs. The sum of
//! what each has alone plus the largest that one of them shares is right for one shared segment,
//! and costs nothing to read; the exact answer (`smaps_rollup`) would have the kernel walk all
//! pages every second.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use super::sample::ProcessSample;
use crate::chaos::machines::Process;

/// What one process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    parent: u32,
    /// With its children that have ended.
    cpu_ticks: u64,
    /// When it was started: tells it from another one with its number.
    started_ticks: u64,
}

/// A family at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Family {
    /// Its oldest members and when they were started.
    roots: Vec<(u32, u64)>,
    processes: u32,
    cpu_ticks: u64,
    memory_bytes: u64,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
}

/// The processes that are looked at, and what they had used when they were last looked at.
#[derive(Debug)]
pub(super) struct Families {
    processes: Vec<(Process, Vec<u32>, Option<Family>)>,
}

impl Families {
    pub(super) fn new(processes: Vec<Process>) -> Families {
        Families { processes: processes.into_iter().map(|process| (process, Vec::new(), None)).collect() }
    }

    /// What each did since the last time; nothing of one that is not there, or that is another one.
    pub(super) fn sample(&mut self, interval_ns: u64) -> Vec<ProcessSample> {
        if self.processes.is_empty() {
            return Vec::new();
        }
        let all = everybody();
        let mut samples = Vec::new();
        for (process, roots, before) in &mut self.processes {
            find_roots(process, roots, &all);
            let family = family(roots, &all);
            if let (Some(old), Some(new)) = (&before, &family) {
                samples.extend(difference(&process.name, old, new, interval_ns));
            }
            *before = family;
        }
        samples
    }
}

fn difference(name: &str, old: &Family, new: &Family, interval_ns: u64) -> Option<ProcessSample> {
    if old.roots != new.roots || interval_ns == 0 {
        return None;
    }
    let busy_s =
        new.cpu_ticks.saturating_sub(old.cpu_ticks) as f64 / rustix::param::clock_ticks_per_second() as f64;
    let grown = |old: Option<u64>, new: Option<u64>| Some(new?.saturating_sub(old?));
    Some(ProcessSample {
        name: name.to_owned(),
        processes: new.processes,
        cores: busy_s / (interval_ns as f64 / 1e9),
        memory_bytes: new.memory_bytes,
        read_bytes: grown(old.read_bytes, new.read_bytes),
        written_bytes: grown(old.written_bytes, new.written_bytes),
    })
}

/// Looks for the oldest members: a file is read every time, a command is asked only if nobody is
/// known.
fn find_roots(process: &Process, roots: &mut Vec<u32>, all: &BTreeMap<u32, Usage>) {
    if let Some(pid) = process.pid {
        *roots = vec![pid];
    } else if let Some(path) = &process.pid_file {
        let text = fs::read_to_string(path).unwrap_or_default();
        *roots = text.split_whitespace().next().and_then(|word| word.parse().ok()).into_iter().collect();
    } else if let Some(command) =
        process.pids_from.as_ref().filter(|_| !roots.iter().any(|pid| all.contains_key(pid)))
    {
        let output =
            Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        *roots =
            String::from_utf8_lossy(&text).split_whitespace().filter_map(|word| word.parse().ok()).collect();
    }
    roots.retain(|pid| all.contains_key(pid));
    roots.sort_unstable();
    roots.dedup();
}

fn everybody() -> BTreeMap<u32, Usage> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let text = fs::read(entry.path().join("stat")).unwrap_or_default();
        if let Some(usage) = read_stat(&String::from_utf8_lossy(&text)) {
            all.insert(pid, usage);
        }
    }
    all
}

/// Reads a line of `/proc/PID/stat`, in which the name of the program may be anything.
fn read_stat(line: &str) -> Option<Usage> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    // Own time in user and system mode, and that of the children.
    let mut cpu_ticks = 0_u64;
    for index in 11..=14 {
        cpu_ticks = cpu_ticks.saturating_add(number(index)?.max(0) as u64);
    }
    let parent = u32::try_from(number(1)?).ok()?;
    Some(Usage { parent, cpu_ticks, started_ticks: number(19)?.max(0) as u64 })
}

fn family(roots: &[u32], all: &BTreeMap<u32, Usage>) -> Option<Family> {
    if roots.is_empty() {
        return None;
    }
    let mut members = roots.to_vec();
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        let children = all.iter().filter(|(pid, usage)| usage.parent == parent && !roots.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).filter(|pid| !members.contains(pid)).collect();
        members.extend(children);
        next += 1;
    }
    let mut family = Family {
        roots: roots.iter().map(|pid| (*pid, all[pid].started_ticks)).collect(),
        processes: members.len() as u32,
        cpu_ticks: 0,
        memory_bytes: 0,
        read_bytes: Some(0),
        written_bytes: Some(0),
    };
    let mut most_shared = 0;
    for pid in members {
        family.cpu_ticks = family.cpu_ticks.saturating_add(all[&pid].cpu_ticks);
        let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (alone, shared) = read_statm(&file("statm")).unwrap_or((0, 0));
        family.memory_bytes = family.memory_bytes.saturating_add(alone);
        most_shared = most_shared.max(shared);
        // Who has ended meanwhile has no such file; who belongs to somebody else has one that we
        // may not read.
        let io = file("io");
        let add = |sum: Option<u64>, name| Some(sum?.saturating_add(read_io(&io, name)?));
        family.read_bytes = add(family.read_bytes, "read_bytes");
        family.written_bytes = add(family.written_bytes, "write_bytes");
    }
    family.memory_bytes = family.memory_bytes.saturating_add(most_shared);
    Some(family)
}

/// Bytes that a process has alone, and bytes that it shares.
fn read_statm(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace().skip(1);
    let mut bytes = || fields.next()?.parse::<u64>().ok()?.checked_mul(rustix::param::page_size() as u64);
    let (resident, shared) = (bytes()?, bytes()?);
    Some((resident.saturating_sub(shared), shared))
}

fn read_io(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_of_a_program_with_a_strange_name_is_read() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 0 0 0 0 0 10 20 3 4 20 0 1 0 99 0 0";
        assert_eq!(read_stat(line), Some(Usage { parent: 7, cpu_ticks: 37, started_ticks: 99 }));
        assert_eq!(
            read_io("rchar: 1\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n", "write_bytes"),
            Some(6)
        );
        let page = rustix::param::page_size() as u64;
        assert_eq!(read_statm("100 10 3 1 0 5 0"), Some((7 * page, 3 * page)));
    }

    #[test]
    fn this_process_is_found_and_its_work_is_seen() {
        let process = Process { name: "me".to_owned(), pid: Some(std::process::id()), ..Process::default() };
        let gone = Process { name: "gone".to_owned(), pid: Some(4_194_303), ..Process::default() };
        let file =
            Process { name: "file".to_owned(), pid_file: Some("/nowhere".to_owned()), ..Process::default() };
        let command = format!("echo {}", std::process::id());
        let asked = Process { name: "asked".to_owned(), pids_from: Some(command), ..Process::default() };
        let mut families = Families::new(vec![process, gone, file, asked]);
        assert_eq!(families.sample(1), [], "the first look has nothing to compare with");
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 200 {
            std::hint::spin_loop();
        }
        let samples = families.sample(200_000_000);
        let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["me", "asked"]);
        assert!(samples[0].cores > 0.0 && samples[0].memory_bytes > 1 << 20, "{samples:?}");
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_same() {
        let old = Family {
            roots: vec![(7, 1)],
            processes: 1,
            cpu_ticks: 5,
            memory_bytes: 0,
            read_bytes: None,
            written_bytes: Some(1),
        };
        let other = Family { roots: vec![(7, 2)], ..old.clone() };
        assert_eq!(difference("p", &old, &other, 1), None);
        let orphaned = Family { cpu_ticks: 3, written_bytes: Some(9), ..old.clone() };
        let sample = difference("p", &old, &orphaned, 1).unwrap();
        assert_eq!((sample.cores, sample.read_bytes, sample.written_bytes), (0.0, None, Some(8)));
    }

    proptest! {
        #[test]
        fn hostile_texts_never_panic(
            text in "\\PC{0,60}",
            numbers in "[0-9 ()SRZ:-]{0,120}",
            name in "[a-z_]{0,12}",
        ) {
            for line in [&text, &numbers, &format!("1 (x) S {numbers}")] {
                let _ = (read_stat(line), read_statm(line), read_io(line, &name));
            }
        }
    }
}
