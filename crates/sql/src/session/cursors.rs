//! Cursors: `DECLARE`, `FETCH`, `MOVE`.
//!
//! A cursor of a block runs as its rows are asked for, and only forward. One that is to outlive its
//! transaction (`WITH HOLD`), or to go back as well (`SCROLL`), has all its rows from the
//! beginning.

use std::rc::Rc;

use pg_query::NodeEnum;
use pg_query::protobuf::{DeclareCursorStmt, FetchDirection, FetchStmt};

use super::conversation::Session;
use super::portal::Work;
use super::{Stop, World};
use crate::analyze::{self, Column, Query};
use crate::execute::Run;
use crate::execute::rows::Row;
use crate::functions::confused;
use crate::{SqlError, SqlState};

// What a statement says of a cursor, as PostgreSQL's grammar counts it.
const BINARY: i32 = 0x01;
const SCROLL: i32 = 0x02;
const HOLD: i32 = 0x20;

/// A cursor.
pub(super) struct Cursor {
    rows: Rows,
    columns: Vec<Column>,
    /// How many savepoints its transaction was in; none if it outlives it.
    level: Option<usize>,
    /// The transaction that it is of: how many had ended before.
    of: u64,
}

enum Rows {
    /// They come as they are asked for.
    Coming(Rc<Query>, Box<Run>),
    /// All of them, and where the cursor is: 0 before the first.
    All(Vec<Row>, usize),
}

impl Cursor {
    /// Whether the cursor exists in a transaction with this number of savepoints.
    pub(super) fn is_within(&self, level: usize) -> bool {
        self.level.is_none_or(|own| own <= level)
    }

    /// Whether it outlives its transaction.
    pub(super) fn is_held(&self) -> bool {
        self.level.is_none()
    }

    /// Whether it was declared in this transaction.
    pub(super) fn is_of(&self, transaction: u64) -> bool {
        self.of == transaction
    }
}

impl<W: World> Session<'_, W> {
    /// `DECLARE`
    pub(super) async fn declare(&mut self, declare: &DeclareCursorStmt, text: &str) -> Result<Work, Stop> {
        let is_held = declare.options & HOLD != 0;
        if declare.options & BINARY != 0 {
            return Err(analyze::unsupported("DECLARE BINARY CURSOR").into());
        }
        if !is_held && !self.transaction.is_block() {
            let error = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, error).into());
        }
        let name = &declare.portalname;
        if self.cursors.contains_key(name) || self.portals.contains_key(name) {
            let error = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, error).into());
        }
        let node = declare.query.as_deref().ok_or_else(confused)?;
        if !matches!(node.node, Some(NodeEnum::SelectStmt(_))) {
            return Err(analyze::unsupported("a cursor over a statement that writes").into());
        }
        let query = self.plan(node, text, &[]).await?;
        if let Some(clause) = query.locks {
            self.open_to_write(&format!("SELECT {clause}")).await?;
        }
        let (columns, query) = (query.columns.clone(), Rc::new(query));
        let mut run = query.start(Vec::new());
        let rows = if is_held || declare.options & SCROLL != 0 {
            Rows::All(self.next_rows(&query, &mut run, usize::MAX).await?, 0)
        } else {
            Rows::Coming(query, Box::new(run))
        };
        let level = (!is_held).then(|| self.transaction.level());
        let cursor = Cursor { rows, columns, level, of: self.transaction.ended() };
        self.cursors.insert(name.clone(), cursor);
        Ok(Work::Done("DECLARE CURSOR".to_owned()))
    }

    /// `FETCH` and `MOVE`
    pub(super) async fn fetch_rows(&mut self, fetch: &FetchStmt) -> Result<Work, Stop> {
        let name = &fetch.portalname;
        // An error ends it.
        let mut cursor = self.cursors.remove(name).ok_or_else(|| no_cursor(name))?;
        let rows = match &mut cursor.rows {
            Rows::Coming(query, run) => {
                let query = Rc::clone(query);
                let count = forward(fetch)?;
                self.next_rows(&query, run, count).await?
            }
            Rows::All(rows, at) => moved(rows, at, fetch.direction(), fetch.how_many),
        };
        let count = rows.len();
        let work = if fetch.ismove {
            Work::Done(format!("MOVE {count}"))
        } else {
            Work::Rows(cursor.columns.clone(), rows.into_iter(), format!("FETCH {count}"))
        };
        self.cursors.insert(name.clone(), cursor);
        Ok(work)
    }

    /// What the rows of a `FETCH` have.
    pub(super) fn fetched_columns(&self, fetch: &FetchStmt) -> Option<Vec<Column>> {
        let cursor = self.cursors.get(&fetch.portalname).filter(|_| !fetch.ismove)?;
        Some(cursor.columns.clone())
    }
}

/// The error of a cursor that is not there.
pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

/// How many rows a statement asks for that goes forward.
fn forward(fetch: &FetchStmt) -> Result<usize, SqlError> {
    match fetch.direction() {
        FetchDirection::FetchForward | FetchDirection::FetchRelative if fetch.how_many == 1 => Ok(1),
        FetchDirection::FetchForward if fetch.how_many > 0 => {
            Ok(usize::try_from(fetch.how_many).unwrap_or(usize::MAX))
        }
        _ => {
            let error = "cursor can only scan forward";
            let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, error);
            Err(error.hint("Declare it with SCROLL option to enable backward scan."))
        }
    }
}

/// Moves a cursor, and says which rows that passes.
fn moved(rows: &[Row], at: &mut usize, direction: FetchDirection, count: i64) -> Vec<Row> {
    let end = rows.len() + 1;
    let steps = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let only = |place: usize| place.checked_sub(1).and_then(|place| rows.get(place)).cloned();
    match (direction, count) {
        (FetchDirection::FetchAbsolute, 0) => {
            *at = 0;
            Vec::new()
        }
        (FetchDirection::FetchAbsolute, _) => {
            *at = if count > 0 { steps.min(end) } else { end.saturating_sub(steps) };
            only(*at).into_iter().collect()
        }
        (FetchDirection::FetchRelative, _) => {
            *at = if count >= 0 { at.saturating_add(steps).min(end) } else { at.saturating_sub(steps) };
            only(*at).into_iter().collect()
        }
        // The row at hand once more.
        (_, 0) => only(*at).into_iter().collect(),
        (direction, _) => {
            let is_forward = (direction == FetchDirection::FetchBackward) == (count < 0);
            let mut passed = Vec::new();
            for _ in 0..steps {
                *at = if is_forward { (*at + 1).min(end) } else { at.saturating_sub(1) };
                match only(*at) {
                    Some(row) => passed.push(row),
                    None => break,
                }
            }
            passed
        }
    }
}
