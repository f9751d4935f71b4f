//! Rows that are reserved before they are given out: `FOR UPDATE`.
//!
//! Whether a row is free is known to the session. So for each row the run pauses, as a scan does
//! that has no rows left, and goes on when the session has an answer.

use super::cursor::{Cursor, Next};
use super::evaluate::Env;
use super::fuel::Halt;
use super::rows::Row;
use super::scan::Fetch;
use crate::analyze::plan::{Locked, Plan, Wait};
use crate::functions::confused;
use crate::types::Datum;

/// A row that is to be reserved.
#[derive(Clone, PartialEq, Debug)]
pub struct Reserve {
    /// Its key.
    pub key: Vec<u8>,
    /// Its table.
    pub locked: Locked,
    /// What is done if another transaction has it.
    pub wait: Wait,
}

/// The state of the rows that are reserved.
pub struct Locking {
    cursor: Cursor,
    /// The row at hand, and how many of its keys are reserved.
    row: Option<(Row, usize)>,
    has_asked: bool,
}

impl Locking {
    pub(super) fn new(input: &Plan) -> Locking {
        Locking { cursor: Cursor::new(input), row: None, has_asked: false }
    }

    pub(super) fn next(&mut self, input: &Plan, tables: &[Locked], wait: Wait, env: &Env<'_>) -> Next {
        loop {
            let (row, at) = match self.row.take() {
                Some((row, at)) => (row, at),
                None => match self.cursor.next(input, env)? {
                    Some(row) => (row, 0),
                    None => return Ok(None),
                },
            };
            if std::mem::take(&mut self.has_asked) {
                match env.shared.fetch.take() {
                    Some(Fetch::Reserved(true)) => self.row = Some((row, at + 1)),
                    Some(Fetch::Reserved(false)) if wait == Wait::Skip => {}
                    _ => return Err(confused().into()),
                }
                continue;
            }
            let Some(locked) = tables.get(at) else { return Ok(Some(row)) };
            let Some(Datum::Bytes(key)) = row.get(locked.place) else {
                // An outer join has found none.
                self.row = Some((row, at + 1));
                continue;
            };
            let reserve = Reserve { key: key.to_vec(), locked: locked.clone(), wait };
            env.shared.fetch.replace(Some(Fetch::Reserve(reserve)));
            self.row = Some((row, at));
            self.has_asked = true;
            return Err(Halt::Pause);
        }
    }
}
