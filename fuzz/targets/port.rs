//! Any bytes on the cluster port of a node that runs: from a stranger, and from one who knows the
//! secret and has passed the handshake, as they are or as the contents of frames that are in order.
//! A shard that panics ends the process; a friend of the node must not lose its connection, and the
//! node goes on answering.
//!
//! The first byte of an input says what the others are.
#![no_main]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use libfuzzer_sys::fuzz_target;
use plimsoll_runtime::real::{Address, Clock, Network, Role, Runtime, SILENCE};
use plimsoll_runtime::{Echo, Env};
use plimsoll_types::ShardId;
use sha2::Sha256;

const SECRET: &[u8] = b"known to the attacker";
/// The kinds of messages of a handshake that the attacker sends, and the side for which it proves.
const HELLO: u8 = 1;
const PROOF: u8 = 2;
const DIALER: u8 = 1;

/// A node under attack and its friend; the attacker comes in the name of the first of three.
struct Scene {
    attacked: SocketAddr,
    node: Runtime<Echo>,
    _friend: Runtime<Echo>,
    /// What the first node says first.
    hello: Vec<u8>,
}

fn start(node: u16, nodes: &[Address], listener: TcpListener) -> Runtime<Echo> {
    let network = Network {
        cluster: 1,
        role: Role::Member { node, listener },
        nodes: nodes.to_vec(),
        clients: 2,
        life: 1,
        secret: Some(SECRET.to_vec()),
        silence: SILENCE,
        clock: Clock::new(),
        clock_limit: None,
        memory: 1,
        goes_back: false,
        met: nodes.iter().map(|node| (node.id, 1)).collect(),
    };
    let makers = vec![Box::new(Echo::default) as Box<dyn FnOnce() -> Echo + Send>];
    Runtime::networked(makers, 1, None, Vec::new(), network).expect("it can be a cluster")
}

fn scene() -> Scene {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let [first, second, third] = [listener(), listener(), listener()];
    let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
    let nodes = |second: &TcpListener| {
        let addresses = [&first, second, &third].map(address);
        (0..).zip(addresses).map(|(id, address)| Address { id, address: address.into(), shards: 1 }).collect::<Vec<_>>()
    };
    // The true first node says its hello to whoever listens where it believes the second to be.
    let ear = listener();
    let hello = {
        let _true = start(0, &nodes(&ear), first.try_clone().expect("it is open"));
        let (mut stream, _) = ear.accept().expect("it dials");
        hear(&mut stream, HELLO).expect("it says hello")
    };
    let (attacked, nodes) = (address(&second), nodes(&second));
    let scene = Scene { attacked, node: start(1, &nodes, second), _friend: start(2, &nodes, third), hello };
    while !friends(&scene.node) {
        std::thread::sleep(Duration::from_millis(1));
    }
    scene
}

fn friends(node: &Runtime<Echo>) -> bool {
    node.traffic().iter().any(|peer| peer.node == Some(2) && peer.connected == 1)
}

/// A message of a handshake, without its length and its kind.
fn hear(stream: &mut TcpStream, kind: u8) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut message)?;
    assert_eq!(message[0], kind, "the node goes on with the handshake");
    Ok(message.split_off(1))
}

fn say(stream: &mut TcpStream, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32 + 1).to_le_bytes();
    stream.write_all(&[&length[..], &[kind], body].concat())
}

impl Scene {
    fn knock(&self) -> TcpStream {
        TcpStream::connect(self.attacked).expect("the node listens")
    }

    /// A connection that has passed the handshake.
    fn enter(&self) -> io::Result<TcpStream> {
        let mut stream = self.knock();
        say(&mut stream, HELLO, &self.hello)?;
        let theirs = hear(&mut stream, HELLO)?;
        let mut proof = Hmac::<Sha256>::new_from_slice(SECRET).expect("a key has any length");
        [&[DIALER][..], &self.hello, &theirs].into_iter().for_each(|part| proof.update(part));
        say(&mut stream, PROOF, &proof.finalize().into_bytes())?;
        hear(&mut stream, PROOF)?;
        Ok(stream)
    }
}

/// Frames, each of as many bytes as the byte before them says.
fn frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    for number in 0u64.. {
        let Some((&length, rest)) = bytes.split_first() else { break };
        let (content, rest) = rest.split_at(rest.len().min(length.into()));
        let body = [&number.to_le_bytes(), content].concat();
        frames.extend((body.len() as u32).to_le_bytes());
        frames.extend(crc32c::crc32c(&body).to_le_bytes());
        frames.extend(body);
        bytes = rest;
    }
    frames
}

static SCENE: OnceLock<Scene> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let scene = SCENE.get_or_init(scene);
    let Some((which, bytes)) = bytes.split_first() else { return };
    let enter = || scene.enter().expect("who knows the secret may come in");
    let (mut stream, said) = match which % 4 {
        0 => (scene.knock(), bytes.to_vec()),
        1 => (enter(), bytes.to_vec()),
        _ => (enter(), frames(bytes)),
    };
    // It may close the connection at any byte.
    let _ = stream.write_all(&said).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_end(&mut Vec::new());
    let answer = scene.node.run_on(ShardId(1), |env| async move { env.call(ShardId(2), 7).await });
    assert_eq!(answer, Ok(7), "the friend answers");
    assert!(friends(&scene.node), "the friend was let go");
});
