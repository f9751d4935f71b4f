//! The flags of TPC-E, and the scale that they come to.

use std::sync::Arc;

use clap::Args;
use plimsoll_args::{Refusal, Switch, number, percent, refuse, within};
use serde_json::Value;

use super::initial::BySecurity;
use super::numbers::{DAILY_MARKET_DAYS, UNIT};
use super::{DECK, MarketTime, PAPER_DECK, Parameters, Tpce};
use crate::registry::{Flags, Scale, Setting};
use crate::{AnyWorkload, Workload};

/// Customers by default.
const CUSTOMERS_DEFAULT: u64 = 4000;
/// Initial days by default: the fewest with which reads of twenty trades find twenty.
const TRADE_DAYS_DEFAULT: u64 = 5;
/// The specification's number of initial days.
const TRADE_DAYS_MAX: u64 = 300;
/// There is a company for two customers, and numbers of companies have 21 bits. Numbers of accounts
/// (32 bits) and of homes (16 bits) have room for more.
const CUSTOMERS_MAX: u64 = 2 * (1 << 21) / UNIT as u64 * UNIT as u64;
/// How many times as fast as the clock market time may go: dates have 40 bits, which is 34 years.
const MARKET_TIME_MAX: f64 = 10_000.0;

/// The flags of TPC-E.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct TpceFlags {
    /// Customers in all, a multiple of 1,000 (tpce) [default: 4000].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    customers: Option<u64>,
    /// Days of trading before the run (tpce) [default: 5; 1 with --paper].
    #[arg(long, value_parser = number, value_name = "DAYS", help_heading = "Scale")]
    trade_days: Option<u64>,
    /// Customers whose data is in one place, 1000, 500, 200 or 100 (tpce) [default: 1000].
    ///
    /// They have their own brokers, one for each 100. More shards than homes are refused.
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    home: Option<u64>,
    /// Days of market prices that are kept, 30 to 1305 (tpce) [default: 1305].
    #[arg(long, value_parser = number, value_name = "DAYS", help_heading = "Scale")]
    daily_market: Option<u64>,
    /// Customers that a client draws on its own shard, percent (tpce) [default: 100].
    ///
    /// The others are drawn from all.
    #[arg(long, value_name = "PERCENT", help_heading = "Mix")]
    local: Option<f64>,
    /// What makes market time pass: orders, or the clock, faster by a factor (tpce) [default:
    /// orders].
    ///
    /// With orders, everything that depends on the market is per order as at the nominal rate,
    /// however fast the clients are.
    #[arg(long, value_name = "orders|FACTOR", help_heading = "Mix")]
    market_time: Option<String>,
    /// Store often written columns apart from the others (tpce) [default: on].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Mix")]
    split_columns: Option<Switch>,
    /// The setting of the paper on DST: one day of trading (tpce).
    ///
    /// Ranges of dates fit the one day; customers' transactions are drawn independently, with the
    /// paper's shares in whole percents; no maintenance runs.
    #[arg(long, help_heading = "Scale")]
    paper: bool,
}

/// The scale of TPC-E on this number of shards.
#[derive(Clone, Debug)]
struct TpceScale {
    parameters: Parameters,
    shards: u64,
    paper: bool,
}

impl Flags for TpceFlags {
    const NAME: &'static str = Tpce::NAME;
    const TITLE: &'static str = "TPC-E";
    const ABOUT: &'static str =
        "A brokerage and its market: 33 tables, ten transactions, 77% read-only (TPC-E)";

    fn scale(self, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
        let shards = setting.shards as u64;
        if setting.distributed.is_some() {
            refuse!("tpce has no --distributed: give --local PERCENT, the share of local customers");
        }
        let unit = u64::from(UNIT);
        let customers =
            within(self.customers.unwrap_or(CUSTOMERS_DEFAULT), "customers", unit, CUSTOMERS_MAX)?;
        if !customers.is_multiple_of(unit) {
            let near = customers.div_ceil(unit) * unit;
            refuse!("--customers {customers} is no multiple of 1,000: give {near}");
        }
        let default = if self.paper { 1 } else { TRADE_DAYS_DEFAULT };
        let trade_days = within(self.trade_days.unwrap_or(default), "trade-days", 1, TRADE_DAYS_MAX)?;
        if trade_days < TRADE_DAYS_DEFAULT && !self.paper {
            refuse!(
                "--trade-days {trade_days} is too small: transactions that read twenty trades would find fewer; give 5 or \
                 more, or --paper"
            );
        }
        let home = self.home.unwrap_or(unit);
        if ![1000, 500, 200, 100].contains(&home) {
            refuse!("--home {home} is no size of a home: give 1000, 500, 200 or 100");
        }
        if customers / home < shards {
            match [500, 200, 100].into_iter().find(|home| customers / home >= shards) {
                Some(home) => refuse!(
                    "{} of the {shards} shards would have customers and the others no work: give --home {home}, or --shards \
                     {}, or more --customers",
                    customers / self.home.unwrap_or(unit),
                    customers / self.home.unwrap_or(unit)
                ),
                None => refuse!(
                    "{customers} customers are too few for {shards} shards: give --customers {} and --home 100",
                    (shards * 100).div_ceil(unit) * unit
                ),
            }
        }
        let market_time = match self.market_time.as_deref().unwrap_or("orders") {
            "orders" => MarketTime::Orders,
            factor => match factor.parse::<f64>() {
                Ok(factor) if factor > MARKET_TIME_MAX => {
                    refuse!("--market-time {factor} is too fast for dates: give at most {MARKET_TIME_MAX}")
                }
                Ok(factor) if factor > 0.0 => MarketTime::Clock(factor),
                _ => {
                    refuse!("--market-time {factor} is neither \"orders\" nor a number above 0, such as 100")
                }
            },
        };
        let most = u64::from(DAILY_MARKET_DAYS);
        let daily_market = within(self.daily_market.unwrap_or(most), "daily-market", 30, most)?;
        let mut parameters = Parameters::new((customers / unit) as u32);
        parameters.scale.home = home as u32;
        parameters.scale.trade_days = trade_days as u32;
        parameters.scale.daily_market_days = daily_market as u32;
        let parameters = Parameters {
            local_pct: percent(self.local.unwrap_or(100.0), "local")?,
            market_time,
            processes: setting.processes as u32,
            split_columns: self.split_columns != Some(Switch::Off),
            deck: if self.paper { PAPER_DECK } else { DECK },
            put_back: self.paper,
            maintenance: !self.paper,
            seed: setting.seed,
            ..parameters
        };
        Ok(Arc::new(TpceScale { parameters, shards, paper: self.paper }))
    }
}

impl Scale for TpceScale {
    fn config(&self) -> Vec<(&'static str, Value)> {
        let of = &self.parameters;
        let market_time = match of.market_time {
            MarketTime::Orders => "orders".into(),
            MarketTime::Clock(factor) => factor.into(),
        };
        vec![
            ("customers", of.scale.customers().into()),
            ("trade_days", of.scale.trade_days.into()),
            ("home", of.scale.home.into()),
            ("daily_market", of.scale.daily_market_days.into()),
            ("local", of.local_pct.into()),
            ("market_time", market_time),
            ("split_columns", of.split_columns.into()),
            ("paper", self.paper.into()),
        ]
    }

    fn bytes_estimate(&self) -> u64 {
        // Per record a header of 64 bytes, per key 32 bytes of index.
        const RECORD: u64 = 64 + 32;
        let scale = self.parameters.scale;
        let groups = if self.parameters.split_columns { 64 } else { 0 };
        let customers = u64::from(scale.customers());
        let securities = u64::from(scale.securities());
        let per_trade = 4 * RECORD + 3 * groups + 130 // trade, its executor, two indexes
            + 5 * RECORD / 2 // trade_history
            + 2 * (RECORD + groups) + 170 // settlement, cash_transaction
            + 5 * (RECORD + 8) / 2; // holding_history both ways
        let per_customer = 5 * (2 * RECORD + groups + 120) // accounts, permissions
            + 50 * 2 * RECORD // holdings
            + 100 * RECORD // watch_item
            + 6 * RECORD + groups + 600;
        let per_security = u64::from(scale.daily_market_days) * (RECORD + 20) + 6 * RECORD + 300;
        let per_company = 20 * (RECORD + 90) + 2 * (RECORD + 1500) + 10 * RECORD + 600;
        let copies = (u64::from(scale.companies()) * 500 + securities * 250 + 14_741 * 270) * self.shards;
        let trades = scale.trades() * u64::from(scale.homes());
        trades * per_trade
            + BySecurity::bytes(trades) * u64::from(self.parameters.processes)
            + customers * per_customer
            + securities * per_security
            + u64::from(scale.companies()) * per_company
            + copies
    }

    fn make(&self) -> Result<Arc<dyn AnyWorkload>, String> {
        Ok(Arc::new(Tpce::new(self.parameters.clone())))
    }
}
