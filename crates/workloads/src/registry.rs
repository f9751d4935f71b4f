//! Workloads by name.
//!
//! [`WORKLOADS`] is the one list of the workloads that a command line can name. Each entry is made
//! of the workload's [`Flags`], which stand beside its code: its name, its flags, what they come to
//! and what it needs of memory. A benchmark adds all flags to its own ([`WorkloadFlags`]), and
//! knows no workload.
//!
//! Several workloads may have a flag of one name, with one type of value: it is one flag, and its
//! help says what it means to each. What a client calls distributed is handed in with the
//! [`Setting`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};
use plimsoll_args::{Refusal, percent, refuse};
use serde_json::Value;

use crate::{AnyWorkload, micro, smallbank, tpcc, tpce};

/// All workloads, in the order of the help.
pub const WORKLOADS: &[Registration] = &[
    Registration::new::<tpcc::TpccFlags>(),
    Registration::new::<tpce::TpceFlags>(),
    Registration::new::<smallbank::SmallBankFlags>(),
    Registration::new::<micro::MicroFlags>(),
];

/// What a workload's flags are read with.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Shards with data, over all processes.
    pub shards: usize,
    /// Seed of all random inputs.
    pub seed: u64,
    /// Processes with data.
    pub processes: usize,
    /// The share of distributed work that was asked for, in per cent.
    pub distributed: Option<f64>,
    /// Measures how many rounds of a loop take that long on this machine.
    pub rounds_in: fn(Duration, fn(u64)) -> u64,
}

impl Setting {
    /// The share of work between shards; none of it if there is one shard.
    pub fn between_shards(&self, default: f64) -> Result<f64, Refusal> {
        if self.shards == 1 && self.distributed.is_some_and(|percent| percent > 0.0) {
            refuse!("--distributed needs a second shard: give --shards 2 or more, or leave it out");
        }
        let default = if self.shards == 1 { 0.0 } else { default };
        percent(self.distributed.unwrap_or(default), "distributed")
    }
}

/// The flags of a workload.
pub trait Flags: Args {
    /// Its name: see [`Workload::NAME`](crate::Workload::NAME).
    const NAME: &'static str;
    /// Its name in a report.
    const TITLE: &'static str;
    /// What it does, in a line of help.
    const ABOUT: &'static str;

    /// The scale that the flags come to, or why there is none.
    fn scale(self, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal>;
}

/// A workload and its scale, before it is made.
pub trait Scale: fmt::Debug + Send + Sync {
    /// Everything that was set, by the names of the flags.
    fn config(&self) -> Vec<(&'static str, Value)>;

    /// About how many bytes of memory the loaded data takes, with indexes.
    fn bytes_estimate(&self) -> u64;

    /// Makes the workload, or says why that is impossible.
    fn make(&self) -> Result<Arc<dyn AnyWorkload>, String>;
}

/// A workload that command lines can name.
pub struct Registration {
    /// Its name.
    pub name: &'static str,
    /// Its name in a report.
    pub title: &'static str,
    /// What it does, in a line of help.
    pub about: &'static str,
    augment: fn(Command) -> Command,
    read: Read,
}

/// What the flags of a workload come to.
type Read = fn(&ArgMatches, &Setting) -> Result<Arc<dyn Scale>, Refusal>;

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Registration {
    const fn new<F: Flags>() -> Registration {
        let (name, title, about) = (F::NAME, F::TITLE, F::ABOUT);
        Registration { name, title, about, augment: F::augment_args, read: read::<F> }
    }

    /// The workload of this name.
    pub fn named(name: &str) -> Option<&'static Registration> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// Its flags.
    fn flags(&self) -> Vec<Arg> {
        (self.augment)(Command::new(self.name)).get_arguments().cloned().collect()
    }
}

fn read<F: Flags>(matches: &ArgMatches, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
    F::from_arg_matches(matches).map_err(|error| Refusal::from(error.to_string()))?.scale(setting)
}

/// The flags of all workloads, as part of a command's.
#[derive(Clone, Debug)]
pub struct WorkloadFlags {
    matches: ArgMatches,
}

impl WorkloadFlags {
    /// The scale that the flags of a workload come to. Flags of others are ignored: see
    /// [`WorkloadFlags::refuse_others`].
    pub fn scale(&self, workload: &Registration, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
        (workload.read)(&self.matches, setting)
    }

    /// Refuses flags of other workloads.
    pub fn refuse_others(&self, workload: &Registration) -> Result<(), Refusal> {
        let own = workload.flags();
        let is_foreign = |flag: &Arg| {
            let id = flag.get_id();
            self.matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
                && own.iter().all(|own| own.get_id() != id)
        };
        for other in WORKLOADS {
            if let Some(flag) = other.flags().iter().find(|flag| is_foreign(flag)) {
                let (flag, owner, name) = (flag.get_long().unwrap_or_default(), other.name, workload.name);
                refuse!("--{flag} is a flag of {owner}, not of {name}: leave it out");
            }
        }
        Ok(())
    }
}

impl FromArgMatches for WorkloadFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<WorkloadFlags, clap::Error> {
        Ok(WorkloadFlags { matches: matches.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.matches = matches.clone();
        Ok(())
    }
}

impl Args for WorkloadFlags {
    fn augment_args(command: Command) -> Command {
        WORKLOADS.iter().flat_map(Registration::flags).fold(command, |command, flag| {
            let first = command.get_arguments().find(|first| first.get_id() == flag.get_id());
            let Some(help) = first.map(|first| first.get_help().cloned().unwrap_or_default()) else {
                return command.arg(flag);
            };
            let help = format!("{help}; {}", flag.get_help().cloned().unwrap_or_default());
            command.mut_arg(flag.get_id().clone(), |first| first.help(help))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        WorkloadFlags::augment_args(command)
    }
}
