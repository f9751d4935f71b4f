//! Shards of several processes: a node of a cluster or its visitor, over TCP.
//!
//! Every pair of shards of two nodes has a connection of its own (`links`, `link`), used by the threads of these shards
//! and by no other: what a shard sends in a pass is written when the pass ends, and what has arrived is read before the
//! next one begins. So a call costs two system calls and no switch of threads at either end as long as both are awake.
//! What travels are frames (`frame`).
//!
//! Connections are made by a thread that does nothing else (`handshake`). The node whose number is lower dials, for
//! ever, with pauses of 50 ms to 1 s. Both sides make sure that they mean each other (`hello`, `cluster`), then the
//! socket is handed to the shard.
//!
//! A *visitor* is a process that belongs to the cluster for a while and has no address: a client that coordinates its
//! transactions itself. It has one shard, numbered after those of the nodes, by the place that it takes. It dials all
//! nodes and is dialed by nobody; visitors cannot call each other. Otherwise its shard is like any other: it calls, it is
//! called, [`Node::connected`] tells when it comes and goes. Nodes are configured, so a node tries until it gets through;
//! a visitor chooses its place itself, and when a node refuses it, most of all because another visitor has that place
//! (`places`), it closes all its connections and says why ([`super::Runtime::refused`]).
//!
//! A connection is a channel between two lives of shards: in order, exactly once, as long as it lives. When it breaks,
//! the channel is reset; when the peer comes back, that is a new one. A connection is broken if either side closes it,
//! if something comes that cannot be (and whoever is at fault, no other connection suffers), if nothing has come for
//! [`Network::silence`], though every end gives a sign of life every 250 ms (`beat`), and if a newer connection to the
//! same peer takes its place: a peer may be back before the end of its connection was noticed.
//!
//! Two processes may claim to be one node. If a node that ends loses what it held ([`Network::volatile`]), the one that was met
//! first is believed: the other does not have its data. It is refused, and told that the first is connected and where
//! ([`Refusal::Running`]), or if the first is gone, that the data is ([`Refusal::Forgotten`]). So that one hears it whom nobody
//! dials, a node that has met nobody for a while asks those with lower numbers, which it does not dial otherwise. If a node keeps what it held,
//! the one that was started later is believed, since it was started in place of the other. Of two visitors in one place, the
//! one that was there first is.
//!
//! Example. Node 1 crashes while shard 0 of node 0 waits for an answer of its shard 2. The kernel closes the socket;
//! shard 0 sees the end of the stream, resets the channel, and the call fails with [`crate::Unknown`]: the request may
//! have been executed or not. Calls made from now on fail in the next pass. The thread dials; nobody listens. Node 1
//! starts again, the thread gets through, shard 0 tells its node that shard 2 is connected, and calls work again.
//!
//! Example of a visit. Nodes 0 and 1 have two shards each, and there are 100 places. A client draws place 7 and starts as
//! [`Role::Visitor`] in it: its shard has number 4 + 7 = 11, and it dials shards 0 to 3. Node 1 knows another visitor in
//! place 7; the client's connections to node 0 are closed as well, and it is told [`Refusal::PlaceTaken`]. It drops the
//! runtime, draws place 52, starts again, and waits until [`Traffic`] says that all its pairs are connected. When it
//! ends, the nodes see the end of its connections, or hear nothing for too long; their shards are told that shard 56 is
//! gone, and place 52 is free.
//!
//! A place that nobody has costs every shard, of nodes and visitors, 32 bytes, and its process 16 more. An end of a
//! connection at rest takes 17 to 33 KiB, most of it buffers (`link`), besides what the operating system needs for a
//! socket.
//!
//! A cluster may have a secret. It keeps strangers out; it does not hide what is said, nor keep somebody who can
//! change packets on their way from changing them. Without a secret a node listens on loopback addresses only, and
//! nodes and visitors dial no others.
//!
//! No further requests are read of a visitor for whom 16 MiB wait. Left out: encryption; a bound on what waits for a node
//! that does not keep up: a send never blocks. Whoever admits work in a visitor looks at how much that is
//! ([`super::Runtime::bytes_waiting`]), and nodes only send each other what comes of visitors' work. A message longer than
//! [`FRAME_MAX`] closes the connection.

mod beat;
mod cluster;
mod counters;
mod frame;
mod handshake;
mod hello;
mod link;
mod links;
mod places;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use crossbeam_queue::SegQueue;
use mio::net::TcpStream;
use mio::{Poll, Waker};
use plimsoll_types::ShardId;
use plimsoll_types::wire::Wire;

use super::{Clock, EndProcessOnPanic};
use crate::Node;
use cluster::Cluster;
pub use cluster::{Address, Network, ORACLE, Role, SILENCE, Who};
pub use counters::Traffic;
use counters::{Row, sum};
use frame::Codec;
pub use frame::{Closed, FRAME_MAX};
use handshake::Handshakes;
pub use hello::Refusal;
pub(super) use links::Links;
use places::Claim;

/// A connection that has passed the handshake, for the shard.
struct Fresh {
    stream: TcpStream,
    /// Where the other end is.
    address: SocketAddr,
    peer: ShardId,
    /// The life of the peer's node.
    incarnation: u64,
    /// To the peer's place, if it is a visitor.
    claim: Option<Claim>,
}

/// Where the thread of handshakes leaves connections for a shard.
struct Door {
    fresh: SegQueue<Fresh>,
    waker: Arc<Waker>,
}

/// What the shards of a node and its thread of handshakes share.
struct Shared {
    cluster: Arc<Cluster>,
    silence_ns: u64,
    /// By shard of this node.
    doors: Vec<Door>,
    /// By shard of this node, and node; then one for all visitors.
    rows: Vec<Row>,
    /// Pairs of a shard here and a shard of a node that this one dials, whose connection was closed.
    lost: SegQueue<(ShardId, ShardId)>,
    /// Why a node has refused this visitor, if one has.
    refused: OnceLock<Refusal>,
    stop: AtomicBool,
    /// Wakes the thread of handshakes.
    waker: Waker,
}

impl Shared {
    /// Which of the shards of this node it is.
    fn own(&self, shard: ShardId) -> usize {
        shard.index() - self.cluster.own().start
    }

    fn door(&self, shard: ShardId) -> &Door {
        &self.doors[self.own(shard)]
    }

    /// What a shard counts for whoever has this index.
    fn row(&self, shard: ShardId, index: usize) -> &Row {
        let nodes = self.cluster.nodes.len();
        &self.rows[self.own(shard) * (nodes + 1) + index.min(nodes)]
    }

    /// A connection is no more; if it is for this node to dial, it does so.
    fn lost(&self, shard: ShardId, peer: ShardId) {
        if self.cluster.dials(self.cluster.here, self.cluster.index_of(peer)) {
            self.lost.push((shard, peer));
            wake(&self.waker);
        }
    }

    /// A node has refused this visitor: its shards close their connections.
    fn refuse(&self, refusal: Refusal) {
        self.refused.get_or_init(|| refusal);
        for door in &self.doors {
            wake(&door.waker);
        }
    }

    fn is_refused(&self) -> bool {
        self.refused.get().is_some()
    }
}

fn wake(waker: &Waker) {
    waker.wake().expect("an eventfd can be written");
}

/// A node of a cluster that is about to start.
pub(super) struct Prepared<N: Node> {
    shared: Arc<Shared>,
    links: Vec<Links<N>>,
    handshakes: Handshakes,
}

impl<N: Node> Prepared<N>
where
    N::Request: Wire,
    N::Reply: Wire,
{
    /// Checks the configuration, and makes what the shards need.
    pub(super) fn new(network: Network, shards: usize, clock: Clock) -> io::Result<Prepared<N>> {
        let cluster = Arc::new(Cluster::new(&network, shards)?);
        let polls = (0..shards).map(|_| Poll::new()).collect::<io::Result<Vec<Poll>>>()?;
        let door = |poll| Ok(Door { fresh: SegQueue::new(), waker: Arc::new(Links::<N>::waker(poll)?) });
        let poll = Poll::new()?;
        let shared = Arc::new(Shared {
            silence_ns: u64::try_from(network.silence.as_nanos()).unwrap_or(u64::MAX),
            doors: polls.iter().map(door).collect::<io::Result<_>>()?,
            rows: (0..shards * (cluster.nodes.len() + 1)).map(|_| Row::default()).collect(),
            lost: SegQueue::new(),
            refused: OnceLock::new(),
            stop: AtomicBool::new(false),
            waker: Handshakes::waker(&poll)?,
            cluster,
        });
        let links = polls.into_iter().zip(shared.cluster.own()).map(|(poll, shard)| {
            Links::new(ShardId(shard as u16), shared.clone(), Codec::new(), clock, poll)
        });
        let links = links.collect::<io::Result<_>>()?;
        let listener = match network.role {
            Role::Member { listener, .. } => Some(listener),
            Role::Visitor { .. } => None,
        };
        let handshakes = Handshakes::new(shared.clone(), listener, clock, poll)?;
        Ok(Prepared { shared, links, handshakes })
    }
}

impl<N: Node> Prepared<N> {
    /// How many shards all nodes and visitors have.
    pub(super) fn total(&self) -> usize {
        self.shared.cluster.shards()
    }

    /// The first shard of this node.
    pub(super) fn first(&self) -> usize {
        self.shared.cluster.own().start
    }

    /// What wakes each shard.
    pub(super) fn wakers(&self) -> Vec<Arc<Waker>> {
        self.shared.doors.iter().map(|door| door.waker.clone()).collect()
    }

    /// Starts making connections; they wait for the shards.
    pub(super) fn start(self) -> io::Result<(Connections, Vec<Links<N>>)> {
        let handshakes = self.handshakes;
        let thread = thread::Builder::new().name("handshakes".to_owned()).spawn(move || {
            let _end_process = EndProcessOnPanic("the thread of handshakes".to_owned());
            handshakes.run();
        })?;
        Ok((Connections { shared: self.shared, thread: Some(thread) }, self.links))
    }
}

/// The thread that makes connections, for as long as this exists.
pub(super) struct Connections {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Connections {
    /// The traffic with each other node, and with visitors.
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        let (cluster, own) = (&self.shared.cluster, self.shared.doors.len());
        let rows = |index| self.shared.rows.iter().skip(index).step_by(cluster.nodes.len() + 1);
        let others = cluster.nodes.iter().enumerate().filter(|&(index, _)| index != cluster.here);
        let mut traffic: Vec<Traffic> =
            others.map(|(index, node)| sum(Some(node.id), own * node.shards.len(), rows(index))).collect();
        if cluster.visitors() > 0 && !cluster.is_visitor() {
            traffic.push(sum(None, own * cluster.visitors(), rows(cluster.nodes.len())));
        }
        traffic
    }

    /// The clocks of the nodes, once all have said hello to this visitor.
    pub(super) fn heard_clocks(&self) -> Vec<i64> {
        self.shared.cluster.heard_clocks().unwrap_or_default()
    }

    /// How many bytes the operating system has not taken, for whomever.
    pub(super) fn bytes_waiting(&self) -> u64 {
        self.shared.rows.iter().map(|row| row.bytes_waiting.get()).sum()
    }

    /// By node: the life that was met first, 0 if none was.
    pub(super) fn met(&self) -> Vec<u64> {
        self.shared.cluster.met()
    }

    /// Why a node has refused this visitor, if one has.
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
