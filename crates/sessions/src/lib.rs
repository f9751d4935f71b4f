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
use std::sync::Arc;

use plimsoll_sql::session::{Places, Sender, World};
use plimsoll_sql::types::time::zone::EPOCH_US;
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::base::Inbox;
use plimsoll_types::ShardId;

pub use client::serve;
pub use store::{NodeStore, ShardStore, Transaction};

/// Maximum time that a session sleeps at once, in microseconds: a year.
const SLEEP_US_MAX: u64 = 365 * 86_400_000_000;

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

    fn keeper(&self, key: &[u8]) -> Option<u16> {
        self.store.keeper(key).map(|ShardId(shard)| shard)
    }

    fn sender(&self) -> Option<Sender> {
        let shard = (!self.store.is_alone()).then(|| self.shard.clone())?;
        Some(Rc::new(move |to, bytes| shard.send_session(ShardId(to), bytes)))
    }

    async fn pause(&self) {
        self.shard.pause().await;
    }

    async fn give_way(&self) {
        self.shard.give_way().await;
    }

    async fn sleep(&self, us: u64) {
        self.shard.sleep(us.min(SLEEP_US_MAX) * 1_000).await;
    }
}

/// Receives for a node's sessions what those of other nodes send.
struct NodeInbox(Arc<Places>);

impl Inbox for NodeInbox {
    fn receive(&mut self, ShardId(from): ShardId, message: &[u8]) -> Vec<(ShardId, Vec<u8>)> {
        by_shard(self.0.receive(from, message))
    }

    fn disconnected(&mut self, ShardId(peer): ShardId) -> Vec<(ShardId, Vec<u8>)> {
        by_shard(self.0.disconnected(peer))
    }
}

fn by_shard(messages: Vec<(u16, Vec<u8>)>) -> Vec<(ShardId, Vec<u8>)> {
    messages.into_iter().map(|(shard, message)| (ShardId(shard), message)).collect()
}

/// Has a shard of a node receive what sessions of other nodes send. Each shard of the node has to,
/// before another node can be connected to it.
pub fn receive(shard: &dyn AnyShard, places: &Arc<Places>) {
    shard.set_inbox(Box::new(NodeInbox(places.clone())));
}
