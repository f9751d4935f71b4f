//! Memory for values: an arena of size classes.
//!
//! A value of up to [`SMALL_MAX`] bytes takes a slot of its size class (multiples of 16 bytes); its
//! handle is the slot's number in the class, and the class follows from the length, which the
//! record keeps. Freed slots are reused the latest first, so a hot record's next version lands in
//! memory that is still in the cache. Larger values have an allocation of their own. An empty value
//! takes nothing. Of the chunks of a class that hold no value, all but one give their memory back.

use plimsoll_types::Slab;

use crate::vacancies::Vacancies;

/// The largest value that lives in a size class, in bytes.
const SMALL_MAX: usize = 1024;
/// Granularity of the classes, in bytes.
const STEP: usize = 16;
/// About how many bytes one chunk of a class has.
const CHUNK_BYTES: usize = 1 << 17;

#[derive(Debug)]
struct Class {
    /// Bytes per slot.
    slot: usize,
    /// Slots per chunk are `1 << shift`.
    shift: u32,
    /// All have room for as many slots but the first, which grows up to that: a small table takes
    /// little. A chunk without a value may have no memory.
    chunks: Vec<Vec<u8>>,
    free: Vacancies,
    /// Slots handed out so far, freed ones included.
    used: u32,
}

impl Class {
    fn new(slot: usize) -> Class {
        // The class of empty values has no slots.
        let shift = CHUNK_BYTES.checked_div(slot).map_or(0, usize::ilog2);
        Class { slot, shift, chunks: Vec::new(), free: Vacancies::new(shift), used: 0 }
    }

    #[inline]
    fn position(&self, handle: u32) -> (usize, usize) {
        ((handle >> self.shift) as usize, (handle as usize & ((1 << self.shift) - 1)) * self.slot)
    }

    #[inline]
    fn allocate(&mut self) -> u32 {
        if let Some(handle) = self.free.take() {
            return handle;
        }
        if let Some(chunk) = self.free.restore() {
            self.chunks[chunk as usize] = vec![0; self.slot << self.shift];
            return self.free.take().expect("all its slots are free");
        }
        let handle = self.used;
        self.used = handle.checked_add(1).expect("a size class has fewer than 2^32 slots");
        let (chunk, offset) = self.position(handle);
        let whole = self.slot << self.shift;
        match self.chunks.get_mut(chunk) {
            None if chunk == 0 => self.chunks.push(vec![0; self.slot]),
            None => self.chunks.push(vec![0; whole]),
            Some(first) if first.len() == offset => first.resize(whole.min(2 * offset), 0),
            Some(_) => {}
        }
        handle
    }
}

/// The values of all records of a shard.
#[derive(Debug)]
pub struct Values {
    classes: Vec<Class>,
    large: Slab<Box<[u8]>>,
    /// Bytes of the values with an allocation of their own, and the most there have been.
    large_bytes: usize,
    large_most: usize,
}

impl Default for Values {
    fn default() -> Self {
        Values {
            classes: (0..=SMALL_MAX / STEP).map(|class| Class::new(class * STEP)).collect(),
            large: Slab::default(),
            large_bytes: 0,
            large_most: 0,
        }
    }
}

impl Values {
    /// Stores a value; the handle and the length are what it takes to read it.
    #[inline]
    pub fn store(&mut self, value: &[u8]) -> u32 {
        if value.is_empty() {
            return 0;
        }
        if value.len() > SMALL_MAX {
            self.large_bytes += value.len();
            self.large_most = self.large_most.max(self.large_bytes);
            return self.large.insert(value.into());
        }
        let class = &mut self.classes[value.len().div_ceil(STEP)];
        let handle = class.allocate();
        let (chunk, offset) = class.position(handle);
        class.chunks[chunk][offset..offset + value.len()].copy_from_slice(value);
        handle
    }

    /// Reads a value.
    #[inline]
    pub fn get(&self, handle: u32, len: usize) -> &[u8] {
        if len == 0 {
            return &[];
        }
        if len > SMALL_MAX {
            return self.large.get(handle).expect("a record's handle names its value");
        }
        let class = &self.classes[len.div_ceil(STEP)];
        let (chunk, offset) = class.position(handle);
        &class.chunks[chunk][offset..offset + len]
    }

    /// Gives a value's memory back.
    #[inline]
    pub fn free(&mut self, handle: u32, len: usize) {
        if len > SMALL_MAX {
            self.large_bytes -= len;
            self.large.remove(handle);
        } else if len > 0 {
            let class = &mut self.classes[len.div_ceil(STEP)];
            if let Some(chunk) = class.free.put(handle) {
                class.chunks[chunk as usize] = Vec::new();
            }
        }
    }

    /// Bytes of values, and bytes that were freed and are there for others.
    pub fn bytes(&self) -> (usize, usize) {
        let slots = |class: &Class| {
            let gone = class.free.gone() << class.shift;
            (class.slot * (class.used as usize - gone), class.slot * class.free.len())
        };
        let sum = |(used, free), class| (used + slots(class).0, free + slots(class).1);
        let (used, free) = self.classes.iter().fold((0, 0), sum);
        (self.large_bytes + used - free, self.large_most - self.large_bytes + free)
    }

    /// How many bytes a value of this length takes.
    #[inline]
    pub fn footprint(len: usize) -> usize {
        if len > SMALL_MAX { len } else { len.next_multiple_of(STEP) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_length_are_read_back_and_their_slots_reused() {
        let mut values = Values::default();
        let make = |len: usize| -> Vec<u8> { (0..len).map(|i| (i * 7 + len) as u8).collect() };
        let lengths: Vec<usize> = (0..2000).chain([5000, 100_000]).collect();
        let handles: Vec<u32> = lengths.iter().map(|&len| values.store(&make(len))).collect();
        for (&len, &handle) in lengths.iter().zip(&handles) {
            assert_eq!(values.get(handle, len), make(len));
        }
        values.free(handles[40], 40);
        assert_eq!(values.store(&make(33)), handles[40], "33 and 40 bytes share a class");
        assert_eq!(values.get(handles[40], 33), make(33));
    }
}
