//! What a node says of itself: as JSON for programs and for `plimsoll status`, and as metrics.

#![allow(missing_docs, reason = "the fields' names are the documentation of the JSON")]

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_engine::ORACLE_ID;
use plimsoll_page::units;
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use serde::{Deserialize, Serialize};

/// A node, at a moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// The version of the program.
    pub plimsoll: String,
    /// The cluster's name and checksum.
    pub cluster: String,
    pub cluster_id: String,
    /// What transactions are run and ordered by, and whether they are serializable.
    pub protocol: String,
    pub scheme: String,
    pub serializable: bool,
    /// The node's number; 65535 is the oracle.
    pub node: u16,
    /// Of the oracle only.
    pub oracle: Option<OracleState>,
    /// Whether it is connected to all others.
    pub ready: bool,
    /// What keeps it and others apart, in sentences, until somebody changes something.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// Whether this is why it has never been connected to another process.
    #[serde(default)]
    pub shut_out: bool,
    /// Seconds since it was started.
    pub uptime_seconds: f64,
    /// Bytes of the whole process, and processor time that it has used.
    pub resident_bytes: u64,
    /// Bytes that its data may take, and takes.
    #[serde(default)]
    pub memory_limit_bytes: u64,
    #[serde(default)]
    pub memory_used_bytes: u64,
    pub cpu_seconds: f64,
    pub shards: Vec<ShardState>,
    pub tables: Vec<TableState>,
    pub peers: Vec<PeerState>,
    /// The snapshot that is open longest, of those that the node has heard of.
    #[serde(default)]
    pub oldest_snapshot: Option<OldestSnapshotState>,
}

/// A snapshot that keeps old versions from being dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OldestSnapshotState {
    pub age_seconds: f64,
    /// The process that has it open: a node, or a client with its address.
    pub holder: String,
    /// What the node keeps for it, or for others that began close to it.
    pub versions: u64,
    pub bytes: u64,
}

/// The oracle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OracleState {
    /// Numbers that snapshots contain, and those given out that they do not contain yet.
    pub published: u64,
    pub unpublished: u64,
    /// Messages sent to shards.
    pub messages: u64,
}

/// One shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShardState {
    pub shard: u16,
    /// How many slots it owns.
    pub slots: u64,
    /// The version of its placement map: how many moves of slots it knows of.
    pub map_version: u64,
    /// Messages sent to other shards.
    pub messages: u64,
    /// Times a read-only transaction had to wait for a writer.
    pub read_only_waits: u64,
    /// Votes given on transactions that write on this shard: RECORD, and REFUSE.
    pub votes_recorded: u64,
    pub votes_refused: u64,
    /// Outcomes that became known of those with a vote RECORD where several shards vote, and how
    /// many of them were not told by the coordinator but learned from others who vote.
    pub outcomes_committed: u64,
    pub outcomes_aborted: u64,
    pub outcomes_asked: u64,
    /// Transactions whose writes were installed.
    pub installs: u64,
    /// Messages with reads at a snapshot that were answered.
    pub snapshot_reads: u64,
    /// Timestamps of other processes that were further ahead of this node's clock than clocks may
    /// be apart, and were not believed.
    pub future_stamps: u64,
    /// Locks, reads and validations that coordinators were refused, by reason.
    pub aborts: BTreeMap<String, u64>,
    /// Marks raised by snapshot reads.
    pub mark_raises: u64,
    /// What read-write transactions have read and pinned.
    pub pins: u64,
    /// Messages to the oracle, or from the oracle to others.
    pub oracle_messages: u64,
    /// Records and ranges that are locked.
    pub locks: u64,
    /// Transactions that the shard has voted for and does not know the outcome of.
    pub in_doubt: u64,
    /// Votes of transactions that are remembered.
    pub votes: u64,
    /// Tasks, calls and requests that have begun and are not done.
    pub tasks: u64,
    pub calls: u64,
    pub requests: u64,
    /// Its log, if the cluster keeps what is committed.
    pub log: Option<LogState>,
}

/// The log of a shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogState {
    /// Whether it is being read: then the shard does not serve yet.
    pub reading: bool,
    /// Entries in all, and the bytes of those that this process has made.
    pub entries: u64,
    pub bytes: u64,
    /// Writes and syncs of this process, and how long they took in all.
    pub flushes: u64,
    pub flush_seconds: f64,
    /// Bytes of the last image, 0 if there is none, and of the entries since it was begun.
    pub image_bytes: u64,
    pub since_image_bytes: u64,
    /// If transactions do not wait for the disk: how old the timestamp is to which a crash would
    /// take the database back, while it has committed above.
    pub cut_lag_seconds: f64,
    /// What is wrong with it, if anything.
    pub failure: Option<String>,
}

/// A table's part on this node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableState {
    pub table: String,
    pub rows: u64,
    pub bytes: u64,
}

/// Another node, as this one sees it, or all clients together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeerState {
    /// `null`: the clients. 65535: the oracle.
    pub node: Option<u16>,
    /// Pairs of a shard here and one there, and how many of them are connected.
    pub pairs: u64,
    pub connected: u64,
    pub messages_sent: u64,
    pub messages_received: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Bytes that the other side has not taken yet.
    pub bytes_waiting: u64,
    pub resets: u64,
    /// Why the last connection ended.
    pub last_reset: Option<String>,
    /// By how much its clock is ahead, wrong by half of the round trip at most.
    pub clock_ahead_seconds: Option<f64>,
    pub round_trip_seconds: Option<f64>,
}

/// How far clocks may be apart, in seconds: processes refuse each other's timestamps if they are
/// further ahead.
pub const CLOCK_ALARM: f64 = MAX_OFFSET_NS as f64 / 1e9;

/// The node whose clock is furthest from this one's, of those whose clocks are known, and by how
/// many seconds it is ahead.
pub fn furthest_clock(ahead: impl Iterator<Item = (u16, f64)>) -> Option<(u16, f64)> {
    ahead.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))
}

/// What is wrong with the clocks, as a node sees it, and what to do: a sentence that begins with
/// the clock in question. `None` if all clocks that are known are near this one. If most others are
/// off in the same direction, it is this node's own clock that is wrong.
pub fn clock_alarm(own: &str, others: &[(u16, f64)], name: impl Fn(u16) -> String) -> Option<String> {
    let (id, ahead) =
        furthest_clock(others.iter().copied()).filter(|(_, ahead)| ahead.abs() > CLOCK_ALARM)?;
    let off = others.iter().filter(|(_, other)| other.abs() > CLOCK_ALARM && (*other > 0.0) == (ahead > 0.0));
    let mine = others.len() > 1 && 2 * off.count() > others.len();
    let (whose, ahead, of) = match mine {
        true => (own.to_owned(), -ahead, "the other nodes'".to_owned()),
        false => (name(id), ahead, format!("{own}'s")),
    };
    let direction = if ahead > 0.0 { "ahead of" } else { "behind" };
    Some(format!(
        "the clock of {whose} is {} {direction} {of}: timestamps more than {CLOCK_ALARM} s ahead are refused, so transactions \
         that need both end as clock_ahead; set the machine's clock right, then start all processes of the cluster anew",
        units::seconds(ahead.abs())
    ))
}

/// A figure's name, whether it only grows, and what it is.
type Metric = (&'static str, bool, &'static str);
/// A figure of a shard that is divided by a label: the label's name, and the figure for each of its
/// values.
type Divided = (Metric, &'static str, fn(&ShardState) -> Vec<(&str, u64)>);
/// Figures that things of one kind have.
type Metrics<T, V, const N: usize> = [(Metric, fn(&T) -> V); N];

/// In the text format of Prometheus.
pub fn metrics(state: &State) -> String {
    let mut text = String::new();
    let mut family = |(name, grows, help): Metric, samples: Vec<(String, f64)>| {
        if samples.is_empty() {
            return;
        }
        let kind = if grows { "counter" } else { "gauge" };
        let _ = writeln!(text, "# HELP plimsoll_{name} {help}\n# TYPE plimsoll_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "plimsoll_{name}{labels} {value}");
        }
    };
    let whole = |value: f64| vec![(String::new(), value)];
    family(("ready", false, "1 if connected to all other nodes."), whole(f64::from(u8::from(state.ready))));
    family(("uptime_seconds", true, "Since the node was started."), whole(state.uptime_seconds));
    family(("resident_bytes", false, "Memory of the process."), whole(state.resident_bytes as f64));
    let (limit, used) = (state.memory_limit_bytes, state.memory_used_bytes);
    family(("memory_limit_bytes", false, "What the data may take."), whole(limit as f64));
    family(("memory_used_bytes", false, "What the data takes."), whole(used as f64));
    family(("cpu_seconds_total", true, "Processor time of the process."), whole(state.cpu_seconds));

    let shard_metrics: Metrics<ShardState, u64, 15> = [
        (("messages_total", true, "Messages sent to other shards."), |shard| shard.messages),
        (("read_only_waits_total", true, "Waits of read-only transactions for writers."), |s| {
            s.read_only_waits
        }),
        (("installs_total", true, "Transactions whose writes were installed."), |shard| shard.installs),
        (("snapshot_reads_total", true, "Messages with reads at a snapshot that were answered."), |shard| {
            shard.snapshot_reads
        }),
        (("future_stamps_total", true, "Timestamps of other processes refused as too far ahead."), |s| {
            s.future_stamps
        }),
        (("outcomes_asked_total", true, "Outcomes learned from others who vote."), |s| s.outcomes_asked),
        (("mark_raises_total", true, "Marks raised by snapshot reads."), |shard| shard.mark_raises),
        (("pins_total", true, "Reads pinned by read-write transactions."), |shard| shard.pins),
        (("oracle_messages_total", true, "Messages to the oracle."), |shard| shard.oracle_messages),
        (("locks", false, "Records and ranges locked."), |shard| shard.locks),
        (("in_doubt", false, "Transactions voted for whose outcome is not known."), |shard| shard.in_doubt),
        (("votes", false, "Transactions whose votes are remembered."), |shard| shard.votes),
        (("tasks", false, "Tasks that are not done."), |shard| shard.tasks),
        (("calls", false, "Calls that are not answered."), |shard| shard.calls),
        (("waiting_requests", false, "Requests that wait for a lock or a writer."), |shard| shard.requests),
    ];
    for (metric, of) in shard_metrics {
        let sample = |shard: &ShardState| (format!("{{shard=\"{}\"}}", shard.shard), of(shard) as f64);
        family(metric, state.shards.iter().map(sample).collect());
    }
    let divided: [Divided; 3] = [
        (("votes_total", true, "Votes on transactions that write on the shard."), "vote", |shard| {
            vec![("record", shard.votes_recorded), ("refuse", shard.votes_refused)]
        }),
        (
            ("outcomes_total", true, "Outcomes of those with a vote RECORD, where several shards vote."),
            "outcome",
            |shard| vec![("committed", shard.outcomes_committed), ("aborted", shard.outcomes_aborted)],
        ),
        (("aborts_total", true, "What coordinators were refused by the shard, by reason."), "reason", |s| {
            s.aborts.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
        }),
    ];
    for (metric, label, of) in divided {
        let samples = state.shards.iter().flat_map(|shard| {
            let labels =
                move |value: &str| format!("{{shard=\"{}\",{label}=\"{}\"}}", shard.shard, escaped(value));
            of(shard).into_iter().map(move |(value, count)| (labels(value), count as f64))
        });
        family(metric, samples.collect());
    }

    let log_metrics: Metrics<LogState, f64, 9> = [
        (("log_reading", false, "Whether the log is being read: 1 if so."), |log| f64::from(log.reading)),
        (("log_entries_total", true, "Entries in the log."), |log| log.entries as f64),
        (("log_bytes_total", true, "Bytes of the entries that this process has made."), |log| {
            log.bytes as f64
        }),
        (("log_flushes_total", true, "Writes of the log that were synced."), |log| log.flushes as f64),
        (("log_flush_seconds_total", true, "How long they took."), |log| log.flush_seconds),
        (("log_failed", false, "Whether the log cannot be written, or has no room: 1 if so."), |log| {
            f64::from(log.failure.is_some())
        }),
        (("image_bytes", false, "Bytes of the last image."), |log| log.image_bytes as f64),
        (("image_since_bytes", false, "Bytes of the entries since it was begun."), |log| {
            log.since_image_bytes as f64
        }),
        (("cut_lag_seconds", false, "How old what was committed is that a crash would take back."), |log| {
            log.cut_lag_seconds
        }),
    ];
    for (metric, of) in log_metrics {
        let sample =
            |shard: &ShardState| Some((format!("{{shard=\"{}\"}}", shard.shard), of(shard.log.as_ref()?)));
        family(metric, state.shards.iter().filter_map(sample).collect());
    }

    if let Some(oldest) = &state.oldest_snapshot {
        for (metric, value) in [
            (
                ("oldest_snapshot_seconds", false, "Age of the snapshot that is open longest."),
                oldest.age_seconds,
            ),
            (
                ("oldest_snapshot_versions", false, "Old versions kept for that snapshot."),
                oldest.versions as f64,
            ),
            (("oldest_snapshot_bytes", false, "Bytes of these versions."), oldest.bytes as f64),
        ] {
            family(metric, vec![(format!("{{holder=\"{}\"}}", escaped(&oldest.holder)), value)]);
        }
    }

    if let Some(oracle) = &state.oracle {
        for (metric, value) in [
            (("oracle_published_total", true, "Numbers that snapshots contain."), oracle.published),
            (("oracle_unpublished", false, "Numbers given out that none contains yet."), oracle.unpublished),
            (("oracle_answers_total", true, "Messages to shards."), oracle.messages),
        ] {
            family(metric, whole(value as f64));
        }
    }

    let table_metrics: Metrics<TableState, u64, 2> = [
        (("table_rows", false, "Rows, deleted ones that are not yet collected included."), |table| {
            table.rows
        }),
        (("table_bytes", false, "Keys, values, old versions and indexes."), |table| table.bytes),
    ];
    for (metric, of) in table_metrics {
        let sample =
            |table: &TableState| (format!("{{table=\"{}\"}}", escaped(&table.table)), of(table) as f64);
        family(metric, state.tables.iter().map(sample).collect());
    }

    let peer_metrics: Metrics<PeerState, u64, 8> = [
        (("peer_pairs", false, "Pairs of a shard here and one there."), |peer| peer.pairs),
        (("peer_connected", false, "Such pairs that are connected."), |peer| peer.connected),
        (("peer_messages_sent_total", true, "Messages given to connections."), |peer| peer.messages_sent),
        (("peer_messages_received_total", true, "Messages that have arrived."), |peer| {
            peer.messages_received
        }),
        (("peer_bytes_sent_total", true, "Bytes sent."), |peer| peer.bytes_sent),
        (("peer_bytes_received_total", true, "Bytes received."), |peer| peer.bytes_received),
        (("peer_bytes_waiting", false, "Bytes that the other side has not taken."), |peer| {
            peer.bytes_waiting
        }),
        (("peer_resets_total", true, "Connections that have come to an end."), |peer| peer.resets),
    ];
    for (metric, of) in peer_metrics {
        let sample = |peer: &PeerState| (label(peer), of(peer) as f64);
        family(metric, state.peers.iter().map(sample).collect());
    }
    let optional: Metrics<PeerState, Option<f64>, 2> = [
        (("peer_clock_ahead_seconds", false, "By how much the other clock is ahead."), |p| {
            p.clock_ahead_seconds
        }),
        (("peer_round_trip_seconds", false, "Of that estimate; half of it is its error."), |p| {
            p.round_trip_seconds
        }),
    ];
    for (metric, of) in optional {
        let known = state.peers.iter().filter_map(|peer| Some((peer, of(peer)?)));
        family(metric, known.map(|(peer, value)| (label(peer), value)).collect());
    }
    text
}

fn label(peer: &PeerState) -> String {
    match peer.node {
        None => "{peer=\"clients\"}".to_owned(),
        Some(ORACLE_ID) => "{peer=\"oracle\"}".to_owned(),
        Some(node) => format!("{{peer=\"{node}\"}}"),
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let shard = ShardState {
            shard: 3,
            messages: 7,
            votes_recorded: 5,
            votes_refused: 2,
            outcomes_committed: 4,
            outcomes_asked: 1,
            aborts: [("validation".to_owned(), 6), ("user".to_owned(), 0)].into(),
            ..ShardState::default()
        };
        State {
            plimsoll: "0".to_owned(),
            cluster: "c".to_owned(),
            cluster_id: "0".to_owned(),
            protocol: "occ".to_owned(),
            scheme: "dst".to_owned(),
            serializable: true,
            node: 1,
            oracle: Some(OracleState { published: 41, unpublished: 1, messages: 5 }),
            ready: true,
            troubles: Vec::new(),
            shut_out: false,
            uptime_seconds: 1.5,
            resident_bytes: 9,
            memory_limit_bytes: 8,
            memory_used_bytes: 7,
            cpu_seconds: 0.5,
            shards: vec![shard],
            tables: vec![TableState { table: "a\"b".to_owned(), rows: 2, bytes: 3 }],
            peers: Vec::new(),
            oldest_snapshot: Some(OldestSnapshotState {
                age_seconds: 90.5,
                holder: "client 3 at 10.0.0.7:40022".to_owned(),
                versions: 12,
                bytes: 1440,
            }),
        }
    }

    #[test]
    fn metrics_are_families_with_help_type_and_samples() {
        let text = metrics(&state());
        let expected = "# HELP plimsoll_messages_total Messages sent to other shards.\n\
                        # TYPE plimsoll_messages_total counter\nplimsoll_messages_total{shard=\"3\"} 7\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("plimsoll_table_rows{table=\"a\\\"b\"} 2\n"), "{text}");
        assert!(
            text.contains("plimsoll_ready 1\n") && text.contains("plimsoll_uptime_seconds 1.5\n"),
            "{text}"
        );
        assert!(text.contains("plimsoll_oracle_unpublished 1\n"), "{text}");
        for line in [
            "plimsoll_oldest_snapshot_seconds{holder=\"client 3 at 10.0.0.7:40022\"} 90.5\n",
            "plimsoll_oldest_snapshot_versions{holder=\"client 3 at 10.0.0.7:40022\"} 12\n",
            "plimsoll_oldest_snapshot_bytes{holder=\"client 3 at 10.0.0.7:40022\"} 1440\n",
        ] {
            assert!(text.contains(line), "{line} is missing: {text}");
        }
        let quiet = metrics(&State { oldest_snapshot: None, ..state() });
        assert!(!quiet.contains("snapshot_seconds"), "no snapshot is open: {quiet}");
        assert!(!text.contains("peer"), "nothing is said of nobody: {text}");
        let votes = "# TYPE plimsoll_votes_total counter\n\
                     plimsoll_votes_total{shard=\"3\",vote=\"record\"} 5\n\
                     plimsoll_votes_total{shard=\"3\",vote=\"refuse\"} 2\n";
        assert!(text.contains(votes), "{text}");
        for line in [
            "plimsoll_outcomes_total{shard=\"3\",outcome=\"committed\"} 4\n",
            "plimsoll_outcomes_total{shard=\"3\",outcome=\"aborted\"} 0\n",
            "plimsoll_outcomes_asked_total{shard=\"3\"} 1\n",
            "plimsoll_aborts_total{shard=\"3\",reason=\"validation\"} 6\n",
            "plimsoll_aborts_total{shard=\"3\",reason=\"user\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing: {text}");
        }
        for elsewhere in ["coordinated", "restarts", "graph"] {
            assert!(!text.contains(elsewhere), "a node neither coordinates nor runs rococo: {text}");
        }
    }

    #[test]
    fn no_name_stands_for_two_families_and_counters_are_called_so() {
        let text = metrics(&state());
        let mut names: Vec<&str> = Vec::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').expect("a name and a kind");
            assert!(!names.contains(&name), "{name} comes twice");
            assert!(kind == "counter" || !name.ends_with("_total"), "{name} is no {kind}");
            names.push(name);
        }
        assert!(names.len() > 20, "{names:?}");
    }

    #[test]
    fn who_is_alone_with_its_clock_is_told_that_it_is_its_own() {
        let alarm = |others: &[(u16, f64)]| clock_alarm("node 1", others, |id| format!("node {id}"));
        let begins = |others: &[(u16, f64)], words: &str| {
            let said = alarm(others).unwrap_or_default();
            assert!(said.starts_with(words) && said.contains("set the machine's clock right"), "{said}");
        };
        begins(&[(2, -3600.0), (3, -3599.9)], "the clock of node 1 is 1 h 00 m ahead of the other nodes'");
        begins(&[(2, 9.0), (3, 9.1), (4, 0.1)], "the clock of node 1 is 9.1 s behind the other nodes'");
        begins(&[(2, 0.1), (3, -3.0)], "the clock of node 3 is 3.0 s behind node 1's");
        // Of two nobody knows which is right.
        begins(&[(2, 3.0)], "the clock of node 2 is 3.0 s ahead of node 1's");
        assert_eq!(alarm(&[(2, 0.5), (3, -0.4)]), None);
    }

    #[test]
    fn what_a_node_of_another_version_does_not_say_is_zero() {
        let shard: ShardState = serde_json::from_str("{\"shard\": 2, \"locks\": 1}").expect("it is enough");
        assert_eq!((shard.shard, shard.locks, shard.votes_recorded), (2, 1, 0));
    }
}
