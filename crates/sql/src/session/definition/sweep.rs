//! Rows that dropped tables have left.
//!
//! The session that has dropped a table removes its rows when the client has the answer: some at a
//! time while the client sends nothing, and all that are left when it is gone. If the process ends
//! before, the next session that drops a table removes them as well.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::index::entries_prefix;
use crate::catalog::{Sequence, Table};
use crate::encoding::key;
use crate::encoding::sequence::state_key;
use crate::execute::scan::space;
use crate::session::conversation::Session;
use crate::session::{Stop, World};
use crate::store::{Failure, Pair, Purpose, Range, Space, Store};

/// Rows that a session removes when it has time.
#[derive(Default)]
pub(in crate::session) struct Sweep {
    /// Whether it has to look what there is.
    pub(in crate::session) is_due: bool,
    /// What tells of them.
    left: Vec<Vec<u8>>,
    /// Where to go on among those that the last of these tells of.
    from: Option<Vec<u8>>,
    /// How often it has failed since it last did something.
    failures: u32,
}

impl Sweep {
    /// Whether there is nothing to do.
    pub(in crate::session) fn is_over(&self) -> bool {
        !self.is_due && self.left.is_empty()
    }
}

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

    /// Waits for something, and removes rows that have been left until it is there. Not while a
    /// transaction is open, whose locks it could wait for.
    pub(in crate::session) async fn sweep_until<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        let mut awaited = pin!(awaited);
        while !self.sweep.is_over() && self.data.open.is_none() {
            let mut step = pin!(self.sweep_some());
            let first = poll_fn(|context| match awaited.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                Poll::Pending => step.as_mut().poll(context).map(|()| None),
            });
            // A step that is not over is done again.
            if let Some(result) = first.await {
                return result;
            }
        }
        awaited.await
    }

    /// Removes all rows that have been left.
    pub(in crate::session) async fn sweep_all(&mut self) {
        while !self.sweep.is_over() {
            self.sweep_some().await;
        }
    }

    /// Removes some of the rows that have been left. If the database is out of reach for long, all stay
    /// until the next table is dropped.
    async fn sweep_some(&mut self) {
        self.world.pause().await;
        match self.try_sweep_some().await {
            Ok(()) => self.sweep.failures = 0,
            // Another session removes them at the same time, and perhaps others than these.
            Err(Failure::Conflict(_)) => {
                self.sweep = Sweep { is_due: true, ..Sweep::default() };
                self.world.sleep(self.world.random() % MET_US).await;
            }
            Err(Failure::Error(_)) if self.sweep.failures >= FAILURES_MAX => self.sweep = Sweep::default(),
            Err(Failure::Error(_)) => {
                self.sweep.failures += 1;
                self.world.sleep(FAILED_US).await;
            }
        }
    }

    async fn try_sweep_some(&mut self) -> Result<(), Failure> {
        if self.sweep.is_due {
            self.look_for_left().await?;
            self.sweep.is_due = false;
            return Ok(());
        }
        let Some(entry) = self.sweep.left.last() else { return Ok(()) };
        let (copied, prefix) = (entry.get(LEFT.len()), entry.get(LEFT.len() + 1..));
        let (Some(copied), Some(prefix)) = (copied, prefix) else {
            self.sweep.left.pop();
            return Ok(());
        };
        let space = if *copied == 1 { Space::Copied } else { Space::Parted };
        // Nobody writes these rows any more, so they need not be read in the transaction that removes
        // them. A scan goes on where the last one has ended, because it would pass all keys that were
        // removed, which stay for a while.
        let low = self.sweep.from.clone().unwrap_or_else(|| prefix.to_vec());
        let range = Range { space, low, high: key::after_prefix(prefix), reverse: false };
        let (rows, rest) = self.scan_newest(range).await?;
        let store = self.world.store();
        let mut removing = store.begin(Purpose::Write).await?;
        let deletes = rows.into_iter().map(|(key, _)| (key, None)).collect();
        store.put_all(&mut removing, space, deletes).await?;
        if rest.is_none() {
            store.put(&mut removing, Space::Copied, entry, None).await?;
        }
        store.commit(removing).await?;
        self.sweep.from = rest.map(|rest| rest.low);
        if self.sweep.from.is_none() {
            self.sweep.left.pop();
        }
        Ok(())
    }

    /// Reads which rows have been left.
    async fn look_for_left(&mut self) -> Result<(), Failure> {
        for (entry, note) in self.marked(NOTED).await? {
            let number = entry.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let noted_us = note.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
            if let (Some(number), Some(noted_us)) = (number, noted_us)
                && self.world.now_us().saturating_sub(noted_us) >= GONE_AFTER_US
            {
                self.leave_noted(number).await?;
            }
        }
        self.sweep.left = self.marked(LEFT).await?.into_iter().map(|(entry, _)| entry).collect();
        self.sweep.from = None;
        Ok(())
    }

    /// Reads the pairs whose keys begin with one of the marks below.
    async fn marked(&self, kind: [u8; 5]) -> Result<Vec<Pair>, Failure> {
        let low = kind.to_vec();
        let all = Range { space: Space::Copied, high: key::after_prefix(&low), low, reverse: false };
        let (mut pairs, mut left) = (Vec::new(), Some(all));
        while let Some(range) = left {
            let (more, rest) = self.scan_newest(range).await?;
            pairs.extend(more);
            left = rest;
        }
        Ok(pairs)
    }
}

/// How long a session waits at most after it has met another, in microseconds.
const MET_US: u64 = 10_000;

/// How long a session waits after it has failed, in microseconds.
const FAILED_US: u64 = 1_000_000;

/// How often it fails, one time after the other, before it gives up.
const FAILURES_MAX: u32 = 10;

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
