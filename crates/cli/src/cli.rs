//! The command line: which commands there are. What each of them reads is defined, and judged, in
//! the crate that carries it out.
//!
//! Two steps. The parser (clap's derive) knows flags, their types and which exclude each other.
//! Then `validate` of a command's flags turns them into a plan in which nothing is optional and
//! nothing contradicts, or into a [`Refusal`](plimsoll_args::Refusal). Both ways of refusing end
//! with exit status 2.
//!
//! The Cargo features `bench`, `sim` and `dike` are what a command needs to be there; nodes are
//! always there.
//!
//! Left out: configuration files and environment variables. A command line is its record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};
use plimsoll_engine::machine;
use plimsoll_node::cli::{MoveArgs, StartArgs, StatusArgs};
use plimsoll_node::secret::SecretArgs;
use plimsoll_node::verify::VerifyArgs;
use plimsoll_page::help;

#[cfg(feature = "sim")]
pub mod sim;
#[cfg(test)]
mod tests;

/// A distributed in-memory transactional database.
///
/// Serializable read-write transactions, and read-only transactions that never abort and never ask
/// an oracle: decentralized scalar timestamps (DST).
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version = version(), after_help = top_examples(), subcommand_required = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a workload into a database, run it, check the data, report.
    ///
    /// Loads real data into one shard per core, or into several processes, or finds it on a cluster
    /// that runs; runs the full mix of transactions under the chosen concurrency-control protocol
    /// and timestamp scheme, checks the workload's own consistency conditions during the run and
    /// after it, and prints throughput, aborts and latencies.
    ///
    /// Exit status: 0 done and every check holds; 1 a check failed; 2 bad usage.
    #[cfg(feature = "bench")]
    Bench(Box<plimsoll_bench::cli::BenchArgs>),
    /// Run the database in simulated worlds, with everything going wrong, and judge what comes of
    /// it.
    ///
    /// The code that runs is the real one; time, network, clocks and failures are drawn from a
    /// seed, and the same seed gives the same world, event by event. A world ends with a verdict:
    /// the history is serializable, timestamps are in its order, snapshots are fresh, no lock is
    /// left, nothing written is lost.
    ///
    /// Exit status: 0 nothing is violated; 1 something is; 2 bad usage; 130 ended by
    /// Ctrl-C before all worlds have run.
    #[cfg(feature = "sim")]
    Sim(Box<sim::SimArgs>),
    /// Measure what things cost on this machine, for `plimsoll sim scale`, and how well predictions
    /// fit.
    ///
    /// Runs the executor and the workloads on one shard and on two, derives the prices of lookups,
    /// messages, marks and all else from it, then predicts every protocol under every scheme and
    /// compares.
    ///
    /// Exit status: 0 done, however large the errors; 2 bad usage or no figures.
    #[cfg(feature = "sim")]
    Calibrate(plimsoll_scale::cli::CalibrateArgs),
    /// Run a node of a cluster, until SIGTERM or Ctrl-C.
    ///
    /// A file describes the cluster: its nodes, its tables, where each can be reached. Every node
    /// and every client reads the same file. A single node needs none: flags say what there is to
    /// say, and clients ask the node. A node keeps its part of the data in memory, and answers over
    /// HTTP how it is.
    ///
    /// Exit status: 0 stopped; 2 bad usage or environment.
    Start(Box<StartArgs>),
    /// Show the cluster as it is: which nodes are up, connected, how large, how far their clocks
    /// are off.
    Status(StatusArgs),
    /// Move slots, with the rows in them, from where they are to a shard, while transactions go on.
    ///
    /// Rows are spread over 4096 slots, and slots over shards. `plimsoll status` shows how many
    /// each node has, and the numbers of its shards. A slot cannot be used while it is on its way;
    /// transactions that need it try again, and snapshots wait.
    Move(MoveArgs),
    /// Look a data directory through, file by file, and change nothing.
    ///
    /// Reads every log and image of a node, or of a database in one process, and compares all
    /// checksums. Says of each file what it holds, and where it is damaged. A tail that a crash has
    /// torn is no damage.
    ///
    /// Exit status: 0 nothing is wrong; 1 something is; 2 it cannot be looked through.
    Verify(VerifyArgs),
    /// Make the secret of a cluster, in a file that only its owner can read.
    ///
    /// Processes that know the secret can read and write everything; others are refused. A cluster
    /// without one stays on loopback addresses.
    ///
    /// Exit status: 0 made; 2 there is such a file already, or it cannot be written.
    Secret(SecretArgs),
    /// Open psql on a node that was started with --sql.
    ///
    /// Any other client of PostgreSQL does as well: a node speaks its protocol.
    ///
    /// Exit status: that of psql; 2 it is not installed.
    #[cfg(feature = "sql")]
    Sql(plimsoll_node::sql::SqlArgs),
    /// Benchmark a distributed database that speaks PostgreSQL's or MySQL's protocol: load, run,
    /// check, test.
    ///
    /// Dike is TPC-C with dials: which transactions, how distributed, how contended, how skewed,
    /// and with which faults. A TOML file says all of it; `plimsoll dike template` prints one to
    /// start from.
    ///
    /// Exit status: 0 done and every verdict is good; 1 something is violated; 2 nothing could be
    /// done.
    #[cfg(feature = "dike")]
    Dike(plimsoll_dike::cli::DikeArgs),
    /// Print what a shell needs to complete commands, flags and their values.
    #[command(after_help = help::examples(COMPLETIONS_EXAMPLES))]
    Completions {
        /// The shell that reads it.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands into a directory.
    #[command(after_help = help::examples(MAN_EXAMPLES))]
    Man {
        /// Where to write one page for each command, plimsoll.1, plimsoll-start.1 and so on. The
        /// directory is made if need be.
        #[arg(value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
}

const COMPLETIONS_EXAMPLES: &[(&str, &str)] = &[
    (
        "plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll",
        "A new shell has them.",
    ),
    ("plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish", ""),
    ("plimsoll completions zsh > ~/.zfunc/_plimsoll", "With fpath+=~/.zfunc before compinit in ~/.zshrc."),
];

const MAN_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll man | man -l -", ""),
    ("plimsoll man ~/.local/share/man/man1", "Then: man plimsoll, man plimsoll-start."),
];

/// What a shell needs to complete commands, flags and their values.
pub fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the program as a whole, in roff.
pub fn manual() -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Writes the manual pages of all commands into a directory, which is made if need be.
pub fn write_manuals(directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| format!("cannot write manual pages into {}: {error}", directory.display()))
}

fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} ({})", env!("CARGO_PKG_VERSION"), machine::COMMIT));
    &VERSION
}

/// Commands to begin with, those that there are.
const EXAMPLES: &[(&str, &str)] = &[
    #[cfg(feature = "bench")]
    ("plimsoll bench tpcc", "What this machine does, in half a minute."),
    #[cfg(feature = "bench")]
    ("plimsoll bench tpcc --compare occ/dst,occ/rc,occ/none", "What serializable snapshots cost."),
    #[cfg(feature = "sim")]
    ("plimsoll sim", "A thousand simulated worlds under faults, judged."),
    #[cfg(feature = "bench")]
    ("plimsoll bench --help", "Every flag, with more examples."),
    #[cfg(not(feature = "bench"))]
    ("plimsoll start --table account:hash --table entry", "A whole database in one process."),
];

fn top_examples() -> String {
    format!("{}\nTimestamp schemes:\n{}", help::examples(EXAMPLES), plimsoll_args::pairs::schemes_explained())
}
