//! A transaction of a session, and an operation of one, of which nothing is left behind, whenever
//! the session stops waiting.
//!
//! A session's future may be dropped at any time, and it gives up an operation that needs a node
//! that is gone. What an operation that ends half-way would leave behind nobody knows: locks on
//! other shards, a registered snapshot, votes. So an operation always runs to its end. If the
//! session no longer waits ([`Ongoing`] is dropped), a task of its own on the same shard goes on
//! with it. And a transaction that nobody has any more ([`Held`] is dropped) is rolled back by such
//! a task, which is also the end of one whose operation was given up; but a commit is a commit.
//!
//! When the shard ends, these tasks are dropped with all others: nothing of the shard is left then,
//! and what it has asked of other processes they give back as they do for any process that is gone.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_txn::any_shard::{AnyShard, InteractiveShard, TransactionHandle};
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::AskedShards;
use plimsoll_types::{Abort, Timestamp};

/// A shard, for transactions whose operations come one by one.
fn interactive(shard: &dyn AnyShard) -> &dyn InteractiveShard {
    shard.interactive().expect("a pair that has SQL is interactive")
}

/// A transaction that has begun and is not over. It is rolled back if it is dropped.
pub(crate) struct Held {
    shard: Rc<dyn AnyShard>,
    /// `None` once the transaction is over.
    handle: Option<TransactionHandle>,
}

impl Held {
    /// Begins a transaction. Under a scheme without an oracle this takes one step.
    pub(crate) async fn begin(
        shard: &Rc<dyn AnyShard>,
        attempt: Attempt,
        reads_only: bool,
    ) -> Result<Held, Abort> {
        let handle = interactive(&**shard).begin(attempt, reads_only).await?;
        Ok(Held { shard: shard.clone(), handle: Some(handle) })
    }

    /// The shard and the transaction, for an operation.
    pub(crate) fn parts(&mut self) -> (&dyn InteractiveShard, &mut TransactionHandle) {
        let handle = self.handle.as_mut().expect("no operation follows the end of a transaction");
        (interactive(&*self.shard), handle)
    }

    /// Up to which timestamp the session has seen the database.
    pub(crate) fn shown(&mut self) -> Option<Timestamp> {
        let (shard, handle) = self.parts();
        shard.shown(handle)
    }

    /// The timestamp of the snapshot that it reads, if it reads one and the scheme has numbers.
    pub(crate) fn snapshot(&self) -> Option<Timestamp> {
        interactive(&*self.shard).snapshot(self.handle.as_ref()?)
    }

    /// Counts from now on what its reads ask of shards.
    pub(crate) fn count(&mut self) {
        let (shard, handle) = self.parts();
        shard.count(handle);
    }

    /// What its reads have asked of shards since that was to be counted, if it was.
    pub(crate) fn counted(&mut self) -> Option<AskedShards> {
        let (shard, handle) = self.parts();
        shard.counted(handle)
    }

    /// The number of the attempt.
    pub(crate) fn number(&mut self) -> u64 {
        let (shard, handle) = self.parts();
        shard.id(handle).number
    }

    /// Commits. Returns the commit's timestamp.
    pub(crate) async fn commit(mut self) -> Result<Option<Timestamp>, Abort> {
        let handle = self.handle.take().expect("a transaction ends once");
        Ok(interactive(&*self.shard).commit(handle).await?.stamp)
    }

    /// Rolls back.
    pub(crate) async fn rollback(mut self) {
        let handle = self.handle.take().expect("a transaction ends once");
        interactive(&*self.shard).rollback(handle).await;
    }

    /// An operation has failed, and has ended the transaction: nothing is left to roll back.
    pub(crate) fn forget(mut self) {
        self.handle = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            let shard = self.shard.clone();
            self.shard.start(Box::pin(async move { interactive(&*shard).rollback(handle).await }));
        }
    }
}

/// An operation, which goes on if this is dropped.
pub(crate) struct Ongoing<T: 'static> {
    shard: Rc<dyn AnyShard>,
    /// `None` once it has ended.
    operation: Option<Pin<Box<dyn Future<Output = T>>>>,
}

impl<T: 'static> Ongoing<T> {
    /// An operation on this shard, which begins when it is first polled.
    pub(crate) fn new(shard: &Rc<dyn AnyShard>, operation: impl Future<Output = T> + 'static) -> Ongoing<T> {
        Ongoing { shard: shard.clone(), operation: Some(Box::pin(operation)) }
    }

    /// What it comes to; `None` if it takes longer than this many nanoseconds.
    pub(crate) async fn within(&mut self, nanoseconds: u64) -> Option<T> {
        let mut sleep = self.shard.sleep(nanoseconds);
        poll_fn(|context| match Pin::new(&mut *self).poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Pin::new(&mut sleep).poll(context).map(|()| None),
        })
        .await
    }
}

impl<T: 'static> Future for Ongoing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let operation = self.operation.as_mut().expect("an operation is not polled after its end");
        let polled = operation.as_mut().poll(context);
        if polled.is_ready() {
            self.operation = None;
        }
        polled
    }
}

impl<T: 'static> Drop for Ongoing<T> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take() {
            self.shard.start(Box::pin(async move { drop(operation.await) }));
        }
    }
}
