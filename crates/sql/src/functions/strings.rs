//! Functions of strings. Positions and lengths count characters.

use std::fmt::Write as _;

use md5::{Digest, Md5};

use super::{Call, Outcome, bounded, refuse};
use crate::types::{Array, Datum, Oid};
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

/// `||`
pub fn concat2(call: &Call<'_>) -> Outcome {
    let (left, right) = (cast_text(call, 0)?, cast_text(call, 1)?);
    bounded(left.len() + right.len())?;
    Ok(Datum::text(left + &right))
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

fn characters(call: &Call<'_>) -> Result<Vec<char>, SqlError> {
    if call.count() > 1 { Ok(call.text(1)?.chars().collect()) } else { Ok(vec![' ']) }
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
    let missing = length - text.chars().count();
    let fill: String =
        if fill.is_empty() { String::new() } else { fill.chars().cycle().take(missing).collect() };
    Ok((text, fill))
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
    let change = |c: char| match from.iter().position(|known| *known == c) {
        None => Some(c),
        Some(place) => to.get(place).copied(),
    };
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

/// A name as SQL reads it: quoted if it has to be.
pub fn quoted_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !is_keyword(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether a word has a meaning in the grammar beyond that of a name.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &str = " all analyse analyze and any array as asc asymmetric authorization between bigint \
        binary bit boolean both case cast char character check coalesce collate collation column concurrently \
        constraint create cross current_catalog current_date current_role current_schema current_time \
        current_timestamp current_user dec decimal default deferrable desc distinct do else end except exists \
        extract false fetch float for foreign freeze from full grant greatest group grouping having ilike in \
        initially inner inout int integer intersect interval into is isnull join lateral leading least left \
        like limit localtime localtimestamp national natural nchar none normalize not notnull null nullif \
        numeric offset on only or order out outer overlaps overlay placing position precision primary real \
        references returning right row select session_user setof similar smallint some substring symmetric \
        table tablesample then time timestamp to trailing treat trim true union unique user using values \
        varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest \
        xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable ";
    KEYWORDS.split_ascii_whitespace().any(|keyword| keyword == word)
}

/// A string as SQL reads it.
pub fn quoted_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// `quote_ident()`
pub fn quote_ident(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(quoted_identifier(call.text(0)?)))
}

/// `quote_literal()`
pub fn quote_literal(call: &Call<'_>) -> Outcome {
    cast_text(call, 0).map(|text| Datum::text(quoted_literal(&text)))
}

/// `quote_nullable()`
pub fn quote_nullable(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() { Ok(Datum::text("NULL")) } else { quote_literal(call) }
}

/// What a cast to text makes of an argument.
fn cast_text(call: &Call<'_>, place: usize) -> Result<String, SqlError> {
    match (call.at(place), call.type_of(place)) {
        (Datum::Bool(value), _) => Ok(value.to_string()),
        (Datum::Text(text), Oid::BPCHAR) => Ok(text.trim_end_matches(' ').to_owned()),
        _ => call.printed(place),
    }
}

/// The arguments after these, which may come as one array: values and their type.
fn rest(call: &Call<'_>, from: usize) -> Result<Vec<Option<String>>, SqlError> {
    let mut out = Vec::new();
    for place in from..call.count() {
        let is_null = call.at(place).is_null();
        out.push(if is_null { None } else { Some(call.printed(place)?) });
    }
    Ok(out)
}

/// `concat()`
pub fn concat(call: &Call<'_>) -> Outcome {
    let parts = rest(call, 0)?;
    bounded(parts.iter().flatten().map(String::len).sum())?;
    Ok(Datum::text(parts.into_iter().flatten().collect::<String>()))
}

/// `concat_ws()`
pub fn concat_ws(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let parts: Vec<String> = rest(call, 1)?.into_iter().flatten().collect();
    let separator = call.text(0)?;
    bounded(parts.iter().map(|part| part.len() + separator.len()).sum())?;
    Ok(Datum::text(parts.join(separator)))
}

/// `format()`: `%s`, `%I`, `%L`, `%%`, with positions, `-` and widths.
pub fn format(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let text = call.text(0)?;
    let values = rest(call, 1)?;
    let mut out = String::new();
    let mut next = 0usize;
    let mut chars = text.chars().peekable();
    let unterminated = || {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "unterminated format() type specifier")
            .hint("For a single \"%\" use \"%%\".")
    };
    let too_few = || SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "too few arguments for format()");
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let number =
            |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<usize>, SqlError> {
                let mut digits = String::new();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                if digits.is_empty() {
                    return Ok(None);
                }
                match digits.parse::<i32>() {
                    Ok(value) => Ok(usize::try_from(value).ok()),
                    Err(_) => refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"),
                }
            };
        let mut width = number(&mut chars)?;
        let mut place = None;
        if width.is_some() && chars.next_if_eq(&'$').is_some() {
            place = width.take();
            if place == Some(0) {
                return refuse(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "format specifies argument 0, but arguments are numbered from 1",
                );
            }
        }
        let mut left = false;
        if width.is_none() {
            while chars.next_if_eq(&'-').is_some() {
                left = true;
            }
            if chars.next_if_eq(&'*').is_some() {
                let at = match number(&mut chars)? {
                    Some(at) if chars.next_if_eq(&'$').is_some() => at.saturating_sub(1),
                    _ => {
                        next += 1;
                        next - 1
                    }
                };
                let value = values.get(at).ok_or_else(too_few)?.as_deref().unwrap_or("0");
                let value: i64 = value.parse().unwrap_or(0);
                left |= value < 0;
                width = usize::try_from(value.unsigned_abs()).ok();
            } else {
                width = number(&mut chars)?;
            }
        }
        let kind = chars.next().ok_or_else(unterminated)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized format() type specifier \"{kind}\""),
            )
            .hint("For a single \"%\" use \"%%\"."));
        }
        let at = match place {
            Some(place) => place - 1,
            None => next,
        };
        next = at + 1;
        let value = values.get(at).ok_or_else(too_few)?;
        let shown = match (kind, value) {
            ('s', None) => String::new(),
            ('s', Some(value)) => value.clone(),
            ('I', None) => {
                return refuse(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier",
                );
            }
            ('I', Some(value)) => quoted_identifier(value),
            (_, None) => "NULL".to_owned(),
            (_, Some(value)) => quoted_literal(value),
        };
        let missing = width.unwrap_or(0).saturating_sub(shown.chars().count());
        bounded(out.len() + missing + shown.len())?;
        let blanks = " ".repeat(missing);
        let _ = if left { write!(out, "{shown}{blanks}") } else { write!(out, "{blanks}{shown}") };
    }
    Ok(Datum::text(out))
}

/// The parts of a text: by a separator, or by characters if that is NULL.
pub fn parts(call: &Call<'_>) -> Result<Vec<Datum>, SqlError> {
    let text = call.text(0)?;
    let null = if call.count() > 2 && !call.at(2).is_null() { Some(call.text(2)?) } else { None };
    let part =
        |part: &str| if null.is_some_and(|null| &**null == part) { Datum::Null } else { Datum::text(part) };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    Ok(match call.at(1) {
        Datum::Null => text.chars().map(|c| part(c.encode_utf8(&mut [0; 4]))).collect(),
        _ if call.text(1)?.is_empty() => vec![part(text)],
        _ => text.split(&**call.text(1)?).map(part).collect(),
    })
}

/// `string_to_array()`
pub fn to_array(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    Ok(Array::flat(Oid::TEXT, parts(call)?))
}

/// `array_to_string()`
pub fn from_array(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() || call.at(1).is_null() {
        return Ok(Datum::Null);
    }
    let (array, separator) = (call.array(0)?, call.text(1)?);
    let null = if call.count() > 2 && !call.at(2).is_null() { Some(call.text(2)?) } else { None };
    let mut out = String::new();
    let mut first = true;
    for element in &array.elements {
        let shown = match (element, null) {
            (Datum::Null, None) => continue,
            (Datum::Null, Some(null)) => null.to_string(),
            _ => {
                let mut shown = String::new();
                crate::types::print(element, array.element, call.context.style, &mut shown)?;
                shown
            }
        };
        if !std::mem::replace(&mut first, false) {
            out.push_str(separator);
        }
        out.push_str(&shown);
        bounded(out.len())?;
    }
    Ok(Datum::text(out))
}
