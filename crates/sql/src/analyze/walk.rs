//! What expressions are made of: to look at their parts, and to change them.

use std::sync::Arc;

use super::plan::{Expr, Plan, Question};
use crate::SqlError;
use crate::functions;

impl Expr {
    /// What it is made of, but for queries.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column { .. }
            | Expr::Aggregate { .. }
            | Expr::Set(_)
            | Expr::Window(_)
            | Expr::CaseValue
            | Expr::Clock { .. }
            | Expr::Subquery(_) => Vec::new(),
            Expr::Call { arguments: items, .. }
            | Expr::And(items)
            | Expr::Or(items)
            | Expr::Coalesce(items)
            | Expr::Extreme { items, .. }
            | Expr::Array { items, .. } => items.iter().collect(),
            Expr::Not(value)
            | Expr::IsNull(value)
            | Expr::IsNotNull(value)
            | Expr::IsTruth { value, .. }
            | Expr::Distinct { equal: value, .. }
            | Expr::NullIf(value)
            | Expr::Read { text: value, .. }
            | Expr::Print { value, .. }
            | Expr::Field { record: value, .. }
            | Expr::Fit { value, .. } => vec![value],
            Expr::Case { operand, branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                operand.iter().map(Box::as_ref).chain(branches).chain([otherwise.as_ref()]).collect()
            }
            Expr::Subscript { array, bounds, .. } => {
                let bounds = bounds.iter().flat_map(|(low, high)| low.iter().chain(high));
                bounds.chain([array.as_ref()]).collect()
            }
            Expr::Quantified { test, array, .. } => vec![test, array],
            Expr::With { value, test } => vec![value, test],
            Expr::Each { array, .. } => vec![array],
            Expr::Row(fields) => fields.iter().map(|(_, field)| field).collect(),
            Expr::Ordered(tests) => tests.iter().map(|(test, _)| test).collect(),
        }
    }

    /// How many expressions it is made of.
    pub fn size(&self) -> usize {
        1 + self.parts().into_iter().map(Expr::size).sum::<usize>()
    }

    /// Whether some part of it is what is asked for.
    pub fn any(&self, wanted: &dyn Fn(&Expr) -> bool) -> bool {
        wanted(self) || self.parts().into_iter().any(|part| part.any(wanted))
    }

    /// Whether an aggregate of the query at hand is in it, or in a query inside.
    pub fn has_aggregate(&self) -> bool {
        let looked = self.clone().rewrite_within(0, &mut |depth, part| match part {
            Expr::Aggregate { level, .. } if level == depth => Err(()),
            other => Ok(other),
        });
        looked.is_err()
    }

    /// Whether it depends on the row at hand, as far as its query has one, or a query inside does.
    pub fn has_columns(&self) -> bool {
        let looked = self.clone().rewrite_within(0, &mut |depth, part| match part {
            Expr::Column { level, .. } | Expr::Aggregate { level, .. } if level == depth => Err(()),
            other => Ok(other),
        });
        looked.is_err()
    }

    /// Changes every expression inside this one, from the leaves up, and stops at the first error.
    pub fn rewrite<E>(self, change: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Expr, E> {
        let boxed = |expr: Box<Expr>, change: &mut dyn FnMut(Expr) -> Result<Expr, E>| {
            expr.rewrite(change).map(Box::new)
        };
        fn list<E>(
            items: Vec<Expr>,
            change: &mut dyn FnMut(Expr) -> Result<Expr, E>,
        ) -> Result<Vec<Expr>, E> {
            items.into_iter().map(|item| item.rewrite(change)).collect()
        }
        let rebuilt = match self {
            leaf @ (Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column { .. }
            | Expr::Aggregate { .. }
            | Expr::Set(_)
            | Expr::Window(_)
            | Expr::CaseValue
            | Expr::Clock { .. }
            | Expr::Subquery(_)) => leaf,
            Expr::Call { function, arguments, types, result, spread } => {
                Expr::Call { function, arguments: list(arguments, change)?, types, result, spread }
            }
            Expr::And(items) => Expr::And(list(items, change)?),
            Expr::Or(items) => Expr::Or(list(items, change)?),
            Expr::Coalesce(items) => Expr::Coalesce(list(items, change)?),
            Expr::Extreme { greatest, items } => Expr::Extreme { greatest, items: list(items, change)? },
            Expr::Array { element, items, nested } => {
                Expr::Array { element, items: list(items, change)?, nested }
            }
            Expr::Not(value) => Expr::Not(boxed(value, change)?),
            Expr::IsNull(value) => Expr::IsNull(boxed(value, change)?),
            Expr::IsNotNull(value) => Expr::IsNotNull(boxed(value, change)?),
            Expr::IsTruth { value, truth, negated } => {
                Expr::IsTruth { value: boxed(value, change)?, truth, negated }
            }
            Expr::Distinct { equal, negated } => Expr::Distinct { equal: inside(*equal, change)?, negated },
            Expr::NullIf(equal) => Expr::NullIf(inside(*equal, change)?),
            Expr::Ordered(tests) => {
                let test = |(test, equal)| Ok((*inside(test, change)?, equal));
                Expr::Ordered(tests.into_iter().map(test).collect::<Result<_, E>>()?)
            }
            Expr::Case { operand, branches, otherwise } => {
                let operand = operand.map(|operand| boxed(operand, change)).transpose()?;
                let branches: Result<Vec<_>, E> = branches
                    .into_iter()
                    .map(|(condition, value)| Ok((condition.rewrite(change)?, value.rewrite(change)?)))
                    .collect();
                Expr::Case { operand, branches: branches?, otherwise: boxed(otherwise, change)? }
            }
            Expr::Subscript { array, bounds, slice } => {
                let mut one = |bound: Option<Expr>| bound.map(|bound| bound.rewrite(change)).transpose();
                let bounds: Result<Vec<_>, E> =
                    bounds.into_iter().map(|(low, high)| Ok((one(low)?, one(high)?))).collect();
                Expr::Subscript { bounds: bounds?, array: boxed(array, change)?, slice }
            }
            Expr::Quantified { test, array, all } => {
                Expr::Quantified { test: boxed(test, change)?, array: boxed(array, change)?, all }
            }
            Expr::With { value, test } => {
                Expr::With { value: boxed(value, change)?, test: boxed(test, change)? }
            }
            Expr::Read { text, oid, modifier } => Expr::Read { text: boxed(text, change)?, oid, modifier },
            Expr::Print { value, oid } => Expr::Print { value: boxed(value, change)?, oid },
            Expr::Fit { value, oid, modifier, explicit } => {
                Expr::Fit { value: boxed(value, change)?, oid, modifier, explicit }
            }
            Expr::Each { array, change: each, element } => {
                Expr::Each { array: boxed(array, change)?, change: each, element }
            }
            Expr::Field { record, place } => Expr::Field { record: boxed(record, change)?, place },
            Expr::Row(fields) => {
                let fields: Result<Vec<_>, E> =
                    fields.into_iter().map(|(oid, field)| Ok((oid, field.rewrite(change)?))).collect();
                Expr::Row(fields?)
            }
        };
        change(rebuilt)
    }

    /// The same in the queries inside as well. `change` also gets how many rows are between the one
    /// that it was called for, which is `depth` rows up, and the expression's own: a column of that
    /// row has this level.
    pub fn rewrite_within<E>(
        self,
        depth: usize,
        change: &mut dyn FnMut(usize, Expr) -> Result<Expr, E>,
    ) -> Result<Expr, E> {
        self.rewrite(&mut |part| match part {
            Expr::Subquery(subquery) => {
                let mut subquery = Arc::unwrap_or_clone(subquery);
                if subquery.correlated {
                    subquery.plan.rewrite_within(depth + 1, change)?;
                }
                if let Question::Test { test, .. } = &mut subquery.question {
                    test.replace_within(depth + 1, change)?;
                }
                Ok(Expr::Subquery(Arc::new(subquery)))
            }
            other => change(depth, other),
        })
    }

    fn replace_within<E>(
        &mut self,
        depth: usize,
        change: &mut dyn FnMut(usize, Expr) -> Result<Expr, E>,
    ) -> Result<(), E> {
        *self = std::mem::replace(self, Expr::CaseValue).rewrite_within(depth, change)?;
        Ok(())
    }

    /// The same expression as seen from a query inside.
    pub fn deeper(self) -> Result<Expr, SqlError> {
        self.rewrite_within(0, &mut |depth, part| {
            Ok(match part {
                Expr::Column { level, place } if level >= depth => Expr::Column { level: level + 1, place },
                Expr::Aggregate { level, place } if level >= depth => {
                    Expr::Aggregate { level: level + 1, place }
                }
                other => other,
            })
        })
    }

    /// Rewrites the expression for a query that is `levels` further out. The expression must not name columns of the queries between, whose rows that query does not see.
    pub fn further_out(self, levels: usize) -> Result<Expr, SqlError> {
        let up = |level: usize| level.checked_sub(levels).ok_or_else(functions::confused);
        self.rewrite_within(0, &mut |depth, part| {
            Ok(match part {
                Expr::Column { level, place } if level >= depth => Expr::Column { level: up(level)?, place },
                Expr::Aggregate { level, place } if level >= depth => {
                    Expr::Aggregate { level: up(level)?, place }
                }
                other => other,
            })
        })
    }
}

impl Plan {
    /// Changes the expressions of a plan that analysis has made, before `fold` puts more into it;
    /// see [`Expr::rewrite_within`]. The plan's rows are `depth` rows down.
    fn rewrite_within<E>(
        &mut self,
        depth: usize,
        change: &mut dyn FnMut(usize, Expr) -> Result<Expr, E>,
    ) -> Result<(), E> {
        let mut own =
            |exprs: Vec<&mut Expr>| exprs.into_iter().try_for_each(|expr| expr.replace_within(depth, change));
        match self {
            Plan::Scan(_) | Plan::Catalog(_) | Plan::Working { .. } => Ok(()),
            Plan::Values(rows) => own(rows.iter_mut().flatten().collect()),
            // It has no row of its own: it is called in sight of the row around.
            Plan::Function { call, .. } => call.replace_within(depth - 1, change),
            Plan::Filter { input, condition } => {
                own(vec![condition])?;
                input.rewrite_within(depth, change)
            }
            Plan::Project { input, columns: exprs } | Plan::Sets { input, sets: exprs } => {
                own(exprs.iter_mut().collect())?;
                input.rewrite_within(depth, change)
            }
            Plan::Group { input, keys, aggregates } => {
                own(keys.iter_mut().collect())?;
                for aggregate in aggregates {
                    let order = aggregate.order.iter_mut().map(|(key, _)| key);
                    own(aggregate.arguments.iter_mut().chain(&mut aggregate.filter).chain(order).collect())?;
                }
                input.rewrite_within(depth, change)
            }
            Plan::Limit { input, count, skip, .. } => {
                own(count.iter_mut().chain(skip).collect())?;
                input.rewrite_within(depth, change)
            }
            Plan::Numbered { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Distinct { input, .. }
            | Plan::Lock { input, .. } => input.rewrite_within(depth, change),
            Plan::Join { left, right, condition, .. } => {
                own(condition.iter_mut().collect())?;
                left.rewrite_within(depth, change)?;
                right.rewrite_within(depth + 1, change)
            }
            Plan::Recursive { base: left, step: right, .. } | Plan::Combined { left, right, .. } => {
                left.rewrite_within(depth, change)?;
                right.rewrite_within(depth, change)
            }
        }
    }
}

/// Changes the arguments of a call whose result is asked in another way: the call stays a call.
fn inside<E>(call: Expr, change: &mut dyn FnMut(Expr) -> Result<Expr, E>) -> Result<Box<Expr>, E> {
    Ok(Box::new(match call {
        Expr::Call { function, arguments, types, result, spread } => {
            let arguments: Result<Vec<_>, E> =
                arguments.into_iter().map(|argument| argument.rewrite(change)).collect();
            Expr::Call { function, arguments: arguments?, types, result, spread }
        }
        other => other.rewrite(change)?,
    }))
}
