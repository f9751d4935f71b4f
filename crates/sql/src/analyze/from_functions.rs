//! Functions in `FROM`.

use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, Node, RangeFunction};

use super::from::{Item, ScopeColumn, aliased};
use super::names::{function_name, strings};
use super::plan::{Expr, Plan};
use super::{Analyzer, resolve, unsupported};
use crate::functions;
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// What messages call `unnest()` of several arrays.
const SHOWN: &str = "pg_catalog.unnest";

impl<'a> Analyzer<'a> {
    /// A function in `FROM`, or several side by side.
    pub(super) fn function_item(&mut self, function: &'a RangeFunction) -> Result<Item, SqlError> {
        if !function.coldeflist.is_empty() {
            return Err(unsupported("a list of column definitions"));
        }
        let node = match function.functions.as_slice() {
            [only] => first_of(only)?,
            _ => return self.side_by_side(function),
        };
        if unnested(node).is_some() {
            return self.side_by_side(function);
        }
        let value = self.expression(node)?;
        let value = self.settled(value)?;
        let call = self.only_set(value.expr)?;
        let name = function_name(node).unwrap_or_else(|| "?column?".to_owned());
        let alias_name = function.alias.as_ref().map(|alias| alias.aliasname.clone());
        let table = alias_name.clone().unwrap_or_else(|| name.clone());
        let column = |name: String, oid: Oid, modifier: i32| ScopeColumn {
            table: Some(table.clone()),
            name,
            oid,
            modifier,
            origin: None,
        };
        let fields = value.oid.fields();
        let mut columns = match &fields {
            Some(fields) => fields.iter().map(|(name, oid)| column((*name).to_owned(), *oid, -1)).collect(),
            None => vec![column(alias_name.unwrap_or(name), value.oid, value.modifier)],
        };
        if function.ordinality {
            columns.push(column("ordinality".to_owned(), Oid::INT8, -1));
        }
        let columns = aliased(columns, function.alias.as_ref())?;
        let fields = fields.map(|fields| fields.len());
        let plan = Plan::Function { call, ordinality: function.ordinality, fields };
        Ok(Item { plan, columns, lateral: true })
    }

    /// `ROWS FROM (...)`, and `unnest()` of several arrays: row by row what each has, and NULL from
    /// one that has no more.
    fn side_by_side(&mut self, function: &'a RangeFunction) -> Result<Item, SqlError> {
        let (mut sets, mut columns) = (Vec::new(), Vec::new());
        let alias = function.alias.as_ref().map(|alias| alias.aliasname.clone());
        let mut add = |name: String, oid: Oid| {
            let table = Some(alias.clone().unwrap_or_else(|| name.clone()));
            columns.push(ScopeColumn { table, name, oid, modifier: -1, origin: None });
        };
        for node in &function.functions {
            let node = first_of(node)?;
            if let Some(call) = unnested(node) {
                for argument in &call.args {
                    let array = self.expression(argument)?;
                    let array = self.settled(array)?;
                    let found = resolve::function("unnest", SHOWN, &[array.oid], false)?;
                    let Some(found) = found else {
                        let error = resolve::no_function(SHOWN, &[array.oid]);
                        return Err(self.at(call.location, error));
                    };
                    let set = self.called(&found, vec![array], false, call.location)?;
                    add("unnest".to_owned(), set.oid);
                    sets.push(set.expr.deeper()?);
                }
                continue;
            }
            let value = self.expression(node)?;
            let value = self.settled(value)?;
            if value.oid.fields().is_some() {
                return Err(unsupported("a function of several columns in ROWS FROM"));
            }
            let set = self.only_set(value.expr)?;
            add(function_name(node).unwrap_or_else(|| "?column?".to_owned()), value.oid);
            sets.push(set.deeper()?);
        }
        let input = Box::new(Plan::Values(vec![Vec::new()]));
        let mut plan = Plan::Sets { input, sets };
        if function.ordinality {
            add("ordinality".to_owned(), Oid::INT8);
            plan = Plan::Numbered { input: Box::new(plan), keys: Vec::new() };
        }
        Ok(Item { plan, columns: aliased(columns, function.alias.as_ref())?, lateral: true })
    }

    /// What makes the rows of a function, which has to be all of an expression.
    fn only_set(&mut self, expr: Expr) -> Result<Expr, SqlError> {
        let scope = self.scopes.last_mut().ok_or_else(functions::confused)?;
        let mut sets = std::mem::take(&mut scope.sets);
        match (expr, sets.pop()) {
            (Expr::Set(_), Some(set)) if sets.is_empty() => Ok(set),
            (expr, None) => Ok(expr),
            _ => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "set-returning functions must appear at top level of FROM",
            )),
        }
    }
}

/// The function of an entry of `ROWS FROM`.
fn first_of(node: &Node) -> Result<&Node, SqlError> {
    let (node, definitions) = match &node.node {
        Some(NodeEnum::List(list)) => (list.items.first(), list.items.get(1)),
        _ => (None, None),
    };
    if definitions.is_some_and(|node| node.node.is_some()) {
        return Err(unsupported("a list of column definitions"));
    }
    node.ok_or_else(functions::confused)
}

/// A call of `unnest()` with several arrays.
fn unnested(node: &Node) -> Option<&FuncCall> {
    match &node.node {
        Some(NodeEnum::FuncCall(call)) => {
            let is_it = matches!(strings(&call.funcname).as_slice(), ["unnest"] | ["pg_catalog", "unnest"]);
            (is_it && call.args.len() > 1).then_some(&**call)
        }
        _ => None,
    }
}
