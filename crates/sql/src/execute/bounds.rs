//! From the values that bound a scan to the keys and ranges that it reads.

use std::cmp::Ordering;

use super::scan::{Source, space};
use crate::SqlError;
use crate::analyze::plan::Scan;
use crate::catalog::{Index, IndexPart, Table};
use crate::encoding::{entry, key, order};
use crate::functions::confused;
use crate::store::Range;
use crate::types::{Datum, Oid, compare};

/// Keys that are looked up together.
const KEYS_PER_SOURCE: usize = 256;

/// Combinations of values of several columns at most; with more, fewer columns bound the scan.
const COMBINATIONS_MAX: usize = 1 << 14;

/// What is known of the first columns of a key.
#[derive(Default)]
pub struct Bounds {
    /// The values that each may have.
    pub equal: Vec<Vec<Datum>>,
    /// The least value of the next, and whether it is one of them.
    pub low: Option<(Datum, bool)>,
    /// The largest, and whether it is one of them.
    pub high: Option<(Datum, bool)>,
}

/// The keys of a table's rows, or of the entries of one of its indexes.
struct Keys<'a> {
    table: &'a Table,
    index: Option<&'a Index>,
    number: u32,
    partition: u8,
}

/// A column of a key: its type, and how an index has it.
type KeyColumn<'a> = (Oid, Option<&'a IndexPart>);

impl<'a> Keys<'a> {
    fn new(table: &'a Table, index: Option<usize>) -> Result<Keys<'a>, SqlError> {
        Ok(match index {
            None => Keys { table, index: None, number: table.rows, partition: key::partition_byte(table)? },
            Some(place) => {
                let index = table.indexes.get(place).ok_or_else(confused)?;
                let partition = entry::partition_byte(table, index);
                Keys { table, index: Some(index), number: index.rows, partition }
            }
        })
    }

    fn columns(&self) -> Vec<KeyColumn<'a>> {
        let oid = |position: u16| self.table.columns.get(usize::from(position)).map(|column| column.oid);
        match self.index {
            None => self.table.primary.iter().filter_map(|at| Some((oid(*at)?, None))).collect(),
            Some(index) => {
                index.parts.iter().filter_map(|part| Some((oid(part.column)?, Some(part)))).collect()
            }
        }
    }

    /// Whether no two rows have the same values in all columns.
    fn is_unique(&self) -> bool {
        self.index.map_or(!self.table.primary.is_empty(), |index| index.unique)
    }
}

fn put((oid, part): KeyColumn<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match part {
        None => order::put(oid, value, out),
        Some(part) => entry::put(part, oid, value, out),
    }
}

/// What a scan reads; what comes first is last.
pub fn sources(scan: &Scan, bounds: &Bounds) -> Result<Vec<Source>, SqlError> {
    let table = &*scan.table;
    let keys = Keys::new(table, scan.access.index)?;
    let columns = keys.columns();
    let mut prefixes = vec![key::prefix(keys.number, keys.partition, &[])?];
    let mut known = 0;
    for (values, column) in bounds.equal.iter().zip(&columns) {
        if prefixes.len().saturating_mul(values.len()) > COMBINATIONS_MAX {
            break;
        }
        prefixes = extended(&prefixes, *column, values)?;
        known += 1;
    }
    if scan.reverse {
        prefixes.reverse();
    }
    let is_all = known == bounds.equal.len();
    if is_all && known == columns.len() && keys.is_unique() {
        let chunks = prefixes.chunks(KEYS_PER_SOURCE);
        return Ok(chunks.rev().map(|chunk| Source::Keys(space(table), chunk.to_vec())).collect());
    }
    let mut sources = Vec::new();
    for prefix in prefixes.into_iter().rev() {
        let range = match columns.get(known) {
            Some(column) if is_all => bounded(table, prefix, *column, bounds)?,
            _ => Some(whole(table, prefix)),
        };
        sources.extend(range.map(|range| Source::Range(Range { reverse: scan.reverse, ..range })));
    }
    Ok(sources)
}

/// Prefixes of keys with a value more, in order and each once.
fn extended(prefixes: &[Vec<u8>], column: KeyColumn<'_>, values: &[Datum]) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut more = Vec::new();
    for value in values {
        if let Found::Value(value) = as_key(column.0, value.clone()) {
            let mut bytes = Vec::new();
            put(column, &value, &mut bytes)?;
            more.push(bytes);
        }
    }
    let all = prefixes.iter().flat_map(|prefix| more.iter().map(|more| [&prefix[..], more].concat()));
    let mut all: Vec<Vec<u8>> = all.filter(|key| key.len() <= key::KEY_BYTES_MAX).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// All keys that begin so.
fn whole(table: &Table, prefix: Vec<u8>) -> Range {
    Range { space: space(table), high: key::after_prefix(&prefix), low: prefix, reverse: false }
}

/// The keys that begin so and whose next column is within bounds; none if there can be no such key.
fn bounded(
    table: &Table,
    prefix: Vec<u8>,
    column: KeyColumn<'_>,
    bounds: &Bounds,
) -> Result<Option<Range>, SqlError> {
    let (mut low, mut high) = (bounds.low.as_ref(), bounds.high.as_ref());
    if low.is_none() && high.is_none() {
        return Ok(Some(whole(table, prefix)));
    }
    let is_turned = column.1.is_some_and(|part| part.descending);
    if is_turned {
        std::mem::swap(&mut low, &mut high);
    }
    // NULL is within no bounds.
    let marker: &[u8] = if column.1.is_some() { &[order::PRESENT] } else { &[] };
    let mut range = whole(table, [&prefix[..], marker].concat());
    let bound = |value: &Datum| -> Result<(Vec<u8>, bool), SqlError> {
        let mut bytes = prefix.clone();
        put(column, value, &mut bytes)?;
        // Of a bound that was cut, what is behind the cut is not known.
        let is_cut = bytes.len() > key::KEY_BYTES_MAX;
        bytes.truncate(key::KEY_BYTES_MAX);
        Ok((bytes, is_cut))
    };
    let beyond = |ordering: Ordering| if is_turned { ordering.reverse() } else { ordering };
    if let Some((value, inclusive)) = low {
        match as_key(column.0, value.clone()) {
            Found::Value(value) => {
                let (bytes, is_cut) = bound(&value)?;
                match if *inclusive || is_cut { Some(bytes) } else { key::after_prefix(&bytes) } {
                    Some(bytes) => range.low = bytes,
                    None => return Ok(None),
                }
            }
            Found::Null => return Ok(None),
            Found::Outside(side) if beyond(side) == Ordering::Greater => return Ok(None),
            Found::Outside(_) => {}
        }
    }
    if let Some((value, inclusive)) = high {
        match as_key(column.0, value.clone()) {
            Found::Value(value) => {
                let (bytes, is_cut) = bound(&value)?;
                range.high = if *inclusive || is_cut { key::after_prefix(&bytes) } else { Some(bytes) };
            }
            Found::Null => return Ok(None),
            Found::Outside(side) if beyond(side) == Ordering::Less => return Ok(None),
            Found::Outside(_) => {}
        }
    }
    Ok(Some(range))
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
