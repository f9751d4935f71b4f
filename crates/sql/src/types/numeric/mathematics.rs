//! Roots, logarithms and powers of numerics.
//!
//! Each is computed with digits to spare and rounded to the scale that PostgreSQL chooses: 16
//! significant digits, and not less than the arguments have. Ours are then the same digits as
//! PostgreSQL's as far as both are right to the last one.

use super::arithmetic::{SIGNIFICANT_DIGITS_MIN, division_by_zero, too_long};
use super::{DISPLAY_SCALE_MAX, Numeric, overflow};
use crate::{SqlError, SqlState};

/// Digits to spare.
const GUARD: i32 = 12;

/// Digits that a power or a logarithm is computed with at most: about a tenth of a second.
const SERIES_DIGITS_MAX: i32 = 2_000;

/// Digits that a square root is taken of at most: about a tenth of a second.
const ROOT_DIGITS_MAX: usize = 15_000;

/// Digits that a whole power is computed with at most: about a tenth of a second.
const POWER_DIGITS_MAX: i64 = 60_000;

type Result<T> = std::result::Result<T, SqlError>;

fn invalid(state: SqlState, message: &str) -> SqlError {
    SqlError::new(state, message)
}

/// A result's scale from the power of ten of its first digit and its arguments' scales.
fn result_scale(exponent: i64, arguments: &[&Numeric]) -> i32 {
    let mut scale = i64::from(SIGNIFICANT_DIGITS_MIN) - exponent;
    for argument in arguments {
        scale = scale.max(i64::from(argument.scale()));
    }
    i32::try_from(scale.clamp(0, i64::from(DISPLAY_SCALE_MAX))).unwrap_or(DISPLAY_SCALE_MAX)
}

/// The power of ten of the first digit of `ln(x)`, as PostgreSQL estimates it.
fn ln_exponent(x: &Numeric) -> i64 {
    if x.is_negative() || x.is_zero() {
        return 0;
    }
    let (low, high) = (Numeric::Small(9, 1), Numeric::Small(11, 1));
    if x.compare(&low).is_ge() && x.compare(&high).is_le() {
        return match x.sub(&Numeric::ONE) {
            Ok(rest) if !rest.is_zero() => rest.exponent(),
            _ => 0,
        };
    }
    // Of the first digits as a float: the number itself may be too large for one.
    let digits: String = x.magnitude().to_digits().chars().take(15).collect();
    let head = digits.parse::<f64>().unwrap_or(1.0);
    let power = x.exponent() - digits.len() as i64 + 1;
    let ln = head.ln() + power as f64 * std::f64::consts::LN_10;
    truncated(ln.abs().log10())
}

fn truncated(value: f64) -> i64 {
    // A bounded float: logarithms of what fits in memory.
    value.trunc() as i64
}

impl Numeric {
    /// Square root.
    pub fn sqrt(&self) -> Result<Numeric> {
        match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            number if number.is_negative() => {
                return Err(invalid(
                    SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                    "cannot take square root of a negative number",
                ));
            }
            _ => {}
        }
        let weight = if self.is_zero() { 0 } else { self.exponent().div_euclid(4) };
        let scale = result_scale((weight + 1) * 4 / 2 - 1, &[self]);
        self.sqrt_to(scale)
    }

    fn sqrt_to(&self, scale: i32) -> Result<Numeric> {
        let power = 2 * (scale + 1) - self.scale();
        let radicand = if power >= 0 {
            self.magnitude().mul_pow10(power.unsigned_abs() as usize)
        } else {
            self.magnitude().div_pow10(power.unsigned_abs() as usize).0
        };
        if radicand.digits() > ROOT_DIGITS_MAX {
            return Err(too_long("a square root", radicand.digits()));
        }
        Numeric::finite(false, radicand.sqrt(), scale + 1)?.round(scale)
    }

    /// `e` to the power of it.
    pub fn exp(&self) -> Result<Numeric> {
        match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            Numeric::NegativeInfinity => return Ok(Numeric::ZERO),
            _ => {}
        }
        let power = (self.to_f64() * std::f64::consts::LOG10_E).clamp(-2000.0, 2000.0);
        self.exp_to(result_scale(truncated(power), &[self]))
    }

    fn exp_to(&self, scale: i32) -> Result<Numeric> {
        let power = self.to_f64() * std::f64::consts::LOG10_E;
        if power >= super::WHOLE_DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if power < -f64::from(scale) - 2.0 {
            return Numeric::ZERO.round(scale);
        }
        // Halve until the series is short, then square as often.
        let halvings = if self.is_zero() { 0 } else { (self.to_f64().abs().log2().max(-8.0) + 8.0) as u32 };
        let whole = i32::try_from(truncated(power.max(0.0))).unwrap_or(0);
        let working = scale + whole + halvings.cast_signed() / 3 + GUARD;
        check_series(working)?;
        let divisor = Numeric::Small(1i128.checked_shl(halvings).unwrap_or(i128::MAX), 0);
        let x = self.div_to(&divisor, working)?;
        let (mut term, mut sum, mut n) = (Numeric::ONE.round(working)?, Numeric::ONE.round(working)?, 1i64);
        while !term.is_zero() {
            term = term.mul(&x)?.div_to(&Numeric::from(n), working)?;
            sum = sum.add(&term)?;
            n += 1;
        }
        for _ in 0..halvings {
            sum = sum.mul(&sum)?.round_any(working)?;
        }
        sum.round_any(scale)
    }

    /// Rounded to a scale above what users may ask for.
    fn round_any(&self, scale: i32) -> Result<Numeric> {
        self.div_to(&Numeric::ONE, scale)
    }

    /// Natural logarithm.
    pub fn ln(&self) -> Result<Numeric> {
        check_logarithm(self)?;
        match self {
            Numeric::NaN | Numeric::Infinity => Ok(self.clone()),
            _ => self.ln_to(result_scale(ln_exponent(self), &[self])),
        }
    }

    fn ln_to(&self, scale: i32) -> Result<Numeric> {
        let working = scale + GUARD;
        check_series(working)?;
        // x = y * 10^shift with y near 1.
        let near = self.compare(&Numeric::Small(9, 1)).is_ge() && self.compare(&Numeric::Small(2, 0)).is_le();
        let shift = if near { 0 } else { i32::try_from(self.exponent()).map_err(|_| overflow())? };
        let power = super::Magnitude::new(1).mul_pow10(shift.unsigned_abs() as usize);
        let power = Numeric::finite(false, power, 0)?;
        let y = if shift >= 0 { self.div_to(&power, working + 6)? } else { self.mul(&power)? };
        let mut result = ln_near_one(&y, working + 6)?;
        if shift != 0 {
            let ln10 = ln_near_one(&Numeric::Small(10, 0), working + 8)?;
            result = result.add(&ln10.mul(&Numeric::from(i64::from(shift)))?)?;
        }
        result.round_any(scale)
    }

    /// Logarithm of `x` to this base.
    pub fn log(&self, x: &Numeric) -> Result<Numeric> {
        check_logarithm(self)?;
        check_logarithm(x)?;
        match (self, x) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => return Ok(Numeric::NaN),
            (Numeric::Infinity, Numeric::Infinity) => return Ok(Numeric::NaN),
            (Numeric::Infinity, _) => return Ok(Numeric::ZERO),
            (_, Numeric::Infinity) => return Ok(Numeric::Infinity),
            _ => {}
        }
        let (base_exponent, exponent) = (ln_exponent(self), ln_exponent(x));
        let scale = result_scale(exponent - base_exponent, &[self, x]);
        let spare = i32::try_from(base_exponent.abs().max(exponent.abs())).unwrap_or(0);
        let base = self.ln_to(scale + spare + GUARD)?;
        if base.is_zero() {
            return Err(division_by_zero());
        }
        x.ln_to(scale + spare + GUARD)?.div_to(&base, scale)
    }

    /// This to the power of `exponent`.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if let Some(result) = self.infinite_power(exponent)? {
            return Ok(result);
        }
        let whole = exponent.trunc(0)?;
        let is_whole = whole.compare(exponent).is_eq();
        if self.is_zero() && exponent.is_negative() {
            return Err(invalid(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "zero raised to a negative power is undefined",
            ));
        }
        if self.is_negative() && !is_whole {
            return Err(invalid(
                SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if is_whole && let Some(n) = whole.to_i64().and_then(|n| i32::try_from(n).ok()) {
            return self.power_whole(n);
        }
        if self.is_zero() {
            return Numeric::ZERO.round(SIGNIFICANT_DIGITS_MIN);
        }
        let odd = is_whole && !whole.rem(&Numeric::from(2))?.is_zero();
        let base = self.clone().abs();
        let estimate =
            base.ln_to(24 - i32::try_from(ln_exponent(&base)).unwrap_or(0))?.mul(exponent)?.to_f64();
        let power = (estimate * std::f64::consts::LOG10_E).clamp(-2000.0, 2000.0);
        let scale = result_scale(truncated(power), &[self, exponent]);
        let spare = i32::try_from(exponent.exponent().max(0)).unwrap_or(0) + power.abs() as i32;
        let ln = base.ln_to(scale + spare + GUARD)?;
        let result = ln.mul(exponent)?.round_any(scale + spare + GUARD)?.exp_to(scale)?;
        Ok(if self.is_negative() && odd { result.negate() } else { result })
    }

    /// A whole power: by squaring, exactly if that is not more than memory should take.
    fn power_whole(&self, exponent: i32) -> Result<Numeric> {
        let scale = SIGNIFICANT_DIGITS_MIN.max(self.scale()).min(DISPLAY_SCALE_MAX);
        if exponent == 0 {
            return Numeric::ONE.round(scale);
        }
        if self.is_zero() {
            return Numeric::ZERO.round(scale);
        }
        let digits: String = self.magnitude().to_digits().chars().take(15).collect();
        let log =
            digits.parse::<f64>().unwrap_or(1.0).log10() + (self.exponent() - digits.len() as i64 + 1) as f64;
        let result_log = log * f64::from(exponent);
        if result_log > super::WHOLE_DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if result_log < -f64::from(scale) - 1.0 {
            return Numeric::ZERO.round(scale);
        }
        // Significant digits that every intermediate product keeps.
        let keep = i64::from(scale) + truncated(result_log.abs()) + 10 + i64::from(GUARD);
        if keep > POWER_DIGITS_MAX {
            return Err(too_long("a power", usize::try_from(keep).unwrap_or(0)));
        }
        let (mut base, mut result, mut n) = (self.clone(), Numeric::ONE, exponent.unsigned_abs());
        loop {
            if n & 1 == 1 {
                result = result.mul_keeping(&base, keep)?;
            }
            n >>= 1;
            if n == 0 {
                break;
            }
            base = base.mul_keeping(&base, keep)?;
        }
        if exponent < 0 { Numeric::ONE.div_to(&result, scale) } else { result.round_any(scale) }
    }

    fn mul_keeping(&self, other: &Numeric, digits: i64) -> Result<Numeric> {
        let product = self.mul(other)?;
        let scale = (digits - product.exponent()).max(0);
        if scale < i64::from(product.scale()) {
            product.round_any(i32::try_from(scale).unwrap_or(0))
        } else {
            Ok(product)
        }
    }

    /// What a power is if one of both is not finite.
    fn infinite_power(&self, exponent: &Numeric) -> Result<Option<Numeric>> {
        use Numeric::{Infinity, NaN, NegativeInfinity};
        let one = || self.compare(&Numeric::ONE).is_eq();
        Ok(Some(match (self, exponent) {
            (NaN, y) if y.is_zero() => Numeric::ONE,
            (_, NaN) if one() => Numeric::ONE,
            (NaN, _) | (_, NaN) => NaN,
            (x, y) if x.is_finite() && y.is_finite() => return Ok(None),
            (_, y) if y.is_zero() => Numeric::ONE,
            (_, _) if one() => Numeric::ONE,
            (x, y) if x.is_zero() && y.is_negative() => {
                return Err(invalid(
                    SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                    "zero raised to a negative power is undefined",
                ));
            }
            (x, Infinity | NegativeInfinity) => {
                let size = x.clone().abs().compare(&Numeric::ONE);
                if size.is_eq() {
                    Numeric::ONE
                } else if size.is_gt() != exponent.is_negative() {
                    Infinity
                } else {
                    Numeric::ZERO
                }
            }
            (Infinity, y) => {
                if y.is_negative() {
                    Numeric::ZERO
                } else {
                    Infinity
                }
            }
            (_, y) => {
                let whole = y.trunc(0)?;
                if whole.compare(y).is_ne() {
                    return Err(invalid(
                        SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                        "a negative number raised to a non-integer power yields a complex result",
                    ));
                }
                let odd = !whole.rem(&Numeric::from(2))?.is_zero();
                if y.is_negative() {
                    Numeric::ZERO
                } else if odd {
                    NegativeInfinity
                } else {
                    Infinity
                }
            }
        }))
    }
}

/// The logarithm of a number between 0.1 and 10: square roots until it is near 1, then the series
/// of `2 artanh((x - 1) / (x + 1))`.
fn ln_near_one(x: &Numeric, scale: i32) -> Result<Numeric> {
    let working = scale + 4;
    let (mut x, mut roots) = (x.clone(), 0u32);
    while x.compare(&Numeric::Small(9, 1)).is_lt() || x.compare(&Numeric::Small(11, 1)).is_gt() {
        x = x.sqrt_to(working)?;
        roots += 1;
    }
    let z = x.sub(&Numeric::ONE)?.div_to(&x.add(&Numeric::ONE)?, working)?;
    let square = z.mul(&z)?.round_any(working)?;
    let (mut power, mut sum, mut n) = (z.clone(), z, 1i64);
    loop {
        n += 2;
        power = power.mul(&square)?.round_any(working)?;
        let term = power.div_to(&Numeric::from(n), working)?;
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term)?;
    }
    sum.mul(&Numeric::Small(2i128 << roots, 0))
}

fn check_series(digits: i32) -> Result<()> {
    if digits > SERIES_DIGITS_MAX {
        return Err(too_long("a power or a logarithm", usize::try_from(digits).unwrap_or(0)));
    }
    Ok(())
}

fn check_logarithm(x: &Numeric) -> Result<()> {
    let refuse = |message| Err(invalid(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message));
    if x.is_zero() {
        refuse("cannot take logarithm of zero")
    } else if x.is_negative() {
        refuse("cannot take logarithm of a negative number")
    } else {
        Ok(())
    }
}
