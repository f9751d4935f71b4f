//! Values as bytes that are ordered as [`compare`](crate::types::compare) orders the values, and
//! that end where they say. Equal values have equal bytes.
//!
//! | type | bytes |
//! |---|---|
//! | `boolean`, `"char"` | 1, unsigned |
//! | `smallint`, `integer`, `bigint` | 2, 4, 8, big endian, the sign bit flipped |
//! | `oid`, `regclass` and the like | 4, big endian |
//! | `real`, `double precision` | 4, 8: the sign bit flipped, of negative ones all bits |
//! | `numeric` | see [`decimal`] |
//! | `text`, `varchar`, `name`, `bytea` | the bytes, `00` as `00 ff`; `00 01` at the end |
//! | `char(n)` | the same without blanks at the end |
//! | `date` | 4: the days, as `integer` |
//! | `time`, `timestamp`, `timestamptz` | 8: the microseconds, as `bigint` |
//! | `timetz` | 12: the microseconds at Greenwich as `bigint`, the seconds west as `integer` |
//! | `interval` | 10: the microseconds, a month having 30 days, plus 2^79, big endian |
//! | `uuid` | 16 |
//! | arrays | each element, nullable; `00`; the dimensions |
//! | dimensions | a byte: how many; of each its length and its lower bound, as `integer` |
//! | nullable | `01` and the value, or `02`: NULL is above all values |
//!
//! Of floats, -0 is written as 0, and NaN, of which there is one, is above all numbers. `json`,
//! `jsonb` and records are not in keys.
//!
//! The bytes lose what does not count in comparisons: a scale, blanks, the sign of zero, how an
//! interval is divided. [`is_exact`] tells whether a value has any of that.

use std::sync::Arc;

use super::bytes::{Bytes, corrupted, mismatched, utf8};
use super::{decimal, value};
use crate::types::{Array, Datum, Interval, Oid};
use crate::{SqlError, SqlState};

/// The byte before a value that could have been NULL.
pub const PRESENT: u8 = 1;
/// The byte of NULL.
pub const NULL: u8 = 2;
/// The byte behind the last element of an array.
const END: u8 = 0;

const US_PER_SECOND: i64 = 1_000_000;
const US_PER_DAY: i128 = 86_400_000_000;
/// What is added to the microseconds of an interval.
const SPAN_BIAS: i128 = 1 << 79;

/// Bytes of any value of this type; none if they vary or if the type is not in keys.
pub fn width(oid: Oid) -> Option<u8> {
    match oid {
        Oid::INTERVAL => Some(10),
        _ if is_ordered(oid) => value::width(oid).and_then(|width| u8::try_from(width).ok()),
        _ => None,
    }
}

/// Whether values of this type can be in keys.
pub fn is_ordered(oid: Oid) -> bool {
    match oid {
        Oid::NUMERIC | Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::NAME | Oid::BYTEA => true,
        _ => value::width(oid).is_some() || oid.element().is_some_and(is_ordered),
    }
}

/// The error of a type that is not in keys.
pub fn not_ordered(oid: Oid) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("values of type {} cannot be in a key", oid.display()),
    )
}

/// Appends a value, which is not NULL.
pub fn put(oid: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match (oid, datum) {
        (Oid::BOOL, Datum::Bool(value)) => out.push(u8::from(*value)),
        (Oid::CHAR, Datum::Char(value)) => out.push(*value),
        (Oid::INT2, Datum::Int2(value)) => out.extend((value.cast_unsigned() ^ (1 << 15)).to_be_bytes()),
        (Oid::INT4, Datum::Int4(value)) | (Oid::DATE, Datum::Date(value)) => out.extend(signed4(*value)),
        (Oid::INT8, Datum::Int8(value))
        | (Oid::TIME, Datum::Time(value))
        | (Oid::TIMESTAMP, Datum::Timestamp(value))
        | (Oid::TIMESTAMPTZ, Datum::TimestampTz(value)) => out.extend(signed8(*value)),
        (Oid::FLOAT4, Datum::Float4(value)) => out.extend(float4(*value).to_be_bytes()),
        (Oid::FLOAT8, Datum::Float8(value)) => out.extend(float8(*value).to_be_bytes()),
        (Oid::NUMERIC, Datum::Numeric(number)) => decimal::put(number, out),
        (Oid::TEXT | Oid::VARCHAR | Oid::NAME, Datum::Text(text)) => put_bytes(text.as_bytes(), out),
        (Oid::BPCHAR, Datum::Bpchar(text)) => put_bytes(text.trim_end_matches(' ').as_bytes(), out),
        (Oid::BYTEA, Datum::Bytes(bytes)) => put_bytes(bytes, out),
        (Oid::TIMETZ, Datum::TimeTz(us, west_s)) => {
            out.extend(signed8(us.saturating_add(i64::from(*west_s) * US_PER_SECOND)));
            out.extend(signed4(*west_s));
        }
        (Oid::INTERVAL, Datum::Interval(interval)) => {
            let [_, _, _, _, _, _, low @ ..] = (interval.span_us() + SPAN_BIAS).to_be_bytes();
            out.extend(low);
        }
        (Oid::UUID, Datum::Uuid(value)) => out.extend(value),
        (_, Datum::Oid(value)) if value::is_oid(oid) => out.extend(value.to_be_bytes()),
        (_, Datum::Array(array)) => put_array(oid, array, out)?,
        _ if is_ordered(oid) => return Err(mismatched(oid)),
        _ => return Err(not_ordered(oid)),
    }
    Ok(())
}

/// Appends a value that may be NULL.
pub fn put_nullable(oid: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if datum.is_null() {
        out.push(NULL);
        return Ok(());
    }
    out.push(PRESENT);
    put(oid, datum, out)
}

/// Reads a value: an equal one, and the very one if that [is exact](is_exact).
pub fn take(oid: Oid, bytes: &mut Bytes<'_>) -> Result<Datum, SqlError> {
    let value = match oid {
        Oid::BOOL => match bytes.u8()? {
            flag @ 0..=1 => Datum::Bool(flag == 1),
            _ => return Err(foreign(oid)),
        },
        Oid::CHAR => Datum::Char(bytes.u8()?),
        Oid::INT2 => Datum::Int2((bytes.u16()? ^ (1 << 15)).cast_signed()),
        Oid::INT4 => Datum::Int4(take_signed4(bytes)?),
        Oid::INT8 => Datum::Int8(take_signed8(bytes)?),
        Oid::FLOAT4 => Datum::Float4(from_float4(bytes.u32()?).ok_or_else(|| foreign(oid))?),
        Oid::FLOAT8 => {
            let bits = u64::from_be_bytes(bytes.take()?);
            Datum::Float8(from_float8(bits).ok_or_else(|| foreign(oid))?)
        }
        Oid::NUMERIC => Datum::Numeric(decimal::take(bytes)?),
        Oid::TEXT | Oid::VARCHAR | Oid::NAME | Oid::BPCHAR => {
            let string = take_bytes(bytes)?;
            if oid == Oid::BPCHAR && string.ends_with(b" ") {
                return Err(foreign(oid));
            }
            Datum::string(oid, utf8(&string)?)
        }
        Oid::BYTEA => Datum::Bytes(take_bytes(bytes)?.into()),
        Oid::DATE => Datum::Date(take_signed4(bytes)?),
        Oid::TIME => Datum::Time(take_signed8(bytes)?),
        Oid::TIMESTAMP => Datum::Timestamp(take_signed8(bytes)?),
        Oid::TIMESTAMPTZ => Datum::TimestampTz(take_signed8(bytes)?),
        Oid::TIMETZ => {
            let (moment_us, west_s) = (take_signed8(bytes)?, take_signed4(bytes)?);
            let us = moment_us.checked_sub(i64::from(west_s) * US_PER_SECOND);
            Datum::TimeTz(us.ok_or_else(|| foreign(oid))?, west_s)
        }
        Oid::INTERVAL => {
            let low: [u8; 10] = bytes.take()?;
            let biased = low.iter().fold(0i128, |sum, byte| sum << 8 | i128::from(*byte));
            Datum::Interval(of_span(biased - SPAN_BIAS).ok_or_else(|| foreign(oid))?)
        }
        Oid::UUID => Datum::Uuid(bytes.take()?),
        _ if value::is_oid(oid) => Datum::Oid(bytes.u32()?),
        _ => match oid.element() {
            Some(element) if is_ordered(element) => take_array(element, bytes)?,
            _ => return Err(not_ordered(oid)),
        },
    };
    value::in_range(value)
}

/// Reads a value that may be NULL.
pub fn take_nullable(oid: Oid, bytes: &mut Bytes<'_>) -> Result<Datum, SqlError> {
    match bytes.u8()? {
        PRESENT => take(oid, bytes),
        NULL => Ok(Datum::Null),
        _ => Err(foreign(oid)),
    }
}

/// Whether reading gives the very value and not only an equal one.
pub fn is_exact(oid: Oid, datum: &Datum) -> bool {
    match datum {
        Datum::Bpchar(text) => !text.ends_with(' '),
        Datum::Float4(value) => *value != 0.0 || value.is_sign_positive(),
        Datum::Float8(value) => *value != 0.0 || value.is_sign_positive(),
        Datum::Numeric(number) => decimal::is_exact(number),
        Datum::Interval(interval) => of_span(interval.span_us()) == Some(*interval),
        Datum::Array(array) => {
            let element = oid.element().unwrap_or(array.element);
            array.elements.iter().all(|datum| is_exact(element, datum))
        }
        _ => true,
    }
}

fn foreign(oid: Oid) -> SqlError {
    corrupted(format!("No {} in a key has these bytes.", oid.display()))
}

fn signed4(value: i32) -> [u8; 4] {
    (value.cast_unsigned() ^ (1 << 31)).to_be_bytes()
}

fn signed8(value: i64) -> [u8; 8] {
    (value.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

fn take_signed4(bytes: &mut Bytes<'_>) -> Result<i32, SqlError> {
    Ok((bytes.u32()? ^ (1 << 31)).cast_signed())
}

fn take_signed8(bytes: &mut Bytes<'_>) -> Result<i64, SqlError> {
    Ok((u64::from_be_bytes(bytes.take()?) ^ (1 << 63)).cast_signed())
}

fn float4(value: f32) -> u32 {
    let bits = match value {
        _ if value.is_nan() => f32::NAN.to_bits() & u32::MAX >> 1,
        _ if value == 0.0 => 0,
        _ => value.to_bits(),
    };
    if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits }
}

fn float8(value: f64) -> u64 {
    let bits = match value {
        _ if value.is_nan() => f64::NAN.to_bits() & u64::MAX >> 1,
        _ if value == 0.0 => 0,
        _ => value.to_bits(),
    };
    if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
}

/// The float of these bits; none if they are those of -0 or of another NaN.
fn from_float4(ordered: u32) -> Option<f32> {
    let value = f32::from_bits(if ordered >> 31 == 1 { ordered ^ (1 << 31) } else { !ordered });
    (float4(value) == ordered).then_some(value)
}

fn from_float8(ordered: u64) -> Option<f64> {
    let value = f64::from_bits(if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered });
    (float8(value) == ordered).then_some(value)
}

/// Appends a string of bytes. Shorter strings come first, since the end is `00 01` and a zero byte
/// is `00 ff`.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for (place, part) in bytes.split(|byte| *byte == 0).enumerate() {
        if place > 0 {
            out.extend([0, 0xff]);
        }
        out.extend_from_slice(part);
    }
    out.extend([0, 1]);
}

/// Reads a string of bytes.
pub fn take_bytes(bytes: &mut Bytes<'_>) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    loop {
        let rest = bytes.rest();
        let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        out.extend_from_slice(bytes.slice(length)?);
        match bytes.take()? {
            [0, 0xff] => out.push(0),
            [0, 1] => return Ok(out),
            _ => return Err(foreign(Oid::BYTEA)),
        }
    }
}

/// The interval of so many microseconds with as many months, then as many days, as there are.
fn of_span(span_us: i128) -> Option<Interval> {
    // The bounds matter for spans near the ends only, whose months do not fit.
    let within = |count: i128| count.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
    let months = within(span_us / (30 * US_PER_DAY));
    let rest = span_us - months * 30 * US_PER_DAY;
    let days = within(rest / US_PER_DAY);
    Some(Interval {
        months: i32::try_from(months).ok()?,
        days: i32::try_from(days).ok()?,
        us: i64::try_from(rest - days * US_PER_DAY).ok()?,
    })
}

fn put_array(oid: Oid, array: &Array, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let element = oid.element().filter(|element| is_ordered(*element)).ok_or_else(|| not_ordered(oid))?;
    for datum in &array.elements {
        put_nullable(element, datum, out)?;
    }
    out.push(END);
    out.push(u8::try_from(array.dimensions.len()).map_err(|_| mismatched(oid))?);
    for (length, lower) in &array.dimensions {
        out.extend(signed4(*length));
        out.extend(signed4(*lower));
    }
    Ok(())
}

fn take_array(element: Oid, bytes: &mut Bytes<'_>) -> Result<Datum, SqlError> {
    let mut elements = Vec::new();
    while bytes.rest().first() != Some(&END) {
        elements.push(take_nullable(element, bytes)?);
    }
    bytes.u8()?;
    let mut dimensions = Vec::new();
    for _ in 0..bytes.u8()? {
        dimensions.push((take_signed4(bytes)?, take_signed4(bytes)?));
    }
    if value::elements(&dimensions)? != elements.len() {
        return Err(value::misshapen());
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements })))
}
