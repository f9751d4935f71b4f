//! What expressions are made of: to look at their parts, and to change them.

use super::plan::Expr;

impl Expr {
    /// What it is made of, but for queries.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Constant(_)
            | Expr::Parameter(_)
            | Expr::Column { .. }
            | Expr::Aggregate(_)
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

    /// Changes every expression inside this one, from the leaves up, and stops at the first error.
    /// `depth` says how many queries are between.
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
            | Expr::Aggregate(_)
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
