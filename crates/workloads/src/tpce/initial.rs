//! The initial trades of a home (clause 2.6.3, and the specification's generator): the initial days
//! are played, so that the data is what a brokerage would have.
//!
//! Customers order trades at an even pace. A market order goes to the market at once, a limit order
//! once the price allows it. The market completes an order some seconds later. Orders are completed
//! in the order of these moments, and each changes the holdings of its account as Trade-Result
//! does. A home depends on no other, only on the number of all securities.
//!
//! The specification stops when as many trades have completed as one less than a hundredth of the
//! orders; here the same number of trades has the numbers of the load, so that a number that is
//! drawn exists. Orders that are open when the last day ends, a few hundred, are completed within
//! the quarter of an hour after it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::{Debug, Formatter};

use plimsoll_types::random::Rng;

use super::Parameters;
use super::numbers::{ACCOUNTS_MAX, DAY_SECONDS, Trade, accounts_of, date_of, is_skipped, tier};
use super::people::{self, AccountFacts, TRADE_STREAMS, exchange};
use super::prices::{HIGHEST, LOWEST, Prices};
use super::reference::{CHARGES, TradeType, commission, commission_rate, settlement, tax, tax_rate};

/// Maximum time that the market takes for an order, in milliseconds, without [`ANSWER_MS`].
const WAIT_MAX_MS: f64 = 5000.0;
/// Mean of that time.
const WAIT_MS: f64 = 1000.0;
/// Time until the answer of the market is there, in milliseconds.
const ANSWER_MS: u64 = 1000;

/// An order, by when it is completed. Times are milliseconds of trading since the base date.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    completed: u64,
    number: u64,
    ordered: u64,
    submitted: u64,
    /// The account, counted from the home's first.
    account: u32,
    /// Which of its securities.
    place: u32,
    kind: TradeType,
    quantity: i32,
    bid: i64,
    price: i64,
    cash: bool,
    lifo: bool,
}

/// A completed trade.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    pub(super) trade: Trade,
    pub(super) account: u32,
    pub(super) security: u32,
    pub(super) kind: TradeType,
    pub(super) quantity: i32,
    pub(super) bid: i64,
    pub(super) cash: bool,
    pub(super) lifo: bool,
    /// Dates when it was ordered, submitted and completed.
    pub(super) ordered: u64,
    pub(super) submitted: u64,
    pub(super) date: u64,
    pub(super) price: i64,
    pub(super) charge: i64,
    pub(super) commission: i64,
    pub(super) tax: i64,
    /// SE_AMT.
    pub(super) amount: i64,
}

/// What a trade has made of a lot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The trade that made the lot.
    pub(super) lot: Trade,
    pub(super) before: i32,
    pub(super) after: i32,
}

/// What is left of a trade.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lot {
    pub(super) trade: Trade,
    pub(super) date: u64,
    pub(super) price: i64,
    pub(super) quantity: i32,
}

/// What an account has of a security: lots by their dates.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) security: u32,
    /// The security's position among all.
    place: u32,
    pub(super) lots: VecDeque<Lot>,
}

/// An account of the home.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) facts: AccountFacts,
    tier: u8,
    /// The sum of the customer's tax rates.
    rates: u32,
    /// By security.
    pub(super) positions: Vec<Position>,
}

/// The initial days of a home.
pub(super) struct InitialDays<'a> {
    parameters: &'a Parameters,
    home: u32,
    first_account: u32,
    /// By account, counted from the first. Account numbers that no customer has are `None`.
    holders: Vec<Option<Holder>>,
    /// B_NUM_TRADES and B_COMM_TOTAL by broker of the home.
    pub(super) brokers: Vec<(u64, i64)>,
    prices: Prices,
    /// Trading time when the last day ends.
    end: u64,
    rng: Rng,
}

impl<'a> InitialDays<'a> {
    /// A home before the first day.
    pub(super) fn new(parameters: &'a Parameters, home: u32) -> InitialDays<'a> {
        let scale = parameters.scale;
        let first_account = home * scale.home * ACCOUNTS_MAX;
        let mut holders: Vec<_> = (0..scale.home * ACCOUNTS_MAX).map(|_| None).collect();
        for customer in scale.customers_of(home) {
            let rates = people::taxes(parameters, customer).map(tax_rate).iter().sum();
            for account in accounts_of(customer) {
                let facts = people::account(parameters, account);
                let mut securities = facts.basket.clone();
                securities.sort_unstable();
                let position =
                    |security| Position { security, place: scale.position(security), lots: VecDeque::new() };
                let positions = securities.into_iter().map(position).collect();
                let holder = Holder { facts, tier: tier(customer), rates, positions };
                holders[(account - first_account) as usize] = Some(holder);
            }
        }
        InitialDays {
            parameters,
            home,
            first_account,
            holders,
            brokers: vec![(0, 0); scale.brokers_per_home() as usize],
            prices: Prices { before_s: 0 },
            end: u64::from(scale.trade_days) * DAY_SECONDS * 1000,
            rng: Rng::new(parameters.seed, TRADE_STREAMS | u64::from(home)),
        }
    }

    /// Plays all days. `completed` is told each trade, and what it has made of which lots, in the
    /// order in which trades complete.
    pub(super) fn play(&mut self, mut completed: impl FnMut(&Completed, &[Change])) {
        let scale = self.parameters.scale;
        let mut open = BinaryHeap::new();
        let mut changes = Vec::new();
        for number in (1..=scale.initiated()).filter(|&number| !is_skipped(number)) {
            let gaps = (number - 1) as f64 + self.real();
            let now = ((gaps * scale.gap_us()) as u64 / 1000).min(self.end - 1);
            while let Some(order) = due(&mut open, now) {
                let trade = self.complete(order, &mut changes);
                completed(&trade, &changes);
            }
            open.push(Reverse(self.order(number, now)));
        }
        while let Some(order) = due(&mut open, u64::MAX) {
            let trade = self.complete(order, &mut changes);
            completed(&trade, &changes);
        }
    }

    /// The accounts of the home, ascending.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u32, &Holder)> {
        let all = (self.first_account..).zip(&self.holders);
        all.filter_map(|(account, holder)| Some((account, holder.as_ref()?)))
    }

    /// A customer orders.
    fn order(&mut self, number: u64, now: u64) -> Order {
        let customer = self.parameters.scale.draw_customer(&mut self.rng, self.home);
        let accounts = accounts_of(customer);
        let account = accounts.start + self.rng.below(accounts.len() as u64) as u32 - self.first_account;
        let holder = holder(&mut self.holders, account);
        let place = self.rng.below(holder.positions.len() as u64) as u32;
        let security = holder.positions[place as usize].place;
        let kind = match self.rng.below(10) {
            0..3 => TradeType::MarketBuy,
            3..6 => TradeType::MarketSell,
            6..8 => TradeType::LimitBuy,
            8 => TradeType::LimitSell,
            _ => TradeType::StopLoss,
        };
        let quantity = 100 << self.rng.below(4);
        let limit = self.rng.uniform(LOWEST as u64..=HIGHEST as u64) as i64;
        let lifo = self.rng.pct(35.0);
        let cash = kind.is_sell() || !self.rng.pct(16.0);
        let price = self.prices.at(security, now);
        let (bid, submitted) = match kind {
            _ if kind.is_market() => (price, now),
            _ if kind.is_triggered(limit, price) => (limit, now + self.rng.uniform(500..=1500)),
            _ => (limit, self.prices.reaches(security, now, limit, kind.waits_for_a_fall())),
        };
        let wait = (-WAIT_MS * (1.0 - self.real()).ln()).min(WAIT_MAX_MS) as u64;
        let price = self.prices.at(security, submitted + wait);
        let completed = submitted + wait + ANSWER_MS;
        Order {
            completed,
            number,
            ordered: now,
            submitted,
            account,
            place,
            kind,
            quantity,
            bid,
            price: kind.executed_at(bid, price),
            cash,
            lifo,
        }
    }

    /// An order is completed: what becomes of the lots of its account, and what it costs.
    fn complete(&mut self, order: Order, changes: &mut Vec<Change>) -> Completed {
        let trade = Trade::new(self.home, order.number);
        let Order { kind, quantity, price, .. } = order;
        let (ordered, submitted) = (self.date(order.ordered), self.date(order.submitted));
        let completed = self.date(order.completed);
        let holder = holder(&mut self.holders, order.account);
        let position = &mut holder.positions[order.place as usize];
        let security = position.security;

        let newest = position.lots.back().map_or(0, |lot| lot.date);
        let date = completed.max(newest + 1);
        let (buy, sell) = position.change(trade, date, &order, changes);
        let earned = match holder.facts.tax_status {
            0 => 0,
            _ => tax(buy, sell, holder.rates),
        };
        let rate = commission_rate(exchange(security), holder.tier, quantity);
        let commission = commission(quantity, price, rate);
        let charge = CHARGES[kind as usize][usize::from(holder.tier) - 1];
        let withheld = if holder.facts.tax_status == 1 { earned } else { 0 };

        let broker = holder.facts.broker as usize % self.brokers.len();
        let (trades, commissions) = &mut self.brokers[broker];
        (*trades, *commissions) = (*trades + 1, *commissions + commission);
        Completed {
            trade,
            account: self.first_account + order.account,
            security,
            kind,
            quantity,
            bid: order.bid,
            cash: order.cash,
            lifo: order.lifo,
            ordered,
            submitted,
            date,
            price,
            charge,
            commission,
            tax: earned,
            amount: settlement(kind.is_sell(), quantity, price, charge, commission, withheld),
        }
    }

    /// The date of a trading time. What happens after the last day happens that evening.
    fn date(&self, time: u64) -> u64 {
        match time.checked_sub(self.end) {
            None => date_of(time),
            Some(late) => date_of(self.end - 1) + 1 + late,
        }
    }

    /// A real number from 0 on, below 1.
    fn real(&mut self) -> f64 {
        (self.rng.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn holder(holders: &mut [Option<Holder>], account: u32) -> &mut Holder {
    holders[account as usize].as_mut().expect("an account that is drawn is there")
}

impl Position {
    /// A trade closes lots of the other direction, and what is left of it is a lot. What the closed
    /// lots were bought and sold for.
    fn change(&mut self, trade: Trade, date: u64, order: &Order, changes: &mut Vec<Change>) -> (i64, i64) {
        changes.clear();
        let sells = order.kind.is_sell();
        let sign = if sells { -1 } else { 1 };
        let (mut needed, mut then, mut now) = (order.quantity, 0, 0);
        while needed > 0 {
            let lot = if order.lifo { self.lots.back_mut() } else { self.lots.front_mut() };
            let Some(lot) = lot.filter(|lot| lot.quantity.signum() != sign) else { break };
            let part = needed.min(lot.quantity.abs());
            let before = lot.quantity;
            lot.quantity += sign * part;
            changes.push(Change { lot: lot.trade, before, after: lot.quantity });
            needed -= part;
            then += i64::from(part) * lot.price;
            now += i64::from(part) * order.price;
            if lot.quantity == 0 {
                let _closed = if order.lifo { self.lots.pop_back() } else { self.lots.pop_front() };
            }
        }
        if needed > 0 {
            let quantity = sign * needed;
            changes.push(Change { lot: trade, before: 0, after: quantity });
            self.lots.push_back(Lot { trade, date, price: order.price, quantity });
        }
        if sells { (then, now) } else { (now, then) }
    }
}

/// The next order to complete, if that is not after a time.
fn due(open: &mut BinaryHeap<Reverse<Order>>, time: u64) -> Option<Order> {
    open.peek().filter(|Reverse(order)| order.completed <= time)?;
    open.pop().map(|Reverse(order)| order)
}

/// The initial trades of all homes by security and date.
pub(super) struct BySecurity {
    entries: Vec<Entry>,
}

/// An initial trade in the index by security.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    security: u32,
    pub(super) date: u64,
    pub(super) trade: Trade,
    pub(super) account: u32,
}

impl BySecurity {
    /// Plays the initial days of all homes.
    pub(super) fn new(parameters: &Parameters) -> BySecurity {
        let scale = parameters.scale;
        let mut entries = Vec::with_capacity(scale.trades() as usize * scale.homes() as usize);
        for home in 0..scale.homes() {
            InitialDays::new(parameters, home).play(|trade, _| {
                let Completed { security, date, trade, account, .. } = *trade;
                entries.push(Entry { security, date, trade, account });
            });
        }
        entries.sort_unstable();
        BySecurity { entries }
    }

    /// What this many trades take in memory, in bytes, for as long as the workload is there.
    pub(super) fn bytes(trades: u64) -> u64 {
        trades * size_of::<Entry>() as u64
    }

    /// The trades of a security, by date.
    pub(super) fn of(&self, security: u32) -> &[Entry] {
        let start = self.entries.partition_point(|entry| entry.security < security);
        let end = self.entries.partition_point(|entry| entry.security <= security);
        &self.entries[start..end]
    }
}

impl Debug for BySecurity {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BySecurity").field("entries", &self.entries.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpce::numbers::Scale;

    /// The counts of a home, as the specification's rules give them.
    #[derive(Default)]
    struct Counts {
        trades: u64,
        limits: u64,
        cash: u64,
        changes: usize,
        lots: usize,
        positions: usize,
    }

    fn play(parameters: &Parameters, home: u32) -> Counts {
        let mut counts = Counts::default();
        let mut days = InitialDays::new(parameters, home);
        let (mut last, mut most) = (0, 0);
        days.play(|trade, changes| {
            counts.trades += 1;
            counts.limits += u64::from(!trade.kind.is_market());
            counts.cash += u64::from(trade.cash);
            counts.changes += changes.len();
            assert!(trade.ordered <= trade.submitted && trade.submitted < trade.date, "{trade:?}");
            assert!((LOWEST..=HIGHEST).contains(&trade.price) && trade.commission > 0, "{trade:?}");
            assert!(trade.date < parameters.scale.end_of_load(), "{trade:?} is over when the run begins");
            let sum: i32 = changes.iter().map(|change| change.after - change.before).sum();
            assert_eq!(sum, if trade.kind.is_sell() { -trade.quantity } else { trade.quantity });
            last = last.max(trade.date);
            most = most.max(changes.len());
        });
        let evening = date_of(days.end - 1);
        assert!((evening - 600_000..evening + 910_000).contains(&last) && most <= 9, "{last} {most}");
        for (_, holder) in days.holders() {
            for position in &holder.positions {
                counts.lots += position.lots.len();
                counts.positions += usize::from(!position.lots.is_empty());
                let sign = |lot: &Lot| lot.quantity.signum();
                let lots = position.lots.iter().zip(position.lots.iter().skip(1));
                assert!(position.lots.iter().all(|lot| lot.quantity != 0));
                assert!(lots.into_iter().all(|(one, next)| one.date < next.date && sign(one) == sign(next)));
            }
        }
        assert_eq!(days.brokers.iter().map(|broker| broker.0).sum::<u64>(), counts.trades);
        counts
    }

    fn near(measured: f64, expected: f64) {
        assert!((measured / expected - 1.0).abs() < 0.01, "{measured} instead of {expected}");
    }

    #[test]
    fn a_load_unit_has_as_much_of_everything_as_the_rules_give() {
        for (days, history, lots, positions) in [(1, 1.102, 39_600, 28_900), (5, 1.214, 111_000, 45_800)] {
            // Securities of five units, as the published numbers have.
            let mut parameters = Parameters::new(5);
            parameters.scale.trade_days = days;
            let counts = play(&parameters, 1);
            assert_eq!(counts.trades, 57_600 * u64::from(days));
            assert_eq!(counts.trades, parameters.scale.trades());
            let trades = counts.trades as f64;
            near(counts.changes as f64 / trades, history);
            near(counts.lots as f64, f64::from(lots));
            near(counts.positions as f64, f64::from(positions));
            near(2.0 + counts.limits as f64 / trades, 2.40);
            near(counts.cash as f64 / trades, 0.92);
        }
    }

    #[test]
    fn a_part_of_a_load_unit_has_its_part_of_the_trades() {
        for (customers_per_unit, home) in [(1000, 200), (1000, 100), (20, 1000), (20, 200), (40, 500)] {
            let mut parameters = Parameters::small(2);
            parameters.scale = Scale { customers_per_unit, home, ..parameters.scale };
            let scale = parameters.scale;
            for home in [0, scale.homes() - 1] {
                let counts = play(&parameters, home);
                assert_eq!(counts.trades, scale.trades());
                let expected = 57_600 * u64::from(scale.home) * u64::from(customers_per_unit) / 1_000_000;
                assert!(counts.trades.abs_diff(expected) <= 1, "{expected}");
            }
        }
    }

    #[test]
    fn trades_by_security_are_all_trades() {
        let parameters = Parameters::small(2);
        let (by_security, scale) = (BySecurity::new(&parameters), parameters.scale);
        let all = (0..scale.securities()).map(|position| by_security.of(scale.security(position)).len());
        assert_eq!(all.sum::<usize>() as u64, scale.trades() * u64::from(scale.homes()));
        assert!(by_security.of(scale.security(3)).is_sorted());
    }
}
