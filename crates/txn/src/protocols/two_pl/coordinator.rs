//! The coordinator: the growing phase, the stamp, the shrinking phase.

use std::collections::BTreeMap;

use plimsoll_runtime::{Env, Handled};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Ticket, Timestamp, TxnId};

use super::{HeldLocks, Reply, Request, TwoPl};
use crate::attempt::{Attempt, LockPolicy, ProtocolOptions, Stop};
use crate::ballot;
use crate::base::Base;
use crate::executable::Executable;
use crate::execute;
use crate::fetched::ReadRef;
use crate::locks::Locks;
use crate::parts::FetchedBatch;
use crate::procedure::Reads;
use crate::protocol::{self, ActiveTransaction, Interactive, Protocol, Rest, ask, tell};
use crate::stamps;
use crate::timestamp::Scheme;
use crate::trace::{About, What};
use crate::votes;
use crate::work::{Change, Footprint, Write};

impl<S: Scheme> Protocol for TwoPl<S> {
    type Scheme = S;
    type Own = Request<S>;
    type OwnReply = Reply<S>;
    const NAME: &'static str = "two_pl";
    const LOCKS: bool = true;

    fn new(base: Base<S>, options: ProtocolOptions) -> TwoPl<S> {
        TwoPl {
            base,
            policy: options.lock_policy,
            held: BTreeMap::new(),
            running: BTreeMap::new(),
            outgoing: Vec::new(),
        }
    }

    fn base(&mut self) -> &mut Base<S> {
        &mut self.base
    }

    fn make_entry(&mut self) {
        let held = &self.held;
        self.base.make_entry(|txn| held.get(&txn).map(|held| &held.locks));
    }

    fn relock(&mut self, txn: TxnId, locks: Locks) {
        self.held.insert(txn, HeldLocks { locks, ..HeldLocks::default() });
    }

    fn handle_own(&mut self, from: ShardId, own: &mut Request<S>, ticket: Ticket) -> Handled<Reply<S>> {
        match own {
            // A shard of another process commits by votes only.
            Request::Finish { .. } if self.base.votes.elsewhere(from) => Handled::Done,
            Request::Acquire { holder, reads, writes, observed } => {
                let believed = self.base.believe(from, S::reach(observed));
                let acquired = believed.and_then(|()| self.acquire(*holder, reads, writes, observed, ticket));
                if !matches!(acquired, Ok(None)) {
                    self.stop_waiting(holder.txn);
                }
                if acquired.is_err() && self.held.get(&holder.txn).is_some_and(|held| held.locks.is_empty()) {
                    self.held.remove(&holder.txn);
                }
                match acquired {
                    Ok(Some(fetched)) => Handled::Reply(Reply::Acquired(fetched)),
                    Ok(None) => Handled::Wait,
                    Err(abort) => Handled::Reply(Reply::Refused(self.base.refused(abort))),
                }
            }
            Request::Finish { txn, stamp, writes, answer } => {
                self.finish(*txn, *stamp, writes);
                if *answer { Handled::Reply(Reply::Finished) } else { Handled::Done }
            }
            Request::Pin { stamp, .. } if self.base.believe(from, *stamp).is_err() => {
                Handled::Reply(Reply::Refused(self.base.refused(Abort::ClockAhead)))
            }
            Request::Pin { txn, stamp } => {
                let held = self.holds(*txn);
                if held {
                    self.release(*txn, Some(*stamp));
                    self.base.votes.close(*txn);
                }
                Handled::Reply(Reply::Pinned(held))
            }
            Request::Abort(txn) => {
                self.release(*txn, None);
                self.base.votes.close(*txn);
                Handled::Done
            }
            Request::Wound(txn) => {
                self.wound(*txn);
                Handled::Done
            }
            Request::Cancel(txn) => {
                if let Some(held) = self.held.get_mut(txn) {
                    held.cancelled = Some(Abort::Wounded);
                    self.base.released.extend(held.ticket);
                }
                Handled::Done
            }
        }
    }

    fn handle_vote(&mut self, from: ShardId, request: &mut ballot::Request) -> Handled<ballot::Reply> {
        votes::handle(self, from, request)
    }

    fn tick(&mut self, clock: Timestamp) {
        self.base.pass(clock);
        votes::tick(self, clock);
    }

    fn outgoing_own(&mut self, tell: &mut dyn FnMut(ShardId, Request<S>)) {
        self.outgoing.drain(..).for_each(|(to, own)| tell(to, own));
    }

    fn about(request: &Request<S>) -> About {
        match request {
            Request::Acquire { holder, reads, writes, .. } => {
                let writes = writes.iter().map(|write| (write.column, &write.key));
                About::new("ACQUIRE", Some(holder.txn)).reads(reads).writes(writes)
            }
            Request::Finish { txn, writes, .. } => {
                let writes = writes.iter().map(|(column, key, _)| (column, key));
                About::new("FINISH", Some(*txn)).writes(writes)
            }
            Request::Pin { txn, .. } => About::new("PIN", Some(*txn)),
            Request::Abort(txn) => About::new("ABORT", Some(*txn)),
            Request::Wound(txn) => About::new("WOUND", Some(*txn)),
            Request::Cancel(txn) => About::new("CANCEL", Some(*txn)),
        }
    }

    fn answer(reply: &Reply<S>) -> &'static str {
        match reply {
            Reply::Acquired(_) => "acquired",
            Reply::Refused(_) => "refused",
            Reply::Finished => "finished",
            Reply::Pinned(true) => "pinned",
            Reply::Pinned(false) => "refused",
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

impl<S: Scheme> Interactive for TwoPl<S> {
    async fn read<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<S>,
        batches: Vec<(ShardId, Reads)>,
    ) -> Result<(), Abort> {
        let batches = batches.into_iter().map(|(shard, reads)| (shard, reads, Vec::new())).collect();
        acquire(env, open, batches).await
    }

    async fn wrote<E: Env<Self>>(env: &E, open: &mut ActiveTransaction<S>) -> Result<(), Abort> {
        lock_writes(env, open).await
    }

    async fn commit<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<S>,
        rest: Option<Rest<'_, S>>,
    ) -> Result<(), Stop> {
        let txn = open.holder.txn;
        // The last locks for the writes so far.
        lock_writes(env, open).await.map_err(Stop::Abort)?;
        // The remaining pieces execute on the store and check for locks as they go. From here to
        // the stamp nothing else runs on this shard; or to the end, if no other process must be
        // asked.
        let alone = env.local(|node| !open.touched.iter().any(|&shard| node.base.votes.elsewhere(shard)));
        if let Err(stop) = env.local(|node| node.last(open, alone, rest)) {
            return Err(match stop {
                Stop::Abort(abort) => Stop::Abort(Self::abort(env, open, abort).await),
                Stop::Conflict if env.local(|node| node.policy == LockPolicy::NoWait) => {
                    Stop::Abort(Self::abort(env, open, Abort::WriteConflict).await)
                }
                other => other,
            });
        }
        // The stamp: every lock is held.
        if !env.local(|node| node.begin_commit(txn)) {
            return Err(Stop::Abort(Self::abort(env, open, Abort::Wounded).await));
        }
        let Some(stamp) = stamps::stamp(env, open).await else {
            return Err(Stop::Abort(Self::abort(env, open, Abort::Unknown).await));
        };
        let voting = !alone && votes::needed(env, txn, &open.work.writes.shards());
        if !alone {
            env.local(|node| node.base.pin_local(txn, &open.work, stamp));
            let written = open.work.writes.shards();
            let pinned = pin_elsewhere(env, open, &written, stamp).await;
            if pinned.is_err() && S::REPORTS && open.work.needs_stamp() {
                env.local(|node| node.base.finished(stamp, None));
            }
            let decided = match pinned {
                Ok(()) if voting => votes::decide(env, open, stamp, |_, _| Vec::new()).await,
                pinned => pinned,
            };
            if let Err(abort) = decided {
                return Err(Stop::Abort(Self::abort(env, open, abort).await));
            }
        }
        // Shrinking phase.
        env.local(|node| node.finish_here(open, voting, stamp));
        finish_elsewhere(env, open, voting, stamp);
        let shards = open.shards();
        open.work.commit(txn, open.work.needs_stamp().then_some(stamp), shards);
        Ok(())
    }

    async fn abort<E: Env<Self>>(env: &E, open: &mut ActiveTransaction<S>, why: Abort) -> Abort {
        let (me, txn) = (env.shard(), open.holder.txn);
        // The procedure aborts because of what it has read. That is a valid answer only if its
        // locks are still held.
        let why = match why {
            Abort::User => pin_elsewhere(env, open, &[], Timestamp::ZERO).await.err().unwrap_or(why),
            why => why,
        };
        for shard in std::mem::take(&mut open.touched) {
            match shard == me {
                true => env.local(|node| node.release(txn, None)),
                false => tell::<TwoPl<S>, E>(env, shard, Request::Abort(txn)),
            }
        }
        env.local(|node| {
            node.running.remove(&txn);
            node.base.step(txn, |_| What::Aborts(why));
        });
        why
    }
}

impl<S: Scheme> TwoPl<S> {
    /// Executes the remaining pieces directly on the store. If the transaction must then wait for a
    /// stamp or for another process, locks their reads and writes. These locks are free, because
    /// this is the same step.
    fn last(
        &mut self,
        open: &mut ActiveTransaction<S>,
        alone: bool,
        rest: Option<Rest<'_, S>>,
    ) -> Result<(), Stop> {
        let (holder, me) = (open.holder, self.base.shard);
        if self.running.get(&holder.txn).is_some_and(|running| running.wounded) {
            return Err(Stop::Abort(Abort::Wounded));
        }
        let at_once = alone && self.base.stamps_at_once();
        protocol::execute_rest(&mut self.base, open, rest, !at_once)?;
        if at_once {
            return Ok(());
        }
        let base = &mut self.base;
        for write in open.work.writes.iter().filter(|write| write.shard == me && write.place.is_some()) {
            base.may_lock(holder.txn, write.column, &write.key).map_err(Stop::Abort)?;
        }
        let reads = open.work.local_reads.len() + open.work.local_ranges.len();
        if reads > 0 && !base.may_lock_reads() {
            return Err(Stop::Abort(Abort::StaleTerm));
        }
        let held = &mut self.held.entry(holder.txn).or_default().locks;
        for read in &open.work.local_reads {
            if let ReadRef::Row { at, .. } = *read {
                self.base.share(holder, at, held);
            }
        }
        for range in open.work.local_ranges.drain(..) {
            self.base.share_range(holder, range, held);
        }
        let Footprint { observed, writes, .. } = &mut open.work;
        for write in writes.iter_mut().filter(|write| write.shard == me && write.place.is_some()) {
            let (at, _) = self.base.grant(holder, write, observed, &mut held.exclusive);
            let lock = self.base.store.lock_mut(at);
            lock.sharers.retain(|sharer| *sharer != holder);
            write.locked = true;
        }
        open.touch(me);
        Ok(())
    }

    /// Installs, pins and releases on the coordinator's own shard.
    fn finish_here(&mut self, open: &ActiveTransaction<S>, voted: bool, stamp: Timestamp) {
        let (me, txn) = (self.base.shard, open.holder.txn);
        if voted {
            // If it writes nothing on this shard, this shard has not voted, and only releases.
            self.release(txn, Some(stamp));
        } else {
            self.base.pin_local(txn, &open.work, stamp);
            self.base.install_checked(txn, stamp, &open.work, me);
            self.finish(txn, stamp, &open.work.writes.pack(me));
        }
        self.running.remove(&txn);
    }
}

/// Locks and reads, one message per shard. On refusal the transaction is aborted everywhere.
async fn acquire<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    batches: Vec<(ShardId, Reads, Vec<Write>)>,
) -> Result<(), Abort> {
    let holder = open.holder;
    let wounded = |node: &mut TwoPl<S>| node.running.get(&holder.txn).is_some_and(|running| running.wounded);
    if env.local(wounded) {
        // Already wounded: CANCEL was sent to the shards asked so far, so a request sent now could
        // wait for ever.
        return Err(TwoPl::abort(env, open, Abort::Wounded).await);
    }
    if !open.meet(env, batches.iter().map(|(shard, ..)| *shard)) {
        return Err(TwoPl::abort(env, open, Abort::Unknown).await);
    }
    let mut calls = Vec::with_capacity(batches.len());
    for (shard, reads, writes) in batches {
        open.touch(shard);
        env.local(|node| {
            node.base.votes.owe(holder.txn.number, shard);
            let asked = &mut node.running.entry(holder.txn).or_default().asked;
            if !asked.contains(&shard) {
                asked.push(shard);
            }
        });
        let observed = open.work.observed.clone();
        let request = Request::Acquire { holder, reads: reads.clone(), writes, observed };
        calls.push((shard, reads, ask::<TwoPl<S>, E>(env, shard, request)));
    }
    let mut refused = None;
    for (shard, reads, call) in calls {
        match call.await {
            Ok(Reply::Acquired(fetched)) => {
                let reach = S::reach(&fetched.observed);
                refused = env.local(|node| node.base.believe(shard, reach)).err().or(refused);
                if !planted(Mutant::BoundIgnored) {
                    S::join(&mut open.work.observed, &fetched.observed);
                }
                open.parts.push(FetchedBatch { shard, reads, fetched, locked: true });
            }
            Ok(Reply::Refused(abort)) => refused = Some(abort),
            Ok(_) => unreachable!("a lock request is granted or refused"),
            Err(_) => refused = Some(Abort::Unknown),
        }
    }
    if env.local(wounded) {
        refused = Some(Abort::Wounded);
    }
    match refused {
        None => Ok(()),
        Some(abort) => Err(TwoPl::abort(env, open, abort).await),
    }
}

/// Locks the writes that are not locked yet.
async fn lock_writes<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
) -> Result<(), Abort> {
    let ActiveTransaction { work, parts, .. } = &mut *open;
    let first = work.writes.locked();
    let new = work.writes.since(first);
    // A present record that was read for update has been locked exclusively since then. For an
    // absent key it must still be checked that no other transaction has locked a range around it.
    for write in new.iter_mut().filter(|write| write.change != Change::Insert) {
        write.locked = parts.read_for_update(write.shard, write.column, &write.key);
    }
    let mut batches: Vec<(ShardId, Reads, Vec<Write>)> = Vec::new();
    let mut new: Vec<Write> = new.iter().filter(|write| !write.locked).cloned().collect();
    new.sort_by_key(|write| write.shard);
    for write in new {
        match batches.last_mut() {
            Some((shard, _, writes)) if *shard == write.shard => writes.push(write),
            _ => batches.push((write.shard, Reads::default(), vec![write])),
        }
    }
    if batches.is_empty() {
        return Ok(());
    }
    acquire(env, open, batches).await?;
    open.work.writes.since(first).iter_mut().for_each(|write| write.locked = true);
    Ok(())
}

/// Pins the reads on shards of other processes, except for those in `written`, and releases their
/// locks. Fails if one of the locks was lost, or a shard does not believe the stamp.
async fn pin_elsewhere<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    written: &[ShardId],
    stamp: Timestamp,
) -> Result<(), Abort> {
    let txn = open.holder.txn;
    let only_read =
        |shard: &ShardId| !written.contains(shard) && env.local(|node| node.base.votes.elsewhere(*shard));
    let calls: Vec<_> = (open.touched.iter().copied().filter(only_read))
        .map(|shard| (shard, ask::<TwoPl<S>, E>(env, shard, Request::Pin { txn, stamp })))
        .collect();
    let mut pinned = Ok(());
    for (shard, call) in calls {
        match call.await {
            Ok(Reply::Pinned(_)) if planted(Mutant::PinIgnored) => {}
            Ok(Reply::Pinned(true)) => open.touched.retain(|&touched| touched != shard),
            Ok(Reply::Refused(abort)) => pinned = Err(abort),
            _ => pinned = Err(Abort::Refused),
        }
    }
    pinned
}

/// Tells the other shards to install, pin and release. The coordinator does not wait; only a report
/// to an oracle must wait until the commit is installed everywhere.
fn finish_elsewhere<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut ActiveTransaction<S>,
    voted: bool,
    stamp: Timestamp,
) {
    let (me, txn) = (env.shard(), open.holder.txn);
    // After a vote, `votes::conclude` reports when all voters have installed.
    let report = S::REPORTS && open.work.needs_stamp() && !voted;
    let mut calls = Vec::new();
    for shard in std::mem::take(&mut open.touched).into_iter().filter(|&shard| shard != me) {
        let writes = open.work.writes.pack(shard);
        if report {
            calls.push(ask::<TwoPl<S>, E>(env, shard, Request::Finish { txn, stamp, writes, answer: true }));
        } else {
            tell::<TwoPl<S>, E>(env, shard, Request::Finish { txn, stamp, writes, answer: false });
        }
    }
    if report {
        let observed = open.work.observed.clone();
        let inner = env.clone();
        env.spawn(async move {
            for call in calls {
                let _ = call.await;
            }
            inner.local(|node| node.base.finished(stamp, Some(&observed)));
        });
    }
}
