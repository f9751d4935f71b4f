//! DST: decentralized scalar timestamps.
//!
//! Every record carries a mark, an upper bound of the timestamps of all that have read or written
//! it. A read-write transaction commits at `TS = max(clock, observed + 1)`, where it has observed
//! the stamp of every version it read and, once the lock was held, the bound of everything it
//! overwrites; its TS becomes the mark of what it read and wrote. So of two that met somewhere the
//! later has the larger timestamp, and those that did not may have the same. It is no larger than
//! the clock unless others have been there since the clock was sampled: nearly every commit can be
//! answered at once. A read-only transaction takes its shard's clock as its snapshot s, raises the
//! marks of what it reads to s, waits for a writer whose TS may still come out at or below s, and
//! reads the newest versions at or below s. Nobody is asked for the time; clocks only decide how
//! fresh a snapshot is.
//!
//! Worked example: the mark of `x` is 5 and W holds its lock with `lb = 6`. R comes with s = 10: it
//! raises the mark to 10 and waits, because 6 <= 10 and W may commit at 6. W aborts, R reads the
//! old version. The next writer of `x` finds the mark 10 and commits at 11 or later: what R has
//! read stays as R read it.
//!
//! The paper joins a physical clock of 48 bits and a counter of 16; here a timestamp is Unix
//! nanoseconds, whose low bits are the counter.

use std::convert::Infallible;

use plimsoll_types::Timestamp;
use plimsoll_types::mutants::{Mutant, planted};

use crate::service::Service;
use crate::timestamp::{Freshness, MAX_OFFSET_NS, ReadOnly, Scheme, SchemeConfig};

/// The largest staleness that can be configured: a day, in nanoseconds.
const MAX_STALENESS_NS: u64 = 24 * 3600 * 1_000_000_000;

/// DST on one shard.
#[derive(Debug)]
pub struct Dst {
    /// The clock's last sample.
    clock: Timestamp,
    /// The largest timestamp this shard knows: of its clock, its commits, its snapshots. Needed for
    /// freshness and for the watermark, not for serializability.
    latest: Timestamp,
    max_staleness_ns: u64,
}

impl Dst {
    /// What a session has seen. One from the far future would drag the shard's time along, and so
    /// would many that each are a little ahead of what the others have made of it: so it is the
    /// clock that they are held against.
    #[inline]
    fn believed(&self, seen: Timestamp) -> Timestamp {
        seen.min(Timestamp(self.clock.0.saturating_add(MAX_OFFSET_NS)))
    }
}

impl Scheme for Dst {
    const NAME: &'static str = "dst";
    const READ_ONLY: ReadOnly = ReadOnly::Snapshot;
    const SCALAR: bool = true;
    const CLOCKED: bool = true;
    const WAITS: bool = true;

    type Mark = Timestamp;
    type Snapshot = Timestamp;
    type Observed = Timestamp;

    fn new(config: &SchemeConfig) -> Dst {
        Dst {
            clock: Timestamp::ZERO,
            latest: Timestamp::ZERO,
            max_staleness_ns: config.max_staleness_ns.min(MAX_STALENESS_NS),
        }
    }

    fn tick(&mut self, clock: Timestamp) {
        self.clock.raise(clock);
        self.latest.raise(clock);
    }

    #[inline]
    fn observe(observed: &mut Timestamp, stamp: Timestamp) {
        observed.raise(stamp);
    }

    fn join(observed: &mut Timestamp, other: &Timestamp) {
        observed.raise(*other);
    }

    #[inline]
    fn reach(observed: &Timestamp) -> Timestamp {
        *observed
    }

    #[inline]
    fn follow(&self, observed: &mut Timestamp, seen: Timestamp) {
        if !planted(Mutant::SessionForgotten) {
            observed.raise(self.believed(seen));
        }
    }

    fn shown(observed: &Timestamp) -> Option<Timestamp> {
        Some(*observed)
    }

    fn lower_bound(observed: &Timestamp) -> Timestamp {
        observed.next()
    }

    #[inline]
    fn stamp(&mut self, observed: &Timestamp) -> Timestamp {
        self.latest.raise(observed.next());
        self.latest
    }

    #[inline]
    fn snapshot(&mut self, freshness: Freshness) -> Option<Timestamp> {
        let at_least = self.believed(freshness.at_least);
        self.latest.raise(at_least);
        let staleness = match planted(Mutant::StaleSnapshot) || planted(Mutant::TokenIgnored) {
            true => self.max_staleness_ns,
            false => freshness.staleness_ns.min(self.max_staleness_ns),
        };
        let snapshot = Timestamp(self.latest.0.saturating_sub(staleness));
        Some(if planted(Mutant::TokenIgnored) { snapshot } else { snapshot.join(at_least) })
    }

    #[inline]
    fn sees(at: &Timestamp, stamp: Timestamp) -> bool {
        stamp <= *at
    }

    #[inline]
    fn read_mark(at: &Timestamp) -> Timestamp {
        *at
    }

    fn place(at: &Timestamp) -> Option<Timestamp> {
        Some(*at)
    }

    fn low(&self, low: &mut [u64]) {
        low[0] = self.latest.0.saturating_sub(self.max_staleness_ns);
    }

    fn lower(at: &Timestamp, low: &mut [u64]) {
        low[0] = low[0].min(at.0);
    }

    fn raise(&mut self, low: &[u64]) {
        self.latest.raise(Timestamp(low[0].saturating_add(self.max_staleness_ns)));
    }

    #[inline]
    fn passed(watermark: &[u64], stamp: Timestamp) -> bool {
        stamp.0 <= watermark[0]
    }
}

/// Every shard stamps and reads by itself.
impl Service<Timestamp> for Dst {
    type Message = Infallible;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scheme_config;

    #[test]
    fn a_commit_is_not_below_the_clock_and_above_everything_observed() {
        let mut dst = Dst::new(&scheme_config(0, 1));
        dst.tick(Timestamp(100));
        assert_eq!(dst.stamp(&Timestamp(5)), Timestamp(100));
        assert_eq!(dst.stamp(&Timestamp(100)), Timestamp(101));
        assert_eq!(dst.stamp(&Timestamp(5)), Timestamp(101), "it has no reason to be another");
        assert_eq!(dst.stamp(&Timestamp(200)), Timestamp(201));
        assert_eq!(dst.snapshot(Freshness::default()), Some(Timestamp(201)), "a shard reads its own commits");
        dst.tick(Timestamp(50));
        assert_eq!(dst.snapshot(Freshness::default()), Some(Timestamp(201)), "time never falls");
    }

    #[test]
    fn a_commit_comes_after_what_its_session_has_seen_but_not_in_the_far_future() {
        let mut dst = Dst::new(&scheme_config(0, 1));
        dst.tick(Timestamp(100));
        let mut stamp = |seen| {
            let mut observed = Timestamp(5);
            dst.follow(&mut observed, Timestamp(seen));
            dst.stamp(&observed)
        };
        assert_eq!(stamp(50), Timestamp(100));
        assert_eq!(stamp(120), Timestamp(121));
        let furthest = Timestamp(100 + MAX_OFFSET_NS + 1);
        assert_eq!([stamp(u64::MAX), stamp(u64::MAX)], [furthest; 2], "however often it is tried");
    }

    #[test]
    fn a_stale_snapshot_still_sees_what_its_session_has_seen() {
        let mut dst = Dst::new(&SchemeConfig { max_staleness_ns: 1000, ..scheme_config(0, 1) });
        dst.tick(Timestamp(10_000));
        let at = |dst: &mut Dst, staleness_ns, at_least| {
            dst.snapshot(Freshness { staleness_ns, at_least: Timestamp(at_least) }).unwrap()
        };
        assert_eq!(at(&mut dst, 400, 0), Timestamp(9_600));
        assert_eq!(at(&mut dst, 400, 9_900), Timestamp(9_900));
        assert_eq!(at(&mut dst, 5_000, 0), Timestamp(9_000), "no older than versions are kept");
        let mut low = [0];
        dst.low(&mut low);
        assert_eq!(low, [9_000]);
    }
}
