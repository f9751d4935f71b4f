//! Nodes and buckets of indexes, by number.

use std::ops::{Index, IndexMut};

/// Numbered slots in chunks of `1 << SHIFT`: growing never moves more than one small chunk.
pub(crate) struct Slab<T, const SHIFT: u32> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T, const SHIFT: u32> Slab<T, SHIFT> {
    const CHUNK: usize = 1 << SHIFT;

    pub fn new() -> Self {
        Slab { chunks: Vec::new(), free: Vec::new() }
    }

    /// Stores a value in a free slot, the last one freed, or in a new one.
    pub fn allocate(&mut self, value: T) -> u32 {
        if let Some(id) = self.free.pop() {
            self[id] = value;
            return id;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == Self::CHUNK) {
            // A small table takes little; only its first chunk grows in place.
            let capacity = if self.chunks.is_empty() { 1 } else { Self::CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let id = self.slots();
        assert!(id < u32::MAX as usize, "a slab has fewer than 2^32 slots");
        self.chunks.last_mut().expect("a chunk with room was just pushed").push(value);
        id as u32
    }

    /// Makes a slot available; its value stays readable until the slot is allocated again.
    pub fn free(&mut self, id: u32) {
        self.free.push(id);
    }

    /// How many slots there are, free ones included.
    pub fn slots(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::CHUNK + last.len())
    }

    /// How many of them are not free.
    pub fn used(&self) -> usize {
        self.slots() - self.free.len()
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> usize {
        let slots =
            self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * Self::CHUNK + last.capacity());
        slots * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>() + self.free.capacity() * 4
    }
}

impl<T, const SHIFT: u32> Index<u32> for Slab<T, SHIFT> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.chunks[id as usize >> SHIFT][id as usize % Self::CHUNK]
    }
}

impl<T, const SHIFT: u32> IndexMut<u32> for Slab<T, SHIFT> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize >> SHIFT][id as usize % Self::CHUNK]
    }
}
