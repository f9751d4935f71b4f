//! Listens for connections of bytes, and deals them to the shards of this process.
//!
//! One thread accepts all of them, since that happens rarely, and sends each to the shard that has
//! the fewest. From then on only the thread of that shard uses it ([`crate::Stream`]).
//!
//! When there are as many as there may be, or the operating system refuses one (usually because the
//! process has no file descriptor left), the thread accepts none for [`PAUSE`]. Newcomers wait in
//! the queue of the operating system.
//!
//! A client that vanishes without a word is noticed after about a minute and a half: the operating
//! system asks a silent one for a sign of life.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use plimsoll_types::ShardId;
use rustix::net::sockopt;

use super::EndProcessOnPanic;
use super::poller::Poller;
use crate::stream::{Detached, Socket};

/// How long no connection is accepted after one could not be.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the other side may be silent until it is asked for a sign of life, how often it is
/// asked, and how many times in vain.
const SILENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(10);
const TIMES: u32 = 3;

/// The token of the waker; the listeners count from 0.
const WAKE: Token = Token(usize::MAX);

/// Where a process listens for connections of bytes.
#[derive(Debug)]
pub struct Listening {
    /// The sockets, bound and listening.
    pub listeners: Vec<TcpListener>,
    /// Maximum number of open streams in the process. Each takes a file descriptor.
    pub streams_max: usize,
}

/// What the streams of one shard need of its thread.
struct Berth {
    registry: Registry,
    /// The place of the shard on its thread.
    place: usize,
    streams: AtomicUsize,
}

/// The shards of this process, as their streams see them.
pub(super) struct Berths {
    first: usize,
    berths: Vec<Berth>,
}

impl Berths {
    /// The shards of a process that are dealt to its threads in turn; the first has this number.
    pub(super) fn new(first: usize, shards: usize, pollers: &[Poller]) -> io::Result<Berths> {
        let berth = |index: usize| {
            let registry = pollers[index % pollers.len()].registry().try_clone()?;
            Ok(Berth { registry, place: index / pollers.len(), streams: AtomicUsize::new(0) })
        };
        Ok(Berths { first, berths: (0..shards).map(berth).collect::<io::Result<_>>()? })
    }

    fn streams(&self) -> usize {
        self.berths.iter().map(|berth| berth.streams.load(Relaxed)).sum()
    }

    /// The shard with the fewest streams, by its place in the process.
    fn emptiest(&self) -> usize {
        let order = |&index: &usize| self.berths[index].streams.load(Relaxed);
        (0..self.berths.len()).min_by_key(order).expect("a process has a shard")
    }
}

/// A connection, counted as one of a shard's.
struct Connection {
    stream: TcpStream,
    berths: Arc<Berths>,
    /// The shard, by its place in the process.
    at: usize,
}

impl Connection {
    fn new(stream: TcpStream, berths: Arc<Berths>, at: usize) -> Connection {
        berths.berths[at].streams.fetch_add(1, Relaxed);
        // If one of these fails, the connection is already broken, and the first read says so.
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, SILENCE);
        let _ = sockopt::set_tcp_keepintvl(&stream, AGAIN);
        let _ = sockopt::set_tcp_keepcnt(&stream, TIMES);
        Connection { stream, berths, at }
    }
}

impl Socket for Connection {
    fn attach(&mut self, shard: ShardId, number: u32) -> io::Result<()> {
        let at = shard.index() - self.berths.first;
        self.berths.berths[self.at].streams.fetch_sub(1, Relaxed);
        self.at = at;
        let berth = &self.berths.berths[at];
        berth.streams.fetch_add(1, Relaxed);
        let interest = Interest::READABLE | Interest::WRITABLE;
        berth.registry.register(&mut self.stream, Poller::stream(berth.place, number), interest)
    }

    fn detach(&mut self) {
        // It fails if the registration did, which has been reported.
        let _ = self.berths.berths[self.at].registry.deregister(&mut self.stream);
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn shut(&mut self) {
        // It fails if the connection is broken, which the next read reports.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.berths.berths[self.at].streams.fetch_sub(1, Relaxed);
    }
}

/// One listening socket.
struct Door {
    socket: mio::net::TcpListener,
    /// Whether there may be connections to accept.
    ready: bool,
}

/// Keeps the thread that accepts running; dropping it stops the thread and closes the sockets.
pub(super) struct Listener {
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to accept. `deal` takes each connection to the shard with this place in the process.
    pub(super) fn start(
        listening: Listening,
        berths: Berths,
        deal: impl Fn(usize, Detached) + Send + 'static,
    ) -> io::Result<Listener> {
        let poll = Poll::new()?;
        let door = |(index, listener): (usize, TcpListener)| {
            listener.set_nonblocking(true)?;
            let mut socket = mio::net::TcpListener::from_std(listener);
            poll.registry().register(&mut socket, Token(index), Interest::READABLE)?;
            Ok(Door { socket, ready: true })
        };
        let doors = listening.listeners.into_iter().enumerate().map(door).collect::<io::Result<_>>()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, streams_max) = (stop.clone(), listening.streams_max);
        let mut hall = Hall { doors, poll, berths: Arc::new(berths), streams_max, deal, refused: false };
        let thread = thread::Builder::new().name("listener".to_owned()).spawn(move || {
            let _end_process = EndProcessOnPanic("the thread that listens".to_owned());
            hall.run(&stopped);
        })?;
        Ok(Listener { stop, waker, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.waker.wake().expect("an eventfd can be written");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread that accepts has.
struct Hall<D> {
    doors: Vec<Door>,
    poll: Poll,
    berths: Arc<Berths>,
    streams_max: usize,
    deal: D,
    /// The last attempt to accept has failed, and that was logged.
    refused: bool,
}

impl<D: Fn(usize, Detached)> Hall<D> {
    fn run(&mut self, stop: &AtomicBool) {
        let mut events = Events::with_capacity(16);
        while !stop.load(Relaxed) {
            let accepted = (0..self.doors.len()).all(|door| self.accept(door));
            let timeout = (!accepted).then_some(PAUSE);
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => panic!("the operating system can be asked about sockets: {error}"),
            }
            for event in &events {
                if let Some(door) = self.doors.get_mut(event.token().0) {
                    door.ready = true;
                }
            }
        }
    }

    /// Accepts what waits at a door. Returns whether that is all for now; if not, it pauses.
    fn accept(&mut self, door: usize) -> bool {
        while self.doors[door].ready {
            if self.berths.streams() >= self.streams_max {
                return false;
            }
            match self.doors[door].socket.accept() {
                Ok((stream, peer)) => {
                    self.refused = false;
                    self.welcome(stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.doors[door].ready = false,
                Err(error) if is_of_one(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.refused, true) {
                        tracing::warn!("a connection cannot be accepted: {error}");
                    }
                    return false;
                }
            }
        }
        true
    }

    fn welcome(&self, stream: TcpStream, peer: SocketAddr) {
        let at = self.berths.emptiest();
        let connection = Connection::new(stream, self.berths.clone(), at);
        (self.deal)(at, Detached::new(Box::new(connection), peer));
    }
}

/// Whether the error is that of one connection, which has ended before it was accepted.
fn is_of_one(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}
