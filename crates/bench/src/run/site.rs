//! What one process does in a run: shards, their clients, and what they count.
//!
//! A site does what it is told ([`Order`]) and answers each order once ([`Answer`]), at once but
//! for two: it waits for the other sites before its clients begin, and the audits at the end take
//! as long as they take. The leader of the run (`mod.rs`) has one site that it calls, in its own
//! process, or tells several over pipes (`members.rs`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_engine::{Cluster, Engine, EngineOptions, NodeConfig, machine};
use plimsoll_node::cli::in_flags;
use plimsoll_node::state::State;
use plimsoll_node::status::states;
use plimsoll_runtime::real::{Network, Role};
use plimsoll_txn::any_shard::WriteRecord;
use plimsoll_txn::attempt::{LockPolicy as Policy, ProtocolOptions};
use plimsoll_txn::base::GraphSize;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::timestamp::OracleOptions;
use plimsoll_types::history::Install;
use plimsoll_types::{Key, ShardId, TableId};
use plimsoll_workloads::{AnyWorkload, Tally};
use quanta::Clock;

use super::checks;
use super::client::{self, Finished, Recorded};
use super::members::Failure;
use super::raw;
use crate::cli::LockPolicy;
use crate::cli::plan::BenchPlan;
use crate::report::model::{Check, DiskFigures, Link, TableSize};

/// How long a site waits for the others. They have loaded by then and only have to be connected.
const OTHERS_MAX: Duration = Duration::from_secs(10);

/// A node of a cluster that cannot be reached for so long is gone.
const GONE_AFTER: Duration = Duration::from_secs(5);
/// Rows that a client copies in one step of its shard, which answers nodes in between.
const ROWS_PER_STEP: usize = 1000;
/// How long nodes of a cluster may take to be connected with each other.
const READY_MAX: Duration = Duration::from_secs(60);

/// A row, one value per column group.
type Row = (TableId, Key, Vec<Vec<u8>>);

/// What a site is told, in this order.
#[derive(Clone, Debug)]
pub enum Order {
    /// Begin to load.
    Load,
    /// Say how far you are: at any time.
    Sample,
    /// Say how large the tables are.
    Tables,
    /// Wait for the others, then let the clients begin. The first number is that of transactions in
    /// flight per shard, the second, of an open loop, that of transactions per second over all
    /// shards. Of a plan with several loads only the leader knows which one is next.
    Begin(usize, Option<u64>),
    /// From now on everything counts.
    Count,
    /// Let the clients end their transactions.
    Stop,
    /// Say what is still on its way: clients have ended.
    Settle,
    /// Say what was counted.
    Finish,
    /// Hand over what was recorded.
    History,
    /// Audit the data, all of it: this is what clients of all sites have counted since the load.
    Audit(Tally),
}

/// What a site answers.
pub enum Answer {
    /// It is so.
    Done,
    /// To [`Order::Sample`].
    Sample(Sample),
    /// To [`Order::Tables`].
    Tables(Vec<TableSize>),
    /// To [`Order::Settle`].
    Unsettled(Unsettled),
    /// To [`Order::Finish`].
    Finished(Box<Figures>),
    /// To [`Order::History`].
    History(Vec<Recorded>, Vec<Vec<Install>>),
    /// To [`Order::Audit`].
    Checks(Vec<Check>),
    /// It cannot be done, for this reason.
    Failed(String),
}

/// How far a site is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Units to load, and those that are loaded.
    pub units: u64,
    /// See `units`.
    pub loaded: u64,
    /// Rows loaded.
    pub rows: u64,
    /// Transactions committed since the clients began.
    pub committed: u64,
    /// Attempts that concurrency control aborted.
    pub aborted: u64,
    /// Shards whose clients have not ended, and online audits.
    pub running: u64,
    /// Memory that the process occupies.
    pub resident_bytes: u64,
    /// Whether a transaction was refused because memory is full.
    pub full: bool,
}

impl Sample {
    /// That of two sites.
    pub fn sum(self, other: Sample) -> Sample {
        Sample {
            units: self.units + other.units,
            loaded: self.loaded + other.loaded,
            rows: self.rows + other.rows,
            committed: self.committed + other.committed,
            aborted: self.aborted + other.aborted,
            running: self.running + other.running,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            full: self.full || other.full,
        }
    }
}

/// What must come to an end before the data is audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// Transactions of other processes that shards of the benchmark's processes still remember; of
    /// a running cluster's nodes, those whose outcome they do not know. A node also remembers
    /// outcomes for the last transactions of a client that was killed, until another has its place.
    pub votes: u64,
    /// Outcomes that shards have reported to an oracle so far.
    pub reported: u64,
    /// Outcomes that the oracle has published.
    pub published: u64,
}

impl Unsettled {
    /// That of two sites.
    pub fn sum(self, other: Unsettled) -> Unsettled {
        Unsettled {
            votes: self.votes + other.votes,
            reported: self.reported + other.reported,
            published: self.published + other.published,
        }
    }

    /// Whether nothing is on its way any more.
    pub fn is_nothing(self, pair: Pair) -> bool {
        self.votes == 0 && (!pair.has_oracle() || self.published >= self.reported)
    }

    /// As a condition of a run.
    pub fn check(self, pair: Pair) -> Check {
        let mut detail = format!("{} transactions are not settled", self.votes);
        if pair.has_oracle() {
            detail += &format!("; the oracle has published {} of {}", self.published, self.reported);
        }
        Check {
            name: "every outcome is known everywhere".to_owned(),
            ok: self.is_nothing(pair),
            allowed: false,
            detail,
        }
    }
}

/// What was counted while it counted.
pub struct Figures {
    /// Of all clients.
    pub finished: Finished,
    /// See the fields of [`crate::report::model::Run`].
    pub read_only_waits: u64,
    /// See `read_only_waits`.
    pub read_only_restarts: u64,
    /// See `read_only_waits`.
    pub oracle_messages: u64,
    /// Dependency graphs: bytes sent, and what they take now and took at most, the sums of all
    /// shards.
    pub graph_sent_bytes: u64,
    pub graph: GraphSize,
    pub graph_max: GraphSize,
    /// Messages that shards have sent to others.
    pub messages: u64,
    /// Processor time of this process.
    pub cpu_seconds: f64,
    /// What was sent to each other site.
    pub links: Vec<Link>,
    /// Of the online audits.
    pub checks: Vec<Check>,
    /// What the workload itself has counted.
    pub workload: Vec<(String, u64)>,
}

plimsoll_types::wire!(
    enum Order {
        Load = 0,
        Sample = 1,
        Tables = 2,
        Begin(concurrency, rate) = 3,
        Count = 4,
        Stop = 5,
        Settle = 6,
        Finish = 7,
        History = 8,
        Audit(tally) = 9,
    }
);
plimsoll_types::wire!(
    enum Answer {
        Done = 0,
        Sample(sample) = 1,
        Tables(tables) = 2,
        Unsettled(open) = 3,
        Finished(figures) = 4,
        History(recorded, installs) = 5,
        Checks(checks) = 6,
        Failed(why) = 7,
    }
);
plimsoll_types::wire!(struct Sample { units, loaded, rows, committed, aborted, running, resident_bytes, full });
plimsoll_types::wire!(struct Unsettled { votes, reported, published });
plimsoll_types::wire!(struct Figures {
    finished, read_only_waits, read_only_restarts, oracle_messages, graph_sent_bytes, graph, graph_max, messages,
    cpu_seconds, links, checks, workload
});
plimsoll_types::wire!(struct Check { name, ok, allowed, detail });
plimsoll_types::wire!(struct TableSize { rows, bytes });
plimsoll_types::wire!(struct Link { from, to, messages, frames, bytes, resets });

/// A run's phases, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Nothing counts but the sums.
    WarmUp,
    /// Everything counts.
    Measure,
    /// Clients end their transactions.
    Stop,
}

/// What a site shares with its clients.
pub struct Control {
    phase: AtomicU8,
    /// Set by a client whose transaction was refused because memory is full.
    pub full: AtomicBool,
    /// The type of a transaction that a client has given up because it was always refused.
    pub refused: OnceLock<&'static str>,
    /// The first shard of this process.
    first: ShardId,
    /// Per shard: committed, aborted attempts.
    live: Vec<(AtomicU64, AtomicU64)>,
    /// The longest pause after repeated aborts, in nanoseconds.
    pub back_off_max_ns: u64,
    /// For latencies.
    pub clock: Clock,
    /// What transactions are ordered by; the moments of recorded answers are read off it.
    pub shards_clock: plimsoll_runtime::real::Clock,
}

impl Control {
    fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// The present phase.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measure,
            _ => Phase::Stop,
        }
    }

    /// What a shard's clients count for the progress line: committed transactions, aborted
    /// attempts.
    pub fn live(&self, shard: ShardId) -> &(AtomicU64, AtomicU64) {
        &self.live[shard.index() - self.first.index()]
    }

    fn sum(&self, of: impl Fn(&(AtomicU64, AtomicU64)) -> &AtomicU64) -> u64 {
        self.live.iter().map(|shard| of(shard).load(Relaxed)).sum()
    }
}

/// What loading has counted so far.
#[derive(Default)]
struct Loaded {
    units: AtomicU64,
    rows: AtomicU64,
}

/// What is counted from the start on, and reported as the difference of two readings.
#[derive(Default)]
struct Reading {
    read_only_waits: u64,
    read_only_restarts: u64,
    oracle_messages: u64,
    graph_sent_bytes: u64,
    graph: GraphSize,
    graph_max: GraphSize,
    messages: u64,
    cpu_seconds: f64,
    links: Vec<Link>,
    /// How long each node has run, in seconds.
    uptimes: BTreeMap<u16, f64>,
}

/// A process's part in a run.
pub struct Site {
    engine: Engine,
    workload: Arc<dyn AnyWorkload>,
    plan: BenchPlan,
    place: u16,
    control: Arc<Control>,
    units: u64,
    loaded: Arc<Loaded>,
    /// The clients of each shard that are not done, and what those of others have left behind.
    running: usize,
    clients: Option<Receiver<Finished>>,
    finished: Finished,
    online: Option<Receiver<Vec<Check>>>,
    checks: Vec<Check>,
    /// Since when it counts.
    counted: Reading,
    /// When it stopped, as counted from then.
    cpu_seconds: f64,
    /// The cluster, if this is one of its clients: its nodes have the data.
    cluster: Option<Cluster>,
    /// What earlier runs have left in the cluster's data.
    found: Tally,
    /// Since when one of its processes is not connected.
    missed_since: Option<Instant>,
    /// What the logs wrote while it counted, if that is wanted.
    writes: Vec<WriteRecord>,
    /// What is kept on disk goes when the engine has ended.
    scratch: Option<Scratch>,
}

/// The data directory of one run.
struct Scratch(PathBuf);

impl Scratch {
    fn below(directory: &Path) -> Scratch {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Relaxed);
        Scratch(directory.join(format!("plimsoll-bench-{}-{run}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Site {
    /// Starts the shards: all of them, or those of one node of a cluster.
    pub fn start(
        workload: &Arc<dyn AnyWorkload>,
        plan: &BenchPlan,
        pair: Pair,
        network: Option<Network>,
    ) -> std::io::Result<Site> {
        let place = match network.as_ref().map(|network| &network.role) {
            Some(Role::Member { node, .. }) => *node,
            _ => 0,
        };
        let options = EngineOptions {
            shards: plan.shards,
            seed: plan.seed,
            pin: (plan.shards <= machine::cores()).then(|| usize::from(place) * plan.shards_per_process()),
            protocol: ProtocolOptions {
                lock_policy: match plan.lock_policy {
                    LockPolicy::WaitDie => Policy::WaitDie,
                    LockPolicy::WoundWait => Policy::WoundWait,
                    LockPolicy::NoWait => Policy::NoWait,
                },
                one_round: plan.one_round,
                ..workload.protocol_options()
            },
            oracle: OracleOptions {
                batch: plan.oracle.batch,
                compress: plan.oracle.compress,
                prefetch: plan.oracle.prefetch,
            },
            single_version: plan.rc_single_version,
            max_staleness_ns: plan.staleness.as_nanos() as u64,
            record: plan.check,
            memory: Some(
                plan.memory.unwrap_or_else(machine::data_bytes) / plan.processes.unwrap_or(1) as u64,
            ),
            durability: plan.kept,
            ..EngineOptions::default()
        };
        let scratch = plan.data_dir.as_deref().map(Scratch::below);
        let engine = match (network, &scratch) {
            (None, None) => Engine::start(pair, workload.tables(), options)?,
            (None, Some(Scratch(path))) => {
                Engine::open_in(path, pair, &workload.tables(), options).map_err(std::io::Error::other)?
            }
            (Some(network), _) => Engine::networked(pair, workload.tables(), options, network)?,
        };
        Ok(Site { scratch, ..Site::over(engine, workload, plan, place) })
    }

    /// Joins a running cluster as a client.
    pub fn connect(
        workload: &Arc<dyn AnyWorkload>,
        plan: &BenchPlan,
        cluster: &Cluster,
    ) -> Result<Site, Failure> {
        let engine = Engine::connect(cluster, OTHERS_MAX).map_err(|error| Failure::Here(in_flags(error)))?;
        Ok(Site { cluster: Some(cluster.clone()), ..Site::over(engine, workload, plan, 0) })
    }

    fn over(engine: Engine, workload: &Arc<dyn AnyWorkload>, plan: &BenchPlan, place: u16) -> Site {
        let far = plan.processes.is_some() || plan.cluster.is_some();
        let control = Control {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            full: AtomicBool::new(false),
            refused: OnceLock::new(),
            first: engine.runtime().first(),
            live: engine.coordinators().map(|_| Default::default()).collect(),
            back_off_max_ns: client::BACK_OFF_MAX_NS[usize::from(far)],
            clock: Clock::new(),
            shards_clock: engine.runtime().clock(),
        };
        Site {
            engine,
            workload: workload.clone(),
            plan: plan.clone(),
            place,
            control: Arc::new(control),
            units: 0,
            loaded: Arc::default(),
            running: 0,
            clients: None,
            finished: Finished::default(),
            online: None,
            checks: Vec::new(),
            counted: Reading::default(),
            cpu_seconds: 0.0,
            cluster: None,
            found: Tally::default(),
            missed_since: None,
            writes: Vec::new(),
            scratch: None,
        }
    }

    /// Does what it is told.
    pub fn obey(&mut self, order: &Order) -> Answer {
        self.done(order).unwrap_or_else(Answer::Failed)
    }

    fn done(&mut self, order: &Order) -> Result<Answer, String> {
        match order {
            Order::Load => self.load()?,
            Order::Sample => {
                self.see_that_all_are_there()?;
                self.see_that_clients_can_go_on()?;
                return Ok(Answer::Sample(self.sample()));
            }
            Order::Tables => return Ok(Answer::Tables(self.tables()?)),
            Order::Begin(concurrency, rate) => {
                (self.plan.concurrency, self.plan.rate) = (*concurrency, *rate);
                self.engine.wait_for_others(OTHERS_MAX).map_err(|missing| missing.to_string())?;
                self.begin();
            }
            Order::Count => {
                self.counted = self.read()?;
                self.record_writes();
                self.control.set(Phase::Measure);
            }
            Order::Stop => {
                self.control.set(Phase::Stop);
                self.writes = self.record_writes();
                self.cpu_seconds = self.read()?.cpu_seconds - self.counted.cpu_seconds;
            }
            Order::Settle => return Ok(Answer::Unsettled(self.unsettled()?)),
            Order::Finish => return Ok(Answer::Finished(Box::new(self.finish()?))),
            Order::History => {
                let installs = self.engine.shards().map(|shard| self.engine.take_installs(shard)).collect();
                return Ok(Answer::History(std::mem::take(&mut self.finished.recorded), installs));
            }
            Order::Audit(tally) => {
                let mut all = self.found.clone();
                all.add(tally);
                return Ok(Answer::Checks(checks::invariants(&self.engine, &*self.workload, &all)?));
            }
        }
        Ok(Answer::Done)
    }

    /// Begins to record what logs write, if that is wanted. Returns what was recorded before.
    fn record_writes(&self) -> Vec<WriteRecord> {
        let shards = self.engine.shards().filter(|_| self.plan.replay_raw);
        shards.filter_map(|shard| self.engine.on_shard(shard, |shard| shard.record_writes())).collect()
    }

    /// Ends the database, and writes to bare files what its logs wrote.
    pub fn replay(self, interrupted: &AtomicBool) -> Result<Option<DiskFigures>, String> {
        let Site { engine, writes, scratch, .. } = self;
        drop(engine);
        let Some(Scratch(directory)) = &scratch else { return Ok(None) };
        raw::replay(directory, &writes, interrupted)
            .map_err(|error| format!("cannot write to {}: {error}", directory.display()))
    }

    /// How the processes of the cluster are, if this is one of its clients.
    fn states(&self) -> Result<Vec<State>, String> {
        self.cluster.as_ref().map_or(Ok(Vec::new()), states)
    }

    /// Without a node of the cluster transactions would be attempted for ever.
    fn see_that_all_are_there(&mut self) -> Result<(), String> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        if let Some(refusal) = self.engine.runtime().refused() {
            return Err(format!(
                "this client was silent for too long, was refused, and the run ends: {refusal}"
            ));
        }
        let Some(id) = self.engine.missing().next() else {
            self.missed_since = None;
            return Ok(());
        };
        if self.missed_since.get_or_insert_with(Instant::now).elapsed() < GONE_AFTER {
            return Ok(());
        }
        let who = cluster.processes().find(|node| node.id == id).map(NodeConfig::to_string);
        Err(format!(
            "{} cannot be reached for {GONE_AFTER:?}, and the run ends: see `plimsoll status`",
            who.unwrap_or_default()
        ))
    }

    /// What will not pass would be attempted for ever.
    fn see_that_clients_can_go_on(&self) -> Result<(), String> {
        if let Some(kind) = self.control.refused.get() {
            return Err(format!(
                "a {kind} was refused again and again, and the run ends: a row that was loaded is not there"
            ));
        }
        self.workload.exhausted().map_or(Ok(()), |why| Err(format!("{why}; the run ends")))
    }

    /// Waits until all nodes of a cluster are ready, checks that the rows are there, counts what
    /// earlier runs have made of them, and gives up what those have left open.
    fn find_loaded(&mut self, cluster: &Cluster) -> Result<(), String> {
        let begun = Instant::now();
        while !self.states()?.iter().all(|state| state.ready) {
            if begun.elapsed() > READY_MAX {
                return Err(format!("the cluster was not ready within {READY_MAX:?}: see `plimsoll status`"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !checks::is_loaded(&self.engine, &*self.workload)? {
            return Err(format!(
                "{} at this scale{} is not loaded on cluster {:?}: run the same command with --load first",
                self.workload.name(),
                if self.workload.reads_copies_at_hand() { " and with this seed" } else { "" },
                cluster.name
            ));
        }
        if self.workload.reads_copies_at_hand() {
            copy(&self.engine, &*self.workload);
        }
        let (found, checks) = checks::found(&self.engine, &*self.workload)?;
        self.found = found;
        match checks.into_iter().find(|check| !check.ok) {
            None => Ok(()),
            Some(Check { name, detail, .. }) => Err(format!(
                "the data of the cluster does not fit together ({name}: {detail}): another client has changed it; start the \
                 nodes anew"
            )),
        }
    }

    /// Begins to load all units. A cluster was loaded before.
    fn load(&mut self) -> Result<(), String> {
        match self.cluster.clone() {
            Some(cluster) => self.find_loaded(&cluster)?,
            None => self.units = load(&self.engine, &self.workload, &self.loaded),
        }
        Ok(())
    }

    fn begin(&mut self) {
        let (done, clients) = mpsc::channel();
        let idle = if self.cluster.is_some() { usize::MAX } else { self.plan.coordinators };
        // A workload numbers what a client inserts from here on. A life is a time in nanoseconds,
        // and a client inserts less than one row per nanosecond, so no later run begins among these
        // numbers.
        let run = if self.cluster.is_some() { self.engine.life() as usize & !0xffff } else { 0 };
        for shard in self.engine.coordinators().filter(|shard| shard.index() < idle) {
            let control = &self.control;
            client::start(&self.engine, shard, &self.workload, &self.plan, control, run, done.clone());
            self.running += 1;
        }
        self.clients = Some(clients);
        let per_second = self.plan.check_online_per_second;
        // One for the whole database, whose first shard has the first site.
        if per_second > 0 && self.place == 0 {
            self.online = Some(checks::start_online(&self.engine, &self.workload, &self.control, per_second));
        }
    }

    fn sample(&mut self) -> Sample {
        for shard in self.clients.iter().flat_map(Receiver::try_iter) {
            self.finished.add(shard);
            self.running -= 1;
        }
        match self.online.as_ref().map(Receiver::try_recv) {
            None | Some(Err(TryRecvError::Empty)) => {}
            Some(Ok(checks)) => (self.checks, self.online) = (checks, None),
            Some(Err(TryRecvError::Disconnected)) => unreachable!("the online check ends with its verdict"),
        }
        Sample {
            units: self.units,
            loaded: self.loaded.units.load(Relaxed),
            rows: self.loaded.rows.load(Relaxed),
            committed: self.control.sum(|shard| &shard.0),
            aborted: self.control.sum(|shard| &shard.1),
            running: self.running as u64 + u64::from(self.online.is_some()),
            resident_bytes: machine::resident_bytes(),
            full: self.control.full.load(Relaxed),
        }
    }

    fn tables(&self) -> Result<Vec<TableSize>, String> {
        let memory = self.engine.memory().into_iter();
        let mut tables: Vec<TableSize> =
            memory.map(|table| TableSize { rows: table.rows as u64, bytes: table.bytes as u64 }).collect();
        for state in self.states()? {
            for (sum, table) in tables.iter_mut().zip(state.tables) {
                sum.rows += table.rows;
                sum.bytes += table.bytes;
            }
        }
        Ok(tables)
    }

    fn read(&self) -> Result<Reading, String> {
        let mut reading = Reading { cpu_seconds: machine::process_cpu_seconds(), ..Reading::default() };
        for shard in self.engine.coordinators() {
            let (counters, messages) =
                self.engine.on_shard(shard, |shard| (shard.status().counters, shard.messages()));
            reading.read_only_waits += counters.read_only_waits;
            reading.read_only_restarts += counters.read_only_restarts;
            reading.oracle_messages += counters.oracle_messages;
            reading.graph_sent_bytes += counters.graph_sent_bytes;
            reading.graph += counters.graph;
            reading.graph_max += counters.graph_max;
            reading.messages += messages;
        }
        for state in self.states()? {
            if self.counted.uptimes.get(&state.node).is_some_and(|&then| state.uptime_seconds < then) {
                let node = state.node;
                return Err(format!("node {node} was started again, and counts from zero: repeat the run"));
            }
            reading.uptimes.insert(state.node, state.uptime_seconds);
            reading.cpu_seconds += state.cpu_seconds;
            for shard in state.shards {
                reading.read_only_waits += shard.read_only_waits;
                reading.oracle_messages += shard.oracle_messages;
                reading.messages += shard.messages;
            }
        }
        let traffic = self.engine.runtime().traffic().into_iter();
        reading.links = traffic
            .filter_map(|peer| {
                Some(Link {
                    from: self.place,
                    to: peer.node?,
                    messages: peer.messages_sent,
                    frames: peer.frames_sent,
                    bytes: peer.bytes_sent,
                    resets: peer.resets,
                })
            })
            .collect();
        Ok(reading)
    }

    fn unsettled(&self) -> Result<Unsettled, String> {
        let mut open = Unsettled::default();
        for state in self.states()? {
            open.votes += state.shards.iter().map(|shard| shard.in_doubt).sum::<u64>();
            // Numbers of all clients there ever were, this one included.
            if let Some(oracle) = state.oracle {
                let own = |shard| self.engine.status(shard).unpublished;
                let own: u64 = self.engine.coordinators().map(own).sum();
                let reported = oracle.published + oracle.unpublished + own;
                return Ok(Unsettled { published: oracle.published, reported, ..open });
            }
        }
        for shard in self.engine.coordinators() {
            let status = self.engine.status(shard);
            open.votes += status.votes;
            open.reported += status.counters.reports;
        }
        if let Some(oracle) = self.engine.oracle() {
            open.published = self.engine.status(oracle).published;
        }
        Ok(open)
    }

    fn finish(&mut self) -> Result<Figures, String> {
        let (now, then) = (self.read()?, &self.counted);
        let links = now.links.iter().zip(&then.links).map(|(now, then)| Link {
            messages: now.messages - then.messages,
            frames: now.frames - then.frames,
            bytes: now.bytes - then.bytes,
            resets: now.resets - then.resets,
            ..*now
        });
        Ok(Figures {
            // What was recorded is handed over when it is asked for.
            finished: Finished {
                counts: std::mem::take(&mut self.finished.counts),
                tally: std::mem::take(&mut self.finished.tally),
                recorded: Vec::new(),
            },
            read_only_waits: now.read_only_waits - then.read_only_waits,
            read_only_restarts: now.read_only_restarts - then.read_only_restarts,
            oracle_messages: now.oracle_messages - then.oracle_messages,
            graph_sent_bytes: now.graph_sent_bytes - then.graph_sent_bytes,
            graph: now.graph,
            graph_max: now.graph_max,
            messages: now.messages - then.messages,
            cpu_seconds: self.cpu_seconds,
            links: links.collect(),
            checks: std::mem::take(&mut self.checks),
            workload: self.workload.figures().into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect(),
        })
    }
}

/// Begins to load all units that belong to the shards of this process, those of different shards in
/// parallel. Returns how many there are.
fn load(engine: &Engine, workload: &Arc<dyn AnyWorkload>, loaded: &Arc<Loaded>) -> u64 {
    let mut units = 0;
    for shard in engine.shards() {
        let placement = engine.layout().placement.clone();
        let (workload, loaded) = (workload.clone(), loaded.clone());
        let mine: Vec<usize> = (0..workload.units())
            .filter(|&unit| workload.unit_slot(unit).is_none_or(|slot| placement.shard(slot) == shard))
            .collect();
        units += mine.len() as u64;
        engine.on_shard(shard, |shard| shard.keep_slots(true));
        engine.spawn_on(shard, move |own| async move {
            for unit in mine {
                let counts = workload.unit_slot(unit).is_some() || shard == ShardId(0);
                workload.load(unit, &mut |table, key, values| {
                    own.load_row(table, &key, values);
                    loaded.rows.fetch_add(u64::from(counts), Relaxed);
                });
                loaded.units.fetch_add(1, Relaxed);
                own.pause().await;
            }
            own.keep_slots(false);
        });
    }
    units
}

/// Loads the immutable rows that every shard gets, for clients that hold no data.
fn copy(engine: &Engine, workload: &dyn AnyWorkload) {
    let tables = workload.tables();
    let mut rows: Vec<Row> = Vec::new();
    for unit in (0..workload.units()).filter(|&unit| workload.unit_slot(unit).is_none()) {
        workload.load(unit, &mut |table, key, values| {
            if tables[table.index()].immutable {
                rows.push((table, key, values.iter().map(|value| value.to_vec()).collect()));
            }
        });
    }
    for shard in engine.coordinators() {
        for rows in rows.chunks(ROWS_PER_STEP) {
            let rows = rows.to_vec();
            engine.on_shard(shard, move |shard| {
                for (table, key, values) in &rows {
                    shard.load_row(*table, key, &values.iter().map(Vec::as_slice).collect::<Vec<_>>());
                }
            });
        }
        engine.on_shard(shard, |shard| shard.keep_copies());
    }
}
