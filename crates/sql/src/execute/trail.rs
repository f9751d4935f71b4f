//! How an expression is evaluated that pauses in its middle.
//!
//! Evaluation is a recursion, whose place cannot be kept. A query in an expression can be: it has a
//! cursor. So when such a query pauses, evaluation is given up, and later it begins anew over the
//! same row, with a *trail*: in the order of evaluation what each query in the expression has come
//! to, or where it has paused, and the values of volatile functions, which must not be called
//! again. With these the second evaluation takes the way of the first and gets further.
//!
//! `random() + (SELECT count(*) FROM generate_series(1, 1000))`, with fuel for 600 rows, leaves the
//! trail `[0.25, paused after 600]`; the second evaluation reads 0.25, goes on with the query and
//! ends. What precedes a query would be evaluated as often as it pauses. Therefore the query goes
//! on first, by itself, and evaluation begins anew only when the query has all its rows.
//!
//! A place in the trail is a number of a query or a volatile function in the order of evaluation.
//! That order depends on nothing but the row and the trail, so a place means the same each time.

use std::cell::{Cell, RefCell};

use super::evaluate::Env;
use super::fuel::Halt;
use super::subquery::Asked;
use crate::types::Datum;

/// What a place of the trail has.
pub enum Note {
    /// A value.
    Value(Datum),
    /// A query that has paused.
    Asked(Box<Asked>),
}

/// What the evaluation of a row has come to before a pause.
#[derive(Default)]
pub struct Trail {
    notes: RefCell<Vec<Option<Note>>>,
    /// The next place.
    place: Cell<usize>,
}

impl Trail {
    /// Evaluates over the row that is seen. After a pause it has to be called with the same row.
    pub fn evaluate<T>(
        &self,
        env: &Env<'_>,
        evaluate: impl FnOnce(&Env<'_>) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        let env = Env { trail: self, is_tested: false, ..*env };
        self.go_on(&env)?;
        self.place.set(0);
        let result = evaluate(&env);
        if !matches!(result, Err(Halt::Pause)) {
            self.notes.borrow_mut().clear();
        }
        result
    }

    /// Goes on with the query that has paused.
    fn go_on(&self, env: &Env<'_>) -> Result<(), Halt> {
        let last = self.notes.borrow().len().checked_sub(1);
        let Some((last, Some(note))) = last.map(|last| (last, self.take(last))) else { return Ok(()) };
        env.fuel().refill();
        let (note, result) = match note {
            Note::Asked(mut asked) => {
                let result = asked.go_on(env);
                (Note::Asked(asked), result)
            }
            value @ Note::Value(_) => (value, Ok(())),
        };
        self.put(last, note);
        result
    }

    /// The place of what is evaluated next.
    pub fn enter(&self) -> usize {
        let place = self.place.get();
        self.place.set(place + 1);
        place
    }

    /// Takes what a place has.
    pub fn take(&self, place: usize) -> Option<Note> {
        self.notes.borrow_mut().get_mut(place).and_then(Option::take)
    }

    /// Puts something into a place.
    pub fn put(&self, place: usize, note: Note) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() <= place {
            notes.resize_with(place + 1, || None);
        }
        if let Some(slot) = notes.get_mut(place) {
            *slot = Some(note);
        }
    }

    /// Forgets what comes after a place, which is next again.
    pub fn back_to(&self, place: usize) {
        self.notes.borrow_mut().truncate(place + 1);
        self.place.set(place + 1);
    }

    /// A value that is made once: what the place has, or what is made now.
    pub fn once<E>(&self, make: impl FnOnce() -> Result<Datum, E>) -> Result<Datum, E> {
        let place = self.enter();
        let value = match self.take(place) {
            Some(Note::Value(value)) => value,
            _ => make()?,
        };
        self.put(place, Note::Value(value.clone()));
        Ok(value)
    }
}
