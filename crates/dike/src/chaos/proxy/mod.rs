//! A TCP proxy before each endpoint: network faults without the kernel's help.
//!
//! The benchmark connects to [`Proxy::address`] instead of the endpoint. Everything is passed on
//! unchanged and in order; what faults do to it is in `lane` (per connection and direction) and
//! `weather` (how faults combine). What a client and a server see:
//!
//! * *delay, jitter, rate, loss*: data comes later. Nothing is lost or reordered: TCP would not
//!   show that either.
//! * *partition*: data, ends of streams and resets are held back and arrive when it heals. A
//!   connection made meanwhile reaches the server when it heals, unless its client has given up.
//! * *reset*: both ends of all connections see a reset.
//! * *half-open*: new connections are accepted and never answered, and reset when the fault ends,
//!   like one whose other end has forgotten it. Older ones go on.
//!
//! While nothing holds, the proxy costs two more copies through the kernel and no queue; the
//! example `proxy_overhead` measures it.
//!
//! Left out: the proxy stands between clients and servers, not between servers (those need a hook
//! with `tc` or `iptables`). It cannot refuse a connection that the server refuses: the client sees
//! a reset. The handshake of a new connection is answered here and is not delayed.

mod lane;
mod weather;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::fault::Fault;
use lane::{Chance, End, carry};
use weather::Weather;

/// A proxy before an endpoint. It ends, with its connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    switch: Switch,
    accepting: JoinHandle<()>,
}

/// Turns faults at an endpoint on.
#[derive(Clone, Debug)]
pub struct Switch {
    endpoint: Arc<str>,
    weather: Arc<watch::Sender<Weather>>,
    number: Arc<AtomicU64>,
}

/// A fault at an endpoint. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "the fault ends when this is dropped"]
pub struct Holding {
    weather: Arc<watch::Sender<Weather>>,
    number: u64,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.weather.send_modify(|weather| weather.end(self.number));
    }
}

impl Proxy {
    /// Places a proxy, on a free port of the loopback interface.
    ///
    /// * `endpoint`: its name in schedules.
    /// * `server`: where it leads, as `host:port`; looked up for every connection.
    /// * `seed`: what jitter and losses are drawn from.
    ///
    /// Fails if there is no free port.
    pub async fn place(endpoint: &str, server: &str, seed: u64) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let weather = Arc::new(watch::Sender::new(Weather::calm()));
        let receiver = weather.subscribe();
        let accepting = tokio::spawn(accept(listener, server.to_owned(), receiver, seed));
        let switch = Switch { endpoint: endpoint.into(), weather, number: Arc::new(AtomicU64::new(0)) };
        Ok(Proxy { address, switch, accepting })
    }

    /// Where to connect instead of to the endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What turns faults on.
    pub fn switch(&self) -> Switch {
        self.switch.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Switch {
    /// The name of the endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Puts one of the network faults in place; others change nothing. A reset happens at once.
    pub fn turn_on(&self, fault: &Fault) -> Holding {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.weather.send_modify(|weather| weather.begin(number, fault.clone()));
        Holding { weather: self.weather.clone(), number }
    }
}

/// How long nobody is accepted after that has failed (out of file descriptors, as a rule).
const AFTER_FAILURE: Duration = Duration::from_millis(10);

async fn accept(listener: TcpListener, server: String, weather: watch::Receiver<Weather>, seed: u64) {
    let server: Arc<str> = server.into();
    let mut connections = JoinSet::new();
    for number in 0_u64.. {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let chance = seed ^ number.wrapping_mul(0xd134_2543_de82_ef95);
                connections.spawn(connection(client, server.clone(), weather.clone(), chance));
            }
            Err(_) => tokio::time::sleep(AFTER_FAILURE).await,
        }
    }
}

/// One connection from its first to its last byte.
async fn connection(
    mut client: TcpStream,
    server: Arc<str>,
    mut weather: watch::Receiver<Weather>,
    chance: u64,
) {
    let half_open = weather.borrow_and_update().half_open;
    let resets = weather.borrow().resets;
    let open = |weather: &Weather| weather.half_open == half_open && weather.resets == resets;
    let through = |weather: &Weather| !open(weather) || !weather.half_open && !is_held(weather);
    let reached = weather.wait_for(through).await.is_ok_and(|weather| open(&weather));
    let given_up = async || {
        let ready = client.ready(Interest::READABLE | Interest::WRITABLE).await;
        ready.is_ok_and(|ready| ready.is_read_closed())
    };
    if !reached || given_up().await {
        return reset(client);
    }
    let Ok(mut server) = TcpStream::connect(&*server).await else { return reset(client) };
    let _ = client.set_nodelay(true).and(server.set_nodelay(true));

    let orderly = {
        let mut resets_seen = weather.clone();
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let forth =
            carry(from_client, to_server, weather.clone(), |weather| &weather.to_server, Chance(chance));
        let back = carry(from_server, to_client, weather, |weather| &weather.to_client, Chance(!chance));
        tokio::pin!(forth, back);
        let reset = async { drop(resets_seen.wait_for(|weather| weather.resets != resets).await) };
        tokio::pin!(reset);
        let (mut forth_end, mut back_end) = (None, None);
        loop {
            tokio::select! {
                biased;
                end = &mut forth, if forth_end.is_none() => forth_end = Some(end),
                end = &mut back, if back_end.is_none() => back_end = Some(end),
                () = &mut reset => break false,
            }
            match (forth_end, back_end) {
                (Some(End::Reset), _) | (_, Some(End::Reset)) => break false,
                (Some(forth), Some(back)) => break forth == End::Orderly && back == End::Orderly,
                _ => {}
            }
        }
    };
    if !orderly {
        reset(client);
        reset(server);
    }
}

/// Closes a socket so that the other end sees a reset.
fn reset(socket: TcpStream) {
    // If this fails, the socket is broken already.
    let _ = socket.set_zero_linger();
}

fn is_held(weather: &Weather) -> bool {
    weather.to_server.held || weather.to_client.held
}
