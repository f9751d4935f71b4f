//! The rows of a table.
//!
//! Plans run without waiting, and rows of a table may be on another shard. So a scan that has no
//! rows left says which it wants ([`Fetch`]) and pauses; the session fetches them and goes on. The
//! scan is then the first to look, because a run always goes the same way.

use std::cmp::Ordering;
use std::vec::IntoIter;

use super::cursor::Next;
use super::evaluate::Env;
use super::fuel::Halt;
use super::trail::Trail;
use crate::SqlError;
use crate::analyze::plan::{Access, Scan};
use crate::catalog::{Placement, Table};
use crate::encoding::{key, row};
use crate::functions::confused;
use crate::store::{Pair, Range, Space};
use crate::types::{Datum, Oid, compare};

/// What passes between a run and what fetches for it.
pub enum Fetch {
    /// A scan waits for the first rows of this.
    Wanted(Range),
    /// They are here, with what is left of the range.
    Found(Vec<Pair>, Option<Range>),
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
    /// It waits.
    Asked,
    /// There may be more behind the rows that are here.
    Left(Range),
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
                    Ok(Some(range)) => State::Left(range),
                    Ok(None) => State::End,
                    Err(halt) => {
                        self.state = State::Begin;
                        return Err(halt);
                    }
                },
                State::Left(range) => {
                    env.shared.fetch.replace(Some(Fetch::Wanted(range)));
                    self.state = State::Asked;
                    return Err(Halt::Pause);
                }
                State::Asked => match env.shared.fetch.take() {
                    Some(Fetch::Found(pairs, left)) => {
                        self.pairs = pairs.into_iter();
                        left.map_or(State::End, State::Left)
                    }
                    _ => return Err(confused().into()),
                },
                State::End => return Ok(None),
            };
        }
    }

    fn begin(&self, scan: &Scan, env: &Env<'_>) -> Result<Option<Range>, Halt> {
        let Access { equal, low, high } = &scan.access;
        let bounds = self.trail.evaluate(&env.inside(&[]), |inside| {
            let value = |bound: &Option<_>| match bound {
                Some((expr, inclusive)) => inside.value(expr).map(|value| Some((value, *inclusive))),
                None => Ok::<_, Halt>(None),
            };
            Ok((inside.values(equal)?, value(low)?, value(high)?))
        });
        match bounds {
            Ok((equal, low, high)) => Ok(range(&scan.table, equal, low, high)?),
            // The condition that it is from is tested on every row, if it gets there.
            Err(Halt::Failed(_)) => Ok(range(&scan.table, Vec::new(), None, None)?),
            Err(Halt::Pause) => Err(Halt::Pause),
        }
    }
}

/// The columns of a row that a scan gives, from how it is stored.
fn columns(scan: &Scan, key: Vec<u8>, value: &[u8]) -> Result<Vec<Datum>, SqlError> {
    let stored = row::read_row(&scan.table, &key, value)?;
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

/// The keys of a table whose first columns have these values, and whose next one is within bounds;
/// none if there can be no such key.
fn range(
    table: &Table,
    equal: Vec<Datum>,
    low: Option<(Datum, bool)>,
    high: Option<(Datum, bool)>,
) -> Result<Option<Range>, SqlError> {
    let mut types = table.primary.iter().filter_map(|place| table.columns.get(usize::from(*place)));
    let mut values: Vec<(Oid, Datum)> = Vec::new();
    for value in equal {
        let oid = types.next().ok_or_else(confused)?.oid;
        match as_key(oid, value) {
            Found::Value(value) => values.push((oid, value)),
            Found::Null | Found::Outside(_) => return Ok(None),
        }
    }
    let prefix = |more: Option<(Oid, &Datum)>| {
        let values: Vec<(Oid, &Datum)> =
            values.iter().map(|(oid, value)| (*oid, value)).chain(more).collect();
        key::prefix(table.rows, key::partition_byte(table)?, &values)
    };
    let all = prefix(None)?;
    if all.len() > key::KEY_BYTES_MAX {
        return Ok(None);
    }
    let mut range = Range { space: space(table), high: key::after_prefix(&all), low: all, reverse: false };
    let next = types.next().map(|column| column.oid);
    if let (Some((value, inclusive)), Some(oid)) = (low, next) {
        match as_key(oid, value) {
            Found::Value(value) => {
                let bound = prefix(Some((oid, &value)))?;
                let is_cut = bound.len() > key::KEY_BYTES_MAX;
                let bound = shortened(bound);
                match if inclusive || is_cut { Some(bound) } else { key::after_prefix(&bound) } {
                    Some(bound) => range.low = bound,
                    None => return Ok(None),
                }
            }
            Found::Null | Found::Outside(Ordering::Greater) => return Ok(None),
            Found::Outside(_) => {}
        }
    }
    if let (Some((value, inclusive)), Some(oid)) = (high, next) {
        match as_key(oid, value) {
            Found::Value(value) => {
                let bound = prefix(Some((oid, &value)))?;
                // Of one that was cut, what is behind the cut is not known.
                let is_cut = bound.len() > key::KEY_BYTES_MAX;
                let bound = shortened(bound);
                range.high = if inclusive || is_cut { key::after_prefix(&bound) } else { Some(bound) };
            }
            Found::Null | Found::Outside(Ordering::Less) => return Ok(None),
            Found::Outside(_) => {}
        }
    }
    Ok(Some(range))
}

/// A bound of a range no longer than a key may be.
fn shortened(mut bound: Vec<u8>) -> Vec<u8> {
    bound.truncate(key::KEY_BYTES_MAX);
    bound
}

/// A value as a key of some type has it.
enum Found {
    Value(Datum),
    Null,
    /// It is less than all values of that type, or greater.
    Outside(Ordering),
}

fn as_key(oid: Oid, value: Datum) -> Found {
    if value.is_null() {
        return Found::Null;
    }
    let Some(number) = compare::integer(&value) else { return Found::Value(value) };
    let fitted = match oid {
        Oid::INT2 => i16::try_from(number).ok().map(Datum::Int2),
        Oid::INT4 => i32::try_from(number).ok().map(Datum::Int4),
        Oid::INT8 => Some(Datum::Int8(number)),
        _ => Some(value),
    };
    fitted.map_or(Found::Outside(number.cmp(&0)), Found::Value)
}
