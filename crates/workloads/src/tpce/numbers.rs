//! Who and what there is: customers, accounts, brokers, companies, securities, trades and dates, as
//! numbers.
//!
//! The specification's identifiers begin at large offsets; these numbers begin at 0. A *load unit*
//! is 1,000 customers (clause 2.6.1). A *home* is a run of customers in one slot, with their
//! accounts, trades and brokers: a whole load unit, or an even part of one. A company and its
//! securities are in one slot too, their *market place*.
//!
//! | number | bits | form |
//! |---|---|---|
//! | customer | 32 | 0.. |
//! | account | 32 | 10 · customer + 0..=9; a customer has 1 to 10 |
//! | broker | 32 | 0.., one for every 100 customers of a home |
//! | company | 24 | 8 · position |
//! | security | 24 | company + issue (0 common, 1 to 4 preferred) |
//! | trade | 56 | home (16), number in it (40): see [`Trade`] |
//! | date | 40 | milliseconds since Monday 2005-01-03, 9:00, nights included |
//! | day | 16 | days since Monday 2000-01-03 |
//!
//! A *thin* database has only some customers of each load unit, every m-th by the number from which
//! their tier follows; a customer that is drawn and is not there stands for the next one below in
//! its tier. Tiers, formulas and conditions stay as they are.

use plimsoll_types::random::Rng;
use plimsoll_types::{Partitioning, Slot};

/// Customers of a load unit.
pub const UNIT: u32 = 1000;
/// Brokers of a load unit.
pub const BROKERS_PER_UNIT: u32 = 10;
/// Account numbers of a customer.
pub const ACCOUNTS_MAX: u32 = 10;
/// Companies of a load unit that is not thin.
pub const COMPANIES_PER_UNIT: u32 = 500;
/// Numbers of a company: its own, which is that of its common stock, and preferred stocks.
pub const ISSUES_MAX: u32 = 8;
/// Trading seconds of a day.
pub const DAY_SECONDS: u64 = 8 * 3600;
/// Trades per load unit and day that are initiated: a hundredth more ([`is_skipped`]).
pub const INITIATED_PER_DAY: u64 = 58_176;
/// Customers per nominal transaction and second (clause 2.6.1.2).
pub const SCALE_FACTOR: u64 = 500;
/// Day number of the base date, 2005-01-03.
pub const BASE_DAY: u16 = 1827;
/// Weekdays of five years, from 2000-01-03 on.
pub const DAILY_MARKET_DAYS: u32 = 1305;
/// The specification's identifiers are these numbers plus one and this.
const ID_OFFSET: u64 = 4_300_000_000;
/// A day, with its night, in milliseconds.
pub const DAY_MS: u64 = 86_400_000;
/// The first trade number that the load does not use.
pub const FIRST_NEW_TRADE: u64 = 1 << 39;
/// Bits of the number that a client gives to its trades.
const SEQUENCE_BITS: u32 = 23;

/// How much there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Load units.
    pub units: u32,
    /// Customers that there are of each load unit: [`UNIT`], or fewer if it is thin. A divisor of
    /// [`UNIT`] and a multiple of 5.
    pub customers_per_unit: u32,
    /// Customer numbers of a home, a multiple of 100 and a divisor of [`UNIT`].
    pub home: u32,
    /// Initial days of trading.
    pub trade_days: u32,
    /// Weekdays of DAILY_MARKET.
    pub daily_market_days: u32,
}

impl Scale {
    /// Every this many-th customer of a load unit is there.
    fn step(self) -> u32 {
        UNIT / self.customers_per_unit
    }

    /// Whether load units have all their customers.
    pub fn is_whole(self) -> bool {
        self.customers_per_unit == UNIT
    }

    /// Number of customers.
    pub fn customers(self) -> u32 {
        self.units * self.customers_per_unit
    }

    /// Number of homes.
    pub fn homes(self) -> u32 {
        self.units * UNIT / self.home
    }

    /// Number of brokers of a home.
    pub fn brokers_per_home(self) -> u32 {
        self.home * BROKERS_PER_UNIT / UNIT
    }

    /// Number of brokers.
    pub fn brokers(self) -> u32 {
        self.units * BROKERS_PER_UNIT
    }

    /// The home of a customer.
    pub fn home_of(self, customer: u32) -> u32 {
        customer / self.home
    }

    /// The home of an account.
    pub fn home_of_account(self, account: u32) -> u32 {
        self.home_of(account / ACCOUNTS_MAX)
    }

    /// The home of a broker.
    pub fn home_of_broker(self, broker: u32) -> u32 {
        broker / self.brokers_per_home()
    }

    /// The slot of a home.
    pub fn slot(self, home: u32) -> Slot {
        Partitioning::modulo(home.into())
    }

    /// The slot of a security, a company and all that belongs to it.
    pub fn market_slot(self, security: u32) -> Slot {
        Partitioning::range(security.into(), ISSUES_MAX.into())
    }

    /// The customers of a home that there are.
    pub fn customers_of(self, home: u32) -> impl Iterator<Item = u32> {
        (home * self.home..(home + 1) * self.home).filter(move |&customer| self.exists(customer))
    }

    /// Whether a customer is there.
    pub fn exists(self, customer: u32) -> bool {
        tier_place(customer).is_multiple_of(self.step())
    }

    /// Draws a customer of a home: few of tier 1, many of tier 3 (the specification's non-uniform
    /// distribution).
    pub fn draw_customer(self, rng: &mut Rng, home: u32) -> u32 {
        let unit = home * self.home / UNIT;
        loop {
            let x = (rng.below(2_000_000) + 1) as f64 / 1000.0;
            let place = match x {
                _ if x <= 200.0 => (22_500.0 + 500.0 * x).sqrt() - 151.0,
                _ if x <= 1400.0 => (290_000.0 + 1000.0 * x).sqrt() - 501.0,
                _ => 149.0 + (500.0 * x - 277_500.0).sqrt(),
            };
            let place = place.ceil().clamp(0.0, f64::from(UNIT - 1)) as u32;
            let customer = customer_at(unit, place - place % self.step());
            // All customers of a unit are as likely in one of its homes as in another.
            if self.home_of(customer) == home {
                return customer;
            }
        }
    }

    /// Draws any home.
    pub fn draw_home(self, rng: &mut Rng) -> u32 {
        rng.below(self.homes().into()) as u32
    }

    /// Companies of a load unit: at least 15, so that there are 20 securities.
    fn companies_per_unit(self) -> u32 {
        (COMPANIES_PER_UNIT * self.customers_per_unit / UNIT).max(15)
    }

    /// Number of companies.
    pub fn companies(self) -> u32 {
        self.units * self.companies_per_unit()
    }

    /// Preferred stocks of a load unit, at most one of each company.
    fn preferred_per_unit(self) -> u32 {
        self.companies_per_unit() * 37 / 100
    }

    /// Number of securities.
    pub fn securities(self) -> u32 {
        self.units * (self.companies_per_unit() + self.preferred_per_unit())
    }

    /// The number of the company at a position.
    pub fn company(self, position: u32) -> u32 {
        position * ISSUES_MAX
    }

    /// The number of the preferred stock of a company, if it has one.
    pub fn preferred(self, company: u32) -> Option<u32> {
        let companies = self.companies_per_unit();
        let place = company / ISSUES_MAX % companies;
        let issue = match place * 100 / companies {
            0..20 => 1,
            20..30 => 2,
            30..35 => 3,
            _ => 4,
        };
        (place < self.preferred_per_unit()).then_some(company / ISSUES_MAX * ISSUES_MAX + issue)
    }

    /// The number of the security at a position: of a load unit the common stocks first.
    pub fn security(self, position: u32) -> u32 {
        let (companies, preferred) = (self.companies_per_unit(), self.preferred_per_unit());
        let (unit, place) = (position / (companies + preferred), position % (companies + preferred));
        match place.checked_sub(companies) {
            None => self.company(unit * companies + place),
            Some(place) => {
                let company = self.company(unit * companies + place);
                self.preferred(company).expect("the first companies of a unit have one")
            }
        }
    }

    /// The position of a security.
    pub fn position(self, security: u32) -> u32 {
        let (companies, preferred) = (self.companies_per_unit(), self.preferred_per_unit());
        let (company, issue) = (security / ISSUES_MAX, security % ISSUES_MAX);
        let (unit, place) = (company / companies, company % companies);
        unit * (companies + preferred) + place + if issue == 0 { 0 } else { companies }
    }

    /// Draws a security, each as likely as any other.
    pub fn draw_security(self, rng: &mut Rng) -> u32 {
        self.security(rng.below(self.securities().into()) as u32)
    }

    /// Initiated trades of a home, those that are skipped included: they have the numbers from 1
    /// on, and the last is not skipped.
    pub fn initiated(self) -> u64 {
        let of_unit = INITIATED_PER_DAY * u64::from(self.trade_days);
        let share = u64::from(self.home) * u64::from(self.customers_per_unit);
        let number = of_unit * share / u64::from(UNIT * UNIT);
        number - u64::from(is_skipped(number))
    }

    /// Completed trades of a home at load: all that are not skipped.
    pub fn trades(self) -> u64 {
        let initiated = self.initiated();
        initiated - (initiated + 50) / 101
    }

    /// The time between two initiated trades of a home, in microseconds of trading time.
    pub fn gap_us(self) -> f64 {
        (u64::from(self.trade_days) * DAY_SECONDS * 1_000_000) as f64 / self.initiated() as f64
    }

    /// The trade of the load that a draw from 1 on stands for: over all homes, each with its
    /// initiated trades. A number that was skipped stands for the next.
    pub fn initial_trade(self, draw: u64) -> Trade {
        let initiated = self.initiated();
        let (home, number) = ((draw - 1) / initiated % u64::from(self.homes()), (draw - 1) % initiated + 1);
        Trade::new(home as u32, number + u64::from(is_skipped(number)))
    }

    /// The date at which trading begins after the initial days.
    pub fn end_of_load(self) -> u64 {
        date_of(u64::from(self.trade_days) * DAY_SECONDS * 1000)
    }
}

/// Whether an initial trade number is left out: it stands for an order that was rolled back.
pub fn is_skipped(number: u64) -> bool {
    number % 101 == 51
}

/// The date of a moment of trading time, in milliseconds: days have eight hours, from 9:00 on, and
/// weeks five days.
pub fn date_of(trading_ms: u64) -> u64 {
    let (day, rest) = (trading_ms / (DAY_SECONDS * 1000), trading_ms % (DAY_SECONDS * 1000));
    (day / 5 * 7 + day % 5) * DAY_MS + rest
}

/// The moment of trading time at which a date is reached, in milliseconds: the inverse of
/// [`date_of`]. Nights and weekends belong to the day before.
pub fn trading_of(date: u64) -> u64 {
    let (day, rest) = (date / DAY_MS, date % DAY_MS);
    let trading_day_ms = DAY_SECONDS * 1000;
    match day % 7 {
        weekday @ 0..5 => (day / 7 * 5 + weekday) * trading_day_ms + rest.min(trading_day_ms),
        _ => (day / 7 * 5 + 5) * trading_day_ms,
    }
}

/// The day number of the n-th weekday from 2000-01-03 on.
pub fn weekday(number: u32) -> u16 {
    (number / 5 * 7 + number % 5) as u16
}

/// The number of the load unit, counted from the specification's first.
fn specified_unit(customer: u32) -> u64 {
    ID_OFFSET / u64::from(UNIT) + u64::from(customer / UNIT)
}

/// The place of a customer in its load unit from which its tier follows: `iperm` of the
/// specification's generator.
fn tier_place(customer: u32) -> u32 {
    let shift = 33 * (specified_unit(customer) + 1) % 1000;
    let place = u64::from(customer % UNIT) + 1000 - shift;
    (613 * place % 1000) as u32
}

/// The customer of a load unit at a place: `perm`, the inverse.
fn customer_at(unit: u32, place: u32) -> u32 {
    let shift = 33 * (specified_unit(unit * UNIT) + 1);
    unit * UNIT + ((677 * u64::from(place) + shift) % 1000) as u32
}

/// C_TIER, 1 to 3.
pub fn tier(customer: u32) -> u8 {
    match tier_place(customer) {
        0..200 => 1,
        200..800 => 2,
        _ => 3,
    }
}

/// Number of accounts of a customer.
pub fn accounts(customer: u32) -> u32 {
    let (place, unit) = (u64::from(tier_place(customer)), specified_unit(customer) + 1);
    let number = match place {
        0..200 => 1 + (3 * place + unit) % 200 % 4,
        200..800 => 2 + ((59 * place + 47 * unit) % 600 + 1) % 7,
        _ => 5 + ((23 * place + 17 * unit) % 200 + 2) % 6,
    };
    number as u32
}

/// The accounts of a customer.
pub fn accounts_of(customer: u32) -> std::ops::Range<u32> {
    let first = customer * ACCOUNTS_MAX;
    first..first + accounts(customer)
}

/// The least and the largest number of securities of an account's basket: by tier, and by the
/// number of accounts that the customer has.
pub fn basket_sizes(customer: u32) -> (u64, u64) {
    match (tier(customer), accounts(customer)) {
        (1, 1) => (6, 14),
        (1, 2) => (4, 16),
        (2, 2) => (7, 13),
        (2, 3) => (5, 15),
        (2, 4) | (3, 5 | 6) => (4, 16),
        (2, 5) | (3, 7 | 8) => (3, 17),
        _ => (2, 18),
    }
}

/// A trade: the home of its account (16 bits) and its number there (40 bits). Below
/// [`FIRST_NEW_TRADE`] numbers are those of the load, in the order in which trades were initiated,
/// from 1 on; above it they are a client (16 bits) and what that client counts (23 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Trade(pub u64);

impl Trade {
    /// The trade of a home with a number.
    pub fn new(home: u32, number: u64) -> Trade {
        Trade(u64::from(home) << 40 | number)
    }

    /// The largest number that a client counts for a trade.
    pub const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;

    /// The trade of a run that a client counts as number `sequence`, at most
    /// [`Trade::SEQUENCE_MAX`].
    pub fn of_client(home: u32, client: u16, sequence: u64) -> Trade {
        assert!(sequence <= Trade::SEQUENCE_MAX, "client {client} has a number for the trade");
        Trade::new(home, FIRST_NEW_TRADE | u64::from(client) << SEQUENCE_BITS | sequence)
    }

    /// Its home.
    pub fn home(self) -> u32 {
        (self.0 >> 40) as u32
    }

    /// Its number in its home.
    pub fn number(self) -> u64 {
        self.0 & ((1 << 40) - 1)
    }

    /// Whether it was made since the load.
    pub fn is_new(self) -> bool {
        self.number() >= FIRST_NEW_TRADE
    }

    /// The number that its client counted, if it was made since the load.
    pub fn sequence(self) -> Option<u64> {
        self.is_new().then_some(self.number() & Trade::SEQUENCE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(customers_per_unit: u32, home: u32) -> Scale {
        Scale { units: 3, customers_per_unit, home, trade_days: 5, daily_market_days: 30 }
    }

    #[test]
    fn a_load_unit_has_the_tiers_and_accounts_of_the_specification() {
        for unit in [0, 1, 7] {
            let mut accounts_of_tier = [0; 3];
            let mut customers_of_tier = [0; 3];
            for customer in unit * UNIT..(unit + 1) * UNIT {
                assert_eq!(customer_at(unit, tier_place(customer)), customer);
                let tier = usize::from(tier(customer)) - 1;
                customers_of_tier[tier] += 1;
                accounts_of_tier[tier] += accounts(customer);
                assert!((1..=ACCOUNTS_MAX).contains(&accounts(customer)));
            }
            assert_eq!((customers_of_tier, accounts_of_tier), ([200, 600, 200], [500, 3000, 1500]));
        }
    }

    #[test]
    fn thin_units_keep_the_tiers_and_every_home_its_part() {
        for (customers, home) in [(1000, 1000), (100, 1000), (20, 200), (10, 100), (5, 1000)] {
            let scale = scale(customers, home);
            for unit in 0..scale.units {
                let all: Vec<u32> = (unit * UNIT..(unit + 1) * UNIT).filter(|&c| scale.exists(c)).collect();
                let of_tier =
                    |wanted| all.iter().filter(|&&customer| tier(customer) == wanted).count() as u32;
                assert_eq!([1, 2, 3].map(of_tier), [1, 3, 1].map(|part| part * customers / 5));
            }
            for number in 0..scale.homes() {
                assert_eq!(scale.customers_of(number).count() as u32, customers * home / UNIT);
            }
        }
    }

    #[test]
    fn customers_are_drawn_from_their_home_and_the_shares_of_tiers_are_10_60_30() {
        let mut rng = Rng::new(1, 0);
        for scale in [scale(1000, 1000), scale(100, 200)] {
            let mut tiers = [0; 3];
            for _ in 0..60_000 {
                let home = scale.draw_home(&mut rng);
                let customer = scale.draw_customer(&mut rng, home);
                assert!(scale.exists(customer) && scale.home_of(customer) == home);
                tiers[usize::from(tier(customer)) - 1] += 1;
            }
            for (drawn, share) in tiers.into_iter().zip([0.1, 0.6, 0.3]) {
                assert!((f64::from(drawn) / 60_000.0 - share).abs() < 0.02, "{tiers:?}");
            }
        }
    }

    #[test]
    fn securities_have_positions_and_a_unit_has_685_of_them() {
        let whole = scale(1000, 1000);
        assert_eq!((whole.securities(), whole.companies()), (3 * 685, 1500));
        for scale in [whole, scale(20, 1000), scale(5, 1000)] {
            assert!(scale.securities() / scale.units >= 20);
            for position in 0..scale.securities() {
                let security = scale.security(position);
                assert_eq!(scale.position(security), position);
                assert_eq!(scale.market_slot(security), scale.market_slot(security / 8 * 8));
                assert!(security / ISSUES_MAX < scale.companies());
            }
        }
        let issues = |wanted| (0..685).filter(|&at| whole.security(at) % ISSUES_MAX == wanted).count();
        assert_eq!([0, 1, 2, 3, 4].map(issues), [500, 100, 50, 25, 10]);
    }

    #[test]
    fn trades_are_numbered_and_dated() {
        let whole = scale(1000, 200);
        assert_eq!((whole.initiated(), whole.trades()), (58_176, 57_600));
        let last = whole.initial_trade(whole.initiated() * u64::from(whole.homes()));
        assert_eq!((last.home(), last.number()), (whole.homes() - 1, whole.initiated()));
        assert_eq!(whole.initial_trade(51).number(), 52, "51 is skipped");
        let new = Trade::of_client(2, 65_535, 8_388_607);
        assert_eq!((new.home(), new.is_new(), new.sequence()), (2, true, Some(8_388_607)));
        assert!(new.number() < 1 << 40 && !last.is_new() && last.sequence().is_none());
        assert_eq!((date_of(0), date_of(28_800_000), date_of(5 * 28_800_000)), (0, DAY_MS, 7 * DAY_MS));
        assert_eq!((weekday(4), weekday(5)), (4, 7));
        for trading_ms in [0, 1, 28_799_999, 28_800_000, 144_000_000, 1_000_000_007] {
            assert_eq!(trading_of(date_of(trading_ms)), trading_ms);
        }
        assert_eq!(trading_of(28_900_000), 28_800_000, "night");
        assert!((scale(1000, 1000).gap_us() - 495_049.5).abs() < 1.0);
    }
}
