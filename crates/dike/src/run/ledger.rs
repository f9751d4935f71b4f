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

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::load::scale::Scale;
use crate::metrics::document::{Check, Kept};
use crate::report::units::thousands;
use crate::target::{Cause, Connector, Failure, Session, format_decimal};
use crate::transactions::{BALANCE_STEP_CENTS, Done, Input};

/// The check that a run's document has for it.
pub const NAME: &str = "what clients were told is in the tables";

/// Payments in doubt in one district up to which their sums are tried one by one.
const COMBINED_MAX: usize = 12;
/// Places that an unequal count names.
const SHOWN: usize = 3;

/// What clients were told. Terminals share it.
pub struct Ledger {
    /// By warehouse, how many districts the warehouses before it have; then how many all have.
    first: Vec<usize>,
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

/// What the tables hold, by district or warehouse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    payments: Vec<i64>,
    paid_cents: Vec<i64>,
    orders: Vec<i64>,
    deliveries: Vec<i64>,
    d_ytd_cents: Vec<i64>,
    w_ytd_cents: Vec<i64>,
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
        let mut first = vec![0];
        for warehouse in 1..=scale.warehouses {
            first.push(first[warehouse as usize - 1] + scale.districts(warehouse) as usize);
        }
        Ledger {
            districts: (0..first[first.len() - 1]).map(|_| Told::default()).collect(),
            steps: (0..scale.warehouses).map(|_| AtomicI64::new(0)).collect(),
            first,
            in_doubt: Mutex::new(Vec::new()),
        }
    }

    /// An attempt of a transaction begins.
    pub fn begin<'a>(&'a self, input: &'a Input) -> UnderWay<'a> {
        UnderWay { ledger: self, input: Some(input) }
    }

    fn committed(&self, input: &Input, delivered: &[u32]) {
        let of = |warehouse, district| &self.districts[self.at(warehouse, district)];
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

    /// Where a district is in the lists.
    fn at(&self, warehouse: u32, district: u32) -> usize {
        self.first[warehouse as usize - 1] + district as usize - 1
    }

    /// The same for numbers of a table; nothing if there is no such district.
    fn known(&self, warehouse: i64, district: i64) -> Option<usize> {
        let from = *self.first.get(usize::try_from(warehouse - 1).ok()?)?;
        let to = *self.first.get(usize::try_from(warehouse).ok()?)?;
        Some(from + usize::try_from(district - 1).ok()?).filter(|at| *at < to)
    }

    /// Reads what the tables hold. Nothing else should change them meanwhile.
    pub async fn read(&self, connector: &Connector) -> Result<Tables, Failure> {
        let mut session = connector.upkeep().connect(0).await?;
        let (districts, warehouses) = (self.districts.len(), self.steps.len());
        let mut tables = Tables {
            payments: vec![0; districts],
            paid_cents: vec![0; districts],
            orders: vec![0; districts],
            deliveries: vec![0; districts],
            d_ytd_cents: vec![0; districts],
            w_ytd_cents: vec![0; warehouses],
        };
        let query = "SELECT h_w_id, h_d_id, COUNT(*), SUM(h_amount) FROM history GROUP BY h_w_id, h_d_id";
        for row in numbers(&mut session, query, 3).await? {
            if let [warehouse, district, payments, cents] = row[..]
                && let Some(at) = self.known(warehouse, district)
            {
                (tables.payments[at], tables.paid_cents[at]) = (payments, cents);
            }
        }
        let query =
            "SELECT o_w_id, o_d_id, COUNT(*), COUNT(o_carrier_id) FROM orders GROUP BY o_w_id, o_d_id";
        for row in numbers(&mut session, query, 4).await? {
            if let [warehouse, district, orders, delivered] = row[..]
                && let Some(at) = self.known(warehouse, district)
            {
                (tables.orders[at], tables.deliveries[at]) = (orders, delivered);
            }
        }
        for row in numbers(&mut session, "SELECT d_w_id, d_id, d_ytd FROM district", 2).await? {
            if let [warehouse, district, cents] = row[..]
                && let Some(at) = self.known(warehouse, district)
            {
                tables.d_ytd_cents[at] = cents;
            }
        }
        for row in numbers(&mut session, "SELECT w_id, w_ytd FROM warehouse", 1).await? {
            if let [warehouse, cents] = row[..]
                && self.known(warehouse, 1).is_some()
            {
                tables.w_ytd_cents[warehouse as usize - 1] = cents;
            }
        }
        Ok(tables)
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
                Input::NewOrder(input) => orders[self.at(input.warehouse, input.district)] += 1,
                Input::Payment(input) => {
                    cents_in_doubt[self.at(input.warehouse, input.district)].push(input.cents);
                    w_ytd_in_doubt[input.warehouse as usize - 1] += input.cents;
                }
                // A district without an order to deliver is skipped.
                Input::Delivery(input) => (1..=input.districts)
                    .for_each(|district| deliveries[self.at(input.warehouse, district)] += 1),
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
                    place: self.place(at),
                    told: told(&self.districts[at]).load(Relaxed),
                    in_doubt: in_doubt[at],
                    found: after[at] - before[at],
                };
                (0..districts).map(count).collect::<Vec<Count>>()
            };
        let of_warehouse = |at: usize| {
            let paid = self.districts[self.first[at]..self.first[at + 1]].iter();
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
        let mixed: Vec<String> = mixed.map(|at| self.place(at)).take(SHOWN).collect();
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

    fn place(&self, at: usize) -> String {
        let warehouse = self.first.partition_point(|first| *first <= at);
        format!("warehouse {warehouse}, district {}", at - self.first[warehouse - 1] + 1)
    }
}

fn add(count: &AtomicI64, more: i64) {
    count.fetch_add(more, Relaxed);
}

/// The check if there is nothing to compare.
pub fn not_compared(why: &str) -> Check {
    Check { name: NAME.to_owned(), ok: false, detail: format!("it could not be compared: {why}") }
}

/// Rows of `whole` integers and then amounts of money, in cents. NULL is 0.
async fn numbers(session: &mut Session, query: &str, whole: usize) -> Result<Vec<Vec<i64>>, Failure> {
    let number = |(at, value): (usize, &Option<String>)| match value.as_deref() {
        None => Some(0),
        Some(text) if at < whole => text.parse().ok(),
        Some(text) => in_hundredths(text),
    };
    let rows = session.text(query).await?;
    let rows = rows.iter().map(|row| row.iter().enumerate().map(number).collect::<Option<Vec<i64>>>());
    rows.collect::<Option<_>>()
        .ok_or_else(|| Failure::unexpected(format!("{query} answered with no numbers")))
}

/// `12.5` is 1250. More than two decimals are no amount of money.
fn in_hundredths(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let value = whole.parse::<i64>().ok()?.checked_mul(100)?;
    let hundredths = match part.len() {
        0 => 0,
        1 => 10 * part.parse::<i64>().ok()?,
        2 => part.parse().ok()?,
        _ => return None,
    };
    let value = value.checked_add(hundredths)?;
    Some(if negative { -value } else { value })
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
    fn amounts_are_read_to_the_cent() {
        let read = ["12", "12.5", "-12.50", "0.01", "12.3400", "1.234", "x", "1e3"].map(in_hundredths);
        assert_eq!(read, [Some(1200), Some(1250), Some(-1250), Some(1), Some(1234), None, None, None]);
        assert_eq!((number(-1234), money(-5)), ("-1,234".to_owned(), format_decimal(-5, 2)));
    }
}
