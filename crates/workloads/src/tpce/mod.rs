//! TPC-E (TPC Benchmark E): a brokerage, its customers and the market.
//!
//! Customers look at prices and at what they have, and order trades; the market answers each order
//! with a trade at a price, and tells the prices of others. 33 logical tables ([`schema`]), all
//! columns; twelve transactions, written as pieces.

mod audit;
pub mod broker_volume;
mod client;
mod conditions;
pub mod customer_position;
pub mod data_maintenance;
mod flags;
mod initial;
mod load;
pub mod market;
pub mod market_feed;
pub mod market_watch;
pub mod numbers;
pub mod people;
pub mod prices;
#[cfg(test)]
mod read_only_tests;
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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use plimsoll_txn::chopping::{Chopping, Unrepairable};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, ShardId, Slot, TableSpec};

pub use audit::Audit;
use broker_volume::BrokerVolume;
pub use client::Client;
use client::{Card, Turn};
use conditions::{
    CANCELLED_TRADES, CASH_CENTS, COMMISSION_CENTS, COMPLETED_TRADES, FEED_QUANTITY, ORDERED_TRADES,
    SETTLED_CENTS, SUBMITTED_LIMIT_ORDERS,
};
use customer_position::CustomerPosition;
use data_maintenance::DataMaintenance;
pub use flags::TpceFlags;
use initial::BySecurity;
use market_feed::MarketFeed;
use market_watch::MarketWatch;
use numbers::Scale;
use prices::Prices;
use schema::Layout;
use security_detail::SecurityDetail;
use trade_cleanup::TradeCleanup;
use trade_lookup::TradeLookup;
use trade_order::TradeOrder;
use trade_result::TradeResult;
use trade_status::TradeStatus;
use trade_update::TradeUpdate;

use crate::{Check, Kind, Sink, Tally, Workload};

/// What makes market time pass.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MarketTime {
    /// Orders: each committed Trade-Order advances it by what lies between two orders at the
    /// nominal rate, so that everything that depends on the market is per order as it would be
    /// there.
    Orders,
    /// The clock, faster by this factor.
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
    /// Whether a card that is drawn goes back into the deck at once, so that each draw is
    /// independent of all others; otherwise all cards are drawn before one is drawn again.
    pub put_back: bool,
    /// Whether Data-Maintenance runs, once a minute of market time.
    pub maintenance: bool,
    /// Seed of loading and clients.
    pub seed: u64,
}

/// The specification's deck: Broker-Volume, Customer-Position, Market-Watch, Security-Detail,
/// Trade-Lookup, Trade-Order, Trade-Status, Trade-Update. Trade-Results and Market-Feeds follow
/// from orders.
pub const DECK: [u32; 8] = [49, 130, 180, 140, 80, 101, 190, 20];

/// The same of the paper on DST, whose shares are whole percents.
pub const PAPER_DECK: [u32; 8] = [5, 13, 18, 14, 8, 10, 19, 2];

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
            put_back: false,
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
    /// The clock that a client has told last, in nanoseconds, if market time goes with it.
    clock_ns: AtomicU64,
    /// The clock that a client has told first, in nanoseconds.
    clock_first_ns: AtomicU64,
    /// Where clients begin to count their trades: behind those that earlier runs have left.
    first_sequence: AtomicU64,
    /// The minute of market time of the last Data-Maintenance, and how many there were.
    minute: AtomicU64,
    maintained: AtomicU64,
    /// Whether a client has used up its numbers for trades.
    exhausted: AtomicBool,
    /// Orders that wait for the market's answer, and the largest number of them.
    open: AtomicU64,
    open_max: AtomicU64,
    /// Orders that wait for their price.
    pending: AtomicU64,
    /// The initial trades by security, once a market place is loaded.
    by_security: OnceLock<BySecurity>,
}

impl Tpce {
    /// The workload with these parameters. A scale so thin that a home has no customer is a panic.
    pub fn new(parameters: Parameters) -> Tpce {
        let Scale { home, customers_per_unit, .. } = parameters.scale;
        assert!(home * customers_per_unit >= numbers::UNIT, "every home has a customer");
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

/// A TPC-E transaction.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // Drawn and run in place, one at a time; a box would cost more.
pub enum Transaction {
    /// What pending orders of brokers are worth.
    BrokerVolume(BrokerVolume),
    /// What a customer has.
    CustomerPosition(CustomerPosition),
    /// How prices have changed.
    MarketWatch(MarketWatch),
    /// All about a security.
    SecurityDetail(SecurityDetail),
    /// Looks at trades.
    TradeLookup(TradeLookup),
    /// Orders a trade.
    TradeOrder(TradeOrder),
    /// The newest trades of an account.
    TradeStatus(TradeStatus),
    /// Changes notes of trades.
    TradeUpdate(TradeUpdate),
    /// The market has executed an order.
    TradeResult(TradeResult),
    /// The market tells a price, one of the twenty of a feed.
    MarketFeed(MarketFeed),
    /// Changes what changes seldom.
    DataMaintenance(DataMaintenance),
    /// Gives up what an earlier run has left open.
    TradeCleanup(TradeCleanup),
}

/// Calls a method of whichever transaction it is.
macro_rules! each {
    ($transaction:expr, $inner:ident => $call:expr) => {
        match $transaction {
            Transaction::BrokerVolume($inner) => $call,
            Transaction::CustomerPosition($inner) => $call,
            Transaction::MarketWatch($inner) => $call,
            Transaction::SecurityDetail($inner) => $call,
            Transaction::TradeLookup($inner) => $call,
            Transaction::TradeOrder($inner) => $call,
            Transaction::TradeStatus($inner) => $call,
            Transaction::TradeUpdate($inner) => $call,
            Transaction::TradeResult($inner) => $call,
            Transaction::MarketFeed($inner) => $call,
            Transaction::DataMaintenance($inner) => $call,
            Transaction::TradeCleanup($inner) => $call,
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
}

plimsoll_txn::executable!(Transaction);

impl Workload for Tpce {
    type Procedure = Transaction;
    type Client = Client;
    type Audit = Audit;

    const NAME: &'static str = "tpce";
    const KINDS: &'static [Kind] = &[
        Kind::writing("trade_result").nominal(1000),
        Kind::writing("trade_order").nominal(1010),
        Kind::writing("market_feed").per(market::FEED as u32).nominal(100),
        Kind::writing("trade_update").nominal(200),
        Kind::reading("broker_volume").nominal(490),
        Kind::reading("customer_position").nominal(1300),
        Kind::reading("market_watch").nominal(1800),
        Kind::reading("security_detail").nominal(1400),
        Kind::reading("trade_lookup").nominal(800),
        Kind::reading("trade_status").nominal(1900),
        Kind::writing("data_maintenance").per(0),
        Kind::writing("trade_cleanup").per(0),
    ];
    const SUMS: &'static [&'static str] = conditions::SUMS;
    const READS_COPIES_AT_HAND: bool = true;

    fn tables(&self) -> Vec<TableSpec> {
        schema::tables(self.scale(), self.parameters.split_columns)
    }

    fn chopping(&self) -> Result<Chopping, Unrepairable> {
        Err(Unrepairable(
            "of one Trade-Order both the piece at the customer, which reads holdings that Trade-Result changes, and the \
             piece at the security, whose price is needed and where Market-Feed looks for orders, execute when they \
             start: trade_order.customer -S- trade_order.security -C- market_feed -C- trade_order.security is a cycle \
             that reordering does not repair."
                .to_owned(),
        ))
    }

    fn units(&self) -> usize {
        load::units(self.scale())
    }

    fn unit_slot(&self, unit: usize) -> Option<Slot> {
        load::slot(self.scale(), unit)
    }

    fn load(&self, unit: usize, sink: Sink<'_>) {
        load::load(self, unit, sink);
    }

    /// `client` is below 65,536, or has more bits above: the trades of two clients whose lower 16
    /// bits are the same get the same numbers, unless `found` was asked in between.
    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Client {
        Client::new(&self.parameters, self.shared.clone(), client, shard, owner)
    }

    #[inline]
    fn next(&self, client: &mut Client, now_ns: u64) -> Transaction {
        self.tick(now_ns);
        match client.turn(self) {
            Turn::Card(Card::BrokerVolume) => Transaction::BrokerVolume(BrokerVolume::draw(self, client)),
            Turn::Card(Card::CustomerPosition) => {
                Transaction::CustomerPosition(CustomerPosition::draw(self, client))
            }
            Turn::Card(Card::MarketWatch) => Transaction::MarketWatch(MarketWatch::draw(self, client)),
            Turn::Card(Card::SecurityDetail) => {
                Transaction::SecurityDetail(SecurityDetail::draw(self, client))
            }
            Turn::Card(Card::TradeLookup) => Transaction::TradeLookup(TradeLookup::draw(self, client)),
            Turn::Card(Card::TradeOrder) => Transaction::TradeOrder(TradeOrder::draw(self, client)),
            Turn::Card(Card::TradeStatus) => Transaction::TradeStatus(TradeStatus::draw(self, client)),
            Turn::Card(Card::TradeUpdate) => Transaction::TradeUpdate(TradeUpdate::draw(self, client)),
            Turn::Answer(answer) => Transaction::TradeResult(TradeResult::draw(self, client, answer)),
            Turn::Entry(entry) => Transaction::MarketFeed(MarketFeed::draw(self, client, entry)),
            Turn::Maintenance(number) => {
                Transaction::DataMaintenance(DataMaintenance::draw(self, client, number))
            }
        }
    }

    #[inline]
    fn done(&self, client: &mut Client, procedure: &Transaction, committed: bool) {
        if !committed {
            return client.again(procedure);
        }
        match procedure {
            Transaction::TradeOrder(order) => client.ordered(self, order),
            Transaction::TradeResult(result) => client.completed(self, result),
            Transaction::MarketFeed(feed) => client.fed(feed),
            _ => {}
        }
    }

    #[inline]
    fn kind(procedure: &Transaction) -> usize {
        match procedure {
            Transaction::TradeResult(_) => 0,
            Transaction::TradeOrder(_) => 1,
            Transaction::MarketFeed(_) => 2,
            Transaction::TradeUpdate(_) => 3,
            Transaction::BrokerVolume(_) => 4,
            Transaction::CustomerPosition(_) => 5,
            Transaction::MarketWatch(_) => 6,
            Transaction::SecurityDetail(_) => 7,
            Transaction::TradeLookup(_) => 8,
            Transaction::TradeStatus(_) => 9,
            Transaction::DataMaintenance(_) => 10,
            Transaction::TradeCleanup(_) => 11,
        }
    }

    #[inline]
    fn tally(procedure: &Transaction, sums: &mut [i64]) {
        match procedure {
            Transaction::TradeOrder(_) => sums[ORDERED_TRADES] += 1,
            Transaction::TradeResult(result) => {
                sums[COMPLETED_TRADES] += 1;
                sums[COMMISSION_CENTS] += result.commission();
                sums[SETTLED_CENTS] += result.amount();
                sums[CASH_CENTS] += if result.for_cash() { result.amount() } else { 0 };
            }
            Transaction::MarketFeed(feed) => {
                sums[FEED_QUANTITY] += i64::from(feed.entry().quantity);
                sums[SUBMITTED_LIMIT_ORDERS] += feed.triggered().len() as i64;
            }
            Transaction::TradeCleanup(cleanup) => {
                sums[CANCELLED_TRADES] += cleanup.cancelled() as i64;
                sums[SUBMITTED_LIMIT_ORDERS] += cleanup.pending() as i64;
            }
            _ => {}
        }
    }

    fn rows_read(procedure: &Transaction) -> Option<u32> {
        Some(match procedure {
            Transaction::BrokerVolume(volume) => volume.rows(),
            Transaction::CustomerPosition(position) => position.rows(),
            Transaction::MarketWatch(watch) => watch.rows(),
            Transaction::SecurityDetail(detail) => detail.rows(),
            Transaction::TradeLookup(lookup) => lookup.rows(),
            Transaction::TradeStatus(status) => status.rows(),
            Transaction::TradeUpdate(update) => update.rows(),
            _ => return None,
        })
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("most orders outstanding at a time", self.shared.open_max.load(Relaxed)),
            ("limit orders pending", self.shared.pending.load(Relaxed)),
        ]
    }

    fn audits(&self) -> Vec<Audit> {
        Audit::all(&self.parameters)
    }

    fn online_audit(&self, number: usize) -> Audit {
        Audit::online(&self.parameters, number)
    }

    fn follow(&self, audit: &mut Audit, last: &Audit) {
        audit.follow(last);
    }

    fn judge_snapshot(&self, audit: &Audit) -> Vec<Check> {
        conditions::judge_snapshot(audit)
    }

    fn found(&self, audits: &[&Audit]) -> Tally {
        let (sequence, date) = conditions::last_sequence_and_date(audits);
        self.shared.first_sequence.fetch_max(sequence, Relaxed);
        // Later than all dates that there are, on the market's clock.
        let passed_ms = numbers::trading_of(date).saturating_sub(self.prices().before_s * 1000);
        self.shared.market_us.fetch_max(1000 * passed_ms, Relaxed);
        conditions::found(&self.parameters, audits)
    }

    fn clean_ups(&self, audits: &[&Audit]) -> Vec<Transaction> {
        let open = conditions::accounts_with_open_trades(audits);
        open.map(|account| Transaction::TradeCleanup(TradeCleanup::new(self, account))).collect()
    }

    fn exhausted(&self) -> Option<&'static str> {
        let exhausted = self.shared.exhausted.load(Relaxed);
        exhausted.then_some(
            "a client has ordered 8,388,607 trades since the load, the most that it has numbers for: start the nodes \
             anew, and load them again",
        )
    }

    fn judge(&self, audits: &[Audit], tally: &Tally) -> Vec<Check> {
        conditions::judge(&self.parameters, audits, tally)
    }
}
