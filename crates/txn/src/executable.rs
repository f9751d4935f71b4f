//! Procedures without their types.
//!
//! Protocols run a `dyn Executable`, so their code is compiled once per pair of protocol and scheme, and not again
//! for each workload. What is compiled for each procedure and each scheme are its pieces, over the three kinds of
//! access, and the two loops that run a whole transaction in one step. So a transaction whose data is all at hand
//! costs one call through a table, and another one a call per piece.

use plimsoll_types::{Abort, Slot, TxnId};

use crate::base::Base;
use crate::local::{AtSnapshot, Local};
use crate::procedure::{Piece, Procedure, Reads};
use crate::protocol::Stop;
use crate::remote::Remote;
use crate::shipped::Shipped;
use crate::timestamp::Scheme;
use crate::work::Work;

/// Rows that a read-only transaction reads in one go: about 100 µs.
pub(crate) const ROWS_PER_STEP: usize = 1000;

/// A [`Procedure`] as the shards of a scheme execute it. Every procedure is one.
pub trait Executable<S: Scheme> {
    /// See [`Procedure::read_only`].
    fn read_only(&self) -> bool;

    /// See [`Procedure::stage`].
    fn stage(&self, stage: usize) -> usize;

    /// See [`Procedure::home`].
    fn home(&self, piece: Piece) -> Slot;

    /// See [`Procedure::reads`].
    fn reads(&self, piece: Piece, reads: &mut Reads);

    /// See [`Procedure::shipped`].
    fn shipped(&mut self) -> Option<&mut dyn Shipped>;

    /// Executes a read-write piece directly on the store.
    fn execute_here(&mut self, piece: Piece, access: &mut Local<'_, S>) -> Result<(), Abort>;

    /// Executes a piece over what was fetched.
    fn execute_fetched(&mut self, piece: Piece, access: &mut Remote<'_, S>) -> Result<(), Abort>;

    /// Executes a piece at a snapshot, directly on the store.
    fn execute_at(&mut self, piece: Piece, access: &mut AtSnapshot<'_, S>) -> Result<(), Abort>;

    /// Executes directly on the store: the pieces of stage `first` that belong here (others are done already, if they
    /// may be: `txn` is then known), and all later stages, which must be here entirely. `track`: see [`Local::track`].
    fn run_here(
        &mut self,
        base: &mut Base<S>,
        work: &mut Work<S>,
        first: usize,
        txn: Option<&TxnId>,
        track: bool,
    ) -> Result<(), Stop>;

    /// Executes all pieces at a snapshot, directly on the store; `None` if that is not possible, because some of them
    /// belong to another shard, read too much for one step, or meet a writer that may commit within the snapshot.
    fn run_at(
        &mut self,
        base: &mut Base<S>,
        txn: TxnId,
        snapshot: &S::Snapshot,
        work: &mut Work<S>,
    ) -> Option<Result<(), Abort>>;
}

impl<S: Scheme, T: Procedure> Executable<S> for T {
    fn read_only(&self) -> bool {
        Procedure::read_only(self)
    }

    fn stage(&self, stage: usize) -> usize {
        Procedure::stage(self, stage)
    }

    fn home(&self, piece: Piece) -> Slot {
        Procedure::home(self, piece)
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        Procedure::reads(self, piece, reads);
    }

    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Procedure::shipped(self)
    }

    fn execute_here(&mut self, piece: Piece, access: &mut Local<'_, S>) -> Result<(), Abort> {
        self.execute(piece, access)
    }

    fn execute_fetched(&mut self, piece: Piece, access: &mut Remote<'_, S>) -> Result<(), Abort> {
        self.execute(piece, access)
    }

    fn execute_at(&mut self, piece: Piece, access: &mut AtSnapshot<'_, S>) -> Result<(), Abort> {
        self.execute(piece, access)
    }

    fn run_here(
        &mut self,
        base: &mut Base<S>,
        work: &mut Work<S>,
        first: usize,
        txn: Option<&TxnId>,
        track: bool,
    ) -> Result<(), Stop> {
        for stage in first.. {
            let pieces = Procedure::stage(self, stage);
            if pieces == 0 {
                break;
            }
            let here = |number| base.owner(Procedure::home(self, Piece { stage, number })) == base.shard;
            let done_elsewhere = stage == first && txn.is_some();
            if !done_elsewhere && !(0..pieces).all(here) {
                base.counters.vain += u64::from(stage > first);
                return Err(Stop::Elsewhere);
            }
            for number in 0..pieces {
                let piece = Piece { stage, number };
                if done_elsewhere && base.owner(Procedure::home(self, piece)) != base.shard {
                    continue;
                }
                let mut local = Local { base, work, txn, track, stop: None };
                if let Err(abort) = self.execute(piece, &mut local) {
                    let stop = local.stop;
                    base.counters.vain += u64::from(stop.is_some());
                    return Err(stop.unwrap_or(Stop::Abort(abort)));
                }
            }
        }
        Ok(())
    }

    fn run_at(
        &mut self,
        base: &mut Base<S>,
        txn: TxnId,
        snapshot: &S::Snapshot,
        work: &mut Work<S>,
    ) -> Option<Result<(), Abort>> {
        let mut rows = 0;
        for stage in 0.. {
            let pieces = Procedure::stage(self, stage);
            if pieces == 0 {
                break;
            }
            let here = |number| base.owner(Procedure::home(self, Piece { stage, number })) == base.shard;
            if !(0..pieces).all(here) {
                return None;
            }
            for number in 0..pieces {
                if rows > ROWS_PER_STEP {
                    return None;
                }
                let recorded = work.recorded.as_deref_mut();
                let mut access =
                    AtSnapshot { base, txn, snapshot, recorded, blocked: false, too_old: false, rows: 0 };
                if let Err(abort) = self.execute(Piece { stage, number }, &mut access) {
                    return if access.blocked || access.too_old { None } else { Some(Err(abort)) };
                }
                rows += access.rows;
            }
        }
        Some(Ok(()))
    }
}
