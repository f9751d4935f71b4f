//! Numbers for names.
//!
//! An open-addressing table of (hash, number) pairs: a lookup touches a key only if 32 bits of its
//! hash agree, and growing touches none. For twenty million records that is 256 MiB, and half the
//! time of a map that keeps the keys.

use std::hash::Hasher;

use plimsoll_types::{ColumnGroup, Key};

use crate::index::NONE;

/// Gives each record a number, in the order of first mention.
#[derive(Default)]
pub(crate) struct Interner<'h> {
    records: Vec<(ColumnGroup, &'h Key)>,
    slots: Vec<u64>,
}

impl<'h> Interner<'h> {
    const EMPTY: u64 = u64::MAX;

    /// The number of a record, a new one if it has none yet.
    pub fn intern(&mut self, column: ColumnGroup, key: &'h Key) -> u32 {
        if self.records.len() * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let tag = Interner::hash(column, key) >> 32;
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == Interner::EMPTY {
                let record = self.records.len() as u32;
                assert!(record < NONE, "a history has fewer than 2^32 records");
                self.slots[at] = tag << 32 | u64::from(record);
                self.records.push((column, key));
                return record;
            }
            if slot >> 32 == tag {
                let (known_column, known_key) = self.records[slot as u32 as usize];
                if known_column == column && known_key == key {
                    return slot as u32;
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The records by their numbers.
    pub fn into_records(self) -> Vec<(ColumnGroup, &'h Key)> {
        self.records
    }

    fn grow(&mut self) {
        let slots = vec![Interner::EMPTY; (self.slots.len() * 2).max(1 << 10)];
        let mask = slots.len() - 1;
        for slot in std::mem::replace(&mut self.slots, slots) {
            if slot != Interner::EMPTY {
                let mut at = (slot >> 32) as usize & mask;
                while self.slots[at] != Interner::EMPTY {
                    at = (at + 1) & mask;
                }
                self.slots[at] = slot;
            }
        }
    }

    fn hash(column: ColumnGroup, key: &Key) -> u64 {
        let mut hash = mix(u64::from(column.table.0) << 8 | u64::from(column.group));
        hash = mix(hash ^ (key.head() >> 64) as u64);
        hash = mix(hash ^ key.head() as u64);
        for &byte in key.tail().unwrap_or(&[]) {
            hash = mix(hash ^ u64::from(byte));
        }
        hash
    }
}

/// Hashes transaction ids, which are small integers that nobody chooses to do harm.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The finalizer of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
    x ^ x >> 31
}
