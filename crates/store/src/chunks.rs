//! Growing arrays that never move what they hold.

/// Items per chunk; few where assertions are tested, so that chunks are given back in small worlds.
const CHUNK: usize = if cfg!(debug_assertions) { FIRST } else { 1024 };
/// Items that there is room for in the first chunk at first.
const FIRST: usize = 16;

/// A vector in chunks: growing allocates one more chunk and copies nothing, so a table of millions
/// of rows grows without a pause. Only the first chunk grows itself, for a small table is to be
/// small. The memory of a chunk can be given back: what is read there is then always the same item.
#[derive(Debug, Default)]
pub struct Chunks<T> {
    /// Those without memory have no items.
    chunks: Vec<Box<[T]>>,
    len: usize,
    /// How many chunks have no memory.
    released: usize,
    gone: T,
}

impl<T: Clone + Default> Chunks<T> {
    /// The binary logarithm of the items per chunk.
    pub const SHIFT: u32 = CHUNK.ilog2();

    /// None, with this for all whose memory was given back.
    pub fn new(gone: T) -> Chunks<T> {
        Chunks { gone, ..Chunks::default() }
    }

    /// Gives the memory of a full chunk back.
    pub fn release(&mut self, chunk: usize) {
        self.released += 1;
        self.chunks[chunk] = Box::default();
    }

    /// Gives such a chunk memory. Its items stay what they were read as.
    pub fn restore(&mut self, chunk: usize) {
        self.released -= 1;
        self.chunks[chunk] = vec![self.gone.clone(); CHUNK].into();
    }

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
        let items = match &self.chunks[..] {
            [only] => only.len(),
            chunks => (chunks.len() - self.released) * CHUNK,
        };
        items * size_of::<T>()
    }
}

impl<T> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        debug_assert!(index < self.len);
        self.chunks[index / CHUNK].get(index % CHUNK).unwrap_or(&self.gone)
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
        let bytes = 4025_usize.next_multiple_of(CHUNK) * 4;
        assert_eq!(chunks.bytes(), bytes);
        chunks.release(1);
        let around = [chunks[CHUNK - 1], chunks[CHUNK], chunks[2 * CHUNK]];
        assert_eq!(
            (chunks.bytes(), around),
            (bytes - CHUNK * 4, [CHUNK as u32 + 6, 0, 2 * CHUNK as u32 + 7])
        );
        chunks.restore(1);
        chunks[CHUNK] = 5;
        assert_eq!((chunks.bytes(), chunks[CHUNK], chunks[CHUNK + 1]), (bytes, 5, 0));
    }
}
