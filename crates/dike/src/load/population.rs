//! The initial rows (clause 4.3.3.1), the same for the same seed.
//!
//! Rows are made in *pieces*: a table, a warehouse, and a part of it, a district or ten thousand
//! items. Each piece draws from a stream of random numbers of its own, so pieces can be made by
//! anybody, in any order, any number of times. Orders and their lines have to agree on how many
//! lines there are; both draw that from a third stream.
//!
//! The generator, NURand and the last names are those of the TPC-C that the engine runs itself
//! (`plimsoll-workloads`). Its loader is not: it makes packed records of eleven key-value tables,
//! all tables of a district interleaved, and at most 255 districts.

use plimsoll_types::random::{NuRand, Rng, last_name};

use super::encode::Encoder;
use super::scale::{LOADED_PAYMENT_CENTS, Scale};

/// The C of NURand for last names while loading; when running it is 223, an allowed distance of 66
/// away (clause 2.1.6.1).
const LAST_NAME_C: u32 = 157;
/// The date of everything that is loaded: the first second of 2026.
const LOAD_DATE_S: i64 = 1_767_225_600;
/// C_CREDIT_LIM in cents.
const CREDIT_LIMIT_CENTS: i64 = 5_000_000;
/// Items and stocks of a piece.
const ITEMS_OF_PIECE: u32 = 10_000;

/// What a piece holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Items of that part of all.
    Items(u32),
    Warehouse,
    Districts,
    /// Stocks of that part of all items.
    Stocks(u32),
    Customers(u32),
    Histories(u32),
    Orders(u32),
    NewOrders(u32),
    Lines(u32),
}

/// Some rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    warehouse: u32,
    part: Part,
}

/// The pieces of a unit: the items (unit 0), or a warehouse.
pub fn pieces(scale: &Scale, unit: u32) -> Vec<Piece> {
    let chunks = 0..scale.items.div_ceil(ITEMS_OF_PIECE);
    let piece = |part| Piece { warehouse: unit, part };
    if unit == 0 {
        return chunks.map(|chunk| piece(Part::Items(chunk))).collect();
    }
    let mut pieces = vec![piece(Part::Warehouse), piece(Part::Districts)];
    pieces.extend(chunks.map(|chunk| piece(Part::Stocks(chunk))));
    for d in 1..=scale.districts(unit) {
        let parts =
            [Part::Customers(d), Part::Histories(d), Part::Orders(d), Part::NewOrders(d), Part::Lines(d)];
        pieces.extend(parts.map(piece));
    }
    pieces
}

/// How many rows each table has when everything is loaded.
pub fn rows(scale: &Scale) -> [(&'static str, u64); 9] {
    let (warehouses, items) = (u64::from(scale.warehouses), u64::from(scale.items));
    let (mut districts, mut lines) = (0, 0);
    for w in 1..=scale.warehouses {
        for d in 1..=scale.districts(w) {
            districts += 1;
            lines += shape(scale, w, d).iter().map(|&(_, lines)| u64::from(lines)).sum::<u64>();
        }
    }
    let customers = districts * u64::from(scale.customers);
    [
        ("item", items),
        ("warehouse", warehouses),
        ("district", districts),
        ("customer", customers),
        ("history", customers),
        ("orders", customers),
        ("new_order", districts * u64::from(scale.customers - scale.delivered())),
        ("order_line", lines),
        ("stock", warehouses * items),
    ]
}

impl Piece {
    /// The table it belongs to.
    pub fn table(&self) -> &'static str {
        match self.part {
            Part::Items(_) => "item",
            Part::Warehouse => "warehouse",
            Part::Districts => "district",
            Part::Stocks(_) => "stock",
            Part::Customers(_) => "customer",
            Part::Histories(_) => "history",
            Part::Orders(_) => "orders",
            Part::NewOrders(_) => "new_order",
            Part::Lines(_) => "order_line",
        }
    }

    /// Writes its rows.
    pub fn write(&self, scale: &Scale, out: &mut Encoder) {
        let w = self.warehouse;
        let (table, part) = match self.part {
            Part::Items(chunk) => (0, chunk),
            Part::Warehouse => (1, 0),
            Part::Districts => (2, 0),
            Part::Stocks(chunk) => (3, chunk),
            Part::Customers(d) => (4, d),
            Part::Histories(d) => (5, d),
            Part::Orders(d) => (6, d),
            Part::NewOrders(d) => (7, d),
            Part::Lines(d) => (8, d),
        };
        let mut rows = Rows { scale, rng: stream(scale, table, w, part), out };
        match self.part {
            Part::Items(chunk) => rows.items(chunk),
            Part::Warehouse => rows.warehouse(w),
            Part::Districts => rows.districts(w),
            Part::Stocks(chunk) => rows.stocks(w, chunk),
            Part::Customers(d) => rows.customers(w, d),
            Part::Histories(d) => rows.histories(w, d),
            Part::Orders(d) => rows.orders(w, d),
            Part::NewOrders(d) => rows.new_orders(w, d),
            Part::Lines(d) => rows.lines(w, d),
        }
    }
}

/// The random numbers of a piece: 4 bits of table, 28 each of warehouse and part.
fn stream(scale: &Scale, table: u64, warehouse: u32, part: u32) -> Rng {
    Rng::new(scale.seed, table << 56 | u64::from(warehouse) << 28 | u64::from(part))
}

/// Who has placed each order of a district, and how many lines it has.
fn shape(scale: &Scale, w: u32, d: u32) -> Vec<(u32, u32)> {
    let mut rng = stream(scale, 9, w, d);
    let customers = rng.permutation(scale.customers);
    customers.into_iter().map(|customer| (customer, rng.uniform(5..=15) as u32)).collect()
}

struct Rows<'a> {
    scale: &'a Scale,
    rng: Rng,
    out: &'a mut Encoder,
}

impl Rows<'_> {
    fn items(&mut self, chunk: u32) {
        for i in self.chunk(chunk) {
            self.out.row(5);
            self.out.int(i).int(self.rng.uniform(1..=10_000) as u32);
            self.astr(14, 24);
            let price = self.rng.uniform(100..=10_000) as i64;
            self.out.decimal(price, 2);
            self.text_with_original();
            self.out.end();
        }
    }

    fn chunk(&self, chunk: u32) -> std::ops::RangeInclusive<u32> {
        chunk * ITEMS_OF_PIECE + 1..=((chunk + 1) * ITEMS_OF_PIECE).min(self.scale.items)
    }

    fn warehouse(&mut self, w: u32) {
        self.out.row(9);
        self.out.int(w);
        self.astr(6, 10);
        self.address();
        self.rate(2000);
        let customers = i64::from(self.scale.customers) * i64::from(self.scale.districts(w));
        self.out.decimal(LOADED_PAYMENT_CENTS * customers, 2);
        self.out.end();
    }

    fn districts(&mut self, w: u32) {
        for d in 1..=self.scale.districts(w) {
            self.out.row(11);
            self.out.int(w).int(d);
            self.astr(6, 10);
            self.address();
            self.rate(2000);
            let paid = LOADED_PAYMENT_CENTS * i64::from(self.scale.customers);
            self.out.decimal(paid, 2).int(self.scale.customers + 1);
            self.out.end();
        }
    }

    fn stocks(&mut self, w: u32, chunk: u32) {
        for i in self.chunk(chunk) {
            self.out.row(17);
            self.out.int(w).int(i).int(self.rng.uniform(10..=100) as u32);
            for _ in 0..10 {
                self.letters_24();
            }
            self.out.int(0).int(0).int(0);
            self.text_with_original();
            self.out.end();
        }
    }

    fn customers(&mut self, w: u32, d: u32) {
        let names = self.scale.last_names();
        let name_numbers = NuRand::new(255, LAST_NAME_C, 0..=names - 1);
        for c in 1..=self.scale.customers {
            let name = if c <= names { c - 1 } else { name_numbers.draw(&mut self.rng) };
            let (last, length) = last_name(name);
            self.out.row(21);
            self.out.int(w).int(d).int(c);
            self.astr(8, 16);
            self.out.text(b"OE").text(&last[..length]);
            self.address();
            let mut phone = [0; 16];
            self.rng.nstr(&mut phone);
            self.out.text(&phone).date(LOAD_DATE_S);
            self.out.text(if self.rng.pct(10.0) { b"BC" } else { b"GC" }).decimal(CREDIT_LIMIT_CENTS, 2);
            self.rate(5000);
            self.out.decimal(-LOADED_PAYMENT_CENTS, 2).decimal(LOADED_PAYMENT_CENTS, 2).int(1).int(0);
            self.astr(300, 500);
            self.out.end();
        }
    }

    fn histories(&mut self, w: u32, d: u32) {
        for c in 1..=self.scale.customers {
            self.out.row(8);
            self.out.int(c).int(d).int(w).int(d).int(w).date(LOAD_DATE_S).decimal(LOADED_PAYMENT_CENTS, 2);
            self.astr(12, 24);
            self.out.end();
        }
    }

    fn orders(&mut self, w: u32, d: u32) {
        for (o, (customer, lines)) in (1..).zip(shape(self.scale, w, d)) {
            self.out.row(8);
            self.out.int(w).int(d).int(o).int(customer).date(LOAD_DATE_S);
            match o <= self.scale.delivered() {
                true => self.out.int(self.rng.uniform(1..=10) as u32),
                false => self.out.null(),
            };
            self.out.int(lines).int(1);
            self.out.end();
        }
    }

    fn new_orders(&mut self, w: u32, d: u32) {
        for o in self.scale.delivered() + 1..=self.scale.customers {
            self.out.row(3);
            self.out.int(w).int(d).int(o);
            self.out.end();
        }
    }

    fn lines(&mut self, w: u32, d: u32) {
        for (o, (_, lines)) in (1..).zip(shape(self.scale, w, d)) {
            let delivered = o <= self.scale.delivered();
            for number in 1..=lines {
                let item = self.rng.uniform(1..=u64::from(self.scale.items)) as u32;
                let amount = if delivered { 0 } else { self.rng.uniform(1..=999_999) as i64 };
                self.out.row(10);
                self.out.int(w).int(d).int(o).int(number).int(item).int(w);
                match delivered {
                    true => self.out.date(LOAD_DATE_S),
                    false => self.out.null(),
                };
                self.out.int(5).decimal(amount, 2);
                self.letters_24();
                self.out.end();
            }
        }
    }

    /// Streets, city, state and zip.
    fn address(&mut self) {
        for _ in 0..3 {
            self.astr(10, 20);
        }
        let state: [u8; 2] = std::array::from_fn(|_| b'A' + self.rng.below(26) as u8);
        let mut zip = *b"000011111";
        self.rng.nstr(&mut zip[..4]);
        self.out.text(&state).text(&zip);
    }

    /// A random text of `least` to `most` characters.
    fn astr(&mut self, least: u64, most: u64) {
        let mut text = [0; 500];
        let length = self.rng.astr(&mut text[..most as usize], least..=most);
        self.out.text(&text[..length]);
    }

    fn letters_24(&mut self) {
        let mut text = [0; 24];
        self.rng.letters(&mut text);
        self.out.text(&text);
    }

    /// I_DATA or S_DATA: every tenth with ORIGINAL in it.
    fn text_with_original(&mut self) {
        let mut text = [0; 50];
        let length = self.rng.astr(&mut text, 26..=50);
        if self.rng.pct(10.0) {
            let at = self.rng.below(length as u64 - 7) as usize;
            text[at..at + 8].copy_from_slice(b"ORIGINAL");
        }
        self.out.text(&text[..length]);
    }

    /// A tax or a discount of 0 to `max`, in 1/10000.
    fn rate(&mut self, max: u64) {
        let rate = self.rng.uniform(0..=max) as i64;
        self.out.decimal(rate, 4);
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::{Encoded, Form};
    use super::*;
    use crate::config::Data;

    fn small(seed: u64) -> Scale {
        Scale::new(&Data { warehouses: 2, items: 100, customers_per_district: 30, seed, ..Data::default() })
    }

    fn text(scale: &Scale, unit: u32, table: &str) -> String {
        let mut text = String::new();
        for piece in pieces(scale, unit).iter().filter(|piece| piece.table() == table) {
            let mut encoder = Encoder::new(Form::Csv, piece.table());
            piece.write(scale, &mut encoder);
            let Encoded::Csv(bytes) = encoder.finish() else { panic!("text") };
            text += std::str::from_utf8(&bytes).expect("ASCII");
        }
        text
    }

    #[test]
    fn the_same_seed_makes_the_same_rows() {
        for table in ["warehouse", "district", "customer", "orders", "order_line", "stock"] {
            assert_eq!(text(&small(1), 1, table), text(&small(1), 1, table));
            assert_ne!(text(&small(1), 1, table), text(&small(2), 1, table), "{table}");
            assert_ne!(text(&small(1), 1, table), text(&small(1), 2, table), "{table}");
        }
    }

    #[test]
    fn orders_and_lines_agree() {
        let scale = small(3);
        let lines = text(&scale, 1, "order_line");
        let mut ordered = 0;
        for order in text(&scale, 1, "orders").lines() {
            let columns: Vec<&str> = order.split(',').collect();
            let prefix = format!("1,{},{},", columns[1], columns[2]);
            let count = lines.lines().filter(|line| line.starts_with(&prefix)).count();
            assert_eq!(count.to_string(), columns[6], "{order}");
            ordered += count;
        }
        assert_eq!(ordered, lines.lines().count());
        assert_eq!(text(&scale, 1, "new_order").lines().count(), 9 * 10);
        assert_eq!(text(&scale, 1, "customer").lines().count(), 30 * 10);
        assert_eq!(text(&scale, 0, "item").lines().count(), 100);
    }
}
