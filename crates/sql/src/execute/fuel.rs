//! How much a query works before it pauses.
//!
//! A session is one task of its shard among others, so a query must not compute for as long as it
//! likes. It works on *fuel*. A row that a plan makes, or takes from those that it has kept, burns
//! one unit; a function burns one for every kilobyte of its arguments and its result, and more if
//! its work grows faster than they do. A plan that is about to make a row and finds the fuel spent
//! pauses: [`Halt::Pause`] goes up through all plans as an error does, each of them keeps what it
//! needs to go on, and the session lets the other tasks run before it gives new fuel.
//!
//! A plan looks at the fuel immediately before it makes a row of its own, and nowhere else. So
//! every call gets a query further by one row at least, however little fuel it has. A query that
//! has fuel for one row pauses wherever it can; tests compare what it answers with what it answers
//! without a pause.
//!
//! What a single row needs is not interrupted, but for queries in its expressions. It is owed: the
//! fuel falls below zero. A row that would owe more than `DEBT_MAX` is refused.

use std::cell::Cell;

use crate::{SqlError, SqlState};

/// Units that a row may owe: about a second of work.
const DEBT_MAX: i64 = 1_000_000;

/// Bytes of arguments and results that a function handles with a unit.
const UNIT_BYTES: usize = 1 << 10;

/// Why a plan makes no row.
#[derive(Debug)]
pub enum Halt {
    /// The fuel is spent: the same call again, with new fuel, goes on from here.
    Pause,
    /// The statement has failed.
    Failed(SqlError),
}

impl From<SqlError> for Halt {
    fn from(error: SqlError) -> Halt {
        Halt::Failed(error)
    }
}

/// What a query has left to work with until it pauses.
#[derive(Debug)]
pub struct Fuel {
    left: Cell<i64>,
    given: i64,
}

impl Fuel {
    /// Fuel for this many units of work.
    pub fn new(units: u32) -> Fuel {
        Fuel { left: Cell::new(i64::from(units)), given: i64::from(units) }
    }

    /// As much again as was given at first.
    pub fn refill(&self) {
        self.left.set(self.given);
    }

    /// How much was burned since the last refill.
    pub fn burned(&self) -> usize {
        usize::try_from(self.given.saturating_sub(self.left.get())).unwrap_or(0)
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left.get() <= 0
    }

    /// Burns the unit of a row, or says that it is time to pause.
    pub fn row(&self) -> Result<(), Halt> {
        if self.is_spent() {
            return Err(Halt::Pause);
        }
        self.burn(1);
        Ok(())
    }

    /// Burns what work takes that cannot pause.
    pub fn burn(&self, units: usize) {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        self.left.set(self.left.get().saturating_sub(units));
    }

    /// Burns what it takes to handle this many bytes.
    pub fn burn_bytes(&self, bytes: usize) {
        if bytes >= UNIT_BYTES {
            self.burn(bytes / UNIT_BYTES);
        }
    }

    /// Refuses to go on with a row that owes too much.
    pub fn check(&self) -> Result<(), SqlError> {
        if self.left.get() >= -DEBT_MAX {
            return Ok(());
        }
        let detail = "The functions of a single row would compute for more than about a second.";
        Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "statement too complex").detail(detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_fuel_pauses_and_a_debt_is_refused_beyond_a_limit() {
        let fuel = Fuel::new(2);
        assert!(fuel.row().is_ok() && fuel.row().is_ok());
        assert!(matches!(fuel.row(), Err(Halt::Pause)));
        fuel.burn_bytes(1_000_000 << 10);
        assert_eq!(fuel.check(), Ok(()));
        fuel.burn(1);
        assert_eq!(fuel.check().map_err(|error| error.state), Err(SqlState::STATEMENT_TOO_COMPLEX));
        fuel.refill();
        assert!(fuel.check().is_ok() && fuel.row().is_ok() && !fuel.is_spent());
    }
}
