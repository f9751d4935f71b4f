//! `to_char()` of dates and intervals.

use super::{MONTHS, Piece, WEEKDAYS, cased, ordinal, pieces};
use crate::functions::parts::{Fields, age_fields};
use crate::functions::{Call, Outcome, confused, refuse};
use crate::types::Datum;
use crate::types::time::calendar::{self, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::types::time::{self, write};
use crate::{SqlError, SqlState};

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

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
            _ => return Err(confused()),
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
    let template = super::template(call)?;
    if template.is_empty() || !time::is_finite(us) {
        return Ok(Datum::Null);
    }
    let east_us = zone.as_ref().map_or(0, |(east_s, _)| i64::from(*east_s) * US_PER_SECOND);
    let fields = Fields::of(us.checked_add(east_us).ok_or_else(|| time::out_of_range("timestamp"))?);
    Shown { fields, zone, is_span: false }.write(template).map(Datum::text)
}

/// `to_char()` of an interval.
pub fn interval(call: &Call<'_>) -> Outcome {
    let (span, template) = (call.interval(0)?, super::template(call)?);
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    Shown { fields: age_fields(&span), zone: None, is_span: true }.write(template).map(Datum::text)
}
