//! Reads what the consistency conditions speak about.
//!
//! A whole audit reads one warehouse in one snapshot and streams: district by district the
//! customers, the waiting orders, then the orders in runs of 3,000 with their lines; then all
//! payments; then all stocks. Every stage is one piece, so that a coordinator of another shard
//! never fetches more than that at once; where a stage starts depends on what the stages before
//! have seen. (Of a spread warehouse payments are read district by district, and stocks in pieces
//! by slot. The first stage has a piece in every slot: whoever takes pieces of its own shard back,
//! because others turn out to be elsewhere, then starts again there, where the audit forgets what
//! it has counted.) Nothing is kept of lines; of orders a few bytes, for one run; of each customer
//! two sums that must come out as zero. [`super::conditions`] judges what was seen.
//!
//! A *glance* is the cheap audit for a running system: condition 1 for a warehouse, 2 and 3 for one
//! district, and 5, 6 and 7 for its last 20 orders and for 20 around the oldest that waits, where
//! changes happen. It leaves out 8 and 9, because payments grow without bound.

use std::ops::ControlFlow;

use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_types::{Abort, Slot};

use super::schema::*;
use super::{DISTRICTS, Parameters};
use crate::verdict::Verdict;

/// A stage of a whole audit reads so many orders, with their lines.
const ORDERS_PER_STAGE: u32 = 3000;
/// A stage reads so many payments.
const PAYMENTS_PER_STAGE: usize = 30_000;
/// A stage reads so many stocks.
const STOCKS_PER_STAGE: u32 = 1000;
/// The pieces of a stage in a spread warehouse read so many together, or one does.
const SPREAD_STOCKS_PER_STAGE: u32 = 10_000;
/// A glance looks at so many of the last orders, and at half as many on either side of the oldest
/// that waits.
const GLANCE: u32 = 20;

/// An audit of one warehouse.
#[derive(Clone, Debug)]
pub struct Audit {
    layout: Layout,
    pub(super) customers: u32,
    items: u32,
    /// Orders that were delivered at load, per district.
    pub(super) delivered_at_load: u32,
    pub(super) warehouse: u32,
    /// Only a glance at this district, or the whole warehouse.
    pub(super) glance: Option<u8>,
    /// The stages so far, and the next one.
    steps: Vec<Step>,
    pub(super) seen: Seen,
    /// By district and number; empty in a glance.
    pub(super) customers_seen: Vec<CustomerSeen>,
    /// What customers of other warehouses paid here: warehouse, district and number, amount in
    /// cents.
    pub(super) strangers_paid: Vec<((u32, u8, u32), i64)>,
    /// What the current stage has seen of customers, by position. It counts once the stage is
    /// complete.
    changes: Vec<(usize, CustomerSeen)>,
}

/// What a stage reads.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The warehouse's and the districts' totals and the next order numbers. If the warehouse is
    /// spread, these are pieces of their own, and one that reads nothing for each slot of the
    /// stocks.
    Totals,
    /// A district's customers.
    Customers { d: u8 },
    /// A district's waiting orders.
    NewOrders { d: u8 },
    /// A district's orders from `low` to below `high`, or to the last.
    Orders { d: u8, low: u32, high: Option<u32> },
    /// Payments, from a payer's number on, to a district if the warehouse is spread.
    Payments { d: u8, payer: u16, number: u64 },
    /// Stocks, from an item on; if the warehouse is spread those in the slots of this item and of
    /// some that follow.
    Stocks { item: u32 },
}

/// What an audit has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Customers and stocks that are not there.
    pub(super) missing: Verdict,
    /// W_YTD.
    pub(super) ytd: i64,
    /// Whether the row of the warehouse, and those of the districts, are not there.
    pub(super) absent: [bool; 1 + DISTRICTS as usize],
    pub(super) districts: [DistrictSeen; DISTRICTS as usize],
    /// Number of payments.
    pub(super) payments: u64,
    /// Sum of H_AMOUNT.
    pub(super) paid: i64,
    /// Where the last stage of payments ended, if there may be more.
    pub(super) last_payment: Option<(u16, u64)>,
    /// Sums of S_YTD, S_ORDER_CNT and S_REMOTE_CNT.
    pub(super) stock_ytd: u64,
    pub(super) stock_orders: u64,
    pub(super) stock_remote_orders: u64,
    /// Whether 10 <= S_QUANTITY <= 100.
    pub(super) stock_range: Verdict,
    /// Conditions 5, 6 and 7.
    pub(super) waiting_orders: Verdict,
    pub(super) line_counts: Verdict,
    pub(super) delivery_dates: Verdict,
}

/// What an audit has seen of a district.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DistrictSeen {
    pub(super) next_o_id: u32,
    /// D_YTD.
    pub(super) ytd: i64,
    /// Sum of H_AMOUNT.
    pub(super) paid: i64,
    /// Number of orders, and the largest.
    pub(super) orders: u64,
    pub(super) last_order: u32,
    /// Orders with a carrier.
    pub(super) carried: u64,
    /// Sum of O_OL_CNT, and number of lines.
    pub(super) lines_promised: u64,
    pub(super) lines: u64,
    /// Number of waiting orders, the smallest and the largest.
    pub(super) waiting: u64,
    pub(super) first_waiting: u32,
    pub(super) last_waiting: u32,
    /// Sums of C_DELIVERY_CNT, C_PAYMENT_CNT and C_BALANCE + C_YTD_PAYMENT.
    pub(super) deliveries: u64,
    pub(super) payments: u64,
    pub(super) charged: i64,
}

/// What must come out as zero for a customer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CustomerSeen {
    /// C_BALANCE - delivered lines + payments.
    pub(super) condition_10: i64,
    /// C_BALANCE + C_YTD_PAYMENT - delivered lines.
    pub(super) condition_12: i64,
}

/// An order while its lines go by.
struct OrderSeen {
    o: u32,
    c: u32,
    carrier: bool,
    waiting: bool,
    lines_promised: u8,
    lines: u64,
    /// Sum of the delivered lines in cents.
    delivered: i64,
}

impl Audit {
    /// An audit of a whole warehouse.
    pub(super) fn whole(parameters: &Parameters, warehouse: u32) -> Audit {
        Audit {
            layout: parameters.layout(),
            customers: parameters.customers_per_district,
            items: parameters.items,
            delivered_at_load: parameters.delivered_orders(),
            warehouse,
            glance: None,
            steps: vec![Step::Totals],
            seen: Seen::default(),
            customers_seen: Vec::new(),
            strangers_paid: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// A glance at a district.
    pub(super) fn glance(parameters: &Parameters, warehouse: u32, district: u8) -> Audit {
        Audit { glance: Some(district), ..Audit::whole(parameters, warehouse) }
    }

    /// The step after `step`, which has been taken.
    fn after(&self, step: Step) -> Option<Step> {
        let orders = |d: u8, low: u32| {
            let high = low + ORDERS_PER_STAGE;
            let more = high < self.seen.districts[usize::from(d - 1)].next_o_id;
            Some(Step::Orders { d, low, high: more.then_some(high) })
        };
        match (step, self.glance) {
            (_, Some(d)) => self.after_glance(step, d),
            (Step::Totals, None) => Some(Step::Customers { d: 1 }),
            (Step::Customers { d }, None) => Some(Step::NewOrders { d }),
            (Step::NewOrders { d }, None) => orders(d, 0),
            (Step::Orders { d, high: Some(high), .. }, None) => orders(d, high),
            (Step::Orders { d: DISTRICTS, high: None, .. }, None) => {
                Some(Step::Payments { d: 1, payer: 0, number: 0 })
            }
            (Step::Orders { d, high: None, .. }, None) => Some(Step::Customers { d: d + 1 }),
            (Step::Payments { d, .. }, None) => Some(match self.seen.last_payment {
                Some((payer, number)) => Step::Payments { d, payer, number: number + 1 },
                None if self.layout.spread && d < DISTRICTS => {
                    Step::Payments { d: d + 1, payer: 0, number: 0 }
                }
                None => Step::Stocks { item: 1 },
            }),
            (Step::Stocks { item }, None) => {
                let (item, last) = match self.layout.spread {
                    false => (item + STOCKS_PER_STAGE, self.items),
                    true => (item + self.stock_pieces(item), self.items.min(STOCK_PARTS.into())),
                };
                (item <= last).then_some(Step::Stocks { item })
            }
        }
    }

    fn after_glance(&self, step: Step, d: u8) -> Option<Step> {
        let district = &self.seen.districts[usize::from(d - 1)];
        match step {
            Step::Totals => Some(Step::NewOrders { d }),
            Step::NewOrders { .. } => {
                Some(Step::Orders { d, low: district.next_o_id.saturating_sub(GLANCE), high: None })
            }
            Step::Orders { high: None, .. } if district.waiting > 0 => {
                let middle = district.first_waiting;
                let (low, high) = (middle.saturating_sub(GLANCE / 2), Some(middle + GLANCE / 2));
                Some(Step::Orders { d, low, high })
            }
            _ => None,
        }
    }

    /// The ranges of ORDER, NEW-ORDER and ORDER-LINE between two orders of a district.
    fn order_scans(&self, d: u8, low: u32, high: Option<u32>) -> [Scan; 3] {
        let w = self.warehouse;
        let low = keys::order(w, d, low);
        let high = high.map_or_else(|| keys::district(w, d + 1), |high| keys::order(w, d, high));
        [ORDER, NEW_ORDER, ORDER_LINE].map(|table| Scan::range(table.row(), low.clone(), high.clone()))
    }

    fn waiting_scan(&self, d: u8) -> Scan {
        let w = self.warehouse;
        Scan::range(NEW_ORDER.row(), keys::district(w, d), keys::district(w, d + 1))
    }

    fn payment_scan(&self, d: u8, payer: u16, number: u64) -> Scan {
        let w = self.warehouse;
        let high = if self.layout.spread { keys::district(w, d + 1) } else { keys::warehouse(w + 1) };
        Scan::range(HISTORY.row(), self.layout.history(w, d, payer, number), high).limit(PAYMENTS_PER_STAGE)
    }

    /// How many pieces a stage of stocks has.
    fn stock_pieces(&self, item: u32) -> u32 {
        if !self.layout.spread {
            return 1;
        }
        let parts = u32::from(STOCK_PARTS);
        let together = (SPREAD_STOCKS_PER_STAGE / self.items.div_ceil(parts)).max(1);
        together.min(self.items.min(parts) + 1 - item)
    }

    /// The items of a piece of stocks that begins with this one.
    fn stock_items(&self, item: u32) -> impl Iterator<Item = u32> + use<> {
        let (last, step) = match self.layout.spread {
            false => (self.items.min(item + STOCKS_PER_STAGE - 1), 1),
            true => (self.items, STOCK_PARTS.into()),
        };
        (item..=last).step_by(step)
    }

    /// Does what a stage does.
    fn take<A: Access>(&mut self, step: Step, number: usize, access: &mut A) -> Result<(), Abort> {
        match step {
            Step::Totals => self.see_totals(number, access),
            Step::Customers { d } => self.see_customers(d, access),
            Step::NewOrders { d } => self.see_new_orders(d, access),
            Step::Orders { d, low, high } => self.see_orders(d, &self.order_scans(d, low, high), access),
            Step::Payments { d, payer, number } => {
                self.see_payments(&self.payment_scan(d, payer, number), access)
            }
            Step::Stocks { item } => self.see_stocks(item + number as u32, access),
        }
    }

    /// Forgets everything but totals.
    fn begin(&mut self) {
        let Seen { ytd, absent, districts, .. } = std::mem::take(&mut self.seen);
        let totals =
            |DistrictSeen { next_o_id, ytd, .. }| DistrictSeen { next_o_id, ytd, ..Default::default() };
        self.seen = Seen { ytd, absent, districts: districts.map(totals), ..Seen::default() };
        let customers = if self.glance.is_some() { 0 } else { self.customers * u32::from(DISTRICTS) };
        self.customers_seen = vec![CustomerSeen::default(); customers as usize];
        self.strangers_paid.clear();
    }

    fn see_totals<A: Access>(&mut self, number: usize, access: &mut A) -> Result<(), Abort> {
        // The first time, and when there has been more than this stage.
        if number == 0 || self.steps.len() > 2 {
            self.begin();
        }
        if number == 0 {
            let ytd = self.layout.find::<WarehouseYtd, A>(access, &keys::warehouse(self.warehouse))?;
            self.seen.absent[0] = ytd.is_none();
            self.seen.ytd = ytd.map_or(0, |row| row.ytd.get());
        }
        self.districts_in(number).try_for_each(|d| self.see_district(d, access))
    }

    /// The districts whose totals a piece of the first stage reads.
    fn districts_in(&self, number: usize) -> std::ops::Range<u8> {
        match number {
            0 if !self.layout.spread => 1..DISTRICTS + 1,
            d if (1..=usize::from(DISTRICTS)).contains(&d) => d as u8..d as u8 + 1,
            _ => 0..0,
        }
    }

    fn see_district<A: Access>(&mut self, d: u8, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let key = keys::district(self.warehouse, d);
        let next = layout.find::<DistrictNext, A>(access, &key)?;
        let ytd = layout.find::<DistrictYtd, A>(access, &key)?;
        self.seen.absent[usize::from(d)] = next.is_none() || ytd.is_none();
        let seen = &mut self.seen.districts[usize::from(d - 1)];
        seen.next_o_id = next.map_or(0, |row| row.next_o_id.get());
        seen.ytd = ytd.map_or(0, |row| row.ytd.get());
        Ok(())
    }

    fn read_district(&self, d: u8, reads: &mut Reads) {
        let key = || keys::district(self.warehouse, d);
        reads.get(self.layout.column::<DistrictNext>(), key());
        if self.layout.split {
            reads.get(self.layout.column::<DistrictYtd>(), key());
        }
    }

    fn see_customers<A: Access>(&mut self, d: u8, access: &mut A) -> Result<(), Abort> {
        let w = self.warehouse;
        for c in 1..=self.customers {
            let found = self.layout.find::<CustomerBalance, A>(access, &keys::customer(w, d, c))?;
            self.seen.missing.expect(found.is_some(), || format!("customer {w}.{d}.{c}"));
            let Some(row) = found else { continue };
            let district = &mut self.seen.districts[usize::from(d - 1)];
            district.deliveries += u64::from(row.deliveries.get());
            district.payments += u64::from(row.payments.get());
            let charged = row.balance.get() + row.ytd_payment.get();
            district.charged += charged;
            let seen = CustomerSeen { condition_10: row.balance.get(), condition_12: charged };
            self.changes.extend(position(self.customers, d, c).map(|at| (at, seen)));
        }
        Ok(())
    }

    fn see_new_orders<A: Access>(&mut self, d: u8, access: &mut A) -> Result<(), Abort> {
        let scan = self.waiting_scan(d);
        let seen = &mut self.seen.districts[usize::from(d - 1)];
        access.scan(&scan, |key, _| {
            seen.last_waiting = keys::order_of(key);
            if seen.waiting == 0 {
                seen.first_waiting = seen.last_waiting;
            }
            seen.waiting += 1;
            ControlFlow::Continue(())
        })
    }

    /// Reads orders, those of them that wait, and their lines, which all come in the same order.
    fn see_orders<A: Access>(&mut self, d: u8, scans: &[Scan; 3], access: &mut A) -> Result<(), Abort> {
        let (layout, w) = (self.layout, self.warehouse);
        let [order_scan, waiting_scan, line_scan] = scans;
        let seen = &mut self.seen;
        let district = &mut seen.districts[usize::from(d - 1)];

        let mut orders: Vec<OrderSeen> = Vec::new();
        access.scan(order_scan, |key, record| {
            let (row, _) = layout.view::<Order>(record);
            let (o, carrier) = (keys::order_of(key), row.carrier != 0);
            district.orders += 1;
            district.last_order = district.last_order.max(o);
            district.carried += u64::from(carrier);
            district.lines_promised += u64::from(row.lines);
            let (c, lines_promised) = (row.c.get(), row.lines);
            let (waiting, lines, delivered) = (false, 0, 0);
            orders.push(OrderSeen { o, c, carrier, waiting, lines_promised, lines, delivered });
            ControlFlow::Continue(())
        })?;

        access.scan(waiting_scan, |key, _| {
            let o = keys::order_of(key);
            match orders.binary_search_by_key(&o, |order| order.o) {
                Ok(at) => orders[at].waiting = true,
                Err(_) => seen.waiting_orders.expect(false, || format!("{w}.{d}.{o} waits but is no order")),
            }
            ControlFlow::Continue(())
        })?;

        let mut at = 0;
        access.scan(line_scan, |key, record| {
            let (line, _) = layout.view::<OrderLine>(record);
            let (o, number) = (keys::order_of(key), keys::number_of_line(key));
            district.lines += 1;
            while orders.get(at).is_some_and(|order| order.o < o) {
                at += 1;
            }
            let Some(order) = orders.get_mut(at).filter(|order| order.o == o) else {
                seen.line_counts.expect(false, || format!("line {w}.{d}.{o}.{number} without an order"));
                return ControlFlow::Continue(());
            };
            order.lines += 1;
            let delivered = line.delivered.get() != 0;
            seen.delivery_dates.expect(delivered == order.carrier, || {
                format!("line {w}.{d}.{o}.{number}: delivered {delivered}, order carried {}", order.carrier)
            });
            if delivered {
                order.delivered += i64::from(line.amount.get());
            }
            ControlFlow::Continue(())
        })?;

        for OrderSeen { o, c, carrier, waiting, lines_promised, lines, delivered } in orders {
            let change = CustomerSeen { condition_10: -delivered, condition_12: -delivered };
            self.changes.extend(position(self.customers, d, c).map(|at| (at, change)));
            seen.waiting_orders
                .expect(carrier != waiting, || format!("{w}.{d}.{o}: waits {waiting}, carried {carrier}"));
            seen.line_counts.expect(lines == u64::from(lines_promised), || {
                format!("{w}.{d}.{o} has {lines} of {lines_promised} lines")
            });
        }
        Ok(())
    }

    fn see_payments<A: Access>(&mut self, scan: &Scan, access: &mut A) -> Result<(), Abort> {
        let (layout, w, customers) = (self.layout, self.warehouse, self.customers);
        let Audit { seen, strangers_paid, changes, .. } = self;
        let mut visited = 0;
        seen.last_payment = None;
        access.scan(scan, |key, record| {
            let (row, _) = layout.view::<History>(record);
            let amount = i64::from(row.amount.get());
            seen.payments += 1;
            seen.paid += amount;
            if let Some(district) = seen.districts.get_mut(usize::from(row.d).wrapping_sub(1)) {
                district.paid += amount;
            }
            let (c_w, c_d, c) = (row.c_w.get(), row.c_d, row.c.get());
            if c_w != w {
                strangers_paid.push(((c_w, c_d, c), amount));
            } else {
                let change = CustomerSeen { condition_10: amount, condition_12: 0 };
                changes.extend(position(customers, c_d, c).map(|at| (at, change)));
            }
            visited += 1;
            if visited == PAYMENTS_PER_STAGE {
                seen.last_payment = Some(keys::payer_and_number(key));
            }
            ControlFlow::Continue(())
        })
    }

    fn see_stocks<A: Access>(&mut self, item: u32, access: &mut A) -> Result<(), Abort> {
        for i in self.stock_items(item) {
            let (seen, w) = (&mut self.seen, self.warehouse);
            let found = self.layout.find::<StockQuantity, A>(access, &keys::stock(w, i))?;
            seen.missing.expect(found.is_some(), || format!("stock {w}.{i}"));
            let Some(row) = found else { continue };
            let quantity = row.quantity.get();
            seen.stock_range.expect((10..=100).contains(&quantity), || format!("{w}.{i} has {quantity}"));
            seen.stock_ytd += u64::from(row.ytd.get());
            seen.stock_orders += u64::from(row.orders.get());
            seen.stock_remote_orders += u64::from(row.remote_orders.get());
        }
        Ok(())
    }
}

/// A customer's position among those of its warehouse, if there is such a customer.
fn position(per_district: u32, d: u8, c: u32) -> Option<usize> {
    let exists = (1..=DISTRICTS).contains(&d) && (1..=per_district).contains(&c);
    exists.then(|| (u32::from(d - 1) * per_district + c - 1) as usize)
}

impl Procedure for Audit {
    fn read_only(&self) -> bool {
        true
    }

    fn stage(&self, stage: usize) -> usize {
        match self.steps.get(stage) {
            Some(Step::Totals) if self.layout.spread => {
                let stocks = if self.glance.is_some() { 0 } else { STOCK_PARTS.into() };
                1 + usize::from(DISTRICTS) + stocks
            }
            Some(&Step::Stocks { item }) => self.stock_pieces(item) as usize,
            step => usize::from(step.is_some()),
        }
    }

    fn home(&self, piece: Piece) -> Slot {
        let w = self.warehouse;
        match self.steps[piece.stage] {
            Step::Totals => match piece.number {
                0 => self.layout.warehouse_slot(w),
                d if d <= usize::from(DISTRICTS) => self.layout.district_slot(w, d as u8),
                stocks => self.layout.stock_slot(w, stocks as u32),
            },
            Step::Customers { d }
            | Step::NewOrders { d }
            | Step::Orders { d, .. }
            | Step::Payments { d, .. } => self.layout.district_slot(w, d),
            Step::Stocks { item } => self.layout.stock_slot(w, item + piece.number as u32),
        }
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let (layout, w) = (self.layout, self.warehouse);
        match self.steps[piece.stage] {
            Step::Totals => {
                if piece.number == 0 {
                    reads.get(layout.column::<WarehouseYtd>(), keys::warehouse(w));
                }
                self.districts_in(piece.number).for_each(|d| self.read_district(d, reads));
            }
            Step::Customers { d } => {
                let column = layout.column::<CustomerBalance>();
                (1..=self.customers).for_each(|c| reads.get(column, keys::customer(w, d, c)));
            }
            Step::NewOrders { d } => reads.scan(self.waiting_scan(d)),
            Step::Orders { d, low, high } => {
                self.order_scans(d, low, high).into_iter().for_each(|scan| reads.scan(scan));
            }
            Step::Payments { d, payer, number } => reads.scan(self.payment_scan(d, payer, number)),
            Step::Stocks { item } => {
                let column = layout.column::<StockQuantity>();
                self.stock_items(item + piece.number as u32)
                    .for_each(|item| reads.get(column, keys::stock(w, item)));
            }
        }
    }

    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        let step = self.steps[piece.stage];
        let (seen, strangers) = (self.seen.clone(), self.strangers_paid.len());
        self.changes.clear();
        if let Err(abort) = self.take(step, piece.number, access) {
            // Nothing of an interrupted stage counts, in case it is run again.
            self.seen = seen;
            self.strangers_paid.truncate(strangers);
            return Err(abort);
        }
        for &(at, change) in &self.changes {
            if let Some(customer) = self.customers_seen.get_mut(at) {
                customer.condition_10 += change.condition_10;
                customer.condition_12 += change.condition_12;
            }
        }
        self.steps.truncate(piece.stage + 1);
        self.steps.extend(self.after(step));
        Ok(())
    }
}

plimsoll_txn::executable!(Audit);
