//! The matches of a pattern in a text, in a bounded time.
//!
//! The library matches most patterns in time that grows with the length of the text, and with the
//! size of the pattern: the product of both is bounded. Patterns that look around or refer back it
//! matches by backtracking, whose steps it bounds for each match but does not tell. So a match is
//! tried with few steps first and with four times as many after a failure, and what was allowed to
//! it counts as taken. All matches of a call together may take [`STEPS_MAX`].

use fancy_regex::{Error, Regex, RuntimeError};

use super::pattern::{Flags, compile};
use crate::functions::Call;
use crate::{SqlError, SqlState};

/// What a match has found.
pub type Captures<'t> = fancy_regex::Captures<'t, str>;

/// Steps that matches may take in a call: about a tenth of a second.
const STEPS_MAX: usize = 4_000_000;

/// Steps that a match is tried with first, of patterns that backtrack.
const STEPS_FIRST: usize = 64;

/// Steps that a match counts as of any other pattern.
const STEPS_PLAIN: usize = 8;

/// Bytes of a text times the size of a pattern at most.
const PRODUCT_MAX: usize = 60_000_000;

/// What a repetition counts for, compared with a character of the pattern.
const REPETITION: usize = 8;

/// Steps that take about as long as a unit of work.
const STEPS_PER_UNIT: usize = 32;

/// Units of work that it takes to compile a pattern.
const UNITS_PER_PATTERN: usize = 50;

/// A search, and how far it is.
pub struct Search<'t> {
    call: &'t Call<'t>,
    text: &'t str,
    pattern: String,
    flags: Flags,
    /// The pattern with the steps that matches need so far.
    regex: Regex,
    steps: usize,
    backtracks: bool,
    taken: usize,
    /// Where the next match is looked for, and where the last one has ended.
    from: usize,
    end: Option<usize>,
}

impl<'t> Search<'t> {
    /// A search in the text that is the first argument of a call.
    pub fn new(call: &'t Call<'_>, pattern: &str, flags: Flags) -> Result<Search<'t>, SqlError> {
        let text: &str = call.text(0)?;
        call.context.fuel.burn(UNITS_PER_PATTERN);
        if text.len().saturating_mul(size(pattern)) > PRODUCT_MAX {
            return Err(too_long());
        }
        Ok(Search {
            call,
            text,
            pattern: pattern.to_owned(),
            regex: compile(pattern, &flags, STEPS_FIRST)?,
            flags,
            steps: STEPS_FIRST,
            backtracks: backtracks(pattern),
            taken: 0,
            from: 0,
            end: None,
        })
    }

    /// The next match; none after the last. An empty one does not follow at the end of another.
    pub fn next(&mut self) -> Result<Option<Captures<'t>>, SqlError> {
        while self.from <= self.text.len() {
            let Some(captures) = self.attempt()? else { return Ok(None) };
            let Some((start, end)) = captures.get(0).map(|found| (found.start(), found.end())) else {
                return Ok(None);
            };
            let is_empty = start == end;
            let width = self.text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            self.from = if is_empty { end + width } else { end };
            if !is_empty || self.end != Some(end) {
                self.end = Some(end);
                return Ok(Some(captures));
            }
        }
        Ok(None)
    }

    /// The first match from the current place on.
    fn attempt(&mut self) -> Result<Option<Captures<'t>>, SqlError> {
        loop {
            let steps = if self.backtracks { self.steps } else { STEPS_PLAIN };
            self.taken += steps;
            if self.taken > STEPS_MAX {
                return Err(too_long());
            }
            self.call.context.fuel.burn(steps.div_ceil(STEPS_PER_UNIT));
            match self.regex.captures_from_pos(self.text, self.from) {
                Ok(captures) => return Ok(captures),
                Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded)) => {
                    self.backtracks = true;
                    self.steps *= 4;
                    self.regex = compile(&self.pattern, &self.flags, self.steps)?;
                    self.call.context.fuel.burn(UNITS_PER_PATTERN);
                }
                Err(_) => return Err(too_long()),
            }
        }
    }
}

/// PostgreSQL's error of a pattern that is too much for it.
fn too_long() -> SqlError {
    SqlError::new(
        SqlState::INVALID_REGULAR_EXPRESSION,
        "regular expression failed: regular expression is too complex",
    )
}

/// The size of a pattern: its length, and what its repetitions come to.
fn size(pattern: &str) -> usize {
    let counts = pattern.split('{').skip(1).filter_map(|rest| {
        let bounds = rest.split('}').next()?;
        bounds.split(',').filter_map(|bound| bound.parse::<usize>().ok()).max()
    });
    counts.fold(pattern.len() + 1, |size, count| size.saturating_add(count.saturating_mul(REPETITION)))
}

/// Whether a pattern may look around or refer back.
fn backtracks(pattern: &str) -> bool {
    let mut after = pattern.split('\\').skip(1).filter_map(|rest| rest.chars().next());
    pattern.replace("(?:", "(").contains("(?")
        || pattern.contains("[[:<:]]")
        || pattern.contains("[[:>:]]")
        || after.any(|c| c.is_ascii_digit() || "mMkKgGZ".contains(c))
}
