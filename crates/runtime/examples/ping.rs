//! How long a call to another node takes, against the least that a socket allows.
//!
//! `cargo run --release -p plimsoll-runtime --example ping`
//!
//! First two threads throw a small message to and fro over a loopback connection with blocking reads and writes: no
//! program that sleeps while it waits can be faster. Then a task of a shard does the same with calls to a shard of
//! another node, in the same process and over the same interface. Both are repeated in turns, because machines have
//! moods; what is compared are medians. Last, many calls are in flight at once: a message is a request or a reply.
#![allow(clippy::disallowed_types)] // The yardstick is a socket of the standard library.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_runtime::real::{Address, Clock, Maker, Network, Runtime, SILENCE};
use plimsoll_runtime::{Env, Handled, Node, Ticket};
use plimsoll_types::{ShardId, Timestamp};

#[derive(Default)]
struct Echo {
    released: Vec<Ticket>,
}

impl Node for Echo {
    type Request = u64;
    type Reply = u64;

    fn handle(&mut self, _: ShardId, request: &mut u64, _: Ticket) -> Handled<u64> {
        Handled::Reply(*request)
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.released
    }

    fn pass(&mut self, _: Timestamp) {}
    fn outgoing(&mut self, _: &mut Vec<(ShardId, u64)>) {}
    fn park(&mut self) {}
}

const HERE: ShardId = ShardId(0);
const THERE: ShardId = ShardId(1);
const ROUNDS: usize = 20_000;
/// Rounds that do not count.
const FIRST: usize = 2_000;
/// As long as a call in its frame: head, frame number, kind, call number, body.
const MESSAGE: usize = 8 + 8 + 1 + 4 + 8;

fn main() -> std::io::Result<()> {
    let nodes = start()?;
    let raw = raw()?;
    println!(
        "{:>30} {:>12} {:>12} {:>12} {:>12}",
        "round trip in us", "raw p50", "raw p99", "call p50", "call p99"
    );
    let mut medians = Vec::new();
    let (mut raw, answers) = raw;
    for _ in 0..5 {
        let raw = percentiles(throw(&mut raw)?);
        let calls = percentiles(nodes[0].run_on(HERE, |env| async move {
            let mut rounds = Vec::with_capacity(ROUNDS);
            for round in 0..FIRST + ROUNDS {
                let begun = Instant::now();
                env.call(THERE, 1).await.expect("the nodes are connected");
                if round >= FIRST {
                    rounds.push(begun.elapsed());
                }
            }
            rounds
        }));
        println!("{:>30} {:>12.1} {:>12.1} {:>12.1} {:>12.1}", "", raw.0, raw.1, calls.0, calls.1);
        medians.push((raw.0, calls.0));
    }
    drop(raw);
    answers.join().expect("the thread that answers ends with the connection")?;
    let middle = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = medians.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (raw, call) = (middle(|both| both.0), middle(|both| both.1));
    println!("{:>30} {raw:>12.1} {:>12} {call:>12.1} {:>12}   {:.2} times raw", "median", "", "", call / raw);
    for in_flight in [1, 16, 256] {
        let messages = 2.0 * calls_per_s(&nodes[0], in_flight);
        println!("{in_flight:>5} calls in flight {:>10.0} messages/s", messages);
    }
    Ok(())
}

/// Two nodes of one shard, connected.
fn start() -> std::io::Result<Vec<Runtime<Echo>>> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let mut nodes = Vec::new();
    for (id, listener) in listeners.iter().enumerate() {
        nodes.push(Address { id: id as u16, address: listener.local_addr()?, shards: 1 });
    }
    let mut runtimes = Vec::new();
    for (node, listener) in listeners.into_iter().enumerate() {
        let makers = vec![Box::new(Echo::default) as Maker<Echo>];
        let (node, nodes) = (node as u16, nodes.clone());
        let life = Clock::new().now().0;
        let network = Network { cluster: 1, node, nodes, life, listener, secret: None, silence: SILENCE };
        runtimes.push(Runtime::networked(makers, 1, false, Vec::new(), network)?);
    }
    while runtimes.iter().any(|runtime| runtime.traffic()[0].connected == 0) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(runtimes)
}

type Answers = thread::JoinHandle<std::io::Result<()>>;

/// A connection to a thread that returns what it gets.
fn raw() -> std::io::Result<(TcpStream, Answers)> {
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

fn throw(stream: &mut TcpStream) -> std::io::Result<Vec<Duration>> {
    let mut message = [0; MESSAGE];
    let mut rounds = Vec::with_capacity(ROUNDS);
    for round in 0..FIRST + ROUNDS {
        let begun = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        if round >= FIRST {
            rounds.push(begun.elapsed());
        }
    }
    Ok(rounds)
}

/// The median and the 99th percentile, in microseconds.
fn percentiles(mut rounds: Vec<Duration>) -> (f64, f64) {
    rounds.sort();
    let at = |share: f64| rounds[(rounds.len() as f64 * share) as usize].as_nanos() as f64 / 1e3;
    (at(0.5), at(0.99))
}

fn calls_per_s(node: &Runtime<Echo>, in_flight: usize) -> f64 {
    const TIME: Duration = Duration::from_secs(2);
    node.run_on(HERE, move |env| async move {
        let (done, running) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(in_flight)));
        let begun = Instant::now();
        for _ in 0..in_flight {
            let (env, done, running) = (env.clone(), done.clone(), running.clone());
            let inner = env.clone();
            env.spawn(async move {
                while begun.elapsed() < TIME {
                    inner.call(THERE, 1).await.expect("the nodes are connected");
                    done.set(done.get() + 1);
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
