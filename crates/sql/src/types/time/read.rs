//! Dates and times from text.

use super::calendar::{US_PER_DAY, US_PER_SECOND};
use super::parts::{Displacement, Parts, Special};
use super::words::Fault;
use super::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, INFINITY, NEGATIVE_INFINITY, check_date, check_timestamp,
};
use crate::types::Style;
use crate::{SqlError, SqlState};

/// Reads a date.
pub fn date(text: &str, style: &Style) -> Result<i32, SqlError> {
    let parts = Parts::read(text, style, false).map_err(|fault| fault.of("date", text))?;
    match parts.special {
        Some(Special::Now) => {
            let local = super::to_local(style.now_us, &style.zone).unwrap_or(0);
            return Ok(i32::try_from(local.div_euclid(US_PER_DAY)).unwrap_or(0));
        }
        Some(Special::Epoch) => return Ok(-10_957),
        Some(Special::Infinity(true)) => return Ok(DATE_INFINITY),
        Some(Special::Infinity(false)) => return Ok(DATE_NEGATIVE_INFINITY),
        None => {}
    }
    if !parts.has_date() {
        return Err(Fault::Format.of("date", text));
    }
    check_date(parts.days()).ok_or_else(|| {
        SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""))
    })
}

/// Reads a timestamp; `zoned` if it is one with time zone.
pub fn timestamp(text: &str, style: &Style, zoned: bool) -> Result<i64, SqlError> {
    let name = if zoned { "timestamp with time zone" } else { "timestamp" };
    let parts = Parts::read(text, style, false).map_err(|fault| fault.of(name, text))?;
    let out_of_range =
        || SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("timestamp out of range: \"{text}\""));
    match parts.special {
        Some(Special::Now) if zoned => return Ok(style.now_us),
        Some(Special::Now) => return super::to_local(style.now_us, &style.zone).ok_or_else(out_of_range),
        Some(Special::Epoch) => return Ok(-10_957 * US_PER_DAY),
        Some(Special::Infinity(true)) => return Ok(INFINITY),
        Some(Special::Infinity(false)) => return Ok(NEGATIVE_INFINITY),
        None => {}
    }
    if !parts.has_date() {
        return Err(Fault::Format.of(name, text));
    }
    let local = parts.days().checked_mul(US_PER_DAY).and_then(|us| us.checked_add(parts.time_us));
    let local = local.ok_or_else(out_of_range)?;
    if !zoned {
        return check_timestamp(local).ok_or_else(out_of_range);
    }
    let east_s = match &parts.zone {
        Some(Displacement::East(east_s)) => *east_s,
        Some(Displacement::Named(zone)) => zone.at_local(local),
        None => style.zone.at_local(local),
    };
    local.checked_sub(i64::from(east_s) * US_PER_SECOND).and_then(check_timestamp).ok_or_else(out_of_range)
}

/// Reads a time of day; `zoned` if it is one with time zone, which is in seconds west of Greenwich.
pub fn time(text: &str, style: &Style, zoned: bool) -> Result<(i64, i32), SqlError> {
    let name = if zoned { "time with time zone" } else { "time" };
    let parts = Parts::read(text, style, true).map_err(|fault| fault.of(name, text))?;
    let today = || super::to_local(style.now_us, &style.zone).unwrap_or(0).div_euclid(US_PER_DAY);
    match parts.special {
        Some(Special::Now) => {
            let local = super::to_local(style.now_us, &style.zone).unwrap_or(0);
            return Ok((local.rem_euclid(US_PER_DAY), -style.zone.at(style.now_us).0));
        }
        Some(_) => return Err(Fault::Format.of(name, text)),
        None => {}
    }
    if !parts.has_time() {
        return Err(Fault::Format.of(name, text));
    }
    let day = if parts.has_date() { parts.days() } else { today() };
    let local = day.saturating_mul(US_PER_DAY).saturating_add(parts.time_us);
    let east_s = match &parts.zone {
        Some(Displacement::East(east_s)) => *east_s,
        Some(Displacement::Named(zone)) => zone.at_local(local),
        None => style.zone.at_local(local),
    };
    Ok((parts.time_us, -east_s))
}
