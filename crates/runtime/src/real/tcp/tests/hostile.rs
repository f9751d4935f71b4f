//! Strangers, impostors, and nodes gone mad: raw sockets against a node of a cluster.
//!
//! Node 1 is under attack, and node 2 is its friend. The attacker acts in the name of node 0, which
//! does not run. In every test the channel between node 1 and its friend must stay undisturbed.
// A socket and a thread of the standard library play the other side.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use crate::Tasks;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::super::cluster::Who;
use super::super::frame::{Codec, HEAD};
use super::super::hello::{Greeting, Hello, Next};
use super::super::link::{HELD_BACK, TURN};
use super::*;
use crate::shard::Message;

/// The node under attack and its friend. Each has one shard, as has the attacker.
struct Scene {
    plan: Plan,
    node: Runtime<Till>,
    friend: Runtime<Till>,
}

const ATTACKER: u16 = 0;
const NODE: u16 = 1;
const FRIEND: u16 = 2;

fn scene(change: impl FnOnce(&mut Plan)) -> Scene {
    let (mut plan, mut listeners) = Plan::new(&[1, 1, 1]);
    change(&mut plan);
    let friend = plan.start(FRIEND, listeners.pop().unwrap());
    let node = plan.start(NODE, listeners.pop().unwrap());
    until("node and friend are connected", || (traffic(&node, FRIEND).connected == 1).then_some(()));
    Scene { plan, node, friend }
}

fn member(node: u16) -> Role {
    Role::Member { node, listener: TcpListener::bind("127.0.0.1:0").unwrap() }
}

impl Scene {
    /// A socket that is connected to the node, without a handshake.
    fn knock(&self) -> TcpStream {
        let stream = TcpStream::connect(self.plan.socket(NODE)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// A node's hello, with its configuration changed.
    fn hello(&self, change: impl FnOnce(&mut Network)) -> (Greeting, Vec<u8>) {
        let mut network = self.plan.network(member(ATTACKER));
        network.life = 1000;
        change(&mut network);
        let cluster = Arc::new(Cluster::new(&network, 1).unwrap());
        let shard = ShardId(cluster.own().start as u16);
        Greeting::dial(cluster, (1, 2), shard, ShardId(NODE))
    }

    /// A connection that has passed the handshake.
    fn enter(&self) -> TcpStream {
        self.try_enter().expect("the node answers")
    }

    /// The same; `None` if the node has closed the connection before, as it does when many knock.
    fn try_enter(&self) -> Option<TcpStream> {
        let mut stream = self.knock();
        let (greeting, hello) = self.hello(|_| {});
        let next = try_converse(&mut stream, greeting, hello)?;
        assert!(matches!(next, Next::Agreed(..)), "{next:?}");
        until("the shard has taken the connection", || {
            (traffic(&self.node, ATTACKER).connected == 1).then_some(())
        });
        Some(stream)
    }

    /// Why the node has closed the attacker's connection.
    fn closed(&self, mut stream: TcpStream) -> Closed {
        until_end(&mut stream);
        until("the reset was counted", || (traffic(&self.node, ATTACKER).connected == 0).then_some(()));
        traffic(&self.node, ATTACKER).last_reset.expect("there was a reset")
    }
}

impl Drop for Scene {
    /// The channel between the node and its friend is undisturbed.
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        assert!(echoes(&self.node, NODE, FRIEND) && echoes(&self.friend, FRIEND, NODE));
        assert_eq!((traffic(&self.node, FRIEND).resets, traffic(&self.friend, NODE).resets), (0, 0));
        assert_eq!(channels(&self.node, NODE).iter().filter(|(peer, _)| peer.0 == FRIEND).count(), 1);
    }
}

/// Reads to the end and ignores the content.
fn until_end(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the node closes the connection: {error}"),
        }
    }
}

/// Reads a message of a handshake; `None` at the end of the stream.
fn hear(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

/// Plays the dialer's side of a handshake.
fn converse(stream: &mut TcpStream, greeting: Greeting, hello: Vec<u8>) -> Next {
    try_converse(stream, greeting, hello).expect("the node answers")
}

/// The same; `None` if the node closes the connection.
fn try_converse(stream: &mut TcpStream, mut greeting: Greeting, hello: Vec<u8>) -> Option<Next> {
    stream.write_all(&hello).ok()?;
    loop {
        let message = hear(stream)?;
        match greeting.received(&message) {
            Next::Say(bytes) => stream.write_all(&bytes).ok()?,
            other => return Some(other),
        }
    }
}

/// Ends those who knock when it goes out of scope, also if the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Sends bytes; returns the refusal that the node answers.
fn refusal(scene: &Scene, bytes: &[u8]) -> Refusal {
    let mut stream = scene.knock();
    stream.write_all(bytes).unwrap();
    let message = hear(&mut stream).expect("the node says why");
    until_end(&mut stream);
    assert_eq!(message[0], 3, "a refusal");
    plimsoll_types::wire::whole(&message[1..]).unwrap()
}

fn frame(number: u64, messages: &[Message<Till>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    (Codec::new().encode)(messages, &mut number.clone(), &mut bytes).unwrap();
    bytes
}

fn put(n: u64) -> Message<Till> {
    Message::Tell { request: Request::Put(n) }
}

/// A frame with this content, whatever it is, and the right checksum.
fn around(content: &[u8]) -> Vec<u8> {
    let mut bytes = frame(0, &[]);
    bytes.extend_from_slice(content);
    let checksum = crc32c::crc32c(&bytes[HEAD..]);
    let length = (bytes.len() - HEAD) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes[4..HEAD].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn whatever_is_no_frame_closes_its_connection_with_the_reason() {
    logs::keep();
    let scene = scene(|_| {});
    let changed = |at: usize| {
        let mut bytes = frame(0, &[put(1)]);
        bytes[at] ^= 0x40;
        bytes
    };
    let cases = [
        (changed(HEAD + 8), Closed::Checksum),
        (changed(HEAD), Closed::Checksum),
        (changed(5), Closed::Checksum),
        (vec![0xff; 100], Closed::Length),
        (vec![0; 100], Closed::Length),
        ((FRAME_MAX as u32 + 1).to_le_bytes().to_vec(), Closed::Length),
        (frame(1, &[put(1)]), Closed::Number),
        ([frame(0, &[put(1)]), frame(0, &[put(1)])].concat(), Closed::Number),
        (around(&[77]), Closed::Malformed),
        (around(&[2, 9]), Closed::Malformed),
        (around(&[3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), Closed::Malformed),
        (frame(0, &[Message::Reply { call: 3, reply: Vec::new() }]), Closed::Rule),
        (frame(0, &[Message::Call { call: 0, request: Request::Put(1) }]), Closed::Rule),
    ];
    let number = cases.len() as u64;
    for (bytes, reason) in cases {
        let mut stream = scene.enter();
        let address = format!("address={}", stream.local_addr().unwrap());
        stream.write_all(&bytes).unwrap();
        assert_eq!(scene.closed(stream), reason, "{bytes:?}");
        let said = match reason {
            Closed::Checksum => "a frame whose checksum is wrong",
            Closed::Length => "a frame of an impossible length",
            Closed::Number => "a frame out of turn",
            Closed::Malformed => "a frame that is malformed: ",
            _ => "a message against the rules: ",
        };
        let closed = format!("connection closed: {said}");
        assert!(logs::has(&["WARN", &closed, "with=node 0", &address]), "{closed:?} of {address} is logged");
    }
    assert_eq!(traffic(&scene.node, ATTACKER).resets, number);
}

#[test]
fn a_frame_that_breaks_off_is_not_handled() {
    let scene = scene(|_| {});
    let bytes = [frame(0, &[put(1)]), frame(1, &[put(10)])].concat();
    let mut stream = scene.enter();
    stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(scene.closed(stream), Closed::Ended);
    let sum = scene.node.run_on(ShardId(NODE), |env| async move { env.local(|till| till.sum) });
    assert_eq!(sum, 1, "the frame that was whole, and no other");
}

#[test]
fn frames_in_small_pieces_are_frames() {
    let scene = scene(|_| {});
    let mut stream = scene.enter();
    stream.set_nodelay(true).unwrap();
    let bytes: Vec<u8> = (0..10).flat_map(|number| frame(number, &[put(1), put(2)])).collect();
    for piece in bytes.chunks(7) {
        stream.write_all(piece).unwrap();
    }
    assert!(call(&scene.node, NODE, NODE, Request::Take(30)).is_ok());
    drop(stream);
}

#[test]
fn nobody_answers_calls_made_to_another() {
    let scene = scene(|_| {});
    let (done, result) = std::sync::mpsc::channel();
    scene.node.spawn_on(ShardId(NODE), move |env| async move {
        let _ = done.send(env.call(ShardId(FRIEND), Request::Take(1)).await);
    });
    assert!(echoes(&scene.node, NODE, FRIEND), "by then the call waits there");
    let forged: Vec<_> = (0..8).map(|call| Message::Reply { call, reply: b"forged".to_vec() }).collect();
    let mut stream = scene.enter();
    stream.write_all(&frame(0, &forged)).unwrap();
    assert_eq!(scene.closed(stream), Closed::Rule);
    assert!(result.try_recv().is_err(), "the call still waits");
    scene.friend.run_on(ShardId(FRIEND), |env| async move { env.send(ShardId(FRIEND), Request::Put(1)) });
    assert_eq!(result.recv().unwrap(), Ok(0u64.to_le_bytes().to_vec()));
}

#[test]
fn a_call_is_answered_once() {
    let scene = scene(|_| {});
    let mut stream = scene.enter();
    let (done, result) = std::sync::mpsc::channel();
    scene.node.spawn_on(ShardId(NODE), move |env| async move {
        let _ = done.send(env.call(ShardId(ATTACKER), Request::Take(1)).await);
    });
    // This is the first call that the shard has made, so its number is 0.
    let reply = |call| Message::Reply { call, reply: b"first".to_vec() };
    until("the call has left", || (traffic(&scene.node, ATTACKER).messages_sent == 1).then_some(()));
    stream.write_all(&frame(0, &[reply(0), reply(0)])).unwrap();
    assert_eq!(scene.closed(stream), Closed::Rule);
    assert_eq!(result.recv().unwrap(), Ok(b"first".to_vec()));
}

#[test]
fn strangers_are_refused_with_the_reason() {
    let scene = scene(|plan| plan.secret = Some(b"a secret".to_vec()));
    assert_eq!(refusal(&scene, b"GET / HTTP/1.1\r\n\r\n"), Refusal::Magic);
    assert_eq!(refusal(&scene, &[0; 64]), Refusal::Magic);
    assert_eq!(refusal(&scene, &[0xa5; 4096]), Refusal::Magic);
    let (_, mut hello) = scene.hello(|_| {});
    hello[4 + 1 + 8] ^= 1;
    assert_eq!(refusal(&scene, &hello), Refusal::Version);
    assert_eq!(refusal(&scene, &scene.hello(|network| network.cluster += 1).1), Refusal::Cluster);
    let (greeting, hello) = scene.hello(|network| network.secret = Some(b"another".to_vec()));
    assert_eq!(converse(&mut scene.knock(), greeting, hello), Next::Refused(Refusal::Secret));
    let (greeting, hello) = scene.hello(|network| network.secret = None);
    assert_eq!(converse(&mut scene.knock(), greeting, hello), Next::Refused(Refusal::Secret));
    let (_, hello) = scene.hello(|network| network.role = member(NODE));
    assert_eq!(refusal(&scene, &hello), Refusal::Myself);
    assert_eq!(traffic(&scene.node, ATTACKER).resets, 0);
    // A node that is no stranger gets in.
    drop(scene.enter());
}

#[test]
fn why_somebody_was_refused_is_logged_with_the_address_and_nothing_of_what_was_said() {
    logs::keep();
    let scene = scene(|plan| plan.secret = Some(b"a secret".to_vec()));
    let (_, mut version) = scene.hello(|_| {});
    version[4 + 1 + 8] ^= 1;
    let (_, good) = scene.hello(|_| {});
    let oversized = (u32::MAX).to_le_bytes().to_vec();
    let cases = [
        (b"GET /admin HTTP/1.1\r\n\r\n".to_vec(), "it does not speak this protocol"),
        (oversized.clone(), "it does not speak this protocol"),
        ([good, oversized].concat(), "what it says makes no sense"),
        (version, "it speaks another version of the protocol"),
    ];
    let refused = |address: &str, why: &str| {
        logs::wait_for(&[
            "WARN",
            &format!("with={address}"),
            &format!("handshake came to nothing: refused: {why}"),
        ]);
    };
    for (bytes, why) in cases {
        let mut stream = scene.knock();
        let address = stream.local_addr().unwrap().to_string();
        stream.write_all(&bytes).unwrap();
        until_end(&mut stream);
        drop(stream);
        refused(&address, why);
        assert!(!logs::has(&[&address, "admin"]), "what strangers send is in no log");
    }
    let mut stream = scene.knock();
    let address = stream.local_addr().unwrap().to_string();
    let (greeting, hello) = scene.hello(|network| network.secret = Some(b"another".to_vec()));
    assert_eq!(converse(&mut stream, greeting, hello), Next::Refused(Refusal::Secret));
    drop(stream);
    refused(&address, "it does not know the secret of the cluster");
}

#[test]
fn impostors_among_clients_are_refused_with_the_reason() {
    let scene = scene(|plan| (plan.clients, plan.secret) = (2, Some(b"a secret".to_vec())));
    let claim = |who: Who, from: u16, to: u16| {
        let (_, said) = scene.hello(|_| {});
        let mut hello: Hello = plimsoll_types::wire::whole(&said[5..]).unwrap();
        (hello.who, hello.from, hello.to) = (who, from, to);
        let mut body = Vec::new();
        hello.encode(&mut body);
        let mut bytes = (body.len() as u32 + 1).to_le_bytes().to_vec();
        bytes.push(said[4]);
        bytes.extend(body);
        refusal(&scene, &bytes)
    };
    // Places that do not exist; a node as a client, a client as a node; a shard of another owner.
    assert_eq!(claim(Who::Client(2), 5, NODE), Refusal::Stranger);
    assert_eq!(claim(Who::Client(u16::MAX), u16::MAX, NODE), Refusal::Stranger);
    assert_eq!(claim(Who::Client(0), ATTACKER, NODE), Refusal::Shard);
    assert_eq!(claim(Who::Node(ATTACKER), 3, NODE), Refusal::Shard);
    assert_eq!(claim(Who::Client(0), 4, NODE), Refusal::Shard);
    assert_eq!(claim(Who::Client(0), 3, 4), Refusal::Shard);
    let role = || Role::Client { place: 1 };
    let other = scene.hello(|network| (network.role, network.clients) = (role(), 3));
    assert_eq!(refusal(&scene, &other.1), Refusal::Topology);
    let (greeting, hello) =
        scene.hello(|network| (network.role, network.secret) = (role(), Some(b"another".to_vec())));
    assert_eq!(converse(&mut scene.knock(), greeting, hello), Next::Refused(Refusal::Secret));
    // None of them has taken a place: a legitimate client gets it, once.
    let (greeting, hello) = scene.hello(|network| network.role = role());
    let mut client = scene.knock();
    assert!(matches!(converse(&mut client, greeting, hello), Next::Agreed(..)));
    // A dialer that does not know the secret is not told which places are taken.
    let (greeting, hello) = scene.hello(|network| {
        (network.role, network.life, network.secret) = (role(), 2000, Some(b"another".to_vec()));
    });
    assert_eq!(converse(&mut scene.knock(), greeting, hello), Next::Refused(Refusal::Secret));
    let (greeting, hello) = scene.hello(|network| (network.role, network.life) = (role(), 2000));
    assert_eq!(converse(&mut scene.knock(), greeting, hello), Next::Refused(Refusal::PlaceTaken));
}

#[test]
fn a_client_that_falls_silent_loses_its_place() {
    let scene = scene(|plan| (plan.clients, plan.silence) = (1, Duration::from_secs(4)));
    let client = |life| {
        let mut stream = scene.knock();
        let role = Role::Client { place: 0 };
        let (greeting, hello) = scene.hello(|network| (network.role, network.life) = (role, life));
        let next = converse(&mut stream, greeting, hello);
        (matches!(next, Next::Agreed(..)), stream)
    };
    let (entered, mut stream) = client(1000);
    assert!(entered && !client(2000).0);
    until_end(&mut stream);
    until("the place is free", || client(2000).0.then_some(()));
}

#[test]
fn who_knocks_and_says_nothing_keeps_nobody_out() {
    let scene = scene(|_| {});
    let (_, hello) = scene.hello(|_| {});
    // More than are served at a time, some of them in the middle of a message.
    let mut silent: Vec<TcpStream> = (0..80).map(|_| scene.knock()).collect();
    for (number, stream) in silent.iter_mut().enumerate() {
        let _ = stream.write_all(&hello[..number % hello.len()]);
    }
    drop(scene.enter());
    for mut stream in silent {
        until_end(&mut stream);
    }
}

#[test]
fn a_node_that_comes_back_gets_in_while_others_knock_and_say_nothing() {
    let scene = scene(|plan| plan.secret = Some(b"a secret".to_vec()));
    let stop = AtomicBool::new(false);
    let (_, hello) = scene.hello(|network| network.cluster += 1);
    thread::scope(|scope| {
        // Each says a little of a hello, and waits for its end.
        scope.spawn(|| {
            let mut knocking = std::collections::VecDeque::new();
            for number in 0.. {
                if stop.load(SeqCst) {
                    return;
                }
                let mut stream = scene.knock();
                let _ = stream.write_all(&hello[..number % hello.len()]);
                knocking.push_back(stream);
                if knocking.len() > 200 {
                    until_end(&mut knocking.pop_front().expect("there are many"));
                }
            }
        });
        let _ends = Ends(&stop);
        for _ in 0..3 {
            drop(until("it gets in, perhaps not at once", || scene.try_enter()));
            until("it is missed", || (traffic(&scene.node, ATTACKER).connected == 0).then_some(()));
        }
    });
}

#[test]
fn a_peer_that_falls_silent_is_closed() {
    let scene = scene(|plan| plan.silence = Duration::from_secs(4));
    let mut stream = scene.enter();
    stream.write_all(&frame(0, &[put(1)])).unwrap();
    assert_eq!(scene.closed(stream), Closed::Silent);
}

#[test]
fn a_peer_that_does_not_read_stops_nobody() {
    const BYTES: usize = 1 << 20;
    let scene = scene(|_| {});
    let stream = scene.enter();
    scene.node.run_on(ShardId(NODE), |env| async move {
        for _ in 0..32 {
            env.send(ShardId(ATTACKER), Request::Echo(vec![1; BYTES]));
            env.pause().await;
        }
    });
    assert!(traffic(&scene.node, ATTACKER).bytes_waiting > BYTES as u64);
    assert!(echoes(&scene.node, NODE, FRIEND));
    drop(stream);
    until("nothing waits any more", || {
        let traffic = traffic(&scene.node, ATTACKER);
        (traffic.connected == 0 && traffic.bytes_waiting == 0).then_some(())
    });
}

/// A client that calls for `calls` replies of a mebibyte each, and reads none of them.
fn greedy_client(scene: &Scene, calls: u64) -> (TcpStream, thread::JoinHandle<()>) {
    let mut stream = scene.knock();
    let (greeting, hello) = scene.hello(|network| network.role = Role::Client { place: 0 });
    assert!(matches!(converse(&mut stream, greeting, hello), Next::Agreed(..)));
    let mut asking = stream.try_clone().unwrap();
    let asks = thread::spawn(move || {
        for call in 0..calls {
            let request = Request::Echo(vec![7; 1 << 20]);
            if asking.write_all(&frame(call, &[Message::Call { call: call as u32, request }])).is_err() {
                return;
            }
        }
    });
    until("enough waits for the client", || {
        (of_clients(&scene.node).bytes_waiting > HELD_BACK as u64).then_some(())
    });
    (stream, asks)
}

fn of_clients(runtime: &Runtime<Till>) -> Traffic {
    runtime.traffic().into_iter().find(|traffic| traffic.node.is_none()).expect("clients have a row")
}

#[test]
fn no_further_requests_are_read_of_a_client_that_does_not_take_its_answers() {
    const CALLS: u64 = 64;
    let scene = scene(|plan| (plan.clients, plan.silence) = (1, Duration::from_secs(60)));
    let (mut stream, asks) = greedy_client(&scene, CALLS);
    thread::sleep(Duration::from_millis(300));
    let then = of_clients(&scene.node);
    assert!(then.bytes_waiting < (HELD_BACK + 4 * TURN) as u64, "{} bytes wait", then.bytes_waiting);
    assert!(then.messages_received < CALLS);
    assert!(echoes(&scene.node, NODE, FRIEND));
    let mut left = CALLS << 20;
    let mut bytes = vec![0; 1 << 16];
    while left > 0 {
        left = left.saturating_sub(stream.read(&mut bytes).unwrap() as u64);
    }
    asks.join().unwrap();
    let now = of_clients(&scene.node);
    assert_eq!((now.messages_received, now.resets), (CALLS, 0));
}

#[test]
fn a_client_that_takes_none_of_its_answers_is_closed() {
    let scene = scene(|plan| (plan.clients, plan.silence) = (1, Duration::from_secs(4)));
    let (stream, asks) = greedy_client(&scene, 64);
    until("it is closed", || (of_clients(&scene.node).connected == 0).then_some(()));
    assert_eq!(of_clients(&scene.node).last_reset, Some(Closed::Silent));
    asks.join().unwrap();
    drop(stream);
}

#[test]
fn the_same_node_may_come_back_before_it_was_missed() {
    let scene = scene(|_| {});
    let mut first = scene.enter();
    let mut second = scene.knock();
    let (greeting, hello) = scene.hello(|_| {});
    assert!(matches!(converse(&mut second, greeting, hello), Next::Agreed(..)));
    until_end(&mut first);
    let traffic = traffic(&scene.node, ATTACKER);
    assert_eq!((traffic.resets, traffic.last_reset), (1, Some(Closed::Replaced)));
    let mut told = channels(&scene.node, NODE);
    told.retain(|(peer, _)| peer.0 == ATTACKER);
    assert_eq!(told.iter().map(|&(_, up)| up).collect::<Vec<_>>(), [true, false, true]);
}
