//! Shards of several processes: a node of a cluster, over TCP.
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
//! A connection is a channel between two lives of shards: in order, exactly once, as long as it lives. When it breaks,
//! the channel is reset; when the peer comes back, that is a new one. A connection is broken if either side closes it,
//! if something comes that cannot be (and whoever is at fault, no other connection suffers), if nothing has come for
//! [`Network::silence`], though every end gives a sign of life every 250 ms (`beat`), and if a newer connection to the
//! same peer takes its place: a peer that was started again may be back before its death was noticed. If two processes
//! claim to be one node, the one that was started later is believed, and the other is refused.
//!
//! Example. Node 1 crashes while shard 0 of node 0 waits for an answer of its shard 2. The kernel closes the socket;
//! shard 0 sees the end of the stream, resets the channel, and the call fails with [`crate::Unknown`]: the request may
//! have been executed or not. Calls made from now on fail in the next pass. The thread dials; nobody listens. Node 1
//! starts again, the thread gets through, shard 0 tells its node that shard 2 is connected, and calls work again.
//!
//! A cluster may have a secret. It keeps strangers out; it does not hide what is said, nor keep somebody who can
//! change packets on their way from changing them. Without a secret a node listens on loopback addresses only.
//!
//! Left out: encryption; a bound on what waits for a peer that does not keep up ([`Traffic::bytes_waiting`] tells how
//! much that is: work is bounded where it is admitted); a message longer than [`FRAME_MAX`], which closes the
//! connection.

mod beat;
mod cluster;
mod counters;
mod frame;
mod handshake;
mod hello;
mod link;
mod links;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use crossbeam_queue::SegQueue;
use mio::net::TcpStream;
use mio::{Poll, Waker};
use plimsoll_types::ShardId;
use plimsoll_types::wire::Wire;

use super::{Clock, EndProcessOnPanic};
use crate::Node;
use cluster::Cluster;
pub use cluster::{Address, Network, SILENCE};
pub use counters::Traffic;
use counters::{Row, sum};
use frame::Codec;
pub use frame::{Closed, FRAME_MAX};
use handshake::Handshakes;
pub use hello::Refusal;
pub(super) use links::Links;

/// A connection that has passed the handshake, for the shard.
struct Fresh {
    stream: TcpStream,
    peer: ShardId,
    /// The life of the peer's node.
    incarnation: u64,
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
    /// By shard of this node and node.
    rows: Vec<Row>,
    /// Pairs of a shard here and a shard of a node that this one dials, whose connection was closed.
    lost: SegQueue<(ShardId, ShardId)>,
    stop: AtomicBool,
    /// Wakes the thread of handshakes.
    waker: Waker,
}

impl Shared {
    fn place(&self, shard: ShardId) -> usize {
        shard.index() - self.cluster.me().shards.start
    }

    fn door(&self, shard: ShardId) -> &Door {
        &self.doors[self.place(shard)]
    }

    fn row(&self, shard: ShardId, node: usize) -> &Row {
        &self.rows[self.place(shard) * self.cluster.nodes.len() + node]
    }

    /// A connection is no more; if it is for this node to dial, it does so.
    fn lost(&self, shard: ShardId, peer: ShardId) {
        if self.cluster.place_of(peer) > self.cluster.here {
            self.lost.push((shard, peer));
            wake(&self.waker);
        }
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
            rows: (0..shards * cluster.nodes.len()).map(|_| Row::default()).collect(),
            lost: SegQueue::new(),
            stop: AtomicBool::new(false),
            waker: Handshakes::waker(&poll)?,
            cluster,
        });
        let links = polls.into_iter().zip(shared.cluster.me().shards.clone()).map(|(poll, shard)| {
            Links::new(ShardId(shard as u16), shared.clone(), Codec::new(), clock, poll)
        });
        let links = links.collect::<io::Result<_>>()?;
        let handshakes = Handshakes::new(shared.clone(), network.listener, clock, poll)?;
        Ok(Prepared { shared, links, handshakes })
    }
}

impl<N: Node> Prepared<N> {
    /// How many shards all nodes have.
    pub(super) fn total(&self) -> usize {
        self.shared.cluster.shards()
    }

    /// The first shard of this node.
    pub(super) fn first(&self) -> usize {
        self.shared.cluster.me().shards.start
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
    /// The traffic with each other node.
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        let shared = &*self.shared;
        let own = shared.doors.len();
        let nodes = shared.cluster.nodes.iter().enumerate();
        nodes
            .filter(|&(place, _)| place != shared.cluster.here)
            .map(|(place, node)| {
                let rows = shared.rows.iter().skip(place).step_by(shared.cluster.nodes.len());
                sum(node.id, own * node.shards.len(), rows)
            })
            .collect()
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
