//! The consistency conditions (clause 3.3.2), and what else must hold.
//!
//! | # | condition |
//! |---|---|
//! | 1 | W_YTD is the sum of D_YTD |
//! | 2 | D_NEXT_O_ID - 1 is the largest number in ORDER, and in NEW-ORDER if there is any |
//! | 3 | the numbers in NEW-ORDER have no gaps |
//! | 4 | the sum of O_OL_CNT is the number of lines |
//! | 5 | an order has no carrier if and only if it is in NEW-ORDER |
//! | 6 | O_OL_CNT is the number of the order's lines |
//! | 7 | a line has no delivery date if and only if its order has no carrier |
//! | 8 | W_YTD is the sum of H_AMOUNT |
//! | 9 | D_YTD is the sum of H_AMOUNT |
//! | 10 | C_BALANCE is the sum of delivered lines less the sum of H_AMOUNT |
//! | 11 | ORDER has as many rows more than NEW-ORDER as were delivered at load and since |
//! | 12 | C_BALANCE + C_YTD_PAYMENT is the sum of delivered lines |
//!
//! All hold at every moment, in any snapshot. Only 10 needs several warehouses, because a customer
//! may pay anywhere: a warehouse's audit keeps the payments of strangers, and 10 is judged over all
//! audits.
//!
//! After a run the data is also compared with what the drivers counted: orders, payments,
//! deliveries, and what was taken from the stocks.

use std::collections::BTreeMap;

use super::audit::{Audit, DistrictSeen, Seen};
use super::load::LOADED_PAYMENT;
use super::{DISTRICTS, Parameters};
use crate::verdict::Verdict;
use crate::{Check, Tally};

/// How many consistency conditions there are.
const CONDITIONS: usize = 12;

impl Audit {
    /// Judges all conditions but 10, at their positions.
    fn conditions(&self) -> [Verdict; CONDITIONS] {
        let mut verdicts: [Verdict; CONDITIONS] = Default::default();
        let [c1, c2, c3, c4, c5, c6, c7, c8, c9, _, c11, c12] = &mut verdicts;
        let (seen, w) = (&self.seen, self.warehouse);
        let districts_ytd: i64 = seen.districts.iter().map(|district| district.ytd).sum();
        c1.same(format!("W_YTD of {w} and the sum of D_YTD"), seen.ytd, districts_ytd);
        (*c5, *c6, *c7) =
            (seen.waiting_orders.clone(), seen.line_counts.clone(), seen.delivery_dates.clone());
        for (d, district) in (1..).zip(&seen.districts) {
            if self.glance.is_none_or(|glance| glance == d) {
                let last = i64::from(district.next_o_id) - 1;
                c2.same(format!("the last order of {w}.{d}"), last, district.last_order);
                if district.waiting > 0 {
                    c2.same(format!("the last waiting order of {w}.{d}"), last, district.last_waiting);
                    let span = i64::from(district.last_waiting) - i64::from(district.first_waiting) + 1;
                    c3.same(format!("waiting orders of {w}.{d}"), district.waiting as i64, span);
                } else {
                    c3.expect(true, String::new);
                }
            }
            if self.glance.is_none() {
                let (promised, lines) = (district.lines_promised as i64, district.lines as i64);
                c4.same(format!("lines of {w}.{d}"), promised, lines);
                c9.same(format!("D_YTD of {w}.{d} and payments"), district.ytd, district.paid);
                let delivered = i64::from(self.delivered_at_load) + district.deliveries as i64;
                let difference = district.orders as i64 - district.waiting as i64;
                c11.same(format!("delivered orders of {w}.{d}"), difference, delivered);
            }
        }
        if self.glance.is_none() {
            c8.same(format!("W_YTD of {w} and payments"), seen.ytd, seen.paid);
            for (at, customer) in (0..).zip(&self.customers_seen) {
                let (d, c) = (at / self.customers + 1, at % self.customers + 1);
                c12.same(format_args!("customer {w}.{d}.{c} off by"), customer.condition_12, 0);
            }
        }
        verdicts
    }

    /// Judges whether all that was loaded is there.
    fn missing(&self) -> Verdict {
        let mut missing = self.seen.missing.clone();
        for (d, absent) in self.seen.absent.iter().enumerate() {
            missing.expect(!absent, || match d {
                0 => format!("warehouse {}", self.warehouse),
                d => format!("district {}.{d}", self.warehouse),
            });
        }
        missing
    }

    /// The conditions that one snapshot of one warehouse can show.
    pub(super) fn judge_snapshot(&self) -> Vec<Check> {
        let judged: &[usize] = match self.glance {
            None => &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12],
            Some(_) => &[1, 2, 3, 5, 6, 7],
        };
        let verdicts = self.conditions();
        let mut checks: Vec<_> =
            judged.iter().map(|&n| verdicts[n - 1].check(format!("tpcc consistency {n}"))).collect();
        checks.push(self.missing().check("tpcc loaded rows are there"));
        checks
    }
}

/// Judges condition 10: a customer's payments may be recorded at any warehouse.
fn condition_10(audits: &[Audit]) -> Verdict {
    let mut strangers_paid = BTreeMap::new();
    for (customer, amount) in audits.iter().flat_map(|audit| &audit.strangers_paid) {
        *strangers_paid.entry(*customer).or_insert(0) += amount;
    }
    let mut verdict = Verdict::default();
    for audit in audits {
        let w = audit.warehouse;
        for (at, customer) in (0..).zip(&audit.customers_seen) {
            let (d, c) = (at / audit.customers + 1, at % audit.customers + 1);
            let elsewhere = strangers_paid.remove(&(w, d as u8, c)).unwrap_or(0);
            let off_by = customer.condition_10 + elsewhere;
            verdict.same(format_args!("customer {w}.{d}.{c} off by"), off_by, 0);
        }
    }
    for ((w, d, c), _) in strangers_paid {
        verdict.expect(false, || format!("customer {w}.{d}.{c} has paid but does not exist"));
    }
    verdict
}

/// Judges the audits of all warehouses: the twelve conditions, and what the drivers counted.
pub(super) fn judge(parameters: &Parameters, audits: &[Audit], tally: &Tally) -> Vec<Check> {
    let mut conditions: [Verdict; CONDITIONS] = Default::default();
    let (mut missing, mut stock_range) = (Verdict::default(), Verdict::default());
    for audit in audits {
        for (verdict, other) in conditions.iter_mut().zip(audit.conditions()) {
            verdict.join(&other);
        }
        missing.join(&audit.missing());
        stock_range.join(&audit.seen.stock_range);
    }
    missing.same("warehouses", audits.len() as i64, parameters.warehouses);
    conditions[9] = condition_10(audits);
    let mut checks: Vec<_> = (1..)
        .zip(&conditions)
        .map(|(number, verdict)| verdict.check(format!("tpcc consistency {number}")))
        .collect();
    checks.push(missing.check("tpcc loaded rows are there"));
    checks.push(stock_range.check("tpcc stock quantities are 10 to 100"));
    checks.extend(judge_counts(parameters, audits, tally));
    checks
}

/// What became of the data since it was loaded, as sums over all warehouses.
struct Changes {
    new_orders: i64,
    history_rows: i64,
    customers_payments: i64,
    paid: i64,
    deliveries: i64,
    carried: i64,
    charged: i64,
    stock_orders: i64,
    stock_remote_orders: i64,
    stock_ytd: i64,
}

impl Changes {
    fn new<'a>(parameters: &Parameters, audits: impl Iterator<Item = &'a Audit> + Clone) -> Changes {
        let total = |of: fn(&Seen) -> i64| audits.clone().map(|audit| of(&audit.seen)).sum::<i64>();
        let districts = audits.clone().count() as i64 * i64::from(DISTRICTS);
        let customers = districts * i64::from(parameters.customers_per_district);
        let orders_at_load = districts * i64::from(parameters.loaded_orders());
        let delivered_at_load = districts * i64::from(parameters.delivered_orders());
        Changes {
            new_orders: total(|seen| sum(seen, |d| i64::from(d.next_o_id) - 1)) - orders_at_load,
            history_rows: total(|seen| seen.payments as i64) - customers,
            customers_payments: total(|seen| sum(seen, |d| d.payments as i64)) - customers,
            paid: total(|seen| seen.paid) - LOADED_PAYMENT * customers,
            deliveries: total(|seen| sum(seen, |d| d.deliveries as i64)),
            carried: total(|seen| sum(seen, |d| d.carried as i64)) - delivered_at_load,
            charged: total(|seen| sum(seen, |d| d.charged)),
            stock_orders: total(|seen| seen.stock_orders as i64),
            stock_remote_orders: total(|seen| seen.stock_remote_orders as i64),
            stock_ytd: total(|seen| seen.stock_ytd as i64),
        }
    }
}

/// See [`crate::Workload::found`].
pub(super) fn found(parameters: &Parameters, audits: &[&Audit]) -> Tally {
    let changes = Changes::new(parameters, audits.iter().copied());
    let mut tally =
        Tally { committed: vec![0; 5], sums: vec![0; <super::Tpcc as crate::Workload>::SUMS.len()] };
    for (kind, count) in [(0, changes.new_orders), (1, changes.history_rows)] {
        tally.committed[kind] = count.max(0) as u64;
    }
    for (sum, value) in [
        (super::PAYMENT_CENTS, changes.paid),
        (super::DELIVERED_ORDERS, changes.deliveries),
        (super::DELIVERED_CENTS, changes.charged),
        (super::ORDER_LINES, changes.stock_orders),
        (super::REMOTE_LINES, changes.stock_remote_orders),
        (super::QUANTITY, changes.stock_ytd),
    ] {
        tally.sums[sum] = value;
    }
    tally
}

/// Compares the data with what the drivers counted.
fn judge_counts(parameters: &Parameters, audits: &[Audit], tally: &Tally) -> Vec<Check> {
    let committed = |kind: usize| tally.committed.get(kind).copied().unwrap_or(0) as i64;
    let counted = |sum: usize| tally.sums.get(sum).copied().unwrap_or(0);
    let changes = Changes::new(parameters, audits.iter());

    let mut checks = Vec::new();
    let mut check = |name: &str, pairs: &[(&str, i64, i64)]| {
        let mut verdict = Verdict::default();
        pairs.iter().for_each(|&(what, data, drivers)| verdict.same(what, data, drivers));
        checks.push(verdict.check(name));
    };
    check("tpcc new orders are those committed", &[("D_NEXT_O_ID", changes.new_orders, committed(0))]);
    check(
        "tpcc payments are those committed",
        &[
            ("HISTORY rows", changes.history_rows, committed(1)),
            ("C_PAYMENT_CNT", changes.customers_payments, committed(1)),
            ("H_AMOUNT", changes.paid, counted(super::PAYMENT_CENTS)),
        ],
    );
    check(
        "tpcc deliveries are those committed",
        &[
            ("C_DELIVERY_CNT", changes.deliveries, counted(super::DELIVERED_ORDERS)),
            ("orders with a carrier", changes.carried, counted(super::DELIVERED_ORDERS)),
            ("C_BALANCE + C_YTD_PAYMENT", changes.charged, counted(super::DELIVERED_CENTS)),
        ],
    );
    check(
        "tpcc stocks are what was ordered",
        &[
            ("S_ORDER_CNT", changes.stock_orders, counted(super::ORDER_LINES)),
            ("S_REMOTE_CNT", changes.stock_remote_orders, counted(super::REMOTE_LINES)),
            ("S_YTD", changes.stock_ytd, counted(super::QUANTITY)),
        ],
    );
    checks
}

/// Adds up something of all districts.
fn sum(seen: &Seen, of: impl Fn(&DistrictSeen) -> i64) -> i64 {
    seen.districts.iter().map(of).sum()
}
