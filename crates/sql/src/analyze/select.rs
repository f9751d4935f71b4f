//! Queries: `SELECT`, `VALUES`, and several of them put together.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, ResTarget, SelectStmt, SetOperation};

use super::expression::present;
use super::from::{Clause, Scope, ScopeColumn};
use super::grouping;
use super::locking::{self, Locking};
use super::names::{column_name, strings};
use super::plan::{Direction, Expr, Locked, Plan, Typed, Wait};
use super::{Analyzer, Column, Origin, unsupported, windows};
use crate::functions::{self, CastContext};
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// Results of a query at most.
const TARGETS_MAX: usize = 1664;

/// A result of a query.
#[derive(Clone, Debug)]
pub struct Output {
    /// What clients see of it.
    pub column: Column,
    /// Where it is in the text.
    pub location: i32,
}

/// A plan and its results.
pub type Planned = Result<(Plan, Vec<Output>), SqlError>;

/// A result and its name, before there is a plan.
pub struct Target {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: Typed,
    /// The table's column that it is.
    pub origin: Option<Origin>,
}

impl<'a> Analyzer<'a> {
    /// The clause that is being planned; says which one it was.
    pub fn enter(&mut self, clause: Clause) -> Clause {
        match self.scopes.last_mut() {
            Some(scope) => std::mem::replace(&mut scope.clause, clause),
            None => clause,
        }
    }

    /// A query whose results all have types.
    pub fn query(&mut self, select: &'a SelectStmt) -> Planned {
        let (plan, outputs) = self.open_query(select)?;
        self.typed_outputs(plan, outputs, None)
    }

    /// A query, some of whose results may still be of unknown type.
    pub fn open_query(&mut self, select: &'a SelectStmt) -> Planned {
        self.deeper(|analyzer| {
            let outside = analyzer.common.len();
            let planned = analyzer.with(select).and_then(|()| {
                let planned = analyzer.query_here(select)?;
                analyzer.check_unread(outside)?;
                Ok(planned)
            });
            analyzer.common.truncate(outside);
            planned
        })
    }

    fn query_here(&mut self, select: &'a SelectStmt) -> Planned {
        if select.into_clause.is_some() {
            return Err(unsupported("SELECT INTO"));
        }
        self.locking(select)?;
        if !select.window_clause.is_empty() {
            return Err(unsupported("WINDOW"));
        }
        let (plan, outputs) = match select.op() {
            SetOperation::SetopNone | SetOperation::Undefined if !select.values_lists.is_empty() => {
                self.values(select)?
            }
            SetOperation::SetopNone | SetOperation::Undefined => return self.plain(select),
            _ => self.combined(select)?,
        };
        self.ordered(select, plan, outputs)
    }

    /// Results of unknown type become text, or what is wanted of them.
    pub fn typed_outputs(&mut self, plan: Plan, outputs: Vec<Output>, wanted: Option<&[Oid]>) -> Planned {
        let oid_of = |place: usize, output: &Output| match wanted.and_then(|wanted| wanted.get(place)) {
            Some(oid) => *oid,
            None if output.column.oid == Oid::UNKNOWN => Oid::TEXT,
            None => output.column.oid,
        };
        let changed =
            outputs.iter().enumerate().any(|(place, output)| oid_of(place, output) != output.column.oid);
        if !changed {
            return Ok((plan, outputs));
        }
        // A literal of a projection is read where it stands; anything else is changed above.
        let (input, columns) = match plan {
            Plan::Project { input, columns } if columns.len() == outputs.len() => (input, columns),
            other => {
                let columns = (0..outputs.len()).map(|place| Expr::Column { level: 0, place }).collect();
                (Box::new(other), columns)
            }
        };
        let (mut exprs, mut typed_outputs) = (Vec::new(), Vec::new());
        for (place, (expr, output)) in columns.into_iter().zip(outputs).enumerate() {
            let oid = oid_of(place, &output);
            let Output { column, location } = output;
            let value = Typed { expr, oid: column.oid, modifier: column.modifier, location };
            let value = self.coerce(value, oid, -1, CastContext::Implicit)?;
            exprs.push(value.expr);
            let column = Column { oid, modifier: value.modifier, ..column };
            typed_outputs.push(Output { column, location });
        }
        Ok((Plan::Project { input, columns: exprs }, typed_outputs))
    }

    /// A query with a list of results.
    fn plain(&mut self, select: &'a SelectStmt) -> Planned {
        let locking = self.locking(select)?;
        let around = std::mem::replace(&mut self.locking, locking);
        let from = self.from(&select.from_clause);
        let locking = std::mem::replace(&mut self.locking, around);
        let (plan, columns) = from?;
        self.scopes.push(Scope { since: self.named.mark(), ..Scope::new(columns, Clause::Where) });
        let planned = self.plain_in_scope(select, plan, locking.as_ref());
        self.scopes.pop();
        planned
    }

    fn plain_in_scope(
        &mut self,
        select: &'a SelectStmt,
        mut plan: Plan,
        locking: Option<&Locking>,
    ) -> Planned {
        self.enter(Clause::Select);
        let mut targets = Vec::new();
        for node in &select.target_list {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { return Err(functions::confused()) };
            self.target(target, &mut targets)?;
        }
        if targets.len() > TARGETS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("target lists can have at most {TARGETS_MAX} entries"),
            ));
        }
        self.enter(Clause::Where);
        if let Some(condition) = &select.where_clause {
            let condition = self.expression(condition)?;
            let condition = self.boolean(condition, "WHERE")?;
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        self.enter(Clause::Having);
        let having = match &select.having_clause {
            Some(having) => {
                let having = self.expression(having)?;
                let location = having.location;
                Some((self.boolean(having, "HAVING")?, location))
            }
            None => None,
        };
        let visible = targets.len();
        self.enter(Clause::OrderBy);
        let mut order = Vec::new();
        for node in &select.sort_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let place = self.key(present(&sort.node)?, &mut targets, visible, "ORDER BY")?;
            let oid = targets.get(place).map_or(Oid::TEXT, |target| target.value.oid);
            order.push((place, self.direction(sort, oid)?));
        }
        self.enter(Clause::GroupBy);
        let mut keys = Vec::new();
        for node in &select.group_clause {
            keys.push(self.group_key(node, &mut targets, visible)?);
        }
        let on = self.distinct_keys(select, &mut targets, visible, &order)?;
        let lock = match locking {
            Some(locking) => Some((self.lock_targets(locking, select, &mut targets)?, locking.wait())),
            None => None,
        };
        self.project(select, plan, targets, visible, Lists { having, order, keys, on, lock })
    }

    /// A result, or all columns.
    pub fn target(&mut self, target: &'a ResTarget, targets: &mut Vec<Target>) -> Result<(), SqlError> {
        let node = present(&target.val)?;
        if let Some(NodeEnum::ColumnRef(column)) = &node.node
            && let Some(NodeEnum::AStar(_)) = column.fields.last().and_then(|field| field.node.as_ref())
        {
            let names = strings(&column.fields);
            let table = names.last().copied();
            let scope = self.scopes.last().ok_or_else(functions::confused)?;
            let of_table =
                |column: &ScopeColumn| table.is_none_or(|table| column.table.as_deref() == Some(table));
            let is_there = |column: &ScopeColumn| !column.name.is_empty() && of_table(column);
            let all: Vec<(usize, ScopeColumn)> =
                scope.columns.iter().cloned().enumerate().filter(|(_, column)| is_there(column)).collect();
            if all.is_empty() {
                return match table {
                    Some(table) => self.refuse(
                        column.location,
                        SqlState::UNDEFINED_TABLE,
                        format!("missing FROM-clause entry for table \"{table}\""),
                    ),
                    None => self.refuse(
                        column.location,
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                    ),
                };
            }
            for (place, found) in all {
                let expr = Expr::Column { level: 0, place };
                let value =
                    Typed { expr, oid: found.oid, modifier: found.modifier, location: column.location };
                targets.push(Target { name: found.name, value, origin: found.origin });
            }
            return Ok(());
        }
        let value = self.expression(node)?;
        let name = if target.name.is_empty() { column_name(node) } else { target.name.clone() };
        let origin = self.origin_of(node, &value);
        targets.push(Target { name, value, origin });
        Ok(())
    }

    /// The table's column that an expression is, and not one of another type by a cast that does
    /// nothing.
    fn origin_of(&self, node: &Node, value: &Typed) -> Option<Origin> {
        let Expr::Column { level, place } = &value.expr else { return None };
        let column = self.scopes.iter().rev().nth(*level)?.columns.get(*place)?;
        let own = (column.oid, column.modifier);
        let mut node = node;
        while let Some(NodeEnum::TypeCast(cast)) = &node.node {
            if self.type_name(cast.type_name.as_ref()?).ok()? != own {
                return None;
            }
            node = cast.arg.as_deref()?;
        }
        column.origin.filter(|_| own == (value.oid, value.modifier))
    }

    /// The plan above what is read.
    fn project(
        &mut self,
        select: &'a SelectStmt,
        mut plan: Plan,
        targets: Vec<Target>,
        visible: usize,
        mut lists: Lists,
    ) -> Planned {
        let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
        let (aggregates, sets) = (std::mem::take(&mut scope.aggregates), std::mem::take(&mut scope.sets));
        let windows = std::mem::take(&mut scope.windows);
        let columns = scope.columns.clone();
        let mut width = columns.len();
        let mut outputs = Vec::new();
        let mut exprs = Vec::new();
        for target in targets {
            let Typed { expr, oid, modifier, location } = target.value;
            exprs.push(expr);
            let column = Column { name: target.name, oid, modifier, origin: target.origin };
            outputs.push(Output { column, location });
        }
        let mut having = lists.having;
        let (mut sets, mut windows) = (sets, windows);
        if !aggregates.is_empty() || !lists.keys.is_empty() || having.is_some() {
            let (since, here) = (scope.since, self.scopes.len() - 1);
            let is_used = |place: usize| {
                let is_result = |expr: &Expr| *expr == Expr::Column { level: 0, place };
                exprs.iter().any(is_result) || self.named.place_of(since, here, place, 0).is_some()
            };
            grouping::add_dependent(&plan, 0, &mut lists.keys, &is_used);
            width = lists.keys.len() + aggregates.len();
            let over = |expr: Expr, from: i32| {
                grouping::grouped(expr, &lists.keys)
                    .map_err(|ungrouped| self.ungrouped(&ungrouped, &columns, from))
            };
            exprs = exprs
                .into_iter()
                .zip(&outputs)
                .map(|(expr, output)| over(expr, output.location))
                .collect::<Result<_, _>>()?;
            let anywhere = |expr: Expr| over(expr, -1);
            sets = sets.into_iter().map(anywhere).collect::<Result<_, _>>()?;
            windows = windows.into_iter().map(|window| window.over(&anywhere)).collect::<Result<_, _>>()?;
            having = having.map(|(having, from)| Ok((over(having, from)?, from))).transpose()?;
            plan = grouping::group(plan, lists.keys, aggregates);
        }
        if let Some((condition, _)) = having {
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        let (plan, exprs, width) = windows::numbered(plan, width, windows, exprs)?;
        let (plan, exprs) = grouping::with_sets(plan, width, sets, exprs)?;
        let ties: Vec<usize> = lists.order.iter().map(|(place, _)| *place).collect();
        let mut plan = Plan::Project { input: Box::new(plan), columns: exprs };
        let hidden = outputs.len() > visible;
        // The first of rows that are alike is the first in order.
        if !lists.order.is_empty() {
            plan = Plan::Sort { input: Box::new(plan), keys: lists.order };
        }
        if let Some(keys) = lists.on {
            plan = Plan::Distinct { input: Box::new(plan), keys };
        }
        if let Some((tables, wait)) = lists.lock {
            plan = locking::locked(plan, tables, wait);
        }
        plan = self.limited(select, plan, ties)?;
        outputs.truncate(visible);
        if hidden {
            let columns = (0..visible).map(|place| Expr::Column { level: 0, place }).collect();
            plan = Plan::Project { input: Box::new(plan), columns };
        }
        Ok((plan, outputs))
    }
}

/// What comes of a query's clauses.
struct Lists {
    /// The condition, and where it begins.
    having: Option<(Expr, i32)>,
    order: Vec<(usize, Direction)>,
    keys: Vec<Expr>,
    on: Option<Vec<usize>>,
    lock: Option<(Vec<Locked>, Wait)>,
}
