//! Growing arrays that never move what they hold.

/// Items per chunk.
const CHUNK: usize = 1024;

/// A vector in chunks: growing allocates one more chunk and copies nothing, so a table of millions of rows
/// grows without a pause.
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
        while self.chunks.len() * CHUNK < self.len {
            self.chunks.push(std::iter::repeat_with(T::default).take(CHUNK).collect());
        }
        first
    }
}

impl<T> Chunks<T> {
    /// Memory taken, in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * size_of::<T>()
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
