//! Operators, and what is written like one: `IN`, `BETWEEN`, `ANY`, comparisons of rows.

use pg_query::NodeEnum;
use pg_query::protobuf::{AExpr, AExprKind, Node};

use super::Analyzer;
use super::coerce::fits_common_type;
use super::expression::{inner, leftmost, present, typed};
use super::names::strings;
use super::plan::{Expr, Typed};
use super::resolve;
use crate::functions::{self, CastContext};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

impl<'a> Analyzer<'a> {
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
            if let Ok(oid) = self.common_type(&all, "IN")
                && all.iter().all(|item| fits_common_type(item, oid))
            {
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
            let equal = match name {
                "=" | "<>" => None,
                _ => Some((self.copy(&left)?, self.copy(&right)?)),
            };
            let test = self.operator(name, Some(left), right, location)?;
            tests.push(self.boolean(test, "row comparison")?);
            if let Some((left, right)) = equal {
                fields.push(self.operator("=", Some(left), right, location)?.expr);
            }
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
