//! Values survive both of their forms, and no bytes end the program.

use plimsoll_sql::types::{Array, Datum, Format, Interval, Numeric, Oid, Style, compare, decode, encode};
use proptest::prelude::*;

const TYPES: &[Oid] = &[
    Oid::BOOL,
    Oid::BYTEA,
    Oid::CHAR,
    Oid::NAME,
    Oid::INT2,
    Oid::INT4,
    Oid::INT8,
    Oid::OID,
    Oid::TEXT,
    Oid::JSON,
    Oid::FLOAT4,
    Oid::FLOAT8,
    Oid::UNKNOWN,
    Oid::BPCHAR,
    Oid::VARCHAR,
    Oid::DATE,
    Oid::TIME,
    Oid::TIMETZ,
    Oid::TIMESTAMP,
    Oid::TIMESTAMPTZ,
    Oid::INTERVAL,
    Oid::NUMERIC,
    Oid::UUID,
    Oid::VOID,
    Oid::RECORD,
    Oid::REGTYPE,
    Oid::TEXT_ARRAY,
    Oid::INT4_ARRAY,
    Oid::NUMERIC_ARRAY,
    Oid::FLOAT8_ARRAY,
    Oid::JSONB,
    Oid(0),
    Oid(u32::MAX),
];

fn numeric() -> impl Strategy<Value = Datum> {
    let digits = "-?[0-9]{1,60}(\\.[0-9]{1,60})?";
    let parsed = |text: String| Datum::Numeric(Numeric::parse(&text).expect("a number"));
    prop_oneof![
        digits.prop_map(parsed),
        Just(Datum::Numeric(Numeric::NaN)),
        Just(Datum::Numeric(Numeric::Infinity))
    ]
}

fn text() -> impl Strategy<Value = Datum> {
    "[^\\x00]{0,20}".prop_map(Datum::text)
}

/// A value and its type.
fn value() -> impl Strategy<Value = (Datum, Oid)> {
    let us = -211_813_488_000_000_000i64..9_223_371_331_200_000_000;
    prop_oneof![
        any::<bool>().prop_map(|value| (Datum::Bool(value), Oid::BOOL)),
        any::<i16>().prop_map(|value| (Datum::Int2(value), Oid::INT2)),
        any::<i32>().prop_map(|value| (Datum::Int4(value), Oid::INT4)),
        any::<i64>().prop_map(|value| (Datum::Int8(value), Oid::INT8)),
        any::<f32>().prop_map(|value| (Datum::Float4(value), Oid::FLOAT4)),
        any::<f64>().prop_map(|value| (Datum::Float8(value), Oid::FLOAT8)),
        numeric().prop_map(|value| (value, Oid::NUMERIC)),
        text().prop_map(|value| (value, Oid::TEXT)),
        "[ab ]{0,5}".prop_map(|value| (Datum::string(Oid::BPCHAR, value), Oid::BPCHAR)),
        any::<Vec<u8>>().prop_map(|value| (Datum::Bytes(value.into()), Oid::BYTEA)),
        any::<[u8; 16]>().prop_map(|value| (Datum::Uuid(value), Oid::UUID)),
        (-2_451_545i32..2_145_031_949).prop_map(|days| (Datum::Date(days), Oid::DATE)),
        (0..=86_400_000_000i64).prop_map(|us| (Datum::Time(us), Oid::TIME)),
        (0..=86_400_000_000i64, -57_599..=57_599)
            .prop_map(|(us, west_s)| (Datum::TimeTz(us, west_s), Oid::TIMETZ)),
        us.clone().prop_map(|us| (Datum::Timestamp(us), Oid::TIMESTAMP)),
        us.prop_map(|us| (Datum::TimestampTz(us), Oid::TIMESTAMPTZ)),
        (any::<i32>(), any::<i32>(), any::<i64>())
            .prop_map(|(months, days, us)| (Datum::Interval(Interval { months, days, us }), Oid::INTERVAL)),
        proptest::collection::vec(proptest::option::of(text()), 0..6).prop_map(|elements| {
            let elements = elements.into_iter().map(|element| element.unwrap_or(Datum::Null)).collect();
            (Array::flat(Oid::TEXT, elements), Oid::TEXT_ARRAY)
        }),
        proptest::collection::vec(numeric(), 0..6)
            .prop_map(|elements| (Array::flat(Oid::NUMERIC, elements), Oid::NUMERIC_ARRAY)),
    ]
}

proptest! {
    #[test]
    fn a_value_is_read_as_it_was_written((value, oid) in value()) {
        let style = Style::default();
        for format in [Format::Text, Format::Binary] {
            let mut bytes = Vec::new();
            encode(&value, oid, format, &style, &mut bytes).expect("a form");
            let read = decode(oid, format, &bytes, &style).expect("the form of a value");
            prop_assert!(compare::compare(&read, &value).is_eq(), "{:?} {} {:?}", value, oid.display(), read);
            let mut again = Vec::new();
            encode(&read, oid, format, &style, &mut again).expect("a form");
            prop_assert_eq!(bytes, again);
        }
    }

    #[test]
    fn no_bytes_end_the_program(bytes in any::<Vec<u8>>()) {
        for oid in TYPES {
            for format in [Format::Text, Format::Binary] {
                let _ = decode(*oid, format, &bytes, &Style::default());
            }
        }
    }

    #[test]
    fn no_text_ends_the_program(text in "[-+0-9a-zA-Z:./{},\\[\\]= \"\\\\]{0,30}") {
        for oid in TYPES {
            let _ = decode(*oid, Format::Text, text.as_bytes(), &Style::default());
        }
    }

    #[test]
    fn arithmetic_of_numerics_agrees_with_that_of_integers(a in any::<i64>(), b in any::<i64>(), s in 0u16..10, t in 0u16..10) {
        let (x, y) = (Numeric::Small(a.into(), s), Numeric::Small(b.into(), t));
        let scale = s.max(t);
        let at = |value: i64, scale_of: u16| i128::from(value) * 10i128.pow(u32::from(scale - scale_of));
        prop_assert_eq!(x.add(&y).expect("a sum"), Numeric::Small(at(a, s) + at(b, t), scale));
        prop_assert_eq!(x.mul(&y).expect("a product"), Numeric::Small(i128::from(a) * i128::from(b), s + t));
        if b != 0 {
            let quotient = x.div_whole(&y).expect("a quotient");
            let rest = x.rem(&y).expect("a remainder");
            let back = quotient.mul(&y).expect("a product").add(&rest).expect("a sum");
            prop_assert!(back.compare(&x).is_eq());
            prop_assert!(rest.clone().abs().compare(&y.clone().abs()).is_lt());
        }
        prop_assert_eq!(x.compare(&y), at(a, s).cmp(&at(b, t)));
    }

    #[test]
    fn the_square_of_a_root_is_the_number(digits in "[1-9][0-9]{0,50}") {
        let x = Numeric::parse(&digits).expect("a number");
        let root = x.sqrt().expect("a root");
        let square = root.mul(&root).expect("a square");
        // Half a unit of the last digit on either side.
        let unit = Numeric::parse(&format!("1e-{}", root.scale())).expect("a number");
        let error = square.sub(&x).expect("a difference").abs();
        prop_assert!(error.compare(&root.mul(&unit).expect("a bound").add(&unit).expect("a bound")).is_le());
        let ln = x.ln().expect("a logarithm");
        let back = ln.exp().expect("a power");
        let relative = back.sub(&x).expect("a difference").abs().div(&x).expect("a ratio");
        prop_assert!(relative.compare(&Numeric::parse("1e-12").expect("a number")).is_lt(), "{} {}", x, back);
    }
}
