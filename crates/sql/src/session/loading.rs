//! Rows that nobody else can see yet.
//!
//! Rows are kept under numbers, which descriptors name. A number that was drawn in a session's
//! transaction is in no descriptor that another one can read, until that transaction commits. So
//! what is written under it need not wait for the commit, nor be looked at when it happens: it is
//! written some hundred rows at a time, in transactions of their own. That is how tables are
//! filled that were made or emptied in the same transaction, and how `ALTER TABLE` writes rows
//! anew.
//!
//! These transactions leave a *note* that there is something under the number. The
//! session's transaction removes the note when it commits. If it does not, its session has the rows
//! removed ([`sweep`](super::definition)); if the process ends before, the next session that
//! removes rows does so once the note is an hour old. Both first make the note one of rows that are
//! left, in one step. The session's transaction has read that there is no such mark, so it does not
//! commit afterwards; and once it has committed there is no note. The mark goes with the rows. So a
//! note is not written a second time unless it is still there, and a transaction that is
//! [done again](super::trace) has to find it.
//!
//! Numbers are drawn in transactions of their own, so that no two sessions write under one.
//!
//! Left out: tables of which every shard has a copy. They are small.

use std::collections::BTreeMap;

use super::conversation::Session;
use super::definition::{left_key, note_key, written_note};
use super::{Stop, World};
use crate::encoding::descriptor::{next_id_key, read_next_id, write_next_id};
use crate::store::{Failure, Pair, Purpose, Range, Space, Store};
use crate::{SqlError, SqlState};

/// Pairs and bytes that are written together. A transaction of more than 256 writes makes an index
/// of them; a load does not need one.
const CHUNK: usize = 192;
const CHUNK_BYTES: usize = 1 << 20;

/// How long a chunk that meets others is tried again.
const RETRIED_FOR_US: i64 = 10_000_000;

/// The number of the first table, as PostgreSQL numbers what is not its own.
const FIRST_ID: u32 = 16_384;

/// Numbers that a session draws at a time.
const IDS: u32 = 8;

/// What a transaction writes under a number that it has drawn.
#[derive(Default)]
struct Load {
    /// Whether there may be something under it, and a note of that.
    is_noted: bool,
    /// The highest key that was written.
    highest: Vec<u8>,
    /// How many savepoints there were when the number was drawn.
    depth: usize,
    /// Whether one of them was gone back to since, so that nothing names the number.
    is_undone: bool,
}

/// What a transaction writes under numbers that it has drawn.
#[derive(Default)]
pub(super) struct Loads {
    by_number: BTreeMap<u32, Load>,
    /// What was not written yet.
    waiting: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Loads {
    /// Whether a key is under such a number.
    pub(super) fn has(&self, space: Space, key: &[u8]) -> bool {
        space == Space::Parted && number_of(key).is_some_and(|number| self.by_number.contains_key(&number))
    }

    /// Whether there are such numbers.
    pub(super) fn are_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// The session has forgotten all savepoints but the first of them, as many as `count` says.
    pub(super) fn keep_marks(&mut self, count: usize) {
        self.by_number.values_mut().for_each(|load| load.depth = load.depth.min(count));
    }

    /// The savepoints from this one on are gone back to.
    pub(super) fn undo_to(&mut self, savepoint: usize) {
        let later = self.by_number.values_mut().filter(|load| load.depth > savepoint);
        later.for_each(|load| load.is_undone = true);
    }

    /// Numbers under which something was written, and whether nothing names them any more.
    fn noted(&self) -> Vec<(u32, bool)> {
        let noted = self.by_number.iter().filter(|(_, load)| load.is_noted);
        noted.map(|(number, load)| (*number, load.is_undone)).collect()
    }
}

fn number_of(key: &[u8]) -> Option<u32> {
    key.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

impl<W: World> Session<'_, W> {
    /// A number that nothing has had.
    pub(super) async fn new_id(&mut self) -> Result<u32, Stop> {
        let id = match self.ids.next() {
            Some(id) => id,
            None => self.draw_ids().await?,
        };
        let load = Load { depth: self.data.marks(), ..Load::default() };
        self.data.loads.by_number.insert(id, load);
        Ok(id)
    }

    async fn draw_ids(&mut self) -> Result<u32, Stop> {
        let since_us = self.world.now_us();
        loop {
            let store = self.world.store();
            let mut drawing = store.begin(Purpose::Write).await?;
            let key = next_id_key();
            let found = store.get(&mut drawing, Space::Copied, std::slice::from_ref(&key)).await?;
            let id = match found.into_iter().next().flatten() {
                Some(bytes) => read_next_id(&bytes)?,
                None => FIRST_ID,
            };
            let next = id.checked_add(IDS).ok_or_else(|| {
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "there are no numbers left for tables")
            })?;
            store.put(&mut drawing, Space::Copied, &key, Some(&write_next_id(next))).await?;
            match store.commit(drawing).await {
                Ok(_) => {
                    self.ids = id + 1..next;
                    return Ok(id);
                }
                Err(failure) => self.wait_after(failure, since_us).await?,
            }
        }
    }

    /// Waits a moment if something has met others and may do so again.
    async fn wait_after(&mut self, failure: Failure, since_us: i64) -> Result<(), Stop> {
        let is_late = self.world.now_us().saturating_sub(since_us) >= RETRIED_FOR_US;
        if is_late || !matches!(failure, Failure::Conflict(_)) {
            return Err(failure.into());
        }
        self.world.sleep(self.world.random() % 1000).await;
        Ok(())
    }

    /// Reads keys under numbers that the transaction has drawn.
    pub(super) async fn get_loaded(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let loads = &self.data.loads;
        let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(keys.len());
        let mut asked = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            let load = number_of(key).and_then(|number| loads.by_number.get(&number));
            let waiting = loads.waiting.get(key);
            if waiting.is_none() && load.is_some_and(|load| load.is_noted && *key <= load.highest) {
                asked.push((place, key.clone()));
            }
            values.push(waiting.cloned().flatten());
        }
        if asked.is_empty() {
            return Ok(values);
        }
        let (places, asked): (Vec<usize>, Vec<Vec<u8>>) = asked.into_iter().unzip();
        let found = self.get_newest(Space::Parted, &asked).await?;
        for (place, value) in places.into_iter().zip(found) {
            if let Some(slot) = values.get_mut(place) {
                *slot = value;
            }
        }
        Ok(values)
    }

    /// Reads the first pairs of a range under such a number.
    pub(super) async fn scan_loaded(&mut self, range: Range) -> Result<(Vec<Pair>, Option<Range>), Stop> {
        self.write_waiting().await?;
        Ok(self.scan_newest(range).await?)
    }

    /// Writes a value under such a number, or deletes it if there is none.
    pub(super) async fn put_loaded(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), Stop> {
        let loads = &mut self.data.loads;
        if let Some(load) = number_of(&key).and_then(|number| loads.by_number.get_mut(&number))
            && key > load.highest
        {
            load.highest.clone_from(&key);
        }
        loads.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        loads.waiting.insert(key, value);
        if loads.waiting.len() >= CHUNK || loads.bytes >= CHUNK_BYTES {
            self.write_waiting().await?;
        }
        Ok(())
    }

    /// Writes what waits, with a note of each number: it says how long ago this was.
    async fn write_waiting(&mut self) -> Result<(), Stop> {
        self.data.loads.bytes = 0;
        let waiting = std::mem::take(&mut self.data.loads.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let since_us = self.world.now_us();
        let mut numbers: Vec<u32> = waiting.keys().filter_map(|key| number_of(key)).collect();
        numbers.dedup();
        let mut noted = Vec::new();
        for number in &numbers {
            let Some(load) = self.data.loads.by_number.get_mut(number) else { continue };
            if std::mem::replace(&mut load.is_noted, true) {
                noted.push(note_key(*number));
            } else {
                // Whoever takes the rows for left writes this, and then the transaction does not
                // commit.
                let left = left_key(Space::Parted, &number.to_be_bytes());
                self.get(Space::Copied, &[left]).await?;
            }
        }
        loop {
            let store = self.world.store();
            let mut writing = store.begin(Purpose::Write).await?;
            if store.get(&mut writing, Space::Copied, &noted).await?.contains(&None) {
                store.rollback(writing).await;
                return Err(Stop::Conflict("rows that it had written were taken for left".into()));
            }
            let note = |number: &u32| (note_key(*number), Some(written_note(since_us)));
            store.put_all(&mut writing, Space::Copied, numbers.iter().map(note).collect()).await?;
            let writes = waiting.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            store.put_all(&mut writing, Space::Parted, writes).await?;
            match store.commit(writing).await {
                Ok(_) => return Ok(()),
                Err(failure) => self.wait_after(failure, since_us).await?,
            }
        }
    }

    /// Writes what is left before the transaction commits, which removes the notes. Returns the
    /// numbers that were noted.
    pub(super) async fn finish_loads(&mut self) -> Result<Vec<u32>, Stop> {
        if self.data.loads.are_empty() {
            return Ok(Vec::new());
        }
        self.write_waiting().await?;
        let noted = self.data.loads.noted();
        for (number, is_undone) in &noted {
            let note = note_key(*number);
            if let Some(open) = &mut self.data.open {
                open.trace.needs(Space::Copied, &note);
            }
            self.put(Space::Copied, note, None).await?;
            if *is_undone {
                self.leave(Space::Parted, number.to_be_bytes().to_vec()).await?;
            }
        }
        Ok(noted.into_iter().map(|(number, _)| number).collect())
    }

    /// Removes what was written under numbers, unless the transaction has committed after all.
    pub(super) async fn give_up_loads(&mut self, numbers: &[u32]) {
        if numbers.is_empty() {
            return;
        }
        // What keeps it from going on keeps nobody from anything: the notes stay.
        for number in numbers {
            let _ = self.leave_noted(*number).await;
        }
        self.sweep.is_due = true;
    }

    /// The numbers under which something was written.
    pub(super) fn loaded_numbers(&self) -> Vec<u32> {
        self.data.loads.noted().into_iter().map(|(number, _)| number).collect()
    }

    /// Makes a note, if there still is one, one of rows that are left.
    pub(super) async fn leave_noted(&self, number: u32) -> Result<(), Failure> {
        let store = self.world.store();
        let mut leaving = store.begin(Purpose::Write).await?;
        let key = note_key(number);
        let found = store.get(&mut leaving, Space::Copied, std::slice::from_ref(&key)).await?;
        if found == [None] {
            store.rollback(leaving).await;
            return Ok(());
        }
        store.put(&mut leaving, Space::Copied, &key, None).await?;
        let left = left_key(Space::Parted, &number.to_be_bytes());
        store.put(&mut leaving, Space::Copied, &left, Some(&[])).await?;
        store.commit(leaving).await?;
        Ok(())
    }
}
