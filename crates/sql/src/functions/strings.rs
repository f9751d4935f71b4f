//! Functions of strings. Positions and lengths count characters.

use std::collections::{BTreeMap, BTreeSet};

use md5::{Digest, Md5};

use super::{Call, Outcome, bounded, refuse};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

fn char_at(text: &str, place: usize) -> usize {
    text.char_indices().nth(place).map_or(text.len(), |(at, _)| at)
}

/// The characters of a text from one place to another, which may be outside of it.
fn slice(text: &str, from: usize, to: usize) -> &str {
    let start = char_at(text, from);
    let rest = text.get(start..).unwrap_or_default();
    rest.get(..char_at(rest, to.saturating_sub(from))).unwrap_or_default()
}

/// `length()` of `char(n)` without the blanks at its end, and of other strings.
pub fn length(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    let text = if call.type_of(0) == Oid::BPCHAR { text.trim_end_matches(' ') } else { text };
    count(text.chars().count())
}

fn count(value: usize) -> Outcome {
    i32::try_from(value).map(Datum::Int4).map_err(|_| super::out_of_range("integer"))
}

/// `octet_length()`
pub fn octet_length(call: &Call<'_>) -> Outcome {
    match call.at(0) {
        Datum::Bytes(bytes) => count(bytes.len()),
        _ => count(call.text(0)?.len()),
    }
}

/// `bit_length()`
pub fn bit_length(call: &Call<'_>) -> Outcome {
    match octet_length(call)? {
        Datum::Int4(bytes) => {
            bytes.checked_mul(8).map(Datum::Int4).ok_or_else(|| super::out_of_range("integer"))
        }
        other => Ok(other),
    }
}

/// `upper()`; the collation `C` knows ASCII only.
pub fn upper(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(call.text(0)?.to_ascii_uppercase()))
}

/// `lower()`
pub fn lower(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(call.text(0)?.to_ascii_lowercase()))
}

/// `initcap()`
pub fn initcap(call: &Call<'_>) -> Outcome {
    let mut inside = false;
    let change = |c: char| {
        let changed = if inside { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        inside = c.is_ascii_alphanumeric();
        changed
    };
    Ok(Datum::text(call.text(0)?.chars().map(change).collect::<String>()))
}

/// The places that `substring(x from a for n)` takes.
pub fn substring_bounds(from: i64, length: Option<i64>) -> Result<(usize, usize), SqlError> {
    let start = from - 1;
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => {
            return refuse(SqlState::SUBSTRING_ERROR, "negative substring length not allowed");
        }
        Some(length) => start.saturating_add(length),
    };
    let place = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX);
    Ok((place(start), place(end)))
}

/// `substring()`, `substr()`
pub fn substring(call: &Call<'_>) -> Outcome {
    let length = if call.count() > 2 { Some(call.integer(2)?) } else { None };
    let (from, to) = substring_bounds(call.integer(1)?, length)?;
    Ok(Datum::text(slice(call.text(0)?, from, to)))
}

/// `left()`
pub fn left(call: &Call<'_>) -> Outcome {
    let (text, n) = (call.text(0)?, call.integer(1)?);
    let total = text.chars().count();
    Ok(Datum::text(slice(text, 0, end_of(total, n))))
}

/// `right()`
pub fn right(call: &Call<'_>) -> Outcome {
    let (text, n) = (call.text(0)?, call.integer(1)?);
    let total = text.chars().count();
    Ok(Datum::text(slice(text, total - end_of(total, n), total)))
}

/// How many characters `n` means, which counts from the other end below 0.
fn end_of(total: usize, n: i64) -> usize {
    let wanted = if n < 0 { i64::try_from(total).unwrap_or(i64::MAX).saturating_add(n) } else { n };
    usize::try_from(wanted.max(0)).unwrap_or(0).min(total)
}

/// `position()`, `strpos()`
pub fn position(call: &Call<'_>) -> Outcome {
    let (text, part) = (call.text(0)?, call.text(1)?);
    match text.find(&**part) {
        None => Ok(Datum::Int4(0)),
        Some(at) => count(text.get(..at).unwrap_or_default().chars().count() + 1),
    }
}

/// `overlay()`
pub fn overlay(call: &Call<'_>) -> Outcome {
    let (text, part, from) = (call.text(0)?, call.text(1)?, call.integer(2)?);
    let length =
        if call.count() > 3 { call.integer(3)? } else { i64::try_from(part.chars().count()).unwrap_or(0) };
    if from <= 0 {
        return refuse(SqlState::SUBSTRING_ERROR, "negative substring length not allowed");
    }
    let place = |value: i64| usize::try_from(value.max(0)).unwrap_or(usize::MAX);
    let head = slice(text, 0, place(from - 1));
    let tail = slice(text, place(from - 1 + length), usize::MAX);
    Ok(Datum::text(format!("{head}{part}{tail}")))
}

fn characters(call: &Call<'_>) -> Result<BTreeSet<char>, SqlError> {
    if call.count() > 1 { Ok(call.text(1)?.chars().collect()) } else { Ok(BTreeSet::from([' '])) }
}

/// `btrim()`
pub fn btrim(call: &Call<'_>) -> Outcome {
    let set = characters(call)?;
    Ok(Datum::text(call.text(0)?.trim_matches(|c| set.contains(&c))))
}

/// `ltrim()`
pub fn ltrim(call: &Call<'_>) -> Outcome {
    let set = characters(call)?;
    Ok(Datum::text(call.text(0)?.trim_start_matches(|c| set.contains(&c))))
}

/// `rtrim()`
pub fn rtrim(call: &Call<'_>) -> Outcome {
    let set = characters(call)?;
    Ok(Datum::text(call.text(0)?.trim_end_matches(|c| set.contains(&c))))
}

/// What fills a text up to a length, and the text cut to it.
fn padding<'a>(call: &'a Call<'_>) -> Result<(&'a str, String), SqlError> {
    let text = call.text(0)?;
    let length = usize::try_from(call.integer(1)?.max(0)).unwrap_or(0);
    bounded(length)?;
    let fill: &str = if call.count() > 2 { call.text(2)? } else { " " };
    let text = slice(text, 0, length);
    let (missing, width) = (length - text.chars().count(), fill.chars().count());
    if fill.is_empty() {
        return Ok((text, String::new()));
    }
    let (times, rest) = (missing / width, slice(fill, 0, missing % width));
    bounded(text.len() + times.saturating_mul(fill.len()) + rest.len())?;
    Ok((text, fill.repeat(times) + rest))
}

/// `lpad()`
pub fn lpad(call: &Call<'_>) -> Outcome {
    let (text, fill) = padding(call)?;
    Ok(Datum::text(fill + text))
}

/// `rpad()`
pub fn rpad(call: &Call<'_>) -> Outcome {
    let (text, fill) = padding(call)?;
    Ok(Datum::text(format!("{text}{fill}")))
}

/// `repeat()`
pub fn repeat(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    let times = usize::try_from(call.integer(1)?.max(0)).unwrap_or(0);
    bounded(text.len().saturating_mul(times))?;
    Ok(Datum::text(text.repeat(times)))
}

/// `reverse()`
pub fn reverse(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(call.text(0)?.chars().rev().collect::<String>()))
}

/// `replace()`
pub fn replace(call: &Call<'_>) -> Outcome {
    let (text, from, to) = (call.text(0)?, call.text(1)?, call.text(2)?);
    if from.is_empty() || text.is_empty() {
        return Ok(call.at(0).clone());
    }
    bounded(text.len() + text.matches(&**from).count().saturating_mul(to.len()))?;
    Ok(Datum::text(text.replace(&**from, to)))
}

/// `translate()`
pub fn translate(call: &Call<'_>) -> Outcome {
    let (from, to): (Vec<char>, Vec<char>) =
        (call.text(1)?.chars().collect(), call.text(2)?.chars().collect());
    let mut changes = BTreeMap::new();
    for (place, c) in from.into_iter().enumerate() {
        changes.entry(c).or_insert(to.get(place).copied());
    }
    let change = |c: char| changes.get(&c).copied().unwrap_or(Some(c));
    Ok(Datum::text(call.text(0)?.chars().filter_map(change).collect::<String>()))
}

/// `split_part()`
pub fn split_part(call: &Call<'_>) -> Outcome {
    let (text, separator, n) = (call.text(0)?, call.text(1)?, call.integer(2)?);
    if n == 0 {
        return refuse(SqlState::INVALID_PARAMETER_VALUE, "field position must not be zero");
    }
    if text.is_empty() {
        return Ok(Datum::text(""));
    }
    if separator.is_empty() {
        return Ok(if n.abs() == 1 { call.at(0).clone() } else { Datum::text("") });
    }
    let place = usize::try_from(n.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let part = if n > 0 { text.split(&**separator).nth(place) } else { text.rsplit(&**separator).nth(place) };
    Ok(Datum::text(part.unwrap_or("")))
}

/// `ascii()`
pub fn ascii(call: &Call<'_>) -> Outcome {
    let code = call.text(0)?.chars().next().map_or(0, u32::from);
    Ok(Datum::Int4(i32::try_from(code).unwrap_or(0)))
}

/// `chr()`
pub fn chr(call: &Call<'_>) -> Outcome {
    let code = call.integer(0)?;
    if code == 0 {
        return refuse(SqlState::PROGRAM_LIMIT_EXCEEDED, "null character not permitted");
    }
    if code < 0 {
        return refuse(SqlState::INVALID_PARAMETER_VALUE, "character number must be positive");
    }
    match u32::try_from(code).ok().and_then(char::from_u32) {
        Some(c) => Ok(Datum::text(c.to_string())),
        None if code > 0x0010_ffff => refuse(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("requested character too large for encoding: {code}"),
        ),
        None => refuse(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("requested character not valid for encoding: {code}"),
        ),
    }
}

/// `starts_with()`, `^@`
pub fn starts_with(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(call.text(0)?.starts_with(&**call.text(1)?)))
}

/// `md5()`
pub fn md5(call: &Call<'_>) -> Outcome {
    let digest = match call.at(0) {
        Datum::Bytes(bytes) => Md5::digest(bytes),
        _ => Md5::digest(call.text(0)?.as_bytes()),
    };
    let mut out = String::new();
    crate::types::bytes::to_hex(&digest, &mut out);
    Ok(Datum::text(out))
}
