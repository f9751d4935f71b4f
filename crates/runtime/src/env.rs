//! The seam between protocols and the world.
//!
//! A participant is a synchronous function, [`Node::handle`]; a coordinator is an `async fn` over an
//! [`Env`]. Nothing else may touch a clock, a random number, a thread, a queue or a file, so the same protocol
//! code runs on threads today and elsewhere tomorrow.
//!
//! A *pass* of a shard: drain the inbox, sample the clock, run ready tasks, flush one batch per peer. The
//! clock that [`Env::clock`] gives is the sample of the present pass, taken after the inbox was drained: a
//! snapshot is never older than the arrival of the request that asked for it.
//!
//! Channels between shards are FIFO and exactly-once; between processes, until they are reset. A send never blocks;
//! work is bounded where it is admitted.

use std::future::Future;

use plimsoll_types::{ShardId, Ticket, Timestamp};

use crate::Disk;

/// What a participant does with a request.
#[derive(Debug)]
pub enum Handled<R> {
    /// Answers it.
    Reply(R),
    /// Has nothing to say: the request was sent one-way.
    Done,
    /// Parks it: the node has noted the ticket and will release it; then the request is handled again.
    Wait,
}

impl<R> Handled<R> {
    /// The same with another answer.
    pub fn map<T>(self, answer: impl FnOnce(R) -> T) -> Handled<T> {
        match self {
            Handled::Reply(reply) => Handled::Reply(answer(reply)),
            Handled::Done => Handled::Done,
            Handled::Wait => Handled::Wait,
        }
    }
}

/// The channel to a shard was reset: what became of the request is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown;

/// What a shard owns and runs.
pub trait Node: 'static {
    /// What other shards (and its own coordinators) ask of it.
    type Request: Send + 'static;
    /// What it answers.
    type Reply: Send + 'static;

    /// The node's life begins; it may start tasks of its own.
    fn begins<E: Env<Self>>(_env: &E)
    where
        Self: Sized,
    {
    }

    /// Handles one request to completion; never blocks. `ticket` names the request should it have to wait.
    /// When a request is handled again after a wait, it has the same ticket.
    fn handle(&mut self, from: ShardId, request: &mut Self::Request, ticket: Ticket) -> Handled<Self::Reply>;

    /// Tickets whose wait has ended, in order; the runtime drains them and handles the requests again.
    fn released(&mut self) -> &mut Vec<Ticket>;

    /// Once per pass, after the inbox was drained: `clock` is the new sample.
    fn pass(&mut self, clock: Timestamp);

    /// The channel to a shard of another process was connected, or it was reset: then the calls made over it have
    /// failed, what was sent one-way may not have arrived, and requests of that shard which wait here will be
    /// answered to nobody. A reset without a pause is told as both, down and up. Comes between two passes; the
    /// shard's next step is a pass. Shards of one process are connected without being told.
    ///
    /// `life` is the peer's present life if it is connected; of two lives the later has the larger number. What is sent
    /// until the next call reaches that life or none.
    fn connected(&mut self, _peer: ShardId, _life: Option<u64>) {}

    /// At the end of a pass: what the node itself has to tell other shards (or its own), one-way.
    fn outgoing(&mut self, send: &mut Vec<(ShardId, Self::Request)>);

    /// Nothing is left to do: the shard sleeps until a message or a timer comes. Its next step is a pass, but for
    /// [`Node::connected`].
    fn park(&mut self);

    /// When the node wants a pass at the latest, by the shard's clock, whether or not there is anything else to do.
    fn due(&self) -> Option<u64> {
        None
    }
}

/// Everything a coordinator may ask of the outside world.
pub trait Env<N: Node>: Clone + 'static {
    /// The shard this task runs on.
    fn shard(&self) -> ShardId;

    /// How many shards can be called, those of other processes included, and those of visitors, who may not be there.
    fn shards(&self) -> usize;

    /// The physical clock in Unix nanoseconds, sampled in this pass. Never falls.
    fn clock(&self) -> Timestamp;

    /// A random number.
    fn random(&self) -> u64;

    /// How many messages this shard has sent to others so far, replies included.
    fn messages(&self) -> u64;

    /// Works on the node of this shard, in one uninterrupted step. Must not be nested.
    fn local<R>(&self, work: impl FnOnce(&mut N) -> R) -> R;

    /// Asks a shard, this one included, and waits for the answer. The request is on its way when `call`
    /// returns; the future only collects the answer.
    fn call(
        &self,
        to: ShardId,
        request: N::Request,
    ) -> impl Future<Output = Result<N::Reply, Unknown>> + 'static;

    /// Tells a shard, this one included, something that has no answer.
    fn send(&self, to: ShardId, request: N::Request);

    /// The directory of this shard, which outlives it; `None` if nothing is kept.
    fn disk(&self) -> Option<Disk>;

    /// Waits so many nanoseconds.
    fn sleep(&self, nanoseconds: u64) -> impl Future<Output = ()> + 'static;

    /// Lets the inbox be drained and the other tasks run, then goes on.
    fn pause(&self) -> impl Future<Output = ()> + 'static;

    /// Starts a task on this shard.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);
}
