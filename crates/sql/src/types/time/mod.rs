//! Dates, times, intervals and zones: their values, their text forms, their arithmetic.
//!
//! | file | has |
//! |---|---|
//! | [`calendar`] | days and dates |
//! | [`zone`] | names, abbreviations, offsets |
//! | [`fields`] | words, numbers and signs of a text |
//! | [`words`] | what words and numbers mean |
//! | `parts` | what they say of a date and a time |
//! | [`read`] | dates and times from that |
//! | [`span`] | intervals, in `span_read` from text |
//! | [`mod@write`] | dates and times as text |

pub mod calendar;
pub mod fields;
mod parts;
pub mod read;
pub mod span;
mod span_read;
pub mod words;
pub mod write;
pub mod zone;

pub use span::Interval;
pub use zone::Zone;

use calendar::{DATE_END, DATE_MIN, TIMESTAMP_END, TIMESTAMP_MIN, US_PER_DAY};

use crate::{SqlError, SqlState};

/// The date before all dates.
pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
/// The date after all dates.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The timestamp before all timestamps.
pub const NEGATIVE_INFINITY: i64 = i64::MIN;
/// The timestamp after all timestamps.
pub const INFINITY: i64 = i64::MAX;

/// Whether a date is a day.
pub fn date_is_finite(date: i32) -> bool {
    date != DATE_INFINITY && date != DATE_NEGATIVE_INFINITY
}

/// Whether a timestamp is a moment.
pub fn is_finite(us: i64) -> bool {
    us != INFINITY && us != NEGATIVE_INFINITY
}

/// A timestamp that is in range.
pub fn check_timestamp(us: i64) -> Option<i64> {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&us).then_some(us)
}

/// A date that is in range.
pub fn check_date(days: i64) -> Option<i32> {
    if (DATE_MIN..DATE_END).contains(&days) { i32::try_from(days).ok() } else { None }
}

/// The timestamp of midnight.
pub fn midnight(date: i32) -> Option<i64> {
    match date {
        DATE_INFINITY => Some(INFINITY),
        DATE_NEGATIVE_INFINITY => Some(NEGATIVE_INFINITY),
        _ => i64::from(date).checked_mul(US_PER_DAY).and_then(check_timestamp),
    }
}

/// The moment of a local time.
pub fn to_utc(local_us: i64, zone: &Zone) -> Option<i64> {
    if !is_finite(local_us) {
        return Some(local_us);
    }
    let east_us = i64::from(zone.at_local(local_us)) * calendar::US_PER_SECOND;
    local_us.checked_sub(east_us).and_then(check_timestamp)
}

/// The local time of a moment.
pub fn to_local(utc_us: i64, zone: &Zone) -> Option<i64> {
    if !is_finite(utc_us) {
        return Some(utc_us);
    }
    let east_us = i64::from(zone.at(utc_us).0) * calendar::US_PER_SECOND;
    utc_us.checked_add(east_us)
}

/// `timestamp out of range` and its like.
pub fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what} out of range"))
}

/// Rounds microseconds to so many digits after the point (a modifier; below 0 there is none).
pub fn round_us(us: i64, digits: i32) -> i64 {
    let Ok(digits) = u32::try_from(digits) else { return us };
    if digits >= 6 || !is_finite(us) {
        return us;
    }
    let unit = 10i64.pow(6 - digits);
    // Half away from zero.
    let half = if us < 0 { -unit / 2 } else { unit / 2 };
    us.checked_add(half).map_or(us, |sum| sum / unit * unit)
}
