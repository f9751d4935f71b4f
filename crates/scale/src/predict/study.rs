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
use plimsoll_workloads::tpce::{self, Tpce};

use super::model::{AccessCosts, CostModel, KINDS_MAX};
use super::{Cluster, Prediction, predict};

/// Rows that all shards of a world may have together, about; a row with its index takes some 400
/// bytes.
const ROWS_MAX: usize = 2_500_000;
/// The same of TPC-E, whose rows take some 140 bytes. Each shard's copies of what never changes
/// come on top.
const TPCE_ROWS_MAX: u64 = 12_000_000;
/// How many customers of each thousand there can be in TPC-E.
pub const TPCE_CUSTOMERS: [u32; 12] = [1000, 500, 250, 200, 125, 100, 50, 40, 25, 20, 10, 5];
/// Rows of a load unit of 1,000 customers, about, besides those of trades; and rows of a trade with
/// its history, settlement and indexes.
const TPCE_ROWS: u64 = 400_000;
const TPCE_ROWS_OF_A_TRADE: u64 = 9;
/// Load units of TPC-E at least: Broker-Volume draws up to 40 brokers.
const TPCE_UNITS_MIN: u64 = 4;
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
    /// TPC-E, one home per shard.
    Tpce {
        /// The customers of a home, if it is whole: 1000, 500, 200 or 100.
        home: u32,
        /// Customers of each thousand that there are, a divisor of it and a multiple of 5; `None`:
        /// as many as memory has room for.
        customers: Option<u32>,
        /// Whether the setting is the DST paper's: one day of trading, no maintenance.
        paper: bool,
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
            Load::Tpce { .. } => "tpce",
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
    /// What varies with memory: TPC-C's items, TPC-E's customers, SmallBank's accounts or tuples,
    /// per shard.
    pub fn rows(&self) -> u64 {
        let per_shard = ROWS_MAX / self.cluster.shards();
        match self.load {
            // Two tables have a row per item.
            Load::Tpcc { .. } => (per_shard / 2).saturating_sub(1500).clamp(500, 100_000) as u64,
            Load::Tpce { home, customers, paper } => {
                let scale = self.tpce(home, customers, paper).scale;
                u64::from(scale.customers()) / self.cluster.shards() as u64
            }
            _ => (per_shard / 2).clamp(1000, 100_000) as u64,
        }
    }

    /// TPC-E of this size.
    fn tpce(&self, home: u32, customers: Option<u32>, paper: bool) -> tpce::Parameters {
        let shards = self.cluster.shards() as u64;
        let units = (shards * u64::from(home)).div_ceil(1000).max(TPCE_UNITS_MIN);
        let mut parameters = tpce::Parameters::new(units as u32);
        (parameters.maintenance, parameters.seed) = (!paper, self.cluster.seed);
        let scale = &mut parameters.scale;
        (scale.home, scale.daily_market_days) = (home, 30);
        scale.trade_days = if paper { 1 } else { scale.trade_days };
        let trades = u64::from(scale.homes()) * scale.trades();
        let rows = units * TPCE_ROWS + trades * TPCE_ROWS_OF_A_TRADE;
        let fits = |&customers: &u32| rows * u64::from(customers) / 1000 <= TPCE_ROWS_MAX;
        let least = (1000 / home).max(5);
        let room = || TPCE_CUSTOMERS.into_iter().find(fits).unwrap_or(least).max(least);
        scale.customers_per_unit = customers.unwrap_or_else(room);
        parameters
    }

    /// Predicts it, or as much as there is before `stop` says so. Prices of the workload that are
    /// missing from the model are an error that names them.
    pub fn predict(&self, model: &CostModel, stop: &dyn Fn() -> bool) -> Result<Prediction, String> {
        let mut access = model.access_to(self.load.name())?;
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
            Load::Tpce { home, customers, paper } => Arc::new(Tpce::new(self.tpce(home, customers, paper))),
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
