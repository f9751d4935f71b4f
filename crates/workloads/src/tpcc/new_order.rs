//! New-Order (clause 2.4): a customer orders 5 to 15 items.
//!
//! Stages: for every other warehouse that supplies lines, in the first stage, a piece that looks
//! its lines up and one that takes the goods from its stock; then at home a piece that takes the
//! order's number, looks its own lines up and inserts the order, and one that takes the goods.
//! Inside a piece lines are processed in the order of their items, which is the order locks are
//! taken in; the same item may occur twice in an order and is then taken twice. OL_NUMBER keeps the
//! order of the inputs.
//!
//! In a spread warehouse no line is at home: the home is the district, which takes the number and
//! inserts the order, and every stock has the two pieces of a supplier. One more piece in the first
//! stage reads the warehouse's tax.
//!
//! One order in a hundred asks in its last line for an item that does not exist, and is undone when
//! that line is looked up. A line at home is looked up after all others: unused numbers are the
//! highest.

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::shipped::Items;
use plimsoll_types::{Abort, Key, Slot};
use zerocopy::IntoBytes;

use super::schema::*;
use super::{Client, DISTRICTS, Tpcc};

/// Most lines of an order.
pub const LINES_MAX: usize = 15;

/// A New-Order transaction.
#[derive(Clone, Debug)]
pub struct NewOrder {
    layout: Layout,
    district: u8,
    /// Whether the last line's item does not exist.
    rollback: bool,
    line_count: u8,
    /// How many of the lines, the first ones, other warehouses supply.
    remote_lines: u8,
    /// How many suppliers besides the home take part: other warehouses, or stocks of a spread one.
    suppliers: u8,
    warehouse: u32,
    customer: u32,
    /// W_TAX in 1/10000, once it is known, of a spread warehouse.
    tax: u16,
    /// O_ENTRY_D.
    date: u32,
    /// By supplier and item, lines from home last.
    lines: [Line; LINES_MAX],
    /// Output: what is known of the lines once they are processed, in the same order.
    processed: [Processed; LINES_MAX],
    /// Output: the order's number.
    order: u32,
    /// Output: the price of all lines with discount and taxes, in cents.
    total: i64,
}

/// A line as it is ordered.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    item: u32,
    supplier: u32,
    /// OL_NUMBER.
    number: u8,
    quantity: u8,
}

/// What the stock and the item say about a line.
#[derive(Clone, Copy, Debug, Default)]
struct Processed {
    /// OL_DIST_INFO.
    dist_info: [u8; 24],
    /// OL_AMOUNT in cents.
    amount: i32,
    /// Brand-generic: whether both the item and the stock are original ("B").
    brand: bool,
}

impl NewOrder {
    /// Draws the inputs (clause 2.4.1).
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> NewOrder {
        let home = client.home();
        let warehouse = home.warehouse;
        let date = client.tick();
        let parameters = &tpcc.parameters;
        let rng = &mut client.rng;
        let line_count = rng.uniform(5..=LINES_MAX as u64) as u8;
        let mut order = NewOrder {
            layout: tpcc.layout(),
            district: home.district(rng),
            rollback: rng.pct(parameters.rollback_pct),
            line_count,
            remote_lines: 0,
            suppliers: 0,
            warehouse,
            customer: tpcc.customer_numbers.draw(rng),
            tax: 0,
            date,
            lines: [Line::default(); LINES_MAX],
            processed: [Processed::default(); LINES_MAX],
            order: 0,
            total: 0,
        };
        for (line, number) in order.lines.iter_mut().zip(1..=line_count) {
            let unused = order.rollback && number == line_count;
            let remote = parameters.warehouses > 1 && rng.pct(parameters.remote_item_pct);
            order.remote_lines += u8::from(remote);
            *line = Line {
                item: if unused { parameters.items + 1 } else { tpcc.item_numbers.draw(rng) },
                supplier: if remote { tpcc.other_warehouse(rng, warehouse) } else { warehouse },
                number,
                quantity: rng.uniform(1..=10) as u8,
            };
        }
        order.lines[..usize::from(line_count)].sort_unstable_by_key(|line| {
            let home = u64::from(line.supplier == warehouse);
            home << 63 | u64::from(line.supplier) << 32 | u64::from(line.item)
        });
        if order.away() > 0 {
            order.suppliers = order.by_supplier().count() as u8;
        }
        order
    }

    /// How many of the lines, the first ones, are not at home.
    #[inline]
    fn away(&self) -> usize {
        usize::from(if self.layout.spread { self.line_count } else { self.remote_lines })
    }

    /// The lines that are not at home, by supplier.
    #[inline]
    fn by_supplier(&self) -> impl Iterator<Item = &[Line]> {
        let spread = self.layout.spread;
        let same = move |a: &Line, b: &Line| a.supplier == b.supplier && (!spread || a.item == b.item);
        self.lines[..self.away()].chunk_by(same)
    }

    /// The positions of a piece's lines.
    #[inline]
    fn lines(&self, piece: Piece) -> std::ops::Range<usize> {
        if self.at_home(piece) {
            return self.away()..usize::from(self.line_count);
        }
        let supplier = piece.number % usize::from(self.suppliers);
        let mut start = 0;
        for (number, lines) in self.by_supplier().enumerate() {
            if number == supplier {
                return start..start + lines.len();
            }
            start += lines.len();
        }
        unreachable!("a piece is one of the suppliers or the home")
    }

    #[inline]
    fn at_home(&self, piece: Piece) -> bool {
        piece.stage == usize::from(self.suppliers > 0)
    }

    /// Whether it is the piece that reads the tax of a spread warehouse, and has no lines.
    #[inline]
    fn taxes(&self, piece: Piece) -> bool {
        self.layout.spread && piece.stage == 0 && piece.number == 2 * usize::from(self.suppliers)
    }

    /// Whether it takes goods from a stock; otherwise it looks lines up, and at home inserts the
    /// order.
    #[inline]
    fn takes(&self, piece: Piece) -> bool {
        piece.number >= if self.at_home(piece) { 1 } else { usize::from(self.suppliers) }
    }

    /// Steps 5 to 7 of clause 2.4.2.2 for the line at position `at`, without the quantity in stock.
    #[inline]
    fn look_up<A: Access>(&mut self, at: usize, access: &mut A) -> Result<(), Abort> {
        let line = self.lines[at];
        let found = access.get(self.layout.column::<Item>(), &keys::item(line.item))?;
        let (item, item_data) = self.layout.view::<Item>(found.ok_or(Abort::User)?);
        let price = item.price.get();
        let original = is_original(item_data);

        let stock = keys::stock(line.supplier, line.item);
        let district = usize::from(self.district - 1);
        let (dist_info, brand) = self.layout.read(access, &stock, |stock: &Stock, data| {
            (stock.districts[district], original && is_original(data))
        })?;
        let amount = i32::from(line.quantity) * price;
        self.processed[at] = Processed { dist_info, amount, brand };
        Ok(())
    }

    /// The quantity in stock, for the line at position `at`.
    #[inline]
    fn take<A: Access>(&self, at: usize, access: &mut A) -> Result<(), Abort> {
        let line = self.lines[at];
        let quantity = i32::from(line.quantity);
        let remote = line.supplier != self.warehouse;
        let stock = keys::stock(line.supplier, line.item);
        self.layout.update(access, &stock, |stock: &mut StockQuantity| {
            let left = stock.quantity.get() - quantity;
            stock.quantity = if left >= 10 { left } else { left + 91 }.into();
            stock.ytd += u32::from(line.quantity);
            stock.orders += 1;
            stock.remote_orders += u32::from(remote);
        })
    }

    #[inline]
    fn read_tax<A: Access>(&self, access: &mut A) -> Result<u16, Abort> {
        self.layout.read(access, &keys::warehouse(self.warehouse), |row: &Warehouse, _| row.tax.get())
    }

    /// Reads warehouse, district and customer, and takes the order's number. Returns the rate that
    /// the sum of the lines is multiplied by, in 1/10^8.
    #[inline]
    fn take_number<A: Access>(&mut self, access: &mut A) -> Result<i64, Abort> {
        let layout = self.layout;
        let (w, d) = (self.warehouse, self.district);
        let warehouse = if layout.spread { self.tax } else { self.read_tax(access)? };
        let district_key = keys::district(w, d);
        let district = layout.read(access, &district_key, |row: &District, _| row.tax.get())?;
        self.order = layout.update(access, &district_key, |row: &mut DistrictNext| {
            let number = row.next_o_id.get();
            row.next_o_id = (number + 1).into();
            number
        })?;
        let customer = keys::customer(w, d, self.customer);
        let discount = layout.read(access, &customer, |row: &Customer, _| row.discount.get())?;
        Ok((10_000 - i64::from(discount)) * (10_000 + i64::from(warehouse) + i64::from(district)))
    }

    /// Inserts the order's rows except for its lines.
    #[inline]
    fn insert_order<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let (w, d, o) = (self.warehouse, self.district, self.order);
        let row = Order {
            c: self.customer.into(),
            entered: self.date.into(),
            carrier: 0,
            lines: self.line_count,
            all_local: u8::from(self.remote_lines == 0),
        };
        let key = keys::order(w, d, o);
        access.insert(ORDER, &key, &[row.as_bytes()])?;
        access.insert(NEW_ORDER, &key, &[&[]])?;
        access.insert(CUSTOMER_ORDER, &keys::customer_order(w, d, self.customer, o), &[&[]])
    }

    /// Inserts the lines in the order of their numbers.
    #[inline]
    fn insert_lines<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let count = usize::from(self.line_count);
        let mut position = [0; LINES_MAX];
        for (at, line) in self.lines[..count].iter().enumerate() {
            position[usize::from(line.number - 1)] = at;
        }
        for &at in &position[..count] {
            let (line, processed) = (&self.lines[at], &self.processed[at]);
            let row = OrderLine {
                item: line.item.into(),
                supply_w: line.supplier.into(),
                delivered: 0.into(),
                amount: processed.amount.into(),
                quantity: line.quantity,
                dist_info: processed.dist_info,
            };
            let key = keys::order_line(self.warehouse, self.district, self.order, line.number);
            access.insert(ORDER_LINE, &key, &[row.as_bytes()])?;
        }
        Ok(())
    }

    /// How many lines it has, how many of them other warehouses supply, and the sum of their
    /// quantities.
    pub(super) fn line_sums(&self) -> (i64, i64, i64) {
        let lines = &self.lines[..usize::from(self.line_count)];
        let quantity = lines.iter().map(|line| i64::from(line.quantity)).sum();
        (lines.len() as i64, self.remote_lines.into(), quantity)
    }

    /// Whether its inputs make it roll back.
    pub fn rolls_back(&self) -> bool {
        self.rollback
    }

    /// Output of a committed transaction: the order's number in its district.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// Output of a committed transaction: the price with discount and taxes, in cents.
    pub fn total(&self) -> i64 {
        self.total
    }

    /// Output of a committed transaction: how many lines are "B", not "G".
    pub fn brand_lines(&self) -> usize {
        self.processed[..usize::from(self.line_count)].iter().filter(|line| line.brand).count()
    }
}

impl Procedure for NewOrder {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        match (stage, usize::from(self.suppliers)) {
            (0, 0) | (1, 1..) => 1 + usize::from(self.away() < usize::from(self.line_count)),
            (0, suppliers) => 2 * suppliers + usize::from(self.layout.spread),
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        if self.at_home(piece) {
            return self.layout.district_slot(self.warehouse, self.district);
        }
        if self.taxes(piece) {
            return self.layout.warehouse_slot(self.warehouse);
        }
        let line = &self.lines[self.lines(piece).start];
        self.layout.stock_slot(line.supplier, line.item)
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        if self.taxes(piece) {
            return reads.get(layout.column::<Warehouse>(), keys::warehouse(self.warehouse));
        }
        let takes = self.takes(piece);
        if self.at_home(piece) && !takes {
            let (w, d) = (self.warehouse, self.district);
            if !layout.spread {
                reads.get(layout.column::<Warehouse>(), keys::warehouse(w));
            }
            layout.declare::<District, DistrictNext>(reads, || keys::district(w, d));
            reads.get(layout.column::<Customer>(), keys::customer(w, d, self.customer));
        }
        let mut previous = 0;
        for line in &self.lines[self.lines(piece)] {
            let unused = self.rollback && line.number == self.line_count;
            if line.item != previous {
                let stock = || -> Key { keys::stock(line.supplier, line.item) };
                if !takes {
                    reads.get(layout.column::<Item>(), keys::item(line.item));
                }
                match takes {
                    _ if unused => {}
                    true => reads.update(layout.column::<StockQuantity>(), stock()),
                    false if layout.split => reads.get(layout.column::<Stock>(), stock()),
                    // Without groups it is the record that the other piece updates.
                    false => reads.update(layout.column::<Stock>(), stock()),
                }
            }
            previous = line.item;
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        if self.taxes(piece) {
            self.tax = self.read_tax(access)?;
            return Ok(());
        }
        let lines = self.lines(piece);
        if self.takes(piece) {
            return lines.into_iter().try_for_each(|at| self.take(at, access));
        }
        if !self.at_home(piece) {
            return lines.into_iter().try_for_each(|at| self.look_up(at, access));
        }
        let rate = self.take_number(access)?;
        self.insert_order(access)?;
        let wanted = || self.lines[lines.clone()].iter();
        access.expect(self.layout.column::<Item>(), wanted().map(|line| keys::item(line.item)));
        let stock = |line: &Line| keys::stock(line.supplier, line.item);
        access.expect(self.layout.column::<Stock>(), wanted().map(stock));
        for at in lines {
            self.look_up(at, access)?;
        }
        self.insert_lines(access)?;
        let lines = &self.processed[..usize::from(self.line_count)];
        let sum: i64 = lines.iter().map(|line| i64::from(line.amount)).sum();
        self.total = sum * rate / 100_000_000;
        Ok(())
    }
}

/// The types of its pieces, and where they are in [`pieces`].
const LINES: usize = 0;
const STOCK_PIECE: usize = 1;
const ORDER_PIECE: usize = 2;
const TAX_PIECE: usize = 3;

/// How many types there are.
pub(super) fn piece_types(layout: Layout) -> usize {
    3 + usize::from(layout.spread)
}

/// How it is cut.
pub(super) fn pieces(layout: Layout) -> Vec<PieceType> {
    let looked_up = (!layout.split).then_some(STOCK.row());
    let tables = [ORDER, NEW_ORDER, CUSTOMER_ORDER, ORDER_LINE];
    let order = PieceType::new("new_order", "order", 1)
        .writes([layout.column::<DistrictNext>()])
        .writes(tables.map(|table| table.row()));
    let mut types = vec![
        PieceType::new("new_order", "lines", 0).reads(looked_up).many().aborts().feeds("order"),
        PieceType::new("new_order", "stock", 0).writes([layout.column::<StockQuantity>()]).many(),
    ];
    if layout.spread {
        let taxed = (!layout.split).then_some(WAREHOUSE.row());
        types.push(order);
        types.push(PieceType::new("new_order", "tax", 0).reads(taxed).feeds("order"));
    } else {
        types.push(order.reads(looked_up).aborts());
    }
    types
}

impl NewOrder {
    pub(super) fn piece_type(&self, piece: Piece) -> usize {
        match (self.takes(piece), self.at_home(piece)) {
            _ if self.taxes(piece) => TAX_PIECE,
            (true, _) => STOCK_PIECE,
            (false, false) => LINES,
            (false, true) => ORDER_PIECE,
        }
    }

    pub(super) fn items(&self, piece: Piece, items: &mut Items) {
        if self.taxes(piece) {
            // Refused without column groups, and with them it never changes.
        } else if self.takes(piece) {
            let mut previous = 0;
            for line in &self.lines[self.lines(piece)] {
                let unused = self.rollback && line.number == self.line_count;
                if line.item != previous && !unused {
                    let stock = keys::stock(line.supplier, line.item);
                    items.write(self.layout.column::<StockQuantity>(), stock);
                }
                previous = line.item;
            }
        } else if self.at_home(piece) {
            let district = || keys::district(self.warehouse, self.district);
            items.write(self.layout.column::<DistrictNext>(), district());
            // Delivery looks for the oldest order of a district.
            for table in [ORDER, NEW_ORDER, CUSTOMER_ORDER, ORDER_LINE] {
                items.write(table.row(), district());
            }
        }
    }

    pub(super) fn absorb(&mut self, piece: Piece, executed: &NewOrder) {
        if self.taxes(piece) {
            self.tax = executed.tax;
        } else if !self.takes(piece) {
            let lines = self.lines(piece);
            self.processed[lines.clone()].copy_from_slice(&executed.processed[lines]);
            if self.at_home(piece) {
                (self.order, self.total) = (executed.order, executed.total);
            }
        }
    }

    /// Whether its numbers agree, wherever it comes from.
    pub(super) fn is_sound(&self) -> bool {
        let (lines, remote) = (usize::from(self.line_count), usize::from(self.remote_lines));
        lines <= LINES_MAX
            && remote <= lines
            && self.by_supplier().count() == usize::from(self.suppliers)
            && (1..=DISTRICTS).contains(&self.district)
            && self.lines[..lines].iter().all(|line| (1..=self.line_count).contains(&line.number))
    }
}

plimsoll_types::wire!(struct Line { item, supplier, number, quantity });
plimsoll_types::wire!(struct Processed { dist_info, amount, brand });
plimsoll_types::wire!(struct NewOrder {
    layout, district, rollback, line_count, remote_lines, suppliers, warehouse, customer, tax, date, lines, processed,
    order, total
});
