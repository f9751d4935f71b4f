//! Trade-Update (clause 3.3.11): corrects details of trades. Three frames, of twenty trades each:
//!
//! 1. trades by number: the executor's name;
//! 2. of an account from a date on: the type of the settlement;
//! 3. of a security from a date on: the text of the cash transaction.
//!
//! Stages: for frames 2 and 3 the trades, from an index; then what is shown and changed of them, a
//! piece for each home.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::random::Rng;
use plimsoll_types::{Abort, Slot};

use super::numbers::{DAY_SECONDS, Scale, Trade, date_of};
use super::people::{CASH_ACCOUNT, MARGIN};
use super::reference::Status;
use super::schema::{self, *};
use super::trades::*;
use super::{Client, Tpce};
use crate::rows::unpadded;

/// Maximum number of trades.
pub const TRADES_MAX: usize = 20;
/// States of a trade that are shown.
const HISTORY_MAX: usize = 3;
/// What the texts of settlements and cash transactions change to, and back.
const CASH: &str = "Cash";
const MARGIN_ACCOUNT: &str = "Margin Account";
const SHARES: [&[u8]; 2] = [b" shares of ", b" Shares of "];

/// Which trades are changed, and hence what of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// The executors of these trades.
    Trades,
    /// The settlements of an account's trades from a date to another.
    Account(u32, u64, u64),
    /// The cash transactions of a security's trades from a date to another.
    Security(u32, u64, u64),
}

/// What is shown of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The trade.
    pub trade: Trade,
    /// T_BID_PRICE in cents.
    pub bid: i32,
    /// T_TRADE_PRICE in cents, 0 for null.
    pub price: i32,
    /// T_IS_CASH.
    pub cash: bool,
    /// TT_IS_MRKT.
    pub market: bool,
    /// SE_AMT in cents.
    pub amount: i64,
    /// SE_CASH_DUE_DATE.
    pub due: u64,
    /// CT_DTS, 0 if it was not for cash.
    pub paid: u64,
    /// TH_DTS by state: pending, submitted, completed; 0 for null.
    pub history: [u64; HISTORY_MAX],
    /// Whether something was changed.
    pub updated: bool,
}

/// A Trade-Update transaction.
#[derive(Clone, Debug)]
pub struct TradeUpdate {
    layout: Layout,
    scale: Scale,
    frame: Frame,
    /// The trades, by number: an input of frame 1, else from the index.
    trades: Vec<Trade>,
    /// Output: what is shown of them; `None` of one that is not there.
    details: Vec<Option<Detail>>,
}

impl TradeUpdate {
    /// Draws the inputs (clause 6.4.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> TradeUpdate {
        let scale = tpce.scale();
        // The last trades that a range from its start on finds are those of a quarter of an hour
        // after the load.
        let end = scale.end_of_load() + 15 * 60 * 1000;
        let mut trades = Vec::new();
        let frame = match client.rng.below(100) {
            0..33 => {
                draw_trades(scale, &mut client.rng, &mut trades);
                Frame::Trades
            }
            33..66 => {
                let start = draw_start(scale, &mut client.rng, ACCOUNT_BACKOFF);
                Frame::Account(client.draw_account(tpce), start, end)
            }
            _ => {
                let start = draw_start(scale, &mut client.rng, SECURITY_BACKOFF);
                Frame::Security(scale.draw_security(&mut client.rng), start, end)
            }
        };
        TradeUpdate { layout: tpce.layout(), scale, frame, trades, details: Vec::new() }
    }

    /// Whether a stage has to find the trades.
    #[inline]
    fn finds(&self, stage: usize) -> bool {
        stage == 0 && self.frame != Frame::Trades
    }

    /// The range of the index.
    #[inline]
    fn range(&self) -> Scan {
        let scan = match self.frame {
            Frame::Account(account, start, end) => {
                let from = |date| keys::by_account_from(account, date);
                Scan::range(TRADE_BY_ACCOUNT.row(), from(start), from(end + 1))
            }
            Frame::Security(security, start, end) => {
                let from = |date| keys::by_security_from(security, date);
                Scan::range(TRADE_BY_SECURITY.row(), from(start), from(end + 1))
            }
            Frame::Trades => unreachable!("these are known by number"),
        };
        scan.limit(TRADES_MAX)
    }

    /// The trades of the home with this number among all homes of the trades.
    #[inline]
    fn trades_of(&self, number: usize) -> std::ops::Range<usize> {
        let mut homes = self.trades.chunk_by(|a, b| a.home() == b.home());
        let start = homes.by_ref().take(number).map(<[Trade]>::len).sum::<usize>();
        start..start + homes.next().map_or(0, <[Trade]>::len)
    }

    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (frame, scale, range, trades) = (self.frame, self.scale, self.range(), &mut self.trades);
        trades.clear();
        self.details.clear();
        access.scan(&range, |key, _| {
            trades.push(match frame {
                Frame::Account(account, ..) => keys::trade_by_account(key, scale.home_of_account(account)),
                _ => keys::date_and_trade(key).1,
            });
            ControlFlow::Continue(())
        })?;
        trades.sort_unstable();
        Ok(())
    }

    /// Shows a trade and changes it. `None` if it is not there.
    #[inline]
    fn show<A: Access>(&self, trade: Trade, access: &mut A) -> Result<Option<Detail>, Abort> {
        let (layout, key) = (self.layout, keys::trade(trade));
        let Some(order) = layout.find::<schema::TradeOrder, A>(access, &key)? else {
            // An index has promised the others; those with numbers of their own may not have been
            // completed when the load ended.
            return if self.frame == Frame::Trades { Ok(None) } else { Err(Abort::Validation) };
        };
        let status = layout.read(access, &key, |row: &TradeState, _| row.status)?;
        let price = layout.read(access, &key, |row: &TradeOutcome, _| row.price.get())?;
        let mut detail = Detail {
            trade,
            bid: order.bid.get(),
            price,
            cash: order.cash > 0,
            market: kind_of(order.kind)?.is_market(),
            amount: 0,
            due: 0,
            paid: 0,
            history: [0; HISTORY_MAX],
            updated: false,
        };
        if self.frame == Frame::Trades {
            layout.update(access, &key, |row: &mut TradeExecutor| row.name = toggled_name(&row.name))?;
            detail.updated = true;
        } else {
            layout.read(access, &key, |_: &TradeExecutor, _| ())?;
        }
        if status == Status::Completed as u8 {
            self.show_settlement(&key, &order, access, &mut detail)?;
        }
        let history = &mut detail.history;
        access.scan(&history_of(trade), |key, record| {
            if let Some(date) = history.get_mut(usize::from(keys::status_of(key))) {
                *date = layout.view::<TradeHistory>(record).0.date.get();
            }
            ControlFlow::Continue(())
        })?;
        Ok(Some(detail))
    }

    /// What the trade brought or cost.
    #[inline]
    fn show_settlement<A: Access>(
        &self,
        key: &plimsoll_types::Key,
        order: &schema::TradeOrder,
        access: &mut A,
        detail: &mut Detail,
    ) -> Result<(), Abort> {
        let layout = self.layout;
        let row = layout.find::<Settlement, A>(access, key)?.ok_or(Abort::Validation)?;
        (detail.amount, detail.due) = (row.amount.get(), row.due.get());
        if matches!(self.frame, Frame::Account(..)) {
            layout.update(access, key, |row: &mut SettlementType| {
                row.cash_type = toggled_type(&row.cash_type, detail.cash);
            })?;
            detail.updated = true;
        } else {
            layout.read(access, key, |_: &SettlementType, _| ())?;
        }
        if !detail.cash {
            return Ok(());
        }
        let row = layout.find::<CashTransaction, A>(access, key)?.ok_or(Abort::Validation)?;
        detail.paid = row.date.get();
        if matches!(self.frame, Frame::Security(..)) {
            layout.update(access, key, |row: &mut CashTransactionName| toggle_shares(&mut row.name))?;
            // What is shown beside it: the security's name.
            layout.read(access, &keys::security(order.security.get()), |_: &Security, _| ())?;
            detail.updated = true;
        } else {
            layout.read(access, key, |_: &CashTransactionName, _| ())?;
        }
        Ok(())
    }

    /// Output: what is shown of the trades that were found.
    pub fn details(&self) -> impl Iterator<Item = &Detail> {
        self.details.iter().flatten()
    }

    /// Which of the three frames it is, from 1 on.
    pub fn frame(&self) -> u8 {
        match self.frame {
            Frame::Trades => 1,
            Frame::Account(..) => 2,
            Frame::Security(..) => 3,
        }
    }
}

/// The states of a trade.
#[inline]
pub(super) fn history_of(trade: Trade) -> Scan {
    Scan::prefix(TRADE_HISTORY.row(), keys::trade(trade))
}

/// How long before the end of the initial trading days, in seconds of 300 days, a range of an
/// account's or of a security's trades begins at the latest, and how long it must be for twenty
/// trades.
const ACCOUNT_BACKOFF: (u64, u64) = (115_200, 2 * DAY_SECONDS);
const SECURITY_BACKOFF: (u64, u64) = (12_000, 12_000);

/// Draws where a range of dates begins: the specification's distribution, but so that what follows
/// is long enough.
fn draw_start(scale: Scale, rng: &mut Rng, (official, needed): (u64, u64)) -> u64 {
    let days = u64::from(scale.trade_days);
    let backoff = needed.max(official * days / 300).min(days * DAY_SECONDS - 1);
    let last = (days * DAY_SECONDS - backoff) * 1000;
    date_of(nurand(rng, last, 4095, 16))
}

/// Draws twenty initial trades, no two the same, in the order of their numbers.
fn draw_trades(scale: Scale, rng: &mut Rng, trades: &mut Vec<Trade>) {
    let last = scale.initiated() * u64::from(scale.homes());
    while trades.len() < TRADES_MAX {
        let trade = scale.initial_trade(nurand(rng, last, 65_535, 7));
        if !trades.contains(&trade) {
            trades.push(trade);
        }
    }
    trades.sort_unstable();
}

/// The specification's non-uniform numbers from 1 on (clause 2.2.5.2 of its tools).
fn nurand(rng: &mut Rng, last: u64, a: u64, shift: u32) -> u64 {
    let fine = rng.uniform(1..=last);
    (fine | rng.below(a + 1) << shift) % last + 1
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
        let last = usize::from(self.frame != Frame::Trades);
        match stage {
            _ if self.finds(stage) => 1,
            _ if stage == last => self.trades.chunk_by(|a, b| a.home() == b.home()).count(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        if self.finds(piece.stage) {
            return match self.frame {
                Frame::Account(account, ..) => self.scale.slot(self.scale.home_of_account(account)),
                Frame::Security(security, ..) => self.scale.market_slot(security),
                Frame::Trades => unreachable!("these are known by number"),
            };
        }
        self.scale.slot(self.trades[self.trades_of(piece.number).start].home())
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if self.finds(piece.stage) {
            return reads.scan(self.range());
        }
        let layout = self.layout;
        for &trade in &self.trades[self.trades_of(piece.number)] {
            let key = || keys::trade(trade);
            match self.frame {
                Frame::Trades => layout.declare::<schema::TradeOrder, TradeExecutor>(reads, key),
                _ => {
                    reads.get(layout.column::<schema::TradeOrder>(), key());
                    if layout.split {
                        reads.get(layout.column::<TradeExecutor>(), key());
                    }
                }
            }
            if layout.split {
                reads.get(layout.column::<TradeState>(), key());
                reads.get(layout.column::<TradeOutcome>(), key());
            }
            match self.frame {
                Frame::Account(..) => layout.declare::<Settlement, SettlementType>(reads, key),
                _ => {
                    reads.get(layout.column::<Settlement>(), key());
                    if layout.split {
                        reads.get(layout.column::<SettlementType>(), key());
                    }
                }
            }
            match self.frame {
                Frame::Security(..) => layout.declare::<CashTransaction, CashTransactionName>(reads, key),
                _ => {
                    reads.get(layout.column::<CashTransaction>(), key());
                    if layout.split {
                        reads.get(layout.column::<CashTransactionName>(), key());
                    }
                }
            }
            reads.scan(history_of(trade));
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        if self.finds(piece.stage) {
            return self.find(access);
        }
        self.details.resize(self.trades.len(), None);
        for number in self.trades_of(piece.number) {
            self.details[number] = self.show(self.trades[number], access)?;
        }
        Ok(())
    }
}
