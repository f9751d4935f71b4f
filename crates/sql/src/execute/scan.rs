//! The rows of a table.
//!
//! Plans run without waiting, and rows of a table may be on another shard. So a scan that has no
//! rows left says which it wants ([`Fetch`]) and pauses; the session fetches them and goes on. The
//! scan is then the first to look, because a run always goes the same way.

use std::sync::Arc;
use std::vec::IntoIter;

use super::Question;
use super::bounds::{self, Bounds};
use super::cursor::Next;
use super::evaluate::Env;
use super::fuel::Halt;
use super::lock::Reserve;
use super::trail::Trail;
use crate::SqlError;
use crate::analyze::plan::{Access, Equal, Scan};
use crate::catalog::{Placement, Table};
use crate::encoding::row;
use crate::functions::confused;
use crate::store::{Pair, Range, Space};
use crate::types::Datum;

/// Where rows are, or entries of an index.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// In a range.
    Range(Range),
    /// Under some keys, those that are there.
    Keys(Space, Vec<Vec<u8>>),
}

/// What a scan waits for.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// Where.
    pub source: Source,
    /// If entries of an index are there, which one of which table: the rows are wanted that they
    /// are of.
    pub through: Option<(Arc<Table>, usize)>,
}

/// What passes between a run and what fetches for it.
pub enum Fetch {
    /// A scan waits for the first rows of this.
    Wanted(Wanted),
    /// A row is to be reserved.
    Reserve(Reserve),
    /// It is, or it is to be left out.
    Reserved(bool),
    /// They are here, with what is left of the range.
    Found(Vec<Pair>, Option<Range>),
    /// A function waits for an answer of the session.
    Asked(Question),
    /// It is here.
    Answer(Datum),
}

/// The state of a scan.
pub struct Scanning {
    trail: Trail,
    pairs: IntoIter<Pair>,
    state: State,
}

enum State {
    /// The values that bound it are not known.
    Begin,
    /// It waits; what comes after that is known.
    Asked(Vec<Source>),
    /// There may be more behind the rows that are here; the last of these is next.
    Left(Vec<Source>),
    /// There is no more.
    End,
}

/// Before the first row.
impl Default for Scanning {
    fn default() -> Scanning {
        Scanning { trail: Trail::default(), pairs: Vec::new().into_iter(), state: State::Begin }
    }
}

impl Scanning {
    /// The next row; none after the last.
    pub fn next(&mut self, scan: &Scan, env: &Env<'_>) -> Next {
        loop {
            if self.pairs.len() > 0 {
                env.fuel().row()?;
                let Some((key, value)) = self.pairs.next() else { continue };
                return Ok(Some(columns(scan, key, &value)?));
            }
            self.state = match std::mem::replace(&mut self.state, State::End) {
                State::Begin => match self.begin(scan, env) {
                    Ok(sources) => State::Left(sources),
                    Err(halt) => {
                        self.state = State::Begin;
                        return Err(halt);
                    }
                },
                State::Left(mut sources) => match sources.pop() {
                    None => State::End,
                    Some(source) => {
                        let through = scan.access.index.map(|index| (scan.table.clone(), index));
                        env.shared.fetch.replace(Some(Fetch::Wanted(Wanted { source, through })));
                        self.state = State::Asked(sources);
                        return Err(Halt::Pause);
                    }
                },
                State::Asked(mut sources) => match env.shared.fetch.take() {
                    Some(Fetch::Found(pairs, left)) => {
                        self.pairs = pairs.into_iter();
                        sources.extend(left.map(Source::Range));
                        State::Left(sources)
                    }
                    _ => return Err(confused().into()),
                },
                State::End => return Ok(None),
            };
        }
    }

    fn begin(&self, scan: &Scan, env: &Env<'_>) -> Result<Vec<Source>, Halt> {
        let Access { equal, low, high, .. } = &scan.access;
        let bounds = self.trail.evaluate(&env.inside(&[]), |inside| {
            let value = |bound: &Option<_>| match bound {
                Some((expr, inclusive)) => inside.value(expr).map(|value| Some((value, *inclusive))),
                None => Ok::<_, Halt>(None),
            };
            let equal = equal.iter().map(|equal| match equal {
                Equal::One(expr) => Ok(vec![inside.value(expr)?]),
                Equal::Any(exprs) => inside.values(exprs),
                Equal::Of(array) => Ok(match inside.value(array)? {
                    Datum::Array(array) => array.elements.clone(),
                    _ => Vec::new(),
                }),
            });
            Ok(Bounds { equal: equal.collect::<Result<_, Halt>>()?, low: value(low)?, high: value(high)? })
        });
        let bounds = match bounds {
            Ok(bounds) => bounds,
            // The condition that it is from is tested on every row, if it gets there.
            Err(Halt::Failed(_)) => Bounds::default(),
            Err(Halt::Pause) => return Err(Halt::Pause),
        };
        Ok(bounds::sources(scan, &bounds)?)
    }
}

/// The columns of a row that a scan gives, from how it is stored.
fn columns(scan: &Scan, key: Vec<u8>, value: &[u8]) -> Result<Vec<Datum>, SqlError> {
    let stored = row::read_columns(&scan.table, &key, value, scan.needed.as_deref())?;
    let live = stored.into_iter().zip(&scan.table.columns).filter(|(_, column)| !column.dropped);
    let mut columns: Vec<Datum> = live.map(|(value, _)| value).collect();
    if scan.with_key {
        columns.push(Datum::Bytes(key.into()));
    }
    Ok(columns)
}

/// The space that a table's rows are in.
pub fn space(table: &Table) -> Space {
    match table.placement {
        Placement::Hash(_) => Space::Parted,
        Placement::Everywhere => Space::Copied,
    }
}
