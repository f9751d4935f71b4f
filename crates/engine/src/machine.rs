//! The machine and the build: what a figure means nothing without.
//!
//! Everything comes from `/proc`, `/sys` and the standard library. On systems without them the
//! answers are `unknown` or 0, and nothing fails for it. Limits of a container (control groups)
//! count: a process that may use 4 GB has 4 GB, whatever the machine has.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The commit this program was built from, `-dirty` if the checkout had changes, or `unknown`.
pub const COMMIT: &str = match option_env!("PLIMSOLL_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// The machine, as reports name it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// The processor's model name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory that this process may use.
    pub memory_bytes: u64,
    /// Name and release of the operating system's kernel.
    pub kernel: String,
}

/// Linux reports processor time in hundredths of a second, whatever the kernel's own tick is.
const TICKS_PER_SECOND: f64 = 100.0;

/// This machine.
pub fn describe() -> Machine {
    Machine {
        cpu: cpu_model(&read("/proc/cpuinfo")).unwrap_or("unknown").to_owned(),
        cores: cores(),
        memory_bytes: memory_bytes(),
        kernel: kernel(),
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory that this process may use; 0 if unknown.
pub fn memory_bytes() -> u64 {
    Some(LIMITS.memory.min(LIMITS.addresses)).filter(|&bytes| bytes < u64::MAX).unwrap_or(0)
}

/// Memory that the data of this process may take by default: most of what there is. The rest is for
/// messages, votes, threads, and memory that was freed and does not fit what comes next.
pub fn data_bytes() -> u64 {
    part(LIMITS.memory.min(LIMITS.addresses), 80)
}

/// Whether this process must not grow any more. It is so if what it has, without the `free_bytes`
/// that were freed and will be used again, is more than data may take, or if all that it has is
/// near a limit.
pub fn is_full(free_bytes: u64) -> bool {
    let status = read("/proc/self/status");
    let full = |field, limit| {
        let bytes = meminfo_bytes(&status, field).unwrap_or(0);
        bytes.saturating_sub(free_bytes) > part(limit, 80) || bytes > part(limit, 90)
    };
    full("VmRSS", LIMITS.memory) || full("VmSize", LIMITS.addresses)
}

/// What this process may have, in bytes; `u64::MAX` is no limit.
struct Limits {
    /// Of the machine's memory.
    memory: u64,
    /// Of addresses (`ulimit -v`).
    addresses: u64,
}

static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
    let known = |bytes: Option<u64>| bytes.filter(|&bytes| bytes > 0).unwrap_or(u64::MAX);
    let machine = known(meminfo_bytes(&read("/proc/meminfo"), "MemTotal"));
    let groups = control_groups(&read("/proc/self/cgroup"));
    let group = known(groups.iter().filter_map(Group::limit_bytes).min());
    Limits { memory: machine.min(group), addresses: known(address_bytes(&read("/proc/self/limits"))) }
});

fn part(bytes: u64, percent: u64) -> u64 {
    if bytes == u64::MAX { bytes } else { bytes / 100 * percent }
}

/// Memory that is free for this process now, caches that would yield included; 0 if unknown.
pub fn available_memory_bytes() -> u64 {
    let machine = meminfo_bytes(&read("/proc/meminfo"), "MemAvailable").unwrap_or(0);
    let groups = control_groups(&read("/proc/self/cgroup"));
    let group = groups.iter().filter_map(Group::available_bytes).min().unwrap_or(u64::MAX);
    let addresses = meminfo_bytes(&read("/proc/self/status"), "VmSize").unwrap_or(0);
    machine.min(group).min(part(LIMITS.addresses, 80).saturating_sub(addresses))
}

/// Memory that this process occupies now; 0 if unknown.
pub fn resident_bytes() -> u64 {
    meminfo_bytes(&read("/proc/self/status"), "VmRSS").unwrap_or(0)
}

/// Processor time this process has used since it started, user and system, threads that have ended
/// included; 0 if unknown. Its resolution is 10 ms.
pub fn process_cpu_seconds() -> f64 {
    stat_fields(&read("/proc/self/stat"), 2).unwrap_or(0.0)
}

/// The same of this process and of those that it has started and waited for.
pub fn family_cpu_seconds() -> f64 {
    stat_fields(&read("/proc/self/stat"), 4).unwrap_or(0.0)
}

/// Processor time of the cores that this process may run on, since the machine started: what all
/// programs used, and what the hypervisor gave to other machines; 0 if unknown. Interrupts are left
/// out, because they belong to no program.
pub fn busy_seconds() -> f64 {
    stat_busy_seconds(&read("/proc/stat"), &allowed_cores()).unwrap_or(0.0)
}

/// The share of the cores' processor time from which on other programs put figures in doubt.
const DISTURBANCE: f64 = 0.1;

/// A sentence if programs that were not measured used enough processor time of the cores that this
/// process may run on to put its figures in doubt. `busy` seconds were used in all during
/// `seconds`, at most `own` of them by what was measured.
pub fn disturbance(busy: f64, own: f64, seconds: f64) -> Option<String> {
    let (others, all) = ((busy - own).max(0.0), allowed_cores().len() as f64 * seconds);
    (others > DISTURBANCE * all && all > 0.0).then(|| {
        format!(
            "programs that were not measured used at least {others:.1} of {all:.1} core-seconds meanwhile: the figures may \
             be theirs. Measure again when the machine is quiet"
        )
    })
}

/// Watches the machine while this process and those that it starts are measured.
pub struct Watch {
    begun: Instant,
    busy_seconds: f64,
    own_seconds: f64,
}

impl Watch {
    /// Begins to watch.
    pub fn start() -> Watch {
        Watch { begun: Instant::now(), busy_seconds: busy_seconds(), own_seconds: family_cpu_seconds() }
    }

    /// What [`disturbance`] says of the time since then. A process that this one has started must
    /// have ended: its processor time is known only then.
    pub fn disturbance(&self) -> Option<String> {
        let busy = busy_seconds() - self.busy_seconds;
        let own = family_cpu_seconds() - self.own_seconds;
        disturbance(busy, own, self.begun.elapsed().as_secs_f64())
    }
}

/// The numbers of the cores that this process may run on; none if unknown.
fn allowed_cores() -> Vec<usize> {
    let status = read("/proc/self/status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(core_numbers).unwrap_or_default()
}

/// How many rounds of a loop take that long on this machine, undisturbed.
pub fn rounds_in(time: Duration, spin: fn(u64)) -> u64 {
    // Long enough to be measured, short enough to be left alone by the scheduler in the best of
    // some tries.
    const ROUNDS: u64 = 50_000;
    if time.is_zero() {
        return 0;
    }
    let tries = (0..50).map(|_| {
        let begin = Instant::now();
        spin(ROUNDS);
        begin.elapsed()
    });
    let best = tries.min().unwrap_or_default().max(Duration::from_nanos(1));
    (time.as_secs_f64() / best.as_secs_f64() * ROUNDS as f64).round() as u64
}

/// The time of day, UTC, as ISO 8601.
pub fn utc_now() -> String {
    iso_8601(unix_seconds())
}

/// Seconds since 1970; 0 if the clock is set before.
pub fn unix_seconds() -> u64 {
    // A report carries a date; nothing in the database depends on it.
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The command line as reports show it: the program by its name, wherever it is installed.
pub fn command_line() -> Vec<String> {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once("plimsoll".to_owned()).chain(arguments).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first processor's model. ARM kernels give only numbers; those are better than nothing.
fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let field = |name| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
        })
    };
    field("model name").or_else(|| field("Model")).or_else(|| field("CPU part"))
}

/// A line such as `MemTotal:  16384 kB`.
fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// A line such as `inactive_file 4096`.
fn counter(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The memory files of a control group.
#[derive(Debug, PartialEq)]
struct Group {
    /// Its folder.
    folder: String,
    /// The file with the limit, and that with what is used.
    limit: &'static str,
    used: &'static str,
    /// Fields of `memory.stat` that are caches, groups within this one included.
    caches: [&'static str; 2],
}

impl Group {
    fn bytes(&self, file: &str) -> Option<u64> {
        read(&format!("{}/{file}", self.folder)).trim().parse().ok()
    }

    /// Its limit, if it has one.
    fn limit_bytes(&self) -> Option<u64> {
        self.bytes(self.limit)
    }

    /// What is left below its limit, caches that would yield included.
    fn available_bytes(&self) -> Option<u64> {
        let (limit, used) = (self.limit_bytes()?, self.bytes(self.used)?);
        Some(left_bytes(limit, used, &read(&format!("{}/memory.stat", self.folder)), self.caches))
    }
}

/// What is left below a limit, caches that would yield included.
fn left_bytes(limit: u64, used: u64, stat: &str, caches: [&str; 2]) -> u64 {
    let cache: u64 = caches.iter().filter_map(|name| counter(stat, name)).sum();
    limit.saturating_sub(used.saturating_sub(cache))
}

/// A process's group and all groups around it, of both versions of control groups. In a container
/// the innermost folders may be missing.
fn control_groups(groups: &str) -> Vec<Group> {
    let mut all = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used, caches) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current", ["inactive_file ", "active_file "]),
            _ if controllers.split(',').any(|name| name == "memory") => (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                ["total_inactive_file ", "total_active_file "],
            ),
            _ => continue,
        };
        all.extend(Path::new(path).ancestors().map(|group| {
            let folder = format!("{root}{}", group.to_string_lossy().trim_end_matches('/'));
            Group { folder, limit, used, caches }
        }));
    }
    all
}

/// The soft limit in a line such as `Max address space  1228800000  unlimited  bytes`.
fn address_bytes(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kernel() -> String {
    let part = |file| read(&format!("/proc/sys/kernel/{file}")).trim().to_owned();
    match (part("ostype"), part("osrelease")) {
        (name, release) if !name.is_empty() => format!("{name} {release}").trim().to_owned(),
        _ => std::env::consts::OS.to_owned(),
    }
}

/// The sum of fields of `/proc/self/stat` from the 14th on: user and system time of the process,
/// then of its children. The second field, the program's name, is in parentheses and may hold
/// anything, so counting starts after the last parenthesis.
fn stat_fields(stat: &str, count: usize) -> Option<f64> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(count);
    let ticks: Vec<f64> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (ticks.len() == count).then(|| ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// The lines of these cores in `/proc/stat`: user, nice, system, idle, waiting, two kinds of
/// interrupts, and what the hypervisor has stolen.
fn stat_busy_seconds(stat: &str, cores: &[usize]) -> Option<f64> {
    let mut sum = 0.0;
    for line in stat.lines() {
        let mut fields = line.split_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !number.is_some_and(|number| cores.contains(&number)) {
            continue;
        }
        let ticks: Vec<f64> = fields.map(|field| field.parse().unwrap_or(0.0)).collect();
        let [user, nice, system, _, _, _, _, stolen, ..] = ticks[..] else { return None };
        sum += user + nice + system + stolen;
    }
    Some(sum / TICKS_PER_SECOND)
}

/// A list such as `0-3,8`.
fn core_numbers(list: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            numbers.extend(first..=last);
        }
    }
    numbers
}

/// Seconds since 1970 as `2025-11-21T20:58:00Z`: Howard Hinnant's conversion of days to a civil
/// date.
fn iso_8601(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_is_more_rounds() {
        let spin = |rounds| {
            let last = (0..rounds).fold(0u64, |last, round| std::hint::black_box(last ^ round));
            std::hint::black_box(last);
        };
        assert_eq!(rounds_in(Duration::ZERO, spin), 0);
        let (short, long) = (Duration::from_micros(100), Duration::from_millis(1));
        let ratio = rounds_in(long, spin) as f64 / rounds_in(short, spin) as f64;
        // The machine may have become slower or faster in between, but not by much.
        assert!((1.0..100.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_processor_is_named() {
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2.5GHz\n"), Some("Some CPU @ 2.5GHz"));
        assert_eq!(cpu_model("processor : 0\nCPU part : 0xd0c\n"), Some("0xd0c"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(meminfo_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n", "MemTotal"), Some(16_384));
        assert_eq!(meminfo_bytes("MemTotalish: 16 kB\n", "MemTotal"), None);
        assert_eq!(meminfo_bytes("", "MemTotal"), None);
        assert_eq!(counter("anon 1\nactive_file 4096\n", "active_file "), Some(4096));
    }

    #[test]
    fn limits_of_addresses_and_of_both_kinds_of_control_groups_are_found() {
        let limits = "Max processes  7  7  processes\nMax address space  1228800000  unlimited  bytes\n";
        assert_eq!(address_bytes(limits), Some(1_228_800_000));
        assert_eq!(address_bytes("Max address space  unlimited  unlimited  bytes\n"), None);
        let files = |groups| {
            let file = |group: Group| format!("{}/{}", group.folder, group.limit);
            control_groups(groups).into_iter().map(file).collect::<Vec<_>>()
        };
        assert_eq!(
            files("0::/a/b\n"),
            ["/a/b", "/a", ""].map(|group| format!("/sys/fs/cgroup{group}/memory.max"))
        );
        assert_eq!(
            files("9:cpu,cpuacct:/x\n4:memory:/x\n0::/\n"),
            [
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert!(files("nonsense").is_empty());
        assert!(data_bytes() > 0);
    }

    #[test]
    fn processor_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 30 20 20 0 1 0 9 9 9";
        assert_eq!((stat_fields(stat, 2), stat_fields(stat, 4)), (Some(2.0), Some(2.5)));
        assert_eq!((stat_fields("", 2), stat_fields("7 (a) S 1", 2)), (None, None));
    }

    #[test]
    fn caches_of_a_group_would_yield() {
        let stat = "inactive_file 100\nactive_file 50\ninactive_anon 7\ntotal_inactive_file 300\n";
        assert_eq!(left_bytes(1000, 600, stat, ["inactive_file ", "active_file "]), 550);
        assert_eq!(left_bytes(1000, 600, stat, ["total_inactive_file ", "total_active_file "]), 700);
        assert_eq!(left_bytes(1000, 1200, "", ["inactive_file ", "active_file "]), 0);
    }

    #[test]
    fn what_other_programs_used_is_told_if_it_matters() {
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 4000 50 6 7 50 0 0\ncpu1 50 0 0 9 9 9 9 0 0 0\n\
                    cpu12 7 7 7 7 7 7 7 7 0 0\nintr 5\n";
        assert_eq!(stat_busy_seconds(stat, &[0]), Some(2.0));
        assert_eq!(stat_busy_seconds(stat, &[0, 1]), Some(2.5), "cores of other programs do not count");
        assert_eq!(stat_busy_seconds("cpu0 1 2", &[0]), None);
        assert_eq!(core_numbers("\t0-2,5\n"), [0, 1, 2, 5]);
        assert!(core_numbers("").is_empty());
        let all = allowed_cores().len() as f64 * 2.0;
        assert!(all > 0.0, "this system tells where a process may run");
        assert_eq!(disturbance(all, 0.95 * all, 2.0), None, "a little always runs");
        assert_eq!(disturbance(0.0, 0.6, 2.0), None, "nothing is known");
        let said = disturbance(all, 0.15 * all, 2.0).expect("most of it was used by others");
        assert!(said.contains(&format!("at least {:.1} of {all:.1} core-seconds", 0.85 * all)), "{said}");
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(iso_8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_8601(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_8601(1_763_758_680), "2025-11-21T20:58:00Z");
        assert_eq!(iso_8601(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn describing_never_fails() {
        let machine = describe();
        assert!(machine.cores >= 1 && !machine.cpu.is_empty() && !machine.kernel.is_empty());
    }
}
