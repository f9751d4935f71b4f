//! `async`: commits that do not wait for a disk, and what of them a database has after a crash.
//!
//! Answers leave before the log is written, so a crash loses some of what was answered. What is
//! left must still be a state that the database once had. Shards write their logs at different
//! speeds, so one may have lost a transaction that a transaction of another shard has read.
//! Therefore all shards go back to one timestamp, the *cut*. Stamps of DST order transactions as
//! they depend on each other, so the transactions at or below the cut are a prefix of the serial
//! order.
//!
//! *Closing.* A shard that is asked to close at C bounds all writers by C, as a snapshot at C that
//! reads everything would, and waits for the owners of locks that may still commit within it. Then
//! no install at or below C can follow, and the shard logs `Closed{C}`. When that is on disk, so is
//! every install at or below C. The cut is the largest C at which every shard has closed on disk.
//!
//! *Rounds.* The first shard asks all shards to close at what its clock showed [`PERIOD_NS`] before,
//! and repeats that until no shard has a stamp above the cut. When a shard logs one later, it tells
//! the first shard, which begins again; so an idle database writes nothing. Each request also
//! carries the last cut. Images wait for it: an image has versions up to its end, and must not have
//! any that a recovery would take back.
//!
//! *Coming back.* A shard reads its log and learns how far that goes, its *standing*
//! ([`Standing`](crate::messages::Standing)). The shard keeps installs above the last cut that the
//! log tells of, because it cannot know yet whether they are above the cut of all. Then all shards
//! tell each other their standings, compute the same cut from them, and install up to it. They drop
//! the rest, and a new *era* begins: an entry of the log says so, because the log still has what
//! was dropped. A log that tells of a higher cut than all shards come to shows that another log has
//! lost what was on disk, and is refused.
//!
//! Example. A's log has T1@100 and `Closed{90}`, B's has T1@100, T2@105, which has read T1 on A,
//! and `Closed{110}`. The cut is 90: neither T1 nor T2 is there. B's log goes on with `Era{1, 90}`,
//! behind which nothing of the former era counts, and the cut is 90 until A has begun era 1 as well
//! and closed in it. If B crashes again before that, A's standing is of era 0 and says 95: then the
//! cut is where era 1 began, 90, since B has dropped what was above.
//!
//! Tables and loaded rows have no stamps, and no cut takes them back: nothing leaves the shard
//! before they are on disk. Nor does anything while the log is too far behind.
//!
//! The cut stays where it is while one shard cannot close: its disk hangs, a transaction that may
//! commit below is not decided, or, under 2PL, a client thinks while it holds a lock on what it has
//! written. Others go on meanwhile. Messages must not wait for the cut: the install that one shard
//! holds back would keep another from closing.

use std::mem::take;

use plimsoll_runtime::Handled;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Malformed;
use plimsoll_types::{ShardId, Ticket, Timestamp};

use crate::base::Base;
use crate::journal::{Cut, Journal, LoggedInstall, Record};
use crate::messages::{CommonReply, Standing};
use crate::timestamp::Scheme;

/// How far behind its clock the first shard has all close, and time between two rounds, in
/// nanoseconds.
pub(crate) const PERIOD_NS: u64 = 20_000_000;

impl<S: Scheme> Base<S> {
    fn cut_mut(&mut self) -> Option<&mut Cut> {
        self.journal.as_mut()?.cut.as_mut()
    }

    /// All shards are known to have closed here on disk; `None` unless this one logs to a cut.
    pub(crate) fn known_cut(&self) -> Option<Timestamp> {
        Some(self.journal.as_ref()?.cut.as_ref()?.known)
    }

    /// How often the database has gone back to a cut; 0 unless this shard logs to one.
    pub(crate) fn era(&self) -> u64 {
        let cut = self.journal.as_ref().and_then(|journal| journal.cut.as_ref());
        cut.map_or(0, |cut| cut.standing.era)
    }

    /// A shard asks how far this one's log goes.
    pub(super) fn tell_standing(&mut self, from: ShardId, ticket: Ticket) -> Handled<CommonReply<S>> {
        if !self.layout.placement.is_holder(from) {
            return Handled::Done;
        }
        let Some(cut) = self.cut_mut() else { return Handled::Done };
        match cut.read {
            Some(standing) => Handled::Reply(CommonReply::Standing(standing)),
            None => {
                cut.asking.push(ticket);
                Handled::Wait
            }
        }
    }

    /// The first shard asks to close.
    pub(super) fn close(
        &mut self,
        from: ShardId,
        to: Timestamp,
        known: Timestamp,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        if Some(from) != self.layout.placement.holders().next() {
            return Handled::Done;
        }
        if self.believe(from, to).is_err() {
            return Handled::Reply(CommonReply::ClockAhead);
        }
        let Some(journal) = &mut self.journal else { return Handled::Done };
        let largest = journal.largest;
        let Some(cut) = &mut journal.cut else { return Handled::Done };
        cut.known.raise(known);
        if cut.on_disk >= to {
            cut.has_told &= largest > cut.known || planted(Mutant::UnclosedToldOnce);
            return Handled::Reply(CommonReply::Closed(largest));
        }
        if cut.standing.closed < to {
            self.store.bound_all(to);
            cut.closing = cut.closing.max(Some(to));
        }
        cut.waiting.push(ticket);
        Handled::Wait
    }

    /// A shard has logged a stamp above the cut.
    pub(super) fn note_unclosed(&mut self, from: ShardId) {
        if !self.layout.placement.is_holder(from) {
            return;
        }
        let Some(journal) = &mut self.journal else { return };
        if let Some(cut) = &mut journal.cut {
            cut.asked = true;
            // The task that writes the log begins the rounds.
            journal.claimed |= !journal.recovering;
        }
    }

    /// The pass ends: if the shard is to close, and no owner of a lock may commit below, logs that
    /// the shard is closed.
    pub(super) fn close_now(&mut self, journal: &mut Journal) {
        let Some(cut) = &mut journal.cut else { return };
        let Some(to) = cut.closing else { return };
        let open = self.store.locks_mut().any(|lock| lock.owner.is_some() && lock.lb <= to);
        if open && !planted(Mutant::ClosesOverOwner) {
            return;
        }
        cut.closing = None;
        cut.standing.closed.raise(to);
        cut.written = Some((journal.sealed, to));
        if planted(Mutant::CutNotOnDisk) {
            cut.on_disk = to;
            self.released.append(&mut cut.waiting);
        }
        let record = Record::Closed { to, cut: cut.known };
        journal.push(&record);
    }

    /// The log is on disk below an index.
    pub(super) fn closed_on_disk(&mut self, below: u64) {
        let Some(cut) = self.journal.as_mut().and_then(|journal| journal.cut.as_mut()) else { return };
        if let Some((_, to)) = cut.written.take_if(|(index, _)| *index < below) {
            cut.on_disk = to;
            self.released.append(&mut cut.waiting);
        }
    }

    /// The shard that is to hear that there is a stamp above the cut, if it has not.
    pub(crate) fn tells_unclosed(&mut self) -> Option<ShardId> {
        let first = self.layout.placement.holders().next()?;
        let journal = self.journal.as_mut()?;
        let cut = journal.cut.as_mut()?;
        let tells = !cut.has_told && journal.largest > cut.known;
        cut.has_told |= tells;
        tells.then_some(first)
    }

    /// The message that says so may be lost.
    pub(super) fn tells_again(&mut self) {
        if let Some(journal) = &mut self.journal
            && let Some(cut) = &mut journal.cut
        {
            cut.has_told = false;
            journal.claimed |= !journal.recovering;
        }
    }

    /// Whether to begin rounds; then they are under way.
    pub(crate) fn begins_rounds(&mut self) -> bool {
        let Some(cut) = self.cut_mut().filter(|cut| !cut.rounds) else { return false };
        cut.rounds = take(&mut cut.asked);
        cut.rounds
    }

    /// Whether rounds are over, because no shard has told of a stamp above the cut meanwhile.
    pub(crate) fn ends_rounds(&mut self) -> bool {
        let Some(cut) = self.cut_mut() else { return true };
        cut.rounds = take(&mut cut.asked);
        !cut.rounds
    }

    /// The log was read to its end. Returns its standing if it goes to a cut.
    pub(crate) fn has_read(&mut self) -> Option<Standing> {
        let cut = self.journal.as_mut()?.cut.as_mut()?;
        cut.read = Some(cut.standing);
        self.released.append(&mut cut.asking);
        Some(cut.standing)
    }

    /// Installs what a cut has passed.
    fn install_passed(&mut self, passed: Timestamp) -> Result<(), Malformed> {
        let Some(cut) = self.cut_mut() else { return Ok(()) };
        let passed: Vec<LoggedInstall> = cut.later.extract_if(.., |later| later.stamp <= passed).collect();
        passed.into_iter().try_for_each(|install| self.install_from_log(install))
    }

    /// The log says that the shard had closed here, and what was known of the cut.
    pub(super) fn replay_closed(&mut self, to: Timestamp, known: Timestamp) -> Result<(), Malformed> {
        let Some(cut) = self.cut_mut() else { return Err(NO_CUT) };
        cut.standing.closed = to;
        cut.known.raise(known);
        self.install_passed(known)
    }

    /// The log says that an era began here.
    pub(super) fn replay_era(&mut self, era: u64, base: Timestamp) -> Result<(), Malformed> {
        let Some(cut) = self.cut_mut() else { return Err(NO_CUT) };
        cut.standing = Standing { era, base, closed: base };
        cut.known.raise(base);
        self.drop_above(base, false)
    }

    /// The image has this standing.
    pub(super) fn replay_standing(&mut self, standing: Standing, known: Timestamp) -> Result<(), Malformed> {
        let cut = self.cut_mut().ok_or(NO_CUT)?;
        (cut.standing, cut.known) = (standing, known);
        Ok(())
    }

    fn drop_above(&mut self, base: Timestamp, now: bool) -> Result<(), Malformed> {
        let most = if planted(Mutant::CutIgnored) { Timestamp::MAX } else { base };
        self.install_passed(most)?;
        if let Some(cut) = self.cut_mut() {
            cut.later.clear();
        }
        if let Some(on_cut) = &mut self.on_cut {
            on_cut(base, now);
        }
        Ok(())
    }

    /// An era begins: what is above its base was never there. Fails if this shard's log tells of a
    /// cut that is above: then another shard's log has lost what was on disk.
    pub(crate) fn begin_era(&mut self, era: Standing) -> Result<(), Malformed> {
        if self.known_cut().is_some_and(|known| era.base < known) {
            return Err(Malformed("it tells of a cut that the log of another shard does not reach"));
        }
        self.drop_above(era.base, true)?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if let Some(cut) = &mut journal.cut {
            (cut.standing, cut.on_disk) = (era, era.base);
            cut.known.raise(era.base);
        }
        if !planted(Mutant::EraNotLogged) {
            journal.push(&Record::Era { era: era.era, base: era.base });
        }
        journal.make_firm();
        Ok(())
    }

    /// What an image says of the cut.
    pub(super) fn image_standing(journal: &Journal) -> Option<Record> {
        let cut = journal.cut.as_ref()?;
        Some(Record::Standing { standing: cut.standing, known: cut.known })
    }

    /// Whether an image whose rows come from entries below `below` counts, with stamps up to
    /// `largest`: no recovery would take one of them back.
    pub(crate) fn image_counts(&self, below: u64, largest: Timestamp) -> bool {
        let Some(journal) = &self.journal else { return false };
        let passed = |cut: &Cut| cut.known >= largest || planted(Mutant::ImageAboveCut);
        journal.stable >= below && journal.cut.as_ref().is_none_or(passed)
    }
}

const NO_CUT: Malformed = Malformed("what only a log to a cut has");
