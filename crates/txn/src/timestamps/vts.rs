//! VTS: a vector of counters, published by an oracle.
//!
//! Each shard is a *slot* with a counter of its own. A read-write transaction stamps its versions ⟨slot, c⟩
//! with the next number of its slot and, once they are installed, reports it together with its
//! dependencies: the stamps of all versions it read or overwrote, and of the validated readers on the shards
//! where it overwrites (without them a snapshot could contain a transaction but not one that read what it has
//! overwritten; the published description leaves them out). The oracle advances V\[slot\] to c when c − 1
//! and all dependencies are in; a snapshot is a copy of V and contains ⟨slot, c⟩ iff c <= V\[slot\]. So a
//! snapshot never contains a transaction without what it depends on, and nobody waits under locks; but the
//! vector travels to every shard that a read-only transaction reads at.
//!
//! Stamps of different slots have no order: a record's versions follow one another by installation.
//! *Compression* gives each process one slot: its shards draw from one counter, and the oracle
//! publishes the gap-free prefix.
//!
//! A stamp is packed into 64 bits: the slot in the top 16, the counter below. ⟨0, 0⟩ is the initial load.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_runtime::Ticket;
use plimsoll_types::{ShardId, Timestamp};

use super::oracle::LocalCopy;
use crate::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};

const COUNTER_BITS: u32 = 48;

fn pack(slot: usize, counter: u64) -> Timestamp {
    assert!(counter < 1 << COUNTER_BITS, "a slot's counter stays below 2^48");
    Timestamp((slot as u64) << COUNTER_BITS | counter)
}

#[inline]
fn unpack(stamp: Timestamp) -> (usize, u64) {
    ((stamp.0 >> COUNTER_BITS) as usize, stamp.0 & ((1 << COUNTER_BITS) - 1))
}

/// The largest counter of each slot; slots beyond the end are 0.
type Vector = Vec<u64>;

fn join(vector: &mut Vector, slot: usize, counter: u64) {
    if vector.len() <= slot {
        vector.resize(slot + 1, 0);
    }
    vector[slot] = vector[slot].max(counter);
}

/// VTS on one shard, or the oracle.
#[derive(Debug)]
pub struct Vts {
    oracle: ShardId,
    slot: usize,
    options: OracleOptions,
    clock: Timestamp,
    /// The counter that this shard draws from: its own, or the one of the process.
    counter: Arc<AtomicU64>,
    known: Arc<Vector>,
    /// The latest stamps of each slot that have validated reads on this shard.
    readers: Vector,
    snapshots: LocalCopy,
    reports: Vec<Report>,
    published: Published,
    answers: Vec<(ShardId, Message)>,
}

/// A stamp that is installed everywhere, with what it depends on; or one that stands for nothing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Report {
    counter: u64,
    slot: u16,
    /// The slots that it depends on, in order, and the largest counter of each.
    dependencies: Vec<(u16, u64)>,
}

/// What travels between a shard and the oracle.
#[derive(Debug)]
pub enum Message {
    /// Commits to publish.
    Report(Vec<Report>),
    /// What is published?
    AskVector,
    /// The answer.
    Published(Arc<Vector>),
}

plimsoll_types::wire!(struct Report { counter, slot, dependencies });
plimsoll_types::wire!(
    enum Message {
        Report(reports) = 0,
        AskVector = 1,
        Published(vector) = 2,
    }
);

/// The oracle's own state.
#[derive(Debug)]
struct Published {
    vector: Vector,
    /// Per slot, reports that wait for a predecessor or a dependency, the smallest counter first.
    waiting: Vec<BinaryHeap<Reverse<Report>>>,
    /// Per slot, the slot that its first report waits for.
    waits_for: Vec<Option<usize>>,
    /// The same the other way round: per slot, those to look at when it has advanced.
    awaited_by: Vec<Vec<usize>>,
}

impl Published {
    fn report(&mut self, report: Report) {
        let mut look = vec![usize::from(report.slot)];
        self.waiting[usize::from(report.slot)].push(Reverse(report));
        while let Some(slot) = look.pop() {
            while self.advance(slot) {
                for other in self.awaited_by[slot].drain(..) {
                    self.waits_for[other] = None;
                    look.push(other);
                }
            }
        }
    }

    /// Publishes the next commit of a slot, if it may be.
    fn advance(&mut self, slot: usize) -> bool {
        if self.waits_for[slot].is_some() {
            return false;
        }
        let Some(Reverse(report)) = self.waiting[slot].peek() else { return false };
        if report.counter != self.vector[slot] + 1 {
            return false;
        }
        let mut dependencies =
            report.dependencies.iter().map(|&(other, counter)| (usize::from(other), counter));
        // Its own slot is settled by the order of the counters.
        let missing = dependencies.find(|&(other, counter)| other != slot && counter > self.vector[other]);
        if let Some((other, _)) = missing {
            self.waits_for[slot] = Some(other);
            self.awaited_by[other].push(slot);
            return false;
        }
        self.waiting[slot].pop();
        self.vector[slot] += 1;
        true
    }

    fn new(slots: usize) -> Published {
        Published {
            vector: vec![0; slots],
            waiting: (0..slots).map(|_| BinaryHeap::new()).collect(),
            waits_for: vec![None; slots],
            awaited_by: vec![Vec::new(); slots],
        }
    }
}

impl Scheme for Vts {
    const NAME: &'static str = "vts";
    const READ_ONLY: ReadOnly = ReadOnly::Snapshot;
    const SCALAR: bool = false;
    const REPORTS: bool = true;
    const ORACLE: bool = true;

    type Mark = ();
    type Snapshot = Arc<Vector>;
    type Observed = Vector;
    type Message = Message;

    fn new(config: &SchemeConfig) -> Vts {
        let slots = Self::slots(config);
        let compressed = config.oracle.compress;
        Vts {
            oracle: config.oracle_shard(),
            slot: if compressed { config.process } else { config.shard.index() },
            options: config.oracle,
            clock: Timestamp::ZERO,
            counter: if compressed { config.process_counter.clone() } else { Arc::default() },
            known: Arc::new(vec![0; slots]),
            readers: Vec::new(),
            snapshots: LocalCopy::new(config.oracle),
            reports: Vec::new(),
            published: Published::new(slots),
            answers: Vec::new(),
        }
    }

    fn slots(config: &SchemeConfig) -> usize {
        if config.oracle.compress { config.processes } else { config.data_shards }
    }

    fn tick(&mut self, clock: Timestamp) {
        self.clock = clock;
    }

    fn observe(observed: &mut Vector, stamp: Timestamp) {
        let (slot, counter) = unpack(stamp);
        if counter > 0 {
            join(observed, slot, counter);
        }
    }

    fn join(observed: &mut Vector, other: &Vector) {
        other.iter().enumerate().for_each(|(slot, &counter)| join(observed, slot, counter));
    }

    fn pinned(&mut self, stamp: Timestamp) {
        Self::observe(&mut self.readers, stamp);
    }

    fn observe_pinned(&self, observed: &mut Vector) {
        Self::join(observed, &self.readers);
    }

    fn adopt(&mut self, pinned: &Vector) {
        Self::join(&mut self.readers, pinned);
    }

    fn stamp(&mut self, _: &Vector) -> Timestamp {
        // Relaxed: the counter orders nothing but itself; versions travel by message.
        pack(self.slot, self.counter.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn finished(&mut self, stamp: Timestamp, committed: Option<&Vector>) {
        let (slot, counter) = unpack(stamp);
        let counters = committed.into_iter().flatten().copied();
        let dependencies = (0..=u16::MAX).zip(counters).filter(|&(_, counter)| counter > 0).collect();
        self.reports.push(Report { counter, slot: slot as u16, dependencies });
    }

    fn snapshot(&mut self, freshness: Freshness) -> Option<Arc<Vector>> {
        let serves = self.snapshots.serves(self.clock) && Self::sees(&self.known, freshness.at_least);
        serves.then(|| self.known.clone())
    }

    fn want_snapshot(&mut self, ticket: Ticket) {
        self.snapshots.waiting.gather(ticket);
    }

    fn awaits_snapshot(&self) -> bool {
        self.snapshots.waiting.outstanding() > 0
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>, released: &mut Vec<Ticket>) {
        match life {
            _ if peer != self.oracle => {}
            Some(_) => self.snapshots.waiting.ask_again(),
            None => self.snapshots.waiting.give_up(released),
        }
    }

    fn lost(&mut self, ticket: Ticket) -> bool {
        self.snapshots.waiting.lost(ticket)
    }

    #[inline]
    fn sees(at: &Arc<Vector>, stamp: Timestamp) -> bool {
        let (slot, counter) = unpack(stamp);
        counter <= at.get(slot).copied().unwrap_or_default()
    }

    fn place(_: &Arc<Vector>) -> Option<Timestamp> {
        None
    }

    fn receive(&mut self, from: ShardId, message: &mut Message, released: &mut Vec<Ticket>) {
        match message {
            Message::Report(reports) => reports.drain(..).for_each(|report| self.published.report(report)),
            Message::AskVector => {
                self.answers.push((from, Message::Published(Arc::new(self.published.vector.clone()))));
            }
            Message::Published(vector) => {
                // Joined: the shard may have woken up above what the oracle had published when it answered.
                self.raise(vector);
                released.extend(self.snapshots.renew(self.clock));
            }
        }
    }

    fn published(&self) -> u64 {
        self.published.vector.iter().sum()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Message)>) {
        send.append(&mut self.answers);
        if self.options.batch {
            if !self.reports.is_empty() {
                send.push((self.oracle, Message::Report(std::mem::take(&mut self.reports))));
            }
        } else {
            send.extend(self.reports.drain(..).map(|report| (self.oracle, Message::Report(vec![report]))));
        }
        let asks = self.snapshots.ask(self.options.batch, self.clock);
        send.extend((0..asks).map(|_| (self.oracle, Message::AskVector)));
    }

    fn low(&self, low: &mut [u64]) {
        low.copy_from_slice(&self.known);
    }

    fn lower(at: &Arc<Vector>, low: &mut [u64]) {
        low.iter_mut().zip(at.iter()).for_each(|(low, &at)| *low = (*low).min(at));
    }

    fn raise(&mut self, low: &[u64]) {
        if low.iter().zip(self.known.iter()).any(|(low, known)| low > known) {
            self.known = Arc::new(low.iter().zip(self.known.iter()).map(|(&a, &b)| a.max(b)).collect());
        }
    }

    #[inline]
    fn passed(watermark: &[u64], stamp: Timestamp) -> bool {
        let (slot, counter) = unpack(stamp);
        counter <= watermark[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_published_after_its_predecessor_and_its_dependencies() {
        let mut published = Published::new(2);
        let report = |slot, counter, dependencies: &[(u16, u64)]| Report {
            slot,
            counter,
            dependencies: dependencies.to_vec(),
        };
        published.report(report(1, 1, &[(0, 1)]));
        assert_eq!(published.vector, [0, 0], "it read what slot 0 has not published");
        published.report(report(0, 2, &[]));
        assert_eq!(published.vector, [0, 0], "its predecessor is missing");
        published.report(report(0, 1, &[]));
        assert_eq!(published.vector, [2, 1]);
    }

    #[test]
    fn a_stamp_packs_slot_and_counter() {
        assert_eq!(unpack(pack(3, 77)), (3, 77));
        assert!(Vts::sees(&Arc::new(vec![0, 5]), pack(1, 5)));
        assert!(!Vts::sees(&Arc::new(vec![0, 5]), pack(1, 6)));
        assert!(Vts::sees(&Arc::new(vec![0]), Timestamp::ZERO));
    }
}
