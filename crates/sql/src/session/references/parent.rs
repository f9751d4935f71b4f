//! Whether a key is there.

use std::sync::Arc;

use plimsoll_types::mutants::{Mutant, planted};

use super::super::conversation::Session;
use super::super::{Stop, World};
use super::type_at;
use crate::catalog::{Reference, Table};
use crate::encoding::{entry, key};
use crate::execute::rows::Row;
use crate::execute::scan::space;
use crate::functions::confused;
use crate::types::{Datum, Numeric, Oid, compare};
use crate::{SqlError, SqlState};

/// Keys that are looked up together.
const CHUNK: usize = 256;

impl<W: World> Session<'_, W> {
    /// Of keys that rows of a table name, those that are not there.
    pub(in crate::session) async fn missing(
        &mut self,
        child: &Arc<Table>,
        reference: &Reference,
        keys: Vec<Row>,
    ) -> Result<Vec<Row>, Stop> {
        let is_null = |key: &Row| match reference.is_full {
            true => key.iter().all(Datum::is_null),
            false => key.iter().any(Datum::is_null),
        };
        let keys: Vec<Row> = keys.into_iter().filter(|key| !is_null(key)).collect();
        if keys.is_empty() {
            return Ok(keys);
        }
        let parent = match reference.names(child) {
            true => Arc::clone(child),
            false => {
                let (schema, name) = (reference.to_schema.clone(), reference.to_table.clone());
                self.look_up_table(schema, name).await?.ok_or_else(confused)?
            }
        };
        let types = || reference.columns.iter().map(|at| type_at(child, *at));
        let converted: Vec<Option<Row>> = (keys.iter())
            .map(|key| {
                let wanted = reference.to_columns.iter().map(|at| type_at(&parent, *at));
                let values = key.iter().zip(types().zip(wanted));
                values.map(|(value, (from, to))| converted(value, from, to)).collect()
            })
            .collect();
        self.without(&parent, reference, keys, converted).await
    }

    /// Of keys of a table, which have the types of its columns, those that are not there.
    pub(super) async fn absent(
        &mut self,
        parent: &Table,
        reference: &Reference,
        keys: Vec<Row>,
    ) -> Result<Vec<Row>, Stop> {
        let there = keys.iter().cloned().map(Some).collect();
        self.without(parent, reference, keys, there).await
    }

    /// Of keys, those whose values as the parent has them are not there, or cannot be.
    async fn without(
        &mut self,
        parent: &Table,
        reference: &Reference,
        keys: Vec<Row>,
        values: Vec<Option<Row>>,
    ) -> Result<Vec<Row>, Stop> {
        let mut missing = Vec::new();
        let mut asked = Vec::new();
        for (key, values) in keys.into_iter().zip(values) {
            match values.map(|values| place_of(parent, reference, &values)).transpose()?.flatten() {
                Some(place) => asked.push((key, place)),
                None => missing.push(key),
            }
        }
        for chunk in asked.chunks(CHUNK) {
            let places: Vec<Vec<u8>> = chunk.iter().map(|(_, place)| place.clone()).collect();
            if planted(Mutant::ParentsOnce) && self.is_run_again() {
                continue;
            }
            let found = self.get(space(parent), &places).await?;
            let absent = chunk.iter().zip(found).filter(|(_, found)| found.is_none());
            missing.extend(absent.map(|((key, _), _)| key.clone()));
        }
        Ok(missing)
    }
}

/// Where a key is, in the primary key or a unique index; none if no key is as long as that.
fn place_of(parent: &Table, reference: &Reference, values: &[Datum]) -> Result<Option<Vec<u8>>, SqlError> {
    if values.iter().any(Datum::is_null) {
        return Ok(None);
    }
    let mut row = vec![Datum::Null; parent.columns.len()];
    for (at, value) in reference.to_columns.iter().zip(values) {
        *row.get_mut(usize::from(*at)).ok_or_else(confused)? = value.clone();
    }
    let place = if is_same(&parent.primary, &reference.to_columns) {
        key::row_key(parent, &row)
    } else {
        let is_it = |index: &&crate::catalog::Index| {
            let parts: Vec<u16> = index.parts.iter().map(|part| part.column).collect();
            index.unique && is_same(&parts, &reference.to_columns)
        };
        let index = parent.indexes.iter().find(is_it).ok_or_else(confused)?;
        entry::entry(parent, index, &row, &[]).map(|entry| entry.key)
    };
    match place {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.state == SqlState::PROGRAM_LIMIT_EXCEEDED => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether these are the same columns, in whatever order.
pub(in crate::session) fn is_same(one: &[u16], other: &[u16]) -> bool {
    !one.is_empty() && one.len() == other.len() && one.iter().all(|column| other.contains(column))
}

/// Whether columns of these types can be compared as keys.
pub(in crate::session) fn is_comparable(from: Oid, to: Oid) -> bool {
    let is_text = |oid: Oid| matches!(oid, Oid::TEXT | Oid::VARCHAR);
    let is_integer = |oid: Oid| matches!(oid, Oid::INT2 | Oid::INT4 | Oid::INT8);
    from == to || is_text(from) && is_text(to) || is_integer(from) && (is_integer(to) || to == Oid::NUMERIC)
}

/// A value as a column of another type has it; none if that has no such value.
fn converted(value: &Datum, from: Oid, to: Oid) -> Option<Datum> {
    if from == to || value.is_null() {
        return Some(value.clone());
    }
    let Some(number) = compare::integer(value) else { return Some(value.clone()) };
    match to {
        Oid::INT2 => i16::try_from(number).ok().map(Datum::Int2),
        Oid::INT4 => i32::try_from(number).ok().map(Datum::Int4),
        Oid::NUMERIC => Some(Datum::Numeric(Numeric::from(number))),
        _ => Some(Datum::Int8(number)),
    }
}
