//! What aggregates and sets in a query's lists become: columns of a plan below.

use super::Analyzer;
use super::aggregate::Mark;
use super::from::ScopeColumn;
use super::paths::columns_of;
use super::plan::{Aggregated, Expr, Plan, Scan};
use crate::functions;
use crate::{SqlError, SqlState};

/// Adds to the keys those columns of a plan that depend on them and are used: of tables whose whole
/// primary key is among the keys.
pub fn add_dependent(plan: &Plan, first: usize, keys: &mut Vec<Expr>, is_used: &dyn Fn(usize) -> bool) {
    match plan {
        Plan::Filter { input, .. } => add_dependent(input, first, keys, is_used),
        Plan::Join { left, right, .. } => {
            add_dependent(left, first, keys, is_used);
            if let Some(width) = columns_of(left) {
                add_dependent(right, first + width, keys, is_used);
            }
        }
        Plan::Scan(Scan { table, .. }) => {
            let column = |place: usize| Expr::Column { level: 0, place: first + place };
            let mut primary = table.primary.iter().map(|position| table.live_place(usize::from(*position)));
            let is_key = |place: Option<usize>| place.is_some_and(|place| keys.contains(&column(place)));
            if !table.primary.is_empty() && primary.all(is_key) {
                let used = (0..table.live().count()).filter(|place| is_used(first + place)).map(column);
                let new: Vec<Expr> = used.filter(|column| !keys.contains(column)).collect();
                keys.extend(new);
            }
        }
        _ => {}
    }
}

/// A column of a grouped row that is neither a key nor in an aggregate.
pub struct Ungrouped {
    place: usize,
    /// Whether a query inside names it.
    is_inside: bool,
}

/// Makes columns of a group out of an expression over its rows: what equals a key is that key, what
/// is an aggregate follows the keys, and no other column may be left. A query inside sees the keys
/// that are columns, and the aggregates.
pub fn grouped(expr: Expr, keys: &[Expr]) -> Result<Expr, Ungrouped> {
    if let Some(place) = keys.iter().position(|key| *key == expr) {
        return Ok(Expr::Column { level: 0, place });
    }
    // From the root down, because a key may be a part of the expression: children are looked at
    // before what is made of them, so a key is marked first.
    let marked = mark(expr, keys)?;
    marked.rewrite_within(0, &mut |depth, part| match part {
        Expr::Aggregate { level, place } if level == depth => {
            Ok(Expr::Column { level, place: keys.len() + place })
        }
        // A key, which was put out of reach as a column of no query.
        Expr::Column { level: MARK, place } => Ok(Expr::Column { level: 0, place }),
        Expr::Column { level, place } if level == depth => {
            let is_key = |key: &Expr| *key == Expr::Column { level: 0, place };
            match keys.iter().position(is_key) {
                Some(place) => Ok(Expr::Column { level, place }),
                None => Err(Ungrouped { place, is_inside: depth > 0 }),
            }
        }
        other => Ok(other),
    })
}

impl Analyzer<'_> {
    /// The error of a column in an expression that begins somewhere.
    pub fn ungrouped(&self, ungrouped: &Ungrouped, columns: &[ScopeColumn], from: i32) -> SqlError {
        let shown = columns.get(ungrouped.place).map_or(String::new(), |column| match &column.table {
            Some(table) => format!("{table}.{}", column.name),
            None => column.name.clone(),
        });
        let error = match ungrouped.is_inside {
            true => format!("subquery uses ungrouped column \"{shown}\" from outer query"),
            false => format!(
                "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
        };
        let since = self.scopes.last().map_or(Mark::default(), |scope| scope.since);
        let scope = self.scopes.len().saturating_sub(1);
        let place = self.named.place_of(since, scope, ungrouped.place, from);
        self.at(place.unwrap_or(from), SqlError::new(SqlState::GROUPING_ERROR, error))
    }
}

const MARK: usize = usize::MAX;

fn mark(expr: Expr, keys: &[Expr]) -> Result<Expr, Ungrouped> {
    expr.rewrite(&mut |part| {
        Ok(match keys.iter().position(|key| *key == part) {
            Some(place) => Expr::Column { level: MARK, place },
            None => part,
        })
    })
}

/// A plan with the rows of sets, and lists with columns for them.
pub fn with_sets(
    plan: Plan,
    width: usize,
    sets: Vec<Expr>,
    lists: Vec<Expr>,
) -> Result<(Plan, Vec<Expr>), SqlError> {
    if sets.is_empty() {
        return Ok((plan, lists));
    }
    // A set among the arguments of another one has its rows first.
    let nested = sets.iter().any(|set| set.any(&|part| matches!(part, Expr::Set(_))));
    let (mut plan, mut width, mut places) = (plan, width, vec![None; sets.len()]);
    let mut left: Vec<(usize, Expr)> = sets.into_iter().enumerate().collect();
    while !left.is_empty() {
        let ready = |set: &Expr, places: &[Option<usize>]| {
            !set.any(
                &|part| matches!(part, Expr::Set(inner) if places.get(*inner).is_none_or(Option::is_none)),
            )
        };
        let (now, later): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, set)| !nested || ready(set, &places));
        let mut level = Vec::new();
        for (number, (place, set)) in now.into_iter().enumerate() {
            level.push(columns_of_sets(set, &places)?);
            if let Some(slot) = places.get_mut(place) {
                *slot = Some(width + number);
            }
        }
        if level.is_empty() {
            return Err(functions::confused());
        }
        width += level.len();
        plan = Plan::Sets { input: Box::new(plan), sets: level };
        left = later;
    }
    let lists: Result<Vec<Expr>, SqlError> =
        lists.into_iter().map(|expr| columns_of_sets(expr, &places)).collect();
    Ok((plan, lists?))
}

fn columns_of_sets(expr: Expr, places: &[Option<usize>]) -> Result<Expr, SqlError> {
    expr.rewrite(&mut |part| match part {
        Expr::Set(set) => match places.get(set) {
            Some(Some(place)) => Ok(Expr::Column { level: 0, place: *place }),
            _ => Err(functions::confused()),
        },
        other => Ok(other),
    })
}

/// The plan of groups.
pub fn group(input: Plan, keys: Vec<Expr>, aggregates: Vec<Aggregated>) -> Plan {
    Plan::Group { input: Box::new(input), keys, aggregates }
}
