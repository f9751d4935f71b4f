//! Trade-Cleanup (clause 3.3.12): gives up what an earlier run has left pending or submitted,
//! before another begins.
//!
//! A transaction cleans one account, whose trades since the load the index by account names.
//! Stages: the index; the trades with their states; and of those that are neither completed nor
//! given up the tables at home, and at the market place of each the index by security and the
//! request, if it was pending.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::Tpce;
use super::numbers::{Scale, Trade};
use super::reference::Status;
use super::schema::{self, *};
use super::trades::*;

/// A Trade-Cleanup transaction.
#[derive(Clone, Debug)]
pub struct TradeCleanup {
    layout: Layout,
    scale: Scale,
    account: u32,
    /// Trades of the run, with their dates.
    trades: Vec<(Trade, u64)>,
    /// CA_B_ID.
    broker: u32,
    /// Output: those that are given up, by number.
    cancelled: Vec<Cancelled>,
}

/// A trade that is given up.
#[derive(Clone, Copy, Debug)]
struct Cancelled {
    trade: Trade,
    order: schema::TradeOrder,
    /// T_DTS until now.
    date: u64,
    pending: bool,
}

impl TradeCleanup {
    /// The one of an account.
    pub fn new(tpce: &Tpce, account: u32) -> TradeCleanup {
        TradeCleanup {
            layout: tpce.layout(),
            scale: tpce.scale(),
            account,
            trades: Vec::new(),
            broker: 0,
            cancelled: Vec::new(),
        }
    }

    /// The account's trades that may have been made since the load.
    #[inline]
    fn trades(&self) -> Scan {
        let low = keys::by_account_from(self.account, self.scale.end_of_load());
        Scan::range(TRADE_BY_ACCOUNT.row(), low, keys::number(self.account + 1))
    }

    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let key = keys::number(self.account);
        self.broker = self.layout.read(access, &key, |row: &Account, _| row.broker.get())?;
        let (home, range, trades) =
            (self.scale.home_of_account(self.account), self.trades(), &mut self.trades);
        trades.clear();
        access.scan(&range, |key, _| {
            let trade = keys::trade_by_account(key, home);
            if trade.is_new() {
                trades.push((trade, keys::date_by_account(key)));
            }
            ControlFlow::Continue(())
        })?;
        trades.sort_unstable();
        Ok(())
    }

    #[inline]
    fn choose<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        self.cancelled.clear();
        for &(trade, date) in &self.trades {
            let key = keys::trade(trade);
            let state = layout.find::<TradeState, A>(access, &key)?.ok_or(Abort::Validation)?;
            let pending = state.status == Status::Pending as u8;
            if pending || state.status == Status::Submitted as u8 {
                let order = layout.read(access, &key, |row: &schema::TradeOrder, _| *row)?;
                self.cancelled.push(Cancelled { trade, order, date, pending });
            }
        }
        Ok(())
    }

    /// When a trade is given up: what was pending is submitted before, at the same time.
    #[inline]
    fn date(cancelled: &Cancelled) -> u64 {
        cancelled.date + 1
    }

    #[inline]
    fn cancel_at_home<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        for cancelled in &self.cancelled {
            let (trade, date) = (cancelled.trade, Self::date(cancelled));
            if cancelled.pending {
                let sector = sector(layout, access, cancelled.order.security.get())?;
                access.delete(PENDING_BY_BROKER, &keys::by_broker(self.broker, sector, trade))?;
                insert_history(access, trade, Status::Submitted, date)?;
            }
            move_by_account(access, self.account, trade, Some(cancelled.date), date)?;
            enter(layout, access, trade, Status::Cancelled, date)?;
        }
        Ok(())
    }

    #[inline]
    fn cancel_at_market<A: Access>(&self, cancelled: &Cancelled, access: &mut A) -> Result<(), Abort> {
        let Cancelled { trade, order, date, pending } = cancelled;
        let security = order.security.get();
        if *pending {
            let key = keys::request(security, order.kind, order.bid.get().into(), *trade);
            access.delete(TRADE_REQUEST, &key)?;
        }
        move_by_security(access, security, self.account, *trade, Some(*date), Self::date(cancelled))
    }

    /// Output: how many trades were given up.
    pub fn cancelled(&self) -> usize {
        self.cancelled.len()
    }

    /// Output: how many of them were pending.
    pub fn pending(&self) -> usize {
        self.cancelled.iter().filter(|cancelled| cancelled.pending).count()
    }
}

impl Procedure for TradeCleanup {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match stage {
            0 => 1,
            1 => usize::from(!self.trades.is_empty()),
            2 if !self.trades.is_empty() && !self.cancelled.is_empty() => 1 + self.cancelled.len(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match (piece.stage, piece.number.checked_sub(1)) {
            (2, Some(number)) => self.scale.market_slot(self.cancelled[number].order.security.get()),
            _ => self.scale.slot(self.scale.home_of_account(self.account)),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match (piece.stage, piece.number) {
            (0, _) => {
                reads.get(layout.column::<Account>(), keys::number(self.account));
                reads.scan_for_update(self.trades());
            }
            (1, _) => {
                for &(trade, _) in &self.trades {
                    layout.declare::<schema::TradeOrder, TradeState>(reads, || keys::trade(trade));
                }
            }
            (_, 0) => self.cancelled.iter().for_each(|order| declare_replaced(layout, order.trade, reads)),
            _ => {}
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match (piece.stage, piece.number.checked_sub(1)) {
            (0, _) => self.find(access),
            (1, _) => self.choose(access),
            (_, None) => self.cancel_at_home(access),
            (_, Some(number)) => self.cancel_at_market(&self.cancelled[number], access),
        }
    }
}
