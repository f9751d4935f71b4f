//! Order-Status (clause 2.6), read-only: what a customer's newest order has become.
//!
//! Stages, all at home: find the customer if only the last name is known; the customer and its
//! newest order's number; the order and its lines.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::new_order::LINES_MAX;
use super::payment::Chosen;
use super::schema::*;
use super::{Client, Tpcc};

/// An Order-Status transaction.
#[derive(Clone, Debug)]
pub struct OrderStatus {
    layout: Layout,
    district: u8,
    warehouse: u32,
    chosen: Chosen,
    /// Output: the customer's number.
    customer: u32,
    /// Output: C_FIRST and C_LAST.
    name: [[u8; 16]; 2],
    /// Output: the newest order's number, 0 if there is none.
    order: u32,
    /// Output: O_ENTRY_D.
    entered: u32,
    /// Output: O_CARRIER_ID, 0 for null.
    carrier: u8,
    /// Output: how many lines there are.
    line_count: u8,
    /// Output: C_BALANCE in cents.
    balance: i64,
    /// Output: the lines.
    lines: [StatusLine; LINES_MAX],
}

/// What Order-Status shows of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusLine {
    /// OL_I_ID.
    pub item: u32,
    /// OL_SUPPLY_W_ID.
    pub supply_w: u32,
    /// OL_DELIVERY_D, 0 for null.
    pub delivered: u32,
    /// OL_AMOUNT in cents.
    pub amount: i32,
    /// OL_QUANTITY.
    pub quantity: u8,
}

impl OrderStatus {
    /// Draws the inputs (clause 2.6.1).
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> OrderStatus {
        let home = client.home();
        OrderStatus {
            layout: tpcc.layout(),
            district: home.district(&mut client.rng),
            warehouse: home.warehouse,
            chosen: Chosen::draw(tpcc, client),
            customer: 0,
            name: [[0; 16]; 2],
            order: 0,
            entered: 0,
            carrier: 0,
            line_count: 0,
            balance: 0,
            lines: [StatusLine::default(); LINES_MAX],
        }
    }

    /// The position of a stage if all customers were chosen by name.
    #[inline]
    fn step(&self, stage: usize) -> usize {
        stage + usize::from(!self.chosen.by_name())
    }

    #[inline]
    fn newest_order(&self) -> Scan {
        let (w, d) = (self.warehouse, self.district);
        let customer = self.chosen.number().unwrap_or(self.customer);
        let (low, high) = (keys::customer(w, d, customer), keys::customer(w, d, customer + 1));
        Scan::range(CUSTOMER_ORDER.row(), low, high).limit(1)
    }

    #[inline]
    fn order_lines(&self) -> Scan {
        order_lines(self.warehouse, self.district, self.order)
    }

    /// Output: C_FIRST and C_LAST.
    pub fn name(&self) -> [&[u8]; 2] {
        self.name.each_ref().map(|name| unpadded(name))
    }

    /// Output: C_BALANCE in cents.
    pub fn balance(&self) -> i64 {
        self.balance
    }

    /// Output: the newest order's number, O_ENTRY_D and O_CARRIER_ID (0 for null), if there is an
    /// order.
    pub fn order(&self) -> Option<(u32, u32, u8)> {
        (self.order > 0).then_some((self.order, self.entered, self.carrier))
    }

    /// Output: the newest order's lines.
    pub fn lines(&self) -> &[StatusLine] {
        &self.lines[..usize::from(self.line_count)]
    }
}

/// The lines of an order.
#[inline]
pub(super) fn order_lines(w: u32, d: u8, o: u32) -> Scan {
    Scan::range(ORDER_LINE.row(), keys::order(w, d, o), keys::order(w, d, o + 1))
}

impl Procedure for OrderStatus {
    fn read_only(&self) -> bool {
        true
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match self.step(stage) {
            0 | 1 => 1,
            2 => usize::from(self.order > 0),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, _: Piece) -> Slot {
        self.layout.district_slot(self.warehouse, self.district)
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (w, d) = (self.warehouse, self.district);
        match self.step(piece.stage) {
            0 => reads.scan(self.chosen.scan(w, d)),
            1 => {
                let customer = self.chosen.number().unwrap_or(self.customer);
                let key = keys::customer(w, d, customer);
                if self.layout.split {
                    reads.get(self.layout.column::<CustomerBalance>(), key.clone());
                }
                reads.get(self.layout.column::<Customer>(), key);
                reads.scan(self.newest_order());
            }
            _ => {
                reads.get(ORDER.row(), keys::order(w, d, self.order));
                reads.scan(self.order_lines());
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let (w, d) = (self.warehouse, self.district);
        match self.step(piece.stage) {
            0 => self.customer = self.chosen.find(w, d, access)?,
            1 => {
                if let Some(customer) = self.chosen.number() {
                    self.customer = customer;
                }
                let key = keys::customer(w, d, self.customer);
                self.name = self.layout.read(access, &key, |row: &Customer, _| [row.first, row.last])?;
                self.balance =
                    self.layout.read(access, &key, |row: &CustomerBalance, _| row.balance.get())?;
                let mut order = 0;
                access.scan(&self.newest_order(), |key, _| {
                    order = keys::order_of_customer(key);
                    ControlFlow::Break(())
                })?;
                self.order = order;
            }
            _ => {
                let key = keys::order(w, d, self.order);
                // The index has promised the order: without it, this is not a consistent state.
                let order = self.layout.find::<Order, A>(access, &key)?.ok_or(Abort::Validation)?;
                (self.entered, self.carrier) = (order.entered.get(), order.carrier);
                let mut count = 0;
                let (layout, lines) = (self.layout, &mut self.lines);
                access.scan(&order_lines(w, d, self.order), |_, record| {
                    let (line, _) = layout.view::<OrderLine>(record);
                    let Some(shown) = lines.get_mut(count) else { return ControlFlow::Break(()) };
                    *shown = StatusLine {
                        item: line.item.get(),
                        supply_w: line.supply_w.get(),
                        delivered: line.delivered.get(),
                        amount: line.amount.get(),
                        quantity: line.quantity,
                    };
                    count += 1;
                    ControlFlow::Continue(())
                })?;
                self.line_count = count as u8;
            }
        }
        Ok(())
    }
}
