//! What the machines of a target did: processor, memory, disk, network, once per second.
//!
//! ```toml
//! [collect]
//! interval_s = 1
//! hosts = ["localhost", "n1"]     # absent: all that can be asked
//! processes = ["db-1", "db-2"]    # absent: all on this machine
//! ```
//!
//! Counters of this machine are read from `/proc`, those of others come through one ssh connection
//! per host, over which a loop of the POSIX shell (`loop.sh`) prints the same files; they are read
//! here, so that the other end needs nothing but a shell, `cat` and `sleep`. A
//! [sample](sample::Sample) is what happened between two frames, by the host's own clock, so that a
//! late frame does not make a peak.
//!
//! Where nothing is known, a [gap](sample::Gap) says so: a connection that was lost (it is made
//! again, after 1, 2, 4, 8 and then every 10 s), a host that was started anew, frames that came
//! late by more than an interval and a half.
//!
//! Processes are looked at on this machine only: the purpose is to tell the nodes of a cluster
//! apart that runs on one machine.
//!
//! Left out: hosts that only a hook reaches.

mod counters;
mod processes;
pub mod sample;

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::chaos::lines::Lines;
use crate::chaos::machines::{LOCALHOST, MachineError, Machines, Process, Shell};
use counters::{Counters, Frame, Framing, Section};
use processes::Families;
use sample::{Gap, Reading, sample};

const LOOP: &str = include_str!("loop.sh");

/// What is looked at, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The length of an interval in seconds. Default: 1.
    pub interval_s: u64,
    /// The names of hosts. Default: this machine and all that ssh reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The names of processes on this machine. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<String>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { interval_s: 1, hosts: None, processes: None }
    }
}

/// A host that is looked at, and the way to it.
type Way = (String, Shell);

impl Settings {
    /// What will be looked at, if all of it is there.
    pub(crate) fn check(&self, machines: &Machines) -> Result<(Vec<Way>, Vec<Process>), CollectError> {
        machines.check().map_err(CollectError::Machines)?;
        if !(1..=3600).contains(&self.interval_s) {
            return Err(CollectError::Interval(self.interval_s));
        }
        Ok((shells(self, machines)?, processes_here(self, machines)?))
    }
}

/// Why nothing can be collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectError {
    /// The machines are described wrongly.
    Machines(MachineError),
    /// The interval is none: from 1 to 3600 s.
    Interval(u64),
    /// There is no such host, or only a hook reaches it.
    Host(String),
    /// There is no such process on this machine.
    Process(String),
}

impl fmt::Display for CollectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollectError::Machines(error) => write!(f, "{error}"),
            CollectError::Interval(seconds) => {
                write!(f, "collect: `interval_s` is {seconds} and has to be from 1 to 3600")
            }
            CollectError::Host(name) => {
                write!(f, "collect: there is no host `{name}` that Dike itself can reach")
            }
            CollectError::Process(name) => write!(f, "collect: there is no process `{name}` on this machine"),
        }
    }
}

impl std::error::Error for CollectError {}

/// Looks at machines until it is stopped or dropped.
#[derive(Debug)]
pub struct Collector {
    tasks: JoinSet<()>,
    stopping: watch::Sender<bool>,
}

impl Collector {
    /// Begins to look.
    ///
    /// * `start`: the start of the run, which times of readings refer to.
    /// * `readings`: gets every reading when it is there; those of one host in the order of time.
    ///
    /// Fails if something is to be looked at that is not there. A host that does not answer is a
    /// gap, not an error.
    pub fn start(
        settings: &Settings,
        machines: &Machines,
        start: Instant,
        readings: &mpsc::UnboundedSender<Reading>,
    ) -> Result<Collector, CollectError> {
        let (shells, processes) = settings.check(machines)?;
        let interval = Duration::from_secs(settings.interval_s);
        let (stopping, mut tasks) = (watch::Sender::new(false), JoinSet::new());
        for (name, shell) in shells {
            let readings = readings.clone();
            let mut series =
                Series { host: name, start, interval, before: None, last_ns: 0, lost: None, readings };
            let mut stopped = stopping.subscribe();
            let families = Families::new(processes.clone());
            tasks.spawn(async move {
                let look = async {
                    if shell == Shell::HERE {
                        here(&mut series, families).await;
                    } else {
                        elsewhere(&mut series, &shell).await;
                    }
                };
                tokio::select! {
                    () = look => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
                series.finish();
            });
        }
        Ok(Collector { tasks, stopping })
    }

    /// Ends it. Everything that was read has been sent afterwards.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The hosts that are looked at, and the way to each.
fn shells(settings: &Settings, machines: &Machines) -> Result<Vec<Way>, CollectError> {
    let way = |name: &String| machines.host(name).and_then(|host| host.shell(&machines.ssh));
    if let Some(names) = &settings.hosts {
        let found = |name: &String| way(name).map(|shell| (name.clone(), shell));
        return names
            .iter()
            .map(|name| found(name).ok_or_else(|| CollectError::Host(name.clone())))
            .collect();
    }
    let mut names = vec![LOCALHOST.to_owned()];
    names.extend(machines.hosts.iter().map(|host| host.name.clone()).filter(|name| name != LOCALHOST));
    Ok(names.into_iter().filter_map(|name| way(&name).map(|shell| (name, shell))).collect())
}

fn processes_here(settings: &Settings, machines: &Machines) -> Result<Vec<Process>, CollectError> {
    let here = |name: &str| machines.host(name).is_some_and(|host| host.is_local());
    let mut found: Vec<_> =
        machines.processes.iter().filter(|process| here(&process.host)).cloned().collect();
    if let Some(names) = &settings.processes {
        if let Some(missing) = names.iter().find(|name| !found.iter().any(|process| process.name == **name)) {
            return Err(CollectError::Process(missing.clone()));
        }
        found.retain(|process| names.contains(&process.name));
    }
    Ok(found)
}

/// What is known about a host so far.
#[derive(Debug)]
struct Series {
    host: String,
    start: Instant,
    interval: Duration,
    /// The frame that the next one is compared with.
    before: Option<Frame>,
    /// Until when everything is known or said to be unknown.
    last_ns: u64,
    /// Why nothing is known since.
    lost: Option<String>,
    readings: mpsc::UnboundedSender<Reading>,
}

impl Series {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Takes in a frame. `complete` adds to the sample before it is sent.
    fn frame(&mut self, frame: Frame, complete: impl FnOnce(&mut sample::Sample)) {
        let at_ns = self.now_ns();
        let late = at_ns.saturating_sub(self.last_ns) > self.interval.as_nanos() as u64 * 5 / 2;
        let made = self.before.as_ref().and_then(|before| sample(&self.host, at_ns, before, &frame));
        let first = self.before.is_none();
        self.before = Some(frame);
        match made {
            Some(mut sample) if !late && self.lost.is_none() => {
                complete(&mut sample);
                self.last_ns = at_ns;
                self.send(Reading::Sample(sample));
            }
            // The very first frame: there is nothing before it that could be unknown.
            None if first && self.lost.is_none() && !late => self.last_ns = at_ns,
            other => {
                let restarted = !first && other.is_none();
                let why = if restarted { "the host was started anew" } else { "it was late" };
                let why = self.lost.take().unwrap_or_else(|| why.to_owned());
                self.gap(at_ns, why);
            }
        }
    }

    fn lose(&mut self, why: String) {
        self.before = None;
        self.lost = Some(why);
    }

    /// Says what is unknown at the end.
    fn finish(mut self) {
        if let Some(why) = self.lost.take() {
            self.gap(self.now_ns(), why);
        }
    }

    fn gap(&mut self, to_ns: u64, why: String) {
        let gap = Gap { host: self.host.clone(), from_ns: self.last_ns, to_ns, why };
        self.last_ns = to_ns;
        self.send(Reading::Gap(gap));
    }

    fn send(&self, reading: Reading) {
        // Nobody listens any more: the collector is about to be dropped.
        let _ = self.readings.send(reading);
    }
}

/// Looks at this machine.
async fn here(series: &mut Series, mut families: Families) {
    let mut ticks = interval(series.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let before_ns = series.before.as_ref().map(|before| before.clock_ns);
        let since = series.start;
        // Files of /proc are made while they are read, those of all processes for milliseconds.
        let looked = tokio::task::spawn_blocking(move || {
            let clock_ns = since.elapsed().as_nanos() as u64;
            let counters = read_files();
            let processes = families.sample(clock_ns.saturating_sub(before_ns.unwrap_or(clock_ns)));
            (families, Frame { clock_ns, counters }, processes)
        });
        let Ok((returned, frame, processes)) = looked.await else { return };
        families = returned;
        series.frame(frame, |sample| sample.processes = processes);
    }
}

/// What the processors of this machine have done, in ticks: user, nice, system, idle, waiting for
/// disks, two kinds of interrupts, stolen; nothing where that is unknown.
pub(crate) fn processor_ticks() -> Option<[u64; 8]> {
    let mut counters = Counters::default();
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().for_each(|line| counters.read(Section::Processor, line));
    counters.cpu_ticks
}

fn read_files() -> Counters {
    let mut counters = Counters::default();
    let files = [
        (Section::Processor, "/proc/stat"),
        (Section::Memory, "/proc/meminfo"),
        (Section::Disks, "/proc/diskstats"),
        (Section::Network, "/proc/net/dev"),
    ];
    for (section, path) in files {
        let text = std::fs::read(path).unwrap_or_default();
        for line in String::from_utf8_lossy(&text).lines() {
            counters.read(section, line);
        }
    }
    counters.drop_partitions();
    counters
}

/// Looks at a machine that has to be asked, for ever.
async fn elsewhere(series: &mut Series, shell: &Shell) {
    let mut pause_s = 1;
    loop {
        let (why, heard) = connection(series, shell).await;
        series.lose(why);
        if heard {
            pause_s = 1;
        }
        sleep(Duration::from_secs(pause_s)).await;
        pause_s = (2 * pause_s).min(10);
    }
}

/// One connection, until it ends. Returns why it did, and whether there was a frame.
async fn connection(series: &mut Series, shell: &Shell) -> (String, bool) {
    let words = shell.command(&format!("interval_s={}\n{LOOP}", series.interval.as_secs()));
    let mut command = Command::new(&words[0]);
    // The loop ends with its standard input, which ends with us.
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (format!("{}: {error}", words[0]), false),
    };
    // Waiting for the child would close it.
    let _life_line = child.stdin.take();
    let (mut out, mut err) = (Lines::new(child.stdout.take()), Lines::new(child.stderr.take()));
    let (mut framing, mut heard, mut said) = (Framing::default(), false, None);
    // Longer than it takes ssh to give up connecting.
    let silence = series.interval * 5 + Duration::from_secs(10);
    loop {
        let next = async {
            tokio::select! {
                biased;
                Some(line) = out.next() => Some(Ok(line)),
                Some(line) = err.next() => Some(Err(line)),
                _ = child.wait() => None,
            }
        };
        match timeout(silence, next).await {
            Ok(Some(Ok(line))) => {
                if let Some(frame) = framing.line(&line) {
                    heard = true;
                    series.frame(frame, |_| {});
                }
            }
            Ok(Some(Err(line))) => said = Some(line),
            Ok(None) => return (said.unwrap_or_else(|| "the connection ended".to_owned()), heard),
            Err(_) => return (format!("nothing was heard for {} s", silence.as_secs()), heard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines() -> Machines {
        toml::from_str(
            r#"
            hosts = [{ name = "n1", ssh = "root@n1" }, { name = "n2", hook = "h" }]
            processes = [{ name = "here", pid = 7 }, { name = "there", host = "n1", pid = 7 }]
            "#,
        )
        .unwrap()
    }

    fn settings(text: &str) -> Settings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn by_default_everything_is_looked_at_that_can_be() {
        let names = |settings: &Settings| -> Vec<String> {
            shells(settings, &machines()).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&Settings::default()), ["localhost", "n1"]);
        assert_eq!(names(&settings(r#"hosts = ["n1"]"#)), ["n1"]);
        let processes = processes_here(&Settings::default(), &machines()).unwrap();
        assert_eq!(processes.len(), 1);
        assert_eq!(processes[0].name, "here");
    }

    #[tokio::test]
    async fn what_cannot_be_looked_at_is_refused() {
        let refused = [
            ("interval_s = 0", CollectError::Interval(0)),
            (r#"hosts = ["n2"]"#, CollectError::Host("n2".to_owned())),
            (r#"hosts = ["n3"]"#, CollectError::Host("n3".to_owned())),
            (r#"processes = ["there"]"#, CollectError::Process("there".to_owned())),
        ];
        for (text, error) in refused {
            let (sender, _receiver) = mpsc::unbounded_channel();
            let started = Collector::start(&settings(text), &machines(), Instant::now(), &sender);
            assert_eq!(started.expect_err(text), error);
        }
        assert!(toml::from_str::<Settings>("intervals = 1").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn late_frames_restarts_and_lost_connections_are_gaps() {
        let (readings, mut receiver) = mpsc::unbounded_channel();
        let (start, interval) = (Instant::now(), Duration::from_secs(1));
        let host = "n1".to_owned();
        let mut series = Series { host, start, interval, before: None, last_ns: 0, lost: None, readings };
        // Seconds to wait, and what the clock of the host says then; no clock: the connection is
        // lost.
        let heard = [
            (1, Some(100)),
            (1, Some(101)),
            (4, Some(105)),
            (1, Some(106)),
            (1, Some(1)),
            (1, Some(2)),
            (0, None),
            (2, Some(4)),
            (1, Some(5)),
            (0, None),
        ];
        for (wait_s, clock_s) in heard {
            sleep(Duration::from_secs(wait_s)).await;
            match clock_s {
                Some(clock_s) => {
                    let frame = Frame { clock_ns: clock_s * 1_000_000_000, counters: Counters::default() };
                    series.frame(frame, |_| {});
                }
                None => series.lose("cable".to_owned()),
            }
        }
        sleep(Duration::from_secs(5)).await;
        series.finish();
        let second = |ns: u64| ns / 1_000_000_000;
        let mut read = Vec::new();
        while let Ok(reading) = receiver.try_recv() {
            read.push(match reading {
                Reading::Sample(sample) => format!("sample {}", second(sample.at_ns)),
                Reading::Gap(gap) => {
                    format!("gap {}..{}: {}", second(gap.from_ns), second(gap.to_ns), gap.why)
                }
            });
        }
        let expected = [
            "sample 2",
            "gap 2..6: it was late",
            "sample 7",
            "gap 7..8: the host was started anew",
            "sample 9",
            "gap 9..11: cable",
            "sample 12",
            "gap 12..17: cable",
        ];
        assert_eq!(read, expected);
    }
}
