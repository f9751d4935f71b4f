//! A shard's connections to shards of other nodes.
//!
//! The shard's thread does all the work. It asks the operating system what has changed (`poller`).
//! Before each pass comes a *turn*: it closes broken connections, takes new ones from the
//! handshake, and reads. The pass handles what was read. When the pass ends, what it has sent is
//! written. A shard whose tasks are ready to run runs them first: it polls and writes only every
//! [`BUSY_NS`], because a system call costs as much as a few transactions, and one call may carry
//! the messages of several passes.
//!
//! A broken connection is closed at the beginning of a turn, never before what had arrived on it is
//! handled: a reply that came just before the end counts. Then nothing is left to handle or to
//! send, so the reset loses only what is still on its way, and no reply of an earlier connection
//! can reach a later one. A new connection to the same peer first closes the old one in the same
//! way.
//!
//! If a client sends requests and does not take the replies, the shard stops reading from it until
//! it does. If the client takes nothing for [`Network::silence`](super::Network::silence), the
//! connection is closed. Nodes are always read: two that stopped reading each other would wait for
//! ever.
//!
//! A message to a peer that is not connected is dropped; if it is a call, the call fails at the
//! beginning of the next turn.

use crate::{Participant, Suspect, Tasks};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mio::event::Event;
use mio::{Interest, Registry, Token};
use plimsoll_types::ShardId;

use super::super::Clock;
use super::super::poller::{BUSY_NS, Changed, Poller};
use super::beat::Beats;
use super::cluster::Who;
use super::counters::Row;
use super::frame::{Closed, Codec, Fault, encode_beat};
use super::link::{Link, TURN};
use super::{Accepted, Shared};
use crate::shard::{Batch, ShardEnv};

/// Interval between heartbeats, and between checks for silent peers.
const BEAT_NS: u64 = 250_000_000;
/// Least interval between warnings of timestamps that were refused.
const WARN_NS: u64 = 60_000_000_000;
/// How long a stopping shard waits until what it has sent is taken.
const FAREWELL_NS: u64 = 100_000_000;

/// The connections of one shard.
pub(in super::super) struct Links<N: Participant> {
    me: ShardId,
    shared: Arc<Shared>,
    codec: Codec<N>,
    clock: Clock,
    /// Of the thread's poller.
    registry: Registry,
    /// By peer.
    links: Vec<Option<Box<Link>>>,
    connected: usize,
    /// Decoded, not yet handled.
    arrived: VecDeque<Batch<N>>,
    /// Peers with something to read or to write.
    listed: Vec<ShardId>,
    /// An empty list, kept for its memory.
    spare: Vec<ShardId>,
    /// Peers whose connections are to be closed.
    broken: Vec<ShardId>,
    /// Peers without a connection to which something was sent.
    unreachable: Vec<ShardId>,
    /// Peers with something to write, and since when.
    unwritten: Vec<ShardId>,
    unwritten_since: Option<u64>,
    beat_ns: u64,
    next_beat_ns: u64,
    /// When a refused timestamp may be warned of again.
    next_warning_ns: u64,
}

impl<N: Participant> Links<N> {
    /// No connections yet.
    pub(super) fn new(
        me: ShardId,
        shared: Arc<Shared>,
        codec: Codec<N>,
        clock: Clock,
        poller: &Poller,
    ) -> io::Result<Links<N>> {
        // If peers are declared dead sooner, heartbeats have to come more often.
        let beat_ns = BEAT_NS.min(shared.silence_ns / 8);
        Ok(Links {
            me,
            codec,
            clock,
            registry: poller.registry().try_clone()?,
            links: (0..shared.cluster.shards()).map(|_| None).collect(),
            connected: 0,
            arrived: VecDeque::new(),
            listed: Vec::new(),
            spare: Vec::new(),
            broken: Vec::new(),
            unreachable: Vec::new(),
            unwritten: Vec::new(),
            unwritten_since: None,
            beat_ns,
            next_beat_ns: 0,
            next_warning_ns: 0,
            shared,
        })
    }

    fn row(&self, with: usize) -> &Row {
        self.shared.row(self.me, with)
    }

    /// Whether there is a connection.
    #[inline]
    pub(in super::super) fn is_connected(&self) -> bool {
        self.connected > 0
    }

    /// When the next heartbeat is due, by the process's clock; `None` if there is no connection.
    /// The thread asks the operating system before that turn in any case: this process may have
    /// been stopped for a while, which is not the peers' fault, and a peer with something to read
    /// is not silent.
    pub(in super::super) fn next_beat_ns(&self) -> Option<u64> {
        self.is_connected().then_some(self.next_beat_ns)
    }

    /// Takes note of a change of a connection.
    pub(in super::super) fn changed(&mut self, peer: usize, event: &Event) {
        if let Some(Some(link)) = self.links.get_mut(peer) {
            link.ending |= event.is_read_closed() || event.is_error();
            link.readable |= event.is_readable() || link.ending;
            link.writable |= event.is_writable();
            if !std::mem::replace(&mut link.listed, true) {
                self.listed.push(ShardId(peer as u16));
            }
        }
    }

    /// The work before a pass.
    #[inline]
    pub(in super::super) fn turn(&mut self, env: &ShardEnv<N>, now_ns: u64) {
        assert!(self.arrived.is_empty(), "a pass handles all that has arrived");
        let refused = self.shared.is_refused();
        if refused && self.connected > 0 {
            self.leave();
        }
        self.settle(env);
        while let Some(fresh) = self.shared.handoff(self.me).fresh.pop() {
            if !refused {
                self.connect(env, fresh);
            }
        }
        if self.connected == 0 {
            return;
        }
        let mut listed = std::mem::replace(&mut self.listed, std::mem::take(&mut self.spare));
        for peer in listed.drain(..) {
            self.serve(peer, now_ns);
        }
        self.spare = listed;
        if now_ns >= self.next_beat_ns {
            self.beat(now_ns);
        }
    }

    /// The next batch that a peer has sent, in order.
    #[inline]
    pub(in super::super) fn arrived(&mut self) -> Option<Batch<N>> {
        self.arrived.pop_front()
    }

    /// Appends a batch to its connection; the next [`Links::write`] writes it.
    pub(in super::super) fn send(&mut self, to: ShardId, batch: Batch<N>) {
        let codec = self.codec;
        let Some(link) = self.links[to.index()].as_mut().filter(|link| link.fault.is_none()) else {
            self.unreachable.push(to);
            return;
        };
        let sent = link.append(|number, out| (codec.encode)(&batch.messages, number, out));
        let with = link.with;
        self.row(with).messages_sent.add(batch.messages.len() as u64);
        match sent {
            Ok(()) => self.unwritten.push(to),
            Err(fault) => self.break_off(to, fault),
        }
    }

    /// The work after a pass: writes what was sent, as far as the operating system takes it.
    #[inline]
    pub(in super::super) fn write(&mut self, env: &ShardEnv<N>) {
        if self.unwritten.is_empty() {
            return;
        }
        if env.is_ready() {
            let now_ns = env.clock().0;
            if now_ns.saturating_sub(*self.unwritten_since.get_or_insert(now_ns)) < BUSY_NS {
                return;
            }
        }
        self.unwritten_since = None;
        let mut unwritten = std::mem::take(&mut self.unwritten);
        for peer in unwritten.drain(..) {
            self.flush(peer);
        }
        self.unwritten = unwritten;
    }

    /// Whether nothing is left to do until something changes.
    pub(in super::super) fn may_sleep(&self) -> bool {
        let busy = !self.listed.is_empty() || !self.broken.is_empty() || !self.unreachable.is_empty();
        let refused = self.connected > 0 && self.shared.is_refused();
        !busy && !refused && self.shared.handoff(self.me).fresh.is_empty()
    }

    /// Closes all connections. What was sent is written first, for [`FAREWELL_NS`] at most.
    pub(in super::super) fn close(mut self, poller: &mut Poller) {
        let until_ns = self.clock.now().0 + FAREWELL_NS;
        for number in 0..self.links.len() {
            if self.links[number].is_some() {
                self.list(ShardId(number as u16));
            }
        }
        loop {
            for peer in std::mem::take(&mut self.listed) {
                self.take_leave(peer);
            }
            let now_ns = self.clock.now().0;
            if self.connected == 0 || now_ns >= until_ns {
                return;
            }
            poller.ask(Some(Duration::from_nanos(until_ns - now_ns)));
            for (changed, event) in poller.changes() {
                if let Changed::Link(peer) = changed {
                    self.changed(peer, event);
                }
            }
        }
    }
}

impl<N: Participant> Links<N> {
    /// Closes broken connections, and fails calls to peers that are not connected.
    fn settle(&mut self, env: &ShardEnv<N>) {
        while let Some((peer, rule)) = env.offender() {
            self.break_off(peer, Fault::new(Closed::Rule, rule));
        }
        if let Some(suspect) = env.suspect() {
            self.warn(suspect);
        }
        for peer in std::mem::take(&mut self.unreachable) {
            env.reset(peer);
        }
        for peer in std::mem::take(&mut self.broken) {
            if self.disconnect(env, peer) {
                self.shared.lost(self.me, peer);
            }
        }
    }

    /// Says whose timestamp was refused: the first time, and then rarely. Status and metrics count
    /// all of them.
    #[cold]
    fn warn(&mut self, Suspect { from, ahead_ns }: Suspect) {
        let now_ns = self.clock.now().0;
        let Some(link) = self.links[from.index()].as_ref().filter(|_| now_ns >= self.next_warning_ns) else {
            return;
        };
        self.next_warning_ns = now_ns + WARN_NS;
        let with = self.shared.cluster.who(link.with);
        let (address, ahead) = (link.address, Duration::from_nanos(ahead_ns));
        tracing::warn!(
            shard = self.me.0, peer = from.0, %with, %address,
            "refused a timestamp that is {ahead:.1?} ahead of this process's clock, and will refuse others: compare the clocks by \
             `plimsoll status`, and set the machines' clocks by one source of time"
        );
    }

    /// Gives up all connections. A client that one node has refused must leave the others too,
    /// since the client that has its place may come to them next.
    fn leave(&mut self) {
        for number in 0..self.links.len() {
            self.break_off(ShardId(number as u16), Closed::Refused.into());
        }
    }

    /// Marks a connection as broken. It is not used any more, and the next turn closes it.
    fn break_off(&mut self, peer: ShardId, fault: Fault) {
        if let Some(link) = &mut self.links[peer.index()]
            && link.fault.is_none()
        {
            link.fault = Some(fault);
            self.broken.push(peer);
        }
    }

    /// Resets the channel to a peer. Returns whether there was a connection.
    fn disconnect(&mut self, env: &ShardEnv<N>, peer: ShardId) -> bool {
        let Some(mut link) = self.links[peer.index()].take() else { return false };
        let fault = link.fault.as_ref().expect("a connection is closed for a reason");
        let with = self.shared.cluster.who(link.with);
        let address = link.address;
        match (with, fault.closed) {
            (Who::Client(_), Closed::Ended) => {
                tracing::info!(shard = self.me.0, peer = peer.0, %with, %address, "connection closed: {fault}");
            }
            _ => {
                tracing::warn!(shard = self.me.0, peer = peer.0, %with, %address, "connection closed: {fault}")
            }
        }
        let row = self.row(link.with);
        row.reset(fault.closed);
        row.connected.sub(1);
        row.bytes_waiting.sub(link.tally().1 as u64);
        self.shared.cluster.set_live(self.me, peer, 0);
        self.connected -= 1;
        self.listed.retain(|&other| other != peer);
        env.reset(peer);
        env.connected(peer, None);
        // Frees the place of a client only now: the participant has to be told that it is gone
        // before the next client in that place is connected.
        drop(link);
        true
    }

    /// Takes a connection that has passed the handshake.
    fn connect(&mut self, env: &ShardEnv<N>, fresh: Accepted) {
        let Accepted { mut stream, address, peer, life, claim } = fresh;
        if let Some(link) = &mut self.links[peer.index()] {
            if link.life > life {
                // It passed the handshake just before the later life did. The other end will notice
                // that it is closed.
                return;
            }
            link.fault = Some(Closed::Replaced.into());
            self.disconnect(env, peer);
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.registry.register(&mut stream, Token(peer.index()), interest) {
            tracing::warn!(shard = self.me.0, peer = peer.0, "connection cannot be used: {error}");
            self.shared.lost(self.me, peer);
            return;
        }
        let with = self.shared.cluster.index_of(peer);
        let link = Link::new(stream, address, with, life, claim, self.clock.now().0);
        self.install(link, peer);
        env.connected(peer, Some(life));
    }

    fn install(&mut self, link: Link, peer: ShardId) {
        let with = self.shared.cluster.who(link.with);
        tracing::info!(shard = self.me.0, peer = peer.0, %with, address = %link.address, "connected");
        self.shared.cluster.set_live(self.me, peer, link.life);
        let mut addresses = self.shared.addresses.write().unwrap_or_else(PoisonError::into_inner);
        addresses.insert(link.with, link.address);
        drop(addresses);
        self.row(link.with).connected.add(1);
        self.connected += 1;
        let now_ns = link.heard_ns;
        self.links[peer.index()] = Some(Box::new(link));
        self.send_beat(peer, now_ns);
    }

    fn list(&mut self, peer: ShardId) {
        if let Some(link) = &mut self.links[peer.index()]
            && !std::mem::replace(&mut link.listed, true)
        {
            self.listed.push(peer);
        }
    }

    /// Reads from a peer and writes to it, as far as possible now.
    fn serve(&mut self, peer: ShardId, now_ns: u64) {
        let Some(mut link) = self.links[peer.index()].take() else { return };
        link.listed = false;
        let reads = link.fault.is_none() && !link.is_held_back();
        let read = if reads { self.read(&mut link, peer, now_ns) } else { Ok(()) };
        let unread = link.readable && reads;
        self.links[peer.index()] = Some(link);
        match read {
            Ok(()) if unread => self.list(peer),
            Ok(()) => {}
            Err(fault) => self.break_off(peer, fault),
        }
        self.flush(peer);
    }

    fn read(&mut self, link: &mut Link, peer: ShardId, now_ns: u64) -> Result<(), Fault> {
        let mut bytes = 0;
        while link.readable && bytes < TURN {
            let more = link.read()?;
            bytes += more;
            if more > 0 {
                link.heard_ns = now_ns;
                self.row(link.with).bytes_received.add(more as u64);
            }
            while let Some(frame) = link.next_frame()? {
                let content = (self.codec.decode)(frame)?;
                let row = self.row(link.with);
                row.frames_received.add(1);
                row.messages_received.add(content.messages.len() as u64);
                if let Some(sample) = content.beat.and_then(|beat| link.beats.arrived(beat, now_ns)) {
                    row.clock(sample);
                }
                if !content.messages.is_empty() {
                    self.arrived.push_back(Batch { from: peer, messages: content.messages });
                }
            }
        }
        Ok(())
    }

    /// Writes what the operating system takes.
    fn flush(&mut self, peer: ShardId) {
        let Some(link) = self.links[peer.index()].as_mut().filter(|link| link.fault.is_none()) else {
            return;
        };
        let held_back = link.is_held_back();
        let flushed = link.flush();
        if held_back && flushed.as_ref().is_ok_and(|&bytes| bytes > 0) {
            link.heard_ns = self.clock.now().0;
        }
        let goes_on = held_back && link.readable && !link.is_held_back();
        let (frames, waited) = link.tally();
        let row = self.shared.row(self.me, link.with);
        row.frames_sent.add(frames);
        row.bytes_waiting.add(link.waiting() as u64);
        row.bytes_waiting.sub(waited as u64);
        match flushed {
            Ok(bytes) => row.bytes_sent.add(bytes as u64),
            Err(fault) => self.break_off(peer, fault),
        }
        if goes_on {
            self.list(peer);
        }
    }

    /// Sends every peer a heartbeat, and gives up the peers that have been silent for too long.
    fn beat(&mut self, now_ns: u64) {
        self.next_beat_ns = now_ns + self.beat_ns;
        for number in 0..self.links.len() {
            let Some(link) = &mut self.links[number] else { continue };
            link.rest();
            let (peer, silent_ns) = (ShardId(number as u16), now_ns.saturating_sub(link.heard_ns));
            let unread = link.readable && !link.is_held_back();
            if silent_ns > self.shared.silence_ns && !unread {
                let detail = format!("for {} ms", silent_ns / 1_000_000);
                self.break_off(peer, Fault::new(Closed::Silent, detail));
            } else {
                self.send_beat(peer, now_ns);
            }
        }
    }

    fn send_beat(&mut self, peer: ShardId, now_ns: u64) {
        let Some(link) = self.links[peer.index()].as_mut().filter(|link| link.fault.is_none()) else {
            return;
        };
        let beat = Beats::beat(&link.beats, now_ns);
        link.append(|number, out| encode_beat(beat, number, out));
        self.flush(peer);
    }

    /// Writes what is left for a peer, shuts down this direction, and waits for the other side to
    /// do the same.
    fn take_leave(&mut self, peer: ShardId) {
        let Some(link) = &mut self.links[peer.index()] else { return };
        link.listed = false;
        let mut over = link.fault.is_some() || link.flush().is_err();
        if link.waiting() == 0 {
            over |= link.stream.shutdown(Shutdown::Write).is_err();
        }
        // Closing a socket with unread bytes would discard what was just sent.
        let mut unread = [0; 4096];
        while !over && link.readable {
            match link.stream.read(&mut unread) {
                Ok(0) => over = true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => link.readable = false,
                Err(_) => over = true,
            }
        }
        if over {
            self.links[peer.index()] = None;
            self.connected -= 1;
        }
    }
}
