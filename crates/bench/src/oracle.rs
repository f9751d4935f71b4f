//! `plimsoll bench oracle`: how fast timestamps are to be had from one place (DST paper, Figure
//! 6(a)).
//!
//! From less to more of the service: one counter that threads add to; counters of which every
//! thread has its own, in a cache line of its own, as the writers of a vector have; what the oracle
//! does with a number besides, keeping track of what is not installed yet so that a snapshot misses
//! nothing, on its one thread and with messages that nobody carries; and the whole: an oracle that
//! is a process, asked by a shard of this one over TCP, one message per request or one for all
//! requests of a pass.
//!
//! Of the service there are two figures. A *snapshot* is asked for and waits for the answer. A
//! *commit* takes a timestamp, is reported at once, for there is nothing to install, and waits for
//! a snapshot that contains it. So each figure has a round trip per operation at least (a commit
//! under gts two), and what can be had at most is seen with many in flight. Snapshots that wait
//! when an answer comes share it, and then an operation costs less than a message.
//!
//! The oracle is this program again, with `--member`, and ends when its standard input does
//! ([`crate::net::Other`]).

use std::error::Error;
use std::hint::black_box;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_args::publish;
use plimsoll_engine::machine::{self, Machine};
use plimsoll_engine::{Engine, EngineOptions};
use plimsoll_page::progress::Progress;
use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::pairs::{Pair, Protocol, Scheme};
use plimsoll_txn::timestamp::{Freshness, OracleOptions};
use plimsoll_txn::timestamps::{Gts, Vts};
use plimsoll_types::Timestamp;
use serde::Serialize;

use crate::cli::oracle::OraclePlan;
use crate::net::{HERE, Other, between_two, closed_loop};
use crate::outcome::outcome;
use crate::report::table::doubts;

/// How long oracle and shard may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);
const LOST: &str = "the connection to the oracle was lost: has somebody ended it?";
/// Additions between two looks at whether the time is over.
const ADDITIONS: u64 = 1000;

/// What is had in memory, per second.
#[derive(Clone, Debug, Serialize)]
struct InMemory {
    what: &'static str,
    threads: usize,
    per_second: f64,
}

/// What the service does.
#[derive(Clone, Debug, Serialize)]
struct Service {
    scheme: &'static str,
    /// Whether one message carries all requests of a pass.
    batch: bool,
    in_flight: usize,
    snapshots_per_second: f64,
    commits_per_second: f64,
    /// To the oracle; those that need an answer have one each.
    messages_per_snapshot: f64,
    messages_per_commit: f64,
}

#[derive(Debug, Serialize)]
struct Document {
    plimsoll: &'static str,
    commit: &'static str,
    machine: Machine,
    date: String,
    command: Vec<String>,
    memory: Vec<InMemory>,
    service: Vec<Service>,
    /// What casts doubt on the figures, in sentences.
    doubts: Vec<String>,
    interrupted: bool,
}

/// Measures, and reports. Returns true: a slow oracle is a figure, not a failure.
pub fn oracle(plan: &OraclePlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn Error>> {
    let steps = 2 * plan.threads.len() + 2 + 4 * 2 * plan.measure.in_flight.len();
    let mut line = Progress::stderr(plan.measure.quiet).line("oracle", steps as u64);
    let mut done = 0;
    let mut step = |what: &str| {
        line.show(done, || format!("{done}/{steps} · {what}"));
        done += 1;
    };
    let watch = machine::Watch::start();
    let mut memory = Vec::new();
    for (what, own) in [("one counter", false), ("a counter each", true)] {
        for &threads in plan.threads.iter().take_while(|_| !interrupted.load(Relaxed)) {
            step(&format!("{what}, {}", units::plural(threads as u64, "thread", "threads")));
            memory.push(InMemory {
                what,
                threads,
                per_second: additions(threads, own, plan.measure.duration),
            });
        }
    }
    for (what, outcome) in
        [("oracle of gts", outcome::<Gts> as fn(Duration) -> (f64, f64)), ("oracle of vts", outcome::<Vts>)]
    {
        if !interrupted.load(Relaxed) {
            step(what);
            memory.push(InMemory { what, threads: 1, per_second: 1e9 / outcome(plan.measure.duration).1 });
        }
    }
    let mut service = Vec::new();
    for scheme in [Scheme::Gts, Scheme::Vts] {
        for batch in [false, true] {
            if interrupted.load(Relaxed) {
                continue;
            }
            let mut step = |what: &str| step(&format!("{} over TCP, {what}", scheme.name()));
            service.extend(serviced(plan, scheme, batch, &mut step, interrupted)?);
        }
    }
    drop(line);
    let document = Document {
        plimsoll: env!("CARGO_PKG_VERSION"),
        commit: machine::COMMIT,
        machine: machine::describe(),
        date: machine::utc_now(),
        command: machine::command_line(),
        memory,
        service,
        doubts: watch.disturbance().into_iter().collect(),
        interrupted: interrupted.load(Relaxed),
    };
    publish(&plan.measure.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(true)
}

/// A counter that shares its cache line with nothing.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicU64);

/// How often per second threads add to one counter, or each to its own.
fn additions(threads: usize, own: bool, time: Duration) -> f64 {
    let counters: Vec<Counter> = (0..if own { threads } else { 1 }).map(|_| Counter::default()).collect();
    let begun = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let counter = &counters[if own { number } else { 0 }].0;
            scope.spawn(move || {
                while begun.elapsed() < time {
                    for _ in 0..ADDITIONS {
                        black_box(counter.fetch_add(1, Relaxed));
                    }
                }
            });
        }
    });
    let all: u64 = counters.iter().map(|counter| counter.0.load(Relaxed)).sum();
    all as f64 / begun.elapsed().as_secs_f64()
}

/// Measures the service of one oracle, asked by a protocol that does nothing else here.
fn serviced(
    plan: &OraclePlan,
    scheme: Scheme,
    batch: bool,
    step: &mut impl FnMut(&str),
    interrupted: &AtomicBool,
) -> Result<Vec<Service>, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = listener.local_addr()?;
    let mut arguments = vec!["bench", "oracle", "--member", scheme.name()];
    arguments.extend(batch.then_some("--batch"));
    let (_other, said) = Other::start(&arguments, here)?;
    let [there] = said[..] else { return Err("an oracle says one address".into()) };
    let engine = node_of(scheme, 0, listener, [here, there], batch)?;
    engine.wait_for_others(PATIENCE)?;
    let mut rows = Vec::new();
    for &in_flight in &plan.measure.in_flight {
        if interrupted.load(Relaxed) {
            break;
        }
        let mut measure = |what, commits| {
            step(&format!("{in_flight} {what} at a time"));
            per_second(&engine, in_flight, commits, plan.measure.duration).ok_or(LOST)
        };
        let (snapshots, commits) = (measure("snapshots", false)?, measure("commits", true)?);
        rows.push(Service {
            scheme: scheme.name(),
            batch,
            in_flight,
            snapshots_per_second: snapshots.0,
            commits_per_second: commits.0,
            messages_per_snapshot: snapshots.1,
            messages_per_commit: commits.1,
        });
    }
    Ok(rows)
}

/// Is the oracle, until its standard input ends.
pub fn serve(scheme: Scheme, batch: bool) -> Result<bool, Box<dyn Error>> {
    if !pair_of(scheme).has_oracle() {
        return Err(format!("{scheme} has no oracle").into());
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = listener.local_addr()?;
    let there = Other::answer(&[here])?;
    let _engine = node_of(scheme, 1, listener, [there, here], batch)?;
    Other::stay()?;
    Ok(true)
}

/// The pair that asks the oracle of a scheme.
fn pair_of(scheme: Scheme) -> Pair {
    Pair { protocol: Protocol::Occ, scheme }
}

/// The node that asks, or the oracle, which has the larger number.
fn node_of(
    scheme: Scheme,
    number: u16,
    listener: TcpListener,
    nodes: [SocketAddr; 2],
    batch: bool,
) -> std::io::Result<Engine> {
    let oracle = OracleOptions { batch, ..OracleOptions::default() };
    let options = EngineOptions { pin: Some(number.into()), oracle, ..EngineOptions::default() };
    Engine::networked(pair_of(scheme), Vec::new(), options, between_two(number, listener, nodes))
}

/// How many operations there are per second, and how many messages to the oracle one takes; `None`
/// if the oracle is lost.
fn per_second(engine: &Engine, in_flight: usize, commits: bool, time: Duration) -> Option<(f64, f64)> {
    let oracle_messages = || engine.status(HERE).counters.oracle_messages;
    let before = oracle_messages();
    let operation = async move |shard: &dyn AnyShard| operation(shard, commits).await;
    let (operations, taken) =
        engine.run_on(HERE, move |shard| closed_loop(shard, in_flight, time, operation))?;
    let messages = oracle_messages() - before;
    Some((operations as f64 / taken.as_secs_f64(), messages as f64 / operations.max(1) as f64))
}

/// A snapshot, or a commit and a snapshot that contains it.
async fn operation(shard: &dyn AnyShard, commits: bool) -> Option<()> {
    let at_least = if commits { shard.commit_nothing().await? } else { Timestamp::ZERO };
    let snapshot = shard.take_snapshot(Freshness { staleness_ns: 0, at_least }).await.ok()?;
    shard.release_snapshot(snapshot.held);
    if !snapshot.waited {
        // It was served from what another was answered; now others go on.
        shard.pause().await;
    }
    Some(())
}

fn show(document: &Document, terminal: Terminal) -> String {
    let mut text = terminal.bold("Timestamps from one place") + "\n\n";
    let mut columns = Columns::new(&[("in memory", 0), ("threads", 0), ("timestamps/s", 0)], false);
    for InMemory { what, threads, per_second } in &document.memory {
        columns.push(vec![(*what).to_owned(), units::thousands(*threads as u64), units::rate(*per_second)]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push_str("\n\n");
    let head = [
        ("over TCP", 0),
        ("requests", 0),
        ("in flight", 0),
        ("snapshots/s", 0),
        ("asked each", 1),
        ("commits/s", 0),
        ("asked each", 1),
    ];
    let mut columns = Columns::new(&head, false);
    for row in &document.service {
        columns.push(vec![
            row.scheme.to_owned(),
            (if row.batch { "batched" } else { "one by one" }).to_owned(),
            units::thousands(row.in_flight as u64),
            units::rate(row.snapshots_per_second),
            format!("{:.2}", row.messages_per_snapshot),
            units::rate(row.commits_per_second),
            format!("{:.2}", row.messages_per_commit),
        ]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    let note = "An oracle in memory is one thread that is handed messages for eight transactions at a time. Over TCP it is a \
                process, asked by one shard of another; a commit is reported at once and waits for a snapshot that \
                contains it. Asked: messages to the oracle per snapshot or commit.";
    text + &wrap(note, terminal.width, 0) + &doubts(&document.doubts, terminal)
}
