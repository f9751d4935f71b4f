//! The engine of a database; and of a client that the nodes took for dead, the next one.
//!
//! A client of which the nodes hear nothing for two seconds, because its machine was suspended or a cable was out, has lost its
//! place. If anybody has used that place when it comes back, or if its clock has stood still meanwhile, it is refused, and its
//! engine is of no use any more ([`Driver::is_refused`]). Whoever needs the engine next connects another, in a place that is
//! free: the client begins a new *life*.
//!
//! What was under way in the former one is over there. An attempt of a transaction ends as if it had met another
//! ([`Abort::Unknown`](plimsoll_types::Abort::Unknown)) and is followed by the next, a commit that nobody has answered is in
//! doubt, and a snapshot is gone, since its versions are held for nobody any more. What sessions have seen goes on: it is a
//! timestamp, and snapshots of the new life begin there as those of the former did.
//!
//! Example. A laptop sleeps for an hour; meanwhile others come and go, and one has had its place. It wakes up, dials in its old
//! life and is refused. Its program reads in a transaction: that connects anew, which takes some milliseconds, and reads.
//!
//! All nodes have to be there for that, as for every client that comes; who finds that they are not is told
//! [`Error::Unreachable`], and the next one tries again. Two clients do not come back ([`Error::CutOff`]): one whose nodes have all
//! been started again, which would find nothing where its data was, and one under vts, where what a session has seen is a
//! vector that ends with its life.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use plimsoll_types::ShardId;

use super::driver::Driver;
use crate::error::Error;

/// Connects a client.
pub(super) type Connect = Box<dyn Fn() -> Result<Box<dyn Driver>, Error> + Send + Sync>;

/// The engine of this life, and the way to the next.
pub(super) struct Lives {
    /// `None` after the database was closed.
    engine: RwLock<Option<Box<dyn Driver>>>,
    /// `None` if the data is in this process.
    connect: Option<Connect>,
    /// Held by whoever connects: when that was last in vain, and why.
    in_vain: RwLock<Option<(Instant, Error)>>,
    /// Of former lives.
    early_answers: AtomicU64,
}

/// The engine, for one operation.
pub(super) struct Running<'a>(RwLockReadGuard<'a, Option<Box<dyn Driver>>>);

impl Deref for Running<'_> {
    type Target = dyn Driver;

    fn deref(&self) -> &(dyn Driver + 'static) {
        self.0.as_deref().expect("an engine that runs is looked at")
    }
}

impl Running<'_> {
    /// Who works on what a shard owns: the shard itself, or if it is in another process, one of this.
    pub(super) fn coordinator(&self, shard: ShardId) -> ShardId {
        let own = self.own();
        match own.contains(&shard.index()) {
            true => shard,
            false => ShardId(own.start as u16),
        }
    }
}

impl Lives {
    pub(super) fn new(engine: Box<dyn Driver>, connect: Option<Connect>) -> Lives {
        Lives {
            engine: RwLock::new(Some(engine)),
            connect,
            in_vain: RwLock::default(),
            early_answers: AtomicU64::new(0),
        }
    }

    /// Whether the data is in other processes.
    pub(super) fn visits(&self) -> bool {
        self.connect.is_some()
    }

    /// The engine, unless the database was closed; another one, if this was refused. Not to be nested.
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

    /// See [`Driver::early_answers`], of all lives.
    pub(super) fn early_answers(&self) -> u64 {
        self.early_answers.load(Relaxed) + self.as_it_is().map_or(0, |running| running.early_answers())
    }

    /// Connects anew, unless somebody has done so meanwhile, or has tried in vain.
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
            false => Err(Error::CutOff {
                why: "nodes were started again meanwhile, and what they held is gone".to_owned(),
            }),
        });
        let next = next.inspect_err(|error| *in_vain = Some((Instant::now(), error.clone())))?;
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        let Some(former) = engine.as_mut() else { return Err(Error::Closed) };
        self.early_answers.fetch_add(former.early_answers(), Relaxed);
        let former = std::mem::replace(former, next);
        // It takes a moment to end, and nobody has to wait for that.
        drop(engine);
        drop(former);
        Ok(())
    }

    /// Ends the engine, after the operations that have begun.
    pub(super) fn close(&self) {
        let engine = self.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(engine);
    }
}
