//! Runs procedures.
//!
//! [`execute`] runs one attempt. A read-only one goes the way its timestamp scheme says. One whose
//! data is all on its coordinator's shard runs as one uninterrupted step, the same under every
//! protocol: nobody can come in between, so checking that no lock is in the way is as good as
//! locking. All others read from the shards that hold their data, stage by stage, until all that is
//! left is at hand, and then commit as their protocol says ([`Interactive::commit`]).
//!
//! The first step is a plain function (`first_step`). Most transactions end with it, and no future
//! is made for them.

use std::pin::Pin;

use plimsoll_runtime::{Env, Participant, ShardEnv};
use plimsoll_store::Holder;
use plimsoll_types::{Abort, ShardId, TxnId};

use crate::attempt::{Attempt, First, Stop};
use crate::base::Base;
use crate::executable::{AnyProcedure, Executable, Executes};
use crate::procedure::{Piece, Reads};
use crate::protocol::{ActiveTransaction, Interactive, Protocol, Rest};
use crate::read_only;
use crate::remote::Remote;
use crate::stamps::{answerable, is_answerable};
use crate::timestamp::{ReadOnly, Scheme};
use crate::work::Footprint;

/// The steps of an attempt, compiled for one pair of protocol and scheme: [`crate::pairs`].
pub trait CompiledSteps: Protocol<Scheme: Executes> + Participant {
    /// The first step: see [`execute`].
    fn first_step(
        env: &ShardEnv<Self>,
        attempt: Attempt,
        procedure: &mut dyn Executable<Self::Scheme>,
        work: &mut Footprint<Self::Scheme>,
    ) -> First<Self::Scheme>;

    /// All other steps: see [`execute`].
    fn other_steps<'a>(
        env: &'a ShardEnv<Self>,
        first: First<Self::Scheme>,
        attempt: Attempt,
        procedure: &'a mut dyn Executable<Self::Scheme>,
        work: &'a mut Footprint<Self::Scheme>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Abort>> + 'a>>;
}

/// Runs one attempt of a procedure; what it came to is in `work.committed`. All aborts but
/// [`Abort::User`] are worth another attempt, after the caller has paused: the lock it met may be
/// one whose release lies in this shard's own inbox.
pub async fn execute<P: CompiledSteps>(
    env: &ShardEnv<P>,
    attempt: Attempt,
    procedure: &mut dyn AnyProcedure,
    work: &mut Footprint<P::Scheme>,
) -> Result<(), Abort> {
    let procedure = <P::Scheme as Executes>::executable(procedure);
    match P::first_step(env, attempt, procedure, work) {
        First::Over(result) => result,
        first => P::other_steps(env, first, attempt, procedure, work).await,
    }
}

/// See [`execute`].
pub(crate) fn first_step<P: Protocol, E: Env<P>>(
    env: &E,
    attempt: Attempt,
    procedure: &mut dyn Executable<P::Scheme>,
    work: &mut Footprint<P::Scheme>,
) -> First<P::Scheme> {
    if procedure.read_only() && <P::Scheme as Scheme>::READ_ONLY == ReadOnly::Snapshot {
        let first = env.local(|node| read_only::first_step(node.base(), attempt, procedure, work));
        return unless_unstable::<P, E>(env, first);
    }
    let done = env.local(|node| {
        node.at_once(attempt, procedure, work).inspect_err(|stop| {
            if let Stop::Abort(abort) = stop {
                work.committed.id = node.base().gave_up(*abort);
            }
        })
    });
    let first = match done {
        Ok(()) if is_answerable::<P, E>(env, work.committed.stamp.unwrap_or_default()) => First::Over(Ok(())),
        Ok(()) => First::Answered(Ok(())),
        Err(Stop::Abort(abort)) => First::Over(Err(abort)),
        Err(Stop::Elsewhere | Stop::Conflict) => First::Writes,
    };
    unless_unstable::<P, E>(env, first)
}

/// What an attempt has come to waits if it may tell of something that is not on disk yet.
#[inline]
fn unless_unstable<P: Protocol, E: Env<P>>(env: &E, first: First<P::Scheme>) -> First<P::Scheme> {
    match first {
        First::Over(result) if !env.local(|node| node.base().logged().is_stable()) => First::Answered(result),
        first => first,
    }
}

/// See [`execute`].
pub(crate) async fn other_steps<P: Protocol, E: Env<P>>(
    env: &E,
    first: First<P::Scheme>,
    attempt: Attempt,
    procedure: &mut dyn Executable<P::Scheme>,
    work: &mut Footprint<P::Scheme>,
) -> Result<(), Abort> {
    match first {
        First::Over(result) => return result,
        First::Reads(snapshot) => {
            let result = read_only::at_snapshot(env, attempt, snapshot, procedure, work).await;
            env.stable().await;
            return result;
        }
        First::Answered(Ok(())) => {}
        First::Answered(result) => {
            env.stable().await;
            return result;
        }
        First::Writes => {
            if let Err(abort) = P::run(env, attempt, procedure, work).await {
                env.stable().await;
                return Err(abort);
            }
        }
    }
    answerable(env, work.committed.stamp.unwrap_or_default()).await;
    Ok(())
}

/// A transaction over several shards, or one that has to wait.
pub(crate) async fn run<P: Interactive, E: Env<P>>(
    env: &E,
    attempt: Attempt,
    procedure: &mut dyn Executable<P::Scheme>,
    work: &mut Footprint<P::Scheme>,
) -> Result<(), Abort> {
    let mut open = env.local(|node| {
        node.base().start(work, attempt);
        node.base().counters.coordinated += 1;
        let holder = Holder { age: attempt.age, txn: node.base().begin() };
        work.committed.id = holder.txn;
        ActiveTransaction::new(holder, std::mem::take(work))
    });
    let result = run_open(env, &mut open, procedure).await;
    open.end(env);
    *work = open.work;
    result
}

async fn run_open<P: Interactive, E: Env<P>>(
    env: &E,
    open: &mut ActiveTransaction<P::Scheme>,
    procedure: &mut dyn Executable<P::Scheme>,
) -> Result<(), Abort> {
    // Which pieces are here must not change between one look and the next.
    let map = env.local(|node| node.base().map());
    let mut stage = 0;
    // Whether what is left may run directly on the store, in one step with the commit.
    let mut direct = true;
    // Which pieces of `stage` are done: those that belong to other shards, or none.
    let mut left = Pieces::All;
    loop {
        while procedure.stage(stage) > 0 {
            // The pieces of a stage do not depend on each other: those here can wait until the
            // others are read, executed and locked, so that nobody gets in between them and the
            // commit.
            let now = if direct { Pieces::Elsewhere } else { left };
            let planned = env.local(|node| {
                let base = node.base();
                (base.map() == map).then(|| plan(base, procedure, stage, now))
            });
            let Some((numbers, mut batches)) = planned else {
                return Err(P::abort(env, open, Abort::StaleTerm).await);
            };
            for (scan, _) in batches.iter_mut().flat_map(|(_, reads)| &mut reads.scans) {
                // Rows that the transaction has deleted do not count.
                let own = open.work.writes.in_range(scan.column, &scan.low, scan.high.as_ref(), scan.order);
                let own = own.count();
                scan.limit = scan.limit.saturating_add(own);
            }
            if !batches.is_empty() {
                P::read(env, open, batches).await?;
            }
            let executed = env.local(|node| {
                if node.base().map() != map {
                    return Err(Abort::StaleTerm);
                }
                numbers.iter().try_for_each(|&number| {
                    let mut access = Remote::new(node.base(), &mut open.parts, &mut open.work);
                    procedure.execute_fetched(Piece { stage, number }, &mut access)
                })
            });
            if let Err(abort) = executed {
                return Err(P::abort(env, open, abort).await);
            }
            if direct && numbers.len() < procedure.stage(stage) {
                left = Pieces::Here;
                break;
            }
            left = Pieces::All;
            stage += 1;
        }
        let left = direct && procedure.stage(stage) > 0;
        let mut rest = |base: &mut Base<P::Scheme>, work: &mut Footprint<P::Scheme>, txn: TxnId, track| {
            if base.map() != map {
                return Err(Stop::Abort(Abort::StaleTerm));
            }
            procedure.run_here(base, work, stage, Some(&txn), track)
        };
        let rest: Rest<'_, P::Scheme> = &mut rest;
        match P::commit(env, open, left.then_some(rest)).await {
            Ok(()) => return Ok(()),
            Err(Stop::Abort(abort)) => return Err(abort),
            Err(Stop::Elsewhere | Stop::Conflict) => {
                assert!(direct, "a transaction that has read all its data commits or aborts");
                direct = false;
            }
        }
    }
}

/// Some pieces of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pieces {
    All,
    Here,
    Elsewhere,
}

/// Some pieces of a stage, and their reads, one batch per shard.
pub(crate) fn plan<S: Scheme>(
    base: &Base<S>,
    procedure: &dyn Executable<S>,
    stage: usize,
    pieces: Pieces,
) -> (Vec<usize>, Vec<(ShardId, Reads)>) {
    let mut numbers = Vec::new();
    let mut batches = Vec::new();
    for number in 0..procedure.stage(stage) {
        let piece = Piece { stage, number };
        let shard = base.owner(procedure.home(piece));
        let wanted = match pieces {
            Pieces::All => true,
            Pieces::Here => shard == base.shard,
            Pieces::Elsewhere => shard != base.shard,
        };
        if wanted {
            numbers.push(number);
            procedure.reads(piece, read_only::batch(&mut batches, shard));
        }
    }
    for (_, reads) in &mut batches {
        reads.gets.retain(|(column, ..)| !base.at_hand(column.table));
    }
    // A piece that only writes asks for nothing.
    batches.retain(|(_, reads)| !reads.gets.is_empty() || !reads.scans.is_empty());
    batches.iter_mut().for_each(|(shard, reads)| base.seal(*shard, reads));
    (numbers, batches)
}
