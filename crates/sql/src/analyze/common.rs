//! Queries of `WITH`, which are planned anew wherever they are read, and recursive ones.

use std::cell::Cell;

use pg_query::NodeEnum;
use pg_query::protobuf::{RangeVar, SelectStmt, SetOperation};

use super::Analyzer;
use super::expression::typed;
use super::from::{Common, Item, Scope, ScopeColumn, Working, aliased, renamed};
use super::names::strings;
use super::plan::{Expr, Plan};
use super::select::{Output, Planned};
use super::unsupported;
use crate::functions::{self, system::with_modifier};
use crate::{SqlError, SqlState};

impl<'a> Analyzer<'a> {
    /// The queries that a query has in front of it.
    pub(super) fn with(&mut self, select: &'a SelectStmt) -> Result<(), SqlError> {
        let Some(with) = &select.with_clause else { return Ok(()) };
        for node in &with.ctes {
            let Some(NodeEnum::CommonTableExpr(common)) = &node.node else {
                return Err(functions::confused());
            };
            let Some(NodeEnum::SelectStmt(query)) =
                common.ctequery.as_ref().and_then(|node| node.node.as_ref())
            else {
                return Err(unsupported("a statement that writes in WITH"));
            };
            self.common.push(Common {
                name: &common.ctename,
                columns: strings(&common.aliascolnames),
                location: common.location,
                select: query,
                around: self.scopes.len(),
                recursive: with.recursive,
                working: None,
                is_read: Cell::new(false),
            });
        }
        Ok(())
    }

    /// Plans the queries of `WITH` from a place on that nothing reads, which may be wrong.
    pub(super) fn check_unread(&mut self, outside: usize) -> Result<(), SqlError> {
        for known in outside..self.common.len() {
            if self.common.get(known).is_some_and(|common| !common.is_read.get()) {
                self.common_at(known)?;
            }
        }
        Ok(())
    }

    /// The item of `FROM` that reads a query of `WITH`.
    pub(super) fn common_item(&mut self, known: usize, range: &'a RangeVar) -> Result<Item, SqlError> {
        let alias = range.alias.as_ref();
        if let Some(working) = self.common.get(known).and_then(|common| common.working.as_ref()) {
            if working.sublinks != self.sublinks {
                let error = format!(
                    "recursive reference to query \"{}\" must not appear within a subquery",
                    range.relname
                );
                return self.refuse(range.location, SqlState::INVALID_RECURSION, error);
            }
            if working.place.replace(range.location) >= 0 {
                let error = format!(
                    "recursive reference to query \"{}\" must not appear more than once",
                    range.relname
                );
                return self.refuse(range.location, SqlState::INVALID_RECURSION, error);
            }
            let plan = Plan::Working { id: working.id, width: working.columns.len() };
            return Ok(Item { plan, columns: aliased(working.columns.clone(), alias)?, lateral: false });
        }
        let (plan, columns) = self.common_at(known)?;
        Ok(Item { plan, columns: aliased(columns, alias)?, lateral: false })
    }

    /// The plan of a query of `WITH`.
    fn common_at(&mut self, known: usize) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        // The query sees what was before it, and what is around the query that has it. What is
        // nearer stays at its level and has no names.
        let later = self.common.split_off(known);
        let result = match later.first() {
            Some(common) => {
                common.is_read.set(true);
                let inner = self.scopes.split_off(common.around.min(self.scopes.len()));
                self.scopes.extend(inner.iter().map(|scope| Scope::new(Vec::new(), scope.clause)));
                let mark = self.named.mark();
                let planned = self.common_query(common);
                self.named.common(mark, common.around, common.name);
                self.scopes.truncate(self.scopes.len() - inner.len());
                self.scopes.extend(inner);
                planned
            }
            None => Err(functions::confused()),
        };
        self.common.extend(later);
        result
    }

    fn common_query(&mut self, common: &Common<'a>) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        let is_union = common.select.op() == SetOperation::SetopUnion;
        let (plan, outputs) =
            if common.recursive && is_union { self.recursive(common)? } else { self.query(common.select)? };
        Ok((plan, self.columns_of_common(common, outputs)?))
    }

    /// A query that may go on from its own rows: `base UNION step`.
    fn recursive(&mut self, common: &Common<'a>) -> Planned {
        let outside = self.common.len();
        let planned = self.with(common.select).and_then(|()| self.recursive_here(common));
        self.common.truncate(outside);
        planned
    }

    fn recursive_here(&mut self, common: &Common<'a>) -> Planned {
        let select = common.select;
        let (Some(base), Some(step)) = (&select.larg, &select.rarg) else {
            return Err(functions::confused());
        };
        let (base, outputs) = self.query(base)?;
        self.recursions += 1;
        let id = self.recursions - 1;
        self.common.push(Common {
            name: common.name,
            columns: Vec::new(),
            location: common.location,
            select,
            around: common.around,
            recursive: true,
            working: Some(Working {
                id,
                columns: self.columns_of_common(common, outputs.clone())?,
                place: Cell::new(-1),
                sublinks: self.sublinks,
            }),
            is_read: Cell::new(true),
        });
        let planned = self.open_query(step);
        let working = self.common.pop().and_then(|common| common.working);
        let (step, step_outputs) = planned?;
        let place = working.map_or(-1, |working| working.place.get());
        if place < 0 {
            return self.query(select);
        }
        if !select.sort_clause.is_empty() || select.limit_count.is_some() || select.limit_offset.is_some() {
            return Err(unsupported("ORDER BY, OFFSET or LIMIT in a recursive query"));
        }
        if let Some(what) = refused(&step, id) {
            return self.refuse(place, SqlState::INVALID_RECURSION, what.replace("{}", common.name));
        }
        if outputs.len() != step_outputs.len() {
            let location = step_outputs.first().map_or(-1, |output| output.location);
            let error = "each UNION query must have the same number of columns";
            return self.refuse(location, SqlState::SYNTAX_ERROR, error);
        }
        for (place, (left, right)) in outputs.iter().zip(&step_outputs).enumerate() {
            let value = |output: &Output| typed(Expr::CaseValue, output.column.oid, output.location);
            let common_type = self.common_type(&[value(left), value(right)], "UNION")?;
            let modifier =
                if left.column.modifier == right.column.modifier { left.column.modifier } else { -1 };
            if (common_type, modifier) != (left.column.oid, left.column.modifier) {
                let error = format!(
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    common.name,
                    place + 1,
                    with_modifier(left.column.oid, left.column.modifier),
                    with_modifier(common_type, modifier)
                );
                let hint = "Cast the output of the non-recursive term to the correct type.";
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, error).hint(hint);
                return Err(self.at(left.location, error));
            }
        }
        let wanted: Vec<_> = outputs.iter().map(|output| output.column.oid).collect();
        let (step, _) = self.typed_outputs(step, step_outputs, Some(&wanted))?;
        let plan = Plan::Recursive { id, base: Box::new(base), step: Box::new(step), all: select.all };
        Ok((plan, outputs))
    }

    /// The columns of a query of `WITH`, as names find them.
    fn columns_of_common(
        &self,
        common: &Common<'_>,
        outputs: Vec<Output>,
    ) -> Result<Vec<ScopeColumn>, SqlError> {
        if common.columns.len() > outputs.len() {
            let error = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                common.name,
                outputs.len(),
                common.columns.len()
            );
            return self.refuse(common.location, SqlState::INVALID_COLUMN_REFERENCE, error);
        }
        let column = |output: Output| ScopeColumn {
            table: Some(common.name.to_owned()),
            name: output.column.name,
            oid: output.column.oid,
            modifier: output.column.modifier,
            origin: output.column.origin,
        };
        renamed(outputs.into_iter().map(column).collect(), common.name, &common.columns, common.name)
    }
}

/// Why a plan may not be the step of a recursive query: it would need all rows, or miss some.
fn refused(step: &Plan, id: usize) -> Option<&'static str> {
    let reads = |plan: &Plan| any(plan, &|part| matches!(part, Plan::Working { id: of, .. } if *of == id));
    let refuses = |part: &Plan| match part {
        Plan::Group { .. } => reads(part),
        Plan::Sort { .. } | Plan::Limit { .. } => reads(part),
        Plan::Join { right, outer: true, .. } => reads(right),
        Plan::Combined { .. } => reads(part),
        _ => false,
    };
    if !any(step, &refuses) {
        return None;
    }
    let is_group = |part: &Plan| matches!(part, Plan::Group { .. }) && reads(part);
    let is_join = |part: &Plan| matches!(part, Plan::Join { right, outer: true, .. } if reads(right));
    Some(if any(step, &is_group) {
        "aggregate functions are not allowed in a recursive query's recursive term"
    } else if any(step, &is_join) {
        "recursive reference to query \"{}\" must not appear within an outer join"
    } else {
        "ORDER BY, LIMIT or another set operation over the rows of \"{}\" in its recursive term is not supported"
    })
}

/// Whether some part of a plan is what is asked for.
fn any(plan: &Plan, wanted: &dyn Fn(&Plan) -> bool) -> bool {
    let inner: Vec<&Plan> = match plan {
        Plan::Scan(_) | Plan::Catalog(_) | Plan::Values(_) | Plan::Function { .. } | Plan::Working { .. } => {
            Vec::new()
        }
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Numbered { input, .. }
        | Plan::Sets { input, .. }
        | Plan::Group { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Distinct { input, .. }
        | Plan::Lock { input, .. }
        | Plan::Limit { input, .. } => vec![input],
        Plan::Join { left, right, .. } | Plan::Combined { left, right, .. } => vec![left, right],
        Plan::Recursive { base, step, .. } => vec![base, step],
    };
    wanted(plan) || inner.into_iter().any(|part| any(part, wanted))
}
