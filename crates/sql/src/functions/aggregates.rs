//! Aggregates: a value from the values of many rows.

use super::{Call, Outcome, confused, out_of_range};
use crate::types::{Array, Datum, Interval, Numeric, Oid, compare, time};
use crate::{SqlError, SqlState};

/// Which aggregate it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `count(*)`, `count(x)`
    Count,
    /// `sum()`
    Sum,
    /// `avg()`
    Average,
    /// `min()`
    Least,
    /// `max()`
    Greatest,
    /// `bool_and()`, `every()`
    All,
    /// `bool_or()`
    Any,
    /// `bit_and()`
    BitAnd,
    /// `bit_or()`
    BitOr,
    /// `bit_xor()`
    BitXor,
    /// `string_agg()`
    Join,
    /// `array_agg()`
    Collect,
    /// `var_pop()`
    VariancePopulation,
    /// `var_samp()`, `variance()`
    Variance,
    /// `stddev_pop()`
    DeviationPopulation,
    /// `stddev_samp()`, `stddev()`
    Deviation,
}

/// What an aggregate has seen so far.
#[derive(Debug)]
pub struct State {
    kind: Kind,
    count: i64,
    /// The value so far; NULL before the first.
    value: Datum,
    /// Sums of squares, of variances.
    squares: Datum,
    collected: Vec<Datum>,
    text: String,
}

impl State {
    /// Before the first row.
    pub fn new(kind: Kind) -> State {
        State {
            kind,
            count: 0,
            value: Datum::Null,
            squares: Datum::Null,
            collected: Vec::new(),
            text: String::new(),
        }
    }

    /// About how many bytes it holds.
    pub fn size(&self) -> usize {
        std::mem::size_of::<State>() + self.text.len() + self.collected.len() * std::mem::size_of::<Datum>()
    }

    /// Takes a row's arguments.
    pub fn add(&mut self, call: &Call<'_>) -> Result<(), SqlError> {
        let first = call.at(0);
        let skips = self.kind != Kind::Collect && call.count() > 0;
        if skips && first.is_null() {
            return Ok(());
        }
        self.count += 1;
        match self.kind {
            Kind::Count => {}
            Kind::Collect => self.collected.push(first.clone()),
            Kind::Join => {
                if self.count > 1 && !call.at(1).is_null() {
                    let separator = call.printed(1)?;
                    self.text.push_str(separator.trim_start_matches("\\x"));
                }
                let shown = call.printed(0)?;
                self.text.push_str(shown.trim_start_matches(if call.result == Oid::BYTEA {
                    "\\x"
                } else {
                    ""
                }));
            }
            Kind::Least | Kind::Greatest => {
                let order = compare::compare(first, &self.value);
                let better = if self.kind == Kind::Least { order.is_lt() } else { order.is_gt() };
                if self.value.is_null() || better {
                    self.value = first.clone();
                }
            }
            Kind::All | Kind::Any => {
                let (Datum::Bool(next), all) = (first, self.kind == Kind::All) else {
                    return Err(confused());
                };
                self.value = Datum::Bool(match self.value {
                    Datum::Bool(so_far) if all => so_far && *next,
                    Datum::Bool(so_far) => so_far || *next,
                    _ => *next,
                });
            }
            Kind::BitAnd | Kind::BitOr | Kind::BitXor => {
                let next = compare::integer(first).ok_or_else(confused)?;
                let so_far = compare::integer(&self.value);
                let bits = match (so_far, self.kind) {
                    (None, _) => next,
                    (Some(bits), Kind::BitAnd) => bits & next,
                    (Some(bits), Kind::BitOr) => bits | next,
                    (Some(bits), _) => bits ^ next,
                };
                self.value = like(first, bits);
            }
            Kind::Sum | Kind::Average => self.value = sum(&self.value, first)?,
            Kind::VariancePopulation | Kind::Variance | Kind::DeviationPopulation | Kind::Deviation => {
                self.add_variance(first)?;
            }
        }
        Ok(())
    }

    /// The sums that a variance is made of: of floats by Youngs and Cramer's method, which does not
    /// lose the small differences of large numbers; of others exactly.
    fn add_variance(&mut self, next: &Datum) -> Result<(), SqlError> {
        if let Some(x) = compare::float(next) {
            let n = self.count as f64;
            let (so_far, squares) =
                (compare::float(&self.value).unwrap_or(0.0), compare::float(&self.squares).unwrap_or(0.0));
            let total = so_far + x;
            let grown = if self.count > 1 {
                let difference = x * n - total;
                squares + difference * difference / (n * (n - 1.0))
            } else if x.is_finite() {
                0.0
            } else {
                f64::NAN
            };
            (self.value, self.squares) = (Datum::Float8(total), Datum::Float8(grown));
            return Ok(());
        }
        let x = number(next)?;
        self.squares = sum(&self.squares, &Datum::Numeric(x.mul(&x)?))?;
        self.value = sum(&self.value, &Datum::Numeric(x))?;
        Ok(())
    }

    /// The result.
    pub fn finish(self, result: Oid) -> Outcome {
        match self.kind {
            Kind::Count => Ok(Datum::Int8(self.count)),
            _ if self.count == 0 => Ok(Datum::Null),
            Kind::Join if result == Oid::BYTEA => {
                Ok(Datum::Bytes(crate::types::bytes::from_hex(&self.text)?.into()))
            }
            Kind::Join => Ok(Datum::text(self.text)),
            Kind::Collect => collected(result, self.collected),
            Kind::Sum => Ok(match (self.value, result) {
                (Datum::Numeric(sum), Oid::INT8) => {
                    Datum::Int8(sum.to_i64().ok_or_else(|| out_of_range("bigint"))?)
                }
                (Datum::Float8(sum), Oid::FLOAT4) => Datum::Float4(sum as f32),
                (value, _) => value,
            }),
            Kind::Average => average(self.value, self.count),
            Kind::Least
            | Kind::Greatest
            | Kind::All
            | Kind::Any
            | Kind::BitAnd
            | Kind::BitOr
            | Kind::BitXor => Ok(self.value),
            Kind::VariancePopulation | Kind::Variance | Kind::DeviationPopulation | Kind::Deviation => {
                self.variance()
            }
        }
    }

    fn variance(self) -> Outcome {
        let sample = matches!(self.kind, Kind::Variance | Kind::Deviation);
        let root = matches!(self.kind, Kind::Deviation | Kind::DeviationPopulation);
        if sample && self.count < 2 {
            return Ok(Datum::Null);
        }
        if let Datum::Float8(squares) = self.squares {
            let n = if sample { self.count - 1 } else { self.count } as f64;
            let variance = squares / n;
            return Ok(Datum::Float8(if root { variance.sqrt() } else { variance }));
        }
        let (Datum::Numeric(total), Datum::Numeric(squares)) = (self.value, self.squares) else {
            return Err(confused());
        };
        let n = Numeric::from(self.count);
        let numerator = n.mul(&squares)?.sub(&total.mul(&total)?)?;
        if numerator.is_zero() || numerator.is_negative() {
            return Ok(Datum::Numeric(Numeric::ZERO));
        }
        let denominator = n.mul(&Numeric::from(if sample { self.count - 1 } else { self.count }))?;
        let variance = numerator.div(&denominator)?;
        if root { variance.sqrt().map(Datum::Numeric) } else { Ok(Datum::Numeric(variance)) }
    }
}

/// An integer of the same width as another.
fn like(of: &Datum, bits: i64) -> Datum {
    match of {
        Datum::Int2(_) => i16::try_from(bits).map_or(Datum::Null, Datum::Int2),
        Datum::Int4(_) => i32::try_from(bits).map_or(Datum::Null, Datum::Int4),
        _ => Datum::Int8(bits),
    }
}

fn number(value: &Datum) -> Result<Numeric, SqlError> {
    match value {
        Datum::Numeric(number) => Ok(number.clone()),
        _ => compare::integer(value).map(Numeric::from).ok_or_else(confused),
    }
}

/// A sum, of integers as a numeric, which cannot overflow.
fn sum(so_far: &Datum, next: &Datum) -> Outcome {
    let next = match next {
        Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => Datum::Numeric(number(next)?),
        Datum::Float4(value) => Datum::Float8(f64::from(*value)),
        Datum::Time(us) => Datum::Interval(Interval { us: *us, ..Interval::default() }),
        other => other.clone(),
    };
    Ok(match (so_far, next) {
        (Datum::Null, next) => next,
        (Datum::Numeric(a), Datum::Numeric(b)) => Datum::Numeric(a.add(&b)?),
        (Datum::Float8(a), Datum::Float8(b)) => {
            let total = a + b;
            if total.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    "value out of range: overflow",
                ));
            }
            Datum::Float8(total)
        }
        (Datum::Interval(a), Datum::Interval(b)) => {
            Datum::Interval(a.add(&b).ok_or_else(|| time::out_of_range("interval"))?)
        }
        _ => return Err(confused()),
    })
}

fn average(total: Datum, count: i64) -> Outcome {
    Ok(match total {
        Datum::Numeric(total) => Datum::Numeric(total.div(&Numeric::from(count))?),
        Datum::Float8(total) => Datum::Float8(total / count as f64),
        Datum::Interval(total) => super::dates::scaled(total, |value| value / count as f64)?,
        _ => return Err(confused()),
    })
}

/// An array of what was collected: of arrays, which must be alike, an array with a dimension more.
fn collected(result: Oid, values: Vec<Datum>) -> Outcome {
    let element = result.element().unwrap_or(Oid::TEXT);
    if !matches!(values.first(), Some(Datum::Array(_))) {
        return Ok(Array::flat(element, values));
    }
    super::arrays::stacked(element, &values)
}
