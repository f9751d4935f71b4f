//! What `ALTER TABLE` does with rows: one pass over all of them, which tests them or writes them
//! anew, under a new number, in the transaction of the statement.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::analyze::conflict::Unique;
use crate::analyze::plan::Expr;
use crate::analyze::stored;
use crate::catalog::{Column, Table};
use crate::encoding::{key, row};
use crate::execute::rows::Row;
use crate::execute::scan::space;
use crate::session::conversation::Session;
use crate::session::writing::live;
use crate::session::{Stop, World};
use crate::store::{Pair, Range};
use crate::types::Datum;
use crate::{SqlError, SqlState};

/// A change of a table, while it is put together.
pub(super) struct Change {
    /// The table as it is.
    pub old: Arc<Table>,
    /// As it is to be.
    pub table: Table,
    /// What its columns are, by position, over a row as it is; what is not said stays.
    pub sources: Vec<Option<Expr>>,
    /// Whether rows have to be written anew.
    pub rewrites: bool,
    /// Whether there may be a NULL where none may be.
    pub tests_null: bool,
    /// Indexes that lack entries.
    pub unfilled: Vec<u32>,
    /// Names of foreign keys that rows may not agree with.
    pub named: Vec<String>,
    /// Names of conditions that may be false of some row.
    pub tested: Vec<String>,
}

impl Change {
    /// None, yet.
    pub(super) fn of(old: Arc<Table>) -> Change {
        let sources = vec![None; old.columns.len()];
        let table = Table::clone(&old);
        Change {
            old,
            table,
            sources,
            rewrites: false,
            tests_null: false,
            unfilled: Vec::new(),
            named: Vec::new(),
            tested: Vec::new(),
        }
    }

    /// The position of a column of the new table.
    pub(super) fn position(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.table.live().find(|(_, column)| column.name == name);
        found.map(|(position, _)| position).ok_or_else(|| {
            let error = format!("column \"{name}\" of relation \"{}\" does not exist", self.table.name);
            SqlError::new(SqlState::UNDEFINED_COLUMN, error)
        })
    }
}

impl<W: World> Session<'_, W> {
    /// Carries a change out.
    pub(super) async fn finish_change(&mut self, change: Change) -> Result<(), Stop> {
        let Change { old, mut table, sources, rewrites, tests_null, unfilled, named, tested } = change;
        let all = self.analyzed(|names| stored::conditions(&table, names)).await?;
        let conditions: Vec<_> = all.into_iter().filter(|it| tested.contains(&it.name)).collect();
        if rewrites {
            table.columns.iter_mut().for_each(|column| column.missing = None);
            self.renumber(&mut table).await?;
        }
        if rewrites || tests_null || !conditions.is_empty() {
            let low = key::prefix(old.rows, key::partition_byte(&old)?, &[])?;
            let mut left =
                Some(Range { space: space(&old), high: key::after_prefix(&low), low, reverse: false });
            let mut hidden = None;
            while let Some(range) = left.take() {
                let (pairs, rest) = self.scan(range).await?;
                let mut rows = Vec::with_capacity(pairs.len());
                for pair in pairs {
                    let values = self.changed(&old, &table, &sources, &pair).await?;
                    refuse_null(&table, &values)?;
                    if !conditions.is_empty() {
                        let seen = live(&table, values.clone());
                        for condition in &conditions {
                            let held = self.evaluate(std::slice::from_ref(&condition.expr), &seen).await?;
                            if held == [Datum::Bool(false)] {
                                return Err(violated(&table, &condition.name).into());
                            }
                        }
                    }
                    rows.push(values);
                }
                if rewrites {
                    self.write_anew(&table, rows, &mut hidden).await?;
                }
                self.world.pause().await;
                left = rest;
            }
        }
        if rewrites {
            self.leave_rows(&old).await?;
        }
        let unfilled: Vec<u32> = match rewrites {
            true => table.indexes.iter().map(|index| index.id).collect(),
            false => unfilled,
        };
        for id in unfilled {
            self.fill_now(table.clone(), id).await?;
            table.indexes.iter_mut().filter(|index| index.id == id).for_each(|index| index.is_ready = true);
        }
        let kept = Arc::new(table.clone());
        self.keep_table(table).await?;
        for name in named {
            self.test_reference(&kept, &name).await?;
        }
        Ok(())
    }

    /// A row as the change makes it.
    async fn changed(
        &mut self,
        old: &Table,
        new: &Table,
        sources: &[Option<Expr>],
        (key, value): &Pair,
    ) -> Result<Vec<Datum>, Stop> {
        let mut values = row::read_row(old, key, value)?;
        let computes = sources.iter().any(Option::is_some);
        let seen = if computes { live(old, values.clone()) } else { Row::new() };
        values.resize(new.columns.len(), Datum::Null);
        for (value, source) in values.iter_mut().zip(sources) {
            if let Some(expr) = source {
                let evaluated = self.evaluate(std::slice::from_ref(expr), &seen).await?;
                *value = evaluated.into_iter().next().unwrap_or(Datum::Null);
            }
        }
        for (value, column) in values.iter_mut().zip(&new.columns) {
            if column.dropped {
                *value = Datum::Null;
            }
        }
        Ok(values)
    }

    /// Writes rows, whose keys are to be different.
    async fn write_anew(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Datum>>,
        hidden: &mut Option<u64>,
    ) -> Result<(), Stop> {
        let mut keyed = BTreeMap::new();
        for values in rows {
            let key = match table.primary.is_empty() {
                true => self.next_hidden(table, hidden),
                false => key::row_key(table, &values)?,
            };
            match keyed.entry(key) {
                Entry::Vacant(vacant) => drop(vacant.insert(values)),
                Entry::Occupied(_) => return Err(self.twice(table, values).into()),
            }
        }
        let keys: Vec<Vec<u8>> = keyed.keys().cloned().collect();
        let found = self.get(space(table), &keys).await?;
        for ((key, values), found) in keyed.into_iter().zip(found) {
            if found.is_some() {
                return Err(self.twice(table, values).into());
            }
            let stored = row::write_row(table, &values)?;
            self.put(space(table), key, Some(&stored)).await?;
        }
        Ok(())
    }

    /// The error of a row with the key of another.
    fn twice(&self, table: &Table, values: Vec<Datum>) -> SqlError {
        not_unique(self.duplicate(table, Unique::Primary, &live(table, values)))
    }
}

fn refuse_null(table: &Table, values: &[Datum]) -> Result<(), SqlError> {
    let is_missing = |column: &Column, value: &Datum| !column.dropped && column.not_null && value.is_null();
    let missing = table.columns.iter().zip(values).find(|(column, value)| is_missing(column, value));
    let Some((column, _)) = missing else { return Ok(()) };
    let error = format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name);
    Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, error).about(table.column_subject(&column.name)))
}

fn violated(table: &Table, name: &str) -> SqlError {
    let error = format!("check constraint \"{name}\" of relation \"{}\" is violated by some row", table.name);
    SqlError::new(SqlState::CHECK_VIOLATION, error).about(table.constraint(name))
}

/// The error of a key that is there twice, as the index that is made has it.
pub(super) fn not_unique(error: SqlError) -> SqlError {
    let name = error.message.rsplit(' ').next().unwrap_or_default();
    let message = format!("could not create unique index {name}");
    let detail = error.detail.map(|detail| detail.replace("already exists", "is duplicated"));
    SqlError { message, detail, subject: error.subject, ..SqlError::new(SqlState::UNIQUE_VIOLATION, "") }
}
