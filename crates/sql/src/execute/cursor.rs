//! Rows of plans: the state of each, and the next row it makes.
//!
//! A cursor that pauses ([`super::fuel`]) keeps all that it needs to go on: it takes nothing from
//! its input that it would lose. A row over which an expression is evaluated stays at hand until
//! the value is there ([`Input`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::combine::Combined;
use super::evaluate::Env;
use super::fuel::Halt;
use super::group::Group;
use super::join::Join;
use super::lock::Locking;
use super::reading::Read;
use super::recursion::{self, Recursion};
use super::rows::{Directed, Key, Row, bulk, hold, hold_row, keyed};
use super::scan::Scanning;
use super::trail::Trail;
use crate::analyze::plan::{Direction, Expr, Plan};
use crate::functions::{Rows, confused};
use crate::types::Datum;
use crate::{SqlError, SqlState};

/// A row, or none after the last.
pub type Next = Result<Option<Row>, Halt>;

/// The state of a plan that runs.
pub enum Cursor {
    /// The rows of a table.
    Scan(Box<Scanning>),
    /// The rows of a relation of the catalog.
    Catalog(Box<Read>),
    /// How many rows have come, and the trail of the one at hand.
    Values(usize, Trail),
    /// The rows of a function.
    Function(Box<Called>),
    /// The input of a filter or a projection.
    Over(Box<Input>),
    /// Both halves of a recursive query.
    Recursive(Box<Recursion>),
    /// The rows that had come last, once they are known, and how many have been taken of them.
    Working(Option<Arc<[Row]>>, usize),
    /// The input, the keys of the last row, and its number.
    Numbered(Box<Cursor>, Option<Key>, i64),
    /// The input, and the row at hand with its sets.
    Sets(Box<Input>, Option<(Row, Vec<Option<Rows>>)>),
    /// Both sides.
    Join(Box<Join>),
    /// Rows that are sorted.
    Sort(Box<Sort>),
    /// Groups of rows.
    Group(Box<Group>),
    /// The input, and what has come.
    Distinct(Box<Cursor>, BTreeSet<Key>),
    /// The input, and what may still come of it.
    Limit(Box<Limit>),
    /// Rows that are reserved.
    Lock(Box<Locking>),
    /// Both sides, and rows that wait or what has come.
    Combined(Box<Combined>),
}

/// An input, and the row of it that an expression is evaluated over.
pub struct Input {
    cursor: Cursor,
    row: Option<Row>,
    trail: Trail,
}

/// A function that returns a set, while its rows come.
pub struct Called {
    trail: Trail,
    /// None before the function is called.
    rows: Option<Rows>,
    count: i64,
}

/// The state of a sort, whose rows are kept in order. A number keeps equal rows in the order in
/// which they came.
pub struct Sort {
    cursor: Cursor,
    rows: BTreeMap<(Vec<Directed>, usize), Row>,
    is_complete: bool,
}

/// The state of a limit.
pub struct Limit {
    cursor: Cursor,
    trail: Trail,
    /// How many rows are still skipped and how many may then come (none: all), once it is known.
    left: Option<(i64, Option<i64>)>,
    /// The keys of the last row.
    last: Option<Row>,
}

impl Cursor {
    /// Before the first row.
    pub fn new(plan: &Plan) -> Cursor {
        match plan {
            Plan::Scan(_) => Cursor::Scan(Box::default()),
            Plan::Catalog(_) => Cursor::Catalog(Box::default()),
            Plan::Values(_) => Cursor::Values(0, Trail::default()),
            Plan::Function { .. } => {
                Cursor::Function(Box::new(Called { trail: Trail::default(), rows: None, count: 0 }))
            }
            Plan::Filter { input, .. } | Plan::Project { input, .. } => {
                Cursor::Over(Box::new(Input::new(input)))
            }
            Plan::Recursive { base, step, .. } => Cursor::Recursive(Box::new(Recursion::new(base, step))),
            Plan::Working { .. } => Cursor::Working(None, 0),
            Plan::Numbered { input, .. } => Cursor::Numbered(Box::new(Cursor::new(input)), None, 0),
            Plan::Sets { input, .. } => Cursor::Sets(Box::new(Input::new(input)), None),
            Plan::Join { left, right, .. } => Cursor::Join(Box::new(Join::new(left, right))),
            Plan::Group { input, .. } => Cursor::Group(Box::new(Group::new(input))),
            Plan::Sort { input, .. } => Cursor::Sort(Box::new(Sort {
                cursor: Cursor::new(input),
                rows: BTreeMap::new(),
                is_complete: false,
            })),
            Plan::Distinct { input, .. } => Cursor::Distinct(Box::new(Cursor::new(input)), BTreeSet::new()),
            Plan::Limit { input, .. } => Cursor::Limit(Box::new(Limit {
                cursor: Cursor::new(input),
                trail: Trail::default(),
                left: None,
                last: None,
            })),
            Plan::Lock { input, .. } => Cursor::Lock(Box::new(Locking::new(input))),
            Plan::Combined { left, right, .. } => Cursor::Combined(Box::new(Combined::new(left, right))),
        }
    }

    /// The next row; none after the last. The plan has to be that of [`Cursor::new`].
    pub fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        env.shared.stack.check()?;
        match (self, plan) {
            (Cursor::Scan(scanning), Plan::Scan(scan)) => scanning.next(scan, env),
            (Cursor::Values(place, trail), Plan::Values(rows)) => {
                let Some(row) = rows.get(*place) else { return Ok(None) };
                env.fuel().row()?;
                let row = trail.evaluate(&env.inside(&[]), |inside| inside.values(row))?;
                *place += 1;
                Ok(Some(row))
            }
            (Cursor::Catalog(read), Plan::Catalog(reading)) => read.next(reading, env),
            (Cursor::Function(called), Plan::Function { call, ordinality, fields }) => {
                called.next(call, *ordinality, *fields, env)
            }
            (Cursor::Over(over), Plan::Filter { input, condition }) => {
                while let Some((row, holds)) = over.next(input, env, |inside| inside.holds(condition))? {
                    if holds {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            (Cursor::Over(over), Plan::Project { input, columns }) => {
                Ok(over.next(input, env, |inside| inside.values(columns))?.map(|(_, values)| values))
            }
            (Cursor::Recursive(recursion), plan @ Plan::Recursive { .. }) => recursion.next(plan, env),
            (Cursor::Working(rows, place), Plan::Working { id, .. }) => {
                let rows = rows.get_or_insert_with(|| recursion::working(*id, env));
                env.fuel().row()?;
                let row = rows.get(*place).cloned();
                *place += usize::from(row.is_some());
                Ok(row)
            }
            (Cursor::Numbered(cursor, last, number), Plan::Numbered { input, keys }) => {
                let Some(mut row) = cursor.next(input, env)? else { return Ok(None) };
                let key = Key(picked(&row, keys));
                *number = if last.as_ref() == Some(&key) { number.saturating_add(1) } else { 1 };
                *last = Some(key);
                row.push(Datum::Int8(*number));
                Ok(Some(row))
            }
            (Cursor::Sets(over, at), Plan::Sets { input, sets }) => next_of_sets(over, at, input, sets, env),
            (Cursor::Join(join), plan @ Plan::Join { .. }) => join.next(plan, env),
            (Cursor::Sort(sort), Plan::Sort { input, keys }) => sort.next(input, keys, env),
            (Cursor::Group(group), Plan::Group { input, keys, aggregates }) => {
                group.next(input, keys, aggregates, env)
            }
            (Cursor::Distinct(cursor, seen), Plan::Distinct { input, keys }) => {
                while let Some(row) = cursor.next(input, env)? {
                    let key = keyed(env.shared, picked(&row, keys));
                    if !seen.contains(&key) {
                        hold_row(env.shared, &key.0, "DISTINCT")?;
                        seen.insert(key);
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            (Cursor::Limit(limit), plan @ Plan::Limit { .. }) => limit.next(plan, env),
            (Cursor::Lock(locking), Plan::Lock { input, tables, wait }) => {
                locking.next(input, tables, *wait, env)
            }
            (Cursor::Combined(combined), Plan::Combined { left, right, how, all }) => {
                combined.next(left, right, *how, *all, env)
            }
            _ => Err(confused().into()),
        }
    }
}

impl Input {
    pub(super) fn new(plan: &Plan) -> Input {
        Input { cursor: Cursor::new(plan), row: None, trail: Trail::default() }
    }

    /// The next row of the input and what an expression comes to over it; none after the last.
    pub(super) fn next<T>(
        &mut self,
        plan: &Plan,
        env: &Env<'_>,
        evaluate: impl FnOnce(&Env<'_>) -> Result<T, Halt>,
    ) -> Result<Option<(Row, T)>, Halt> {
        let row = match self.row.take() {
            Some(row) => row,
            None => match self.cursor.next(plan, env)? {
                Some(row) => row,
                None => return Ok(None),
            },
        };
        match self.trail.evaluate(&env.inside(&row), evaluate) {
            Ok(value) => Ok(Some((row, value))),
            Err(halt) => {
                self.row = Some(row);
                Err(halt)
            }
        }
    }
}

impl Called {
    fn next(&mut self, call: &Expr, ordinality: bool, fields: Option<usize>, env: &Env<'_>) -> Next {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => self.rows.insert(self.trail.evaluate(env, |env| env.set(call))?),
        };
        env.fuel().row()?;
        let Some(value) = rows()? else { return Ok(None) };
        self.count = self.count.saturating_add(1);
        let mut row = match (fields, value) {
            (None, value) => vec![value],
            (Some(_), Datum::Record(fields)) => fields.iter().map(|(_, field)| field.clone()).collect(),
            (Some(count), _) => vec![Datum::Null; count],
        };
        if ordinality {
            row.push(Datum::Int8(self.count));
        }
        Ok(Some(row))
    }
}

impl Sort {
    fn next(&mut self, input: &Plan, keys: &[(usize, Direction)], env: &Env<'_>) -> Next {
        while !self.is_complete {
            let Some(row) = self.cursor.next(input, env)? else {
                self.is_complete = true;
                break;
            };
            let directed = |(place, direction): &(usize, Direction)| {
                Directed(row.get(*place).cloned().unwrap_or(Datum::Null), *direction)
            };
            let key: Vec<Directed> = keys.iter().map(directed).collect();
            hold_row(env.shared, &row, "a sort")?;
            hold(env.shared, std::mem::size_of_val(key.as_slice()), "a sort")?;
            env.fuel().burn_bytes(key.iter().map(|key| bulk(&key.0)).sum());
            self.rows.insert((key, self.rows.len()), row);
        }
        env.fuel().row()?;
        Ok(self.rows.pop_first().map(|(_, row)| row))
    }
}

impl Limit {
    fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        let Plan::Limit { input, count, skip, ties } = plan else { return Err(confused().into()) };
        let (skipped, left) = match &mut self.left {
            Some(left) => left,
            None => {
                let bounds = self.trail.evaluate(&env.inside(&[]), |inside| bounds(skip, count, inside))?;
                self.left.insert(bounds)
            }
        };
        while *skipped > 0 {
            match self.cursor.next(input, env)? {
                Some(_) => *skipped -= 1,
                None => *skipped = 0,
            }
        }
        if *left == Some(0) {
            let (Some(ties), Some(last)) = (ties, &self.last) else { return Ok(None) };
            let row = self.cursor.next(input, env)?;
            return Ok(row.filter(|row| Key(picked(row, ties)) == Key(last.clone())));
        }
        let row = self.cursor.next(input, env)?;
        if let Some(left) = left {
            *left -= 1;
        }
        if let (Some(row), Some(ties)) = (&row, ties) {
            self.last = Some(picked(row, ties));
        }
        Ok(row)
    }
}

fn picked(row: &[Datum], keys: &[usize]) -> Row {
    keys.iter().map(|place| row.get(*place).cloned().unwrap_or(Datum::Null)).collect()
}

fn bounds(skip: &Option<Expr>, count: &Option<Expr>, env: &Env<'_>) -> Result<(i64, Option<i64>), Halt> {
    let number = |expr: &Option<Expr>, state: SqlState, word: &str| match expr {
        None => Ok(None),
        Some(expr) => match env.value(expr)? {
            Datum::Int8(value) if value < 0 => {
                Err(Halt::Failed(SqlError::new(state, format!("{word} must not be negative"))))
            }
            Datum::Int8(value) => Ok(Some(value)),
            _ => Ok(None),
        },
    };
    let skip = number(skip, SqlState::INVALID_ROW_COUNT_IN_OFFSET, "OFFSET")?;
    let count = number(count, SqlState::INVALID_ROW_COUNT_IN_LIMIT, "LIMIT")?;
    Ok((skip.unwrap_or(0), count))
}

/// Sets run side by side until the longest has ended; a shorter one gives NULLs.
fn next_of_sets(
    over: &mut Input,
    at: &mut Option<(Row, Vec<Option<Rows>>)>,
    input: &Plan,
    sets: &[Expr],
    env: &Env<'_>,
) -> Next {
    loop {
        if let Some((row, rows)) = at {
            env.fuel().row()?;
            let mut out = row.clone();
            let mut any = false;
            for set in rows.iter_mut() {
                let value = match set {
                    Some(rows) => rows()?,
                    None => None,
                };
                any |= value.is_some();
                if value.is_none() {
                    *set = None;
                }
                out.push(value.unwrap_or(Datum::Null));
            }
            if any {
                return Ok(Some(out));
            }
            *at = None;
        }
        let all = |inside: &Env<'_>| -> Result<Vec<Option<Rows>>, Halt> {
            sets.iter().map(|set| inside.set(set).map(Some)).collect()
        };
        match over.next(input, env, all)? {
            Some(found) => *at = Some(found),
            None => return Ok(None),
        }
    }
}
