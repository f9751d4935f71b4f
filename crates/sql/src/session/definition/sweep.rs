//! Rows that dropped tables have left.

use super::index::entries_prefix;
use crate::catalog::{Sequence, Table};
use crate::encoding::key;
use crate::encoding::sequence::state_key;
use crate::execute::scan::space;
use crate::session::conversation::Session;
use crate::session::{Stop, World};
use crate::store::{Failure, Pair, Range, Space, Store};

impl<W: World> Session<'_, W> {
    /// Writes down that the rows of a table are to be removed when this has committed, and the
    /// entries of its indexes.
    pub(super) async fn leave_rows(&mut self, table: &Table) -> Result<(), Stop> {
        self.leave(space(table), key::prefix(table.rows, key::partition_byte(table)?, &[])?).await?;
        for index in &table.indexes {
            self.leave(space(table), entries_prefix(table, index)?).await?;
        }
        Ok(())
    }

    /// The same for the state of a sequence.
    pub(super) async fn leave_state(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        self.leave(Space::Parted, state_key(sequence.rows)).await
    }

    /// Writes down that everything is to be removed whose key begins so.
    pub(in crate::session) async fn leave(&mut self, space: Space, prefix: Vec<u8>) -> Result<(), Stop> {
        self.data.leaves_rows();
        self.put(Space::Copied, left_key(space, &prefix), Some(&[])).await
    }

    /// Removes rows that have been left, some at a time. If another session does so at the same
    /// time, or the database is out of reach, the rows stay until the next table is dropped.
    pub(in crate::session) async fn sweep(&self) {
        // What keeps it from going on keeps nobody from anything.
        let _ = self.try_sweep().await;
    }

    async fn try_sweep(&self) -> Result<(), Failure> {
        for (entry, note) in self.marked(NOTED).await? {
            let number = entry.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let noted_us = note.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
            if let (Some(number), Some(noted_us)) = (number, noted_us)
                && self.world.now_us().saturating_sub(noted_us) >= GONE_AFTER_US
            {
                self.leave_noted(number).await?;
            }
        }
        let store = self.world.store();
        for (entry, _) in self.marked(LEFT).await? {
            let (Some(copied), Some(prefix)) = (entry.get(LEFT.len()), entry.get(LEFT.len() + 1..)) else {
                continue;
            };
            let space = if *copied == 1 { Space::Copied } else { Space::Parted };
            loop {
                self.world.pause().await;
                let mut removing = store.begin(false).await?;
                let (low, high) = (prefix.to_vec(), key::after_prefix(prefix));
                let (rows, left) =
                    store.scan(&mut removing, Range { space, low, high, reverse: false }).await?;
                for (key, _) in &rows {
                    store.put(&mut removing, space, key, None).await?;
                }
                if left.is_none() {
                    store.put(&mut removing, Space::Copied, &entry, None).await?;
                }
                store.commit(removing).await?;
                if left.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads the first pairs whose keys begin with one of the marks below.
    async fn marked(&self, kind: [u8; 5]) -> Result<Vec<Pair>, Failure> {
        let low = kind.to_vec();
        let all = Range { space: Space::Copied, high: key::after_prefix(&low), low, reverse: false };
        Ok(self.scan_newest(all).await?.0)
    }
}

/// What the keys begin with that tell of rows to be removed.
const LEFT: [u8; 5] = [0, 0, 0, 0, 2];

/// What the keys begin with that tell of rows whose transaction is not over.
const NOTED: [u8; 5] = [0, 0, 0, 0, 3];

/// How old such a note is when its session is taken for gone.
const GONE_AFTER_US: i64 = 3_600_000_000;

/// The key that tells of rows to be removed whose keys begin so.
pub(in crate::session) fn left_key(space: Space, prefix: &[u8]) -> Vec<u8> {
    [LEFT.as_slice(), &[u8::from(space == Space::Copied)], prefix].concat()
}

/// The key that tells of rows under a number whose transaction is not over.
pub(in crate::session) fn note_key(number: u32) -> Vec<u8> {
    [NOTED.as_slice(), &number.to_be_bytes()].concat()
}

/// What is written there: when it was, in microseconds since 2000.
pub(in crate::session) fn written_note(now_us: i64) -> Vec<u8> {
    now_us.to_be_bytes().to_vec()
}
