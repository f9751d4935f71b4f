//! Both ends of simulated connections of bytes, as their streams see them.
//!
//! A [`SimulatedSocket`] reads what the world has brought to its end, and leaves there what it
//! writes. The world looks at an end that was *touched* when the pass of its shard is over
//! (`streams`). Sockets move between shards, so they have to be `Send`, and share their ends behind
//! a lock. The world has one thread, so no socket ever waits for the lock.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use plimsoll_types::ShardId;

use super::draw::Draw;
use crate::shard::Readiness;
use crate::stream::{Detached, Socket};
use crate::{Stream, Tasks};

/// The fewest bytes that may be under way, and how often that may be doubled.
const WINDOW_MIN: usize = 512;
const WINDOW_DOUBLINGS: u64 = 9;

/// One side of a connection, and of the other side what it knows.
#[derive(Default)]
pub(super) struct End {
    pub(super) shard: ShardId,
    /// Of its stream; `None` while it has none.
    pub(super) number: Option<u32>,
    /// It was dropped, or its shard has crashed.
    pub(super) closed: bool,
    /// The stream has to be told the state it is in.
    pub(super) attached: bool,
    /// It has dialed, which the network does not know yet.
    pub(super) dials: bool,
    /// Written, not sent yet.
    pub(super) outgoing: Vec<u8>,
    /// Bytes that were written and not, as far as is known, read by the other side, and how many
    /// there may be.
    pub(super) unread: usize,
    pub(super) window: usize,
    /// A write was refused, and the stream waits for room.
    pub(super) full: bool,
    /// It will write no more, and whether the other side was told.
    pub(super) shut: bool,
    pub(super) told: bool,
    /// When the last of its segments arrives.
    pub(super) last_ns: u64,
    /// Arrived, not read yet.
    pub(super) arrived: VecDeque<u8>,
    /// Read, and the other side does not know.
    pub(super) read: usize,
    /// The other side will write no more.
    pub(super) ended: bool,
    pub(super) reset: bool,
}

impl End {
    pub(super) fn readiness(&self) -> Readiness {
        Readiness {
            readable: !self.arrived.is_empty() || self.ended || self.reset,
            writable: self.unread < self.window || self.reset,
            gone: self.ended || self.reset,
        }
    }

    /// Nothing that is under way matters any more.
    pub(super) fn break_off(&mut self) {
        self.reset = true;
        self.arrived.clear();
        self.outgoing.clear();
    }
}

/// What sockets share with the world.
#[derive(Default)]
pub(super) struct Connections {
    /// By number; the side that dialed comes first.
    pub(super) ends: BTreeMap<u64, [End; 2]>,
    pub(super) dialed: u64,
    pub(super) seed: u64,
    /// Ends that the world has to look at when the pass of their shard ends.
    pub(super) touched: Vec<(ShardId, u64, usize)>,
}

#[derive(Clone, Default)]
pub(super) struct Shared(Arc<RwLock<Connections>>);

impl Shared {
    /// Never locked by two threads: a world has one.
    pub(super) fn lock(&self) -> RwLockWriteGuard<'_, Connections> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end of a connection, for its stream.
pub(super) struct SimulatedSocket {
    pub(super) shared: Shared,
    pub(super) connection: u64,
    pub(super) side: usize,
}

impl SimulatedSocket {
    /// Does something with the end, at which the world looks then.
    /// `None` if there is no connection any more.
    fn with<R>(&self, work: impl FnOnce(&mut End) -> R) -> Option<R> {
        let connections = &mut *self.shared.lock();
        let end = &mut connections.ends.get_mut(&self.connection)?[self.side];
        let result = work(end);
        connections.touched.push((end.shard, self.connection, self.side));
        Some(result)
    }
}

impl Socket for SimulatedSocket {
    fn attach(&mut self, shard: ShardId, number: u32) -> io::Result<()> {
        let attached = self.with(|end| (end.shard, end.number, end.attached) = (shard, Some(number), true));
        attached.ok_or_else(reset)
    }

    fn detach(&mut self) {
        self.with(|end| end.number = None);
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.with(|end| {
            if end.reset {
                return Err(reset());
            }
            if end.arrived.is_empty() && !end.ended {
                return Err(ErrorKind::WouldBlock.into());
            }
            let bytes = into.len().min(end.arrived.len());
            into.iter_mut().zip(end.arrived.drain(..bytes)).for_each(|(place, byte)| *place = byte);
            end.read += bytes;
            Ok(bytes)
        })
        .unwrap_or_else(|| Err(reset()))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|end| {
            if end.reset {
                return Err(reset());
            }
            if end.shut {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let taken = bytes.len().min(end.window - end.unread);
            end.full = taken < bytes.len();
            if taken == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            end.unread += taken;
            end.outgoing.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        })
        .unwrap_or_else(|| Err(reset()))
    }

    fn shut(&mut self) {
        self.with(|end| end.shut = true);
    }
}

fn reset() -> io::Error {
    ErrorKind::ConnectionReset.into()
}

impl Drop for SimulatedSocket {
    fn drop(&mut self) {
        self.with(|end| (end.closed, end.shut, end.number) = (true, true, None));
    }
}

/// Makes connections from shard to shard, for tasks that play clients. A world has it:
/// [`World::dialer`](super::World::dialer).
#[derive(Clone)]
pub struct Dialer {
    pub(super) shared: Shared,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    /// Dials a shard, whose tasks get the other end by [`Tasks::accept`]. The stream can be used at
    /// once; if the shard is down, it is reset a little later.
    pub fn connect(&self, env: &impl Tasks, to: ShardId) -> Stream {
        let mut connections = self.shared.lock();
        let connection = connections.dialed;
        connections.dialed += 1;
        let mut draw = Draw::new(connections.seed, "stream window", connection);
        let mut end = |shard: ShardId| {
            let window = WINDOW_MIN << draw.below(WINDOW_DOUBLINGS);
            End { shard, window, ..End::default() }
        };
        let ends = [End { dials: true, ..end(env.shard()) }, end(to)];
        connections.ends.insert(connection, ends);
        drop(connections);
        let socket = SimulatedSocket { shared: self.shared.clone(), connection, side: 0 };
        env.attach(Detached::new(Box::new(socket), address(to, 1)))
    }
}

/// The address of a shard.
pub(super) fn address(shard: ShardId, port: u16) -> SocketAddr {
    let [high, low] = shard.0.to_be_bytes();
    SocketAddr::from(([10, high, low, 1], port))
}
