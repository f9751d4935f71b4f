//! Market-Watch (clause 3.3.4), read-only: how much some securities have won or lost since a day.
//!
//! Stages: the industry's number by its name, if the securities are those of an industry; which
//! securities, from a watch list or an account at home, or from copies in a piece on the client's
//! own shard; the price of each, then and now, at its market place.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::numbers::{ISSUES_MAX, Scale, weekday};
use super::people;
use super::reference::INDUSTRIES;
use super::schema::*;
use super::shown::{draw_week, own_slot};
use super::{Client, Tpce};
use crate::NOT_LOADED;

/// Companies of a window.
const WINDOW: u32 = 5000;

/// A Market-Watch transaction.
#[derive(Clone, Debug)]
pub struct MarketWatch {
    layout: Layout,
    scale: Scale,
    /// The slot of the pieces that find the securities.
    slot: Slot,
    watched: Watched,
    /// The day number of DAILY_MARKET.
    day: u16,
    /// The industry's number, if the securities are those of an industry.
    industry: u8,
    /// How many rows said which securities.
    listed: u32,
    /// The securities.
    securities: Vec<u32>,
    /// What all shares of each were worth that day, and what they are, in cents.
    values: Vec<(i64, i64)>,
}

/// Which securities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watched {
    /// Those of the customer's watch list.
    List(u32),
    /// Those that the account holds.
    Account(u32),
    /// Those of the companies between these two, both included, that are of the industry with this
    /// name.
    Industry([u8; 50], u32, u32),
}

impl MarketWatch {
    /// Draws the inputs (clause 3.3.4.1).
    pub(super) fn draw(tpce: &Tpce, client: &mut Client) -> MarketWatch {
        let scale = tpce.scale();
        let (slot, watched) = match client.rng.below(100) {
            0..5 => {
                let slot = own_slot(tpce, client);
                let rng = &mut client.rng;
                let name = people::industry_name(rng.below(INDUSTRIES.into()) as u8);
                let window = WINDOW.min(scale.companies());
                let first = rng.below(u64::from(scale.companies() - window) + 1) as u32;
                let (first, last) = (scale.company(first), scale.company(first + window - 1));
                (slot, Watched::Industry(name, first, last))
            }
            5..65 => {
                let customer = client.draw_customer(tpce);
                (scale.slot(scale.home_of(customer)), Watched::List(customer))
            }
            _ => {
                let account = client.draw_account(tpce);
                (scale.slot(scale.home_of_account(account)), Watched::Account(account))
            }
        };
        let week = draw_week(scale, &mut client.rng);
        let day = match client.rng.below(100) {
            0..60 => 4,
            60..80 => 0,
            80..87 => 1,
            87..93 => 2,
            _ => 3,
        };
        MarketWatch {
            layout: tpce.layout(),
            scale,
            slot,
            watched,
            day: weekday(week * 5 + day),
            industry: 0,
            listed: 0,
            securities: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The position of a stage if all asked for an industry.
    #[inline]
    fn step(&self, stage: usize) -> usize {
        stage + usize::from(!matches!(self.watched, Watched::Industry(..)))
    }

    /// The rows that say which securities.
    #[inline]
    fn list(&self) -> Scan {
        match self.watched {
            Watched::List(customer) => {
                Scan::range(WATCH_ITEM.row(), keys::number(customer), keys::number(customer + 1))
            }
            Watched::Account(account) => {
                let (low, high) = (keys::number(account), keys::number(account + 1));
                Scan::range(self.layout.column::<HoldingSummary>(), low, high)
            }
            Watched::Industry(_, first, last) => {
                let low = keys::by_industry(self.industry, first);
                let high = keys::by_industry(self.industry, last + 1);
                Scan::range(COMPANY_BY_INDUSTRY.row(), low, high)
            }
        }
    }

    /// Finds the number of the industry with a name.
    fn find_industry<A: Access>(&mut self, access: &mut A, name: [u8; 50]) -> Result<(), Abort> {
        for industry in 0..INDUSTRIES {
            let key = keys::small(industry);
            if self.layout.read(access, &key, |row: &Industry, _| row.name == name)? {
                self.industry = industry;
                return Ok(());
            }
        }
        Err(NOT_LOADED)
    }

    /// Finds out which securities.
    #[inline]
    fn find<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        let (layout, list) = (self.layout, self.list());
        let securities = &mut self.securities;
        securities.clear();
        securities.reserve(128);
        if let Watched::Industry(..) = self.watched {
            let mut companies = Vec::new();
            access.scan(&list, |key, _| {
                companies.push(keys::company_by_industry(key));
                ControlFlow::Continue(())
            })?;
            for security in companies.into_iter().flat_map(|company| company..company + ISSUES_MAX) {
                if access.get(layout.column::<Security>(), &keys::security(security))?.is_some() {
                    securities.push(security);
                }
            }
            self.listed = 0;
        } else {
            if let Watched::List(customer) = self.watched {
                layout.read(access, &keys::number(customer), |row: &WatchList, _| row.id.get())?;
            }
            access.scan(&list, |key, _| {
                securities.push(keys::security_of(key));
                ControlFlow::Continue(())
            })?;
            self.listed = securities.len() as u32 + u32::from(matches!(self.watched, Watched::List(_)));
        }
        self.values.clear();
        self.values.resize(self.securities.len(), (0, 0));
        Ok(())
    }

    /// Output: the securities, the day number, and where they come from: 0 a watch list, 1 an
    /// account, 2 an industry.
    pub fn seen(&self) -> (&[u32], u16, u8) {
        let from = match self.watched {
            Watched::List(_) => 0,
            Watched::Account(_) => 1,
            Watched::Industry(..) => 2,
        };
        (&self.securities, self.day, from)
    }

    /// Output: what all shares were worth that day, and what they are, in cents.
    pub fn values(&self) -> (i64, i64) {
        self.values.iter().fold((0, 0), |sum, value| (sum.0 + value.0, sum.1 + value.1))
    }

    /// Output: what they have won since that day, in per cent.
    pub fn change_pct(&self) -> f64 {
        match self.values() {
            (0, _) => 0.0,
            (then, now) => 100.0 * (now as f64 / then as f64 - 1.0),
        }
    }

    /// How many rows it has read, copies not counted.
    pub fn rows(&self) -> u32 {
        self.listed + 2 * self.values.len() as u32
    }
}

impl Procedure for MarketWatch {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match self.step(stage) {
            0 | 1 => 1,
            2 => self.securities.len(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match self.step(piece.stage) {
            2 => self.scale.market_slot(self.securities[piece.number]),
            _ => self.slot,
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match self.step(piece.stage) {
            0 => {}
            1 => {
                if let Watched::List(customer) = self.watched {
                    reads.get(layout.column::<WatchList>(), keys::number(customer));
                }
                reads.scan(self.list());
            }
            _ => {
                let security = self.securities[piece.number];
                reads.get(layout.column::<LastTrade>(), keys::security(security));
                reads.get(layout.column::<DailyMarket>(), keys::daily(security, self.day));
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        match (self.step(piece.stage), self.watched) {
            (0, Watched::Industry(name, ..)) => self.find_industry(access, name),
            (0 | 1, _) => self.find(access),
            _ => {
                let security = self.securities[piece.number];
                let key = keys::security(security);
                let shares = layout.read(access, &key, |row: &Security, _| row.outstanding.get())?;
                let now = layout.read(access, &key, |row: &LastTrade, _| row.price.get())?;
                let day = keys::daily(security, self.day);
                let then = layout.read(access, &day, |row: &DailyMarket, _| row.close.get())?;
                self.values[piece.number] = (shares * i64::from(then), shares * i64::from(now));
                Ok(())
            }
        }
    }
}
