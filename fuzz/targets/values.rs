//! Any bytes as a value of any type in binary form, and as text. They are refused, or are a value
//! that is the same one after it was sent in either form and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_sql::types::{Format, Oid, Style, decode, encode};

const TYPES: [Oid; 30] = [
    Oid::BOOL,
    Oid::BYTEA,
    Oid::CHAR,
    Oid::NAME,
    Oid::INT8,
    Oid::INT2,
    Oid::INT4,
    Oid::TEXT,
    Oid::OID,
    Oid::FLOAT4,
    Oid::FLOAT8,
    Oid::BPCHAR,
    Oid::VARCHAR,
    Oid::DATE,
    Oid::TIME,
    Oid::TIMESTAMP,
    Oid::TIMESTAMPTZ,
    Oid::INTERVAL,
    Oid::TIMETZ,
    Oid::NUMERIC,
    Oid::UUID,
    Oid::JSON,
    Oid::BOOL_ARRAY,
    Oid::INT4_ARRAY,
    Oid::TEXT_ARRAY,
    Oid::NUMERIC_ARRAY,
    Oid(1182), // date[]
    Oid(1187), // interval[]
    Oid(1001), // bytea[]
    Oid(2951), // uuid[]
];

fuzz_target!(|bytes: &[u8]| {
    let [which, form, bytes @ ..] = bytes else { return };
    let oid = TYPES[usize::from(*which) % TYPES.len()];
    let from = if form % 2 == 0 { Format::Binary } else { Format::Text };
    let style = Style::default();
    let Ok(value) = decode(oid, from, bytes, &style) else { return };
    for format in [Format::Binary, Format::Text] {
        let mut once = Vec::new();
        if encode(&value, oid, format, &style, &mut once).is_err() {
            continue;
        }
        let again = decode(oid, format, &once, &style).expect("what was sent can be read");
        let mut twice = Vec::new();
        encode(&again, oid, format, &style, &mut twice).expect("it was sent before");
        assert_eq!(once, twice, "{oid:?} as {format:?}");
    }
});
