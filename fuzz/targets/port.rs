//! Any bytes on the cluster port of a node that runs. A shard that panics ends the process, and a friend of the node must not
//! lose its connection.
#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use plimsoll_runtime::Echo;
use plimsoll_runtime::real::{Address, Clock, Network, Role, Runtime, SILENCE};

/// A node under attack and its friend; the attacker comes in the name of the first of three.
struct Scene {
    attacked: SocketAddr,
    node: Runtime<Echo>,
    _friend: Runtime<Echo>,
}

fn scene() -> Scene {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let listeners = [listener(), listener(), listener()];
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound"));
    let nodes: Vec<Address> =
        (0..).zip(addresses).map(|(id, address)| Address { id, address, shards: 1 }).collect();
    let start = |node: u16, listener: TcpListener| {
        let network = Network {
            cluster: 1,
            role: Role::Member { node, listener },
            nodes: nodes.clone(),
            visitors: 2,
            life: 1,
            secret: None,
            silence: SILENCE,
            clock: Clock::new(),
            clock_limit: None,
            volatile: false,
        };
        let makers = vec![Box::new(Echo::default) as Box<dyn FnOnce() -> Echo + Send>];
        Runtime::networked(makers, 1, None, Vec::new(), network).expect("it can be a cluster")
    };
    let [_, second, third] = listeners;
    let (node, friend) = (start(1, second), start(2, third));
    let scene = Scene { attacked: addresses[1], node, _friend: friend };
    while !friends(&scene.node) {
        std::thread::sleep(Duration::from_millis(1));
    }
    scene
}

fn friends(node: &Runtime<Echo>) -> bool {
    node.traffic().iter().any(|peer| peer.node == Some(2) && peer.connected == 1)
}

static SCENE: OnceLock<Scene> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let scene = SCENE.get_or_init(scene);
    let mut stream = TcpStream::connect(scene.attacked).expect("the node listens");
    // It may close the connection at any byte.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(friends(&scene.node), "the friend was let go");
});
