//! Flags that measurements without a workload have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plimsoll_args::{JsonOutput, Refusal, duration, json_output, number, refuse, within};

/// More at a time than anybody can want.
const IN_FLIGHT_MAX: u64 = 100_000;

/// The flags.
#[derive(Args, Clone, Debug, Default)]
pub struct MeasureArgs {
    /// How long each measurement takes [default: 1s].
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub duration: Option<Duration>,
    /// How many are in flight at a time while throughput is measured [default: 1,16,256].
    #[arg(long, value_parser = number, value_delimiter = ',', value_name = "N,N,...")]
    pub in_flight: Vec<u64>,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short)]
    pub quiet: bool,
}

/// What they come to.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurePlan {
    /// Of each measurement.
    pub duration: Duration,
    /// How many at a time, by measurement of throughput.
    pub in_flight: Vec<usize>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl MeasureArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<MeasurePlan, Refusal> {
        let duration = self.duration.unwrap_or(Duration::from_secs(1));
        if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&duration) {
            refuse!("--duration is 10ms to 10m for a measurement without a workload");
        }
        let in_flight = if self.in_flight.is_empty() { vec![1, 16, 256] } else { self.in_flight };
        let json = json_output(self.json.as_ref())?;
        Ok(MeasurePlan {
            duration,
            in_flight: counts(in_flight, "in-flight", IN_FLIGHT_MAX)?,
            json,
            quiet: self.quiet,
        })
    }
}

/// Numbers of a flag, each from 1 to `max`.
pub fn counts(numbers: Vec<u64>, flag: &str, max: u64) -> Result<Vec<usize>, Refusal> {
    numbers.into_iter().map(|n| within(n, flag, 1, max).map(|n| n as usize)).collect()
}
