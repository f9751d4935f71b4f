//! Values: their types, and their text and binary forms.
//!
//! A [`Datum`] is a value without its type: several types share a representation (`text`, `varchar`
//! and `json` are all strings), so whoever holds a value knows the type from the plan. [`decode`]
//! and [`encode`] are the two directions of the wire; [`parse()`] and [`print()`] are the text
//! forms that literals and casts use as well. The bytes that come in are a client's: nothing here
//! may panic on them, so the module forbids itself what could.
//!
//! Left out: enumerations, domains, ranges, bit strings, networks, geometry. A type that is not in
//! the table of [`oid`] has no values here.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod array;
pub mod binary;
pub mod bytes;
pub mod compare;
pub mod float;
pub mod numeric;
pub mod oid;
pub mod scalar;
pub mod style;
pub mod time;

use std::sync::Arc;

pub use array::Array;
pub use binary::{decode, encode};
pub use numeric::Numeric;
pub use oid::{Oid, type_size};
pub use scalar::{parse, print};
pub use style::{DateForm, DateOrder, IntervalForm, Names, Style};
pub use time::{Interval, Zone};

/// A value. Which type it is of is known from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// No value.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `smallint`.
    Int2(i16),
    /// `integer`.
    Int4(i32),
    /// `bigint`.
    Int8(i64),
    /// `oid` and what is named by one: `regtype`, `regclass`, ...
    Oid(u32),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// `numeric`.
    Numeric(Numeric),
    /// `text`, `varchar`, `name`, `json`, `unknown`.
    Text(Arc<str>),
    /// `char(n)` with the blanks at its end, which count in no comparison.
    Bpchar(Arc<str>),
    /// `"char"`: one byte.
    Char(u8),
    /// `bytea`.
    Bytes(Arc<[u8]>),
    /// `date`: days since 2000-01-01; the extremes are the infinities.
    Date(i32),
    /// `time`: microseconds since midnight, up to and with 24:00.
    Time(i64),
    /// `time with time zone`: microseconds since midnight, and seconds west of Greenwich.
    TimeTz(i64, i32),
    /// `timestamp`: microseconds since 2000-01-01 00:00; the extremes are the infinities.
    Timestamp(i64),
    /// `timestamp with time zone`: the same, at Greenwich.
    TimestampTz(i64),
    /// `interval`.
    Interval(Interval),
    /// `uuid`.
    Uuid([u8; 16]),
    /// An array of any type.
    Array(Arc<Array>),
    /// A row of values with their types.
    Record(Arc<[(Oid, Datum)]>),
}

impl Datum {
    /// A string.
    pub fn text(value: impl Into<Arc<str>>) -> Datum {
        Datum::Text(value.into())
    }

    /// A string as a value of its type: [`Datum::Bpchar`] if that is `char(n)`, else [`Datum::Text`].
    pub fn string(oid: Oid, value: impl Into<Arc<str>>) -> Datum {
        if oid == Oid::BPCHAR { Datum::Bpchar(value.into()) } else { Datum::Text(value.into()) }
    }

    /// The characters of a string, all of them; none of another value.
    pub fn as_string(&self) -> Option<&Arc<str>> {
        match self {
            Datum::Text(text) | Datum::Bpchar(text) => Some(text),
            _ => None,
        }
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }
}

/// Whether a value comes as people or as programs write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Characters.
    Text,
    /// Bytes in network order.
    Binary,
}
