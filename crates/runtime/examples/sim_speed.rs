//! How many messages a simulated world delivers per second of real time.
//!
//! `cargo run --release -p plimsoll-runtime --example sim_speed`
//!
//! Clients on every shard call other shards, each with several calls at a time; one message is a
//! request or a reply that crossed from shard to shard. Left out: what a real participant would do
//! with a request.

use std::time::Instant;

use plimsoll_runtime::sim::{Faults, Hardware, Maker, World};
use plimsoll_runtime::{Echo, Env, Tasks};
use plimsoll_types::ShardId;

fn measure(name: &str, shards: usize, per_machine: u64, clients: usize, faults: &Faults) {
    let hardware = Hardware { shards_per_machine: per_machine, ..Hardware::default() };
    let makers = (0..shards).map(|_| Box::new(|_| Echo::default()) as Maker<Echo>).collect();
    let mut world = World::new(&hardware, faults, 1, makers);
    world.on_start(move |env| {
        for _ in 0..clients {
            let inner = env.clone();
            env.spawn(async move {
                loop {
                    let others = inner.shards() as u64 - 1;
                    let other = inner.shard().0 + 1 + (inner.random() % others) as u16;
                    let _ = inner.call(ShardId(other % inner.shards() as u16), 1).await;
                }
            });
        }
    });
    let begun = Instant::now();
    world.run_until(200_000_000);
    let seconds = begun.elapsed().as_secs_f64();
    let messages: u64 =
        (0..shards).filter_map(|shard| world.env(ShardId(shard as u16))).map(|env| env.messages()).sum();
    println!(
        "{name:<40} {:>6.2} M messages/s  {messages:>9} messages  hash {:016x}",
        messages as f64 / seconds / 1e6,
        world.hash()
    );
}

fn main() {
    measure("4 machines, 4 clients per shard", 4, 1, 4, &Faults::none());
    measure("4 machines, 32 clients per shard", 4, 1, 32, &Faults::none());
    measure("2 machines of 2 shards, 16 clients", 4, 2, 16, &Faults::none());
    measure("1 machine of 4 shards, 4 clients", 4, 4, 4, &Faults::none());
    measure("4 machines, 32 clients, all faults", 4, 1, 32, &Faults::all());
}
