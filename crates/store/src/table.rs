//! One table's share on one shard: rows, index, absent cells, range locks.
//!
//! The index maps a key to a *row*; a row has one record per column group, next to each other in
//! one growing array, so a group is found without a second lookup. The head of the key stands in
//! each of them; the rare long key keeps its tail in a side map.
//!
//! Keys that are absent carry marks, too (phantoms are writes of absent keys). In an ordered table
//! every key is covered by exactly one leaf, whose {mark, version} stands for all keys it could
//! hold. A hash table has a fixed array of *absent cells* {mark, insertions}, found by hashing the
//! key: sharing a cell only raises somebody's timestamp or fails a validation that could have
//! passed; memory does not grow with reads.

use std::fmt;
use std::num::NonZeroU64;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{IndexKind, Key, TableSpec, Timestamp};

use crate::chunks::Chunks;
use crate::ranges::RangeLock;
use crate::store::At;
use crate::vacancies::Vacancies;
use crate::{HashIndex, LeafId, Mark, OrderedIndex, Record, RowId, Tails};

/// Absent cells per hash table and shard.
const CELLS: usize = 1024;
/// More than any leaf or cell changes its version by itself.
const EPOCH: u64 = 1 << 40;

/// What stands for an absent key: a leaf of an ordered table, a cell of a hash table. It has a mark
/// and a version that changes when a key is linked there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cover(u32);

plimsoll_types::wire!(struct Cover(0));

impl From<LeafId> for Cover {
    fn from(leaf: LeafId) -> Cover {
        Cover(leaf.0)
    }
}

/// Where a key is, or would be. One word, because a processor cannot forward several small stores
/// to one larger load: copied in memory right after it was found, a struct of two options cost more
/// than the search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place(NonZeroU64);

impl Place {
    const NO_ROW: RowId = RowId::MAX;

    #[inline]
    fn new(row: Option<RowId>, cover: Cover) -> Place {
        debug_assert!(cover.0 < 1 << 31 && row != Some(Place::NO_ROW));
        let word = u64::from(row.unwrap_or(Place::NO_ROW)) << 32 | u64::from(cover.0) << 1 | 1;
        Place(NonZeroU64::new(word).expect("its lowest bit is set"))
    }

    /// The row linked under the key. Its records may all be empty or tombstones.
    #[inline]
    pub fn row(self) -> Option<RowId> {
        let row = (self.0.get() >> 32) as RowId;
        (row != Place::NO_ROW).then_some(row)
    }

    /// What covers the key.
    #[inline]
    pub fn cover(self) -> Cover {
        Cover(self.0.get() as u32 >> 1)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("row", &self.row()).field("cover", &self.cover()).finish()
    }
}

/// Rows and bytes of a table on a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TableMemory {
    /// Linked rows, deleted ones that are not yet collected included.
    pub rows: usize,
    /// Bytes of headers, keys, values, older versions and index.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell<M> {
    mark: M,
    insertions: u64,
}

#[derive(Debug)]
pub(crate) enum Index<M> {
    Hash(HashIndex),
    Ordered(OrderedIndex<M>),
}

#[derive(Debug)]
pub(crate) struct Table<M: Mark> {
    pub spec: TableSpec,
    pub index: Index<M>,
    /// `groups` records per row, each with the head of its key.
    pub records: Chunks<Record<M>>,
    pub groups: usize,
    pub tails: Tails,
    free: Vacancies,
    cells: Box<[Cell<M>]>,
    /// Added to the versions of all leaves and cells.
    pub epoch: u64,
    /// The transactions that have locked ranges, in the order in which they locked the first.
    pub ranges: Vec<RangeLock>,
    tail_bytes: usize,
    /// Bytes of newest values that are not in their records, of older values, and of version nodes.
    pub value_bytes: usize,
    /// Whether anything but loaded rows was ever installed.
    pub was_written: bool,
}

impl<M: Mark> Table<M> {
    pub fn new(spec: TableSpec) -> Table<M> {
        let (index, cells) = match spec.index {
            IndexKind::Hash => (Index::Hash(HashIndex::new()), CELLS),
            IndexKind::Ordered => (Index::Ordered(OrderedIndex::new()), 0),
        };
        Table {
            groups: spec.groups.len(),
            spec,
            index,
            records: Chunks::new(Record::unlinked(0)),
            tails: Tails::default(),
            free: Vacancies::new(Chunks::<Record<M>>::SHIFT),
            cells: vec![Cell::default(); cells].into_boxed_slice(),
            epoch: 0,
            ranges: Vec::new(),
            tail_bytes: 0,
            value_bytes: 0,
            was_written: false,
        }
    }

    /// Where a key is, or would be; a record of this group is what it touches of a row in a hash
    /// table.
    #[inline]
    pub fn find(&mut self, group: u8, key: &Key) -> Place {
        match &mut self.index {
            Index::Hash(index) => {
                let hash = HashIndex::hash(key.head(), key.tail());
                let head = |row| self.records[row as usize * self.groups + usize::from(group)].head;
                let row = index.find(hash, |row| head(row) == key.head() && self.tails.matches(row, key));
                Place::new(row, cell_of(hash))
            }
            Index::Ordered(index) => {
                let place = index.find(key, &self.tails);
                Place::new(place.row, place.leaf.into())
            }
        }
    }

    /// Links a row under a number that no other row has ever had.
    pub fn link_unused(&mut self, key: &Key) -> RowId {
        let row = self.unused();
        self.link_as(row, key);
        row
    }

    /// Links a new row of empty records under an absent key.
    pub fn link(&mut self, key: &Key) -> Place {
        let row = self.free.take().or_else(|| self.restored()).unwrap_or_else(|| self.unused());
        self.link_as(row, key)
    }

    /// A number that no other row has ever had.
    fn unused(&mut self) -> RowId {
        let row = self.records.extend(self.groups) / self.groups;
        let row = u32::try_from(row).ok().filter(|&row| row != Place::NO_ROW);
        row.expect("a table has fewer than 2^32 - 1 rows on a shard")
    }

    /// A number of a row that was, of those whose memory was given back.
    #[cold]
    fn restored(&mut self) -> Option<RowId> {
        let block = self.free.restore()? as usize;
        (block * self.groups..(block + 1) * self.groups).for_each(|chunk| self.records.restore(chunk));
        self.free.take()
    }

    fn link_as(&mut self, row: RowId, key: &Key) -> Place {
        self.tail_bytes += self.tails.insert(row, key);
        // In a hash table the mark that stood for the absent key is the new records' first mark; in
        // an ordered one the leaf's goes on counting.
        let mark = match &self.index {
            Index::Hash(_) => self.cells[cell_of(HashIndex::hash(key.head(), key.tail())).0 as usize].mark,
            Index::Ordered(_) => M::default(),
        };
        for group in 0..self.groups {
            self.records[row as usize * self.groups + group] = Record::new(mark, key);
        }
        let cover = match &mut self.index {
            Index::Hash(index) => {
                let hash = HashIndex::hash(key.head(), key.tail());
                let head = |row| self.records[row as usize * self.groups].head;
                index.insert(hash, row, |row| HashIndex::hash(head(row), self.tails.get(row)));
                let cell = cell_of(hash);
                if !planted(Mutant::LinkUnnoticed) {
                    self.cells[cell.0 as usize].insertions += 1;
                }
                cell
            }
            Index::Ordered(index) => index.insert(key, row, &self.tails).into(),
        };
        Place::new(Some(row), cover)
    }

    /// Unlinks a row and folds its records' marks into what covers its key now.
    pub fn unlink(&mut self, row: RowId) {
        let key = self.key(row);
        let mark = (0..self.groups)
            .map(|group| self.records[row as usize * self.groups + group].mark.get())
            .max()
            .unwrap_or_default();
        let cover = match &mut self.index {
            Index::Hash(index) => {
                let hash = HashIndex::hash(key.head(), key.tail());
                let removed = index.remove(hash, |candidate| candidate == row);
                assert_eq!(removed, Some(row), "a linked row is in the index");
                cell_of(hash)
            }
            Index::Ordered(index) => {
                let (removed, leaf) = index.remove(&key, &self.tails);
                assert_eq!(removed, Some(row), "a linked row is in the index");
                leaf.into()
            }
        };
        self.cover_mark_mut(cover).raise(mark);
        for group in 0..self.groups {
            let record = &mut self.records[row as usize * self.groups + group];
            // Whoever has read it is told so by its key.
            *record = Record::unlinked(record.head);
        }
        self.tail_bytes -= self.tails.remove(row);
        if let Some(block) = self.free.put(row) {
            let block = block as usize;
            (block * self.groups..(block + 1) * self.groups).for_each(|chunk| self.records.release(chunk));
        }
    }

    pub fn key(&self, row: RowId) -> Key {
        let head = self.records[row as usize * self.groups].head;
        if Key::head_is_long(head) {
            Key::from_parts(head, self.tails.get(row))
        } else {
            Key::from_parts(head, None)
        }
    }

    #[inline]
    pub fn cover_version(&self, cover: Cover) -> u64 {
        match &self.index {
            Index::Ordered(index) => index.version(LeafId(cover.0)) + self.epoch,
            Index::Hash(_) => self.cells[cover.0 as usize].insertions + self.epoch,
        }
    }

    /// Changes the versions of all leaves and cells.
    pub fn change_covers(&mut self) {
        if !planted(Mutant::MoveUnnoticed) {
            self.epoch += EPOCH;
        }
    }

    /// An upper bound of the marks of all cells.
    pub fn cell_marks(&self) -> Timestamp {
        self.cells.iter().map(|cell| cell.mark.get()).max().unwrap_or_default()
    }

    /// How many rows there are, those included that are not linked.
    pub fn rows(&self) -> usize {
        self.records.len() / self.groups
    }

    /// Whether a row is linked.
    pub fn is_linked(&self, row: RowId) -> bool {
        !self.records[row as usize * self.groups].is_unlinked()
    }

    #[inline]
    pub fn cover_mark(&self, cover: Cover) -> M {
        match &self.index {
            Index::Ordered(index) => index.mark(LeafId(cover.0)),
            Index::Hash(_) => self.cells[cover.0 as usize].mark,
        }
    }

    #[inline]
    pub fn cover_mark_mut(&mut self, cover: Cover) -> &mut M {
        match &mut self.index {
            Index::Ordered(index) => index.mark_mut(LeafId(cover.0)),
            Index::Hash(_) => &mut self.cells[cover.0 as usize].mark,
        }
    }

    #[inline]
    pub fn record(&self, at: At) -> &Record<M> {
        &self.records[at.row as usize * self.groups + usize::from(at.column.group)]
    }

    #[inline]
    pub fn record_mut(&mut self, at: At) -> &mut Record<M> {
        &mut self.records[at.row as usize * self.groups + usize::from(at.column.group)]
    }

    /// Bytes of rows that were unlinked and are there for others.
    pub fn free_bytes(&self) -> usize {
        self.free.len() * self.groups * size_of::<Record<M>>()
    }

    pub fn memory(&self) -> TableMemory {
        let (rows, index) = match &self.index {
            Index::Hash(index) => (index.len(), index.bytes()),
            Index::Ordered(index) => (index.len(), index.bytes()),
        };
        let cells = self.cells.len() * size_of::<Cell<M>>();
        let bytes = self.records.bytes() + self.tail_bytes + self.value_bytes + index + cells;
        TableMemory { rows, bytes }
    }
}

#[inline]
fn cell_of(hash: u64) -> Cover {
    // The low bits choose the bucket; take others.
    Cover((hash >> 40) as u32 % CELLS as u32)
}
