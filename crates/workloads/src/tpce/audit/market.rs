//! The audit of the market place of a company.
//!
//! Prices, then pending orders, then the index of trades by security. The trades themselves are at
//! homes: what is said about them here is kept by home, and compared when all audits are judged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Reads, Scan};
use plimsoll_types::{Abort, Key, Slot};

use super::{Set, behind, fingerprint};
use crate::tpce::Parameters;
use crate::tpce::numbers::{ISSUES_MAX, Trade};
use crate::tpce::prices::{HIGHEST, LOWEST};
use crate::tpce::schema::*;
use crate::verdict::Verdict;

/// Number of rows of a range that a stage reads.
const ROWS_PER_STAGE: usize = if cfg!(test) { 10 } else { 10_000 };

/// An audit of the market place of one company.
#[derive(Clone, Debug)]
pub struct MarketAudit {
    parameters: Parameters,
    company: u32,
    /// The stages so far, and the next one.
    steps: Vec<Step>,
    pub(in crate::tpce) seen: MarketSeen,
}

/// What a stage reads.
#[derive(Clone, Debug)]
enum Step {
    /// LAST_TRADE of all securities.
    Prices,
    /// TRADE_REQUEST from a key on.
    Requests { from: Key },
    /// TRADE_BY_SECURITY from a key on.
    Trades { from: Key },
}

/// What an audit has seen of a market place.
#[derive(Clone, Debug, Default)]
pub(in crate::tpce) struct MarketSeen {
    /// Securities without a price.
    pub(in crate::tpce) missing: Verdict,
    /// Condition 13: LT_PRICE is within its limits.
    pub(in crate::tpce) prices: Verdict,
    /// Sum of LT_VOL.
    pub(in crate::tpce) volume: i64,
    /// The latest LT_DTS.
    pub(in crate::tpce) last_date: u64,
    /// Pending orders and trades, by home.
    pub(in crate::tpce) of_homes: BTreeMap<u32, OfHome>,
}

/// What a market place says about trades of a home; see [`request`] and [`traded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tpce) struct OfHome {
    /// TRADE_REQUEST.
    pub(in crate::tpce) requests: Set,
    /// TRADE_BY_SECURITY.
    pub(in crate::tpce) trades: Set,
}

/// A pending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tpce) struct Request {
    pub(in crate::tpce) trade: Trade,
    pub(in crate::tpce) security: u32,
    pub(in crate::tpce) kind: u8,
    pub(in crate::tpce) bid: i64,
    pub(in crate::tpce) quantity: i32,
    pub(in crate::tpce) broker: u32,
    pub(in crate::tpce) account: u32,
    pub(in crate::tpce) date: u64,
}

impl Request {
    /// The one of a row of TRADE_REQUEST.
    pub(super) fn of_row(key: &Key, row: &TradeRequest) -> Request {
        let (kind, bid, trade) = keys::request_of(key);
        let security = key.leading_int(3) as u32;
        let (quantity, broker) = (row.quantity.get(), row.broker.get());
        let (account, date) = (row.account.get(), row.date.get());
        Request { trade, security, kind, bid, quantity, broker, account, date }
    }

    pub(super) fn fingerprint(&self) -> u64 {
        fingerprint([
            self.trade.0,
            self.security.into(),
            self.kind.into(),
            self.bid as u64,
            self.quantity as u64,
            self.broker.into(),
            self.account.into(),
            self.date,
        ])
    }
}

/// The fingerprint of an entry of the index of trades by security.
pub(super) fn traded(trade: Trade, security: u32, date: u64, account: u32) -> u64 {
    fingerprint([trade.0, security.into(), date, account.into()])
}

impl MarketAudit {
    pub(super) fn new(parameters: &Parameters, company: u32) -> MarketAudit {
        MarketAudit {
            parameters: parameters.clone(),
            company,
            steps: vec![Step::Prices],
            seen: MarketSeen::default(),
        }
    }

    fn securities(&self) -> impl Iterator<Item = u32> {
        [Some(self.company), self.parameters.scale.preferred(self.company)].into_iter().flatten()
    }

    /// The range of a table from a key on, for one stage.
    fn rest<C: Columns>(&self, from: &Key) -> Scan {
        let column = self.parameters.layout().column::<C>();
        Scan::range(column, from.clone(), keys::security(self.company + ISSUES_MAX)).limit(ROWS_PER_STAGE)
    }

    fn see_prices<A: Access>(&mut self, access: &mut A) -> Result<Option<Step>, Abort> {
        let mut rows = Vec::new();
        for security in self.securities() {
            let row = self.parameters.layout().find::<LastTrade, A>(access, &keys::security(security))?;
            rows.push((security, row));
        }
        self.seen = MarketSeen::default();
        let MarketSeen { missing, prices, volume, last_date, .. } = &mut self.seen;
        for (security, row) in rows {
            missing.expect(row.is_some(), || format!("the price of security {security}"));
            let Some(row) = row else { continue };
            let price = i64::from(row.price.get());
            prices.expect((LOWEST..=HIGHEST).contains(&price), || {
                format!("security {security} costs {price} cents")
            });
            *volume += row.volume.get();
            *last_date = row.date.get().max(*last_date);
        }
        Ok(Some(Step::Requests { from: keys::security(self.company) }))
    }

    fn see_requests<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let layout = self.parameters.layout();
        let (mut rows, mut last) = (Vec::new(), None);
        access.scan(&self.rest::<TradeRequest>(from), |key, record| {
            rows.push(Request::of_row(key, layout.view::<TradeRequest>(record).0));
            last = Some(key.clone());
            ControlFlow::Continue(())
        })?;
        for request in &rows {
            let of_home = self.seen.of_homes.entry(request.trade.home()).or_default();
            of_home.requests.add(request.fingerprint());
        }
        Ok(Some(match behind(rows.len(), ROWS_PER_STAGE, last.as_ref()) {
            Some(from) => Step::Requests { from },
            None => Step::Trades { from: keys::security(self.company) },
        }))
    }

    fn see_trades<A: Access>(&mut self, from: &Key, access: &mut A) -> Result<Option<Step>, Abort> {
        let layout = self.parameters.layout();
        let (mut rows, mut last) = (Vec::new(), None);
        access.scan(&self.rest::<TradeOfSecurity>(from), |key, record| {
            let account = layout.view::<TradeOfSecurity>(record).0.account.get();
            let (date, trade) = keys::date_and_trade(key);
            rows.push((trade, traded(trade, key.leading_int(3) as u32, date, account)));
            last = Some(key.clone());
            ControlFlow::Continue(())
        })?;
        for (trade, fingerprint) in &rows {
            self.seen.of_homes.entry(trade.home()).or_default().trades.add(*fingerprint);
        }
        Ok(behind(rows.len(), ROWS_PER_STAGE, last.as_ref()).map(|from| Step::Trades { from }))
    }

    pub(super) fn stage(&self, stage: usize) -> usize {
        usize::from(stage < self.steps.len())
    }

    pub(super) fn home(&self, _: Piece) -> Slot {
        self.parameters.scale.market_slot(self.company)
    }

    pub(super) fn reads(&self, piece: Piece, reads: &mut Reads) {
        match &self.steps[piece.stage] {
            Step::Prices => {
                let column = self.parameters.layout().column::<LastTrade>();
                self.securities().for_each(|security| reads.get(column, keys::security(security)));
            }
            Step::Requests { from } => reads.scan(self.rest::<TradeRequest>(from)),
            Step::Trades { from } => reads.scan(self.rest::<TradeOfSecurity>(from)),
        }
    }

    pub(super) fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let next = match self.steps[piece.stage].clone() {
            Step::Prices => self.see_prices(access),
            Step::Requests { from } => self.see_requests(&from, access),
            Step::Trades { from } => self.see_trades(&from, access),
        }?;
        self.steps.truncate(piece.stage + 1);
        self.steps.extend(next);
        Ok(())
    }
}
