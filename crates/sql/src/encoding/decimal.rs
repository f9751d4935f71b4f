//! `numeric` as bytes that are ordered as the numbers are. Equal numbers have equal bytes, whatever
//! their scales.
//!
//! | bytes | |
//! |---|---|
//! | 1 | the class |
//! | 2, big endian | the exponent in base 100 plus 8192: the lowest 16 of its 17 bits |
//! | 1 for each digit in base 100 | `2d + 1`, and `2d` for the last digit |
//!
//! | class | |
//! |---|---|
//! | `10`, `30`, `50`, `60` | -infinity, zero, infinity, NaN: nothing follows |
//! | `40`, `41` | positive, below and from 100^57344 on: the 17th bit of the exponent |
//! | `21`, `20` | the same, negative: the other bytes are flipped |
//!
//! Digits of zero at the end are left out, so the last digit's byte is not 0, and it alone is even,
//! so the bytes end where they say.
//!
//! Example. 12.5 is `40 20 00 19 64`: exponent 0, digits 12 and 50. -12.5 is `21 df ff e6 9b`.

use super::bytes::{Bytes, corrupted};
use crate::SqlError;
use crate::types::Numeric;
use crate::types::numeric::Magnitude;

const NEGATIVE_INFINITY: u8 = 0x10;
const NEGATIVE_LARGE: u8 = 0x20;
const NEGATIVE: u8 = 0x21;
const ZERO: u8 = 0x30;
const POSITIVE: u8 = 0x40;
const POSITIVE_LARGE: u8 = 0x41;
const INFINITY: u8 = 0x50;
const NAN: u8 = 0x60;

/// What is added to an exponent; the least exponent is that of 10^-16383.
const BIAS: i64 = 8192;

/// Appends a number.
pub fn put(number: &Numeric, out: &mut Vec<u8>) {
    match number {
        Numeric::NegativeInfinity => out.push(NEGATIVE_INFINITY),
        Numeric::Infinity => out.push(INFINITY),
        Numeric::NaN => out.push(NAN),
        Numeric::Small(0, _) => out.push(ZERO),
        Numeric::Small(..) | Numeric::Big(_) => put_finite(number, out),
    }
}

fn put_finite(number: &Numeric, out: &mut Vec<u8>) {
    let biased = number.exponent().div_euclid(2) + BIAS;
    let is_large = biased > i64::from(u16::MAX);
    out.push(match (number.is_negative(), is_large) {
        (true, true) => NEGATIVE_LARGE,
        (true, false) => NEGATIVE,
        (false, false) => POSITIVE,
        (false, true) => POSITIVE_LARGE,
    });
    let start = out.len();
    out.extend(u16::try_from(biased & 0xffff).unwrap_or(u16::MAX).to_be_bytes());
    // A first digit in base 100 has one decimal digit if the power of ten of that is even.
    let mut digits = Vec::new();
    if number.exponent().rem_euclid(2) == 0 {
        digits.push(b'0');
    }
    digits.extend_from_slice(number.magnitude().to_digits().trim_end_matches('0').as_bytes());
    out.extend(digits.chunks(2).map(|pair| {
        let at = |place: usize| pair.get(place).map_or(0, |digit| digit.wrapping_sub(b'0'));
        2 * (10 * at(0) + at(1)) + 1
    }));
    if let Some(last) = out.last_mut() {
        *last -= 1;
    }
    if number.is_negative() {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// Reads a number. It has as few digits after the point as it needs.
pub fn take(bytes: &mut Bytes<'_>) -> Result<Numeric, SqlError> {
    let class = bytes.u8()?;
    let (negative, large) = match class {
        NEGATIVE_INFINITY => return Ok(Numeric::NegativeInfinity),
        ZERO => return Ok(Numeric::ZERO),
        INFINITY => return Ok(Numeric::Infinity),
        NAN => return Ok(Numeric::NaN),
        NEGATIVE_LARGE => (true, true),
        NEGATIVE => (true, false),
        POSITIVE => (false, false),
        POSITIVE_LARGE => (false, true),
        _ => return Err(foreign()),
    };
    let flip = if negative { 0xff } else { 0 };
    let [high, low] = bytes.take()?;
    let biased = i64::from(u16::from_be_bytes([high ^ flip, low ^ flip])) + (i64::from(large) << 16);
    let mut digits = Vec::new();
    loop {
        let byte = bytes.u8()? ^ flip;
        let digit = byte / 2;
        if digit > 99 || digit == 0 && (digits.is_empty() || byte % 2 == 0) {
            return Err(foreign());
        }
        digits.extend([b'0' + digit / 10, b'0' + digit % 10]);
        if byte % 2 == 0 {
            break;
        }
    }
    // The scale that ends at the last decimal digit.
    let mut scale = digits.len() as i64 - 2 - 2 * (biased - BIAS);
    if digits.last() == Some(&b'0') {
        digits.pop();
        scale -= 1;
    }
    let scale = i32::try_from(scale).map_err(|_| foreign())?;
    Numeric::finite(negative, Magnitude::from_digits(&digits), scale).map_err(|_| foreign())
}

/// Whether reading gives the very number and not only an equal one: its scale is the least one.
pub fn is_exact(number: &Numeric) -> bool {
    match number {
        Numeric::Small(mantissa, scale) => *scale == 0 || mantissa % 10 != 0,
        Numeric::Big(big) => big.scale == 0 || !big.magnitude.to_digits().ends_with('0'),
        Numeric::NaN | Numeric::Infinity | Numeric::NegativeInfinity => true,
    }
}

fn foreign() -> SqlError {
    corrupted("No numeric has these bytes.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_bytes_that_the_head_of_the_file_says() {
        let bytes = |text: &str| {
            let mut out = Vec::new();
            put(&Numeric::parse(text).expect("a number"), &mut out);
            out
        };
        assert_eq!(bytes("12.5"), [0x40, 0x20, 0, 0x19, 0x64]);
        assert_eq!(bytes("-12.500"), [0x21, 0xdf, 0xff, 0xe6, 0x9b]);
        assert_eq!(bytes("0.00"), [0x30]);
        assert_eq!(bytes("1e131071"), [0x41, 0x1f, 0xff, 20]);
        assert_eq!(bytes("1e-16383"), [0x40, 0, 0, 20]);
    }
}
