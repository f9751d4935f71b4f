//! `to_char()` and its inverse: dates and numbers by a template.
//!
//! A template of a date is taken apart into keywords and what is between them (`pieces`); both
//! directions walk over the same pieces. A template of a number is a picture, a character a place.
//!
//! Left out and refused: scientific and Roman numbers, `V`, and the rarer keywords in the direction
//! from text to date.

pub mod dates;
pub mod numbers;
pub mod reading;

use super::Call;
use crate::{SqlError, SqlState};

/// Keywords, the longer before those that they begin with.
const KEYWORDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J",
    "MI", "MM", "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS",
    "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am",
    "b.c.", "bc", "cc", "day", "ddd", "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "hh24",
    "hh12", "hh", "iddd", "id", "iw", "iyyy", "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of",
    "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss", "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy",
    "yyy", "yy", "y",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Bytes of a template at most: to take it apart can take as long as the square of its length.
const TEMPLATE_MAX: usize = 8 << 10;

/// The template, which is the second argument.
fn template<'c>(call: &'c Call<'_>) -> Result<&'c str, SqlError> {
    let template = call.text(1)?;
    if template.len() > TEMPLATE_MAX {
        let error = SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "format template is too long");
        return Err(error.detail(format!("It has more than {TEMPLATE_MAX} bytes.")));
    }
    Ok(template)
}

/// A part of a template.
enum Piece {
    /// A keyword, whether it is filled to its width, and its ending.
    Key(&'static str, bool, Option<bool>),
    /// What stays as it is.
    Literal(char),
}

fn pieces(template: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = rest.get(1..).unwrap_or_default();
            while let Some(c) = rest.chars().next() {
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                match c {
                    '"' => break,
                    '\\' => {
                        if let Some(escaped) = rest.chars().next() {
                            pieces.push(Piece::Literal(escaped));
                            rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
                        }
                    }
                    c => pieces.push(Piece::Literal(c)),
                }
            }
            continue;
        }
        let (mut body, mut filled) = (rest, true);
        while let Some(after) = ["FM", "fm", "TM", "tm"].iter().find_map(|prefix| body.strip_prefix(prefix)) {
            body = after;
            filled = false;
        }
        match KEYWORDS.iter().find_map(|key| body.strip_prefix(key).map(|after| (*key, after))) {
            Some((key, after)) => {
                let (ending, after) = match (after.strip_prefix("TH"), after.strip_prefix("th")) {
                    (Some(after), _) => (Some(true), after),
                    (_, Some(after)) => (Some(false), after),
                    _ => (None, after),
                };
                pieces.push(Piece::Key(key, filled, ending));
                rest = after;
            }
            None => {
                // A backslash before a quote makes it plain.
                let c = match (first, rest.chars().nth(1)) {
                    ('\\', Some('"')) => {
                        rest = rest.get(1..).unwrap_or_default();
                        '"'
                    }
                    _ => first,
                };
                pieces.push(Piece::Literal(c));
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
    pieces
}

/// What a keyword in upper, lower or mixed case makes of a name.
fn cased(name: &str, key: &str) -> String {
    if key.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.to_ascii_lowercase()
    } else if key.chars().nth(1).is_some_and(|c| c.is_ascii_lowercase()) {
        name.to_owned()
    } else {
        name.to_ascii_uppercase()
    }
}

fn ordinal(number: &str, upper: bool) -> &'static str {
    let tens = number.len() >= 2 && number.chars().nth_back(1) == Some('1');
    let ending = match number.chars().last() {
        Some('1') if !tens => "st",
        Some('2') if !tens => "nd",
        Some('3') if !tens => "rd",
        _ => "th",
    };
    match (ending, upper) {
        ("st", true) => "ST",
        ("nd", true) => "ND",
        ("rd", true) => "RD",
        (_, true) => "TH",
        (ending, false) => ending,
    }
}
