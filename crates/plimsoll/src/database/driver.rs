//! The engine of a database, whatever its protocol and its scheme are.
//!
//! [`Database`](super::Database) is one type for all pairs of protocol and scheme. It talks to its
//! engine through this trait, which every engine implements. That is one virtual call per
//! operation, which is nothing beside the hop to a shard that each operation makes. Values that
//! only the engine understands, such as a transaction or a snapshot, pass through the database as
//! `dyn Any`.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError};
use std::time::{Duration, Instant};

use plimsoll_engine::Engine;
use plimsoll_runtime::Env;
use plimsoll_runtime::real::RealEnv;
use plimsoll_store::TableMemory;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::envelope::Envelope;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::messages::{Common, CommonReply, MoveOutcome};
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::procedure::{Reads, Scan};
use plimsoll_txn::read_only;
use plimsoll_txn::timestamp::{Freshness, MAX_OFFSET_NS, Scheme};
use plimsoll_types::{Abort, ColumnGroup, Key, Placement, ShardId, Slot, TableId, TableSpec, Timestamp};

use super::Row;
use crate::error::Error;

/// Pause before a shard that cannot be reached is asked again, in nanoseconds.
const RETRY_NS: u64 = 5_000_000;

/// Interval at which a thread that waits for an answer checks whether this client was refused, and
/// how long it then still waits.
const LOOK: Duration = Duration::from_millis(100);

/// A transaction that a shard coordinates, while no operation of it runs.
pub(super) type Begun = Box<dyn Any + Send>;

/// What a snapshot sees: the scheme's own type.
pub(super) type Frozen = Arc<dyn Any + Send + Sync>;

/// Waits for the results of reads that were sent to a shard; `None` if some of the data is on
/// another shard than the map says.
pub(super) type Answer<'a> = Box<dyn FnOnce() -> Result<Option<Found>, Error> + 'a>;

/// What a snapshot has read on one shard, up to [`Reads::most`] bytes: a value per get, and rows
/// per scan.
pub(super) struct Found {
    pub(super) gets: Vec<Option<Vec<u8>>>,
    pub(super) scans: Vec<Scanned>,
}

/// Rows of one scan on one shard.
pub(super) struct Scanned {
    pub(super) rows: Vec<Row>,
    /// The last key that was visited, if more rows may follow it.
    pub(super) last: Option<Key>,
}

/// A write that was not sent to a shard yet.
pub(super) enum Write {
    Put(ColumnGroup, Key, Vec<u8>),
    Delete(TableId, Key),
}

/// An operation of a transaction.
pub(super) enum Operation {
    Get(ColumnGroup, Key),
    /// Whether any of these column groups of a row exists.
    Exists(Vec<ColumnGroup>, Key),
    Scan(Scan),
}

/// The result of an [`Operation`].
pub(super) enum Outcome {
    Value(Option<Vec<u8>>),
    Exists(bool),
    Rows(Vec<Row>),
}

/// A transaction on its way to the shard that coordinates it, with the writes since its last
/// operation.
pub(super) struct Going {
    pub(super) shard: ShardId,
    pub(super) attempt: Attempt,
    pub(super) begun: Option<Begun>,
    pub(super) writes: Vec<Write>,
    /// How long the client waits for an answer; `None`: for ever.
    pub(super) patience: Option<Duration>,
}

/// A transaction after an operation.
pub(super) struct Went {
    pub(super) begun: Begun,
    pub(super) outcome: Outcome,
    /// The timestamp up to which the client has seen the database with this result; `None` if the
    /// scheme cannot tell.
    pub(super) shown: Option<Timestamp>,
}

/// A new snapshot.
pub(super) struct Taken {
    pub(super) at: Frozen,
    pub(super) place: Option<Timestamp>,
    /// The clock of the shard that the snapshot is registered on.
    pub(super) clock: Timestamp,
    pub(super) held: u32,
}

/// An engine, as a database sees it.
pub(super) trait Driver: Send + Sync {
    /// The shards of this process.
    fn own(&self) -> Range<usize>;
    /// Tells this engine from those of other lives.
    fn life(&self) -> u64;
    /// Whether a node has refused this client: then no node answers it any more.
    fn is_refused(&self) -> bool;
    /// See [`plimsoll_runtime::real::Runtime::met`].
    fn met(&self) -> Vec<u64>;
    /// Bytes queued for nodes that do not keep up.
    fn bytes_waiting(&self) -> u64;
    /// The clock of the shards.
    fn clock(&self) -> Timestamp;
    /// See [`Engine::create_table`].
    fn create_table(&self, spec: TableSpec) -> TableId;
    /// See [`Engine::load`].
    fn load(&self, table: TableId, rows: Vec<(Key, Vec<Vec<u8>>)>);
    /// See [`Engine::memory`].
    fn memory(&self) -> Vec<TableMemory>;
    /// The sum of [`plimsoll_txn::base::Counters::early_answers`] over all coordinators here.
    fn early_answers(&self) -> u64;

    /// Begins the transaction unless it has begun, applies its waiting writes, and does the
    /// operation. Gives up if there is no answer in time.
    fn step(&self, going: Going, operation: Operation) -> Result<Went, Abort>;
    /// Commits. `Err(None)`: there was no answer in time.
    fn commit(&self, going: Going) -> Result<Option<Timestamp>, Option<Abort>>;
    /// Rolls a transaction back.
    fn rollback(&self, shard: ShardId, begun: Begun);

    /// Takes a snapshot and registers it. Fails if an oracle has to be asked and does not answer.
    fn snapshot(&self, shard: ShardId, freshness: Freshness) -> Result<Taken, Abort>;
    /// Has `coordinator` read at a snapshot on another shard, again and again while that cannot be
    /// reached: a repeated read has the same result. Gives up if there is no answer in time.
    fn read_at(
        &self,
        coordinator: ShardId,
        shard: ShardId,
        at: &Frozen,
        reads: Reads,
        patience: Option<Duration>,
    ) -> Answer<'_>;
    /// Ends the registration of a snapshot.
    fn release(&self, shard: ShardId, held: u32);

    /// The placement map as a shard of this process knows it.
    fn placement(&self, shard: ShardId) -> Arc<Placement>;
    /// Has `coordinator` ask the shard `from` to give slots to the shard `to`. `None`: there was no
    /// answer in time.
    fn move_slots(
        &self,
        coordinator: ShardId,
        from: ShardId,
        slots: Vec<Slot>,
        to: ShardId,
        patience: Duration,
    ) -> Option<MoveOutcome>;
}

impl<P: InteractivePair> Driver for Engine<P> {
    fn own(&self) -> Range<usize> {
        Engine::own(self)
    }

    fn life(&self) -> u64 {
        Engine::life(self)
    }

    fn is_refused(&self) -> bool {
        self.runtime().refused().is_some()
    }

    fn met(&self) -> Vec<u64> {
        self.runtime().met()
    }

    fn bytes_waiting(&self) -> u64 {
        self.runtime().bytes_waiting()
    }

    fn clock(&self) -> Timestamp {
        self.runtime().clock().now()
    }

    fn create_table(&self, spec: TableSpec) -> TableId {
        Engine::create_table(self, spec)
    }

    fn load(&self, table: TableId, rows: Vec<(Key, Vec<Vec<u8>>)>) {
        Engine::load(self, table, rows);
    }

    fn memory(&self) -> Vec<TableMemory> {
        Engine::memory(self)
    }

    fn early_answers(&self) -> u64 {
        self.coordinators().map(|shard| self.counters(shard).0.early_answers).sum()
    }

    fn step(&self, going: Going, operation: Operation) -> Result<Went, Abort> {
        let Going { shard, attempt, begun, writes, patience } = going;
        let begun = begun.map(transaction::<P>);
        let (done, result) = mpsc::sync_channel(1);
        self.runtime().spawn_on(shard, move |env| async move {
            let went = async {
                let mut txn = resume(&env, begun, attempt, writes).await?;
                let outcome = match operation {
                    Operation::Get(column, key) => Outcome::Value(txn.get(&env, column, &key).await?),
                    Operation::Exists(columns, key) => {
                        Outcome::Exists(exists(&env, &mut txn, columns, &key).await?)
                    }
                    Operation::Scan(scan) => Outcome::Rows(txn.scan(&env, &scan).await?),
                };
                Ok((txn, outcome))
            };
            let went = went.await.map(|(txn, outcome)| Went { shown: txn.shown(), begun: txn, outcome });
            if let Err(SendError(Ok(Went { begun, .. }))) = done.send(went) {
                transaction::<P>(begun).rollback(&env).await;
            }
        });
        answered(self, &result, patience).unwrap_or(Err(Abort::Unknown))
    }

    fn commit(&self, going: Going) -> Result<Option<Timestamp>, Option<Abort>> {
        let Going { shard, attempt, begun, writes, patience } = going;
        let begun = begun.map(transaction::<P>);
        let (done, result) = mpsc::sync_channel(1);
        self.runtime().spawn_on(shard, move |env| async move {
            let committed = match resume(&env, begun, attempt, writes).await {
                Ok(txn) => txn.commit(&env).await.map(|committed| committed.stamp),
                Err(abort) => Err(abort),
            };
            let _ = done.send(committed);
        });
        answered(self, &result, patience).ok_or(None)?.map_err(Some)
    }

    fn rollback(&self, shard: ShardId, begun: Begun) {
        let txn = transaction::<P>(begun);
        self.runtime().spawn_on(shard, move |env| async move { txn.rollback(&env).await });
    }

    fn snapshot(&self, shard: ShardId, freshness: Freshness) -> Result<Taken, Abort> {
        self.runtime().run_on(shard, move |env| async move {
            let (at, held) = read_only::snapshot::<P, _>(&env, freshness).await?;
            let held = held.unwrap_or_else(|| env.local(|node| node.base().hold(at.clone())));
            let (clock, place) = (env.clock(), P::Scheme::place(&at));
            // Normally the clock is behind the snapshot only by as little as timestamps run ahead
            // of clocks. If it is further behind, some clock is wrong: then the wait is bounded.
            let until = Timestamp(clock.0.saturating_add(MAX_OFFSET_NS));
            while P::Scheme::WAITS && place.is_some_and(|place| env.clock() <= place) && env.clock() < until {
                env.pause().await;
            }
            Ok(Taken { at: Arc::new(at), place, clock, held })
        })
    }

    fn read_at(
        &self,
        coordinator: ShardId,
        shard: ShardId,
        at: &Frozen,
        reads: Reads,
        patience: Option<Duration>,
    ) -> Answer<'_> {
        let at = at.downcast_ref::<<P::Scheme as Scheme>::Snapshot>();
        let at = at.expect("a snapshot goes back to where it comes from").clone();
        let (answer, answers) = mpsc::sync_channel(1);
        self.runtime().spawn_on(coordinator, move |env| async move {
            let txn = env.local(|node| node.base().next_id());
            let begun = env.clock();
            let fetched = loop {
                let request = Envelope::Common(Common::read_at(txn, at.clone(), reads.clone()));
                match env.call(shard, request).await.map(|answer| answer.common()) {
                    Ok(CommonReply::Fetched(fetched)) => break fetched.map(Some).ok_or(Error::SnapshotGone),
                    Ok(CommonReply::Elsewhere) => break Ok(None),
                    Ok(_) => unreachable!("a shard answers reads with what was read"),
                    Err(_) => {}
                }
                let waited = Duration::from_nanos(env.clock().0 - begun.0);
                if patience.is_some_and(|patience| waited >= patience) {
                    break Err(Error::Unreachable { waited });
                }
                env.sleep(RETRY_NS).await;
            };
            // The receiver is gone if the client has met an error on another shard.
            let _ = answer.send(fetched);
        });
        Box::new(move || {
            // A shard may wait for ever for a writer whose outcome no reachable shard knows.
            let Some(fetched) = answered(self, &answers, patience) else {
                return Err(match self.is_refused() {
                    true => Error::SnapshotGone,
                    false => Error::Unreachable { waited: patience.unwrap_or_default() },
                });
            };
            let fetched = fetched?;
            let Some(fetched) = fetched else { return Ok(None) };
            let value = |got| fetched.value(got).map(<[u8]>::to_vec);
            let gets = fetched.gets.iter().map(value).collect();
            let scans = fetched.scans.iter().map(|scan| Scanned {
                rows: scan.rows.iter().filter_map(|(key, got)| Some((key.clone(), value(got)?))).collect(),
                last: scan.rows.last().filter(|_| scan.more).map(|(key, _)| key.clone()),
            });
            Ok(Some(Found { gets, scans: scans.collect() }))
        })
    }

    fn release(&self, shard: ShardId, held: u32) {
        self.runtime().spawn_on(shard, move |env| async move {
            env.local(|node| node.base().release(held));
        });
    }

    fn placement(&self, shard: ShardId) -> Arc<Placement> {
        self.on_shard(shard, |_, base| base.placement().clone())
    }

    fn move_slots(
        &self,
        coordinator: ShardId,
        from: ShardId,
        slots: Vec<Slot>,
        to: ShardId,
        patience: Duration,
    ) -> Option<MoveOutcome> {
        let (done, outcome) = mpsc::sync_channel(1);
        self.runtime().spawn_on(coordinator, move |env| async move {
            let request = Envelope::Common(Common::Move { slots, to, asked: false });
            if let Ok(CommonReply::MoveOver(outcome)) =
                env.call(from, request).await.map(|answer| answer.common())
            {
                let _ = done.send(outcome);
            }
        });
        outcome.recv_timeout(patience).ok()
    }
}

/// The answer of a task that was started on a shard; `None` if it takes longer than `patience`, the
/// shard has ended, or this client was refused.
fn answered<R>(driver: &impl Driver, result: &Receiver<R>, patience: Option<Duration>) -> Option<R> {
    let Some(patience) = patience else { return result.recv().ok() };
    let begun = Instant::now();
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        // If refused, calls over closed connections fail at once, so their answers still come
        // within the last wait.
        let refused = driver.is_refused();
        match result.recv_timeout(left.min(LOOK)) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if left > LOOK && !refused => {}
            Err(_) => return None,
        }
    }
}

fn transaction<P: LegalPair>(begun: Begun) -> Box<Transaction<P::Scheme>> {
    begun.downcast().expect("a transaction goes back to where it comes from")
}

/// Begins the transaction unless it has begun, and applies its waiting writes. (After an error the
/// transaction is over and holds nothing.)
async fn resume<P: InteractivePair>(
    env: &RealEnv<P>,
    begun: Option<Box<Transaction<P::Scheme>>>,
    attempt: Attempt,
    writes: Vec<Write>,
) -> Result<Box<Transaction<P::Scheme>>, Abort> {
    let mut txn = match begun {
        Some(mut txn) => {
            txn.follow(env, attempt.freshness.at_least);
            txn
        }
        None => Box::new(Transaction::begin(env, attempt, false).await?),
    };
    for write in writes {
        match write {
            Write::Put(column, key, value) => txn.put(env, column, &key, &value).await?,
            Write::Delete(table, key) => txn.delete(env, table, &key).await?,
        }
    }
    Ok(txn)
}

async fn exists<P: InteractivePair>(
    env: &RealEnv<P>,
    txn: &mut Transaction<P::Scheme>,
    columns: Vec<ColumnGroup>,
    key: &Key,
) -> Result<bool, Abort> {
    for column in columns {
        if txn.get(env, column, key).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
