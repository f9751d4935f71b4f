//! Chance, all of it from one seed.
//!
//! Every concern has a stream of its own, derived from the seed, the concern's name and a number
//! (of a link, a machine, a shard): that a new draw is made in one place shifts nothing elsewhere,
//! and a fault that is switched off leaves all others as they were. The generator is SplitMix64; a
//! stream begins at a state that was scrambled twice, so that neighbouring numbers do not give
//! shifted copies of one sequence.
//!
//! Only integer arithmetic and one comparison of floating-point numbers: the same on every machine.

/// The odd constant by which SplitMix64 advances.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// The stream of the `number`-th of a concern.
    pub(super) fn new(seed: u64, concern: &str, number: u64) -> Draw {
        let name = concern.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut first = Draw(seed ^ name);
        let mut second = Draw(first.next() ^ number.wrapping_mul(STEP));
        Draw(second.next())
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below the bound, each as likely (but for a bias of 2^-64 of the bound); 0 if the
    /// bound is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `-bound` to `bound`.
    pub(super) fn around(&mut self, bound: u64) -> i64 {
        let bound = bound.min(i64::MAX as u64 / 2);
        self.below(2 * bound + 1) as i64 - bound as i64
    }

    /// True with this probability. Draws even if the answer is certain, so that the stream goes on
    /// alike.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_concern_and_number_and_repeat_otherwise() {
        let first = |seed, concern, number| Draw::new(seed, concern, number).next();
        assert_eq!(first(1, "loss", 0), first(1, "loss", 0));
        let all = [first(1, "loss", 0), first(2, "loss", 0), first(1, "pause", 0), first(1, "loss", 1)];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[..i].contains(a));
        }
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut draw = Draw::new(7, "bounds", 0);
        assert_eq!(draw.below(0), 0);
        assert_eq!(draw.around(0), 0);
        assert!((0..1000).all(|_| draw.below(10) < 10));
        assert!((0..1000).all(|_| draw.around(3).abs() <= 3));
        assert!((0..1000).all(|_| !draw.chance(0.0)));
        assert!((0..1000).all(|_| draw.chance(1.0)));
    }
}
