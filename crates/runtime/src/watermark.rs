//! Which versions no snapshot can read any more.
//!
//! Every shard publishes its *low-water mark* L: no read-only transaction that it has begun or will
//! begin reads below L. The *watermark* W is the minimum over the shards of the process; a version
//! hidden below W can be dropped. A shard that sleeps publishes `u64::MAX`, so that it holds
//! nothing back.
//!
//! Waking up is the delicate moment: the waking shard might begin a snapshot below a watermark that
//! was computed while it slept. So the sleeper first publishes its old L, then takes over the
//! largest watermark ever used and publishes again. A shard that computes a watermark publishes it
//! first, and reads all marks a second time before using it. In any order of these four
//! sequentially consistent steps (the fences say it once more, for the model checker), either the
//! sleeper sees the new watermark, or the other shard sees the sleeper.
//!
//! Other processes send their watermarks by message, now and then. The watermark of another process
//! holds back what may be dropped here, and has no other effect; that process's shards wake up by
//! the same rule among themselves. A process that has no channel to a shard here any more holds
//! nothing back; one from which no watermark has come yet holds everything back.
//!
//! The cost of looking at all shards in every update would grow with their number. So with many
//! shards each looks only now and then, and the watermark is a few updates older.
//!
//! A scheme whose snapshots are vectors (VTS) has one value per slot; every slot is handled alike.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*, fence};

use plimsoll_types::ShardId;

/// Up to this many shards, each looks at all others in every update. With n times as many, each
/// looks in every n-th update.
const FEW: usize = 16;

/// The published marks of one shard, on cache lines of their own.
#[repr(align(128))]
#[derive(Debug)]
struct Published {
    slots: Vec<AtomicU64>,
}

impl Published {
    fn new(slots: usize, value: u64) -> Published {
        Published { slots: (0..slots).map(|_| AtomicU64::new(value)).collect() }
    }
}

/// The low-water marks of all shards of a process, and the watermarks that other processes have
/// sent.
#[derive(Debug)]
pub struct LowWater {
    /// The number of the first shard.
    first: usize,
    shards: Vec<Published>,
    /// The largest watermark of this process that any of its shards has used.
    used: Published,
    /// The other processes by their numbers.
    others: Vec<(usize, Other)>,
    /// Whether a shard has something to drop and waits for the others' watermarks.
    wanted: AtomicBool,
}

/// What is known about another process.
#[derive(Debug)]
struct Other {
    /// Channels between its shards and those of this process.
    channels: AtomicUsize,
    watermark: Published,
}

impl LowWater {
    /// For `shards` shards with `slots` slots each; all of them sleep.
    pub fn new(shards: usize, slots: usize) -> Arc<LowWater> {
        LowWater::among(0..shards, slots, &[])
    }

    /// For these shards, with `slots` slots each; all of them sleep. The processes in `others` hold
    /// everything back until they have connected and sent their watermarks, or are said to be
    /// absent.
    pub fn among(shards: std::ops::Range<usize>, slots: usize, others: &[usize]) -> Arc<LowWater> {
        let other = |&process: &usize| {
            (process, Other { channels: AtomicUsize::new(0), watermark: Published::new(slots, 0) })
        };
        Arc::new(LowWater {
            first: shards.start,
            shards: shards.map(|_| Published::new(slots, u64::MAX)).collect(),
            used: Published::new(slots, 0),
            others: others.iter().map(other).collect(),
            wanted: AtomicBool::new(false),
        })
    }

    /// The other processes.
    pub fn others(&self) -> impl Iterator<Item = usize> + '_ {
        self.others.iter().map(|(process, _)| *process)
    }

    /// Another process is not running, and has begun no snapshot.
    pub fn absent(&self, process: usize) {
        self.hear(process, |_| u64::MAX);
    }

    /// Another process has sent its watermark. A missing slot counts as 0.
    fn heard(&self, process: usize, watermark: &[u64]) {
        self.hear(process, |slot| watermark.get(slot).copied().unwrap_or_default());
    }

    /// A channel to a shard of another process was connected or reset.
    fn connected(&self, process: usize, up: bool) {
        let Some((_, other)) = self.others.iter().find(|(other, _)| *other == process) else { return };
        let (first, last) = match up {
            true => (other.channels.fetch_add(1, SeqCst) == 0, false),
            false => (false, other.channels.fetch_sub(1, SeqCst) == 1),
        };
        if first {
            self.heard(process, &[]);
        }
        if last {
            self.absent(process);
        }
    }

    fn hear(&self, process: usize, watermark: impl Fn(usize) -> u64) {
        let Some((_, other)) = self.others.iter().find(|(other, _)| *other == process) else { return };
        for (slot, known) in other.watermark.slots.iter().enumerate() {
            known.store(watermark(slot), SeqCst);
        }
    }

    fn min(&self, slot: usize) -> u64 {
        self.shards.iter().map(|shard| shard.slots[slot].load(SeqCst)).min().unwrap_or(u64::MAX)
    }

    fn min_elsewhere(&self, slot: usize) -> u64 {
        let known = self.others.iter().map(|(_, other)| other.watermark.slots[slot].load(SeqCst));
        known.min().unwrap_or(u64::MAX)
    }
}

/// One shard's part in the watermark.
#[derive(Debug)]
pub struct Watermark {
    all: Arc<LowWater>,
    me: usize,
    asleep: bool,
    /// Updates until the shard looks at all shards again.
    rest: usize,
    /// The marks that this shard published last, and the watermark of its process that it used
    /// last.
    published: Vec<u64>,
    here: Vec<u64>,
    /// The watermark of all processes.
    current: Vec<u64>,
}

impl Watermark {
    /// The part of shard `me`, asleep until its first [`Watermark::update`].
    pub fn new(all: Arc<LowWater>, me: ShardId) -> Watermark {
        let slots = all.used.slots.len();
        Watermark {
            me: me.index() - all.first,
            all,
            asleep: true,
            rest: 0,
            published: vec![0; slots],
            here: vec![0; slots],
            current: vec![0; slots],
        }
    }

    /// The watermark as of the last update, one value per slot. Never falls.
    pub fn current(&self) -> &[u64] {
        &self.current
    }

    /// The watermark of this process alone, which the other processes need.
    pub fn here(&self) -> &[u64] {
        &self.here
    }

    /// Another process has sent its watermark. A missing slot counts as 0.
    pub fn heard(&self, process: usize, watermark: &[u64]) {
        self.all.heard(process, watermark);
    }

    /// A channel between this shard and one of another process was connected or reset. A process
    /// without a channel to any shard here is gone.
    pub fn connected(&self, process: usize, up: bool) {
        self.all.connected(process, up);
    }

    /// This shard has something to drop and waits for the others' watermarks.
    pub fn want(&self) {
        if !self.all.wanted.load(Relaxed) {
            self.all.wanted.store(true, Relaxed);
        }
    }

    /// Whether a shard of the process wants the others' watermarks.
    pub fn wanted(&self) -> bool {
        self.all.wanted.load(Relaxed)
    }

    /// The same, and clears the request.
    pub fn take_wanted(&self) -> bool {
        self.all.wanted.swap(false, Relaxed)
    }

    /// Publishes this shard's marks and computes the watermark. `low` may be raised: a shard that
    /// slept must not begin a snapshot below a watermark that is already in use. Marks never fall.
    pub fn update(&mut self, low: &mut [u64]) {
        let mine = &self.all.shards[self.me];
        if self.asleep {
            self.asleep = false;
            self.rest = 0;
            for (slot, published) in mine.slots.iter().zip(&self.published) {
                slot.store(*published, SeqCst);
            }
            fence(SeqCst);
            for (low, used) in low.iter_mut().zip(&self.all.used.slots) {
                *low = (*low).max(used.load(SeqCst));
            }
        }
        for (slot, low) in low.iter_mut().enumerate() {
            *low = (*low).max(self.published[slot]);
            if *low > self.published[slot] {
                self.published[slot] = *low;
            }
            mine.slots[slot].store(*low, SeqCst);
            if self.rest > 0 {
                continue;
            }
            let proposed = self.all.min(slot);
            if proposed > self.here[slot] {
                self.all.used.slots[slot].fetch_max(proposed, SeqCst);
                fence(SeqCst);
                self.here[slot] = self.here[slot].max(proposed.min(self.all.min(slot)));
            }
            self.current[slot] = self.current[slot].max(self.here[slot].min(self.all.min_elsewhere(slot)));
        }
        self.rest = self.rest.checked_sub(1).unwrap_or(self.all.shards.len().div_ceil(FEW) - 1);
    }

    /// Whether the shard sleeps: true before the first update, and from [`Watermark::sleep`] to the
    /// next one.
    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Publishes that this shard sleeps: it has no active snapshot and begins none before its next
    /// update.
    pub fn sleep(&mut self) {
        self.asleep = true;
        for slot in &self.all.shards[self.me].slots {
            slot.store(u64::MAX, SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn other_processes_hold_it_back_until_they_are_gone() {
        let all = LowWater::among(4..6, 1, &[0]);
        let mut mine = Watermark::new(all, ShardId(4));
        mine.update(&mut [10]);
        assert_eq!((mine.current(), mine.here()), (&[0][..], &[10][..]), "nothing was heard of the other");
        mine.connected(0, true);
        mine.heard(0, &[7]);
        mine.update(&mut [11]);
        assert_eq!((mine.current(), mine.here()), (&[7][..], &[11][..]));
        mine.connected(0, true);
        mine.connected(0, false);
        mine.update(&mut [11]);
        assert_eq!(mine.current(), [7], "one of two channels is left");
        mine.connected(0, false);
        mine.update(&mut [12]);
        assert_eq!(mine.current(), [12]);
        mine.connected(0, true);
        mine.heard(0, &[9]);
        mine.update(&mut [13]);
        assert_eq!(mine.current(), [12], "it never falls");
        mine.heard(0, &[]);
        mine.update(&mut [14]);
        assert_eq!(mine.current(), [12], "who tells nothing holds everything back");
    }

    #[test]
    fn the_watermark_is_the_minimum_over_the_shards_that_are_awake() {
        let all = LowWater::new(2, 1);
        let mut a = Watermark::new(all.clone(), ShardId(0));
        let mut b = Watermark::new(all, ShardId(1));
        a.update(&mut [10]);
        assert_eq!(a.current(), [10], "the other shard sleeps");
        let mut low = [7];
        b.update(&mut low);
        assert_eq!(low, [10], "a shard that wakes begins above the watermark in use");
        a.update(&mut [20]);
        assert_eq!(a.current(), [10]);
        b.update(&mut [15]);
        a.update(&mut [20]);
        assert_eq!(a.current(), [15]);
        b.sleep();
        a.update(&mut [30]);
        assert_eq!(a.current(), [30]);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;

    /// In every interleaving, a snapshot begun by a waking shard is at or above every watermark
    /// that the other shard acts on while that snapshot is active.
    #[test]
    fn a_waking_shard_is_never_below_a_watermark_in_use() {
        loom::model(|| {
            let all = LowWater::new(2, 1);
            let mut sleeper = Watermark::new(all.clone(), ShardId(0));
            let mut other = Watermark::new(all, ShardId(1));
            let thread = loom::thread::spawn(move || {
                let mut low = [5];
                sleeper.update(&mut low);
                low[0]
            });
            other.update(&mut [9]);
            let used = other.current()[0];
            let snapshot = thread.join().unwrap();
            assert!(snapshot >= used, "snapshot {snapshot} below the watermark {used}");
        });
    }
}
