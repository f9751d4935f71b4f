//! What a running transaction has read and will write.

use plimsoll_checker::{Read, ScanRead, Version};
use plimsoll_store::{At, Place};
use plimsoll_types::{Abort, ColumnGroup, Key, ShardId, TableId, Timestamp, TxnId};

use crate::fetched::ReadRef;
use crate::protocol::Committed;
use crate::timestamp::Scheme;

/// What a buffered write does to its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes a value, whatever was there.
    Put,
    /// Writes a value; the record must be absent.
    Insert,
    /// Writes a tombstone.
    Delete,
}

/// A buffered write of one record.
#[derive(Clone, Debug)]
pub struct Write {
    /// Table and column group.
    pub column: ColumnGroup,
    /// The row's key.
    pub key: Key,
    /// What is done.
    pub change: Change,
    /// The shard that holds the record.
    pub shard: ShardId,
    /// What the transaction has read there, if it has: must still be so when the lock is taken.
    pub expected: Option<ReadRef>,
    /// Where the record is; known once the write was checked.
    pub place: Option<Place>,
    /// Whether the transaction holds its lock already.
    pub locked: bool,
    /// Position and length of the value in the buffer of the [`Writes`].
    pub(crate) value: (u32, u32),
}

/// The buffered writes of a transaction, at most one per record.
#[derive(Debug, Default)]
pub struct Writes {
    entries: Vec<Write>,
    bytes: Vec<u8>,
    /// One bit per hashed record: a read that finds its bit clear need not look for an own write.
    filter: u64,
}

#[inline]
fn filter_bit(column: ColumnGroup, key: &Key) -> u64 {
    let head = key.head();
    let mixed = ((head >> 64) as u64 ^ (head as u64).rotate_left(17) ^ u64::from(column.table.0))
        .wrapping_mul(0x9e3779b97f4a7c15);
    1 << (mixed >> 58)
}

impl Writes {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All writes.
    pub fn iter(&self) -> impl Iterator<Item = &Write> {
        self.entries.iter()
    }

    /// All writes.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Write> {
        self.entries.iter_mut()
    }

    /// The writes on one shard.
    pub fn of(&self, shard: ShardId) -> impl Iterator<Item = &Write> {
        self.entries.iter().filter(move |write| write.shard == shard)
    }

    /// The shards that are written, in order.
    pub fn shards(&self) -> Vec<ShardId> {
        let mut shards: Vec<ShardId> = self.entries.iter().map(|write| write.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// The value of a write; `None` if it deletes.
    #[inline]
    pub fn value(&self, write: &Write) -> Option<&[u8]> {
        let (start, len) = write.value;
        (write.change != Change::Delete).then(|| &self.bytes[start as usize..(start + len) as usize])
    }

    #[inline]
    fn position(&self, column: ColumnGroup, key: &Key) -> Option<usize> {
        if self.filter & filter_bit(column, key) == 0 {
            return None;
        }
        self.entries.iter().position(|write| write.column == column && write.key == *key)
    }

    /// The transaction's own write of a record, if there is one.
    #[inline]
    pub fn find(&self, column: ColumnGroup, key: &Key) -> Option<&Write> {
        self.position(column, key).map(|position| &self.entries[position])
    }

    /// Whether the transaction writes anything in a table.
    pub fn touch(&self, table: TableId) -> bool {
        self.entries.iter().any(|write| write.column.table == table)
    }

    /// The own writes in a range of a table's column group, in key order.
    pub fn in_range(&self, column: ColumnGroup, low: &Key, high: Option<&Key>) -> Vec<&Write> {
        let inside = |write: &&Write| {
            write.column == column && write.key >= *low && high.is_none_or(|high| write.key < *high)
        };
        let mut writes: Vec<&Write> = self.entries.iter().filter(inside).collect();
        writes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        writes
    }

    /// Buffers the first write of a record.
    #[inline]
    pub fn push(
        &mut self,
        column: ColumnGroup,
        key: &Key,
        change: Change,
        shard: ShardId,
        value: &[u8],
    ) -> &mut Write {
        let value = self.store(value);
        self.filter |= filter_bit(column, key);
        let (key, expected, place) = (key.clone(), None, None);
        self.entries.push_mut(Write { column, key, change, shard, expected, place, locked: false, value })
    }

    /// A further write of a record: replaces the earlier one, but keeps what that one expected. `None` if there is
    /// no earlier one; [`Abort::User`] if it inserts what is there.
    #[inline]
    pub fn again(
        &mut self,
        column: ColumnGroup,
        key: &Key,
        change: Change,
        value: &[u8],
    ) -> Option<Result<(), Abort>> {
        let position = self.position(column, key)?;
        let value = self.store(value);
        let earlier = &mut self.entries[position];
        earlier.change = match (earlier.change, change) {
            (Change::Put | Change::Insert, Change::Insert) => return Some(Err(Abort::User)),
            (Change::Insert, Change::Put) => Change::Insert,
            (_, Change::Delete) => Change::Delete,
            // Deleting and inserting again is a put.
            _ => Change::Put,
        };
        earlier.value = value;
        Some(Ok(()))
    }

    fn store(&mut self, value: &[u8]) -> (u32, u32) {
        let start = u32::try_from(self.bytes.len()).expect("a transaction writes less than 4 GiB");
        self.bytes.extend_from_slice(value);
        (start, value.len() as u32)
    }

    /// How many records are written.
    pub fn mark(&self) -> usize {
        self.entries.len()
    }

    /// The locked writes on one shard, packed for a message.
    pub fn pack(&self, shard: ShardId) -> Packed {
        let mut packed = Packed::default();
        for write in self.of(shard).filter(|write| write.locked) {
            let value = self.value(write).map(|value| {
                packed.bytes.extend_from_slice(value);
                value.len() as u32
            });
            packed.writes.push((write.column, write.key.clone(), value));
        }
        packed
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.filter = 0;
    }
}

/// A transaction's writes on one shard, as they travel.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// The records, each with the length of its value; `None` deletes.
    writes: Vec<(ColumnGroup, Key, Option<u32>)>,
    /// The values, one after the other.
    bytes: Vec<u8>,
}

impl Packed {
    /// All writes with their values.
    pub fn iter(&self) -> impl Iterator<Item = (ColumnGroup, &Key, Option<&[u8]>)> {
        let mut start = 0;
        self.writes.iter().map(move |(column, key, len)| {
            let value = len.map(|len| {
                start += len as usize;
                &self.bytes[start - len as usize..start]
            });
            (*column, key, value)
        })
    }
}

/// What a committed transaction read, if the run is recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Point reads.
    pub reads: Vec<Read>,
    /// Range scans.
    pub scans: Vec<ScanRead>,
}

/// A point that a transaction's work can go back to.
pub(crate) struct Saved {
    writes: usize,
    pins: usize,
    reads: usize,
    ranges: usize,
    recorded: Option<Box<Recorded>>,
}

/// A transaction's working state.
#[derive(Debug)]
pub struct Work<S: Scheme> {
    /// What it is ordered after.
    pub observed: S::Observed,
    /// Records it read on its own shard, directly from the store, in a step that ends with its commit: they only
    /// have to be pinned.
    pub pins: Vec<At>,
    /// Whatever else it read there.
    pub local_reads: Vec<ReadRef>,
    /// Ranges it read there, and absent keys as ranges, if they have to be locked later.
    pub local_ranges: Vec<(TableId, Key, Option<Key>)>,
    /// What it will write, anywhere.
    pub writes: Writes,
    /// What came of the last transaction that has committed.
    pub committed: Committed,
    /// What it read, if the run is recorded.
    pub recorded: Option<Box<Recorded>>,
}

impl<S: Scheme> Default for Work<S> {
    fn default() -> Self {
        Work {
            observed: S::Observed::default(),
            pins: Vec::new(),
            local_reads: Vec::new(),
            local_ranges: Vec::new(),
            writes: Writes::default(),
            committed: Committed::default(),
            recorded: None,
        }
    }
}

impl<S: Scheme> Work<S> {
    /// Forgets everything, keeps the memory.
    pub fn reset(&mut self, record: bool) {
        self.observed = S::Observed::default();
        self.pins.clear();
        self.local_reads.clear();
        self.local_ranges.clear();
        self.writes.clear();
        self.recorded = record.then(Box::default);
    }

    /// Notes that the transaction has committed.
    #[inline]
    pub(crate) fn commit(&mut self, id: TxnId, stamp: Option<Timestamp>, shards: usize) {
        let (writes, recorded) = (self.writes.mark(), self.recorded.take());
        self.committed = Committed { id, stamp, shards, writes, recorded };
    }

    /// What has been done so far.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            writes: self.writes.mark(),
            pins: self.pins.len(),
            reads: self.local_reads.len(),
            ranges: self.local_ranges.len(),
            recorded: self.recorded.clone(),
        }
    }

    /// Forgets what was done since. What was already written and has been overwritten stays overwritten: it
    /// will be overwritten again. What was observed stays observed: it only raises the stamp.
    pub(crate) fn restore(&mut self, saved: Saved) {
        self.writes.entries.truncate(saved.writes);
        self.pins.truncate(saved.pins);
        self.local_reads.truncate(saved.reads);
        self.local_ranges.truncate(saved.ranges);
        self.recorded = saved.recorded;
    }

    /// Notes a read.
    #[inline]
    pub fn record_read(&mut self, column: ColumnGroup, key: &Key, version: Option<Timestamp>) {
        if let Some(recorded) = &mut self.recorded {
            let version = version.map_or(Version::Absent, Version::At);
            recorded.reads.push(Read { column, key: key.clone(), version });
        }
    }
}
