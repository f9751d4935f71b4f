//! Which versions no snapshot can read any more.
//!
//! Every shard publishes its *low-water mark* L, and the snapshots that it *holds*: a read-only
//! transaction that it has begun or will begin reads at L or above, or at a snapshot that it holds.
//! The *watermark* W is the minimum of L over the shards of the process. A version hidden below W
//! can be dropped if none of the snapshots that are held sees it. A shard that sleeps publishes
//! `u64::MAX`, so that it holds nothing back but what its snapshots see.
//!
//! Worked example: a shard holds a snapshot @5 and sleeps, another one publishes L = 90. Of a
//! record with versions @4, @20, @30 and @80 the versions @4 and @80 are kept.
//!
//! A shard publishes what it holds before the L that does without it; a shard that reads L looks at
//! what is held afterwards. So it finds the snapshot there, or the snapshot was begun later and is
//! not below that L.
//!
//! Waking up is the delicate moment: the waking shard might begin a snapshot below a watermark that
//! was computed while it slept. So the sleeper first publishes its old L, then takes over the
//! largest watermark ever used and publishes again. A shard that computes a watermark publishes it
//! first, and reads all marks a second time before using it. In any order of these four
//! sequentially consistent steps (the fences say it once more, for the model checker), either the
//! sleeper sees the new watermark, or the other shard sees the sleeper.
//!
//! Other processes send their watermarks and what they hold by message, now and then: the first
//! shard of each to the first shard here, so the messages of a process come in order. They hold
//! back what may be dropped here, and have no other effect; the shards of the other process wake up
//! by the same rule among themselves. A process that has lost its last channel to a shard here
//! holds nothing back; one from which no watermark has come yet holds everything back. A process
//! that comes back may be behind what was dropped meanwhile; from then on W may be lower than it
//! was, and nothing more is dropped that the process may read. A process that begins again may be
//! back over one channel before it is missed on another, and its new *life* may be behind the
//! former one: with its first channel the former life's watermark is void, as after an absence.
//!
//! The cost of looking at all shards in every update would grow with their number. So with many
//! shards each looks only now and then, and the watermark is a few updates older.
//!
//! A scheme whose snapshots are vectors (VTS) has one value per slot; every slot is handled alike.

#[cfg(loom)]
use loom::sync::RwLock;
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
use std::sync::Arc;
#[cfg(not(loom))]
use std::sync::RwLock;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};

use plimsoll_types::{Held, ShardId, grouped};

/// Up to this many shards, each looks at all others in every update. With n times as many, each
/// looks in every n-th update.
const FEW: usize = 16;

/// The published marks of one shard, on cache lines of their own.
#[repr(align(128))]
#[derive(Debug)]
struct Published {
    slots: Vec<AtomicU64>,
    /// How often `held` has changed. A shard that has read `held` at this number need not look
    /// again.
    changes: AtomicU64,
    held: RwLock<Vec<Held>>,
}

impl Published {
    fn new(slots: usize, value: u64) -> Published {
        Published {
            slots: (0..slots).map(|_| AtomicU64::new(value)).collect(),
            changes: AtomicU64::new(0),
            held: RwLock::new(Vec::new()),
        }
    }

    /// Must be called before values are published that do without these snapshots.
    fn hold(&self, held: Vec<Held>) {
        let mut published = self.held.write().expect("nothing panics under this lock");
        if *published != held {
            *published = held;
            self.changes.fetch_add(1, SeqCst);
        }
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
    /// Channels between its shards and those of this process. Locked until the watermark says that
    /// the first one is there, or that the last one is gone: a shard that has lost the last one
    /// must not say so after another has connected the first. Nor may a watermark of a former life
    /// be stored after the present one has connected.
    channels: RwLock<Channels>,
    /// How often it has begun to be absent.
    absences: AtomicU64,
    watermark: Published,
}

/// The channels to another process.
#[derive(Debug, Default)]
struct Channels {
    count: usize,
    /// The last life of the process that any of them was connected in.
    life: Option<u64>,
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
            let (channels, absences) = (RwLock::new(Channels::default()), AtomicU64::new(0));
            (process, Other { channels, absences, watermark: Published::new(slots, 0) })
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
        if let Some(other) = self.other(process) {
            other.absent();
        }
    }

    fn other(&self, process: usize) -> Option<&Other> {
        self.others.iter().find(|(other, _)| *other == process).map(|(_, other)| other)
    }

    fn min(&self, slot: usize) -> u64 {
        self.shards.iter().map(|shard| shard.slots[slot].load(SeqCst)).min().unwrap_or(u64::MAX)
    }

    fn min_elsewhere(&self, slot: usize) -> u64 {
        let known = self.others.iter().map(|(_, other)| other.watermark.slots[slot].load(SeqCst));
        known.min().unwrap_or(u64::MAX)
    }
}

impl Other {
    /// The process is not running.
    fn absent(&self) {
        self.absences.fetch_add(1, SeqCst);
        self.hear(|_| u64::MAX, &[]);
    }

    /// The process has sent its watermark and what it holds, in this life. A missing slot counts
    /// as 0.
    fn heard(&self, life: u64, watermark: &[u64], held: &[Held]) {
        let channels = self.channels.read().expect("nothing panics under this lock");
        if channels.life == Some(life) {
            self.hear(|slot| watermark.get(slot).copied().unwrap_or_default(), held);
        }
    }

    /// A channel to one of its shards was connected, in this life, or was reset (`None`).
    fn connected(&self, life: Option<u64>) {
        let mut channels = self.channels.write().expect("nothing panics under this lock");
        if life.is_none() {
            channels.count -= 1;
            if channels.count == 0 {
                self.absent();
            }
            return;
        }
        let begins_again = channels.count > 0 && life > channels.life;
        if begins_again {
            self.absences.fetch_add(1, SeqCst);
        }
        if begins_again || channels.count == 0 {
            self.hear(|_| 0, &[]);
        }
        channels.count += 1;
        channels.life = channels.life.max(life);
    }

    fn hear(&self, watermark: impl Fn(usize) -> u64, held: &[Held]) {
        let slots = self.watermark.slots.len();
        self.watermark.hold(grouped(held.iter().map(|held| held.clone().padded(slots)).collect()));
        for (slot, known) in self.watermark.slots.iter().enumerate() {
            known.store(watermark(slot), SeqCst);
        }
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
    /// Of the shards of this process, and of the others, how often what they hold had changed when
    /// this shard looked last.
    changes: Vec<u64>,
    /// What this process holds, and what all do.
    held_here: Vec<Held>,
    held: Vec<Held>,
}

impl Watermark {
    /// The part of shard `me`, asleep until its first [`Watermark::update`].
    pub fn new(all: Arc<LowWater>, me: ShardId) -> Watermark {
        let slots = all.used.slots.len();
        Watermark {
            me: me.index() - all.first,
            changes: vec![0; all.shards.len() + all.others.len()],
            held_here: Vec::new(),
            held: Vec::new(),
            all,
            asleep: true,
            rest: 0,
            published: vec![0; slots],
            here: vec![0; slots],
            current: vec![0; slots],
        }
    }

    /// The watermark as of the last update, one value per slot. Falls only when a process comes
    /// back whose own is behind.
    pub fn current(&self) -> &[u64] {
        &self.current
    }

    /// The watermark of this process alone, which the other processes need. Never falls.
    pub fn here(&self) -> &[u64] {
        &self.here
    }

    /// The snapshots below the watermark that are held, as of the last update.
    pub fn held(&self) -> &[Held] {
        &self.held
    }

    /// Those that this process holds, which the other processes need.
    pub fn held_here(&self) -> &[Held] {
        &self.held_here
    }

    /// From the next update on, this shard holds these snapshots. Its marks need not be below them
    /// then.
    pub fn hold(&self, held: Vec<Held>) {
        self.all.shards[self.me].hold(grouped(held));
    }

    /// Another process has sent its watermark and what it holds, over a channel to this life. A
    /// missing slot counts as 0.
    pub fn heard(&self, process: usize, life: u64, watermark: &[u64], held: &[Held]) {
        if let Some(other) = self.all.other(process) {
            other.heard(life, watermark, held);
        }
    }

    /// A channel between this shard and one of another process was connected, in this life, or was
    /// reset (`None`). A process without a channel to any shard here is gone.
    pub fn connected(&mut self, process: usize, life: Option<u64>) {
        if let Some(other) = self.all.other(process) {
            other.connected(life);
        }
        self.rest = 0;
    }

    /// How often another process has begun to be absent, or another life of it to be there.
    /// Meanwhile nothing is kept for it.
    pub fn absences(&self, process: usize) -> u64 {
        self.all.other(process).map_or(0, |other| other.absences.load(SeqCst))
    }

    /// The last life of another process that a shard of this one has met.
    pub fn life(&self, process: usize) -> Option<u64> {
        let channels = self.all.other(process)?.channels.read();
        channels.expect("nothing panics under this lock").life
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
    /// Returns whether [`Watermark::held`] has changed.
    pub fn update(&mut self, low: &mut [u64]) -> bool {
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
            self.current[slot] = self.here[slot].min(self.all.min_elsewhere(slot));
        }
        let looked = self.rest == 0;
        self.rest = self.rest.checked_sub(1).unwrap_or(self.all.shards.len().div_ceil(FEW) - 1);
        looked && self.look_at_held()
    }

    /// Looks at what is held, after the watermark was computed.
    fn look_at_held(&mut self) -> bool {
        let all = &self.all;
        let published = || all.shards.iter().chain(all.others.iter().map(|(_, other)| &other.watermark));
        let mut changed = false;
        for (known, published) in self.changes.iter_mut().zip(published()) {
            let changes = published.changes.load(SeqCst);
            changed |= std::mem::replace(known, changes) != changes;
        }
        if !changed {
            return false;
        }
        let held =
            |published: &Published| published.held.read().expect("nothing panics under this lock").clone();
        self.held_here = grouped(all.shards.iter().flat_map(held).collect());
        self.held = grouped(published().flat_map(held).collect());
        true
    }

    /// Whether the shard sleeps: true before the first update, and from [`Watermark::sleep`] to the
    /// next one.
    pub fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Publishes that this shard sleeps: it has no active snapshot but those that it holds, and
    /// begins none before its next update.
    pub fn sleep(&mut self) {
        self.asleep = true;
        for slot in &self.all.shards[self.me].slots {
            slot.store(u64::MAX, SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use plimsoll_types::Timestamp;

    use super::*;

    #[test]
    fn other_processes_hold_it_back_until_they_are_gone() {
        let all = LowWater::among(4..6, 1, &[0]);
        let mut mine = Watermark::new(all, ShardId(4));
        mine.update(&mut [10]);
        assert_eq!((mine.current(), mine.here()), (&[0][..], &[10][..]), "nothing was heard of the other");
        mine.connected(0, Some(1));
        mine.heard(0, 1, &[7], &[]);
        mine.update(&mut [11]);
        assert_eq!((mine.current(), mine.here()), (&[7][..], &[11][..]));
        mine.connected(0, Some(1));
        mine.connected(0, None);
        mine.update(&mut [11]);
        assert_eq!(mine.current(), [7], "one of two channels is left");
        mine.connected(0, None);
        mine.update(&mut [12]);
        assert_eq!(mine.current(), [12]);
        mine.connected(0, Some(1));
        mine.heard(0, 1, &[9], &[]);
        mine.update(&mut [13]);
        assert_eq!(mine.current(), [9], "nothing more is dropped that it may read");
        mine.heard(0, 1, &[], &[]);
        mine.update(&mut [14]);
        assert_eq!(mine.current(), [0], "without a watermark it holds everything back");
        assert_eq!(mine.here(), [14], "it never falls");
    }

    #[test]
    fn the_watermark_of_a_life_that_is_over_is_void_although_it_is_not_missed_on_all_channels() {
        let all = LowWater::among(0..2, 1, &[1]);
        let (mut first, mut second) =
            (Watermark::new(all.clone(), ShardId(0)), Watermark::new(all, ShardId(1)));
        first.connected(1, Some(5));
        second.connected(1, Some(5));
        first.heard(1, 5, &[70], &[Held::one(vec![60], Timestamp(60), ShardId(2))]);
        first.update(&mut [90]);
        assert_eq!((first.current(), first.absences(1)), (&[70][..], 0));
        // The other process has begun again, and its clock is at 40 now.
        second.connected(1, None);
        second.connected(1, Some(6));
        first.heard(1, 5, &[80], &[]);
        first.update(&mut [95]);
        assert_eq!((first.current(), first.held()), (&[0][..], &[][..]), "nothing was heard of this life");
        assert_eq!((first.absences(1), first.life(1)), (1, Some(6)));
        first.connected(1, None);
        first.connected(1, Some(6));
        first.heard(1, 6, &[40], &[]);
        first.update(&mut [96]);
        assert_eq!((first.current(), first.absences(1)), (&[40][..], 1));
    }

    #[test]
    fn a_snapshot_that_is_held_does_not_hold_the_watermark_back() {
        let one = |at| Held::one(vec![at], Timestamp(at), ShardId(0));
        let all = LowWater::among(0..2, 1, &[1]);
        let mut a = Watermark::new(all.clone(), ShardId(0));
        let mut b = Watermark::new(all, ShardId(1));
        a.connected(1, Some(1));
        a.heard(1, 1, &[50], &[one(3)]);
        a.hold(vec![one(7), one(5)]);
        assert!(a.update(&mut [10]));
        assert_eq!((a.current(), a.held()), (&[10][..], &[one(3), one(5), one(7)][..]));
        assert_eq!(a.held_here(), [one(5), one(7)]);
        assert!(!a.update(&mut [11]), "nothing has changed");
        // A shard that holds a snapshot may sleep.
        a.sleep();
        b.update(&mut [20]);
        assert_eq!((b.current(), b.held()), (&[20][..], &[one(3), one(5), one(7)][..]));
        a.hold(vec![one(7)]);
        a.heard(1, 1, &[50], &[]);
        assert!(b.update(&mut [60]));
        assert_eq!((b.current(), b.held()), (&[50][..], &[one(7)][..]));
        // A process that is gone holds nothing.
        a.heard(1, 1, &[50], &[one(8)]);
        a.connected(1, None);
        b.update(&mut [60]);
        assert_eq!((b.current(), b.held()), (&[60][..], &[one(7)][..]));
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
    use plimsoll_types::Timestamp;

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

    /// In every interleaving, a shard that drops versions knows of a snapshot below its watermark
    /// that another shard begins, holds, and sleeps with.
    #[test]
    fn a_snapshot_below_a_watermark_in_use_is_known_to_be_held() {
        loom::model(|| {
            let all = LowWater::new(2, 1);
            let mut holder = Watermark::new(all.clone(), ShardId(0));
            let mut other = Watermark::new(all, ShardId(1));
            holder.update(&mut [5]);
            let one = Held::one(vec![5], Timestamp(1), ShardId(0));
            let known = one.clone();
            let thread = loom::thread::spawn(move || {
                holder.hold(vec![one]);
                holder.update(&mut [8]);
                holder.sleep();
            });
            other.update(&mut [9]);
            let kept = other.current()[0] <= 5 || other.held() == [known];
            assert!(kept, "a snapshot @5 is not held back by {:?}", other.current());
            thread.join().unwrap();
        });
    }
}
