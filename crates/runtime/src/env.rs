//! The seam between protocols and the world.
//!
//! A participant is a synchronous function, [`Participant::handle`]; a coordinator is an `async fn`
//! over an [`Env`]. Protocol code reaches clocks, random numbers, threads, queues and files only
//! through these two, so the same code runs on threads and in a simulated world.
//!
//! A *pass* of a shard: drain the inbox, sample the clock, run ready tasks, flush one batch per
//! peer. [`Env::clock`] returns the sample of the present pass, which is taken after the inbox was
//! drained: so a snapshot is never older than the arrival of the request that asked for it.
//! [`Tasks::now`] samples it again.
//!
//! Channels between shards are FIFO and exactly-once; between processes, until they are reset. A
//! send never blocks; work is bounded where it is admitted.

use std::future::Future;
use std::pin::Pin;

use plimsoll_types::{ShardId, Ticket, Timestamp};

use crate::{Accept, Appended, Detached, Disk, Pause, Pending, ShardEnv, Sleep, Stable, Stream};

/// What a participant does with a request.
#[derive(Debug)]
pub enum Handled<R> {
    /// Answers the request.
    Reply(R),
    /// Sends no answer: the request was one-way.
    Done,
    /// Parks the request. The participant has noted the ticket and will release it; then the
    /// request is handled again.
    Wait,
}

impl<R> Handled<R> {
    /// The same, with the reply converted.
    pub fn map<T>(self, answer: impl FnOnce(R) -> T) -> Handled<T> {
        match self {
            Handled::Reply(reply) => Handled::Reply(answer(reply)),
            Handled::Done => Handled::Done,
            Handled::Wait => Handled::Wait,
        }
    }
}

/// A shard of another process that has named a timestamp too far ahead of this shard's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspect {
    /// The shard.
    pub from: ShardId,
    /// How far ahead the timestamp was, in nanoseconds.
    pub ahead_ns: u64,
}

/// How much a participant has appended to its log, and how much of it is on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Logged {
    /// Entries so far, with the one that the present pass will make at its end.
    pub head: u64,
    /// Entries without that one: they can be written.
    pub sealed: u64,
    /// Entries that are written.
    pub written: u64,
    /// Entries that nothing has to wait for: those that a crash cannot take away any more, or all
    /// of them if it may.
    pub stable: u64,
}

impl Logged {
    /// Whether nothing has to wait.
    pub fn is_stable(self) -> bool {
        self.head <= self.stable
    }
}

/// The channel to a shard was reset, so the outcome of the request is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown;

/// What the shards of a database say to each other. This alone is what a coordinator has to know of
/// participants.
pub trait Messages: 'static {
    /// What other shards (and the shard's own coordinators) ask of a participant.
    type Request: Send + 'static;
    /// What it answers.
    type Reply: Send + 'static;
}

/// The participant: what a shard owns and runs.
///
/// A shard's executor is generic over it. An implementation for a type without parameters is
/// compiled where it is written, and not again wherever a shard is made.
pub trait Participant: Messages + Sized {
    /// The participant's life begins; it may start tasks of its own.
    fn begins(_env: &ShardEnv<Self>) {}

    /// Handles one request to completion; never blocks. `ticket` names the request in case it has
    /// to wait. A request that is handled again after a wait has the same ticket.
    fn handle(&mut self, from: ShardId, request: &mut Self::Request, ticket: Ticket) -> Handled<Self::Reply>;

    /// Tickets whose wait has ended, in order. The runtime drains them and handles the requests
    /// again.
    fn released(&mut self) -> &mut Vec<Ticket>;

    /// A batch of messages has arrived from a shard and will be handled next. The last sample of
    /// the clock may be as old as the shard has slept; `clock` reads it.
    fn arrives(&mut self, _from: ShardId, _clock: impl FnOnce() -> Timestamp) {}

    /// The last shard of another process whose timestamp was refused since this was last asked.
    fn suspect(&mut self) -> Option<Suspect> {
        None
    }

    /// Called once per pass, after the inbox was drained, with the new sample of the clock.
    fn pass(&mut self, clock: Timestamp);

    /// The channel to a shard of another process was connected (`Some`) or reset (`None`). After a
    /// reset the calls made over it have failed, one-way messages may not have arrived, and
    /// requests of that shard that wait here will not be answered. A reset that is followed at once
    /// by a new channel is told as both, down and up. This is called between two passes, and the
    /// shard's next step is a pass. Shards of the same process are connected from the start,
    /// without this call.
    ///
    /// `life` is the peer's life; a later life has a larger number. What is sent until the next
    /// call of this function reaches that life or none.
    fn connected(&mut self, _peer: ShardId, _life: Option<u64>) {}

    /// Called at the end of a pass: adds the participant's own one-way messages, to other shards or
    /// to itself.
    fn outgoing(&mut self, send: &mut Vec<(ShardId, Self::Request)>);

    /// The state of the participant's log at the end of a pass. What the pass sends to other shards
    /// may depend on everything that was appended so far, so it leaves when all of that is stable.
    fn logged(&mut self) -> Logged {
        Logged::default()
    }

    /// Called before the shard sleeps until a message or a timer comes. Its next step is a pass, or
    /// [`Participant::connected`].
    fn park(&mut self);

    /// When the participant needs a pass at the latest, by the shard's clock, even if there is
    /// nothing else to do.
    fn due(&mut self) -> Option<u64> {
        None
    }

    /// Whether this life of the participant is over: its process shall start anew, as after a
    /// crash.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// A task on a shard.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What a task asks of its shard whatever participant the shard has.
pub trait Tasks: 'static {
    /// The shard this task runs on.
    fn shard(&self) -> ShardId;

    /// How many shards can be called, including those of other processes, and of clients even if
    /// they are not connected.
    fn shards(&self) -> usize;

    /// The physical clock in Unix nanoseconds, sampled in this pass. Never falls.
    fn clock(&self) -> Timestamp;

    /// The physical clock in Unix nanoseconds, sampled now; [`Tasks::clock`] is this from now on.
    /// For what would otherwise wait for the next pass. In a simulated world a pass takes no time.
    fn now(&self) -> Timestamp {
        self.clock()
    }

    /// A random number from the shard's generator.
    fn random(&self) -> u64;

    /// How many messages this shard has sent to others so far, replies included.
    fn messages(&self) -> u64;

    /// What has begun on this shard and not ended.
    fn pending(&self) -> Pending;

    /// Waits for this many nanoseconds.
    fn sleep(&self, nanoseconds: u64) -> Sleep;

    /// Waits until everything that the participant has appended to its log so far is stable.
    fn stable(&self) -> Stable;

    /// Waits until the participant has appended something to its log that is not stable. One task
    /// of a shard does: the one that writes the log.
    fn appended(&self) -> Appended;

    /// Lets the inbox be drained and other tasks run, then goes on.
    fn pause(&self) -> Pause;

    /// Lets everything go first that is ready or arrives, and goes on when the shard has nothing
    /// else to do, or has had for many passes. For long work that holds nothing others wait for.
    fn give_way(&self) -> Pause;

    /// Waits for a connection that was dealt to this shard; one task of a shard does. For ever, if
    /// nothing listens for it.
    fn accept(&self) -> Accept;

    /// Takes a stream of another shard of this process.
    fn attach(&self, detached: Detached) -> Stream;

    /// Starts a task on this shard.
    fn start(&self, task: Task);
}

/// Everything a coordinator may ask of the outside world.
pub trait Env<N: Messages>: Tasks + Clone {
    /// Works on the shard's participant, in one uninterrupted step. Must not be nested.
    fn local<R>(&self, work: impl FnOnce(&mut N) -> R) -> R;

    /// Sends a request to a shard, this one included, and waits for the answer. The request is on
    /// its way when `call` returns; the future only collects the answer.
    fn call(
        &self,
        to: ShardId,
        request: N::Request,
    ) -> impl Future<Output = Result<N::Reply, Unknown>> + 'static;

    /// Sends a one-way request to a shard, this one included.
    fn send(&self, to: ShardId, request: N::Request);

    /// Starts a task on a shard of this process. The task is made there, so it need not be `Send`;
    /// what it is made of travels there. Like a message, it leaves when the participant's log is
    /// stable.
    fn spawn_on<F>(&self, shard: ShardId, task: impl FnOnce(Self) -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static;

    /// The directory of this shard, which outlives it; `None` if nothing is kept.
    fn disk(&self) -> Option<Disk>;

    /// Starts a task on this shard.
    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.start(Box::pin(task));
    }
}
