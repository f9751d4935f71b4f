//! Configurations to predict: a cluster, a workload, and data that fits into one machine's memory.
//!
//! A thousand warehouses of the specification's size do not fit; but which transactions conflict
//! depends on warehouses, districts and clients, hardly on how many customers and items there are
//! besides. So the number of nodes decides how large a shard's data is, and the prices of accesses
//! stay those of full tables. Too few items would make conflicts that large tables do not have: the
//! size that was used is in the result ([`Configuration::rows`]).

use std::sync::Arc;

use plimsoll_workloads::AnyWorkload;
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};

use super::model::{AccessCosts, CostModel, KINDS_MAX};
use super::{Cluster, Prediction, predict};

/// Rows that all shards of a world may have together, about; a row with its index takes some 400
/// bytes.
const ROWS_MAX: usize = 2_500_000;
/// TPC-C's customers per district, and orders at the beginning: enough for Stock-Level's twenty.
const CUSTOMERS: u32 = 30;

/// A workload with what can be varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// TPC-C, one warehouse per shard.
    Tpcc {
        /// Districts that a Stock-Level looks at.
        districts: u32,
        /// How many warehouses there are, each spread over all shards; `None`: one per shard, there
        /// entirely.
        spread: Option<u32>,
    },
    /// SmallBank.
    SmallBank {
        /// Transfers to another shard, in per cent.
        distributed_pct: f64,
    },
    /// Read-only transactions over ten tuples, nine of ten at home (Figure 6(c) of the DST paper).
    ReadTen,
    /// Read-write transactions that do nothing for a while (Figure 6(b)) and then write a tuple of
    /// their own shard, so that there is something to stamp.
    Spin {
        /// How long, in nanoseconds.
        spin_ns: u64,
    },
    /// Half read-only, half read-write transactions over ten tuples, nine of ten at home.
    Micro,
}

impl Load {
    /// The workload's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Load::Tpcc { .. } => "tpcc",
            Load::SmallBank { .. } => "smallbank",
            Load::ReadTen | Load::Spin { .. } | Load::Micro => "micro",
        }
    }
}

/// What is to be predicted.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The cluster.
    pub cluster: Cluster,
    /// The workload.
    pub load: Load,
}

impl Configuration {
    /// What varies with memory: TPC-C's items, SmallBank's accounts or tuples, per shard.
    pub fn rows(&self) -> u64 {
        let per_shard = ROWS_MAX / self.cluster.shards();
        match self.load {
            // Two tables have a row per item.
            Load::Tpcc { .. } => (per_shard / 2).saturating_sub(1500).clamp(500, 100_000) as u64,
            _ => (per_shard / 2).clamp(1000, 100_000) as u64,
        }
    }

    /// Predicts it, or as much as there is before `stop` says so. Prices of the workload that are
    /// missing from the model are an error that names them.
    pub fn predict(&self, model: &CostModel, stop: &dyn Fn() -> bool) -> Result<Prediction, String> {
        let name = self.load.name();
        let mut access = *model.access.get(name).ok_or_else(|| {
            format!("the cost model knows no prices of {name}: measure them with `plimsoll calibrate`")
        })?;
        if let Load::Spin { spin_ns } = self.load {
            access = spinning(access, spin_ns);
        }
        let workload = self.workload()?;
        if self.cluster.protocol == "rococo" {
            workload.chopping().map_err(|why| why.to_string())?;
        }
        Ok(predict(&self.cluster, model, access, &workload, stop))
    }

    /// The workload, whether or not its protocol can run it.
    fn workload(&self) -> Result<Arc<dyn AnyWorkload>, String> {
        let (shards, rows, seed) = (self.cluster.shards() as u64, self.rows(), self.cluster.seed);
        Ok(match self.load {
            Load::Tpcc { districts, spread } => Arc::new(Tpcc::new(tpcc::Parameters {
                items: rows as u32,
                customers_per_district: CUSTOMERS,
                stock_level_districts: districts,
                spread: spread.is_some(),
                seed,
                ..tpcc::Parameters::new(spread.unwrap_or(shards as u32))
            })?),
            Load::SmallBank { distributed_pct } => Arc::new(SmallBank::new(smallbank::Parameters {
                distributed_pct: if shards > 1 { distributed_pct } else { 0.0 },
                seed,
                ..smallbank::Parameters::new(shards, rows)
            })?),
            Load::Micro | Load::ReadTen | Load::Spin { .. } => {
                let mut parameters =
                    micro::Parameters { tuples_per_shard: rows, seed, ..micro::Parameters::new(shards) };
                match self.load {
                    Load::ReadTen => parameters.read_only_pct = 100.0,
                    Load::Spin { .. } => {
                        parameters.tuples_per_transaction = 1;
                        (parameters.read_only_pct, parameters.read_share_pct) = (0.0, 0.0);
                        parameters.distributed_pct = 0.0;
                    }
                    _ => {}
                }
                if shards == 1 {
                    parameters.distributed_pct = 0.0;
                }
                Arc::new(Micro::new(parameters)?)
            }
        })
    }
}

/// Prices of transactions that take so much longer.
fn spinning(access: AccessCosts, spin_ns: u64) -> AccessCosts {
    let attempt_ns: [f64; KINDS_MAX] = access.attempt_ns.map(|ns| ns + spin_ns as f64);
    AccessCosts { attempt_ns, ..access }
}
