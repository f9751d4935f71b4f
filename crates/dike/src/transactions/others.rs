//! Delivery (clause 2.7), Stock-Level (clause 2.8) and what Dike adds (paper §5, figures 7, 12 and
//! 13).

use super::inputs::{Delivery, StockLevel};
use crate::target::{Cause, Failure, Session, Statement, Value, call};

/// What one dUpdateBalance adds to w_ytd, in cents.
pub const BALANCE_STEP_CENTS: i64 = 1000;

/// Orders that Stock-Level looks at (clause 2.8.2.2).
const STOCK_LEVEL_ORDERS: i64 = 20;

/// Returns the districts in which it has delivered an order.
pub async fn delivery(session: &mut Session, input: &Delivery) -> Result<Vec<u32>, Failure> {
    let w = Value::from(input.warehouse);
    session.begin(false);
    let oldest: Vec<_> =
        (1..=input.districts).map(|d| call(Statement::OldestNewOrder, [w, d.into()])).collect();
    let answers = session.run(&oldest).await?;
    // A district without an order to deliver is skipped.
    let (mut orders, mut delivered) = (Vec::new(), Vec::new());
    for (district, answer) in (1..=input.districts).zip(&answers) {
        if let Some(row) = answer.rows.first() {
            orders.push((Value::from(district), Value::from(row.int(0)?)));
            delivered.push(district);
        }
    }
    let date = Value::Date(input.date_s);
    let steps = orders.iter().flat_map(|&(d, o)| {
        [
            call(Statement::DeleteNewOrder, [w, d, o]),
            call(Statement::OrderCustomer, [w, d, o]),
            call(Statement::SetCarrier, [input.carrier.into(), w, d, o]),
            call(Statement::LinesAmount, [w, d, o]),
            call(Statement::SetDelivered, [date, w, d, o]),
        ]
    });
    let answers = session.run(&steps.collect::<Vec<_>>()).await?;
    let mut payments = Vec::with_capacity(orders.len());
    for (answers, &(d, _)) in answers.chunks_exact(5).zip(&orders) {
        if answers[0].affected != 1 {
            return Err(Failure::new(Cause::Serialization, "another delivery was faster"));
        }
        answers[2].changed(1)?;
        let (customer, amount) = (answers[1].one()?.int(0)?, answers[3].one()?.cents(0)?);
        payments.push(call(Statement::DeliverCustomer, [Value::Cents(amount), w, d, customer.into()]));
    }
    for answer in session.run(&payments).await? {
        answer.changed(1)?;
    }
    session.commit().await?;
    Ok(delivered)
}

pub async fn stock_level(session: &mut Session, input: &StockLevel) -> Result<(), Failure> {
    let (d, threshold) = (Value::from(input.district), Value::from(input.threshold));
    session.begin(true);
    match input.warehouses[..] {
        [warehouse] => {
            let w = Value::from(warehouse);
            let next = session.run_one(Statement::DistrictNextRead, &[w, d]).await?.one()?.int(0)?;
            let orders = [(next - STOCK_LEVEL_ORDERS).into(), next.into()];
            let values = [w, d, orders[0], orders[1], threshold];
            session.run_one(Statement::LowStock, &values).await?.one()?.int(0)?;
        }
        _ => {
            let values: Vec<Value<'_>> =
                [d, threshold].into_iter().chain(input.warehouses.iter().map(|&w| w.into())).collect();
            let statement = Statement::LowStockOf(input.warehouses.len() as u16);
            session.run_one(statement, &values).await?.one()?.int(0)?;
        }
    }
    session.commit().await
}

pub async fn update_item(session: &mut Session, first: u32, count: u32) -> Result<(), Failure> {
    session.begin(false);
    let values = [first.into(), (first + count).into()];
    session.run_one(Statement::UpdateItems, &values).await?.changed(u64::from(count))?;
    session.commit().await
}

pub async fn update_stock(session: &mut Session, warehouses: &[u32], item: u32) -> Result<(), Failure> {
    session.begin(false);
    let reads = warehouses.iter().map(|&w| call(Statement::StockQuantity, [w.into(), item.into()]));
    let answers = session.run(&reads.collect::<Vec<_>>()).await?;
    let mut updates = Vec::with_capacity(warehouses.len());
    for (&w, answer) in warehouses.iter().zip(&answers) {
        let quantity = answer.one()?.int(0)?;
        // Within the bounds that the specification loads.
        let next = if quantity < 100 { quantity + 1 } else { 10 };
        updates.push(call(Statement::SetStockQuantity, [next.into(), w.into(), item.into()]));
    }
    for answer in session.run(&updates).await? {
        answer.changed(1)?;
    }
    session.commit().await
}

pub async fn update_balance(session: &mut Session, warehouses: &[u32]) -> Result<(), Failure> {
    session.begin(false);
    let step = Value::Cents(BALANCE_STEP_CENTS);
    let updates = warehouses.iter().map(|&w| call(Statement::UpdateBalance, [step, w.into()]));
    for answer in session.run(&updates.collect::<Vec<_>>()).await? {
        answer.changed(1)?;
    }
    session.commit().await
}

/// Returns what it has read, in cents.
pub async fn select_balance(session: &mut Session, warehouses: &[u32]) -> Result<Vec<i64>, Failure> {
    session.begin(true);
    let mut balances = Vec::with_capacity(warehouses.len());
    // One statement after the other, each with its own look at the database: that is what a
    // snapshot has to hide.
    for &w in warehouses {
        balances.push(session.run_one(Statement::SelectBalance, &[w.into()]).await?.one()?.cents(0)?);
    }
    session.commit().await?;
    Ok(balances)
}
