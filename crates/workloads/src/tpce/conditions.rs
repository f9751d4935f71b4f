//! The consistency conditions, and what else must hold.
//!
//! The first three are the specification's, the others follow from what transactions do:
//!
//! | # | condition |
//! |---|---|
//! | 1 | B_NUM_TRADES is the number of completed trades of the broker's accounts |
//! | 2 | B_COMM_TOTAL is the sum of their T_COMM |
//! | 3 | HS_QTY is the sum of H_QTY, and never 0; there is a row if and only if there is a lot |
//! | 4 | all lots of an account and a security have the same sign, none is 0 |
//! | 5 | completed trades have changed lots by their quantity; the last change left what there is |
//! | 6 | completed trades have a settlement, those for cash a cash transaction of the same amount |
//! | 7 | SE_AMT follows from price, quantity, charge, commission and tax; T_CHRG and T_COMM are those of the tier, T_TAX is 0 where nothing is taxed, H_PRICE is T_TRADE_PRICE |
//! | 8 | CA_BAL has changed since the load by the sum of CT_AMT |
//! | 9 | trades took the states of their type in turn; the last is T_ST_ID since T_DTS |
//! | 10 | pending trades are those in TRADE_REQUEST, and in the index by broker |
//! | 11 | both indexes of trades by time have each trade once, at T_DTS |
//! | 12 | there are as many trades, and completed trades, as were loaded and committed since |
//! | 13 | the sum of LT_VOL is what was fed; LT_PRICE is 20.00 to 30.00 |
//! | 14 | LT_DTS of a security does not go back between snapshots of one client |
//!
//! The last one only glances show, of which there are several. The others are judged after a run as
//! well. All hold at every moment, in any snapshot; but 10, 11 and 13 are about homes and market
//! places, whose audits are snapshots of their own, so that they are judged as a whole only after a
//! run. What one audit shows of them is judged at once. That HOLDING_HISTORY has the same rows by
//! trade and by lot is a check of its own.
//!
//! After a run the data is also compared with what the drivers counted ([`SUMS`]).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Parameters;
use super::audit::glance::{At, Glance};
use super::audit::home::{AccountSeen, Counts, HomeAudit};
use super::audit::market::{MarketAudit, OfHome};
use super::audit::{Audit, Set};
use super::prices::{HIGHEST, LOWEST};
use crate::verdict::Verdict;
use crate::{Check, Tally};

/// How many conditions there are.
const CONDITIONS: usize = 14;
/// Those that audits after a run can show.
const AFTER_A_RUN: RangeInclusive<usize> = 1..=13;

/// Names of the sums that drivers count; see [`Workload::SUMS`](crate::Workload::SUMS).
pub const SUMS: &[&str] = &[
    "ordered_trades",
    "completed_trades",
    "cancelled_trades",
    "submitted_limit_orders",
    "commission_cents",
    "settled_cents",
    "cash_cents",
    "feed_quantity",
];

/// Position in [`SUMS`]: 1 for each Trade-Order.
pub const ORDERED_TRADES: usize = 0;
/// 1 for each Trade-Result.
pub const COMPLETED_TRADES: usize = 1;
/// Trades that a Trade-Cleanup has cancelled.
pub const CANCELLED_TRADES: usize = 2;
/// Trades that a Market-Feed has triggered, and pending ones that a Trade-Cleanup has cancelled.
pub const SUBMITTED_LIMIT_ORDERS: usize = 3;
/// T_COMM of a Trade-Result.
pub const COMMISSION_CENTS: usize = 4;
/// SE_AMT of a Trade-Result.
pub const SETTLED_CENTS: usize = 5;
/// CT_AMT of a Trade-Result, 0 if the trade is not for cash.
pub const CASH_CENTS: usize = 6;
/// The quantity of the entry of a Market-Feed.
pub const FEED_QUANTITY: usize = 7;

impl Verdict {
    /// Expects that one table has the rows of another.
    fn empty(&mut self, what: impl std::fmt::Display, rest: Set) {
        self.expect(rest == Set::default(), || match rest.count {
            0 => format!("{what} has as many entries as it should, but others"),
            count => format!("{what} has {} entries more than it should", -count),
        });
    }
}

/// What was judged.
#[derive(Default)]
struct Judged {
    /// By number, from 1 on.
    conditions: [Verdict; CONDITIONS],
    by_lot: Verdict,
    missing: Verdict,
}

impl Judged {
    fn condition(&mut self, number: usize) -> &mut Verdict {
        &mut self.conditions[number - 1]
    }

    /// The checks of some conditions, and whether all that was loaded is there.
    fn checks(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<Check> {
        let mut checks: Vec<_> = numbers
            .into_iter()
            .map(|number| self.conditions[number - 1].check(format!("tpce consistency {number}")))
            .collect();
        checks.push(self.missing.check("tpce loaded rows are there"));
        checks
    }

    fn by_lot(&self) -> Check {
        self.by_lot.check("tpce history by lot is the history by trade")
    }

    fn home(&mut self, audit: &HomeAudit) {
        let seen = &audit.seen;
        for (broker, of) in audit.brokers().zip(&seen.brokers) {
            self.condition(1).same(
                format_args!("B_NUM_TRADES of {broker} and trades"),
                of.trades,
                of.completed,
            );
            let what = format_args!("B_COMM_TOTAL of {broker} and T_COMM");
            self.condition(2).same(what, of.commissions, of.earned);
            self.condition(10).empty(format_args!("the index of broker {broker}"), of.pending);
        }
        for (account, of) in (audit.first_account()..).zip(&seen.accounts) {
            if *of == AccountSeen::default() {
                continue; // There is no such account.
            }
            self.condition(8).same(format_args!("CA_BAL of {account} is off by"), of.balance, 0);
            self.condition(5).empty(format_args!("HOLDING of account {account}"), of.lots);
            self.condition(11).empty(format_args!("the index of account {account}"), of.by_account);
        }
        for (number, verdict) in [
            (3, &seen.summaries),
            (4, &seen.signs),
            (5, &seen.parts),
            (6, &seen.settlements),
            (7, &seen.amounts),
            (9, &seen.histories),
        ] {
            self.condition(number).join(verdict);
        }
        self.by_lot.empty(format_args!("the index of lots of home {}", audit.home), seen.by_lot);
        self.missing.join(&seen.missing);
    }

    fn market(&mut self, audit: &MarketAudit) {
        self.condition(13).join(&audit.seen.prices);
        self.missing.join(&audit.seen.missing);
    }

    /// The conditions that a glance can show.
    fn glance(&mut self, glance: &Glance) -> &'static [usize] {
        let seen = &glance.seen;
        self.missing.expect(!seen.absent, || format!("{:?}", glance.at));
        match glance.at {
            At::Account(account) => {
                self.condition(3).join(&seen.summaries);
                self.condition(4).join(&seen.signs);
                let what = format_args!("the change of CA_BAL of {account} and CT_AMT");
                self.condition(8).same(what, seen.balance, seen.cash);
                &[3, 4, 8]
            }
            At::Security(security) => {
                seen.requests.iter().for_each(|verdict| self.condition(10).join(verdict));
                let price = seen.price;
                self.condition(13).expect(seen.absent || (LOWEST..=HIGHEST).contains(&price), || {
                    format!("security {security} costs {price} cents")
                });
                let Some((_, date)) = glance.earlier.filter(|&(earlier, _)| earlier == security) else {
                    return &[10, 13];
                };
                let now = seen.date;
                self.condition(14).expect(seen.absent || date <= now, || {
                    format!("LT_DTS of security {security} was {date} and is {now}")
                });
                &[10, 13, 14]
            }
            At::Broker(broker) => {
                let what = format_args!("B_NUM_TRADES of {broker} and trades");
                self.condition(1).same(what, seen.trades, seen.completed);
                let what = format_args!("B_COMM_TOTAL of {broker} and T_COMM");
                self.condition(2).same(what, seen.commissions, seen.earned);
                &[1, 2]
            }
        }
    }
}

/// Judges what one snapshot of one home, one market place or less can show.
pub(super) fn judge_snapshot(audit: &Audit) -> Vec<Check> {
    let mut judged = Judged::default();
    match audit {
        Audit::Home(home) => {
            judged.home(home);
            let mut checks = judged.checks(1..=11);
            checks.push(judged.by_lot());
            checks
        }
        Audit::Market(market) => {
            judged.market(market);
            judged.checks([13])
        }
        Audit::Glance(glance) => {
            let numbers = judged.glance(glance);
            judged.checks(numbers.iter().copied())
        }
    }
}

/// The audits of homes, and those of market places.
fn parts<'a>(audits: &[&'a Audit]) -> (Vec<&'a HomeAudit>, Vec<&'a MarketAudit>) {
    let homes = audits.iter().filter_map(|audit| match audit {
        Audit::Home(home) => Some(home),
        _ => None,
    });
    let markets = audits.iter().filter_map(|audit| match audit {
        Audit::Market(market) => Some(market),
        _ => None,
    });
    (homes.collect(), markets.collect())
}

/// What became of the data since it was loaded, by [`SUMS`].
fn changes(parameters: &Parameters, homes: &[&HomeAudit], markets: &[&MarketAudit]) -> Vec<i64> {
    let total = |of: fn(&Counts) -> i64| homes.iter().map(|home| of(&home.seen.counts)).sum::<i64>();
    let loaded = parameters.scale.trades() as i64 * homes.len() as i64;
    let mut sums = vec![0; SUMS.len()];
    sums[ORDERED_TRADES] = total(|counts| counts.trades) - loaded;
    sums[COMPLETED_TRADES] = total(|counts| counts.completed) - loaded;
    sums[CANCELLED_TRADES] = total(|counts| counts.cancelled);
    sums[SUBMITTED_LIMIT_ORDERS] = total(|counts| counts.limits_submitted);
    sums[COMMISSION_CENTS] = total(|counts| counts.commissions);
    sums[SETTLED_CENTS] = total(|counts| counts.settled);
    sums[CASH_CENTS] = total(|counts| counts.cash);
    sums[FEED_QUANTITY] = markets.iter().map(|market| market.seen.volume).sum();
    sums
}

/// See [`Workload::found`](crate::Workload::found). Committed transactions are not among what it
/// tells: of those that matter there are sums.
pub(super) fn found(parameters: &Parameters, audits: &[&Audit]) -> Tally {
    let (homes, markets) = parts(audits);
    Tally { committed: Vec::new(), sums: changes(parameters, &homes, &markets) }
}

/// The accounts that have trades which are pending or submitted.
pub(super) fn accounts_with_open_trades(audits: &[&Audit]) -> impl Iterator<Item = u32> {
    let (homes, _) = parts(audits);
    homes.into_iter().flat_map(|home| {
        let accounts = (home.first_account()..).zip(&home.seen.accounts);
        accounts.filter(|(_, seen)| seen.open > 0).map(|(account, _)| account)
    })
}

/// Where a further run on the same data goes on: the largest number that a client has counted for a
/// trade, and the latest date of a trade of the run or of a price.
pub(super) fn last_sequence_and_date(audits: &[&Audit]) -> (u64, u64) {
    let (homes, markets) = parts(audits);
    let counts = homes.iter().map(|home| home.seen.counts);
    let sequence = counts.clone().map(|counts| counts.last_sequence).max();
    let dates = counts.map(|counts| counts.last_date);
    let date = dates.chain(markets.iter().map(|market| market.seen.last_date)).max();
    (sequence.unwrap_or(0), date.unwrap_or(0))
}

/// Judges the audits of all homes and market places: the conditions, and what the drivers counted.
pub(super) fn judge(parameters: &Parameters, audits: &[Audit], tally: &Tally) -> Vec<Check> {
    let (homes, markets) = parts(&audits.iter().collect::<Vec<_>>());
    let mut judged = Judged::default();
    homes.iter().for_each(|home| judged.home(home));
    markets.iter().for_each(|market| judged.market(market));
    let scale = parameters.scale;
    judged.missing.same("audits of homes", homes.len() as i64, scale.homes());
    judged.missing.same("audits of companies", markets.len() as i64, scale.companies());

    // What market places say about the trades of homes.
    let mut of_homes: BTreeMap<u32, OfHome> = BTreeMap::new();
    for (&home, of_home) in markets.iter().flat_map(|market| &market.seen.of_homes) {
        let sum = of_homes.entry(home).or_default();
        sum.requests.join(of_home.requests);
        sum.trades.join(of_home.trades);
    }
    for audit in &homes {
        let OfHome { requests, trades } = of_homes.remove(&audit.home).unwrap_or_default();
        let (home, rest) = (audit.home, |mut of_home: Set, market| {
            of_home.part(market);
            of_home
        });
        let what = format_args!("TRADE_REQUEST of home {home}");
        judged.condition(10).empty(what, rest(audit.seen.requests, requests));
        let what = format_args!("the index by security of home {home}");
        judged.condition(11).empty(what, rest(audit.seen.trades, trades));
    }
    for home in of_homes.keys() {
        judged.condition(11).expect(false, || format!("trades of home {home}, which does not exist"));
    }

    // What the drivers counted.
    let data = changes(parameters, &homes, &markets);
    let pair = |sum: usize| (SUMS[sum], data[sum], tally.sums.get(sum).copied().unwrap_or(0));
    let compare = |verdict: &mut Verdict, sums: &[usize]| {
        for (name, data, counted) in sums.iter().map(|&sum| pair(sum)) {
            verdict.same(format_args!("{name} in the data and committed"), data, counted);
        }
    };
    compare(judged.condition(12), &[ORDERED_TRADES, COMPLETED_TRADES]);
    compare(judged.condition(13), &[FEED_QUANTITY]);
    let (mut states, mut money) = (Verdict::default(), Verdict::default());
    compare(&mut states, &[CANCELLED_TRADES, SUBMITTED_LIMIT_ORDERS]);
    compare(&mut money, &[COMMISSION_CENTS, SETTLED_CENTS, CASH_CENTS]);

    let mut checks = judged.checks(AFTER_A_RUN);
    checks.push(judged.by_lot());
    checks.push(states.check("tpce limits and cancellations are those committed"));
    checks.push(money.check("tpce commissions and settlements are those committed"));
    checks
}
