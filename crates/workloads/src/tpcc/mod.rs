//! TPC-C (TPC Benchmark C, revision 5.11): a wholesale supplier with warehouses, and the
//! transactions of its order-entry clerks.
//!
//! Eleven tables ([`schema`]), all rows in full. Everything of a warehouse lives in one slot, or is
//! spread ([`Parameters::spread`]); items are copied everywhere. Five transactions, drawn
//! independently with the weights of [`Parameters::mix`]:
//!
//! | transaction | mix | what it does |
//! |---|---|---|
//! | [`NewOrder`] | 45 | orders 5 to 15 items, 1 % of the lines from other warehouses; 1 % roll back |
//! | [`Payment`] | 43 | a payment, 15 % by customers of other warehouses |
//! | [`OrderStatus`] | 4 | read-only: a customer's newest order |
//! | [`Delivery`] | 4 | delivers the oldest order of ten districts, in one transaction; spread, of one district |
//! | [`StockLevel`] | 4 | read-only: low stocks among the last orders of a district, or of k districts |
//!
//! **Clients** run in a closed loop without keying and thinking times, as in the papers, so the
//! specification's 12.86 new orders per minute and warehouse do not bound the throughput, and
//! results are not tpmC in the TPC's sense. A client draws the home warehouse of each transaction
//! from those of its shard, so that every warehouse is busy however few clients there are; spread,
//! warehouse and district. Dates come from a counter of the client, not from a clock, so that a
//! seed replays a run.
//!
//! **Checks.** The twelve consistency conditions, and the data against the drivers' counters
//! (`conditions.rs`).
//!
//! **What is left out**: terminals and their screens, the deferred queue of Delivery (it runs
//! inline), the card deck (draws are independent), and the mix of the specification's auditing
//! rules. The same item may occur twice in an order, as the specification allows.

mod audit;
mod client;
mod conditions;
mod delivery;
mod flags;
mod load;
mod new_order;
mod order_status;
mod payment;
pub mod schema;
mod stock_level;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::shipped::{Items, OneShot, Shipped, Unpack, unpack};
use plimsoll_types::{Abort, ShardId, Slot, TableSpec};

pub use audit::Audit;
pub use client::Client;
pub use delivery::Delivery;
pub use flags::TpccFlags;
pub use new_order::NewOrder;
pub use order_status::{OrderStatus, StatusLine};
pub use payment::Payment;
pub use stock_level::StockLevel;

use crate::{Check, Kind, Sink, Tally, Workload};
use plimsoll_types::random::{NuRand, Rng};
use schema::Layout;

/// Districts of a warehouse.
pub const DISTRICTS: u8 = 10;

/// Positions in [`Workload::SUMS`].
const ORDER_LINES: usize = 0;
const REMOTE_LINES: usize = 1;
const QUANTITY: usize = 2;
const PAYMENT_CENTS: usize = 3;
const DELIVERED_ORDERS: usize = 4;
const DELIVERED_CENTS: usize = 5;
const SKIPPED_DELIVERIES: usize = 6;

/// What a TPC-C database looks like and what its clients do.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Number of warehouses, 1..=W; warehouse w lives in slot w, or its row does.
    pub warehouses: u32,
    /// Whether a warehouse is spread over all shards (the "scaled TPC-C" of ROCOCO's paper): a
    /// district with all that belongs to it is in one slot, and a stock in one that its item
    /// decides. So even one warehouse is a load for many shards, with much contention, and nearly
    /// every New-Order and many a Payment is on several.
    pub spread: bool,
    /// Number of items, the same for every number of warehouses.
    pub items: u32,
    /// Customers in each district, and orders at load.
    pub customers_per_district: u32,
    /// Share of the lines of New-Order that another warehouse supplies, in per cent (clause
    /// 2.4.1.5).
    pub remote_item_pct: f64,
    /// Share of the payments by customers of another warehouse, in per cent (clause 2.5.1.2).
    pub remote_payment_pct: f64,
    /// Share of New-Orders that roll back, in per cent (clause 2.4.1.4).
    pub rollback_pct: f64,
    /// Districts that one Stock-Level looks at, 1 to 20. With more than one they are drawn from all
    /// warehouses.
    pub stock_level_districts: u32,
    /// Orders that Stock-Level looks at in a district.
    pub stock_level_orders: u32,
    /// Whether the columns that different transactions use are records of their own; see
    /// [`schema`].
    pub split_columns: bool,
    /// Weights of New-Order, Payment, Order-Status, Delivery and Stock-Level.
    pub mix: [u32; 5],
    /// Seed of loading and clients.
    pub seed: u64,
}

impl Parameters {
    /// The specification's database of so many warehouses, and the papers' mix.
    pub fn new(warehouses: u32) -> Parameters {
        Parameters {
            warehouses,
            spread: false,
            items: 100_000,
            customers_per_district: 3000,
            remote_item_pct: 1.0,
            remote_payment_pct: 15.0,
            rollback_pct: 1.0,
            stock_level_districts: 1,
            stock_level_orders: 20,
            split_columns: true,
            mix: [45, 43, 4, 4, 4],
            seed: 1,
        }
    }

    /// The same with a database that loads in a blink, for tests and simulations.
    pub fn small(warehouses: u32) -> Parameters {
        Parameters { items: 100, customers_per_district: 30, ..Parameters::new(warehouses) }
    }

    /// Says in one sentence what is wrong with the parameters.
    pub fn validate(&self) -> Result<(), String> {
        let within = |what: &str, value: u32, least: u32, most: u32| match value {
            value if (least..=most).contains(&value) => Ok(()),
            value => Err(format!("TPC-C needs {least} to {most} {what}, not {value}.")),
        };
        within("warehouses", self.warehouses, 1, 1_000_000)?;
        within("items", self.items, 1, 10_000_000)?;
        within("customers per district", self.customers_per_district, 1, 65_535)?;
        let districts = self.stock_level_districts;
        within("districts in a Stock-Level", districts, 1, stock_level::DISTRICTS_MAX as u32)?;
        within("orders in a Stock-Level", self.stock_level_orders, 1, 1000)?;
        for (what, percent) in [
            ("remote items", self.remote_item_pct),
            ("remote payments", self.remote_payment_pct),
            ("rolled-back New-Orders", self.rollback_pct),
        ] {
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("The share of {what} is between 0 and 100 per cent, not {percent}."));
            }
        }
        if self.mix.iter().all(|&weight| weight == 0) {
            return Err("The mix of transactions needs at least one weight above 0.".to_owned());
        }
        if self.mix.iter().any(|&weight| weight > 1_000_000) {
            return Err("The weights of the mix are at most 1000000.".to_owned());
        }
        Ok(())
    }

    fn layout(&self) -> Layout {
        Layout { split: self.split_columns, spread: self.spread }
    }

    /// Orders at load, per district.
    fn loaded_orders(&self) -> u32 {
        self.customers_per_district
    }

    /// Orders that are delivered at load, per district: 2,100 of 3,000.
    fn delivered_orders(&self) -> u32 {
        self.loaded_orders() * 7 / 10
    }

    /// How many different last names there are.
    fn last_names(&self) -> u32 {
        self.customers_per_district.min(1000)
    }
}

/// The TPC-C workload.
#[derive(Clone, Debug)]
pub struct Tpcc {
    parameters: Parameters,
    customer_numbers: NuRand,
    item_numbers: NuRand,
    name_numbers: NuRand,
    mix_total: u64,
}

impl Tpcc {
    /// The workload with these parameters, or what is wrong with them.
    pub fn new(parameters: Parameters) -> Result<Tpcc, String> {
        parameters.validate()?;
        Ok(Tpcc {
            customer_numbers: NuRand::new(1023, 259, 1..=parameters.customers_per_district),
            item_numbers: NuRand::new(8191, 7911, 1..=parameters.items),
            name_numbers: NuRand::new(255, 223, 0..=parameters.last_names() - 1),
            mix_total: parameters.mix.iter().map(|&weight| u64::from(weight)).sum(),
            parameters,
        })
    }

    /// What it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    #[inline]
    fn layout(&self) -> Layout {
        self.parameters.layout()
    }

    /// A uniform warehouse that is not this one.
    fn other_warehouse(&self, rng: &mut Rng, warehouse: u32) -> u32 {
        let other = rng.uniform(1..=u64::from(self.parameters.warehouses) - 1) as u32;
        other + u32::from(other >= warehouse)
    }
}

/// A TPC-C transaction.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Drawn and run in place, one at a time; a box would cost more.
pub enum Transaction {
    /// Orders items.
    NewOrder(NewOrder),
    /// Pays.
    Payment(Payment),
    /// Shows a customer's newest order.
    OrderStatus(OrderStatus),
    /// Delivers orders.
    Delivery(Delivery),
    /// Counts low stocks.
    StockLevel(StockLevel),
}

/// Calls a method of whichever transaction it is.
macro_rules! each {
    ($transaction:expr, $inner:ident => $call:expr) => {
        match $transaction {
            Transaction::NewOrder($inner) => $call,
            Transaction::Payment($inner) => $call,
            Transaction::OrderStatus($inner) => $call,
            Transaction::Delivery($inner) => $call,
            Transaction::StockLevel($inner) => $call,
        }
    };
}

impl Procedure for Transaction {
    #[inline]
    fn read_only(&self) -> bool {
        each!(self, inner => inner.read_only())
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        each!(self, inner => inner.stage(stage))
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        each!(self, inner => inner.home(piece))
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        each!(self, inner => inner.reads(piece, reads));
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        each!(self, inner => inner.execute(piece, access))
    }

    #[inline]
    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Transaction);

const READ_ONLY: &str = "what is read-only has no pieces";

impl OneShot for Transaction {
    fn piece_type(&self, piece: Piece) -> usize {
        match self {
            Transaction::NewOrder(order) => order.piece_type(piece),
            Transaction::Payment(payment) => payment.piece_type(piece),
            Transaction::Delivery(delivery) => delivery.piece_type(),
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => unreachable!("{READ_ONLY}"),
        }
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        match self {
            Transaction::NewOrder(order) => order.items(piece, items),
            Transaction::Payment(payment) => payment.items(piece, items),
            Transaction::Delivery(delivery) => delivery.items(piece, items),
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => unreachable!("{READ_ONLY}"),
        }
    }

    fn absorb(&mut self, piece: Piece, executed: &Transaction) {
        match (self, executed) {
            (Transaction::NewOrder(order), Transaction::NewOrder(executed)) => order.absorb(piece, executed),
            (Transaction::Payment(payment), Transaction::Payment(executed)) => {
                payment.absorb(piece, executed)
            }
            (Transaction::Delivery(delivery), Transaction::Delivery(executed)) => delivery.absorb(executed),
            _ => {}
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Transaction::NewOrder(order) => order.is_sound(),
            Transaction::Delivery(delivery) => delivery.is_sound(),
            _ => true,
        }
    }
}

plimsoll_types::wire!(enum Transaction {
    NewOrder(order) = 0, Payment(payment) = 1, Delivery(delivery) = 2; Self::OrderStatus(_) | Self::StockLevel(_)
});

impl Workload for Tpcc {
    type Procedure = Transaction;
    type Client = Client;
    type Audit = Audit;

    const NAME: &'static str = "tpcc";
    const KINDS: &'static [Kind] = &[
        Kind::writing("new_order"),
        Kind::writing("payment"),
        Kind::reading("order_status"),
        Kind::writing("delivery"),
        Kind::reading("stock_level"),
    ];
    const SUMS: &'static [&'static str] = &[
        "order_lines",
        "remote_order_lines",
        "ordered_quantity",
        "payment_cents",
        "delivered_orders",
        "delivered_cents",
        "skipped_deliveries",
    ];

    fn tables(&self) -> Vec<TableSpec> {
        schema::tables(self.layout())
    }

    fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
        let layout = self.layout();
        let mut types = new_order::pieces(layout);
        types.extend(payment::pieces(layout));
        types.extend(delivery::pieces(layout));
        Some((types, unpack::<Transaction>))
    }

    fn units(&self) -> usize {
        load::units(&self.parameters)
    }

    fn unit_slot(&self, unit: usize) -> Option<Slot> {
        load::slot(&self.parameters, unit)
    }

    fn load(&self, unit: usize, sink: Sink<'_>) {
        load::load(&self.parameters, unit, sink);
    }

    /// `client` is below 65,535, and must not be used twice on one database: its payments would get
    /// the keys of those before.
    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Client {
        Client::new(&self.parameters, client, shard, owner)
    }

    #[inline]
    fn next(&self, client: &mut Client, _: u64) -> Transaction {
        let mut draw = client.rng.below(self.mix_total) as u32;
        let mut kind = 0;
        while draw >= self.parameters.mix[kind] {
            draw -= self.parameters.mix[kind];
            kind += 1;
        }
        match kind {
            0 => Transaction::NewOrder(NewOrder::draw(self, client)),
            1 => Transaction::Payment(Payment::draw(self, client)),
            2 => Transaction::OrderStatus(OrderStatus::draw(self, client)),
            3 => Transaction::Delivery(Delivery::draw(self, client)),
            _ => Transaction::StockLevel(StockLevel::draw(self, client)),
        }
    }

    #[inline]
    fn kind(procedure: &Transaction) -> usize {
        match procedure {
            Transaction::NewOrder(_) => 0,
            Transaction::Payment(_) => 1,
            Transaction::OrderStatus(_) => 2,
            Transaction::Delivery(_) => 3,
            Transaction::StockLevel(_) => 4,
        }
    }

    #[inline]
    fn tally(procedure: &Transaction, sums: &mut [i64]) {
        match procedure {
            Transaction::NewOrder(order) => {
                let (lines, remote, quantity) = order.line_sums();
                sums[ORDER_LINES] += lines;
                sums[REMOTE_LINES] += remote;
                sums[QUANTITY] += quantity;
            }
            Transaction::Payment(payment) => sums[PAYMENT_CENTS] += payment.amount(),
            Transaction::Delivery(delivery) => {
                let orders = delivery.orders() as i64;
                sums[DELIVERED_ORDERS] += orders;
                sums[DELIVERED_CENTS] += delivery.amount();
                sums[SKIPPED_DELIVERIES] += delivery.districts().len() as i64 - orders;
            }
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => {}
        }
    }

    /// One for each warehouse.
    fn audits(&self) -> Vec<Audit> {
        (1..=self.parameters.warehouses).map(|w| Audit::whole(&self.parameters, w)).collect()
    }

    /// A glance at one district, all of them in turn.
    fn online_audit(&self, number: usize) -> Audit {
        let warehouses = self.parameters.warehouses as usize;
        let (w, d) = (number % warehouses, number / warehouses % usize::from(DISTRICTS));
        Audit::glance(&self.parameters, w as u32 + 1, d as u8 + 1)
    }

    fn judge_snapshot(&self, audit: &Audit) -> Vec<Check> {
        audit.judge_snapshot()
    }

    fn found(&self, audits: &[&Audit]) -> Tally {
        conditions::found(&self.parameters, audits)
    }

    fn judge(&self, audits: &[Audit], tally: &Tally) -> Vec<Check> {
        conditions::judge(&self.parameters, audits, tally)
    }
}

#[cfg(test)]
mod tests;
