//! `DROP TABLE` and `DROP SEQUENCE`, and what goes with them.

use std::sync::Arc;

use pg_query::protobuf::{DropBehavior, DropStmt, ObjectType};

use super::{done, dropped, name_of, table_of};
use crate::analyze::{self, stored};
use crate::catalog::{Relation, Sequence, Table};
use crate::session::conversation::Session;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::{Stop, World};
use crate::{Severity, SqlError, SqlState};

/// Something that depends on what is dropped.
pub(super) enum Dependent {
    /// A foreign key, by its table and its name.
    Reference(Arc<Table>, String),
    /// The default of a column, by its table and the column's position.
    Default(Arc<Table>, usize),
}

impl Dependent {
    /// What messages call it.
    fn shown(&self) -> String {
        match self {
            Dependent::Reference(table, name) => format!("constraint {name} on table {}", table.name),
            Dependent::Default(table, position) => {
                let name = table.columns.get(*position).map_or("", |column| column.name.as_str());
                format!("default value for column {name} of table {}", table.name)
            }
        }
    }
}

impl<W: World> Session<'_, W> {
    pub(super) async fn drop_relations(&mut self, drop: &DropStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        let (kind, tag) = match drop.remove_type() {
            ObjectType::ObjectTable => ("table", "DROP TABLE"),
            ObjectType::ObjectSequence => ("sequence", "DROP SEQUENCE"),
            ObjectType::ObjectIndex => return self.drop_indexes(drop, out).await,
            _ => return Err(analyze::unsupported("DROP of this kind of object").into()),
        };
        let cascades = drop.behavior() == DropBehavior::DropCascade;
        self.open_to_write(tag).await?;
        let (mut tables, mut sequences) = (Vec::new(), Vec::new());
        for object in &drop.objects {
            let (schema, name) = name_of(object)?;
            let found = self.look_up(schema.to_owned(), name.to_owned()).await?;
            let is_there = match kind {
                "table" => dropped(name, "a table", found, table_of)?.map(|table| {
                    if !tables.contains(&table) {
                        tables.push(table);
                    }
                }),
                _ => dropped(name, "a sequence", found, sequence_of)?.map(|sequence| {
                    if !sequences.contains(&sequence) {
                        sequences.push(sequence);
                    }
                }),
            };
            if is_there.is_none() {
                let error = format!("{kind} \"{name}\" does not exist");
                let error = SqlError::new(SqlState::UNDEFINED_TABLE, error);
                if !drop.missing_ok {
                    return Err(error.into());
                }
                self.skip(error, out);
            }
        }
        let count = tables.len() + sequences.len();
        let mut dependents = Vec::new();
        for table in &tables {
            self.refuse_pending("DROP TABLE", table)?;
            dependents.extend(self.dependents_of_table(table, &tables).await?);
        }
        for sequence in &sequences {
            self.refuse_needed(sequence).await?;
            let named = format!("sequence {}", sequence.name);
            let defaults = self.defaults_of(sequence, &[]).await?;
            dependents.extend(defaults.into_iter().map(|dependent| (dependent, named.clone())));
        }
        let dropped = match (tables.first(), sequences.first()) {
            _ if count > 1 => None,
            (Some(table), _) => Some(format!("table {}", table.name)),
            (_, Some(sequence)) => Some(format!("sequence {}", sequence.name)),
            _ => None,
        };
        self.cut(dependents, dropped.as_deref(), cascades, out).await?;
        for table in &tables {
            self.remove_table(table).await?;
        }
        for sequence in &sequences {
            self.remove_sequence(sequence).await?;
        }
        done(tag)
    }

    /// Tells the client that something was not there, or was already.
    pub(super) fn skip(&self, error: SqlError, out: &mut Vec<u8>) {
        let message = format!("{}, skipping", error.message);
        // What is there already is told with a state of its own, as in PostgreSQL.
        let state = match error.state {
            SqlState::DUPLICATE_TABLE | SqlState::DUPLICATE_COLUMN => error.state,
            _ => SqlState::SUCCESSFUL_COMPLETION,
        };
        self.notice(&SqlError { severity: Severity::Notice, state, message, ..error }, out);
    }

    /// What depends on a table but for some tables themselves, each with what it depends on.
    async fn dependents_of_table(
        &mut self,
        table: &Table,
        but_for: &[Arc<Table>],
    ) -> Result<Vec<(Dependent, String)>, Stop> {
        let mut dependents = Vec::new();
        for referrer in self.referrers_of(table).await? {
            if but_for.contains(&referrer) || referrer.id == table.id {
                continue;
            }
            let to_it = referrer.references.iter();
            let to_it = to_it.filter(|it| it.to_schema == table.schema && it.to_table == table.name);
            dependents.extend(to_it.map(|reference| {
                let dependent = Dependent::Reference(Arc::clone(&referrer), reference.name.clone());
                (dependent, format!("table {}", table.name))
            }));
        }
        for sequence in self.sequences_of(table).await? {
            let named = format!("sequence {}", sequence.name);
            let defaults = self.defaults_of(&sequence, but_for).await?;
            dependents.extend(defaults.into_iter().map(|dependent| (dependent, named.clone())));
        }
        Ok(dependents)
    }

    /// The tables whose rows name keys of a table.
    pub(in crate::session) async fn referrers_of(&mut self, table: &Table) -> Result<Vec<Arc<Table>>, Stop> {
        let mut referrers = Vec::new();
        for (schema, name) in &table.referrers {
            referrers.extend(self.look_up_table(schema.clone(), name.clone()).await?);
        }
        Ok(referrers)
    }

    /// The defaults of columns that take numbers of a sequence, but for those of some tables.
    pub(super) async fn defaults_of(
        &mut self,
        sequence: &Sequence,
        but_for: &[Arc<Table>],
    ) -> Result<Vec<Dependent>, Stop> {
        let mut defaults = Vec::new();
        for relation in self.all_relations().await? {
            let Relation::Table(table) = relation else { continue };
            if but_for.contains(&table) {
                continue;
            }
            for (position, column) in table.live() {
                let Some(default) = column.default.as_ref().filter(|it| it.contains("nextval")) else {
                    continue;
                };
                let is_it = |(schema, name): &(String, String)| {
                    schema_of(schema) == sequence.schema && *name == sequence.name
                };
                if stored::sequences_in(default)?.iter().any(is_it) {
                    defaults.push(Dependent::Default(Arc::clone(&table), position));
                }
            }
        }
        Ok(defaults)
    }

    /// Refuses to drop the sequence of an identity column.
    async fn refuse_needed(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        let Some((table, position)) = &sequence.owner else { return Ok(()) };
        let Some(table) = self.look_up_table(sequence.schema.clone(), table.clone()).await? else {
            return Ok(());
        };
        match table.columns.get(usize::from(*position)) {
            Some(column) if column.identity.is_some() => {
                let column = format!("column {} of table {}", column.name, table.name);
                let error = format!("cannot drop sequence {} because {column} requires it", sequence.name);
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, error);
                Err(error.hint(format!("You can drop {column} instead.")).into())
            }
            _ => Ok(()),
        }
    }

    /// Removes what depends on something that is dropped, or refuses to.
    pub(super) async fn cut(
        &mut self,
        dependents: Vec<(Dependent, String)>,
        dropped: Option<&str>,
        cascades: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        if dependents.is_empty() {
            return Ok(());
        }
        if !cascades {
            let error = match dropped {
                Some(dropped) => format!("cannot drop {dropped} because other objects depend on it"),
                None => "cannot drop desired object(s) because other objects depend on them".to_owned(),
            };
            let lines: Vec<String> =
                dependents.iter().map(|(it, on)| format!("{} depends on {on}", it.shown())).collect();
            let error =
                SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, error).detail(lines.join("\n"));
            return Err(error.hint("Use DROP ... CASCADE to drop the dependent objects too.").into());
        }
        let lines: Vec<String> =
            dependents.iter().map(|(it, _)| format!("drop cascades to {}", it.shown())).collect();
        let notice = match lines.as_slice() {
            [only] => SqlError::new(SqlState::SUCCESSFUL_COMPLETION, only.as_str()),
            _ => {
                let notice = format!("drop cascades to {} other objects", lines.len());
                SqlError::new(SqlState::SUCCESSFUL_COMPLETION, notice).detail(lines.join("\n"))
            }
        };
        self.notice(&SqlError { severity: Severity::Notice, ..notice }, out);
        for (dependent, _) in dependents {
            let table = match &dependent {
                Dependent::Reference(table, _) | Dependent::Default(table, _) => table,
            };
            // An earlier one may have changed it.
            let Some(table) = self.look_up_table(table.schema.clone(), table.name.clone()).await? else {
                continue;
            };
            let mut table = Table::clone(&table);
            match dependent {
                Dependent::Reference(_, name) => {
                    let gone = table.references.iter().position(|it| it.name == name);
                    if let Some(gone) = gone {
                        let reference = table.references.remove(gone);
                        self.forget_referrer(&table, (&reference.to_schema, &reference.to_table)).await?;
                    }
                }
                Dependent::Default(_, position) => {
                    if let Some(column) = table.columns.get_mut(position) {
                        column.default = None;
                    }
                }
            }
            self.keep_table(table).await?;
        }
        Ok(())
    }

    /// Removes a table, with all that belongs to it.
    async fn remove_table(&mut self, table: &Arc<Table>) -> Result<(), Stop> {
        for sequence in self.sequences_of(table).await? {
            self.remove_sequence(&sequence).await?;
        }
        self.write_down(&table.schema, &table.name, None).await?;
        if !table.primary.is_empty() {
            self.write_down(&table.schema, &table.primary_name, None).await?;
        }
        for index in &table.indexes {
            self.write_down(&table.schema, &index.name, None).await?;
        }
        for reference in &table.references {
            let gone = Table { references: Vec::new(), ..Table::clone(table) };
            self.forget_referrer(&gone, (&reference.to_schema, &reference.to_table)).await?;
        }
        self.leave_rows(table).await
    }

    /// Takes a table out of the list of those that refer to another, if it does so no more.
    pub(super) async fn forget_referrer(
        &mut self,
        table: &Table,
        (schema, name): (&str, &str),
    ) -> Result<(), Stop> {
        let still = table.references.iter().any(|it| it.to_schema == schema && it.to_table == name);
        let is_itself = table.schema == schema && table.name == name;
        if still || is_itself {
            return Ok(());
        }
        let Some(other) = self.look_up_table(schema.to_owned(), name.to_owned()).await? else {
            return Ok(());
        };
        let mut other = Table::clone(&other);
        other.referrers.retain(|(schema, name)| *schema != table.schema || *name != table.name);
        self.keep_table(other).await
    }

    pub(super) async fn remove_sequence(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        self.write_down(&sequence.schema, &sequence.name, None).await?;
        self.leave_state(sequence).await
    }
}

fn sequence_of(relation: Relation) -> Result<Arc<Sequence>, Relation> {
    if let Relation::Sequence(sequence) = relation { Ok(sequence) } else { Err(relation) }
}
