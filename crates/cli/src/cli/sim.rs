//! The flags of `plimsoll sim`, and what they come to.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use plimsoll_args::{JsonOutput, Refusal, duration, json_output, number, range, refuse, within};
use plimsoll_page::file::check_writable;
use plimsoll_page::help;
use plimsoll_runtime::sim::{Faults, Hardware};
use plimsoll_scale::cli::ScaleArgs;
use plimsoll_sim::plan::{FaultsName, Nth, PROTOCOLS, Plan, SCHEMES, Selection, WorkloadName, knobs};

/// Seeds that are run if none are named.
const SEEDS_DEFAULT: Range<u64> = 0..1000;

/// The flags of `plimsoll sim`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = examples(), allow_negative_numbers = true, args_conflicts_with_subcommands = true)]
pub struct SimArgs {
    /// Something else than worlds with faults.
    #[command(subcommand)]
    pub scale: Option<SimCommand>,

    /// Replay the world of one seed, and say what happened.
    #[arg(long, value_parser = number, value_name = "N", conflicts_with_all = ["seeds", "soak"], help_heading = "Worlds")]
    pub seed: Option<u64>,
    /// Run the worlds of these seeds, the last one excluded [default: 0..1000].
    #[arg(long, value_parser = range, value_name = "A..B", conflicts_with = "soak", help_heading = "Worlds")]
    pub seeds: Option<Range<u64>>,
    /// Run worlds for that long, of seeds that go on from the present time.
    #[arg(long, value_parser = duration, value_name = "DURATION", help_heading = "Worlds")]
    pub soak: Option<Duration>,
    /// Worlds that run at the same time [default: one per core].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Worlds")]
    pub threads: Option<u64>,

    /// occ, client_2pc, rococo, or two_pl by its lock policy: wait_die, wound_wait, no_wait
    /// [default: drawn from the seed].
    #[arg(long, value_parser = PROTOCOLS, hide_possible_values = true, value_name = "PROTOCOL", help_heading = "What runs")]
    pub protocol: Option<String>,
    /// dst, gts, vts, none, or rc, which is not serializable [default: drawn, but never rc].
    #[arg(long, value_parser = SCHEMES, hide_possible_values = true, value_name = "SCHEME", help_heading = "What runs")]
    pub scheme: Option<String>,
    /// random, reverse, cycle, append, pieces, smallbank, micro, tpcc, tpce or sql [default: drawn,
    /// but never reverse, tpce or sql].
    #[arg(long, value_parser = PossibleValuesParser::new(WorkloadName::ALL.iter().map(|workload| workload.name())), hide_possible_values = true, value_name = "WORKLOAD", help_heading = "What runs")]
    pub workload: Option<String>,
    /// Shards that hold data [default: drawn].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub shards: Option<u64>,
    /// Machines that hold no data: their clients coordinate what happens elsewhere, and they crash
    /// [default: drawn].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub fronts: Option<u64>,
    /// sync: every shard keeps a log, and all machines crash, also those with data. async: answers
    /// do not wait for the logs; machines crash alone or all at the same time, and the database
    /// goes back to one timestamp. none: only machines without data crash.
    #[arg(long, value_parser = ["none", "async", "sync"], hide_possible_values = true, value_name = "DURABILITY", default_value = "none", help_heading = "What runs")]
    pub durability: String,
    /// Keys of the workload that --workload names: rows, lists, accounts [default: as many as it
    /// can have].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub keys: Option<u64>,
    /// Times that slots are asked to move from one shard to another, data and all, while
    /// transactions run [default: drawn].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub moves: Option<u64>,
    /// OCC under DST validates along with its locks, in one round; or not [default: drawn].
    #[arg(long, value_name = "true|false", help_heading = "What runs")]
    pub one_round: Option<bool>,
    /// Clients per shard [default: drawn].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub clients: Option<u64>,
    /// Transactions of each client [default: drawn].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub transactions: Option<u64>,
    /// Run these transactions and leave out all others: a client's number, from 0 on through all
    /// shards, and which of its transactions, from 1 on; all that is not left out stays as it was.
    #[arg(long, value_parser = nth, value_delimiter = ',', value_name = "CLIENT.N,...", help_heading = "What runs")]
    pub only: Vec<Nth>,

    /// none, network, all, or drawn: a mixture that differs from seed to seed [default: drawn].
    #[arg(long, value_parser = ["none", "network", "all", "drawn"], hide_possible_values = true, value_name = "WHICH", help_heading = "What goes wrong")]
    pub faults: Option<String>,
    /// Set one fault, or one property of the machines, by its name below; repeatable.
    #[arg(long = "fault", value_name = "NAME=VALUE", help_heading = "What goes wrong")]
    pub knobs: Vec<String>,
    /// Leave out faults of these numbers; all others stay as they were.
    #[arg(long, value_delimiter = ',', value_name = "N,N,...", help_heading = "What goes wrong")]
    pub skip: Vec<u32>,
    /// Plant a bug.
    #[cfg(feature = "mutants")]
    #[arg(long, value_name = "NAME", help_heading = "What goes wrong")]
    pub mutant: Option<String>,

    /// With --seed: print every event in the order of virtual time.
    #[arg(long, requires = "seed", help_heading = "Output")]
    pub trace: bool,
    /// With --seed: draw the world, message by message and mark by mark, as a page that any browser
    /// opens.
    #[arg(long, value_name = "FILE", requires = "seed", help_heading = "Output")]
    pub timeline: Option<PathBuf>,
    /// With --seed and --workload append: write the history for other checkers, as JSON lines in
    /// Elle's form.
    #[arg(long, value_name = "FILE", requires = "seed", help_heading = "Output")]
    pub export: Option<PathBuf>,
    /// Show a world that fails as it is, instead of the smallest that fails the same way.
    #[arg(long, help_heading = "Output")]
    pub no_shrink: bool,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Output")]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// What else is simulated.
#[derive(Subcommand, Clone, Debug)]
pub enum SimCommand {
    /// Predict how fast a cluster would be: throughput, latency and aborts by nodes and timestamp
    /// scheme.
    ///
    /// The protocols' own code runs in a world in which everything has a price: lookups, messages,
    /// bytes, the oracle. Prices come from `plimsoll calibrate`, or are those of the DST paper's
    /// clusters.
    ///
    /// Exit status: 0 done; 2 bad usage.
    Scale(Box<ScaleArgs>),
}

/// Which worlds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Worlds {
    /// One.
    Seed(u64),
    /// Many.
    Seeds(Range<u64>),
    /// As many as there is time for, from this seed on.
    Soak(u64, Duration),
}

/// A simulation to run, complete and without contradictions.
#[derive(Clone, PartialEq, Debug)]
pub struct SimPlan {
    /// Which worlds.
    pub worlds: Worlds,
    /// Worlds at the same time.
    pub threads: usize,
    /// What is not drawn from the seed.
    pub selection: Selection,
    /// Whether to print the events.
    pub trace: bool,
    /// Where the picture goes.
    pub timeline: Option<PathBuf>,
    /// Where the history goes.
    pub export: Option<PathBuf>,
    /// Whether to look for a smaller failure.
    pub shrink: bool,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl SimArgs {
    /// Judges all flags together. `now` is a seed that no soak has had.
    pub fn validate(self, cores: usize, now: u64) -> Result<SimPlan, Refusal> {
        // A flag that is left out because it contradicts another is not missed by the parser.
        let details =
            [("trace", self.trace), ("timeline", self.timeline.is_some()), ("export", self.export.is_some())];
        if let (None, Some((flag, _))) = (self.seed, details.iter().find(|(_, given)| *given)) {
            refuse!("--{flag} is about one world: name it with --seed");
        }
        let worlds = match (self.seed, self.seeds, self.soak) {
            (Some(seed), ..) => Worlds::Seed(seed),
            (_, Some(seeds), _) if seeds.is_empty() => {
                refuse!("--seeds {}..{} is empty: give the smaller number first", seeds.start, seeds.end)
            }
            (_, Some(seeds), _) => Worlds::Seeds(seeds),
            (.., Some(time)) if time.is_zero() => refuse!("--soak 0s runs nothing: give a time such as 10m"),
            (.., Some(time)) => Worlds::Soak(now, time),
            _ => Worlds::Seeds(SEEDS_DEFAULT),
        };
        let within = |value: Option<u64>, flag: &str, max: u64| {
            value.map(|n| within(n, flag, 1, max).map(|n| n as usize)).transpose()
        };
        let of = |list: &[&'static str], name: Option<String>| {
            name.and_then(|name| list.iter().copied().find(|&known| known == name))
        };
        let selection = Selection {
            protocol: of(&PROTOCOLS, self.protocol),
            scheme: of(&SCHEMES, self.scheme),
            workload: self.workload.and_then(|name| WorkloadName::named(&name)),
            shards: within(self.shards, "shards", 64)?,
            fronts: match self.fronts {
                Some(0) => Some(0),
                fronts => within(fronts, "fronts", 16)?,
            },
            keys: self.keys,
            moves: match self.moves {
                Some(0) => Some(0),
                moves => within(moves, "moves", 100_000)?,
            },
            one_round: self.one_round,
            logs: self.durability != "none",
            to_cut: self.durability == "async",
            clients: within(self.clients, "clients", 1000)?,
            transactions: within(self.transactions, "transactions", 1_000_000)?,
            faults: match self.faults.as_deref() {
                Some("none") => FaultsName::None,
                Some("network") => FaultsName::Network,
                Some("all") => FaultsName::All,
                _ => FaultsName::Drawn,
            },
            knobs: self.knobs.iter().map(|text| knob(text)).collect::<Result<_, _>>()?,
            only: self.only,
            skip: self.skip,
            #[cfg(feature = "mutants")]
            mutant: self.mutant.as_deref().map(mutant).transpose()?,
            #[cfg(not(feature = "mutants"))]
            mutant: None,
        };
        Plan::drawn(0, &selection).map_err(Refusal::from)?;
        if let Some(file) = &self.export {
            if selection.workload != Some(WorkloadName::Append) {
                refuse!("--export writes histories of lists: add --workload append");
            }
            check_writable(file)?;
        }
        self.timeline.as_deref().map(check_writable).transpose()?;
        let json = json_output(self.json.as_ref())?;
        let outputs = [("timeline", &self.timeline), ("export", &self.export)];
        for (flag, file) in outputs.iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?))) {
            if matches!(&json, JsonOutput::File(other) if other == file) {
                refuse!("--{flag} and --json both write {}: give each a file of its own", file.display());
            }
        }
        Ok(SimPlan {
            worlds,
            threads: within(self.threads, "threads", 1024)?.unwrap_or(cores),
            selection,
            trace: self.trace,
            timeline: self.timeline,
            export: self.export,
            shrink: !self.no_shrink,
            json,
            quiet: self.quiet,
        })
    }
}

#[cfg(feature = "mutants")]
fn mutant(name: &str) -> Result<plimsoll_types::mutants::Mutant, Refusal> {
    use plimsoll_types::mutants::Mutant;
    let Some(&mutant) = Mutant::ALL.iter().find(|mutant| mutant.name() == name) else {
        let names: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
        refuse!("there is no mutant `{name}`: the mutants are {}", names.join(", "));
    };
    Ok(mutant)
}

fn knob(text: &str) -> Result<(String, String), Refusal> {
    let Some((name, value)) = text.split_once('=') else {
        refuse!("`--fault {text}` has no value: write a name and a value, such as loss=0.01");
    };
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads `3.12`.
fn nth(text: &str) -> Result<Nth, String> {
    let Some((client, place)) = text.split_once('.') else {
        return Err(format!(
            "`{text}` is not a transaction: write the client's number and which of its transactions, as in 3.12"
        ));
    };
    Ok(Nth { client: number(client)? as usize, place: number(place)? as usize })
}

const EXAMPLES: &[(&str, &str)] = &[
    (
        "plimsoll sim",
        "A thousand worlds: every protocol and scheme, drawn faults, random transactions; all judged.",
    ),
    (
        "plimsoll sim --seeds 0..100000 --protocol occ --scheme dst --workload random",
        "One pair, many worlds.",
    ),
    ("plimsoll sim --seed 42 --trace", "What happened in world 42, event by event."),
    (
        "plimsoll sim --seed 42 --timeline world.html",
        "The same as a picture; if something is violated, of the smallest world that fails that way.",
    ),
    ("plimsoll sim --scheme rc --seeds 0..20", "Read committed is not serializable: see it caught."),
    (
        "plimsoll sim --seeds 0..1000 --faults none --fault loss=0.05 --fault offset_ns=2000000",
        "Lost packets and wrong clocks, nothing else.",
    ),
];

fn examples() -> String {
    format!(
        "{}\nFaults, all durations in nanoseconds:\n{}\nMachines and network:\n{}",
        help::examples(EXAMPLES),
        help::meanings(knobs(Faults::KNOBS), 23),
        help::meanings(knobs(Hardware::KNOBS), 23)
    )
}

#[cfg(test)]
mod tests;
