//! The engine of a database, and its replacement when the nodes have taken a client for dead.
//!
//! A client loses its place when the nodes hear nothing from it for two seconds, for example
//! because its machine was suspended or a cable was out. When it comes back it is refused if
//! another client has used that place, or if its clock has stood still meanwhile; and it refuses a
//! node itself that does not have the data that it had. Then its engine is useless
//! ([`Driver::is_refused`]), and the next operation that needs one connects another
//! engine, in a free place: the client begins a new *life*.
//!
//! What was under way in the old life is over. An attempt of a transaction ends as after a conflict
//! ([`Abort::Unknown`](plimsoll_types::Abort::Unknown)) and is followed by the next one. A commit
//! that was not answered is in doubt. A snapshot is gone, since its versions are no longer kept for
//! this client. Sessions go on: what a session has seen is a timestamp, and snapshots of the new
//! life begin there as those of the old life did.
//!
//! Example. A laptop sleeps for an hour, and meanwhile another client has had its place. It wakes
//! up, dials in its old life, and is refused. Its program reads in a transaction: the read connects
//! anew, which takes some milliseconds, and succeeds.
//!
//! Connecting needs all nodes, as for every new client. If one cannot be reached, the operation
//! fails with [`Error::Unreachable`], and the next operation tries again. In three cases a client
//! cannot come back: if nodes that keep nothing have been started again, since its data is gone,
//! and under vts, where what a session has seen is a vector that is valid in one life only
//! ([`Error::CutOff`]); and if a node of a database that does not wait for its disks was started
//! again, since what this client was told may be lost ([`Error::Lost`]).

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use plimsoll_types::ShardId;

use super::driver::Driver;
use crate::error::Error;

/// Connects a client.
pub(super) type Connect = Box<dyn Fn() -> Result<Driver, Error> + Send + Sync>;

/// The engine of this life, and how to connect that of the next.
pub(super) struct Lives {
    /// `None` once the database is closed.
    engine: RwLock<Option<Driver>>,
    /// `None` if the data is in this process.
    connect: Option<Connect>,
    /// Whether the database has gone back to a timestamp if a node was started again.
    goes_back: bool,
    /// When connecting last failed, and why. Locked by the thread that connects.
    in_vain: RwLock<Option<(Instant, Error)>>,
    /// Those of former lives.
    early_answers: AtomicU64,
}

/// The engine, for one operation.
pub(super) struct Running<'a>(RwLockReadGuard<'a, Option<Driver>>);

impl Deref for Running<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.0.as_ref().expect("an engine that runs is looked at")
    }
}

impl Running<'_> {
    /// The shard that coordinates work on what `shard` owns: `shard` itself or, if that is in
    /// another process, the first shard of this one.
    pub(super) fn coordinator(&self, shard: ShardId) -> ShardId {
        let own = self.own();
        match own.contains(&shard.index()) {
            true => shard,
            false => ShardId(own.start as u16),
        }
    }
}

impl Lives {
    pub(super) fn new(engine: Driver, connect: Option<Connect>, goes_back: bool) -> Lives {
        Lives {
            engine: RwLock::new(Some(engine)),
            connect,
            goes_back,
            in_vain: RwLock::default(),
            early_answers: AtomicU64::new(0),
        }
    }

    /// Whether the data is in other processes.
    pub(super) fn is_client(&self) -> bool {
        self.connect.is_some()
    }

    /// The engine; [`Error::Closed`] once the database is closed. Connects anew first if the engine
    /// was refused. Holds a read lock, so calls must not be nested.
    pub(super) fn running(&self) -> Result<Running<'_>, Error> {
        loop {
            let running = self.as_it_is()?;
            if !running.is_refused() {
                return Ok(running);
            }
            drop(running);
            self.begin_anew()?;
        }
    }

    /// The engine, even if it was refused.
    pub(super) fn as_it_is(&self) -> Result<Running<'_>, Error> {
        let guard = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        if guard.is_some() { Ok(Running(guard)) } else { Err(Error::Closed) }
    }

    /// The sum of [`Driver::early_answers`] over all lives.
    pub(super) fn early_answers(&self) -> u64 {
        self.early_answers.load(Relaxed) + self.as_it_is().map_or(0, |running| running.early_answers())
    }

    /// Connects anew, unless another thread has meanwhile done so, or tried and failed.
    fn begin_anew(&self) -> Result<(), Error> {
        let asked = Instant::now();
        let mut in_vain = self.in_vain.write().unwrap_or_else(PoisonError::into_inner);
        match &*in_vain {
            Some((since, error)) if *since >= asked => return Err(error.clone()),
            _ => {}
        }
        let former = self.as_it_is()?;
        if !former.is_refused() {
            return Ok(());
        }
        let met = former.met();
        drop(former);
        let connect = self.connect.as_ref().expect("who is refused has connected");
        let next = connect().and_then(|next| match next.met() == met {
            true => Ok(next),
            false if self.goes_back => Err(Error::Lost),
            false => Err(Error::CutOff {
                why: "nodes were started again meanwhile, and what they held is gone".to_owned(),
            }),
        });
        let next = next.inspect_err(|error| *in_vain = Some((Instant::now(), error.clone())))?;
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        let Some(former) = engine.as_mut() else { return Err(Error::Closed) };
        self.early_answers.fetch_add(former.early_answers(), Relaxed);
        next.add_tables_of(former);
        let former = std::mem::replace(former, next);
        // Ending the old engine takes a moment: do it without the lock.
        drop(engine);
        drop(former);
        Ok(())
    }

    /// Ends the engine, once the operations that have begun are over.
    pub(super) fn close(&self) {
        let engine = self.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        engine.inspect(Driver::settle);
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        self.close();
    }
}
