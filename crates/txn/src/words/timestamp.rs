//! The seam between protocols and time: what a protocol asks of a timestamp scheme, and when.
//!
//! A protocol orders conflicting transactions; a scheme records that order in the stamps of
//! versions, and says which versions a read-only transaction sees. The calls are the same for every
//! protocol:
//!
//! | when | the protocol calls |
//! |---|---|
//! | a version was read, or will be overwritten | [`Scheme::observe`] with its stamp |
//! | a record is locked, to be overwritten | [`Scheme::observe`] with its bound (mark and floor) |
//! | all write locks are held | [`Scheme::stamp`]: the commit stamp, final from here on |
//! | a read is validated or unlocked | mark rises to the stamp ([`plimsoll_store::Mark::raise`]) |
//! | a version is installed | it carries the stamp; the mark rises with it |
//! | the outcome is known | [`Service::finished`] |
//! | a read-only transaction begins | [`Scheme::snapshot`] |
//! | it reads a record | the mark rises to [`Scheme::read_mark`]; it [`Scheme::sees`] versions |
//!
//! A scheme that asks an oracle, or keeps vectors and no marks, needs more verbs: [`Service`].

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_store::Mark;
use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, Timestamp};

use crate::service::Service;

/// The largest expected difference between clocks, in nanoseconds. If a stamp is further ahead of a
/// clock, some clock is wrong: no transaction waits for it, and no shard believes it of another
/// process before it has voted (`Base::believe`).
pub const MAX_OFFSET_NS: u64 = 500_000_000;

/// How a scheme runs read-only transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadOnly {
    /// At a snapshot: no validation, no abort, one round per shard and stage. RC's snapshot
    /// contains every version, so each read finds the newest.
    Snapshot,
    /// In the same way as the protocol's read-write transactions: validated (OCC) or locked (2PL).
    Validated,
}

/// How fresh a snapshot has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Freshness {
    /// How far in the past to read, in nanoseconds; 0 is as fresh as possible. Schemes without a
    /// scalar clock ignore it.
    pub staleness_ns: u64,
    /// Lower bound for a snapshot, and for the stamp of a read-write transaction: what the session
    /// has written or seen up to this stamp comes before.
    pub at_least: Timestamp,
}

/// How an oracle is asked; each is a published optimization that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OracleOptions {
    /// One message carries all transactions of a shard that wait when it is sent.
    pub batch: bool,
    /// VTS: one slot for a whole process that stays, instead of one slot per shard. Where shards
    /// log, each has a slot of its own.
    pub compress: bool,
    /// Snapshots come from a local, staler copy, which is fetched again in the background after
    /// each use.
    pub prefetch: bool,
}

impl Default for OracleOptions {
    fn default() -> Self {
        OracleOptions { batch: true, compress: true, prefetch: false }
    }
}

/// How long a shard waits for news of a transaction that holds locks there before it acts on its
/// own, in nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// A scheme's configuration on one shard.
#[derive(Clone, Debug)]
pub struct SchemeConfig {
    /// The shard.
    pub shard: ShardId,
    /// How many shards hold data. If the scheme has an oracle, it is on the shard after them.
    pub data_shards: usize,
    /// The largest staleness that a snapshot may ask for, in nanoseconds: versions are kept longer
    /// by this time.
    pub max_staleness_ns: u64,
    /// How the oracle is asked.
    pub oracle: OracleOptions,
    /// RC only: keep no older versions.
    pub single_version: bool,
    /// The number of the shard's process.
    pub process: usize,
    /// How many processes stay as long as the database, not counting the oracle's.
    pub processes: usize,
    /// The shards of processes that come and go (clients). They hold no data. If there are none,
    /// the range is empty and begins after all others.
    pub clients: Range<usize>,
    /// The counter from which all shards of the process draw under compressed VTS.
    pub process_counter: Arc<AtomicU64>,
    /// The number of the shard's first attempt: larger than all numbers in former lives of the
    /// process.
    pub first_attempt: u64,
    /// How long the shard waits for news of another process's transaction that holds locks there,
    /// in nanoseconds.
    pub patience_ns: u64,
    /// Whether shards with data, and the oracle, log, so that transactions outlive processes, and
    /// numbers that were given out are not given out again.
    pub logs: bool,
}

impl SchemeConfig {
    /// For a shard of a database in one process: what a database has whose options are the default.
    pub fn in_one_process(shard: ShardId, data_shards: usize) -> SchemeConfig {
        SchemeConfig {
            shard,
            data_shards,
            max_staleness_ns: 0,
            oracle: OracleOptions::default(),
            single_version: false,
            process: 0,
            processes: 1,
            clients: data_shards..data_shards,
            process_counter: Arc::default(),
            first_attempt: 1,
            patience_ns: PATIENCE_NS,
            logs: false,
        }
    }

    /// The oracle's shard.
    pub fn oracle_shard(&self) -> ShardId {
        ShardId(self.data_shards as u16)
    }

    /// The shards that may hold data: an oracle asks them about the transactions of a coordinator
    /// that is gone.
    pub(crate) fn holders(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.data_shards.min(self.clients.start) as u16).map(ShardId)
    }

    /// The shards that may coordinate transactions: those, and the clients'.
    pub(crate) fn coordinators(&self) -> impl Iterator<Item = ShardId> + use<> {
        self.holders().chain(self.clients.clone().map(|shard| ShardId(shard as u16)))
    }
}

/// A timestamp scheme, and its state on one shard.
pub trait Scheme: Service<<Self as Scheme>::Observed> + Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// Whether all transactions are serializable.
    const SERIALIZABLE: bool = true;
    /// How read-only transactions run.
    const READ_ONLY: ReadOnly;
    /// Whether [`Scheme::stamp`] knows a commit stamp at once, provided that the scheme is
    /// [`Service::ready`]. Otherwise [`Service::want_stamp`] asks for it.
    const AT_ONCE: bool = true;
    /// Whether stamps are numbers that increase along every dependency.
    const SCALAR: bool;
    /// Whether stamps follow clocks, so that one that is far ahead of a clock is wrong. Numbers that
    /// are only counted up stay below every clock, and may be held against one as well.
    const CLOCKED: bool = false;
    /// Whether a read-only transaction must wait for a writer that may still commit within its
    /// snapshot.
    const WAITS: bool = false;
    /// Whether an oracle must learn of every commit, after it was installed everywhere.
    const REPORTS: bool = false;
    /// Whether the scheme has an oracle on a shard of its own.
    const ORACLE: bool = false;

    /// The type of the marks beside each record, leaf and absent cell.
    type Mark: Mark;
    /// The type of a read-only transaction's snapshot.
    type Snapshot: Clone + Debug + Send + Sync + Wire + 'static;
    /// What a coordinator collects on its way: everything that its transaction is ordered after.
    type Observed: Clone + Debug + Default + Send + Sync + Wire + 'static;

    /// The scheme's state on a shard.
    fn new(config: &SchemeConfig) -> Self;

    /// Values per watermark: 1, or one per slot of a vector.
    fn slots(config: &SchemeConfig) -> usize {
        let _ = config;
        1
    }

    /// Whether hidden versions are kept for snapshots.
    fn keeps_history(config: &SchemeConfig) -> bool {
        let _ = config;
        true
    }

    /// A new clock sample.
    fn tick(&mut self, clock: Timestamp);

    /// The transaction is ordered after this stamp.
    fn observe(observed: &mut Self::Observed, stamp: Timestamp);

    /// The transaction is ordered after everything that another has observed.
    fn join(observed: &mut Self::Observed, other: &Self::Observed);

    /// The largest stamp that a transaction with these observations is ordered after, if stamps
    /// follow clocks.
    #[inline]
    fn reach(observed: &Self::Observed) -> Timestamp {
        let _ = observed;
        Timestamp::ZERO
    }

    /// The transaction is ordered after everything that its session has seen, up to this stamp
    /// ("writes follow reads"). For schemes whose stamps do not grow with time by themselves.
    #[inline]
    fn follow(&self, observed: &mut Self::Observed, seen: Timestamp) {
        let _ = (observed, seen);
    }

    /// The timestamp up to which a client's session has read once it was given this transaction's
    /// results, committed or not. `None` if the scheme does not know.
    fn shown(observed: &Self::Observed) -> Option<Timestamp> {
        let _ = observed;
        None
    }

    /// A lower bound of the commit stamp of a transaction that has observed `observed` so far
    /// (`lb`).
    fn lower_bound(observed: &Self::Observed) -> Timestamp {
        let _ = observed;
        Timestamp::ZERO
    }

    /// The commit stamp: every write lock is held, no read is validated yet. Call only if
    /// [`Scheme::AT_ONCE`] and [`Service::ready`].
    fn stamp(&mut self, observed: &Self::Observed) -> Timestamp;

    /// A snapshot; `None` if [`Service::want_snapshot`] must ask for it.
    fn snapshot(&mut self, freshness: Freshness) -> Option<Self::Snapshot>;

    /// Whether a snapshot contains the version with this stamp.
    fn sees(at: &Self::Snapshot, stamp: Timestamp) -> bool;

    /// The stamp to which the marks of everything read at this snapshot rise.
    fn read_mark(at: &Self::Snapshot) -> Timestamp {
        let _ = at;
        Timestamp::ZERO
    }

    /// The snapshot's place in the order of timestamps; `None` if the scheme has no such order.
    fn place(at: &Self::Snapshot) -> Option<Timestamp>;

    /// The oldest snapshot that may still begin on this shard, one value per slot.
    fn low(&self, low: &mut [u64]);

    /// Lowers `low` to an active snapshot.
    fn lower(at: &Self::Snapshot, low: &mut [u64]);

    /// From now on no snapshot below `low` begins on this shard.
    fn raise(&mut self, low: &[u64]);

    /// Whether every snapshot at or above the watermark contains the version with this stamp.
    fn passed(watermark: &[u64], stamp: Timestamp) -> bool;
}
