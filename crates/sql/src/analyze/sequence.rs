//! Functions of sequences, and a sequence that is read as a table.
//!
//! PostgreSQL makes the name of a sequence its OID when it analyzes a statement. Here a name stays
//! one until the function is called.

use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, Node, RangeVar};

use super::expression::{present, typed};
use super::from::ScopeColumn;
use super::names::{qualified, strings};
use super::plan::{Expr, Plan, Typed};
use super::{Analyzer, DEPTH_MAX};
use crate::catalog::{Relation, Sequence};
use crate::functions::{self, CastContext};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

/// The function that reads a column of a sequence's state; PostgreSQL has none of this number.
pub const STATE_FUNCTION: u32 = 1;

impl<'a> Analyzer<'a> {
    /// The arguments of a function. The first one of those of sequences is a name.
    pub(super) fn arguments(&mut self, name: &str, call: &'a FuncCall) -> Result<Vec<Typed>, SqlError> {
        let mut arguments = Vec::new();
        for node in &call.args {
            let is_name = arguments.is_empty() && matches!(name, "nextval" | "currval" | "setval");
            arguments.push(if is_name { self.relation_name(node)? } else { self.expression(node)? });
        }
        Ok(arguments)
    }

    /// An argument of type `regclass`, as a text.
    fn relation_name(&mut self, node: &'a Node) -> Result<Typed, SqlError> {
        let mut text = node;
        let mut is_cast = false;
        for _ in 0..DEPTH_MAX {
            match &text.node {
                Some(NodeEnum::TypeCast(cast)) if is_regclass(cast.type_name.as_ref()) => {
                    text = present(&cast.arg)?;
                    is_cast = true;
                }
                _ => break,
            }
        }
        let value = self.expression(text)?;
        if value.oid != Oid::UNKNOWN && !is_cast || value.oid == Oid::OID {
            return Ok(value);
        }
        if let Expr::Constant(Datum::Text(name)) = &value.expr {
            let (schema, relation) = qualified(name).map_err(|error| self.at(value.location, error))?;
            // What is kept with a descriptor has no text, and is looked up when it runs.
            if !self.text.is_empty() {
                match self.catalog.relation(&schema, &relation)? {
                    Some(Relation::Sequence(sequence)) => self.sequences.push(sequence),
                    Some(_) => {}
                    None => {
                        let shown = if schema.is_empty() { relation } else { format!("{schema}.{relation}") };
                        let error = format!("relation \"{shown}\" does not exist");
                        return self.refuse(value.location, SqlState::UNDEFINED_TABLE, error);
                    }
                }
            }
        }
        let location = value.location;
        let value = self.coerce(value, Oid::TEXT, -1, CastContext::Implicit)?;
        Ok(typed(value.expr, Oid::REGCLASS, location))
    }

    /// The only row of a sequence that is read as a table, with its columns.
    pub(super) fn sequence_item(
        &self,
        range: &RangeVar,
        sequence: &Sequence,
    ) -> Result<(Plan, Vec<ScopeColumn>), SqlError> {
        let function = functions::function(STATE_FUNCTION).ok_or_else(functions::confused)?;
        let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let name = format!("{}.{}", quote(&sequence.schema), quote(&sequence.name));
        let (mut row, mut columns) = (Vec::new(), Vec::new());
        for (place, (column, oid)) in
            (0..).zip([("last_value", Oid::INT8), ("log_cnt", Oid::INT8), ("is_called", Oid::BOOL)])
        {
            let name = Expr::Constant(Datum::text(name.as_str()));
            row.push(Expr::Call {
                function,
                arguments: vec![name, Expr::Constant(Datum::Int4(place))],
                types: vec![Oid::TEXT, Oid::INT4],
                result: oid,
                spread: false,
            });
            let (table, name) = (Some(range.relname.clone()), column.to_owned());
            columns.push(ScopeColumn { table, name, oid, modifier: -1, origin: None });
        }
        Ok((Plan::Values(vec![row]), columns))
    }
}

fn is_regclass(name: Option<&pg_query::protobuf::TypeName>) -> bool {
    name.is_some_and(|name| strings(&name.names).last() == Some(&"regclass") && name.array_bounds.is_empty())
}
