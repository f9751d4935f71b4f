//! Client-driven two-phase commit, after RAMCloud: one message to each shard carries everything.
//!
//! A transaction reads without locks and buffers its writes, as under OCC. To commit, its
//! coordinator (RAMCloud's client) sends one **PREPARE** to every shard that it has read or
//! written: the reads with their reject rule (the version must still be the one that was read, the
//! key must still be absent, the range must hold the same rows), the writes with their values, and
//! the list of participants. The shard, in one step,
//!
//! 1. **checks** everything: if anything is locked by another transaction, or has changed, its vote
//!    is ABORT. It never waits;
//! 2. **locks** it: writes exclusively, reads shared, absent keys and ranges as ranges;
//! 3. **votes** PREPARED, with the smallest stamp that it could accept: one more than the bounds of
//!    what is overwritten there and than everything that the coordinator has observed.
//!
//! When all votes are PREPARED the transaction is committed and its client is answered, after a
//! single round trip. The **DECISION** follows in the background. It carries the stamp, the largest
//! of all votes: the shard pins the reads to it, installs the writes under it, and drops the locks.
//! If there is only one participant, it decides when it votes. A transaction without writes is
//! *validated* instead: the shards check that all reads are current and not locked, and hold
//! nothing.
//!
//! Worked example, under DST. T reads `x` on A at @5 and writes `y` on B, whose mark is 7; the
//! coordinator's clock shows 4. A holds `x` and votes 6, B locks `y` with `lb = 8` and votes 8. T
//! commits at 8. A reader of `y` at s = 7 does not wait: T's stamp is at least 8. A reader at s = 9
//! waits for the decision. W wants to overwrite `x` and cannot until A has raised the mark of `x`
//! to 8; then it commits at 9 or later. That is after T, which has not seen W's version.
//!
//! One round is enough because reads are held until the decision: the stamp is not known when they
//! are checked, so they cannot be pinned then. For the same reason absent keys and ranges must be
//! held: if an insert could come between a shard's vote and the last vote elsewhere, T would be
//! before it there, and could be after it on another shard.
//!
//! Between processes PREPARED is a RECORD, and ABORT a REFUSE, of [`crate::votes`]. Shards that
//! were only read vote as well, because their locks count: their votes enter the stamp, and a shard
//! that asks all participants finds the same stamp. Within one process a DECISION cannot be lost,
//! and the participant keeps the writes beside their locks until it comes.
//!
//! Left out: durability; more than one PREPARE per shard for large transactions.

use std::collections::BTreeMap;

use plimsoll_runtime::{Env, Handled, Messages};
use plimsoll_types::Ticket;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::attempt::{Attempt, ProtocolOptions, Stop};
use crate::ballot::{self, Vote};
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::executable::Executable;
use crate::execute;
use crate::fetched::ReadRef;
use crate::locks::Locks;
use crate::optimistic;
use crate::prepare::Prepare;
use crate::procedure::Reads;
use crate::protocol::{self, ActiveTransaction, Interactive, Protocol, Rest, ask, tell};
use crate::stamps;
use crate::timestamp::{ReadOnly, Scheme};
use crate::trace::{About, What};
use crate::votes::{self, Voter};
use crate::work::{Footprint, Packed};

/// Client-driven two-phase commit on one shard.
pub struct Client2pc<S: Scheme> {
    base: Base<S>,
    /// Transactions that are prepared here and not decided.
    prepared: BTreeMap<TxnId, Prepared>,
}

/// A transaction that this shard has voted for.
#[derive(Debug, Default)]
struct Prepared {
    locks: Locks,
    /// Its writes here, unless the vote's entry has them.
    values: Packed,
}

/// Requests to a participant.
pub enum Request<S: Scheme> {
    /// Checks and locks everything, and votes.
    Prepare(Prepare<S>),
    /// Within one process: the outcome of a prepared transaction.
    Decision {
        /// The transaction.
        txn: TxnId,
        /// Its stamp; `None` if it is aborted.
        stamp: Option<Timestamp>,
    },
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Prepare(prepare) = 2,
    Decision { txn, stamp } = 3
});

/// Answers of a participant.
pub enum Reply {
    /// The vote: PREPARED, with this stamp or a larger one.
    Prepared(Timestamp),
    /// The only participant: committed, with this stamp.
    Committed(Timestamp),
    /// The vote: ABORT, for this reason. Nothing is locked.
    Refused(Abort),
}

plimsoll_types::wire!(
    enum Reply {
        Prepared(vote) = 2,
        Committed(stamp) = 3,
        Refused(abort) = 4,
    }
);

impl<S: Scheme> Messages for Client2pc<S> {
    type Request = Envelope<S, Request<S>>;
    type Reply = Answer<S, Reply>;
}

/// The participant.
impl<S: Scheme> Client2pc<S> {
    /// Checks, locks and votes, in one step.
    fn prepare(&mut self, prepare: &mut Prepare<S>) -> Reply {
        let txn = prepare.txn();
        let participants = prepare.participants();
        // Another participant may have asked for this vote before PREPARE arrived. Then the vote
        // was ABORT, and stays ABORT.
        let new = !self.prepared.contains_key(&txn) && prepare.agrees(&participants, self.base.shard);
        let votes = &mut self.base.votes;
        if !(new && votes.admit(txn) && votes.unvoted(txn) || planted(Mutant::LateRecord)) {
            return Reply::Refused(Abort::Refused);
        }
        let voting = votes.between_processes(txn, participants.iter().map(|&(shard, _)| shard));
        if let Err(abort) = prepare.check(&mut self.base) {
            if voting {
                votes::vote(self, txn);
            }
            return Reply::Refused(abort);
        }
        let Prepared { locks, .. } = self.prepared.entry(txn).or_default();
        let (stamp, _) = prepare.lock(&mut self.base, locks);
        let values = prepare.values();
        let alone = participants.len() == 1;
        if voting {
            votes::enter_record(self, txn, stamp, values, participants);
        } else if alone {
            self.decide(txn, Some(stamp), Some(&values));
        } else {
            self.prepared.entry(txn).or_default().values = values;
        }
        if alone { Reply::Committed(stamp) } else { Reply::Prepared(stamp) }
    }

    /// With a stamp, installs the writes at it and pins the reads to it; drops the locks in any
    /// case. A shard that has prepared nothing, or has been told before, has nothing to abort.
    fn decide(&mut self, txn: TxnId, stamp: Option<Timestamp>, values: Option<&Packed>) {
        let Some(prepared) = self.prepared.remove(&txn) else {
            assert!(stamp.is_none(), "a shard that has voted holds its locks until the decision");
            return;
        };
        if let Some(stamp) = stamp {
            self.base.install_locked(txn, stamp, values.unwrap_or(&prepared.values));
        }
        self.base.drop_locks(txn, &prepared.locks, stamp);
    }
}

impl<S: Scheme> Voter for Client2pc<S> {
    fn ready(&mut self, _: TxnId, _: Timestamp, _: &[ReadRef]) -> bool {
        // PREPARE locks and votes in one step: a transaction that has locks here has a vote
        // already.
        false
    }

    fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.decide(txn, Some(stamp), Some(writes));
    }

    fn release(&mut self, txn: TxnId) {
        self.decide(txn, None, None);
    }
}

/// The coordinator.
impl<S: Scheme> Protocol for Client2pc<S> {
    type Scheme = S;
    type Own = Request<S>;
    type OwnReply = Reply;
    const NAME: &'static str = "client_2pc";
    const LOCKS: bool = false;

    fn new(base: Base<S>, _: ProtocolOptions) -> Client2pc<S> {
        const {
            assert!(
                S::WAITS || matches!(S::READ_ONLY, ReadOnly::Validated),
                "the stamp is known after the votes: readers at a snapshot must wait for it"
            );
        }
        Client2pc { base, prepared: BTreeMap::new() }
    }

    fn base(&mut self) -> &mut Base<S> {
        &mut self.base
    }

    fn make_entry(&mut self) {
        let prepared = &self.prepared;
        self.base.make_entry(|txn| prepared.get(&txn).map(|prepared| &prepared.locks));
    }

    fn relock(&mut self, txn: TxnId, locks: Locks) {
        self.prepared.insert(txn, Prepared { locks, ..Prepared::default() });
    }

    fn handle_own(&mut self, from: ShardId, own: &mut Request<S>, _: Ticket) -> Handled<Reply> {
        Handled::Reply(match own {
            Request::Prepare(prepare) => {
                let believed = self.base.believe(from, S::reach(prepare.observed()));
                match believed.map_or_else(Reply::Refused, |()| self.prepare(prepare)) {
                    Reply::Refused(abort) => Reply::Refused(self.base.refused(abort)),
                    vote => vote,
                }
            }
            Request::Decision { txn, stamp } => {
                // A shard of another process decides by votes only.
                if !self.base.votes.elsewhere(from) {
                    self.decide(*txn, *stamp, None);
                }
                return Handled::Done;
            }
        })
    }

    fn handle_vote(&mut self, from: ShardId, request: &mut ballot::Request) -> Handled<ballot::Reply> {
        votes::handle(self, from, request)
    }

    fn tick(&mut self, clock: Timestamp) {
        self.base.pass(clock);
        votes::tick(self, clock);
    }

    fn about(request: &Request<S>) -> About {
        match request {
            Request::Prepare(prepare) => About::new("PREPARE", Some(prepare.txn())).writes(prepare.written()),
            Request::Decision { txn, stamp: Some(_) } => About::new("COMMIT", Some(*txn)),
            Request::Decision { txn, stamp: None } => About::new("ABORT", Some(*txn)),
        }
    }

    fn answer(reply: &Reply) -> &'static str {
        match reply {
            Reply::Prepared(_) => "prepared",
            Reply::Committed(_) => "committed",
            Reply::Refused(_) => "refused",
        }
    }

    async fn run<E: Env<Self>>(
        env: &E,
        attempt: Attempt,
        procedure: &mut dyn Executable<S>,
        work: &mut Footprint<S>,
    ) -> Result<(), Abort> {
        execute::run(env, attempt, procedure, work).await
    }
}

impl<S: Scheme> Interactive for Client2pc<S> {
    async fn read<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<S>,
        batches: Vec<(ShardId, Reads)>,
    ) -> Result<(), Abort> {
        optimistic::read(env, open, batches).await
    }

    async fn wrote<E: Env<Self>>(_: &E, _: &mut ActiveTransaction<S>) -> Result<(), Abort> {
        Ok(())
    }

    async fn commit<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<S>,
        rest: Option<Rest<'_, S>>,
    ) -> Result<(), Stop> {
        // The remaining pieces execute on the store. From here to the own vote nothing else runs on
        // this shard.
        let executed = env.local(|node| protocol::execute_rest(&mut node.base, open, rest, true));
        let decided = match executed {
            Err(Stop::Elsewhere) => return Err(Stop::Elsewhere),
            Err(Stop::Conflict) => Err(Abort::WriteConflict),
            Err(Stop::Abort(abort)) => return Err(Stop::Abort(Self::abort(env, open, abort).await)),
            Ok(()) if open.work.writes.is_empty() => validated(env, open).await,
            Ok(()) => two_phases(env, open).await.map(Some),
        };
        match decided {
            Ok(stamp) => {
                let shards = open.shards();
                open.work.commit(open.holder.txn, stamp, shards);
                Ok(())
            }
            Err(abort) => {
                env.local(|node| node.base.step(open.holder.txn, |_| What::Aborts(abort)));
                Err(Stop::Abort(abort))
            }
        }
    }

    async fn abort<E: Env<Self>>(env: &E, open: &mut ActiveTransaction<S>, why: Abort) -> Abort {
        // A prepared transaction has been decided: there is nothing to unlock.
        env.local(|node| node.base.step(open.holder.txn, |_| What::Aborts(why)));
        match why {
            Abort::User => optimistic::given_up(env, open).await,
            why => why,
        }
    }
}

/// Commits a transaction without writes, without locks and votes.
async fn validated<S: Scheme, E: Env<Client2pc<S>>>(
    env: &E,
    open: &ActiveTransaction<S>,
) -> Result<Option<Timestamp>, Abort> {
    let stamp = stamps::stamp(env, open).await.ok_or(Abort::Unknown)?;
    optimistic::validate(env, open, stamp, optimistic::all_reads).await?;
    Ok(open.work.needs_stamp().then_some(stamp))
}

/// Commits a transaction that writes: sends one PREPARE to every participant, and derives the
/// outcome from their votes.
async fn two_phases<S: Scheme, E: Env<Client2pc<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
) -> Result<Timestamp, Abort> {
    let (me, txn) = (env.shard(), open.holder.txn);
    stamps::follow_shard(env, open);
    open.work.writes.iter_mut().for_each(|write| write.locked = true);
    let shards = participants(open);
    let participants = votes::voters(env, open, &shards).ok_or(Abort::Unknown)?;
    let voting = votes::needed(env, txn, &shards);

    // PREPARE: on this shard, where nothing has changed since the last piece was executed, and on
    // all others at once.
    let mut votes = Vec::with_capacity(shards.len());
    if shards.contains(&me) {
        let own = env.local(|node| {
            let mut prepare = Prepare::new(&node.base, open, me, &participants);
            node.prepare(&mut prepare)
        });
        match vote(own) {
            Ok(vote) => votes.push(vote),
            // No other shard has checked anything yet.
            Err(Abort::User) => return Err(optimistic::given_up(env, open).await),
            Err(abort) => return Err(abort),
        }
    }
    let calls: Vec<_> = (participants.iter().filter(|(shard, _)| *shard != me))
        .map(|&(shard, life)| {
            let prepare = env.local(|node| Prepare::new(&node.base, open, shard, &participants));
            ((shard, life), ask::<Client2pc<S>, E>(env, shard, Request::Prepare(prepare)))
        })
        .collect();
    let (mut outcome, mut exists, mut lost) = (Ok(()), false, Vec::new());
    // One refusal is enough; do not wait for the remaining answers.
    protocol::as_answered(calls, |participant, answer| {
        match answer.map(vote) {
            Ok(Ok(vote)) => votes.push(vote),
            Ok(Err(Abort::User)) => exists = true,
            Ok(Err(abort)) => outcome = Err(abort),
            Err(_) => lost.push(participant),
        }
        outcome.is_err()
    })
    .await;
    // That a row exists is an answer if nothing else has changed: all other shards have checked the
    // reads, and hold them.
    if exists && outcome.is_ok() {
        outcome = Err(if lost.is_empty() { Abort::User } else { Abort::Refused });
    }
    for (shard, life) in lost {
        if outcome.is_ok() {
            let asked = if voting { votes::ask(env, shard, life, txn).await } else { None };
            match asked {
                Some(Vote::Record(vote)) => votes.push(vote),
                Some(Vote::Refuse) => outcome = Err(Abort::Refused),
                None => outcome = Err(Abort::Unknown),
            }
        }
    }

    // The votes give the outcome. DECISION goes to the participants that still hold locks.
    let outcome = outcome.map(|()| largest(votes));
    let outcome = match participants.len() {
        1 => outcome,
        _ if voting => votes::conclude(env, open, participants, None, outcome).await,
        _ => {
            for shard in shards {
                match shard == me {
                    true => env.local(|node| node.decide(txn, outcome.ok(), None)),
                    false => {
                        tell::<Client2pc<S>, E>(env, shard, Request::Decision { txn, stamp: outcome.ok() })
                    }
                }
            }
            outcome
        }
    };
    let stamp = outcome?;
    env.local(|node| node.base.step(txn, |_| What::Stamps { stamp, least: stamp }));
    Ok(stamp)
}

/// A shard's vote, or the reason for ABORT.
fn vote(reply: Reply) -> Result<Timestamp, Abort> {
    match reply {
        Reply::Prepared(vote) | Reply::Committed(vote) => Ok(vote),
        Reply::Refused(abort) => Err(abort),
    }
}

/// The largest of all votes.
fn largest(votes: Vec<Timestamp>) -> Timestamp {
    let largest = votes.into_iter().reduce(|mut stamp, vote| {
        votes::join(&mut stamp, vote);
        stamp
    });
    largest.expect("somebody takes part")
}

/// The shards that the transaction has read or written, in order. Shards where it has read only
/// immutable rows do not take part.
fn participants<S: Scheme>(open: &ActiveTransaction<S>) -> Vec<ShardId> {
    let mut shards = open.work.writes.shards();
    let read = |&shard: &ShardId| !optimistic::all_reads(open, shard).is_empty();
    shards.extend(open.parts.shards().into_iter().filter(read));
    if !open.work.local_reads.is_empty() {
        shards.push(open.holder.txn.coordinator);
    }
    shards.sort_unstable();
    shards.dedup();
    shards
}
