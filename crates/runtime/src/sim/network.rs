//! The network between machines, and what each shard's ends of channels make of it.
//!
//! What a packet carries can be taken through its encoding ([`World::encode`]): what is delivered
//! then is what was decoded, as between processes.
//!
//! A packet's fate is drawn when it is sent: lost or not, late or not, once or twice; each link
//! between two machines draws from streams of its own. A link that is *cut* loses what is sent; one
//! that is *clogged* keeps what arrives until it no longer is. What is on its way when a partition
//! begins still arrives.
//!
//! Shards of one machine share its memory: their batches are neither lost nor numbered, only a
//! little late, and in order. They are gone when the machine crashes.

use plimsoll_types::wire::{Same, Wire, whole};
use plimsoll_types::{ShardId, Slab};

use super::channel::{Delivered, End, Packet};
use super::draw::Draw;
use super::faults::{Faults, Hardware};
use super::trace::Event;
use super::{What, World};
use crate::Participant;
use crate::shard::{Batch, Message};

type Messages<N> = Vec<Message<N>>;
/// Says what arrives of messages. The buffer is kept for its memory.
type Travel<N> = fn(&Messages<N>, &mut Vec<u8>) -> Messages<N>;

/// A packet on its way.
struct Flight<N: Participant> {
    from: ShardId,
    to: ShardId,
    packet: Packet<Messages<N>>,
}

/// A batch on its way from one shard to another of its machine.
struct Handover<N: Participant> {
    to: ShardId,
    sent_ns: u64,
    /// The life of the receiver for which it is meant.
    life: u32,
    batch: Batch<N>,
}

/// What one link does to packets, at present.
pub(super) struct LinkState {
    /// How many partitions cut it, and how many times over it is clogged.
    pub(super) cut: u32,
    pub(super) clogged: u32,
    /// By what each slowdown multiplies.
    pub(super) slow: Vec<u64>,
    /// Packets that arrived at the clog.
    held: Vec<u32>,
    /// Streams: what becomes of packets, and when they arrive.
    fate: Draw,
    delay: Draw,
}

/// Links, ends of channels, and what is on its way.
pub(super) struct Network<N: Participant> {
    machines: usize,
    shards: usize,
    /// By sending and receiving machine.
    links: Vec<LinkState>,
    /// By owner and peer.
    ends: Vec<End<Messages<N>>>,
    flights: Slab<Flight<N>>,
    handovers: Slab<Handover<N>>,
    /// When the last batch from one shard to another of its machine arrives, by both.
    last_handover_ns: Vec<u64>,
    /// How long handovers take.
    delay: Draw,
    /// By connection of any channel, in the order in which they began: the life of the shard that
    /// began it.
    connections: Vec<u64>,
    /// Packets are no longer lost, doubled or held back.
    pub(super) calm: bool,
    /// In worlds where messages are encoded.
    travel: Option<Travel<N>>,
    encoding: Vec<u8>,
    /// Kept for its memory.
    delivered: Vec<Delivered<Messages<N>>>,
}

impl<N: Participant> Network<N> {
    /// Without `channels` nothing travels but by [`Network::take`].
    pub(super) fn new(seed: u64, shards: usize, machines: usize, channels: bool) -> Network<N> {
        let (links, ends) = if channels { (machines * machines, shards * shards) } else { (0, 0) };
        let link = |number: usize| LinkState {
            cut: 0,
            clogged: 0,
            slow: Vec::new(),
            held: Vec::new(),
            fate: Draw::new(seed, "fate", number as u64),
            delay: Draw::new(seed, "delay", number as u64),
        };
        Network {
            machines,
            shards,
            links: (0..links).map(link).collect(),
            ends: (0..ends).map(|_| End::default()).collect(),
            flights: Slab::default(),
            handovers: Slab::default(),
            last_handover_ns: vec![0; shards * shards],
            delay: Draw::new(seed, "handover", 0),
            connections: Vec::new(),
            calm: false,
            travel: None,
            encoding: Vec::new(),
            delivered: Vec::new(),
        }
    }

    pub(super) fn link(&mut self, from: usize, to: usize) -> &mut LinkState {
        &mut self.links[from * self.machines + to]
    }

    /// How much later something arrives.
    pub(super) fn delay(&mut self, jitter_ns: u64) -> u64 {
        self.delay.below(jitter_ns)
    }

    /// Takes a batch that arrives at some time, but not before those that were sent earlier. Says
    /// when, and as what.
    pub(super) fn take(
        &mut self,
        to: ShardId,
        sent_ns: u64,
        at_ns: u64,
        life: u32,
        batch: Batch<N>,
    ) -> (u64, u32) {
        let last_ns = &mut self.last_handover_ns[batch.from.index() * self.shards + to.index()];
        *last_ns = at_ns.max(*last_ns);
        (*last_ns, self.handovers.insert(Handover { to, sent_ns, life, batch }))
    }

    fn end(&mut self, owner: ShardId, peer: ShardId) -> &mut End<Messages<N>> {
        &mut self.ends[owner.index() * self.shards + peer.index()]
    }
}

impl LinkState {
    /// How long after being sent each copy of a packet arrives; `None` for a copy that does not
    /// exist.
    fn draw(&mut self, hardware: &Hardware, faults: &Faults, calm: bool) -> [Option<u64>; 2] {
        // All of these are drawn for every packet, so that what happens to one does not change the
        // next.
        let lost = self.fate.chance(faults.loss) && !calm;
        let twice = self.fate.chance(faults.duplication) && !calm;
        let overtaken = self.fate.chance(faults.reordering) && !calm;
        let held_back = self.fate.below(faults.reordering_ns);
        let slow = self.slow.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor));
        let mut delay_ns = || {
            let tail = self.delay.chance(hardware.tail);
            let tail_ns = self.delay.below(hardware.tail_ns);
            let usual_ns = hardware.latency_ns + self.delay.below(hardware.jitter_ns);
            (usual_ns + if tail { tail_ns } else { 0 }).saturating_mul(slow)
        };
        let (first_ns, second_ns) = (delay_ns(), delay_ns());
        let first_ns = first_ns + if overtaken { held_back } else { 0 };
        match self.cut > 0 || lost {
            true => [None, None],
            false => [Some(first_ns), twice.then_some(second_ns)],
        }
    }
}

impl<N: Participant<Request: Wire, Reply: Wire>> World<N> {
    /// From now on, what shards of different machines send each other is encoded, and what is
    /// decoded arrives. Nothing else is different: a message that is not the same afterwards is a
    /// bug, and often ends the world at once.
    pub fn encode(&mut self) {
        self.network.travel = Some(|messages, bytes| {
            bytes.clear();
            messages.encode(bytes);
            let decoded: Messages<N> =
                whole(bytes).unwrap_or_else(|malformed| panic!("what travels is decoded: {malformed}"));
            let mut same = Same::new(bytes);
            decoded.encode(&mut same);
            assert!(same.is_whole(), "what is decoded has the encoding that has travelled");
            decoded
        });
    }
}

impl<N: Participant> World<N> {
    /// A shard sends a batch, at the end of a pass.
    pub(super) fn dispatch(&mut self, from: ShardId, to: ShardId, mut batch: Batch<N>) {
        let messages = batch.messages.len();
        let now_ns = self.queue.now_ns;
        self.trace.show(from, to, &batch.messages);
        if self.machine(from) == self.machine(to) {
            self.trace.record(now_ns, Event::Sent { from, to, sequence: 0, messages });
            self.hand_over(to, batch);
            return;
        }
        let starts = |message: &Message<N>| matches!(message, Message::Start(_));
        debug_assert!(!batch.messages.iter().any(starts), "a task is started on a shard of its own machine");
        if let Some(travel) = self.network.travel {
            batch.messages = travel(&batch.messages, &mut self.network.encoding);
        }
        if self.ledger.is_some() {
            self.trace.record(now_ns, Event::Sent { from, to, sequence: 0, messages });
            self.ship(to, batch);
            return;
        }
        let packet = self.network.end(from, to).send(now_ns, batch.messages);
        self.trace.record(now_ns, Event::Sent { from, to, sequence: packet.sequence, messages });
        self.transmit(from, to, packet);
        self.watch(from, to);
    }

    fn hand_over(&mut self, to: ShardId, batch: Batch<N>) {
        let now_ns = self.queue.now_ns;
        let late_ns = self.hardware.local_ns + self.network.delay(self.hardware.local_jitter_ns);
        let life = self.shards[to.index()].life;
        let (at_ns, handover) = self.network.take(to, now_ns, now_ns + late_ns, life, batch);
        self.queue.push(at_ns, What::Handover { handover });
    }

    pub(super) fn handed_over(&mut self, handover: u32) {
        let Handover { to, sent_ns, life, batch } =
            self.network.handovers.remove(handover).expect("a batch is handed over once");
        if self.shards[to.index()].life == life {
            let from = batch.from;
            self.trace.record(self.queue.now_ns, Event::Delivered { from, to, sequence: 0, sent_ns });
            self.shards[to.index()].inbox.push_back(batch);
            self.poke(to);
        }
    }

    fn transmit(&mut self, from: ShardId, to: ShardId, packet: Packet<Messages<N>>) {
        let link = Self::link_of(&self.hardware, from, to);
        let calm = self.network.calm;
        let delays = self.network.link(link.0, link.1).draw(&self.hardware, &self.faults, calm);
        if packet.is_data() {
            let arrives_ns = delays.map(|delay| delay.map(|ns| self.queue.now_ns.saturating_add(ns)));
            let sequence = packet.sequence;
            self.trace.record(self.queue.now_ns, Event::Transmitted { from, to, sequence, arrives_ns });
        }
        let [first, second] = delays;
        if let Some(delay_ns) = second {
            let flight = self.network.flights.insert(Flight { from, to, packet: packet.clone() });
            self.queue.push(self.queue.now_ns.saturating_add(delay_ns), What::Arrival { flight });
        }
        if let Some(delay_ns) = first {
            let flight = self.network.flights.insert(Flight { from, to, packet });
            self.queue.push(self.queue.now_ns.saturating_add(delay_ns), What::Arrival { flight });
        }
    }

    /// Sees to it that what is outstanding from one shard to another is sent again in time.
    fn watch(&mut self, from: ShardId, to: ShardId) {
        let at_ns = self.queue.now_ns + self.hardware.resend_ns.max(1);
        let end = self.network.end(from, to);
        if at_ns < end.resend_ns {
            end.resend_ns = at_ns;
            self.queue.push(at_ns, What::Resend { from, to });
        }
    }

    pub(super) fn resend(&mut self, from: ShardId, to: ShardId) {
        let now_ns = self.queue.now_ns;
        let patience = (self.hardware.resend_ns.max(1), self.hardware.resend_max_ns);
        let is_up = self.shards[from.index()].env.is_some();
        let end = self.network.end(from, to);
        if end.resend_ns != now_ns {
            // An earlier time was agreed upon since.
            return;
        }
        let mut packets = Vec::new();
        let next_ns = if is_up { end.resend(now_ns, patience, &mut packets) } else { None };
        end.resend_ns = next_ns.unwrap_or(u64::MAX);
        for packet in packets {
            self.transmit(from, to, packet);
        }
        if let Some(next_ns) = next_ns {
            self.queue.push(next_ns, What::Resend { from, to });
        }
    }

    pub(super) fn acknowledge(&mut self, from: ShardId, to: ShardId) {
        let end = self.network.end(from, to);
        end.acknowledge_ns = u64::MAX;
        if let Some(packet) = end.acknowledge()
            && self.shards[from.index()].env.is_some()
        {
            self.transmit(from, to, packet);
        }
    }

    pub(super) fn arrive(&mut self, flight: u32) {
        let &Flight { from, to, ref packet } =
            self.network.flights.get(flight).expect("a packet arrives once");
        let connection = packet.connection;
        let link = Self::link_of(&self.hardware, from, to);
        let link = self.network.link(link.0, link.1);
        if link.clogged > 0 {
            link.held.push(flight);
            return;
        }
        let Flight { packet, .. } = self.network.flights.remove(flight).expect("a packet arrives once");
        if self.shards[to.index()].env.is_none() {
            return;
        }
        let end = self.network.end(to, from);
        if connection < end.connection {
            return;
        }
        if connection > end.connection {
            let life = self.network.connections[connection as usize - 1];
            self.begin_connection(to, from, connection, life);
        }
        self.accept(from, to, packet);
    }

    fn accept(&mut self, from: ShardId, to: ShardId, packet: Packet<Messages<N>>) {
        let now_ns = self.queue.now_ns;
        let mut delivered = std::mem::take(&mut self.network.delivered);
        let first_ns = self.hardware.resend_ns.max(1);
        let end = self.network.end(to, from);
        // Acknowledgements set the pace at which a long outage is made good.
        let overdue = end.receive(packet, &mut delivered) && end.is_overdue(now_ns, first_ns);
        if overdue && now_ns < end.resend_ns {
            end.resend_ns = now_ns;
            self.queue.push(now_ns, What::Resend { from: to, to: from });
        }
        let at_ns = now_ns + self.hardware.acknowledge_ns;
        if end.owes() && at_ns < end.acknowledge_ns {
            end.acknowledge_ns = at_ns;
            self.queue.push(at_ns, What::Acknowledge { from: to, to: from });
        }
        let arrived = !delivered.is_empty();
        for Delivered { sequence, sent_ns, content } in delivered.drain(..) {
            self.trace.record(now_ns, Event::Delivered { from, to, sequence, sent_ns });
            self.shards[to.index()].inbox.push_back(Batch { from, messages: content });
        }
        self.network.delivered = delivered;
        if arrived {
            self.poke(to);
        }
    }

    /// Lets go what a clogged link has held back.
    pub(super) fn unclog(&mut self, from: usize, to: usize) {
        let held = std::mem::take(&mut self.network.link(from, to).held);
        for flight in held {
            self.arrive(flight);
        }
    }

    /// A shard that is up gives its channel to a peer up, and says so.
    pub(super) fn reset(&mut self, shard: ShardId, peer: ShardId) {
        self.network.connections.push(self.shards[shard.index()].number());
        let connection = self.network.connections.len() as u64;
        // If the peer is down it will begin another connection when it starts.
        let life = self.shards[peer.index()].number();
        self.begin_connection(shard, peer, connection, life);
        let packet = self.network.end(shard, peer).open(self.queue.now_ns);
        self.transmit(shard, peer, packet);
        self.watch(shard, peer);
    }

    /// Drops what is not delivered, also what is delivered but not handled or about to be sent.
    fn begin_connection(&mut self, shard: ShardId, peer: ShardId, connection: u64, life: u64) {
        self.trace.record(self.queue.now_ns, Event::Reset { shard, peer, connection });
        self.network.end(shard, peer).reset(connection);
        let state = &mut self.shards[shard.index()];
        state.inbox.retain(|batch| batch.from != peer);
        state.outbox.retain(|(to, _)| *to != peer);
        let env = state.env.as_ref().expect("a shard that is down has no channels");
        env.reset(peer);
        env.connected(peer, None);
        env.connected(peer, Some(life));
        self.poke(shard);
    }

    /// All shards of a world are connected from the beginning.
    pub(super) fn introduce(&self) {
        for (shard, state) in self.shards.iter().enumerate() {
            for (peer, other) in self.shards.iter().enumerate() {
                let (shard, peer) = (ShardId(shard as u16), ShardId(peer as u16));
                if let Some(env) = &state.env
                    && self.machine(shard) != self.machine(peer)
                {
                    env.connected(peer, Some(other.number()));
                }
            }
        }
    }

    fn link_of(hardware: &Hardware, from: ShardId, to: ShardId) -> (usize, usize) {
        let per_machine = hardware.shards_per_machine as usize;
        (from.index() / per_machine, to.index() / per_machine)
    }
}
