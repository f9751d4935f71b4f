//! Queries in expressions: how they run, and what is made of their rows.
//!
//! One that depends on nothing around it runs once, and its answer is kept with the run. Any other
//! runs anew for every row. Both may pause ([`super::trail`]).

use std::sync::Arc;

use super::cursor::Cursor;
use super::evaluate::Env;
use super::fuel::Halt;
use super::rows::{Row, hold_row};
use super::trail::Note;
use crate::analyze::plan::{Expr, Question, Subquery};
use crate::functions::{arrays, confused};
use crate::types::{Array, Datum};
use crate::{SqlError, SqlState};

/// What a query in an expression has come to.
#[derive(Clone)]
pub enum Answer {
    /// A value.
    Value(Datum),
    /// Its rows, which are tested for every row around it.
    Rows(Arc<[Row]>),
}

/// A query in an expression that runs.
pub struct Asked {
    subquery: Arc<Subquery>,
    stage: Stage,
    /// Whether it is evaluated within a test of another query's rows, so that it sees such a row.
    is_tested: bool,
}

enum Stage {
    /// Rows come; there is no cursor once there are enough.
    Gathering(Option<Cursor>, Vec<Row>),
    /// Rows are tested: all of them, how many have been, and whether one was unknown.
    Testing(Arc<[Row]>, usize, bool),
}

impl Asked {
    /// Goes on after a pause, as far as that needs nothing but the row around it.
    pub fn go_on(&mut self, env: &Env<'_>) -> Result<(), Halt> {
        if self.is_tested { Ok(()) } else { self.gather(env) }
    }

    /// Gathers the rows that the question needs.
    fn gather(&mut self, env: &Env<'_>) -> Result<(), Halt> {
        let Stage::Gathering(cursor, rows) = &mut self.stage else { return Ok(()) };
        let (enough, what) = match self.subquery.question {
            Question::Exists => (1, None),
            // A second row is an error.
            Question::Value => (2, None),
            Question::Array(_) => (usize::MAX, Some("an array of a query")),
            Question::Test { .. } => (usize::MAX, Some("a query in an expression")),
        };
        while let Some(running) = cursor
            && rows.len() < enough
        {
            match running.next(&self.subquery.plan, env)? {
                Some(row) => {
                    if let Some(what) = what {
                        hold_row(env.shared, &row, what)?;
                    }
                    rows.push(row);
                }
                None => *cursor = None,
            }
        }
        *cursor = None;
        Ok(())
    }
}

impl Env<'_> {
    /// The value of a query in an expression.
    pub(super) fn subquery(&self, subquery: &Arc<Subquery>) -> Result<Datum, Halt> {
        let place = self.trail.enter();
        let mut asked = match self.trail.take(place) {
            Some(Note::Value(value)) => {
                self.trail.put(place, Note::Value(value.clone()));
                return Ok(value);
            }
            Some(Note::Asked(asked)) => {
                // What was evaluated to come here again is not counted.
                self.fuel().refill();
                asked
            }
            None => {
                let stage = match self.shared.answers.borrow().get(subquery.id).cloned().flatten() {
                    None => Stage::Gathering(Some(Cursor::new(&subquery.plan)), Vec::new()),
                    Some(Answer::Rows(rows)) => Stage::Testing(rows, 0, false),
                    Some(Answer::Value(value)) => {
                        self.trail.put(place, Note::Value(value.clone()));
                        return Ok(value);
                    }
                };
                Box::new(Asked { subquery: Arc::clone(subquery), stage, is_tested: self.is_tested })
            }
        };
        let value = self.answer(&mut asked, place);
        match &value {
            Ok(value) => self.trail.put(place, Note::Value(value.clone())),
            Err(Halt::Pause) => self.trail.put(place, Note::Asked(asked)),
            Err(Halt::Failed(_)) => {}
        }
        value
    }

    /// Gets the answer of a query that runs and stands at a place of the trail.
    fn answer(&self, asked: &mut Asked, place: usize) -> Result<Datum, Halt> {
        asked.gather(self)?;
        let subquery = Arc::clone(&asked.subquery);
        if let Stage::Gathering(_, rows) = &mut asked.stage {
            let answer = concluded(&subquery.question, std::mem::take(rows))?;
            if !subquery.correlated
                && let Some(slot) = self.shared.answers.borrow_mut().get_mut(subquery.id)
            {
                *slot = Some(answer.clone());
            }
            match answer {
                Answer::Value(value) => return Ok(value),
                Answer::Rows(rows) => asked.stage = Stage::Testing(rows, 0, false),
            }
        }
        let (Stage::Testing(rows, tested, unknown), Question::Test { test, all }) =
            (&mut asked.stage, &subquery.question)
        else {
            return Err(confused().into());
        };
        self.test(test, *all, rows, (tested, unknown), place)
    }

    /// Tests rows: `IN`, `ANY`, `ALL`.
    fn test(
        &self,
        test: &Expr,
        all: bool,
        rows: &[Row],
        (tested, unknown): (&mut usize, &mut bool),
        place: usize,
    ) -> Result<Datum, Halt> {
        while let Some(row) = rows.get(*tested) {
            self.fuel().row()?;
            let value = Env { is_tested: true, ..self.inside(row) }.value(test)?;
            // What the test of a row has left in the trail concerns no other row.
            self.trail.back_to(place);
            match value {
                Datum::Bool(value) if value != all => return Ok(Datum::Bool(!all)),
                Datum::Bool(_) => {}
                _ => *unknown = true,
            }
            *tested += 1;
        }
        Ok(if *unknown { Datum::Null } else { Datum::Bool(all) })
    }
}

/// What the rows of a query come to.
fn concluded(question: &Question, rows: Vec<Row>) -> Result<Answer, SqlError> {
    Ok(match question {
        Question::Exists => Answer::Value(Datum::Bool(!rows.is_empty())),
        Question::Value if rows.len() > 1 => {
            return Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            ));
        }
        Question::Value => {
            let row = rows.into_iter().next();
            Answer::Value(row.and_then(|row| row.into_iter().next()).unwrap_or(Datum::Null))
        }
        Question::Array(oid) => {
            let values: Vec<Datum> = rows.into_iter().flat_map(|row| row.into_iter().take(1)).collect();
            let element = oid.element().unwrap_or(*oid);
            let nested = matches!(values.first(), Some(Datum::Array(_)));
            Answer::Value(if nested {
                arrays::stacked(element, &values)?
            } else {
                Array::flat(element, values)
            })
        }
        Question::Test { .. } => Answer::Rows(rows.into()),
    })
}
