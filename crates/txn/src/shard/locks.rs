//! A transaction's locks on a shard: exclusive ones on its writes, shared ones on its reads, and
//! locks on its ranges.
//!
//! Used by the protocols that hold locks on reads until the outcome is known. A range lock is an
//! exact predicate: inserts into the range conflict with it, and no next key or supremum is locked
//! in place of the range ([`plimsoll_store::RangeLock`]). The step that drops the lock of a read
//! raises its mark first, so that the next writer finds the mark.

use std::ops::ControlFlow;

use plimsoll_store::{At, Holder, Mark, Visited};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{IndexKind, Key, TableId, Timestamp, TxnId};

use crate::base::Base;
use crate::fetched::Range;
use crate::timestamp::Scheme;
use crate::work::Packed;

/// The locks of a transaction on a shard.
#[derive(Debug, Default)]
pub struct Locks {
    pub exclusive: Vec<At>,
    /// Those that were locked exclusively since stay here, and are in `exclusive` as well.
    pub shared: Vec<At>,
    /// The tables of which it has locked ranges.
    pub ranges: Vec<TableId>,
}

impl Locks {
    /// Whether there are no locks.
    pub fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty() && self.ranges.is_empty()
    }
}

impl<S: Scheme> Base<S> {
    /// Takes the shared lock of a record, which is free of conflicts, unless the transaction has
    /// locked the record already. Returns whether the lock is new.
    pub(crate) fn share(&mut self, holder: Holder, at: At, locks: &mut Locks) -> bool {
        let lock = self.store.lock_mut(at);
        let new = !lock.sharers.contains(&holder) && lock.owner != Some(holder);
        if new {
            self.counters.locks += 1;
            lock.sharers.push(holder);
            locks.shared.push(at);
        }
        new
    }

    /// Takes the shared lock of a range. This never conflicts: locked rows in the range are checked
    /// one by one.
    pub(crate) fn share_range(&mut self, holder: Holder, (table, low, high): Range, locks: &mut Locks) {
        if self.store.lock_range(table, holder, low, high) {
            locks.ranges.push(table);
        }
    }

    /// Installs writes whose records are locked.
    pub(crate) fn install_locked(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.counters.installs += u64::from(writes.iter().next().is_some());
        let another = planted(Mutant::TwoStamps) && txn.coordinator != self.shard;
        let stamp = if another { stamp.next() } else { stamp };
        for (column, key, value) in writes.iter() {
            let row = self.store.find(column, key).row().expect("a locked record is linked");
            let at = At { row, column };
            assert!(!self.locked_by_other(at, Some(&txn)), "only the owner of a record installs");
            self.install(txn, at, stamp, value);
        }
    }

    /// Drops locks. If the transaction committed, its reads and writes are pinned first.
    pub(crate) fn drop_locks(&mut self, txn: TxnId, locks: &Locks, committed: Option<Timestamp>) {
        if let Some(stamp) = committed {
            self.scheme.pinned(stamp);
        }
        for &table in &locks.ranges {
            let (ranges, waiting) = self.store.unlock_ranges(table, txn).expect("its ranges are locked");
            if let Some(stamp) = committed {
                ranges.iter().for_each(|(low, high)| self.pin_range(txn, table, low, high, stamp));
            }
            self.released.extend(waiting);
        }
        for &at in &locks.shared {
            if self.store.lock(at).is_some_and(|lock| lock.owned_by(txn)) {
                continue;
            }
            if let Some(stamp) = committed
                && !planted(Mutant::ReleaseWithoutPin)
            {
                self.pin_locked(txn, at, stamp);
            }
            let lock = self.store.lock_mut(at);
            lock.sharers.retain(|sharer| sharer.txn != txn);
            self.released.extend(lock.waiting.iter().map(|waiter| waiter.ticket));
            self.store.tidy_lock(at);
        }
        for &at in &locks.exclusive {
            if let Some(stamp) = committed {
                self.pin_locked(txn, at, stamp);
            }
            self.unlock(at, txn);
        }
    }

    /// Raises the marks of the leaves that cover a scanned range. Of an absent key of a hash table
    /// it raises the mark of the cell; and those of the records, if an empty row was linked for a
    /// lock since the key was read, because a writer of these records does not look at the cell.
    fn pin_range(&mut self, txn: TxnId, table: TableId, low: &Key, high: Option<&Key>, stamp: Timestamp) {
        if size_of::<S::Mark>() == 0 {
            return;
        }
        if self.store.spec(table).index == IndexKind::Hash {
            let place = self.store.find(table.row(), low);
            self.store.cover_mark_mut(table, place.cover()).raise(stamp);
            if let Some(row) = place.row() {
                let columns = (0..self.groups(table)).map(|group| table.group(group));
                columns.for_each(|column| self.pin_locked(txn, At { row, column }, stamp));
            }
            return;
        }
        let before = self.watched_leaves(table, low, high);
        self.store.scan(table, low, high, |_, visited| {
            if let Visited::Leaf(_, mark, _) = visited {
                mark.raise(stamp);
            }
            ControlFlow::Continue(())
        });
        self.step_pinned(txn, before, false);
    }
}
