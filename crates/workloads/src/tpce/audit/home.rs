//! The audit of a home.
//!
//! Brokers and accounts come first, whose sums what follows adds to. Trades come in the order of
//! their numbers: one stage reads the history of some, which says which there are, the next one
//! their rows and what they made of lots. Then lots and their sums account by account, and the
//! indexes of trades by account, of lots, and of pending orders.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Reads, Scan};
use plimsoll_types::{Abort, Key, Slot};

use super::market::{Request, traded};
use super::{Set, behind, declare, fingerprint};
use crate::tpce::Parameters;
use crate::tpce::conditions::Verdict;
use crate::tpce::numbers::{ACCOUNTS_MAX, ISSUES_MAX, Trade, accounts_of};
use crate::tpce::people;
use crate::tpce::reference::{Status, TradeType, sector_of, settlement};
use crate::tpce::schema::*;

/// A stage reads the accounts of so many customer numbers.
const CUSTOMERS_PER_STAGE: u32 = 100;
/// A stage reads the lots of the accounts of so many customer numbers.
const HOLDERS_PER_STAGE: u32 = 20;
/// A stage reads so many rows of TRADE_HISTORY, and the next one the trades whose rows these are.
const HISTORIES_PER_STAGE: usize = if cfg!(test) { 50 } else { 6000 };
/// A stage reads so many entries of an index.
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
    /// TRADE_BY_ACCOUNT from a key on.
    ByAccount { from: Key },
    /// HOLDING_HISTORY_BY_LOT from a key on.
    ByLot { from: Key },
    /// PENDING_BY_BROKER from a key on.
    Pending { from: Key },
}

/// A trade, as its history says.
#[derive(Clone, Copy, Debug)]
struct Found {
    trade: Trade,
    /// A bit for each [`Status`] that it had.
    states: u8,
    /// Whether the dates of its states do not decrease.
    ordered: bool,
    /// Its last state, and since when.
    last: (u8, u64),
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
    /// By position in the home.
    pub(in crate::tpce) brokers: Vec<BrokerSeen>,
    /// By position in the home, those that do not exist included.
    pub(in crate::tpce) accounts: Vec<AccountSeen>,
    /// HOLDING_HISTORY, less HOLDING_HISTORY_BY_LOT.
    pub(in crate::tpce) by_lot: Set,
    /// Pending trades, and all trades, as a market place would have them.
    pub(in crate::tpce) requests: Set,
    pub(in crate::tpce) trades: Set,
    pub(in crate::tpce) counts: Counts,
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
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tpce) struct AccountSeen {
    broker: Option<u32>,
    tax_status: u8,
    /// CA_BAL less what it was at load, less the cash of trades since.
    pub(in crate::tpce) balance: i64,
    /// Trades, less TRADE_BY_ACCOUNT.
    pub(in crate::tpce) by_account: Set,
    /// What trades have left of lots, less HOLDING.
    pub(in crate::tpce) lots: Set,
}

/// The rows of a trade.
struct TradeRows {
    found: Found,
    order: Option<TradeOrder>,
    state: Option<TradeState>,
    outcome: Option<TradeOutcome>,
    /// SE_AMT and CT_AMT.
    settled: Option<i64>,
    cash: Option<i64>,
    /// The sector of its security, if it is pending.
    sector: Option<u8>,
}

/// A row of HOLDING_HISTORY.
#[derive(Clone, Copy)]
struct Part {
    trade: Trade,
    lot: Trade,
    before: i32,
    after: i32,
}

impl Part {
    /// Whether it begins a lot with what is left of its trade, or makes a lot smaller.
    fn is_sound(self) -> bool {
        let Part { trade, lot, before, after } = self;
        match trade == lot {
            true => before == 0 && after != 0,
            false => {
                before != 0
                    && before.signum() * after.signum() >= 0
                    && after.unsigned_abs() < before.unsigned_abs()
            }
        }
    }
}

impl HomeAudit {
    pub(super) fn new(parameters: &Parameters, home: u32) -> HomeAudit {
        HomeAudit {
            parameters: parameters.clone(),
            home,
            steps: vec![Step::Brokers],
            found: Vec::new(),
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
        self.seen = HomeSeen { accounts: vec![AccountSeen::default(); accounts], ..HomeSeen::default() };
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
            let at = (account - self.first_account()) as usize;
            let seen = &mut self.seen.accounts[at];
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
            if found.last().is_none_or(|last| last.trade != trade) {
                found.push(Found { trade, states: 0, ordered: true, last: (status, date) });
            }
            let last = found.last_mut().expect("there is one now");
            last.ordered &= last.last.1 <= date;
            last.states |= 1 << status.min(7);
            last.last = (status, date);
            ControlFlow::Continue(())
        })?;
        // The last one may have further rows. It is not the only one: a trade has few states.
        let high = match rows == HISTORIES_PER_STAGE {
            true => found.pop().map_or(self.end(), |last| last.trade),
            false => self.end(),
        };
        Ok(Some(Step::Trades { low: from, high }))
    }

    /// Reads the rows of a trade.
    fn trade_rows<A: Access>(&self, found: Found, access: &mut A) -> Result<TradeRows, Abort> {
        let (layout, key) = (self.layout(), keys::trade(found.trade));
        let order = layout.find::<TradeOrder, A>(access, &key)?;
        let state = layout.find::<TradeState, A>(access, &key)?;
        let outcome = layout.find::<TradeOutcome, A>(access, &key)?;
        let settled = layout.find::<Settlement, A>(access, &key)?.map(|row| row.amount.get());
        let cash = layout.find::<CashTransaction, A>(access, &key)?.map(|row| row.amount.get());
        let mut sector = None;
        if let (Some(order), Some(state)) = (order, state)
            && state.status == Status::Pending as u8
        {
            let company = order.security.get() / ISSUES_MAX * ISSUES_MAX;
            let row = layout.find::<Company, A>(access, &keys::security(company))?;
            sector = row.map(|row| sector_of(row.industry));
        }
        Ok(TradeRows { found, order, state, outcome, settled, cash, sector })
    }

    fn see_trades<A: Access>(
        &mut self,
        low: Trade,
        high: Trade,
        access: &mut A,
    ) -> Result<Option<Step>, Abort> {
        let (layout, mut parts, mut trades) = (self.layout(), Vec::new(), Vec::new());
        for &found in &self.found {
            trades.push(self.trade_rows(found, access)?);
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
            self.see_strays(&rest[..stray]);
            rest = &rest[stray..];
            let own = rest.partition_point(|part| part.trade == trade);
            self.see_trade(&rows, &rest[..own]);
            rest = &rest[own..];
        }
        self.see_strays(rest);
        Ok(Some(match high < self.end() {
            true => Step::Histories { from: high },
            false => Step::Lots { customer: self.customers().start },
        }))
    }

    /// Counts rows of HOLDING_HISTORY of trades that have no history of their own.
    fn see_strays(&mut self, parts: &[Part]) {
        for part in parts {
            self.seen.by_lot.add(fingerprint([part.lot.0, part.trade.0]));
            let trade = part.trade.0;
            self.seen.parts.expect(false, || format!("{trade:#x}, which is no trade, has changed a lot"));
        }
    }

    /// Judges and counts a trade.
    fn see_trade(&mut self, rows: &TradeRows, parts: &[Part]) {
        let Found { trade, states, ordered, last } = rows.found;
        let first_account = self.first_account();
        let first_broker = self.brokers().start;
        let (seen, id) = (&mut self.seen, trade.0);
        parts.iter().for_each(|part| seen.by_lot.add(fingerprint([part.lot.0, id])));
        let (Some(order), Some(state), Some(outcome)) = (rows.order, rows.state, rows.outcome) else {
            seen.histories.expect(false, || format!("{id:#x} has a history but is no trade"));
            return;
        };
        let Some(kind) = TradeType::of(order.kind) else {
            seen.histories.expect(false, || format!("{id:#x} has no type"));
            return;
        };
        let (account, date, bid) = (order.account.get(), state.date.get(), i64::from(order.bid.get()));
        let (security, quantity) = (order.security.get(), order.quantity.get());
        let completed = state.status == Status::Completed as u8;
        seen.counts.trades += 1;
        seen.counts.completed += i64::from(completed);
        seen.counts.cancelled += i64::from(state.status == Status::Cancelled as u8);
        seen.trades.add(traded(trade, security, date, account));

        // Its history.
        let bit = |status: Status| 1 << status as u8;
        let (first, submitted) = match kind.is_market() {
            true => (0, bit(Status::Submitted)),
            false => (bit(Status::Pending), bit(Status::Pending) | bit(Status::Submitted)),
        };
        let possible =
            [submitted | bit(Status::Completed), submitted, first, submitted | bit(Status::Cancelled)];
        let (is, since) = (state.status, date);
        seen.histories.expect(ordered && possible.contains(&states) && last == (is, since), || {
            format!("{id:#x} has state {is} since {since}, the last of {states:#b} is {last:?}")
        });
        if trade.is_new() && !kind.is_market() {
            seen.counts.limits_submitted += i64::from(states & bit(Status::Submitted) != 0);
        }

        // Its account and broker.
        let known = account.checked_sub(first_account).and_then(|at| seen.accounts.get_mut(at as usize));
        let known = known.and_then(|account| Some((account.broker?, account)));
        seen.missing.expect(known.is_some(), || format!("account {account} of {id:#x}"));
        let Some((broker, of_account)) = known else { return };
        of_account.by_account.add(fingerprint([id, date]));
        let at = broker.checked_sub(first_broker).filter(|&at| (at as usize) < seen.brokers.len());
        seen.missing.expect(at.is_some(), || format!("broker {broker} of account {account}"));
        let Some(at) = at else { return };
        let of_broker = &mut seen.brokers[at as usize];
        if completed {
            of_broker.completed += 1;
            of_broker.earned += outcome.commission.get();
        }
        if let Some(sector) = rows.sector {
            of_broker.pending.add(pending(broker, sector, trade, security, quantity, bid));
        }
        if state.status == Status::Pending as u8 {
            let request = Request { trade, security, kind: order.kind, bid, quantity, broker, account, date };
            seen.requests.add(request.fingerprint());
        }

        // What it has made of lots.
        let change: i64 = parts.iter().map(|part| i64::from(part.after) - i64::from(part.before)).sum();
        let expected = match (completed, kind.is_sell()) {
            (false, _) => 0,
            (true, true) => -i64::from(quantity),
            (true, false) => i64::from(quantity),
        };
        seen.parts.expect(change == expected && (completed || parts.is_empty()), || {
            format!("{id:#x} has changed lots by {change}, not {expected}")
        });
        for &part in parts {
            let Part { lot, before, after, .. } = part;
            seen.parts.expect(part.is_sound(), || {
                format!("{id:#x} has changed lot {:#x} from {before} to {after}", lot.0)
            });
            if after != 0 {
                of_account.lots.add(left_of(lot, security, after));
            }
            if before != 0 {
                of_account.lots.take(left_of(lot, security, before));
            }
        }

        // What it has brought.
        let (settled, cash, is_cash) = (rows.settled, rows.cash, order.cash != 0);
        seen.settlements.expect(
            settled.is_some() == completed
                && cash.is_some() == (completed && is_cash)
                && cash.is_none_or(|cash| settled.is_none_or(|settled| settled == cash)),
            || {
                format!(
                    "{id:#x}, completed {completed}, cash {is_cash}: settled {settled:?}, {cash:?} in cash"
                )
            },
        );
        let (price, charge) = (outcome.price.get().into(), order.charge.get().into());
        let withheld = if of_account.tax_status == 1 { outcome.tax.get() } else { 0 };
        let amount = settlement(kind.is_sell(), quantity, price, charge, outcome.commission.get(), withheld);
        if let Some(settled) = settled {
            seen.amounts.expect(settled == amount, || format!("{id:#x} has settled {settled}, not {amount}"));
        }
        if trade.is_new() {
            of_account.balance -= cash.unwrap_or(0);
            seen.counts.cash += cash.unwrap_or(0);
            seen.counts.settled += settled.unwrap_or(0);
            seen.counts.commissions += if completed { outcome.commission.get() } else { 0 };
        }
    }

    fn see_lots<A: Access>(&mut self, customer: u32, access: &mut A) -> Result<Option<Step>, Abort> {
        let mut lots = Lots::default();
        lots.read(self.layout(), &self.lots(customer), access)?;
        lots.judge(&mut self.seen.summaries, &mut self.seen.signs);
        let first_account = self.first_account();
        for (account, fingerprint) in lots.left {
            let at = account.checked_sub(first_account);
            match at.and_then(|at| self.seen.accounts.get_mut(at as usize)) {
                Some(account) => account.lots.take(fingerprint),
                None => self.seen.missing.expect(false, || format!("account {account} of a lot")),
            }
        }
        let next = customer + HOLDERS_PER_STAGE;
        Ok(Some(match next < self.customers().end {
            true => Step::Lots { customer: next },
            false => Step::ByAccount { from: keys::number(first_account) },
        }))
    }

    fn see_by_account<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let keys = keys_of(&self.by_account(from), access)?;
        let first_account = self.first_account();
        for key in &keys {
            let account = key.leading_int(4) as u32;
            let entry = fingerprint([keys::trade_by_account(key, self.home).0, keys::date_by_account(key)]);
            let at = account.checked_sub(first_account);
            match at.and_then(|at| self.seen.accounts.get_mut(at as usize)) {
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
        let (layout, first_broker, home) = (self.layout(), self.brokers().start, self.home);
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
            let at = broker.checked_sub(first_broker);
            match at.and_then(|at| self.seen.brokers.get_mut(at as usize)) {
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
                for found in &self.found {
                    let key = || keys::trade(found.trade);
                    declare!(layout, reads, key(), TradeOrder, TradeState, TradeOutcome);
                    reads.get(layout.column::<Settlement>(), key());
                    reads.get(layout.column::<CashTransaction>(), key());
                }
                reads.scan(self.parts(low, high));
            }
            &Step::Lots { customer } => self.lots(customer).into_iter().for_each(|scan| reads.scan(scan)),
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
            Step::ByAccount { from } => self.see_by_account(&from, access),
            Step::ByLot { from } => self.see_by_lot(&from, access),
            Step::Pending { from } => self.see_pending(&from, access),
        }?;
        self.steps.truncate(piece.stage + 1);
        self.steps.extend(next);
        Ok(())
    }
}

/// The fingerprint of what is left of a lot.
fn left_of(lot: Trade, security: u32, quantity: i32) -> u64 {
    fingerprint([lot.0, security.into(), quantity as u64])
}

/// The fingerprint of an entry of the index of pending orders by broker.
fn pending(broker: u32, sector: u8, trade: Trade, security: u32, quantity: i32, bid: i64) -> u64 {
    fingerprint([broker.into(), sector.into(), trade.0, security.into(), quantity as u64, bid as u64])
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

/// The lots of some accounts, and their sums.
#[derive(Default)]
pub(super) struct Lots {
    by_security: BTreeMap<(u32, u32), LotsOfSecurity>,
    /// Account and fingerprint of each lot.
    left: Vec<(u32, u64)>,
}

#[derive(Default)]
struct LotsOfSecurity {
    sum: i64,
    /// HS_QTY.
    summary: Option<i64>,
    positive: bool,
    negative: bool,
    zero: bool,
}

impl Lots {
    /// Reads ranges of HOLDING and of HOLDING_SUMMARY.
    pub(super) fn read<A: Access>(
        &mut self,
        layout: Layout,
        [holdings, summaries]: &[Scan; 2],
        access: &mut A,
    ) -> Result<(), Abort> {
        let Lots { by_security, left } = self;
        access.scan(holdings, |key, record| {
            let (row, _) = layout.view::<Holding>(record);
            let (account, security) = (key.leading_int(4) as u32, keys::security_of(key));
            let (quantity, lots) = (row.quantity.get(), by_security.entry((account, security)).or_default());
            lots.sum += i64::from(quantity);
            lots.positive |= quantity > 0;
            lots.negative |= quantity < 0;
            lots.zero |= quantity == 0;
            left.push((account, left_of(Trade(row.trade.get()), security, quantity)));
            ControlFlow::Continue(())
        })?;
        access.scan(summaries, |key, record| {
            let (row, _) = layout.view::<HoldingSummary>(record);
            let at = (key.leading_int(4) as u32, keys::security_of(key));
            by_security.entry(at).or_default().summary = Some(row.quantity.get().into());
            ControlFlow::Continue(())
        })
    }

    /// Judges conditions 3 and 4.
    pub(super) fn judge(&self, summaries: &mut Verdict, signs: &mut Verdict) {
        for (&(account, security), lots) in &self.by_security {
            let &LotsOfSecurity { sum, summary, positive, negative, zero } = lots;
            let any = positive || negative || zero;
            summaries.expect(any && summary == Some(sum) && sum != 0, || {
                format!("account {account} has {sum} of security {security}, and says {summary:?}")
            });
            signs.expect(!zero && positive != negative || !any, || {
                format!("account {account} has lots of both signs or of 0 of security {security}")
            });
        }
    }
}
