//! The handshake: how two processes make sure of each other before their shards talk.
//!
//! The dialer says hello. The listener checks it and says hello. The dialer checks that and proves
//! that it knows the cluster's secret. The listener checks the proof and proves the same. A proof
//! is HMAC-SHA256, under the secret, of the proving side and both hellos. Each hello contains a
//! random number of its sender, so an overheard proof is useless later; and since the side is part
//! of it, so is a proof that is sent back. The dialer proves first, so a stranger never gets a
//! proof to attack. Without a secret the key is empty, and the handshake is the same.
//!
//! A side that finds an error sends the error's number and closes the connection. A refusal has no
//! text, and even an address in it travels as a number, so no text of a stranger gets into a log.
//! The listener judges a hello by its content alone: which processes are or were connected it tells
//! only a dialer that knows the secret. A dialer that has met another memory of the listener refuses
//! at once, since a listener that receives a proof takes the dialer for its peer. The address in
//! that refusal is the one it has just dialed, so it reveals nothing.
//!
//! | bytes | |
//! |---|---|
//! | 4 | the length of what follows, at most [`MESSAGE_MAX`] |
//! | 1 | the kind: hello, proof, refusal |
//! | | the body |
//!
//! In every version of the protocol messages have this form, a hello begins with the magic number
//! and the version, and refusals keep their numbers. So versions that do not understand each other
//! can say so.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use plimsoll_types::wire::{Input, Wire, whole};
use plimsoll_types::{ShardId, wire};
use sha2::Sha256;

use super::cluster::{Cluster, Member, Who};
use super::places::PlaceLease;

/// The first bytes of every hello.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"plimsoll");
/// The version of hellos, of frames, and of the meaning of messages.
pub(super) const VERSION: u16 = 11;
/// Maximum length of a handshake message in bytes, without its length field.
pub(super) const MESSAGE_MAX: usize = 256;

const HELLO: u8 = 1;
const PROOF: u8 = 2;
const REFUSAL: u8 = 3;

/// Why one process refuses another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The first message was no hello.
    Magic,
    /// Another version of the protocol.
    Version,
    /// Another cluster.
    Cluster,
    /// Other nodes, other numbers of shards, or another number of places for clients.
    Topology,
    /// It claims to be the very node it talks to.
    Myself,
    /// The cluster has no node of its number, or no such place for clients.
    Stranger,
    /// A shard in the hello does not belong to its sender, or to its receiver.
    Shard,
    /// It is not the side that dials.
    Direction,
    /// A later life of the same node is connected, or a later client has had the same place.
    Superseded,
    /// It does not know the secret.
    Secret,
    /// A message made no sense.
    Malformed,
    /// Another client has its place.
    PlaceTaken,
    /// It was started again, and its data is lost.
    Forgotten,
    /// The refusing node has not been connected to all others yet.
    NotOpen,
    /// The clocks of a node and of its client are too far apart. The client sends this.
    Clock,
    /// Another process is connected under its number, and has that node's data.
    Running {
        /// That number.
        node: u16,
        /// The address at which the refusing side reaches that node, as IPv6; unspecified if its
        /// host has a name.
        ip: [u8; 16],
        /// The port of that address.
        port: u16,
    },
}

wire!(
    enum Refusal {
        Magic = 1,
        Version = 2,
        Cluster = 3,
        Topology = 4,
        Myself = 5,
        Stranger = 6,
        Shard = 7,
        Direction = 8,
        Superseded = 9,
        Secret = 10,
        Malformed = 11,
        PlaceTaken = 12,
        Forgotten = 13,
        NotOpen = 14,
        Clock = 15,
        Running { node, ip, port } = 16,
    }
);

impl Refusal {
    /// Whether the reason stays until somebody changes something, so that trying again is in vain.
    pub fn is_lasting(self) -> bool {
        match self {
            Refusal::Version
            | Refusal::Cluster
            | Refusal::Topology
            | Refusal::Myself
            | Refusal::Stranger
            | Refusal::Shard
            | Refusal::Secret
            | Refusal::Forgotten
            | Refusal::Running { .. } => true,
            Refusal::Magic
            | Refusal::Direction
            | Refusal::Superseded
            | Refusal::Malformed
            | Refusal::PlaceTaken
            | Refusal::NotOpen
            | Refusal::Clock => false,
        }
    }

    /// The refusal of a duplicate of this node.
    pub(super) fn running(member: &Member) -> Refusal {
        let ip = match member.address.ip() {
            None => Ipv6Addr::UNSPECIFIED,
            Some(IpAddr::V4(ip)) => ip.to_ipv6_mapped(),
            Some(IpAddr::V6(ip)) => ip,
        };
        Refusal::Running { node: member.id, ip: ip.octets(), port: member.address.port() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Magic => "it does not speak this protocol",
            Refusal::Version => "it speaks another version of the protocol",
            Refusal::Cluster => "it belongs to another cluster, or was given another description of this one",
            Refusal::Topology => "it was given other nodes, numbers of shards or places for clients",
            Refusal::Myself => "it says that it is the very node it talks to",
            Refusal::Stranger => "the cluster has no node of its number, or no such place for clients",
            Refusal::Shard => "the shards it names belong to others",
            Refusal::Direction => "it dials where it should be dialed",
            Refusal::Superseded => {
                "a process that started later is connected under its number, or has had its place"
            }
            Refusal::Secret => "it does not know the secret of the cluster",
            Refusal::Malformed => "what it says makes no sense",
            Refusal::PlaceTaken => "another client has its place",
            Refusal::Forgotten => {
                "it has lost its part of the data: give it the data directory that it had; if it had none, start all \
                 nodes of the cluster again"
            }
            Refusal::NotOpen => "the nodes of the cluster have not all met yet",
            Refusal::Clock => "the clocks of the two are too far apart",
            Refusal::Running { node, ip, port } => {
                let ip = Ipv6Addr::from(*ip);
                let node = Who::Node(*node);
                let place = match ip.is_unspecified() {
                    true => String::new(),
                    false => format!(", at {},", SocketAddr::new(ip.to_canonical(), *port)),
                };
                return write!(
                    f,
                    "{node} is alive and connected{place} and no second process can be {node}: give each process a \
                     number of its own, and leave the one that runs alone"
                );
            }
        })
    }
}

/// What a process says about itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) magic: u64,
    pub(super) version: u16,
    /// The cluster, and a checksum of its configuration.
    pub(super) cluster: u64,
    pub(super) topology: u32,
    pub(super) shards: u16,
    pub(super) who: Who,
    /// Its life, and what it remembers: [`Network::memory`](super::Network::memory).
    pub(super) life: u64,
    pub(super) memory: u64,
    /// The sender's shard, and the shard it wants to talk to.
    pub(super) from: u16,
    pub(super) to: u16,
    /// Drawn at random for this handshake.
    pub(super) nonce: (u64, u64),
    /// The sender's clock, in Unix nanoseconds.
    pub(super) clock_ns: u64,
}

wire!(struct Hello { magic, version, cluster, topology, shards, who, life, memory, from, to, nonce, clock_ns });

/// The result of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Agreed {
    /// The shard of this process.
    pub(super) shard: ShardId,
    pub(super) peer: ShardId,
    /// The life of the peer's process, and what it remembers.
    pub(super) life: u64,
    pub(super) memory: u64,
}

/// The next step of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Send this, then receive.
    Say(Vec<u8>),
    /// Send this, if it is not empty; then the handshake is complete.
    Agreed(Vec<u8>, Agreed),
    /// Send this, then close.
    Refuse(Vec<u8>, Refusal),
    /// Close: the other side has refused this one.
    Refused(Refusal),
}

/// The state of one side of a handshake.
pub(super) struct Greeting {
    cluster: Arc<Cluster>,
    /// For a dialer: its own shard, and the one it wants to talk to.
    dialed: Option<(ShardId, ShardId)>,
    nonce: (u64, u64),
    /// The hellos as they were sent, and the result if the proof is right.
    mine: Vec<u8>,
    theirs: Vec<u8>,
    agreed: Option<Agreed>,
    /// A client gets its place before it is told that it is admitted.
    claim: Option<PlaceLease>,
}

impl Greeting {
    /// A listener, which receives first.
    pub(super) fn listen(cluster: Arc<Cluster>, nonce: (u64, u64)) -> Greeting {
        Greeting {
            cluster,
            dialed: None,
            nonce,
            mine: Vec::new(),
            theirs: Vec::new(),
            agreed: None,
            claim: None,
        }
    }

    /// A dialer, and the hello that it sends.
    pub(super) fn dial(
        cluster: Arc<Cluster>,
        nonce: (u64, u64),
        shard: ShardId,
        peer: ShardId,
    ) -> (Greeting, Vec<u8>) {
        let mut greeting = Greeting::listen(cluster, nonce);
        greeting.dialed = Some((shard, peer));
        let said = greeting.say_hello(shard, peer);
        (greeting, said)
    }

    /// Handles a message of the other side.
    pub(super) fn received(&mut self, message: &[u8]) -> Next {
        self.answer(message).unwrap_or_else(refuse)
    }

    /// Whether the other side has said hello, and is one that belongs here if it knows the secret.
    pub(super) fn has_met(&self) -> bool {
        self.agreed.is_some()
    }

    /// The other side's claim to its place, if it is a client that was admitted.
    pub(super) fn take_claim(&mut self) -> Option<PlaceLease> {
        self.claim.take()
    }

    /// Refuses bytes that cannot be a message.
    pub(super) fn nonsense(&self) -> Next {
        refuse(if self.theirs.is_empty() && self.dialed.is_none() {
            Refusal::Magic
        } else {
            Refusal::Malformed
        })
    }

    fn answer(&mut self, message: &[u8]) -> Result<Next, Refusal> {
        let (&kind, body) = message.split_first().ok_or(Refusal::Malformed)?;
        match (kind, self.agreed, self.dialed) {
            (REFUSAL, Some(_), _) | (REFUSAL, _, Some(_)) => {
                Ok(Next::Refused(whole(body).map_err(|_| Refusal::Malformed)?))
            }
            (HELLO, None, _) => {
                let agreed = self.check_hello(body)?;
                self.theirs = body.to_vec();
                self.agreed = Some(agreed);
                match self.dialed {
                    Some(_) => Ok(Next::Say(framed(PROOF, &self.prove(Side::Dialer)))),
                    None => Ok(Next::Say(self.say_hello(agreed.shard, agreed.peer))),
                }
            }
            (PROOF, Some(agreed), Some(_)) => {
                self.check_proof(Side::Listener, body)?;
                self.cluster.meet(agreed.peer, agreed.memory)?;
                Ok(Next::Agreed(Vec::new(), agreed))
            }
            (PROOF, Some(agreed), None) => {
                self.check_proof(Side::Dialer, body)?;
                self.admit(agreed)?;
                Ok(Next::Agreed(framed(PROOF, &self.prove(Side::Listener)), agreed))
            }
            (_, None, None) => Err(Refusal::Magic),
            _ => Err(Refusal::Malformed),
        }
    }

    fn say_hello(&mut self, from: ShardId, to: ShardId) -> Vec<u8> {
        let cluster = &self.cluster;
        let hello = Hello {
            magic: MAGIC,
            version: VERSION,
            cluster: cluster.id,
            topology: cluster.topology(),
            shards: cluster.shards() as u16,
            who: cluster.me(),
            life: cluster.life,
            memory: cluster.memory_for(to),
            from: from.0,
            to: to.0,
            nonce: self.nonce,
            clock_ns: cluster.clock.now().0,
        };
        self.mine = encoded(&hello);
        framed(HELLO, &self.mine)
    }

    fn check_hello(&self, body: &[u8]) -> Result<Agreed, Refusal> {
        let mut input = Input::new(body);
        if u64::decode(&mut input) != Ok(MAGIC) {
            return Err(Refusal::Magic);
        }
        if u16::decode(&mut input) != Ok(VERSION) {
            return Err(Refusal::Version);
        }
        let hello: Hello = whole(body).map_err(|_| Refusal::Malformed)?;
        let cluster = &*self.cluster;
        if hello.cluster != cluster.id {
            return Err(Refusal::Cluster);
        }
        if (hello.topology, usize::from(hello.shards)) != (cluster.topology(), cluster.shards()) {
            return Err(Refusal::Topology);
        }
        if hello.who == cluster.me() {
            return Err(Refusal::Myself);
        }
        let other = cluster.index(hello.who).ok_or(Refusal::Stranger)?;
        let (peer, shard) = (ShardId(hello.from), ShardId(hello.to));
        let of = |index: usize, shard: ShardId| cluster.shards_of(index).contains(&shard.index());
        if !of(other, peer) || !of(cluster.here, shard) {
            return Err(Refusal::Shard);
        }
        if let Some(dialed) = self.dialed {
            if dialed != (shard, peer) {
                return Err(Refusal::Shard);
            }
            cluster.check_memory(peer, hello.memory)?;
            if !cluster.may_connect(other, hello.clock_ns) {
                return Err(Refusal::Clock);
            }
        }
        Ok(Agreed { shard, peer, life: hello.life, memory: hello.memory })
    }

    /// Admits a dialer that knows the secret, unless another process, a later life or another
    /// client is connected in its stead.
    fn admit(&mut self, Agreed { shard, peer, life, memory }: Agreed) -> Result<(), Refusal> {
        let cluster = &self.cluster;
        cluster.check_memory(peer, memory)?;
        let dialer = cluster.index_of(peer);
        if !cluster.dials(dialer, cluster.here) {
            return Err(Refusal::Direction);
        }
        match cluster.who(dialer) {
            Who::Client(_) if !cluster.is_open() => return Err(Refusal::NotOpen),
            Who::Client(place) => self.claim = Some(cluster.places.claim(place.into(), life)?),
            Who::Node(_) if cluster.has_later(shard, peer, life) => return Err(Refusal::Superseded),
            Who::Node(_) => {}
        }
        cluster.meet(peer, memory)
    }

    fn mac(&self, side: Side) -> Hmac<Sha256> {
        let (dialer, listener) = match self.dialed {
            Some(_) => (&self.mine, &self.theirs),
            None => (&self.theirs, &self.mine),
        };
        let mut mac = Hmac::new_from_slice(&self.cluster.secret).expect("a key has any length");
        mac.update(&[side as u8]);
        mac.update(dialer);
        mac.update(listener);
        mac
    }

    fn prove(&self, side: Side) -> Vec<u8> {
        self.mac(side).finalize().into_bytes().to_vec()
    }

    /// Takes the same time wherever the first difference is, so timing reveals nothing.
    fn check_proof(&self, side: Side, proof: &[u8]) -> Result<(), Refusal> {
        self.mac(side).verify_slice(proof).map_err(|_| Refusal::Secret)
    }
}

/// The side that proves.
#[derive(Clone, Copy)]
enum Side {
    Dialer = 1,
    Listener = 2,
}

fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

fn refuse(refusal: Refusal) -> Next {
    Next::Refuse(framed(REFUSAL, &encoded(&refusal)), refusal)
}

/// A message with its length.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = encoded(&(body.len() as u32 + 1));
    bytes.push(kind);
    bytes.extend_from_slice(body);
    assert!(bytes.len() - 4 <= MESSAGE_MAX, "messages of a handshake are short");
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::super::cluster::{Address, Network, Role, SILENCE};
    use super::*;

    /// The common part of all configurations.
    fn network(role: Role) -> Network {
        Network {
            cluster: 9,
            role,
            nodes: Vec::new(),
            clients: 3,
            life: 1,
            secret: None,
            silence: SILENCE,
            clock: crate::real::Clock::new(),
            clock_limit: None,
            memory: 1,
            goes_back: false,
            met: Vec::new(),
        }
    }

    /// A node's view, with what a stranger may change about itself: the cluster's id and the
    /// secret. (A test may also change the hello.)
    fn cluster(id: u64, node: u16, nodes: &[u16], secret: &str) -> Arc<Cluster> {
        Arc::new(Cluster::new(&like(id, node, nodes, secret), 2).unwrap())
    }

    fn like(id: u64, node: u16, nodes: &[u16], secret: &str) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // They have met before.
        let met = nodes.iter().map(|&id| (id, 1)).collect();
        let nodes = nodes.iter().map(|&id| Address { id, address: address.into(), shards: 2 }).collect();
        let secret = (!secret.is_empty()).then(|| secret.as_bytes().to_vec());
        let life = 100 + u64::from(node);
        Network { cluster: id, nodes, met, life, secret, ..network(Role::Member { node, listener }) }
    }

    /// A client of nodes 1 and 2; the places have shards 4, 5 and 6.
    fn client(place: usize, life: u64) -> Arc<Cluster> {
        let address = || "127.0.0.1:1".parse().unwrap();
        let nodes = NODES.iter().map(|&id| Address { id, address: address(), shards: 2 }).collect();
        let network = Network { nodes, life, ..network(Role::Client { place }) };
        Arc::new(Cluster::new(&network, 1).unwrap())
    }

    fn message(framed: &[u8]) -> &[u8] {
        assert_eq!(framed[..4], (framed.len() as u32 - 4).to_le_bytes());
        &framed[4..]
    }

    /// The last step of the dialer and of the listener.
    fn meet(dialer: Arc<Cluster>, listener: Arc<Cluster>, from: u16, to: u16) -> (Next, Next) {
        let (mut dialer, hello) = Greeting::dial(dialer, (1, 2), ShardId(from), ShardId(to));
        let mut listener = Greeting::listen(listener, (3, 4));
        let mut said = hello;
        loop {
            let heard = listener.received(message(&said));
            match &heard {
                Next::Say(bytes) => said = bytes.clone(),
                Next::Agreed(bytes, _) | Next::Refuse(bytes, _) => {
                    return (dialer.received(message(bytes)), heard);
                }
                Next::Refused(_) => panic!("a dialer's refusal is looked at below"),
            }
            let heard = dialer.received(message(&said));
            match &heard {
                Next::Say(bytes) => said = bytes.clone(),
                Next::Refuse(bytes, _) => {
                    let other = listener.received(message(bytes));
                    return (heard, other);
                }
                Next::Agreed(..) | Next::Refused(_) => panic!("the listener speaks last"),
            }
        }
    }

    fn refused_with(refusal: Refusal, dialer: Arc<Cluster>, listener: Arc<Cluster>) {
        let (heard, said) = meet(dialer, listener, 0, 2);
        assert_eq!(heard, Next::Refused(refusal));
        assert!(matches!(said, Next::Refuse(_, said) if said == refusal), "{said:?}");
    }

    const NODES: [u16; 2] = [1, 2];

    #[test]
    fn nodes_that_share_a_secret_agree() {
        for secret in ["", "a secret"] {
            let (dialer, listener) = (cluster(9, 1, &NODES, secret), cluster(9, 2, &NODES, secret));
            let (at_dialer, at_listener) = meet(dialer, listener, 1, 2);
            let agreed = |shard, peer, life| {
                let (shard, peer) = (ShardId(shard), ShardId(peer));
                Agreed { shard, peer, life, memory: 1 }
            };
            assert_eq!(at_dialer, Next::Agreed(Vec::new(), agreed(1, 2, 102)));
            assert!(matches!(at_listener, Next::Agreed(_, said) if said == agreed(2, 1, 101)));
        }
    }

    #[test]
    fn whoever_is_not_meant_is_refused_with_the_reason() {
        let here = || cluster(9, 2, &NODES, "a secret");
        let from = |id, node, nodes: &[u16], secret| cluster(id, node, nodes, secret);
        refused_with(Refusal::Cluster, from(8, 1, &NODES, "a secret"), here());
        refused_with(Refusal::Topology, from(9, 1, &[1, 2, 3], "a secret"), here());
        refused_with(Refusal::Secret, from(9, 1, &NODES, "another"), here());
        refused_with(Refusal::Secret, from(9, 1, &NODES, ""), here());
        refused_with(Refusal::Myself, from(9, 2, &NODES, "a secret"), here());
        let (heard, _) = meet(from(9, 1, &NODES, "a secret"), here(), 0, 1);
        assert_eq!(heard, Next::Refused(Refusal::Shard));
        let (heard, _) = meet(here(), from(9, 1, &NODES, "a secret"), 2, 0);
        assert_eq!(heard, Next::Refused(Refusal::Direction));
    }

    #[test]
    fn an_earlier_life_is_refused_while_a_later_one_is_connected() {
        let here = cluster(9, 2, &NODES, "");
        here.set_live(ShardId(2), ShardId(0), 102);
        refused_with(Refusal::Superseded, cluster(9, 1, &NODES, ""), here.clone());
        here.set_live(ShardId(2), ShardId(0), 101);
        let (heard, _) = meet(cluster(9, 1, &NODES, ""), here, 0, 2);
        assert!(matches!(heard, Next::Agreed(..)), "the same life may dial again: {heard:?}");
    }

    #[test]
    fn who_is_there_and_who_was_only_those_hear_who_know_the_secret() {
        let nodes = || {
            let network = Network { met: Vec::new(), ..like(9, 2, &NODES, "a secret") };
            Arc::new(Cluster::new(&network, 2).unwrap())
        };
        let (connected, gone) = (nodes(), nodes());
        for here in [&connected, &gone] {
            here.meet(ShardId(0), 2).expect("it is the first");
            here.set_live(ShardId(2), ShardId(0), 50);
        }
        gone.set_live(ShardId(2), ShardId(0), 0);
        let running = Refusal::running(&connected.nodes[0]);
        for (here, truth) in [(connected, running), (gone, Refusal::Forgotten)] {
            refused_with(Refusal::Secret, cluster(9, 1, &NODES, "another"), here.clone());
            refused_with(truth, cluster(9, 1, &NODES, "a secret"), here);
        }
        let here = cluster(9, 2, &NODES, "a secret");
        here.set_live(ShardId(2), ShardId(0), 102);
        refused_with(Refusal::Secret, cluster(9, 1, &NODES, "another"), here.clone());
        refused_with(Refusal::Superseded, cluster(9, 1, &NODES, "a secret"), here);
    }

    #[test]
    fn a_client_has_its_place_when_it_is_let_in_and_until_it_is_gone() {
        let here = cluster(9, 2, &NODES, "");
        // Both have said hello before either proves anything.
        let mut meetings: Vec<_> = [10, 11]
            .map(|life| {
                let (mut dialer, hello) = Greeting::dial(client(1, life), (1, 2), ShardId(5), ShardId(2));
                let mut listener = Greeting::listen(here.clone(), (3, 4));
                let Next::Say(heard) = listener.received(message(&hello)) else { panic!("a hello") };
                let Next::Say(proof) = dialer.received(message(&heard)) else { panic!("a proof") };
                (listener, proof)
            })
            .into();
        let (mut second, proof) = meetings.pop().unwrap();
        assert!(matches!(second.received(message(&proof)), Next::Agreed(..)));
        let (mut first, proof) = meetings.pop().unwrap();
        assert!(matches!(first.received(message(&proof)), Next::Refuse(_, Refusal::PlaceTaken)));
        assert!(first.take_claim().is_none());
        // The claim outlives the handshake.
        let claim = second.take_claim();
        assert!(claim.is_some());
        drop(second);
        let meets =
            |place: usize, life: u64| match meet(client(place, life), here.clone(), 4 + place as u16, 3) {
                (Next::Agreed(..), Next::Agreed(..)) => None,
                (Next::Refused(heard), Next::Refuse(_, said)) if heard == said => Some(said),
                other => panic!("{other:?}"),
            };
        assert_eq!(meets(1, 12), Some(Refusal::PlaceTaken));
        assert_eq!((meets(1, 11), meets(2, 12)), (None, None));
        drop(claim);
        assert_eq!((meets(1, 10), meets(1, 12)), (Some(Refusal::Superseded), None));
    }

    #[test]
    fn nobody_is_taken_for_a_client_or_a_node_that_it_is_not() {
        let judge = |here: Arc<Cluster>, who, from, to| {
            let message = hello(|hello| (hello.who, hello.from, hello.to) = (who, from, to));
            match Greeting::listen(here, (3, 4)).received(&message) {
                Next::Refuse(_, refusal) => Some(refusal),
                _ => None,
            }
        };
        let node = || cluster(9, 2, &NODES, "");
        assert_eq!(judge(node(), Who::Client(2), 6, 2), None);
        assert_eq!(judge(node(), Who::Client(3), 7, 2), Some(Refusal::Stranger));
        assert_eq!(judge(node(), Who::Client(u16::MAX), 4, 2), Some(Refusal::Stranger));
        assert_eq!(judge(node(), Who::Client(2), 5, 2), Some(Refusal::Shard));
        // A node claims to be a client, and a client to be a node.
        assert_eq!(judge(node(), Who::Client(0), 0, 2), Some(Refusal::Shard));
        assert_eq!(judge(node(), Who::Node(1), 4, 2), Some(Refusal::Shard));
        assert_eq!(judge(node(), Who::Client(0), 4, 5), Some(Refusal::Shard));
        // No process dials a client.
        for (dialer, from) in [(client(1, 7), 5), (cluster(9, 1, &NODES, ""), 0)] {
            let (heard, _) = meet(dialer, client(0, 7), from, 4);
            assert_eq!(heard, Next::Refused(Refusal::Direction));
        }
        assert_eq!(judge(client(0, 7), Who::Client(0), 4, 4), Some(Refusal::Myself));
        // A client cannot answer in the name of a node.
        let (mut dialer, _) = Greeting::dial(client(0, 7), (1, 2), ShardId(4), ShardId(2));
        let answer = hello(|hello| (hello.who, hello.from, hello.to) = (Who::Client(1), 5, 4));
        assert!(matches!(dialer.received(&answer), Next::Refuse(_, Refusal::Shard)));
    }

    fn hello(change: impl FnOnce(&mut Hello)) -> Vec<u8> {
        let (greeting, _) = Greeting::dial(cluster(9, 1, &NODES, ""), (1, 2), ShardId(0), ShardId(2));
        let mut hello: Hello = whole(&greeting.mine).unwrap();
        change(&mut hello);
        [&[HELLO], &encoded(&hello)[..]].concat()
    }

    #[test]
    fn a_hello_is_judged_by_magic_and_version_before_anything_else() {
        let judge = |message: &[u8]| {
            let mut listener = Greeting::listen(cluster(9, 2, &NODES, ""), (3, 4));
            match listener.received(message) {
                Next::Refuse(_, refusal) => Some(refusal),
                _ => None,
            }
        };
        assert_eq!(judge(&hello(|_| {})), None);
        assert_eq!(judge(&hello(|hello| hello.magic += 1)), Some(Refusal::Magic));
        let later = hello(|hello| hello.version += 1);
        assert_eq!(judge(&later), Some(Refusal::Version));
        assert_eq!(judge(&[&later[..], b"and more"].concat()), Some(Refusal::Version));
        assert_eq!(judge(&hello(|hello| hello.who = Who::Node(7))), Some(Refusal::Stranger));
        assert_eq!(judge(&hello(|_| {})[..20]), Some(Refusal::Malformed));
        assert_eq!(judge(b""), Some(Refusal::Malformed));
        assert_eq!(judge(b"GET / HTTP/1.1"), Some(Refusal::Magic));
    }

    #[test]
    fn a_proof_that_is_sent_back_proves_nothing() {
        let here = cluster(9, 1, &NODES, "a secret");
        let (mut dialer, said) = Greeting::dial(here, (1, 2), ShardId(0), ShardId(2));
        // A listener without the secret returns the dialer's own proof.
        let mut theirs: Hello = whole(&message(&said)[1..]).unwrap();
        (theirs.who, theirs.from, theirs.to, theirs.nonce) = (Who::Node(2), 2, 0, (5, 6));
        let Next::Say(proof) = dialer.received(&[&[HELLO], &encoded(&theirs)[..]].concat()) else {
            panic!("the hello is right");
        };
        assert!(matches!(dialer.received(message(&proof)), Next::Refuse(_, Refusal::Secret)));
    }

    proptest! {
        #[test]
        fn whatever_a_stranger_says_it_never_gets_in(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..MESSAGE_MAX), 1..4),
            first in any::<bool>(),
            kind in 0u8..5,
        ) {
            let mut listener = Greeting::listen(cluster(9, 2, &NODES, "a secret"), (3, 4));
            if first {
                let said = listener.received(&hello(|_| {}));
                prop_assert!(matches!(said, Next::Say(_)), "{said:?}");
            }
            for mut message in messages {
                if let Some(first) = message.first_mut() {
                    *first = kind;
                }
                prop_assert!(!matches!(listener.received(&message), Next::Agreed(..)));
            }
        }
    }
}
