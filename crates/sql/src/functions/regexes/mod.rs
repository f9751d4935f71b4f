//! Regular expressions.
//!
//! They run on `fancy-regex` after a translation of PostgreSQL's escapes (`pattern`), with a bound
//! on how long a call takes (`search`). What differs is an alternation whose first branch is the
//! shorter: PostgreSQL takes the longest match.

mod pattern;
mod search;

use super::patterns::similar_to_escape;
use super::{Call, Outcome, Rows, bounded, refuse};
use crate::types::{Array, Datum, Oid};
use crate::{SqlError, SqlState};
use pattern::{Flags, flags_of};
use search::{Captures, Search};

fn is_match(call: &Call<'_>, fold: bool) -> Result<bool, SqlError> {
    first(call, call.text(1)?, Flags { fold, ..Flags::default() }).map(|found| found.is_some())
}

/// The first match in the first argument.
fn first<'t>(call: &'t Call<'_>, pattern: &str, flags: Flags) -> Result<Option<Captures<'t>>, SqlError> {
    Search::new(call, pattern, flags)?.next()
}

/// `~`
pub fn matches(call: &Call<'_>) -> Outcome {
    is_match(call, false).map(Datum::Bool)
}

/// `!~`
pub fn matches_not(call: &Call<'_>) -> Outcome {
    is_match(call, false).map(|found| Datum::Bool(!found))
}

/// `~*`
pub fn imatches(call: &Call<'_>) -> Outcome {
    is_match(call, true).map(Datum::Bool)
}

/// `!~*`
pub fn imatches_not(call: &Call<'_>) -> Outcome {
    is_match(call, true).map(|found| Datum::Bool(!found))
}

fn flags_at(call: &Call<'_>, place: usize) -> Result<Flags, SqlError> {
    if call.count() > place { flags_of(call.text(place)?) } else { Ok(Flags::default()) }
}

/// `regexp_like()`
pub fn like_regex(call: &Call<'_>) -> Outcome {
    let flags = no_global(flags_at(call, 2)?, "regexp_like")?;
    first(call, call.text(1)?, flags).map(|found| Datum::Bool(found.is_some()))
}

fn no_global(flags: Flags, name: &str) -> Result<Flags, SqlError> {
    if flags.global {
        let error = SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{name}() does not support the \"global\" option"),
        );
        return Err(match name {
            "regexp_match" => error.hint("Use the regexp_matches function instead."),
            _ => error,
        });
    }
    Ok(flags)
}

/// `substring(x from regex)`: the first group, or all.
pub fn substring(call: &Call<'_>) -> Outcome {
    Ok(match first(call, call.text(1)?, Flags::default())? {
        None => Datum::Null,
        Some(found) if found.len() > 1 => found.get(1).map_or(Datum::Null, |part| Datum::text(part.as_str())),
        Some(found) => found.get(0).map_or(Datum::Null, |part| Datum::text(part.as_str())),
    })
}

/// `substring(x similar pattern escape c)`
pub fn substring_similar(call: &Call<'_>) -> Outcome {
    let pattern =
        similar_to_escape(&Call { arguments: call.arguments.get(1..).unwrap_or_default(), ..*call })?;
    let Datum::Text(pattern) = pattern else { return Ok(Datum::Null) };
    let found = first(call, &pattern, Flags::default())?;
    Ok(found.and_then(|found| found.get(1).map(|part| Datum::text(part.as_str()))).unwrap_or(Datum::Null))
}

/// `regexp_replace()`
pub fn replace(call: &Call<'_>) -> Outcome {
    let (text, to) = (call.text(0)?, call.text(2)?);
    let mut flags = flags_at(call, 3)?;
    let all = std::mem::take(&mut flags.global);
    let mut search = Search::new(call, call.text(1)?, flags)?;
    let mut out = String::new();
    let mut end = 0;
    while let Some(found) = search.next()? {
        let Some(whole) = found.get(0) else { break };
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        insert(to, &found, &mut out);
        bounded(out.len())?;
        end = whole.end();
        if !all {
            break;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    Ok(Datum::text(out))
}

/// A replacement: `\1` is a group, `\&` all of the match.
fn insert(to: &str, found: &Captures<'_>, out: &mut String) {
    let mut chars = to.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let group = match chars.peek() {
            Some('&') => Some(0),
            Some(digit) => {
                digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).filter(|n| *n > 0)
            }
            None => None,
        };
        match (group, chars.peek().copied()) {
            (Some(group), _) => {
                chars.next();
                out.push_str(found.get(group).map_or("", |part| part.as_str()));
            }
            (None, Some('\\')) => {
                chars.next();
                out.push('\\');
            }
            _ => out.push('\\'),
        }
    }
}

/// The groups of a match, or all of it if there are none.
fn groups(found: &Captures<'_>) -> Datum {
    let from = usize::from(found.len() > 1);
    let group = |place| found.get(place).map_or(Datum::Null, |part| Datum::text(part.as_str()));
    Array::flat(Oid::TEXT, (from..found.len()).map(group).collect())
}

/// `regexp_match()`
pub fn first_match(call: &Call<'_>) -> Outcome {
    let flags = no_global(flags_at(call, 2)?, "regexp_match")?;
    Ok(first(call, call.text(1)?, flags)?.map_or(Datum::Null, |found| groups(&found)))
}

/// `regexp_matches()`
pub fn all_matches(call: &Call<'_>) -> Result<Rows, SqlError> {
    let flags = flags_at(call, 2)?;
    let global = flags.global;
    let mut search = Search::new(call, call.text(1)?, flags)?;
    let mut rows = Vec::new();
    while let Some(found) = search.next()? {
        rows.push(groups(&found));
        if !global {
            break;
        }
    }
    Ok(crate::functions::sets::of(rows))
}

/// `regexp_count()`
pub fn count(call: &Call<'_>) -> Outcome {
    let from = if call.count() > 2 { call.integer(2)? } else { 1 };
    if from <= 0 {
        return refuse(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"start\": {from}"),
        );
    }
    let flags = no_global(flags_at(call, 3)?, "regexp_count")?;
    let (from, _) = crate::functions::strings::substring_bounds(from, None)?;
    let rest = [Datum::text(call.text(0)?.chars().skip(from).collect::<String>())];
    let rest = Call { arguments: &rest, ..*call };
    let mut search = Search::new(&rest, call.text(1)?, flags)?;
    let mut count = 0;
    while search.next()?.is_some() {
        count += 1;
    }
    Ok(Datum::Int4(count))
}

fn pieces(call: &Call<'_>, name: &str) -> Result<Vec<Datum>, SqlError> {
    let text = call.text(0)?;
    let mut search = Search::new(call, call.text(1)?, no_global(flags_at(call, 2)?, name)?)?;
    let (mut pieces, mut end) = (Vec::new(), 0);
    while let Some(found) = search.next()? {
        let Some(found) = found.get(0) else { break };
        // An empty match splits between characters, not before the first or after the last.
        if found.end() == found.start() && (found.start() == end && end == 0 || found.start() >= text.len()) {
            continue;
        }
        pieces.push(Datum::text(text.get(end..found.start()).unwrap_or_default()));
        end = found.end();
    }
    pieces.push(Datum::text(text.get(end..).unwrap_or_default()));
    Ok(pieces)
}

/// `regexp_split_to_array()`
pub fn split_to_array(call: &Call<'_>) -> Outcome {
    Ok(Array::flat(Oid::TEXT, pieces(call, "regexp_split_to_array")?))
}

/// `regexp_split_to_table()`
pub fn split_to_table(call: &Call<'_>) -> Result<Rows, SqlError> {
    Ok(crate::functions::sets::of(pieces(call, "regexp_split_to_table")?))
}
