//! Plimsoll beside embedded stores of others: what a commit of one small value costs.
//!
//! Four stores ([`stores`]) do the same work on the same disk in one run: Plimsoll as a library,
//! redb, fjall and SQLite. Clients are threads, each of which begins a transaction when its last
//! one was committed ([`work`]). Three kinds of transactions:
//!
//! * *put* writes one value of 100 bytes under a key that only this client writes;
//! * *add* reads two values, raises a number in each, and writes both, under keys that all write;
//! * *get* reads one value.
//!
//! `sync` means that a commit returns when it is on disk. `none` means that it returns earlier, and
//! is not the same for all: the others have handed their data to the operating system or keep it
//! until later, and Plimsoll, without a data directory, writes nothing at all.
//!
//! A *session* is one store with one durability in a new directory: it is opened, loaded, measured
//! with each kind and each number of clients, checked, closed, and with `sync` opened and checked
//! again. In a repetition the stores have their sessions one after the other, in the next in
//! reverse. Ratios are taken within a repetition, and their median and range are reported.
//!
//! What is checked: that every put that was acknowledged is there with its whole value, and that
//! the numbers that were raised have the sum of all acknowledged additions.
//!
//! Left out: data that does not fit into memory, scans, long values, and crashes, which each
//! store's own tests are for.

mod report;
mod stores;
mod work;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use plimsoll_engine::machine;
use plimsoll_page::file::{check_writable, write_whole};
use plimsoll_page::terminal::{Terminal, say};

use report::{Cell, Document};
use stores::{Durability, StoreName};
use work::{Kind, Rows};

/// What may go wrong in a store, or around it.
type Failure = Box<dyn Error + Send + Sync>;

/// Numbers of clients.
const CLIENTS: [usize; 4] = [1, 2, 8, 32];

/// Commits of small values by Plimsoll, redb, fjall and SQLite, in turns on one disk.
#[derive(Parser)]
struct Flags {
    /// The stores have their directories below this one. They are removed, unless the command is
    /// interrupted.
    dir: PathBuf,
    /// Repetitions.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Milliseconds that each number of clients is measured for, after a third as many.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    ms: u64,
    /// Write the figures as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> Result<(), Failure> {
    if !flags.dir.is_dir() {
        return Err(format!("{}: there is no such directory", flags.dir.display()).into());
    }
    if let Some(file) = &flags.json {
        check_writable(file)?;
    }
    let (watch, mut cells) = (machine::Watch::start(), Vec::new());
    for repetition in 1..=flags.runs {
        for durability in Durability::ALL {
            let mut names = StoreName::ALL;
            if repetition % 2 == 0 {
                names.reverse();
            }
            for name in names {
                eprintln!("repetition {repetition} of {}: {name}, {durability}", flags.runs);
                cells.extend(session(flags, name, durability, repetition)?);
            }
        }
    }
    let document = Document::new(flags.ms, cells, watch.disturbance());
    if let Some(file) = &flags.json {
        write_whole(file, &document.to_json())?;
    }
    say(&document.render(Terminal::stdout()))?;
    Ok(())
}

/// One store with one durability, from its first row to its last.
fn session(
    flags: &Flags,
    name: StoreName,
    durability: Durability,
    repetition: u32,
) -> Result<Vec<Cell>, Failure> {
    let directory = tempfile::Builder::new().prefix("plimsoll-compare-").tempdir_in(&flags.dir)?;
    let time = Duration::from_millis(flags.ms);
    let store = stores::open(name, durability, directory.path())?;
    let mut rows = Rows::load(&*store)?;
    let mut cells = Vec::new();
    for kind in Kind::of(durability) {
        for clients in CLIENTS {
            let figures = work::measure(&*store, kind, clients, time, &mut rows)?;
            cells.push(Cell { store: name, durability, kind, clients, repetition, figures });
        }
    }
    rows.check(&*store).map_err(|why| format!("{name}, {durability}: {why}"))?;
    drop(store);
    if durability == Durability::Sync {
        let store = stores::open(name, durability, directory.path())?;
        rows.check(&*store).map_err(|why| format!("{name}, opened again: {why}"))?;
    }
    Ok(cells)
}
