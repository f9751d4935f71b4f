//! Rows that are kept: their order, and what they weigh.

use std::cmp::Ordering;

use super::evaluate::Shared;
use crate::analyze::plan::Direction;
use crate::types::{Datum, compare};
use crate::{SqlError, SqlState};

/// A row.
pub type Row = Vec<Datum>;

/// Bytes that an element of an array counts as when a function handles it.
const ELEMENT_BYTES: usize = 16;

/// Bytes that a query may hold.
pub const MEMORY_MAX: usize = 64 << 20;

/// About how many bytes a value takes.
pub fn weight(datum: &Datum) -> usize {
    std::mem::size_of::<Datum>()
        + match datum {
            Datum::Text(text) | Datum::Bpchar(text) => text.len(),
            Datum::Bytes(bytes) => bytes.len(),
            Datum::Array(array) => array.elements.iter().map(weight).sum(),
            Datum::Record(fields) => fields.iter().map(|(_, field)| weight(field)).sum(),
            Datum::Numeric(number) => number.size(),
            _ => 0,
        }
}

/// About how many bytes a function handles that gets or makes a value.
pub fn bulk(datum: &Datum) -> usize {
    match datum {
        Datum::Text(text) | Datum::Bpchar(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Numeric(number) => number.size(),
        Datum::Array(array) => {
            let fixed = array.elements.len() * ELEMENT_BYTES;
            // The first element tells whether what the others hold has to be counted.
            match array.elements.iter().find(|element| !element.is_null()) {
                Some(
                    Datum::Text(_)
                    | Datum::Bpchar(_)
                    | Datum::Bytes(_)
                    | Datum::Numeric(_)
                    | Datum::Record(_),
                ) => fixed + array.elements.iter().map(bulk).sum::<usize>(),
                _ => fixed,
            }
        }
        Datum::Record(fields) => fields.iter().map(|(_, field)| ELEMENT_BYTES + bulk(field)).sum(),
        _ => 0,
    }
}

/// Counts bytes that are kept from now on.
pub fn hold(shared: &Shared<'_>, bytes: usize, what: &str) -> Result<(), SqlError> {
    let held = shared.held.get().saturating_add(bytes);
    if held > MEMORY_MAX {
        return Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .detail(format!("{what} would hold more than {MEMORY_MAX} bytes.")));
    }
    shared.held.set(held);
    Ok(())
}

/// Counts a row that is kept from now on.
pub fn hold_row(shared: &Shared<'_>, row: &[Datum], what: &str) -> Result<(), SqlError> {
    hold(shared, std::mem::size_of::<Row>() + row.iter().map(weight).sum::<usize>(), what)
}

/// A row as a key, which is compared with others: that takes the longer the longer it is.
pub fn keyed(shared: &Shared<'_>, row: Row) -> Key {
    shared.context.fuel.burn_bytes(row.iter().map(bulk).sum());
    Key(row)
}

/// A row as a key: two are alike if their values are, NULLs included.
#[derive(Debug, Clone)]
pub struct Key(pub Row);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        let pairs = self.0.iter().zip(&other.0).map(|(a, b)| compare::compare(a, b));
        pairs.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// The order of two values in a direction.
fn directed(a: &Datum, b: &Datum, direction: Direction) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return if direction.nulls_first { Ordering::Less } else { Ordering::Greater },
        (false, true) => return if direction.nulls_first { Ordering::Greater } else { Ordering::Less },
        (false, false) => {}
    }
    let order = compare::compare(a, b);
    if direction.descending { order.reverse() } else { order }
}

/// A value as a key of a sort.
#[derive(Debug, Clone)]
pub struct Directed(pub Datum, pub Direction);

impl Ord for Directed {
    fn cmp(&self, other: &Directed) -> Ordering {
        directed(&self.0, &other.0, self.1)
    }
}

impl PartialOrd for Directed {
    fn partial_cmp(&self, other: &Directed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Directed {
    fn eq(&self, other: &Directed) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Directed {}
