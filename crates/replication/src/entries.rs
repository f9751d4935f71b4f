//! Entries that are not yet written.

/// Maximum length of an entry, in bytes.
pub const ENTRY_MAX: usize = 1 << 30;

/// Bytes of the length before each entry.
pub(crate) const PREFIX: usize = 4;

/// Entries that are not yet written, in their order: one buffer of byte strings, each behind its
/// length. It is what the body of a batch is.
#[derive(Clone, Default, Debug)]
pub struct Entries {
    buffer: Vec<u8>,
    count: u64,
}

impl Entries {
    /// Adds the entry that `write` appends to the buffer, of at most [`ENTRY_MAX`] bytes. `write`
    /// leaves what is there already as it is.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.buffer.len();
        self.buffer.extend([0; PREFIX]);
        write(&mut self.buffer);
        let length = self.buffer.len() - begin - PREFIX;
        assert!(length <= ENTRY_MAX, "an entry has at most {ENTRY_MAX} bytes, not {length}");
        self.buffer[begin..begin + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
        self.count += 1;
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// How many bytes they take, with their lengths.
    pub fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all; the memory stays.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.count = 0;
    }

    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }
}

/// The entry at the front of some bytes and what is behind it, if a whole one is there.
pub(crate) fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<PREFIX>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}
