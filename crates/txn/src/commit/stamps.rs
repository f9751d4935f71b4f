//! The commit stamp of a transaction that several shards take part in: where its coordinator gets
//! it, and how long the answer waits for it.

use plimsoll_runtime::Env;
use plimsoll_types::Timestamp;
use plimsoll_types::mutants::{Mutant, planted};

use crate::envelope::{Answer, Envelope};
use crate::messages::{Common, CommonReply};
use crate::protocol::{ActiveTransaction, Protocol};
use crate::read_only;
use crate::timestamp::{MAX_OFFSET_NS, Scheme};
use crate::trace::What;

/// The answer to a read-write transaction leaves once the clock has reached its timestamp: whoever
/// hears of it and then begins a snapshot, on whichever shard, sees it. A timestamp that is further
/// ahead of the clock than clocks may be apart comes of a clock that is wrong; nobody waits longer
/// for that, and it is counted.
pub(crate) async fn answerable<P: Protocol, E: Env<P>>(env: &E, stamp: Timestamp) {
    let stable = env.stable();
    if !is_answerable::<P, E>(env, stamp) && !planted(Mutant::EarlyAnswer) {
        clock_reaches(env, stamp).await;
    }
    stable.await;
}

async fn clock_reaches<P: Protocol, E: Env<P>>(env: &E, stamp: Timestamp) {
    // Another shard's clock is ahead, or this one was set back.
    env.pause().await;
    let ahead_ns = stamp.0.saturating_sub(env.clock().0);
    env.sleep(ahead_ns.min(MAX_OFFSET_NS)).await;
    if ahead_ns > MAX_OFFSET_NS {
        env.local(|node| node.base().counters.early_answers += 1);
    }
}

/// Whether the clock has reached a timestamp. Transactions of the same pass that met on a record
/// push each other a nanosecond beyond the pass's sample, so the clock is sampled again before
/// anything waits for it. From then on the shard's own snapshots see the timestamp as well.
#[inline]
pub(crate) fn is_answerable<P: Protocol, E: Env<P>>(env: &E, stamp: Timestamp) -> bool {
    if !<P::Scheme as Scheme>::WAITS || env.clock() >= stamp {
        return true;
    }
    let now = env.now();
    env.local(|node| {
        node.base().read_clock(now);
        node.base().scheme.tick(now);
    });
    now >= stamp
}

/// The commit stamp of a transaction that holds every write lock; zero if it needs none, `None` if
/// the oracle cannot be reached.
pub(crate) async fn stamp<P: Protocol, E: Env<P>>(
    env: &E,
    open: &ActiveTransaction<P::Scheme>,
) -> Option<Timestamp> {
    let (txn, observed) = (open.holder.txn, &open.work.observed);
    if !open.work.needs_stamp() {
        return Some(Timestamp::ZERO);
    }
    let at_once = |node: &mut P| {
        let base = node.base();
        base.stamps_at_once().then(|| base.stamp(txn, observed))
    };
    if let Some(stamp) = env.local(at_once) {
        return Some(stamp);
    }
    match env.call(env.shard(), Envelope::Common(Common::Stamp { asked: false })).await.map(Answer::common) {
        Ok(CommonReply::Stamp(stamp)) => {
            env.local(|node| node.base().step(txn, |_| What::Stamps { stamp, least: Timestamp::ZERO }));
            Some(stamp)
        }
        Ok(CommonReply::OutOfReach) | Err(_) => {
            // Nothing can be committed anyway: whoever tries again need not hurry.
            env.sleep(read_only::RETRY_NS).await;
            None
        }
        Ok(_) => unreachable!("a request for a stamp is answered with one"),
    }
}

/// Others will stamp it, above all that this shard's transactions have seen: their clocks may be
/// behind, and were sampled earlier.
pub(crate) fn follow_shard<P: Protocol, E: Env<P>>(env: &E, open: &mut ActiveTransaction<P::Scheme>) {
    if P::Scheme::WAITS {
        let latest = match planted(Mutant::SessionForgotten) {
            true => env.clock(),
            false => env.local(|node| node.base().scheme.stamp(&open.work.observed)),
        };
        P::Scheme::observe(&mut open.work.observed, latest);
    }
}
