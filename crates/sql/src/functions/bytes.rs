//! Functions of byte strings.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::strings::substring_bounds;
use super::{Call, Outcome, bounded, refuse};
use crate::types::{Datum, bytes};
use crate::{SqlError, SqlState};

/// `||`
pub fn concat(call: &Call<'_>) -> Outcome {
    let (left, right) = (call.bytes(0)?, call.bytes(1)?);
    bounded(left.len() + right.len())?;
    Ok(Datum::Bytes([&**left, &**right].concat().into()))
}

/// `substring()`
pub fn substring(call: &Call<'_>) -> Outcome {
    let length = if call.count() > 2 { Some(call.integer(2)?) } else { None };
    let (from, to) = substring_bounds(call.integer(1)?, length)?;
    let bytes = call.bytes(0)?;
    let to = to.min(bytes.len());
    Ok(Datum::Bytes(bytes.get(from.min(to)..to).unwrap_or_default().into()))
}

/// `position()`
pub fn position(call: &Call<'_>) -> Outcome {
    let (bytes, part) = (call.bytes(0)?, call.bytes(1)?);
    if part.is_empty() {
        return Ok(Datum::Int4(1));
    }
    let at = found(bytes, part);
    Ok(Datum::Int4(at.and_then(|at| i32::try_from(at + 1).ok()).unwrap_or(0)))
}

/// Where a part first begins, in time that grows with the sum of both lengths (Knuth, Morris,
/// Pratt).
fn found(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let at = |place: usize| part.get(place).copied();
    // Of every beginning of the part the length of the longest one that it ends with.
    let mut ends = vec![0usize];
    let back = |ends: &[usize], mut length: usize, byte: u8| {
        while length > 0 && at(length) != Some(byte) {
            length = ends.get(length - 1).copied().unwrap_or(0);
        }
        length + usize::from(at(length) == Some(byte))
    };
    for byte in part.iter().skip(1) {
        let length = back(&ends, ends.last().copied().unwrap_or(0), *byte);
        ends.push(length);
    }
    let mut length = 0;
    for (place, byte) in bytes.iter().enumerate() {
        length = back(&ends, length, *byte);
        if length == part.len() {
            return Some(place + 1 - length);
        }
    }
    None
}

fn trimmed(call: &Call<'_>, start: bool, end: bool) -> Outcome {
    let (bytes, mut set) = (call.bytes(0)?, [false; 256]);
    for byte in call.bytes(1)?.iter() {
        if let Some(slot) = set.get_mut(usize::from(*byte)) {
            *slot = true;
        }
    }
    let stays = |byte: &u8| !set.get(usize::from(*byte)).copied().unwrap_or(false);
    let from = if start { bytes.iter().position(stays).unwrap_or(bytes.len()) } else { 0 };
    let to = if end { bytes.iter().rposition(stays).map_or(from, |last| last + 1) } else { bytes.len() };
    Ok(Datum::Bytes(bytes.get(from..to.max(from)).unwrap_or_default().into()))
}

/// `btrim()`
pub fn btrim(call: &Call<'_>) -> Outcome {
    trimmed(call, true, true)
}

/// `ltrim()`
pub fn ltrim(call: &Call<'_>) -> Outcome {
    trimmed(call, true, false)
}

/// `rtrim()`
pub fn rtrim(call: &Call<'_>) -> Outcome {
    trimmed(call, false, true)
}

fn index(call: &Call<'_>, bits: bool) -> Result<usize, SqlError> {
    let (place, length) = (call.integer(1)?, call.bytes(0)?.len() * if bits { 8 } else { 1 });
    usize::try_from(place).ok().filter(|place| *place < length).ok_or_else(|| {
        let last = i64::try_from(length).unwrap_or(i64::MAX) - 1;
        SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, format!("index {place} out of valid range, 0..{last}"))
    })
}

/// `get_byte()`
pub fn get_byte(call: &Call<'_>) -> Outcome {
    let place = index(call, false)?;
    Ok(Datum::Int4(call.bytes(0)?.get(place).copied().map_or(0, i32::from)))
}

/// `set_byte()`
pub fn set_byte(call: &Call<'_>) -> Outcome {
    let place = index(call, false)?;
    let mut bytes = call.bytes(0)?.to_vec();
    if let Some(byte) = bytes.get_mut(place) {
        *byte = u8::try_from(call.integer(2)? & 0xff).unwrap_or(0);
    }
    Ok(Datum::Bytes(bytes.into()))
}

/// `get_bit()`
pub fn get_bit(call: &Call<'_>) -> Outcome {
    let place = index(call, true)?;
    let byte = call.bytes(0)?.get(place / 8).copied().unwrap_or(0);
    Ok(Datum::Int4(i32::from(byte >> (place % 8) & 1)))
}

/// `encode()`
pub fn encode(call: &Call<'_>) -> Outcome {
    let (bytes, form) = (call.bytes(0)?, call.text(1)?);
    bounded(bytes.len().saturating_mul(2))?;
    let mut out = String::new();
    match form.to_ascii_lowercase().as_str() {
        "hex" => bytes::to_hex(bytes, &mut out),
        "escape" => {
            for &byte in bytes.iter() {
                match byte {
                    0 | 0x80.. => bytes::octal(byte, &mut out),
                    b'\\' => out.push_str("\\\\"),
                    _ => out.push(char::from(byte)),
                }
            }
        }
        "base64" => to_base64(bytes, &mut out),
        _ => return unknown(form),
    }
    Ok(Datum::text(out))
}

fn unknown<T>(form: &str) -> Result<T, SqlError> {
    refuse(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized encoding: \"{form}\""))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Lines of 76 characters, as in mail.
fn to_base64(bytes: &[u8], out: &mut String) {
    for (place, chunk) in bytes.chunks(3).enumerate() {
        if place > 0 && place % 19 == 0 {
            out.push('\n');
        }
        let word = (0..3).fold(0usize, |word, at| word << 8 | chunk.get(at).copied().map_or(0, usize::from));
        for at in 0..4 {
            let letter = ALPHABET.get(word >> (18 - 6 * at) & 63).copied().unwrap_or(b'=');
            out.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
}

fn from_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let bad = |message: String| refuse(SqlState::INVALID_PARAMETER_VALUE, message);
    let (mut out, mut word, mut count, mut ends) = (Vec::new(), 0u32, 0u8, 0u8);
    for c in text.chars() {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        let digit = if c == '=' {
            if ends == 0 {
                match count {
                    2 => ends = 1,
                    3 => ends = 2,
                    _ => return bad("unexpected \"=\" while decoding base64 sequence".to_owned()),
                }
            }
            0
        } else {
            let known = ALPHABET.iter().position(|letter| char::from(*letter) == c);
            match known.and_then(|place| u32::try_from(place).ok()) {
                Some(digit) => digit,
                None => return bad(format!("invalid symbol \"{c}\" found while decoding base64 sequence")),
            }
        };
        word = word << 6 | digit;
        count += 1;
        if count == 4 {
            let [_, a, b, c] = word.to_be_bytes();
            out.push(a);
            if ends != 1 {
                out.push(b);
                if ends != 2 {
                    out.push(c);
                }
            }
            (word, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

/// `decode()`
pub fn decode(call: &Call<'_>) -> Outcome {
    let (text, form) = (call.text(0)?, call.text(1)?);
    let bytes = match form.to_ascii_lowercase().as_str() {
        "hex" => bytes::from_hex(text)?,
        "escape" => bytes::parse(text)?,
        "base64" => from_base64(text)?,
        _ => return unknown(form),
    };
    Ok(Datum::Bytes(bytes.into()))
}

/// `convert_to()`
pub fn convert_to(call: &Call<'_>) -> Outcome {
    check_encoding(call.text(1)?, "destination")?;
    Ok(Datum::Bytes(call.text(0)?.as_bytes().into()))
}

/// `convert_from()`
pub fn convert_from(call: &Call<'_>) -> Outcome {
    check_encoding(call.text(1)?, "source")?;
    crate::types::decode(
        crate::types::Oid::TEXT,
        crate::types::Format::Text,
        call.bytes(0)?,
        call.context.style,
    )
}

fn check_encoding(name: &str, which: &str) -> Result<(), SqlError> {
    if matches!(name.to_ascii_uppercase().as_str(), "UTF8" | "UTF-8" | "UNICODE") {
        return Ok(());
    }
    refuse(SqlState::INVALID_PARAMETER_VALUE, format!("invalid {which} encoding name \"{name}\""))
}

fn digest<D: Digest>(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bytes(D::digest(&**call.bytes(0)?).to_vec().into()))
}

/// `sha224()`
pub fn sha224(call: &Call<'_>) -> Outcome {
    digest::<Sha224>(call)
}

/// `sha256()`
pub fn sha256(call: &Call<'_>) -> Outcome {
    digest::<Sha256>(call)
}

/// `sha384()`
pub fn sha384(call: &Call<'_>) -> Outcome {
    digest::<Sha384>(call)
}

/// `sha512()`
pub fn sha512(call: &Call<'_>) -> Outcome {
    digest::<Sha512>(call)
}

#[cfg(test)]
mod tests {
    use super::found;

    #[test]
    fn a_part_is_found_where_it_first_begins() {
        let texts = ["", "a", "ab", "aab", "abab", "aabaab", "abaabab", "bbabbab"];
        for (text, part) in texts.iter().flat_map(|text| texts.iter().skip(1).map(move |part| (text, part))) {
            assert_eq!(found(text.as_bytes(), part.as_bytes()), text.find(part), "{part} in {text}");
        }
    }
}
