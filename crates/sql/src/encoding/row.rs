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
//! Values are as in [`value`]. A column that has no value here is NULL; a column of
//! the primary key is what the key says, unless the key loses something of it
//! ([`is_exact`](super::order::is_exact)): then its value is here as well.
//!
//! A column that was added later has its *missing value* from the descriptor, and a dropped one is
//! NULL, so neither change touches rows.
//!
//! Example. `(1, NULL, 7, 'ab')` of `(integer primary key, integer, integer, text)` is
//! `01 00 04  03  00 00 00 07  00 02  61 62`.

use super::bytes::{Bytes, corrupted, mismatched};
use super::{key, order, value};
use crate::SqlError;
use crate::catalog::Table;
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
    let count = u16::try_from(values.len()).map_err(|_| value::too_long())?;
    let mut absent = vec![0u8; values.len().div_ceil(8)];
    let (mut fixed, mut others, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (position, (column, datum)) in table.columns.iter().zip(values).enumerate() {
        let in_key = is_primary(table, position) && order::is_exact(column.oid, datum);
        if column.dropped || datum.is_null() || in_key {
            if let Some(byte) = absent.get_mut(position / 8) {
                *byte |= 1 << (position % 8);
            }
        } else if value::width(column.oid).is_some() {
            value::put(column.oid, datum, &mut fixed)?;
        } else {
            value::put(column.oid, datum, &mut others)?;
            ends.push(u32::try_from(others.len()).map_err(|_| value::too_long())?);
        }
    }
    let short: Option<Vec<u16>> = ends.iter().map(|end| u16::try_from(*end).ok()).collect();
    let mut out = Vec::with_capacity(3 + absent.len() + fixed.len() + 4 * ends.len() + others.len());
    out.push(if short.is_some() { SHORT } else { LONG });
    out.extend(count.to_be_bytes());
    out.extend(absent);
    out.extend(fixed);
    match short {
        Some(short) => out.extend(short.iter().flat_map(|end| end.to_be_bytes())),
        None => out.extend(ends.iter().flat_map(|end| end.to_be_bytes())),
    }
    out.extend(others);
    Ok(out)
}

/// The values of a row by column position.
pub fn read_row(table: &Table, key: &[u8], row: &[u8]) -> Result<Vec<Datum>, SqlError> {
    let mut values = vec![Datum::Null; table.columns.len()];
    for (position, datum) in table.primary.iter().zip(key::read_row_key(table, key)?) {
        set(&mut values, usize::from(*position), datum);
    }
    let stored = Stored::open(table, row)?;
    for (position, bytes) in stored.values(table)? {
        if let Some(column) = table.columns.get(position).filter(|column| !column.dropped) {
            set(&mut values, position, value::take(column.oid, bytes)?);
        }
    }
    for (datum, column) in values.iter_mut().zip(&table.columns).skip(stored.count) {
        if let Some(missing) = column.missing.as_ref().filter(|_| datum.is_null() && !column.dropped) {
            *datum = value::take(column.oid, missing)?;
        }
    }
    Ok(values)
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
        let end_bytes = match rest.u8()? {
            SHORT => 2,
            LONG => 4,
            layout => {
                return Err(corrupted(format!("A row of table \"{}\" has layout {layout}.", table.name)));
            }
        };
        let count = usize::from(rest.u16()?);
        if count > table.columns.len() {
            return Err(corrupted(format!("A row of table \"{}\" has {count} columns.", table.name)));
        }
        let absent = rest.slice(count.div_ceil(8))?;
        Ok(Stored { count, end_bytes, absent, rest })
    }

    /// The position and the bytes of each value.
    fn values(&self, table: &Table) -> Result<Vec<(usize, &'a [u8])>, SqlError> {
        let present = |position: &usize| {
            self.absent.get(position / 8).is_some_and(|byte| byte & 1 << (position % 8) == 0)
        };
        let columns = table.columns.iter().enumerate().take(self.count);
        let widths: Vec<_> = columns
            .filter(|(position, _)| present(position))
            .map(|(position, column)| (position, value::width(column.oid)))
            .collect();
        let fixed = widths.iter().filter_map(|(_, width)| *width).sum();
        let others = widths.iter().filter(|(_, width)| width.is_none()).count();
        let mut rest = self.rest.clone();
        let mut fixed = Bytes::new(rest.slice(fixed)?);
        let mut ends = Bytes::new(rest.slice(others * self.end_bytes)?);
        let mut begin = 0;
        let mut values = Vec::with_capacity(widths.len());
        for (position, width) in widths {
            let bytes = match width {
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
            values.push((position, bytes));
        }
        rest.end()?;
        Ok(values)
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
    fn an_account_of_pgbench_takes_little_more_than_its_values() {
        let table = table(&[Oid::INT4, Oid::INT4, Oid::INT4, Oid::BPCHAR], &[0], Placement::Hash(1));
        let row = [Datum::Int4(1), Datum::Int4(1), Datum::Int4(0), Datum::text(" ".repeat(84))];
        assert_eq!(write_row(&table, &row).expect("a row").len(), 4 + 4 + 84 + 6);
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
