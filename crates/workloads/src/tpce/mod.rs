//! TPC-E (TPC Benchmark E): a brokerage, its customers and the market.
//!
//! Customers look at prices and at what they have, and order trades; the market answers each order
//! with a trade at a price, and tells the prices of others. 33 logical tables ([`schema`]), all
//! columns; twelve transactions, written as pieces.

pub mod broker_volume;
mod client;
pub mod customer_position;
pub mod data_maintenance;
mod initial;
mod load;
pub mod market;
pub mod market_feed;
pub mod market_watch;
pub mod numbers;
pub mod people;
pub mod prices;
pub mod reference;
pub mod schema;
pub mod security_detail;
pub mod shown;
pub mod trade_cleanup;
pub mod trade_lookup;
pub mod trade_order;
pub mod trade_result;
pub mod trade_status;
pub mod trade_update;
mod trades;
#[cfg(test)]
mod write_tests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

pub use client::Client;
use initial::BySecurity;
use numbers::Scale;
use prices::Prices;
use schema::Layout;

/// What makes market time pass.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MarketTime {
    /// Orders: each committed Trade-Order advances it by what lies between two orders at the
    /// nominal rate, so that everything that depends on the market is per order as it would be
    /// there.
    Orders,
    /// The clock, so many times as fast.
    Clock(f64),
}

/// What a TPC-E database looks like and what its clients do.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// How much there is.
    pub scale: Scale,
    /// Share of the customers that a client draws from the homes on its own shard, in per cent; the
    /// others are drawn from all.
    pub local_pct: f64,
    /// What makes market time pass.
    pub market_time: MarketTime,
    /// How many processes have clients. Each has a market time of its own.
    pub processes: u32,
    /// Whether the columns that different transactions use are records of their own; see
    /// [`schema`].
    pub split_columns: bool,
    /// Cards of the customers' deck by transaction: see [`DECK`].
    pub deck: [u32; 8],
    /// Whether Data-Maintenance runs, once a minute of market time.
    pub maintenance: bool,
    /// Seed of loading and clients.
    pub seed: u64,
}

/// The specification's deck: Broker-Volume, Customer-Position, Market-Watch, Security-Detail,
/// Trade-Lookup, Trade-Order, Trade-Status, Trade-Update. Trade-Results and Market-Feeds follow from
/// orders.
pub const DECK: [u32; 8] = [49, 130, 180, 140, 80, 101, 190, 20];

impl Parameters {
    /// A database of 1,000 customers for each of these load units, with five initial days.
    pub fn new(units: u32) -> Parameters {
        Parameters {
            scale: Scale {
                units,
                customers_per_unit: numbers::UNIT,
                home: numbers::UNIT,
                trade_days: 5,
                daily_market_days: numbers::DAILY_MARKET_DAYS,
            },
            local_pct: 100.0,
            market_time: MarketTime::Orders,
            processes: 1,
            split_columns: true,
            deck: DECK,
            maintenance: true,
            seed: 1,
        }
    }

    /// The same with a thin database that loads in a blink, for tests and simulations: 20 customers
    /// of each load unit, one day.
    pub fn small(units: u32) -> Parameters {
        let mut parameters = Parameters::new(units);
        let scale = &mut parameters.scale;
        (scale.customers_per_unit, scale.trade_days, scale.daily_market_days) = (20, 1, 30);
        parameters
    }

    /// How rows are stored.
    pub fn layout(&self) -> Layout {
        Layout { split: self.split_columns }
    }

    /// The least and the largest number of securities of a watch list.
    pub fn watch_sizes(&self) -> (u64, u64) {
        if self.scale.is_whole() { (50, 150) } else { (5, 15) }
    }
}

/// The TPC-E workload. Clones share what their clients share.
#[derive(Clone, Debug)]
pub struct Tpce {
    parameters: Parameters,
    shared: Arc<Shared>,
}

/// What all clients of a process share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Market time since the load, in microseconds of trading.
    market_us: AtomicU64,
    /// Where clients begin to count their trades: behind those that earlier runs have left.
    first_sequence: AtomicU64,
    /// The initial trades by security, once a market place is loaded.
    by_security: OnceLock<BySecurity>,
}

impl Tpce {
    /// The workload with these parameters.
    pub fn new(parameters: Parameters) -> Tpce {
        Tpce { parameters, shared: Arc::default() }
    }

    /// What it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// How much there is.
    fn scale(&self) -> Scale {
        self.parameters.scale
    }

    /// How rows are stored.
    fn layout(&self) -> Layout {
        self.parameters.layout()
    }

    /// What securities cost since the load, by market time.
    fn prices(&self) -> Prices {
        Prices { before_s: u64::from(self.scale().trade_days) * numbers::DAY_SECONDS }
    }
}
