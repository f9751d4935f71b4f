//! `ON CONFLICT`: what is done with a new row that is there already.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, OnConflictAction, OnConflictClause, RangeVar};

use super::from::{Clause, Scope, ScopeColumn};
use super::plan::Expr;
use super::write::has_query;
use super::{Analyzer, unsupported};
use crate::catalog::Table;
use crate::{SqlError, SqlState};

/// What must not be there twice in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unique {
    /// Its primary key.
    Primary,
    /// The entries of this index.
    Index(usize),
}

/// What is done if a new row is there already.
#[derive(Debug)]
pub struct OnConflict {
    /// By what that is told; if it is empty, by anything that must not be there twice.
    pub arbiters: Vec<Unique>,
    /// What is done.
    pub action: Resolution,
}

/// What is done with a new row that is there already.
#[derive(Debug)]
pub enum Resolution {
    /// It is an error.
    Refuse,
    /// Nothing.
    Skip,
    /// The old row is changed: over it and the new one.
    Update {
        /// The row that it becomes.
        row: Vec<Expr>,
        /// Whether it is changed.
        condition: Option<Expr>,
    },
}

impl OnConflict {
    /// A conflict is an error.
    pub fn refuse() -> OnConflict {
        OnConflict { arbiters: Vec::new(), action: Resolution::Refuse }
    }

    /// Whether this is what conflicts are told by.
    pub fn expects(&self, unique: Unique) -> bool {
        self.arbiters.is_empty() || self.arbiters.contains(&unique)
    }
}

impl<'a> Analyzer<'a> {
    pub(super) fn on_conflict(
        &mut self,
        table: &Table,
        range: &'a RangeVar,
        clause: &'a OnConflictClause,
    ) -> Result<OnConflict, SqlError> {
        let mut arbiters = Vec::new();
        if let Some(infer) = &clause.infer {
            arbiters = self.inferred(table, &infer.index_elems, &infer.conname, infer.location)?;
            if infer.where_clause.is_some() {
                return Err(unsupported("ON CONFLICT with the condition of an index"));
            }
        }
        match clause.action() {
            OnConflictAction::OnconflictNothing => Ok(OnConflict { arbiters, action: Resolution::Skip }),
            OnConflictAction::OnconflictUpdate => {
                if clause.infer.is_none() {
                    let error = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    let error = SqlError::new(SqlState::SYNTAX_ERROR, error);
                    let error = error.hint("For example, ON CONFLICT (column_name).");
                    return Err(self.at(clause.location, error));
                }
                let mut columns = self.named_columns(table, range);
                let width = columns.len();
                let excluded = |column: &ScopeColumn| ScopeColumn {
                    table: Some("excluded".to_owned()),
                    ..column.clone()
                };
                columns.extend(self.columns_of(table).iter().map(excluded));
                self.scopes.push(Scope::new(columns, Clause::Update));
                let row = self.assignments(table, &clause.target_list, width);
                self.enter(Clause::Where);
                let condition = row.and_then(|row| Ok((row, self.condition(&clause.where_clause)?)));
                self.scopes.pop();
                let (row, condition) = condition?;
                if row.iter().chain(&condition).any(has_query) {
                    return Err(unsupported("a query in ON CONFLICT DO UPDATE"));
                }
                Ok(OnConflict { arbiters, action: Resolution::Update { row, condition } })
            }
            _ => Ok(OnConflict::refuse()),
        }
    }

    /// What a conflict's target says that conflicts are told by.
    fn inferred(
        &self,
        table: &Table,
        elements: &[Node],
        constraint: &str,
        location: i32,
    ) -> Result<Vec<Unique>, SqlError> {
        let mut named = Vec::new();
        for element in elements {
            match &element.node {
                Some(NodeEnum::IndexElem(element)) if element.expr.is_none() => {
                    let place = table.live().find(|(_, column)| column.name == element.name);
                    let Some((position, _)) = place else {
                        let error = format!("column \"{}\" does not exist", element.name);
                        return self.refuse(location, SqlState::UNDEFINED_COLUMN, error);
                    };
                    named.push(position);
                }
                _ => return Err(self.at(location, unsupported("ON CONFLICT with an expression"))),
            }
        }
        named.sort_unstable();
        named.dedup();
        let fits = |name: &str, is_constraint: bool, mut columns: Vec<usize>| match constraint {
            "" => {
                columns.sort_unstable();
                columns.dedup();
                columns == named
            }
            constraint => is_constraint && constraint == name,
        };
        let positions = |positions: &[u16]| positions.iter().map(|at| usize::from(*at)).collect();
        let mut arbiters = Vec::new();
        if !table.primary.is_empty() && fits(&table.primary_name, true, positions(&table.primary)) {
            arbiters.push(Unique::Primary);
        }
        let ready = table.indexes.iter().enumerate().filter(|(_, index)| index.unique && index.is_ready);
        for (place, index) in ready {
            let columns = index.parts.iter().map(|part| usize::from(part.column)).collect();
            if fits(&index.name, index.is_constraint, columns) {
                arbiters.push(Unique::Index(place));
            }
        }
        if !arbiters.is_empty() {
            return Ok(arbiters);
        }
        if !constraint.is_empty() {
            let error = format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error));
        }
        let error = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
        Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, error))
    }
}
