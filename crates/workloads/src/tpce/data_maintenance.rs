//! Data-Maintenance (clause 3.3.2): once a minute, of one table after another, changes something
//! that no other transaction changes.
//!
//! One piece, where the row is; two stages of news, whose numbers an index has. An exchange is
//! everywhere, and so all shards take part.

use std::io::Write;
use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, ColumnGroup, Key, Slot};
use zerocopy::IntoBytes;

use super::numbers::{DAY_MS, Scale, UNIT};
use super::reference::{EXCHANGES, FIRST_COUNTRY_RATES, TAX_RATES};
use super::schema::*;
use super::trades::{find, joined, taxes_of};
use super::{Client, Tpce};
use crate::NOT_LOADED;
use crate::rows::unpadded;

/// Number of tables that it goes through.
const TARGETS: u64 = 12;
/// Texts that a row has by turns.
const ACCESS: [&[u8; 4]; 2] = [b"1111", b"0011"];
const LINES: [&str; 2] = ["Apt. 10C", "Apt. 22"];
const RATES: [&str; 2] = ["ABA", "AAA"];
const DOMAINS: [&[u8]; 2] = [b"@post.example", b"@mail.example"];
const TAX: [&[u8]; 2] = [b" Tax ", b" tax "];
/// What stands before the time in EX_DESC, and how much of the text before is kept.
const STAMP: &[u8] = b" LAST UPDATED ";
const DESCRIPTION_MAX: usize = 110;
/// Number of taxes of countries.
const COUNTRY_TAXES: u16 = super::reference::COUNTRY_RATES.len() as u16;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// AP_ACL of an account.
    Permission(u32),
    /// AD_LINE2 of a customer.
    CustomerAddress(u32),
    /// AD_LINE2 of a company.
    CompanyAddress(u32),
    /// CO_SP_RATE.
    Company(u32),
    /// C_EMAIL_2.
    Customer(u32),
    /// The country's tax of a customer.
    Taxrate(u32),
    /// DM_VOL of a security on this day of all months, by this much.
    DailyMarket(u32, u8, i64),
    /// EX_DESC of all exchanges.
    Exchange,
    /// FI_QTR_START_DATE of a company.
    Financial(u32),
    /// NI_DTS of a company's news.
    News(u32),
    /// S_EXCH_DATE.
    Security(u32),
    /// TX_NAME.
    Tax(u16),
    /// A security of a customer's watch list.
    WatchItem(u32),
}

/// A Data-Maintenance transaction.
#[derive(Clone, Debug)]
pub struct DataMaintenance {
    layout: Layout,
    scale: Scale,
    target: Target,
    date: u64,
    /// The company's news, once they are known.
    news: Vec<u32>,
}

impl DataMaintenance {
    /// Draws what number `number` changes.
    pub(super) fn draw(tpce: &Tpce, client: &mut Client, number: u64) -> DataMaintenance {
        let scale = tpce.scale();
        let (account, date) = (client.draw_account(tpce), client.now(tpce));
        let rng = &mut client.rng;
        let home = scale.draw_home(rng);
        let customers = scale.home * scale.customers_per_unit / UNIT;
        let any = rng.below(customers.max(1).into()) as usize;
        let customer = scale.customers_of(home).nth(any).unwrap_or(account / super::numbers::ACCOUNTS_MAX);
        let company = scale.company(rng.below(scale.companies().into()) as u32);
        let security = scale.draw_security(rng);
        let target = match number % TARGETS {
            0 => Target::Permission(account),
            1 if rng.pct(67.0) => Target::CustomerAddress(customer),
            1 => Target::CompanyAddress(company),
            2 => Target::Company(company),
            3 => Target::Customer(customer),
            4 => Target::Taxrate(customer),
            5 => {
                let day = rng.uniform(1..=31) as u8;
                let increment = [-3, -2, -1, 1, 2, 3][rng.below(6) as usize];
                Target::DailyMarket(security, day, increment)
            }
            6 => Target::Exchange,
            7 => Target::Financial(company),
            8 => Target::News(company),
            9 => Target::Security(security),
            10 => Target::Tax(rng.uniform(COUNTRY_TAXES.into()..=u64::from(TAX_RATES) - 1) as u16),
            _ => Target::WatchItem(customer),
        };
        DataMaintenance { layout: tpce.layout(), scale, target, date, news: Vec::new() }
    }

    /// The range that it reads and changes, if it is one.
    #[inline]
    fn range(&self) -> Option<Scan> {
        let (table, prefix) = match self.target {
            Target::Permission(account) => (ACCOUNT_PERMISSION, keys::number(account)),
            Target::Taxrate(customer) => return Some(taxes_of(customer)),
            Target::DailyMarket(security, ..) => (DAILY_MARKET, keys::security(security)),
            Target::Financial(company) => (FINANCIAL, keys::security(company)),
            Target::WatchItem(customer) => (WATCH_ITEM, keys::number(customer)),
            _ => return None,
        };
        Some(Scan::prefix(table.row(), prefix))
    }

    /// The index of a company's news.
    #[inline]
    fn news(company: u32) -> Scan {
        Scan::prefix(NEWS_XREF.row(), keys::security(company))
    }

    /// The rows of the range.
    fn rows<C: Columns, A: Access>(&self, access: &mut A) -> Result<Vec<(Key, C)>, Abort> {
        let (layout, mut rows) = (self.layout, Vec::new());
        let Some(range) = self.range() else { return Ok(rows) };
        access.scan(&range, |key, record| {
            rows.push((key.clone(), *layout.view::<C>(record).0));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// The keys of the range.
    fn keys<A: Access>(&self, access: &mut A) -> Result<Vec<Key>, Abort> {
        let mut keys = Vec::new();
        let Some(range) = self.range() else { return Ok(keys) };
        access.scan(&range, |key, _| {
            keys.push(key.clone());
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    fn change_permission<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let rows = self.rows::<Permission, A>(access)?;
        let (key, mut row) = rows.into_iter().max_by_key(|(_, row)| row.acl).ok_or(NOT_LOADED)?;
        row.acl = *ACCESS[usize::from(row.acl == *ACCESS[0])];
        access.put(ACCOUNT_PERMISSION.row(), &key, row.as_bytes())
    }

    /// Puts another line 2 into an address.
    fn change_address<A: Access>(
        &self,
        access: &mut A,
        column: ColumnGroup,
        number: &Key,
    ) -> Result<(), Abort> {
        let record = access.get(column, number)?.ok_or(NOT_LOADED)?;
        let mut row = *self.layout.view::<Address>(record).0;
        row.line_2 = other(&row.line_2, LINES);
        access.put(column, number, row.as_bytes())
    }

    fn change_taxrate<A: Access>(&self, access: &mut A, customer: u32) -> Result<(), Abort> {
        let keys = self.keys(access)?;
        let old = keys.iter().find(|key| keys::tax_of(key) < COUNTRY_TAXES).ok_or(NOT_LOADED)?;
        let tax = keys::tax_of(old);
        let country = if tax < FIRST_COUNTRY_RATES {
            0..FIRST_COUNTRY_RATES
        } else {
            FIRST_COUNTRY_RATES..COUNTRY_TAXES
        };
        let next = if tax + 1 < country.end { tax + 1 } else { country.start };
        access.delete(CUSTOMER_TAXRATE, old)?;
        access.insert(CUSTOMER_TAXRATE, &keys::taxrate(customer, next), &[b""])
    }

    fn change_daily_market<A: Access>(&self, access: &mut A, day: u8, by: i64) -> Result<(), Abort> {
        for (key, mut row) in self.rows::<DailyMarket, A>(access)? {
            if day_of_month(keys::day_of(&key)) == day {
                row.volume += by;
                access.put(DAILY_MARKET.row(), &key, row.as_bytes())?;
            }
        }
        Ok(())
    }

    fn change_exchanges<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        for exchange in 0..EXCHANGES.len() as u8 {
            let date = self.date;
            self.layout.update(access, &keys::small(exchange), |row: &mut ExchangeText| {
                row.description = stamped(&row.description, date);
            })?;
        }
        Ok(())
    }

    fn change_financial<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let rows = self.rows::<Financial, A>(access)?;
        let forward = rows.iter().any(|(_, row)| day_of_month(row.start.get()) == 1);
        for (key, mut row) in rows {
            let start = row.start.get();
            row.start = if forward { start + 1 } else { start.saturating_sub(1) }.into();
            access.put(FINANCIAL.row(), &key, row.as_bytes())?;
        }
        Ok(())
    }

    fn find_news<A: Access>(&mut self, access: &mut A, company: u32) -> Result<(), Abort> {
        let news = &mut self.news;
        news.clear();
        access.scan(&Self::news(company), |key, _| {
            news.push(keys::item_of(key));
            ControlFlow::Continue(())
        })
    }

    fn change_news<A: Access>(&self, access: &mut A, company: u32) -> Result<(), Abort> {
        for &item in &self.news {
            let key = keys::news(company, item);
            if self.layout.split {
                self.layout.update(access, &key, |row: &mut NewsHead| row.date += DAY_MS)?;
                continue;
            }
            // A body may be longer than what a row is put together in.
            let record = access.get(NEWS_ITEM.row(), &key)?.ok_or(NOT_LOADED)?;
            let mut record = record.to_vec();
            let mut row = *self.layout.view::<NewsHead>(&record).0;
            row.date += DAY_MS;
            record[..size_of::<NewsHead>()].copy_from_slice(row.as_bytes());
            access.put(NEWS_ITEM.row(), &key, &record)?;
        }
        Ok(())
    }

    /// Puts the next security that is not in the list in the place of the one in its middle.
    fn change_watch_item<A: Access>(&self, access: &mut A, customer: u32) -> Result<(), Abort> {
        let (scale, items) = (self.scale, self.keys(access)?);
        let old = items.get(items.len() / 2).ok_or(NOT_LOADED)?;
        let watched = |security| items.binary_search(&keys::with_security(customer, security)).is_ok();
        let position = scale.position(keys::security_of(old));
        let others = (1..scale.securities()).map(|by| scale.security((position + by) % scale.securities()));
        let Some(next) = others.into_iter().find(|&security| !watched(security)) else { return Ok(()) };
        access.delete(WATCH_ITEM, old)?;
        access.insert(WATCH_ITEM, &keys::with_security(customer, next), &[b""])
    }
}

/// The first of two texts, or the second if it is the first.
fn other<const N: usize>(text: &[u8; N], texts: [&str; 2]) -> [u8; N] {
    padded(texts[usize::from(unpadded(text) == texts[0].as_bytes())])
}

/// An e-mail address at the first domain, or at the second if it is at the first.
fn at_other_domain(email: &[u8; 50]) -> [u8; 50] {
    let text = unpadded(email);
    let name = &text[..find(text, b"@").unwrap_or(text.len())];
    let name = &name[..name.len().min(email.len() - DOMAINS[0].len())];
    joined([name, DOMAINS[usize::from(text.ends_with(DOMAINS[0]))]])
}

/// The description of an exchange with a new stamp.
fn stamped(description: &[u8; 150], date: u64) -> [u8; 150] {
    let text = unpadded(description);
    let kept = find(text, STAMP).unwrap_or(text.len()).min(DESCRIPTION_MAX);
    let mut number = [0; 20];
    let mut rest = &mut number[..];
    write!(rest, "{date}").expect("a date has at most 20 digits");
    joined([&text[..kept], STAMP, unpadded(&number)])
}

/// The name of a tax with the other initial letter.
fn toggle_tax(name: &mut [u8; 50]) {
    let found = [(0, 1), (1, 0)].into_iter().find_map(|(from, to)| Some((find(name, TAX[from])?, to)));
    if let Some((at, to)) = found {
        name[at..at + TAX[to].len()].copy_from_slice(TAX[to]);
    }
}

/// The day of the month of a day number: of the proleptic Gregorian calendar, in which a period of
/// 400 years begins on a first of March.
fn day_of_month(day: u16) -> u8 {
    // 2000-03-01 has the number 58.
    let days_of_period = 146_097;
    let day = (u32::from(day) + days_of_period - 58) % days_of_period;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days in five.
    let month = (5 * day_of_year + 2) / 153;
    (day_of_year - (153 * month + 2) / 5 + 1) as u8
}

impl Procedure for DataMaintenance {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match (stage, self.target) {
            (0, _) => 1,
            (1, Target::News(_)) => usize::from(!self.news.is_empty()),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, _: Piece) -> Slot {
        let scale = self.scale;
        match self.target {
            Target::Permission(account) => scale.slot(scale.home_of_account(account)),
            Target::CustomerAddress(customer)
            | Target::Customer(customer)
            | Target::Taxrate(customer)
            | Target::WatchItem(customer) => scale.slot(scale.home_of(customer)),
            Target::CompanyAddress(number)
            | Target::Company(number)
            | Target::DailyMarket(number, ..)
            | Target::Financial(number)
            | Target::News(number)
            | Target::Security(number) => scale.market_slot(number),
            Target::Exchange | Target::Tax(_) => scale.slot(0),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        if let Some(range) = self.range() {
            return reads.scan_for_update(range);
        }
        match self.target {
            Target::CustomerAddress(customer) => {
                reads.update(CUSTOMER_ADDRESS.row(), keys::number(customer));
            }
            Target::CompanyAddress(company) => reads.update(COMPANY_ADDRESS.row(), keys::security(company)),
            Target::Company(company) => reads.update(COMPANY_STATE.row(), keys::security(company)),
            Target::Customer(customer) => {
                reads.update(layout.column::<CustomerEmail>(), keys::number(customer));
            }
            Target::Exchange => {
                for exchange in 0..EXCHANGES.len() as u8 {
                    reads.update(layout.column::<ExchangeText>(), keys::small(exchange));
                }
            }
            Target::News(company) if piece.stage == 0 => reads.scan(Self::news(company)),
            Target::News(company) => {
                for &item in &self.news {
                    reads.update(layout.column::<NewsHead>(), keys::news(company, item));
                }
            }
            Target::Security(security) => reads.update(SECURITY_STATE.row(), keys::security(security)),
            Target::Tax(tax) => reads.update(TAX_NAME.row(), keys::tax(tax)),
            _ => {}
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        match self.target {
            Target::Permission(_) => self.change_permission(access),
            Target::CustomerAddress(customer) => {
                self.change_address(access, CUSTOMER_ADDRESS.row(), &keys::number(customer))
            }
            Target::CompanyAddress(company) => {
                self.change_address(access, COMPANY_ADDRESS.row(), &keys::security(company))
            }
            Target::Company(company) => {
                layout.update(access, &keys::security(company), |row: &mut CompanyState| {
                    row.rate = other(&row.rate, RATES);
                })
            }
            Target::Customer(customer) => {
                layout.update(access, &keys::number(customer), |row: &mut CustomerEmail| {
                    row.email_2 = at_other_domain(&row.email_2);
                })
            }
            Target::Taxrate(customer) => self.change_taxrate(access, customer),
            Target::DailyMarket(_, day, by) => self.change_daily_market(access, day, by),
            Target::Exchange => self.change_exchanges(access),
            Target::Financial(_) => self.change_financial(access),
            Target::News(company) if piece.stage == 0 => self.find_news(access, company),
            Target::News(company) => self.change_news(access, company),
            Target::Security(security) => {
                layout.update(access, &keys::security(security), |row: &mut SecurityState| {
                    row.exchange_date = row.exchange_date.get().wrapping_add(1).into();
                })
            }
            Target::Tax(tax) => {
                layout.update(access, &keys::tax(tax), |row: &mut TaxName| toggle_tax(&mut row.name))
            }
            Target::WatchItem(customer) => self.change_watch_item(access, customer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_months_are_those_of_the_calendar() {
        let days = |days: [u16; 7]| days.map(day_of_month);
        // 2000-01-03, 01-31, 02-01, 02-29, 03-01, 2001-02-28, 2001-03-01.
        assert_eq!(days([0, 28, 29, 57, 58, 422, 423]), [3, 31, 1, 29, 1, 28, 1]);
        // 2005-01-03.
        assert_eq!(day_of_month(super::super::numbers::BASE_DAY), 3);
    }

    #[test]
    fn texts_have_one_form_and_the_other_by_turns() {
        let email = padded("ada@mail.example");
        let other_email = at_other_domain(&email);
        assert_eq!(unpadded(&other_email), b"ada@post.example");
        assert_eq!(at_other_domain(&other_email), email);
        let mut tax = padded("Some Tax on all");
        toggle_tax(&mut tax);
        assert_eq!(unpadded(&tax), b"Some tax on all");
        let stamped_once = stamped(&padded("An exchange"), 77);
        assert_eq!(unpadded(&stamped_once), b"An exchange LAST UPDATED 77");
        assert_eq!(unpadded(&stamped(&stamped_once, 5)), b"An exchange LAST UPDATED 5");
    }
}
