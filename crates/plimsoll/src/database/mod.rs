//! An open database: its shards, sessions, limits, and how it is closed.
//!
//! A client's thread never touches data. Every operation is a task on the shard that owns the data,
//! and the thread waits for its answer ([`transaction`], [`snapshot`]). So an operation costs a hop
//! between two threads, some microseconds, and any number of clients work at once and share nothing
//! but the inboxes of the shards and a few counters ([`stats`]). Two counters matter for what is
//! read:
//!
//! * The database remembers the largest timestamp that any client was told of. Transactions and
//!   [`Freshness::Newest`] snapshots begin there at the earliest, so all threads see what one
//!   thread was told of, even if the clock is set back.
//! * A *session* remembers the same for one client. [`Freshness::Stale`] snapshots begin there at
//!   the earliest: however far back a client asks to look, it sees its own writes and everything it
//!   has read. A session can be handed to another process ([`token`]).
//!
//! An operation holds a read lock on the engine while it works on the shards, never while a
//! client's own code runs. Closing takes the write lock. So an operation that has begun ends, a
//! later one is told that the database is closed, and closing waits for no client's code. A client
//! of a cluster may need another engine in the course of time ([`lives`]).
//!
//! Bad input must not reach a shard, where a panic ends the process: tables, groups, lengths and
//! ranges are checked here, on the client's thread.

mod admission;
mod driver;
mod keys;
mod lives;
mod snapshot;
mod stats;
mod tables;
mod token;
mod transaction;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use std::{slice, thread};

use plimsoll_engine::{
    Cluster, Durability, Engine, EngineOptions, OpenError, SHARDS_MAX, STALENESS_MAX, machine,
};
use plimsoll_txn::messages::MoveOutcome;
use plimsoll_txn::pairs::{Pair, Scheme};
use plimsoll_txn::procedure::Scan;
use plimsoll_types::{ColumnGroup as StoredColumn, TableId as StoredTable};
use plimsoll_types::{
    IndexKind, KEY_MAX, Key, Placement, RangePlace, SLOTS, ShardId, Slot, TableSpec, Timestamp,
};

use crate::error::Error;
use crate::find;
use crate::schema::Schema;
use admission::Admission;
use driver::{Driver, Operation, Write};
use lives::{Lives, Running};
use stats::Tally;
use tables::{Table, Tables};

pub(crate) use keys::new_identity;
pub use keys::{Column, ColumnGroup, KeyRange, TableId};
pub use snapshot::{Freshness, Rows, Snapshot};
pub use stats::{OldestSnapshot, Outcomes, Stats};
pub use token::{Token, TokenError};
pub use transaction::{Cursor, Txn};

pub use plimsoll_types::{VALUE_MAX, WRITTEN_MAX, WRITTEN_MAX_CLUSTER};

/// At most `LARGE_AT_ONCE` of a client's concurrent transactions may write more than `LARGE_BYTES`.
/// Under 2PL a transaction that waits for its turn loses its locks after a second, like any that
/// pauses, so it keeps no other waiting for ever.
const LARGE_AT_ONCE: usize = 8;
const LARGE_BYTES: usize = 1 << 20;
/// Back-pressure: while more than this many bytes are queued for nodes, a client begins nothing
/// new.
const BACKLOG_MAX: u64 = 16 << 20;

/// Lower bound of a read's time-out; a shorter `patience` does not apply to reads.
const READ_MIN: Duration = Duration::from_millis(100);
/// Interval between two checks of a client that waits for [`BACKLOG_MAX`].
const ROOM_AFTER: Duration = Duration::from_millis(1);
/// Pause before the placement map is read again after a miss. The new map has nearly always arrived
/// by then.
const MAP_AFTER: Duration = Duration::from_millis(1);

/// A row as a scan returns it.
pub type Row = (Key, Vec<u8>);

/// How a database is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Threads that own the data. One per core by default; fewer leave cores to the client threads.
    pub shards: usize,
    /// Whether shard i is bound to core i. Not by default: the process may have other threads.
    pub pin: bool,
    /// How far in the past a snapshot may begin: every version is kept this long after it was
    /// overwritten. Zero, the default, keeps only what open snapshots can see.
    pub max_staleness: Duration,
    /// How long a transaction waits for its turn, and how long it is retried after conflicts. 10 s
    /// by default.
    pub patience: Duration,
    /// Read-write transactions that run at the same time, per shard; further ones wait for their
    /// turn. Bounds the memory that many clients can take. 1000 by default. In a client of a
    /// cluster at most 8 of them may write more than 1 MiB each.
    pub transactions_per_shard: usize,
    /// Protocol and timestamp scheme, `occ/dst` by default. The others are there for comparison:
    /// some can do less, and `rc` is not serializable.
    pub pair: Pair,
    /// Bytes that the data may take; when they are used, writes are refused ([`Error::Full`]),
    /// while reads and deletions go on. `None`, the default, is 80 % of the memory that the process
    /// may use. In a client of a cluster it has no effect: each node has its own.
    pub memory: Option<u64>,
    /// Where the database is kept. With a directory, a transaction is committed when it is on disk,
    /// and a process that opens the directory after this one has ended, however that was, finds
    /// everything that was committed. `None`, the default, keeps the database in memory only, which
    /// costs nothing. For `occ`, `two_pl` and `client_2pc` under `dst`, `none` and `rc`. In a
    /// client of a cluster it is refused.
    pub data_dir: Option<PathBuf>,
    /// What of a database with a directory outlives the process. `None`, the default, is
    /// [`Durability::Sync`]: everything. Under [`Durability::Async`], which is for `dst`,
    /// transactions do not wait for the disk. After a crash the database goes back to one
    /// timestamp, as a whole, which is usually less than a tenth of a second old; and its slots do
    /// not move. In a client of a cluster it is refused.
    pub durability: Option<Durability>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            shards: thread::available_parallelism().map_or(1, |cores| cores.get()),
            pin: false,
            max_staleness: Duration::ZERO,
            patience: Duration::from_secs(10),
            transactions_per_shard: 1000,
            pair: Pair::default(),
            memory: None,
            data_dir: None,
            durability: None,
        }
    }
}

/// Rows and bytes of a table, all shards together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableMemory {
    /// The table's name.
    pub name: Arc<str>,
    /// Rows, including deleted ones that are not collected yet.
    pub rows: usize,
    /// Bytes of keys, values, old versions and indexes.
    pub bytes: usize,
}

/// A handle of an open database. Clones are cheap, may be used by any number of threads at once,
/// and share one session: a snapshot taken through one sees what was written through another.
/// [`Database::session`] begins a session of its own.
///
/// The database closes with its last handle, or by [`Database::close`].
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
    /// The largest timestamp that this session was told of.
    seen: Arc<AtomicU64>,
}

struct Inner {
    lives: Lives,
    /// Tells this database from others, in tokens. The same in all clients of a cluster.
    identity: u64,
    /// Which of its histories the database has.
    era: u64,
    tables: Tables,
    /// Held while a table is made: one at a time. On a cluster: the tables that this client has
    /// begun to make, and that may not be on all nodes.
    making: RwLock<Vec<TableSpec>>,
    /// The placement map as last learned. If a shard does not have a slot that the map says it has,
    /// the map is read again.
    placement: RwLock<Arc<Placement>>,
    /// How many shards hold data; they are the first shards.
    holders: usize,
    admission: Admission,
    /// See [`LARGE_AT_ONCE`].
    large: Admission,
    tally: Tally,
    options: Options,
    /// Whether the database goes back to a timestamp after a crash.
    goes_back: bool,
    /// The largest timestamp that any client was told of.
    told: AtomicU64,
    /// Takes turns among shards for work that any of them can do.
    next: AtomicUsize,
}

impl Database {
    /// Opens a database with these tables, and starts its shards. It is empty, unless
    /// [`Options::data_dir`] has a database: then that is opened, its tables have to begin with
    /// these, and those that it does not have are made.
    pub fn open(schema: Schema, options: Options) -> Result<Database, OpenError> {
        if options.shards == 0 {
            return Err(OpenError::NoShards);
        }
        if options.shards > SHARDS_MAX {
            return Err(OpenError::TooManyShards { shards: options.shards });
        }
        if options.max_staleness > STALENESS_MAX {
            return Err(OpenError::MaxStaleness { asked: options.max_staleness });
        }
        if options.transactions_per_shard == 0 {
            return Err(OpenError::NoTransactions);
        }
        let pair = options.pair.interactive().map_err(OpenError::Pair)?;
        if !pair.has_staleness() && !options.max_staleness.is_zero() {
            return Err(OpenError::NoStaleness { scheme: pair.scheme });
        }
        let durability = match (options.durability, &options.data_dir) {
            (None, _) => Durability::Sync,
            (Some(Durability::None), Some(path)) => {
                return Err(OpenError::DirectoryForNothing(path.clone()));
            }
            (Some(durability @ (Durability::Async | Durability::Sync)), None) => {
                return Err(OpenError::NoDirectory(durability));
            }
            (Some(durability), _) => durability,
        };
        let mut tables: Vec<_> =
            schema.identified().map(|(spec, identity)| Some(Table::new(spec.clone(), identity))).collect();
        let how = EngineOptions {
            shards: options.shards,
            pin: options.pin.then_some(0),
            max_staleness_ns: options.max_staleness.as_nanos() as u64,
            memory: Some(options.memory.unwrap_or_else(machine::data_bytes)),
            durability,
            ..EngineOptions::default()
        };
        let engine = match &options.data_dir {
            None => Engine::start(pair, schema.tables().to_vec(), how).map_err(OpenError::Threads)?,
            Some(path) => Engine::open_in(path, pair, schema.tables(), how)?,
        };
        let others = engine.layout().tables.iter().skip(tables.len()).cloned().collect::<Vec<_>>();
        tables.extend(others.into_iter().map(|spec| Some(Table::new(spec, new_identity()))));
        let inner = Inner {
            placement: RwLock::new(Arc::new(Placement::even(options.shards))),
            holders: options.shards,
            identity: engine.identity().unwrap_or_else(|| RandomState::new().hash_one(new_identity())),
            era: engine.era(),
            lives: Lives::new(Driver::new(engine), None, false),
            tables: Tables::new(tables),
            making: RwLock::default(),
            admission: Admission::new(options.transactions_per_shard.saturating_mul(options.shards)),
            large: Admission::new(usize::MAX),
            tally: Tally::default(),
            goes_back: durability == Durability::Async,
            options,
            told: AtomicU64::new(0),
            next: AtomicUsize::new(0),
        };
        Ok(Database { inner: Arc::new(inner), seen: Arc::default() })
    }

    /// Connects to a running cluster, whose nodes own the data; this process coordinates its own
    /// transactions. The cluster decides `shards`, `pin`, `max_staleness` and `pair`: leave these
    /// options as they are by default, or give what the cluster has
    /// ([`OpenError::ClusterDecides`]). Waits until all nodes are connected.
    ///
    /// Once a transaction has returned, it is committed, and everything that begins later through
    /// this handle sees it. Other clients may see it later, and this handle may see theirs later,
    /// by as much as clocks differ; to be sure, hand on a session.
    ///
    /// A node that ends takes its data with it, and operations that need it wait or fail. A client
    /// that was cut off until the nodes took it for dead connects again by itself, in its next
    /// operation: older snapshots are gone ([`Error::SnapshotGone`]), sessions go on.
    /// [`Error::CutOff`] if it cannot connect again.
    pub fn connect(cluster: &Cluster, options: Options) -> Result<Database, OpenError> {
        if options.transactions_per_shard == 0 {
            return Err(OpenError::NoTransactions);
        }
        check_options(cluster, &options)?;
        let engine = connect(cluster, options.patience).map_err(|error| match error {
            OpenError::Refused(why) => OpenError::Refused(match find::differs(cluster) {
                Some(difference) => format!("{why}; {difference}"),
                None => why,
            }),
            error => error,
        })?;
        let options = Options { max_staleness: cluster.max_staleness, pair: cluster.pair, ..options };
        let again = {
            let (cluster, patience) = (cluster.clone(), options.patience);
            move || {
                if cluster.pair.scheme == Scheme::Vts {
                    let why =
                        "what its sessions have seen means nothing in another place under vts".to_owned();
                    return Err(Error::CutOff { why });
                }
                connect(&cluster, patience).map_err(|error| match error {
                    OpenError::Unreachable { waited, .. } | OpenError::NotBack { waited } => {
                        Error::Unreachable { waited }
                    }
                    other => Error::CutOff { why: other.to_string() },
                })
            }
        };
        let holders = cluster.nodes.iter().map(|node| node.shards).sum();
        let goes_back = cluster.durability == Durability::Async;
        // All clients meet the nodes in the same lives then.
        let era = if goes_back { token::era(&engine.met()) } else { 0 };
        let of_file = cluster.tables.len();
        let tables = (0..).zip(cluster.all_tables());
        let tables =
            tables.map(|(id, spec): (usize, _)| (id < of_file).then(|| Table::new(spec, cluster.id)));
        let inner = Inner {
            placement: RwLock::new(Arc::new(Placement::even(holders))),
            holders,
            lives: Lives::new(engine, Some(Box::new(again)), goes_back),
            identity: cluster.id,
            era,
            tables: Tables::new(tables.collect()),
            making: RwLock::default(),
            admission: Admission::new(options.transactions_per_shard),
            large: Admission::new(LARGE_AT_ONCE),
            tally: Tally::default(),
            goes_back,
            options,
            told: AtomicU64::new(0),
            next: AtomicUsize::new(0),
        };
        Ok(Database { inner: Arc::new(inner), seen: Arc::default() })
    }

    /// A handle with a new session, which has seen nothing yet: its stale snapshots may be older
    /// than what others have just written. [`Database::session_with`] begins one that has seen what
    /// another session has.
    pub fn session(&self) -> Database {
        Database { inner: self.inner.clone(), seen: Arc::default() }
    }

    /// How transactions of this database have ended, through this handle and all others of this
    /// process. Other clients of a cluster count their own.
    pub fn stats(&self) -> Stats {
        let oldest = self.inner.lives.as_it_is().ok().and_then(|running| running.oldest_snapshot());
        self.inner.tally.stats(self.inner.lives.early_answers(), oldest)
    }

    /// The memory of every table in this process, in the order of their ids.
    pub fn memory(&self) -> Result<Vec<TableMemory>, Error> {
        let memory = self.inner.running()?.memory();
        let tables = self.inner.tables.all();
        let named = tables.iter().zip(memory).filter_map(|(of, table)| {
            let name = of.as_ref()?.name.clone();
            Some(TableMemory { name, rows: table.rows, bytes: table.bytes })
        });
        Ok(named.collect())
    }

    /// Moves slots with everything in them to another shard, while transactions go on; slots that
    /// are there already stay. A slot cannot be used while it is on its way, which takes as long as
    /// its rows take to be copied. [`Error::NoSuchSlot`], [`Error::NoSuchShard`];
    /// [`Error::SlotsInUse`] if transactions hold locks there all the time, and
    /// [`Error::Unreachable`]: after these two some slots may have moved, and a second call moves
    /// the others.
    pub fn move_slots(&self, slots: &[Slot], to: ShardId) -> Result<(), Error> {
        let inner = &*self.inner;
        if let Some(slot) = slots.iter().find(|slot| usize::from(slot.0) >= SLOTS) {
            return Err(Error::NoSuchSlot { slot: slot.0 });
        }
        // Slots would not go back with it.
        if inner.goes_back {
            return Err(Error::SlotsAreFixed);
        }
        let begun = Instant::now();
        loop {
            let placement = inner.placement();
            if !placement.is_holder(to) {
                return Err(Error::NoSuchShard { shard: to.0, shards: placement.holders().len() });
            }
            let left = |slot: &&Slot| placement.shard(**slot) != to;
            // This client's map may be out of date: whether all are there only that shard knows.
            let from = slots.iter().find(left).map_or(to, |&slot| placement.shard(slot));
            let these = slots.iter().copied().filter(|&slot| placement.shard(slot) == from).collect();
            let running = inner.running()?;
            if running.is_gone(&[from, to]) {
                return Err(Error::Unreachable { waited: begun.elapsed() });
            }
            let coordinator = running.coordinator(from);
            let outcome = running.move_slots(coordinator, from, these, to, inner.options.patience);
            drop(running);
            // The new map is on its way to the coordinator.
            thread::sleep(MAP_AFTER);
            inner.look_at_map(from)?;
            let waited = begun.elapsed();
            match outcome {
                Some(MoveOutcome::Moved) if from == to => return Ok(()),
                Some(MoveOutcome::Moved) => {}
                Some(MoveOutcome::Locked) => return Err(Error::SlotsInUse { waited }),
                Some(MoveOutcome::ClockAhead) => return Err(Error::ClockAhead),
                None | Some(MoveOutcome::Unreachable) if waited >= inner.options.patience => {
                    return Err(Error::Unreachable { waited });
                }
                _ if waited >= inner.options.patience => return Err(Error::SlotsInUse { waited }),
                _ => {}
            }
        }
    }

    /// Stops the shards and forgets all data. Operations that have begun are finished; all others,
    /// through any handle, transaction or snapshot, end with [`Error::Closed`]. Closing twice does
    /// no harm.
    pub fn close(&self) {
        self.inner.lives.close();
    }

    /// Notes a timestamp that this session was told of.
    fn saw(&self, stamp: Timestamp) {
        self.inner.told.fetch_max(stamp.0, SeqCst);
        self.seen.fetch_max(stamp.0, SeqCst);
    }
}

/// Connects to a cluster.
fn connect(cluster: &Cluster, patience: Duration) -> Result<Driver, OpenError> {
    Ok(Driver::new(Engine::connect(cluster, patience)?))
}

/// Refuses options of a client that its cluster decides, and has decided otherwise.
fn check_options(cluster: &Cluster, options: &Options) -> Result<(), OpenError> {
    let defaults = Options::default();
    let shards: usize = cluster.nodes.iter().map(|node| node.shards).sum();
    let refused = |option, asked: String, has: String| Err(OpenError::ClusterDecides { option, asked, has });
    if options.shards != defaults.shards && options.shards != shards {
        return refused("shards", options.shards.to_string(), shards.to_string());
    }
    if let Some(durability) = options.durability.filter(|&durability| durability != cluster.durability) {
        return refused("durability", durability.to_string(), cluster.durability.to_string());
    }
    if let Some(path) = &options.data_dir {
        return refused("data_dir", path.display().to_string(), "nothing on disk".to_owned());
    }
    if options.pin {
        return refused("pin", "true".to_owned(), "no shard in this process".to_owned());
    }
    if options.max_staleness > cluster.max_staleness {
        let [asked, has] = [options.max_staleness, cluster.max_staleness].map(|time| format!("{time:?}"));
        return refused("max_staleness", asked, has);
    }
    if options.pair != defaults.pair && options.pair != cluster.pair {
        return refused("pair", options.pair.to_string(), cluster.pair.to_string());
    }
    Ok(())
}

impl Inner {
    /// See [`Lives::running`].
    fn running(&self) -> Result<Running<'_>, Error> {
        self.lives.running()
    }

    /// Waits until less than [`BACKLOG_MAX`] is queued for nodes that do not keep up.
    fn wait_for_room(&self) -> Result<(), Error> {
        let begun = Instant::now();
        while self.is_client() && self.running()?.bytes_waiting() > BACKLOG_MAX {
            let waited = begun.elapsed();
            if waited >= self.options.patience {
                return Err(Error::Congested { waited });
            }
            thread::sleep(ROOM_AFTER);
        }
        Ok(())
    }

    /// How long a client waits for an answer; `None`: for ever. In one process every answer comes
    /// in time. In a cluster, an answer that needs an unreachable node that has voted may never
    /// come, nor one that meets the locks of such a transaction.
    fn patience(&self, least: Duration) -> Option<Duration> {
        self.is_client().then_some(self.options.patience.max(least))
    }

    /// Whether the data is in other processes.
    fn is_client(&self) -> bool {
        self.lives.is_client()
    }

    /// Whether a transaction reads at a snapshot until it commits.
    fn reads_at_snapshot(&self) -> bool {
        let pair = self.options.pair;
        pair.has_snapshots() && !pair.has_locks()
    }

    fn table(&self, table: TableId) -> Result<Arc<Table>, Error> {
        let found = self.tables.get(table.stored());
        found.filter(|found| found.identity == table.identity()).ok_or(Error::NoSuchTable)
    }

    /// A table that may be written.
    fn writable(&self, table: TableId) -> Result<Arc<Table>, Error> {
        let found = self.table(table)?;
        if found.spec.immutable { Err(Error::Immutable { table: found.name.clone() }) } else { Ok(found) }
    }

    fn column(&self, column: impl Column) -> Result<StoredColumn, Error> {
        let column = column.column();
        let table = self.table(column.table)?;
        if usize::from(column.group) < table.spec.groups.len() {
            Ok(column.table.stored().group(column.group))
        } else {
            Err(Error::NoSuchGroup { table: table.name.clone(), group: column.group })
        }
    }

    fn scan(&self, column: impl Column, range: KeyRange) -> Result<Scan, Error> {
        let column = column.column();
        let stored = self.column(column)?;
        let table = self.table(column.table)?;
        if table.spec.index != IndexKind::Ordered {
            return Err(Error::NotOrdered { table: table.name.clone() });
        }
        range.bounds().try_for_each(check_key)?;
        Ok(range.scan(stored))
    }

    /// The shard that owns a key of an existing table; `None` if all have copies of the table.
    fn owner(&self, table: StoredTable, key: &Key) -> Option<ShardId> {
        let slot = self.tables.partitioning(table).slot(key)?;
        Some(self.placement().shard(slot))
    }

    /// The shards that an operation reads; none if any copy of a table will do.
    fn read_by(&self, operation: &Operation) -> Vec<ShardId> {
        let owners = |column: &StoredColumn, keys: &[Key]| {
            keys.iter().filter_map(|key| self.owner(column.table, key)).collect()
        };
        match operation {
            Operation::Get(column, key) => owners(column, slice::from_ref(key)),
            Operation::GetMany(column, keys) => owners(column, keys),
            Operation::Exists(columns, key) => owners(&columns[0], slice::from_ref(key)),
            Operation::Scan(scan) | Operation::Batch(scan) => self.shards_of(&self.placement(), scan),
        }
    }

    /// The shards that a write goes to: the owner, or all that have copies of the table.
    fn written_by(&self, write: &Write) -> Vec<ShardId> {
        let (Write::Put(StoredColumn { table, .. }, key, _) | Write::Delete(table, key)) = write;
        match self.owner(*table, key) {
            Some(owner) => vec![owner],
            None => (0..self.holders as u16).map(ShardId).collect(),
        }
    }

    /// A shard that holds data; each in turn.
    fn any_shard(&self) -> ShardId {
        ShardId(self.turn(self.holders) as u16)
    }

    /// One of these shards, in turn; any shard if there are none.
    fn one_of(&self, shards: &[ShardId]) -> ShardId {
        match shards {
            [] => self.any_shard(),
            [only] => *only,
            some => some[self.turn(some.len())],
        }
    }

    fn turn(&self, count: usize) -> usize {
        self.next.fetch_add(1, Relaxed) % count
    }

    /// The shards that may hold rows of a range: one, if the range lies within one partition key;
    /// none if any copy of the table will do.
    fn shards_of(&self, placement: &Placement, scan: &Scan) -> Vec<ShardId> {
        match self.tables.partitioning(scan.column.table).range_place(&scan.low, scan.high.as_ref()) {
            RangePlace::Slot(slot) => vec![placement.shard(slot)],
            RangePlace::AnySlot => placement.shards(),
            RangePlace::Everywhere => Vec::new(),
        }
    }

    /// The placement map as last learned.
    fn placement(&self) -> Arc<Placement> {
        self.placement.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over what a shard of this process has learned about the placement.
    fn look_at_map(&self, shard: ShardId) -> Result<(), Error> {
        let running = self.running()?;
        let placement = running.placement(running.coordinator(shard));
        drop(running);
        let mut known = self.placement.write().unwrap_or_else(PoisonError::into_inner);
        let moved = placement.moved();
        if moved.iter().any(|&(slot, _, term)| term > known.term(slot)) {
            let known = Arc::make_mut(&mut known);
            moved.into_iter().for_each(|moved| {
                known.merge(moved);
            });
        }
        Ok(())
    }
}

fn check_key(key: &Key) -> Result<(), Error> {
    if key.len() > KEY_MAX { Err(Error::KeyTooLong { bytes: key.len() }) } else { Ok(()) }
}

fn check_value(value: &[u8]) -> Result<(), Error> {
    if value.len() > VALUE_MAX { Err(Error::ValueTooLong { bytes: value.len() }) } else { Ok(()) }
}
