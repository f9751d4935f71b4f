//! The transactions: TPC-C's five (clause 2) and Dike's four (paper §5), as functions over a
//! [`Session`].
//!
//! | transaction | mix | what it does | round trips (pipelined) |
//! |---|---|---|---|
//! | New-Order | 45 | orders 5 to 15 items; *dNewOrder* when [`inputs::Control`] chooses their warehouses | 4 |
//! | Payment | 43 | a payment, 60 % by last name, 15 % by customers of other warehouses | 3 or 4 |
//! | Order-Status | 4 | a customer's newest order | 3 or 4 |
//! | Delivery | 4 | delivers the oldest order of every district | 4 |
//! | Stock-Level | 4 | low stocks among the last 20 orders; *dStockLevel* with several warehouses | 3 |
//! | dUpdateItem | | prices: a table that is copied everywhere is written | 2 |
//! | dUpdateStock | | the stock of an item in one or more warehouses, in one transaction | 3 |
//! | dUpdateBalance | | adds 10 to w_ytd of several warehouses, in any order | 2 |
//! | dSelectBalance | | reads w_ytd of several warehouses | 2 |
//!
//! Inputs are drawn before a transaction begins and kept over its retries; otherwise long
//! transactions, which conflict most, would be underrepresented. A transaction locks in the order
//! warehouse, district, order, customer, stock by warehouse and item, so that New-Orders and
//! Payments do not deadlock among themselves.
//!
//! The specification's terminals show names and addresses; they are read and thrown away. Delivery
//! runs at once and is not queued.

pub mod inputs;
mod new_order;
mod others;
mod payment;

use serde::{Deserialize, Serialize};

use crate::target::{Failure, Session};
pub use inputs::{Control, Input, Inputs, Plain};

/// Which transaction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// New-Order.
    NewOrder,
    /// Payment.
    Payment,
    /// Order-Status.
    OrderStatus,
    /// Delivery.
    Delivery,
    /// Stock-Level.
    StockLevel,
    /// dUpdateItem.
    UpdateItem,
    /// dUpdateStock.
    UpdateStock,
    /// dUpdateBalance.
    UpdateBalance,
    /// dSelectBalance.
    SelectBalance,
}

impl Transaction {
    /// All of them, in the order of [`crate::config::Mix::weights`].
    pub const ALL: [Transaction; 9] = [
        Transaction::NewOrder,
        Transaction::Payment,
        Transaction::OrderStatus,
        Transaction::Delivery,
        Transaction::StockLevel,
        Transaction::UpdateItem,
        Transaction::UpdateStock,
        Transaction::UpdateBalance,
        Transaction::SelectBalance,
    ];

    /// Its name in configurations and results.
    pub fn name(self) -> &'static str {
        match self {
            Transaction::NewOrder => "new_order",
            Transaction::Payment => "payment",
            Transaction::OrderStatus => "order_status",
            Transaction::Delivery => "delivery",
            Transaction::StockLevel => "stock_level",
            Transaction::UpdateItem => "update_item",
            Transaction::UpdateStock => "update_stock",
            Transaction::UpdateBalance => "update_balance",
            Transaction::SelectBalance => "select_balance",
        }
    }
}

/// How a transaction has ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It has committed.
    Committed {
        /// The districts in which it has delivered an order; none unless it is a Delivery.
        delivered: Vec<u32>,
    },
    /// It has rolled back, as its inputs wanted: one of its items does not exist.
    RolledBack,
}

/// Runs a transaction. After a failure its connection may still be in it: roll back, or give the
/// connection up.
pub async fn run(session: &mut Session, input: &Input) -> Result<Done, Failure> {
    let mut delivered = Vec::new();
    match input {
        Input::NewOrder(input) => return new_order::run(session, input).await,
        Input::Payment(input) => payment::run(session, input).await?,
        Input::OrderStatus(input) => payment::order_status(session, input).await?,
        Input::Delivery(input) => delivered = others::delivery(session, input).await?,
        Input::StockLevel(input) => others::stock_level(session, input).await?,
        Input::UpdateItem { first, count } => others::update_item(session, *first, *count).await?,
        Input::UpdateStock { warehouses, item } => others::update_stock(session, warehouses, *item).await?,
        Input::UpdateBalance { warehouses } => others::update_balance(session, warehouses).await?,
        Input::SelectBalance { warehouses } => {
            others::select_balance(session, warehouses).await?;
        }
    }
    Ok(Done::Committed { delivered })
}

pub(crate) use others::{BALANCE_STEP_CENTS, select_balance, update_balance};
