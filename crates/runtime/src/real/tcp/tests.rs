//! Nodes of a cluster in one process, over loopback.
//!
//! The participant of every shard is a till that counts, answers, lets some requests wait, and
//! notes what it is told about its channels. Strangers and impostors are in `hostile`, clients in
//! `clients`.

mod clients;
mod hostile;
mod logs;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll_types::Timestamp;
use plimsoll_types::wire::{Input, Malformed, Sink, blob, take_blob};

use super::super::Runtime;
use super::*;
use crate::{Env, Handled, Messages, Suspect, Tasks, Unknown};
use plimsoll_types::Ticket;

/// A sum that requests add to and take from. A request for more than there is waits.
#[derive(Default)]
pub(super) struct Till {
    sum: u64,
    waiting: Vec<Ticket>,
    released: Vec<Ticket>,
    /// The next number expected from each task of each shard.
    next: BTreeMap<(ShardId, u64), u64>,
    /// Connects and resets of its channels, in order.
    channels: Vec<(ShardId, bool)>,
    /// Who has named a timestamp that was refused.
    suspect: Option<Suspect>,
}

pub(super) enum Request {
    Put(u64),
    Take(u64),
    /// Puts 1. The requests of a task have to arrive in the order of their numbers.
    Next {
        task: u64,
        number: u64,
    },
    Echo(Vec<u8>),
    /// A timestamp that is so many nanoseconds ahead.
    Stamp(u64),
}

impl Wire for Request {
    fn encode(&self, out: &mut impl Sink) {
        match self {
            Request::Put(n) => (0u8, *n).encode(out),
            Request::Take(n) => (1u8, *n).encode(out),
            Request::Next { task, number } => (2u8, *task, *number).encode(out),
            Request::Echo(bytes) => {
                3u8.encode(out);
                blob(bytes, out);
            }
            Request::Stamp(ahead_ns) => (4u8, *ahead_ns).encode(out),
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(input)? {
            0 => Request::Put(u64::decode(input)?),
            1 => Request::Take(u64::decode(input)?),
            2 => Request::Next { task: u64::decode(input)?, number: u64::decode(input)? },
            3 => Request::Echo(take_blob(input)?.to_vec()),
            4 => Request::Stamp(u64::decode(input)?),
            _ => return Err(Malformed("no such request")),
        })
    }
}

impl Messages for Till {
    type Request = Request;
    type Reply = Vec<u8>;
}

impl Participant for Till {
    fn handle(&mut self, from: ShardId, request: &mut Request, ticket: Ticket) -> Handled<Vec<u8>> {
        match request {
            Request::Put(n) => {
                self.sum += *n;
                self.released.append(&mut self.waiting);
                Handled::Done
            }
            Request::Next { task, number } => {
                let next = self.next.entry((from, *task)).or_default();
                assert_eq!(*next, *number, "messages arrive in the order in which they were sent, and once");
                *next += 1;
                self.sum += 1;
                self.released.append(&mut self.waiting);
                Handled::Done
            }
            Request::Take(n) if *n <= self.sum => {
                self.sum -= *n;
                Handled::Reply(self.sum.to_le_bytes().to_vec())
            }
            Request::Take(_) => {
                self.waiting.push(ticket);
                Handled::Wait
            }
            Request::Echo(bytes) => Handled::Reply(std::mem::take(bytes)),
            Request::Stamp(ahead_ns) => {
                self.suspect = Some(Suspect { from, ahead_ns: *ahead_ns });
                Handled::Done
            }
        }
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.released
    }

    fn suspect(&mut self) -> Option<Suspect> {
        self.suspect.take()
    }

    fn pass(&mut self, _: Timestamp) {}

    fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        self.channels.push((peer, life.is_some()));
    }

    fn outgoing(&mut self, _: &mut Vec<(ShardId, Request)>) {}
    fn park(&mut self) {}
}

/// The configuration of a cluster.
struct Plan {
    nodes: Vec<Address>,
    clients: usize,
    /// Whether nodes forget what they held when they end.
    volatile: bool,
    secret: Option<Vec<u8>>,
    silence: Duration,
}

impl Plan {
    /// Node `i` has `shards[i]` shards. Also returns the listeners of the nodes.
    fn new(shards: &[usize]) -> (Plan, Vec<TcpListener>) {
        let listeners: Vec<TcpListener> =
            shards.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let address = |(node, (listener, &shards)): (usize, (&TcpListener, &usize))| Address {
            id: node as u16,
            address: listener.local_addr().unwrap().into(),
            shards,
        };
        let nodes = listeners.iter().zip(shards).enumerate().map(address).collect();
        // Long, so that no node is given up because the machine was busy.
        (
            Plan { nodes, clients: 0, volatile: false, secret: None, silence: Duration::from_secs(60) },
            listeners,
        )
    }

    fn network(&self, role: Role) -> Network {
        let life = Clock::new().now().0;
        // Nodes that keep what they hold have met before.
        let met = match self.volatile {
            true => Vec::new(),
            false => self.nodes.iter().map(|node| (node.id, 1)).collect(),
        };
        Network {
            cluster: 7,
            role,
            nodes: self.nodes.clone(),
            clients: self.clients,
            life,
            memory: if self.volatile { life } else { 1 },
            goes_back: false,
            met,
            secret: self.secret.clone(),
            silence: self.silence,
            clock: Clock::new(),
            clock_limit: None,
        }
    }

    fn start(&self, node: u16, listener: TcpListener) -> Runtime<Till> {
        self.start_with(node, listener, Clock::new())
    }

    fn start_with(&self, node: u16, listener: TcpListener, clock: Clock) -> Runtime<Till> {
        let shards = self.nodes[usize::from(node)].shards;
        let makers = (0..shards).map(|_| Box::new(Till::default) as super::super::Maker<Till>);
        let network = Network { clock, ..self.network(Role::Member { node, listener }) };
        Runtime::networked(makers.collect(), 1, None, Vec::new(), network).unwrap()
    }

    /// Starts all nodes and waits until they are connected.
    fn start_all(&self, listeners: Vec<TcpListener>) -> Vec<Runtime<Till>> {
        let listeners = listeners.into_iter().enumerate();
        let nodes: Vec<_> = listeners.map(|(node, listener)| self.start(node as u16, listener)).collect();
        nodes.iter().for_each(all_connected);
        nodes
    }

    /// The address of a node that has no name.
    fn socket(&self, node: u16) -> SocketAddr {
        self.nodes[usize::from(node)].address.socket().expect("it is an address")
    }

    /// Starts a node again at its address.
    fn start_again(&self, node: u16) -> Runtime<Till> {
        let address = self.socket(node);
        let listener = until("the address is free again", || TcpListener::bind(address).ok());
        self.start(node, listener)
    }
}

/// A cluster, all of whose nodes are connected.
fn cluster(shards: &[usize]) -> (Plan, Vec<Runtime<Till>>) {
    let (plan, listeners) = Plan::new(shards);
    let nodes = plan.start_all(listeners);
    (plan, nodes)
}

/// Waits for something that has to happen, as long as the slowest machine may need.
fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(result) = happened() {
            return result;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn all_connected(runtime: &Runtime<Till>) {
    until("all nodes are connected", || {
        let traffic = runtime.traffic();
        let mut nodes = traffic.iter().filter(|traffic| traffic.node.is_some());
        nodes.all(|traffic| traffic.connected == traffic.pairs).then_some(())
    });
}

fn traffic(runtime: &Runtime<Till>, node: u16) -> Traffic {
    let mut all = runtime.traffic().into_iter();
    all.find(|traffic| traffic.node == Some(node)).expect("the node is another of the cluster")
}

/// The result of a call from a shard of this runtime.
fn call(runtime: &Runtime<Till>, from: u16, to: u16, request: Request) -> Result<Vec<u8>, Unknown> {
    runtime.run_on(ShardId(from), move |env| async move { env.call(ShardId(to), request).await })
}

fn echoes(runtime: &Runtime<Till>, from: u16, to: u16) -> bool {
    call(runtime, from, to, Request::Echo(b"hello".to_vec())) == Ok(b"hello".to_vec())
}

fn channels(runtime: &Runtime<Till>, shard: u16) -> Vec<(ShardId, bool)> {
    runtime.run_on(ShardId(shard), |env| async move { env.local(|till| till.channels.clone()) })
}

#[test]
fn calls_reach_shards_of_other_nodes_and_wait_until_they_can_be_answered() {
    let (_, nodes) = cluster(&[2, 1]);
    assert_eq!((nodes[0].shards(), nodes[0].first(), nodes[1].first()), (2, ShardId(0), ShardId(2)));
    nodes[0].spawn_on(ShardId(1), |env| async move {
        assert_eq!(env.shards(), 3);
        for _ in 0..10 {
            env.sleep(100_000).await;
            env.send(ShardId(2), Request::Put(1));
            env.send(ShardId(0), Request::Put(1));
        }
    });
    let zero = 0u64.to_le_bytes().to_vec();
    assert_eq!(call(&nodes[0], 0, 2, Request::Take(10)), Ok(zero.clone()));
    assert_eq!(call(&nodes[1], 2, 0, Request::Take(10)), Ok(zero));
    assert!(echoes(&nodes[1], 2, 1));
    assert_eq!(channels(&nodes[1], 2).len(), 2);
}

#[test]
fn many_senders_lose_nothing_and_stay_in_order() {
    const TASKS: u64 = 20;
    const MESSAGES: u64 = 200;
    let (_, nodes) = cluster(&[1, 2, 1]);
    let shards = 4;
    for runtime in &nodes {
        for shard in (0..runtime.shards() as u16).map(|place| runtime.first().0 + place) {
            for task in 0..TASKS {
                runtime.spawn_on(ShardId(shard), move |env| async move {
                    for number in 0..MESSAGES {
                        for to in (0..shards).map(ShardId) {
                            env.send(to, Request::Next { task, number });
                        }
                        if env.random().is_multiple_of(4) {
                            env.pause().await;
                        }
                    }
                });
            }
        }
    }
    let sent = u64::from(shards) * TASKS * MESSAGES;
    for (runtime, shard) in [(&nodes[0], 0), (&nodes[1], 1), (&nodes[1], 2), (&nodes[2], 3)] {
        let left = call(runtime, shard, shard, Request::Take(sent));
        assert_eq!(left, Ok(0u64.to_le_bytes().to_vec()));
    }
    for runtime in &nodes {
        for other in runtime.traffic() {
            assert_eq!((other.resets, other.last_reset), (0, None));
            assert_eq!(other.messages_sent, other.pairs as u64 * TASKS * MESSAGES);
            assert_eq!(other.messages_received, other.messages_sent);
        }
    }
}

#[test]
fn large_messages_cross_each_other_without_a_deadlock() {
    const BYTES: usize = 5 << 20;
    let (_, nodes) = cluster(&[1, 1]);
    let echo = |runtime: &Runtime<Till>, from: u16, to: u16| {
        let (done, result) = std::sync::mpsc::channel();
        runtime.spawn_on(ShardId(from), move |env| async move {
            let bytes: Vec<Vec<u8>> = (0..8).map(|n| vec![n; BYTES + usize::from(n)]).collect();
            // All calls are on their way before the first answer is awaited.
            let calls: Vec<_> =
                bytes.iter().map(|bytes| env.call(ShardId(to), Request::Echo(bytes.clone()))).collect();
            for (call, bytes) in calls.into_iter().zip(bytes) {
                let _ = done.send(call.await == Ok(bytes));
            }
        });
        result
    };
    let (there, back) = (echo(&nodes[0], 0, 1), echo(&nodes[1], 1, 0));
    assert!(there.iter().chain(back.iter()).all(|right| right));
    until("nothing waits any more", || (traffic(&nodes[0], 1).bytes_waiting == 0).then_some(()));
}

#[test]
fn a_node_that_dies_fails_its_calls_and_is_found_again() {
    // The node that is dialed, then the node that dials.
    for victim in [1, 0] {
        let (plan, mut nodes) = cluster(&[1, 1]);
        let dead = nodes.remove(victim);
        let alive = &nodes[0];
        let (victim, survivor) = (victim as u16, 1 - victim as u16);
        let (done, result) = std::sync::mpsc::channel();
        alive.spawn_on(ShardId(survivor), move |env| async move {
            let calls: Vec<_> = (0..3).map(|_| env.call(ShardId(victim), Request::Take(1))).collect();
            for call in calls {
                let _ = done.send(call.await);
            }
        });
        assert!(echoes(alive, survivor, victim), "by then the calls wait there");
        drop(dead);
        assert!(result.iter().all(|outcome| outcome == Err(Unknown)));
        assert!(matches!(traffic(alive, victim).last_reset, Some(Closed::Ended | Closed::Failed)));
        for _ in 0..3 {
            assert_eq!(call(alive, survivor, victim, Request::Take(0)), Err(Unknown));
        }

        let again = plan.start_again(victim);
        all_connected(alive);
        all_connected(&again);
        assert!(echoes(alive, survivor, victim) && echoes(&again, victim, survivor));
        let peer = ShardId(victim);
        assert_eq!(channels(alive, survivor), [(peer, true), (peer, false), (peer, true)]);
        assert_eq!(channels(&again, victim), [(ShardId(survivor), true)]);
    }
}

#[test]
fn a_request_that_waits_is_answered_to_nobody_after_a_reset() {
    let (plan, mut nodes) = cluster(&[1, 1]);
    nodes[0].spawn_on(ShardId(0), |env| async move {
        let _ = env.call(ShardId(1), Request::Take(5)).await;
    });
    assert!(echoes(&nodes[0], 0, 1), "by then the call waits there");
    drop(nodes.remove(0));
    let again = plan.start_again(0);
    all_connected(&again);
    let alive = &nodes[0];
    let pending = alive.run_on(ShardId(1), |env| async move { env.pending().requests });
    assert_eq!(pending, 1, "it still waits");
    // The new life's call has the same number as the old one's, and another answer.
    let (done, result) = std::sync::mpsc::channel();
    again.spawn_on(ShardId(0), move |env| async move {
        let _ = done.send(env.call(ShardId(1), Request::Take(2)).await);
    });
    assert!(echoes(&again, 0, 1));
    alive.run_on(ShardId(1), |env| async move { env.send(ShardId(1), Request::Put(8)) });
    let left = u64::from_le_bytes(result.recv().unwrap().unwrap().try_into().unwrap());
    assert!([1, 6].contains(&left), "the answer is to the second call: {left}");
    assert!(echoes(&again, 0, 1));
    assert_eq!(traffic(&again, 1).resets, 0);
}

#[test]
fn a_node_that_has_lost_what_it_held_is_not_let_in_again_by_those_who_knew_it() {
    let (mut plan, listeners) = Plan::new(&[1, 1]);
    (plan.volatile, plan.clients) = (true, 1);
    let mut listeners = listeners.into_iter();
    let first = plan.start(0, listeners.next().unwrap());
    let visit = |plan: &Plan| {
        let makers = vec![Box::new(Till::default) as super::super::Maker<Till>];
        let network = plan.network(Role::Client { place: 0 });
        Runtime::networked(makers, 1, None, Vec::new(), network).unwrap()
    };
    let early = visit(&plan);
    assert_eq!(until("it is refused", || early.refused()), Refusal::NotOpen);
    drop(early);
    let second = plan.start(1, listeners.next().unwrap());
    all_connected(&first);
    all_connected(&second);
    all_connected(&visit(&plan));
    // The other node lives on. A connection to it may break and be made again, but not to a new
    // life.
    drop(second);
    let again = plan.start_again(1);
    thread::sleep(Duration::from_millis(500));
    assert_eq!((traffic(&first, 1).connected, traffic(&again, 0).connected), (0, 0));
    let late = visit(&plan);
    assert_eq!(until("it is refused", || late.refused()), Refusal::NotOpen, "by the one that came back");
    // When no node is left that has met the old life, all begin anew.
    drop((first, late));
    let first = plan.start_again(0);
    all_connected(&first);
    all_connected(&again);
}

#[test]
fn a_second_process_with_the_number_of_a_node_that_runs_is_told_so_and_where_that_runs() {
    logs::keep();
    let (mut plan, mut listeners) = Plan::new(&[1, 1]);
    plan.volatile = true;
    let there = plan.start(1, listeners.pop().unwrap());
    let first = plan.start(0, listeners.pop().unwrap());
    all_connected(&first);
    all_connected(&there);
    let [runs, refuses] = [0, 1].map(|node: usize| plan.nodes[node].address.to_string());
    let reason = format!("node 0 is alive and connected, at {runs}");
    // Both sides log it: the process that dials and is refused, ...
    let second = plan.start(0, TcpListener::bind("127.0.0.1:0").unwrap());
    logs::wait_for(&[&format!("address={refuses}"), "it refuses this side", &reason, "a number of its own"]);
    // ... and the node that refuses it.
    logs::wait_for(&["handshake came to nothing: refused", &reason]);
    assert!(!logs::has(&[&refuses, "start all nodes"]), "nothing is lost");
    assert_eq!(traffic(&second, 1).connected, 0);
    assert_eq!((traffic(&first, 1).connected, traffic(&first, 1).resets), (1, 0), "it has noticed nothing");
    assert!(echoes(&first, 0, 1) && echoes(&there, 1, 0));
    // Once the first process is gone, its data is gone too.
    drop(first);
    logs::wait_for(&[
        &format!("address={refuses}"),
        "it refuses this side",
        "start all nodes of the cluster again",
    ]);
    assert_eq!(traffic(&second, 1).connected, 0);
}

#[test]
fn a_second_process_with_the_highest_number_hears_it_though_nobody_dials_it() {
    logs::keep();
    let (mut plan, listeners) = Plan::new(&[1, 1]);
    plan.volatile = true;
    let nodes = plan.start_all(listeners);
    let [asked, runs] = [0, 1].map(|node: usize| plan.nodes[node].address.to_string());
    let second = plan.start(1, TcpListener::bind("127.0.0.1:0").unwrap());
    let reason = format!("node 1 is alive and connected, at {runs}");
    logs::wait_for(&["WARN", &format!("address={asked}"), "it refuses this side", &reason]);
    logs::wait_for(&["WARN", "handshake came to nothing: refused", &reason]);
    assert_eq!((traffic(&second, 0).connected, traffic(&nodes[0], 1).resets), (0, 0));
    assert!(echoes(&nodes[0], 0, 1) && echoes(&nodes[1], 1, 0));
}

#[test]
fn nodes_find_each_other_by_the_names_of_their_hosts() {
    logs::keep();
    let (mut plan, mut listeners) = Plan::new(&[2, 1]);
    for node in &mut plan.nodes {
        node.address = format!("localhost:{}", node.address.port()).parse().unwrap();
    }
    let port = plan.nodes[1].address.port();
    drop(listeners.pop());
    // The first dials before the second listens, and a client finds both.
    let first = plan.start(0, listeners.pop().unwrap());
    let listener = until("the port is free", || TcpListener::bind(("127.0.0.1", port)).ok());
    let second = plan.start(1, listener);
    [&first, &second].into_iter().for_each(all_connected);
    assert!(echoes(&first, 0, 2) && echoes(&second, 2, 1));
    // A name that means nothing is an address at which nobody answers.
    let mut nowhere = Plan { nodes: plan.nodes.clone(), ..Plan::new(&[]).0 };
    nowhere.nodes[1].address = "nowhere.invalid:1".parse().unwrap();
    let lost = nowhere.start(0, TcpListener::bind("127.0.0.1:0").unwrap());
    logs::wait_for(&["address=nowhere.invalid:1", "the name nowhere.invalid has no address"]);
    assert_eq!(traffic(&lost, 1).connected, 0);
}

#[test]
fn who_is_not_dialed_and_asks_why_hears_whose_turn_it_is() {
    logs::keep();
    let (plan, mut listeners) = Plan::new(&[1, 1]);
    // The first node has a wrong address for the second, where no process listens.
    let mut wrong = Plan { nodes: plan.nodes.clone(), ..Plan::new(&[]).0 };
    wrong.nodes[1].address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().into();
    let second = plan.start(1, listeners.pop().unwrap());
    let _first = wrong.start(0, listeners.pop().unwrap());
    let address = format!("address={}", plan.nodes[0].address);
    logs::wait_for(&["WARN", &address, "is alive and has not dialed this node"]);
    assert_eq!(traffic(&second, 0).connected, 0);
    // That the wrong address does not answer is no warning at first, and one after a while.
    let address = format!("address={}", wrong.nodes[1].address);
    assert!(logs::has(&["INFO", &address, "cannot be reached yet"]));
    logs::wait_for(&["WARN", &address, "cannot be reached, trying again and again"]);
}

#[test]
fn of_two_processes_with_one_number_the_later_is_believed_if_nodes_keep_what_they_held() {
    let (plan, mut listeners) = Plan::new(&[1, 1]);
    let there = plan.start(1, listeners.pop().unwrap());
    let first = plan.start(0, listeners.pop().unwrap());
    all_connected(&first);
    all_connected(&there);
    let second = plan.start(0, TcpListener::bind("127.0.0.1:0").unwrap());
    all_connected(&second);
    until("the first has noticed", || (traffic(&first, 1).connected == 0).then_some(()));
    assert!(echoes(&second, 0, 1) && echoes(&there, 1, 0));
    // The first process dials again, several times, and is refused.
    thread::sleep(Duration::from_millis(500));
    assert_eq!((traffic(&first, 1).connected, traffic(&first, 1).resets), (0, 1));
    assert_eq!(traffic(&there, 0).last_reset, Some(Closed::Replaced));
    assert_eq!((traffic(&there, 0).connected, traffic(&there, 0).resets), (1, 1));
    assert_eq!(channels(&there, 1), [(ShardId(0), true), (ShardId(0), false), (ShardId(0), true)]);
    drop(second);
    all_connected(&first);
    assert!(echoes(&first, 0, 1));
}

#[test]
fn heartbeats_tell_how_far_clocks_are_apart_and_which_is_ahead() {
    for ahead in [0, 3_000_000_000, -3_000_000_000] {
        let (plan, listeners) = Plan::new(&[1, 1]);
        let right = Clock::new();
        let clocks = [right, Clock::with_offset(right.offset().saturating_add_signed(ahead))];
        let starts = (0..).zip(listeners).zip(clocks);
        let nodes: Vec<_> =
            starts.map(|((node, listener), clock)| plan.start_with(node, listener, clock)).collect();
        for (here, there, ahead) in [(0, 1, ahead), (1, 0, -ahead)] {
            // The two numbers are read one after the other: wait until they belong to the same
            // estimate.
            until("a beat was answered, and the error is within half of the round trip", || {
                let traffic = traffic(&nodes[here], there);
                let (said_ns, round_trip_ns) = traffic.ahead_ns.zip(traffic.round_trip_ns)?;
                assert!(said_ns.abs_diff(ahead) < 1_000_000_000, "{said_ns} ns instead of {ahead} ns");
                (said_ns.abs_diff(ahead) <= round_trip_ns / 2 + 1).then_some(())
            });
        }
    }
}

#[test]
fn a_node_that_stops_lets_go_what_it_has_sent() {
    let (_, mut nodes) = cluster(&[1, 1]);
    let first = nodes.remove(0);
    first.run_on(ShardId(0), |env| async move {
        for _ in 0..1000 {
            env.send(ShardId(1), Request::Put(1));
        }
    });
    drop(first);
    assert!(call(&nodes[0], 1, 1, Request::Take(1000)).is_ok());
}

#[test]
fn what_cannot_be_a_cluster_is_an_error_and_not_a_panic() {
    let (plan, mut listeners) = Plan::new(&[2]);
    let network = plan.network(Role::Member { node: 0, listener: listeners.pop().unwrap() });
    let makers = vec![Box::new(Till::default) as super::super::Maker<Till>];
    let error = Runtime::networked(makers, 1, None, Vec::new(), network).err().expect("it is refused");
    assert_eq!(error.to_string(), "node 0 is listed with 2 shards and has 1");
}
