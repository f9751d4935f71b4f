//! Trade-Order (clause 3.3.7): a customer, or another person with permission, orders a trade.
//!
//! Stages: find the security if the order names a company and an issue; at home the account with
//! its customer, what it holds of the security and the lots that the trade would close, and at the
//! market place the price; if the trade is on margin, the prices of all else that the account
//! holds; and the order itself, at the market place and at home. One order in 101 is rolled back in
//! the end.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};
use zerocopy::IntoBytes;

use super::numbers::{ISSUES_MAX, Scale, Trade};
use super::people::{self, company_name, full_name, person};
use super::prices::{HIGHEST, LOWEST};
use super::reference::{Status, TradeType, commission, tax};
use super::schema::{self, *};
use super::trades::*;
use super::{Client, Tpce};
use crate::NOT_LOADED;
use crate::rows::unpadded;

/// How an order names its security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// By its symbol, which is its number.
    Symbol(u32),
    /// By the name of the company, and the issue.
    Company([u8; 60], u8),
}

/// A person with permission to trade for an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Executor {
    last: [u8; 25],
    first: [u8; 20],
    tax_id: u64,
}

/// What an account holds of another security.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    security: u32,
    quantity: i32,
    /// In cents, once it is known.
    price: i64,
}

/// A Trade-Order transaction.
#[derive(Clone, Debug)]
pub struct TradeOrder {
    layout: Layout,
    scale: Scale,
    trade: Trade,
    account: u32,
    /// Who orders, if it is not the customer.
    executor: Option<Executor>,
    named: Named,
    kind: TradeType,
    quantity: i32,
    /// The limit in cents, of orders that have one.
    limit: i64,
    margin: bool,
    lifo: bool,
    roll_back: bool,
    date: u64,
    /// The security, once it is known.
    security: u32,
    /// CA_B_ID.
    broker: u32,
    /// C_TIER.
    tier: u8,
    /// The executor's name.
    name: [u8; 49],
    /// HS_QTY, 0 if there is none.
    held: i32,
    /// Quantity and value of the lots that the trade would close.
    closed: (i64, i64),
    /// The sum of the tax rates, 0 if the account is not taxed.
    rates: u32,
    /// CA_BAL in cents, of an order on margin.
    balance: i64,
    /// LT_PRICE in cents.
    price: i64,
    /// What else the account holds, by security, if the order is on margin.
    others: Vec<Held>,
    /// Output: the estimated tax in cents.
    tax: i64,
    /// Output: the estimated commission in cents.
    commission: i64,
    /// Output: the charge in cents.
    charge: i64,
}

/// What a piece does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Finds the security by name.
    Find,
    /// Reads the account and what it holds.
    Account,
    /// Reads the security's price.
    Price,
    /// Reads the price of another security that the account holds.
    Other(usize),
    /// Puts the order into the tables at the market place.
    Market,
    /// Puts it into those at home.
    Home,
}

impl TradeOrder {
    /// Draws the inputs (clause 6.4.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> TradeOrder {
        let scale = tpce.scale();
        let account = client.draw_account(tpce);
        let facts = people::account(tpce.parameters(), account);
        let trade = client.new_trade(scale.home_of_account(account));
        let date = client.now(tpce);
        let rng = &mut client.rng;
        let security = facts.basket[rng.below(facts.basket.len() as u64) as usize];
        // Where others have permission the customer orders in three cases of four.
        let executor = facts.others.iter().flatten().last().filter(|_| !rng.pct(75.0)).map(|&id| {
            let person = person(id);
            Executor { last: person.last, first: person.first, tax_id: person.tax_id }
        });
        let named = match rng.pct(60.0) {
            true => Named::Symbol(security),
            false => Named::Company(
                company_name(security / ISSUES_MAX * ISSUES_MAX),
                (security % ISSUES_MAX) as u8,
            ),
        };
        let kind = match rng.below(10) {
            0..3 => TradeType::MarketBuy,
            3..6 => TradeType::MarketSell,
            6..8 => TradeType::LimitBuy,
            8 => TradeType::LimitSell,
            _ => TradeType::StopLoss,
        };
        TradeOrder {
            layout: tpce.layout(),
            scale,
            trade,
            account,
            executor,
            named,
            kind,
            quantity: 100 << rng.below(4),
            limit: rng.uniform(LOWEST as u64..=HIGHEST as u64) as i64,
            margin: !kind.is_sell() && rng.pct(16.0),
            lifo: rng.pct(35.0),
            roll_back: rng.below(101) == 0,
            date,
            security,
            broker: 0,
            tier: 0,
            name: [0; 49],
            held: 0,
            closed: (0, 0),
            rates: 0,
            balance: 0,
            price: 0,
            others: Vec::new(),
            tax: 0,
            commission: 0,
            charge: 0,
        }
    }

    #[inline]
    fn step(&self, piece: Piece) -> Step {
        let stage = piece.stage + usize::from(!self.by_name());
        match (stage, piece.number) {
            (0, _) => Step::Find,
            (1, 0) => Step::Account,
            (1, _) => Step::Price,
            (2, number) if !self.others.is_empty() => Step::Other(number),
            (_, 0) => Step::Market,
            _ => Step::Home,
        }
    }

    /// All that the account holds.
    #[inline]
    fn holdings(&self) -> Scan {
        Scan::prefix(HOLDING_SUMMARY.row(), keys::number(self.account))
    }

    #[inline]
    fn lots(&self) -> Scan {
        lots(self.account, self.security, self.lifo)
    }

    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let Named::Company(name, issue) = &self.named else { return Ok(()) };
        let key = keys::name(unpadded(name));
        let company = self.layout.read(access, &key, |row: &schema::Named, _| row.number.get())?;
        self.security = company + u32::from(*issue);
        Ok(())
    }

    /// Frames 1 and 2, and of frame 3 what is about the account.
    #[inline]
    fn read_account<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let account = keys::number(self.account);
        let (broker, tax_status) =
            layout.read(access, &account, |row: &Account, _| (row.broker.get(), row.tax_status))?;
        self.broker = broker;
        let customer = keys::number(customer_of(self.account));
        let (tier, name) = layout
            .read(access, &customer, |row: &Customer, _| (row.tier, full_name(&row.first, &row.last)))?;
        (self.tier, self.name) = (tier, name);
        if let Some(executor) = &self.executor {
            let key = keys::permission(self.account, executor.tax_id);
            let permitted = layout.read(access, &key, |row: &Permission, _| {
                (row.last, row.first) == (executor.last, executor.first)
            })?;
            if !permitted {
                return Err(NOT_LOADED);
            }
            self.name = full_name(&executor.first, &executor.last);
        }
        self.rates = if tax_status > 0 { tax_rates(layout, access, customer_of(self.account))? } else { 0 };
        self.read_holdings(access)?;
        self.closed = (0, 0);
        // A sale closes what was bought, a purchase what was sold short.
        let closes = if self.kind.is_sell() { self.held > 0 } else { self.held < 0 };
        if !closes {
            return Ok(());
        }
        let (mut open, closed) = (i64::from(self.quantity), &mut self.closed);
        access.scan(&lots(self.account, self.security, self.lifo), |_, record| {
            let (lot, _) = layout.view::<Holding>(record);
            let part = open.min(i64::from(lot.quantity.get()).abs());
            closed.0 += part;
            closed.1 += part * i64::from(lot.price.get());
            open -= part;
            if open == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// What the account holds of the security; on margin, of all others and in cash, too.
    #[inline]
    fn read_holdings<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, security) = (self.layout, self.security);
        self.others.clear();
        if !self.margin {
            let key = keys::with_security(self.account, security);
            let summary = layout.find::<HoldingSummary, A>(access, &key)?;
            self.held = summary.map_or(0, |summary| summary.quantity.get());
            return Ok(());
        }
        let account = keys::number(self.account);
        self.balance = layout.read(access, &account, |row: &AccountBalance, _| row.balance.get())?;
        self.held = 0;
        let holdings = self.holdings();
        let (held, others) = (&mut self.held, &mut self.others);
        access.scan(&holdings, |key, record| {
            let quantity = layout.view::<HoldingSummary>(record).0.quantity.get();
            match keys::security_of(key) {
                own if own == security => *held = quantity,
                security => others.push(Held { security, quantity, price: 0 }),
            }
            ControlFlow::Continue(())
        })
    }

    /// T_BID_PRICE.
    #[inline]
    fn bid(&self) -> i64 {
        if self.kind.is_market() { self.price } else { self.limit }
    }

    #[inline]
    fn status(&self) -> Status {
        if self.kind.is_market() { Status::Submitted } else { Status::Pending }
    }

    #[inline]
    fn enter_market<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        if !self.kind.is_market() {
            let key = keys::request(self.security, self.kind as u8, self.limit, self.trade);
            let request = TradeRequest {
                quantity: self.quantity.into(),
                broker: self.broker.into(),
                account: self.account.into(),
                date: self.date.into(),
            };
            access.insert(TRADE_REQUEST, &key, &[request.as_bytes()])?;
        }
        move_by_security(access, self.security, self.account, self.trade, None, self.date)
    }

    /// The rest of frame 3, and frames 4 and 5.
    #[inline]
    fn enter_home<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let bid = self.bid();
        let exchange =
            layout.read(access, &keys::security(self.security), |row: &Security, _| row.exchange)?;
        let sector = sector(layout, access, self.security)?;
        let rate = commission_rate(layout, access, self.tier, self.kind, exchange, self.quantity)?;
        self.commission = commission(self.quantity, bid, rate);
        let key = keys::charge(self.kind as u8, self.tier);
        let charge = positive(layout.read(access, &key, |row: &Charge, _| row.charge.get())?)?;
        self.charge = charge.into();
        let (quantity, value) = self.closed;
        let (buy, sell) = match self.kind.is_sell() {
            true => (value, quantity * bid),
            false => (quantity * bid, value),
        };
        self.tax = if self.rates > 0 { tax(buy, sell, self.rates) } else { 0 };
        // The broker's name, which the specification returns.
        layout.read(access, &keys::number(self.broker), |_: &Broker, _| ())?;

        let status = self.status();
        let order = schema::TradeOrder {
            kind: self.kind as u8,
            cash: (!self.margin).into(),
            lifo: self.lifo.into(),
            security: self.security.into(),
            quantity: self.quantity.into(),
            bid: (bid as i32).into(),
            account: self.account.into(),
            charge: charge.into(),
        };
        let state = TradeState { date: self.date.into(), status: status as u8 };
        let outcome = TradeOutcome { price: 0.into(), commission: self.commission.into(), tax: 0.into() };
        let groups = [order.as_bytes(), state.as_bytes(), outcome.as_bytes(), &self.name];
        insert_row(layout, access, TRADE, &keys::trade(self.trade), &groups)?;
        insert_history(access, self.trade, status, self.date)?;
        move_by_account(access, self.account, self.trade, None, self.date)?;
        if !self.kind.is_market() {
            let row = PendingOrder {
                security: self.security.into(),
                quantity: self.quantity.into(),
                bid: (bid as i32).into(),
            };
            let key = keys::by_broker(self.broker, sector, self.trade);
            access.insert(PENDING_BY_BROKER, &key, &[row.as_bytes()])?;
        }
        if self.roll_back { Err(Abort::User) } else { Ok(()) }
    }

    /// The trade.
    pub fn trade(&self) -> Trade {
        self.trade
    }

    /// T_CA_ID.
    pub fn account(&self) -> u32 {
        self.account
    }

    /// Whether it is on margin.
    pub fn on_margin(&self) -> bool {
        self.margin
    }

    /// Whether it names a company, not a symbol.
    pub fn by_name(&self) -> bool {
        matches!(self.named, Named::Company(..))
    }

    /// Whether the customer orders, not another person with permission.
    pub fn by_owner(&self) -> bool {
        self.executor.is_none()
    }

    /// T_TT_ID.
    pub fn kind(&self) -> TradeType {
        self.kind
    }

    /// T_QTY.
    pub fn quantity(&self) -> i32 {
        self.quantity
    }

    /// Whether it is to be rolled back.
    pub fn rolls_back(&self) -> bool {
        self.roll_back
    }

    /// Output: the security.
    pub fn security(&self) -> u32 {
        self.security
    }

    /// Output: the limit in cents, or the price of the moment.
    pub fn requested(&self) -> i64 {
        self.bid()
    }

    /// Output: tax, commission and charge in cents, as they are expected to be.
    pub fn costs(&self) -> [i64; 3] {
        [self.tax, self.commission, self.charge]
    }

    /// Output of an order on margin: what the account has in all, in cents.
    pub fn assets(&self) -> Option<i64> {
        let others = self.others.iter().map(|held| i64::from(held.quantity) * held.price);
        self.margin.then(|| self.balance + i64::from(self.held) * self.price + others.sum::<i64>())
    }
}

impl Procedure for TradeOrder {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match (stage + usize::from(!self.by_name()), self.others.len()) {
            (0, _) => 1,
            (2, others @ 1..) => others,
            (1 | 2, _) | (3, 1..) => 2,
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match self.step(piece) {
            Step::Price | Step::Market => self.scale.market_slot(self.security),
            Step::Other(number) => self.scale.market_slot(self.others[number].security),
            Step::Find | Step::Account | Step::Home => self.scale.slot(self.trade.home()),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match self.step(piece) {
            Step::Find | Step::Market => {}
            Step::Account => {
                reads.get(layout.column::<Account>(), keys::number(self.account));
                if self.margin && layout.split {
                    reads.get(layout.column::<AccountBalance>(), keys::number(self.account));
                }
                reads.get(layout.column::<Customer>(), keys::number(customer_of(self.account)));
                reads.scan(taxes_of(customer_of(self.account)));
                if let Some(executor) = &self.executor {
                    reads.get(ACCOUNT_PERMISSION.row(), keys::permission(self.account, executor.tax_id));
                }
                match self.margin {
                    true => reads.scan(self.holdings()),
                    false => {
                        reads.get(HOLDING_SUMMARY.row(), keys::with_security(self.account, self.security))
                    }
                }
                reads.scan(self.lots());
            }
            Step::Price => reads.get(LAST_TRADE.row(), keys::security(self.security)),
            Step::Other(number) => {
                reads.get(LAST_TRADE.row(), keys::security(self.others[number].security));
            }
            Step::Home => reads.get(layout.column::<Broker>(), keys::number(self.broker)),
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let price = |row: &LastTrade, _: &[u8]| i64::from(row.price.get());
        match self.step(piece) {
            Step::Find => self.find(access),
            Step::Account => self.read_account(access),
            Step::Price => {
                self.price = layout.read(access, &keys::security(self.security), price)?;
                Ok(())
            }
            Step::Other(number) => {
                let key = keys::security(self.others[number].security);
                self.others[number].price = layout.read(access, &key, price)?;
                Ok(())
            }
            Step::Market => self.enter_market(access),
            Step::Home => self.enter_home(access),
        }
    }
}
