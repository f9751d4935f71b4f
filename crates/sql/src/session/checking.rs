//! What is tested of a row before it is written: NULLs where none may be, and conditions.

use super::conversation::Session;
use super::writing::Writing;
use super::{Stop, World};
use crate::analyze::stored::Condition;
use crate::catalog::Table;
use crate::types::{self, Datum};
use crate::{SqlError, SqlState, Subject};

/// Bytes of a value that a detail shows of a row.
const SHOWN_BYTES: usize = 64;

impl<W: World> Session<'_, W> {
    /// Tests a row that a statement is to write.
    pub(super) async fn check_row(&mut self, writing: &Writing<'_>, row: &[Datum]) -> Result<(), Stop> {
        if writing.is_checked {
            return Ok(());
        }
        self.check_not_null(&writing.write.table, row)?;
        self.check_conditions(&writing.write.table, &writing.write.conditions, row).await
    }

    /// Tests whether conditions of a table's row are true, or unknown.
    pub(super) async fn check_conditions(
        &mut self,
        table: &Table,
        conditions: &[Condition],
        row: &[Datum],
    ) -> Result<(), Stop> {
        for condition in conditions {
            let held = self.evaluate(std::slice::from_ref(&condition.expr), row).await?;
            if held == [Datum::Bool(false)] {
                let error = format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    table.name, condition.name
                );
                let error = SqlError::new(SqlState::CHECK_VIOLATION, error).detail(self.failing(table, row)?);
                return Err(error.about(table.constraint(&condition.name)).into());
            }
        }
        Ok(())
    }

    /// Tests whether there are values where NULL is refused.
    pub(super) fn check_not_null(&self, table: &Table, row: &[Datum]) -> Result<(), SqlError> {
        let missing = table.live().zip(row).find(|((_, column), value)| column.not_null && value.is_null());
        let Some(((_, column), _)) = missing else { return Ok(()) };
        let error = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            column.name, table.name
        );
        let error = SqlError::new(SqlState::NOT_NULL_VIOLATION, error).detail(self.failing(table, row)?);
        Err(error.about(table.column_subject(&column.name)))
    }

    /// What a detail says of a row that is refused.
    fn failing(&self, table: &Table, row: &[Datum]) -> Result<String, SqlError> {
        let mut shown = Vec::new();
        for ((_, column), value) in table.live().zip(row) {
            let mut text = String::new();
            match value {
                Datum::Null => text.push_str("null"),
                value => types::print(value, column.oid, &self.style, &mut text)?,
            }
            if text.len() > SHOWN_BYTES {
                text.truncate(text.floor_char_boundary(SHOWN_BYTES));
                text.push_str("...");
            }
            shown.push(text);
        }
        Ok(format!("Failing row contains ({}).", shown.join(", ")))
    }
}

impl Table {
    /// The table and a constraint of it, as what an error is about.
    pub(super) fn constraint(&self, name: &str) -> Subject {
        Subject { constraint: name.to_owned(), ..self.subject() }
    }

    /// The table and a column of it, as what an error is about.
    pub(super) fn column_subject(&self, name: &str) -> Subject {
        Subject { column: name.to_owned(), ..self.subject() }
    }

    /// The table, as what an error is about.
    pub(super) fn subject(&self) -> Subject {
        Subject { schema: self.schema.clone(), table: self.name.clone(), ..Subject::default() }
    }
}
