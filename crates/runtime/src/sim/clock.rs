//! The clock of one machine: wrong from the start, running too fast or too slow, set now and then.
//!
//! A clock is a line: what it read at some true time, and how fast it runs since. Setting it starts
//! a new line. Unlike what a shard makes of it, it can fall.
//!
//! True time and clocks are Unix nanoseconds; virtual time 0 is [`EPOCH_NS`]. Left out: drift that
//! changes.

use plimsoll_types::Timestamp;

/// What a perfect clock reads at virtual time 0, in Unix nanoseconds: somewhere in November 2023.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// One machine's clock.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The virtual time at which the present line begins, and what the clock read then.
    since_ns: u64,
    reading_ns: u64,
    /// How much faster than true time it runs, in millionths.
    drift_ppm: i64,
    /// The largest error at the ends of earlier lines.
    worst_ns: u64,
}

impl Clock {
    /// A clock that is so wrong at virtual time 0, and drifts.
    pub(super) fn new(offset_ns: i64, drift_ppm: i64) -> Clock {
        assert!(drift_ppm > -1_000_000, "a clock runs forwards");
        let reading_ns = EPOCH_NS.saturating_add_signed(offset_ns);
        Clock { since_ns: 0, reading_ns, drift_ppm, worst_ns: offset_ns.unsigned_abs() }
    }

    /// What it reads at a virtual time not before the last [`Clock::step`].
    pub(super) fn at(&self, now_ns: u64) -> Timestamp {
        let passed = now_ns - self.since_ns;
        // Whole seconds drift by whole nanoseconds.
        let (seconds, rest) = ((passed / 1_000_000_000) as i64, (passed % 1_000_000_000) as i64);
        let drift = seconds * self.drift_ppm * 1000 + rest * self.drift_ppm / 1_000_000;
        Timestamp((self.reading_ns + passed).saturating_add_signed(drift))
    }

    /// Sets it forwards, or backwards.
    pub(super) fn step(&mut self, now_ns: u64, by_ns: i64) {
        self.worst_ns = self.worst_ns(now_ns);
        self.reading_ns = self.at(now_ns).0.saturating_add_signed(by_ns);
        self.since_ns = now_ns;
        self.worst_ns = self.worst_ns(now_ns);
    }

    /// By how much it has been wrong up to now, at most: on a line that is at one of its ends.
    pub(super) fn worst_ns(&self, now_ns: u64) -> u64 {
        self.worst_ns.max(self.at(now_ns).0.abs_diff(EPOCH_NS + now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_drifts_from_its_offset_and_jumps_when_it_is_set() {
        let mut clock = Clock::new(-500, 100);
        assert_eq!(clock.at(0).0, EPOCH_NS - 500);
        assert_eq!(clock.at(1_000_000).0, EPOCH_NS - 500 + 1_000_100);
        clock.step(1_000_000, -2_000_000);
        assert_eq!(clock.at(1_000_000).0, EPOCH_NS - 500 + 1_000_100 - 2_000_000);
        assert_eq!(clock.at(2_000_000).0, EPOCH_NS - 500 + 2_000_200 - 2_000_000);
        assert_eq!(clock.worst_ns(2_000_000), 2_000_400, "right after it was set");
    }
}
