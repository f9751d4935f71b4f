//! What clients were told, compared with what is in the tables when a run is over.
//!
//! The consistency conditions of TPC-C hold in a database that has forgotten its last second as a
//! whole. So the client keeps a ledger: for each district the payments that were acknowledged and
//! their sum, the orders and the deliveries, and for each warehouse what dUpdateBalance has added.
//! The tables are read before the first transaction and after the last one, and what they have
//! gained has to be what was acknowledged, to the cent:
//!
//! ```text
//! acknowledged  <=  gained  <=  acknowledged + in doubt
//! ```
//!
//! *In doubt* is a transaction whose COMMIT has no answer, or that had not ended when the run
//! stopped waiting for it: it may be there, once, or not. Payments have amounts of their own, so
//! for a district with a few in doubt, the sum has to be that of some of them.
//!
//! Less is a loss: a client was told of a commit that is gone. More is something that no client has
//! asked for, such as a transaction that was done twice.
//!
//! Left out: what Update-Item and Update-Stock change, whose values wrap around; runs of several
//! clients, each of which knows a part; and customers and stocks, which conditions 10, 12 and 13
//! tie to payments and orders.

mod tables;

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::load::scale::Scale;
use crate::metrics::document::{Check, Kept};
use crate::report::units::thousands;
use crate::target::{Cause, Connector, Failure, format_decimal};
use crate::transactions::{BALANCE_STEP_CENTS, Done, Input};
use tables::Places;
pub use tables::Tables;

/// The check that a run's document has for it.
pub const NAME: &str = "what clients were told is in the tables";

/// Payments in doubt in one district up to which their sums are tried one by one.
const COMBINED_MAX: usize = 12;
/// Places that an unequal count names.
const SHOWN: usize = 3;

/// What clients were told. Terminals share it.
pub struct Ledger {
    places: Places,
    /// By place.
    districts: Vec<Told>,
    /// By warehouse, dUpdateBalances that changed it.
    steps: Vec<AtomicI64>,
    in_doubt: Mutex<Vec<Input>>,
}

/// What was acknowledged in one district.
#[derive(Default)]
struct Told {
    payments: AtomicI64,
    cents: AtomicI64,
    orders: AtomicI64,
    deliveries: AtomicI64,
}

/// A transaction that is under way. Dropped before it has ended, it is in doubt.
pub struct UnderWay<'a> {
    ledger: &'a Ledger,
    input: Option<&'a Input>,
}

impl UnderWay<'_> {
    /// It has ended, or has failed.
    pub fn ended(mut self, result: &Result<Done, Failure>) {
        let Some(input) = self.input.take() else { return };
        match result {
            Ok(Done::Committed { delivered }) => self.ledger.committed(input, delivered),
            Err(failure) if failure.cause == Cause::InDoubt => self.ledger.doubt(input),
            Ok(Done::RolledBack) | Err(_) => {}
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(input) = self.input {
            self.ledger.doubt(input);
        }
    }
}

/// One count at one place: what was told, what may have come in addition, what the tables gained.
struct Count {
    place: String,
    told: i64,
    in_doubt: i64,
    found: i64,
}

impl Count {
    fn lost(&self) -> i64 {
        (self.told - self.found).max(0)
    }

    fn unasked(&self) -> i64 {
        (self.found - self.told - self.in_doubt).max(0)
    }
}

impl Ledger {
    /// An empty one for tables of this scale.
    pub fn new(scale: &Scale) -> Ledger {
        let places = Places::new(scale);
        Ledger {
            districts: (0..places.districts()).map(|_| Told::default()).collect(),
            steps: (0..places.warehouses()).map(|_| AtomicI64::new(0)).collect(),
            places,
            in_doubt: Mutex::new(Vec::new()),
        }
    }

    /// An attempt of a transaction begins.
    pub fn begin<'a>(&'a self, input: &'a Input) -> UnderWay<'a> {
        UnderWay { ledger: self, input: Some(input) }
    }

    fn committed(&self, input: &Input, delivered: &[u32]) {
        let of = |warehouse, district| &self.districts[self.places.at(warehouse, district)];
        match input {
            Input::NewOrder(input) => add(&of(input.warehouse, input.district).orders, 1),
            Input::Payment(input) => {
                let told = of(input.warehouse, input.district);
                add(&told.payments, 1);
                add(&told.cents, input.cents);
            }
            Input::Delivery(input) => {
                let told = delivered.iter().map(|&district| of(input.warehouse, district));
                told.for_each(|told| add(&told.deliveries, 1));
            }
            Input::UpdateBalance { warehouses } => {
                let steps = warehouses.iter().map(|&warehouse| &self.steps[warehouse as usize - 1]);
                steps.for_each(|steps| add(steps, 1));
            }
            _ => {}
        }
    }

    fn doubt(&self, input: &Input) {
        self.in_doubt.lock().unwrap_or_else(PoisonError::into_inner).push(input.clone());
    }

    /// Reads what the tables hold. Nothing else should change them meanwhile.
    pub async fn read(&self, connector: &Connector) -> Result<Tables, Failure> {
        Tables::read(connector, &self.places).await
    }

    /// What was told against what the tables have gained.
    pub fn compare(&self, before: &Tables, after: &Tables) -> (Vec<Kept>, Check) {
        let doubts = self.in_doubt.lock().unwrap_or_else(PoisonError::into_inner);
        let districts = self.districts.len();
        let mut cents_in_doubt: Vec<Vec<i64>> = vec![Vec::new(); districts];
        let (mut orders, mut deliveries) = (vec![0; districts], vec![0; districts]);
        let mut w_ytd_in_doubt = vec![0; self.steps.len()];
        for input in doubts.iter() {
            match input {
                Input::NewOrder(input) => orders[self.places.at(input.warehouse, input.district)] += 1,
                Input::Payment(input) => {
                    cents_in_doubt[self.places.at(input.warehouse, input.district)].push(input.cents);
                    w_ytd_in_doubt[input.warehouse as usize - 1] += input.cents;
                }
                // A district without an order to deliver is skipped.
                Input::Delivery(input) => (1..=input.districts)
                    .for_each(|district| deliveries[self.places.at(input.warehouse, district)] += 1),
                Input::UpdateBalance { warehouses } => warehouses
                    .iter()
                    .for_each(|&warehouse| w_ytd_in_doubt[warehouse as usize - 1] += BALANCE_STEP_CENTS),
                _ => {}
            }
        }
        let sums: Vec<i64> = cents_in_doubt.iter().map(|cents| cents.iter().sum()).collect();
        let payments: Vec<i64> = cents_in_doubt.iter().map(|cents| cents.len() as i64).collect();
        let of_districts =
            |told: fn(&Told) -> &AtomicI64, in_doubt: &[i64], before: &[i64], after: &[i64]| {
                let count = |at: usize| Count {
                    place: self.places.name(at),
                    told: told(&self.districts[at]).load(Relaxed),
                    in_doubt: in_doubt[at],
                    found: after[at] - before[at],
                };
                (0..districts).map(count).collect::<Vec<Count>>()
            };
        let of_warehouse = |at: usize| {
            let paid = self.districts[self.places.of_warehouse(at)].iter();
            let paid: i64 = paid.map(|told| told.cents.load(Relaxed)).sum();
            Count {
                place: format!("warehouse {}", at + 1),
                told: paid + BALANCE_STEP_CENTS * self.steps[at].load(Relaxed),
                in_doubt: w_ytd_in_doubt[at],
                found: after.w_ytd_cents[at] - before.w_ytd_cents[at],
            }
        };
        let counted = [
            ("payments", of_districts(|told| &told.payments, &payments, &before.payments, &after.payments)),
            (
                "cents of payments",
                of_districts(|told| &told.cents, &sums, &before.paid_cents, &after.paid_cents),
            ),
            (
                "cents in d_ytd",
                of_districts(|told| &told.cents, &sums, &before.d_ytd_cents, &after.d_ytd_cents),
            ),
            ("cents in w_ytd", (0..self.steps.len()).map(of_warehouse).collect()),
            ("orders", of_districts(|told| &told.orders, &orders, &before.orders, &after.orders)),
            (
                "deliveries",
                of_districts(|told| &told.deliveries, &deliveries, &before.deliveries, &after.deliveries),
            ),
        ];
        let mut wrong: Vec<String> =
            counted.iter().flat_map(|(what, counts)| complaints(what, counts)).collect();
        let (counts, cents) = (&counted[0].1, &counted[1].1);
        let mixed = (0..districts).filter(|&at| {
            let (extra, sum) = (counts[at].found - counts[at].told, cents[at].found - cents[at].told);
            !is_sum_of(&cents_in_doubt[at], extra, sum) && wrong.is_empty()
        });
        let mixed: Vec<String> = mixed.map(|at| self.places.name(at)).take(SHOWN).collect();
        if !mixed.is_empty() {
            wrong.push(format!(
                "the payments of {} are as many as were acknowledged or are in doubt, and their sum is not",
                mixed.join(" and ")
            ));
        }
        let total = |counts: &[Count], of: fn(&Count) -> i64| counts.iter().map(of).sum::<i64>();
        let kept: Vec<Kept> = counted
            .iter()
            .map(|(what, counts)| Kept {
                what: (*what).to_owned(),
                told: total(counts, |count| count.told),
                in_doubt: total(counts, |count| count.in_doubt),
                found: total(counts, |count| count.found),
                lost: total(counts, Count::lost),
                unasked: total(counts, Count::unasked),
            })
            .collect();
        let detail = match wrong.is_empty() {
            true => format!(
                "{} payments of {}, {} orders, {} deliveries; {} transactions were in doubt",
                number(kept[0].told),
                money(kept[1].told),
                number(kept[4].told),
                number(kept[5].told),
                doubts.len()
            ),
            false => wrong.join("; "),
        };
        (kept, Check { name: NAME.to_owned(), ok: wrong.is_empty(), detail })
    }
}

fn add(count: &AtomicI64, more: i64) {
    count.fetch_add(more, Relaxed);
}

/// The check if there is nothing to compare.
pub fn not_compared(why: &str) -> Check {
    Check { name: NAME.to_owned(), ok: false, detail: format!("it could not be compared: {why}") }
}

/// What is missing and what is too much, with some places.
fn complaints(what: &str, counts: &[Count]) -> Vec<String> {
    let mut said = Vec::new();
    let (unit, shown): (&str, fn(i64) -> String) = match what.strip_prefix("cents ") {
        Some(rest) => (rest, money),
        None => (what, number),
    };
    let mut say = |of: fn(&Count) -> i64, words: &str| {
        let total: i64 = counts.iter().map(of).sum();
        if total > 0 {
            let told: i64 = counts.iter().map(|count| count.told).sum();
            let places = counts.iter().filter(|count| of(count) > 0);
            let mut places: Vec<String> =
                places.map(|count| format!("{} {}", shown(of(count)), count.place)).collect();
            let more = places.len().saturating_sub(SHOWN);
            places.truncate(SHOWN);
            if more > 0 {
                places.push(format!("{more} more places"));
            }
            said.push(format!(
                "{} {unit} {words}, of {} acknowledged ({})",
                shown(total),
                shown(told),
                places.join("; ")
            ));
        }
    };
    say(Count::lost, "that clients were told of are gone");
    say(Count::unasked, "are there that no client asked for, or twice");
    said
}

/// Whether `sum` is the sum of `count` of these amounts. With more than `COMBINED_MAX` of them the
/// combinations are not tried, and any sum will do.
fn is_sum_of(cents: &[i64], count: i64, sum: i64) -> bool {
    if cents.len() > COMBINED_MAX {
        return true;
    }
    (0u32..1 << cents.len()).filter(|chosen| i64::from(chosen.count_ones()) == count).any(|chosen| {
        let some = cents.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        some.map(|(_, cents)| cents).sum::<i64>() == sum
    })
}

fn number(of: i64) -> String {
    let digits = thousands(of.unsigned_abs());
    if of < 0 { format!("-{digits}") } else { digits }
}

fn money(cents: i64) -> String {
    format_decimal(cents, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Data;
    use crate::transactions::inputs::{Customer, Delivery, NewOrder, Payment};

    fn ledger() -> Ledger {
        Ledger::new(&Scale::new(&Data { warehouses: 2, ..Data::default() }))
    }

    fn tables() -> Tables {
        Tables {
            payments: vec![30; 20],
            paid_cents: vec![30_000; 20],
            orders: vec![30; 20],
            deliveries: vec![21; 20],
            d_ytd_cents: vec![30_000; 20],
            w_ytd_cents: vec![300_000; 2],
        }
    }

    fn payment(warehouse: u32, district: u32, cents: i64) -> Input {
        Input::Payment(Payment {
            warehouse,
            district,
            customer_warehouse: 1,
            customer_district: 1,
            customer: Customer::Numbered(1),
            cents,
            date_s: 0,
        })
    }

    fn pay(tables: &mut Tables, warehouse: usize, district: usize, cents: i64) {
        let at = 10 * (warehouse - 1) + district - 1;
        tables.payments[at] += 1;
        tables.paid_cents[at] += cents;
        tables.d_ytd_cents[at] += cents;
        tables.w_ytd_cents[warehouse - 1] += cents;
    }

    fn told(ledger: &Ledger, input: &Input, delivered: &[u32]) {
        ledger.begin(input).ended(&Ok(Done::Committed { delivered: delivered.to_vec() }));
    }

    fn detail(ledger: &Ledger, after: &Tables) -> Result<String, String> {
        let (_, check) = ledger.compare(&tables(), after);
        if check.ok { Ok(check.detail) } else { Err(check.detail) }
    }

    #[test]
    fn what_was_acknowledged_has_to_be_there_to_the_cent() {
        let ledger = ledger();
        let order = NewOrder {
            warehouse: 1,
            district: 3,
            customer: 1,
            lines: Vec::new(),
            rolls_back: false,
            date_s: 0,
        };
        let delivery = Delivery { warehouse: 2, districts: 10, carrier: 1, date_s: 0 };
        told(&ledger, &payment(2, 10, 12_345), &[]);
        told(&ledger, &Input::NewOrder(order.clone()), &[]);
        told(&ledger, &Input::Delivery(delivery), &[1, 2, 9]);
        told(&ledger, &Input::UpdateBalance { warehouses: vec![1, 2] }, &[]);
        // What was rolled back or has failed is not there.
        ledger.begin(&Input::NewOrder(order)).ended(&Ok(Done::RolledBack));
        ledger.begin(&payment(1, 1, 1)).ended(&Err(Failure::new(Cause::Serialization, "")));
        let mut after = tables();
        pay(&mut after, 2, 10, 12_345);
        after.orders[2] += 1;
        [10, 11, 18].into_iter().for_each(|at| after.deliveries[at] += 1);
        after.w_ytd_cents.iter_mut().for_each(|cents| *cents += BALANCE_STEP_CENTS);
        let said = detail(&ledger, &after).expect("all is there");
        assert_eq!(said, "1 payments of 123.45, 1 orders, 3 deliveries; 0 transactions were in doubt");

        type Change = fn(&mut Tables);
        let changes: [(Change, &str); 8] = [
            (|it| it.payments[19] -= 1, "1 payments that clients were told of are gone, of 1 acknowledged"),
            (|it| it.paid_cents[19] -= 1, "0.01 of payments that clients were told of are gone"),
            (|it| it.d_ytd_cents[19] -= 1, "0.01 in d_ytd that clients were told of are gone"),
            (|it| it.w_ytd_cents[0] -= 1, "(0.01 warehouse 1)"),
            (|it| it.orders[2] -= 1, "1 orders that clients were told of are gone"),
            (|it| it.deliveries[10] -= 1, "(1 warehouse 2, district 1)"),
            (|it| it.orders[4] += 1, "1 orders are there that no client asked for, or twice"),
            (|it| pay(it, 2, 10, 12_345), "123.45 in w_ytd are there that no client asked for"),
        ];
        for (change, expected) in changes {
            let mut wrong = after.clone();
            change(&mut wrong);
            let said = detail(&ledger, &wrong).expect_err(expected);
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn what_is_in_doubt_may_be_there_once_or_not() {
        let ledger = ledger();
        told(&ledger, &payment(1, 1, 100), &[]);
        ledger.begin(&payment(1, 1, 700)).ended(&Err(Failure::new(Cause::InDoubt, "")));
        drop(ledger.begin(&payment(1, 1, 50)));
        let after = |paid: &[i64]| {
            let mut after = tables();
            paid.iter().for_each(|&cents| pay(&mut after, 1, 1, cents));
            after
        };
        for paid in [&[100][..], &[100, 700], &[100, 50], &[100, 700, 50]] {
            assert!(detail(&ledger, &after(paid)).is_ok(), "{paid:?}");
        }
        for paid in [&[][..], &[700, 50], &[100, 700, 700], &[100, 100], &[100, 600]] {
            assert!(detail(&ledger, &after(paid)).is_err(), "{paid:?}");
        }
        let (kept, _) = ledger.compare(&tables(), &after(&[700, 50]));
        assert_eq!((kept[0].told, kept[0].in_doubt, kept[0].found), (1, 2, 2));
    }

    #[test]
    fn negative_counts_have_a_sign() {
        assert_eq!((number(-1234), money(-5)), ("-1,234".to_owned(), format_decimal(-5, 2)));
    }
}
