//! What happens when, and where: the part of a configuration that describes faults.
//!
//! ```toml
//! [chaos]
//! seed = 1               # of jitter and losses
//! limit_s = 60           # how long putting a fault in place, and undoing it, may take
//! grace_s = 10           # after its end a fault is undone even if Dike says nothing any more
//!
//! [[chaos.faults]]
//! at_s = 60              # since the start of the run
//! for_s = 30
//! fault = "network_delay"
//! delay_ms = 50
//! where = ["db-1:5432"]
//!
//! [[chaos.faults]]
//! at_s = 120
//! for_s = 5
//! every_s = 20           # again, 20 s after it started
//! times = 3              # 120 s, 140 s, 160 s
//! fault = "pause"
//! where = ["db-2"]
//! ```
//!
//! A schedule is judged before a run, against the machines and the endpoints: every name exists and
//! is of the kind that the fault acts on, times are times, what would not come back says
//! `stays_down`, and faults that cannot hold at once at one place do not overlap. *Exclusive* are:
//! two faults of one kind (two delays at one endpoint would need a rule for which one counts),
//! pause and kill of a process, partition and half-open at an endpoint, and a shutdown with
//! everything on its host.
//!
//! Left out: faults that start upon events. A schedule is part of an experiment that others repeat.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::fault::{Aim, Fault};
use super::machines::{MachineError, Machines};

/// The faults of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// What jitter and losses are drawn from. Default: 1.
    pub seed: u64,
    /// How long Dike waits for a fault to be put in place, and to be undone, in seconds; and for a
    /// database that was started again at the end of a run to answer. Default: 60.
    pub limit_s: f64,
    /// How long after its end a fault is undone by its own watch if Dike does not do it, in
    /// seconds. Default: 10.
    pub grace_s: f64,
    /// What happens.
    pub faults: Vec<ScheduledFault>,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { seed: 1, limit_s: 60.0, grace_s: 10.0, faults: Vec::new() }
    }
}

/// One entry of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScheduledFault {
    /// When it starts, in seconds since the start of the run.
    pub at_s: f64,
    /// How long it holds, in seconds. Absent for a reset, which is over at once, and for what stays
    /// down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_s: Option<f64>,
    /// How long after its start it starts again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_s: Option<f64>,
    /// How often it happens. Default: 1.
    #[serde(skip_serializing_if = "is_one")]
    pub times: u32,
    /// The hosts, processes or endpoints it is aimed at.
    #[serde(rename = "where", skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// What happens.
    #[serde(flatten)]
    pub fault: Fault,
}

fn is_one(times: &u32) -> bool {
    *times == 1
}

/// The common part by hand, the rest as a fault: serde cannot both flatten and refuse unknown
/// parameters.
impl<'de> Deserialize<'de> for ScheduledFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ScheduledFault, D::Error> {
        fn take<T: for<'a> Deserialize<'a>, E: serde::de::Error>(
            table: &mut Map<String, Value>,
            key: &str,
        ) -> Result<Option<T>, E> {
            let read =
                |value| serde_json::from_value(value).map_err(|error| E::custom(format!("`{key}`: {error}")));
            table.remove(key).map(read).transpose()
        }
        let mut table = Map::deserialize(deserializer)?;
        let at_s = take(&mut table, "at_s")?.ok_or_else(|| D::Error::missing_field("at_s"))?;
        let for_s = take(&mut table, "for_s")?;
        let every_s = take(&mut table, "every_s")?;
        let times = take(&mut table, "times")?.unwrap_or(1);
        let places = take(&mut table, "where")?.unwrap_or_default();
        let fault = Fault::deserialize(Value::Object(table)).map_err(D::Error::custom)?;
        Ok(ScheduledFault { at_s, for_s, every_s, times, places, fault })
    }
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleError {
    /// The machines are described wrongly.
    Machines(MachineError),
    /// `limit_s` or `grace_s` is not a time.
    Limit,
    /// An entry is wrong.
    Entry {
        /// Which one, counted from 1.
        number: usize,
        /// The fault in it.
        fault: String,
        /// What is wrong.
        problem: Problem,
    },
}

/// What is wrong with an entry of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A time is negative, too large or no number.
    Time(&'static str),
    /// It says `for_s`, and lasts for no time or for ever.
    NeedlessDuration,
    /// It does not say `for_s`.
    NoDuration,
    /// It starts after the end of the run, in seconds.
    AfterTheRun(f64),
    /// It is repeated without `every_s`, or `every_s` is not longer than `for_s`, or `times` is 0.
    Repetition,
    /// A parameter and its range.
    Range(&'static str, &'static str),
    /// It does not say where.
    NoPlace,
    /// This place does not exist; these do.
    UnknownPlace(String, Vec<String>),
    /// No process is marked as the source of timestamps, or this one is not.
    NoTimestampSource(Option<String>),
    /// This process has no command that starts it again.
    NoRestart(String),
    /// This host has no command that starts it again.
    NoPowerOn(String),
    /// It would shut down the machine Dike runs on.
    ShutsItselfDown,
    /// It cannot hold at this place together with this other entry, counted from 1.
    Overlaps(usize, String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Time(field) => write!(f, "`{field}` has to be a number of seconds, from 0 to a year"),
            Problem::NeedlessDuration => write!(f, "it lasts for no time or for ever: leave `for_s` out"),
            Problem::NoDuration => write!(f, "`for_s` is missing, and has to be more than 0"),
            Problem::AfterTheRun(run_s) => write!(f, "it would start after the run, which lasts {run_s} s"),
            Problem::Repetition => {
                write!(f, "`times` to be 1, or up to {TIMES_MAX} with an `every_s` longer than `for_s`")
            }
            Problem::Range(name, range) => write!(f, "`{name}`: {range}"),
            Problem::NoPlace => write!(f, "`where` is missing"),
            Problem::UnknownPlace(place, known) if known.is_empty() => {
                write!(f, "it cannot be aimed at `{place}`: there is nothing that it acts on")
            }
            Problem::UnknownPlace(place, known) => {
                write!(f, "it cannot be aimed at `{place}`, only at {}", known.join(", "))
            }
            Problem::NoTimestampSource(None) => write!(f, "no process is marked `timestamp_source = true`"),
            Problem::NoTimestampSource(Some(process)) => {
                write!(f, "process {process} is not marked `timestamp_source = true`")
            }
            Problem::NoRestart(process) => {
                write!(
                    f,
                    "process {process} has no `restart` command; give it one, or say `stays_down = true`"
                )
            }
            Problem::NoPowerOn(host) => {
                write!(f, "host {host} has no `power_on` command; give it one, or say `stays_down = true`")
            }
            Problem::ShutsItselfDown => write!(f, "it would shut down the machine Dike runs on"),
            Problem::Overlaps(other, place) => {
                write!(f, "at {place} it overlaps with fault {other}, and the two exclude each other")
            }
        }
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Machines(error) => write!(f, "{error}"),
            ScheduleError::Limit => {
                write!(f, "`limit_s` has to be from 1 s, `grace_s` from 0 s, to a year")
            }
            ScheduleError::Entry { number, fault, problem } => {
                write!(f, "fault {number} ({fault}): {problem}")
            }
        }
    }
}

impl std::error::Error for ScheduleError {}

/// One fault at all of its places, once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurrence {
    /// The entry of the schedule, counted from 0.
    pub entry: usize,
    /// What happens.
    pub fault: Fault,
    /// Where.
    pub places: Vec<String>,
    /// When, in nanoseconds since the start of the run.
    pub from_ns: u64,
    /// Until when; nothing if it stays.
    pub to_ns: Option<u64>,
}

/// The longest time that is accepted.
const YEAR_S: f64 = 366.0 * 86_400.0;

/// The most times that an entry is repeated.
const TIMES_MAX: u32 = 1_000;

pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Schedule {
    /// Judges the schedule.
    ///
    /// * `endpoints`: the names of the endpoints that have a proxy before them.
    /// * `run_s`: how long the run lasts, in seconds, if that is known.
    ///
    /// Returns the first thing that is wrong.
    pub fn check(
        &self,
        machines: &Machines,
        endpoints: &[String],
        run_s: Option<f64>,
    ) -> Result<(), ScheduleError> {
        machines.check().map_err(ScheduleError::Machines)?;
        if !(1.0..=YEAR_S).contains(&self.limit_s) || !(0.0..=YEAR_S).contains(&self.grace_s) {
            return Err(ScheduleError::Limit);
        }
        let wrong = |index: usize, problem| {
            let fault = self.faults[index].fault.name();
            Err(ScheduleError::Entry { number: index + 1, fault, problem })
        };
        for (index, entry) in self.faults.iter().enumerate() {
            let times = entry.check_times(run_s);
            if let Err(problem) = times.and_then(|()| entry.check_places(machines, endpoints)) {
                return wrong(index, problem);
            }
        }
        let occurrences = self.occurrences(machines);
        for (index, one) in occurrences.iter().enumerate() {
            for other in &occurrences[..index] {
                if let Some(place) = one.excludes(other, machines) {
                    return wrong(one.entry, Problem::Overlaps(other.entry + 1, place));
                }
            }
        }
        Ok(())
    }

    /// Everything that will happen, in the order of entries.
    pub(crate) fn occurrences(&self, machines: &Machines) -> Vec<Occurrence> {
        let mut occurrences = Vec::new();
        for (index, entry) in self.faults.iter().enumerate() {
            let mut places = entry.places.clone();
            if places.is_empty() {
                let sources = machines.processes.iter().filter(|process| process.timestamp_source);
                places = sources.map(|process| process.name.clone()).collect();
            }
            for time in 0..entry.times {
                let from_ns = nanoseconds(entry.at_s + f64::from(time) * entry.every_s.unwrap_or(0.0));
                let length_ns = nanoseconds(entry.for_s.unwrap_or(0.0));
                let to_ns = (!entry.fault.stays()).then_some(from_ns + length_ns);
                let (fault, places) = (entry.fault.clone(), places.clone());
                occurrences.push(Occurrence { entry: index, fault, places, from_ns, to_ns });
            }
        }
        occurrences
    }
}

impl ScheduledFault {
    fn check_times(&self, run_s: Option<f64>) -> Result<(), Problem> {
        let is_time = |seconds: f64| (0.0..=YEAR_S).contains(&seconds);
        if !is_time(self.at_s) {
            return Err(Problem::Time("at_s"));
        }
        if let Some(for_s) = self.for_s.filter(|for_s| !is_time(*for_s)) {
            return Err(if for_s == 0.0 { Problem::NoDuration } else { Problem::Time("for_s") });
        }
        if self.fault.stays() || self.fault.is_instant() {
            if self.for_s.is_some() {
                return Err(Problem::NeedlessDuration);
            }
        } else if self.for_s.is_none_or(|for_s| for_s == 0.0) {
            return Err(Problem::NoDuration);
        }
        let longer = |every_s: f64| is_time(every_s) && every_s > self.for_s.unwrap_or(0.0);
        let repeated = self.every_s.is_some_and(longer) && !self.fault.stays() && self.times <= TIMES_MAX;
        if self.times == 0 || (self.times > 1 || self.every_s.is_some()) && !repeated {
            return Err(Problem::Repetition);
        }
        let last_s = self.at_s + f64::from(self.times - 1) * self.every_s.unwrap_or(0.0);
        if let Some(run_s) = run_s.filter(|run_s| last_s >= *run_s) {
            return Err(Problem::AfterTheRun(run_s));
        }
        match self.fault.out_of_range() {
            Some((name, range)) => Err(Problem::Range(name, range)),
            None => Ok(()),
        }
    }

    fn check_places(&self, machines: &Machines, endpoints: &[String]) -> Result<(), Problem> {
        let is_source = matches!(self.fault, Fault::KillTimestampSource { .. });
        if self.places.is_empty() && !is_source {
            return Err(Problem::NoPlace);
        }
        let mut known = self.known_places(machines, endpoints);
        if is_source {
            if known.is_empty() {
                return Err(Problem::NoTimestampSource(None));
            }
            let other = |place: &&String| machines.process(place).is_some() && !known.contains(*place);
            if let Some(other) = self.places.iter().find(other) {
                return Err(Problem::NoTimestampSource(Some(other.clone())));
            }
        }
        if let Some(unknown) = self.places.iter().find(|place| !known.contains(place)) {
            known.sort();
            return Err(Problem::UnknownPlace(unknown.clone(), known));
        }
        let places = if self.places.is_empty() { &known } else { &self.places };
        places.iter().try_for_each(|place| self.check_return(place, machines))
    }

    /// The places that this fault can be aimed at.
    fn known_places(&self, machines: &Machines, endpoints: &[String]) -> Vec<String> {
        let hosts = machines.hosts.iter();
        let hooks = hosts.clone().filter(|host| host.hook.is_some()).map(|host| host.name.clone());
        match self.fault.aim() {
            Aim::Hosts => {
                let mut names: Vec<String> = hosts.map(|host| host.name.clone()).collect();
                if !names.iter().any(|name| name == super::machines::LOCALHOST) {
                    names.push(super::machines::LOCALHOST.to_owned());
                }
                names
            }
            Aim::Hooks => hooks.collect(),
            Aim::Endpoints => endpoints.iter().cloned().chain(hooks).collect(),
            Aim::Processes => {
                let source = matches!(self.fault, Fault::KillTimestampSource { .. });
                let meant = machines.processes.iter().filter(|process| process.timestamp_source || !source);
                meant.map(|process| process.name.clone()).collect()
            }
        }
    }

    /// What goes down has a way to come back. A hook is told when, and finds its own.
    fn check_return(&self, place: &str, machines: &Machines) -> Result<(), Problem> {
        match self.fault {
            Fault::Kill { stays_down } | Fault::KillTimestampSource { stays_down } => {
                let process = machines.process(place).expect("the place was found");
                let host = machines.host(&process.host).expect("the machines were checked");
                let by_hook = host.shell(&machines.ssh).is_none();
                if !stays_down && process.restart.is_none() && !by_hook {
                    return Err(Problem::NoRestart(place.to_owned()));
                }
            }
            Fault::Shutdown { stays_down } => {
                let host = machines.host(place).expect("the place was found");
                if host.is_local() {
                    return Err(Problem::ShutsItselfDown);
                }
                if !stays_down && host.power_on.is_none() && host.ssh.is_some() {
                    return Err(Problem::NoPowerOn(place.to_owned()));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Occurrence {
    /// The place at which the two cannot hold together, if there is one.
    fn excludes(&self, other: &Occurrence, machines: &Machines) -> Option<String> {
        let ends = |one: &Occurrence| one.to_ns.unwrap_or(u64::MAX);
        if self.from_ns >= ends(other) || other.from_ns >= ends(self) {
            return None;
        }
        let down = |one: &Occurrence| matches!(one.fault, Fault::Shutdown { .. });
        let host_of = |fault: &Fault, place: &String| match fault.aim() {
            Aim::Processes => machines.process(place).map(|process| process.host.clone()),
            Aim::Hosts | Aim::Hooks => Some(place.clone()),
            Aim::Endpoints => machines.host(place).map(|host| host.name),
        };
        let group = |fault: &Fault| match fault {
            Fault::Pause {} | Fault::Kill { .. } | Fault::KillTimestampSource { .. } => "process".to_owned(),
            Fault::NetworkPartition { .. } | Fault::NetworkHalfOpen {} => "link".to_owned(),
            other => other.name(),
        };
        for place in &self.places {
            for elsewhere in &other.places {
                let same_host = || {
                    let host = host_of(&self.fault, place);
                    host.is_some() && host == host_of(&other.fault, elsewhere)
                };
                let same_place = place == elsewhere && self.fault.aim() == other.fault.aim();
                if same_place && group(&self.fault) == group(&other.fault)
                    || (down(self) || down(other)) && same_host()
                {
                    return Some(place.clone());
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
