//! A running database: shards with a protocol, tables, perhaps an oracle.
//!
//! Either all shards are in this process ([`Engine::start`]), or it is one of several processes,
//! each of which has an engine ([`Engine::networked`]). Then data shards are numbered over all
//! nodes, in the order of the nodes' numbers. The oracle's shard comes after all data shards: it is
//! the only shard of the last node, which has no data.
//!
//! A cluster may have clients: processes with one shard, which holds no data and coordinates the
//! client's transactions. Their shards come after all others, an oracle's included.
//!
//! Every node loads the rows that its own shards own. Transactions reach other nodes once they are
//! connected ([`Engine::wait_for_others`]). Until a node has been heard of, it holds back all
//! garbage here: it may have begun a snapshot as long ago as the database exists.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::time::{Duration, Instant};

use plimsoll_replication::Settings;
use plimsoll_runtime::LowWater;
use plimsoll_runtime::real::{Address, Clock, Listening, Maker, Network, Refusal, Role, Runtime, Who};
use plimsoll_store::{KeptMemory, TableMemory};
use plimsoll_txn::any_shard::{AnyShard, LogStatus, ShardStatus};
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::base::{Base, Layout, OldestSnapshot};
use plimsoll_txn::pairs::{LegalPair, Pair};
use plimsoll_txn::room::Memory;
use plimsoll_txn::timestamp::{MAX_OFFSET_NS, OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::with_pair;
use plimsoll_types::history::Install;
use plimsoll_types::{Key, Placement, ShardId, TableId, TableSpec};

use crate::cluster::{Cluster, Durability, ORACLE_ID};
use crate::data_dir::{DataDir, Notes, Owner};
use crate::error::OpenError;
use crate::machine;
use crate::runtime::AnyRuntime;

/// Minimum time that a client tries to get a place before it reports that none is free. Clients
/// that start at the same time may refuse each other places that none of them keeps.
const FULL_AFTER: Duration = Duration::from_secs(1);
/// How far a client's clock may be from those of the nodes before it sets its clock by theirs: half
/// of what clocks may be apart.
const CLOCK_LIMIT: Duration = Duration::from_nanos(MAX_OFFSET_NS / 2);
/// How long a disk may fail, or the clock be behind, while shards come back, until a database in
/// this process is not opened.
const FAILS_FOR: Duration = Duration::from_secs(5);
/// How long a database waits for its disk when it ends.
const SETTLE: Duration = Duration::from_secs(1);
/// How long it stays in any case for other nodes that end at the same time and go back together.
const OTHERS_SETTLE: Duration = Duration::from_millis(200);
/// Rows that are loaded in one step of a shard, which takes about 200 µs.
const ROWS_PER_STEP: usize = 1000;
/// Bytes of rows after which a step of a load loads no more.
const BYTES_PER_STEP: usize = 16 << 20;

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Shards that hold data, a thread each. For a node of a cluster, the cluster decides.
    pub shards: usize,
    /// Seed of the shards' random numbers.
    pub seed: u64,
    /// The core for the first shard; further shards get the next cores. `None`: shards are not
    /// bound.
    pub pin: Option<usize>,
    /// Options of the protocol.
    pub protocol: ProtocolOptions,
    /// How the oracle is asked.
    pub oracle: OracleOptions,
    /// RC only: keep no older versions.
    pub single_version: bool,
    /// The largest staleness that a snapshot may ask for, in nanoseconds.
    pub max_staleness_ns: u64,
    /// Whether every read and every installed version is recorded, for the checker.
    pub record: bool,
    /// Bytes that the data of this process may take; `None`: there is no limit.
    pub memory: Option<u64>,
    /// How logs are kept, in a directory.
    pub log: Settings,
    /// If there is a directory: what of the database outlives its process. For a node of a cluster,
    /// the cluster decides.
    pub durability: Durability,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            shards: 1,
            seed: 1,
            pin: Some(0),
            protocol: ProtocolOptions::default(),
            oracle: OracleOptions::default(),
            single_version: false,
            max_staleness_ns: 0,
            record: false,
            memory: None,
            log: Settings::default(),
            durability: Durability::Sync,
        }
    }
}

/// The shards of a database, or those of one process of a cluster.
pub struct Engine {
    pair: Pair,
    runtime: Box<dyn AnyRuntime>,
    layout: RwLock<Layout>,
    /// The shards of this process that transactions are coordinated on; on the oracle's own node,
    /// the oracle.
    own: Range<usize>,
    /// The shards of this process that hold data.
    shards: Range<usize>,
    /// The number of the oracle's shard; meaningless if the scheme has none.
    oracle: ShardId,
    /// All nodes of the cluster; empty without one.
    nodes: Vec<Address>,
    life: u64,
    memory: Option<Arc<Memory>>,
    /// The data directory, if there is one.
    notes: Option<RwLock<Notes>>,
}

/// What the shards of a process have besides each other.
#[derive(Default)]
struct Outside {
    data: Option<DataDir>,
    network: Option<Network>,
    listening: Option<Listening>,
}

/// The part of a database that one process has.
struct Part {
    /// How many shards of the whole database hold data; they are the first.
    holders: usize,
    /// By shard of the whole database: its process. An oracle that comes last is left out.
    processes: Arc<[u16]>,
    /// How many processes there may be, without the oracle's.
    process_count: usize,
    /// The number of the first client's process, and the shards of all clients.
    first_client: usize,
    client_shards: Range<usize>,
    /// The number of this process.
    process: usize,
    /// Its shards, an oracle included.
    shards: Range<usize>,
    /// The number of the first attempt of each of its shards.
    first_attempt: u64,
    /// What of the database outlives its processes.
    durability: Durability,
}

/// Nodes that could not be reached in time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The nodes that are missing.
    pub nodes: Vec<Address>,
    /// How long it took to give up.
    pub waited: Duration,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            self.nodes.iter().map(|node| format!("{} at {}", Who::Node(node.id), node.address)).collect();
        let (names, are) = (names.join(", "), if names.len() == 1 { "is" } else { "are" });
        write!(f, "{names} {are} not connected after {:?}: see that they run and can be reached", self.waited)
    }
}

impl std::error::Error for Missing {}

impl Engine {
    /// Starts all shards, with empty tables.
    pub fn start(pair: Pair, tables: Vec<TableSpec>, options: EngineOptions) -> std::io::Result<Engine> {
        let part = Part::alone(options.shards, pair.has_oracle(), 1, Durability::None);
        Engine::alone(pair, tables, options, part, None)
    }

    /// Starts all shards with what a directory keeps of them, and lets it keep what is committed
    /// from now on, as [`EngineOptions::durability`] says. Makes the directory if there is none,
    /// and those tables that it does not have. Returns when all logs were read.
    pub fn open_in(
        path: &Path,
        pair: Pair,
        tables: &[TableSpec],
        options: EngineOptions,
    ) -> Result<Engine, OpenError> {
        let clock = Clock::new().now().0;
        let new = RandomState::new().hash_one(clock);
        let part = Part::alone(options.shards, pair.has_oracle(), clock, options.durability);
        let owner = Owner::alone(pair, options.durability, part.shards.clone(), new);
        let data = DataDir::open(path, pair, owner)?;
        let engine =
            Engine::alone(pair, Vec::new(), options, part, Some(data)).map_err(OpenError::Threads)?;
        let mut worked = Instant::now();
        while !engine.is_recovered()? {
            match engine.log_failure() {
                Some((shard, why)) if worked.elapsed() > FAILS_FOR => {
                    return Err(OpenError::Log { shard: shard.0, why });
                }
                Some(_) => {}
                None => worked = Instant::now(),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // A table that was being made when the process ended may not be on all shards.
        let tables_of = |shard| (shard, engine.on_shard(shard, |shard| shard.tables()));
        let by_shard: Vec<_> = engine.with_oracle().map(tables_of).collect();
        let most = by_shard.iter().max_by_key(|(_, tables)| tables.len());
        let there = most.map(|(_, tables)| tables.clone()).unwrap_or_default();
        for (shard, known) in by_shard {
            for spec in there.iter().skip(known.len()).cloned() {
                engine.on_shard(shard, move |shard| shard.create_table(spec));
            }
        }
        for (position, (there, here)) in there.iter().zip(tables).enumerate() {
            if there != here {
                let table = (position, there.name.clone(), here.name.clone());
                return Err(OpenError::OtherTables { table });
            }
        }
        let known = there.len();
        engine.layout.write().unwrap_or_else(PoisonError::into_inner).tables = there;
        for spec in tables.iter().skip(known) {
            engine.create_table(spec.clone());
        }
        engine.wait_until_stable();
        engine.note(Notes::begun)?;
        Ok(engine)
    }

    /// Whether the shards of this process serve: they have read their logs, if they have any. Fails
    /// if one cannot be read, unless only its disk has failed: then it is read again.
    pub fn is_recovered(&self) -> Result<bool, OpenError> {
        for shard in self.with_oracle() {
            match self.on_shard(shard, |shard| (shard.serves(), shard.status().log)) {
                (true, _) => {}
                (false, Some(LogStatus { is_lost: true, failure: Some(why), .. })) => {
                    return Err(OpenError::Log { shard: shard.0, why });
                }
                (false, _) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether transactions may begin on the shards of this process.
    fn serves(&self) -> bool {
        self.coordinators().all(|shard| self.on_shard(shard, |shard| shard.serves()))
    }

    /// Whether another node has come back, and the database goes back to a timestamp: what this
    /// process holds is of a time that is over, and it has to start anew.
    pub fn is_over(&self) -> bool {
        self.coordinators().any(|shard| self.on_shard(shard, |shard| shard.is_over()))
    }

    /// A shard of this process whose log cannot be read or written at the moment, and why.
    pub fn log_failure(&self) -> Option<(ShardId, String)> {
        self.notes.as_ref()?;
        self.with_oracle().find_map(|shard| Some((shard, self.on_shard(shard, |shard| shard.log_failure())?)))
    }

    /// Notes in the data directory, if there is one, that all shards have logs, and which other
    /// nodes this one has met. To be called from time to time once the shards serve.
    pub fn note_others(&self) -> Result<(), OpenError> {
        let met = self.nodes.iter().map(|node| node.id).zip(self.runtime.met());
        let met = met.filter(|&(_, memory)| memory != 0).collect();
        self.note(Notes::begun)?;
        self.note(|notes| notes.met(met))
    }

    fn note(&self, note: impl FnOnce(&mut Notes) -> Result<(), OpenError>) -> Result<(), OpenError> {
        self.notes
            .as_ref()
            .map_or(Ok(()), |notes| note(&mut notes.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A database that is all in this process.
    fn alone(
        pair: Pair,
        tables: Vec<TableSpec>,
        options: EngineOptions,
        part: Part,
        data: Option<DataDir>,
    ) -> std::io::Result<Engine> {
        let (shards, life) = (part.data_shards(), part.first_attempt);
        let layout = part.layout(tables);
        let memory = limited(&options);
        let notes = data.as_ref().map(|data| RwLock::new(data.notes()));
        let outside = Outside { data, ..Outside::default() };
        let runtime = part.start(pair, &layout, &options, &memory, outside)?;
        let own = 0..options.shards;
        let oracle = ShardId(options.shards as u16);
        let layout = RwLock::new(layout);
        Ok(Engine { pair, runtime, layout, own, shards, oracle, nodes: Vec::new(), life, memory, notes })
    }

    /// Starts the shards of one node of a cluster, or the shard of a client, with empty tables. If
    /// the scheme has an oracle, the node with the largest number has no data, and its one shard is
    /// the oracle. The runtime refuses an invalid network.
    pub fn networked(
        pair: Pair,
        tables: Vec<TableSpec>,
        options: EngineOptions,
        network: Network,
    ) -> std::io::Result<Engine> {
        let outside = Outside { network: Some(network), ..Outside::default() };
        Engine::with_data(pair, tables, options, outside, Durability::None)
    }

    /// The same with all that the shards have besides each other, which includes a network.
    fn with_data(
        pair: Pair,
        tables: Vec<TableSpec>,
        options: EngineOptions,
        outside: Outside,
        durability: Durability,
    ) -> std::io::Result<Engine> {
        let network = outside.network.as_ref().expect("a part of a cluster has a network");
        let mut nodes = network.nodes.clone();
        nodes.sort_by_key(|node| node.id);
        let data = &nodes[..nodes.len().saturating_sub(usize::from(pair.has_oracle()))];
        let places = data.len() as u16..data.len() as u16 + network.clients as u16;
        let processes =
            data.iter().zip(0u16..).flat_map(|(node, process)| std::iter::repeat_n(process, node.shards));
        let holders = data.iter().map(|node| node.shards).sum();
        let total = nodes.iter().try_fold(0usize, |sum, node| sum.checked_add(node.shards));
        if data.is_empty() || total.is_none_or(|total| total > usize::from(u16::MAX)) {
            let what = "a cluster has a node with data, and at most 65535 shards";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
        }
        // Clients come after the oracle, so it needs an entry; it is no process that is asked for
        // watermarks or votes.
        let oracle = (pair.has_oracle() && network.clients > 0).then_some(ORACLE_ID);
        let first = total.unwrap_or(holders);
        let (process, own) = match &network.role {
            Role::Member { node, .. } => {
                let before = || nodes.iter().take_while(|other| other.id != *node);
                let first: usize = before().map(|node| node.shards).sum();
                let here = nodes.iter().find(|other| other.id == *node).map_or(0, |node| node.shards);
                (before().count(), first..first + here)
            }
            Role::Client { place } => (data.len() + place, first + place..first + place + 1),
        };
        let part = Part {
            holders,
            processes: processes.chain(oracle).chain(places).collect(),
            process_count: data.len() + network.clients,
            first_client: data.len(),
            client_shards: first..first + network.clients,
            process,
            shards: own.clone(),
            first_attempt: network.life,
            durability,
        };
        let life = network.life;
        let shards = part.data_shards();
        let layout = part.layout(tables);
        let memory = limited(&options);
        let notes = outside.data.as_ref().map(|kept| RwLock::new(kept.notes()));
        let runtime = part.start(pair, &layout, &options, &memory, outside)?;
        let (oracle, layout) = (ShardId(holders as u16), RwLock::new(layout));
        Ok(Engine { pair, runtime, layout, own, shards, oracle, nodes, life, memory, notes })
    }

    /// Starts a node of a cluster. Its data may take `memory` bytes. If the nodes of the cluster
    /// keep their data, this one has what its directory has, and serves once it has read that
    /// ([`Engine::is_recovered`]); else its tables are empty. The runtime deals connections to
    /// `listening` to the node's shards, whose tasks accept them.
    pub fn join(
        cluster: &Cluster,
        node: u16,
        listener: TcpListener,
        memory: Option<u64>,
        data_dir: Option<&Path>,
        listening: Option<Listening>,
    ) -> Result<Engine, OpenError> {
        let clock = Clock::new();
        let data = match (cluster.durability, data_dir) {
            (Durability::None, None) => None,
            (Durability::None, Some(_)) => return Err(OpenError::NothingKept),
            (_, None) => return Err(OpenError::NoDataDir),
            (_, Some(path)) => {
                let before = cluster.processes().filter(|other| other.id < node).map(|other| other.shards);
                let first: usize = before.sum();
                let here = cluster.processes().find(|process| process.id == node);
                let shards = first..first + here.map_or(0, |process| process.shards);
                let new = RandomState::new().hash_one(clock.now());
                let owner = Owner::member(cluster, node, shards, new);
                Some(DataDir::open(path, cluster.pair, owner)?)
            }
        };
        let network = cluster.network(Role::Member { node, listener }, clock, None, data.as_ref());
        let outside = Outside { data, network: Some(network), listening };
        Engine::take_part(cluster, outside, memory).map_err(OpenError::Threads)
    }

    /// Starts a client of a cluster in a free place, and waits until it is connected to all nodes.
    /// Its clock is the operating system's if that agrees with the nodes', otherwise it is set by
    /// theirs: timestamps that are far ahead would make others wait.
    pub fn connect(cluster: &Cluster, patience: Duration) -> Result<Engine, OpenError> {
        Engine::connect_by(cluster, patience, Clock::new())
    }

    /// The same with any clock, which may be wrong.
    fn connect_by(cluster: &Cluster, patience: Duration, clock: Clock) -> Result<Engine, OpenError> {
        let begun = Instant::now();
        // At random, so that clients that start at the same time do not compete for ever.
        let random = RandomState::new();
        let first = random.hash_one(0) as usize;
        let mut taken = 0;
        // If nodes go back, one that seems to run twice has a connection that is not closed yet.
        let comes_back = |refusal: &Refusal| match refusal {
            Refusal::NotOpen | Refusal::Forgotten => true,
            Refusal::Running { .. } => cluster.durability == Durability::Async,
            _ => false,
        };
        let (mut clock, mut limit) = (clock, Some(CLOCK_LIMIT));
        let mut error = OpenError::Full { clients: cluster.clients };
        while taken < cluster.clients || begun.elapsed() < FULL_AFTER {
            if taken > 0 && taken % cluster.clients == 0 {
                std::thread::sleep(Duration::from_millis(random.hash_one(taken) % 50));
            }
            let place = first.wrapping_add(taken) % cluster.clients;
            let network = cluster.network(Role::Client { place }, clock, limit, None);
            let outside = Outside { network: Some(network), ..Outside::default() };
            let engine = Engine::take_part(cluster, outside, None).map_err(OpenError::Threads)?;
            loop {
                match engine.runtime().refused() {
                    Some(refusal @ (Refusal::PlaceTaken | Refusal::Superseded)) => {
                        error = match refusal {
                            Refusal::PlaceTaken => OpenError::Full { clients: cluster.clients },
                            _ => OpenError::Refused(refusal.to_string()),
                        };
                        taken += 1;
                        break;
                    }
                    // A node that was started again meanwhile is met in its new life next time.
                    Some(refusal) if comes_back(&refusal) && begun.elapsed() < patience => {
                        std::thread::sleep(Duration::from_millis(50));
                        break;
                    }
                    Some(Refusal::Clock) => {
                        let mut ahead: Vec<i64> = engine.runtime().heard_clocks();
                        ahead.sort_unstable();
                        let median =
                            ahead.get(ahead.len().saturating_sub(1) / 2).copied().unwrap_or_default();
                        clock = Clock::with_offset(clock.offset().saturating_add_signed(median));
                        // From now on also connect to a node whose clock differs from the others'.
                        limit = None;
                        break;
                    }
                    Some(Refusal::Secret) if cluster.secret.is_none() => return Err(OpenError::NoSecret),
                    Some(refusal) => return Err(OpenError::Refused(refusal.to_string())),
                    None if engine.missing().next().is_none() && engine.serves() => return Ok(engine),
                    None => {}
                }
                if begun.elapsed() >= patience {
                    let (nodes, waited): (Vec<u16>, _) = (engine.missing().collect(), begun.elapsed());
                    return Err(match nodes.is_empty() {
                        true => OpenError::NotBack { waited },
                        false => OpenError::Unreachable { nodes, waited },
                    });
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(error)
    }

    fn take_part(cluster: &Cluster, outside: Outside, memory: Option<u64>) -> std::io::Result<Engine> {
        let options = EngineOptions {
            pin: None,
            protocol: ProtocolOptions { one_round: cluster.one_round, ..ProtocolOptions::default() },
            oracle: cluster.oracle.as_ref().map(|oracle| oracle.options).unwrap_or_default(),
            max_staleness_ns: cluster.max_staleness.as_nanos() as u64,
            memory,
            ..EngineOptions::default()
        };
        Engine::with_data(cluster.pair, cluster.all_tables(), options, outside, cluster.durability)
    }

    /// The nodes that this process is not, or not fully, connected to.
    pub fn missing(&self) -> impl Iterator<Item = u16> + use<> {
        let traffic = self.runtime.traffic().into_iter();
        traffic.filter(|peer| peer.connected < peer.pairs).filter_map(|peer| peer.node)
    }

    /// Waits until every shard of this process is connected to every shard of the others.
    pub fn wait_for_others(&self, limit: Duration) -> Result<(), Missing> {
        let begun = Instant::now();
        loop {
            if self.missing().next().is_none() {
                return Ok(());
            }
            if begun.elapsed() >= limit {
                let missing: Vec<u16> = self.missing().collect();
                let nodes = self.nodes.iter().filter(|node| missing.contains(&node.id));
                return Err(Missing { nodes: nodes.cloned().collect(), waited: limit });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Tells this engine from others that have had its place in the cluster.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// The shards of this process that transactions are coordinated on; on the oracle's own node,
    /// the oracle.
    pub fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The shards of this process that transactions are coordinated on: those with data, or a
    /// client's.
    pub fn coordinators(&self) -> impl Iterator<Item = ShardId> + Clone + use<> {
        let oracle = self.oracle();
        self.own.clone().map(|shard| ShardId(shard as u16)).filter(move |shard| Some(*shard) != oracle)
    }

    /// The shards of this process that hold data.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + Clone + use<> {
        self.shards.clone().map(|shard| ShardId(shard as u16))
    }

    /// The shards of this process that hold data, and the oracle's. If one has a log, all have.
    fn with_oracle(&self) -> impl Iterator<Item = ShardId> + Clone + use<> {
        self.shards().chain(self.oracle())
    }

    /// The oracle's shard, if it is in this process.
    pub fn oracle(&self) -> Option<ShardId> {
        let first = self.runtime.first().index();
        let here = (first..first + self.runtime.shards()).contains(&self.oracle.index());
        (self.pair.has_oracle() && here).then_some(self.oracle)
    }

    /// Tables and placement.
    pub fn layout(&self) -> Layout {
        self.layout.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All tables that the shards of this process have, in the order of their ids. On a node these
    /// may be more than those of its [`Engine::layout`]: clients make tables on its shards.
    pub fn tables(&self) -> Arc<[TableSpec]> {
        let first = ShardId(self.own.start as u16);
        self.on_shard(first, |shard| shard.tables())
    }

    /// Adds an empty table to the shards of this process. Transactions may use it once this has
    /// returned. A client adds a table only if all nodes have it.
    pub fn create_table(&self, spec: TableSpec) -> TableId {
        let shards: Vec<ShardId> = self.coordinators().chain(self.oracle()).collect();
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        for shard in shards {
            let spec = spec.clone();
            self.on_shard(shard, move |shard| shard.create_table(spec));
        }
        layout.tables = layout.tables.iter().cloned().chain([spec]).collect();
        let id = TableId((layout.tables.len() - 1) as u16);
        drop(layout);
        self.wait_until_stable();
        id
    }

    /// Loads rows, one value per column group, into a table that is not in use yet. Rows that
    /// belong to shards of other processes are skipped. Each key may be loaded once.
    pub fn load(&self, table: TableId, rows: Vec<(Key, Vec<Vec<u8>>)>) {
        let Layout { tables, mut placement, .. } = self.layout();
        let partitioning = tables[table.index()].partitioning;
        let mut left = rows;
        while !left.is_empty() {
            let mut by_shard = vec![Vec::new(); self.shards.len()];
            for row in std::mem::take(&mut left) {
                match partitioning.slot(&row.0) {
                    Some(slot) => {
                        let shard = placement.shard(slot).index();
                        if self.shards.contains(&shard) {
                            by_shard[shard - self.shards.start].push(row);
                        }
                    }
                    None => by_shard.iter_mut().for_each(|rows| rows.push(row.clone())),
                }
            }
            for (shard, mut rows) in self.shards().zip(by_shard) {
                while !rows.is_empty() {
                    let mut bytes = 0;
                    let fit = rows.iter().take(ROWS_PER_STEP).take_while(|(_, values)| {
                        let fits = bytes < BYTES_PER_STEP;
                        bytes += values.iter().map(Vec::len).sum::<usize>();
                        fits
                    });
                    let fit = fit.count();
                    let rest = rows.split_off(fit);
                    let step = std::mem::replace(&mut rows, rest);
                    left.extend(self.on_shard(shard, move |shard| {
                        let (here, elsewhere): (Vec<_>, Vec<_>) =
                            step.into_iter().partition(|(key, _)| shard.home(table, key) == shard.shard());
                        for (key, values) in here {
                            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
                            shard.load_row(table, &key, &values);
                        }
                        elsewhere
                    }));
                }
            }
            if !left.is_empty() {
                // Slots of these rows have moved, or are moving.
                std::thread::sleep(Duration::from_millis(1));
                for shard in self.shards() {
                    let moved = self.on_shard(shard, |shard| shard.placement().moved());
                    let placement = Arc::make_mut(&mut placement);
                    moved.into_iter().for_each(|moved| {
                        placement.merge(moved);
                    });
                }
            }
        }
        self.wait_until_stable();
    }

    /// Waits until everything that the shards of this process have done so far is on disk, if it is
    /// kept at all.
    fn wait_until_stable(&self) {
        for shard in self.with_oracle() {
            self.run_on(shard, |shard| async move { shard.stable().await });
        }
    }

    /// If the shards of this process do not wait for their disks, waits until everything is kept
    /// that they have committed before this call, for a second at most. On a cluster others that
    /// stop at the same time need this one for that, so it waits a little in any case.
    pub fn settle(&self) {
        let begun = Instant::now();
        let logs = || self.shards().filter_map(|shard| self.on_shard(shard, |shard| shard.status().log));
        if self.nodes.len() > 1 && logs().any(|log| log.cut.is_some()) {
            std::thread::sleep(OTHERS_SETTLE);
        }
        let largest = logs().map(|log| log.largest).max().unwrap_or_default();
        let is_lost = |log: LogStatus| log.cut.is_some_and(|cut| cut < largest);
        while logs().any(is_lost) && begun.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Which of its histories the database has: another than before if it has gone back to a cut
    /// since.
    pub fn era(&self) -> u64 {
        let era = |shard| self.on_shard(shard, |shard| shard.status().log).map_or(0, |log| log.era);
        self.shards().next().map_or(0, era)
    }

    /// The number that tells the data of its directory from any other.
    pub fn identity(&self) -> Option<u64> {
        let notes = self.notes.as_ref()?.read().unwrap_or_else(PoisonError::into_inner);
        Some(notes.memory())
    }

    /// The protocol and the timestamp scheme.
    pub fn pair(&self) -> Pair {
        self.pair
    }

    /// The runtime that runs the shards.
    pub fn runtime(&self) -> &dyn AnyRuntime {
        &*self.runtime
    }

    /// Starts a task on a shard of this process. The task is made there, so it need not be `Send`.
    pub fn spawn_on<F>(&self, shard: ShardId, task: impl FnOnce(Rc<dyn AnyShard>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + 'static,
    {
        self.runtime.start_on(shard, Box::new(move |shard| Box::pin(task(shard))));
    }

    /// Runs a task on a shard of this process and blocks this thread until it is done.
    pub fn run_on<F, R>(&self, shard: ShardId, task: impl FnOnce(Rc<dyn AnyShard>) -> F + Send + 'static) -> R
    where
        F: Future<Output = R> + 'static,
        R: Send + 'static,
    {
        let (done, result) = mpsc::sync_channel(1);
        self.spawn_on(shard, move |shard| {
            let task = task(shard);
            async move {
                let _ = done.send(task.await);
            }
        });
        result.recv().expect("a task started on a shard runs to its end")
    }

    /// Asks a shard of this process something, between two of its steps.
    pub fn on_shard<R: Send + 'static>(
        &self,
        shard: ShardId,
        look: impl FnOnce(&dyn AnyShard) -> R + Send + 'static,
    ) -> R {
        self.run_on(shard, move |shard| async move { look(&*shard) })
    }

    /// Rows and bytes of every table over the shards of this process.
    pub fn memory(&self) -> Vec<TableMemory> {
        let mut total = vec![TableMemory::default(); self.tables().len()];
        for shard in self.shards() {
            let here = self.on_shard(shard, |shard| shard.memory());
            total.resize(total.len().max(here.len()), TableMemory::default());
            for (sum, table) in total.iter_mut().zip(here) {
                sum.rows += table.rows;
                sum.bytes += table.bytes;
            }
        }
        total
    }

    /// The limit on the data of this process, if there is one, and what it takes.
    pub fn limit(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    /// What a shard has counted and what is open on it.
    pub fn status(&self, shard: ShardId) -> ShardStatus {
        self.on_shard(shard, |shard| shard.status())
    }

    /// The oldest snapshot that the shards of this process have heard of, with what all of them keep
    /// for it.
    pub fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let of = |shard| self.status(shard).oldest_snapshot;
        let known: Vec<OldestSnapshot> = self.coordinators().filter_map(of).collect();
        let mut oldest = *known.iter().min_by_key(|oldest| (oldest.since, oldest.holder))?;
        let same = known.iter().filter(|one| (one.since, one.holder) == (oldest.since, oldest.holder));
        oldest.kept = same.fold(KeptMemory::default(), |sum, one| KeptMemory {
            versions: sum.versions + one.kept.versions,
            bytes: sum.bytes + one.kept.bytes,
        });
        Some(oldest)
    }

    /// Takes the versions that a shard has recorded as installed, in order.
    pub fn take_installs(&self, shard: ShardId) -> Vec<Install> {
        self.on_shard(shard, |shard| shard.take_installs())
    }
}

/// The limit that an engine's shards share.
fn limited(options: &EngineOptions) -> Option<Arc<Memory>> {
    options.memory.map(|bytes| Memory::limited(bytes, machine::is_full))
}

impl Part {
    /// A database that is all in one process.
    fn alone(shards: usize, has_oracle: bool, first_attempt: u64, durability: Durability) -> Part {
        Part {
            holders: shards,
            processes: vec![0; shards].into(),
            process_count: 1,
            first_client: 1,
            client_shards: shards..shards,
            process: 0,
            shards: 0..shards + usize::from(has_oracle),
            first_attempt,
            durability,
        }
    }

    /// The layout of the whole database.
    fn layout(&self, tables: Vec<TableSpec>) -> Layout {
        let placement = Arc::new(Placement::even(self.holders));
        Layout { tables: tables.into(), placement, processes: self.processes.clone() }
    }

    /// The shards of this process that hold data.
    fn data_shards(&self) -> Range<usize> {
        self.shards.start.min(self.holders)..self.shards.end.min(self.holders)
    }

    /// Starts the shards of this process.
    fn start(
        self,
        pair: Pair,
        layout: &Layout,
        options: &EngineOptions,
        memory: &Option<Arc<Memory>>,
        Outside { data, network, listening }: Outside,
    ) -> std::io::Result<Box<dyn AnyRuntime>> {
        with_pair!(pair, P => {
            let makers = self.makers::<P>(layout, options, memory, data.as_ref());
            let (seed, pin) = (options.seed, options.pin);
            let directories = data.map_or_else(Vec::new, |data| data.directories);
            Ok(Box::new(match (network, listening) {
                (network, Some(listening)) => {
                    Runtime::listening(makers, seed, pin, directories, network, listening)?
                }
                (None, None) => Runtime::with_disks(makers, seed, pin, directories)?,
                (Some(network), None) => Runtime::networked(makers, seed, pin, directories, network)?,
            }))
        })
    }

    /// Makers for the shards of this process.
    fn makers<P: LegalPair>(
        self,
        layout: &Layout,
        options: &EngineOptions,
        memory: &Option<Arc<Memory>>,
        data: Option<&DataDir>,
    ) -> Vec<Maker<P>> {
        let Part {
            holders,
            process_count,
            first_client,
            client_shards,
            process,
            shards,
            first_attempt,
            durability,
            ..
        } = self;
        let options = *options;
        let process_counter = Arc::new(AtomicU64::new(0));
        let config = |shard| SchemeConfig {
            shard: ShardId(shard as u16),
            data_shards: holders,
            max_staleness_ns: options.max_staleness_ns,
            oracle: options.oracle,
            single_version: options.single_version,
            process,
            processes: first_client,
            clients: client_shards.clone(),
            process_counter: process_counter.clone(),
            first_attempt,
            patience_ns: plimsoll_txn::timestamp::PATIENCE_NS,
            logs: durability != Durability::None,
        };
        let others: Vec<usize> = (0..process_count).filter(|&other| other != process).collect();
        // Without the oracle, which has no versions.
        let here = match P::Scheme::ORACLE && shards.contains(&holders) {
            true => shards.start..holders,
            false => shards.clone(),
        };
        let low_water = LowWater::among(here, P::Scheme::slots(&config(0)), &others);
        // A client that has never been connected has begun no snapshot.
        (first_client..process_count).for_each(|client| low_water.absent(client));
        let makers = shards.map(|shard| {
            let (layout, config, low_water) = (layout.clone(), config(shard), low_water.clone());
            let memory = memory.clone();
            let log = data.map(|data| (data.log_of(shard as u16), options.log));
            // The oracle's numbers outlive it, whatever becomes of the versions.
            let to_cut = data.is_some_and(DataDir::is_to_cut) && shard != holders;
            let make = move || {
                let mut base = Base::new(&layout, &config, low_water);
                base.installs = options.record.then(Vec::new);
                memory.into_iter().for_each(|memory| base.limit_memory(memory));
                match log {
                    Some((identity, settings)) => base.log(identity, settings, to_cut),
                    None if durability == Durability::Sync => base.others_log(),
                    None if durability == Durability::Async => base.others_go_back(),
                    None => {}
                }
                P::new(base, options.protocol)
            };
            Box::new(make) as Maker<P>
        });
        makers.collect()
    }
}

#[cfg(test)]
mod stamps;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const PATIENCE: Duration = Duration::from_secs(60);
    pub(super) const HOUR_NS: i64 = 3_600_000_000_000;

    /// Nodes of one shard each, whose clocks are off by these offsets, connected with each other.
    fn nodes(offsets: &[i64]) -> (Cluster, Vec<Engine>) {
        nodes_under("clients = 1", offsets)
    }

    /// The same with more lines of the cluster's file.
    pub(super) fn nodes_under(lines: &str, offsets: &[i64]) -> (Cluster, Vec<Engine>) {
        let listeners: Vec<TcpListener> =
            offsets.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port is free")).collect();
        let mut text = format!("cluster = \"clocks\"\n{lines}\n");
        for (number, listener) in (1..).zip(&listeners) {
            let address = listener.local_addr().expect("it listens");
            text += &format!("[[node]]\nid = {number}\naddress = \"{address}\"\nshards = 1\n");
        }
        text += "[[table]]\nname = \"entry\"\n";
        let cluster = Cluster::parse(&text).expect("it is a cluster");
        let engines = (1..).zip(listeners).zip(offsets).map(|((node, listener), &offset)| {
            let clock = Clock::with_offset(Clock::new().offset().saturating_add_signed(offset));
            let network = cluster.network(Role::Member { node, listener }, clock, None, None);
            let outside = Outside { network: Some(network), ..Outside::default() };
            Engine::take_part(&cluster, outside, None).expect("it starts")
        });
        let engines: Vec<_> = engines.collect();
        engines.iter().for_each(|engine| engine.wait_for_others(PATIENCE).expect("all are there"));
        (cluster, engines)
    }

    /// Connects a client whose clock is off by `offset`. Returns how far its clock is off then.
    fn connected(cluster: &Cluster, offset: i64) -> i64 {
        let clock = Clock::with_offset(Clock::new().offset().saturating_add_signed(offset));
        let engine = Engine::connect_by(cluster, PATIENCE, clock).expect("it may come");
        engine.runtime().clock().offset().wrapping_sub(Clock::new().offset()) as i64
    }

    #[test]
    fn a_client_whose_clock_is_wrong_sets_it_by_the_nodes() {
        let (cluster, _nodes) = nodes(&[0, 0]);
        // There is one place: a client with a wrong clock must not spoil it for later ones.
        for offset in [HOUR_NS, -HOUR_NS, 0] {
            let off = connected(&cluster, offset).unsigned_abs();
            assert!(off < MAX_OFFSET_NS / 2, "off by {off} ns instead of {offset}");
        }
    }

    #[test]
    fn a_node_whose_clock_is_wrong_misleads_no_client() {
        for wrong in [HOUR_NS, -HOUR_NS] {
            let (cluster, _nodes) = nodes(&[0, wrong, 0]);
            let off = connected(&cluster, 0).unsigned_abs();
            assert!(off < MAX_OFFSET_NS / 2, "off by {off} ns where a node is off by {wrong}");
        }
    }
}
