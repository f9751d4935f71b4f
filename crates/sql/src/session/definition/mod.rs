//! Tables made, changed, emptied and dropped.
//!
//! | module | has |
//! |---|---|
//! | here | `CREATE TABLE`, `DROP TABLE`, `TRUNCATE` |
//! | `alter` | `ALTER TABLE` |
//! | `index` | indexes, `UNIQUE` |
//! | `sweep` | rows of dropped tables |
//!
//! A table is its descriptor, so this is a transaction that writes descriptors; every statement
//! reads those of its tables in its own transaction. A table's rows lie under a number that no
//! other table ever has, so rows of a dropped table can be removed later, when nobody can see them
//! any more: their number is written down with the drop. The session that has dropped the table
//! removes them then, some hundred in a transaction, and with them what others have left
//! ([`Session::sweep`]).

mod alter;
mod index;
mod sweep;

use std::rc::Rc;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    ColumnDef, ConstrType, Constraint, CreateStmt, DropBehavior, DropStmt, Node, ObjectType, RangeVar,
    TruncateStmt,
};

use super::conversation::Session;
use super::data::schema_of;
use super::portal::Work;
use super::{Stop, World};
use crate::analyze::names::strings;
use crate::analyze::{self, write};
use crate::catalog::{Column, PUBLIC, Placement, Relation, Table};
use crate::encoding::descriptor::{descriptor_key, next_id_key, read_next_id, write_next_id};
use crate::encoding::key;
use crate::functions::confused;
use crate::store::Space;
use crate::types::Oid;
use crate::{Severity, SqlError, SqlState};
use alter::not_unique;
use index::NewIndex;

/// The number of the first table, as PostgreSQL numbers what is not its own.
const FIRST_ID: u32 = 16_384;

/// Bytes of a name at most.
const NAME_BYTES_MAX: usize = 63;

/// Columns of a table at most.
const COLUMNS_MAX: usize = 1_600;

impl<W: World> Session<'_, W> {
    /// Makes, changes, empties or drops tables.
    pub(super) async fn define(
        &mut self,
        node: &NodeEnum,
        text: &Rc<str>,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        match node {
            NodeEnum::CreateStmt(create) => self.create_table(create, text, out).await,
            NodeEnum::DropStmt(drop) => self.drop_tables(drop, out).await,
            NodeEnum::TruncateStmt(truncate) => self.truncate(truncate).await,
            NodeEnum::AlterTableStmt(alter) => self.alter(alter).await,
            NodeEnum::IndexStmt(index) => self.create_index(index, out).await,
            _ => Err(confused().into()),
        }
    }

    async fn create_table(
        &mut self,
        create: &CreateStmt,
        text: &Rc<str>,
        out: &mut Vec<u8>,
    ) -> Result<Work, Stop> {
        let range = create.relation.as_ref().ok_or_else(confused)?;
        let (mut table, keys) = self.described(create, range, text)?;
        self.open_to_write("CREATE TABLE").await?;
        if self.look_up(table.schema.clone(), table.name.clone()).await?.is_some() {
            let error = format!("relation \"{}\" already exists", table.name);
            let error = SqlError::new(SqlState::DUPLICATE_TABLE, error);
            if create.if_not_exists {
                let notice = SqlError { severity: Severity::Notice, ..error };
                let message = format!("{}, skipping", notice.message);
                self.notice(&SqlError { message, ..notice }, out);
                return done("CREATE TABLE");
            }
            return Err(error.into());
        }
        table.id = self.new_id().await?;
        table.rows = table.id;
        for key in keys {
            if key.is_primary {
                self.name_primary_key(&mut table, &key.name).await?;
            } else {
                let parts = index::constraint_parts(&table, &key.columns)
                    .map_err(|error| analyze::placed(text, key.location, error))?;
                let new = NewIndex { name: key.name, parts, unique: true, is_constraint: true };
                self.add_index(&mut table, new).await?;
            }
        }
        table.indexes.iter_mut().for_each(|index| index.is_ready = true);
        self.keep_table(table).await?;
        done("CREATE TABLE")
    }

    /// A number that no table has had.
    async fn new_id(&mut self) -> Result<u32, Stop> {
        let key = next_id_key();
        let found = self.get(Space::Copied, std::slice::from_ref(&key)).await?;
        let id = match found.into_iter().next().flatten() {
            Some(bytes) => read_next_id(&bytes)?,
            None => FIRST_ID,
        };
        let next = id.checked_add(1).ok_or_else(|| {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "there are no numbers left for tables")
        })?;
        self.put(Space::Copied, key, Some(&write_next_id(next))).await?;
        Ok(id)
    }

    /// Writes the descriptor of a table.
    async fn keep_table(&mut self, table: Table) -> Result<(), Stop> {
        let (schema, name) = (table.schema.clone(), table.name.clone());
        self.write_down(&schema, &name, Some(Relation::Table(Arc::new(table)))).await
    }

    /// Writes what a name stands for; nothing, if there is none any more.
    async fn write_down(&mut self, schema: &str, name: &str, relation: Option<Relation>) -> Result<(), Stop> {
        let bytes = relation.as_ref().map(Relation::to_bytes);
        self.put(Space::Copied, descriptor_key(schema, name), bytes.as_deref()).await?;
        self.data.learn(schema, name, relation);
        Ok(())
    }

    /// Gives a table's rows and the entries of its indexes new numbers: there are none any more.
    async fn renumber(&mut self, table: &mut Table) -> Result<(), Stop> {
        table.rows = self.new_id().await?;
        for index in &mut table.indexes {
            index.rows = self.new_id().await?;
        }
        Ok(())
    }

    /// A name in a schema that is free: this one, or with the first number behind it that makes it
    /// one.
    async fn free_name(&mut self, schema: &str, wanted: &str) -> Result<String, Stop> {
        let mut name = wanted.to_owned();
        let mut number = 0;
        while self.look_up(schema.to_owned(), name.clone()).await?.is_some() {
            number += 1;
            name = format!("{wanted}{number}");
        }
        Ok(name)
    }

    /// Refuses a name that something has.
    async fn check_free(&mut self, schema: &str, name: &str) -> Result<(), Stop> {
        if self.look_up(schema.to_owned(), name.to_owned()).await?.is_none() {
            return Ok(());
        }
        let error = format!("relation \"{name}\" already exists");
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, error).into())
    }

    /// Names the primary key of a table, and gives its index an OID. The name is free if the
    /// statement does not say it.
    async fn name_primary_key(&mut self, table: &mut Table, named: &str) -> Result<(), Stop> {
        table.primary_name = match named {
            "" => self.free_name(&table.schema, &format!("{}_pkey", table.name)).await?,
            named => {
                self.check_free(&table.schema, named).await?;
                named.to_owned()
            }
        };
        table.primary_id = self.new_id().await?;
        let index = Relation::Index(table.name.clone());
        self.write_down(&table.schema, &table.primary_name, Some(index)).await
    }

    /// The descriptor of a table to be made, without numbers, and its keys, the primary one first.
    fn described(
        &self,
        create: &CreateStmt,
        range: &RangeVar,
        text: &str,
    ) -> Result<(Table, Vec<Key>), SqlError> {
        let refuse = |what: &str| Err(analyze::unsupported(what));
        if range.relpersistence == "t" {
            return refuse("a temporary table");
        }
        if !create.inh_relations.is_empty() || create.of_typename.is_some() {
            return refuse("INHERITS, PARTITION OF or OF");
        }
        if create.partspec.is_some() {
            return refuse("PARTITION BY");
        }
        let schema = schema_of(&range.schemaname).to_owned();
        if schema != PUBLIC {
            let error = format!("schema \"{schema}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_SCHEMA, error));
        }
        let mut table = Table::new(schema, range.relname.clone());
        let mut keys: Vec<Key> = Vec::new();
        for element in &create.table_elts {
            match &element.node {
                Some(NodeEnum::ColumnDef(definition)) => {
                    let column = self.column(&table, definition, &mut keys, text)?;
                    table.columns.push(column);
                }
                Some(NodeEnum::Constraint(constraint)) => key_of(constraint, None, &mut keys)?,
                _ => return refuse("this kind of element of a table"),
            }
        }
        if table.columns.len() > COLUMNS_MAX {
            let error = format!("tables can have at most {COLUMNS_MAX} columns");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error));
        }
        keys.sort_by_key(|key| !key.is_primary);
        if let Some(second) = keys.get(1).filter(|key| key.is_primary) {
            let error = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            let error = SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error);
            return Err(analyze::placed(text, second.location, error));
        }
        if let Some(key) = keys.first().filter(|key| key.is_primary) {
            let set = set_primary_key(&mut table, &key.columns);
            set.map_err(|error| analyze::placed(text, key.location, error))?;
            place_by_key(&mut table);
        }
        self.options(&mut table, &create.options)?;
        Ok((table, keys))
    }

    /// What `WITH (...)` says: options of PostgreSQL's storage mean nothing here.
    fn options(&self, table: &mut Table, options: &[Node]) -> Result<(), SqlError> {
        for option in options {
            let Some(NodeEnum::DefElem(option)) = &option.node else { return Err(confused()) };
            match option.defname.as_str() {
                "replicated" => table.placement = Placement::Everywhere,
                "fillfactor" | "autovacuum_enabled" | "toast_tuple_target" | "parallel_workers" => {}
                name => {
                    let error = format!("unrecognized parameter \"{name}\"");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error));
                }
            }
        }
        Ok(())
    }

    fn column(
        &self,
        table: &Table,
        definition: &ColumnDef,
        keys: &mut Vec<Key>,
        text: &str,
    ) -> Result<Column, SqlError> {
        let name = definition.colname.clone();
        if table.columns.iter().any(|column| column.name == name) {
            let error = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        let type_name = definition.type_name.as_ref().ok_or_else(confused)?;
        let (oid, modifier) = analyze::type_of(type_name, text, &self.settings)?;
        if oid == Oid::VOID || oid == Oid::RECORD || oid == Oid::UNKNOWN {
            let error = format!("column \"{name}\" has pseudo-type {}", oid.display());
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error));
        }
        let mut column = Column::new(name, oid, modifier);
        for node in &definition.constraints {
            let Some(NodeEnum::Constraint(constraint)) = &node.node else { return Err(confused()) };
            match constraint.contype() {
                ConstrType::ConstrNotnull => column.not_null = true,
                ConstrType::ConstrNull => {}
                ConstrType::ConstrDefault => {
                    let expression = constraint.raw_expr.as_ref().ok_or_else(confused)?;
                    // Looks whether it can be one.
                    write::default_of(expression, text, oid, modifier, &self.settings)?;
                    column.default = Some(analyze::printed(expression)?);
                }
                _ => key_of(constraint, Some(&column.name), keys)?,
            }
        }
        Ok(column)
    }

    async fn drop_tables(&mut self, drop: &DropStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        match drop.remove_type() {
            ObjectType::ObjectTable => {}
            ObjectType::ObjectIndex => return self.drop_indexes(drop, out).await,
            _ => return Err(analyze::unsupported("DROP of anything but a table or an index").into()),
        }
        if drop.behavior() == DropBehavior::Undefined {
            return Err(confused().into());
        }
        self.open_to_write("DROP TABLE").await?;
        for object in &drop.objects {
            let (schema, name) = name_of(object)?;
            let found = self.look_up(schema.to_owned(), name.to_owned()).await?;
            let Some(table) = dropped(name, "a table", found, table_of)? else {
                let error = format!("table \"{name}\" does not exist");
                let error = SqlError::new(SqlState::UNDEFINED_TABLE, error);
                self.skip_or_refuse(drop.missing_ok, error, out)?;
                continue;
            };
            self.write_down(&table.schema, &table.name, None).await?;
            if !table.primary.is_empty() {
                self.write_down(&table.schema, &table.primary_name, None).await?;
            }
            for index in &table.indexes {
                self.write_down(&table.schema, &index.name, None).await?;
            }
            self.leave_rows(&table).await?;
        }
        done("DROP TABLE")
    }

    /// What is missing is an error, or a notice if the statement says `IF EXISTS`.
    fn skip_or_refuse(&mut self, is_ok: bool, missing: SqlError, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if !is_ok {
            return Err(missing);
        }
        let message = format!("{}, skipping", missing.message);
        self.notice(&SqlError { severity: Severity::Notice, message, ..missing }, out);
        Ok(())
    }

    async fn truncate(&mut self, truncate: &TruncateStmt) -> Result<Work, Stop> {
        self.open_to_write("TRUNCATE TABLE").await?;
        for relation in &truncate.relations {
            let Some(NodeEnum::RangeVar(range)) = &relation.node else { return Err(confused().into()) };
            let schema = schema_of(&range.schemaname).to_owned();
            let Some(table) = self.look_up_table(schema, range.relname.clone()).await? else {
                let error = format!("relation \"{}\" does not exist", range.relname);
                return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
            };
            self.leave_rows(&table).await?;
            let mut table = Table::clone(&table);
            self.renumber(&mut table).await?;
            self.keep_table(table).await?;
        }
        done("TRUNCATE TABLE")
    }
}

fn done(tag: &str) -> Result<Work, Stop> {
    Ok(Work::Done(tag.to_owned()))
}

/// What is to be dropped, if it is of the right kind.
fn dropped<T>(
    name: &str,
    kind: &str,
    found: Option<Relation>,
    of_kind: impl FnOnce(Relation) -> Result<T, Relation>,
) -> Result<Option<T>, SqlError> {
    let other = match found.map(of_kind) {
        None => return Ok(None),
        Some(Ok(right)) => return Ok(Some(right)),
        Some(Err(other)) => other,
    };
    let hint = match other {
        Relation::Table(_) => "Use DROP TABLE to remove a table.",
        Relation::Index(_) => "Use DROP INDEX to remove an index.",
        Relation::Sequence(_) => "Use DROP SEQUENCE to remove a sequence.",
    };
    let error = format!("\"{name}\" is not {kind}");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, error).hint(hint))
}

fn table_of(relation: Relation) -> Result<Arc<Table>, Relation> {
    if let Relation::Table(table) = relation { Ok(table) } else { Err(relation) }
}

fn index_of(relation: Relation) -> Result<String, Relation> {
    if let Relation::Index(table) = relation { Ok(table) } else { Err(relation) }
}

/// The schema and the name of what is to be dropped.
fn name_of(object: &Node) -> Result<(&str, &str), SqlError> {
    let Some(NodeEnum::List(list)) = &object.node else { return Err(confused()) };
    match strings(&list.items).as_slice() {
        [name] => Ok((PUBLIC, *name)),
        [.., schema, name] => Ok((*schema, *name)),
        [] => Err(confused()),
    }
}

/// The name of something that belongs to a table, as PostgreSQL makes it: the longer ones of the
/// first two parts are cut until all fit.
fn named_object(table: &str, columns: &str, label: &str) -> String {
    let (mut table, mut columns) = (table, columns);
    let room = NAME_BYTES_MAX - label.len() - 2;
    while table.len() + columns.len() > room {
        let longer = if table.len() > columns.len() { &mut table } else { &mut columns };
        let shorter = longer.floor_char_boundary(longer.len() - 1);
        *longer = longer.get(..shorter).unwrap_or_default();
    }
    format!("{table}_{columns}_{label}")
}

/// A `PRIMARY KEY` or `UNIQUE` as a statement has it.
struct Key {
    columns: Vec<String>,
    name: String,
    location: i32,
    is_primary: bool,
}

/// Notes the key of a constraint: of its own columns, or of the one that it stands at.
fn key_of(constraint: &Constraint, column: Option<&str>, keys: &mut Vec<Key>) -> Result<(), SqlError> {
    let what = match constraint.contype() {
        kind @ (ConstrType::ConstrPrimary | ConstrType::ConstrUnique) => {
            if constraint.deferrable || !constraint.including.is_empty() || constraint.nulls_not_distinct {
                return Err(analyze::unsupported("a key that is DEFERRABLE, INCLUDE or NULLS NOT DISTINCT"));
            }
            let columns = match column {
                Some(column) => vec![column.to_owned()],
                None => strings(&constraint.keys).into_iter().map(str::to_owned).collect(),
            };
            let (name, location) = (constraint.conname.clone(), constraint.location);
            keys.push(Key { columns, name, location, is_primary: kind == ConstrType::ConstrPrimary });
            return Ok(());
        }
        ConstrType::ConstrCheck => "CHECK",
        ConstrType::ConstrForeign => "FOREIGN KEY",
        ConstrType::ConstrIdentity => "GENERATED AS IDENTITY",
        ConstrType::ConstrGenerated => "a generated column",
        ConstrType::ConstrExclusion => "EXCLUDE",
        _ => "this kind of constraint",
    };
    Err(analyze::unsupported(what))
}

/// Places rows by their primary key: those that share the first column of several are likely to be
/// used together.
fn place_by_key(table: &mut Table) {
    if table.placement == Placement::Everywhere {
        return;
    }
    table.placement = Placement::Hash(u16::from(table.primary.len() > 1));
    if key::partition_byte(table).is_err() {
        table.placement = Placement::Hash(0);
    }
}

/// Makes columns the primary key of a table.
fn set_primary_key(table: &mut Table, names: &[String]) -> Result<(), SqlError> {
    for name in names {
        let place = table.columns.iter().position(|column| column.name == *name);
        let (Some(place), Some(column)) = (place, place.and_then(|place| table.columns.get_mut(place)))
        else {
            let error = format!("column \"{name}\" named in key does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, error));
        };
        let position = u16::try_from(place).map_err(|_| confused())?;
        if table.primary.contains(&position) {
            let error = format!("column \"{name}\" appears twice in primary key constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        if !crate::encoding::order::is_ordered(column.oid) {
            return Err(crate::encoding::order::not_ordered(column.oid));
        }
        column.not_null = true;
        table.primary.push(position);
    }
    Ok(())
}
