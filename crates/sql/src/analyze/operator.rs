//! Operators, and what is written like one: `IN`, `BETWEEN`, `ANY`, comparisons of rows.

use pg_query::NodeEnum;
use pg_query::protobuf::{AExpr, AExprKind, Node, SubLink, SubLinkType};

use super::Analyzer;
use super::coerce::fits_common_type;
use super::expression::{leftmost, present, typed};
use super::names::strings;
use super::plan::{Expr, Typed};
use super::resolve;
use crate::functions::{self, CastContext, Function};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

/// A side of a comparison. Two rows that are written out are compared field by field, each as its
/// types say.
#[derive(Clone)]
enum Side<'a> {
    /// Any value.
    One(Typed),
    /// The fields of a row, and its place in the text.
    Row(Vec<Typed>, i32),
    /// A query for a value, or for a row if the other side is one.
    Query(&'a SubLink),
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
                let right = self.side_or_query(present(&expr.rexpr)?)?;
                self.compared(name, left, right, location)
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
                match (left, right) {
                    (Side::Row(left, _), Side::Row(right, _)) => {
                        self.distinct_rows(left, right, negated, location)
                    }
                    (left, right) => {
                        let (left, right) = (self.single(left)?, self.single(right)?);
                        self.distinct(left, right, negated, location)
                    }
                }
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
                let items = items.collect::<Result<Vec<Side<'a>>, _>>()?;
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
                let low = self.side_or_query(low)?;
                let copied = if symmetric { Some(self.copy(&low)?) } else { None };
                let first = self.bound(above, &value, low, negated, location)?;
                let high = self.side_or_query(high)?;
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
        value: &Side<'a>,
        bound: Side<'a>,
        negated: bool,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let value = self.copy_of_row(value)?;
        let (value, bound) = (self.known(value), self.known(bound));
        let test = self.compared(name, value, bound, location)?;
        self.boolean(test, if negated { "OR" } else { "AND" })
    }

    /// `IN`, `NOT IN` with a list: its items are of one type if they have one in common.
    fn one_of(&mut self, name: &str, left: Side<'a>, items: Vec<Side<'a>>, location: i32) -> Outcome {
        let mut items = items;
        if let Side::One(left) = &left {
            let mut constants: Vec<&mut Side<'a>> =
                items.iter_mut().filter(|item| item.is_constant()).collect();
            let mut all = vec![left.clone()];
            for item in &constants {
                all.push(self.single(Side::clone(item))?);
            }
            if constants.len() > 1
                && let Ok(oid) = self.common_type(&all, "IN")
                && all.iter().all(|item| fits_common_type(item, oid))
            {
                for (item, value) in constants.iter_mut().zip(all.into_iter().skip(1)) {
                    **item = Side::One(self.to_common_type(value, oid, "IN")?);
                }
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

    /// A side whose query, if it is one, is for a value.
    fn side(&mut self, node: &'a Node) -> Result<Side<'a>, SqlError> {
        match &node.node {
            Some(NodeEnum::RowExpr(row)) => Ok(Side::Row(self.expressions(&row.args)?, row.location)),
            _ => self.expression(node).map(Side::One),
        }
    }

    /// A side whose query is looked at when the other side is known.
    fn side_or_query(&mut self, node: &'a Node) -> Result<Side<'a>, SqlError> {
        match &node.node {
            Some(NodeEnum::SubLink(link)) if link.sub_link_type() == SubLinkType::ExprSublink => {
                Ok(Side::Query(link))
            }
            _ => self.side(node),
        }
    }

    /// A side as one value.
    fn single(&mut self, side: Side<'a>) -> Outcome {
        match side {
            Side::One(value) => Ok(value),
            Side::Row(fields, location) => Ok(super::expression::row(fields, location)),
            Side::Query(link) => self.sublink(link),
        }
    }

    /// A side with what is known by now of the types of parameters.
    fn known(&self, side: Side<'a>) -> Side<'a> {
        let known = |value: Typed| match value.expr {
            Expr::Parameter(place) if value.oid == Oid::UNKNOWN => {
                Typed { oid: self.parameters.get(place).copied().unwrap_or(Oid::UNKNOWN), ..value }
            }
            _ => value,
        };
        match side {
            Side::One(value) => Side::One(known(value)),
            Side::Row(fields, location) => Side::Row(fields.into_iter().map(known).collect(), location),
            query => query,
        }
    }

    /// An operator between two sides.
    fn compared(&mut self, name: &str, left: Side<'a>, right: Side<'a>, location: i32) -> Outcome {
        match (left, right) {
            (Side::Row(left, _), Side::Row(right, _)) => self.rows(name, left, right, location),
            (Side::Row(left, _), Side::Query(link)) => {
                let (row, right) = self.row_of(link, left.len(), location)?;
                let test = self.rows(name, left, right, location)?;
                Ok(Typed { expr: with(Some(row), test.expr), ..test })
            }
            (left, right) => {
                let (left, right) = (self.single(left)?, self.single(right)?);
                self.operator(name, Some(left), right, location)
            }
        }
    }

    /// `IS DISTINCT FROM` between rows that are written out.
    fn distinct_rows(
        &mut self,
        left: Vec<Typed>,
        right: Vec<Typed>,
        negated: bool,
        location: i32,
    ) -> Outcome {
        self.check_widths(&left, &right, location)?;
        let mut tests = Vec::new();
        for (left, right) in left.into_iter().zip(right) {
            tests.push(self.distinct_values(left, right, negated, location)?.expr);
        }
        let all = if negated { Expr::And(tests) } else { Expr::Or(tests) };
        Ok(typed(all, Oid::BOOL, location))
    }

    /// `IS DISTINCT FROM`
    fn distinct(&mut self, left: Typed, right: Typed, negated: bool, location: i32) -> Outcome {
        let null = |item: &Typed| item.oid == Oid::UNKNOWN && item.expr == Expr::Constant(Datum::Null);
        let value = match (null(&left), null(&right)) {
            (_, true) => &left,
            (true, _) => &right,
            _ => return self.distinct_values(left, right, negated, location),
        };
        if value.oid == Oid::RECORD {
            // A row of NULLs is none, though it `IS NULL`.
            return self.distinct_values(left, right, negated, location);
        }
        let value = Box::new(value.expr.clone());
        let test = if negated { Expr::IsNull(value) } else { Expr::IsNotNull(value) };
        Ok(typed(test, Oid::BOOL, location))
    }

    /// `IS DISTINCT FROM` by an equality.
    fn distinct_values(&mut self, left: Typed, right: Typed, negated: bool, location: i32) -> Outcome {
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
    fn copy(&mut self, side: &Side<'a>) -> Result<Side<'a>, SqlError> {
        let size = match side {
            Side::Query(_) => 1,
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
    fn copy_of_row(&mut self, side: &Side<'a>) -> Result<Side<'a>, SqlError> {
        if matches!(side, Side::Row(..)) { self.copy(side) } else { Ok(side.clone()) }
    }

    /// Refuses rows that have different numbers of fields.
    fn check_widths(&self, left: &[Typed], right: &[Typed], location: i32) -> Result<(), SqlError> {
        if left.len() != right.len() {
            return self.refuse(
                location,
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            );
        }
        Ok(())
    }

    /// The test of a field of two rows.
    fn field_test(&self, test: &Typed, location: i32) -> Result<(), SqlError> {
        let error = match test.oid {
            Oid::BOOL if !test.expr.any(&|part| matches!(part, Expr::Set(_))) => return Ok(()),
            Oid::BOOL => "row comparison operator must not return a set".to_owned(),
            other => {
                let shown = other.display();
                format!("row comparison operator must yield type boolean, not type {shown}")
            }
        };
        self.refuse(location, SqlState::DATATYPE_MISMATCH, error)
    }

    /// Rows compared field by field.
    pub fn rows(&mut self, name: &str, left: Vec<Typed>, right: Vec<Typed>, location: i32) -> Outcome {
        self.check_widths(&left, &right, location)?;
        if left.is_empty() {
            let error = "cannot compare rows of zero length";
            return self.refuse(location, SqlState::FEATURE_NOT_SUPPORTED, error);
        }
        let mut tests = Vec::new();
        for (left, right) in left.into_iter().zip(right) {
            let test = self.operator(name, Some(left), right, location)?;
            self.field_test(&test, location)?;
            tests.push(test.expr);
        }
        let expr = match name {
            _ if tests.len() == 1 => tests.pop().ok_or_else(functions::confused)?,
            "=" => Expr::And(tests),
            "<>" => Expr::Or(tests),
            "<" | "<=" | ">" | ">=" => {
                let ordered = tests.into_iter().map(|test| equality_of(&test).map(|equal| (test, equal)));
                Expr::Ordered(ordered.collect::<Result<_, _>>()?)
            }
            _ => {
                let error = format!("could not determine interpretation of row comparison operator {name}");
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error);
                let hint = "Row comparison operators must be associated with btree operator families.";
                return Err(self.at(location, error.hint(hint)));
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

impl Side<'_> {
    fn location(&self) -> i32 {
        match self {
            Side::One(value) => value.location,
            Side::Row(_, location) => *location,
            Side::Query(link) => link.location,
        }
    }

    /// Whether it is the same for every row of the query.
    fn is_constant(&self) -> bool {
        match self {
            Side::One(value) => !value.expr.has_columns(),
            Side::Row(fields, _) => !fields.iter().any(|field| field.expr.has_columns()),
            Side::Query(_) => false,
        }
    }
}

/// The equality between what a comparison compares.
fn equality_of(test: &Expr) -> Result<&'static Function, SqlError> {
    match test {
        Expr::Call { types, .. } => match types.as_slice() {
            [left, right] => Ok(resolve::operator("=", Some(*left), *right)?.function),
            _ => Err(functions::confused()),
        },
        _ => Err(functions::confused()),
    }
}

/// A value that is tested several times: what it is evaluated from once, and what stands for it.
/// What is no more than a leaf stands for itself, and so does a row.
fn shared(side: Side<'_>) -> (Option<Expr>, Side<'_>) {
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
