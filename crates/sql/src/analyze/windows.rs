//! Windows: `row_number()`, the one window function that there is.

use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, WindowDef};

use super::expression::{present, typed};
use super::from::Clause;
use super::plan::{Expr, Plan, Typed, Windowed};
use super::{Analyzer, unsupported};
use crate::functions;
use crate::types::Oid;
use crate::{SqlError, SqlState};

impl<'a> Analyzer<'a> {
    /// `row_number() OVER (PARTITION BY ... ORDER BY ...)`
    pub(super) fn window(&mut self, call: &'a FuncCall, over: &'a WindowDef) -> Result<Typed, SqlError> {
        let location = call.location;
        let name = super::names::strings(&call.funcname);
        if !matches!(name.as_slice(), ["row_number"] | ["pg_catalog", "row_number"]) || !call.args.is_empty()
        {
            return Err(self.at(location, unsupported("a window function but row_number()")));
        }
        if !over.name.is_empty() || !over.refname.is_empty() {
            return Err(self.at(location, unsupported("a window by name")));
        }
        let clause = self.scopes.last().map_or(Clause::Select, |scope| scope.clause);
        if !matches!(clause, Clause::Select | Clause::OrderBy) {
            let place = clause.refuses_aggregates().unwrap_or("this place");
            let error = format!("window functions are not allowed in {place}");
            return self.refuse(location, SqlState::WINDOWING_ERROR, error);
        }
        let mut window = Windowed { partition: Vec::new(), order: Vec::new() };
        for node in &over.partition_clause {
            let key = self.expression(node)?;
            window.partition.push(self.settled(key)?.expr);
        }
        for node in &over.order_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let key = self.expression(present(&sort.node)?)?;
            let key = self.settled(key)?;
            let direction = self.direction(sort, key.oid)?;
            window.order.push((key.expr, direction));
        }
        let is_set = |expr: &Expr| expr.any(&|part| matches!(part, Expr::Set(_) | Expr::Window(_)));
        if window.partition.iter().chain(window.order.iter().map(|(key, _)| key)).any(is_set) {
            return Err(self.at(location, unsupported("a set or a window in a window's definition")));
        }
        let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
        scope.windows.push(window);
        scope.window_places.push(location);
        Ok(typed(Expr::Window(scope.windows.len() - 1), Oid::INT8, location))
    }
}

impl Windowed {
    /// The same over other rows.
    pub(super) fn over(self, change: &impl Fn(Expr) -> Result<Expr, SqlError>) -> Result<Windowed, SqlError> {
        let order: Result<Vec<_>, SqlError> =
            self.order.into_iter().map(|(key, direction)| Ok((change(key)?, direction))).collect();
        Ok(Windowed {
            partition: self.partition.into_iter().map(change).collect::<Result<_, _>>()?,
            order: order?,
        })
    }
}

/// A plan with the numbers of windows behind its columns, and lists with these columns in them.
/// Says how many columns there are then.
pub(super) fn numbered(
    plan: Plan,
    width: usize,
    windows: Vec<Windowed>,
    lists: Vec<Expr>,
) -> Result<(Plan, Vec<Expr>, usize), SqlError> {
    let (mut plan, mut columns) = (plan, width);
    for window in windows {
        let own = (0..columns).map(|place| Expr::Column { level: 0, place });
        let parts = window.partition.len();
        let keys = columns..columns + parts + window.order.len();
        let partition = super::plan::Direction { descending: false, nulls_first: false };
        let mut directions = vec![partition; parts];
        let mut exprs: Vec<Expr> = own.clone().chain(window.partition).collect();
        for (key, direction) in window.order {
            exprs.push(key);
            directions.push(direction);
        }
        let number = exprs.len();
        plan = Plan::Project { input: Box::new(plan), columns: exprs };
        plan = Plan::Sort { input: Box::new(plan), keys: keys.clone().zip(directions).collect() };
        plan = Plan::Numbered { input: Box::new(plan), keys: keys.take(parts).collect() };
        let kept = own.chain([Expr::Column { level: 0, place: number }]).collect();
        plan = Plan::Project { input: Box::new(plan), columns: kept };
        columns += 1;
    }
    let lists = lists.into_iter().map(|expr| {
        expr.rewrite(&mut |part| match part {
            Expr::Window(window) => Ok(Expr::Column { level: 0, place: width + window }),
            other => Ok(other),
        })
    });
    Ok((plan, lists.collect::<Result<_, SqlError>>()?, columns))
}
