//! The seam between protocols and everything that runs transactions: what a protocol is and what
//! it coordinates ([`Open`]).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use plimsoll_runtime::{Env, Handled, Messages};
use plimsoll_store::Holder;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Wire;
use plimsoll_types::{Abort, ShardId, Ticket, Timestamp, TxnId};

use crate::attempt::{Attempt, ProtocolOptions, Stop};
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::executable::Executable;
use crate::execute;
use crate::messages::{Common, CommonReply};
use crate::parts::Parts;
use crate::procedure::Reads;
use crate::read_only;
use crate::timestamp::{MAX_OFFSET_NS, Scheme};
use crate::trace::{About, What};
use crate::votes::{self, Votes};
use crate::work::Work;

/// A concurrency-control protocol with its timestamp scheme: the participant that lives on a shard,
/// and the coordinator's steps against the participants. What is the same under all protocols is in
/// [`crate::envelope`].
pub trait Protocol:
    Messages<
        Request = Envelope<<Self as Protocol>::Scheme, <Self as Protocol>::Own>,
        Reply = Answer<<Self as Protocol>::Scheme, <Self as Protocol>::OwnReply>,
    > + Sized
{
    /// The timestamp scheme.
    type Scheme: Scheme;
    /// The protocol's own requests, those of its paper.
    type Own: Wire + Send + 'static;
    /// And the answers.
    type OwnReply: Wire + Send + 'static;
    /// The protocol's name on the command line.
    const NAME: &'static str;
    /// Whether a transaction that meets a lock may wait for it instead of aborting.
    const LOCKS: bool;
    /// Whether it orders transactions by a dependency graph.
    const GRAPH: bool = false;

    /// The participant of a shard.
    fn new(base: Base<Self::Scheme>, options: ProtocolOptions) -> Self;

    /// The shard's data.
    fn base(&mut self) -> &mut Base<Self::Scheme>;

    /// How much it remembers of transactions, beside locks and votes: nothing once all are over.
    fn remembered(&self) -> usize {
        0
    }

    /// The participant's life begins; it may start tasks of its own.
    fn start_tasks<E: Env<Self>>(_env: &E) {}

    /// Handles a request of the protocol's own: see
    /// [`Participant::handle`](plimsoll_runtime::Participant::handle).
    fn handle_own(&mut self, from: ShardId, own: &mut Self::Own, ticket: Ticket) -> Handled<Self::OwnReply>;

    /// Handles a common request.
    fn handle_common(
        &mut self,
        from: ShardId,
        request: &mut Common<Self::Scheme>,
        ticket: Ticket,
    ) -> Handled<CommonReply<Self::Scheme>> {
        self.base().handle(from, request, ticket)
    }

    /// Handles a request that concerns votes. A protocol without votes has no answer to one; only a
    /// process that is none of the database's sends it.
    fn handle_vote(&mut self, _from: ShardId, _request: &mut votes::Request) -> Handled<votes::Reply> {
        Handled::Done
    }

    /// Once per pass, after the inbox was drained, with the new sample of the clock.
    fn tick(&mut self, clock: Timestamp) {
        self.base().pass(clock);
    }

    /// The channel to a shard of another process was connected, or reset; the base knows already.
    fn reconnected(&mut self, _peer: ShardId, _up: bool) {}

    /// At the end of a pass: what the protocol itself has to tell other shards.
    fn outgoing_own(&mut self, _tell: &mut dyn FnMut(ShardId, Self::Own)) {}

    /// What a request of its own is about, for whoever watches.
    fn about(own: &Self::Own) -> About;

    /// An answer of its own in a word or two, for whoever watches.
    fn answer(own: &Self::OwnReply) -> &'static str;

    /// Runs one attempt of a procedure that is not read at a snapshot in one step, if its data is
    /// all here and no lock is in the way.
    fn at_once(
        &mut self,
        attempt: Attempt,
        procedure: &mut dyn Executable<Self::Scheme>,
        work: &mut Work<Self::Scheme>,
    ) -> Result<(), Stop> {
        execute::at_once(self.base(), attempt, procedure, work)
    }

    /// Runs one attempt of a procedure that is not read at a snapshot and could not run in one
    /// step.
    fn run<E: Env<Self>>(
        env: &E,
        attempt: Attempt,
        procedure: &mut dyn Executable<Self::Scheme>,
        work: &mut Work<Self::Scheme>,
    ) -> impl Future<Output = Result<(), Abort>>;
}

/// A protocol that runs transactions whose operations come one by one. Procedures run over the same
/// operations (`execute::run`).
pub trait Interactive: Protocol {
    /// Execution phase: reads one batch per shard and appends the answers to the transaction's
    /// parts.
    fn read<E: Env<Self>>(
        env: &E,
        open: &mut Open<Self::Scheme>,
        batches: Vec<(ShardId, Reads)>,
    ) -> impl Future<Output = Result<(), Abort>>;

    /// An interactive transaction has buffered a write: locks it if the protocol locks early.
    fn wrote<E: Env<Self>>(env: &E, open: &mut Open<Self::Scheme>)
    -> impl Future<Output = Result<(), Abort>>;

    /// Commits, and notes it in the transaction's work. `rest` executes what is left of the
    /// transaction, if anything is, directly on the coordinator's shard, once everything else is
    /// locked. On [`Stop::Conflict`] and [`Stop::Elsewhere`] that was not possible, nothing of it
    /// was done, and the transaction is still open; on [`Stop::Abort`] it has been aborted.
    fn commit<E: Env<Self>>(
        env: &E,
        open: &mut Open<Self::Scheme>,
        rest: Option<Rest<'_, Self::Scheme>>,
    ) -> impl Future<Output = Result<(), Stop>>;

    /// Aborts, and tells the reason to report: an abort of the procedure's own counts only if what
    /// it has read was consistent.
    fn abort<E: Env<Self>>(env: &E, open: &mut Open<Self::Scheme>, why: Abort)
    -> impl Future<Output = Abort>;
}

/// The pieces of a transaction that execute directly on the coordinator's store, called at most
/// once. Told its id, and whether to note what is read, to be locked or validated later.
pub type Rest<'a, S> = &'a mut dyn FnMut(&mut Base<S>, &mut Work<S>, TxnId, bool) -> Result<(), Stop>;

/// A transaction that is being coordinated.
#[derive(Debug)]
pub struct Open<S: Scheme> {
    /// The attempt and its age.
    pub holder: Holder,
    /// What it read and will write.
    pub work: Work<S>,
    /// What other shards, or this one, have answered so far.
    pub(crate) parts: Parts<S>,
    /// Interactive transactions read here, until they commit.
    pub(crate) snapshot: Option<S::Snapshot>,
    /// Shards where it may hold locks.
    pub(crate) touched: Vec<ShardId>,
    /// Shards of other processes that it has asked for something, and in which of their lives.
    met: Vec<(ShardId, u64)>,
    /// Somebody else will say when it is settled.
    pub(crate) settling: bool,
}

impl<S: Scheme> Open<S> {
    /// A new attempt.
    pub(crate) fn new(holder: Holder, work: Work<S>) -> Open<S> {
        Open {
            holder,
            work,
            parts: Parts::default(),
            snapshot: None,
            touched: Vec::new(),
            met: Vec::new(),
            settling: false,
        }
    }

    /// It is over, one way or the other.
    pub(crate) fn end<P: Protocol<Scheme = S>, E: Env<P>>(&self, env: &E) {
        if !self.settling {
            env.local(|node| node.base().settled(self.holder.txn));
        }
    }

    /// Goes on as another attempt with what it has read and written. The former one is given up,
    /// and whoever tells others of that will say when it is settled.
    pub(crate) fn again<P: Protocol<Scheme = S>, E: Env<P>>(&mut self, env: &E) {
        let former = self.holder.txn;
        self.holder.txn = env.local(|node| {
            let txn = node.base().begin();
            node.base().step(txn, |_| What::Continues(former));
            txn
        });
        self.work.committed.id = self.holder.txn;
        for write in self.work.writes.iter_mut() {
            write.locked = false;
            // The former attempt may have linked the key, and has noted that where it noted the
            // read.
            write.expected = write.expected.filter(|read| read.is_record());
        }
        self.settling = false;
    }

    pub(crate) fn touch(&mut self, shard: ShardId) {
        if !self.touched.contains(&shard) {
            self.touched.push(shard);
        }
    }

    /// It is going to ask these shards for something. Returns false if one that it has met before
    /// is [`Open::lost`].
    pub(crate) fn meet<P: Protocol<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        shards: impl IntoIterator<Item = ShardId>,
    ) -> bool {
        env.local(|node| {
            let votes = &node.base().votes;
            for shard in shards {
                if votes.elsewhere(shard) && !self.met.iter().any(|(met, _)| *met == shard) {
                    self.met.push((shard, votes.life(shard)));
                }
            }
            !self.lost(votes)
        })
    }

    /// Whether a shard that it has met has lost everything since. What was read there names rows
    /// that another life has in other places, if it has them at all, and must not be sent to it.
    pub(crate) fn lost(&self, votes: &Votes) -> bool {
        self.met.iter().any(|&(shard, life)| votes.life(shard) != life)
    }

    /// The life in which it has met a shard, its present one if it has not.
    pub(crate) fn life(&self, votes: &Votes, shard: ShardId) -> u64 {
        let met = self.met.iter().find(|(met, _)| *met == shard);
        met.map_or_else(|| votes.life(shard), |&(_, life)| life)
    }

    /// The other shard that it has all its reads and writes on, if there is such a one.
    pub(crate) fn only_shard(&self) -> Option<ShardId> {
        let first = self.work.writes.iter().next()?.shard;
        let written = self.work.writes.iter().all(|write| write.shard == first);
        let read = self.parts.shards().iter().all(|&shard| shard == first);
        let here = !self.work.local_reads.is_empty() || first == self.holder.txn.coordinator;
        (written && read && !here).then_some(first)
    }

    /// How many shards take part.
    pub(crate) fn shards(&self) -> usize {
        let mut shards = self.work.writes.shards();
        shards.extend(self.parts.shards());
        shards.push(self.holder.txn.coordinator);
        shards.sort_unstable();
        shards.dedup();
        shards.len()
    }
}

/// The answer to a read-write transaction leaves once the clock has reached its timestamp: whoever
/// hears of it and then begins a snapshot, on whichever shard, sees it. A timestamp that is further
/// ahead of the clock than clocks may be apart comes of a clock that is wrong; nobody waits longer
/// for that, and it is counted.
pub(crate) async fn answerable<P: Protocol, E: Env<P>>(env: &E, stamp: Timestamp) {
    if !<P::Scheme as Scheme>::WAITS || env.clock() >= stamp || planted(Mutant::EarlyAnswer) {
        return;
    }
    // Others of this pass have pushed it beyond the sample. By the next it has mostly been reached,
    // but a clock that was set back may take long.
    env.pause().await;
    let ahead_ns = stamp.0.saturating_sub(env.clock().0);
    env.sleep(ahead_ns.min(MAX_OFFSET_NS)).await;
    if ahead_ns > MAX_OFFSET_NS {
        env.local(|node| node.base().counters.early_answers += 1);
    }
}

/// The commit stamp of a transaction that holds every write lock; zero if it needs none, `None` if
/// the oracle cannot be reached.
pub(crate) async fn stamp<P: Protocol, E: Env<P>>(env: &E, open: &Open<P::Scheme>) -> Option<Timestamp> {
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
pub(crate) fn follow_shard<P: Protocol, E: Env<P>>(env: &E, open: &mut Open<P::Scheme>) {
    if P::Scheme::WAITS {
        let latest = match planted(Mutant::SessionForgotten) {
            true => env.clock(),
            false => env.local(|node| node.base().scheme.stamp(&open.work.observed)),
        };
        P::Scheme::observe(&mut open.work.observed, latest);
    }
}

/// Waits for several answers at once and hands each on as it comes, until all have come or the hand
/// says that it is enough.
pub(crate) async fn as_answered<K: Copy, F: Future>(
    calls: Vec<(K, F)>,
    mut answered: impl FnMut(K, F::Output) -> bool,
) {
    let mut calls: Vec<(K, Pin<Box<F>>)> =
        calls.into_iter().map(|(key, call)| (key, Box::pin(call))).collect();
    poll_fn(move |context| {
        let mut enough = false;
        calls.retain_mut(|(key, call)| {
            if !enough && let Poll::Ready(answer) = call.as_mut().poll(context) {
                enough = answered(*key, answer);
                return false;
            }
            true
        });
        if enough || calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Executes what is left of a transaction directly on the coordinator's shard. If that is not
/// possible, nothing of it was done; if the procedure gives up, what it has read here is noted.
pub(crate) fn execute_rest<S: Scheme>(
    base: &mut Base<S>,
    open: &mut Open<S>,
    rest: Option<Rest<'_, S>>,
    track: bool,
) -> Result<(), Stop> {
    let before = open.work.save();
    match rest.map_or(Ok(()), |rest| rest(base, &mut open.work, open.holder.txn, track)) {
        Ok(()) => {
            base.step_read_here(open.holder.txn, &open.work);
            Ok(())
        }
        Err(Stop::Abort(abort)) => Err(Stop::Abort(abort)),
        Err(stop) => {
            open.work.restore(before);
            Err(stop)
        }
    }
}
