//! Order, round trips, and what torn bytes do.

use std::cmp::Ordering;

use proptest::prelude::*;
use proptest::sample::select;

use super::bytes::Bytes;
use super::{key, order, row, value};
use crate::SqlState;
use crate::catalog::{Column, Placement, Table};
use crate::types::{Array, Datum, Interval, Numeric, Oid, compare};

/// Types that can be in keys.
const ORDERED: [Oid; 24] = [
    Oid::BOOL,
    Oid::CHAR,
    Oid::INT2,
    Oid::INT4,
    Oid::INT8,
    Oid::OID,
    Oid::REGCLASS,
    Oid::FLOAT4,
    Oid::FLOAT8,
    Oid::NUMERIC,
    Oid::TEXT,
    Oid::VARCHAR,
    Oid::NAME,
    Oid::BPCHAR,
    Oid::BYTEA,
    Oid::DATE,
    Oid::TIME,
    Oid::TIMETZ,
    Oid::TIMESTAMP,
    Oid::TIMESTAMPTZ,
    Oid::INTERVAL,
    Oid::UUID,
    Oid::TEXT_ARRAY,
    Oid::NUMERIC_ARRAY,
];

fn numeric() -> impl Strategy<Value = Datum> {
    let edges = vec![
        "0",
        "0.00",
        "1",
        "1.0",
        "1.50",
        "-1",
        "-1.5",
        "9",
        "10",
        "10.01",
        "99",
        "99.99",
        "100",
        "-100",
        "101",
        "1e-16383",
        "-1e-16383",
        "1e114687",
        "1e114688",
        "-1e114687",
        "-1e114688",
        "1e131071",
        "-9e131071",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e45",
        "1.000000000000000000000000000000000000000000001",
    ];
    let texts = prop_oneof![
        select(edges).prop_map(str::to_owned),
        "-?[0-9]{1,3}(\\.[0-9]{1,3})?",
        "-?[0-9]{1,60}(\\.[0-9]{1,60})?",
    ];
    texts.prop_map(|text| Datum::Numeric(Numeric::parse(&text).expect("a number")))
}

/// Any value of a kind, or one of these with the same chance.
fn near<T: Arbitrary + Clone + 'static>(edges: &[T]) -> impl Strategy<Value = T> + use<T> {
    prop_oneof![any::<T>(), select(edges.to_vec())]
}

fn number(oid: Oid) -> BoxedStrategy<Datum> {
    match oid {
        Oid::INT2 => near(&[i16::MIN, -256, -1, 0, 1, 255, 256, i16::MAX]).prop_map(Datum::Int2).boxed(),
        Oid::INT4 => near(&[i32::MIN, -65_536, -1, 0, 1, 256, i32::MAX]).prop_map(Datum::Int4).boxed(),
        Oid::INT8 => near(&[i64::MIN, -1 << 32, -1, 0, 1, 1 << 32, i64::MAX]).prop_map(Datum::Int8).boxed(),
        Oid::FLOAT4 => {
            let ends = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MAX];
            let small = [-0.0, 0.0, f32::MIN_POSITIVE, -f32::MIN_POSITIVE, 1e-45, -1e-45, 1.0, -1.0];
            near(&[&ends[..], &small].concat()).prop_map(Datum::Float4).boxed()
        }
        Oid::FLOAT8 => {
            let ends = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN, f64::MAX];
            let small = [-0.0, 0.0, f64::MIN_POSITIVE, -f64::MIN_POSITIVE, 5e-324, -5e-324, 1.0, -1.0];
            near(&[&ends[..], &small].concat()).prop_map(Datum::Float8).boxed()
        }
        _ => numeric().boxed(),
    }
}

fn time(oid: Oid) -> BoxedStrategy<Datum> {
    let times = prop_oneof![0..=86_400_000_000i64, select(vec![0, 1, 3_600_000_000, 86_400_000_000])];
    let edges = vec![i64::MIN, -211_813_488_000_000_000, -1, 0, 1, 9_223_371_331_199_999_999, i64::MAX];
    let moments = prop_oneof![-211_813_488_000_000_000i64..9_223_371_331_200_000_000, select(edges)];
    match oid {
        Oid::DATE => {
            let edges = vec![i32::MIN, -2_451_545, -1, 0, 1, 2_145_031_948, i32::MAX];
            prop_oneof![-2_451_545i32..2_145_031_949, select(edges)].prop_map(Datum::Date).boxed()
        }
        Oid::TIME => times.prop_map(Datum::Time).boxed(),
        Oid::TIMETZ => {
            let zones = prop_oneof![-57_599..=57_599, select(vec![-3600, 0, 3600])];
            (times, zones).prop_map(|(us, west_s)| Datum::TimeTz(us, west_s)).boxed()
        }
        Oid::TIMESTAMP => moments.prop_map(Datum::Timestamp).boxed(),
        Oid::TIMESTAMPTZ => moments.prop_map(Datum::TimestampTz).boxed(),
        _ => {
            let counts = || near(&[i32::MIN, -30, -1, 0, 1, 30, i32::MAX]);
            let us = near(&[i64::MIN, -86_400_000_000, -1, 0, 1, 86_400_000_000, i64::MAX]);
            let interval = |(months, days, us)| Datum::Interval(Interval { months, days, us });
            (counts(), counts(), us).prop_map(interval).boxed()
        }
    }
}

fn array(oid: Oid) -> BoxedStrategy<Datum> {
    let element = oid.element().expect("the type is an array");
    let elements = prop_oneof![3 => values(element), 1 => Just(Datum::Null)];
    let lists = (proptest::collection::vec(elements, 0..5), select(vec![1, 0, -3]), any::<bool>());
    lists
        .prop_map(move |(elements, lower, twofold)| {
            let length = i32::try_from(elements.len()).expect("it is short");
            let dimensions = match length {
                0 => vec![],
                2 | 4 if twofold => vec![(length / 2, lower), (2, 1)],
                _ => vec![(length, lower)],
            };
            Datum::Array(Array { element, dimensions, elements }.into())
        })
        .boxed()
}

/// Values of a type, many of which are equal or next to each other.
fn values(oid: Oid) -> BoxedStrategy<Datum> {
    let bytes = || proptest::collection::vec(select(vec![0u8, 1, 2, 0x20, 0x61, 0xfe, 0xff]), 0..5);
    match oid {
        Oid::BOOL => any::<bool>().prop_map(Datum::Bool).boxed(),
        Oid::CHAR => any::<u8>().prop_map(Datum::Char).boxed(),
        Oid::OID | Oid::REGCLASS => near(&[0, 1, 1 << 31, u32::MAX]).prop_map(Datum::Oid).boxed(),
        Oid::INT2 | Oid::INT4 | Oid::INT8 | Oid::FLOAT4 | Oid::FLOAT8 | Oid::NUMERIC => number(oid),
        Oid::TEXT | Oid::VARCHAR | Oid::NAME | Oid::BPCHAR | Oid::JSON => {
            let strings = prop_oneof!["[ab\u{1}\u{2} é]{0,4}", "[^\x00]{0,20}"];
            strings.prop_map(move |text| Datum::string(oid, text)).boxed()
        }
        Oid::BYTEA => bytes().prop_map(|bytes| Datum::Bytes(bytes.into())).boxed(),
        Oid::UUID => {
            let near = select(vec![[0; 16], [0xff; 16], [0x80; 16]]);
            prop_oneof![any::<[u8; 16]>(), near].prop_map(Datum::Uuid).boxed()
        }
        Oid::RECORD => {
            let fields = (values(Oid::TEXT), values(Oid::NUMERIC), values(Oid::TEXT_ARRAY));
            fields
                .prop_map(|(text, number, array)| {
                    let inner = [(Oid::NUMERIC, number), (Oid::INT4, Datum::Null)];
                    let outer = [
                        (Oid::TEXT, text),
                        (Oid::RECORD, Datum::Record(inner.into())),
                        (Oid::TEXT_ARRAY, array),
                    ];
                    Datum::Record(outer.into())
                })
                .boxed()
        }
        _ if oid.is_array() => array(oid),
        _ => time(oid),
    }
}

/// A type of keys and values of it.
fn of_one_type(count: usize) -> impl Strategy<Value = (Oid, Vec<Datum>)> {
    select(ORDERED.to_vec())
        .prop_flat_map(move |oid| (Just(oid), proptest::collection::vec(values(oid), count)))
}

fn ordered(oid: Oid, datum: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    order::put_nullable(oid, datum, &mut out).expect("the type has an order");
    out
}

/// Distinguishes what equality does not: scales, the sign of zero, NaN.
fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

fn column(oid: Oid) -> Column {
    Column::new(format!("of_{}", oid.catalog_name()), oid, -1)
}

pub fn table(types: &[Oid], primary: &[u16], placement: Placement) -> Table {
    let columns = types.iter().copied().map(column).collect();
    let (id, primary) = (16_384, primary.to_vec());
    Table { id, rows: id, columns, primary, placement, ..Table::new("public", "t") }
}

/// A table with a row: its primary key is the first columns, in another order.
fn filled() -> impl Strategy<Value = (Table, Vec<Datum>)> {
    let types = [&ORDERED[..], &[Oid::JSON, Oid::RECORD]].concat();
    let plain = proptest::collection::vec(select(types), 0..9);
    let keys = proptest::collection::vec(select(ORDERED.to_vec()), 0..4);
    (keys, plain)
        .prop_flat_map(|(keys, plain)| {
            let count = keys.len();
            let types = [keys, plain].concat();
            let row: Vec<_> = types
                .iter()
                .enumerate()
                .map(|(position, oid)| match position < count {
                    true => values(*oid),
                    false => prop_oneof![3 => values(*oid), 1 => Just(Datum::Null)].boxed(),
                })
                .collect();
            (Just(types), Just(count), row)
        })
        .prop_map(|(types, count, row)| {
            let primary: Vec<u16> = (0..u16::try_from(count).expect("few")).rev().collect();
            (table(&types, &primary, Placement::Hash(0)), row)
        })
}

/// The key of a row, hidden if its table has no primary key.
fn key_of(table: &Table, row: &[Datum]) -> Vec<u8> {
    match table.primary.is_empty() {
        true => key::hidden_key(table, 7 << 56),
        false => key::row_key(table, row).expect("the row has a key"),
    }
}

/// All that one flipped bit makes of some bytes.
fn flipped(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(move |bit| {
        let mut bytes = bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    })
}

proptest! {
    // Each of the types has its share of the cases.
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn keys_are_ordered_as_values_are((oid, values) in of_one_type(4)) {
        let bytes: Vec<_> = values.iter().map(|value| ordered(oid, value)).collect();
        let first = compare::compare(&values[0], &values[1]);
        prop_assert_eq!(bytes[0].cmp(&bytes[1]), first, "{} {:?}", oid.display(), values);
        // A second column decides if the first does not.
        let both = |a: usize, b: usize| [&bytes[a][..], &bytes[b]].concat();
        let second = compare::compare(&values[2], &values[3]);
        prop_assert_eq!(both(0, 2).cmp(&both(1, 3)), first.then(second));
        prop_assert!(bytes[0] < ordered(oid, &Datum::Null));
    }

    #[test]
    fn a_key_gives_an_equal_value_and_its_rest((oid, values) in of_one_type(1)) {
        let value = &values[0];
        let bytes = [ordered(oid, value), vec![9]].concat();
        let mut rest = Bytes::new(&bytes);
        let read = order::take_nullable(oid, &mut rest).expect("it was written");
        prop_assert_eq!(compare::compare(&read, value), Ordering::Equal);
        prop_assert_eq!(rest.rest(), &[9][..]);
        prop_assert_eq!(order::is_exact(oid, value), shown(&read) == shown(value));
    }

    #[test]
    fn rows_that_share_a_column_share_a_prefix(
        (oid, values) in of_one_type(1),
        (other, others) in of_one_type(2),
    ) {
        let split = table(&[oid, other], &[0, 1], Placement::Hash(1));
        let Ok(partition) = key::partition_byte(&split) else {
            prop_assert!(matches!(oid, Oid::FLOAT4 | Oid::FLOAT8 | Oid::NUMERIC) || oid.is_array());
            return Ok(());
        };
        let prefix = key::prefix(split.rows, partition, &[(oid, &values[0])]).expect("a prefix");
        for other in others {
            let key = key::row_key(&split, &[values[0].clone(), other]).expect("a key");
            prop_assert!(key.starts_with(&prefix));
        }
    }
}

proptest! {
    #[test]
    fn a_range_of_a_prefix_has_what_begins_with_it(
        prefix in proptest::collection::vec(select(vec![0u8, 1, 0xfe, 0xff]), 0..4),
        key in proptest::collection::vec(select(vec![0u8, 1, 0xfe, 0xff]), 0..6),
    ) {
        let is_below = key::after_prefix(&prefix).is_none_or(|end| key < end);
        prop_assert_eq!(key.starts_with(&prefix), key >= prefix && is_below);
    }

    #[test]
    fn a_row_is_read_as_it_was_written((table, row) in filled()) {
        let key = key_of(&table, &row);
        let bytes = row::write_row(&table, &row).expect("a row");
        prop_assert_eq!(shown(&row::read_row(&table, &key, &bytes).expect("it was written")), shown(&row));
    }

    #[test]
    fn columns_come_and_go_without_a_change_of_rows((mut table, row) in filled(), (oid, values) in of_one_type(1)) {
        let key = key_of(&table, &row);
        let bytes = row::write_row(&table, &row).expect("a row");
        let mut missing = Vec::new();
        value::put(oid, &values[0], &mut missing).expect("a value");
        table.columns.push(Column { missing: Some(missing), ..column(oid) });
        table.columns.push(column(oid));
        let mut expected = [row, vec![values[0].clone(), Datum::Null]].concat();
        for position in table.primary.len()..expected.len() - 2 {
            table.columns[position].dropped = position % 2 == 0;
            if position % 2 == 0 {
                expected[position] = Datum::Null;
            }
        }
        prop_assert_eq!(shown(&row::read_row(&table, &key, &bytes).expect("it was written")), shown(&expected));
        let bytes = row::write_row(&table, &expected).expect("a row");
        prop_assert_eq!(shown(&row::read_row(&table, &key, &bytes).expect("it was written")), shown(&expected));
    }

    #[test]
    fn no_bytes_of_a_row_panic(
        (table, _) in filled(),
        key in proptest::collection::vec(any::<u8>(), 0..40),
        row in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let layout = [&[1, 0, u8::try_from(table.columns.len()).expect("few")][..], &row].concat();
        let own = [&table.rows.to_be_bytes()[..], &[0], &key].concat();
        for (key, row) in [(&own, &row), (&own, &layout)] {
            if let Ok(values) = row::read_row(&table, key, row) {
                prop_assert_eq!(values.len(), table.columns.len());
            }
        }
        for column in &table.columns {
            if let Err(error) = value::take(column.oid, &row) {
                prop_assert_eq!(error.state, SqlState::DATA_CORRUPTED);
            }
        }
    }
}

proptest! {
    // Each case goes over all bits.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn torn_rows_and_keys_are_errors_or_other_values((table, row) in filled()) {
        let key = key_of(&table, &row);
        let bytes = row::write_row(&table, &row).expect("a row");
        for end in 0..key.len() {
            prop_assert!(key::read_row_key(&table, &key[..end]).is_err());
        }
        for end in 0..bytes.len() {
            let torn = row::read_row(&table, &key, &bytes[..end]);
            prop_assert_eq!(torn.map_err(|error| error.state), Err(SqlState::DATA_CORRUPTED));
        }
        for other in flipped(&key) {
            // What is read is what would have been written so.
            let Ok(values) = key::read_row_key(&table, &other) else { continue };
            let row: Vec<_> = values.into_iter().rev().collect();
            prop_assert!(table.primary.is_empty() || key::row_key(&table, &row) == Ok(other));
        }
        for other in flipped(&bytes) {
            if let Ok(values) = row::read_row(&table, &key, &other) {
                prop_assert_eq!(values.len(), table.columns.len());
            }
        }
    }
}
