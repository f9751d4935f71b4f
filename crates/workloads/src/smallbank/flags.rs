//! The flags of SmallBank, and the scale that they come to.

use std::sync::Arc;

use clap::Args;
use plimsoll_args::{Refusal, number, refuse, within};
use serde_json::Value;

use super::{Parameters, SmallBank};
use crate::registry::{Flags, Scale, Setting};
use crate::{AnyWorkload, Workload};

/// More accounts per shard than memory holds.
const ACCOUNTS_MAX: u64 = 1_000_000_000;

/// The flags of SmallBank.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct SmallBankFlags {
    /// Accounts per shard (smallbank) [default: 100000].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    accounts: Option<u64>,
    /// Draw every account from all shards, instead of --distributed (smallbank).
    ///
    /// A client then works on its own shard no more than on any other, with all six transactions.
    /// On n shards a payment is between two of them with the chance (n-1)/n.
    #[arg(long, help_heading = "Mix")]
    global: bool,
}

impl Flags for SmallBankFlags {
    const NAME: &'static str = SmallBank::NAME;
    const TITLE: &'static str = "SmallBank";
    const ABOUT: &'static str = "A bank: six tiny transactions on two accounts at most, hot spots";

    fn scale(self, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
        // 4% of the accounts are hot, and a payment needs two different ones of them.
        let accounts = within(self.accounts.unwrap_or(100_000), "accounts", 100, ACCOUNTS_MAX)?;
        let shards = setting.shards as u64;
        if self.global && setting.distributed.is_some() {
            refuse!("--global draws all accounts from all shards: leave --distributed out");
        }
        if self.global && shards == 1 {
            refuse!("--global needs a second shard: give --shards 2 or more, or leave it out");
        }
        Ok(Arc::new(Parameters {
            distributed_pct: match self.global {
                true => 100.0 * (shards - 1) as f64 / shards as f64,
                false => setting.between_shards(1.0)?,
            },
            global: self.global,
            seed: setting.seed,
            ..Parameters::new(shards, accounts)
        }))
    }
}

impl Scale for Parameters {
    fn config(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("accounts", self.accounts_per_shard.into()),
            ("distributed", self.distributed_pct.into()),
            ("global", self.global.into()),
        ]
    }

    fn bytes_estimate(&self) -> u64 {
        // Two records: header and value, and a hash entry at a usual load.
        self.shards.saturating_mul(self.accounts_per_shard).saturating_mul(2 * (72 + 32))
    }

    fn make(&self) -> Result<Arc<dyn AnyWorkload>, String> {
        Ok(Arc::new(SmallBank::new(self.clone())?))
    }
}
