//! How a sequence goes on.

use crate::catalog::Sequence;
use crate::encoding::sequence::State;
use crate::{SqlError, SqlState};

/// Numbers that PostgreSQL writes to its log ahead of time.
const LOGGED_AHEAD: i64 = 32;

/// Numbers that a session holds.
#[derive(Default, Debug)]
pub struct Block {
    next: i64,
    step: i64,
    left: i64,
    /// How many there were.
    pub size: i64,
    /// When they were taken.
    pub taken_us: i64,
}

impl Block {
    /// The next numbers after a state, at most this many. The state becomes the one after them.
    pub fn after(sequence: &Sequence, state: &mut State, wanted: i64) -> Result<Block, SqlError> {
        let Sequence { increment, least, largest, .. } = sequence;
        let first = match state.is_called {
            false => state.last,
            true => match state.last.checked_add(*increment) {
                Some(next) if (*least..=*largest).contains(&next) => next,
                _ if sequence.cycles => {
                    if *increment > 0 {
                        *least
                    } else {
                        *largest
                    }
                }
                _ => return Err(exhausted(sequence)),
            },
        };
        let end = if *increment > 0 { *largest } else { *least };
        let more = i128::from(end).saturating_sub(i128::from(first)) / i128::from(*increment);
        let left = i64::try_from(more).unwrap_or(i64::MAX).max(0).saturating_add(1).min(wanted);
        let is_logged = !state.is_called || state.logged < left;
        *state = State {
            last: first.saturating_add(increment.saturating_mul(left - 1)),
            is_called: true,
            logged: if is_logged { LOGGED_AHEAD } else { state.logged - left },
        };
        Ok(Block { next: first, step: *increment, left, size: left, taken_us: 0 })
    }

    /// Gives out the next number.
    pub fn next(&mut self) -> Option<i64> {
        let number = self.next;
        self.left = self.left.checked_sub(1).filter(|left| *left >= 0)?;
        self.next = number.saturating_add(self.step);
        Some(number)
    }
}

fn exhausted(sequence: &Sequence) -> SqlError {
    let (which, end) = match sequence.increment > 0 {
        true => ("maximum", sequence.largest),
        false => ("minimum", sequence.least),
    };
    let error = format!("nextval: reached {which} value of sequence \"{}\" ({end})", sequence.name);
    SqlError::new(SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, error)
}

/// Refuses a value that is none of a sequence's numbers; `what` is what a statement calls it.
pub fn check_bounds(what: &str, value: i64, sequence: &Sequence) -> Result<(), SqlError> {
    let Sequence { least, largest, .. } = sequence;
    let error = if value < *least {
        format!("{what} value ({value}) cannot be less than MINVALUE ({least})")
    } else if value > *largest {
        format!("{what} value ({value}) cannot be greater than MAXVALUE ({largest})")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Oid;

    fn sequence(increment: i64, least: i64, largest: i64, cycles: bool) -> Sequence {
        Sequence {
            id: 1,
            rows: 1,
            schema: "public".to_owned(),
            name: "s".to_owned(),
            oid: Oid::INT8,
            start: 1,
            increment,
            least,
            largest,
            cache: 1,
            cycles,
            owner: None,
        }
    }

    /// The numbers that a sequence gives out in blocks of a size.
    fn numbers(sequence: &Sequence, size: i64, count: usize) -> (Vec<i64>, Option<String>) {
        let (mut state, mut numbers) = (State::before(sequence.start), Vec::new());
        while numbers.len() < count {
            match Block::after(sequence, &mut state, size) {
                Ok(mut block) => numbers.extend(std::iter::from_fn(|| block.next())),
                Err(error) => return (numbers, Some(error.message)),
            }
        }
        numbers.truncate(count);
        (numbers, None)
    }

    #[test]
    fn blocks_of_any_size_are_the_same_numbers() {
        for size in [1, 2, 3, 64] {
            assert_eq!(numbers(&sequence(1, 1, 1000, false), size, 5).0, [1, 2, 3, 4, 5]);
            assert_eq!(numbers(&sequence(2, 1, 5, true), size, 7).0, [1, 3, 5, 1, 3, 5, 1]);
            assert_eq!(numbers(&sequence(-2, -3, 2, true), size, 5).0, [1, -1, -3, 2, 0]);
            let (given, error) = numbers(&sequence(3, 1, 8, false), size, 9);
            assert_eq!(given, [1, 4, 7]);
            assert_eq!(error.as_deref(), Some("nextval: reached maximum value of sequence \"s\" (8)"));
            let ends = sequence(i64::MAX, i64::MIN, i64::MAX, false);
            assert!(numbers(&ends, size, 2).1.is_some());
        }
    }
}
