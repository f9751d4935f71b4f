//! Rows side by side: for every outer row all inner ones.
//!
//! Inner rows that do not depend on the outer one are kept as they come, and from the second outer
//! row on come from there.

use super::cursor::{Cursor, Next};
use super::evaluate::Env;
use super::rows::{Row, hold_row};
use super::trail::Trail;
use crate::analyze::plan::Plan;
use crate::functions::confused;
use crate::types::Datum;

/// The state of a join.
pub struct Join {
    left: Cursor,
    right: Cursor,
    /// The outer row, and whether it has met an inner one.
    row: Option<(Row, bool)>,
    /// An outer and an inner row, whose condition is evaluated.
    both: Option<Row>,
    trail: Trail,
    /// Inner rows that are kept, and whether they are all.
    kept: Vec<Row>,
    is_complete: bool,
    /// How many of them the outer row has met.
    place: usize,
}

impl Join {
    pub(super) fn new(left: &Plan, right: &Plan) -> Join {
        Join {
            left: Cursor::new(left),
            right: Cursor::new(right),
            row: None,
            both: None,
            trail: Trail::default(),
            kept: Vec::new(),
            is_complete: false,
            place: 0,
        }
    }

    pub(super) fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        let Plan::Join { left, right, width, condition, outer, lateral } = plan else {
            return Err(confused().into());
        };
        loop {
            if let Some(both) = self.both.take() {
                let fits = match condition {
                    Some(condition) => {
                        self.trail.evaluate(&env.inside(&both), |inside| inside.holds(condition))
                    }
                    None => Ok(true),
                };
                match fits {
                    Ok(false) => {}
                    Ok(true) => {
                        if let Some((_, met)) = &mut self.row {
                            *met = true;
                        }
                        return Ok(Some(both));
                    }
                    Err(halt) => {
                        self.both = Some(both);
                        return Err(halt);
                    }
                }
            }
            if self.row.is_none() {
                let Some(row) = self.left.next(left, env)? else { return Ok(None) };
                self.row = Some((row, false));
                self.place = 0;
                if *lateral {
                    self.right = Cursor::new(right);
                }
            }
            let inner = self.inner(right, *lateral, env)?;
            match (inner, &self.row) {
                (Some(inner), Some((row, _))) => {
                    let mut both = Vec::with_capacity(row.len() + inner.len());
                    both.extend_from_slice(row);
                    both.extend(inner);
                    self.both = Some(both);
                }
                _ => {
                    let Some((mut row, met)) = self.row.take() else { return Err(confused().into()) };
                    if *outer && !met {
                        row.resize(row.len() + width, Datum::Null);
                        return Ok(Some(row));
                    }
                }
            }
        }
    }

    /// The next inner row for the outer one.
    fn inner(&mut self, right: &Plan, lateral: bool, env: &Env<'_>) -> Next {
        let Some((row, _)) = &self.row else { return Err(confused().into()) };
        if lateral {
            return self.right.next(right, &env.inside(row));
        }
        if self.place < self.kept.len() {
            env.fuel().row()?;
        } else if !self.is_complete {
            match self.right.next(right, &env.inside(row))? {
                Some(next) => {
                    hold_row(env.shared, &next, "a join")?;
                    self.kept.push(next);
                }
                None => self.is_complete = true,
            }
        }
        let next = self.kept.get(self.place).cloned();
        self.place += usize::from(next.is_some());
        Ok(next)
    }
}
