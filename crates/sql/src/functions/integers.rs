//! Arithmetic of integers: every result that does not fit is refused (22003).

use super::{Call, Outcome, out_of_range, refuse};
use crate::types::numeric::Magnitude;
use crate::types::{Datum, Numeric};
use crate::{SqlError, SqlState};

/// An integer type.
pub trait Width: TryFrom<i64> {
    /// Its name in messages.
    const NAME: &'static str;
    /// How many bits it has.
    const BITS: u32;
    /// A value of it.
    fn datum(self) -> Datum;
}

impl Width for i16 {
    const NAME: &'static str = "smallint";
    const BITS: u32 = 16;
    fn datum(self) -> Datum {
        Datum::Int2(self)
    }
}

impl Width for i32 {
    const NAME: &'static str = "integer";
    const BITS: u32 = 32;
    fn datum(self) -> Datum {
        Datum::Int4(self)
    }
}

impl Width for i64 {
    const NAME: &'static str = "bigint";
    const BITS: u32 = 64;
    fn datum(self) -> Datum {
        Datum::Int8(self)
    }
}

/// A value that fits, or the error.
pub fn fit<T: Width>(value: Option<i64>) -> Outcome {
    value.and_then(|value| T::try_from(value).ok()).map(T::datum).ok_or_else(|| out_of_range(T::NAME))
}

/// The error of a division by zero.
pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// `+`
pub fn add<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(call.integer(0)?.checked_add(call.integer(1)?))
}

/// `-`
pub fn sub<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(call.integer(0)?.checked_sub(call.integer(1)?))
}

/// `*`
pub fn mul<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(call.integer(0)?.checked_mul(call.integer(1)?))
}

/// `/`, toward zero.
pub fn div<T: Width>(call: &Call<'_>) -> Outcome {
    match call.integer(1)? {
        0 => Err(division_by_zero()),
        divisor => fit::<T>(call.integer(0)?.checked_div(divisor)),
    }
}

/// `%`, with the sign of the dividend.
pub fn rem<T: Width>(call: &Call<'_>) -> Outcome {
    match call.integer(1)? {
        0 => Err(division_by_zero()),
        divisor => fit::<T>(Some(call.integer(0)?.checked_rem(divisor).unwrap_or(0))),
    }
}

/// Prefix `-`
pub fn neg<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(call.integer(0)?.checked_neg())
}

/// Prefix `+` of any number.
pub fn same(call: &Call<'_>) -> Outcome {
    Ok(call.at(0).clone())
}

/// `@`, `abs()`
pub fn abs<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(call.integer(0)?.checked_abs())
}

/// `&`
pub fn and<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(Some(call.integer(0)? & call.integer(1)?))
}

/// `|`
pub fn or<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(Some(call.integer(0)? | call.integer(1)?))
}

/// `#`
pub fn xor<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(Some(call.integer(0)? ^ call.integer(1)?))
}

/// `~`
pub fn not<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(Some(!call.integer(0)?))
}

/// `<<`: the count is taken modulo the bits of a machine word, as PostgreSQL's processors do.
pub fn shl<T: Width>(call: &Call<'_>) -> Outcome {
    let (value, count) = (call.integer(0)?, shift_count::<T>(call.integer(1)?));
    let shifted = value.checked_shl(count).unwrap_or(0);
    // Only the bits of the type stay; the highest of them is the sign.
    let spare = 64 - T::BITS;
    fit::<T>(Some(shifted << spare >> spare))
}

/// `>>`, which keeps the sign.
pub fn shr<T: Width>(call: &Call<'_>) -> Outcome {
    let (value, count) = (call.integer(0)?, shift_count::<T>(call.integer(1)?));
    fit::<T>(Some(value.checked_shr(count).unwrap_or(if value < 0 { -1 } else { 0 })))
}

fn shift_count<T: Width>(count: i64) -> u32 {
    let bits = if T::BITS == 64 { 64 } else { 32 };
    u32::try_from(count.rem_euclid(bits)).unwrap_or(0)
}

fn gcd_of(call: &Call<'_>) -> Result<i128, SqlError> {
    let (mut a, mut b) = (i128::from(call.integer(0)?), i128::from(call.integer(1)?));
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Ok(a.abs())
}

/// `gcd()`
pub fn gcd<T: Width>(call: &Call<'_>) -> Outcome {
    fit::<T>(i64::try_from(gcd_of(call)?).ok())
}

/// `lcm()`
pub fn lcm<T: Width>(call: &Call<'_>) -> Outcome {
    let divisor = gcd_of(call)?;
    if divisor == 0 {
        return fit::<T>(Some(0));
    }
    let multiple = i128::from(call.integer(0)?) / divisor * i128::from(call.integer(1)?);
    fit::<T>(i64::try_from(multiple.abs()).ok())
}

/// `factorial()`
pub fn factorial(call: &Call<'_>) -> Outcome {
    let n = call.integer(0)?;
    if n < 0 {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "factorial of a negative number is undefined");
    }
    if n > 32_177 {
        return refuse(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format");
    }
    let product = product(1, n.max(1).unsigned_abs());
    call.context.fuel.burn_bytes(64 * product.size());
    Numeric::finite(false, product, 0).map(Datum::Numeric)
}

/// The product of the numbers from one to another, which is not smaller: halves of about the same
/// length are multiplied, because that takes the least time.
fn product(from: u64, to: u64) -> Magnitude {
    if to - from < 8 {
        let factors = (from..=to).map(|factor| Magnitude::new(u128::from(factor)));
        return factors.fold(Magnitude::new(1), |product, factor| product.mul(&factor));
    }
    let middle = from.midpoint(to);
    product(from, middle).mul(&product(middle + 1, to))
}

/// `to_hex()`
pub fn to_hex(call: &Call<'_>) -> Outcome {
    Ok(Datum::text(match call.at(0) {
        Datum::Int4(value) => format!("{value:x}"),
        _ => format!("{:x}", call.integer(0)?),
    }))
}
