//! Market-Feed (clause 3.3.3): one entry of the ticker, which tells a security's price.
//!
//! Stages: the price and the pending orders that wait for it; then, if there are any, the tables at
//! the market place that they leave and move in, and for each the trade at its home. Everything
//! that those write follows from the request, so that nothing more is read.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::market::Entry;
use super::numbers::{Scale, Trade};
use super::reference::{Status, TradeType};
use super::schema::*;
use super::trades::*;
use super::{Client, Tpce};

/// One entry of a Market-Feed, a transaction of its own.
#[derive(Clone, Debug)]
pub struct MarketFeed {
    layout: Layout,
    scale: Scale,
    entry: Entry,
    now: u64,
    /// Output: the orders that have become due, by trade.
    triggered: Vec<Triggered>,
}

/// An order whose price has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggered {
    /// The trade.
    pub trade: Trade,
    /// Its type.
    pub kind: TradeType,
    /// TR_BID_PRICE in cents.
    pub limit: i64,
    /// TR_QTY.
    pub quantity: i32,
    account: u32,
    broker: u32,
    /// T_DTS until now.
    pending: u64,
}

impl MarketFeed {
    /// Tells what the ticker has.
    pub(super) fn draw(tpce: &Tpce, client: &Client, entry: Entry) -> MarketFeed {
        MarketFeed {
            layout: tpce.layout(),
            scale: tpce.scale(),
            entry,
            now: client.now(tpce),
            triggered: Vec::new(),
        }
    }

    /// The pending orders that wait for this price.
    #[inline]
    fn requests(&self) -> [Scan; 3] {
        let Entry { security, price, .. } = self.entry;
        let from = |kind, limit| keys::requests_from(security, kind, limit);
        let scan = |low, high| Scan::range(TRADE_REQUEST.row(), low, high);
        let at_least = |kind| scan(from(kind, price), from(kind + 1, 0));
        let at_most = |kind| scan(from(kind, 0), from(kind, price + 1));
        [
            at_least(TradeType::StopLoss as u8),
            at_most(TradeType::LimitSell as u8),
            at_least(TradeType::LimitBuy as u8),
        ]
    }

    #[inline]
    fn tell<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, Entry { security, price, quantity }, now) = (self.layout, self.entry, self.now);
        layout.update(access, &keys::security(security), |row: &mut LastTrade| {
            row.date = now.max(row.date.get() + 1).into();
            row.price = (price as i32).into();
            row.volume += i64::from(quantity);
        })?;
        self.triggered.clear();
        let mut kinds = Ok(());
        for scan in self.requests() {
            let triggered = &mut self.triggered;
            access.scan(&scan, |key, record| {
                let (row, _) = layout.view::<TradeRequest>(record);
                let (kind, limit, trade) = keys::request_of(key);
                match kind_of(kind) {
                    Ok(kind) => triggered.push(Triggered {
                        trade,
                        kind,
                        limit,
                        quantity: row.quantity.get(),
                        account: row.account.get(),
                        broker: row.broker.get(),
                        pending: row.date.get(),
                    }),
                    Err(abort) => kinds = Err(abort),
                }
                ControlFlow::Continue(())
            })?;
        }
        self.triggered.sort_unstable_by_key(|order| order.trade);
        kinds
    }

    /// When an order is submitted.
    #[inline]
    fn date(&self, order: &Triggered) -> u64 {
        self.now.max(order.pending + 1)
    }

    #[inline]
    fn submit_at_market<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let security = self.entry.security;
        for order in &self.triggered {
            let key = keys::request(security, order.kind as u8, order.limit, order.trade);
            access.delete(TRADE_REQUEST, &key)?;
            let (from, to) = (Some(order.pending), self.date(order));
            move_by_security(access, security, order.account, order.trade, from, to)?;
        }
        Ok(())
    }

    #[inline]
    fn submit_at_home<A: Access>(&self, order: &Triggered, access: &mut A) -> Result<(), Abort> {
        let date = self.date(order);
        let sector = sector(self.layout, access, self.entry.security)?;
        access.delete(PENDING_BY_BROKER, &keys::by_broker(order.broker, sector, order.trade))?;
        move_by_account(access, order.account, order.trade, Some(order.pending), date)?;
        enter(self.layout, access, order.trade, Status::Submitted, date)
    }

    /// What it tells.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Output: the orders that have become due.
    pub fn triggered(&self) -> &[Triggered] {
        &self.triggered
    }
}

impl Procedure for MarketFeed {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match (stage, self.triggered.len()) {
            (0, _) => 1,
            (1, triggered @ 1..) => 1 + triggered,
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match piece.number.checked_sub(1) {
            None => self.scale.market_slot(self.entry.security),
            Some(number) => self.scale.slot(self.triggered[number].trade.home()),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        match (piece.stage, piece.number.checked_sub(1)) {
            (0, _) => {
                reads.update(LAST_TRADE.row(), keys::security(self.entry.security));
                self.requests().into_iter().for_each(|scan| reads.scan_for_update(scan));
            }
            (_, None) => {}
            (_, Some(number)) => declare_replaced(self.layout, self.triggered[number].trade, reads),
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (piece.stage, piece.number.checked_sub(1)) {
            (0, _) => self.tell(access),
            (_, None) => self.submit_at_market(access),
            (_, Some(number)) => self.submit_at_home(&self.triggered[number], access),
        }
    }
}
