//! Which nodes and clients belong to a cluster, and which shards are whose.
//!
//! Shards are numbered over all nodes in the order of the nodes' numbers, then over the places of
//! clients. With nodes 1 and 4 of two shards each and three places, node 1 has shards 0 and 1, node
//! 4 has 2 and 3, and the client that takes place 0 has shard 4. All processes have to agree on
//! that, so they compare a checksum of it when they meet. Addresses are not compared, because a
//! process may be reached at different addresses from different machines.
//!
//! In the same order every node and every place has an *index*: nodes first, then places.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_types::{ShardId, wire};

use super::Endpoint;
use super::admission::{Descriptors, descriptor_limit};
use super::hello::Refusal;
use super::places::Places;

use crate::real::Clock;

/// How long a node may be silent before another takes it for dead, by default.
pub const SILENCE: Duration = Duration::from_secs(2);

/// One node of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Its number; of two nodes the one with the lower number dials.
    pub id: u16,
    /// Where others reach it.
    pub address: Endpoint,
    /// How many shards it has.
    pub shards: usize,
}

/// The role of a process in its cluster.
#[derive(Debug)]
pub enum Role {
    /// One of the nodes.
    Member {
        /// Its number.
        node: u16,
        /// Accepts connections from clients and from nodes with lower numbers.
        listener: TcpListener,
    },
    /// A client: it joins, dials the nodes, and leaves. It has one shard.
    Client {
        /// The place that it takes, counted from 0. If another client has it, a node refuses this
        /// one: see [`crate::real::Runtime::refused`].
        place: usize,
    },
}

/// A cluster, and the role of this process in it.
pub struct Network {
    /// The cluster's id; processes of another cluster are refused.
    pub cluster: u64,
    /// The role of this process.
    pub role: Role,
    /// All nodes, including this process if it is one.
    pub nodes: Vec<Address>,
    /// Places for clients, each with one shard; the same on all nodes.
    pub clients: usize,
    /// The life of this process: larger than any earlier life of this node, or of its place. A
    /// clock of nanoseconds will do.
    pub life: u64,
    /// Known to processes of the cluster only. It proves membership and encrypts nothing: an
    /// attacker that can change packets on their way can still do so. Without a secret, nodes can
    /// be reached from the same machine only.
    pub secret: Option<Vec<u8>>,
    /// How long a node may be silent before it is taken for dead; the same on all nodes. See
    /// [`SILENCE`].
    pub silence: Duration,
    /// The clock of this process.
    pub clock: Clock,
    /// How far a node's clock may be from this client's. A client does not connect to a node that
    /// is further off, and once all nodes have told it their clocks, it leaves with
    /// [`crate::real::Refusal::Clock`]. The code that started it can then set its clock by theirs
    /// ([`crate::real::Runtime::heard_clocks`]). Nodes connect to each other whatever their clocks
    /// say.
    pub clock_limit: Option<Duration>,
    /// What tells the data of this node from any other that it might have: its life if a node that
    /// ends loses what it held, else a number that stays as long as its data does. Processes that
    /// have met a node refuse another *memory* of it, because what it held would seem never to have
    /// existed. That of a client means nothing.
    pub memory: u64,
    /// Whether the data goes back to an earlier state when a node ends, and with it all nodes.
    /// Then a client has to refuse another life of a node like one that has lost its data.
    pub goes_back: bool,
    /// The memories of other nodes that were met earlier, by the nodes' numbers.
    pub met: Vec<(u16, u64)>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Network { cluster, role, nodes, clients, .. } = self;
        let who = match role {
            Role::Member { node, .. } => format!("node {node}"),
            Role::Client { place } => format!("client {place}"),
        };
        write!(f, "{who} of cluster {cluster:016x}, {nodes:?}, {clients} places for clients")
    }
}

/// The number of the oracle, if there is one: the node that has no data and gives out timestamps.
pub const ORACLE: u16 = u16::MAX;

/// A process of a cluster, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The node of this number.
    Node(u16),
    /// The client in this place.
    Client(u16),
}

wire!(
    enum Who {
        Node(id) = 0,
        Client(place) = 1,
    }
);

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Node(ORACLE) => f.write_str("the oracle"),
            Who::Node(id) => write!(f, "node {id}"),
            Who::Client(place) => write!(f, "client {place}"),
        }
    }
}

/// A node and its shards, by their numbers in the cluster.
pub(super) struct Member {
    pub(super) id: u16,
    pub(super) address: Endpoint,
    pub(super) shards: Range<usize>,
}

/// A cluster, as one of its nodes or clients sees it.
pub(super) struct Cluster {
    pub(super) id: u64,
    /// By number.
    pub(super) nodes: Vec<Member>,
    /// How many places for clients there are.
    clients: usize,
    /// Which client has which place.
    pub(super) places: Places,
    /// Strangers that this node has room for, at each of its ports.
    pub(super) room: usize,
    /// The index of this process.
    pub(super) here: usize,
    pub(super) secret: Vec<u8>,
    /// The life of this process: the later, the larger.
    pub(super) life: u64,
    /// By shard here and shard of a node: the life of the node that the pair is connected to; 0 if
    /// it is not connected.
    live: Vec<AtomicU64>,
    /// See [`Network::memory`].
    memory: u64,
    /// See [`Network::goes_back`].
    goes_back: bool,
    /// By node: the first memory that was met; 0 if none.
    known: Vec<AtomicU64>,
    /// Whether all shards here have been connected to all nodes at the same time, once, or all nodes
    /// were met earlier. Then clients are admitted.
    formed: AtomicBool,
    pub(super) clock: Clock,
    /// See [`Network::clock_limit`]; `None` for a node.
    clock_limit: Option<Duration>,
    /// By node: how far its clock is ahead of the one here, in nanoseconds, less the time its hello
    /// was on its way.
    heard: Vec<OnceLock<i64>>,
}

impl Cluster {
    /// Checks a configuration that a person has written.
    pub(super) fn new(network: &Network, shards: usize) -> io::Result<Cluster> {
        let mut listed: Vec<&Address> = network.nodes.iter().collect();
        listed.sort_by_key(|node| node.id);
        if let Some(twice) = listed.windows(2).find(|two| two[0].id == two[1].id) {
            return Err(invalid(format!("node {} is listed twice", twice[0].id)));
        }
        let here = find_here(network, &listed, shards)?;
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
        for &&Address { id, ref address, shards } in &listed {
            let address = address.clone();
            if shards == 0 {
                return Err(invalid(format!("node {id} has no shards")));
            }
            nodes.push(Member { id, address, shards: total..total.saturating_add(shards) });
            total = total.saturating_add(shards);
        }
        let all = total.saturating_add(network.clients);
        if all > usize::from(u16::MAX) {
            return Err(invalid(format!(
                "a cluster has at most {} shards, those of clients included, not {all}",
                u16::MAX
            )));
        }
        let descriptors = match network.role {
            Role::Member { .. } => descriptors(shards, total - shards, network.clients)?,
            Role::Client { .. } => Descriptors { room: 1, clients: 0 },
        };
        let known = |node: usize| {
            let met = network.met.iter().find(|(id, _)| *id == listed[node].id);
            met.map_or(0, |&(_, memory)| memory)
        };
        Ok(Cluster {
            id: network.cluster,
            nodes,
            clients: network.clients,
            places: Places::new(network.clients, descriptors.clients),
            room: descriptors.room,
            here,
            secret: network.secret.clone().unwrap_or_default(),
            life: network.life,
            live: (0..shards * total).map(|_| AtomicU64::new(0)).collect(),
            memory: network.memory,
            goes_back: network.goes_back,
            formed: AtomicBool::new((0..listed.len()).all(|node| node == here || known(node) != 0)),
            known: (0..listed.len()).map(|node| AtomicU64::new(known(node))).collect(),
            clock: network.clock,
            clock_limit: network.clock_limit.filter(|_| matches!(network.role, Role::Client { .. })),
            heard: listed.iter().map(|_| OnceLock::new()).collect(),
        })
    }

    /// Notes the clock that a node has told. Returns whether this client may connect to it.
    pub(super) fn may_connect(&self, node: usize, clock_ns: u64) -> bool {
        let ahead = i128::from(clock_ns) - i128::from(self.clock.now().0);
        let ahead_ns = ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if let Some(heard) = self.heard.get(node) {
            heard.get_or_init(|| ahead_ns);
        }
        self.clock_limit.is_none_or(|limit| u128::from(ahead_ns.unsigned_abs()) <= limit.as_nanos())
    }

    /// By node: how far its clock is ahead, in nanoseconds; `None` until all have said hello.
    pub(super) fn heard_clocks(&self) -> Option<Vec<i64>> {
        self.heard.iter().map(|ahead| ahead.get().copied()).collect()
    }

    /// This process.
    pub(super) fn me(&self) -> Who {
        self.who(self.here)
    }

    /// Its shards.
    pub(super) fn own(&self) -> Range<usize> {
        self.shards_of(self.here)
    }

    /// Whether this process is a client.
    pub(super) fn is_client(&self) -> bool {
        self.here >= self.nodes.len()
    }

    /// How many places for clients there are.
    pub(super) fn clients(&self) -> usize {
        self.clients
    }

    /// How many shards all nodes and places have.
    pub(super) fn shards(&self) -> usize {
        self.shards_of_nodes() + self.clients
    }

    fn shards_of_nodes(&self) -> usize {
        self.nodes.last().map_or(0, |last| last.shards.end)
    }

    /// The index of a process; `None` if the cluster has no such node or place.
    pub(super) fn index(&self, who: Who) -> Option<usize> {
        match who {
            Who::Node(id) => self.nodes.binary_search_by_key(&id, |node| node.id).ok(),
            Who::Client(place) => {
                (usize::from(place) < self.clients).then(|| self.nodes.len() + usize::from(place))
            }
        }
    }

    /// The index of the owner of a shard.
    pub(super) fn index_of(&self, shard: ShardId) -> usize {
        match shard.index().checked_sub(self.shards_of_nodes()) {
            None => self.nodes.partition_point(|node| node.shards.end <= shard.index()),
            Some(place) => self.nodes.len() + place,
        }
    }

    /// The process with this index.
    pub(super) fn who(&self, index: usize) -> Who {
        match self.nodes.get(index) {
            Some(node) => Who::Node(node.id),
            None => Who::Client((index - self.nodes.len()) as u16),
        }
    }

    /// The shards of the process with this index.
    pub(super) fn shards_of(&self, index: usize) -> Range<usize> {
        match self.nodes.get(index) {
            Some(node) => node.shards.clone(),
            None => {
                let shard = self.shards_of_nodes() + index - self.nodes.len();
                shard..shard + 1
            }
        }
    }

    /// What this process tells another of its memory ([`Network::memory`]).
    pub(super) fn memory_for(&self, peer: ShardId) -> u64 {
        let is_client = self.index_of(peer) >= self.nodes.len();
        if self.goes_back && is_client { self.life } else { self.memory }
    }

    /// Which side dials: a node dials nodes with higher numbers, a client dials all nodes, and no
    /// process dials a client.
    pub(super) fn dials(&self, from: usize, to: usize) -> bool {
        to < self.nodes.len() && (from < to || from >= self.nodes.len())
    }

    /// A checksum of what all processes have to agree on.
    pub(super) fn topology(&self) -> u32 {
        let nodes = self.nodes.iter().fold(0, |sum, node| {
            let sum = crc32c::crc32c_append(sum, &node.id.to_le_bytes());
            crc32c::crc32c_append(sum, &(node.shards.len() as u64).to_le_bytes())
        });
        crc32c::crc32c_append(nodes, &(self.clients as u64).to_le_bytes())
    }

    /// `None` if the peer is a client, whose lives are in [`Places`].
    fn live(&self, shard: ShardId, peer: ShardId) -> Option<&AtomicU64> {
        let (own, peers) = (shard.index() - self.own().start, self.shards_of_nodes());
        (peer.index() < peers).then(|| &self.live[own * peers + peer.index()])
    }

    /// Whether a shard here is connected to a later life of its peer, a shard of a node.
    pub(super) fn has_later(&self, shard: ShardId, peer: ShardId, life: u64) -> bool {
        self.live(shard, peer).is_some_and(|live| live.load(Relaxed) > life)
    }

    /// Notes that a shard here was connected to its peer in this life, or disconnected (0).
    pub(super) fn set_live(&self, shard: ShardId, peer: ShardId, life: u64) {
        let Some(live) = self.live(shard, peer) else { return };
        live.store(life, Relaxed);
        if life == 0 {
            return;
        }
        let mut others = (0..self.shards_of_nodes()).filter(|peer| !self.own().contains(peer));
        let connected = |live: &AtomicU64| live.load(Relaxed) != 0;
        let all = others.all(|peer| {
            self.own().all(|own| self.live(ShardId(own as u16), ShardId(peer as u16)).is_some_and(connected))
        });
        if all {
            self.formed.store(true, Relaxed);
        }
    }

    /// Refuses a process that claims to be a node that was met with another memory, because it does
    /// not have that data. It was started as a replacement, or by mistake as a duplicate.
    pub(super) fn check_memory(&self, peer: ShardId, memory: u64) -> Result<(), Refusal> {
        let index = self.index_of(peer);
        let Some(known) = self.known.get(index).map(|known| known.load(Relaxed)) else { return Ok(()) };
        match known != 0 && known != memory {
            true if self.is_connected(index) => Err(Refusal::running(&self.nodes[index])),
            true => {
                self.disagree();
                Err(Refusal::Forgotten)
            }
            false => Ok(()),
        }
    }

    /// This node and another remember different things: one of them has the wrong data, so clients
    /// are not admitted until all are connected.
    fn disagree(&self) {
        self.formed.store(false, Relaxed);
    }

    /// The same, and remembers the memory of a node that was not met before.
    pub(super) fn meet(&self, peer: ShardId, memory: u64) -> Result<(), Refusal> {
        if let Some(known) = self.known.get(self.index_of(peer)) {
            let _ = known.compare_exchange(0, memory, Relaxed, Relaxed);
        }
        self.check_memory(peer, memory)
    }

    /// By node: the first memory that was met; 0 if none.
    pub(super) fn met(&self) -> Vec<u64> {
        self.known.iter().map(|known| known.load(Relaxed)).collect()
    }

    /// Whether any shard here is connected to a shard of a node.
    pub(super) fn is_connected(&self, node: usize) -> bool {
        let peers = self.shards_of(node).map(|peer| ShardId(peer as u16));
        let mut pairs = peers.flat_map(|peer| self.own().map(move |own| (ShardId(own as u16), peer)));
        pairs.any(|(own, peer)| self.live(own, peer).is_some_and(|live| live.load(Relaxed) != 0))
    }

    /// Refuses to dial an address to which nobody may connect without a secret.
    pub(super) fn may_dial(&self, address: SocketAddr) -> io::Result<()> {
        match self.secret.is_empty() && !address.ip().is_loopback() {
            true => Err(reachable(address)),
            false => Ok(()),
        }
    }

    /// Whether a node of the cluster has this address, and not a name instead.
    pub(super) fn is_node_at(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.nodes.iter().any(|node| node.address.ip().is_some_and(|known| known.to_canonical() == ip))
    }

    /// Whether clients are admitted.
    pub(super) fn is_open(&self) -> bool {
        self.formed.load(Relaxed)
    }
}

/// Divides the file descriptors of a node with so many shards.
fn descriptors(own: usize, others: usize, clients: usize) -> io::Result<Descriptors> {
    let limit = descriptor_limit();
    let divided = Descriptors::divide(limit, own, others, clients).map_err(|few| invalid(few.to_string()))?;
    if divided.clients < clients {
        tracing::warn!(
            "{limit} file descriptors are enough for {} clients at a time, not for the {clients} that the cluster lets in: raise \
             the limit (`ulimit -n`)",
            divided.clients
        );
    }
    Ok(divided)
}

/// The index of this process, which has `shards` shards.
fn find_here(network: &Network, listed: &[&Address], shards: usize) -> io::Result<usize> {
    match network.role {
        Role::Member { node, .. } => {
            let Some(here) = listed.iter().position(|listed| listed.id == node) else {
                return Err(invalid(format!("node {node} is not among the nodes of its cluster")));
            };
            match listed[here].shards {
                said if said == shards => Ok(here),
                said => Err(invalid(format!("node {node} is listed with {said} shards and has {shards}"))),
            }
        }
        Role::Client { .. } if listed.is_empty() => Err(invalid("a cluster without nodes has no clients")),
        Role::Client { place } if place >= network.clients => Err(invalid(format!(
            "place {place} is not among the {} places for clients, counted from 0",
            network.clients
        ))),
        Role::Client { .. } if shards != 1 => Err(invalid(format!("a client has 1 shard, not {shards}"))),
        Role::Client { place } => Ok(listed.len() + place),
    }
}

/// Without a secret any process that reaches a node can do anything, so all addresses have to be
/// loopback addresses. What names stand for is known when they are dialed ([`Cluster::may_dial`]).
fn only_loopback(network: &Network, nodes: &[&Address]) -> io::Result<()> {
    let listening = match &network.role {
        Role::Member { listener, .. } => Some(listener.local_addr()?),
        Role::Client { .. } => None,
    };
    let elsewhere = listening
        .into_iter()
        .chain(nodes.iter().filter_map(|node| node.address.socket()))
        .find(|address| !address.ip().is_loopback());
    match elsewhere {
        None => Ok(()),
        Some(address) => Err(reachable(address)),
    }
}

fn reachable(address: SocketAddr) -> io::Error {
    let why =
        format!("a cluster without a secret stays on one machine, and {address} can be reached from others");
    io::Error::new(io::ErrorKind::PermissionDenied, why)
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
            role: Role::Member { node: 4, listener: TcpListener::bind("127.0.0.1:0").unwrap() },
            clients: 0,
            life: 1,
            memory: 1,
            goes_back: false,
            met: Vec::new(),
            nodes: nodes
                .iter()
                .map(|&(id, address, shards)| Address { id, address: address.parse().unwrap(), shards })
                .collect(),
            secret: secret.map(<[u8]>::to_vec),
            silence: SILENCE,
            clock: Clock::new(),
            clock_limit: None,
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
        assert_eq!((cluster.me(), cluster.own(), cluster.shards()), (Who::Node(4), 3..5, 6));
        let owners: Vec<usize> = (0..6).map(|shard| cluster.index_of(ShardId(shard))).collect();
        assert_eq!(owners, [0, 0, 0, 1, 1, 2]);
        assert_eq!((cluster.index(Who::Node(9)), cluster.index(Who::Node(2))), (Some(2), None));

        let sorted = Cluster::new(&network(None, &[nodes[2], nodes[0], nodes[1]]), 2).unwrap();
        assert_eq!(cluster.topology(), sorted.topology());
        let other = Cluster::new(&network(None, &[HERE, (9, "[::1]:9", 3), (1, "[::1]:1", 1)]), 2).unwrap();
        assert_ne!(cluster.topology(), other.topology());
    }

    #[test]
    fn another_memory_of_a_node_that_was_met_is_refused_and_the_reason_depends_on_whether_the_first_is_there()
    {
        let nodes = [HERE, (5, "127.0.0.1:5", 1), (9, "[::1]:9", 2)];
        let cluster = Cluster::new(&network(None, &nodes), 2).unwrap();
        let (here, [five, nine]) = (ShardId(1), [2, 3].map(ShardId));
        let check = |memory| cluster.check_memory(nine, memory);
        assert_eq!(check(10), Ok(()), "it was never met");
        assert!(!cluster.is_open());
        for (peer, memory) in [(nine, 10), (five, 7)] {
            assert_eq!(cluster.meet(peer, memory), Ok(()));
            cluster.set_live(here, peer, 1);
        }
        assert_eq!(check(10), Ok(()));
        // Later or earlier, and whichever of its shards is connected.
        for (shard, memory) in [(3, 11), (3, 9), (4, 11)] {
            let refusal = cluster.meet(ShardId(shard), memory).unwrap_err();
            let said = refusal.to_string();
            assert!(said.starts_with("node 9 is alive and connected, at [::1]:9, "), "{said}");
        }
        let said = cluster.check_memory(five, 8).unwrap_err().to_string();
        assert!(said.starts_with("node 5 is alive and connected, at 127.0.0.1:5, "), "{said}");
        cluster.set_live(here, nine, 0);
        assert_eq!((check(10), check(11)), (Ok(()), Err(Refusal::Forgotten)));
        // A node that keeps its data knows whom it has met.
        let met = vec![(9, 10), (5, 7)];
        let cluster = Cluster::new(&Network { met, ..network(None, &nodes) }, 2).unwrap();
        assert!(cluster.is_open());
        assert_eq!((cluster.meet(nine, 10), cluster.meet(nine, 11)), (Ok(()), Err(Refusal::Forgotten)));
        assert!(!cluster.is_open(), "one of the two has the wrong data");
    }

    #[test]
    fn a_node_that_goes_back_has_another_memory_in_each_life_for_clients_and_not_for_nodes() {
        let nodes = [HERE, (9, "[::1]:9", 1)];
        let network =
            |goes_back| Network { goes_back, clients: 1, life: 5, memory: 7, ..network(None, &nodes) };
        let [node, client] = [2, 3].map(ShardId);
        for (goes_back, told) in [(true, 5), (false, 7)] {
            let cluster = Cluster::new(&network(goes_back), 2).unwrap();
            assert_eq!((cluster.memory_for(node), cluster.memory_for(client)), (7, told));
        }
    }

    #[test]
    fn an_oracle_is_called_what_it_is() {
        let names = [Who::Node(3), Who::Node(ORACLE), Who::Client(2)].map(|who| who.to_string());
        assert_eq!(names, ["node 3", "the oracle", "client 2"]);
        let nodes = [HERE, (ORACLE, "[::1]:9", 1)];
        let cluster = Cluster::new(&network(None, &nodes), 2).unwrap();
        let said = Refusal::running(&cluster.nodes[1]).to_string();
        assert!(said.starts_with("the oracle is alive and connected, at [::1]:9, "), "{said}");
    }

    #[test]
    fn clients_come_after_the_nodes() {
        let nodes = [HERE, (1, "127.0.0.1:1", 3)];
        let node = Network { clients: 2, ..network(None, &nodes) };
        let client = Network { role: Role::Client { place: 1 }, clients: 2, ..network(None, &nodes) };
        let [node, client] =
            [(node, 2), (client, 1)].map(|(network, shards)| Cluster::new(&network, shards).unwrap());
        assert_eq!((client.me(), client.own(), client.shards()), (Who::Client(1), 6..7, 7));
        assert_eq!(client.topology(), node.topology());
        assert_ne!(client.topology(), Cluster::new(&network(None, &nodes), 2).unwrap().topology());
        for shard in 0..7 {
            let index = node.index_of(ShardId(shard));
            assert!(node.shards_of(index).contains(&usize::from(shard)));
            assert_eq!(node.index(node.who(index)), Some(index));
        }
        assert_eq!(node.index(Who::Client(2)), None);
        let dials = |from| (0..4).filter(|&to| node.dials(from, to)).collect::<Vec<_>>();
        assert_eq!([dials(0), dials(1), dials(2), dials(3)], [vec![1], vec![], vec![0, 1], vec![0, 1]]);
    }

    #[test]
    fn who_cannot_be_a_client_is_refused_with_the_reason() {
        let client = |place, clients, nodes: &[Listed]| Network {
            role: Role::Client { place },
            clients,
            ..network(None, nodes)
        };
        let far = (5, "192.0.2.1:5", 1);
        let cases = [
            (client(2, 2, &[HERE]), 1, "place 2 is not among the 2 places for clients, counted from 0"),
            (client(0, 2, &[HERE]), 2, "a client has 1 shard, not 2"),
            (client(0, 2, &[]), 1, "a cluster without nodes has no clients"),
            (client(0, usize::MAX, &[HERE]), 1, "a cluster has at most 65535 shards"),
            (client(0, 2, &[HERE, far]), 1, "a cluster without a secret stays on one machine"),
        ];
        for (network, shards, reason) in cases {
            let said = refusal(&network, shards);
            assert!(said.starts_with(reason), "{said}");
        }
        let secret = Some(b"secret".to_vec());
        assert!(Cluster::new(&Network { secret, ..client(0, 2, &[HERE, far]) }, 1).is_ok());
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
