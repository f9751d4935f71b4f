//! What a database asks of its engine.
//!
//! [`Database`](super::Database) is one type for all pairs of protocol and scheme, and its calls
//! block. So each call starts a task on a shard and waits for its answer. A transaction and a
//! snapshot pass through here as handles that only the shards of their pair understand.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError};
use std::time::{Duration, Instant};

use plimsoll_engine::Engine;
use plimsoll_store::TableMemory;
use plimsoll_txn::any_shard::{
    AnyShard, HeldSnapshot, InteractiveShard, ReadResults, SnapshotHandle, SnapshotRead, TransactionHandle,
};
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::messages::{MoveOutcome, TableList};
use plimsoll_txn::procedure::{Reads, Scan};
use plimsoll_txn::room::Memory;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::{Abort, ColumnGroup, Key, Placement, ShardId, Slot, TableId, TableSpec, Timestamp};

use super::Row;
use super::stats::OldestSnapshot;
use crate::error::Error;

/// Pause before a shard that cannot be reached is asked again, in nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// Interval at which a thread that waits for an answer checks whether this client was refused, or
/// an answer depends on a node that is gone; and how long it then still waits.
const LOOK: Duration = Duration::from_millis(100);

/// Waits for the results of reads that were sent to a shard; `None` if some of the data is on
/// another shard than the map says.
pub(super) type Answer<'a> = Box<dyn FnOnce() -> Result<Option<ReadResults>, Error> + 'a>;

/// A write that was not sent to a shard yet.
pub(super) enum Write {
    Put(ColumnGroup, Key, Vec<u8>),
    Delete(TableId, Key),
}

/// An operation of a transaction.
pub(super) enum Operation {
    Get(ColumnGroup, Key),
    GetMany(ColumnGroup, Vec<Key>),
    /// Whether any of these column groups of a row exists.
    Exists(Vec<ColumnGroup>, Key),
    Scan(Scan),
    /// The first rows of a range.
    Batch(Scan),
}

/// The answer of a shard that was asked for its tables, or to make some.
pub(super) struct ToldTables {
    pub(super) list: TableList,
    /// Whether it was asked more than once, and may have made tables for an answer that was lost.
    pub(super) repeated: bool,
}

/// The result of an [`Operation`].
pub(super) enum Outcome {
    Value(Option<Vec<u8>>),
    /// In the order of the keys.
    Values(Vec<Option<Vec<u8>>>),
    Exists(bool),
    Rows(Vec<Row>),
    /// With the rest of the range.
    Batch(Vec<Row>, Option<Scan>),
}

/// A transaction on its way to the shard that coordinates it, with the writes since its last
/// operation.
pub(super) struct StepRequest {
    pub(super) shard: ShardId,
    pub(super) attempt: Attempt,
    pub(super) begun: Option<TransactionHandle>,
    pub(super) writes: Vec<Write>,
    /// How long the client waits for an answer; `None`: for ever.
    pub(super) patience: Option<Duration>,
}

/// A transaction after an operation.
pub(super) struct StepResult {
    pub(super) begun: TransactionHandle,
    pub(super) outcome: Outcome,
    /// The timestamp up to which the client has seen the database with this result; `None` if the
    /// scheme cannot tell.
    pub(super) shown: Option<Timestamp>,
}

/// An engine, as a database sees it.
pub(super) struct Driver(Engine);

impl Driver {
    /// Over an engine of an interactive pair.
    pub(super) fn new(engine: Engine) -> Driver {
        Driver(engine)
    }

    /// The shards of this process.
    pub(super) fn own(&self) -> Range<usize> {
        self.0.own()
    }

    /// Tells this engine from those of other lives.
    pub(super) fn life(&self) -> u64 {
        self.0.life()
    }

    /// Whether a node has refused this client: then no node answers it any more.
    pub(super) fn is_refused(&self) -> bool {
        self.0.runtime().refused().is_some()
    }

    /// Whether the node of one of these shards is gone.
    pub(super) fn is_gone<'a>(&self, shards: impl IntoIterator<Item = &'a ShardId>) -> bool {
        let mut shards = shards.into_iter().peekable();
        shards.peek().is_some() && {
            let reach = self.0.runtime().reach();
            shards.any(|&shard| reach.is_gone(shard))
        }
    }

    /// Whether any node is gone.
    pub(super) fn any_is_gone(&self) -> bool {
        self.0.runtime().reach().any_is_gone()
    }

    /// See [`Engine::settle`].
    pub(super) fn settle(&self) {
        self.0.settle();
    }

    /// See [`plimsoll_runtime::real::Runtime::met`].
    pub(super) fn met(&self) -> Vec<u64> {
        self.0.runtime().met()
    }

    /// Bytes queued for nodes that do not keep up.
    pub(super) fn bytes_waiting(&self) -> u64 {
        self.0.runtime().bytes_waiting()
    }

    /// The clock of the shards.
    pub(super) fn clock(&self) -> Timestamp {
        self.0.runtime().clock().now()
    }

    /// See [`Engine::create_table`].
    pub(super) fn create_table(&self, spec: TableSpec) -> TableId {
        self.0.create_table(spec)
    }

    /// How many tables the shards of this process have.
    pub(super) fn table_count(&self) -> usize {
        self.0.layout().tables.len()
    }

    /// Adds the tables that another engine has and this one lacks.
    pub(super) fn add_tables_of(&self, other: &Driver) {
        for spec in other.0.layout().tables.iter().skip(self.table_count()) {
            self.0.create_table(spec.clone());
        }
    }

    /// Asks shards of nodes for their tables from a position on, after each has made those of these
    /// that it lacks. Asks again and again while a node cannot be reached: repeating it does no
    /// harm. Gives up if there is no answer in time, or a node is gone.
    pub(super) fn make_tables(
        &self,
        on: &[ShardId],
        from: u16,
        made: &Arc<Vec<TableSpec>>,
        patience: Duration,
    ) -> Result<Vec<ToldTables>, Error> {
        let begun = Instant::now();
        let own = ShardId(self.own().start as u16);
        let asked = on.iter().map(|&shard| {
            let (made, reach) = (made.clone(), self.0.runtime().reach());
            let (done, told) = mpsc::sync_channel(1);
            self.0.spawn_on(own, move |own| async move {
                let (begun, mut repeated) = (own.clock(), false);
                let list = loop {
                    if let Some(list) = own.make_tables(shard, from, made.clone()).await {
                        break Some(list);
                    }
                    let waited = Duration::from_nanos(own.clock().0.saturating_sub(begun.0));
                    if reach.is_gone(shard) || waited >= patience {
                        break None;
                    }
                    own.sleep(RETRY_NS).await;
                    repeated = true;
                };
                let _ = done.send(list.map(|list| ToldTables { list, repeated }));
            });
            told
        });
        let asked: Vec<_> = asked.collect();
        let told = asked.into_iter().map(|told| {
            let left = patience.saturating_sub(begun.elapsed());
            let told = answered(self, &told, Some(left), || false).flatten();
            told.ok_or_else(|| Error::Unreachable { waited: begun.elapsed() })
        });
        told.collect()
    }

    /// See [`Engine::load`].
    pub(super) fn load(&self, table: TableId, rows: Vec<(Key, Vec<Vec<u8>>)>) {
        self.0.load(table, rows);
    }

    /// The limit on the data of this process, if there is one.
    pub(super) fn limit(&self) -> Option<&Memory> {
        self.0.limit()
    }

    /// See [`Engine::memory`].
    pub(super) fn memory(&self) -> Vec<TableMemory> {
        self.0.memory()
    }

    /// The oldest snapshot that this process has open, and what it keeps here.
    pub(super) fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let oldest = self.0.oldest_snapshot().filter(|oldest| self.own().contains(&oldest.holder.index()))?;
        let age_ns = self.clock().0.saturating_sub(oldest.since.0);
        Some(OldestSnapshot {
            age: Duration::from_nanos(age_ns),
            versions: oldest.kept.versions,
            bytes: oldest.kept.bytes,
        })
    }

    /// The sum of [`plimsoll_txn::base::Counters::early_answers`] over all coordinators here.
    pub(super) fn early_answers(&self) -> u64 {
        self.0.coordinators().map(|shard| self.0.status(shard).counters.early_answers).sum()
    }

    /// Begins the transaction unless it has begun, applies its waiting writes, and does the
    /// operation. Gives up if there is no answer in time, or if the node of a shard that the
    /// transaction needs is gone.
    pub(super) fn step(
        &self,
        going: StepRequest,
        operation: Operation,
        needs: &BTreeSet<ShardId>,
    ) -> Result<StepResult, Abort> {
        let StepRequest { shard, attempt, begun, writes, patience } = going;
        let (done, result) = mpsc::sync_channel(1);
        self.0.spawn_on(shard, move |shard| async move {
            let shard = interactive(&*shard);
            let went = async {
                let mut txn = resume(shard, begun, attempt, writes).await?;
                let outcome = match operation {
                    Operation::Get(column, key) => Outcome::Value(shard.get(&mut txn, column, &key).await?),
                    Operation::GetMany(column, keys) => {
                        Outcome::Values(shard.get_many(&mut txn, column, &keys).await?)
                    }
                    Operation::Exists(columns, key) => {
                        Outcome::Exists(exists(shard, &mut txn, columns, &key).await?)
                    }
                    Operation::Scan(scan) => Outcome::Rows(shard.scan(&mut txn, &scan).await?),
                    Operation::Batch(scan) => {
                        let (rows, rest) = shard.scan_batch(&mut txn, &scan).await?;
                        Outcome::Batch(rows, rest)
                    }
                };
                Ok(StepResult { shown: shard.shown(&txn), begun: txn, outcome })
            };
            if let Err(SendError(Ok(StepResult { begun, .. }))) = done.send(went.await) {
                shard.rollback(begun).await;
            }
        });
        answered(self, &result, patience, || self.is_gone(needs)).unwrap_or(Err(Abort::Unknown))
    }

    /// Commits. `Err(None)`: there was no answer in time, or none is to be expected, because a node
    /// that may have voted is gone.
    pub(super) fn commit(&self, going: StepRequest) -> Result<Option<Timestamp>, Option<Abort>> {
        let StepRequest { shard, attempt, begun, writes, patience } = going;
        let (done, result) = mpsc::sync_channel(1);
        let number = Arc::new(AtomicU64::new(0));
        let committing = number.clone();
        self.0.spawn_on(shard, move |shard| async move {
            let shard = interactive(&*shard);
            let committed = match resume(shard, begun, attempt, writes).await {
                Ok(txn) => {
                    committing.store(shard.id(&txn).number, SeqCst);
                    shard.commit(txn).await.map(|committed| committed.stamp)
                }
                Err(abort) => Err(abort),
            };
            let _ = done.send(committed);
        });
        let is_doubtful = || {
            let number = number.load(SeqCst);
            self.any_is_gone() && self.0.on_shard(shard, move |shard| shard.is_doubtful(number))
        };
        answered(self, &result, patience, is_doubtful).ok_or(None)?.map_err(Some)
    }

    /// Rolls a transaction back.
    pub(super) fn rollback(&self, shard: ShardId, begun: TransactionHandle) {
        self.0.spawn_on(shard, move |shard| async move { interactive(&*shard).rollback(begun).await });
    }

    /// Takes a snapshot and registers it. Fails if an oracle has to be asked and does not answer.
    pub(super) fn snapshot(&self, shard: ShardId, freshness: Freshness) -> Result<HeldSnapshot, Abort> {
        self.0.run_on(shard, move |shard| async move { shard.take_snapshot(freshness).await })
    }

    /// Has `coordinator` read at a snapshot on another shard, again and again while that cannot be
    /// reached: a repeated read has the same result. Gives up if there is no answer in time, or the
    /// node is gone.
    pub(super) fn read_at(
        &self,
        coordinator: ShardId,
        shard: ShardId,
        at: &SnapshotHandle,
        reads: Reads,
        patience: Option<Duration>,
    ) -> Answer<'_> {
        let (at, reach) = (at.clone(), self.0.runtime().reach());
        let (answer, answers) = mpsc::sync_channel(1);
        self.0.spawn_on(coordinator, move |coordinator| async move {
            let txn = coordinator.next_id();
            let begun = coordinator.clock();
            let found = loop {
                let gone = match coordinator.read_at(txn, shard, &at, reads.clone()).await {
                    Ok(SnapshotRead::Found(found)) => break Ok(Some(found)),
                    Ok(SnapshotRead::Elsewhere) => break Ok(None),
                    Ok(SnapshotRead::Gone) => break Err(Error::SnapshotGone),
                    Ok(SnapshotRead::ClockAhead) => break Err(Error::ClockAhead),
                    Ok(SnapshotRead::InDoubt) => reach.any_is_gone(),
                    Err(_) => reach.is_gone(shard),
                };
                let waited = Duration::from_nanos(coordinator.clock().0 - begun.0);
                if gone || patience.is_some_and(|patience| waited >= patience) {
                    break Err(Error::Unreachable { waited });
                }
                coordinator.sleep(RETRY_NS).await;
            };
            // The receiver is gone if the client has met an error on another shard.
            let _ = answer.send(found);
        });
        Box::new(move || {
            // A shard may wait for ever for a writer whose outcome no reachable shard knows.
            let Some(found) = answered(self, &answers, patience, || false) else {
                return Err(match self.is_refused() {
                    true => Error::SnapshotGone,
                    false => Error::Unreachable { waited: patience.unwrap_or_default() },
                });
            };
            Ok(found?.map(|found| found()))
        })
    }

    /// Ends the registration of a snapshot.
    pub(super) fn release(&self, shard: ShardId, held: u32) {
        self.0.spawn_on(shard, move |shard| async move { shard.release_snapshot(held) });
    }

    /// The placement map as a shard of this process knows it.
    pub(super) fn placement(&self, shard: ShardId) -> Arc<Placement> {
        self.0.on_shard(shard, |shard| shard.placement())
    }

    /// Has `coordinator` ask the shard `from` to give slots to the shard `to`. `None`: there was no
    /// answer in time.
    pub(super) fn move_slots(
        &self,
        coordinator: ShardId,
        from: ShardId,
        slots: Vec<Slot>,
        to: ShardId,
        patience: Duration,
    ) -> Option<MoveOutcome> {
        let (done, outcome) = mpsc::sync_channel(1);
        self.0.spawn_on(coordinator, move |coordinator| async move {
            if let Some(outcome) = coordinator.move_slots(from, slots, to).await {
                let _ = done.send(outcome);
            }
        });
        outcome.recv_timeout(patience).ok()
    }
}

fn interactive(shard: &dyn AnyShard) -> &dyn InteractiveShard {
    shard.interactive().expect("a database has an interactive pair")
}

/// The answer of a task that was started on a shard; `None` if it takes longer than `patience`, the
/// shard has ended, this client was refused, or waiting is in vain.
fn answered<R>(
    driver: &Driver,
    result: &Receiver<R>,
    patience: Option<Duration>,
    is_vain: impl Fn() -> bool,
) -> Option<R> {
    let Some(patience) = patience else { return result.recv().ok() };
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        // If refused, calls over closed connections fail at once, so their answers still come
        // within the last wait.
        let refused = driver.is_refused();
        match result.recv_timeout(left.min(LOOK)) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if left > LOOK && !refused && !is_vain() => {}
            Err(_) => return None,
        }
    }
}

/// Begins the transaction unless it has begun, and applies its waiting writes. (After an error the
/// transaction is over and holds nothing.)
async fn resume(
    shard: &dyn InteractiveShard,
    begun: Option<TransactionHandle>,
    attempt: Attempt,
    writes: Vec<Write>,
) -> Result<TransactionHandle, Abort> {
    let mut txn = match begun {
        Some(mut txn) => {
            shard.follow(&mut txn, attempt.freshness.at_least);
            txn
        }
        None => shard.begin(attempt, false).await?,
    };
    for write in writes {
        match write {
            Write::Put(column, key, value) => shard.put(&mut txn, column, &key, &value).await?,
            Write::Delete(table, key) => shard.delete(&mut txn, table, &key).await?,
        }
    }
    Ok(txn)
}

async fn exists(
    shard: &dyn InteractiveShard,
    txn: &mut TransactionHandle,
    columns: Vec<ColumnGroup>,
    key: &Key,
) -> Result<bool, Abort> {
    for column in columns {
        if shard.get(txn, column, key).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
