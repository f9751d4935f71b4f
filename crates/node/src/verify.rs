//! `plimsoll verify`: looks a data directory through, and changes nothing.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use plimsoll_args::{JsonOutput, json_output, publish};
use plimsoll_engine::{Verified, VerifiedShard, verify};
use plimsoll_page::help;
use plimsoll_page::progress::Progress;
use serde::Serialize;

/// How long it says nothing about how far it is.
const QUIET: Duration = Duration::from_secs(2);

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll verify /var/lib/bank-1", "The node must not run."),
    ("plimsoll verify /var/lib/bank-1 --json report.json", ""),
];

/// The flags of `plimsoll verify`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct VerifyArgs {
    /// The data directory.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
}

#[derive(Serialize)]
struct Document {
    directory: PathBuf,
    owner: String,
    good: bool,
    shards: Vec<Shard>,
}

#[derive(Serialize)]
struct Shard {
    shard: usize,
    directory: PathBuf,
    good: bool,
    /// Whether there is a log at all.
    log: bool,
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    file: String,
    bytes: u64,
    good: bool,
    /// What it is, and what is wrong with it, if anything.
    says: String,
}

/// Looks through. Returns whether nothing is wrong.
pub fn look_through(args: &VerifyArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let output: JsonOutput = json_output(args.json.as_ref())?;
    let (progress, begun) = (Progress::stderr(false), Instant::now());
    let verified = verify(&args.directory, |position, count| {
        if begun.elapsed() > QUIET {
            progress.note(&format!("{position} of {count} shards"));
        }
    })?;
    let good = verified.shards.iter().all(|shard| shard.good);
    let document = Document {
        directory: args.directory.clone(),
        owner: verified.owner.clone(),
        good,
        shards: verified.shards.iter().map(shard).collect(),
    };
    publish(&output, &document, || text(&verified, good))?;
    Ok(good)
}

fn shard(shard: &VerifiedShard) -> Shard {
    let lines = shard.report.iter().flat_map(|report| &report.lines);
    let files = lines.map(|line| {
        let text = line.to_string();
        let says = text.split_once(" bytes, ").map_or(&*text, |(_, says)| says).to_owned();
        File { file: line.file.to_string(), bytes: line.bytes, good: line.wrong.is_none(), says }
    });
    Shard {
        shard: shard.shard,
        directory: shard.directory.clone(),
        good: shard.good,
        log: shard.report.is_some(),
        files: files.collect(),
    }
}

fn text(verified: &Verified, good: bool) -> String {
    let mut text = format!("{}\n", verified.owner);
    for VerifiedShard { directory, report, good, .. } in &verified.shards {
        let _ = match report {
            None if *good => writeln!(text, "\n{}: not begun", directory.display()),
            None => writeln!(text, "\n{}: WRONG: its log is missing", directory.display()),
            Some(_) => writeln!(text, "\n{}:", directory.display()),
        }
        .and_then(|()| {
            report.iter().flat_map(|report| &report.lines).try_for_each(|line| {
                writeln!(text, "  {}{line}", if line.wrong.is_some() { "WRONG: " } else { "" })
            })
        });
    }
    text + if good { "\nNothing is wrong.\n" } else { "\nSomething is WRONG: see above.\n" }
}
