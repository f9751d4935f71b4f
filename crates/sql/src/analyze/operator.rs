//! Operators, and what is written like one: `IN`, `BETWEEN`, `ANY`, comparisons of rows.

use pg_query::NodeEnum;
use pg_query::protobuf::{AExpr, AExprKind, Node, SubLinkType};

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

/// A side of a comparison. Two rows that are written out are compared field by field, each as its
/// types say.
#[derive(Clone)]
enum Side {
    One(Typed),
    Row(Vec<Typed>, i32),
}

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
                let Some(left) = &expr.lexpr else {
                    let right = self.expression(present(&expr.rexpr)?)?;
                    return self.operator(name, None, right, location);
                };
                let left = self.side(left)?;
                match (left, inner(&expr.rexpr)) {
                    (Side::Row(left, _), Some(NodeEnum::SubLink(link)))
                        if link.sub_link_type() == SubLinkType::ExprSublink =>
                    {
                        let (row, right) = self.row_of(link, left.len(), location)?;
                        let test = self.rows(name, left, right, location)?;
                        Ok(Typed { expr: with(Some(row), test.expr), ..test })
                    }
                    (left, _) => {
                        let right = self.side(present(&expr.rexpr)?)?;
                        self.compared(name, left, right, location)
                    }
                }
            }
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => {
                let left = self.expression(present(&expr.lexpr)?)?;
                let right = self.expression(present(&expr.rexpr)?)?;
                self.quantified(name, left, right, expr.kind() == AExprKind::AexprOpAll, location)
            }
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                let negated = expr.kind() == AExprKind::AexprNotDistinct;
                let left = self.side(present(&expr.lexpr)?)?;
                let right = self.side(present(&expr.rexpr)?)?;
                if let (Side::Row(left, _), Side::Row(right, _)) = (&left, &right) {
                    self.check_rows(left, right, location)?;
                    let pairs = left.iter().zip(right);
                    let tests = pairs.map(|(left, right)| {
                        self.distinct(left.clone(), right.clone(), negated, location).map(|test| test.expr)
                    });
                    let tests = tests.collect::<Result<_, _>>()?;
                    let all = if negated { Expr::And(tests) } else { Expr::Or(tests) };
                    return Ok(typed(all, Oid::BOOL, location));
                }
                self.distinct(left.into(), right.into(), negated, location)
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
                let left = self.side(present(&expr.lexpr)?)?;
                let items = lists(&expr.rexpr).iter().map(|item| self.side(item));
                let items = items.collect::<Result<Vec<Side>, _>>()?;
                self.one_of(name, left, items, location)
            }
            AExprKind::AexprBetween
            | AExprKind::AexprNotBetween
            | AExprKind::AexprBetweenSym
            | AExprKind::AexprNotBetweenSym => {
                let [low, high] = lists(&expr.rexpr) else { return Err(functions::confused()) };
                let (whole, value) = shared(self.side(present(&expr.lexpr)?)?);
                let negated =
                    matches!(expr.kind(), AExprKind::AexprNotBetween | AExprKind::AexprNotBetweenSym);
                let symmetric =
                    matches!(expr.kind(), AExprKind::AexprBetweenSym | AExprKind::AexprNotBetweenSym);
                let (above, below) = if negated { ("<", ">") } else { (">=", "<=") };
                let low = self.side(low)?;
                let copied = if symmetric { Some(self.copy(&low)?) } else { None };
                let first = self.bound(above, &value, low, negated, location)?;
                let high = self.side(high)?;
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
                let location = leftmost([location, value.location()]);
                Ok(typed(with(whole, test), Oid::BOOL, location))
            }
            AExprKind::Undefined => Err(functions::confused()),
        }
    }

    /// A comparison with one bound of `BETWEEN`.
    fn bound(
        &mut self,
        name: &str,
        value: &Side,
        bound: Side,
        negated: bool,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let value = self.copy_of_row(value)?;
        let test = self.compared(name, value, bound, location)?;
        self.boolean(test, if negated { "OR" } else { "AND" })
    }

    /// `IN`, `NOT IN` with a list: its items are of one type if they have one in common.
    fn one_of(&mut self, name: &str, left: Side, items: Vec<Side>, location: i32) -> Outcome {
        let is_constant = |item: &Side| matches!(item, Side::One(item) if !has_columns(&item.expr));
        let constants = items.iter().filter(|item| is_constant(item)).count();
        let mut items = items;
        if let (Side::One(left), true) = (&left, constants > 1) {
            let constants = items.iter().filter(|item| is_constant(item)).cloned().map(Typed::from);
            let all: Vec<Typed> = std::iter::once(left.clone()).chain(constants).collect();
            if let Ok(oid) = self.common_type(&all, "IN")
                && all.iter().all(|item| fits_common_type(item, oid))
            {
                let mut coerced = Vec::new();
                for item in items {
                    coerced.push(match is_constant(&item) {
                        true => Side::One(self.to_common_type(item.into(), oid, "IN")?),
                        false => item,
                    });
                }
                items = coerced;
            }
        }
        let (whole, left) = shared(left);
        let mut tests = Vec::new();
        for item in items {
            let left = self.copy_of_row(&left)?;
            let test = self.compared(name, left, item, location)?;
            tests.push(self.boolean(test, if name == "<>" { "AND" } else { "OR" })?);
        }
        let test = if name == "<>" { Expr::And(tests) } else { Expr::Or(tests) };
        let location = leftmost([location, left.location()]);
        Ok(typed(with(whole, test), Oid::BOOL, location))
    }

    fn side(&mut self, node: &'a Node) -> Result<Side, SqlError> {
        match &node.node {
            Some(NodeEnum::RowExpr(row)) => Ok(Side::Row(self.expressions(&row.args)?, row.location)),
            _ => self.expression(node).map(Side::One),
        }
    }

    /// An operator between two sides.
    fn compared(&mut self, name: &str, left: Side, right: Side, location: i32) -> Outcome {
        match (left, right) {
            (Side::Row(left, _), Side::Row(right, _)) => self.rows(name, left, right, location),
            (left, right) => self.operator(name, Some(left.into()), right.into(), location),
        }
    }

    /// `IS DISTINCT FROM`
    fn distinct(&mut self, left: Typed, right: Typed, negated: bool, location: i32) -> Outcome {
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

    /// A side once more; so often that a tree which doubles itself at every level is refused.
    fn copy(&mut self, side: &Side) -> Result<Side, SqlError> {
        let size = match side {
            Side::One(value) => value.expr.size(),
            Side::Row(fields, _) => {
                let doubled = fields.iter().filter(|field| !is_leaf(&field.expr));
                doubled.map(|field| field.expr.size()).sum()
            }
        };
        self.copied = self.copied.saturating_add(size);
        if self.copied > super::COPIES_MAX {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "statement is too complex"));
        }
        Ok(side.clone())
    }

    /// A side once more that is no more than a leaf unless it is a row.
    fn copy_of_row(&mut self, side: &Side) -> Result<Side, SqlError> {
        if matches!(side, Side::Row(..)) { self.copy(side) } else { Ok(side.clone()) }
    }

    fn check_rows(&self, left: &[Typed], right: &[Typed], location: i32) -> Result<(), SqlError> {
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
        Ok(())
    }

    /// The test of a field of two rows.
    pub fn field_test(&self, test: Typed, location: i32) -> Result<Expr, SqlError> {
        if test.oid == Oid::BOOL {
            return Ok(test.expr);
        }
        let shown = test.oid.display();
        let error = format!("row comparison operator must yield type boolean, not type {shown}");
        self.refuse(location, SqlState::DATATYPE_MISMATCH, error)
    }

    /// Rows compared field by field.
    fn rows(&mut self, name: &str, left: Vec<Typed>, right: Vec<Typed>, location: i32) -> Outcome {
        self.check_rows(&left, &right, location)?;
        let mut tests = Vec::new();
        let mut fields = Vec::new();
        for (left, right) in left.into_iter().zip(right) {
            let equal = match name {
                "=" | "<>" => None,
                _ => Some((
                    self.copy(&Side::One(left.clone()))?.into(),
                    self.copy(&Side::One(right.clone()))?.into(),
                )),
            };
            let test = self.operator(name, Some(left), right, location)?;
            tests.push(self.field_test(test, location)?);
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

impl Side {
    fn location(&self) -> i32 {
        match self {
            Side::One(value) => value.location,
            Side::Row(_, location) => *location,
        }
    }
}

impl From<Side> for Typed {
    fn from(side: Side) -> Typed {
        match side {
            Side::One(value) => value,
            Side::Row(fields, location) => super::expression::row(fields, location),
        }
    }
}

/// A value that is tested several times: what it is evaluated from once, and what stands for it.
/// What is no more than a leaf stands for itself, and so does a row.
fn shared(side: Side) -> (Option<Expr>, Side) {
    match side {
        Side::One(value) if !is_leaf(&value.expr) => {
            (Some(value.expr), Side::One(Typed { expr: Expr::CaseValue, ..value }))
        }
        side => (None, side),
    }
}

fn is_leaf(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(_) | Expr::Parameter(_) | Expr::Column { .. } | Expr::CaseValue)
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
