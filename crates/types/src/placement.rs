//! Where a row lives: partition key → slot → shard.
//!
//! A table names how many leading bytes of its primary key are its *partition key*, and a function that
//! turns them into one of [`SLOTS`] slots. Equal partition keys of all tables with one function share a
//! slot, so a TPC-C warehouse with everything in it is one place. The *placement* assigns slots to shards.

use crate::{Key, ShardId};

/// Number of slots of a database.
pub const SLOTS: usize = 4096;

/// The unit of placement and of movement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Slot(pub u16);

/// How a table's rows are spread over the slots. `bytes` counts the leading bytes of the primary key
/// that are the partition key (1 to 8, read as a big-endian integer; `Hash` takes any number).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partitioning {
    /// By a hash of the partition key; `bytes: 0` hashes the whole key.
    Hash {
        /// Length of the partition key in bytes.
        bytes: u8,
    },
    /// The partition key, an integer, modulo the number of slots: neighbours never share a shard by bad luck.
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
    /// Immutable: loaded before serving, copied to every shard, without marks or validation.
    Everywhere,
}

impl Partitioning {
    /// The slot of a row, or `None` if every shard has a copy.
    #[inline]
    pub fn slot(&self, key: &Key) -> Option<Slot> {
        Some(match *self {
            Partitioning::Hash { bytes } => {
                let mut hash = match bytes {
                    1..=8 => mix(key.leading_int(usize::from(bytes))),
                    0 | 9..=15 => {
                        let head =
                            if bytes == 0 { key.head() } else { key.head() >> (128 - 8 * u32::from(bytes)) };
                        mix((head >> 64) as u64 ^ mix(head as u64))
                    }
                    _ => mix((key.head() >> 64) as u64 ^ mix(key.head() as u64)),
                };
                if bytes == 0 || bytes > 15 {
                    let tail = key.tail().unwrap_or(&[]);
                    let end = if bytes == 0 { tail.len() } else { tail.len().min(usize::from(bytes) - 15) };
                    for &byte in &tail[..end] {
                        hash = mix(hash ^ u64::from(byte));
                    }
                }
                Slot((hash % SLOTS as u64) as u16)
            }
            Partitioning::Modulo { bytes } => Partitioning::modulo(key.leading_int(usize::from(bytes))),
            Partitioning::Range { bytes, span } => {
                Partitioning::range(key.leading_int(usize::from(bytes)), span)
            }
            Partitioning::Everywhere => return None,
        })
    }

    /// The slot of a partition key under [`Partitioning::Modulo`].
    #[inline]
    pub fn modulo(partition_key: u64) -> Slot {
        Slot((partition_key % SLOTS as u64) as u16)
    }

    /// The slot of a partition key under [`Partitioning::Range`].
    #[inline]
    pub fn range(partition_key: u64, span: u64) -> Slot {
        Slot((partition_key / span % SLOTS as u64) as u16)
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    shards: Vec<ShardId>,
}

impl Placement {
    /// Deals the slots out to `shards` shards in turn.
    pub fn even(shards: usize) -> Placement {
        assert!(shards > 0, "a placement has at least one shard");
        Placement { shards: (0..SLOTS).map(|slot| ShardId((slot % shards) as u16)).collect() }
    }

    /// The shards that own anything, in order.
    pub fn shards(&self) -> Vec<ShardId> {
        let mut shards = self.shards.clone();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// The shard that owns `slot`.
    #[inline]
    pub fn shard(&self, slot: Slot) -> ShardId {
        self.shards[usize::from(slot.0) % SLOTS]
    }
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
}
