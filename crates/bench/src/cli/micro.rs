//! The flags of the microbenchmarks, and what they come to.
//!
//! They are for asking one question at a time, so a flag that the other flags leave without effect is refused: no
//! tuples are only read if all transactions are read-only.

use std::time::Duration;

use plimsoll_args::{Refusal, percent, refuse, within};
use plimsoll_page::units;
use serde_json::Value;

use super::BenchArgs;

/// More tuples per shard than memory holds.
const TUPLES_MAX: u64 = 1_000_000_000;
/// The share of each is added up before the run.
const ZIPF_TUPLES_MAX: u64 = 10_000_000;
/// A shard that spins does nothing else; its clients, and the end of the run, wait.
const SPIN_MAX: Duration = Duration::from_secs(1);

/// The scale of the microbenchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct MicroPlan {
    /// Tuples per shard, at least one.
    pub tuples_per_shard: u64,
    /// Different tuples of one transaction, at most as many as a shard has; 0: it touches no data.
    pub tuples_per_transaction: u64,
    /// Read-only transactions, 0 to 100.
    pub read_only_percent: f64,
    /// Tuples of a read-write transaction that it only reads, 0 to 100.
    pub read_share_percent: f64,
    /// Tuples on another shard, 0 to 100.
    pub distributed_percent: f64,
    /// Shards that every transaction touches; 0: as `distributed_percent` has it.
    pub participants: u64,
    /// How unevenly tuples are drawn, 0 to below 1.
    pub zipf: f64,
    /// How long a read-write transaction keeps the processor busy.
    pub spin: Duration,
}

impl MicroPlan {
    /// Everything that was set, by the names of the flags.
    pub(super) fn config(&self) -> [(&'static str, Value); 8] {
        [
            ("tuples", self.tuples_per_shard.into()),
            ("tuples_per_transaction", self.tuples_per_transaction.into()),
            ("read_only", self.read_only_percent.into()),
            ("read_share", self.read_share_percent.into()),
            ("distributed", self.distributed_percent.into()),
            ("participants", self.participants.into()),
            ("zipf", self.zipf.into()),
            ("spin_seconds", self.spin.as_secs_f64().into()),
        ]
    }
}

impl BenchArgs {
    pub(super) fn micro(&self, shards: usize) -> Result<MicroPlan, Refusal> {
        let tuples_per_shard = within(self.tuples.unwrap_or(100_000), "tuples", 1, TUPLES_MAX)?;
        let tuples_per_transaction =
            within(self.tuples_per_transaction.unwrap_or(10), "tuples-per-transaction", 0, 1000)?;
        if tuples_per_transaction > tuples_per_shard {
            refuse!(
                "a transaction of {} different tuples needs as many on a shard: give --tuples {} or more, or \
                 --tuples-per-transaction {} or less",
                units::thousands(tuples_per_transaction),
                units::thousands(tuples_per_transaction),
                units::thousands(tuples_per_shard)
            );
        }
        let read_only_percent = percent(self.read_only.unwrap_or(50.0), "read-only")?;
        let read_share_percent = percent(self.read_share.unwrap_or(50.0), "read-share")?;
        let participants = within(self.participants.unwrap_or(0), "participants", 0, shards as u64)?;
        if participants > 0 && self.distributed.is_some() {
            refuse!("--participants says on how many shards the tuples are: leave --distributed out");
        }
        if participants > tuples_per_transaction {
            refuse!(
                "{tuples_per_transaction} tuples are on {tuples_per_transaction} shards at most: give \
                 --tuples-per-transaction {participants} or more"
            );
        }
        let zipf = self.zipf.unwrap_or(0.0);
        if !(0.0..1.0).contains(&zipf) {
            refuse!("--zipf {zipf} is outside of 0 to 0.999: give a number such as 0.99");
        }
        if zipf > 0.0 && tuples_per_shard > ZIPF_TUPLES_MAX {
            refuse!("--zipf goes with {} tuples per shard at most", units::thousands(ZIPF_TUPLES_MAX));
        }
        let distributed_percent = match participants {
            0 => self.between_shards(shards, 10.0)?,
            _ => 100.0 * (participants - 1) as f64 / participants as f64,
        };
        let spin = self.spin.unwrap_or_default();
        if spin > SPIN_MAX {
            refuse!("--spin {spin:?} is too long: give 1s or less");
        }
        let (no_writers, no_tuples) = (read_only_percent == 100.0, tuples_per_transaction == 0);
        for (flag, given, idle, needs) in [
            ("spin", self.spin.is_some(), no_writers, "--read-only below 100"),
            ("read-share", self.read_share.is_some(), no_writers, "--read-only below 100"),
            ("read-share", self.read_share.is_some(), no_tuples, "--tuples-per-transaction above 0"),
            ("distributed", self.distributed.is_some(), no_tuples, "--tuples-per-transaction above 0"),
        ] {
            if given && idle {
                refuse!("--{flag} has no effect here: give {needs} or leave it out");
            }
        }
        Ok(MicroPlan {
            tuples_per_shard,
            tuples_per_transaction,
            read_only_percent,
            read_share_percent,
            distributed_percent,
            participants,
            zipf,
            spin,
        })
    }
}
