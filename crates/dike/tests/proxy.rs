//! What a client and a server see through a proxy.

use std::time::{Duration, Instant};

use plimsoll_dike::chaos::fault::{Direction, Fault};
use plimsoll_dike::chaos::proxy::{Proxy, Switch};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A proxy before a server that the test plays itself.
struct Scene {
    server: TcpListener,
    proxy: Proxy,
    switch: Switch,
}

/// Longer than anything takes that is not held back for ever.
const EVENTUALLY: Duration = Duration::from_secs(30);

/// Long enough to say that something is held.
const A_WHILE: Duration = Duration::from_millis(300);

impl Scene {
    async fn set() -> Scene {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        let proxy = Proxy::place("e1", &address, 1).await.unwrap();
        let switch = proxy.switch();
        Scene { server, proxy, switch }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address()).await.unwrap()
    }

    /// Both ends of a connection.
    async fn connection(&self) -> (TcpStream, TcpStream) {
        let client = self.client().await;
        let (server, _) = timeout(EVENTUALLY, self.server.accept()).await.unwrap().unwrap();
        (client, server)
    }
}

async fn send(from: &mut TcpStream, to: &mut TcpStream, word: &[u8]) {
    from.write_all(word).await.unwrap();
    assert_eq!(receive(to, word.len()).await, word);
}

async fn receive(from: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    timeout(EVENTUALLY, from.read_exact(&mut bytes)).await.expect("it arrives").unwrap();
    bytes
}

async fn says_nothing(socket: &mut TcpStream) {
    let mut byte = [0];
    assert!(timeout(A_WHILE, socket.read(&mut byte)).await.is_err(), "nothing arrives, not even an end");
}

async fn is_reset(socket: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = timeout(EVENTUALLY, socket.read(&mut byte)).await.expect("something happens");
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

fn delay(delay_ms: u64, jitter_ms: u64) -> Fault {
    Fault::NetworkDelay { delay_ms, jitter_ms, direction: Direction::Both }
}

#[tokio::test]
async fn a_calm_proxy_passes_bytes_ends_and_resets_on() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    send(&mut client, &mut server, b"question").await;
    send(&mut server, &mut client, b"answer").await;
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0, "the server sees the end");
    send(&mut server, &mut client, b"after the end of the other way").await;
    drop(server);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the client sees the end");

    let (mut client, server) = scene.connection().await;
    server.set_zero_linger().unwrap();
    drop(server);
    assert!(is_reset(&mut client).await);

    drop(scene.server);
    let mut client = TcpStream::connect(scene.proxy.address()).await.unwrap();
    assert!(is_reset(&mut client).await, "there is no server any more");
}

#[tokio::test]
async fn a_delay_holds_for_its_direction_and_ends() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let direction = Direction::ToServer;
    let holding = scene.switch.turn_on(&Fault::NetworkDelay { delay_ms: 80, jitter_ms: 20, direction });
    for _ in 0..3 {
        let start = Instant::now();
        send(&mut client, &mut server, b"question").await;
        assert!(start.elapsed() >= Duration::from_millis(80));
        send(&mut server, &mut client, b"answer").await;
    }
    let start = Instant::now();
    client.write_all(b"on its way").await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    drop(holding);
    send(&mut client, &mut server, b"on its way").await;
    assert!(start.elapsed() >= Duration::from_millis(80), "what was on its way is not overtaken");
    assert_eq!(receive(&mut server, 10).await, b"on its way");
}

#[tokio::test]
async fn many_blocks_are_on_their_way_at_once() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let _holding = scene.switch.turn_on(&delay(100, 0));
    let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let start = Instant::now();
    let (wrote, received) = tokio::join!(client.write_all(&sent), receive(&mut server, sent.len()));
    wrote.unwrap();
    assert!(received == sent);
    // One block at a time, this would have been 64 delays.
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn a_rate_is_not_exceeded() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let _holding =
        scene.switch.turn_on(&Fault::NetworkRate { kib_per_s: 64, direction: Direction::ToClient });
    let start = Instant::now();
    let sent = vec![7; 16 << 10];
    server.write_all(&sent).await.unwrap();
    assert_eq!(receive(&mut client, sent.len()).await, sent);
    assert!(start.elapsed() >= Duration::from_millis(249));
}

#[tokio::test]
async fn a_loss_stalls() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let direction = Direction::ToServer;
    // Every packet is lost eight times in a row: 255 time-outs.
    let _holding = scene.switch.turn_on(&Fault::NetworkLoss { loss_percent: 100.0, stall_ms: 1, direction });
    let start = Instant::now();
    send(&mut client, &mut server, b"question").await;
    assert!(start.elapsed() >= Duration::from_millis(255));
}

#[tokio::test]
async fn a_partition_holds_data_ends_and_new_connections_and_heals() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let partition = |direction| scene.switch.turn_on(&Fault::NetworkPartition { direction });

    let holding = partition(Direction::ToServer);
    client.write_all(b"held").await.unwrap();
    client.shutdown().await.unwrap();
    says_nothing(&mut server).await;
    send(&mut server, &mut client, b"the other way is open").await;
    let mut late = scene.client().await;
    late.write_all(b"hello").await.unwrap();
    let given_up = scene.client().await;
    drop(given_up);
    assert!(timeout(A_WHILE, scene.server.accept()).await.is_err(), "nobody new arrives");
    drop(holding);
    assert_eq!(receive(&mut server, 4).await, b"held");
    assert_eq!(
        timeout(EVENTUALLY, server.read(&mut [0])).await.unwrap().unwrap(),
        0,
        "the end comes after the data"
    );
    let (mut newcomer, _) = timeout(EVENTUALLY, scene.server.accept()).await.unwrap().unwrap();
    assert_eq!(receive(&mut newcomer, 5).await, b"hello");
    assert!(timeout(A_WHILE, scene.server.accept()).await.is_err(), "who gave up does not arrive");

    let holding = partition(Direction::Both);
    newcomer.write_all(b"world").await.unwrap();
    says_nothing(&mut late).await;
    newcomer.set_zero_linger().unwrap();
    drop(newcomer);
    says_nothing(&mut late).await;
    drop(holding);
    // The kernel may have dropped the data with the reset; the reset arrives, and not before the
    // partition healed.
    let mut rest = Vec::new();
    let end = timeout(EVENTUALLY, late.read_to_end(&mut rest)).await.unwrap();
    assert!(end.is_err());
    assert!(rest.is_empty() || rest == b"world");
}

#[tokio::test]
async fn a_long_partition_lets_the_sender_wait() {
    let scene = Scene::set().await;
    let (mut client, mut server) = scene.connection().await;
    let holding = scene.switch.turn_on(&Fault::NetworkPartition { direction: Direction::Both });
    let sent: Vec<u8> = (0..64 << 20).map(|at: u32| (at % 251) as u8).collect();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        client.write_all(&sent).await.unwrap();
        client
    });
    tokio::time::sleep(A_WHILE).await;
    assert!(!sending.is_finished(), "the proxy does not take everything");
    drop(holding);
    assert!(receive(&mut server, expected.len()).await == expected);
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn a_reset_is_seen_by_both_ends_of_all_connections_and_by_no_later_one() {
    let scene = Scene::set().await;
    let (mut idle_client, mut idle_server) = scene.connection().await;
    let (mut client, mut server) = scene.connection().await;
    send(&mut client, &mut server, b"question").await;
    let _instant = scene.switch.turn_on(&Fault::NetworkReset {});
    for socket in [&mut idle_client, &mut idle_server, &mut client, &mut server] {
        assert!(is_reset(socket).await);
    }
    let (mut client, mut server) = scene.connection().await;
    send(&mut client, &mut server, b"again").await;
}

#[tokio::test]
async fn a_half_open_endpoint_accepts_says_nothing_and_forgets() {
    let scene = Scene::set().await;
    let (mut old_client, mut old_server) = scene.connection().await;
    let holding = scene.switch.turn_on(&Fault::NetworkHalfOpen {});
    let mut client = scene.client().await;
    client.write_all(b"anybody there?").await.unwrap();
    says_nothing(&mut client).await;
    send(&mut old_client, &mut old_server, b"still here").await;
    assert!(timeout(A_WHILE, scene.server.accept()).await.is_err());
    drop(holding);
    assert!(is_reset(&mut client).await);
    let (mut client, mut server) = scene.connection().await;
    send(&mut client, &mut server, b"again").await;
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let direction = prop_oneof![Just(Direction::Both), Just(Direction::ToServer), Just(Direction::ToClient)];
    direction.prop_flat_map(|direction| {
        prop_oneof![
            (0_u64..8, 0_u64..8).prop_map(move |(delay_ms, jitter_ms)| Fault::NetworkDelay {
                delay_ms,
                jitter_ms,
                direction
            }),
            (256_u64..4096).prop_map(move |kib_per_s| Fault::NetworkRate { kib_per_s, direction }),
            (1.0..30.0).prop_map(move |loss_percent| Fault::NetworkLoss {
                loss_percent,
                stall_ms: 1,
                direction
            }),
            Just(Fault::NetworkPartition { direction }),
            Just(Fault::NetworkHalfOpen {}),
        ]
    })
}

async fn echo(mut socket: TcpStream) {
    let (mut from, mut to) = socket.split();
    tokio::io::copy(&mut from, &mut to).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn bytes_arrive_unchanged_and_in_order_under_every_fault(
        faults in proptest::collection::vec((any_fault(), 0_u64..20, 0_u64..20), 0..6),
        length in 1_usize..300_000,
        seed: u8,
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let scene = Scene::set().await;
            let (client, server) = scene.connection().await;
            tokio::spawn(echo(server));
            let switch = scene.switch.clone();
            let weather = tokio::spawn(async move {
                for (fault, for_ms, then_ms) in faults {
                    let holding = switch.turn_on(&fault);
                    tokio::time::sleep(Duration::from_millis(for_ms)).await;
                    drop(holding);
                    tokio::time::sleep(Duration::from_millis(then_ms)).await;
                }
            });
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8 ^ seed).collect();
            let (mut from, mut to) = client.into_split();
            let expected = sent.clone();
            tokio::spawn(async move {
                for block in sent.chunks(7_000) {
                    to.write_all(block).await.unwrap();
                }
                to.shutdown().await.unwrap();
            });
            let mut received = Vec::new();
            timeout(EVENTUALLY, from.read_to_end(&mut received)).await.expect("it comes back").unwrap();
            assert!(received == expected);
            weather.await.unwrap();
        });
    }
}
