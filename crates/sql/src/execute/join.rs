//! Rows side by side: for every outer row all inner ones.
//!
//! Inner rows that do not depend on the outer one are kept as they come, and from the second outer
//! row on come from there. If the condition says that something of both is equal, all of them are
//! kept by that before the first outer row meets any, and each meets only those that it can fit.

use std::collections::BTreeMap;

use super::cursor::{Cursor, Next};
use super::evaluate::Env;
use super::fuel::Halt;
use super::rows::{Key, Row, hold_row, keyed};
use super::trail::Trail;
use crate::analyze::plan::{Expr, Plan};
use crate::functions::confused;
use crate::types::{Datum, compare};

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
    /// How many of them the outer row has met, or of those that it can fit.
    place: usize,
    /// Where they are by what has to be equal.
    by_key: BTreeMap<Key, Vec<usize>>,
    /// Those that the outer row can fit.
    fitting: Vec<usize>,
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
            by_key: BTreeMap::new(),
            fitting: Vec::new(),
        }
    }

    pub(super) fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        let Plan::Join { left, right, width, condition, outer, lateral, keys } = plan else {
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
            if !keys.is_empty() && !self.is_complete {
                self.keep_all(right, keys, env)?;
            }
            if self.row.is_none() {
                let Some(row) = self.left.next(left, env)? else { return Ok(None) };
                if !keys.is_empty() {
                    // It has no query in it, so it comes to an end.
                    let outer = env.inside(&row);
                    let values = keys.iter().map(|(outside, _)| outer.value(outside));
                    let key = key(env, values.collect::<Result<_, _>>()?);
                    self.fitting = key.and_then(|key| self.by_key.get(&key)).cloned().unwrap_or_default();
                }
                self.row = Some((row, false));
                self.place = 0;
                if *lateral {
                    self.right = Cursor::new(right);
                }
            }
            let inner = match keys.is_empty() {
                true => self.inner(right, *lateral, env)?,
                false => self.next_fitting(env)?,
            };
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

    /// Keeps all inner rows by what has to be equal.
    fn keep_all(&mut self, right: &Plan, keys: &[(Expr, Expr)], env: &Env<'_>) -> Result<(), Halt> {
        loop {
            let Some(row) = self.right.next(right, &env.inside(&[]))? else {
                self.is_complete = true;
                return Ok(());
            };
            let inner = env.inside(&row);
            let values = keys.iter().map(|(_, inside)| inner.value(inside));
            if let Some(key) = key(env, values.collect::<Result<_, _>>()?) {
                hold_row(env.shared, &row, "a join")?;
                hold_row(env.shared, &key.0, "a join")?;
                self.by_key.entry(key).or_default().push(self.kept.len());
                self.kept.push(row);
            }
        }
    }

    /// The next inner row that the outer one can fit.
    fn next_fitting(&mut self, env: &Env<'_>) -> Next {
        let Some(place) = self.fitting.get(self.place) else { return Ok(None) };
        env.fuel().row()?;
        self.place += 1;
        Ok(self.kept.get(*place).cloned())
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

/// Values by which rows are looked up; none if one is NULL, which equals nothing.
fn key(env: &Env<'_>, values: Row) -> Option<Key> {
    if values.iter().any(Datum::is_null) {
        return None;
    }
    // Whole numbers are equal whatever their types are.
    let alike = values.into_iter().map(|value| match compare::integer(&value) {
        Some(number) => Datum::Int8(number),
        None => value,
    });
    Some(keyed(env.shared, alike.collect()))
}
