//! What things cost, in worlds that predict how fast something is.
//!
//! Other worlds ask whether something is right, and any cost will do. One with [`Costs`] is told
//! what each pass has cost a core, and what each batch weighs on the wire. A batch for another
//! machine leaves when the sending machine's network card has worked off what was given to it
//! before, travels, and is there when the receiving card has taken in what arrived before: two
//! queues in front of two servers that need a fixed time per batch and some per byte. Nothing is
//! lost, so there is nothing to acknowledge and to send again.
//!
//! Example. 10 Gb/s are 800 ps per byte. Two batches of 1,250 bytes, given to a card at the same
//! moment, have left after 1 µs and 2 µs.
//!
//! Left out: what a switch does to many flows (links between cards have the bandwidth of the
//! cards), and the order of arrival at a card, which is taken to be the order of departure.

use plimsoll_types::ShardId;

use super::trace::Carried;
use super::{What, World};
use crate::Participant;
use crate::shard::{Batch, Message};

/// What a pass has done.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Messages taken out of the inbox.
    pub received: usize,
    /// Messages that leave at its end.
    pub sent: usize,
    /// Batches of either, from and to shards of the same machine.
    pub local_batches: usize,
    /// Batches of either, from and to other machines.
    pub remote_batches: usize,
    /// Tasks polled.
    pub polls: usize,
    /// Requests of its own tasks that the node has handled, and those that it has handled again
    /// after they had waited.
    pub handled: usize,
}

/// Says how many nanoseconds of a core a pass of a shard has taken.
pub type PassCost<N> = Box<dyn FnMut(ShardId, &mut N, Pass) -> u64>;

/// Says how many bytes a message has on the wire.
pub type Weight<N> = Box<dyn Fn(Carried<'_, N>) -> u64>;

/// What things cost.
pub struct Costs<N: Participant> {
    /// Passes.
    pub pass: PassCost<N>,
    /// Messages.
    pub weight: Weight<N>,
    /// Threads of each machine, if its shards may have to share them.
    pub threads: Option<usize>,
    /// Nanoseconds that a network card needs for a batch, whatever its size.
    pub frame_ns: f64,
    /// Nanoseconds that it needs for a byte.
    pub byte_ns: f64,
}

/// One direction of a machine's network card.
#[derive(Clone, Copy, Debug, Default)]
struct Card {
    /// When it is done with what was given to it.
    free_ns: f64,
    /// How long it has worked.
    busy_ns: f64,
}

impl Card {
    /// When something that comes at this time is done.
    fn serve(&mut self, at_ns: f64, work_ns: f64) -> f64 {
        self.free_ns = self.free_ns.max(at_ns) + work_ns;
        self.busy_ns += work_ns;
        self.free_ns
    }
}

/// What a resource has been used for so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Nanoseconds that the shard has worked.
    pub cpu_ns: u64,
    /// Messages that it has sent.
    pub messages: u64,
    /// Bytes that its machine has sent.
    pub bytes: u64,
    /// Nanoseconds that its machine's network card was sending, or receiving if that is more.
    pub card_ns: u64,
}

/// Costs, and what has been spent.
pub(super) struct Ledger<N: Participant> {
    costs: Costs<N>,
    /// By machine: sending, receiving, bytes sent.
    cards: Vec<(Card, Card, u64)>,
    /// By shard: nanoseconds worked, messages sent.
    spent: Vec<(u64, u64)>,
}

impl<N: Participant> Ledger<N> {
    pub(super) fn new(costs: Costs<N>, shards: usize, machines: usize) -> Ledger<N> {
        Ledger { costs, cards: vec![Default::default(); machines], spent: vec![(0, 0); shards] }
    }

    /// What a pass costs.
    pub(super) fn pass(&mut self, shard: ShardId, node: &mut N, pass: Pass) -> u64 {
        let cost_ns = (self.costs.pass)(shard, node, pass);
        let (worked_ns, messages) = &mut self.spent[shard.index()];
        *worked_ns += cost_ns;
        *messages += pass.sent as u64;
        cost_ns
    }

    fn weight(&self, batch: &Batch<N>) -> u64 {
        let weigh =
            |message: &Message<N>| Carried::of(message).map_or(0, |carried| (self.costs.weight)(carried));
        batch.messages.iter().map(weigh).sum()
    }
}

impl<N: Participant> World<N> {
    /// What a shard and its machine have done so far, in a world with costs.
    pub fn usage(&self, shard: ShardId) -> Usage {
        let Some(ledger) = &self.ledger else { return Usage::default() };
        let (cpu_ns, messages) = ledger.spent[shard.index()];
        let (sending, receiving, bytes) = ledger.cards[self.machine(shard)];
        Usage { cpu_ns, messages, bytes, card_ns: sending.busy_ns.max(receiving.busy_ns) as u64 }
    }

    /// A batch goes to another machine by way of two network cards.
    pub(super) fn ship(&mut self, to: ShardId, batch: Batch<N>) {
        let (now_ns, from) = (self.queue.now_ns, batch.from);
        let (sender, receiver) = (self.machine(from), self.machine(to));
        let ledger = self.ledger.as_mut().expect("a world with costs ships");
        let bytes = ledger.weight(&batch);
        let work_ns = ledger.costs.frame_ns + ledger.costs.byte_ns * bytes as f64;
        let (sending, _, sent) = &mut ledger.cards[sender];
        *sent += bytes;
        let left_ns = sending.serve(now_ns as f64, work_ns);
        let latency_ns = self.hardware.latency_ns + self.network.delay(self.hardware.jitter_ns);
        let (_, receiving, _) = &mut ledger.cards[receiver];
        let arrived_ns = receiving.serve(left_ns + latency_ns as f64, work_ns);
        let handover = self.network.take(to, now_ns, arrived_ns as u64, self.shards[to.index()].life, batch);
        self.queue.push(handover.0, What::Handover { handover: handover.1 });
    }
}
