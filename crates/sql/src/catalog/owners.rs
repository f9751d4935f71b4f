//! What a key of the database is of, as people read it: a table or an index, and values of columns.

use std::sync::Arc;

use super::{Index, Table};
use crate::encoding::{entry, key};
use crate::types::{self, Datum, Style};

/// What has a key: a table, or the index in this place of a table.
pub fn owner_of<'a>(
    mut tables: impl Iterator<Item = &'a Arc<Table>>,
    key: &[u8],
) -> Option<(&'a Arc<Table>, Option<usize>)> {
    let number = u32::from_be_bytes(*key.first_chunk::<4>()?);
    tables.find_map(|table| {
        if table.rows == number {
            return Some((table, None));
        }
        let place = table.indexes.iter().position(|index| index.rows == number)?;
        Some((table, Some(place)))
    })
}

/// The columns of a key and their values, as `(id)=(5)`; empty if the key is a hidden number, none
/// if it is not one of the table's, or of the index's if one is named.
pub fn shown_key(table: &Table, index: Option<&Index>, key: &[u8], style: &Style) -> Option<String> {
    let (positions, values): (Vec<u16>, Vec<Datum>) = match index {
        None => (table.primary.clone(), key::read_row_key(table, key).ok()?),
        Some(index) => {
            let positions = index.parts.iter().map(|part| part.column).collect();
            (positions, entry::read_values(table, index, key).ok()?)
        }
    };
    let (mut names, mut shown) = (Vec::new(), Vec::new());
    for (position, value) in positions.iter().zip(&values) {
        let column = table.columns.get(usize::from(*position))?;
        let mut text = String::new();
        match value {
            Datum::Null => text.push_str("null"),
            value => types::print(value, column.oid, style, &mut text).ok()?,
        }
        names.push(column.name.as_str());
        shown.push(text);
    }
    match names.is_empty() {
        true => Some(String::new()),
        false => Some(format!("({})=({})", names.join(", "), shown.join(", "))),
    }
}
