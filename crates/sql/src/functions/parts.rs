//! Parts of dates, times and intervals: `extract()`, `date_part()`, `date_trunc()`.

use super::moments::named_zone;
use super::{Call, Outcome, confused, refuse};
use crate::types::time::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::types::time::{self, Interval, out_of_range};
use crate::types::{Datum, Numeric};
use crate::{SqlError, SqlState};

/// A moment taken apart.
pub struct Fields {
    /// Year, 0 before 1.
    pub year: i64,
    /// Month from 1.
    pub month: i64,
    /// Day from 1.
    pub day: i64,
    /// Days since 2000.
    pub days: i64,
    /// Microseconds since midnight.
    pub us: i64,
}

impl Fields {
    /// The fields of a local time.
    pub fn of(local_us: i64) -> Fields {
        let days = local_us.div_euclid(US_PER_DAY);
        let (year, month, day) = calendar::civil(days);
        Fields { year, month, day, days, us: local_us.rem_euclid(US_PER_DAY) }
    }
}

/// The fields of an interval.
pub fn age_fields(span: &Interval) -> Fields {
    Fields {
        year: i64::from(span.months / 12),
        month: i64::from(span.months % 12),
        day: i64::from(span.days),
        days: i64::from(span.days),
        us: span.us,
    }
}

/// The unit of a name.
fn unit(name: &str) -> Option<&'static str> {
    const UNITS: [(&str, &[&str]); 22] = [
        ("microseconds", &["us", "usec", "usecs", "usecond", "useconds", "microsecond", "microseconds"]),
        ("milliseconds", &["ms", "msec", "msecs", "msecond", "mseconds", "millisecond", "milliseconds"]),
        ("second", &["s", "sec", "secs", "second", "seconds"]),
        ("minute", &["m", "min", "mins", "minute", "minutes"]),
        ("hour", &["h", "hr", "hrs", "hour", "hours"]),
        ("day", &["d", "day", "days"]),
        ("week", &["w", "week", "weeks"]),
        ("month", &["mon", "mons", "month", "months"]),
        ("quarter", &["qtr", "quarter"]),
        ("year", &["y", "yr", "yrs", "year", "years"]),
        ("decade", &["dec", "decs", "decade", "decades"]),
        ("century", &["c", "cent", "century", "centuries"]),
        ("millennium", &["mil", "mils", "millennium", "millennia"]),
        ("epoch", &["epoch"]),
        ("dow", &["dow"]),
        ("doy", &["doy"]),
        ("isodow", &["isodow"]),
        ("isoyear", &["isoyear"]),
        ("julian", &["julian", "jd", "j"]),
        ("timezone", &["timezone"]),
        ("timezone_hour", &["timezone_h", "timezone_hour"]),
        ("timezone_minute", &["timezone_m", "timezone_minute"]),
    ];
    UNITS.iter().find(|(_, names)| names.contains(&name)).map(|(unit, _)| *unit)
}

fn century(year: i64) -> i64 {
    if year > 0 { (year + 99) / 100 } else { -((99 - (year - 1)) / 100) }
}

fn millennium(year: i64) -> i64 {
    if year > 0 { (year + 999) / 1000 } else { -((999 - (year - 1)) / 1000) }
}

fn decade(year: i64) -> i64 {
    if year >= 0 { year / 10 } else { -((8 - (year - 1)) / 10) }
}

/// What a unit is of a value, as a number and its digits after the point; none if the type has no
/// such unit.
fn part(name: &str, call: &Call<'_>) -> Result<Option<Numeric>, SqlError> {
    let value = call.at(1);
    let whole = |value: i64| Some(Numeric::from(value));
    let scaled = |value: i64, scale: u16| Some(Numeric::Small(i128::from(value), scale));
    let zone = match value {
        Datum::TimestampTz(us) => Some(call.context.style.zone.at(*us).0),
        Datum::TimeTz(_, west_s) => Some(-west_s),
        _ => None,
    };
    if let (Some(east_s), true) = (zone, name.starts_with("timezone")) {
        return Ok(match name {
            "timezone" => whole(i64::from(east_s)),
            "timezone_hour" => whole(i64::from(east_s / 3600)),
            _ => whole(i64::from(east_s / 60 % 60)),
        });
    }
    let clock = |us: i64| match name {
        "microseconds" => whole(us % US_PER_MINUTE),
        "milliseconds" => scaled(us % US_PER_MINUTE, 3),
        "second" => scaled(us % US_PER_MINUTE, 6),
        "minute" => whole(us / US_PER_MINUTE % 60),
        "hour" => whole(us / US_PER_HOUR),
        _ => None,
    };
    let local = match value {
        Datum::Interval(span) => return Ok(part_of_interval(name, span, clock)),
        Datum::Time(us) => return Ok(if name == "epoch" { scaled(*us, 6) } else { clock(*us) }),
        Datum::TimeTz(us, west_s) => {
            let utc = us + i64::from(*west_s) * US_PER_SECOND;
            return Ok(if name == "epoch" { scaled(utc, 6) } else { clock(*us) });
        }
        Datum::Date(days) => i64::from(*days).checked_mul(US_PER_DAY).unwrap_or(0),
        Datum::Timestamp(us) => *us,
        Datum::TimestampTz(us) => {
            time::to_local(*us, &call.context.style.zone).ok_or_else(|| out_of_range("timestamp"))?
        }
        _ => return Err(confused()),
    };
    let is_date = matches!(value, Datum::Date(_));
    let fields = match value {
        // A date may be beyond what microseconds reach.
        Datum::Date(days) => {
            let days = i64::from(*days);
            let (year, month, day) = calendar::civil(days);
            Fields { year, month, day, days, us: 0 }
        }
        _ => Fields::of(local),
    };
    let first = |year| calendar::days(year, 1, 1);
    Ok(match name {
        "day" => whole(fields.day),
        "month" => whole(fields.month),
        "quarter" => whole((fields.month - 1) / 3 + 1),
        "week" => whole(calendar::iso_week(fields.days).1),
        "isoyear" => {
            let year = calendar::iso_week(fields.days).0;
            whole(if year > 0 { year } else { year - 1 })
        }
        "year" => whole(if fields.year > 0 { fields.year } else { fields.year - 1 }),
        "decade" => whole(decade(fields.year)),
        "century" => whole(century(fields.year)),
        "millennium" => whole(millennium(fields.year)),
        "dow" => whole(calendar::weekday(fields.days)),
        "isodow" => whole((calendar::weekday(fields.days) + 6) % 7 + 1),
        "doy" => whole(fields.days - first(fields.year) + 1),
        "epoch" if is_date => whole((fields.days + 10_957) * 86_400),
        "epoch" => {
            let us = match value {
                Datum::TimestampTz(us) => *us,
                _ => local,
            };
            Some(Numeric::Small(i128::from(us) + 10_957 * i128::from(US_PER_DAY), 6))
        }
        "julian" if is_date => whole(fields.days + calendar::JULIAN_2000),
        "julian" => {
            let day = Numeric::from(fields.us).div(&Numeric::from(US_PER_DAY))?;
            Some(Numeric::from(fields.days + calendar::JULIAN_2000).add(&day)?)
        }
        _ if is_date => None,
        _ => clock(fields.us),
    })
}

fn part_of_interval(name: &str, span: &Interval, clock: impl Fn(i64) -> Option<Numeric>) -> Option<Numeric> {
    let whole = |value: i64| Some(Numeric::from(value));
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    match name {
        "day" => whole(i64::from(span.days)),
        "month" => whole(months),
        "quarter" => whole(months / 3 + 1),
        "year" => whole(years),
        "decade" => whole(years / 10),
        "century" => whole(years / 100),
        "millennium" => whole(years / 1000),
        "epoch" => {
            // A year is 365.25 days, a month 30.
            let days = i128::from(span.days) + i128::from(months) * 30;
            let seconds = i128::from(years) * 31_557_600 + days * 86_400;
            Some(Numeric::Small(seconds * i128::from(US_PER_SECOND) + i128::from(span.us), 6))
        }
        _ => clock(span.us),
    }
}

/// The name in messages of the type of the second argument.
fn type_name(call: &Call<'_>) -> String {
    call.type_of(1).display()
}

/// `extract()`
pub fn extract(call: &Call<'_>) -> Outcome {
    let name = call.text(0)?.to_ascii_lowercase();
    let known = unit(&name);
    let infinite = match call.at(1) {
        Datum::Date(days) if !time::date_is_finite(*days) => Some(*days > 0),
        Datum::Timestamp(us) | Datum::TimestampTz(us) if !time::is_finite(*us) => Some(*us > 0),
        _ => None,
    };
    let unsupported = || {
        refuse(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("unit \"{name}\" not supported for type {}", type_name(call)),
        )
    };
    let Some(known) = known else {
        return refuse(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unit \"{name}\" not recognized for type {}", type_name(call)),
        );
    };
    if let Some(positive) = infinite {
        return match known {
            "year" | "decade" | "century" | "millennium" | "julian" | "isoyear" | "epoch" => {
                Ok(Datum::Numeric(if positive { Numeric::Infinity } else { Numeric::NegativeInfinity }))
            }
            "timezone" | "timezone_hour" | "timezone_minute"
                if matches!(call.at(1), Datum::Date(_) | Datum::Timestamp(_)) =>
            {
                unsupported()
            }
            "hour" | "minute" | "second" | "milliseconds" | "microseconds"
                if matches!(call.at(1), Datum::Date(_)) =>
            {
                unsupported()
            }
            _ => Ok(Datum::Null),
        };
    }
    match part(known, call)? {
        Some(value) => Ok(Datum::Numeric(value)),
        None => unsupported(),
    }
}

/// `date_part()`
pub fn date_part(call: &Call<'_>) -> Outcome {
    match extract(call)? {
        Datum::Numeric(value) => Ok(Datum::Float8(value.to_f64())),
        other => Ok(other),
    }
}

fn truncated(name: &str, fields: &Fields) -> Option<i64> {
    let day = |year, month, day| Some((calendar::days(year, month, day), 0));
    let keep = |unit: i64| Some((fields.days, fields.us / unit * unit));
    let (days, us) = match name {
        "microseconds" => Some((fields.days, fields.us)),
        "milliseconds" => keep(1000),
        "second" => keep(US_PER_SECOND),
        "minute" => keep(US_PER_MINUTE),
        "hour" => keep(US_PER_HOUR),
        "day" => Some((fields.days, 0)),
        "week" => Some((fields.days - (calendar::weekday(fields.days) + 6) % 7, 0)),
        "month" => day(fields.year, fields.month, 1),
        "quarter" => day(fields.year, (fields.month - 1) / 3 * 3 + 1, 1),
        "year" => day(fields.year, 1, 1),
        "decade" => day(decade(fields.year) * 10, 1, 1),
        "century" => {
            let century = century(fields.year);
            day(if century > 0 { century * 100 - 99 } else { century * 100 + 1 }, 1, 1)
        }
        "millennium" => {
            let millennium = millennium(fields.year);
            day(if millennium > 0 { millennium * 1000 - 999 } else { millennium * 1000 + 1 }, 1, 1)
        }
        _ => None,
    }?;
    days.checked_mul(US_PER_DAY)?.checked_add(us)
}

/// `date_trunc()`
pub fn date_trunc(call: &Call<'_>) -> Outcome {
    let name = call.text(0)?.to_ascii_lowercase();
    // Parts that are no lengths of time are not known here.
    let is_length = |unit: &&str| !matches!(*unit, "dow" | "doy" | "isodow" | "isoyear" | "julian" | "epoch");
    let known = unit(&name).filter(is_length);
    let fault = |known: Option<&str>| {
        let (state, word) = match known {
            Some(_) => (SqlState::FEATURE_NOT_SUPPORTED, "supported"),
            None => (SqlState::INVALID_PARAMETER_VALUE, "recognized"),
        };
        SqlError::new(state, format!("unit \"{name}\" not {word} for type {}", type_name(call)))
    };
    let unit = known.ok_or_else(|| fault(None))?;
    match call.at(1) {
        Datum::Interval(span) => {
            let cut = |us: i64| Interval { us: span.us / us * us, ..*span };
            let months = |months: i32| Interval { months: span.months / months * months, days: 0, us: 0 };
            Ok(Datum::Interval(match unit {
                "microseconds" => *span,
                "milliseconds" => cut(1000),
                "second" => cut(US_PER_SECOND),
                "minute" => cut(US_PER_MINUTE),
                "hour" => cut(US_PER_HOUR),
                "day" => Interval { us: 0, ..*span },
                "month" => months(1),
                "quarter" => months(3),
                "year" => months(12),
                "decade" => months(120),
                "century" => months(1200),
                "millennium" => months(12_000),
                "week" => {
                    return Err(fault(known).detail("Months usually have fractional weeks."));
                }
                _ => return Err(fault(known)),
            }))
        }
        Datum::Timestamp(us) if !time::is_finite(*us) => Ok(Datum::Timestamp(*us)),
        Datum::Timestamp(us) => {
            truncated(unit, &Fields::of(*us)).map(Datum::Timestamp).ok_or_else(|| fault(known))
        }
        Datum::TimestampTz(us) if !time::is_finite(*us) => Ok(Datum::TimestampTz(*us)),
        Datum::TimestampTz(us) => {
            let zone =
                if call.count() > 2 { named_zone(call.text(2)?)? } else { call.context.style.zone.clone() };
            let local = time::to_local(*us, &zone).ok_or_else(|| out_of_range("timestamp"))?;
            let local_start = truncated(unit, &Fields::of(local)).ok_or_else(|| fault(known))?;
            // Within a day the displacement stays what it was.
            let moment = if matches!(unit, "microseconds" | "milliseconds" | "second" | "minute" | "hour") {
                us - (local - local_start)
            } else {
                time::to_utc(local_start, &zone).ok_or_else(|| out_of_range("timestamp"))?
            };
            Ok(Datum::TimestampTz(moment))
        }
        _ => Err(confused()),
    }
}
