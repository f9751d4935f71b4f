//! Simulated connections of bytes: a task of one shard dials another shard ([`World::dialer`]), and
//! both have an ordinary [`crate::Stream`].
//!
//! What a stream writes leaves its shard at the end of the pass, as messages do, and is cut into
//! *segments* of arbitrary length; each arrives after those that were sent before it. So a reader
//! may get one byte at a time, or two requests and a half. How many bytes may be under way or not
//! read is drawn for each direction, from 512 bytes on: then a write waits until the other side has
//! read, and word of it has come back.
//!
//! TCP repeats what is lost, so to a stream a lost packet, a partition and a clog are delays: a
//! segment that reaches a link that is cut waits there. A connection is *reset* by the fault that
//! resets the channel between the same two shards ([`super::Fault::Reset`]), by the crash of either
//! machine, if it is dialed while the shard is down, or if one side writes after the other was
//! dropped. Then what is under way is lost. The side where it happens knows at once, the other when
//! word of it arrives.
//!
//! Example. A client writes `ping` and then `pong` in one pass. At its end `pi` and `ngpong` leave.
//! The link is cut, so both wait at it for 40 ms. When the partition ends, both arrive, and the
//! server reads `pingpong` at once.
//!
//! All draws come from streams of their own, so a world that dials nothing is what it was without
//! this file.
//!
//! Left out: hosts that vanish without a reset, and clients that are on no shard.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_types::{ShardId, Slab};

use super::draw::Draw;
use super::lives::State;
use super::socket::{Dialer, End, Shared, SimulatedSocket, address};
use super::trace::Event;
use super::{What, World};
use crate::Participant;
use crate::shard::{Batch, Message};
use crate::stream::Detached;

/// Segments are sometimes as short as this, or shorter.
const SHORT: u64 = 16;

/// What travels of a connection, in one direction.
#[derive(Debug)]
enum Segment {
    Open,
    Bytes(Vec<u8>),
    /// So many bytes were read.
    Read(usize),
    /// No more bytes will come.
    End,
    Reset,
}

/// A segment on its way to one side of a connection.
struct Flight {
    connection: u64,
    side: usize,
    from: ShardId,
    to: ShardId,
    segment: Segment,
}

/// The connections of a world.
pub(super) struct Streams {
    shared: Shared,
    /// A dialer was asked for.
    pub(super) exist: bool,
    seed: u64,
    flights: Slab<Flight>,
    /// By sending and receiving machine: how long segments take and how they are cut, and which
    /// have reached a link that is cut or clogged.
    draws: BTreeMap<(usize, usize), Draw>,
    held: BTreeMap<(usize, usize), VecDeque<u32>>,
}

impl Streams {
    pub(super) fn new(seed: u64) -> Streams {
        let shared = Shared::default();
        shared.lock().seed = seed;
        let (draws, held) = (BTreeMap::new(), BTreeMap::new());
        Streams { shared, exist: false, seed, flights: Slab::default(), draws, held }
    }

    fn draw(&mut self, from: usize, to: usize) -> &mut Draw {
        let number = (from as u64) << 32 | to as u64;
        self.draws.entry((from, to)).or_insert_with(|| Draw::new(self.seed, "stream", number))
    }

    /// Cuts bytes into segments.
    fn cut(&mut self, from: usize, to: usize, mut bytes: Vec<u8>, segments: &mut Vec<Segment>) {
        let draw = self.draw(from, to);
        while !bytes.is_empty() {
            let length = bytes.len() as u64;
            let most = if draw.chance(0.25) { length.min(SHORT) } else { length };
            let rest = bytes.split_off(1 + draw.below(most) as usize);
            segments.push(Segment::Bytes(std::mem::replace(&mut bytes, rest)));
        }
    }
}

impl<N: Participant> World<N> {
    /// What tasks dial shards with.
    pub fn dialer(&mut self) -> Dialer {
        assert!(self.ledger.is_none(), "a world with costs has no streams");
        self.streams.exist = true;
        Dialer { shared: self.streams.shared.clone() }
    }

    /// How many connections are open, at one end at least.
    pub fn connections(&self) -> usize {
        self.streams.shared.lock().ends.len()
    }

    /// Sends what the streams of a shard have written, when a pass of it is over.
    #[cold]
    pub(super) fn send_streams(&mut self, shard: ShardId) {
        let mine = |&mut (of, _, _): &mut (ShardId, u64, usize)| of == shard;
        loop {
            let touched: Vec<_> = self.streams.shared.lock().touched.extract_if(.., mine).collect();
            if touched.is_empty() {
                return;
            }
            for (_, connection, side) in touched {
                self.send_end(connection, side);
            }
        }
    }

    /// Sends what one end has to say, and tells its stream what it has to know.
    fn send_end(&mut self, connection: u64, side: usize) {
        let shared = self.streams.shared.clone();
        let mut connections = shared.lock();
        let Some(ends) = connections.ends.get_mut(&connection) else { return };
        let machines = (self.machine(ends[side].shard), self.machine(ends[1 - side].shard));
        let end = &mut ends[side];
        let mut segments = Vec::new();
        if std::mem::take(&mut end.dials) {
            segments.push(Segment::Open);
        }
        self.streams.cut(machines.0, machines.1, std::mem::take(&mut end.outgoing), &mut segments);
        match std::mem::take(&mut end.read) {
            0 => {}
            bytes => segments.push(Segment::Read(bytes)),
        }
        if end.closed && !end.arrived.is_empty() && !end.reset {
            // As TCP does: the other side learns that not all was read.
            end.break_off();
            segments.push(Segment::Reset);
        } else if end.shut && !end.reset && !std::mem::replace(&mut end.told, true) {
            segments.push(Segment::End);
        }
        let attached = std::mem::take(&mut end.attached);
        let over = ends.iter().all(|end| end.closed);
        if over && segments.is_empty() {
            connections.ends.remove(&connection);
        }
        drop(connections);
        for segment in segments {
            self.send_segment(connection, side, segment);
        }
        if attached {
            self.tell_stream(connection, side);
        }
    }

    /// A segment leaves for the other side.
    fn send_segment(&mut self, connection: u64, side: usize, segment: Segment) {
        let shared = self.streams.shared.clone();
        let mut connections = shared.lock();
        let Some(ends) = connections.ends.get_mut(&connection) else { return };
        let (from, to) = (ends[side].shard, ends[1 - side].shard);
        let (here, there) = (self.machine(from), self.machine(to));
        let (hardware, faults) = (&self.hardware, &self.faults);
        let draw = self.streams.draw(here, there);
        let lasts_ns = if here == there {
            hardware.local_ns + draw.below(hardware.local_jitter_ns)
        } else {
            let (lost, tail) = (draw.chance(faults.loss), draw.chance(hardware.tail));
            let (jitter_ns, tail_ns) = (draw.below(hardware.jitter_ns), draw.below(hardware.tail_ns));
            let usual_ns = hardware.latency_ns + jitter_ns + if tail { tail_ns } else { 0 };
            let slow = self.network.link(here, there).slow.iter();
            let usual_ns = slow.fold(usual_ns, |ns: u64, &factor| ns.saturating_mul(factor));
            usual_ns.saturating_add(if lost && !self.network.calm { hardware.resend_ns } else { 0 })
        };
        let at_ns = self.queue.now_ns.saturating_add(lasts_ns).max(ends[side].last_ns);
        ends[side].last_ns = at_ns;
        drop(connections);
        let flight = Flight { connection, side: 1 - side, from, to, segment };
        let flight = self.streams.flights.insert(flight);
        self.queue.push(at_ns, What::Segment { flight });
    }

    /// A segment reaches its machine, or a link that lets nothing through.
    #[cold]
    pub(super) fn segment_arrives(&mut self, flight: u32) {
        let &Flight { from, to, .. } = self.streams.flights.get(flight).expect("a segment arrives once");
        let link = (self.machine(from), self.machine(to));
        if link.0 != link.1 {
            let state = self.network.link(link.0, link.1);
            if state.cut > 0 || state.clogged > 0 {
                self.streams.held.entry(link).or_default().push_back(flight);
                return;
            }
        }
        self.take_segment(flight);
    }

    /// Lets go the segments that a link has kept, if it lets through anything again.
    pub(super) fn release_segments(&mut self, from: usize, to: usize) {
        let state = self.network.link(from, to);
        if state.cut == 0 && state.clogged == 0 {
            for flight in self.streams.held.remove(&(from, to)).unwrap_or_default() {
                self.take_segment(flight);
            }
        }
    }

    fn take_segment(&mut self, flight: u32) {
        let Flight { connection, side, from, to, segment } =
            self.streams.flights.remove(flight).expect("a segment arrives once");
        let (kind, length) = match &segment {
            Segment::Open => (0, 0),
            Segment::Bytes(bytes) => (1, bytes.len()),
            Segment::Read(bytes) => (2, *bytes),
            Segment::End => (3, 0),
            Segment::Reset => (4, 0),
        };
        self.trace.record(self.queue.now_ns, Event::Segment { from, to, connection, kind, length });
        let shared = self.streams.shared.clone();
        let mut connections = shared.lock();
        let Some(ends) = connections.ends.get_mut(&connection) else { return };
        let is_up = self.shards[to.index()].env.is_some();
        let end = &mut ends[side];
        let mut is_told = true;
        let refuses = match segment {
            Segment::Open if !is_up || end.reset => {
                end.closed = true;
                !end.reset
            }
            Segment::Open => {
                drop(connections);
                return self.welcome(connection, from, to);
            }
            Segment::Bytes(_) if end.closed && !end.reset => true,
            Segment::Bytes(bytes) => {
                if !end.reset {
                    end.arrived.extend(bytes);
                }
                false
            }
            Segment::Read(bytes) => {
                end.unread -= bytes;
                // A stream is told of room only if it waits for it.
                is_told = std::mem::take(&mut end.full);
                false
            }
            Segment::End => {
                end.ended = true;
                false
            }
            Segment::Reset => {
                end.break_off();
                false
            }
        };
        if refuses {
            end.break_off();
        }
        let over = ends.iter().all(|end| end.closed);
        if over && !refuses {
            connections.ends.remove(&connection);
        }
        drop(connections);
        match refuses {
            true => self.send_segment(connection, side, Segment::Reset),
            false if is_told => self.tell_stream(connection, side),
            false => {}
        }
    }

    /// A connection arrives at the shard that was dialed.
    fn welcome(&mut self, connection: u64, from: ShardId, to: ShardId) {
        let socket = SimulatedSocket { shared: self.streams.shared.clone(), connection, side: 1 };
        let detached = Detached::new(Box::new(socket), address(from, 1024 + (connection % 60_000) as u16));
        let messages = vec![Message::connection(detached)];
        self.shards[to.index()].inbox.push_back(Batch { from: to, messages });
        self.poke(to);
    }

    /// Tells the stream of an end in what state it is.
    fn tell_stream(&mut self, connection: u64, side: usize) {
        let connections = self.streams.shared.lock();
        let Some(end) = connections.ends.get(&connection).map(|ends| &ends[side]) else { return };
        let (shard, number, readiness) = (end.shard, end.number, end.readiness());
        drop(connections);
        if let (Some(env), Some(number)) = (self.env(shard), number) {
            env.socket_ready(number, readiness);
            self.poke(shard);
            // What the stream has sent thereby leaves at once, unless a pass is going on.
            if self.shards[shard.index()].state != State::Busy {
                self.send_streams(shard);
            }
        }
    }

    /// One shard gives up its connections with another one.
    pub(super) fn reset_streams(&mut self, shard: ShardId, peer: ShardId) {
        let between = |ends: &[End; 2], side: usize| {
            let (end, other) = (&ends[side], &ends[1 - side]);
            end.shard == shard && other.shard == peer && !end.closed && !end.reset && !end.dials
        };
        self.break_off_streams(between);
    }

    /// The machine of a shard crashes.
    pub(super) fn crash_streams(&mut self, machine: usize) {
        let residents = self.residents(machine);
        let mut connections = self.streams.shared.lock();
        connections.touched.retain(|(shard, _, _)| !residents.contains(&shard.index()));
        drop(connections);
        let is_here = |end: &End| residents.contains(&end.shard.index());
        self.break_off_streams(|ends, side| is_here(&ends[side]) && !ends[side].reset);
        let mut connections = self.streams.shared.lock();
        for end in connections.ends.values_mut().flatten() {
            end.closed |= residents.contains(&end.shard.index());
        }
        // What was dialed and has not left is gone as well.
        connections
            .ends
            .retain(|_, ends| ends.iter().any(|end| !end.closed) && !(ends[0].closed && ends[0].dials));
    }

    fn break_off_streams(&mut self, breaks: impl Fn(&[End; 2], usize) -> bool) {
        let mut broken = Vec::new();
        for (&connection, ends) in &mut self.streams.shared.lock().ends {
            for side in 0..2 {
                if breaks(ends, side) {
                    ends[side].break_off();
                    broken.push((connection, side));
                }
            }
        }
        for (connection, side) in broken {
            self.send_segment(connection, side, Segment::Reset);
            self.tell_stream(connection, side);
        }
    }
}
