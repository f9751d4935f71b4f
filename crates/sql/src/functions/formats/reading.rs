//! `to_timestamp()` and `to_date()`: a date from a text by a template.

use super::{MONTHS, Piece, WEEKDAYS, pieces, template};
use crate::analyze::unsupported;
use crate::functions::{Call, Outcome, refuse};
use crate::types::Datum;
use crate::types::time;
use crate::types::time::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::{SqlError, SqlState};

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
    let parts = read(text, template(call)?)?;
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
    let (days, _) = read(text, template(call)?)?.finish(text)?;
    time::check_date(days).map(Datum::Date).ok_or_else(|| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}
