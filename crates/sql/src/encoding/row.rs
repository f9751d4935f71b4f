//! What is stored under a row's key: the values that the key does not have.
//!
//! | bytes | |
//! |---|---|
//! | 1 | the layout: 1, or 2 if ends have four bytes |
//! | 2, big endian | how many columns the table had, dropped ones included |
//! | a bit for each column, from the lowest of a byte | whether the column has no value here |
//! | the values of a fixed width, in the order of columns | |
//! | of each other value, 2 or 4, big endian | where it ends, from the end of this list on |
//! | the other values, in the order of columns | |
//!
//! Values are as in [`value`], but that strings of `character(n)` have lost the blanks at their
//! ends. A column that has no value here is NULL; a column of the primary key is what the key says,
//! unless the key loses something of it ([`is_exact`](super::order::is_exact)): then its value is
//! here as well.
//!
//! A column that was added later has its *missing value* from the descriptor, and a dropped one is
//! NULL, so neither change touches rows.
//!
//! Example. `(1, NULL, 7, 'ab')` of `(integer primary key, integer, integer, text)` is
//! `01 00 04  03  00 00 00 07  00 02  61 62`.

use super::bytes::{Bytes, corrupted, mismatched};
use super::{key, order, value};
use crate::SqlError;
use crate::catalog::{Column, Table};
use crate::types::scalar::padded;
use crate::types::{Datum, Oid};

/// Ends have two bytes.
const SHORT: u8 = 1;
/// Ends have four bytes.
const LONG: u8 = 2;

/// What is stored of a row with these values by column position.
pub fn write_row(table: &Table, values: &[Datum]) -> Result<Vec<u8>, SqlError> {
    if values.len() != table.columns.len() {
        return Err(mismatched(Oid::RECORD));
    }
    match write(table, values, SHORT)? {
        Some(row) => Ok(row),
        None => write(table, values, LONG)?.ok_or_else(value::too_long),
    }
}

/// The row in a layout; none if an end is too large for it.
fn write(table: &Table, values: &[Datum], layout: u8) -> Result<Option<Vec<u8>>, SqlError> {
    let count = u16::try_from(values.len()).map_err(|_| value::too_long())?;
    let columns = || table.columns.iter().zip(values).enumerate();
    let mut out = Vec::with_capacity(3 + 12 * values.len());
    out.push(layout);
    out.extend(count.to_be_bytes());
    let bits = out.len();
    out.resize(bits + values.len().div_ceil(8), 0);
    let mut others = 0;
    for (position, (column, datum)) in columns() {
        if !is_stored(table, position, datum) {
            if let Some(byte) = out.get_mut(bits + position / 8) {
                *byte |= 1 << (position % 8);
            }
        } else if value::width(column.oid).is_some() {
            value::put(column.oid, datum, &mut out)?;
        } else {
            others += 1;
        }
    }
    let mut ends = out.len();
    let begin = ends + others * end_bytes(layout);
    out.resize(begin, 0);
    for (position, (column, datum)) in columns() {
        if value::width(column.oid).is_some() || !is_stored(table, position, datum) {
            continue;
        }
        let start = out.len();
        value::put(column.oid, datum, &mut out)?;
        if padding(column).is_some() {
            let value = out.get(start..).unwrap_or_default();
            let kept = value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            out.truncate(start + kept);
        }
        let end = u32::try_from(out.len() - begin).map_err(|_| value::too_long())?.to_be_bytes();
        let (lost, kept) = end.split_at(end.len() - end_bytes(layout));
        if lost.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        out.iter_mut().skip(ends).zip(kept).for_each(|(place, byte)| *place = *byte);
        ends += kept.len();
    }
    Ok(Some(out))
}

/// Whether the value of a column is in the row.
fn is_stored(table: &Table, position: usize, datum: &Datum) -> bool {
    let Some(column) = table.columns.get(position) else { return false };
    let in_key = || is_primary(table, position) && order::is_exact(column.oid, datum);
    !column.dropped && !datum.is_null() && !in_key()
}

/// Bytes of an end.
fn end_bytes(layout: u8) -> usize {
    if layout == LONG { 4 } else { 2 }
}

/// To how many characters the strings of a column are filled up with blanks, which rows do not have.
fn padding(column: &Column) -> Option<usize> {
    let length = usize::try_from(column.modifier - 4).ok();
    length.filter(|_| column.oid == Oid::BPCHAR)
}

/// The values of a row by column position.
pub fn read_row(table: &Table, key: &[u8], row: &[u8]) -> Result<Vec<Datum>, SqlError> {
    read_columns(table, key, row, None)
}

/// The values of a row by column position, of the columns that are needed; the others come out as
/// their values or as NULL.
pub fn read_columns(
    table: &Table,
    key: &[u8],
    row: &[u8],
    needed: Option<&[bool]>,
) -> Result<Vec<Datum>, SqlError> {
    let needs = |position: usize| needed.is_none_or(|needed| needed.get(position) == Some(&true));
    let mut values = vec![Datum::Null; table.columns.len()];
    if table.primary.iter().any(|position| needs(usize::from(*position))) {
        for (position, datum) in table.primary.iter().zip(key::read_row_key(table, key)?) {
            set(&mut values, usize::from(*position), datum);
        }
    }
    if needed.is_some_and(|needed| !needed.contains(&true)) {
        return Ok(values);
    }
    let stored = Stored::open(table, row)?;
    stored.each(table, |position, column, bytes| {
        if !column.dropped && needs(position) {
            set(&mut values, position, take(column, bytes)?);
        }
        Ok(())
    })?;
    for (datum, column) in values.iter_mut().zip(&table.columns).skip(stored.count) {
        if let Some(missing) = column.missing.as_ref().filter(|_| datum.is_null() && !column.dropped) {
            *datum = value::take(column.oid, missing)?;
        }
    }
    Ok(values)
}

fn take(column: &Column, bytes: &[u8]) -> Result<Datum, SqlError> {
    let value = value::take(column.oid, bytes)?;
    Ok(match (padding(column), value) {
        (Some(length), Datum::Bpchar(text)) => Datum::Bpchar(padded(text, length)),
        (_, value) => value,
    })
}

fn set(values: &mut [Datum], position: usize, datum: Datum) {
    if let Some(place) = values.get_mut(position) {
        *place = datum;
    }
}

fn is_primary(table: &Table, position: usize) -> bool {
    table.primary.iter().any(|primary| usize::from(*primary) == position)
}

/// A row that has been taken apart up to its values.
struct Stored<'a> {
    /// Columns that the table had.
    count: usize,
    /// Bytes of an end.
    end_bytes: usize,
    /// A bit for each column that has no value.
    absent: &'a [u8],
    /// What is behind that.
    rest: Bytes<'a>,
}

impl<'a> Stored<'a> {
    fn open(table: &Table, row: &'a [u8]) -> Result<Stored<'a>, SqlError> {
        let mut rest = Bytes::new(row);
        let layout = rest.u8()?;
        if layout != SHORT && layout != LONG {
            return Err(corrupted(format!("A row of table \"{}\" has layout {layout}.", table.name)));
        }
        let count = usize::from(rest.u16()?);
        if count > table.columns.len() {
            return Err(corrupted(format!("A row of table \"{}\" has {count} columns.", table.name)));
        }
        let absent = rest.slice(count.div_ceil(8))?;
        Ok(Stored { count, end_bytes: end_bytes(layout), absent, rest })
    }

    /// Calls this for each value, with its position and its column.
    fn each(
        &self,
        table: &Table,
        mut give: impl FnMut(usize, &Column, &'a [u8]) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let columns = || {
            let present = |position: usize| {
                self.absent.get(position / 8).is_some_and(|byte| byte & 1 << (position % 8) == 0)
            };
            let columns = table.columns.iter().enumerate().take(self.count);
            columns.filter(move |(position, _)| present(*position))
        };
        let (mut fixed, mut others) = (0, 0);
        for (_, column) in columns() {
            match value::width(column.oid) {
                Some(width) => fixed += width,
                None => others += 1,
            }
        }
        let mut rest = self.rest.clone();
        let mut fixed = Bytes::new(rest.slice(fixed)?);
        let mut ends = Bytes::new(rest.slice(others * self.end_bytes)?);
        let mut begin = 0;
        for (position, column) in columns() {
            let bytes = match value::width(column.oid) {
                Some(width) => fixed.slice(width)?,
                None => {
                    let end = if self.end_bytes == 2 { u32::from(ends.u16()?) } else { ends.u32()? };
                    let length = usize::try_from(end).ok().and_then(|end| end.checked_sub(begin));
                    let length =
                        length.ok_or_else(|| corrupted("A value in a row ends before it begins."))?;
                    begin += length;
                    rest.slice(length)?
                }
            };
            give(position, column, bytes)?;
        }
        rest.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;
    use crate::catalog::Placement;

    #[test]
    fn a_row_has_the_bytes_that_the_head_of_the_file_says() {
        let table = table(&[Oid::INT4, Oid::INT4, Oid::INT4, Oid::TEXT], &[0], Placement::Hash(0));
        let row = [Datum::Int4(1), Datum::Null, Datum::Int4(7), Datum::text("ab")];
        let bytes = write_row(&table, &row).expect("a row");
        assert_eq!(bytes, [1, 0, 4, 3, 0, 0, 0, 7, 0, 2, b'a', b'b']);
    }

    #[test]
    fn an_account_of_pgbench_is_stored_without_its_blanks_and_read_with_them() {
        let mut table = table(&[Oid::INT4, Oid::INT4, Oid::INT4, Oid::BPCHAR], &[0], Placement::Hash(1));
        table.columns[3].modifier = 84 + 4;
        for (text, stored_bytes) in [("", 0), ("ab", 2), ("a b", 3), ("äß", 4)] {
            let filled = format!("{text}{}", " ".repeat(84 - text.chars().count()));
            let row = [Datum::Int4(1), Datum::Int4(1), Datum::Int4(0), Datum::Bpchar(filled.into())];
            let bytes = write_row(&table, &row).expect("a row");
            assert_eq!(bytes.len(), 4 + 4 + 6 + stored_bytes);
            let key = key::row_key(&table, &row).expect("a key");
            assert_eq!(read_row(&table, &key, &bytes), Ok(row.to_vec()));
        }
        // Without a length blanks are part of the value.
        table.columns[3].modifier = -1;
        let row = [Datum::Int4(1), Datum::Int4(1), Datum::Int4(0), Datum::Bpchar("ab ".into())];
        assert_eq!(write_row(&table, &row).expect("a row").len(), 4 + 4 + 6 + 3);
    }

    #[test]
    fn columns_that_are_not_needed_are_not_read() {
        let table = table(&[Oid::INT4, Oid::INT4, Oid::TEXT], &[0], Placement::Hash(0));
        let row = [Datum::Int4(1), Datum::Int4(7), Datum::text("ab")];
        let (key, bytes) =
            (key::row_key(&table, &row).expect("a key"), write_row(&table, &row).expect("a row"));
        let read = |needed: [bool; 3]| read_columns(&table, &key, &bytes, Some(&needed));
        assert_eq!(read([false, true, false]), Ok(vec![Datum::Null, Datum::Int4(7), Datum::Null]));
        assert_eq!(read([true, false, true]), Ok(vec![Datum::Int4(1), Datum::Null, Datum::text("ab")]));
    }

    #[test]
    fn a_row_beyond_64_kib_has_long_ends() {
        let table = table(&[Oid::INT4, Oid::TEXT, Oid::TEXT], &[0], Placement::Hash(0));
        let row = [Datum::Int4(1), Datum::text("x".repeat(70_000)), Datum::text("y")];
        let bytes = write_row(&table, &row).expect("a row");
        assert_eq!(bytes.first(), Some(&LONG));
        let key = key::row_key(&table, &row).expect("a key");
        assert_eq!(read_row(&table, &key, &bytes), Ok(row.to_vec()));
    }

    #[test]
    fn a_value_of_another_type_than_its_column_is_refused() {
        let table = table(&[Oid::INT8], &[], Placement::Hash(0));
        assert!(write_row(&table, &[Datum::Int4(1)]).is_err());
        assert!(write_row(&table, &[]).is_err());
    }
}
