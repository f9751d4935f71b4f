//! `plimsoll bench WORKLOAD --cluster FILE --load`: fills a cluster that runs with a workload's
//! rows, as a client.
//!
//! Rows are drawn here, unit by unit, and collected by table and shard into batches of about
//! [`BATCH_BYTES`], of which [`BATCHES_MAX`] at most are under way. A shard takes a batch as a
//! whole or refuses it ([`plimsoll_txn::load`]). One that does not have the slot of a row says
//! where the slot is, and the batch is divided anew.
//!
//! Left out: several clients that load together, and a load that goes on where another has ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use plimsoll_engine::{Cluster, Engine, NodeConfig, machine};
use plimsoll_node::cli::in_flags;
use plimsoll_page::progress::Progress;
use plimsoll_page::units;
use plimsoll_txn::messages::{LoadOutcome, Rows};
use plimsoll_types::{Key, Placement, ShardId, TableId};
use plimsoll_workloads::AnyWorkload;
use quanta::Clock;
use serde::Serialize;

use super::members::Failure;
use crate::report::progress::{LoadLine, LoadSample};

/// Bytes of keys and values after which a batch is sent.
const BATCH_BYTES: usize = 1 << 18;
/// Batches that are sent and not answered.
const BATCHES_MAX: usize = 32;
/// How long it takes to connect at most.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How often it looks whether it was interrupted, while it waits.
const LOOK: Duration = Duration::from_millis(100);
/// Pause before rows are sent to the shard that has their slots now.
const MAP_AFTER: Duration = Duration::from_millis(1);
/// How long rows are sent after slots that move.
const MOVES_MAX: Duration = Duration::from_secs(60);

/// What was loaded.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    plimsoll: &'static str,
    commit: &'static str,
    workload: &'static str,
    cluster: String,
    /// Rows; those with a copy on every shard count once.
    rows: u64,
    /// Bytes of their keys and values.
    bytes: u64,
    seconds: f64,
}

impl LoadReport {
    /// It in a line.
    pub fn show(&self) -> String {
        let LoadReport { workload, cluster, rows, bytes, seconds, .. } = self;
        let (rows, bytes) = (units::thousands(*rows), units::bytes(*bytes));
        format!(
            "{workload} is loaded on cluster {cluster:?}: {rows} rows, {bytes}, in {}\n",
            units::seconds(*seconds)
        )
    }
}

/// A batch that was sent, and its outcome; none if the node was lost meanwhile.
type Answer = (ShardId, TableId, Arc<Rows>, Option<LoadOutcome>);

/// The way of rows to the shards.
struct Pipe<'a> {
    engine: &'a Engine,
    cluster: &'a Cluster,
    interrupted: &'a AtomicBool,
    coordinator: ShardId,
    placement: Arc<Placement>,
    /// Rows that are not sent yet, and their bytes.
    batches: BTreeMap<(ShardId, TableId), (Rows, usize)>,
    under_way: usize,
    answer: Sender<Answer>,
    answers: Receiver<Answer>,
    /// Since when no shard has taken a batch.
    vain_since: Option<Instant>,
    rows: u64,
    bytes: u64,
}

/// Loads a workload's rows into a cluster.
pub fn load_cluster(
    workload: &dyn AnyWorkload,
    cluster: &Cluster,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<LoadReport, Failure> {
    let engine = Engine::connect(cluster, CONNECT_MAX).map_err(|error| Failure::Here(in_flags(error)))?;
    let coordinator = engine.coordinators().next().expect("a client has a shard");
    let (answer, answers) = mpsc::channel();
    let mut pipe = Pipe {
        engine: &engine,
        cluster,
        interrupted,
        coordinator,
        placement: engine.on_shard(coordinator, |shard| shard.placement()),
        batches: BTreeMap::new(),
        under_way: 0,
        answer,
        answers,
        vain_since: None,
        rows: 0,
        bytes: 0,
    };
    let (clock, units) = (Clock::new(), workload.units());
    let begun = clock.raw();
    let elapsed = || clock.delta(begun, clock.raw());
    let mut line = LoadLine::new(progress, format!("loading {}", workload.name()), units as u64);
    for unit in 0..units {
        let mut done = Ok(());
        workload.load(unit, &mut |table, key, values| {
            if done.is_ok() {
                done = pipe.push(table, key, values);
            }
        });
        done?;
        pipe.flush()?;
        line.show(LoadSample {
            elapsed: elapsed(),
            units: unit as u64 + 1,
            rows: pipe.rows,
            memory_bytes: machine::resident_bytes(),
        });
    }
    while pipe.under_way > 0 {
        pipe.hear()?;
    }
    Ok(LoadReport {
        plimsoll: env!("CARGO_PKG_VERSION"),
        commit: machine::COMMIT,
        workload: workload.name(),
        cluster: cluster.name.clone(),
        rows: pipe.rows,
        bytes: pipe.bytes,
        seconds: elapsed().as_secs_f64(),
    })
}

impl Pipe<'_> {
    /// Takes a row.
    fn push(&mut self, table: TableId, key: Key, values: &[&[u8]]) -> Result<(), Failure> {
        self.end_if_interrupted()?;
        let bytes = key.len() + values.iter().map(|value| value.len()).sum::<usize>();
        self.rows += 1;
        self.bytes += bytes as u64;
        let values: Vec<Vec<u8>> = values.iter().map(|value| value.to_vec()).collect();
        for shard in self.homes(table, &key) {
            let (rows, size) = self.batches.entry((shard, table)).or_default();
            rows.push((key.clone(), values.clone()));
            *size += bytes;
            if *size >= BATCH_BYTES {
                let rows = std::mem::take(rows);
                *size = 0;
                self.send(shard, table, rows)?;
            }
        }
        Ok(())
    }

    /// The shards that are to have a row.
    fn homes(&self, table: TableId, key: &Key) -> Vec<ShardId> {
        match self.cluster.tables[table.index()].partitioning.slot(key) {
            Some(slot) => vec![self.placement.shard(slot)],
            None => self.placement.holders().collect(),
        }
    }

    /// Sends what has collected.
    fn flush(&mut self) -> Result<(), Failure> {
        for ((shard, table), (rows, _)) in std::mem::take(&mut self.batches) {
            if !rows.is_empty() {
                self.send(shard, table, rows)?;
            }
        }
        Ok(())
    }

    /// Sends a batch, as soon as few enough are under way.
    fn send(&mut self, shard: ShardId, table: TableId, rows: Rows) -> Result<(), Failure> {
        while self.under_way >= BATCHES_MAX {
            self.hear()?;
        }
        self.launch(shard, table, rows);
        Ok(())
    }

    fn launch(&mut self, shard: ShardId, table: TableId, rows: Rows) {
        let (rows, answer) = (Arc::new(rows), self.answer.clone());
        self.under_way += 1;
        self.engine.spawn_on(self.coordinator, move |coordinator| async move {
            let outcome = coordinator.load_on(shard, table, rows.clone()).await;
            // The load is over if another batch was refused.
            let _ = answer.send((shard, table, rows, outcome));
        });
    }

    /// Waits for the answer to a batch.
    fn hear(&mut self) -> Result<(), Failure> {
        let (shard, table, rows, outcome) = loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) => self.end_if_interrupted()?,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the pipe itself may send answers"),
            }
        };
        self.under_way -= 1;
        let name = &self.cluster.tables[table.index()].name;
        match outcome {
            Some(LoadOutcome::Loaded) => self.vain_since = None,
            Some(LoadOutcome::Elsewhere) => return self.divide(table, &rows),
            Some(LoadOutcome::Exists) => {
                return Err(Failure::Here(format!(
                    "table {name:?} of cluster {:?} is loaded already; start the nodes anew or use the data as it is",
                    self.cluster.name
                )));
            }
            Some(LoadOutcome::Full) => {
                return Err(Failure::Here(format!(
                    "{} has no room for the rows of table {name:?}, in memory or on its disk, and has only some of them: \
                     start the nodes anew with more, see --memory, or choose a smaller scale",
                    self.node(shard)
                )));
            }
            Some(LoadOutcome::Impossible) => {
                return Err(Failure::Here(format!(
                    "{} refuses the rows of table {name:?}",
                    self.node(shard)
                )));
            }
            None => {
                return Err(Failure::Here(format!(
                    "{} was lost while it loaded table {name:?}, and may have some of its rows: start the nodes anew",
                    self.node(shard)
                )));
            }
        }
        Ok(())
    }

    /// Sends rows again whose slots are elsewhere.
    fn divide(&mut self, table: TableId, rows: &Rows) -> Result<(), Failure> {
        if self.vain_since.get_or_insert_with(Instant::now).elapsed() > MOVES_MAX {
            return Err(Failure::Here(format!(
                "slots of the cluster have moved for {MOVES_MAX:?}: load when they are where they are to be"
            )));
        }
        // The new map is on its way to the coordinator.
        std::thread::sleep(MAP_AFTER);
        self.placement = self.engine.on_shard(self.coordinator, |shard| shard.placement());
        let mut parts: BTreeMap<ShardId, Rows> = BTreeMap::new();
        for row in rows {
            for shard in self.homes(table, &row.0) {
                parts.entry(shard).or_default().push(row.clone());
            }
        }
        parts.into_iter().for_each(|(shard, rows)| self.launch(shard, table, rows));
        Ok(())
    }

    /// The node that a shard is on.
    fn node(&self, shard: ShardId) -> String {
        let mut nodes = self.cluster.nodes.iter();
        let mut end = 0;
        let node = nodes.find(|node| {
            end += node.shards;
            shard.index() < end
        });
        node.map(NodeConfig::to_string).unwrap_or_default()
    }

    fn end_if_interrupted(&self) -> Result<(), Failure> {
        match self.interrupted.load(Relaxed) {
            false => Ok(()),
            true => Err(Failure::Here(format!(
                "interrupted after {} rows: start the nodes anew before another load",
                units::thousands(self.rows)
            ))),
        }
    }
}
