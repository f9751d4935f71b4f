//! What goes into a statement and what comes out of it.
//!
//! A [`Value`] is what our transactions have: whole numbers, money in cents, texts, dates. A
//! session writes it as the type that the statement has for it, so an INT4 here and an INT8 there
//! are no concern of a transaction. A [`Row`] is read by position and by what the reader expects;
//! the wrong kind is a [`Failure`], never a panic: it comes from outside.

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::Failure;
use super::numeric::{format_decimal, parse_decimal, read_numeric, write_numeric_body};

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number.
    Int(i64),
    /// An amount in cents.
    Cents(i64),
    /// A text.
    Text(&'a str),
    /// Seconds since 1970, UTC.
    Date(i64),
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Value::Int(number.into())
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

/// Seconds from 1970 to 2000, where PostgreSQL's time begins.
pub const EPOCH_OF_POSTGRES_S: i64 = 946_684_800;

/// Year, month, day, hour, minute and second of so many seconds since 1970, UTC.
pub fn civil(seconds: i64) -> (i64, u8, u8, u8, u8, u8) {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400) as u32);
    // Years begin in March, so that a leap day is the last of its year; eras have 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u8;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day, (second / 3600) as u8, (second / 60 % 60) as u8, (second % 60) as u8)
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (*self, ty) {
            (Value::Int(number), &Type::INT2) => out.extend_from_slice(&i16::try_from(number)?.to_be_bytes()),
            (Value::Int(number), &Type::INT4) => out.extend_from_slice(&i32::try_from(number)?.to_be_bytes()),
            (Value::Int(number), &Type::INT8) => out.extend_from_slice(&number.to_be_bytes()),
            (Value::Int(number), &Type::NUMERIC) => {
                write_numeric_body(&mut |part| out.extend_from_slice(part), number, 0);
            }
            (Value::Cents(cents), &Type::NUMERIC) => {
                write_numeric_body(&mut |part| out.extend_from_slice(part), cents, 2);
            }
            (Value::Text(text), &Type::TEXT | &Type::VARCHAR | &Type::BPCHAR) => {
                out.extend_from_slice(text.as_bytes());
            }
            (Value::Date(seconds), &Type::TIMESTAMP | &Type::TIMESTAMPTZ) => {
                out.extend_from_slice(&((seconds - EPOCH_OF_POSTGRES_S) * 1_000_000).to_be_bytes());
            }
            _ => return Err(format!("{self:?} cannot be a {ty}").into()),
        }
        Ok(IsNull::No)
    }

    accepts!(INT2, INT4, INT8, NUMERIC, TEXT, VARCHAR, BPCHAR, TIMESTAMP, TIMESTAMPTZ);
    to_sql_checked!();
}

impl From<Value<'_>> for mysql_async::Value {
    fn from(value: Value<'_>) -> mysql_async::Value {
        match value {
            Value::Int(number) => mysql_async::Value::Int(number),
            Value::Cents(cents) => mysql_async::Value::Bytes(format_decimal(cents, 2).into_bytes()),
            Value::Text(text) => mysql_async::Value::Bytes(text.as_bytes().to_vec()),
            Value::Date(seconds) => {
                let (year, month, day, hour, minute, second) = civil(seconds);
                mysql_async::Value::Date(year as u16, month, day, hour, minute, second, 0)
            }
        }
    }
}

/// A row of an answer.
#[derive(Debug)]
pub enum Row {
    /// From PostgreSQL's protocol.
    Postgres(tokio_postgres::Row),
    /// From MySQL's.
    Mysql(mysql_async::Row),
}

/// A number of any type, in units of 10^-`SCALE`.
struct Scaled<const SCALE: u32>(i64);

impl<'a, const SCALE: u32> FromSql<'a> for Scaled<SCALE> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let whole = match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            Type::INT8 => i64::from_sql(ty, raw)?,
            _ => {
                let units = read_numeric(raw, SCALE);
                return units.map(Scaled).ok_or_else(|| "not a number of this size".into());
            }
        };
        whole.checked_mul(10i64.pow(SCALE)).map(Scaled).ok_or_else(|| "too large a number".into())
    }

    accepts!(INT2, INT4, INT8, NUMERIC);
}

impl Row {
    /// A whole number.
    pub fn int(&self, at: usize) -> Result<i64, Failure> {
        self.scaled::<0>(at)
    }

    /// An amount in cents.
    pub fn cents(&self, at: usize) -> Result<i64, Failure> {
        self.scaled::<2>(at)
    }

    /// A rate in 1/10000.
    pub fn rate(&self, at: usize) -> Result<i64, Failure> {
        self.scaled::<4>(at)
    }

    fn scaled<const SCALE: u32>(&self, at: usize) -> Result<i64, Failure> {
        let number = match self {
            Row::Postgres(row) => return Ok(row.try_get::<_, Scaled<SCALE>>(at)?.0),
            Row::Mysql(row) => match row.as_ref(at) {
                Some(mysql_async::Value::Int(number)) => number.checked_mul(10i64.pow(SCALE)),
                Some(mysql_async::Value::UInt(number)) => {
                    i64::try_from(*number).ok().and_then(|number| number.checked_mul(10i64.pow(SCALE)))
                }
                Some(mysql_async::Value::Bytes(text)) => {
                    std::str::from_utf8(text).ok().and_then(|text| parse_decimal(text, SCALE))
                }
                _ => None,
            },
        };
        number
            .ok_or_else(|| Failure::unexpected(format!("column {at} of an answer is no number of this size")))
    }

    /// A text, without the blanks that fill up a column of fixed width.
    pub fn text(&self, at: usize) -> Result<&str, Failure> {
        let text = match self {
            Row::Postgres(row) => row.try_get::<_, &str>(at)?,
            Row::Mysql(row) => match row.as_ref(at) {
                Some(mysql_async::Value::Bytes(text)) => std::str::from_utf8(text)
                    .map_err(|_| Failure::unexpected(format!("column {at} of an answer is no UTF-8")))?,
                _ => return Err(Failure::unexpected(format!("column {at} of an answer is no text"))),
            },
        };
        Ok(text.trim_end_matches(' '))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(civil(EPOCH_OF_POSTGRES_S), (2000, 1, 1, 0, 0, 0));
        assert_eq!(civil(951_782_399 + 86_400), (2000, 2, 29, 23, 59, 59));
        assert_eq!(civil(1_767_225_599), (2025, 12, 31, 23, 59, 59));
        assert_eq!(civil(-1), (1969, 12, 31, 23, 59, 59));
    }
}
