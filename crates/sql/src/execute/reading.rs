//! The rows of a relation of the catalog, which are made when they are read.

use std::sync::Arc;
use std::vec::IntoIter;

use super::cursor::Next;
use super::evaluate::Env;
use super::fuel::Halt;
use super::trail::Trail;
use crate::analyze::plan::Reading;
use crate::catalog::pg::{Depends, Kept, Sight};

/// The state of a reading.
#[derive(Default)]
pub struct Read {
    trail: Trail,
    /// The relation's rows and the places of those that are still to come, once they are known.
    rows: Option<(Arc<Kept>, IntoIter<usize>)>,
}

impl Read {
    /// The next row; none after the last.
    pub fn next(&mut self, reading: &Reading, env: &Env<'_>) -> Next {
        let (rows, places) = match &mut self.rows {
            Some(rows) => rows,
            None => {
                let begun = self.begin(reading, env)?;
                self.rows.insert(begun)
            }
        };
        env.fuel().row()?;
        Ok(places.next().and_then(|place| rows.row(place).cloned()))
    }

    fn begin(&self, reading: &Reading, env: &Env<'_>) -> Result<(Arc<Kept>, IntoIter<usize>), Halt> {
        let session = env.shared.context.catalog;
        let objects = session.objects()?;
        if reading.relation.depends == Depends::Node {
            // Another run would find other rows.
            env.shared.context.volatile.set(true);
        }
        let rows = objects.rows(reading.relation, &Sight { objects: &objects, session });
        let all = || (0..rows.count()).collect::<Vec<usize>>();
        let places = match &reading.equal {
            None => all(),
            Some((column, value)) => {
                match self.trail.evaluate(&env.inside(&[]), |inside| inside.value(value)) {
                    Ok(value) => rows.with(*column, &value),
                    // The condition that it is from is tested on every row, if it gets there.
                    Err(Halt::Failed(_)) => all(),
                    Err(Halt::Pause) => return Err(Halt::Pause),
                }
            }
        };
        Ok((rows, places.into_iter()))
    }
}
