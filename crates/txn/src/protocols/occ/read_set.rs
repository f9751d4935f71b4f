//! The read set: which reads the coordinator must have validated, and where.

use std::collections::BTreeMap;

use plimsoll_store::Cover;
use plimsoll_types::{ShardId, TableId};

use crate::fetched::ReadRef;
use crate::protocol::ActiveTransaction;
use crate::records::Linked;
use crate::timestamp::Scheme;

/// The other shards that have reads to validate and no writes.
pub(super) fn only_read<S: Scheme>(open: &ActiveTransaction<S>) -> Vec<ShardId> {
    let written = open.work.writes.shards();
    let read = |&shard: &ShardId| shard != open.holder.txn.coordinator && !written.contains(&shard);
    let shards = open.parts.shards().into_iter().filter(read);
    shards.filter(|&shard| !unlocked_reads(open, shard).is_empty()).collect()
}

/// The reads that must be validated on a shard once the stamp is final: all that are not locked
/// there. Absent keys and ranges cannot be locked.
pub(super) fn unlocked_reads<S: Scheme>(open: &ActiveTransaction<S>, shard: ShardId) -> Vec<ReadRef> {
    let overwritten = open.work.writes.overwritten(shard);
    let reads = open
        .parts
        .of(shard)
        .flat_map(|part| part.fetched.read_refs().filter(|read| !(part.locked && read.is_record())));
    reads.filter(|read| overwritten.binary_search(read).is_err()).collect()
}

/// The transaction's own inserts on a shard have changed versions that it had read there. Replaces
/// them by the new versions if no other transaction has changed them in between; returns false if
/// one has. If an insert has split a leaf, both halves are in the read set from now on.
pub(super) fn own_links<S: Scheme>(
    open: &mut ActiveTransaction<S>,
    shard: ShardId,
    linked: &[Linked],
) -> bool {
    if linked.is_empty() {
        return true;
    }
    let mut versions: BTreeMap<(TableId, Cover), u64> = BTreeMap::new();
    for (cover, version) in covers(open, shard) {
        if *versions.entry(cover).or_insert(*version) != *version {
            return false; // One of the two is not the newest.
        }
    }
    let mut added = Vec::new();
    for link in linked {
        let Some(version) = versions.get_mut(&(link.table, link.cover)) else { continue };
        if std::mem::replace(version, link.after) != link.before {
            return false;
        }
        if let Some((cover, version)) = link.split {
            versions.insert((link.table, cover), version);
            added.push((link.table, cover));
        }
    }
    for (cover, version) in covers(open, shard) {
        *version = versions[&cover];
    }
    let added = added.into_iter().map(|(table, cover)| {
        let version = versions[&(table, cover)];
        ReadRef::Cover { table, cover, version }
    });
    match open.parts.of_mut(shard).next() {
        Some(part) => part.fetched.also.extend(added),
        // All its reads on this shard were done directly on the store.
        None => open.work.local_reads.extend(added),
    }
    true
}

/// The absent keys and ranges that were read on a shard, with their versions.
fn covers<S: Scheme>(
    open: &mut ActiveTransaction<S>,
    shard: ShardId,
) -> impl Iterator<Item = ((TableId, Cover), &mut u64)> {
    let here = shard == open.holder.txn.coordinator;
    let local = open.work.local_reads.iter_mut().filter(move |_| here);
    let fetched = open.parts.of_mut(shard).flat_map(|part| part.fetched.read_refs_mut());
    fetched.chain(local).filter_map(|read| match read {
        ReadRef::Cover { table, cover, version } => Some(((*table, *cover), version)),
        _ => None,
    })
}
