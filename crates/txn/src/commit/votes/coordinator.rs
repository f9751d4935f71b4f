//! The coordinator's part in a vote: it asks for the votes, derives the outcome, and tells it to
//! the voters until each has acknowledged it.
//!
//! See the parent for the rules. Example. RECORD was sent to A and B; B's channel is reset. The
//! coordinator *asks* B over the next channel ([`ask`]). If B answers RECORD, the transaction is
//! committed; if REFUSE, it is aborted. If B is in another life, its vote is lost, and the
//! knowledge of the other voters decides ([`conclude`]).

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use super::{Voter, learn};
use crate::ballot::{Outcome, Reply, Request, Vote};
use crate::envelope::{Answer, Envelope};
use crate::fetched::ReadRef;
use crate::protocol::ActiveTransaction;
use crate::timestamp::Scheme;

/// How long the coordinator waits before it repeats a request that was not answered, in
/// nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// Whether a transaction needs a vote of these shards: one of them is in another process.
pub(crate) fn needed<P: Voter, E: Env<P>>(env: &E, txn: TxnId, voters: &[ShardId]) -> bool {
    env.local(|node| node.base().votes.between_processes(txn, voters.iter().copied()))
}

/// The voters on a transaction, with the lives in which they hold its locks. Notes that they must
/// be told when it is settled. `None` if one of them has lost what was read there or cannot be
/// reached: once one shard has been asked to vote, the coordinator may not abort alone any more.
pub(crate) fn voters<P: Voter, E: Env<P>>(
    env: &E,
    open: &ActiveTransaction<P::Scheme>,
    shards: &[ShardId],
) -> Option<Vec<(ShardId, u64)>> {
    env.local(|node| {
        let votes = &mut node.base().votes;
        shards.iter().for_each(|&shard| votes.owe(open.holder.txn.number, shard));
        let life = |&shard: &ShardId| (shard, open.lineage(votes, shard));
        let all = shards.iter().all(|&shard| votes.reaches(shard));
        (all && !open.lost(votes)).then(|| shards.iter().map(life).collect())
    })
}

/// Asks all shards that a transaction writes for their votes, and tells them the outcome. Fails if
/// it is aborted. `reads` are those that a shard has still to validate.
pub(crate) async fn decide<P: Voter, E: Env<P>>(
    env: &E,
    open: &mut ActiveTransaction<P::Scheme>,
    stamp: Timestamp,
    reads: impl Fn(&ActiveTransaction<P::Scheme>, ShardId) -> Vec<ReadRef>,
) -> Result<(), Abort> {
    let txn = open.holder.txn;
    let Some(voters) = voters::<P, _>(env, open, &open.work.writes.shards()) else {
        if P::Scheme::REPORTS {
            env.local(|node| node.base().finished(stamp, None));
        }
        return Err(Abort::Unknown);
    };
    let calls: Vec<_> = (voters.iter())
        .map(|&(shard, life)| {
            let (writes, reads) = (open.work.writes.pack(shard), reads(open, shard));
            let record = Request::Record { txn, stamp, writes, reads, voters: voters.clone() };
            (shard, life, env.call(shard, Envelope::Vote(record)))
        })
        .collect();
    let mut outcome = Ok(stamp);
    for (shard, life, call) in calls {
        let vote = match call.await.map(Answer::vote) {
            Ok(Reply::Vote(vote)) => Some(vote),
            Ok(Reply::ClockAhead) => {
                outcome = Err(Abort::ClockAhead);
                break;
            }
            Ok(Reply::Full(full)) => {
                outcome = Err(full);
                break;
            }
            Ok(Reply::Outcome(_)) => unreachable!("RECORD is answered with a vote"),
            Err(_) if planted(Mutant::AbortsAlone) => Some(Vote::Refuse),
            Err(_) => ask(env, shard, life, txn).await,
        };
        match vote {
            Some(Vote::Record(_)) => {}
            Some(Vote::Refuse) => outcome = Err(Abort::Refused),
            None => outcome = Err(Abort::Unknown),
        }
        if outcome.is_err() {
            break;
        }
    }
    conclude(env, open, voters, Some(stamp), outcome).await.map(drop)
}

/// Called when all votes are known, or enough of them: tells the voters the outcome, in the
/// background if they are elsewhere. Returns the stamp, or the reason of the abort;
/// [`Abort::Unknown`] if a vote is lost. `named` is the stamp whose outcome the oracle waits for,
/// if it does.
pub(crate) async fn conclude<P: Voter, E: Env<P>>(
    env: &E,
    open: &mut ActiveTransaction<P::Scheme>,
    mut voters: Vec<(ShardId, u64)>,
    named: Option<Timestamp>,
    mut outcome: Result<Timestamp, Abort>,
) -> Result<Timestamp, Abort> {
    let (me, txn) = (env.shard(), open.holder.txn);
    let doubt = || Request::Doubt(txn);
    // The vote is lost, but the other voters may have heard of it. If none knows the outcome, none
    // of them will commit any more.
    if outcome == Err(Abort::Unknown)
        && let Some(stamp) = gather(env, ask_all(env, voters.clone(), &doubt), doubt).await
    {
        outcome = Ok(stamp);
    }
    let decided = outcome.map_or(Outcome::Aborted, Outcome::Committed);
    open.touched.retain(|shard| !voters.iter().any(|(voter, _)| voter == shard));
    if voters.iter().any(|&(voter, _)| voter == me) {
        env.local(|node| learn(node, txn, decided));
    }
    open.settling = true;
    let observed = outcome.is_ok().then(|| open.work.observed.clone());
    // A single voter knows the outcome.
    let alone = voters.len() == 1;
    voters.retain(|&(shard, _)| shard != me && !alone);
    let tell = move || Request::Outcome { txn, outcome: decided };
    // Send this within the present pass: other transactions wait for the locks.
    let told = ask_all(env, voters, &tell);
    let inner = env.clone();
    env.spawn(async move {
        gather(&inner, told, tell).await;
        inner.local(|node| {
            let base = node.base();
            if let Some(named) = named.filter(|_| P::Scheme::REPORTS) {
                base.finished(named, observed.as_ref());
            }
            base.settled(txn);
        });
    });
    outcome
}

/// Asks a shard for its vote until it answers; `None` if the life in which it was to vote is over.
pub(crate) async fn ask<P: Voter, E: Env<P>>(env: &E, shard: ShardId, life: u64, txn: TxnId) -> Option<Vote> {
    let mut told = None;
    while told.is_none() && env.local(|node| node.base().votes.lineage(shard) == life) {
        match env.call(shard, Envelope::Vote(Request::Ask(txn))).await.map(Answer::vote) {
            Ok(Reply::Vote(vote)) => told = Some(vote),
            Ok(_) => unreachable!("whoever is asked for a vote answers with one"),
            Err(_) => {
                env.local(|node| node.base().votes.doubtful.insert(txn.number));
                env.sleep(RETRY_NS).await;
            }
        }
    }
    env.local(|node| node.base().votes.doubtful.remove(&txn.number));
    told
}

/// Voters with their lives, and the calls to them.
type VoterCalls<C> = Vec<((ShardId, u64), C)>;

/// Sends a request to all voters.
fn ask_all<'e, P: Voter, E: Env<P>, R: Fn() -> Request>(
    env: &'e E,
    mut voters: Vec<(ShardId, u64)>,
    request: &R,
) -> VoterCalls<impl Future<Output = Result<P::Reply, Unknown>> + 'static + use<'e, P, E, R>> {
    // A voter in another life has lost its vote: it can tell nothing, and needs no outcome.
    env.local(|node| voters.retain(|&(shard, life)| node.base().votes.lineage(shard) == life));
    voters.into_iter().map(|voter| (voter, env.call(voter.0, Envelope::Vote(request())))).collect()
}

/// Waits until all voters have answered, and repeats the request to those that have not. Returns
/// the stamp if any of them knows that the transaction is committed.
async fn gather<P: Voter, E: Env<P>>(
    env: &E,
    asked: VoterCalls<impl Future<Output = Result<P::Reply, Unknown>>>,
    request: impl Fn() -> Request,
) -> Option<Timestamp> {
    let (mut any, mut left) = (None, Vec::new());
    collect::<P>(asked, &mut any, &mut left).await;
    while !left.is_empty() {
        env.sleep(RETRY_NS).await;
        let asked = ask_all(env, std::mem::take(&mut left), &request);
        collect::<P>(asked, &mut any, &mut left).await;
    }
    any
}

/// Waits for the answers. Notes the stamp if a voter knows that the transaction is committed, and
/// the voters that have not answered.
async fn collect<P: Voter>(
    asked: VoterCalls<impl Future<Output = Result<P::Reply, Unknown>>>,
    any: &mut Option<Timestamp>,
    left: &mut Vec<(ShardId, u64)>,
) {
    for (voter, call) in asked {
        match call.await.map(Answer::vote) {
            Ok(Reply::Outcome(Some(Outcome::Committed(stamp)))) => *any = Some(stamp),
            Ok(_) => {}
            Err(_) => left.push(voter),
        }
    }
}
