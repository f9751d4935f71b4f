//! The components of composite keys, put together by [`KeyBuilder`] and taken apart by
//! [`KeyReader`].
//!
//! A component is encoded such that its bytes are ordered as its values are, and such that it ends
//! where its bytes say, so a key is ordered by its first component, then by its second, and so on:
//!
//! | component | bytes |
//! |---|---|
//! | unsigned integer | big-endian |
//! | signed integer | the same, with the sign bit flipped: negative numbers come first |
//! | float | its bits, with the sign bit flipped; if it is negative, with all bits flipped |
//! | text, byte string | its bytes, each zero byte as `00 ff`, and `00 01` at the end |
//! | any of these in descending order | all of its bytes flipped |
//!
//! Example. `Key::build().text("ab").desc().i16(-2)` is `61 62 00 01` and, as -2 is `fffe`, flipped
//! in its sign bit `7ffe`, flipped altogether `80 01`.
//!
//! Floats are ordered as numbers: from negative to positive infinity. Two values need a rule, as in
//! SQL. *-0.0* equals 0.0, so both make one key, which is read as 0.0. *NaN* equals itself and is
//! above all numbers; all its bit patterns make one key. So what is equal has one key, and a key
//! that no value makes is refused when it is read.
//!
//! Left out: types. A key does not say what its components are; a reader that expects others than
//! the builder has written finds other values, or an error.

use std::fmt;

use crate::key::{Key, KeyBuilder};

/// Why a key could not be taken apart: it was made of other components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// It ends within a component.
    TooShort {
        /// Where the component begins, in bytes.
        at: usize,
    },
    /// Bytes that no text, no byte string or no float is encoded as.
    Malformed {
        /// Where the component begins, in bytes.
        at: usize,
    },
    /// The bytes of a text are not UTF-8.
    NotText {
        /// Where the component begins, in bytes.
        at: usize,
    },
    /// There are more components.
    TooLong {
        /// Where the first of them begins, in bytes.
        at: usize,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, what) = match self {
            KeyError::TooShort { at } => (at, "the key ends within the component"),
            KeyError::Malformed { at } => (at, "no component of this kind has the bytes"),
            KeyError::NotText { at } => (at, "there is a byte string that is no text"),
            KeyError::TooLong { at } => (at, "there is a further component"),
        };
        write!(f, "{what} at byte {at}: read a key's components in the order in which they were built")
    }
}

impl std::error::Error for KeyError {}

/// The bits of a signed integer as an unsigned one in the same order, and back.
macro_rules! signed {
    ($number:ty, $bits:ty) => {
        impl Ordered for $number {
            type Bits = $bits;

            #[inline]
            fn bits(self) -> $bits {
                self as $bits ^ (1 << (<$bits>::BITS - 1))
            }

            #[inline]
            fn from_bits(bits: $bits) -> Option<$number> {
                Some((bits ^ (1 << (<$bits>::BITS - 1))) as $number)
            }
        }
    };
}

macro_rules! unsigned {
    ($number:ty) => {
        impl Ordered for $number {
            type Bits = $number;

            #[inline]
            fn bits(self) -> $number {
                self
            }

            #[inline]
            fn from_bits(bits: $number) -> Option<$number> {
                Some(bits)
            }
        }
    };
}

macro_rules! float {
    ($number:ty, $bits:ty) => {
        impl Ordered for $number {
            type Bits = $bits;

            fn bits(self) -> $bits {
                let bits = match self {
                    _ if self.is_nan() => <$number>::NAN.to_bits() & <$bits>::MAX >> 1,
                    // -0.0 becomes 0.0.
                    _ if self == 0.0 => 0,
                    _ => self.to_bits(),
                };
                if bits >> (<$bits>::BITS - 1) == 0 { bits ^ (1 << (<$bits>::BITS - 1)) } else { !bits }
            }

            fn from_bits(bits: $bits) -> Option<$number> {
                let positive = bits >> (<$bits>::BITS - 1) == 1;
                let number =
                    <$number>::from_bits(if positive { bits ^ (1 << (<$bits>::BITS - 1)) } else { !bits });
                (number.bits() == bits).then_some(number)
            }
        }
    };
}

/// A number whose order is that of its bits.
trait Ordered: Sized {
    type Bits;

    fn bits(self) -> Self::Bits;

    /// `None` if no number has these bits.
    fn from_bits(bits: Self::Bits) -> Option<Self>;
}

signed!(i8, u8);
signed!(i16, u16);
signed!(i32, u32);
signed!(i64, u64);
unsigned!(u8);
unsigned!(u16);
unsigned!(u32);
unsigned!(u64);
float!(f32, u32);
float!(f64, u64);

/// Numbers of one type, in builders and readers.
macro_rules! numbers {
    ($(($name:ident, $what:literal)),* $(,)?) => {
        impl KeyBuilder {
            $(
                #[doc = concat!("Appends ", $what, ".")]
                #[inline]
                pub fn $name(self, number: $name) -> KeyBuilder {
                    self.push(u64::from(number.bits()), size_of::<$name>())
                }
            )*
        }

        impl Descending {
            $(
                #[doc = concat!("Appends ", $what, ".")]
                #[inline]
                pub fn $name(self, number: $name) -> KeyBuilder {
                    self.0.push(u64::from(!number.bits()), size_of::<$name>())
                }
            )*
        }

        impl KeyReader {
            $(
                #[doc = concat!("Reads ", $what, ".")]
                pub fn $name(&mut self) -> Result<$name, KeyError> {
                    self.number(0)
                }
            )*
        }

        impl DescendingReader<'_> {
            $(
                #[doc = concat!("Reads ", $what, ".")]
                pub fn $name(self) -> Result<$name, KeyError> {
                    self.0.number(FLIPPED)
                }
            )*
        }

        $(
            impl Number for $name {
                fn read(bytes: &[u8; size_of::<u64>()]) -> Option<$name> {
                    let (bytes, _) = bytes.split_first_chunk()?;
                    Ordered::from_bits(<$name as Ordered>::Bits::from_be_bytes(*bytes))
                }
            }
        )*
    };
}

/// A number in a key.
trait Number: Sized {
    /// The number with which these bytes begin.
    fn read(bytes: &[u8; size_of::<u64>()]) -> Option<Self>;
}

numbers! {
    (u8, "an unsigned integer of one byte"),
    (u16, "an unsigned integer of two bytes"),
    (u32, "an unsigned integer of four bytes"),
    (u64, "an unsigned integer of eight bytes"),
    (i8, "a signed integer of one byte"),
    (i16, "a signed integer of two bytes"),
    (i32, "a signed integer of four bytes"),
    (i64, "a signed integer of eight bytes"),
    (f32, "a float of four bytes: -0.0 as 0.0, and NaN above all numbers"),
    (f64, "a float of eight bytes: -0.0 as 0.0, and NaN above all numbers"),
}

/// Flips all bits of a byte.
const FLIPPED: u8 = 0xff;
/// Stands behind a zero byte of a text or byte string.
const ZERO: u8 = 0xff;
/// Stands behind the zero byte that ends one.
const END: u8 = 1;

impl KeyBuilder {
    /// Appends text of any length such that a text sorts before its extensions whatever follows it.
    pub fn text(self, text: &str) -> KeyBuilder {
        self.escaped(text.as_bytes(), 0)
    }

    /// Appends a byte string of any length in the same way.
    pub fn byte_string(self, bytes: &[u8]) -> KeyBuilder {
        self.escaped(bytes, 0)
    }

    /// The next component sorts in descending order.
    pub fn desc(self) -> Descending {
        Descending(self)
    }

    fn escaped(self, bytes: &[u8], flip: u8) -> KeyBuilder {
        let mut key = self;
        for &byte in bytes {
            key = key.push_slow(&[byte ^ flip]);
            if byte == 0 {
                key = key.push_slow(&[ZERO ^ flip]);
            }
        }
        key.push_slow(&[flip, END ^ flip])
    }
}

/// A [`KeyBuilder`] whose next component sorts in descending order.
#[derive(Clone, Debug)]
#[must_use]
pub struct Descending(KeyBuilder);

impl Descending {
    /// Appends text of any length such that a text sorts behind its extensions whatever follows it.
    pub fn text(self, text: &str) -> KeyBuilder {
        self.0.escaped(text.as_bytes(), FLIPPED)
    }

    /// Appends a byte string of any length in the same way.
    pub fn byte_string(self, bytes: &[u8]) -> KeyBuilder {
        self.0.escaped(bytes, FLIPPED)
    }
}

impl Key {
    /// Takes a composite key apart; see [`KeyReader`].
    pub fn read(&self) -> KeyReader {
        KeyReader { bytes: self.to_bytes(), at: 0 }
    }
}

/// Reads the components of a composite key in the order in which they were built. After an error it
/// is where it was.
///
/// ```
/// use plimsoll_types::Key;
///
/// let key = Key::build().text("alice").desc().i64(-7).f64(2.5).finish();
/// let mut parts = key.read();
/// assert_eq!(parts.text()?, "alice");
/// assert_eq!(parts.desc().i64()?, -7);
/// assert_eq!(parts.f64()?, 2.5);
/// parts.finish()?;
/// # Ok::<(), plimsoll_types::KeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyReader {
    bytes: Vec<u8>,
    /// The next component begins here.
    at: usize,
}

impl KeyReader {
    /// Reads a text.
    pub fn text(&mut self) -> Result<String, KeyError> {
        self.as_text(0)
    }

    /// Reads a byte string.
    pub fn byte_string(&mut self) -> Result<Vec<u8>, KeyError> {
        self.unescaped(0)
    }

    /// Reads all bytes that are left, which [`KeyBuilder::bytes`] has appended.
    pub fn bytes(&mut self) -> Vec<u8> {
        let at = std::mem::replace(&mut self.at, self.bytes.len());
        self.bytes[at..].to_vec()
    }

    /// The next component was built in descending order.
    pub fn desc(&mut self) -> DescendingReader<'_> {
        DescendingReader(self)
    }

    /// That was the last component. [`KeyError::TooLong`] if it was not.
    pub fn finish(self) -> Result<(), KeyError> {
        if self.at < self.bytes.len() { Err(KeyError::TooLong { at: self.at }) } else { Ok(()) }
    }

    fn number<N: Number>(&mut self, flip: u8) -> Result<N, KeyError> {
        let (at, size) = (self.at, size_of::<N>());
        let stored = self.bytes.get(at..at + size).ok_or(KeyError::TooShort { at })?;
        let mut bytes = [0; size_of::<u64>()];
        bytes.iter_mut().zip(stored).for_each(|(byte, stored)| *byte = stored ^ flip);
        let number = N::read(&bytes).ok_or(KeyError::Malformed { at })?;
        self.at += size;
        Ok(number)
    }

    fn unescaped(&mut self, flip: u8) -> Result<Vec<u8>, KeyError> {
        let at = self.at;
        let mut rest = self.bytes[at..].iter().map(|byte| byte ^ flip);
        let mut next = || rest.next().ok_or(KeyError::TooShort { at });
        let (mut found, mut escapes) = (Vec::new(), 0);
        loop {
            match next()? {
                0 => match next()? {
                    ZERO => found.push(0),
                    END => break,
                    _ => return Err(KeyError::Malformed { at }),
                },
                byte => found.push(byte),
            }
            escapes += usize::from(found.last() == Some(&0));
        }
        self.at += found.len() + escapes + 2;
        Ok(found)
    }

    fn as_text(&mut self, flip: u8) -> Result<String, KeyError> {
        let at = self.at;
        String::from_utf8(self.unescaped(flip)?).map_err(|_| {
            self.at = at;
            KeyError::NotText { at }
        })
    }
}

/// A [`KeyReader`] whose next component was built in descending order.
#[derive(Debug)]
pub struct DescendingReader<'a>(&'a mut KeyReader);

impl DescendingReader<'_> {
    /// Reads a text.
    pub fn text(self) -> Result<String, KeyError> {
        self.0.as_text(FLIPPED)
    }

    /// Reads a byte string.
    pub fn byte_string(self) -> Result<Vec<u8>, KeyError> {
        self.0.unescaped(FLIPPED)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::fmt::Debug;

    use super::*;
    use crate::random::Rng;

    /// Appends a component.
    type Build<T> = fn(KeyBuilder, T) -> KeyBuilder;
    /// Reads one.
    type Take<T> = fn(&mut KeyReader) -> Result<T, KeyError>;

    /// Keys of all pairs of values are ordered as the values are, whatever follows them, and are
    /// read as what they were made of.
    fn holds<T: Clone + Debug>(
        values: &[T],
        order: impl Fn(&T, &T) -> Ordering,
        (up, take_up): (Build<T>, Take<T>),
        (down, take_down): (Build<T>, Take<T>),
    ) {
        let key = |build: Build<T>, value: &T, next: u8| build(Key::build(), value.clone()).u8(next).finish();
        for a in values {
            for (build, take) in [(up, take_up), (down, take_down)] {
                let mut reader = key(build, a, 7).read();
                let read = take(&mut reader).unwrap();
                assert!(order(&read, a).is_eq(), "{a:?} is read as {read:?}");
                assert_eq!(reader.u8(), Ok(7), "{a:?}");
                assert_eq!(reader.finish(), Ok(()));
                let again = key(build, &read, 7);
                assert_eq!(again, key(build, a, 7), "what is equal has one key");
            }
            for b in values {
                let then = |ordering: Ordering| ordering.then(9.cmp(&3));
                assert_eq!(key(up, a, 9).cmp(&key(up, b, 3)), then(order(a, b)), "{a:?} {b:?}");
                assert_eq!(key(down, a, 9).cmp(&key(down, b, 3)), then(order(b, a)), "{a:?} {b:?}");
            }
        }
    }

    macro_rules! integers_hold {
        ($rng:ident, $($name:ident)*) => {
            $(
                let mut values = vec![$name::MIN, $name::MIN + 1, 0, 1, $name::MAX / 2, $name::MAX - 1, $name::MAX];
                // Of all magnitudes, both signs.
                values.extend((0..60).map(|i| ($rng.bits() as $name) >> (i % $name::BITS)));
                values.extend((0..60).map(|i| $name::MAX.wrapping_add($rng.bits() as $name >> (i % $name::BITS))));
                holds(
                    &values,
                    Ord::cmp,
                    (|key, number| key.$name(number), |reader| reader.$name()),
                    (|key, number| key.desc().$name(number), |reader| reader.desc().$name()),
                );
            )*
        };
    }

    #[test]
    fn keys_of_integers_are_ordered_as_the_integers_are() {
        let mut rng = Rng::new(1, 1);
        integers_hold!(rng, u8 u16 u32 u64 i8 i16 i32 i64);
    }

    macro_rules! floats_hold {
        ($rng:ident, $($name:ident: $bits:ty),*) => {
            $(
                let mut values = vec![0.0, -0.0, 1.0, -1.0, $name::MIN_POSITIVE, -$name::MIN_POSITIVE];
                values.extend([$name::MAX, $name::MIN, $name::INFINITY, $name::NEG_INFINITY, $name::EPSILON]);
                values.extend([$name::NAN, -$name::NAN, $name::from_bits(!0), $name::from_bits(!0 >> 1)]);
                values.extend([$name::from_bits(1), -$name::from_bits(1)]);
                values.extend((0..100).map(|_| $name::from_bits($rng.bits() as $bits)));
                let order = |a: &$name, b: &$name| {
                    // As numbers; NaN equals itself and is above all of them.
                    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                };
                holds(
                    &values,
                    order,
                    (|key, number| key.$name(number), |reader| reader.$name()),
                    (|key, number| key.desc().$name(number), |reader| reader.desc().$name()),
                );
                let zero = Key::build().$name(-0.0).finish().read().$name().unwrap();
                assert!(zero.is_sign_positive());
            )*
        };
    }

    #[test]
    fn keys_of_floats_are_ordered_as_numbers_with_one_zero_and_one_nan_above_all() {
        let mut rng = Rng::new(2, 1);
        floats_hold!(rng, f32: u32, f64: u64);
    }

    fn byte_strings(rng: &mut Rng) -> Vec<Vec<u8>> {
        let mut values: Vec<Vec<u8>> =
            [&b""[..], b"\0", b"\0\0", b"\0\xff", b"\0\x01", b"\x01", b"\xff", b"a"]
                .into_iter()
                .map(<[u8]>::to_vec)
                .collect();
        // Short ones of few letters, so that many are prefixes of others; and some beyond a head.
        let letter = |rng: &mut Rng| [0, 1, 2, 0xfe, 0xff, b'a'][rng.below(6) as usize];
        values.extend((0..120).map(|i| (0..rng.below(4 + i % 20)).map(|_| letter(rng)).collect::<Vec<u8>>()));
        values
    }

    #[test]
    fn keys_of_texts_and_byte_strings_are_ordered_as_these_are_with_any_bytes_in_them() {
        let values = byte_strings(&mut Rng::new(3, 1));
        holds(
            &values,
            Ord::cmp,
            (|key, bytes| key.byte_string(&bytes), |reader| reader.byte_string()),
            (|key, bytes| key.desc().byte_string(&bytes), |reader| reader.desc().byte_string()),
        );
        let texts: Vec<String> =
            values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        holds(
            &texts,
            Ord::cmp,
            (|key, text| key.text(&text), |reader| reader.text()),
            (|key, text| key.desc().text(&text), |reader| reader.desc().text()),
        );
    }

    #[test]
    fn a_key_is_read_component_by_component_and_the_rest_as_it_is() {
        let key = Key::build().u16(1).desc().text("a\0b").i32(-2).desc().f32(0.5).bytes(b"\0rest").finish();
        let mut parts = key.read();
        assert_eq!((parts.u16(), parts.desc().text()), (Ok(1), Ok("a\0b".to_owned())));
        assert_eq!((parts.i32(), parts.desc().f32()), (Ok(-2), Ok(0.5)));
        assert_eq!((parts.bytes(), parts.bytes()), (b"\0rest".to_vec(), Vec::new()));
        assert_eq!(parts.finish(), Ok(()));
    }

    #[test]
    fn a_key_of_other_components_is_an_error_and_says_where() {
        let three = Key::new(&[1, 2, 3]);
        let mut parts = three.read();
        assert_eq!(parts.u8(), Ok(1));
        assert_eq!(parts.i64(), Err(KeyError::TooShort { at: 1 }));
        assert_eq!(parts.text(), Err(KeyError::TooShort { at: 1 }), "no end of a text");
        assert_eq!(parts.clone().finish(), Err(KeyError::TooLong { at: 1 }));
        assert_eq!((parts.u16(), parts.finish()), (Ok(0x0203), Ok(())));
        let text = |bytes: &[u8]| Key::new(bytes).read().text();
        assert_eq!(text(&[0, 2]), Err(KeyError::Malformed { at: 0 }));
        assert_eq!(text(&[0xc3, 0, 1]), Err(KeyError::NotText { at: 0 }));
        assert_eq!(text(&[b'a', 0]), Err(KeyError::TooShort { at: 0 }));
        // Bits that no float is encoded as: of another NaN, and of -0.0.
        let float = |bits: u64| Key::of_u64(bits).read().f64();
        assert_eq!(float(u64::MAX), Err(KeyError::Malformed { at: 0 }));
        assert_eq!(float(!(1 << 63)), Err(KeyError::Malformed { at: 0 }));
        let sentence = KeyError::TooShort { at: 1 }.to_string();
        assert!(sentence.starts_with("the key ends within the component at byte 1: "), "{sentence}");
    }

    #[test]
    fn no_bytes_make_a_reader_panic_and_what_it_accepts_is_what_it_would_have_built() {
        let mut rng = Rng::new(4, 1);
        for _ in 0..20_000 {
            let length = rng.below(14) as usize;
            let few = rng.below(2) == 0;
            let byte = |rng: &mut Rng| {
                if few { [0, 1, 0xfe, 0xff][rng.below(4) as usize] } else { rng.bits() as u8 }
            };
            let bytes: Vec<u8> = (0..length).map(|_| byte(&mut rng)).collect();
            let mut reader = Key::new(&bytes).read();
            let mut built = Key::build();
            for _ in 0..3 {
                let next = built.clone();
                let read = match rng.below(8) {
                    0 => reader.f32().map(|number| next.f32(number)),
                    1 => reader.desc().f64().map(|number| next.desc().f64(number)),
                    2 => reader.text().map(|text| next.text(&text)),
                    3 => reader.desc().text().map(|text| next.desc().text(&text)),
                    4 => reader.byte_string().map(|bytes| next.byte_string(&bytes)),
                    5 => reader.desc().byte_string().map(|bytes| next.desc().byte_string(&bytes)),
                    6 => reader.i16().map(|number| next.i16(number)),
                    _ => reader.desc().u8().map(|number| next.desc().u8(number)),
                };
                match read {
                    Ok(next) => built = next,
                    Err(_) => break,
                }
            }
            let rest = reader.bytes();
            assert_eq!(built.bytes(&rest).finish(), Key::new(&bytes), "{bytes:?}");
        }
    }
}
