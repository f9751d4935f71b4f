//! TPC-C's tables: keys, rows, column groups.
//!
//! **Keys** are the specification's primary keys, integers in big-endian order, warehouse first:
//! the warehouse number alone decides the slot, so a warehouse is one place. Spread, a district is
//! one, and a warehouse's stocks are in [`STOCK_PARTS`]; a payment then has the district in its
//! key. Every key has at most 15 bytes, which the key type holds without a heap. Two tables are
//! secondary indexes with empty values:
//! * *customer_name*: warehouse, district, number of the last name, the first six characters of the
//!   first name, customer. Last names are the syllables of a number (clause 4.3.2.3), so the number
//!   stands for the name; the prefix orders by first name but for ties in six random characters
//!   (one in 10^10 pairs).
//! * *customer_order*: warehouse, district, customer, and the complement of the order number, so
//!   that a customer's newest order comes first.
//!
//! **Rows** are packed structures of little-endian integers and zero-padded texts; a long text of
//! variable length (C_DATA, S_DATA, I_DATA, H_DATA) is the tail of its row. Money is in cents;
//! rates are in 1/10000; a date is a number of seconds on the clients' clocks (see
//! [`super::Client`]), 0 for null.
//!
//! **Column groups.** What no transaction writes (names, taxes, credit) and what different
//! transactions write (W_YTD and W_TAX, D_NEXT_O_ID and D_YTD) are records of their own, so that
//! they do not conflict. That is a switch: without it, a row is one record, the concatenation of
//! its groups. [`Layout`] hides the difference; [`Columns`] says where a structure sits in either
//! form.

use plimsoll_txn::procedure::Access;
use plimsoll_types::{Abort, IndexKind, Key, Partitioning, Slot, TableId, TableSpec};
use zerocopy::little_endian::{I32, I64, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::DISTRICTS;
use crate::NOT_LOADED;
pub use crate::rows::{Columns, Rows, unpadded};
use crate::rows::{ROW_MAX, columns};

/// Warehouses.
pub const WAREHOUSE: TableId = TableId(0);
/// Districts.
pub const DISTRICT: TableId = TableId(1);
/// Customers.
pub const CUSTOMER: TableId = TableId(2);
/// Customers by last name, ordered by first name.
pub const CUSTOMER_NAME: TableId = TableId(3);
/// Payments.
pub const HISTORY: TableId = TableId(4);
/// Orders that wait for their delivery.
pub const NEW_ORDER: TableId = TableId(5);
/// Orders.
pub const ORDER: TableId = TableId(6);
/// Orders by customer, newest first.
pub const CUSTOMER_ORDER: TableId = TableId(7);
/// Lines of orders.
pub const ORDER_LINE: TableId = TableId(8);
/// Items, immutable.
pub const ITEM: TableId = TableId(9);
/// Stocks of items in warehouses.
pub const STOCK: TableId = TableId(10);

/// The longest C_DATA.
pub const CUSTOMER_DATA_MAX: usize = 500;
/// How many characters of a first name the customer_name index holds.
pub const FIRST_NAME_PREFIX: usize = 6;

/// Slots of a spread warehouse's stocks: enough for many shards, and a prime, because popular item
/// numbers have many bits in common (clause 2.1.6) and would otherwise favour some shards.
pub const STOCK_PARTS: u16 = 101;

/// The tables in the order of their numbers.
pub fn tables(layout: Layout) -> Vec<TableSpec> {
    let by_warehouse = Partitioning::Modulo { bytes: 4 };
    let (by_district, by_stock) = match layout.spread {
        false => (by_warehouse, by_warehouse),
        true => (
            Partitioning::Spread { bytes: 4, within: 1, parts: DISTRICTS.into() },
            Partitioning::Spread { bytes: 4, within: 4, parts: STOCK_PARTS },
        ),
    };
    let hash = |name, placed| TableSpec::new(name, IndexKind::Hash, placed);
    let ordered = |name| TableSpec::new(name, IndexKind::Ordered, by_district);
    let split = |table: TableSpec, groups| if layout.split { table.with_groups(groups) } else { table };
    vec![
        split(hash("warehouse", by_warehouse), &["static", "ytd"]),
        split(hash("district", by_district), &["static", "next_o_id", "ytd"]),
        split(hash("customer", by_district), &["static", "balance", "data"]),
        ordered("customer_name").immutable(),
        ordered("history"),
        ordered("new_order"),
        ordered("order"),
        ordered("customer_order"),
        ordered("order_line"),
        TableSpec::new("item", IndexKind::Hash, Partitioning::Everywhere).immutable(),
        split(hash("stock", by_stock), &["quantity", "static"]),
    ]
}

/// Keys of all tables. Bounds of ranges are keys too: the first one beyond a prefix has its last
/// integer raised by one.
pub mod keys {
    use super::{FIRST_NAME_PREFIX, Key};

    /// WAREHOUSE.
    #[inline]
    pub fn warehouse(w: u32) -> Key {
        Key::build().u32(w).finish()
    }

    /// DISTRICT, and the prefix of everything in a district.
    #[inline]
    pub fn district(w: u32, d: u8) -> Key {
        Key::build().u32(w).u8(d).finish()
    }

    /// CUSTOMER, and the prefix of a customer's rows in customer_order.
    #[inline]
    pub fn customer(w: u32, d: u8, c: u32) -> Key {
        Key::build().u32(w).u8(d).u32(c).finish()
    }

    /// The prefix of all customers with the last name of this number in customer_name.
    #[inline]
    pub fn last_name(w: u32, d: u8, name: u16) -> Key {
        Key::build().u32(w).u8(d).u16(name).finish()
    }

    /// A row of customer_name.
    pub fn customer_name(w: u32, d: u8, name: u16, first: &[u8], c: u16) -> Key {
        let prefix = &first[..FIRST_NAME_PREFIX];
        let prefix = prefix.iter().fold(last_name_builder(w, d, name), |key, &byte| key.u8(byte));
        prefix.u16(c).finish()
    }

    fn last_name_builder(w: u32, d: u8, name: u16) -> plimsoll_types::KeyBuilder {
        Key::build().u32(w).u8(d).u16(name)
    }

    /// The customer's number in a key of customer_name.
    #[inline]
    pub fn customer_of_name(key: &Key) -> u32 {
        field(key, 7 + FIRST_NAME_PREFIX, 2) as u32
    }

    /// HISTORY: the warehouse that was paid, who paid (a client's number + 1, or 0 at load), how
    /// often.
    #[inline]
    pub fn history(w: u32, payer: u16, number: u64) -> Key {
        Key::build().u32(w).u16(payer).u64(number).finish()
    }

    /// HISTORY, if districts are places of their own.
    #[inline]
    pub fn district_history(w: u32, d: u8, payer: u16, number: u64) -> Key {
        Key::build().u32(w).u8(d).u16(payer).u64(number).finish()
    }

    /// The payer and its number in a key of HISTORY.
    pub fn payer_and_number(key: &Key) -> (u16, u64) {
        let at = key.len() - 10;
        (field(key, at, 2) as u16, field(key, at + 2, 8))
    }

    /// ORDER and NEW-ORDER, and the prefix of an order's lines.
    #[inline]
    pub fn order(w: u32, d: u8, o: u32) -> Key {
        Key::build().u32(w).u8(d).u32(o).finish()
    }

    /// The order's number in a key of ORDER, NEW-ORDER or ORDER-LINE.
    #[inline]
    pub fn order_of(key: &Key) -> u32 {
        field(key, 5, 4) as u32
    }

    /// A row of customer_order.
    #[inline]
    pub fn customer_order(w: u32, d: u8, c: u32, o: u32) -> Key {
        Key::build().u32(w).u8(d).u32(c).u32(!o).finish()
    }

    /// The order's number in a key of customer_order.
    #[inline]
    pub fn order_of_customer(key: &Key) -> u32 {
        !(field(key, 9, 4) as u32)
    }

    /// ORDER-LINE.
    #[inline]
    pub fn order_line(w: u32, d: u8, o: u32, number: u8) -> Key {
        Key::build().u32(w).u8(d).u32(o).u8(number).finish()
    }

    /// The line's number in a key of ORDER-LINE.
    #[inline]
    pub fn number_of_line(key: &Key) -> u8 {
        field(key, 9, 1) as u8
    }

    /// ITEM.
    #[inline]
    pub fn item(i: u32) -> Key {
        Key::build().u32(i).finish()
    }

    /// STOCK.
    #[inline]
    pub fn stock(w: u32, i: u32) -> Key {
        Key::build().u32(w).u32(i).finish()
    }

    /// The integer of `bytes` (at most 8) bytes that starts at byte `at` of a short key.
    #[inline]
    fn field(key: &Key, at: usize, bytes: usize) -> u64 {
        (key.head() >> (128 - 8 * (at + bytes))) as u64 & (u64::MAX >> (64 - 8 * bytes))
    }
}

/// Whether rows are split into column groups, and warehouses spread over slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Each group is a record; otherwise the concatenation of all groups is.
    pub split: bool,
    /// What belongs to a district is in the district's slot, and a stock in one that its item
    /// decides; otherwise all that a warehouse has is in one.
    pub spread: bool,
}

plimsoll_types::wire!(struct Layout { split, spread });

impl Rows for Layout {
    #[inline]
    fn is_split(self) -> bool {
        self.split
    }
}

impl Layout {
    /// Where a warehouse's row is.
    #[inline]
    pub fn warehouse_slot(self, w: u32) -> Slot {
        Partitioning::modulo(w.into())
    }

    /// Where a district is, with its customers and orders.
    #[inline]
    pub fn district_slot(self, w: u32, d: u8) -> Slot {
        match self.spread {
            false => self.warehouse_slot(w),
            true => Partitioning::spread(w.into(), d.into(), DISTRICTS.into()),
        }
    }

    /// Where the stock of an item is.
    #[inline]
    pub fn stock_slot(self, w: u32, i: u32) -> Slot {
        match self.spread {
            false => self.warehouse_slot(w),
            true => Partitioning::spread(w.into(), i.into(), STOCK_PARTS),
        }
    }

    /// The key of a payment to a district.
    #[inline]
    pub fn history(self, w: u32, d: u8, payer: u16, number: u64) -> Key {
        match self.spread {
            false => keys::history(w, payer, number),
            true => keys::district_history(w, d, payer, number),
        }
    }

    /// Replaces the text at the end of a customer by what `change(old, new)` leaves in `new`, and
    /// the length that it returns.
    pub fn update_customer_data<A: Access>(
        self,
        access: &mut A,
        key: &Key,
        change: impl FnOnce(&[u8], &mut [u8; CUSTOMER_DATA_MAX]) -> usize,
    ) -> Result<(), Abort> {
        let column = self.column::<CustomerData>();
        let record = access.get(column, key)?.ok_or(NOT_LOADED)?;
        let (_, old) = self.view::<CustomerData>(record);
        let mut text = [0; CUSTOMER_DATA_MAX];
        let length = change(old, &mut text);
        if self.split {
            return access.put(column, key, &text[..length]);
        }
        let mut row = [0; ROW_MAX];
        row[..CustomerData::OFFSET].copy_from_slice(&record[..CustomerData::OFFSET]);
        row[CustomerData::OFFSET..][..length].copy_from_slice(&text[..length]);
        access.put(column, key, &row[..CustomerData::OFFSET + length])
    }
}

/// Where a warehouse, a district or a customer is.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Address {
    /// Street, first line.
    pub street_1: [u8; 20],
    /// Street, second line.
    pub street_2: [u8; 20],
    /// City.
    pub city: [u8; 20],
    /// State, two letters.
    pub state: [u8; 2],
    /// Zip code: four digits and 11111.
    pub zip: [u8; 9],
}

columns! {
    /// What never changes of a warehouse.
    Warehouse in WAREHOUSE {
        /// W_NAME.
        name: [u8; 10],
        /// W_STREET_1 to W_ZIP.
        address: Address,
        /// W_TAX in 1/10000.
        tax: U16,
    }

    /// What payments add to.
    WarehouseYtd in WAREHOUSE group 1 after Warehouse {
        /// W_YTD in cents.
        ytd: I64,
    }

    /// What never changes of a district.
    District in DISTRICT {
        /// D_NAME.
        name: [u8; 10],
        /// D_STREET_1 to D_ZIP.
        address: Address,
        /// D_TAX in 1/10000.
        tax: U16,
    }

    /// What numbers the orders of a district.
    DistrictNext in DISTRICT group 1 after District {
        /// D_NEXT_O_ID.
        next_o_id: U32,
    }

    /// What payments add to.
    DistrictYtd in DISTRICT group 2 after District, DistrictNext {
        /// D_YTD in cents.
        ytd: I64,
    }

    /// What never changes of a customer.
    Customer in CUSTOMER {
        /// C_FIRST.
        first: [u8; 16],
        /// C_MIDDLE.
        middle: [u8; 2],
        /// C_LAST.
        last: [u8; 16],
        /// C_STREET_1 to C_ZIP.
        address: Address,
        /// C_PHONE.
        phone: [u8; 16],
        /// C_SINCE.
        since: U32,
        /// C_CREDIT: GC (good) or BC (bad).
        credit: [u8; 2],
        /// C_CREDIT_LIM in cents.
        credit_limit: I64,
        /// C_DISCOUNT in 1/10000.
        discount: U16,
    }

    /// What payments and deliveries change.
    CustomerBalance in CUSTOMER group 1 after Customer {
        /// C_BALANCE in cents.
        balance: I64,
        /// C_YTD_PAYMENT in cents.
        ytd_payment: I64,
        /// C_PAYMENT_CNT.
        payments: U32,
        /// C_DELIVERY_CNT.
        deliveries: U32,
    }

    /// Nothing but the text that follows: C_DATA, which payments of customers with bad credit
    /// rewrite.
    CustomerData in CUSTOMER group 2 after Customer, CustomerBalance {}

    /// A payment; H_DATA follows.
    History in HISTORY {
        /// H_C_W_ID.
        c_w: U32,
        /// H_C_D_ID.
        c_d: u8,
        /// H_D_ID.
        d: u8,
        /// H_C_ID.
        c: U32,
        /// H_DATE.
        date: U32,
        /// H_AMOUNT in cents.
        amount: I32,
    }

    /// An order.
    Order in ORDER {
        /// O_C_ID.
        c: U32,
        /// O_ENTRY_D.
        entered: U32,
        /// O_CARRIER_ID, 0 for null.
        carrier: u8,
        /// O_OL_CNT.
        lines: u8,
        /// O_ALL_LOCAL, 0 or 1.
        all_local: u8,
    }

    /// A line of an order.
    OrderLine in ORDER_LINE {
        /// OL_I_ID.
        item: U32,
        /// OL_SUPPLY_W_ID.
        supply_w: U32,
        /// OL_DELIVERY_D, 0 for null.
        delivered: U32,
        /// OL_AMOUNT in cents.
        amount: I32,
        /// OL_QUANTITY.
        quantity: u8,
        /// OL_DIST_INFO.
        dist_info: [u8; 24],
    }

    /// An item; I_DATA follows.
    Item in ITEM {
        /// I_IM_ID.
        image: U32,
        /// I_PRICE in cents.
        price: I32,
        /// I_NAME.
        name: [u8; 24],
    }

    /// What orders change of a stock.
    StockQuantity in STOCK {
        /// S_QUANTITY.
        quantity: I32,
        /// S_YTD.
        ytd: U32,
        /// S_ORDER_CNT.
        orders: U32,
        /// S_REMOTE_CNT.
        remote_orders: U32,
    }

    /// What never changes of a stock; S_DATA follows.
    Stock in STOCK group 1 after StockQuantity {
        /// S_DIST_01 to S_DIST_10.
        districts: [[u8; 24]; 10],
    }
}

/// Whether I_DATA or S_DATA contains the word ORIGINAL (Horspool's search: the last byte of a
/// window says how far it can move).
#[inline]
pub fn is_original(data: &[u8]) -> bool {
    let mut last = 7;
    while last < data.len() {
        last += match data[last] {
            b'L' if &data[last - 7..last] == b"ORIGINA" => return true,
            b'A' => 1,
            b'N' => 2,
            b'I' => 3,
            b'G' => 4,
            b'R' => 6,
            b'O' => 7,
            _ => 8,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_and_can_be_taken_apart() {
        let longest = keys::customer_name(7, 10, 999, b"Firstname", 3000);
        assert_eq!(longest.len(), 15);
        assert_eq!(keys::customer_of_name(&longest), 3000);
        assert!(keys::last_name(7, 10, 999) < longest && longest < keys::last_name(7, 10, 1000));
        for key in [keys::history(1, 2, 3), keys::district_history(1, 10, 2, 3)] {
            assert!(key.len() <= 15);
            assert_eq!(keys::payer_and_number(&key), (2, 3));
        }
        let line = keys::order_line(7, 10, 123_456, 15);
        assert_eq!((keys::order_of(&line), keys::number_of_line(&line)), (123_456, 15));
        let newest_first = [10, 9, 1].map(|o| keys::customer_order(7, 1, 5, o));
        assert!(newest_first.is_sorted());
        assert_eq!(newest_first.each_ref().map(keys::order_of_customer), [10, 9, 1]);
        assert!(
            newest_first.iter().all(|key| keys::customer(7, 1, 5) < *key && *key < keys::customer(7, 1, 6))
        );
    }

    #[test]
    fn the_word_original_is_found_wherever_it_stands() {
        for at in 0..=42 {
            let mut data = [b'O'; 50];
            data[at..at + 8].copy_from_slice(b"ORIGINAL");
            assert!(is_original(&data), "at {at}");
            data[at + 3] = b'I';
            assert!(!is_original(&data));
        }
        assert!(!is_original(b"ORIGINA") && !is_original(b"") && is_original(b"ORIGINAL"));
        assert!(is_original(b"ORIGINALORIGINAL") && is_original(b"xxORIGORIGINALyy"));
    }

    #[test]
    fn a_row_is_the_concatenation_of_its_groups() {
        assert_eq!(CustomerData::OFFSET, size_of::<Customer>() + size_of::<CustomerBalance>());
        assert_eq!(size_of::<CustomerData>(), 0);
        assert_eq!((size_of::<OrderLine>(), size_of::<Order>(), size_of::<Stock>()), (41, 11, 240));
        let row = [&[1; 16][..], &[2; 240], b"text"].concat();
        let (stock, text) = Layout { split: false, spread: false }.view::<Stock>(&row);
        assert_eq!((stock.districts[9], text), ([2; 24], &b"text"[..]));
        let (stock, text) = Layout { split: true, spread: false }.view::<Stock>(&row[16..]);
        assert_eq!((stock.districts[9], text), ([2; 24], &b"text"[..]));
    }
}
