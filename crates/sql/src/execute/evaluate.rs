//! Values of expressions.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::fuel::{Fuel, Halt};
use super::rows::{Row, bulk};
use super::scan::Fetch;
use super::subquery::Answer;
use super::trail::{Note, Trail};
use super::{Context, Question};
use crate::analyze::plan::Expr;
use crate::functions::{Body, Call, Function, Rows, Volatility, arrays, bounded, confused, sets};
use crate::stack::Stack;
use crate::types::time::{self, calendar::US_PER_DAY};
use crate::types::{Array, Datum, Oid, compare, scalar};
use crate::{SqlError, SqlState};

/// What a run has of its own.
pub struct Shared<'a> {
    /// What it asks of its surroundings.
    pub context: &'a Context<'a>,
    /// Its parameters.
    pub parameters: &'a [Datum],
    /// What queries in expressions have come to.
    pub answers: &'a RefCell<Vec<Option<Answer>>>,
    /// Bytes that it holds.
    pub held: &'a Cell<usize>,
    /// The rows that have come last in recursive queries.
    pub working: &'a RefCell<BTreeMap<usize, Arc<[Row]>>>,
    /// What a scan asks for, and what it has got.
    pub fetch: &'a RefCell<Option<Fetch>>,
    /// Where the recursion of its evaluation has begun.
    pub stack: Stack,
}

/// What an expression sees.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// What the run has.
    pub shared: &'a Shared<'a>,
    /// The row at hand.
    pub row: &'a [Datum],
    /// What the query around it sees.
    pub outer: Option<&'a Env<'a>>,
    /// The operand of the innermost case.
    pub case: Option<&'a Datum>,
    /// What the evaluation over the row has come to before a pause.
    pub trail: &'a Trail,
    /// Whether the row is one of a query that a test of its rows is evaluated over.
    pub is_tested: bool,
}

type Outcome = Result<Datum, Halt>;

impl<'a> Env<'a> {
    /// What is seen outside of all rows.
    pub fn begin(shared: &'a Shared<'a>, trail: &'a Trail) -> Env<'a> {
        Env { shared, row: &[], outer: None, case: None, trail, is_tested: false }
    }

    /// What an expression over a row sees inside of this.
    pub fn inside<'b>(&'b self, row: &'b [Datum]) -> Env<'b> {
        Env { row, outer: Some(self), case: None, ..*self }
    }

    /// What is left to work with until a pause.
    pub fn fuel(&self) -> &'a Fuel {
        self.shared.context.fuel
    }

    fn with_case<'b>(&'b self, case: &'b Datum) -> Env<'b>
    where
        'a: 'b,
    {
        Env { case: Some(case), ..*self }
    }

    /// The value of an expression.
    pub fn value(&self, expr: &Expr) -> Outcome {
        self.shared.stack.check()?;
        match expr {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Parameter(place) => self.shared.parameters.get(*place).cloned().ok_or_else(lost),
            Expr::Column { level, place } => {
                let mut env = self;
                for _ in 0..*level {
                    env = env.outer.ok_or_else(lost)?;
                }
                env.row.get(*place).cloned().ok_or_else(lost)
            }
            Expr::Aggregate { .. } | Expr::Set(_) | Expr::Window(_) => Err(lost()),
            Expr::Call { function, arguments, types, result, spread } => {
                self.call(function, arguments, types, *result, *spread)
            }
            Expr::And(items) => self.junction(items, false),
            Expr::Or(items) => self.junction(items, true),
            Expr::Not(value) => Ok(match self.value(value)? {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            }),
            Expr::IsNull(value) => Ok(Datum::Bool(match self.value(value)? {
                Datum::Record(fields) => fields.iter().all(|(_, field)| field.is_null()),
                value => value.is_null(),
            })),
            Expr::IsNotNull(value) => Ok(Datum::Bool(match self.value(value)? {
                Datum::Record(fields) => fields.iter().all(|(_, field)| !field.is_null()),
                value => !value.is_null(),
            })),
            Expr::IsTruth { value, truth, negated } => {
                let found = match self.value(value)? {
                    Datum::Bool(value) => Some(value),
                    _ => None,
                };
                Ok(Datum::Bool((found == *truth) != *negated))
            }
            Expr::Distinct { equal, negated } => {
                let (function, left, right) = self.operands(equal)?;
                let alike = match (left.is_null(), right.is_null()) {
                    (true, true) => true,
                    (false, false) => self.compared(function, &[left, right], equal)? == Datum::Bool(true),
                    _ => false,
                };
                Ok(Datum::Bool(alike == *negated))
            }
            Expr::Ordered(tests) => {
                for (place, (test, equal)) in tests.iter().enumerate() {
                    let (function, left, right) = self.operands(test)?;
                    if left.is_null() || right.is_null() {
                        return Ok(Datum::Null);
                    }
                    let values = [left, right];
                    let is_last = place + 1 == tests.len();
                    if is_last || self.compared(equal, &values, test)? != Datum::Bool(true) {
                        return self.compared(function, &values, test);
                    }
                }
                Err(lost())
            }
            Expr::NullIf(equal) => {
                let (function, left, right) = self.operands(equal)?;
                if left.is_null() || right.is_null() {
                    return Ok(left);
                }
                let equal = self.compared(function, &[left.clone(), right], equal)? == Datum::Bool(true);
                Ok(if equal { Datum::Null } else { left })
            }
            Expr::Case { operand, branches, otherwise } => {
                let operand = operand.as_ref().map(|operand| self.value(operand)).transpose()?;
                let inner = match &operand {
                    Some(operand) => self.with_case(operand),
                    None => *self,
                };
                for (condition, value) in branches {
                    if inner.value(condition)? == Datum::Bool(true) {
                        return self.value(value);
                    }
                }
                self.value(otherwise)
            }
            Expr::CaseValue => self.case.cloned().ok_or_else(lost),
            Expr::With { value, test } => {
                let value = self.value(value)?;
                self.with_case(&value).value(test)
            }
            Expr::Coalesce(items) => {
                for item in items {
                    let value = self.value(item)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Datum::Null)
            }
            Expr::Extreme { greatest, items } => {
                let mut best = Datum::Null;
                for item in items {
                    let value = self.value(item)?;
                    let order = compare::compare(&value, &best);
                    let better = if *greatest { order.is_gt() } else { order.is_lt() };
                    if !value.is_null() && (best.is_null() || better) {
                        best = value;
                    }
                }
                Ok(best)
            }
            Expr::Array { element, items, nested } => self.array(*element, items, *nested),
            Expr::Subscript { array, bounds, slice } => self.subscript(array, bounds, *slice),
            Expr::Quantified { test, array, all } => self.quantified(test, array, *all),
            Expr::Read { text, oid, modifier } => match self.value(text)? {
                Datum::Null => Ok(Datum::Null),
                Datum::Text(text) | Datum::Bpchar(text) => {
                    bounded(text.len())?;
                    self.fuel().burn_bytes(text.len());
                    Ok(scalar::parse_modified(*oid, *modifier, &text, self.shared.context.style)?)
                }
                _ => Err(lost()),
            },
            Expr::Print { value, oid } => match self.value(value)? {
                Datum::Null => Ok(Datum::Null),
                value => {
                    let mut out = String::new();
                    scalar::print(&value, *oid, self.shared.context.style, &mut out)?;
                    self.fuel().burn_bytes(out.len());
                    Ok(Datum::text(out))
                }
            },
            Expr::Fit { value, oid, modifier, explicit } => {
                Ok(scalar::fit(self.value(value)?, *oid, *modifier, *explicit)?)
            }
            Expr::Each { array, change, element } => match self.value(array)? {
                Datum::Array(array) => {
                    self.fuel().burn(array.elements.len());
                    let mut elements = Vec::with_capacity(array.elements.len());
                    for value in &array.elements {
                        elements.push(self.with_case(value).value(change)?);
                    }
                    let dimensions = array.dimensions.clone();
                    Ok(Datum::Array(Arc::new(Array { element: *element, dimensions, elements })))
                }
                _ => Ok(Datum::Null),
            },
            Expr::Row(fields) => {
                let mut values = Vec::with_capacity(fields.len());
                for (oid, field) in fields {
                    values.push((*oid, self.value(field)?));
                }
                Ok(Datum::Record(values.into()))
            }
            Expr::Field { record, place } => match self.value(record)? {
                Datum::Record(fields) => fields.get(*place).map(|(_, field)| field.clone()).ok_or_else(lost),
                _ => Ok(Datum::Null),
            },
            Expr::Clock { oid, modifier } => self.clock(*oid, *modifier),
            Expr::Subquery(subquery) => self.subquery(subquery),
        }
    }

    /// Whether a condition is true, which it is not if it is unknown.
    pub fn holds(&self, condition: &Expr) -> Result<bool, Halt> {
        Ok(self.value(condition)? == Datum::Bool(true))
    }

    /// `OR` ends at the first true, `AND` at the first false; otherwise what is unknown makes the
    /// whole unknown.
    fn junction(&self, items: &[Expr], decisive: bool) -> Outcome {
        let mut unknown = false;
        for item in items {
            match self.value(item)? {
                Datum::Bool(value) if value == decisive => return Ok(Datum::Bool(decisive)),
                Datum::Bool(_) => {}
                _ => unknown = true,
            }
        }
        Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
    }

    /// The values of arguments.
    pub fn values(&self, exprs: &[Expr]) -> Result<Row, Halt> {
        let mut values = Vec::with_capacity(exprs.len());
        for expr in exprs {
            values.push(self.value(expr)?);
        }
        Ok(values)
    }

    /// Arguments of which the last one, an array, stands for many.
    fn spread(&self, mut values: Row, types: &[Oid]) -> (Row, Vec<Oid>) {
        let mut types = types.to_vec();
        if let (Some(Datum::Array(array)), Some(_)) = (values.last().cloned(), types.pop()) {
            values.pop();
            types.extend(array.elements.iter().map(|_| array.element));
            values.extend(array.elements.iter().cloned());
        } else {
            values.pop();
        }
        (values, types)
    }

    fn call(
        &self,
        function: &'static Function,
        arguments: &[Expr],
        types: &[Oid],
        result: Oid,
        spread: bool,
    ) -> Outcome {
        let values = self.values(arguments)?;
        if function.strict && values.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        if spread {
            let (values, types) = self.spread(values, types);
            return self.apply(function, &values, &types, result);
        }
        self.apply(function, &values, types, result)
    }

    /// Calls a function, and burns what that takes.
    fn apply(&self, function: &'static Function, arguments: &[Datum], types: &[Oid], result: Oid) -> Outcome {
        let body = match function.body {
            Body::Plain(body) => body,
            Body::Session(about) => return self.ask(Question { about, arguments: arguments.to_vec() }),
            Body::Set(_) | Body::Aggregate(_) => return Err(lost()),
        };
        let context = self.shared.context;
        context.fuel.check()?;
        let bytes = arguments.iter().map(bulk).sum();
        bounded(bytes)?;
        let call = Call { arguments, types, result, context };
        let value = match function.volatility {
            Volatility::Volatile => {
                context.volatile.set(true);
                self.trail.once(|| body(&call))?
            }
            Volatility::Immutable | Volatility::Stable => body(&call)?,
        };
        context.fuel.burn_bytes(bytes + bulk(&value));
        Ok(value)
    }

    /// What the session answers, once.
    fn ask(&self, question: Question) -> Outcome {
        self.shared.context.volatile.set(true);
        let place = self.trail.enter();
        let value = match self.trail.take(place) {
            Some(Note::Value(value)) => value,
            _ => match self.shared.fetch.take() {
                Some(Fetch::Answer(value)) => value,
                _ => {
                    self.shared.fetch.replace(Some(Fetch::Asked(question)));
                    return Err(Halt::Pause);
                }
            },
        };
        self.trail.put(place, Note::Value(value.clone()));
        Ok(value)
    }

    /// The function and the values of an equality.
    fn operands(&self, equal: &Expr) -> Result<(&'static Function, Datum, Datum), Halt> {
        let Expr::Call { function, arguments, .. } = equal else { return Err(lost()) };
        let [left, right] = arguments.as_slice() else { return Err(lost()) };
        Ok((function, self.value(left)?, self.value(right)?))
    }

    /// What a function says of the values that a call has.
    fn compared(&self, function: &'static Function, values: &[Datum], call: &Expr) -> Outcome {
        let Expr::Call { types, result, .. } = call else { return Err(lost()) };
        self.apply(function, values, types, *result)
    }

    /// The rows of a function that returns a set; of any other expression a single one.
    pub fn set(&self, expr: &Expr) -> Result<Rows, Halt> {
        let Expr::Call { function, arguments, types, result, .. } = expr else {
            return Ok(sets::of(vec![self.value(expr)?]));
        };
        let Body::Set(body) = function.body else { return Ok(sets::of(vec![self.value(expr)?])) };
        let values = self.values(arguments)?;
        if function.strict && values.iter().any(Datum::is_null) {
            return Ok(sets::of(Vec::new()));
        }
        let context = self.shared.context;
        let bytes = values.iter().map(bulk).sum();
        bounded(bytes)?;
        context.fuel.burn_bytes(bytes);
        Ok(body(&Call { arguments: &values, types, result: *result, context })?)
    }

    fn array(&self, element: Oid, items: &[Expr], nested: bool) -> Outcome {
        let values = self.values(items)?;
        if !nested {
            return Ok(Array::flat(element, values));
        }
        let arrays: Vec<Datum> = values.into_iter().filter(|value| !value.is_null()).collect();
        let filled = |value: &&Datum| matches!(value, Datum::Array(array) if !array.dimensions.is_empty());
        let count = arrays.iter().filter(filled).count();
        if count != 0 && (count != arrays.len() || arrays.len() != items.len()) {
            let error = "multidimensional arrays must have array expressions with matching dimensions";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, error).into());
        }
        Ok(arrays::stacked(element, &arrays)?)
    }

    fn subscript(&self, array: &Expr, bounds: &[(Option<Expr>, Option<Expr>)], slice: bool) -> Outcome {
        let Datum::Array(array) = self.value(array)? else { return Ok(Datum::Null) };
        let mut numbers = Vec::with_capacity(bounds.len());
        for (place, (low, high)) in bounds.iter().enumerate() {
            let (length, lower) = array.dimensions.get(place).copied().unwrap_or((0, 1));
            let bound = |bound: &Option<Expr>, otherwise: i32| match bound {
                None => Ok(Some(otherwise)),
                Some(bound) => match self.value(bound)? {
                    Datum::Int4(value) => Ok(Some(value)),
                    Datum::Null => Ok(None),
                    _ => Err(lost()),
                },
            };
            let (low, high) = (bound(low, lower)?, bound(high, lower.saturating_add(length - 1))?);
            let (Some(low), Some(high)) = (low, high) else { return Ok(Datum::Null) };
            numbers.push((low, high));
        }
        if slice {
            return Ok(sliced(&array, &numbers));
        }
        let subscripts: Vec<i32> = numbers.iter().map(|(_, high)| *high).collect();
        Ok(array.at(&subscripts).cloned().unwrap_or(Datum::Null))
    }

    fn quantified(&self, test: &Expr, array: &Expr, all: bool) -> Outcome {
        let Datum::Array(array) = self.value(array)? else { return Ok(Datum::Null) };
        self.fuel().burn(array.elements.len());
        let mut unknown = false;
        for element in &array.elements {
            match self.with_case(element).value(test)? {
                Datum::Bool(value) if value != all => return Ok(Datum::Bool(!all)),
                Datum::Bool(_) => {}
                _ => unknown = true,
            }
        }
        Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
    }

    fn clock(&self, oid: Oid, modifier: i32) -> Outcome {
        let now = self.shared.context.transaction_us;
        let zone = &self.shared.context.style.zone;
        let local = time::to_local(now, zone).ok_or_else(|| time::out_of_range("timestamp"))?;
        let value = match oid {
            Oid::DATE => Datum::Date(i32::try_from(local.div_euclid(US_PER_DAY)).map_err(|_| lost())?),
            Oid::TIME => Datum::Time(local.rem_euclid(US_PER_DAY)),
            Oid::TIMETZ => Datum::TimeTz(local.rem_euclid(US_PER_DAY), -zone.at(now).0),
            Oid::TIMESTAMP => Datum::Timestamp(local),
            _ => Datum::TimestampTz(now),
        };
        Ok(scalar::fit(value, oid, modifier, false)?)
    }
}

/// The error of a plan that is not what analysis makes.
fn lost() -> Halt {
    confused().into()
}

/// The part of an array within bounds, whose lower bounds are then 1.
fn sliced(array: &Array, bounds: &[(i32, i32)]) -> Datum {
    let empty = || Array::flat(array.element, Vec::new());
    if array.dimensions.len() < bounds.len() || array.dimensions.is_empty() {
        return empty();
    }
    // Of each dimension the first place and the length of what is taken.
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for (place, (length, lower)) in array.dimensions.iter().enumerate() {
        let upper = i64::from(*lower) + i64::from(*length) - 1;
        let (low, high) =
            bounds.get(place).copied().unwrap_or((*lower, i32::try_from(upper).unwrap_or(i32::MAX)));
        let (low, high) = (i64::from(low).max(i64::from(*lower)), i64::from(high).min(upper));
        if low > high {
            return empty();
        }
        let from = usize::try_from(low - i64::from(*lower)).unwrap_or(0);
        taken.push((from, usize::try_from(high - low + 1).unwrap_or(0)));
    }
    let total: usize = taken.iter().map(|(_, length)| length).product();
    let mut elements = Vec::with_capacity(total);
    for number in 0..total {
        // The place of each in the row-major order of the whole.
        let (mut rest, mut place, mut stride) = (number, 0usize, 1usize);
        for ((from, length), (whole, _)) in taken.iter().zip(&array.dimensions).rev() {
            place += (from + rest % length) * stride;
            rest /= length;
            stride *= usize::try_from(*whole).unwrap_or(1);
        }
        elements.push(array.elements.get(place).cloned().unwrap_or(Datum::Null));
    }
    let dimensions =
        taken.iter().map(|(_, length)| (i32::try_from(*length).unwrap_or(i32::MAX), 1)).collect();
    Datum::Array(Arc::new(Array { element: array.element, dimensions, elements }))
}
