//! Constants of a plan evaluated once, before it runs.
//!
//! What can be seen of it is what PostgreSQL's planner shows as well: a strict function with a
//! literal NULL among its arguments is NULL, whatever the others would come to; a branch that a
//! constant rules out is gone; a constant that fails (`1/0`) fails the statement even if no row
//! gets there, though not before it is run: it can be prepared.
//!
//! Analysis does not pause. When constants have burned the fuel that there is for them, those that
//! are left are evaluated as the statement runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::plan::{Expr, Plan, Question, Subquery};
use super::{needed, paths, sorted};
use crate::SqlError;
use crate::execute::evaluate::{Env, Shared};
use crate::execute::fuel::Halt;
use crate::execute::trail::Trail;
use crate::functions::{Body, Function, Volatility};
use crate::types::{Datum, Oid};

/// `textanycat` and `anytextcat`.
const PRINTING: [u32; 2] = [2003, 2004];

/// Folds the expressions of a plan.
pub struct Folder<'a> {
    shared: &'a Shared<'a>,
    /// The first failure.
    pub failure: Option<SqlError>,
    /// Queries in expressions that are done.
    subqueries: BTreeMap<usize, Arc<Subquery>>,
}

impl<'a> Folder<'a> {
    /// One that evaluates with this.
    pub fn new(shared: &'a Shared<'a>) -> Folder<'a> {
        Folder { shared, failure: None, subqueries: BTreeMap::new() }
    }

    /// A plan with constants folded.
    pub fn plan(&mut self, plan: Plan) -> Plan {
        let boxed = |folder: &mut Self, plan: Box<Plan>| Box::new(folder.plan(*plan));
        match plan {
            Plan::Values(rows) => Plan::Values(rows.into_iter().map(|row| self.list(row)).collect()),
            Plan::Function { call, ordinality, fields } => {
                Plan::Function { call: self.expr(call), ordinality, fields }
            }
            Plan::Scan(scan) => Plan::Scan(scan),
            Plan::Catalog(reading) => Plan::Catalog(reading),
            Plan::Filter { input, condition } => paths::filtered(self.plan(*input), self.expr(condition)),
            Plan::Project { input, columns } => {
                let (mut input, columns) = (boxed(self, input), self.list(columns));
                needed::only(&mut input, &columns.iter().collect::<Vec<_>>());
                Plan::Project { input, columns }
            }
            Plan::Sets { input, sets } => Plan::Sets { input: boxed(self, input), sets: self.list(sets) },
            Plan::Join { left, right, width, condition, outer, lateral, .. } => paths::joined(Plan::Join {
                left: boxed(self, left),
                right: boxed(self, right),
                width,
                condition: condition.map(|condition| self.expr(condition)),
                outer,
                lateral,
                keys: Vec::new(),
            }),
            Plan::Group { input, keys, mut aggregates } => {
                for aggregate in &mut aggregates {
                    aggregate.arguments = self.list(std::mem::take(&mut aggregate.arguments));
                    aggregate.filter = aggregate.filter.take().map(|filter| self.expr(filter));
                }
                sorted::grouped(self.plan(*input), self.list(keys), aggregates)
            }
            Plan::Recursive { id, base, step, all } => {
                Plan::Recursive { id, base: boxed(self, base), step: boxed(self, step), all }
            }
            Plan::Working { id, width } => Plan::Working { id, width },
            Plan::Numbered { input, keys } => Plan::Numbered { input: boxed(self, input), keys },
            Plan::Sort { input, keys } => sorted::sorted(self.plan(*input), keys, false),
            Plan::Lock { input, tables, wait } => Plan::Lock { input: boxed(self, input), tables, wait },
            Plan::Distinct { input, keys } => Plan::Distinct { input: boxed(self, input), keys },
            Plan::Limit { input, count, skip, ties } => Plan::Limit {
                input: Box::new(self.first_of(*input, count.is_some())),
                count: count.map(|count| self.expr(count)),
                skip: skip.map(|skip| self.expr(skip)),
                ties,
            },
            Plan::Combined { left, right, how, all } => {
                Plan::Combined { left: boxed(self, left), right: boxed(self, right), how, all }
            }
        }
    }

    /// A plan of which perhaps only the first rows are asked for.
    fn first_of(&mut self, plan: Plan, is_limited: bool) -> Plan {
        match plan {
            Plan::Sort { input, keys } => sorted::sorted(self.plan(*input), keys, is_limited),
            Plan::Lock { input, tables, wait } => {
                Plan::Lock { input: Box::new(self.first_of(*input, is_limited)), tables, wait }
            }
            other => self.plan(other),
        }
    }

    fn list(&mut self, exprs: Vec<Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn expr(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::And(items) => self.junction(items, false),
            Expr::Or(items) => self.junction(items, true),
            Expr::Case { operand, branches, otherwise } => self.case(operand, branches, *otherwise),
            Expr::Coalesce(items) => {
                let mut kept = Vec::new();
                for item in items {
                    match self.expr(item) {
                        Expr::Constant(Datum::Null) => {}
                        value @ Expr::Constant(_) => {
                            kept.push(value);
                            break;
                        }
                        other => kept.push(other),
                    }
                }
                match kept.len() {
                    0 => Expr::Constant(Datum::Null),
                    1 => kept.pop().unwrap_or(Expr::Constant(Datum::Null)),
                    _ => Expr::Coalesce(kept),
                }
            }
            Expr::Subquery(subquery) => {
                if let Some(known) = self.subqueries.get(&subquery.id) {
                    return Expr::Subquery(known.clone());
                }
                let mut folded = Subquery::clone(&subquery);
                folded.plan = self.plan(folded.plan);
                if let Question::Test { test, .. } = &mut folded.question {
                    *test = self.expr(std::mem::replace(test, Expr::CaseValue));
                }
                let folded = Arc::new(folded);
                self.subqueries.insert(folded.id, folded.clone());
                Expr::Subquery(folded)
            }
            Expr::With { value, test } => self.with(*value, *test),
            Expr::Call { function, arguments, types, result, spread } => {
                let arguments = self.list(arguments);
                let null = arguments.iter().any(is_null);
                let is_set = !matches!(function.body, Body::Plain(_));
                if !is_set && function.strict && null {
                    return Expr::Constant(Datum::Null);
                }
                let immutable = is_settled(function, &types) && !is_set;
                self.evaluated(Expr::Call { function, arguments, types, result, spread }, immutable)
            }
            Expr::Not(value) => {
                let value = self.boxed(*value);
                self.evaluated(Expr::Not(value), true)
            }
            Expr::IsNull(value) => {
                let value = self.boxed(*value);
                self.evaluated(Expr::IsNull(value), true)
            }
            Expr::IsNotNull(value) => {
                let value = self.boxed(*value);
                self.evaluated(Expr::IsNotNull(value), true)
            }
            Expr::IsTruth { value, truth, negated } => {
                let value = self.boxed(*value);
                self.evaluated(Expr::IsTruth { value, truth, negated }, true)
            }
            Expr::Extreme { greatest, items } => {
                let items = self.list(items);
                self.evaluated(Expr::Extreme { greatest, items }, true)
            }
            Expr::Array { element, items, nested } => {
                let items = self.list(items);
                self.evaluated(Expr::Array { element, items, nested }, true)
            }
            Expr::Subscript { array, bounds, slice } => {
                // Upper bounds come first, as in PostgreSQL: the first failure is the one that is
                // shown.
                let (lows, highs): (Vec<_>, Vec<_>) = bounds.into_iter().unzip();
                let mut all = |bounds: Vec<Option<Expr>>| -> Vec<Option<Expr>> {
                    bounds.into_iter().map(|bound| bound.map(|bound| self.expr(bound))).collect()
                };
                let highs = all(highs);
                let bounds = all(lows).into_iter().zip(highs).collect();
                let array = self.boxed(*array);
                self.evaluated(Expr::Subscript { array, bounds, slice }, true)
            }
            Expr::Quantified { test, array, all } => {
                let test = self.boxed(*test);
                let array = self.boxed(*array);
                let immutable = matches!(*array, Expr::Constant(_)) && is_immutable(&test);
                self.tried(Expr::Quantified { test, array, all }, immutable)
            }
            Expr::Read { text, oid, modifier } => {
                let text = self.boxed(*text);
                let is_settled = is_plain(oid) || is_null(&text);
                self.evaluated(Expr::Read { text, oid, modifier }, is_settled)
            }
            Expr::Print { value, oid } => {
                let value = self.boxed(*value);
                let is_settled = prints_plainly(oid) || is_null(&value);
                self.evaluated(Expr::Print { value, oid }, is_settled)
            }
            Expr::Fit { value, oid, modifier, explicit } => {
                let value = self.boxed(*value);
                self.evaluated(Expr::Fit { value, oid, modifier, explicit }, true)
            }
            Expr::Each { array, change, element } => {
                let array = self.boxed(*array);
                let immutable = matches!(*array, Expr::Constant(_)) && is_immutable(&change);
                self.tried(Expr::Each { array, change, element }, immutable)
            }
            Expr::Field { record, place } => Expr::Field { record: self.boxed(*record), place },
            Expr::Row(fields) => {
                Expr::Row(fields.into_iter().map(|(oid, field)| (oid, self.expr(field))).collect())
            }
            Expr::Distinct { equal, negated } => {
                let (equal, constant) = self.arguments(*equal);
                self.tried(Expr::Distinct { equal: Box::new(equal), negated }, constant)
            }
            Expr::Ordered(tests) => {
                let test = |(test, equal)| (self.arguments(test).0, equal);
                Expr::Ordered(tests.into_iter().map(test).collect())
            }
            Expr::NullIf(equal) => {
                let (equal, constant) = self.arguments(*equal);
                self.tried(Expr::NullIf(Box::new(equal)), constant)
            }
            other => other,
        }
    }

    /// A call whose arguments alone are folded, because the call is asked in another way, and
    /// whether they are constants.
    fn arguments(&mut self, expr: Expr) -> (Expr, bool) {
        match expr {
            Expr::Call { function, arguments, types, result, spread } => {
                let arguments = self.list(arguments);
                let constant = arguments.iter().all(|argument| matches!(argument, Expr::Constant(_)));
                let immutable = is_settled(function, &types);
                (Expr::Call { function, arguments, types, result, spread }, constant && immutable)
            }
            other => (other, false),
        }
    }

    /// The value of an expression whose parts are constants, if it depends on nothing else.
    fn evaluated(&mut self, expr: Expr, immutable: bool) -> Expr {
        let constant = expr.parts().iter().all(|part| matches!(part, Expr::Constant(_)));
        self.tried(expr, immutable && constant)
    }

    fn tried(&mut self, expr: Expr, immutable: bool) -> Expr {
        if !immutable || self.shared.context.fuel.is_spent() {
            return expr;
        }
        match Env::begin(self.shared, &Trail::default()).value(&expr) {
            Ok(value) => Expr::Constant(value),
            Err(Halt::Pause) => expr,
            Err(Halt::Failed(error)) => {
                self.failure.get_or_insert(error);
                expr
            }
        }
    }

    /// A test of a value: if that is a constant, it is put into the test.
    fn with(&mut self, value: Expr, test: Expr) -> Expr {
        let value = self.expr(value);
        if let Expr::Constant(constant) = &value {
            let replaced = with_operand(test.clone(), constant);
            let open = |test: &Expr| test.any(&|part| matches!(part, Expr::CaseValue));
            if !open(&replaced) {
                return self.expr(replaced);
            }
        }
        Expr::With { value: Box::new(value), test: Box::new(self.expr(test)) }
    }

    /// `AND`, `OR`: the first constant that decides ends it, one that cannot is left out, and of
    /// the unknown ones one is enough.
    fn junction(&mut self, items: Vec<Expr>, decisive: bool) -> Expr {
        let mut kept = Vec::new();
        let mut unknown = false;
        for item in items {
            match self.expr(item) {
                Expr::Constant(Datum::Bool(value)) if value == decisive => {
                    return Expr::Constant(Datum::Bool(decisive));
                }
                Expr::Constant(Datum::Bool(_)) => {}
                Expr::Constant(Datum::Null) => unknown = true,
                other => kept.push(other),
            }
        }
        if unknown {
            kept.push(Expr::Constant(Datum::Null));
        }
        match kept.len() {
            0 => Expr::Constant(Datum::Bool(!decisive)),
            1 => kept.pop().unwrap_or(Expr::Constant(Datum::Null)),
            _ if decisive => Expr::Or(kept),
            _ => Expr::And(kept),
        }
    }

    fn case(&mut self, operand: Option<Box<Expr>>, branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
        let operand = operand.map(|operand| self.boxed(*operand));
        // Conditions that compare with a constant get it, if all of them can.
        let compared = match operand.as_deref() {
            Some(Expr::Constant(value)) => {
                let with =
                    |(condition, kept): &(Expr, Expr)| (with_operand(condition.clone(), value), kept.clone());
                let branches: Vec<(Expr, Expr)> = branches.iter().map(with).collect();
                let open =
                    |(condition, _): &(Expr, Expr)| condition.any(&|part| matches!(part, Expr::CaseValue));
                if branches.iter().any(open) { None } else { Some(branches) }
            }
            _ => None,
        };
        let (operand, branches) = match compared {
            Some(branches) => (None, branches),
            None => (operand, branches),
        };
        let mut kept = Vec::new();
        let mut last = None;
        for (condition, value) in branches {
            match self.expr(condition) {
                Expr::Constant(Datum::Bool(true)) => {
                    last = Some(self.expr(value));
                    break;
                }
                Expr::Constant(_) => {}
                condition => kept.push((condition, self.expr(value))),
            }
        }
        let otherwise = match last {
            Some(last) => last,
            None => self.expr(otherwise),
        };
        if kept.is_empty() {
            return otherwise;
        }
        Expr::Case { operand, branches: kept, otherwise: Box::new(otherwise) }
    }
}

/// A condition that compares with a constant.
fn with_operand(condition: Expr, operand: &Datum) -> Expr {
    let all = |items: Vec<Expr>| items.into_iter().map(|item| with_operand(item, operand)).collect();
    match condition {
        Expr::And(items) => Expr::And(all(items)),
        Expr::Or(items) => Expr::Or(all(items)),
        Expr::Call { function, mut arguments, types, result, spread } => {
            if let Some(first) = arguments.first_mut() {
                replace_operand(first, operand);
            }
            Expr::Call { function, arguments, types, result, spread }
        }
        other => other,
    }
}

/// The operand may have a cast around it.
fn replace_operand(expr: &mut Expr, operand: &Datum) {
    match expr {
        Expr::CaseValue => *expr = Expr::Constant(operand.clone()),
        Expr::Call { arguments, .. } => {
            if let [only] = arguments.as_mut_slice() {
                replace_operand(only, operand);
            }
        }
        Expr::Print { value, .. } => replace_operand(value, operand),
        Expr::Read { text: value, .. } | Expr::Fit { value, .. } => replace_operand(value, operand),
        _ => {}
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Datum::Null))
}

/// Whether an expression over [`Expr::CaseValue`] depends on nothing else.
fn is_immutable(expr: &Expr) -> bool {
    !expr.any(&|part| match part {
        Expr::Call { function, types, .. } => !is_settled(function, types),
        Expr::Read { oid, .. } => !is_plain(*oid),
        Expr::Print { oid, .. } => !prints_plainly(*oid),
        Expr::Constant(_)
        | Expr::CaseValue
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_)
        | Expr::Fit { .. } => false,
        _ => true,
    })
}

/// Whether a function of values of these types always comes to the same.
fn is_settled(function: &Function, types: &[Oid]) -> bool {
    // `||` between a text and a value that is none prints the value.
    let prints = PRINTING.contains(&function.oid) && types.iter().all(|oid| prints_plainly(*oid));
    function.volatility == Volatility::Immutable || prints
}

/// Whether PostgreSQL says of a type's text form that it depends on no setting.
fn is_plain(oid: Oid) -> bool {
    matches!(
        oid,
        Oid::BOOL
            | Oid::INT2
            | Oid::INT4
            | Oid::INT8
            | Oid::FLOAT4
            | Oid::FLOAT8
            | Oid::NUMERIC
            | Oid::TEXT
            | Oid::VARCHAR
            | Oid::BPCHAR
            | Oid::NAME
            | Oid::UUID
            | Oid::CHAR
            | Oid::BYTEA
            | Oid::OID
            | Oid::XID
            | Oid::CID
            | Oid::JSON
            | Oid::JSONB
    )
}

/// Whether it says so of the printing of values, if not of their reading.
fn prints_plainly(oid: Oid) -> bool {
    is_plain(oid) || matches!(oid, Oid::TIME | Oid::TIMETZ)
}
