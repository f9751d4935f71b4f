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
//! Under GTS nothing has to be waited for: what the oracle has published is installed on all
//! shards, and no number below will be given out. So C is a number that it has published.
//!
//! *Rounds.* The first shard asks all shards to close at what its clock showed [`PERIOD_NS`] before,
//! and repeats that until no shard has a stamp above the cut. When a shard logs one later, it tells
//! the first shard, which begins again; so an idle database writes nothing. Each request also
//! carries the last cut. Images wait for it: an image has versions up to its end, and must not have
//! any that a recovery would take back.
//!
//! *Coming back.* A shard reads its log and learns how far that goes, its *standing*
//! ([`Standing`](crate::messages::Standing)). The shard keeps installs above the last cut that the
//! log tells of, because it cannot know yet whether they are above the cut of all. Then it asks all
//! other shards for their standings, again and again until it may serve, and tells them its own. A
//! new *era* begins: the shard installs up to the cut, drops the rest, and logs that the era has
//! begun, because the log still has what was dropped. What a shard does next follows from the
//! answers of all others ([`after`]):
//!
//! 1. Another shard is in a later era: this one begins the same.
//! 2. Another is in an earlier era: this one waits.
//! 3. All are in the same era, which a former life of this shard has begun: the shard begins the
//!    next. Its cut is the smallest timestamp at which one of them has closed on disk.
//! 4. All are in the same era, and all their present lives have begun it: the shard serves. Until
//!    then requests wait.
//!
//! *Survivors.* A shard that serves an era and is asked by one that has not begun it does not
//! answer. Its life is over ([`Base::is_over`]): its process starts anew, as after a crash, and
//! goes back as well. So a crash of one takes all back to the cut, as soon as that one is back.
//!
//! *Why all come to the same cut.* No shard serves an era that a present life has found on its
//! disk, because rule 4 asks for lives that have begun it themselves. A shard that has answered
//! such a life does not serve by answers from before: it asks all again, and finds that life, or
//! what came after it (`doubted`). Thus where the shards of an era have closed is fixed once it has
//! been told, every shard that begins the next era comes to the same cut, and rule 1 finds one to
//! adopt. A crash at any moment changes nothing of that: what was told was on disk. A model
//! searches all interleavings of these rules (`docs/models/eras.py`). A log that tells of a higher
//! cut than all shards come to shows that another log has lost what was on disk, and is refused.
//!
//! *Votes* are not logged, and yet nobody who lives on decides a transaction because a voter has
//! come back without its vote: what the voter's log has of the transaction may be below the cut.
//! Whatever depends on that vote stays in doubt until all go back, and the lock that is held for it
//! keeps its shard from closing. Thus what a cut contains of a transaction is all of it or nothing.
//!
//! *Shards without data*, those of clients, outlive eras. What they have read in one must not meet
//! what they read in the next. So they ask all shards with data which era they serve, begin when
//! all have named the same, and are over when one of these shards comes back ([`Follows`]). What
//! lives of before have sent is not handled ([`Journal::is_obsolete`]).
//!
//! Example. A's log has T1@100 and `Closed{90}`, B's has T1@100, T2@105, which has read T1 on A,
//! and `Closed{110}`. A crashes. It comes back in era 0, and asks B, which serves era 0: B's
//! process starts anew. Both tell how far their logs go, and the cut is 90: neither T1 nor T2 is
//! there. Both logs go on with `Era{1, 90}`, behind which nothing of the former era counts. If B
//! crashes before that is on its disk, it comes back in era 0, finds A in era 1, and begins it with
//! A's cut. A has waited meanwhile.
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
use crate::journal::{Cut, Follows, Journal, LoggedInstall, Record};
use crate::messages::{Comeback, CommonReply, Standing};
use crate::timestamp::Scheme;

/// How far behind its clock the first shard has all close, and time between two rounds, in
/// nanoseconds.
pub(crate) const PERIOD_NS: u64 = 20_000_000;

/// What a shard does that comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// It begins an era.
    Begins(Standing),
    /// It asks again.
    Waits,
    /// It serves.
    Serves,
}

/// What a shard does next whose log goes that far, when all others have told it the same.
pub(crate) fn after(own: Comeback, others: &[Comeback]) -> Next {
    let Standing { era, closed, .. } = own.standing;
    let of_others = || others.iter().map(|other| other.standing);
    if let Some(later) = of_others().find(|other| other.era > era) {
        return Next::Begins(Standing { closed: later.base, ..later });
    }
    if of_others().any(|other| other.era < era) {
        return Next::Waits;
    }
    if !own.begun {
        let all = of_others().filter(|_| !planted(Mutant::OwnCut));
        let cut = all.fold(closed, |cut, other| cut.min(other.closed));
        return Next::Begins(Standing { era: era + 1, base: cut, closed: cut });
    }
    if others.iter().all(|other| other.begun) { Next::Serves } else { Next::Waits }
}

impl<S: Scheme> Base<S> {
    fn cut_mut(&mut self) -> Option<&mut Cut> {
        self.journal.as_mut()?.cut.as_mut()
    }

    /// All shards are known to have closed here on disk; `None` unless this one logs to a cut.
    pub(crate) fn known_cut(&self) -> Option<Timestamp> {
        Some(self.journal.as_ref()?.cut.as_ref()?.known)
    }

    /// When what the cut has passed was committed, by the shard's clock, in nanoseconds; `None` if
    /// it is not known.
    pub(crate) fn known_cut_ns(&self) -> Option<u64> {
        let cut = self.journal.as_ref()?.cut.as_ref()?;
        let ns = if S::CLOCKED { cut.known.0 } else { cut.known_ns };
        Some(ns).filter(|&ns| ns > 0)
    }

    /// How often the database has gone back to a cut; 0 unless this shard logs to one.
    pub(crate) fn era(&self) -> u64 {
        let cut = self.journal.as_ref().and_then(|journal| journal.cut.as_ref());
        cut.map_or(0, |cut| cut.standing.era)
    }

    /// A shard that comes back asks how far this one's log goes.
    pub(super) fn tell_standing(
        &mut self,
        from: ShardId,
        asker: Comeback,
        ticket: Ticket,
    ) -> Handled<CommonReply<S>> {
        if !self.layout.placement.is_holder(from) {
            return Handled::Done;
        }
        let Some(journal) = &mut self.journal else { return Handled::Done };
        let serves = !journal.recovering;
        let Some(cut) = &mut journal.cut else { return Handled::Done };
        if !cut.has_read {
            cut.asking.push(ticket);
            return Handled::Wait;
        }
        let mut comeback = cut.comeback();
        if !asker.begun || asker.standing.era != cut.standing.era {
            if serves && !planted(Mutant::OldEraAnswers) {
                // The end of this life is the answer.
                cut.over = true;
                return Handled::Wait;
            }
            if serves {
                comeback.standing.era = asker.standing.era;
            }
            cut.doubted = true;
        }
        Handled::Reply(CommonReply::Standing(comeback))
    }

    /// A shard without data asks which era this one serves.
    pub(super) fn tell_era(&mut self) -> Handled<CommonReply<S>> {
        let comeback = self.cut_mut().map(|cut| cut.comeback());
        comeback.map_or(Handled::Done, |comeback| Handled::Reply(CommonReply::Standing(comeback)))
    }

    /// Whether this life is over, because another shard has come back. The process starts anew.
    pub fn is_over(&self) -> bool {
        let cut = self.journal.as_ref().and_then(|journal| journal.cut.as_ref());
        self.follows == Follows::Gone || cut.is_some_and(|cut| cut.over)
    }

    /// This shard has no data, and the shards that have some go back to a cut when one of them has
    /// crashed.
    pub fn others_go_back(&mut self) {
        self.follows = Follows::Nothing;
        self.votes.go_back();
    }

    /// Whether the shard has to learn which era the others serve.
    pub(crate) fn follows(&self) -> bool {
        self.follows == Follows::Nothing
    }

    /// All shards with data serve the same era.
    pub(crate) fn follows_era(&mut self) {
        if self.follows() {
            self.follows = Follows::Era;
            self.receive_early();
        }
    }

    /// The channel to a shard was connected, in this life, or was reset.
    pub(crate) fn follow(&mut self, peer: ShardId, life: Option<u64>) {
        let Some(life) = life else { return self.forget_requests(peer) };
        let known = self.votes.life(peer);
        let is_news = known != 0 && known != life && self.layout.placement.is_holder(peer);
        if is_news && self.follows != Follows::Nobody {
            self.follows = Follows::Gone;
        }
    }

    /// What a shard has sent before its channel was reset is not handled if it waits until this
    /// shard serves: it may be of another era.
    fn forget_requests(&mut self, of: ShardId) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.cut.is_some()) else { return };
        let obsolete = journal.waiting.extract_if(.., |(from, _)| *from == of).map(|(_, ticket)| ticket);
        let obsolete: Vec<Ticket> = obsolete.collect();
        self.released.extend(&obsolete);
        journal.obsolete.extend(obsolete);
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
        let now_ns = self.votes.clock().0;
        let Some(journal) = &mut self.journal else { return Handled::Done };
        let largest = journal.largest;
        let Some(cut) = &mut journal.cut else { return Handled::Done };
        cut.known.raise(known);
        let (asked, asked_ns) = cut.asked_to;
        if asked <= known {
            cut.known_ns = asked_ns;
        }
        if asked < to {
            cut.asked_to = (to, now_ns);
        }
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
        // What an oracle has published is installed everywhere.
        let open = S::WAITS && self.store.locks_mut().any(|lock| lock.owner.is_some() && lock.lb <= to);
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

    /// The log was read to its end. If it goes to a cut, others are told how far it goes.
    pub(crate) fn has_read(&mut self) {
        if let Some(cut) = self.journal.as_mut().and_then(|journal| journal.cut.as_mut()) {
            cut.has_read = true;
            self.released.append(&mut cut.asking);
        }
    }

    /// The shard asks all others how far their logs go. Returns what it tells them of its own;
    /// `None` if the log does not go to a cut.
    pub(crate) fn asks_all(&mut self) -> Option<Comeback> {
        let cut = self.cut_mut()?;
        cut.doubted = false;
        Some(cut.comeback())
    }

    /// All others have told how far their logs go: begins an era, or serves. Fails if this log
    /// tells of what another one has lost.
    pub(crate) fn heard_all(&mut self, others: &[Comeback]) -> Result<Next, Malformed> {
        let Some(cut) = self.cut_mut() else { return Ok(Next::Waits) };
        let next = match after(cut.comeback(), others) {
            Next::Serves if cut.doubted => Next::Waits,
            next => next,
        };
        match next {
            Next::Begins(era) => self.begin_era(era)?,
            Next::Serves => {
                self.open();
                // The entry lets the shard tell that it has stamps above the cut.
                self.journal.iter_mut().for_each(|journal| journal.claimed = true);
            }
            Next::Waits => {}
        }
        Ok(next)
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
    fn begin_era(&mut self, era: Standing) -> Result<(), Malformed> {
        if self.known_cut().is_some_and(|known| era.base < known) {
            return Err(Malformed("it tells of a cut that the log of another shard does not reach"));
        }
        if let Some(cut) = self.cut_mut() {
            cut.dropped += cut.later.iter().filter(|later| later.stamp > era.base).count() as u64;
        }
        self.drop_above(era.base, true)?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if let Some(cut) = &mut journal.cut {
            (cut.standing, cut.on_disk, cut.begun) = (era, era.base, true);
            cut.known.raise(era.base);
        }
        if !planted(Mutant::EraNotLogged) {
            journal.push(&Record::Era { era: era.era, base: era.base });
        }
        journal.claimed = true;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_runtime::LowWater;
    use plimsoll_types::Placement;

    use super::*;
    use crate::base::Layout;
    use crate::testing::scheme_config;
    use crate::timestamp::SchemeConfig;
    use crate::timestamps::Dst;

    fn comeback(era: u64, base: u64, closed: u64, begun: bool) -> Comeback {
        Comeback { standing: Standing { era, base: Timestamp(base), closed: Timestamp(closed) }, begun }
    }

    #[test]
    fn shards_that_come_back_come_to_the_same_cut_and_serve_when_all_have_begun_its_era() {
        let (a, b) = (comeback(0, 0, 95, false), comeback(0, 0, 110, false));
        let era = Standing { era: 1, base: Timestamp(95), closed: Timestamp(95) };
        assert_eq!((after(a, &[b]), after(b, &[a])), (Next::Begins(era), Next::Begins(era)));
        let has_begun = comeback(1, 95, 95, true);
        assert_eq!((after(has_begun, &[b]), after(b, &[has_begun])), (Next::Waits, Next::Begins(era)));
        assert_eq!(after(has_begun, &[has_begun]), Next::Serves);
        // Another life of a shard that has begun it is not enough, and begins the next.
        let again = comeback(1, 95, 95, false);
        assert_eq!(after(has_begun, &[again]), Next::Waits);
        let next = Standing { era: 2, base: Timestamp(95), closed: Timestamp(95) };
        assert_eq!(after(again, &[has_begun]), Next::Begins(next));
        assert_eq!(after(again, &[b]), Next::Waits, "the other has to begin it first");
        assert_eq!(after(a, &[]), Next::Begins(era), "alone");
    }

    #[test]
    fn a_shard_without_data_serves_one_era_and_is_over_when_a_shard_with_data_comes_back() {
        let layout = Layout {
            tables: [].into(),
            placement: Arc::new(Placement::even(2)),
            processes: [0, 1, 2].into(),
        };
        let low_water = LowWater::among(2..3, 1, &[0, 1]);
        let config = SchemeConfig { process: 2, ..scheme_config(2, 2) };
        let mut base: Base<Dst> = Base::new(&layout, &config, low_water);
        base.others_go_back();
        [0, 1].into_iter().for_each(|peer| base.connected(ShardId(peer), Some(7)));
        assert!(!base.serves_transactions() && !base.is_over());
        base.follows_era();
        assert!(base.serves_transactions());
        // The same life, after a reset.
        base.connected(ShardId(1), None);
        base.connected(ShardId(1), Some(7));
        assert!(base.serves_transactions() && !base.is_over());
        base.connected(ShardId(1), Some(8));
        assert!(!base.serves_transactions() && base.is_over());
    }
}
