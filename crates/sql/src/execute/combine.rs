//! Two queries put together: `UNION`, `INTERSECT`, `EXCEPT`.

use std::collections::{BTreeMap, BTreeSet};

use super::cursor::{Cursor, Next};
use super::evaluate::Env;
use super::rows::{Key, Row, hold_row, keyed};
use crate::analyze::plan::{Combine, Plan};

/// The state of two queries that are put together.
pub struct Combined {
    left: Cursor,
    right: Cursor,
    left_done: bool,
    right_done: bool,
    /// Of a `UNION`: rows that have come.
    seen: BTreeSet<Key>,
    /// Of the others: how often a row is on either side.
    counts: BTreeMap<Key, (usize, usize)>,
    /// A row, and how often it is still to come.
    again: Option<(Row, usize)>,
}

impl Combined {
    pub(super) fn new(left: &Plan, right: &Plan) -> Combined {
        Combined {
            left: Cursor::new(left),
            right: Cursor::new(right),
            left_done: false,
            right_done: false,
            seen: BTreeSet::new(),
            counts: BTreeMap::new(),
            again: None,
        }
    }

    pub(super) fn next(&mut self, left: &Plan, right: &Plan, how: Combine, all: bool, env: &Env<'_>) -> Next {
        if how != Combine::Union {
            return self.matched(left, right, how, all, env);
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
            let key = keyed(env.shared, row);
            if !self.seen.contains(&key) {
                hold_row(env.shared, &key.0, "UNION")?;
                let row = key.0.clone();
                self.seen.insert(key);
                return Ok(Some(row));
            }
        }
    }

    /// `INTERSECT`, `EXCEPT`: how often a row is on either side decides how often it comes.
    fn matched(&mut self, left: &Plan, right: &Plan, how: Combine, all: bool, env: &Env<'_>) -> Next {
        while !self.left_done {
            match self.left.next(left, env)? {
                Some(row) => {
                    hold_row(env.shared, &row, "INTERSECT or EXCEPT")?;
                    self.counts.entry(keyed(env.shared, row)).or_default().0 += 1;
                }
                None => self.left_done = true,
            }
        }
        while !self.right_done {
            match self.right.next(right, env)? {
                Some(row) => {
                    if let Some(count) = self.counts.get_mut(&keyed(env.shared, row)) {
                        count.1 += 1;
                    }
                }
                None => self.right_done = true,
            }
        }
        loop {
            env.fuel().row()?;
            if let Some((row, times)) = &mut self.again
                && *times > 0
            {
                *times -= 1;
                return Ok(Some(row.clone()));
            }
            let Some((key, (left, right))) = self.counts.pop_first() else { return Ok(None) };
            let times = match (how, all) {
                (Combine::Intersect, true) => left.min(right),
                (Combine::Intersect, false) => usize::from(right > 0),
                (_, true) => left.saturating_sub(right),
                (_, false) => usize::from(right == 0),
            };
            self.again = Some((key.0, times));
        }
    }
}
