//! The flags of `plimsoll start`, `plimsoll status` and `plimsoll move`, and what they come to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plimsoll_args::pairs::{protocol, scheme};
use plimsoll_args::{JsonOutput, Refusal, duration, json_output, range, refuse, size};
use plimsoll_engine::{Cluster, Durability, NodeConfig, OpenError, machine};
use plimsoll_page::help;
use plimsoll_runtime::real::Endpoint;
use plimsoll_txn::pairs::{Pair, Protocol, Scheme};
use plimsoll_types::SLOTS;
use serde_json::Value;

/// The flags of `plimsoll start`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!("{FILE}\n\n{}", help::examples(START_EXAMPLES)))]
pub struct StartArgs {
    /// The file that describes the cluster; the same for all nodes and clients. Without one, flags
    /// do.
    pub file: Option<PathBuf>,
    /// The number of this node [default: the only one of the file; without a file 1].
    #[arg(long, value_name = "ID")]
    pub node: Option<u16>,
    /// A directory of this node alone, in which it keeps what is committed: a node that is started
    /// again with it has what it had, however it ended. The cluster's file says
    /// `durability = "sync"` or "async" then; without a file --durability is sync.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// What outlives a node: nothing (none); what was committed, but for the last tenth of a
    /// second, which is faster, and of which all nodes go back when one comes back (async); or what
    /// was committed (sync). The same on all nodes [default: what the file says; without a file
    /// sync if there is a --data-dir, else none].
    #[arg(long, value_enum, value_name = "none|async|sync", hide_possible_values = true)]
    pub durability: Option<Survives>,
    /// What its data may take, such as 8GB [default: 80 % of the memory that the process may use].
    /// Then writes are refused, while reads and deletions go on.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Where clients of PostgreSQL connect, such as 127.0.0.1:5432: psql, drivers, pgbench. The
    /// node trusts all of them, so only a loopback address will do. For occ and two_pl under dst.
    #[cfg(feature = "sql")]
    #[arg(long, value_name = "HOST:PORT")]
    pub sql: Option<Endpoint>,
    /// What the file would say.
    #[command(flatten)]
    pub described: Described,
    /// What this process is: a node that holds data, or the timestamp oracle of a cluster under gts
    /// or vts [default: node].
    #[arg(
        long,
        value_enum,
        value_name = "node|oracle",
        default_value = "node",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub role: ProcessRole,
    /// How standard error is written: text for people, or one JSON object per line. What is logged
    /// is set by PLIMSOLL_LOG, for example `debug`.
    #[arg(
        long,
        value_enum,
        value_name = "text|json",
        default_value = "text",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub log: LogFormat,
}

/// What a file would say.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Without a file")]
pub struct Described {
    /// A table, and how it is looked up: `account:hash`, or `entry`, which is ordered. May be given
    /// again.
    #[arg(long = "table", value_name = "NAME[:hash|ordered]", conflicts_with = "file")]
    pub tables: Vec<String>,
    /// Where clients and other nodes reach this one: a host, by its address or its name, and a port
    /// [default: 127.0.0.1:7401].
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "file")]
    pub listen: Option<Endpoint>,
    /// What others call that address, if they see another [default: the same].
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "file")]
    pub advertise: Option<Endpoint>,
    /// Where it answers over HTTP how it is, and clients ask for its cluster [default:
    /// 127.0.0.1:8401].
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "file")]
    pub http: Option<Endpoint>,
    /// Threads that own its data; with --peers, the same number on all nodes [default: one per
    /// core but one, which the network, the log and clients on the same machine have use for; at
    /// least one].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    pub shards: Option<usize>,
    /// The other nodes of the cluster, and where they listen. All nodes are told the same, each of
    /// the others.
    #[arg(
        long,
        value_name = "ID=HOST:PORT,...",
        value_delimiter = ',',
        conflicts_with = "file",
        requires = "node"
    )]
    pub peers: Vec<String>,
    /// The name of the cluster [default: plimsoll].
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub cluster: Option<String>,
    /// A secret of 16 bytes or more, as `plimsoll secret` makes it, without which nodes stay on
    /// loopback addresses.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub secret_file: Option<PathBuf>,
    /// How far in the past a snapshot may begin: every version is kept this long after it was
    /// overwritten [default: 1s under dst].
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "file")]
    pub max_staleness: Option<Duration>,
    /// Concurrency-control protocol [default: occ].
    #[arg(long, value_parser = protocol(), conflicts_with = "file")]
    pub protocol: Option<Protocol>,
    /// Timestamp scheme [default: dst].
    #[arg(long, value_parser = scheme(), conflicts_with = "file")]
    pub scheme: Option<Scheme>,
}

/// What a process is to its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProcessRole {
    /// It holds data.
    Node,
    /// It gives out timestamps.
    Oracle,
}

/// What outlives a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Survives {
    /// Nothing.
    None,
    /// What was committed up to a tenth of a second ago.
    Async,
    /// What was committed.
    Sync,
}

impl From<Survives> for Durability {
    fn from(said: Survives) -> Durability {
        match said {
            Survives::None => Durability::None,
            Survives::Async => Durability::Async,
            Survives::Sync => Durability::Sync,
        }
    }
}

/// How logs are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object per line.
    Json,
}

/// The flags of `plimsoll status`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!("Exit status: 0 all nodes are up and connected; 1 some are not; 2 bad usage.\n\n{}", help::examples(STATUS_EXAMPLES)))]
pub struct StatusArgs {
    /// The file that describes the cluster, or the HTTP addresses of some of its nodes with commas
    /// between them.
    #[arg(value_name = "FILE|HOST:PORT,...")]
    pub cluster: String,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
}

/// The flags of `plimsoll move`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!("Exit status: 0 all of them are there; 1 interrupted, or some were in use all the time; 2 bad usage.\n\n{}", help::examples(MOVE_EXAMPLES)))]
pub struct MoveArgs {
    /// The file that describes the cluster, or the HTTP addresses of some of its nodes with commas
    /// between them.
    #[arg(value_name = "FILE|HOST:PORT,...")]
    pub cluster: String,
    /// The slots, from A up to, but not including, B; of 0..4096.
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub slots: Range<u64>,
    /// The number of the shard that is to have them. Shards are numbered over all nodes, those of
    /// the first node first.
    #[arg(long, value_name = "SHARD")]
    pub to: u16,
    /// The secret of the cluster, if addresses are given.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes
    /// there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
}

const FILE: &str = "The file:
  cluster = \"bank\"
  secret_file = \"bank.secret\"   # by `plimsoll secret`; loopback only without
  protocol = \"occ\"              # or two_pl, client_2pc
  scheme = \"dst\"                # or gts, vts, none, or rc, NOT serializable
  durability = \"none\"           # or sync, async: each node has a --data-dir
  max_staleness_ms = 1000       # how old a snapshot may be, under dst

  [oracle]                      # under gts and vts: a process of its own
  address = \"127.0.0.1:7400\"
  http = \"127.0.0.1:8400\"
  batch = true                  # one message for all that a shard has ready
  prefetch = false              # snapshots ahead of their use: staler, and
                                # they outlive a dead oracle
  [[node]]
  id = 1
  address = \"127.0.0.1:7401\"    # where others reach it; or a host's name
  listen = \"0.0.0.0:7401\"       # if it listens elsewhere
  http = \"127.0.0.1:8401\"       # /health, /ready, /metrics, /status
  shards = 1                    # threads that own its data

  [[table]]
  name = \"account\"
  index = \"hash\"                # or ordered, the default: for scans
  groups = [\"owner\", \"balance\"] # column groups; one by default
  partition = { by = \"hash\", bytes = 8 }
                                # rows with equal first bytes live together;
                                # by default each for itself
  immutable = false             # true: its rows are loaded once, never written";
const START_EXAMPLES: &[(&str, &str)] = &[
    (
        "plimsoll start --table account:hash --table entry",
        "A whole database in one process, on 127.0.0.1:7401 and, for HTTP, 127.0.0.1:8401.",
    ),
    (
        "plimsoll start --node 1 --peers 2=10.0.0.2:7401 --listen 10.0.0.1:7401 --secret-file s --shards 4 --table account",
        "One of two nodes without a file; the other is told --node 2 --peers 1=10.0.0.1:7401, and all else alike.",
    ),
    ("plimsoll start bank.toml --node 1", ""),
    ("plimsoll start bank.toml --role oracle", ""),
    ("PLIMSOLL_LOG=debug plimsoll start bank.toml --node 1 --log json 2> node1.log", ""),
];

const STATUS_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll status bank.toml", ""),
    ("plimsoll status localhost:8401", ""),
    ("plimsoll status bank.toml --json", ""),
];

const MOVE_EXAMPLES: &[(&str, &str)] = &[
    ("plimsoll move bank.toml --slots 0..1024 --to 1", ""),
    ("plimsoll move 127.0.0.1:8401 --slots 7..8 --to 0 --json", ""),
];

/// A node to run.
#[derive(Clone, Debug)]
pub struct StartPlan {
    /// The cluster that it belongs to.
    pub cluster: Cluster,
    /// The node.
    pub node: NodeConfig,
    /// The directory in which it keeps what is committed.
    pub data_dir: Option<PathBuf>,
    /// Bytes that its data may take.
    pub memory: u64,
    /// Where clients of PostgreSQL connect.
    pub sql: Option<Endpoint>,
    /// How logs are written.
    pub log: LogFormat,
}

/// Slots to move.
#[derive(Clone, Debug)]
pub struct MovePlan {
    /// The cluster.
    pub cluster: Cluster,
    /// The slots.
    pub slots: Range<u16>,
    /// Where to.
    pub to: u16,
    /// Where the JSON document goes.
    pub json: JsonOutput,
}

/// A cluster to look at.
#[derive(Clone, Debug)]
pub struct StatusPlan {
    /// The cluster.
    pub cluster: Cluster,
    /// Where some of its nodes answer, besides those whose addresses it knows.
    pub addresses: Vec<Endpoint>,
    /// Where the JSON document goes.
    pub json: JsonOutput,
}

impl StartArgs {
    /// Reads the file, or what flags say instead, and finds the node.
    pub fn validate(self, cores: usize) -> Result<StartPlan, Refusal> {
        let (cluster, place) = match &self.file {
            Some(file) => (read(&file.to_string_lossy())?, file.display().to_string()),
            None => {
                let sync = self.data_dir.is_some().then_some(Durability::Sync);
                let durability = self.durability.map(Durability::from).or(sync).unwrap_or_default();
                let node = self.node.unwrap_or(1);
                let is_for_sql = self.sql().is_some();
                (self.described.cluster(node, cores, durability, is_for_sql)?, "the command line".to_owned())
            }
        };
        let is = cluster.durability;
        match (self.durability.map(Durability::from), &self.data_dir) {
            (Some(said), _) if said != is => refuse!(
                "--durability {said}: {place} says durability = \"{is}\", for all nodes; change it there, or leave the flag \
                 out"
            ),
            (_, Some(_)) if is == Durability::None && self.file.is_some() => refuse!(
                "--data-dir: {place} does not say that nodes keep what is committed; write durability = \"sync\" into it, \
                 or leave the flag out"
            ),
            (_, Some(_)) if is == Durability::None => {
                refuse!("--durability none keeps nothing: leave it or --data-dir out")
            }
            (_, None) if is != Durability::None => {
                refuse!(
                    "nodes of this cluster keep what is committed: give this one a directory of its own with --data-dir"
                )
            }
            _ => {}
        }
        let memory = self.memory.unwrap_or_else(machine::data_bytes);
        cluster.check_reach().map_err(|error| Refusal::from(error.to_string()))?;
        if self.role == ProcessRole::Oracle {
            let Some(oracle) = &cluster.oracle else {
                refuse!(
                    "{place} has no [oracle], and needs none under {}: run its nodes with --node",
                    cluster.pair.scheme
                );
            };
            if let Some(node) = self.node {
                refuse!("--role oracle is not node {node}: leave --node out");
            }
            let node = oracle.node.clone();
            if self.sql().is_some() {
                refuse!("--role oracle has no data to ask for: give --sql to the nodes");
            }
            return Ok(StartPlan {
                node,
                cluster,
                data_dir: self.data_dir,
                memory,
                sql: None,
                log: self.log,
            });
        }
        let ids: Vec<String> = cluster.nodes.iter().map(|node| node.id.to_string()).collect();
        let ids = ids.join(", ");
        let node = match (self.node, &cluster.nodes[..]) {
            (None, [only]) => only.clone(),
            (None, _) => refuse!("which node is this? give --node with one of {ids}"),
            (Some(id), _) => match cluster.node(id) {
                Some(node) => node.clone(),
                None => refuse!("{place} has no node {id}, only {ids}"),
            },
        };
        let sql = self.sql();
        if sql.is_some() && !cluster.pair.has_sql() {
            refuse!(
                "--sql: there is no SQL under {}: leave it out, or choose occ or two_pl, and dst, for the cluster",
                cluster.pair
            );
        }
        Ok(StartPlan { cluster, node, data_dir: self.data_dir, memory, sql, log: self.log })
    }

    /// Where clients of PostgreSQL connect.
    fn sql(&self) -> Option<Endpoint> {
        #[cfg(feature = "sql")]
        return self.sql.clone();
        #[cfg(not(feature = "sql"))]
        None
    }
}

/// Where a node listens that is told nothing else, and where it answers over HTTP.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7401);
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8401);

impl Described {
    /// The cluster that a file with the same content would describe, checked in the same way.
    /// Tables of SQL need not be described.
    fn cluster(
        &self,
        node: u16,
        cores: usize,
        durability: Durability,
        is_for_sql: bool,
    ) -> Result<Cluster, Refusal> {
        if self.tables.is_empty() && !is_for_sql {
            refuse!(
                "a node needs tables: give some, such as --table account:hash --table entry, or a file that describes the \
                 cluster"
            );
        }
        let pair =
            Pair { protocol: self.protocol.unwrap_or_default(), scheme: self.scheme.unwrap_or_default() };
        if pair.has_oracle() {
            refuse!("--scheme {} needs an oracle, and only a file can name one: write a file", pair.scheme);
        }
        let listen = self.listen.clone().unwrap_or(LISTEN.into());
        let address = self.advertise.as_ref().unwrap_or(&listen);
        if address.is_unspecified() {
            refuse!("nobody can reach {address}: add --advertise with the address that others see");
        }
        let shards = self.shards.unwrap_or(cores.saturating_sub(1).max(1));
        // A string of JSON is one of TOML.
        let mut text = format!(
            "cluster = {}\nprotocol = \"{}\"\nscheme = \"{}\"\ndurability = \"{durability}\"\n",
            Value::from(self.cluster.as_deref().unwrap_or("plimsoll")),
            pair.protocol,
            pair.scheme
        );
        if let Some(path) = &self.secret_file {
            text += &format!("secret_file = {}\n", Value::from(path.to_string_lossy()));
        }
        if let Some(time) = self.max_staleness {
            if !time.subsec_nanos().is_multiple_of(1_000_000) {
                refuse!("--max-staleness {time:?} has fractions of a millisecond: give whole milliseconds");
            }
            text += &format!("max_staleness_ms = {}\n", time.as_millis());
        }
        text += &format!(
            "[[node]]\nid = {node}\naddress = \"{address}\"\nlisten = \"{listen}\"\nhttp = \"{}\"\nshards = {shards}\n",
            self.http.clone().unwrap_or(HTTP.into())
        );
        for peer in &self.peers {
            let parts = peer.split_once('=');
            let Some((Ok(id), Ok(address))) =
                parts.map(|(id, address)| (id.trim().parse::<u16>(), address.trim().parse::<Endpoint>()))
            else {
                refuse!("--peers {peer}: write ID=HOST:PORT for each of the others, such as 2=10.0.0.2:7401");
            };
            text += &format!("[[node]]\nid = {id}\naddress = \"{address}\"\nshards = {shards}\n");
        }
        for table in &self.tables {
            let (name, index) = table.split_once(':').unwrap_or((table, "ordered"));
            if !["hash", "ordered"].contains(&index) {
                refuse!("--table {table}: a table is `hash` or `ordered`, not `{index}`");
            }
            text += &format!("[[table]]\nname = {}\nindex = \"{index}\"\n", Value::from(name));
        }
        Cluster::parse(&text).map_err(|error| Refusal::from(error.to_string()))
    }
}

impl StatusArgs {
    /// Reads the file.
    pub fn validate(self) -> Result<StatusPlan, Refusal> {
        let addresses = plimsoll::addresses(&self.cluster).unwrap_or_default();
        Ok(StatusPlan { cluster: read(&self.cluster)?, addresses, json: json_output(self.json.as_ref())? })
    }
}

impl MoveArgs {
    /// Reads the file, and looks whether there are such slots and such a shard.
    pub fn validate(self) -> Result<MovePlan, Refusal> {
        let Range { start, end } = self.slots;
        if start >= end || end > SLOTS as u64 {
            refuse!(
                "--slots {start}..{end}: slots are numbered from 0 to {}; give A..B with A < B <= {SLOTS}",
                SLOTS - 1
            );
        }
        let cluster = plimsoll::find(&self.cluster, self.secret_file.as_deref());
        let cluster = cluster.map_err(|error| Refusal::from(error.to_string()))?;
        let shards: usize = cluster.nodes.iter().map(|node| node.shards).sum();
        if usize::from(self.to) >= shards {
            refuse!(
                "--to {}: there is no such shard; the cluster has 0 to {}",
                self.to,
                shards.saturating_sub(1)
            );
        }
        let (slots, json) = (start as u16..end as u16, json_output(self.json.as_ref())?);
        Ok(MovePlan { cluster, slots, to: self.to, json })
    }
}

/// Why a client cannot connect, with the flag that is missing.
pub fn in_flags(error: OpenError) -> String {
    match error {
        OpenError::NoSecret => {
            "the cluster has a secret, and this client was told none: give its file with --secret-file"
                .to_owned()
        }
        error => error.to_string(),
    }
}

fn read(place: &str) -> Result<Cluster, Refusal> {
    plimsoll::find(place, None).map_err(|error| Refusal::from(error.to_string()))
}
