//! Rows of plans: the state of each, and the next row it makes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::evaluate::{Env, Shared};
use super::rows::{Key, Row, directed, hold, hold_row};
use crate::analyze::plan::{Aggregated, Combine, Direction, Expr, Plan};
use crate::functions::{Body, Call, Rows, aggregates::State, confused};
use crate::types::{Datum, compare};
use crate::{SqlError, SqlState};

type Next = Result<Option<Row>, SqlError>;

/// The state of a plan that runs.
pub enum Cursor {
    /// How many rows have come.
    Values(usize),
    /// The rows of a function, and how many have come.
    Function(Option<Rows>, i64),
    /// The input of a filter or a projection.
    Over(Box<Cursor>),
    /// The input, and the row at hand with its sets.
    Sets(Box<Cursor>, Option<(Row, Vec<Option<Rows>>)>),
    /// Both sides.
    Join(Box<Join>),
    /// The input, and rows that wait once it has been read.
    Kept(Box<Cursor>, Option<VecDeque<Row>>),
    /// The input, and what has come.
    Distinct(Box<Cursor>, BTreeSet<Key>),
    /// The input, what may still come (none: all) once it is known, and the keys of the last row.
    Limit(Box<Cursor>, Option<Option<i64>>, Option<Row>),
    /// Both sides, and rows that wait or what has come.
    Combined(Box<Combined>),
}

/// The state of a join.
pub struct Join {
    left: Cursor,
    right: Cursor,
    /// The outer row, and whether it has met an inner one.
    row: Option<(Row, bool)>,
    /// Inner rows that are kept, and whether they are all.
    kept: Vec<Row>,
    complete: bool,
    place: usize,
}

/// The state of two queries that are put together.
pub struct Combined {
    left: Cursor,
    right: Cursor,
    left_done: bool,
    seen: BTreeSet<Key>,
    waiting: Option<VecDeque<Row>>,
}

impl Cursor {
    /// Before the first row.
    pub fn new(plan: &Plan) -> Cursor {
        let boxed = |plan: &Plan| Box::new(Cursor::new(plan));
        match plan {
            Plan::Values(_) => Cursor::Values(0),
            Plan::Function { .. } => Cursor::Function(None, 0),
            Plan::Filter { input, .. } | Plan::Project { input, .. } => Cursor::Over(boxed(input)),
            Plan::Sets { input, .. } => Cursor::Sets(boxed(input), None),
            Plan::Join { left, right, .. } => Cursor::Join(Box::new(Join {
                left: Cursor::new(left),
                right: Cursor::new(right),
                row: None,
                kept: Vec::new(),
                complete: false,
                place: 0,
            })),
            Plan::Group { input, .. } | Plan::Sort { input, .. } => Cursor::Kept(boxed(input), None),
            Plan::Distinct { input, .. } => Cursor::Distinct(boxed(input), BTreeSet::new()),
            Plan::Limit { input, .. } => Cursor::Limit(boxed(input), None, None),
            Plan::Combined { left, right, .. } => Cursor::Combined(Box::new(Combined {
                left: Cursor::new(left),
                right: Cursor::new(right),
                left_done: false,
                seen: BTreeSet::new(),
                waiting: None,
            })),
        }
    }

    /// The next row; none after the last. The plan has to be that of [`Cursor::new`].
    pub fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        env.shared.stack.check()?;
        match (self, plan) {
            (Cursor::Values(place), Plan::Values(rows)) => {
                let Some(row) = rows.get(*place) else { return Ok(None) };
                *place += 1;
                env.inside(&[]).values(row).map(Some)
            }
            (Cursor::Function(rows, count), Plan::Function { call, ordinality }) => {
                let rows = match rows {
                    Some(rows) => rows,
                    None => rows.insert(env.set(call)?),
                };
                let Some(value) = rows()? else { return Ok(None) };
                *count = count.saturating_add(1);
                Ok(Some(if *ordinality { vec![value, Datum::Int8(*count)] } else { vec![value] }))
            }
            (Cursor::Over(cursor), Plan::Filter { input, condition }) => {
                while let Some(row) = cursor.next(input, env)? {
                    if env.inside(&row).holds(condition)? {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            (Cursor::Over(cursor), Plan::Project { input, columns }) => match cursor.next(input, env)? {
                Some(row) => env.inside(&row).values(columns).map(Some),
                None => Ok(None),
            },
            (Cursor::Sets(cursor, at), Plan::Sets { input, sets }) => {
                next_of_sets(cursor, at, input, sets, env)
            }
            (Cursor::Join(join), plan @ Plan::Join { .. }) => join.next(plan, env),
            (Cursor::Kept(cursor, waiting), Plan::Sort { input, keys }) => {
                if waiting.is_none() {
                    *waiting = Some(sorted(cursor, input, keys, env)?);
                }
                Ok(waiting.as_mut().and_then(VecDeque::pop_front))
            }
            (Cursor::Kept(cursor, waiting), Plan::Group { input, keys, aggregates }) => {
                if waiting.is_none() {
                    *waiting = Some(grouped(cursor, input, keys, aggregates, env)?);
                }
                Ok(waiting.as_mut().and_then(VecDeque::pop_front))
            }
            (Cursor::Distinct(cursor, seen), Plan::Distinct { input, keys }) => {
                while let Some(row) = cursor.next(input, env)? {
                    let key = Key(picked(&row, keys));
                    if !seen.contains(&key) {
                        hold_row(env.shared, &key.0, "DISTINCT")?;
                        seen.insert(key);
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            (Cursor::Limit(cursor, left, last), Plan::Limit { input, count, skip, ties }) => {
                let left = match left {
                    Some(left) => left,
                    None => {
                        let (skip, count) = bounds(skip, count, env)?;
                        for _ in 0..skip {
                            if cursor.next(input, env)?.is_none() {
                                break;
                            }
                        }
                        left.insert(count)
                    }
                };
                if *left == Some(0) {
                    let (Some(ties), Some(last)) = (ties, last) else { return Ok(None) };
                    let row = cursor.next(input, env)?;
                    return Ok(row.filter(|row| Key(picked(row, ties)) == Key(last.clone())));
                }
                let row = cursor.next(input, env)?;
                if let Some(left) = left {
                    *left -= 1;
                }
                if let (Some(row), Some(ties)) = (&row, ties) {
                    *last = Some(picked(row, ties));
                }
                Ok(row)
            }
            (Cursor::Combined(combined), Plan::Combined { left, right, how, all }) => {
                combined.next(left, right, *how, *all, env)
            }
            _ => Err(confused()),
        }
    }
}

fn picked(row: &[Datum], keys: &[usize]) -> Row {
    keys.iter().map(|place| row.get(*place).cloned().unwrap_or(Datum::Null)).collect()
}

fn bounds(skip: &Option<Expr>, count: &Option<Expr>, env: &Env<'_>) -> Result<(i64, Option<i64>), SqlError> {
    let number = |expr: &Option<Expr>, state: SqlState, word: &str| match expr {
        None => Ok(None),
        Some(expr) => match env.inside(&[]).value(expr)? {
            Datum::Int8(value) if value < 0 => {
                Err(SqlError::new(state, format!("{word} must not be negative")))
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
    cursor: &mut Cursor,
    at: &mut Option<(Row, Vec<Option<Rows>>)>,
    input: &Plan,
    sets: &[Expr],
    env: &Env<'_>,
) -> Next {
    loop {
        if let Some((row, rows)) = at {
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
        let Some(row) = cursor.next(input, env)? else { return Ok(None) };
        let mut rows = Vec::with_capacity(sets.len());
        {
            let inside = env.inside(&row);
            for set in sets {
                rows.push(Some(inside.set(set)?));
            }
        }
        *at = Some((row, rows));
    }
}

impl Join {
    fn next(&mut self, plan: &Plan, env: &Env<'_>) -> Next {
        let Plan::Join { left, right, width, condition, outer, lateral } = plan else {
            return Err(confused());
        };
        loop {
            if self.row.is_none() {
                let Some(row) = self.left.next(left, env)? else { return Ok(None) };
                self.row = Some((row, false));
                self.place = 0;
                if *lateral {
                    self.right = Cursor::new(right);
                }
            }
            let Some((row, _)) = &self.row else { return Err(confused()) };
            let inner = if *lateral {
                self.right.next(right, &env.inside(row))?
            } else {
                if self.place == self.kept.len() && !self.complete {
                    match self.right.next(right, &env.inside(row))? {
                        Some(next) => {
                            hold_row(env.shared, &next, "a join")?;
                            self.kept.push(next);
                        }
                        None => self.complete = true,
                    }
                }
                let next = self.kept.get(self.place).cloned();
                self.place += 1;
                next
            };
            match inner {
                Some(inner) => {
                    let mut both = row.clone();
                    both.extend(inner);
                    let fits = match condition {
                        Some(condition) => env.inside(&both).holds(condition)?,
                        None => true,
                    };
                    if fits {
                        if let Some((_, met)) = &mut self.row {
                            *met = true;
                        }
                        return Ok(Some(both));
                    }
                }
                None => {
                    let Some((mut row, met)) = self.row.take() else { return Err(confused()) };
                    if *outer && !met {
                        row.resize(row.len() + width, Datum::Null);
                        return Ok(Some(row));
                    }
                }
            }
        }
    }
}

fn sorted(
    cursor: &mut Cursor,
    input: &Plan,
    keys: &[(usize, Direction)],
    env: &Env<'_>,
) -> Result<VecDeque<Row>, SqlError> {
    let mut rows = Vec::new();
    while let Some(row) = cursor.next(input, env)? {
        hold_row(env.shared, &row, "a sort")?;
        rows.push(row);
    }
    rows.sort_by(|a, b| {
        let at = |row: &Row, place: usize| row.get(place).cloned().unwrap_or(Datum::Null);
        let orders =
            keys.iter().map(|(place, direction)| directed(&at(a, *place), &at(b, *place), *direction));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(rows.into())
}

/// An aggregate that has seen some rows; one with an order keeps them until the last.
struct Running {
    state: State,
    /// Arguments, and the keys they are to be sorted by.
    rows: Vec<(Row, Row)>,
}

impl Running {
    fn new(aggregated: &Aggregated) -> Result<Running, SqlError> {
        match aggregated.function.body {
            Body::Aggregate(kind) => Ok(Running { state: State::new(kind), rows: Vec::new() }),
            _ => Err(confused()),
        }
    }

    fn add(&mut self, aggregated: &Aggregated, env: &Env<'_>) -> Result<(), SqlError> {
        if let Some(filter) = &aggregated.filter
            && !env.holds(filter)?
        {
            return Ok(());
        }
        let arguments = env.values(&aggregated.arguments)?;
        if aggregated.order.is_empty() {
            let before = self.state.size();
            self.take(aggregated, &arguments, env.shared)?;
            return hold(env.shared, self.state.size().saturating_sub(before), "an aggregate");
        }
        let mut keys = Vec::with_capacity(aggregated.order.len());
        for (key, _) in &aggregated.order {
            keys.push(env.value(key)?);
        }
        hold_row(env.shared, &arguments, "an aggregate")?;
        hold_row(env.shared, &keys, "an aggregate")?;
        self.rows.push((arguments, keys));
        Ok(())
    }

    fn take(
        &mut self,
        aggregated: &Aggregated,
        arguments: &[Datum],
        shared: &Shared<'_>,
    ) -> Result<(), SqlError> {
        self.state.add(&Call {
            arguments,
            types: &aggregated.types,
            result: aggregated.result,
            context: shared.context,
        })
    }

    fn finish(mut self, aggregated: &Aggregated, shared: &Shared<'_>) -> Result<Datum, SqlError> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|(_, a), (_, b)| {
            let orders = a.iter().zip(b).zip(&aggregated.order).map(|((a, b), (_, by))| directed(a, b, *by));
            orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut last: Option<Row> = None;
        for (arguments, _) in rows {
            if aggregated.distinct {
                let same = |last: &Row| {
                    last.len() == arguments.len()
                        && last.iter().zip(&arguments).all(|(a, b)| compare::compare(a, b).is_eq())
                };
                if last.as_ref().is_some_and(same) {
                    continue;
                }
                last = Some(arguments.clone());
            }
            self.take(aggregated, &arguments, shared)?;
        }
        self.state.finish(aggregated.result)
    }
}

fn grouped(
    cursor: &mut Cursor,
    input: &Plan,
    keys: &[Expr],
    aggregates: &[Aggregated],
    env: &Env<'_>,
) -> Result<VecDeque<Row>, SqlError> {
    let fresh = || aggregates.iter().map(Running::new).collect::<Result<Vec<Running>, SqlError>>();
    let mut groups: BTreeMap<Key, Vec<Running>> = BTreeMap::new();
    if keys.is_empty() {
        // Without keys there is one group, even of no rows.
        groups.insert(Key(Vec::new()), fresh()?);
    }
    while let Some(row) = cursor.next(input, env)? {
        let inside = env.inside(&row);
        let key = Key(inside.values(keys)?);
        let group = match groups.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                hold_row(env.shared, &entry.key().0, "GROUP BY")?;
                hold(env.shared, aggregates.len() * std::mem::size_of::<Running>(), "GROUP BY")?;
                entry.insert(fresh()?)
            }
        };
        for (running, aggregated) in group.iter_mut().zip(aggregates) {
            running.add(aggregated, &inside)?;
        }
    }
    let mut rows = VecDeque::with_capacity(groups.len());
    for (key, group) in groups {
        let mut row = key.0;
        for (running, aggregated) in group.into_iter().zip(aggregates) {
            row.push(running.finish(aggregated, env.shared)?);
        }
        rows.push_back(row);
    }
    Ok(rows)
}

impl Combined {
    fn next(&mut self, left: &Plan, right: &Plan, how: Combine, all: bool, env: &Env<'_>) -> Next {
        if how != Combine::Union {
            if self.waiting.is_none() {
                self.waiting = Some(self.matched(left, right, how, all, env)?);
            }
            return Ok(self.waiting.as_mut().and_then(VecDeque::pop_front));
        }
        loop {
            let row =
                if self.left_done { self.right.next(right, env)? } else { self.left.next(left, env)? };
            let Some(row) = row else {
                if self.left_done {
                    return Ok(None);
                }
                self.left_done = true;
                continue;
            };
            if all {
                return Ok(Some(row));
            }
            let key = Key(row);
            if !self.seen.contains(&key) {
                hold_row(env.shared, &key.0, "UNION")?;
                let row = key.0.clone();
                self.seen.insert(key);
                return Ok(Some(row));
            }
        }
    }

    /// `INTERSECT`, `EXCEPT`: how often a row is on either side.
    fn matched(
        &mut self,
        left: &Plan,
        right: &Plan,
        how: Combine,
        all: bool,
        env: &Env<'_>,
    ) -> Result<VecDeque<Row>, SqlError> {
        let mut counts: BTreeMap<Key, (usize, usize)> = BTreeMap::new();
        while let Some(row) = self.left.next(left, env)? {
            hold_row(env.shared, &row, "INTERSECT or EXCEPT")?;
            counts.entry(Key(row)).or_default().0 += 1;
        }
        while let Some(row) = self.right.next(right, env)? {
            if let Some(count) = counts.get_mut(&Key(row)) {
                count.1 += 1;
            }
        }
        let mut rows = VecDeque::new();
        for (key, (left, right)) in counts {
            let times = match (how, all) {
                (Combine::Intersect, true) => left.min(right),
                (Combine::Intersect, false) => usize::from(right > 0),
                (_, true) => left.saturating_sub(right),
                (_, false) => usize::from(right == 0),
            };
            rows.extend(std::iter::repeat_n(key.0, times));
        }
        Ok(rows)
    }
}
