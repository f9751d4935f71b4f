//! What words and numbers in a date mean, and why a text may be none.

use super::calendar::{US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::{SqlError, SqlState};

/// What comes of a text that may be no date.
pub type Result<T> = std::result::Result<T, Fault>;

/// Why a text is no date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It does not look like one.
    Format,
    /// A part is out of its range.
    Field,
    /// Month or day are, perhaps because of DateStyle.
    MonthOrDay,
    /// The zone is.
    Displacement,
    /// There is no such zone.
    Zone(String),
}

impl Fault {
    /// The error of a text.
    pub fn of(self, type_name: &str, text: &str) -> SqlError {
        let out_of_range = || {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
        };
        match self {
            Fault::Format => SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Fault::Field => out_of_range(),
            Fault::MonthOrDay => out_of_range().hint("Perhaps you need a different \"datestyle\" setting."),
            Fault::Displacement => SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            Fault::Zone(name) => SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            ),
        }
    }
}

/// What a word means.
#[derive(Clone, Copy, PartialEq)]
pub enum Word {
    /// A month, from 1.
    Month(i64),
    /// A day of the week, which means nothing.
    Weekday,
    /// Whether before Christ.
    Before(bool),
    /// Whether after noon.
    Afternoon(bool),
    /// Nothing.
    Ignored,
    /// `t` before a time.
    IsoTime,
    /// `j`, `jd`, `julian` before a Julian day.
    Julian,
    /// An hour more than the zone before.
    Dst,
    /// The moment.
    Now,
    /// Days from today.
    Today(i64),
    /// Greenwich.
    Zulu,
    /// Midnight at Greenwich.
    Midnight,
    /// 1970.
    Epoch,
    /// Whether the later infinity.
    Infinity(bool),
}

/// The meaning of a word in lower case.
pub fn word(text: &str) -> Option<Word> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const WEEKDAYS: [&str; 7] =
        ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let abbreviates = |full: &&str| *full == text || text.len() == 3 && full.starts_with(text);
    if let Some(place) = MONTHS.iter().position(&abbreviates) {
        return Some(Word::Month(place as i64 + 1));
    }
    if WEEKDAYS.iter().any(abbreviates) {
        return Some(Word::Weekday);
    }
    Some(match text {
        "sept" => Word::Month(9),
        "tues" | "wednes" | "weds" | "thur" | "thurs" => Word::Weekday,
        "bc" => Word::Before(true),
        "ad" => Word::Before(false),
        "am" => Word::Afternoon(false),
        "pm" => Word::Afternoon(true),
        "at" | "on" => Word::Ignored,
        "t" => Word::IsoTime,
        "j" | "jd" | "julian" => Word::Julian,
        "dst" => Word::Dst,
        "now" => Word::Now,
        "today" => Word::Today(0),
        "tomorrow" => Word::Today(1),
        "yesterday" => Word::Today(-1),
        "z" | "zulu" => Word::Zulu,
        "allballs" => Word::Midnight,
        "epoch" => Word::Epoch,
        "infinity" => Word::Infinity(true),
        "-infinity" => Word::Infinity(false),
        _ => return None,
    })
}

/// A number of digits alone.
pub fn number(text: &str) -> Result<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    text.parse::<i32>().map(i64::from).map_err(|_| Fault::Field)
}

/// Microseconds of `.123`.
pub fn fraction_us(text: &str) -> Result<i64> {
    let digits = text.strip_prefix('.').ok_or(Fault::Format)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    if digits.is_empty() {
        return Ok(0);
    }
    let value: f64 = text.parse().map_err(|_| Fault::Format)?;
    // Below 1,000,000 and whole.
    Ok((value * 1e6).round_ties_even() as i64)
}

/// Hours, minutes and seconds with colons, in microseconds.
pub fn clock(text: &str) -> Result<(i64, i64)> {
    let mut parts = text.splitn(3, ':');
    let hour = number(parts.next().unwrap_or_default())?;
    let minute_text = parts.next().ok_or(Fault::Format)?;
    let (hour, minute, seconds) = match (parts.next(), minute_text.find('.')) {
        (Some(seconds), None) => (hour, number(minute_text)?, seconds),
        // mm:ss.sss
        (None, Some(_)) => (0, hour, minute_text),
        (None, None) => (hour, number(minute_text)?, "0"),
        (Some(_), Some(_)) => return Err(Fault::Format),
    };
    let (second, fraction) = match seconds.find('.') {
        Some(point) => seconds.split_at(point),
        None => (seconds, "."),
    };
    let (second, fraction) = (number(second)?, fraction_us(fraction)?);
    if minute > 59 || second > 60 {
        return Err(Fault::Field);
    }
    let us = hour * US_PER_HOUR + minute * US_PER_MINUTE + second * US_PER_SECOND + fraction;
    Ok((hour, us))
}

/// A displacement with its sign, in seconds east of Greenwich.
pub fn displacement(text: &str) -> Result<i32> {
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['+', '-']).ok_or(Fault::Format)?;
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    let (mut hour, mut minute, mut second) = (number(first)?, 0, 0);
    match (parts.next(), parts.next(), parts.next()) {
        (None, ..) if first.len() > 2 => {
            minute = hour % 100;
            hour /= 100;
        }
        (None, ..) => {}
        (Some(text), None, _) => minute = number(text)?,
        (Some(text), Some(seconds), None) => {
            minute = number(text)?;
            second = number(seconds)?;
        }
        _ => return Err(Fault::Format),
    }
    if hour > 15 || minute > 59 || second > 59 {
        return Err(Fault::Displacement);
    }
    let east = i32::try_from(hour * 3600 + minute * 60 + second).unwrap_or(0);
    Ok(if negative { -east } else { east })
}
