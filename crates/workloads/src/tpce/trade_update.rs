//! Trade-Update (clause 3.3.11): corrects details of trades. Three frames, of twenty trades each:
//!
//! 1. trades by number: the executor's name;
//! 2. of an account from a date on: the type of the settlement;
//! 3. of a security from a date on: the text of the cash transaction.
//!
//! Stages: for frames 2 and 3 the trades, from an index; then what is shown and changed of them, a
//! piece for each home.

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Key, Slot};

use super::numbers::Scale;
use super::people::{CASH_ACCOUNT, MARGIN};
use super::schema::{self, *};
use super::shown::{
    Details, OF_ACCOUNT, OF_SECURITY, TRADES_MAX, draw_dates, draw_trades, of_account, states_of,
};
use super::trades::{find, joined};
use super::{Client, Tpce};
use crate::rows::unpadded;

/// What the texts of settlements and cash transactions change to, and back.
const CASH: &str = "Cash";
const MARGIN_ACCOUNT: &str = "Margin Account";
const SHARES: [&[u8]; 2] = [b" shares of ", b" Shares of "];

/// Which trades are changed, and hence what of them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Frame {
    /// The executors of trades whose numbers are given.
    Trades,
    /// The settlements of an account's first trades with dates in a range.
    Account(u32, Range<u64>),
    /// The cash transactions of a security's first trades with dates in a range.
    Security(u32, Range<u64>),
}

/// A Trade-Update transaction.
#[derive(Clone, Debug)]
pub struct TradeUpdate {
    layout: Layout,
    scale: Scale,
    frame: Frame,
    /// The trades, in the order of their numbers: an input of frame 1, else from the index; and as
    /// an output what is shown of them, before it is changed.
    trades: Vec<Details>,
}

impl TradeUpdate {
    /// Draws the inputs (clause 3.3.11.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> TradeUpdate {
        let scale = tpce.scale();
        let mut trades = Vec::new();
        let frame = match client.rng.below(100) {
            0..33 => {
                let drawn = draw_trades(scale, &mut client.rng);
                trades.extend(drawn.into_iter().map(|trade| Details::unread(trade, 0)));
                Frame::Trades
            }
            33..66 => {
                let account = client.draw_account(tpce);
                Frame::Account(account, draw_dates(scale, &mut client.rng, OF_ACCOUNT))
            }
            _ => {
                let security = scale.draw_security(&mut client.rng);
                Frame::Security(security, draw_dates(scale, &mut client.rng, OF_SECURITY))
            }
        };
        TradeUpdate { layout: tpce.layout(), scale, frame, trades }
    }

    /// The range of an index in which a stage finds the trades.
    #[inline]
    fn index(&self, stage: usize) -> Option<Scan> {
        let scan = match &self.frame {
            _ if stage > 0 => return None,
            Frame::Trades => return None,
            Frame::Account(account, dates) => of_account(*account, dates),
            Frame::Security(security, dates) => {
                let from = |date| keys::by_security_from(*security, date);
                Scan::range(TRADE_BY_SECURITY.row(), from(dates.start), from(dates.end))
            }
        };
        Some(scan.limit(TRADES_MAX))
    }

    /// The trades of each home.
    #[inline]
    fn homes(&self) -> impl Iterator<Item = &[Details]> {
        self.trades.chunk_by(|a, b| a.trade.home() == b.trade.home())
    }

    /// The trades of a piece.
    #[inline]
    fn of_piece(&self, piece: Piece) -> Range<usize> {
        let mut homes = self.homes();
        let start = homes.by_ref().take(piece.number).map(<[Details]>::len).sum::<usize>();
        start..start + homes.next().map_or(0, <[Details]>::len)
    }

    #[inline]
    fn find<A: Access>(&mut self, index: &Scan, access: &mut A) -> Result<(), Abort> {
        let TradeUpdate { scale, frame, trades, .. } = self;
        trades.clear();
        access.scan(index, |key, _| {
            let (date, trade) = match frame {
                Frame::Account(account, _) => {
                    let home = scale.home_of_account(*account);
                    (keys::date_by_account(key), keys::trade_by_account(key, home))
                }
                _ => keys::date_and_trade(key),
            };
            trades.push(Details::unread(trade, date));
            ControlFlow::Continue(())
        })?;
        trades.sort_unstable_by_key(|details| details.trade);
        Ok(())
    }

    /// Shows a trade and changes it.
    #[inline]
    fn show<A: Access>(&mut self, number: usize, access: &mut A) -> Result<(), Abort> {
        let (layout, details) = (self.layout, &mut self.trades[number]);
        details.read(layout, access, self.frame != Frame::Trades)?;
        let key = keys::trade(details.trade);
        match self.frame {
            Frame::Trades if details.found => {
                layout.update(access, &key, |row: &mut TradeExecutor| row.name = toggled_name(&row.name))
            }
            Frame::Account(..) if details.settlement.is_some() => {
                let cash = details.order.cash > 0;
                layout.update(access, &key, |row: &mut SettlementType| {
                    row.cash_type = toggled_type(&row.cash_type, cash);
                })
            }
            Frame::Security(..) if details.cash.is_some() => {
                // Beside it the names of the security and of the trade's type are shown.
                let security = keys::security(details.order.security.get());
                layout.read(access, &security, |_: &Security, _| ())?;
                let kind = keys::small(details.order.kind);
                layout.read(access, &kind, |_: &TradeTypeRow, _| ())?;
                layout.update(access, &key, |row: &mut CashTransactionName| toggle_shares(&mut row.name))
            }
            _ => Ok(()),
        }
    }

    /// Output: what is shown of the trades that were found, before it is changed.
    pub fn trades(&self) -> impl Iterator<Item = &Details> {
        self.trades.iter().filter(|details| details.found)
    }

    /// Which of the three frames it is, from 1 on.
    pub fn frame(&self) -> u8 {
        match self.frame {
            Frame::Trades => 1,
            Frame::Account(..) => 2,
            Frame::Security(..) => 3,
        }
    }

    /// Output: how many rows were read.
    pub fn rows(&self) -> u32 {
        let indexed = if self.frame == Frame::Trades { 0 } else { self.trades.len() as u32 };
        indexed + self.trades.iter().map(Details::rows).sum::<u32>()
    }
}

/// Declares two structures of a row, the second of which may be changed.
#[inline]
fn declare<Read: Columns, Changed: Columns>(layout: Layout, reads: &mut Reads, key: &Key, changed: bool) {
    if changed {
        return layout.declare::<Read, Changed>(reads, || key.clone());
    }
    reads.get(layout.column::<Read>(), key.clone());
    if layout.split {
        reads.get(layout.column::<Changed>(), key.clone());
    }
}

/// An executor's name with a middle name X, or without if it has one.
fn toggled_name(name: &[u8; 49]) -> [u8; 49] {
    let text = unpadded(name);
    let (from, to): (&[u8], &[u8]) = match find(text, b" X ") {
        Some(_) => (b" X ", b" "),
        None => (b" ", b" X "),
    };
    let Some(at) = find(text, from) else { return *name };
    joined([&text[..at], to, &text[at + from.len()..]])
}

/// The other name of the type of a settlement.
fn toggled_type(cash_type: &[u8; 40], cash: bool) -> [u8; 40] {
    let names = if cash { [CASH_ACCOUNT, CASH] } else { [MARGIN_ACCOUNT, MARGIN] };
    let is_first = unpadded(cash_type) == names[0].as_bytes();
    padded(names[usize::from(is_first)])
}

/// Writes shares with the other initial letter.
fn toggle_shares(name: &mut [u8; 100]) {
    let found = [(0, 1), (1, 0)].into_iter().find_map(|(from, to)| Some((find(name, SHARES[from])?, to)));
    if let Some((at, to)) = found {
        name[at..at + SHARES[to].len()].copy_from_slice(SHARES[to]);
    }
}

impl Procedure for TradeUpdate {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match (stage, self.index(stage)) {
            (0, Some(_)) => 1,
            (0, None) => self.homes().count(),
            (1, _) if self.frame != Frame::Trades => self.homes().count(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match self.frame {
            Frame::Account(account, _) => self.scale.slot(self.scale.home_of_account(account)),
            Frame::Security(security, _) if piece.stage == 0 => self.scale.market_slot(security),
            _ => self.scale.slot(self.trades[self.of_piece(piece).start].trade.home()),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if let Some(index) = self.index(piece.stage) {
            return reads.scan(index);
        }
        let layout = self.layout;
        for details in &self.trades[self.of_piece(piece)] {
            let key = keys::trade(details.trade);
            let frame = self.frame();
            declare::<schema::TradeOrder, TradeExecutor>(layout, reads, &key, frame == 1);
            if layout.split {
                reads.get(layout.column::<TradeOutcome>(), key.clone());
            }
            declare::<Settlement, SettlementType>(layout, reads, &key, frame == 2);
            declare::<CashTransaction, CashTransactionName>(layout, reads, &key, frame == 3);
            reads.scan(states_of(details.trade));
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        if let Some(index) = self.index(piece.stage) {
            return self.find(&index, access);
        }
        let trades = self.trades[self.of_piece(piece)].iter().map(|details| details.trade);
        Details::expect(self.layout, access, trades);
        self.of_piece(piece).try_for_each(|number| self.show(number, access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_change_and_change_back() {
        let name = padded("Ada Norwin");
        let toggled = toggled_name(&name);
        assert_eq!(unpadded(&toggled), b"Ada X Norwin");
        assert_eq!(toggled_name(&toggled), name);
        for (cash, texts) in [(true, [CASH_ACCOUNT, CASH]), (false, [MARGIN, MARGIN_ACCOUNT])] {
            let toggled = toggled_type(&padded(texts[0]), cash);
            assert_eq!(unpadded(&toggled), texts[1].as_bytes());
            assert_eq!(unpadded(&toggled_type(&toggled, cash)), texts[0].as_bytes());
        }
        let mut text = padded("Market-Buy 100 shares of it");
        toggle_shares(&mut text);
        assert_eq!(unpadded(&text), b"Market-Buy 100 Shares of it");
        toggle_shares(&mut text);
        assert_eq!(unpadded(&text), b"Market-Buy 100 shares of it");
    }
}
