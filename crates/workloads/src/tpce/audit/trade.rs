//! What the audit of a home makes of one trade: its history, its owner, what it has made of lots,
//! and what it has brought.

use plimsoll_txn::procedure::{Access, Reads};
use plimsoll_types::Abort;

use super::home::HomeSeen;
use super::lots::left_of;
use super::market::{Request, traded};
use super::{declare, fingerprint};
use crate::tpce::numbers::{ACCOUNTS_MAX, ISSUES_MAX, Trade, tier};
use crate::tpce::people::exchange;
use crate::tpce::reference::{
    CHARGES, Status, TradeType, commission, commission_rate, sector_of, settlement,
};
use crate::tpce::schema::*;

/// A trade, as its history says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) trade: Trade,
    /// A bit for each [`Status`] that it had.
    states: u8,
    /// Whether the dates of its states do not decrease.
    ordered: bool,
    /// Its last state, and since when.
    last: (u8, u64),
}

impl Found {
    /// A trade with its first state.
    pub(super) fn new(trade: Trade, status: u8, date: u64) -> Found {
        Found { trade, states: bit(status), ordered: true, last: (status, date) }
    }

    /// Its next state.
    pub(super) fn then(&mut self, status: u8, date: u64) {
        self.ordered &= self.last.1 <= date;
        self.states |= bit(status);
        self.last = (status, date);
    }
}

fn bit(status: u8) -> u8 {
    1 << status.min(7)
}

/// The rows of a trade.
pub(super) struct TradeRows {
    pub(super) found: Found,
    order: Option<TradeOrder>,
    state: Option<TradeState>,
    outcome: Option<TradeOutcome>,
    /// SE_AMT and CT_AMT.
    settled: Option<i64>,
    cash: Option<i64>,
    /// The sector of its security, if it is pending.
    sector: Option<u8>,
}

impl TradeRows {
    /// Declares what [`TradeRows::read`] reads.
    pub(super) fn declare(layout: Layout, trade: Trade, reads: &mut Reads) {
        declare!(layout, reads, keys::trade(trade), TradeOrder, TradeState, TradeOutcome);
        reads.get(layout.column::<Settlement>(), keys::trade(trade));
        reads.get(layout.column::<CashTransaction>(), keys::trade(trade));
    }

    pub(super) fn read<A: Access>(layout: Layout, found: Found, access: &mut A) -> Result<TradeRows, Abort> {
        let key = keys::trade(found.trade);
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

    /// The trade, if it has all its rows and a type.
    fn whole(&self) -> Option<Whole<'_>> {
        let (order, state, outcome) = (self.order?, self.state?, self.outcome?);
        Some(Whole {
            rows: self,
            trade: self.found.trade,
            kind: TradeType::of(order.kind)?,
            account: order.account.get(),
            security: order.security.get(),
            quantity: order.quantity.get(),
            date: state.date.get(),
            completed: state.status == Status::Completed as u8,
            order,
            state,
            outcome,
        })
    }
}

/// A row of HOLDING_HISTORY.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) trade: Trade,
    pub(super) lot: Trade,
    pub(super) before: i32,
    pub(super) after: i32,
}

impl Part {
    /// Whether it begins a lot with what is left of its trade, or makes a lot smaller.
    fn is_sound(self) -> bool {
        let Part { trade, lot, before, after } = self;
        let smaller = before.signum() * after.signum() >= 0 && after.unsigned_abs() < before.unsigned_abs();
        if trade == lot { before == 0 && after != 0 } else { smaller }
    }
}

/// A trade with all its rows.
struct Whole<'a> {
    rows: &'a TradeRows,
    trade: Trade,
    kind: TradeType,
    account: u32,
    security: u32,
    quantity: i32,
    /// T_DTS.
    date: u64,
    completed: bool,
    order: TradeOrder,
    state: TradeState,
    outcome: TradeOutcome,
}

/// The fingerprint of an entry of the index of pending orders by broker.
pub(super) fn pending(broker: u32, sector: u8, trade: Trade, security: u32, quantity: i32, bid: i64) -> u64 {
    fingerprint([broker.into(), sector.into(), trade.0, security.into(), quantity as u64, bid as u64])
}

impl HomeSeen {
    /// Counts rows of HOLDING_HISTORY of trades that have no history of their own.
    pub(super) fn see_strays(&mut self, parts: &[Part]) {
        for part in parts {
            self.by_lot.add(fingerprint([part.lot.0, part.trade.0]));
            let trade = part.trade.0;
            self.parts.expect(false, || format!("{trade:#x}, which is no trade, has changed a lot"));
        }
    }

    /// Judges and counts a trade and its rows of HOLDING_HISTORY.
    pub(super) fn see_trade(&mut self, rows: &TradeRows, parts: &[Part]) {
        let id = rows.found.trade.0;
        parts.iter().for_each(|part| self.by_lot.add(fingerprint([part.lot.0, id])));
        let Some(whole) = rows.whole() else {
            self.histories.expect(false, || format!("{id:#x} has a history but is no trade"));
            return;
        };
        self.trades.add(traded(whole.trade, whole.security, whole.date, whole.account));
        self.see_history(&whole);
        self.see_parts(&whole, parts);
        self.see_owner(&whole);
        self.see_money(&whole);
        self.see_costs(&whole, parts);
    }

    fn see_history(&mut self, whole: &Whole<'_>) {
        let (Found { states, ordered, last, .. }, id) = (whole.rows.found, whole.trade.0);
        let (is, since) = (whole.state.status, whole.date);
        let [pending, submitted, completed, cancelled] =
            [Status::Pending, Status::Submitted, Status::Completed, Status::Cancelled]
                .map(|status| bit(status as u8));
        let begun = if whole.kind.is_market() { submitted } else { pending | submitted };
        let possible = [begun, begun | completed, begun | cancelled].contains(&states)
            || (states == pending && !whole.kind.is_market());
        self.histories.expect(ordered && possible && last == (is, since), || {
            format!("{id:#x} has state {is} since {since}, the last of {states:#b} is {last:?}")
        });

        let counts = &mut self.counts;
        counts.trades += 1;
        counts.completed += i64::from(whole.completed);
        counts.cancelled += i64::from(is == Status::Cancelled as u8);
        if let Some(sequence) = whole.trade.sequence() {
            counts.last_sequence = counts.last_sequence.max(sequence);
            counts.last_date = counts.last_date.max(since);
            counts.limits_submitted += i64::from(!whole.kind.is_market() && states & submitted != 0);
        }
    }

    /// Judges what a trade has made of lots.
    fn see_parts(&mut self, whole: &Whole<'_>, parts: &[Part]) {
        let (completed, id) = (whole.completed, whole.trade.0);
        let change: i64 = parts.iter().map(|part| i64::from(part.after) - i64::from(part.before)).sum();
        let expected = match (completed, whole.kind.is_sell()) {
            (false, _) => 0,
            (true, true) => -i64::from(whole.quantity),
            (true, false) => i64::from(whole.quantity),
        };
        self.parts.expect(change == expected && (completed || parts.is_empty()), || {
            format!("{id:#x} has changed lots by {change}, not {expected}")
        });
        let mut lots = self.account(whole.account).map(|account| account.lots).unwrap_or_default();
        for &part in parts {
            let Part { lot, before, after, .. } = part;
            self.parts.expect(part.is_sound(), || {
                format!("{id:#x} has changed lot {:#x} from {before} to {after}", lot.0)
            });
            if after != 0 {
                lots.add(left_of(lot, whole.security, after));
            }
            if before != 0 {
                lots.take(left_of(lot, whole.security, before));
            }
        }
        if let Some(account) = self.account(whole.account) {
            account.lots = lots;
        }
    }

    /// Counts a trade for its account and for its broker.
    fn see_owner(&mut self, whole: &Whole<'_>) {
        let &Whole { trade, account, security, quantity, date, .. } = whole;
        let open = [Status::Pending as u8, Status::Submitted as u8].contains(&whole.state.status);
        let found = self.account(account).and_then(|seen| {
            seen.by_account.add(fingerprint([trade.0, date]));
            seen.open += u32::from(open);
            seen.broker
        });
        self.missing.expect(found.is_some(), || format!("account {account} of {:#x}", trade.0));
        let Some(broker) = found else { return };
        let bid = whole.order.bid.get().into();
        if whole.state.status == Status::Pending as u8 {
            let kind = whole.order.kind;
            let request = Request { trade, security, kind, bid, quantity, broker, account, date };
            self.requests.add(request.fingerprint());
        }
        let seen = self.broker(broker);
        let exists = seen.is_some();
        if let Some(seen) = seen {
            if whole.completed {
                seen.completed += 1;
                seen.earned += whole.outcome.commission.get();
            }
            if let Some(sector) = whole.rows.sector {
                seen.pending.add(pending(broker, sector, trade, security, quantity, bid));
            }
        }
        self.missing.expect(exists, || format!("broker {broker} of account {account}"));
    }

    /// Judges what a trade has brought or cost.
    fn see_money(&mut self, whole: &Whole<'_>) {
        let (settled, cash, is_cash) = (whole.rows.settled, whole.rows.cash, whole.order.cash != 0);
        let (completed, id) = (whole.completed, whole.trade.0);
        self.settlements.expect(
            settled.is_some() == completed
                && cash.is_some() == (completed && is_cash)
                && (settled == cash || settled.is_none() || cash.is_none()),
            || format!("{id:#x}, completed {completed}, cash {is_cash}: settled {settled:?}, cash {cash:?}"),
        );
        let (price, charge) = (whole.outcome.price.get().into(), whole.order.charge.get().into());
        let (commission, tax) = (whole.outcome.commission.get(), whole.outcome.tax.get());
        let is_new = whole.trade.is_new();
        if let Some(account) = self.account(whole.account) {
            let withheld = if account.tax_status == 1 { tax } else { 0 };
            account.balance -= if is_new { cash.unwrap_or(0) } else { 0 };
            let sell = whole.kind.is_sell();
            let amount = settlement(sell, whole.quantity, price, charge, commission, withheld);
            if let Some(settled) = settled {
                let verdict = &mut self.amounts;
                verdict.expect(settled == amount, || format!("{id:#x} has settled {settled}, not {amount}"));
            }
        }
        if is_new {
            self.counts.cash += cash.unwrap_or(0);
            self.counts.settled += settled.unwrap_or(0);
            self.counts.commissions += if completed { commission } else { 0 };
        }
    }
    /// Judges T_CHRG, T_COMM and T_TAX. The tax follows from the prices of lots that may be gone:
    /// what is judged is whether there may be one.
    fn see_costs(&mut self, whole: &Whole<'_>, parts: &[Part]) {
        let &Whole { ref order, ref outcome, account, kind, security, quantity, completed, .. } = whole;
        let (id, tier) = (whole.trade.0, tier(account / ACCOUNTS_MAX));
        let price = if completed { outcome.price.get() } else { order.bid.get() };
        let rate = commission_rate(exchange(security), tier, quantity);
        let due = (CHARGES[kind as usize][usize::from(tier) - 1], commission(quantity, price.into(), rate));
        let told = (i64::from(order.charge.get()), outcome.commission.get());
        self.amounts.expect(told == due, || format!("{id:#x} costs {told:?}, not {due:?}"));
        let taxed = self.account(account).is_some_and(|account| account.tax_status > 0);
        let closes = parts.iter().any(|part| part.before != 0);
        let tax = outcome.tax.get();
        self.amounts.expect(tax == 0 || (tax > 0 && taxed && closes), || {
            format!("{id:#x} is taxed {tax}: taxed account {taxed}, closes lots {closes}")
        });
    }
}
