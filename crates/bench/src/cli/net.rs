//! The flags of `plimsoll bench net`, and what they come to.

use clap::Args;
use plimsoll_args::{Refusal, number, within};
use plimsoll_page::help;

use super::measure::{MeasureArgs, MeasurePlan};

/// The flags of `plimsoll bench net`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct NetArgs {
    /// How often the round trips are measured, in turns; medians count [default: 5].
    #[arg(long, value_parser = number, value_name = "N")]
    pub runs: Option<u64>,
    /// Those of all measurements.
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Be the process that answers; started by another.
    #[arg(long, hide = true)]
    pub member: bool,
}

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll bench net", ""),
    ("plimsoll bench net --duration 3s --in-flight 1,8,64,512", ""),
    ("plimsoll bench net --json net.json", ""),
];

/// A measurement of the network, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct NetPlan {
    /// How often round trips are measured.
    pub runs: usize,
    /// What all measurements have; calls are in flight.
    pub measure: MeasurePlan,
}

impl NetArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<NetPlan, Refusal> {
        Ok(NetPlan {
            runs: within(self.runs.unwrap_or(5), "runs", 1, 1000)? as usize,
            measure: self.measure.validate()?,
        })
    }
}
