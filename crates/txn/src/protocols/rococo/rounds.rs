//! Read-only transactions without timestamps, as in the paper (§3.5): they read in rounds, until
//! two rounds see the same.
//!
//! In each round a server answers once no undecided transaction may write the records. If the
//! second of two rounds finds everything unchanged since the first, all of it was current at one
//! moment in between. The rounds compare the same things that OCC would validate ([`ReadRef`]),
//! with absent keys and ranges by the version of what covers them; otherwise a key that was
//! inserted and deleted between the rounds would go unnoticed. A server that began another life
//! between them has other places and versions, so its answers never agree with those before. Under
//! contention two rounds rarely agree; after [`ROUNDS`] the transaction aborts.

use plimsoll_runtime::Env;
use plimsoll_types::{Abort, ShardId};

use super::{Reply, Request, Rococo};
use crate::executable::Executable;
use crate::execute::{Pieces, plan};
use crate::fetched::ReadRef;
use crate::parts::{FetchedBatch, FetchedBatches};
use crate::procedure::Piece;
use crate::protocol::ask;
use crate::remote::Remote;
use crate::timestamp::Scheme;
use crate::trace::What;
use crate::work::Footprint;

/// The lives of the servers that were asked in a round, and what was seen there.
type Round = (Vec<(ShardId, u64)>, Vec<ReadRef>);

/// Rounds of a transaction, at most.
const ROUNDS: usize = 4;

pub(super) async fn read<S: Scheme, E: Env<Rococo<S>>>(
    env: &E,
    procedure: &mut dyn Executable<S>,
    work: &mut Footprint<S>,
) -> Result<(), Abort> {
    let txn = env.local(|node| {
        let txn = node.base.next_id();
        node.base.step(txn, |_| What::Begins);
        txn
    });
    work.committed.id = txn;
    let mut before: Option<Round> = None;
    for round in 0..ROUNDS {
        if round > 1 {
            env.local(|node| node.base.counters.read_only_restarts += 1);
        }
        env.local(|node| work.reset(node.base.installs.is_some()));
        let (mut parts, mut lives) = (FetchedBatches::default(), Vec::new());
        let mut result = Ok(());
        for stage in 0.. {
            if procedure.stage(stage) == 0 || result.is_err() {
                break;
            }
            let (numbers, batches) = env.local(|node| plan(&node.base, procedure, stage, Pieces::All));
            let calls: Vec<_> = batches
                .into_iter()
                .map(|(shard, reads)| {
                    // No other life will answer.
                    lives.push((shard, env.local(|node| node.base.votes.life(shard))));
                    let call =
                        ask::<Rococo<S>, E>(env, shard, Request::ReadDecided { txn, reads: reads.clone() });
                    (shard, reads, call)
                })
                .collect();
            for (shard, reads, call) in calls {
                match call.await {
                    Ok(Reply::Read(fetched)) => {
                        parts.push(FetchedBatch { shard, reads, fetched, locked: false });
                    }
                    _ => return Err(Abort::Unknown),
                }
            }
            result = env.local(|node| {
                numbers.iter().try_for_each(|&number| {
                    let mut access = Remote::new(&mut node.base, &mut parts, work);
                    procedure.execute_fetched(Piece { stage, number }, &mut access)
                })
            });
        }
        let seen: Vec<ReadRef> = parts.since(0).iter().flat_map(|part| part.fetched.read_refs()).collect();
        let seen = Some((lives, seen));
        if before == seen {
            result?;
            work.commit(txn, None, parts.shards().len().max(1));
            return Ok(());
        }
        before = seen;
    }
    env.local(|node| node.base.step(txn, |_| What::Aborts(Abort::Validation)));
    Err(Abort::Validation)
}
