//! Where a row lives: partition key → slot → shard.
//!
//! A table names how many leading bytes of its primary key are its *partition key*, and a function
//! that turns them into one of [`SLOTS`] slots; or it has each key say how many they are. Equal
//! partition keys of all tables with one function share a slot, so a TPC-C warehouse with
//! everything in it is one place. The *placement* assigns slots to shards. It is the placement map
//! of the cluster, and every shard has one: what it says of others may be out of date.

use crate::{Key, ShardId};

/// Number of slots of a database.
pub const SLOTS: usize = 4096;

/// The unit of placement and of movement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Slot(pub u16);

crate::wire!(struct Slot(0));

/// How a table's rows are spread over the slots. `bytes` counts the leading bytes of the primary
/// key that are the partition key (1 to 8, read as a big-endian integer; `Hash` takes any number).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partitioning {
    /// By a hash of the partition key; `bytes: 0` hashes the whole key.
    Hash {
        /// Length of the partition key in bytes.
        bytes: u8,
    },
    /// The partition key, an integer, modulo the number of slots: neighbours never share a shard by
    /// bad luck.
    Modulo {
        /// Length of the partition key in bytes.
        bytes: u8,
    },
    /// Runs of `span` consecutive integers share a slot.
    Range {
        /// Length of the partition key in bytes.
        bytes: u8,
        /// How many consecutive partition keys share a slot.
        span: u64,
    },
    /// Two integers: each value of the first has `parts` slots in a row, and the second, modulo
    /// `parts`, says which of them.
    Spread {
        /// Length of the first integer in bytes.
        bytes: u8,
        /// Length of the second, which follows it.
        within: u8,
        /// How many slots share what has the same first integer.
        parts: u16,
    },
    /// A copy on every shard that holds data: read without a message, written on all of them.
    Everywhere,
    /// By a hash of a partition key whose length the key itself says, so that one table can have
    /// rows of many kinds. The first four bytes of a key are a number, which tells the kinds
    /// apart. The fifth says what the partition key is:
    ///
    /// | fifth byte | partition key |
    /// |---|---|
    /// | 0 | the whole key |
    /// | n, 1 to 200 | the first five bytes and n more, or as many as there are |
    /// | 201 | the first five bytes and a text with its end, as [`KeyBuilder::text`] writes it |
    ///
    /// A key with any other fifth byte, with fewer bytes, or with a text that does not end, is its
    /// own partition key.
    ///
    /// [`KeyBuilder::text`]: crate::KeyBuilder::text
    Own,
}

/// The fifth byte of a key under [`Partitioning::Own`] whose partition key ends with a text.
const OWN_TEXT: u8 = 201;
/// The bytes that precede what the fifth byte of such a key speaks of, itself included.
const OWN_HEAD: usize = 5;

/// Where the rows of a range of keys may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangePlace {
    /// In this slot: the range lies within one partition key.
    Slot(Slot),
    /// In any slot.
    AnySlot,
    /// On every shard.
    Everywhere,
}

crate::wire!(
    enum Partitioning {
        Hash { bytes } = 0,
        Modulo { bytes } = 1,
        Range { bytes, span } = 2,
        Spread { bytes, within, parts } = 3,
        Everywhere = 4,
        Own = 5,
    }
);

impl Partitioning {
    /// The slot of a row, or `None` if every shard has a copy.
    #[inline]
    pub fn slot(&self, key: &Key) -> Option<Slot> {
        Some(match *self {
            Partitioning::Hash { bytes } => hashed(key, bytes.into()),
            Partitioning::Own => hashed(key, own_bytes(key)),
            Partitioning::Modulo { bytes } => Partitioning::modulo(key.leading_int(usize::from(bytes))),
            Partitioning::Range { bytes, span } => {
                Partitioning::range(key.leading_int(usize::from(bytes)), span)
            }
            Partitioning::Spread { bytes, within, parts } => {
                let both = key.leading_int(usize::from(bytes + within));
                let shift = 8 * u32::from(within);
                Partitioning::spread(both >> shift, both & ((1 << shift) - 1), parts)
            }
            Partitioning::Everywhere => return None,
        })
    }

    /// Where the rows of a range may be whose first key is `low`, and whose end is below `high` or
    /// the end of the table.
    pub fn range_place(&self, low: &Key, high: Option<&Key>) -> RangePlace {
        let (Some(slot), Some(bytes)) = (self.slot(low), self.partition_bytes(low)) else {
            return RangePlace::Everywhere;
        };
        if bytes == 0 || low.len() < bytes {
            return RangePlace::AnySlot;
        }
        let end = Key::new(&low.to_bytes()[..bytes]).prefix_end();
        let is_within = end.is_none_or(|end| high.is_some_and(|high| *high <= end));
        if is_within { RangePlace::Slot(slot) } else { RangePlace::AnySlot }
    }

    /// How many leading bytes of a key decide its slot, 0 for all of them; `None` if every shard
    /// has a copy.
    fn partition_bytes(&self, key: &Key) -> Option<usize> {
        match *self {
            Partitioning::Hash { bytes }
            | Partitioning::Modulo { bytes }
            | Partitioning::Range { bytes, .. } => Some(bytes.into()),
            Partitioning::Spread { bytes, within, .. } => Some(usize::from(bytes) + usize::from(within)),
            Partitioning::Own => Some(own_bytes(key)),
            Partitioning::Everywhere => None,
        }
    }

    /// The slot of a partition key under [`Partitioning::Modulo`].
    #[inline]
    pub fn modulo(partition_key: u64) -> Slot {
        Slot((partition_key % SLOTS as u64) as u16)
    }

    /// The slot of two integers under [`Partitioning::Spread`].
    #[inline]
    pub fn spread(first: u64, second: u64, parts: u16) -> Slot {
        let parts = u64::from(parts);
        Partitioning::modulo(first.wrapping_mul(parts).wrapping_add(second % parts))
    }

    /// The slot of a partition key under [`Partitioning::Range`].
    #[inline]
    pub fn range(partition_key: u64, span: u64) -> Slot {
        Slot((partition_key / span % SLOTS as u64) as u16)
    }
}

/// The slot of the first `bytes` bytes of a key, by their hash; 0: of all of them.
#[inline]
fn hashed(key: &Key, bytes: usize) -> Slot {
    let mut hash = match bytes {
        1..=8 => mix(key.leading_int(bytes)),
        0 | 9..=15 => {
            let head = if bytes == 0 { key.head() } else { key.head() >> (128 - 8 * bytes) };
            mix((head >> 64) as u64 ^ mix(head as u64))
        }
        _ => mix((key.head() >> 64) as u64 ^ mix(key.head() as u64)),
    };
    if bytes == 0 || bytes > 15 {
        let tail = key.tail().unwrap_or(&[]);
        let end = if bytes == 0 { tail.len() } else { tail.len().min(bytes - 15) };
        for &byte in &tail[..end] {
            hash = mix(hash ^ u64::from(byte));
        }
    }
    Slot((hash % SLOTS as u64) as u16)
}

/// The length of a key's partition key under [`Partitioning::Own`]; 0 if that is the whole key.
#[inline]
fn own_bytes(key: &Key) -> usize {
    match key.byte(OWN_HEAD - 1) {
        Some(more @ 1..OWN_TEXT) => OWN_HEAD + usize::from(more),
        Some(OWN_TEXT) => text_end(key, OWN_HEAD).unwrap_or(0),
        _ => 0,
    }
}

/// Where a text in a key ends that begins at `position`: behind the first zero byte and the one
/// that follows it, unless the two are a zero byte of the text. `None` if it does not end.
fn text_end(key: &Key, mut position: usize) -> Option<usize> {
    loop {
        match (key.byte(position)?, key.byte(position + 1)) {
            (0, Some(0xff)) => position += 2,
            (0, next) => return next.map(|_| position + 2),
            _ => position += 1,
        }
    }
}

/// A well-mixed 64-bit hash of an integer (the finalizer of SplitMix64).
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
    x ^ x >> 31
}

/// Which shard owns each slot.
///
/// A slot moves from its owner to another shard by decision of its owner alone, and has a *term*
/// that grows by one each time. So of two maps that say different things of a slot the one with the
/// larger term is right, maps are [merged](Placement::merge) slot by slot, and nobody has to put
/// all moves of a cluster in an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    owners: Vec<ShardId>,
    /// How many shards hold data, whether or not they own anything at the moment.
    holders: usize,
    /// By slot: how often it has moved.
    terms: Vec<u32>,
    /// By shard: tells its set of slots from others.
    fingerprints: Vec<u64>,
}

/// A slot that has moved: where it is, and its term.
pub type Moved = (Slot, ShardId, u32);

impl Placement {
    /// Deals the slots out to `shards` shards in turn.
    pub fn even(shards: usize) -> Placement {
        assert!(shards > 0, "a placement has at least one shard");
        let owners = (0..SLOTS).map(|slot| ShardId((slot % shards) as u16)).collect();
        let fingerprints = vec![0; shards];
        let mut placement = Placement { owners, holders: shards, terms: vec![0; SLOTS], fingerprints };
        for slot in 0..SLOTS {
            placement.fingerprints[slot % shards] ^= fingerprint(Slot(slot as u16));
        }
        placement
    }

    /// The shards that hold data, in order.
    pub fn holders(&self) -> impl ExactSizeIterator<Item = ShardId> + use<> {
        (0..self.holders).map(|shard| ShardId(shard as u16))
    }

    /// Whether a shard holds data.
    pub fn is_holder(&self, shard: ShardId) -> bool {
        shard.index() < self.holders
    }

    /// The shards that own anything, in order.
    pub fn shards(&self) -> Vec<ShardId> {
        let mut owns = vec![false; self.holders];
        self.owners.iter().for_each(|owner| owns[owner.index()] = true);
        self.holders().filter(|shard| owns[shard.index()]).collect()
    }

    /// The shard that owns `slot`.
    #[inline]
    pub fn shard(&self, slot: Slot) -> ShardId {
        self.owners[usize::from(slot.0) % SLOTS]
    }

    /// How many slots a shard owns.
    pub fn slots(&self, shard: ShardId) -> usize {
        self.owners.iter().filter(|&&owner| owner == shard).count()
    }

    /// How often a slot has moved.
    pub fn term(&self, slot: Slot) -> u32 {
        self.terms.get(usize::from(slot.0)).copied().unwrap_or_default()
    }

    /// The version of the map: how many moves it knows of.
    pub fn version(&self) -> u64 {
        self.terms.iter().map(|&term| u64::from(term)).sum()
    }

    /// Differs for different sets of slots of a shard, but by very bad luck.
    #[inline]
    pub fn fingerprint(&self, shard: ShardId) -> u64 {
        self.fingerprints.get(shard.index()).copied().unwrap_or_default()
    }

    /// All slots that have ever moved.
    pub fn moved(&self) -> Vec<Moved> {
        let slots = (0..).map(Slot).zip(&self.terms).filter(|(_, term)| **term > 0);
        slots.map(|(slot, &term)| (slot, self.shard(slot), term)).collect()
    }

    /// Learns where a slot is, if that is news. Returns whether it was.
    pub fn merge(&mut self, (slot, owner, term): Moved) -> bool {
        let known = usize::from(slot.0) < SLOTS && self.is_holder(owner);
        // The last of all terms would leave no other.
        if !known || term <= self.term(slot) || term == u32::MAX {
            return false;
        }
        let before = std::mem::replace(&mut self.owners[usize::from(slot.0)], owner);
        self.fingerprints[before.index()] ^= fingerprint(slot);
        self.fingerprints[owner.index()] ^= fingerprint(slot);
        self.terms[usize::from(slot.0)] = term;
        true
    }
}

fn fingerprint(slot: Slot) -> u64 {
    mix(u64::from(slot.0) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_partition_keys_are_dealt_out_evenly() {
        let placement = Placement::even(3);
        let shards: Vec<_> = (1..=6).map(|w| placement.shard(Partitioning::modulo(w)).0).collect();
        assert_eq!(shards, [1, 2, 0, 1, 2, 0]);
        let by_range = Partitioning::Range { bytes: 8, span: 100 };
        assert_eq!(by_range.slot(&Key::of_u64(99)), Some(Slot(0)));
        assert_eq!(by_range.slot(&Key::of_u64(100)), Some(Slot(1)));
    }

    #[test]
    fn what_is_spread_has_slots_in_a_row_and_the_second_integer_says_which() {
        let spread = Partitioning::Spread { bytes: 4, within: 1, parts: 10 };
        let slot = |a: u32, b: u8| spread.slot(&Key::build().u32(a).u8(b).u32(7).finish());
        assert_eq!(
            [(3, 0), (3, 9), (3, 10), (4, 0)].map(|(a, b)| slot(a, b)),
            [30, 39, 30, 40].map(|s| Some(Slot(s)))
        );
        assert_eq!(slot(3, 9), Some(Partitioning::spread(3, 9, 10)));
        assert_eq!(slot(410, 0), Some(Slot(4)), "slots are used again");
    }

    #[test]
    fn a_hashed_row_follows_its_partition_key_only() {
        let by_prefix = Partitioning::Hash { bytes: 4 };
        let slot = |a: u32, b: u32| by_prefix.slot(&Key::build().u32(a).u32(b).finish());
        assert_eq!(slot(1, 2), slot(1, 3));
        let slots: std::collections::BTreeSet<_> = (0..100).map(|a| slot(a, 0)).collect();
        assert!(slots.len() > 90, "100 partition keys fall on {} slots", slots.len());
        let whole = Partitioning::Hash { bytes: 0 };
        assert_ne!(
            whole.slot(&Key::new(&[1; 20])),
            whole.slot(&Key::new(&[[1; 19].as_slice(), &[2]].concat()))
        );
    }

    /// Keys under [`Partitioning::Own`]: of two tables, of every kind of partition key, short,
    /// whole and with more behind it.
    fn own_keys() -> Vec<Key> {
        let texts: [&[u8]; 6] = [b"", b"a", b"\0", b"a\0\x01", b"a longer text than fits", &[0xff; 20]];
        let mut keys = vec![Key::MIN, Key::new(&[0, 0, 64]), Key::build().u32(64).finish()];
        for table in [64, 65] {
            let begun = |kind: u8| Key::build().u32(table).u8(kind);
            for kind in [0, 1, 4, 8, 10, 11, 20, 200, OWN_TEXT, 202, 255] {
                for more in [0, 1, 3, 4, 5, 10, 11, 12, 30, 200, 201] {
                    for byte in [0, 1, 7, 0xff] {
                        keys.push(begun(kind).bytes(&vec![byte; more]).finish());
                    }
                    keys.push(begun(kind).bytes(&(1..=more as u8).collect::<Vec<u8>>()).finish());
                }
            }
            for text in texts {
                for more in [&[] as &[u8], &[0], &[0, 1], &[7; 30]] {
                    keys.push(begun(OWN_TEXT).byte_string(text).bytes(more).finish());
                }
            }
        }
        keys
    }

    /// The partition key of a key, written out as the table of [`Partitioning::Own`] says it.
    fn own_part(bytes: &[u8]) -> &[u8] {
        let ends = |at: &usize| bytes[*at] == 0 && bytes.get(at + 1) != Some(&0xff);
        match bytes.get(4) {
            Some(&more @ 1..=200) => &bytes[..bytes.len().min(5 + usize::from(more))],
            // A zero byte of the text is followed by ff, so no zero byte but the last is not.
            Some(201) => match (5..bytes.len()).find(ends) {
                Some(at) if at + 1 < bytes.len() => &bytes[..at + 2],
                _ => bytes,
            },
            _ => bytes,
        }
    }

    #[test]
    fn keys_that_name_the_same_partition_key_share_a_slot() {
        let own = Partitioning::Own;
        let mut slots = std::collections::BTreeMap::new();
        let keys = own_keys();
        for key in &keys {
            let bytes = key.to_bytes();
            let slot = own.slot(key).expect("a row is on one shard");
            let first = *slots.entry(own_part(&bytes).to_vec()).or_insert(slot);
            assert_eq!(slot, first, "{key:?}");
        }
        let distinct: std::collections::BTreeSet<_> = slots.values().collect();
        assert!(distinct.len() * 10 > slots.len() * 8, "{} slots of {}", distinct.len(), slots.len());
        let text = |text: &str, more: u32| Key::build().u32(64).u8(201).text(text).u32(more).finish();
        assert_eq!(own.slot(&text("a\0b", 1)), own.slot(&text("a\0b", 2)));
        assert_ne!(own.slot(&text("a\0b", 1)), own.slot(&text("a\0c", 1)));
    }

    #[test]
    fn a_range_is_in_one_slot_if_it_lies_within_one_partition_key() {
        let own = Partitioning::Own;
        let mut keys = own_keys();
        keys.sort();
        keys.dedup();
        let keys: Vec<Key> = keys.into_iter().step_by(3).collect();
        let (mut within, mut across) = (0, 0);
        for (place, low) in keys.iter().enumerate() {
            for (length, high) in keys[place + 1..].iter().map(Some).chain([None]).enumerate() {
                match own.range_place(low, high) {
                    RangePlace::Slot(slot) => {
                        let mut inside = keys[place..=place + length].iter();
                        assert!(inside.all(|key| own.slot(key) == Some(slot)), "{low:?}..{high:?}");
                        within += 1;
                    }
                    other => {
                        assert_eq!(other, RangePlace::AnySlot);
                        across += 1;
                    }
                }
            }
        }
        assert!(within > 100 && across > 100, "{within} ranges within partition keys, {across} across");
        for prefix in [
            Key::build().u32(64).u8(4).u32(7).finish(),
            Key::build().u32(64).u8(201).text("a\0b").finish(),
            Key::build().u32(64).u8(200).bytes(&[0xff; 200]).finish(),
        ] {
            let place = own.range_place(&prefix, prefix.prefix_end().as_ref());
            assert_eq!(Some(place), own.slot(&prefix).map(RangePlace::Slot), "{prefix:?}");
            assert_eq!(own.range_place(&prefix, None), RangePlace::AnySlot);
            let table = Key::build().u32(64).finish();
            assert_eq!(own.range_place(&table, table.prefix_end().as_ref()), RangePlace::AnySlot);
        }
        let (low, high) = (Key::of_u64(7), Key::of_u64(8));
        assert_eq!(Partitioning::Everywhere.range_place(&low, Some(&high)), RangePlace::Everywhere);
        let hash = |bytes| Partitioning::Hash { bytes }.range_place(&low, Some(&high));
        assert_eq!((hash(0), hash(9)), (RangePlace::AnySlot, RangePlace::AnySlot));
        assert_eq!(Some(hash(8)), Partitioning::Hash { bytes: 8 }.slot(&low).map(RangePlace::Slot));
    }

    #[test]
    fn maps_that_learn_the_same_moves_in_any_order_are_equal() {
        let moves = [(Slot(3), ShardId(0), 1), (Slot(3), ShardId(2), 2), (Slot(4), ShardId(0), 1)];
        let after = |order: &[usize]| {
            let mut placement = Placement::even(3);
            let news = order.iter().filter(|&&at| placement.merge(moves[at])).count();
            (placement, news)
        };
        let (placement, news) = after(&[0, 1, 2]);
        assert_eq!((news, placement.version()), (3, 3));
        assert_eq!([3, 4].map(|slot| placement.shard(Slot(slot)).0), [2, 0]);
        assert_eq!(placement.moved(), [(Slot(3), ShardId(2), 2), (Slot(4), ShardId(0), 1)]);
        for order in [[2, 1, 0], [1, 0, 2]] {
            assert_eq!(after(&order), (placement.clone(), 2), "an old move is no news");
        }
        let mut again = placement.clone();
        assert_eq!(placement.shards().len(), 3);
        for slot in (0..SLOTS as u16).map(Slot).filter(|&slot| placement.shard(slot) == ShardId(1)) {
            assert!(again.merge((slot, ShardId(2), 1)));
        }
        assert_eq!((again.shards(), again.fingerprint(ShardId(1))), (vec![ShardId(0), ShardId(2)], 0));
        assert_ne!(again.fingerprint(ShardId(2)), placement.fingerprint(ShardId(2)));
        assert!(!again.merge((Slot(SLOTS as u16), ShardId(0), 1)) && !again.merge((Slot(0), ShardId(3), 9)));
    }
}
