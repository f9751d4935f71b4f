//! Tables made, changed, emptied and dropped.
//!
//! | module | has |
//! |---|---|
//! | here | `CREATE TABLE` |
//! | `truncate` | `TRUNCATE` |
//! | `elements` | columns and constraints as statements have them |
//! | `alter`, `columns`, `constraints` | `ALTER TABLE` |
//! | `foreign` | foreign keys |
//! | `made` | `CREATE TABLE AS` |
//! | `like` | `LIKE` |
//! | `index` | indexes, `UNIQUE` |
//! | `rewrite` | rows of changed tables |
//! | `rename` | `ALTER ... RENAME` |
//! | `drop` | `DROP`, and what goes with it |
//! | `sequence` | `CREATE SEQUENCE`, `ALTER SEQUENCE` |
//! | `sweep` | rows of dropped tables |
//!
//! A table is its descriptor, so this is a transaction that writes descriptors; every statement
//! reads those of its tables in its own transaction. A table's rows lie under a number that no
//! other table ever has, so rows of a dropped table can be removed later, when nobody can see them
//! any more: their number is written down with the drop. The session that has dropped the table
//! removes them then, some hundred in a transaction, and with them what others have left
//! ([`Session::sweep`]).

mod alter;
mod columns;
mod constraints;
mod drop;
mod elements;
mod foreign;
mod index;
mod like;
mod made;
mod rename;
mod rewrite;
mod sequence;
mod sweep;
mod truncate;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    ConstrType, Constraint, CreateStmt, Node, ObjectType, PartitionSpec, PartitionStrategy, RangeVar,
};

use super::conversation::Session;
use super::names::schema_of;
use super::portal::Work;
use super::{Stop, World};
use crate::analyze::names::strings;
use crate::analyze::{self, Catalog};
use crate::catalog::{Check, PUBLIC, Placement, Relation, Table};
use crate::encoding::descriptor::descriptor_key;
use crate::encoding::key;
use crate::functions::confused;
use crate::store::Space;
use crate::{Severity, SqlError, SqlState};
use elements::{Elements, Reader};
use index::NewIndex;
pub(super) use sweep::{Sweep, left_key, note_key, written_note};

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
            NodeEnum::DropStmt(drop) => self.drop_relations(drop, out).await,
            NodeEnum::TruncateStmt(truncate) => self.truncate(truncate, out).await,
            NodeEnum::AlterTableStmt(alter) => self.alter(alter, text, out).await,
            NodeEnum::SelectStmt(select) => self.select_into(select, text, out).await,
            NodeEnum::CreateTableAsStmt(create) => {
                if create.objtype() != ObjectType::ObjectTable {
                    return Err(analyze::unsupported("a materialized view").into());
                }
                let query = create.query.as_deref().ok_or_else(confused)?;
                let into = create.into.as_deref().ok_or_else(confused)?;
                self.create_table_as(query, into, create.if_not_exists, text, out).await
            }
            NodeEnum::IndexStmt(index) => self.create_index(index, out).await,
            NodeEnum::RenameStmt(rename) => self.rename(rename, out).await,
            NodeEnum::CreateSeqStmt(create) => self.create_sequence(create, text, out).await,
            NodeEnum::AlterSeqStmt(alter) => self.alter_sequence(alter, text, out).await,
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
        self.open_to_write("CREATE TABLE").await?;
        let (mut table, mut elements) = self.analyzed(|names| described(create, range, text, names)).await?;
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
        // Those of a table that this one is like.
        for place in 0..table.checks.len() {
            let id = self.new_id().await?;
            table.checks.iter_mut().skip(place).take(1).for_each(|check| check.id = id);
        }
        for constraint in std::mem::take(&mut elements.checks) {
            let id = self.new_id().await?;
            let check = elements::check(&table, constraint)?;
            if table.checks.iter().any(|other| other.name == check.name) {
                let error = format!("check constraint \"{}\" already exists", check.name);
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, error).into());
            }
            table.checks.push(Check { id, ..check });
        }
        for key in std::mem::take(&mut elements.keys) {
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
        for numbered in std::mem::take(&mut elements.sequences) {
            self.number_column(&mut table, &numbered).await?;
        }
        for foreign in &elements.references {
            self.add_reference(&mut table, foreign).await?;
        }
        self.keep_table(table).await?;
        done("CREATE TABLE")
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

    /// Refuses to change a table while tests of its rows are put off.
    fn refuse_pending(&self, statement: &str, table: &Table) -> Result<(), SqlError> {
        if !self.data.deferrals.concern(table) {
            return Ok(());
        }
        let error = format!("cannot {statement} \"{}\" because it has pending trigger events", table.name);
        Err(SqlError::new(SqlState::OBJECT_IN_USE, error))
    }
}

/// The descriptor of a table to be made, without numbers, and what else the statement says of it.
fn described<'a>(
    create: &'a CreateStmt,
    range: &RangeVar,
    text: &str,
    catalog: &dyn Catalog,
) -> Result<(Table, Elements<'a>), SqlError> {
    let refuse = |what: &str| Err(analyze::unsupported(what));
    if range.relpersistence == "t" {
        return refuse("a temporary table");
    }
    if !create.inh_relations.is_empty() || create.of_typename.is_some() {
        return refuse("INHERITS, PARTITION OF or OF");
    }
    let schema = schema_of(&range.schemaname).to_owned();
    if schema != PUBLIC {
        let error = format!("schema \"{schema}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_SCHEMA, error));
    }
    let mut table = Table::new(schema, range.relname.clone());
    let mut elements = Elements::default();
    for element in &create.table_elts {
        match &element.node {
            Some(NodeEnum::ColumnDef(definition)) => {
                let reader = Reader { text, default_text: text, catalog };
                let column = elements::column(&table, definition, &mut elements, &reader)?;
                table.columns.push(column);
            }
            Some(NodeEnum::Constraint(constraint)) => elements::table_constraint(constraint, &mut elements)?,
            Some(NodeEnum::TableLikeClause(like)) => {
                like::include(&mut table, like, &mut elements, text, catalog)?;
            }
            _ => return refuse("this kind of element of a table"),
        }
    }
    check_width(&table)?;
    elements.keys.sort_by_key(|key| !key.is_primary);
    if let Some(second) = elements.keys.get(1).filter(|key| key.is_primary) {
        let error = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
        let error = SqlError::new(SqlState::INVALID_TABLE_DEFINITION, error);
        return Err(analyze::placed(text, second.location, error));
    }
    if let Some(key) = elements.keys.first().filter(|key| key.is_primary) {
        let set = set_primary_key(&mut table, &key.columns);
        set.map_err(|error| analyze::placed(text, key.location, error))?;
        place_by_key(&mut table);
    }
    elements::look_at_checks(&table, &elements.checks, text, catalog)?;
    if let Some(spec) = &create.partspec {
        place_by(&mut table, spec, text)?;
    }
    options(&mut table, &create.options)?;
    Ok((table, elements))
}

/// Refuses a table with more columns than a table may have.
fn check_width(table: &Table) -> Result<(), SqlError> {
    if table.columns.len() <= COLUMNS_MAX {
        return Ok(());
    }
    let error = format!("tables can have at most {COLUMNS_MAX} columns");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error))
}

/// What `WITH (...)` says: options of PostgreSQL's storage mean nothing here.
fn options(table: &mut Table, options: &[Node]) -> Result<(), SqlError> {
    for option in options {
        let Some(NodeEnum::DefElem(option)) = &option.node else { return Err(confused()) };
        match option.defname.as_str() {
            "replicated" => table.placement = Placement::Everywhere,
            name => storage_option(name)?,
        }
    }
    Ok(())
}

/// Accepts an option of PostgreSQL's storage.
fn storage_option(name: &str) -> Result<(), SqlError> {
    match name {
        "fillfactor" | "autovacuum_enabled" | "toast_tuple_target" | "parallel_workers" => Ok(()),
        name => {
            let error = format!("unrecognized parameter \"{name}\"");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
        }
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

/// A `PRIMARY KEY` or `UNIQUE` as a statement has it.
pub(super) struct Key {
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

/// Places rows by the columns of `PARTITION BY HASH`, the first of the primary key: those that
/// agree in them are on one shard.
fn place_by(table: &mut Table, spec: &PartitionSpec, text: &str) -> Result<(), SqlError> {
    if spec.strategy() != PartitionStrategy::Hash {
        return Err(analyze::unsupported("PARTITION BY but HASH"));
    }
    let mut positions = Vec::new();
    for param in &spec.part_params {
        let Some(NodeEnum::PartitionElem(element)) = &param.node else { return Err(confused()) };
        if element.expr.is_some() {
            return Err(analyze::unsupported("PARTITION BY an expression"));
        }
        let place = table.columns.iter().position(|column| column.name == element.name);
        let place = place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
            let error = format!("column \"{}\" named in partition key does not exist", element.name);
            analyze::placed(text, element.location, SqlError::new(SqlState::UNDEFINED_COLUMN, error))
        })?;
        positions.push(place);
    }
    let count = positions.len();
    let first: BTreeSet<&u16> = table.primary.iter().take(count).collect();
    if first != positions.iter().collect() {
        let error = "PARTITION BY HASH names columns that are not the first of the primary key";
        return Err(analyze::placed(
            text,
            spec.location,
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error)
                .hint("Begin the primary key with these columns."),
        ));
    }
    table.placement = Placement::Hash(u16::try_from(count).map_err(|_| confused())?);
    key::partition_byte(table).map(|_| ())
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
