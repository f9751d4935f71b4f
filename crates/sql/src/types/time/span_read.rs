//! Intervals from text.

use super::calendar::{US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND};
use super::fields::{Field, Kind, split};
use super::span::{Interval, range};
use crate::types::{IntervalForm, Style};
use crate::{SqlError, SqlState};

impl Interval {
    /// Reads an interval; the modifier says what a number without a unit is.
    pub fn parse(text: &str, modifier: i32, style: &Style) -> Result<Interval, SqlError> {
        let kept = if modifier < 0 { range::FULL } else { (modifier >> 16) & 0x7fff };
        let words = |word: &str| unit(word).is_some() || word == "ago";
        let parsed = split(text, words).ok_or(Fault::Format).and_then(|fields| read(&fields, kept, style));
        let parsed = match parsed {
            Err(Fault::Format) if text.starts_with('P') => iso(text),
            other => other,
        };
        match parsed {
            Ok(interval) => Ok(interval.fit(modifier)),
            Err(Fault::Format) => Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type interval: \"{text}\""),
            )),
            Err(Fault::Field) => Err(SqlError::new(
                SqlState::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            )),
        }
    }
}

/// What a number at the end without a unit is.
fn last_unit(kept: i32) -> Unit {
    match kept {
        range::YEAR => Unit::Year,
        k if k == range::MONTH || k == range::YEAR | range::MONTH => Unit::Month,
        range::DAY => Unit::Day,
        k if k == range::HOUR || k == range::DAY | range::HOUR => Unit::Hour,
        k if k & range::MINUTE != 0 && k & range::SECOND == 0 => Unit::Minute,
        _ => Unit::Second,
    }
}

/// Reads the fields from the last to the first, because units come after their numbers.
fn read(fields: &[Field], kept: i32, style: &Style) -> Result<Interval, Fault> {
    let mut sum = Sum::default();
    let mut unit_of_next: Option<Unit> = None;
    let mut seen: Vec<Unit> = Vec::new();
    let mut ago = false;
    let mut found = false;
    // In the SQL standard's style a sign at the beginning holds for all that has none.
    let leading = style.interval_form == IntervalForm::SqlStandard
        && fields.first().is_some_and(|field| field.text.starts_with('-'))
        && !fields.iter().skip(1).any(|field| field.text.starts_with(['+', '-']));
    for field in fields.iter().rev() {
        let text = field.text.as_str();
        let negative = text.starts_with('-') || leading;
        match field.kind {
            Kind::Word | Kind::Special => match text {
                "ago" => ago = true,
                _ => unit_of_next = Some(unit(text).ok_or(Fault::Format)?),
            },
            Kind::Time => {
                let us = time_us(text, kept)?;
                sum.us = sum.us.checked_add(if leading { -us } else { us }).ok_or(Fault::Field)?;
                mark(&mut seen, &[Unit::Hour, Unit::Minute, Unit::Second])?;
                unit_of_next = Some(Unit::Day);
                found = true;
            }
            Kind::Zone if text.contains(':') => {
                let us = time_us(text.get(1..).unwrap_or_default(), kept)?;
                sum.us = sum.us.checked_add(if negative { -us } else { us }).ok_or(Fault::Field)?;
                mark(&mut seen, &[Unit::Hour, Unit::Minute, Unit::Second])?;
                unit_of_next = Some(Unit::Day);
                found = true;
            }
            Kind::Zone | Kind::Date | Kind::Number => {
                let unit = unit_of_next.unwrap_or_else(|| last_unit(kept));
                let body = text.trim_start_matches(['+', '-']);
                let sign = if negative { -1 } else { 1 };
                let (unit, value, fraction) = match body.split_once('-') {
                    Some((years, months)) => {
                        let (years, months) = (whole(years)?, whole(months)?);
                        if months >= 12 {
                            return Err(Fault::Field);
                        }
                        (
                            Unit::Month,
                            years
                                .checked_mul(12)
                                .and_then(|value| value.checked_add(months))
                                .ok_or(Fault::Field)?,
                            0.0,
                        )
                    }
                    None => match body.split_once('.') {
                        Some((value, digits)) => {
                            let fraction =
                                format!("0.{digits}0").parse::<f64>().map_err(|_| Fault::Format)?;
                            let value = if value.is_empty() { 0 } else { whole(value)? };
                            (unit, value, fraction)
                        }
                        None => (unit, whole(body)?, 0.0),
                    },
                };
                mark(&mut seen, &[unit])?;
                sum.add(unit, sign * value, sign as f64 * fraction)?;
                unit_of_next = Some(unit);
                found = true;
            }
        }
    }
    if !found {
        return Err(Fault::Format);
    }
    let interval = sum.finish()?;
    if ago { interval.negate().ok_or(Fault::Field) } else { Ok(interval) }
}

fn mark(seen: &mut Vec<Unit>, units: &[Unit]) -> Result<(), Fault> {
    for unit in units {
        if seen.contains(unit) {
            return Err(Fault::Format);
        }
        seen.push(*unit);
    }
    Ok(())
}

fn whole(text: &str) -> Result<i64, Fault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    text.parse::<i64>().map_err(|_| Fault::Field)
}

/// `04:05:06.7`; with two parts hours and minutes, unless the qualifier says otherwise.
fn time_us(text: &str, kept: i32) -> Result<i64, Fault> {
    let parts: Vec<&str> = text.split(':').collect();
    let short = parts.len() == 2;
    let minutes_first = short && (text.contains('.') || kept == range::MINUTE | range::SECOND);
    let (hour, minute, second) = match parts.as_slice() {
        [minute, second] if minutes_first => ("0", *minute, *second),
        [hour, minute] => (*hour, *minute, "0"),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return Err(Fault::Format),
    };
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let fraction = format!("0.{fraction}0").parse::<f64>().map_err(|_| Fault::Format)?;
    let (hour, minute, second) = (whole(hour)?, whole(minute)?, whole(second)?);
    if minute > 59 && !minutes_first || second > 60 {
        return Err(Fault::Field);
    }
    let us = hour.checked_mul(US_PER_HOUR).and_then(|us| us.checked_add(minute.checked_mul(US_PER_MINUTE)?));
    let us = us.and_then(|us| us.checked_add(second * US_PER_SECOND)).ok_or(Fault::Field)?;
    us.checked_add((fraction * 1e6).round_ties_even() as i64).ok_or(Fault::Field)
}

/// `P1Y2M3DT4H5M6S`, and `P0001-02-03T04:05:06`.
fn iso(text: &str) -> Result<Interval, Fault> {
    let body = text.strip_prefix('P').filter(|body| !body.is_empty()).ok_or(Fault::Format)?;
    let (date, time) = match body.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (body, None),
    };
    let mut sum = Sum::default();
    let alternative = |part: &str, separator| part.get(1..).is_some_and(|rest| rest.contains(separator));
    if alternative(date, '-') && !date.contains(|c: char| c.is_ascii_alphabetic()) {
        let mut parts = date.splitn(3, '-');
        for unit in [Unit::Year, Unit::Month, Unit::Day] {
            let (value, fraction) = iso_number(parts.next().unwrap_or("0"))?;
            sum.add(unit, value, fraction)?;
        }
    } else {
        iso_units(date, false, &mut sum)?;
    }
    if let Some(time) = time {
        if alternative(time, ':') {
            let mut parts = time.splitn(3, ':');
            for unit in [Unit::Hour, Unit::Minute, Unit::Second] {
                let (value, fraction) = iso_number(parts.next().unwrap_or("0"))?;
                sum.add(unit, value, fraction)?;
            }
        } else {
            iso_units(time, true, &mut sum)?;
        }
    }
    sum.finish()
}

fn iso_units(mut text: &str, is_time: bool, sum: &mut Sum) -> Result<(), Fault> {
    while !text.is_empty() {
        let end = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(Fault::Format)?;
        let (number, rest) = text.split_at(end);
        let (value, fraction) = iso_number(number)?;
        let unit = match (rest.chars().next(), is_time) {
            (Some('Y'), false) => Unit::Year,
            (Some('M'), false) => Unit::Month,
            (Some('W'), false) => Unit::Week,
            (Some('D'), false) => Unit::Day,
            (Some('H'), true) => Unit::Hour,
            (Some('M'), true) => Unit::Minute,
            (Some('S'), true) => Unit::Second,
            _ => return Err(Fault::Format),
        };
        sum.add(unit, value, fraction)?;
        text = rest.get(1..).unwrap_or_default();
    }
    Ok(())
}

fn iso_number(text: &str) -> Result<(i64, f64), Fault> {
    let value: f64 = text.parse().map_err(|_| Fault::Format)?;
    if value.is_nan() || value.abs() > 1e15 {
        return Err(Fault::Field);
    }
    Ok((value.trunc() as i64, value.fract()))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
}

fn unit(word: &str) -> Option<Unit> {
    // PostgreSQL looks at ten characters.
    let word = word.get(..10).unwrap_or(word);
    Some(match word {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "qtr" | "quarter" => Unit::Quarter,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
        "dec" | "decs" | "decade" | "decades" => Unit::Decade,
        "c" | "cent" | "century" | "centuries" => Unit::Century,
        "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
        _ => return None,
    })
}

enum Fault {
    Format,
    Field,
}

/// An interval that is being added up.
#[derive(Default)]
struct Sum {
    years: i64,
    months: i64,
    days: i64,
    us: i64,
}

impl Sum {
    /// Adds so many units, with a fraction that goes to smaller ones.
    fn add(&mut self, unit: Unit, value: i64, fraction: f64) -> Result<(), Fault> {
        let over = |value: Option<i64>| value.ok_or(Fault::Field);
        let narrow = |sum: Option<i64>| {
            over(sum).and_then(|sum| i32::try_from(sum).map(i64::from).map_err(|_| Fault::Field))
        };
        let us = |length: i64, sum: i64, fraction: f64| {
            let part = fraction * length as f64;
            let whole = part.trunc();
            let rest = part - whole;
            let rounded = whole as i64 + i64::from(rest > 0.5) - i64::from(rest < -0.5);
            over(
                value
                    .checked_mul(length)
                    .and_then(|us| us.checked_add(sum))
                    .and_then(|us| us.checked_add(rounded)),
            )
        };
        match unit {
            Unit::Microsecond => self.us = us(1, self.us, fraction)?,
            Unit::Millisecond => self.us = us(1000, self.us, fraction)?,
            Unit::Second => self.us = us(US_PER_SECOND, self.us, fraction)?,
            Unit::Minute => self.us = us(US_PER_MINUTE, self.us, fraction)?,
            Unit::Hour => self.us = us(US_PER_HOUR, self.us, fraction)?,
            Unit::Day | Unit::Week => {
                let length = if unit == Unit::Week { 7 } else { 1 };
                self.days = narrow(value.checked_mul(length).and_then(|days| days.checked_add(self.days)))?;
                self.add_days(fraction, length as f64)?;
            }
            Unit::Month | Unit::Quarter => {
                let length = if unit == Unit::Quarter { 3 } else { 1 };
                self.months =
                    narrow(value.checked_mul(length).and_then(|months| months.checked_add(self.months)))?;
                self.add_days(fraction, 30.0 * length as f64)?;
            }
            Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
                let length = match unit {
                    Unit::Year => 1,
                    Unit::Decade => 10,
                    Unit::Century => 100,
                    _ => 1000,
                };
                self.years =
                    narrow(value.checked_mul(length).and_then(|years| years.checked_add(self.years)))?;
                let months = (fraction * length as f64 * 12.0).round_ties_even() as i64;
                self.months = narrow(self.months.checked_add(months))?;
            }
        }
        Ok(())
    }

    fn add_days(&mut self, fraction: f64, length: f64) -> Result<(), Fault> {
        let days = fraction * length;
        self.days = self.days.checked_add(days.trunc() as i64).ok_or(Fault::Field)?;
        let us = days.fract() * US_PER_DAY as f64;
        let rest = us.fract();
        let rounded = us.trunc() as i64 + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.us = self.us.checked_add(rounded).ok_or(Fault::Field)?;
        Ok(())
    }

    fn finish(self) -> Result<Interval, Fault> {
        let months = self.years * 12 + self.months;
        let narrow = |value: i64| i32::try_from(value).map_err(|_| Fault::Field);
        Ok(Interval { months: narrow(months)?, days: narrow(self.days)?, us: self.us })
    }
}
