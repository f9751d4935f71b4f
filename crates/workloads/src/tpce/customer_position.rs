//! Customer-Position (clause 3.3.2), read-only: what the accounts of a customer are worth, and in
//! half of the cases the last trades of one of them.
//!
//! Stages: the customer, its accounts and what they hold, at home (the tax number by which half of
//! the customers are given tells the home); the price of each security held, at its market place;
//! the newest trades of the chosen account, at home; the states of these trades.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};
use zerocopy::FromZeros;

use super::numbers::{self, ACCOUNTS_MAX, Scale, Trade};
use super::people;
use super::schema::*;
use super::shown::{Names, STATES_MAX, States, declare, newest_of_account, states_of};
use super::{Client, Tpce};
use crate::NOT_LOADED;

/// Most trades whose states are shown.
pub const SHOWN_MAX: usize = 10;

/// A Customer-Position transaction.
#[derive(Clone, Debug)]
pub struct CustomerPosition {
    layout: Layout,
    scale: Scale,
    customer: u32,
    /// The customer's tax number, if it was given instead of the number.
    tax_id: Option<u64>,
    /// The position of the account whose trades are shown, among the accounts by their assets.
    chosen: Option<u8>,
    /// Output: CUSTOMER.
    row: Customer,
    /// Output: C_EMAIL_2.
    email_2: [u8; 50],
    /// Output: accounts and their balances.
    accounts: [(u32, i64); ACCOUNTS_MAX as usize],
    account_count: u8,
    /// What the accounts hold.
    holdings: Vec<Held>,
    /// The securities among it, in the order of their numbers.
    securities: Vec<u32>,
    /// LT_PRICE of each in cents.
    prices: Vec<i32>,
    /// Names of states.
    names: Names,
    /// Output: the newest trades of the chosen account.
    trades: Vec<(Trade, u32, i32, States)>,
}

/// What an account holds of a security.
#[derive(Clone, Copy, Debug)]
struct Held {
    account: u32,
    security: u32,
    quantity: i32,
    /// The position of the security's price.
    price: u32,
}

/// What Customer-Position shows of an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// What it holds at current prices, in cents.
    pub assets: i64,
    /// CA_ID.
    pub account: u32,
    /// CA_BAL in cents.
    pub balance: i64,
}

/// A state of a trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownState {
    /// T_ID.
    pub trade: Trade,
    /// T_S_SYMB, as the security's number.
    pub security: u32,
    /// T_QTY.
    pub quantity: i32,
    /// TH_DTS.
    pub date: u64,
    /// TH_ST_ID: a [`super::reference::Status`].
    pub status: u8,
}

impl CustomerPosition {
    /// Draws the inputs (clause 3.3.2.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> CustomerPosition {
        let mut customer = client.draw_customer(tpce);
        let accounts = u64::from(numbers::accounts(customer));
        let rng = &mut client.rng;
        let tax_id = rng.pct(50.0).then(|| people::tax_id(customer.into()));
        if let Some(tax_id) = tax_id {
            customer = people::id_of_tax_id(tax_id) as u32;
        }
        CustomerPosition {
            layout: tpce.layout(),
            scale: tpce.scale(),
            customer,
            tax_id,
            chosen: rng.pct(50.0).then(|| rng.below(accounts) as u8),
            row: Customer::new_zeroed(),
            email_2: [0; 50],
            accounts: [(0, 0); ACCOUNTS_MAX as usize],
            account_count: 0,
            holdings: Vec::new(),
            securities: Vec::new(),
            prices: Vec::new(),
            names: Names::default(),
            trades: Vec::new(),
        }
    }

    /// The position of a stage if the customer holds something.
    #[inline]
    fn step(&self, stage: usize) -> usize {
        stage + usize::from(stage > 0 && self.securities.is_empty())
    }

    /// The customer's accounts: [`Account`] or [`AccountBalance`] of them.
    #[inline]
    fn account_range(&self) -> (u32, u32) {
        let first = self.customer * ACCOUNTS_MAX;
        (first, first + ACCOUNTS_MAX)
    }

    #[inline]
    fn balances(&self) -> Scan {
        let (low, high) = self.account_range();
        Scan::range(self.layout.column::<AccountBalance>(), keys::number(low), keys::number(high))
    }

    #[inline]
    fn held(&self) -> Scan {
        let (low, high) = self.account_range();
        Scan::range(self.layout.column::<HoldingSummary>(), keys::number(low), keys::number(high))
    }

    #[inline]
    fn newest(&self) -> Result<Scan, Abort> {
        let chosen = self.chosen.and_then(|chosen| self.sorted().0.get(usize::from(chosen)).copied());
        let account = chosen.filter(|position| position.account != NONE).ok_or(NOT_LOADED)?.account;
        Ok(newest_of_account(account, SHOWN_MAX))
    }

    /// The accounts by their assets, and how many there are.
    #[inline]
    fn sorted(&self) -> ([Position; ACCOUNTS_MAX as usize], usize) {
        let last = Position { assets: i64::MAX, account: NONE, balance: 0 };
        let mut sorted = [last; ACCOUNTS_MAX as usize];
        let count = usize::from(self.account_count);
        for (position, &(account, balance)) in sorted.iter_mut().zip(&self.accounts[..count]) {
            *position = Position { assets: 0, account, balance };
        }
        // Both are in the order of the accounts.
        let mut at = 0;
        for held in &self.holdings {
            while at < count && sorted[at].account < held.account {
                at += 1;
            }
            if at < count && sorted[at].account == held.account {
                sorted[at].assets += i64::from(held.quantity) * i64::from(self.prices[held.price as usize]);
            }
        }
        sorted[..count].sort_unstable_by_key(|position| (position.assets, position.account));
        (sorted, count)
    }

    /// Output: the customer's number and row, and C_EMAIL_2.
    pub fn customer(&self) -> (u32, &Customer, &[u8; 50]) {
        (self.customer, &self.row, &self.email_2)
    }

    /// Output: the accounts in the order of their assets.
    pub fn accounts(&self) -> Vec<Position> {
        let (sorted, count) = self.sorted();
        sorted[..count].to_vec()
    }

    /// The account whose trades are shown, if that was asked for.
    pub fn chosen(&self) -> Option<u32> {
        let (sorted, count) = self.sorted();
        sorted[..count].get(usize::from(self.chosen?)).map(|position| position.account)
    }

    /// Output: the states of that account's newest trades, the newest first.
    pub fn history(&self) -> Vec<ShownState> {
        let shown = self.trades.iter().flat_map(|&(trade, security, quantity, ref states)| {
            let state = move |&(status, date)| ShownState { trade, security, quantity, date, status };
            states.all().iter().map(state)
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by_key(|state| std::cmp::Reverse((state.date, state.trade, state.status)));
        shown.truncate(SHOWN_MAX * STATES_MAX);
        shown
    }

    /// Output: ST_NAME of a state that is shown.
    pub fn status_name(&self, status: u8) -> &[u8] {
        self.names.status(status)
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        let found = 1 + usize::from(self.tax_id.is_some()) + usize::from(self.account_count);
        let states: usize = self.trades.iter().map(|(.., states)| states.all().len()).sum();
        (found + self.holdings.len() + self.securities.len() + 2 * self.trades.len() + states) as u32
    }
}

/// No account.
const NONE: u32 = u32::MAX;

impl Procedure for CustomerPosition {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match self.step(stage) {
            0 => 1,
            1 => self.securities.len(),
            2 => usize::from(self.chosen.is_some()),
            3 => usize::from(!self.trades.is_empty()),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match self.step(piece.stage) {
            1 => self.scale.market_slot(self.securities[piece.number]),
            _ => self.scale.slot(self.scale.home_of(self.customer)),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match self.step(piece.stage) {
            0 => {
                let (fixed, email) = (layout.column::<Customer>(), layout.column::<CustomerEmail>());
                declare(layout, reads, &[fixed, email], [keys::number(self.customer)].into_iter());
                if let Some(tax_id) = self.tax_id {
                    reads.get(CUSTOMER_BY_TAX_ID.row(), keys::tax_id(self.customer, tax_id));
                }
                reads.scan(self.balances());
                reads.scan(self.held());
            }
            1 => {
                let key = keys::security(self.securities[piece.number]);
                reads.get(layout.column::<LastTrade>(), key);
            }
            2 => {
                if let Ok(newest) = self.newest() {
                    reads.scan(newest);
                }
            }
            _ => {
                let trades = self.trades.iter().map(|(trade, ..)| keys::trade(*trade));
                declare(layout, reads, &[layout.column::<TradeOrder>()], trades);
                self.trades.iter().for_each(|(trade, ..)| reads.scan(states_of(*trade)));
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        match self.step(piece.stage) {
            0 => self.find(access),
            1 => {
                let key = keys::security(self.securities[piece.number]);
                self.prices[piece.number] =
                    layout.read(access, &key, |row: &LastTrade, _| row.price.get())?;
                Ok(())
            }
            2 => {
                let (home, newest) = (self.scale.home_of(self.customer), self.newest()?);
                let trades = &mut self.trades;
                trades.clear();
                trades.reserve_exact(SHOWN_MAX);
                access.scan(&newest, |key, _| {
                    trades.push((keys::trade_by_account(key, home), 0, 0, States::default()));
                    ControlFlow::Continue(())
                })
            }
            _ => {
                let trades = self.trades.iter().map(|(trade, ..)| keys::trade(*trade));
                access.expect(layout.column::<TradeOrder>(), trades);
                for (trade, security, quantity, states) in &mut self.trades {
                    let key = keys::trade(*trade);
                    // The index has promised the trade: without it, this is no consistent state.
                    let order = layout.find::<TradeOrder, A>(access, &key)?.ok_or(Abort::Validation)?;
                    (*security, *quantity) = (order.security.get(), order.quantity.get());
                    *states = States::read(layout, access, *trade)?;
                    for &(status, _) in states.all() {
                        self.names.read_status(layout, access, status)?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl CustomerPosition {
    /// The customer, its accounts and what they hold.
    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, key) = (self.layout, keys::number(self.customer));
        if let Some(tax_id) = self.tax_id {
            let key = keys::tax_id(self.customer, tax_id);
            access.get(CUSTOMER_BY_TAX_ID.row(), &key)?.ok_or(NOT_LOADED)?;
        }
        self.row = layout.read(access, &key, |row: &Customer, _| *row)?;
        self.email_2 = layout.read(access, &key, |row: &CustomerEmail, _| row.email_2)?;
        let (balances, held) = (self.balances(), self.held());
        let (accounts, mut count) = (&mut self.accounts, 0);
        access.scan(&balances, |key, record| {
            let Some(account) = accounts.get_mut(count) else { return ControlFlow::Break(()) };
            *account = (key.leading_int(4) as u32, layout.view::<AccountBalance>(record).0.balance.get());
            count += 1;
            ControlFlow::Continue(())
        })?;
        self.account_count = count as u8;
        let holdings = &mut self.holdings;
        holdings.clear();
        holdings.reserve(16 * count);
        access.scan(&held, |key, record| {
            holdings.push(Held {
                account: key.leading_int(4) as u32,
                security: keys::security_of(key),
                quantity: layout.view::<HoldingSummary>(record).0.quantity.get(),
                price: 0,
            });
            ControlFlow::Continue(())
        })?;
        self.securities.clear();
        self.securities.extend(self.holdings.iter().map(|held| held.security));
        self.securities.sort_unstable();
        self.securities.dedup();
        for held in &mut self.holdings {
            let place = self.securities.binary_search(&held.security);
            held.price = place.expect("the securities are those that are held") as u32;
        }
        self.prices.clear();
        self.prices.resize(self.securities.len(), 0);
        self.trades.clear();
        Ok(())
    }
}
