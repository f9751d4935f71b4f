//! What tests of disks share, those of logs too (crate `replication`): a node that has nothing to do,
//! random numbers, faults, and a directory that is removed again.

#![allow(dead_code, reason = "not every test uses everything")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_runtime::real::{self, Directory, Runtime};
use plimsoll_runtime::sim::{Faults, Hardware, Maker, World};
use plimsoll_runtime::{Handled, Messages, Participant, ShardEnv};
use plimsoll_types::Ticket;
use plimsoll_types::{ShardId, Timestamp};

pub const MS: u64 = 1_000_000;

/// A node for tasks that need none.
#[derive(Default)]
pub struct Nothing {
    released: Vec<Ticket>,
}

impl Messages for Nothing {
    type Request = ();
    type Reply = ();
}

impl Participant for Nothing {
    fn handle(&mut self, _: ShardId, _: &mut (), _: Ticket) -> Handled<()> {
        Handled::Done
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.released
    }

    fn pass(&mut self, _: Timestamp) {}
    fn outgoing(&mut self, _: &mut Vec<(ShardId, ())>) {}
    fn park(&mut self) {}
}

/// Numbers that depend on a seed alone (SplitMix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A world of some shards with disks.
pub fn world(shards: usize, hardware: &Hardware, faults: &Faults, seed: u64) -> World<Nothing> {
    let makers = (0..shards).map(|_| Box::new(|_| Nothing::default()) as Maker<Nothing>);
    World::new(hardware, faults, seed, makers.collect())
}

/// Good machines with disks of this size in bytes.
pub fn with_disks(disk_bytes: u64) -> Hardware {
    Hardware { disk_bytes, ..Hardware::default() }
}

/// What goes wrong in the world of a seed: crashes, and each fault of the disks half of the time.
/// Operations fail `errors` times as often as they usually do.
pub fn trouble(seed: u64, errors: f64) -> Faults {
    let mut faults = Faults::drawn(seed);
    (faults.crashes_per_s, faults.down_ns, faults.power_failures) = (60.0, MS, 0.6);
    faults.torn_writes = [0.3, 1.0][seed as usize / 3 % 2];
    for rate in [
        &mut faults.disk_slowdowns_per_s,
        &mut faults.disk_stalls_per_s,
        &mut faults.disk_fulls_per_s,
        &mut faults.pauses_per_s,
    ] {
        *rate *= 10.0;
    }
    for duration_ns in [
        &mut faults.disk_slowdown_ns,
        &mut faults.disk_stall_ns,
        &mut faults.disk_full_ns,
        &mut faults.pause_ns,
    ] {
        *duration_ns /= 30;
    }
    for probability in [
        &mut faults.read_errors,
        &mut faults.corrupt_reads,
        &mut faults.write_errors,
        &mut faults.sync_errors,
    ] {
        *probability *= errors;
    }
    faults
}

/// Runs a task on a shard to its end.
pub fn run_on<F, R>(
    world: &mut World<Nothing>,
    shard: ShardId,
    task: impl FnOnce(ShardEnv<Nothing>) -> F + 'static,
) -> R
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    assert!(world.spawn_on(shard, |env| async move {
        let value = task(env).await;
        *place.borrow_mut() = Some(value);
    }));
    world.run_while(|_| result.borrow().is_none());
    result.take().expect("the task comes to its end")
}

/// Shards on threads, each with a directory in this one.
pub fn start(shards: usize, directory: &Path) -> Runtime<Nothing> {
    let makers = (0..shards).map(|_| Box::new(Nothing::default) as real::Maker<Nothing>);
    let directories = (0..shards).map(|shard| Directory::open(&directory.join(format!("shard-{shard}"))));
    let directories = directories.collect::<Result<_, _>>().expect("directories that can be used");
    Runtime::with_disks(makers.collect(), 1, None, directories).expect("threads")
}

/// A directory for one test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("plimsoll-disk-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory for temporary files");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
