//! What evaluates a query: rows one at a time.
//!
//! A [`Run`] is what a portal keeps: the state of each plan (`cursor`), what queries in
//! expressions have come to, and how much memory all of it holds. It does not borrow the query, so
//! that both can be kept side by side; every call gets the query anew.
//!
//! A run pauses when it has worked for a while ([`fuel`]), wherever it is: in a plan, or in a query
//! within an expression ([`trail`]).
//!
//! What keeps rows (sorts, groups, inner sides of joins) counts their bytes against one limit and
//! refuses beyond it (53200); nothing is spilled.

mod bounds;
mod combine;
mod cursor;
pub mod evaluate;
pub mod fuel;
mod group;
mod join;
pub mod lock;
mod reading;
mod recursion;
pub(crate) mod rows;
pub mod scan;
mod subquery;
pub mod trail;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::SqlError;
use crate::analyze::plan::Expr;
use crate::analyze::{Catalog, Query};
use crate::functions::{Asks, confused};
use crate::stack::Stack;
use crate::store::{Pair, Range};
use crate::types::{Datum, Style};
use cursor::Cursor;
use evaluate::{Env, Shared};
use fuel::{Fuel, Halt};
use scan::{Fetch, Wanted};
use trail::Trail;

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
    /// What is left to work with until a pause.
    pub fuel: &'a Fuel,
    /// Set when a function is called that may give something else each time.
    pub volatile: &'a Cell<bool>,
}

/// What a run asks the session.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// What is asked.
    pub about: Asks,
    /// The arguments of the function that asks.
    pub arguments: Vec<Datum>,
}

/// What evaluating by itself comes to.
#[derive(Clone, PartialEq, Debug)]
pub enum Evaluated {
    /// The values.
    Values(Vec<Datum>),
    /// A question: after its answer ([`Run::answered`]) the same call gets there.
    Asked(Question),
}

/// What a run has come to when it gives way.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// The next row.
    Row(Vec<Datum>),
    /// A pause: with new fuel it goes on.
    Pause,
    /// A scan needs rows: [`Run::fetched`] takes them.
    Fetch(Wanted),
    /// A function needs an answer: [`Run::answered`] takes it.
    Ask(Question),
    /// A row is to be reserved: [`Run::reserved`] is told whether it is.
    Reserve(lock::Reserve),
    /// The end: there are no more rows.
    End,
}

/// The state of a query that runs: a portal's.
pub struct Run {
    parameters: Vec<Datum>,
    cursor: Cursor,
    /// What queries in expressions have come to that depend on nothing around them.
    answers: RefCell<Vec<Option<subquery::Answer>>>,
    working: RefCell<BTreeMap<usize, Arc<[rows::Row]>>>,
    held: Cell<usize>,
    fetch: RefCell<Option<Fetch>>,
}

impl Query {
    /// Begins to run it with these parameters.
    pub fn start(&self, parameters: Vec<Datum>) -> Run {
        Run {
            parameters,
            cursor: Cursor::new(&self.plan),
            answers: RefCell::new(vec![None; self.subqueries]),
            working: RefCell::default(),
            held: Cell::new(0),
            fetch: RefCell::new(None),
        }
    }
}

impl Run {
    /// Begins anew, with the same parameters; another query may have taken the place of the first.
    pub fn restart(&mut self, query: &Query) {
        *self = query.start(std::mem::take(&mut self.parameters));
    }

    /// A run of nothing, to evaluate expressions with that have no parameters.
    pub fn idle() -> Run {
        Run {
            parameters: Vec::new(),
            cursor: Cursor::Values(0, Trail::default()),
            answers: RefCell::default(),
            working: RefCell::default(),
            held: Cell::new(0),
            fetch: RefCell::new(None),
        }
    }

    /// The answer that a function has asked for.
    pub fn answered(&self, answer: Datum) {
        self.fetch.replace(Some(Fetch::Answer(answer)));
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Datum] {
        &self.parameters
    }

    /// Rows that a scan has asked for, with what is left of its range.
    pub fn fetched(&mut self, pairs: Vec<Pair>, left: Option<Range>) {
        self.fetch.replace(Some(Fetch::Found(pairs, left)));
    }

    /// A row is reserved, or is to be left out.
    pub fn reserved(&mut self, is_reserved: bool) {
        self.fetch.replace(Some(Fetch::Reserved(is_reserved)));
    }

    /// The values of expressions without queries in them, over a row. After a question it has to be
    /// called with the same trail.
    pub fn values(
        &self,
        trail: &Trail,
        exprs: &[Expr],
        row: &[Datum],
        context: &Context<'_>,
    ) -> Result<Evaluated, SqlError> {
        let shared = Shared {
            context,
            parameters: &self.parameters,
            answers: &self.answers,
            working: &self.working,
            held: &self.held,
            fetch: &self.fetch,
            stack: Stack::begin(),
        };
        let outside = Env::begin(&shared, trail);
        match trail.evaluate(&outside.inside(row), |env| env.values(exprs)) {
            Ok(values) => Ok(Evaluated::Values(values)),
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Pause) => match self.fetch.take() {
                Some(Fetch::Asked(question)) => Ok(Evaluated::Asked(question)),
                _ => Err(confused()),
            },
        }
    }

    /// Goes on to the next row, a pause, or the end.
    pub fn next(&mut self, query: &Query, context: &Context<'_>) -> Result<Step, SqlError> {
        if let Some(failure) = &query.failure {
            return Err(failure.clone());
        }
        let shared = Shared {
            context,
            parameters: &self.parameters,
            answers: &self.answers,
            working: &self.working,
            held: &self.held,
            fetch: &self.fetch,
            stack: Stack::begin(),
        };
        match self.cursor.next(&query.plan, &Env::begin(&shared, &Trail::default())) {
            Ok(Some(row)) => Ok(Step::Row(row)),
            Ok(None) => Ok(Step::End),
            Err(Halt::Pause) => {
                let is_asked = |fetch: &mut Fetch| {
                    matches!(fetch, Fetch::Wanted(_) | Fetch::Asked(_) | Fetch::Reserve(_))
                };
                Ok(match self.fetch.get_mut().take_if(is_asked) {
                    Some(Fetch::Wanted(wanted)) => Step::Fetch(wanted),
                    Some(Fetch::Asked(question)) => Step::Ask(question),
                    Some(Fetch::Reserve(reserve)) => Step::Reserve(reserve),
                    _ => Step::Pause,
                })
            }
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}
