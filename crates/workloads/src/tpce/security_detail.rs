//! Security-Detail (clause 3.3.6), read-only: everything about a security and its company.
//!
//! One piece at the market place, with names from copies. Every company has the same numbers of
//! news ([`NEWS`]), so that these need not be looked up first.

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, ColumnGroup, Key, Slot, TableId};
use zerocopy::FromZeros;

use super::numbers::{DAILY_MARKET_DAYS, ISSUES_MAX, Scale};
use super::people;
use super::reference::EXCHANGES;
use super::schema::*;
use super::shown::declare;
use super::{Client, Tpce};
use crate::NOT_LOADED;
use crate::rows::unpadded;

/// Items of news of a company.
pub const NEWS: Range<u32> = 0..2;
/// Most competitors that are shown.
const COMPETITORS_MAX: usize = 3;
/// Most quarters that are shown.
const QUARTERS_MAX: usize = 20;

/// A Security-Detail transaction.
#[derive(Clone, Debug)]
pub struct SecurityDetail {
    layout: Layout,
    scale: Scale,
    /// The number of the security, which its symbol encodes.
    security: u32,
    /// Whether the text of news is asked for, or headline and summary.
    with_text: bool,
    /// The first day that is asked for, and how many.
    start: u16,
    days: u8,
    /// Outputs, apart: they are larger than other transactions.
    detail: Box<Detail>,
}

/// What Security-Detail shows.
#[derive(Clone, Debug)]
pub struct Detail {
    /// SECURITY.
    pub security: Security,
    /// S_EXCH_DATE, a day number.
    pub exchange_date: u16,
    /// COMPANY.
    pub company: Company,
    /// CO_SP_RATE.
    pub rate: [u8; 4],
    /// The address of the company, with its zip code.
    pub company_address: (Address, ZipCode),
    /// EXCHANGE.
    pub exchange: Exchange,
    /// EX_DESC.
    pub exchange_text: [u8; 150],
    /// The address of the exchange, with its zip code.
    pub exchange_address: (Address, ZipCode),
    /// LAST_TRADE.
    pub last: LastTrade,
    /// CO_NAME and IN_NAME of competitors.
    pub competitors: Vec<([u8; 60], [u8; 50])>,
    /// Quarters of the company, the earliest first, with year and quarter.
    pub quarters: Vec<(u16, u8, Financial)>,
    /// Days of the security, the earliest first, with their numbers.
    pub days: Vec<(u16, DailyMarket)>,
    /// News, without their texts.
    pub news: Vec<NewsHead>,
    /// Texts of news, if these are asked for: one after the other, and where each ends.
    pub texts: (Vec<u8>, Vec<usize>),
}

impl SecurityDetail {
    /// Draws the inputs (clause 3.3.6.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> SecurityDetail {
        let (scale, rng) = (tpce.scale(), &mut client.rng);
        let symbol = people::symbol(scale.draw_security(rng));
        let days = rng.uniform(5..=20);
        let all = u64::from(scale.daily_market_days.min(DAILY_MARKET_DAYS));
        let address = || (Address::new_zeroed(), ZipCode::new_zeroed());
        SecurityDetail {
            layout: tpce.layout(),
            scale,
            security: people::security_of_symbol(&symbol).expect("a symbol encodes a number"),
            with_text: rng.pct(1.0),
            start: rng.uniform(0..=all.saturating_sub(days)) as u16,
            days: days as u8,
            detail: Box::new(Detail {
                security: Security::new_zeroed(),
                exchange_date: 0,
                company: Company::new_zeroed(),
                rate: [0; 4],
                company_address: address(),
                exchange: Exchange::new_zeroed(),
                exchange_text: [0; 150],
                exchange_address: address(),
                last: LastTrade::new_zeroed(),
                competitors: Vec::new(),
                quarters: Vec::new(),
                days: Vec::new(),
                news: Vec::new(),
                texts: (Vec::new(), Vec::new()),
            }),
        }
    }

    /// The company's number.
    #[inline]
    fn company(&self) -> u32 {
        self.security / ISSUES_MAX * ISSUES_MAX
    }

    /// The rows of a table of the company.
    #[inline]
    fn of_company(&self, table: TableId, limit: usize) -> Scan {
        let company = self.company();
        Scan::range(table.row(), keys::security(company), keys::security(company + 1)).limit(limit)
    }

    #[inline]
    fn competitors(&self) -> Scan {
        self.of_company(COMPANY_COMPETITOR, COMPETITORS_MAX)
    }

    #[inline]
    fn quarters(&self) -> Scan {
        self.of_company(FINANCIAL, QUARTERS_MAX)
    }

    #[inline]
    fn xref(&self) -> Scan {
        self.of_company(NEWS_XREF, NEWS.len())
    }

    #[inline]
    fn market_days(&self) -> Scan {
        let (low, high) = (keys::daily(self.security, self.start), keys::security(self.security + 1));
        Scan::range(self.layout.column::<DailyMarket>(), low, high).limit(self.days.into())
    }

    /// The column of news that is asked for.
    #[inline]
    fn news_column(&self) -> ColumnGroup {
        match self.with_text {
            true => self.layout.column::<NewsBody>(),
            false => self.layout.column::<NewsHead>(),
        }
    }

    /// The security's number.
    pub fn security(&self) -> u32 {
        self.security
    }

    /// The first day that is asked for, and how many.
    pub fn days(&self) -> (u16, u8) {
        (self.start, self.days)
    }

    /// Output: everything about it.
    pub fn detail(&self) -> &Detail {
        &self.detail
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        let detail = &*self.detail;
        let news = detail.news.len() + detail.texts.1.len();
        let lists = detail.competitors.len() + detail.quarters.len() + detail.days.len();
        (4 + lists + 2 * news) as u32
    }
}

impl Procedure for SecurityDetail {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        usize::from(stage == 0)
    }

    #[inline]
    fn home(&self, _: Piece) -> Slot {
        self.scale.market_slot(self.security)
    }

    #[inline]
    fn reads(&self, _: Piece, reads: &mut Reads) {
        let (layout, company) = (self.layout, self.company());
        reads.get(layout.column::<LastTrade>(), keys::security(self.security));
        reads.get(layout.column::<SecurityState>(), keys::security(self.security));
        reads.get(layout.column::<CompanyState>(), keys::security(company));
        reads.get(COMPANY_ADDRESS.row(), keys::security(company));
        // The exchange is not known before the security is read.
        let (exchange, text) = (layout.column::<Exchange>(), layout.column::<ExchangeText>());
        declare(layout, reads, &[exchange, text], (0..EXCHANGES.len() as u8).map(keys::small));
        NEWS.for_each(|item| reads.get(self.news_column(), keys::news(company, item)));
        [self.competitors(), self.quarters(), self.xref(), self.market_days()]
            .into_iter()
            .for_each(|scan| reads.scan(scan));
    }

    #[inline]
    fn execute<A: Access>(&mut self, _: Piece, access: &mut A) -> Result<(), Abort> {
        self.show_security(access)?;
        self.show_lists(access)?;
        self.show_news(access)
    }
}

/// Year and quarter in a key of FINANCIAL.
#[inline]
fn quarter_of(key: &Key) -> (u16, u8) {
    ((key.head() >> (128 - 40)) as u16, (key.head() >> (128 - 48)) as u8)
}

/// An address: the row of one of three tables, and its zip code.
#[inline]
fn address<A: Access>(
    layout: Layout,
    access: &mut A,
    table: TableId,
    key: &Key,
) -> Result<(Address, ZipCode), Abort> {
    let record = access.get(table.row(), key)?.ok_or(NOT_LOADED)?;
    let address = *layout.view::<Address>(record).0;
    let zip = layout.read(access, &keys::number(address.zip.get()), |row: &ZipCode, _| *row)?;
    Ok((address, zip))
}

impl SecurityDetail {
    /// The security, its company, its exchange and its price.
    #[inline]
    fn show_security<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, detail) = (self.layout, &mut *self.detail);
        let key = keys::security(self.security);
        detail.security = layout.read(access, &key, |row: &Security, _| *row)?;
        detail.exchange_date = layout.read(access, &key, |row: &SecurityState, _| row.exchange_date.get())?;
        detail.last = layout.read(access, &key, |row: &LastTrade, _| *row)?;
        let key = keys::security(self.security / ISSUES_MAX * ISSUES_MAX);
        detail.company = layout.read(access, &key, |row: &Company, _| *row)?;
        detail.rate = layout.read(access, &key, |row: &CompanyState, _| row.rate)?;
        detail.company_address = address(layout, access, COMPANY_ADDRESS, &key)?;
        let exchange = detail.security.exchange;
        if usize::from(exchange) >= EXCHANGES.len() {
            return Err(NOT_LOADED);
        }
        let key = keys::small(exchange);
        detail.exchange = layout.read(access, &key, |row: &Exchange, _| *row)?;
        detail.exchange_text = layout.read(access, &key, |row: &ExchangeText, _| row.description)?;
        detail.exchange_address = address(layout, access, EXCHANGE_ADDRESS, &key)?;
        Ok(())
    }

    /// Competitors, quarters and days.
    #[inline]
    fn show_lists<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, [competitors, quarters, days]) =
            (self.layout, [self.competitors(), self.quarters(), self.market_days()]);
        let detail = &mut *self.detail;
        let (mut found, mut count) = ([(0, 0); COMPETITORS_MAX], 0);
        access.scan(&competitors, |key, _| {
            let Some(place) = found.get_mut(count) else { return ControlFlow::Break(()) };
            *place = keys::competitor_of(key);
            count += 1;
            ControlFlow::Continue(())
        })?;
        detail.competitors.clear();
        for &(company, industry) in &found[..count] {
            let company = layout.read(access, &keys::security(company), |row: &Company, _| row.name)?;
            let industry = layout.read(access, &keys::small(industry), |row: &Industry, _| row.name)?;
            detail.competitors.push((company, industry));
        }
        detail.quarters.clear();
        detail.quarters.reserve_exact(QUARTERS_MAX);
        access.scan(&quarters, |key, record| {
            let (year, quarter) = quarter_of(key);
            detail.quarters.push((year, quarter, *layout.view::<Financial>(record).0));
            ControlFlow::Continue(())
        })?;
        detail.days.clear();
        detail.days.reserve_exact(self.days.into());
        access.scan(&days, |key, record| {
            detail.days.push((keys::day_of(key), *layout.view::<DailyMarket>(record).0));
            ControlFlow::Continue(())
        })
    }

    /// News.
    #[inline]
    fn show_news<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, company, xref, column) = (self.layout, self.company(), self.xref(), self.news_column());
        let detail = &mut *self.detail;
        let (mut items, mut count) = ([0; NEWS.end as usize], 0);
        access.scan(&xref, |key, _| {
            let Some(place) = items.get_mut(count) else { return ControlFlow::Break(()) };
            *place = keys::item_of(key);
            count += 1;
            ControlFlow::Continue(())
        })?;
        detail.news.clear();
        detail.texts.0.clear();
        detail.texts.1.clear();
        for &item in &items[..count] {
            if !NEWS.contains(&item) {
                return Err(NOT_LOADED);
            }
            let record = access.get(column, &keys::news(company, item))?.ok_or(NOT_LOADED)?;
            if self.with_text {
                let (_, text) = layout.view::<NewsBody>(record);
                detail.texts.0.extend_from_slice(text);
                detail.texts.1.push(detail.texts.0.len());
            } else {
                detail.news.push(*layout.view::<NewsHead>(record).0);
            }
        }
        Ok(())
    }
}

impl Detail {
    /// S_SYMB and CO_NAME.
    pub fn names(&self) -> [&[u8]; 2] {
        [unpadded(&self.security.symbol), unpadded(&self.company.name)]
    }
}
