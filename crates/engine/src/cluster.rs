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
//! Left out: changing a cluster while it runs.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_runtime::real::{Address, Clock, Endpoint, Network, Role, SILENCE, resolve};
use plimsoll_txn::pairs::{Pair, PairError, Protocol, Scheme};
use plimsoll_txn::timestamp::OracleOptions;
use plimsoll_types::{IndexKind, Partitioning, TableSpec};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::SchemaError;
use crate::schema::{SHARDS_MAX, STALENESS_MAX, Schema};

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
    /// The tables.
    pub tables: Vec<TableSpec>,
    /// How far in the past a snapshot may begin.
    pub max_staleness: Duration,
    /// How many clients may be connected at a time.
    pub clients: usize,
    /// The cluster's secret, if it has one; known to its nodes and clients only.
    pub secret: Option<Vec<u8>>,
    /// The whole file except the secret, as JSON: what nodes tell clients.
    pub description: String,
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

/// The file, as it is written and as nodes send it to clients.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cluster: String,
    protocol: Option<String>,
    scheme: Option<String>,
    #[serde(default)]
    one_round: bool,
    secret_file: Option<PathBuf>,
    max_staleness_ms: Option<u64>,
    #[serde(default = "clients")]
    clients: usize,
    oracle: Option<OracleEntry>,
    #[serde(default)]
    node: Vec<NodeEntry>,
    #[serde(default)]
    table: Vec<TableEntry>,
}

fn clients() -> usize {
    64
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    id: u16,
    address: String,
    listen: Option<String>,
    http: Option<String>,
    #[serde(default = "one")]
    shards: usize,
}

fn one() -> usize {
    1
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OracleEntry {
    address: String,
    listen: Option<String>,
    http: Option<String>,
    batch: Option<bool>,
    compress: Option<bool>,
    prefetch: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableEntry {
    name: String,
    #[serde(default)]
    index: Index,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    partition: PartitionEntry,
    #[serde(default)]
    immutable: bool,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Index {
    Hash,
    #[default]
    Ordered,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    #[default]
    Hash,
    Modulo,
    Range,
    Spread,
    Everywhere,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionEntry {
    #[serde(default)]
    by: By,
    bytes: Option<u8>,
    span: Option<u64>,
    within: Option<u8>,
    parts: Option<u16>,
}

impl Cluster {
    /// Reads a file. The path of a `secret_file` is relative to it.
    pub fn read(path: &Path) -> Result<Cluster, ClusterError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ClusterError::Read(path.to_owned(), error))?;
        build(form(&text)?, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads what a node says of its cluster: [`Cluster::description`]. Nodes do not tell the
    /// secret.
    pub fn from_description(description: &str) -> Result<Cluster, ClusterError> {
        let file = serde_json::from_str(description);
        build(file.map_err(|error| ClusterError::Form(error.to_string()))?, Path::new(""))
    }

    /// The same cluster with the secret that is in a file.
    pub fn with_secret(self, path: &Path) -> Result<Cluster, ClusterError> {
        Ok(Cluster { secret: Some(secret(path)?), ..self })
    }

    /// Reads the text of a file. The path of a `secret_file` is relative to the working directory.
    pub fn parse(text: &str) -> Result<Cluster, ClusterError> {
        build(form(text)?, Path::new(""))
    }

    /// The configuration of a process with this clock. A client does not connect to nodes whose
    /// clocks are further off than the limit.
    pub(crate) fn network(&self, role: Role, clock: Clock, clock_limit: Option<Duration>) -> Network {
        let address =
            |node: &NodeConfig| Address { id: node.id, address: node.address.clone(), shards: node.shards };
        Network {
            cluster: self.id,
            role,
            nodes: self.processes().map(address).collect(),
            clients: self.clients,
            volatile: true,
            life: clock.now().0,
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

    /// Checks, before a node starts, that a cluster without a secret cannot be reached from other machines: any process
    /// that reaches one of its nodes can read and change everything.
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

/// Whether an address, or one that a name stands for, can be reached from other machines. A name
/// that has none at present is judged when it is dialed.
fn is_elsewhere(address: &Endpoint) -> bool {
    resolve(address).is_ok_and(|found| found.iter().any(|address| !address.ip().is_loopback()))
}

fn content<T>(sentence: String) -> Result<T, ClusterError> {
    Err(ClusterError::Content(sentence))
}

fn form(text: &str) -> Result<File, ClusterError> {
    toml::from_str(text).map_err(|error| ClusterError::Form(error.to_string()))
}

fn build(mut file: File, directory: &Path) -> Result<Cluster, ClusterError> {
    let secret_file = file.secret_file.take();
    let description = serde_json::to_string(&file).map_err(|error| ClusterError::Form(error.to_string()))?;
    if file.cluster.is_empty() {
        return content("a cluster needs a name: cluster = \"...\"".to_owned());
    }
    if !(1..=CLIENTS_MAX).contains(&file.clients) {
        return content(format!("clients = {}: give a number from 1 to {CLIENTS_MAX}", file.clients));
    }
    let pair = pair(file.protocol.as_deref(), file.scheme.as_deref())?;
    let default = if pair.has_staleness() { MAX_STALENESS } else { Duration::ZERO };
    let max_staleness = file.max_staleness_ms.map_or(default, Duration::from_millis);
    if max_staleness > STALENESS_MAX {
        return content(format!("max_staleness_ms: old versions can be kept for {STALENESS_MAX:?} at most"));
    }
    if !pair.has_staleness() && !max_staleness.is_zero() {
        return content(format!(
            "max_staleness_ms has no effect under {}: leave it out, or choose the scheme dst",
            pair.scheme
        ));
    }
    if file.one_round && pair != (Pair { protocol: Protocol::Occ, scheme: Scheme::Dst }) {
        return content(format!("one_round has no effect under {pair}: leave it out, or choose occ and dst"));
    }
    let oracle = oracle(file.oracle, pair)?;
    let mut schema = Schema::new();
    for entry in file.table {
        // An immutable table stays empty until its rows are loaded, while the cluster runs.
        schema.declare(table(entry)?).map_err(ClusterError::Table)?;
    }
    let secret = secret_file.map(|path| secret(&directory.join(path))).transpose()?;
    let nodes = nodes(file.node, oracle.as_ref().map(|oracle| &oracle.node))?;
    let mut cluster = Cluster {
        name: file.cluster,
        id: 0,
        nodes,
        oracle,
        pair,
        one_round: file.one_round,
        tables: schema.tables().to_vec(),
        max_staleness,
        clients: file.clients,
        secret,
        description,
    };
    cluster.id = checksum(&cluster);
    Ok(cluster)
}

fn pair(protocol: Option<&str>, scheme: Option<&str>) -> Result<Pair, PairError> {
    let protocol = protocol.map_or(Ok(Protocol::default()), Protocol::named)?;
    let scheme = scheme.map_or(Ok(Scheme::default()), Scheme::named)?;
    Pair { protocol, scheme }.interactive()
}

fn oracle(entry: Option<OracleEntry>, pair: Pair) -> Result<Option<OracleConfig>, ClusterError> {
    let scheme = pair.scheme;
    let Some(OracleEntry { address, listen, http, batch, compress, prefetch }) = entry else {
        return match pair.has_oracle() {
            true => content(format!(
                "scheme = \"{scheme}\" needs an oracle: add [oracle] with its address, and run it as well"
            )),
            false => Ok(None),
        };
    };
    if !pair.has_oracle() {
        return content(format!(
            "nobody asks an [oracle] under {scheme}: leave it out, or choose the scheme gts or vts"
        ));
    }
    if compress.is_some() && scheme != Scheme::Vts {
        return content(format!("compress has no effect under {scheme}: leave it out"));
    }
    let defaults = OracleOptions::default();
    let options = OracleOptions {
        batch: batch.unwrap_or(defaults.batch),
        compress: compress.unwrap_or(defaults.compress),
        prefetch: prefetch.unwrap_or(defaults.prefetch),
    };
    let node = node_config(ORACLE_ID, &address, listen.as_deref(), http.as_deref(), 1)?;
    Ok(Some(OracleConfig { node, options }))
}

/// A process, with addresses as the file says them.
fn node_config(
    id: u16,
    address: &str,
    listen: Option<&str>,
    http: Option<&str>,
    shards: usize,
) -> Result<NodeConfig, ClusterError> {
    let read = |key: &str, text: &str| {
        let wrong = |error| {
            let who = if id == ORACLE_ID { "the oracle".to_owned() } else { format!("node {id}") };
            ClusterError::Content(format!("{who}: {key} = {error}"))
        };
        text.parse::<Endpoint>().map_err(wrong)
    };
    Ok(NodeConfig {
        id,
        address: read("address", address)?,
        listen: read("listen", listen.unwrap_or(address))?,
        http: http.map(|http| read("http", http)).transpose()?,
        shards,
    })
}

fn nodes(entries: Vec<NodeEntry>, oracle: Option<&NodeConfig>) -> Result<Vec<NodeConfig>, ClusterError> {
    let node = |NodeEntry { id, address, listen, http, shards }: NodeEntry| {
        node_config(id, &address, listen.as_deref(), http.as_deref(), shards)
    };
    let mut nodes = entries.into_iter().map(node).collect::<Result<Vec<NodeConfig>, ClusterError>>()?;
    nodes.sort_by_key(|node| node.id);
    if nodes.is_empty() {
        return content("a cluster needs at least one [[node]]".to_owned());
    }
    for pair in nodes.windows(2) {
        if pair[0].id == pair[1].id {
            return content(format!("two nodes have the number {}", pair[0].id));
        }
    }
    if let Some(node) = nodes.iter().find(|node| node.id == ORACLE_ID) {
        return content(format!("the number {} stands for the oracle: give the node another", node.id));
    }
    let all: Vec<&NodeConfig> = nodes.iter().chain(oracle).collect();
    for (place, node) in all.iter().enumerate() {
        if node.shards == 0 {
            return content(format!("{node} has no shards"));
        }
        for (key, address) in said(node) {
            if address.port() == 0 || address.is_unspecified() {
                return content(format!(
                    "{node}: nobody can reach {key} = {address}; give the address that others see"
                ));
            }
            let has = |other: &NodeConfig| said(other).any(|(_, taken)| taken == address);
            if let Some(other) = all[..place].iter().find(|other| has(other)) {
                return content(format!("{other} and {node} both have the address {address}"));
            }
        }
        let taken = |http: &&Endpoint| overlap(&node.listen, http) || node.address == **http;
        if let Some(http) = node.http.as_ref().filter(taken) {
            return content(format!(
                "{node} cannot answer over HTTP where it talks to others: give http = {http} another port"
            ));
        }
    }
    let shards = nodes.iter().fold(0, |sum: usize, node| sum.saturating_add(node.shards));
    if shards > SHARDS_MAX {
        return content(format!("{shards} shards are too many: at most {SHARDS_MAX}"));
    }
    Ok(nodes)
}

/// The addresses at which others reach a process, with their keys in the file.
fn said(node: &NodeConfig) -> impl Iterator<Item = (&'static str, &Endpoint)> {
    let http = node.http.as_ref().map(|address| ("http", address));
    [("address", &node.address)].into_iter().chain(http)
}

/// Whether a process that listens on the first address occupies the second.
fn overlap(first: &Endpoint, second: &Endpoint) -> bool {
    first == second || first.port() == second.port() && first.is_unspecified()
}

fn table(entry: TableEntry) -> Result<TableSpec, ClusterError> {
    let index = match entry.index {
        Index::Hash => IndexKind::Hash,
        Index::Ordered => IndexKind::Ordered,
    };
    let PartitionEntry { by, bytes, span, within, parts } = entry.partition;
    let (partitioning, takes): (_, &[&str]) = match by {
        By::Hash => (Partitioning::Hash { bytes: bytes.unwrap_or(0) }, &["bytes"]),
        By::Modulo => (Partitioning::Modulo { bytes: bytes.unwrap_or(0) }, &["bytes"]),
        By::Range => {
            let (bytes, span) = (bytes.unwrap_or(0), span.unwrap_or(0));
            (Partitioning::Range { bytes, span }, &["bytes", "span"])
        }
        By::Spread => {
            let (bytes, within, parts) = (bytes.unwrap_or(0), within.unwrap_or(0), parts.unwrap_or(0));
            (Partitioning::Spread { bytes, within, parts }, &["bytes", "within", "parts"])
        }
        By::Everywhere => (Partitioning::Everywhere, &[]),
    };
    let given = [
        ("bytes", bytes.is_some()),
        ("span", span.is_some()),
        ("within", within.is_some()),
        ("parts", parts.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(key, given)| *given && !takes.contains(key)) {
        return content(format!(
            "table {:?}: {key} has no meaning there; leave {key} out, or partition it by another rule",
            entry.name
        ));
    }
    let mut spec = TableSpec::new(&entry.name, index, partitioning);
    if !entry.groups.is_empty() {
        spec.groups = entry.groups;
    }
    spec.immutable = entry.immutable;
    Ok(spec)
}

/// The part of a file that describes these tables: `[[table]]` entries, to be appended to the rest
/// of it.
///
/// ```
/// use plimsoll_engine::{Cluster, describe_tables};
/// use plimsoll_types::{IndexKind, Partitioning, TableSpec};
///
/// let items = TableSpec::new("item", IndexKind::Hash, Partitioning::Everywhere).immutable();
/// let file = "cluster = \"shop\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7401\"\n".to_owned();
/// assert_eq!(Cluster::parse(&(file + &describe_tables(&[items.clone()])))?.tables, [items]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn describe_tables(tables: &[TableSpec]) -> String {
    // A string of JSON is one of TOML, but for one character.
    let quoted = |text: &str| serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f");
    let mut text = String::new();
    for TableSpec { name, index, groups, partitioning, immutable } in tables {
        let index = match index {
            IndexKind::Hash => "hash",
            IndexKind::Ordered => "ordered",
        };
        let partition = match partitioning {
            Partitioning::Hash { bytes } => format!("by = \"hash\", bytes = {bytes}"),
            Partitioning::Modulo { bytes } => format!("by = \"modulo\", bytes = {bytes}"),
            Partitioning::Range { bytes, span } => format!("by = \"range\", bytes = {bytes}, span = {span}"),
            Partitioning::Spread { bytes, within, parts } => {
                format!("by = \"spread\", bytes = {bytes}, within = {within}, parts = {parts}")
            }
            Partitioning::Everywhere => "by = \"everywhere\"".to_owned(),
        };
        text += &format!("\n[[table]]\nname = {}\nindex = \"{index}\"\n", quoted(name));
        if groups != &TableSpec::new(name, IndexKind::Hash, Partitioning::Everywhere).groups {
            let groups: Vec<String> = groups.iter().map(|group| quoted(group)).collect();
            text += &format!("groups = [{}]\n", groups.join(", "));
        }
        text += &format!("partition = {{ {partition} }}\n");
        if *immutable {
            text += "immutable = true\n";
        }
    }
    text
}

/// Bits of a file's mode by which others than its owner and its group read it, or others than its
/// owner write it.
const TOO_OPEN: u32 = 0o027;

fn secret(path: &Path) -> Result<Vec<u8>, ClusterError> {
    let place = path.display();
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|mut file| {
        file.read_to_end(&mut bytes)?;
        Ok(file.metadata()?.permissions().mode())
    });
    let mode = match read {
        Ok(mode) => mode,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return content(format!(
                "there is no secret in {place}: make one with `plimsoll secret {place}`"
            ));
        }
        Err(error) => return Err(ClusterError::Read(path.to_owned(), error)),
    };
    if mode & TOO_OPEN != 0 {
        return content(format!(
            "{place}: other users of this machine can read or change the secret; close it with `chmod 600 {place}`"
        ));
    }
    // Editors end the line.
    let secret = bytes.trim_ascii_end().to_vec();
    match secret.len() {
        16.. => Ok(secret),
        n => content(format!(
            "{place}: a secret of {n} bytes can be guessed; give 16 or more, as `plimsoll secret` makes them"
        )),
    }
}

/// A checksum of all that nodes and clients must agree on. Addresses are not part of it: they may
/// differ from machine to machine.
fn checksum(cluster: &Cluster) -> u64 {
    let nodes: Vec<_> = cluster.nodes.iter().map(|node| (node.id, node.shards)).collect();
    let Cluster { name, pair, one_round, oracle, tables, max_staleness, clients, .. } = cluster;
    let oracle = oracle.as_ref().map(|oracle| oracle.options);
    let text =
        format!("{name:?} {pair} {one_round} {oracle:?} {nodes:?} {tables:?} {max_staleness:?} {clients}");
    let digest = Sha256::digest(text.as_bytes());
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7001\"\n";

    const HTTP: &str =
        "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7001\"\nhttp = \"127.0.0.1:8001\"\n";

    const ORACLE: &str = "[oracle]\naddress = \"127.0.0.1:7009\"\n";

    fn refused(text: &str) -> String {
        Cluster::parse(text).expect_err("it describes no cluster").to_string()
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let cluster = Cluster::parse(&format!("{NODE}[[table]]\nname = \"t\"\n")).unwrap();
        assert_eq!((cluster.clients, cluster.max_staleness, &cluster.secret), (64, MAX_STALENESS, &None));
        let node = cluster.node(1).unwrap();
        assert_eq!((node.shards, &node.listen, &node.http), (1, &node.address, &None));
        let without = Cluster::parse(&format!("scheme = \"none\"\n{NODE}")).unwrap();
        assert_eq!(without.max_staleness, Duration::ZERO, "no snapshot begins in the past");
        assert_eq!(cluster.tables[0].index, IndexKind::Ordered);
        assert_eq!(cluster.tables[0].partitioning, Partitioning::Hash { bytes: 0 });
        assert_eq!(cluster.tables[0].groups, ["row"]);
    }

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
    fn nonsense_is_refused_with_a_sentence() {
        for (text, word) in [
            ("", "cluster"),
            ("cluster = 3", "string"),
            ("cluster = \"c\"", "[[node]]"),
            (&NODE.replace("\"c\"", "\"\""), "needs a name"),
            (&format!("{NODE}colour = \"red\"\n"), "colour"),
            (&format!("{NODE}shards = 0\n"), "no shards"),
            (&format!("{NODE}shards = 100000\n"), "too many"),
            (&NODE.replace("7001", "0"), "nobody can reach"),
            (&NODE.replace("127.0.0.1", "0.0.0.0"), "nobody can reach"),
            (
                &NODE.replace("127.0.0.1:7001", "localhost"),
                "node 1: address = `localhost`: the port is missing",
            ),
            (
                &format!("{NODE}http = \"::1:8001\"\n"),
                "node 1: http = `::1:8001`: an IPv6 address stands in brackets",
            ),
            (&format!("{NODE}[[node]]\nid = 1\naddress = \"127.0.0.1:7002\"\n"), "number 1"),
            (&format!("{NODE}[[node]]\nid = 2\naddress = \"127.0.0.1:7001\"\n"), "both have the address"),
            (&format!("{NODE}http = \"0.0.0.0:8001\"\n"), "nobody can reach http = 0.0.0.0:8001"),
            (&format!("{NODE}http = \"127.0.0.1:0\"\n"), "nobody can reach http = 127.0.0.1:0"),
            (&format!("{NODE}http = \"127.0.0.1:7001\"\n"), "give http = 127.0.0.1:7001 another port"),
            (
                &format!("{NODE}listen = \"0.0.0.0:7000\"\nhttp = \"127.0.0.1:7000\"\n"),
                "give http = 127.0.0.1:7000 another port",
            ),
            (
                &format!("{HTTP}[[node]]\nid = 2\naddress = \"127.0.0.1:7002\"\nhttp = \"127.0.0.1:8001\"\n"),
                "node 1 and node 2 both have the address 127.0.0.1:8001",
            ),
            (
                &format!("{HTTP}[[node]]\nid = 2\naddress = \"127.0.0.1:8001\"\n"),
                "node 1 and node 2 both have",
            ),
            (
                &format!("{NODE}[[node]]\nid = 2\naddress = \"127.0.0.1:7002\"\nhttp = \"127.0.0.1:7001\"\n"),
                "node 1 and node 2 both have",
            ),
            (
                &format!("scheme = \"gts\"\n{NODE}{ORACLE}http = \"127.0.0.1:7009\"\n"),
                "the oracle cannot answer over HTTP",
            ),
            (&format!("clients = 0\n{NODE}"), "clients"),
            (&format!("max_staleness_ms = 99999999999\n{NODE}"), "max_staleness_ms"),
            (
                &format!("protocol = \"mvcc\"\n{NODE}"),
                "no protocol `mvcc`: the protocols are occ, two_pl, client_2pc and rococo",
            ),
            (&format!("scheme = \"hlc\"\n{NODE}"), "the schemes are dst, gts, vts, rc and none"),
            (&format!("scheme = \"rc\"\nmax_staleness_ms = 5\n{NODE}"), "no effect under rc"),
            (&format!("workload = \"tpcc\"\n{NODE}"), "workload"),
            (&format!("protocol = \"two_pl\"\none_round = true\n{NODE}"), "no effect under two_pl/dst"),
            (
                &format!("{NODE}[[table]]\nname = \"t\"\npartition = {{ by = \"everywhere\", bytes = 8 }}\n"),
                "leave bytes out",
            ),
            (
                &format!("{NODE}[[table]]\nname = \"t\"\npartition = {{ by = \"hash\", span = 8 }}\n"),
                "leave span out",
            ),
            (
                &format!("{NODE}[[table]]\nname = \"t\"\npartition = {{ by = \"range\", bytes = 8 }}\n"),
                "choose a span",
            ),
            (
                &format!(
                    "{NODE}[[table]]\nname = \"t\"\npartition = {{ by = \"spread\", within = 4, parts = 3 }}\n"
                ),
                "has 0 bytes",
            ),
            (&format!("scheme = \"gts\"\n{NODE}"), "needs an oracle: add [oracle]"),
            (&format!("{NODE}{ORACLE}"), "nobody asks an [oracle] under dst"),
            (&format!("scheme = \"vts\"\n{NODE}"), "needs an oracle: add [oracle]"),
            (&format!("scheme = \"gts\"\n{NODE}{ORACLE}compress = true\n"), "no effect under gts"),
            (
                &format!("scheme = \"gts\"\n{NODE}{}", ORACLE.replace("7009", "7001")),
                "node 1 and the oracle both have",
            ),
            (
                &format!("scheme = \"gts\"\n{}{ORACLE}", NODE.replace("id = 1", "id = 65535")),
                "for the oracle",
            ),
            (&format!("secret_file = \"/nowhere/at/all\"\n{NODE}"), "/nowhere/at/all"),
            (&format!("{NODE}[[table]]\nname = \"\"\n"), "needs a name"),
            (&format!("{NODE}[[table]]\nname = \"t\"\nindex = \"heap\"\n"), "heap"),
            (&format!("{NODE}[[table]]\nname = \"t\"\npartition = {{ by = \"modulo\" }}\n"), "partition key"),
        ] {
            assert!(refused(text).contains(word), "{text:?}: {}", refused(text));
        }
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
    fn hosts_have_names_or_addresses_wherever_an_address_may_stand() {
        let text = "scheme = \"gts\"\ncluster = \"c\"\n[oracle]\naddress = \"time.example:1\"\nhttp = \"[::1]:2\"\n\
                    [[node]]\nid = 1\naddress = \"db1.example:7001\"\nlisten = \"localhost:7001\"\n\
                    http = \"DB1.example:8001\"\n";
        let cluster = Cluster::parse(text).unwrap();
        let node = cluster.node(1).unwrap();
        let http = node.http.as_ref().unwrap();
        let all = [&node.address, &node.listen, http].map(|address| address.to_string());
        assert_eq!(all, ["db1.example:7001", "localhost:7001", "db1.example:8001"]);
        assert_eq!(Cluster::from_description(&cluster.description).unwrap(), cluster);
        let twice = format!("{text}[[node]]\nid = 2\naddress = \"DB1.EXAMPLE:7001\"\n");
        assert!(refused(&twice).contains("node 1 and node 2 both have the address db1.example:7001"));
        // Without a secret a name is judged by what it stands for.
        let named = |name: &str| Cluster::parse(&NODE.replace("127.0.0.1", name)).unwrap().check_reach();
        assert!(named("localhost").is_ok());
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

    #[test]
    fn tables_are_what_their_description_says() {
        let odd = TableSpec::new("a \"b\"\\\n\u{7f}é", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
        let mut tables = vec![odd];
        for partitioning in [
            Partitioning::Hash { bytes: 12 },
            Partitioning::Modulo { bytes: 8 },
            Partitioning::Range { bytes: 8, span: u64::from(u32::MAX) },
            Partitioning::Spread { bytes: 4, within: 2, parts: 3 },
            Partitioning::Everywhere,
        ] {
            for index in [IndexKind::Hash, IndexKind::Ordered] {
                let spec = |number: usize| TableSpec::new(&format!("t{number}"), index, partitioning);
                tables.push(spec(tables.len()).with_groups(&["only \t one"]));
                tables.push(spec(tables.len()).with_groups(&["a", "b", "\""]).immutable());
            }
        }
        let cluster = Cluster::parse(&format!("{NODE}{}", describe_tables(&tables))).unwrap();
        assert_eq!(cluster.tables, tables);
        let again = Cluster::from_description(&cluster.description).unwrap();
        assert_eq!(again, cluster, "and nodes tell clients so");
    }

    #[test]
    fn a_secret_is_found_beside_the_file_and_is_not_short() {
        let directory = std::env::temp_dir().join(format!("plimsoll-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("cluster.toml");
        std::fs::write(&path, format!("secret_file = \"secret\"\n{NODE}")).unwrap();
        let why = Cluster::read(&path).unwrap_err().to_string();
        assert!(why.contains("make one with `plimsoll secret "), "{why}");
        std::fs::write(directory.join("secret"), "0123456789abcdef\n").unwrap();
        let set_mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.join("secret"), permissions).unwrap();
        };
        for open in [0o644, 0o604, 0o602, 0o660, 0o666, 0o777, 0o620] {
            set_mode(open);
            let why = Cluster::read(&path).unwrap_err().to_string();
            assert!(why.contains("close it with `chmod 600 "), "{open:o}: {why}");
        }
        for closed in [0o600, 0o400, 0o640, 0o440] {
            set_mode(closed);
            assert_eq!(Cluster::read(&path).unwrap().secret.unwrap(), b"0123456789abcdef");
        }
        set_mode(0o600);
        std::fs::write(directory.join("secret"), "short\n").unwrap();
        let why = Cluster::read(&path).unwrap_err().to_string();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(why.contains("5 bytes"), "{why}");
    }
}
