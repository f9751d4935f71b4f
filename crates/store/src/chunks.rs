//! Growing arrays that never move what they hold.

/// Items per chunk.
const CHUNK: usize = 1024;
/// Items that there is room for in the first chunk at first.
const FIRST: usize = 16;

/// A vector in chunks: growing allocates one more chunk and copies nothing, so a table of millions
/// of rows grows without a pause. Only the first chunk grows itself, for a small table is to be
/// small.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: Vec<Box<[T]>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Default> Chunks<T> {
    /// Appends `items` default items and tells the position of the first.
    pub fn extend(&mut self, items: usize) -> usize {
        let first = self.len;
        self.len += items;
        if first < CHUNK {
            let mut chunk = self.chunks.pop().unwrap_or_default().into_vec();
            let room = self.len.next_power_of_two().clamp(FIRST, CHUNK);
            if chunk.len() < room {
                chunk.reserve_exact(room - chunk.len());
                chunk.resize_with(room, T::default);
            }
            self.chunks.push(chunk.into_boxed_slice());
        }
        while self.chunks.len() * CHUNK < self.len {
            self.chunks.push(std::iter::repeat_with(T::default).take(CHUNK).collect());
        }
        first
    }
}

impl<T> Chunks<T> {
    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Memory taken, in bytes.
    pub fn bytes(&self) -> usize {
        // Only the first can be smaller than the others, while there are no others.
        self.chunks.first().map_or(0, |first| first.len()) * self.chunks.len() * size_of::<T>()
    }
}

impl<T> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }
}

impl<T> std::ops::IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_where_it_is_while_it_grows_from_little() {
        let mut chunks: Chunks<u32> = Chunks::default();
        assert_eq!(chunks.bytes(), 0);
        let mut held = Vec::new();
        for items in [1, 3, 12, 1, 50, 900, 57, 1, 3000] {
            let first = chunks.extend(items);
            (first..first + items).for_each(|at| chunks[at] = at as u32 + 7);
            held.extend(first..first + items);
            if held.len() == 16 {
                assert_eq!(chunks.bytes(), 64);
            }
        }
        assert_eq!(held, (0..4025).collect::<Vec<_>>());
        assert!(held.into_iter().all(|at| chunks[at] == at as u32 + 7));
        assert_eq!(chunks.bytes(), 4 * 4096);
    }
}
