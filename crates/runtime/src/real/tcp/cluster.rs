//! Who belongs to a cluster, and which shards are whose.
//!
//! Shards are numbered over all nodes in the order of the nodes' numbers: with nodes 1 and 4 of two shards each, node 1
//! has shards 0 and 1, node 4 has 2 and 3. All nodes have to agree on that, so they compare a checksum of it when they
//! meet. Addresses may differ from where they are seen and are not compared.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_types::ShardId;

use crate::real::Clock;

/// After how long without a sign of life a node takes another for dead, unless it is told otherwise.
pub const SILENCE: Duration = Duration::from_secs(2);

/// One node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Its number; whose is lower dials.
    pub id: u16,
    /// Where it can be reached.
    pub address: SocketAddr,
    /// How many shards it has.
    pub shards: usize,
}

/// A runtime's place in a cluster.
pub struct Network {
    /// Tells clusters apart: nodes of another are refused.
    pub cluster: u64,
    /// Which of the nodes this one is.
    pub node: u16,
    /// All nodes, this one included.
    pub nodes: Vec<Address>,
    /// Tells the lives of this node apart: larger than any that it ever had. A clock will do.
    pub life: u64,
    /// Where the nodes with lower numbers can reach this one.
    pub listener: TcpListener,
    /// What only nodes of the cluster know. It proves who they are; it encrypts nothing, and whoever can change packets
    /// on their way can still do so. Without one, nodes are reachable by programs of the same machine only.
    pub secret: Option<Vec<u8>>,
    /// After how long without a sign of life a node is taken for dead; the same on all nodes. See [`SILENCE`].
    pub silence: Duration,
    /// The clock of this node.
    pub clock: Clock,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Network { cluster, node, nodes, .. } = self;
        write!(f, "node {node} of cluster {cluster:016x}, {nodes:?}")
    }
}

/// A node, and where its shards are among all.
pub(super) struct Member {
    pub(super) id: u16,
    pub(super) address: SocketAddr,
    pub(super) shards: Range<usize>,
}

/// What the nodes of a cluster agree on, as one of them sees it.
pub(super) struct Cluster {
    pub(super) id: u64,
    /// By number.
    pub(super) nodes: Vec<Member>,
    /// The place of this node among them.
    pub(super) here: usize,
    pub(super) secret: Vec<u8>,
    /// Tells lives of this node apart: the later, the higher.
    pub(super) incarnation: u64,
    /// The incarnation to which each pair of a shard of this node and any other is connected; 0 if to none.
    live: Vec<AtomicU64>,
}

impl Cluster {
    /// Checks what somebody has written into a configuration.
    pub(super) fn new(network: &Network, shards: usize) -> io::Result<Cluster> {
        let mut listed: Vec<&Address> = network.nodes.iter().collect();
        listed.sort_by_key(|node| node.id);
        if let Some(twice) = listed.windows(2).find(|two| two[0].id == two[1].id) {
            return Err(invalid(format!("node {} is listed twice", twice[0].id)));
        }
        let Some(here) = listed.iter().position(|node| node.id == network.node) else {
            return Err(invalid(format!("node {} is not among the nodes of its cluster", network.node)));
        };
        if listed[here].shards != shards {
            let said = listed[here].shards;
            return Err(invalid(format!(
                "node {} is listed with {said} shards and has {shards}",
                network.node
            )));
        }
        if network.silence < Duration::from_millis(100) {
            return Err(invalid("a node cannot be taken for dead after less than 100 ms of silence"));
        }
        match &network.secret {
            Some(secret) if secret.is_empty() => return Err(invalid("the secret of the cluster is empty")),
            Some(_) => {}
            None => only_loopback(network, &listed)?,
        }
        let mut nodes: Vec<Member> = Vec::new();
        let mut total: usize = 0;
        for &&Address { id, address, shards } in &listed {
            if shards == 0 {
                return Err(invalid(format!("node {id} has no shards")));
            }
            nodes.push(Member { id, address, shards: total..total.saturating_add(shards) });
            total = total.saturating_add(shards);
        }
        if total > usize::from(u16::MAX) {
            return Err(invalid(format!("a cluster has at most {} shards, not {total}", u16::MAX)));
        }
        Ok(Cluster {
            id: network.cluster,
            nodes,
            here,
            secret: network.secret.clone().unwrap_or_default(),
            incarnation: network.life,
            live: (0..shards * total).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// This node.
    pub(super) fn me(&self) -> &Member {
        &self.nodes[self.here]
    }

    /// How many shards all nodes have.
    pub(super) fn shards(&self) -> usize {
        self.nodes.last().map_or(0, |last| last.shards.end)
    }

    /// The place of a node among all.
    pub(super) fn place(&self, id: u16) -> Option<usize> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok()
    }

    /// The place of a shard's node among all.
    pub(super) fn place_of(&self, shard: ShardId) -> usize {
        self.nodes.partition_point(|node| node.shards.end <= shard.index())
    }

    /// Tells configurations apart.
    pub(super) fn topology(&self) -> u32 {
        self.nodes.iter().fold(0, |sum, node| {
            let sum = crc32c::crc32c_append(sum, &node.id.to_le_bytes());
            crc32c::crc32c_append(sum, &(node.shards.len() as u64).to_le_bytes())
        })
    }

    fn live(&self, shard: ShardId, peer: ShardId) -> &AtomicU64 {
        let own = shard.index() - self.me().shards.start;
        &self.live[own * self.shards() + peer.index()]
    }

    /// Whether a shard of this node is connected to a later life of its peer.
    pub(super) fn has_later(&self, shard: ShardId, peer: ShardId, incarnation: u64) -> bool {
        self.live(shard, peer).load(Relaxed) > incarnation
    }

    /// A shard of this node was connected to its peer, or to nobody (0).
    pub(super) fn set_live(&self, shard: ShardId, peer: ShardId, incarnation: u64) {
        self.live(shard, peer).store(incarnation, Relaxed);
    }
}

/// Whoever reaches a node without a secret can do anything.
fn only_loopback(network: &Network, nodes: &[&Address]) -> io::Result<()> {
    let listening = network.listener.local_addr()?;
    let elsewhere = std::iter::once(listening)
        .chain(nodes.iter().map(|node| node.address))
        .find(|address| !address.ip().is_loopback());
    match elsewhere {
        None => Ok(()),
        Some(address) => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "a cluster without a secret stays on one machine, and {address} can be reached from others"
            ),
        )),
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, address, shards.
    type Listed = (u16, &'static str, usize);

    fn network(secret: Option<&[u8]>, nodes: &[Listed]) -> Network {
        Network {
            cluster: 1,
            node: 4,
            life: 1,
            nodes: nodes
                .iter()
                .map(|&(id, address, shards)| Address { id, address: address.parse().unwrap(), shards })
                .collect(),
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            secret: secret.map(<[u8]>::to_vec),
            silence: SILENCE,
            clock: Clock::new(),
        }
    }

    fn refusal(network: &Network, shards: usize) -> String {
        Cluster::new(network, shards).err().expect("it is refused").to_string()
    }

    const HERE: Listed = (4, "127.0.0.1:4", 2);

    #[test]
    fn shards_are_numbered_in_the_order_of_the_nodes() {
        let nodes = [HERE, (9, "[::1]:9", 1), (1, "127.0.0.1:1", 3)];
        let cluster = Cluster::new(&network(None, &nodes), 2).unwrap();
        assert_eq!((cluster.me().id, cluster.me().shards.clone(), cluster.shards()), (4, 3..5, 6));
        let places: Vec<usize> = (0..6).map(|shard| cluster.place_of(ShardId(shard))).collect();
        assert_eq!(places, [0, 0, 0, 1, 1, 2]);
        assert_eq!((cluster.place(9), cluster.place(2)), (Some(2), None));

        let sorted = Cluster::new(&network(None, &[nodes[2], nodes[0], nodes[1]]), 2).unwrap();
        assert_eq!(cluster.topology(), sorted.topology());
        let other =
            Cluster::new(&network(None, &[HERE, (9, "[::1]:9", 3), (1, "[::1]:1", 1)]), 2).unwrap();
        assert_ne!(cluster.topology(), other.topology());
    }

    #[test]
    fn what_cannot_be_a_cluster_is_refused_with_the_reason() {
        let cases: [(&[Listed], usize, &str); 5] = [
            (&[(1, "127.0.0.1:1", 1)], 2, "node 4 is not among the nodes of its cluster"),
            (&[HERE, HERE], 2, "node 4 is listed twice"),
            (&[HERE], 3, "node 4 is listed with 2 shards and has 3"),
            (&[HERE, (5, "127.0.0.1:5", 0)], 2, "node 5 has no shards"),
            (&[HERE, (5, "127.0.0.1:5", usize::MAX)], 2, "a cluster has at most 65535 shards"),
        ];
        for (nodes, shards, reason) in cases {
            let said = refusal(&network(None, nodes), shards);
            assert!(said.starts_with(reason), "{said}");
        }
        assert_eq!(refusal(&network(Some(b""), &[HERE]), 2), "the secret of the cluster is empty");
        let hasty = Network { silence: Duration::ZERO, ..network(None, &[HERE]) };
        assert!(refusal(&hasty, 2).contains("less than 100 ms"));
    }

    #[test]
    fn beyond_the_machine_a_secret_is_needed() {
        let far = [HERE, (5, "192.0.2.1:5", 1)];
        assert!(refusal(&network(None, &far), 2).contains("192.0.2.1:5 can be reached from others"));
        assert!(Cluster::new(&network(Some(b"secret"), &far), 2).is_ok());
        let advertised = [(4, "192.0.2.1:4", 2)];
        assert!(refusal(&network(None, &advertised), 2).contains("192.0.2.1:4"));
    }
}
