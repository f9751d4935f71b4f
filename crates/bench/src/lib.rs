//! `plimsoll bench`: benchmarks of the database, and of its parts.
//!
//! [`execute`] does what a command line asks for. A benchmark of a workload is a [`BenchPlan`],
//! which [`compare`] runs: every pair of protocol and scheme in turn ([`run`]), several times and
//! perhaps at several loads, each on data of its own. What comes of it is one [`Document`], shown
//! in three ways ([`report`]).
//! [`net`] and [`oracle`] measure what a call to another node costs, and a timestamp.
//!
//! Left out: predictions, which are in the crate `scale`, and databases of others, which are in
//! `dike`.

pub mod cli;
mod compare;
pub mod net;
pub mod oracle;
pub mod outcome;
pub mod report;
pub mod run;
mod sql;
pub mod workload;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_args::{JsonOutput, publish};
use plimsoll_engine::{describe_tables, machine};
use plimsoll_page::file;
use plimsoll_page::progress::Progress;
use plimsoll_page::terminal::{Terminal, say};

use cli::plan::BenchPlan;
use cli::{BenchArgs, BenchCommand};
pub use compare::compare;
use report::model::Document;
use report::{html, table};
use run::Joining;

/// Does what a command line asks for. `interruption` is called once, and returns a flag that Ctrl-C
/// sets. Returns whether every check held.
pub fn execute<E: Error + 'static>(
    mut args: BenchArgs,
    interruption: impl FnOnce() -> Result<Arc<AtomicBool>, E>,
) -> Result<bool, Box<dyn Error>> {
    match args.other.take() {
        Some(BenchCommand::Net(args)) if args.member => net::answer(),
        Some(BenchCommand::Net(args)) => net::net(&args.validate()?, &*interruption()?),
        Some(BenchCommand::Oracle(args)) => match args.member {
            Some(scheme) => oracle::serve(scheme, args.batch),
            None => oracle::oracle(&args.validate(machine::cores())?, &*interruption()?),
        },
        Some(BenchCommand::Sql(args)) => sql::sql(&args.validate()?, &*interruption()?),
        None if args.member => member(args),
        None if args.tables => {
            let plan = args.validate_tables(machine::cores())?;
            say(&describe_tables(&workload::make(&plan)?.tables()))?;
            Ok(true)
        }
        None => bench(args, interruption),
    }
}

/// Runs a benchmark, or loads its rows into a cluster.
fn bench<E: Error + 'static>(
    args: BenchArgs,
    interruption: impl FnOnce() -> Result<Arc<AtomicBool>, E>,
) -> Result<bool, Box<dyn Error>> {
    let explain_pieces = args.explain_pieces;
    let memory_bytes = if explain_pieces { 0 } else { machine::available_memory_bytes() };
    let plan = args.validate(machine::cores(), memory_bytes)?;
    if explain_pieces {
        return explain(&plan);
    }
    let workload = workload::make(&plan)?;
    if let Some(cluster) = &plan.cluster {
        workload::refuse_other_tables(&*workload, cluster)?;
    }
    let progress = Progress::stderr(plan.quiet);
    let interrupted = interruption()?;
    if let Some(cluster) = plan.cluster.as_ref().filter(|_| plan.fill) {
        let loaded = run::load_cluster(&*workload, cluster, progress, &interrupted)?;
        publish(&plan.json, &loaded, || loaded.show())?;
        return Ok(true);
    }
    let document = compare(&workload, &plan, progress, &interrupted)?;
    write(&plan, &document)?;
    Ok(document.all_checks_hold())
}

/// Is one of the processes of a benchmark that another has started. The leader has seen to memory
/// and files.
fn member(args: BenchArgs) -> Result<bool, Box<dyn Error>> {
    let plan = args.validate(machine::cores(), 0)?;
    // Before the others run: it may measure how fast this machine is.
    let workload = workload::make(&plan)?;
    Joining::meet()?.serve(&workload, &plan)?;
    Ok(true)
}

/// A document without results.
fn empty_document() -> Document {
    Document {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        commit: machine::COMMIT.to_owned(),
        machine: machine::describe(),
        command: machine::command_line(),
        ..Document::default()
    }
}

/// Says how a workload is cut into pieces, or why it cannot be. Returns whether it can.
fn explain(plan: &BenchPlan) -> Result<bool, Box<dyn Error>> {
    // Whether it is legal is what the explanation says.
    let workload = workload::make(&BenchPlan { pairs: Vec::new(), ..plan.clone() })?;
    let chopping = match workload.chopping() {
        Ok(chopping) => chopping,
        Err(why) => {
            say(&format!("{why}\n"))?;
            return Ok(false);
        }
    };
    say(&chopping.explain(&workload.tables()))?;
    if let Some(path) = &plan.report {
        let pieces = Some(workload::graph(&*workload, &chopping));
        let document = Document { date: machine::utc_now(), pieces, ..empty_document() };
        file::write_whole(path, &html::render(&document))?;
    }
    Ok(true)
}

/// Writes a document where the plan says.
fn write(plan: &BenchPlan, document: &Document) -> Result<(), Box<dyn Error>> {
    match &plan.json {
        JsonOutput::Stdout => say(&document.to_json())?,
        JsonOutput::File(path) => file::write_whole(path, &document.to_json())?,
        JsonOutput::None => {}
    }
    if plan.json != JsonOutput::Stdout {
        say(&table::render(document, Terminal::stdout()))?;
    }
    if let Some(path) = &plan.report {
        file::write_whole(path, &html::render(document))?;
    }
    Ok(())
}
