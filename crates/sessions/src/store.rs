//! What sessions of SQL have of the database: transactions on the shard that they run on.
//!
//! A transaction is an interactive one of the shard ([`plimsoll_txn::interactive`]), which
//! coordinates it. It begins where the newest transaction ended that any session of this node was
//! told of, so a client that has several connections to a node finds in each what it was told in
//! the others. One that only reads has nothing to commit.
//!
//! **Nodes that are gone.** An operation that needs one fails as soon as that is noticed, and after
//! ten seconds in any case: the transaction can read and write nothing there. A commit that waits
//! for the vote of such a node is in doubt, and its outcome is found out without the session. Which
//! nodes a transaction needs is noted as it goes, if there are others at all.
//!
//! **Bounds.** What a transaction writes on another node travels in one message, so it is limited;
//! what all sessions of a node have written and not committed is limited, too.
//!
//! Left out: the age of a transaction that is tried again, which is that of a new one. Under two_pl
//! one that is long may therefore lose against others again and again.

use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use plimsoll_runtime::real::Reach;
use plimsoll_sql::SqlError;
use plimsoll_sql::store::{Asked, Failure, Pair, Purpose, Range, Space, Store, Write};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::AskedShards;
use plimsoll_txn::procedure::Scan;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::{
    Abort, KEY_MAX, Key, Order, Partitioning, RangePlace, ShardId, TableId, Timestamp, VALUE_MAX,
    WRITTEN_MAX, WRITTEN_MAX_CLUSTER,
};

use crate::failure;
use crate::operation::{Held, Ongoing};

/// How often an operation that takes long is looked at, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// Maximum time that an operation waits for other nodes, in nanoseconds.
const PATIENCE_NS: u64 = 10_000_000_000;
/// Maximum size of a write in a message, in bytes, besides its key and its value.
const WRITE_BYTES: usize = 64;
/// Maximum length of a bound of a range, in bytes: the least key above one of the greatest length.
const BOUND_MAX: usize = KEY_MAX + 1;

/// What the stores of all shards of a node have in common.
pub struct NodeStore {
    parted: TableId,
    copied: TableId,
    /// Whether transactions hold locks before they commit.
    has_locks: bool,
    /// Whether the cluster has no other node.
    is_alone: bool,
    reach: Reach,
    /// The largest timestamp that any session was told of.
    told: AtomicU64,
    /// Bytes that transactions have written which are not over.
    written: AtomicUsize,
    patience_ns: u64,
    max_staleness: Duration,
}

impl NodeStore {
    /// For a node of a database in whose two tables all of SQL's are ([`plimsoll_txn::pairs`]).
    /// `has_locks` says that transactions hold locks before they commit, `is_alone` that there is
    /// no other node.
    pub fn new(
        [parted, copied]: [TableId; 2],
        has_locks: bool,
        is_alone: bool,
        reach: Reach,
    ) -> Arc<NodeStore> {
        Arc::new(NodeStore {
            parted,
            copied,
            has_locks,
            is_alone,
            reach,
            told: AtomicU64::new(0),
            written: AtomicUsize::new(0),
            patience_ns: PATIENCE_NS,
            max_staleness: Duration::ZERO,
        })
    }

    /// The same with other patience: how long an operation waits for other nodes.
    pub fn with_patience(self: Arc<NodeStore>, patience_ns: u64) -> Arc<NodeStore> {
        Arc::new(NodeStore { patience_ns, ..self.alone() })
    }

    /// The same for a database that keeps versions for snapshots as old as this; without it no
    /// snapshot is old.
    pub fn with_staleness(self: Arc<NodeStore>, max_staleness: Duration) -> Arc<NodeStore> {
        Arc::new(NodeStore { max_staleness, ..self.alone() })
    }

    fn alone(self: Arc<NodeStore>) -> NodeStore {
        Arc::into_inner(self).expect("the node's store has one owner until shards get it")
    }
}

/// The database, for the sessions of a shard.
#[derive(Clone)]
pub struct ShardStore {
    shard: Rc<dyn AnyShard>,
    node: Arc<NodeStore>,
}

/// A transaction.
pub struct Transaction {
    /// `None` once it has failed.
    held: Option<Held>,
    reads_only: bool,
    written: Written,
    /// The shards that it has read and will write; empty if there are no other nodes.
    needs: BTreeSet<ShardId>,
}

/// What a transaction has written.
struct Written {
    node: Arc<NodeStore>,
    bytes: usize,
}

impl Written {
    /// Counts a write of a key and a value.
    fn add(&mut self, bytes: usize) -> Result<(), SqlError> {
        let (bytes, max) = match self.node.is_alone {
            true => (bytes, WRITTEN_MAX),
            false => (bytes + WRITE_BYTES, WRITTEN_MAX_CLUSTER),
        };
        if self.bytes + bytes > max {
            return Err(failure::too_much_written(max));
        }
        let all = self.node.written.fetch_add(bytes, SeqCst) + bytes;
        self.bytes += bytes;
        if all > WRITTEN_MAX { Err(failure::too_much_open(WRITTEN_MAX)) } else { Ok(()) }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.node.written.fetch_sub(self.bytes, SeqCst);
    }
}

impl ShardStore {
    /// For the sessions of this shard of the node.
    pub fn new(shard: Rc<dyn AnyShard>, node: Arc<NodeStore>) -> ShardStore {
        ShardStore { shard, node }
    }

    /// The shard of another node that a row belongs to which has this key: it keeps the row's queue,
    /// also if every shard has a copy of the row.
    pub(crate) fn keeper(&self, bytes: &[u8]) -> Option<ShardId> {
        let key = key(bytes, KEY_MAX).ok()?;
        let home = self.shard.home(self.node.parted, &key);
        (!self.shard.is_near(home)).then_some(home)
    }

    /// Whether there is no other node.
    pub(crate) fn is_alone(&self) -> bool {
        self.node.is_alone
    }

    fn table(&self, space: Space) -> TableId {
        match space {
            Space::Parted => self.node.parted,
            Space::Copied => self.node.copied,
        }
    }

    /// A session was told what there is up to a timestamp.
    fn saw(&self, stamp: Option<Timestamp>) {
        if let Some(Timestamp(stamp)) = stamp
            && stamp > self.node.told.load(Relaxed)
        {
            self.node.told.fetch_max(stamp, SeqCst);
        }
    }

    fn told(&self) -> Timestamp {
        Timestamp(self.node.told.load(SeqCst))
    }

    /// Nanoseconds since then, by the shard's clock.
    fn since(&self, begun: Timestamp) -> u64 {
        self.shard.clock().0.saturating_sub(begun.0)
    }

    fn is_gone(&self, needs: &BTreeSet<ShardId>) -> bool {
        needs.iter().any(|&shard| self.node.reach.is_gone(shard))
    }

    /// Does an operation of a transaction, unless a node that it needs is gone.
    async fn operate<T: 'static, F>(
        &self,
        transaction: &mut Transaction,
        operation: impl FnOnce(Held) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = (Held, Result<T, Abort>)> + 'static,
    {
        let Some(held) = transaction.held.take() else { return Err(failure::is_over()) };
        let is_gone = || self.is_gone(&transaction.needs);
        if is_gone() {
            return Err(failure::unreachable(0));
        }
        let begun = self.shard.clock();
        let mut ongoing = Ongoing::new(&self.shard, operation(held));
        match self.answer(&mut ongoing, is_gone).await {
            Some((mut held, Ok(value))) => {
                self.saw(held.shown());
                transaction.held = Some(held);
                Ok(value)
            }
            Some((held, Err(abort))) => {
                held.forget();
                Err(self.failure(abort, transaction.reads_only, &transaction.needs).await)
            }
            None => Err(failure::unreachable(self.since(begun))),
        }
    }

    /// What an operation comes to; `None` if waiting for it is in vain, or takes too long. In a
    /// database on one node every operation ends.
    async fn answer<T>(&self, ongoing: &mut Ongoing<T>, is_vain: impl Fn() -> bool) -> Option<T> {
        if self.node.is_alone {
            return Some(ongoing.await);
        }
        let begun = self.shard.clock();
        loop {
            let answer = ongoing.within(LOOK_NS.min(self.node.patience_ns)).await;
            if answer.is_some() || is_vain() || self.since(begun) >= self.node.patience_ns {
                return answer;
            }
        }
    }

    /// What an abort means for a session. A transaction that only reads meets no other.
    async fn failure(&self, abort: Abort, reads_only: bool, needs: &BTreeSet<ShardId>) -> Failure {
        match abort {
            Abort::Unknown => self.lost(reads_only, needs).await,
            abort if reads_only => failure::of_reading(abort),
            abort => failure::of(abort),
        }
    }

    /// A request was lost: for a moment when a connection breaks, and for good with its node.
    async fn lost(&self, reads_only: bool, needs: &BTreeSet<ShardId>) -> Failure {
        let (begun, reach) = (self.shard.clock(), &self.node.reach);
        loop {
            let (is_back, waited_ns) =
                (needs.iter().all(|&shard| reach.is_connected(shard)), self.since(begun));
            if reach.any_is_gone() || waited_ns >= self.node.patience_ns || is_back && reads_only {
                return failure::unreachable(waited_ns);
            }
            if is_back {
                return failure::of(Abort::Unknown);
            }
            self.shard.sleep(LOOK_NS.min(self.node.patience_ns)).await;
        }
    }

    /// Rolls a transaction back. Waits a moment, so that what it holds is free when the session
    /// goes on, unless others have to be asked who do not answer.
    async fn give_back(&self, held: Held) {
        Ongoing::new(&self.shard, held.rollback()).within(LOOK_NS).await;
    }

    /// Notes whom a transaction needs, if there are other nodes.
    fn note<I: IntoIterator<Item = ShardId>>(
        &self,
        transaction: &mut Transaction,
        needs: impl FnOnce() -> I,
    ) {
        if !self.node.is_alone {
            transaction.needs.extend(needs());
        }
    }
}

impl Store for ShardStore {
    type Transaction = Transaction;

    fn has_locks(&self) -> bool {
        self.node.has_locks
    }

    async fn begin(&self, purpose: Purpose) -> Result<Transaction, Failure> {
        if !self.shard.serves() {
            return Err(failure::is_reading_log());
        }
        let newest = || Freshness { staleness_ns: 0, at_least: self.told() };
        let (reads_only, freshness) = match purpose {
            Purpose::Write => (false, newest()),
            Purpose::Read { staleness_ms: 0, .. } => (true, newest()),
            Purpose::Read { staleness_ms, seen } => {
                let (asked, most) = (Duration::from_millis(staleness_ms), self.node.max_staleness);
                if asked > most {
                    return Err(failure::is_too_stale(asked, most));
                }
                let staleness_ns = staleness_ms.saturating_mul(1_000_000);
                (true, Freshness { staleness_ns, at_least: Timestamp(seen) })
            }
        };
        let attempt = Attempt { age: self.shard.clock().0, freshness };
        let needs = BTreeSet::new();
        let mut held = match Held::begin(&self.shard, attempt, reads_only).await {
            Ok(held) => held,
            Err(abort) => return Err(self.failure(abort, reads_only, &needs).await),
        };
        self.saw(held.shown());
        let written = Written { node: self.node.clone(), bytes: 0 };
        Ok(Transaction { held: Some(held), reads_only, written, needs })
    }

    async fn get(
        &self,
        transaction: &mut Transaction,
        space: Space,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let table = self.table(space);
        let keys = keys.iter().map(|bytes| key(bytes, KEY_MAX)).collect::<Result<Vec<Key>, Failure>>()?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.note(transaction, || keys.iter().map(|key| self.shard.home(table, key)));
        self.operate(transaction, |mut held| async move {
            let (shard, handle) = held.parts();
            let values = shard.get_many(handle, table.row(), &keys).await;
            (held, values)
        })
        .await
    }

    async fn scan(
        &self,
        transaction: &mut Transaction,
        range: Range,
        most: usize,
    ) -> Result<(Vec<Pair>, Option<Range>), Failure> {
        let Range { space, low, high, reverse } = range;
        let low = key(&low, BOUND_MAX)?;
        let high = high.map(|high| key(&high, BOUND_MAX)).transpose()?;
        if high.as_ref().is_some_and(|high| *high <= low) {
            return Ok((Vec::new(), None));
        }
        self.note(transaction, || self.shards_of(space, &low, high.as_ref()));
        let order = if reverse { Order::Descending } else { Order::Ascending };
        let scan = Scan { column: self.table(space).row(), low, high, limit: most, order };
        let ((rows, rest), mut scan) = self
            .operate(transaction, |mut held| async move {
                let (shard, handle) = held.parts();
                let batch = shard.scan_batch(handle, &scan).await;
                (held, batch.map(|batch| (batch, scan)))
            })
            .await?;
        let rest = match rows.last() {
            // A scan ends at its limit.
            Some((last, _)) if rows.len() >= most => {
                scan.go_on_behind(last);
                Some(scan)
            }
            _ => rest,
        };
        let pairs = rows.into_iter().map(|(key, value)| (key.to_bytes(), value)).collect();
        let rest = rest.map(|Scan { low, high, .. }| Range {
            space,
            low: low.to_bytes(),
            high: high.map(|high| high.to_bytes()),
            reverse,
        });
        Ok((pairs, rest))
    }

    async fn put_all(
        &self,
        transaction: &mut Transaction,
        space: Space,
        writes: Vec<Write>,
    ) -> Result<(), Failure> {
        if transaction.reads_only {
            return Err(failure::is_read_only());
        }
        let table = self.table(space);
        let mut accepted = Vec::with_capacity(writes.len());
        for (bytes, value) in writes {
            let key = key(&bytes, KEY_MAX)?;
            let length = value.as_ref().map_or(0, Vec::len);
            if length > VALUE_MAX {
                return Err(Failure::Error(failure::too_long("row", length, VALUE_MAX)));
            }
            transaction.written.add(bytes.len() + length).map_err(Failure::Error)?;
            accepted.push((key, value));
        }
        self.note(transaction, || match space {
            Space::Parted => accepted.iter().map(|(key, _)| self.shard.home(table, key)).collect::<Vec<_>>(),
            Space::Copied => self.shard.placement().holders().collect(),
        });
        self.operate(transaction, |mut held| async move {
            let (shard, handle) = held.parts();
            let mut written = Ok(());
            for (key, value) in accepted {
                written = match value {
                    Some(value) => shard.put(handle, table.row(), &key, &value).await,
                    None => shard.delete(handle, table, &key).await,
                };
                if written.is_err() {
                    break;
                }
            }
            (held, written)
        })
        .await
    }

    fn snapshot(&self, transaction: &Transaction) -> Option<u64> {
        transaction.held.as_ref()?.snapshot().map(|Timestamp(stamp)| stamp)
    }

    fn count(&self, transaction: &mut Transaction) {
        if let Some(held) = &mut transaction.held {
            held.count();
        }
    }

    fn counted(&self, transaction: &mut Transaction) -> Option<Asked> {
        let AskedShards { shards, requests } = transaction.held.as_mut()?.counted()?;
        Some(Asked { shards: shards.len(), requests })
    }

    async fn commit(&self, transaction: Transaction) -> Result<Option<u64>, Failure> {
        let Transaction { held, reads_only, written, needs } = transaction;
        let Some(mut held) = held else { return Err(failure::is_over()) };
        if reads_only {
            self.give_back(held).await;
            return Ok(None);
        }
        if self.is_gone(&needs) {
            return Err(failure::unreachable(0));
        }
        let (number, told) = (held.number(), self.told());
        let (shard, handle) = held.parts();
        shard.follow(handle, told);
        let mut ongoing = Ongoing::new(&self.shard, async move {
            let committed = held.commit().await;
            drop(written);
            committed
        });
        let begun = self.shard.clock();
        let is_doubtful = || self.node.reach.any_is_gone() && self.shard.is_doubtful(number);
        match self.answer(&mut ongoing, is_doubtful).await {
            Some(Ok(stamp)) => {
                self.saw(stamp);
                Ok(stamp.map(|Timestamp(stamp)| stamp))
            }
            Some(Err(abort)) => Err(self.failure(abort, false, &needs).await),
            None => Err(failure::in_doubt(self.since(begun))),
        }
    }

    async fn rollback(&self, transaction: Transaction) {
        if let Some(held) = transaction.held {
            self.give_back(held).await;
        }
    }
}

impl ShardStore {
    /// The shards that a scan needs, by the map of this shard.
    fn shards_of(&self, space: Space, low: &Key, high: Option<&Key>) -> Vec<ShardId> {
        let placement = self.shard.placement();
        match (space, Partitioning::Own.range_place(low, high)) {
            (Space::Copied, _) => Vec::new(),
            (Space::Parted, RangePlace::Slot(slot)) => vec![placement.shard(slot)],
            (Space::Parted, _) => placement.holders().collect(),
        }
    }
}

/// A key, unless it is longer than the database takes.
fn key(bytes: &[u8], max: usize) -> Result<Key, Failure> {
    match bytes.len() <= max {
        true => Ok(Key::new(bytes)),
        false => Err(Failure::Error(failure::too_long("key", bytes.len(), max))),
    }
}
