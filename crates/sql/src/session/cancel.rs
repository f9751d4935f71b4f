//! The places that sessions take on a node, and requests to cancel what they run.
//!
//! A client that wants to end what its session runs opens another connection and says the number
//! and the secret that the session was told when it began. That connection may be served by
//! another thread, so what both look at are atomic words: one place per session, with the secret,
//! and whether somebody has asked. A session looks whenever it pauses, and forgets what was asked
//! before a statement began, as PostgreSQL does: a request that comes too late hits nothing.
//!
//! The number has the node in its upper 11 bits and the place in the lower 20, so that any node
//! knows where a request has to go. A place that is taken again has another secret. A request that
//! is just then being compared may still hit the new session; PostgreSQL has the same race with
//! numbers of processes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::recent::Recent;
use super::reservations::{Reservations, Reserved, Sender};
use super::showing::Shown;
use super::statistics::Statistics;
use crate::catalog::pg::{NodeSight, ShownNode};

/// Bits of a session's number that tell the place.
const PLACE_BITS: u32 = 20;

/// Words of a secret.
const SECRET_WORDS: usize = 4;

/// Bytes of a secret, as a client of protocol 3.2 is told it.
pub const SECRET_BYTES: usize = 8 * SECRET_WORDS;

/// Bytes of it that a client of protocol 3.0 is told.
pub const SECRET_BYTES_OLD: usize = 4;

#[derive(Default)]
struct Slot {
    taken: AtomicBool,
    cancelled: AtomicBool,
    /// How many bytes of the secret the client was told.
    told: AtomicU64,
    secret: [AtomicU64; SECRET_WORDS],
    shown: Shown,
}

/// Tells the nodes of a database.
type TellsNodes = Box<dyn Fn() -> Vec<ShownNode> + Send + Sync>;

/// The places of a node.
pub struct Places {
    reservations: Reservations,
    recent: Recent,
    statistics: Statistics,
    nodes: OnceLock<TellsNodes>,
    node: u32,
    slots: Box<[Slot]>,
}

impl Places {
    /// So many places for sessions of a node. Numbers have room for 2,047 nodes and a million
    /// places; what is beyond is not there.
    pub fn new(node: u16, count: usize) -> Arc<Places> {
        let count = count.min((1 << PLACE_BITS) - 1);
        let slots = (0..count).map(|_| Slot::default()).collect();
        let node = u32::from(node.min(0x7ff));
        Arc::new(Places {
            reservations: Reservations::default(),
            recent: Recent::default(),
            statistics: Statistics::default(),
            nodes: OnceLock::new(),
            node,
            slots,
        })
    }

    /// A place, if one is free. Its client is told `told` bytes of the secret.
    pub fn take(self: &Arc<Places>, told: usize, mut random: impl FnMut() -> u64) -> Option<Place> {
        let is_free = |slot: &Slot| {
            slot.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let index = self.slots.iter().position(is_free)?;
        let slot = self.slots.get(index)?;
        slot.secret.iter().for_each(|word| word.store(random(), Ordering::Relaxed));
        slot.cancelled.store(false, Ordering::Relaxed);
        slot.told.store(u64::try_from(told).unwrap_or(0), Ordering::Release);
        Some(Place { places: Arc::clone(self), index })
    }

    /// How many rows sessions have reserved, and how many sessions wait for one.
    pub fn reserved(&self) -> usize {
        self.reservations.size()
    }

    /// Receives a message of another node's sessions, which has come from one of its shards, and
    /// returns messages that are to be sent, each with the shard that it is for.
    pub fn receive(&self, from: u16, message: &[u8]) -> Vec<(u16, Vec<u8>)> {
        self.reservations.receive(from, message)
    }

    /// Messages to a shard of another node, and from it, may be lost. Returns messages that are to be
    /// sent.
    pub fn disconnected(&self, peer: u16) -> Vec<(u16, Vec<u8>)> {
        self.reservations.disconnected(peer)
    }

    /// Says how the nodes of the database are found, for sessions that want to see them.
    pub fn tell_nodes(&self, nodes: impl Fn() -> Vec<ShownNode> + Send + Sync + 'static) {
        // Who tells it twice tells the same.
        let _ = self.nodes.set(Box::new(nodes));
    }

    /// The nodes of the database, as far as they are known.
    pub(super) fn known_nodes(&self) -> Vec<ShownNode> {
        self.nodes.get().map_or_else(Vec::new, |nodes| nodes())
    }

    /// What the statements have taken.
    pub(super) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What the sessions show of themselves.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.slots.iter().map(|slot| &slot.shown)
    }

    /// What the sessions have reserved.
    pub(super) fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// Asks a session to end what it runs. Nothing happens if the secret is not that of the
    /// session, and that takes as long.
    pub fn cancel(&self, pid: u32, secret: &[u8]) {
        let place = (pid & ((1 << PLACE_BITS) - 1)).checked_sub(1).and_then(|it| usize::try_from(it).ok());
        let Some(slot) = place.and_then(|place| self.slots.get(place)) else { return };
        let told = usize::try_from(slot.told.load(Ordering::Acquire)).unwrap_or(0);
        let expected = slot.bytes();
        let expected = expected.get(..told).unwrap_or_default();
        // All bytes are compared, so that the time tells nothing of them.
        let differ = expected.iter().zip(secret).fold(0, |differ, (one, other)| differ | (one ^ other));
        let is_it = told > 0 && secret.len() == told && differ == 0 && pid >> PLACE_BITS == self.node;
        if is_it && slot.taken.load(Ordering::Relaxed) {
            slot.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

impl Slot {
    fn bytes(&self) -> [u8; SECRET_BYTES] {
        let mut bytes = [0; SECRET_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.secret) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_be_bytes());
        }
        bytes
    }
}

/// The place of a session, free again when it is dropped.
pub struct Place {
    places: Arc<Places>,
    index: usize,
}

impl Place {
    fn slot(&self) -> Option<&Slot> {
        self.places.slots.get(self.index)
    }

    /// What the session has reserved: nothing yet.
    pub(super) fn reserved(&self, sender: Option<Sender>) -> Reserved {
        Reserved::new(Arc::clone(&self.places), self.pid(), sender)
    }

    /// What the node's sessions have written lately.
    pub(super) fn recent(&self) -> &Recent {
        &self.places.recent
    }

    /// What the statements of the node's sessions have taken.
    pub(super) fn statistics(&self) -> &Statistics {
        self.places.statistics()
    }

    /// What the session shows of itself.
    pub(super) fn shown(&self) -> Option<&Shown> {
        self.slot().map(|slot| &slot.shown)
    }

    /// What the session's node knows.
    pub(super) fn node(&self) -> &dyn NodeSight {
        &*self.places
    }

    /// The session's number.
    pub fn pid(&self) -> u32 {
        // A place's index is below 2^20 - 1.
        (self.places.node << PLACE_BITS) | u32::try_from(self.index + 1).unwrap_or(0)
    }

    /// What the client is told of the secret.
    pub fn secret(&self) -> Vec<u8> {
        let Some(slot) = self.slot() else { return Vec::new() };
        let told = usize::try_from(slot.told.load(Ordering::Relaxed)).unwrap_or(0);
        slot.bytes().get(..told).unwrap_or_default().to_vec()
    }

    /// A statement begins: what was asked before does not concern it.
    pub fn begin(&self) {
        if let Some(slot) = self.slot() {
            slot.cancelled.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the statement is to end.
    pub fn is_cancelled(&self) -> bool {
        self.slot().is_some_and(|slot| slot.cancelled.load(Ordering::Relaxed))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(slot) = self.slot() {
            slot.shown.set(None);
            slot.told.store(0, Ordering::Relaxed);
            slot.taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> impl FnMut() -> u64 {
        let mut next = 0x0123_4567_89ab_cdef;
        move || {
            next += 1;
            next
        }
    }

    #[test]
    fn only_who_knows_the_secret_cancels() {
        let places = Places::new(3, 2);
        let one = places.take(SECRET_BYTES, counter()).expect("free");
        let two = places.take(SECRET_BYTES_OLD, counter()).expect("free");
        assert!(places.take(SECRET_BYTES, counter()).is_none());
        assert_eq!((one.pid(), two.pid()), ((3 << 20) + 1, (3 << 20) + 2));
        assert_eq!((one.secret().len(), two.secret().len()), (32, 4));
        let secret = one.secret();
        let mut wrong = secret.clone();
        wrong[31] ^= 1;
        let requests: [(u32, &[u8]); 6] = [
            (one.pid(), &wrong),
            (one.pid(), &secret[..31]),
            (one.pid(), &[]),
            (1, &secret),
            (0, &secret),
            (u32::MAX, &secret),
        ];
        for (pid, secret) in requests {
            places.cancel(pid, secret);
            assert!(!one.is_cancelled() && !two.is_cancelled());
        }
        places.cancel(one.pid(), &secret);
        assert!(one.is_cancelled() && !two.is_cancelled());
        one.begin();
        assert!(!one.is_cancelled());
    }

    #[test]
    fn a_place_is_free_again_and_its_secret_is_forgotten() {
        let places = Places::new(0, 1);
        let one = places.take(SECRET_BYTES, counter()).expect("free");
        let (pid, secret) = (one.pid(), one.secret());
        drop(one);
        places.cancel(pid, &secret);
        let two = places.take(SECRET_BYTES, || 7).expect("free again");
        assert!(!two.is_cancelled());
        places.cancel(pid, &secret);
        assert!(!two.is_cancelled());
    }
}
