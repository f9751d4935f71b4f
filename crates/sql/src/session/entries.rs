//! Entries of indexes: kept beside every row that is written, and rows found through them.

use std::collections::BTreeMap;

use super::conversation::Session;
use super::writing::{live, whole};
use super::{Stop, World};
use crate::SqlError;
use crate::analyze::conflict::Unique;
use crate::catalog::{Index, Table};
use crate::encoding::entry::{self, Entry};
use crate::execute::scan::{Source, Wanted, space};
use crate::functions::confused;
use crate::store::{Pair, Range};
use crate::types::Datum;

impl<W: World> Session<'_, W> {
    /// Reads what a scan waits for: pairs of rows, and what is left of the range that they are in.
    pub(super) async fn fetch(&mut self, wanted: Wanted) -> Result<(Vec<Pair>, Option<Range>), Stop> {
        let (found, left) = match wanted.source {
            Source::Range(range) => self.scan(range).await?,
            Source::Keys(space, keys) => {
                let values = self.get(space, &keys).await?;
                self.data.has_read();
                let pairs = keys.into_iter().zip(values);
                (pairs.filter_map(|(key, value)| Some((key, value?))).collect(), None)
            }
        };
        let Some((table, place)) = wanted.through else { return Ok((found, left)) };
        let index = table.indexes.get(place).ok_or_else(confused)?;
        let keys = found.iter().map(|(key, value)| entry::row_key(&table, index, key, value));
        let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
        let values = self.get(space(&table), &keys).await?;
        let mut pairs = Vec::with_capacity(keys.len());
        for (key, value) in keys.into_iter().zip(values) {
            // At a snapshot each entry has its row, and what reads otherwise is refused when it
            // commits if the two are of different times.
            let value =
                value.ok_or(Stop::Conflict("a row that an index has is not there any more".into()))?;
            pairs.push((key, value));
        }
        Ok((pairs, left))
    }

    /// Keeps the entries of a row in step that is written, or deleted. Its columns are those that
    /// are there. An entry that another row has is an error.
    pub(super) async fn keep_entries(
        &mut self,
        table: &Table,
        old: Option<(&[u8], &[Datum])>,
        new: Option<(&[u8], &[Datum])>,
    ) -> Result<(), Stop> {
        if table.indexes.is_empty() {
            return Ok(());
        }
        let (before, after) = (entries(table, old)?, entries(table, new)?);
        let mut changes: Vec<Change> = Vec::new();
        for (place, (before, after)) in before.into_iter().zip(after).enumerate() {
            if before != after {
                changes.push((place, before, after));
            }
        }
        self.leave_to_others(table, &mut changes).await?;
        let is_new = |before: &Option<Entry>, after: &Entry| {
            !after.value.is_empty() && before.as_ref().is_none_or(|before| before.key != after.key)
        };
        let asked = changes.iter().filter_map(|(place, before, after)| {
            let after = after.as_ref()?;
            is_new(before, after).then(|| (*place, after.key.clone()))
        });
        let (places, keys): (Vec<usize>, Vec<Vec<u8>>) = asked.unzip();
        let found = self.get(space(table), &keys).await?;
        let taken = places.iter().zip(found).find(|(_, found)| found.is_some());
        if let (Some((place, _)), Some((_, row))) = (taken, new) {
            return Err(self.duplicate(table, Unique::Index(*place), row).into());
        }
        for (_, before, after) in changes {
            if let Some(before) = before
                && after.as_ref().is_none_or(|after| after.key != before.key)
            {
                self.put(space(table), before.key, None).await?;
            }
            if let Some(Entry { key, value }) = after {
                self.put(space(table), key, Some(&value)).await?;
            }
        }
        Ok(())
    }

    /// Forgets entries of rows that they are not of: while a unique index is made, a row may have
    /// none, and another one have its place.
    async fn leave_to_others(&mut self, table: &Table, changes: &mut [Change]) -> Result<(), Stop> {
        for (place, before, _) in changes {
            let is_ready = table.indexes.get(*place).is_none_or(|index| index.is_ready);
            let Some(entry) = before.as_ref().filter(|entry| !is_ready && !entry.value.is_empty()) else {
                continue;
            };
            let found = self.get(space(table), std::slice::from_ref(&entry.key)).await?;
            if found != [Some(entry.value.clone())] {
                *before = None;
            }
        }
        Ok(())
    }

    /// Writes entries of which is known that no other row has them.
    pub(super) async fn put_entries(
        &mut self,
        table: &Table,
        row_key: &[u8],
        row: &[Datum],
    ) -> Result<(), Stop> {
        for Entry { key, value } in entries(table, Some((row_key, row)))?.into_iter().flatten() {
            self.put(space(table), key, Some(&value)).await?;
        }
        Ok(())
    }
}

/// An index by its place, and the entry of a row in it as it was and as it is to be.
type Change = (usize, Option<Entry>, Option<Entry>);

/// The entry of a row in each index; none if there is no row.
fn entries(table: &Table, row: Option<(&[u8], &[Datum])>) -> Result<Vec<Option<Entry>>, SqlError> {
    if table.indexes.is_empty() {
        return Ok(Vec::new());
    }
    let Some((key, row)) = row else { return Ok(vec![None; table.indexes.len()]) };
    let values = whole(table, row);
    table.indexes.iter().map(|index| entry::entry(table, index, &values, key).map(Some)).collect()
}

/// What is in the way of new rows: the key of a row that is there, under what must not be there
/// twice.
#[derive(Default)]
pub(super) struct Taken(BTreeMap<Vec<u8>, Vec<u8>>);

impl Taken {
    /// The keys of a new row that must not be there, with what they are of.
    pub(super) fn keys(
        table: &Table,
        row_key: &[u8],
        row: &[Datum],
    ) -> Result<Vec<(Unique, Vec<u8>)>, SqlError> {
        let mut keys = vec![(Unique::Primary, row_key.to_vec())];
        for (place, entry) in entries(table, Some((row_key, row)))?.into_iter().flatten().enumerate() {
            if !entry.value.is_empty() {
                keys.push((Unique::Index(place), entry.key));
            }
        }
        Ok(keys)
    }

    /// What was found under such keys.
    pub(super) fn found(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.insert(key, value);
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.0.get(key)
    }

    /// A row is there now.
    pub(super) fn add(
        &mut self,
        table: &Table,
        row_key: Vec<u8>,
        row: &[Datum],
        stored: Vec<u8>,
    ) -> Result<(), SqlError> {
        for entry in entries(table, Some((&row_key, row)))?.into_iter().flatten() {
            if !entry.value.is_empty() {
                self.0.insert(entry.key, entry.value);
            }
        }
        self.0.insert(row_key, stored);
        Ok(())
    }

    /// A row is not there any more.
    pub(super) fn remove(&mut self, table: &Table, row_key: &[u8], row: &[Datum]) -> Result<(), SqlError> {
        for entry in entries(table, Some((row_key, row)))?.into_iter().flatten() {
            // While a unique index is made, it may be that of another row.
            if self.0.get(&entry.key) == Some(&entry.value) {
                self.0.remove(&entry.key);
            }
        }
        self.0.remove(row_key);
        Ok(())
    }

    /// The key of the row that has a key, by what that is of.
    pub(super) fn owner(
        &self,
        table: &Table,
        unique: Unique,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        match unique {
            Unique::Primary => Ok(Some(key.to_vec())),
            Unique::Index(place) => {
                let index: &Index = table.indexes.get(place).ok_or_else(confused)?;
                entry::row_key(table, index, key, value).map(Some)
            }
        }
    }
}

/// The columns that are there of a stored row.
pub(super) fn stored_row(table: &Table, key: &[u8], value: &[u8]) -> Result<Vec<Datum>, SqlError> {
    Ok(live(table, crate::encoding::row::read_row(table, key, value)?))
}
