//! Tests over simulated disks: worlds with crashes and faults, and directories that are damaged.

mod damage;
mod images;
mod real;
mod scenes;
mod worlds;

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_runtime::sim::{Faults, Hardware, Maker, World};
use plimsoll_runtime::{Disk, Env, FileName, Handled, Messages, Participant, ShardEnv};
use plimsoll_types::wire::Malformed;
use plimsoll_types::{ShardId, Ticket, Timestamp};

use crate::{Entries, Identity, Log, LogError, Recovered, Settings};

const MS: u64 = 1_000_000;

const IDENTITY: Identity = Identity { database: 7, shard: 3, lineage: 1 };

const SMALL: Settings = Settings { segment_bytes: 4096 };

/// A node for tasks that need none.
#[derive(Default)]
struct Nothing {
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
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A world of some shards with disks that hold so many bytes.
fn world(shards: usize, disk_bytes: u64, faults: &Faults, seed: u64) -> World<Nothing> {
    let hardware = Hardware { disk_bytes, shards_per_machine: 1, ..Hardware::default() };
    let makers = (0..shards).map(|_| Box::new(|_| Nothing::default()) as Maker<Nothing>);
    World::new(&hardware, faults, seed, makers.collect())
}

/// Runs a task on the first shard to its end.
fn run<F, R>(world: &mut World<Nothing>, task: impl FnOnce(Disk) -> F + 'static) -> R
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    assert!(world.spawn_on(ShardId(0), |env: ShardEnv<Nothing>| async move {
        let value = task(env.disk().expect("a disk")).await;
        *place.borrow_mut() = Some(value);
    }));
    world.run_while(|_| result.borrow().is_none());
    result.take().expect("the task comes to its end")
}

/// Runs a task in a world without faults.
fn alone<F, R>(task: impl FnOnce(Disk) -> F + 'static) -> R
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    run(&mut world(1, 1 << 30, &Faults::none(), 1), task)
}

/// Opens a log, and tells the entries that it shows.
async fn open(
    disk: &Disk,
    settings: Settings,
    from: u64,
) -> Result<(Log, Recovered, Vec<Vec<u8>>), LogError> {
    let mut found = Vec::new();
    let show = |index, bytes: &[u8]| {
        if index != from + found.len() as u64 {
            return Err(Malformed("it is out of order"));
        }
        found.push(bytes.to_vec());
        Ok(())
    };
    let (log, recovered) = Log::open(disk.clone(), IDENTITY, settings, from, show).await?;
    assert_eq!(recovered.entries, log.next());
    assert_eq!(recovered.bytes, found.iter().map(|entry| entry.len() as u64).sum::<u64>());
    Ok((log, recovered, found))
}

fn entries(all: &[Vec<u8>]) -> Entries {
    let mut entries = Entries::default();
    all.iter().for_each(|entry| entries.push(|out| out.extend(entry)));
    entries
}

/// An entry that no other number has.
fn entry(number: u64, length: usize) -> Vec<u8> {
    let mut rng = Rng(number);
    let filler = (0..length.saturating_sub(8)).map(|_| rng.next() as u8);
    number.to_le_bytes().into_iter().chain(filler).collect()
}

/// The content of a directory.
type Content = Vec<(FileName, Vec<u8>)>;

async fn content(disk: &Disk) -> Content {
    let mut content = Vec::new();
    for (file, size) in disk.list().await.expect("a good disk") {
        content.push((file, disk.read(file, 0, size as usize).await.expect("a good disk")));
    }
    content
}

/// Makes the content of a directory this one.
async fn restore(disk: &Disk, content: &Content) {
    for (file, _) in disk.list().await.expect("a good disk") {
        disk.remove(file).await.expect("a good disk");
    }
    for (file, bytes) in content {
        disk.write(*file, 0, bytes.clone()).await.expect("a good disk");
    }
    disk.sync_directory().await.expect("a good disk");
}
