//! Random numbers: fast, seedable, the same on every machine.
//!
//! [`Rng`] is xoshiro256++ (Blackman, Vigna: "Scrambled Linear Pseudorandom Number Generators",
//! 2021), seeded through SplitMix64 from a *seed* and a *stream*. A run has one seed; every unit of
//! loading and every client has a stream of its own, so that neither the number of loading threads
//! nor the order in which clients take turns changes what any of them draws.
//!
//! An integer below `n` is the upper half of `n * x` for a random 64-bit `x`: no division, and a
//! bias of `n / 2^64`, which nobody can measure. On top of it stand TPC-C's draws (clauses 2.1.6,
//! 4.3.2): NURand, random texts and digits, last names, permutations.
//!
//! Left out: cryptographic strength.

use std::ops::RangeInclusive;
use std::sync::Arc;

/// A generator of random numbers: xoshiro256++.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// The characters of random texts: all letters and digits, and two more to make their number a
/// power of two, which lets ten characters come out of one draw (clause 4.3.2.2 asks for at least
/// the first 62).
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";

impl Rng {
    /// The generator number `stream` of a run with this seed.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut x = split_mix(seed) ^ stream.wrapping_mul(0xd1342543de82ef95);
        Rng {
            state: std::array::from_fn(|_| {
                x = x.wrapping_add(0x9e3779b97f4a7c15);
                split_mix(x)
            }),
        }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniform integer in `0..n`; `n` is not 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "there is no integer below 0");
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A uniform integer of a range that is neither empty nor all of `u64`.
    #[inline]
    pub fn uniform(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// True with a probability of `percent` per cent (0 to 100).
    #[inline]
    pub fn pct(&mut self, percent: f64) -> bool {
        const UNIT: f64 = 100.0 / (1u64 << 53) as f64;
        ((self.bits() >> 11) as f64) * UNIT < percent
    }

    /// Fills `text` with random letters and digits.
    #[inline]
    pub fn letters(&mut self, text: &mut [u8]) {
        for chunk in text.chunks_mut(10) {
            let mut bits = self.bits();
            for byte in chunk {
                *byte = CHARACTERS[(bits & 63) as usize];
                bits >>= 6;
            }
        }
    }

    /// A random alphanumeric text whose length is drawn from `length`, at the start of `text`;
    /// returns the length. What follows is zeroed: the representation of variable text in a column
    /// of fixed width.
    #[inline]
    pub fn astr(&mut self, text: &mut [u8], length: RangeInclusive<u64>) -> usize {
        let length = self.uniform(length) as usize;
        let (filled, rest) = text.split_at_mut(length);
        self.letters(filled);
        rest.fill(0);
        length
    }

    /// Fills `text` with random decimal digits.
    #[inline]
    pub fn nstr(&mut self, text: &mut [u8]) {
        for byte in text {
            *byte = b'0' + self.below(10) as u8;
        }
    }

    /// The numbers `1..=n` in random order (Fisher and Yates).
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (1..=n).collect();
        for i in (1..numbers.len()).rev() {
            numbers.swap(i, self.below(i as u64 + 1) as usize);
        }
        numbers
    }
}

/// A well-mixed 64-bit hash of an integer (the finalizer of SplitMix64).
fn split_mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d049bb133111eb);
    x ^ x >> 31
}

/// TPC-C's non-uniform integers of a range (clause 2.1.6): `((U(0..A) | U(x..y)) + C) mod (y - x +
/// 1) + x`.
#[derive(Clone, Copy, Debug)]
pub struct NuRand {
    a: u64,
    c: u64,
    low: u32,
    count: u32,
}

impl NuRand {
    /// The distribution with these constants over a range that is not empty.
    pub fn new(a: u32, c: u32, range: RangeInclusive<u32>) -> NuRand {
        assert!(!range.is_empty(), "NURand draws from a range that is not empty");
        NuRand {
            a: u64::from(a),
            c: u64::from(c),
            low: *range.start(),
            count: range.end() - range.start() + 1,
        }
    }

    /// Draws.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let coarse = rng.below(self.a + 1);
        let fine = u64::from(self.low) + rng.below(u64::from(self.count));
        ((coarse | fine) + self.c) as u32 % self.count + self.low
    }
}

/// The longest last name: ESE, CALLY and ATION have at most five letters each.
pub const LAST_NAME_MAX: usize = 15;

/// The last name number 0..999 (clause 4.3.2.3): the syllables of its three decimal digits, padded
/// with zeroes, and its length.
pub fn last_name(number: u32) -> ([u8; LAST_NAME_MAX + 1], usize) {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let mut name = [0; LAST_NAME_MAX + 1];
    let mut length = 0;
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize].as_bytes();
        name[length..length + syllable.len()].copy_from_slice(syllable);
        length += syllable.len();
    }
    (name, length)
}

/// Numbers below n of which each is the rarer the larger it is: number k, counted from 0, is drawn
/// in proportion to 1 / (k + 1)^theta. Exact; takes 8 n bytes.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// By number: how much of a total of 1 it and all smaller ones have.
    shares: Arc<[f64]>,
}

impl Zipf {
    /// For so many numbers, at least one.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut sum = 0.0;
        let sums: Vec<f64> = (1..=n)
            .map(|rank| {
                sum += (rank as f64).powf(-theta);
                sum
            })
            .collect();
        Zipf { shares: sums.into_iter().map(|share| share / sum).collect() }
    }

    /// Draws one.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let at = rng.bits() as f64 / (u64::MAX as f64 + 1.0);
        self.shares.partition_point(|&share| share <= at).min(self.shares.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_stream_name_one_sequence() {
        let draw = |seed, stream| Rng::new(seed, stream).bits();
        assert_eq!(draw(1, 2), draw(1, 2));
        let all = [draw(1, 2), draw(1, 3), draw(2, 2), draw(2, 1), draw(0, 0)];
        assert!(all.iter().enumerate().all(|(i, x)| !all[..i].contains(x)), "{all:?}");
    }

    #[test]
    fn uniform_numbers_cover_their_range_evenly() {
        let mut rng = Rng::new(1, 0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.uniform(5..=14) as usize - 5] += 1;
        }
        assert!(counts.iter().all(|&n| (9_500..10_500).contains(&n)), "{counts:?}");
        let hits = (0..100_000).filter(|_| rng.pct(15.0)).count();
        assert!((14_500..15_500).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| rng.pct(100.0)) && !(0..1000).any(|_| rng.pct(0.0)));
    }

    /// How much of all draws the hottest `share` per cent of the range get.
    fn hottest(distribution: NuRand, draws: u32, range: usize, share: usize) -> f64 {
        let mut rng = Rng::new(7, 0);
        let mut counts = vec![0u32; range + 1];
        for _ in 0..draws {
            counts[distribution.draw(&mut rng) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        f64::from(counts[..range * share / 100].iter().sum::<u32>()) / f64::from(draws)
    }

    #[test]
    fn nurand_is_as_skewed_as_measured_elsewhere() {
        let items = NuRand::new(8191, 7911, 1..=100_000);
        let customers = NuRand::new(1023, 259, 1..=3000);
        let near = |measured: f64, expected: f64| {
            assert!((measured - expected).abs() < 0.006, "{measured} instead of {expected}");
        };
        near(hottest(items, 2_000_000, 100_000, 1), 0.306);
        near(hottest(items, 2_000_000, 100_000, 10), 0.720);
        near(hottest(customers, 2_000_000, 3000, 1), 0.223);
        near(hottest(customers, 2_000_000, 3000, 10), 0.616);
    }

    #[test]
    fn last_names_are_spelled_in_syllables() {
        let spelled = |number| {
            let (name, length) = last_name(number);
            assert!(name[length..].iter().all(|&byte| byte == 0));
            String::from_utf8(name[..length].to_vec()).expect("syllables are ASCII")
        };
        assert_eq!(spelled(371), "PRICALLYOUGHT");
        assert_eq!(spelled(0), "BARBARBAR");
        assert_eq!(spelled(777), "CALLYCALLYCALLY");
        let names: std::collections::BTreeSet<_> = (0..1000).map(spelled).collect();
        assert_eq!(names.len(), 1000);
    }

    #[test]
    fn texts_have_the_length_that_was_asked_for() {
        let mut rng = Rng::new(3, 3);
        let mut lengths = [false; 17];
        for _ in 0..1000 {
            let mut text = [b'#'; 16];
            let length = rng.astr(&mut text, 8..=16);
            lengths[length] = true;
            assert!(text[..length].iter().all(|byte| CHARACTERS.contains(byte)));
            assert!(text[length..].iter().all(|&byte| byte == 0));
        }
        assert_eq!(lengths.iter().position(|&seen| seen), Some(8));
        assert!(lengths[8..].iter().all(|&seen| seen));
        let mut sorted = rng.permutation(100);
        assert_ne!(sorted, (1..=100).collect::<Vec<_>>());
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn zipfian_numbers_come_as_often_as_their_ranks_say() {
        let (zipf, mut rng) = (Zipf::new(1000, 0.99), Rng::new(1, 2));
        let mut counts = vec![0u32; 1000];
        (0..200_000).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
        let zeta: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1, 2, 5, 50] {
            let expected = 200_000.0 * f64::from(rank).powf(-0.99) / zeta;
            let count = f64::from(counts[rank as usize - 1]);
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {count}, not {expected}");
        }
        assert_eq!(Zipf::new(1, 0.99).draw(&mut rng), 0);
    }
}
