//! The initial population (clause 4.3.3.1).
//!
//! Unit 0 is the items, which every shard gets; unit w is warehouse w. Of a spread warehouse what
//! shares a slot is a unit: its own row, each district, each part of the stocks. A unit draws from
//! its own stream of random numbers, so units can be loaded in any order, by any number of threads.
//! The rows of each ordered table come in ascending order.
//!
//! A database smaller than the specification's keeps its proportions: as many orders as customers
//! in each district, 70 % of them delivered; last names from as many numbers as there are
//! customers, if that is below 1,000, so that every name a payment asks for exists.

use plimsoll_types::{Key, Slot, TableId};
use zerocopy::IntoBytes;

use super::schema::{self, *};
use super::{DISTRICTS, Parameters};
use crate::Sink;
use plimsoll_types::random::{NuRand, Rng, last_name};

/// The C of NURand for last names while loading; at run time it is 223, an allowed distance of 66
/// away (clause 2.1.6.1).
const LAST_NAME_C: u32 = 157;
/// The date of everything that is loaded.
pub const LOAD_DATE: u32 = 1;
/// What every customer has paid at load, in cents.
pub const LOADED_PAYMENT: i64 = 1000;
/// C_CREDIT_LIM in cents.
const CREDIT_LIMIT: i64 = 5_000_000;

/// The units of a spread warehouse.
const SPREAD_UNITS: usize = 1 + DISTRICTS as usize + STOCK_PARTS as usize;

/// What is loaded together.
#[derive(Clone, Copy)]
enum Unit {
    Items,
    /// All of a warehouse.
    Whole(u32),
    /// The row of a warehouse.
    Warehouse(u32),
    District(u32, u8),
    /// Every so many-th stock, the first being that of this item.
    Stocks(u32, u32),
}

impl Unit {
    fn new(parameters: &Parameters, unit: usize) -> Unit {
        let Some(below) = unit.checked_sub(1) else { return Unit::Items };
        if !parameters.spread {
            return Unit::Whole(unit as u32);
        }
        let (w, part) = ((below / SPREAD_UNITS) as u32 + 1, below % SPREAD_UNITS);
        match part {
            0 => Unit::Warehouse(w),
            d if d <= usize::from(DISTRICTS) => Unit::District(w, d as u8),
            part => Unit::Stocks(w, (part - usize::from(DISTRICTS)) as u32),
        }
    }
}

/// How many units there are.
pub fn units(parameters: &Parameters) -> usize {
    let per_warehouse = if parameters.spread { SPREAD_UNITS } else { 1 };
    1 + parameters.warehouses as usize * per_warehouse
}

/// Where a unit's rows are; `None`: everywhere.
pub fn slot(parameters: &Parameters, unit: usize) -> Option<Slot> {
    let layout = parameters.layout();
    Some(match Unit::new(parameters, unit) {
        Unit::Items => return None,
        Unit::Whole(w) | Unit::Warehouse(w) => layout.warehouse_slot(w),
        Unit::District(w, d) => layout.district_slot(w, d),
        Unit::Stocks(w, i) => layout.stock_slot(w, i),
    })
}

/// Produces the rows of a unit.
pub fn load(parameters: &Parameters, unit: usize, sink: Sink<'_>) {
    let rng = Rng::new(parameters.seed, unit as u64);
    let mut loader = Loader { parameters, rng, sink, row: Vec::new() };
    match Unit::new(parameters, unit) {
        Unit::Items => loader.items(),
        Unit::Whole(w) => {
            loader.warehouse(w);
            (1..=DISTRICTS).for_each(|d| loader.district(w, d));
            loader.stocks(w, 1, 1);
        }
        Unit::Warehouse(w) => loader.warehouse(w),
        Unit::District(w, d) => loader.district(w, d),
        Unit::Stocks(w, first) => loader.stocks(w, first, STOCK_PARTS.into()),
    }
}

struct Loader<'a> {
    parameters: &'a Parameters,
    rng: Rng,
    sink: Sink<'a>,
    /// A row whose groups are not split.
    row: Vec<u8>,
}

impl Loader<'_> {
    /// Hands a row to the sink, its groups apart or together.
    fn put(&mut self, table: TableId, key: Key, groups: &[&[u8]]) {
        if self.parameters.split_columns || groups.len() == 1 {
            return (self.sink)(table, key, groups);
        }
        self.row.clear();
        for group in groups {
            self.row.extend_from_slice(group);
        }
        (self.sink)(table, key, &[&self.row]);
    }

    /// I_DATA or S_DATA at the end of a row: 26 to 50 characters, every tenth with ORIGINAL in
    /// them. Returns the length.
    fn data_with_original(&mut self, data: &mut [u8; 50]) -> usize {
        let length = self.rng.astr(data, 26..=50);
        if self.rng.pct(10.0) {
            let at = self.rng.below(length as u64 - 7) as usize;
            data[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
        length
    }

    fn items(&mut self) {
        for i in 1..=self.parameters.items {
            let mut item = Item {
                image: (self.rng.uniform(1..=10_000) as u32).into(),
                price: (self.rng.uniform(100..=10_000) as i32).into(),
                name: [0; 24],
            };
            self.rng.astr(&mut item.name, 14..=24);
            let mut data = [0; 50];
            let length = self.data_with_original(&mut data);
            let mut row = [0; size_of::<Item>() + 50];
            row[..size_of::<Item>()].copy_from_slice(item.as_bytes());
            row[size_of::<Item>()..].copy_from_slice(&data);
            self.put(ITEM, keys::item(i), &[&row[..size_of::<Item>() + length]]);
        }
    }

    fn warehouse(&mut self, w: u32) {
        let customers = i64::from(self.parameters.customers_per_district);
        let warehouse = Warehouse { name: self.name(), address: self.address(), tax: self.rate(2000) };
        let ytd = WarehouseYtd { ytd: (LOADED_PAYMENT * customers * i64::from(DISTRICTS)).into() };
        self.put(WAREHOUSE, keys::warehouse(w), &[warehouse.as_bytes(), ytd.as_bytes()]);
    }

    fn district(&mut self, w: u32, d: u8) {
        let customers = i64::from(self.parameters.customers_per_district);
        let district = District { name: self.name(), address: self.address(), tax: self.rate(2000) };
        let next = DistrictNext { next_o_id: (self.parameters.loaded_orders() + 1).into() };
        let ytd = DistrictYtd { ytd: (LOADED_PAYMENT * customers).into() };
        let groups = [district.as_bytes(), next.as_bytes(), ytd.as_bytes()];
        self.put(DISTRICT, keys::district(w, d), &groups);
        self.customers(w, d);
        self.orders(w, d);
    }

    fn stocks(&mut self, w: u32, first: u32, step: usize) {
        for i in (first..=self.parameters.items).step_by(step) {
            let quantity = StockQuantity {
                quantity: (self.rng.uniform(10..=100) as i32).into(),
                ytd: 0.into(),
                orders: 0.into(),
                remote_orders: 0.into(),
            };
            let mut row = [0; size_of::<Stock>() + 50];
            let (districts, _) = row.split_at_mut(size_of::<Stock>());
            self.rng.letters(districts);
            let mut data = [0; 50];
            let length = self.data_with_original(&mut data);
            row[size_of::<Stock>()..].copy_from_slice(&data);
            let groups = [quantity.as_bytes(), &row[..size_of::<Stock>() + length]];
            self.put(STOCK, keys::stock(w, i), &groups);
        }
    }

    fn customers(&mut self, w: u32, d: u8) {
        let names = self.parameters.last_names();
        let name_numbers = NuRand::new(255, LAST_NAME_C, 0..=names - 1);
        let balance = CustomerBalance {
            balance: (-LOADED_PAYMENT).into(),
            ytd_payment: LOADED_PAYMENT.into(),
            payments: 1.into(),
            deliveries: 0.into(),
        };
        let mut by_name = Vec::with_capacity(self.parameters.customers_per_district as usize);
        for c in 1..=self.parameters.customers_per_district {
            let name = if c <= names { c - 1 } else { name_numbers.draw(&mut self.rng) };
            let mut customer = Customer {
                first: [0; 16],
                middle: *b"OE",
                last: last_name(name).0,
                address: self.address(),
                phone: [0; 16],
                since: LOAD_DATE.into(),
                credit: if self.rng.pct(10.0) { *b"BC" } else { *b"GC" },
                credit_limit: CREDIT_LIMIT.into(),
                discount: self.rate(5000),
            };
            self.rng.astr(&mut customer.first, 8..=16);
            self.rng.nstr(&mut customer.phone);
            let mut data = [0; CUSTOMER_DATA_MAX];
            let length = self.rng.astr(&mut data, 300..=CUSTOMER_DATA_MAX as u64);
            let groups = [customer.as_bytes(), balance.as_bytes(), &data[..length]];
            self.put(CUSTOMER, keys::customer(w, d, c), &groups);
            by_name.push(keys::customer_name(w, d, name as u16, &customer.first, c as u16));
            self.payment(w, d, c);
        }
        by_name.sort_unstable();
        for key in by_name {
            self.put(CUSTOMER_NAME, key, &[&[]]);
        }
    }

    /// The payment that every customer has made before the load.
    fn payment(&mut self, w: u32, d: u8, c: u32) {
        let history = schema::History {
            c_w: w.into(),
            c_d: d,
            d,
            c: c.into(),
            date: LOAD_DATE.into(),
            amount: (LOADED_PAYMENT as i32).into(),
        };
        let mut row = [0; size_of::<schema::History>() + 24];
        row[..size_of::<schema::History>()].copy_from_slice(history.as_bytes());
        let length = self.rng.astr(&mut row[size_of::<schema::History>()..], 12..=24);
        let number = u64::from(d - 1) * u64::from(self.parameters.customers_per_district) + u64::from(c);
        let row = &row[..size_of::<schema::History>() + length];
        let key = self.parameters.layout().history(w, d, 0, number);
        self.put(HISTORY, key, &[row]);
    }

    fn orders(&mut self, w: u32, d: u8) {
        let customers = self.rng.permutation(self.parameters.loaded_orders());
        let mut by_customer = Vec::with_capacity(customers.len());
        for (o, &c) in (1..).zip(&customers) {
            let delivered = o <= self.parameters.delivered_orders();
            let lines = self.rng.uniform(5..=15) as u8;
            let order = Order {
                c: c.into(),
                entered: LOAD_DATE.into(),
                carrier: if delivered { self.rng.uniform(1..=10) as u8 } else { 0 },
                lines,
                all_local: 1,
            };
            self.put(ORDER, keys::order(w, d, o), &[order.as_bytes()]);
            if !delivered {
                self.put(NEW_ORDER, keys::order(w, d, o), &[&[]]);
            }
            by_customer.push(keys::customer_order(w, d, c, o));
            for number in 1..=lines {
                let mut line = OrderLine {
                    item: (self.rng.uniform(1..=u64::from(self.parameters.items)) as u32).into(),
                    supply_w: w.into(),
                    delivered: if delivered { LOAD_DATE } else { 0 }.into(),
                    amount: if delivered { 0 } else { self.rng.uniform(1..=999_999) as i32 }.into(),
                    quantity: 5,
                    dist_info: [0; 24],
                };
                self.rng.letters(&mut line.dist_info);
                self.put(ORDER_LINE, keys::order_line(w, d, o, number), &[line.as_bytes()]);
            }
        }
        by_customer.sort_unstable();
        for key in by_customer {
            self.put(CUSTOMER_ORDER, key, &[&[]]);
        }
    }

    /// W_NAME or D_NAME.
    fn name(&mut self) -> [u8; 10] {
        let mut name = [0; 10];
        self.rng.astr(&mut name, 6..=10);
        name
    }

    fn address(&mut self) -> Address {
        let mut address = Address {
            street_1: [0; 20],
            street_2: [0; 20],
            city: [0; 20],
            state: [0; 2],
            zip: *b"000011111",
        };
        self.rng.astr(&mut address.street_1, 10..=20);
        self.rng.astr(&mut address.street_2, 10..=20);
        self.rng.astr(&mut address.city, 10..=20);
        for letter in &mut address.state {
            *letter = b'A' + self.rng.below(26) as u8;
        }
        self.rng.nstr(&mut address.zip[..4]);
        address
    }

    /// A tax or a discount of 0 to `max`, in 1/10000.
    fn rate(&mut self, max: u64) -> zerocopy::little_endian::U16 {
        (self.rng.uniform(0..=max) as u16).into()
    }
}
