//! Regular expressions.
//!
//! They run on `fancy-regex` after a translation of PostgreSQL's escapes. What differs is an
//! alternation whose first branch is the shorter: PostgreSQL takes the longest match.

use fancy_regex::{Captures, Regex, RegexBuilder};

use super::patterns::similar_to_escape;
use super::{Call, Outcome, Rows, bounded, refuse};
use crate::types::{Array, Datum, Oid};
use crate::{SqlError, SqlState};

/// What flags say of a regular expression.
#[derive(Default)]
struct Flags {
    fold: bool,
    global: bool,
    literal: bool,
    /// `x`: blanks and comments in the pattern mean nothing.
    expanded: bool,
    /// `n`: a newline is no character of `.`, and `^` and `$` match at lines.
    lines: bool,
}

fn flags_of(text: &str) -> Result<Flags, SqlError> {
    let mut flags = Flags::default();
    for c in text.chars() {
        match c {
            'g' => flags.global = true,
            'i' => flags.fold = true,
            'c' => flags.fold = false,
            'n' | 'm' => flags.lines = true,
            's' => flags.lines = false,
            'q' => flags.literal = true,
            'x' => flags.expanded = true,
            't' | 'e' | 'b' | 'p' | 'w' => {}
            _ => {
                return refuse(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{c}\""),
                );
            }
        }
    }
    Ok(flags)
}

/// Steps of backtracking at most, so that no pattern holds a shard for long.
const BACKTRACK_MAX: usize = 1_000_000;

fn compile(pattern: &str, flags: &Flags) -> Result<Regex, SqlError> {
    let invalid = |what: &str| {
        SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
    };
    let (mut prefix, mut body) = (String::new(), pattern);
    if let Some(rest) = body.strip_prefix("***=") {
        return compile(rest, &Flags { literal: true, ..Flags { fold: flags.fold, ..Flags::default() } });
    }
    body = body.strip_prefix("***:").unwrap_or(body);
    if flags.literal {
        let escaped: String = body
            .chars()
            .flat_map(|c| if c.is_ascii_punctuation() { vec!['\\', c] } else { vec![c] })
            .collect();
        return build(&escaped, flags).map_err(|_| invalid("invalid escape \\ sequence"));
    }
    if let Some(rest) = body.strip_prefix("(?")
        && let Some((letters, rest)) = rest.split_once(')')
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        if letters.contains('i') {
            prefix.push_str("(?i)");
        }
        body = rest;
    }
    let translated = prefix + &translate(body);
    build(&translated, flags).map_err(|error| {
        let text = error.to_string();
        invalid(
            if text.contains("paren") || text.contains("unclosed group") || text.contains("unopened group") {
                "parentheses () not balanced"
            } else if text.contains("class") || text.contains("bracket") {
                "brackets [] not balanced"
            } else if text.contains("epetition") || text.contains("repeat") || text.contains("arget") {
                "quantifier operand invalid"
            } else if text.contains("scape") || text.contains("backslash") {
                "invalid escape \\ sequence"
            } else if text.contains("ackref") || text.contains("ack ref") {
                "invalid backreference number"
            } else {
                "invalid character range"
            },
        )
    })
}

fn build(pattern: &str, flags: &Flags) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(pattern)
        .case_insensitive(flags.fold)
        .multi_line(flags.lines)
        .dot_matches_new_line(!flags.lines)
        .ignore_whitespace(flags.expanded)
        .backtrack_limit(BACKTRACK_MAX)
        .delegate_size_limit(1 << 20)
        .build()
}

/// PostgreSQL's escapes in those of the library.
fn translate(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('m') => out.push_str(r"\b(?=\w)"),
                Some('M') => out.push_str(r"\b(?<=\w)"),
                Some('y') => out.push_str(r"\b"),
                Some('Y') => out.push_str(r"\B"),
                Some('A') => out.push_str(r"\A"),
                Some('Z') => out.push_str(r"\z"),
                Some('B') => out.push_str(r"\\"),
                Some(escaped) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => out.push('\\'),
            },
            '[' if in_class && !matches!(chars.peek(), Some(':' | '.' | '=')) => out.push_str(r"\["),
            '[' if in_class => {
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' => {
                match chars.as_str_prefix() {
                    Some("[:<:]]") => {
                        out.push_str(r"\b(?=\w)");
                        chars.by_ref().take(6).for_each(drop);
                        continue;
                    }
                    Some("[:>:]]") => {
                        out.push_str(r"\b(?<=\w)");
                        chars.by_ref().take(6).for_each(drop);
                        continue;
                    }
                    _ => {}
                }
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '{' if !in_class && !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\{"),
            '$' if !in_class => out.push('$'),
            _ => out.push(c),
        }
    }
    out
}

/// The next six characters, if they are one of the two word boundaries that look like classes.
trait Ahead {
    fn as_str_prefix(&self) -> Option<&'static str>;
}

impl Ahead for std::iter::Peekable<std::str::Chars<'_>> {
    fn as_str_prefix(&self) -> Option<&'static str> {
        let ahead: String = self.clone().take(6).collect();
        ["[:<:]]", "[:>:]]"].into_iter().find(|known| *known == ahead)
    }
}

fn run<T>(result: Result<T, fancy_regex::Error>) -> Result<T, SqlError> {
    result.map_err(|_| {
        SqlError::new(
            SqlState::INVALID_REGULAR_EXPRESSION,
            "regular expression failed: regular expression is too complex",
        )
    })
}

fn is_match(call: &Call<'_>, fold: bool) -> Result<bool, SqlError> {
    let regex = compile(call.text(1)?, &Flags { fold, ..Flags::default() })?;
    run(regex.is_match(&**call.text(0)?))
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
    let regex = compile(call.text(1)?, &no_global(flags_at(call, 2)?, "regexp_like")?)?;
    run(regex.is_match(&**call.text(0)?)).map(Datum::Bool)
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
    let regex = compile(call.text(1)?, &Flags::default())?;
    let found = run(regex.captures(&**call.text(0)?))?;
    Ok(match found {
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
    let found = run(compile(&pattern, &Flags::default())?.captures(&**call.text(0)?))?;
    Ok(found.and_then(|found| found.get(1).map(|part| Datum::text(part.as_str()))).unwrap_or(Datum::Null))
}

/// `regexp_replace()`
pub fn replace(call: &Call<'_>) -> Outcome {
    let (text, to) = (call.text(0)?, call.text(2)?);
    let mut flags = flags_at(call, 3)?;
    let all = std::mem::take(&mut flags.global);
    let regex = compile(call.text(1)?, &flags)?;
    let mut out = String::new();
    let mut end = 0;
    for found in regex.captures_iter(&**text) {
        let found = run(found)?;
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
fn insert(to: &str, found: &Captures<'_, str>, out: &mut String) {
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
fn groups(found: &Captures<'_, str>) -> Datum {
    let from = usize::from(found.len() > 1);
    let group = |place| found.get(place).map_or(Datum::Null, |part| Datum::text(part.as_str()));
    Array::flat(Oid::TEXT, (from..found.len()).map(group).collect())
}

/// `regexp_match()`
pub fn first_match(call: &Call<'_>) -> Outcome {
    let regex = compile(call.text(1)?, &no_global(flags_at(call, 2)?, "regexp_match")?)?;
    Ok(run(regex.captures(&**call.text(0)?))?.map_or(Datum::Null, |found| groups(&found)))
}

/// `regexp_matches()`
pub fn all_matches(call: &Call<'_>) -> Result<Rows, SqlError> {
    let flags = flags_at(call, 2)?;
    let regex = compile(call.text(1)?, &flags)?;
    let mut rows = Vec::new();
    for found in regex.captures_iter(&**call.text(0)?) {
        rows.push(groups(&run(found)?));
        if !flags.global {
            break;
        }
    }
    Ok(super::sets::of(rows))
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
    let regex = compile(call.text(1)?, &no_global(flags_at(call, 3)?, "regexp_count")?)?;
    let (from, _) = super::strings::substring_bounds(from, None)?;
    let rest: String = call.text(0)?.chars().skip(from).collect();
    let mut count = 0;
    for found in regex.find_iter(rest.as_str()) {
        run(found)?;
        count += 1;
    }
    Ok(Datum::Int4(count))
}

fn pieces(call: &Call<'_>, name: &str) -> Result<Vec<Datum>, SqlError> {
    let text = call.text(0)?;
    let regex = compile(call.text(1)?, &no_global(flags_at(call, 2)?, name)?)?;
    let (mut pieces, mut end) = (Vec::new(), 0);
    for found in regex.find_iter(&**text) {
        let found = run(found)?;
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
    Ok(super::sets::of(pieces(call, "regexp_split_to_table")?))
}
