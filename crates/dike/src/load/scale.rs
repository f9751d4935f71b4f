//! How much of everything there is: TPC-C's cardinalities, evenly or by Zipf's law (paper §4.3.1).
//!
//! Districts are what is skewed, and with them customers, orders and their lines; stock is not,
//! every warehouse has every item. There are S = 10 W districts in all. Warehouse k of W has the
//! share
//!
//! ```text
//!   f(k) = k^-s / (1^-s + 2^-s + ... + W^-s)
//! ```
//!
//! of them. Shares are made whole by their largest remainders, after each warehouse has got one: a
//! warehouse without a district could serve no transaction. So the districts always add up to S.
//! With W = 4 and s = 1.5, each has one and the other 36 are shared as 21.54, 7.62, 4.15, 2.69:
//! whole parts 21, 7, 4, 2 are 34, and the two largest remainders, .69 and .62, get one more.
//! Together with the first one of each: 22, 9, 5, 4.

use std::sync::Arc;

use crate::config::Data;

/// Districts of a warehouse, on average (clause 1.2.1).
pub const DISTRICTS: u32 = 10;
/// What every customer has paid at load, in cents.
pub const LOADED_PAYMENT_CENTS: i64 = 1000;

/// How much of everything there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses, numbered from 1.
    pub warehouses: u32,
    /// Items, numbered from 1.
    pub items: u32,
    /// Customers of a district, and its orders at load.
    pub customers: u32,
    /// Seed of all rows.
    pub seed: u64,
    /// By warehouse, from 1 at position 0.
    districts: Arc<[u32]>,
}

impl Scale {
    /// The scale of this configuration.
    pub fn new(data: &Data) -> Scale {
        Scale {
            warehouses: data.warehouses,
            items: data.items,
            customers: data.customers_per_district,
            seed: data.seed,
            districts: districts(data.warehouses, data.district_skew).into(),
        }
    }

    /// Districts of a warehouse.
    pub fn districts(&self, warehouse: u32) -> u32 {
        self.districts[warehouse as usize - 1]
    }

    /// Orders of a district that are delivered at load: 2,100 of 3,000.
    pub fn delivered(&self) -> u32 {
        self.customers * 7 / 10
    }

    /// How many different last names there are.
    pub fn last_names(&self) -> u32 {
        self.customers.min(1000)
    }

    /// Rows of all tables at load, but for order lines, of which there are ten per order on
    /// average.
    pub fn rows(&self) -> u64 {
        let districts: u64 = self.districts.iter().map(|&districts| u64::from(districts)).sum();
        let (customers, items) = (u64::from(self.customers), u64::from(self.items));
        let undelivered = u64::from(self.customers - self.delivered());
        items + u64::from(self.warehouses) * (1 + items) + districts * (1 + customers * 13 + undelivered)
    }
}

/// By warehouse, its districts.
fn districts(warehouses: u32, skew: f64) -> Vec<u32> {
    if skew == 0.0 {
        return vec![DISTRICTS; warehouses as usize];
    }
    let shares: Vec<f64> = (1..=warehouses).map(|k| f64::from(k).powf(-skew)).collect();
    let total: f64 = shares.iter().sum();
    let shared = warehouses * (DISTRICTS - 1);
    let exact: Vec<f64> = shares.iter().map(|share| share / total * f64::from(shared)).collect();
    let mut districts: Vec<u32> = exact.iter().map(|share| 1 + share.floor() as u32).collect();
    let mut by_remainder: Vec<usize> = (0..exact.len()).collect();
    // A stable sort: of equal remainders the larger warehouse is first.
    by_remainder.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = warehouses * DISTRICTS - districts.iter().sum::<u32>();
    for &warehouse in by_remainder.iter().take(missing as usize) {
        districts[warehouse] += 1;
    }
    districts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skewed_districts_add_up_and_fall_with_their_rank() {
        assert_eq!(districts(3, 0.0), [10, 10, 10]);
        assert_eq!(districts(4, 1.5), [22, 9, 5, 4]);
        for (warehouses, skew) in [(1, 1.5), (4, 0.99), (180, 1.5), (180, 0.99), (1000, 0.3), (50, 5.0)] {
            let districts = districts(warehouses, skew);
            assert_eq!(districts.iter().sum::<u32>(), warehouses * DISTRICTS, "{warehouses} {skew}");
            assert!(districts.is_sorted_by(|a, b| a >= b), "{warehouses} {skew}");
            assert!(districts.iter().all(|&districts| districts >= 1));
        }
        // Zipf's law: with s = 0.99 the first of 180 warehouses has 1 / 5.91 of all, beside the one
        // that each has.
        let skewed = districts(180, 0.99);
        assert!((274..277).contains(&skewed[0]), "{}", skewed[0]);
    }
}
