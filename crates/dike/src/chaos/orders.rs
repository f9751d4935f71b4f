//! From a fault at a place to the orders of a guard.
//!
//! The text of a guard is put together of parameters as variables of the shell, the two functions
//! that put the fault in place and undo it, and the watch that calls them (`scripts/guard.sh`).
//! Nothing of it needs more than a POSIX shell and the tools that every Linux has (`dd`, `tail`,
//! `sleep`); `clock_skew` needs GNU `date`.
//!
//! | fault | here | by ssh | only a hook |
//! |---|---|---|---|
//! | `cpu`, `memory`, disks | the [worker](super::stress) | shell | hook |
//! | `pause`, `kill`, `clock_skew` | shell | shell | hook |
//! | `shutdown` | refused | ssh, and `power_on` here | hook |
//! | network, `custom` | hook | hook | hook |

use super::fault::{Aim, Fault};
use super::guard::Orders;
use super::machines::{Host, Machines, Process, Shell, quote};
use super::stress::{Work, Worker};

const GUARD: &str = include_str!("scripts/guard.sh");
const PROCESSES: &str = include_str!("scripts/processes.sh");
const PAUSE: &str = include_str!("scripts/pause.sh");
const KILL: &str = include_str!("scripts/kill.sh");
const CPU: &str = include_str!("scripts/cpu.sh");
const MEMORY: &str = include_str!("scripts/memory.sh");
const DISK: &str = include_str!("scripts/disk.sh");
const CLOCK: &str = include_str!("scripts/clock.sh");
const SHUTDOWN: &str = include_str!("scripts/shutdown.sh");
const HOOK: &str = include_str!("scripts/hook.sh");

/// The orders for this fault at this place, which the schedule's check has found to be of the right
/// kind.
///
/// * `limit_s`: after this time the guard undoes the fault even if nobody says so.
pub(crate) fn orders(
    fault: &Fault,
    place: &str,
    machines: &Machines,
    limit_s: u64,
    worker: &Worker,
) -> Orders {
    let process = (fault.aim() == Aim::Processes).then(|| machines.process(place)).flatten();
    let host = process.map_or(place, |process| &process.host);
    let host = machines.host(host).expect("the schedule was checked against the machines");
    let shell = host.shell(&machines.ssh);
    let for_hook = matches!(fault.aim(), Aim::Endpoints | Aim::Hooks);
    match (shell, &host.hook) {
        (Some(shell), _) if !for_hook => by_shell(fault, process, &host, shell, limit_s, worker),
        (_, Some(hook)) => by_hook(fault, place, hook, limit_s),
        _ => unreachable!("the schedule was checked: {} has a way to {place}", fault.name()),
    }
}

/// Variables of the shell.
struct Variables(String);

impl Variables {
    fn new(limit_s: u64) -> Variables {
        Variables(String::new()).with("limit", limit_s)
    }

    fn with(mut self, name: &str, value: impl ToString) -> Variables {
        self.0.push_str(&format!("{name}={}\n", quote(&value.to_string())));
        self
    }

    /// An absent value is an empty one.
    fn with_optional(self, name: &str, value: &Option<impl ToString>) -> Variables {
        let value = value.as_ref().map_or(String::new(), ToString::to_string);
        self.with(name, value)
    }

    fn orders(self, parts: &[&str], shell: Shell) -> Orders {
        let script = format!("{}{}\n{GUARD}", self.0, parts.join("\n"));
        Orders { words: shell.command(&script), first_line: None, shell }
    }
}

fn by_shell(
    fault: &Fault,
    process: Option<&Process>,
    host: &Host,
    shell: Shell,
    limit_s: u64,
    worker: &Worker,
) -> Orders {
    let variables = Variables::new(limit_s);
    let disk = |access, disk: &super::fault::DiskLoad| {
        let variables = Variables::new(limit_s).with("access", access).with("directory", &disk.directory);
        variables.with("file_mib", disk.file_mib).with("workers", disk.workers)
    };
    match fault {
        Fault::Cpu { .. } | Fault::Memory { .. } | Fault::DiskRead(_) | Fault::DiskWrite(_)
            if host.is_local() =>
        {
            let mut words = vec![worker.program.clone()];
            words.extend(worker.arguments.iter().cloned());
            let work = Work { limit_s, fault: fault.clone() };
            let line = serde_json::to_string(&work).expect("orders can be written");
            Orders { words, first_line: Some(line), shell }
        }
        Fault::Cpu { load_percent, cores } => {
            let variables = variables.with("load_percent", load_percent).with_optional("cores", cores);
            variables.orders(&[CPU], shell)
        }
        Fault::Memory { mib, percent_of_available } => {
            let variables = variables.with_optional("mib", mib);
            variables.with_optional("percent_of_available", percent_of_available).orders(&[MEMORY], shell)
        }
        Fault::DiskRead(load) => disk("read", load).orders(&[DISK], shell),
        Fault::DiskWrite(load) => disk("write", load).orders(&[DISK], shell),
        Fault::ClockSkew { offset_ms } => variables.with("offset_ms", offset_ms).orders(&[CLOCK], shell),
        Fault::Shutdown { stays_down } => {
            let power_on = host.power_on.as_ref().filter(|_| !stays_down);
            let command = host.shutdown.as_deref().unwrap_or("shutdown -h now");
            let variables = variables.with("reach", shell.words().expect("the schedule spares this machine"));
            let variables = variables.with("shutdown", quote(command)).with_optional("power_on", &power_on);
            variables.orders(&[SHUTDOWN], Shell::HERE)
        }
        Fault::Pause {} | Fault::Kill { .. } | Fault::KillTimestampSource { .. } => {
            let process = process.expect("these are aimed at processes");
            let restart = process.restart.as_ref().filter(|_| !fault.stays());
            let variables = variables.with_optional("pid", &process.pid).with_optional("restart", &restart);
            let variables = variables.with_optional("pid_file", &process.pid_file);
            let variables = variables.with_optional("pids_from", &process.pids_from);
            let part = if matches!(fault, Fault::Pause {}) { PAUSE } else { KILL };
            variables.orders(&[PROCESSES, part], shell)
        }
        _ => unreachable!("{} is for proxies and hooks", fault.name()),
    }
}

/// The hook runs here, whatever host it reaches.
fn by_hook(fault: &Fault, place: &str, hook: &str, limit_s: u64) -> Orders {
    let mut variables = fault.variables();
    variables.push(("DIKE_PLACE".to_owned(), place.to_owned()));
    let assignments: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={}", quote(value))).collect();
    let assignments = assignments.join(" ");
    let hint = format!("DIKE_PHASE=stop {assignments} sh -c {}", quote(hook));
    let script = Variables::new(limit_s).with("hook", hook).with("hint", hint);
    let export = format!("export {assignments}");
    script.orders(&[HOOK, &export], Shell::HERE)
}
