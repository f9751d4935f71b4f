//! What one shard does, independent of how messages travel and what the clock is.
//!
//! A shard is a slab executor around a participant: tasks, calls it has made, requests that wait at
//! the participant, timers, one outbox per peer, operations for its disk, and sockets. [`ShardEnv`]
//! holds all of that, and is what tasks use as their [`Env`]. A shard is driven by a thread or by
//! the simulation. Both drive the same object and differ only in the [`Outside`] that they hand to
//! [`ShardEnv::pass`]: where batches come from, what the clock says, where batches go. So a
//! simulated execution runs exactly the code that production runs, and protocols, which are generic
//! over `Env`, are compiled once.
//!
//! Tasks are plain futures, polled with a waker that does nothing: the code that completes
//! something knows the number of the task that waits for it, and puts that number back into the
//! ready queue. Nothing here is atomic.
//!
//! A task that has given way is in a queue of its own, and is polled in a pass that has found
//! nothing else to do, or after [`PATIENCE`] others. Shards that share a thread do not look at each
//! other for that: one that has only such a task takes its turn as one that has work.
//!
//! What a pass sends waits in the shard until everything that the participant had appended to its
//! log by the end of the pass is stable ([`Participant::logged`]): no other shard, and no client,
//! ever knows of something that a crash could take back. Without a log nothing waits.
//!
//! When a channel is reset ([`ShardEnv::reset`]), the calls made over it fail, and replies to the
//! other side's calls are thrown away. Call numbers are used again, so the driver must not deliver
//! anything from before a reset after it; then every reply that arrives finds its call.
//!
//! A shard of the same process keeps the rules of calls, or has a bug, which ends the process. A
//! shard of another process may have any code: what it sends against the rules is ignored, and the
//! shard is reported as an offender ([`ShardEnv::offender`]), so that the driver closes its
//! channel.

mod env;
mod sockets;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem::take;
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Waker};

use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, Slab, Ticket, Timestamp};

use crate::disk::{Completed, DiskError, Outcome, Submitted};
use crate::real::Clock;
use crate::stream::Detached;
use crate::{Env, Handled, Logged, Messages, Participant, Suspect, Task, Tasks, Unknown};
pub(crate) use env::Executor;
pub use env::{Appended, Pause, Sleep, Stable};
pub(crate) use sockets::{Attempt, Readiness, Sockets};

/// Ready tasks that run between two looks into the inbox, at most.
pub const TASKS_PER_PASS: usize = 8;

/// Passes that find something else to do before a task that has given way runs all the same, so
/// that it goes on, slowly, on a shard that is never idle. If there are several such tasks, as many
/// times fewer.
pub(crate) const PATIENCE: u32 = 16;

/// Makes a task on the shard that will run it.
pub(crate) type Start<N> = Box<dyn FnOnce(&ShardEnv<N>) -> Task + Send>;

/// A message between shards.
pub(crate) enum Message<N: Participant> {
    /// A request; the reply goes to the caller's pending call of this number.
    Call { call: u32, request: N::Request },
    /// A request without reply.
    Tell { request: N::Request },
    /// The answer to the receiver's pending call.
    Reply { call: u32, reply: N::Reply },
    /// A task to start: from outside the runtime, or from another shard of the process.
    Start(Start<N>),
    /// The result of an operation of the receiver on its disk. Boxed, since it would make every
    /// message longer.
    Disk(Box<Completed>),
}

impl<N: Participant> Message<N> {
    /// Brings a connection to the shard that it was dealt to. That is rare, so it is a task.
    pub(crate) fn connection(detached: Detached) -> Message<N> {
        Message::Start(Box::new(move |env| {
            env.stream_arrived(detached);
            Box::pin(std::future::ready(()))
        }))
    }
}

plimsoll_types::wire!(<N: Participant<Request: Wire, Reply: Wire>> enum Message<N> {
    Call { call, request } = 1, Tell { request } = 2, Reply { call, reply } = 3;
    Self::Start(_) | Self::Disk(_)
});

/// The messages that one pass of a shard sends to one other shard, in order.
pub(crate) struct Batch<N: Participant> {
    pub(crate) from: ShardId,
    pub(crate) messages: Vec<Message<N>>,
}

/// What a shard needs from its driver during a pass.
pub(crate) trait Outside<N: Participant> {
    /// The next batch of the inbox.
    fn arrived(&mut self) -> Option<Batch<N>>;

    /// The physical clock in Unix nanoseconds. It may fall; the shard's own does not.
    fn clock(&mut self) -> Timestamp;

    /// Takes a batch for another shard.
    fn send(&mut self, to: ShardId, batch: Batch<N>);

    /// Takes operations for the shard's disk, in order. Their results arrive as messages from the
    /// shard to itself.
    fn submit(&mut self, operations: Vec<Submitted>);
}

/// A shard's clock, as the shard is given it when it starts.
#[derive(Clone, Copy)]
pub(crate) enum ShardClock {
    /// It goes on during a pass.
    Running(Clock),
    /// It reads this at the start, and in each pass what [`Outside::clock`] says: a simulated pass
    /// takes no time.
    Stepped(Timestamp),
}

impl ShardClock {
    fn now(self) -> Timestamp {
        match self {
            ShardClock::Running(clock) => clock.now(),
            ShardClock::Stepped(start) => start,
        }
    }
}

/// What a pass has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassSummary {
    /// Messages taken out of the inbox.
    pub(crate) messages: usize,
    /// Tasks polled.
    pub(crate) polls: usize,
    /// How many of these had given way.
    pub(crate) patient: usize,
    /// Requests of the shard's own tasks that the participant has handled, and waiting requests of
    /// any shard that it has handled again.
    pub(crate) handled: usize,
}

impl PassSummary {
    /// Whether there was nothing to do.
    #[inline]
    pub(crate) fn idle(self) -> bool {
        self.messages == 0 && self.polls == 0
    }

    /// Whether there was nothing to do but what gives way to everything else.
    #[inline]
    pub(crate) fn has_time(self) -> bool {
        self.messages == 0 && self.polls == self.patient
    }
}

/// What has begun on a shard and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Tasks that are not done.
    pub tasks: usize,
    /// Calls whose answers have not come or are not collected.
    pub calls: usize,
    /// Requests that wait at the participant.
    pub requests: usize,
}

/// The number of a task of a shard. When the task is done, another one gets it.
pub(crate) type TaskId = u32;

/// A call this shard has made and not yet collected.
struct Call<R> {
    to: ShardId,
    /// The task that waits for the reply; `None` if the call was given up.
    task: Option<TaskId>,
    reply: Option<Result<R, Unknown>>,
}

/// An operation on the disk that is under way or not yet collected.
struct Transfer {
    /// The task that waits for the answer; `None` if the operation was given up.
    task: Option<TaskId>,
    result: Option<Result<Outcome, DiskError>>,
}

/// A request that waits at this shard's participant.
struct Parked<N: Messages> {
    from: ShardId,
    /// The caller's pending call; `None` for a one-way request, or if the channel was reset since.
    call: Option<u32>,
    request: N::Request,
}

struct Slot {
    /// `None` while the task is being polled.
    task: Option<Task>,
    /// Whether it is in the ready queue.
    ready: bool,
    /// Whether it has given way and its turn has not come. What wakes it meanwhile makes it ready
    /// as well.
    patient: bool,
}

struct Core<N: Participant> {
    me: ShardId,
    shards: usize,
    /// The shards of this process.
    own: Range<usize>,
    /// Shards of other processes that have broken a rule of calls, and the rule.
    offenders: RefCell<Vec<(ShardId, &'static str)>>,
    node: RefCell<N>,
    tasks: RefCell<Slab<Slot>>,
    ready: RefCell<VecDeque<TaskId>>,
    patient: RefCell<VecDeque<TaskId>>,
    /// Passes that had something else to do since a patient task has run.
    passed_over: Cell<u32>,
    current: Cell<TaskId>,
    calls: RefCell<Slab<Call<N::Reply>>>,
    parked: RefCell<Slab<Option<Parked<N>>>>,
    outboxes: RefCell<Vec<Vec<Message<N>>>>,
    /// Peers whose outboxes are not empty. There may be thousands of other peers.
    receivers: RefCell<Vec<ShardId>>,
    unsent: Cell<u64>,
    sent: Cell<u64>,
    /// Batches that wait for the log, in order, each with the position that must be stable first.
    held: RefCell<VecDeque<(u64, ShardId, Batch<N>)>>,
    /// Tasks that wait for the log, by position.
    awaiting: RefCell<BinaryHeap<Reverse<(u64, TaskId)>>>,
    /// The task that writes the log, if it waits for entries.
    writer: Cell<Option<TaskId>>,
    outgoing: RefCell<Vec<(ShardId, N::Request)>>,
    timers: RefCell<BinaryHeap<Reverse<(u64, TaskId)>>>,
    /// Its sample in the present pass.
    clock: Cell<Timestamp>,
    shard_clock: ShardClock,
    random: Cell<u64>,
    has_disk: bool,
    transfers: RefCell<Slab<Transfer>>,
    submitted: RefCell<Vec<Submitted>>,
    sockets: RefCell<Sockets>,
    /// See [`PassSummary::handled`]; of the present pass.
    handled: Cell<usize>,
}

/// A shard, and the environment of the tasks that run on it.
pub struct ShardEnv<N: Participant> {
    core: Rc<Core<N>>,
}

impl<N: Participant> Clone for ShardEnv<N> {
    fn clone(&self) -> Self {
        ShardEnv { core: self.core.clone() }
    }
}

/// For the driver of a shard.
impl<N: Participant> ShardEnv<N> {
    /// Shard `me` of `shards`, of which those in `own` are in its process, with nothing to do yet.
    /// `random` is the state of its random numbers.
    pub(crate) fn new(
        me: ShardId,
        shards: usize,
        own: Range<usize>,
        node: N,
        clock: ShardClock,
        random: u64,
        has_disk: bool,
    ) -> ShardEnv<N> {
        let core = Rc::new(Core {
            me,
            shards,
            own,
            offenders: RefCell::default(),
            node: RefCell::new(node),
            tasks: RefCell::default(),
            ready: RefCell::default(),
            patient: RefCell::default(),
            passed_over: Cell::new(0),
            current: Cell::new(0),
            calls: RefCell::default(),
            parked: RefCell::default(),
            outboxes: RefCell::new((0..shards).map(|_| Vec::new()).collect()),
            receivers: RefCell::default(),
            unsent: Cell::new(0),
            sent: Cell::new(0),
            held: RefCell::default(),
            awaiting: RefCell::default(),
            writer: Cell::new(None),
            outgoing: RefCell::default(),
            timers: RefCell::default(),
            clock: Cell::new(clock.now()),
            shard_clock: clock,
            random: Cell::new(random),
            has_disk,
            transfers: RefCell::default(),
            submitted: RefCell::default(),
            sockets: RefCell::default(),
            handled: Cell::new(0),
        });
        let env = ShardEnv { core };
        N::begins(&env);
        env
    }

    /// One pass.
    pub(crate) fn pass(&self, outside: &mut impl Outside<N>) -> PassSummary {
        let core = &*self.core;
        let mut worked = PassSummary { messages: 0, polls: 0, patient: 0, handled: 0 };
        // Drain the inbox.
        while let Some(batch) = outside.arrived() {
            worked.messages += batch.messages.len();
            core.node.borrow_mut().arrives(batch.from, || outside.clock());
            for message in batch.messages {
                self.receive(batch.from, message);
            }
            self.redo_released();
        }
        // Sample the clock.
        core.clock.set(core.clock.get().join(outside.clock()));
        core.node.borrow_mut().pass(core.clock.get());
        self.fire_timers();
        // Run ready tasks.
        for _ in 0..TASKS_PER_PASS {
            let Some(id) = core.ready.borrow_mut().pop_front() else { break };
            worked.polls += 1;
            self.poll(id);
            self.redo_released();
        }
        if let Some(id) = self.patient(worked.idle()) {
            worked.polls += 1;
            worked.patient += 1;
            self.poll(id);
            self.redo_released();
        }
        self.send_outgoing();
        self.flush(outside);
        worked.handled = core.handled.take();
        worked
    }

    /// Whether tasks are ready to run.
    pub(crate) fn is_ready(&self) -> bool {
        !self.core.ready.borrow().is_empty() || !self.core.patient.borrow().is_empty()
    }

    /// When the next timer is due, or the participant needs a pass, by the shard's clock.
    pub(crate) fn due(&self) -> Option<u64> {
        let timer = self.core.timers.borrow().peek().map(|&Reverse((due, _))| due);
        timer.into_iter().chain(self.core.node.borrow_mut().due()).min()
    }

    /// Tells the participant that the shard is about to sleep.
    pub(crate) fn park(&self) {
        self.core.node.borrow_mut().park();
    }

    /// The channel to a peer was reset: calls made over it fail with an unknown outcome, and
    /// requests of the peer will not be answered. The driver has to drop what had arrived but was
    /// not handled, and what it took from the outboxes.
    pub(crate) fn reset(&self, peer: ShardId) {
        let mut failed = Vec::new();
        let mut calls = self.core.calls.borrow_mut();
        for (number, call) in calls.iter_mut().filter(|(_, call)| call.to == peer && call.reply.is_none()) {
            failed.push((number, call.task));
        }
        for (number, task) in failed {
            match task {
                Some(task) => {
                    calls.get_mut(number).expect("a failed call is pending").reply = Some(Err(Unknown));
                    self.wake(task);
                }
                None => drop(calls.remove(number)),
            }
        }
        for (_, parked) in self.core.parked.borrow_mut().iter_mut() {
            if let Some(parked) = parked.as_mut().filter(|parked| parked.from == peer) {
                parked.call = None;
            }
        }
        self.core.held.borrow_mut().retain(|(_, to, _)| *to != peer);
        // The peer may never come back.
        self.core.outboxes.borrow_mut()[peer.index()].shrink_to_fit();
    }

    /// Tells the participant that a peer of another process was connected, or that the channel to
    /// it was reset.
    pub(crate) fn connected(&self, peer: ShardId, life: Option<u64>) {
        self.core.node.borrow_mut().connected(peer, life);
    }

    /// A shard of another process that has broken a rule, and the rule.
    pub(crate) fn offender(&self) -> Option<(ShardId, &'static str)> {
        self.core.offenders.borrow_mut().pop()
    }

    /// The last shard of another process whose timestamp the participant has refused since this was
    /// last asked.
    pub(crate) fn suspect(&self) -> Option<Suspect> {
        self.core.node.borrow_mut().suspect()
    }

    /// See [`Participant::is_over`].
    pub(crate) fn is_over(&self) -> bool {
        self.core.node.borrow_mut().is_over()
    }

    /// How many streams there are.
    pub(crate) fn streams(&self) -> usize {
        self.core.sockets.borrow().len()
    }

    /// A socket has changed.
    pub(crate) fn socket_ready(&self, number: u32, readiness: Readiness) {
        let tasks = self.core.sockets.borrow_mut().ready(number, readiness);
        tasks.into_iter().flatten().for_each(|task| self.wake(task));
    }

    /// Drops all tasks. Tasks hold the environment and the environment holds tasks: this breaks the
    /// cycle. What a task holds may start another when it is dropped, which is then dropped as
    /// well. Connections that no task has accepted are closed.
    pub(crate) fn end(&self) {
        loop {
            let tasks = self.core.tasks.take();
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        drop(self.core.sockets.take());
    }
}

impl<N: Participant> ShardEnv<N> {
    fn send_outgoing(&self) {
        let mut outgoing = self.core.outgoing.take();
        self.core.node.borrow_mut().outgoing(&mut outgoing);
        for (to, request) in outgoing.drain(..) {
            self.send(to, request);
        }
        self.core.outgoing.replace(outgoing);
        self.redo_released();
    }

    fn receive(&self, from: ShardId, message: Message<N>) {
        match message {
            Message::Call { call, request } => self.handle(from, Some(call), request),
            Message::Tell { request } => self.handle(from, None, request),
            Message::Reply { call, reply } => self.complete(from, call, reply),
            Message::Start(start) => self.start(start(self)),
            Message::Disk(completed) => self.transferred(*completed),
        }
    }

    /// Gives a request to the participant, and parks it if it has to wait.
    fn handle(&self, from: ShardId, call: Option<u32>, request: N::Request) {
        let ticket = self.core.parked.borrow_mut().insert(None);
        self.core.handled.set(self.core.handled.get() + usize::from(from == self.core.me));
        self.attempt(ticket, Parked { from, call, request });
    }

    fn attempt(&self, ticket: Ticket, mut parked: Parked<N>) {
        let handled = self.core.node.borrow_mut().handle(parked.from, &mut parked.request, ticket);
        if let Handled::Wait = handled {
            let mut slots = self.core.parked.borrow_mut();
            *slots.get_mut(ticket).expect("a handled request has a ticket") = Some(parked);
            return;
        }
        self.core.parked.borrow_mut().remove(ticket);
        match (handled, parked.call) {
            (Handled::Reply(reply), Some(call)) if parked.from == self.core.me => {
                self.complete(parked.from, call, reply);
            }
            (Handled::Reply(reply), Some(call)) => self.post(parked.from, Message::Reply { call, reply }),
            (Handled::Done, Some(_)) => self.offended(parked.from, "a node answers every call"),
            _ => {}
        }
    }

    /// Handles released requests again.
    fn redo_released(&self) {
        loop {
            let released = std::mem::take(self.core.node.borrow_mut().released());
            if released.is_empty() {
                return;
            }
            for ticket in released {
                let parked = self.core.parked.borrow_mut().get_mut(ticket).and_then(Option::take);
                // A ticket that was released twice was handled at the first release.
                if let Some(parked) = parked {
                    self.core.handled.set(self.core.handled.get() + 1);
                    self.attempt(ticket, parked);
                }
            }
        }
    }

    fn complete(&self, from: ShardId, call: u32, reply: N::Reply) {
        let mut calls = self.core.calls.borrow_mut();
        let Some(pending) = calls.get_mut(call).filter(|call| call.to == from && call.reply.is_none()) else {
            return self.offended(from, "a reply answers a pending call, once");
        };
        match pending.task {
            Some(task) => {
                pending.reply = Some(Ok(reply));
                drop(calls);
                self.wake(task);
            }
            None => drop(calls.remove(call)),
        }
    }

    /// Notes that a shard has broken a rule of calls. It is a bug if that shard is in this process.
    fn offended(&self, from: ShardId, rule: &'static str) {
        assert!(!self.core.own.contains(&from.index()), "{rule}");
        self.core.offenders.borrow_mut().push((from, rule));
    }

    fn transferred(&self, Completed { number, result }: Completed) {
        let mut transfers = self.core.transfers.borrow_mut();
        let transfer = transfers.get_mut(number).expect("a disk answers an operation that is under way");
        match transfer.task {
            Some(task) => {
                assert!(transfer.result.is_none(), "an operation is answered once");
                transfer.result = Some(result);
                drop(transfers);
                self.wake(task);
            }
            None => drop(transfers.remove(number)),
        }
    }

    fn stream_arrived(&self, detached: Detached) {
        let acceptor = self.core.sockets.borrow_mut().arrived(self.core.me, detached);
        acceptor.into_iter().for_each(|task| self.wake(task));
    }

    fn post(&self, to: ShardId, message: Message<N>) {
        let outbox = &mut self.core.outboxes.borrow_mut()[to.index()];
        if outbox.is_empty() {
            self.core.receivers.borrow_mut().push(to);
        }
        outbox.push(message);
        self.core.unsent.set(self.core.unsent.get() + 1);
    }

    fn flush(&self, outside: &mut impl Outside<N>) {
        if !self.core.submitted.borrow().is_empty() {
            outside.submit(self.core.submitted.take());
        }
        let Logged { head, written, stable, .. } = self.core.node.borrow_mut().logged();
        self.release_held(stable, outside);
        if head > written
            && let Some(writer) = self.core.writer.take()
        {
            self.wake(writer);
        }
        let unsent = self.core.unsent.replace(0);
        if unsent == 0 {
            return;
        }
        self.core.sent.set(self.core.sent.get() + unsent);
        let mut outboxes = self.core.outboxes.borrow_mut();
        let mut receivers = self.core.receivers.borrow_mut();
        receivers.sort_unstable();
        for to in receivers.drain(..) {
            let outbox = &mut outboxes[to.index()];
            let capacity = outbox.len();
            let messages = std::mem::replace(outbox, Vec::with_capacity(capacity));
            let batch = Batch { from: self.core.me, messages };
            match head <= stable {
                true => outside.send(to, batch),
                false => self.core.held.borrow_mut().push_back((head, to, batch)),
            }
        }
    }

    /// Lets go what has waited for the log up to a position.
    fn release_held(&self, stable: u64, outside: &mut impl Outside<N>) {
        let mut held = self.core.held.borrow_mut();
        while let Some((_, to, batch)) = held.pop_front_if(|(position, ..)| *position <= stable) {
            outside.send(to, batch);
        }
        let mut awaiting = self.core.awaiting.borrow_mut();
        while let Some(&Reverse((position, task))) = awaiting.peek()
            && position <= stable
        {
            awaiting.pop();
            self.wake(task);
        }
    }

    fn wake(&self, id: TaskId) {
        self.core.wake_task(id);
    }

    /// The next task that has given way, if the pass has had nothing to do or many passes have had
    /// something.
    fn patient(&self, idle: bool) -> Option<TaskId> {
        let core = &*self.core;
        let mut patient = core.patient.borrow_mut();
        if patient.is_empty() {
            return None;
        }
        let passed_over = core.passed_over.get() + 1;
        if !idle && (passed_over as usize) * patient.len() < PATIENCE as usize {
            core.passed_over.set(passed_over);
            return None;
        }
        core.passed_over.set(0);
        let mut tasks = core.tasks.borrow_mut();
        // The task of a number may have ended.
        let mut is_turn = |&id: &TaskId| tasks.get_mut(id).is_some_and(|slot| take(&mut slot.patient));
        std::iter::from_fn(|| patient.pop_front()).find(&mut is_turn)
    }

    fn poll(&self, id: TaskId) {
        let Some(mut task) = self.core.tasks.borrow_mut().get_mut(id).and_then(|slot| {
            slot.ready = false;
            slot.task.take()
        }) else {
            return;
        };
        self.core.current.set(id);
        let done = task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let mut tasks = self.core.tasks.borrow_mut();
        if done {
            tasks.remove(id);
            drop(tasks);
            drop(task);
        } else if let Some(slot) = tasks.get_mut(id) {
            slot.task = Some(task);
        }
    }

    fn fire_timers(&self) {
        let now = self.core.clock.get().0;
        loop {
            let mut timers = self.core.timers.borrow_mut();
            match timers.peek() {
                Some(&Reverse((due, task))) if due <= now => {
                    timers.pop();
                    drop(timers);
                    self.wake(task);
                }
                _ => return,
            }
        }
    }
}

impl<N: Participant> Core<N> {
    fn wake_task(&self, id: TaskId) {
        if let Some(slot) = self.tasks.borrow_mut().get_mut(id)
            && !slot.ready
        {
            slot.ready = true;
            self.ready.borrow_mut().push_back(id);
        }
    }

    /// Has a task wait for its turn among those that give way.
    fn let_wait(&self, id: TaskId) {
        if let Some(slot) = self.tasks.borrow_mut().get_mut(id)
            && !slot.patient
        {
            slot.patient = true;
            self.patient.borrow_mut().push_back(id);
        }
    }
}
