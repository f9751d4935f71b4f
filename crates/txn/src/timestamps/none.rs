//! No timestamps: the plain protocol.
//!
//! Read-only transactions run as the protocol runs everybody: OCC validates their reads in a second
//! round, 2PL locks what they read. Both can abort. A stamp is no more than the number that tells
//! one version of a record from the next; there is one version per record.

use std::convert::Infallible;

use plimsoll_types::Timestamp;

use crate::service::Service;
use crate::timestamp::{Freshness, ReadOnly, Scheme, SchemeConfig};

/// The plain protocol on one shard.
#[derive(Debug)]
pub struct NoTimestamps;

impl Scheme for NoTimestamps {
    const NAME: &'static str = "none";
    const READ_ONLY: ReadOnly = ReadOnly::Validated;
    const SCALAR: bool = false;
    const CLOCKED: bool = true;

    type Mark = ();
    type Snapshot = ();
    type Observed = Timestamp;

    fn new(_: &SchemeConfig) -> NoTimestamps {
        NoTimestamps
    }

    fn keeps_history(_: &SchemeConfig) -> bool {
        false
    }

    fn tick(&mut self, _: Timestamp) {}

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

    fn lower_bound(observed: &Timestamp) -> Timestamp {
        observed.next()
    }

    #[inline]
    fn stamp(&mut self, observed: &Timestamp) -> Timestamp {
        observed.next()
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
        low[0] = u64::MAX - 1;
    }

    fn lower(_: &(), _: &mut [u64]) {}

    fn raise(&mut self, _: &[u64]) {}

    fn passed(_: &[u64], _: Timestamp) -> bool {
        true
    }
}

/// Every shard stamps and reads by itself.
impl Service<Timestamp> for NoTimestamps {
    type Message = Infallible;
}
