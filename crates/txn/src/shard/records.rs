//! What transactions do to records under every protocol: check, lock, link, validate, pin, install.
//!
//! Everything here happens in one step of a shard. A write is checked first (`Base::check_write`):
//! no other transaction's lock conflicts with it, what it expects is still so, and its bound is
//! observed. Then it is locked (`Base::grant`). If the whole transaction is one step, the write is
//! installed without a lock, because no other transaction could see the lock. A read is pinned
//! before it is checked (`Base::validate`): in the reverse order a writer could come in between.

use plimsoll_store::{At, Cover, Holder, Mark, Place, Record};
use plimsoll_types::history::Install;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ColumnGroup, IndexKind, Key, ShardId, TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::ReadRef;
use crate::timestamp::Scheme;
use crate::trace::{Item, What};
use crate::work::{Change, Footprint, Write};

impl<S: Scheme> Base<S> {
    /// Observes what a writer of this place must be ordered after.
    #[inline]
    pub(crate) fn observe_overwritten(&self, observed: &mut S::Observed, column: ColumnGroup, place: Place) {
        let record = place.row().map(|row| self.store.record(At { row, column }));
        S::observe(observed, self.store.bound(record, column.table, place.cover()));
        self.scheme.observe_pinned(observed);
        if let Some(record) = record
            && !record.is_empty()
        {
            S::observe(observed, record.stamp());
        }
    }

    /// The stamp of a record's newest version; `None` if it has none.
    #[inline]
    pub(crate) fn head(&self, at: At) -> Option<Timestamp> {
        head(self.store.record(at))
    }

    /// Whether another transaction holds the exclusive lock of a record.
    #[inline]
    pub(crate) fn locked_by_other(&self, at: At, txn: Option<&TxnId>) -> bool {
        self.store.lock(at).is_some_and(|lock| lock.owned_by_other(txn))
    }

    /// What a read that finds nothing observes: the floor, because a deletion whose row was
    /// unlinked has no larger stamp.
    #[inline]
    pub(crate) fn absence(&self) -> Timestamp {
        if planted(Mutant::FloorIgnored) { Timestamp::ZERO } else { self.store.floor() }
    }

    /// Checks, without locking, whether `txn` could lock a write now: no other transaction holds a
    /// conflicting lock, and what the write expects is still so. On success returns the write's
    /// place and observes its bound.
    #[inline]
    pub(crate) fn check_write(
        &mut self,
        txn: Option<&TxnId>,
        (column, key, change): (ColumnGroup, &Key, Change),
        expected: Option<ReadRef>,
        observed: &mut S::Observed,
    ) -> Result<Place, Abort> {
        let place = self.store.find(column, key);
        let at = place.row().map(|row| At { row, column });
        let record = at.map(|at| self.store.record(at));
        if let Some(lock) = record.and_then(|record| self.store.lock_of(record))
            && (lock.owned_by_other(txn) || lock.sharers.iter().any(|sharer| Some(&sharer.txn) != txn))
        {
            return Err(self.conflict(lock.owner.iter().chain(&lock.sharers).map(|holder| &holder.txn)));
        }
        let live = record.is_some_and(|record| record.is_present());
        if !live && let Some(other) = self.range_locked_by_other(txn, column.table, key) {
            return Err(self.conflict([other]));
        }
        match expected {
            Some(ReadRef::Row { at: read, head }) => {
                if Some(read) != at || self.head(read) != head {
                    return Err(Abort::WriteConflict);
                }
            }
            Some(ReadRef::Cover { version, .. }) => {
                if record.is_some_and(|record| head(record).is_some())
                    || self.store.cover_version(column.table, place.cover()) != version
                {
                    return Err(Abort::WriteConflict);
                }
            }
            Some(ReadRef::Stale) => return Err(Abort::Validation),
            Some(ReadRef::Immutable) | None => {}
        }
        if change == Change::Insert && live {
            return Err(Abort::User);
        }
        self.observe_overwritten(observed, column, place);
        Ok(place)
    }

    /// The same for a write that will be locked next. Notes the place in the write.
    pub(crate) fn check(
        &mut self,
        txn: &TxnId,
        write: &mut Write,
        observed: &mut S::Observed,
    ) -> Result<(), Abort> {
        self.may_write(*txn, write.column, &write.key)?;
        let what = (write.column, &write.key, write.change);
        match self.check_write(Some(txn), what, write.expected, observed) {
            Ok(place) => write.place = Some(place),
            Err(abort) => {
                self.step_refused(Some(txn), write.column, &write.key);
                return Err(abort);
            }
        }
        Ok(())
    }

    fn range_locked_by_other(&self, txn: Option<&TxnId>, table: TableId, key: &Key) -> Option<&TxnId> {
        let mut ranges = self.store.ranges(table).iter();
        ranges.find(|range| Some(&range.txn) != txn && range.contains(key)).map(|range| &range.txn)
    }

    /// Why a transaction that meets the locks of these others is refused. A conflict is soon over,
    /// but for one with a transaction whose outcome no shard in reach knows.
    #[cold]
    fn conflict<'a>(&self, holders: impl IntoIterator<Item = &'a TxnId>) -> Abort {
        match holders.into_iter().any(|holder| self.votes.is_stuck(*holder)) {
            true => Abort::Unknown,
            false => Abort::WriteConflict,
        }
    }

    /// Whether the owner of a record is such a transaction.
    pub(crate) fn is_stuck(&self, at: At) -> bool {
        let owner = self.store.lock(at).and_then(|lock| lock.owner);
        owner.is_some_and(|owner| self.votes.is_stuck(owner.txn))
    }

    /// A channel was reset. Requests that wait for a lock of a transaction whose outcome depends on
    /// a shard out of reach are handled again, and refused.
    pub(crate) fn release_stuck(&mut self) {
        let Base { store, votes, released, .. } = self;
        for lock in store.locks_mut() {
            if lock.owner.iter().chain(&lock.sharers).any(|holder| votes.is_stuck(holder.txn)) {
                released.append(&mut lock.readers);
                released.extend(lock.waiting.iter().map(|waiter| waiter.ticket));
            }
        }
    }

    /// Takes the exclusive lock that [`Base::check_write`] found free. If the key must be linked
    /// first, returns what covers it, with the version before and after, and locks all column
    /// groups of the new row: a reader that found another group absent validates the version of the
    /// *cover*, and a later write to that group would not change it.
    pub(crate) fn grant(
        &mut self,
        holder: Holder,
        write: &Write,
        observed: &S::Observed,
        locked: &mut Vec<At>,
    ) -> (At, Option<Linked>) {
        let place = write.place.expect("a write is checked before it is granted");
        let (at, linked) = match place.row() {
            Some(row) => (At { row, column: write.column }, None),
            None => self.link(write),
        };
        if linked.is_some() {
            let groups = 0..self.groups(at.column.table);
            for column in groups.map(|group| ColumnGroup { group, ..at.column }).filter(|c| *c != at.column) {
                let lock = self.store.lock_mut(At { column, ..at });
                lock.owner = Some(holder);
                lock.lb = Timestamp::MAX;
                locked.push(At { column, ..at });
            }
        }
        let lock = self.store.lock_mut(at);
        assert!(!lock.owned_by_other(Some(&holder.txn)), "one transaction at a time owns a record");
        if lock.owner.replace(holder).is_none() {
            locked.push(at);
        }
        self.counters.locks += 1;
        lock.lb = S::lower_bound(observed);
        if planted(Mutant::HighLowerBound) {
            lock.lb = Timestamp(lock.lb.0.saturating_add(1_000_000));
        }
        if planted(Mutant::NoLowerBound) {
            lock.lb = Timestamp::ZERO;
        }
        self.step_locks(holder.txn, at, true);
        (at, linked)
    }

    /// Locks a record that was only read, on a shard where the transaction writes as well; this
    /// replaces its validation there. No transaction can overwrite the record until the lock is
    /// dropped. Snapshots do not wait for the lock, because it brings no new version. Returns
    /// whether the lock is new; `None` if the record cannot be locked.
    pub(crate) fn lock_read(&mut self, holder: Holder, at: At, head: Option<Timestamp>) -> Option<bool> {
        if self.head(at) != head || self.locked_by_other(at, Some(&holder.txn)) || !self.may_lock_reads() {
            return None;
        }
        let lock = self.store.lock_mut(at);
        let new = lock.owner.is_none();
        if new {
            self.counters.locks += 1;
            lock.owner = Some(holder);
            lock.lb = Timestamp::MAX;
            self.step_locks(holder.txn, at, true);
        }
        Some(new)
    }

    /// Links the row of a write, unless an earlier write of the transaction has linked it.
    fn link(&mut self, write: &Write) -> (At, Option<Linked>) {
        let table = write.column.table;
        // Earlier links of the same transaction may have linked this row or split its leaf.
        let before = self.store.find(write.column, &write.key);
        if let Some(row) = before.row() {
            return (At { row, column: write.column }, None);
        }
        let version = self.store.cover_version(table, before.cover());
        let after = self.store.link(table, &write.key);
        let row = after.row().expect("a linked row exists");
        let linked = Linked {
            table,
            cover: before.cover(),
            before: version,
            after: self.store.cover_version(table, before.cover()),
            split: (self.store.last_link_split(table))
                .map(|upper| (upper, self.store.cover_version(table, upper))),
        };
        (At { row, column: write.column }, Some(linked))
    }

    /// Drops the exclusive lock of a record, and releases the requests that waited for its owner.
    pub(crate) fn unlock(&mut self, at: At, txn: TxnId) {
        let lock = self.store.lock_mut(at);
        if lock.owner.is_some_and(|owner| owner.txn == txn) {
            lock.owner = None;
            if planted(Mutant::LostWakeUp) {
                lock.readers.clear();
            }
            self.released.append(&mut lock.readers);
            let waiting = lock.waiting.iter().map(|waiter| waiter.ticket);
            self.released.extend(waiting);
            self.step(txn, |base| What::Unlocks(base.item(at)));
        }
        self.store.tidy_lock(at);
    }

    /// Installs a version.
    #[inline]
    pub(crate) fn install(&mut self, txn: TxnId, at: At, stamp: Timestamp, value: Option<&[u8]>) {
        if self.installs.is_some() {
            self.record_install(txn, at, stamp, value.is_none());
        }
        if self.journal.is_some() {
            self.log_install(txn, at, stamp, value);
        }
        let hidden = self.store.install(at, stamp, value);
        assert!(
            !S::SCALAR || hidden.is_none_or(|hidden| hidden < stamp),
            "I1: the versions of a record have increasing stamps"
        );
    }

    /// Installs a version in place of what the record has.
    pub(crate) fn install_over(&mut self, txn: TxnId, at: At, stamp: Timestamp, value: Option<&[u8]>) {
        if self.installs.is_some() {
            self.record_install(txn, at, stamp, value.is_none());
        }
        self.store.replace(at, stamp, value);
    }

    #[inline(never)]
    fn record_install(&mut self, txn: TxnId, at: At, stamp: Timestamp, delete: bool) {
        let key = self.store.key(at.column.table, at.row);
        let column = at.column;
        self.step(txn, |base| {
            let item = Item::Record(column, key.clone());
            let before = base.bound_of(&item);
            let after = if size_of::<S::Mark>() > 0 { before.join(stamp) } else { before };
            What::Installs { item, stamp, delete, bounds: (before, after) }
        });
        let install = Install { txn, column, key, stamp, delete };
        if let Some(on_install) = &mut self.on_install {
            on_install(self.journal.as_ref().map_or(0, |journal| journal.sealed), &install);
        }
        self.installs.iter_mut().for_each(|installs| installs.push(install.clone()));
    }

    /// Pins reads to `stamp`, and then checks whether they are still current. One step.
    pub(crate) fn validate(&mut self, txn: TxnId, stamp: Timestamp, reads: &[ReadRef]) -> bool {
        self.counters.pins += reads.len() as u64;
        self.counters.validated += reads.len() as u64;
        let before = self.watched_all(reads.iter().copied());
        match planted(Mutant::ValidateThenPin) {
            true => self.unpinned.extend(reads.iter().map(|&read| (read, stamp))),
            false => reads.iter().for_each(|read| self.pin(read, stamp)),
        }
        self.scheme.pinned(stamp);
        self.step_pinned(txn, before, true);
        reads.iter().all(|read| self.still_valid(txn, read))
    }

    /// Pins all reads that were done directly on this store.
    #[inline]
    pub(crate) fn pin_local(&mut self, txn: TxnId, work: &Footprint<S>, stamp: Timestamp) {
        if self.steps.is_some() {
            self.pin_watched(txn, work, stamp);
        }
        self.pin_here(work, stamp);
    }

    #[inline]
    fn pin_here(&mut self, work: &Footprint<S>, stamp: Timestamp) {
        if planted(Mutant::NoPin) {
            return;
        }
        self.counters.pins += (work.pins.len() + work.local_reads.len()) as u64;
        for &at in &work.pins {
            self.raise_mark(at, stamp);
        }
        for read in &work.local_reads {
            self.pin(read, stamp);
        }
        self.scheme.pinned(stamp);
    }

    /// Pins a record that was locked.
    pub(crate) fn pin_locked(&mut self, txn: TxnId, at: At, stamp: Timestamp) {
        let before = self.watched_all([ReadRef::Row { at, head: None }].into_iter());
        self.raise_mark(at, stamp);
        self.step_pinned(txn, before, false);
    }

    #[inline]
    pub(crate) fn pin(&mut self, read: &ReadRef, stamp: Timestamp) {
        match *read {
            _ if planted(Mutant::NoPin) => {}
            ReadRef::Cover { table, .. }
                if planted(Mutant::LeafNotMarked) && self.store.spec(table).index == IndexKind::Ordered => {}
            ReadRef::Row { at, .. } => self.raise_mark(at, stamp),
            ReadRef::Cover { table, cover, .. } => self.store.cover_mark_mut(table, cover).raise(stamp),
            ReadRef::Stale | ReadRef::Immutable => {}
        }
    }

    /// Raises the mark of a record that a transaction with this stamp has read or written.
    #[inline]
    pub(crate) fn raise_mark(&mut self, at: At, stamp: Timestamp) {
        // A row that is gone was read: what covers its key has its mark, and the read is not valid.
        if self.store.record(at).is_unlinked() {
            return;
        }
        let mark = &mut self.store.record_mut(at).mark;
        if planted(Mutant::StoredMark) {
            *mark = S::Mark::default();
        }
        mark.raise(stamp);
    }

    pub(crate) fn still_valid(&self, txn: TxnId, read: &ReadRef) -> bool {
        match *read {
            ReadRef::Row { at, head } => {
                (self.head(at) == head || planted(Mutant::NewVersionIgnored))
                    && (!self.locked_by_other(at, Some(&txn)) || planted(Mutant::ForeignLockIgnored))
            }
            ReadRef::Cover { table, cover, version } => self.store.cover_version(table, cover) == version,
            ReadRef::Stale => false,
            ReadRef::Immutable => true,
        }
    }

    /// Commits a transaction whose data is all on this shard, and whose writes and reads were
    /// checked one by one within this same step: no other transaction can have come in between, so
    /// it needs no locks.
    pub(crate) fn commit_in_one_step(&mut self, txn: TxnId, work: &Footprint<S>) -> Timestamp {
        let stamp = self.scheme.stamp(&work.observed);
        if self.steps.is_some() {
            self.step_one_step(txn, work, stamp);
        }
        self.pin_here(work, stamp);
        self.install_checked(txn, stamp, work, self.shard);
        if S::REPORTS {
            self.finished(stamp, Some(&work.observed));
        }
        stamp
    }

    /// Whether a stamp can be drawn within this step.
    #[inline]
    pub(crate) fn stamps_at_once(&self) -> bool {
        S::AT_ONCE && self.scheme.ready()
    }

    /// Takes the outcome of a transaction that has a stamp, for a scheme that reports to an oracle:
    /// see [`Service::finished`](crate::service::Service::finished).
    pub(crate) fn finished(&mut self, stamp: Timestamp, committed: Option<&S::Observed>) {
        self.counters.reports += 1;
        self.scheme.finished(stamp, committed);
    }

    /// Installs the writes on one shard that were checked but not locked.
    pub(crate) fn install_checked(
        &mut self,
        txn: TxnId,
        stamp: Timestamp,
        work: &Footprint<S>,
        shard: ShardId,
    ) {
        for write in work.writes.of(shard).filter(|write| !write.locked) {
            let place = write.place.expect("a write is checked before it is installed");
            let at = match place.row() {
                Some(row) => At { row, column: write.column },
                None if self.groups(write.column.table) == 1 => {
                    let linked = self.store.link(write.column.table, &write.key);
                    At { row: linked.row().expect("a linked row exists"), column: write.column }
                }
                None => self.link(write).0,
            };
            self.install(txn, at, stamp, work.writes.value(write));
        }
    }
}

/// The stamp of a record's newest version; `None` if it has none.
#[inline]
fn head<M: Mark>(record: &Record<M>) -> Option<Timestamp> {
    // The stamp of an unlinked row was never read by any transaction.
    (!record.is_empty() || record.stamp() == Timestamp::MAX).then(|| record.stamp())
}

/// A key that was linked for a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The table.
    pub table: TableId,
    /// What covered the key before.
    pub cover: Cover,
    /// The cover's version before the key was linked.
    pub before: u64,
    /// The cover's version after it.
    pub after: u64,
    /// If the cover was split: the new cover of the upper part of its range, and that one's
    /// version.
    pub split: Option<(Cover, u64)>,
}

plimsoll_types::wire!(struct Linked { table, cover, before, after, split });
