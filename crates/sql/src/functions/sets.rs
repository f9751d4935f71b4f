//! Functions that return sets.
//!
//! Rows come one by one: `generate_series(1, 1000000000)` takes no memory.

use std::cmp::Ordering;

use super::{Call, Rows, composing, dates, refuse};
use crate::types::{Datum, Numeric, time};
use crate::{SqlError, SqlState};

/// The rows of values that are there.
pub fn of(values: Vec<Datum>) -> Rows {
    let mut values = values.into_iter();
    Box::new(move || Ok(values.next()))
}

fn zero_step<T>() -> Result<T, SqlError> {
    refuse(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

/// `generate_series()` of integers.
pub fn integers(call: &Call<'_>) -> Result<Rows, SqlError> {
    let (from, to) = (call.integer(0)?, call.integer(1)?);
    let step = if call.count() > 2 { call.integer(2)? } else { 1 };
    if step == 0 {
        return zero_step();
    }
    let wide = matches!(call.at(0), Datum::Int8(_));
    let mut next = Some(from);
    Ok(Box::new(move || {
        let Some(value) = next.filter(|value| if step > 0 { *value <= to } else { *value >= to }) else {
            return Ok(None);
        };
        next = value.checked_add(step);
        Ok(Some(if wide { Datum::Int8(value) } else { Datum::Int4(i32::try_from(value).unwrap_or(0)) }))
    }))
}

/// `generate_series()` of numerics.
pub fn numerics(call: &Call<'_>) -> Result<Rows, SqlError> {
    let (from, to) = (call.numeric(0)?.clone(), call.numeric(1)?.clone());
    let step = if call.count() > 2 { call.numeric(2)?.clone() } else { Numeric::ONE };
    for (number, what) in [(&from, "start value"), (&to, "stop value"), (&step, "step size")] {
        if !number.is_finite() {
            let kind = if matches!(number, Numeric::NaN) { "NaN" } else { "infinity" };
            return refuse(SqlState::INVALID_PARAMETER_VALUE, format!("{what} cannot be {kind}"));
        }
    }
    if step.is_zero() {
        return zero_step();
    }
    let beyond = if step.is_negative() { Ordering::Less } else { Ordering::Greater };
    let mut next = from;
    Ok(Box::new(move || {
        if next.compare(&to) == beyond {
            return Ok(None);
        }
        let after = next.add(&step)?;
        Ok(Some(Datum::Numeric(std::mem::replace(&mut next, after))))
    }))
}

/// `generate_series()` of timestamps.
pub fn timestamps(call: &Call<'_>) -> Result<Rows, SqlError> {
    let (from, to, step) = (call.us(0)?, call.us(1)?, call.interval(2)?);
    let sign = step.span_us().cmp(&0);
    if sign.is_eq() {
        return zero_step();
    }
    let zone = matches!(call.at(0), Datum::TimestampTz(_)).then(|| call.context.style.zone.clone());
    let mut next = from;
    Ok(Box::new(move || {
        if next.cmp(&to) == sign || !time::is_finite(next) {
            return Ok(None);
        }
        let after = dates::shifted(next, &step, zone.as_ref())?;
        let value = std::mem::replace(&mut next, after);
        Ok(Some(if zone.is_some() { Datum::TimestampTz(value) } else { Datum::Timestamp(value) }))
    }))
}

/// `generate_subscripts()`
pub fn subscripts(call: &Call<'_>) -> Result<Rows, SqlError> {
    let array = call.array(0)?;
    let dimension = usize::try_from(call.integer(1)? - 1).ok().and_then(|place| array.dimensions.get(place));
    let Some(&(length, lower)) = dimension else { return Ok(of(Vec::new())) };
    let reverse = call.count() > 2 && call.boolean(2)?;
    let mut place = 0;
    Ok(Box::new(move || {
        if place >= length {
            return Ok(None);
        }
        let offset = if reverse { length - 1 - place } else { place };
        place += 1;
        Ok(Some(Datum::Int4(lower.saturating_add(offset))))
    }))
}

/// `unnest()`
pub fn unnest(call: &Call<'_>) -> Result<Rows, SqlError> {
    let array = call.array(0)?.clone();
    let mut place = 0;
    Ok(Box::new(move || {
        place += 1;
        Ok(array.elements.get(place - 1).cloned())
    }))
}

/// `string_to_table()`
pub fn string_parts(call: &Call<'_>) -> Result<Rows, SqlError> {
    if call.at(0).is_null() {
        return Ok(of(Vec::new()));
    }
    Ok(of(composing::parts(call)?))
}
