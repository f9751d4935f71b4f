//! What the shards of a database that logs to a cut tell each other (`shard/cut.rs`): when they
//! come back, and in the rounds that advance the cut.

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Malformed;
use plimsoll_types::{ShardId, Timestamp};

use crate::cut::PERIOD_NS;
use crate::envelope::{Answer, Envelope};
use crate::messages::{Common, CommonReply, Standing};
use crate::protocol::Protocol;

/// Begins a new era with all other shards, if the log goes to a cut.
pub(crate) async fn agree<P: Protocol, E: Env<P>>(env: &E) -> Result<(), Malformed> {
    let Some(own) = env.local(|node| node.base().has_read()) else { return Ok(()) };
    let mut standings = vec![own];
    let others = shards(env).into_iter().filter(|&shard| shard != env.shard());
    let calls: Vec<_> = others.map(|shard| (shard, ask(env, shard, Common::Standing))).collect();
    for (shard, call) in calls {
        let mut answer = call.await;
        standings.push(loop {
            if let Ok(CommonReply::Standing(standing)) = answer {
                break standing;
            }
            env.sleep(PERIOD_NS).await;
            answer = ask(env, shard, Common::Standing).await;
        });
    }
    let all = if planted(Mutant::OwnCut) { &[own] } else { &*standings };
    env.local(|node| node.base().begin_era(Standing::next(all)))
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
            let to = known.join(env.clock());
            env.sleep(PERIOD_NS).await;
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
