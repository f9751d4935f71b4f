//! The audit of a home.
//!
//! Brokers and accounts come first, whose sums what follows adds to. Trades come in the order of
//! their numbers: one stage reads the history of some, which says which there are, the next one
//! their rows and what they made of lots. Then lots and their sums account by account, what the
//! trades of the lots were executed at, and the indexes of trades by account, of lots, and of
//! pending orders.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Reads, Scan};
use plimsoll_types::{Abort, Key, Slot};

use super::lots::Lots;
use super::trade::{Found, Part, TradeRows, pending};
use super::{Set, behind, declare, fingerprint};
use crate::tpce::Parameters;
use crate::tpce::numbers::{ACCOUNTS_MAX, Trade, accounts_of};
use crate::tpce::people;
use crate::tpce::schema::*;
use crate::verdict::Verdict;

/// Number of customer numbers whose accounts a stage reads.
const CUSTOMERS_PER_STAGE: u32 = 100;
/// Number of customer numbers whose lots a stage reads.
const HOLDERS_PER_STAGE: u32 = 20;
/// Number of rows of TRADE_HISTORY that a stage reads; the next stage reads their trades.
const HISTORIES_PER_STAGE: usize = if cfg!(test) { 50 } else { 6000 };
/// Number of entries of an index that a stage reads.
const ENTRIES_PER_STAGE: usize = if cfg!(test) { 30 } else { 20_000 };

/// An audit of one home.
#[derive(Clone, Debug)]
pub struct HomeAudit {
    parameters: Parameters,
    pub(in crate::tpce) home: u32,
    /// The stages so far, and the next one.
    steps: Vec<Step>,
    /// Trades whose history the last stage of that kind has read.
    found: Vec<Found>,
    /// Lots that the last stage of that kind has found, with their prices.
    held: Vec<(Trade, i32)>,
    pub(in crate::tpce) seen: HomeSeen,
}

/// What a stage reads.
#[derive(Clone, Debug)]
enum Step {
    /// Totals of brokers.
    Brokers,
    /// Accounts of some customers, from one on.
    Accounts { customer: u32 },
    /// TRADE_HISTORY from a trade on.
    Histories { from: Trade },
    /// The trades that were found between these, and HOLDING_HISTORY there.
    Trades { low: Trade, high: Trade },
    /// HOLDING and HOLDING_SUMMARY of the accounts of some customers, from one on.
    Lots { customer: u32 },
    /// T_TRADE_PRICE of the trades that began the lots found for these customers.
    Prices { customer: u32 },
    /// TRADE_BY_ACCOUNT from a key on.
    ByAccount { from: Key },
    /// HOLDING_HISTORY_BY_LOT from a key on.
    ByLot { from: Key },
    /// PENDING_BY_BROKER from a key on.
    Pending { from: Key },
}

/// What an audit has seen of a home.
#[derive(Clone, Debug, Default)]
pub(in crate::tpce) struct HomeSeen {
    /// Rows that are loaded and not there.
    pub(in crate::tpce) missing: Verdict,
    /// Conditions that are judged row by row.
    pub(in crate::tpce) summaries: Verdict,
    pub(in crate::tpce) signs: Verdict,
    pub(in crate::tpce) parts: Verdict,
    pub(in crate::tpce) settlements: Verdict,
    pub(in crate::tpce) amounts: Verdict,
    pub(in crate::tpce) histories: Verdict,
    /// From the first of the home on.
    first_broker: u32,
    pub(in crate::tpce) brokers: Vec<BrokerSeen>,
    /// From the first of the home on, those that do not exist included.
    first_account: u32,
    pub(in crate::tpce) accounts: Vec<AccountSeen>,
    /// HOLDING_HISTORY, less HOLDING_HISTORY_BY_LOT.
    pub(in crate::tpce) by_lot: Set,
    /// Pending trades, and all trades, as a market place would have them.
    pub(in crate::tpce) requests: Set,
    pub(in crate::tpce) trades: Set,
    pub(in crate::tpce) counts: Counts,
}

impl HomeSeen {
    /// What was seen of an account, if its number is of this home.
    pub(super) fn account(&mut self, account: u32) -> Option<&mut AccountSeen> {
        self.accounts.get_mut(account.checked_sub(self.first_account)? as usize)
    }

    /// What was seen of a broker, if it is of this home.
    pub(super) fn broker(&mut self, broker: u32) -> Option<&mut BrokerSeen> {
        self.brokers.get_mut(broker.checked_sub(self.first_broker)? as usize)
    }
}

/// What became of the trades of a home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tpce) struct Counts {
    /// Trades, and those that are completed, all of the load included.
    pub(in crate::tpce) trades: i64,
    pub(in crate::tpce) completed: i64,
    /// Those that are cancelled.
    pub(in crate::tpce) cancelled: i64,
    /// Sums of T_COMM, SE_AMT and CT_AMT over completed trades of the run.
    pub(in crate::tpce) commissions: i64,
    pub(in crate::tpce) settled: i64,
    pub(in crate::tpce) cash: i64,
    /// Trades of the run with a limit that were submitted.
    pub(in crate::tpce) limits_submitted: i64,
    /// The largest number that a client has counted for a trade, and the latest T_DTS of the run.
    pub(in crate::tpce) last_sequence: u64,
    pub(in crate::tpce) last_date: u64,
}

/// What an audit has seen of a broker.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tpce) struct BrokerSeen {
    /// B_NUM_TRADES and B_COMM_TOTAL.
    pub(in crate::tpce) trades: i64,
    pub(in crate::tpce) commissions: i64,
    /// The same by its completed trades.
    pub(in crate::tpce) completed: i64,
    pub(in crate::tpce) earned: i64,
    /// Pending trades, less PENDING_BY_BROKER.
    pub(in crate::tpce) pending: Set,
}

/// What an audit has seen of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tpce) struct AccountSeen {
    /// CA_B_ID, if it exists, and CA_TAX_ST.
    pub(in crate::tpce) broker: Option<u32>,
    pub(super) tax_status: u8,
    /// CA_BAL less what it was at load, less the cash of trades since.
    pub(in crate::tpce) balance: i64,
    /// Trades, less TRADE_BY_ACCOUNT.
    pub(in crate::tpce) by_account: Set,
    /// Number of trades that are pending or submitted.
    pub(in crate::tpce) open: u32,
    /// What trades have left of lots, less HOLDING.
    pub(in crate::tpce) lots: Set,
}

impl HomeAudit {
    pub(super) fn new(parameters: &Parameters, home: u32) -> HomeAudit {
        HomeAudit {
            parameters: parameters.clone(),
            home,
            steps: vec![Step::Brokers],
            found: Vec::new(),
            held: Vec::new(),
            seen: HomeSeen::default(),
        }
    }

    fn layout(&self) -> Layout {
        self.parameters.layout()
    }

    fn customers(&self) -> std::ops::Range<u32> {
        let size = self.parameters.scale.home;
        self.home * size..(self.home + 1) * size
    }

    pub(in crate::tpce) fn first_account(&self) -> u32 {
        self.customers().start * ACCOUNTS_MAX
    }

    pub(in crate::tpce) fn brokers(&self) -> std::ops::Range<u32> {
        let brokers = self.parameters.scale.brokers_per_home();
        self.home * brokers..(self.home + 1) * brokers
    }

    /// The accounts of a stage that begins with this customer.
    fn accounts(&self, customer: u32) -> impl Iterator<Item = u32> + use<> {
        let scale = self.parameters.scale;
        (customer..customer + CUSTOMERS_PER_STAGE)
            .filter(move |&customer| scale.exists(customer))
            .flat_map(accounts_of)
    }

    /// The first trade of the next home.
    fn end(&self) -> Trade {
        Trade::new(self.home + 1, 0)
    }

    fn histories(&self, from: Trade) -> Scan {
        let column = self.layout().column::<TradeHistory>();
        Scan::range(column, keys::trade(from), keys::trade(self.end())).limit(HISTORIES_PER_STAGE)
    }

    fn parts(&self, low: Trade, high: Trade) -> Scan {
        Scan::range(self.layout().column::<HoldingHistory>(), keys::trade(low), keys::trade(high))
    }

    /// HOLDING and HOLDING_SUMMARY.
    fn lots(&self, customer: u32) -> [Scan; 2] {
        let key = |customer: u32| keys::number(customer * ACCOUNTS_MAX);
        let (low, high) = (key(customer), key(customer + HOLDERS_PER_STAGE));
        [self.layout().column::<Holding>(), self.layout().column::<HoldingSummary>()]
            .map(|column| Scan::range(column, low.clone(), high.clone()))
    }

    fn by_account(&self, from: &Key) -> Scan {
        let high = keys::number(self.customers().end * ACCOUNTS_MAX);
        Scan::range(TRADE_BY_ACCOUNT.row(), from.clone(), high).limit(ENTRIES_PER_STAGE)
    }

    fn by_lot(&self, from: &Key) -> Scan {
        let high = keys::trade(self.end());
        Scan::range(HOLDING_HISTORY_BY_LOT.row(), from.clone(), high).limit(ENTRIES_PER_STAGE)
    }

    fn pending(&self, from: &Key) -> Scan {
        let high = keys::number(self.brokers().end);
        Scan::range(PENDING_BY_BROKER.row(), from.clone(), high).limit(ENTRIES_PER_STAGE)
    }

    fn see_brokers<A: Access>(&mut self, access: &mut A) -> Result<Option<Step>, Abort> {
        let mut rows = Vec::new();
        for broker in self.brokers() {
            rows.push((broker, self.layout().find::<BrokerTotals, A>(access, &keys::number(broker))?));
        }
        let accounts = self.customers().len() * ACCOUNTS_MAX as usize;
        self.seen = HomeSeen {
            first_broker: self.brokers().start,
            first_account: self.first_account(),
            accounts: vec![AccountSeen::default(); accounts],
            ..HomeSeen::default()
        };
        for (broker, row) in rows {
            self.seen.missing.expect(row.is_some(), || format!("broker {broker}"));
            self.seen.brokers.push(row.map_or_else(BrokerSeen::default, |row| BrokerSeen {
                trades: row.trades.get() as i64,
                commissions: row.commissions.get(),
                ..BrokerSeen::default()
            }));
        }
        Ok(Some(Step::Accounts { customer: self.customers().start }))
    }

    fn see_accounts<A: Access>(&mut self, customer: u32, access: &mut A) -> Result<Option<Step>, Abort> {
        let layout = self.layout();
        let mut rows = Vec::new();
        for account in self.accounts(customer) {
            let key = keys::number(account);
            let fixed = layout.find::<Account, A>(access, &key)?;
            let balance = layout.find::<AccountBalance, A>(access, &key)?;
            rows.push((account, fixed.zip(balance)));
        }
        for (account, row) in rows {
            self.seen.missing.expect(row.is_some(), || format!("account {account}"));
            let Some((fixed, balance)) = row else { continue };
            let Some(seen) = self.seen.account(account) else { continue };
            (seen.broker, seen.tax_status) = (Some(fixed.broker.get()), fixed.tax_status);
            seen.balance = balance.balance.get() - people::account(&self.parameters, account).balance;
        }
        let next = customer + CUSTOMERS_PER_STAGE;
        Ok(Some(match next < self.customers().end {
            true => Step::Accounts { customer: next },
            false => Step::Histories { from: Trade::new(self.home, 0) },
        }))
    }

    fn see_histories<A: Access>(&mut self, from: Trade, access: &mut A) -> Result<Option<Step>, Abort> {
        let (layout, scan, mut rows) = (self.layout(), self.histories(from), 0);
        let found = &mut self.found;
        found.clear();
        access.scan(&scan, |key, record| {
            let (trade, status) = (keys::first_trade(key), keys::status_of(key));
            let date = layout.view::<TradeHistory>(record).0.date.get();
            rows += 1;
            match found.last_mut().filter(|last| last.trade == trade) {
                Some(last) => last.then(status, date),
                None => found.push(Found::new(trade, status, date)),
            }
            ControlFlow::Continue(())
        })?;
        // The last one may have further rows. It is not the only one: a trade has few states.
        let high = match rows == HISTORIES_PER_STAGE {
            true => found.pop().map_or(self.end(), |last| last.trade),
            false => self.end(),
        };
        Ok(Some(Step::Trades { low: from, high }))
    }

    fn see_trades<A: Access>(
        &mut self,
        low: Trade,
        high: Trade,
        access: &mut A,
    ) -> Result<Option<Step>, Abort> {
        let (layout, mut parts, mut trades) = (self.layout(), Vec::new(), Vec::new());
        for &found in &self.found {
            trades.push(TradeRows::read(layout, found, access)?);
        }
        access.scan(&self.parts(low, high), |key, record| {
            let (row, _) = layout.view::<HoldingHistory>(record);
            let (before, after) = (row.before.get(), row.after.get());
            parts.push(Part { trade: keys::first_trade(key), lot: keys::second_trade(key), before, after });
            ControlFlow::Continue(())
        })?;
        let mut rest = &parts[..];
        for rows in trades {
            let trade = rows.found.trade;
            let stray = rest.partition_point(|part| part.trade < trade);
            self.seen.see_strays(&rest[..stray]);
            rest = &rest[stray..];
            let own = rest.partition_point(|part| part.trade == trade);
            self.seen.see_trade(&rows, &rest[..own]);
            rest = &rest[own..];
        }
        self.seen.see_strays(rest);
        Ok(Some(match high < self.end() {
            true => Step::Histories { from: high },
            false => Step::Lots { customer: self.customers().start },
        }))
    }

    fn see_lots<A: Access>(&mut self, customer: u32, access: &mut A) -> Result<Option<Step>, Abort> {
        let mut lots = Lots::default();
        lots.read(self.layout(), &self.lots(customer), access)?;
        lots.judge(&mut self.seen.summaries, &mut self.seen.signs);
        for (account, fingerprint) in lots.left {
            match self.seen.account(account) {
                Some(account) => account.lots.take(fingerprint),
                None => self.seen.missing.expect(false, || format!("account {account} of a lot")),
            }
        }
        self.held = lots.prices;
        Ok(Some(Step::Prices { customer }))
    }

    fn see_lot_prices<A: Access>(&mut self, customer: u32, access: &mut A) -> Result<Option<Step>, Abort> {
        let (layout, mut rows) = (self.layout(), Vec::new());
        for &(trade, price) in &self.held {
            let outcome = layout.find::<TradeOutcome, A>(access, &keys::trade(trade))?;
            rows.push((trade, price, outcome.map(|outcome| outcome.price.get())));
        }
        for (trade, price, traded) in rows {
            self.seen.amounts.expect(traded == Some(price), || {
                format!("H_PRICE of {:#x} is {price}, its trade says {traded:?}", trade.0)
            });
        }
        let next = customer + HOLDERS_PER_STAGE;
        Ok(Some(match next < self.customers().end {
            true => Step::Lots { customer: next },
            false => Step::ByAccount { from: keys::number(self.first_account()) },
        }))
    }

    fn see_by_account<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let keys = keys_of(&self.by_account(from), access)?;
        for key in &keys {
            let account = key.leading_int(4) as u32;
            let entry = fingerprint([keys::trade_by_account(key, self.home).0, keys::date_by_account(key)]);
            match self.seen.account(account) {
                Some(account) => account.by_account.take(entry),
                None => self.seen.missing.expect(false, || format!("account {account} of an index")),
            }
        }
        Ok(Some(match behind(keys.len(), ENTRIES_PER_STAGE, keys.last()) {
            Some(from) => Step::ByAccount { from },
            None => Step::ByLot { from: keys::trade(Trade::new(self.home, 0)) },
        }))
    }

    fn see_by_lot<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let keys = keys_of(&self.by_lot(from), access)?;
        for key in &keys {
            self.seen.by_lot.take(fingerprint([keys::first_trade(key).0, keys::second_trade(key).0]));
        }
        Ok(Some(match behind(keys.len(), ENTRIES_PER_STAGE, keys.last()) {
            Some(from) => Step::ByLot { from },
            None => Step::Pending { from: keys::number(self.brokers().start) },
        }))
    }

    fn see_pending<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let (layout, home) = (self.layout(), self.home);
        let (mut rows, mut last) = (Vec::new(), None);
        access.scan(&self.pending(from), |key, record| {
            let (row, _) = layout.view::<PendingOrder>(record);
            let (broker, sector) = (key.leading_int(4) as u32, key.leading_int(5) as u8);
            let (trade, bid) = (keys::trade_by_broker(key, home), row.bid.get().into());
            let (security, quantity) = (row.security.get(), row.quantity.get());
            rows.push((broker, pending(broker, sector, trade, security, quantity, bid)));
            last = Some(key.clone());
            ControlFlow::Continue(())
        })?;
        for &(broker, entry) in &rows {
            match self.seen.broker(broker) {
                Some(broker) => broker.pending.take(entry),
                None => self.seen.missing.expect(false, || format!("broker {broker} of an index")),
            }
        }
        Ok(behind(rows.len(), ENTRIES_PER_STAGE, last.as_ref()).map(|from| Step::Pending { from }))
    }

    pub(super) fn stage(&self, stage: usize) -> usize {
        usize::from(stage < self.steps.len())
    }

    pub(super) fn home(&self, _: Piece) -> Slot {
        self.parameters.scale.slot(self.home)
    }

    pub(super) fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout();
        match &self.steps[piece.stage] {
            Step::Brokers => {
                let column = layout.column::<BrokerTotals>();
                self.brokers().for_each(|broker| reads.get(column, keys::number(broker)));
            }
            &Step::Accounts { customer } => self.accounts(customer).for_each(|account| {
                declare!(layout, reads, keys::number(account), Account, AccountBalance);
            }),
            &Step::Histories { from } => reads.scan(self.histories(from)),
            &Step::Trades { low, high } => {
                self.found.iter().for_each(|found| TradeRows::declare(layout, found.trade, reads));
                reads.scan(self.parts(low, high));
            }
            &Step::Lots { customer } => self.lots(customer).into_iter().for_each(|scan| reads.scan(scan)),
            Step::Prices { .. } => {
                let column = layout.column::<TradeOutcome>();
                self.held.iter().for_each(|&(trade, _)| reads.get(column, keys::trade(trade)));
            }
            Step::ByAccount { from } => reads.scan(self.by_account(from)),
            Step::ByLot { from } => reads.scan(self.by_lot(from)),
            Step::Pending { from } => reads.scan(self.pending(from)),
        }
    }

    pub(super) fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let next = match self.steps[piece.stage].clone() {
            Step::Brokers => self.see_brokers(access),
            Step::Accounts { customer } => self.see_accounts(customer, access),
            Step::Histories { from } => self.see_histories(from, access),
            Step::Trades { low, high } => self.see_trades(low, high, access),
            Step::Lots { customer } => self.see_lots(customer, access),
            Step::Prices { customer } => self.see_lot_prices(customer, access),
            Step::ByAccount { from } => self.see_by_account(&from, access),
            Step::ByLot { from } => self.see_by_lot(&from, access),
            Step::Pending { from } => self.see_pending(&from, access),
        }?;
        self.steps.truncate(piece.stage + 1);
        self.steps.extend(next);
        Ok(())
    }
}

/// The keys of a range.
fn keys_of<A: Access>(scan: &Scan, access: &mut A) -> Result<Vec<Key>, Abort> {
    let mut keys = Vec::new();
    access.scan(scan, |key, _| {
        keys.push(key.clone());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}
