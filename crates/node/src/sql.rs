//! SQL: sessions of PostgreSQL's clients, as tasks of a node's shards; and `plimsoll sql`, which
//! begins one.
//!
//! The runtime deals connections to shards. On each shard a task accepts them, and starts a task
//! for each, which is a [`plimsoll_sql::session`]: its bytes come from the shard's streams, its
//! time from the shard's clock, and its data by transactions that the shard coordinates
//! ([`plimsoll_sessions`]).
//!
//! Left out: passwords. A node trusts every client, so it listens on loopback addresses only. And a
//! limit of time for a client that connects and does not log in: it keeps its place.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use clap::Args;
use plimsoll_args::{Refusal, refuse};
use plimsoll_engine::{Cluster, Engine, NodeConfig};
use plimsoll_page::help;
use plimsoll_runtime::real::{Endpoint, Listening};
use plimsoll_sessions::{Here, NodeStore, ShardStore};
use plimsoll_sql::catalog::pg::ShownNode;
use plimsoll_sql::session::Places;
use plimsoll_types::ShardId;

use crate::{bind, taken};

/// Sessions of a node at a time, at most.
const SESSIONS_MAX: usize = 1000;

/// Connections beyond these: to refuse a session takes one, and so does to cancel a statement.
const SPARE: usize = 24;

/// Listens for PostgreSQL's clients.
pub(crate) fn listen(address: &Endpoint, node: &NodeConfig) -> Result<Listening, Box<dyn std::error::Error>> {
    let lonely = "a client needs no password, so it has to be a loopback address";
    let bound = bind(address, Some(lonely));
    let listener = bound.map_err(|error| taken(error, address, "SQL", "", node))?;
    Ok(Listening { listeners: vec![listener], streams_max: SESSIONS_MAX + SPARE })
}

/// Serves the clients that are dealt to the shards of a node, if the cluster's pair has SQL. A node
/// that listens for none keeps queues for the sessions of others.
pub(crate) fn serve(engine: &Engine, cluster: &Cluster, node: u16) {
    let Some(store) = node_store(engine, cluster) else { return };
    let places = Places::new(node, SESSIONS_MAX);
    places.tell_nodes(nodes_of(engine, cluster, node));
    for shard in engine.shards() {
        let (places, store) = (places.clone(), store.clone());
        engine.spawn_on(shard, move |shard| async move {
            plimsoll_sessions::receive(&*shard, &places);
            loop {
                let stream = shard.accept().await;
                let store = ShardStore::new(shard.clone(), store.clone());
                let here = Here::new(shard.clone(), store, unguessable).with_client(stream.peer());
                shard.start(plimsoll_sessions::serve(stream, here, places.clone()));
            }
        });
    }
}

/// Tells the nodes of the cluster, of which this is one, and to which of them it is connected.
fn nodes_of(
    engine: &Engine,
    cluster: &Cluster,
    node: u16,
) -> impl Fn() -> Vec<ShownNode> + Send + Sync + use<> {
    let (reach, nodes) = (engine.runtime().reach(), cluster.nodes.clone());
    move || {
        let mut first = 0;
        let shown = |it: &NodeConfig| {
            // Shards are numbered node by node.
            let shard = ShardId(first);
            first += u16::try_from(it.shards).unwrap_or(u16::MAX);
            ShownNode {
                id: it.id,
                address: it.address.to_string(),
                shards: it.shards,
                is_connected: reach.is_connected(shard),
                is_this: it.id == node,
            }
        };
        nodes.iter().map(shown).collect()
    }
}

/// What the stores of all shards of a node have in common; `None` if the cluster's pair has no SQL.
fn node_store(engine: &Engine, cluster: &Cluster) -> Option<Arc<NodeStore>> {
    let (has_locks, is_alone) = (cluster.pair.has_locks(), cluster.nodes.len() == 1);
    let store = NodeStore::new(cluster.sql_tables()?, has_locks, is_alone, engine.runtime().reach());
    Some(store.with_staleness(cluster.max_staleness))
}

/// A number that nobody can guess who knows the shard's random numbers.
fn unguessable(number: u64) -> u64 {
    RandomState::new().hash_one(number)
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
