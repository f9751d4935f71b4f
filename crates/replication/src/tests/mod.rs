//! Tests over simulated disks: worlds with crashes and faults, and directories that are damaged.

#[path = "../../../runtime/tests/common/mod.rs"]
mod common;
mod damage;
mod images;
mod real;
mod scenes;
mod worlds;

use common::{MS, Nothing, Rng, run_on, with_disks};
use plimsoll_runtime::sim::{Faults, World};
use plimsoll_runtime::{Disk, Env, FileName};
use plimsoll_types::ShardId;
use plimsoll_types::wire::Malformed;

use crate::{Entries, Identity, Log, LogError, Recovered, Settings};

const IDENTITY: Identity = Identity { database: 7, shard: 3, lineage: 1 };

const SMALL: Settings = Settings { segment_bytes: 4096, image_bytes: 0 };

/// A world of some shards with disks of this size in bytes.
fn world(shards: usize, disk_bytes: u64, faults: &Faults, seed: u64) -> World<Nothing> {
    common::world(shards, &with_disks(disk_bytes), faults, seed)
}

/// Runs a task on the first shard to its end.
fn run<F, R>(world: &mut World<Nothing>, task: impl FnOnce(Disk) -> F + 'static) -> R
where
    F: Future<Output = R> + 'static,
    R: 'static,
{
    run_on(world, ShardId(0), |env| task(env.disk().expect("a disk")))
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
