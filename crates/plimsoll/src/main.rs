//! The command line.

mod bench;
mod cli;
mod dispatch;
mod machine;
mod net;
mod node;
mod oracle;
mod report;
mod scale;
mod sim;
mod timeline;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use clap::Parser;
use plimsoll::describe_tables;
use plimsoll_page::file;
use plimsoll_page::progress::Progress;

use cli::plan::{BenchPlan, JsonOutput};
use cli::sim::SimCommand;
use cli::{BenchCommand, Cli, Command};
use report::model::{self, Document};
use report::{html, publish, table};

/// Exit status of a command line, or an environment, that nothing can be done with.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(args) => match args.other {
            Some(BenchCommand::Net(args)) => measure_net(args),
            Some(BenchCommand::Oracle(args)) => measure_oracle(args),
            None => bench(*args),
        },
        Command::Sim(args) => match args.scale {
            Some(SimCommand::Scale(args)) => predict(*args),
            None => simulate(*args),
        },
        Command::Calibrate(args) => calibrate(args),
        Command::Start(args) => start(args),
        Command::Status(args) => {
            args.validate().map_err(Into::into).and_then(|plan| node::status::status(&plan))
        }
        Command::Move(args) => move_slots(args),
        Command::Dike(args) => dike(args),
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

/// Runs simulated worlds. Returns whether nothing was violated.
fn simulate(args: cli::sim::SimArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate(machine::cores(), machine::unix_seconds() << 20)?;
    sim::sim(&plan, &interruption()?)
}

/// Predicts how fast a cluster would be.
fn predict(args: cli::scale::ScaleArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate()?;
    let interrupted = interruption()?;
    scale::scale(&plan, &interrupted)
}

/// Measures what things cost here.
fn calibrate(args: cli::scale::CalibrateArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate()?;
    let interrupted = interruption()?;
    scale::calibrate(&plan, &interrupted)
}

/// Runs a node until it is told to stop.
fn start(args: cli::node::StartArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate(machine::cores())?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, SeqCst) {
            std::process::exit(130);
        }
    })?;
    node::start(&plan, &stop)
}

/// Moves slots of a cluster.
fn move_slots(args: cli::node::MoveArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate()?;
    let interrupted = interruption()?;
    node::moves::move_slots(&plan, &interrupted)
}

/// Benchmarks somebody else's database.
fn dike(args: plimsoll_dike::cli::DikeArgs) -> Result<bool, Box<dyn std::error::Error>> {
    plimsoll_dike::cli::execute(args, interruption)
}

/// Measures what calls to other nodes cost.
fn measure_net(args: cli::net::NetArgs) -> Result<bool, Box<dyn std::error::Error>> {
    if args.member {
        return net::answer();
    }
    let plan = args.validate()?;
    let interrupted = interruption()?;
    net::net(&plan, &interrupted)
}

/// Measures what oracles can do.
fn measure_oracle(args: cli::oracle::OracleArgs) -> Result<bool, Box<dyn std::error::Error>> {
    if let Some(scheme) = args.member {
        return oracle::serve(scheme, args.batch);
    }
    let plan = args.validate(machine::cores())?;
    let interrupted = interruption()?;
    oracle::oracle(&plan, &interrupted)
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

/// Is one of the processes of a benchmark that another has started. The leader has seen to memory and files.
fn member(args: cli::BenchArgs) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = args.validate(machine::cores(), 0)?;
    let workload = dispatch::workload(&plan, 0)?;
    dispatch::serve(&workload, &plan)?;
    Ok(true)
}

/// Runs a benchmark. Returns whether every check held.
fn bench(args: cli::BenchArgs) -> Result<bool, Box<dyn std::error::Error>> {
    if args.member {
        return member(args);
    }
    if args.tables {
        let workload = dispatch::workload(&args.validate_tables(machine::cores())?, 0)?;
        print!("{}", describe_tables(&workload.tables()));
        return Ok(true);
    }
    let memory_bytes = machine::available_memory_bytes();
    let (explain_pieces, load) = (args.explain_pieces, args.load);
    let plan = args.validate(machine::cores(), memory_bytes)?;
    if explain_pieces {
        return explain(&plan);
    }
    // Of a cluster's memory nothing is known here.
    let memory_bytes = if plan.cluster.is_some() { 0 } else { memory_bytes };
    let workload = dispatch::workload(&plan, memory_bytes)?;
    if let Some(cluster) = &plan.cluster {
        dispatch::refuse_other_tables(&workload, cluster)?;
    }
    let progress = Progress::stderr(plan.quiet);
    let interrupted = interruption()?;
    if let Some(cluster) = plan.cluster.as_ref().filter(|_| load) {
        let loaded = dispatch::load_cluster(&workload, cluster, progress, &interrupted)?;
        publish(&plan.json, &loaded, || loaded.show())?;
        return Ok(true);
    }

    let mut document = empty_document();
    if plan.pairs.iter().any(|pair| pair.protocol == cli::Protocol::Rococo) {
        document.pieces = workload.chopping().ok().map(|chopping| workload.graph(&chopping));
    }
    let mut pairs = plan.pairs.clone();
    'runs: for repetition in 1..=plan.runs {
        for &pair in &pairs {
            if interrupted.load(SeqCst) && !document.runs.is_empty() {
                break 'runs;
            }
            document.runs.push(dispatch::run(&workload, &plan, pair, repetition, progress, &interrupted)?);
        }
        // What comes after what has an effect, which cancels out if both orders take turns.
        pairs.reverse();
    }
    document.interrupted = interrupted.load(SeqCst);
    document.date = machine::utc_now();
    document.ratios = model::ratios(&document.runs);
    write(&plan, &document)?;
    Ok(document.all_checks_hold())
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
fn explain(plan: &BenchPlan) -> Result<bool, Box<dyn std::error::Error>> {
    // Whether it is legal is what the explanation says.
    let workload = dispatch::workload(&BenchPlan { pairs: Vec::new(), ..plan.clone() }, 0)?;
    let chopping = match workload.chopping() {
        Ok(chopping) => chopping,
        Err(why) => {
            println!("{why}");
            return Ok(false);
        }
    };
    print!("{}", chopping.explain(&workload.tables()));
    if let Some(path) = &plan.report {
        let pieces = Some(workload.graph(&chopping));
        let document = Document { date: machine::utc_now(), pieces, ..empty_document() };
        file::write_whole(path, &html::render(&document))?;
    }
    Ok(true)
}

fn write(plan: &BenchPlan, document: &Document) -> Result<(), file::Unwritable> {
    match &plan.json {
        JsonOutput::Stdout => print!("{}", document.to_json()),
        JsonOutput::File(path) => file::write_whole(path, &document.to_json())?,
        JsonOutput::None => {}
    }
    if plan.json != JsonOutput::Stdout {
        print!("{}", table::render(document, table::Terminal::stdout()));
    }
    if let Some(path) = &plan.report {
        file::write_whole(path, &html::render(document))?;
    }
    Ok(())
}
