//! Payment (clause 2.5) and Order-Status (clause 2.6), which both look for customers by name.

use plimsoll_types::random::last_name;

use super::inputs::{Customer, OrderStatus, Payment};
use crate::target::{Answer, Failure, Session, Statement, Value, call, format_decimal};

/// The longest C_DATA.
const CUSTOMER_TEXT_MAX: usize = 500;

/// The spelling of the last name with this number.
fn spelled(number: u32) -> String {
    let (name, length) = last_name(number);
    String::from_utf8_lossy(&name[..length]).into_owned()
}

/// Of everybody with a name, by first name, the one in the middle, rounded up (clause 2.5.2.2).
fn in_the_middle(found: &Answer) -> Result<i64, Failure> {
    match found.rows.len() {
        0 => Err(Failure::unexpected("no customer has a last name that all districts have")),
        count => found.rows[count.div_ceil(2) - 1].int(0),
    }
}

pub async fn run(session: &mut Session, input: &Payment) -> Result<(), Failure> {
    let (w, d) = (Value::from(input.warehouse), Value::from(input.district));
    let (c_w, c_d) = (Value::from(input.customer_warehouse), Value::from(input.customer_district));
    let amount = Value::Cents(input.cents);
    let name = if let Customer::Named(number) = input.customer { spelled(number) } else { String::new() };
    session.begin(false);
    let mut calls = vec![
        call(Statement::PayWarehouse, [amount, w]),
        call(Statement::WarehouseName, [w]),
        call(Statement::PayDistrict, [amount, w, d]),
        call(Statement::DistrictName, [w, d]),
    ];
    calls.push(match input.customer {
        Customer::Numbered(number) => call(Statement::CustomerToPay, [c_w, c_d, number.into()]),
        Customer::Named(_) => call(Statement::CustomersByName, [c_w, c_d, Value::Text(&name)]),
    });
    let answers = session.run(&calls).await?;
    answers[0].changed(1)?;
    answers[2].changed(1)?;
    let history = format!("{}    {}", answers[1].one()?.text(0)?, answers[3].one()?.text(0)?);

    let (customer, credit) = match input.customer {
        Customer::Numbered(number) => (i64::from(number), answers[4].one()?.text(9)?.to_owned()),
        Customer::Named(_) => {
            let customer = in_the_middle(&answers[4])?;
            let answer = session.run_one(Statement::CustomerToPay, &[c_w, c_d, customer.into()]).await?;
            (customer, answer.one()?.text(9)?.to_owned())
        }
    };
    let c = Value::from(customer);
    let mut text = String::new();
    if credit == "BC" {
        let answer = session.run_one(Statement::CustomerText, &[c_w, c_d, c]).await?;
        text = format!(
            "{customer} {} {} {} {} {} {}",
            input.customer_district,
            input.customer_warehouse,
            input.district,
            input.warehouse,
            format_decimal(input.cents, 2),
            answer.one()?.text(0)?
        );
        text.truncate(CUSTOMER_TEXT_MAX);
    }
    let pay = match text.as_str() {
        "" => call(Statement::PayCustomer, [amount, amount, c_w, c_d, c]),
        text => call(Statement::PayBadCustomer, [amount, amount, Value::Text(text), c_w, c_d, c]),
    };
    let row = [c, c_d, c_w, d, w, Value::Date(input.date_s), amount, Value::Text(&history)];
    let answers = session.run(&[pay, call(Statement::InsertHistory, row)]).await?;
    answers[0].changed(1)?;
    session.commit().await
}

pub async fn order_status(session: &mut Session, input: &OrderStatus) -> Result<(), Failure> {
    let (w, d) = (Value::from(input.warehouse), Value::from(input.district));
    session.begin(true);
    let customer = match input.customer {
        Customer::Numbered(number) => i64::from(number),
        Customer::Named(number) => {
            let name = spelled(number);
            in_the_middle(&session.run_one(Statement::CustomersByName, &[w, d, Value::Text(&name)]).await?)?
        }
    };
    let key = [w, d, customer.into()];
    let answers =
        session.run(&[call(Statement::CustomerBalance, key), call(Statement::NewestOrder, key)]).await?;
    answers[0].one()?.cents(0)?;
    let order = answers[1].one()?.int(0)?;
    let lines = session.run_one(Statement::Lines, &[w, d, order.into()]).await?;
    if lines.rows.is_empty() {
        return Err(Failure::unexpected("an order has no lines"));
    }
    session.commit().await
}
