//! What can go wrong: [`SchemaError`] and [`OpenError`] when a database is opened, [`Error`]
//! afterwards.
//!
//! All three are small, so that a caller can decide by matching; a later version may have more
//! variants. Their texts say what to do. A caller does not have to handle conflicts between
//! transactions: [`Error::Conflict`] only carries the end of an attempt out of the closure of
//! [`transact`](crate::Database::transact), which tries again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{OpenError, SchemaError};
use plimsoll_txn::pairs::Scheme;
use plimsoll_txn::timestamp::MAX_OFFSET_NS;
use plimsoll_types::{Abort, KEY_MAX, KeyError, SLOTS};

use crate::database::VALUE_MAX;

/// Why an operation on an open database failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The database was closed.
    Closed,
    /// The closure of a transaction has begun another transaction of the same database. The inner
    /// one would not see what the outer one has written, and the two could wait for each other, or
    /// abort each other again and again.
    Nested,
    /// Another transaction was faster, and this attempt is over. Pass the error on with `?`: the
    /// transaction is attempted again, whatever the closure returns.
    Conflict(Abort),
    /// All attempts of a transaction ended in conflicts until its patience was over.
    Contended {
        /// How many attempts there were.
        attempts: u32,
        /// How long they took altogether.
        waited: Duration,
        /// What ended the last one.
        last: Abort,
    },
    /// As many transactions run as
    /// [`Options::transactions_per_shard`](crate::Options::transactions_per_shard) allows, and none
    /// of them ended in time.
    Overloaded {
        /// How many run.
        transactions: usize,
        /// How long this one has waited.
        waited: Duration,
    },
    /// A table cannot be made.
    Schema(SchemaError),
    /// An immutable table was written.
    Immutable {
        /// The table.
        table: Arc<str>,
    },
    /// The id names a table of another database.
    NoSuchTable,
    /// The cursor is one of another transaction, or of an earlier attempt.
    ForeignCursor,
    /// A key could not be taken apart.
    Key(KeyError),
    /// The table has fewer column groups.
    NoSuchGroup {
        /// The table.
        table: Arc<str>,
        /// The group, from 0.
        group: u8,
    },
    /// A hash table has no order to scan it in.
    NotOrdered {
        /// The table.
        table: Arc<str>,
    },
    /// The record or row to be inserted already exists. The transaction goes on.
    Exists {
        /// The table.
        table: Arc<str>,
    },
    /// A row has one value per column group.
    ValueCount {
        /// The table.
        table: Arc<str>,
        /// How many values were given.
        values: usize,
        /// How many column groups there are.
        groups: usize,
    },
    /// A key of more than [`KEY_MAX`] bytes.
    KeyTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A value of more than [`VALUE_MAX`] bytes.
    ValueTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// One transaction writes more than [`WRITTEN_MAX`](crate::WRITTEN_MAX) bytes, or in a cluster
    /// more than [`WRITTEN_MAX_CLUSTER`](crate::WRITTEN_MAX_CLUSTER).
    TooMuchWritten {
        /// How many bytes it may write.
        max: usize,
    },
    /// There is no memory for what the transaction writes: see
    /// [`Options::memory`](crate::Options::memory). Reads and deletions go on.
    Full,
    /// There is no room on a disk for what the transaction writes or deletes. Reads go on, and writes
    /// do once there is room again.
    DiskFull,
    /// One transaction writes more than all the memory there is for data.
    LargerThanMemory {
        /// How many bytes it would write.
        bytes: usize,
        /// How many there are: [`Options::memory`](crate::Options::memory).
        limit: u64,
    },
    /// A snapshot further in the past than versions are kept.
    TooStale {
        /// The staleness asked for.
        asked: Duration,
        /// The largest staleness possible, chosen when the database was opened.
        max: Duration,
    },
    /// The scheme has no snapshots.
    NoSnapshots {
        /// The scheme.
        scheme: Scheme,
    },
    /// The scheme has no snapshots of the past.
    NoStaleness {
        /// The scheme.
        scheme: Scheme,
    },
    /// A node that is needed, or the oracle, could not be reached in time, or is gone: it was
    /// dialed in vain since the connection broke. Or a record is locked by a transaction that is in
    /// doubt because a node is gone. In a cluster only.
    Unreachable {
        /// How long it took to give up.
        waited: Duration,
    },
    /// A node has refused a timestamp of this client, or this client a timestamp of a node, because
    /// it is further ahead of the refusing machine's clock than clocks may be apart. In a cluster
    /// only.
    ClockAhead,
    /// Nodes do not keep up with what this client has sent, or it already runs the maximum number
    /// of transactions that write more than a mebibyte, and that did not change in time. In a
    /// cluster only.
    Congested {
        /// How long this one has waited.
        waited: Duration,
    },
    /// The nodes have heard nothing from this client, took it for dead, and it cannot come back. In
    /// a cluster only.
    CutOff {
        /// Why it cannot come back.
        why: String,
    },
    /// A node was started again whose database does not wait for its disks, so that all nodes went
    /// back to one timestamp: what this client was told last may be lost. In a cluster only.
    Lost,
    /// The outcome of the transaction was not known in time, or when a node that may have voted on
    /// it was gone. The transaction may be committed, now or later. In a cluster only.
    InDoubt {
        /// How long it took to give up.
        waited: Duration,
    },
    /// The client was cut off from a node, and versions of its snapshot may be gone there. In a
    /// cluster only.
    SnapshotGone,
    /// On a cluster a table is made without rows, and is not immutable.
    OnlyEmptyTables {
        /// The table.
        table: Arc<str>,
    },
    /// A shard of a cluster has another table where this client knows one, or lacks it: data of its
    /// node was lost, or brought back from an older copy than that of others.
    TablesDiffer {
        /// The shard.
        shard: u16,
        /// The table that this client knows.
        table: Arc<str>,
    },
    /// The slots of a database that does not wait for its disk do not move.
    SlotsAreFixed,
    /// Slots are numbered from 0 to [`SLOTS`] - 1.
    NoSuchSlot {
        /// The slot.
        slot: u16,
    },
    /// Slots cannot move to a shard that holds no data.
    NoSuchShard {
        /// The shard.
        shard: u16,
        /// How many shards there are.
        shards: usize,
    },
    /// Slots could not move: at every moment some transaction held locks there, or their shard was
    /// busy loading, or moving other slots.
    SlotsInUse {
        /// How long it took to give up.
        waited: Duration,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Closed => write!(f, "the database was closed"),
            Error::Nested => write!(
                f,
                "a transaction of this database is under way in this thread: use its `txn` in place of another \
                 `transact`, or begin the other one when it is over"
            ),
            Error::Conflict(abort) => {
                write!(f, "this attempt met another transaction ({abort}); leave the closure to try again")
            }
            Error::Contended { attempts, waited, last } => write!(
                f,
                "gave up after {attempts} attempts in {waited:.1?}, the last ended by a {last} conflict; make the \
                 transaction shorter, spread what everybody writes over several keys, or raise `patience`"
            ),
            Error::Overloaded { transactions, waited } => write!(
                f,
                "{transactions} transactions run and none of them ended in {waited:.1?}; run fewer at a time, or raise \
                 `transactions_per_shard`"
            ),
            Error::Schema(error) => error.fmt(f),
            Error::Immutable { table } => {
                write!(f, "table {table:?} is immutable: its rows are loaded once and never written")
            }
            Error::NoSuchTable => write!(
                f,
                "the table belongs to another database; take the id that the schema of this one gave, or `Database::table`"
            ),
            Error::ForeignCursor => write!(
                f,
                "the cursor belongs to another transaction, or to an earlier attempt of this one; make it in the closure"
            ),
            Error::Key(error) => error.fmt(f),
            Error::NoSuchGroup { table, group } => {
                write!(f, "table {table:?} has no column group number {group}")
            }
            Error::NotOrdered { table } => {
                write!(f, "table {table:?} is a hash table and cannot be scanned; declare it ordered")
            }
            Error::Exists { table } => write!(f, "the key is in table {table:?} already"),
            Error::ValueCount { table, values, groups } => {
                write!(f, "a row of table {table:?} has {groups} values, one per column group, not {values}")
            }
            Error::KeyTooLong { bytes } => {
                write!(f, "the key has {bytes} bytes; at most {KEY_MAX} are possible")
            }
            Error::ValueTooLong { bytes } => {
                write!(f, "the value has {bytes} bytes; at most {VALUE_MAX} are possible")
            }
            Error::TooMuchWritten { max } => {
                write!(f, "one transaction writes more than {max} bytes; split it up")
            }
            Error::Full => write!(
                f,
                "the memory for data is full: delete some, which always works, or give it more: by `Options::memory` \
                 in this process, and in a cluster to the nodes, when they are started"
            ),
            Error::DiskFull => write!(
                f,
                "the disk of a data directory is full: make room on it, and writes go on by themselves"
            ),
            Error::LargerThanMemory { bytes, limit } => write!(
                f,
                "the transaction writes {bytes} bytes, and all data may take {limit}: write less, or raise `memory`"
            ),
            Error::NoSnapshots { scheme } => write!(
                f,
                "there are no snapshots under {scheme}: read in a transaction, or choose another scheme, such as dst"
            ),
            Error::NoStaleness { scheme } => OpenError::NoStaleness { scheme: *scheme }.fmt(f),
            Error::Unreachable { waited } => write!(
                f,
                "a node that is needed, or the oracle, could not be reached for {waited:.1?}; see `plimsoll status`, and try again"
            ),
            Error::ClockAhead => write!(
                f,
                "a clock is ahead of the others by more than {:.1?}, that of this machine or of a node, and its timestamps are \
                 refused: compare the clocks by `plimsoll status`, set the wrong one right, and connect with a new `Database`",
                Duration::from_nanos(MAX_OFFSET_NS)
            ),
            Error::Congested { waited } => write!(
                f,
                "too much was on its way to the nodes for {waited:.1?}: run fewer transactions at a time that write much, and see \
                 by `plimsoll status` whether the nodes keep up"
            ),
            Error::CutOff { why } => {
                write!(
                    f,
                    "the nodes took this client for dead, and it cannot come back: {why}; connect with a new `Database`"
                )
            }
            Error::Lost => f.write_str(
                "a node was started again, and the database went back to a timestamp: what was committed in the last tenth \
                 of a second before that node ended, or while it was gone, may be lost; look what is there, and connect \
                 with a new `Database`",
            ),
            Error::InDoubt { waited } => write!(
                f,
                "whether the transaction is committed was not known after {waited:.1?}: a node cannot be reached; look at what \
                 it would have written before trying again"
            ),
            Error::SnapshotGone => {
                write!(f, "the snapshot was cut off from a node for too long; take another")
            }
            Error::OnlyEmptyTables { table } => write!(
                f,
                "on a cluster a table is made empty: make {table:?} by `create_table` and fill it by transactions, or declare \
                 it in the cluster's file if it is immutable"
            ),
            Error::TablesDiffer { shard, table } => write!(
                f,
                "shard {shard} has another table in the place of {table:?}: its node's data directory is not of the same time \
                 as those of the others; bring all of them back from one backup"
            ),
            Error::SlotsAreFixed => {
                write!(
                    f,
                    "slots do not move under durability async: begin with as many shards as it will need, or choose sync"
                )
            }
            Error::NoSuchSlot { slot } => {
                write!(f, "there is no slot {slot}; slots are numbered from 0 to {}", SLOTS - 1)
            }
            Error::NoSuchShard { shard, shards } => {
                write!(f, "there is no shard {shard}; slots move to one of 0 to {}", shards.saturating_sub(1))
            }
            Error::SlotsInUse { waited } => write!(
                f,
                "the slots were in use for {waited:.1?}, locked by transactions or moved by others: try again, or move fewer \
                 slots at a time"
            ),
            Error::TooStale { asked, max } => {
                write!(f, "versions are kept for {max:?}, not for {asked:?}; raise `max_staleness`")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Error {
        Error::Key(error)
    }
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Error {
        Error::Schema(error)
    }
}
