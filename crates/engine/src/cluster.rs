//! A cluster as a file describes it: the nodes, the tables, and what all must agree on.
//!
//! Every node and every client reads the same file:
//!
//! ```
//! use plimsoll_engine::Cluster;
//!
//! let cluster = Cluster::parse(
//!     r#"
//!     cluster = "bank"
//!
//!     [[node]]
//!     id = 1
//!     address = "127.0.0.1:7401"
//!     http = "127.0.0.1:8401"
//!
//!     [[node]]
//!     id = 2
//!     address = "127.0.0.1:7402"
//!     shards = 2
//!
//!     [[table]]
//!     name = "account"
//!     index = "hash"
//!
//!     [[table]]
//!     name = "entry"
//!     partition = { by = "hash", bytes = 8 }
//!     "#,
//! )?;
//! assert_eq!(cluster.nodes.iter().map(|node| node.shards).sum::<usize>(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Keys place rows on shards, shards belong to nodes in the order of the nodes' numbers, and tables
//! are numbered in the order of the file. So a changed file (except for addresses) describes
//! another cluster, and nodes that have read different files refuse each other.
//!
//! The form of the file, its defaults, and what is refused in it are in `file`, tables in `tables`,
//! those that are there for SQL in `sql`, the file of the secret in `secret`.
//!
//! Left out: changing a cluster while it runs.

mod file;
mod secret;
mod sql;
mod tables;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_runtime::real::{Address, Clock, Endpoint, Network, Role, SILENCE, resolve};
use plimsoll_txn::pairs::{Pair, PairError};
use plimsoll_txn::timestamp::OracleOptions;
use plimsoll_types::{SchemaError, TableSpec};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data_dir::DataDir;
use secret::secret;
pub use tables::describe_tables;

/// The oracle's number among the nodes: the largest, so that its shard comes after all data shards.
pub const ORACLE_ID: u16 = plimsoll_runtime::real::ORACLE;
/// How far in the past a snapshot may begin if a file does not say so, under schemes that have such
/// snapshots. Enough for reads that must not wait, and little memory.
pub const MAX_STALENESS: Duration = Duration::from_secs(1);
/// Maximum number of clients that are connected to a cluster at a time.
pub const CLIENTS_MAX: usize = 1024;

/// The description of a cluster, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// A checksum of all that nodes must agree on: tells clusters apart, and versions of a
    /// cluster's file.
    pub id: u64,
    /// All nodes with data, by number.
    pub nodes: Vec<NodeConfig>,
    /// The timestamp oracle, if the scheme has one.
    pub oracle: Option<OracleConfig>,
    /// Protocol and timestamp scheme.
    pub pair: Pair,
    /// Whether OCC validates along with its locks:
    /// [`plimsoll_txn::attempt::ProtocolOptions::one_round`].
    pub one_round: bool,
    /// The tables of the file.
    pub tables: Vec<TableSpec>,
    /// How far in the past a snapshot may begin.
    pub max_staleness: Duration,
    /// How many clients may be connected at a time.
    pub clients: usize,
    /// What outlives a node.
    pub durability: Durability,
    /// The cluster's secret, if it has one; known to its nodes and clients only.
    pub secret: Option<Vec<u8>>,
    /// The whole file except the secret, as JSON: what nodes tell clients.
    pub description: String,
}

/// What of a database outlives its processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing: what a node holds is gone when it ends, and the cluster has to be started anew.
    #[default]
    None,
    /// What was committed up to a timestamp that is usually less than a tenth of a second old: a
    /// transaction is committed in memory, and on disk soon after. A database that comes back goes
    /// back to that timestamp as a whole. For the scheme dst.
    Async,
    /// Everything: a transaction is committed when it is on the disks of its nodes. A node that
    /// comes back with its data directory takes its place again.
    Sync,
}

/// One node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeConfig {
    /// Its number.
    pub id: u16,
    /// The address at which others reach it.
    pub address: Endpoint,
    /// The address it listens on.
    pub listen: Endpoint,
    /// The address at which it answers questions about itself, over HTTP.
    pub http: Option<Endpoint>,
    /// How many shards it has.
    pub shards: usize,
}

/// The timestamp oracle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OracleConfig {
    /// Its process, whose number is [`ORACLE_ID`].
    pub node: NodeConfig,
    /// How the oracle is asked.
    pub options: OracleOptions,
}

/// Why a file describes no cluster.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// It cannot be read.
    Read(PathBuf, std::io::Error),
    /// It is not TOML, or has unknown or missing keys.
    Form(String),
    /// Its content is impossible; the sentence says why.
    Content(String),
    /// A table cannot be made.
    Table(SchemaError),
    /// No node at these addresses describes its cluster; and what was wrong with the last one.
    Silent(String, String),
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::None => "none",
            Durability::Async => "async",
            Durability::Sync => "sync",
        })
    }
}

impl fmt::Display for NodeConfig {
    /// The name of the process in sentences.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            ORACLE_ID => f.write_str("the oracle"),
            id => write!(f, "node {id}"),
        }
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::Read(path, error) => write!(f, "{} cannot be read: {error}", path.display()),
            ClusterError::Form(error) => {
                write!(f, "the file does not describe a cluster: {}", error.trim_end())
            }
            ClusterError::Content(sentence) => f.write_str(sentence),
            ClusterError::Table(error) => write!(f, "{error}"),
            ClusterError::Silent(addresses, why) => write!(
                f,
                "no node describes its cluster at {addresses} ({why}): give the `http` address of one that runs, or the \
                 cluster's file"
            ),
        }
    }
}

impl std::error::Error for ClusterError {}

impl From<PairError> for ClusterError {
    fn from(error: PairError) -> ClusterError {
        ClusterError::Content(error.to_string())
    }
}

impl Cluster {
    /// Reads a file. The path of a `secret_file` is relative to it.
    pub fn read(path: &Path) -> Result<Cluster, ClusterError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ClusterError::Read(path.to_owned(), error))?;
        file::parse(&text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads what a node says of its cluster: [`Cluster::description`]. Nodes do not tell the
    /// secret.
    pub fn from_description(description: &str) -> Result<Cluster, ClusterError> {
        let file = serde_json::from_str(description);
        file::build(file.map_err(|error| ClusterError::Form(error.to_string()))?, Path::new(""))
    }

    /// The same cluster with the secret that is in a file.
    pub fn with_secret(self, path: &Path) -> Result<Cluster, ClusterError> {
        Ok(Cluster { secret: Some(secret(path)?), ..self })
    }

    /// Reads the text of a file. The path of a `secret_file` is relative to the working directory.
    pub fn parse(text: &str) -> Result<Cluster, ClusterError> {
        file::parse(text, Path::new(""))
    }

    /// The configuration of a process with this clock. A client does not connect to nodes whose
    /// clocks are further off than the limit.
    pub(crate) fn network(
        &self,
        role: Role,
        clock: Clock,
        clock_limit: Option<Duration>,
        data: Option<&DataDir>,
    ) -> Network {
        let life = clock.now().0;
        let address =
            |node: &NodeConfig| Address { id: node.id, address: node.address.clone(), shards: node.shards };
        Network {
            cluster: self.id,
            role,
            nodes: self.processes().map(address).collect(),
            clients: self.clients,
            life,
            memory: data.map_or(life, DataDir::memory),
            goes_back: self.durability == Durability::Async,
            met: data.map_or_else(Vec::new, DataDir::met),
            secret: self.secret.clone(),
            silence: SILENCE,
            clock,
            clock_limit,
        }
    }

    /// All processes that the file names: the nodes, and the oracle.
    pub fn processes(&self) -> impl Iterator<Item = &NodeConfig> {
        self.nodes.iter().chain(self.oracle.iter().map(|oracle| &oracle.node))
    }

    /// Checks, before a node starts, that a cluster without a secret cannot be reached from other
    /// machines: any process that reaches one of its nodes can read and change everything.
    pub fn check_reach(&self) -> Result<(), ClusterError> {
        if self.secret.is_some() {
            return Ok(());
        }
        let elsewhere = self.processes().find_map(|node| {
            let all = said(node).chain([("listen", &node.listen)]);
            all.map(|(key, address)| (node, key, address)).find(|(.., address)| is_elsewhere(address))
        });
        match elsewhere {
            None => Ok(()),
            Some((node, key, address)) => content(format!(
                "a cluster without a secret stays on one machine, and {node} can be reached from others at {key} = {address}: \
                 add secret_file, or choose a loopback address such as 127.0.0.1"
            )),
        }
    }

    /// The node with data that has this number.
    pub fn node(&self, id: u16) -> Option<&NodeConfig> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// The addresses at which others reach a process, with their keys in the file.
fn said(node: &NodeConfig) -> impl Iterator<Item = (&'static str, &Endpoint)> {
    let http = node.http.as_ref().map(|address| ("http", address));
    [("address", &node.address)].into_iter().chain(http)
}

/// Whether an address, or one that a name stands for, can be reached from other machines. A name
/// that has none at present is judged when it is dialed.
fn is_elsewhere(address: &Endpoint) -> bool {
    resolve(address).is_ok_and(|found| found.iter().any(|address| !address.ip().is_loopback()))
}

fn content<T>(sentence: String) -> Result<T, ClusterError> {
    Err(ClusterError::Content(sentence))
}

/// A checksum of all that nodes and clients must agree on. Addresses are not part of it: they may
/// differ from machine to machine.
fn checksum(cluster: &Cluster) -> u64 {
    let nodes: Vec<_> = cluster.nodes.iter().map(|node| (node.id, node.shards)).collect();
    let Cluster { name, pair, one_round, oracle, tables, max_staleness, clients, durability, .. } = cluster;
    let oracle = oracle.as_ref().map(|oracle| oracle.options);
    let text = format!(
        "{name:?} {pair} {one_round} {oracle:?} {nodes:?} {tables:?} {max_staleness:?} {clients} {durability}"
    );
    let digest = Sha256::digest(text.as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use plimsoll_types::Partitioning;

    use super::*;

    pub(super) const NODE: &str = "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7001\"\n";

    pub(super) const ORACLE: &str = "[oracle]\naddress = \"127.0.0.1:7009\"\n";

    #[test]
    fn whatever_nodes_must_agree_on_makes_another_cluster() {
        let id = |text: &str| Cluster::parse(text).unwrap().id;
        let table = format!("{NODE}[[table]]\nname = \"t\"\n");
        let other = "[[node]]\nid = 2\naddress = \"127.0.0.1:7002\"\n";
        let all = [
            id(NODE),
            id(&table),
            id(&NODE.replace("\"c\"", "\"d\"")),
            id(&format!("{NODE}shards = 2\n")),
            id(&format!("{NODE}{other}")),
            id(&format!("clients = 3\n{NODE}")),
            id(&format!("durability = \"sync\"\n{NODE}")),
            id(&format!("protocol = \"two_pl\"\n{NODE}")),
            id(&format!("scheme = \"none\"\n{NODE}")),
            id(&format!("{table}immutable = true\n")),
            id(&format!("scheme = \"gts\"\n{NODE}{ORACLE}")),
            id(&format!("scheme = \"gts\"\n{NODE}{ORACLE}prefetch = true\n")),
            id(&format!("scheme = \"vts\"\n{NODE}{ORACLE}")),
            id(&format!("scheme = \"vts\"\n{NODE}{ORACLE}compress = false\n")),
            id(&table.replace("\"t\"", "\"u\"")),
            id(&format!("{table}index = \"hash\"\n")),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "the {place}th is another");
        }
        assert_eq!(id(NODE), id(&NODE.replace("127.0.0.1", "[::1]")), "seen from elsewhere");
    }

    #[test]
    fn without_a_secret_no_address_can_be_reached_from_other_machines() {
        let far = |address: &str| NODE.replace("127.0.0.1", address);
        for (text, said) in [
            (far("192.0.2.1"), "node 1 can be reached from others at address = 192.0.2.1:7001"),
            (
                format!("{NODE}listen = \"0.0.0.0:7001\"\n"),
                "node 1 can be reached from others at listen = 0.0.0.0:7001",
            ),
            (
                format!("{NODE}http = \"192.0.2.1:8001\"\n"),
                "node 1 can be reached from others at http = 192.0.2.1:8001",
            ),
            (
                format!("scheme = \"gts\"\n{NODE}{ORACLE}http = \"192.0.2.1:8001\"\n"),
                "the oracle can be reached from others at http = 192.0.2.1:8001",
            ),
        ] {
            let cluster = Cluster::parse(&text).unwrap();
            let why = cluster.check_reach().expect_err("it could be reached").to_string();
            assert!(why.contains(said) && why.contains("add secret_file"), "{why}");
            let secret = Some(b"0123456789abcdef".to_vec());
            assert!(Cluster { secret, ..cluster }.check_reach().is_ok());
        }
        assert!(Cluster::parse(&far("[::1]")).unwrap().check_reach().is_ok());
    }

    #[test]
    fn a_cluster_is_what_its_description_says() {
        let text = format!(
            "scheme = \"gts\"\nclients = 3\n{NODE}{ORACLE}[[table]]\nname = \"t\"\nindex = \"hash\"\n\
             groups = [\"a\", \"b\"]\npartition = {{ by = \"modulo\", bytes = 8 }}\n\
             [[table]]\nname = \"r\"\npartition = {{ by = \"range\", bytes = 8, span = 100 }}\n\
             [[table]]\nname = \"s\"\npartition = {{ by = \"spread\", bytes = 4, within = 2, parts = 3 }}\n"
        );
        let cluster = Cluster::parse(&text).unwrap();
        let placed: Vec<Partitioning> = cluster.tables.iter().map(|table| table.partitioning).collect();
        assert_eq!(
            placed[1..],
            [
                Partitioning::Range { bytes: 8, span: 100 },
                Partitioning::Spread { bytes: 4, within: 2, parts: 3 }
            ]
        );
        assert_eq!(Cluster::from_description(&cluster.description).unwrap(), cluster);
    }
}
