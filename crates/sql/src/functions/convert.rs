//! Casts.

use super::{Call, Outcome, confused, integers, out_of_range};
use crate::types::time::{self, calendar::US_PER_DAY};
use crate::types::{Datum, Numeric, Oid, scalar};
use crate::{SqlError, SqlState};

/// To an integer: floats are rounded half to even, numerics half away from zero.
pub fn integer<T: integers::Width>(call: &Call<'_>) -> Outcome {
    let value = match call.at(0) {
        Datum::Float4(_) | Datum::Float8(_) => {
            let rounded = call.float(0)?.round_ties_even();
            // The bounds of an i64; what is within converts exactly.
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded);
            if fits { Some(rounded as i64) } else { None }
        }
        Datum::Numeric(number) => {
            if !number.is_finite() {
                let what = if matches!(number, Numeric::NaN) { "NaN" } else { "infinity" };
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot convert {what} to {}", T::NAME),
                ));
            }
            number.to_i64()
        }
        Datum::Bool(value) => Some(i64::from(*value)),
        Datum::Char(byte) => Some(i64::from(byte.cast_signed())),
        // An identifier and an integer of as many bits are the same bits.
        Datum::Oid(value) if T::BITS == 32 => Some(i64::from(value.cast_signed())),
        _ => Some(call.integer(0)?),
    };
    integers::fit::<T>(value)
}

/// To `oid`.
pub fn oid(call: &Call<'_>) -> Outcome {
    let value = call.integer(0)?;
    // A negative integer of 32 bits is taken for the bits it has.
    let value = match call.at(0) {
        Datum::Int2(value) => Some(i32::from(*value).cast_unsigned()),
        Datum::Int4(value) => Some(value.cast_unsigned()),
        _ => u32::try_from(value).ok(),
    };
    value
        .map(Datum::Oid)
        .ok_or_else(|| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range"))
}

/// To `bigint` from `oid`, and to `integer`, whose bits it is.
pub fn from_oid(call: &Call<'_>) -> Outcome {
    Ok(Datum::Int8(call.integer(0)?))
}

/// To `double precision`.
pub fn float8(call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(match call.at(0) {
        Datum::Numeric(number) => {
            let value = number.to_f64();
            if value.is_infinite() && number.is_finite() {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("\"{number}\" is out of range for type double precision"),
                ));
            }
            value
        }
        Datum::Float4(value) => f64::from(*value),
        Datum::Float8(value) => *value,
        // The nearest float.
        _ => call.integer(0)? as f64,
    }))
}

/// To `real`.
pub fn float4(call: &Call<'_>) -> Outcome {
    let refuse = |message: &str| Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    let value = match call.at(0) {
        Datum::Numeric(number) => {
            let value = number.to_string().parse::<f32>().unwrap_or_else(|_| number.to_f64() as f32);
            if number.is_finite() && (value.is_infinite() || value == 0.0 && !number.is_zero()) {
                return refuse(&format!("\"{number}\" is out of range for type real"));
            }
            value
        }
        Datum::Float8(wide) => {
            let value = *wide as f32;
            if value.is_infinite() && !wide.is_infinite() {
                return refuse("value out of range: overflow");
            }
            if value == 0.0 && *wide != 0.0 {
                return refuse("value out of range: underflow");
            }
            value
        }
        _ => call.integer(0)? as f32,
    };
    Ok(Datum::Float4(value))
}

/// To `numeric`.
pub fn numeric(call: &Call<'_>) -> Outcome {
    Ok(Datum::Numeric(match call.at(0) {
        Datum::Float8(value) => Numeric::from_float(*value, 15)?,
        Datum::Float4(value) => Numeric::from_float(f64::from(*value), 6)?,
        _ => Numeric::from(call.integer(0)?),
    }))
}

/// To `boolean` from an integer.
pub fn boolean(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(call.integer(0)? != 0))
}

/// To a string from `boolean`, which casts write in full.
pub fn bool_text(call: &Call<'_>) -> Outcome {
    Ok(Datum::string(call.result, if call.boolean(0)? { "true" } else { "false" }))
}

/// To `char(n)` from `name`.
pub fn bpchar(call: &Call<'_>) -> Outcome {
    call.text(0).cloned().map(Datum::Bpchar)
}

/// To `name`.
pub fn name(call: &Call<'_>) -> Outcome {
    let text = call.text(0)?;
    let text = if call.type_of(0) == Oid::BPCHAR { text.trim_end_matches(' ') } else { text };
    Ok(Datum::text(scalar::cut_name(text)))
}

/// To `"char"` from a string or an integer.
pub fn char(call: &Call<'_>) -> Outcome {
    match call.at(0) {
        Datum::Text(text) | Datum::Bpchar(text) => Ok(Datum::Char(text.bytes().next().unwrap_or(0))),
        _ => match i8::try_from(call.integer(0)?) {
            Ok(value) => Ok(Datum::Char(value.cast_unsigned())),
            Err(_) => Err(out_of_range("\"char\"")),
        },
    }
}

/// To a string from `"char"`.
pub fn char_text(call: &Call<'_>) -> Outcome {
    call.printed(0).map(|text| Datum::string(call.result, text))
}

/// To `date`.
pub fn date(call: &Call<'_>) -> Outcome {
    let local = match call.at(0) {
        Datum::Timestamp(us) => *us,
        Datum::TimestampTz(us) => local(*us, call)?,
        _ => return Err(confused()),
    };
    Ok(Datum::Date(match local {
        time::INFINITY => time::DATE_INFINITY,
        time::NEGATIVE_INFINITY => time::DATE_NEGATIVE_INFINITY,
        us => i32::try_from(us.div_euclid(US_PER_DAY)).map_err(|_| time::out_of_range("timestamp"))?,
    }))
}

fn local(us: i64, call: &Call<'_>) -> Result<i64, SqlError> {
    time::to_local(us, &call.context.style.zone).ok_or_else(|| time::out_of_range("timestamp"))
}

/// To `timestamp`.
pub fn timestamp(call: &Call<'_>) -> Outcome {
    Ok(Datum::Timestamp(match call.at(0) {
        Datum::Date(days) => time::midnight(*days)
            .ok_or_else(|| time::out_of_range("date out of range for timestamp").bare())?,
        Datum::TimestampTz(us) => local(*us, call)?,
        _ => match (call.at(0), call.at(1)) {
            (_, Datum::Time(of_day)) => sum(call.date(0)?, *of_day)?,
            _ => return Err(confused()),
        },
    }))
}

impl SqlError {
    /// A message that says already what is out of range.
    fn bare(mut self) -> SqlError {
        if let Some(message) = self.message.strip_suffix(" out of range") {
            self.message = message.to_owned();
        }
        self
    }
}

fn sum(days: i32, of_day: i64) -> Result<i64, SqlError> {
    let midnight = time::midnight(days).ok_or_else(|| time::out_of_range("timestamp"))?;
    if !time::is_finite(midnight) {
        return Ok(midnight);
    }
    midnight
        .checked_add(of_day)
        .and_then(time::check_timestamp)
        .ok_or_else(|| time::out_of_range("timestamp"))
}

/// To `timestamptz`.
pub fn timestamptz(call: &Call<'_>) -> Outcome {
    let zone = &call.context.style.zone;
    let moment = match call.at(0) {
        Datum::Date(days) => {
            let midnight = time::midnight(*days)
                .ok_or_else(|| time::out_of_range("date out of range for timestamp").bare())?;
            time::to_utc(midnight, zone)
        }
        Datum::Timestamp(us) => time::to_utc(*us, zone),
        _ => return Err(confused()),
    };
    moment.map(Datum::TimestampTz).ok_or_else(|| time::out_of_range("timestamp"))
}

/// `date + time`
pub fn date_and_time(call: &Call<'_>) -> Outcome {
    match (call.at(0), call.at(1)) {
        (Datum::Date(days), Datum::Time(us)) | (Datum::Time(us), Datum::Date(days)) => {
            sum(*days, *us).map(Datum::Timestamp)
        }
        (Datum::Date(days), Datum::TimeTz(us, west_s)) | (Datum::TimeTz(us, west_s), Datum::Date(days)) => {
            sum(*days, *us + i64::from(*west_s) * 1_000_000).map(Datum::TimestampTz)
        }
        _ => Err(confused()),
    }
}

/// To `time`.
pub fn time(call: &Call<'_>) -> Outcome {
    let us = match call.at(0) {
        Datum::Timestamp(us) => *us,
        Datum::TimestampTz(us) => local(*us, call)?,
        Datum::Interval(interval) => interval.us,
        Datum::TimeTz(us, _) => return Ok(Datum::Time(*us)),
        _ => return Err(confused()),
    };
    if !time::is_finite(us) {
        return Ok(Datum::Null);
    }
    Ok(Datum::Time(us.rem_euclid(US_PER_DAY)))
}

/// To `timetz`.
pub fn timetz(call: &Call<'_>) -> Outcome {
    match call.at(0) {
        Datum::Time(us) => {
            let today = local(call.context.transaction_us, call)?.div_euclid(US_PER_DAY) * US_PER_DAY;
            let east_s = call.context.style.zone.at_local(today.saturating_add(*us));
            Ok(Datum::TimeTz(*us, -east_s))
        }
        Datum::TimestampTz(us) if !time::is_finite(*us) => Ok(Datum::Null),
        Datum::TimestampTz(us) => {
            let local = local(*us, call)?;
            Ok(Datum::TimeTz(local.rem_euclid(US_PER_DAY), -call.context.style.zone.at(*us).0))
        }
        _ => Err(confused()),
    }
}

/// To `interval` from `time`.
pub fn interval(call: &Call<'_>) -> Outcome {
    Ok(Datum::Interval(time::Interval { us: call.us(0)?, ..Default::default() }))
}
