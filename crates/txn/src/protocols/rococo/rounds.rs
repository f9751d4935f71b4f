//! Read-only transactions without timestamps, ROCOCO's own way (§3.5 of the paper): rounds, until two see the same.
//!
//! In each round a server answers once nobody undecided means to write what is read. If the second of two rounds sees the same
//! versions as the first, all of them were the newest at one moment in between. Under contention that is rare; after
//! [`ROUNDS`] the transaction gives up, which counts as an abort.

use plimsoll_runtime::Env;
use plimsoll_types::{Abort, ColumnGroup, Key, Timestamp};

use super::{Request, Rococo};
use crate::base::CommonReply;
use crate::parts::{Part, Parts};
use crate::procedure::{Piece, Procedure};
use crate::protocol::{Pieces, Protocol, plan};
use crate::remote::Remote;
use crate::steps::What;
use crate::timestamp::Scheme;
use crate::work::Work;

/// So many rounds at most.
const ROUNDS: usize = 4;

/// Whose versions a round has seen.
type Versions = Vec<(ColumnGroup, Key, Option<Timestamp>)>;

pub(super) async fn read<S: Scheme, E: Env<Rococo<S>>, T: Procedure>(
    env: &E,
    procedure: &mut T,
    work: &mut Work<S>,
) -> Result<(), Abort> {
    let txn = env.local(|node| {
        let txn = node.base.next_id();
        node.base.step(txn, |_| What::Begins);
        txn
    });
    work.committed.id = txn;
    let mut before: Option<Versions> = None;
    for round in 0..ROUNDS {
        if round > 1 {
            env.local(|node| node.base.counters.read_only_restarts += 1);
        }
        env.local(|node| work.reset(node.base.installs.is_some()));
        let mut parts = Parts::default();
        for stage in 0.. {
            if procedure.stage(stage) == 0 {
                break;
            }
            let (numbers, batches) = env.local(|node| plan(&node.base, procedure, stage, Pieces::All));
            let calls: Vec<_> = batches
                .into_iter()
                .map(|(shard, reads)| {
                    let call = env.call(shard, Request::ReadDecided { txn, reads: reads.clone() });
                    (shard, reads, call)
                })
                .collect();
            for (shard, reads, call) in calls {
                match call.await.map(Rococo::<S>::common_reply) {
                    Ok(CommonReply::Fetched(Some(fetched))) => {
                        parts.push(Part { shard, reads, fetched, locked: false });
                    }
                    _ => return Err(Abort::Unknown),
                }
            }
            env.local(|node| {
                numbers.iter().try_for_each(|&number| {
                    let mut access = Remote::new(&mut node.base, &mut parts, work);
                    procedure.execute(Piece { stage, number }, &mut access)
                })
            })?;
        }
        let versions = seen(&parts);
        if before.as_ref() == Some(&versions) {
            work.commit(txn, None, parts.shards().len().max(1));
            return Ok(());
        }
        before = Some(versions);
    }
    env.local(|node| node.base.step(txn, |_| What::Aborts(Abort::Validation)));
    Err(Abort::Validation)
}

fn seen<S: Scheme>(parts: &Parts<S>) -> Versions {
    let mut versions = Vec::new();
    for part in parts.since(0) {
        let gets = part.reads.gets.iter().zip(&part.fetched.gets);
        versions.extend(gets.map(|((column, key, _), got)| (*column, key.clone(), got.version)));
        for ((scan, _), scanned) in part.reads.scans.iter().zip(&part.fetched.scans) {
            let rows = scanned.rows.iter().map(|(key, got)| (scan.column, key.clone(), got.version));
            versions.extend(rows);
        }
    }
    versions
}
