//! Byte strings as text: `\x` and hexadecimal digits, or the older escapes.

use crate::{SqlError, SqlState};

/// Reads either form.
pub fn parse(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return from_hex(digits);
    }
    let invalid =
        || SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea");
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'\\' {
            out.push(first);
            rest = after;
            continue;
        }
        match after {
            [b'\\', after @ ..] => {
                out.push(b'\\');
                rest = after;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => return Err(invalid()),
        }
    }
    Ok(out)
}

/// Reads hexadecimal digits, between which there may be blanks.
pub fn from_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high: Option<u8> = None;
    for c in text.chars() {
        if high.is_none() && matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit = c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(|| {
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""))
        })?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    match high {
        None => Ok(out),
        Some(_) => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "invalid hexadecimal data: odd number of digits",
        )),
    }
}

/// Appends hexadecimal digits.
pub fn to_hex(bytes: &[u8], out: &mut String) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
}

/// Appends the older form.
pub fn escape(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => octal(byte, out),
        }
    }
}

/// Appends a byte as a backslash and three octal digits.
pub fn octal(byte: u8, out: &mut String) {
    out.push('\\');
    for digit in [byte >> 6, byte >> 3 & 7, byte & 7] {
        out.push(char::from(b'0' + digit));
    }
}
