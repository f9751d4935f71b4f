//! A database in the memory of one process, for tests and examples.
//!
//! A transaction reads the state that it began with. It commits if nothing that it has read was
//! changed since, ranges included. One that is [coarse](Memory::coarse) looks at less than that, as
//! the database does.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Asked, Failure, Pair, Purpose, Range, Space, Store, Write};

/// Pairs that a scan returns at a time.
const BATCH: usize = 256;

type Place = (Space, Vec<u8>);

#[derive(Clone, Default)]
struct State {
    rows: Arc<BTreeMap<Place, Vec<u8>>>,
    /// How many transactions have written.
    version: u64,
    /// Which of them changed a key last.
    changed: BTreeMap<Place, u64>,
    /// Whether a key that is added changes all gaps between keys.
    is_coarse: bool,
    /// Which of them added a key to a space last.
    added: BTreeMap<Space, u64>,
}

/// The database. A clone is the same one.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<State>>);

/// A transaction.
pub struct Transaction {
    rows: Arc<BTreeMap<Place, Vec<u8>>>,
    version: u64,
    writes: BTreeMap<Place, Option<Vec<u8>>>,
    read: Vec<Range>,
    /// Where it has read that there is no key.
    gaps: BTreeSet<Space>,
}

impl Memory {
    /// A database in which whoever has read that there is no key, or a range, has read that none
    /// was added to the space: as if an index had a single leaf.
    pub fn coarse() -> Memory {
        Memory(Arc::new(Mutex::new(State { is_coarse: true, ..State::default() })))
    }

    /// Another database with what is in this one.
    pub fn copied(&self) -> Memory {
        Memory(Arc::new(Mutex::new(self.state().clone())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that has panicked has not left half a commit.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bounds(range: &Range) -> (Bound<Place>, Bound<Place>) {
    let low = Bound::Included((range.space, range.low.clone()));
    let high = match (&range.high, range.space) {
        (Some(high), space) => Bound::Excluded((space, high.clone())),
        (None, Space::Parted) => Bound::Excluded((Space::Copied, Vec::new())),
        (None, Space::Copied) => Bound::Unbounded,
    };
    (low, high)
}

fn is_empty(range: &Range) -> bool {
    range.high.as_ref().is_some_and(|high| *high <= range.low)
}

impl Store for Memory {
    type Transaction = Transaction;

    fn has_locks(&self) -> bool {
        false
    }

    async fn begin(&self, _: Purpose) -> Result<Transaction, Failure> {
        let state = self.state();
        let rows = Arc::clone(&state.rows);
        let version = state.version;
        Ok(Transaction { rows, version, writes: BTreeMap::new(), read: Vec::new(), gaps: BTreeSet::new() })
    }

    async fn get(
        &self,
        transaction: &mut Transaction,
        space: Space,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let values = keys.iter().map(|key| {
            let place = (space, key.clone());
            if let Some(own) = transaction.writes.get(&place) {
                return own.clone();
            }
            let high = Some([key.as_slice(), &[0]].concat());
            transaction.read.push(Range { space, low: key.clone(), high, reverse: false });
            let found = transaction.rows.get(&place).cloned();
            if found.is_none() {
                transaction.gaps.insert(space);
            }
            found
        });
        Ok(values.collect())
    }

    async fn scan(
        &self,
        transaction: &mut Transaction,
        range: Range,
        most: usize,
    ) -> Result<(Vec<Pair>, Option<Range>), Failure> {
        let most = most.min(BATCH);
        if is_empty(&range) {
            return Ok((Vec::new(), None));
        }
        transaction.read.push(range.clone());
        transaction.gaps.insert(range.space);
        let mut all: BTreeMap<&Place, Option<&Vec<u8>>> =
            transaction.rows.range(bounds(&range)).map(|(place, value)| (place, Some(value))).collect();
        all.extend(transaction.writes.range(bounds(&range)).map(|(place, value)| (place, value.as_ref())));
        let pair = |(place, value): (&Place, Option<&Vec<u8>>)| Some((place.1.clone(), value?.clone()));
        let mut pairs: Vec<Pair> = match range.reverse {
            false => all.into_iter().filter_map(pair).take(most + 1).collect(),
            true => all.into_iter().rev().filter_map(pair).take(most + 1).collect(),
        };
        let more = pairs.len() > most;
        pairs.truncate(most);
        let left = pairs.last().filter(|_| more).map(|(key, _)| match range.reverse {
            false => Range { low: [key.as_slice(), &[0]].concat(), ..range.clone() },
            true => Range { high: Some(key.clone()), ..range.clone() },
        });
        Ok((pairs, left))
    }

    async fn put_all(
        &self,
        transaction: &mut Transaction,
        space: Space,
        writes: Vec<Write>,
    ) -> Result<(), Failure> {
        transaction.writes.extend(writes.into_iter().map(|(key, value)| ((space, key), value)));
        Ok(())
    }

    fn snapshot(&self, transaction: &Transaction) -> Option<u64> {
        Some(transaction.version)
    }

    fn count(&self, _transaction: &mut Transaction) {}

    fn counted(&self, _transaction: &mut Transaction) -> Option<Asked> {
        None
    }

    async fn commit(&self, transaction: Transaction) -> Result<Option<u64>, Failure> {
        if transaction.writes.is_empty() {
            return Ok(None);
        }
        let mut state = self.state();
        let ranges = transaction.read.iter().filter(|range| !is_empty(range));
        let mut changes = ranges.flat_map(|range| state.changed.range(bounds(range)));
        if changes.any(|(_, version)| *version > transaction.version) {
            return Err(Failure::Conflict("something that was read has changed"));
        }
        let added = |space| state.added.get(space).is_some_and(|version| *version > transaction.version);
        if state.is_coarse && transaction.gaps.iter().any(added) {
            return Err(Failure::Conflict("a key was added"));
        }
        state.version += 1;
        let version = state.version;
        let mut rows = BTreeMap::clone(&state.rows);
        for (place, value) in transaction.writes {
            state.changed.insert(place.clone(), version);
            if value.is_some() && !rows.contains_key(&place) {
                state.added.insert(place.0, version);
            }
            match value {
                Some(value) => drop(rows.insert(place, value)),
                None => drop(rows.remove(&place)),
            }
        }
        state.rows = Arc::new(rows);
        Ok(Some(version))
    }

    async fn rollback(&self, _transaction: Transaction) {}
}
