//! What the tests of faults play with: processes, a folder, a pretended ssh.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plimsoll_dike::chaos::Chaos;
use plimsoll_dike::chaos::machines::Machines;
use plimsoll_dike::chaos::proxy::Switch;
use plimsoll_dike::chaos::schedule::{Schedule, ScheduleError};
use plimsoll_dike::chaos::stress::Worker;
use tokio::sync::{Mutex, MutexGuard};

/// A folder of one test.
pub struct Stage {
    folder: PathBuf,
    alone: Option<MutexGuard<'static, ()>>,
}

/// The tests look at all processes of this one, so they have it to themselves, one after the other.
static ALONE: Mutex<()> = Mutex::const_new(());

impl Drop for Stage {
    fn drop(&mut self) {
        if self.alone.is_some() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl Stage {
    pub async fn new() -> Stage {
        let alone = Some(ALONE.lock().await);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("chaos-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let stage = Stage { folder, alone };
        // A clock that is off by what a file says, in nanoseconds.
        stage.script(
            "bin/date",
            r#"offset=$(cat "$0.offset" 2>/dev/null) || offset=0
               now=$(/bin/date +%s%N)
               case $1 in
                   -s) wanted=${2#@}; echo $((${wanted%.*}${wanted#*.} - now)) >"$0.offset" ;;
                   +%s%N) echo $((now + offset)) ;;
                   *) exit 1 ;;
               esac"#,
        );
        // Options, a host, one text; what runs there finds the clock of that machine.
        stage.script(
            "ssh",
            r#"while [ "$1" = -o ]; do shift 2; done
               [ "$1" = root@far ] && [ $# = 2 ] || exit 255
               echo 'Welcome to far!'
               PATH="$(dirname "$0")/bin:$PATH" TMPDIR="$(dirname "$0")" exec sh -c "$2""#,
        );
        stage
    }

    pub fn at(folder: PathBuf) -> Stage {
        Stage { folder, alone: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn ssh(&self) -> String {
        self.path("ssh").display().to_string()
    }

    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// How many files in the folder have such a name.
    pub fn files(&self, start: &str) -> usize {
        let entries = std::fs::read_dir(&self.folder).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(start))
            .count()
    }

    pub fn chaos(&self, machines: &str, faults: &str, switches: Vec<Switch>) -> Result<Chaos, ScheduleError> {
        let machines: Machines = toml::from_str(machines).unwrap();
        let schedule: Schedule =
            toml::from_str(&format!("limit_s = 30\ngrace_s = 1\nfaults = [{}]", faults.replace('\n', " ")))
                .unwrap();
        let worker = Worker::of_this_program(&["--ignored", "--exact", "--nocapture", "worker"]).unwrap();
        Chaos::new(&schedule, &machines, switches, worker, None)
    }

    /// This program again, as something else.
    pub fn again(&self, part: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", part]).env("DIKE_TEST_FOLDER", &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub fn clock_offset_ns(&self) -> i64 {
        std::fs::read_to_string(self.path("bin/date.offset")).unwrap().trim().parse().unwrap()
    }

    pub fn set_clock_offset_ns(&self, offset_ns: i64) {
        std::fs::write(self.path("bin/date.offset"), offset_ns.to_string()).unwrap();
    }

    /// The process of ours that guards this one: its text names it.
    pub fn guard_of(&self, pid: u32) -> u32 {
        let named = |guard: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{guard}/cmdline")).unwrap_or_default();
            text.contains(&format!("pid={pid}\n"))
        };
        descendants(std::process::id()).into_iter().find(named).expect("there is a guard")
    }
}

/// A process that faults are aimed at.
pub struct Victim(Child);

impl Victim {
    pub fn alone() -> Victim {
        Victim(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    pub fn with_a_child() -> Victim {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]);
        let victim = Victim(command.spawn().unwrap());
        eventually("it has a child", || descendants(victim.pid()).len() == 2);
        victim
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn was_killed(&mut self) -> bool {
        self.0.wait().unwrap().signal() == Some(9)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        for pid in descendants(self.pid()) {
            kill(pid, "KILL");
        }
        let _ = self.0.wait();
    }
}

pub fn kill(pid: u32, signal: &str) {
    let _ = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).stderr(Stdio::null()).status();
}

/// State and parent of a process.
fn look(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let mut rest = text.rsplit(") ").next()?.split(' ');
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

/// The letter of its state; nothing if it is gone.
pub fn state(pid: u32) -> Option<char> {
    look(pid).map(|(state, _)| state)
}

pub fn alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

pub fn resident_mib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    // Pages of 4 KiB.
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) / 256
}

/// A process and all that descend from it, as far as they run.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((_, parent)) = look(pid).filter(|(state, _)| *state != 'Z') {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.get(pid).into_iter().flatten());
        next += 1;
    }
    found
}

pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "this never happens: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
