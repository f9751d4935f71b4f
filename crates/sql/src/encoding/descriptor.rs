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
//! A descriptor is a byte that says what it is of, and then the fields of that in their order:
//!
//! | byte | fields |
//! |--:|---|
//! | 1 | of a [`Table`] |
//! | 2 | the name of an index's table |
//! | 3 | of a [`Sequence`] |
//!
//! These are the forms of fields:
//!
//! | field | bytes |
//! |---|---|
//! | number, type, modifier | 4, big endian |
//! | number of a sequence | 8, big endian |
//! | position | 2, big endian |
//! | length | 7 bits a byte, the lowest first; the highest bit says that more follow |
//! | text, bytes | its length, its bytes |
//! | list | how many there are, as a length; one after the other |
//! | flag, one of several names | 0 or 1; its place among them |
//! | what may be absent | a flag, and if it is 1 the value |
//! | placement | 1, then 2: `00` and how many columns are hashed, `01 00 00` everywhere |

use std::sync::Arc;

use super::bytes::{Bytes, corrupted, utf8};
use super::order::put_bytes;
use crate::SqlError;
use crate::catalog::{
    Action, Check, Column, Identity, Index, IndexPart, Placement, Reference, Relation, Sequence, Table,
};
use crate::types::Oid;

/// What the descriptor of a table begins with.
const TABLE: u8 = 1;
/// What that of an index begins with.
const INDEX: u8 = 2;
/// What that of a sequence begins with.
const SEQUENCE: u8 = 3;

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

impl Relation {
    /// The descriptor as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Relation::Table(table) => {
                out.push(TABLE);
                put_table(table, &mut out);
            }
            Relation::Index(table) => {
                out.push(INDEX);
                put_sized(table.as_bytes(), &mut out);
            }
            Relation::Sequence(sequence) => {
                out.push(SEQUENCE);
                put_sequence(sequence, &mut out);
            }
        }
        out
    }

    /// The descriptor of some bytes. All positions in it of a table's own columns are those of
    /// columns.
    pub fn from_bytes(bytes: &[u8]) -> Result<Relation, SqlError> {
        let mut rest = Bytes::new(bytes);
        let relation = match rest.u8()? {
            TABLE => Relation::Table(Arc::new(take_table(&mut rest)?)),
            INDEX => Relation::Index(take_text(&mut rest)?),
            SEQUENCE => Relation::Sequence(Arc::new(take_sequence(&mut rest)?)),
            kind => return Err(corrupted(format!("A descriptor is of kind {kind}."))),
        };
        rest.end()?;
        Ok(relation)
    }
}

fn put_table(table: &Table, out: &mut Vec<u8>) {
    out.extend(table.id.to_be_bytes());
    out.extend(table.rows.to_be_bytes());
    put_sized(table.schema.as_bytes(), out);
    put_sized(table.name.as_bytes(), out);
    put_list(&table.columns, out, put_column);
    put_positions(&table.primary, out);
    put_sized(table.primary_name.as_bytes(), out);
    out.extend(table.primary_id.to_be_bytes());
    let (kind, count) = match table.placement {
        Placement::Hash(count) => (0, count),
        Placement::Everywhere => (1, 0),
    };
    out.push(kind);
    out.extend(count.to_be_bytes());
    put_list(&table.indexes, out, put_index);
    put_list(&table.checks, out, put_check);
    put_list(&table.references, out, put_reference);
    put_list(&table.referrers, out, |(schema, name), out| {
        put_sized(schema.as_bytes(), out);
        put_sized(name.as_bytes(), out);
    });
}

fn take_table(rest: &mut Bytes<'_>) -> Result<Table, SqlError> {
    let (id, rows) = (rest.u32()?, rest.u32()?);
    let (schema, name) = (take_text(rest)?, take_text(rest)?);
    let columns = take_list(rest, take_column)?;
    let primary = take_list(rest, Bytes::u16)?;
    let primary_name = take_text(rest)?;
    let primary_id = rest.u32()?;
    let placement = match (rest.u8()?, rest.u16()?) {
        (0, count) if usize::from(count) <= primary.len() => Placement::Hash(count),
        (1, 0) => Placement::Everywhere,
        _ => return Err(foreign()),
    };
    let indexes = take_list(rest, take_index)?;
    let checks = take_list(rest, take_check)?;
    let references = take_list(rest, take_reference)?;
    let referrers = take_list(rest, |rest| Ok((take_text(rest)?, take_text(rest)?)))?;
    let indexed = indexes.iter().flat_map(|index| &index.parts).map(|part| &part.column);
    let naming = references.iter().flat_map(|reference| &reference.columns);
    if primary.iter().chain(indexed).chain(naming).any(|position| usize::from(*position) >= columns.len()) {
        return Err(foreign());
    }
    Ok(Table {
        id,
        rows,
        schema,
        name,
        columns,
        primary,
        primary_name,
        primary_id,
        placement,
        indexes,
        checks,
        references,
        referrers,
    })
}

fn put_index(index: &Index, out: &mut Vec<u8>) {
    out.extend(index.id.to_be_bytes());
    out.extend(index.rows.to_be_bytes());
    put_sized(index.name.as_bytes(), out);
    put_list(&index.parts, out, |part, out| {
        out.extend(part.column.to_be_bytes());
        out.extend([u8::from(part.descending), u8::from(part.nulls_first)]);
    });
    out.extend([u8::from(index.unique), u8::from(index.is_constraint), u8::from(index.is_ready)]);
}

fn take_index(rest: &mut Bytes<'_>) -> Result<Index, SqlError> {
    let index = Index {
        id: rest.u32()?,
        rows: rest.u32()?,
        name: take_text(rest)?,
        parts: take_list(rest, |rest| {
            let column = rest.u16()?;
            let (descending, nulls_first) = (take_flag(rest)?, take_flag(rest)?);
            Ok(IndexPart { column, descending, nulls_first })
        })?,
        unique: take_flag(rest)?,
        is_constraint: take_flag(rest)?,
        is_ready: take_flag(rest)?,
    };
    if index.parts.is_empty() { Err(foreign()) } else { Ok(index) }
}

fn put_check(check: &Check, out: &mut Vec<u8>) {
    out.extend(check.id.to_be_bytes());
    put_sized(check.name.as_bytes(), out);
    put_sized(check.condition.as_bytes(), out);
}

fn take_check(rest: &mut Bytes<'_>) -> Result<Check, SqlError> {
    Ok(Check { id: rest.u32()?, name: take_text(rest)?, condition: take_text(rest)? })
}

/// Actions in the order of their numbers.
const ACTIONS: [Action; 5] =
    [Action::NoAction, Action::Restrict, Action::Cascade, Action::SetNull, Action::SetDefault];

fn put_action(action: Action, out: &mut Vec<u8>) {
    let place = ACTIONS.iter().position(|other| *other == action);
    out.push(place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default());
}

fn take_action(rest: &mut Bytes<'_>) -> Result<Action, SqlError> {
    ACTIONS.get(usize::from(rest.u8()?)).copied().ok_or_else(foreign)
}

fn put_reference(reference: &Reference, out: &mut Vec<u8>) {
    out.extend(reference.id.to_be_bytes());
    put_sized(reference.name.as_bytes(), out);
    put_positions(&reference.columns, out);
    put_sized(reference.to_schema.as_bytes(), out);
    put_sized(reference.to_table.as_bytes(), out);
    put_positions(&reference.to_columns, out);
    out.push(u8::from(reference.is_full));
    put_action(reference.on_update, out);
    put_action(reference.on_delete, out);
    out.extend([u8::from(reference.is_deferrable), u8::from(reference.is_deferred)]);
}

fn take_reference(rest: &mut Bytes<'_>) -> Result<Reference, SqlError> {
    let reference = Reference {
        id: rest.u32()?,
        name: take_text(rest)?,
        columns: take_list(rest, Bytes::u16)?,
        to_schema: take_text(rest)?,
        to_table: take_text(rest)?,
        to_columns: take_list(rest, Bytes::u16)?,
        is_full: take_flag(rest)?,
        on_update: take_action(rest)?,
        on_delete: take_action(rest)?,
        is_deferrable: take_flag(rest)?,
        is_deferred: take_flag(rest)?,
    };
    let fits = !reference.columns.is_empty() && reference.columns.len() == reference.to_columns.len();
    if fits { Ok(reference) } else { Err(foreign()) }
}

fn put_sequence(sequence: &Sequence, out: &mut Vec<u8>) {
    out.extend(sequence.id.to_be_bytes());
    out.extend(sequence.rows.to_be_bytes());
    put_sized(sequence.schema.as_bytes(), out);
    put_sized(sequence.name.as_bytes(), out);
    out.extend(sequence.oid.0.to_be_bytes());
    let Sequence { start, increment, least, largest, cache, .. } = sequence;
    [start, increment, least, largest, cache].into_iter().for_each(|number| out.extend(number.to_be_bytes()));
    out.extend([u8::from(sequence.cycles), u8::from(sequence.owner.is_some())]);
    if let Some((table, column)) = &sequence.owner {
        put_sized(table.as_bytes(), out);
        out.extend(column.to_be_bytes());
    }
}

fn take_sequence(rest: &mut Bytes<'_>) -> Result<Sequence, SqlError> {
    let sequence = Sequence {
        id: rest.u32()?,
        rows: rest.u32()?,
        schema: take_text(rest)?,
        name: take_text(rest)?,
        oid: Oid(rest.u32()?),
        start: rest.i64()?,
        increment: rest.i64()?,
        least: rest.i64()?,
        largest: rest.i64()?,
        cache: rest.i64()?,
        cycles: take_flag(rest)?,
        owner: if take_flag(rest)? { Some((take_text(rest)?, rest.u16()?)) } else { None },
    };
    let within = sequence.least..=sequence.largest;
    let fits = sequence.increment != 0 && sequence.cache > 0 && within.contains(&sequence.start);
    if fits { Ok(sequence) } else { Err(foreign()) }
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

fn put_list<T>(items: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    put_length(items.len(), out);
    items.iter().for_each(|item| put(item, out));
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
    put_list(positions, out, |position, out| out.extend(position.to_be_bytes()));
}

fn put_column(column: &Column, out: &mut Vec<u8>) {
    put_sized(column.name.as_bytes(), out);
    out.extend(column.oid.0.to_be_bytes());
    out.extend(column.modifier.to_be_bytes());
    out.push(u8::from(column.not_null));
    put_optional(column.default.as_deref().map(str::as_bytes), out);
    put_optional(column.missing.as_deref(), out);
    out.push(u8::from(column.dropped));
    out.push(match column.identity {
        None => 0,
        Some(Identity::Always) => 1,
        Some(Identity::ByDefault) => 2,
    });
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
        identity: match rest.u8()? {
            0 => None,
            1 => Some(Identity::Always),
            2 => Some(Identity::ByDefault),
            _ => return Err(foreign()),
        },
    })
}

#[cfg(test)]
mod tests;
