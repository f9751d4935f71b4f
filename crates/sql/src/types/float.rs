//! Floating point numbers as text.

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
        None if extra_digits > 0 => shortest(&format!("{value:e}"), 15, out),
        None => rounded(value, 15 + extra_digits, out),
    }
}

/// Appends a `real`.
pub fn write4(value: f32, extra_digits: i32, out: &mut String) {
    match special(f64::from(value)) {
        Some(word) => out.push_str(word),
        None if extra_digits > 0 => shortest(&format!("{value:e}"), 6, out),
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
