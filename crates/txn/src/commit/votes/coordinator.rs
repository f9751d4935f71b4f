//! The coordinator's part: it asks for the votes, knows what they come to, and tells those who
//! voted, as often as it takes.
//!
//! See the parent for the rules. Example. RECORD was sent to A and B; B's channel is reset. The
//! coordinator *asks* B over the next one ([`ask`]): RECORD, and the transaction is committed;
//! REFUSE, and it is not; or B lives another life and has nothing to say, and what the others know
//! decides ([`conclude`]).

use plimsoll_runtime::{Env, Unknown};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use super::{Voter, learn};
use crate::ballot::{Outcome, Reply, Request, Vote};
use crate::envelope::{Answer, Envelope};
use crate::fetched::ReadRef;
use crate::protocol::Open;
use crate::timestamp::Scheme;

/// How long whoever was not answered waits before asking again, in nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// Whether a transaction has to be voted on if these shards do so: one of them is in another
/// process.
pub(crate) fn needed<P: Voter, E: Env<P>>(env: &E, txn: TxnId, voters: &[ShardId]) -> bool {
    env.local(|node| node.base().votes.between_processes(txn, voters.iter().copied()))
}

/// Those who vote on a transaction, with the lives in which they hold its locks. They will have to
/// be told when it is settled. `None` if one of them has lost what was read there or cannot be
/// reached: once one has been asked to vote, it is too late to give up alone.
pub(crate) fn voters<P: Voter, E: Env<P>>(
    env: &E,
    open: &Open<P::Scheme>,
    shards: &[ShardId],
) -> Option<Vec<(ShardId, u64)>> {
    env.local(|node| {
        let votes = &mut node.base().votes;
        shards.iter().for_each(|&shard| votes.owe(open.holder.txn.number, shard));
        let life = |&shard: &ShardId| (shard, open.life(votes, shard));
        let all = shards.iter().all(|&shard| votes.reaches(shard));
        (all && !open.lost(votes)).then(|| shards.iter().map(life).collect())
    })
}

/// Lets all shards vote that a transaction writes, and tells them the outcome. Fails if it is
/// aborted. `reads` are those that a shard has still to validate.
pub(crate) async fn decide<P: Voter, E: Env<P>>(
    env: &E,
    open: &mut Open<P::Scheme>,
    stamp: Timestamp,
    reads: impl Fn(&Open<P::Scheme>, ShardId) -> Vec<ReadRef>,
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

/// All votes are known, or as many as it takes: tells those who voted the outcome, in the
/// background if they are elsewhere. Returns the stamp, or why it is aborted; [`Abort::Unknown`] if
/// a vote is lost. `named` is the stamp that an oracle waits to hear about, if there is such a one.
pub(crate) async fn conclude<P: Voter, E: Env<P>>(
    env: &E,
    open: &mut Open<P::Scheme>,
    mut voters: Vec<(ShardId, u64)>,
    named: Option<Timestamp>,
    mut outcome: Result<Timestamp, Abort>,
) -> Result<Timestamp, Abort> {
    let (me, txn) = (env.shard(), open.holder.txn);
    let doubt = || Request::Doubt(txn);
    // The vote is lost, but the others may have known it. If not, none of them will commit any
    // more.
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
    // Who votes alone knows.
    let alone = voters.len() == 1;
    voters.retain(|&(shard, _)| shard != me && !alone);
    let tell = move || Request::Outcome { txn, outcome: decided };
    // It leaves with this pass: others wait for the locks.
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

/// Asks a shard for its vote until it answers; `None` if the life that it would have voted in is
/// over.
pub(crate) async fn ask<P: Voter, E: Env<P>>(env: &E, shard: ShardId, life: u64, txn: TxnId) -> Option<Vote> {
    while env.local(|node| node.base().votes.life(shard) == life) {
        match env.call(shard, Envelope::Vote(Request::Ask(txn))).await.map(Answer::vote) {
            Ok(Reply::Vote(vote)) => return Some(vote),
            Ok(Reply::Outcome(_)) => unreachable!("whoever is asked for a vote answers with one"),
            Err(_) => env.sleep(RETRY_NS).await,
        }
    }
    None
}

/// Who is asked something, and the call.
type Asked<C> = Vec<((ShardId, u64), C)>;

/// Asks or tells all who voted something.
fn ask_all<'e, P: Voter, E: Env<P>, R: Fn() -> Request>(
    env: &'e E,
    mut voters: Vec<(ShardId, u64)>,
    request: &R,
) -> Asked<impl Future<Output = Result<P::Reply, Unknown>> + 'static + use<'e, P, E, R>> {
    // Who has lost everything has nothing to say, and nothing to learn.
    env.local(|node| voters.retain(|&(shard, life)| node.base().votes.life(shard) == life));
    voters.into_iter().map(|voter| (voter, env.call(voter.0, Envelope::Vote(request())))).collect()
}

/// Asks or tells those again who do not answer, until all have. Returns the stamp if any of them
/// knows that the transaction is committed.
async fn gather<P: Voter, E: Env<P>>(
    env: &E,
    asked: Asked<impl Future<Output = Result<P::Reply, Unknown>>>,
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

/// Waits for answers: the stamp if somebody knows that the transaction is committed, and who has
/// not answered.
async fn collect<P: Voter>(
    asked: Asked<impl Future<Output = Result<P::Reply, Unknown>>>,
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
