//! Floating point numbers as text.
//!
//! The shortest digits that tell a number are those of Rust's library but for two cases, in which
//! PostgreSQL is stricter: digits that lie exactly halfway to the next number do not tell it,
//! although they would be read as it (`1e23`), and of two digits that are equally near the even one
//! is taken.

use crate::{SqlError, SqlState};

fn invalid(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

/// What of a text is a number: `NaN`, infinities and decimals, hexadecimals not.
fn body(text: &str) -> Option<&str> {
    let body = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let unsigned = body.strip_prefix(['+', '-']).unwrap_or(body);
    let known = ["nan", "inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    (known || decimal).then_some(body)
}

fn is_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0')
}

fn is_word(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic() && !byte.eq_ignore_ascii_case(&b'e'))
}

/// Reads a `double precision`.
pub fn parse8(text: &str) -> Result<f64, SqlError> {
    let name = "double precision";
    let body = body(text).ok_or_else(|| invalid(name, text))?;
    let value: f64 = body.parse().map_err(|_| invalid(name, text))?;
    if !is_word(body) && (value.is_infinite() || value == 0.0 && !is_zero(body)) {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{body}\" is out of range for type double precision"),
        ));
    }
    Ok(value)
}

/// Reads a `real`.
pub fn parse4(text: &str) -> Result<f32, SqlError> {
    let body = body(text).ok_or_else(|| invalid("real", text))?;
    let value: f32 = body.parse().map_err(|_| invalid("real", text))?;
    if !is_word(body) && (value.is_infinite() || value == 0.0 && !is_zero(body)) {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{body}\" is out of range for type real"),
        ));
    }
    Ok(value)
}

/// Appends a `double precision`: above 0 extra digits the shortest text that tells the number.
pub fn write8(value: f64, extra_digits: i32, out: &mut String) {
    match special(value) {
        Some(word) => out.push_str(word),
        None if extra_digits > 0 => {
            let bits = value.to_bits();
            let binary =
                Binary::of(bits & ((1 << 52) - 1), i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0), 52, 1023);
            let digits = binary.strict(
                format!("{value:e}"),
                |places| format!("{value:.places$e}"),
                |text| text.parse() == Ok(value),
            );
            shortest(&digits, 15, out);
        }
        None => rounded(value, 15 + extra_digits, out),
    }
}

/// Appends a `real`.
pub fn write4(value: f32, extra_digits: i32, out: &mut String) {
    match special(f64::from(value)) {
        Some(word) => out.push_str(word),
        None if extra_digits > 0 => {
            let bits = value.to_bits();
            let fraction = u64::from(bits & ((1 << 23) - 1));
            let binary = Binary::of(fraction, i32::try_from(bits >> 23 & 0xff).unwrap_or(0), 23, 127);
            let digits = binary.strict(
                format!("{value:e}"),
                |places| format!("{value:.places$e}"),
                |text| text.parse() == Ok(value),
            );
            shortest(&digits, 6, out);
        }
        None => rounded(f64::from(value), 6 + extra_digits, out),
    }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// C's `%.*g`.
fn rounded(value: f64, digits: i32, out: &mut String) {
    let digits = usize::try_from(digits.max(1)).unwrap_or(1);
    let scientific = format!("{value:.places$e}", places = digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let trimmed =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    shortest(&format!("{trimmed}e{exponent}"), i32::try_from(digits).unwrap_or(15), out);
}

/// Writes `1.5e3` as `1500`, unless the exponent is so small or so large that it stays.
fn shortest(scientific: &str, digits_max: i32, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits_max {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()));
        return;
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    out.push_str(sign);
    match usize::try_from(exponent) {
        Ok(exponent) if digits.len() > exponent + 1 => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            out.push_str(&format!("{whole}.{fraction}"));
        }
        Ok(exponent) => out.push_str(&format!("{digits:0<width$}", width = exponent + 1)),
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            out.push_str(&format!("0.{}{digits}", "0".repeat(zeros)));
        }
    }
}

/// A float as `mantissa * 2^exponent`.
struct Binary {
    mantissa: u64,
    exponent: i32,
}

impl Binary {
    /// From the parts of its bits.
    fn of(fraction: u64, biased: i32, fraction_bits: u32, bias: i32) -> Binary {
        let lowest = 1 - bias - fraction_bits.cast_signed();
        if biased == 0 {
            return Binary { mantissa: fraction, exponent: lowest };
        }
        Binary { mantissa: fraction | 1 << fraction_bits, exponent: lowest + biased - 1 }
    }

    /// Whether `digits * 10^power` is `odd_half * 2^(exponent - 1)`.
    fn is(&self, digits: u64, power: i32, odd_half: u64) -> bool {
        let fives = |power: u32| 5u128.checked_pow(power);
        // 10^power is 5^power * 2^power; what has more fives than this has a larger odd part.
        let rest = match (u32::try_from(power), u32::try_from(-power)) {
            (Ok(power), _) if power <= 24 => fives(power).and_then(|fives| fives.checked_mul(digits.into())),
            (_, Ok(power)) if power <= 24 => fives(power)
                .filter(|fives| u128::from(digits) % fives == 0)
                .map(|fives| u128::from(digits) / fives),
            _ => None,
        };
        let Some(rest) = rest.filter(|rest| *rest != 0 && odd_half != 0) else { return false };
        let (left, right) = (rest.trailing_zeros().cast_signed(), odd_half.trailing_zeros().cast_signed());
        rest >> left == u128::from(odd_half >> right) && left + power == right + self.exponent - 1
    }

    /// Digits as PostgreSQL has them, from the shortest there are; `longer` writes so many places,
    /// `reads` says whether a text is read as the number.
    fn strict(
        &self,
        shortest: String,
        longer: impl Fn(usize) -> String,
        reads: impl Fn(&str) -> bool,
    ) -> String {
        let mut text = shortest;
        loop {
            let Some((digits, power, places)) = parts(&text) else { return text };
            let twice = self.mantissa.saturating_mul(2);
            let halfway = self.is(digits, power, twice.saturating_add(1))
                || self.is(digits, power, twice.saturating_sub(1));
            if halfway && places < 17 {
                text = longer(places + 1);
                continue;
            }
            // Halves of a digit: 2 * digits +- 1 at half the power.
            let is_tie = |half: u64| self.is(half, power, twice.saturating_mul(2));
            let even = if digits % 2 == 0 {
                digits
            } else if is_tie(digits.saturating_mul(2).saturating_sub(1)) {
                digits - 1
            } else if is_tie(digits.saturating_mul(2).saturating_add(1)) {
                digits + 1
            } else {
                digits
            };
            if even == digits {
                return text;
            }
            let sign = if text.starts_with('-') { "-" } else { "" };
            let shown = even.to_string();
            let (first, rest) = shown.split_at(1);
            let exponent = power + i32::try_from(rest.len()).unwrap_or(0);
            let rest = rest.trim_end_matches('0');
            let point = if rest.is_empty() { "" } else { "." };
            let even = format!("{sign}{first}{point}{rest}e{exponent}");
            // Next to a power of two the numbers below are nearer than those above.
            return if reads(&even) { even } else { text };
        }
    }
}

/// The digits of `-1.5e3` as a whole number, the power of ten of the last, and places after the
/// point.
fn parts(scientific: &str) -> Option<(u64, i32, usize)> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    Some((digits, exponent - i32::try_from(fraction.len()).ok()?, fraction.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(value: f64) -> String {
        let mut out = String::new();
        write8(value, 1, &mut out);
        out
    }

    #[test]
    fn halves_are_shown_as_postgresql_shows_them() {
        assert_eq!(shown(1e23), "9.999999999999999e+22");
        assert_eq!(shown(36_012_026_242_414_912.0), "3.6012026242414912e+16");
        assert_eq!(shown(1_648_431_872_091_733.0 / 8.0), "206053984011466.62");
        assert_eq!(shown(2f64.powi(-24)), "5.960464477539063e-08");
        assert_eq!(shown(-0.1), "-0.1");
        assert_eq!(shown(5e-324), "5e-324");
        assert_eq!(shown(f64::MAX), "1.7976931348623157e+308");
    }

    proptest! {
        #[test]
        fn a_float_is_read_as_it_was_shown(bits in any::<u64>(), whole in any::<i64>()) {
            for value in [f64::from_bits(bits), whole as f64, whole as f64 / 8.0] {
                if !value.is_nan() {
                    prop_assert_eq!(parse8(&shown(value)).ok(), Some(value));
                }
                let narrow = value as f32;
                let mut out = String::new();
                write4(narrow, 1, &mut out);
                if narrow.is_finite() {
                    prop_assert_eq!(parse4(&out).ok(), Some(narrow));
                }
            }
        }
    }
}
