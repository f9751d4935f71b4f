//! The text form of numerics.

use std::fmt;

use super::{Magnitude, Numeric, overflow};
use crate::{SqlError, SqlState};

impl Numeric {
    /// Reads a number as PostgreSQL writes and reads it.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let invalid = || {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type numeric: \"{text}\""),
            )
        };
        let body = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (negative, unsigned) = match body.strip_prefix(['+', '-']) {
            Some(rest) => (body.starts_with('-'), rest),
            None => (false, body),
        };
        match unsigned.to_ascii_lowercase().as_str() {
            "infinity" | "inf" if negative => return Ok(Numeric::NegativeInfinity),
            "infinity" | "inf" => return Ok(Numeric::Infinity),
            "nan" if unsigned.len() == body.len() => return Ok(Numeric::NaN),
            _ => {}
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return Err(invalid());
        }
        let exponent = match exponent {
            None => 0,
            Some(exponent) => {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !all_digits(digits) {
                    return Err(invalid());
                }
                // Half of what an int has, as PostgreSQL bounds it.
                let value = exponent.parse::<i64>().map_err(|_| invalid_exponent(&invalid()))?;
                if value.abs() >= i64::from(i32::MAX / 2) {
                    return Err(invalid_exponent(&invalid()));
                }
                value
            }
        };
        let scale = fraction.len() as i64 - exponent;
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let significant = digits.iter().skip_while(|digit| **digit == b'0').count() as i64;
        if scale > i64::from(super::SCALE_MAX)
            || significant - scale > super::WHOLE_DIGITS_MAX && significant > 0
        {
            return Err(overflow());
        }
        let magnitude = Magnitude::from_digits(&digits);
        if magnitude.is_zero() {
            return Numeric::finite(false, magnitude, i32::try_from(scale.max(0)).unwrap_or(0));
        }
        Numeric::finite(negative, magnitude, i32::try_from(scale).map_err(|_| overflow())?)
    }
}

fn invalid_exponent(invalid: &SqlError) -> SqlError {
    // The exponent alone is out of range: the whole is then no number at all.
    SqlError { state: SqlState::INVALID_TEXT_REPRESENTATION, ..invalid.clone() }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, scale) = match self {
            Numeric::Small(mantissa, scale) => (mantissa.unsigned_abs().to_string(), usize::from(*scale)),
            Numeric::Big(big) => (big.magnitude.to_digits(), usize::from(big.scale)),
            Numeric::NaN => return f.write_str("NaN"),
            Numeric::Infinity => return f.write_str("Infinity"),
            Numeric::NegativeInfinity => return f.write_str("-Infinity"),
        };
        if self.is_negative() {
            f.write_str("-")?;
        }
        if scale == 0 {
            return f.write_str(&digits);
        }
        let padded =
            if digits.len() <= scale { format!("{digits:0>width$}", width = scale + 1) } else { digits };
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        write!(f, "{whole}.{fraction}")
    }
}
