//! Interactive transactions: operations one at a time, with client code in between.
//!
//! Under OCC with a snapshot scheme a transaction reads at its begin snapshot, with its own writes
//! on top, and validates at commit that the versions it read are still the newest: it holds no lock
//! while the client thinks, all its reads are consistent, and a transaction without writes never
//! aborts. Without snapshots (RC, none) it reads the newest versions, which are validated at
//! commit. Under 2PL it locks as it goes.
//!
//! The state moves freely between threads; every operation runs as a task on the coordinating
//! shard.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::pin::Pin;

use plimsoll_runtime::{Env, Participant, ShardEnv};
use plimsoll_store::Holder;
use plimsoll_types::{Abort, ColumnGroup, Key, RangePlace, ShardId, TableId, Timestamp, TxnId};

use crate::attempt::{Attempt, Committed, Stop};
use crate::base::Base;
use crate::local::{MergedRows, scan_read};
use crate::parts::FetchedBatches;
use crate::procedure::{Access, Reads, Scan};
use crate::protocol::{ActiveTransaction, Interactive};
use crate::read_only;
use crate::remote::Remote;
use crate::stamps::answerable;
use crate::timestamp::{ReadOnly, Scheme};
use crate::trace::What;
use crate::work::Footprint;

/// Rows that a scan asks a shard for in one step, at most: other work on the shard waits for it for
/// about 20 µs.
pub const CHUNK_ROWS: usize = 256;
/// Bytes of values after which a shard stops reading in one step. With one more value of the
/// greatest length they still fit into a message.
pub const CHUNK_BYTES: u32 = 1 << 20;

/// An interactive transaction.
#[derive(Debug)]
pub struct Transaction<S: Scheme> {
    open: ActiveTransaction<S>,
    held: Option<u32>,
    read_only: bool,
    /// Why it has aborted; every later operation fails with the same reason.
    over: Option<Abort>,
    /// What its reads have asked of shards, while that is counted.
    asked: Option<AskedShards>,
}

/// What reads of a transaction have asked of shards. What a shard is asked a second time, since its
/// answer was lost or the rows have moved, counts once.
#[derive(Clone, Debug, Default)]
pub struct AskedShards {
    /// The shards, the transaction's own among them if it was asked.
    pub shards: BTreeSet<ShardId>,
    /// The requests to other shards than the transaction's own.
    pub requests: u64,
}

/// The rows of a scan, in its order.
pub type Rows = Vec<(Key, Vec<u8>)>;

/// The result of an operation, once it is done.
pub type Step<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The operations, compiled for one pair of protocol and scheme: [`crate::pairs`].
pub trait CompiledOperations: Interactive + Participant {
    /// See [`Transaction::begin`].
    fn begin_transaction(
        env: &ShardEnv<Self>,
        attempt: Attempt,
        read_only: bool,
    ) -> Step<'_, Result<Transaction<Self::Scheme>, Abort>>;

    /// See [`Transaction::get`].
    fn get_record<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        column: ColumnGroup,
        key: &'a Key,
    ) -> Step<'a, Result<Option<Vec<u8>>, Abort>>;

    /// See [`Transaction::get_many`].
    fn get_records<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        column: ColumnGroup,
        keys: &'a [Key],
    ) -> Step<'a, Result<Vec<Option<Vec<u8>>>, Abort>>;

    /// See [`Transaction::scan`].
    fn scan_range<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        scan: &'a Scan,
    ) -> Step<'a, Result<Rows, Abort>>;

    /// See [`Transaction::scan_batch`].
    fn scan_rows<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        scan: &'a Scan,
    ) -> Step<'a, Result<(Rows, Option<Scan>), Abort>>;

    /// See [`Transaction::put`].
    fn put_record<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        column: ColumnGroup,
        key: &'a Key,
        value: &'a [u8],
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::insert`].
    fn insert_row<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        table: TableId,
        key: &'a Key,
        values: &'a [&'a [u8]],
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::delete`].
    fn delete_row<'a>(
        txn: &'a mut Transaction<Self::Scheme>,
        env: &'a ShardEnv<Self>,
        table: TableId,
        key: &'a Key,
    ) -> Step<'a, Result<(), Abort>>;

    /// See [`Transaction::commit`].
    fn commit_transaction(
        txn: Transaction<Self::Scheme>,
        env: &ShardEnv<Self>,
    ) -> Step<'_, Result<Committed, Abort>>;

    /// See [`Transaction::rollback`].
    fn roll_back(txn: Transaction<Self::Scheme>, env: &ShardEnv<Self>) -> Step<'_, ()>;
}

/// The operations. Each is compiled once for its pair, not again in each caller.
impl<S: Scheme> Transaction<S> {
    /// Begins a transaction on the shard of `env`. A read-only one reads at a snapshot under every
    /// protocol, if the scheme has snapshots.
    pub fn begin<P: CompiledOperations<Scheme = S>>(
        env: &ShardEnv<P>,
        attempt: Attempt,
        read_only: bool,
    ) -> Step<'_, Result<Transaction<S>, Abort>> {
        P::begin_transaction(env, attempt, read_only)
    }

    /// Reads a record.
    pub fn get<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        column: ColumnGroup,
        key: &'a Key,
    ) -> Step<'a, Result<Option<Vec<u8>>, Abort>> {
        P::get_record(self, env, column, key)
    }

    /// Reads many records of a column group, in the order of the keys. All shards are asked at the
    /// same time, each for up to [`CHUNK_ROWS`] records or [`CHUNK_BYTES`] of values in a round.
    pub fn get_many<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        column: ColumnGroup,
        keys: &'a [Key],
    ) -> Step<'a, Result<Vec<Option<Vec<u8>>>, Abort>> {
        P::get_records(self, env, column, keys)
    }

    /// Reads a range of an ordered table in the scan's order, with the transaction's own writes on
    /// top. The range may span shards.
    ///
    /// Under a scheme with snapshots (DST, GTS, VTS) the rows come from the begin snapshot if the
    /// transaction is read-only, or runs under OCC or client-driven two-phase commit. Otherwise
    /// they are the newest versions at the time when each part of the range is read: 2PL locks
    /// them, the other protocols validate them at commit. A read-only transaction under RC also
    /// reads the newest versions, but without validation: its rows need not be of one moment.
    pub fn scan<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        scan: &'a Scan,
    ) -> Step<'a, Result<Rows, Abort>> {
        P::scan_range(self, env, scan)
    }

    /// The same for the first rows of the range only, at least one unless it is empty. Returns the
    /// rest of the range as well, `None` at its end. Of the rows nothing is kept here but what is to
    /// be validated, so a range of any length can be read in little memory; a record of it that is
    /// read once more is fetched once more.
    pub fn scan_batch<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        scan: &'a Scan,
    ) -> Step<'a, Result<(Rows, Option<Scan>), Abort>> {
        P::scan_rows(self, env, scan)
    }

    /// Writes a record.
    pub fn put<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        column: ColumnGroup,
        key: &'a Key,
        value: &'a [u8],
    ) -> Step<'a, Result<(), Abort>> {
        P::put_record(self, env, column, key, value)
    }

    /// Inserts a row. [`Abort::User`] ends the transaction if the row exists.
    pub fn insert<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        table: TableId,
        key: &'a Key,
        values: &'a [&'a [u8]],
    ) -> Step<'a, Result<(), Abort>> {
        P::insert_row(self, env, table, key, values)
    }

    /// Deletes a row.
    pub fn delete<'a, P: CompiledOperations<Scheme = S>>(
        &'a mut self,
        env: &'a ShardEnv<P>,
        table: TableId,
        key: &'a Key,
    ) -> Step<'a, Result<(), Abort>> {
        P::delete_row(self, env, table, key)
    }

    /// Commits.
    pub fn commit<'a, P: CompiledOperations<Scheme = S>>(
        self,
        env: &'a ShardEnv<P>,
    ) -> Step<'a, Result<Committed, Abort>> {
        P::commit_transaction(self, env)
    }

    /// Aborts the transaction.
    pub fn rollback<'a, P: CompiledOperations<Scheme = S>>(self, env: &'a ShardEnv<P>) -> Step<'a, ()> {
        P::roll_back(self, env)
    }
}

impl<S: Scheme> Transaction<S> {
    pub(crate) async fn begin_on<P: Interactive<Scheme = S>, E: Env<P>>(
        env: &E,
        attempt: Attempt,
        read_only: bool,
    ) -> Result<Transaction<S>, Abort> {
        let mut open = env.local(|node| {
            let base = node.base();
            let mut work = Footprint::default();
            base.start(&mut work, attempt);
            ActiveTransaction::new(Holder { age: attempt.age, txn: base.begin() }, work)
        });
        let mut held = None;
        if S::READ_ONLY == ReadOnly::Snapshot && (read_only || S::SERIALIZABLE && !P::LOCKS) {
            let (snapshot, already) = match read_only::snapshot(env, attempt.freshness).await {
                Ok(snapshot) => snapshot,
                Err(abort) => {
                    open.end(env);
                    return Err(abort);
                }
            };
            held = already.or_else(|| Some(env.local(|node| node.base().hold(snapshot.clone()))));
            env.local(|node| {
                let at = What::Snapshot(S::place(&snapshot), attempt.freshness);
                node.base().step(open.holder.txn, |_| at);
            });
            open.snapshot = Some(snapshot);
        }
        Ok(Transaction { open, held, read_only, over: None, asked: None })
    }

    /// This attempt.
    pub fn id(&self) -> TxnId {
        self.open.holder.txn
    }

    /// The transaction's session has read up to `seen` since the transaction began.
    pub fn follow<P: Interactive<Scheme = S>, E: Env<P>>(&mut self, env: &E, seen: Timestamp) {
        env.local(|node| node.base().scheme.follow(&mut self.open.work.observed, seen));
    }

    /// The timestamp up to which a client has read once it was given this transaction's results so
    /// far, if the scheme knows.
    pub fn shown(&self) -> Option<Timestamp> {
        match &self.open.snapshot {
            Some(snapshot) => S::place(snapshot),
            None => S::shown(&self.open.work.observed),
        }
    }

    /// The timestamp of the snapshot that it reads, if it reads one and the scheme has numbers.
    pub fn snapshot(&self) -> Option<Timestamp> {
        self.open.snapshot.as_ref().and_then(S::place)
    }

    /// Counts from now on what its reads ask of shards.
    pub fn count(&mut self) {
        self.asked = Some(AskedShards::default());
    }

    /// What its reads have asked of shards since that was to be counted, if it was.
    pub fn counted(&mut self) -> Option<AskedShards> {
        self.asked.take()
    }

    async fn done<P: Interactive<Scheme = S>, E: Env<P>, T>(
        &mut self,
        env: &E,
        result: Result<T, Abort>,
    ) -> Result<T, Abort> {
        match result {
            Ok(value) => Ok(value),
            Err(abort) => {
                let abort = P::abort(env, &mut self.open, abort).await;
                self.close(env, abort);
                env.stable().await;
                Err(abort)
            }
        }
    }

    fn close<P: Interactive<Scheme = S>, E: Env<P>>(&mut self, env: &E, why: Abort) {
        self.over = Some(why);
        self.open.end(env);
        if let Some(held) = self.held.take() {
            env.local(|node| node.base().release(held));
        }
    }

    async fn read<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        batches: impl Fn(&Base<S>) -> Vec<(ShardId, Reads)>,
    ) -> Result<(), Abort> {
        if let Some(abort) = self.over {
            return Err(abort);
        }
        let now = env.local(|node| batches(node.base()));
        if let Some(asked) = &mut self.asked {
            for (shard, _) in &now {
                asked.shards.insert(*shard);
                asked.requests += u64::from(*shard != env.shard());
            }
        }
        let known = self.open.meet(env, now.iter().map(|(shard, _)| *shard));
        let result = match &self.open.snapshot {
            _ if !known => Err(Abort::Unknown),
            Some(snapshot) => {
                let parts = read_only::read_parts(env, self.open.holder.txn, snapshot, &batches).await;
                parts.and_then(|(parts, lives)| {
                    env.local(|node| self.open.met_in(&node.base().votes, lives));
                    for part in parts {
                        // What only reads takes no stamp, and is after nothing.
                        let reach = S::reach(&part.fetched.observed);
                        if !self.read_only {
                            env.local(|node| node.base().believe(part.shard, reach))?;
                        }
                        S::join(&mut self.open.work.observed, &part.fetched.observed);
                        self.open.parts.push(part);
                    }
                    Ok(())
                })
            }
            None => P::read(env, &mut self.open, now).await,
        };
        if self.read_only {
            // What is read is shown. What others read is shown by their commits.
            env.stable().await;
        }
        self.done(env, result).await
    }

    pub(crate) async fn get_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        column: ColumnGroup,
        key: &Key,
    ) -> Result<Option<Vec<u8>>, Abort> {
        let at_hand = env.local(|node| node.base().at_hand(column.table));
        if !self.knows(column, key) && !at_hand {
            let mut reads = Reads::default();
            reads.get(column, key.clone());
            self.read(env, |base| vec![(base.home(column.table, key), reads.clone())]).await?;
        }
        if let Some(abort) = self.over {
            return Err(abort);
        }
        env.local(|node| {
            let mut access = Remote::new(node.base(), &mut self.open.parts, &mut self.open.work);
            Ok(access.get(column, key)?.map(<[u8]>::to_vec))
        })
    }

    /// Whether a record has been written or read already.
    fn knows(&mut self, column: ColumnGroup, key: &Key) -> bool {
        self.open.work.writes.find(column, key).is_some() || self.open.parts.find(column, key).is_some()
    }

    pub(crate) async fn get_many_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        column: ColumnGroup,
        keys: &[Key],
    ) -> Result<Vec<Option<Vec<u8>>>, Abort> {
        let mut left: Vec<&Key> = match env.local(|node| node.base().at_hand(column.table)) {
            true => Vec::new(),
            false => keys.iter().filter(|key| !self.knows(column, key)).collect(),
        };
        while !left.is_empty() {
            let first = self.open.parts.len();
            let batches = |base: &Base<S>| {
                let mut batches: BTreeMap<ShardId, Reads> = BTreeMap::new();
                for key in &left {
                    let reads = batches.entry(base.home(column.table, key)).or_default();
                    if reads.gets.len() < CHUNK_ROWS {
                        reads.most = Some(CHUNK_BYTES);
                        reads.get(column, (*key).clone());
                    }
                }
                batches.into_iter().collect()
            };
            self.read(env, batches).await?;
            self.open.parts.forget_unanswered(first);
            left.retain(|key| self.open.parts.find(column, key).is_none());
            if !left.is_empty() {
                env.pause().await;
            }
        }
        if let Some(abort) = self.over {
            return Err(abort);
        }
        env.local(|node| {
            let mut access = Remote::new(node.base(), &mut self.open.parts, &mut self.open.work);
            keys.iter().map(|key| Ok(access.get(column, key)?.map(<[u8]>::to_vec))).collect()
        })
    }

    pub(crate) async fn scan_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        scan: &Scan,
    ) -> Result<Vec<(Key, Vec<u8>)>, Abort> {
        let mut rows = Vec::new();
        let mut left = scan.clone();
        while left.limit > 0 {
            let end = self.scan_some(env, &left, &mut rows).await?;
            left.limit = scan.limit - rows.len();
            let Some(end) = end else { break };
            left.go_on_behind(&end);
            env.pause().await;
        }
        Ok(rows)
    }

    pub(crate) async fn scan_batch_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        scan: &Scan,
    ) -> Result<(Rows, Option<Scan>), Abort> {
        let (mut rows, mut left) = (Vec::new(), scan.clone());
        while left.limit > 0 {
            let first = self.open.parts.len();
            let end = self.scan_some(env, &left, &mut rows).await?;
            self.open.parts.forget_rows(first);
            left.limit = scan.limit - rows.len();
            let Some(end) = end else { return Ok((rows, None)) };
            left.go_on_behind(&end);
            if !rows.is_empty() {
                break;
            }
            // The transaction has deleted all of them.
            env.pause().await;
        }
        let more = left.limit > 0;
        Ok((rows, more.then_some(left)))
    }

    /// Reads the next rows of a range. Returns the key behind which nothing was read; `None` at the
    /// end of the range.
    async fn scan_some<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        scan: &Scan,
        rows: &mut Vec<(Key, Vec<u8>)>,
    ) -> Result<Option<Key>, Abort> {
        // The transaction's own deletes may hide rows within the limit.
        let own = self.open.work.writes.in_range(scan.column, &scan.low, scan.high.as_ref(), scan.order);
        let limit = scan.limit.saturating_add(own.take(CHUNK_ROWS).count()).min(CHUNK_ROWS);
        let asked = Scan { limit, ..scan.clone() };
        let first = self.open.parts.len();
        let batches = |base: &Base<S>| {
            let shards = shards_of(base, &asked).into_iter();
            let batch = |shard| {
                let mut reads = Reads { most: Some(CHUNK_BYTES), ..Reads::default() };
                reads.scan(asked.clone());
                base.seal(shard, &mut reads);
                (shard, reads)
            };
            shards.map(batch).collect()
        };
        self.read(env, batches).await?;
        let parts = self.open.parts.since(first);
        // If a shard has more rows, nothing is known behind the last row that it sent.
        let full = parts.iter().map(|part| &part.fetched.scans[0]).filter(|scanned| scanned.more);
        let ends = full.filter_map(|scanned| scanned.rows.last()).map(|(key, _)| key);
        let end = ends.min_by(|a, b| scan.order.compare(a, b)).cloned();
        let (low, high) = scan.read_up_to(end.as_ref());
        let inside = |key: &Key| low <= *key && high.as_ref().is_none_or(|high| key < high);
        let mut found: Vec<_> = (parts.iter())
            .flat_map(|part| part.fetched.scans[0].rows.iter().map(move |(key, got)| (key, part, got)))
            .filter(|(key, ..)| inside(key))
            .collect();
        found.sort_unstable_by(|(a, ..), (b, ..)| scan.order.compare(a, b));
        if let Some(recorded) = &mut self.open.work.recorded {
            let seen =
                found.iter().filter_map(|(key, _, got)| Some(((*key).clone(), got.version?))).collect();
            let read = Scan { low: low.clone(), high: high.clone(), ..scan.clone() };
            recorded.scans.push(scan_read(&read, seen, false));
        }
        let writes = &self.open.work.writes;
        let own = writes.in_range(scan.column, &low, high.as_ref(), scan.order).peekable();
        let visit = |key: &Key, value: &[u8]| {
            rows.push((key.clone(), value.to_vec()));
            ControlFlow::Continue(())
        };
        let stored = found.iter().filter_map(|(key, part, got)| Some((*key, part.fetched.value(got)?)));
        MergedRows { own, order: scan.order, writes, left: scan.limit, visit }.show_all(stored);
        Ok(end)
    }

    pub(crate) async fn put_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        column: ColumnGroup,
        key: &Key,
        value: &[u8],
    ) -> Result<(), Abort> {
        self.write(env, |access| access.put(column, key, value)).await
    }

    pub(crate) async fn insert_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        table: TableId,
        key: &Key,
        values: &[&[u8]],
    ) -> Result<(), Abort> {
        if self.get_on(env, table.row(), key).await?.is_some() {
            return self.done(env, Err(Abort::User)).await;
        }
        self.write(env, |access| access.insert(table, key, values)).await
    }

    pub(crate) async fn delete_on<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        table: TableId,
        key: &Key,
    ) -> Result<(), Abort> {
        self.write(env, |access| access.delete(table, key)).await
    }

    async fn write<P: Interactive<Scheme = S>, E: Env<P>>(
        &mut self,
        env: &E,
        write: impl FnOnce(&mut Remote<'_, S>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        if let Some(abort) = self.over {
            return Err(abort);
        }
        assert!(!self.read_only, "a read-only transaction does not write");
        let result =
            env.local(|node| write(&mut Remote::new(node.base(), &mut self.open.parts, &mut self.open.work)));
        let result = match result {
            Ok(()) => P::wrote(env, &mut self.open).await,
            Err(abort) => Err(abort),
        };
        self.done(env, result).await
    }

    pub(crate) async fn commit_on<P: Interactive<Scheme = S>, E: Env<P>>(
        mut self,
        env: &E,
    ) -> Result<Committed, Abort> {
        if let Some(abort) = self.over {
            return Err(abort);
        }
        let result = if self.open.snapshot.is_some() && self.open.work.writes.is_empty() {
            let (stamp, shards) = (self.shown(), self.open.shards());
            self.open.work.commit(self.open.holder.txn, stamp, shards);
            Ok(())
        } else {
            match P::commit(env, &mut self.open, None).await {
                Ok(()) => Ok(()),
                Err(Stop::Abort(abort)) => Err(abort),
                Err(Stop::Elsewhere | Stop::Conflict) => unreachable!("nothing was left to execute"),
            }
        };
        self.close(env, Abort::User);
        if let Err(abort) = result {
            env.stable().await;
            return Err(abort);
        }
        answerable(env, self.open.work.committed.stamp.unwrap_or_default()).await;
        Ok(self.open.work.committed)
    }

    pub(crate) async fn rollback_on<P: Interactive<Scheme = S>, E: Env<P>>(mut self, env: &E) {
        if self.over.is_none() {
            self.open.parts = FetchedBatches::default();
            P::abort(env, &mut self.open, Abort::User).await;
            self.close(env, Abort::User);
        }
    }
}

/// The shards that may hold rows of a range: one, if the range lies within one partition key.
fn shards_of<S: Scheme>(base: &Base<S>, scan: &Scan) -> Vec<ShardId> {
    let table = scan.column.table;
    match base.partitioning(table).range_place(&scan.low, scan.high.as_ref()) {
        RangePlace::Slot(slot) => vec![base.owner(slot)],
        RangePlace::AnySlot => base.shards(),
        RangePlace::Everywhere => vec![base.home(table, &scan.low)],
    }
}
