//! What SQL asks of the database below it: transactions over keys and values.
//!
//! All tables of SQL are ranges of two tables of the database, which are there from its beginning:
//! one whose rows are placed by a part of their key, and one with a copy on every shard, where the
//! catalog is as well. So a table is made by writing its descriptor, in a transaction like any
//! other, and no shard has to learn of it.

#[expect(clippy::disallowed_types, reason = "there are no shards in it")]
pub mod memory;

use std::future::Future;

use crate::SqlError;

/// One of the database's two tables for SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// Each row is on one shard, which a part of its key decides: see
    /// [`key`](crate::encoding::key).
    Parted,
    /// Every shard has all rows: reads ask nobody, writes ask all.
    Copied,
}

/// A part of a space, in the order of the keys or from its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// Where.
    pub space: Space,
    /// The least key.
    pub low: Vec<u8>,
    /// The first key above it; none is the end of the space.
    pub high: Option<Vec<u8>>,
    /// Whether from its end.
    pub reverse: bool,
}

/// What a transaction is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// It reads what is newest, and may write.
    Write,
    /// It reads at a snapshot.
    Read {
        /// How old the snapshot may be, in milliseconds; 0 for one that has everything that any client
        /// has committed before.
        staleness_ms: u64,
        /// One that may be old is not below this timestamp.
        seen: u64,
    },
}

impl Purpose {
    /// Reading what is newest.
    pub const NEWEST: Purpose = Purpose::Read { staleness_ms: 0, seen: 0 };
}

/// A key with its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A key with the value that is written under it; none deletes what is there.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// Why an operation was not done. The transaction is over.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// Another transaction was in the way, or a row has moved: the same may be tried again. The
    /// text names what was met.
    Conflict(&'static str),
    /// Nothing that trying again would change.
    Error(SqlError),
}

/// What the reads of a transaction have asked of shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// The shards that were asked, the session's own one among them if it was.
    pub shards: usize,
    /// The requests that went to other shards than the session's.
    pub requests: u64,
}

/// A database with transactions.
///
/// A transaction reads a consistent snapshot with its own writes on top, and is serializable. One
/// that only reads never fails with a conflict. One that is dropped without an end is rolled back
/// some time later.
pub trait Store {
    /// A transaction.
    type Transaction;

    /// Whether a transaction holds locks before it commits, for which others wait, readers as well.
    fn has_locks(&self) -> bool;

    /// Begins one. A database that keeps no old versions may refuse a snapshot that is old.
    fn begin(&self, purpose: Purpose) -> impl Future<Output = Result<Self::Transaction, Failure>>;

    /// The values of some keys, in their order.
    fn get(
        &self,
        transaction: &mut Self::Transaction,
        space: Space,
        keys: &[Vec<u8>],
    ) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, Failure>>;

    /// The first pairs of a range, at least one unless it is empty, and `most` at most, which is not
    /// 0; and what is left of it, none at its end.
    fn scan(
        &self,
        transaction: &mut Self::Transaction,
        range: Range,
        most: usize,
    ) -> impl Future<Output = Result<(Vec<Pair>, Option<Range>), Failure>>;

    /// Writes values, or deletes them, in this order.
    fn put_all(
        &self,
        transaction: &mut Self::Transaction,
        space: Space,
        writes: Vec<Write>,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Writes a value, or deletes it if there is none.
    fn put(
        &self,
        transaction: &mut Self::Transaction,
        space: Space,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> impl Future<Output = Result<(), Failure>> {
        self.put_all(transaction, space, vec![(key.to_vec(), value.map(<[u8]>::to_vec))])
    }

    /// The timestamp of the snapshot that a transaction reads; none if it reads what is newest, or
    /// timestamps have no order that a number tells.
    fn snapshot(&self, transaction: &Self::Transaction) -> Option<u64>;

    /// Counts from now on what the transaction's reads ask of shards.
    fn count(&self, transaction: &mut Self::Transaction);

    /// What its reads have asked of shards since that was to be counted; none if it was not, or the
    /// database has no shards.
    fn counted(&self, transaction: &mut Self::Transaction) -> Option<Asked>;

    /// Commits. Returns the timestamp, if the transaction has written and timestamps are numbers: a
    /// snapshot sees what it has written if its own is not below.
    fn commit(&self, transaction: Self::Transaction) -> impl Future<Output = Result<Option<u64>, Failure>>;

    /// Rolls back.
    fn rollback(&self, transaction: Self::Transaction) -> impl Future<Output = ()>;
}
