//! A limit on the memory of a process.
//!
//! All shards of a process share a [`Memory`]: a limit, and what their stores take. A shard
//! *admits* a write before it locks anything for it, and never looks at the limit again: votes,
//! decisions, slots that move and everything else that was promised go through. So the real end is
//! further away than the limit, by a reserve for what was admitted and for all that is not in a
//! store (messages, votes, histories). Reads and deletions need no memory, and are not asked about.
//!
//! A look at the whole process is not cheap, so a shard takes a share of what is left and looks
//! again when it has written that much. Example: of a limit of 100 MB, the two shards have used 60
//! and 20. The first may write `STRIDE` bytes more before it looks again. When 2 MB are left, it
//! looks after every 256 KB, and a transaction with 3 MB is refused.
//!
//! Memory that was freed is kept for what comes next, in sizes; if what comes next has other sizes,
//! the process can be larger than its stores. That is why the process itself is measured as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_store::{Mark, Store, StoreMemory, written_bytes};
use plimsoll_types::{Abort, Timestamp};

use crate::work::{Change, Packed, Write};

/// A shard looks again after it has written this many bytes, or before.
const STRIDE: u64 = 1 << 20;
/// The part of what is left that a shard may write before it looks again.
const SHARE: u64 = 8;

/// Interval in nanoseconds after which a shard tells the others what its store takes.
const SWEEP_NS: u64 = 1_000_000;

/// The memory of a process, shared by its shards.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    used: AtomicU64,
    free: AtomicU64,
    /// Whether the process is as large as it may be, apart from these bytes, which were freed.
    process_is_full: fn(u64) -> bool,
}

impl Memory {
    /// Memory of which stores may take `limit` bytes. It is full as well while `process_is_full`
    /// says so, which is told how many bytes of the stores were freed and not used again.
    pub fn limited(limit: u64, process_is_full: fn(u64) -> bool) -> Arc<Memory> {
        Arc::new(Memory { limit, used: AtomicU64::new(0), free: AtomicU64::new(0), process_is_full })
    }

    /// Bytes that the stores may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that the stores took when they last looked.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Whether this many bytes more would be too many, as far as is known.
    pub fn lacks(&self, bytes: u64) -> bool {
        self.used().saturating_add(bytes) > self.limit || (self.process_is_full)(self.free.load(Relaxed))
    }

    /// A store has grown, or shrunk.
    fn update(&self, before: StoreMemory, now: StoreMemory) {
        let change = |of: &AtomicU64, before: usize, now: usize| {
            // Modulo 2^64, so that it also shrinks.
            of.fetch_add((now as u64).wrapping_sub(before as u64), Relaxed);
        };
        change(&self.used, before.used, now.used);
        change(&self.free, before.free, now.free);
    }
}

/// What a shard may still write.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Option<Arc<Memory>>,
    /// What this shard's store took at its last look.
    counted: StoreMemory,
    /// It looks again before its store has written more bytes than this.
    until: u64,
    /// When it looked last without being asked.
    swept: Timestamp,
    /// Whether the shard's log has no room on its disk.
    disk_is_full: bool,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            memory: None,
            counted: StoreMemory::default(),
            until: u64::MAX,
            swept: Timestamp::ZERO,
            disk_is_full: false,
        }
    }
}

impl Room {
    /// What may be written under a limit, which the shard's process shares.
    pub(crate) fn limited(memory: Arc<Memory>) -> Room {
        Room { memory: Some(memory), until: 0, ..Room::default() }
    }

    /// Notes whether the shard's log has room on its disk. What was admitted goes on.
    pub(crate) fn note_disk(&mut self, is_full: bool) {
        self.disk_is_full = is_full;
        // A limit on memory is looked at again before anything is admitted; without one there is
        // nothing to look at.
        self.until = if is_full || self.memory.is_some() { 0 } else { u64::MAX };
    }

    /// Whether the shard's log has no room on its disk.
    #[inline]
    pub(crate) fn disk_is_full(&self) -> bool {
        self.disk_is_full
    }

    /// Whether there is memory for that many bytes in terms of [`written_bytes`].
    #[inline]
    pub(crate) fn admit<M: Mark>(&mut self, store: &Store<M>, bytes: u64) -> Result<(), Abort> {
        match bytes == 0 || store.written().saturating_add(bytes) <= self.until {
            true => Ok(()),
            false => self.look(store, bytes),
        }
    }

    #[cold]
    fn look<M: Mark>(&mut self, store: &Store<M>, bytes: u64) -> Result<(), Abort> {
        if self.disk_is_full {
            return Err(Abort::DiskFull);
        }
        self.count(store);
        let Room { memory: Some(memory), until, .. } = self else { return Ok(()) };
        if memory.lacks(bytes) {
            *until = 0;
            return Err(Abort::Full);
        }
        // Others may have used some of it meanwhile.
        let left = memory.limit.saturating_sub(memory.used());
        *until = store.written() + STRIDE.min(left / SHARE).max(bytes);
        Ok(())
    }

    /// Called in each pass: what was deleted here makes room for other shards.
    #[inline]
    pub(crate) fn sweep<M: Mark>(&mut self, store: &Store<M>, clock: Timestamp) {
        if self.memory.is_some() && clock.0 >= self.swept.0.saturating_add(SWEEP_NS) {
            self.swept = clock;
            self.count(store);
        }
    }

    /// Tells the other shards of the process what this one's store takes now.
    pub(crate) fn count<M: Mark>(&mut self, store: &Store<M>) {
        if let Room { memory: Some(memory), counted, .. } = self {
            let now = store.in_all();
            memory.update(std::mem::replace(counted, now), now);
        }
    }
}

/// The bytes of writes that will be locked next, in terms of [`written_bytes`]. Of writes that have
/// come from another process the values come apart from them, or later.
pub(crate) fn grown_bytes<'a>(writes: impl Iterator<Item = &'a Write>, values: Option<&Packed>) -> u64 {
    let grows = writes.filter(|write| write.change != Change::Delete);
    let bytes: u64 = grows.map(|write| written_bytes(write.value.1 as usize)).sum();
    bytes.max(values.map_or(0, Packed::written_bytes))
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::LowWater;
    use plimsoll_store::At;
    use plimsoll_types::{IndexKind, Key, Partitioning, ShardId, TableId, TableSpec};

    use super::*;
    use crate::base::{Base, Layout};
    use crate::testing::scheme_config;
    use crate::timestamps::Dst;

    const LIMIT: u64 = 8 << 20;

    /// Two shards of a process that share a limit.
    fn shards(process_is_full: fn(u64) -> bool) -> [Base<Dst>; 2] {
        let spec = TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
        let layout = Layout::in_one_process([spec], 2);
        let memory = Memory::limited(LIMIT, process_is_full);
        [0, 1].map(|shard| {
            let mut base = Base::<Dst>::new(&layout, &scheme_config(shard, 2), LowWater::new(2, 1));
            base.limit_memory(memory.clone());
            base
        })
    }

    /// Loads rows of that many bytes until one is refused, and tells how many were not.
    fn fill(base: &mut Base<Dst>, first: u64, len: usize) -> u64 {
        let fits = |row: &u64| {
            let admitted = base.admit(written_bytes(len)).is_ok();
            if admitted {
                base.store.load(TableId(0), &Key::of_u64(first + row), &[&vec![7; len]]);
            }
            !admitted
        };
        (0..).find(fits).expect("it is full some time")
    }

    fn at<M: plimsoll_store::Mark>(store: &mut Store<M>, key: u64) -> At {
        let column = TableId(0).row();
        let row = store.find(column, &Key::of_u64(key)).row();
        At { row: row.expect("it was loaded"), column }
    }

    #[test]
    fn a_shard_may_use_what_others_do_not_and_what_is_deleted_makes_room_for_all() {
        for len in [8, 500, 5000] {
            let [mut one, mut other] = shards(|_| false);
            let rows = fill(&mut one, 0, len);
            one.room.count(&one.store);
            let memory = one.room.memory.clone().expect("there is a limit");
            // Arrays grow by whole chunks.
            let used = memory.used();
            assert!((LIMIT / 10 * 8..LIMIT + (1 << 18)).contains(&used), "{len}: {used}");
            assert_eq!(fill(&mut other, 0, len.max(LIMIT as usize / 5)), 0, "{len}: nothing is left");
            assert_eq!(one.admit(0), Ok(()), "deletions need nothing");
            for key in 0..rows / 2 {
                let at = at(&mut one.store, key);
                one.raise_mark(at, Timestamp(1));
                one.store.install(at, Timestamp(1), None);
            }
            while one.store.garbage() > 0 {
                one.store.collect(|_| true, |_, _| true);
            }
            one.room.sweep(&one.store, Timestamp(SWEEP_NS));
            assert!(fill(&mut other, 0, len) > rows / 8, "{len}: the other shard may use it");
        }
    }

    #[test]
    fn a_process_that_is_full_admits_nothing() {
        let [mut one, _] = shards(|_| true);
        assert_eq!((one.admit(1), one.admit(0)), (Err(Abort::Full), Ok(())));
    }

    #[test]
    fn a_log_without_room_admits_nothing_until_it_has_some() {
        let [mut limited, _] = shards(|_| false);
        limited.room.note_disk(true);
        assert_eq!((limited.admit(1), limited.admit(0)), (Err(Abort::DiskFull), Ok(())));
        limited.room.note_disk(false);
        assert_eq!((limited.admit(1), limited.admit(LIMIT)), (Ok(()), Err(Abort::Full)));
    }

    #[test]
    fn without_a_limit_everything_is_admitted() {
        let spec = TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
        let layout = Layout::in_one_process([spec], 1);
        let mut base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        assert_eq!((base.admit(u64::MAX), base.shard), (Ok(()), ShardId(0)));
    }
}
