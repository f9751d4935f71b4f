//! The flags of `plimsoll bench net`, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::plan::{JsonOutput, Refusal, json_output, refuse, within};
use super::{duration, number};

/// More calls at a time than anybody can want.
const IN_FLIGHT_MAX: u64 = 100_000;

/// The flags of `plimsoll bench net`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub struct NetArgs {
    /// How long each measurement takes [default: 1s].
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub duration: Option<Duration>,
    /// How often the round trips are measured, in turns; medians count [default: 5].
    #[arg(long, value_parser = number, value_name = "N")]
    pub runs: Option<u64>,
    /// Calls in flight while throughput is measured [default: 1,16,256].
    #[arg(long, value_parser = number, value_delimiter = ',', value_name = "N,N,...")]
    pub in_flight: Vec<u64>,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short)]
    pub quiet: bool,
    /// Be the process that answers; started by another.
    #[arg(long, hide = true)]
    pub member: bool,
}

const EXAMPLES: &str = "Examples:
  plimsoll bench net
  plimsoll bench net --duration 3s --in-flight 1,8,64,512
  plimsoll bench net --json net.json";

/// A measurement of the network, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NetPlan {
    /// Of each measurement.
    pub duration: Duration,
    /// How often round trips are measured.
    pub runs: usize,
    /// Calls at a time, by measurement of throughput.
    pub in_flight: Vec<usize>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl NetArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<NetPlan, Refusal> {
        let duration = self.duration.unwrap_or(Duration::from_secs(1));
        if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&duration) {
            refuse!("--duration is 10ms to 10m for a measurement of the network");
        }
        let in_flight = if self.in_flight.is_empty() { vec![1, 16, 256] } else { self.in_flight };
        let calls = |n: u64| within(n, "in-flight", 1, IN_FLIGHT_MAX).map(|n| n as usize);
        Ok(NetPlan {
            duration,
            runs: within(self.runs.unwrap_or(5), "runs", 1, 1000)? as usize,
            in_flight: in_flight.into_iter().map(calls).collect::<Result<_, _>>()?,
            json: json_output(self.json.as_ref())?,
            quiet: self.quiet,
        })
    }
}
