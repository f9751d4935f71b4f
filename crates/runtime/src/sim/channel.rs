//! One end of a channel between two shards: exactly-once, in order, over a network that keeps no
//! promise.
//!
//! Batches travel as numbered packets. The sender keeps each until it is acknowledged, and sends
//! again what was not acknowledged in time; every packet says how far the sender has received in
//! the other direction, and when there is nothing to send, an acknowledgement goes by itself a
//! little later. The receiver drops what it has already, holds back what came too early, and hands
//! on the rest in order.
//!
//! A *reset* begins a new *connection*: what was not delivered is gone, and numbering starts
//! again. An end that resets says so with an *open* packet, which is sent until it is acknowledged,
//! so that the other end learns of it even if it has nothing to say. An end that gets a packet of a
//! newer connection than its own resets as well and goes on in that one; a packet of an older
//! connection is ignored. Whoever is behind learns it from the open packet, at the latest.
//! Connections are unique over both ends and increase, also over crashes, so that nothing an end
//! has sent in one can be taken for something sent in another.
//!
//! Example. A has sent packet 3 of connection 0 and crashes; it comes back with connection 8.
//! Packet 3 may still be delivered to B, which does not know yet: a request is executed though its
//! coordinator is gone. When B has seen A's open packet of connection 8, it is too late for packet
//! 3.
//!
//! The content of a packet exists once, however often the packet is sent: whichever copy is
//! accepted first takes it. That a second one finds nothing to take is asserted, not relied upon.
//!
//! Left out: a bound on what is in flight (a send never blocks), estimates of the round trip,
//! selective acknowledgements, and giving up: without a reset, an end sends again for ever.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// How many packets are sent again at once.
const BURST: usize = 16;

/// What is carried, and when it was first sent.
pub(super) struct Parcel<P> {
    content: Cell<Option<P>>,
    sent_ns: u64,
}

/// What a packet is for.
pub(super) enum Body<P> {
    /// To acknowledge; its sequence number means nothing.
    Nothing,
    /// To begin a connection.
    Open,
    /// To carry a batch.
    Data(Rc<Parcel<P>>),
}

impl<P> Clone for Body<P> {
    fn clone(&self) -> Self {
        match self {
            Body::Nothing => Body::Nothing,
            Body::Open => Body::Open,
            Body::Data(parcel) => Body::Data(parcel.clone()),
        }
    }
}

/// What the network carries, loses, doubles and mixes up.
pub(super) struct Packet<P> {
    pub(super) connection: u64,
    pub(super) sequence: u64,
    /// All packets of the other direction below this one have been received.
    received: u64,
    body: Body<P>,
}

impl<P> Packet<P> {
    /// Whether it carries a batch.
    pub(super) fn is_data(&self) -> bool {
        matches!(self.body, Body::Data(_))
    }
}

impl<P> Clone for Packet<P> {
    fn clone(&self) -> Self {
        let Packet { connection, sequence, received, .. } = *self;
        Packet { connection, sequence, received, body: self.body.clone() }
    }
}

/// A batch that is next in order.
pub(super) struct Delivered<P> {
    pub(super) sequence: u64,
    /// When it was first sent, in virtual nanoseconds.
    pub(super) sent_ns: u64,
    pub(super) content: P,
}

struct Unacknowledged<P> {
    body: Body<P>,
    /// When it was last sent.
    sent_ns: u64,
}

/// One shard's end of its channel to another.
pub(super) struct End<P> {
    pub(super) connection: u64,
    /// Number of the next new packet, and the packets before it that may still be on their way.
    next_sent: u64,
    unacknowledged: VecDeque<Unacknowledged<P>>,
    /// How long to wait for an acknowledgement at present; doubles with every disappointment.
    patience_ns: u64,
    /// Number of the next packet to hand on, and what came too early; `None` is an open packet.
    next_received: u64,
    early: BTreeMap<u64, Option<(u64, P)>>,
    /// Whether the other end has not been told what was received.
    owes: bool,
    /// When whoever drives the channel will call [`End::acknowledge`] and [`End::resend`];
    /// `u64::MAX` is never. These outlast resets.
    pub(super) acknowledge_ns: u64,
    pub(super) resend_ns: u64,
}

impl<P> Default for End<P> {
    fn default() -> Self {
        End {
            connection: 0,
            next_sent: 0,
            unacknowledged: VecDeque::new(),
            patience_ns: 0,
            next_received: 0,
            early: BTreeMap::new(),
            owes: false,
            acknowledge_ns: u64::MAX,
            resend_ns: u64::MAX,
        }
    }
}

impl<P> End<P> {
    /// The packet that carries a batch.
    pub(super) fn send(&mut self, now_ns: u64, content: P) -> Packet<P> {
        let parcel = Parcel { content: Cell::new(Some(content)), sent_ns: now_ns };
        self.post(now_ns, Body::Data(Rc::new(parcel)))
    }

    /// Drops everything and begins a connection of which the other end has learnt.
    pub(super) fn reset(&mut self, connection: u64) {
        assert!(connection > self.connection, "connections of a channel increase");
        let End { acknowledge_ns, resend_ns, .. } = *self;
        *self = End { connection, acknowledge_ns, resend_ns, ..End::default() };
    }

    /// The packet that tells the other end of the connection just begun.
    pub(super) fn open(&mut self, now_ns: u64) -> Packet<P> {
        assert_eq!(self.next_sent, 0, "a connection is opened by its first packet");
        self.post(now_ns, Body::Open)
    }

    /// Takes a packet of the present connection; what is now in order goes to `delivered`. Returns
    /// whether it has acknowledged anything.
    pub(super) fn receive(&mut self, packet: Packet<P>, delivered: &mut Vec<Delivered<P>>) -> bool {
        assert_eq!(packet.connection, self.connection, "packets of other connections are not received");
        let acknowledged = self.forget_below(packet.received);
        let Packet { sequence, body, .. } = packet;
        if let Body::Nothing = body {
            return acknowledged;
        }
        self.owes = true;
        if sequence < self.next_received || self.early.contains_key(&sequence) {
            return acknowledged;
        }
        let content = match body {
            Body::Data(parcel) => {
                let content = parcel.content.take().expect("the content of a packet is accepted once");
                Some((parcel.sent_ns, content))
            }
            _ => None,
        };
        if sequence > self.next_received {
            self.early.insert(sequence, content);
            return acknowledged;
        }
        self.hand_on(content, delivered);
        while let Some(content) = self.early.remove(&self.next_received) {
            self.hand_on(content, delivered);
        }
        acknowledged
    }

    /// Whether its oldest packet has waited this long for an acknowledgement.
    pub(super) fn is_overdue(&self, now_ns: u64, first_ns: u64) -> bool {
        self.unacknowledged.front().is_some_and(|oldest| oldest.sent_ns + first_ns <= now_ns)
    }

    /// The acknowledgement that is owed, if one is.
    pub(super) fn acknowledge(&mut self) -> Option<Packet<P>> {
        std::mem::take(&mut self.owes).then(|| self.packet(0, Body::Nothing))
    }

    /// Whether an acknowledgement is owed.
    pub(super) fn owes(&self) -> bool {
        self.owes
    }

    /// Sends again what was not acknowledged in time: first after `first_ns`, then after twice as
    /// long and so on, at most `max_ns`. Returns when to ask again; `None` if nothing is
    /// outstanding.
    pub(super) fn resend(
        &mut self,
        now_ns: u64,
        (first_ns, max_ns): (u64, u64),
        packets: &mut Vec<Packet<P>>,
    ) -> Option<u64> {
        let oldest_ns = self.unacknowledged.front()?.sent_ns;
        let patience_ns = self.patience_ns.max(first_ns);
        if oldest_ns + patience_ns > now_ns {
            return Some(oldest_ns + patience_ns);
        }
        let first = self.next_sent - self.unacknowledged.len() as u64;
        for offset in 0..self.unacknowledged.len().min(BURST) {
            let waiting = &mut self.unacknowledged[offset];
            if waiting.sent_ns + patience_ns <= now_ns {
                waiting.sent_ns = now_ns;
                let body = waiting.body.clone();
                packets.push(self.packet(first + offset as u64, body));
            }
        }
        self.owes = false;
        self.patience_ns = (2 * patience_ns).min(max_ns.max(first_ns));
        Some(now_ns + self.patience_ns)
    }

    fn post(&mut self, now_ns: u64, body: Body<P>) -> Packet<P> {
        self.unacknowledged.push_back(Unacknowledged { body: body.clone(), sent_ns: now_ns });
        self.owes = false;
        self.next_sent += 1;
        self.packet(self.next_sent - 1, body)
    }

    fn packet(&self, sequence: u64, body: Body<P>) -> Packet<P> {
        Packet { connection: self.connection, sequence, received: self.next_received, body }
    }

    fn forget_below(&mut self, received: u64) -> bool {
        assert!(received <= self.next_sent, "only what was sent is acknowledged");
        let before = self.unacknowledged.len();
        while self.next_sent - (self.unacknowledged.len() as u64) < received {
            self.unacknowledged.pop_front();
            self.patience_ns = 0;
        }
        self.unacknowledged.len() < before
    }

    fn hand_on(&mut self, content: Option<(u64, P)>, delivered: &mut Vec<Delivered<P>>) {
        if let Some((sent_ns, content)) = content {
            delivered.push(Delivered { sequence: self.next_received, sent_ns, content });
        }
        self.next_received += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Draw;
    use super::*;

    const PATIENCE: (u64, u64) = (10, 100);

    fn receive(end: &mut End<u32>, packet: Packet<u32>) -> Vec<u32> {
        let mut delivered = Vec::new();
        end.receive(packet, &mut delivered);
        delivered.into_iter().map(|batch| batch.content).collect()
    }

    #[test]
    fn what_comes_early_is_held_back_and_what_comes_twice_is_dropped() {
        let (mut a, mut b) = (End::default(), End::default());
        let packets: Vec<_> = (0..3).map(|n| a.send(0, n)).collect();
        assert!(receive(&mut b, packets[2].clone()).is_empty());
        assert_eq!(receive(&mut b, packets[0].clone()), [0]);
        assert!(receive(&mut b, packets[0].clone()).is_empty());
        assert!(receive(&mut b, packets[2].clone()).is_empty());
        assert_eq!(receive(&mut b, packets[1].clone()), [1, 2]);
        receive(&mut a, b.acknowledge().expect("an acknowledgement is owed"));
        assert!(b.acknowledge().is_none());
        assert_eq!(a.resend(1_000, PATIENCE, &mut Vec::new()), None);
    }

    #[test]
    fn patience_doubles_until_something_is_acknowledged() {
        let (mut a, mut b) = (End::default(), End::default());
        a.send(0, 7);
        let mut again = Vec::new();
        assert_eq!(a.resend(5, PATIENCE, &mut again), Some(10));
        assert!(again.is_empty());
        assert_eq!(a.resend(10, PATIENCE, &mut again), Some(30));
        assert_eq!(a.resend(30, PATIENCE, &mut again), Some(70));
        assert!(!a.is_overdue(39, PATIENCE.0) && a.is_overdue(40, PATIENCE.0));
        assert_eq!(receive(&mut b, again.remove(1)), [7]);
        assert!(receive(&mut b, again.remove(0)).is_empty());
        receive(&mut a, b.acknowledge().expect("an acknowledgement is owed"));
        a.send(100, 8);
        assert_eq!(a.resend(100, PATIENCE, &mut again), Some(110));
    }

    #[test]
    fn a_new_connection_begins_with_nothing_outstanding() {
        let (mut a, mut b) = (End::default(), End::default());
        a.send(0, 1);
        receive(&mut b, a.send(0, 2));
        a.reset(5);
        b.reset(5);
        assert!(receive(&mut b, a.open(1)).is_empty());
        assert_eq!(receive(&mut b, a.send(1, 3)), [3]);
        receive(&mut a, b.acknowledge().expect("an acknowledgement is owed"));
        assert_eq!(a.resend(1_000, PATIENCE, &mut Vec::new()), None);
    }

    #[test]
    fn everything_arrives_once_and_in_order_whatever_the_network_does() {
        for seed in 0..200 {
            let mut draw = Draw::new(seed, "channel", 0);
            let mut ends = [End::default(), End::default()];
            let mut network: Vec<(usize, Packet<u32>)> = Vec::new();
            let mut sent = [0; 2];
            let mut arrived = [Vec::new(), Vec::new()];
            let mut now = 0;
            while arrived.iter().any(|there| there.len() < 50) {
                now += draw.below(20);
                let me = draw.below(2) as usize;
                let mut packets = Vec::new();
                if sent[me] < 50 && draw.chance(0.5) {
                    packets.push(ends[me].send(now, sent[me]));
                    sent[me] += 1;
                }
                ends[me].resend(now, PATIENCE, &mut packets);
                packets.extend(ends[me].acknowledge());
                for packet in packets {
                    for _ in 0..draw.below(3) {
                        network.push((1 - me, packet.clone()));
                    }
                }
                if !network.is_empty() {
                    let (to, packet) = network.swap_remove(draw.below(network.len() as u64) as usize);
                    arrived[to].extend(receive(&mut ends[to], packet));
                }
            }
            for there in arrived {
                assert!(there.into_iter().eq(0..50));
            }
        }
    }
}
