//! The coordinator: commits in the order of the steps in the parent.

use std::collections::BTreeMap;

use plimsoll_runtime::{Env, Handled, Messages, Unknown};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Ticket, Timestamp, TxnId};

use super::read_set::{only_read, own_links, unlocked_reads};
use super::{Occ, Reply, Request};
use crate::attempt::{Attempt, ProtocolOptions, Stop};
use crate::ballot::{self, Vote};
use crate::base::Base;
use crate::envelope::Envelope;
use crate::executable::Executable;
use crate::execute;
use crate::fetched::ReadRef;
use crate::locks::Locks;
use crate::messages::Common;
use crate::optimistic;
use crate::prepare::Prepare;
use crate::procedure::Reads;
use crate::protocol::{self, ActiveTransaction, Interactive, Protocol, Rest, ask, tell};
use crate::stamps;
use crate::timestamp::Scheme;
use crate::trace::{About, What};
use crate::votes;
use crate::work::{Footprint, Write};

/// How the step on the coordinator's own shard ended.
enum Last {
    /// Stamped, validated and installed here; other shards only have to install.
    Committed(Timestamp),
    /// All writes are locked; stamp and validation follow.
    Locked,
    Failed(Stop),
}

impl<S: Scheme> Protocol for Occ<S> {
    type Scheme = S;
    type Own = Request<S>;
    type OwnReply = Reply<S>;
    const NAME: &'static str = "occ";
    const LOCKS: bool = false;

    fn new(base: Base<S>, options: ProtocolOptions) -> Occ<S> {
        Occ { base, held: BTreeMap::new(), one_round: options.one_round }
    }

    fn base(&mut self) -> &mut Base<S> {
        &mut self.base
    }

    fn make_entry(&mut self) {
        let held = &self.held;
        self.base.make_entry(|txn| held.get(&txn));
    }

    fn relock(&mut self, txn: TxnId, locks: Locks) {
        self.held.insert(txn, locks);
    }

    fn handle_own(&mut self, from: ShardId, own: &mut Request<S>, _: Ticket) -> Handled<Reply<S>> {
        let reach = match &*own {
            Request::Lock { observed, .. } | Request::Commit { observed, .. } => S::reach(observed),
            Request::Prepare(prepare) => S::reach(prepare.observed()),
            Request::Install { .. } | Request::Abort(_) => Timestamp::ZERO,
        };
        if let Err(abort) = self.base.believe(from, reach) {
            return Handled::Reply(Reply::Refused(self.base.refused(abort)));
        }
        Handled::Reply(match own {
            // A shard of another process commits by votes only.
            Request::Install { .. } if self.base.votes.elsewhere(from) => return Handled::Done,
            Request::Lock { holder, observed, writes, reads } => {
                match self.lock(*holder, observed, writes, reads) {
                    Ok(linked) => Reply::Locked { observed: observed.clone(), linked },
                    Err(abort) => Reply::Refused(self.base.refused(abort)),
                }
            }
            Request::Prepare(prepare) => match self.prepare(prepare) {
                Ok(linked) => Reply::Locked { observed: prepare.observed().clone(), linked },
                Err(abort) => Reply::Refused(self.base.refused(abort)),
            },
            Request::Commit { holder, observed, writes, values, reads } => {
                match self.commit_alone(*holder, observed, writes, values, reads) {
                    Ok(stamp) => Reply::Committed(stamp),
                    Err(abort) => Reply::Refused(self.base.refused(abort)),
                }
            }
            Request::Install { txn, stamp, writes, answer } => {
                self.install(*txn, *stamp, writes);
                match answer {
                    true => Reply::Installed,
                    false => return Handled::Done,
                }
            }
            Request::Abort(txn) => {
                self.unlock(*txn);
                self.base.votes.close(*txn);
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
            Request::Lock { holder, writes, .. } => {
                let writes = writes.iter().map(|write| (write.column, &write.key));
                About::new("LOCK", Some(holder.txn)).writes(writes)
            }
            Request::Prepare(prepare) => About::new("PREPARE", Some(prepare.txn())).writes(prepare.written()),
            Request::Commit { holder, writes, .. } => {
                let writes = writes.iter().map(|write| (write.column, &write.key));
                About::new("COMMIT", Some(holder.txn)).writes(writes)
            }
            Request::Install { txn, writes, .. } => {
                let writes = writes.iter().map(|(column, key, _)| (column, key));
                About::new("INSTALL", Some(*txn)).writes(writes)
            }
            Request::Abort(txn) => About::new("ABORT", Some(*txn)),
        }
    }

    fn answer(reply: &Reply<S>) -> &'static str {
        match reply {
            Reply::Locked { .. } => "locked",
            Reply::Refused(_) => "refused",
            Reply::Committed(_) => "committed",
            Reply::Installed => "installed",
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

impl<S: Scheme> Interactive for Occ<S> {
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
        let (me, txn) = (env.shard(), open.holder.txn);
        // A scheme with an oracle (`REPORTS`) must draw the stamp in the coordinator's own process,
        // so the commit in one message is not available.
        let elsewhere = S::AT_ONCE && !S::REPORTS && rest.is_none() && open.touched.is_empty();
        if let Some(shard) = open.only_shard().filter(|_| elsewhere) {
            return commit_on(env, open, shard).await.map_err(Stop::Abort);
        }
        if votes_last(env, open, rest.is_some()) {
            return commit_last(env, open, rest).await;
        }
        // Lock the write set, remote shards first.
        let proposed = env.local(|node| node.propose(open));
        if let Err(abort) = lock_elsewhere(env, open, proposed).await {
            return Err(Stop::Abort(Self::abort(env, open, abort).await));
        }
        // The own shard last, with everything that can be done in the same step.
        let elsewhere = |shard| shard != me && !unlocked_reads(open, shard).is_empty();
        let elsewhere = open.parts.shards().into_iter().any(elsewhere);
        let voting = votes::needed(env, txn, &open.work.writes.shards());
        let at_once = !elsewhere && !voting && env.local(|node| node.base.stamps_at_once());
        let stamp = match env.local(|node| node.last(open, at_once, rest)) {
            Last::Committed(stamp) => stamp,
            Last::Failed(Stop::Elsewhere) => return Err(Stop::Elsewhere),
            Last::Failed(Stop::Conflict) => {
                return Err(Stop::Abort(fail(env, open, Abort::WriteConflict)));
            }
            Last::Failed(Stop::Abort(abort)) => {
                return Err(Stop::Abort(Self::abort(env, open, abort).await));
            }
            Last::Locked => {
                // Take the stamp: every lock is held.
                let Some((stamp, validated)) = final_stamp(env, open, proposed).await else {
                    return Err(Stop::Abort(fail(env, open, Abort::Unknown)));
                };
                // Validate the read set. Voters validate when they vote.
                let written = open.work.writes.shards();
                let reads = |open: &ActiveTransaction<S>, shard| match written.contains(&shard) {
                    true if voting => Vec::new(),
                    false if validated => Vec::new(),
                    _ => unlocked_reads(open, shard),
                };
                if let Err(abort) = optimistic::validate(env, open, stamp, reads).await {
                    if S::REPORTS && open.work.needs_stamp() {
                        env.local(|node| node.base.finished(stamp, None));
                    }
                    return Err(Stop::Abort(fail(env, open, abort)));
                }
                if voting {
                    return match votes::decide(env, open, stamp, unlocked_reads).await {
                        Ok(()) => {
                            // If it writes nothing on this shard, this shard has not voted and
                            // still has its entry.
                            env.local(|node| node.unlock(txn));
                            let shards = open.shards();
                            open.work.commit(txn, Some(stamp), shards);
                            Ok(())
                        }
                        Err(abort) => Err(Stop::Abort(fail(env, open, abort))),
                    };
                }
                // Install here.
                let packed = open.work.writes.pack(me);
                env.local(|node| node.install(txn, stamp, &packed));
                stamp
            }
        };
        install_elsewhere(env, open, stamp);
        let shards = open.shards();
        let stamp = open.work.needs_stamp().then_some(stamp);
        open.work.commit(txn, stamp, shards);
        Ok(())
    }

    async fn abort<E: Env<Self>>(env: &E, open: &mut ActiveTransaction<S>, why: Abort) -> Abort {
        fail(env, open, why);
        if why != Abort::User {
            return why;
        }
        optimistic::given_up(env, open).await
    }
}

/// Commits a transaction whose reads and writes are all on one other shard, in one round trip.
async fn commit_on<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    shard: ShardId,
) -> Result<(), Abort> {
    let (holder, txn) = (open.holder, open.holder.txn);
    open.work.writes.iter_mut().for_each(|write| write.locked = true);
    stamps::follow_shard(env, open);
    let (observed, reads) = (open.work.observed.clone(), unlocked_reads(open, shard));
    let (writes, values) = (open.work.writes.iter().cloned().collect(), open.work.writes.pack(shard));
    if !open.meet(env, [shard]) {
        return Err(fail(env, open, Abort::Unknown));
    }
    let life = env.local(|node| {
        node.base.votes.owe(txn.number, shard);
        node.base.votes.lineage(shard)
    });
    let committed =
        match ask::<Occ<S>, E>(env, shard, Request::Commit { holder, observed, writes, values, reads }).await
        {
            Ok(Reply::Committed(stamp)) => Ok(stamp),
            Ok(Reply::Refused(abort)) => Err(abort),
            Ok(_) => unreachable!("COMMIT is answered with the outcome"),
            Err(Unknown) => match votes::ask(env, shard, life, txn).await {
                Some(Vote::Record(stamp)) => Ok(stamp),
                Some(Vote::Refuse) => Err(Abort::Refused),
                None => Err(Abort::Unknown),
            },
        };
    match committed {
        Ok(stamp) => {
            let shards = open.shards();
            open.work.commit(txn, Some(stamp), shards);
            Ok(())
        }
        Err(abort) => Err(fail(env, open, abort)),
    }
}

/// Whether the coordinator's shard writes, as far as is known, together with shards of other
/// processes, and may vote after them.
fn votes_last<S: Scheme, E: Env<Occ<S>>>(env: &E, open: &ActiveTransaction<S>, rest: bool) -> bool {
    let written = open.work.writes.shards();
    let here = rest || written.contains(&env.shard());
    here && open.touched.is_empty() && votes::needed(env, open.holder.txn, &written)
}

/// Commits a transaction whose coordinator's shard votes last. Until that vote the coordinator may
/// abort alone.
async fn commit_last<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    rest: Option<Rest<'_, S>>,
) -> Result<(), Stop> {
    let txn = open.holder.txn;
    let mut asked = Vec::new();
    let decided = match prepare_elsewhere(env, open, &mut asked).await {
        Ok(proposed) => vote_here(env, open, rest, &asked, proposed).await,
        Err(abort) => Err((None, Stop::Abort(abort))),
    };
    let (named, outcome) = match &decided {
        Ok(stamp) => (Some(*stamp), Ok(*stamp)),
        Err((named, _)) => (*named, Err(Abort::Refused)),
    };
    let _ = votes::conclude(env, open, asked, named, outcome).await;
    if outcome.is_err() {
        // If this shard has not voted, it has no entry through which the outcome would drop the
        // locks.
        env.local(|node| node.unlock(txn));
    }
    match decided {
        Ok(stamp) => {
            let shards = open.shards();
            let stamp = open.work.needs_stamp().then_some(stamp);
            open.work.commit(txn, stamp, shards);
            Ok(())
        }
        Err((_, Stop::Elsewhere)) => {
            // The remaining pieces need more voters than the others were told of: continue as
            // another attempt.
            fail(env, open, Abort::Refused);
            open.again(env);
            Err(Stop::Elsewhere)
        }
        Err((_, Stop::Conflict)) => Err(Stop::Abort(fail(env, open, Abort::WriteConflict))),
        Err((_, Stop::Abort(abort))) => Err(Stop::Abort(Occ::abort(env, open, abort).await)),
    }
}

/// Asks all other shards that are written to lock and vote, one message each. Adds to `voters` the
/// shards that may hold locks, and the own shard. Returns the proposed stamp, if any, at which the
/// shards that are only read have validated.
async fn prepare_elsewhere<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    voters: &mut Vec<(ShardId, u64)>,
) -> Result<Option<Timestamp>, Abort> {
    let me = env.shard();
    let mut shards = open.work.writes.shards();
    shards.retain(|&shard| shard != me);
    if !open.meet(env, shards.iter().copied()) {
        return Err(Abort::Unknown);
    }
    shards.push(me);
    let participants = votes::voters(env, open, &shards).ok_or(Abort::Unknown)?;
    let proposed = env.local(|node| node.propose(open));
    for write in open.work.writes.iter_mut().filter(|write| write.shard != me) {
        write.locked = true;
    }
    let prepare = |&(shard, life): &(ShardId, u64)| {
        let prepare = env.local(|node| Prepare::new(&node.base, open, shard, &participants));
        ((shard, life), ask::<Occ<S>, E>(env, shard, Request::Prepare(prepare)))
    };
    let others = participants.iter().filter(|(shard, _)| *shard != me);
    let calls: Vec<_> = others.map(prepare).collect();
    let validations = proposed.map(|stamp| validate_only_read(env, open, stamp)).unwrap_or_default();
    voters.extend(participants);
    let mut refused = None;
    for (voter, call) in calls {
        let answer = call.await;
        if let Ok(Reply::Refused(_)) = answer {
            voters.retain(|other| *other != voter);
        }
        // A shard that does not answer may have voted RECORD. It will abort too, because the own
        // vote will be REFUSE.
        granted(env, open, voter.0, answer, Abort::Refused, &mut refused);
    }
    for call in validations {
        refused = optimistic::validated::<Occ<S>>(call.await).err().or(refused);
    }
    refused.map_or(Ok(proposed), Err)
}

/// The vote of the coordinator's shard, when all others have voted RECORD. Returns the stamp; or
/// the reason for REFUSE, with the stamp if one was already drawn.
async fn vote_here<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    rest: Option<Rest<'_, S>>,
    voters: &[(ShardId, u64)],
    proposed: Option<Timestamp>,
) -> Result<Timestamp, (Option<Timestamp>, Stop)> {
    let (me, txn) = (env.shard(), open.holder.txn);
    // Voters hold their reads until the outcome.
    let unheld = |open: &ActiveTransaction<S>, shard| match voters.iter().any(|(voter, _)| *voter == shard) {
        true => Vec::new(),
        false => unlocked_reads(open, shard),
    };
    let elsewhere =
        open.parts.shards().into_iter().any(|shard| shard != me && !unheld(open, shard).is_empty());
    let last = env.local(|node| {
        // Another voter may have waited too long and asked: then this shard has voted REFUSE.
        if !node.base.votes.unvoted(txn) && !planted(Mutant::OwnRefusalForgotten) {
            return Last::Failed(Stop::Abort(Abort::Refused));
        }
        let at_once = !elsewhere && node.base.stamps_at_once();
        let last = node.last(open, at_once, rest);
        if let Last::Committed(stamp) = last {
            node.base.votes.committed(txn, stamp, voters.to_vec());
        }
        last
    });
    match last {
        Last::Committed(stamp) => return Ok(stamp),
        Last::Failed(stop) => return Err((None, stop)),
        Last::Locked => {}
    }
    let refused = |stamp, abort| Err((stamp, Stop::Abort(abort)));
    let Some((stamp, validated)) = final_stamp(env, open, proposed).await else {
        return refused(None, Abort::Unknown);
    };
    let named = open.work.needs_stamp().then_some(stamp);
    let reads = |open: &ActiveTransaction<S>, shard| if validated { Vec::new() } else { unheld(open, shard) };
    if let Err(abort) = optimistic::validate(env, open, stamp, reads).await {
        return refused(named, abort);
    }
    let voted = env.local(|node| {
        let unvoted = node.base.votes.unvoted(txn) || planted(Mutant::OwnRefusalForgotten);
        if unvoted {
            votes::enter_record(node, txn, stamp, open.work.writes.pack(me), voters.to_vec());
        }
        unvoted
    });
    if voted { Ok(stamp) } else { refused(named, Abort::Refused) }
}

/// The stamp of a transaction that holds all its locks, and whether it is the proposed one, at
/// which the shards that are only read have validated. `None` if no stamp can be had.
async fn final_stamp<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &ActiveTransaction<S>,
    proposed: Option<Timestamp>,
) -> Option<(Timestamp, bool)> {
    let least = S::lower_bound(&open.work.observed);
    if let Some(proposed) = proposed.filter(|&proposed| S::WAITS && least <= proposed) {
        let stamps = What::Stamps { stamp: proposed, least };
        env.local(|node| node.base.step(open.holder.txn, |_| stamps));
        return Some((proposed, true));
    }
    let stamp = stamps::stamp(env, open).await?;
    Some((stamp, proposed.is_some() && planted(Mutant::FastPath)))
}

/// Asks the shards where the transaction has only read to validate at a proposed stamp.
fn validate_only_read<'e, S: Scheme, E: Env<Occ<S>>>(
    env: &'e E,
    open: &ActiveTransaction<S>,
    stamp: Timestamp,
) -> Vec<impl Future<Output = Result<<Occ<S> as Messages>::Reply, Unknown>> + use<'e, S, E>> {
    let txn = open.holder.txn;
    let validate = |shard| {
        let reads = unlocked_reads(open, shard);
        env.call(shard, Envelope::Common(Common::Validate { txn, stamp, reads }))
    };
    only_read(open).into_iter().map(validate).collect()
}

/// Takes a shard's answer to a lock request. Notes in `refused` why it was refused, which is `lost`
/// if there was no answer. The transaction's own links do not make its reads stale.
fn granted<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    shard: ShardId,
    answer: Result<Reply<S>, Unknown>,
    lost: Abort,
    refused: &mut Option<Abort>,
) {
    match answer {
        Ok(Reply::Locked { observed, linked }) => {
            let believed = env.local(|node| node.base.believe(shard, S::reach(&observed)));
            *refused = believed.err().or(*refused);
            if !planted(Mutant::BoundIgnored) && !planted(Mutant::EarlyBound) {
                S::join(&mut open.work.observed, &observed);
            }
            if !own_links(open, shard, &linked) {
                *refused = Some(Abort::Validation);
            }
        }
        // That a row exists is an answer only if nothing else has changed.
        Ok(Reply::Refused(Abort::User)) => *refused = refused.or(Some(Abort::User)),
        Ok(Reply::Refused(abort)) => *refused = Some(abort),
        Ok(_) => unreachable!("locks are granted or refused"),
        Err(Unknown) => *refused = Some(lost),
    }
}

/// Locks the remote write sets, one message per shard. If a stamp is proposed, shards that are only
/// read pin and validate at it.
async fn lock_elsewhere<S: Scheme, E: Env<Occ<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    proposed: Option<Timestamp>,
) -> Result<(), Abort> {
    let (me, txn) = (env.shard(), open.holder.txn);
    let shards: Vec<ShardId> = open.work.writes.shards().into_iter().filter(|&shard| shard != me).collect();
    if !open.meet(env, shards.iter().copied()) {
        return Err(Abort::Unknown);
    }
    let mut calls = Vec::new();
    for shard in shards {
        let writes: Vec<Write> = open.work.writes.of(shard).filter(|write| !write.locked).cloned().collect();
        if !writes.is_empty() {
            open.touch(shard);
            env.local(|node| node.base.votes.owe(txn.number, shard));
            let (holder, observed) = (open.holder, open.work.observed.clone());
            let overwritten = open.work.writes.overwritten(shard);
            let reads = open.parts.of_mut(shard).filter(|part| !part.locked).flat_map(|part| {
                part.locked = true;
                part.fetched.read_refs()
            });
            let only_read = |read: &ReadRef| read.is_record() && overwritten.binary_search(read).is_err();
            let reads = reads.filter(only_read).collect();
            calls.push((
                shard,
                ask::<Occ<S>, E>(env, shard, Request::Lock { holder, observed, writes, reads }),
            ));
        }
    }
    let validations = proposed.map(|stamp| validate_only_read(env, open, stamp)).unwrap_or_default();
    let mut refused = None;
    for (shard, call) in calls {
        granted(env, open, shard, call.await, Abort::Unknown, &mut refused);
    }
    for call in validations {
        refused = optimistic::validated::<Occ<S>>(call.await).err().or(refused);
    }
    for write in open.work.writes.iter_mut().filter(|write| write.shard != me) {
        write.locked = true;
    }
    refused.map_or(Ok(()), Err)
}

impl<S: Scheme> Occ<S> {
    /// The stamp to validate at while the locks are taken, if that saves a round trip. It is final
    /// if no bound in the answers to the lock requests is above it.
    fn propose(&mut self, open: &ActiveTransaction<S>) -> Option<Timestamp> {
        let locks = || open.work.writes.iter().any(|write| write.shard != self.base.shard);
        if planted(Mutant::FastPath) {
            return Some(S::lower_bound(&open.work.observed));
        }
        let one_round = self.one_round || planted(Mutant::OneRoundUnasked);
        let saves = S::WAITS && one_round && locks() && !only_read(open).is_empty();
        saves.then(|| self.base.scheme.stamp(&open.work.observed))
    }

    /// Locks the coordinator's own shard, which is last. The rest of the transaction's code
    /// executes on the store. Then its writes are checked and, if no other shard must vote or
    /// validate, it is stamped, validated and installed in this same step.
    fn last(&mut self, open: &mut ActiveTransaction<S>, at_once: bool, rest: Option<Rest<'_, S>>) -> Last {
        let (holder, me) = (open.holder, self.base.shard);
        if let Err(stop) = protocol::execute_rest(&mut self.base, open, rest, !at_once) {
            return Last::Failed(stop);
        }
        let Footprint { observed, writes, .. } = &mut open.work;
        if let Err(abort) = self.base.admit_writes(writes.of(me), None) {
            return Last::Failed(Stop::Abort(abort));
        }
        for write in writes.iter_mut().filter(|write| write.shard == me) {
            let checked = match write.place {
                None => self.base.check(&holder.txn, write, observed),
                // It was checked in this same step.
                Some(_) if at_once => Ok(()),
                Some(_) => self.base.may_lock(holder.txn, write.column, &write.key),
            };
            if let Err(abort) = checked {
                return Last::Failed(Stop::Abort(abort));
            }
        }
        if at_once {
            let stamp = match open.work.needs_stamp() {
                true => self.base.stamp(holder.txn, &open.work.observed),
                false => Timestamp::ZERO,
            };
            let mut fetched = open.parts.of(me).flat_map(|part| part.fetched.read_refs());
            let valid = fetched.all(|read| self.base.validate(holder.txn, stamp, &[read]));
            self.base.pin_local(holder.txn, &open.work, stamp);
            if !valid {
                if S::REPORTS && open.work.needs_stamp() {
                    self.base.finished(stamp, None);
                }
                return Last::Failed(Stop::Abort(Abort::Validation));
            }
            self.base.install_checked(holder.txn, stamp, &open.work, me);
            return Last::Committed(stamp);
        }
        let mut linked = Vec::new();
        let held = &mut self.held.entry(holder.txn).or_default().exclusive;
        let Footprint { observed, writes, .. } = &mut open.work;
        for write in writes.iter_mut().filter(|write| write.shard == me) {
            linked.extend(self.base.grant(holder, write, observed, held).1);
            write.locked = true;
        }
        open.touch(me);
        match own_links(open, me, &linked) {
            true => Last::Locked,
            false => Last::Failed(Stop::Abort(Abort::Validation)),
        }
    }
}

/// Tells the other shards to install. Nothing can fail any more, so the coordinator does not wait;
/// only a report to an oracle must wait until the commit is installed everywhere.
fn install_elsewhere<S: Scheme, E: Env<Occ<S>>>(env: &E, open: &ActiveTransaction<S>, stamp: Timestamp) {
    let (me, txn) = (env.shard(), open.holder.txn);
    if !open.work.needs_stamp() {
        return;
    }
    let mut calls = Vec::new();
    for shard in open.work.writes.shards().into_iter().filter(|&shard| shard != me) {
        let writes = open.work.writes.pack(shard);
        if S::REPORTS {
            calls.push(ask::<Occ<S>, E>(env, shard, Request::Install { txn, stamp, writes, answer: true }));
        } else {
            tell::<Occ<S>, E>(env, shard, Request::Install { txn, stamp, writes, answer: false });
        }
    }
    if S::REPORTS {
        let observed = open.work.observed.clone();
        let inner = env.clone();
        let report = async move {
            for call in calls {
                let _ = call.await;
            }
            inner.local(|node| node.base.finished(stamp, Some(&observed)));
        };
        env.spawn(report);
    }
}

/// Aborts: unlocks everything. Marks that were raised stay raised; they are only upper bounds.
fn fail<S: Scheme, E: Env<Occ<S>>>(env: &E, open: &mut ActiveTransaction<S>, why: Abort) -> Abort {
    let (me, txn) = (env.shard(), open.holder.txn);
    env.local(|node| node.base.step(txn, |_| What::Aborts(why)));
    for shard in std::mem::take(&mut open.touched) {
        match shard == me {
            true => env.local(|node| node.unlock(txn)),
            false => tell::<Occ<S>, E>(env, shard, Request::Abort(txn)),
        }
    }
    why
}
