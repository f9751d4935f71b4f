//! `plimsoll`, the one program.

mod cli;
#[cfg(feature = "sim")]
mod sim;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use clap::Parser;
use plimsoll_engine::machine;
use plimsoll_node::cli::{MoveArgs, StartArgs};
use plimsoll_node::{moves, secret, status, verify};
use plimsoll_page::terminal;

use cli::{Cli, Command};

/// Sessions of SQL make many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit status of what Ctrl-C ended before it was done.
#[cfg(feature = "sim")]
const INTERRUPTED: i32 = 130;
/// Exit status of a command line, or an environment, that nothing can be done with.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        #[cfg(feature = "bench")]
        Command::Bench(args) => plimsoll_bench::execute(*args, interruption),
        #[cfg(feature = "sim")]
        Command::Sim(args) => simulate(*args),
        #[cfg(feature = "sim")]
        Command::Calibrate(args) => calibrate(args),
        Command::Start(args) => start(*args),
        Command::Status(args) => args.validate().map_err(Into::into).and_then(|plan| status::status(&plan)),
        Command::Move(args) => move_slots(args),
        Command::Verify(args) => verify::look_through(&args),
        #[cfg(feature = "sql")]
        Command::Sql(args) => plimsoll_node::sql::psql(args).map_err(Into::into),
        Command::Secret(args) => secret::make(args).map(|()| true).map_err(Into::into),
        #[cfg(feature = "dike")]
        Command::Dike(args) => plimsoll_dike::cli::execute(args, interruption),
        Command::Completions { shell } => print(&cli::completions(shell)),
        Command::Man { directory: None } => cli::manual().map_err(Into::into).and_then(|page| print(&page)),
        Command::Man { directory: Some(directory) } => {
            cli::write_manuals(&directory).map(|()| true).map_err(Into::into)
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(refusal) => {
            eprintln!("plimsoll: {refusal}");
            ExitCode::from(REFUSED)
        }
    }
}

/// Runs simulated worlds, or predicts how fast a cluster would be. Returns whether nothing was
/// violated.
#[cfg(feature = "sim")]
fn simulate(args: cli::sim::SimArgs) -> Result<bool, Box<dyn Error>> {
    if let Some(cli::sim::SimCommand::Scale(args)) = args.scale {
        return plimsoll_scale::scale(&args.validate()?, &*interruption()?);
    }
    let plan = args.validate(machine::cores(), machine::unix_seconds() << 20)?;
    let done = sim::sim(&plan, &interruption()?)?;
    if done == sim::Done::Interrupted {
        std::process::exit(INTERRUPTED);
    }
    Ok(done == sim::Done::Passed)
}

/// Measures what things cost here.
#[cfg(feature = "sim")]
fn calibrate(args: plimsoll_scale::cli::CalibrateArgs) -> Result<bool, Box<dyn Error>> {
    plimsoll_scale::calibrate(&args.validate()?, &*interruption()?)
}

/// Runs a node until it is told to stop.
fn start(args: StartArgs) -> Result<bool, Box<dyn Error>> {
    let plan = args.validate(machine::cores())?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, SeqCst) {
            std::process::exit(130);
        }
    })?;
    plimsoll_node::start(&plan, &stop)
}

/// Moves slots of a cluster.
fn move_slots(args: MoveArgs) -> Result<bool, Box<dyn Error>> {
    let plan = args.validate()?;
    moves::move_slots(&plan, &*interruption()?)
}

/// Writes a text that is all that a command does.
fn print(text: &str) -> Result<bool, Box<dyn Error>> {
    terminal::say(text)?;
    Ok(true)
}

/// Set by Ctrl-C; the second one ends the process.
fn interruption() -> Result<Arc<AtomicBool>, ctrlc::Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nplimsoll: ending with the results so far; once more to quit at once");
    })?;
    Ok(interrupted)
}
