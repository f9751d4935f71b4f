//! PostgreSQL's NUMERIC on the wire, for numbers that fit into 64 bits with a few decimal places.
//!
//! The form is a number in base 10,000: how many digits, the weight of the first (its power of
//! 10,000), the sign, how many decimal places to show, and the digits. 1234567.89 has three digits,
//! 123, 4567 and 8900, the first of weight 1: 123 * 10^4 + 4567 + 8900 / 10^4. Digits that are zero
//! at either end are left out. We have up to four decimal places, so there is at most one digit
//! below the point, and no crate for decimals is needed.

/// Writes `units` of 10^-`scale`, `scale` at most 4, with its length before it, as COPY and
/// parameters have it.
pub fn write_numeric(out: &mut impl FnMut(&[u8]), units: i64, scale: u32) {
    let (digits, count, weight) = digits(units, scale);
    out(&(8 + 2 * count as i32).to_be_bytes());
    write_digits(out, &digits[..count], weight, units < 0, scale);
}

/// Writes the same without its length.
pub fn write_numeric_body(out: &mut impl FnMut(&[u8]), units: i64, scale: u32) {
    let (digits, count, weight) = digits(units, scale);
    write_digits(out, &digits[..count], weight, units < 0, scale);
}

fn write_digits(out: &mut impl FnMut(&[u8]), digits: &[i16], weight: i16, negative: bool, scale: u32) {
    let sign: u16 = if negative { 0x4000 } else { 0 };
    out(&(digits.len() as i16).to_be_bytes());
    out(&weight.to_be_bytes());
    out(&sign.to_be_bytes());
    out(&(scale as i16).to_be_bytes());
    for digit in digits {
        out(&digit.to_be_bytes());
    }
}

/// The digits in base 10,000, how many there are, and the weight of the first.
fn digits(units: i64, scale: u32) -> ([i16; 7], usize, i16) {
    debug_assert!(scale <= 4, "one digit in base 10,000 holds four decimal places");
    // In units of 10^-4 the lowest digit is the one below the point.
    let mut rest = u128::from(units.unsigned_abs()) * 10u128.pow(4 - scale);
    let mut reversed = [0i16; 7];
    let mut length = 0;
    while rest > 0 {
        reversed[length] = (rest % 10_000) as i16;
        rest /= 10_000;
        length += 1;
    }
    let below = reversed[..length].iter().take_while(|&&digit| digit == 0).count();
    let mut digits = [0i16; 7];
    for (to, from) in digits.iter_mut().zip(reversed[below..length].iter().rev()) {
        *to = *from;
    }
    (digits, length - below, length as i16 - 2)
}

/// Reads a NUMERIC as units of 10^-`scale`; none if it has more decimal places than that, is no
/// number, or is too large.
pub fn read_numeric(bytes: &[u8], scale: u32) -> Option<i64> {
    let field = |at: usize| Some(i16::from_be_bytes(bytes.get(2 * at..2 * at + 2)?.try_into().ok()?));
    let (count, weight, sign) = (field(0)?, field(1)?, field(2)? as u16);
    let mut units: i128 = 0;
    for at in 0..count {
        let digit = i128::from(field(4 + at as usize)?);
        let power = (i32::from(weight) - i32::from(at)) * 4 + scale as i32;
        let value = match u32::try_from(power) {
            Ok(power) => digit.checked_mul(10i128.checked_pow(power)?)?,
            Err(_) => {
                let divisor = 10i128.checked_pow(power.unsigned_abs())?;
                if digit % divisor != 0 {
                    return None;
                }
                digit / divisor
            }
        };
        units = units.checked_add(value)?;
    }
    match sign {
        0 => i64::try_from(units).ok(),
        0x4000 => i64::try_from(-units).ok(),
        _ => None,
    }
}

/// Reads a decimal number as text, `-12.3`, as units of 10^-`scale`.
pub fn parse_decimal(text: &str, scale: u32) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let kept = fraction.trim_end_matches('0');
    if whole.is_empty()
        || kept.len() > scale as usize
        || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let fraction: i64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let units =
        whole.checked_mul(10i64.pow(scale))?.checked_add(fraction * 10i64.pow(scale - kept.len() as u32))?;
    Some(if negative { -units } else { units })
}

/// A decimal number as text.
pub fn format_decimal(units: i64, scale: u32) -> String {
    let divisor = 10u64.pow(scale);
    let (whole, fraction) = (units.unsigned_abs() / divisor, units.unsigned_abs() % divisor);
    let sign = if units < 0 { "-" } else { "" };
    match scale {
        0 => format!("{sign}{whole}"),
        scale => format!("{sign}{whole}.{fraction:0>width$}", width = scale as usize),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(units: i64, scale: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_numeric(&mut |part| bytes.extend_from_slice(part), units, scale);
        assert_eq!(bytes[..4], (bytes.len() as i32 - 4).to_be_bytes());
        bytes.split_off(4)
    }

    #[test]
    fn a_number_is_written_in_base_ten_thousand() {
        let fields =
            |fields: &[i16]| fields.iter().flat_map(|field| field.to_be_bytes()).collect::<Vec<u8>>();
        assert_eq!(written(123_456_789, 2), fields(&[3, 1, 0, 2, 123, 4567, 8900]));
        assert_eq!(written(-1000, 2), fields(&[1, 0, 0x4000, 2, 10]));
        assert_eq!(written(0, 2)[..2], [0, 0]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(units in -i64::MAX.., scale in 0u32..=4, shift in 0u32..64) {
            // Small numbers as often as large ones.
            let units = units >> shift;
            prop_assert_eq!(read_numeric(&written(units, scale), scale), Some(units));
            prop_assert_eq!(parse_decimal(&format_decimal(units, scale), scale), Some(units));
        }

        #[test]
        fn what_somebody_else_has_written_is_read_or_refused(bytes: Vec<u8>, text: String, scale in 0u32..=4) {
            read_numeric(&bytes, scale);
            parse_decimal(&text, scale);
        }
    }

    #[test]
    fn decimals_are_read_as_people_write_them() {
        assert_eq!(format_decimal(-1005, 2), "-10.05");
        assert_eq!(parse_decimal("300000.00", 2), Some(30_000_000));
        assert_eq!(parse_decimal("0.125", 2), None);
        assert_eq!(parse_decimal("nan", 2), None);
    }
}
