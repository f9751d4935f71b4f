//! What the executor costs: passes, polls, messages and batches, measured with tasks that do
//! nothing else.
//!
//! Tasks that only pause: one of them makes a pass per poll, many make a pass per
//! [`TASKS_PER_PASS`] polls, and the two figures tell pass and poll apart. Tasks on two shards that
//! call each other's shard: each call is two messages, sent and received; with many in flight both
//! shards are always busy, and batches are large, with one they are small and the way is long.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_runtime::real::{RealEnv, Runtime};
use plimsoll_runtime::{Echo, Env, TASKS_PER_PASS, Tasks};
use plimsoll_types::ShardId;
use quanta::Clock;

/// What the executor costs, in nanoseconds of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Executor {
    /// A pass.
    pub pass_ns: f64,
    /// A poll.
    pub poll_ns: f64,
    /// A message, sent or received.
    pub message_ns: f64,
    /// A batch, sent or received.
    pub batch_ns: f64,
    /// How long a batch is on its way to another shard of the process.
    pub local_ns: f64,
}

/// Measures on one or two cores for about `time`, in `rounds` rounds, of which the best counts.
pub fn measure(time: Duration, rounds: u32) -> std::io::Result<Executor> {
    let part = time / 5 / rounds;
    let [mut one, mut many, mut alone, mut busy] = [f64::INFINITY; 4];
    for _ in 0..rounds {
        one = one.min(polls(1, part)?);
        many = many.min(polls(16 * TASKS_PER_PASS, part)?);
        alone = alone.min(calls(1, part)?);
        busy = busy.min(calls(256, part)?);
    }
    // one = pass + poll; many = pass / TASKS_PER_PASS + poll.
    let pass_ns = ((one - many) / (1.0 - 1.0 / TASKS_PER_PASS as f64)).max(0.0);
    let poll_ns = (many - pass_ns / TASKS_PER_PASS as f64).max(0.0);
    // A call of many: four ends of messages, a poll, a share of passes and of batches, both small.
    let message_ns = ((busy - poll_ns - pass_ns / TASKS_PER_PASS as f64) / 4.0).max(1.0);
    // A call alone: two passes at either end (the sending one and the one that finds the message),
    // and both ways.
    let way_ns = (alone / 2.0 - 2.0 * pass_ns - poll_ns / 2.0 - 2.0 * message_ns).max(50.0);
    // Of the way, the ends of the queue cost the cores, and the rest is the cache line's journey.
    Ok(Executor { pass_ns, poll_ns, message_ns, batch_ns: way_ns / 4.0, local_ns: way_ns / 2.0 })
}

/// Nanoseconds per poll of `tasks` tasks that only pause, on one shard.
fn polls(tasks: usize, time: Duration) -> std::io::Result<f64> {
    run(1, tasks, time, |env| async move { env.pause().await })
}

/// Nanoseconds per call on each of two shards, with `tasks` calls in flight on each.
fn calls(tasks: usize, time: Duration) -> std::io::Result<f64> {
    run(2, tasks, time, |env| async move {
        let peer = ShardId(1 - env.shard().0);
        let _ = env.call(peer, 1).await;
    })
}

/// Nanoseconds per round of each shard, with `tasks` tasks on each that do nothing but rounds.
fn run<F: Future<Output = ()> + 'static>(
    shards: usize,
    tasks: usize,
    time: Duration,
    round: impl Fn(RealEnv<Echo>) -> F + Copy + Send + 'static,
) -> std::io::Result<f64> {
    let makers = (0..shards).map(|_| Box::new(Echo::default) as Box<dyn FnOnce() -> Echo + Send>).collect();
    let runtime = Runtime::start(makers, 1, Some(0))?;
    let (rounds, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    for shard in 0..shards as u16 {
        let (rounds, stop) = (rounds.clone(), stop.clone());
        runtime.spawn_on(ShardId(shard), move |env| async move {
            let mine = Rc::new(Cell::new(0u64));
            for _ in 0..tasks {
                let (rounds, stop, mine, inner) = (rounds.clone(), stop.clone(), mine.clone(), env.clone());
                env.spawn(async move {
                    while !stop.load(Relaxed) {
                        round(inner.clone()).await;
                        mine.set(mine.get() + 1);
                        if mine.get().is_multiple_of(64) {
                            rounds.fetch_add(64, Relaxed);
                        }
                    }
                });
            }
        });
    }
    let clock = Clock::new();
    std::thread::sleep(time / 4);
    let (before, begin) = (rounds.load(Relaxed), clock.raw());
    std::thread::sleep(time);
    let (after, end) = (rounds.load(Relaxed), clock.raw());
    stop.store(true, Relaxed);
    let per_shard = (after - before).max(1) as f64 / shards as f64;
    Ok(clock.delta_as_nanos(begin, end) as f64 / per_shard)
}
