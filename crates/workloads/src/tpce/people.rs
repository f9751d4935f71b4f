//! Names and other facts that follow from a number: of persons, accounts, brokers, companies and
//! securities.
//!
//! The loader writes them into rows, and clients, who have no database at hand, compute the same
//! from the number, as the specification's driver does (clause 4.6.1). Facts that are drawn have a
//! stream of random numbers of their own for each number, so that nothing depends on the order in
//! which they are asked for.
//!
//! Names are made of syllables of three letters, which is a way to write a number: different
//! numbers have different names.

use plimsoll_types::random::Rng;

use super::Parameters;
use super::numbers::{ACCOUNTS_MAX, ISSUES_MAX, basket_sizes};
use super::reference::{
    EXCHANGES, INDUSTRIES, SECTORS, TRADE_TYPES, TradeType, ZIP_CODES, country_taxes, division_of,
    division_taxes, sector_of,
};
use crate::rows::unpadded;

/// Streams of random numbers of a seed: units of loading have those below.
const ACCOUNT_STREAMS: u64 = 1 << 40;
/// The streams of customers' zip codes and taxes.
const ADDRESS_STREAMS: u64 = 2 << 40;
/// The first stream of what initial trades draw, by home.
pub(super) const TRADE_STREAMS: u64 = 3 << 40;
/// The first stream of what else a home draws while it is loaded.
pub(super) const HOME_STREAMS: u64 = 4 << 40;
/// The first stream of what a company draws while it is loaded.
pub(super) const COMPANY_STREAMS: u64 = 5 << 40;
/// The stream of the copies that are everywhere.
pub(super) const COPIES_STREAM: u64 = 6 << 40;
/// The seed of persons: their names do not depend on a database's seed.
const PERSONS_SEED: u64 = 0x0070_6572_736f_6e73;

/// The first id of persons who are no customers.
pub const FIRST_STRANGER: u64 = 1 << 32;
/// SE_CASH_TYPE of a trade for cash.
pub const CASH_ACCOUNT: &str = "Cash Account";
/// SE_CASH_TYPE of a trade on margin.
pub const MARGIN: &str = "Margin";

/// Tax numbers are below this: ten digits and four letters.
const TAX_IDS: u64 = 10_000_000_000 * 26 * 26 * 26 * 26;
/// Every this many-th zip code is in a thin database.
const ZIP_CODES_THIN: usize = 67;
/// A factor that has an inverse modulo [`TAX_IDS`], and that inverse.
const TAX_FACTOR: u64 = 2_718_281_828_459_047;
const TAX_INVERSE: u64 = 1_421_308_345_855_383;
/// The tax number of customer 0.
const TAX_FIRST: u64 = 314_159_265_358_979;

const MEN: [&str; 32] = [
    "Adam", "Albert", "Anton", "Arthur", "Bruno", "Carl", "David", "Edgar", "Emil", "Erik", "Felix", "Frank",
    "George", "Henry", "Hugo", "Isaac", "Jacob", "John", "Leo", "Louis", "Martin", "Max", "Nathan", "Oscar",
    "Otto", "Paul", "Peter", "Robert", "Samuel", "Simon", "Thomas", "Victor",
];
const WOMEN: [&str; 32] = [
    "Ada", "Agnes", "Alice", "Anna", "Berta", "Clara", "Diana", "Edith", "Ella", "Emma", "Eva", "Fanny",
    "Flora", "Grace", "Hanna", "Helen", "Ida", "Irene", "Jane", "Julia", "Laura", "Lena", "Louise", "Lucy",
    "Maria", "Martha", "Nora", "Olga", "Paula", "Rosa", "Sarah", "Vera",
];
const SYLLABLES: [&[u8; 3]; 16] = [
    b"ban", b"cor", b"del", b"fen", b"gar", b"hol", b"kin", b"lam", b"mar", b"nor", b"pel", b"ros", b"sal",
    b"tor", b"ver", b"win",
];
const BUSINESSES: [&str; 8] =
    ["Works", "Trading", "Holding", "Brothers", "Group", "Systems", "Partners", "Supply"];

/// A person: a customer, or a stranger who may trade for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Person {
    /// Last name.
    pub last: [u8; 25],
    /// First name.
    pub first: [u8; 20],
    /// Initial of the middle name.
    pub middle: u8,
    /// Whether C_GNDR is F.
    pub female: bool,
    /// Tax number, of no other person; see [`tax_text`].
    pub tax_id: u64,
}

/// The person with an id: a customer's is its number, others have ids from [`FIRST_STRANGER`] on.
pub fn person(id: u64) -> Person {
    let mut rng = Rng::new(PERSONS_SEED, id);
    let female = !rng.pct(49.0);
    let names = if female { &WOMEN } else { &MEN };
    let (mut first, mut last) = ([0; 20], [0; 25]);
    Text::new(&mut first).add(names[rng.below(names.len() as u64) as usize].as_bytes());
    Text::new(&mut last).add_name(rng.below(1 << 16) as u32);
    Person { last, first, middle: b'A' + rng.below(26) as u8, female, tax_id: tax_id(id) }
}

/// The tax number of the person with an id.
pub fn tax_id(id: u64) -> u64 {
    let product = u128::from(id) * u128::from(TAX_FACTOR) + u128::from(TAX_FIRST);
    (product % u128::from(TAX_IDS)) as u64
}

/// The id of the person with a tax number.
pub fn id_of_tax_id(tax_id: u64) -> u64 {
    let product = u128::from(tax_id % TAX_IDS + TAX_IDS - TAX_FIRST) * u128::from(TAX_INVERSE);
    (product % u128::from(TAX_IDS)) as u64
}

/// C_TAX_ID: three digits, two letters, four digits, two letters, three digits.
pub fn tax_text(tax_id: u64) -> [u8; 14] {
    let (mut text, mut rest) = (*b"000AA0000AA000", tax_id % TAX_IDS);
    for place in text.iter_mut().rev() {
        let base = if *place == b'0' { 10 } else { 26 };
        *place += (rest % base) as u8;
        rest /= base;
    }
    text
}

/// A person's name, as brokers and executors are called.
pub fn full_name(first: &[u8], last: &[u8]) -> [u8; 49] {
    let mut name = [0; 49];
    Text::new(&mut name).add(unpadded(first)).add(b" ").add(unpadded(last));
    name
}

/// Domains of e-mail addresses. Data-Maintenance takes a customer's second address from one of the
/// first two to the other.
pub const DOMAINS: [&str; 6] =
    ["@post.example", "@mail.example", "@home.example", "@town.example", "@work.example", "@bank.example"];

/// An e-mail address of a person: at most 50 characters.
pub fn email(person: &Person, domain: &str) -> [u8; 50] {
    let mut email = [0; 50];
    let last = unpadded(&person.last);
    Text::new(&mut email).add(&person.first[..1]).add(last).add(domain.as_bytes());
    email
}

/// What is drawn for an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountFacts {
    /// CA_B_ID.
    pub broker: u32,
    /// CA_TAX_ST.
    pub tax_status: u8,
    /// CA_BAL at load in cents.
    pub balance: i64,
    /// Ids of persons beside the owner who may trade; the first is there if the second is.
    pub others: [Option<u64>; 2],
    /// The securities it trades, by their numbers: no two are the same.
    pub basket: Vec<u32>,
}

/// The facts of an account.
pub fn account(parameters: &Parameters, account: u32) -> AccountFacts {
    let scale = parameters.scale;
    let mut rng = Rng::new(parameters.seed, ACCOUNT_STREAMS | u64::from(account));
    let brokers = scale.brokers_per_home();
    let broker = scale.home_of_account(account) * brokers + rng.below(brokers.into()) as u32;
    let tax_status = match rng.below(100) {
        0..20 => 0,
        20..70 => 1,
        _ => 2,
    };
    let sign = if rng.pct(80.0) { 1 } else { -1 };
    let balance = sign * rng.below(1_000_000_000) as i64;
    let others = match rng.below(100) {
        0..60 => 0,
        60..98 => 1,
        _ => 2,
    };
    let mut stranger = || FIRST_STRANGER + rng.below(1 << 32);
    let first = stranger();
    let mut second = stranger();
    while second == first {
        second = stranger();
    }
    let others = [(others > 0).then_some(first), (others > 1).then_some(second)];
    let (least, most) = basket_sizes(account / ACCOUNTS_MAX);
    let size = rng.uniform(least..=most);
    let mut basket = Vec::new();
    draw_securities(parameters, &mut rng, size, &mut basket);
    AccountFacts { broker, tax_status, balance, others, basket }
}

/// Draws `count` securities, no two the same, or as many as there are.
pub(super) fn draw_securities(parameters: &Parameters, rng: &mut Rng, count: u64, to: &mut Vec<u32>) {
    let count = count.min(parameters.scale.securities().into()) as usize;
    to.clear();
    while to.len() < count {
        let security = parameters.scale.draw_security(rng);
        if !to.contains(&security) {
            to.push(security);
        }
    }
}

/// The zip codes that there are, by their numbers: all, or some of each division if the database is
/// thin.
pub(super) fn zips(parameters: &Parameters) -> impl ExactSizeIterator<Item = u32> {
    let step = if parameters.scale.is_whole() { 1 } else { ZIP_CODES_THIN };
    (0..ZIP_CODES).step_by(step)
}

/// Draws one of them.
pub(super) fn draw_zip(parameters: &Parameters, rng: &mut Rng) -> u32 {
    let mut zips = zips(parameters);
    let place = rng.below(zips.len() as u64) as usize;
    zips.nth(place).expect("a place that is drawn is one of them")
}

/// The zip code of a customer, by its number.
pub fn zip(parameters: &Parameters, customer: u32) -> u32 {
    draw_zip(parameters, &mut address_rng(parameters, customer))
}

/// The taxes that a customer pays: of the country and of the division of its address.
pub fn taxes(parameters: &Parameters, customer: u32) -> [u16; 2] {
    let mut rng = address_rng(parameters, customer);
    let division = division_of(draw_zip(parameters, &mut rng));
    [country_taxes(division), division_taxes(division)]
        .map(|taxes| taxes.start + rng.below(taxes.len() as u64) as u16)
}

fn address_rng(parameters: &Parameters, customer: u32) -> Rng {
    Rng::new(parameters.seed, ADDRESS_STREAMS | u64::from(customer))
}

/// B_NAME, which no other broker has.
pub fn broker_name(broker: u32) -> [u8; 49] {
    let mut name = [0; 49];
    let first = if broker.is_multiple_of(2) { &WOMEN } else { &MEN };
    let first = first[broker as usize / 2 % first.len()];
    Text::new(&mut name).add(first.as_bytes()).add(b" ").add_name(broker / 64);
    name
}

/// CO_NAME, which no other company has.
pub fn company_name(company: u32) -> [u8; 60] {
    let mut name = [0; 60];
    let number = company / ISSUES_MAX;
    let business = BUSINESSES[number as usize % BUSINESSES.len()];
    Text::new(&mut name).add_name(number).add(b" ").add(business.as_bytes());
    name
}

/// S_SYMB: five letters for the company, and for a preferred stock PR with a letter.
pub fn symbol(security: u32) -> [u8; 15] {
    let mut symbol = [0; 15];
    let mut rest = security / ISSUES_MAX;
    for letter in symbol[..5].iter_mut().rev() {
        *letter = b'A' + (rest % 26) as u8;
        rest /= 26;
    }
    let issue = security % ISSUES_MAX;
    if issue > 0 {
        symbol[5..8].copy_from_slice(&[b'P', b'R', b'A' + issue as u8 - 1]);
    }
    symbol
}

/// The number of the security with a symbol, padded or not.
pub fn security_of_symbol(symbol: &[u8]) -> Option<u32> {
    let (company, issue) = unpadded(symbol).split_at_checked(5)?;
    let company = company.iter().try_fold(0, |number, letter| match letter {
        b'A'..=b'Z' => Some(number * 26 + u32::from(letter - b'A')),
        _ => None,
    })?;
    let issue = match issue {
        [] => 0,
        [b'P', b'R', letter @ b'A'..=b'G'] => u32::from(letter - b'A') + 1,
        _ => return None,
    };
    // Numbers of securities have 24 bits.
    (company < 1 << 21).then_some(company * ISSUES_MAX + issue)
}

/// IN_NAME, which no other industry has: that of its sector and a letter.
pub fn industry_name(industry: u8) -> [u8; 50] {
    let sector = sector_of(industry);
    let place = (0..industry).rev().take_while(|&before| sector_of(before) == sector).count() as u8;
    let mut name = [0; 50];
    let sector = SECTORS[usize::from(sector)].1;
    Text::new(&mut name).add(sector.as_bytes()).add(b" ").add(&[b'A' + place]);
    name
}

/// S_NAME.
pub fn security_name(security: u32) -> [u8; 70] {
    const ISSUES: [&str; ISSUES_MAX as usize] =
        ["COMMON", "PREF_A", "PREF_B", "PREF_C", "PREF_D", "PREF_E", "PREF_F", "PREF_G"];
    let mut name = [0; 70];
    let issue = ISSUES[(security % ISSUES_MAX) as usize].as_bytes();
    Text::new(&mut name).add(issue).add(b" of ").add(unpadded(&company_name(security)));
    name
}

/// S_EX_ID, as the number of the exchange: each has as many securities as any other.
pub fn exchange(security: u32) -> u8 {
    ((security / ISSUES_MAX + security % ISSUES_MAX) % EXCHANGES.len() as u32) as u8
}

/// CO_IN_ID, as the number of the industry: each has as many companies as any other.
pub fn industry(company: u32) -> u8 {
    (company / ISSUES_MAX * 37 % u32::from(INDUSTRIES)) as u8
}

/// CT_NAME: what was traded for cash.
pub fn cash_text(kind: TradeType, quantity: i32, security_name: &[u8]) -> [u8; 100] {
    let mut digits = [0; 10];
    let (mut at, mut rest) = (digits.len(), quantity.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut text = [0; 100];
    let kind = TRADE_TYPES[kind as usize].1.as_bytes();
    let name = unpadded(security_name);
    Text::new(&mut text).add(kind).add(b" ").add(&digits[at..]).add(b" shares of ").add(name);
    text
}

/// A text that is written into a field from its start; what does not fit is cut.
struct Text<'a> {
    left: &'a mut [u8],
}

impl<'a> Text<'a> {
    fn new(field: &'a mut [u8]) -> Text<'a> {
        Text { left: field }
    }

    #[inline]
    fn add(self, text: &[u8]) -> Text<'a> {
        let length = text.len().min(self.left.len());
        let (field, left) = self.left.split_at_mut(length);
        field.copy_from_slice(&text[..length]);
        Text { left }
    }

    /// A number in syllables, at least two, the first with a capital: at most 24 letters.
    fn add_name(mut self, number: u32) -> Text<'a> {
        let (mut rest, mut syllables) = (number, 0);
        while rest > 0 || syllables < 2 {
            let mut syllable = *SYLLABLES[(rest % 16) as usize];
            if syllables == 0 {
                syllable[0] = syllable[0].to_ascii_uppercase();
            }
            self = self.add(&syllable);
            rest /= 16;
            syllables += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tax_numbers_are_those_of_one_person_and_are_written_as_the_specification_says() {
        for id in [0, 1, 4999, FIRST_STRANGER, FIRST_STRANGER + 77, TAX_IDS - 1] {
            assert_eq!(id_of_tax_id(tax_id(id)), id);
        }
        assert_eq!(&tax_text(0), b"000AA0000AA000");
        assert_eq!(&tax_text(1_000), b"000AA0000AB000");
        assert_eq!(&tax_text(TAX_IDS - 1), b"999ZZ9999ZZ999");
        assert_eq!(person(7), person(7));
    }

    #[test]
    fn names_tell_brokers_companies_industries_and_securities_apart() {
        let all = 0..20_000;
        assert_eq!(all.clone().map(broker_name).collect::<BTreeSet<_>>().len(), all.len());
        let companies = all.clone().map(|place| company_name(place * ISSUES_MAX));
        assert_eq!(companies.collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!((0..102).map(industry_name).collect::<BTreeSet<_>>().len(), 102);
        for security in all.chain([(1 << 24) - 1]) {
            assert_eq!(security_of_symbol(&symbol(security)), Some(security));
        }
        assert_eq!(&symbol(8 * 27 + 2)[..9], b"AAABBPRB\0");
        assert_eq!(security_of_symbol(b"ZZZZZ"), None);
        assert_eq!(security_of_symbol(b"AAA"), None);
        assert_eq!(unpadded(&full_name(b"Ada\0\0", b"Norwin")), b"Ada Norwin");
        let text = cash_text(TradeType::MarketBuy, 800, b"COMMON of Bancor Works\0");
        assert_eq!(unpadded(&text), b"Market-Buy 800 shares of COMMON of Bancor Works");
    }

    #[test]
    fn accounts_differ_as_the_specification_says() {
        let parameters = Parameters::new(1);
        let facts: Vec<_> = parameters
            .scale
            .customers_of(0)
            .flat_map(super::super::numbers::accounts_of)
            .map(|number| account(&parameters, number))
            .collect();
        assert_eq!(facts.len(), 5000);
        let share = |of: &dyn Fn(&AccountFacts) -> bool| {
            facts.iter().filter(|facts| of(facts)).count() as f64 / facts.len() as f64
        };
        for (status, expected) in [0.2, 0.5, 0.3].into_iter().enumerate() {
            assert!((share(&|facts| usize::from(facts.tax_status) == status) - expected).abs() < 0.03);
        }
        assert!((share(&|facts| facts.balance < 0) - 0.2).abs() < 0.03);
        assert!((share(&|facts| facts.others[0].is_none()) - 0.6).abs() < 0.03);
        assert!((share(&|facts| facts.others[1].is_some()) - 0.02).abs() < 0.01);
        assert!((0..10).all(|broker| (share(&|facts| facts.broker == broker) - 0.1).abs() < 0.02));
        let securities: usize = facts.iter().map(|facts| facts.basket.len()).sum();
        assert!((securities as f64 / facts.len() as f64 - 10.0).abs() < 0.2);
        for facts in &facts {
            assert_eq!(facts.basket.iter().collect::<BTreeSet<_>>().len(), facts.basket.len());
        }
        let parameters = Parameters::small(1);
        assert!(account(&parameters, 0).basket.len() <= parameters.scale.securities() as usize);
        let [country, division] = taxes(&parameters, 3);
        assert!(country_taxes(division_of(zip(&parameters, 3))).contains(&country));
        assert!(division_taxes(division_of(zip(&parameters, 3))).contains(&division));
    }
}
