//! `FOR UPDATE` and its like: which rows are reserved.
//!
//! `FOR SHARE` and `FOR KEY SHARE` reserve nothing, because the commit looks whether the row
//! has changed. So those clauses mean nothing here.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{LockClauseStrength, LockWaitPolicy, RangeVar, SelectStmt, SetOperation};

use super::Analyzer;
use super::plan::{Expr, Locked, Plan, Typed, Wait};
use super::select::Target;
use crate::catalog::Table;
use crate::functions::confused;
use crate::types::Oid;
use crate::{SqlError, SqlState};

/// What a query reserves.
#[derive(Clone, Debug)]
pub struct Locking {
    /// Names of tables; none are all.
    names: Vec<String>,
    wait: Wait,
    /// Those that were found.
    tables: Vec<Arc<Table>>,
}

impl Locking {
    /// Whether the rows of a table are reserved, which is then noted.
    fn takes(&mut self, range: &RangeVar, table: &Arc<Table>) -> bool {
        let name = range.alias.as_ref().map_or(&range.relname, |alias| &alias.aliasname);
        let takes = self.names.is_empty() || self.names.contains(name);
        if takes {
            self.tables.push(table.clone());
        }
        takes
    }
}

impl<'a> Analyzer<'a> {
    /// What a query reserves, if it reserves anything.
    pub fn locking(&mut self, select: &SelectStmt) -> Result<Option<Locking>, SqlError> {
        let mut locking: Option<Locking> = None;
        for node in &select.locking_clause {
            let Some(NodeEnum::LockingClause(clause)) = &node.node else { return Err(confused()) };
            let what = match clause.strength() {
                LockClauseStrength::LcsForupdate => "FOR UPDATE",
                LockClauseStrength::LcsFornokeyupdate => "FOR NO KEY UPDATE",
                LockClauseStrength::LcsForshare => "FOR SHARE",
                _ => "FOR KEY SHARE",
            };
            let forbidden = match () {
                () if !matches!(select.op(), SetOperation::SetopNone | SetOperation::Undefined) => {
                    Some("UNION/INTERSECT/EXCEPT")
                }
                () if !select.values_lists.is_empty() => Some("VALUES"),
                () if !select.distinct_clause.is_empty() => Some("DISTINCT clause"),
                () if !select.group_clause.is_empty() => Some("GROUP BY clause"),
                () if select.having_clause.is_some() => Some("HAVING clause"),
                () => None,
            };
            if let Some(forbidden) = forbidden {
                let error = match forbidden {
                    "VALUES" => format!("{what} cannot be applied to VALUES"),
                    _ => format!("{what} is not allowed with {forbidden}"),
                };
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
            }
            self.locks = Some(what);
            let is_exclusive = what == "FOR UPDATE" || what == "FOR NO KEY UPDATE";
            if !is_exclusive {
                continue;
            }
            let names = clause.locked_rels.iter().filter_map(|node| match &node.node {
                Some(NodeEnum::RangeVar(range)) => Some(range.relname.clone()),
                _ => None,
            });
            let wait = match clause.wait_policy() {
                LockWaitPolicy::LockWaitSkip => Wait::Skip,
                LockWaitPolicy::LockWaitError => Wait::Refuse,
                _ => Wait::Block,
            };
            let locking = locking.get_or_insert(Locking { names: Vec::new(), wait, tables: Vec::new() });
            locking.names.extend(names);
            locking.wait = wait;
        }
        Ok(locking)
    }

    /// Whether the rows of a table of the query at hand are reserved.
    pub fn locks(&mut self, range: &RangeVar, table: &Arc<Table>) -> bool {
        self.locking.as_mut().is_some_and(|locking| locking.takes(range, table))
    }

    /// Adds the keys of rows that are reserved to the results of a query. Returns where they are.
    pub fn lock_targets(
        &self,
        locking: &Locking,
        select: &SelectStmt,
        targets: &mut Vec<Target>,
    ) -> Result<Vec<Locked>, SqlError> {
        let scope = self.scopes.last().ok_or_else(confused)?;
        for name in &locking.names {
            if !scope.columns.iter().any(|column| column.table.as_ref() == Some(name)) {
                let error = format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
                let location = select.locking_clause.iter().find_map(|node| match &node.node {
                    Some(NodeEnum::LockingClause(clause)) => {
                        clause.locked_rels.iter().find_map(|node| match &node.node {
                            Some(NodeEnum::RangeVar(range)) if range.relname == *name => Some(range.location),
                            _ => None,
                        })
                    }
                    _ => None,
                });
                return self.refuse(location.unwrap_or(-1), SqlState::UNDEFINED_TABLE, error);
            }
        }
        if !scope.aggregates.is_empty() {
            let error = "FOR UPDATE is not allowed with aggregate functions";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error));
        }
        let keys = scope.columns.iter().enumerate().filter(|(_, column)| column.name.is_empty());
        let mut locked = Vec::new();
        for ((place, _), table) in keys.zip(&locking.tables) {
            locked.push(Locked { table: table.clone(), place: targets.len() });
            let value =
                Typed { expr: Expr::Column { level: 0, place }, oid: Oid::BYTEA, modifier: -1, location: -1 };
            targets.push(Target { name: String::new(), value, origin: None });
        }
        Ok(locked)
    }
}

/// A plan that reserves the rows which it gives.
pub fn locked(input: Plan, tables: Vec<Locked>, wait: Wait) -> Plan {
    if tables.is_empty() { input } else { Plan::Lock { input: Box::new(input), tables, wait } }
}

impl Locking {
    /// What is done with rows that others have reserved.
    pub fn wait(&self) -> Wait {
        self.wait
    }
}
