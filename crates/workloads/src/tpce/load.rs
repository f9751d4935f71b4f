//! The initial population (clause 2.6).
//!
//! Unit 0 is what is everywhere; unit 1 the names of taxes; then each company with its securities
//! is a unit, and each home. A unit draws from its own streams of random numbers, so units can be
//! loaded in any order, by any number of threads. What a home has of its trades comes from
//! [`InitialDays`]; the index of trades by security has those of all homes, which the first market
//! place that is loaded computes for all.
//!
//! Rows of ordered tables come in ascending order, but for the histories of trades, which come as
//! trades are completed, and so nearly.

use plimsoll_types::random::Rng;
use plimsoll_types::{Key, Partitioning, Slot, TableId};
use zerocopy::IntoBytes;

use super::Tpce;
use super::initial::{BySecurity, Change, Completed, InitialDays};
use super::numbers::*;
use super::people::*;
use super::prices::{HIGHEST, LOWEST};
use super::reference::*;
use super::schema::{self, *};
use crate::Sink;

/// Length of NI_ITEM, in bytes.
const NEWS_LENGTH: usize = 1000;
/// News of a company.
const NEWS: u32 = 2;
/// Competitors of a company.
const COMPETITORS: usize = 3;
/// Years and quarters of FINANCIAL.
const YEARS: std::ops::RangeInclusive<u16> = 2000..=2004;
const QUARTERS: std::ops::RangeInclusive<u8> = 1..=4;
/// CO_SP_RATE: either is what Data-Maintenance makes of the other.
const RATES: [&str; 2] = ["ABA", "AAA"];
/// The base date in milliseconds since 2000-01-01.
const BASE_MS: u64 = (BASE_DAY as u64 + 2) * DAY_MS + NINE_MS;
/// Nine o'clock.
const NINE_MS: u64 = 9 * 3_600_000;
/// The base date in days since 1900.
const BASE_DAY_1900: u64 = 38_353;
/// 2000-01-03 in days since 1800.
const FIRST_DAY_1800: u64 = 73_050;

/// What is loaded together.
#[derive(Clone, Copy)]
enum Unit {
    /// What is everywhere.
    Copies,
    TaxNames,
    Home(u32),
    /// A company, by its position.
    Company(u32),
}

impl Unit {
    fn new(scale: Scale, unit: usize) -> Unit {
        match (unit as u32, scale.companies()) {
            (0, _) => Unit::Copies,
            (1, _) => Unit::TaxNames,
            (unit, companies) if unit < 2 + companies => Unit::Company(unit - 2),
            (unit, companies) => Unit::Home(unit - 2 - companies),
        }
    }
}

/// How many units there are.
pub(super) fn units(scale: Scale) -> usize {
    (2 + scale.homes() + scale.companies()) as usize
}

/// Where a unit's rows are; `None`: everywhere.
pub(super) fn slot(scale: Scale, unit: usize) -> Option<Slot> {
    match Unit::new(scale, unit) {
        Unit::Copies => None,
        Unit::TaxNames => Some(Partitioning::range(0, 1 << 16)),
        Unit::Home(home) => Some(scale.slot(home)),
        Unit::Company(position) => Some(scale.market_slot(scale.company(position))),
    }
}

/// Produces the rows of a unit.
pub(super) fn load(tpce: &Tpce, unit: usize, sink: Sink<'_>) {
    let (scale, unit) = (tpce.scale(), Unit::new(tpce.scale(), unit));
    let stream = match unit {
        Unit::Copies | Unit::TaxNames => COPIES_STREAM,
        Unit::Home(home) => HOME_STREAMS | u64::from(home),
        Unit::Company(position) => COMPANY_STREAMS | u64::from(position),
    };
    let rng = Rng::new(tpce.parameters.seed, stream);
    let mut loader = Loader { tpce, scale, rng, sink, row: Vec::new() };
    match unit {
        Unit::Copies => loader.copies(),
        Unit::TaxNames => loader.tax_names(),
        Unit::Home(home) => loader.home(home),
        Unit::Company(position) => loader.market_place(scale.company(position)),
    }
}

struct Loader<'a> {
    tpce: &'a Tpce,
    scale: Scale,
    rng: Rng,
    sink: Sink<'a>,
    /// A row whose groups are not split.
    row: Vec<u8>,
}

/// What is everywhere.
impl Loader<'_> {
    fn copies(&mut self) {
        for position in 0..self.scale.securities() {
            self.security(self.scale.security(position));
        }
        for position in 0..self.scale.companies() {
            self.company(self.scale.company(position));
        }
        let companies = (0..self.scale.companies()).map(|position| self.scale.company(position));
        let mut by_industry: Vec<_> =
            companies.map(|company| keys::by_industry(industry(company), company)).collect();
        by_industry.sort_unstable();
        for key in by_industry {
            self.put(COMPANY_BY_INDUSTRY, key, &[&[]]);
        }
        for broker in 0..self.scale.brokers() {
            self.named(BROKER_BY_NAME, &broker_name(broker), broker);
        }
        self.types();
        self.rates();
        self.places();
    }

    fn security(&mut self, security: u32) {
        let rng = &mut self.rng;
        let high = rng.uniform(2500..=HIGHEST as u64);
        let low = rng.uniform(LOWEST as u64..=high);
        // Six in ten pay dividends.
        let (yields, of_yield) = (rng.uniform(1..=12_000), rng.uniform(20..=30));
        let yields = if rng.pct(60.0) { yields } else { 0 };
        let mut day = || (u64::from(BASE_DAY) - rng.below(365)) as u16;
        let row = Security {
            symbol: symbol(security),
            status: Status::Active as u8,
            name: security_name(security),
            exchange: exchange(security),
            high_date: day().into(),
            low_date: day().into(),
            outstanding: (rng.uniform(4_000_000..=9_500_000_000) as i64).into(),
            start_date: (rng.below(u64::from(BASE_DAY) - 365) as u16).into(),
            pe: (rng.uniform(100..=12_000) as i32).into(),
            high: (high as i32).into(),
            low: (low as i32).into(),
            dividend: ((yields * of_yield / 100) as i32).into(),
            yields: (yields as i32).into(),
        };
        self.put(SECURITY, keys::security(security), &[row.as_bytes()]);
    }

    fn company(&mut self, company: u32) {
        let name = company_name(company);
        // A person who is neither a customer nor another company's head.
        let head = person(FIRST_STRANGER << 2 | u64::from(company));
        let mut ceo = [0; 46];
        ceo.copy_from_slice(&full_name(&head.first, &head.last)[..46]);
        let mut row = Company {
            status: Status::Active as u8,
            name,
            industry: industry(company),
            ceo,
            description: [0; 150],
            opened: (self.rng.below(FIRST_DAY_1800) as u32).into(),
        };
        self.rng.astr(&mut row.description, 100..=150);
        self.put(COMPANY, keys::security(company), &[row.as_bytes()]);
        self.named(COMPANY_BY_NAME, &name, company);
    }

    /// An entry of an index by name.
    fn named(&mut self, table: TableId, name: &[u8], number: u32) {
        let row = Named { number: number.into() };
        self.put(table, keys::name(unpadded(name)), &[row.as_bytes()]);
    }

    /// States, types, sectors and industries.
    fn types(&mut self) {
        for (status, (id, name)) in (0..).zip(STATUSES) {
            let row = StatusType { id: padded(id), name: padded(name) };
            self.put(STATUS_TYPE, keys::small(status), &[row.as_bytes()]);
        }
        for (kind, (id, name)) in TradeType::ALL.into_iter().zip(TRADE_TYPES) {
            let row = TradeTypeRow {
                id: padded(id),
                name: padded(name),
                sell: kind.is_sell().into(),
                market: kind.is_market().into(),
            };
            self.put(TRADE_TYPE, keys::small(kind as u8), &[row.as_bytes()]);
        }
        for (sector, (id, name, _)) in (0..).zip(SECTORS) {
            let row = Sector { id: padded(id), name: padded(name) };
            self.put(SECTOR, keys::small(sector), &[row.as_bytes()]);
        }
        for number in 0..INDUSTRIES {
            let row = Industry {
                id: two_letters(number.into()),
                name: industry_name(number),
                sector: sector_of(number),
            };
            self.put(INDUSTRY, keys::small(number), &[row.as_bytes()]);
        }
    }

    /// Charges, commissions and taxes.
    fn rates(&mut self) {
        for kind in TradeType::ALL {
            for (tier, charge) in (1..).zip(CHARGES[kind as usize]) {
                let row = Charge { charge: (charge as i32).into() };
                self.put(CHARGE, keys::charge(kind as u8, tier), &[row.as_bytes()]);
            }
        }
        for (exchange, (_, _, class)) in (0..).zip(EXCHANGES) {
            for (tier, rates) in (1..).zip(COMMISSION_RATES[class]) {
                for ((from, to), rate) in BANDS.into_iter().zip(rates) {
                    let row = CommissionRate { to: to.into(), rate: rate.into() };
                    for kind in TradeType::ALL {
                        let key = keys::commission(tier, kind as u8, exchange, from);
                        self.put(COMMISSION_RATE, key, &[row.as_bytes()]);
                    }
                }
            }
        }
        for tax in 0..TAX_RATES {
            let row = TaxRate { id: tax_name(tax), rate: tax_rate(tax).into() };
            self.put(TAX_RATE, keys::tax(tax), &[row.as_bytes()]);
        }
    }

    /// Zip codes and exchanges.
    fn places(&mut self) {
        for zip in zips(&self.tpce.parameters) {
            let mut row = ZipCode { code: [0; 12], town: [0; 80], division: [0; 80] };
            let mut rest = zip;
            for digit in row.code[..5].iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            self.rng.astr(&mut row.town, 8..=30);
            row.division[..2].copy_from_slice(&two_letters(division_of(zip)));
            self.put(ZIP_CODE, keys::number(zip), &[row.as_bytes()]);
        }
        let mut symbols = [0; EXCHANGES.len()];
        for position in 0..self.scale.securities() {
            symbols[usize::from(exchange(self.scale.security(position)))] += 1;
        }
        for ((exchange, (id, name, _)), symbols) in (0..).zip(EXCHANGES).zip(symbols) {
            let row = Exchange {
                id: padded(id),
                name: padded(name),
                symbols: u32::into(symbols),
                open: 930.into(),
                close: 1600.into(),
            };
            let mut text = ExchangeText { description: [0; 150] };
            self.rng.astr(&mut text.description, 60..=100);
            self.put(EXCHANGE, keys::small(exchange), &[row.as_bytes(), text.as_bytes()]);
            let zip = draw_zip(&self.tpce.parameters, &mut self.rng);
            let address = self.address(zip, false);
            self.put(EXCHANGE_ADDRESS, keys::small(exchange), &[address.as_bytes()]);
        }
    }

    fn tax_names(&mut self) {
        for tax in 0..TAX_RATES {
            let id = tax_name(tax);
            let mut row = TaxName { name: padded("     Tax of a country") };
            if usize::from(tax) >= COUNTRY_RATES.len() {
                row.name = padded("     Tax of a division");
            }
            row.name[..3].copy_from_slice(&id[..3]);
            row.name[3] = b'.';
            self.put(TAX_NAME, keys::tax(tax), &[row.as_bytes()]);
        }
    }
}

/// Homes.
impl Loader<'_> {
    fn home(&mut self, home: u32) {
        let (scale, parameters) = (self.scale, &self.tpce.parameters);
        scale.customers_of(home).for_each(|customer| self.customer(customer));
        let mut days = InitialDays::new(parameters, home);
        let (mut by_account, mut by_lot) = (Vec::new(), Vec::new());
        days.play(|trade, changes| {
            by_account.push(keys::by_account(trade.account, trade.date, trade.trade));
            by_lot.extend(changes.iter().map(|change| (change.lot, trade.trade)));
            self.trade(trade, changes);
        });
        by_account.sort_unstable();
        for key in by_account {
            self.put(TRADE_BY_ACCOUNT, key, &[&[]]);
        }
        by_lot.sort_unstable();
        for (lot, trade) in by_lot {
            self.put(HOLDING_HISTORY_BY_LOT, keys::two_trades(lot, trade), &[&[]]);
        }
        for (account, holder) in days.holders() {
            self.account(account, &holder.facts);
            for position in &holder.positions {
                let security = position.security;
                for lot in &position.lots {
                    let row = Holding {
                        trade: lot.trade.0.into(),
                        price: (lot.price as i32).into(),
                        quantity: lot.quantity.into(),
                    };
                    self.put(HOLDING, keys::holding(account, security, lot.date), &[row.as_bytes()]);
                }
                let quantity: i32 = position.lots.iter().map(|lot| lot.quantity).sum();
                if quantity != 0 {
                    let row = HoldingSummary { quantity: quantity.into() };
                    let key = keys::with_security(account, security);
                    self.put(HOLDING_SUMMARY, key, &[row.as_bytes()]);
                }
            }
        }
        let first = home * scale.brokers_per_home();
        for (broker, &(trades, commissions)) in (first..).zip(&days.brokers) {
            let row = Broker { status: Status::Active as u8, name: broker_name(broker) };
            let totals = BrokerTotals { trades: trades.into(), commissions: commissions.into() };
            self.put(BROKER, keys::number(broker), &[row.as_bytes(), totals.as_bytes()]);
        }
    }

    fn customer(&mut self, customer: u32) {
        let parameters = &self.tpce.parameters;
        let (person, key) = (person(customer.into()), keys::number(customer));
        let phones = [25.0, 15.0, 5.0].map(|extended| self.phone(extended));
        let first = self.rng.below(DOMAINS.len() as u64) as usize;
        let second = (first + 1 + self.rng.below(DOMAINS.len() as u64 - 1) as usize) % DOMAINS.len();
        let row = Customer {
            tax_id: tax_text(person.tax_id),
            status: Status::Active as u8,
            last: person.last,
            first: person.first,
            middle: person.middle,
            gender: if person.female { b'F' } else { b'M' },
            tier: tier(customer),
            born: self.born().into(),
            phones,
            email_1: email(&person, DOMAINS[first]),
        };
        let mail = CustomerEmail { email_2: email(&person, DOMAINS[second]) };
        self.put(CUSTOMER, key.clone(), &[row.as_bytes(), mail.as_bytes()]);
        self.put(CUSTOMER_BY_TAX_ID, keys::tax_id(customer, person.tax_id), &[&[]]);
        let address = self.address(zip(parameters, customer), true);
        self.put(CUSTOMER_ADDRESS, key.clone(), &[address.as_bytes()]);
        for tax in taxes(parameters, customer) {
            self.put(CUSTOMER_TAXRATE, keys::taxrate(customer, tax), &[&[]]);
        }

        let (unit, place) = (customer / UNIT, customer % UNIT);
        let row = WatchList { id: (unit * UNIT + (631 * place + 97) % UNIT).into() };
        self.put(WATCH_LIST, key, &[row.as_bytes()]);
        let (least, most) = parameters.watch_sizes();
        let (count, mut watched) = (self.rng.uniform(least..=most), Vec::new());
        draw_securities(parameters, &mut self.rng, count, &mut watched);
        watched.sort_unstable();
        for security in watched {
            self.put(WATCH_ITEM, keys::with_security(customer, security), &[&[]]);
        }
    }

    fn account(&mut self, account: u32, facts: &AccountFacts) {
        let owner = u64::from(account / ACCOUNTS_MAX);
        let mut row = Account { broker: facts.broker.into(), name: [0; 50], tax_status: facts.tax_status };
        self.rng.astr(&mut row.name, 10..=40);
        let balance = AccountBalance { balance: facts.balance.into() };
        self.put(CUSTOMER_ACCOUNT, keys::number(account), &[row.as_bytes(), balance.as_bytes()]);
        let persons = [Some(owner), facts.others[0], facts.others[1]];
        for (id, acl) in persons.into_iter().zip([b"0000", b"0001", b"0011"]) {
            let Some(person) = id.map(person) else { continue };
            let row = Permission { acl: *acl, last: person.last, first: person.first };
            self.put(ACCOUNT_PERMISSION, keys::permission(account, person.tax_id), &[row.as_bytes()]);
        }
    }

    fn trade(&mut self, trade: &Completed, changes: &[Change]) {
        let key = keys::trade(trade.trade);
        let order = TradeOrder {
            kind: trade.kind as u8,
            cash: trade.cash.into(),
            lifo: trade.lifo.into(),
            security: trade.security.into(),
            quantity: trade.quantity.into(),
            bid: (trade.bid as i32).into(),
            account: trade.account.into(),
            charge: (trade.charge as i32).into(),
        };
        let state = TradeState { date: trade.date.into(), status: Status::Completed as u8 };
        let outcome = TradeOutcome {
            price: (trade.price as i32).into(),
            commission: trade.commission.into(),
            tax: trade.tax.into(),
        };
        let owner = person(u64::from(trade.account / ACCOUNTS_MAX));
        let executor = TradeExecutor { name: full_name(&owner.first, &owner.last) };
        let groups = [order.as_bytes(), state.as_bytes(), outcome.as_bytes(), executor.as_bytes()];
        self.put(TRADE, key.clone(), &groups);

        let pending = (!trade.kind.is_market()).then_some((Status::Pending, trade.ordered));
        let later = [(Status::Submitted, trade.submitted), (Status::Completed, trade.date)];
        for (status, date) in pending.into_iter().chain(later) {
            let row = schema::TradeHistory { date: date.into() };
            self.put(TRADE_HISTORY, keys::history(trade.trade, status as u8), &[row.as_bytes()]);
        }
        for change in changes {
            let row = HoldingHistory { before: change.before.into(), after: change.after.into() };
            self.put(HOLDING_HISTORY, keys::two_trades(trade.trade, change.lot), &[row.as_bytes()]);
        }

        // Settled at the midnight two days later.
        let due = ((trade.date + NINE_MS) / DAY_MS + 2) * DAY_MS - NINE_MS;
        let row = Settlement { due: due.into(), amount: trade.amount.into() };
        let cash_type = SettlementType { cash_type: padded(if trade.cash { CASH_ACCOUNT } else { MARGIN }) };
        self.put(SETTLEMENT, key.clone(), &[row.as_bytes(), cash_type.as_bytes()]);
        if trade.cash {
            let row = CashTransaction { date: trade.date.into(), amount: trade.amount.into() };
            let name = cash_text(trade.kind, trade.quantity, &security_name(trade.security));
            let text = CashTransactionName { name };
            self.put(CASH_TRANSACTION, key, &[row.as_bytes(), text.as_bytes()]);
        }
    }

    /// Country, area, local number and extension, if there is one.
    fn phone(&mut self, extended_pct: f64) -> [u8; 21] {
        let mut phone = [0; 21];
        phone[..3].copy_from_slice(b"011");
        // The local number has seven digits; there is room for ten.
        self.rng.nstr(&mut phone[3..13]);
        if self.rng.pct(extended_pct) {
            self.rng.nstr(&mut phone[16..19]);
        }
        phone
    }

    /// C_DOB, in days since 1900: all ages from 10 to 100.
    fn born(&mut self) -> u16 {
        const AGES: [(u64, u64, u64); 9] = [
            (5, 10, 19),
            (16, 19, 25),
            (17, 25, 35),
            (19, 35, 45),
            (16, 45, 55),
            (11, 55, 65),
            (8, 65, 75),
            (7, 75, 85),
            (1, 85, 100),
        ];
        let mut share = self.rng.below(100);
        for (of, from, to) in AGES {
            if share < of {
                let days = self.rng.uniform(from * 365..=to * 365 - 1);
                return (BASE_DAY_1900 - days) as u16;
            }
            share -= of;
        }
        unreachable!("the shares of ages are a hundred")
    }
}

/// Market places.
impl Loader<'_> {
    fn market_place(&mut self, company: u32) {
        for security in [Some(company), self.scale.preferred(company)].into_iter().flatten() {
            self.market(security);
        }
        self.financial(company);
        for item in 0..NEWS {
            self.news(company, item);
        }
        self.competitors(company);
        let zip = draw_zip(&self.tpce.parameters, &mut self.rng);
        let address = self.address(zip, false);
        self.put(COMPANY_ADDRESS, keys::security(company), &[address.as_bytes()]);
        let rate = padded(RATES[self.rng.below(2) as usize]);
        self.put(COMPANY_STATE, keys::security(company), &[CompanyState { rate }.as_bytes()]);
    }

    fn market(&mut self, security: u32) {
        let scale = self.scale;
        let price = self.tpce.prices().at(scale.position(security), 0) as i32;
        let row = LastTrade {
            date: scale.end_of_load().into(),
            price: price.into(),
            open: price.into(),
            volume: 0.into(),
        };
        self.put(LAST_TRADE, keys::security(security), &[row.as_bytes()]);
        let exchange_date = (self.rng.below(BASE_DAY.into()) as u16).into();
        let row = SecurityState { exchange_date };
        self.put(SECURITY_STATE, keys::security(security), &[row.as_bytes()]);
        for day in 0..scale.daily_market_days {
            let close = self.rng.uniform(LOWEST as u64..=HIGHEST as u64) as i32;
            let row = DailyMarket {
                close: close.into(),
                high: ((close * 105 + 50) / 100).into(),
                low: ((close * 92 + 50) / 100).into(),
                volume: (self.rng.uniform(1000..=10_000) as i64).into(),
            };
            self.put(DAILY_MARKET, keys::daily(security, weekday(day)), &[row.as_bytes()]);
        }
        let tpce = self.tpce;
        let by_security = tpce.shared.by_security.get_or_init(|| BySecurity::new(&tpce.parameters));
        for entry in by_security.of(security) {
            let row = TradeOfSecurity { account: entry.account.into() };
            let key = keys::by_security(security, entry.date, entry.trade);
            self.put(TRADE_BY_SECURITY, key, &[row.as_bytes()]);
        }
    }

    fn financial(&mut self, company: u32) {
        let rng = &mut self.rng;
        let mut revenue = rng.uniform(10_000_000_000..=1_600_000_000_000) as i64;
        let mut earnings = revenue * rng.uniform(1..=20) as i64 / 100;
        let mut inventory = rng.uniform(1_000_000_000..=200_000_000_000) as i64;
        let mut assets = rng.uniform(10_000_000_000..=5_000_000_000_000) as i64;
        let mut liability = rng.uniform(1_000_000_000..=500_000_000_000) as i64;
        let mut shares = rng.uniform(400_000..=9_500_000_000) as i64;
        let mut days: u16 = 0;
        for (year, quarter) in YEARS.flat_map(|year| QUARTERS.map(move |quarter| (year, quarter))) {
            let diluted = shares + shares / 10;
            let row = Financial {
                // Numbers of days begin two days after the first quarter.
                start: days.saturating_sub(2).into(),
                revenue: revenue.into(),
                earnings: earnings.into(),
                basic_eps: (earnings / shares).into(),
                diluted_eps: (earnings / diluted).into(),
                margin: (earnings * 100 / revenue).into(),
                inventory: inventory.into(),
                assets: assets.into(),
                liability: liability.into(),
                basic_shares: shares.into(),
                diluted_shares: diluted.into(),
            };
            self.put(FINANCIAL, keys::quarter(company, year, quarter), &[row.as_bytes()]);
            let leap = u16::from(year.is_multiple_of(4));
            days += [90 + leap, 91, 92, 92][usize::from(quarter) - 1];
            let rng = &mut self.rng;
            for figure in
                [&mut revenue, &mut earnings, &mut inventory, &mut assets, &mut liability, &mut shares]
            {
                *figure = *figure * rng.uniform(900..=1150) as i64 / 1000;
            }
        }
    }

    fn news(&mut self, company: u32, item: u32) {
        let mut body = [0; NEWS_LENGTH];
        self.rng.letters(&mut body);
        let before = self.rng.below(50 * DAY_MS);
        let mut row = NewsHead {
            headline: [0; 80],
            summary: [0; 255],
            date: (BASE_MS + self.scale.end_of_load() - before).into(),
            source: [0; 30],
            author: [0; 30],
        };
        row.headline.copy_from_slice(&body[..80]);
        row.summary.copy_from_slice(&body[..255]);
        self.rng.astr(&mut row.source, 10..=30);
        self.rng.astr(&mut row.author, 10..=30);
        self.put(NEWS_ITEM, keys::news(company, item), &[row.as_bytes(), &body]);
        self.put(NEWS_XREF, keys::news(company, item), &[&[]]);
    }

    fn competitors(&mut self, company: u32) {
        let mut others = Vec::new();
        while others.len() < COMPETITORS {
            let other = self.scale.company(self.rng.below(self.scale.companies().into()) as u32);
            if other != company && !others.contains(&other) {
                others.push(other);
            }
        }
        others.sort_unstable();
        for other in others {
            let key = keys::competitor(company, other, industry(other));
            self.put(COMPANY_COMPETITOR, key, &[&[]]);
        }
    }
}

impl Loader<'_> {
    /// Hands a row to the sink, its groups apart or together.
    fn put(&mut self, table: TableId, key: Key, groups: &[&[u8]]) {
        if self.tpce.parameters.split_columns || groups.len() == 1 {
            return (self.sink)(table, key, groups);
        }
        self.row.clear();
        for group in groups {
            self.row.extend_from_slice(group);
        }
        (self.sink)(table, key, &[&self.row]);
    }

    /// An address at a zip code. Four in ten of customers have a second line.
    fn address(&mut self, zip: u32, of_customer: bool) -> Address {
        let country = if division_of(zip) < FIRST_DIVISIONS { "USA" } else { "CANADA" };
        let mut address =
            Address { line_1: [0; 80], line_2: [0; 80], zip: zip.into(), country: padded(country) };
        self.rng.astr(&mut address.line_1, 15..=40);
        if of_customer && self.rng.pct(40.0) {
            let kind = if self.rng.pct(75.0) { "Apt. " } else { "Suite " };
            address.line_2 = padded(kind);
            self.rng.nstr(&mut address.line_2[kind.len()..kind.len() + 2]);
        }
        address
    }
}

/// A number below 676 in two letters.
fn two_letters(number: u16) -> [u8; 2] {
    [b'A' + (number / 26) as u8, b'A' + (number % 26) as u8]
}

/// TX_ID: letters of a country or of a division, and a digit.
fn tax_name(tax: u16) -> [u8; 4] {
    let countries = COUNTRY_RATES.len() as u16;
    let (letters, digit) = match tax.checked_sub(countries) {
        None if tax < FIRST_COUNTRY_RATES => (*b"US", tax),
        None => (*b"CN", tax - FIRST_COUNTRY_RATES),
        Some(_) => {
            let division = (0..FIRST_DIVISIONS + SECOND_DIVISIONS)
                .find(|&division| division_taxes(division).contains(&tax))
                .expect("a tax is a country's or a division's");
            (two_letters(division), tax - division_taxes(division).start)
        }
    };
    [letters[0], letters[1], b'1' + digit as u8, 0]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Database;
    use crate::tpce::Parameters;

    fn database(parameters: Parameters) -> Database {
        let (scale, tpce) = (parameters.scale, Tpce::new(parameters));
        let tables = tables(scale, tpce.parameters.split_columns);
        let units = (0..units(scale)).map(|unit| (unit, slot(scale, unit)));
        Database::fill(tables, units, |unit, sink| load(&tpce, unit, sink))
    }

    fn thin(customers_per_unit: u32, home: u32) -> Parameters {
        let mut parameters = Parameters::small(2);
        (parameters.scale.customers_per_unit, parameters.scale.home) = (customers_per_unit, home);
        parameters
    }

    /// All rows of a structure, by key.
    fn rows<C: Columns>(database: &Database, layout: Layout) -> BTreeMap<Key, C> {
        let rows = database.rows(layout.column::<C>());
        rows.map(|(key, record)| (key.clone(), *layout.view::<C>(record).0)).collect()
    }

    fn near(what: &str, measured: usize, expected: f64) {
        assert!((measured as f64 / expected - 1.0).abs() < 0.01, "{what}: {measured} instead of {expected}");
    }

    #[test]
    fn a_load_unit_has_as_many_rows_as_the_specification_says() {
        let mut parameters = Parameters::new(1);
        let scale = &mut parameters.scale;
        (scale.trade_days, scale.home) = (1, 200);
        let (database, days) = (database(parameters), DAILY_MARKET_DAYS as usize);
        let exact = [
            (CUSTOMER, 1000),
            (CUSTOMER_BY_TAX_ID, 1000),
            (CUSTOMER_ACCOUNT, 5000),
            (CUSTOMER_TAXRATE, 2000),
            (CUSTOMER_ADDRESS, 1000),
            (WATCH_LIST, 1000),
            (BROKER, 10),
            (TRADE, 57_600),
            (SETTLEMENT, 57_600),
            (TRADE_BY_ACCOUNT, 57_600),
            (PENDING_BY_BROKER, 0),
            (LAST_TRADE, 685),
            (TRADE_REQUEST, 0),
            (DAILY_MARKET, 685 * days),
            (TRADE_BY_SECURITY, 57_600),
            (FINANCIAL, 500 * 20),
            (NEWS_XREF, 1000),
            (NEWS_ITEM, 1000),
            (COMPANY_COMPETITOR, 1500),
            (COMPANY_ADDRESS, 500),
            (COMPANY_STATE, 500),
            (SECURITY_STATE, 685),
            (SECURITY, 685),
            (COMPANY, 500),
            (COMPANY_BY_NAME, 500),
            (COMPANY_BY_INDUSTRY, 500),
            (BROKER_BY_NAME, 10),
            (INDUSTRY, 102),
            (SECTOR, 12),
            (STATUS_TYPE, 5),
            (TRADE_TYPE, 5),
            (CHARGE, 15),
            (COMMISSION_RATE, 240),
            (TAX_RATE, 320),
            (ZIP_CODE, 14_741),
            (EXCHANGE_ADDRESS, 4),
            (EXCHANGE, 4),
            (TAX_NAME, 320),
        ];
        for (table, expected) in exact {
            assert_eq!(database.count(table.row()), expected, "{table:?}");
        }
        let count = |table: TableId| database.count(table.row());
        near("permissions", count(ACCOUNT_PERMISSION), 7100.0);
        near("watch items", count(WATCH_ITEM), 100_000.0);
        near("histories", count(TRADE_HISTORY), 2.4 * 57_600.0);
        near("cash transactions", count(CASH_TRANSACTION), 0.92 * 57_600.0);
        near("changes of lots", count(HOLDING_HISTORY), 1.102 * 57_600.0);
        assert_eq!(count(HOLDING_HISTORY), count(HOLDING_HISTORY_BY_LOT));
        near("lots", count(HOLDING), 39_600.0);
        near("holdings", count(HOLDING_SUMMARY), 28_900.0);
    }

    #[test]
    fn rows_are_in_the_slots_of_their_units_however_they_are_stored() {
        for (customers_per_unit, home, split) in [(20, 1000, true), (20, 200, false), (100, 200, true)] {
            let mut parameters = thin(customers_per_unit, home);
            parameters.split_columns = split;
            let (database, layout) = (database(parameters.clone()), parameters.layout());
            assert_eq!(database.count(CUSTOMER.row()) as u32, parameters.scale.customers());
            let states = rows::<TradeState>(&database, layout);
            let trades = parameters.scale.trades() * u64::from(parameters.scale.homes());
            assert_eq!(states.len() as u64, trades);
            assert!(states.values().all(|state| state.status == Status::Completed as u8));
            // What a client draws is there.
            for draw in 1..=parameters.scale.initiated() * u64::from(parameters.scale.homes()) {
                let trade = parameters.scale.initial_trade(draw);
                assert!(states.contains_key(&keys::trade(trade)), "{trade:?}");
            }
        }
    }

    /// The consistency conditions on what is loaded, by trades.
    #[test]
    fn trades_their_history_holdings_and_totals_agree() {
        let parameters = thin(100, 500);
        let (database, layout) = (database(parameters.clone()), parameters.layout());
        let orders = rows::<TradeOrder>(&database, layout);
        let states = rows::<TradeState>(&database, layout);
        let outcomes = rows::<TradeOutcome>(&database, layout);
        let accounts = rows::<Account>(&database, layout);
        let settlements = rows::<Settlement>(&database, layout);
        let cash = rows::<CashTransaction>(&database, layout);
        let histories = rows::<schema::TradeHistory>(&database, layout);
        let changes = rows::<HoldingHistory>(&database, layout);
        let mut totals: BTreeMap<Key, (u64, i64)> = BTreeMap::new();
        for (key, order) in &orders {
            let (kind, trade) = (TradeType::of(order.kind).expect("a type"), keys::first_trade(key));
            let (state, outcome) = (&states[key], &outcomes[key]);
            let account = &accounts[&keys::number(order.account.get())];
            assert_eq!(parameters.scale.home_of_broker(account.broker.get()), trade.home());
            let total = totals.entry(keys::number(account.broker.get())).or_default();
            *total = (total.0 + 1, total.1 + outcome.commission.get());

            let withheld = if account.tax_status == 1 { outcome.tax.get() } else { 0 };
            let (quantity, price) = (order.quantity.get(), i64::from(outcome.price.get()));
            let charge = i64::from(order.charge.get());
            let amount =
                settlement(kind.is_sell(), quantity, price, charge, outcome.commission.get(), withheld);
            assert_eq!(settlements[key].amount.get(), amount);
            assert_eq!(cash.get(key).map(|row| row.amount.get()), (order.cash == 1).then_some(amount));
            assert!(order.cash == 1 || !kind.is_sell());

            let dates = [Status::Pending, Status::Submitted, Status::Completed]
                .map(|status| histories.get(&keys::history(trade, status as u8)).map(|row| row.date.get()));
            assert_eq!(dates[0].is_some(), !kind.is_market());
            assert!(dates[1].is_some() && dates.is_sorted(), "{dates:?}");
            assert_eq!(dates[2], Some(state.date.get()));

            let (account, date) = (order.account.get(), state.date.get());
            let by_account = keys::by_account(account, date, trade);
            assert!(database.read(TRADE_BY_ACCOUNT.row(), &by_account).is_some());
            let by_security = keys::by_security(order.security.get(), date, trade);
            let entry = database.read(TRADE_BY_SECURITY.row(), &by_security).expect("it is in the index");
            assert_eq!(layout.view::<TradeOfSecurity>(entry).0.account.get(), account);
            let of_trade =
                changes.range(key.clone()..).take_while(|(key, _)| keys::first_trade(key) == trade);
            let change: i32 = of_trade.map(|(_, row)| row.after.get() - row.before.get()).sum();
            assert_eq!(change, if kind.is_sell() { -quantity } else { quantity });
        }
        assert!(!outcomes.values().all(|outcome| outcome.tax.get() == 0), "some trades are taxed");
        for (key, broker) in rows::<BrokerTotals>(&database, layout) {
            let (trades, commissions) = totals.get(&key).copied().unwrap_or_default();
            assert_eq!((broker.trades.get(), broker.commissions.get()), (trades, commissions));
        }
        let mut held: BTreeMap<Key, i32> = BTreeMap::new();
        for (key, lot) in rows::<Holding>(&database, layout) {
            let account = (key.head() >> 96) as u32;
            *held.entry(keys::with_security(account, keys::security_of(&key))).or_default() +=
                lot.quantity.get();
            assert_eq!(states[&keys::trade(Trade(lot.trade.get()))].date.get(), keys::date_of_holding(&key));
        }
        let summaries = rows::<HoldingSummary>(&database, layout);
        assert!(summaries.iter().map(|(key, row)| (key.clone(), row.quantity.get())).eq(held));
    }

    #[test]
    fn what_rows_name_is_there() {
        let parameters = thin(20, 1000);
        let (database, layout) = (database(parameters.clone()), parameters.layout());
        let there = |table: TableId, key: Key| assert!(database.read(table.row(), &key).is_some(), "{key:?}");
        for (key, _) in database.rows(WATCH_ITEM.row()) {
            there(SECURITY, keys::security(keys::security_of(key)));
        }
        for (key, _) in database.rows(CUSTOMER_TAXRATE.row()) {
            there(TAX_RATE, keys::tax(keys::tax_of(key)));
        }
        for (key, row) in database.rows(CUSTOMER_ADDRESS.row()).chain(database.rows(COMPANY_ADDRESS.row())) {
            let address = layout.view::<Address>(row).0;
            there(ZIP_CODE, keys::number(address.zip.get()));
            assert!(address.line_1[0] > 0, "{key:?}");
        }
        for (key, _) in database.rows(COMPANY_COMPETITOR.row()) {
            let (other, industry) = keys::competitor_of(key);
            there(COMPANY, keys::security(other));
            there(COMPANY_BY_INDUSTRY, keys::by_industry(industry, other));
        }
        let customer = parameters.scale.customers_of(1).next().expect("a home has customers");
        let person = person(customer.into());
        there(CUSTOMER_BY_TAX_ID, keys::tax_id(customer, person.tax_id));
        there(ACCOUNT_PERMISSION, keys::permission(customer * ACCOUNTS_MAX, person.tax_id));
        for (number, name) in rows::<TaxName>(&database, layout).values().enumerate() {
            assert_eq!(unpadded(&name.name)[3..9], *b". Tax ", "tax {number}");
        }
        for row in rows::<Customer>(&database, layout).values() {
            assert!(row.phones.iter().all(|phone| phone.starts_with(b"011") && phone[12] > 0));
        }
        let mut quarters: Vec<u16> = Vec::new();
        let first = keys::security(0)..keys::security(1);
        for (key, row) in rows::<Financial>(&database, layout) {
            if first.contains(&key) {
                quarters.push(row.start.get());
            }
        }
        // 2000-01-03, 2000-04-01, ..., 2004-10-01.
        assert_eq!((quarters.len(), quarters[0], quarters[1], quarters[19]), (20, 0, 89, 1733));
    }

    #[test]
    fn tiers_have_their_shares_of_the_trades() {
        let mut parameters = Parameters::new(1);
        parameters.scale.trade_days = 1;
        let mut counts = [0; 3];
        InitialDays::new(&parameters, 0).play(|trade, _| {
            counts[usize::from(tier(trade.account / ACCOUNTS_MAX)) - 1] += 1;
        });
        for (count, share) in counts.into_iter().zip([0.1, 0.6, 0.3]) {
            let measured = f64::from(count) / 57_600.0;
            assert!((measured - share).abs() < 0.01, "{counts:?}");
        }
    }
}
