//! The flags of `plimsoll start` and `plimsoll status`, and what they come to.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plimsoll::{Cluster, NodeConfig};

use super::plan::{JsonOutput, Refusal, json_output, refuse};

/// The flags of `plimsoll start`.
#[derive(Args, Clone, Debug)]
#[command(after_help = START_EXAMPLES)]
pub struct StartArgs {
    /// The file that describes the cluster; the same for all nodes and clients.
    pub file: PathBuf,
    /// The number of this node in the file [default: the only one].
    #[arg(long, value_name = "ID")]
    pub node: Option<u16>,
    /// What this process is: a node that holds data, or the timestamp oracle of a cluster under gts [default: node].
    #[arg(
        long,
        value_enum,
        value_name = "node|oracle",
        default_value = "node",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub role: ProcessRole,
    /// How standard error is written: text for people, or one JSON object per line. What is logged is set by
    /// PLIMSOLL_LOG, for example `debug`.
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

/// What a process is to its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProcessRole {
    /// It holds data.
    Node,
    /// It gives out timestamps.
    Oracle,
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
#[command(after_help = STATUS_EXAMPLES)]
pub struct StatusArgs {
    /// The file that describes the cluster.
    pub file: PathBuf,
    /// Write the result as JSON, to standard output if no file is given (then nothing else goes there).
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub json: Option<Option<PathBuf>>,
}

const START_EXAMPLES: &str = "The file:
  cluster = \"bank\"
  secret_file = \"bank.secret\"       # 16 bytes or more; without one, loopback addresses only
  protocol = \"occ\"                 # or two_pl, client_2pc
  scheme = \"dst\"                   # what orders transactions; or gts, none, or rc, which is NOT serializable

  [oracle]                          # under gts only: a process of its own
  address = \"127.0.0.1:7400\"
  http = \"127.0.0.1:8400\"
  batch = true                      # one message for all transactions of a shard that are ready
  prefetch = false                  # snapshots ahead of their use: staler, and they outlive a dead oracle

  [[node]]
  id = 1
  address = \"127.0.0.1:7401\"        # where others reach it; `listen` if it listens elsewhere
  http = \"127.0.0.1:8401\"           # /health, /ready, /metrics, /status
  shards = 1                        # threads that own its data

  [[table]]
  name = \"account\"
  index = \"hash\"                    # or ordered, the default: for scans
  groups = [\"owner\", \"balance\"]     # column groups; one by default
  partition = { by = \"hash\", bytes = 8 }   # rows with equal first bytes live together; by default each for itself

Examples:
  plimsoll start bank.toml --node 1
  plimsoll start bank.toml --role oracle
  PLIMSOLL_LOG=debug plimsoll start bank.toml --node 1 --log json 2> node1.log";

const STATUS_EXAMPLES: &str = "Exit status: 0 all nodes are up and connected; 1 some are not; 2 bad usage.

Examples:
  plimsoll status bank.toml
  plimsoll status bank.toml --json";

/// A node to run.
#[derive(Clone, Debug)]
pub struct StartPlan {
    /// The cluster that it belongs to.
    pub cluster: Cluster,
    /// The node.
    pub node: NodeConfig,
    /// How logs are written.
    pub log: LogFormat,
}

/// A cluster to look at.
#[derive(Clone, Debug)]
pub struct StatusPlan {
    /// The cluster.
    pub cluster: Cluster,
    /// Where the JSON document goes.
    pub json: JsonOutput,
}

impl StartArgs {
    /// Reads the file and finds the node.
    pub fn validate(self) -> Result<StartPlan, Refusal> {
        let cluster = read(&self.file)?;
        if self.role == ProcessRole::Oracle {
            let Some(oracle) = &cluster.oracle else {
                refuse!(
                    "{} has no [oracle], and needs none under {}: run its nodes with --node",
                    self.file.display(),
                    cluster.pair.scheme
                );
            };
            if let Some(node) = self.node {
                refuse!("--role oracle is not node {node}: leave --node out");
            }
            return Ok(StartPlan { node: oracle.node.clone(), cluster, log: self.log });
        }
        let ids: Vec<String> = cluster.nodes.iter().map(|node| node.id.to_string()).collect();
        let ids = ids.join(", ");
        let node = match (self.node, &cluster.nodes[..]) {
            (None, [only]) => only.clone(),
            (None, _) => refuse!("which node is this? give --node with one of {ids}"),
            (Some(id), _) => match cluster.node(id) {
                Some(node) => node.clone(),
                None => refuse!("{} has no node {id}, only {ids}", self.file.display()),
            },
        };
        Ok(StartPlan { cluster, node, log: self.log })
    }
}

impl StatusArgs {
    /// Reads the file.
    pub fn validate(self) -> Result<StatusPlan, Refusal> {
        Ok(StatusPlan { cluster: read(&self.file)?, json: json_output(self.json.as_ref())? })
    }
}

fn read(file: &Path) -> Result<Cluster, Refusal> {
    Cluster::read(file).map_err(|error| Refusal::from(error.to_string()))
}
