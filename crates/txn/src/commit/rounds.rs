//! What the shards of a database that logs to a cut tell each other (`shard/cut.rs`): when they
//! come back, and in the rounds that advance the cut.

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::wire::Malformed;
use plimsoll_types::{ShardId, Timestamp};

use crate::cut::{Next, PERIOD_NS};
use crate::envelope::{Answer, Envelope};
use crate::messages::{Comeback, Common, CommonReply};
use crate::protocol::Protocol;
use crate::read_only;
use crate::timestamp::{Freshness, Scheme};

/// A step of the way back of a shard that has read its log: asks all other shards how far theirs
/// go, and begins an era with them, or serves.
pub(crate) async fn comes_back<P: Protocol, E: Env<P>>(env: &E) -> Result<Next, Malformed> {
    let Some(own) = env.local(|node| node.base().asks_all()) else {
        env.local(|node| node.base().open());
        return Ok(Next::Serves);
    };
    match ask_all(env, || Common::Standing(own)).await {
        Some(others) => env.local(|node| node.base().heard_all(&others)),
        None => {
            env.sleep(PERIOD_NS).await;
            Ok(Next::Waits)
        }
    }
}

/// Lets a shard without data serve when all that have some serve the same era.
pub(crate) fn follows<P: Protocol, E: Env<P>>(env: &E) {
    if !env.local(|node| node.base().follows()) {
        return;
    }
    let env = env.clone();
    env.clone().spawn(async move {
        loop {
            let all = ask_all(&env, || Common::Era).await;
            if let Some([first, others @ ..]) = all.as_deref()
                && others.iter().all(|other| other.standing.era == first.standing.era)
            {
                return env.local(|node| node.base().follows_era());
            }
            env.sleep(PERIOD_NS).await;
        }
    });
}

/// Asks all other shards with data; `None` if one of them cannot be reached.
async fn ask_all<P: Protocol, E: Env<P>>(
    env: &E,
    request: impl Fn() -> Common<P::Scheme>,
) -> Option<Vec<Comeback>> {
    let others = shards(env).into_iter().filter(|&shard| shard != env.shard());
    let calls: Vec<_> = others.map(|shard| ask(env, shard, request())).collect();
    let mut told = Some(Vec::with_capacity(calls.len()));
    for call in calls {
        match (call.await, &mut told) {
            (Ok(CommonReply::Standing(comeback)), Some(told)) => told.push(comeback),
            _ => told = None,
        }
    }
    told
}

/// Tells the first shard that there is a stamp above the cut, if it has not heard of one; on the
/// first shard, begins rounds.
pub(crate) fn begins<P: Protocol, E: Env<P>>(env: &E) {
    if let Some(first) = env.local(|node| node.base().tells_unclosed()) {
        env.send(first, Envelope::Common(Common::Unclosed));
    }
    if !env.local(|node| node.base().begins_rounds()) {
        return;
    }
    let env = env.clone();
    env.clone().spawn(async move {
        let mut known = env.local(|node| node.base().known_cut()).unwrap_or_default();
        loop {
            let shown = env.clock();
            env.sleep(PERIOD_NS).await;
            let Some(passed) = passed(&env, shown).await else { continue };
            let to = known.join(passed);
            let Some(largest) = close(&env, to, known).await else { continue };
            known = to;
            // All hear of the last cut.
            if largest <= known
                && close(&env, known, known).await.is_some_and(|largest| largest <= known)
                && env.local(|node| node.base().ends_rounds())
            {
                break;
            }
        }
    });
}

/// Where shards can close: what the clock showed a while ago or, if stamps are counted, what an
/// oracle has published; `None` if it cannot be reached.
async fn passed<P: Protocol, E: Env<P>>(env: &E, shown: Timestamp) -> Option<Timestamp> {
    if P::Scheme::CLOCKED {
        return Some(shown);
    }
    let (snapshot, held) = read_only::snapshot(env, Freshness::default()).await.ok()?;
    held.inspect(|&held| env.local(|node| node.base().release(held)));
    P::Scheme::place(&snapshot)
}

/// Has all shards close. Returns the largest stamp that any of them has logged; `None` if one
/// cannot be reached.
async fn close<P: Protocol, E: Env<P>>(env: &E, to: Timestamp, known: Timestamp) -> Option<Timestamp> {
    let calls: Vec<_> =
        shards(env).into_iter().map(|shard| ask(env, shard, Common::Close { to, known })).collect();
    let mut largest = Some(Timestamp::ZERO);
    for call in calls {
        largest = match (largest, call.await) {
            (Some(largest), Ok(CommonReply::Closed(of_shard))) => Some(largest.join(of_shard)),
            _ => None,
        };
    }
    largest
}

/// All that hold data.
fn shards<P: Protocol, E: Env<P>>(env: &E) -> Vec<ShardId> {
    env.local(|node| node.base().layout.placement.holders().collect())
}

fn ask<P: Protocol, E: Env<P>>(
    env: &E,
    shard: ShardId,
    request: Common<P::Scheme>,
) -> impl Future<Output = Result<CommonReply<P::Scheme>, Unknown>> + 'static {
    let call = env.call(shard, Envelope::Common(request));
    async move { call.await.map(Answer::common) }
}
