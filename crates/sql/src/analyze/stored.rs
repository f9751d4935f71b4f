//! Expressions that descriptors keep as text: defaults, and conditions of rows.
//!
//! A condition's text names columns without their table, so that it stays what it is when the table
//! gets another name. When a column does, the text is written anew ([`renamed`]).

use pg_query::NodeEnum;
use pg_query::protobuf::{ColumnRef, Node, a_const};

use super::expression::present;
use super::from::{Clause, Scope};
use super::names::{qualified, strings};
use super::plan::{Expr, Typed};
use super::{Analyzer, Catalog, printed};
use crate::catalog::Table;
use crate::functions::{self, CastContext, Volatility};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState, parse};

/// What has to be true of each row of a table.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The name of the constraint.
    pub name: String,
    /// The condition, over the columns that are there.
    pub expr: Expr,
}

/// The tree of an expression that is kept as text.
pub fn expression_of(text: &str) -> Result<Node, SqlError> {
    let statements = parse::parse(&format!("SELECT {text}"))?;
    let select = statements.first().and_then(|statement| match &statement.node.node {
        Some(NodeEnum::SelectStmt(select)) => select.target_list.first(),
        _ => None,
    });
    match select.map(|node| &node.node) {
        Some(Some(NodeEnum::ResTarget(target))) => present(&target.val).cloned(),
        _ => Err(functions::confused()),
    }
}

/// The expression of a default, from its text.
pub fn default(text: &str, oid: Oid, modifier: i32, catalog: &dyn Catalog) -> Result<Expr, SqlError> {
    default_of(&expression_of(text)?, "", oid, modifier, catalog)
}

/// The expression of a default in a statement's text.
pub fn default_of(
    node: &Node,
    text: &str,
    oid: Oid,
    modifier: i32,
    catalog: &dyn Catalog,
) -> Result<Expr, SqlError> {
    let mut analyzer = Analyzer::new(text, &[], catalog);
    analyzer.scopes.push(Scope::new(Vec::new(), Clause::Default));
    let value = analyzer.expression(node)?;
    Ok(analyzer.coerce(value, oid, modifier, CastContext::Assignment)?.expr)
}

/// The type of a default before it becomes that of its column; none of a literal, which has that.
pub fn type_of_default(text: &str, catalog: &dyn Catalog) -> Result<Option<Oid>, SqlError> {
    let node = expression_of(text)?;
    let mut analyzer = Analyzer::new("", &[], catalog);
    analyzer.scopes.push(Scope::new(Vec::new(), Clause::Default));
    let oid = analyzer.expression(&node)?.oid;
    Ok((oid != Oid::UNKNOWN).then_some(oid))
}

/// What each column of a table is, over these columns as they come: their texts, or their values.
pub fn copied(
    table: &Table,
    places: &[usize],
    are_texts: bool,
    catalog: &dyn Catalog,
) -> Result<Vec<Expr>, SqlError> {
    let columns = table.live().enumerate().map(|(place, (_, column))| {
        let Some(at) = places.iter().position(|copied| *copied == place) else {
            return match &column.default {
                Some(text) => default(text, column.oid, column.modifier, catalog),
                None => Ok(Expr::Constant(Datum::Null)),
            };
        };
        let (oid, modifier) = (column.oid, column.modifier);
        let field = Expr::Column { level: 0, place: at };
        let read_modifier = if oid == Oid::INTERVAL { modifier } else { -1 };
        let read = match are_texts {
            true => Expr::Read { text: Box::new(field), oid, modifier: read_modifier },
            false => field,
        };
        Ok(match modifier {
            ..0 => read,
            _ => Expr::Fit { value: Box::new(read), oid, modifier, explicit: false },
        })
    });
    columns.collect()
}

/// The text that such an expression reads.
pub fn column_read(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column { place, .. } => Some(*place),
        Expr::Read { text: inner, .. } | Expr::Fit { value: inner, .. } => column_read(inner),
        _ => None,
    }
}

/// What has to be true of rows of a table, in the order in which it is tested.
pub fn conditions(table: &Table, catalog: &dyn Catalog) -> Result<Vec<Condition>, SqlError> {
    let mut checks: Vec<_> = table.checks.iter().collect();
    checks.sort_by(|one, other| one.name.cmp(&other.name));
    let condition = |check: &crate::catalog::Check| {
        let expr = condition_of(&expression_of(&check.condition)?, "", table, catalog)?;
        Ok(Condition { name: check.name.clone(), expr })
    };
    checks.into_iter().map(condition).collect()
}

/// A condition in a statement's text, over a row of a table.
pub fn condition_of(node: &Node, text: &str, table: &Table, catalog: &dyn Catalog) -> Result<Expr, SqlError> {
    let mut analyzer = Analyzer::new(text, &[], catalog);
    let value = analyzer.over_row(node, table, Clause::Check)?;
    analyzer.boolean(value, "CHECK")
}

/// What a column of another type becomes, from the row as it was.
pub fn transform_of(
    node: &Node,
    text: &str,
    table: &Table,
    to: (Oid, i32),
    catalog: &dyn Catalog,
) -> Result<Option<Expr>, SqlError> {
    let mut analyzer = Analyzer::new(text, &[], catalog);
    let value = analyzer.over_row(node, table, Clause::Transform)?;
    match analyzer.coerce(value, to.0, to.1, CastContext::Assignment) {
        Ok(value) => Ok(Some(value.expr)),
        Err(error) if error.state == SqlState::CANNOT_COERCE => Ok(None),
        Err(error) => Err(error),
    }
}

impl<'a> Analyzer<'a> {
    fn over_row(&mut self, node: &'a Node, table: &Table, clause: Clause) -> Result<Typed, SqlError> {
        self.scopes.push(Scope::new(self.columns_of(table), clause));
        let value = self.expression(node);
        self.scopes.pop();
        value
    }
}

/// Whether an expression may come to something else each time.
pub fn is_volatile(expr: &Expr) -> bool {
    expr.any(
        &|part| matches!(part, Expr::Call { function, .. } if function.volatility == Volatility::Volatile),
    )
}

/// A condition as text that does not depend on the table's name.
pub fn kept(node: &Node) -> Result<String, SqlError> {
    let mut node = node.clone();
    each_column(&mut node, &mut |column| {
        let last = column.fields.len().saturating_sub(1);
        column.fields.drain(..last);
    });
    printed(&node)
}

/// The positions of a table's columns that an expression names, each once.
pub fn columns_in(node: &Node, table: &Table) -> Vec<usize> {
    let mut positions = Vec::new();
    each_column(&mut node.clone(), &mut |column| {
        let name = strings(&column.fields).last().map(|name| (*name).to_owned());
        let position = table.live().find(|(_, column)| Some(&column.name) == name.as_ref());
        if let Some((position, _)) = position.filter(|(position, _)| !positions.contains(position)) {
            positions.push(position);
        }
    });
    positions
}

/// The text of a condition in which a column has another name.
pub fn renamed(text: &str, from: &str, to: &str) -> Result<String, SqlError> {
    let mut node = expression_of(text)?;
    each_column(&mut node, &mut |column| {
        for field in &mut column.fields {
            if let Some(NodeEnum::String(name)) = &mut field.node
                && name.sval == from
            {
                name.sval = to.to_owned();
            }
        }
    });
    printed(&node)
}

/// The sequences whose numbers an expression takes: schema, which may be empty, and name.
pub fn sequences_in(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut sequences = Vec::new();
    each_part(&mut expression_of(text)?, &mut |part| {
        sequences.extend(named_sequence(part).and_then(|name| qualified(name).ok()));
    });
    Ok(sequences)
}

/// The text of an expression that takes numbers of a sequence which has another name.
pub fn with_sequence(text: &str, is_it: impl Fn(&str, &str) -> bool, to: &str) -> Result<String, SqlError> {
    let mut node = expression_of(text)?;
    each_part(&mut node, &mut |part| {
        if let Some(name) = named_sequence(part)
            && let Ok((schema, sequence)) = qualified(name)
            && is_it(&schema, &sequence)
        {
            *name = to.to_owned();
        }
    });
    printed(&node)
}

/// The name of the sequence that a part of an expression takes numbers of.
fn named_sequence(part: &mut Node) -> Option<&mut String> {
    let Some(NodeEnum::FuncCall(call)) = &mut part.node else { return None };
    if strings(&call.funcname).last() != Some(&"nextval") {
        return None;
    }
    let mut argument = call.args.first_mut()?;
    loop {
        match &mut argument.node {
            Some(NodeEnum::TypeCast(cast)) => argument = cast.arg.as_deref_mut()?,
            Some(NodeEnum::AConst(constant)) => match &mut constant.val {
                Some(a_const::Val::Sval(text)) => return Some(&mut text.sval),
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// Visits the names of columns in an expression without queries.
fn each_column(node: &mut Node, visit: &mut dyn FnMut(&mut ColumnRef)) {
    each_part(node, &mut |part| {
        if let Some(NodeEnum::ColumnRef(column)) = &mut part.node {
            visit(column);
        }
    });
}

/// Visits all parts of an expression without queries.
fn each_part(node: &mut Node, visit: &mut dyn FnMut(&mut Node)) {
    stacker::maybe_grow(WALK_STACK, WALK_STACK, || walk(node, visit));
}

/// Bytes of stack for walking through an expression of as many levels as there may be.
const WALK_STACK: usize = 4 << 20;

fn walk(node: &mut Node, visit: &mut dyn FnMut(&mut Node)) {
    visit(node);
    let mut parts: Vec<&mut Node> = Vec::new();
    match &mut node.node {
        Some(NodeEnum::TypeCast(cast)) => parts.extend(cast.arg.as_deref_mut()),
        Some(NodeEnum::CollateClause(collate)) => parts.extend(collate.arg.as_deref_mut()),
        Some(NodeEnum::NullTest(test)) => parts.extend(test.arg.as_deref_mut()),
        Some(NodeEnum::BooleanTest(test)) => parts.extend(test.arg.as_deref_mut()),
        Some(NodeEnum::NamedArgExpr(named)) => parts.extend(named.arg.as_deref_mut()),
        Some(NodeEnum::AExpr(expr)) => {
            parts.extend(expr.lexpr.as_deref_mut());
            parts.extend(expr.rexpr.as_deref_mut());
        }
        Some(NodeEnum::CaseWhen(when)) => {
            parts.extend(when.expr.as_deref_mut());
            parts.extend(when.result.as_deref_mut());
        }
        Some(NodeEnum::CaseExpr(case)) => {
            parts.extend(case.arg.as_deref_mut());
            parts.extend(case.args.iter_mut());
            parts.extend(case.defresult.as_deref_mut());
        }
        Some(NodeEnum::AIndices(bounds)) => {
            parts.extend(bounds.lidx.as_deref_mut());
            parts.extend(bounds.uidx.as_deref_mut());
        }
        Some(NodeEnum::AIndirection(indirection)) => {
            parts.extend(indirection.arg.as_deref_mut());
            parts.extend(indirection.indirection.iter_mut());
        }
        Some(NodeEnum::List(list)) => parts.extend(list.items.iter_mut()),
        Some(NodeEnum::BoolExpr(expr)) => parts.extend(expr.args.iter_mut()),
        Some(NodeEnum::FuncCall(call)) => parts.extend(call.args.iter_mut()),
        Some(NodeEnum::CoalesceExpr(coalesce)) => parts.extend(coalesce.args.iter_mut()),
        Some(NodeEnum::MinMaxExpr(extreme)) => parts.extend(extreme.args.iter_mut()),
        Some(NodeEnum::AArrayExpr(array)) => parts.extend(array.elements.iter_mut()),
        Some(NodeEnum::RowExpr(row)) => parts.extend(row.args.iter_mut()),
        _ => {}
    }
    parts.into_iter().for_each(|part| walk(part, visit));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_follows_a_column_to_its_new_name() {
        let text = "a > 0 AND CASE WHEN a IN (1, b) THEN f(a)[a] = 'a' ELSE COALESCE(-a, a::a) IS NULL END";
        let expected = renamed(
            "x > 0 AND CASE WHEN x IN (1, b) THEN f(x)[x] = 'a' ELSE COALESCE(-x, x::a) IS NULL END",
            "y",
            "z",
        );
        assert_eq!(renamed(text, "a", "x"), expected);
    }

    #[test]
    fn a_condition_is_kept_without_the_name_of_its_table() {
        let node = expression_of("t.a > public.t.b").expect("an expression");
        assert_eq!(kept(&node).as_deref(), Ok("a > b"));
    }
}
