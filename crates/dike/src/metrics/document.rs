//! What is kept of runs: one JSON document.
//!
//! A [`Document`] holds runs of one or several databases, cluster sizes and repetitions. Runs
//! with the same contents are repetitions of one another ([`series`]); reports compare series. The
//! terminal's table and the HTML page are renderings of documents, so no figure can be in one and
//! differ in another.
//!
//! Units are in the names: `_us` microseconds, `_bytes`, `_seconds`, `_tps` transactions per
//! second. A `share` is a fraction from 0 to 1. A series has one value per second of the run,
//! warm-up included; figures leave it out. A file also has a `summary` per run, for scripts; it is
//! derived when written and ignored when read.
//!
//! Several clients may drive one run. Each writes a document, and [`Run::merge_client`] makes one
//! run of theirs: counts and offline terminals add up, latencies and heat merge bucket by bucket,
//! controls as [`Merge`] says. Their runs have to begin together; the clocks of the clients are
//! theirs to synchronize.
//!
//! **Versions.** The format has a number. A document of another one is refused with a sentence
//! rather than guessed at: figures that are half understood are worse than none. Fields may be
//! added without a new number if their absence has an obvious meaning.
//!
//! [`Merge`]: crate::control::track::Merge
//! [`series`]: super::series

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::environment::{Machine, Settings};
use super::figures::Summary;
use super::latency::{HEAT_CLASSES, Heat, Latency};
use super::recorder::{Recorder, add};
use super::series::{Contents, contents};
use super::summary::{ClientCpu, NodeFigures};
use crate::chaos::journal::Journal;
use crate::collect::sample::Reading;
use crate::control::SECOND_NS;
use crate::control::track::Control;

/// What a document says it is.
pub const FORMAT: &str = "dike";
/// The number of the format that this program reads and writes.
pub const VERSION: u64 = 1;

/// The parameter with the number of a client.
const CLIENT: &str = "run.client";

/// Runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// In the order in which they ran.
    pub runs: Vec<Run>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// What a comparison calls it, unless runs of this label differ in more. Repetitions share it.
    pub label: String,
    /// The database.
    pub database: String,
    /// Its version, as it says.
    pub database_version: String,
    /// Nodes of the database.
    pub nodes: u32,
    /// Which repetition this is, from 1.
    pub repetition: u32,
    /// Client processes.
    pub clients: u32,
    /// Terminals of all clients.
    pub terminals: u32,
    /// When it began, UTC, ISO 8601; empty if unknown.
    pub started: String,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// Everything that was set.
    pub config: BTreeMap<String, Value>,
    /// Settings of the server, by node, before the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server: BTreeMap<String, Settings>,
    /// The machines of the clients, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_machines: Vec<Machine>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What was run.
    pub about: About,
    /// Whole seconds at the beginning that enter no figure.
    pub warm_up_seconds: u64,
    /// Whole seconds, warm-up included.
    pub seconds: u64,
    /// By kind of transaction.
    pub kinds: Vec<Kind>,
    /// Attempts that the database rolled back, by cause.
    pub aborts: Vec<Series>,
    /// Attempts that failed otherwise, by cause.
    pub errors: Vec<Series>,
    /// Further attempts, by second.
    pub retries: Vec<u64>,
    /// Terminals without a connection, by second.
    pub offline_terminals: Vec<f64>,
    /// Transactions committed, by tenth of a second.
    pub tenths: Vec<u64>,
    /// Transactions by second and class of latency; response times if arrivals did not wait.
    pub heat: Heat,
    /// Intended against achieved.
    pub controls: Vec<Control>,
    /// What was done to the database.
    pub faults: Vec<Fault>,
    /// Each step of that, and what went wrong with it.
    #[serde(default, skip_serializing_if = "Journal::is_empty")]
    pub journal: Journal,
    /// What was seen of machines, by time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    /// What each node of the database held and did.
    pub nodes: Vec<NodeFigures>,
    /// What the machines of the clients had left.
    pub client_cpu: ClientCpu,
    /// What clients were told and what is in the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// What was verified, by name.
    pub checks: Vec<Check>,
}

/// How much of something clients were told, and how much of it the tables have gained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Of what: payments, orders, deliveries, or cents of something.
    pub what: String,
    /// What was acknowledged.
    pub told: i64,
    /// What may be there in addition: no client knows.
    pub in_doubt: i64,
    /// What the tables have gained.
    pub found: i64,
    /// What was acknowledged and is gone, over all districts or warehouses.
    pub lost: i64,
    /// What is there and was neither acknowledged nor in doubt.
    pub unasked: i64,
}

/// One kind of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Committed, by second.
    pub committed: Vec<u64>,
    /// Attempts that the database rolled back, by second.
    pub aborted: Vec<u64>,
    /// Attempts that failed otherwise, by second.
    pub failed: Vec<u64>,
    /// Transactions that were given up, by second.
    pub given_up: Vec<u64>,
    /// Transactions that had not ended some seconds after the end of the run.
    #[serde(default)]
    pub unended: u64,
    /// From the actual start to the commit, after the warm-up.
    pub service: Latency,
    /// From the intended start to the commit, after the warm-up; empty if terminals wait for the
    /// database.
    pub response: Latency,
}

/// Counts of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The cause.
    pub name: String,
    /// By second.
    pub counts: Vec<u64>,
    /// What was said the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Said>,
}

/// What the server, the driver or the client said when an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// When, in seconds of the run.
    pub at_seconds: f64,
    /// SQLSTATE or MySQL's number; empty if no server has said it.
    pub code: String,
    /// In its words.
    pub message: String,
}

impl Said {
    /// Characters of a message that are kept.
    const MESSAGE_MAX: usize = 300;

    /// At this time of the run; a long message is cut.
    pub fn new(at_ns: u64, code: &str, message: &str) -> Said {
        // It goes to terminals, and others have written it.
        let plain = message.chars().map(|c| if c.is_control() { ' ' } else { c });
        let mut kept: String = plain.take(Said::MESSAGE_MAX).collect();
        if message.chars().count() > Said::MESSAGE_MAX {
            kept.push('…');
        }
        Said { at_seconds: at_ns as f64 / SECOND_NS as f64, code: code.to_owned(), message: kept }
    }

    /// The earlier of two.
    pub(super) fn keep_first(mine: &mut Option<Said>, theirs: &Option<Said>) {
        if let Some(theirs) = theirs
            && mine.as_ref().is_none_or(|mine| theirs.at_seconds < mine.at_seconds)
        {
            *mine = Some(theirs.clone());
        }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code.as_str() {
            "" => write!(f, "{}", self.message),
            code => write!(f, "{code}: {}", self.message),
        }
    }
}

/// Something that was done to the database during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What was done.
    pub name: String,
    /// To whom.
    pub target: String,
    /// When it began.
    pub from_seconds: f64,
    /// When it was undone; nothing if it was not.
    pub to_seconds: Option<f64>,
}

impl Fault {
    /// Whether it is the same one, as another client or another repetition has seen it.
    pub fn is_same(&self, other: &Fault) -> bool {
        let apart_seconds = (self.from_seconds - other.from_seconds).abs();
        self.name == other.name && self.target == other.target && apart_seconds < 1.0
    }
}

/// Something that was verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What has to hold.
    pub name: String,
    /// Whether it does.
    pub ok: bool,
    /// How it is violated, or what was compared.
    pub detail: String,
}

impl Run {
    /// What the terminals of one client have recorded, merged, in a run that lasted so long. Only
    /// whole seconds count. Controls, faults, nodes and the client's processor are for the caller
    /// to fill in.
    pub fn new(about: About, mut recorded: Recorder, lasted_ns: u64) -> Run {
        let seconds = lasted_ns / SECOND_NS;
        recorded.cut(seconds);
        let layout = std::sync::Arc::clone(&recorded.layout);
        let kind = |(name, kind): (&String, &super::recorder::Kind)| Kind {
            name: name.clone(),
            committed: kind.committed.clone(),
            aborted: kind.aborted.clone(),
            failed: kind.failed.clone(),
            given_up: kind.given_up.clone(),
            unended: kind.unended,
            service: kind.service.finish(),
            response: kind.response.finish(),
        };
        let series = |names: &[String], counts: Vec<Vec<u64>>, said: Vec<Option<Said>>| {
            let series = |((name, counts), first): ((&String, Vec<u64>), Option<Said>)| {
                let first = first.filter(|said| said.at_seconds < seconds as f64);
                Series { name: name.clone(), counts, first }
            };
            names.iter().zip(counts).zip(said).map(series).collect()
        };
        Run {
            about,
            warm_up_seconds: layout.warm_up_seconds.min(seconds),
            seconds,
            kinds: layout.kinds.iter().zip(&recorded.kinds).map(kind).collect(),
            aborts: series(&layout.aborts, recorded.aborts, recorded.aborts_said),
            errors: series(&layout.errors, recorded.errors, recorded.errors_said),
            retries: recorded.retries,
            offline_terminals: recorded.offline_ns.iter().map(|ns| *ns as f64 / SECOND_NS as f64).collect(),
            tenths: recorded.tenths,
            heat: recorded.heat,
            ..Run::default()
        }
    }

    /// Whether every series has a value per second, as figures take for granted.
    fn is_consistent(&self) -> bool {
        let seconds = self.seconds as usize;
        let of_kinds =
            self.kinds.iter().flat_map(|kind| [&kind.committed, &kind.aborted, &kind.failed, &kind.given_up]);
        let causes = self.aborts.iter().chain(&self.errors).map(|cause| &cause.counts);
        let controls = self.controls.iter().flat_map(|of| [&of.intended, &of.achieved]);
        self.warm_up_seconds <= self.seconds
            && of_kinds.chain(causes).chain([&self.retries]).all(|counts| counts.len() == seconds)
            && self.offline_terminals.len() == seconds
            && self.tenths.len() / 10 == seconds
            && self.heat.seconds.len() == seconds
            && self.heat.seconds.iter().all(|classes| classes.len() <= HEAT_CLASSES)
            && controls
                .zip(self.controls.iter().flat_map(|of| [&of.weight; 2]))
                .all(|(a, b)| a.len() == b.len())
    }

    /// The seconds that enter figures, as indices of series.
    pub fn measured(&self) -> std::ops::Range<usize> {
        self.warm_up_seconds as usize..self.seconds as usize
    }

    /// Sum of a series over the measured seconds.
    pub fn sum(&self, series: &[u64]) -> u64 {
        series.iter().take(self.seconds as usize).skip(self.warm_up_seconds as usize).sum()
    }

    /// Transactions of all kinds committed, by second of the whole run.
    pub fn committed_by_second(&self) -> Vec<u64> {
        let mut sums = vec![0; self.seconds as usize];
        for kind in &self.kinds {
            sums.iter_mut().zip(&kind.committed).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// Adds what another client of the same run has measured. Faults, nodes and checks are those of
    /// all.
    pub fn merge_client(&mut self, other: &Run) -> Result<(), NotOneRun> {
        let differs = |what: &str, mine: &dyn fmt::Display, theirs: &dyn fmt::Display| NotOneRun {
            what: what.to_owned(),
            mine: mine.to_string(),
            theirs: theirs.to_string(),
        };
        let (mine, theirs) = (&self.about, &other.about);
        if mine.label != theirs.label {
            return Err(differs("labels", &mine.label, &theirs.label));
        }
        // A client has its own number, and may have its own terminals and endpoints.
        let of_a_client =
            |name: &str| ["terminals", "clients", "client machine", "target.endpoints"].contains(&name);
        let (ours, others) = (contents(self), contents(other));
        for name in ours.keys().chain(others.keys()).filter(|name| !of_a_client(name)) {
            let value = |of: &Contents| of.get(name).cloned().unwrap_or("not set".to_owned());
            if !name.starts_with("server.") && value(&ours) != value(&others) {
                return Err(NotOneRun { what: name.clone(), mine: value(&ours), theirs: value(&others) });
            }
        }
        let numbers = |run: &Run| match run.about.config.get(CLIENT) {
            Some(Value::Array(numbers)) => numbers.clone(),
            number => number.into_iter().cloned().collect(),
        };
        let merged = [numbers(self), numbers(other)].concat();
        if let Some(twice) = numbers(other).iter().find(|number| numbers(self).contains(number)) {
            return Err(NotOneRun {
                what: CLIENT.to_owned(),
                mine: twice.to_string(),
                theirs: twice.to_string(),
            });
        }
        if mine.repetition != theirs.repetition {
            return Err(differs("repetitions", &mine.repetition, &theirs.repetition));
        }
        if self.warm_up_seconds != other.warm_up_seconds {
            return Err(differs("seconds of warm-up", &self.warm_up_seconds, &other.warm_up_seconds));
        }
        if self.seconds != other.seconds {
            return Err(differs("seconds", &self.seconds, &other.seconds));
        }
        let names =
            |run: &Run| run.kinds.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>().join(", ");
        if names(self) != names(other) {
            return Err(differs("kinds of transactions", &names(self), &names(other)));
        }
        if !merged.is_empty() {
            self.about.config.insert(CLIENT.to_owned(), Value::Array(merged));
        }
        self.about.clients += other.about.clients;
        self.about.terminals += other.about.terminals;
        self.about.interrupted |= other.about.interrupted;
        for machine in &other.about.client_machines {
            if !self.about.client_machines.contains(machine) {
                self.about.client_machines.push(machine.clone());
            }
        }
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            add(&mut mine.committed, &theirs.committed);
            add(&mut mine.aborted, &theirs.aborted);
            add(&mut mine.failed, &theirs.failed);
            add(&mut mine.given_up, &theirs.given_up);
            mine.unended += theirs.unended;
            mine.service.merge(&theirs.service);
            mine.response.merge(&theirs.response);
        }
        merge_causes(&mut self.aborts, &other.aborts);
        merge_causes(&mut self.errors, &other.errors);
        add(&mut self.retries, &other.retries);
        self.offline_terminals.iter_mut().zip(&other.offline_terminals).for_each(|(a, b)| *a += b);
        add(&mut self.tenths, &other.tenths);
        self.heat.merge(&other.heat);
        for control in &other.controls {
            match self.controls.iter_mut().find(|mine| mine.name == control.name) {
                Some(mine) => mine.merge(control),
                None => self.controls.push(control.clone()),
            }
        }
        for fault in &other.faults {
            if !self.faults.iter().any(|known| known.is_same(fault)) {
                self.faults.push(fault.clone());
            }
        }
        self.journal.entries.extend_from_slice(&other.journal.entries);
        self.journal.entries.sort_by_key(|entry| entry.at_ns);
        if self.readings.is_empty() {
            self.readings = other.readings.clone();
        }
        if self.nodes.is_empty() {
            self.nodes = other.nodes.clone();
        }
        self.client_cpu.merge(&other.client_cpu);
        self.checks.extend_from_slice(&other.checks);
        Ok(())
    }
}

fn merge_causes(mine: &mut Vec<Series>, theirs: &[Series]) {
    for cause in theirs {
        match mine.iter_mut().find(|known| known.name == cause.name) {
            Some(known) => {
                add(&mut known.counts, &cause.counts);
                Said::keep_first(&mut known.first, &cause.first);
            }
            None => mine.push(cause.clone()),
        }
    }
}

/// Two clients that cannot have driven one run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOneRun {
    what: String,
    mine: String,
    theirs: String,
}

impl fmt::Display for NotOneRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotOneRun { what, mine, theirs } = self;
        if what == CLIENT {
            return write!(f, "client {mine} is there twice: give each client a run.client of its own");
        }
        write!(f, "these are not clients of one run: their {what} differ, {mine} and {theirs}")
    }
}

impl std::error::Error for NotOneRun {}

#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    version: u64,
    /// The version of the program that has written it.
    plimsoll: &'static str,
    runs: Vec<WrittenRun<'a>>,
}

#[derive(Serialize)]
struct WrittenRun<'a> {
    summary: Summary,
    #[serde(flatten)]
    run: &'a Run,
}

impl Document {
    /// The document as JSON.
    pub fn to_json(&self) -> String {
        let runs = self.runs.iter().map(|run| WrittenRun { summary: run.summary(), run }).collect();
        let written = Written { format: FORMAT, version: VERSION, plimsoll: env!("CARGO_PKG_VERSION"), runs };
        serde_json::to_string(&written).expect("strings, numbers and lists are JSON")
    }

    /// A document that was written by this format.
    pub fn from_json(text: &str) -> Result<Document, Unreadable> {
        #[derive(Deserialize)]
        struct Runs {
            /// Documents of other commands have none.
            #[serde(default)]
            runs: Vec<Run>,
        }
        let value: Value = serde_json::from_str(text).map_err(Unreadable::NotJson)?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(Unreadable::NotDike);
        }
        let version = value.get("version").and_then(Value::as_u64).ok_or(Unreadable::NotDike)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        let Runs { runs } = serde_json::from_value(value).map_err(Unreadable::Broken)?;
        match runs.iter().find(|run| !run.is_consistent()) {
            Some(run) => Err(Unreadable::Inconsistent(run.about.label.clone())),
            None => Ok(Document { runs }),
        }
    }
}

/// Why a document cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// No JSON.
    NotJson(serde_json::Error),
    /// JSON of somebody else.
    NotDike,
    /// Another version of the format.
    Version(u64),
    /// This version, but something is missing or of the wrong type.
    Broken(serde_json::Error),
    /// A run of this label whose series do not have a value per second.
    Inconsistent(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::NotJson(error) => write!(f, "it is not JSON: {error}"),
            Unreadable::NotDike => write!(f, "it is not a document of a Dike run"),
            Unreadable::Version(version) if *version < VERSION => write!(
                f,
                "it was written by an older program, in version {version} of the format; this one reads version \
                 {VERSION}: run the benchmark again, or use the program that wrote it"
            ),
            Unreadable::Version(version) => write!(
                f,
                "it was written by a newer program, in version {version} of the format; this one reads version \
                 {VERSION}"
            ),
            Unreadable::Broken(error) => write!(f, "it is damaged: {error}"),
            Unreadable::Inconsistent(label) => {
                write!(f, "it is damaged: series of {label} do not have a value per second")
            }
        }
    }
}

impl std::error::Error for Unreadable {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::recorder::{Committed, Layout};
    use super::*;
    use crate::control::track::{Merge, Tracker};

    /// A run of so many milliseconds with one transaction every ten, from a number on.
    fn run(label: &str, from: u64, lasted_ms: u64) -> Run {
        let layout = Arc::new(Layout {
            kinds: vec!["new_order".into(), "payment".into()],
            aborts: vec!["serialization".into()],
            errors: vec!["connection".into()],
            warm_up_seconds: 2,
        });
        let mut recorder = Recorder::new(layout);
        let mut tracker = Tracker::default();
        for i in 0..lasted_ms / 10 {
            let (started_ns, kind) = (10_000_000 * i, i as usize % 2);
            let ended_ns = started_ns + 1_000_000 * (1 + (i + from) % 7);
            recorder.committed(Committed { kind, intended_ns: None, started_ns, ended_ns });
            if i % 4 == 0 {
                recorder.aborted(started_ns, kind, 0);
                recorder.retried(started_ns);
            }
            tracker.add(started_ns, 0.5, (i % 2) as f64);
        }
        let about = About {
            label: label.into(),
            repetition: 1,
            clients: 1,
            terminals: 1,
            nodes: 3,
            ..About::default()
        };
        let mut run = Run::new(about, recorder, lasted_ms * 1_000_000);
        run.controls.push(tracker.finish("share", "share", Merge::Mean));
        run.faults.push(Fault {
            name: "kill".into(),
            target: "n2".into(),
            from_seconds: 4.0,
            to_seconds: Some(5.5),
        });
        run
    }

    #[test]
    fn a_document_survives_being_written_and_read() {
        let document = Document { runs: vec![run("a", 0, 6_500), run("b", 3, 6_000)] };
        let json = document.to_json();
        assert_eq!(Document::from_json(&json).expect("readable"), document);
        let value: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(value["version"], 1);
        assert_eq!(value["runs"][0]["summary"]["throughput_tps"], 100.0);
    }

    #[test]
    fn documents_of_other_versions_are_refused_with_a_sentence() {
        let refused = |text: &str| Document::from_json(text).expect_err("refused").to_string();
        let json = Document { runs: vec![run("a", 0, 4_000)] }.to_json();
        let older = refused(&json.replacen("\"version\":1", "\"version\":0", 1));
        assert!(
            older.contains("older program") && older.contains("version 0") && older.contains("version 1")
        );
        assert!(refused(&json.replacen("\"version\":1", "\"version\":2", 1)).contains("newer program"));
        assert!(refused(&json.replacen("\"version\":1,", "", 1)).contains("not a document"));
        assert!(refused("{}").contains("not a document") && refused("[").contains("not JSON"));
        assert!(refused(&json.replacen("\"tenths\"", "\"fifths\"", 1)).contains("damaged"));
        for (from, to) in [
            ("\"seconds\":4,\"kinds\"", "\"seconds\":5,\"kinds\""),
            ("\"warm_up_seconds\":2", "\"warm_up_seconds\":9"),
        ] {
            assert!(json.contains(from));
            assert!(refused(&json.replacen(from, to, 1)).contains("series of a do not have a value"));
        }
    }

    #[test]
    fn figures_leave_the_warm_up_and_the_broken_second_out() {
        let run = run("a", 0, 6_500);
        assert_eq!((run.warm_up_seconds, run.seconds), (2, 6));
        let summary = run.summary();
        assert_eq!((summary.seconds, summary.committed), (4, 400));
        assert_eq!((summary.throughput_tps, summary.median_second_tps), (100.0, 100.0));
        assert_eq!(summary.new_orders_per_minute, Some(3_000.0));
        assert_eq!((summary.abort_share, summary.retries), (0.2, 100));
        assert_eq!(run.latency().count(), 400);
        assert!((4_000..4_040).contains(&summary.latency.p50_us), "{:?}", summary.latency);
        assert_eq!(summary.latency.max_us, 7_000);
        assert!(summary.outages.is_empty() && !summary.client_is_bottleneck);
    }

    #[test]
    fn a_run_that_ended_in_its_warm_up_has_no_figures() {
        let summary = run("a", 0, 1_500).summary();
        assert_eq!((summary.seconds, summary.committed, summary.throughput_tps), (0, 0, 0.0));
        assert_eq!(Run::default().summary(), Summary::default());
    }

    #[test]
    fn clients_of_one_run_add_up() {
        let (mut one, other) = (run("a", 0, 6_000), run("a", 3, 6_000));
        one.merge_client(&other).expect("of one run");
        let summary = one.summary();
        assert_eq!((summary.committed, summary.throughput_tps), (800, 200.0));
        assert_eq!((one.about.clients, one.about.terminals, one.faults.len()), (2, 2, 1));
        assert_eq!(one.latency().count(), 800);
        assert_eq!(one.controls.len(), 1);
        assert_eq!(one.controls[0].weight[0], 200.0);
        assert_eq!(one.aborts[0].counts[2], 50);
        assert_eq!(one.heat.seconds[3].iter().sum::<u32>(), 200);
    }

    #[test]
    fn clients_of_different_runs_are_told_apart() {
        let mut one = run("a", 0, 6_000);
        let refused = |one: &mut Run, other: Run| one.merge_client(&other).expect_err("refused").to_string();
        assert!(refused(&mut one, run("b", 0, 6_000)).contains("labels differ, a and b"));
        assert!(refused(&mut one, run("a", 0, 5_000)).contains("seconds differ, 6 and 5"));
        let set = |name: &str, value: u64| {
            let mut run = run("a", 0, 6_000);
            run.about.config.insert(name.to_owned(), value.into());
            run
        };
        let mut one = set("data.warehouses", 2);
        assert!(refused(&mut one, set("data.warehouses", 3)).contains("data.warehouses differ, 2 and 3"));
        let mut one = set("run.client", 1);
        one.merge_client(&set("run.client", 2)).expect("of one run");
        for number in [1, 2] {
            let why = refused(&mut one, set("run.client", number));
            assert!(why.contains(&format!("client {number} is there twice")), "{why}");
        }
        one.merge_client(&set("run.client", 3)).expect("of one run");
        assert_eq!(one.about.clients, 3);
    }

    #[test]
    fn repetitions_are_grouped_and_the_middle_one_stands_for_them() {
        let mut runs = vec![run("a", 0, 6_000), run("b", 0, 6_000), run("a", 0, 6_000), run("a", 0, 6_000)];
        // Throughputs of a: 100, 50, 75.
        runs[2].kinds[0].committed.iter_mut().for_each(|count| *count = 0);
        runs[3].kinds[0].committed.iter_mut().for_each(|count| *count /= 2);
        let document = Document { runs };
        let groups = document.groups();
        assert_eq!(groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(groups[0].runs.len(), 3);
        assert_eq!(groups[0].middle().summary().throughput_tps, 75.0);
    }
}
