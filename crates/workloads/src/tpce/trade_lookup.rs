//! Trade-Lookup (clause 3.3.9), read-only: everything about some earlier trades.
//!
//! | frame | stages |
//! |---|---|
//! | 1, given trades | the trades of each home |
//! | 2, first trades of an account since a date | the index, at home; the trades, at home |
//! | 3, first trades of a security since a date | the index, at the market place; the trades of each home |
//! | 4, lots of the first trade of an account since a date | the index; what the trade has made of lots; what else was made of these, by the index by lot; the rows of that: all at home |

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::numbers::{Scale, Trade};
use super::schema::*;
use super::shown::{
    Details, FIRST_OF_ACCOUNT, Names, OF_ACCOUNT, OF_SECURITY, TRADES_MAX, draw_dates, draw_trades,
    of_account,
};
use super::{Client, Tpce};

/// A Trade-Lookup transaction.
#[derive(Clone, Debug)]
pub struct TradeLookup {
    layout: Layout,
    scale: Scale,
    sought: Sought,
    /// Output of frames 1 to 3: the trades.
    trades: Vec<Details>,
    /// Accounts of the trades of frame 3, as the index has them.
    accounts: [u32; TRADES_MAX],
    /// Positions of trades, those of a home together.
    by_home: [u8; TRADES_MAX],
    /// The trades of each home, positions in `by_home`.
    homes: [(u8, u8); TRADES_MAX],
    home_count: u8,
    /// Names of types.
    names: Names,
    /// Output of frame 4: the trade that was found.
    first: Option<Trade>,
    /// Lots that it has changed or made.
    lots: Vec<Trade>,
    /// Output of frame 4: what was made of these lots.
    changes: Vec<LotChange>,
}

/// What is looked for.
#[derive(Clone, Debug)]
enum Sought {
    /// Frame 1: these trades, in the order of their numbers.
    Trades([Trade; TRADES_MAX]),
    /// Frame 2: the first trades of an account with dates in a range.
    OfAccount(u32, Range<u64>),
    /// Frame 3: the first trades of a security with dates in a range.
    OfSecurity(u32, Range<u64>),
    /// Frame 4: the first trade of an account since a date, and the lots it has changed.
    Lots(u32, u64),
}

/// What a trade has made of a lot (HOLDING_HISTORY).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LotChange {
    /// HH_H_T_ID: the trade that made the lot.
    pub lot: Trade,
    /// HH_T_ID.
    pub trade: Trade,
    /// HH_BEFORE_QTY.
    pub before: i32,
    /// HH_AFTER_QTY.
    pub after: i32,
}

/// What a stage does.
enum Step {
    /// Looks into the index by account or security.
    Index,
    /// Reads everything about trades.
    Trades,
    /// Finds the lots of the trade.
    Lots,
    /// Finds the trades that have changed these.
    Changes,
    /// Reads what they have made of them.
    Rows,
    /// Nothing is left to do.
    End,
}

impl TradeLookup {
    /// Draws the inputs (clause 3.3.9.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> TradeLookup {
        let scale = tpce.scale();
        let sought = match client.rng.below(100) {
            0..30 => Sought::Trades(draw_trades(scale, &mut client.rng)),
            30..60 => {
                let account = client.draw_account(tpce);
                Sought::OfAccount(account, draw_dates(scale, &mut client.rng, OF_ACCOUNT))
            }
            60..90 => {
                let security = scale.draw_security(&mut client.rng);
                Sought::OfSecurity(security, draw_dates(scale, &mut client.rng, OF_SECURITY))
            }
            _ => {
                let account = client.draw_account(tpce);
                Sought::Lots(account, draw_dates(scale, &mut client.rng, FIRST_OF_ACCOUNT).start)
            }
        };
        let mut lookup = TradeLookup {
            layout: tpce.layout(),
            scale,
            sought,
            trades: Vec::new(),
            accounts: [0; TRADES_MAX],
            by_home: [0; TRADES_MAX],
            homes: [(0, 0); TRADES_MAX],
            home_count: 0,
            names: Names::default(),
            first: None,
            lots: Vec::new(),
            changes: Vec::new(),
        };
        if let Sought::Trades(trades) = &lookup.sought {
            lookup.trades.extend(trades.iter().map(|&trade| Details::unread(trade, 0)));
            lookup.part();
        }
        lookup
    }

    /// What a stage does.
    #[inline]
    fn step(&self, stage: usize) -> Step {
        match (stage, &self.sought) {
            (0, Sought::Trades(_)) | (1, Sought::OfAccount(..) | Sought::OfSecurity(..)) => Step::Trades,
            (0, _) => Step::Index,
            (1, Sought::Lots(..)) => Step::Lots,
            (2, Sought::Lots(..)) => Step::Changes,
            (3, Sought::Lots(..)) => Step::Rows,
            _ => Step::End,
        }
    }

    /// Puts the trades that were found in the order of their homes, and notes which share one.
    #[inline]
    fn part(&mut self) {
        let (trades, count) = (&self.trades, self.trades.len());
        let by_home = &mut self.by_home[..count];
        by_home.iter_mut().zip(0..).for_each(|(place, at)| *place = at);
        let home = |at: &u8| trades[usize::from(*at)].trade.home();
        by_home.sort_unstable_by_key(|at| (home(at), *at));
        (self.home_count, self.homes) = (0, [(0, 0); TRADES_MAX]);
        let mut start = 0;
        for part in by_home.chunk_by(|a, b| home(a) == home(b)) {
            let end = start + part.len() as u8;
            self.homes[usize::from(self.home_count)] = (start, end);
            self.home_count += 1;
            start = end;
        }
    }

    /// Positions of the trades of a piece.
    #[inline]
    fn of_piece(&self, piece: Piece) -> Range<usize> {
        let (start, end) = self.homes[piece.number];
        start.into()..end.into()
    }

    /// The trades of a piece.
    #[inline]
    fn trades_of(&self, piece: Piece) -> impl Iterator<Item = Trade> + Clone {
        self.by_home[self.of_piece(piece)].iter().map(|&at| self.trades[usize::from(at)].trade)
    }

    /// The part of an index that is read first.
    #[inline]
    fn index(&self) -> Scan {
        match &self.sought {
            Sought::Trades(_) => unreachable!("given trades are not looked up"),
            Sought::OfAccount(account, dates) => of_account(*account, dates).limit(TRADES_MAX),
            Sought::OfSecurity(security, dates) => {
                let low = keys::by_security_from(*security, dates.start);
                let high = keys::by_security_from(*security, dates.end);
                Scan::range(self.layout.column::<TradeOfSecurity>(), low, high).limit(TRADES_MAX)
            }
            Sought::Lots(account, date) => {
                let (low, high) = (keys::by_account_from(*account, *date), keys::number(account + 1));
                Scan::range(TRADE_BY_ACCOUNT.row(), low, high).limit(1)
            }
        }
    }

    /// What a trade has made of lots.
    #[inline]
    fn lots_of(&self, trade: Trade) -> Scan {
        let (low, high) = (keys::trade(trade), keys::trade(Trade(trade.0 + 1)));
        Scan::range(self.layout.column::<HoldingHistory>(), low, high).limit(TRADES_MAX)
    }

    /// The trades that have changed a lot.
    #[inline]
    fn changes_of(&self, lot: Trade) -> Scan {
        let (low, high) = (keys::trade(lot), keys::trade(Trade(lot.0 + 1)));
        Scan::range(HOLDING_HISTORY_BY_LOT.row(), low, high).limit(TRADES_MAX)
    }

    /// The number of the frame, from 1 on.
    pub fn frame(&self) -> u8 {
        match self.sought {
            Sought::Trades(_) => 1,
            Sought::OfAccount(..) => 2,
            Sought::OfSecurity(..) => 3,
            Sought::Lots(..) => 4,
        }
    }

    /// The account of frames 2 and 4, and the dates of its trades.
    pub fn account(&self) -> Option<(u32, Range<u64>)> {
        match &self.sought {
            Sought::OfAccount(account, dates) => Some((*account, dates.clone())),
            Sought::Lots(account, date) => Some((*account, *date..u64::MAX)),
            _ => None,
        }
    }

    /// The security of frame 3, and the dates of its trades.
    pub fn security(&self) -> Option<(u32, Range<u64>)> {
        match &self.sought {
            Sought::OfSecurity(security, dates) => Some((*security, dates.clone())),
            _ => None,
        }
    }

    /// Output of frames 1 to 3: the trades that were found.
    pub fn trades(&self) -> impl Iterator<Item = &Details> {
        self.trades.iter().filter(|details| details.found)
    }

    /// Output: TT_NAME of a type that is shown.
    pub fn kind_name(&self, kind: u8) -> &[u8] {
        self.names.kind(kind)
    }

    /// Output of frame 4: the trade that was found, and what was made of the lots it has changed.
    pub fn lots(&self) -> (Option<Trade>, &[LotChange]) {
        (self.first, &self.changes)
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        let details: u32 = self.trades.iter().map(Details::rows).sum();
        match self.sought {
            Sought::Trades(_) => details,
            Sought::OfAccount(..) | Sought::OfSecurity(..) => details + self.trades.len() as u32,
            // What the trade itself has made of its lots is read twice.
            Sought::Lots(..) => {
                let others = self.changes.iter().filter(|change| Some(change.trade) != self.first).count();
                u32::from(self.first.is_some()) + (self.lots.len() + self.changes.len() + others) as u32
            }
        }
    }
}

impl Procedure for TradeLookup {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match self.step(stage) {
            Step::Index => 1,
            Step::Trades => self.home_count.into(),
            Step::Lots => usize::from(self.first.is_some()),
            Step::Changes => usize::from(!self.lots.is_empty()),
            Step::Rows => usize::from(!self.changes.is_empty()),
            Step::End => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        let home = match (self.step(piece.stage), &self.sought) {
            (Step::Index, Sought::OfSecurity(security, _)) => return self.scale.market_slot(*security),
            (_, Sought::OfAccount(account, _) | Sought::Lots(account, _)) => {
                self.scale.home_of_account(*account)
            }
            _ => self.trades[usize::from(self.by_home[self.of_piece(piece).start])].trade.home(),
        };
        self.scale.slot(home)
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        match self.step(piece.stage) {
            Step::Index => reads.scan(self.index()),
            Step::Trades => Details::declare(self.layout, reads, self.trades_of(piece)),
            Step::Lots => self.first.iter().for_each(|&trade| reads.scan(self.lots_of(trade))),
            Step::Changes => self.lots.iter().for_each(|&lot| reads.scan(self.changes_of(lot))),
            Step::Rows => {
                let column = self.layout.column::<HoldingHistory>();
                let changes = self.changes.iter();
                changes.for_each(|change| reads.get(column, keys::two_trades(change.trade, change.lot)));
            }
            Step::End => {}
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match self.step(piece.stage) {
            Step::Index => self.find(access),
            Step::Trades => self.show(piece, access),
            Step::Lots => self.find_lots(access),
            Step::Changes => self.find_changes(access),
            Step::Rows => self.show_changes(access),
            Step::End => Ok(()),
        }
    }
}

impl TradeLookup {
    /// Finds the first trades.
    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, index) = (self.layout, self.index());
        (self.first, self.lots, self.changes) = (None, Vec::new(), Vec::new());
        let (trades, accounts, first) = (&mut self.trades, &mut self.accounts, &mut self.first);
        trades.clear();
        let home = match &self.sought {
            Sought::OfAccount(account, _) | Sought::Lots(account, _) => self.scale.home_of_account(*account),
            _ => 0,
        };
        match &self.sought {
            Sought::OfSecurity(..) => {
                trades.reserve_exact(TRADES_MAX);
                access.scan(&index, |key, record| {
                    let (date, trade) = keys::date_and_trade(key);
                    let Some(account) = accounts.get_mut(trades.len()) else {
                        return ControlFlow::Break(());
                    };
                    *account = layout.view::<TradeOfSecurity>(record).0.account.get();
                    trades.push(Details::unread(trade, date));
                    ControlFlow::Continue(())
                })?;
            }
            Sought::Lots(..) => access.scan(&index, |key, _| {
                *first = Some(keys::trade_by_account(key, home));
                ControlFlow::Break(())
            })?,
            _ => {
                trades.reserve_exact(TRADES_MAX);
                access.scan(&index, |key, _| {
                    let trade = keys::trade_by_account(key, home);
                    trades.push(Details::unread(trade, keys::date_by_account(key)));
                    ControlFlow::Continue(())
                })?;
            }
        }
        self.part();
        Ok(())
    }

    /// Reads everything about the trades of a piece.
    #[inline]
    fn show<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (layout, of_piece) = (self.layout, self.of_piece(piece));
        Details::expect(layout, access, self.trades_of(piece));
        let promised = !matches!(self.sought, Sought::Trades(_));
        for &at in &self.by_home[of_piece] {
            let details = &mut self.trades[usize::from(at)];
            details.read(layout, access, promised)?;
            self.names.read_kind(layout, access, details.order.kind)?;
            if matches!(self.sought, Sought::OfSecurity(..))
                && details.order.account.get() != self.accounts[usize::from(at)]
            {
                // The index names another account: this is no consistent state.
                return Err(Abort::Validation);
            }
        }
        Ok(())
    }

    /// Finds the lots that the trade has changed or made.
    #[inline]
    fn find_lots<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        self.lots.clear();
        self.changes.clear();
        let Some(trade) = self.first else { return Ok(()) };
        let (scan, lots) = (self.lots_of(trade), &mut self.lots);
        access.scan(&scan, |key, _| {
            lots.push(keys::second_trade(key));
            ControlFlow::Continue(())
        })
    }

    /// Finds the trades that have changed these lots.
    #[inline]
    fn find_changes<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        self.changes.clear();
        for &lot in &self.lots {
            let (scan, changes) = (self.changes_of(lot), &mut self.changes);
            if changes.len() == TRADES_MAX {
                break;
            }
            access.scan(&scan, |key, _| {
                changes.push(LotChange { lot, trade: keys::second_trade(key), before: 0, after: 0 });
                if changes.len() < TRADES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(())
    }

    /// Reads what these trades have made of the lots.
    #[inline]
    fn show_changes<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        for change in &mut self.changes {
            let key = keys::two_trades(change.trade, change.lot);
            let row = self.layout.find::<HoldingHistory, A>(access, &key)?.ok_or(Abort::Validation)?;
            (change.before, change.after) = (row.before.get(), row.after.get());
        }
        Ok(())
    }
}
