//! `plimsoll bench net`: what a call to another node costs, against the least that a socket allows.
//!
//! Between two processes, as the nodes of a cluster are. First their threads throw a small message
//! to and fro over a loopback connection with blocking reads and writes: no program that sleeps
//! while it waits can be faster. Then a task of a shard does the same with calls to a shard of the
//! other node, over the same interface. Both in turns, because machines have moods; what is
//! compared are medians. Last, many calls are in flight at once; a message is a request or a reply.
//!
//! The other process is this program again, with `--member`. Each says in a line where it listens;
//! the other ends when its standard input does, so it does not outlive this one.
#![allow(clippy::disallowed_types)] // The yardstick is a socket of the standard library.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_args::publish;
use plimsoll_engine::machine::{self, Machine};
use plimsoll_page::progress::Progress;
use plimsoll_page::table::Columns;
use plimsoll_page::terminal::{Terminal, wrap};
use plimsoll_page::units;
use plimsoll_runtime::real::{Address, Clock, Maker, Network, RealEnv, Role, Runtime, SILENCE};
use plimsoll_runtime::{Echo, Env, Tasks};
use plimsoll_types::ShardId;
use serde::Serialize;

use crate::cli::net::NetPlan;
use crate::report::table::doubts;

/// The shard of the node that measures.
pub const HERE: ShardId = ShardId(0);
const THERE: ShardId = ShardId(1);
/// As long as a call in its frame: head, frame number, kind, call number, body.
const MESSAGE: usize = 8 + 8 + 1 + 4 + 8;
/// How long the nodes may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);
const LOST: &str = "the connection to the process that answers was lost: has somebody ended it?";

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
    /// What casts doubt on the figures, in sentences.
    doubts: Vec<String>,
    throughput: Vec<Throughput>,
    interrupted: bool,
}

/// Measures, and reports. Returns true: a slow network is a figure, not a failure.
pub fn net(plan: &NetPlan, interrupted: &AtomicBool) -> Result<bool, Box<dyn Error>> {
    let steps = (2 * plan.runs + plan.measure.in_flight.len()) as u64;
    let mut line = Progress::stderr(plan.measure.quiet).line("net", steps);
    let mut done = 0;
    let mut step = |what: &str| {
        line.show(done, || format!("{done}/{steps} · {what}"));
        done += 1;
    };
    let watch = machine::Watch::start();
    let (node, mut socket, other) = meet()?;
    let mut rounds: Vec<(RoundTrip, RoundTrip)> = Vec::new();
    while rounds.len() < plan.runs && (rounds.is_empty() || !interrupted.load(Relaxed)) {
        step("bare socket");
        let raw = round_trip(throw(&mut socket, plan.measure.duration)?);
        step("calls");
        rounds.push((raw, round_trip(calls(&node, plan.measure.duration).ok_or(LOST)?)));
    }
    drop(socket);
    let mut throughput = Vec::new();
    for &in_flight in &plan.measure.in_flight {
        if interrupted.load(Relaxed) {
            break;
        }
        step(&format!("{in_flight} calls at a time"));
        let messages_per_second = 2.0 * calls_per_s(&node, in_flight, plan.measure.duration).ok_or(LOST)?;
        throughput.push(Throughput { in_flight, messages_per_second });
    }
    drop(line);
    drop(other);
    let mut doubts: Vec<String> = watch.disturbance().into_iter().collect();
    let median = |of: fn(&(RoundTrip, RoundTrip)) -> f64| middle(rounds.iter().map(of).collect());
    let ratio = median(|both| both.1.p50_us / both.0.p50_us);
    doubts.extend(impossible(ratio));
    let document = Document {
        plimsoll: env!("CARGO_PKG_VERSION"),
        commit: machine::COMMIT,
        machine: machine::describe(),
        date: machine::utc_now(),
        raw: RoundTrip { p50_us: median(|both| both.0.p50_us), p99_us: median(|both| both.0.p99_us) },
        call: RoundTrip { p50_us: median(|both| both.1.p50_us), p99_us: median(|both| both.1.p99_us) },
        ratio,
        doubts,
        throughput,
        interrupted: interrupted.load(Relaxed),
    };
    publish(&plan.measure.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(true)
}

/// A sentence if a call was measured to be faster than the bare socket that carries it.
fn impossible(ratio: f64) -> Option<String> {
    let said = "a call cannot be faster than the bare socket that carries it: something disturbed the bare socket more. \
                Measure again when the machine is quiet, or for longer: --duration 3s --runs 9";
    (ratio < 1.0).then(|| said.to_owned())
}

/// A process that this one has started.
pub struct Other {
    process: Child,
    /// It ends when this does.
    stdin: ChildStdin,
}

impl Other {
    /// Starts this program again, tells it where this process listens, and hears its addresses.
    pub fn start(arguments: &[&str], here: SocketAddr) -> Result<(Other, Vec<SocketAddr>), Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let mut other = Other { process, stdin: stdin.expect("it is piped") };
        let said = match writeln!(other.stdin, "{here}") {
            Ok(()) => line_from(BufReader::new(stdout.expect("it is piped"))),
            Err(error) => Err(error.into()),
        };
        let said = said.map_err(|error| format!("the other process does not answer: {error}"))?;
        if said.is_empty() {
            return Err("the other process has ended: what it said last is above".into());
        }
        Ok((other, said))
    }

    /// In the process that was started: says where it listens, and hears where the other does.
    pub fn answer(addresses: &[SocketAddr]) -> Result<SocketAddr, Box<dyn Error>> {
        let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        writeln!(io::stdout(), "{}", addresses.join(" "))?;
        let [there] = line_from(io::stdin().lock())?[..] else {
            return Err("one address is expected".into());
        };
        Ok(there)
    }

    /// In the process that was started: waits until it is to end.
    pub fn stay() -> io::Result<()> {
        io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A node, connected to that of another process, and a socket to a thread there that returns what
/// it gets.
fn meet() -> Result<(Runtime<Echo>, TcpStream, Other), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = listener.local_addr()?;
    let (other, said) = Other::start(&["bench", "net", "--member"], here)?;
    let [node, answers] = said[..] else { return Err("the other process says two addresses".into()) };
    let runtime = node_of(0, listener, [here, node])?;
    let begun = Instant::now();
    while runtime.traffic().iter().any(|peer| peer.connected == 0) {
        if begun.elapsed() > PATIENCE {
            return Err("the loopback interface connects nobody: is there a firewall on it?".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    let socket = TcpStream::connect(answers)?;
    socket.set_nodelay(true)?;
    Ok((runtime, socket, other))
}

/// Is the process that answers, until its standard input ends.
pub fn answer() -> Result<bool, Box<dyn Error>> {
    let (listener, answers) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let here = listener.local_addr()?;
    let there = Other::answer(&[here, answers.local_addr()?])?;
    let _node = node_of(1, listener, [there, here])?;
    thread::Builder::new().name("answers".to_owned()).spawn(move || -> io::Result<()> {
        let (mut there, _) = answers.accept()?;
        there.set_nodelay(true)?;
        let mut message = [0; MESSAGE];
        while there.read_exact(&mut message).is_ok() {
            there.write_all(&message)?;
        }
        Ok(())
    })?;
    Other::stay()?;
    Ok(true)
}

/// The addresses in the next line.
fn line_from(mut from: impl BufRead) -> Result<Vec<SocketAddr>, Box<dyn Error>> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

/// What the two nodes of a measurement go by, each with one shard, for one of them.
pub fn between_two(number: u16, listener: TcpListener, nodes: [SocketAddr; 2]) -> Network {
    let clock = Clock::new();
    let life = clock.now().0;
    Network {
        cluster: 1,
        role: Role::Member { node: number, listener },
        nodes: (0..)
            .zip(nodes)
            .map(|(id, address)| Address { id, address: address.into(), shards: 1 })
            .collect(),
        clients: 0,
        life,
        memory: life,
        goes_back: false,
        met: Vec::new(),
        secret: None,
        silence: SILENCE,
        clock,
        clock_limit: None,
    }
}

/// One of two nodes, with one shard.
fn node_of(number: u16, listener: TcpListener, nodes: [SocketAddr; 2]) -> io::Result<Runtime<Echo>> {
    let network = between_two(number, listener, nodes);
    let makers = vec![Box::new(Echo::default) as Maker<Echo>];
    Runtime::networked(makers, 1, Some(number.into()), Vec::new(), network)
}

fn throw(stream: &mut TcpStream, time: Duration) -> io::Result<Vec<Duration>> {
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

/// None if the other node is lost.
fn calls(node: &Runtime<Echo>, time: Duration) -> Option<Vec<Duration>> {
    node.run_on(HERE, move |env| async move {
        let mut rounds = Vec::new();
        let begin = Instant::now();
        while rounds.is_empty() || begin.elapsed() < time {
            let begun = Instant::now();
            env.call(THERE, 1).await.ok()?;
            rounds.push(begun.elapsed());
        }
        Some(rounds)
    })
}

/// None if the other node is lost.
fn calls_per_s(node: &Runtime<Echo>, in_flight: usize, time: Duration) -> Option<f64> {
    let call = async |env: &RealEnv<Echo>| env.call(THERE, 1).await.ok().map(drop);
    let (done, taken) = node.run_on(HERE, move |env| closed_loop(Rc::new(env), in_flight, time, call))?;
    Some(done as f64 / taken.as_secs_f64())
}

/// Repeats an operation on a shard for a time, with `in_flight` of them at once. Returns how many
/// ended and how long it took; `None` if one of them has failed.
pub async fn closed_loop<E: Tasks + ?Sized>(
    env: Rc<E>,
    in_flight: usize,
    time: Duration,
    operation: impl AsyncFn(&E) -> Option<()> + Clone + 'static,
) -> Option<(u64, Duration)> {
    let (done, running) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(in_flight)));
    let lost = Rc::new(Cell::new(false));
    let begun = Instant::now();
    for _ in 0..in_flight {
        let (done, running, lost) = (done.clone(), running.clone(), lost.clone());
        let (operation, inner) = (operation.clone(), env.clone());
        env.start(Box::pin(async move {
            while begun.elapsed() < time && !lost.get() {
                match operation(&inner).await {
                    Some(()) => done.set(done.get() + 1),
                    None => lost.set(true),
                }
            }
            running.set(running.get() - 1);
        }));
    }
    while running.get() > 0 {
        env.sleep(1_000_000).await;
    }
    (!lost.get()).then(|| (done.get(), begun.elapsed()))
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
    let ratio = units::ratio(document.ratio);
    text.push_str(&match document.ratio < 1.0 {
        true => format!("\n\nMeasured was {ratio} of the bare socket, which cannot be.\n\n"),
        false => format!("\n\nA call takes {ratio} as long as the bare socket.\n\n"),
    });
    let mut columns = Columns::new(&[("calls in flight", 0), ("messages/s", 0)], false);
    for row in &document.throughput {
        columns.push(vec![units::thousands(row.in_flight as u64), units::rate(row.messages_per_second)]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    let note = "Medians over the runs. A message is a request or a reply; each node is a process.";
    text + &wrap(note, terminal.width, 0) + &doubts(&document.doubts, terminal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_faster_than_what_carries_it_is_called_impossible() {
        let trip = |p50_us| RoundTrip { p50_us, p99_us: 2.0 * p50_us };
        let document = |call_us| Document {
            plimsoll: "0.1.0",
            commit: "abc1234",
            machine: Machine::default(),
            date: String::new(),
            raw: trip(10.0),
            call: trip(call_us),
            ratio: call_us / 10.0,
            doubts: impossible(call_us / 10.0).into_iter().collect(),
            throughput: Vec::new(),
            interrupted: false,
        };
        let terminal = Terminal { width: 100, colour: false };
        let said = show(&document(8.0), terminal);
        assert!(
            said.contains("0.800× of the bare socket, which cannot be") && said.contains("! a call cannot"),
            "{said}"
        );
        let said = show(&document(12.0), terminal);
        assert!(said.contains("A call takes 1.200× as long") && !said.contains('!'), "{said}");
    }
}
