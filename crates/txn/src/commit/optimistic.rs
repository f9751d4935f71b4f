//! Reads without locks, and their validation: the common part of OCC and client-driven two-phase
//! commit.
//!
//! A transaction reads the newest committed versions, or those at its snapshot if it is
//! interactive, with one message per shard and stage, and notes what the answers depend on
//! ([`ReadRef`]). [`validate`] asks all shards about it again. All reads precede all checks, so
//! reads that pass were all current at one moment in between. Each shard pins the reads to the
//! stamp and then checks them, in one step.

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::{Abort, ShardId, Timestamp};

use crate::envelope::{Answer, Envelope};
use crate::fetched::ReadRef;
use crate::messages::{Common, CommonReply};
use crate::parts::FetchedBatch;
use crate::procedure::Reads;
use crate::protocol::{ActiveTransaction, Interactive, Protocol};
use crate::timestamp::Scheme;

/// Reads one batch per shard and appends the answers to the transaction's parts. If it fails, the
/// transaction is aborted.
pub(crate) async fn read<P: Interactive, E: Env<P>>(
    env: &E,
    open: &mut ActiveTransaction<P::Scheme>,
    batches: Vec<(ShardId, Reads)>,
) -> Result<(), Abort> {
    let txn = open.holder.txn;
    if !open.meet(env, batches.iter().map(|(shard, _)| *shard)) {
        return Err(P::abort(env, open, Abort::Unknown).await);
    }
    let mut calls = Vec::with_capacity(batches.len());
    for (shard, reads) in batches {
        let request = match &open.snapshot {
            Some(snapshot) => Common::read_at(txn, snapshot.clone(), reads.clone()),
            None => Common::Read { txn, reads: reads.clone() },
        };
        calls.push((shard, reads, env.call(shard, Envelope::Common(request))));
    }
    for (shard, reads, call) in calls {
        let fetched = match call.await.map(Answer::common) {
            Ok(CommonReply::Fetched(Some(fetched))) => fetched,
            Ok(CommonReply::Elsewhere) => return Err(P::abort(env, open, Abort::StaleTerm).await),
            Ok(CommonReply::ClockAhead) => return Err(P::abort(env, open, Abort::ClockAhead).await),
            // The transaction may already hold locks, if not all of its remaining pieces could be
            // executed on this shard.
            Ok(_) => return Err(P::abort(env, open, Abort::Validation).await),
            Err(_) => return Err(P::abort(env, open, Abort::Unknown).await),
        };
        let reach = P::Scheme::reach(&fetched.observed);
        if let Err(abort) = env.local(|node| node.base().believe(shard, reach)) {
            return Err(P::abort(env, open, abort).await);
        }
        P::Scheme::join(&mut open.work.observed, &fetched.observed);
        open.parts.push(FetchedBatch { shard, reads, fetched, locked: false });
    }
    Ok(())
}

/// All reads on another shard.
pub(crate) fn all_reads<S: Scheme>(open: &ActiveTransaction<S>, shard: ShardId) -> Vec<ReadRef> {
    open.parts.of(shard).flat_map(|part| part.fetched.read_refs()).collect()
}

/// Pins the reads to the stamp and checks whether they are still current, on every shard; the
/// reason if they are not. `elsewhere` returns the reads to validate on another shard.
pub(crate) async fn validate<P: Interactive, E: Env<P>>(
    env: &E,
    open: &ActiveTransaction<P::Scheme>,
    stamp: Timestamp,
    elsewhere: impl Fn(&ActiveTransaction<P::Scheme>, ShardId) -> Vec<ReadRef>,
) -> Result<(), Abort> {
    let (me, txn) = (env.shard(), open.holder.txn);
    if env.local(|node| open.lost(&node.base().votes)) {
        return Err(Abort::Validation);
    }
    let mut calls = Vec::new();
    for shard in open.parts.shards().into_iter().filter(|shard| *shard != me) {
        let reads = elsewhere(open, shard);
        if !reads.is_empty() {
            calls.push(env.call(shard, Envelope::Common(Common::Validate { txn, stamp, reads })));
        }
    }
    let here = all_reads(open, me);
    let valid = env.local(|node| {
        let base = node.base();
        base.validate(txn, stamp, &here) & base.validate(txn, stamp, &open.work.local_reads)
    });
    let mut result = if valid { Ok(()) } else { Err(Abort::Validation) };
    for call in calls {
        result = result.and(validated::<P>(call.await));
    }
    result
}

/// What a shard has answered to [`Common::Validate`].
pub(crate) fn validated<P: Protocol>(answer: Result<P::Reply, Unknown>) -> Result<(), Abort> {
    match answer.map(Answer::common) {
        Ok(CommonReply::Validated(true)) => Ok(()),
        Ok(CommonReply::ClockAhead) => Err(Abort::ClockAhead),
        _ => Err(Abort::Validation),
    }
}

/// Called when a transaction holds no locks any more and its procedure has aborted because of what
/// it read: these reads must all have been current at one moment. Returns the reason to report.
pub(crate) async fn given_up<P: Interactive, E: Env<P>>(
    env: &E,
    open: &ActiveTransaction<P::Scheme>,
) -> Abort {
    let stamp = match size_of::<<P::Scheme as Scheme>::Mark>() > 0 {
        true => env.local(|node| node.base().stamp(open.holder.txn, &open.work.observed)),
        false => Timestamp::ZERO,
    };
    validate(env, open, stamp, all_reads).await.err().unwrap_or(Abort::User)
}
