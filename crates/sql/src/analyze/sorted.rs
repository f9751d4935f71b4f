//! Rows that come in order because they are read in order: then they need not be sorted, and what
//! asks for the first ones reads no more than those.

use super::plan::{Access, Aggregated, Direction, Equal, Expr, Plan, Scan};
use super::{needed, paths};
use crate::catalog::{Index, Table};
use crate::functions::Body;
use crate::functions::aggregates::Kind;
use crate::types::Datum;

/// A plan for rows in this order; `is_limited` if not all of them may be asked for.
pub fn sorted(input: Plan, keys: Vec<(usize, Direction)>, is_limited: bool) -> Plan {
    let mut input = input;
    if read_in_order(&mut input, &keys, is_limited) {
        return input;
    }
    Plan::Sort { input: Box::new(input), keys }
}

/// A plan for groups. The least or the largest value of a column is in the first row in order.
pub fn grouped(input: Plan, keys: Vec<Expr>, aggregates: Vec<Aggregated>) -> Plan {
    let mut input = extreme(&input, &keys, &aggregates).unwrap_or(input);
    let of_aggregates = aggregates.iter().flat_map(|aggregate| {
        let order = aggregate.order.iter().map(|(expr, _)| expr);
        aggregate.arguments.iter().chain(&aggregate.filter).chain(order)
    });
    needed::only(&mut input, &keys.iter().chain(of_aggregates).collect::<Vec<_>>());
    Plan::Group { input: Box::new(input), keys, aggregates }
}

fn extreme(input: &Plan, keys: &[Expr], aggregates: &[Aggregated]) -> Option<Plan> {
    let ([], [Aggregated { function, arguments, filter: None, .. }]) = (keys, aggregates) else {
        return None;
    };
    let descending = match function.body {
        Body::Aggregate(Kind::Least) => false,
        Body::Aggregate(Kind::Greatest) => true,
        _ => return None,
    };
    let [Expr::Column { level: 0, place }] = arguments.as_slice() else { return None };
    let mut input = input.clone();
    let order = [(*place, Direction { descending, nulls_first: descending })];
    if !read_in_order(&mut input, &order, true) {
        return None;
    }
    let condition = Expr::IsNotNull(Box::new(Expr::Column { level: 0, place: *place }));
    Some(Plan::Limit {
        input: Box::new(Plan::Filter { input: Box::new(input), condition }),
        count: Some(Expr::Constant(Datum::Int8(1))),
        skip: None,
        ties: None,
    })
}

/// Lets a plan read rows in this order, if it can.
fn read_in_order(plan: &mut Plan, keys: &[(usize, Direction)], is_limited: bool) -> bool {
    match plan {
        Plan::Filter { input, .. } => read_in_order(input, keys, is_limited),
        Plan::Project { input, columns } => {
            let below = keys.iter().map(|(place, direction)| match columns.get(*place) {
                Some(Expr::Column { level: 0, place }) => Some((*place, *direction)),
                _ => None,
            });
            let below: Option<Vec<(usize, Direction)>> = below.collect();
            below.is_some_and(|below| read_in_order(input, &below, is_limited))
        }
        // Outer rows come in their order.
        Plan::Join { left, .. } => {
            let width = paths::columns_of(left);
            let is_outer = |(place, _): &(usize, Direction)| width.is_some_and(|width| *place < width);
            keys.iter().all(is_outer) && read_in_order(left, keys, is_limited)
        }
        Plan::Scan(scan) => scan_in_order(scan, keys, is_limited),
        _ => false,
    }
}

fn scan_in_order(scan: &mut Scan, keys: &[(usize, Direction)], is_limited: bool) -> bool {
    if scan.reverse {
        return false;
    }
    let table = scan.table.clone();
    if let Some(reverse) = order_of(&table, &scan.access, keys) {
        scan.reverse = reverse;
        return true;
    }
    // To read all rows through an index is slower than to sort them.
    if scan.access != Access::default() || !is_limited {
        return false;
    }
    for (place, index) in table.indexes.iter().enumerate() {
        let access = Access { index: Some(place), ..Access::default() };
        if index.is_ready
            && let Some(reverse) = order_of(&table, &access, keys)
        {
            (scan.access, scan.reverse) = (access, reverse);
            return true;
        }
    }
    false
}

/// Whether rows come in this order from their beginning, or from their end; none if in neither.
fn order_of(table: &Table, access: &Access, keys: &[(usize, Direction)]) -> Option<bool> {
    let index = access.index.and_then(|place| table.indexes.get(place));
    let columns = columns(table, index);
    let is_fixed = |at: usize| matches!(access.equal.get(at), Some(Equal::One(_)));
    let fixed: Vec<Option<usize>> = (0..columns.len())
        .filter(|at| is_fixed(*at))
        .filter_map(|at| columns.get(at))
        .map(|c| c.place)
        .collect();
    let mut wanted = keys.iter().filter(|(place, _)| !fixed.contains(&Some(*place))).peekable();
    let mut reverse = None;
    for (at, column) in columns.iter().enumerate() {
        let Some((place, direction)) = wanted.peek() else { break };
        if is_fixed(at) {
            continue;
        }
        let turned = direction.descending != column.descending;
        let has_nulls_there = (direction.nulls_first != column.nulls_first) == turned;
        if column.place != Some(*place)
            || column.may_be_null && !has_nulls_there
            || reverse.is_some_and(|reverse| reverse != turned)
        {
            return None;
        }
        reverse = Some(turned);
        wanted.next();
    }
    // No two rows have the same key, so nothing is left to be ordered.
    let is_key = !columns.is_empty()
        && index.is_none_or(|index| index.unique)
        && columns.iter().all(|column| !column.may_be_null);
    (wanted.peek().is_none() || is_key).then_some(reverse.unwrap_or(false))
}

/// A column of an index, or of the primary key.
struct Ordered {
    /// Where it is among the columns that are there.
    place: Option<usize>,
    descending: bool,
    nulls_first: bool,
    may_be_null: bool,
}

fn columns(table: &Table, index: Option<&Index>) -> Vec<Ordered> {
    let ordered = |position: u16, descending, nulls_first| {
        let position = usize::from(position);
        let may_be_null = table.columns.get(position).is_none_or(|column| !column.not_null);
        Ordered { place: table.live_place(position), descending, nulls_first, may_be_null }
    };
    match index {
        None => table.primary.iter().map(|position| ordered(*position, false, false)).collect(),
        Some(index) => {
            let parts = index.parts.iter();
            parts.map(|part| ordered(part.column, part.descending, part.nulls_first)).collect()
        }
    }
}
