//! `plimsoll status`: asks every node how it is, and shows the cluster.

use std::net::SocketAddr;
use std::time::Duration;

use plimsoll::{Cluster, NodeConfig, ORACLE_ID};
use plimsoll_page::table::Columns;
use plimsoll_page::units;
use serde::Serialize;

use super::state::{CLOCK_ALARM, State, furthest_clock};
use crate::cli::node::StatusPlan;
use crate::report;
use crate::report::table::Terminal;

/// A node that says nothing for so long is down.
const PATIENCE: Duration = Duration::from_secs(2);
/// Processes that are started together are up for as long, but for so many seconds.
const RESTART: f64 = 1.0;

/// A node, and what it said or why it did not.
#[derive(Serialize)]
struct Asked {
    node: u16,
    address: String,
    shards: usize,
    state: Option<State>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Document {
    cluster: String,
    protocol: &'static str,
    scheme: &'static str,
    serializable: bool,
    nodes: Vec<Asked>,
    oracle: Option<Asked>,
}

/// Asks, and shows. Returns whether every node is up and connected to all others.
pub fn status(plan: &StatusPlan) -> Result<bool, Box<dyn std::error::Error>> {
    let Cluster { name, pair, nodes, oracle, .. } = &plan.cluster;
    let document = Document {
        cluster: name.clone(),
        protocol: pair.protocol.name(),
        scheme: pair.scheme.name(),
        serializable: pair.serializable(),
        nodes: nodes.iter().map(|node| ask(node, &plan.addresses)).collect(),
        oracle: oracle.as_ref().map(|oracle| ask(&oracle.node, &plan.addresses)),
    };
    let well = document
        .nodes
        .iter()
        .chain(&document.oracle)
        .all(|node| node.state.as_ref().is_some_and(|state| state.ready));
    report::publish(&plan.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(well)
}

fn ask(node: &NodeConfig, addresses: &[SocketAddr]) -> Asked {
    let status = |address: &SocketAddr| fetch(&format!("http://{address}/status"));
    let said = match &node.http {
        Some(address) => status(address),
        None => (addresses.iter().filter_map(|address| status(address).ok()))
            .find(|state| state.node == node.id)
            .ok_or_else(|| "its `http` address is not known".to_owned()),
    };
    let (state, error) = match said {
        Ok(state) if state.node != node.id => (None, Some(format!("node {} answers there", state.node))),
        Ok(state) => (Some(state), None),
        Err(error) => (None, Some(error)),
    };
    Asked { node: node.id, address: node.address.to_string(), shards: node.shards, state, error }
}

/// How all processes of a cluster are, the oracle last, or who does not say so.
pub fn states(cluster: &Cluster) -> Result<Vec<State>, String> {
    let asked = cluster.processes().map(|node| ask(node, &[]));
    asked
        .map(|asked| {
            asked.state.ok_or_else(|| {
                let who = cluster.processes().find(|node| node.id == asked.node).map(NodeConfig::to_string);
                format!(
                    "{} does not say how it is ({}): see `plimsoll status`",
                    who.unwrap_or_default(),
                    asked.error.unwrap_or_default()
                )
            })
        })
        .collect()
}

fn fetch(url: &str) -> Result<State, String> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    let mut answer = agent.get(url).call().map_err(|error| error.to_string())?;
    let text = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("answers something else: {error}"))
}

fn show(document: &Document, terminal: Terminal) -> String {
    let Document { cluster, protocol, scheme, .. } = document;
    let mut text = terminal.bold(&format!("Cluster {cluster}, {protocol}/{scheme}"));
    if !document.serializable {
        text += ": NOT serializable";
    }
    text += "\n\n";
    let mut columns = Columns::new(
        &[
            ("node", 0),
            ("address", 3),
            ("state", 0),
            ("up", 2),
            ("shards", 0),
            ("slots", 4),
            ("connected", 0),
            ("clients", 1),
            ("clock", 0),
            ("rows", 5),
            ("data", 0),
        ],
        false,
    );
    let mut notes = Vec::new();
    let mut first = 0;
    for asked in document.nodes.iter().chain(&document.oracle) {
        let shards = match asked.shards {
            0 | 1 => first.to_string(),
            n => format!("{first}-{}", first + n - 1),
        };
        let shards = if asked.node == ORACLE_ID { String::new() } else { shards };
        first += asked.shards;
        let name = match asked.node {
            ORACLE_ID => "oracle".to_owned(),
            id => id.to_string(),
        };
        let called = if asked.node == ORACLE_ID { "the oracle".to_owned() } else { format!("node {name}") };
        let Some(state) = &asked.state else {
            let mut row = vec![name, asked.address.clone(), "down".to_owned(), String::new()];
            row.push(shards);
            row.resize(11, String::new());
            columns.push(row);
            notes.push(format!("{called}: {}", asked.error.as_deref().unwrap_or_default()));
            if asked.node == ORACLE_ID {
                notes.push("without the oracle nothing commits, and no snapshot is taken".to_owned());
            }
            continue;
        };
        let others: Vec<_> = state.peers.iter().filter(|peer| peer.node.is_some()).collect();
        let clients = state.peers.iter().find(|peer| peer.node.is_none()).map_or(0, |peer| peer.connected);
        let connected = others.iter().filter(|peer| peer.connected == peer.pairs).count();
        let clocks = others.iter().filter_map(|peer| peer.node.zip(peer.clock_ahead_seconds));
        let clock = furthest_clock(clocks).map(|(_, ahead)| ahead);
        if let Some(ahead) = clock.filter(|ahead| ahead.abs() > CLOCK_ALARM) {
            notes.push(format!(
                "{called}: its clock is {} away from another's; snapshots are as much less fresh, nothing else",
                units::seconds(ahead.abs())
            ));
        }
        if let Some(oracle) = &state.oracle {
            let (published, unpublished) =
                (units::thousands(oracle.published), units::thousands(oracle.unpublished));
            notes.push(format!("the oracle has published {published} numbers and waits for {unpublished}"));
        }
        let oldest = (document.nodes.iter())
            .filter_map(|node| node.state.as_ref())
            .fold(0.0f64, |oldest, state| oldest.max(state.uptime_seconds));
        if !state.ready && state.uptime_seconds + RESTART < oldest {
            notes.push(format!(
                "{called} was started after others and is not connected to all: if it had been there before, what it held is \
                 lost, and they let it in again only when all processes of the cluster have been started anew"
            ));
        }
        columns.push(vec![
            name,
            asked.address.clone(),
            if state.ready { "ready" } else { "waits for others" }.to_owned(),
            units::seconds(state.uptime_seconds),
            shards,
            state.shards.iter().map(|shard| shard.slots).sum::<u64>().to_string(),
            format!("{connected} of {}", others.len()),
            (clients / state.shards.len().max(1) as u64).to_string(),
            clock.map_or_else(String::new, |ahead| format!("± {}", units::duration_us(ahead.abs() * 1e6))),
            units::thousands(state.tables.iter().map(|table| table.rows).sum()),
            units::bytes(state.tables.iter().map(|table| table.bytes).sum()),
        ]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    for note in notes {
        text.push_str(&format!("\n{note}"));
    }
    if text.ends_with('\n') { text } else { text + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::state::PeerState;

    fn seen_by_node_1(ahead: &[(u16, f64)]) -> String {
        let peer = |&(node, ahead)| PeerState {
            node: Some(node),
            clock_ahead_seconds: Some(ahead),
            ..PeerState::default()
        };
        let state = State { peers: ahead.iter().map(peer).collect(), ..State::default() };
        let node = Asked { node: 1, address: String::new(), shards: 1, state: Some(state), error: None };
        let document = Document {
            cluster: "c".to_owned(),
            protocol: "occ",
            scheme: "dst",
            serializable: true,
            nodes: vec![node],
            oracle: None,
        };
        show(&document, Terminal { width: 200, colour: false })
    }

    #[test]
    fn a_clock_that_is_off_by_more_than_half_a_second_is_told() {
        let text = seen_by_node_1(&[(2, 0.25), (3, -3.0), (4, 1.0)]);
        assert!(text.contains("± 3.00 s"), "{text}");
        assert!(text.contains("node 1: its clock is 3.0 s away from another's"), "{text}");
        let text = seen_by_node_1(&[(2, 0.25), (3, -0.5)]);
        assert!(text.contains("± 500"), "{text}");
        assert!(!text.contains("away"), "{text}");
    }
}
