//! `to_char()` and its inverse: dates and numbers by a template.
//!
//! A template of a date is taken apart into keywords and what is between them (`pieces`); both
//! directions walk over the same pieces. A template of a number is a picture, a character a place.
//!
//! Left out and refused: scientific and Roman numbers, `V`, and the rarer keywords in the direction
//! from text to date.

use super::dates::{Fields, age_fields};
use super::{Call, Outcome, refuse};
use crate::analyze::unsupported;
use crate::types::time::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::types::time::{self, write};
use crate::types::{Datum, Numeric, compare};
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
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

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

/// A moment or a span as a template shows it.
struct Shown {
    fields: Fields,
    /// Seconds east of Greenwich, and the zone's name.
    zone: Option<(i32, String)>,
    is_span: bool,
}

impl Shown {
    fn year(&self) -> i64 {
        if self.is_span || self.fields.year > 0 { self.fields.year } else { 1 - self.fields.year }
    }

    fn write(&self, template: &str) -> Result<String, SqlError> {
        let mut out = String::new();
        for piece in pieces(template) {
            match piece {
                Piece::Literal(c) => out.push(c),
                Piece::Key(key, filled, ending) => {
                    let shown = self.key(key, filled)?;
                    out.push_str(&shown);
                    if let Some(upper) = ending {
                        out.push_str(ordinal(&shown, upper));
                    }
                }
            }
        }
        Ok(out)
    }

    fn key(&self, key: &str, filled: bool) -> Result<String, SqlError> {
        let Fields { month, day, days, us, .. } = self.fields;
        let number = |value: i64, width: usize| {
            let sign = usize::from(value < 0);
            if filled { format!("{value:0width$}", width = width + sign) } else { value.to_string() }
        };
        let padded =
            |name: &str, width: usize| if filled { format!("{name:<width$}") } else { name.to_owned() };
        let named = |name: &str, width: usize| padded(&cased(name, key), width);
        let hour = us / US_PER_HOUR;
        let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        let second = us / US_PER_SECOND % 60;
        let fraction = us % US_PER_SECOND;
        if self.is_span
            && matches!(
                key.to_ascii_uppercase().as_str(),
                "AD" | "A.D." | "BC" | "B.C." | "MONTH" | "MON" | "DAY" | "DY" | "TZ" | "TZH" | "TZM" | "OF"
            )
        {
            return refuse(
                SqlState::INVALID_DATETIME_FORMAT,
                "invalid format specification for an interval value",
            )
            .map_err(|error: SqlError| error.hint("Intervals are not tied to specific calendar dates."));
        }
        let place = |names: &'static [&'static str], place: i64| write::name(names, place);
        let iso = calendar::iso_week(days);
        let weekday = calendar::weekday(days);
        Ok(match key.to_ascii_uppercase().as_str() {
            "HH24" => number(hour, 2),
            "HH12" | "HH" => number(if self.is_span && hour < 0 { hour % 12 } else { twelve }, 2),
            "MI" => number(us / US_PER_MINUTE % 60, 2),
            "SS" => number(second, 2),
            "SSSS" | "SSSSS" => (us / US_PER_SECOND).to_string(),
            "MS" | "FF3" => number(fraction / 1000, 3),
            "US" | "FF6" => number(fraction, 6),
            "FF1" => number(fraction / 100_000, 1),
            "FF2" => number(fraction / 10_000, 2),
            "FF4" => number(fraction / 100, 4),
            "FF5" => number(fraction / 10, 5),
            "AM" | "PM" => cased(if hour >= 12 { "PM" } else { "AM" }, key),
            "A.M." | "P.M." => cased(if hour >= 12 { "P.M." } else { "A.M." }, key),
            "AD" | "BC" => cased(if self.fields.year <= 0 { "BC" } else { "AD" }, key),
            "A.D." | "B.C." => cased(if self.fields.year <= 0 { "B.C." } else { "A.D." }, key),
            "Y,YYY" => format!("{},{:03}", self.year() / 1000, self.year() % 1000),
            "YYYY" => number(self.year(), 4),
            "YYY" => number(self.year() % 1000, 3),
            "YY" => number(self.year() % 100, 2),
            "Y" => number(self.year() % 10, 1),
            "IYYY" => number(iso.0, 4),
            "IYY" => number(iso.0 % 1000, 3),
            "IY" => number(iso.0 % 100, 2),
            "I" => number(iso.0 % 10, 1),
            "MONTH" => named(place(&MONTHS, month - 1), 9),
            "MON" => named(place(&write::MONTHS, month - 1), 0),
            "MM" => number(month, 2),
            "DAY" => named(place(&WEEKDAYS, weekday), 9),
            "DY" => named(place(&write::WEEKDAYS, weekday), 0),
            "DDD" => number(days - calendar::days(self.fields.year, 1, 1) + 1, 3),
            "IDDD" => number((iso.1 - 1) * 7 + (weekday + 6) % 7 + 1, 3),
            "DD" => number(day, 2),
            "D" => (weekday + 1).to_string(),
            "ID" => ((weekday + 6) % 7 + 1).to_string(),
            "W" => ((day - 1) / 7 + 1).to_string(),
            "WW" => number((days - calendar::days(self.fields.year, 1, 1)) / 7 + 1, 2),
            "IW" => number(iso.1, 2),
            "CC" => {
                let year = self.fields.year;
                number(if year > 0 { (year - 1) / 100 + 1 } else { year / 100 - 1 }, 2)
            }
            "J" => (days + calendar::JULIAN_2000).to_string(),
            "Q" => ((month - 1) / 3 + 1).to_string(),
            "RM" => {
                let roman = cased(place(&ROMAN, month - 1), key);
                if filled { format!("{roman:<4}") } else { roman }
            }
            "TZ" => self.zone.as_ref().map_or(String::new(), |(_, name)| cased(name, key)),
            "OF" | "TZH" | "TZM" => {
                let east_s = self.zone.as_ref().map_or(0, |(east_s, _)| *east_s);
                let (hours, minutes) = (east_s.unsigned_abs() / 3600, east_s.unsigned_abs() / 60 % 60);
                let sign = if east_s < 0 { '-' } else { '+' };
                match key.to_ascii_uppercase().as_str() {
                    "TZM" => format!("{minutes:02}"),
                    "OF" if minutes != 0 => format!("{sign}{hours:02}:{minutes:02}"),
                    _ => format!("{sign}{hours:02}"),
                }
            }
            _ => return Err(super::confused()),
        })
    }
}

/// `to_char()` of a timestamp.
pub fn timestamp(call: &Call<'_>) -> Outcome {
    let zone = match call.at(0) {
        Datum::TimestampTz(us) => Some(call.context.style.zone.at(*us)),
        _ => None,
    };
    let us = call.us(0)?;
    let template = call.text(1)?;
    if template.is_empty() || !time::is_finite(us) {
        return Ok(Datum::Null);
    }
    let east_us = zone.as_ref().map_or(0, |(east_s, _)| i64::from(*east_s) * US_PER_SECOND);
    let fields = Fields::of(us.checked_add(east_us).ok_or_else(|| time::out_of_range("timestamp"))?);
    Shown { fields, zone, is_span: false }.write(template).map(Datum::text)
}

/// `to_char()` of an interval.
pub fn interval(call: &Call<'_>) -> Outcome {
    let (span, template) = (call.interval(0)?, call.text(1)?);
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    Shown { fields: age_fields(&span), zone: None, is_span: true }.write(template).map(Datum::text)
}

/// The picture of a number.
#[derive(Default)]
struct Picture {
    /// Places before and after the point.
    whole: usize,
    fraction: usize,
    /// The first place that shows a 0, of those before the point.
    zero_from: Option<usize>,
    /// The last place after the point that shows a 0.
    zero_to: usize,
    compact: bool,
    point: bool,
    signs: bool,
}

impl Picture {
    fn of(template: &str) -> Result<Picture, SqlError> {
        let upper = template.to_ascii_uppercase();
        if upper.contains("EEEE") || upper.contains("RN") || upper.contains('V') {
            return Err(unsupported("EEEE, RN or V in to_char"));
        }
        let mut picture = Picture {
            compact: upper.contains("FM"),
            signs: ["S", "MI", "PL", "PR"].iter().any(|sign| upper.contains(sign)),
            ..Picture::default()
        };
        for c in upper.chars() {
            match c {
                '9' | '0' if picture.point => {
                    picture.fraction += 1;
                    if c == '0' {
                        picture.zero_to = picture.fraction;
                    }
                }
                '9' | '0' => {
                    if c == '0' && picture.zero_from.is_none() {
                        picture.zero_from = Some(picture.whole);
                    }
                    picture.whole += 1;
                }
                '.' | 'D' if picture.point => {
                    return refuse(SqlState::SYNTAX_ERROR, "multiple decimal points");
                }
                '.' | 'D' => picture.point = true,
                _ => {}
            }
        }
        Ok(picture)
    }
}

/// `to_char()` of a number.
pub fn number(call: &Call<'_>) -> Outcome {
    let template = call.text(1)?;
    let value = match call.at(0) {
        Datum::Numeric(value) => value.clone(),
        Datum::Float8(value) => Numeric::from_float(*value, 15)?,
        Datum::Float4(value) => Numeric::from_float(f64::from(*value), 6)?,
        other => Numeric::from(compare::integer(other).ok_or_else(super::confused)?),
    };
    if template.is_empty() {
        return Ok(Datum::text(""));
    }
    picture(&value, template).map(Datum::text)
}

fn picture(value: &Numeric, template: &str) -> Result<String, SqlError> {
    let form = Picture::of(template)?;
    let rounded = if value.is_finite() {
        value.round(i32::try_from(form.fraction).unwrap_or(0))?
    } else {
        value.clone()
    };
    let negative = rounded.is_negative();
    let text = rounded.clone().abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // What does not fit is not shown.
    let fits = value.is_finite() && whole.trim_start_matches('0').len() <= form.whole;
    // A 0 alone before the point is blank, unless there is nothing else.
    let digits: Vec<char> = if fits {
        let bare = whole == "0" && form.fraction > 0;
        if bare { Vec::new() } else { whole.chars().collect() }
    } else {
        vec!['#'; form.whole]
    };
    let fraction: Vec<char> = if fits { fraction.chars().collect() } else { vec!['#'; form.fraction] };
    let first = (form.whole - digits.len().min(form.whole)).min(form.zero_from.unwrap_or(usize::MAX));
    let significant =
        fraction.iter().rposition(|digit| *digit != '0').map_or(0, |place| place + 1).max(form.zero_to);
    let upper = template.to_ascii_uppercase();
    let mut out = String::new();
    let mut rest = upper.as_str();
    let (mut place, mut after, mut point, mut signed) = (0usize, 0usize, false, false);
    let leading = !form.signs || upper.trim_start_matches("FM").starts_with('S') || upper.contains("PR");
    let bracket = upper.contains("PR");
    let sign = |out: &mut String, signed: &mut bool| {
        if leading && !std::mem::replace(signed, true) {
            let explicit = form.signs && !bracket;
            match (negative, bracket, explicit) {
                (true, true, _) => out.push('<'),
                (true, false, _) => out.push('-'),
                (false, _, true) => out.push('+'),
                (false, ..) if form.compact => {}
                (false, ..) => out.push(' '),
            }
        }
    };
    let mut source = template;
    while let Some(c) = rest.chars().next() {
        let token = ["FM", "MI", "PL", "SG", "PR", "TH"].iter().find(|token| rest.starts_with(**token));
        let length = token.map_or(c.len_utf8(), |token| token.len());
        let original = source.get(..length).unwrap_or_default();
        match (token.copied(), c) {
            (Some("MI"), _) if negative => out.push('-'),
            (Some("MI"), _) if form.compact => {}
            (Some("MI"), _) => out.push(' '),
            (Some("PL"), _) => out.push(if negative { ' ' } else { '+' }),
            (Some("SG"), _) => out.push(if negative { '-' } else { '+' }),
            (Some("PR"), _) if negative => out.push('>'),
            (Some("PR"), _) if form.compact => {}
            (Some("PR"), _) => out.push(' '),
            (Some("TH"), _) => {
                if !negative {
                    out.push_str(ordinal(whole, original.starts_with('T')));
                }
            }
            (Some(_), _) => {}
            (None, '9' | '0') if point => {
                after += 1;
                let digit = fraction.get(after - 1).copied().unwrap_or('0');
                if !form.compact || after <= significant {
                    out.push(digit);
                }
            }
            (None, '9' | '0') => {
                if place >= first {
                    sign(&mut out, &mut signed);
                    let from_end = form.whole - place;
                    let digit = digits.len().checked_sub(from_end).and_then(|place| digits.get(place));
                    out.push(digit.copied().unwrap_or('0'));
                } else if !form.compact {
                    out.push(' ');
                }
                place += 1;
            }
            (None, '.' | 'D') => {
                point = true;
                sign(&mut out, &mut signed);
                out.push('.');
            }
            (None, ',' | 'G') => {
                if place > first {
                    out.push(',');
                } else if !form.compact {
                    out.push(' ');
                }
            }
            (None, 'S') if leading => {}
            (None, 'S') => out.push(if negative { '-' } else { '+' }),
            (None, 'L') => {
                if !form.compact {
                    out.push(' ');
                }
            }
            (None, '"') => {}
            (None, _) => out.push_str(original),
        }
        rest = rest.get(length..).unwrap_or_default();
        source = source.get(length..).unwrap_or_default();
    }
    Ok(out)
}

/// What a text says by a template.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: i64,
    day: i64,
    day_of_year: Option<i64>,
    us: i64,
    afternoon: Option<bool>,
    twelve: bool,
    before_christ: bool,
    east_s: Option<i32>,
    julian: Option<i64>,
}

fn read(text: &str, template: &str) -> Result<Read, SqlError> {
    let mut out = Read { month: 1, day: 1, ..Read::default() };
    let mut rest = text.trim_start();
    let all = pieces(template);
    for (place, piece) in all.iter().enumerate() {
        let key = match piece {
            Piece::Literal(c) => {
                // A separator stands for any.
                match rest.chars().next() {
                    Some(found) if found == *c || !c.is_alphanumeric() && !found.is_alphanumeric() => {
                        rest = rest.get(found.len_utf8()..).unwrap_or_default();
                    }
                    Some(found) if c.is_alphanumeric() => {
                        rest = rest.get(found.len_utf8()..).unwrap_or_default()
                    }
                    _ => {}
                }
                continue;
            }
            Piece::Key(key, ..) => *key,
        };
        rest = rest.trim_start();
        let upper = key.to_ascii_uppercase();
        if matches!(upper.as_str(), "MONTH" | "MON" | "DAY" | "DY") {
            let letters = rest.chars().take_while(char::is_ascii_alphabetic).count();
            let word = rest.get(..letters).unwrap_or_default().to_ascii_lowercase();
            let names: &[&str] = if upper.starts_with('M') { &MONTHS } else { &WEEKDAYS };
            let whole = upper.len() > 3 || upper == "DAY";
            let found = names.iter().position(|name| {
                let name = name.to_ascii_lowercase();
                if whole {
                    word.starts_with(&name)
                } else {
                    name.get(..3).is_some_and(|short| word.starts_with(short))
                }
            });
            let Some(found) = found else {
                return refuse(
                    SqlState::INVALID_DATETIME_FORMAT,
                    format!("invalid value \"{}\" for \"{key}\"", rest.get(..letters).unwrap_or_default()),
                )
                .map_err(|error: SqlError| {
                    error.detail("The given value did not match any of the allowed values for this field.")
                });
            };
            if upper.starts_with('M') {
                out.month = i64::try_from(found + 1).unwrap_or(1);
            }
            let length = if whole { names.get(found).map_or(0, |name| name.len()) } else { 3 };
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        if matches!(upper.as_str(), "AM" | "PM" | "A.M." | "P.M." | "BC" | "AD" | "B.C." | "A.D.") {
            let word = rest.get(..upper.len()).unwrap_or_default().to_ascii_uppercase();
            match word.as_str() {
                "AM" | "A.M." => out.afternoon = Some(false),
                "PM" | "P.M." => out.afternoon = Some(true),
                "BC" | "B.C." => out.before_christ = true,
                "AD" | "A.D." => {}
                _ => {
                    return refuse(
                        SqlState::INVALID_DATETIME_FORMAT,
                        format!(
                            "invalid value \"{}\" for \"{key}\"",
                            rest.get(..upper.len()).unwrap_or(rest)
                        ),
                    )
                    .map_err(|error: SqlError| {
                        error
                            .detail("The given value did not match any of the allowed values for this field.")
                    });
                }
            }
            rest = rest.get(upper.len()..).unwrap_or_default();
            continue;
        }
        let width = match upper.as_str() {
            "YYYY" => 4,
            "YYY" | "DDD" | "MS" => 3,
            "US" => 6,
            "Y" => 1,
            "J" => 9,
            "TZH" => 3,
            "HH24" | "HH12" | "HH" | "MI" | "SS" | "MM" | "DD" | "YY" | "TZM" => 2,
            _ => return Err(unsupported(&format!("\"{key}\" in a template for reading"))),
        };
        // A number that no other follows takes all digits there are.
        let next_is_number = matches!(all.get(place + 1), Some(Piece::Key(..)));
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest.chars().skip(sign).take_while(char::is_ascii_digit).count();
        let taken = sign + if next_is_number { digits.min(width) } else { digits };
        let word = rest.get(..taken).unwrap_or_default();
        if digits == 0 {
            if rest.is_empty() {
                break;
            }
            let shown: String = rest.chars().take(width).collect();
            return refuse(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid value \"{shown}\" for \"{key}\""),
            )
            .map_err(|error: SqlError| error.detail("Value must be an integer."));
        }
        rest = rest.get(taken..).unwrap_or_default();
        let value: i64 = word.parse().map_err(|_| {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{key}\" in source string is out of range"),
            )
        })?;
        let fraction = |width: usize| -> i64 {
            let digits = word.trim_start_matches(['-', '+']);
            let padded = format!("{digits:0<width$}");
            padded.get(..width).unwrap_or("0").parse().unwrap_or(0)
        };
        match upper.as_str() {
            "YYYY" => out.year = Some(value),
            "YYY" => {
                out.year =
                    Some(if digits > 3 { value } else { value + if value >= 520 { 1000 } else { 2000 } })
            }
            "YY" | "Y" => {
                out.year = Some(if digits > 2 { value } else { value + if value < 70 { 2000 } else { 1900 } })
            }
            "MM" => out.month = value,
            "DD" => out.day = value,
            "DDD" => out.day_of_year = Some(value),
            "J" => out.julian = Some(value),
            "HH24" => out.us += value.saturating_mul(US_PER_HOUR),
            "HH12" | "HH" => {
                if !(1..=12).contains(&value) {
                    return refuse(
                        SqlState::INVALID_DATETIME_FORMAT,
                        format!("hour \"{value}\" is invalid for the 12-hour clock"),
                    )
                    .map_err(|error: SqlError| {
                        error.hint("Use the 24-hour clock, or give an hour between 1 and 12.")
                    });
                }
                out.twelve = true;
                out.us += value * US_PER_HOUR;
            }
            "MI" if value < 60 => out.us += value * US_PER_MINUTE,
            "SS" if value < 60 => out.us += value * US_PER_SECOND,
            "MI" | "SS" => return Err(field_out_of_range(text)),
            "MS" => out.us += fraction(3) * 1000,
            "US" => out.us += fraction(6),
            "TZH" => out.east_s = Some(i32::try_from(value.saturating_mul(3600)).unwrap_or(0)),
            _ => {
                let hours = out.east_s.unwrap_or(0);
                let minutes = i32::try_from(value.saturating_mul(60)).unwrap_or(0);
                out.east_s = Some(if hours < 0 { hours - minutes } else { hours + minutes });
            }
        }
    }
    Ok(out)
}

fn field_out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{text}\""),
    )
}

impl Read {
    /// Days and microseconds.
    fn finish(&self, text: &str) -> Result<(i64, i64), SqlError> {
        let year = match self.year {
            Some(year) if self.before_christ => 1 - year,
            Some(0) | None => 0,
            Some(year) => year,
        };
        let mut us = self.us;
        if self.twelve && us / US_PER_HOUR == 12 {
            us -= 12 * US_PER_HOUR;
        }
        if self.afternoon == Some(true) {
            us += 12 * US_PER_HOUR;
        }
        if us > US_PER_DAY {
            return Err(field_out_of_range(text));
        }
        if let Some(day) = self.julian {
            return Ok((day - calendar::JULIAN_2000, us));
        }
        if let Some(day) = self.day_of_year {
            return Ok((calendar::days(year, 1, day), us));
        }
        let valid = (1..=12).contains(&self.month)
            && (1..=calendar::days_in_month(year, self.month)).contains(&self.day);
        if !valid {
            return Err(field_out_of_range(text));
        }
        Ok((calendar::days(year, self.month, self.day), us))
    }
}

/// `to_timestamp()`
pub fn to_timestamp(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    let parts = read(text, call.text(1)?)?;
    let (days, of_day) = parts.finish(text)?;
    let fail =
        || SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""));
    let local = days.checked_mul(US_PER_DAY).and_then(|us| us.checked_add(of_day)).ok_or_else(fail)?;
    let moment = match parts.east_s {
        Some(east_s) => time::check_timestamp(local.saturating_sub(i64::from(east_s) * US_PER_SECOND)),
        None => time::to_utc(local, &call.context.style.zone),
    };
    moment.map(Datum::TimestampTz).ok_or_else(fail)
}

/// `to_date()`
pub fn to_date(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    let (days, _) = read(text, call.text(1)?)?.finish(text)?;
    time::check_date(days).map(Datum::Date).ok_or_else(|| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// `to_number()`: the digits, the point and the sign of a text.
pub fn to_number(call: &Call<'_>) -> Outcome {
    let (text, template) = (call.text(0)?, call.text(1)?);
    let form = Picture::of(template)?;
    let negative = text.contains('-') || text.contains('<');
    let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let whole: String = whole.chars().take(form.whole).collect();
    let fraction: String = fraction.chars().filter(char::is_ascii_digit).take(form.fraction).collect();
    let sign = if negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Numeric::parse(&format!("{sign}{whole}{point}{fraction}")).map(Datum::Numeric)
}
