//! Trade-Status (clause 3.3.10), read-only: the newest 50 trades of an account.
//!
//! Stages, all at the account's home: account, customer and the index of trades; the broker and the
//! trades, with names from copies.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::numbers::{ACCOUNTS_MAX, Trade};
use super::reference::EXCHANGES;
use super::schema::*;
use super::shown::{Names, declare, newest_of_account};
use super::{Client, Tpce};
use crate::NOT_LOADED;
use crate::rows::unpadded;

/// Most trades that are shown.
pub const SHOWN_MAX: usize = 50;

/// A Trade-Status transaction.
#[derive(Clone, Debug)]
pub struct TradeStatus {
    layout: Layout,
    account: u32,
    home: u32,
    slot: Slot,
    /// CA_B_ID.
    broker: u32,
    /// Output: B_NAME.
    broker_name: [u8; 49],
    /// Output: C_F_NAME.
    first: [u8; 20],
    /// Output: C_L_NAME.
    last: [u8; 25],
    /// Output: names of states and types.
    names: Names,
    /// Output: EX_NAME of the exchanges.
    exchanges: [[u8; 100]; EXCHANGES.len()],
    /// Output: the trades, the newest first.
    trades: Vec<ShownTrade>,
}

/// What Trade-Status shows of a trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownTrade {
    /// T_ID.
    pub trade: Trade,
    /// T_DTS.
    pub date: u64,
    /// T_S_SYMB, as the security's number.
    pub security: u32,
    /// T_QTY.
    pub quantity: i32,
    /// T_CHRG in cents.
    pub charge: i32,
    /// T_ST_ID: a [`super::reference::Status`].
    pub status: u8,
    /// T_TT_ID: a [`super::reference::TradeType`].
    pub kind: u8,
    /// S_EX_ID, as the number of the exchange.
    pub exchange: u8,
    /// T_EXEC_NAME.
    pub executor: [u8; 49],
    /// S_NAME.
    pub security_name: [u8; 70],
}

impl TradeStatus {
    /// Draws the inputs (clause 3.3.10.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> TradeStatus {
        let (scale, account) = (tpce.scale(), client.draw_account(tpce));
        let home = scale.home_of_account(account);
        TradeStatus {
            layout: tpce.layout(),
            account,
            home,
            slot: scale.slot(home),
            broker: 0,
            broker_name: [0; 49],
            first: [0; 20],
            last: [0; 25],
            names: Names::default(),
            exchanges: [[0; 100]; EXCHANGES.len()],
            trades: Vec::new(),
        }
    }

    #[inline]
    fn newest(&self) -> Scan {
        newest_of_account(self.account, SHOWN_MAX)
    }

    #[inline]
    fn customer(&self) -> u32 {
        self.account / ACCOUNTS_MAX
    }

    /// The account.
    pub fn account(&self) -> u32 {
        self.account
    }

    /// Output: C_F_NAME, C_L_NAME and B_NAME.
    pub fn people(&self) -> [&[u8]; 3] {
        [unpadded(&self.first), unpadded(&self.last), unpadded(&self.broker_name)]
    }

    /// Output: the trades, the newest first.
    pub fn trades(&self) -> &[ShownTrade] {
        &self.trades
    }

    /// Output: ST_NAME, TT_NAME and EX_NAME of a trade.
    pub fn names(&self, trade: &ShownTrade) -> [&[u8]; 3] {
        let exchange = self.exchanges.get(usize::from(trade.exchange)).map_or(&[][..], |name| unpadded(name));
        [self.names.status(trade.status), self.names.kind(trade.kind), exchange]
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        3 + 2 * self.trades.len() as u32
    }
}

impl Procedure for TradeStatus {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        usize::from(stage < 2)
    }

    #[inline]
    fn home(&self, _: Piece) -> Slot {
        self.slot
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        if piece.stage == 0 {
            reads.get(layout.column::<Account>(), keys::number(self.account));
            reads.get(layout.column::<Customer>(), keys::number(self.customer()));
            return reads.scan(self.newest());
        }
        reads.get(layout.column::<Broker>(), keys::number(self.broker));
        for exchange in 0..EXCHANGES.len() as u8 {
            reads.get(layout.column::<Exchange>(), keys::small(exchange));
        }
        let (order, state) = (layout.column::<TradeOrder>(), layout.column::<TradeState>());
        let trades = self.trades.iter().map(|shown| keys::trade(shown.trade));
        declare(layout, reads, &[order, state, layout.column::<TradeExecutor>()], trades);
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match piece.stage {
            0 => self.find(access),
            _ => self.show(access),
        }
    }
}

impl TradeStatus {
    /// The account, its customer and its newest trades.
    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, home) = (self.layout, self.home);
        self.broker =
            layout.read(access, &keys::number(self.account), |row: &Account, _| row.broker.get())?;
        (self.first, self.last) =
            layout.read(access, &keys::number(self.customer()), |row: &Customer, _| (row.first, row.last))?;
        let newest = self.newest();
        let trades = &mut self.trades;
        trades.clear();
        trades.reserve_exact(SHOWN_MAX);
        access.scan(&newest, |key, _| {
            trades.push(ShownTrade {
                trade: keys::trade_by_account(key, home),
                date: keys::date_by_account(key),
                security: 0,
                quantity: 0,
                charge: 0,
                status: 0,
                kind: 0,
                exchange: 0,
                executor: [0; 49],
                security_name: [0; 70],
            });
            ControlFlow::Continue(())
        })
    }

    /// The broker, and the rest of each trade.
    #[inline]
    fn show<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        self.broker_name = layout.read(access, &keys::number(self.broker), |row: &Broker, _| row.name)?;
        let wanted = self.trades.iter().map(|shown| keys::trade(shown.trade));
        access.expect(layout.column::<TradeOrder>(), wanted.clone());
        access.expect(layout.column::<TradeState>(), wanted.clone());
        access.expect(layout.column::<TradeExecutor>(), wanted);
        for shown in &mut self.trades {
            let key = keys::trade(shown.trade);
            let order = layout.find::<TradeOrder, A>(access, &key)?.ok_or(Abort::Validation)?;
            let state = layout.find::<TradeState, A>(access, &key)?.ok_or(Abort::Validation)?;
            let executor = layout.find::<TradeExecutor, A>(access, &key)?.ok_or(Abort::Validation)?;
            shown.security = order.security.get();
            (shown.quantity, shown.charge) = (order.quantity.get(), order.charge.get());
            (shown.kind, shown.status, shown.executor) = (order.kind, state.status, executor.name);
            (shown.security_name, shown.exchange) =
                layout.read(access, &keys::security(shown.security), |row: &Security, _| {
                    (row.name, row.exchange)
                })?;
            self.names.read_status(layout, access, shown.status)?;
            self.names.read_kind(layout, access, shown.kind)?;
            let exchange = self.exchanges.get_mut(usize::from(shown.exchange)).ok_or(NOT_LOADED)?;
            if exchange[0] == 0 {
                *exchange =
                    layout.read(access, &keys::small(shown.exchange), |row: &Exchange, _| row.name)?;
            }
        }
        Ok(())
    }
}
