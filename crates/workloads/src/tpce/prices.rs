//! What a security costs at a moment: a triangle wave between 20.00 and 30.00 with a period of
//! fifteen minutes, of another phase for each security.
//!
//! So a limit between these is reached within fifteen minutes, whatever it is.

/// The lowest price, in cents.
pub const LOWEST: i64 = 2000;
/// The highest price, in cents.
pub const HIGHEST: i64 = 3000;
/// The period, in milliseconds.
pub const PERIOD_MS: u64 = 900_000;

/// Prices from a moment of trading on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices {
    /// Trading time that has passed when time 0 is, in seconds.
    pub before_s: u64,
}

impl Prices {
    /// Where in its period a security, by its position, is at a time in milliseconds of trading.
    fn phase_ms(self, position: u32, time_ms: u64) -> u64 {
        let phase = (u64::from(position) * 556_237 + 253_791 + 1000 * self.before_s) % PERIOD_MS;
        (time_ms + phase) % PERIOD_MS
    }

    /// The price in cents.
    pub fn at(self, position: u32, time_ms: u64) -> i64 {
        let (x, half) = (self.phase_ms(position, time_ms), PERIOD_MS / 2);
        let height = if x < half { x } else { PERIOD_MS - x };
        let range = (HIGHEST - LOWEST) as u64;
        LOWEST + ((height * range + half / 2) / half) as i64
    }

    /// When the price of a security next is at most (`falls`) or at least a limit in cents between
    /// [`LOWEST`] and [`HIGHEST`], not before a time in milliseconds.
    pub fn reaches(self, position: u32, time_ms: u64, limit: i64, falls: bool) -> u64 {
        let x = self.phase_ms(position, time_ms);
        let (half, range) = (PERIOD_MS / 2, (HIGHEST - LOWEST) as u64);
        let height = (limit - LOWEST).clamp(0, HIGHEST - LOWEST) as u64;
        let now = self.at(position, time_ms);
        if (falls && now <= limit) || (!falls && now >= limit) {
            return time_ms;
        }
        // The first moment at which the rounded price is the limit, on the way there.
        let target = match falls {
            true => PERIOD_MS - ((height * half + half / 2) / range).min(half),
            false => ((height * half).saturating_sub(half / 2)).div_ceil(range),
        };
        let mut at = time_ms + (target + PERIOD_MS - x) % PERIOD_MS;
        // Rounding puts the moment at most a millisecond off.
        let reached = |at: u64| match falls {
            true => self.at(position, at) <= limit,
            false => self.at(position, at) >= limit,
        };
        while !reached(at) {
            at += 1;
        }
        while at > time_ms && reached(at - 1) {
            at -= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_go_up_and_down_between_their_limits_and_every_limit_is_reached() {
        let prices = Prices { before_s: 28_800 };
        for position in [0, 1, 77, 684] {
            let all: Vec<i64> = (0..PERIOD_MS).step_by(100).map(|time| prices.at(position, time)).collect();
            assert_eq!((all.iter().min(), all.iter().max()), (Some(&LOWEST), Some(&HIGHEST)));
            assert!(all.windows(2).all(|two| (two[0] - two[1]).abs() <= 1), "it does not jump");
            assert_eq!(prices.at(position, 5), prices.at(position, 5 + PERIOD_MS));
            for limit in [LOWEST, 2001, 2500, 2999, HIGHEST] {
                for falls in [false, true] {
                    let at = prices.reaches(position, 1234, limit, falls);
                    let there = |at| match falls {
                        true => prices.at(position, at) <= limit,
                        false => prices.at(position, at) >= limit,
                    };
                    assert!(there(at) && at < 1234 + PERIOD_MS, "{position} {limit} {falls}");
                    assert!(at == 1234 || !there(at - 1), "{position} {limit} {falls}: not before");
                }
            }
        }
    }
}
