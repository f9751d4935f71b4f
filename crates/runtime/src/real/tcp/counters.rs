//! Counters of the traffic with each other node, and with all clients together.
//!
//! Every shard counts in cells that only it writes; a reader adds them up.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use super::beat::Sample;
use super::frame::Closed;
use super::hello::Refusal;

/// The traffic between this process and a node, or all clients, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// The other node; `None` for the clients.
    pub node: Option<u16>,
    /// Pairs of a shard here and a shard there.
    pub pairs: usize,
    /// How many of the `pairs` are connected now.
    pub connected: usize,
    /// Messages that shards have given to connections.
    pub messages_sent: u64,
    /// Messages that have arrived for shards.
    pub messages_received: u64,
    /// Frames, heartbeats included.
    pub frames_sent: u64,
    /// Frames, heartbeats included.
    pub frames_received: u64,
    /// Bytes that the operating system has taken.
    pub bytes_sent: u64,
    /// Bytes that were read.
    pub bytes_received: u64,
    /// Bytes that the operating system has not taken yet: the other side does not keep up.
    pub bytes_waiting: u64,
    /// How many connections have ended.
    pub resets: u64,
    /// Why the last one ended, on one of the shards.
    pub last_reset: Option<Closed>,
    /// Why this node and the other do not come together, if the reason lasts until somebody changes
    /// something.
    pub refusal: Option<PeerRefusal>,
    /// How far the other node's clock is ahead of this one's, wrong by at most half of the round
    /// trip. `None` for clients, which have no common clock.
    pub ahead_ns: Option<i64>,
    /// The round trip of that estimate.
    pub round_trip_ns: Option<u64>,
}

/// Why a node and a peer do not come together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerRefusal {
    /// The reason.
    pub refusal: Refusal,
    /// Whether it is the peer that refuses this node; otherwise this node refuses it.
    pub by_peer: bool,
}

/// The counters of one shard for one other node, or for all clients.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Row {
    pub(super) connected: Counter,
    pub(super) messages_sent: Counter,
    pub(super) messages_received: Counter,
    pub(super) frames_sent: Counter,
    pub(super) frames_received: Counter,
    pub(super) bytes_sent: Counter,
    pub(super) bytes_received: Counter,
    pub(super) bytes_waiting: Counter,
    pub(super) resets: Counter,
    last_reset: AtomicU8,
    ahead_ns: AtomicI64,
    /// `u64::MAX` minus the round trip; 0 if there is no estimate.
    closeness: AtomicU64,
}

/// A number that one thread changes and others read.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(super) fn sub(&self, less: u64) {
        self.add(less.wrapping_neg());
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Row {
    pub(super) fn reset(&self, closed: Closed) {
        self.resets.add(1);
        self.last_reset.store(closed as u8, Relaxed);
    }

    /// A reader may see halves of two estimates; both were right.
    pub(super) fn clock(&self, sample: Sample) {
        self.ahead_ns.store(sample.ahead_ns, Relaxed);
        self.closeness.store(u64::MAX - sample.round_trip_ns.min(u64::MAX - 1), Relaxed);
    }
}

/// Adds up the counters of all shards for one node.
pub(super) fn sum<'a>(
    node: Option<u16>,
    pairs: usize,
    rows: impl Iterator<Item = &'a Row> + Clone,
) -> Traffic {
    let total = |of: fn(&Row) -> &Counter| rows.clone().map(|row| of(row).get()).sum::<u64>();
    let best = rows.clone().max_by_key(|row| row.closeness.load(Relaxed));
    let best = best.filter(|row| node.is_some() && row.closeness.load(Relaxed) > 0);
    let mut reasons = rows.clone().filter_map(|row| Closed::numbered(row.last_reset.load(Relaxed)));
    Traffic {
        node,
        pairs,
        connected: total(|row| &row.connected) as usize,
        messages_sent: total(|row| &row.messages_sent),
        messages_received: total(|row| &row.messages_received),
        frames_sent: total(|row| &row.frames_sent),
        frames_received: total(|row| &row.frames_received),
        bytes_sent: total(|row| &row.bytes_sent),
        bytes_received: total(|row| &row.bytes_received),
        bytes_waiting: total(|row| &row.bytes_waiting),
        resets: total(|row| &row.resets),
        last_reset: reasons.next(),
        refusal: None,
        ahead_ns: best.map(|row| row.ahead_ns.load(Relaxed)),
        round_trip_ns: best.map(|row| u64::MAX - row.closeness.load(Relaxed)),
    }
}
