//! `plimsoll status`: asks every node how it is, and shows the cluster: nodes, shards, and clocks.
//!
//! Every shard has one copy, so the node that has it leads it. Of a node that is down, is kept out
//! by the others, or was started again, the shards have no leader, and what was in their slots
//! cannot be read or written. A node whose HTTP address is not known cannot be asked: flags do not
//! say those of peers. It is judged by those that were: it is well if all of them are connected to
//! it.
//!
//! A node that was started again does not know what it was before. The others do: they have lost a
//! connection to it, and it has had none to them.
//!
//! Clocks are compared with that of one node, the first that answers: it has measured by how much
//! the others are ahead, with an error of half a round trip. What it does not know, the others may.

use std::time::Duration;

use plimsoll_args::publish;
use plimsoll_engine::{Cluster, NodeConfig, ORACLE_ID};
use plimsoll_page::table::Columns;
use plimsoll_page::terminal::Terminal;
use plimsoll_page::units;
use plimsoll_runtime::real::{Endpoint, Who};
use serde::Serialize;

use crate::cli::StatusPlan;
use crate::state::{PeerState, State, clock_alarm};

/// A node that says nothing for so long is down.
const PATIENCE: Duration = Duration::from_secs(2);
/// A snapshot that has been open for longer, in seconds, is shown.
const OLD: f64 = 10.0;
/// If there are more shards than this, those of a node share a row.
const SHARDS_SHOWN: usize = 16;

/// How a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Condition {
    /// It answers and is connected to all others.
    Ready,
    /// It answers and is not connected to all others.
    Waiting,
    /// It answers, and another refuses it or it refuses another, for a reason that lasts.
    Refused,
    /// It answers, and was started again: what it held is lost.
    Empty,
    /// It does not answer.
    Down,
    /// It was not asked, because nobody knows where.
    NotAsked,
}

impl Condition {
    /// A short word, so that no column of the table has to go because something is wrong.
    fn word(self) -> &'static str {
        match self {
            Condition::Ready => "ready",
            Condition::Waiting => "waiting",
            Condition::Refused => "refused",
            Condition::Empty => "empty",
            Condition::Down => "down",
            Condition::NotAsked => "not asked",
        }
    }
}

/// A node, and what it said or why it did not.
#[derive(Serialize)]
struct NodeAnswer {
    node: u16,
    address: String,
    shards: usize,
    condition: Condition,
    /// By how much its clock is ahead of the one that clocks are compared with, and how far that
    /// may be wrong; none of that one itself.
    clock_ahead_seconds: Option<f64>,
    clock_error_seconds: Option<f64>,
    state: Option<State>,
    error: Option<String>,
    /// Of a node that was not asked, because its HTTP address is not known: what the others say.
    seen: Option<ReachedBy>,
}

/// How many of the processes that answer are connected to a node that was not asked.
#[derive(Clone, Copy, Default, Serialize)]
struct ReachedBy {
    connected: usize,
    of: usize,
}

/// A shard, and who leads it.
#[derive(Serialize)]
struct Led {
    shard: usize,
    /// The node that has it, and the same if it leads it: it answers, or others are connected to
    /// it.
    node: u16,
    leader: Option<u16>,
    /// What the leader says: slots, records and ranges that are locked, transactions in doubt, and
    /// requests that wait.
    slots: Option<u64>,
    locks: Option<u64>,
    in_doubt: Option<u64>,
    waiting_requests: Option<u64>,
}

#[derive(Serialize)]
struct Document {
    cluster: String,
    protocol: &'static str,
    scheme: &'static str,
    serializable: bool,
    nodes: Vec<NodeAnswer>,
    oracle: Option<NodeAnswer>,
    shards: Vec<Led>,
    /// The node that all clocks are compared with.
    clock_reference: Option<u16>,
}

impl Document {
    /// What the processes of a cluster have said, put together.
    fn new(cluster: &Cluster, mut nodes: Vec<NodeAnswer>, mut oracle: Option<NodeAnswer>) -> Document {
        let Cluster { name, pair, .. } = cluster;
        let states: Vec<State> =
            nodes.iter().chain(&oracle).filter_map(|asked| asked.state.clone()).collect();
        nodes.iter_mut().chain(&mut oracle).for_each(|asked| {
            asked.ask_others(&states);
            asked.condition = asked.judge(&states);
        });
        let shards = led(&nodes);
        let reference = nodes.iter().find_map(|node| node.state.clone());
        if let Some(reference) = &reference {
            nodes.iter_mut().chain(&mut oracle).for_each(|asked| asked.compare_clock(reference));
        }
        Document {
            cluster: name.clone(),
            protocol: pair.protocol.name(),
            scheme: pair.scheme.name(),
            serializable: pair.serializable(),
            nodes,
            oracle,
            shards,
            clock_reference: reference.map(|state| state.node),
        }
    }
}

/// The shards of all nodes, in order.
fn led(nodes: &[NodeAnswer]) -> Vec<Led> {
    let mut shards = Vec::new();
    for node in nodes {
        for place in 0..node.shards {
            let state = node.state.as_ref();
            let of = state.filter(|_| node.is_up()).and_then(|state| state.shards.get(place));
            shards.push(Led {
                shard: shards.len(),
                node: node.node,
                leader: node.is_up().then_some(node.node),
                slots: of.map(|shard| shard.slots),
                locks: of.map(|shard| shard.locks),
                in_doubt: of.map(|shard| shard.in_doubt),
                waiting_requests: of.map(|shard| shard.requests),
            });
        }
    }
    shards
}

impl NodeAnswer {
    /// Whether it leads its shards: it answers, and others do not keep it out; or it was not asked,
    /// and all that answer are connected to it.
    fn is_up(&self) -> bool {
        match self.condition {
            Condition::Ready | Condition::Waiting => true,
            Condition::Refused => self.state.as_ref().is_some_and(|state| !state.shut_out),
            Condition::NotAsked => {
                self.seen.is_some_and(|ReachedBy { connected, of }| 0 < of && connected == of)
            }
            Condition::Empty | Condition::Down => false,
        }
    }

    /// Whether it is up and connected to all others, as far as anybody says.
    fn is_well(&self) -> bool {
        self.is_up() && self.state.as_ref().is_none_or(|state| state.ready)
    }

    /// How it is, by what it and the others say.
    fn judge(&self, states: &[State]) -> Condition {
        let Some(state) = &self.state else {
            return if self.seen.is_some() { Condition::NotAsked } else { Condition::Down };
        };
        let view = |from: &State, of: u16| {
            let peer = from.peers.iter().find(|peer| peer.node == Some(of))?;
            Some((peer.connected > 0, peer.resets > 0))
        };
        // Another process has had a connection to it, and it has had none to that process.
        let is_new_to = |other: &State| {
            let (theirs, mine) = (view(other, self.node), view(state, other.node));
            theirs == Some((false, true)) && mine == Some((false, false))
        };
        match state {
            _ if states.iter().any(|other| other.node != self.node && is_new_to(other)) => Condition::Empty,
            _ if state.ready => Condition::Ready,
            _ if !state.troubles.is_empty() => Condition::Refused,
            _ => Condition::Waiting,
        }
    }

    /// Notes what others say, if it was not asked itself.
    fn ask_others(&mut self, states: &[State]) {
        let Some(seen) = &mut self.seen else { return };
        let whole = |peer: &&PeerState| peer.node == Some(self.node) && peer.connected == peer.pairs;
        let connected = states.iter().filter(|state| state.peers.iter().any(|peer| whole(&peer))).count();
        *seen = ReachedBy { connected, of: states.len() };
    }

    /// Notes by how much the clock is ahead of the reference's, if the process is there to have
    /// one.
    fn compare_clock(&mut self, reference: &State) {
        let Some(own) = &self.state else { return };
        let of = |state: &State, node: u16| {
            let peer = state.peers.iter().find(|peer| peer.node == Some(node))?;
            Some((peer.clock_ahead_seconds?, peer.round_trip_seconds))
        };
        let back = || {
            let (ahead, round_trip) = of(own, reference.node)?;
            Some((-ahead, round_trip))
        };
        if let Some((ahead, round_trip)) = of(reference, self.node).or_else(back) {
            self.clock_ahead_seconds = Some(ahead);
            self.clock_error_seconds = round_trip.map(|seconds| seconds / 2.0);
        }
    }
}

/// Asks, and shows. Returns whether every node is up and connected to all others.
pub fn status(plan: &StatusPlan) -> Result<bool, Box<dyn std::error::Error>> {
    let Cluster { nodes, oracle, .. } = &plan.cluster;
    let document = Document::new(
        &plan.cluster,
        nodes.iter().map(|node| ask(node, &plan.addresses)).collect(),
        oracle.as_ref().map(|oracle| ask(&oracle.node, &plan.addresses)),
    );
    let well = document.nodes.iter().chain(&document.oracle).all(NodeAnswer::is_well);
    publish(&plan.json, &document, || show(&document, Terminal::stdout()))?;
    Ok(well)
}

fn ask(node: &NodeConfig, addresses: &[Endpoint]) -> NodeAnswer {
    let status = |address: &Endpoint| fetch(&format!("http://{address}/status"));
    let found = match &node.http {
        Some(address) => Some(status(address)),
        None => {
            addresses.iter().map(status).find(|said| said.as_ref().is_ok_and(|state| state.node == node.id))
        }
    };
    let seen = found.is_none().then(ReachedBy::default);
    let (state, error) = match found {
        None => (None, Some("its `http` address is not known".to_owned())),
        Some(Ok(state)) if state.node != node.id => {
            (None, Some(format!("node {} answers there", state.node)))
        }
        Some(Ok(state)) => (Some(state), None),
        Some(Err(error)) => (None, Some(error)),
    };
    NodeAnswer {
        node: node.id,
        address: node.address.to_string(),
        shards: node.shards,
        condition: Condition::Down,
        clock_ahead_seconds: None,
        clock_error_seconds: None,
        state,
        error,
        seen,
    }
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
            ("address", 1),
            ("state", 0),
            ("up", 7),
            ("shards", 4),
            ("slots", 2),
            ("connected", 3),
            ("clients", 6),
            ("clock", 5),
            ("rows", 9),
            ("data", 8),
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
            let error = asked.error.as_deref().unwrap_or_default();
            let connected = match asked.seen {
                Some(ReachedBy { connected, of }) => {
                    notes.push(format!(
                        "{called} was not asked: {error}; {connected} of {of} that answer are connected to it"
                    ));
                    format!("by {connected} of {of}")
                }
                None => {
                    notes.push(format!("{called}: {error}"));
                    String::new()
                }
            };
            let state = asked.condition.word().to_owned();
            let mut row = vec![name, asked.address.clone(), state, String::new()];
            row.extend([shards, String::new(), connected]);
            row.resize(11, String::new());
            columns.push(row);
            if asked.node == ORACLE_ID && !asked.is_up() {
                notes.push("without the oracle nothing commits, and no snapshot is taken".to_owned());
            }
            continue;
        };
        let others: Vec<_> = state.peers.iter().filter(|peer| peer.node.is_some()).collect();
        let clients = state.peers.iter().find(|peer| peer.node.is_none()).map_or(0, |peer| peer.connected);
        let connected = others.iter().filter(|peer| peer.connected == peer.pairs).count();
        let clocks = others.iter().filter_map(|peer| peer.node.zip(peer.clock_ahead_seconds));
        notes.extend(clock_alarm(&called, &clocks.collect::<Vec<_>>(), |id| Who::Node(id).to_string()));
        let refused: u64 = state.shards.iter().map(|shard| shard.future_stamps).sum();
        if refused > 0 {
            notes.push(format!(
                "{called} has refused {} timestamps that were too far ahead of its clock: its log names the process",
                units::thousands(refused)
            ));
        }
        let (limit, used) = (state.memory_limit_bytes, state.memory_used_bytes);
        if limit > 0 && used > limit / 10 * 9 {
            notes.push(format!(
                "{called} has {} of data and may have {}, then it refuses writes: delete some, or start it with more, see --memory",
                units::bytes(used),
                units::bytes(limit)
            ));
        }
        if let Some(oracle) = &state.oracle {
            let (published, unpublished) =
                (units::thousands(oracle.published), units::thousands(oracle.unpublished));
            notes.push(format!("the oracle has published {published} numbers and waits for {unpublished}"));
        }
        if asked.condition == Condition::Empty {
            notes.push(format!(
                "{called} was started again: what it held is lost, and the others let it in again only when all processes of \
                 the cluster have been started anew"
            ));
        }
        notes.extend(state.troubles.iter().map(|trouble| format!("{called} says: {trouble}")));
        if let Some(oldest) = state.oldest_snapshot.as_ref().filter(|oldest| oldest.age_seconds > OLD) {
            notes.push(format!(
                "{called} keeps {} old versions, {}, for a snapshot that {} has had open for {}",
                units::thousands(oldest.versions),
                units::bytes(oldest.bytes),
                oldest.holder,
                units::seconds(oldest.age_seconds)
            ));
        }
        columns.push(vec![
            name,
            asked.address.clone(),
            asked.condition.word().to_owned(),
            units::seconds(state.uptime_seconds),
            shards,
            slots(document, asked.node),
            format!("{connected} of {}", others.len()),
            (clients / state.shards.len().max(1) as u64).to_string(),
            clock(asked),
            units::thousands(state.tables.iter().map(|table| table.rows).sum()),
            units::bytes(state.tables.iter().map(|table| table.bytes).sum()),
        ]);
    }
    text.push_str(&columns.render(terminal.width));
    text.push('\n');
    text.push_str(&leaders(document).render(terminal.width));
    text.push('\n');
    if let Some(reference) = document.clock_reference
        && document.nodes.iter().chain(&document.oracle).any(|asked| asked.clock_ahead_seconds.is_some())
    {
        notes.push(format!("clocks are compared with that of node {reference}: + is ahead of it, − behind"));
    }
    for note in notes {
        text.push_str(&format!("\n{note}"));
    }
    if text.ends_with('\n') { text } else { text + "\n" }
}

/// How many slots a node leads.
fn slots(document: &Document, node: u16) -> String {
    let own = document.shards.iter().filter(|shard| shard.node == node);
    own.map(|shard| shard.slots.unwrap_or_default()).sum::<u64>().to_string()
}

/// The clock of a process, as it is shown: ahead of that of the reference, or behind.
fn clock(asked: &NodeAnswer) -> String {
    let Some(ahead) = asked.clock_ahead_seconds else { return String::new() };
    let sign = if ahead < 0.0 { '−' } else { '+' };
    let far = |seconds: f64| units::duration_us(seconds.abs() * 1e6);
    match asked.clock_error_seconds {
        Some(error) => format!("{sign}{} ± {}", far(ahead), far(error)),
        None => format!("{sign}{}", far(ahead)),
    }
}

/// Who leads which shard: a row each, or one for all of a node if there are many.
fn leaders(Document { nodes, shards, .. }: &Document) -> Columns {
    let mut columns = Columns::new(
        &[("shard", 0), ("leader", 0), ("slots", 0), ("locks", 1), ("in doubt", 2), ("waiting", 3)],
        false,
    );
    let many = shards.len() > SHARDS_SHOWN;
    let why_not = |id| match nodes.iter().find(|node| node.node == id).map(|node| node.condition) {
        Some(Condition::NotAsked) => "not connected",
        condition => condition.map_or("", Condition::word),
    };
    for some in shards.chunk_by(|one, next| many && one.node == next.node) {
        let (Some(first), Some(last)) = (some.first(), some.last()) else { continue };
        let sum = |of: fn(&Led) -> Option<u64>| {
            let figures: Option<Vec<u64>> = some.iter().map(of).collect();
            figures.map_or_else(String::new, |figures| units::thousands(figures.iter().sum()))
        };
        columns.push(vec![
            if some.len() > 1 { format!("{}-{}", first.shard, last.shard) } else { first.shard.to_string() },
            match first.leader {
                Some(leader) => format!("node {leader}"),
                None => format!("none: node {} is {}", first.node, why_not(first.node)),
            },
            sum(|shard| shard.slots),
            sum(|shard| shard.locks),
            sum(|shard| shard.in_doubt),
            sum(|shard| shard.waiting_requests),
        ]);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{OldestSnapshotState, ShardState};

    /// Nodes with so many shards each; those that are down have said nothing.
    fn cluster(shards: &[usize], up: &[u16], see: impl Fn(u16) -> Vec<(u16, f64)>) -> Document {
        let mut text = "cluster = \"c\"\n".to_owned();
        for (id, shards) in (1..).zip(shards) {
            text += &format!("[[node]]\nid = {id}\naddress = \"127.0.0.1:{id}\"\nshards = {shards}\n");
        }
        let cluster = Cluster::parse(&text).expect("it is a cluster");
        let asked = cluster.nodes.iter().map(|node| {
            let peer = |(other, ahead)| PeerState {
                node: Some(other),
                clock_ahead_seconds: Some(ahead),
                round_trip_seconds: Some(0.0002),
                ..PeerState::default()
            };
            let state = State {
                node: node.id,
                peers: see(node.id).into_iter().map(peer).collect(),
                shards: vec![ShardState { slots: 100, locks: 3, ..ShardState::default() }; node.shards],
                ..State::default()
            };
            let is_up = up.contains(&node.id);
            NodeAnswer {
                node: node.id,
                address: node.address.to_string(),
                shards: node.shards,
                condition: Condition::Down,
                clock_ahead_seconds: None,
                clock_error_seconds: None,
                state: is_up.then_some(state),
                error: (!is_up).then(|| "nobody answers".to_owned()),
                seen: None,
            }
        });
        let asked = asked.collect();
        Document::new(&cluster, asked, None)
    }

    fn shown(document: &Document) -> String {
        show(document, Terminal { width: 200, colour: false })
    }

    /// The words of the first line that begins with this one.
    fn row<'a>(text: &'a str, first: &str) -> Vec<&'a str> {
        let words = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
        text.lines().map(words).find(|words| words.first() == Some(&first)).unwrap_or_default()
    }

    #[test]
    fn a_clock_that_is_off_by_more_than_half_a_second_is_told() {
        let document = cluster(&[1; 4], &[1, 2, 3, 4], |node| match node {
            1 => vec![(2, 0.25), (3, -3.0), (4, 1.0)],
            _ => Vec::new(),
        });
        let text = shown(&document);
        for clock in ["+250 ms ± 100 µs", "−3.00 s ± 100 µs", "+1.00 s ± 100 µs"] {
            assert!(text.contains(clock), "{clock}: {text}");
        }
        assert!(text.contains("compared with that of node 1"), "{text}");
        assert!(text.contains("the clock of node 3 is 3.0 s behind node 1's"), "{text}");
        let text = shown(&cluster(&[1; 2], &[1, 2], |node| vec![(3 - node, 0.5)]));
        assert!(text.contains("+500 ms") && !text.contains("refused"), "{text}");
        let mut document = cluster(&[1], &[1], |_| Vec::new());
        document.nodes[0].state.as_mut().expect("it answers").shards[0].future_stamps = 7;
        let text = shown(&document);
        assert!(
            text.contains("node 1 has refused 7 timestamps that were too far ahead of its clock"),
            "{text}"
        );
    }

    #[test]
    fn a_snapshot_that_has_been_open_for_long_is_told_with_its_holder_and_what_it_costs() {
        let open_for = |age_seconds| {
            let mut document = cluster(&[1; 2], &[1, 2], |_| Vec::new());
            document.nodes[0].state.as_mut().expect("it answers").oldest_snapshot =
                Some(OldestSnapshotState {
                    age_seconds,
                    holder: "client 3 at 10.0.0.7:40022".to_owned(),
                    versions: 1200,
                    bytes: 150_000,
                });
            shown(&document)
        };
        let text = open_for(90.0);
        let note = "node 1 keeps 1,200 old versions, ";
        assert!(text.contains(note) && text.contains("that client 3 at 10.0.0.7:40022 has had"), "{text}");
        assert!(!open_for(1.0).contains("snapshot"));
    }

    #[test]
    fn clocks_are_compared_with_the_first_node_that_answers_whoever_has_measured() {
        // Node 1 is down, node 2 does not know of node 4, which knows of node 2.
        let document = cluster(&[1; 4], &[2, 3, 4], |node| match node {
            2 => vec![(1, 9.0), (3, 0.001)],
            4 => vec![(2, 0.004)],
            _ => Vec::new(),
        });
        assert_eq!(document.clock_reference, Some(2));
        let ahead: Vec<_> = document.nodes.iter().map(|node| node.clock_ahead_seconds).collect();
        assert_eq!(ahead, [None, None, Some(0.001), Some(-0.004)]);
        assert!(document.nodes[3].clock_error_seconds.is_some_and(|error| (error - 0.0001).abs() < 1e-9));
        // A node alone has nobody to be compared with.
        let text = shown(&cluster(&[2], &[1], |_| Vec::new()));
        assert!(!text.contains("compared"), "{text}");
    }

    #[test]
    fn a_node_that_was_not_asked_is_up_if_all_that_answer_are_connected_to_it() {
        let shown_if = |connected: [u64; 2]| {
            let mut document = cluster(&[1; 3], &[1, 2], |_| Vec::new());
            let Document { nodes, .. } = &mut document;
            for (node, connected) in nodes.iter_mut().zip(connected) {
                let peer = PeerState { node: Some(3), pairs: 1, connected, ..PeerState::default() };
                node.state.as_mut().expect("it answers").peers.push(peer);
            }
            (nodes[2].error, nodes[2].seen) =
                (Some("nobody knows where".to_owned()), Some(ReachedBy::default()));
            let text = "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:1\"\n";
            let cluster = Cluster::parse(text).expect("it is a cluster");
            let document = Document::new(&cluster, document.nodes, None);
            let (text, well) = (shown(&document), document.nodes[2].is_well());
            assert_eq!(row(&text, "3")[..4], ["3", "127.0.0.1:3", "not", "asked"], "{text}");
            (text, well, document.shards[2].leader)
        };
        let (text, well, leader) = shown_if([1, 1]);
        assert_eq!((well, leader), (true, Some(3)));
        assert!(text.contains("node 3 was not asked: nobody knows where; 2 of 2 that answer are"), "{text}");
        assert!(!text.contains("down") && !text.contains("none:"), "{text}");
        for connected in [[1, 0], [0, 1], [0, 0]] {
            let (text, well, leader) = shown_if(connected);
            assert_eq!((well, leader), (false, None), "{text}");
            assert!(text.contains("none: node 3 is not connected") && !text.contains("down"), "{text}");
        }
    }

    /// Three nodes, which see each other as they are told: whether connected, and resets so far.
    fn seeing(see: impl Fn(u16, u16) -> (u64, u64), change: impl Fn(&mut State)) -> Document {
        let mut document = cluster(&[1; 3], &[1, 2, 3], |_| Vec::new());
        for node in &mut document.nodes {
            let id = node.node;
            let state = node.state.as_mut().expect("it answers");
            let peers = (1..=3).filter(|&other| other != id).map(|other| {
                let (connected, resets) = see(id, other);
                PeerState { node: Some(other), pairs: 1, connected, resets, ..PeerState::default() }
            });
            state.peers = peers.collect();
            state.ready = state.peers.iter().all(|peer| peer.connected == 1);
            change(state);
        }
        let text = "cluster = \"c\"\n[[node]]\nid = 1\naddress = \"127.0.0.1:1\"\n";
        Document::new(&Cluster::parse(text).expect("it is a cluster"), document.nodes, None)
    }

    #[test]
    fn a_node_that_was_started_again_leads_nothing_and_the_others_are_what_they_were() {
        let see = |from, to| match (from, to) {
            (3, _) => (0, 0),
            (_, 3) => (0, 1),
            _ => (1, 0),
        };
        let document = seeing(see, |state| state.uptime_seconds = if state.node == 2 { 1.0 } else { 90.0 });
        let conditions: Vec<_> = document.nodes.iter().map(|node| node.condition).collect();
        assert_eq!(conditions, [Condition::Waiting, Condition::Waiting, Condition::Empty]);
        let leaders: Vec<_> = document.shards.iter().map(|shard| (shard.leader, shard.slots)).collect();
        assert_eq!(leaders, [(Some(1), Some(100)), (Some(2), Some(100)), (None, None)]);
        let text = shown(&document);
        assert_eq!(text.matches("what it held is lost").count(), 1, "{text}");
        assert!(
            text.contains("node 3 was started again") && text.contains("none: node 3 is empty"),
            "{text}"
        );
        // A connection that both have lost is no restart, and neither are nodes that have not met.
        for (connected, resets) in [(0, 1), (0, 0), (1, 1)] {
            let text = shown(&seeing(|_, _| (connected, resets), |_| ()));
            assert!(!text.contains("lost") && !text.contains("none:"), "{text}");
        }
    }

    #[test]
    fn who_is_kept_out_says_why_and_leads_nothing() {
        let why = "node 1 refuses this node: it does not know the secret of the cluster";
        let document = seeing(
            |from, to| if from == 3 || to == 3 { (0, 0) } else { (1, 0) },
            |state| {
                if state.node == 3 {
                    (state.troubles, state.shut_out) = (vec![why.to_owned()], true);
                }
            },
        );
        let leaders: Vec<_> = document.shards.iter().map(|shard| shard.leader).collect();
        assert_eq!(leaders, [Some(1), Some(2), None]);
        let text = shown(&document);
        assert!(text.contains(&format!("node 3 says: {why}")), "{text}");
        assert!(text.contains("none: node 3 is refused"), "{text}");
    }

    #[test]
    fn what_matters_is_shown_in_every_state_at_eighty_columns() {
        let states = [
            seeing(|_, _| (1, 0), |_| ()),
            seeing(|from, to| if from == 3 || to == 3 { (0, u64::from(to == 3)) } else { (1, 0) }, |_| ()),
            cluster(&[1; 3], &[1, 2], |node| vec![(3 - node, 0.000_012)]),
            cluster(&[1; 3], &[], |_| Vec::new()),
        ];
        for document in states {
            let text = show(&document, Terminal { width: 80, colour: false });
            let (table, _) = text
                .split_once("\n\n")
                .map_or(("", ""), |(_, rest)| rest.split_once("\n\n").unwrap_or((rest, "")));
            let head = table.lines().next().unwrap_or_default();
            for title in ["node", "address", "state", "shards", "slots", "connected"] {
                assert!(head.contains(title), "{title}: {text}");
            }
            assert!(table.lines().all(|line| line.chars().count() <= 80), "{text}");
            for width in [1, 20, 40] {
                let narrow = show(&document, Terminal { width, colour: false });
                assert!(narrow.contains("node") && narrow.contains("state"), "{narrow}");
            }
        }
    }

    #[test]
    fn every_shard_has_a_row_with_its_leader_and_many_share_one() {
        let document = cluster(&[1, 2], &[1], |_| Vec::new());
        let text = shown(&document);
        let (_, rows) = text.split_once("leader").expect("a table of shards");
        assert_eq!(row(rows, "0"), ["0", "node", "1", "100", "3", "0", "0"], "{text}");
        for shard in ["1", "2"] {
            assert_eq!(row(rows, shard), [shard, "none:", "node", "2", "is", "down"], "{text}");
        }
        let leaders: Vec<_> = document.shards.iter().map(|shard| (shard.shard, shard.leader)).collect();
        assert_eq!(leaders, [(0, Some(1)), (1, None), (2, None)]);

        let many = shown(&cluster(&[20, 1], &[1, 2], |_| Vec::new()));
        let (_, rows) = many.split_once("leader").expect("a table of shards");
        assert_eq!(row(rows, "0-19"), ["0-19", "node", "1", "2,000", "60", "0", "0"], "{many}");
        assert_eq!(row(rows, "20"), ["20", "node", "2", "100", "3", "0", "0"], "{many}");
    }
}
