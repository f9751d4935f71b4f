//! The flags of `plimsoll bench oracle`, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Scheme;
use super::plan::{JsonOutput, Refusal, json_output, refuse, within};
use super::{duration, number};

/// More transactions at a time than anybody can want.
const IN_FLIGHT_MAX: u64 = 100_000;
/// More threads than any machine has.
const THREADS_MAX: u64 = 1024;

/// The flags of `plimsoll bench oracle`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct OracleArgs {
    /// How long each measurement takes [default: 1s].
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub duration: Option<Duration>,
    /// Threads that use a counter in memory [default: 1, 2, 4 and so on, up to the cores].
    #[arg(long, value_parser = number, value_delimiter = ',', value_name = "N,N,...")]
    pub threads: Vec<u64>,
    /// Transactions, or snapshots, in flight while the service is measured [default: 1,16,256].
    #[arg(long, value_parser = number, value_delimiter = ',', value_name = "N,N,...")]
    pub in_flight: Vec<u64>,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short)]
    pub quiet: bool,
    /// Be the oracle of this scheme; started by another.
    #[arg(long, value_enum, hide = true)]
    pub member: Option<Scheme>,
    /// Be one that is asked in batches.
    #[arg(long, hide = true)]
    pub batch: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll bench oracle
  plimsoll bench oracle --duration 3s --in-flight 1,8,64,512
  plimsoll bench oracle --json oracle.json";

/// A measurement of oracles, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct OraclePlan {
    /// Of each measurement.
    pub duration: Duration,
    /// Threads, by measurement in memory.
    pub threads: Vec<usize>,
    /// Transactions at a time, by measurement of the service.
    pub in_flight: Vec<usize>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl OracleArgs {
    /// Judges all flags together.
    pub fn validate(self, cores: usize) -> Result<OraclePlan, Refusal> {
        let duration = self.duration.unwrap_or(Duration::from_secs(1));
        if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&duration) {
            refuse!("--duration is 10ms to 10m for a measurement of oracles");
        }
        let threads = match self.threads.is_empty() {
            true => (0..).map(|power| 1 << power).take_while(|&n| n <= cores as u64).collect(),
            false => self.threads,
        };
        let in_flight = if self.in_flight.is_empty() { vec![1, 16, 256] } else { self.in_flight };
        let all = |numbers: Vec<u64>, flag, max| -> Result<Vec<usize>, Refusal> {
            numbers.into_iter().map(|n| within(n, flag, 1, max).map(|n| n as usize)).collect()
        };
        Ok(OraclePlan {
            duration,
            threads: all(threads, "threads", THREADS_MAX)?,
            in_flight: all(in_flight, "in-flight", IN_FLIGHT_MAX)?,
            json: json_output(self.json.as_ref())?,
            quiet: self.quiet,
        })
    }
}
