//! A runtime without the type of its shards.
//!
//! This is where the executor, its queues and its connections are compiled, once for each pair.
//! Whatever uses an [`Engine`](crate::Engine) is compiled once for all pairs.

use std::rc::Rc;

use plimsoll_runtime::Task;
use plimsoll_runtime::real::{Clock, Reach, Refusal, Runtime, Traffic};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_types::ShardId;

/// Makes a task on the shard that will run it.
pub type Start = Box<dyn FnOnce(Rc<dyn AnyShard>) -> Task + Send>;

/// A [`Runtime`] of any pair. Its methods are those of [`Runtime`].
pub trait AnyRuntime: Send + Sync {
    /// See [`Runtime::shards`].
    fn shards(&self) -> usize;
    /// See [`Runtime::first`].
    fn first(&self) -> ShardId;
    /// See [`Runtime::traffic`].
    fn traffic(&self) -> Vec<Traffic>;
    /// See [`Runtime::refused`].
    fn refused(&self) -> Option<Refusal>;
    /// See [`Runtime::bytes_waiting`].
    fn bytes_waiting(&self) -> u64;
    /// See [`Runtime::reach`].
    fn reach(&self) -> Reach;
    /// See [`Runtime::room`].
    fn room(&self) -> usize;
    /// See [`Runtime::met`].
    fn met(&self) -> Vec<u64>;
    /// See [`Runtime::called`].
    fn called(&self, shard: ShardId) -> Option<String>;
    /// See [`Runtime::heard_clocks`].
    fn heard_clocks(&self) -> Vec<i64>;
    /// See [`Runtime::clock`].
    fn clock(&self) -> Clock;
    /// See [`Runtime::spawn_on`].
    fn start_on(&self, shard: ShardId, start: Start);
}

impl<P: LegalPair> AnyRuntime for Runtime<P> {
    fn shards(&self) -> usize {
        Runtime::shards(self)
    }

    fn first(&self) -> ShardId {
        Runtime::first(self)
    }

    fn traffic(&self) -> Vec<Traffic> {
        Runtime::traffic(self)
    }

    fn refused(&self) -> Option<Refusal> {
        Runtime::refused(self)
    }

    fn bytes_waiting(&self) -> u64 {
        Runtime::bytes_waiting(self)
    }

    fn reach(&self) -> Reach {
        Runtime::reach(self)
    }

    fn room(&self) -> usize {
        Runtime::room(self)
    }

    fn met(&self) -> Vec<u64> {
        Runtime::met(self)
    }

    fn called(&self, shard: ShardId) -> Option<String> {
        Runtime::called(self, shard)
    }

    fn heard_clocks(&self) -> Vec<i64> {
        Runtime::heard_clocks(self)
    }

    fn clock(&self) -> Clock {
        Runtime::clock(self)
    }

    fn start_on(&self, shard: ShardId, start: Start) {
        self.spawn_on(shard, move |env| start(P::any(env)));
    }
}
