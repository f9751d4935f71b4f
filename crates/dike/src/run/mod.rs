//! Running transactions from many terminals, for a time, whatever happens to the database.
//!
//! A [`Plan`] is what the configuration asks of the controls. Terminals are tasks (`terminal.rs`)
//! that draw what the plan says ([`Steered`]) and record for themselves; at the end all is one
//! [`Run`] of the document. The run measures what ends between the warm-up and the deadline.
//! Transactions that are under way at the deadline are given a moment to end and count nowhere.
//!
//! Before the first transaction all connections are made, so that a wrong address or password ends
//! the run at once and with a sentence. After that nothing about the database ends it but its time,
//! or Ctrl-C. Faults and looks at machines go on beside it ([`companions`]).

#![allow(clippy::disallowed_types)] // Terminals are no shards: they share the queues of one client.

mod client;
pub mod companions;
mod connections;
mod counts;
mod ledger;
mod nodes;
mod plan;
mod server;
mod steered;
mod terminal;
mod turnstile;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_types::random::Rng;
use serde_json::Value;
use tokio::task::JoinHandle;

pub use counts::INTENDED;
pub use ledger::NAME as TOLD;
pub use plan::Plan;
pub use server::settings as server_settings;
pub use steered::Steered;

use crate::config::{Config, Refusal};
use crate::control::SECOND_NS;
use crate::control::contention::{Controller, HotSpots, Schedule};
use crate::control::load::{Arrivals, LoadTally, Pacer};
use crate::load::lease::Lease;
use crate::load::scale::Scale;
use crate::load::{self, LoadError};
use crate::metrics::document::{About, Check, Kept};
use crate::metrics::environment::Machine;
use crate::metrics::{Recorder, Run};
use crate::progress::{Line, Progress};
use crate::report::live::{self, Counters, Frame, Now};
use crate::target::{Cause, Connector, Failure, Family, civil};
use crate::transactions::{Inputs, Plain};
use client::Client;
use companions::{Accompanied, Companions};
use connections::Connections;
use counts::Running;
use ledger::{Ledger, Tables};
use steered::Tallies;
use terminal::{Shared, Stream, Terminal};
use turnstile::Turnstile;

/// How long transactions that are under way at the deadline may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// Pause between two questions whether the database is back.
const AGAIN: Duration = Duration::from_millis(200);
/// How long the database may be away after the end of a run; if it is away for longer, its tables
/// are not read.
const AWAY: Duration = Duration::from_secs(10);
/// How long reading the tables may take.
const READING: Duration = Duration::from_secs(600);
/// How often contention is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the mix once, while no command but other runs works on the tables; `repetition` counts from
/// 1.
pub async fn run(
    config: &Config,
    connector: &Connector,
    repetition: u32,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Run, LoadError> {
    let lease = Lease::beside_runs(connector, "plimsoll dike run").await?;
    let run = run_beside(config, connector, repetition, stop, progress).await;
    lease.release().await;
    run
}

async fn run_beside(
    config: &Config,
    connector: &Connector,
    repetition: u32,
    stop: &Arc<AtomicBool>,
    progress: Progress,
) -> Result<Run, LoadError> {
    let refused = |refusal: Refusal| Failure::new(Cause::Other, refusal.to_string());
    let plan = Arc::new(Plan::new(config).map_err(refused)?);
    let companions = Companions::prepare(config).await.map_err(refused)?;
    load::verify(connector, &config.data).await?;
    if config.mix.ever(crate::transactions::Transaction::UpdateBalance) {
        load::remember_balances_updated(connector).await?;
    }
    let mut about = about(config, repetition);
    about.database_version = version(connector).await?;
    about.server = server::settings(connector).await;
    about.client_machines = vec![Machine::this()];
    let (terminals, clients) = (config.run.terminals, config.run.clients);
    let count = if config.run.connections == 0 { terminals } else { config.run.connections };
    let connections = Connections::new(connector.through(&companions.proxies()), count as usize);
    progress.note(&format!("connecting {count} times"));
    connections.open().await?;
    let ledger = Ledger::new(&Scale::new(&config.data));
    // Each of several clients knows a part of what all were told.
    let before = match clients {
        1 => {
            progress.note("reading what the tables hold");
            Some(ledger.read(connector).await)
        }
        _ => None,
    };
    let nodes = nodes::look(connector).await;

    let spots = plan.contention.as_ref().map(|schedule| HotSpots::new(schedule.items()));
    let contention = plan.contention.clone().zip(spots.clone());
    let turnstiles = plan.contention.as_ref().filter(|_| config.contention.queue).map_or(0, Schedule::items);
    let stream_rng = Rng::new(config.run.seed, u64::MAX - u64::from(config.run.client));
    let now_s = unix_seconds();
    about.started = iso_8601(now_s);
    let shared = Arc::new(Shared {
        begun: Instant::now(),
        date_s: now_s,
        length_ns: (config.run.warmup_s + config.run.duration_s) * SECOND_NS,
        stop: stop.clone(),
        retry: config.retry.clone(),
        transaction_timeout: Duration::from_millis(config.target.transaction_timeout_ms),
        stream: config.arrivals.are_open().then(|| Mutex::new(Stream::new(plan.load, clients, stream_rng))),
        connections,
        turnstiles: (0..turnstiles).map(|_| Turnstile::default()).collect(),
        running: Running::default(),
        ledger,
        kinds: counts::numbers(config),
    });
    let (give_up, given_up) = tokio::sync::watch::channel(false);
    let tasks: Vec<JoinHandle<Terminal>> = make(config, &plan, spots.as_ref(), &shared)
        .into_iter()
        .map(|terminal| tokio::spawn(terminal.run(given_up.clone())))
        .collect();

    let controller =
        contention.map(|(schedule, spots)| Controller::new(spots, schedule, 1.0 / f64::from(clients)));
    let mut watch = Watch {
        line: progress.line("running", shared.length_ns / 1_000_000),
        frame: Frame {
            seconds: shared.length_ns / SECOND_NS,
            warm_up_seconds: config.run.warmup_s,
            terminals,
        },
        plan: Arc::clone(&plan),
        spots,
        controller,
        accompanied: companions.begin(shared.begun),
        client: Client::new(),
        share: 1.0 / f64::from(clients),
        before: Counters::default(),
        said: String::new(),
    };
    let mut clock = tokio::time::interval(LOOK);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !shared.over() {
        clock.tick().await;
        watch.look(&shared);
    }
    let lasted_ns = shared.elapsed_ns().min(shared.length_ns);
    let Watch { controller, client, mut accompanied, line, .. } = watch;
    drop(line);
    accompanied.stop();

    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && !tasks.iter().all(JoinHandle::is_finished) {
        tokio::time::sleep(LOOK).await;
    }
    // Whoever does not end now has a database that does not answer; nobody listens only if all have
    // ended.
    let _ = give_up.send(true);
    let mut recorder = Recorder::new(Arc::new(counts::layout(config)));
    let (mut tallies, mut load) = (Tallies::default(), LoadTally::default());
    for task in tasks {
        let terminal = task.await.expect("a terminal does not panic");
        recorder.merge(&terminal.recorder);
        load.merge(&terminal.load);
        tallies.merge(&terminal.control.into_tallies());
    }
    let ended = Instant::now();
    about.interrupted = lasted_ns < shared.length_ns;
    let mut run = Run::new(about, recorder, lasted_ns);
    run.controls = tallies.finish(&plan);
    run.controls.extend(controller.iter().flat_map(Controller::finish));
    if config.arrivals.rate_per_s > 0.0 || config.arrivals.shape != crate::config::Shape::Constant {
        run.controls.push(load.finish(&plan.load, 1.0 / f64::from(clients), run.seconds as usize));
    }
    run.client_cpu = client.into_cpu();
    let holding = accompanied.holding();
    if !holding.is_empty() {
        progress.note(&format!("undoing {}", holding.join(", ")));
    }
    accompanied.end().await.enter(&mut run);
    if !run.about.interrupted && run.journal.brings_back() {
        back(connector, Duration::from_secs_f64(config.chaos.limit_s), progress).await;
    }
    run.nodes = nodes::figures(&nodes, nodes::look(connector).await, ended);
    if let Some(before) = before {
        // A run that is interrupted now still has its results.
        let interrupted = async {
            while run.about.interrupted || !stop.load(Relaxed) {
                tokio::time::sleep(AGAIN).await;
            }
        };
        let told = tokio::select! {
            told = told(connector, &shared.ledger, before, &run, progress) => told,
            () = interrupted => Err(Failure::new(Cause::Other, "it was interrupted")),
        };
        let check = match told {
            Ok((kept, check)) => {
                run.kept = kept;
                check
            }
            Err(failure) => ledger::not_compared(&failure.to_string()),
        };
        run.checks.push(check);
    }
    run.checks.extend(shared.stream.as_ref().map(|stream| {
        let mut stream = stream.lock().expect("no terminal runs any more");
        begun_when_due(stream.backlog(clients, lasted_ns))
    }));
    Ok(run)
}

/// Compares what clients were told with what is in the tables now. Tries for a while if the
/// database does not answer, unless a fault has left it down.
async fn told(
    connector: &Connector,
    ledger: &Ledger,
    before: Result<Tables, Failure>,
    run: &Run,
    progress: Progress,
) -> Result<(Vec<Kept>, Check), Failure> {
    let before = before?;
    progress.note("comparing the tables with what clients were told");
    let until = Instant::now() + if run.journal.leaves_down() { Duration::ZERO } else { AWAY };
    // The user who interrupted the run is waiting for its end.
    let patience = if run.about.interrupted { AWAY } else { READING };
    loop {
        let read = tokio::time::timeout(patience, ledger.read(connector)).await;
        let late = || Failure::new(Cause::Timeout, format!("no answer within {patience:?}"));
        match read.unwrap_or_else(|_| Err(late())) {
            Ok(after) => return Ok(ledger.compare(&before, &after)),
            Err(failure) if failure.ends_connection() && Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Waits until the database answers, but not longer than this: what a schedule has started again at
/// the end of a run is asked for its figures, and has to be there for the next run.
async fn back(connector: &Connector, patience: Duration, progress: Progress) {
    let begun = Instant::now();
    let mut said = false;
    while connector.connect(0).await.is_err() && begun.elapsed() < patience {
        if !std::mem::replace(&mut said, true) {
            progress.note("waiting for the database to answer again");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// All terminals of this client.
fn make(
    config: &Config,
    plan: &Arc<Plan>,
    spots: Option<&Arc<HotSpots>>,
    shared: &Arc<Shared>,
) -> Vec<Terminal> {
    let scale = Scale::new(&config.data);
    let plain = Plain::new(config);
    let layout = Arc::new(counts::layout(config));
    let first = (config.run.client - 1) * config.run.terminals;
    // A rate that waits for the database; without a rate the process says nothing.
    let process = Arrivals::Closed;
    let terminal = |number: u32| {
        let mut rng = Rng::new(config.run.seed, 1 << 32 | u64::from(number));
        Terminal {
            shared: Arc::clone(shared),
            inputs: Inputs::new(&scale, &config.workload, config.run.seed, number),
            control: Steered::new(Arc::clone(plan), plain.of_terminal(config, number), spots.cloned()),
            pacer: Pacer::new(plan.load, process, config.run.all_terminals(), &mut rng),
            rng,
            recorder: Recorder::new(Arc::clone(&layout)),
            load: LoadTally::new(),
            under_way: None,
        }
    };
    (first..first + config.run.terminals).map(terminal).collect()
}

/// What looks at a run while it goes on.
struct Watch {
    line: Line,
    frame: Frame,
    plan: Arc<Plan>,
    spots: Option<Arc<HotSpots>>,
    controller: Option<Controller>,
    accompanied: Accompanied,
    client: Client,
    /// Of all terminals, those of this client.
    share: f64,
    /// The counters a second ago, and what was said then.
    before: Counters,
    said: String,
}

impl Watch {
    fn look(&mut self, shared: &Shared) {
        let now_ns = shared.elapsed_ns();
        if let Some(controller) = &mut self.controller {
            controller.look(now_ns);
        }
        if now_ns / SECOND_NS > self.before.elapsed_ns / SECOND_NS {
            self.client.look();
            let after = shared.running.counters(now_ns);
            let controls: Vec<(&str, f64, f64)> = self.contention(now_ns).collect();
            let holding = self.accompanied.holding();
            let faults: Vec<&str> = holding.iter().map(String::as_str).collect();
            let now = Now { p99_us: shared.running.p99_us(), controls: &controls, faults: &faults };
            self.said = live::line(self.frame, self.before, after, now);
            self.before = after;
        }
        let said = &self.said;
        self.line.show(now_ns.min(shared.length_ns) / 1_000_000, || said.clone());
    }

    /// Intended and achieved intensity of each hot district.
    fn contention(&self, now_ns: u64) -> impl Iterator<Item = (&'static str, f64, f64)> {
        self.plan.contention.iter().zip(&self.spots).flat_map(move |(schedule, spots)| {
            (0..schedule.items()).map(move |item| {
                ("CI", self.share * schedule.intended(now_ns, item), f64::from(spots.competing(item)))
            })
        })
    }
}

/// In an open loop, whether terminals kept up.
fn begun_when_due(backlog: u64) -> Check {
    let detail = match backlog {
        0 => "no transaction that was due was left at the end".to_owned(),
        _ => format!(
            "{backlog} were due at the end and no terminal was free to begin them; the load was more than could \
             be carried, and latencies do not say how much more"
        ),
    };
    Check { name: "every transaction is begun when it is due".to_owned(), ok: backlog == 0, detail }
}

/// What is run, as far as it is known before.
fn about(config: &Config, repetition: u32) -> About {
    let settings = settings(config);
    let kind = settings.get("target.kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    About {
        label: if config.run.label.is_empty() { kind.clone() } else { config.run.label.clone() },
        database: kind,
        nodes: config.placement.nodes,
        repetition,
        clients: 1,
        terminals: config.run.terminals,
        config: settings,
        ..About::default()
    }
}

/// All parameters, as `part.name`.
fn settings(config: &Config) -> BTreeMap<String, Value> {
    let parts = serde_json::to_value(config).unwrap_or_default();
    let mut settings = BTreeMap::new();
    for (part, names) in parts.as_object().into_iter().flatten() {
        for (name, value) in names.as_object().into_iter().flatten() {
            settings.insert(format!("{part}.{name}"), value.clone());
        }
    }
    settings
}

/// The version of the database, without the rest of what it says about itself.
async fn version(connector: &Connector) -> Result<String, Failure> {
    let said = connector.connect(0).await?.text_value("SELECT version()").await?;
    let is_version =
        |word: &&str| word.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
    let version = match connector.family() {
        Family::Postgres => said.split([' ', ',']).find(is_version),
        Family::Mysql => said.split(' ').next(),
    };
    Ok(version.map(str::to_owned).unwrap_or(said))
}

/// Seconds since 1970 as ISO 8601, UTC.
pub(crate) fn iso_8601(seconds: i64) -> String {
    let (year, month, day, hour, minute, second) = civil(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> i64 {
    // Orders and payments carry dates; nothing here is timed by them.
    #[allow(clippy::disallowed_methods)]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
