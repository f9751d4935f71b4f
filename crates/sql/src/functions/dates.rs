//! Arithmetic of dates, times and intervals.

use super::{Call, Outcome, confused, refuse};
use crate::types::compare::compare;
use crate::types::time::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::types::time::{self, Interval, Zone, out_of_range, read};
use crate::types::{Datum, Numeric, Oid};
use crate::{SqlError, SqlState};

/// A timestamp and an interval: months first, whose last day is the last there is, then days, then
/// microseconds. With a zone months and days are those of its clocks.
pub fn shifted(us: i64, by: &Interval, zone: Option<&Zone>) -> Result<i64, SqlError> {
    if !time::is_finite(us) {
        return Ok(us);
    }
    let fail = || out_of_range("timestamp");
    let mut moment = us;
    if by.months != 0 || by.days != 0 {
        let local = match zone {
            Some(zone) => time::to_local(moment, zone).ok_or_else(fail)?,
            None => moment,
        };
        let (mut day, of_day) = (local.div_euclid(US_PER_DAY), local.rem_euclid(US_PER_DAY));
        if by.months != 0 {
            let (year, month, of_month) = calendar::civil(day);
            let months = year * 12 + month - 1 + i64::from(by.months);
            let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
            day = calendar::days(year, month, of_month.min(calendar::days_in_month(year, month)));
        }
        let day = day + i64::from(by.days);
        let local = day.checked_mul(US_PER_DAY).and_then(|us| us.checked_add(of_day)).ok_or_else(fail)?;
        moment = match zone {
            Some(zone) => time::to_utc(local, zone).ok_or_else(fail)?,
            None => local,
        };
    }
    moment.checked_add(by.us).and_then(time::check_timestamp).ok_or_else(fail)
}

fn negated(by: &Interval) -> Result<Interval, SqlError> {
    by.negate().ok_or_else(|| out_of_range("interval"))
}

fn shift(call: &Call<'_>, by: Interval, at: usize) -> Outcome {
    Ok(match call.at(at) {
        Datum::Timestamp(us) => Datum::Timestamp(shifted(*us, &by, None)?),
        Datum::TimestampTz(us) => Datum::TimestampTz(shifted(*us, &by, Some(&call.context.style.zone))?),
        Datum::Date(days) => {
            let midnight = time::midnight(*days).ok_or_else(|| {
                SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
            })?;
            Datum::Timestamp(shifted(midnight, &by, None)?)
        }
        Datum::Time(us) => Datum::Time(of_day(*us, by.us)),
        Datum::TimeTz(us, west_s) => Datum::TimeTz(of_day(*us, by.us), *west_s),
        _ => return Err(confused()),
    })
}

fn of_day(us: i64, by_us: i64) -> i64 {
    (us + by_us % US_PER_DAY).rem_euclid(US_PER_DAY)
}

/// A date, time or timestamp `+` an interval, in either order.
pub fn add_interval(call: &Call<'_>) -> Outcome {
    match call.at(0) {
        Datum::Interval(by) => shift(call, *by, 1),
        _ => shift(call, call.interval(1)?, 0),
    }
}

/// A date, time or timestamp `-` an interval.
pub fn sub_interval(call: &Call<'_>) -> Outcome {
    shift(call, negated(&call.interval(1)?)?, 0)
}

fn date_of(days: i64) -> Outcome {
    time::check_date(days).map(Datum::Date).ok_or_else(|| out_of_range("date"))
}

/// `date + integer`, in either order.
pub fn add_days(call: &Call<'_>) -> Outcome {
    let (date, days) = match call.at(0) {
        Datum::Date(date) => (*date, call.integer(1)?),
        _ => (call.date(1)?, call.integer(0)?),
    };
    if !time::date_is_finite(date) {
        return Ok(Datum::Date(date));
    }
    date_of(i64::from(date) + days)
}

/// `date - integer`
pub fn sub_days(call: &Call<'_>) -> Outcome {
    let date = call.date(0)?;
    if !time::date_is_finite(date) {
        return Ok(Datum::Date(date));
    }
    date_of(i64::from(date) - call.integer(1)?)
}

/// `date - date`
pub fn days_between(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.date(0)?, call.date(1)?);
    if !time::date_is_finite(a) || !time::date_is_finite(b) {
        return refuse(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates");
    }
    a.checked_sub(b).map(Datum::Int4).ok_or_else(|| super::out_of_range("integer"))
}

/// `timestamp - timestamp`: days of 24 hours and the rest.
pub fn between(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.us(0)?, call.us(1)?);
    if !time::is_finite(a) || !time::is_finite(b) {
        return refuse(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite timestamps");
    }
    let us = a.checked_sub(b).ok_or_else(|| out_of_range("interval"))?;
    justified_hours(Interval { us, ..Interval::default() }).map(Datum::Interval)
}

/// `time - time`
pub fn time_between(call: &Call<'_>) -> Outcome {
    Ok(Datum::Interval(Interval { us: call.us(0)? - call.us(1)?, ..Interval::default() }))
}

/// `interval + interval`
pub fn add(call: &Call<'_>) -> Outcome {
    call.interval(0)?.add(&call.interval(1)?).map(Datum::Interval).ok_or_else(|| out_of_range("interval"))
}

/// `interval - interval`
pub fn sub(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.interval(0)?, call.interval(1)?);
    let difference = || {
        Some(Interval {
            months: a.months.checked_sub(b.months)?,
            days: a.days.checked_sub(b.days)?,
            us: a.us.checked_sub(b.us)?,
        })
    };
    difference().map(Datum::Interval).ok_or_else(|| out_of_range("interval"))
}

/// Prefix `-`
pub fn neg(call: &Call<'_>) -> Outcome {
    negated(&call.interval(0)?).map(Datum::Interval)
}

fn narrow(value: f64) -> Result<i32, SqlError> {
    if value.is_nan() || value > f64::from(i32::MAX) || value < f64::from(i32::MIN) {
        return Err(out_of_range("interval"));
    }
    Ok(value as i32)
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round_ties_even() / 1e6
}

/// Scales an interval: what is left of months goes to days, what is left of days to microseconds.
pub fn scaled(span: Interval, by: impl Fn(f64) -> f64) -> Outcome {
    let (months, days) = (by(f64::from(span.months)), by(f64::from(span.days)));
    let mut result = Interval { months: narrow(months)?, days: narrow(days)?, us: 0 };
    let month_days = rounded((months - f64::from(result.months)) * 30.0);
    let mut seconds = rounded((days - f64::from(result.days) + month_days.fract()) * 86_400.0);
    let over = |sum: Option<i32>| sum.ok_or_else(|| out_of_range("interval"));
    if seconds.abs() >= 86_400.0 {
        let whole = (seconds / 86_400.0).trunc();
        result.days = over(result.days.checked_add(narrow(whole)?))?;
        seconds -= whole * 86_400.0;
    }
    result.days = over(result.days.checked_add(narrow(month_days.trunc())?))?;
    let us = (by(span.us as f64) + seconds * 1e6).round_ties_even();
    if us.is_nan() || us.abs() >= 9_223_372_036_854_775_808.0 {
        return Err(out_of_range("interval"));
    }
    result.us = us as i64;
    Ok(Datum::Interval(result))
}

/// `interval * double precision`, in either order.
pub fn mul(call: &Call<'_>) -> Outcome {
    let (span, factor) = match call.at(0) {
        Datum::Interval(span) => (*span, call.float(1)?),
        _ => (call.interval(1)?, call.float(0)?),
    };
    scaled(span, |value| value * factor)
}

/// `interval / double precision`
pub fn div(call: &Call<'_>) -> Outcome {
    let divisor = call.float(1)?;
    if divisor == 0.0 {
        return Err(super::integers::division_by_zero());
    }
    scaled(call.interval(0)?, |value| value / divisor)
}

/// Whole days out of the hours, of the days' sign.
pub fn justified_hours(span: Interval) -> Result<Interval, SqlError> {
    let days = i64::from(span.days) + span.us / US_PER_DAY;
    let mut us = span.us % US_PER_DAY;
    let mut days = i32::try_from(days).map_err(|_| out_of_range("interval"))?;
    if days > 0 && us < 0 {
        us += US_PER_DAY;
        days -= 1;
    } else if days < 0 && us > 0 {
        us -= US_PER_DAY;
        days += 1;
    }
    Ok(Interval { days, us, ..span })
}

fn justified_days(span: Interval) -> Result<Interval, SqlError> {
    let months = i64::from(span.months) + i64::from(span.days / 30);
    let mut days = span.days % 30;
    let mut months = i32::try_from(months).map_err(|_| out_of_range("interval"))?;
    if months > 0 && days < 0 {
        days += 30;
        months -= 1;
    } else if months < 0 && days > 0 {
        days -= 30;
        months += 1;
    }
    Ok(Interval { months, days, ..span })
}

/// `justify_hours()`
pub fn justify_hours(call: &Call<'_>) -> Outcome {
    justified_hours(call.interval(0)?).map(Datum::Interval)
}

/// `justify_days()`
pub fn justify_days(call: &Call<'_>) -> Outcome {
    justified_days(call.interval(0)?).map(Datum::Interval)
}

/// `justify_interval()`
pub fn justify_interval(call: &Call<'_>) -> Outcome {
    let span = call.interval(0)?;
    let days = i64::from(span.days) + span.us / US_PER_DAY;
    let mut us = span.us % US_PER_DAY;
    let mut months = i64::from(span.months) + days / 30;
    let mut days = days % 30;
    if months > 0 && (days < 0 || days == 0 && us < 0) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || days == 0 && us > 0) {
        days -= 30;
        months += 1;
    }
    if days > 0 && us < 0 {
        us += US_PER_DAY;
        days -= 1;
    } else if days < 0 && us > 0 {
        us -= US_PER_DAY;
        days += 1;
    }
    let narrow = |value: i64| i32::try_from(value).map_err(|_| out_of_range("interval"));
    Ok(Datum::Interval(Interval { months: narrow(months)?, days: narrow(days)?, us }))
}

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

/// `age()`: years, months, days and the rest, as on a calendar.
pub fn age(call: &Call<'_>) -> Outcome {
    let zone = &call.context.style.zone;
    let local = |datum: &Datum| match datum {
        Datum::TimestampTz(us) => time::to_local(*us, zone).ok_or_else(|| out_of_range("timestamp")),
        Datum::Timestamp(us) => Ok(*us),
        _ => Err(confused()),
    };
    let (later, earlier) = if call.count() > 1 {
        (local(call.at(0))?, local(call.at(1))?)
    } else {
        let now = time::to_local(call.context.transaction_us, zone).unwrap_or(0);
        (now.div_euclid(US_PER_DAY) * US_PER_DAY, local(call.at(0))?)
    };
    if !time::is_finite(later) || !time::is_finite(earlier) {
        return refuse(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite timestamps");
    }
    let negative = later < earlier;
    let (a, b) = if negative { (earlier, later) } else { (later, earlier) };
    let (a, b) = (Fields::of(a), Fields::of(b));
    let mut us = a.us - b.us;
    let mut days = a.day - b.day;
    let mut months = (a.year - b.year) * 12 + a.month - b.month;
    if us < 0 {
        us += US_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // The month that is borrowed from is the earlier one.
        days += calendar::days_in_month(b.year, b.month);
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    let narrow = |value: i64| i32::try_from(value * sign).map_err(|_| out_of_range("interval"));
    Ok(Datum::Interval(Interval { months: narrow(months)?, days: narrow(days)?, us: us * sign }))
}

/// The zone of a name in `AT TIME ZONE`.
pub fn named_zone(name: &str) -> Result<Zone, SqlError> {
    let lower = name.to_ascii_lowercase();
    let abbreviated = time::zone::abbreviation(&lower).map(Zone::fixed);
    abbreviated.or_else(|| Zone::in_date(name)).or_else(|| posix_offset(name)).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
    })
}

/// `+3` as POSIX reads it: west of Greenwich.
fn posix_offset(name: &str) -> Option<Zone> {
    let signed = if name.starts_with(['+', '-']) { name.to_owned() } else { format!("+{name}") };
    read::displacement(&signed).ok().map(|east_s| Zone::fixed(-east_s))
}

/// `timezone()`, `AT TIME ZONE`
pub fn at_zone(call: &Call<'_>) -> Outcome {
    let zone = match call.at(0) {
        Datum::Interval(span) => {
            if span.months != 0 || span.days != 0 {
                return refuse(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("interval time zone \"{}\" must not include months or days", call.printed(0)?),
                );
            }
            Zone::fixed(i32::try_from(span.us / US_PER_SECOND).unwrap_or(0))
        }
        _ => named_zone(call.text(0)?)?,
    };
    let fail = || out_of_range("timestamp");
    match call.at(1) {
        Datum::Timestamp(us) => time::to_utc(*us, &zone).map(Datum::TimestampTz).ok_or_else(fail),
        Datum::TimestampTz(us) => time::to_local(*us, &zone).map(Datum::Timestamp).ok_or_else(fail),
        Datum::TimeTz(us, west_s) => {
            let east_s = zone.at(call.context.transaction_us).0;
            let moved = us + (i64::from(*west_s) + i64::from(east_s)) * US_PER_SECOND;
            Ok(Datum::TimeTz(moved.rem_euclid(US_PER_DAY), -east_s))
        }
        _ => Err(confused()),
    }
}

/// `isfinite()`
pub fn is_finite(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(match call.at(0) {
        Datum::Date(days) => time::date_is_finite(*days),
        Datum::Interval(_) => true,
        _ => time::is_finite(call.us(0)?),
    }))
}

/// `make_date()`
pub fn make_date(call: &Call<'_>) -> Outcome {
    let (year, month, day) = (call.integer(0)?, call.integer(1)?, call.integer(2)?);
    let astronomical = if year < 0 { year + 1 } else { year };
    let valid = year != 0
        && (1..=12).contains(&month)
        && (1..=calendar::days_in_month(astronomical, month)).contains(&day);
    if !valid {
        return refuse(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date field value out of range: {year}-{month:02}-{day:02}"),
        );
    }
    time::check_date(calendar::days(astronomical, month, day)).map(Datum::Date).ok_or_else(|| {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: {year}-{month:02}-{day:02}"),
        )
    })
}

fn clock_of(hour: i64, minute: i64, second: f64) -> Result<i64, SqlError> {
    let us = (second * 1e6).round_ties_even();
    let valid = (0..=24).contains(&hour) && (0..=59).contains(&minute) && (0.0..=60e6).contains(&us);
    let sum = hour * US_PER_HOUR + minute * US_PER_MINUTE + if valid { us as i64 } else { 0 };
    if !valid || sum > US_PER_DAY {
        return refuse(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("time field value out of range: {hour}:{minute:02}:{second:02}"),
        );
    }
    Ok(sum)
}

/// `make_time()`
pub fn make_time(call: &Call<'_>) -> Outcome {
    clock_of(call.integer(0)?, call.integer(1)?, call.float(2)?).map(Datum::Time)
}

fn made_timestamp(call: &Call<'_>) -> Result<i64, SqlError> {
    let Datum::Date(days) = make_date(call)? else { return Err(confused()) };
    let of_day = clock_of(call.integer(3)?, call.integer(4)?, call.float(5)?)?;
    let us = i64::from(days).checked_mul(US_PER_DAY).and_then(|us| us.checked_add(of_day));
    us.and_then(time::check_timestamp).ok_or_else(|| out_of_range("timestamp"))
}

/// `make_timestamp()`
pub fn make_timestamp(call: &Call<'_>) -> Outcome {
    made_timestamp(call).map(Datum::Timestamp)
}

/// `make_timestamptz()`
pub fn make_timestamptz(call: &Call<'_>) -> Outcome {
    let local = made_timestamp(call)?;
    let zone = if call.count() > 6 { named_zone(call.text(6)?)? } else { call.context.style.zone.clone() };
    time::to_utc(local, &zone).map(Datum::TimestampTz).ok_or_else(|| out_of_range("timestamp"))
}

/// `make_interval()`
pub fn make_interval(call: &Call<'_>) -> Outcome {
    let at = |place: usize| call.integer(place);
    let seconds = (call.float(6)? * 1e6).round_ties_even();
    let narrow = |value: i64| i32::try_from(value).map_err(|_| out_of_range("interval"));
    if !(-9e18..=9e18).contains(&seconds) {
        return Err(out_of_range("interval"));
    }
    let us = (at(4)? * US_PER_HOUR)
        .checked_add(at(5)? * US_PER_MINUTE)
        .and_then(|us| us.checked_add(seconds as i64));
    Ok(Datum::Interval(Interval {
        months: narrow(at(0)? * 12 + at(1)?)?,
        days: narrow(at(2)? * 7 + at(3)?)?,
        us: us.ok_or_else(|| out_of_range("interval"))?,
    }))
}

/// `to_timestamp()` of seconds since 1970.
pub fn from_epoch(call: &Call<'_>) -> Outcome {
    let seconds = call.float(0)?;
    if seconds.is_nan() {
        return refuse(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp cannot be NaN");
    }
    if seconds.is_infinite() {
        return Ok(Datum::TimestampTz(if seconds > 0.0 { time::INFINITY } else { time::NEGATIVE_INFINITY }));
    }
    let us = ((seconds - 946_684_800.0) * 1e6).round_ties_even();
    let in_range = us.abs() < 9.3e18;
    let moment = if in_range { time::check_timestamp(us as i64) } else { None };
    moment.map(Datum::TimestampTz).ok_or_else(|| {
        let mut shown = String::new();
        crate::types::float::write8(seconds, 0, &mut shown);
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{shown}\""))
    })
}

/// `date_bin()`
pub fn date_bin(call: &Call<'_>) -> Outcome {
    let (stride, value, origin) = (call.interval(0)?, call.us(1)?, call.us(2)?);
    if stride.months != 0 {
        return refuse(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        );
    }
    let step = i64::from(stride.days).checked_mul(US_PER_DAY).and_then(|us| us.checked_add(stride.us));
    let step = step.ok_or_else(|| out_of_range("interval"))?;
    if step <= 0 {
        return refuse(SqlState::DATETIME_FIELD_OVERFLOW, "stride must be greater than zero");
    }
    let binned = if time::is_finite(value) && time::is_finite(origin) {
        value
            .checked_sub(origin)
            .map(|from| origin + from.div_euclid(step) * step)
            .ok_or_else(|| out_of_range("interval"))?
    } else {
        value
    };
    Ok(if call.type_of(1) == Oid::TIMESTAMPTZ {
        Datum::TimestampTz(binned)
    } else {
        Datum::Timestamp(binned)
    })
}

/// `OVERLAPS`: of two pairs of ends, each in either order; an end that is not known counts only if
/// it can decide.
pub fn overlaps(call: &Call<'_>) -> Outcome {
    // A missing start is made good by the end.
    let period = |from: usize| {
        let (a, b) = (call.at(from), call.at(from + 1));
        let swapped = a.is_null() || !b.is_null() && compare(a, b).is_gt();
        if swapped { (b.clone(), a.clone()) } else { (a.clone(), b.clone()) }
    };
    let ((start, end), (other_start, other_end)) = (period(0), period(2));
    if start.is_null() || other_start.is_null() {
        return Ok(Datum::Null);
    }
    let order = compare(&start, &other_start);
    let (first_end, second_start) = match order {
        std::cmp::Ordering::Greater => (other_end, start),
        std::cmp::Ordering::Less => (end, other_start),
        // They begin together.
        std::cmp::Ordering::Equal => {
            return Ok(if end.is_null() || other_end.is_null() { Datum::Null } else { Datum::Bool(true) });
        }
    };
    if first_end.is_null() {
        return Ok(Datum::Null);
    }
    Ok(Datum::Bool(compare(&second_start, &first_end).is_lt()))
}
