//! Workloads are written once, as procedures made of pieces.
//!
//! A *piece* is the part of a transaction that touches one slot, hence one shard: it declares what
//! it reads (`reads`, the keys and ranges known from its inputs) and what it does with the values
//! (`execute`, synchronous). Pieces whose inputs are known at the same time form a *stage*; the
//! pieces of one stage do not depend on each other, and a later stage may use what an earlier one
//! has read. That is enough for every protocol to run the same workload in its own way: interactive
//! ones fetch all remote pieces of a stage in one batch per shard and execute them where the
//! transaction is coordinated; a piece whose data is at hand executes directly on the store,
//! without a message and without a future; ROCOCO ships the pieces instead.
//!
//! Two rules make procedures fast and easy to retry:
//! * Put remote pieces into the earliest stage they can be in, and hot local ones (a warehouse's
//!   total) into the last: once all that is left is local, the coordinator locks what it wrote
//!   remotely and runs the rest in one uninterrupted step together with the commit.
//! * `execute` may be run again from stage 0 after an abort: it overwrites outputs and never
//!   changes inputs.

use std::ops::ControlFlow;

use plimsoll_types::{Abort, ColumnGroup, Key, Order, Slot, TableId};

use crate::shipped::Shipped;

/// Names a piece: the stage it belongs to and its number in that stage, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Position of the stage.
    pub stage: usize,
    /// Position in the stage.
    pub number: usize,
}

plimsoll_types::wire!(struct Piece { stage, number });

/// A transaction as a value: its inputs, its logic and, once it has run, its outputs.
pub trait Procedure: 'static {
    /// Whether it is declared read-only: it then reads a snapshot, takes no locks and must not
    /// write.
    fn read_only(&self) -> bool;

    /// How many pieces stage `stage` has; 0 ends the procedure. Asked after the stage before was
    /// executed.
    fn stage(&self, stage: usize) -> usize;

    /// The slot that holds all the data of a piece. Tables with copies everywhere do not count.
    fn home(&self, piece: Piece) -> Slot;

    /// Declares all keys and ranges that the piece reads. What it only writes is not declared.
    fn reads(&self, piece: Piece, reads: &mut Reads);

    /// Reads what it declared, computes, and writes. An `Err(Abort::User)` undoes the whole
    /// transaction.
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort>;

    /// It as a procedure that can be sent to where its data is, if it is one
    /// ([`crate::shipped::OneShot`]).
    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        None
    }
}

/// What a piece does with data. Reads see the transaction's own earlier writes.
///
/// An `Err` must be passed on with `?`: the transaction is over.
pub trait Access {
    /// These records will be read next: what is here of them comes into the cache, all at once.
    /// Changes nothing else. Worth it for some three records or more.
    #[inline]
    fn expect(&mut self, _column: ColumnGroup, _keys: impl Iterator<Item = Key>) {}

    /// The newest value visible to the transaction, or `None` if the record is absent.
    fn get(&mut self, column: ColumnGroup, key: &Key) -> Result<Option<&[u8]>, Abort>;

    /// Writes a record, whether or not it exists. A blind write if the transaction has not read it.
    fn put(&mut self, column: ColumnGroup, key: &Key, value: &[u8]) -> Result<(), Abort>;

    /// Inserts a row, one value per column group. [`Abort::User`] if the row exists.
    fn insert(&mut self, table: TableId, key: &Key, values: &[&[u8]]) -> Result<(), Abort>;

    /// Deletes a row with all its column groups, whether or not it exists.
    fn delete(&mut self, table: TableId, key: &Key) -> Result<(), Abort>;

    /// Calls `visit` for every row of the range in the order of the scan, until the limit or a
    /// `Break`.
    fn scan(&mut self, scan: &Scan, visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>) -> Result<(), Abort>;
}

/// A range of an ordered table, read in the order of its keys, or in descending order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan {
    /// What is read of each row. Rows whose group is absent are skipped.
    pub column: ColumnGroup,
    /// The first key of the range.
    pub low: Key,
    /// The first key beyond the range; `None`: to the end of the table.
    pub high: Option<Key>,
    /// At most so many rows are visited.
    pub limit: usize,
    /// From which end.
    pub order: Order,
}

plimsoll_types::wire!(struct Scan { column, low, high, limit, order });

impl Scan {
    /// All rows whose keys start with `prefix`.
    pub fn prefix(column: ColumnGroup, prefix: Key) -> Scan {
        let high = prefix.prefix_end();
        Scan { column, low: prefix, high, limit: usize::MAX, order: Order::Ascending }
    }

    /// The rows with `low <= key < high`.
    pub fn range(column: ColumnGroup, low: Key, high: Key) -> Scan {
        Scan { column, low, high: Some(high), limit: usize::MAX, order: Order::Ascending }
    }

    /// The same range, ended after `limit` rows.
    pub fn limit(mut self, limit: usize) -> Scan {
        self.limit = limit;
        self
    }

    /// The same range in descending order. A limit counts from its end.
    pub fn descending(mut self) -> Scan {
        self.order = Order::Descending;
        self
    }

    /// The part of the range that a scan has read if it ended behind a row with the key `last`;
    /// `None`: it has read the whole range.
    pub fn read_up_to(&self, last: Option<&Key>) -> (Key, Option<Key>) {
        match (last, self.order) {
            (None, _) => (self.low.clone(), self.high.clone()),
            (Some(last), Order::Ascending) => (self.low.clone(), Some(last.just_after())),
            (Some(last), Order::Descending) => (last.clone(), self.high.clone()),
        }
    }

    /// What is left of the range behind a row with the key `last`.
    pub fn go_on_behind(&mut self, last: &Key) {
        match self.order {
            Order::Ascending => self.low = last.just_after(),
            Order::Descending => self.high = Some(last.clone()),
        }
    }
}

/// Whether a declared read will be followed by a write of the same record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// Only read.
    Read,
    /// Read, then written: locking protocols take the exclusive lock at once.
    Update,
}

plimsoll_types::wire!(
    enum Intent {
        Read = 0,
        Update = 1,
    }
);

/// The declared reads of one or more pieces.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Single records.
    pub gets: Vec<(ColumnGroup, Key, Intent)>,
    /// Ranges.
    pub scans: Vec<(Scan, Intent)>,
    /// Once so many bytes of values are read, the rest is left out: of the records those at the
    /// end, of a range the rows at its end. At least one value is read. `None`: everything is read.
    pub most: Option<u32>,
    /// If there are ranges, what the coordinator's map says of the shard that is asked:
    /// [`plimsoll_types::Placement::fingerprint`].
    pub owned: u64,
}

plimsoll_types::wire!(struct Reads { gets, scans, most, owned });

impl Reads {
    /// The piece reads this record.
    pub fn get(&mut self, column: ColumnGroup, key: Key) {
        self.gets.push((column, key, Intent::Read));
    }

    /// The piece reads this record and then writes it.
    pub fn update(&mut self, column: ColumnGroup, key: Key) {
        self.gets.push((column, key, Intent::Update));
    }

    /// The piece reads this range.
    pub fn scan(&mut self, scan: Scan) {
        self.scans.push((scan, Intent::Read));
    }

    /// The piece reads this range and then writes (or deletes) the rows it found.
    pub fn scan_for_update(&mut self, scan: Scan) {
        self.scans.push((scan, Intent::Update));
    }
}
