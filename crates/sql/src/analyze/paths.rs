//! Which part of a table a query has to read: what its conditions say of the primary key, or of an
//! index.
//!
//! A condition stays where it is, and is tested on every row; what is found here only keeps rows
//! from being read that it would refuse. A condition over two tables that names the key of the
//! second is a reason to look its rows up for every row of the first, and not to read all of them.

use super::plan::{Access, Equal, Expr, Plan, Reading, Scan};
use crate::catalog::Table;
use crate::functions::{Volatility, operators};
use crate::types::Oid;

/// How two values compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    fn of(operator: &str) -> Option<Comparison> {
        Some(match operator {
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            "=" => Comparison::Equal,
            ">=" => Comparison::GreaterOrEqual,
            ">" => Comparison::Greater,
            _ => return None,
        })
    }

    /// The same, or equal.
    fn or_equal(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::LessOrEqual,
            Comparison::Greater => Comparison::GreaterOrEqual,
            other => other,
        }
    }

    /// The same with its sides exchanged.
    fn turned(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Equal => Comparison::Equal,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            Comparison::Greater => Comparison::Less,
        }
    }
}

/// A plan for rows of `input` of which `condition` is true.
pub fn filtered(input: Plan, condition: Expr) -> Plan {
    let mut input = input;
    let conditions = conjuncts(&condition);
    push(&mut input, &conditions);
    Plan::Filter { input: Box::new(input), condition }
}

/// A join whose inner side looks rows up by what its condition says.
pub fn joined(plan: Plan) -> Plan {
    let Plan::Join { left, mut right, width, condition, outer, lateral, .. } = plan else { return plan };
    let mut depends = 0;
    if let (Some(condition), Some(outside)) = (&condition, columns_of(&left)) {
        let inner: Vec<Expr> =
            conjuncts(condition).into_iter().filter_map(|part| seen_inside(part, outside)).collect();
        depends = push(&mut right, &inner.iter().collect::<Vec<_>>());
    }
    let lateral = lateral || depends > 0;
    let mut keys = Vec::new();
    if let (false, Some(condition), Some(outside)) = (lateral, &condition, columns_of(&left)) {
        keys.extend(conjuncts(condition).into_iter().filter_map(|part| equated(part, outside)));
    }
    Plan::Join { left, right, width, condition, outer, lateral, keys }
}

/// Tells a plan of conditions on its rows. Says how many rows around it what it reads now depends
/// on: 0 is none, 1 the next one, and so on outwards.
fn push(plan: &mut Plan, conditions: &[&Expr]) -> usize {
    match plan {
        Plan::Scan(scan) => narrow(scan, conditions),
        Plan::Catalog(reading) => narrow_reading(reading, conditions),
        Plan::Filter { input, .. } => push(input, conditions),
        Plan::Join { left, right, lateral, outer, keys, .. } => {
            let Some(outside) = columns_of(left) else { return 0 };
            let of_left: Vec<&Expr> =
                conditions.iter().copied().filter(|condition| is_left(condition, outside)).collect();
            let mut depends = push(left, &of_left);
            // What is true of the row that stands in for a missing one says nothing of those there
            // are.
            if !*outer {
                let inner: Vec<Expr> =
                    conditions.iter().filter_map(|condition| seen_inside(condition, outside)).collect();
                let of_right = push(right, &inner.iter().collect::<Vec<_>>());
                *lateral |= of_right > 0;
                if *lateral {
                    keys.clear();
                } else {
                    keys.extend(conditions.iter().filter_map(|condition| equated(condition, outside)));
                }
                // What is one row around the right side is the left one; what is further out is
                // around the join.
                depends = depends.max(of_right.saturating_sub(1));
            }
            depends
        }
        _ => 0,
    }
}

/// How many columns the rows of a plan have, as far as that is known without running it.
pub fn columns_of(plan: &Plan) -> Option<usize> {
    match plan {
        Plan::Values(rows) => rows.first().map(Vec::len),
        Plan::Scan(scan) => Some(scan.width()),
        Plan::Catalog(reading) => Some(reading.relation.fields.len()),
        Plan::Function { ordinality, fields, .. } => Some(fields.unwrap_or(1) + usize::from(*ordinality)),
        Plan::Filter { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Distinct { input, .. }
        | Plan::Lock { input, .. }
        | Plan::Limit { input, .. } => columns_of(input),
        Plan::Project { columns, .. } => Some(columns.len()),
        Plan::Sets { input, sets } => Some(columns_of(input)? + sets.len()),
        Plan::Join { left, width, .. } => Some(columns_of(left)? + width),
        Plan::Group { keys, aggregates, .. } => Some(keys.len() + aggregates.len()),
        Plan::Combined { left, .. } => columns_of(left),
        Plan::Recursive { base, .. } => columns_of(base),
        Plan::Working { width, .. } => Some(*width),
        Plan::Numbered { input, .. } => Some(columns_of(input)? + 1),
    }
}

/// The parts of a condition that all have to be true.
fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::And(items) => items.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

fn is_left(condition: &Expr, outside: usize) -> bool {
    !condition.any(&|part| match part {
        Expr::Column { level: 0, place } => *place >= outside,
        Expr::Subquery(_) => true,
        _ => false,
    })
}

/// What a condition says is equal of an outer and an inner row: an expression over each, if values
/// that it finds equal are so in the order of values, too.
fn equated(condition: &Expr, outside: usize) -> Option<(Expr, Expr)> {
    let Expr::Call { function, arguments, types, .. } = condition else { return None };
    let ([one, other], [one_type, other_type]) = (arguments.as_slice(), types.as_slice()) else {
        return None;
    };
    let is_equal = operators::symbol(function.oid) == Some("=");
    if !is_equal || !are_alike(*one_type, *other_type) {
        return None;
    }
    let is_inner = |expr: &Expr| {
        expr.any(&|part| matches!(part, Expr::Column { level: 0, .. }))
            && !expr.any(&|part| match part {
                Expr::Column { level: 0, place } => *place < outside,
                Expr::Column { .. } | Expr::Subquery(_) => true,
                Expr::Call { function, .. } => function.volatility == Volatility::Volatile,
                _ => false,
            })
    };
    let is_outer = |expr: &Expr| {
        is_left(expr, outside)
            && !expr.any(&|part| match part {
                Expr::Call { function, .. } => function.volatility == Volatility::Volatile,
                _ => false,
            })
    };
    let (outer, inner) = match () {
        () if is_outer(one) && is_inner(other) => (one, other),
        () if is_outer(other) && is_inner(one) => (other, one),
        () => return None,
    };
    let alone = inner.clone().rewrite(&mut |part| {
        Ok::<Expr, ()>(match part {
            Expr::Column { level: 0, place } => {
                Expr::Column { level: 0, place: place.saturating_sub(outside) }
            }
            other => other,
        })
    });
    Some((outer.clone(), alone.ok()?))
}

/// A condition on a joined row as the inner side sees it: the outer row is a level up.
fn seen_inside(condition: &Expr, outside: usize) -> Option<Expr> {
    if condition.any(&|part| matches!(part, Expr::Subquery(_))) {
        return None;
    }
    let moved = condition.clone().rewrite(&mut |part| {
        Ok::<Expr, ()>(match part {
            Expr::Column { level: 0, place } if place >= outside => {
                Expr::Column { level: 0, place: place - outside }
            }
            Expr::Column { level, place } => Expr::Column { level: level + 1, place },
            other => other,
        })
    });
    moved.ok()
}

/// Reads no more than what has the values that conditions ask for. Says how many rows around it
/// these depend on.
fn narrow(scan: &mut Scan, conditions: &[&Expr]) -> usize {
    if scan.access != Access::default() {
        return 0;
    }
    let ready = scan.table.indexes.iter().enumerate().filter(|(_, index)| index.is_ready);
    let paths = std::iter::once(None).chain(ready.map(|(place, _)| Some(place)));
    let mut best = (Worth::default(), Access::default());
    for index in paths {
        let (worth, access) = through(&scan.table, index, conditions);
        // The primary key is first and needs no index.
        if worth > best.0 {
            best = (worth, access);
        }
    }
    let access = best.1;
    let bounds = access.low.iter().chain(&access.high).map(|(value, _)| value);
    let values = access.equal.iter().flat_map(Equal::exprs);
    let depends = values.chain(bounds).map(outermost).max().unwrap_or_default();
    scan.access = access;
    depends
}

/// How good a way to rows is, as far as that can be told without knowing how many there are.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    /// Whether each combination of values leads to one row.
    is_key: bool,
    /// How many columns are known.
    known: usize,
    /// How many bounds the next one has.
    bounds: usize,
}

/// What conditions say of the columns of an index, or of the primary key.
fn through(table: &Table, index: Option<usize>, conditions: &[&Expr]) -> (Worth, Access) {
    let mut access = Access { index, ..Access::default() };
    let index = index.and_then(|place| table.indexes.get(place));
    let columns: Vec<u16> = match index {
        None => table.primary.clone(),
        Some(index) => index.parts.iter().map(|part| part.column).collect(),
    };
    for position in &columns {
        let position = usize::from(*position);
        let (Some(place), Some(column)) = (table.live_place(position), table.columns.get(position)) else {
            break;
        };
        if let Some(equal) = equal_to(conditions, place, column.oid) {
            access.equal.push(equal);
            continue;
        }
        let known = conditions.iter().filter_map(|condition| compared(condition, place, column.oid));
        for (comparison, value) in known {
            let bound = |inclusive| Some((value.clone(), inclusive));
            match comparison {
                Comparison::Greater | Comparison::GreaterOrEqual if access.low.is_none() => {
                    access.low = bound(comparison == Comparison::GreaterOrEqual);
                }
                Comparison::Less | Comparison::LessOrEqual if access.high.is_none() => {
                    access.high = bound(comparison == Comparison::LessOrEqual);
                }
                _ => {}
            }
        }
        break;
    }
    let known = access.equal.len();
    let is_unique = index.map_or(!columns.is_empty(), |index| index.unique);
    let bounds = usize::from(access.low.is_some()) + usize::from(access.high.is_some());
    (Worth { is_key: is_unique && known == columns.len(), known, bounds }, access)
}

/// What conditions say that a column equals: one value rather than one of several.
fn equal_to(conditions: &[&Expr], place: usize, oid: Oid) -> Option<Equal> {
    let one = conditions.iter().find_map(|condition| equals(condition, place, oid));
    one.map(|value| Equal::One(value.clone()))
        .or_else(|| conditions.iter().find_map(|condition| one_of(condition, place, oid)))
}

/// What a condition says that a column equals.
fn equals(condition: &Expr, place: usize, oid: Oid) -> Option<&Expr> {
    let (comparison, value) = compared(condition, place, oid)?;
    (comparison == Comparison::Equal).then_some(value)
}

/// The values of which a condition says that a column equals one: `IN`, also of rows, `= ANY`, or
/// `=` several times.
fn one_of(condition: &Expr, place: usize, oid: Oid) -> Option<Equal> {
    match condition {
        Expr::Or(items) => {
            let value = |item| conjuncts(item).into_iter().find_map(|part| equals(part, place, oid)).cloned();
            items.iter().map(value).collect::<Option<Vec<Expr>>>().map(Equal::Any)
        }
        Expr::Quantified { test, array, all: false } => {
            let Expr::Call { function, arguments, types, .. } = test.as_ref() else { return None };
            let ([left, right], [_, element]) = (arguments.as_slice(), types.as_slice()) else {
                return None;
            };
            let is_equal = operators::symbol(function.oid) == Some("=");
            let fits = is_column(left, place) && *right == Expr::CaseValue && are_alike(oid, *element);
            (is_equal && fits && is_known_before(array)).then(|| Equal::Of(array.as_ref().clone()))
        }
        Expr::With { value, test } if is_column(value, place) => {
            let seen = test.as_ref().clone().rewrite(&mut |part| {
                Ok::<Expr, ()>(if part == Expr::CaseValue { value.as_ref().clone() } else { part })
            });
            one_of(&seen.ok()?, place, oid)
        }
        _ => None,
    }
}

/// Reads the rows of a catalog's relation that have a value in a column, if a condition asks for
/// one. Says how many rows around it that depends on.
fn narrow_reading(reading: &mut Reading, conditions: &[&Expr]) -> usize {
    if reading.equal.is_some() {
        return 0;
    }
    for (place, field) in reading.relation.fields.iter().enumerate() {
        if let Some(value) = conditions.iter().find_map(|condition| equals(condition, place, field.oid)) {
            reading.equal = Some((place, value.clone()));
            return outermost(value);
        }
    }
    0
}

/// The level of the outermost row that an expression looks at.
fn outermost(expr: &Expr) -> usize {
    let own = match expr {
        Expr::Column { level, .. } => *level,
        _ => 0,
    };
    expr.parts().into_iter().map(outermost).fold(own, usize::max)
}

/// How a condition compares a column of the row at hand, and with what: a value that is known
/// before the row is.
fn compared(condition: &Expr, place: usize, oid: Oid) -> Option<(Comparison, &Expr)> {
    if let Expr::Ordered(tests) = condition {
        // The first fields may be equal.
        let (comparison, value) = compared(&tests.first()?.0, place, oid)?;
        return Some((comparison.or_equal(), value));
    }
    let Expr::Call { function, arguments, types, .. } = condition else { return None };
    let comparison = Comparison::of(operators::symbol(function.oid)?)?;
    let ([left, right], [left_type, right_type]) = (arguments.as_slice(), types.as_slice()) else {
        return None;
    };
    let (comparison, value, value_type) = if is_column(left, place) {
        (comparison, right, *right_type)
    } else if is_column(right, place) {
        (comparison.turned(), left, *left_type)
    } else {
        return None;
    };
    (are_alike(oid, value_type) && is_known_before(value)).then_some((comparison, value))
}

fn is_column(expr: &Expr, place: usize) -> bool {
    matches!(expr, Expr::Column { level: 0, place: at } if *at == place)
}

/// Whether a value is known before the row is.
fn is_known_before(value: &Expr) -> bool {
    !value.any(&|part| match part {
        Expr::Column { level: 0, .. } | Expr::Subquery(_) | Expr::CaseValue => true,
        Expr::Call { function, .. } => function.volatility == Volatility::Volatile,
        _ => false,
    })
}

/// Whether a value of one type can be looked for among keys of another: they compare as such, and
/// the key can be made of it.
fn are_alike(column: Oid, value: Oid) -> bool {
    let family = |oid: Oid| match oid {
        Oid::INT2 | Oid::INT4 | Oid::INT8 => Oid::INT8,
        Oid::TEXT | Oid::VARCHAR | Oid::NAME => Oid::TEXT,
        other if other.is_reference() => Oid::OID,
        other => other,
    };
    family(column) == family(value)
}
