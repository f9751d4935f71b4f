//! SQL: sessions of PostgreSQL's clients, as tasks of a node's shards; and `plimsoll sql`, which
//! begins one.
//!
//! The runtime deals connections to shards. On each shard a task accepts them, and starts a task
//! for each, which is a [`plimsoll_sql::session`]: its bytes come from the shard's streams, its
//! time from the shard's clock, and its data by transactions that the shard coordinates (`store`).
//!
//! Left out: passwords. A node trusts every client, so it listens on loopback addresses only. And a
//! limit of time for a client that connects and does not log in: it keeps its place.

mod failure;
mod operation;
mod store;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::rc::Rc;

use clap::Args;
use plimsoll_args::{Refusal, refuse};
use plimsoll_engine::{Cluster, Engine, NodeConfig};
use plimsoll_page::help;
use plimsoll_runtime::real::{Endpoint, Listening};
use plimsoll_runtime::{READ_MAX, Stream};
use plimsoll_sql::session::{Closed, Places, World, serve as serve_session};
use plimsoll_txn::any_shard::AnyShard;

use crate::{bind, taken};
use store::{NodeStore, ShardStore};

/// Sessions of a node at a time, at most.
const SESSIONS_MAX: usize = 1000;

/// Connections beyond these: to refuse a session takes one, and so does to cancel a statement.
const SPARE: usize = 24;

/// Maximum time that a session sleeps at once, in microseconds: a year.
const SLEEP_US_MAX: u64 = 365 * 86_400_000_000;

/// Unix time of 2000-01-01, in microseconds.
const EPOCH_US: i64 = 946_684_800_000_000;

/// Listens for PostgreSQL's clients.
pub(crate) fn listen(address: &Endpoint, node: &NodeConfig) -> Result<Listening, Box<dyn std::error::Error>> {
    let lonely = "a client needs no password, so it has to be a loopback address";
    let bound = bind(address, Some(lonely));
    let listener = bound.map_err(|error| taken(error, address, "SQL", "", node))?;
    Ok(Listening { listeners: vec![listener], streams_max: SESSIONS_MAX + SPARE })
}

/// Serves the clients that are dealt to the shards of a node, if the cluster's pair has SQL.
pub(crate) fn serve(engine: &Engine, cluster: &Cluster, node: u16) {
    let Some(store) = NodeStore::new(engine, cluster) else { return };
    let places = Places::new(node, SESSIONS_MAX);
    for shard in engine.shards() {
        let (places, store) = (places.clone(), store.clone());
        engine.spawn_on(shard, move |shard| async move {
            loop {
                let mut connection = Connection(shard.accept().await);
                let store = ShardStore::new(shard.clone(), store.clone());
                let (world, places) = (Here { shard: shard.clone(), store }, places.clone());
                shard.start(Box::pin(async move {
                    serve_session(&mut connection, &world, &places).await;
                    connection.0.close().await;
                }));
            }
        });
    }
}

struct Connection(Stream);

impl plimsoll_sql::session::Stream for Connection {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        self.0.read(buffer, READ_MAX).await.map_err(|_| Closed)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.0.write(bytes).await.map_err(|_| Closed)
    }
}

/// The shard of a session.
struct Here {
    shard: Rc<dyn AnyShard>,
    store: ShardStore,
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
        // The shard's generator could be guessed.
        RandomState::new().hash_one(self.shard.random())
    }

    async fn pause(&self) {
        self.shard.pause().await;
    }

    async fn sleep(&self, us: u64) {
        self.shard.sleep(us.min(SLEEP_US_MAX) * 1_000).await;
    }
}

const EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll sql", "A session with the node on this machine, on PostgreSQL's usual port."),
    ("plimsoll sql 127.0.0.1:5433", "The same where another port was given to `plimsoll start --sql`."),
    ("plimsoll sql -- -c 'select version()'", "What follows the two dashes is for psql."),
];

/// The flags of `plimsoll sql`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help::examples(EXAMPLES))]
pub struct SqlArgs {
    /// Where the node listens for SQL.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:5432")]
    pub address: Endpoint,
    /// What psql is told besides.
    #[arg(last = true, value_name = "PSQL")]
    pub arguments: Vec<String>,
}

/// The host of an address, as clients are told it.
pub(crate) fn host(address: &Endpoint) -> String {
    let ip = || address.ip().map_or_else(String::new, |ip| ip.to_string());
    address.named().map_or_else(ip, |(name, _)| name.to_owned())
}

/// Becomes psql.
pub fn psql(SqlArgs { address, arguments }: SqlArgs) -> Result<bool, Refusal> {
    let (host, port) = (host(&address), address.port());
    let mut psql = Command::new("psql");
    psql.args(["-h", &host, "-p", &port.to_string(), "-d", "plimsoll", "-U", "plimsoll"]).args(arguments);
    let error = psql.exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => refuse!(
            "psql is not installed: apt-get install postgresql-client, or use another client of PostgreSQL with host {host} \
             and port {port}"
        ),
        _ => refuse!("psql cannot be run: {error}"),
    }
}
