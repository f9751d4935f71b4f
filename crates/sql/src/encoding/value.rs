//! Values as bytes that need no order: what rows and descriptors have of them.
//!
//! | type | bytes |
//! |---|---|
//! | strings, `json`, `bytea` | the bytes |
//! | `numeric` up to 38 digits | 2: the scale; the mantissa, signed, in as few bytes as it needs |
//! | other `numeric` | `40 00`; PostgreSQL's binary form |
//! | arrays | 1: how many dimensions; of each 4: length, 4: lower bound; the elements, sized |
//! | records | 2: how many fields; of each its type, 4, and its value, sized |
//! | sized | 4: the length; the value. The length of NULL is `ff ff ff ff` |
//! | all others | PostgreSQL's binary form, which has a fixed width |
//!
//! Numbers are big endian. A value does not say where it ends: the reader has exactly its bytes.

use std::sync::Arc;

use super::bytes::{Bytes, corrupted, mismatched, utf8};
use crate::stack::Stack;
use crate::types::array::DIMENSIONS_MAX;
use crate::types::{Array, Datum, Interval, Numeric, Oid, numeric, time};
use crate::{SqlError, SqlState};

/// What stands for the scale of a numeric whose mantissa does not fit, or that is no number.
const LONG: u16 = 0x4000;
/// The length that NULL has within an array or a record.
const NULL_LENGTH: u32 = u32::MAX;

/// Bytes of any value of this type; none if they vary.
pub fn width(oid: Oid) -> Option<usize> {
    Some(match oid {
        Oid::BOOL | Oid::CHAR => 1,
        Oid::INT2 => 2,
        Oid::INT4 | Oid::FLOAT4 | Oid::DATE => 4,
        Oid::INT8 | Oid::FLOAT8 | Oid::TIME | Oid::TIMESTAMP | Oid::TIMESTAMPTZ => 8,
        Oid::TIMETZ => 12,
        Oid::INTERVAL | Oid::UUID => 16,
        _ if is_oid(oid) => 4,
        _ => return None,
    })
}

/// Whether values of this type are object identifiers.
pub fn is_oid(oid: Oid) -> bool {
    matches!(
        oid,
        Oid::OID
            | Oid::REGPROC
            | Oid::REGPROCEDURE
            | Oid::REGOPER
            | Oid::REGCLASS
            | Oid::REGTYPE
            | Oid::REGNAMESPACE
            | Oid::REGROLE
    )
}

fn is_text(oid: Oid) -> bool {
    matches!(
        oid,
        Oid::TEXT
            | Oid::VARCHAR
            | Oid::NAME
            | Oid::JSON
            | Oid::JSONB
            | Oid::UNKNOWN
            | Oid::CSTRING
            | Oid::VOID
    )
}

/// Appends a value, which is not NULL.
pub fn put(oid: Oid, datum: &Datum, out: &mut Vec<u8>) -> Result<(), SqlError> {
    put_within(oid, datum, Stack::begin(), out)
}

fn put_within(oid: Oid, datum: &Datum, stack: Stack, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match (oid, datum) {
        (Oid::BOOL, Datum::Bool(value)) => out.push(u8::from(*value)),
        (Oid::CHAR, Datum::Char(value)) => out.push(*value),
        (Oid::INT2, Datum::Int2(value)) => out.extend(value.to_be_bytes()),
        (Oid::INT4, Datum::Int4(value)) | (Oid::DATE, Datum::Date(value)) => out.extend(value.to_be_bytes()),
        (Oid::INT8, Datum::Int8(value))
        | (Oid::TIME, Datum::Time(value))
        | (Oid::TIMESTAMP, Datum::Timestamp(value))
        | (Oid::TIMESTAMPTZ, Datum::TimestampTz(value)) => out.extend(value.to_be_bytes()),
        (Oid::FLOAT4, Datum::Float4(value)) => out.extend(value.to_be_bytes()),
        (Oid::FLOAT8, Datum::Float8(value)) => out.extend(value.to_be_bytes()),
        (Oid::TIMETZ, Datum::TimeTz(us, west_s)) => {
            out.extend(us.to_be_bytes());
            out.extend(west_s.to_be_bytes());
        }
        (Oid::INTERVAL, Datum::Interval(interval)) => {
            out.extend(interval.us.to_be_bytes());
            out.extend(interval.days.to_be_bytes());
            out.extend(interval.months.to_be_bytes());
        }
        (Oid::UUID, Datum::Uuid(value)) => out.extend(value),
        (Oid::NUMERIC, Datum::Numeric(number)) => put_numeric(number, out),
        (Oid::BYTEA, Datum::Bytes(bytes)) => out.extend_from_slice(bytes),
        (Oid::RECORD, Datum::Record(fields)) => put_record(fields, stack, out)?,
        (Oid::BPCHAR, Datum::Bpchar(text)) => out.extend_from_slice(text.as_bytes()),
        (_, Datum::Text(text)) if is_text(oid) => out.extend_from_slice(text.as_bytes()),
        (_, Datum::Oid(value)) if is_oid(oid) => out.extend(value.to_be_bytes()),
        (_, Datum::Array(array)) => put_array(oid, array, stack, out)?,
        _ => return Err(mismatched(oid)),
    }
    Ok(())
}

/// Reads a value, which has exactly these bytes.
pub fn take(oid: Oid, bytes: &[u8]) -> Result<Datum, SqlError> {
    take_within(oid, bytes, Stack::begin())
}

fn take_within(oid: Oid, bytes: &[u8], stack: Stack) -> Result<Datum, SqlError> {
    let mut rest = Bytes::new(bytes);
    let value = match oid {
        Oid::BOOL => Datum::Bool(rest.u8()? != 0),
        Oid::CHAR => Datum::Char(rest.u8()?),
        Oid::INT2 => Datum::Int2(rest.u16()?.cast_signed()),
        Oid::INT4 => Datum::Int4(rest.i32()?),
        Oid::INT8 => Datum::Int8(rest.i64()?),
        Oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(rest.take()?)),
        Oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(rest.take()?)),
        Oid::DATE => Datum::Date(rest.i32()?),
        Oid::TIME => Datum::Time(rest.i64()?),
        Oid::TIMESTAMP => Datum::Timestamp(rest.i64()?),
        Oid::TIMESTAMPTZ => Datum::TimestampTz(rest.i64()?),
        Oid::TIMETZ => Datum::TimeTz(rest.i64()?, rest.i32()?),
        Oid::INTERVAL => {
            let (us, days) = (rest.i64()?, rest.i32()?);
            Datum::Interval(Interval { us, days, months: rest.i32()? })
        }
        Oid::UUID => Datum::Uuid(rest.take()?),
        Oid::NUMERIC => return Ok(Datum::Numeric(take_numeric(rest)?)),
        Oid::BYTEA => return Ok(Datum::Bytes(bytes.into())),
        Oid::RECORD => take_record(&mut rest, stack)?,
        Oid::BPCHAR => return Ok(Datum::Bpchar(utf8(bytes)?.into())),
        _ if is_text(oid) => return Ok(Datum::text(utf8(bytes)?)),
        _ if is_oid(oid) => Datum::Oid(rest.u32()?),
        _ => match oid.element() {
            Some(element) => take_array(element, &mut rest, stack)?,
            None => return Err(corrupted(format!("There is a value of the unknown type {}.", oid.0))),
        },
    };
    rest.end()?;
    in_range(value)
}

/// A date or a time that is one; any other value.
pub fn in_range(value: Datum) -> Result<Datum, SqlError> {
    let is_time = |us: i64| (0..=86_400_000_000).contains(&us);
    let fine = match &value {
        Datum::Date(days) => !time::date_is_finite(*days) || time::check_date(i64::from(*days)).is_some(),
        Datum::Time(us) => is_time(*us),
        Datum::TimeTz(us, west_s) => is_time(*us) && (-57_599..=57_599).contains(west_s),
        Datum::Timestamp(us) | Datum::TimestampTz(us) => {
            !time::is_finite(*us) || time::check_timestamp(*us).is_some()
        }
        _ => true,
    };
    if fine { Ok(value) } else { Err(corrupted("A date or a time is out of range.")) }
}

fn put_numeric(number: &Numeric, out: &mut Vec<u8>) {
    let Numeric::Small(mantissa, scale) = number else {
        out.extend(LONG.to_be_bytes());
        numeric::to_base_10000(number, out);
        return;
    };
    out.extend(scale.to_be_bytes());
    // Bytes in front that only repeat the sign are left out.
    let sign_bits = if *mantissa < 0 { mantissa.leading_ones() } else { mantissa.leading_zeros() };
    let redundant = usize::try_from((sign_bits - 1) / 8).unwrap_or(0);
    out.extend(mantissa.to_be_bytes().iter().skip(redundant));
}

fn take_numeric(mut rest: Bytes<'_>) -> Result<Numeric, SqlError> {
    let foreign = || corrupted("No numeric in a row has these bytes.");
    let scale = rest.u16()?;
    if scale == LONG {
        return numeric::from_base_10000(rest.rest()).map_err(|_| foreign());
    }
    let digits = rest.rest();
    if i32::from(scale) > numeric::SCALE_MAX || digits.len() > 16 {
        return Err(foreign());
    }
    let first = digits.first().ok_or_else(foreign)?.cast_signed();
    let mantissa = digits.iter().fold(i128::from(first >> 7), |sum, byte| sum << 8 | i128::from(*byte));
    Ok(Numeric::Small(mantissa, scale))
}

fn put_array(oid: Oid, array: &Array, stack: Stack, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let element = oid.element().ok_or_else(|| mismatched(oid))?;
    out.push(u8::try_from(array.dimensions.len()).map_err(|_| mismatched(oid))?);
    for (length, lower) in &array.dimensions {
        out.extend(length.to_be_bytes());
        out.extend(lower.to_be_bytes());
    }
    for datum in &array.elements {
        put_sized(element, datum, stack, out)?;
    }
    Ok(())
}

fn take_array(element: Oid, rest: &mut Bytes<'_>, stack: Stack) -> Result<Datum, SqlError> {
    let mut dimensions = Vec::new();
    for _ in 0..rest.u8()? {
        dimensions.push((rest.i32()?, rest.i32()?));
    }
    let count = elements(&dimensions)?;
    // Each element has at least its length.
    if count > rest.rest().len() / 4 {
        return Err(misshapen());
    }
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(take_sized(element, rest, stack)?);
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, elements })))
}

/// How many elements an array of these dimensions has; an error if no array has them.
pub fn elements(dimensions: &[(i32, i32)]) -> Result<usize, SqlError> {
    if dimensions.is_empty() {
        return Ok(0);
    }
    if dimensions.len() > DIMENSIONS_MAX {
        return Err(misshapen());
    }
    let product = dimensions.iter().try_fold(1usize, |product, (length, lower)| {
        lower.checked_add(*length)?;
        product.checked_mul(usize::try_from(*length).ok()?)
    });
    product.filter(|product| *product > 0).ok_or_else(misshapen)
}

/// The error of an array whose elements are not as many as its dimensions say.
pub fn misshapen() -> SqlError {
    corrupted("The elements of an array do not fit its dimensions.")
}

fn put_record(fields: &[(Oid, Datum)], stack: Stack, out: &mut Vec<u8>) -> Result<(), SqlError> {
    stack.check()?;
    let count = u16::try_from(fields.len()).map_err(|_| too_long())?;
    out.extend(count.to_be_bytes());
    for (oid, datum) in fields {
        out.extend(oid.0.to_be_bytes());
        put_sized(*oid, datum, stack, out)?;
    }
    Ok(())
}

fn take_record(rest: &mut Bytes<'_>, stack: Stack) -> Result<Datum, SqlError> {
    stack.check()?;
    let mut fields = Vec::new();
    for _ in 0..rest.u16()? {
        let oid = Oid(rest.u32()?);
        fields.push((oid, take_sized(oid, rest, stack)?));
    }
    Ok(Datum::Record(fields.into()))
}

fn put_sized(oid: Oid, datum: &Datum, stack: Stack, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if datum.is_null() {
        out.extend(NULL_LENGTH.to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend([0; 4]);
    put_within(oid, datum, stack, out)?;
    let length = u32::try_from(out.len() - start - 4).ok().filter(|length| *length != NULL_LENGTH);
    let length = length.ok_or_else(too_long)?;
    out.iter_mut().skip(start).zip(length.to_be_bytes()).for_each(|(place, byte)| *place = byte);
    Ok(())
}

fn take_sized(oid: Oid, rest: &mut Bytes<'_>, stack: Stack) -> Result<Datum, SqlError> {
    let length = rest.u32()?;
    if length == NULL_LENGTH {
        return Ok(Datum::Null);
    }
    let length = usize::try_from(length).map_err(|_| too_long())?;
    take_within(oid, rest.slice(length)?, stack)
}

/// The error of a value or a row that is too long to be stored.
pub fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a value is too long to be stored in a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numeric_takes_as_few_bytes_as_its_mantissa_needs() {
        let bytes = |text: &str| {
            let mut out = Vec::new();
            put(Oid::NUMERIC, &Datum::Numeric(Numeric::parse(text).expect("a number")), &mut out)
                .expect("it has a form");
            out
        };
        assert_eq!(bytes("-1.28"), [0, 2, 0x80]);
        assert_eq!(bytes("128"), [0, 0, 0, 0x80]);
        assert_eq!(bytes("0"), [0, 0, 0]);
        assert_eq!(bytes("NaN").len(), 10);
        assert!(take(Oid::NUMERIC, &[0, 0]).is_err());
    }

    #[test]
    fn records_that_nest_too_deeply_are_errors() {
        let level = |inner_bytes: u32| {
            [&[0, 1][..], &Oid::RECORD.0.to_be_bytes(), &inner_bytes.to_be_bytes()].concat()
        };
        let mut bytes: Vec<u8> = (0..20_000).rev().flat_map(|inner| level(10 * inner + 2)).collect();
        bytes.extend([0, 0]);
        let error = take(Oid::RECORD, &bytes).expect_err("it is too deep");
        assert_eq!(error.state, SqlState::STATEMENT_TOO_COMPLEX);
    }

    #[test]
    fn arrays_whose_elements_do_not_fit_are_errors() {
        let array = |dimensions: &[(i32, i32)], elements: &[u8]| {
            let mut bytes = vec![u8::try_from(dimensions.len()).expect("few")];
            for (length, lower) in dimensions {
                bytes.extend([length.to_be_bytes(), lower.to_be_bytes()].concat());
            }
            take(Oid::INT4_ARRAY, &[&bytes, elements].concat()).map_err(|error| error.state)
        };
        let one = [0, 0, 0, 4, 0, 0, 0, 9];
        assert_eq!(array(&[(1, 1)], &one), Ok(Array::flat(Oid::INT4, vec![Datum::Int4(9)])));
        for dimensions in
            [&[(2, 1)][..], &[(0, 1)], &[(-1, 1)], &[(1, i32::MAX)], &[(i32::MAX, 0); 4], &[(1, 1); 7]]
        {
            assert_eq!(array(dimensions, &one), Err(SqlState::DATA_CORRUPTED));
        }
    }
}
