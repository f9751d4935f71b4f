//! A sweep of generated statements against a PostgreSQL 15 that is started beside. What differs is
//! made smaller, printed, and makes the sweep fail.
//!
//! | mode | generates | compares |
//! |---|---|---|
//! | `expressions` | typed expressions over literals of every type | columns, values, errors |
//! | `statements` | tables, and sequences of statements that fill, change and read them | every reply |
//!
//! `cargo run -p plimsoll-sql --example differential -- --mode statements --statements 10000`
//!
//! | module | has |
//! |---|---|
//! | `part` | statements as trees, which can be made smaller |
//! | `tables`, `terms`, `queries`, `changes` | what is generated: tables, expressions, reads, writes |
//! | `sides` | what the servers answer |
//! | `sequences` | the mode of statements |
//! | `allowed` | the differences that there may be, with their reasons |

#![allow(clippy::duplicate_mod, reason = "`beside` and `common` both begin PostgreSQL")]

mod allowed;

#[path = "../../tests/beside/mod.rs"]
mod beside;
mod changes;
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/beside/generate.rs"]
mod generate;
mod part;
mod queries;
mod sequences;
mod sides;
mod tables;
mod terms;
#[path = "../../src/testing.rs"]
#[allow(dead_code)] // Only what begins a session and a query is used.
mod testing;

use std::process::ExitCode;

use beside::{Outcome, Postgres, connect, ours, theirs};
use generate::{Generator, Tree};
use tokio_postgres::Client;

const HELP: &str = "\
Compares generated statements with PostgreSQL 15, which is started beside.

usage: differential [--mode MODE] [--statements N] [--seed N] [--differences N]

  --mode MODE       expressions (the default) or statements, which are over tables
  --statements N    how many statements are compared (default 1000)
  --seed N          where they begin: the same seed makes the same statements (default 1)
  --differences N   after how many differences the sweep ends (default 10)
  --help            this text

Exit status: 0 if nothing differs but what may, 1 if something does, 2 if the arguments are wrong
or PostgreSQL is not installed.
";

/// Statements between two lines that say how far the sweep is.
const PROGRESS: u64 = 10_000;

/// What the command line asks for.
pub struct Sweep {
    is_over_tables: bool,
    statements: u64,
    seed: u64,
    differences: u64,
}

impl Sweep {
    /// Reads the arguments; the error is what to say of them, empty if help was asked for.
    fn read(arguments: impl Iterator<Item = String>) -> Result<Sweep, String> {
        let mut sweep = Sweep { is_over_tables: false, statements: 1000, seed: 1, differences: 10 };
        let mut arguments = arguments.skip(1);
        while let Some(name) = arguments.next() {
            if name == "--help" {
                return Err(String::new());
            }
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} is not a number"));
            match name.as_str() {
                "--mode" => match value.as_str() {
                    "expressions" => sweep.is_over_tables = false,
                    "statements" => sweep.is_over_tables = true,
                    _ => return Err(format!("there is no mode {value}")),
                },
                "--statements" => sweep.statements = number()?,
                "--seed" => sweep.seed = number()?,
                "--differences" => sweep.differences = number()?,
                _ => return Err(format!("there is no flag {name}")),
            }
        }
        Ok(sweep)
    }

    /// Prints how far the sweep is after every [`PROGRESS`] statements, since it takes minutes.
    fn progress(&self, before: u64, now: u64, different: u64) {
        if before / PROGRESS != now / PROGRESS {
            eprintln!("{now} of {} statements, {different} differ", self.statements);
        }
    }
}

fn main() -> ExitCode {
    let sweep = match Sweep::read(std::env::args()) {
        Ok(sweep) => sweep,
        Err(said) if said.is_empty() => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(said) => {
            eprintln!("{said}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let Some(server) = Postgres::start() else { return ExitCode::from(2) };
    let different = match sweep.is_over_tables {
        true => sequences::sweep(&sweep, server.port),
        false => expressions(&sweep, &server),
    };
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn differs(client: &Client, text: &str) -> Option<(Outcome, Outcome)> {
    let (ours, theirs) = (ours(text), theirs(client, text).await);
    (!allowed::outcomes(&ours, &theirs)).then_some((ours, theirs))
}

/// The mode of expressions. Says how many differ.
fn expressions(sweep: &Sweep, server: &Postgres) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(server).await;
        let (mut different, mut values, mut count) = (0u64, 0u64, 0u64);
        while count < sweep.statements && different < sweep.differences {
            let mut random = Generator::new(sweep.seed.wrapping_mul(1_000_003).wrapping_add(count));
            let tree = random.tree();
            let statement = format!("select {tree}");
            count += 1;
            sweep.progress(count - 1, count, different);
            let Some(mut found) = differs(&client, &statement).await else {
                values += u64::from(matches!(ours(&statement), Outcome::Rows(..)));
                continue;
            };
            different += 1;
            // The smallest part that differs by itself.
            let mut smallest = tree;
            while let Some((part, outcomes)) = smaller(&client, &smallest).await {
                smallest = part;
                found = outcomes;
            }
            println!("select {smallest}\n  PostgreSQL: {}\n  here:       {}", found.1, found.0);
        }
        println!(
            "{count} expressions from seed {}: {values} had values on both sides, {different} differ",
            sweep.seed
        );
        different
    })
}

async fn smaller(client: &Client, tree: &Tree) -> Option<(Tree, (Outcome, Outcome))> {
    for part in tree.parts() {
        if let Some(outcomes) = differs(client, &format!("select {part}")).await {
            return Some((part.clone(), outcomes));
        }
    }
    None
}
