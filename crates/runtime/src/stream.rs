//! Connections of bytes between a shard and what is not a shard: a client that speaks a protocol of
//! its own, such as PostgreSQL's.
//!
//! A process listens ([`Listening`](crate::real::Listening)), and its connections are dealt to its
//! shards. A task of a shard takes them one by one ([`Tasks::accept`](crate::Tasks::accept)), and
//! usually starts a task for each. That task reads and writes without a thread in between: a
//! request and its answer cost one read and one write, because a read takes what has arrived, up to
//! [`READ_MAX`], and a write gives the operating system what it takes at once. A task that has
//! several messages to send collects them in one buffer first.
//!
//! * *A stream never blocks its shard.* A read waits until something arrives. A write waits while
//!   more than [`UNSENT_MAX`] bytes are not taken, so a client that does not read delays one task.
//! * *A stream that always has something to read or to write lets other tasks run*, after each
//!   piece.
//! * *An idle stream costs little*: no processor time, and no buffer. Bytes are read into a buffer
//!   that all streams of the shard share, and from there into the caller's, which the caller frees
//!   when it likes. What is unsent is kept only as long as there is any.
//! * *A stream can move* to another shard of its process: [`Stream::detach`],
//!   [`Tasks::attach`](crate::Tasks::attach).
//!
//! Example. A session waits in [`Stream::read`]. A client sends 40 bytes; the thread of the shard,
//! which sleeps until one of its sockets changes, wakes and polls the task. The read gets all 40,
//! which is less than it asked for, so it knows that the socket is empty. The task answers with 60
//! bytes, which go to the operating system at once, and reads again: that waits without a system
//! call.
//!
//! What a task writes leaves at once. It does not wait for the log as messages to other shards do,
//! so a task that tells a client of something first awaits it, or
//! [`Tasks::stable`](crate::Tasks::stable).
//!
//! Left out: connections that a shard makes (only simulated clients do); limits of time, for which
//! a task also awaits [`Tasks::sleep`](crate::Tasks::sleep).

use core::net::SocketAddr;
use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_types::ShardId;

use crate::shard::{Attempt, Executor, Sockets, TaskId};

/// Maximum number of bytes that one read takes.
pub const READ_MAX: usize = 64 << 10;

/// Maximum number of bytes of a stream that were written and not taken by the operating system.
pub const UNSENT_MAX: usize = 64 << 10;

/// How long [`Stream::close`] waits for the other side, in nanoseconds.
const FAREWELL_NS: u64 = 1_000_000_000;

/// The connection was reset. Bytes that were written may not have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was reset")
    }
}

impl std::error::Error for Broken {}

/// One end of a connection, without the waiting. Where it has nothing to do it says
/// [`io::ErrorKind::WouldBlock`]; when that changes, its shard is told
/// ([`ShardEnv::socket_ready`](crate::ShardEnv)).
pub(crate) trait Socket: Send {
    /// Has its changes told to a shard from now on, under this number. The first that is told is
    /// the state it is in.
    fn attach(&mut self, shard: ShardId, number: u32) -> io::Result<()>;

    /// Has its changes told to no shard.
    fn detach(&mut self);

    /// Reads what has arrived; 0 at the end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Sends as much as possible at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Says that no more will be sent.
    fn shut(&mut self);
}

/// A shard as its streams see it, without the type of its participant.
pub(crate) trait Host: Executor {
    /// Its sockets.
    fn sockets(&self) -> &RefCell<Sockets>;

    /// The task that runs now.
    fn current(&self) -> TaskId;
}

/// A connection of bytes, for a task of a shard. Dropping it closes the connection; what the
/// operating system has not taken then is lost.
///
/// One task at a time reads, one writes, and one waits for the end; they may be the same one, which
/// waits for several at once, or different ones.
pub struct Stream {
    host: Rc<dyn Host>,
    number: u32,
    peer: SocketAddr,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.peer)
    }
}

impl Stream {
    pub(crate) fn new(host: Rc<dyn Host>, number: u32, peer: SocketAddr) -> Stream {
        Stream { host, number, peer }
    }

    /// The address of the other side.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Appends what has arrived to a buffer, `limit` and [`READ_MAX`] bytes at most; waits if
    /// nothing has. Returns how many bytes it has appended: 0 if the other side has sent its last.
    /// Nothing is lost if the future is dropped.
    pub async fn read(&self, buffer: &mut Vec<u8>, limit: usize) -> Result<usize, Broken> {
        assert!(limit > 0, "a read of nothing could not be told from the end");
        self.attempt(|sockets, task| {
            sockets.read(self.number, task, limit, |bytes| buffer.extend_from_slice(bytes))
        })
        .await
    }

    /// Sends bytes. Waits until no more than [`UNSENT_MAX`] of them are left to be taken by the
    /// operating system, which happens without this task then. If the future is dropped before, a
    /// part of the bytes is sent.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Broken> {
        let mut left = bytes;
        while !left.is_empty() {
            let taken = self.attempt(|sockets, task| sockets.write(self.number, task, left)).await?;
            left = left.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Waits until the operating system has taken everything that was written.
    pub async fn flush(&self) -> Result<(), Broken> {
        self.attempt(|sockets, task| sockets.flush(self.number, task)).await
    }

    /// Waits until the other side is gone: it has sent its last byte, whether or not all bytes were
    /// read, or the connection was reset. For a task that does something for the other side
    /// meanwhile.
    pub async fn gone(&self) {
        self.attempt(|sockets, task| sockets.gone(self.number, task)).await;
    }

    /// Says that no more will be sent, waits until the other side has closed its end, and closes
    /// the connection. What arrives meanwhile is thrown away: a connection that is closed with
    /// bytes to read is reset, and the other side might lose what was sent last. All of this takes
    /// a second at most.
    pub async fn close(self) {
        let until_ns = self.host.now().saturating_add(FAREWELL_NS);
        self.host.wake_at(until_ns);
        let farewell = async {
            self.flush().await?;
            self.host.sockets().borrow_mut().shut(self.number);
            while self.attempt(|sockets, task| sockets.read(self.number, task, READ_MAX, |_| ())).await? > 0 {
            }
            Ok::<_, Broken>(())
        };
        let mut farewell = std::pin::pin!(farewell);
        poll_fn(|cx| match farewell.as_mut().poll(cx) {
            Poll::Pending if self.host.now() < until_ns => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// Takes the stream off its shard, to be attached to another one.
    pub fn detach(self) -> Detached {
        self.host.sockets().borrow_mut().detach(self.number)
    }

    /// Tries something until it is done.
    async fn attempt<T>(&self, mut step: impl FnMut(&mut Sockets, TaskId) -> Attempt<T>) -> T {
        poll_fn(|_| {
            let attempt = step(&mut self.host.sockets().borrow_mut(), self.host.current());
            match attempt {
                Attempt::Done(result) => Poll::Ready(result),
                Attempt::Waits => Poll::Pending,
                Attempt::Later => {
                    self.host.wake();
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.host.sockets().borrow_mut().remove(self.number);
    }
}

/// A stream on its way from one shard of a process to another, or one that no shard has seen yet.
/// Dropping it closes the connection.
pub struct Detached {
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) peer: SocketAddr,
    /// Written and not taken by the operating system.
    pub(crate) unsent: Vec<u8>,
}

impl Detached {
    pub(crate) fn new(socket: Box<dyn Socket>, peer: SocketAddr) -> Detached {
        Detached { socket, peer, unsent: Vec::new() }
    }
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Detached({})", self.peer)
    }
}

/// Waits for a connection: [`Tasks::accept`](crate::Tasks::accept).
#[must_use = "no connection is taken unless this is awaited"]
pub struct Accept {
    host: Rc<dyn Host>,
}

impl Accept {
    pub(crate) fn new(host: Rc<dyn Host>) -> Accept {
        Accept { host }
    }
}

impl Future for Accept {
    type Output = Stream;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Stream> {
        let accepted = self.host.sockets().borrow_mut().accept(self.host.current());
        match accepted {
            Some((number, peer)) => Poll::Ready(Stream::new(self.host.clone(), number, peer)),
            None => Poll::Pending,
        }
    }
}
