//! A client: a customer emulator with its deck of cards, and the market that answers its orders.
//!
//! A client does next what comes first of these: the entries of a Market-Feed that has begun; once
//! a minute, if it is client 0 or the first of a process without data that sees the minute begin,
//! Data-Maintenance; a Trade-Result that is due; a Market-Feed, if the ticker is full; and the next
//! card. So the market's transactions follow from orders: there is a
//! Trade-Result for each, and a Market-Feed for ten. What became of a transaction the client hears
//! once it has committed; one of the market's that was given up begins anew.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use plimsoll_types::random::Rng;
use plimsoll_types::{ShardId, Slot};

use super::market::{Answer, Entry, Market, Order};
use super::market_feed::MarketFeed;
use super::numbers::{Trade, accounts_of, date_of};
use super::trade_order::TradeOrder;
use super::trade_result::TradeResult;
use super::{MarketTime, Parameters, Shared, Tpce, Transaction};

/// A minute of market time, in microseconds.
const MINUTE_US: u64 = 60_000_000;

/// A transaction that a customer begins, in the order of [`super::DECK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Card {
    BrokerVolume,
    CustomerPosition,
    MarketWatch,
    SecurityDetail,
    TradeLookup,
    TradeOrder,
    TradeStatus,
    TradeUpdate,
}

impl Card {
    const ALL: [Card; 8] = [
        Card::BrokerVolume,
        Card::CustomerPosition,
        Card::MarketWatch,
        Card::SecurityDetail,
        Card::TradeLookup,
        Card::TradeOrder,
        Card::TradeStatus,
        Card::TradeUpdate,
    ];
}

/// What a client does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// A customer's transaction.
    Card(Card),
    /// A Trade-Result.
    Answer(Answer),
    /// A Market-Feed, one entry of it.
    Entry(Entry),
    /// Data-Maintenance, with how many were before.
    Maintenance(u64),
}

/// A deck of cards that is shuffled before each time through, or after each card.
#[derive(Debug)]
struct Deck {
    cards: Vec<Card>,
    /// Cards of this time through that were drawn.
    drawn: usize,
    /// Whether a card goes back at once.
    put_back: bool,
}

impl Deck {
    /// With these numbers of cards of each kind. A deck without cards becomes one with a card of
    /// each kind, because a client must have a next transaction.
    fn new(numbers: [u32; 8], put_back: bool) -> Deck {
        let numbers = if numbers == [0; 8] { [1; 8] } else { numbers };
        let all = Card::ALL.into_iter().zip(numbers);
        let cards: Vec<Card> =
            all.flat_map(|(card, number)| std::iter::repeat_n(card, number as usize)).collect();
        Deck { drawn: cards.len(), cards, put_back }
    }

    fn draw(&mut self, rng: &mut Rng) -> Card {
        if self.put_back || self.drawn == self.cards.len() {
            self.drawn = 0;
        }
        // A shuffle (Fisher and Yates), one step of it at a time.
        let any = self.drawn + rng.below((self.cards.len() - self.drawn) as u64) as usize;
        self.cards.swap(self.drawn, any);
        self.drawn += 1;
        self.cards[self.drawn - 1]
    }
}

/// A customer emulator with its market.
#[derive(Debug)]
pub struct Client {
    pub(super) rng: Rng,
    /// Its number, which its trades have.
    number: u16,
    /// How many trades it has numbered.
    sequence: u64,
    /// Homes on its shard; never empty.
    homes: Vec<u32>,
    local_pct: f64,
    deck: Deck,
    market: Market,
    /// By how much a committed Trade-Order advances market time, in microseconds.
    order_us: u64,
    /// Whether it may run Data-Maintenance.
    maintains: bool,
    pub(super) shared: Arc<Shared>,
}

impl Client {
    /// See [`Workload::client`](crate::Workload::client). A client whose own shard owns no home,
    /// because the data is in other processes, is at home where the home of its number is.
    pub(super) fn new(
        parameters: &Parameters,
        shared: Arc<Shared>,
        client: usize,
        shard: ShardId,
        owner: &dyn Fn(Slot) -> ShardId,
    ) -> Client {
        let (scale, number) = (parameters.scale, client as u16);
        let all = 0..scale.homes();
        let away = !all.clone().any(|home| owner(scale.slot(home)) == shard);
        let here = if away { owner(scale.slot(client as u32 % scale.homes())) } else { shard };
        shared.minute.fetch_max(shared.market_us.load(Relaxed) / MINUTE_US, Relaxed);
        Client {
            rng: Rng::new(!parameters.seed, client as u64),
            number,
            sequence: shared.first_sequence.load(Relaxed),
            homes: all.filter(|&home| owner(scale.slot(home)) == here).collect(),
            local_pct: parameters.local_pct,
            deck: Deck::new(parameters.deck, parameters.put_back),
            market: Market::default(),
            order_us: match parameters.market_time {
                MarketTime::Orders => order_us(parameters),
                MarketTime::Clock(_) => 0,
            },
            maintains: parameters.maintenance && (number == 0 || away),
            shared,
        }
    }

    /// Draws a home on its shard.
    pub(super) fn draw_own_home(&mut self) -> u32 {
        self.homes[self.rng.below(self.homes.len() as u64) as usize]
    }

    /// Draws a customer: of a home on its shard, or anywhere.
    pub(super) fn draw_customer(&mut self, tpce: &Tpce) -> u32 {
        let scale = tpce.scale();
        let home = match self.local_pct >= 100.0 || self.rng.pct(self.local_pct) {
            true => self.draw_own_home(),
            false => scale.draw_home(&mut self.rng),
        };
        scale.draw_customer(&mut self.rng, home)
    }

    /// Draws a customer and one of its accounts, each as likely as any other of the customer.
    pub(super) fn draw_account(&mut self, tpce: &Tpce) -> u32 {
        let accounts = accounts_of(self.draw_customer(tpce));
        accounts.start + self.rng.below(accounts.len() as u64) as u32
    }

    /// A number for a new trade of a home.
    pub(super) fn new_trade(&mut self, home: u32) -> Trade {
        self.sequence += 1;
        Trade::of_client(home, self.number, self.sequence)
    }

    /// The time since the load at the market, in milliseconds of trading.
    pub(super) fn market_ms(&self) -> u64 {
        self.shared.market_us.load(Relaxed) / 1000
    }

    /// The date at the market.
    pub(super) fn now(&self, tpce: &Tpce) -> u64 {
        date_of(tpce.prices().before_s * 1000 + self.market_ms())
    }

    /// What it does next.
    pub(super) fn turn(&mut self, tpce: &Tpce) -> Turn {
        if let Some(entry) = self.market.told() {
            return Turn::Entry(entry);
        }
        let minute = self.shared.market_us.load(Relaxed) / MINUTE_US;
        if self.maintains && self.shared.minute.fetch_max(minute, Relaxed) < minute {
            return Turn::Maintenance(self.shared.maintained.fetch_add(1, Relaxed));
        }
        let answer = self.market.answer(tpce, self.market_ms());
        if let Some(answer) = answer {
            self.shared.open.fetch_sub(1, Relaxed);
            return Turn::Answer(answer);
        }
        if let Some(entry) = self.market.feed() {
            return Turn::Entry(entry);
        }
        let card = self.deck.draw(&mut self.rng);
        if card == Card::TradeOrder && self.sequence >= Trade::SEQUENCE_MAX {
            // The run will end: until then the client only looks.
            self.shared.exhausted.store(true, Relaxed);
            return Turn::Card(Card::TradeStatus);
        }
        Turn::Card(card)
    }

    /// What it does next at the end of a run, when customers begin nothing any more and market time
    /// passes as it needs to, until the market has done what was ordered. `None`: it has.
    #[cfg(test)]
    pub(super) fn last_turn(&mut self, tpce: &Tpce) -> Option<Turn> {
        loop {
            if let Some(entry) = self.market.told() {
                return Some(Turn::Entry(entry));
            }
            if let Some(answer) = self.market.answer(tpce, self.market_ms()) {
                return Some(Turn::Answer(answer));
            }
            if let Some(entry) = self.market.flush() {
                return Some(Turn::Entry(entry));
            }
            self.shared.market_us.fetch_max(self.market.next_due()? * 1000, Relaxed);
        }
    }

    /// A Trade-Order has committed: market time passes, and the market has the order.
    pub(super) fn ordered(&mut self, tpce: &Tpce, order: &TradeOrder) {
        self.shared.market_us.fetch_add(self.order_us, Relaxed);
        let (kind, now) = (order.kind(), self.market_ms());
        let (trade, security, limit) = (order.trade(), order.security(), order.requested());
        let order = Order { trade, kind, security, limit };
        match kind.is_market() {
            true => self.submit(order, now),
            false => {
                self.shared.pending.fetch_add(1, Relaxed);
                self.market.wait(tpce, order, now);
            }
        }
    }

    /// The market will answer an order.
    fn submit(&mut self, order: Order, now: u64) {
        let open = self.shared.open.fetch_add(1, Relaxed) + 1;
        self.shared.open_max.fetch_max(open, Relaxed);
        self.market.submit(order, now, &mut self.rng);
    }

    /// A Trade-Result has committed: the ticker will tell it.
    pub(super) fn completed(&mut self, tpce: &Tpce, result: &TradeResult) {
        let now = self.market_ms();
        self.market.traded(tpce, result.security(), result.quantity(), now, &mut self.rng);
    }

    /// A Market-Feed has committed: the market has the orders that it has triggered.
    pub(super) fn fed(&mut self, feed: &MarketFeed) {
        let (now, security) = (self.market_ms(), feed.entry().security);
        for due in feed.triggered() {
            let order = Order { trade: due.trade, kind: due.kind, security, limit: due.limit };
            // Of another run, if its cleanup was forgotten.
            let _ = self.shared.pending.fetch_update(Relaxed, Relaxed, |pending| pending.checked_sub(1));
            self.submit(order, now);
        }
    }

    /// A transaction of the market was given up, not refused by its own logic: it begins anew.
    pub(super) fn again(&mut self, procedure: &Transaction) {
        match procedure {
            Transaction::TradeResult(result) if !result.is_late() => {
                self.shared.open.fetch_add(1, Relaxed);
                self.market.answer_again(Answer { trade: result.trade(), price: result.price() });
            }
            Transaction::MarketFeed(feed) => self.market.tell_again(feed.entry()),
            _ => {}
        }
    }

    /// The largest number of its orders that have waited for the market's answer at a time.
    pub fn outstanding_max(&self) -> usize {
        self.market.open_max()
    }
}

/// The time between two orders at the nominal rate of the whole database, in microseconds, for each
/// order of one of the processes that share the database.
fn order_us(parameters: &Parameters) -> u64 {
    let scale = parameters.scale;
    (scale.gap_us() / f64::from(scale.homes()) * f64::from(parameters.processes)).round() as u64
}

impl Tpce {
    /// Tells a client's clock, in nanoseconds, which makes market time pass if it goes with the
    /// clock.
    pub(super) fn tick(&self, now_ns: u64) {
        if let MarketTime::Clock(factor) = self.parameters.market_time {
            if self.shared.clock_first_ns.load(Relaxed) == 0 {
                let _ = self.shared.clock_first_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
            }
            let last_ns = self.shared.clock_ns.fetch_max(now_ns, Relaxed);
            if last_ns > 0 && last_ns < now_ns {
                // Differences of rounded times add up, however short they are; rounded differences
                // would lose what is below a microsecond.
                let first_ns = self.shared.clock_first_ns.load(Relaxed);
                let passed_us =
                    |until_ns: u64| (until_ns.saturating_sub(first_ns) as f64 * factor / 1000.0) as u64;
                let passed_us = passed_us(now_ns) - passed_us(last_ns);
                self.shared.market_us.fetch_add(passed_us, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DECK, PAPER_DECK};
    use super::*;

    #[test]
    fn a_deck_is_drawn_to_its_end_unless_cards_are_put_back() {
        let mut rng = Rng::new(1, 0);
        let mut draw = |deck: &mut Deck, times: usize| {
            let cards: Vec<Card> = (0..times).map(|_| deck.draw(&mut rng)).collect();
            Card::ALL.map(|card| cards.iter().filter(|&&drawn| drawn == card).count() as u32)
        };
        let mut deck = Deck::new(DECK, false);
        for _ in 0..2 {
            assert_eq!(draw(&mut deck, 890), DECK);
        }
        let (mut deck, times) = (Deck::new(PAPER_DECK, true), 8900);
        assert_ne!(draw(&mut deck, 89), PAPER_DECK, "by chance in one case of many thousands");
        for (drawn, share) in draw(&mut deck, times).into_iter().zip(PAPER_DECK) {
            // Five standard deviations of the most frequent card.
            assert!(drawn.abs_diff(100 * share) < 200, "{drawn} of {share} hundred");
        }
    }

    #[test]
    fn one_order_in_a_hundred_and_one_is_rolled_back_in_the_end() {
        let tpce = Tpce::new(Parameters::small(1));
        let shared = tpce.shared.clone();
        let mut client = Client::new(tpce.parameters(), shared, 0, ShardId(0), &|_| ShardId(0));
        let orders = 101 * 400;
        let rolled = (0..orders).filter(|_| TradeOrder::draw(&tpce, &mut client).rolls_back()).count();
        // Five standard deviations.
        assert!(rolled.abs_diff(400) < 100, "{rolled} of {orders}");
    }

    #[test]
    fn a_client_without_numbers_for_trades_orders_nothing_and_says_so() {
        let tpce = Tpce::new(Parameters::small(1));
        let shared = tpce.shared.clone();
        shared.first_sequence.store(Trade::SEQUENCE_MAX - 1, Relaxed);
        let mut client = Client::new(tpce.parameters(), shared, 0, ShardId(0), &|_| ShardId(0));
        let next_order =
            |client: &mut Client| (0..2000).any(|_| client.turn(&tpce) == Turn::Card(Card::TradeOrder));
        assert!(next_order(&mut client) && !tpce.shared.exhausted.load(Relaxed));
        assert_eq!(client.new_trade(0).sequence(), Some(Trade::SEQUENCE_MAX));
        assert!(!next_order(&mut client) && tpce.shared.exhausted.load(Relaxed));
    }
}
