//! Strings put together and taken apart: concatenation, quotes, `format()`, arrays.

use std::fmt::Write as _;

use super::{Call, Outcome, bounded, refuse};
use crate::types::array::{ELEMENTS_MAX, too_large};
use crate::types::{Array, Datum, Oid};
use crate::{SqlError, SqlState};

/// A name as SQL reads it: quoted if it has to be.
pub fn quoted_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !is_keyword(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether a word has a meaning in the grammar beyond that of a name.
fn is_keyword(word: &str) -> bool {
    keywords().any(|keyword| keyword == word)
}

/// The words that have one.
pub fn keywords() -> impl Iterator<Item = &'static str> {
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
    KEYWORDS.split_ascii_whitespace()
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
        (Datum::Bpchar(text), _) => Ok(text.trim_end_matches(' ').to_owned()),
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

/// `||`
pub fn concat2(call: &Call<'_>) -> Outcome {
    let (left, right) = (cast_text(call, 0)?, cast_text(call, 1)?);
    bounded(left.len() + right.len())?;
    Ok(Datum::text(left + &right))
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
    // One more than there may be shows that there are too many.
    let most = ELEMENTS_MAX + 1;
    let parts: Vec<Datum> = match call.at(1) {
        Datum::Null => text.chars().take(most).map(|c| part(c.encode_utf8(&mut [0; 4]))).collect(),
        _ if call.text(1)?.is_empty() => vec![part(text)],
        _ => text.split(&**call.text(1)?).take(most).map(part).collect(),
    };
    if parts.len() < most { Ok(parts) } else { Err(too_large()) }
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
