//! Recursive queries: `WITH RECURSIVE`.
//!
//! The base makes rows; the step makes more of those that have come last, until it makes none. The
//! rows that have come last are put where the step's plan finds them before it goes on, because
//! another run of the same query may have put others there meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cursor::{Cursor, Next};
use super::evaluate::Env;
use super::rows::{Key, Row, hold_row, keyed};
use crate::analyze::plan::Plan;
use crate::functions::confused;

/// The state of a recursive query.
pub struct Recursion {
    /// None when all rows of the base have come.
    base: Option<Cursor>,
    step: Cursor,
    /// The rows that the step sees.
    working: Arc<[Row]>,
    /// The rows that have come since.
    fresh: Vec<Row>,
    /// Rows that have come, if those that are alike come once.
    seen: BTreeSet<Key>,
}

/// The rows that had come last in a query.
pub fn working(id: usize, env: &Env<'_>) -> Arc<[Row]> {
    env.shared.working.borrow().get(&id).cloned().unwrap_or_default()
}

impl Recursion {
    /// Before the first row.
    pub fn new(base: &Plan, step: &Plan) -> Recursion {
        Recursion {
            base: Some(Cursor::new(base)),
            step: Cursor::new(step),
            working: Arc::from([]),
            fresh: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// The next row; none after the last.
    pub fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        let Plan::Recursive { id, base, step, all } = plan else { return Err(confused().into()) };
        loop {
            let row = match &mut self.base {
                Some(running) => running.next(base, env)?,
                None if self.working.is_empty() => return Ok(None),
                None => {
                    env.shared.working.borrow_mut().insert(*id, Arc::clone(&self.working));
                    self.step.next(step, env)?
                }
            };
            match row {
                Some(row) if *all || self.is_new(&row, env)? => {
                    hold_row(env.shared, &row, "WITH RECURSIVE")?;
                    self.fresh.push(row.clone());
                    return Ok(Some(row));
                }
                Some(_) => {}
                None => {
                    self.base = None;
                    self.working = std::mem::take(&mut self.fresh).into();
                    self.step = Cursor::new(step);
                }
            }
        }
    }

    fn is_new(&mut self, row: &Row, env: &Env<'_>) -> Result<bool, super::fuel::Halt> {
        let key = keyed(env.shared, row.clone());
        if self.seen.contains(&key) {
            return Ok(false);
        }
        hold_row(env.shared, row, "WITH RECURSIVE")?;
        Ok(self.seen.insert(key))
    }
}
