//! What the tables hold of what a ledger counts.

use std::ops::Range;

use crate::load::scale::Scale;
use crate::target::{Connector, Failure, Session};

/// All districts, warehouse by warehouse.
pub struct Places {
    /// By warehouse, how many districts the warehouses before it have; then how many all have.
    first: Vec<usize>,
}

impl Places {
    /// Those of tables of this scale.
    pub fn new(scale: &Scale) -> Places {
        let mut first = vec![0];
        for warehouse in 1..=scale.warehouses {
            first.push(first[warehouse as usize - 1] + scale.districts(warehouse) as usize);
        }
        Places { first }
    }

    /// How many districts there are.
    pub fn districts(&self) -> usize {
        self.first[self.warehouses()]
    }

    /// How many warehouses there are.
    pub fn warehouses(&self) -> usize {
        self.first.len() - 1
    }

    /// Where the districts of a warehouse are, which counts from 0 here.
    pub fn of_warehouse(&self, at: usize) -> Range<usize> {
        self.first[at]..self.first[at + 1]
    }

    /// Where a district is in lists of all districts.
    pub fn at(&self, warehouse: u32, district: u32) -> usize {
        self.first[warehouse as usize - 1] + district as usize - 1
    }

    /// The same for numbers of a table; nothing if there is no such district.
    pub fn known(&self, warehouse: i64, district: i64) -> Option<usize> {
        let from = *self.first.get(usize::try_from(warehouse - 1).ok()?)?;
        let to = *self.first.get(usize::try_from(warehouse).ok()?)?;
        Some(from + usize::try_from(district - 1).ok()?).filter(|at| *at < to)
    }

    /// What people call one of the districts.
    pub fn name(&self, at: usize) -> String {
        let warehouse = self.first.partition_point(|first| *first <= at);
        format!("warehouse {warehouse}, district {}", at - self.first[warehouse - 1] + 1)
    }
}

/// What the tables hold, by district or warehouse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    pub payments: Vec<i64>,
    pub paid_cents: Vec<i64>,
    pub orders: Vec<i64>,
    pub deliveries: Vec<i64>,
    pub d_ytd_cents: Vec<i64>,
    pub w_ytd_cents: Vec<i64>,
}

impl Tables {
    /// Reads them.
    pub async fn read(connector: &Connector, places: &Places) -> Result<Tables, Failure> {
        let mut session = connector.upkeep().connect(0).await?;
        let (districts, warehouses) = (places.districts(), places.warehouses());
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
                && let Some(at) = places.known(warehouse, district)
            {
                (tables.payments[at], tables.paid_cents[at]) = (payments, cents);
            }
        }
        let query =
            "SELECT o_w_id, o_d_id, COUNT(*), COUNT(o_carrier_id) FROM orders GROUP BY o_w_id, o_d_id";
        for row in numbers(&mut session, query, 4).await? {
            if let [warehouse, district, orders, delivered] = row[..]
                && let Some(at) = places.known(warehouse, district)
            {
                (tables.orders[at], tables.deliveries[at]) = (orders, delivered);
            }
        }
        for row in numbers(&mut session, "SELECT d_w_id, d_id, d_ytd FROM district", 2).await? {
            if let [warehouse, district, cents] = row[..]
                && let Some(at) = places.known(warehouse, district)
            {
                tables.d_ytd_cents[at] = cents;
            }
        }
        for row in numbers(&mut session, "SELECT w_id, w_ytd FROM warehouse", 1).await? {
            if let [warehouse, cents] = row[..]
                && places.known(warehouse, 1).is_some()
            {
                tables.w_ytd_cents[warehouse as usize - 1] = cents;
            }
        }
        Ok(tables)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_cent() {
        let read = ["12", "12.5", "-12.50", "0.01", "12.3400", "1.234", "x", "1e3"].map(in_hundredths);
        assert_eq!(read, [Some(1200), Some(1250), Some(-1250), Some(1), Some(1234), None, None, None]);
    }
}
