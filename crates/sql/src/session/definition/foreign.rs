//! `FOREIGN KEY`: what a constraint says, and whether the rows that are there agree.

use std::sync::Arc;

use crate::analyze;
use crate::analyze::names::strings;
use crate::catalog::{Action, Reference, Table};
use crate::encoding::{key, row};
use crate::execute::scan::space;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::references::{Changes, is_comparable, is_same};
use crate::session::writing::live;
use crate::session::{Stop, World};
use crate::store::Range;
use crate::{SqlError, SqlState};

use super::elements::{ForeignKey, constraint_names, free_constraint_name};

impl<W: World> Session<'_, W> {
    /// Adds a foreign key to a table that is made or changed. The table that it names learns of it.
    pub(super) async fn add_reference(
        &mut self,
        table: &mut Table,
        foreign: &ForeignKey<'_>,
    ) -> Result<String, Stop> {
        let constraint = foreign.constraint;
        if !constraint.fk_del_set_cols.is_empty() {
            return Err(analyze::unsupported("SET NULL or SET DEFAULT of some columns").into());
        }
        let range = constraint.pktable.as_ref().ok_or_else(confused)?;
        let (schema, name) = (schema_of(&range.schemaname).to_owned(), range.relname.clone());
        let is_itself = schema == table.schema && name == table.name;
        let parent = match is_itself {
            true => Arc::new(table.clone()),
            false => {
                let found = self.look_up_table(schema, name.clone()).await.map_err(|stop| match stop {
                    Stop::Error(error) if error.state == SqlState::WRONG_OBJECT_TYPE => {
                        let error = format!("referenced relation \"{name}\" is not a table");
                        Stop::Error(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error))
                    }
                    other => other,
                })?;
                let error = || {
                    let error = format!("relation \"{name}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_TABLE, error)
                };
                found.ok_or_else(error)?
            }
        };
        let mut reference = reference(table, &parent, foreign)?;
        reference.id = self.new_id().await?;
        let name = reference.name.clone();
        table.references.push(reference);
        let named = (table.schema.clone(), table.name.clone());
        if is_itself {
            if !table.referrers.contains(&named) {
                table.referrers.push(named);
            }
        } else if !parent.referrers.contains(&named) {
            let mut parent = Table::clone(&parent);
            parent.referrers.push(named);
            self.keep_table(parent).await?;
        }
        Ok(name)
    }

    /// Looks whether all rows of a table agree with a foreign key.
    pub(super) async fn test_reference(&mut self, table: &Arc<Table>, name: &str) -> Result<(), Stop> {
        let mut only = Table::clone(table);
        only.references.retain(|reference| reference.name == name);
        only.referrers.clear();
        only.references.iter_mut().for_each(|reference| reference.is_deferrable = false);
        let mut changes = Changes::default();
        let low = key::prefix(table.rows, key::partition_byte(table)?, &[])?;
        let mut left =
            Some(Range { space: space(table), high: key::after_prefix(&low), low, reverse: false });
        let only = Arc::new(only);
        while let Some(range) = left.take() {
            let (pairs, rest) = self.scan(range).await?;
            for (key, value) in pairs {
                let row = live(table, row::read_row(table, &key, &value)?);
                changes.note(&only, None, Some(&row));
            }
            self.look_up_keys(&only, &mut changes).await?;
            self.world.pause().await;
            left = rest;
        }
        self.enforce(&only, changes).await
    }
}

/// A foreign key as the descriptor has it, without a number.
fn reference(table: &Table, parent: &Table, foreign: &ForeignKey<'_>) -> Result<Reference, SqlError> {
    let constraint = foreign.constraint;
    let own: Vec<&str> = match &foreign.column {
        Some(column) => vec![column],
        None => strings(&constraint.fk_attrs),
    };
    let columns = positions(table, &own)?;
    let wanted = strings(&constraint.pk_attrs);
    let to_columns = match wanted.is_empty() {
        false => positions(parent, &wanted)?,
        true if parent.primary.is_empty() => {
            let error = format!("there is no primary key for referenced table \"{}\"", parent.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error));
        }
        true => parent.primary.clone(),
    };
    let is_unique = is_same(&parent.primary, &to_columns)
        || parent.indexes.iter().any(|index| {
            let parts: Vec<u16> = index.parts.iter().map(|part| part.column).collect();
            index.unique && (index.is_ready || parent.id == table.id) && is_same(&parts, &to_columns)
        });
    if !is_unique {
        let error = format!(
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            parent.name
        );
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, error));
    }
    if columns.len() != to_columns.len() {
        let error = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, error));
    }
    let name = match constraint.conname.as_str() {
        "" => free_constraint_name(table, &own.join("_"), "fkey"),
        name if constraint_names(table).iter().any(|other| other == name) => {
            let error = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, error));
        }
        name => name.to_owned(),
    };
    check_types(table, parent, &name, (&columns, &to_columns))?;
    Ok(Reference {
        id: 0,
        name,
        columns,
        to_schema: parent.schema.clone(),
        to_table: parent.name.clone(),
        to_columns,
        is_full: constraint.fk_matchtype == "f",
        on_update: action(&constraint.fk_upd_action),
        on_delete: action(&constraint.fk_del_action),
        is_deferrable: foreign.deferral.0 || foreign.deferral.1,
        is_deferred: foreign.deferral.1,
    })
}

/// Refuses to compare columns that cannot be.
fn check_types(
    table: &Table,
    parent: &Table,
    name: &str,
    (columns, to_columns): (&[u16], &[u16]),
) -> Result<(), SqlError> {
    for (from, to) in columns.iter().zip(to_columns) {
        let column =
            |table: &Table, at: &u16| table.columns.get(usize::from(*at)).cloned().ok_or_else(confused);
        let (from, to) = (column(table, from)?, column(parent, to)?);
        if is_comparable(from.oid, to.oid) {
            continue;
        }
        let (shown_from, shown_to) = (from.oid.display(), to.oid.display());
        if analyze::can_compare(from.oid, to.oid) {
            let what = format!("a foreign key of type {shown_from} to one of type {shown_to}");
            return Err(analyze::unsupported(&what));
        }
        let error = format!("foreign key constraint \"{name}\" cannot be implemented");
        let detail = format!(
            "Key columns \"{}\" and \"{}\" are of incompatible types: {shown_from} and {shown_to}.",
            from.name, to.name
        );
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, error).detail(detail));
    }
    Ok(())
}

fn positions(table: &Table, names: &[&str]) -> Result<Vec<u16>, SqlError> {
    let position = |name: &&str| {
        let found = table.live().find(|(_, column)| column.name == **name).map(|(at, _)| at);
        let at = found.ok_or_else(|| {
            let error = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, error)
        })?;
        u16::try_from(at).map_err(|_| confused())
    };
    names.iter().map(position).collect()
}

fn action(letter: &str) -> Action {
    match letter {
        "r" => Action::Restrict,
        "c" => Action::Cascade,
        "n" => Action::SetNull,
        "d" => Action::SetDefault,
        _ => Action::NoAction,
    }
}
