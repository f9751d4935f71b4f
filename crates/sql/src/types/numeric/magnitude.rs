//! Natural numbers of any size, in base 10⁹: what a numeric has beyond 38 digits.
//!
//! The base is a power of ten because decimal shifts and rounding are what numerics do most, and
//! because text is nearly for free; its square fits in a `u64`.

use std::cmp::Ordering;

const BASE: u64 = 1_000_000_000;
const DIGITS: usize = 9;
/// Limbs of the shorter number from which on a product is made of the products of halves.
const SPLIT_MIN: usize = 48;

/// A natural number: limbs from the lowest on, the highest of which is not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Magnitude(Vec<u32>);

impl Magnitude {
    /// The number of an integer.
    pub fn new(mut value: u128) -> Magnitude {
        let mut limbs = Vec::new();
        while value > 0 {
            limbs.push(low(value % u128::from(BASE)));
            value /= u128::from(BASE);
        }
        Magnitude(limbs)
    }

    /// The number of decimal digits, all of which must be `0` to `9`.
    pub fn from_digits(digits: &[u8]) -> Magnitude {
        let mut limbs = Vec::with_capacity(digits.len() / DIGITS + 1);
        for chunk in digits.rchunks(DIGITS) {
            let limb = chunk.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit.wrapping_sub(b'0')));
            limbs.push(limb);
        }
        Magnitude(limbs).trimmed()
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes its limbs take.
    pub fn size(&self) -> usize {
        std::mem::size_of_val(self.0.as_slice())
    }

    /// How many decimal digits it has; 0 has none.
    pub fn digits(&self) -> usize {
        match self.0.last() {
            Some(&high) if high > 0 => (self.0.len() - 1) * DIGITS + high.ilog10() as usize + 1,
            _ => 0,
        }
    }

    /// How many zeros there are at the end of its decimal digits; none of 0.
    pub fn trailing_zeros(&self) -> usize {
        let Some(limbs) = self.0.iter().position(|limb| *limb != 0) else { return 0 };
        let mut limb = self.0.get(limbs).copied().unwrap_or(1);
        let mut zeros = limbs * DIGITS;
        while limb % 10 == 0 {
            limb /= 10;
            zeros += 1;
        }
        zeros
    }

    /// Its decimal digits, without leading zeros.
    pub fn to_digits(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * DIGITS);
        for (place, limb) in self.0.iter().rev().enumerate() {
            if place == 0 {
                text.push_str(&limb.to_string());
            } else {
                text.push_str(&format!("{limb:09}"));
            }
        }
        if text.is_empty() {
            text.push('0');
        }
        text
    }

    /// The same as an integer, if it fits.
    pub fn to_u128(&self) -> Option<u128> {
        let mut value = 0u128;
        for limb in self.0.iter().rev() {
            value = value.checked_mul(u128::from(BASE))?.checked_add(u128::from(*limb))?;
        }
        Some(value)
    }

    /// Sum.
    pub fn add(&self, other: &Magnitude) -> Magnitude {
        let length = self.0.len().max(other.0.len());
        let mut limbs = Vec::with_capacity(length + 1);
        let mut carry = 0u64;
        for place in 0..length {
            let sum = self.limb(place) + other.limb(place) + carry;
            limbs.push(low64(sum % BASE));
            carry = sum / BASE;
        }
        limbs.push(low64(carry));
        Magnitude(limbs).trimmed()
    }

    /// Difference; `other` must not be larger.
    pub fn sub(&self, other: &Magnitude) -> Magnitude {
        let mut limbs = Vec::with_capacity(self.0.len());
        let mut borrow = 0u64;
        for place in 0..self.0.len() {
            let taken = other.limb(place) + borrow;
            let have = self.limb(place);
            borrow = u64::from(have < taken);
            limbs.push(low64(have + borrow * BASE - taken));
        }
        Magnitude(limbs).trimmed()
    }

    /// Product. Of long numbers it is made of three products of halves (Karatsuba):
    /// `(a + bx)(c + dx) = ac + ((a + b)(c + d) - ac - bd)x + bdx²`.
    pub fn mul(&self, other: &Magnitude) -> Magnitude {
        let (long, short) = if self.0.len() >= other.0.len() { (self, other) } else { (other, self) };
        if short.0.len() < SPLIT_MIN {
            return long.mul_limbs(short);
        }
        let half = long.0.len().div_ceil(2);
        let (a, b) = long.split(half);
        if short.0.len() <= half {
            return a.mul(short).add_shifted(&b.mul(short), half);
        }
        let (c, d) = short.split(half);
        let (low, high) = (a.mul(&c), b.mul(&d));
        let middle = a.add(&b).mul(&c.add(&d)).sub(&low).sub(&high);
        low.add_shifted(&middle, half).add_shifted(&high, 2 * half)
    }

    /// The number of the lowest limbs and that of the others.
    fn split(&self, limbs: usize) -> (Magnitude, Magnitude) {
        let (low, high) = self.0.split_at(limbs.min(self.0.len()));
        (Magnitude(low.to_vec()).trimmed(), Magnitude(high.to_vec()))
    }

    /// Sum with a number that has so many limbs of 0 put below it.
    fn add_shifted(mut self, other: &Magnitude, limbs: usize) -> Magnitude {
        self.0.resize(self.0.len().max(limbs + other.0.len()) + 1, 0);
        add_to(self.0.get_mut(limbs..).unwrap_or_default(), &other.0);
        self.trimmed()
    }

    /// Product, limb by limb.
    fn mul_limbs(&self, other: &Magnitude) -> Magnitude {
        let mut limbs = vec![0u32; self.0.len() + other.0.len() + 1];
        for (place, &left) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            let row = limbs.iter_mut().skip(place);
            let rights = other.0.iter().copied().chain([0]);
            for (limb, right) in row.zip(rights) {
                let sum = u64::from(*limb) + u64::from(left) * u64::from(right) + carry;
                *limb = low64(sum % BASE);
                carry = sum / BASE;
            }
        }
        Magnitude(limbs).trimmed()
    }

    /// Product with a small number.
    pub fn mul_small(&self, other: u32) -> Magnitude {
        self.mul(&Magnitude::new(u128::from(other)))
    }

    /// Product with a power of ten.
    pub fn mul_pow10(&self, exponent: usize) -> Magnitude {
        if self.is_zero() {
            return self.clone();
        }
        let mut limbs = vec![0u32; exponent / DIGITS];
        let factor = 10u32.pow(low(exponent as u128 % DIGITS as u128));
        limbs.extend(self.mul_small(factor).0);
        Magnitude(limbs)
    }

    /// Quotient by a power of ten, and whether what is lost is at least a half.
    pub fn div_pow10(&self, exponent: usize) -> (Magnitude, bool) {
        if exponent == 0 {
            return (self.clone(), false);
        }
        let limbs: Vec<u32> = self.0.iter().skip((exponent - 1) / DIGITS).copied().collect();
        let all_but_one =
            Magnitude(limbs).div_small(10u32.pow(low((exponent as u128 - 1) % DIGITS as u128))).0;
        let (quotient, last) = all_but_one.div_small(10);
        (quotient, last >= 5)
    }

    /// Quotient and remainder by a small number that is not 0.
    pub fn div_small(&self, divisor: u32) -> (Magnitude, u32) {
        let divisor = u64::from(divisor.max(1));
        let mut remainder = 0u64;
        let mut limbs: Vec<u32> = Vec::with_capacity(self.0.len());
        for &limb in self.0.iter().rev() {
            let value = remainder * BASE + u64::from(limb);
            limbs.push(low64(value / divisor));
            remainder = value % divisor;
        }
        limbs.reverse();
        (Magnitude(limbs).trimmed(), low64(remainder))
    }

    /// Quotient and remainder by a number that is not 0 (Knuth, volume 2, algorithm D).
    pub fn div(&self, divisor: &Magnitude) -> (Magnitude, Magnitude) {
        if self.cmp(divisor) == Ordering::Less {
            return (Magnitude(Vec::new()), self.clone());
        }
        let Some(&high) = divisor.0.last() else { return (Magnitude(Vec::new()), self.clone()) };
        if divisor.0.len() == 1 {
            let (quotient, remainder) = self.div_small(high);
            return (quotient, Magnitude::new(u128::from(remainder)));
        }
        // D1: normalise, so that a digit of the quotient is guessed from two limbs.
        let scale = low64(BASE / (u64::from(high) + 1));
        let v = divisor.mul_small(scale).0;
        let mut u = self.mul_small(scale).0;
        u.resize(self.0.len() + 1, 0);
        let n = v.len();
        let at = |limbs: &[u32], place: usize| limbs.get(place).copied().map_or(0, u64::from);
        let (v1, v2) = (at(&v, n - 1), at(&v, n - 2));
        let mut quotient = vec![0u32; u.len() - n];
        for j in (0..u.len() - n).rev() {
            // D3: guess.
            let top = at(&u, j + n) * BASE + at(&u, j + n - 1);
            let (mut guess, mut rest) = (top / v1, top % v1);
            while guess >= BASE || guess * v2 > rest * BASE + at(&u, j + n - 2) {
                guess -= 1;
                rest += v1;
                if rest >= BASE {
                    break;
                }
            }
            // D4: multiply and subtract; D6: add back what was too much.
            if subtract(u.get_mut(j..).unwrap_or_default(), &v, guess) {
                guess -= 1;
                add_back(u.get_mut(j..).unwrap_or_default(), &v);
            }
            if let Some(digit) = quotient.get_mut(j) {
                *digit = low64(guess);
            }
        }
        u.truncate(n);
        let remainder = Magnitude(u).trimmed().div_small(scale).0;
        (Magnitude(quotient).trimmed(), remainder)
    }

    /// The largest number whose square is not larger (Newton's method, from above).
    pub fn sqrt(&self) -> Magnitude {
        if let Some(small) = self.to_u128() {
            return Magnitude::new(small.isqrt());
        }
        // The first 34 digits or so give the first 17 of the root, rounded up.
        let drop = self.digits().saturating_sub(34).next_multiple_of(2);
        let top = self.div_pow10(drop).0.to_u128().unwrap_or(0).isqrt() + 1;
        let mut root = Magnitude::new(top).mul_pow10(drop / 2);
        loop {
            let next = root.add(&self.div(&root).0).div_small(2).0;
            if next.cmp(&root) != Ordering::Less {
                return root;
            }
            root = next;
        }
    }

    fn limb(&self, place: usize) -> u64 {
        self.0.get(place).copied().map_or(0, u64::from)
    }

    fn trimmed(mut self) -> Magnitude {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Magnitude) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Magnitude) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// `u -= guess * v`; whether it was too much.
fn subtract(u: &mut [u32], v: &[u32], guess: u64) -> bool {
    let (mut carry, mut borrow) = (0u64, 0u64);
    for (limb, &right) in u.iter_mut().zip(v.iter().chain([&0])) {
        let product = guess * u64::from(right) + carry;
        carry = product / BASE;
        let taken = product % BASE + borrow;
        let have = u64::from(*limb);
        borrow = u64::from(have < taken);
        *limb = low64(have + borrow * BASE - taken);
    }
    borrow == 1
}

/// `u += v`, as long as there is something to add.
fn add_to(u: &mut [u32], v: &[u32]) {
    let mut carry = 0u64;
    for (place, limb) in u.iter_mut().enumerate() {
        let right = v.get(place).copied();
        if right.is_none() && carry == 0 {
            return;
        }
        let sum = u64::from(*limb) + right.map_or(0, u64::from) + carry;
        *limb = low64(sum % BASE);
        carry = sum / BASE;
    }
}

/// `u += v`, whose carry out of the highest limb undoes a borrow.
fn add_back(u: &mut [u32], v: &[u32]) {
    let mut carry = 0u64;
    for (limb, &right) in u.iter_mut().zip(v.iter().chain([&0])) {
        let sum = u64::from(*limb) + u64::from(right) + carry;
        *limb = low64(sum % BASE);
        carry = sum / BASE;
    }
}

/// What is below the base by the arithmetic around it.
fn low64(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn low(value: u128) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_products_are_those_of_their_limbs() {
        let number = |limbs: usize, seed: u32| {
            let limb =
                |place: usize| low((place as u128 + u128::from(seed)) * 7_919 * 104_729 % 1_000_000_000);
            Magnitude((0..limbs).map(limb).chain([1]).collect())
        };
        for (a, b) in [(48, 48), (97, 50), (130, 61), (300, 49), (400, 400), (513, 100)] {
            let (a, b) = (number(a, 1), number(b, 2));
            assert_eq!(a.mul(&b), a.mul_limbs(&b));
            let nines = Magnitude(vec![999_999_999; a.0.len()]);
            assert_eq!(nines.mul(&b), nines.mul_limbs(&b));
            assert_eq!(nines.mul(&nines), nines.mul_limbs(&nines));
        }
        assert_eq!(Magnitude::new(1_200).mul_pow10(30).trailing_zeros(), 32);
        assert_eq!(Magnitude::new(0).trailing_zeros(), 0);
    }

    proptest! {
        #[test]
        fn division_undoes_multiplication(a in any::<[u128; 3]>(), b in any::<[u128; 2]>(), c in any::<u64>()) {
            let wide = |parts: &[u128]| {
                parts.iter().fold(Magnitude::new(0), |sum, part| {
                    sum.mul_pow10(39).add(&Magnitude::new(*part))
                })
            };
            let (a, b, c) = (wide(&a), wide(&b), Magnitude::new(u128::from(c)));
            for divisor in [b, c] {
                if divisor.is_zero() {
                    continue;
                }
                let (quotient, remainder) = a.div(&divisor);
                prop_assert!(remainder < divisor);
                prop_assert_eq!(&quotient.mul(&divisor).add(&remainder), &a);
            }
            let root = a.sqrt();
            prop_assert!(root.mul(&root) <= a);
            let next = root.add(&Magnitude::new(1));
            prop_assert!(next.mul(&next) > a);
        }

        #[test]
        fn small_numbers_agree_with_the_machine(a in any::<u64>(), b in 1..u64::MAX, k in 0usize..19) {
            let (left, right) = (Magnitude::new(a.into()), Magnitude::new(b.into()));
            prop_assert_eq!(left.mul(&right).to_u128(), Some(u128::from(a) * u128::from(b)));
            prop_assert_eq!(left.div(&right).0.to_u128(), Some(u128::from(a / b)));
            prop_assert_eq!(left.add(&right).sub(&right), left.clone());
            prop_assert_eq!(left.div_pow10(k).0.to_u128(), Some(u128::from(a / 10u64.pow(k as u32))));
            prop_assert_eq!(Magnitude::from_digits(a.to_string().as_bytes()), left.clone());
            prop_assert_eq!(left.to_digits(), a.to_string());
        }
    }
}
