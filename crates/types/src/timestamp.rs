//! One 64-bit number orders everything (`docs/protocols/dst.md`).

use std::fmt;

use crate::wire::{Input, Malformed, Sink, Wire};

/// A transaction's timestamp, and the stamp of the versions it installs.
///
/// Under DST and RC: Unix nanoseconds, compared as integers; `+ 1` may carry anywhere, only the
/// order matters. Under GTS: the oracle's number. Under VTS: a slot and a counter packed together,
/// which only that scheme may compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

/// From another process it is below 2^63: a transaction that is ordered after it has room for its
/// own.
impl Wire for Timestamp {
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Timestamp, Malformed> {
        match u64::decode(input)? {
            timestamp if timestamp >> 63 == 0 => Ok(Timestamp(timestamp)),
            _ => Err(Malformed("a timestamp at the end of time")),
        }
    }
}

impl Timestamp {
    /// The initial load.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Newer than everything.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// The smallest timestamp above this one. Running out of 64 bits is a bug, not a wrap-around.
    #[inline]
    pub fn next(self) -> Timestamp {
        Timestamp(self.0.checked_add(1).expect("a timestamp never reaches the end of time"))
    }

    /// `self`, or `other` if that is larger: the ⊔ of the protocol descriptions.
    #[inline]
    pub fn join(self, other: Timestamp) -> Timestamp {
        self.max(other)
    }

    /// Raises `self` to at least `other`.
    #[inline]
    pub fn raise(&mut self, other: Timestamp) {
        *self = (*self).max(other);
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Timestamp::MAX => f.write_str("@max"),
            Timestamp(ts) => write!(f, "@{ts}"),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{encoded, whole};

    #[test]
    fn a_timestamp_from_elsewhere_leaves_room_for_what_comes_after_it() {
        let last = Timestamp((1 << 63) - 1);
        assert_eq!(whole(&encoded(&last)), Ok(last));
        assert!(whole::<Timestamp>(&encoded(&last.next())).is_err());
        assert!(whole::<Timestamp>(&encoded(&Timestamp::MAX)).is_err());
    }
}
