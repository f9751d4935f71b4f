//! The state of a sequence as bytes.
//!
//! It lies in [`Space::Parted`](crate::store::Space::Parted) under a key of five bytes: the number
//! that the sequence is kept under, and 0. It is 8 bytes for the last number, a byte that says
//! whether that has been given out, and 8 for PostgreSQL's `log_cnt`, all big endian.

use super::bytes::{Bytes, corrupted};
use crate::SqlError;

/// The state of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The last number, or the first if none has been given out.
    pub last: i64,
    /// Whether it has been given out.
    pub is_called: bool,
    /// How many numbers PostgreSQL would give out before it writes to its log again.
    pub logged: i64,
}

impl State {
    /// One that gives out this number first.
    pub fn before(first: i64) -> State {
        State { last: first, is_called: false, logged: 0 }
    }

    /// The state as bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17);
        out.extend(self.last.to_be_bytes());
        out.push(u8::from(self.is_called));
        out.extend(self.logged.to_be_bytes());
        out
    }

    /// The state of some bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<State, SqlError> {
        let mut rest = Bytes::new(bytes);
        let last = rest.i64()?;
        let is_called = match rest.u8()? {
            flag @ 0..=1 => flag == 1,
            flag => return Err(corrupted(format!("A sequence's flag is {flag}."))),
        };
        let logged = rest.i64()?;
        rest.end()?;
        Ok(State { last, is_called, logged })
    }
}

/// The key of a state.
pub fn state_key(rows: u32) -> Vec<u8> {
    let mut key = rows.to_be_bytes().to_vec();
    key.push(0);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_nothing_else_is() {
        let state = State { last: -5, is_called: true, logged: 31 };
        assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state));
        let mut torn = state.to_bytes();
        torn.pop();
        assert!(State::from_bytes(&torn).is_err());
        let mut strange = state.to_bytes();
        strange[8] = 2;
        assert!(State::from_bytes(&strange).is_err());
    }
}
