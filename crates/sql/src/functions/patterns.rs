//! `LIKE`, and `SIMILAR TO`, whose patterns become regular expressions.

use super::{Call, Outcome, refuse};
use crate::types::Datum;
use crate::{SqlError, SqlState};

/// Comparisons of a character at most: about a tenth of a second.
const STEPS_MAX: usize = 30_000_000;

/// What a pattern of `LIKE` is made of.
enum Part {
    Literal(char),
    One,
    Any,
    /// An escape at the end, which is an error as soon as something is to match it.
    Unfinished,
}

fn like_parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '%' => {
                if matches!(parts.last(), Some(Part::Any)) {
                    continue;
                }
                Part::Any
            }
            '_' => Part::One,
            '\\' => match chars.next() {
                Some(c) => Part::Literal(c),
                None => Part::Unfinished,
            },
            c => Part::Literal(c),
        });
    }
    parts
}

/// Whether a text is like a pattern. A `%` is tried at ever later places, and only the last one:
/// what came before it has matched as early as it can. What is compared grows with the product of
/// both lengths.
fn is_like(text: &str, pattern: &str, fold: bool) -> Result<bool, SqlError> {
    let parts = like_parts(pattern);
    let text: Vec<char> = text.chars().collect();
    let same = |a: char, b: char| a == b || fold && a.eq_ignore_ascii_case(&b);
    let (mut at, mut place, mut retry) = (0, 0, None);
    for _ in 0..STEPS_MAX {
        match (parts.get(place), text.get(at)) {
            (None, None) => return Ok(true),
            (Some(Part::Any), _) => {
                retry = Some((place + 1, at));
                place += 1;
                continue;
            }
            (Some(Part::One), Some(_)) => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            (Some(Part::Literal(c)), Some(found)) if same(*c, *found) => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            (Some(Part::Unfinished), Some(_)) => {
                return refuse(
                    SqlState::INVALID_ESCAPE_SEQUENCE,
                    "LIKE pattern must not end with escape character",
                );
            }
            _ => {}
        }
        match &mut retry {
            Some((after, from)) if *from < text.len() => {
                *from += 1;
                (place, at) = (*after, *from);
            }
            _ => return Ok(false),
        }
    }
    let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "LIKE would take too long");
    Err(error.detail(format!("It compares more than {STEPS_MAX} characters.")))
}

/// `~~`, `LIKE`
pub fn like(call: &Call<'_>) -> Outcome {
    is_like(call.text(0)?, call.text(1)?, false).map(Datum::Bool)
}

/// `!~~`
pub fn not_like(call: &Call<'_>) -> Outcome {
    is_like(call.text(0)?, call.text(1)?, false).map(|found| Datum::Bool(!found))
}

/// `~~*`, `ILIKE`
pub fn ilike(call: &Call<'_>) -> Outcome {
    is_like(call.text(0)?, call.text(1)?, true).map(Datum::Bool)
}

/// `!~~*`
pub fn not_ilike(call: &Call<'_>) -> Outcome {
    is_like(call.text(0)?, call.text(1)?, true).map(|found| Datum::Bool(!found))
}

fn escape_of(call: &Call<'_>) -> Result<Option<char>, SqlError> {
    let escape = call.text(1)?;
    let mut chars = escape.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character.")),
    }
}

/// `like_escape()`: a pattern whose escape is a backslash.
pub fn like_escape(call: &Call<'_>) -> Outcome {
    let escape = escape_of(call)?;
    if escape == Some('\\') {
        return Ok(call.at(0).clone());
    }
    let (mut out, mut escaped) = (String::new(), false);
    for c in call.text(0)?.chars() {
        if Some(c) == escape && !escaped {
            out.push('\\');
            escaped = true;
            continue;
        }
        // A backslash is plain here, and so gets an escape unless it has one.
        if c == '\\' && !escaped {
            out.push('\\');
        }
        out.push(c);
        escaped = false;
    }
    Ok(Datum::text(out))
}

/// `similar_to_escape()`: the regular expression of a pattern of `SIMILAR TO`.
pub fn similar_to_escape(call: &Call<'_>) -> Outcome {
    if call.at(0).is_null() {
        return Ok(Datum::Null);
    }
    let escape = if call.count() > 1 { escape_of(call)? } else { Some('\\') };
    let mut out = String::from("^(?:");
    let (mut in_class, mut quotes, mut after_escape) = (false, 0, false);
    for c in call.text(0)?.chars() {
        if std::mem::take(&mut after_escape) {
            if c == '"' && !in_class {
                // Parts of `substring(x similar y)`.
                out.push_str(if quotes == 0 { "){1,1}?(" } else { "){1,1}(?:" });
                quotes += 1;
            } else {
                out.push('\\');
                out.push(c);
            }
            continue;
        }
        if Some(c) == escape {
            after_escape = true;
        } else if in_class {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_class = c != ']';
        } else {
            match c {
                '[' => {
                    out.push(c);
                    in_class = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                _ => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(Datum::text(out))
}
