//! Read-only transactions.
//!
//! At a snapshot (DST, GTS, VTS) they run in the same way under every protocol, because a protocol
//! contributes only the owners of write locks and their lower bounds. Pieces whose data is on this
//! shard read the store directly; the reads of all others travel in one message per shard and
//! stage. The snapshot is fixed at the beginning, so there is nothing to validate and no reason to
//! abort. A long transaction lets others run between its pieces and continues at the same snapshot.
//! If the snapshot is older than the watermark, the transaction restarts silently. A clock fault can
//! cause that, or a shard that has come back with newer versions than an oracle has published.
//!
//! RC uses the same code: its "snapshot" contains every version, so each read finds the newest
//! committed one. It raises no marks and waits for no writer.

use std::future::Future;

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::{Abort, ShardId, TxnId};

use crate::attempt::{Attempt, First};
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::executable::{Executable, ROWS_PER_STEP};
use crate::local::AtSnapshot;
use crate::messages::{Common, CommonReply};
use crate::parts::{FetchedBatch, FetchedBatches};
use crate::procedure::{Piece, Reads};
use crate::protocol::Protocol;
use crate::remote::Remote;
use crate::timestamp::{Freshness, Scheme};
use crate::trace::What;
use crate::work::Footprint;

/// How long a reader waits before it repeats a request that was not answered, in nanoseconds.
pub(crate) const RETRY_NS: u64 = 1_000_000;
/// How often a read is repeated, at most.
const RETRIES: u32 = 1000;
/// How many repetitions one counts for after a read that was refused because of a transaction in
/// doubt.
const IN_DOUBT_RETRIES: u32 = 10;
/// The pause between repetitions doubles after every `PATIENT_RETRIES` of them, at most
/// `RETRY_DOUBLINGS` times. Slots move as slowly as two machines reach each other, and no shard
/// serves them meanwhile. In all a reader waits for about 15 s.
const PATIENT_RETRIES: u32 = 16;
const RETRY_DOUBLINGS: u32 = 4;

/// Runs a procedure at a snapshot in one step, if that is possible.
pub(crate) fn first_step<S: Scheme>(
    base: &mut Base<S>,
    attempt: Attempt,
    procedure: &mut dyn Executable<S>,
    work: &mut Footprint<S>,
) -> First<S> {
    let Some(snapshot) = base.scheme.snapshot(attempt.freshness) else { return First::Reads(None) };
    match here(base, &snapshot, attempt.freshness, procedure, work) {
        Some(result) => First::Over(ended(base, result, work)),
        None => First::Reads(Some(snapshot)),
    }
}

/// Runs a procedure at a snapshot: at `ready`, if one step at that snapshot was not enough, or else
/// at a new one.
pub(crate) async fn at_snapshot<P: Protocol, E: Env<P>>(
    env: &E,
    attempt: Attempt,
    mut ready: Option<<P::Scheme as Scheme>::Snapshot>,
    procedure: &mut dyn Executable<P::Scheme>,
    work: &mut Footprint<P::Scheme>,
) -> Result<(), Abort> {
    loop {
        let (snapshot, held) = match ready.take() {
            Some(snapshot) => (snapshot, None),
            None => {
                let (snapshot, held) = snapshot::<P, E>(env, attempt.freshness).await?;
                // A transaction that ends within this step needs no protection from garbage
                // collection.
                let result = env.local(|node| {
                    let base = node.base();
                    let result = here(base, &snapshot, attempt.freshness, procedure, work)?;
                    held.inspect(|&held| base.release(held));
                    Some(ended(base, result, work))
                });
                if let Some(result) = result {
                    return result;
                }
                (snapshot, held)
            }
        };
        let held = held.unwrap_or_else(|| env.local(|node| node.base().hold(snapshot.clone())));
        let result = everywhere(env, &snapshot, procedure, work).await;
        env.local(|node| node.base().release(held));
        match result {
            Err(ReadFailure::TooOld) => {
                env.local(|node| node.base().counters.read_only_restarts += 1);
                // In this step the next snapshot would be the same one.
                env.sleep(RETRY_NS).await;
            }
            Err(unread) => return Err(unread.into_abort()),
            Ok(()) => return Ok(()),
        }
    }
}

/// The result of a transaction that ended in one step. If it aborted, it gets a number.
fn ended<S: Scheme>(
    base: &mut Base<S>,
    result: Result<(), Abort>,
    work: &mut Footprint<S>,
) -> Result<(), Abort> {
    result.inspect_err(|&abort| work.committed.id = base.gave_up(abort))
}

/// A snapshot as fresh as asked for. If it had to be waited for, it has been held since it became
/// known. Otherwise the caller must hold it if it outlives this step.
pub async fn snapshot<P: Protocol, E: Env<P>>(
    env: &E,
    freshness: Freshness,
) -> Result<(<P::Scheme as Scheme>::Snapshot, Option<u32>), Abort> {
    if let Some(snapshot) = env.local(|node| node.base().scheme.snapshot(freshness)) {
        return Ok((snapshot, None));
    }
    match env.call(env.shard(), Envelope::Common(Common::Snapshot(freshness))).await.map(Answer::common) {
        Ok(CommonReply::Snapshot(snapshot, held)) => Ok((snapshot, Some(held))),
        Ok(CommonReply::OutOfReach) | Err(_) => {
            env.sleep(RETRY_NS).await;
            Err(Abort::Unknown)
        }
        Ok(_) => unreachable!("a request for a snapshot is answered with one"),
    }
}

/// Why a read returned nothing.
enum ReadFailure {
    /// The snapshot is too old.
    TooOld,
    /// Some of the rows are not on the shard that the map names.
    Elsewhere,
    Abort(Abort),
}

impl ReadFailure {
    /// For a transaction that has already shown a result and cannot restart.
    fn into_abort(self) -> Abort {
        match self {
            ReadFailure::TooOld => Abort::Validation,
            ReadFailure::Elsewhere => Abort::StaleTerm,
            ReadFailure::Abort(abort) => abort,
        }
    }
}

/// Runs the whole transaction in one step, if its data is on this shard and it is short and not
/// blocked.
fn here<S: Scheme>(
    base: &mut Base<S>,
    snapshot: &S::Snapshot,
    freshness: Freshness,
    procedure: &mut dyn Executable<S>,
    work: &mut Footprint<S>,
) -> Option<Result<(), Abort>> {
    work.reset(base.installs.is_some());
    let txn = base.coming();
    base.step(txn, |_| What::Snapshot(S::place(snapshot), freshness));
    if let Err(abort) = procedure.run_at(base, txn, snapshot, work)? {
        return Some(Err(abort));
    }
    work.commit(base.next_id(), S::place(snapshot), 1);
    Some(Ok(()))
}

/// The general case: remote reads in one batch per shard and stage, with pauses.
async fn everywhere<P: Protocol, E: Env<P>>(
    env: &E,
    snapshot: &<P::Scheme as Scheme>::Snapshot,
    procedure: &mut dyn Executable<P::Scheme>,
    work: &mut Footprint<P::Scheme>,
) -> Result<(), ReadFailure> {
    // The number that the attempt to run in one step would have had.
    let txn = env.local(|node| {
        let base = node.base();
        base.counters.coordinated += 1;
        work.reset(base.installs.is_some());
        base.step(base.coming(), |_| What::Begins);
        base.next_id()
    });
    work.committed.id = txn;
    let me = env.shard();
    let mut shards = vec![me];
    let mut rows = 0;
    for stage in 0.. {
        let pieces = procedure.stage(stage);
        if pieces == 0 {
            break;
        }
        let ask = |reads| Envelope::Common(Common::read_at(txn, snapshot.clone(), reads));
        let (parts, remote) = again(env, async || fetch_stage(env, procedure, stage, me, &ask).await).await?;
        shards.extend(parts.iter().map(|part: &FetchedBatch<P::Scheme>| part.shard));
        let mut parts: FetchedBatches<P::Scheme> = parts.into_iter().collect();
        for (number, remote) in remote.into_iter().enumerate() {
            let piece = Piece { stage, number };
            if !remote {
                if rows > ROWS_PER_STEP {
                    env.pause().await;
                    rows = 0;
                }
                let (result, unread) = env.local(|node| {
                    let recorded = work.recorded.as_deref_mut();
                    let base = node.base();
                    if base.owner(procedure.home(piece)) != me {
                        return (Err(Abort::StaleTerm), true);
                    }
                    let mut access =
                        AtSnapshot { base, txn, snapshot, recorded, blocked: false, too_old: false, rows: 0 };
                    let result = procedure.execute_at(piece, &mut access);
                    rows += access.rows;
                    (result, access.blocked || access.too_old)
                });
                match result {
                    Ok(()) => continue,
                    Err(abort) if !unread => return Err(ReadFailure::Abort(abort)),
                    // The piece's slot has moved meanwhile, or a writer is in the way: a message to
                    // the owner, even this shard, can wait.
                    Err(_) => {
                        let part =
                            again(env, async || fetch_piece(env, procedure, piece, &ask).await).await?;
                        parts.push(part);
                    }
                }
            }
            env.local(|node| {
                procedure.execute_fetched(piece, &mut Remote::new(node.base(), &mut parts, work))
            })
            .map_err(ReadFailure::Abort)?;
        }
    }
    shards.sort_unstable();
    shards.dedup();
    work.commit(txn, P::Scheme::place(snapshot), shards.len());
    Ok(())
}

/// Reads, and repeats the read at the same snapshot while the map names a shard that does not have
/// the rows any more. A repeated read finds the same versions.
async fn again<P: Protocol, E: Env<P>, R>(
    env: &E,
    read: impl AsyncFn() -> Result<R, ReadFailure>,
) -> Result<R, ReadFailure> {
    let mut retries = 0;
    loop {
        let result = read().await;
        // What was read before is of another era.
        if env.local(|node| node.base().is_over()) {
            return Err(ReadFailure::Abort(Abort::Unknown));
        }
        match result {
            Err(ReadFailure::Elsewhere) if retries < RETRIES => retries += 1,
            result => return result,
        }
        env.sleep(RETRY_NS << (retries / PATIENT_RETRIES).min(RETRY_DOUBLINGS)).await;
    }
}

/// Sends the reads of all pieces of a stage that belong to other shards than `me`, one batch per
/// shard, and waits for the answers. Returns them, and for each piece whether it was among these.
async fn fetch_stage<P: Protocol, E: Env<P>>(
    env: &E,
    procedure: &dyn Executable<P::Scheme>,
    stage: usize,
    me: ShardId,
    ask: &impl Fn(Reads) -> P::Request,
) -> Result<(Vec<FetchedBatch<P::Scheme>>, Vec<bool>), ReadFailure> {
    let mut batches: Vec<(ShardId, Reads)> = Vec::new();
    let mut remote = Vec::new();
    env.local(|node| {
        for number in 0..procedure.stage(stage) {
            let piece = Piece { stage, number };
            let shard = node.base().owner(procedure.home(piece));
            remote.push(shard != me);
            if shard != me {
                procedure.reads(piece, batch(&mut batches, shard));
            }
        }
        batches.iter_mut().for_each(|(shard, reads)| node.base().seal(*shard, reads));
    });
    Ok((fetch_batches(env, batches, ask).await?, remote))
}

async fn fetch_batches<P: Protocol, E: Env<P>>(
    env: &E,
    batches: Vec<(ShardId, Reads)>,
    ask: &impl Fn(Reads) -> P::Request,
) -> Result<Vec<FetchedBatch<P::Scheme>>, ReadFailure> {
    let calls: Vec<_> = batches
        .into_iter()
        .map(|(shard, reads)| (shard, reads.clone(), env.call(shard, ask(reads))))
        .collect();
    let mut parts = Vec::with_capacity(calls.len());
    for (shard, reads, call) in calls {
        parts.push(collect::<P, E>(env, shard, reads, call, ask).await?);
    }
    Ok(parts)
}

/// Reads batches at a snapshot, on the shards that have the rows: not always those that the map
/// named at first. Returns the lives of these shards when they were asked as well.
pub(crate) async fn read_parts<P: Protocol, E: Env<P>>(
    env: &E,
    txn: TxnId,
    snapshot: &<P::Scheme as Scheme>::Snapshot,
    batches: &impl Fn(&Base<P::Scheme>) -> Vec<(ShardId, Reads)>,
) -> Result<(Vec<FetchedBatch<P::Scheme>>, Vec<(ShardId, u64)>), Abort> {
    let ask = |reads| Envelope::Common(Common::read_at(txn, snapshot.clone(), reads));
    let read = async || {
        let (now, lives) = env.local(|node| {
            let base = node.base();
            let now = batches(base);
            let lives = now.iter().map(|&(shard, _)| (shard, base.votes.life(shard))).collect();
            (now, lives)
        });
        Ok((fetch_batches(env, now, &ask).await?, lives))
    };
    again(env, read).await.map_err(ReadFailure::into_abort)
}

async fn fetch_piece<P: Protocol, E: Env<P>>(
    env: &E,
    procedure: &dyn Executable<P::Scheme>,
    piece: Piece,
    ask: &impl Fn(Reads) -> P::Request,
) -> Result<FetchedBatch<P::Scheme>, ReadFailure> {
    let mut reads = Reads::default();
    procedure.reads(piece, &mut reads);
    let shard = env.local(|node| {
        let shard = node.base().owner(procedure.home(piece));
        node.base().seal(shard, &mut reads);
        shard
    });
    let call = env.call(shard, ask(reads.clone()));
    collect::<P, E>(env, shard, reads, call, ask).await
}

/// The answer to a read. A lost read is repeated at the same snapshot: the reset of a channel does
/// not end the transaction, only a shard that stays unreachable does.
async fn collect<P: Protocol, E: Env<P>>(
    env: &E,
    shard: ShardId,
    reads: Reads,
    call: impl Future<Output = Result<P::Reply, Unknown>>,
    ask: &impl Fn(Reads) -> P::Request,
) -> Result<FetchedBatch<P::Scheme>, ReadFailure> {
    let mut reply = call.await.map(Answer::common);
    let mut retries = 0;
    while retries < RETRIES {
        retries += match &reply {
            Ok(CommonReply::OutOfReach) => IN_DOUBT_RETRIES,
            Ok(_) => break,
            Err(Unknown) => 1,
        };
        env.sleep(RETRY_NS).await;
        reply = env.call(shard, ask(reads.clone())).await.map(Answer::common);
    }
    match reply {
        Ok(CommonReply::Fetched(Some(fetched))) => Ok(FetchedBatch { shard, reads, fetched, locked: false }),
        Ok(CommonReply::Fetched(None)) => Err(ReadFailure::TooOld),
        Ok(CommonReply::Elsewhere) => Err(ReadFailure::Elsewhere),
        Ok(CommonReply::ClockAhead) => Err(ReadFailure::Abort(Abort::ClockAhead)),
        Ok(CommonReply::OutOfReach) | Err(Unknown) => Err(ReadFailure::Abort(Abort::Unknown)),
        Ok(_) => unreachable!("a read is answered with what was read"),
    }
}

/// The batch of a shard.
pub(crate) fn batch(batches: &mut Vec<(ShardId, Reads)>, shard: ShardId) -> &mut Reads {
    let position = batches.iter().position(|(s, _)| *s == shard).unwrap_or_else(|| {
        batches.push((shard, Reads::default()));
        batches.len() - 1
    });
    &mut batches[position].1
}
