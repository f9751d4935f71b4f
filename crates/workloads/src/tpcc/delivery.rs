//! Delivery (clause 2.7): a carrier takes the oldest waiting order of each of a warehouse's ten
//! districts.
//!
//! One transaction for all districts, inline. Stages, all at home: find and delete the oldest rows
//! of NEW-ORDER; the orders and their lines; the customers. A district with no waiting order is
//! skipped and counted.
//!
//! In a spread warehouse a transaction delivers in one district, which clause 2.7 allows: ten
//! pieces that all execute when they start, on different servers, are a cycle that ROCOCO cannot
//! repair, and the definitions are the same for all.

use std::ops::ControlFlow;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::shipped::Items;
use plimsoll_types::{Abort, Slot};
use zerocopy::{FromZeros, IntoBytes};

use super::new_order::LINES_MAX;
use super::order_status::order_lines;
use super::schema::*;
use super::{Client, DISTRICTS, Tpcc, new_order, payment};

/// A Delivery transaction.
#[derive(Clone, Debug)]
pub struct Delivery {
    layout: Layout,
    warehouse: u32,
    /// The only district, or 0 for all.
    district: u8,
    /// O_CARRIER_ID.
    carrier: u8,
    /// OL_DELIVERY_D.
    date: u32,
    /// Output: what is delivered, by district.
    delivered: [Delivered; DISTRICTS as usize],
}

/// What is delivered in a district.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    /// 0 if no order waits.
    order: u32,
    customer: u32,
    /// Sum of OL_AMOUNT in cents.
    amount: i64,
}

impl Delivery {
    /// Draws the inputs (clause 2.7.1).
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> Delivery {
        let home = client.home();
        let date = client.tick();
        let layout = tpcc.layout();
        Delivery {
            layout,
            warehouse: home.warehouse,
            district: if layout.spread { home.district(&mut client.rng) } else { 0 },
            carrier: client.rng.uniform(1..=10) as u8,
            date,
            delivered: [Delivered::default(); DISTRICTS as usize],
        }
    }

    /// The districts it delivers in.
    #[inline]
    pub(super) fn districts(&self) -> std::ops::Range<u8> {
        match self.district {
            0 => 1..DISTRICTS + 1,
            d => d..d + 1,
        }
    }

    #[inline]
    fn oldest(&self, d: u8) -> Scan {
        let (low, high) = (keys::district(self.warehouse, d), keys::district(self.warehouse, d + 1));
        Scan::range(NEW_ORDER.row(), low, high).limit(1)
    }

    /// The districts with an order that waits.
    #[inline]
    fn waiting(&self) -> impl Iterator<Item = (u8, Delivered)> + use<> {
        (1..).zip(self.delivered).filter(|(_, delivered)| delivered.order > 0)
    }

    /// Sets O_CARRIER_ID and OL_DELIVERY_D.
    #[inline]
    fn deliver<A: Access>(&mut self, d: u8, o: u32, access: &mut A) -> Result<(), Abort> {
        let key = keys::order(self.warehouse, d, o);
        // NEW-ORDER has promised the order: without it, this is not a consistent state.
        let mut order = self.layout.find::<Order, A>(access, &key)?.ok_or(Abort::Validation)?;
        order.carrier = self.carrier;
        access.put(ORDER.row(), &key, order.as_bytes())?;

        let mut lines = [(0, OrderLine::new_zeroed()); LINES_MAX];
        let mut count = 0;
        let layout = self.layout;
        access.scan(&order_lines(self.warehouse, d, o), |key, record| {
            let Some(line) = lines.get_mut(count) else { return ControlFlow::Break(()) };
            *line = (keys::number_of_line(key), *layout.view::<OrderLine>(record).0);
            count += 1;
            ControlFlow::Continue(())
        })?;
        let mut amount = 0;
        for (number, line) in &mut lines[..count] {
            amount += i64::from(line.amount.get());
            line.delivered = self.date.into();
            let key = keys::order_line(self.warehouse, d, o, *number);
            access.put(ORDER_LINE.row(), &key, line.as_bytes())?;
        }
        self.delivered[usize::from(d - 1)] = Delivered { order: o, customer: order.c.get(), amount };
        Ok(())
    }

    /// Output of a committed transaction: how many orders were delivered.
    pub fn orders(&self) -> usize {
        self.waiting().count()
    }

    /// Output of a committed transaction: the sum of what customers were charged, in cents.
    pub fn amount(&self) -> i64 {
        self.waiting().map(|(_, delivered)| delivered.amount).sum()
    }
}

impl Procedure for Delivery {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match stage {
            0 => 1,
            1 | 2 => usize::from(self.waiting().next().is_some()),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, _: Piece) -> Slot {
        self.layout.district_slot(self.warehouse, self.district)
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let w = self.warehouse;
        match piece.stage {
            0 => self.districts().for_each(|d| reads.scan_for_update(self.oldest(d))),
            1 => {
                for (d, Delivered { order, .. }) in self.waiting() {
                    reads.update(ORDER.row(), keys::order(w, d, order));
                    reads.scan_for_update(order_lines(w, d, order));
                }
            }
            _ => {
                let column = self.layout.column::<CustomerBalance>();
                for (d, Delivered { customer, .. }) in self.waiting() {
                    reads.update(column, keys::customer(w, d, customer));
                }
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let w = self.warehouse;
        match piece.stage {
            0 => {
                for d in self.districts() {
                    let mut order = 0;
                    access.scan(&self.oldest(d), |key, _| {
                        order = keys::order_of(key);
                        ControlFlow::Break(())
                    })?;
                    if order > 0 {
                        access.delete(NEW_ORDER, &keys::order(w, d, order))?;
                    }
                    self.delivered[usize::from(d - 1)] = Delivered { order, ..Delivered::default() };
                }
            }
            1 => {
                for (d, Delivered { order, .. }) in self.waiting() {
                    self.deliver(d, order, access)?;
                }
            }
            _ => {
                for (d, Delivered { customer, amount, .. }) in self.waiting() {
                    let key = keys::customer(w, d, customer);
                    self.layout.update(access, &key, |row: &mut CustomerBalance| {
                        row.balance += amount;
                        row.deliveries += 1;
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// How it is cut: not at all.
pub(super) fn pieces(layout: Layout) -> [PieceType; 1] {
    [PieceType::new("delivery", "deliver", 0).scans().writes([
        NEW_ORDER.row(),
        ORDER.row(),
        ORDER_LINE.row(),
        layout.column::<CustomerBalance>(),
    ])]
}

impl Delivery {
    pub(super) fn piece_type(&self) -> usize {
        new_order::piece_types(self.layout) + payment::piece_types(self.layout)
    }

    pub(super) fn items(&self, piece: Piece, items: &mut Items) {
        let w = self.warehouse;
        match piece.stage {
            0 => self.districts().for_each(|d| items.write(NEW_ORDER.row(), keys::district(w, d))),
            1 => self.waiting().for_each(|(d, _)| {
                items.write(ORDER.row(), keys::district(w, d));
                items.write(ORDER_LINE.row(), keys::district(w, d));
            }),
            _ => {
                let column = self.layout.column::<CustomerBalance>();
                for (d, Delivered { customer, .. }) in self.waiting() {
                    items.write(column, keys::customer(w, d, customer));
                }
            }
        }
    }

    pub(super) fn absorb(&mut self, executed: &Delivery) {
        self.delivered = executed.delivered;
    }

    /// Whether its numbers agree, wherever it comes from.
    pub(super) fn is_sound(&self) -> bool {
        self.district <= DISTRICTS && (self.district > 0) == self.layout.spread
    }
}

plimsoll_types::wire!(struct Delivered { order, customer, amount });
plimsoll_types::wire!(struct Delivery { layout, warehouse, district, carrier, date, delivered });
