//! A connection's life: from its first byte to its last.
//!
//! | module | has |
//! |---|---|
//! | `login` | what precedes the first statement |
//! | `conversation` | the messages: what each does, and what an error in one does to the others |
//! | `statement` | simple queries; how statements are understood, and run again |
//! | `extended` | those of the extended protocol |
//! | `portal` | statements that are prepared, and portals |
//! | `running` | how work runs: row by row, with pauses |
//! | `utility` | statements that are no queries: `SET`, `SHOW`, `PREPARE`, ... |
//! | `transaction` | blocks and savepoints |
//! | `settings` | settings, and what transactions do to them |
//! | `cursors` | cursors that are declared |
//! | `cache` | statements that have been understood before |
//! | `explain` | `EXPLAIN` |
//! | `journal` | transactions that are run again |
//! | `loading` | rows that nobody else can see yet |
//! | `trace` | transactions of the database that are done again |
//! | `showing`, `statistics` | what others see of a session, and what statements take |
//! | `conflicts`, `recent` | what a client is told of a conflict |
//! | `stripes` | what all sessions of a node write to |
//! | `reservations` | which session writes a row next |
//! | `names` | descriptors that names stand for |
//! | `data` | the database's transaction below the session's |
//! | `writing` | `INSERT`, `UPDATE`, `DELETE` |
//! | `checking`, `evaluating` | conditions of rows, and expressions evaluated by themselves |
//! | `references` | foreign keys, when rows are written |
//! | `sequences` | numbers of sequences |
//! | `entries` | entries of indexes |
//! | `definition` | tables made and dropped |
//! | `copy`, `lines`, `tuples` | `COPY`, and how its rows are written |
//! | `cancel` | the places of sessions, and requests to cancel |
//!
//! A session is a future over two traits: a [`Stream`] that its bytes come and go by, and a
//! [`World`] that has time and chance. So it runs as a task of a shard, on a thread of a test and
//! in a simulated world, and nothing in it can tell them apart. Bytes are read when no whole
//! message is left, and replies are written when the client is waiting for them (after a Sync, a
//! Flush or a simple query) or when 64 KiB have come together; then the session waits until they
//! are taken, so that a slow reader costs no memory. What takes long pauses, so that the shard's
//! other tasks run, and looks then whether it is to be cancelled.
//!
//! Passwords and encryption are left out: whoever connects is trusted, so a listener must not offer
//! this to other machines.
#![cfg_attr(
    not(test),
    deny(
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

mod cache;
mod cancel;
mod checking;
mod conflicts;
mod conversation;
mod copy;
mod cursors;
mod data;
mod definition;
mod entries;
mod evaluating;
mod explain;
mod extended;
mod journal;
mod lines;
mod loading;
mod login;
mod names;
mod portal;
mod recent;
mod references;
mod reservations;
mod running;
mod sequences;
mod settings;
mod showing;
mod statement;
mod statistics;
mod stripes;
#[cfg(test)]
mod tests;
mod trace;
mod transaction;
mod tuples;
mod utility;
mod writing;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

pub use cancel::{Place, Places};
use conflicts::Conflict;
pub use reservations::Sender;

use crate::SqlError;
use crate::store::{Failure, Store};
use crate::wire::backend;

/// Bytes of replies that are held back at most before the session waits for the client.
const OUT_BYTES_MAX: usize = 64 << 10;

/// Bytes of room that buffers keep while a session is idle.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The other end is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// The bytes of a connection.
pub trait Stream {
    /// Waits for bytes and appends them; none are the end.
    fn read(&mut self, buffer: &mut Vec<u8>) -> impl Future<Output = Result<usize, Closed>>;

    /// Writes all of it, waiting as long as the other end does not take it.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = Result<(), Closed>>;

    /// Lets the other end go, before the session is over.
    fn close(&mut self) -> impl Future<Output = ()> {
        async {}
    }
}

/// What a session has of its surroundings.
pub trait World {
    /// The database.
    type Store: Store;

    /// The database.
    fn store(&self) -> &Self::Store;

    /// The time, in microseconds since 2000-01-01.
    fn now_us(&self) -> i64;

    /// 64 random bits that nobody can guess.
    fn random(&self) -> u64;

    /// Where the client is, if that is known.
    fn client(&self) -> Option<SocketAddr> {
        None
    }

    /// The shard of another node that keeps the queue for a row; none if this node does.
    fn keeper(&self, key: &[u8]) -> Option<u16> {
        let _ = key;
        None
    }

    /// Sends messages to the shards of other nodes, for [`Places::receive`]; none if there are no
    /// other nodes.
    fn sender(&self) -> Option<Sender> {
        None
    }

    /// Lets others run.
    fn pause(&self) -> impl Future<Output = ()>;

    /// Lets everything else go first that others wait for.
    fn give_way(&self) -> impl Future<Output = ()> {
        self.pause()
    }

    /// Waits for some microseconds.
    fn sleep(&self, us: u64) -> impl Future<Output = ()>;
}

/// Serves a connection until either end ends it.
pub async fn serve<S: Stream, W: World>(stream: &mut S, world: &W, places: &Arc<Places>) {
    let mut line = Line::new(stream);
    let mut arrived = Vec::new();
    // That the client is gone needs no answer.
    if let Ok(Some(session)) = login::login(&mut line, &mut arrived, world, places).await {
        let _ = conversation::converse(session, &mut line, &mut arrived).await;
    }
}

/// Refuses a connection with an error, for who has to say no before there can be a session.
pub async fn refuse<S: Stream>(stream: &mut S, error: &SqlError) {
    let mut line = Line::new(stream);
    backend::error(&mut line.out, error);
    // That the client is gone needs no answer.
    let _ = line.flush().await;
}

/// Why a message was not carried out.
#[derive(Debug)]
enum Stop {
    /// An error for the client.
    Error(SqlError),
    /// The database has ended the transaction, which may be tried again.
    Conflict(Conflict),
    /// There is no client.
    Closed,
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Stop {
        Stop::Error(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        match failure {
            Failure::Conflict(why) => Stop::Conflict(why.into()),
            Failure::Error(error) => Stop::Error(error),
        }
    }
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Stop {
        Stop::Closed
    }
}

/// A stream with the replies that have not been written.
struct Line<'a, S> {
    stream: &'a mut S,
    out: Vec<u8>,
    /// Whether the client is waiting for them.
    due: bool,
    /// How often replies were written.
    writes: u64,
}

impl<'a, S: Stream> Line<'a, S> {
    fn new(stream: &'a mut S) -> Line<'a, S> {
        Line { stream, out: Vec::new(), due: false, writes: 0 }
    }

    /// Writes what there is.
    async fn flush(&mut self) -> Result<(), Closed> {
        self.due = false;
        if !self.out.is_empty() {
            self.writes += 1;
            for piece in self.out.chunks(OUT_BYTES_MAX) {
                self.stream.write(piece).await?;
            }
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES_MAX);
        }
        Ok(())
    }

    /// Writes what there is if it is much.
    async fn give_way(&mut self) -> Result<(), Closed> {
        if self.out.len() >= OUT_BYTES_MAX {
            let due = self.due;
            self.flush().await?;
            self.due = due;
        }
        Ok(())
    }

    /// Waits for bytes.
    async fn read(&mut self, arrived: &mut Vec<u8>) -> Result<(), Closed> {
        match self.stream.read(arrived).await? {
            0 => Err(Closed),
            _ => Ok(()),
        }
    }
}
