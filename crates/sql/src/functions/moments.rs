//! Dates and times made of numbers, and moved to other zones.

use super::{Call, Outcome, confused, refuse};
use crate::types::time::calendar::{self, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use crate::types::time::{self, Interval, Zone, out_of_range, words};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

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
    words::displacement(&signed).ok().map(|east_s| Zone::fixed(-east_s))
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
            format!("date field value out of range: {astronomical}-{month:02}-{day:02}"),
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
        crate::types::float::write8(seconds, -9, &mut shown);
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
