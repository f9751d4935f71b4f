//! What evaluates a query: rows one at a time.
//!
//! A [`Run`] is what a portal keeps: the state of each plan ([`cursor`]), what queries in
//! expressions have come to, and how much memory all of it holds. It does not borrow the query, so
//! that both can be kept side by side; every call gets the query anew.
//!
//! What keeps rows (sorts, groups, inner sides of joins) counts their bytes against one limit and
//! refuses beyond it (53200); nothing is spilled.

pub mod cursor;
pub mod evaluate;
pub mod rows;

use std::cell::{Cell, RefCell};

use crate::SqlError;
use crate::analyze::{Catalog, Query};
use crate::stack::Stack;
use crate::types::{Datum, Style};
use cursor::Cursor;
use evaluate::{Env, Shared};

/// What a run asks of its surroundings.
pub struct Context<'a> {
    /// The session's settings and identity.
    pub catalog: &'a dyn Catalog,
    /// What text forms depend on.
    pub style: &'a Style,
    /// When the transaction began, in microseconds since 2000-01-01.
    pub transaction_us: i64,
    /// When the statement began, in microseconds since 2000-01-01.
    pub statement_us: i64,
    /// The time now, in microseconds since 2000-01-01.
    pub clock: &'a dyn Fn() -> i64,
    /// 64 random bits.
    pub random: &'a dyn Fn() -> u64,
    /// What `pg_backend_pid()` says.
    pub backend: i32,
}

/// The state of a query that runs: a portal's.
pub struct Run {
    parameters: Vec<Datum>,
    cursor: Cursor,
    /// What queries in expressions have come to that depend on nothing around them.
    answers: RefCell<Vec<Option<evaluate::Answer>>>,
    held: Cell<usize>,
}

impl Query {
    /// Begins to run it with these parameters.
    pub fn start(&self, parameters: Vec<Datum>) -> Run {
        Run {
            parameters,
            cursor: Cursor::new(&self.plan),
            answers: RefCell::new(vec![None; self.subqueries]),
            held: Cell::new(0),
        }
    }
}

impl Run {
    /// The next row; none after the last.
    pub fn next(&mut self, query: &Query, context: &Context<'_>) -> Result<Option<Vec<Datum>>, SqlError> {
        if let Some(failure) = &query.failure {
            return Err(failure.clone());
        }
        let shared = Shared {
            context,
            parameters: &self.parameters,
            answers: &self.answers,
            held: &self.held,
            stack: Stack::begin(),
        };
        let env = Env { shared: &shared, row: &[], outer: None, case: None };
        self.cursor.next(&query.plan, &env)
    }
}
