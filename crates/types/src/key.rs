//! Order-preserving keys.
//!
//! A key is a string of bytes compared lexicographically. Its first 15 bytes and a length live in
//! one 128-bit integer, the *head*, so that comparing, hashing and copying a short key is integer
//! work: the bytes sit at the top, most significant first, and the lowest byte holds the length, or
//! [`LONG`] when more bytes follow in the *tail*. Zero padding cannot confuse `"a"` with `"a\0"`:
//! their heads agree but for the length, and the shorter key is the smaller. A long key compares
//! above the short key that is its 15-byte prefix, because `LONG` exceeds every length; two long
//! keys with one head are ordered by their tails. So the derived order of `(head, tail)` *is* the
//! order of the byte strings.

use std::cmp::Ordering;
use std::fmt;

use crate::wire::{Input, Malformed, Sink, Wire};

/// Maximum length of a key that users may give, in bytes.
pub const KEY_MAX: usize = 4096;
/// How many bytes fit into the head.
const SHORT: usize = 15;
/// The head's length byte of a key with a tail.
const LONG: u8 = 16;

/// An order-preserving key: any byte string, compared as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key {
    head: u128,
    tail: Option<Box<[u8]>>,
}

impl Key {
    /// The empty key, smaller than all others.
    pub const MIN: Key = Key { head: 0, tail: None };

    /// A key of exactly these bytes.
    pub fn new(bytes: &[u8]) -> Key {
        let (short, tail) = bytes.split_at(bytes.len().min(SHORT));
        let mut head = [0; SHORT + 1];
        head[..short.len()].copy_from_slice(short);
        let long = bytes.len() > SHORT;
        head[SHORT] = if long { LONG } else { short.len() as u8 };
        Key { head: u128::from_be_bytes(head), tail: long.then(|| tail.into()) }
    }

    /// Starts a composite key; see [`KeyBuilder`].
    #[inline]
    pub fn build() -> KeyBuilder {
        KeyBuilder { head: 0, len: 0, tail: Vec::new() }
    }

    /// A key of one unsigned integer.
    #[inline]
    pub fn of_u64(number: u64) -> Key {
        Key { head: u128::from(number) << 64 | 8, tail: None }
    }

    /// The first 15 bytes and the length, as one integer that orders short keys completely.
    #[inline]
    pub fn head(&self) -> u128 {
        self.head
    }

    /// The bytes after the first 15, if there are any.
    #[inline]
    pub fn tail(&self) -> Option<&[u8]> {
        self.tail.as_deref()
    }

    /// Puts a key together from what [`Key::head`] and [`Key::tail`] gave.
    #[inline]
    pub fn from_parts(head: u128, tail: Option<&[u8]>) -> Key {
        debug_assert_eq!(Key::head_is_long(head), tail.is_some(), "a head says whether a tail follows");
        Key { head, tail: tail.map(Box::from) }
    }

    /// Whether a key with this head has a tail.
    #[inline]
    pub fn head_is_long(head: u128) -> bool {
        head as u8 == LONG
    }

    /// How many bytes the key has.
    pub fn len(&self) -> usize {
        match &self.tail {
            Some(tail) => SHORT + tail.len(),
            None => usize::from(self.head as u8),
        }
    }

    /// Whether this is [`Key::MIN`].
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = self.head.to_be_bytes();
        let mut bytes = head[..self.len().min(SHORT)].to_vec();
        bytes.extend_from_slice(self.tail().unwrap_or(&[]));
        bytes
    }

    /// One of the key's bytes; `None` behind its end.
    #[inline]
    pub fn byte(&self, position: usize) -> Option<u8> {
        match &self.tail {
            Some(tail) if position >= SHORT => tail.get(position - SHORT).copied(),
            _ => (position < self.len()).then(|| (self.head >> (8 * (SHORT - position))) as u8),
        }
    }

    /// The first `bytes` (at most 8) bytes as an unsigned integer: a partition key.
    #[inline]
    pub fn leading_int(&self, bytes: usize) -> u64 {
        debug_assert!((1..=8).contains(&bytes));
        (self.head >> (128 - 8 * bytes)) as u64
    }

    /// The smallest key above this one.
    pub fn just_after(&self) -> Key {
        let mut bytes = self.to_bytes();
        bytes.push(0);
        Key::new(&bytes)
    }

    /// The smallest key above every key that starts with this one; `None` if there is no such key
    /// (all bytes are 0xff).
    pub fn prefix_end(&self) -> Option<Key> {
        let mut bytes = self.to_bytes();
        while bytes.last() == Some(&0xff) {
            bytes.pop();
        }
        *bytes.last_mut()? += 1;
        Some(Key::new(&bytes))
    }
}

/// Two bytes that tell the length, and the bytes.
impl Wire for Key {
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        u16::try_from(self.len()).expect("a key is shorter than 64 KiB").encode(out);
        out.put(&self.head.to_be_bytes()[..self.len().min(SHORT)]);
        if let Some(tail) = &self.tail {
            out.put(tail);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Key, Malformed> {
        let length = u16::decode(input)?;
        Ok(Key::new(input.take(usize::from(length))?))
    }
}

/// In which order a range of keys is walked over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// From the smallest key to the largest.
    #[default]
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

crate::wire!(
    enum Order {
        Ascending = 0,
        Descending = 1,
    }
);

impl Order {
    /// Whether one key comes before another.
    #[inline]
    pub fn compare(self, one: &Key, other: &Key) -> Ordering {
        match self {
            Order::Ascending => one.cmp(other),
            Order::Descending => other.cmp(one),
        }
    }
}

impl fmt::Debug for Key {
    /// Hexadecimal, in groups of four bytes: integers of composite keys stay readable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.to_bytes().chunks(4).enumerate() {
            if i > 0 {
                f.write_str("'")?;
            }
            for byte in group {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Builds a composite key whose order is that of its components, compared one after the other.
/// [`Key::read`] takes it apart.
///
/// ```
/// use plimsoll_types::Key;
/// let line = |order: u32, number: u8| Key::build().u32(7).u32(order).u8(number).finish();
/// assert!(line(9, 15) < line(10, 1));
/// assert!(Key::build().text("a").u8(9).finish() < Key::build().text("ab").u8(1).finish());
/// let newest_first = |time: i64| Key::build().text("a").desc().i64(time).finish();
/// assert!(newest_first(5) < newest_first(-5));
/// ```
#[derive(Clone, Debug)]
pub struct KeyBuilder {
    head: u128,
    len: usize,
    tail: Vec<u8>,
}

impl KeyBuilder {
    #[inline]
    pub(crate) fn push(mut self, bits: u64, bytes: usize) -> KeyBuilder {
        if self.len + bytes <= SHORT {
            self.head |= u128::from(bits) << (128 - 8 * (self.len + bytes));
            self.len += bytes;
            return self;
        }
        self.push_slow(&bits.to_be_bytes()[8 - bytes..])
    }

    pub(crate) fn push_slow(mut self, bytes: &[u8]) -> KeyBuilder {
        for &byte in bytes {
            if self.len < SHORT {
                self.head |= u128::from(byte) << (8 * (15 - self.len));
            } else {
                self.tail.push(byte);
            }
            self.len += 1;
        }
        self
    }

    /// Appends bytes as they are; only the last component of a key may have no fixed length.
    pub fn bytes(self, bytes: &[u8]) -> KeyBuilder {
        self.push_slow(bytes)
    }

    /// The key.
    #[inline]
    pub fn finish(self) -> Key {
        if self.len <= SHORT {
            Key { head: self.head | self.len as u128, tail: None }
        } else {
            Key { head: self.head | u128::from(LONG), tail: Some(self.tail.into_boxed_slice()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_and_round_trip_as_their_bytes_do() {
        let long = [7u8; 20];
        let mut samples: Vec<Vec<u8>> = vec![
            vec![],
            vec![0],
            vec![0, 0],
            vec![0, 1],
            vec![1],
            b"a".to_vec(),
            b"a\0".to_vec(),
            b"ab".to_vec(),
            long[..14].to_vec(),
            long[..15].to_vec(),
            long[..16].to_vec(),
            long.to_vec(),
            vec![0xff; 15],
            vec![0xff; 16],
            [&long[..15], &[0][..]].concat(),
            [&long[..15], &[0, 0][..]].concat(),
        ];
        samples.sort();
        for a in &samples {
            assert_eq!(&Key::new(a).to_bytes(), a);
            assert_eq!(Key::new(a).len(), a.len());
            assert_eq!(Key::new(a), Key::build().bytes(a).finish());
            let bytes: Vec<u8> = (0..=a.len()).map_while(|position| Key::new(a).byte(position)).collect();
            assert_eq!(&bytes, a);
            let encoded = crate::wire::encoded(&Key::new(a));
            assert_eq!(encoded.len(), 2 + a.len());
            assert_eq!(crate::wire::whole(&encoded), Ok(Key::new(a)));
            for b in &samples {
                assert_eq!(a.cmp(b), Key::new(a).cmp(&Key::new(b)), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_builder_gives_the_same_key_as_the_bytes_written_out() {
        let key = Key::build().u32(0x01020304).u8(5).u16(0x0607).u64(0x08090a0b0c0d0e0f).u16(0x1011).finish();
        assert_eq!(key, Key::new(&(1..=0x11).collect::<Vec<u8>>()));
        assert_eq!(key.leading_int(4), 0x01020304);
        assert_eq!(Key::of_u64(77), Key::build().u64(77).finish());
        assert_eq!(Key::from_parts(key.head(), key.tail()), key);
    }

    #[test]
    fn the_end_of_a_prefix_is_the_first_key_beyond_it() {
        assert_eq!(Key::new(&[1, 2]).prefix_end(), Some(Key::new(&[1, 3])));
        assert_eq!(Key::new(&[1, 0xff]).prefix_end(), Some(Key::new(&[2])));
        assert_eq!(Key::new(&[0xff, 0xff]).prefix_end(), None);
    }
}
