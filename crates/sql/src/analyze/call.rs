//! Functions, operators, and what is written like one: `IN`, `BETWEEN`, `ANY`, queries in
//! expressions.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{AExpr, AExprKind, FuncCall, Node, SubLink, SubLinkType};

use super::expression::{leftmost, present, typed};
use super::from::Clause;
use super::names::strings;
use super::plan::{Aggregated, Direction, Expr, Question, Subquery, Typed};
use super::resolve::{self, Found};
use super::{Analyzer, unsupported};
use crate::functions::{self, Body, CastContext};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

impl<'a> Analyzer<'a> {
    /// A call of what was found.
    fn called(&mut self, found: &Found, arguments: Vec<Typed>, spread: bool, location: i32) -> Outcome {
        let (mut exprs, mut types) = (Vec::new(), Vec::new());
        for (argument, wanted) in arguments.into_iter().zip(&found.arguments) {
            let argument = self.coerce(argument, *wanted, -1, CastContext::Implicit)?;
            types.push(argument.oid);
            exprs.push(argument.expr);
        }
        let declared = found.function.arguments.len();
        if !found.function.optional.is_empty() && exprs.len() < declared {
            let missing = declared - exprs.len();
            let from = found.function.optional.len().saturating_sub(missing);
            for value in found.function.optional.iter().skip(from) {
                exprs.push(Expr::Constant(value.clone()));
            }
            types.extend(found.function.arguments.iter().skip(types.len()));
        }
        let call =
            Expr::Call { function: found.function, arguments: exprs, types, result: found.result, spread };
        Ok(typed(call, found.result, location))
    }

    /// An operator.
    pub fn operator(&mut self, name: &str, left: Option<Typed>, right: Typed, location: i32) -> Outcome {
        let found = resolve::operator(name, left.as_ref().map(|left| left.oid), right.oid);
        let found = found.map_err(|error| self.unless_open(location, error))?;
        let operands: Vec<Typed> = left.into_iter().chain([right]).collect();
        let place = leftmost(operands.iter().map(|operand| operand.location).chain([location]));
        let mut called = self.called(&found, operands, false, location)?;
        called.location = place;
        Ok(called)
    }

    /// What the grammar calls an operator.
    pub fn operator_expression(&mut self, expr: &'a AExpr) -> Outcome {
        let location = expr.location;
        let name = *strings(&expr.name).last().unwrap_or(&"");
        let lists = |node: &'a Option<Box<Node>>| match node.as_deref().map(|node| &node.node) {
            Some(Some(NodeEnum::List(list))) => list.items.as_slice(),
            _ => &[],
        };
        match expr.kind() {
            AExprKind::AexprOp | AExprKind::AexprLike | AExprKind::AexprIlike | AExprKind::AexprSimilar => {
                if let (Some(NodeEnum::RowExpr(left)), Some(NodeEnum::RowExpr(right))) =
                    (inner(&expr.lexpr), inner(&expr.rexpr))
                {
                    return self.rows(name, &left.args, &right.args, location);
                }
                let left = match &expr.lexpr {
                    Some(left) => Some(self.expression(left)?),
                    None => None,
                };
                let right = self.expression(present(&expr.rexpr)?)?;
                self.operator(name, left, right, location)
            }
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => {
                let left = self.expression(present(&expr.lexpr)?)?;
                let right = self.expression(present(&expr.rexpr)?)?;
                self.quantified(name, left, right, expr.kind() == AExprKind::AexprOpAll, location)
            }
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                let negated = expr.kind() == AExprKind::AexprNotDistinct;
                let left = self.expression(present(&expr.lexpr)?)?;
                let right = self.expression(present(&expr.rexpr)?)?;
                let null = |item: &Typed| matches!(item.expr, Expr::Constant(Datum::Null));
                if null(&right) || null(&left) {
                    let value = Box::new(if null(&right) { left.expr } else { right.expr });
                    let test = if negated { Expr::IsNull(value) } else { Expr::IsNotNull(value) };
                    return Ok(typed(test, Oid::BOOL, location));
                }
                let equal = self.operator("=", Some(left), right, location)?;
                if equal.oid != Oid::BOOL {
                    return self.refuse(
                        location,
                        SqlState::DATATYPE_MISMATCH,
                        "IS DISTINCT FROM requires = operator to yield boolean",
                    );
                }
                let expr = Expr::Distinct { equal: Box::new(equal.expr), negated };
                Ok(typed(expr, Oid::BOOL, location))
            }
            AExprKind::AexprNullif => {
                let left = self.expression(present(&expr.lexpr)?)?;
                let right = self.expression(present(&expr.rexpr)?)?;
                let equal = self.operator("=", Some(left), right, location)?;
                let oid = match &equal.expr {
                    Expr::Call { types, .. } => types.first().copied().unwrap_or(Oid::UNKNOWN),
                    _ => Oid::UNKNOWN,
                };
                Ok(typed(Expr::NullIf(Box::new(equal.expr)), oid, location))
            }
            AExprKind::AexprIn => {
                let left = self.expression(present(&expr.lexpr)?)?;
                let items = self.expressions(lists(&expr.rexpr))?;
                self.one_of(name, left, items, location)
            }
            AExprKind::AexprBetween
            | AExprKind::AexprNotBetween
            | AExprKind::AexprBetweenSym
            | AExprKind::AexprNotBetweenSym => {
                let [low, high] = lists(&expr.rexpr) else { return Err(functions::confused()) };
                let value = self.expression(present(&expr.lexpr)?)?;
                let (whole, value) = shared(value);
                let negated =
                    matches!(expr.kind(), AExprKind::AexprNotBetween | AExprKind::AexprNotBetweenSym);
                let symmetric =
                    matches!(expr.kind(), AExprKind::AexprBetweenSym | AExprKind::AexprNotBetweenSym);
                let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
                let low = self.expression(low)?;
                let copied = if symmetric { Some(self.copy(&low)?) } else { None };
                let first = self.bound(above, &value, low, negated, location)?;
                let high = self.expression(high)?;
                let swapped = match copied {
                    Some(low) => Some((self.copy(&high)?, low)),
                    None => None,
                };
                let joined = |both: Vec<Expr>, or: bool| if or { Expr::Or(both) } else { Expr::And(both) };
                let mut test =
                    joined(vec![first, self.bound(below, &value, high, negated, location)?], negated);
                if let Some((high, low)) = swapped {
                    let first = self.bound(above, &value, high, negated, location)?;
                    let second = self.bound(below, &value, low, negated, location)?;
                    test = joined(vec![test, joined(vec![first, second], negated)], !negated);
                }
                let location = leftmost([location, value.location]);
                Ok(typed(with(whole, test), Oid::BOOL, location))
            }
            AExprKind::Undefined => Err(functions::confused()),
        }
    }

    /// A comparison with one bound of `BETWEEN`.
    fn bound(
        &mut self,
        name: &str,
        value: &Typed,
        bound: Typed,
        negated: bool,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let test = self.operator(name, Some(value.clone()), bound, location)?;
        self.boolean(test, if negated { "OR" } else { "AND" })
    }

    /// `IN`, `NOT IN` with a list: its items are of one type if they have one in common.
    fn one_of(&mut self, name: &str, left: Typed, items: Vec<Typed>, location: i32) -> Outcome {
        let constants = items.iter().filter(|item| !has_columns(&item.expr)).count();
        let mut items = items;
        if constants > 1 {
            let all: Vec<Typed> = std::iter::once(left.clone())
                .chain(items.iter().filter(|item| !has_columns(&item.expr)).cloned())
                .collect();
            if let Ok(oid) = self.common_type(&all, "IN") {
                let mut coerced = Vec::new();
                for item in items {
                    coerced.push(if has_columns(&item.expr) {
                        item
                    } else {
                        self.to_common_type(item, oid, "IN")?
                    });
                }
                items = coerced;
            }
        }
        let (whole, left) = shared(left);
        let mut tests = Vec::new();
        for item in items {
            let test = self.operator(name, Some(left.clone()), item, location)?;
            tests.push(self.boolean(test, if name == "<>" { "AND" } else { "OR" })?);
        }
        let test = if name == "<>" { Expr::And(tests) } else { Expr::Or(tests) };
        let location = leftmost([location, left.location]);
        Ok(typed(with(whole, test), Oid::BOOL, location))
    }

    /// An expression once more; so often that a tree which doubles itself at every level is
    /// refused.
    fn copy(&mut self, value: &Typed) -> Result<Typed, SqlError> {
        self.copied = self.copied.saturating_add(value.expr.size());
        if self.copied > super::COPIES_MAX {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "statement is too complex"));
        }
        Ok(value.clone())
    }

    /// Rows compared field by field.
    fn rows(&mut self, name: &str, left: &'a [Node], right: &'a [Node], location: i32) -> Outcome {
        if left.len() != right.len() {
            return self.refuse(
                location,
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            );
        }
        if left.is_empty() {
            return self.refuse(
                location,
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
            );
        }
        let mut tests = Vec::new();
        let mut fields = Vec::new();
        for (left, right) in left.iter().zip(right) {
            let (left, right) = (self.expression(left)?, self.expression(right)?);
            if !matches!(name, "=" | "<>") {
                let (left, right) = (self.copy(&left)?, self.copy(&right)?);
                fields.push(self.operator("=", Some(left), right, location)?.expr);
            }
            let test = self.operator(name, Some(left), right, location)?;
            tests.push(self.boolean(test, "row comparison")?);
        }
        let expr = match name {
            "=" => Expr::And(tests),
            "<>" => Expr::Or(tests),
            "<" | "<=" | ">" | ">=" => {
                // The first fields that differ decide: (a < c) OR (a = c AND ...).
                let last = tests.pop().ok_or_else(functions::confused)?;
                fields.pop();
                let mut expr = last;
                while let (Some(test), Some(equal)) = (tests.pop(), fields.pop()) {
                    let strict = Expr::And(vec![test, Expr::Not(Box::new(equal.clone()))]);
                    expr = Expr::Or(vec![strict, Expr::And(vec![equal, expr])]);
                }
                expr
            }
            _ => {
                return self.refuse(
                    location,
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("could not determine interpretation of row comparison operator {name}"),
                );
            }
        };
        Ok(typed(expr, Oid::BOOL, location))
    }

    /// `left op ANY (array)`
    fn quantified(&mut self, name: &str, left: Typed, right: Typed, all: bool, location: i32) -> Outcome {
        let right = if right.oid == Oid::UNKNOWN {
            let of_left = if left.oid == Oid::UNKNOWN { Some(Oid::TEXT_ARRAY) } else { left.oid.array() };
            match of_left {
                Some(array) => self.coerce(right, array, -1, CastContext::Implicit)?,
                None => right,
            }
        } else {
            right
        };
        let Some(element) = right.oid.element() else {
            return self.refuse(
                location,
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires array on right side",
            );
        };
        let test = self.operator(name, Some(left), typed(Expr::CaseValue, element, location), location)?;
        if test.oid != Oid::BOOL {
            return self.refuse(
                location,
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires operator to yield boolean",
            );
        }
        let expr = Expr::Quantified { test: Box::new(test.expr), array: Box::new(right.expr), all };
        Ok(typed(expr, Oid::BOOL, location))
    }

    /// An error with its place, unless it is that types cannot be told, which has none.
    fn unless_open(&self, location: i32, error: SqlError) -> SqlError {
        if error.state == SqlState::DATATYPE_MISMATCH { error } else { self.at(location, error) }
    }

    /// A function.
    pub fn call(&mut self, call: &'a FuncCall) -> Outcome {
        let location = call.location;
        let names = strings(&call.funcname);
        let name = match names.as_slice() {
            [name] | ["pg_catalog", name] => *name,
            [schema, name] => {
                let arguments = self.expressions(&call.args)?;
                let types: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
                if !matches!(*schema, "public" | "information_schema") {
                    let message = format!("schema \"{schema}\" does not exist");
                    return self.refuse(location, SqlState::UNDEFINED_SCHEMA, message);
                }
                return Err(self.at(location, resolve::no_function(&format!("{schema}.{name}"), &types)));
            }
            _ => return Err(unsupported("a function of another database")),
        };
        if call.over.is_some() {
            return Err(self.at(location, unsupported("a window function")));
        }
        if call.agg_within_group {
            return Err(self.at(location, unsupported("WITHIN GROUP")));
        }
        if call.args.iter().any(|arg| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_)))) {
            return Err(self.at(location, unsupported("named notation of arguments")));
        }
        let arguments = self.expressions(&call.args)?;
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
        // `text(1)`: a cast that is written as a function, unless there is just that function.
        if let ([only], Some(oid)) = (arguments.as_slice(), Oid::named(name))
            && !functions::named(name).iter().any(|function| function.arguments == [only.oid])
            && (only.oid == Oid::UNKNOWN || super::coerce::is_plain_cast(only.oid, oid))
        {
            let only = only.clone();
            return self.cast(only, oid, -1, location);
        }
        let found = resolve::function(name, &names.join("."), &types, call.func_variadic);
        let Some(found) = found.map_err(|error| self.unless_open(location, error))? else {
            return Err(self.at(location, resolve::no_function(&names.join("."), &types)));
        };
        let plain =
            call.agg_order.is_empty() && !call.agg_distinct && call.agg_filter.is_none() && !call.agg_star;
        match &found.function.body {
            Body::Aggregate(_) => self.aggregate(call, &found, arguments),
            _ if !plain => {
                let what = if call.agg_star {
                    format!("{name}(*) specified, but {name} is not an aggregate function")
                } else if call.agg_distinct {
                    format!("DISTINCT specified, but {name} is not an aggregate function")
                } else if call.agg_filter.is_some() {
                    format!("FILTER specified, but {name} is not an aggregate function")
                } else {
                    format!("ORDER BY specified, but {name} is not an aggregate function")
                };
                self.refuse(location, SqlState::WRONG_OBJECT_TYPE, what)
            }
            Body::Plain(_) => self.called(&found, arguments, call.func_variadic, location),
            Body::Set(_) => {
                let result = self.called(&found, arguments, call.func_variadic, location)?;
                let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
                if let Some(where_) = scope.clause.refuses_sets() {
                    return self.refuse(
                        location,
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("set-returning functions are not allowed in {where_}"),
                    );
                }
                scope.sets.push(result.expr);
                scope.set_places.push(location);
                let place = scope.sets.len() - 1;
                Ok(Typed { expr: Expr::Set(place), ..result })
            }
        }
    }

    fn aggregate(&mut self, call: &'a FuncCall, found: &Found, arguments: Vec<Typed>) -> Outcome {
        let location = call.location;
        let clause = self.scopes.last().map_or(Clause::Select, |scope| scope.clause);
        if let Some(where_) = clause.refuses_aggregates() {
            return self.refuse(
                location,
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {where_}"),
            );
        }
        if arguments.is_empty() && !call.agg_star {
            return self.refuse(
                location,
                SqlState::WRONG_OBJECT_TYPE,
                format!("{}(*) must be used to call a parameterless aggregate function", found.function.name),
            );
        }
        if let Some(inner) = arguments.iter().find_map(|argument| self.aggregate_place(&argument.expr)) {
            return self.refuse(inner, SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested");
        }
        if arguments.iter().any(|argument| argument.expr.any(&|expr| matches!(expr, Expr::Set(_)))) {
            return self.refuse(
                location,
                SqlState::FEATURE_NOT_SUPPORTED,
                "aggregate function calls cannot contain set-returning function calls",
            );
        }
        let result = self.called(found, arguments, call.func_variadic, location)?;
        let Expr::Call { function, arguments, types, result: oid, .. } = result.expr else {
            return Err(functions::confused());
        };
        let filter = match &call.agg_filter {
            Some(filter) => {
                let outside = self.enter(Clause::Filter);
                let filter = self.expression(filter)?;
                self.enter(outside);
                Some(self.boolean(filter, "FILTER")?)
            }
            None => None,
        };
        let mut order = Vec::new();
        for node in &call.agg_order {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { return Err(functions::confused()) };
            let key = self.expression(present(&sort.node)?)?;
            let key = self.settled(key)?;
            let direction = self.direction(sort, key.oid)?;
            order.push((key.expr, direction));
        }
        if call.agg_distinct && order.is_empty() {
            // Equal arguments are found by sorting them.
            let blanks = types.first() == Some(&Oid::BPCHAR);
            order = arguments
                .iter()
                .map(|argument| {
                    (argument.clone(), Direction { descending: false, nulls_first: false, blanks })
                })
                .collect();
        }
        let aggregated = Aggregated {
            function,
            arguments,
            types,
            result: oid,
            distinct: call.agg_distinct,
            filter,
            order,
        };
        let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
        let place = scope.aggregates.iter().position(|known| *known == aggregated).unwrap_or_else(|| {
            scope.aggregates.push(aggregated);
            scope.aggregate_places.push(location);
            scope.aggregates.len() - 1
        });
        Ok(typed(Expr::Aggregate(place), oid, location))
    }

    /// Where the first aggregate of an expression is.
    pub fn aggregate_place(&self, expr: &Expr) -> Option<i32> {
        let scope = self.scopes.last()?;
        let place =
            scope.aggregate_places.iter().enumerate().find(|(number, _)| {
                expr.any(&|part| matches!(part, Expr::Aggregate(found) if found == number))
            });
        place.map(|(_, location)| *location)
    }

    /// A query in an expression.
    pub fn sublink(&mut self, link: &'a SubLink) -> Outcome {
        let location = link.location;
        let Some(NodeEnum::SelectStmt(select)) = inner(&link.subselect) else {
            return Err(functions::confused());
        };
        let left = match &link.testexpr {
            Some(test) => Some(match &test.node {
                Some(NodeEnum::RowExpr(row)) => self.expressions(&row.args)?,
                _ => vec![self.expression(test)?],
            }),
            None => None,
        };
        let outside = std::mem::replace(&mut self.crossed, usize::MAX);
        let (plan, outputs) = self.query(select)?;
        let correlated = self.crossed < self.scopes.len();
        self.crossed = self.crossed.min(outside);
        self.subqueries += 1;
        let id = self.subqueries - 1;
        let only = || match outputs.as_slice() {
            [only] => Ok(&only.column),
            _ => Err(self
                .at(location, SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column"))),
        };
        let (question, oid, modifier) = match link.sub_link_type() {
            SubLinkType::ExistsSublink => (Question::Exists, Oid::BOOL, -1),
            SubLinkType::ExprSublink => {
                let column = only()?;
                (Question::Value, column.oid, column.modifier)
            }
            SubLinkType::ArraySublink => {
                let column = only()?;
                let array = column.oid.array().ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!("could not find array type for data type {}", column.oid.display()),
                    )
                })?;
                (Question::Array(array), array, -1)
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let left = left.unwrap_or_default();
                if left.len() < outputs.len() {
                    return self.refuse(location, SqlState::SYNTAX_ERROR, "subquery has too many columns");
                }
                if left.len() > outputs.len() {
                    return self.refuse(location, SqlState::SYNTAX_ERROR, "subquery has too few columns");
                }
                let name = strings(&link.oper_name).last().copied().unwrap_or("=");
                let mut tests = Vec::new();
                for (place, (left, output)) in left.into_iter().zip(&outputs).enumerate() {
                    let left = Typed { expr: deeper(left.expr)?, ..left };
                    let right = typed(Expr::Column { level: 0, place }, output.column.oid, location);
                    let test = self.operator(name, Some(left), right, location)?;
                    if test.oid != Oid::BOOL {
                        return self.refuse(
                            location,
                            SqlState::DATATYPE_MISMATCH,
                            format!(
                                "row comparison operator must yield type boolean, not type {}",
                                test.oid.display()
                            ),
                        );
                    }
                    tests.push(test.expr);
                }
                let test = if name == "<>" { Expr::Or(tests) } else { Expr::And(tests) };
                let all = link.sub_link_type() == SubLinkType::AllSublink;
                (Question::Test { test, all }, Oid::BOOL, -1)
            }
            _ => return Err(self.at(location, unsupported("this kind of query in an expression"))),
        };
        let expr = Expr::Subquery(Arc::new(Subquery { id, plan, question, correlated }));
        Ok(Typed { expr, oid, modifier, location })
    }
}

fn inner(node: &Option<Box<Node>>) -> Option<&NodeEnum> {
    node.as_ref().and_then(|node| node.node.as_ref())
}

/// A value that is tested several times: what it is evaluated from once, and what stands for it.
/// What is no more than a leaf stands for itself.
fn shared(value: Typed) -> (Option<Expr>, Typed) {
    let leaf =
        matches!(value.expr, Expr::Constant(_) | Expr::Parameter(_) | Expr::Column { .. } | Expr::CaseValue);
    if leaf {
        return (None, value);
    }
    (Some(value.expr), Typed { expr: Expr::CaseValue, ..value })
}

fn with(value: Option<Expr>, test: Expr) -> Expr {
    match value {
        Some(value) => Expr::With { value: Box::new(value), test: Box::new(test) },
        None => test,
    }
}

fn has_columns(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Column { .. } | Expr::Subquery(_)))
}

/// The same expression as seen from a query inside.
fn deeper(expr: Expr) -> Result<Expr, SqlError> {
    expr.rewrite(&mut |part| match part {
        Expr::Column { level, place } => Ok(Expr::Column { level: level + 1, place }),
        Expr::Subquery(subquery) if subquery.correlated => {
            Err(unsupported("a correlated query on the left of a query"))
        }
        other => Ok(other),
    })
}
