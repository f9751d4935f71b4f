//! `plimsoll dike ...`: the command line.
//!
//! Every command but `template` and `report` reads a configuration ([`crate::config`]) and flags
//! over it. Results go to standard output, progress to standard error. The exit status is 0 if all
//! was done and every verdict is good, 1 if something is violated or was ended early, 2 if nothing
//! could be done.
//!
//! No run ends without its results on disk: whether they can be written is tried before anything is
//! connected, they go to a file even if nobody has named one, and that file is written anew after
//! each repetition.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::{Args, Subcommand, ValueEnum};
use plimsoll_page::file::{check_writable, write_whole};
use plimsoll_page::{help, terminal};
use serde::Serialize;

use crate::chaos::stress;
use crate::config::{Config, TEMPLATES};
use crate::metrics::document::{Check, FORMAT, VERSION};
use crate::metrics::environment::{Machine, Settings};
use crate::metrics::{Document, Run};
use crate::progress::Progress;
use crate::report::{html, table};
use crate::target::Connector;
use crate::{check, function, load, run};

/// The flags of `plimsoll dike`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct DikeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: DikeCommand,
}

/// What to do.
#[derive(Subcommand, Clone, Debug)]
pub enum DikeCommand {
    /// Print a commented configuration to start from; it names every parameter, its unit and its
    /// default.
    #[command(after_help = help::examples(TEMPLATE_EXAMPLES))]
    Template {
        /// Which one; without a name, plain TPC-C.
        #[arg(default_value = "tpcc", value_parser = template_names())]
        name: String,
    },
    /// Make the tables and load them; goes on where an earlier load has stopped.
    ///
    /// Tables of the same names that Dike has not made are left alone, and nothing is loaded.
    #[command(after_help = help::examples(LOAD_EXAMPLES))]
    Load {
        /// Its configuration and where its result goes.
        #[command(flatten)]
        common: Common,
        /// Write comma-separated files into this directory instead; no database is needed.
        #[arg(long, value_name = "DIR")]
        csv: Option<PathBuf>,
    },
    /// Run the mix of transactions and report throughput, latencies and what went wrong.
    ///
    /// An outage of the database does not end the run: terminals connect again until its time is
    /// over. Ctrl-C ends it with the results so far, once the faults that hold are undone. Without
    /// `--json` the results are written to `dike-TIME.json` in the working directory.
    #[command(after_help = help::examples(RUN_EXAMPLES))]
    Run {
        /// Its configuration and where its result goes.
        #[command(flatten)]
        common: Common,
        /// Check the consistency conditions when it is over.
        #[arg(long)]
        check: bool,
        /// Write the result as a page to this file.
        #[arg(long, value_name = "FILE.html")]
        report: Option<PathBuf>,
    },
    /// Show documents of runs again, compare several, or make those of several clients one.
    #[command(after_help = help::examples(REPORT_EXAMPLES))]
    Report {
        /// Documents that `run --json` has written. Runs of the same label and the same
        /// configuration are repetitions of one another.
        #[arg(required = true, value_name = "FILE.json")]
        files: Vec<PathBuf>,
        /// They are of several clients that drove the same run together: add them up.
        #[arg(long)]
        merge: bool,
        /// Write the page to this file.
        #[arg(long, value_name = "FILE.html")]
        html: Option<PathBuf>,
        /// Write all runs as one document to this file; `-` for standard output, instead of text.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Check TPC-C's consistency conditions, when nothing runs.
    #[command(after_help = help::examples(CHECK_EXAMPLES))]
    Check {
        /// Its configuration and where its result goes.
        #[command(flatten)]
        common: Common,
    },
    /// Test what the database promises: that deadlocks end, that snapshots are consistent, that its
    /// isolation level is one.
    #[command(after_help = help::examples(TEST_EXAMPLES))]
    Test {
        /// Which test.
        #[arg(value_enum, default_value = "all")]
        test: TestName,
        /// Write the history of the isolation test to this file, for other checkers: JSON lines as
        /// Elle reads them.
        #[arg(long, value_name = "FILE")]
        history: Option<PathBuf>,
        /// Its configuration and where its result goes.
        #[command(flatten)]
        common: Common,
    },
    /// Drop the tables that Dike has made.
    ///
    /// If Dike has not made one of the tables with these names, nothing is dropped.
    #[command(after_help = help::examples(DESTROY_EXAMPLES))]
    Destroy {
        /// Its configuration and where its result goes.
        #[command(flatten)]
        common: Common,
    },
    /// Load this machine, as orders on standard input say, until that ends. `run` starts it for its
    /// faults.
    #[command(hide = true)]
    Stress,
}

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike template > dike.toml", "A configuration; name the database in its [target]."),
    ("plimsoll dike load --config dike.toml", ""),
    ("plimsoll dike test --config dike.toml", "Deadlocks, snapshots, isolation: first of all."),
    ("plimsoll dike run --config dike.toml --check --json result.json --report result.html", ""),
    ("plimsoll dike run --help", "More examples; every command has some."),
];

const TEMPLATE_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike template > dike.toml", "Plain TPC-C."),
    ("plimsoll dike template contention > contention.toml", "An experiment."),
    ("plimsoll dike template fault-kill > fault-kill.toml", "A run with a fault."),
];

const LOAD_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike load --config dike.toml", ""),
    ("plimsoll dike load --config dike.toml --set data.warehouses=10", "Fewer, to try it."),
    ("plimsoll dike load --config dike.toml --csv rows", "Files, for a database's own loader."),
];

const RUN_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike run --config dike.toml", ""),
    (
        "plimsoll dike run --config dike.toml --check --json result.json --report result.html",
        "With the consistency conditions, and a page with charts.",
    ),
    (
        "plimsoll dike run --config dike.toml --set run.terminals=64 --set run.label=64 --json 64.json",
        "One run of a comparison: `plimsoll dike report` shows them beside one another.",
    ),
];

const REPORT_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike report result.json", "The tables again."),
    ("plimsoll dike report result.json other.json --html both.html", "Two runs compared."),
    (
        "plimsoll dike report --merge one.json two.json three.json --json all.json",
        "Three clients that drove the same run together.",
    ),
];

const CHECK_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike check --config dike.toml", ""),
    ("plimsoll dike check --config dike.toml --json check.json", ""),
];

const TEST_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll dike test --config dike.toml", "All tests."),
    (
        "plimsoll dike test isolation --config dike.toml --history history.jsonl",
        "One of them, with what Elle needs to judge it as well.",
    ),
];

const DESTROY_EXAMPLES: &[(&str, &str)] = &[("plimsoll dike destroy --config dike.toml", "")];

/// The arguments that make this program load its machine ([`DikeCommand::Stress`]).
pub(crate) const WORKER: [&str; 2] = ["dike", "stress"];

/// A functional test.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestName {
    /// All of them.
    All,
    /// Rings of waiting transactions are broken up in time.
    Deadlock,
    /// What changes together is read together.
    Snapshot,
    /// A history of lists has no anomaly that the isolation level forbids.
    Isolation,
}

/// The flags that all commands with a configuration have.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The configuration; without it every parameter has its default.
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set one parameter over the configuration, such as run.terminals=64. The password may come
    /// from the environment's DIKE_PASSWORD instead.
    #[arg(long, short, value_name = "PART.NAME=VALUE")]
    pub set: Vec<String>,
    /// Write the result as JSON to this file; `-` for standard output, instead of text.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(long, short)]
    pub quiet: bool,
}

fn template_names() -> Vec<&'static str> {
    TEMPLATES.iter().map(|(name, _)| *name).collect()
}

impl Common {
    fn config(&self) -> Result<Config, Box<dyn Error>> {
        let text = match &self.config {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        };
        let config = Config::parse(&text, &self.set).map_err(|refusal| match &self.config {
            Some(path) => format!("{}: {refusal}", path.display()),
            None => refusal.to_string(),
        })?;
        writable(self.json.as_deref())?;
        Ok(config)
    }

    fn progress(&self) -> Progress {
        Progress::stderr(self.quiet)
    }

    /// Says a result as text, or as the document that was asked for.
    fn say(&self, text: &str, found: &Found<'_>) -> Result<(), Box<dyn Error>> {
        say(text, self.json.as_deref(), || Ok(serde_json::to_string_pretty(found)?))
    }
}

/// Standard output, where a file may be named.
const STDOUT: &str = "-";

/// Refuses a file that cannot be written: a run of hours should not end in a message that was due
/// at its start.
fn writable(file: Option<&Path>) -> Result<(), Box<dyn Error>> {
    match file.filter(|file| file.as_os_str() != STDOUT) {
        Some(file) => Ok(check_writable(file)?),
        None => Ok(()),
    }
}

/// Writes a document to the file that was named, if any was.
fn keep(
    json: Option<&Path>,
    document: impl FnOnce() -> Result<String, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    match json.filter(|file| file.as_os_str() != STDOUT) {
        Some(file) => Ok(write_whole(file, &(document()? + "\n"))?),
        None => Ok(()),
    }
}

/// Says a result as text and writes it as JSON, or says the JSON.
fn say(
    text: &str,
    json: Option<&Path>,
    document: impl Fn() -> Result<String, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let kept = keep(json, &document);
    let said = match json {
        Some(file) if file.as_os_str() == STDOUT => document()? + "\n",
        _ => text.to_owned(),
    };
    terminal::say(&said)?;
    kept
}

/// Says what runs have come to, and writes the document and the page.
fn say_runs(
    document: &Document,
    more: &str,
    json: Option<&Path>,
    page: Option<&Path>,
) -> Result<(), Box<dyn Error>> {
    // Without a terminal a result is as wide everywhere.
    let columns = console::Term::stdout().size_checked().map_or(100, |(_, columns)| usize::from(columns));
    let said = say(&(table::render(document, columns) + more), json, || Ok(document.to_json()));
    let shown = page.map_or(Ok(()), |page| write_whole(page, &html::render(document)));
    said?;
    Ok(shown?)
}

/// Where the results of a run go if nobody has said so.
fn unnamed(config: &Config) -> PathBuf {
    let started: String = run::iso_8601(run::unix_seconds()).chars().filter(|c| !"-:".contains(*c)).collect();
    match config.run.clients {
        1 => format!("dike-{started}.json").into(),
        _ => format!("dike-{started}-{}.json", config.run.client).into(),
    }
}

/// Reads the documents of runs into one.
fn join(files: &[PathBuf], merge: bool) -> Result<Document, Box<dyn Error>> {
    let mut joined = Document::default();
    for (number, file) in files.iter().enumerate() {
        let said = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let document = Document::from_json(&text).map_err(|error| said(&error))?;
        if document.runs.is_empty() {
            return Err(said(&"there is no run in it: `plimsoll dike run --json FILE` writes one").into());
        }
        for run in document.runs {
            let same = |known: &Run| {
                known.about.label == run.about.label && known.about.repetition == run.about.repetition
            };
            match merge && number > 0 {
                // Without a partner the first run says what differs.
                true => {
                    let at = joined.runs.iter().position(same).unwrap_or(0);
                    joined.runs[at].merge_client(&run).map_err(|error| said(&error))?;
                }
                // The same run would count twice, as a repetition that agrees with itself.
                false if !run.about.started.is_empty() && joined.runs.contains(&run) => {
                    return Err(said(&"this run is there already: name each document once").into());
                }
                false => joined.runs.push(run),
            }
        }
    }
    Ok(joined)
}

/// What the other commands than `run` have found, for programs; it has the head of a [`Document`]
/// and the configuration.
#[derive(Serialize)]
struct Found<'a> {
    format: &'static str,
    version: u64,
    /// The program's.
    plimsoll: &'static str,
    /// Seconds since 1970 when it was written.
    unix_seconds: i64,
    config: &'a Config,
    /// The machine of this program.
    client_machine: Machine,
    /// Settings of the server, by endpoint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    server: BTreeMap<String, Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<&'a load::Loaded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'a [check::Checked]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a [function::Tested]>,
}

impl<'a> Found<'a> {
    fn new(config: &'a Config) -> Found<'a> {
        let (load, check, test) = (None, None, None);
        let unix_seconds = run::unix_seconds();
        let plimsoll = env!("CARGO_PKG_VERSION");
        Found {
            format: FORMAT,
            version: VERSION,
            plimsoll,
            unix_seconds,
            config,
            client_machine: Machine::this(),
            server: BTreeMap::new(),
            load,
            check,
            test,
        }
    }

    /// The same with the settings of the server.
    async fn at(config: &'a Config, connector: &Connector) -> Found<'a> {
        Found { server: run::server_settings(connector).await, ..Found::new(config) }
    }
}

/// Does what the command line says. Returns whether every verdict is good.
///
/// * `interruption`: makes the flag that a Ctrl-C sets, which ends a command with the results so
///   far. A command that is not to be ended so does not ask for it.
pub fn execute<E: Error + 'static>(
    args: DikeArgs,
    interruption: impl FnOnce() -> Result<Arc<AtomicBool>, E>,
) -> Result<bool, Box<dyn Error>> {
    if let DikeCommand::Template { name } = &args.command {
        let template = TEMPLATES.iter().find(|(known, _)| known == name);
        say(template.map(|(_, text)| *text).unwrap_or_default(), None, || Ok(String::new()))?;
        return Ok(true);
    }
    if let DikeCommand::Stress = args.command {
        return Ok(stress::run());
    }
    let stop = interruption()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(with_database(args.command, &stop));
    // Connections that wait for an answer keep nobody waiting.
    runtime.shutdown_background();
    result
}

async fn with_database(command: DikeCommand, stop: &Arc<AtomicBool>) -> Result<bool, Box<dyn Error>> {
    match command {
        DikeCommand::Template { .. } | DikeCommand::Stress => unreachable!("these need no database"),
        DikeCommand::Load { common, csv } => {
            let config = common.config()?;
            if let Some(directory) = csv {
                let rows = load::write_csv(&config.data, &directory, stop, common.progress())?;
                say(&format!("{rows} rows in {}\n", directory.display()), None, || Ok(String::new()))?;
                return Ok(true);
            }
            let connector = connector(&config)?;
            let loaded = load::load(&config, &connector, stop, common.progress()).await?;
            let text = describe(&loaded);
            common.say(&text, &Found { load: Some(&loaded), ..Found::at(&config, &connector).await })?;
            Ok(!loaded.interrupted)
        }
        DikeCommand::Run { common, check, report } => {
            run_repeatedly(&common, check, report.as_deref(), stop).await
        }
        DikeCommand::Report { files, merge, html, json } => {
            writable(html.as_deref())?;
            writable(json.as_deref())?;
            say_runs(&join(&files, merge)?, "", json.as_deref(), html.as_deref())?;
            Ok(true)
        }
        DikeCommand::Check { common } => {
            let config = common.config()?;
            let connector = connector(&config)?;
            let checked = check::check(&connector, &config.data).await?;
            let found = Found { check: Some(&checked), ..Found::at(&config, &connector).await };
            common.say(&check::render(&checked), &found)?;
            Ok(check::all_hold(&checked))
        }
        DikeCommand::Test { test, history, common } => {
            let config = common.config()?;
            writable(history.as_deref())?;
            let connector = connector(&config)?;
            let (tested, attempts) =
                function::test(test, &config, &connector, stop, common.progress()).await?;
            if let Some(path) = history {
                write_whole(&path, &function::attempts::lines(&attempts))?;
            }
            let found = Found { test: Some(&tested), ..Found::at(&config, &connector).await };
            common.say(&function::render(&tested), &found)?;
            Ok(tested.iter().all(|tested| tested.verdict != function::Verdict::Failed))
        }
        DikeCommand::Destroy { common } => {
            let config = common.config()?;
            let note = match load::destroy(&connector(&config)?).await? {
                0 => "there was nothing to drop".to_owned(),
                tables => format!("dropped {tables} tables"),
            };
            common.progress().note(&note);
            Ok(true)
        }
    }
}

/// Runs as often as the configuration says, and checks the database afterwards if that is wanted.
async fn run_repeatedly(
    common: &Common,
    check: bool,
    page: Option<&Path>,
    stop: &Arc<AtomicBool>,
) -> Result<bool, Box<dyn Error>> {
    let config = common.config()?;
    let json = common.json.clone().unwrap_or_else(|| unnamed(&config));
    writable(Some(&json))?;
    writable(page)?;
    let connector = connector(&config)?;
    let (mut document, mut good) = (Document::default(), true);
    for repetition in 1..=config.run.repeats {
        if config.run.repeats > 1 {
            common.progress().note(&format!("repetition {repetition} of {}", config.run.repeats));
        }
        match run::run(&config, &connector, repetition, stop, common.progress()).await {
            Ok(run) => document.runs.push(run),
            Err(error) if repetition == 1 => return Err(error.into()),
            // What was measured is not lost.
            Err(error) => {
                common.progress().note(&format!("repetition {repetition} could not begin: {error}"));
                good = false;
                break;
            }
        }
        if stop.load(Relaxed) {
            break;
        }
        if repetition < config.run.repeats {
            keep(Some(&json), || Ok(document.to_json()))?;
        }
    }
    good &= document.runs.iter().all(|run| {
        let as_planned = !run.about.interrupted && run.journal.problems().next().is_none();
        let kept = run.checks.iter().all(|check| check.ok || check.name != run::TOLD);
        as_planned && kept && run.never_committed().is_empty()
    });
    let mut conditions = String::new();
    if check && !stop.load(Relaxed) {
        let checks = match check::check(&connector, &config.data).await {
            Ok(checked) => {
                conditions = format!("\n{}", check::render(&checked));
                good &= check::all_hold(&checked);
                checked.iter().filter_map(check::Checked::of_run).collect()
            }
            Err(error) => {
                good = false;
                let name = "that consistency was checked".to_owned();
                vec![Check { name, ok: false, detail: error.to_string() }]
            }
        };
        if let Some(last) = document.runs.last_mut() {
            last.checks.extend(checks);
        }
    }
    say_runs(&document, &conditions, Some(&json), page)?;
    if common.json.is_none() {
        common.progress().note(&format!("the results are in {}", json.display()));
    }
    Ok(good)
}

fn connector(config: &Config) -> Result<Connector, Box<dyn Error>> {
    Ok(Connector::new(&config.target, config.workload.select_for_update)?)
}

fn describe(loaded: &load::Loaded) -> String {
    let mut text = format!(
        "loaded {} warehouses, {} rows in {:.1} s ({:.0} rows/s)",
        loaded.warehouses, loaded.rows, loaded.seconds, loaded.rows_per_second
    );
    if loaded.there_before > 0 {
        text += &format!("; {} were there", loaded.there_before);
    }
    if loaded.cleaned > 0 {
        text += &format!("; {} were begun earlier and loaded again", loaded.cleaned);
    }
    if loaded.interrupted {
        text += "; interrupted: load again to go on";
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::metrics::document::About;

    #[derive(Parser)]
    struct Dike {
        #[command(flatten)]
        args: DikeArgs,
    }

    fn parsed(line: &str) -> DikeCommand {
        Dike::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}")).args.command
    }

    #[test]
    fn the_command_line_is_understood() {
        <Dike as clap::CommandFactory>::command().debug_assert();
        let DikeCommand::Run { common, check, .. } =
            parsed("dike run --set run.terminals=3 -s data.warehouses=5 --check")
        else {
            panic!("a run")
        };
        let config = common.config().expect("valid");
        assert_eq!((config.run.terminals, config.data.warehouses, check), (3, 5, true));
        assert!(matches!(parsed("dike test snapshot"), DikeCommand::Test { test: TestName::Snapshot, .. }));
        assert!(matches!(parsed("dike template"), DikeCommand::Template { name } if name == "tpcc"));
        assert!(Dike::try_parse_from(["dike", "template", "nothing"]).is_err());
        assert!(Dike::try_parse_from(["dike", "report"]).is_err(), "a report is of some file");
    }

    #[test]
    fn what_cannot_be_done_is_said_before_anything_is_connected() {
        let refused = |line: &str| match parsed(line) {
            DikeCommand::Check { common } => common.config().expect_err("refused").to_string(),
            _ => panic!("a check"),
        };
        assert!(refused("dike check --config /nowhere/dike.toml").contains("cannot read /nowhere/dike.toml"));
        assert!(refused("dike check --json /nowhere/result.json").contains("/nowhere does not exist"));
        assert!(refused("dike check --set run.terminal=1").contains("terminal"));
    }

    /// Two documents of a run of one client each, and one of a check.
    fn files(directory: &Path) -> [PathBuf; 3] {
        let run = Run {
            about: About { label: "a".into(), repetition: 1, clients: 1, ..About::default() },
            ..Run::default()
        };
        let config = Config::default();
        let found = serde_json::to_string(&Found::new(&config)).expect("plain");
        let texts =
            [Document { runs: vec![run.clone()] }.to_json(), Document { runs: vec![run] }.to_json(), found];
        let files = ["one", "two", "check"].map(|name| directory.join(name));
        files.iter().zip(texts).for_each(|(file, text)| std::fs::write(file, text).expect("written"));
        files
    }

    #[test]
    fn documents_are_joined_and_those_of_clients_of_one_run_are_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, two, check] = files(directory.path());
        let both = [one.clone(), two];
        let compared = join(&both, false).expect("readable");
        assert_eq!((compared.runs.len(), compared.runs[0].about.clients), (2, 1));
        let merged = join(&both, true).expect("of one run");
        assert_eq!((merged.runs.len(), merged.runs[0].about.clients), (1, 2));
        let mut other = Document::from_json(&std::fs::read_to_string(&one).expect("read")).expect("readable");
        other.runs[0].about.label = "b".into();
        std::fs::write(&both[1], other.to_json()).expect("written");
        let refused = join(&both, true).expect_err("two runs").to_string();
        assert!(refused.contains("labels differ, a and b"), "{refused}");
        other.runs[0].about.started = "2026-01-01T00:00:00Z".into();
        std::fs::write(&both[1], other.to_json()).expect("written");
        let twice = join(&[both[1].clone(), both[1].clone()], false).expect_err("one run").to_string();
        assert!(twice.contains("two: this run is there already"), "{twice}");
        let refused = join(&[one, check], false).expect_err("no run").to_string();
        assert!(refused.contains("check: there is no run in it"), "{refused}");
        assert!(
            join(&[PathBuf::from("/nowhere/a.json")], false)
                .is_err_and(|why| why.to_string().contains("/nowhere"))
        );
    }
}
