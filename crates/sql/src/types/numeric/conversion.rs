//! Numerics from and to machine numbers, columns' precisions and the wire.

use super::{Magnitude, Numeric};
use crate::{SqlError, SqlState};

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::Small(i128::from(value), 0)
    }
}

impl Numeric {
    /// A float with as many digits as it is sure of: 15, or 6 of a `real`.
    pub fn from_float(value: f64, digits: usize) -> Result<Numeric, SqlError> {
        if value.is_nan() {
            return Ok(Numeric::NaN);
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 { Numeric::Infinity } else { Numeric::NegativeInfinity });
        }
        let parsed = Numeric::parse(&format!("{value:.places$e}", places = digits.saturating_sub(1)))?;
        Ok(parsed.trimmed())
    }

    /// The nearest float; infinite if it is too large.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegativeInfinity => f64::NEG_INFINITY,
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The nearest whole number, if an `i64` has it.
    pub fn to_i64(&self) -> Option<i64> {
        match self.round(0) {
            Ok(Numeric::Small(mantissa, _)) if self.is_finite() => i64::try_from(mantissa).ok(),
            _ => None,
        }
    }

    /// The number that a column of this modifier keeps: rounded, and refused if it is too long.
    pub fn fit(&self, modifier: i32) -> Result<Numeric, SqlError> {
        let Some((precision, scale)) = precision_and_scale(modifier) else { return Ok(self.clone()) };
        let overflow = |detail: String| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(detail)
        };
        match self {
            Numeric::NaN => return Ok(Numeric::NaN),
            Numeric::Infinity | Numeric::NegativeInfinity => {
                return Err(overflow(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )));
            }
            _ => {}
        }
        let rounded = self.round(scale)?;
        if !rounded.is_zero() && rounded.exponent() >= i64::from(precision - scale) {
            let power = precision - scale;
            let bound = if power == 0 { "1".to_owned() } else { format!("10^{power}") };
            return Err(overflow(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
            )));
        }
        Ok(rounded)
    }
}

/// Precision and scale of a modifier.
pub fn precision_and_scale(modifier: i32) -> Option<(i32, i32)> {
    if modifier < 4 {
        return None;
    }
    let bits = modifier - 4;
    // The scale has 11 bits with sign.
    Some(((bits >> 16) & 0xffff, ((bits & 0x7ff) ^ 1024) - 1024))
}

const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_NAN: u16 = 0xc000;
const SIGN_INFINITY: u16 = 0xd000;
const SIGN_NEGATIVE_INFINITY: u16 = 0xf000;

/// The binary form: count of digits, weight of the first, sign, scale, digits in base 10,000.
pub fn to_base_10000(number: &Numeric, out: &mut Vec<u8>) {
    let sign = match number {
        Numeric::NaN => SIGN_NAN,
        Numeric::Infinity => SIGN_INFINITY,
        Numeric::NegativeInfinity => SIGN_NEGATIVE_INFINITY,
        number if number.is_negative() => SIGN_NEGATIVE,
        _ => 0,
    };
    let mut groups: Vec<u16> = Vec::new();
    let mut weight = 0i64;
    if number.is_finite() && !number.is_zero() {
        // Padded with zeros on both sides until groups of four end at the point.
        let digits = number.magnitude().to_digits();
        let fraction = usize::try_from(number.scale()).unwrap_or(0);
        let whole = digits.len().saturating_sub(fraction);
        let head = if digits.len() >= fraction {
            whole.next_multiple_of(4) - whole
        } else {
            fraction - digits.len()
        };
        let tail = fraction.next_multiple_of(4) - fraction;
        let padded = format!("{}{digits}{}", "0".repeat(head), "0".repeat(tail));
        let at =
            |chunk: &[u8]| chunk.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit.wrapping_sub(b'0')));
        groups = padded.as_bytes().chunks(4).map(at).collect();
        weight = groups.len() as i64 - (fraction.div_ceil(4)) as i64 - 1;
        let zeros = groups.iter().take_while(|group| **group == 0).count();
        groups.drain(..zeros);
        weight -= zeros as i64;
        while groups.last() == Some(&0) {
            groups.pop();
        }
    }
    let count = u16::try_from(groups.len()).unwrap_or(u16::MAX);
    let weight = i16::try_from(weight).unwrap_or(i16::MAX);
    let scale = u16::try_from(number.scale()).unwrap_or(0);
    out.extend(count.to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(scale.to_be_bytes());
    groups.iter().for_each(|group| out.extend(group.to_be_bytes()));
}

/// Reads the binary form.
pub fn from_base_10000(bytes: &[u8]) -> Result<Numeric, SqlError> {
    let invalid = |what: &str| {
        SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            format!("invalid {what} in external \"numeric\" value"),
        )
    };
    let short = || SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message");
    let mut words = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([byte(pair, 0), byte(pair, 1)]));
    let count = words.next().ok_or_else(short)?;
    let weight = i64::from(words.next().ok_or_else(short)?.cast_signed());
    let sign = words.next().ok_or_else(short)?;
    let scale = words.next().ok_or_else(short)?;
    match sign {
        0 | SIGN_NEGATIVE => {}
        SIGN_NAN => return Ok(Numeric::NaN),
        SIGN_INFINITY => return Ok(Numeric::Infinity),
        SIGN_NEGATIVE_INFINITY => return Ok(Numeric::NegativeInfinity),
        _ => return Err(invalid("sign")),
    }
    if scale > 0x3fff {
        return Err(invalid("scale"));
    }
    let mut digits = String::new();
    for _ in 0..count {
        let digit = words.next().ok_or_else(short)?;
        if digit >= 10_000 {
            return Err(invalid("digit"));
        }
        digits.push_str(&format!("{digit:04}"));
    }
    if words.next().is_some() || bytes.len() % 2 == 1 {
        return Err(SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format"));
    }
    // The digits end at this power of ten; the scale may cut some of them off.
    let end = (i64::from(count) - 1 - weight) * 4;
    let magnitude = Magnitude::from_digits(digits.as_bytes());
    let (scale, end) = (i64::from(scale), if magnitude.is_zero() { i64::from(scale) } else { end });
    let magnitude = if end <= scale {
        magnitude.mul_pow10(usize::try_from(scale - end).unwrap_or(0))
    } else {
        magnitude.div_pow10(usize::try_from(end - scale).unwrap_or(0)).0
    };
    Numeric::finite(
        sign == SIGN_NEGATIVE && !magnitude.is_zero(),
        magnitude,
        i32::try_from(scale).unwrap_or(0),
    )
}

fn byte(pair: &[u8], place: usize) -> u8 {
    pair.get(place).copied().unwrap_or(0)
}
