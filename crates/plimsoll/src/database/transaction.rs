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
//!
//! **Errors.** Any other error ends the transaction in the same way, but for [`Error::Exists`],
//! which is an answer. A closure that drops an error, as in `let _ = txn.put(..)`, would otherwise
//! commit a part of what it was to do: now all later operations fail with that error, and so does
//! the transaction.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use std::{mem, thread};

use plimsoll_txn::any_shard::TransactionHandle;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::procedure::Scan;
use plimsoll_txn::room::Memory;
use plimsoll_txn::timestamp;
use plimsoll_types::{Abort, ColumnGroup as StoredColumn, Key, ShardId, Timestamp};

use super::admission::Admitted;
use super::driver::{Operation, Outcome, StepRequest, StepResult, Write};
use super::stats::End;
use super::{
    Column, Database, Inner, KeyRange, LARGE_BYTES, READ_MIN, Row, Running, TableId, WRITTEN_MAX,
    WRITTEN_MAX_CLUSTER, check_key, check_value, new_identity,
};
use crate::error::Error;

/// Bound of the pause after the first conflict, in nanoseconds.
const PAUSE_MIN_NS: u64 = 10_000;
/// How often the bound doubles at most: up to 5 ms.
const DOUBLINGS: u32 = 9;
/// Maximum size of a write in a message, in bytes, besides its key and its value.
const WRITE_BYTES: usize = 64;
/// How long a transaction is retried while memory is full: the memory of what was just deleted is
/// free after some milliseconds.
const FULL_AFTER: Duration = Duration::from_millis(100);
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
    /// [`Options::patience`](crate::Options::patience) is over, and [`Error::Full`]; with a cluster
    /// [`Error::Congested`], [`Error::Unreachable`], [`Error::ClockAhead`] and [`Error::InDoubt`]
    /// as well. An error of an operation that `body` keeps to itself is returned all the same, and
    /// nothing is written; [`Error::Exists`] is the exception. [`Error::Nested`] if the thread is
    /// in the closure of another transaction of this database.
    ///
    /// When this returns, every snapshot and transaction that begins later in this process contains
    /// what was written, except [`Freshness::Stale`](crate::Freshness::Stale) snapshots of other
    /// sessions. Another client of a cluster may miss it for as long as clocks differ, unless it
    /// continues this session: [`Database::token`].
    pub fn transact<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Txn<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _only = Only::in_this_thread(&self.inner)?;
        let mut retry = Retry::begin();
        let (tally, patience) = (&self.inner.tally, self.inner.options.patience);
        let _admitted = self.inner.admission.admit(patience).inspect_err(|_| tally.overloaded())?;
        let age = self.inner.running()?.clock().0;
        loop {
            self.inner.wait_for_room().inspect_err(|_| tally.ended(false, End::Aborted))?;
            let mut txn = Txn {
                database: self,
                age,
                number: new_identity(),
                state: State::New,
                failed: None,
                waiting: Vec::new(),
                wrote: false,
                written_bytes: 0,
                large: None,
                needs: BTreeSet::new(),
                began: retry.began,
            };
            let result = body(&mut txn);
            let wrote = txn.wrote;
            let rolled_back = |error: E| {
                tally.aborted(Abort::User);
                tally.ended(wrote, End::Aborted);
                Err(error)
            };
            let abort = match (txn.failed.take(), result) {
                (Some(Error::Conflict(abort)), _) => abort,
                (_, Err(error)) => return rolled_back(error),
                // The closure has dropped the error.
                (Some(error), Ok(_)) => return rolled_back(error.into()),
                (None, Ok(value)) => match txn.commit() {
                    Ok(()) => {
                        tally.ended(wrote, End::Committed);
                        return Ok(value);
                    }
                    Err(Error::Conflict(abort)) => abort,
                    Err(error) => {
                        let in_doubt = matches!(error, Error::InDoubt { .. });
                        tally.ended(wrote, if in_doubt { End::InDoubt } else { End::Aborted });
                        return Err(error.into());
                    }
                },
            };
            tally.aborted(abort);
            // A request is lost for a moment when a connection breaks, and for good with its node.
            let gone = abort == Abort::Unknown && self.inner.running()?.any_is_gone();
            let patience = if gone { Duration::ZERO } else { patience };
            retry.pause(abort, patience).inspect_err(|_| tally.ended(wrote, End::Aborted))?;
        }
    }
}

thread_local! {
    /// The databases of which this thread runs a transaction, by address.
    static RUNNING: RefCell<Vec<*const Inner>> = const { RefCell::new(Vec::new()) };
}

/// The only transaction of a database in a thread.
struct Only(*const Inner);

impl Only {
    /// [`Error::Nested`] if there is one already.
    fn in_this_thread(database: &Arc<Inner>) -> Result<Only, Error> {
        let address = Arc::as_ptr(database);
        RUNNING.with_borrow_mut(|running| {
            if running.contains(&address) {
                return Err(Error::Nested);
            }
            running.push(address);
            Ok(Only(address))
        })
    }
}

impl Drop for Only {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|running| running.retain(|address| *address != self.0));
    }
}

/// One attempt of a transaction, inside the closure of [`Database::transact`].
///
/// Every operation may end with [`Error::Closed`], with an error about its own input, or with
/// [`Error::Conflict`]. After an error, other than [`Error::Exists`], the attempt is over: all
/// later operations return the same error.
pub struct Txn<'a> {
    database: &'a Database,
    /// When the transaction was first attempted. Under 2PL the oldest transaction finally wins.
    age: u64,
    /// Tells it from all other attempts.
    number: u64,
    state: State,
    /// The first error of an operation.
    failed: Option<Error>,
    /// Writes that were not sent to a shard yet, in order.
    waiting: Vec<Write>,
    /// Whether anything was written, even if it has no bytes.
    wrote: bool,
    /// Bytes of all keys and values written so far.
    written_bytes: usize,
    /// Its turn among large transactions, if it writes much to other processes.
    large: Option<Admitted<'a>>,
    /// The shards of other processes that it has read and will write, by the map of this process.
    needs: BTreeSet<ShardId>,
    /// When the first attempt began.
    began: Instant,
}

enum State {
    /// No shard knows it yet.
    New,
    /// This shard coordinates it, in the engine of this life.
    Begun(TransactionHandle, ShardId, u64),
}

impl Txn<'_> {
    /// Reads a record.
    pub fn get(&mut self, column: impl Column, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.attempt(|txn| {
            let column = txn.database.inner.column(column)?;
            check_key(key)?;
            match txn.step(Operation::Get(column, key.clone()))? {
                Outcome::Value(value) => Ok(value),
                _ => unreachable!("a get is answered with a value"),
            }
        })
    }

    /// Reads many records, with one round of messages to all shards that own some, or as many
    /// rounds as there are mebibytes on a shard. The values are in the order of the keys.
    pub fn get_many(&mut self, column: impl Column, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.attempt(|txn| {
            let column = txn.database.inner.column(column)?;
            keys.iter().try_for_each(check_key)?;
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            match txn.step(Operation::GetMany(column, keys.to_vec()))? {
                Outcome::Values(values) => Ok(values),
                _ => unreachable!("many gets are answered with values"),
            }
        })
    }

    /// Writes a record, whether or not it exists.
    pub fn put(&mut self, column: impl Column, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.attempt(|txn| {
            let named = column.column();
            let column = txn.database.inner.column(named)?;
            txn.database.inner.writable(named.table)?;
            check_key(key)?;
            check_value(value)?;
            txn.put_checked(column, key, value)
        })
    }

    /// Writes a record that does not exist yet. [`Error::Exists`] otherwise; the transaction may go
    /// on.
    pub fn insert(&mut self, column: impl Column, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.attempt(|txn| {
            let named = column.column();
            let column = txn.database.inner.column(named)?;
            txn.database.inner.writable(named.table)?;
            check_key(key)?;
            check_value(value)?;
            txn.absent(named.table, key, vec![column])?;
            txn.put_checked(column, key, value)
        })
    }

    /// Writes a row that does not exist yet, one value per column group. [`Error::Exists`] if there
    /// is any record of it; the transaction may go on.
    pub fn insert_row(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Error> {
        self.attempt(|txn| {
            let found = txn.database.inner.writable(table)?;
            let groups = found.spec.groups.len();
            if values.len() != groups {
                return Err(Error::ValueCount { table: found.name.clone(), values: values.len(), groups });
            }
            check_key(key)?;
            values.iter().try_for_each(|value| check_value(value))?;
            let columns: Vec<_> = (0..groups as u8).map(|group| table.stored().group(group)).collect();
            txn.absent(table, key, columns.clone())?;
            columns
                .into_iter()
                .zip(values)
                .try_for_each(|(column, value)| txn.put_checked(column, key, value))
        })
    }

    /// Deletes a row with all its column groups, whether or not it exists.
    pub fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Error> {
        self.attempt(|txn| {
            let groups = txn.database.inner.writable(table)?.spec.groups.len();
            check_key(key)?;
            txn.write(groups, key.len(), Write::Delete(table.stored(), key.clone()))
        })
    }

    /// Reads a range of an ordered table, in key order or from its end ([`KeyRange::reverse`]), own
    /// writes included. No other transaction can commit a row into the range before this one
    /// commits; with a limit, into the part that was read. [`Error::NotOrdered`] for a hash
    /// table.
    ///
    /// All the rows are in memory at once; for a large part of a table take a [`Txn::cursor`], or a
    /// [`Snapshot`](crate::Snapshot).
    pub fn scan(&mut self, column: impl Column, range: impl Into<KeyRange>) -> Result<Vec<Row>, Error> {
        self.attempt(|txn| {
            let scan = txn.database.inner.scan(column, range.into())?;
            if scan.limit == 0 {
                return Ok(Vec::new());
            }
            match txn.step(Operation::Scan(scan))? {
                Outcome::Rows(rows) => Ok(rows),
                _ => unreachable!("a scan is answered with rows"),
            }
        })
    }

    /// The same without having all the rows in memory: a cursor fetches some hundred of them at a
    /// time, and the transaction can do other things between two rows.
    ///
    /// ```
    /// # use plimsoll::{Database, Error, IndexKind, Key, Options, Schema};
    /// # let mut schema = Schema::new();
    /// # let stock = schema.table("stock", IndexKind::Ordered)?;
    /// # let db = Database::open(schema, Options::default())?;
    /// let deleted = db.transact(|txn| -> Result<u64, Error> {
    ///     let (mut cursor, mut deleted) = (txn.cursor(stock, ..)?, 0);
    ///     while let Some((key, value)) = cursor.next(txn)? {
    ///         if value == b"0" {
    ///             txn.delete(stock, &key)?;
    ///             deleted += 1;
    ///         }
    ///     }
    ///     Ok(deleted)
    /// })?;
    /// # assert_eq!(deleted, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cursor(&mut self, column: impl Column, range: impl Into<KeyRange>) -> Result<Cursor, Error> {
        self.attempt(|txn| {
            let scan = txn.database.inner.scan(column, range.into())?;
            let rest = if scan.limit == 0 { None } else { Some(scan) };
            Ok(Cursor { attempt: txn.number, rest, rows: VecDeque::new() })
        })
    }

    /// Does an operation, unless an earlier one has failed.
    fn attempt<T>(&mut self, operation: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        operation(self).inspect_err(|error| {
            if !matches!(error, Error::Exists { .. }) {
                self.failed = Some(error.clone());
            }
        })
    }

    /// Fails if any of these records of a row exists; that none exists still holds at commit.
    fn absent(&mut self, table: TableId, key: &Key, columns: Vec<StoredColumn>) -> Result<(), Error> {
        match self.step(Operation::Exists(columns, key.clone()))? {
            Outcome::Exists(false) => Ok(()),
            Outcome::Exists(true) => {
                Err(Error::Exists { table: self.database.inner.table(table)?.name.clone() })
            }
            _ => unreachable!("whether a row exists is answered with yes or no"),
        }
    }

    fn put_checked(&mut self, column: StoredColumn, key: &Key, value: &[u8]) -> Result<(), Error> {
        self.write(1, key.len() + value.len(), Write::Put(column, key.clone(), value.to_vec()))
    }

    /// Writes `records` records, whose keys and values have `bytes` bytes each.
    fn write(&mut self, records: usize, bytes: usize, write: Write) -> Result<(), Error> {
        let inner = &self.database.inner;
        let (bytes, max) = match inner.is_client() {
            true => (records * (bytes + WRITE_BYTES), WRITTEN_MAX_CLUSTER),
            false => (records * bytes, WRITTEN_MAX),
        };
        if self.written_bytes + bytes > max {
            return Err(Error::TooMuchWritten { max });
        }
        if let Some(limit) = inner.running()?.limit().map(Memory::limit)
            && (self.written_bytes + bytes) as u64 > limit
        {
            return Err(Error::LargerThanMemory { bytes: self.written_bytes + bytes, limit });
        }
        if self.large.is_none() && inner.is_client() && self.written_bytes + bytes > LARGE_BYTES {
            let begun = Instant::now();
            let turn = inner.large.admit(inner.options.patience);
            self.large = Some(turn.map_err(|_| Error::Congested { waited: begun.elapsed() })?);
        }
        if inner.is_client() {
            self.needs.extend(inner.written_by(&write));
        }
        self.wrote = true;
        self.written_bytes += bytes;
        self.waiting.push(write);
        Ok(())
    }

    /// Does an operation on the coordinating shard, after the waiting writes. An attempt that
    /// begins with this step is coordinated by one of the shards that it reads.
    fn step(&mut self, operation: Operation) -> Result<Outcome, Error> {
        let inner = &self.database.inner;
        let is_used = inner.is_client() || matches!(self.state, State::New);
        let read = if is_used { inner.read_by(&operation) } else { Vec::new() };
        if inner.is_client() {
            self.needs.extend(&read);
        }
        self.check_reach()?;
        let running = inner.running()?;
        let going = self.go(&running, &read, READ_MIN)?;
        let shard = going.shard;
        match running.step(going, operation, &self.needs) {
            Ok(StepResult { begun, outcome, shown }) => {
                self.database.saw(shown.unwrap_or_default());
                self.state = State::Begun(begun, shard, running.life());
                Ok(outcome)
            }
            Err(abort) => Err(Error::Conflict(abort)),
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        let inner = &self.database.inner;
        // Reads at a snapshot are consistent. Without a snapshot the commit has to validate them.
        if !self.wrote && (inner.reads_at_snapshot() || matches!(self.state, State::New)) {
            return Ok(());
        }
        let written = self.waiting.first().map(|write| inner.written_by(write)).unwrap_or_default();
        self.check_reach()?;
        let running = inner.running()?;
        let going = self.go(&running, &written, PATIENCE_MIN)?;
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

    /// The attempt, to be sent to its shard, or to one of `first` if it begins.
    fn go(
        &mut self,
        running: &Running<'_>,
        first: &[ShardId],
        least: Duration,
    ) -> Result<StepRequest, Error> {
        let (begun, shard) = self.take(running, first)?;
        let patience = self.database.inner.patience(least);
        Ok(StepRequest {
            shard,
            attempt: self.begin(),
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
        first: &[ShardId],
    ) -> Result<(Option<TransactionHandle>, ShardId), Error> {
        match mem::replace(&mut self.state, State::New) {
            State::New => Ok((None, running.coordinator(self.database.inner.one_of(first)))),
            State::Begun(txn, shard, life) if life == running.life() => Ok((Some(txn), shard)),
            State::Begun(..) => Err(Error::Conflict(Abort::Unknown)),
        }
    }

    /// What the shard has to know of this attempt.
    fn begin(&self) -> Attempt {
        let at_least = Timestamp(self.database.inner.told.load(SeqCst));
        Attempt { age: self.age, freshness: timestamp::Freshness { staleness_ns: 0, at_least } }
    }
}

/// A scan within a transaction that goes on where it was: [`Txn::cursor`].
///
/// The commit makes sure that the rows that were fetched, and the gaps between them, are still as
/// they were, as for [`Txn::scan`]; some 50 bytes per row are kept for that. It says nothing about
/// the rest of the range. A row that the transaction writes ahead of the cursor is returned as
/// written, unless it is among the rows that were fetched already.
#[derive(Debug)]
pub struct Cursor {
    /// The attempt that it belongs to.
    attempt: u64,
    /// What was not fetched yet.
    rest: Option<Scan>,
    /// Fetched, but not returned yet.
    rows: VecDeque<Row>,
}

impl Cursor {
    /// The next row; `None` at the end of the range. [`Error::ForeignCursor`] if the cursor is of
    /// another transaction, or of an earlier attempt.
    pub fn next(&mut self, txn: &mut Txn<'_>) -> Result<Option<Row>, Error> {
        txn.attempt(|txn| {
            if self.attempt != txn.number {
                return Err(Error::ForeignCursor);
            }
            while self.rows.is_empty()
                && let Some(scan) = self.rest.take()
            {
                match txn.step(Operation::Batch(scan))? {
                    Outcome::Batch(rows, rest) => (self.rows, self.rest) = (rows.into(), rest),
                    _ => unreachable!("a batch is answered with rows"),
                }
            }
            Ok(self.rows.pop_front())
        })
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
        let full = matches!(last, Abort::Full | Abort::DiskFull);
        let patience = if full { patience.min(FULL_AFTER) } else { patience };
        if waited >= patience {
            return Err(match last {
                Abort::Unknown => Error::Unreachable { waited },
                // One that was a little too far ahead would have been met by the others.
                Abort::ClockAhead => Error::ClockAhead,
                Abort::Full => Error::Full,
                Abort::DiskFull => Error::DiskFull,
                _ => Error::Contended { attempts: self.attempts, waited, last },
            });
        }
        thread::sleep(Duration::from_nanos(self.random.hash_one(self.attempts) % bound_ns));
        Ok(())
    }
}
