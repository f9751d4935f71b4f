//! Trade-Result (clause 3.3.8): the market has executed an order, at a price.
//!
//! Stages: the trade; at home the account and what it holds of the security, lots that are closed
//! or made, and all that is noted of the trade; the index at the market place, which is only
//! written, and the broker's totals, which are the hottest row.
//!
//! The trade closes lots of the other direction, the oldest or the newest first. Each lot has a
//! date of its own: what is left of the trade becomes a lot that is younger than all others, so
//! that the trade's date is later than theirs.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_types::{Abort, Slot};
use zerocopy::{FromZeros, IntoBytes};

use super::market::Answer;
use super::numbers::{Scale, Trade};
use super::people::{CASH_ACCOUNT, MARGIN, cash_text};
use super::reference::{Status, TradeType, commission, settlement, tax};
use super::schema::{self, *};
use super::trades::*;
use super::{Client, Tpce};

/// Maximum number of lots that a trade closes: all have a hundred shares or more, and a trade at
/// most eight hundred.
const LOTS_MAX: usize = 8;

/// A Trade-Result transaction.
#[derive(Clone, Debug)]
pub struct TradeResult {
    layout: Layout,
    scale: Scale,
    trade: Trade,
    /// T_TRADE_PRICE in cents.
    price: i64,
    now: u64,
    /// The order.
    order: schema::TradeOrder,
    kind: TradeType,
    /// Output: whether the trade is done or given up already.
    late: bool,
    /// T_DTS until now.
    submitted: u64,
    /// T_DTS from now on.
    date: u64,
    /// CA_B_ID.
    broker: u32,
    /// Output: T_TAX in cents.
    tax: i64,
    /// Output: T_COMM in cents.
    commission: i64,
    /// Output: SE_AMT in cents.
    amount: i64,
    /// Output: CA_BAL in cents.
    balance: i64,
}

/// A lot that is closed, or a part of it.
#[derive(Clone, Copy)]
struct Lot {
    date: u64,
    row: Holding,
}

impl TradeResult {
    /// What the market has answered.
    pub(super) fn draw(tpce: &Tpce, client: &Client, answer: Answer) -> TradeResult {
        TradeResult {
            layout: tpce.layout(),
            scale: tpce.scale(),
            trade: answer.trade,
            price: answer.price,
            now: client.now(tpce),
            order: schema::TradeOrder::new_zeroed(),
            kind: TradeType::MarketBuy,
            late: false,
            submitted: 0,
            date: 0,
            broker: 0,
            tax: 0,
            commission: 0,
            amount: 0,
            balance: 0,
        }
    }

    #[inline]
    fn account(&self) -> u32 {
        self.order.account.get()
    }

    #[inline]
    fn is_cash(&self) -> bool {
        self.order.cash > 0
    }

    /// Frame 1.
    #[inline]
    fn read_trade<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let key = keys::trade(self.trade);
        self.order = self.layout.read(access, &key, |row: &schema::TradeOrder, _| *row)?;
        self.kind = kind_of(self.order.kind)?;
        let (date, status) =
            self.layout.read(access, &key, |row: &TradeState, _| (row.date.get(), row.status))?;
        self.submitted = date;
        // The market answers an order once. An order that was given up or is done stays as it is.
        self.late = status != Status::Submitted as u8;
        if self.late { Err(Abort::User) } else { Ok(()) }
    }

    /// Frames 2 to 6, without the broker.
    #[inline]
    fn complete<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let (number, quantity) = (self.account(), self.order.quantity.get());
        let account = keys::number(number);
        let (broker, tax_status) =
            layout.read(access, &account, |row: &Account, _| (row.broker.get(), row.tax_status))?;
        self.broker = broker;

        let (buy, sell) = self.change_holdings(access)?;
        self.tax = match tax_status {
            1 | 2 if sell > buy => positive(tax(buy, sell, tax_rates(layout, access, customer_of(number))?))?,
            _ => 0,
        };

        let customer = keys::number(customer_of(number));
        let tier = layout.read(access, &customer, |row: &Customer, _| row.tier)?;
        let (exchange, security_name) =
            layout.read(access, &keys::security(self.order.security.get()), |row: &Security, _| {
                (row.exchange, row.name)
            })?;
        let rate = commission_rate(layout, access, tier, self.kind, exchange, quantity)?;
        self.commission = commission(quantity, self.price, rate);

        let withheld = if tax_status == 1 { self.tax } else { 0 };
        let charge = self.order.charge.get().into();
        self.amount =
            settlement(self.kind.is_sell(), quantity, self.price, charge, self.commission, withheld);
        self.settle(access, &security_name)?;
        enter(layout, access, self.trade, Status::Completed, self.date)?;
        let outcome = TradeOutcome {
            price: (self.price as i32).into(),
            commission: self.commission.into(),
            tax: self.tax.into(),
        };
        replace(layout, access, &keys::trade(self.trade), outcome)?;
        move_by_account(access, number, self.trade, Some(self.submitted), self.date)
    }

    /// Frame 2: closes lots and makes one of what is left. What the closed lots were bought and
    /// sold for.
    #[inline]
    fn change_holdings<A: Access>(&mut self, access: &mut A) -> Result<(i64, i64), Abort> {
        let layout = self.layout;
        let (account, security) = (self.account(), self.order.security.get());
        let (sells, quantity) = (self.kind.is_sell(), self.order.quantity.get());
        let sign = if sells { -1 } else { 1 };
        let key = keys::with_security(account, security);
        let held = layout.find::<HoldingSummary, A>(access, &key)?.map_or(0, |row| row.quantity.get());
        let closes = if sells { held > 0 } else { held < 0 };
        let row = HoldingSummary { quantity: (held + sign * quantity).into() };
        match row.quantity.get() {
            0 => access.delete(HOLDING_SUMMARY, &key)?,
            _ => access.put(HOLDING_SUMMARY.row(), &key, row.as_bytes())?,
        }

        let mut taken = [Lot { date: 0, row: Holding::new_zeroed() }; LOTS_MAX];
        let (mut count, mut open, mut newest) = (0, quantity, None);
        let lifo = self.order.lifo > 0;
        access.scan(&lots(account, security, lifo), |key, record| {
            let (&row, _) = layout.view::<Holding>(record);
            let date = keys::date_of_holding(key);
            newest = newest.max(Some(date));
            if closes {
                if let Some(lot) = taken.get_mut(count) {
                    *lot = Lot { date, row };
                }
                count += 1;
                open -= open.min(row.quantity.get().abs());
            }
            // Of the newest lot of those that stay only the date matters.
            if open == 0 || (lifo && !closes) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        // The summary has promised lots of one direction.
        let taken = taken.get(..count).ok_or(Abort::Validation)?;
        self.date = self.now.max(self.submitted + 1);

        let (mut bought, mut closed, mut needed) = (0, 0, quantity);
        for Lot { date, row } in taken {
            let (lot, before) = (Trade(row.trade.get()), row.quantity.get());
            let part = needed.min(before.abs());
            let after = before + sign * part;
            self.insert_change(access, lot, before, after)?;
            let key = keys::holding(account, security, *date);
            if after == 0 {
                access.delete(HOLDING, &key)?;
            } else {
                let row = Holding { quantity: after.into(), ..*row };
                access.put(HOLDING.row(), &key, row.as_bytes())?;
            }
            needed -= part;
            bought += i64::from(part) * i64::from(row.price.get());
            closed += i64::from(part) * self.price;
        }
        if needed > 0 {
            self.date = self.date.max(newest.map_or(0, |newest| newest + 1));
            self.insert_change(access, self.trade, 0, sign * needed)?;
            let row = Holding {
                trade: self.trade.0.into(),
                price: (self.price as i32).into(),
                quantity: (sign * needed).into(),
            };
            access.insert(HOLDING, &keys::holding(account, security, self.date), &[row.as_bytes()])?;
        }
        Ok(if sells { (bought, closed) } else { (closed, bought) })
    }

    /// Notes what the trade has made of a lot.
    #[inline]
    fn insert_change<A: Access>(
        &self,
        access: &mut A,
        lot: Trade,
        before: i32,
        after: i32,
    ) -> Result<(), Abort> {
        let row = HoldingHistory { before: before.into(), after: after.into() };
        access.insert(HOLDING_HISTORY, &keys::two_trades(self.trade, lot), &[row.as_bytes()])?;
        access.insert(HOLDING_HISTORY_BY_LOT, &keys::two_trades(lot, self.trade), &[b""])
    }

    /// Frame 6.
    #[inline]
    fn settle<A: Access>(&mut self, access: &mut A, security_name: &[u8]) -> Result<(), Abort> {
        let (layout, key) = (self.layout, keys::trade(self.trade));
        let row = Settlement { due: due(self.date).into(), amount: self.amount.into() };
        let cash_type = padded::<40>(if self.is_cash() { CASH_ACCOUNT } else { MARGIN });
        insert_row(layout, access, SETTLEMENT, &key, &[row.as_bytes(), &cash_type])?;
        let account = keys::number(self.account());
        if !self.is_cash() {
            self.balance = layout.read(access, &account, |row: &AccountBalance, _| row.balance.get())?;
            return Ok(());
        }
        let amount = self.amount;
        self.balance = layout.update(access, &account, |row: &mut AccountBalance| {
            row.balance += amount;
            row.balance.get()
        })?;
        let row = CashTransaction { date: self.date.into(), amount: amount.into() };
        let text = cash_text(self.kind, self.order.quantity.get(), security_name);
        insert_row(layout, access, CASH_TRANSACTION, &key, &[row.as_bytes(), &text])
    }

    /// The trade.
    pub fn trade(&self) -> Trade {
        self.trade
    }

    /// Output: whether the answer comes too late, because the trade is done or given up already.
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// T_TRADE_PRICE in cents.
    pub fn price(&self) -> i64 {
        self.price
    }

    /// Output: the security.
    pub fn security(&self) -> u32 {
        self.order.security.get()
    }

    /// Output: T_QTY.
    pub fn quantity(&self) -> i32 {
        self.order.quantity.get()
    }

    /// Output: T_COMM in cents.
    pub fn commission(&self) -> i64 {
        self.commission
    }

    /// Output: T_TAX in cents.
    pub fn tax(&self) -> i64 {
        self.tax
    }

    /// Output: SE_AMT in cents.
    pub fn amount(&self) -> i64 {
        self.amount
    }

    /// Output: whether it was for cash, so that the account's balance has changed by the amount.
    pub fn for_cash(&self) -> bool {
        self.is_cash()
    }

    /// Output: CA_BAL in cents.
    pub fn balance(&self) -> i64 {
        self.balance
    }
}

impl Procedure for TradeResult {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match stage {
            0 | 1 => 1,
            2 => 2,
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match (piece.stage, piece.number) {
            (2, 0) => self.scale.market_slot(self.order.security.get()),
            _ => self.scale.slot(self.trade.home()),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match (piece.stage, piece.number) {
            (0, _) => {
                layout.declare::<schema::TradeOrder, TradeState>(reads, || keys::trade(self.trade));
            }
            (1, _) => {
                let (account, security) = (self.account(), self.order.security.get());
                declare_replaced(layout, self.trade, reads);
                let key = keys::number(account);
                if self.is_cash() {
                    layout.declare::<Account, AccountBalance>(reads, || key.clone());
                } else {
                    reads.get(layout.column::<Account>(), key.clone());
                    if layout.split {
                        reads.get(layout.column::<AccountBalance>(), key);
                    }
                }
                reads.update(HOLDING_SUMMARY.row(), keys::with_security(account, security));
                reads.scan_for_update(lots(account, security, self.order.lifo > 0));
                reads.get(layout.column::<Customer>(), keys::number(customer_of(account)));
                reads.scan(taxes_of(customer_of(account)));
            }
            (_, 0) => {}
            _ => reads.update(layout.column::<BrokerTotals>(), keys::number(self.broker)),
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (piece.stage, piece.number) {
            (0, _) => self.read_trade(access),
            (1, _) => self.complete(access),
            (_, 0) => {
                let security = self.order.security.get();
                let from = Some(self.submitted);
                move_by_security(access, security, self.account(), self.trade, from, self.date)
            }
            _ => {
                let commission = self.commission;
                self.layout.update(access, &keys::number(self.broker), |row: &mut BrokerTotals| {
                    row.trades += 1;
                    row.commissions += commission;
                })
            }
        }
    }
}
