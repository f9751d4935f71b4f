//! Expressions.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AIndirection, BoolExprType, BoolTestType, BooleanTest, CaseExpr, ColumnRef, MinMaxOp, Node, NullTestType,
    SqlValueFunction, SqlValueFunctionOp as Clock, a_const,
};

use super::from::Clause;
use super::names::strings;
use super::plan::{Expr, Typed};
use super::{Analyzer, unsupported};
use crate::functions::{self, CastContext};
use crate::types::{Datum, Numeric, Oid};
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

/// An expression of a type without a modifier.
pub fn typed(expr: Expr, oid: Oid, location: i32) -> Typed {
    Typed { expr, oid, modifier: -1, location }
}

/// A row of fields.
pub fn row(fields: Vec<Typed>, location: i32) -> Typed {
    let fields = fields.into_iter().map(|field| (field.oid, field.expr)).collect();
    typed(Expr::Row(fields), Oid::RECORD, location)
}

/// The place of an expression that begins with one of these: the leftmost one that there is.
pub fn leftmost(locations: impl IntoIterator<Item = i32>) -> i32 {
    locations.into_iter().filter(|location| *location >= 0).min().unwrap_or(-1)
}

/// A node that has to be there.
pub fn present(node: &Option<Box<Node>>) -> Result<&Node, SqlError> {
    node.as_deref().ok_or_else(functions::confused)
}

impl<'a> Analyzer<'a> {
    /// An expression.
    pub fn expression(&mut self, node: &'a Node) -> Outcome {
        self.deeper(|analyzer| analyzer.expression_here(node))
    }

    /// Expressions.
    pub fn expressions(&mut self, nodes: &'a [Node]) -> Result<Vec<Typed>, SqlError> {
        nodes.iter().map(|node| self.expression(node)).collect()
    }

    fn expression_here(&mut self, node: &'a Node) -> Outcome {
        match &node.node {
            Some(NodeEnum::AConst(constant)) => self.constant(constant),
            Some(NodeEnum::ColumnRef(column)) => self.column(column),
            Some(NodeEnum::ParamRef(parameter)) => {
                if self.scopes.last().is_some_and(|scope| scope.clause.refuses_queries().is_some()) {
                    let error = format!("there is no parameter ${}", parameter.number);
                    return self.refuse(parameter.location, SqlState::UNDEFINED_PARAMETER, error);
                }
                let (place, oid) = self.parameter(parameter.number, parameter.location)?;
                Ok(typed(Expr::Parameter(place), oid, parameter.location))
            }
            Some(NodeEnum::TypeCast(cast)) => {
                let name = cast.type_name.as_ref().ok_or_else(functions::confused)?;
                let (oid, modifier) = self.type_name(name)?;
                self.need_objects_for(oid)?;
                let arg = present(&cast.arg)?;
                let value = match &arg.node {
                    // The elements of an array are cast one by one.
                    Some(NodeEnum::AArrayExpr(array)) if oid.is_array() => {
                        self.array(array, oid.element())?
                    }
                    _ => self.expression(arg)?,
                };
                let location = if cast.location >= 0 { cast.location } else { name.location };
                self.cast(value, oid, modifier, location)
            }
            Some(NodeEnum::AExpr(expr)) => self.operator_expression(expr),
            Some(NodeEnum::BoolExpr(expr)) => {
                let word = match expr.boolop() {
                    BoolExprType::OrExpr => "OR",
                    BoolExprType::NotExpr => "NOT",
                    _ => "AND",
                };
                let (mut items, mut location) = (Vec::new(), expr.location);
                for arg in &expr.args {
                    let item = self.expression(arg)?;
                    location = leftmost([location, item.location]);
                    items.push(self.boolean(item, word)?);
                }
                let expr_of = match (expr.boolop(), items.pop()) {
                    (BoolExprType::NotExpr, Some(only)) => Expr::Not(Box::new(only)),
                    (BoolExprType::OrExpr, last) => Expr::Or(items.into_iter().chain(last).collect()),
                    (_, last) => Expr::And(items.into_iter().chain(last).collect()),
                };
                Ok(typed(expr_of, Oid::BOOL, location))
            }
            Some(NodeEnum::FuncCall(call)) => self.call(call),
            Some(NodeEnum::CaseExpr(case)) => self.case(case),
            Some(NodeEnum::CoalesceExpr(coalesce)) => {
                let sets = self.sets();
                let (items, oid) = self.alike(&coalesce.args, "COALESCE")?;
                self.no_sets_since(sets, "COALESCE")?;
                Ok(typed(Expr::Coalesce(items), oid, coalesce.location))
            }
            Some(NodeEnum::MinMaxExpr(extreme)) => {
                let greatest = extreme.op() == MinMaxOp::IsGreatest;
                let (items, oid) = self.alike(&extreme.args, if greatest { "GREATEST" } else { "LEAST" })?;
                Ok(typed(Expr::Extreme { greatest, items }, oid, extreme.location))
            }
            Some(NodeEnum::NullTest(test)) => {
                let value = self.expression(present(&test.arg)?)?;
                let location = leftmost([test.location, value.location]);
                let value = Box::new(value.expr);
                let expr = match test.nulltesttype() {
                    NullTestType::IsNotNull => Expr::IsNotNull(value),
                    _ => Expr::IsNull(value),
                };
                Ok(typed(expr, Oid::BOOL, location))
            }
            Some(NodeEnum::BooleanTest(test)) => self.truth(test),
            Some(NodeEnum::AArrayExpr(array)) => self.array(array, None),
            Some(NodeEnum::AIndirection(indirection)) => self.indirection(indirection),
            Some(NodeEnum::RowExpr(row)) => {
                self.expressions(&row.args).map(|fields| self::row(fields, row.location))
            }
            Some(NodeEnum::SqlvalueFunction(value)) => self.clock(value),
            Some(NodeEnum::CollateClause(collate)) => {
                let names = strings(&collate.collname);
                if !matches!(names.last(), Some(&("C" | "POSIX" | "default" | "ucs_basic"))) {
                    return self.refuse(
                        collate.location,
                        SqlState::UNDEFINED_OBJECT,
                        format!("collation \"{}\" for encoding \"UTF8\" does not exist", names.join(".")),
                    );
                }
                let value = self.expression(present(&collate.arg)?)?;
                let value = self.settled(value)?;
                if value.oid.category() != b'S' && !value.oid.is_array() {
                    return self.refuse(
                        collate.location,
                        SqlState::DATATYPE_MISMATCH,
                        format!("collations are not supported by type {}", value.oid.display()),
                    );
                }
                Ok(value)
            }
            Some(NodeEnum::SubLink(link)) => self.sublink(link),
            Some(NodeEnum::SetToDefault(default)) => self.refuse(
                default.location,
                SqlState::SYNTAX_ERROR,
                "DEFAULT is not allowed in this context",
            ),
            Some(NodeEnum::GroupingFunc(_)) => Err(unsupported("GROUPING")),
            _ => Err(unsupported("this kind of expression")),
        }
    }

    fn constant(&mut self, constant: &pg_query::protobuf::AConst) -> Outcome {
        let location = constant.location;
        if constant.isnull {
            return Ok(typed(Expr::Constant(Datum::Null), Oid::UNKNOWN, location));
        }
        let (value, oid) = match &constant.val {
            // A zero is left out on the way.
            None => (Datum::Int4(0), Oid::INT4),
            Some(a_const::Val::Ival(value)) => (Datum::Int4(value.ival), Oid::INT4),
            Some(a_const::Val::Fval(value)) => match value.fval.parse::<i64>() {
                Ok(value) => match i32::try_from(value) {
                    Ok(value) => (Datum::Int4(value), Oid::INT4),
                    Err(_) => (Datum::Int8(value), Oid::INT8),
                },
                Err(_) => {
                    let number = Numeric::parse(&value.fval).map_err(|error| self.at(location, error))?;
                    (Datum::Numeric(number), Oid::NUMERIC)
                }
            },
            Some(a_const::Val::Boolval(value)) => (Datum::Bool(value.boolval), Oid::BOOL),
            Some(a_const::Val::Sval(value)) => (Datum::text(value.sval.as_str()), Oid::UNKNOWN),
            Some(a_const::Val::Bsval(_)) => return Err(self.at(location, unsupported("type bit"))),
        };
        Ok(typed(Expr::Constant(value), oid, location))
    }

    fn column(&mut self, column: &ColumnRef) -> Outcome {
        let names = strings(&column.fields);
        if names.len() < column.fields.len() {
            return self.refuse(
                column.location,
                SqlState::FEATURE_NOT_SUPPORTED,
                "row expansion via \"*\" is not supported here",
            );
        }
        let (table, name) = match names.as_slice() {
            [name] => (None, *name),
            [.., table, name] => (Some(*table), *name),
            [] => return Err(functions::confused()),
        };
        let location = column.location;
        if self.scopes.last().is_some_and(|scope| scope.clause == Clause::Default) {
            let error = "cannot use column reference in DEFAULT expression";
            return self.refuse(location, SqlState::FEATURE_NOT_SUPPORTED, error);
        }
        for (level, scope) in self.scopes.iter().rev().enumerate() {
            match scope.find(table, name) {
                Ok(Some(place)) => {
                    let Some(column) = scope.columns.get(place) else { return Err(functions::confused()) };
                    let (oid, modifier) = (column.oid, column.modifier);
                    let scope = self.scopes.len() - 1 - level;
                    self.crossed = self.crossed.min(scope);
                    self.named.column(scope, place, location);
                    return Ok(Typed { expr: Expr::Column { level, place }, oid, modifier, location });
                }
                Ok(None) => {}
                Err(error) => return Err(self.at(column.location, error)),
            }
        }
        if let Some(table) = table {
            if !self.scopes.iter().any(|scope| scope.has_table(table)) {
                return self.refuse(
                    column.location,
                    SqlState::UNDEFINED_TABLE,
                    format!("missing FROM-clause entry for table \"{table}\""),
                );
            }
            return self.refuse(
                column.location,
                SqlState::UNDEFINED_COLUMN,
                format!("column {table}.{name} does not exist"),
            );
        }
        self.refuse(column.location, SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
    }

    /// Expressions made of their common type.
    fn alike(&mut self, nodes: &'a [Node], what: &str) -> Result<(Vec<Expr>, Oid), SqlError> {
        let items = self.expressions(nodes)?;
        let oid = self.common_type(&items, what)?;
        let mut out = Vec::new();
        for item in items {
            out.push(self.to_common_type(item, oid, what)?.expr);
        }
        Ok((out, oid))
    }

    /// How many sets have been found in the query at hand.
    fn sets(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.sets.len())
    }

    /// Refuses sets that were found since there were so many: what may not be evaluated has none.
    fn no_sets_since(&self, count: usize, what: &str) -> Result<(), SqlError> {
        let Some(location) = self.scopes.last().and_then(|scope| scope.set_places.get(count)) else {
            return Ok(());
        };
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("set-returning functions are not allowed in {what}"),
        );
        let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
        Err(self.at(*location, error.hint(hint)))
    }

    fn case(&mut self, case: &'a CaseExpr) -> Outcome {
        let sets = self.sets();
        let operand = match &case.arg {
            Some(arg) => {
                let operand = self.expression(arg)?;
                Some(self.settled(operand)?)
            }
            None => None,
        };
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for arm in &case.args {
            let Some(NodeEnum::CaseWhen(when)) = &arm.node else { return Err(functions::confused()) };
            let condition = self.expression(present(&when.expr)?)?;
            let condition = match &operand {
                None => condition,
                Some(operand) => {
                    let value = typed(Expr::CaseValue, operand.oid, case.location);
                    self.operator("=", Some(value), condition, when.location)?
                }
            };
            conditions.push(self.boolean(condition, "CASE/WHEN")?);
            values.push(self.expression(present(&when.result)?)?);
        }
        // The default decides first, as in PostgreSQL.
        let otherwise = match &case.defresult {
            Some(result) => self.expression(result)?,
            None => typed(Expr::Constant(Datum::Null), Oid::UNKNOWN, -1),
        };
        values.insert(0, otherwise);
        let oid = self.common_type(&values, "CASE")?;
        let mut exprs = Vec::new();
        for (place, value) in values.into_iter().enumerate() {
            let what = if place == 0 { "CASE/ELSE" } else { "CASE/WHEN" };
            exprs.push(self.to_common_type(value, oid, what)?.expr);
        }
        self.no_sets_since(sets, "CASE")?;
        let otherwise = Box::new(exprs.remove(0));
        let branches = conditions.into_iter().zip(exprs).collect();
        let operand = operand.map(|operand| Box::new(operand.expr));
        Ok(typed(Expr::Case { operand, branches, otherwise }, oid, case.location))
    }

    fn truth(&mut self, test: &'a BooleanTest) -> Outcome {
        let (truth, negated, word) = match test.booltesttype() {
            BoolTestType::IsTrue | BoolTestType::Undefined => (Some(true), false, "IS TRUE"),
            BoolTestType::IsNotTrue => (Some(true), true, "IS NOT TRUE"),
            BoolTestType::IsFalse => (Some(false), false, "IS FALSE"),
            BoolTestType::IsNotFalse => (Some(false), true, "IS NOT FALSE"),
            BoolTestType::IsUnknown => (None, false, "IS UNKNOWN"),
            BoolTestType::IsNotUnknown => (None, true, "IS NOT UNKNOWN"),
        };
        let value = self.expression(present(&test.arg)?)?;
        let location = leftmost([test.location, value.location]);
        let value = Box::new(self.boolean(value, word)?);
        Ok(typed(Expr::IsTruth { value, truth, negated }, Oid::BOOL, location))
    }

    /// An array; `wanted` is what a cast around it wants its elements to be.
    fn array(&mut self, array: &'a pg_query::protobuf::AArrayExpr, wanted: Option<Oid>) -> Outcome {
        let mut items = Vec::new();
        let mut nested = false;
        for node in &array.elements {
            let item = match &node.node {
                Some(NodeEnum::AArrayExpr(inner)) => {
                    nested = true;
                    self.deeper(|analyzer| analyzer.array(inner, wanted))?
                }
                _ => self.expression(node)?,
            };
            nested |= item.oid.is_array();
            items.push(item);
        }
        let oid = match wanted {
            Some(element) if nested => element.array().ok_or_else(functions::confused)?,
            Some(element) => element,
            None if items.is_empty() => {
                return Err(self.at(
                    array.location,
                    SqlError::new(SqlState::INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                        .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."),
                ));
            }
            None => self.common_type(&items, "ARRAY")?,
        };
        let mut exprs = Vec::new();
        for item in items {
            let location = item.location;
            exprs.push(match wanted {
                Some(_) => self.cast(item, oid, -1, location)?.expr,
                None => self.to_common_type(item, oid, "ARRAY")?.expr,
            });
        }
        let element = if nested { oid.element().unwrap_or(oid) } else { oid };
        let of_arrays = element.array().ok_or_else(|| {
            self.at(
                array.location,
                SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("could not find array type for data type {}", oid.display()),
                ),
            )
        })?;
        Ok(typed(Expr::Array { element, items: exprs, nested }, of_arrays, array.location))
    }

    fn indirection(&mut self, indirection: &'a AIndirection) -> Outcome {
        let base = self.expression(present(&indirection.arg)?)?;
        let mut base = self.settled(base)?;
        let mut steps = indirection.indirection.as_slice();
        while let Some((step, rest)) = steps.split_first()
            && let Some(NodeEnum::String(name)) = &step.node
        {
            base = self.field(base, &name.sval)?;
            steps = rest;
        }
        if steps.is_empty() {
            return Ok(base);
        }
        let mut bounds = Vec::new();
        let mut slice = false;
        for step in steps {
            let Some(NodeEnum::AIndices(indices)) = &step.node else {
                return Err(unsupported("a field of a composite value"));
            };
            slice |= indices.is_slice;
            let mut bound = |node: &'a Option<Box<Node>>| -> Result<Option<Expr>, SqlError> {
                let Some(node) = node else { return Ok(None) };
                let item = self.expression(node)?;
                let cast = match &node.node {
                    Some(NodeEnum::TypeCast(cast)) => cast.type_name.as_ref(),
                    _ => None,
                };
                let location = leftmost(cast.map(|name| name.location).into_iter().chain([item.location]));
                let oid = item.oid;
                if oid != Oid::UNKNOWN
                    && !super::coerce::can_coerce(&[oid], &[Oid::INT4], CastContext::Assignment)
                {
                    return self.refuse(
                        location,
                        SqlState::DATATYPE_MISMATCH,
                        "array subscript must have type integer",
                    );
                }
                Ok(Some(self.coerce(item, Oid::INT4, -1, CastContext::Assignment)?.expr))
            };
            let (low, high) = (bound(&indices.lidx)?, bound(&indices.uidx)?);
            bounds.push((low, high));
        }
        let Some(element) = base.oid.element() else {
            return self.refuse(
                base.location,
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    base.oid.display()
                ),
            );
        };
        if bounds.len() > crate::types::array::DIMENSIONS_MAX {
            return Err(crate::types::array::too_many_dimensions(bounds.len()));
        }
        if slice {
            // A subscript beside slices is a slice from 1.
            for (step, bound) in steps.iter().zip(&mut bounds) {
                if let Some(NodeEnum::AIndices(indices)) = &step.node
                    && !indices.is_slice
                {
                    bound.0 = Some(Expr::Constant(Datum::Int4(1)));
                }
            }
        }
        let oid = if slice { base.oid } else { element };
        let expr = Expr::Subscript { array: Box::new(base.expr), bounds, slice };
        Ok(Typed { expr, oid, modifier: base.modifier, location: base.location })
    }

    /// A field of a row.
    fn field(&mut self, record: Typed, name: &str) -> Outcome {
        let location = record.location;
        let Some(fields) = record.oid.fields() else {
            let (state, error) = match record.oid {
                Oid::RECORD => (
                    SqlState::UNDEFINED_COLUMN,
                    format!("could not identify column \"{name}\" in record data type"),
                ),
                other => (
                    SqlState::WRONG_OBJECT_TYPE,
                    format!(
                        "column notation .{name} applied to type {}, which is not a composite type",
                        other.display()
                    ),
                ),
            };
            return self.refuse(location, state, error);
        };
        match fields.iter().position(|(field, _)| *field == name) {
            Some(place) => {
                let oid = fields.get(place).map_or(Oid::UNKNOWN, |(_, oid)| *oid);
                Ok(typed(Expr::Field { record: Box::new(record.expr), place }, oid, location))
            }
            None => {
                let error = format!("could not identify column \"{name}\" in record data type");
                self.refuse(location, SqlState::UNDEFINED_COLUMN, error)
            }
        }
    }

    fn clock(&mut self, value: &SqlValueFunction) -> Outcome {
        let function = |oid: u32| -> Result<Typed, SqlError> {
            let function = functions::function(oid).ok_or_else(functions::confused)?;
            let result = function.result;
            let call =
                Expr::Call { function, arguments: Vec::new(), types: Vec::new(), result, spread: false };
            Ok(typed(call, result, value.location))
        };
        let oid = match value.op() {
            Clock::SvfopCurrentDate => Oid::DATE,
            Clock::SvfopCurrentTime | Clock::SvfopCurrentTimeN => Oid::TIMETZ,
            Clock::SvfopCurrentTimestamp | Clock::SvfopCurrentTimestampN => Oid::TIMESTAMPTZ,
            Clock::SvfopLocaltime | Clock::SvfopLocaltimeN => Oid::TIME,
            Clock::SvfopLocaltimestamp | Clock::SvfopLocaltimestampN => Oid::TIMESTAMP,
            // current_user, current_database(), current_schema()
            Clock::SvfopCurrentCatalog => return function(861),
            Clock::SvfopCurrentSchema => return function(1402),
            Clock::SvfopSessionUser => return function(746),
            _ => return function(745),
        };
        let with_digits = matches!(
            value.op(),
            Clock::SvfopCurrentTimeN
                | Clock::SvfopCurrentTimestampN
                | Clock::SvfopLocaltimeN
                | Clock::SvfopLocaltimestampN
        );
        let modifier = if with_digits { value.typmod.clamp(0, 6) } else { -1 };
        Ok(Typed { expr: Expr::Clock { oid, modifier }, oid, modifier, location: value.location })
    }
}

/// What a node has, if it has something.
pub fn inner(node: &Option<Box<Node>>) -> Option<&NodeEnum> {
    node.as_ref().and_then(|node| node.node.as_ref())
}
