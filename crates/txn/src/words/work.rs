//! The reads and writes of a running transaction.

use std::collections::BTreeMap;
use std::iter;
use std::ops::Bound;

use plimsoll_store::{At, Place, VALUE_MAX};
use plimsoll_types::history::{Read, Version};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::{Input, Malformed, Sink, Wire};
use plimsoll_types::{Abort, ColumnGroup, Key, Order, ShardId, TableId, Timestamp, TxnId};

use crate::attempt::{Committed, Recorded};
use crate::fetched::{Range, ReadRef};
use crate::timestamp::Scheme;

/// What a buffered write does to its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Writes a value, whether or not the record is present.
    Put,
    /// Writes a value; the record must be absent.
    Insert,
    /// Writes a tombstone.
    Delete,
}

plimsoll_types::wire!(
    enum Change {
        Put = 0,
        Insert = 1,
        Delete = 2,
    }
);

/// A buffered write of one record.
#[derive(Clone, Debug)]
pub struct Write {
    /// Table and column group.
    pub column: ColumnGroup,
    /// The row's key.
    pub key: Key,
    /// What it does.
    pub change: Change,
    /// The shard that holds the record.
    pub shard: ShardId,
    /// The transaction's read of the record, if any: it must still be current when the lock is
    /// taken.
    pub expected: Option<ReadRef>,
    /// The record's place; known once the write was checked.
    pub place: Option<Place>,
    /// Whether the transaction already holds its lock.
    pub locked: bool,
    /// Whether this is a copy of the same write on another shard, which is the one that counts.
    copy: bool,
    /// Position and length of the value in the buffer of the [`Writes`].
    pub(crate) value: (u32, u32),
}

// The receiver of a lock request knows its own shard and finds the place; the value follows with
// the stamp.
plimsoll_types::wire!(struct Write { column, key, change, expected; shard, place, locked, copy, value });

/// Up to this many writes are searched by their tags, one after the other; TPC-C's Delivery has
/// 130.
const FEW: usize = 256;
/// Tags that are compared before the entries of any of them are.
const TAGS: usize = 8;

/// The buffered writes of a transaction, at most one per record and copy of it. Copies stand behind
/// their first write.
#[derive(Debug, Default)]
pub struct Writes {
    entries: Vec<Write>,
    /// A hash of each entry's record: an entry is larger than a cache line, and eight tags are half
    /// of one.
    tags: Vec<u32>,
    bytes: Vec<u8>,
    /// By record: the position of its write; empty while there are few writes.
    index: BTreeMap<(ColumnGroup, Key), usize>,
    /// One bit per hashed record: if its bit is clear, a read need not look for an own write.
    filter: u64,
    /// How many entries are copies.
    copies: usize,
}

/// A record's bit in the filter, and its tag.
#[inline]
fn hashed(column: ColumnGroup, key: &Key) -> (u64, u32) {
    let head = key.head();
    let mixed = ((head >> 64) as u64 ^ (head as u64).rotate_left(17) ^ u64::from(column.table.0))
        .wrapping_mul(0x9e3779b97f4a7c15);
    (1 << (mixed >> 58), (mixed >> 26) as u32)
}

/// The entries of a range of a column group, in this order of their keys.
pub(crate) fn in_order<'a, V>(
    records: &'a BTreeMap<(ColumnGroup, Key), V>,
    column: ColumnGroup,
    low: &Key,
    high: Option<&Key>,
    order: Order,
) -> impl Iterator<Item = (&'a Key, &'a V)> + use<'a, V> {
    let end = match (high, column.group.checked_add(1), column.table.0.checked_add(1)) {
        (Some(high), ..) => Bound::Excluded((column, high.max(low).clone())),
        (None, Some(next), _) => Bound::Excluded((column.table.group(next), Key::MIN)),
        (None, None, Some(next)) => Bound::Excluded((TableId(next).row(), Key::MIN)),
        (None, None, None) => Bound::Unbounded,
    };
    let mut range = records.range((Bound::Included((column, low.clone())), end));
    let next = move || match order {
        Order::Ascending => range.next(),
        Order::Descending => range.next_back(),
    };
    iter::from_fn(next).map(|((_, key), value)| (key, value))
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

    /// What all writes count together when they are installed.
    #[inline]
    pub(crate) fn written_bytes(&self) -> u64 {
        plimsoll_store::written_bytes(0) * self.entries.len() as u64 + self.bytes.len() as u64
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
        let (bit, tag) = hashed(column, key);
        if self.filter & bit == 0 {
            return None;
        }
        if !self.index.is_empty() {
            return self.indexed(column, key);
        }
        for (number, tags) in self.tags.chunks(TAGS).enumerate() {
            if !tags.iter().fold(false, |any, &other| any | (other == tag)) {
                continue;
            }
            let first = number * TAGS;
            let same = |write: &Write| write.column == column && write.key == *key;
            if let Some(place) = self.entries[first..first + tags.len()].iter().position(same) {
                return Some(first + place);
            }
        }
        None
    }

    /// The transaction's own write of a record, if there is one.
    #[inline]
    pub fn find(&self, column: ColumnGroup, key: &Key) -> Option<&Write> {
        self.position(column, key).map(|position| &self.entries[position])
    }

    /// The own writes in a range of a table's column group, in this order of their keys. The cost
    /// grows with the number of writes that the caller takes, once there are many.
    pub fn in_range<'a>(
        &'a self,
        column: ColumnGroup,
        low: &Key,
        high: Option<&Key>,
        order: Order,
    ) -> impl Iterator<Item = &'a Write> + use<'a> {
        let mut few = Vec::new();
        if self.index.is_empty() {
            let inside = |key: &Key| key >= low && high.is_none_or(|high| key < high);
            few.extend(
                (self.entries.iter())
                    .filter(|write| write.column == column && inside(&write.key) && !write.copy),
            );
            few.sort_unstable_by(|a, b| order.compare(&a.key, &b.key));
        }
        let many = in_order(&self.index, column, low, high, order);
        few.into_iter().chain(many.map(|(_, &position)| &self.entries[position]))
    }

    /// The records on one shard that were read before they were written, sorted: a shard that locks
    /// the write checks the read as well.
    pub fn overwritten(&self, shard: ShardId) -> Vec<ReadRef> {
        let read = self.of(shard).filter_map(|write| write.expected);
        let mut read: Vec<ReadRef> = read.filter(ReadRef::is_record).collect();
        read.sort_unstable();
        read
    }

    /// How many writes are locked, if they are locked in order.
    pub fn locked(&self) -> usize {
        self.entries.partition_point(|write| write.locked)
    }

    /// The writes from a mark on.
    pub fn since(&mut self, mark: usize) -> &mut [Write] {
        &mut self.entries[mark..]
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
        let (bit, tag) = hashed(column, key);
        self.filter |= bit;
        self.tags.push(tag);
        if self.entries.len() >= FEW {
            self.index_next(column, key);
        }
        let (key, expected, place) = (key.clone(), None, None);
        let (locked, copy) = (false, false);
        self.entries.push_mut(Write { column, key, change, shard, expected, place, locked, copy, value })
    }

    /// Buffers the last pushed write for another shard as well, which has a copy of the record.
    pub fn push_copy(&mut self, shard: ShardId) -> &mut Write {
        let first = self.entries.last().expect("a write was pushed").clone();
        self.copies += 1;
        self.tags.push(*self.tags.last().expect("and has a tag"));
        self.entries.push_mut(Write { shard, expected: None, copy: true, ..first })
    }

    #[cold]
    fn indexed(&self, column: ColumnGroup, key: &Key) -> Option<usize> {
        self.index.get(&(column, key.clone())).copied()
    }

    #[cold]
    fn forget_index(&mut self) {
        self.index.clear();
    }

    /// Indexes the write that is pushed next; with the first such write, all earlier ones as well.
    #[cold]
    fn index_next(&mut self, column: ColumnGroup, key: &Key) {
        if self.index.is_empty() {
            let earlier = self.entries.iter().enumerate().filter(|(_, write)| !write.copy);
            self.index.extend(earlier.map(|(position, write)| ((write.column, write.key.clone()), position)));
        }
        self.index.insert((column, key.clone()), self.entries.len());
    }

    /// A further write of a record: replaces the earlier one, but keeps what that one expected.
    /// `None` if there is no earlier one; [`Abort::User`] if it inserts a record that the earlier
    /// one has written.
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
        let change = match (self.entries[position].change, change) {
            (Change::Put | Change::Insert, Change::Insert) => return Some(Err(Abort::User)),
            (Change::Insert, Change::Put) => Change::Insert,
            (_, Change::Delete) => Change::Delete,
            // An insert after a delete is a put.
            _ => Change::Put,
        };
        let (first, behind) = self.entries[position..].split_first_mut().expect("it is there");
        for earlier in std::iter::once(first).chain(behind.iter_mut().take_while(|write| write.copy)) {
            (earlier.change, earlier.value) = (change, value);
        }
        Some(Ok(()))
    }

    fn store(&mut self, value: &[u8]) -> (u32, u32) {
        let start = u32::try_from(self.bytes.len()).expect("a transaction writes less than 4 GiB");
        self.bytes.extend_from_slice(value);
        (start, value.len() as u32)
    }

    /// The position behind the last write.
    pub fn mark(&self) -> usize {
        self.entries.len()
    }

    /// How many records are written.
    pub fn records(&self) -> usize {
        self.entries.len() - self.copies
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

    /// Forgets the writes from `mark` on.
    fn truncate(&mut self, mark: usize) {
        if mark <= FEW {
            self.index.clear();
        } else {
            for write in &self.entries[mark..] {
                self.index.remove(&(write.column, write.key.clone()));
            }
        }
        self.copies -= self.entries[mark..].iter().filter(|write| write.copy).count();
        self.entries.truncate(mark);
        self.tags.truncate(mark);
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.tags.clear();
        self.bytes.clear();
        if !self.index.is_empty() {
            self.forget_index();
        }
        (self.filter, self.copies) = (0, 0);
    }
}

/// A transaction's writes on one shard, packed for a message.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// The records, each with the length of its value; `None` deletes.
    writes: Vec<(ColumnGroup, Key, Option<u32>)>,
    /// The values, concatenated.
    bytes: Vec<u8>,
}

impl Packed {
    /// What all values count when they are written; nothing for deletions.
    pub(crate) fn written_bytes(&self) -> u64 {
        let lengths = self.writes.iter().filter_map(|(_, _, len)| *len);
        lengths.map(|len| plimsoll_store::written_bytes(len as usize)).sum()
    }

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

/// The values come last; their lengths give the end.
impl Wire for Packed {
    fn encode(&self, out: &mut impl Sink) {
        self.writes.encode(out);
        out.put(&self.bytes);
    }

    fn decode(input: &mut Input<'_>) -> Result<Packed, Malformed> {
        let writes = Vec::<(ColumnGroup, Key, Option<u32>)>::decode(input)?;
        let mut end = 0;
        for length in writes.iter().filter_map(|(_, _, length)| *length) {
            if length as usize > VALUE_MAX {
                return Err(Malformed("a value longer than any record has"));
            }
            end += length as usize;
        }
        Ok(Packed { writes, bytes: input.take(end)?.to_vec() })
    }
}

/// A point to which a transaction's work can return.
pub(crate) struct Saved {
    writes: usize,
    pins: usize,
    reads: usize,
    ranges: usize,
    recorded: Option<Box<Recorded>>,
}

/// A running transaction's reads, writes and observed stamps.
#[derive(Debug)]
pub struct Footprint<S: Scheme> {
    /// What it is ordered after.
    pub observed: S::Observed,
    /// Records that it read on its own shard, directly from the store, in a step that ends with its
    /// commit: they only have to be pinned.
    pub pins: Vec<At>,
    /// All its other reads there.
    pub local_reads: Vec<ReadRef>,
    /// Ranges that it read there, and absent keys as ranges, if they must be locked later.
    pub(crate) local_ranges: Vec<Range>,
    /// Its writes, on all shards.
    pub writes: Writes,
    /// The result of the last transaction that has committed.
    pub committed: Committed,
    /// Its reads, if the run is recorded.
    pub recorded: Option<Box<Recorded>>,
}

impl<S: Scheme> Default for Footprint<S> {
    fn default() -> Self {
        Footprint {
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

impl<S: Scheme> Footprint<S> {
    /// Forgets everything, but keeps the memory.
    pub fn reset(&mut self, record: bool) {
        self.observed = S::Observed::default();
        self.pins.clear();
        self.local_reads.clear();
        self.local_ranges.clear();
        self.writes.clear();
        self.recorded = record.then(Box::default);
    }

    /// Whether the transaction needs a stamp. Without writes it needs one only to pin its reads, or
    /// for its session: an oracle's next snapshot must contain what it has read.
    #[inline]
    pub(crate) fn needs_stamp(&self) -> bool {
        if planted(Mutant::ReadersWithoutPin) && S::WAITS {
            return !self.writes.is_empty();
        }
        !self.writes.is_empty() || size_of::<S::Mark>() > 0 || S::ORACLE
    }

    /// Notes that the transaction has committed.
    #[inline]
    pub(crate) fn commit(&mut self, id: TxnId, stamp: Option<Timestamp>, shards: usize) {
        let (writes, recorded) = (self.writes.records(), self.recorded.take());
        self.committed = Committed { id, stamp, shards, writes, recorded };
    }

    /// Notes the present state of the work.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            writes: self.writes.mark(),
            pins: self.pins.len(),
            reads: self.local_reads.len(),
            ranges: self.local_ranges.len(),
            recorded: self.recorded.clone(),
        }
    }

    /// Forgets everything done since `saved`. Earlier writes that were overwritten since keep their
    /// new values: they will be overwritten again. Observed stamps stay observed: they only raise
    /// the stamp.
    pub(crate) fn restore(&mut self, saved: Saved) {
        self.writes.truncate(saved.writes);
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

#[cfg(test)]
mod tests {
    use plimsoll_types::wire::{encoded, whole};

    use plimsoll_types::Order::{Ascending, Descending};

    use super::*;
    use crate::timestamps::Dst;

    const TABLE: TableId = TableId(3);

    fn key(number: usize) -> Key {
        Key::of_u64(number as u64)
    }

    fn push(work: &mut Footprint<Dst>, number: usize) {
        work.writes.push(TABLE.row(), &key(number), Change::Put, ShardId(0), &number.to_be_bytes());
    }

    fn value(work: &Footprint<Dst>, number: usize) -> Option<Vec<u8>> {
        let write = work.writes.find(TABLE.row(), &key(number))?;
        assert_eq!((write.column, &write.key), (TABLE.row(), &key(number)));
        work.writes.value(write).map(<[u8]>::to_vec)
    }

    fn check(work: &Footprint<Dst>, writes: usize) {
        for number in 0..2 * FEW {
            let expected = (number < writes).then(|| number.to_be_bytes().to_vec());
            assert_eq!(value(work, number), expected, "{number} of {writes}");
        }
        let (low, high) = (key(3), key(2 * FEW));
        let range =
            |high, order| work.writes.in_range(TABLE.row(), &low, high, order).map(|write| write.key.clone());
        assert!(range(Some(&high), Ascending).eq((3..writes.min(2 * FEW)).map(key)), "{writes} writes");
        assert!(range(Some(&high), Descending).eq((3..writes.min(2 * FEW)).rev().map(key)));
        assert!(range(None, Descending).eq((3..writes).rev().map(key)));
        for order in [Ascending, Descending] {
            assert_eq!(range(Some(&low), order).count(), 0);
            assert_eq!(work.writes.in_range(TABLE.group(1), &Key::MIN, None, order).count(), 0);
        }
    }

    #[test]
    fn writes_are_found_however_many_there_are() {
        let mut work: Footprint<Dst> = Footprint::default();
        for writes in 0..FEW + 40 {
            check(&work, writes);
            push(&mut work, writes);
        }
        work.reset(false);
        check(&work, 0);
    }

    #[test]
    fn an_overwritten_write_is_found_with_its_last_value() {
        for writes in [FEW, FEW + 1, 3 * FEW] {
            let mut work: Footprint<Dst> = Footprint::default();
            (0..writes).for_each(|number| push(&mut work, number));
            for number in 0..writes {
                let again = work.writes.again(TABLE.row(), &key(number), Change::Put, b"again");
                assert_eq!(again, Some(Ok(())));
                assert_eq!(value(&work, number), Some(b"again".to_vec()));
            }
            assert_eq!(work.writes.again(TABLE.row(), &key(writes), Change::Put, b"new"), None);
            assert_eq!(work.writes.mark(), writes);
        }
    }

    #[test]
    fn a_write_and_its_copies_are_one_record_wherever_they_are() {
        for before in [0, FEW - 2, FEW - 1, FEW, FEW + 1] {
            let mut work: Footprint<Dst> = Footprint::default();
            (0..before).for_each(|number| push(&mut work, number));
            let saved = work.save();
            for number in before..before + 2 {
                push(&mut work, number);
                work.writes.push_copy(ShardId(1));
                work.writes.push_copy(ShardId(2));
            }
            let high = key(before + 2);
            let found = work.writes.in_range(TABLE.row(), &key(before), Some(&high), Ascending);
            assert_eq!(found.count(), 2, "a scan meets each once");
            assert_eq!((work.writes.mark(), work.writes.records()), (before + 6, before + 2));
            assert_eq!(work.writes.again(TABLE.row(), &key(before), Change::Put, b"again"), Some(Ok(())));
            assert_eq!(work.writes.again(TABLE.row(), &key(before + 1), Change::Delete, b""), Some(Ok(())));
            for shard in [1, 2].map(ShardId) {
                let written: Vec<_> = work.writes.of(shard).map(|write| work.writes.value(write)).collect();
                assert_eq!(written, [Some(&b"again"[..]), None], "after {before} others");
            }
            work.restore(saved);
            check(&work, before);
            assert_eq!((work.writes.mark(), work.writes.records()), (before, before));
        }
    }

    #[test]
    fn packed_writes_arrive_with_their_values_and_none_is_longer_than_a_record_can_be() {
        let mut work: Footprint<Dst> = Footprint::default();
        (0..3).for_each(|number| push(&mut work, number));
        work.writes.again(TABLE.row(), &key(1), Change::Delete, b"");
        work.writes.iter_mut().for_each(|write| write.locked = true);
        let sent = work.writes.pack(ShardId(0));
        let bytes = encoded(&sent);
        let arrived: Packed = whole(&bytes).expect("what is encoded is decoded");
        assert!(sent.iter().eq(arrived.iter()));
        assert_eq!(
            arrived.iter().map(|(.., value)| value.map(<[u8]>::len)).collect::<Vec<_>>(),
            [Some(8), None, Some(8)]
        );
        assert!(whole::<Packed>(&bytes[..bytes.len() - 1]).is_err());
        let long = encoded(&vec![(TABLE.row(), key(1), Some(VALUE_MAX as u32 + 1))]);
        assert_eq!(
            whole::<Packed>(&long).expect_err("it is too long").0,
            "a value longer than any record has"
        );
    }

    #[test]
    fn what_was_restored_is_as_it_was_when_it_was_saved() {
        for before in [0, FEW - 1, FEW, FEW + 1, FEW + 40] {
            for after in [0, 1, 2, FEW] {
                let mut work: Footprint<Dst> = Footprint::default();
                (0..before).for_each(|number| push(&mut work, number));
                let saved = work.save();
                (before..before + after).for_each(|number| push(&mut work, number));
                work.restore(saved);
                check(&work, before);
                (before..before + after).for_each(|number| push(&mut work, number));
                check(&work, before + after);
            }
        }
    }
}
