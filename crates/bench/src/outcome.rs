//! What timestamp schemes with an oracle cost, measured on the schemes themselves: a shard's and
//! the oracle's take turns, and their messages are handed over by hand. What carrying them costs is
//! another question.
//!
//! In a round a shard stamps the versions of `BATCH` transactions, reports them together, asks for
//! a snapshot, and is answered. GTS asks for the stamps first.

use std::time::Duration;

use plimsoll_txn::timestamp::{Freshness, Scheme, SchemeConfig};
use plimsoll_types::{ShardId, Timestamp};
use quanta::Clock;

/// Transactions of a round.
const BATCH: u32 = 8;
/// Rounds between two looks at the clock.
const ROUNDS: u32 = 64;

/// What a transaction takes a shard and its oracle, in nanoseconds, measured for about so long.
pub fn outcome<S: Scheme>(time: Duration) -> (f64, f64) {
    let config = |shard| SchemeConfig::in_one_process(ShardId(shard), 1);
    let (mut shard, mut oracle) = (S::new(&config(0)), S::new(&config(1)));
    let clock = Clock::new();
    let begin = clock.raw();
    let (mut shard_ns, mut oracle_ns, mut outcomes) = (0u64, 0u64, 0u64);
    let mut now = Timestamp(1);
    let (mut released, mut sent, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    let mut observed = S::Observed::default();
    while clock.delta(begin, clock.raw()) < time {
        for _ in 0..ROUNDS {
            let start = clock.raw();
            now = Timestamp(now.0 + 10_000);
            shard.tick(now);
            if S::AT_ONCE {
                for _ in 0..BATCH {
                    let stamp = shard.stamp(&observed);
                    shard.finished(stamp, Some(&observed));
                    S::observe(&mut observed, stamp);
                }
            } else {
                (0..BATCH).for_each(|ticket| shard.want_stamp(ticket));
            }
            if shard.snapshot(Freshness::default()).is_none() {
                shard.want_snapshot(BATCH);
            }
            shard.outgoing(&mut sent);
            shard_ns += clock.delta_as_nanos(start, clock.raw());
            // The oracle's turn, and so on until neither has a message left.
            while !sent.is_empty() {
                let start = clock.raw();
                oracle.tick(now);
                for (_, mut message) in sent.drain(..) {
                    oracle.receive(ShardId(0), &mut message, &mut released);
                }
                oracle.outgoing(&mut answers);
                let answered = clock.raw();
                oracle_ns += clock.delta_as_nanos(start, answered);
                for (_, mut message) in answers.drain(..) {
                    shard.receive(ShardId(1), &mut message, &mut released);
                }
                for ticket in released.drain(..).filter(|&ticket| ticket < BATCH) {
                    if let Some(stamp) = shard.take_stamp(ticket) {
                        shard.finished(stamp, Some(&observed));
                    }
                }
                shard.outgoing(&mut sent);
                shard_ns += clock.delta_as_nanos(answered, clock.raw());
            }
            outcomes += u64::from(BATCH);
        }
    }
    (shard_ns as f64 / outcomes.max(1) as f64, oracle_ns as f64 / outcomes.max(1) as f64)
}
