//! Comparisons, of all types by one set of bodies.

use std::cmp::Ordering;

use super::{Call, Outcome};
use crate::types::{Datum, compare, time};

/// Compares the two arguments. Two of a kind have an order of their own; dates and timestamps of
/// different kinds compare as the wider one.
fn order(call: &Call<'_>) -> Ordering {
    let (left, right) = (call.at(0), call.at(1));
    match (left, right) {
        (Datum::Timestamp(_) | Datum::Date(_), Datum::TimestampTz(b)) => moment(left, call).cmp(b),
        (Datum::TimestampTz(a), Datum::Timestamp(_) | Datum::Date(_)) => a.cmp(&moment(right, call)),
        (Datum::Date(_), Datum::Timestamp(b)) => local(left).cmp(b),
        (Datum::Timestamp(a), Datum::Date(_)) => a.cmp(&local(right)),
        _ => compare::compare(left, right),
    }
}

/// A date's midnight; one that no timestamp reaches is beyond them all.
fn local(datum: &Datum) -> i64 {
    match datum {
        Datum::Date(days) => time::midnight(*days).unwrap_or(if *days < 0 { i64::MIN } else { i64::MAX - 1 }),
        Datum::Timestamp(us) => *us,
        _ => 0,
    }
}

fn moment(datum: &Datum, call: &Call<'_>) -> i64 {
    let local = local(datum);
    time::to_utc(local, &call.context.style.zone).unwrap_or(local)
}

/// `=`
pub fn eq(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_eq()))
}

/// `<>`
pub fn ne(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_ne()))
}

/// `<`
pub fn lt(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_lt()))
}

/// `<=`
pub fn le(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_le()))
}

/// `>`
pub fn gt(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_gt()))
}

/// `>=`
pub fn ge(call: &Call<'_>) -> Outcome {
    Ok(Datum::Bool(order(call).is_ge()))
}

/// `btint4cmp` and its like: -1, 0 or 1.
pub fn cmp(call: &Call<'_>) -> Outcome {
    Ok(Datum::Int4(match order(call) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// The larger one.
pub fn larger(call: &Call<'_>) -> Outcome {
    Ok(call.at(usize::from(order(call).is_lt())).clone())
}

/// The smaller one.
pub fn smaller(call: &Call<'_>) -> Outcome {
    Ok(call.at(usize::from(order(call).is_gt())).clone())
}
