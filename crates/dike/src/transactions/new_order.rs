//! New-Order (clause 2.4).

use super::Done;
use super::inputs::NewOrder;
use crate::target::{Failure, Session, Statement, Value, call};

pub async fn run(session: &mut Session, input: &NewOrder) -> Result<Done, Failure> {
    let (w, d) = (Value::from(input.warehouse), Value::from(input.district));
    session.begin(false);
    let answers = session
        .run(&[
            call(Statement::WarehouseTax, [w]),
            call(Statement::DistrictNext, [w, d]),
            call(Statement::RaiseNext, [w, d]),
            call(Statement::CustomerDiscount, [w, d, input.customer.into()]),
        ])
        .await?;
    answers[0].one()?.rate(0)?;
    let order = answers[1].one()?.int(1)?;
    answers[2].changed(1)?;
    answers[3].one()?.rate(0)?;

    // Stocks are locked in one order by everybody.
    let lines = &input.lines;
    let mut by_stock: Vec<usize> = (0..lines.len()).collect();
    by_stock.sort_by_key(|&at| (lines[at].supplier, lines[at].item));
    let all_local = lines.iter().all(|line| line.supplier == input.warehouse);
    let mut calls = vec![
        call(
            Statement::InsertOrder,
            [
                order.into(),
                d,
                w,
                input.customer.into(),
                Value::Date(input.date_s),
                Value::Int(lines.len() as i64),
                Value::Int(all_local.into()),
            ],
        ),
        call(Statement::InsertNewOrder, [order.into(), d, w]),
    ];
    calls.extend(lines.iter().map(|line| call(Statement::Item, [line.item.into()])));
    let column = ((input.district - 1) % 10 + 1) as u8;
    calls.extend(
        by_stock
            .iter()
            .map(|&at| call(Statement::Stock(column), [lines[at].supplier.into(), lines[at].item.into()])),
    );
    let answers = session.run(&calls).await?;
    let items = &answers[2..2 + lines.len()];
    let stocks = &answers[2 + lines.len()..];
    if items.iter().any(|item| item.rows.is_empty()) && input.rolls_back {
        session.rollback().await?;
        return Ok(Done::RolledBack);
    }

    let mut updates = Vec::with_capacity(lines.len() + 1);
    let mut infos = vec![""; lines.len()];
    // The same stock may occur twice: the second line goes on from the first.
    let mut previous: Option<(u32, u32, i64)> = None;
    for (&at, stock) in by_stock.iter().zip(stocks) {
        let line = &lines[at];
        let stock = stock.one()?;
        let quantity = match previous {
            Some((supplier, item, left)) if (supplier, item) == (line.supplier, line.item) => left,
            _ => stock.int(0)?,
        };
        let ordered = i64::from(line.quantity);
        let left = if quantity >= ordered + 10 { quantity - ordered } else { quantity + 91 - ordered };
        previous = Some((line.supplier, line.item, left));
        infos[at] = stock.text(2)?;
        let remote = i64::from(line.supplier != input.warehouse);
        updates.push(call(
            Statement::UpdateStock,
            [left.into(), ordered.into(), remote.into(), line.supplier.into(), line.item.into()],
        ));
    }
    let mut values = Vec::with_capacity(9 * lines.len());
    for (number, ((line, item), info)) in (1i64..).zip(lines.iter().zip(items).zip(infos)) {
        let amount = item.one()?.cents(0)? * i64::from(line.quantity);
        values.extend([
            order.into(),
            d,
            w,
            number.into(),
            line.item.into(),
            line.supplier.into(),
            line.quantity.into(),
            Value::Cents(amount),
            Value::Text(info),
        ]);
    }
    updates.push(call(Statement::InsertLines(lines.len() as u8), values));
    let answers = session.run(&updates).await?;
    answers[..lines.len()].iter().try_for_each(|answer| answer.changed(1))?;
    session.commit().await?;
    Ok(Done::Committed { delivered: Vec::new() })
}
