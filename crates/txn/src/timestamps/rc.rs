//! RC: the yardstick. Not serializable.
//!
//! Read-write transactions commit exactly as their protocol says, locks and validation included;
//! versions are stamped `max(clock, newest + 1)`. Read-only transactions read the newest committed
//! version of each record, without marks, waiting or validation, so a scheme that gives them a
//! consistent snapshot can hardly be faster. Version chains are kept as under DST, or not at all on
//! request.

use std::convert::Infallible;

use plimsoll_types::Timestamp;

use crate::service::Service;
use crate::timestamp::{Freshness, ReadOnly, Scheme, SchemeConfig};

/// RC on one shard.
#[derive(Debug)]
pub struct Rc {
    latest: Timestamp,
    single_version: bool,
}

impl Scheme for Rc {
    const NAME: &'static str = "rc";
    const SERIALIZABLE: bool = false;
    const READ_ONLY: ReadOnly = ReadOnly::Snapshot;
    const SCALAR: bool = false;
    const CLOCKED: bool = true;

    type Mark = ();
    type Snapshot = ();
    type Observed = Timestamp;

    fn new(config: &SchemeConfig) -> Rc {
        Rc { latest: Timestamp::ZERO, single_version: config.single_version }
    }

    fn keeps_history(config: &SchemeConfig) -> bool {
        !config.single_version
    }

    fn tick(&mut self, clock: Timestamp) {
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
    fn stamp(&mut self, observed: &Timestamp) -> Timestamp {
        self.latest.raise(observed.next());
        self.latest
    }

    fn snapshot(&mut self, _: Freshness) -> Option<()> {
        Some(())
    }

    fn sees(_: &(), _: Timestamp) -> bool {
        true
    }

    fn place(_: &()) -> Option<Timestamp> {
        None
    }

    fn low(&self, low: &mut [u64]) {
        low[0] = if self.single_version { u64::MAX - 1 } else { self.latest.0 };
    }

    fn lower(_: &(), _: &mut [u64]) {}

    fn raise(&mut self, low: &[u64]) {
        if !self.single_version {
            self.latest.raise(Timestamp(low[0]));
        }
    }

    fn passed(watermark: &[u64], stamp: Timestamp) -> bool {
        stamp.0 <= watermark[0]
    }
}

/// Every shard stamps and reads by itself.
impl Service<Timestamp> for Rc {
    type Message = Infallible;
}
