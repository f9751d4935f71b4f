//! The form of a cluster's file, what it means where it says nothing, and what is refused in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_runtime::real::Endpoint;
use plimsoll_txn::pairs::{Pair, PairError, Protocol, Scheme};
use plimsoll_txn::timestamp::OracleOptions;
use serde::{Deserialize, Serialize};

use super::sql::is_of_sql;
use super::tables::{TableEntry, table};
use super::{
    CLIENTS_MAX, Cluster, ClusterError, Durability, MAX_STALENESS, NodeConfig, ORACLE_ID, OracleConfig,
    checksum, content, said, secret,
};
use crate::data_dir::has_cut;
use crate::schema::{SHARDS_MAX, STALENESS_MAX, Schema};

/// The file, as it is written and as nodes send it to clients.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    cluster: String,
    protocol: Option<String>,
    scheme: Option<String>,
    #[serde(default)]
    one_round: bool,
    secret_file: Option<PathBuf>,
    max_staleness_ms: Option<u64>,
    #[serde(default = "clients")]
    clients: usize,
    #[serde(default)]
    durability: Durability,
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

/// What the text of a file describes.
pub(super) fn parse(text: &str, directory: &Path) -> Result<Cluster, ClusterError> {
    let file = toml::from_str(text).map_err(|error| ClusterError::Form(error.to_string()))?;
    build(file, directory)
}

/// What a file in this directory describes, checked.
pub(super) fn build(mut file: File, directory: &Path) -> Result<Cluster, ClusterError> {
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
    if file.durability == Durability::Async && !has_cut(pair) {
        return content(format!(
            "durability = \"async\": a database goes back to one timestamp, and {} has none that order everything; \
             choose the scheme dst or gts, or \"sync\"",
            pair.scheme
        ));
    }
    let oracle = oracle(file.oracle, pair)?;
    let mut schema = Schema::new();
    for entry in file.table {
        let spec = table(entry)?;
        if !is_of_sql(&spec, pair)? {
            // An immutable table stays empty until its rows are loaded, while the cluster runs.
            schema.declare(spec).map_err(ClusterError::Table)?;
        }
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
        durability: file.durability,
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

/// Whether a process that listens on the first address occupies the second.
fn overlap(first: &Endpoint, second: &Endpoint) -> bool {
    first == second || first.port() == second.port() && first.is_unspecified()
}

#[cfg(test)]
mod tests {
    use plimsoll_types::{IndexKind, Partitioning};

    use super::super::tests::{NODE, ORACLE};
    use super::*;

    const HTTP: &str =
        "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:7001\"\nhttp = \"127.0.0.1:8001\"\n";

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
}
