//! Read-write transactions: a closure that is run until it commits.
//!
//! The closure runs on its caller's thread, its operations on the shards. Under OCC it reads at the
//! snapshot at which the attempt began, with its own writes on top, so all that it sees is
//! consistent, even in an attempt that will fail; at commit, what it read must still be the newest
//! (`plimsoll_txn::interactive`). An attempt holds no lock before that, so a slow or crashed client
//! blocks no other. Under 2PL an attempt locks as it goes. Without snapshots (rc, none) it reads
//! the newest versions, and the commit finds out whether they belong together.
//!
//! Hops between threads are the main cost, so there are few. An attempt begins together with its
//! first operation, on the shard that owns the key. Writes cannot fail before the commit, so they
//! wait in the client's thread for the next read, or for the commit, which takes them along: a
//! transaction of r reads and any number of writes makes r + 1 hops. One that wrote nothing and
//! reads at a snapshot has nothing to commit and makes r.
//!
//! **Retry.** A conflict ends the attempt: the operation that met it returns [`Error::Conflict`],
//! as do all later ones, and the closure's result is dropped. After a pause the closure runs again,
//! from the start, at a new snapshot. The pause is random, from zero to a bound that doubles with
//! every attempt, so that transactions that have met once do not meet again.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_txn::any_shard::TransactionHandle;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::procedure::Scan;
use plimsoll_txn::timestamp;
use plimsoll_types::{Abort, ColumnGroup, Key, ShardId, TableId, Timestamp};

use super::admission::Admitted;
use super::driver::{Operation, Outcome, StepRequest, StepResult, Write};
use super::stats::End;
use super::{
    Column, Database, KeyRange, LARGE_BYTES, READ_MIN, Row, Running, WRITTEN_MAX, WRITTEN_MAX_CLUSTER,
    check_key, check_value,
};
use crate::error::Error;

/// Bound of the pause after the first conflict, in nanoseconds.
const PAUSE_MIN_NS: u64 = 10_000;
/// How often the bound doubles at most: up to 5 ms.
const DOUBLINGS: u32 = 9;
/// Maximum size of a write in a message, in bytes, besides its key and its value.
const WRITE_BYTES: usize = 64;
/// Lower bound of a commit's time-out over the network.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

impl Database {
    /// Runs a transaction: calls `body` and commits what it has written, all or nothing, as if it
    /// ran alone. If another transaction gets in the way, `body` is called again, so it should do
    /// nothing that cannot be done twice. If `body` returns an error of its own, nothing is written
    /// and the error is returned.
    ///
    /// The error type is the caller's; all it needs is a conversion from [`Error`]. Besides the
    /// errors of the operations, there are [`Error::Overloaded`] and [`Error::Contended`], when
    /// [`Options::patience`](crate::Options::patience) is over; with a cluster
    /// [`Error::Congested`], [`Error::Unreachable`] and [`Error::InDoubt`] as well.
    ///
    /// When this returns, every snapshot and transaction that begins later in this process contains
    /// what was written, except [`Freshness::Stale`](crate::Freshness::Stale) snapshots of other
    /// sessions. Another client of a cluster may miss it for as long as clocks differ, unless it
    /// continues this session: [`Database::token`].
    pub fn transact<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut retry = Retry::begin();
        let (tally, patience) = (&self.inner.tally, self.inner.options.patience);
        let _admitted = self.inner.admission.admit(patience).inspect_err(|_| tally.overloaded())?;
        let age = self.inner.running()?.clock().0;
        loop {
            self.inner.wait_for_room().inspect_err(|_| tally.ended(false, End::Aborted))?;
            let mut txn = Txn {
                database: self,
                age,
                state: State::New,
                waiting: Vec::new(),
                wrote: false,
                written_bytes: 0,
                large: None,
                needs: BTreeSet::new(),
                began: retry.began,
            };
            let result = body(&mut txn);
            let abort = match (&txn.state, result) {
                (State::Over(abort), _) => *abort,
                (_, Err(error)) => {
                    tally.aborted(Abort::User);
                    tally.ended(txn.wrote, End::Aborted);
                    return Err(error);
                }
                (_, Ok(value)) => match txn.commit() {
                    Ok(()) => {
                        tally.ended(txn.wrote, End::Committed);
                        return Ok(value);
                    }
                    Err(Error::Conflict(abort)) => abort,
                    Err(error) => {
                        let in_doubt = matches!(error, Error::InDoubt { .. });
                        tally.ended(txn.wrote, if in_doubt { End::InDoubt } else { End::Aborted });
                        return Err(error.into());
                    }
                },
            };
            tally.aborted(abort);
            // A request is lost for a moment when a connection breaks, and for good with its node.
            let gone = abort == Abort::Unknown && self.inner.running()?.any_is_gone();
            let patience = if gone { Duration::ZERO } else { patience };
            retry.pause(abort, patience).inspect_err(|_| tally.ended(txn.wrote, End::Aborted))?;
        }
    }
}

/// One attempt of a transaction, inside the closure of [`Database::transact`].
///
/// Every operation may end with [`Error::Closed`], with an error about its own input, or with
/// [`Error::Conflict`], after which the attempt is over.
pub struct Txn<'a> {
    database: &'a Database,
    /// When the transaction was first attempted. Under 2PL the oldest transaction finally wins.
    age: u64,
    state: State,
    /// Writes that were not sent to a shard yet, in order.
    waiting: Vec<Write>,
    /// Whether anything was written, even if it has no bytes.
    wrote: bool,
    /// Bytes of all keys and values written so far.
    written_bytes: usize,
    /// Its turn among large transactions, if it writes much to other processes.
    large: Option<Admitted<'a>>,
    /// The shards of other processes that it has used or will use to commit, as far as this process
    /// knows where they are.
    needs: BTreeSet<ShardId>,
    /// When the first attempt began.
    began: Instant,
}

enum State {
    /// No shard knows it yet.
    New,
    /// This shard coordinates it, in the engine of this life.
    Begun(TransactionHandle, ShardId, u64),
    /// It was aborted.
    Over(Abort),
}

impl Txn<'_> {
    /// Reads a record.
    pub fn get(&mut self, column: impl Column, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        let column = self.database.inner.column(column)?;
        check_key(key)?;
        let home = self.database.inner.home(column.table, key);
        self.needs.extend(self.database.inner.needed(column.table, key, false));
        match self.step(home, Operation::Get(column, key.clone()))? {
            Outcome::Value(value) => Ok(value),
            _ => unreachable!("a get is answered with a value"),
        }
    }

    /// Writes a record, whether or not it exists.
    pub fn put(&mut self, column: impl Column, key: &Key, value: &[u8]) -> Result<(), Error> {
        let column = self.database.inner.column(column)?;
        self.database.inner.writable(column.table)?;
        check_key(key)?;
        check_value(value)?;
        self.needs.extend(self.database.inner.needed(column.table, key, true));
        self.write(1, key.len() + value.len(), Write::Put(column, key.clone(), value.to_vec()))
    }

    /// Writes a record that does not exist yet. [`Error::Exists`] otherwise; the transaction may go
    /// on.
    pub fn insert(&mut self, column: impl Column, key: &Key, value: &[u8]) -> Result<(), Error> {
        let column = self.database.inner.column(column)?;
        check_value(value)?;
        self.absent(column.table, key, &[column])?;
        self.put(column, key, value)
    }

    /// Writes a row that does not exist yet, one value per column group. [`Error::Exists`] if there
    /// is any record of it; the transaction may go on.
    pub fn insert_row(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Error> {
        let found = self.database.inner.writable(table)?;
        let groups = found.spec.groups.len();
        if values.len() != groups {
            return Err(Error::ValueCount { table: found.name.clone(), values: values.len(), groups });
        }
        values.iter().try_for_each(|value| check_value(value))?;
        let columns: Vec<_> = (0..groups as u8).map(|group| table.group(group)).collect();
        self.absent(table, key, &columns)?;
        columns.into_iter().zip(values).try_for_each(|(column, value)| self.put(column, key, value))
    }

    /// Deletes a row with all its column groups, whether or not it exists.
    pub fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Error> {
        let groups = self.database.inner.writable(table)?.spec.groups.len();
        check_key(key)?;
        self.needs.extend(self.database.inner.needed(table, key, true));
        self.write(groups, key.len(), Write::Delete(table, key.clone()))
    }

    /// Reads a range of an ordered table, in key order, own writes included. No other transaction
    /// can commit a row into the range before this one commits. [`Error::NotOrdered`] for a hash
    /// table.
    ///
    /// All the rows are in memory at once; for a large part of a table take a
    /// [`Snapshot`](crate::Snapshot).
    pub fn scan(&mut self, column: impl Column, range: impl Into<KeyRange>) -> Result<Vec<Row>, Error> {
        let inner = &self.database.inner;
        let range = range.into();
        let column = inner.scanned(column, &range)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let first = inner.shards_of(&inner.placement(), column.table, &range);
        if inner.is_client() && first.len() > 1 {
            self.needs.extend(&first);
        }
        let first = if let [only] = first[..] { only } else { inner.any_shard() };
        let scan = Scan { column, low: range.low, high: range.high, limit: range.limit };
        match self.step(first, Operation::Scan(scan))? {
            Outcome::Rows(rows) => Ok(rows),
            _ => unreachable!("a scan is answered with rows"),
        }
    }

    /// Fails if any of these records of a row exists; that none exists still holds at commit.
    fn absent(&mut self, table: TableId, key: &Key, columns: &[ColumnGroup]) -> Result<(), Error> {
        check_key(key)?;
        let home = self.database.inner.home(table, key);
        self.needs.extend(self.database.inner.needed(table, key, false));
        match self.step(home, Operation::Exists(columns.to_vec(), key.clone()))? {
            Outcome::Exists(false) => Ok(()),
            Outcome::Exists(true) => {
                Err(Error::Exists { table: self.database.inner.table(table)?.name.clone() })
            }
            _ => unreachable!("whether a row exists is answered with yes or no"),
        }
    }

    /// Writes `records` records, whose keys and values have `bytes` bytes each.
    fn write(&mut self, records: usize, bytes: usize, write: Write) -> Result<(), Error> {
        if let State::Over(abort) = self.state {
            return Err(Error::Conflict(abort));
        }
        let inner = &self.database.inner;
        let (bytes, max) = match inner.is_client() {
            true => (records * (bytes + WRITE_BYTES), WRITTEN_MAX_CLUSTER),
            false => (records * bytes, WRITTEN_MAX),
        };
        if self.written_bytes + bytes > max {
            return Err(Error::TooMuchWritten { max });
        }
        if self.large.is_none() && inner.is_client() && self.written_bytes + bytes > LARGE_BYTES {
            let begun = Instant::now();
            let turn = inner.large.admit(inner.options.patience);
            self.large = Some(turn.map_err(|_| Error::Congested { waited: begun.elapsed() })?);
        }
        self.wrote = true;
        self.written_bytes += bytes;
        self.waiting.push(write);
        Ok(())
    }

    /// Does an operation on the coordinating shard, after the waiting writes. If the attempt begins
    /// with this step, `first` coordinates it.
    fn step(&mut self, first: ShardId, operation: Operation) -> Result<Outcome, Error> {
        self.check_reach()?;
        let running = self.database.inner.running()?;
        let going = self.go(&running, first, READ_MIN)?;
        let shard = going.shard;
        match running.step(going, operation, &self.needs) {
            Ok(StepResult { begun, outcome, shown }) => {
                self.database.saw(shown.unwrap_or_default());
                self.state = State::Begun(begun, shard, running.life());
                Ok(outcome)
            }
            Err(abort) => {
                self.state = State::Over(abort);
                Err(Error::Conflict(abort))
            }
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        let inner = &self.database.inner;
        // Reads at a snapshot are consistent. Without a snapshot the commit has to validate them.
        if !self.wrote && (inner.reads_at_snapshot() || matches!(self.state, State::New)) {
            return Ok(());
        }
        let first = match self.waiting.first() {
            Some(Write::Put(ColumnGroup { table, .. }, key, _) | Write::Delete(table, key)) => {
                inner.home(*table, key)
            }
            None => inner.any_shard(),
        };
        self.check_reach()?;
        let running = inner.running()?;
        let going = self.go(&running, first, PATIENCE_MIN)?;
        let (patience, begun) = (going.patience, Instant::now());
        match running.commit(going) {
            Ok(stamp) => {
                self.database.saw(stamp.unwrap_or_default());
                Ok(())
            }
            Err(Some(abort)) => Err(Error::Conflict(abort)),
            Err(None) if patience.is_none() => Err(Error::Closed),
            Err(None) => Err(Error::InDoubt { waited: begun.elapsed() }),
        }
    }

    /// Fails if a node that the transaction needs is gone.
    fn check_reach(&self) -> Result<(), Error> {
        let inner = &self.database.inner;
        if !inner.running()?.is_gone(&self.needs) {
            return Ok(());
        }
        // What it needs may have moved before the node went: the next transaction goes by this map.
        inner.look_at_map(inner.any_shard())?;
        Err(Error::Unreachable { waited: self.began.elapsed() })
    }

    /// The attempt, to be sent to its shard, or to `first` if it begins.
    fn go(&mut self, running: &Running<'_>, first: ShardId, least: Duration) -> Result<StepRequest, Error> {
        let (begun, shard) = self.take(running, first)?;
        let patience = self.database.inner.patience(least);
        Ok(StepRequest {
            shard,
            attempt: self.attempt(),
            begun,
            writes: mem::take(&mut self.waiting),
            patience,
        })
    }

    /// The transaction, if it has begun, and its shard. If it began in a former life, all shards
    /// have given it up.
    fn take(
        &mut self,
        running: &Running<'_>,
        first: ShardId,
    ) -> Result<(Option<TransactionHandle>, ShardId), Error> {
        let abort = match mem::replace(&mut self.state, State::New) {
            State::New => return Ok((None, running.coordinator(first))),
            State::Begun(txn, shard, life) if life == running.life() => return Ok((Some(txn), shard)),
            State::Begun(..) => Abort::Unknown,
            State::Over(abort) => abort,
        };
        self.state = State::Over(abort);
        Err(Error::Conflict(abort))
    }

    fn attempt(&self) -> Attempt {
        let at_least = Timestamp(self.database.inner.told.load(SeqCst));
        Attempt { age: self.age, freshness: timestamp::Freshness { staleness_ns: 0, at_least } }
    }
}

impl Drop for Txn<'_> {
    /// The closure has returned an error, or panicked, or only read: releases its snapshot.
    fn drop(&mut self) {
        if let State::Begun(txn, shard, life) = mem::replace(&mut self.state, State::New)
            && let Ok(running) = self.database.inner.lives.as_it_is()
            && running.life() == life
        {
            running.rollback(shard, txn);
        }
    }
}

/// Counts the conflicts of a transaction.
struct Retry {
    began: Instant,
    attempts: u32,
    random: RandomState,
}

impl Retry {
    fn begin() -> Retry {
        Retry { began: Instant::now(), attempts: 0, random: RandomState::new() }
    }

    /// Waits before the next attempt, or fails if patience is over.
    fn pause(&mut self, last: Abort, patience: Duration) -> Result<(), Error> {
        let waited = self.began.elapsed();
        let bound_ns = PAUSE_MIN_NS << self.attempts.min(DOUBLINGS);
        self.attempts += 1;
        if waited >= patience && last == Abort::Unknown {
            return Err(Error::Unreachable { waited });
        }
        if waited >= patience {
            return Err(Error::Contended { attempts: self.attempts, waited, last });
        }
        thread::sleep(Duration::from_nanos(self.random.hash_one(self.attempts) % bound_ns));
        Ok(())
    }
}
