//! Sessions of SQL on the shards of a node: what they have of the database, and of time and chance.
//!
//! A session ([`plimsoll_sql::session`]) knows nothing of shards. [`ShardStore`] gives it
//! transactions that the shard coordinates on which it runs, and [`Here`] the shard's clock. A node
//! has sessions for the clients that connect to it, and a simulated world for those that it makes.
//! Both run this code.

mod client;
mod failure;
mod operation;
mod store;

use std::net::SocketAddr;
use std::rc::Rc;

use plimsoll_sql::session::World;
use plimsoll_txn::any_shard::AnyShard;

pub use client::serve;
pub use store::{NodeStore, ShardStore, Transaction};

/// Maximum time that a session sleeps at once, in microseconds: a year.
const SLEEP_US_MAX: u64 = 365 * 86_400_000_000;

/// Unix time of 2000-01-01, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The shard that a session runs on.
pub struct Here {
    shard: Rc<dyn AnyShard>,
    store: ShardStore,
    random: fn(u64) -> u64,
    client: Option<SocketAddr>,
}

impl Here {
    /// This shard. A session's random numbers are what `random` makes of those of the shard, which
    /// could be guessed.
    pub fn new(shard: Rc<dyn AnyShard>, store: ShardStore, random: fn(u64) -> u64) -> Here {
        Here { shard, store, random, client: None }
    }

    /// The same for a session whose client is there.
    pub fn with_client(self, client: SocketAddr) -> Here {
        Here { client: Some(client), ..self }
    }
}

impl World for Here {
    type Store = ShardStore;

    fn store(&self) -> &ShardStore {
        &self.store
    }

    fn now_us(&self) -> i64 {
        (self.shard.now().0 / 1_000).cast_signed() - EPOCH_US
    }

    fn random(&self) -> u64 {
        (self.random)(self.shard.random())
    }

    fn client(&self) -> Option<SocketAddr> {
        self.client
    }

    async fn pause(&self) {
        self.shard.pause().await;
    }

    async fn sleep(&self, us: u64) {
        self.shard.sleep(us.min(SLEEP_US_MAX) * 1_000).await;
    }
}
