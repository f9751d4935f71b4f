//! Which columns of a table a query looks at: a scan need not read the others from what is stored.

use super::plan::{Expr, Plan};

/// Tells the scan under a plan that only the columns of its rows are looked at that are in these
/// expressions, or in those on the way to it. Says nothing if there is more on the way than filters
/// and orders, or a query in an expression.
pub fn only(plan: &mut Plan, exprs: &[&Expr]) {
    let mut places = Vec::new();
    if exprs.iter().all(|expr| look(expr, &mut places)) {
        narrow(plan, places);
    }
}

fn narrow(plan: &mut Plan, mut places: Vec<usize>) {
    match plan {
        Plan::Filter { input, condition } if look(condition, &mut places) => narrow(input, places),
        Plan::Sort { input, keys } => {
            places.extend(keys.iter().map(|(place, _)| place));
            narrow(input, places);
        }
        Plan::Limit { input, ties, .. } => {
            places.extend(ties.iter().flatten());
            narrow(input, places);
        }
        Plan::Scan(scan) => {
            let mut needed = vec![false; scan.table.columns.len()];
            for (place, (position, _)) in scan.table.live().enumerate() {
                if let Some(needed) = needed.get_mut(position) {
                    *needed = places.contains(&place);
                }
            }
            scan.needed = Some(needed);
        }
        _ => {}
    }
}

/// Collects the places of the columns in an expression, unless it has a query.
fn look(expr: &Expr, places: &mut Vec<usize>) -> bool {
    match expr {
        Expr::Subquery(_) => return false,
        Expr::Column { level: 0, place } => places.push(*place),
        Expr::Each { change, .. } if !look(change, places) => return false,
        _ => {}
    }
    expr.parts().into_iter().all(|part| look(part, places))
}
