//! One shard's thread: executor, calls, timers, passes.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use plimsoll_types::{ShardId, Timestamp};

use super::{Batch, Message, Peers, SPIN_NS, Slab, TASKS_PER_PASS, Task};
use crate::{Env, Handled, Node, Ticket, Unknown};

type TaskId = u32;

/// A call this shard has made and not yet collected.
struct Call<R> {
    /// Who waits for the reply; `None` if it was given up.
    task: Option<TaskId>,
    reply: Option<R>,
}

/// A request that waits at this shard's node.
struct Parked<N: Node> {
    from: ShardId,
    /// The caller's pending call; `None` for a one-way request.
    call: Option<u32>,
    request: N::Request,
}

struct Slot {
    /// `None` while the task is being polled.
    task: Option<Task>,
    /// Whether it already stands in the ready queue.
    ready: bool,
}

struct Core<N: Node> {
    me: ShardId,
    peers: Arc<Peers<N>>,
    node: RefCell<N>,
    tasks: RefCell<Slab<Slot>>,
    ready: RefCell<VecDeque<TaskId>>,
    current: Cell<TaskId>,
    calls: RefCell<Slab<Call<N::Reply>>>,
    parked: RefCell<Slab<Option<Parked<N>>>>,
    outboxes: RefCell<Vec<Vec<Message<N>>>>,
    unsent: Cell<u64>,
    sent: Cell<u64>,
    outgoing: RefCell<Vec<(ShardId, N::Request)>>,
    timers: RefCell<BinaryHeap<Reverse<(u64, TaskId)>>>,
    clock: Cell<Timestamp>,
    random: Cell<u64>,
}

/// The real environment of the tasks of one shard.
pub struct RealEnv<N: Node> {
    core: Rc<Core<N>>,
}

impl<N: Node> Clone for RealEnv<N> {
    fn clone(&self) -> Self {
        RealEnv { core: self.core.clone() }
    }
}

/// Runs a shard until the runtime stops.
pub(super) fn run<N: Node>(me: ShardId, node: N, peers: Arc<Peers<N>>, seed: u64) {
    let shards = peers.peers.len();
    let core = Rc::new(Core {
        me,
        peers: peers.clone(),
        node: RefCell::new(node),
        tasks: RefCell::default(),
        ready: RefCell::default(),
        current: Cell::new(0),
        calls: RefCell::default(),
        parked: RefCell::default(),
        outboxes: RefCell::new((0..shards).map(|_| Vec::new()).collect()),
        unsent: Cell::new(0),
        sent: Cell::new(0),
        outgoing: RefCell::default(),
        timers: RefCell::default(),
        clock: Cell::new(peers.clock.now()),
        random: Cell::new(seed ^ (u64::from(me.0) + 1).wrapping_mul(0x9e3779b97f4a7c15)),
    });
    let env = RealEnv { core };
    let mut idle_since: Option<u64> = None;
    while !peers.stop.load(SeqCst) {
        if env.pass() {
            idle_since = None;
            continue;
        }
        let now = env.core.clock.get().0;
        let since = *idle_since.get_or_insert(now);
        if now.saturating_sub(since) < SPIN_NS {
            std::hint::spin_loop();
        } else {
            env.sleep_until_woken();
            idle_since = None;
        }
    }
    // Tasks hold the environment, and the environment the tasks: break the ring.
    let tasks = std::mem::take(&mut *env.core.tasks.borrow_mut());
    drop(tasks);
}

impl<N: Node> RealEnv<N> {
    /// One pass. Returns whether there was anything to do.
    fn pass(&self) -> bool {
        let core = &*self.core;
        // Drain the inbox.
        let mut worked = false;
        while let Some(batch) = core.peers.peers[core.me.index()].inbox.pop() {
            worked = true;
            for message in batch.messages {
                self.receive(batch.from, message);
            }
            self.redo_released();
        }
        // Sample the clock.
        core.clock.set(core.clock.get().join(core.peers.clock.now()));
        core.node.borrow_mut().pass(core.clock.get());
        self.fire_timers();
        // Run ready tasks.
        for _ in 0..TASKS_PER_PASS {
            let Some(id) = core.ready.borrow_mut().pop_front() else { break };
            worked = true;
            self.poll(id);
            self.redo_released();
        }
        self.send_outgoing();
        self.flush();
        worked
    }

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
            Message::Reply { call, reply } => self.complete(call, reply),
            Message::Start(start) => self.start(start(self)),
        }
    }

    /// Gives a request to the node, and parks it if the node says so.
    fn handle(&self, from: ShardId, call: Option<u32>, request: N::Request) {
        let ticket = self.core.parked.borrow_mut().insert(None);
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
            (Handled::Reply(reply), Some(call)) if parked.from == self.core.me => self.complete(call, reply),
            (Handled::Reply(reply), Some(call)) => self.post(parked.from, Message::Reply { call, reply }),
            (Handled::Done, Some(_)) => panic!("a node answers every call"),
            _ => {}
        }
    }

    /// Handles again what the node has released.
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
                    self.attempt(ticket, parked);
                }
            }
        }
    }

    fn complete(&self, call: u32, reply: N::Reply) {
        let mut calls = self.core.calls.borrow_mut();
        let pending = calls.get_mut(call).expect("a reply answers a pending call");
        match pending.task {
            Some(task) => {
                pending.reply = Some(reply);
                drop(calls);
                self.wake(task);
            }
            None => drop(calls.remove(call)),
        }
    }

    fn post(&self, to: ShardId, message: Message<N>) {
        self.core.outboxes.borrow_mut()[to.index()].push(message);
        self.core.unsent.set(self.core.unsent.get() + 1);
    }

    fn flush(&self) {
        let unsent = self.core.unsent.replace(0);
        if unsent == 0 {
            return;
        }
        self.core.sent.set(self.core.sent.get() + unsent);
        let mut outboxes = self.core.outboxes.borrow_mut();
        for (peer, outbox) in self.core.peers.peers.iter().zip(outboxes.iter_mut()) {
            if !outbox.is_empty() {
                let capacity = outbox.len();
                let messages = std::mem::replace(outbox, Vec::with_capacity(capacity));
                peer.send(Batch { from: self.core.me, messages });
            }
        }
    }

    fn start(&self, task: Task) {
        let id = self.core.tasks.borrow_mut().insert(Slot { task: Some(task), ready: true });
        self.core.ready.borrow_mut().push_back(id);
    }

    fn wake(&self, id: TaskId) {
        if let Some(slot) = self.core.tasks.borrow_mut().get_mut(id)
            && !slot.ready
        {
            slot.ready = true;
            self.core.ready.borrow_mut().push_back(id);
        }
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

    fn sleep_until_woken(&self) {
        let core = &*self.core;
        let peer = &core.peers.peers[core.me.index()];
        core.node.borrow_mut().park();
        peer.asleep.store(true, SeqCst);
        if peer.inbox.is_empty() && !core.peers.stop.load(SeqCst) {
            let due = core.timers.borrow().peek().map(|&Reverse((due, _))| due);
            match due {
                Some(due) => {
                    thread::park_timeout(Duration::from_nanos(due.saturating_sub(core.clock.get().0)));
                }
                None => thread::park(),
            }
        }
        peer.asleep.store(false, SeqCst);
    }
}

/// Waits for the reply to a pending call; gives the call up when dropped.
struct Collect<N: Node> {
    env: RealEnv<N>,
    call: u32,
    collected: bool,
}

impl<N: Node> Future for Collect<N> {
    type Output = Result<N::Reply, Unknown>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let env = self.env.clone();
        let mut calls = env.core.calls.borrow_mut();
        let pending = calls.get_mut(self.call).expect("a call is collected once");
        pending.task = Some(env.core.current.get());
        match pending.reply.take() {
            Some(reply) => {
                calls.remove(self.call);
                self.collected = true;
                Poll::Ready(Ok(reply))
            }
            None => Poll::Pending,
        }
    }
}

impl<N: Node> Drop for Collect<N> {
    fn drop(&mut self) {
        if self.collected {
            return;
        }
        let mut calls = self.env.core.calls.borrow_mut();
        match calls.get_mut(self.call) {
            Some(pending) if pending.reply.is_none() => pending.task = None,
            _ => drop(calls.remove(self.call)),
        }
    }
}

impl<N: Node> Env<N> for RealEnv<N> {
    fn shard(&self) -> ShardId {
        self.core.me
    }

    fn shards(&self) -> usize {
        self.core.peers.peers.len()
    }

    #[inline]
    fn clock(&self) -> Timestamp {
        self.core.clock.get()
    }

    /// SplitMix64.
    fn random(&self) -> u64 {
        let state = self.core.random.get().wrapping_add(0x9e3779b97f4a7c15);
        self.core.random.set(state);
        let mut x = state;
        x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
        x ^ x >> 31
    }

    fn messages(&self) -> u64 {
        self.core.sent.get() + self.core.unsent.get()
    }

    #[inline]
    fn local<R>(&self, work: impl FnOnce(&mut N) -> R) -> R {
        work(&mut self.core.node.borrow_mut())
    }

    fn call(
        &self,
        to: ShardId,
        request: N::Request,
    ) -> impl Future<Output = Result<N::Reply, Unknown>> + 'static {
        let task = Some(self.core.current.get());
        let call = self.core.calls.borrow_mut().insert(Call { task, reply: None });
        if to == self.core.me {
            self.handle(to, Some(call), request);
        } else {
            self.post(to, Message::Call { call, request });
        }
        Collect { env: self.clone(), call, collected: false }
    }

    fn send(&self, to: ShardId, request: N::Request) {
        if to == self.core.me {
            self.handle(to, None, request);
        } else {
            self.post(to, Message::Tell { request });
        }
    }

    fn sleep(&self, nanoseconds: u64) -> impl Future<Output = ()> + 'static {
        let env = self.clone();
        let due = self.core.clock.get().0 + nanoseconds;
        poll_fn(move |_| {
            if env.core.clock.get().0 >= due {
                return Poll::Ready(());
            }
            env.core.timers.borrow_mut().push(Reverse((due, env.core.current.get())));
            Poll::Pending
        })
    }

    fn pause(&self) -> impl Future<Output = ()> + 'static {
        let env = self.clone();
        let mut paused = false;
        poll_fn(move |_| {
            if std::mem::replace(&mut paused, true) {
                return Poll::Ready(());
            }
            env.wake(env.core.current.get());
            Poll::Pending
        })
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.start(Box::pin(task));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Runtime;
    use super::*;

    /// Adds numbers up; a request for more than there is waits until there is enough.
    #[derive(Default)]
    struct Till {
        sum: u64,
        waiting: Vec<Ticket>,
        released: Vec<Ticket>,
    }

    enum Request {
        Put(u64),
        Take(u64),
    }

    impl Node for Till {
        type Request = Request;
        type Reply = u64;

        fn handle(&mut self, _: ShardId, request: &mut Request, ticket: Ticket) -> Handled<u64> {
            match *request {
                Request::Put(n) => {
                    self.sum += n;
                    self.released.append(&mut self.waiting);
                    Handled::Done
                }
                Request::Take(n) if n <= self.sum => {
                    self.sum -= n;
                    Handled::Reply(self.sum)
                }
                Request::Take(_) => {
                    self.waiting.push(ticket);
                    Handled::Wait
                }
            }
        }

        fn released(&mut self) -> &mut Vec<Ticket> {
            &mut self.released
        }

        fn pass(&mut self, _: Timestamp) {}
        fn outgoing(&mut self, _: &mut Vec<(ShardId, Request)>) {}
        fn park(&mut self) {}
    }

    fn start(shards: usize) -> Runtime<Till> {
        let makers = (0..shards).map(|_| Box::new(Till::default) as Box<dyn FnOnce() -> Till + Send>);
        Runtime::start(makers.collect(), 1, false).unwrap()
    }

    #[test]
    fn calls_cross_shards_and_wait_until_they_can_be_answered() {
        let runtime = start(2);
        runtime.spawn_on(ShardId(1), |env| async move {
            for _ in 0..10 {
                env.sleep(1000).await;
                env.send(ShardId(0), Request::Put(1));
                env.send(ShardId(1), Request::Put(1));
            }
        });
        let left = runtime.run_on(ShardId(1), |env| async move {
            let far = env.call(ShardId(0), Request::Take(10)).await.unwrap();
            let near = env.call(ShardId(1), Request::Take(10)).await.unwrap();
            far + near
        });
        assert_eq!(left, 0);
    }

    #[test]
    fn a_task_that_pauses_lets_others_run_and_time_pass() {
        let runtime = start(1);
        let passed = runtime.run_on(ShardId(0), |env| async move {
            let before = env.clock();
            let other = Rc::new(Cell::new(0));
            let counter = other.clone();
            let inner = env.clone();
            env.spawn(async move {
                for _ in 0..5 {
                    counter.set(counter.get() + 1);
                    inner.pause().await;
                }
            });
            while other.get() < 5 {
                env.pause().await;
            }
            env.sleep(50_000).await;
            env.clock().0 - before.0
        });
        assert!(passed >= 50_000);
    }

    #[test]
    fn many_senders_lose_nothing() {
        let runtime = Arc::new(start(3));
        for shard in 0..3 {
            for _ in 0..100 {
                runtime.spawn_on(ShardId(shard), |env| async move {
                    for to in 0..3 {
                        env.send(ShardId(to), Request::Put(1));
                        env.pause().await;
                    }
                });
            }
        }
        for shard in 0..3 {
            let left = runtime.run_on(ShardId(shard), move |env| async move {
                env.call(ShardId(shard), Request::Take(300)).await.unwrap()
            });
            assert_eq!(left, 0);
        }
    }
}
