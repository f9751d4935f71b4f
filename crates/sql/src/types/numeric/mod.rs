//! `numeric`: decimal numbers of up to 131,072 digits before and 16,383 after the point.
//!
//! A number is a whole mantissa and a scale: how many of its digits are after the point. The scale
//! shows (`1.50` is not written `1.5`) and does not count in comparisons. Mantissas of up to 38
//! digits are an `i128`, which is nearly all there are; beyond, a [`Magnitude`]. Every operation
//! tries the first and falls back on the second.
//!
//! Which scale a result has is PostgreSQL's rule and visible in every division, so the rules are
//! followed to the digit: sums have the larger scale, products the sum of both, quotients at least
//! 16 significant digits counted in PostgreSQL's base of 10,000 (`arithmetic`).

mod arithmetic;
mod conversion;
mod magnitude;
mod mathematics;
mod text;

use std::cmp::Ordering;

pub use arithmetic::too_long;
pub use conversion::{from_base_10000, precision_and_scale, to_base_10000};
pub use magnitude::Magnitude;

use crate::{SqlError, SqlState};

/// Digits after the point at most.
pub const SCALE_MAX: i32 = 16_383;
/// Digits before the point at most.
pub const WHOLE_DIGITS_MAX: i64 = 131_072;
/// Digits after the point that a function chooses at most; also the largest precision of a column.
pub const DISPLAY_SCALE_MAX: i32 = 1000;

/// A decimal number.
#[derive(Clone, Debug, PartialEq)]
pub enum Numeric {
    /// A mantissa that fits, and its scale.
    Small(i128, u16),
    /// A mantissa that does not, and its scale.
    Big(Box<Big>),
    /// Not a number; larger than all of them.
    NaN,
    /// Larger than all numbers.
    Infinity,
    /// Less than all numbers.
    NegativeInfinity,
}

/// A number whose mantissa does not fit in an `i128`.
#[derive(Clone, Debug, PartialEq)]
pub struct Big {
    /// Whether it is below 0.
    pub negative: bool,
    /// The mantissa.
    pub magnitude: Magnitude,
    /// How many of its digits are after the point.
    pub scale: u16,
}

impl Numeric {
    /// 0.
    pub const ZERO: Numeric = Numeric::Small(0, 0);
    /// 1.
    pub const ONE: Numeric = Numeric::Small(1, 0);

    /// A number in its smallest representation; 22003 if it has too many digits.
    pub fn finite(negative: bool, magnitude: Magnitude, scale: i32) -> Result<Numeric, SqlError> {
        let (magnitude, scale) = if scale < 0 {
            (magnitude.mul_pow10(scale.unsigned_abs() as usize), 0)
        } else {
            (magnitude, scale)
        };
        if magnitude.digits() as i64 - i64::from(scale) > WHOLE_DIGITS_MAX || scale > SCALE_MAX {
            return Err(overflow());
        }
        let scale = u16::try_from(scale).unwrap_or(u16::MAX);
        Ok(match magnitude.to_u128().and_then(|value| i128::try_from(value).ok()) {
            Some(value) => Numeric::Small(if negative { -value } else { value }, scale),
            None => Numeric::Big(Box::new(Big { negative, magnitude, scale })),
        })
    }

    /// Digits after the point; 0 of what is not finite.
    pub fn scale(&self) -> i32 {
        match self {
            Numeric::Small(_, scale) => i32::from(*scale),
            Numeric::Big(big) => i32::from(big.scale),
            _ => 0,
        }
    }

    /// Whether it is a number.
    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Small(..) | Numeric::Big(_))
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Small(0, _))
    }

    /// Whether it is below 0.
    pub fn is_negative(&self) -> bool {
        match self {
            Numeric::Small(mantissa, _) => *mantissa < 0,
            Numeric::Big(big) => big.negative,
            Numeric::NegativeInfinity => true,
            Numeric::NaN | Numeric::Infinity => false,
        }
    }

    /// How many bytes its mantissa takes beside it.
    pub fn size(&self) -> usize {
        if let Numeric::Big(big) = self { big.magnitude.size() } else { 0 }
    }

    /// How many digits its mantissa has.
    pub fn digits(&self) -> usize {
        match self {
            Numeric::Small(mantissa, _) => {
                mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1) as usize
            }
            Numeric::Big(big) => big.magnitude.digits(),
            _ => 0,
        }
    }

    /// The mantissa without its sign.
    pub fn magnitude(&self) -> Magnitude {
        match self {
            Numeric::Small(mantissa, _) => Magnitude::new(mantissa.unsigned_abs()),
            Numeric::Big(big) => big.magnitude.clone(),
            _ => Magnitude::new(0),
        }
    }

    /// The power of ten of the first digit; 0 for 0.
    pub fn exponent(&self) -> i64 {
        let digits = self.digits();
        if digits == 0 { 0 } else { digits as i64 - 1 - i64::from(self.scale()) }
    }

    /// The place and the value of the first digit in base 10,000, which PostgreSQL's rules count
    /// in.
    pub fn base_10000_head(&self) -> (i64, u32) {
        if self.is_zero() {
            return (0, 0);
        }
        let weight = self.exponent().div_euclid(4);
        // The digits of weight 10^(4 * weight) and above.
        let digits = self.magnitude().to_digits();
        let count = usize::try_from(self.exponent() - 4 * weight + 1).unwrap_or(1);
        let head = digits.bytes().chain(std::iter::repeat(b'0')).take(count);
        (weight, head.fold(0, |sum, digit| sum * 10 + u32::from(digit.wrapping_sub(b'0'))))
    }

    /// The same with another sign.
    pub fn negate(self) -> Numeric {
        match self {
            Numeric::Small(mantissa, scale) => match mantissa.checked_neg() {
                Some(mantissa) => Numeric::Small(mantissa, scale),
                None => Numeric::Big(Box::new(Big {
                    negative: false,
                    magnitude: Magnitude::new(mantissa.unsigned_abs()),
                    scale,
                })),
            },
            Numeric::Big(mut big) => {
                big.negative = !big.negative;
                Numeric::Big(big)
            }
            Numeric::NaN => Numeric::NaN,
            Numeric::Infinity => Numeric::NegativeInfinity,
            Numeric::NegativeInfinity => Numeric::Infinity,
        }
    }

    /// Without its sign.
    pub fn abs(self) -> Numeric {
        if self.is_negative() { self.negate() } else { self }
    }

    /// Order of values: NaN is the largest and equals itself.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        let rank = |number: &Numeric| match number {
            Numeric::NegativeInfinity => 0,
            Numeric::Small(..) | Numeric::Big(_) => 1,
            Numeric::Infinity => 2,
            Numeric::NaN => 3,
        };
        if let (Numeric::Small(left, a), Numeric::Small(right, b)) = (self, other)
            && a == b
        {
            return left.cmp(right);
        }
        rank(self).cmp(&rank(other)).then_with(|| match (self.is_finite(), other.is_finite()) {
            (true, true) => self.compare_finite(other),
            _ => Ordering::Equal,
        })
    }

    fn compare_finite(&self, other: &Numeric) -> Ordering {
        let sign =
            |number: &Numeric| if number.is_zero() { 0 } else { 1 - 2 * i32::from(number.is_negative()) };
        if sign(self) != sign(other) || sign(self) == 0 {
            return sign(self).cmp(&sign(other));
        }
        let larger = self.exponent().cmp(&other.exponent()).then_with(|| {
            let scale = self.scale().max(other.scale());
            let at = |number: &Numeric| {
                number.magnitude().mul_pow10((scale - number.scale()).unsigned_abs() as usize)
            };
            at(self).cmp(&at(other))
        });
        if self.is_negative() { larger.reverse() } else { larger }
    }
}

/// The error of a number with too many digits.
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}
