//! Order and equality of values of one kind.
//!
//! The order is total, as that of an index: NaN is above all numbers and equals itself, NULL is
//! above all values. Strings compare by their bytes, which is the collation `C`; of `char(n)`,
//! without the blanks at the end. Numbers of
//! different width compare by value, so one function serves every operator between them.

use std::cmp::Ordering;

use super::{Array, Datum};

/// Compares two values; of kinds that have no order between them the order is that of their kinds.
pub fn compare(left: &Datum, right: &Datum) -> Ordering {
    use Datum::*;
    match (left, right) {
        (Null, Null) => Ordering::Equal,
        (Null, _) => Ordering::Greater,
        (_, Null) => Ordering::Less,
        (Bool(a), Bool(b)) => a.cmp(b),
        (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Bpchar(a), Bpchar(b)) => a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')),
        (Char(a), Char(b)) => a.cmp(b),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        (Date(a), Date(b)) => a.cmp(b),
        (Time(a), Time(b)) | (Timestamp(a), Timestamp(b)) | (TimestampTz(a), TimestampTz(b)) => a.cmp(b),
        // By the moment, then by the zone.
        (TimeTz(a, west_a), TimeTz(b, west_b)) => {
            let moment = |us: i64, west_s: i32| us + i64::from(west_s) * 1_000_000;
            moment(*a, *west_a).cmp(&moment(*b, *west_b)).then(west_a.cmp(west_b))
        }
        (Interval(a), Interval(b)) => a.span_us().cmp(&b.span_us()),
        (Uuid(a), Uuid(b)) => a.cmp(b),
        (Oid(a), Oid(b)) => a.cmp(b),
        (Numeric(a), Numeric(b)) => a.compare(b),
        (Array(a), Array(b)) => compare_arrays(a, b),
        (Record(a), Record(b)) => {
            let pairs = a.iter().zip(b.iter()).map(|((_, a), (_, b))| compare(a, b));
            pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
        }
        _ => match (integer(left), integer(right)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => match (float(left), float(right)) {
                (Some(a), Some(b)) => compare_floats(a, b),
                _ => kind(left).cmp(&kind(right)),
            },
        },
    }
}

/// Order of floats: NaN above all, zeros equal.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn compare_arrays(a: &Array, b: &Array) -> Ordering {
    let elements = a.elements.iter().zip(&b.elements).map(|(a, b)| compare(a, b));
    let first = elements.into_iter().find(|order| order.is_ne());
    first.unwrap_or_else(|| {
        let shape = |array: &Array| (array.elements.len(), array.dimensions.len());
        shape(a).cmp(&shape(b)).then_with(|| a.dimensions.cmp(&b.dimensions))
    })
}

/// The value of an integer of any width.
pub fn integer(datum: &Datum) -> Option<i64> {
    match datum {
        Datum::Int2(value) => Some(i64::from(*value)),
        Datum::Int4(value) => Some(i64::from(*value)),
        Datum::Int8(value) => Some(*value),
        Datum::Oid(value) => Some(i64::from(*value)),
        _ => None,
    }
}

/// The value of a float of any width.
pub fn float(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Float4(value) => Some(f64::from(*value)),
        Datum::Float8(value) => Some(*value),
        _ => None,
    }
}

fn kind(datum: &Datum) -> u8 {
    match datum {
        Datum::Null => 255,
        Datum::Bool(_) => 0,
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Oid(_) => 1,
        Datum::Float4(_) | Datum::Float8(_) => 2,
        Datum::Numeric(_) => 3,
        Datum::Text(_) => 4,
        Datum::Char(_) => 5,
        Datum::Bytes(_) => 6,
        Datum::Date(_) => 7,
        Datum::Time(_) => 8,
        Datum::TimeTz(..) => 9,
        Datum::Timestamp(_) => 10,
        Datum::TimestampTz(_) => 11,
        Datum::Interval(_) => 12,
        Datum::Uuid(_) => 13,
        Datum::Array(_) => 14,
        Datum::Record(_) => 15,
        Datum::Bpchar(_) => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_and_null_are_above_all_and_equal_themselves() {
        let nan = Datum::Float8(f64::NAN);
        assert_eq!(compare(&nan, &Datum::Float8(f64::INFINITY)), Ordering::Greater);
        assert_eq!(compare(&nan, &nan), Ordering::Equal);
        assert_eq!(compare(&Datum::Null, &nan), Ordering::Greater);
        assert_eq!(compare(&Datum::Int2(3), &Datum::Int8(3)), Ordering::Equal);
        assert_eq!(compare(&Datum::Float8(-0.0), &Datum::Float8(0.0)), Ordering::Equal);
    }
}
