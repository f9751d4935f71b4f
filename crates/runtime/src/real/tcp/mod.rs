//! Shards of several processes: a node of a cluster, or a client of it, over TCP.
//!
//! Every pair of shards of two nodes has a connection of its own (`links`, `link`). Only the
//! threads of these two shards use it: a shard reads what has arrived before a pass, and writes
//! what the pass sends when it ends. So a call costs two system calls, and no switch of threads at
//! either end while both shards are awake. What travels are frames (`frame`).
//!
//! A separate thread makes the connections (`handshake`), to addresses or to names (`names`). Of
//! two nodes the one with the lower number dials, again and again, with pauses of 50 ms to 1 s.
//! Both sides check that the other is the peer they expect (`hello`, `cluster`); then the thread
//! hands the socket to the shard.
//!
//! A *client* ([`Role::Client`]) is a process that joins the cluster for a while to coordinate its
//! own transactions. It has no address, and one shard, which is numbered after the shards of the
//! nodes by the *place* that the client takes. It dials all nodes, no process dials it, and clients
//! cannot call each other. Otherwise its shard is like any other: it calls, it is called, and
//! [`Participant::connected`] tells the others when it comes and goes. A node is configured, so it
//! dials until it gets through. A client chooses its place itself; if a node refuses it, usually
//! because another client has that place (`places`), it closes all its connections and reports the
//! reason ([`super::Runtime::refused`]).
//!
//! A connection is a channel between two lives of shards. While it lives, messages arrive in order
//! and exactly once. When it breaks, the channel is reset; a peer that comes back gets a new
//! channel. A connection breaks if
//! * either side closes it,
//! * invalid data arrives (this closes no other connection, whichever side is at fault),
//! * nothing has arrived for [`Network::silence`], although every end sends a heartbeat every 250
//!   ms (`beat`),
//! * a newer connection to the same peer replaces it: a peer may be back before this side has
//!   noticed the end of the old connection.
//!
//! Two processes may claim to be the same node. If they remember different things
//! ([`Network::memory`]), as they do if a node that ends loses its data, the process that was met
//! first is believed, because the other does not have that data. The other is refused: it is told
//! that the first is connected and where ([`Refusal::Running`]) or, if the first is gone, that the
//! data is gone with it ([`Refusal::Forgotten`]). Normally only the lower-numbered node dials. A node that has heard
//! from no peer for 3 s dials the lower-numbered ones as well, so that a duplicate of a running
//! node learns why it is ignored. If a node keeps its data, the process that was started later is
//! believed, because it was started to replace the other. Of two clients in one place the first is
//! believed.
//!
//! Example. Node 1 crashes while shard 0 of node 0 waits for an answer from shard 2 of node 1. The
//! kernel closes the socket. Shard 0 sees the end of the stream and resets the channel, and the
//! call fails with [`crate::Unknown`]: the request may have been executed or not. Later calls fail
//! in the next pass. The thread dials and finds no listener. Node 1 starts again, the thread gets
//! through, shard 0 tells its participant that shard 2 is connected, and calls work again.
//!
//! Example of a client. Nodes 0 and 1 have two shards each, and there are 100 places. A client
//! draws place 7 and starts as [`Role::Client`] there: its shard has the number 4 + 7 = 11, and it
//! dials shards 0 to 3. Node 1 already has another client in place 7, so the client is told
//! [`Refusal::PlaceTaken`] and closes its connections to node 0 as well. It drops the runtime,
//! draws place 52, starts again, and waits until [`Traffic`] says that all its pairs are connected.
//! When it ends, the nodes see the end of its connections, or hear nothing for too long. Their
//! shards are told that shard 56 is gone, and place 52 is free.
//!
//! A free place costs every shard, of nodes and clients, 32 bytes, and its process 16 more. One end
//! of an idle connection takes 17 to 33 KiB, most of it buffers (`link`), besides what the
//! operating system needs for a socket.
//!
//! A cluster may have a secret. It keeps strangers out. It does not hide what is said, and it does
//! not stop an attacker that can change packets on their way. Without a secret a node listens on
//! loopback addresses only, and nodes and clients dial no others.
//!
//! While more than 16 MiB are queued for a client, a node stops reading its requests. A message
//! longer than [`FRAME_MAX`] closes the connection.
//!
//! Left out: encryption; a bound on what is queued for a node that does not keep up, since a send
//! never blocks. The code that admits work in a client checks how much is queued
//! ([`super::Runtime::bytes_waiting`]), and nodes send each other only what results from the work
//! of clients.

mod admission;
mod beat;
mod cluster;
mod counters;
mod endpoint;
mod frame;
mod handshake;
mod hello;
mod link;
mod links;
mod log;
mod names;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use crossbeam_queue::SegQueue;
use mio::net::TcpStream;
use mio::{Poll, Waker};
use plimsoll_types::ShardId;
use plimsoll_types::wire::Wire;

use super::poller::Poller;
use super::{Clock, EndProcessOnPanic};
use crate::Participant;
pub use admission::Room;
use cluster::Cluster;
pub use cluster::{Address, Network, ORACLE, Role, SILENCE, Who};
pub use counters::{PeerRefusal, Traffic};
use counters::{Row, sum};
pub use endpoint::{BadEndpoint, Endpoint};
use frame::Codec;
pub use frame::{Closed, FRAME_MAX};
use handshake::Handshakes;
pub use hello::Refusal;
pub(super) use links::Links;
pub use names::resolve;
use places::PlaceLease;

/// A connection that has passed the handshake, on its way to its shard.
struct Accepted {
    stream: TcpStream,
    /// The address of the other end.
    address: SocketAddr,
    peer: ShardId,
    /// The life of the peer's node.
    life: u64,
    /// A client's hold on its place; `None` for a node.
    claim: Option<PlaceLease>,
}

/// Where the handshake thread leaves new connections for a shard.
struct Handoff {
    fresh: SegQueue<Accepted>,
    waker: Arc<Waker>,
}

/// What the shards of a node share with its handshake thread.
struct Shared {
    cluster: Arc<Cluster>,
    silence_ns: u64,
    /// By shard of this node.
    handoffs: Vec<Handoff>,
    /// One row per node and one for all clients, by shard of this node.
    rows: Vec<Row>,
    /// By node: whether a dial to it has failed and not succeeded since. False of a node that dials
    /// this one.
    failing: Vec<AtomicBool>,
    /// Closed connections that this node has to dial again: a shard here and a shard of another
    /// node.
    lost: SegQueue<(ShardId, ShardId)>,
    /// By node: what its name was found to stand for, for the handshake thread.
    resolved: SegQueue<(usize, io::Result<Vec<SocketAddr>>)>,
    /// By index of the process: the other end of the last connection.
    addresses: RwLock<BTreeMap<usize, SocketAddr>>,
    /// Why a node has refused this client, if one has.
    refused: OnceLock<Refusal>,
    /// By node: why this one and it do not come together. Never locked for long.
    refusals: Vec<RwLock<Option<PeerRefusal>>>,
    stop: AtomicBool,
    /// Wakes the handshake thread.
    waker: Waker,
}

impl Shared {
    /// The position of a shard among those of this node.
    fn own(&self, shard: ShardId) -> usize {
        shard.index() - self.cluster.own().start
    }

    fn handoff(&self, shard: ShardId) -> &Handoff {
        &self.handoffs[self.own(shard)]
    }

    /// The counters of a shard for the process with this index.
    fn row(&self, shard: ShardId, index: usize) -> &Row {
        let nodes = self.cluster.nodes.len();
        &self.rows[self.own(shard) * (nodes + 1) + index.min(nodes)]
    }

    /// Whether a node is gone: no shard here is connected to it, and this process has dialed it in
    /// vain since. After a reset a node is not gone until a dial has failed. An oracle is never
    /// gone: a transaction that waits for it has locked nothing that others need for long, and goes
    /// on when the oracle is back.
    fn is_gone(&self, node: usize) -> bool {
        let rows = || self.rows.iter().skip(node).step_by(self.cluster.nodes.len() + 1);
        let data = self.cluster.nodes.get(node).is_some_and(|node| node.id != ORACLE);
        data && self.failing[node].load(SeqCst) && rows().all(|row| row.connected.get() == 0)
    }

    /// Whether any shard here is connected to a node, or the node is this one.
    fn is_connected(&self, node: usize) -> bool {
        let mut rows = self.rows.iter().skip(node).step_by(self.cluster.nodes.len() + 1);
        node == self.cluster.here || rows.any(|row| row.connected.get() > 0)
    }

    /// A connection was closed: has it dialed again, if this node is the side that dials.
    fn lost(&self, shard: ShardId, peer: ShardId) {
        if self.cluster.dials(self.cluster.here, self.cluster.index_of(peer)) {
            self.lost.push((shard, peer));
            wake(&self.waker);
        }
    }

    /// Notes why this node and another do not come together, or that they do.
    fn set_refusal(&self, node: usize, refusal: Option<PeerRefusal>) {
        if let Some(known) = self.refusals.get(node) {
            *known.write().unwrap_or_else(PoisonError::into_inner) = refusal;
        }
    }

    fn refusal(&self, node: usize) -> Option<PeerRefusal> {
        *self.refusals[node].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node has refused this client: has all shards close their connections.
    fn refuse(&self, refusal: Refusal) {
        self.refused.get_or_init(|| refusal);
        for handoff in &self.handoffs {
            wake(&handoff.waker);
        }
    }

    fn is_refused(&self) -> bool {
        self.refused.get().is_some()
    }
}

fn wake(waker: &Waker) {
    waker.wake().expect("an eventfd can be written");
}

/// A node or client that is about to start.
pub(super) struct Prepared<N: Participant> {
    shared: Arc<Shared>,
    links: Vec<Links<N>>,
    handshakes: Handshakes,
}

impl<N: Participant> Prepared<N>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    /// Checks the configuration and makes what the shards need, each with a poller of its own.
    pub(super) fn new(network: Network, pollers: &[Poller], clock: Clock) -> io::Result<Prepared<N>> {
        let shards = pollers.len();
        let cluster = Arc::new(Cluster::new(&network, shards)?);
        let handoff = |poller: &Poller| Handoff { fresh: SegQueue::new(), waker: poller.waker() };
        let poll = Poll::new()?;
        let shared = Arc::new(Shared {
            silence_ns: u64::try_from(network.silence.as_nanos()).unwrap_or(u64::MAX),
            handoffs: pollers.iter().map(handoff).collect(),
            rows: (0..shards * (cluster.nodes.len() + 1)).map(|_| Row::default()).collect(),
            failing: cluster.nodes.iter().map(|_| AtomicBool::new(false)).collect(),
            lost: SegQueue::new(),
            resolved: SegQueue::new(),
            addresses: RwLock::default(),
            refused: OnceLock::new(),
            refusals: cluster.nodes.iter().map(|_| RwLock::default()).collect(),
            stop: AtomicBool::new(false),
            waker: Handshakes::waker(&poll)?,
            cluster,
        });
        let links = pollers.iter().zip(shared.cluster.own()).map(|(poller, shard)| {
            Links::new(ShardId(shard as u16), shared.clone(), Codec::new(), clock, poller)
        });
        let links = links.collect::<io::Result<_>>()?;
        let listener = match network.role {
            Role::Member { listener, .. } => Some(listener),
            Role::Client { .. } => None,
        };
        let handshakes = Handshakes::new(shared.clone(), listener, clock, poll)?;
        Ok(Prepared { shared, links, handshakes })
    }
}

impl<N: Participant> Prepared<N> {
    /// How many shards all nodes and clients have.
    pub(super) fn total(&self) -> usize {
        self.shared.cluster.shards()
    }

    /// The first shard of this node.
    pub(super) fn first(&self) -> usize {
        self.shared.cluster.own().start
    }

    /// Starts the handshake thread. New connections wait until the shards take them.
    pub(super) fn start(self) -> io::Result<(Connections, Vec<Links<N>>)> {
        let handshakes = self.handshakes;
        let thread = thread::Builder::new().name("handshakes".to_owned()).spawn(move || {
            let _end_process = EndProcessOnPanic("the thread of handshakes".to_owned());
            handshakes.run();
        })?;
        Ok((Connections { shared: self.shared, thread: Some(thread) }, self.links))
    }
}

/// Which nodes can be reached, for code on any thread.
#[derive(Clone)]
pub struct Reach(Option<Arc<Shared>>);

impl Reach {
    /// For a process without others.
    pub fn alone() -> Reach {
        Reach(None)
    }

    /// Whether the node of a shard is gone: this process is not connected to it, and has dialed it
    /// in vain since. False for a node that dials this one.
    pub fn is_gone(&self, shard: ShardId) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.is_gone(shared.cluster.index_of(shard)))
    }

    /// Whether this process is the node of a shard, or is connected to it.
    pub fn is_connected(&self, shard: ShardId) -> bool {
        self.0.as_ref().is_none_or(|shared| shared.is_connected(shared.cluster.index_of(shard)))
    }

    /// Whether any node is gone.
    pub fn any_is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| (0..shared.failing.len()).any(|node| shared.is_gone(node)))
    }
}

/// Keeps the handshake thread running; dropping it stops the thread.
pub(super) struct Connections {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Connections {
    /// The traffic with each other node, and with all clients.
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        let (cluster, own) = (&self.shared.cluster, self.shared.handoffs.len());
        let rows = |index| self.shared.rows.iter().skip(index).step_by(cluster.nodes.len() + 1);
        let others = cluster.nodes.iter().enumerate().filter(|&(index, _)| index != cluster.here);
        let of = |(index, node): (usize, &cluster::Member)| Traffic {
            refusal: self.shared.refusal(index),
            ..sum(Some(node.id), own * node.shards.len(), rows(index))
        };
        let mut traffic: Vec<Traffic> = others.map(of).collect();
        if cluster.clients() > 0 && !cluster.is_client() {
            traffic.push(sum(None, own * cluster.clients(), rows(cluster.nodes.len())));
        }
        traffic
    }

    /// The process of a shard, as it is called, with its address.
    pub(super) fn called(&self, shard: ShardId) -> String {
        let index = self.shared.cluster.index_of(shard);
        let who = self.shared.cluster.who(index);
        match self.shared.addresses.read().unwrap_or_else(PoisonError::into_inner).get(&index) {
            Some(address) => format!("{who} at {address}"),
            None => who.to_string(),
        }
    }

    /// Strangers that this node has room for, at each of its ports.
    pub(super) fn room(&self) -> usize {
        self.shared.cluster.room
    }

    /// By node: how far its clock is ahead of this client's; empty until all nodes have said hello.
    pub(super) fn heard_clocks(&self) -> Vec<i64> {
        self.shared.cluster.heard_clocks().unwrap_or_default()
    }

    /// Bytes for all peers that the operating system has not taken yet.
    pub(super) fn bytes_waiting(&self) -> u64 {
        self.shared.rows.iter().map(|row| row.bytes_waiting.get()).sum()
    }

    pub(super) fn reach(&self) -> Reach {
        Reach(Some(self.shared.clone()))
    }

    /// By node: the first life that was met; 0 if none.
    pub(super) fn met(&self) -> Vec<u64> {
        self.shared.cluster.met()
    }

    /// Why a node has refused this client, if one has.
    pub(super) fn refused(&self) -> Option<Refusal> {
        self.shared.refused.get().copied()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        wake(&self.shared.waker);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
