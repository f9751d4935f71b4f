//! Sums, products, quotients and rounding of numerics, with PostgreSQL's result scales.

use super::{DISPLAY_SCALE_MAX, Magnitude, Numeric, SCALE_MAX, WHOLE_DIGITS_MAX, overflow};
use crate::{SqlError, SqlState};

/// Significant digits that a quotient has at least.
pub const SIGNIFICANT_DIGITS_MIN: i32 = 16;

/// Digits of a quotient times digits of the divisor at most: about a tenth of a second.
const DIVISION_MAX: usize = 3_000_000_000;

type Result<T> = std::result::Result<T, SqlError>;

/// 10 to a power that fits.
pub fn pow10(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

impl Numeric {
    /// Sum.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        use Numeric::{Infinity, NaN, NegativeInfinity, Small};
        match (self, other) {
            (NaN, _) | (_, NaN) | (Infinity, NegativeInfinity) | (NegativeInfinity, Infinity) => Ok(NaN),
            (Infinity, _) | (_, Infinity) => Ok(Infinity),
            (NegativeInfinity, _) | (_, NegativeInfinity) => Ok(NegativeInfinity),
            (Small(left, a), Small(right, b)) => {
                let scale = (*a).max(*b);
                let at = |mantissa: i128, from: u16| mantissa.checked_mul(pow10(u32::from(scale - from))?);
                match at(*left, *a).zip(at(*right, *b)).and_then(|(left, right)| left.checked_add(right)) {
                    Some(sum) => Ok(Small(sum, scale)),
                    None => self.add_big(other),
                }
            }
            _ => self.add_big(other),
        }
    }

    fn add_big(&self, other: &Numeric) -> Result<Numeric> {
        let scale = self.scale().max(other.scale());
        let at =
            |number: &Numeric| number.magnitude().mul_pow10((scale - number.scale()).unsigned_abs() as usize);
        let (left, right) = (at(self), at(other));
        if self.is_negative() == other.is_negative() {
            return Numeric::finite(self.is_negative(), left.add(&right), scale);
        }
        if left >= right {
            Numeric::finite(self.is_negative(), left.sub(&right), scale)
        } else {
            Numeric::finite(other.is_negative(), right.sub(&left), scale)
        }
    }

    /// Difference.
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.clone().negate())
    }

    /// Product.
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Numeric::Small(left, a), Numeric::Small(right, b)) = (self, other)
            && let Some(product) = left.checked_mul(*right)
            && let Some(scale) = a.checked_add(*b).filter(|scale| i32::from(*scale) <= SCALE_MAX)
        {
            return Ok(Numeric::Small(product, scale));
        }
        if !self.is_finite() || !other.is_finite() {
            return Ok(self.infinite_product(other));
        }
        let scale = self.scale() + other.scale();
        // The product has so many digits before the point, or one more.
        if self.exponent() + other.exponent() >= WHOLE_DIGITS_MAX {
            return Err(overflow());
        }
        let magnitude = self.magnitude().mul(&other.magnitude());
        let negative = self.is_negative() != other.is_negative();
        rounded(negative, magnitude, scale, scale.min(SCALE_MAX))
    }

    fn infinite_product(&self, other: &Numeric) -> Numeric {
        if matches!(self, Numeric::NaN) || matches!(other, Numeric::NaN) || self.is_zero() || other.is_zero()
        {
            Numeric::NaN
        } else if self.is_negative() == other.is_negative() {
            Numeric::Infinity
        } else {
            Numeric::NegativeInfinity
        }
    }

    /// Quotient with the scale that PostgreSQL gives it.
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(result) = self.infinite_quotient(other)? {
            return Ok(result);
        }
        self.div_to(other, self.quotient_scale(other))
    }

    /// The scale of a quotient: 16 significant digits, and not less than either number has.
    pub fn quotient_scale(&self, other: &Numeric) -> i32 {
        let ((weight, head), (other_weight, other_head)) = (self.base_10000_head(), other.base_10000_head());
        let quotient_weight = weight - other_weight - i64::from(head <= other_head);
        let scale = i64::from(SIGNIFICANT_DIGITS_MIN) - quotient_weight * 4;
        let scale = scale.max(i64::from(self.scale())).max(i64::from(other.scale()));
        i32::try_from(scale.clamp(0, i64::from(DISPLAY_SCALE_MAX))).unwrap_or(DISPLAY_SCALE_MAX)
    }

    /// Quotient rounded to a scale; the divisor is a number other than 0.
    pub fn div_to(&self, other: &Numeric, scale: i32) -> Result<Numeric> {
        let shift = scale + other.scale() - self.scale();
        if let (Numeric::Small(left, _), Numeric::Small(right, _)) = (self, other)
            && let Ok(shift) = u32::try_from(shift)
            && let Some(dividend) = pow10(shift).and_then(|power| left.checked_mul(power))
            && let (Some(quotient), Some(remainder)) =
                (dividend.checked_div(*right), dividend.checked_rem(*right))
        {
            let up = remainder.unsigned_abs() >= right.unsigned_abs() - remainder.unsigned_abs();
            let away = if (*left < 0) == (*right < 0) { 1 } else { -1 };
            let rounded = if up && remainder != 0 { quotient + away } else { quotient };
            return Numeric::finite(rounded < 0, Magnitude::new(rounded.unsigned_abs()), scale);
        }
        let (mut left, mut right) = (self.magnitude(), other.magnitude());
        if right.is_zero() {
            return Err(division_by_zero());
        }
        let power = shift.unsigned_abs() as usize;
        if shift >= 0 {
            left = left.mul_pow10(power);
        } else {
            right = right.mul_pow10(power);
        }
        let (quotient, remainder) = divided(&left, &right)?;
        let up = remainder.mul_small(2) >= right;
        let quotient = if up { quotient.add(&Magnitude::new(1)) } else { quotient };
        Numeric::finite(self.is_negative() != other.is_negative() && !quotient.is_zero(), quotient, scale)
    }

    /// What a quotient is if one of both is not finite or the divisor is 0.
    fn infinite_quotient(&self, other: &Numeric) -> Result<Option<Numeric>> {
        use Numeric::{Infinity, NaN, NegativeInfinity};
        Ok(Some(match (self, other) {
            (NaN, _) | (_, NaN) => NaN,
            (Infinity | NegativeInfinity, Infinity | NegativeInfinity) => NaN,
            (_, divisor) if divisor.is_zero() => return Err(division_by_zero()),
            (Infinity | NegativeInfinity, divisor) => {
                if self.is_negative() == divisor.is_negative() {
                    Infinity
                } else {
                    NegativeInfinity
                }
            }
            (_, Infinity | NegativeInfinity) => Numeric::ZERO,
            _ => return Ok(None),
        }))
    }

    /// The whole part of the quotient.
    pub fn div_whole(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(result) = self.infinite_quotient(other)? {
            return Ok(result);
        }
        let scale = self.scale().max(other.scale());
        let at =
            |number: &Numeric| number.magnitude().mul_pow10((scale - number.scale()).unsigned_abs() as usize);
        let quotient = divided(&at(self), &at(other))?.0;
        Numeric::finite(self.is_negative() != other.is_negative() && !quotient.is_zero(), quotient, 0)
    }

    /// Remainder with the sign of the dividend.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        use Numeric::{Infinity, NaN, NegativeInfinity};
        match (self, other) {
            (NaN, _) | (_, NaN) => return Ok(NaN),
            (_, divisor) if divisor.is_zero() => return Err(division_by_zero()),
            (Infinity | NegativeInfinity, _) => return Ok(NaN),
            (_, Infinity | NegativeInfinity) => return Ok(self.clone()),
            _ => {}
        }
        let scale = self.scale().max(other.scale());
        let at =
            |number: &Numeric| number.magnitude().mul_pow10((scale - number.scale()).unsigned_abs() as usize);
        let remainder = divided(&at(self), &at(other))?.1;
        Numeric::finite(self.is_negative() && !remainder.is_zero(), remainder, scale)
    }

    /// Rounded half away from zero to a scale, which may be negative: then to tens, hundreds, ...
    pub fn round(&self, scale: i32) -> Result<Numeric> {
        let scale = scale.clamp(-2000, 2000);
        self.rescale(scale, true)
    }

    /// Cut off at a scale, which may be negative.
    pub fn trunc(&self, scale: i32) -> Result<Numeric> {
        self.rescale(scale.clamp(-2000, 2000), false)
    }

    fn rescale(&self, scale: i32, round: bool) -> Result<Numeric> {
        if !self.is_finite() || scale == self.scale() {
            return Ok(self.clone());
        }
        if let Numeric::Small(mantissa, from) = self
            && let Ok(to) = u16::try_from(scale)
        {
            let power = u32::from(to.abs_diff(*from));
            let result = match pow10(power) {
                Some(power) if to > *from => mantissa.checked_mul(power),
                Some(power) => {
                    let (quotient, remainder) = (mantissa / power, mantissa % power);
                    let up = round && remainder.unsigned_abs() >= power.unsigned_abs() / 2;
                    Some(if up { quotient + mantissa.signum() } else { quotient })
                }
                None => None,
            };
            if let Some(mantissa) = result {
                return Ok(Numeric::Small(mantissa, to));
            }
        }
        if scale >= self.scale() {
            let magnitude = self.magnitude().mul_pow10((scale - self.scale()).unsigned_abs() as usize);
            return Numeric::finite(self.is_negative(), magnitude, scale);
        }
        if round {
            return rounded(self.is_negative(), self.magnitude(), self.scale(), scale);
        }
        let quotient = self.magnitude().div_pow10((self.scale() - scale).unsigned_abs() as usize).0;
        Numeric::finite(self.is_negative() && !quotient.is_zero(), quotient, scale)
    }

    /// The nearest whole number above.
    pub fn ceil(&self) -> Result<Numeric> {
        let whole = self.trunc(0)?;
        if self.compare(&whole).is_gt() && self.is_finite() { whole.add(&Numeric::ONE) } else { Ok(whole) }
    }

    /// The nearest whole number below.
    pub fn floor(&self) -> Result<Numeric> {
        self.clone().negate().ceil().map(Numeric::negate)
    }

    /// Without zeros at the end of its fraction.
    pub fn trimmed(&self) -> Numeric {
        let scale = usize::try_from(self.scale()).unwrap_or(0);
        let zeros = if self.is_zero() { scale } else { self.magnitude().trailing_zeros().min(scale) };
        let kept = i32::try_from(scale - zeros).unwrap_or(0);
        self.rescale(kept, false).unwrap_or_else(|_| self.clone())
    }
}

/// Quotient and remainder, unless that takes too long.
fn divided(dividend: &Magnitude, divisor: &Magnitude) -> Result<(Magnitude, Magnitude)> {
    let (long, short) = (dividend.digits(), divisor.digits());
    if long.saturating_sub(short).saturating_mul(short) > DIVISION_MAX {
        return Err(too_long("a division", long));
    }
    Ok(dividend.div(divisor))
}

/// The error of what would take too long with numbers of so many digits.
pub fn too_long(what: &str, digits: usize) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "numeric computation would take too long")
        .detail(format!("It is {what} with {digits} digits."))
}

/// A number rounded half away from zero from one scale to a smaller one.
fn rounded(negative: bool, magnitude: Magnitude, from: i32, to: i32) -> Result<Numeric> {
    let (quotient, up) = magnitude.div_pow10((from - to).unsigned_abs() as usize);
    let quotient = if up { quotient.add(&Magnitude::new(1)) } else { quotient };
    Numeric::finite(negative && !quotient.is_zero(), quotient, to)
}
