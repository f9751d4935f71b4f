//! The flags of `plimsoll bench sql`, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plimsoll_args::{JsonOutput, Refusal, duration, json_output, number, refuse, within};
use plimsoll_page::help;

/// The flags of `plimsoll bench sql`.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct SqlArgs {
    /// Rows: 100,000 accounts each [default: 10].
    #[arg(long, value_parser = number, value_name = "N")]
    pub scale: Option<u64>,
    /// Clients of pgbench [default: 8].
    #[arg(long, value_parser = number, value_name = "N")]
    pub clients: Option<u64>,
    /// How long each measurement takes [default: 5s].
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub duration: Option<Duration>,
    /// How often each is measured, in turns; medians count [default: 3].
    #[arg(long, value_parser = number, value_name = "N")]
    pub runs: Option<u64>,
    /// Where PostgreSQL's programs are [default: where Debian has them, or the path].
    #[arg(long, value_name = "DIR")]
    pub postgres: Option<PathBuf>,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
    /// No progress, only the result.
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll bench sql", ""),
    ("plimsoll bench sql --scale 1 --clients 32 --duration 10s", "A row that all of them write"),
    ("plimsoll bench sql --json sql.json", ""),
];

/// A measurement of SQL, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlPlan {
    /// Of pgbench's tables.
    pub scale: u64,
    /// Clients at a time.
    pub clients: u64,
    /// Of each measurement.
    pub duration: Duration,
    /// How often each is made.
    pub runs: usize,
    /// Where PostgreSQL's programs are, if the command line says.
    pub postgres: Option<PathBuf>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
    /// Whether to keep standard error silent.
    pub quiet: bool,
}

impl SqlArgs {
    /// Judges all flags together.
    pub fn validate(self) -> Result<SqlPlan, Refusal> {
        let duration = self.duration.unwrap_or(Duration::from_secs(5));
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&duration) {
            refuse!("--duration is 1s to 1h: pgbench counts in seconds");
        }
        if let Some(directory) = self.postgres.as_ref().filter(|directory| !directory.is_dir()) {
            refuse!("--postgres: {} is no directory", directory.display());
        }
        Ok(SqlPlan {
            scale: within(self.scale.unwrap_or(10), "scale", 1, 1000)?,
            clients: within(self.clients.unwrap_or(8), "clients", 1, 900)?,
            duration,
            runs: within(self.runs.unwrap_or(3), "runs", 1, 1000)? as usize,
            postgres: self.postgres,
            json: json_output(self.json.as_ref())?,
            quiet: self.quiet,
        })
    }
}
