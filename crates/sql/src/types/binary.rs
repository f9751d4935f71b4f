//! The binary form of values, and the choice between it and the text form.

use std::sync::Arc;

use super::array::{Array, DIMENSIONS_MAX, too_many_dimensions};
use super::{Datum, Format, Interval, Oid, Style, numeric, scalar};
use crate::{SqlError, SqlState};

/// Reads a parameter.
pub fn decode(oid: Oid, format: Format, bytes: &[u8], style: &Style) -> Result<Datum, SqlError> {
    match format {
        Format::Text => scalar::parse(oid, utf8(bytes)?, style),
        Format::Binary => from_binary(oid, bytes),
    }
}

/// Appends a value. NULL has no form: the caller sends a length of -1.
pub fn encode(
    datum: &Datum,
    oid: Oid,
    format: Format,
    style: &Style,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match format {
        Format::Text => {
            let mut text = String::new();
            scalar::print(datum, oid, style, &mut text)?;
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
        Format::Binary => to_binary(datum, oid, out),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let bad = bytes.get(error.valid_up_to()..).unwrap_or_default();
        let shown: Vec<String> = bad
            .iter()
            .take(error.error_len().unwrap_or(bad.len()))
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
        )
    })
}

fn short() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

fn incorrect() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// What is left of a value's bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(short)?;
        self.0 = rest;
        Ok(*head)
    }

    fn i32(&mut self) -> Result<i32, SqlError> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, SqlError> {
        self.take().map(i64::from_be_bytes)
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], SqlError> {
        let (head, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(head)
    }
}

fn from_binary(oid: Oid, bytes: &[u8]) -> Result<Datum, SqlError> {
    let mut rest = Bytes(bytes);
    let range = |what: &str| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what} out of range"));
    let value = match oid {
        Oid::BOOL => Datum::Bool(rest.take::<1>()? != [0]),
        Oid::INT2 => Datum::Int2(rest.take().map(i16::from_be_bytes)?),
        Oid::INT4 => Datum::Int4(rest.i32()?),
        Oid::INT8 => Datum::Int8(rest.i64()?),
        Oid::FLOAT4 => Datum::Float4(rest.take().map(f32::from_be_bytes)?),
        Oid::FLOAT8 => Datum::Float8(rest.take().map(f64::from_be_bytes)?),
        Oid::NUMERIC => return Ok(Datum::Numeric(numeric::from_base_10000(bytes)?)),
        Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::UNKNOWN | Oid::NAME | Oid::JSON => {
            return scalar::parse(
                if oid == Oid::JSON { Oid::TEXT } else { oid },
                utf8(bytes)?,
                &Style::default(),
            );
        }
        Oid::CHAR => {
            let [byte] = rest.take()?;
            Datum::Char(byte)
        }
        Oid::BYTEA => return Ok(Datum::Bytes(bytes.into())),
        Oid::DATE => {
            let days = rest.i32()?;
            let fine =
                !super::time::date_is_finite(days) || super::time::check_date(i64::from(days)).is_some();
            Datum::Date(Some(days).filter(|_| fine).ok_or_else(|| range("date"))?)
        }
        Oid::TIME => Datum::Time(time_of_day(rest.i64()?)?),
        Oid::TIMETZ => {
            let us = time_of_day(rest.i64()?)?;
            let west_s = rest.i32()?;
            if !(-57_599..=57_599).contains(&west_s) {
                return Err(SqlError::new(
                    SqlState::INVALID_TIME_ZONE_DISPLACEMENT,
                    "time zone displacement out of range",
                ));
            }
            Datum::TimeTz(us, west_s)
        }
        Oid::TIMESTAMP => Datum::Timestamp(moment(rest.i64()?)?),
        Oid::TIMESTAMPTZ => Datum::TimestampTz(moment(rest.i64()?)?),
        Oid::INTERVAL => {
            let us = rest.i64()?;
            let days = rest.i32()?;
            Datum::Interval(Interval { us, days, months: rest.i32()? })
        }
        Oid::UUID => Datum::Uuid(rest.take()?),
        Oid::VOID => return Ok(Datum::text("")),
        _ if oid.is_array() => array_from_binary(oid, &mut rest)?,
        _ if oid.category() == b'N' || matches!(oid, Oid::XID | Oid::CID) => {
            Datum::Oid(rest.take().map(u32::from_be_bytes)?)
        }
        _ => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("no binary input function available for type {}", oid.display()),
            ));
        }
    };
    if rest.0.is_empty() { Ok(value) } else { Err(incorrect()) }
}

fn time_of_day(us: i64) -> Result<i64, SqlError> {
    if (0..=86_400_000_000).contains(&us) {
        Ok(us)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range"))
    }
}

fn moment(us: i64) -> Result<i64, SqlError> {
    if !super::time::is_finite(us) || super::time::check_timestamp(us).is_some() {
        Ok(us)
    } else {
        Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
    }
}

fn array_from_binary(oid: Oid, rest: &mut Bytes<'_>) -> Result<Datum, SqlError> {
    let count = usize::try_from(rest.i32()?).map_err(|_| {
        SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "invalid number of dimensions: -1")
    })?;
    if count > DIMENSIONS_MAX {
        return Err(too_many_dimensions(count));
    }
    if !matches!(rest.i32()?, 0 | 1) {
        return Err(SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "invalid array flags"));
    }
    let element = Oid(rest.take().map(u32::from_be_bytes)?);
    if oid.element() != Some(element) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {} ({}) instead of expected {} ({})",
                element.0,
                element.display(),
                oid.element().unwrap_or(Oid::NONE).0,
                oid.element().unwrap_or(Oid::NONE).display()
            ),
        ));
    }
    let mut dimensions = Vec::new();
    let mut total = 1usize;
    for _ in 0..count {
        let (length, lower) = (rest.i32()?, rest.i32()?);
        total = usize::try_from(length)
            .ok()
            .and_then(|length| total.checked_mul(length))
            .ok_or_else(super::array::too_large)?;
        if lower.checked_add(length).is_none() {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {lower}"),
            ));
        }
        dimensions.push((length, lower));
    }
    if total > super::array::ELEMENTS_MAX {
        return Err(super::array::too_large());
    }
    if count == 0 || total == 0 {
        return Ok(Array::flat(element, Vec::new()));
    }
    // Each element has a length of four bytes, so there are no more of them than that.
    if total > rest.0.len() / 4 {
        return Err(short());
    }
    let mut elements = Vec::with_capacity(total);
    for _ in 0..total {
        elements.push(match usize::try_from(rest.i32()?) {
            Ok(length) => from_binary(element, rest.slice(length)?)?,
            Err(_) => Datum::Null,
        });
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements })))
}

fn to_binary(datum: &Datum, oid: Oid, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => out.extend(value.to_be_bytes()),
        Datum::Int4(value) => out.extend(value.to_be_bytes()),
        Datum::Int8(value) => out.extend(value.to_be_bytes()),
        Datum::Oid(value) => out.extend(value.to_be_bytes()),
        Datum::Float4(value) => out.extend(value.to_be_bytes()),
        Datum::Float8(value) => out.extend(value.to_be_bytes()),
        Datum::Numeric(number) => numeric::to_base_10000(number, out),
        Datum::Text(text) | Datum::Bpchar(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Char(byte) => out.push(*byte),
        Datum::Bytes(bytes) => out.extend_from_slice(bytes),
        Datum::Date(days) => out.extend(days.to_be_bytes()),
        Datum::Time(us) | Datum::Timestamp(us) | Datum::TimestampTz(us) => out.extend(us.to_be_bytes()),
        Datum::TimeTz(us, west_s) => {
            out.extend(us.to_be_bytes());
            out.extend(west_s.to_be_bytes());
        }
        Datum::Interval(interval) => {
            out.extend(interval.us.to_be_bytes());
            out.extend(interval.days.to_be_bytes());
            out.extend(interval.months.to_be_bytes());
        }
        Datum::Uuid(value) => out.extend(value),
        Datum::Array(array) => {
            let count = i32::try_from(array.dimensions.len()).unwrap_or(0);
            let has_null = array.elements.iter().any(Datum::is_null);
            out.extend(count.to_be_bytes());
            out.extend(i32::from(has_null).to_be_bytes());
            out.extend(oid.element().unwrap_or(array.element).0.to_be_bytes());
            for (length, lower) in &array.dimensions {
                out.extend(length.to_be_bytes());
                out.extend(lower.to_be_bytes());
            }
            for element in &array.elements {
                sized(element, array.element, out)?;
            }
        }
        Datum::Record(fields) => {
            out.extend(i32::try_from(fields.len()).unwrap_or(0).to_be_bytes());
            for (oid, value) in fields.iter() {
                out.extend(oid.0.to_be_bytes());
                sized(value, *oid, out)?;
            }
        }
    }
    Ok(())
}

/// A value with its length in front, -1 of NULL.
fn sized(datum: &Datum, oid: Oid, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if datum.is_null() {
        out.extend((-1i32).to_be_bytes());
        return Ok(());
    }
    let mut bytes = Vec::new();
    to_binary(datum, oid, &mut bytes)?;
    let length = i32::try_from(bytes.len()).map_err(|_| super::array::too_large())?;
    out.extend(length.to_be_bytes());
    out.extend(bytes);
    Ok(())
}
