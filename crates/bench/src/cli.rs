//! The command line of `plimsoll bench`: what can be asked for, and every reason to say no.
//!
//! Two steps. The parser (clap's derive) knows flags, their types and which exclude each other.
//! Then [`BenchArgs::validate`] turns the flags into a [`BenchPlan`](plan::BenchPlan) in which
//! nothing is optional and nothing contradicts, or into a [`Refusal`](plimsoll_args::Refusal):
//! *one* sentence that says what is wrong and what to do instead. All that can be known before the
//! run is judged there, the report's path included, so that a run of minutes does not end in a
//! message that was due at its start.
//!
//! Flags that would have no effect are refused too: `--lock-policy` without `two_pl`, `--accounts`
//! with TPC-C. A user who sets a flag expects an effect.
//!
//! Which protocols go with which schemes is one list, [`LEGAL_PAIRS`]. Both ways of refusing, the
//! parser's and ours, end with exit status 2.
//!
//! Left out: configuration files and environment variables. A benchmark's command line is its
//! record.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use plimsoll_args::{Switch, duration, number, pairs, size};
use plimsoll_page::help;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair, Protocol, Scheme};
use plimsoll_workloads::registry::{Registration, WORKLOADS, WorkloadFlags};

pub mod axis;
pub mod cluster;
mod measure;
pub mod net;
pub mod oracle;
pub mod plan;
pub mod sql;
#[cfg(test)]
mod tests;

/// What else is measured.
#[derive(Subcommand, Clone, Debug)]
pub enum BenchCommand {
    /// Measure what a call to another node costs, against a bare socket: the yardstick for
    /// everything that travels.
    ///
    /// Two nodes, each a process, over the loopback interface: how long a call takes alone, and how
    /// many messages travel per second with many calls at a time.
    Net(net::NetArgs),
    /// Measure how many timestamps an oracle gives out, and how many snapshots: what gts and vts
    /// can never exceed.
    ///
    /// From a counter in memory, over what an oracle does with it, to the whole service: an oracle
    /// that is a process of its own, asked over TCP by a shard of another (the DST paper's Figure
    /// 6(a)).
    Oracle(oracle::OracleArgs),
    /// Measure SQL with pgbench, beside PostgreSQL.
    ///
    /// Starts a node and a PostgreSQL, neither of which keeps anything on disk, loads pgbench's
    /// tables into both, and measures look-ups and TPC-B in turns.
    ///
    /// Exit status: 0 done; 1 a transaction failed on the node; 2 no pgbench, or bad usage.
    Sql(sql::SqlArgs),
}

/// The flags of `plimsoll bench`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "plimsoll bench <WORKLOAD> [OPTIONS]",
    after_help = bench_examples(),
    allow_negative_numbers = true,
    args_conflicts_with_subcommands = true
)]
pub struct BenchArgs {
    /// Something else than a workload.
    #[command(subcommand)]
    pub other: Option<BenchCommand>,

    /// What to run.
    #[arg(value_parser = workload())]
    pub workload: Option<&'static Registration>,

    /// Concurrency-control protocol [default: occ].
    #[arg(long, value_parser = pairs::protocol(), help_heading = "Protocol")]
    pub protocol: Option<Protocol>,
    /// Timestamp scheme: what orders the transactions [default: dst].
    #[arg(long, value_parser = pairs::scheme(), help_heading = "Protocol")]
    pub scheme: Option<Scheme>,
    /// Run several pairs of protocol and scheme interleaved; the first is the reference.
    ///
    /// Every repetition (`--runs`) runs each pair once, one after the other, so that a machine
    /// which slows down hurts them all; the result is the median of the ratios within a repetition.
    #[arg(long, value_name = "PAIR,PAIR,...", help_heading = "Protocol", conflicts_with_all = ["protocol", "scheme"])]
    pub compare: Option<String>,
    /// What `two_pl` does when a lock is taken [default: wait_die].
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Protocol")]
    pub lock_policy: Option<LockPolicy>,
    /// Validate what is only read on other shards along with the locks, at a proposed timestamp
    /// (`occ/dst`).
    ///
    /// A round trip less for transactions that read on one shard and write on another. In exchange,
    /// read-write transactions of nodes whose clocks differ are strict only to within twice the
    /// clock error; they stay serializable.
    #[arg(long, help_heading = "Protocol")]
    pub one_round: bool,
    /// Say how the workload's transactions are cut into pieces for `rococo`, which of these wait,
    /// and why; run nothing.
    ///
    /// With --report as a picture as well, which is also in the page of a run under `rococo`.
    #[arg(long, help_heading = "Protocol")]
    pub explain_pieces: bool,
    /// Read-only transactions read the past: that long ago (`dst`) [default: 0s].
    ///
    /// A snapshot in the past is as consistent as one of now, and waits for fewer writers.
    #[arg(long, value_parser = duration, value_name = "DURATION", help_heading = "Protocol")]
    pub staleness: Option<Duration>,
    /// One oracle message for all transactions of a shard that are ready (`gts`, `vts`) [default:
    /// on].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Protocol")]
    pub oracle_batch: Option<Switch>,
    /// One vector slot per machine instead of one per shard (`vts`) [default: on].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Protocol")]
    pub oracle_compress: Option<Switch>,
    /// Fetch snapshots ahead of their use; they are staler (`gts`, `vts`) [default: off].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Protocol")]
    pub oracle_prefetch: Option<Switch>,
    /// Keep only the newest version of a record (`rc`), instead of the chains that DST keeps.
    #[arg(long, help_heading = "Protocol")]
    pub rc_single_version: bool,

    /// Processes of a cluster on this machine, connected by TCP [default: none, all shards in this
    /// process].
    ///
    /// This process starts them, leads the run and adds up their figures. Each has its part of the
    /// data and of the clients; `gts` and `vts` have one more, for the oracle. What they write in
    /// each other they commit by votes.
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    pub processes: Option<u64>,
    /// Run on a cluster that runs already, as one of its clients: its file, or HTTP addresses of
    /// its nodes.
    ///
    /// Its file describes the workload's tables (--tables), and their rows were loaded (--load).
    /// Protocol, scheme and shards are the file's; all transactions are coordinated here.
    #[arg(long, value_name = "FILE|ADDR,...", help_heading = "Scale", conflicts_with = "processes")]
    pub cluster: Option<String>,
    /// The secret of the cluster, if addresses are given.
    #[arg(long, value_name = "FILE", help_heading = "Scale", requires = "cluster")]
    pub secret_file: Option<PathBuf>,
    /// Measure at each of these loads: `1,2,4,8` transactions in flight per shard, or `10%..110%`
    /// of the peak rate. Without a value: load the rows into the cluster, and do nothing else.
    ///
    /// Latency over throughput, as a table and as curves in the report. Transactions in flight are
    /// a closed loop (see --concurrency). Percentages are an open loop (see --rate): of each pair
    /// its own peak is found first, by a closed loop whose transactions in flight are doubled until
    /// throughput grows no more; 10%..110% are steps of ten points. At every load each pair runs as
    /// often as --runs says. When the rows are loaded, flags that only a run has have no effect.
    #[arg(long, value_name = "LOAD,LOAD,...", num_args = 0..=1, help_heading = "Scale", conflicts_with = "tables")]
    pub load: Option<Option<String>>,
    /// Print the workload's tables for the file of a cluster, and do nothing else.
    #[arg(long, help_heading = "Scale")]
    pub tables: bool,
    /// Shards: a part of the data and a thread each; with --processes those of each [default: one
    /// per core].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    pub shards: Option<u64>,
    /// What the data may take in all processes, such as 8GB [default: 80 % of the memory that the
    /// process may use]. When it is used a run ends early, with its figures.
    #[arg(long, value_parser = size, value_name = "SIZE", help_heading = "Scale")]
    pub memory: Option<u64>,
    /// Keep what is committed in a directory below this one, as a database with a data directory
    /// does: a transaction is committed when it is on disk. Removed after each run.
    #[arg(long, value_name = "DIR", help_heading = "Scale", conflicts_with_all = ["processes", "cluster"])]
    pub data_dir: Option<PathBuf>,
    /// What outlives the database: `none`, `async` or `sync` [default: sync with --data-dir, else
    /// none].
    #[arg(long, value_name = "DURABILITY", help_heading = "Scale", conflicts_with = "compare_durability")]
    pub durability: Option<String>,
    /// Run with several durabilities interleaved, `none,async,sync`; the first is the reference.
    /// Needs --data-dir.
    ///
    /// `none` keeps everything in memory, `async` writes it to disk without waiting for that,
    /// `sync` commits when it is there. As with --compare, every repetition runs each once, and
    /// every other one in reverse; both flags together run every pair with every durability.
    #[arg(long, value_name = "DURABILITY,...", help_heading = "Scale")]
    pub compare_durability: Option<String>,
    /// After each run, write what the logs wrote in the measured time again to bare files, in the
    /// same pieces with a sync after each, and say how much faster that is. Needs --data-dir.
    #[arg(long, help_heading = "Scale")]
    pub replay_raw: bool,
    /// Allow more shards than cores: then some share a thread, or processes a core.
    #[arg(long, help_heading = "Scale")]
    pub oversubscribe: bool,
    /// Transactions in flight per shard [default: 8].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    pub concurrency: Option<u64>,
    /// Shards that run clients [default: all]; with `--concurrency 1`, 1 is a single client:
    /// latency without load.
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    pub coordinators: Option<u64>,
    /// Transactions per second over all shards, instead of as many as possible.
    ///
    /// Each client starts its transactions at fixed times. Latency counts from the time a
    /// transaction was due, so that a stall shows in all transactions that it delays.
    #[arg(long, value_parser = number, value_name = "PER_SECOND", help_heading = "Scale")]
    pub rate: Option<u64>,
    /// Share of distributed work, percent [default: 1; micro: 10].
    ///
    /// SmallBank: payments whose second account is on another shard. TPC-C: order lines supplied by
    /// another warehouse. Micro: tuples on another shard.
    #[arg(long, value_name = "PERCENT", help_heading = "Mix")]
    pub distributed: Option<f64>,

    /// Those of the workload.
    #[command(flatten)]
    pub of_the_workload: WorkloadFlags,

    /// Run that long before measuring [default: 2s].
    #[arg(long, value_parser = duration, value_name = "DURATION", help_heading = "Run")]
    pub warmup: Option<Duration>,
    /// Measure that long: `500ms`, `10s`, `5m` [default: 10s].
    #[arg(long, value_parser = duration, value_name = "DURATION", help_heading = "Run")]
    pub duration: Option<Duration>,
    /// Repetitions, each with freshly loaded data [default: 1; with --compare 3].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Run")]
    pub runs: Option<u64>,
    /// Where the random inputs start: the same seed draws the same transactions [default: 1].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Record the history of every transaction and check that it is serializable.
    #[arg(long, help_heading = "Run")]
    pub check: bool,
    /// Audit the invariants in a snapshot that often per second while writers run; 0 is off
    /// [default: 2].
    #[arg(long, value_parser = number, value_name = "PER_SECOND", help_heading = "Run")]
    pub check_online: Option<u64>,

    /// Write all figures as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1, help_heading = "Output")]
    pub json: Option<Option<PathBuf>>,
    /// Write one self-contained HTML page with charts.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// No progress, only the result.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,

    /// This is one of the processes that another has started: it is told what to do over its
    /// standard input.
    #[arg(long, hide = true)]
    pub member: bool,
}

/// What a transaction does when it meets a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum LockPolicy {
    /// Older transactions wait for younger ones; younger ones abort.
    WaitDie,
    /// Older transactions take the lock away from younger ones; younger ones wait.
    WoundWait,
    /// No transaction waits.
    NoWait,
}

/// `Display` as on the command line.
macro_rules! display_as_value {
    ($($name:ty),*) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&display(self))
            }
        }
    )* };
}
display_as_value!(LockPolicy);

/// The name on the command line.
fn display<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads the name of a workload.
fn workload() -> impl TypedValueParser<Value = &'static Registration> {
    let values = WORKLOADS.iter().map(|workload| PossibleValue::new(workload.name).help(workload.about));
    PossibleValuesParser::new(values)
        .try_map(|name| Registration::named(&name).ok_or("there is no such workload"))
}

/// Commands with what they are for.
const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll bench tpcc", "TPC-C, OCC with DST, one warehouse and one shard per core, 10 seconds."),
    (
        "plimsoll bench tpcc --compare occ/dst,occ/gts,occ/vts,occ/rc,occ/none --report schemes.html",
        "What each scheme costs, in one page with charts.",
    ),
    (
        "plimsoll bench tpcc --districts 20 --compare occ/dst,occ/none",
        "Long read-only transactions: snapshots against validation.",
    ),
    (
        "plimsoll bench smallbank --protocol two_pl --lock-policy wound_wait --distributed 20",
        "Locking, with a fifth of the payments between shards.",
    ),
    (
        "plimsoll bench smallbank --processes 2 --shards 1 --distributed 20 --compare occ/dst,occ/gts",
        "A cluster of two processes on this machine, connected by TCP, as the papers compare schemes.",
    ),
    (
        "plimsoll bench smallbank --processes 2 --shards 1 --global",
        "The same with accounts of either process: three of five transactions touch the one where they do not start.",
    ),
    (
        "plimsoll bench smallbank --tables >> bank.toml",
        "The tables, for the file of a cluster whose nodes are then started.",
    ),
    (
        "plimsoll bench smallbank --cluster bank.toml --load",
        "Loads the rows, as a client of the running cluster.",
    ),
    (
        "plimsoll bench smallbank --cluster bank.toml --concurrency 32 --rate 5000",
        "A client of a running cluster that starts 5,000 transactions per second.",
    ),
    (
        "plimsoll bench smallbank --load 1,2,4,8,16,32 --compare occ/dst,occ/gts --report load.html",
        "Median and p99 latency over throughput, as curves: up to 32 transactions in flight per shard.",
    ),
    (
        "plimsoll bench smallbank --load 10%..110% --duration 3s",
        "The same when transactions arrive at fixed times, from a tenth of the peak to beyond it.",
    ),
    (
        "plimsoll bench smallbank --data-dir /var/tmp --concurrency 256",
        "Commits that are on disk before they are answered; more in flight share a sync.",
    ),
    (
        "plimsoll bench smallbank --data-dir /var/tmp --concurrency 256 --compare-durability none,sync --replay-raw",
        "What that costs, and how much of the disk's speed the logs reach.",
    ),
    (
        "plimsoll bench smallbank --accounts 1000 --duration 2s --check",
        "A short run whose whole history is proved serializable.",
    ),
    (
        "plimsoll bench micro --read-only 0 --read-share 80 --distributed 0 --compare occ/dst,occ/none",
        "What it costs to raise the marks of tuples that are only read.",
    ),
    (
        "plimsoll bench micro --read-only 0 --read-share 0 --tuples-per-transaction 10 --participants 2 --coordinators 1 --concurrency 1",
        "What a commit over two shards takes, five tuples on each; --zipf 0.99 adds contention.",
    ),
    (
        "plimsoll bench tpcc --items 1000 --customers 30 --duration 1s --warmup 0s --json",
        "A small and quick one for a script.",
    ),
];

fn bench_examples() -> String {
    let pairs: Vec<String> = LEGAL_PAIRS.iter().map(Pair::to_string).collect();
    format!(
        "{}
Timestamp schemes:
{}
Pairs for --compare:
  {}
",
        help::examples(EXAMPLES),
        pairs::schemes_explained(),
        pairs.chunks(5).map(|chunk| chunk.join(", ")).collect::<Vec<_>>().join(",\n  ")
    )
}
