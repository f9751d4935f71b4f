//! The flags of the microbenchmarks, and the scale that they come to.
//!
//! The microbenchmarks ask one question at a time, so a flag that the other flags leave without
//! effect is refused: no tuples are only read if all transactions are read-only.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use plimsoll_args::{Refusal, duration, number, percent, refuse, within};
use plimsoll_page::units;
use serde_json::Value;

use super::{Micro, Parameters, spin};
use crate::registry::{Flags, Scale, Setting};
use crate::{AnyWorkload, Workload};

/// More tuples per shard than memory holds.
const TUPLES_MAX: u64 = 1_000_000_000;
/// The share of each is added up before the run.
const ZIPF_TUPLES_MAX: u64 = 10_000_000;
/// A shard that spins does nothing else; its clients, and the end of the run, wait.
const SPIN_MAX: Duration = Duration::from_secs(1);

/// The flags of the microbenchmarks.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct MicroFlags {
    /// Tuples per shard (micro) [default: 100000].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    tuples: Option<u64>,
    /// Tuples of one transaction, all different, up to 1000 (micro) [default: 10].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Mix")]
    tuples_per_transaction: Option<u64>,
    /// Read-only transactions, percent (micro) [default: 50].
    #[arg(long, value_name = "PERCENT", help_heading = "Mix")]
    read_only: Option<f64>,
    /// Tuples that a read-write transaction only reads, percent of its tuples (micro) [default:
    /// 50].
    ///
    /// Not a chance but a number, the nearest whole one: at 20 each transaction of ten tuples
    /// updates eight.
    #[arg(long, value_name = "PERCENT", help_heading = "Mix")]
    read_share: Option<f64>,
    /// Shards that every transaction touches, with as many of its tuples on each, instead of
    /// --distributed (micro).
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Mix")]
    participants: Option<u64>,
    /// How unevenly the tuples of a shard are drawn: 0.99 is a common choice for contention (micro)
    /// [default: 0, evenly].
    #[arg(long, value_name = "EXPONENT", help_heading = "Mix")]
    zipf: Option<f64>,
    /// A read-write transaction keeps its shard's processor busy for that long (micro) [default:
    /// 0s].
    #[arg(long, value_parser = duration, value_name = "DURATION", help_heading = "Mix")]
    spin: Option<Duration>,
}

/// The scale of the microbenchmarks.
#[derive(Clone, Debug)]
struct MicroScale {
    /// But for the rounds of the spin.
    parameters: Parameters,
    /// How long a read-write transaction keeps the processor busy.
    spin: Duration,
    /// See [`Setting::rounds_in`].
    rounds_in: fn(Duration, fn(u64)) -> u64,
}

impl Flags for MicroFlags {
    const NAME: &'static str = Micro::NAME;
    const TITLE: &'static str = "Microbenchmark";
    const ABOUT: &'static str =
        "The DST paper's microbenchmarks: a few 8-byte tuples, read or updated, or time spun away";

    fn scale(self, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
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
        let participants = within(self.participants.unwrap_or(0), "participants", 0, setting.shards as u64)?;
        if participants > 0 && setting.distributed.is_some() {
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
            0 => setting.between_shards(10.0)?,
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
            ("distributed", setting.distributed.is_some(), no_tuples, "--tuples-per-transaction above 0"),
        ] {
            if given && idle {
                refuse!("--{flag} has no effect here: give {needs} or leave it out");
            }
        }
        let parameters = Parameters {
            tuples_per_shard,
            tuples_per_transaction,
            read_only_pct: read_only_percent,
            read_share_pct: read_share_percent,
            distributed_pct: distributed_percent,
            participants,
            zipf,
            seed: setting.seed,
            ..Parameters::new(setting.shards as u64)
        };
        Ok(Arc::new(MicroScale { parameters, spin, rounds_in: setting.rounds_in }))
    }
}

impl Scale for MicroScale {
    fn config(&self) -> Vec<(&'static str, Value)> {
        let Parameters { tuples_per_shard, tuples_per_transaction, participants, zipf, .. } = self.parameters;
        vec![
            ("tuples", tuples_per_shard.into()),
            ("tuples_per_transaction", tuples_per_transaction.into()),
            ("read_only", self.parameters.read_only_pct.into()),
            ("read_share", self.parameters.read_share_pct.into()),
            ("distributed", self.parameters.distributed_pct.into()),
            ("participants", participants.into()),
            ("zipf", zipf.into()),
            ("spin_seconds", self.spin.as_secs_f64().into()),
        ]
    }

    fn bytes_estimate(&self) -> u64 {
        // A record: header and value, and a hash entry at a usual load.
        self.parameters.shards.saturating_mul(self.parameters.tuples_per_shard).saturating_mul(72 + 32)
    }

    fn make(&self) -> Result<Arc<dyn AnyWorkload>, String> {
        let spin_rounds = (self.rounds_in)(self.spin, spin);
        Ok(Arc::new(Micro::new(Parameters { spin_rounds, ..self.parameters.clone() })?))
    }
}
