//! `CREATE INDEX`, `DROP INDEX`, `UNIQUE`.
//!
//! An index has to have an entry for every row, also for those that are there already. Outside of a
//! block it comes in steps, so that nobody waits for it:
//!
//! 1. Its descriptor is committed as one that is not ready. From then on every transaction that
//!    writes a row keeps its entry, since it reads the descriptor: one that has read the descriptor
//!    of before is refused when it commits.
//! 2. The rows are gone over in transactions of a few dozen, each of which reads rows *as they are
//!    now* and puts their entries. Being serializable, such a transaction either has before it what
//!    wrote a row, and sees the row, or after it, and then that keeps the entry.
//! 3. The last of them says that the index is ready. Statements are planned with it from then on.
//!
//! Two rows with one entry of a unique index end this: the index is dropped again. Within a block,
//! all of it is part of the transaction.

use std::collections::BTreeMap;

use pg_query::NodeEnum;
use pg_query::protobuf::{DropStmt, IndexStmt, Node, SortByDir, SortByNulls};
use plimsoll_types::mutants::{Mutant, planted};

use super::elements::object_name;
use super::rewrite::not_unique;
use super::{done, dropped, index_of, name_of};
use crate::analyze;
use crate::analyze::conflict::Unique;
use crate::catalog::{Index, IndexPart, Relation, Table};
use crate::encoding::{entry, key, order};
use crate::execute::scan::space;
use crate::functions::confused;
use crate::session::conversation::Session;
use crate::session::entries::stored_row;
use crate::session::names::schema_of;
use crate::session::portal::Work;
use crate::session::{Stop, World};
use crate::store::Range;
use crate::{Severity, SqlError, SqlState};

/// Rows whose entries are put in one transaction at most. Everybody else on a shard waits while it
/// reads them, and while it installs their entries.
const ROWS_MAX: usize = 32;

/// How often rows are tried whose writers were first each time.
const TRIES_MAX: u32 = 1000;

/// The longest pause before they are tried again, in microseconds.
const PAUSE_MAX_US: u64 = 20_000;

/// Columns of an index at most.
const PARTS_MAX: usize = 32;

/// An index that is to be made.
pub(super) struct NewIndex {
    /// Its name; empty if the statement says none.
    pub name: String,
    pub parts: Vec<IndexPart>,
    pub unique: bool,
    pub is_constraint: bool,
}

/// Up to where an index has entries.
struct Filled {
    /// The number of the table's rows.
    rows: u32,
    /// The first key that may lack one.
    low: Vec<u8>,
}

impl<W: World> Session<'_, W> {
    /// `CREATE INDEX`
    pub(super) async fn create_index(&mut self, index: &IndexStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        let range = index.relation.as_ref().ok_or_else(confused)?;
        let is_block = self.transaction.is_block();
        if index.concurrent && is_block {
            let error = "CREATE INDEX CONCURRENTLY cannot run inside a transaction block";
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, error).into());
        }
        check_kind(index)?;
        self.open_to_write("CREATE INDEX").await?;
        let schema = schema_of(&range.schemaname).to_owned();
        let Some(found) = self.look_up_table(schema.clone(), range.relname.clone()).await? else {
            let error = format!("relation \"{}\" does not exist", range.relname);
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, error).into());
        };
        self.refuse_pending("CREATE INDEX", &found)?;
        let mut table = Table::clone(&found);
        let parts = parts(&table, &index.index_params)?;
        if !index.idxname.is_empty() && index.if_not_exists {
            let taken = self.look_up(schema.clone(), index.idxname.clone()).await?;
            if taken.is_some() {
                let message = format!("relation \"{}\" already exists, skipping", index.idxname);
                let notice = SqlError::new(SqlState::DUPLICATE_TABLE, message);
                self.notice(&SqlError { severity: Severity::Notice, ..notice }, out);
                return done("CREATE INDEX");
            }
        }
        let new = NewIndex { name: index.idxname.clone(), parts, unique: index.unique, is_constraint: false };
        let id = self.add_index(&mut table, new).await?;
        self.keep_table(table.clone()).await?;
        if is_block || self.data.is_shared() {
            self.fill_now(table, id).await?;
        } else {
            self.commit().await?;
            self.fill_in_steps(&table, id).await?;
        }
        done("CREATE INDEX")
    }

    /// Adds an index to a table, which is not ready. Returns its OID.
    pub(super) async fn add_index(&mut self, table: &mut Table, new: NewIndex) -> Result<u32, Stop> {
        let NewIndex { name, parts, unique, is_constraint } = new;
        let name = match name.as_str() {
            "" => {
                let columns = parts.iter().filter_map(|part| table.columns.get(usize::from(part.column)));
                let columns: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
                let label = if is_constraint { "key" } else { "idx" };
                let wanted = object_name(&table.name, &columns.join("_"), label);
                self.free_name(&table.schema, &wanted).await?
            }
            _ => {
                self.check_free(&table.schema, &name).await?;
                name
            }
        };
        let id = self.new_id().await?;
        self.write_down(&table.schema, &name, Some(Relation::Index(table.name.clone()))).await?;
        let index = Index { id, rows: id, name, parts, unique, is_constraint, is_ready: false };
        table.indexes.push(index);
        Ok(id)
    }

    /// Puts the entries of all rows in the transaction that there is, and keeps the table with the
    /// index.
    pub(super) async fn fill_now(&mut self, table: Table, id: u32) -> Result<(), Stop> {
        let low = first_key(&table)?;
        let mut left =
            Some(Range { space: space(&table), high: key::after_prefix(&low), low, reverse: false });
        while let Some(range) = left.take() {
            left = self.fill(&table, place_of(&table, id)?, range, usize::MAX).await?;
            self.check_time(self.deadline_us())?;
            self.world.pause().await;
        }
        let mut table = table;
        ready(&mut table, id);
        self.keep_table(table).await
    }

    /// Puts the entries of all rows in transactions of their own. If that cannot be, there is no
    /// index.
    async fn fill_in_steps(&mut self, table: &Table, id: u32) -> Result<(), Stop> {
        let result = self.try_fill_in_steps(table, id).await;
        if result.is_err() {
            self.roll_back().await;
            for _ in 0..TRIES_MAX {
                match self.remove_index(table, id).await {
                    Err(Stop::Conflict(_)) => self.roll_back().await,
                    // If it cannot be removed, it stays as one that is not ready.
                    _ => break,
                }
                self.world.sleep(PAUSE_MAX_US).await;
            }
            self.roll_back().await;
        }
        result
    }

    async fn try_fill_in_steps(&mut self, table: &Table, id: u32) -> Result<(), Stop> {
        let mut filled = Filled { rows: table.rows, low: first_key(table)? };
        let (mut limit, mut tries) = (ROWS_MAX, 0);
        loop {
            match self.fill_step(table, id, &mut filled, limit).await {
                Ok(true) => return Ok(()),
                Ok(false) => (limit, tries) = ((limit * 2).min(ROWS_MAX), 0),
                Err(Stop::Conflict(_)) if tries < TRIES_MAX => {
                    self.roll_back().await;
                    tries += 1;
                    limit = (limit / 2).max(1);
                    self.world.sleep((u64::from(tries) * 100).min(PAUSE_MAX_US)).await;
                }
                Err(Stop::Conflict(conflict)) => return Err(conflict.error().into()),
                Err(stop) => return Err(stop),
            }
            self.check_time(self.deadline_us())?;
            self.world.give_way().await;
        }
    }

    /// A transaction that puts the entries of some rows. Says whether they were the last.
    async fn fill_step(
        &mut self,
        table: &Table,
        id: u32,
        filled: &mut Filled,
        limit: usize,
    ) -> Result<bool, Stop> {
        self.open_to_write("CREATE INDEX").await?;
        let found = self.look_up_table(table.schema.clone(), table.name.clone()).await?;
        let known = found.filter(|found| found.id == table.id);
        let table = known.ok_or_else(|| gone(&table.name))?;
        let place = place_of(&table, id)?;
        if table.rows != filled.rows {
            *filled = Filled { rows: table.rows, low: first_key(&table)? };
        }
        let high = key::after_prefix(&first_key(&table)?);
        let range = Range { space: space(&table), low: filled.low.clone(), high, reverse: false };
        let left = self.fill(&table, place, range, limit).await?;
        if left.is_none() {
            let mut table = Table::clone(&table);
            ready(&mut table, id);
            self.keep_table(table).await?;
        }
        self.commit().await?;
        Ok(match left {
            None => true,
            Some(left) => {
                filled.low = left.low;
                false
            }
        })
    }

    /// Puts the entries of the first rows of a range. Returns what is left of it.
    async fn fill(
        &mut self,
        table: &Table,
        place: usize,
        range: Range,
        limit: usize,
    ) -> Result<Option<Range>, Stop> {
        let index = table.indexes.get(place).ok_or_else(confused)?;
        let (pairs, left) = match planted(Mutant::IndexFromOldRows) {
            true => self.scan_newest(range.clone()).await?,
            false => self.scan_some(range.clone(), limit).await?,
        };
        let mut fresh = BTreeMap::new();
        for (key, value) in pairs {
            let row = stored_row(table, &key, &value)?;
            let whole = crate::session::writing::whole(table, &row);
            let entry = entry::entry(table, index, &whole, &key)?;
            let is_single = !entry.value.is_empty();
            if fresh.insert(entry.key, (entry.value, row.clone())).is_some() && is_single {
                return Err(not_unique(self.duplicate(table, Unique::Index(place), &row)).into());
            }
        }
        let single = fresh.iter().filter(|(_, (value, _))| !value.is_empty());
        let keys: Vec<Vec<u8>> = single.map(|(key, _)| key.clone()).collect();
        let found = self.get(space(table), &keys).await?;
        for (key, found) in keys.iter().zip(found) {
            let Some((value, row)) = fresh.get(key) else { continue };
            if found.is_some_and(|found| found != *value) {
                return Err(not_unique(self.duplicate(table, Unique::Index(place), row)).into());
            }
        }
        for (key, (value, _)) in fresh {
            self.put(space(table), key, Some(&value)).await?;
        }
        Ok(left)
    }

    /// A transaction that removes an index which is not ready.
    async fn remove_index(&mut self, table: &Table, id: u32) -> Result<(), Stop> {
        self.open_to_write("CREATE INDEX").await?;
        let found = self.look_up_table(table.schema.clone(), table.name.clone()).await?;
        if let Some(table) = found.filter(|found| found.id == table.id) {
            let mut table = Table::clone(&table);
            self.take_index(&mut table, id).await?;
            self.keep_table(table).await?;
        }
        self.commit().await
    }

    /// Takes an index from a table, with its name and its entries.
    pub(super) async fn take_index(&mut self, table: &mut Table, id: u32) -> Result<(), Stop> {
        let index = place_of(table, id)?;
        let prefix = entries_prefix(table, table.indexes.get(index).ok_or_else(confused)?)?;
        self.leave(space(table), prefix).await?;
        let index = table.indexes.remove(index);
        self.write_down(&table.schema, &index.name, None).await
    }

    /// `DROP INDEX`
    pub(super) async fn drop_indexes(&mut self, drop: &DropStmt, out: &mut Vec<u8>) -> Result<Work, Stop> {
        self.open_to_write("DROP INDEX").await?;
        for object in &drop.objects {
            let (schema, name) = name_of(object)?;
            let found = self.look_up(schema.to_owned(), name.to_owned()).await?;
            let Some(table) = dropped(name, "an index", found, index_of)? else {
                let error = format!("index \"{name}\" does not exist");
                let error = SqlError::new(SqlState::UNDEFINED_OBJECT, error);
                if !drop.missing_ok {
                    return Err(error.into());
                }
                self.skip(error, out);
                continue;
            };
            let found = self.look_up_table(schema.to_owned(), table).await?;
            let mut table = Table::clone(&*found.ok_or_else(confused)?);
            let index = table.indexes.iter().find(|index| index.name == name && !index.is_constraint);
            let Some(id) = index.map(|index| index.id) else {
                let (what, table) = ("constraint", &table.name);
                let error =
                    format!("cannot drop index {name} because {what} {name} on table {table} requires it");
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, error);
                let hint = format!("You can drop constraint {name} on table {table} instead.");
                return Err(error.hint(hint).into());
            };
            self.take_index(&mut table, id).await?;
            self.keep_table(table).await?;
        }
        done("DROP INDEX")
    }
}

/// What the keys of all rows of a table begin with, which is less than each of them.
fn first_key(table: &Table) -> Result<Vec<u8>, SqlError> {
    key::prefix(table.rows, key::partition_byte(table)?, &[])
}

/// What the keys of all entries of an index begin with.
pub(super) fn entries_prefix(table: &Table, index: &Index) -> Result<Vec<u8>, SqlError> {
    key::prefix(index.rows, entry::partition_byte(table, index), &[])
}

fn place_of(table: &Table, id: u32) -> Result<usize, SqlError> {
    table.indexes.iter().position(|index| index.id == id).ok_or_else(|| gone(&table.name))
}

fn gone(table: &str) -> SqlError {
    let error = format!("the index on table \"{table}\" was dropped while it was made");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error)
}

fn ready(table: &mut Table, id: u32) {
    if let Some(index) = table.indexes.iter_mut().find(|index| index.id == id) {
        index.is_ready = true;
    }
}

/// Refuses what an index is asked for and cannot be.
fn check_kind(index: &IndexStmt) -> Result<(), SqlError> {
    match index.access_method.as_str() {
        "" | "btree" | "hash" => {}
        method @ ("gin" | "gist" | "spgist" | "brin") => {
            return Err(analyze::unsupported(&format!("an index with access method \"{method}\"")));
        }
        method => {
            let error = format!("access method \"{method}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, error));
        }
    }
    let what = match () {
        () if index.where_clause.is_some() => "an index with WHERE",
        () if !index.index_including_params.is_empty() => "an index with INCLUDE",
        () if index.nulls_not_distinct => "NULLS NOT DISTINCT",
        () => return Ok(()),
    };
    Err(analyze::unsupported(what))
}

/// The parts that the columns of a statement make.
fn parts(table: &Table, nodes: &[Node]) -> Result<Vec<IndexPart>, SqlError> {
    if nodes.len() > PARTS_MAX {
        let error = format!("cannot use more than {PARTS_MAX} columns in an index");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, error));
    }
    let mut parts = Vec::new();
    for node in nodes {
        let Some(NodeEnum::IndexElem(element)) = &node.node else { return Err(confused()) };
        if element.expr.is_some() {
            return Err(analyze::unsupported("an index of an expression"));
        }
        let descending = element.ordering() == SortByDir::SortbyDesc;
        let nulls_first = match element.nulls_ordering() {
            SortByNulls::SortbyNullsFirst => true,
            SortByNulls::SortbyNullsLast => false,
            _ => descending,
        };
        let position = column_at(table, &element.name, "")?;
        parts.push(IndexPart { column: position, descending, nulls_first });
    }
    Ok(parts)
}

/// The parts of a constraint over these columns.
pub(super) fn constraint_parts(table: &Table, names: &[String]) -> Result<Vec<IndexPart>, SqlError> {
    let mut parts: Vec<IndexPart> = Vec::new();
    for name in names {
        let column = column_at(table, name, " named in key")?;
        if parts.iter().any(|part| part.column == column) {
            let error = format!("column \"{name}\" appears twice in unique constraint");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, error));
        }
        parts.push(IndexPart { column, descending: false, nulls_first: false });
    }
    Ok(parts)
}

/// The position of a column by whose values entries are ordered.
fn column_at(table: &Table, name: &str, how: &str) -> Result<u16, SqlError> {
    let Some((position, column)) = table.live().find(|(_, column)| column.name == name) else {
        let error = format!("column \"{name}\"{how} does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, error));
    };
    if !order::is_ordered(column.oid) {
        return Err(order::not_ordered(column.oid));
    }
    u16::try_from(position).map_err(|_| confused())
}
