//! `VALUES`, and several queries put together: rows whose columns have a common type.

use pg_query::NodeEnum;
use pg_query::protobuf::{SelectStmt, SetOperation};

use super::expression::typed;
use super::from::{Clause, Scope};
use super::plan::{Combine, Expr, Plan, Typed};
use super::select::{Output, Planned};
use super::{Analyzer, Column};
use crate::SqlState;
use crate::functions;

impl<'a> Analyzer<'a> {
    /// `VALUES`
    pub fn values(&mut self, select: &'a SelectStmt) -> Planned {
        self.scopes.push(Scope::new(Vec::new(), Clause::Values));
        let result = self.value_rows(select);
        self.scopes.pop();
        result
    }

    fn value_rows(&mut self, select: &'a SelectStmt) -> Planned {
        let mut rows: Vec<Vec<Typed>> = Vec::new();
        for node in &select.values_lists {
            let Some(NodeEnum::List(list)) = &node.node else { return Err(functions::confused()) };
            let row = self.expressions(&list.items)?;
            if let Some(first) = rows.first()
                && first.len() != row.len()
            {
                let location = row.first().map_or(-1, |value| value.location);
                return self.refuse(
                    location,
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                );
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut outputs = Vec::new();
        let mut exprs: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::new()).collect();
        for place in 0..width {
            let column: Vec<Typed> = rows.iter().filter_map(|row| row.get(place)).cloned().collect();
            let oid = self.common_type(&column, "VALUES")?;
            let first = column.first().map_or(-1, |value| value.modifier);
            let same = column.iter().all(|value| value.oid == oid && value.modifier == first);
            for (value, row) in column.into_iter().zip(&mut exprs) {
                row.push(self.to_common_type(value, oid, "VALUES")?.expr);
            }
            let name = format!("column{}", place + 1);
            let column = Column { name, oid, modifier: if same { first } else { -1 }, origin: None };
            outputs.push(Output { column, location: -1 });
        }
        Ok((Plan::Values(exprs), outputs))
    }

    /// `UNION`, `INTERSECT`, `EXCEPT`
    pub fn combined(&mut self, select: &'a SelectStmt) -> Planned {
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Err(functions::confused());
        };
        let (left, left_outputs) = self.open_query(left)?;
        let (right, right_outputs) = self.open_query(right)?;
        let (how, word) = match select.op() {
            SetOperation::SetopIntersect => (Combine::Intersect, "INTERSECT"),
            SetOperation::SetopExcept => (Combine::Except, "EXCEPT"),
            _ => (Combine::Union, "UNION"),
        };
        if left_outputs.len() != right_outputs.len() {
            let location = right_outputs.first().map_or(-1, |output| output.location);
            return self.refuse(
                location,
                SqlState::SYNTAX_ERROR,
                format!("each {word} query must have the same number of columns"),
            );
        }
        let mut wanted = Vec::new();
        for (left, right) in left_outputs.iter().zip(&right_outputs) {
            let value = |output: &Output| typed(Expr::CaseValue, output.column.oid, output.location);
            let both = [value(left), value(right)];
            let oid = self.common_type(&both, word)?;
            both.iter().try_for_each(|value| self.check_common_type(value, oid, word))?;
            wanted.push(oid);
        }
        let (left, outputs) = self.typed_outputs(left, left_outputs, Some(&wanted))?;
        let (right, right_outputs) = self.typed_outputs(right, right_outputs, Some(&wanted))?;
        let outputs = outputs
            .into_iter()
            .zip(right_outputs)
            .map(|(mut left, right)| {
                if left.column.modifier != right.column.modifier {
                    left.column.modifier = -1;
                }
                left.column.origin = None;
                left
            })
            .collect();
        Ok((Plan::Combined { left: Box::new(left), right: Box::new(right), how, all: select.all }, outputs))
    }
}
