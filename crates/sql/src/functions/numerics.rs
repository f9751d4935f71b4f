//! Functions of numerics.

use super::{Call, Outcome, refuse};
use crate::SqlState;
use crate::types::numeric::too_long;
use crate::types::{Datum, Numeric};

/// Digits of numbers whose greatest common divisor is looked for at most: about a tenth of a
/// second.
const DIVISOR_DIGITS_MAX: usize = 5_000;

/// Burns what it takes to multiply or divide the arguments.
fn burn_product(call: &Call<'_>) {
    let size = |place| call.numeric(place).map_or(0, Numeric::size);
    call.context.fuel.burn(size(0).saturating_mul(size(1)) >> 16);
}

/// Burns what it has taken to compute the digits of a series.
fn burn_series(call: &Call<'_>, result: &Numeric) {
    call.context.fuel.burn(result.digits().saturating_pow(3) >> 15);
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $method:ident;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &Call<'_>) -> Outcome {
            burn_product(call);
            call.numeric(0)?.$method(call.numeric(1)?).map(Datum::Numeric)
        })*
    };
}

binary! {
    /// `+`
    add add;
    /// `-`
    sub sub;
    /// `*`
    mul mul;
    /// `/`
    div div;
    /// `%`
    rem rem;
    /// `div()`
    div_whole div_whole;
}

macro_rules! series {
    ($($(#[$doc:meta])* $name:ident $method:ident $($second:literal)?;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &Call<'_>) -> Outcome {
            let result = call.numeric(0)?.$method($(call.numeric($second)?)?)?;
            burn_series(call, &result);
            Ok(Datum::Numeric(result))
        })*
    };
}

series! {
    /// `power()`, `^`
    power power 1;
    /// `log(base, x)`
    log log 1;
    /// `sqrt()`
    sqrt sqrt;
    /// `exp()`
    exp exp;
    /// `ln()`
    ln ln;
}

/// `ceil()`
pub fn ceil(call: &Call<'_>) -> Outcome {
    call.numeric(0)?.ceil().map(Datum::Numeric)
}

/// `floor()`
pub fn floor(call: &Call<'_>) -> Outcome {
    call.numeric(0)?.floor().map(Datum::Numeric)
}

/// Prefix `-`
pub fn neg(call: &Call<'_>) -> Outcome {
    Ok(Datum::Numeric(call.numeric(0)?.clone().negate()))
}

/// `abs()`
pub fn abs(call: &Call<'_>) -> Outcome {
    Ok(Datum::Numeric(call.numeric(0)?.clone().abs()))
}

/// `sign()`
pub fn sign(call: &Call<'_>) -> Outcome {
    let number = call.numeric(0)?;
    Ok(Datum::Numeric(match number {
        Numeric::NaN => Numeric::NaN,
        number if number.is_zero() => Numeric::ZERO,
        number if number.is_negative() => Numeric::from(-1),
        _ => Numeric::ONE,
    }))
}

fn digits(call: &Call<'_>) -> Result<i32, crate::SqlError> {
    if call.count() > 1 { call.int4(1) } else { Ok(0) }
}

/// `round()`
pub fn round(call: &Call<'_>) -> Outcome {
    call.numeric(0)?.round(digits(call)?).map(Datum::Numeric)
}

/// `trunc()`
pub fn trunc(call: &Call<'_>) -> Outcome {
    call.numeric(0)?.trunc(digits(call)?).map(Datum::Numeric)
}

/// `log()`, to base 10.
pub fn log10(call: &Call<'_>) -> Outcome {
    let result = Numeric::from(10).log(call.numeric(0)?)?;
    burn_series(call, &result);
    Ok(Datum::Numeric(result))
}

/// `scale()`
pub fn scale(call: &Call<'_>) -> Outcome {
    let number = call.numeric(0)?;
    Ok(if number.is_finite() { Datum::Int4(number.scale()) } else { Datum::Null })
}

/// `min_scale()`
pub fn min_scale(call: &Call<'_>) -> Outcome {
    let number = call.numeric(0)?;
    Ok(if number.is_finite() { Datum::Int4(number.trimmed().scale()) } else { Datum::Null })
}

/// `trim_scale()`
pub fn trim_scale(call: &Call<'_>) -> Outcome {
    Ok(Datum::Numeric(call.numeric(0)?.trimmed()))
}

/// `gcd()`
pub fn gcd(call: &Call<'_>) -> Outcome {
    let (mut a, mut b) = (call.numeric(0)?.clone(), call.numeric(1)?.clone());
    if !a.is_finite() || !b.is_finite() {
        return Ok(Datum::Numeric(Numeric::NaN));
    }
    let scale = a.scale().max(b.scale());
    let digits = a.digits().max(b.digits());
    if digits > DIVISOR_DIGITS_MAX {
        return Err(too_long("a greatest common divisor", digits));
    }
    call.context.fuel.burn(digits.saturating_pow(2) >> 8);
    while !b.is_zero() {
        let rest = a.rem(&b)?;
        (a, b) = (b, rest);
    }
    a.abs().round(scale).map(Datum::Numeric)
}

/// `lcm()`
pub fn lcm(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.numeric(0)?, call.numeric(1)?);
    if !a.is_finite() || !b.is_finite() {
        return Ok(Datum::Numeric(Numeric::NaN));
    }
    let scale = a.scale().max(b.scale());
    if a.is_zero() || b.is_zero() {
        return Numeric::ZERO.round(scale).map(Datum::Numeric);
    }
    let Datum::Numeric(divisor) = gcd(call)? else { return Ok(Datum::Null) };
    a.div_whole(&divisor)?.mul(b)?.abs().round(scale).map(Datum::Numeric)
}

/// `width_bucket()`
pub fn width_bucket(call: &Call<'_>) -> Outcome {
    let count = call.int4(3)?;
    if count <= 0 {
        return refuse(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "count must be greater than zero");
    }
    let number = |place: usize| match call.at(place) {
        Datum::Float8(value) => Numeric::parse(&format!("{value:e}")),
        _ => call.numeric(place).cloned(),
    };
    let (x, low, high) = (number(0)?, number(1)?, number(2)?);
    if [&x, &low, &high].iter().any(|number| matches!(number, Numeric::NaN)) {
        return refuse(
            SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET,
            "operand, lower bound, and upper bound cannot be NaN",
        );
    }
    if !low.is_finite() || !high.is_finite() {
        return refuse(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "lower and upper bounds must be finite");
    }
    let order = low.compare(&high);
    if order.is_eq() {
        return refuse(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, "lower bound cannot equal upper bound");
    }
    let ascending = order.is_lt();
    let (to_low, to_high) = (x.compare(&low), x.compare(&high));
    if if ascending { to_low.is_lt() } else { to_low.is_gt() } {
        return Ok(Datum::Int4(0));
    }
    if if ascending { to_high.is_ge() } else { to_high.is_le() } {
        return count.checked_add(1).map(Datum::Int4).ok_or_else(|| super::out_of_range("integer"));
    }
    let part = x.sub(&low)?.mul(&Numeric::from(i64::from(count)))?.div_whole(&high.sub(&low)?)?;
    Ok(Datum::Int4(i32::try_from(part.to_i64().unwrap_or(0)).unwrap_or(0).saturating_add(1)))
}
