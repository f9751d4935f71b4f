//! What a shard is to its tasks: their [`Env`].
//!
//! A call is on its way when it is made, and the future only collects the answer. If the future is
//! dropped, the call is given up, and its answer thrown away when it comes. Timers and pauses wake
//! the task that awaits them.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_types::{ShardId, Timestamp};

use super::{Call, Core, Message, Pending, ShardEnv, Slot, Sockets, Start, TaskId, Transfer};
use crate::disk::{Desk, DiskError, Operation, Outcome, Submitted};
use crate::env::{Task, Tasks};
use crate::stream::{Accept, Detached, Host, Stream};
use crate::{Disk, Env, Logged, Participant, Unknown};

/// Waits for the reply to a pending call; gives the call up when dropped.
struct Collect<N: Participant> {
    env: ShardEnv<N>,
    call: u32,
    collected: bool,
}

impl<N: Participant> Future for Collect<N> {
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
                Poll::Ready(reply)
            }
            None => Poll::Pending,
        }
    }
}

impl<N: Participant> Drop for Collect<N> {
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

impl<N: Participant> Desk for Core<N> {
    fn submit(&self, operation: Operation) -> u32 {
        let task = Some(self.current.get());
        let number = self.transfers.borrow_mut().insert(Transfer { task, result: None });
        self.submitted.borrow_mut().push(Submitted { number, operation });
        number
    }

    fn collect(&self, number: u32) -> Option<Result<Outcome, DiskError>> {
        let mut transfers = self.transfers.borrow_mut();
        let transfer = transfers.get_mut(number).expect("an operation is collected once");
        transfer.task = Some(self.current.get());
        let result = transfer.result.take()?;
        transfers.remove(number);
        Some(result)
    }

    fn give_up(&self, number: u32) {
        let mut transfers = self.transfers.borrow_mut();
        match transfers.get_mut(number) {
            Some(transfer) if transfer.result.is_none() => transfer.task = None,
            _ => drop(transfers.remove(number)),
        }
    }
}

impl<N: Participant> Host for Core<N> {
    fn sockets(&self) -> &RefCell<Sockets> {
        &self.sockets
    }

    fn current(&self) -> TaskId {
        self.current.get()
    }
}

/// The executor of a shard, as what its tasks await sees it.
pub(crate) trait Executor {
    /// The clock of this pass, in Unix nanoseconds.
    fn now(&self) -> u64;

    /// Polls the present task again in a later pass.
    fn wake(&self);

    /// Polls the present task again when there is nothing else to do, or there has been for long.
    fn give_way(&self);

    /// Whether the present task has given way and its turn has not come.
    fn gives_way(&self) -> bool;

    /// Polls the present task again when the clock has reached a time in Unix nanoseconds.
    fn wake_at(&self, due: u64);

    /// The state of the participant's log.
    fn logged(&self) -> Logged;

    /// Polls the present task again when the log is stable up to a position.
    fn wake_when_stable(&self, position: u64);

    /// Polls the present task again when something was appended to the log.
    fn wake_when_appended(&self);
}

impl<N: Participant> Executor for Core<N> {
    fn now(&self) -> u64 {
        self.clock.get().0
    }

    fn wake(&self) {
        self.wake_task(self.current.get());
    }

    fn give_way(&self) {
        self.let_wait(self.current.get());
    }

    fn gives_way(&self) -> bool {
        self.tasks.borrow().get(self.current.get()).is_some_and(|slot| slot.patient)
    }

    fn wake_at(&self, due: u64) {
        self.timers.borrow_mut().push(Reverse((due, self.current.get())));
    }

    fn logged(&self) -> Logged {
        self.node.borrow_mut().logged()
    }

    fn wake_when_stable(&self, position: u64) {
        self.awaiting.borrow_mut().push(Reverse((position, self.current.get())));
    }

    fn wake_when_appended(&self) {
        self.writer.set(Some(self.current.get()));
    }
}

/// Lets other tasks run: [`Tasks::pause`] and [`Tasks::give_way`]. The default is over at once.
#[derive(Default)]
#[must_use = "a pause has no effect unless it is awaited"]
pub struct Pause {
    executor: Option<Rc<dyn Executor>>,
    gives_way: bool,
    has_begun: bool,
}

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let begins = !std::mem::replace(&mut self.has_begun, true);
        match &self.executor {
            Some(executor) if begins => {
                match self.gives_way {
                    true => executor.give_way(),
                    false => executor.wake(),
                }
                Poll::Pending
            }
            // Something else has woken the task.
            Some(executor) if self.gives_way && executor.gives_way() => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

/// Waits for a time: [`Tasks::sleep`]. The default is over at once.
#[derive(Default)]
#[must_use = "a sleep has no effect unless it is awaited"]
pub struct Sleep {
    /// And when it is over, in Unix nanoseconds.
    executor: Option<(Rc<dyn Executor>, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match &self.executor {
            Some((executor, due)) if executor.now() < *due => {
                executor.wake_at(*due);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

/// Waits for the log: [`Tasks::stable`]. The default is over at once.
#[derive(Default)]
#[must_use = "nothing waits for the log unless this is awaited"]
pub struct Stable {
    /// And the position to wait for.
    executor: Option<(Rc<dyn Executor>, u64)>,
}

impl Future for Stable {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match &self.executor {
            Some((executor, position)) if executor.logged().stable < *position => {
                executor.wake_when_stable(*position);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

/// Waits for something to write to the log: [`Tasks::appended`]. The default is over at once.
#[derive(Default)]
#[must_use = "nothing is waited for unless this is awaited"]
pub struct Appended {
    executor: Option<Rc<dyn Executor>>,
}

impl Future for Appended {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match &self.executor {
            Some(executor) if executor.logged().sealed == executor.logged().written => {
                executor.wake_when_appended();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl<N: Participant> Tasks for ShardEnv<N> {
    fn shard(&self) -> ShardId {
        self.core.me
    }

    fn shards(&self) -> usize {
        self.core.shards
    }

    #[inline]
    fn clock(&self) -> Timestamp {
        self.core.clock.get()
    }

    fn now(&self) -> Timestamp {
        let now = self.core.clock.get().join(self.core.shard_clock.now());
        self.core.clock.set(now);
        now
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

    fn pending(&self) -> Pending {
        Pending {
            tasks: self.core.tasks.borrow().len(),
            calls: self.core.calls.borrow().len(),
            requests: self.core.parked.borrow().len(),
        }
    }

    fn sleep(&self, nanoseconds: u64) -> Sleep {
        let due = self.core.clock.get().0 + nanoseconds;
        Sleep { executor: Some((self.core.clone(), due)) }
    }

    fn stable(&self) -> Stable {
        let Logged { head, stable, .. } = self.core.node.borrow_mut().logged();
        match head <= stable {
            true => Stable::default(),
            false => Stable { executor: Some((self.core.clone(), head)) },
        }
    }

    fn appended(&self) -> Appended {
        Appended { executor: Some(self.core.clone()) }
    }

    fn pause(&self) -> Pause {
        Pause { executor: Some(self.core.clone()), ..Pause::default() }
    }

    fn give_way(&self) -> Pause {
        Pause { executor: Some(self.core.clone()), gives_way: true, ..Pause::default() }
    }

    fn accept(&self) -> Accept {
        Accept::new(self.core.clone())
    }

    fn attach(&self, detached: Detached) -> Stream {
        let peer = detached.peer;
        let number = self.core.sockets.borrow_mut().attach(self.core.me, detached);
        Stream::new(self.core.clone(), number, peer)
    }

    fn start(&self, task: Task) {
        let id = self.core.tasks.borrow_mut().insert(Slot { task: Some(task), ready: true, patient: false });
        self.core.ready.borrow_mut().push_back(id);
    }
}

impl<N: Participant> Env<N> for ShardEnv<N> {
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
        let call = self.core.calls.borrow_mut().insert(Call { to, task, reply: None });
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

    fn spawn_on<F>(&self, shard: ShardId, task: impl FnOnce(Self) -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        assert!(self.core.own.contains(&shard.index()), "a task is started on a shard of this process");
        let start: Start<N> = Box::new(move |env| Box::pin(task(env.clone())));
        match shard == self.core.me {
            true => self.start(start(self)),
            false => self.post(shard, Message::Start(start)),
        }
    }

    fn disk(&self) -> Option<Disk> {
        self.core.has_disk.then(|| Disk::new(self.core.clone() as Rc<dyn Desk>))
    }
}
