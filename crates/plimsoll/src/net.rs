//! `plimsoll bench net`: what a call to another node costs, against the least that a socket allows.
//!
//! First two threads throw a small message to and fro over a loopback connection with blocking reads and writes: no
//! program that sleeps while it waits can be faster. Then a task of a shard does the same with calls to a shard of another
//! node, over the same interface. Both in turns, because machines have moods; what is compared are medians. Last,
//! many calls are in flight at once; a message is a request or a reply.
//!
//! Both nodes are in this process. Nothing but the loopback interface connects them.
#![allow(clippy::disallowed_types)] // The yardstick is a socket of the standard library.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_page::progress::Progress;
use plimsoll_page::table::Columns;
use plimsoll_page::units;
use plimsoll_runtime::real::{Address, Clock, Maker, Network, Role, Runtime, SILENCE};
use plimsoll_runtime::{Echo, Env};
use plimsoll_types::ShardId;
use serde::Serialize;

use crate::cli::net::NetPlan;
use crate::machine;
use crate::report;
use crate::report::model::Machine;
use crate::report::table::{Terminal, wrap};

const HERE: ShardId = ShardId(0);
const THERE: ShardId = ShardId(1);
/// As long as a call in its frame: head, frame number, kind, call number, body.
const MESSAGE: usize = 8 + 8 + 1 + 4 + 8;
/// How long the nodes may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);

/// A distribution of round trips, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
struct RoundTrip {
    p50_us: f64,
    p99_us: f64,
}

/// Many calls at a time.
#[derive(Clone, Copy, Debug, Serialize)]
struct Throughput {
    in_flight: usize,
    messages_per_second: f64,
}

#[derive(Debug, Serialize)]
struct Document {
    plimsoll: &'static str,
    commit: &'static str,
    machine: Machine,
    date: String,
    raw: RoundTrip,
    call: RoundTrip,
    /// Median of a call to that of the bare socket.
    ratio: f64,
    throughput: Vec<Throughput>,
    interrupted: bool,
}

/// Measures, and reports. Returns true: a slow network is a figure, not a failure.
pub fn net(plan: &NetPlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn std::error::Error>> {
    let steps = (2 * plan.runs + plan.in_flight.len()) as u64;
    let mut line = Progress::stderr(plan.quiet).line("net", steps);
    let mut done = 0;
    let mut step = |what: &str| {
        line.show(done, || format!("{done}/{steps} · {what}"));
        done += 1;
    };
    let nodes = connected()?;
    let (mut socket, answers) = bare()?;
    let mut rounds: Vec<(RoundTrip, RoundTrip)> = Vec::new();
    while rounds.len() < plan.runs && (rounds.is_empty() || !interrupted.load(Relaxed)) {
        step("bare socket");
        let raw = round_trip(throw(&mut socket, plan.duration)?);
        step("calls");
        rounds.push((raw, round_trip(calls(&nodes[0], plan.duration))));
    }
    drop(socket);
    answers.join().map_err(|_| "the thread that answers has panicked")??;
    let mut throughput = Vec::new();
    for &in_flight in &plan.in_flight {
        if interrupted.load(Relaxed) {
            break;
        }
        step(&format!("{in_flight} calls at a time"));
        let messages_per_second = 2.0 * calls_per_s(&nodes[0], in_flight, plan.duration);
        throughput.push(Throughput { in_flight, messages_per_second });
    }
    drop(line);
    let median = |of: fn(&(RoundTrip, RoundTrip)) -> f64| middle(rounds.iter().map(of).collect());
    let document = Document {
        plimsoll: env!("CARGO_PKG_VERSION"),
        commit: machine::COMMIT,
        machine: machine::describe(),
        date: machine::utc_now(),
        raw: RoundTrip { p50_us: median(|both| both.0.p50_us), p99_us: median(|both| both.0.p99_us) },
        call: RoundTrip { p50_us: median(|both| both.1.p50_us), p99_us: median(|both| both.1.p99_us) },
        ratio: median(|both| both.1.p50_us / both.0.p50_us),
        throughput,
        interrupted: interrupted.load(Relaxed),
    };
    report::publish(&plan.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(true)
}

/// Two nodes of one shard, connected.
fn connected() -> Result<Vec<Runtime<Echo>>, Box<dyn std::error::Error>> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let mut nodes = Vec::new();
    for (id, listener) in listeners.iter().enumerate() {
        nodes.push(Address { id: id as u16, address: listener.local_addr()?, shards: 1 });
    }
    let mut runtimes = Vec::new();
    for (node, listener) in listeners.into_iter().enumerate() {
        let makers = vec![Box::new(Echo::default) as Maker<Echo>];
        let (core, clock) = (node, Clock::new());
        let network = Network {
            cluster: 1,
            role: Role::Member { node: node as u16, listener },
            nodes: nodes.clone(),
            visitors: 0,
            volatile: true,
            life: clock.now().0,
            secret: None,
            silence: SILENCE,
            clock,
        };
        runtimes.push(Runtime::networked(makers, 1, Some(core), Vec::new(), network)?);
    }
    let begun = Instant::now();
    while runtimes.iter().any(|runtime| runtime.traffic().iter().any(|peer| peer.connected == 0)) {
        if begun.elapsed() > PATIENCE {
            return Err("the loopback interface connects nobody: is there a firewall on it?".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(runtimes)
}

type Answers = thread::JoinHandle<std::io::Result<()>>;

/// A connection to a thread that returns what it gets.
fn bare() -> std::io::Result<(TcpStream, Answers)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (mut there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    let answers = thread::Builder::new().name("answers".to_owned()).spawn(move || {
        let mut message = [0; MESSAGE];
        while there.read_exact(&mut message).is_ok() {
            there.write_all(&message)?;
        }
        Ok(())
    })?;
    Ok((here, answers))
}

fn throw(stream: &mut TcpStream, time: Duration) -> std::io::Result<Vec<Duration>> {
    let (mut message, mut rounds) = ([0; MESSAGE], Vec::new());
    let (begin, mut begun) = (Instant::now(), Instant::now());
    while rounds.is_empty() || begin.elapsed() < time {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        rounds.push(begun.elapsed());
        begun = Instant::now();
    }
    Ok(rounds)
}

fn calls(node: &Runtime<Echo>, time: Duration) -> Vec<Duration> {
    node.run_on(HERE, move |env| async move {
        let mut rounds = Vec::new();
        let begin = Instant::now();
        while rounds.is_empty() || begin.elapsed() < time {
            let begun = Instant::now();
            // A call that fails has lost its connection, and takes as long as it takes.
            let _ = env.call(THERE, 1).await;
            rounds.push(begun.elapsed());
        }
        rounds
    })
}

fn calls_per_s(node: &Runtime<Echo>, in_flight: usize, time: Duration) -> f64 {
    node.run_on(HERE, move |env| async move {
        let (done, running) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(in_flight)));
        let begun = Instant::now();
        for _ in 0..in_flight {
            let (env, done, running) = (env.clone(), done.clone(), running.clone());
            let inner = env.clone();
            env.spawn(async move {
                while begun.elapsed() < time {
                    if inner.call(THERE, 1).await.is_ok() {
                        done.set(done.get() + 1);
                    }
                }
                running.set(running.get() - 1);
            });
        }
        while running.get() > 0 {
            env.sleep(1_000_000).await;
        }
        done.get() as f64 / begun.elapsed().as_secs_f64()
    })
}

/// The first tenth does not count.
fn round_trip(mut rounds: Vec<Duration>) -> RoundTrip {
    rounds.drain(..rounds.len() / 10);
    rounds.sort();
    let at = |share: f64| rounds[(rounds.len() as f64 * share) as usize].as_nanos() as f64 / 1e3;
    RoundTrip { p50_us: at(0.5), p99_us: at(0.99) }
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn show(document: &Document, terminal: Terminal) -> String {
    let mut text = terminal.bold("A call to another node, over the loopback interface") + "\n\n";
    let mut columns = Columns::new(&[("round trip", 0), ("p50", 0), ("p99", 0)], false);
    for (name, trip) in [("bare socket", document.raw), ("call", document.call)] {
        let cells = [name.to_owned(), units::duration_us(trip.p50_us), units::duration_us(trip.p99_us)];
        columns.push(cells.to_vec());
    }
    text.push_str(&columns.render(terminal.width));
    text.push_str(&format!(
        "\n\nA call takes {} as long as the bare socket.\n\n",
        units::ratio(document.ratio)
    ));
    let mut columns = Columns::new(&[("calls in flight", 0), ("messages/s", 0)], false);
    for row in &document.throughput {
        columns.push(vec![units::thousands(row.in_flight as u64), units::rate(row.messages_per_second)]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    let note = "Medians over the runs. A message is a request or a reply; both nodes are in this process.";
    text + &wrap(note, terminal.width, 0)
}
