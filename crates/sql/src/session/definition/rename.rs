//! `ALTER ... RENAME`: tables, columns, constraints, sequences, indexes.
//!
//! Other descriptors name a table, so they are written anew as well; rows are not touched.

use std::sync::Arc;

use pg_query::protobuf::{ObjectType, RenameStmt};

use super::done;
use super::drop::Dependent;
use super::elements::constraint_names;
use crate::analyze::{self, stored};
use crate::catalog::{Relation, Sequence, Table};
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::sequences::next_name;
use crate::session::{Stop, World};
use crate::{SqlError, SqlState};

impl<W: World> Session<'_, W> {
    pub(super) async fn rename(&mut self, rename: &RenameStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        let kind = rename.rename_type();
        let tag = match (kind, rename.relation_type()) {
            (ObjectType::ObjectTable | ObjectType::ObjectTabconstraint, _) => "ALTER TABLE",
            (ObjectType::ObjectColumn, ObjectType::ObjectTable) => "ALTER TABLE",
            (ObjectType::ObjectSequence, _) => "ALTER SEQUENCE",
            (ObjectType::ObjectIndex, _) => "ALTER INDEX",
            _ => return Err(analyze::unsupported("renaming this kind of object").into()),
        };
        let range = rename.relation.as_ref().ok_or_else(confused)?;
        self.open_to_write(tag).await?;
        let schema = schema_of(&range.schemaname).to_owned();
        let Some(found) = self.look_up(schema.clone(), range.relname.clone()).await? else {
            let error = format!("relation \"{}\" does not exist", range.relname);
            let error = SqlError::new(SqlState::UNDEFINED_TABLE, error);
            if !rename.missing_ok {
                return Err(error.into());
            }
            self.skip(error, out);
            return done(tag);
        };
        if let Relation::Table(table) = &found {
            self.refuse_pending("ALTER TABLE", table)?;
        }
        match (kind, found) {
            (ObjectType::ObjectColumn, Relation::Table(table)) => {
                self.rename_column(&table, &rename.subname, &rename.newname).await?;
            }
            (ObjectType::ObjectTabconstraint, Relation::Table(table)) => {
                self.rename_constraint(&table, &rename.subname, &rename.newname).await?;
            }
            (ObjectType::ObjectTable, Relation::Table(table)) => {
                self.rename_table(&table, &rename.newname).await?;
            }
            (ObjectType::ObjectTable | ObjectType::ObjectSequence, Relation::Sequence(sequence)) => {
                self.rename_sequence(&sequence, &rename.newname).await?;
            }
            (ObjectType::ObjectTable | ObjectType::ObjectIndex, Relation::Index(table)) => {
                let Some(table) = self.look_up_table(schema, table).await? else {
                    return Err(confused().into());
                };
                self.rename_index(&table, &range.relname, &rename.newname).await?;
            }
            (kind, _) => {
                let kind = match kind {
                    ObjectType::ObjectSequence => "sequence",
                    ObjectType::ObjectIndex => "index",
                    _ => "table",
                };
                let article = if kind == "index" { "an" } else { "a" };
                let error = format!("\"{}\" is not {article} {kind}", range.relname);
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).into());
            }
        }
        done(tag)
    }

    async fn rename_table(&mut self, table: &Arc<Table>, to: &str) -> Result<(), Stop> {
        self.check_free(&table.schema, to).await?;
        let sequences = self.sequences_of(table).await?;
        let referrers = self.referrers_of(table).await?;
        let mut renamed = Table { name: to.to_owned(), ..Table::clone(table) };
        let is_it = |schema: &str, name: &str| schema == table.schema && name == table.name;
        self.write_down(&table.schema, &table.name, None).await?;
        for reference in &mut renamed.references {
            if is_it(&reference.to_schema, &reference.to_table) {
                reference.to_table = to.to_owned();
            }
        }
        let named = renamed.referrers.iter_mut().filter(|(schema, name)| is_it(schema, name));
        named.for_each(|(_, name)| *name = to.to_owned());
        for sequence in sequences {
            let mut sequence = Sequence::clone(&sequence);
            if let Some((owner, _)) = &mut sequence.owner {
                *owner = to.to_owned();
            }
            self.keep_sequence(sequence).await?;
        }
        for referrer in referrers.iter().filter(|referrer| referrer.id != table.id) {
            let mut referrer = Table::clone(referrer);
            let to_it = referrer.references.iter_mut().filter(|it| is_it(&it.to_schema, &it.to_table));
            to_it.for_each(|reference| reference.to_table = to.to_owned());
            self.keep_table(referrer).await?;
        }
        for reference in &table.references {
            let parent = self.look_up_table(reference.to_schema.clone(), reference.to_table.clone()).await?;
            let Some(parent) = parent.filter(|parent| parent.id != table.id) else { continue };
            let mut parent = Table::clone(&parent);
            let named = parent.referrers.iter_mut().filter(|(schema, name)| is_it(schema, name));
            named.for_each(|(_, name)| *name = to.to_owned());
            self.keep_table(parent).await?;
        }
        let primary = (!table.primary.is_empty()).then_some(&table.primary_name);
        for name in primary.into_iter().chain(table.indexes.iter().map(|index| &index.name)) {
            self.write_down(&table.schema, name, Some(Relation::Index(to.to_owned()))).await?;
        }
        self.keep_table(renamed).await
    }

    async fn rename_column(&mut self, table: &Table, from: &str, to: &str) -> Result<(), Stop> {
        let mut table = table.clone();
        let Some(position) = table.live().find(|(_, column)| column.name == from).map(|(at, _)| at) else {
            let error = format!("column \"{from}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, error).into());
        };
        if table.live().any(|(_, column)| column.name == to) {
            let error = format!("column \"{to}\" of relation \"{}\" already exists", table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error).into());
        }
        if let Some(column) = table.columns.get_mut(position) {
            column.name = to.to_owned();
        }
        for check in &mut table.checks {
            check.condition = stored::renamed(&check.condition, from, to)?;
        }
        self.keep_table(table).await
    }

    async fn rename_constraint(&mut self, table: &Table, from: &str, to: &str) -> Result<(), Stop> {
        if !constraint_names(table).iter().any(|name| name == from) {
            let error = format!("constraint \"{from}\" for table \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error).into());
        }
        let is_index = !table.primary.is_empty() && table.primary_name == from
            || table.indexes.iter().any(|index| index.name == from);
        if is_index {
            return self.rename_index(table, from, to).await;
        }
        if constraint_names(table).iter().any(|name| name == to) {
            let error = format!("constraint \"{to}\" for relation \"{}\" already exists", table.name);
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, error).into());
        }
        let mut table = table.clone();
        let checks = table.checks.iter_mut().map(|check| &mut check.name);
        let references = table.references.iter_mut().map(|reference| &mut reference.name);
        checks.chain(references).filter(|name| *name == from).for_each(|name| *name = to.to_owned());
        self.keep_table(table).await
    }

    async fn rename_index(&mut self, table: &Table, from: &str, to: &str) -> Result<(), Stop> {
        self.check_free(&table.schema, to).await?;
        let mut table = table.clone();
        if table.primary_name == from {
            table.primary_name = to.to_owned();
        }
        let indexes = table.indexes.iter_mut().filter(|index| index.name == from);
        indexes.for_each(|index| index.name = to.to_owned());
        self.write_down(&table.schema, from, None).await?;
        self.write_down(&table.schema, to, Some(Relation::Index(table.name.clone()))).await?;
        self.keep_table(table).await
    }

    async fn rename_sequence(&mut self, sequence: &Sequence, to: &str) -> Result<(), Stop> {
        self.check_free(&sequence.schema, to).await?;
        let is_it = |schema: &str, name: &str| schema_of(schema) == sequence.schema && name == sequence.name;
        let new_name = next_name(&sequence.schema, to);
        for dependent in self.defaults_of(sequence, &[]).await? {
            let Dependent::Default(table, position) = dependent else { continue };
            let Some(table) = self.look_up_table(table.schema.clone(), table.name.clone()).await? else {
                continue;
            };
            let mut table = Table::clone(&table);
            if let Some(default) = table.columns.get_mut(position).and_then(|column| column.default.as_mut())
            {
                *default = stored::with_sequence(default, is_it, &new_name)?;
            }
            self.keep_table(table).await?;
        }
        self.write_down(&sequence.schema, &sequence.name, None).await?;
        self.keep_sequence(Sequence { name: to.to_owned(), ..sequence.clone() }).await
    }
}
