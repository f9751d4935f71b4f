//! A shard without its type: what clients run their transactions on, whatever the pair is.
//!
//! Protocols and schemes are type parameters, and each pair is compiled once, in this crate and in
//! the one that starts shards. Everything above (benchmarks, the library, a node) holds an
//! [`AnyShard`] and is compiled once for all pairs. It pays a call through a table per transaction,
//! and per operation of an interactive one. Values that only a pair understands, such as a
//! transaction or a snapshot, pass through such code as handles.

use std::any::Any;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::{Env, ShardEnv, Tasks, Unknown};
use plimsoll_store::{At, TableMemory};
use plimsoll_types::history::Install;
use plimsoll_types::{
    Abort, ColumnGroup, Key, Placement, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId,
};

use crate::attempt::{Attempt, Committed, First};
use crate::base::{Counters, Inbox, OldestSnapshot};
use crate::envelope::{Answer, Envelope};
use crate::executable::{AnyProcedure, Executes};
use crate::execute::CompiledSteps;
use crate::interactive::{AskedShards, CompiledOperations, Rows, Step, Transaction};
use crate::messages::{self, Common, CommonReply, LoadOutcome, MoveOutcome, TableList};
use crate::procedure::{Reads, Scan};
use crate::read_only;
use crate::service::Service;
use crate::timestamp::{Freshness, MAX_OFFSET_NS, Scheme};
use crate::work::Footprint;

pub use crate::journal::{LogStatus, WriteRecord};

/// A pair whose shards can be held without their type: [`crate::pairs`].
pub trait AnyPair: CompiledSteps {
    /// A shard of this pair without its type.
    fn any(env: ShardEnv<Self>) -> Rc<dyn AnyShard>;

    /// A shard of this pair without its type, if its operations come one by one.
    fn interactive(env: &ShardEnv<Self>) -> Option<&dyn InteractiveShard>;
}

/// A shard of any pair, as the tasks on it see it. [`AnyPair::any`] makes one.
pub trait AnyShard: Tasks {
    /// What it has counted and what is open.
    fn status(&self) -> ShardStatus;

    /// All tables, in the order of their ids.
    fn tables(&self) -> Arc<[TableSpec]>;

    /// See [`Base::serves_transactions`](crate::base::Base::serves_transactions).
    fn serves(&self) -> bool;

    /// See [`Base::is_over`](crate::base::Base::is_over).
    fn is_over(&self) -> bool;

    /// Why the shard's log could not be read, or written last, if so.
    fn log_failure(&self) -> Option<String>;

    /// Begins to record the writes of the shard's log, if it has one, and returns what was recorded
    /// before.
    fn record_writes(&self) -> Option<WriteRecord>;

    /// The placement map as the shard knows it.
    fn placement(&self) -> Arc<Placement>;

    /// Rows and bytes of each table.
    fn memory(&self) -> Vec<TableMemory>;

    /// Adds an empty table.
    fn create_table(&self, spec: TableSpec);

    /// The shard that a row belongs to.
    fn home(&self, table: TableId, key: &Key) -> ShardId;

    /// Whether a shard is in this process.
    fn is_near(&self, shard: ShardId) -> bool;

    /// From now on this receives the messages that [`AnyShard::send_session`] sends to the shard.
    fn set_inbox(&self, inbox: Box<dyn Inbox>);

    /// Sends a message to the sessions on a shard. The message is lost if the process of the shard
    /// ends, or the channel to it is reset.
    fn send_session(&self, shard: ShardId, message: Vec<u8>);

    /// Loads a row, one value per column group, before transactions begin.
    fn load_row(&self, table: TableId, key: &Key, values: &[&[u8]]);

    /// A shard that holds no data reads immutable tables that are on every shard here from now on:
    /// all their rows were loaded.
    fn keep_copies(&self);

    /// The newest value of a record, as it is stored here.
    fn newest(&self, column: ColumnGroup, key: &Key) -> Option<Vec<u8>>;

    /// Whether slots stay here from now on, whoever asks for them.
    fn keep_slots(&self, keep: bool);

    /// Takes the versions that were recorded as installed, in order.
    fn take_installs(&self) -> Vec<Install>;

    /// The number of an attempt that begins now.
    fn next_id(&self) -> TxnId;

    /// Whether the outcome of an attempt of this shard depends on a vote that it has asked for in
    /// vain so far.
    fn is_doubtful(&self, number: u64) -> bool;

    /// Something that runs procedures on this shard.
    fn coordinator(&self) -> Box<dyn Coordinator>;

    /// The same shard, if its protocol runs transactions whose operations come one by one.
    fn interactive(&self) -> Option<&dyn InteractiveShard>;

    /// Has another shard load rows; `None` if its process was lost meanwhile.
    fn load_on(
        &self,
        shard: ShardId,
        table: TableId,
        rows: Arc<messages::Rows>,
    ) -> Step<'static, Option<LoadOutcome>>;

    /// Has another shard with data make those of these tables that it lacks, the first of which is
    /// at the position `from`. Returns the tables that it has from there on, once they outlive what
    /// a log outlives; `None` if its process was lost meanwhile.
    fn make_tables(
        &self,
        shard: ShardId,
        from: u16,
        made: Arc<Vec<TableSpec>>,
    ) -> Step<'static, Option<TableList>>;

    /// Asks the shard `from` to give slots to the shard `to`; `None` if its process was lost
    /// meanwhile.
    fn move_slots(&self, from: ShardId, slots: Vec<Slot>, to: ShardId) -> Step<'static, Option<MoveOutcome>>;

    /// Takes a snapshot and registers it here. Fails if an oracle has to be asked and does not
    /// answer.
    fn take_snapshot(&self, freshness: Freshness) -> Step<'_, Result<HeldSnapshot, Abort>>;

    /// Ends the registration of a snapshot.
    fn release_snapshot(&self, held: u32);

    /// Takes a timestamp, and reports it to an oracle as that of a transaction that wrote nothing;
    /// `None` if the oracle was lost.
    fn commit_nothing(&self) -> Step<'_, Option<Timestamp>>;

    /// Reads at a snapshot on another shard, up to [`Reads::most`] bytes.
    fn read_at(
        &self,
        txn: TxnId,
        shard: ShardId,
        at: &SnapshotHandle,
        reads: Reads,
    ) -> Step<'static, Result<SnapshotRead, Unknown>>;
}

/// A shard whose protocol runs transactions whose operations come one by one: see
/// [`Transaction`]. A handle goes back to a shard of the pair that it comes from.
pub trait InteractiveShard: AnyShard {
    /// See [`Transaction::begin`].
    fn begin(&self, attempt: Attempt, read_only: bool) -> Step<'_, Result<TransactionHandle, Abort>>;

    /// See [`Transaction::id`].
    fn id(&self, txn: &TransactionHandle) -> TxnId;

    /// See [`Transaction::follow`].
    fn follow(&self, txn: &mut TransactionHandle, seen: Timestamp);

    /// See [`Transaction::snapshot`].
    fn snapshot(&self, txn: &TransactionHandle) -> Option<Timestamp>;

    /// See [`Transaction::count`].
    fn count(&self, txn: &mut TransactionHandle);

    /// See [`Transaction::counted`].
    fn counted(&self, txn: &mut TransactionHandle) -> Option<AskedShards>;

    /// See [`Transaction::shown`].
    fn shown(&self, txn: &TransactionHandle) -> Option<Timestamp>;

    /// See [`Transaction::get`].
    fn get<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        key: &'a Key,
    ) -> Step<'a, Result<Option<Vec<u8>>, Abort>>;

    /// See [`Transaction::get_many`].
    fn get_many<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        keys: &'a [Key],
    ) -> Step<'a, Result<Vec<Option<Vec<u8>>>, Abort>>;

    /// See [`Transaction::scan`].
    fn scan<'a>(&'a self, txn: &'a mut TransactionHandle, scan: &'a Scan) -> Step<'a, Result<Rows, Abort>>;

    /// See [`Transaction::scan_batch`].
    fn scan_batch<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        scan: &'a Scan,
    ) -> Step<'a, Result<(Rows, Option<Scan>), Abort>>;

    /// See [`Transaction::put`].
    fn put<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        key: &'a Key,
        value: &'a [u8],
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::insert`].
    fn insert<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        table: TableId,
        key: &'a Key,
        values: &'a [&'a [u8]],
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::delete`].
    fn delete<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        table: TableId,
        key: &'a Key,
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::commit`].
    fn commit(&self, txn: TransactionHandle) -> Step<'_, Result<Committed, Abort>>;

    /// See [`Transaction::rollback`].
    fn rollback(&self, txn: TransactionHandle) -> Step<'_, ()>;
}

/// Runs procedures on a shard, one after the other.
pub trait Coordinator {
    /// The first step of an attempt; `None` if it needs others.
    fn first_step(&mut self, attempt: Attempt, procedure: &mut dyn AnyProcedure)
    -> Option<Result<(), Abort>>;

    /// The steps after a first one that was not enough.
    fn other_steps<'a>(
        &'a mut self,
        attempt: Attempt,
        procedure: &'a mut dyn AnyProcedure,
    ) -> Step<'a, Result<(), Abort>>;

    /// What the last attempt came to.
    fn committed(&mut self) -> &mut Committed;
}

impl dyn Coordinator {
    /// Runs one attempt of a procedure: see [`crate::execute::execute`].
    pub async fn execute(&mut self, attempt: Attempt, procedure: &mut dyn AnyProcedure) -> Result<(), Abort> {
        match self.first_step(attempt, procedure) {
            Some(result) => result,
            None => self.other_steps(attempt, procedure).await,
        }
    }
}

/// What a shard has counted so far, and what is open on it.
#[derive(Clone, Debug)]
pub struct ShardStatus {
    /// What it has counted.
    pub counters: Counters,
    /// Transactions whose outcome it still remembers or waits for.
    pub votes: u64,
    /// Votes that it has recorded, and those that it has refused.
    pub votes_given: [u64; 2],
    /// Transactions whose outcome it does not know.
    pub in_doubt: u64,
    /// Records that are locked.
    pub locks: u64,
    /// What its protocol remembers of transactions besides: nothing once all are over.
    pub remembered: u64,
    /// Versions and rows that nobody can see any more, and that are not collected yet.
    pub garbage: u64,
    /// Versions that only snapshots that are held can see.
    pub kept: u64,
    /// The oldest snapshot that is held, in this process or elsewhere.
    pub oldest_snapshot: Option<OldestSnapshot>,
    /// On the oracle: outcomes that it has published. Elsewhere 0.
    pub published: u64,
    /// Stamps whose outcome is not reported to the oracle, or not published yet.
    pub unpublished: u64,
    /// Its log, if it has one.
    pub log: Option<LogStatus>,
}

/// A transaction that a shard coordinates, while no operation of it runs.
pub struct TransactionHandle(Box<dyn Any + Send>);

impl fmt::Debug for TransactionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionHandle")
    }
}

impl TransactionHandle {
    fn of<S: Scheme>(&self) -> &Transaction<S> {
        self.0.downcast_ref().expect("a transaction goes back to where it comes from")
    }

    fn of_mut<S: Scheme>(&mut self) -> &mut Transaction<S> {
        self.0.downcast_mut().expect("a transaction goes back to where it comes from")
    }

    fn into<S: Scheme>(self) -> Transaction<S> {
        *self.0.downcast().expect("a transaction goes back to where it comes from")
    }
}

/// What a snapshot sees.
#[derive(Clone)]
pub struct SnapshotHandle(Arc<dyn Any + Send + Sync>);

/// A snapshot that is registered on a shard.
pub struct HeldSnapshot {
    /// What it sees.
    pub at: SnapshotHandle,
    /// Its timestamp, if the scheme has scalar ones.
    pub place: Option<Timestamp>,
    /// The clock of the shard that it is registered on.
    pub clock: Timestamp,
    /// The registration.
    pub held: u32,
    /// Whether an oracle had to be asked for it.
    pub waited: bool,
}

/// What came of reads at a snapshot.
pub enum SnapshotRead {
    /// The results, which are put together by whoever needs them, in another thread.
    Found(Box<dyn FnOnce() -> ReadResults + Send>),
    /// Nothing: some of the data is on another shard than the map says.
    Elsewhere,
    /// Nothing: the snapshot is older than what is kept.
    Gone,
    /// Nothing: the snapshot is too far ahead of the other shard's clock.
    ClockAhead,
    /// Nothing: some of it is locked by a transaction whose outcome depends on a shard that cannot
    /// be reached.
    InDoubt,
}

/// What a snapshot has read on one shard: a value per get, and rows per scan.
pub struct ReadResults {
    /// Values.
    pub gets: Vec<Option<Vec<u8>>>,
    /// Rows.
    pub scans: Vec<ScanRows>,
}

/// Rows of one scan on one shard.
pub struct ScanRows {
    /// In the order of the scan.
    pub rows: Rows,
    /// The last key that was visited, if more rows may follow it.
    pub last: Option<Key>,
}

impl<P: AnyPair> AnyShard for ShardEnv<P> {
    fn tables(&self) -> Arc<[TableSpec]> {
        self.local(|node| node.base().layout.tables.clone())
    }

    fn serves(&self) -> bool {
        self.local(|node| node.base().serves_transactions())
    }

    fn is_over(&self) -> bool {
        self.local(|node| node.base().is_over())
    }

    fn log_failure(&self) -> Option<String> {
        self.local(|node| node.base().log_failure())
    }

    fn record_writes(&self) -> Option<WriteRecord> {
        let now = self.clock();
        self.local(|node| node.base().record_writes(now))
    }

    fn status(&self) -> ShardStatus {
        self.local(|node| {
            let remembered = node.remembered() as u64;
            let base = node.base();
            ShardStatus {
                counters: base.counters,
                votes: base.votes() as u64,
                votes_given: base.votes_given(),
                in_doubt: base.in_doubt() as u64,
                locks: base.store.locks() as u64,
                remembered,
                garbage: base.store.garbage() as u64,
                kept: base.store.kept().map(|(_, kept)| kept.versions as u64).sum(),
                oldest_snapshot: base.oldest_snapshot(),
                published: base.scheme.published(),
                unpublished: base.scheme.unpublished(),
                log: base.log_status(),
            }
        })
    }

    fn placement(&self) -> Arc<Placement> {
        self.local(|node| node.base().placement().clone())
    }

    fn memory(&self) -> Vec<TableMemory> {
        self.local(|node| {
            let base = node.base();
            let tables = base.layout.tables.len() as u16;
            (0..tables).map(|table| base.store.memory(TableId(table))).collect()
        })
    }

    fn create_table(&self, spec: TableSpec) {
        self.local(|node| node.base().create_table(spec));
    }

    fn home(&self, table: TableId, key: &Key) -> ShardId {
        self.local(|node| node.base().home(table, key))
    }

    fn is_near(&self, shard: ShardId) -> bool {
        self.local(|node| node.base().is_near(shard))
    }

    fn set_inbox(&self, inbox: Box<dyn Inbox>) {
        self.local(|node| node.base().inbox = Some(inbox));
    }

    fn send_session(&self, shard: ShardId, message: Vec<u8>) {
        self.send(shard, Envelope::Common(Common::Session(message)));
    }

    fn load_row(&self, table: TableId, key: &Key, values: &[&[u8]]) {
        self.local(|node| node.base().load_row(table, key, values));
    }

    fn keep_copies(&self) {
        self.local(|node| node.base().keep_copies());
    }

    fn newest(&self, column: ColumnGroup, key: &Key) -> Option<Vec<u8>> {
        self.local(|node| {
            let store = &mut node.base().store;
            let row = store.find(column, key).row()?;
            store.newest(At { row, column }).map(<[u8]>::to_vec)
        })
    }

    fn keep_slots(&self, keep: bool) {
        self.local(|node| node.base().keep_slots(keep));
    }

    fn take_installs(&self) -> Vec<Install> {
        self.local(|node| node.base().installs.as_mut().map(std::mem::take).unwrap_or_default())
    }

    fn next_id(&self) -> TxnId {
        self.local(|node| node.base().next_id())
    }

    fn is_doubtful(&self, number: u64) -> bool {
        self.local(|node| node.base().votes.doubtful.contains(&number))
    }

    fn coordinator(&self) -> Box<dyn Coordinator> {
        Box::new(Coordinating::<P> { env: self.clone(), work: Footprint::default(), first: None })
    }

    fn interactive(&self) -> Option<&dyn InteractiveShard> {
        P::interactive(self)
    }

    fn load_on(
        &self,
        shard: ShardId,
        table: TableId,
        rows: Arc<messages::Rows>,
    ) -> Step<'static, Option<LoadOutcome>> {
        let loaded = self.call(shard, Envelope::Common(Common::Load { table, rows }));
        let env = self.clone();
        Box::pin(async move {
            let loaded = loaded.await;
            env.stable().await;
            match loaded.map(Answer::common) {
                Ok(CommonReply::LoadOver(outcome)) => Some(outcome),
                _ => None,
            }
        })
    }

    fn make_tables(
        &self,
        shard: ShardId,
        from: u16,
        made: Arc<Vec<TableSpec>>,
    ) -> Step<'static, Option<TableList>> {
        let told = self.call(shard, Envelope::Common(Common::Tables { from, made }));
        let env = self.clone();
        Box::pin(async move {
            let told = told.await;
            env.stable().await;
            match told.map(Answer::common) {
                Ok(CommonReply::Tables(list)) => Some(list).filter(|list| list.is_possible(from)),
                _ => None,
            }
        })
    }

    fn move_slots(&self, from: ShardId, slots: Vec<Slot>, to: ShardId) -> Step<'static, Option<MoveOutcome>> {
        let most = self.local(|node| node.base().furthest());
        let moved = self.call(from, Envelope::Common(Common::Move { slots, to, most, asked: false }));
        Box::pin(async move {
            match moved.await.map(Answer::common) {
                Ok(CommonReply::MoveOver(outcome)) => Some(outcome),
                _ => None,
            }
        })
    }

    fn take_snapshot(&self, freshness: Freshness) -> Step<'_, Result<HeldSnapshot, Abort>> {
        Box::pin(async move {
            let (at, held) = read_only::snapshot::<P, _>(self, freshness).await?;
            let waited = held.is_some();
            let held = held.unwrap_or_else(|| self.local(|node| node.base().hold(at.clone())));
            let (clock, place) = (self.clock(), P::Scheme::place(&at));
            // Normally the clock is behind the snapshot only by as little as timestamps run ahead
            // of clocks. If it is further behind, some clock is wrong: then the wait is bounded.
            let until = Timestamp(clock.0.saturating_add(MAX_OFFSET_NS));
            let behind = || place.is_some_and(|place| self.now() <= place) && self.clock() < until;
            while P::Scheme::WAITS && behind() {
                self.pause().await;
            }
            Ok(HeldSnapshot { at: SnapshotHandle(Arc::new(at)), place, clock, held, waited })
        })
    }

    fn release_snapshot(&self, held: u32) {
        self.local(|node| node.base().release(held));
    }

    fn commit_nothing(&self) -> Step<'_, Option<Timestamp>> {
        Box::pin(async move {
            let observed = <P::Scheme as Scheme>::Observed::default();
            let at_once = |node: &mut P| {
                let base = node.base();
                base.stamps_at_once().then(|| base.scheme.stamp(&observed))
            };
            let stamp = match self.local(at_once) {
                Some(stamp) => stamp,
                None => {
                    let asked = Envelope::Common(Common::Stamp { asked: false });
                    match self.call(self.shard(), asked).await.map(Answer::common) {
                        Ok(CommonReply::Stamp(stamp)) => stamp,
                        _ => return None,
                    }
                }
            };
            if <P::Scheme as Scheme>::REPORTS {
                self.local(|node| node.base().scheme.finished(stamp, Some(&observed)));
            }
            Some(stamp)
        })
    }

    fn read_at(
        &self,
        txn: TxnId,
        shard: ShardId,
        at: &SnapshotHandle,
        reads: Reads,
    ) -> Step<'static, Result<SnapshotRead, Unknown>> {
        let at = at.0.downcast_ref::<<P::Scheme as Scheme>::Snapshot>();
        let at = at.expect("a snapshot goes back to where it comes from").clone();
        let fetched = self.call(shard, Envelope::Common(Common::read_at(txn, at, reads)));
        let env = self.clone();
        Box::pin(async move {
            let fetched = fetched.await?.common();
            env.stable().await;
            Ok(match fetched {
                CommonReply::Fetched(Some(fetched)) => SnapshotRead::Found(Box::new(move || {
                    let value = |got| fetched.value(got).map(<[u8]>::to_vec);
                    let scans = fetched.scans.iter().map(|scan| ScanRows {
                        rows: (scan.rows.iter())
                            .filter_map(|(key, got)| Some((key.clone(), value(got)?)))
                            .collect(),
                        last: scan.rows.last().filter(|_| scan.more).map(|(key, _)| key.clone()),
                    });
                    ReadResults { gets: fetched.gets.iter().map(value).collect(), scans: scans.collect() }
                })),
                CommonReply::Fetched(None) => SnapshotRead::Gone,
                CommonReply::ClockAhead => SnapshotRead::ClockAhead,
                CommonReply::Elsewhere => SnapshotRead::Elsewhere,
                CommonReply::OutOfReach => SnapshotRead::InDoubt,
                _ => unreachable!("a shard answers reads with what was read"),
            })
        })
    }
}

impl<P: AnyPair + CompiledOperations> InteractiveShard for ShardEnv<P> {
    fn begin(&self, attempt: Attempt, read_only: bool) -> Step<'_, Result<TransactionHandle, Abort>> {
        let begun = P::begin_transaction(self, attempt, read_only);
        Box::pin(async move { Ok(TransactionHandle(Box::new(begun.await?))) })
    }

    fn id(&self, txn: &TransactionHandle) -> TxnId {
        txn.of::<P::Scheme>().id()
    }

    fn follow(&self, txn: &mut TransactionHandle, seen: Timestamp) {
        txn.of_mut::<P::Scheme>().follow(self, seen);
    }

    fn snapshot(&self, txn: &TransactionHandle) -> Option<Timestamp> {
        txn.of::<P::Scheme>().snapshot()
    }

    fn count(&self, txn: &mut TransactionHandle) {
        txn.of_mut::<P::Scheme>().count();
    }

    fn counted(&self, txn: &mut TransactionHandle) -> Option<AskedShards> {
        txn.of_mut::<P::Scheme>().counted()
    }

    fn shown(&self, txn: &TransactionHandle) -> Option<Timestamp> {
        txn.of::<P::Scheme>().shown()
    }

    fn get<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        key: &'a Key,
    ) -> Step<'a, Result<Option<Vec<u8>>, Abort>> {
        P::get_record(txn.of_mut(), self, column, key)
    }

    fn get_many<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        keys: &'a [Key],
    ) -> Step<'a, Result<Vec<Option<Vec<u8>>>, Abort>> {
        P::get_records(txn.of_mut(), self, column, keys)
    }

    fn scan<'a>(&'a self, txn: &'a mut TransactionHandle, scan: &'a Scan) -> Step<'a, Result<Rows, Abort>> {
        P::scan_range(txn.of_mut(), self, scan)
    }

    fn scan_batch<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        scan: &'a Scan,
    ) -> Step<'a, Result<(Rows, Option<Scan>), Abort>> {
        P::scan_rows(txn.of_mut(), self, scan)
    }

    fn put<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        column: ColumnGroup,
        key: &'a Key,
        value: &'a [u8],
    ) -> Step<'a, Result<(), Abort>> {
        P::put_record(txn.of_mut(), self, column, key, value)
    }

    fn insert<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        table: TableId,
        key: &'a Key,
        values: &'a [&'a [u8]],
    ) -> Step<'a, Result<(), Abort>> {
        P::insert_row(txn.of_mut(), self, table, key, values)
    }

    fn delete<'a>(
        &'a self,
        txn: &'a mut TransactionHandle,
        table: TableId,
        key: &'a Key,
    ) -> Step<'a, Result<(), Abort>> {
        P::delete_row(txn.of_mut(), self, table, key)
    }

    fn commit(&self, txn: TransactionHandle) -> Step<'_, Result<Committed, Abort>> {
        P::commit_transaction(txn.into(), self)
    }

    fn rollback(&self, txn: TransactionHandle) -> Step<'_, ()> {
        P::roll_back(txn.into(), self)
    }
}

/// The [`Coordinator`] of a pair.
struct Coordinating<P: CompiledSteps> {
    env: ShardEnv<P>,
    work: Footprint<P::Scheme>,
    /// What the first step has come to, if it was not enough.
    first: Option<First<P::Scheme>>,
}

impl<P: CompiledSteps> Coordinator for Coordinating<P> {
    fn first_step(
        &mut self,
        attempt: Attempt,
        procedure: &mut dyn AnyProcedure,
    ) -> Option<Result<(), Abort>> {
        let procedure = <P::Scheme as Executes>::executable(procedure);
        match P::first_step(&self.env, attempt, procedure, &mut self.work) {
            First::Over(result) => Some(result),
            first => {
                self.first = Some(first);
                None
            }
        }
    }

    fn other_steps<'a>(
        &'a mut self,
        attempt: Attempt,
        procedure: &'a mut dyn AnyProcedure,
    ) -> Step<'a, Result<(), Abort>> {
        let first = self.first.take().expect("a first step comes before others");
        let procedure = <P::Scheme as Executes>::executable(procedure);
        P::other_steps(&self.env, first, attempt, procedure, &mut self.work)
    }

    fn committed(&mut self) -> &mut Committed {
        &mut self.work.committed
    }
}
