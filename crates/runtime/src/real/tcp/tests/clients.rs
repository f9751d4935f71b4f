//! Clients: they join, call every node, leave, and compete for places.
// Sockets of the standard library stand between a client and a node.
#![allow(clippy::disallowed_types)]

use crate::Tasks;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::*;

/// A cluster with `clients` places for clients, all of whose nodes are connected.
fn visited(shards: &[usize], clients: usize) -> (Plan, Vec<Runtime<Till>>) {
    let (mut plan, listeners) = Plan::new(shards);
    plan.clients = clients;
    let nodes = plan.start_all(listeners);
    (plan, nodes)
}

impl Plan {
    fn client(&self, place: usize) -> Network {
        self.network(Role::Client { place })
    }

    fn visit(&self, place: usize) -> Runtime<Till> {
        visit(self.client(place))
    }
}

fn visit(network: Network) -> Runtime<Till> {
    let makers = vec![Box::new(Till::default) as super::super::super::Maker<Till>];
    Runtime::networked(makers, 1, None, Vec::new(), network).unwrap()
}

/// The traffic of a node with all clients.
fn with_clients(node: &Runtime<Till>) -> Traffic {
    node.traffic().into_iter().find(|traffic| traffic.node.is_none()).expect("the cluster has places")
}

fn refused(client: &Runtime<Till>) -> Refusal {
    let refusal = until("the client is refused", || client.refused());
    until("it has left", || client.traffic().iter().all(|traffic| traffic.connected == 0).then_some(()));
    refusal
}

/// What a shard was told about another shard: connected or not, in order.
fn told(node: &Runtime<Till>, shard: u16, about: u16) -> Vec<bool> {
    let told = channels(node, shard).into_iter().filter(|(peer, _)| peer.0 == about);
    told.map(|(_, connected)| connected).collect()
}

/// A proxy before a node that is closed at first. If a connection breaks on the client's side of
/// it, the node does not notice until the gate is dropped.
struct Gate {
    address: SocketAddr,
    outside: Arc<SegQueue<TcpStream>>,
    inside: Arc<SegQueue<TcpStream>>,
    listener: TcpListener,
    node: SocketAddr,
}

impl Gate {
    fn new(node: SocketAddr) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Gate { address, outside: Arc::default(), inside: Arc::default(), listener, node }
    }

    /// Lets waiting and later connections through. The threads end with the test.
    fn open(&self) {
        let (listener, node) = (self.listener.try_clone().unwrap(), self.node);
        let (outside, inside) = (self.outside.clone(), self.inside.clone());
        start("gate", move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(node)) = (client, TcpStream::connect(node)) else { return };
                let ways = [(&client, &node), (&node, &client)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
                outside.push(client);
                inside.push(node);
                for (mut from, mut to) in ways {
                    start("way", move || drop(io::copy(&mut from, &mut to)));
                }
            }
        });
    }

    /// Breaks all connections, on the client's side.
    fn cut(&self) {
        break_all(&self.outside);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        break_all(&self.inside);
    }
}

fn break_all(streams: &SegQueue<TcpStream>) {
    while let Some(stream) = streams.pop() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
}

#[test]
fn clients_call_all_nodes_and_are_called_but_not_by_each_other() {
    let (plan, nodes) = visited(&[2, 2], 3);
    let clients = [plan.visit(2), plan.visit(0)];
    let shards = [6, 4];
    for (client, &shard) in clients.iter().zip(&shards) {
        all_connected(client);
        assert_eq!((client.shards(), client.first(), client.refused()), (1, ShardId(shard), None));
        let all = client.run_on(ShardId(shard), |env| async move { env.shards() });
        assert_eq!(all, 7);
        assert!((0..4).all(|to| echoes(client, shard, to)));
        let told = channels(client, shard);
        assert_eq!(told.len(), 4);
        assert!(told.iter().all(|&(peer, connected)| peer.0 < 4 && connected), "{told:?}");
    }
    for (node, from) in [(&nodes[0], 0), (&nodes[0], 1), (&nodes[1], 2), (&nodes[1], 3)] {
        assert!(shards.iter().all(|&to| echoes(node, from, to)));
        // A place without a client.
        assert_eq!(call(node, from, 5, Request::Take(0)), Err(Unknown));
    }
    for node in &nodes {
        let traffic = with_clients(node);
        assert_eq!((traffic.pairs, traffic.connected, traffic.resets), (6, 4, 0));
        assert_eq!((traffic.messages_received, traffic.messages_sent), (8, 8));
        assert_eq!(node.refused(), None);
    }
    assert_eq!(call(&clients[0], 6, 4, Request::Take(0)), Err(Unknown));
    assert_eq!(clients[0].traffic().len(), 2);
}

#[test]
fn a_place_that_is_taken_is_refused_and_is_free_when_its_client_is_gone() {
    let (plan, nodes) = visited(&[1, 1], 1);
    let first = plan.visit(0);
    all_connected(&first);
    assert_eq!(refused(&plan.visit(0)), Refusal::PlaceTaken);
    let early = Network { life: 1, ..plan.client(0) };
    assert_eq!(refused(&visit(early)), Refusal::PlaceTaken);
    // Neither the client in the place nor the nodes have noticed anything.
    assert!(echoes(&first, 2, 0) && echoes(&first, 2, 1) && first.refused().is_none());
    assert!(first.traffic().iter().all(|traffic| traffic.resets == 0));

    let (done, result) = std::sync::mpsc::channel();
    nodes[0].spawn_on(ShardId(0), move |env| async move {
        let _ = done.send(env.call(ShardId(2), Request::Take(1)).await);
    });
    assert!(echoes(&nodes[0], 0, 2), "by then the call waits there");
    drop(first);
    assert_eq!(result.recv().unwrap(), Err(Unknown));
    let gone = || nodes.iter().all(|node| with_clients(node).connected == 0).then_some(());
    until("both nodes have noticed", gone);
    for (node, shard) in nodes.iter().zip([0, 1]) {
        assert_eq!(told(node, shard, 2), [true, false]);
    }
    let early = Network { life: 1, ..plan.client(0) };
    assert_eq!(refused(&visit(early)), Refusal::Superseded);

    let second = plan.visit(0);
    all_connected(&second);
    assert!(echoes(&second, 2, 0) && echoes(&nodes[1], 1, 2));
    assert_eq!(told(&nodes[0], 0, 2), [true, false, true]);
}

#[test]
fn a_timestamp_that_was_refused_is_warned_of_once_with_the_address_of_who_has_named_it() {
    logs::keep();
    let (plan, nodes) = visited(&[1], 52);
    let client = plan.visit(51);
    all_connected(&client);
    let me = client.first();
    let name = |seconds: u64| {
        client.run_on(me, move |env| async move {
            env.send(ShardId(0), Request::Stamp(seconds * 1_000_000_000));
            // It has arrived, and the next turn has begun.
            for _ in 0..2 {
                env.call(ShardId(0), Request::Echo(Vec::new())).await.unwrap();
            }
        });
    };
    name(3600);
    logs::wait_for(&["WARN", "with=client 51", "address=127.0.0.1:", "timestamp that is 3600.0s ahead"]);
    name(7200);
    assert!(!logs::has(&["with=client 51", "7200.0s ahead"]), "once is enough for a minute");
    drop(nodes);
}

#[test]
fn a_client_that_leaves_is_nothing_to_warn_of() {
    logs::keep();
    let (plan, _nodes) = visited(&[1], 42);
    let client = plan.visit(41);
    all_connected(&client);
    drop(client);
    logs::wait_for(&["INFO", "with=client 41", "connection closed: the other side closed it"]);
    assert!(!logs::has(&["WARN", "with=client 41"]));
}

#[test]
fn a_client_that_has_lost_its_connections_finds_its_place_kept() {
    let (mut plan, nodes) = visited(&[2], 1);
    let gate = Gate::new(plan.socket(0));
    gate.open();
    plan.nodes[0].address = gate.address.into();
    let client = plan.visit(0);
    all_connected(&client);
    gate.cut();
    // The node takes the client for connected.
    until("both connections were made again", || {
        let there = with_clients(&nodes[0]);
        (there.resets == 2 && there.connected == 2).then_some(())
    });
    assert_eq!(with_clients(&nodes[0]).last_reset, Some(Closed::Replaced));
    all_connected(&client);
    assert_eq!((client.refused(), traffic(&client, 0).resets), (None, 2));
    assert!((0..2).all(|to| echoes(&client, 2, to) && told(&nodes[0], to, 2) == [true, false, true]));
}

/// Two clients in one place: the first is connected to node 0 and the second to node 1, and gates
/// keep them from the other nodes.
fn rivals(plan: &Plan) -> [(Runtime<Till>, Gate); 2] {
    [(0, 1), (1, 0)].map(|(near, far)| {
        let mut network = plan.client(3);
        let gate = Gate::new(plan.socket(far as u16));
        network.nodes[far].address = gate.address.into();
        let client = visit(network);
        until("the client has its place", || (traffic(&client, near as u16).connected == 1).then_some(()));
        (client, gate)
    })
}

#[test]
fn a_client_that_one_node_has_refused_leaves_the_others() {
    let (plan, nodes) = visited(&[1, 1], 4);
    let [(first, to_second_node), (second, to_first_node)] = rivals(&plan);
    to_second_node.open();
    assert_eq!(refused(&first), Refusal::PlaceTaken);
    assert_eq!(traffic(&first, 0).last_reset, Some(Closed::Refused));
    assert_eq!(call(&first, 5, 0, Request::Take(0)), Err(Unknown));
    assert_eq!(told(&first, 5, 0), [true, false]);
    until("the first has gone", || (with_clients(&nodes[0]).connected == 0).then_some(()));
    // So the second client is alone, and gets the place at both nodes.
    to_first_node.open();
    all_connected(&second);
    assert!(echoes(&second, 5, 0) && echoes(&second, 5, 1));
    assert_eq!((told(&nodes[0], 0, 5), told(&nodes[1], 1, 5)), (vec![true, false, true], vec![true]));
}

#[test]
fn of_two_clients_that_meet_in_one_place_at_most_one_stays() {
    let (plan, nodes) = visited(&[1, 1], 4);
    let rivals = rivals(&plan);
    rivals.iter().for_each(|(_, gate)| gate.open());
    let here = |client: &Runtime<Till>| client.traffic().iter().map(|node| node.connected).sum::<usize>();
    until("at most one is left", || {
        let over = |client: &Runtime<Till>| client.refused().is_some() && here(client) == 0;
        match rivals.iter().filter(|(client, _)| !over(client)).collect::<Vec<_>>()[..] {
            [] => Some(()),
            [(winner, _)] => (here(winner) == 2).then_some(()),
            _ => None,
        }
    });
    for (node, shard) in nodes.iter().zip([0, 1]) {
        // One client after the other.
        assert!(told(node, shard, 5).chunks(2).all(|two| [&[true, false][..], &[true]].contains(&two)));
    }
    drop(rivals);
    let gone = || nodes.iter().all(|node| with_clients(node).connected == 0).then_some(());
    until("all have gone", gone);
    let next = plan.visit(3);
    all_connected(&next);
}
