//! `plimsoll start`: a node of a cluster, until it is told to stop. `plimsoll status`: the cluster
//! as it is. `plimsoll move`: where its data is. `plimsoll verify`: whether what a node has kept is
//! whole.
//!
//! A node holds its part of every table in memory and commits transactions that clients coordinate.
//! It starts whether or not the others are there; what needs them waits. SIGTERM and Ctrl-C stop
//! it: what it has sent leaves, then the process ends with status 0. A node with a data directory
//! has what it had before once it has read its logs; without one, what a node holds is gone when it
//! ends.
//!
//! If nodes do not wait for their disks, all go back to one timestamp when one of them comes back
//! (`async`). A node that has served meanwhile starts its own program anew then, in the same
//! process: what it held in memory is over, as after a crash, and what it has on disk is read by
//! the code that reads it after one (`start_anew`).

pub mod cli;
mod http;
pub mod moves;
pub mod secret;
#[cfg(feature = "sql")]
pub mod sql;
pub mod state;
pub mod status;
mod troubles;
pub mod verify;

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use plimsoll_engine::{Cluster, Durability, Engine, NodeConfig, machine};

use plimsoll_runtime::real::{Endpoint, resolve};
use plimsoll_txn::any_shard::LogStatus;
use plimsoll_txn::room::Memory;
use plimsoll_types::{Abort, Timestamp};
use tracing_subscriber::EnvFilter;

use cli::{LogFormat, StartPlan};
use state::{
    CLOCK_ALARM, LogState, OldestSnapshotState, OracleState, PeerState, ShardState, State, TableState,
    clock_alarm,
};
use troubles::Troubles;

/// How often a node looks whether it is to stop, and whether others have come or gone.
const LOOK: Duration = Duration::from_millis(50);
/// How often it looks at its logs, and notes in its data directory whom it has met.
const LOOK_AT_LOGS: Duration = Duration::from_secs(1);
/// After so long a node that starts says for whom it waits.
const COMPLAIN_AFTER: Duration = Duration::from_secs(5);

/// Runs a node until it is told to stop.
pub fn start(plan: &StartPlan, stop: &AtomicBool) -> Result<bool, Box<dyn std::error::Error>> {
    log(plan.log).map_err(|error| error.to_string())?;
    let (cluster, node) = (&plan.cluster, &plan.node);
    let lonely = cluster.secret.is_none().then_some("a cluster without a secret stays on one machine");
    let listener = bind(&node.listen, lonely)
        .map_err(|error| taken(error, &node.listen, "other nodes and clients", "; see `listen`", node))?;
    let data_dir = plan.data_dir.as_deref();
    #[cfg(feature = "sql")]
    let listening = plan.sql.as_ref().map(|address| sql::listen(address, node)).transpose()?;
    #[cfg(not(feature = "sql"))]
    let listening = None;
    let engine = Engine::join(cluster, node.id, listener, Some(plan.memory), data_dir, listening)?;
    let engine = Arc::new(engine);
    #[cfg(feature = "sql")]
    sql::serve(&engine, cluster, node.id);
    #[cfg(feature = "sql")]
    if let Some(address) = &plan.sql {
        tracing::info!("for SQL: psql -h {} -p {}", sql::host(address), address.port());
    }
    let pair = cluster.pair;
    let troubles = Arc::new(Troubles::default());
    if let Some(address) = &node.http {
        let room = engine.runtime().room();
        let (begun, engine, cluster) = (Instant::now(), Arc::downgrade(&engine), cluster.clone());
        let (id, troubles) = (node.id, troubles.clone());
        let look = move || match engine.upgrade() {
            Some(engine) => look(&engine, &cluster, &troubles, id, begun),
            None => State { node: id, ..State::default() },
        };
        bind(address, lonely)
            .and_then(|listener| {
                http::serve(listener, room, Arc::new(look), plan.cluster.description.clone())
            })
            .map_err(|error| taken(error, address, "HTTP", "", node))?;
        tracing::info!(%address, "health, readiness, metrics and status over HTTP");
    }
    tracing::info!(
        cluster = cluster.name,
        process = %node,
        protocol = pair.protocol.name(),
        scheme = pair.scheme.name(),
        shards = node.shards,
        tables = cluster.tables.len(),
        durability = %cluster.durability,
        address = %node.listen,
        "up"
    );
    if !pair.serializable() {
        tracing::warn!("transactions are NOT serializable under {}: it is for comparison only", pair.scheme);
    }
    let (mut ready, mut alarm, mut complained) = (false, false, false);
    let goes_back = cluster.durability == Durability::Async;
    let mut recovered = data_dir.is_none();
    let mut failing: Option<String> = None;
    let mut looked = None;
    let mut absent: Vec<u16> = Vec::new();
    let begun = Instant::now();
    while !stop.load(SeqCst) {
        if goes_back && engine.is_over() {
            tracing::warn!("another node has come back: this one goes back with it to what all have on disk");
            return Err(start_anew().into());
        }
        if !recovered && engine.is_recovered()? {
            recovered = true;
            tracing::info!(seconds = begun.elapsed().as_secs_f64(), "has what it had: the logs were read");
            say_what_is_lost(&engine);
        }
        let gone = std::mem::replace(&mut absent, engine.missing().collect());
        if gone != absent {
            tracing::debug!(missing = missing(cluster, &absent), "others have come or gone");
        }
        let now = absent.is_empty() && recovered;
        match (ready, now) {
            (false, true) => {
                looked = None;
                tracing::info!("connected to all other nodes");
            }
            (_, false) if absent.is_empty() => {}
            (true, false) => {
                tracing::warn!("not connected to {}", missing(cluster, &absent));
                complained = true;
            }
            (false, false) if !complained && begun.elapsed() > COMPLAIN_AFTER => {
                tracing::warn!(
                    "not connected to {} after {COMPLAIN_AFTER:?}: see that they run and can be reached, and that no other \
                     process is {node}",
                    missing(cluster, &absent)
                );
                if let Some(sentence) = waits(&engine, cluster) {
                    tracing::warn!("{sentence}");
                }
                complained = true;
            }
            _ => {}
        }
        ready = now;
        if data_dir.is_some() && looked.is_none_or(|looked: Instant| looked.elapsed() > LOOK_AT_LOGS) {
            looked = Some(Instant::now());
            let cannot = engine.log_failure().map(|(shard, why)| log_trouble(shard.0, &why));
            // A log is there when something was written to it.
            let fails = cannot.or_else(|| {
                let error = if recovered { engine.note_others().err()? } else { return None };
                Some(format!("which nodes this one has met cannot be noted: {error}"))
            });
            match (&failing, &fails) {
                (None, Some(sentence)) => tracing::warn!("{sentence}"),
                (Some(_), None) => tracing::info!("all logs can be used again"),
                _ => {}
            }
            failing = fails;
        }
        troubles.look(&engine, cluster);
        let clocks = engine.runtime().traffic().into_iter();
        let ahead = clocks.filter_map(|peer| peer.node.zip(peer.ahead_ns.map(|ns| ns as f64 / 1e9)));
        let name = |id| {
            let other = cluster.processes().find(|node| node.id == id);
            other.map(NodeConfig::to_string).unwrap_or_default()
        };
        let off = clock_alarm(&node.to_string(), &ahead.collect::<Vec<_>>(), name);
        match (alarm, &off) {
            (false, Some(sentence)) => tracing::warn!("{sentence}"),
            (true, None) => tracing::info!("all clocks are within {CLOCK_ALARM} s of this one again"),
            _ => {}
        }
        alarm = off.is_some();
        std::thread::sleep(LOOK);
    }
    engine.settle();
    tracing::info!("{node} stops");
    Ok(true)
}

/// Starts the program of this process anew. Returns only if that fails.
fn start_anew() -> String {
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program.unwrap_or("/proc/self/exe".into()));
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).exec();
    format!("the database goes back to a timestamp, and this node cannot start anew: {error}; start it again")
}

/// Logs to which timestamp the database has gone back, if it has.
fn say_what_is_lost(engine: &Engine) {
    let logs = engine.shards().filter_map(|shard| engine.status(shard).log);
    let (mut cut, mut cut_ns, mut dropped) = (None, None, 0);
    for log in logs {
        (cut, cut_ns, dropped) = (cut.max(log.cut), cut_ns.max(log.cut_ns), dropped + log.dropped);
    }
    if cut.is_some_and(|cut| cut > Timestamp::ZERO) {
        let now_ns = engine.runtime().clock().now().0;
        let seconds = cut_ns.map(|cut_ns| now_ns.saturating_sub(cut_ns) as f64 / 1e9);
        tracing::info!(
            seconds_ago = seconds,
            dropped_versions = dropped,
            "the database goes on from one timestamp: what was committed later is lost, on all nodes"
        );
    }
}

/// A sentence if nothing is served because the database goes back to a timestamp and not all nodes
/// are there.
fn waits(engine: &Engine, cluster: &Cluster) -> Option<String> {
    let absent: Vec<u16> = engine.missing().collect();
    let waits = cluster.durability == Durability::Async
        && !absent.is_empty()
        && !engine.is_recovered().unwrap_or(true);
    waits.then(|| {
        format!(
            "nothing is served before {} is back: under durability async all nodes go back to one timestamp, \
             together",
            missing(cluster, &absent)
        )
    })
}

/// The nodes that this one is not connected to, by name.
fn missing(cluster: &Cluster, missing: &[u16]) -> String {
    let nodes = cluster.processes().filter(|node| missing.contains(&node.id)).map(NodeConfig::to_string);
    nodes.collect::<Vec<_>>().join(", ")
}

/// Listens on an address. If there is a reason to stay on this machine, it has to be a loopback
/// address, whatever its name meant when it was read.
fn bind(address: &Endpoint, lonely: Option<&str>) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(&resolve(address)?[..])?;
    let here = listener.local_addr()?;
    match lonely {
        Some(why) if !here.ip().is_loopback() => {
            let why = format!("{why}, and others can reach {here}");
            Err(std::io::Error::new(ErrorKind::PermissionDenied, why))
        }
        _ => Ok(listener),
    }
}

fn taken(
    error: std::io::Error,
    address: &Endpoint,
    whom: &str,
    see: &str,
    node: &NodeConfig,
) -> Box<dyn std::error::Error> {
    let what = match error.kind() {
        ErrorKind::AddrInUse => format!("it is taken; is {node} running already?"),
        ErrorKind::AddrNotAvailable => format!("this machine does not have it{see}"),
        _ => error.to_string(),
    };
    format!("{node} cannot listen on {address} for {whom}: {what}").into()
}

/// Logs to standard error.
fn log(format: LogFormat) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .with_env_var("PLIMSOLL_LOG")
        .from_env()
        .map_err(|error| format!("PLIMSOLL_LOG: {error}"))?;
    let logger = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logger.with_ansi(false).try_init()?,
        LogFormat::Json => logger.json().try_init()?,
    }
    Ok(())
}

/// A sentence about a log that cannot be read or written.
fn log_trouble(shard: u16, failure: &str) -> String {
    format!("the log of shard {shard} cannot be used now, so nothing new is committed there: {failure}")
}

fn log_state(log: LogStatus, now: Timestamp) -> LogState {
    let behind = log.cut.filter(|&cut| cut < log.largest).and(log.cut_ns);
    let behind_ns = behind.map_or(0, |cut_ns| now.0.saturating_sub(cut_ns));
    LogState {
        cut_lag_seconds: behind_ns as f64 / 1e9,
        reading: log.is_recovering,
        entries: log.entries,
        bytes: log.bytes,
        flushes: log.flushes,
        flush_seconds: log.flush_ns as f64 / 1e9,
        image_bytes: log.image_bytes,
        since_image_bytes: log.since_image_bytes,
        failure: log.failure,
    }
}

/// How the node is.
fn look(engine: &Engine, cluster: &Cluster, troubles: &Troubles, id: u16, begun: Instant) -> State {
    let known = engine.tables();
    let shards = engine.shards().map(|shard| {
        engine.on_shard(shard, move |own| {
            let (status, pending, map) = (own.status(), own.pending(), own.placement());
            let counters = status.counters;
            let ([recorded, refused], [aborted, committed]) = (status.votes_given, counters.outcomes);
            ShardState {
                shard: shard.0,
                slots: map.slots(shard) as u64,
                map_version: map.version(),
                messages: own.messages(),
                read_only_waits: counters.read_only_waits,
                votes_recorded: recorded,
                votes_refused: refused,
                outcomes_committed: committed,
                outcomes_aborted: aborted,
                outcomes_asked: counters.outcomes_asked,
                installs: counters.installs,
                snapshot_reads: counters.snapshot_reads,
                future_stamps: counters.future_stamps,
                aborts: Abort::ALL
                    .map(|reason| (reason.name().to_owned(), counters.refusals[reason.index()]))
                    .into(),
                mark_raises: counters.mark_raises,
                pins: counters.pins,
                oracle_messages: counters.oracle_messages,
                locks: status.locks,
                in_doubt: status.in_doubt,
                votes: status.votes,
                tasks: pending.tasks as u64,
                calls: pending.calls as u64,
                requests: pending.requests as u64,
                log: status.log.map(|log| log_state(log, own.clock())),
            }
        })
    });
    let oldest = engine.oldest_snapshot().map(|oldest| OldestSnapshotState {
        age_seconds: engine.runtime().clock().now().0.saturating_sub(oldest.since.0) as f64 / 1e9,
        holder: engine.runtime().called(oldest.holder).unwrap_or_default(),
        versions: oldest.kept.versions as u64,
        bytes: oldest.kept.bytes as u64,
    });
    let tables = known.iter().zip(engine.memory()).map(|(spec, memory)| TableState {
        table: spec.name.clone(),
        rows: memory.rows as u64,
        bytes: memory.bytes as u64,
    });
    let peers = engine.runtime().traffic().into_iter().map(|peer| PeerState {
        node: peer.node,
        pairs: peer.pairs as u64,
        connected: peer.connected as u64,
        messages_sent: peer.messages_sent,
        messages_received: peer.messages_received,
        bytes_sent: peer.bytes_sent,
        bytes_received: peer.bytes_received,
        bytes_waiting: peer.bytes_waiting,
        resets: peer.resets,
        last_reset: peer.last_reset.map(|reason| reason.to_string()),
        clock_ahead_seconds: peer.ahead_ns.map(|ns| ns as f64 / 1e9),
        round_trip_seconds: peer.round_trip_ns.map(|ns| ns as f64 / 1e9),
    });
    let mut troubles = troubles.sentences(engine, cluster);
    let shut_out = !troubles.is_empty() && engine.missing().count() + 1 == cluster.processes().count();
    troubles.extend(waits(engine, cluster));
    let shards: Vec<ShardState> = shards.collect();
    troubles.extend(shards.iter().filter_map(|shard| {
        let failure = shard.log.as_ref()?.failure.as_ref()?;
        Some(log_trouble(shard.shard, failure))
    }));
    State {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: cluster.name.clone(),
        cluster_id: format!("{:016x}", cluster.id),
        protocol: engine.pair().protocol.name().to_owned(),
        scheme: engine.pair().scheme.name().to_owned(),
        serializable: engine.pair().serializable(),
        node: id,
        oracle: engine.oracle().map(|shard| {
            let status = engine.status(shard);
            OracleState {
                published: status.published,
                unpublished: status.unpublished,
                messages: status.counters.oracle_messages,
            }
        }),
        ready: engine.missing().next().is_none() && engine.is_recovered().unwrap_or(false),
        shut_out,
        troubles,
        uptime_seconds: begun.elapsed().as_secs_f64(),
        resident_bytes: machine::resident_bytes(),
        memory_limit_bytes: engine.limit().map_or(0, Memory::limit),
        memory_used_bytes: engine.limit().map_or(0, Memory::used),
        cpu_seconds: machine::process_cpu_seconds(),
        shards,
        tables: tables.collect(),
        peers: peers.collect(),
        oldest_snapshot: oldest,
    }
}
