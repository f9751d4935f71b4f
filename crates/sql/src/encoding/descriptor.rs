//! Descriptors of tables as bytes, and the keys of the catalog.
//!
//! The catalog is in [`Space::Copied`](crate::store::Space::Copied), where no table has the number
//! 0:
//!
//! | key | value |
//! |---|---|
//! | `00 00 00 00  00`, schema, name: each as a `text` [in order](super::order) | the descriptor |
//! | `00 00 00 00  01` | the next number of a table: four bytes, big endian |
//!
//! A descriptor is a byte, 1, the number of its format, and then the fields of [`Table`] in their
//! order, for which these are the forms:
//!
//! | field | bytes |
//! |---|---|
//! | number, type, modifier | 4, big endian |
//! | position | 2, big endian |
//! | length | 7 bits a byte, the lowest first; the highest bit says that more follow |
//! | text, bytes | its length, its bytes |
//! | list | how many there are, as a length; one after the other |
//! | flag | 0 or 1 |
//! | what may be absent | a flag, and if it is 1 the value |
//! | placement | 1, then 2: `00` and how many columns are hashed, `01 00 00` everywhere |

use super::bytes::{Bytes, corrupted, utf8};
use super::order::put_bytes;
use crate::SqlError;
use crate::catalog::{Column, Placement, Table};
use crate::types::Oid;

/// The format of descriptors.
const FORMAT: u8 = 1;

/// What the keys of all descriptors begin with, or of those of a schema.
pub fn descriptors_prefix(schema: Option<&str>) -> Vec<u8> {
    let mut key = vec![0; 5];
    if let Some(schema) = schema {
        put_bytes(schema.as_bytes(), &mut key);
    }
    key
}

/// The key of a table's descriptor.
pub fn descriptor_key(schema: &str, name: &str) -> Vec<u8> {
    let mut key = descriptors_prefix(Some(schema));
    put_bytes(name.as_bytes(), &mut key);
    key
}

/// The key of the next number of a table.
pub fn next_id_key() -> Vec<u8> {
    vec![0, 0, 0, 0, 1]
}

/// The bytes of the next number.
pub fn write_next_id(id: u32) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

/// The next number.
pub fn read_next_id(bytes: &[u8]) -> Result<u32, SqlError> {
    let mut rest = Bytes::new(bytes);
    let id = rest.u32()?;
    rest.end()?;
    Ok(id)
}

impl Table {
    /// The descriptor as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend(self.id.to_be_bytes());
        out.extend(self.rows.to_be_bytes());
        put_sized(self.schema.as_bytes(), &mut out);
        put_sized(self.name.as_bytes(), &mut out);
        put_length(self.columns.len(), &mut out);
        self.columns.iter().for_each(|column| put_column(column, &mut out));
        put_positions(&self.primary, &mut out);
        put_sized(self.primary_name.as_bytes(), &mut out);
        let (kind, count) = match self.placement {
            Placement::Hash(count) => (0, count),
            Placement::Everywhere => (1, 0),
        };
        out.push(kind);
        out.extend(count.to_be_bytes());
        out
    }

    /// The descriptor of some bytes. All positions in it are those of columns.
    pub fn from_bytes(bytes: &[u8]) -> Result<Table, SqlError> {
        let mut rest = Bytes::new(bytes);
        let format = rest.u8()?;
        if format != FORMAT {
            return Err(corrupted(format!("A table's descriptor has format {format}.")));
        }
        let (id, rows) = (rest.u32()?, rest.u32()?);
        let (schema, name) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let columns = take_list(&mut rest, take_column)?;
        let primary = take_list(&mut rest, Bytes::u16)?;
        let primary_name = take_text(&mut rest)?;
        let placement = match (rest.u8()?, rest.u16()?) {
            (0, count) if usize::from(count) <= primary.len() => Placement::Hash(count),
            (1, 0) => Placement::Everywhere,
            _ => return Err(foreign()),
        };
        rest.end()?;
        let mut positions = primary.iter();
        if positions.any(|position| usize::from(*position) >= columns.len()) {
            return Err(foreign());
        }
        Ok(Table { id, rows, schema, name, columns, primary, primary_name, placement })
    }
}

fn foreign() -> SqlError {
    corrupted("No table has this descriptor.")
}

fn put_length(mut length: usize, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = length.to_le_bytes();
        length >>= 7;
        if length == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn take_length(rest: &mut Bytes<'_>) -> Result<usize, SqlError> {
    let mut length = 0usize;
    for shift in (0..usize::BITS).step_by(7) {
        let byte = rest.u8()?;
        let bits = usize::from(byte & 0x7f);
        length |= bits << shift;
        let is_lost = length >> shift != bits;
        if is_lost || shift > 0 && byte == 0 {
            return Err(foreign());
        }
        if byte & 0x80 == 0 {
            return Ok(length);
        }
    }
    Err(foreign())
}

fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    put_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn take_sized<'a>(rest: &mut Bytes<'a>) -> Result<&'a [u8], SqlError> {
    let length = take_length(rest)?;
    rest.slice(length)
}

fn take_text(rest: &mut Bytes<'_>) -> Result<String, SqlError> {
    Ok(utf8(take_sized(rest)?)?.to_owned())
}

fn take_flag(rest: &mut Bytes<'_>) -> Result<bool, SqlError> {
    match rest.u8()? {
        flag @ 0..=1 => Ok(flag == 1),
        _ => Err(foreign()),
    }
}

/// Reads a list whose items have at least a byte each.
fn take_list<'a, T>(
    rest: &mut Bytes<'a>,
    item: impl Fn(&mut Bytes<'a>) -> Result<T, SqlError>,
) -> Result<Vec<T>, SqlError> {
    let count = take_length(rest)?;
    if count > rest.rest().len() {
        return Err(foreign());
    }
    (0..count).map(|_| item(rest)).collect()
}

fn put_optional(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        put_sized(bytes, out);
    }
}

fn take_optional<'a>(rest: &mut Bytes<'a>) -> Result<Option<&'a [u8]>, SqlError> {
    if take_flag(rest)? { take_sized(rest).map(Some) } else { Ok(None) }
}

fn put_positions(positions: &[u16], out: &mut Vec<u8>) {
    put_length(positions.len(), out);
    positions.iter().for_each(|position| out.extend(position.to_be_bytes()));
}

fn put_column(column: &Column, out: &mut Vec<u8>) {
    put_sized(column.name.as_bytes(), out);
    out.extend(column.oid.0.to_be_bytes());
    out.extend(column.modifier.to_be_bytes());
    out.push(u8::from(column.not_null));
    put_optional(column.default.as_deref().map(str::as_bytes), out);
    put_optional(column.missing.as_deref(), out);
    out.push(u8::from(column.dropped));
}

fn take_column(rest: &mut Bytes<'_>) -> Result<Column, SqlError> {
    Ok(Column {
        name: take_text(rest)?,
        oid: Oid(rest.u32()?),
        modifier: rest.i32()?,
        not_null: take_flag(rest)?,
        default: match take_optional(rest)? {
            Some(bytes) => Some(utf8(bytes)?.to_owned()),
            None => None,
        },
        missing: take_optional(rest)?.map(<[u8]>::to_vec),
        dropped: take_flag(rest)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::key::after_prefix;
    use super::*;

    fn tables() -> impl Strategy<Value = Table> {
        let text = || "[a-c\"é]{0,5}";
        let optional = || proptest::option::of(text());
        let missing = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
        let column = (text(), any::<u32>(), any::<i32>(), any::<[bool; 2]>(), optional(), missing).prop_map(
            |(name, oid, modifier, [not_null, dropped], default, missing)| Column {
                name,
                oid: Oid(oid),
                modifier,
                not_null,
                default,
                missing,
                dropped,
            },
        );
        let columns = proptest::collection::vec(column, 3..6);
        let positions = || proptest::collection::vec(0u16..3, 0..4);
        (any::<[u32; 2]>(), [text(), text(), text()], columns, positions(), any::<bool>()).prop_map(
            |([id, rows], [schema, name, primary_name], columns, primary, copied)| {
                let count = u16::try_from(primary.len()).expect("few");
                let placement = if copied { Placement::Everywhere } else { Placement::Hash(count) };
                Table { id, rows, schema, name, columns, primary, primary_name, placement }
            },
        )
    }

    proptest! {
        #[test]
        fn a_descriptor_is_read_as_it_was_written(table in tables()) {
            prop_assert_eq!(Table::from_bytes(&table.to_bytes()), Ok(table));
        }

        #[test]
        fn any_bytes_are_a_descriptor_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let bytes = [&[FORMAT][..], &bytes].concat();
            if let Ok(table) = Table::from_bytes(&bytes) {
                prop_assert_eq!(table.to_bytes(), bytes);
            }
        }
    }

    proptest! {
        // Each case goes over all bits.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_torn_descriptor_is_an_error_or_another_table(table in tables()) {
            let bytes = table.to_bytes();
            for end in 0..bytes.len() {
                prop_assert!(Table::from_bytes(&bytes[..end]).is_err());
            }
            for bit in 0..bytes.len() * 8 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                if let Ok(table) = Table::from_bytes(&other) {
                    prop_assert_eq!(table.to_bytes(), other);
                }
            }
        }
    }

    #[test]
    fn descriptors_of_a_schema_lie_together_and_apart_from_the_next_number() {
        let within = |schema: Option<&str>, key: &[u8]| {
            let low = descriptors_prefix(schema);
            let high = after_prefix(&low).expect("there are keys above");
            low.as_slice() <= key && key < high.as_slice()
        };
        for name in ["", "a", "t", "\u{10ffff}"] {
            let key = descriptor_key("public", name);
            assert!(within(None, &key) && within(Some("public"), &key));
            assert!(!within(Some("publi"), &key) && !within(Some("public2"), &key));
        }
        assert!(!within(None, &next_id_key()));
        assert_ne!(descriptor_key("a", "bc"), descriptor_key("ab", "c"));
        assert_eq!(read_next_id(&write_next_id(16_384)), Ok(16_384));
        assert!(read_next_id(&[0, 0, 64]).is_err() && read_next_id(&[0; 5]).is_err());
    }
}
