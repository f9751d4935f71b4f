//! How values travel between processes.
//!
//! A compact encoding without padding or field names: numbers are little-endian, a list is preceded
//! by its length in four bytes, an enum by its variant in one. Both ends agree on a version of the
//! format before they exchange anything, so nothing in it says what it is. Decoding trusts nobody:
//! whatever the bytes are, it ends with a value or with [`Malformed`], and takes no more memory
//! than a small multiple of the input's length.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// So many bytes of memory are reserved for a list per byte of input that is left: enough for most
/// lists, whose items are a few times as large in memory, to be allocated once.
const ROOM: usize = 8;

/// Takes encoded bytes.
pub trait Sink {
    /// Appends them.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts bytes instead of keeping them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count(pub u64);

impl Sink for Count {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// Compares bytes with others instead of keeping them.
#[derive(Clone, Copy, Debug)]
pub struct Same<'a> {
    /// The others that are still to come.
    left: &'a [u8],
    /// Whether all so far were the same.
    same: bool,
}

impl<'a> Same<'a> {
    /// Nothing is compared yet.
    pub fn new(with: &'a [u8]) -> Same<'a> {
        Same { left: with, same: true }
    }

    /// Whether there were as many, and all were the same.
    pub fn is_whole(&self) -> bool {
        self.same && self.left.is_empty()
    }
}

impl Sink for Same<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        match self.left.strip_prefix(bytes) {
            Some(left) => self.left = left,
            None => self.same = false,
        }
    }
}

/// Bytes that are not the encoding of what was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(
    /// What was wrong.
    pub &'static str,
);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// What is left of a message that is being decoded.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of these bytes.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// The next bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, left)) = self.0.split_at_checked(length) else {
            return Err(Malformed("it ends too early"));
        };
        self.0 = left;
        Ok(taken)
    }

    /// The next byte, which stays; `None` at the end.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

/// Has an encoding.
pub trait Wire: Sized {
    /// Appends its encoding.
    fn encode(&self, out: &mut impl Sink);

    /// Takes it from the front of the input.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed>;

    /// The length of its encoding.
    fn bytes(&self) -> u64 {
        let mut count = Count::default();
        self.encode(&mut count);
        count.0
    }

    /// Appends the encodings of several, one after the other.
    fn encode_all(items: &[Self], out: &mut impl Sink) {
        items.iter().for_each(|item| item.encode(out));
    }

    /// Takes several from the front of the input.
    fn decode_all(items: usize, input: &mut Input<'_>) -> Result<Vec<Self>, Malformed> {
        // Every item takes a byte at least; nothing is allocated for what is only promised.
        if items > input.left() {
            return Err(Malformed("a list longer than what is left"));
        }
        let mut list = Vec::with_capacity(items.min(input.left() * ROOM / size_of::<Self>().max(1)));
        for _ in 0..items {
            list.push(Self::decode(input)?);
        }
        Ok(list)
    }
}

/// The encoding of a value.
pub fn encoded(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

/// The value that these bytes, all of them, are the encoding of.
pub fn whole<T: Wire>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut input = Input::new(bytes);
    let value = T::decode(&mut input)?;
    match input.left() {
        0 => Ok(value),
        _ => Err(Malformed("something follows it")),
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl Wire for $number {
            #[inline]
            fn encode(&self, out: &mut impl Sink) {
                out.put(&self.to_le_bytes());
            }

            #[inline]
            fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
                let bytes = input.take(size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().expect("as many as were asked for")))
            }
        })+
    };
}

numbers!(u16, u32, u64, i32, i64, f64);

impl Wire for u8 {
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(&[*self]);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(input.take(1)?[0])
    }

    /// Bytes are copied at once.
    fn encode_all(items: &[u8], out: &mut impl Sink) {
        out.put(items);
    }

    fn decode_all(items: usize, input: &mut Input<'_>) -> Result<Vec<u8>, Malformed> {
        Ok(input.take(items)?.to_vec())
    }
}

impl Wire for Infallible {
    fn encode(&self, _: &mut impl Sink) {
        match *self {}
    }

    fn decode(_: &mut Input<'_>) -> Result<Self, Malformed> {
        Err(Malformed("something that does not exist"))
    }
}

impl Wire for () {
    fn encode(&self, _: &mut impl Sink) {}

    fn decode(_: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(())
    }
}

impl Wire for bool {
    fn encode(&self, out: &mut impl Sink) {
        u8::from(*self).encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        match u8::decode(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("neither true nor false")),
        }
    }
}

impl Wire for usize {
    fn encode(&self, out: &mut impl Sink) {
        (*self as u64).encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        usize::try_from(u64::decode(input)?).map_err(|_| Malformed("a number too large for this machine"))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn encode(&self, out: &mut impl Sink) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        bool::decode(input)?.then(|| T::decode(input)).transpose()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn encode(&self, out: &mut impl Sink) {
        T::encode(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::decode(input).map(Box::new)
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn encode(&self, out: &mut impl Sink) {
        T::encode(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::decode(input).map(Arc::new)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn encode(&self, out: &mut impl Sink) {
        length(self.len(), out);
        T::encode_all(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let items = u32::decode(input)? as usize;
        T::decode_all(items, input)
    }
}

impl Wire for String {
    fn encode(&self, out: &mut impl Sink) {
        blob(self.as_bytes(), out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(take_blob(input)?).map_err(|_| Malformed("text that is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

impl<T: Wire + Copy + Default, const N: usize> Wire for [T; N] {
    fn encode(&self, out: &mut impl Sink) {
        T::encode_all(self, out);
    }

    fn decode(input: &mut Input<'_>) -> Result<[T; N], Malformed> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::decode(input)?;
        }
        Ok(items)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
        self.1.encode(out);
        self.2.encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok((A::decode(input)?, B::decode(input)?, C::decode(input)?))
    }
}

/// Appends the length of a list.
pub fn length(items: usize, out: &mut impl Sink) {
    u32::try_from(items).expect("a message has fewer than 2^32 items").encode(out);
}

/// Appends bytes, preceded by how many they are.
pub fn blob(bytes: &[u8], out: &mut impl Sink) {
    length(bytes.len(), out);
    out.put(bytes);
}

/// Takes what [`blob`] has appended.
pub fn take_blob<'a>(input: &mut Input<'a>) -> Result<&'a [u8], Malformed> {
    let bytes = u32::decode(input)? as usize;
    input.take(bytes)
}

/// Implements [`Wire`] for a struct, field by field, or for an enum, by the numbers of its
/// variants.
///
/// What stands behind a semicolon stays behind: fields that are noted where a message is handled,
/// which are decoded as their default, and variants that nobody sends to another process.
///
/// ```
/// # use plimsoll_types::wire::{encoded, whole};
/// #[derive(Debug, PartialEq)]
/// enum Request<K> {
///     Get { key: K, tries: u32 },
///     Stop(u64),
///     Done,
///     Here,
/// }
/// plimsoll_types::wire!(<K: plimsoll_types::wire::Wire> enum Request<K> {
///     Get { key; tries } = 0, Stop(at) = 1, Done = 2; Self::Here
/// });
///
/// assert_eq!(encoded(&Request::Get { key: 7u16, tries: 3 }), [0, 7, 0]);
/// assert_eq!(whole(&[0, 7, 0]), Ok(Request::Get { key: 7u16, tries: 0 }));
/// ```
#[macro_export]
macro_rules! wire {
    ($(<$param:ident: $bound:path>)? struct $name:ident(0)) => {
        impl $(<$param: $bound>)? $crate::wire::Wire for $name {
            #[inline]
            fn encode(&self, out: &mut impl $crate::wire::Sink) {
                $crate::wire::Wire::encode(&self.0, out);
            }

            #[inline]
            fn decode(
                input: &mut $crate::wire::Input<'_>,
            ) -> Result<Self, $crate::wire::Malformed> {
                $crate::wire::Wire::decode(input).map(Self)
            }
        }
    };
    ($(<$param:ident: $bound:path>)? struct $name:ty {
        $($field:ident),* $(,)? $(; $($stays:ident),+)?
    }) => {
        impl $(<$param: $bound>)? $crate::wire::Wire for $name {
            fn encode(&self, out: &mut impl $crate::wire::Sink) {
                $($crate::wire::Wire::encode(&self.$field, out);)*
            }

            fn decode(
                input: &mut $crate::wire::Input<'_>,
            ) -> Result<Self, $crate::wire::Malformed> {
                Ok(Self {
                    $($field: $crate::wire::Wire::decode(input)?,)*
                    $($($stays: Default::default(),)+)?
                })
            }
        }
    };
    ($(<$param:ident: $bound:path>)? enum $name:ty {
        $($variant:ident
            $(($($item:ident),+))?
            $({ $($field:ident),+ $(; $($stays:ident),+)? })?
            = $number:literal),+ $(,)?
        $(; $here:pat)?
    }) => {
        impl $(<$param: $bound>)? $crate::wire::Wire for $name {
            fn encode(&self, out: &mut impl $crate::wire::Sink) {
                match self {
                    $(Self::$variant $(($($item),+))? $({ $($field,)+ .. })? => {
                        $crate::wire::Wire::encode(&($number as u8), out);
                        $($($crate::wire::Wire::encode($item, out);)+)?
                        $($($crate::wire::Wire::encode($field, out);)+)?
                    })+
                    $($here => unreachable!("what a shard asks of itself does not travel"),)?
                }
            }

            fn decode(
                input: &mut $crate::wire::Input<'_>,
            ) -> Result<Self, $crate::wire::Malformed> {
                match <u8 as $crate::wire::Wire>::decode(input)? {
                    $($number => {
                        $($(let $item = $crate::wire::Wire::decode(input)?;)+)?
                        $($(let $field = $crate::wire::Wire::decode(input)?;)+)?
                        Ok(Self::$variant
                            $(($($item),+))?
                            $({ $($field,)+ $($($stays: Default::default(),)+)? })?)
                    })+
                    _ => Err($crate::wire::Malformed(concat!("no such ", stringify!($name)))),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Order {
        item: u32,
        notes: Vec<(u64, Option<String>)>,
        paid: bool,
    }
    wire!(struct Order { item, notes, paid });

    #[derive(Debug, PartialEq)]
    enum Size {
        Small,
        Large,
    }
    wire!(
        enum Size {
            Small = 1,
            Large = 2,
        }
    );

    fn encoded(value: &impl Wire) -> Vec<u8> {
        let bytes = super::encoded(value);
        assert_eq!(value.bytes(), bytes.len() as u64);
        bytes
    }

    #[test]
    fn bytes_are_compared_to_the_last() {
        let is_same = |pieces: &[&[u8]]| {
            let mut same = Same::new(&[1, 2, 3]);
            pieces.iter().for_each(|piece| same.put(piece));
            same.is_whole()
        };
        assert!(is_same(&[&[1, 2, 3]]) && is_same(&[&[1], &[], &[2, 3]]));
        assert!(!is_same(&[&[1, 2]]) && !is_same(&[&[1, 2, 3, 4]]) && !is_same(&[&[1], &[9], &[2, 3]]));
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let order = Order { item: 7, notes: vec![(u64::MAX, Some("now".to_owned())), (0, None)], paid: true };
        assert_eq!(encoded(&order).len(), 4 + (4 + 8 + 1 + 4 + 3 + 8 + 1) + 1);
        assert_eq!(whole(&encoded(&order)), Ok(order));
        assert_eq!(whole(&encoded(&Size::Large)), Ok(Size::Large));
        assert_eq!(encoded(&Size::Small), [1]);
    }

    #[test]
    fn whatever_is_no_encoding_is_refused() {
        let order = Order { item: 7, notes: vec![(1, None)], paid: true };
        let bytes = encoded(&order);
        for length in 0..bytes.len() {
            assert!(whole::<Order>(&bytes[..length]).is_err(), "cut to {length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(whole::<Order>(&longer), Err(Malformed("something follows it")));
        assert_eq!(whole::<Size>(&[3]), Err(Malformed("no such Size")));
        assert_eq!(whole::<bool>(&[2]), Err(Malformed("neither true nor false")));
        assert_eq!(whole::<String>(&[1, 0, 0, 0, 0xff]), Err(Malformed("text that is not UTF-8")));
        // Four thousand million numbers are promised, and not made room for.
        assert_eq!(whole::<Vec<u64>>(&[0xff; 8]), Err(Malformed("a list longer than what is left")));
    }
}
