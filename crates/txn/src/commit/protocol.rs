//! The seam between protocols and the code that runs transactions: what a protocol is, and the
//! state of a transaction that it coordinates ([`ActiveTransaction`]).
//!
//! A protocol handles the messages of its paper ([`Protocol::handle_own`]). This module handles the
//! other messages of its [`Envelope`], connected channels and the end of a pass, once for all
//! protocols.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use plimsoll_runtime::{Env, Handled, Messages, Unknown};
use plimsoll_store::Holder;
use plimsoll_types::wire::{Malformed, Wire};
use plimsoll_types::{Abort, ShardId, Ticket, Timestamp, TxnId};

use crate::attempt::{Attempt, ProtocolOptions, Stop};
use crate::ballot::{self, Votes};
use crate::base::Base;
use crate::envelope::{Answer, Envelope};
use crate::executable::{self, Executable};
use crate::locks::Locks;
use crate::messages::{Common, CommonReply};
use crate::parts::FetchedBatches;
use crate::procedure::Reads;
use crate::timestamp::Scheme;
use crate::trace::{About, What};
use crate::work::Footprint;

/// A concurrency-control protocol with its timestamp scheme: the participant that lives on a shard,
/// and the coordinator's steps against the participants.
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
    /// The answers to them.
    type OwnReply: Wire + Send + 'static;
    /// The protocol's name on the command line.
    const NAME: &'static str;
    /// Whether a transaction that finds a record locked may wait for the lock instead of aborting.
    const LOCKS: bool;
    /// Whether the protocol orders transactions by a dependency graph.
    const GRAPH: bool = false;

    /// The participant of a shard.
    fn new(base: Base<Self::Scheme>, options: ProtocolOptions) -> Self;

    /// The shard's data, which the participant is built on.
    fn base(&mut self) -> &mut Base<Self::Scheme>;

    /// How many transactions the participant remembers, besides locks and votes: zero once all are
    /// over.
    fn remembered(&self) -> usize {
        0
    }

    /// The participant's life begins; it may start tasks of its own.
    fn start_tasks<E: Env<Self>>(_env: &E) {}

    /// The pass ends: the base's journal takes what has changed, with the locks that transactions
    /// hold here. A protocol that gives no votes has none.
    fn make_entry(&mut self) {
        self.base().make_entry(|_| None);
    }

    /// After a restart: a transaction whose outcome is not known holds these locks.
    fn relock(&mut self, _txn: TxnId, _locks: Locks) {}

    /// While the log is read: takes a record of the protocol's own.
    fn replay_own(&mut self, _record: &[u8]) -> Result<(), Malformed> {
        Err(Malformed("a record of another protocol"))
    }

    /// While the log is read: forgets what was read, because it is read again.
    fn forget_read(&mut self) {
        self.base().forget_read();
    }

    /// The log was read to its end.
    fn recovered(&mut self) {}

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

    /// Handles a request about votes. A protocol without votes gives no answer; only a process
    /// outside the database would send one.
    fn handle_vote(&mut self, _from: ShardId, _request: &mut ballot::Request) -> Handled<ballot::Reply> {
        Handled::Done
    }

    /// Once per pass, after the inbox was drained, with the new sample of the clock.
    fn tick(&mut self, clock: Timestamp) {
        self.base().pass(clock);
    }

    /// The channel to a shard of another process was connected, or reset. The base already knows.
    fn reconnected(&mut self, _peer: ShardId, _up: bool) {}

    /// At the end of a pass: messages of the protocol's own to other shards.
    fn outgoing_own(&mut self, _tell: &mut dyn FnMut(ShardId, Self::Own)) {}

    /// What a request of its own is about, for the trace.
    fn about(own: &Self::Own) -> About;

    /// An answer of its own in a word or two, for the trace.
    fn answer(own: &Self::OwnReply) -> &'static str;

    /// Runs one attempt of a procedure in one step, if its data is all on this shard and no lock is
    /// in the way. Not for procedures that read at a snapshot.
    fn at_once(
        &mut self,
        attempt: Attempt,
        procedure: &mut dyn Executable<Self::Scheme>,
        work: &mut Footprint<Self::Scheme>,
    ) -> Result<(), Stop> {
        executable::at_once(self.base(), attempt, procedure, work)
    }

    /// Runs one attempt of a procedure that could not run in one step. Not for procedures that read
    /// at a snapshot.
    fn run<E: Env<Self>>(
        env: &E,
        attempt: Attempt,
        procedure: &mut dyn Executable<Self::Scheme>,
        work: &mut Footprint<Self::Scheme>,
    ) -> impl Future<Output = Result<(), Abort>>;
}

/// A protocol that runs transactions whose operations come one by one. Procedures run over the same
/// operations (`execute::run`).
pub trait Interactive: Protocol {
    /// Execution phase: reads one batch per shard and appends the answers to the transaction's
    /// parts.
    fn read<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<Self::Scheme>,
        batches: Vec<(ShardId, Reads)>,
    ) -> impl Future<Output = Result<(), Abort>>;

    /// An interactive transaction has buffered a write: locks it if the protocol locks early.
    fn wrote<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<Self::Scheme>,
    ) -> impl Future<Output = Result<(), Abort>>;

    /// Commits, and notes the result in the transaction's work. `rest` executes the remaining
    /// pieces directly on the coordinator's shard, after everything else is locked.
    /// [`Stop::Conflict`] and [`Stop::Elsewhere`] mean that this was not possible: none of `rest`
    /// was done, and the transaction is still open. [`Stop::Abort`] means that it has been aborted.
    fn commit<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<Self::Scheme>,
        rest: Option<Rest<'_, Self::Scheme>>,
    ) -> impl Future<Output = Result<(), Stop>>;

    /// Aborts, and returns the reason to report: an abort by the procedure itself counts only if
    /// its reads were consistent.
    fn abort<E: Env<Self>>(
        env: &E,
        open: &mut ActiveTransaction<Self::Scheme>,
        why: Abort,
    ) -> impl Future<Output = Abort>;
}

/// The pieces of a transaction that execute directly on the coordinator's store; called at most
/// once. Its arguments are the transaction's id, and whether to note reads because they will be
/// locked or validated later.
pub type Rest<'a, S> = &'a mut dyn FnMut(&mut Base<S>, &mut Footprint<S>, TxnId, bool) -> Result<(), Stop>;

/// A transaction that is being coordinated.
#[derive(Debug)]
pub struct ActiveTransaction<S: Scheme> {
    /// The attempt and its age.
    pub holder: Holder,
    /// Its reads and writes so far.
    pub work: Footprint<S>,
    /// The answers to its reads so far, from other shards or from this one.
    pub(crate) parts: FetchedBatches<S>,
    /// The snapshot at which an interactive transaction reads until it commits.
    pub(crate) snapshot: Option<S::Snapshot>,
    /// Shards where it may hold locks.
    pub(crate) touched: Vec<ShardId>,
    /// Shards of other processes that it has sent requests to, each with its life at the first of
    /// them.
    met: Vec<(ShardId, u64)>,
    /// Another task will report when the transaction is settled.
    pub(crate) settling: bool,
}

impl<S: Scheme> ActiveTransaction<S> {
    /// A new attempt.
    pub(crate) fn new(holder: Holder, work: Footprint<S>) -> ActiveTransaction<S> {
        ActiveTransaction {
            holder,
            work,
            parts: FetchedBatches::default(),
            snapshot: None,
            touched: Vec::new(),
            met: Vec::new(),
            settling: false,
        }
    }

    /// The transaction has ended: committed or aborted.
    pub(crate) fn end<P: Protocol<Scheme = S>, E: Env<P>>(&self, env: &E) {
        if !self.settling {
            env.local(|node| node.base().settled(self.holder.txn));
        }
    }

    /// Continues as another attempt with the same reads and writes. The former attempt is given up;
    /// the task that tells the voters so reports when it is settled.
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
            // The former attempt may have linked the key; then the new version of its cover is in
            // the entry of the read.
            write.expected = write.expected.filter(|read| read.is_record());
        }
        self.settling = false;
    }

    pub(crate) fn touch(&mut self, shard: ShardId) {
        if !self.touched.contains(&shard) {
            self.touched.push(shard);
        }
    }

    /// Call this before sending requests to these shards. Returns false if a shard that the
    /// transaction has used before is [`ActiveTransaction::lost`].
    pub(crate) fn meet<P: Protocol<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        shards: impl IntoIterator<Item = ShardId>,
    ) -> bool {
        env.local(|node| {
            let votes = &node.base().votes;
            self.met_in(votes, shards.into_iter().map(|shard| (shard, votes.life(shard))));
            !self.lost(votes)
        })
    }

    /// Notes that requests were sent to these shards when they had these lives.
    pub(crate) fn met_in(&mut self, votes: &Votes, lives: impl IntoIterator<Item = (ShardId, u64)>) {
        for (shard, life) in lives {
            if votes.elsewhere(shard) && !self.met.iter().any(|(met, _)| *met == shard) {
                self.met.push((shard, life));
            }
        }
    }

    /// Whether a shard that the transaction has used has lost everything since. Its reads there
    /// name rows by place; in another life of the shard the rows have other places, if they exist,
    /// so these reads must not be sent to it.
    pub(crate) fn lost(&self, votes: &Votes) -> bool {
        self.met.iter().any(|&(shard, life)| votes.life(shard) != life)
    }

    /// The [`Votes::lineage`] of a shard when the transaction first used it; its present one if it
    /// has not.
    pub(crate) fn lineage(&self, votes: &Votes, shard: ShardId) -> u64 {
        let met = self.met.iter().find(|(met, _)| *met == shard && !votes.outlives());
        met.map_or_else(|| votes.lineage(shard), |&(_, life)| life)
    }

    /// The other shard that has all its reads and writes, if there is one.
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

/// Waits for several answers at once and passes each to `answered` as it arrives, until all have
/// arrived or `answered` returns true.
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

/// Executes the remaining pieces of a transaction directly on the coordinator's shard. If that is
/// not possible, nothing of them is kept. If the procedure aborts, its reads here are kept.
pub(crate) fn execute_rest<S: Scheme>(
    base: &mut Base<S>,
    open: &mut ActiveTransaction<S>,
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

/// Sends a request of the protocol's own to a shard; the future is the answer.
pub(crate) fn ask<'e, P: Protocol, E: Env<P>>(
    env: &'e E,
    to: ShardId,
    own: P::Own,
) -> impl Future<Output = Result<P::OwnReply, Unknown>> + 'static + use<'e, P, E> {
    let call = env.call(to, Envelope::Own(own));
    async move { call.await.map(Answer::own) }
}

/// Sends a request of the protocol's own to a shard, without an answer.
pub(crate) fn tell<P: Protocol, E: Env<P>>(env: &E, to: ShardId, own: P::Own) {
    env.send(to, Envelope::Own(own));
}

/// Handles a request.
pub(crate) fn handle<P: Protocol>(
    shard: &mut P,
    from: ShardId,
    request: &mut P::Request,
    ticket: Ticket,
) -> Handled<P::Reply> {
    // Shards come back together, so each says how far its log goes while the others wait for that.
    // Messages of the scheme wait elsewhere: they are dropped if their channel is reset.
    let may_wait =
        |request: &P::Request| !matches!(request, Envelope::Common(Common::Standing(_) | Common::Scheme(_)));
    if let Some(journal) = &mut shard.base().journal {
        if journal.is_obsolete(ticket) {
            return Handled::Done;
        }
        if may_wait(request) && journal.holds(from, ticket) {
            return Handled::Wait;
        }
    }
    match request {
        Envelope::Common(common) => shard.handle_common(from, common, ticket).map(Answer::Common),
        Envelope::Vote(vote) => shard.handle_vote(from, vote).map(Answer::Vote),
        Envelope::Own(own) => shard.handle_own(from, own, ticket).map(Answer::Own),
    }
}

/// While the log or an image is read: the base takes some records, and the protocol its own among
/// them.
pub(crate) fn replay<P: Protocol>(
    shard: &mut P,
    records: impl FnOnce(&mut Base<P::Scheme>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    records(shard.base())?;
    shard.base().take_own().iter().try_for_each(|record| shard.replay_own(record))
}

/// The channel to a shard was connected, in this life, or was reset (`None`).
pub(crate) fn connected<P: Protocol>(shard: &mut P, peer: ShardId, life: Option<u64>) {
    shard.base().connected(peer, life);
    shard.reconnected(peer, life.is_some());
}

/// Collects the shard's own messages at the end of a pass.
pub(crate) fn outgoing<P: Protocol>(shard: &mut P, send: &mut Vec<(ShardId, P::Request)>) {
    shard.outgoing_own(&mut |to, own| send.push((to, Envelope::Own(own))));
    let base = shard.base();
    send.extend(base.votes.outgoing().map(|(to, request)| (to, Envelope::Vote(request))));
    base.outgoing(|to, common| send.push((to, Envelope::Common(common))));
    if base.journal.is_some() {
        shard.make_entry();
    }
}

/// What a request is about, for the trace.
pub fn about<P: Protocol>(request: &P::Request) -> About {
    match request {
        Envelope::Common(common) => common.about(),
        Envelope::Vote(vote) => vote.about(),
        Envelope::Own(own) => P::about(own),
    }
}

/// An answer in a word or two, for the trace.
pub fn answer<P: Protocol>(reply: &P::Reply) -> &'static str {
    match reply {
        Answer::Common(reply) => reply.answer(),
        Answer::Vote(reply) => reply.answer(),
        Answer::Own(own) => P::answer(own),
    }
}
