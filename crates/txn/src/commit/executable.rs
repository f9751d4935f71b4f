//! Procedures without their types.
//!
//! Protocols run a `dyn Executable`, so their code is compiled once per pair of protocol and
//! scheme, and not again for each workload. What is compiled for each procedure and each scheme are
//! its pieces, over the three kinds of access, and the two loops that run a whole transaction in
//! one step. So a transaction whose data is all at hand costs one call through a table, and another
//! one a call per piece.
//!
//! [`executable!`](crate::executable!) stands beside each procedure and compiles it there, for
//! every scheme. (An implementation for all procedures at once would be compiled again in each
//! crate that runs them.)

#[doc(hidden)]
pub use plimsoll_types::{Abort, Slot, TxnId};

use crate::attempt::{Attempt, Stop};
use crate::base::Base;
#[doc(hidden)]
pub use crate::local::{AtSnapshot, Local};
use crate::procedure::{Piece, Procedure, Reads};
#[doc(hidden)]
pub use crate::remote::Remote;
use crate::shipped::Shipped;
use crate::timestamp::Scheme;
use crate::timestamps::{Dst, Gts, NoTimestamps, Rc, Vts};
use crate::work::Footprint;

/// Rows that a read-only transaction reads in one go: about 100 µs.
pub(crate) const ROWS_PER_STEP: usize = 1000;

/// A [`Procedure`] as the shards of a scheme execute it: see [`executable!`](crate::executable!).
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

    /// Executes directly on the store: the pieces of stage `first` that belong here (others are
    /// done already, if they may be: `txn` is then known), and all later stages, which must be here
    /// entirely. `track`: whether reads will be validated later, and not only pinned.
    fn run_here(
        &mut self,
        base: &mut Base<S>,
        work: &mut Footprint<S>,
        first: usize,
        txn: Option<&TxnId>,
        track: bool,
    ) -> Result<(), Stop>;

    /// Executes all pieces at a snapshot, directly on the store; `None` if that is not possible,
    /// because some of them belong to another shard, read too much for one step, or meet a writer
    /// that may commit within the snapshot.
    fn run_at(
        &mut self,
        base: &mut Base<S>,
        txn: TxnId,
        snapshot: &S::Snapshot,
        work: &mut Footprint<S>,
    ) -> Option<Result<(), Abort>>;
}

/// A procedure under every scheme. [`executable!`](crate::executable!) makes one of a
/// [`Procedure`].
pub trait AnyProcedure {
    /// Under [`Dst`].
    fn under_dst(&mut self) -> &mut dyn Executable<Dst>;
    /// Under [`Gts`].
    fn under_gts(&mut self) -> &mut dyn Executable<Gts>;
    /// Under [`Vts`].
    fn under_vts(&mut self) -> &mut dyn Executable<Vts>;
    /// Under [`Rc`].
    fn under_rc(&mut self) -> &mut dyn Executable<Rc>;
    /// Under [`NoTimestamps`].
    fn under_none(&mut self) -> &mut dyn Executable<NoTimestamps>;
    /// See [`Procedure::read_only`].
    fn is_read_only(&self) -> bool;
}

/// A scheme under which procedures are compiled.
pub trait Executes: Scheme {
    /// A procedure as the shards of this scheme execute it.
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<Self>;
}

impl Executes for Dst {
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<Dst> {
        procedure.under_dst()
    }
}

impl Executes for Gts {
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<Gts> {
        procedure.under_gts()
    }
}

impl Executes for Vts {
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<Vts> {
        procedure.under_vts()
    }
}

impl Executes for Rc {
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<Rc> {
        procedure.under_rc()
    }
}

impl Executes for NoTimestamps {
    fn executable(procedure: &mut dyn AnyProcedure) -> &mut dyn Executable<NoTimestamps> {
        procedure.under_none()
    }
}

/// [`Executable::run_here`] for a procedure of a known type.
#[doc(hidden)]
#[inline]
pub fn run_here<S: Scheme, T: Procedure>(
    procedure: &mut T,
    base: &mut Base<S>,
    work: &mut Footprint<S>,
    first: usize,
    txn: Option<&TxnId>,
    track: bool,
) -> Result<(), Stop> {
    for stage in first.. {
        let pieces = procedure.stage(stage);
        if pieces == 0 {
            break;
        }
        let here = |number| base.owner(procedure.home(Piece { stage, number })) == base.shard;
        let done_elsewhere = stage == first && txn.is_some();
        if !done_elsewhere && !(0..pieces).all(here) {
            base.counters.vain += u64::from(stage > first);
            return Err(Stop::Elsewhere);
        }
        for number in 0..pieces {
            let piece = Piece { stage, number };
            if done_elsewhere && base.owner(procedure.home(piece)) != base.shard {
                continue;
            }
            let mut local = Local { base, work, txn, track, stop: None };
            if let Err(abort) = procedure.execute(piece, &mut local) {
                let stop = local.stop;
                base.counters.vain += u64::from(stop.is_some());
                return Err(stop.unwrap_or(Stop::Abort(abort)));
            }
        }
    }
    Ok(())
}

/// [`Executable::run_at`] for a procedure of a known type.
#[doc(hidden)]
#[inline]
pub fn run_at<S: Scheme, T: Procedure>(
    procedure: &mut T,
    base: &mut Base<S>,
    txn: TxnId,
    snapshot: &S::Snapshot,
    work: &mut Footprint<S>,
) -> Option<Result<(), Abort>> {
    let mut rows = 0;
    for stage in 0.. {
        let pieces = procedure.stage(stage);
        if pieces == 0 {
            break;
        }
        let here = |number| base.owner(procedure.home(Piece { stage, number })) == base.shard;
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
            if let Err(abort) = procedure.execute(Piece { stage, number }, &mut access) {
                return if access.blocked || access.too_old { None } else { Some(Err(abort)) };
            }
            rows += access.rows;
        }
    }
    Some(Ok(()))
}

/// A whole transaction in one step, if its data is all here and nobody holds a lock on it.
pub(crate) fn at_once<S: Scheme>(
    base: &mut Base<S>,
    attempt: Attempt,
    procedure: &mut dyn Executable<S>,
    work: &mut Footprint<S>,
) -> Result<(), Stop> {
    if !base.stamps_at_once() {
        return Err(Stop::Elsewhere);
    }
    base.start(work, attempt);
    procedure.run_here(base, work, 0, None, false)?;
    let id = base.next_id();
    let stamp = work.needs_stamp().then(|| base.commit_in_one_step(id, work));
    work.commit(id, stamp, 1);
    Ok(())
}

/// Makes a [`Procedure`] an [`Executable`] under every timestamp scheme.
///
/// ```ignore
/// impl Procedure for Transfer { ... }
/// plimsoll_txn::executable!(Transfer);
/// ```
#[macro_export]
macro_rules! executable {
    ($procedure:ty) => {
        $crate::executable!(@under Dst $procedure);
        $crate::executable!(@under Gts $procedure);
        $crate::executable!(@under Vts $procedure);
        $crate::executable!(@under Rc $procedure);
        $crate::executable!(@under NoTimestamps $procedure);

        impl $crate::executable::AnyProcedure for $procedure {
            fn under_dst(&mut self) -> &mut dyn $crate::executable::Executable<$crate::timestamps::Dst> {
                self
            }

            fn under_gts(&mut self) -> &mut dyn $crate::executable::Executable<$crate::timestamps::Gts> {
                self
            }

            fn under_vts(&mut self) -> &mut dyn $crate::executable::Executable<$crate::timestamps::Vts> {
                self
            }

            fn under_rc(&mut self) -> &mut dyn $crate::executable::Executable<$crate::timestamps::Rc> {
                self
            }

            fn under_none(
                &mut self,
            ) -> &mut dyn $crate::executable::Executable<$crate::timestamps::NoTimestamps> {
                self
            }

            fn is_read_only(&self) -> bool {
                $crate::procedure::Procedure::read_only(self)
            }
        }
    };
    (@under $scheme:ident $procedure:ty) => {
        impl $crate::executable::Executable<$crate::timestamps::$scheme> for $procedure {
            fn read_only(&self) -> bool {
                $crate::procedure::Procedure::read_only(self)
            }

            fn stage(&self, stage: usize) -> usize {
                $crate::procedure::Procedure::stage(self, stage)
            }

            fn home(&self, piece: $crate::procedure::Piece) -> $crate::executable::Slot {
                $crate::procedure::Procedure::home(self, piece)
            }

            fn reads(&self, piece: $crate::procedure::Piece, reads: &mut $crate::procedure::Reads) {
                $crate::procedure::Procedure::reads(self, piece, reads);
            }

            fn shipped(&mut self) -> Option<&mut dyn $crate::shipped::Shipped> {
                $crate::procedure::Procedure::shipped(self)
            }

            fn execute_here(
                &mut self,
                piece: $crate::procedure::Piece,
                access: &mut $crate::executable::Local<'_, $crate::timestamps::$scheme>,
            ) -> Result<(), $crate::executable::Abort> {
                $crate::procedure::Procedure::execute(self, piece, access)
            }

            fn execute_fetched(
                &mut self,
                piece: $crate::procedure::Piece,
                access: &mut $crate::executable::Remote<'_, $crate::timestamps::$scheme>,
            ) -> Result<(), $crate::executable::Abort> {
                $crate::procedure::Procedure::execute(self, piece, access)
            }

            fn execute_at(
                &mut self,
                piece: $crate::procedure::Piece,
                access: &mut $crate::executable::AtSnapshot<'_, $crate::timestamps::$scheme>,
            ) -> Result<(), $crate::executable::Abort> {
                $crate::procedure::Procedure::execute(self, piece, access)
            }

            fn run_here(
                &mut self,
                base: &mut $crate::base::Base<$crate::timestamps::$scheme>,
                work: &mut $crate::work::Footprint<$crate::timestamps::$scheme>,
                first: usize,
                txn: Option<&$crate::executable::TxnId>,
                track: bool,
            ) -> Result<(), $crate::attempt::Stop> {
                $crate::executable::run_here(self, base, work, first, txn, track)
            }

            fn run_at(
                &mut self,
                base: &mut $crate::base::Base<$crate::timestamps::$scheme>,
                txn: $crate::executable::TxnId,
                snapshot: &<$crate::timestamps::$scheme as $crate::timestamp::Scheme>::Snapshot,
                work: &mut $crate::work::Footprint<$crate::timestamps::$scheme>,
            ) -> Option<Result<(), $crate::executable::Abort>> {
                $crate::executable::run_at(self, base, txn, snapshot, work)
            }
        }
    };
}
