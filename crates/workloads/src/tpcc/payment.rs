//! Payment (clause 2.5): a customer pays to a district of a warehouse, mostly its own.
//!
//! Stages: find the customer if only the last name is known; the customer with its C_DATA; and the
//! warehouse that is paid, whose total is the hottest record there is, in a later stage if the
//! customer belongs to another.
//!
//! A spread warehouse is not where the district is that is paid. Then the first stage also reads
//! the warehouse's name, which goes into the history, and adds to its total; and the last stage is
//! the district with the history.

use std::io::Write;
use std::ops::ControlFlow;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads, Scan};
use plimsoll_txn::shipped::Items;
use plimsoll_types::{Abort, Key, Slot};
use zerocopy::IntoBytes;

use super::schema::*;
use super::{Client, DISTRICTS, Tpcc, new_order};

/// How a customer is chosen (clauses 2.5.1.2, 2.6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// By number.
    Number(u32),
    /// By last name: of all with the name of this number, the one in the middle.
    LastName(u16),
}

impl Chosen {
    /// By last name with 60 %.
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> Chosen {
        let rng = &mut client.rng;
        if rng.pct(60.0) {
            Chosen::LastName(tpcc.name_numbers.draw(rng) as u16)
        } else {
            Chosen::Number(tpcc.customer_numbers.draw(rng))
        }
    }

    /// Whether a stage has to find the number first.
    #[inline]
    pub(super) fn by_name(self) -> bool {
        matches!(self, Chosen::LastName(_))
    }

    /// The number, if it is an input.
    #[inline]
    pub(super) fn number(self) -> Option<u32> {
        match self {
            Chosen::Number(number) => Some(number),
            Chosen::LastName(_) => None,
        }
    }

    /// The customers with the last name, ordered by first name.
    #[inline]
    pub(super) fn scan(self, w: u32, d: u8) -> Scan {
        let Chosen::LastName(name) = self else { unreachable!("only a last name is looked for") };
        Scan::range(CUSTOMER_NAME.row(), keys::last_name(w, d, name), keys::last_name(w, d, name + 1))
    }

    /// Of the n customers with the name, number n/2 rounded up.
    #[inline]
    pub(super) fn find<A: Access>(self, w: u32, d: u8, access: &mut A) -> Result<u32, Abort> {
        let scan = self.scan(w, d);
        let mut found = [0; 64];
        let mut count = 0;
        access.scan(&scan, |key, _| {
            if let Some(found) = found.get_mut(count) {
                *found = keys::customer_of_name(key);
            }
            count += 1;
            ControlFlow::Continue(())
        })?;
        assert!(count > 0, "every last name that is asked for was loaded");
        let middle = count.div_ceil(2) - 1;
        if middle < found.len() {
            return Ok(found[middle]);
        }
        // A very common name: walk there again.
        let (mut customer, mut at) = (0, 0);
        access.scan(&scan, |key, _| {
            customer = keys::customer_of_name(key);
            at += 1;
            if at > middle { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(customer)
    }
}

/// A Payment transaction.
#[derive(Clone, Debug)]
pub struct Payment {
    layout: Layout,
    district: u8,
    customer_district: u8,
    warehouse: u32,
    customer_warehouse: u32,
    chosen: Chosen,
    /// The payer's part of the history's key.
    payer: u16,
    /// The number in the history's key.
    number: u64,
    /// H_AMOUNT in cents.
    amount: i32,
    /// H_DATE.
    date: u32,
    /// W_NAME, once it is known, of a spread warehouse.
    warehouse_name: [u8; 10],
    /// Output: the customer's number.
    customer: u32,
    /// Output: whether C_CREDIT is BC.
    bad_credit: bool,
    /// Output: C_BALANCE in cents.
    balance: i64,
}

/// What a piece does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Finds the customer by name.
    Find,
    /// Changes the customer.
    Customer,
    /// Changes warehouse and district, or if the warehouse is spread only the district.
    Home,
    /// Reads the name of a spread warehouse.
    Name,
    /// Changes a spread warehouse.
    Total,
}

impl Payment {
    /// Draws the inputs (clause 2.5.1).
    pub(super) fn draw(tpcc: &Tpcc, client: &mut Client) -> Payment {
        let home = client.home();
        let warehouse = home.warehouse;
        let date = client.tick();
        let (payer, number) = client.next_payment();
        let rng = &mut client.rng;
        let district = home.district(rng);
        let away = tpcc.parameters.warehouses > 1 && rng.pct(tpcc.parameters.remote_payment_pct);
        let (customer_warehouse, customer_district) = if away {
            (tpcc.other_warehouse(rng, warehouse), rng.uniform(1..=u64::from(DISTRICTS)) as u8)
        } else {
            (warehouse, district)
        };
        let amount = rng.uniform(100..=500_000) as i32;
        Payment {
            layout: tpcc.layout(),
            district,
            customer_district,
            warehouse,
            customer_warehouse,
            chosen: Chosen::draw(tpcc, client),
            payer,
            number,
            amount,
            date,
            warehouse_name: [0; 10],
            customer: 0,
            bad_credit: false,
            balance: 0,
        }
    }

    #[inline]
    fn away(&self) -> bool {
        self.warehouse != self.customer_warehouse
    }

    /// How many stages come before the customer's.
    #[inline]
    fn found(&self) -> usize {
        usize::from(self.chosen.by_name())
    }

    #[inline]
    fn step(&self, piece: Piece) -> Step {
        if self.layout.spread && piece.stage == self.found() && piece.number > 0 {
            return if piece.number == 1 { Step::Name } else { Step::Total };
        }
        match piece.stage < self.found() {
            true => Step::Find,
            false if piece.stage - self.found() + piece.number == 0 => Step::Customer,
            false => Step::Home,
        }
    }

    /// The customer's number is an input, or was found.
    #[inline]
    fn customer_key(&self) -> Key {
        let customer = self.chosen.number().unwrap_or(self.customer);
        keys::customer(self.customer_warehouse, self.customer_district, customer)
    }

    /// Takes the amount off the customer's balance.
    #[inline]
    fn charge<A: Access>(&mut self, access: &mut A) -> Result<(), Abort> {
        if let Some(customer) = self.chosen.number() {
            self.customer = customer;
        }
        let key = keys::customer(self.customer_warehouse, self.customer_district, self.customer);
        self.bad_credit = self.layout.read(access, &key, |row: &Customer, _| row.credit == *b"BC")?;
        let amount = i64::from(self.amount);
        self.balance = self.layout.update(access, &key, |row: &mut CustomerBalance| {
            row.balance -= amount;
            row.ytd_payment += amount;
            row.payments += 1;
            row.balance.get()
        })?;
        if self.bad_credit { self.note(access) } else { Ok(()) }
    }

    /// Puts a note of the payment in front of C_DATA (clause 2.5.2.2).
    fn note<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let key = keys::customer(self.customer_warehouse, self.customer_district, self.customer);
        self.layout.update_customer_data(access, &key, |old, new| {
            let mut rest = &mut new[..];
            let Payment { customer, customer_district, customer_warehouse, district, warehouse, .. } = self;
            let (whole, cents) = (self.amount / 100, self.amount % 100);
            write!(
                rest,
                "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {whole}.{cents:02}|"
            )
            .expect("six numbers fit into 500 characters");
            let kept = old.len().min(rest.len());
            rest[..kept].copy_from_slice(&old[..kept]);
            let unused = rest.len() - kept;
            CUSTOMER_DATA_MAX - unused
        })
    }

    /// Adds the amount to the warehouse and the district, and records the payment.
    #[inline]
    fn collect<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let layout = self.layout;
        let amount = i64::from(self.amount);
        let history = History {
            c_w: self.customer_warehouse.into(),
            c_d: self.customer_district,
            d: self.district,
            c: self.customer.into(),
            date: self.date.into(),
            amount: self.amount.into(),
        };
        let mut row = [b' '; size_of::<History>() + 24];
        row[..size_of::<History>()].copy_from_slice(history.as_bytes());
        let mut end = size_of::<History>();
        let mut append = |name: &[u8]| {
            row[end..end + name.len()].copy_from_slice(name);
            end += name.len();
        };

        if layout.spread {
            append(unpadded(&self.warehouse_name));
        } else {
            let warehouse = keys::warehouse(self.warehouse);
            layout.read(access, &warehouse, |row: &Warehouse, _| append(unpadded(&row.name)))?;
            self.add_to_total(access)?;
        }
        append(b"    ");
        let district = keys::district(self.warehouse, self.district);
        layout.read(access, &district, |row: &District, _| append(unpadded(&row.name)))?;
        layout.update(access, &district, |row: &mut DistrictYtd| row.ytd += amount)?;
        access.insert(HISTORY, &self.history_key(), &[&row[..end]])
    }

    #[inline]
    fn add_to_total<A: Access>(&self, access: &mut A) -> Result<(), Abort> {
        let amount = i64::from(self.amount);
        let key = keys::warehouse(self.warehouse);
        self.layout.update(access, &key, |row: &mut WarehouseYtd| row.ytd += amount)
    }

    #[inline]
    fn history_key(&self) -> Key {
        self.layout.history(self.warehouse, self.district, self.payer, self.number)
    }

    /// H_AMOUNT in cents.
    pub fn amount(&self) -> i64 {
        self.amount.into()
    }

    /// Whether the customer belongs to another warehouse.
    pub fn remote(&self) -> bool {
        self.away()
    }

    /// Output of a committed transaction: C_BALANCE in cents.
    pub fn balance(&self) -> i64 {
        self.balance
    }
}

impl Procedure for Payment {
    fn read_only(&self) -> bool {
        false
    }

    #[inline]
    fn stage(&self, stage: usize) -> usize {
        let spread = self.layout.spread;
        match (stage.checked_sub(self.found()), self.away() || spread) {
            (Some(0), _) if spread => 3,
            (None, _) | (Some(0 | 1), true) => 1,
            (Some(0), false) => 2,
            _ => 0,
        }
    }

    #[inline]
    fn home(&self, piece: Piece) -> Slot {
        match self.step(piece) {
            Step::Home => self.layout.district_slot(self.warehouse, self.district),
            Step::Find | Step::Customer => {
                self.layout.district_slot(self.customer_warehouse, self.customer_district)
            }
            Step::Name | Step::Total => self.layout.warehouse_slot(self.warehouse),
        }
    }

    #[inline]
    fn reads(&self, piece: Piece, reads: &mut Reads) {
        let layout = self.layout;
        match self.step(piece) {
            Step::Find => reads.scan(self.chosen.scan(self.customer_warehouse, self.customer_district)),
            Step::Customer => {
                layout.declare::<Customer, CustomerBalance>(reads, || self.customer_key());
                if layout.split {
                    reads.update(layout.column::<CustomerData>(), self.customer_key());
                }
            }
            Step::Home => {
                let (w, d) = (self.warehouse, self.district);
                if !layout.spread {
                    layout.declare::<Warehouse, WarehouseYtd>(reads, || keys::warehouse(w));
                }
                layout.declare::<District, DistrictYtd>(reads, || keys::district(w, d));
            }
            Step::Name if layout.split => {
                reads.get(layout.column::<Warehouse>(), keys::warehouse(self.warehouse));
            }
            // Without groups the name is in the record that the other piece updates.
            Step::Name | Step::Total => {
                reads.update(layout.column::<WarehouseYtd>(), keys::warehouse(self.warehouse));
            }
        }
    }

    #[inline]
    fn execute<A: Access>(&mut self, piece: Piece, access: &mut A) -> Result<(), Abort> {
        match self.step(piece) {
            Step::Find => {
                let (w, d) = (self.customer_warehouse, self.customer_district);
                self.customer = self.chosen.find(w, d, access)?;
                Ok(())
            }
            Step::Customer => self.charge(access),
            Step::Home => {
                if let Some(customer) = self.chosen.number() {
                    self.customer = customer;
                }
                self.collect(access)
            }
            Step::Name => {
                let key = keys::warehouse(self.warehouse);
                self.warehouse_name = self.layout.read(access, &key, |row: &Warehouse, _| row.name)?;
                Ok(())
            }
            Step::Total => self.add_to_total(access),
        }
    }
}

/// The types of its pieces, and where they are in [`pieces`].
const FIND: usize = 0;
const CUSTOMER_PIECE: usize = 1;
const HOME_PIECE: usize = 2;
const NAME_PIECE: usize = 3;
const TOTAL_PIECE: usize = 4;

/// How many types there are.
pub(super) fn piece_types(layout: Layout) -> usize {
    if layout.spread { 5 } else { 3 }
}

/// How it is cut.
pub(super) fn pieces(layout: Layout) -> Vec<PieceType> {
    let home = PieceType::new("payment", "home", 1).writes([layout.column::<DistrictYtd>(), HISTORY.row()]);
    let total = [layout.column::<WarehouseYtd>()];
    let mut types = vec![
        PieceType::new("payment", "find", 0).scans().feeds("customer").feeds("home"),
        PieceType::new("payment", "customer", 1)
            .writes([layout.column::<CustomerBalance>(), layout.column::<CustomerData>()]),
    ];
    if layout.spread {
        let named = (!layout.split).then_some(WAREHOUSE.row());
        types.push(home);
        types.push(PieceType::new("payment", "name", 1).reads(named).feeds("home"));
        types.push(PieceType::new("payment", "total", 1).writes(total));
    } else {
        types.push(home.writes(total));
    }
    types
}

impl Payment {
    pub(super) fn piece_type(&self, piece: Piece) -> usize {
        let within = match self.step(piece) {
            Step::Find => FIND,
            Step::Customer => CUSTOMER_PIECE,
            Step::Home => HOME_PIECE,
            Step::Name => NAME_PIECE,
            Step::Total => TOTAL_PIECE,
        };
        new_order::piece_types(self.layout) + within
    }

    pub(super) fn items(&self, piece: Piece, items: &mut Items) {
        let layout = self.layout;
        match self.step(piece) {
            Step::Find | Step::Name => {}
            Step::Customer => {
                items.write(layout.column::<CustomerBalance>(), self.customer_key());
                if layout.split {
                    items.write(layout.column::<CustomerData>(), self.customer_key());
                }
            }
            Step::Home => {
                if !layout.spread {
                    items.write(layout.column::<WarehouseYtd>(), keys::warehouse(self.warehouse));
                }
                items.write(layout.column::<DistrictYtd>(), keys::district(self.warehouse, self.district));
                items.write(HISTORY.row(), self.history_key());
            }
            Step::Total => items.write(layout.column::<WarehouseYtd>(), keys::warehouse(self.warehouse)),
        }
    }

    pub(super) fn absorb(&mut self, piece: Piece, executed: &Payment) {
        match self.step(piece) {
            Step::Find => self.customer = executed.customer,
            Step::Customer => {
                let Payment { customer, bad_credit, balance, .. } = *executed;
                (self.customer, self.bad_credit, self.balance) = (customer, bad_credit, balance);
            }
            Step::Name => self.warehouse_name = executed.warehouse_name,
            Step::Home | Step::Total => {}
        }
    }
}

plimsoll_types::wire!(
    enum Chosen {
        Number(number) = 0,
        LastName(name) = 1,
    }
);
plimsoll_types::wire!(struct Payment {
    layout, district, customer_district, warehouse, customer_warehouse, chosen, payer, number, amount, date,
    warehouse_name, customer, bad_credit, balance
});

#[cfg(test)]
mod tests {
    use plimsoll_types::{ColumnGroup, Key, TableId};

    use super::*;

    /// An index where customers 1 to n of a district have one last name.
    struct Namesakes(u16);

    impl Access for Namesakes {
        fn get(&mut self, _: ColumnGroup, _: &Key) -> Result<Option<&[u8]>, Abort> {
            unreachable!("only scanned")
        }

        fn put(&mut self, _: ColumnGroup, _: &Key, _: &[u8]) -> Result<(), Abort> {
            unreachable!("only scanned")
        }

        fn insert(&mut self, _: TableId, _: &Key, _: &[&[u8]]) -> Result<(), Abort> {
            unreachable!("only scanned")
        }

        fn delete(&mut self, _: TableId, _: &Key) -> Result<(), Abort> {
            unreachable!("only scanned")
        }

        fn scan(
            &mut self,
            scan: &Scan,
            mut visit: impl FnMut(&Key, &[u8]) -> ControlFlow<()>,
        ) -> Result<(), Abort> {
            for c in 1..=self.0 {
                let key =
                    keys::customer_name(3, 4, 5, &(1_000_000 + u32::from(c)).to_string().into_bytes(), c);
                assert!(scan.low <= key && scan.high.as_ref().is_some_and(|high| key < *high));
                if visit(&key, &[]).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn of_any_number_of_namesakes_the_middle_one_is_found() {
        for n in 1..=300 {
            let found = Chosen::LastName(5).find(3, 4, &mut Namesakes(n));
            assert_eq!(found, Ok(u32::from(n.div_ceil(2))), "of {n}");
        }
    }
}
