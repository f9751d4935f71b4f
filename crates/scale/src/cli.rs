//! The flags of `plimsoll sim scale` and `plimsoll calibrate`, and what they come to.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plimsoll_args::pairs::{protocol, scheme};
use plimsoll_args::{JsonOutput, Refusal, duration, json_output, number, refuse, within};
use plimsoll_bench::report::table::workload_title;
use plimsoll_page::file::check_writable;
use plimsoll_page::help;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair, Protocol, Scheme};
use plimsoll_workloads::Workload;
use plimsoll_workloads::micro::Micro;
use plimsoll_workloads::smallbank::SmallBank;
use plimsoll_workloads::tpcc::Tpcc;
use plimsoll_workloads::tpce::Tpce;

use crate::machines;
use crate::predict::model::CostModel;
use crate::predict::published::{FIGURES, IN_FLIGHT};
use crate::predict::study::{Configuration, Load, TPCE_CUSTOMERS};
use crate::predict::{Cluster, DOUBLINGS, published::Figure};

/// Maximum number of shards of a world: with TPC-C they take 4 GB, however few items there are.
const SHARDS_MAX: usize = 2048;
/// The same with TPC-E, where each shard has copies of what never changes: 20,000 rows and more.
const TPCE_SHARDS_MAX: usize = 512;
/// TPC-E's customers of a shard's home, as on 24 cores of a machine with 5,000.
const TPCE_HOME: u32 = 200;

/// The flags of `plimsoll sim scale`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = scale_examples())]
pub struct ScaleArgs {
    /// What runs [default: tpcc].
    #[arg(long, value_enum, value_name = "WORKLOAD", help_heading = "What runs")]
    pub workload: Option<WorkloadName>,
    /// The concurrency-control protocol [default: occ].
    #[arg(
        long,
        value_parser = protocol(),
        hide_possible_values = true,
        value_name = "occ|two_pl|client_2pc|rococo",
        help_heading = "What runs"
    )]
    pub protocol: Option<Protocol>,
    /// Timestamp schemes; ratios are to the first [default: dst,rc,none,vts,gts, those that the
    /// protocol goes with].
    #[arg(
        long,
        value_parser = scheme(),
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "SCHEME,...",
        help_heading = "What runs"
    )]
    pub schemes: Vec<Scheme>,
    /// Numbers of nodes that hold data: a list, or A..B for A, twice A, and so on up to B; 2048
    /// shards in all at most [default: 1..16].
    #[arg(long, value_parser = nodes, value_name = "A..B|N,N,...", help_heading = "What runs")]
    pub nodes: Option<Nodes>,
    /// Latency over throughput, at each of these numbers of transactions in flight per shard
    /// [default: what goes with the machine, and nodes are the axis].
    #[arg(
        long,
        value_parser = number,
        value_delimiter = ',',
        conflicts_with = "concurrency",
        value_name = "N,N,...",
        help_heading = "What runs"
    )]
    pub load: Vec<u64>,
    /// Districts that a Stock-Level looks at, 1 to 20 (tpcc) [default: 1].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub districts: Option<u64>,
    /// Spread each warehouse over all shards (tpcc).
    #[arg(long, help_heading = "What runs")]
    pub spread: bool,
    /// Customers of each thousand that there are, a divisor of it and a multiple of 5 (tpce)
    /// [default: as many as memory has room for].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "What runs")]
    pub customers: Option<u64>,
    /// Transfers to another shard, percent (smallbank) [default: 1].
    #[arg(long, value_name = "PERCENT", help_heading = "What runs")]
    pub distributed: Option<f64>,

    /// What things cost: a file that `plimsoll calibrate` has written, or `reference`, or a cluster
    /// of the DST paper: `aws`, `val` (10 GbE) or `vlr` (100 Gb RDMA) [default: reference].
    #[arg(long, value_name = "FILE|NAME", help_heading = "Machines")]
    pub machine: Option<String>,
    /// Shards per node, one per core [default: what the machine has].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Machines")]
    pub shards_per_node: Option<u64>,
    /// Transactions in flight per shard [default: what goes with the machine].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Machines")]
    pub concurrency: Option<u64>,

    /// Predict the figures of the DST paper, and print published and predicted ratios side by side.
    #[arg(long, conflicts_with_all = ["workload", "protocol", "schemes", "nodes", "load", "customers", "districts", "spread", "distributed", "machine", "shards_per_node"], help_heading = "What runs")]
    pub paper: bool,
    /// With --paper: only these, such as 12(a), 12(b) or smallbank-tcp.
    #[arg(
        long,
        value_delimiter = ',',
        requires = "paper",
        value_name = "NUMBER,...",
        help_heading = "What runs"
    )]
    pub figures: Vec<String>,

    /// Transactions that a prediction commits at least [default: 20000 and 50 per shard].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Runs")]
    pub transactions: Option<u64>,
    /// Seed of all that is drawn [default: 1].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Runs")]
    pub seed: Option<u64>,

    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Output")]
    pub json: Option<Option<PathBuf>>,
    /// Write a page with charts.
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// No progress, only the result.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// The workloads that can be predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Order processing: nine tables, five transactions, 8% read-only (TPC-C).
    Tpcc,
    /// A brokerage and its market: 33 tables, ten transactions, 77% read-only (TPC-E).
    Tpce,
    /// A bank: six tiny transactions on two accounts at most, hot spots.
    #[value(name = "smallbank")]
    SmallBank,
    /// The DST paper's microbenchmarks: a few 8-byte tuples, read or updated, or time spun away.
    Micro,
}

impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WorkloadName::Tpcc => Tpcc::NAME,
            WorkloadName::Tpce => Tpce::NAME,
            WorkloadName::SmallBank => SmallBank::NAME,
            WorkloadName::Micro => Micro::NAME,
        })
    }
}

/// Numbers of nodes, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nodes(Vec<usize>);

/// One series of predictions: the same thing at several places of an axis.
#[derive(Clone, Debug)]
pub struct Series {
    /// The figure that it is a prediction of.
    pub figure: Option<&'static Figure>,
    /// What it shows.
    pub title: String,
    /// What its axis is.
    pub axis: &'static str,
    /// Places on the axis.
    pub at: Vec<u64>,
    /// Schemes, the reference first.
    pub schemes: Vec<&'static str>,
    /// What things cost.
    pub model: CostModel,
    /// By place and scheme.
    pub configurations: Vec<Vec<Configuration>>,
}

/// Predictions to make, complete and without contradictions.
#[derive(Clone, Debug)]
pub struct ScalePlan {
    /// What is predicted.
    pub series: Vec<Series>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Where the HTML page goes.
    pub report: Option<PathBuf>,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl ScaleArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<ScalePlan, Refusal> {
        let json = json_output(self.json.as_ref())?;
        if let Some(path) = &self.report {
            check_writable(path)?;
        }
        let series = if self.paper { self.figures()? } else { vec![self.sweep()?] };
        Ok(ScalePlan { series, json, report: self.report, quiet: self.quiet })
    }

    fn transactions(&self, shards: usize) -> Result<u64, Refusal> {
        let transactions = self.transactions.unwrap_or(20_000 + 50 * shards as u64);
        within(transactions, "transactions", 100, 1_000_000_000)
    }

    fn figures(&self) -> Result<Vec<Series>, Refusal> {
        let known = |number: &&String| FIGURES.iter().any(|figure| figure.is(number));
        if let Some(unknown) = self.figures.iter().find(|number| !known(number)) {
            let known: Vec<&str> = FIGURES.iter().map(|figure| figure.number).collect();
            refuse!("--figures {unknown} is not one that can be predicted: there are {}", known.join(", "))
        }
        let wanted =
            |figure: &&Figure| self.figures.is_empty() || self.figures.iter().any(|number| figure.is(number));
        FIGURES.iter().filter(wanted).map(|figure| self.figure(figure)).collect()
    }

    fn figure(&self, figure: &'static Figure) -> Result<Series, Refusal> {
        let model = figure.model(machines::named("machine", figure.machine)?);
        let concurrency =
            within(self.concurrency.unwrap_or(model.concurrency.into()), "concurrency", 1, 1024)?;
        let node = (model.shards_per_node as usize, concurrency as usize);
        let transactions = self.transactions(figure.machines * node.0 / figure.cores_per_shard)?;
        let seed = self.seed.unwrap_or(1);
        let configurations = figure.at.iter().map(|&at| {
            let of = |&scheme| figure.configuration(at, scheme, node, transactions, seed);
            figure.schemes.iter().map(of).collect()
        });
        Ok(Series {
            figure: Some(figure),
            title: figure.heading(),
            axis: figure.axis,
            at: figure.at.to_vec(),
            schemes: figure.schemes.to_vec(),
            configurations: configurations.collect(),
            model,
        })
    }

    fn sweep(&self) -> Result<Series, Refusal> {
        let model = machines::named("machine", self.machine.as_deref().unwrap_or("reference"))?;
        let per_node =
            within(self.shards_per_node.unwrap_or(model.shards_per_node.into()), "shards-per-node", 1, 256)?;
        let concurrency =
            within(self.concurrency.unwrap_or(model.concurrency.into()), "concurrency", 1, 1024)?;
        self.load.iter().try_for_each(|&load| within(load, "load", 1, 1024).map(drop))?;
        if !self.load.is_sorted_by(|a, b| a < b) {
            refuse!("--load is not ascending: give a list such as 1,2,4,8")
        }
        let nodes = match (&self.nodes, self.load.is_empty()) {
            (Some(Nodes(nodes)), true) => nodes.clone(),
            (Some(Nodes(nodes)), false) if nodes.len() == 1 => nodes.clone(),
            (Some(_), false) => refuse!("--load is for one number of nodes: give --nodes 16, for example"),
            (None, true) => doubling(1..=16),
            (None, false) => vec![16],
        };
        let workload = self.workload.unwrap_or(WorkloadName::Tpcc);
        let shards_max = if workload == WorkloadName::Tpce { TPCE_SHARDS_MAX } else { SHARDS_MAX };
        if let Some(&most) = nodes.last().filter(|&&most| most.saturating_mul(per_node as usize) > shards_max)
        {
            let instead = match shards_max / most {
                0 => String::new(),
                fewer => format!(", or --shards-per-node {fewer}"),
            };
            refuse!(
                "{most} nodes of {per_node} shards are too many for a world, which has at most {shards_max} shards: \
                 give at most {} nodes{instead}",
                shards_max / per_node as usize
            )
        }
        for (flag, given) in [("districts", self.districts.is_some()), ("spread", self.spread)] {
            if given && workload != WorkloadName::Tpcc {
                refuse!("--{flag} is a flag of tpcc, not of {workload}: leave it out")
            }
        }
        if self.distributed.is_some() && workload != WorkloadName::SmallBank {
            refuse!("--distributed is a flag of smallbank, not of {workload}: leave it out")
        }
        if self.customers.is_some() && workload != WorkloadName::Tpce {
            refuse!("--customers is a flag of tpce, not of {workload}: leave it out")
        }
        let customers = self.customers.map(|customers| {
            let known = |&&known: &&u32| u64::from(known) == customers;
            TPCE_CUSTOMERS.iter().find(known).copied().ok_or_else(|| {
                let near = TPCE_CUSTOMERS.iter().min_by_key(|&&known| customers.abs_diff(known.into()));
                format!("--customers {customers} is no even part of 1,000: give {}", near.expect("a size"))
            })
        });
        let customers = customers.transpose()?;
        let load = match workload {
            WorkloadName::Tpcc => {
                let districts = within(self.districts.unwrap_or(1), "districts", 1, 20)? as u32;
                Load::Tpcc { districts, spread: None }
            }
            WorkloadName::Tpce => Load::Tpce { home: TPCE_HOME, customers, paper: false },
            WorkloadName::SmallBank => match self.distributed.unwrap_or(1.0) {
                percent if (0.0..=100.0).contains(&percent) => Load::SmallBank { distributed_pct: percent },
                percent => refuse!("--distributed {percent} is not a percentage: give 0 to 100"),
            },
            WorkloadName::Micro => Load::Micro,
        };
        model.access_to(load.name())?;
        let protocol = self.protocol.unwrap_or(Protocol::Occ);
        let pair = |scheme| Pair { protocol, scheme };
        let schemes: Vec<Scheme> = match self.schemes.as_slice() {
            [] => [Scheme::Dst, Scheme::Rc, Scheme::None, Scheme::Vts, Scheme::Gts]
                .into_iter()
                .filter(|&scheme| LEGAL_PAIRS.contains(&pair(scheme)))
                .collect(),
            schemes => schemes.to_vec(),
        };
        schemes.iter().try_for_each(|&scheme| pair(scheme).legal(LEGAL_PAIRS).map(drop))?;
        let schemes: Vec<&'static str> = schemes.into_iter().map(Scheme::name).collect();
        let in_flight = |load: u64| (nodes[0], load as usize);
        // Places on the axis: nodes, and transactions in flight per shard.
        let places: Vec<(usize, usize)> = match self.load.is_empty() {
            true => nodes.iter().map(|&nodes| (nodes, concurrency as usize)).collect(),
            false => self.load.iter().copied().map(in_flight).collect(),
        };
        let configurations = places.iter().map(|&(nodes, concurrency)| {
            let cluster = |&scheme| {
                Ok::<Cluster, Refusal>(Cluster {
                    nodes,
                    shards_per_node: per_node as usize,
                    oracle_inside: false,
                    threads: None,
                    concurrency,
                    protocol: protocol.name(),
                    scheme,
                    oracle: Default::default(),
                    awaits_report: false,
                    transactions: self.transactions(nodes * per_node as usize)?,
                    doublings: DOUBLINGS,
                    seed: self.seed.unwrap_or(1),
                })
            };
            let load = match load {
                Load::Tpcc { districts, .. } if self.spread => {
                    Load::Tpcc { districts, spread: Some(nodes as u32 * per_node as u32) }
                }
                load => load,
            };
            let configuration = |scheme| Ok(Configuration { cluster: cluster(scheme)?, load });
            schemes.iter().map(configuration).collect::<Result<Vec<_>, Refusal>>()
        });
        let configurations = configurations.collect::<Result<Vec<_>, Refusal>>()?;
        Ok(Series {
            figure: None,
            title: format!(
                "{}{} under {protocol} on {}nodes {}like this one: {}",
                workload_title(load.name()),
                if self.spread { ", spread over all shards," } else { "" },
                if self.load.is_empty() { String::new() } else { format!("{} ", nodes[0]) },
                match self.shards_per_node {
                    Some(own) if own != u64::from(model.shards_per_node) => format!("of {own} shards, else "),
                    _ => String::new(),
                },
                model.machine
            ),
            axis: if self.load.is_empty() { "nodes" } else { IN_FLIGHT },
            at: match self.load.is_empty() {
                true => nodes.iter().map(|&nodes| nodes as u64).collect(),
                false => self.load.clone(),
            },
            schemes,
            model,
            configurations,
        })
    }
}

fn doubling(range: RangeInclusive<usize>) -> Vec<usize> {
    let mut nodes: Vec<usize> = std::iter::successors(Some(*range.start()), |n| n.checked_mul(2))
        .take_while(|n| n < range.end())
        .collect();
    nodes.push(*range.end());
    nodes
}

/// Reads `1..1024` or `1,2,8`.
fn nodes(text: &str) -> Result<Nodes, String> {
    let form = || format!("`{text}` is neither a range such as 1..64 nor a list such as 1,2,8");
    let one = |text: &str| text.trim().parse::<usize>().map_err(|_| form());
    let nodes = match text.split_once("..") {
        Some((first, last)) => {
            let (first, last) = (one(first)?, one(last)?);
            if first > last {
                return Err(format!("{first}..{last} is empty: give the smaller number first"));
            }
            if first == 0 {
                return Err("a cluster has at least one node".to_owned());
            }
            doubling(first..=last)
        }
        None => text.split(',').map(one).collect::<Result<Vec<_>, _>>()?,
    };
    if nodes.contains(&0) {
        return Err("a cluster has at least one node".to_owned());
    }
    if !nodes.is_sorted_by(|a, b| a < b) {
        return Err(format!("`{text}` is not ascending"));
    }
    Ok(Nodes(nodes))
}

const SCALE_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll sim scale", "TPC-C on 1 to 16 nodes, all schemes."),
    ("plimsoll sim scale --nodes 1..1024 --schemes dst,rc,gts --report scale.html", ""),
    ("plimsoll sim scale --workload smallbank --machine vlr --nodes 1..64", ""),
    ("plimsoll sim scale --machine val --nodes 1..1024 --shards-per-node 2", ""),
    (
        "plimsoll sim scale --workload tpce --machine vlr --shards-per-node 2 --nodes 15 --load 1,2,4,8",
        "Latency over throughput.",
    ),
    (
        "plimsoll sim scale --machine mine.json",
        "With what `plimsoll calibrate --output mine.json` has measured.",
    ),
    ("plimsoll sim scale --paper --report paper.html", "The DST paper's figures, published and predicted."),
];

fn scale_examples() -> String {
    format!(
        "{}\nA prediction runs the real protocols, transaction by transaction, in a world where everything has a price.",
        help::examples(SCALE_EXAMPLES)
    )
}

/// The flags of `plimsoll calibrate`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = calibrate_examples())]
pub struct CalibrateArgs {
    /// Where the cost model goes; `plimsoll sim scale --machine FILE` reads it [default:
    /// plimsoll-machine.json].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure nothing but how well this model predicts.
    #[arg(long, value_name = "FILE|NAME", conflicts_with_all = ["output", "no_proof"])]
    pub prove: Option<String>,
    /// Do not compare predictions with measurements at the end.
    #[arg(long)]
    pub no_proof: bool,
    /// How long each measurement takes, in sixteen rounds [default: 1600ms].
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub time: Option<Duration>,
    /// Write the comparison and all that was measured as JSON, to standard output if no file is
    /// given (then nothing else goes there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short)]
    pub quiet: bool,
}

/// A calibration, complete and without contradictions.
#[derive(Clone, Debug)]
pub struct CalibratePlan {
    /// Where the model goes, or the one to prove.
    pub target: Target,
    /// Whether to compare predictions with measurements.
    pub proof: bool,
    /// How long each measurement takes.
    pub time: Duration,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

/// What becomes of a calibration.
#[derive(Clone, Debug)]
pub enum Target {
    /// A new model, written there.
    Write(PathBuf),
    /// One that is there, only to be proved.
    Prove(Box<CostModel>),
}

impl CalibrateArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<CalibratePlan, Refusal> {
        let time = self.time.unwrap_or(Duration::from_millis(1600));
        if !(Duration::from_millis(50)..=Duration::from_secs(60)).contains(&time) {
            refuse!("--time {time:?} is too short or too long for a measurement: give 50ms to 60s")
        }
        let target = match self.prove {
            Some(name) => Target::Prove(Box::new(machines::named("prove", &name)?)),
            None => {
                let path = self.output.unwrap_or_else(|| PathBuf::from("plimsoll-machine.json"));
                check_writable(&path)?;
                Target::Write(path)
            }
        };
        let json = json_output(self.json.as_ref())?;
        Ok(CalibratePlan { target, proof: !self.no_proof, time, json, quiet: self.quiet })
    }
}

const CALIBRATE_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll calibrate", "Measure this machine, compare predictions with it."),
    ("plimsoll calibrate --output mine.json --no-proof", ""),
    ("plimsoll calibrate --prove mine.json", "Only compare."),
];

fn calibrate_examples() -> String {
    format!(
        "{}\nIt takes half an hour or more, and the machine for itself: whatever else runs is in the figures.",
        help::examples(CALIBRATE_EXAMPLES)
    )
}

#[cfg(test)]
mod tests;
