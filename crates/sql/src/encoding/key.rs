//! Keys of rows.
//!
//! | bytes | |
//! |---|---|
//! | 4, big endian | the number that the table's rows are kept under |
//! | 1 | what the partition part is |
//! | | the primary key's columns |
//!
//! Columns are [in order](super::order), so a range of values is a range of keys. A row of a table
//! without a primary key has a hidden number of eight bytes instead of columns.
//!
//! **The partition part** of a key decides which shard has it. The shards know nothing of tables,
//! so the fifth byte says which of the key's bytes it is:
//!
//! | fifth byte | partition part |
//! |---|---|
//! | 0, 202 to 255 | the whole key |
//! | 1 to 200 | the first 5 bytes, and as many behind them as the byte says |
//! | 201 | the key up to and with the first `00 01` behind the first 5 bytes: a text ends so |
//!
//! A key that ends before its partition part does has all of its bytes there. The table's number
//! is part of it, so that equal values of different tables lie apart.
//!
//! Example. Rows of table 16384 with the primary key `(integer, text)`, by a hash of the first
//! column: `(1, 'a')` is `00 00 40 00  04  80 00 00 01  61 00 01`, of which the first 9 bytes are
//! hashed.
//!
//! The rule by which the database finds that part is `Partitioning::Own`.
//!
//! Left out: descending columns.

use super::bytes::{Bytes, corrupted, mismatched};
use super::order;
use crate::catalog::{Placement, Table};
use crate::types::{Datum, Oid};
use crate::{SqlError, SqlState};

/// Bytes of the number and the byte behind it.
pub(super) const HEAD: usize = 5;

/// Bytes of a key at most.
pub const KEY_BYTES_MAX: usize = 4096;

/// The whole key is the partition part.
pub(super) const WHOLE: u8 = 0;
/// The longest partition part of a fixed width, in bytes behind the first five.
pub(super) const WIDTH_MAX: u8 = 200;
/// The partition part ends with the first text.
pub(super) const FIRST_TEXT: u8 = 201;

/// The fifth byte of the keys of a table's rows; 0A000 if no byte says what its placement asks for.
pub fn partition_byte(table: &Table) -> Result<u8, SqlError> {
    let Placement::Hash(count) = table.placement else { return Ok(WHOLE) };
    let count = usize::from(count);
    let types = || table.primary.iter().take(count).map(move |position| type_at(table, *position));
    if count == 0 {
        return Ok(WHOLE);
    }
    if types().count() == 1 && types().all(is_one_text) {
        return Ok(FIRST_TEXT);
    }
    let widths = types().map(|oid| partition_width(oid).map(u32::from)).sum::<Option<u32>>();
    match widths.and_then(|sum| u8::try_from(sum).ok()) {
        Some(width @ 1..=WIDTH_MAX) => Ok(width),
        _ if count >= table.primary.len() => Ok(WHOLE),
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "a table cannot be partitioned by these columns",
        )
        .detail(
            "Partition columns are the whole primary key, or one column of type text, \
             or columns of a fixed width other than real and double precision.",
        )),
    }
}

pub(super) fn is_one_text(oid: Oid) -> bool {
    matches!(oid, Oid::TEXT | Oid::VARCHAR | Oid::BPCHAR | Oid::NAME | Oid::BYTEA)
}

pub(super) fn partition_width(oid: Oid) -> Option<u8> {
    order::width(oid).filter(|_| oid != Oid::FLOAT4 && oid != Oid::FLOAT8)
}

pub(super) fn type_at(table: &Table, position: u16) -> Oid {
    table.columns.get(usize::from(position)).map_or(Oid::NONE, |column| column.oid)
}

pub(super) fn head(number: u32, partition: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    key.extend(number.to_be_bytes());
    key.push(partition);
    key
}

pub(super) fn checked(key: Vec<u8>) -> Result<Vec<u8>, SqlError> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(key);
    }
    Err(SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("a key of {} bytes exceeds the maximum of {KEY_BYTES_MAX}", key.len()),
    ))
}

/// The key of a row with these values by column position. Those of the primary key are not NULL.
pub fn row_key(table: &Table, values: &[Datum]) -> Result<Vec<u8>, SqlError> {
    let mut key = head(table.rows, partition_byte(table)?);
    for position in &table.primary {
        let oid = type_at(table, *position);
        let value = values.get(usize::from(*position)).ok_or_else(|| mismatched(oid))?;
        order::put(oid, value, &mut key)?;
    }
    checked(key)
}

/// The key of a row with this hidden number, in a table without a primary key.
pub fn hidden_key(table: &Table, number: u64) -> Vec<u8> {
    let mut key = head(table.rows, WHOLE);
    key.extend(number.to_be_bytes());
    key
}

/// The values of the primary key's columns, in its order; none of a hidden number. A value equals
/// the one that was written, and is the very one if that [is exact](order::is_exact).
pub fn read_row_key(table: &Table, key: &[u8]) -> Result<Vec<Datum>, SqlError> {
    let mut rest = Bytes::new(key);
    if rest.u32()? != table.rows || rest.u8()? != partition_byte(table)? {
        return Err(corrupted(format!("A key is not one of table \"{}\".", table.name)));
    }
    if table.primary.is_empty() {
        rest.slice(8)?;
    }
    let types = table.primary.iter().map(|position| type_at(table, *position));
    let values = types.map(|oid| order::take(oid, &mut rest)).collect::<Result<_, _>>()?;
    rest.end()?;
    Ok(values)
}

/// What all keys of a table's rows begin with that have these values in the first columns of the
/// primary key. It may be longer than any key.
pub fn prefix(number: u32, partition: u8, values: &[(Oid, &Datum)]) -> Result<Vec<u8>, SqlError> {
    let mut key = head(number, partition);
    values.iter().try_for_each(|(oid, value)| order::put(*oid, value, &mut key))?;
    Ok(key)
}

/// The least key above all that begin with a prefix; none if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let length = prefix.iter().rposition(|byte| *byte != u8::MAX)? + 1;
    let mut key = prefix.get(..length)?.to_vec();
    *key.last_mut()? += 1;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;

    #[test]
    fn a_key_has_the_bytes_that_the_head_of_the_file_says() {
        let table = table(&[Oid::INT4, Oid::TEXT], &[0, 1], Placement::Hash(1));
        let key = row_key(&table, &[Datum::Int4(1), Datum::text("a")]).expect("a key");
        assert_eq!(key, [0, 0, 0x40, 0, 4, 0x80, 0, 0, 1, b'a', 0, 1]);
    }

    #[test]
    fn the_partition_byte_says_which_columns_are_hashed() {
        let byte = |types: &[Oid], count| {
            let primary: Vec<u16> = (0..).take(types.len()).collect();
            partition_byte(&table(types, &primary, Placement::Hash(count)))
        };
        assert_eq!(byte(&[Oid::INT4], 1), Ok(4));
        assert_eq!(byte(&[Oid::INT4], 0), Ok(0));
        assert_eq!(byte(&[Oid::INT2, Oid::UUID, Oid::TEXT], 2), Ok(18));
        assert_eq!(byte(&[Oid::VARCHAR, Oid::INT4], 1), Ok(201));
        assert_eq!(byte(&[Oid::INT4, Oid::TEXT], 2), Ok(0));
        assert_eq!(byte(&[Oid::FLOAT8], 1), Ok(0));
        assert_eq!(byte(&[Oid::UUID; 13], 13), Ok(0));
        for (types, count) in [
            (&[Oid::INT4, Oid::TEXT, Oid::INT4][..], 2),
            (&[Oid::NUMERIC, Oid::INT4], 1),
            (&[Oid::FLOAT8, Oid::INT4], 1),
            (&[Oid::UUID; 14], 13),
        ] {
            let refused = byte(types, count).expect_err("no byte says this");
            assert_eq!(refused.state, SqlState::FEATURE_NOT_SUPPORTED);
        }
        let copied = table(&[Oid::INT4], &[0], Placement::Everywhere);
        assert_eq!(partition_byte(&copied), Ok(0));
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        let state = |oid, value: Datum| {
            row_key(&table(&[oid], &[0], Placement::Hash(0)), &[value]).map_err(|error| error.state)
        };
        let long = |length| Datum::text("x".repeat(length));
        assert!(state(Oid::TEXT, long(4089)).is_ok());
        assert_eq!(state(Oid::TEXT, long(4090)), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
        assert_eq!(state(Oid::JSON, long(1)), Err(SqlState::FEATURE_NOT_SUPPORTED));
        assert_eq!(state(Oid::INT8, Datum::Int4(1)), Err(SqlState::INTERNAL_ERROR));
    }
}
