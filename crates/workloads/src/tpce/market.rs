//! The market of one client (the specification's market exchange emulator, clause 6.5): it answers
//! the client's orders and tells prices.
//!
//! An order at the market's price, and one that a Market-Feed of the client has triggered, is
//! answered after a second on average, at the price of that moment. An order with a limit waits
//! until the price is there; then the ticker says so, and the first feed of any client that tells
//! this price triggers the order. Of each answer the ticker gets two entries: the trade's own, and
//! a trigger, or if there is none one of any security. Twenty entries are a Market-Feed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_types::random::Rng;

use super::Tpce;
use super::numbers::Trade;
use super::reference::TradeType;

/// Entries of a Market-Feed.
pub const FEED: usize = 20;
/// The longest time that an order waits for its answer, in milliseconds; on average it is a second.
const WAIT_MAX_MS: u64 = 5000;
const WAIT_MEAN_MS: f64 = 1000.0;
/// What a trigger says was traded.
const TRIGGER_QUANTITY: i32 = 375;

/// An entry of the ticker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// The security.
    pub security: u32,
    /// Its price in cents.
    pub price: i64,
    /// How much was traded.
    pub quantity: i32,
}

/// An answer to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The trade.
    pub trade: Trade,
    /// At this price, in cents.
    pub price: i64,
}

/// An order that the market has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Order {
    pub(super) trade: Trade,
    pub(super) kind: TradeType,
    pub(super) security: u32,
    pub(super) limit: i64,
}

/// What is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// An order is answered.
    Answer(Order),
    /// A price is there that an order waits for.
    Trigger(Entry),
}

/// A market. Its times are milliseconds of market time since the load.
#[derive(Debug, Default)]
pub(super) struct Market {
    /// What is due, by time.
    due: BinaryHeap<Reverse<(u64, Due)>>,
    /// Prices that were reached and are to be told.
    triggers: VecDeque<Entry>,
    /// What is to be told; the first [`FEED`] are the next feed.
    ticker: VecDeque<Entry>,
    /// Entries that are left of a feed that has begun.
    telling: usize,
    /// Answers that were not heard: the Trade-Results were given up.
    unheard: VecDeque<Answer>,
    /// How many orders wait for their answer, and the largest number of them.
    open: usize,
    open_max: usize,
}

impl Market {
    /// An order at the market's price, or one whose limit was reached: it will be answered.
    pub(super) fn submit(&mut self, order: Order, now: u64, rng: &mut Rng) {
        // A uniform number between 0 and 1, but not 0.
        let uniform = (rng.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        let wait = (-uniform.ln() * WAIT_MEAN_MS) as u64;
        self.due.push(Reverse((now + wait.min(WAIT_MAX_MS), Due::Answer(order))));
        self.open += 1;
        self.open_max = self.open_max.max(self.open);
    }

    /// An order with a limit: it will be triggered.
    pub(super) fn wait(&mut self, tpce: &Tpce, order: Order, now: u64) {
        let (prices, position) = (tpce.prices(), tpce.scale().position(order.security));
        let at = prices.reaches(position, now, order.limit, order.kind.waits_for_a_fall());
        let price = if at == now { prices.at(position, now) } else { order.limit };
        let entry = Entry { security: order.security, price, quantity: TRIGGER_QUANTITY };
        self.due.push(Reverse((at, Due::Trigger(entry))));
    }

    /// An order was answered, and that was heard: the ticker tells it, and another price.
    pub(super) fn traded(&mut self, tpce: &Tpce, security: u32, quantity: i32, now: u64, rng: &mut Rng) {
        let price = |security| tpce.prices().at(tpce.scale().position(security), now);
        self.ticker.push_back(Entry { security, price: price(security), quantity });
        let other = self.triggers.pop_front().unwrap_or_else(|| {
            let security = tpce.scale().draw_security(rng);
            Entry { security, price: price(security), quantity: 325 + 100 * rng.below(2) as i32 }
        });
        self.ticker.push_back(other);
    }

    /// What is left of a feed that has begun.
    pub(super) fn told(&mut self) -> Option<Entry> {
        self.telling = self.telling.checked_sub(1)?;
        self.ticker.pop_front()
    }

    /// An entry that was to be told was not: its transaction was given up, and begins anew.
    pub(super) fn tell_again(&mut self, entry: Entry) {
        self.ticker.push_front(entry);
        self.telling += 1;
    }

    /// The same of an answer.
    pub(super) fn answer_again(&mut self, answer: Answer) {
        self.unheard.push_back(answer);
        self.open += 1;
    }

    /// The next answer that is due. Triggers that are due go to the others.
    pub(super) fn answer(&mut self, tpce: &Tpce, now: u64) -> Option<Answer> {
        if let Some(answer) = self.unheard.pop_front() {
            self.open -= 1;
            return Some(answer);
        }
        while let Some(&Reverse((at, due))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            match due {
                Due::Trigger(entry) => self.triggers.push_back(entry),
                Due::Answer(order) => {
                    self.open -= 1;
                    let price = tpce.prices().at(tpce.scale().position(order.security), at);
                    let price = order.kind.executed_at(order.limit, price);
                    return Some(Answer { trade: order.trade, price });
                }
            }
        }
        None
    }

    /// The first entry of a feed, if the ticker is full.
    pub(super) fn feed(&mut self) -> Option<Entry> {
        self.ticker.get(FEED - 1)?;
        self.telling = FEED;
        self.told()
    }

    /// Begins a feed of whatever is to be told, at the end of a run.
    #[cfg(test)]
    pub(super) fn flush(&mut self) -> Option<Entry> {
        self.ticker.extend(self.triggers.drain(..));
        self.telling = self.ticker.len();
        self.told()
    }

    /// When something is due next.
    #[cfg(test)]
    pub(super) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|&Reverse((at, _))| at)
    }

    /// The largest number of orders that have waited for their answers at a time.
    pub(super) fn open_max(&self) -> usize {
        self.open_max
    }
}
