//! `INSERT`, `UPDATE` and `DELETE`: what becomes of the rows of their query.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::conversation::Session;
use super::entries::{Taken, stored_row};
use super::references::Changes;
use super::{Line, Stop, Stream, World};
use crate::analyze::Query;
use crate::analyze::conflict::{OnConflict, Resolution, Unique};
use crate::analyze::plan::Expr;
use crate::analyze::write::{Kind, Write};
use crate::catalog::Table;
use crate::encoding::{key, row};
use crate::execute::Run;
use crate::execute::rows::{MEMORY_MAX, Row, weight};
use crate::execute::scan::space;
use crate::functions::confused;
use crate::types::{self, Datum};
use crate::{SqlError, SqlState};

/// Rows whose keys are looked up together.
const CHUNK: usize = 256;

/// Bits of a hidden key below the time.
const CHANCE_BITS: u32 = 12;

/// A statement that writes, while it does.
pub(super) struct Writing<'a> {
    query: &'a Query,
    pub(super) write: &'a Write,
    run: &'a Run,
    count: u64,
    returned: Vec<Row>,
    /// Bytes of these.
    returned_bytes: usize,
    /// The hidden number of the next row.
    hidden: Option<u64>,
    /// Which of the rows at hand it is at.
    at: usize,
    /// Keys of rows that this statement has made or changed.
    touched: BTreeSet<Vec<u8>>,
    /// Whether the rows that come have been tested.
    pub(super) is_checked: bool,
    /// What it has done with keys of constraints.
    pub(super) changes: Changes,
    /// When it has to end, in microseconds since 2000.
    deadline_us: Option<i64>,
}

impl<'a> Writing<'a> {
    /// Nothing is written.
    pub(super) fn new(query: &'a Query, write: &'a Write, run: &'a Run) -> Writing<'a> {
        Writing {
            query,
            write,
            run,
            count: 0,
            returned: Vec::new(),
            returned_bytes: 0,
            hidden: None,
            at: 0,
            touched: BTreeSet::new(),
            is_checked: false,
            changes: Changes::default(),
            deadline_us: None,
        }
    }

    /// Whether it may come to a row that it has written.
    fn meets_own(&self) -> bool {
        let Kind::Insert(on_conflict) = &self.write.kind else { return true };
        matches!(on_conflict.action, Resolution::Update { .. })
    }

    /// How many rows are written.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Which of the rows at hand it is at, from 0.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

impl<W: World> Session<'_, W> {
    /// Runs a statement that writes. Returns the client's rows, and what CommandComplete says.
    pub(super) async fn write<S: Stream>(
        &mut self,
        query: &Query,
        run: &mut Run,
        deadline_us: Option<i64>,
        line: &mut Line<'_, S>,
    ) -> Result<(Vec<Row>, String), Stop> {
        let Some(write) = &query.write else { return Err(confused().into()) };
        let verb = match write.kind {
            Kind::Insert(_) => "INSERT",
            Kind::Update => "UPDATE",
            Kind::Delete => "DELETE",
        };
        self.open_to_write(verb).await?;
        if !self.is_current(query).await? {
            return Err(Stop::Conflict("a table was changed meanwhile".into()));
        }
        let rows = self.all_rows(query, run, deadline_us, line).await?;
        let mut writing = Writing { deadline_us, ..Writing::new(query, write, run) };
        let mut rows = rows.into_iter();
        loop {
            let chunk: Vec<Row> = rows.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                break;
            }
            self.write_chunk(&mut writing, chunk).await?;
            self.pause_if_spent(deadline_us, line).await?;
        }
        let Writing { count, returned, changes, .. } = writing;
        self.enforce(&write.table, changes).await?;
        let tag = if verb == "INSERT" { format!("INSERT 0 {count}") } else { format!("{verb} {count}") };
        Ok((returned, tag))
    }

    /// Writes rows of a statement of the session's own. Returns how many, and what it has done with
    /// keys.
    pub(super) async fn write_inside(
        &mut self,
        query: &Query,
        run: &Run,
        rows: Vec<Row>,
    ) -> Result<(u64, Changes), Stop> {
        let Some(write) = &query.write else { return Err(confused().into()) };
        let deadline_us = self.deadline_us();
        let mut writing = Writing { deadline_us, ..Writing::new(query, write, run) };
        let mut rows = rows.into_iter();
        loop {
            let chunk: Vec<Row> = rows.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                break;
            }
            self.write_chunk(&mut writing, chunk).await?;
            if self.fuel.is_spent() {
                self.pause_inside().await?;
            }
        }
        Ok((writing.count, writing.changes))
    }

    async fn write_chunk(&mut self, writing: &mut Writing<'_>, chunk: Vec<Row>) -> Result<(), Stop> {
        let write = writing.write;
        match &write.kind {
            Kind::Insert(on_conflict) => self.insert(writing, on_conflict, chunk).await?,
            Kind::Update => self.update(writing, chunk).await?,
            Kind::Delete => self.delete(writing, chunk).await?,
        }
        self.fuel.burn(CHUNK);
        self.look_up_keys(&write.table, &mut writing.changes).await
    }

    pub(super) async fn insert(
        &mut self,
        writing: &mut Writing<'_>,
        on_conflict: &OnConflict,
        rows: Vec<Row>,
    ) -> Result<(), Stop> {
        let table = writing.write.table.clone();
        let mut fresh = Vec::with_capacity(rows.len());
        let mut asked = Vec::new();
        // The first row that is refused is the one that is told.
        let mut refused = None;
        for (at, row) in rows.into_iter().enumerate() {
            match self.check_row(writing, &row).await {
                Ok(()) => {}
                Err(Stop::Error(error)) => {
                    refused = Some((at, error));
                    break;
                }
                Err(stop) => return Err(stop),
            }
            writing.at = at;
            let key = self.new_key(&table, &row, &mut writing.hidden)?;
            let uniques = Taken::keys(&table, &key, &row)?;
            asked.extend(uniques.iter().map(|(_, key)| key.clone()));
            fresh.push((key, row, uniques));
        }
        let found = self.get(space(&table), &asked).await?;
        let mut taken = Taken::default();
        for (key, value) in asked.into_iter().zip(found) {
            if let Some(value) = value {
                taken.found(key, value);
            }
        }
        for (at, (key, row, uniques)) in fresh.into_iter().enumerate() {
            writing.at = at;
            let conflicts = || uniques.iter().filter(|(_, key)| taken.get(key).is_some());
            let expected = conflicts().find(|(unique, _)| on_conflict.expects(*unique));
            let Some((unique, conflict)) = expected.or_else(|| conflicts().next()) else {
                self.put_entries(&table, &key, &row).await?;
                writing.changes.note(&table, None, Some(&row));
                // No other row at hand has the same hidden number.
                if table.primary.is_empty() && uniques.len() == 1 {
                    self.store_row(writing, key, row).await?;
                } else {
                    let stored = self.store_row(writing, key.clone(), row.clone()).await?;
                    taken.add(&table, key, &row, stored)?;
                }
                continue;
            };
            if *unique == Unique::Primary && table.primary.is_empty() {
                return Err(Stop::Conflict("a row got the hidden number of another".into()));
            }
            match (&on_conflict.action, expected.is_some()) {
                (Resolution::Refuse, _) | (_, false) => {
                    return Err(self.duplicate(&table, *unique, &row).into());
                }
                (Resolution::Skip, true) => {}
                (Resolution::Update { row: change, condition }, true) => {
                    let owner = taken.owner(&table, *unique, conflict)?.ok_or_else(confused)?;
                    self.change_instead(writing, change, condition.as_ref(), owner, row, &mut taken).await?;
                }
            }
        }
        let Some((at, error)) = refused else { return Ok(()) };
        writing.at = at;
        Err(error.into())
    }

    /// Changes the row that is in the way of a new one.
    async fn change_instead(
        &mut self,
        writing: &mut Writing<'_>,
        change: &[Expr],
        condition: Option<&Expr>,
        owner: Vec<u8>,
        excluded: Row,
        taken: &mut Taken,
    ) -> Result<(), Stop> {
        let table = writing.write.table.clone();
        if writing.touched.contains(&owner) {
            let error = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            let hint = "Ensure that no rows proposed for insertion within the same command have \
                        duplicate constrained values.";
            return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, error).hint(hint).into());
        }
        let old = match taken.get(&owner) {
            Some(old) => stored_row(&table, &owner, old)?,
            None => {
                let found = self.get(space(&table), std::slice::from_ref(&owner)).await?;
                let found = found.into_iter().next().flatten();
                let gone = Stop::Conflict("a row that an index has is not there any more".into());
                stored_row(&table, &owner, &found.ok_or(gone)?)?
            }
        };
        let both = [old.clone(), excluded].concat();
        if let Some(condition) = condition {
            let holds = self.over(writing, std::slice::from_ref(condition), &both).await?;
            if holds != [Datum::Bool(true)] {
                return Ok(());
            }
        }
        self.reserve(&owner, writing.deadline_us).await?;
        let new = self.over(writing, change, &both).await?;
        taken.remove(&table, &owner, &old)?;
        let (key, stored) = self.replace(writing, owner, &old, new.clone()).await?;
        Ok(taken.add(&table, key, &new, stored)?)
    }

    async fn update(&mut self, writing: &mut Writing<'_>, rows: Vec<Row>) -> Result<(), Stop> {
        let width = writing.write.table.live().count();
        for mut row in rows {
            let new = row.split_off((width + 1).min(row.len()));
            let Some(Datum::Bytes(key)) = row.pop() else { return Err(confused().into()) };
            if !writing.touched.contains(key.as_ref()) {
                self.reserve(&key, writing.deadline_us).await?;
                self.replace(writing, key.to_vec(), &row, new).await?;
            }
        }
        Ok(())
    }

    /// Puts a row in the place of another, whose key it may not have. Returns its key and what is
    /// stored of it.
    async fn replace(
        &mut self,
        writing: &mut Writing<'_>,
        old_key: Vec<u8>,
        old: &[Datum],
        row: Row,
    ) -> Result<(Vec<u8>, Vec<u8>), Stop> {
        let table = writing.write.table.clone();
        self.check_row(writing, &row).await?;
        let new_key = match table.primary.is_empty() {
            true => old_key.clone(),
            false => key::row_key(&table, &whole(&table, &row))?,
        };
        if new_key != old_key {
            let found = self.get(space(&table), std::slice::from_ref(&new_key)).await?;
            if found.iter().any(Option::is_some) {
                return Err(self.duplicate(&table, Unique::Primary, &row).into());
            }
            self.put(space(&table), old_key.clone(), None).await?;
            writing.touched.insert(old_key.clone());
        }
        self.keep_entries(&table, Some((&old_key, old)), Some((&new_key, &row))).await?;
        writing.changes.note(&table, Some(old), Some(&row));
        let stored = self.store_row(writing, new_key.clone(), row).await?;
        Ok((new_key, stored))
    }

    async fn delete(&mut self, writing: &mut Writing<'_>, rows: Vec<Row>) -> Result<(), Stop> {
        let table = writing.write.table.clone();
        for mut row in rows {
            let Some(Datum::Bytes(key)) = row.pop() else { return Err(confused().into()) };
            if writing.touched.insert(key.to_vec()) {
                self.reserve(&key, writing.deadline_us).await?;
                self.put(space(&table), key.to_vec(), None).await?;
                self.keep_entries(&table, Some((&key, &row)), None).await?;
                writing.changes.note(&table, Some(&row), None);
                self.done_with(writing, &row).await?;
            }
        }
        Ok(())
    }

    /// Writes a row. Returns what is stored of it.
    async fn store_row(
        &mut self,
        writing: &mut Writing<'_>,
        key: Vec<u8>,
        row: Row,
    ) -> Result<Vec<u8>, Stop> {
        let table = &writing.write.table;
        let stored = row::write_row(table, &whole(table, &row))?;
        if writing.meets_own() {
            writing.touched.insert(key.clone());
        }
        self.put(space(table), key, Some(&stored)).await?;
        self.done_with(writing, &row).await?;
        Ok(stored)
    }

    /// Counts a row, and makes of it what the client gets.
    async fn done_with(&mut self, writing: &mut Writing<'_>, row: &[Datum]) -> Result<(), Stop> {
        writing.count += 1;
        if let Some(returning) = &writing.write.returning {
            let returned = self.over(writing, returning, row).await?;
            writing.returned_bytes += returned.iter().map(weight).sum::<usize>();
            if writing.returned_bytes > MEMORY_MAX {
                let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
                return Err(error.detail("The rows that RETURNING makes take too much.").into());
            }
            writing.returned.push(returned);
        }
        Ok(())
    }

    /// What expressions come to over a row.
    async fn over(&mut self, writing: &Writing<'_>, exprs: &[Expr], row: &[Datum]) -> Result<Row, Stop> {
        if let Some(failure) = &writing.query.failure {
            return Err(failure.clone().into());
        }
        self.evaluate_in(writing.run, exprs, row).await
    }

    /// The key of a new row.
    fn new_key(&self, table: &Table, row: &[Datum], hidden: &mut Option<u64>) -> Result<Vec<u8>, SqlError> {
        match table.primary.is_empty() {
            true => Ok(self.next_hidden(table, hidden)),
            false => key::row_key(table, &whole(table, row)),
        }
    }

    /// The key of a new row of a table without a primary key.
    pub(super) fn next_hidden(&self, table: &Table, hidden: &mut Option<u64>) -> Vec<u8> {
        // By time, so that rows stay in the order in which they came, more or less; and by chance,
        // so that statements of one moment are apart. A number that is there already is a conflict.
        let number = hidden.unwrap_or_else(|| {
            let time = u64::try_from(self.world.now_us()).unwrap_or_default();
            time << CHANCE_BITS | self.world.random() & ((1 << CHANCE_BITS) - 1)
        });
        *hidden = Some(number.wrapping_add(1));
        key::hidden_key(table, number)
    }

    /// The error of a key that is there already.
    pub(super) fn duplicate(&self, table: &Table, unique: Unique, row: &[Datum]) -> SqlError {
        let index = match unique {
            Unique::Primary => None,
            Unique::Index(place) => table.indexes.get(place),
        };
        let name = index.map_or(&table.primary_name, |index| &index.name);
        let error = format!("duplicate key value violates unique constraint \"{name}\"");
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, error).about(table.constraint(name));
        let whole = whole(table, row);
        let positions: Vec<u16> = match index {
            None => table.primary.clone(),
            Some(index) => index.parts.iter().map(|part| part.column).collect(),
        };
        let key = || {
            let places = positions.iter().map(|position| usize::from(*position));
            places.filter_map(|place| Some((table.columns.get(place)?, whole.get(place)?)))
        };
        let names: Vec<&str> = key().map(|(column, _)| column.name.as_str()).collect();
        match self.shown(key(), "null") {
            Ok(shown) => error.detail(format!("Key ({})=({shown}) already exists.", names.join(", "))),
            Err(_) => error,
        }
    }

    /// Values as details of errors have them.
    pub(super) fn shown<'v>(
        &self,
        values: impl Iterator<Item = (&'v crate::catalog::Column, &'v Datum)>,
        null: &str,
    ) -> Result<String, SqlError> {
        let mut shown = Vec::new();
        for (column, value) in values {
            let mut text = String::new();
            match value {
                Datum::Null => text.push_str(null),
                value => types::print(value, column.oid, &self.style, &mut text)?,
            }
            shown.push(text);
        }
        Ok(shown.join(", "))
    }
}

/// The columns that are there, of all.
pub(super) fn live(table: &Table, row: Vec<Datum>) -> Row {
    let live = row.into_iter().zip(&table.columns).filter(|(_, column)| !column.dropped);
    live.map(|(value, _)| value).collect()
}

/// All columns, of those that are there.
pub(super) fn whole<'a>(table: &Table, row: &'a [Datum]) -> Cow<'a, [Datum]> {
    if table.columns.len() == row.len() && !table.columns.iter().any(|column| column.dropped) {
        return Cow::Borrowed(row);
    }
    let mut live = row.iter();
    let value = |dropped: bool| if dropped { None } else { live.next() };
    let dropped = table.columns.iter().map(|column| column.dropped);
    dropped.map(value).map(|value| value.cloned().unwrap_or(Datum::Null)).collect()
}
