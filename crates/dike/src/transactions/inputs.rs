//! What transactions are given, and who chooses it.
//!
//! Two kinds of choices go into an input. Those of TPC-C that never change (customers, items,
//! amounts, quantities) are made here, by [`Inputs`]. Those that Dike controls (which transaction,
//! at which warehouse, with which others) are asked of a [`Control`]; [`Plain`] answers as TPC-C
//! does. A control that distributes, concentrates or shifts load is another implementation of the
//! same five questions, [`crate::run::Steered`].

use plimsoll_types::random::{NuRand, Rng, Zipf};

use super::Transaction;
use crate::config::{Config, Home, Workload};
use crate::control::distribution::order_lines;
use crate::load::scale::Scale;

/// The C of NURand for last names when running; see the loader.
const LAST_NAME_C: u32 = 223;
const CUSTOMER_C: u32 = 259;
const ITEM_C: u32 = 7911;

/// Zipf's exponent of the warehouses of dUpdateBalance and dSelectBalance.
const BALANCE_SKEW: f64 = 0.8;

/// Where a transaction is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The warehouse.
    pub warehouse: u32,
    /// The district; none for any of the warehouse's.
    pub district: Option<u32>,
}

/// The choices that Dike controls. One per terminal. Times are nanoseconds since the run's start.
pub trait Control: Send {
    /// The next transaction.
    fn transaction(&mut self, now_ns: u64, rng: &mut Rng) -> Transaction;

    /// Where it is at home.
    fn home(&mut self, transaction: Transaction, now_ns: u64, rng: &mut Rng) -> Place;

    /// The warehouses that supply the lines of a New-Order, one for each.
    fn suppliers(&mut self, home: u32, now_ns: u64, rng: &mut Rng) -> Vec<u32>;

    /// The warehouse of the customer of a Payment.
    fn payer(&mut self, home: u32, rng: &mut Rng) -> u32;

    /// The warehouses of a Stock-Level, Update-Stock, Update-Balance or Select-Balance, all
    /// different, at least one.
    fn warehouses(&mut self, transaction: Transaction, home: u32, now_ns: u64, rng: &mut Rng) -> Vec<u32>;
}

/// One line of a New-Order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The item.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supplier: u32,
    /// How many of it, 1 to 10.
    pub quantity: u32,
}

/// What a New-Order is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Home warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// Customer.
    pub customer: u32,
    /// 5 to 15 lines.
    pub lines: Vec<Line>,
    /// Whether the last item does not exist.
    pub rolls_back: bool,
    /// Seconds since 1970.
    pub date_s: i64,
}

/// How a customer is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customer {
    /// By number.
    Numbered(u32),
    /// By the number of the last name.
    Named(u32),
}

/// What a Payment is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The warehouse that is paid.
    pub warehouse: u32,
    /// The district that is paid.
    pub district: u32,
    /// The customer's warehouse.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u32,
    /// The customer.
    pub customer: Customer,
    /// The amount.
    pub cents: i64,
    /// Seconds since 1970.
    pub date_s: i64,
}

/// What an Order-Status is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// Home warehouse.
    pub warehouse: u32,
    /// District.
    pub district: u32,
    /// The customer.
    pub customer: Customer,
}

/// What a Delivery is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Home warehouse.
    pub warehouse: u32,
    /// How many districts it has.
    pub districts: u32,
    /// Who carries, 1 to 10.
    pub carrier: u32,
    /// Seconds since 1970.
    pub date_s: i64,
}

/// What a Stock-Level is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockLevel {
    /// The warehouses, the first one at home.
    pub warehouses: Vec<u32>,
    /// District, of each of them.
    pub district: u32,
    /// What is low.
    pub threshold: u32,
}

/// What a transaction is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// For a New-Order.
    NewOrder(NewOrder),
    /// For a Payment.
    Payment(Payment),
    /// For an Order-Status.
    OrderStatus(OrderStatus),
    /// For a Delivery.
    Delivery(Delivery),
    /// For a Stock-Level.
    StockLevel(StockLevel),
    /// For a dUpdateItem.
    UpdateItem {
        /// The first item.
        first: u32,
        /// How many.
        count: u32,
    },
    /// For a dUpdateStock.
    UpdateStock {
        /// The warehouses.
        warehouses: Vec<u32>,
        /// The item.
        item: u32,
    },
    /// For a dUpdateBalance.
    UpdateBalance {
        /// The warehouses, in this order.
        warehouses: Vec<u32>,
    },
    /// For a dSelectBalance.
    SelectBalance {
        /// The warehouses, in this order.
        warehouses: Vec<u32>,
    },
}

impl Input {
    /// The warehouses it touches, home first, each once; none for items, which belong to no
    /// warehouse.
    pub fn warehouses(&self) -> Vec<u32> {
        let mut warehouses: Vec<u32> = match self {
            Input::NewOrder(input) => {
                [input.warehouse].into_iter().chain(input.lines.iter().map(|line| line.supplier)).collect()
            }
            Input::Payment(input) => vec![input.warehouse, input.customer_warehouse],
            Input::OrderStatus(input) => vec![input.warehouse],
            Input::Delivery(input) => vec![input.warehouse],
            Input::StockLevel(input) => input.warehouses.clone(),
            Input::UpdateItem { .. } => Vec::new(),
            Input::UpdateStock { warehouses, .. }
            | Input::UpdateBalance { warehouses }
            | Input::SelectBalance { warehouses } => warehouses.clone(),
        };
        let mut kept = 0;
        for at in 0..warehouses.len() {
            if !warehouses[..kept].contains(&warehouses[at]) {
                warehouses.swap(kept, at);
                kept += 1;
            }
        }
        warehouses.truncate(kept);
        warehouses
    }
}

/// Draws the inputs of one terminal.
pub struct Inputs {
    scale: Scale,
    rollback_pct: f64,
    update_item_items: u32,
    customer_numbers: NuRand,
    item_numbers: NuRand,
    name_numbers: NuRand,
    rng: Rng,
}

impl Inputs {
    /// For terminal number `terminal`, from 0.
    pub fn new(scale: &Scale, workload: &Workload, seed: u64, terminal: u32) -> Inputs {
        Inputs {
            customer_numbers: NuRand::new(1023, CUSTOMER_C, 1..=scale.customers),
            item_numbers: NuRand::new(8191, ITEM_C, 1..=scale.items),
            name_numbers: NuRand::new(255, LAST_NAME_C, 0..=scale.last_names() - 1),
            rollback_pct: workload.rollback_pct,
            update_item_items: workload.update_item_items,
            rng: Rng::new(!seed, terminal.into()),
            scale: scale.clone(),
        }
    }

    /// The next transaction and what it is given; `date_s` is the time of day in seconds
    /// since 1970.
    pub fn next(&mut self, control: &mut dyn Control, now_ns: u64, date_s: i64) -> (Transaction, Input) {
        let transaction = control.transaction(now_ns, &mut self.rng);
        let home = control.home(transaction, now_ns, &mut self.rng);
        let warehouse = home.warehouse;
        let districts = self.scale.districts(warehouse);
        let district = home.district.unwrap_or_else(|| self.up_to(districts));
        let input = match transaction {
            Transaction::NewOrder => {
                let suppliers = control.suppliers(warehouse, now_ns, &mut self.rng);
                self.new_order(suppliers, warehouse, district, date_s)
            }
            Transaction::Payment => {
                let customer_warehouse = control.payer(warehouse, &mut self.rng);
                let customer_district = match customer_warehouse == warehouse {
                    true => district,
                    false => self.up_to(self.scale.districts(customer_warehouse)),
                };
                Input::Payment(Payment {
                    warehouse,
                    district,
                    customer_warehouse,
                    customer_district,
                    customer: self.customer(),
                    cents: self.rng.uniform(100..=500_000) as i64,
                    date_s,
                })
            }
            Transaction::OrderStatus => {
                Input::OrderStatus(OrderStatus { warehouse, district, customer: self.customer() })
            }
            Transaction::Delivery => {
                Input::Delivery(Delivery { warehouse, districts, carrier: self.up_to(10), date_s })
            }
            Transaction::StockLevel => {
                let warehouses = control.warehouses(transaction, warehouse, now_ns, &mut self.rng);
                let threshold = self.rng.uniform(10..=20) as u32;
                // A district that all of them have.
                let least = warehouses.iter().map(|&w| self.scale.districts(w)).min().unwrap_or(districts);
                let district = if district <= least { district } else { self.up_to(least) };
                Input::StockLevel(StockLevel { warehouses, district, threshold })
            }
            Transaction::UpdateItem => {
                let count = self.update_item_items;
                Input::UpdateItem { first: self.up_to(self.scale.items + 1 - count), count }
            }
            Transaction::UpdateStock => {
                let warehouses = control.warehouses(transaction, warehouse, now_ns, &mut self.rng);
                Input::UpdateStock { warehouses, item: self.up_to(self.scale.items) }
            }
            Transaction::UpdateBalance => Input::UpdateBalance {
                warehouses: control.warehouses(transaction, warehouse, now_ns, &mut self.rng),
            },
            Transaction::SelectBalance => Input::SelectBalance {
                warehouses: control.warehouses(transaction, warehouse, now_ns, &mut self.rng),
            },
        };
        (transaction, input)
    }

    /// A number from 1 to `most`.
    fn up_to(&mut self, most: u32) -> u32 {
        self.rng.uniform(1..=u64::from(most)) as u32
    }

    fn new_order(&mut self, suppliers: Vec<u32>, warehouse: u32, district: u32, date_s: i64) -> Input {
        let customer = self.customer_numbers.draw(&mut self.rng);
        let rolls_back = self.rng.pct(self.rollback_pct);
        let mut lines: Vec<Line> = suppliers
            .into_iter()
            .map(|supplier| Line {
                item: self.item_numbers.draw(&mut self.rng),
                supplier,
                quantity: self.rng.uniform(1..=10) as u32,
            })
            .collect();
        if let (true, Some(last)) = (rolls_back, lines.last_mut()) {
            last.item = self.scale.items + 1;
        }
        Input::NewOrder(NewOrder { warehouse, district, customer, lines, rolls_back, date_s })
    }

    fn customer(&mut self) -> Customer {
        match self.rng.pct(60.0) {
            true => Customer::Named(self.name_numbers.draw(&mut self.rng)),
            false => Customer::Numbered(self.customer_numbers.draw(&mut self.rng)),
        }
    }
}

/// TPC-C's own choices.
#[derive(Clone)]
pub struct Plain {
    warehouses: u32,
    workload: Workload,
    /// Sums of the weights of the mix.
    mix: [u32; 9],
    /// The warehouse of a terminal that stays.
    fixed: Option<u32>,
    balances: Zipf,
}

impl Plain {
    /// For any terminal.
    pub fn new(config: &Config) -> Plain {
        let mut sum = 0;
        let mix = config.mix.weights().map(|weight| {
            sum += weight;
            sum
        });
        Plain {
            warehouses: config.data.warehouses,
            workload: config.workload.clone(),
            mix,
            fixed: None,
            balances: Zipf::new(config.data.warehouses.into(), BALANCE_SKEW),
        }
    }

    /// For terminal number `terminal`, from 0.
    pub fn of_terminal(&self, config: &Config, terminal: u32) -> Plain {
        let mut plain = self.clone();
        plain.fixed = (config.run.home == Home::Fixed).then_some(terminal + 1);
        if config.mix.by_terminal {
            let place = 100 * u64::from(terminal) / u64::from(config.run.all_terminals());
            plain.mix = self.mix.map(|sum| if place < u64::from(sum) { 100 } else { 0 });
        }
        plain
    }

    /// A uniform warehouse that is not this one; this one if there is no other.
    fn other(&self, home: u32, rng: &mut Rng) -> u32 {
        if self.warehouses == 1 {
            return home;
        }
        let other = rng.uniform(1..=u64::from(self.warehouses) - 1) as u32;
        other + u32::from(other >= home)
    }
}

impl Control for Plain {
    fn transaction(&mut self, _now_ns: u64, rng: &mut Rng) -> Transaction {
        let draw = rng.below(100) as u32;
        let at = self.mix.iter().position(|&sum| draw < sum);
        Transaction::ALL[at.expect("the mix sums to 100")]
    }

    fn home(&mut self, _transaction: Transaction, _now_ns: u64, rng: &mut Rng) -> Place {
        let uniform = || rng.uniform(1..=u64::from(self.warehouses)) as u32;
        Place { warehouse: self.fixed.unwrap_or_else(uniform), district: None }
    }

    fn suppliers(&mut self, home: u32, _now_ns: u64, rng: &mut Rng) -> Vec<u32> {
        let mut suppliers = vec![home; order_lines(rng, 1)];
        for line in &mut suppliers {
            if rng.pct(self.workload.remote_line_pct) {
                *line = self.other(home, rng);
            }
        }
        suppliers
    }

    fn payer(&mut self, home: u32, rng: &mut Rng) -> u32 {
        if rng.pct(self.workload.remote_payment_pct) { self.other(home, rng) } else { home }
    }

    fn warehouses(&mut self, transaction: Transaction, home: u32, _now_ns: u64, rng: &mut Rng) -> Vec<u32> {
        let workload = &self.workload;
        let (count, skewed) = match transaction {
            Transaction::StockLevel => (workload.stock_level_warehouses, false),
            Transaction::UpdateStock => (workload.update_stock_warehouses, false),
            _ => (workload.balance_warehouses.min(self.warehouses), true),
        };
        let mut warehouses = if skewed { Vec::new() } else { vec![home] };
        while warehouses.len() < count as usize {
            let warehouse = match skewed {
                true => self.balances.draw(rng) as u32 + 1,
                false => rng.uniform(1..=u64::from(self.warehouses)) as u32,
            };
            if !warehouses.contains(&warehouse) {
                warehouses.push(warehouse);
            }
        }
        warehouses
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::config::{Data, Mix};

    fn drawn(config: &Config, count: usize) -> Vec<(Transaction, Input)> {
        let scale = Scale::new(&config.data);
        let mut inputs = Inputs::new(&scale, &config.workload, 7, 0);
        let mut control = Plain::new(config).of_terminal(config, 0);
        (0..count).map(|_| inputs.next(&mut control, 0, 0)).collect()
    }

    #[test]
    fn inputs_are_drawn_as_the_specification_says() {
        let config = Config::default();
        let drawn = drawn(&config, 100_000);
        let share = |count: usize, of: usize| 100.0 * count as f64 / of as f64;
        let near = |measured: f64, expected: f64, by: f64| {
            assert!((measured - expected).abs() < by, "{measured} instead of {expected}");
        };
        let (mut orders, mut lines, mut remote, mut rolled, mut distributed) = (0, 0, 0, 0, 0);
        let (mut payments, mut by_name, mut remote_payers) = (0, 0, 0);
        for (_, input) in &drawn {
            match input {
                Input::NewOrder(order) => {
                    orders += 1;
                    lines += order.lines.len();
                    remote += order.lines.iter().filter(|line| line.supplier != order.warehouse).count();
                    rolled += usize::from(order.rolls_back);
                    distributed += usize::from(input.warehouses().len() > 1);
                    assert_eq!(order.lines.last().is_some_and(|line| line.item == 100_001), order.rolls_back);
                }
                Input::Payment(payment) => {
                    payments += 1;
                    by_name += usize::from(matches!(payment.customer, Customer::Named(_)));
                    remote_payers += usize::from(payment.customer_warehouse != payment.warehouse);
                }
                _ => {}
            }
        }
        near(share(orders, drawn.len()), 45.0, 0.6);
        near(share(payments, drawn.len()), 43.0, 0.6);
        near(lines as f64 / orders as f64, 10.0, 0.1);
        near(share(remote, lines), 1.0, 0.1);
        near(share(rolled, orders), 1.0, 0.2);
        near(share(distributed, orders), 9.52, 0.6);
        near(share(by_name, payments), 60.0, 0.8);
        near(share(remote_payers, payments), 15.0, 0.6);
    }

    #[test]
    fn weights_may_be_of_terminals_each_of_which_runs_one_kind() {
        let mut config = Config::default();
        config.mix.by_terminal = true;
        config.run.terminals = 50;
        config.run.clients = 2;
        let (plain, mut rng) = (Plain::new(&config), Rng::new(1, 1));
        let mut counts = BTreeMap::new();
        for terminal in 0..config.run.all_terminals() {
            let mut control = plain.of_terminal(&config, terminal);
            let kinds: BTreeSet<Transaction> = (0..50).map(|_| control.transaction(0, &mut rng)).collect();
            assert_eq!(kinds.len(), 1, "terminal {terminal}");
            *counts.entry(kinds.first().copied()).or_insert(0) += 1;
        }
        assert_eq!(counts.into_values().collect::<Vec<_>>(), [45, 43, 4, 4, 4]);
    }

    #[test]
    fn warehouses_of_one_transaction_differ() {
        let mix =
            Mix { new_order: 0, payment: 0, order_status: 0, delivery: 0, stock_level: 40, ..Mix::default() };
        let config = Config {
            data: Data { warehouses: 4, district_skew: 1.5, ..Data::default() },
            mix: Mix { update_stock: 30, update_balance: 20, select_balance: 10, ..mix },
            workload: Workload {
                stock_level_warehouses: 3,
                update_stock_warehouses: 4,
                balance_warehouses: 2,
                ..Workload::default()
            },
            ..Config::default()
        };
        config.validate().expect("valid");
        let scale = Scale::new(&config.data);
        for (transaction, input) in drawn(&config, 2000) {
            let expected = match transaction {
                Transaction::StockLevel => 3,
                Transaction::UpdateStock => 4,
                _ => 2,
            };
            assert_eq!(input.warehouses().len(), expected, "{input:?}");
            if let Input::StockLevel(level) = &input {
                assert!(level.warehouses.iter().all(|&w| level.district <= scale.districts(w)), "{level:?}");
            }
        }
    }
}
