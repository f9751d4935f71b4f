//! `ALTER TABLE`.

use std::collections::BTreeMap;

use pg_query::NodeEnum;
use pg_query::protobuf::{AlterTableStmt, AlterTableType};

use super::index::{NewIndex, constraint_parts};
use super::{done, key_of, place_by_key, set_primary_key};
use crate::analyze;
use crate::analyze::write::Unique;
use crate::catalog::Table;
use crate::encoding::{key, row};
use crate::execute::scan::space;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::data::schema_of;
use crate::session::portal::Work;
use crate::session::writing::live;
use crate::session::{Stop, World};
use crate::store::Range;
use crate::types::Datum;
use crate::{SqlError, SqlState};

impl<W: World> Session<'_, W> {
    /// `ALTER TABLE ... ADD PRIMARY KEY`: rows go to new keys, under a new number; `ADD UNIQUE`.
    pub(super) async fn alter(&mut self, alter: &AlterTableStmt) -> Result<Work, Stop> {
        let range = alter.relation.as_ref().ok_or_else(confused)?;
        let [command] = alter.cmds.as_slice() else {
            return Err(analyze::unsupported("ALTER TABLE with several actions").into());
        };
        let Some(NodeEnum::AlterTableCmd(command)) = &command.node else { return Err(confused().into()) };
        let definition = command.def.as_ref().and_then(|definition| definition.node.as_ref());
        let mut keys = Vec::new();
        match (command.subtype(), definition) {
            (AlterTableType::AtAddConstraint, Some(NodeEnum::Constraint(constraint)))
                if constraint.indexname.is_empty() =>
            {
                key_of(constraint, None, &mut keys)?;
            }
            _ => return Err(analyze::unsupported("this action of ALTER TABLE").into()),
        }
        let key = keys.pop().ok_or_else(confused)?;
        self.open_to_write("ALTER TABLE").await?;
        let schema = schema_of(&range.schemaname).to_owned();
        let Some(old) = self.look_up_table(schema, range.relname.clone()).await? else {
            let error = format!("relation \"{}\" does not exist", range.relname);
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
        };
        let mut table = Table::clone(&old);
        if !key.is_primary {
            let parts = constraint_parts(&table, &key.columns)?;
            let new = NewIndex { name: key.name, parts, unique: true, is_constraint: true };
            let id = self.add_index(&mut table, new).await?;
            self.fill_now(table, id).await?;
            return done("ALTER TABLE");
        }
        if !old.primary.is_empty() {
            let error = format!("multiple primary keys for table \"{}\" are not allowed", old.name);
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error).into());
        }
        set_primary_key(&mut table, &key.columns)?;
        self.name_primary_key(&mut table, &key.name).await?;
        place_by_key(&mut table);
        self.renumber(&mut table).await?;
        self.copy_rows(&old, &table).await?;
        self.leave_rows(&old).await?;
        self.keep_table(table).await?;
        done("ALTER TABLE")
    }

    /// Writes the rows of a table under the keys of another with the same columns.
    async fn copy_rows(&mut self, old: &Table, new: &Table) -> Result<(), Stop> {
        let low = key::prefix(old.rows, key::partition_byte(old)?, &[])?;
        let mut left = Some(Range { space: space(old), high: key::after_prefix(&low), low, reverse: false });
        while let Some(range) = left.take() {
            let (pairs, rest) = self.scan(range).await?;
            let mut rows = BTreeMap::new();
            for (key, value) in pairs {
                let values = row::read_row(old, &key, &value)?;
                refuse_nulls(new, &values)?;
                let (key, value) = (key::row_key(new, &values)?, row::write_row(new, &values)?);
                if rows.insert(key, (value, values.clone())).is_some() {
                    return Err(not_unique(self.duplicate(new, Unique::Primary, &live(new, values))).into());
                }
            }
            let keys: Vec<Vec<u8>> = rows.keys().cloned().collect();
            let found = self.get(space(new), &keys).await?;
            for ((key, (value, values)), found) in rows.into_iter().zip(found) {
                if found.is_some() {
                    return Err(not_unique(self.duplicate(new, Unique::Primary, &live(new, values))).into());
                }
                self.put(space(new), key.clone(), Some(&value)).await?;
                self.put_entries(new, &key, &live(new, values)).await?;
            }
            self.world.pause().await;
            left = rest;
        }
        Ok(())
    }
}

/// Refuses a row that has no value in a column which is NOT NULL from now on.
fn refuse_nulls(table: &Table, values: &[Datum]) -> Result<(), SqlError> {
    let mut columns = table.columns.iter().zip(values);
    let Some((column, _)) = columns.find(|(column, value)| column.not_null && value.is_null()) else {
        return Ok(());
    };
    let error = format!("column \"{}\" of relation \"{}\" contains null values", column.name, table.name);
    Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, error))
}

/// The error of a key that is there twice, as the index that is made has it.
pub(super) fn not_unique(error: SqlError) -> SqlError {
    let name = error.message.rsplit(' ').next().unwrap_or_default();
    let message = format!("could not create unique index {name}");
    let detail = error.detail.map(|detail| detail.replace("already exists", "is duplicated"));
    SqlError { message, detail, ..SqlError::new(SqlState::UNIQUE_VIOLATION, "") }
}
