//! Arithmetic of dates, times and intervals.

use super::parts::Fields;
use super::{Call, Outcome, confused, refuse};
use crate::types::Datum;
use crate::types::compare::compare;
use crate::types::time::calendar::{self, US_PER_DAY};
use crate::types::time::{self, Interval, Zone, out_of_range};
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
    let by = call.interval(1)?;
    match call.at(0) {
        // Of a time of day only the microseconds count.
        Datum::Time(_) | Datum::TimeTz(..) => {
            shift(call, Interval { us: -(by.us % US_PER_DAY), ..Interval::default() }, 0)
        }
        // What has no opposite stays as it is, and takes the date out of range.
        _ => {
            let by = Interval {
                months: by.months.wrapping_neg(),
                days: by.days.wrapping_neg(),
                us: by.us.wrapping_neg(),
            };
            shift(call, by, 0)
        }
    }
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
    // The infinite future is the last microsecond there is, as PostgreSQL has it here.
    if later == time::NEGATIVE_INFINITY || earlier == time::NEGATIVE_INFINITY {
        return Err(out_of_range("timestamp"));
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
