//! Entries of indexes, which lie among rows under numbers of their own.
//!
//! | bytes | key of an entry |
//! |--:|---|
//! | 4 | number of the index, big endian |
//! | 1 | tells the partition part, as in the key of a row |
//! | | for each column of the index: `01` and its value [in order](super::order), or NULL |
//! | | the *suffix* of the row: its key from the sixth byte on |
//!
//! NULL is `02`, above all values, or `00`, below them. Where larger values come first, all bits of
//! a value are flipped, but not the byte before it. The value of an entry is empty.
//!
//! In a unique index the entry of a row without NULL in its columns ends before the suffix, which
//! is the value instead. So a second row with the same values has the same key.
//!
//! Entries are placed by the first column, so that rows that share its value are found on one
//! shard; by all of the key, if that column has neither a fixed width nor ends where its bytes say.

use super::bytes::{Bytes, corrupted, mismatched};
use super::key::{self, FIRST_TEXT, WHOLE, WIDTH_MAX};
use super::order;
use crate::SqlError;
use crate::catalog::{Index, IndexPart, Table};
use crate::types::{Datum, Oid};

/// The byte of NULL below all values.
const NULL_FIRST: u8 = 0;

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value: if it is not empty, no other row may have the same key.
    pub value: Vec<u8>,
}

/// The fifth byte of the keys of an index's entries.
pub fn partition_byte(table: &Table, index: &Index) -> u8 {
    let Some(first) = index.parts.first() else { return WHOLE };
    let oid = key::type_at(table, first.column);
    match key::partition_width(oid).and_then(|width| width.checked_add(1)) {
        Some(width @ ..=WIDTH_MAX) => width,
        None if key::is_one_text(oid) && !first.descending => FIRST_TEXT,
        _ => WHOLE,
    }
}

/// The entry of a row with these values by column position and this key.
pub fn entry(table: &Table, index: &Index, values: &[Datum], row_key: &[u8]) -> Result<Entry, SqlError> {
    let mut key = key::head(index.rows, partition_byte(table, index));
    let mut has_null = false;
    for part in &index.parts {
        let oid = key::type_at(table, part.column);
        let value = values.get(usize::from(part.column)).ok_or_else(|| mismatched(oid))?;
        has_null |= value.is_null();
        put(part, oid, value, &mut key)?;
    }
    let suffix = row_key.get(key::HEAD..).unwrap_or_default();
    let value = if index.unique && !has_null {
        suffix.to_vec()
    } else {
        key.extend_from_slice(suffix);
        Vec::new()
    };
    Ok(Entry { key: key::checked(key)?, value })
}

/// The key of the row that an entry is of.
pub fn row_key(table: &Table, index: &Index, key: &[u8], value: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut row = key::head(table.rows, key::partition_byte(table)?);
    if !value.is_empty() {
        row.extend_from_slice(value);
        return Ok(row);
    }
    let mut rest = Bytes::new(key);
    if rest.u32()? != index.rows || rest.u8()? != partition_byte(table, index) {
        return Err(corrupted(format!("A key is not one of index \"{}\".", index.name)));
    }
    for part in &index.parts {
        take(part, key::type_at(table, part.column), &mut rest)?;
    }
    row.extend_from_slice(rest.rest());
    Ok(row)
}

/// The values of an index's columns, of the key of an entry.
pub fn read_values(table: &Table, index: &Index, key: &[u8]) -> Result<Vec<Datum>, SqlError> {
    let mut rest = Bytes::new(key);
    rest.slice(key::HEAD)?;
    index.parts.iter().map(|part| take(part, key::type_at(table, part.column), &mut rest)).collect()
}

/// Appends the value of a column.
pub fn put(part: &IndexPart, oid: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if value.is_null() {
        out.push(if part.nulls_first { NULL_FIRST } else { order::NULL });
        return Ok(());
    }
    out.push(order::PRESENT);
    let begin = out.len();
    order::put(oid, value, out)?;
    if part.descending {
        out.iter_mut().skip(begin).for_each(|byte| *byte = !*byte);
    }
    Ok(())
}

fn take(part: &IndexPart, oid: Oid, rest: &mut Bytes<'_>) -> Result<Datum, SqlError> {
    if rest.u8()? != order::PRESENT {
        return Ok(Datum::Null);
    }
    if !part.descending {
        return order::take(oid, rest);
    }
    let flipped: Vec<u8> = rest.rest().iter().map(|byte| !byte).collect();
    let mut inner = Bytes::new(&flipped);
    let value = order::take(oid, &mut inner)?;
    rest.slice(flipped.len() - inner.rest().len())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::table;
    use super::*;
    use crate::catalog::Placement;

    fn index(unique: bool, parts: Vec<IndexPart>) -> Index {
        let name = "t_idx".to_owned();
        Index { id: 1, rows: 0x4001, name, parts, unique, is_constraint: false, is_ready: true }
    }

    fn part(column: u16, descending: bool, nulls_first: bool) -> IndexPart {
        IndexPart { column, descending, nulls_first }
    }

    fn plain() -> Table {
        table(&[Oid::INT4, Oid::TEXT, Oid::INT8], &[0], Placement::Hash(0))
    }

    #[test]
    fn an_entry_has_the_bytes_that_the_head_of_the_file_says() {
        let table = plain();
        let values = [Datum::Int4(7), Datum::text("a"), Datum::Null];
        let row = key::row_key(&table, &values).expect("a key");
        let suffix = [0x80, 0, 0, 7];
        let of = |unique, parts| entry(&table, &index(unique, parts), &values, &row).expect("an entry");
        let text = of(false, vec![part(1, false, false)]);
        let head = [0, 0, 0x40, 1];
        assert_eq!(text.key, [&head[..], &[201, 1, b'a', 0, 1], &suffix].concat());
        assert!(text.value.is_empty());
        let unique = of(true, vec![part(1, true, true)]);
        assert_eq!(unique.key, [&head[..], &[0, 1, !b'a', !0, !1]].concat());
        assert_eq!(unique.value, suffix);
        let null = of(true, vec![part(2, false, true), part(0, true, false)]);
        assert_eq!(null.key, [&head[..], &[9, 0, 1, 0x7f, !0, !0, !7], &suffix].concat());
        assert!(null.value.is_empty());
    }

    #[test]
    fn what_is_not_an_entry_is_an_error() {
        let (table, index) = (plain(), index(false, vec![part(1, true, false), part(2, false, false)]));
        let values = [Datum::Int4(7), Datum::text("a"), Datum::Int8(1)];
        let row = key::row_key(&table, &values).expect("a key");
        let Entry { key, value } = entry(&table, &index, &values, &row).expect("an entry");
        assert_eq!(row_key(&table, &index, &key, &value), Ok(row));
        let shortest = key.len() - 4;
        for end in 0..shortest {
            assert!(row_key(&table, &index, &key[..end], &[]).is_err(), "{end}");
        }
        let mut other = key.clone();
        other[3] ^= 1;
        assert!(row_key(&table, &index, &other, &[]).is_err());
    }

    proptest! {
        /// The order of entries is that of their values, each column with its direction.
        #[test]
        fn entries_are_in_the_order_that_the_index_says(
            rows in proptest::collection::vec((any::<i32>(), proptest::option::of("[\0ab]{0,3}")), 2..6),
            unique: bool,
            descending: bool,
            nulls_first: bool,
        ) {
            let table = plain();
            let index = index(unique, vec![part(1, descending, nulls_first)]);
            let mut entries = Vec::new();
            for (id, text) in &rows {
                let text_value = text.as_deref().map_or(Datum::Null, Datum::text);
                let values = [Datum::Int4(*id), text_value, Datum::Null];
                let row = key::row_key(&table, &values).expect("a key");
                let Entry { key, value } = entry(&table, &index, &values, &row).expect("an entry");
                prop_assert_eq!(row_key(&table, &index, &key, &value), Ok(row));
                entries.push((key, text.clone()));
            }
            entries.sort();
            let rank = |text: &Option<String>| match text {
                None => (if nulls_first { 0 } else { 2 }, None),
                Some(text) => (1, Some(text.clone())),
            };
            for pair in entries.windows(2) {
                let (left, right) = (rank(&pair[0].1), rank(&pair[1].1));
                let in_order = if left.0 == 1 && right.0 == 1 && descending {
                    left >= right
                } else {
                    left <= right
                };
                prop_assert!(in_order, "{:?}", entries);
            }
        }
    }
}
