//! What read-only transactions have in common: the time ranges that their clients draw, the names
//! of states and types, and everything that is known of a trade.

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Reads, Scan};
use plimsoll_types::random::Rng;
use plimsoll_types::{Abort, ColumnGroup, Key, Slot};
use zerocopy::FromZeros;

use super::numbers::{DAY_SECONDS, Scale, Trade, date_of};
use super::schema::*;
use super::{Client, Tpce};
use crate::NOT_LOADED;

/// Most trades that Trade-Lookup and Trade-Update look at.
pub const TRADES_MAX: usize = 20;
/// Most states of a trade that are shown.
pub const STATES_MAX: usize = 3;
/// What the ends of time ranges lie behind the end of the initial days, in milliseconds.
const END_MS: u64 = 900_000;
/// The initial days of the specification.
const DAYS: u64 = 300;

/// A slot on the client's own shard, for pieces that read copies only.
pub(super) fn own_slot(tpce: &Tpce, client: &mut Client) -> Slot {
    tpce.scale().slot(client.draw_own_home())
}

/// The specification's non-uniform integers from 1 to `high`.
fn nurand(rng: &mut Rng, high: u64, a: u64, shift: u32) -> u64 {
    let (fine, coarse) = (rng.uniform(1..=high), rng.uniform(0..=a));
    (fine | coarse << shift) % high + 1
}

/// The number of the week, counted from the first of DAILY_MARKET, for Market-Watch: not among the
/// first five, if there are more. It is non-uniform like the others.
pub(super) fn draw_week(scale: Scale, rng: &mut Rng) -> u32 {
    let weeks = (scale.daily_market_days / 5).max(1);
    let first = (weeks - 1).min(5);
    first + (nurand(rng, u64::from(weeks - first), 255, 0) - 1) as u32
}

/// Draws trades of the load, no two the same, and puts them in the order of their numbers.
pub(super) fn draw_trades(scale: Scale, rng: &mut Rng) -> [Trade; TRADES_MAX] {
    let mut trades = [Trade::default(); TRADES_MAX];
    let all = scale.initiated() * u64::from(scale.homes());
    let mut drawn = 0;
    while drawn < TRADES_MAX {
        let trade = scale.initial_trade(nurand(rng, all, 65_535, 7));
        if !trades[..drawn].contains(&trade) {
            trades[drawn] = trade;
            drawn += 1;
        }
    }
    trades.sort_unstable();
    trades
}

/// How far before the end of the initial days a time range begins at the latest, in seconds of
/// trading: what it takes to find what is looked for, and what the specification says of its 300
/// days, in proportion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    needed: u64,
    specified: u64,
}

/// To find 20 trades of an account. One of the least active ones has four a day.
pub(super) const OF_ACCOUNT: Backoff = Backoff { needed: 3 * DAY_SECONDS, specified: 115_200 };
/// To find 20 trades of a security, which has 84 a day.
pub(super) const OF_SECURITY: Backoff = Backoff { needed: 12_000, specified: 12_000 };
/// To find a trade of an account.
pub(super) const FIRST_OF_ACCOUNT: Backoff = Backoff { needed: DAY_SECONDS, specified: 30_000 };

/// Draws a time range that begins within the initial days and ends behind them. An eighth of the
/// initial days at least is left to begin in, however few they are.
pub(super) fn draw_dates(scale: Scale, rng: &mut Rng, backoff: Backoff) -> Range<u64> {
    let days = u64::from(scale.trade_days);
    let all = days * DAY_SECONDS;
    let backoff = backoff.needed.max(backoff.specified * days / DAYS).min(all - all / 8);
    let start = nurand(rng, (all - backoff) * 1000, 4095, 16);
    date_of(start)..scale.end_of_load() + END_MS + 1
}

/// Declares structures of rows: of each row one record, if groups are not split. One column after
/// the other: neighbours of one table are fetched at once.
#[inline]
pub(super) fn declare(
    layout: Layout,
    reads: &mut Reads,
    columns: &[ColumnGroup],
    keys: impl Iterator<Item = Key> + Clone,
) {
    let columns = if layout.split { columns } else { &columns[..1] };
    for &column in columns {
        keys.clone().for_each(|key| reads.get(column, key));
    }
}

/// Names of states and of types of trades, each read when it is first needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    statuses: [[u8; 10]; 5],
    kinds: [[u8; 12]; 5],
}

impl Names {
    /// Reads ST_NAME of a state.
    #[inline]
    pub(super) fn read_status<A: Access>(
        &mut self,
        layout: Layout,
        access: &mut A,
        status: u8,
    ) -> Result<(), Abort> {
        let name = self.statuses.get_mut(usize::from(status)).ok_or(NOT_LOADED)?;
        if name[0] == 0 {
            *name = layout.read(access, &keys::small(status), |row: &StatusType, _| row.name)?;
        }
        Ok(())
    }

    /// Reads TT_NAME of a type.
    #[inline]
    pub(super) fn read_kind<A: Access>(
        &mut self,
        layout: Layout,
        access: &mut A,
        kind: u8,
    ) -> Result<(), Abort> {
        let name = self.kinds.get_mut(usize::from(kind)).ok_or(NOT_LOADED)?;
        if name[0] == 0 {
            *name = layout.read(access, &keys::small(kind), |row: &TradeTypeRow, _| row.name)?;
        }
        Ok(())
    }

    /// ST_NAME, if it was read.
    pub(super) fn status(&self, status: u8) -> &[u8] {
        self.statuses.get(usize::from(status)).map_or(&[], |name| crate::rows::unpadded(name))
    }

    /// TT_NAME, if it was read.
    pub(super) fn kind(&self, kind: u8) -> &[u8] {
        self.kinds.get(usize::from(kind)).map_or(&[], |name| crate::rows::unpadded(name))
    }
}

/// The trades of an account with dates in a range.
#[inline]
pub(super) fn of_account(account: u32, dates: &Range<u64>) -> Scan {
    let (low, high) =
        (keys::by_account_from(account, dates.start), keys::by_account_from(account, dates.end));
    Scan::range(TRADE_BY_ACCOUNT.row(), low, high)
}

/// The newest trades of an account, the newest first.
#[inline]
pub(super) fn newest_of_account(account: u32, limit: usize) -> Scan {
    let (low, high) = (keys::number(account), keys::number(account + 1));
    Scan::range(TRADE_BY_ACCOUNT.row(), low, high).limit(limit).descending()
}

/// The states that a trade had.
#[inline]
pub(super) fn states_of(trade: Trade) -> Scan {
    let (low, high) = (keys::trade(trade), keys::trade(Trade(trade.0 + 1)));
    Scan::range(TRADE_HISTORY.row(), low, high).limit(STATES_MAX)
}

/// The states that a trade had, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct States {
    states: [(u8, u64); STATES_MAX],
    count: u8,
}

impl States {
    /// [`super::reference::Status`] and TH_DTS.
    pub fn all(&self) -> &[(u8, u64)] {
        &self.states[..usize::from(self.count)]
    }

    /// Reads those of a trade, which was declared ([`states_of`]).
    #[inline]
    pub(super) fn read<A: Access>(layout: Layout, access: &mut A, trade: Trade) -> Result<States, Abort> {
        let mut read = States::default();
        access.scan(&states_of(trade), |key, record| {
            let state = (keys::status_of(key), layout.view::<TradeHistory>(record).0.date.get());
            let Some(place) = read.states.get_mut(usize::from(read.count)) else {
                return ControlFlow::Break(());
            };
            *place = state;
            read.count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(read)
    }
}

/// Everything that Trade-Lookup shows of a trade.
#[derive(Clone, Copy, Debug)]
pub struct Details {
    /// T_ID.
    pub trade: Trade,
    /// T_DTS by the index that the trade was found with, 0 if its number was given.
    pub date: u64,
    /// Whether it was read.
    pub found: bool,
    /// What was ordered.
    pub order: TradeOrder,
    /// Price, commission and tax.
    pub outcome: TradeOutcome,
    /// T_EXEC_NAME.
    pub executor: [u8; 49],
    /// What it brought or cost, and SE_CASH_TYPE, once it is completed.
    pub settlement: Option<(Settlement, [u8; 40])>,
    /// The same if it was for cash, and CT_NAME.
    pub cash: Option<(CashTransaction, [u8; 100])>,
    /// The states it had.
    pub states: States,
}

impl Details {
    /// Nothing but the trade and its date in an index.
    pub(super) fn unread(trade: Trade, date: u64) -> Details {
        Details {
            trade,
            date,
            found: false,
            order: TradeOrder::new_zeroed(),
            outcome: TradeOutcome::new_zeroed(),
            executor: [0; 49],
            settlement: None,
            cash: None,
            states: States::default(),
        }
    }

    /// Declares all of these trades, which are of one home.
    pub(super) fn declare(layout: Layout, reads: &mut Reads, trades: impl Iterator<Item = Trade> + Clone) {
        let keys = trades.clone().map(keys::trade);
        let (order, outcome) = (layout.column::<TradeOrder>(), layout.column::<TradeOutcome>());
        declare(layout, reads, &[order, outcome, layout.column::<TradeExecutor>()], keys.clone());
        let (settlement, cash_type) = (layout.column::<Settlement>(), layout.column::<SettlementType>());
        declare(layout, reads, &[settlement, cash_type], keys.clone());
        let (cash, name) = (layout.column::<CashTransaction>(), layout.column::<CashTransactionName>());
        declare(layout, reads, &[cash, name], keys);
        trades.for_each(|trade| reads.scan(states_of(trade)));
    }

    /// Lets the data of these trades come into the cache.
    pub(super) fn expect<A: Access>(
        layout: Layout,
        access: &mut A,
        trades: impl Iterator<Item = Trade> + Clone,
    ) {
        let keys = trades.map(keys::trade);
        access.expect(layout.column::<TradeOrder>(), keys.clone());
        access.expect(layout.column::<TradeOutcome>(), keys.clone());
        access.expect(layout.column::<Settlement>(), keys.clone());
        access.expect(layout.column::<CashTransaction>(), keys);
    }

    /// Reads it. `promised` says that an index names it; otherwise it is a trade of the load.
    pub(super) fn read<A: Access>(
        &mut self,
        layout: Layout,
        access: &mut A,
        promised: bool,
    ) -> Result<(), Abort> {
        *self = Details::unread(self.trade, self.date);
        let key = keys::trade(self.trade);
        let absent = if promised { Abort::Validation } else { NOT_LOADED };
        self.order = layout.find::<TradeOrder, A>(access, &key)?.ok_or(absent)?;
        self.outcome = layout.find::<TradeOutcome, A>(access, &key)?.ok_or(Abort::Validation)?;
        self.executor = layout.find::<TradeExecutor, A>(access, &key)?.ok_or(Abort::Validation)?.name;
        // Only a completed trade has a price, and what it brought or cost.
        if self.outcome.price.get() > 0 {
            let settlement = layout.find::<Settlement, A>(access, &key)?.ok_or(Abort::Validation)?;
            let kind = layout.find::<SettlementType, A>(access, &key)?.ok_or(Abort::Validation)?;
            self.settlement = Some((settlement, kind.cash_type));
            if self.order.cash != 0 {
                let cash = layout.find::<CashTransaction, A>(access, &key)?.ok_or(Abort::Validation)?;
                let name = layout.find::<CashTransactionName, A>(access, &key)?.ok_or(Abort::Validation)?;
                self.cash = Some((cash, name.name));
            }
        }
        self.states = States::read(layout, access, self.trade)?;
        self.found = true;
        Ok(())
    }

    /// How many rows were read of it.
    pub(super) fn rows(&self) -> u32 {
        let further = u32::from(self.settlement.is_some()) + u32::from(self.cash.is_some());
        u32::from(self.found) + further + u32::from(self.states.count)
    }
}
