//! Functions.

use pg_query::NodeEnum;
use pg_query::protobuf::FuncCall;

use super::expression::typed;
use super::names::strings;
use super::plan::{Expr, Typed};
use super::resolve::{self, Found};
use super::{Analyzer, unsupported};
use crate::functions::{self, Body, CastContext, list};
use crate::types::Oid;
use crate::{SqlError, SqlState};

type Outcome = Result<Typed, SqlError>;

impl<'a> Analyzer<'a> {
    /// A call of what was found.
    pub(super) fn called(
        &mut self,
        found: &Found,
        arguments: Vec<Typed>,
        spread: bool,
        location: i32,
    ) -> Outcome {
        let (mut exprs, mut types) = (Vec::new(), Vec::new());
        for (argument, wanted) in arguments.into_iter().zip(&found.arguments) {
            let argument = self.coerce(argument, *wanted, -1, CastContext::Implicit)?;
            types.push(argument.oid);
            exprs.push(argument.expr);
        }
        let declared = found.function.arguments.len();
        if !found.function.optional.is_empty() && exprs.len() < declared {
            let missing = declared - exprs.len();
            let from = found.function.optional.len().saturating_sub(missing);
            for value in found.function.optional.iter().skip(from) {
                exprs.push(Expr::Constant(value.clone()));
            }
            types.extend(found.function.arguments.iter().skip(types.len()));
        }
        let call =
            Expr::Call { function: found.function, arguments: exprs, types, result: found.result, spread };
        Ok(typed(call, found.result, location))
    }

    /// An error with its place, unless it is that types cannot be told, which has none.
    pub(super) fn unless_open(&self, location: i32, error: SqlError) -> SqlError {
        if error.state == SqlState::DATATYPE_MISMATCH { error } else { self.at(location, error) }
    }

    /// A function.
    pub fn call(&mut self, call: &'a FuncCall) -> Outcome {
        let (location, since) = (call.location, self.named.mark());
        let names = strings(&call.funcname);
        let name = match names.as_slice() {
            [name] | ["pg_catalog", name] => *name,
            ["information_schema", "_pg_expandarray"] => "information_schema._pg_expandarray",
            [schema, name] => {
                let arguments = self.expressions(&call.args)?;
                let types: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
                if !matches!(*schema, "public" | "information_schema") {
                    let message = format!("schema \"{schema}\" does not exist");
                    return self.refuse(location, SqlState::UNDEFINED_SCHEMA, message);
                }
                return Err(self.at(location, resolve::no_function(&format!("{schema}.{name}"), &types)));
            }
            _ => return Err(unsupported("a function of another database")),
        };
        if let Some(over) = &call.over {
            return self.window(call, over);
        }
        if call.agg_within_group {
            return Err(self.at(location, unsupported("WITHIN GROUP")));
        }
        if call.args.iter().any(|arg| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_)))) {
            return Err(self.at(location, unsupported("named notation of arguments")));
        }
        let arguments = self.arguments(name, call)?;
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.oid).collect();
        // `text(1)`: a cast that is written as a function, unless there is just that function.
        if let ([only], Some(oid)) = (arguments.as_slice(), Oid::named(name))
            && !functions::named(name).iter().any(|function| function.arguments == [only.oid])
            && (only.oid == Oid::UNKNOWN || super::coerce::is_plain_cast(only.oid, oid))
        {
            let only = only.clone();
            return self.cast(only, oid, -1, location);
        }
        let found = resolve::function(name, &names.join("."), &types, call.func_variadic);
        let Some(found) = found.map_err(|error| self.unless_open(location, error))? else {
            return Err(self.at(location, resolve::no_function(&names.join("."), &types)));
        };
        if list::reads_catalog(found.function) {
            self.need_objects()?;
        }
        let plain =
            call.agg_order.is_empty() && !call.agg_distinct && call.agg_filter.is_none() && !call.agg_star;
        match &found.function.body {
            Body::Aggregate(_) => self.aggregate(call, &found, arguments, since),
            _ if !plain => {
                let what = if call.agg_star {
                    format!("{name}(*) specified, but {name} is not an aggregate function")
                } else if call.agg_distinct {
                    format!("DISTINCT specified, but {name} is not an aggregate function")
                } else if call.agg_filter.is_some() {
                    format!("FILTER specified, but {name} is not an aggregate function")
                } else {
                    format!("ORDER BY specified, but {name} is not an aggregate function")
                };
                self.refuse(location, SqlState::WRONG_OBJECT_TYPE, what)
            }
            Body::Plain(_) | Body::Session(_) => self.called(&found, arguments, call.func_variadic, location),
            Body::Set(_) => {
                let result = self.called(&found, arguments, call.func_variadic, location)?;
                let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
                if let Some(where_) = scope.clause.refuses_sets() {
                    return self.refuse(
                        location,
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("set-returning functions are not allowed in {where_}"),
                    );
                }
                scope.sets.push(result.expr);
                scope.set_places.push(location);
                let place = scope.sets.len() - 1;
                Ok(Typed { expr: Expr::Set(place), ..result })
            }
        }
    }
}
