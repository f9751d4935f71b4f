//! Stock-Level (clause 2.8), read-only: how many of the items in a district's last 20 orders run
//! low.
//!
//! The DST paper varies it: one transaction looks at k districts, drawn from all warehouses if k is
//! not 1. Each district is a piece of three stages: the district's next order number; the lines of
//! its last orders; the stocks of the distinct items in them, in a spread warehouse a piece for
//! each slot they are in. The counts are added up.

use std::ops::{ControlFlow, Range};

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::new_order::LINES_MAX;
use super::schema::*;
use super::{Client, DISTRICTS, Tpcc};

/// Most districts that one transaction looks at.
pub const DISTRICTS_MAX: usize = 20;

/// A Stock-Level transaction.
#[derive(Clone, Debug)]
pub struct StockLevel {
    layout: Layout,
    /// A stock below this is low.
    threshold: i32,
    /// How many orders to look at in each district.
    orders: u32,
    district_count: u8,
    /// Warehouse and district.
    districts: [(u32, u8); DISTRICTS_MAX],
    /// What is known of each district.
    seen: [Seen; DISTRICTS_MAX],
    /// The distinct items of all districts, one after the other. The one allocation on a
    /// transaction's path: there may be 6,000.
    items: Vec<u32>,
    /// The pieces of the last stage if warehouses are spread.
    parts: Vec<Part>,
}

/// The items of a district whose stocks share a slot.
#[derive(Clone, Debug)]
struct Part {
    /// The position of the district.
    district: u8,
    /// Positions in `items`.
    items: Range<u32>,
    /// How many of them run low.
    low: u32,
}

/// What is known of a district.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    next_o_id: u32,
    /// Its distinct items, positions in `items`.
    first_item: u32,
    end_item: u32,
    /// How many of them run low, unless they are counted by slot.
    low: u32,
}

impl StockLevel {
    /// Draws the inputs (clause 2.8.1, and the DST paper for more than one district).
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> StockLevel {
        let home = client.home();
        let parameters = &tpcc.parameters;
        let rng = &mut client.rng;
        let count = parameters.stock_level_districts;
        let mut districts = [(home.warehouse, 1); DISTRICTS_MAX];
        for (warehouse, district) in &mut districts[..count as usize] {
            if count > 1 {
                *warehouse = rng.uniform(1..=u64::from(parameters.warehouses)) as u32;
                *district = rng.uniform(1..=u64::from(DISTRICTS)) as u8;
            } else {
                *district = home.district(rng);
            }
        }
        StockLevel {
            layout: tpcc.layout(),
            threshold: rng.uniform(10..=20) as i32,
            orders: parameters.stock_level_orders,
            district_count: count as u8,
            districts,
            seen: [Seen::default(); DISTRICTS_MAX],
            items: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The lines of a district's last orders.
    #[inline]
    fn last_lines(&self, number: usize) -> Scan {
        let (w, d) = self.districts[number];
        let next = self.seen[number].next_o_id;
        let first = next.saturating_sub(self.orders);
        Scan::range(ORDER_LINE.row(), keys::order(w, d, first), keys::order(w, d, next))
    }

    /// The position of a piece's district.
    #[inline]
    fn district_of(&self, piece: Piece) -> usize {
        match self.layout.spread && piece.stage == 2 {
            false => piece.number,
            true => self.parts[piece.number].district.into(),
        }
    }

    /// The items whose stocks a piece looks at.
    #[inline]
    fn items(&self, piece: Piece) -> &[u32] {
        let items = match self.layout.spread {
            false => self.seen[piece.number].first_item..self.seen[piece.number].end_item,
            true => self.parts[piece.number].items.clone(),
        };
        &self.items[items.start as usize..items.end as usize]
    }

    /// Puts the items of a district in the order of their slots, and notes which share one.
    fn part(&mut self, number: usize) {
        let Seen { first_item, end_item, .. } = self.seen[number];
        let slot = |item: &u32| item % u32::from(STOCK_PARTS);
        let items = &mut self.items[first_item as usize..end_item as usize];
        items.sort_unstable_by_key(|item| (slot(item), *item));
        let mut start = first_item;
        for part in items.chunk_by(|a, b| slot(a) == slot(b)) {
            let end = start + part.len() as u32;
            self.parts.push(Part { district: number as u8, items: start..end, low: 0 });
            start = end;
        }
    }

    /// Output: how many stocks run low.
    pub fn low_stocks(&self) -> u32 {
        let by_district: u32 =
            self.seen[..usize::from(self.district_count)].iter().map(|seen| seen.low).sum();
        by_district + self.parts.iter().map(|part| part.low).sum::<u32>()
    }
}

impl Procedure for StockLevel {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match stage {
            2 if self.layout.spread => self.parts.len(),
            0..=2 => self.district_count.into(),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        let (w, d) = self.districts[self.district_of(piece)];
        match piece.stage {
            2 if self.layout.spread => self.layout.stock_slot(w, self.items(piece)[0]),
            _ => self.layout.district_slot(w, d),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (w, d) = self.districts[self.district_of(piece)];
        match piece.stage {
            0 => reads.get(self.layout.column::<DistrictNext>(), keys::district(w, d)),
            1 => reads.scan(self.last_lines(piece.number)),
            _ => {
                let column = self.layout.column::<StockQuantity>();
                for &item in self.items(piece) {
                    reads.get(column, keys::stock(w, item));
                }
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let (w, d) = self.districts[self.district_of(piece)];
        match piece.stage {
            0 => {
                self.items.clear();
                self.parts.clear();
                let key = keys::district(w, d);
                let next_o_id = layout.read(access, &key, |row: &DistrictNext, _| row.next_o_id.get())?;
                self.seen[piece.number] = Seen { next_o_id, ..Seen::default() };
            }
            1 => {
                let scan = self.last_lines(piece.number);
                let items = &mut self.items;
                if items.capacity() == 0 {
                    let orders = self.orders as usize * usize::from(self.district_count);
                    items.reserve_exact(orders * LINES_MAX);
                }
                let first = items.len();
                access.scan(&scan, |_, record| {
                    items.push(layout.view::<OrderLine>(record).0.item.get());
                    ControlFlow::Continue(())
                })?;
                let distinct = sort_and_deduplicate(&mut items[first..]);
                items.truncate(first + distinct);
                let seen = &mut self.seen[piece.number];
                (seen.first_item, seen.end_item) = (first as u32, (first + distinct) as u32);
                if layout.spread {
                    self.part(piece.number);
                }
            }
            _ => {
                let mut low = 0;
                let stock = |&item| keys::stock(w, item);
                access.expect(layout.column::<StockQuantity>(), self.items(piece).iter().map(stock));
                for item in self.items(piece) {
                    let quantity =
                        layout.read(access, &stock(item), |row: &StockQuantity, _| row.quantity.get())?;
                    low += u32::from(quantity < self.threshold);
                }
                match layout.spread {
                    false => self.seen[piece.number].low = low,
                    true => self.parts[piece.number].low = low,
                }
            }
        }
        Ok(())
    }
}

/// Sorts and moves the distinct numbers to the front; returns how many there are.
fn sort_and_deduplicate(numbers: &mut [u32]) -> usize {
    numbers.sort_unstable();
    let mut distinct = 0;
    for at in 0..numbers.len() {
        if at == 0 || numbers[at] != numbers[at - 1] {
            numbers[distinct] = numbers[at];
            distinct += 1;
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_occur_twice_count_once() {
        let distinct = |mut numbers: Vec<u32>| {
            let count = sort_and_deduplicate(&mut numbers);
            numbers.truncate(count);
            numbers
        };
        assert_eq!(distinct(vec![3, 1, 3, 2, 1, 1]), [1, 2, 3]);
        assert_eq!(distinct(vec![]), [0; 0]);
        assert_eq!(distinct(vec![5, 5]), [5]);
    }
}
