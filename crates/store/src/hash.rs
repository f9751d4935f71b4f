//! The hash index: a table from keys to row numbers that grows one bucket at a time.
//!
//! Linear hashing (Litwin, VLDB 1980). A table that doubles and rehashes stops a shard for as long
//! as that takes, a second at a hundred million rows; here an insert splits at most *one* bucket,
//! and nothing else ever moves. Buckets are addressed by the low bits of the hash: `level` bits for
//! those that have not been split in the current round, one more for those that have and for the
//! new ones.
//!
//! # A worked example
//! Six buckets, 0 to 5: rounds 1, 2, 4 are complete, and in the round from 4 to 8 buckets 0 and 1
//! have been split, their other halves being 4 and 5.
//! * *Find* a key with hash `..110`. Three bits say bucket 6, which does not exist yet: two bits
//!   say bucket 2, not split so far.
//! * *Insert* one key too many for six buckets. Bucket 6 is created from bucket 2 = 6 - 4: every
//!   row of bucket 2, and of the overflow buckets chained to it, is hashed again, and those with
//!   `..110` move to bucket 6. Which bucket is split has nothing to do with which one is crowded;
//!   chains wait for their turn.
//!
//! # Layout
//! A bucket is one cache line: up to twelve rows, a tag of eight hash bits for each, and the link
//! to an overflow bucket. Keys are not stored: the caller compares the key of a row that has the
//! right tag, which is hardly ever another than the right one, and hashes rows anew when a bucket
//! is split.
//!
//! # Invariants
//! * A chain is packed: only its last bucket has empty slots, and no overflow bucket is empty.
//! * A row is in the chain of the bucket that its hash addresses.
//! * `len <= buckets * LOAD`, so chains are short if hashes are uniform.
//!
//! # Left out
//! The table does not shrink (tables of a database rarely do), but removal frees overflow buckets.
//! The hash has no secret: whoever may choose all keys can make chains long.

use std::fmt;

use crate::RowId;
use crate::slab::Slab;

/// Slots of a bucket.
const SLOTS: usize = 12;
/// Rows per bucket, on average, beyond which a bucket is split. Measured with 100,000 rows: with 6
/// to 10, rows are found equally fast (13 ns, comparing the key included); an absent key costs 7 ns
/// to 13 ns, as chains grow, and a row takes 11.5 to 8.5 bytes.
const LOAD: usize = 8;
/// No bucket follows.
const NONE: u32 = u32::MAX;
/// Marks the number of an overflow bucket.
const OVERFLOW: u32 = 1 << 31;
/// The tag of an empty slot.
const EMPTY: u8 = 0;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    /// Eight bits of each row's hash; [`EMPTY`] from the first empty slot on.
    tags: [u8; SLOTS],
    /// The next bucket of the chain, with the bit [`OVERFLOW`] set, or [`NONE`].
    next: u32,
    rows: [RowId; SLOTS],
}

impl Bucket {
    const NEW: Bucket = Bucket { tags: [EMPTY; SLOTS], next: NONE, rows: [0; SLOTS] };

    /// The slots with this tag, as bits.
    #[inline]
    fn matches(&self, tag: u8) -> u32 {
        let mut slots = 0;
        for (slot, &other) in self.tags.iter().enumerate() {
            slots |= u32::from(other == tag) << slot;
        }
        slots
    }

    fn len(&self) -> usize {
        (self.matches(EMPTY) | 1 << SLOTS).trailing_zeros() as usize
    }
}

/// A hash table of rows; see the module's description.
pub struct HashIndex {
    buckets: Slab<Bucket, 10>,
    overflow: Slab<Bucket, 6>,
    /// The number of buckets, rounded up to a power of two, less one.
    mask: u64,
    len: usize,
}

impl Default for HashIndex {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HashIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashIndex of {} rows in {} bytes", self.len, self.bytes())
    }
}

impl HashIndex {
    /// An empty index.
    pub fn new() -> HashIndex {
        let mut buckets = Slab::new();
        buckets.allocate(Bucket::NEW);
        HashIndex { buckets, overflow: Slab::new(), mask: 0, len: 0 }
    }

    /// How many rows are linked.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no row is linked.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of all buckets.
    pub fn bytes(&self) -> usize {
        self.buckets.bytes() + self.overflow.bytes()
    }

    /// The hash of a key, given as the head and tail it consists of. The same on every machine and
    /// in every run. For a short key one multiplication to 128 bits, folded, so that each bit of
    /// the result depends on the low bits of an integer as well as on the high ones.
    #[inline]
    pub fn hash(head: u128, tail: Option<&[u8]>) -> u64 {
        let hash = fold((head >> 64) as u64 ^ 0x9e37_79b9_7f4a_7c15, head as u64 ^ 0xd1b5_4a32_d192_ed03);
        match tail {
            None => hash,
            Some(tail) => hash_tail(hash, tail),
        }
    }

    /// The row with this hash that is the `same`.
    #[inline]
    pub fn find(&self, hash: u64, same: impl Fn(RowId) -> bool) -> Option<RowId> {
        let tag = tag(hash);
        let mut bucket = &self.buckets[self.address(hash)];
        loop {
            let mut slots = bucket.matches(tag);
            while slots != 0 {
                let row = bucket.rows[slots.trailing_zeros() as usize % SLOTS];
                if same(row) {
                    return Some(row);
                }
                slots &= slots - 1;
            }
            if bucket.next == NONE {
                return None;
            }
            bucket = self.bucket(bucket.next);
        }
    }

    /// The row that [`HashIndex::find`] would most likely return, without a look at its key; any
    /// number if there is none.
    #[inline]
    pub fn likely(&self, hash: u64) -> RowId {
        let bucket = &self.buckets[self.address(hash)];
        bucket.rows[bucket.matches(tag(hash)).trailing_zeros() as usize % SLOTS]
    }

    /// Links a row, which must not be linked, under the hash of its key. May split a bucket, and
    /// then asks for the hashes of the rows in it.
    pub fn insert(&mut self, hash: u64, row: RowId, hash_of: impl Fn(RowId) -> u64) {
        if self.len == self.buckets.slots() * LOAD {
            self.split(hash_of);
        }
        self.push(self.address(hash), tag(hash), row);
        self.len += 1;
    }

    /// Unlinks the row with this hash that is the `same`.
    pub fn remove(&mut self, hash: u64, same: impl Fn(RowId) -> bool) -> Option<RowId> {
        let (mut before, mut last) = (NONE, self.address(hash));
        let (id, slot) = loop {
            let bucket = self.bucket(last);
            let slots = bucket.matches(tag(hash));
            let found = (0..SLOTS).find(|&slot| slots & 1 << slot != 0 && same(bucket.rows[slot]));
            if let Some(slot) = found {
                break (last, slot);
            }
            if bucket.next == NONE {
                return None;
            }
            (before, last) = (last, bucket.next);
        };
        let row = self.bucket(id).rows[slot];
        // The chain's last row fills the gap.
        while self.bucket(last).next != NONE {
            (before, last) = (last, self.bucket(last).next);
        }
        let filler = self.bucket(last).len() - 1;
        let (filler_tag, filler_row) = (self.bucket(last).tags[filler], self.bucket(last).rows[filler]);
        let bucket = self.bucket_mut(id);
        bucket.tags[slot] = filler_tag;
        bucket.rows[slot] = filler_row;
        self.bucket_mut(last).tags[filler] = EMPTY;
        if filler == 0 && last & OVERFLOW != 0 {
            self.overflow.free(last & !OVERFLOW);
            self.bucket_mut(before).next = NONE;
        }
        self.len -= 1;
        Some(row)
    }

    /// All rows, in an order that depends on nothing but the calls made before.
    pub fn iter(&self) -> impl Iterator<Item = RowId> + '_ {
        (0..self.buckets.slots() as u32).flat_map(|first| self.chain(first)).flat_map(|bucket| {
            let filled = bucket.tags.iter().zip(bucket.rows).take_while(|&(&tag, _)| tag != EMPTY);
            filled.map(|(_, row)| row)
        })
    }

    /// The bucket that a hash addresses.
    #[inline]
    fn address(&self, hash: u64) -> u32 {
        let id = hash & self.mask;
        // Not created yet: still a part of the bucket it will be split from.
        let id = if id < self.buckets.slots() as u64 { id } else { id & (self.mask >> 1) };
        id as u32
    }

    #[inline]
    fn bucket(&self, id: u32) -> &Bucket {
        if id & OVERFLOW == 0 { &self.buckets[id] } else { &self.overflow[id & !OVERFLOW] }
    }

    #[inline]
    fn bucket_mut(&mut self, id: u32) -> &mut Bucket {
        if id & OVERFLOW == 0 { &mut self.buckets[id] } else { &mut self.overflow[id & !OVERFLOW] }
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = &Bucket> {
        std::iter::successors(Some(self.bucket(first)), |bucket| {
            (bucket.next != NONE).then(|| self.bucket(bucket.next))
        })
    }

    /// Appends a row to a chain.
    fn push(&mut self, mut id: u32, tag: u8, row: RowId) {
        while self.bucket(id).next != NONE {
            id = self.bucket(id).next;
        }
        let mut slot = self.bucket(id).len();
        if slot == SLOTS {
            let next = self.overflow.allocate(Bucket::NEW) | OVERFLOW;
            self.bucket_mut(id).next = next;
            (id, slot) = (next, 0);
        }
        let bucket = self.bucket_mut(id);
        bucket.tags[slot] = tag;
        bucket.rows[slot] = row;
    }

    /// Creates one more bucket, from the rows it will share with the bucket that held them so far.
    fn split(&mut self, hash_of: impl Fn(RowId) -> u64) {
        let new = self.buckets.allocate(Bucket::NEW);
        assert!(new & OVERFLOW == 0, "a hash index has fewer than 2^31 buckets");
        self.mask = (u64::from(new) + 1).next_power_of_two() - 1;
        let old = new & (self.mask >> 1) as u32;
        let mut bucket = std::mem::replace(&mut self.buckets[old], Bucket::NEW);
        loop {
            for slot in 0..bucket.len() {
                let row = bucket.rows[slot];
                let hash = hash_of(row);
                debug_assert_eq!(
                    tag(hash),
                    bucket.tags[slot],
                    "a row is hashed as it was when it was linked"
                );
                let to = self.address(hash);
                debug_assert!(to == old || to == new, "a bucket splits in two");
                self.push(to, bucket.tags[slot], row);
            }
            if bucket.next == NONE {
                return;
            }
            let next = bucket.next & !OVERFLOW;
            bucket = self.overflow[next];
            self.overflow.free(next);
        }
    }
}

/// The bits that tell the rows of a bucket apart: not those that brought them there.
#[inline]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(EMPTY + 1)
}

/// Both halves of a product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn hash_tail(mut hash: u64, tail: &[u8]) -> u64 {
    for part in tail.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        hash = fold(hash ^ u64::from_le_bytes(bytes), 0xd6e8_feb8_6659_fd93);
    }
    // Zeros at the end of a tail count.
    fold(hash ^ tail.len() as u64, 0xa076_1d64_78bd_642f)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use plimsoll_types::Key;
    use proptest::prelude::*;

    use super::*;

    impl HashIndex {
        fn check(&self, hash_of: impl Fn(RowId) -> u64) {
            let mut rows = 0;
            for first in 0..self.buckets.slots() as u32 {
                for bucket in self.chain(first) {
                    let len = bucket.len();
                    assert!(len == SLOTS || bucket.next == NONE, "only the last bucket has empty slots");
                    assert!(
                        len > 0 || std::ptr::eq(bucket, self.bucket(first)),
                        "no overflow bucket is empty"
                    );
                    assert!(bucket.tags[len..].iter().all(|&tag| tag == EMPTY), "empty slots come last");
                    for &row in &bucket.rows[..len] {
                        assert_eq!(self.address(hash_of(row)), first, "a row is where its hash says");
                    }
                    rows += len;
                }
            }
            assert_eq!(rows, self.len);
        }

        /// The average number of buckets looked at to find a row.
        fn chain_length(&self) -> f64 {
            let looks = |first| {
                self.chain(first).enumerate().map(|(i, bucket)| (i + 1) * bucket.len()).sum::<usize>()
            };
            (0..self.buckets.slots() as u32).map(looks).sum::<usize>() as f64 / self.len as f64
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_index_behaves_like_a_map(
            // Few hashes, poor ones, or good ones; the row is the key.
            hashes in 0..3u8,
            steps in prop::collection::vec((0..5u8, 0..1000u32), 1..2000),
        ) {
            let hash_of = |row: RowId| match hashes {
                0 => u64::from(row % 3),
                1 => u64::from(row / 40) << 56 | u64::from(row),
                _ => HashIndex::hash(Key::of_u64(row.into()).head(), None),
            };
            let (mut index, mut model) = (HashIndex::new(), BTreeMap::new());
            for (verb, row) in steps {
                let present = model.contains_key(&row);
                prop_assert_eq!(index.find(hash_of(row), |other| other == row), present.then_some(row));
                if verb < 3 && !present {
                    index.insert(hash_of(row), row, hash_of);
                    model.insert(row, ());
                } else if verb >= 3 {
                    prop_assert_eq!(index.remove(hash_of(row), |other| other == row), present.then_some(row));
                    model.remove(&row);
                }
            }
            index.check(hash_of);
            let mut rows: Vec<RowId> = index.iter().collect();
            rows.sort();
            prop_assert_eq!(rows, model.into_keys().collect::<Vec<_>>());
        }
    }

    /// Integers, a customer (warehouse, district, customer), and a text: keys as workloads have
    /// them.
    fn keys() -> [fn(u32) -> Key; 5] {
        [
            |n| Key::of_u64(n.into()),
            |n| Key::of_u64(u64::from(n) << 20),
            |n| Key::build().u32(n / 30_000).u8((n / 3000 % 10) as u8).u32(n % 3000).finish(),
            |n| Key::build().u16(7).u64(n.into()).u32(n / 7).finish(),
            |n| Key::build().text("a common beginning").u32(n).finish(),
        ]
    }

    #[test]
    fn a_million_rows_have_short_chains_and_each_insert_moves_few_of_them() {
        let bound = SLOTS * 4;
        for key in keys() {
            let hash_of = |row| {
                let key = key(row);
                HashIndex::hash(key.head(), key.tail())
            };
            let (mut index, mut moved_max) = (HashIndex::new(), 0);
            for row in 0..1_000_000 {
                let moved = Cell::new(0);
                index.insert(hash_of(row), row, |row| {
                    moved.set(moved.get() + 1);
                    hash_of(row)
                });
                moved_max = moved_max.max(moved.get());
            }
            assert!(moved_max <= bound, "one insert moved {moved_max} rows");
            assert!(index.chain_length() < 1.1, "{} buckets per find", index.chain_length());
            assert!(index.bytes() < 12_000_000, "{} bytes", index.bytes());
            index.check(hash_of);
            let wrong_tags = Cell::new(0);
            for row in 0..100_000 {
                let found = index.find(hash_of(row), |other| {
                    wrong_tags.set(wrong_tags.get() + u32::from(other != row));
                    other == row
                });
                assert_eq!(found, Some(row));
            }
            assert!(
                wrong_tags.get() < 4000,
                "{} rows with the right tag and the wrong key",
                wrong_tags.get()
            );
        }
    }

    #[test]
    fn equal_calls_give_equal_orders() {
        let build = || {
            let hash_of = |row| HashIndex::hash(Key::of_u64(u64::from(row)).head(), None);
            let mut index = HashIndex::new();
            (0..5000).for_each(|row| index.insert(hash_of(row), row, hash_of));
            (0..5000).step_by(3).for_each(|row| {
                index.remove(hash_of(row), |other| other == row);
            });
            index.iter().collect::<Vec<_>>()
        };
        assert_eq!(build(), build());
    }

    #[test]
    fn removal_gives_overflow_buckets_back() {
        let mut index = HashIndex::new();
        for _ in 0..3 {
            (0..1000).for_each(|row| index.insert(77, row, |_| 77));
            (0..1000).for_each(|row| assert_eq!(index.remove(77, |other| other == row), Some(row)));
            assert_eq!(index.iter().count(), 0);
        }
        assert!(index.overflow.slots() <= 1000 / SLOTS + 1);
    }

    #[test]
    fn a_bucket_is_a_cache_line_and_hashes_are_the_same_everywhere() {
        assert_eq!((size_of::<Bucket>(), align_of::<Bucket>()), (64, 64));
        let key = Key::build().u64(1).u64(2).finish();
        assert_eq!(HashIndex::hash(Key::of_u64(1).head(), None), HASH_OF_1);
        assert_eq!(HashIndex::hash(key.head(), key.tail()), HASH_OF_1_2);
    }

    const HASH_OF_1: u64 = 17_783_646_252_423_418_972;
    const HASH_OF_1_2: u64 = 16_193_244_093_152_063_110;
}
