//! What is in an image of a shard, and how one is made while transactions go on.
//!
//! An image replaces the beginning of the shard's log: it has what a shard knows that has read the
//! log below some index, its *start*. It is made in three parts:
//!
//! 1. *The beginning*, at the end of a pass, in one step: the tables, what coordinators have
//!    settled, the ballots with the locks of their transactions, the ceiling. The entries below the
//!    start are those of this pass and of the passes before it.
//! 2. *Rows*, some in a step, between which transactions go on: the newest version of each record.
//! 3. *The end*, in one step: the index behind the last entry that a row may come from, the floor,
//!    and the largest stamp that the log has had. The image is valid when the log is on disk up to
//!    that index; else a row could be in it whose entry is lost.
//!
//! A shard that comes back reads an image, and then the log from the image's start. Records of the
//! log about ballots and ceilings meet what they have met before: the beginning is the state
//! between two entries. Rows may be ahead of that. So *below the end's index an install replaces
//! what the record has, whatever its stamp is*, and only from there on it pushes a version. Of a
//! record that was written between start and end the last of these installs is the newest version
//! at the end; all other records the image has as they were all the time. It takes no order of
//! stamps, which not all schemes have.
//!
//! Example. `x` has version @5 when an image starts at entry 100. Entry 101 installs `x`@8, the
//! walk comes to `x`, entry 102 installs `x`@9, and the walk ends, at 103. The image has `x`@8.
//! After a restart, entry 101 replaces it with @8 and entry 102 with @9. If entry 103 installs
//! `x`@12, the chain of `x` is @12, @9. A row that is deleted, dropped and inserted again during
//! the walk may be in the image once, twice or not at all; its installs are all in the log.
//!
//! *Snapshots* find what was forgotten to be forgotten. A record whose older versions the image
//! lacks is marked as trimmed, and rows that were dropped, or will be because the image has no more
//! of them than that they are deleted, are below its largest stamp, for every process: that a shard
//! had regard to what a process holds ends with its life.
//!
//! *Moves of slots* spoil an image that is under way, because the walk may see rows of both times.
//! It is given up, and none is begun while rows that have left wait to arrive.
//!
//! Left out: order. Rows come by their numbers, so ordered tables are not loaded in key order.

use std::mem::take;

use plimsoll_store::{At, RowId};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Wire;
use plimsoll_types::{TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::journal::{Ballot, Beginning, Journal, Record, Walk};
use crate::locks::Locks;
use crate::timestamp::Scheme;

/// Rows that a step of the walk looks at, at most.
const STEP_ROWS: RowId = 128;
/// Time in nanoseconds after an image that failed, before the next is begun: at first, and at most.
const AGAIN_NS: (u64, u64) = (500_000_000, 600_000_000_000);

impl<S: Scheme> Base<S> {
    /// Whether to make an image now; then one is under way.
    pub(crate) fn begins_image(&mut self) -> bool {
        let now = self.votes.clock();
        // What has left is in no row.
        let leaves = self.moves.leaving.as_ref().is_some_and(|leaving| !leaving.sent.is_empty());
        let Some(journal) = &mut self.journal else { return false };
        let (images, least) = (&mut journal.images, journal.settings.image_bytes);
        let due = !images.under_way
            && journal.full.is_none()
            && !leaves
            && images.since >= least.max(images.bytes)
            && now >= images.again;
        images.under_way |= due;
        images.wanted |= due;
        if due {
            images.spoilt = false;
        }
        due
    }

    /// The beginning of the image that is under way, once a pass has ended.
    pub(crate) fn image_beginning(&mut self) -> Option<Beginning> {
        let images = &mut self.journal.as_mut()?.images;
        let beginning = images.beginning.take()?;
        if planted(Mutant::LogRecycledEarly) {
            images.needless = Some(beginning.start);
        }
        Some(beginning)
    }

    /// A pass ends, and all that it has done is in entries. Returns whether an image begins.
    pub(super) fn begin_image<'a>(
        &self,
        journal: &mut Journal,
        locks: impl Fn(TxnId) -> Option<&'a Locks>,
    ) -> bool {
        if !take(&mut journal.images.wanted) {
            return false;
        }
        let mut records = Vec::new();
        for spec in &self.layout.tables[journal.images.unlogged_tables..] {
            Record::Table(spec.clone()).encode(&mut records);
        }
        // A log to a cut has no votes: a recovery drops what is above the cut, and all that is
        // below is decided.
        let votes = journal.cut.is_none();
        // Before the ballots: it makes a shard forget some of those that it has.
        for coordinator in self.votes.settled_coordinators().filter(|_| votes) {
            let (first, below) = self.votes.told_settled(coordinator);
            Record::Settled { coordinator, first, below }.encode(&mut records);
        }
        for txn in self.votes.all().filter(|_| votes && !planted(Mutant::VotesNotInImage)) {
            match self.ballot(txn, &locks) {
                None | Some(Ballot::Gone) => {}
                Some(ballot) => Record::Ballot { txn, ballot }.encode(&mut records),
            }
        }
        let (to, reserved) = (journal.ceiling, journal.reserved);
        Record::Ceiling { to, reserved }.encode(&mut records);
        self.scheme.kept().into_iter().for_each(|kept| Record::Scheme(kept).encode(&mut records));
        let slots = self.layout.placement.moved();
        if !slots.is_empty() && !planted(Mutant::MapNotInImage) {
            Record::Map { slots }.encode(&mut records);
        }
        Self::image_standing(journal).into_iter().for_each(|record| record.encode(&mut records));
        let tables = self.layout.tables.len() as u16;
        let walk = Walk { table: 0, row: 0, tables };
        let (start, since) = (journal.sealed, journal.images.since);
        journal.images.beginning = Some(Beginning { start, records, walk, since });
        true
    }

    /// Adds a record of the protocol's own to the image that begins in this pass.
    pub(crate) fn add_to_image(&mut self, own: Vec<u8>) {
        let images = self.journal.as_mut().map(|journal| &mut journal.images);
        if let Some(beginning) = images.and_then(|images| images.beginning.as_mut()) {
            Record::Own(own).encode(&mut beginning.records);
        }
    }

    /// Walks on through the tables, and returns the records of the next rows, about `bytes` of them;
    /// `None` when the walk is over.
    pub(crate) fn image_rows(&self, walk: &mut Walk, bytes: usize) -> Option<Vec<u8>> {
        let (mut records, mut looked) = (Vec::new(), 0);
        while walk.table < walk.tables {
            let table = TableId(walk.table);
            // Rows that are linked later are in the log.
            while walk.row < self.store.row_numbers(table) {
                if looked == STEP_ROWS || records.len() >= bytes {
                    return Some(records);
                }
                let row = self.store.newest_of(table, walk.row);
                let row = row
                    .filter(|_| !planted(Mutant::LockedNotInImage) || !self.is_row_locked(table, walk.row));
                row.into_iter().for_each(|row| Record::Row(row).encode(&mut records));
                (walk.row, looked) = (walk.row + 1, looked + 1);
            }
            (walk.table, walk.row) = (walk.table + 1, 0);
        }
        (!records.is_empty()).then_some(records)
    }

    fn is_row_locked(&self, table: TableId, row: RowId) -> bool {
        let at = |group| At { row, column: table.group(group) };
        (0..self.groups(table)).any(|group| self.store.record(at(group)).is_locked())
    }

    /// The last records of an image, the index below which the log has its rows, and the largest
    /// stamp that any of them may have.
    pub(crate) fn image_end(&mut self) -> (Vec<u8>, u64, Timestamp) {
        let below = self.logged().head;
        let largest = self.journal.as_ref().map_or(Timestamp::ZERO, |journal| journal.largest);
        let mut records = Vec::new();
        Record::End { below, floor: self.store.floor(), largest }.encode(&mut records);
        (records, below, largest)
    }

    /// Whether slots have moved since the image that is under way was begun.
    pub(crate) fn image_is_spoilt(&self) -> bool {
        let spoilt = self.journal.as_ref().is_some_and(|journal| journal.images.spoilt);
        spoilt && !planted(Mutant::ImageDuringMove)
    }

    /// Notes that the image that was under way is on disk, with `bytes` of records. Returns the
    /// starts of the images that are kept.
    pub(crate) fn image_made(&mut self, beginning: &Beginning, bytes: u64) -> Vec<u64> {
        let Some(journal) = &mut self.journal else { return Vec::new() };
        let images = &mut journal.images;
        images.since -= beginning.since;
        images.bytes = bytes;
        // If the newest cannot be read, there is the one before it.
        images.needless = images.kept.last().copied();
        images.kept.push(beginning.start);
        if images.kept.len() > 2 {
            images.kept.remove(0);
        }
        images.kept.clone()
    }

    /// No image is under way any more; one that was begun may have failed.
    pub(crate) fn image_over(&mut self, failed: bool) {
        let now = self.votes.clock();
        let Some(journal) = &mut self.journal else { return };
        let images = &mut journal.images;
        (images.under_way, images.wanted, images.beginning) = (false, false, None);
        match failed {
            true => images.pause_ns = (2 * images.pause_ns).clamp(AGAIN_NS.0, AGAIN_NS.1),
            false => images.pause_ns = 0,
        }
        images.again = Timestamp(now.0 + images.pause_ns);
    }

    /// Takes the index below which the log is no longer needed, if it has become larger.
    pub(crate) fn needless(&mut self) -> Option<u64> {
        self.journal.as_mut()?.images.needless.take()
    }

    /// The log will be read from this index: the start of the image that was read, which has so
    /// many bytes of records, or the beginning of the log. `kept` are the starts of the images that
    /// are on disk, that one the last.
    pub(crate) fn replays_from(&mut self, start: u64, bytes: u64, kept: &[u64]) {
        if let Some(journal) = &mut self.journal {
            journal.images.bytes = bytes;
            journal.images.kept = kept[kept.len().saturating_sub(2)..].to_vec();
        }
        if let Some(on_replay) = &mut self.on_replay {
            on_replay(Some(start));
        }
    }

    /// Forgets what was read of an image, or of the log. If that is nothing, rows that were loaded
    /// meanwhile stay.
    pub(crate) fn forget_read(&mut self) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.has_read) else { return };
        journal.forget_read();
        let tables = &self.layout.tables[..journal.images.unlogged_tables];
        self.store = self.store.anew();
        for spec in tables {
            self.store.create_table(spec.clone());
        }
        self.layout.tables = tables.iter().cloned().collect();
        self.votes.forget_all();
    }

    /// The end of an image was read, none of whose stamps is above `largest`. A row of which only
    /// the version that deletes it is left will be dropped, though a snapshot below may be held.
    pub(super) fn replay_end(&mut self, below: u64, floor: Timestamp, largest: Timestamp) {
        let journal = self.journal.as_mut().expect("a shard that reads an image has a journal");
        journal.images.end = below;
        self.store.raise_floor(floor);
        let forgotten = floor.max(largest);
        self.absences.iter_mut().for_each(|absence| absence.forgotten.raise(forgotten));
    }
}
