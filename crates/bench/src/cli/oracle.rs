//! The flags of `plimsoll bench oracle`, and what they come to.

use clap::Args;
use plimsoll_args::pairs::scheme;
use plimsoll_args::{Refusal, number};
use plimsoll_page::help;
use plimsoll_txn::pairs::Scheme;

use super::measure::{MeasureArgs, MeasurePlan, counts};

/// More threads than any machine has.
const THREADS_MAX: u64 = 1024;

/// The flags of `plimsoll bench oracle`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct OracleArgs {
    /// Threads that use a counter in memory [default: 1, 2, 4 and so on, up to the cores].
    #[arg(long, value_parser = number, value_delimiter = ',', value_name = "N,N,...")]
    pub threads: Vec<u64>,
    /// Those of all measurements.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Be the oracle of this scheme; started by another.
    #[arg(long, value_parser = scheme(), hide = true)]
    pub member: Option<Scheme>,
    /// Be one that is asked in batches.
    #[arg(long, hide = true)]
    pub batch: bool,
}

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll bench oracle", ""),
    ("plimsoll bench oracle --duration 3s --in-flight 1,8,64,512", ""),
    ("plimsoll bench oracle --json oracle.json", ""),
];

/// A measurement of oracles, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct OraclePlan {
    /// Threads, by measurement in memory.
    pub threads: Vec<usize>,
    /// What all measurements have; commits or snapshots are in flight.
    pub measure: MeasurePlan,
}

impl OracleArgs {
    /// Judges all flags together.
    pub fn validate(self, cores: usize) -> Result<OraclePlan, Refusal> {
        let threads = match self.threads.is_empty() {
            true => (0..).map(|power| 1 << power).take_while(|&n| n <= cores as u64).collect(),
            false => self.threads,
        };
        Ok(OraclePlan {
            threads: counts(threads, "threads", THREADS_MAX)?,
            measure: self.measure.validate()?,
        })
    }
}
