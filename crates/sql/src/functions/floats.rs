//! Arithmetic of floating point numbers, which refuses to overflow or to vanish.
//!
//! The functions are those of the C library, as in PostgreSQL, so that the last digit is the same.

use super::{Call, Outcome, integers::division_by_zero, refuse};
use crate::types::Datum;
use crate::{SqlError, SqlState};

/// A result of these operands: infinite only if one of them was, 0 only if it may be.
fn checked(value: f64, infinite: bool, zero: bool) -> Result<f64, SqlError> {
    if value.is_infinite() && !infinite {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow");
    }
    if value == 0.0 && !zero {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow");
    }
    Ok(value)
}

/// A result as wide as both operands: a `real` only if both are.
fn wide(call: &Call<'_>, value: f64, infinite: bool, zero: bool) -> Outcome {
    if call.arguments.iter().all(|argument| matches!(argument, Datum::Float4(_))) {
        // Rounding twice is rounding once here: a double has more than twice a real's digits.
        let narrow = value as f32;
        checked(f64::from(narrow), infinite, zero)?;
        return Ok(Datum::Float4(narrow));
    }
    checked(value, infinite, zero).map(Datum::Float8)
}

/// `+`
pub fn add(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.float(0)?, call.float(1)?);
    wide(call, a + b, a.is_infinite() || b.is_infinite(), true)
}

/// `-`
pub fn sub(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.float(0)?, call.float(1)?);
    wide(call, a - b, a.is_infinite() || b.is_infinite(), true)
}

/// `*`
pub fn mul(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.float(0)?, call.float(1)?);
    wide(call, a * b, a.is_infinite() || b.is_infinite(), a == 0.0 || b == 0.0)
}

/// `/`
pub fn div(call: &Call<'_>) -> Outcome {
    let (a, b) = (call.float(0)?, call.float(1)?);
    if b == 0.0 && !a.is_nan() {
        return Err(division_by_zero());
    }
    wide(call, a / b, a.is_infinite(), a == 0.0 || b.is_infinite())
}

/// Prefix `-`
pub fn neg(call: &Call<'_>) -> Outcome {
    wide(call, -call.float(0)?, true, true)
}

/// `@`, `abs()`
pub fn abs(call: &Call<'_>) -> Outcome {
    wide(call, call.float(0)?.abs(), true, true)
}

macro_rules! total {
    ($($(#[$doc:meta])* $name:ident($x:ident) $body:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &Call<'_>) -> Outcome {
            let $x = call.float(0)?;
            Ok(Datum::Float8($body))
        })*
    };
}

total! {
    /// `ceil()`
    ceil(x) x.ceil();
    /// `floor()`
    floor(x) x.floor();
    /// `round()`, half to even.
    round(x) x.round_ties_even();
    /// `trunc()`
    trunc(x) x.trunc();
    /// `sign()`
    sign(x) if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
    /// `cbrt()`, `||/`
    cbrt(x) f64::cbrt(x);
    /// `degrees()`
    degrees(x) x / (std::f64::consts::PI / 180.0);
    /// `radians()`
    radians(x) x * (std::f64::consts::PI / 180.0);
    /// `atan()`
    atan(x) f64::atan(x);
    /// `tanh()`
    tanh(x) f64::tanh(x);
    /// `asinh()`
    asinh(x) f64::asinh(x);
}

macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident($x:ident) $domain:expr, $body:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(call: &Call<'_>) -> Outcome {
            let $x = call.float(0)?;
            let within = $domain;
            if !$x.is_nan() && !within {
                return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range");
            }
            Ok(Datum::Float8($body))
        })*
    };
}

bounded! {
    /// `sin()`
    sin(x) x.is_finite(), f64::sin(x);
    /// `cos()`
    cos(x) x.is_finite(), f64::cos(x);
    /// `tan()`
    tan(x) x.is_finite(), f64::tan(x);
    /// `cot()`
    cot(x) x.is_finite(), 1.0 / f64::tan(x);
    /// `asin()`
    asin(x) (-1.0..=1.0).contains(&x), f64::asin(x);
    /// `acos()`
    acos(x) (-1.0..=1.0).contains(&x), f64::acos(x);
    /// `acosh()`
    acosh(x) x >= 1.0, f64::acosh(x);
    /// `atanh()`
    atanh(x) (-1.0..=1.0).contains(&x), if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { f64::atanh(x) };
}

/// `sinh()`
pub fn sinh(call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(f64::sinh(call.float(0)?)))
}

/// `cosh()`
pub fn cosh(call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(f64::cosh(call.float(0)?)))
}

/// `atan2()`
pub fn atan2(call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(f64::atan2(call.float(0)?, call.float(1)?)))
}

/// `pi()`
pub fn pi(_call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(std::f64::consts::PI))
}

/// `sqrt()`, `|/`
pub fn sqrt(call: &Call<'_>) -> Outcome {
    let x = call.float(0)?;
    if x < 0.0 {
        return refuse(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "cannot take square root of a negative number",
        );
    }
    Ok(Datum::Float8(x.sqrt()))
}

/// `exp()`
pub fn exp(call: &Call<'_>) -> Outcome {
    let x = call.float(0)?;
    checked(f64::exp(x), x.is_infinite(), x.is_infinite()).map(Datum::Float8)
}

fn logarithm(call: &Call<'_>, of: fn(f64) -> f64) -> Outcome {
    let x = call.float(0)?;
    if x == 0.0 {
        return refuse(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero");
    }
    if x < 0.0 {
        return refuse(
            SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
            "cannot take logarithm of a negative number",
        );
    }
    Ok(Datum::Float8(of(x)))
}

/// `ln()`
pub fn ln(call: &Call<'_>) -> Outcome {
    logarithm(call, f64::ln)
}

/// `log()`, to base 10.
pub fn log10(call: &Call<'_>) -> Outcome {
    logarithm(call, f64::log10)
}

/// `power()`, `^`
pub fn power(call: &Call<'_>) -> Outcome {
    let (x, y) = (call.float(0)?, call.float(1)?);
    if x == 0.0 && y < 0.0 {
        return refuse(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "zero raised to a negative power is undefined",
        );
    }
    if x < 0.0 && y.floor() != y {
        return refuse(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "a negative number raised to a non-integer power yields a complex result",
        );
    }
    let infinite = x.is_infinite() || y.is_infinite();
    checked(f64::powf(x, y), infinite, infinite || x == 0.0).map(Datum::Float8)
}

/// Sine, cosine and tangent of degrees, exact where they are a half or a whole.
pub fn sind(call: &Call<'_>) -> Outcome {
    degrees_of(call, sine_of_degrees)
}

/// `cosd()`
pub fn cosd(call: &Call<'_>) -> Outcome {
    degrees_of(call, |x| sine_of_degrees(90.0 - x.abs() % 360.0))
}

/// `tand()`
pub fn tand(call: &Call<'_>) -> Outcome {
    degrees_of(call, |x| {
        let (sine, cosine) = (sine_of_degrees(x), sine_of_degrees(90.0 - x.abs() % 360.0));
        if sine.abs() == cosine.abs() { (sine * cosine).signum() } else { sine / cosine }
    })
}

fn degrees_of(call: &Call<'_>, of: fn(f64) -> f64) -> Outcome {
    let x = call.float(0)?;
    if x.is_infinite() {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range");
    }
    Ok(Datum::Float8(of(x)))
}

fn sine_of_degrees(x: f64) -> f64 {
    let (sign, x) = (if x < 0.0 { -1.0 } else { 1.0 }, x.abs() % 360.0);
    let (sign, x) = if x > 180.0 { (-sign, x - 180.0) } else { (sign, x) };
    let x = if x > 90.0 { 180.0 - x } else { x };
    let sine = if x == 30.0 {
        0.5
    } else if x == 90.0 {
        1.0
    } else {
        f64::sin(x * (std::f64::consts::PI / 180.0))
    };
    sign * sine
}

/// `random()`: 53 random bits below 1.
pub fn random(call: &Call<'_>) -> Outcome {
    Ok(Datum::Float8(((call.context.random)() >> 11) as f64 / (1u64 << 53) as f64))
}
