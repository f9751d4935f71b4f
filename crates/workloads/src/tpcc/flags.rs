//! The flags of TPC-C, and the scale that they come to.

use std::sync::Arc;

use clap::Args;
use plimsoll_args::{Refusal, Switch, number, percent, refuse, within};
use serde_json::Value;

use super::{DISTRICTS, Parameters, Tpcc};
use crate::registry::{Flags, Scale, Setting};
use crate::{AnyWorkload, Workload};

/// TPC-C's own number of items.
const ITEMS_DEFAULT: u64 = 100_000;
/// TPC-C's own number of customers per district.
const CUSTOMERS_DEFAULT: u64 = 3_000;
/// Identifiers of warehouses, items and customers are 32 bits wide; this leaves room to count.
const ID_MAX: u64 = 1_000_000_000;

/// The scale of TPC-C on so many shards, each of which has a copy of the items.
#[derive(Clone, Debug)]
struct TpccScale {
    parameters: Parameters,
    shards: u64,
}

/// The flags of TPC-C.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct TpccFlags {
    /// Warehouses in all (tpcc).
    #[arg(
        long,
        value_parser = number,
        value_name = "N",
        help_heading = "Scale",
        conflicts_with = "warehouses_per_shard"
    )]
    warehouses: Option<u64>,
    /// Warehouses per shard (tpcc); fewer mean more contention [default: 1].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    warehouses_per_shard: Option<u64>,
    /// Spread each warehouse over all shards, its districts and its stocks (tpcc).
    ///
    /// Nearly every New-Order is then on several shards; and few warehouses on many shards are a
    /// load with much contention.
    #[arg(long, help_heading = "Scale")]
    spread: bool,
    /// Items, and stock records per warehouse (tpcc) [default: 100000].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    items: Option<u64>,
    /// Customers per district (tpcc) [default: 3000].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Scale")]
    customers: Option<u64>,
    /// Districts that one stock-level transaction reads, 1 to 20 (tpcc) [default: 1].
    #[arg(long, value_parser = number, value_name = "N", help_heading = "Mix")]
    districts: Option<u64>,
    /// Payments by customers of another warehouse, percent (tpcc) [default: 15].
    #[arg(long, value_name = "PERCENT", help_heading = "Mix")]
    remote_payments: Option<f64>,
    /// Store often written columns apart from the others (tpcc) [default: on].
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true, help_heading = "Mix")]
    split_columns: Option<Switch>,
}

impl Flags for TpccFlags {
    const NAME: &'static str = Tpcc::NAME;
    const TITLE: &'static str = "TPC-C";
    const ABOUT: &'static str = "Order processing: nine tables, five transactions, 8% read-only (TPC-C)";

    fn scale(self, setting: &Setting) -> Result<Arc<dyn Scale>, Refusal> {
        let shards = setting.shards as u64;
        let per_shard = within(self.warehouses_per_shard.unwrap_or(1), "warehouses-per-shard", 1, ID_MAX)?;
        let warehouses = match self.warehouses {
            Some(warehouses) => within(warehouses, "warehouses", 1, ID_MAX)?,
            None => (per_shard * shards).min(ID_MAX),
        };
        if warehouses < shards && !self.spread {
            refuse!(
                "{warehouses} of the {shards} shards would have a warehouse and the others no work: give at \
                 least --warehouses {shards}, or --shards {warehouses}, or --spread"
            );
        }
        let districts = self.districts.unwrap_or(1);
        if !(1..=20).contains(&districts) {
            refuse!("--districts {districts} is outside 1..20: a stock-level reads 1 to 20 districts");
        }
        let items = within(self.items.unwrap_or(ITEMS_DEFAULT), "items", 100, ID_MAX)?;
        let customers = within(self.customers.unwrap_or(CUSTOMERS_DEFAULT), "customers", 30, ID_MAX)?;
        let shares = [("distributed", setting.distributed), ("remote-payments", self.remote_payments)];
        for (flag, given) in shares {
            if warehouses == 1 && given.is_some_and(|percent| percent > 0.0) {
                refuse!("--{flag} needs a second warehouse: give --warehouses 2 or more, or leave it out");
            }
        }
        // A single warehouse has no other to order from.
        let (lines, payments) = if warehouses == 1 { (0.0, 0.0) } else { (1.0, 15.0) };
        let parameters = Parameters {
            items: items as u32,
            customers_per_district: customers as u32,
            stock_level_districts: districts as u32,
            remote_item_pct: percent(setting.distributed.unwrap_or(lines), "distributed")?,
            remote_payment_pct: percent(self.remote_payments.unwrap_or(payments), "remote-payments")?,
            split_columns: self.split_columns != Some(Switch::Off),
            spread: self.spread,
            seed: setting.seed,
            ..Parameters::new(warehouses as u32)
        };
        Ok(Arc::new(TpccScale { parameters, shards }))
    }
}

impl Scale for TpccScale {
    fn config(&self) -> Vec<(&'static str, Value)> {
        let of = &self.parameters;
        vec![
            ("warehouses", of.warehouses.into()),
            ("spread", of.spread.into()),
            ("items", of.items.into()),
            ("customers", of.customers_per_district.into()),
            ("districts", of.stock_level_districts.into()),
            ("distributed", of.remote_item_pct.into()),
            ("remote_payments", of.remote_payment_pct.into()),
            ("split_columns", of.split_columns.into()),
        ]
    }

    fn bytes_estimate(&self) -> u64 {
        // Values, and per record a header of 64 bytes, per key 32 bytes of index.
        const RECORD: u64 = 64 + 32;
        let of = &self.parameters;
        let groups = if of.split_columns { 1 } else { 0 };
        let customers = u64::from(of.customers_per_district) * u64::from(DISTRICTS);
        let items = u64::from(of.items);
        let per_item = RECORD + 32 + 38;
        let per_stock = RECORD + groups * 64 + 16 + 240 + 38;
        let per_customer = RECORD + groups * 2 * 64 + 145 + 24 + 400
            + RECORD // customer_name
            + RECORD + 18 + 18 // history
            + RECORD + 11 // order
            + RECORD // customer_order
            + RECORD * 3 / 10 // new_order
            + 10 * (RECORD + 41); // order_line
        let warehouse = items * per_stock + customers * per_customer;
        let items = (items * per_item).saturating_mul(self.shards);
        warehouse.saturating_mul(of.warehouses.into()).saturating_add(items)
    }

    fn make(&self) -> Result<Arc<dyn AnyWorkload>, String> {
        Ok(Arc::new(Tpcc::new(self.parameters.clone())?))
    }
}
