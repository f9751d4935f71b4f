//! Statements that write: `INSERT`, `UPDATE`, `DELETE`.
//!
//! Such a statement is a query whose rows say what is to be written, and what is done with them.
//! All rows are there before the first is written, so that none is met again in its new form.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    DeleteStmt, InsertStmt, Node, OverridingKind, RangeVar, ResTarget, ReturningClause, SelectStmt,
    SetOperation, UpdateStmt,
};

use super::conflict::OnConflict;
use super::expression::present;
use super::from::{Clause, Scope, ScopeColumn};
use super::plan::{Expr, Plan, Scan, Typed};
use super::select::Target;
use super::stored::{Condition, conditions, default};
use super::{Analyzer, Column, unsupported};
use crate::catalog::{self, Identity, Relation, Table};
use crate::functions::{self, CastContext};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

/// What becomes of a query's rows.
#[derive(Debug)]
pub struct Write {
    /// The table that is written.
    pub table: Arc<Table>,
    /// What is done.
    pub kind: Kind,
    /// What has to be true of every row that is written.
    pub conditions: Vec<Condition>,
    /// What the client gets of every row: over the row as it is afterwards, or was before it was
    /// deleted.
    pub returning: Option<Vec<Expr>>,
}

/// What is done with a row of the query.
#[derive(Debug)]
pub enum Kind {
    /// It is a new row.
    Insert(OnConflict),
    /// It is an old row, its key, and the new row.
    Update,
    /// It is an old row and its key.
    Delete,
}

/// A query that makes rows to be written, what is done with them, and what the client gets.
type Planned = Result<(Plan, Write, Vec<Column>), SqlError>;

impl<'a> Analyzer<'a> {
    /// `INSERT`
    pub fn insert(&mut self, insert: &'a InsertStmt) -> Planned {
        if insert.with_clause.is_some() {
            return Err(unsupported("WITH before INSERT"));
        }
        let overrides = insert.r#override();
        let range = insert.relation.as_ref().ok_or_else(functions::confused)?;
        let table = self.written(range)?;
        let targets = self.insert_targets(&table, &insert.cols)?;
        let plan = match &insert.select_stmt {
            None => Plan::Values(vec![self.completed(&table, &targets, Vec::new())?]),
            Some(node) => {
                let Some(NodeEnum::SelectStmt(select)) = &node.node else {
                    return Err(functions::confused());
                };
                if is_values(select) {
                    self.new_rows(&table, &targets, &insert.cols, select, overrides)?
                } else {
                    self.selected_rows(&table, &targets, &insert.cols, select, overrides)?
                }
            }
        };
        let conflict = match &insert.on_conflict_clause {
            None => OnConflict::refuse(),
            Some(clause) => self.on_conflict(&table, range, clause)?,
        };
        let seen = self.named_columns(&table, range);
        let (returning, columns) = self.returning(seen.len(), seen, &insert.returning_clause)?;
        Ok((
            plan,
            Write {
                kind: Kind::Insert(conflict),
                conditions: conditions(&table, self.catalog)?,
                table,
                returning,
            },
            columns,
        ))
    }

    /// The table that a statement writes.
    fn written(&mut self, range: &RangeVar) -> Result<Arc<Table>, SqlError> {
        if let Some(Relation::Sequence(_)) = self.catalog.relation(&range.schemaname, &range.relname)? {
            let error = format!("cannot change sequence \"{}\"", range.relname);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error));
        }
        self.table(range)
    }

    /// The columns that an `INSERT` names; without any, all.
    fn insert_targets(&mut self, table: &Table, nodes: &'a [Node]) -> Result<Vec<usize>, SqlError> {
        if nodes.is_empty() {
            return Ok((0..table.live().count()).collect());
        }
        let mut places = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { return Err(functions::confused()) };
            let place = self.target_column(table, target)?;
            if places.contains(&place) {
                let error = format!("column \"{}\" specified more than once", target.name);
                return self.refuse(target.location, SqlState::DUPLICATE_COLUMN, error);
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Where the column of a target is among those that are there.
    fn target_column(&self, table: &Table, target: &ResTarget) -> Result<usize, SqlError> {
        if !target.indirection.is_empty() {
            return Err(self.at(target.location, unsupported("assigning to a part of a column")));
        }
        let place = table.live().position(|(_, column)| column.name == target.name);
        place.map_or_else(
            || {
                let error =
                    format!("column \"{}\" of relation \"{}\" does not exist", target.name, table.name);
                self.refuse(target.location, SqlState::UNDEFINED_COLUMN, error)
            },
            Ok,
        )
    }

    /// The rows of `VALUES`, of which each value is one of its column.
    fn new_rows(
        &mut self,
        table: &Table,
        targets: &[usize],
        named: &[Node],
        select: &'a SelectStmt,
        overrides: OverridingKind,
    ) -> Result<Plan, SqlError> {
        let mut width = None;
        let mut rows = Vec::new();
        self.scopes.push(Scope::new(Vec::new(), Clause::Values));
        for node in &select.values_lists {
            let Some(NodeEnum::List(list)) = &node.node else { return Err(functions::confused()) };
            let values = self.assigned(table, targets, &list.items, overrides)?;
            self.check_count(named, list.items.len())?;
            if *width.get_or_insert(list.items.len()) != list.items.len() {
                let error = "VALUES lists must all be the same length";
                let first = list.items.first().and_then(|item| self.expression(item).ok());
                let location = first.map_or(-1, |value| value.location);
                return self.refuse(location, SqlState::SYNTAX_ERROR, error);
            }
            rows.push(values);
        }
        self.scopes.pop();
        let given = (0..width.unwrap_or_default()).map(|place| Expr::Column { level: 0, place });
        let columns = self.completed(table, targets, given.collect())?;
        Ok(Plan::Project { input: Box::new(Plan::Values(rows)), columns })
    }

    /// Values for the first of these columns.
    fn assigned(
        &mut self,
        table: &Table,
        targets: &[usize],
        items: &'a [Node],
        overrides: OverridingKind,
    ) -> Result<Vec<Expr>, SqlError> {
        if let Some(more) = items.get(targets.len()) {
            let location = self.expression(more)?.location;
            let error = "INSERT has more expressions than target columns";
            return self.refuse(location, SqlState::SYNTAX_ERROR, error);
        }
        let values = items.iter().zip(targets).map(|(item, place)| {
            let column = live(table, *place)?;
            let value = self.assignment(column, item)?;
            let is_default = matches!(&item.node, Some(NodeEnum::SetToDefault(_)));
            if is_default || may_give(column, overrides)? { Ok(value) } else { self.default_of(column) }
        });
        values.collect()
    }

    /// Looks whether there are values for all columns that are named.
    fn check_count(&self, named: &[Node], count: usize) -> Result<(), SqlError> {
        match named.get(count).map(|node| &node.node) {
            Some(Some(NodeEnum::ResTarget(target))) => {
                let error = "INSERT has more target columns than expressions";
                self.refuse(target.location, SqlState::SYNTAX_ERROR, error)
            }
            _ => Ok(()),
        }
    }

    /// A value for a column, which may be `DEFAULT`.
    fn assignment(&mut self, column: &catalog::Column, node: &'a Node) -> Result<Expr, SqlError> {
        if let Some(NodeEnum::SetToDefault(_)) = &node.node {
            return self.default_of(column);
        }
        let value = self.expression(node)?;
        self.stored(column, value)
    }

    /// A value as a column keeps it.
    fn stored(&mut self, column: &catalog::Column, value: Typed) -> Result<Expr, SqlError> {
        let (from, location) = (value.oid, value.location);
        let stored = self.coerce(value, column.oid, column.modifier, CastContext::Assignment);
        let stored = stored.map_err(|error| match error.state {
            SqlState::CANNOT_COERCE => {
                let text = format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.oid.display(),
                    from.display()
                );
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, text);
                self.at(location, error.hint("You will need to rewrite or cast the expression."))
            }
            _ => error,
        });
        Ok(stored?.expr)
    }

    /// What a column is if nothing is said.
    fn default_of(&self, column: &catalog::Column) -> Result<Expr, SqlError> {
        match &column.default {
            None => Ok(Expr::Constant(Datum::Null)),
            Some(text) => default(text, column.oid, column.modifier, self.catalog),
        }
    }

    /// A whole row: what is given of it, and defaults.
    fn completed(
        &mut self,
        table: &Table,
        targets: &[usize],
        values: Vec<Expr>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut row = Vec::new();
        for (place, (_, column)) in table.live().enumerate() {
            let given = targets.iter().position(|target| *target == place);
            row.push(match given.and_then(|given| values.get(given)) {
                Some(value) => value.clone(),
                None => self.default_of(column)?,
            });
        }
        Ok(row)
    }

    /// The rows of any other query.
    fn selected_rows(
        &mut self,
        table: &Table,
        targets: &[usize],
        named: &[Node],
        select: &'a SelectStmt,
        overrides: OverridingKind,
    ) -> Result<Plan, SqlError> {
        let (plan, outputs) = self.open_query(select)?;
        if let Some(more) = outputs.get(targets.len()) {
            let error = "INSERT has more expressions than target columns";
            return self.refuse(more.location, SqlState::SYNTAX_ERROR, error);
        }
        self.check_count(named, outputs.len())?;
        let wanted: Result<Vec<Oid>, SqlError> = (outputs.iter().zip(targets))
            .map(|(output, place)| match output.column.oid {
                Oid::UNKNOWN => Ok(live(table, *place)?.oid),
                oid => Ok(oid),
            })
            .collect();
        let (plan, outputs) = self.typed_outputs(plan, outputs, Some(&wanted?))?;
        let mut values = Vec::new();
        for (number, (output, place)) in outputs.iter().zip(targets).enumerate() {
            let expr = Expr::Column { level: 0, place: number };
            let Column { oid, modifier, .. } = output.column;
            let value = Typed { expr, oid, modifier, location: output.location };
            let column = live(table, *place)?;
            let value = self.stored(column, value)?;
            values.push(if may_give(column, overrides)? { value } else { self.default_of(column)? });
        }
        let columns = self.completed(table, targets, values)?;
        Ok(Plan::Project { input: Box::new(plan), columns })
    }

    /// `UPDATE`
    pub fn update(&mut self, update: &'a UpdateStmt) -> Planned {
        if update.with_clause.is_some() {
            return Err(unsupported("WITH before UPDATE"));
        }
        let range = update.relation.as_ref().ok_or_else(functions::confused)?;
        let table = self.written(range)?;
        let width = table.live().count();
        let (plan, columns) = self.rows_to_change(&table, range, &update.from_clause)?;
        let seen = columns.clone();
        self.scopes.push(Scope::new(columns, Clause::Where));
        let planned = self.condition(&update.where_clause).and_then(|condition| {
            self.enter(Clause::Update);
            Ok((condition, self.assignments(&table, &update.target_list, width)?))
        });
        self.scopes.pop();
        let (condition, new) = planned?;
        let old = (0..=width).map(|place| Expr::Column { level: 0, place });
        let columns = old.chain(new).collect();
        let plan = Plan::Project { input: Box::new(filtered(plan, condition)), columns };
        let (returning, columns) = self.returning(width, seen, &update.returning_clause)?;
        Ok((
            plan,
            Write { kind: Kind::Update, conditions: conditions(&table, self.catalog)?, table, returning },
            columns,
        ))
    }

    /// `DELETE`
    pub fn delete(&mut self, delete: &'a DeleteStmt) -> Planned {
        if delete.with_clause.is_some() {
            return Err(unsupported("WITH before DELETE"));
        }
        let range = delete.relation.as_ref().ok_or_else(functions::confused)?;
        let table = self.written(range)?;
        let width = table.live().count();
        let (plan, columns) = self.rows_to_change(&table, range, &delete.using_clause)?;
        let seen = columns.clone();
        self.scopes.push(Scope::new(columns, Clause::Where));
        let condition = self.condition(&delete.where_clause);
        self.scopes.pop();
        let columns = (0..=width).map(|place| Expr::Column { level: 0, place }).collect();
        let plan = Plan::Project { input: Box::new(filtered(plan, condition?)), columns };
        let (returning, columns) = self.returning(width, seen, &delete.returning_clause)?;
        Ok((plan, Write { table, kind: Kind::Delete, conditions: Vec::new(), returning }, columns))
    }

    /// The rows of a table with their keys, each beside those of what else a statement names.
    fn rows_to_change(
        &mut self,
        table: &Arc<Table>,
        range: &'a RangeVar,
        others: &'a [Node],
    ) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        let scan = Scan::of(table.clone(), true);
        let mut columns = self.named_columns(table, range);
        columns.push(ScopeColumn::of_key());
        self.beside(Plan::Scan(scan), columns, others)
    }

    /// The columns of a table under the name that a statement gives it.
    pub(super) fn named_columns(&self, table: &Table, range: &RangeVar) -> Vec<ScopeColumn> {
        let mut columns = self.columns_of(table);
        if let Some(alias) = &range.alias {
            for column in &mut columns {
                column.table = Some(alias.aliasname.clone());
            }
        }
        columns
    }

    pub(super) fn condition(&mut self, node: &'a Option<Box<Node>>) -> Result<Option<Expr>, SqlError> {
        let Some(node) = node else { return Ok(None) };
        if let Some(NodeEnum::CurrentOfExpr(_)) = &node.node {
            return Err(unsupported("WHERE CURRENT OF"));
        }
        let condition = self.expression(node)?;
        self.boolean(condition, "WHERE").map(Some)
    }

    /// The new row of one whose columns are the first ones of the scope.
    pub(super) fn assignments(
        &mut self,
        table: &Table,
        targets: &'a [Node],
        width: usize,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut row: Vec<Expr> = (0..width).map(|place| Expr::Column { level: 0, place }).collect();
        let mut assigned = vec![false; width];
        for node in targets {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { return Err(functions::confused()) };
            let value = present(&target.val)?;
            if let Some(NodeEnum::MultiAssignRef(_)) = &value.node {
                return Err(unsupported("assigning to several columns at once"));
            }
            let place = self.target_column(table, target)?;
            let column = live(table, place)?;
            let is_default = matches!(&value.node, Some(NodeEnum::SetToDefault(_)));
            if column.identity == Some(Identity::Always) && !is_default {
                let error = format!("column \"{}\" can only be updated to DEFAULT", column.name);
                return Err(always(column, error));
            }
            let expr = self.assignment(column, value)?;
            if let (Some(column), Some(twice)) = (row.get_mut(place), assigned.get_mut(place)) {
                if std::mem::replace(twice, true) {
                    let error = format!("multiple assignments to same column \"{}\"", target.name);
                    self.late.get_or_insert(SqlError::new(SqlState::SYNTAX_ERROR, error));
                }
                *column = expr;
            }
        }
        Ok(row)
    }

    /// `RETURNING`: what it makes of a row, and what the client sees of that. `seen` are the
    /// columns that it may name, of which the row has the first `width`.
    fn returning(
        &mut self,
        width: usize,
        seen: Vec<ScopeColumn>,
        clause: &'a Option<ReturningClause>,
    ) -> Result<(Option<Vec<Expr>>, Vec<Column>), SqlError> {
        let Some(clause) = clause else { return Ok((None, Vec::new())) };
        if !clause.options.is_empty() {
            return Err(unsupported("RETURNING WITH"));
        }
        self.scopes.push(Scope::new(seen, Clause::Returning));
        let targets = self.returned(&clause.exprs);
        self.scopes.pop();
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        for Target { name, value, origin } in targets? {
            let value = self.settled(value)?;
            if has_query(&value.expr) {
                return Err(self.at(value.location, unsupported("a query in RETURNING")));
            }
            if value.expr.any(&|part| matches!(part, Expr::Column { place, .. } if *place >= width)) {
                let error = unsupported("RETURNING of columns of another table");
                return Err(self.at(value.location, error));
            }
            columns.push(Column { name, oid: value.oid, modifier: value.modifier, origin });
            exprs.push(value.expr);
        }
        Ok((Some(exprs), columns))
    }

    fn returned(&mut self, nodes: &'a [Node]) -> Result<Vec<Target>, SqlError> {
        let mut targets = Vec::new();
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { return Err(functions::confused()) };
            self.target(target, &mut targets)?;
        }
        Ok(targets)
    }
}

/// Whether a statement may give a value to a column; if not, what it gives is passed over.
fn may_give(column: &catalog::Column, overrides: OverridingKind) -> Result<bool, SqlError> {
    match (column.identity, overrides) {
        (Some(_), OverridingKind::OverridingUserValue) => Ok(false),
        (None | Some(Identity::ByDefault), _) | (_, OverridingKind::OverridingSystemValue) => Ok(true),
        (Some(Identity::Always), _) => {
            let error = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
            Err(always(column, error).hint("Use OVERRIDING SYSTEM VALUE to override."))
        }
    }
}

fn always(column: &catalog::Column, error: String) -> SqlError {
    let detail = format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name);
    SqlError::new(SqlState::GENERATED_ALWAYS, error).detail(detail)
}

pub(super) fn has_query(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Subquery(_)))
}

fn filtered(input: Plan, condition: Option<Expr>) -> Plan {
    match condition {
        Some(condition) => Plan::Filter { input: Box::new(input), condition },
        None => input,
    }
}

/// A column by its place among those that are there.
fn live(table: &Table, place: usize) -> Result<&catalog::Column, SqlError> {
    table.live().nth(place).map(|(_, column)| column).ok_or_else(functions::confused)
}

/// Whether a query is `VALUES` and nothing else.
fn is_values(select: &SelectStmt) -> bool {
    !select.values_lists.is_empty()
        && matches!(select.op(), SetOperation::SetopNone | SetOperation::Undefined)
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.with_clause.is_none()
}
