//! The participant: grants locks, parks requests, wounds transactions.

use std::ops::ControlFlow;

use plimsoll_store::{At, Holder, RangeLock, Visited, Waiter};
use plimsoll_types::Ticket;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ColumnGroup, Key, Timestamp, TxnId};

use super::{HeldLocks, Request, TwoPl, WaitsFor};
use crate::attempt::LockPolicy;
use crate::fetched::{Fetched, ReadRef};
use crate::procedure::{Intent, Reads, Scan};
use crate::timestamp::Scheme;
use crate::trace::What;
use crate::votes::Voter;
use crate::work::{Change, Packed, Write};

/// The result of a lock request.
enum Grant {
    Granted,
    Wait,
    Refused(Abort),
}

impl<S: Scheme> TwoPl<S> {
    /// Locks everything, or parks the request and keeps the locks granted so far. When it is
    /// handled again, it finds its own locks.
    pub(super) fn acquire(
        &mut self,
        holder: Holder,
        reads: &Reads,
        writes: &mut [Write],
        so_far: &S::Observed,
        ticket: Ticket,
    ) -> Result<Option<Fetched<S>>, Abort> {
        if let Some(abort) = self.held.entry(holder.txn).or_default().cancelled {
            return Err(abort);
        }
        if !self.base.votes.admit(holder.txn) {
            return Err(Abort::Refused);
        }
        if !self.base.serves_scans(holder.txn, reads)
            || !reads.scans.is_empty() && !self.base.may_lock_reads()
        {
            return Err(Abort::StaleTerm);
        }
        for (column, key, _) in &reads.gets {
            self.base.may_lock(holder.txn, *column, key)?;
        }
        self.base.admit_writes(writes.iter(), None)?;
        for write in writes.iter() {
            self.base.may_write(holder.txn, write.column, &write.key)?;
        }
        for (column, key, intent) in &reads.gets {
            if self.base.immutable(column.table) {
                continue;
            }
            let at = self.row_to_lock(*column, key);
            match self.lock(at, holder, *intent == Intent::Update, ticket) {
                Grant::Granted => {}
                Grant::Wait => return Ok(None),
                Grant::Refused(abort) => return Err(abort),
            }
        }
        for (scan, intent) in &reads.scans {
            if self.base.immutable(scan.column.table) {
                continue;
            }
            match self.lock_range(scan, holder, *intent == Intent::Update, ticket) {
                Grant::Granted => {}
                Grant::Wait => return Ok(None),
                Grant::Refused(abort) => return Err(abort),
            }
        }
        for write in writes.iter() {
            match self.lock_write(write, holder, ticket) {
                Grant::Granted => {}
                Grant::Wait => return Ok(None),
                Grant::Refused(abort) => return Err(abort),
            }
        }
        // All is locked. The bounds are read now, so that they include a reader that came between a
        // shared and an exclusive grant. Those of earlier requests have been answered: since then
        // only readers have raised them that wait for this transaction, or read below its lower
        // bound. Not so those of records that were absent when they were locked: a transaction that
        // had locked a range around one has pinned the range before the record is locked again to
        // be written.
        let mut fetched = self.base.fetch(holder.txn, None, reads).expect("the newest version is never gone");
        S::join(&mut fetched.observed, so_far);
        let held = self.held.entry(holder.txn).or_default();
        let mut exclusive = held.locks.exclusive[held.told..].to_vec();
        held.told = held.locks.exclusive.len();
        let written: Vec<At> =
            writes.iter().map(|write| self.row_to_lock(write.column, &write.key)).collect();
        exclusive.extend(&written);
        exclusive.sort_unstable_by_key(|at| (at.column, at.row));
        exclusive.dedup();
        for &at in exclusive.iter().filter(|_| !planted(Mutant::UpgradeKeepsBound)) {
            let key = self.base.store.key(at.column.table, at.row);
            let place = self.base.store.find(at.column, &key);
            self.base.observe_overwritten(&mut fetched.observed, at.column, place);
            self.base.step(holder.txn, |base| {
                let item = base.item(at);
                let bound = base.bound_of(&item);
                What::Bounds(item, bound)
            });
        }
        let mut written = writes.iter().zip(&written);
        if written
            .any(|(write, &at)| write.change == Change::Insert && self.base.store.record(at).is_present())
        {
            return Err(Abort::User);
        }
        let lb = match planted(Mutant::NoLowerBound) {
            true => Timestamp::ZERO,
            false => S::lower_bound(&fetched.observed),
        };
        for at in exclusive {
            self.base.store.lock_mut(at).lb = lb;
        }
        Ok(Some(fetched))
    }

    /// The record of a key; an absent key is linked as an empty row, so that its lock has a place.
    fn row_to_lock(&mut self, column: ColumnGroup, key: &Key) -> At {
        let row = match self.base.store.find(column, key).row() {
            Some(row) => row,
            None => self.base.store.link(column.table, key).row().expect("a linked row exists"),
        };
        At { row, column }
    }

    fn lock(&mut self, at: At, holder: Holder, exclusive: bool, ticket: Ticket) -> Grant {
        let lock = self.base.store.lock_mut(at);
        let mine = |other: &Holder| other.txn == holder.txn;
        if lock.owner.as_ref().is_some_and(mine) {
            return Grant::Granted;
        }
        let upgrade = lock.sharers.iter().any(mine);
        if upgrade && !exclusive {
            return Grant::Granted;
        }
        let mut holders: Vec<Holder> = lock.owner.into_iter().collect();
        if exclusive {
            holders.extend(lock.sharers.iter().filter(|sharer| !mine(sharer)));
        }
        // An upgrade goes ahead of all waiting requests: they wait for its shared lock.
        let ahead: Vec<Holder> = match (upgrade, self.policy) {
            (true, _) => Vec::new(),
            (false, LockPolicy::WoundWait) => (lock.waiting.iter())
                .filter(|waiter| waiter.holder < holder && (exclusive || waiter.exclusive))
                .map(|waiter| waiter.holder)
                .collect(),
            (false, _) => (lock.waiting.iter())
                .take_while(|waiter| !mine(&waiter.holder))
                .filter(|waiter| exclusive || waiter.exclusive)
                .map(|waiter| waiter.holder)
                .collect(),
        };
        self.base.counters.locks += 1;
        if holders.is_empty() && ahead.is_empty() {
            let held = &mut self.held.entry(holder.txn).or_default().locks;
            lock.waiting.retain(|waiter| !mine(&waiter.holder));
            if exclusive {
                lock.sharers.retain(|sharer| !mine(sharer));
                lock.owner = Some(holder);
                held.exclusive.push(at);
                // Every grant publishes a lower bound above the bound of the record, so that a
                // reader that has raised the mark never waits for two owners.
                let mut observed = S::Observed::default();
                let key = self.base.store.key(at.column.table, at.row);
                let place = self.base.store.find(at.column, &key);
                self.base.observe_overwritten(&mut observed, at.column, place);
                self.base.store.lock_mut(at).lb = S::lower_bound(&observed);
            } else {
                lock.sharers.push(holder);
                held.shared.push(at);
            }
            self.base.step_locks(holder.txn, at, exclusive);
            return Grant::Granted;
        }
        self.conflict(WaitsFor::Record(at), holder, exclusive, &holders, &ahead, ticket)
    }

    /// Waits, wounds or refuses, as the policy says.
    fn conflict(
        &mut self,
        place: WaitsFor,
        holder: Holder,
        exclusive: bool,
        holders: &[Holder],
        ahead: &[Holder],
        ticket: Ticket,
    ) -> Grant {
        // No outcome will release these locks soon.
        let stuck = holders.iter().any(|other| self.base.votes.is_stuck(other.txn));
        let may_wait = match self.policy {
            _ if stuck => false,
            LockPolicy::NoWait => false,
            LockPolicy::WaitDie => holders.iter().chain(ahead).all(|other| holder < *other),
            LockPolicy::WoundWait => {
                for victim in holders.iter().filter(|other| holder < **other) {
                    self.outgoing.push((victim.txn.coordinator, Request::Wound(victim.txn)));
                }
                true
            }
        };
        let why = if stuck { Abort::Unknown } else { Abort::WriteConflict };
        self.base.step(holder.txn, |base| {
            let item = match place {
                WaitsFor::Record(at) => base.item(at),
                WaitsFor::Range(lock) => base.item_of_range(lock),
            };
            let by = holders.iter().chain(ahead).map(|other| other.txn).next();
            if may_wait { What::Waits(item, by) } else { What::Refused(item, why, by) }
        });
        if !may_wait {
            // Remove the empty row if it was linked only for this lock.
            if let WaitsFor::Record(at) = place {
                self.base.store.tidy_lock(at);
            }
            return Grant::Refused(why);
        }
        let lock = match place {
            WaitsFor::Record(at) => self.base.store.lock_mut(at),
            WaitsFor::Range(lock) => self.base.store.lock_by_id_mut(lock).expect("a locked range has a lock"),
        };
        match lock.waiting.iter_mut().find(|waiter| waiter.holder == holder) {
            Some(waiter) => waiter.ticket = ticket,
            None => {
                let by_age = self.policy == LockPolicy::WoundWait;
                let position = match by_age {
                    true => lock.waiting.iter().position(|waiter| holder < waiter.holder),
                    false => None,
                };
                let position = position.unwrap_or(lock.waiting.len());
                lock.waiting.insert(position, Waiter { holder, exclusive, ticket });
            }
        }
        let held = self.held.entry(holder.txn).or_default();
        held.ticket = Some(ticket);
        if !held.queued.contains(&place) {
            held.queued.push(place);
        }
        Grant::Wait
    }

    /// The request is answered: takes it out of all queues that it still stands in.
    pub(super) fn stop_waiting(&mut self, txn: TxnId) {
        let Some(held) = self.held.get_mut(&txn) else { return };
        held.ticket = None;
        for place in std::mem::take(&mut held.queued) {
            self.leave_queue(place, txn);
        }
    }

    fn leave_queue(&mut self, place: WaitsFor, txn: TxnId) {
        let lock = match place {
            WaitsFor::Record(at) => Some(self.base.store.lock_mut(at)),
            WaitsFor::Range(lock) => self.base.store.lock_by_id_mut(lock),
        };
        if let Some(lock) = lock {
            let before = lock.waiting.len();
            lock.waiting.retain(|waiter| waiter.holder.txn != txn);
            if lock.waiting.len() < before {
                // Requests behind it may be able to continue.
                self.base.released.extend(lock.waiting.iter().map(|waiter| waiter.ticket));
            }
        }
        if let WaitsFor::Record(at) = place {
            self.base.store.tidy_lock(at);
        }
    }

    /// Locks the rows of a range as the scan finds them, and the range itself as far as the scan
    /// goes.
    fn lock_range(&mut self, scan: &Scan, holder: Holder, exclusive: bool, ticket: Ticket) -> Grant {
        let ColumnGroup { table, group } = scan.column;
        let mut rows = Vec::new();
        let mut live = 0;
        self.base.store.scan_in(scan.order, table, &scan.low, scan.high.as_ref(), |found, visited| {
            if let Visited::Row(row) = visited {
                rows.push(row);
                live += usize::from(found.record(row, group).is_present());
            }
            // A row that another transaction has locked exclusively may turn out present or absent;
            // the scan waits for it first.
            if live >= scan.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        for &row in &rows {
            match self.lock(At { row, column: scan.column }, holder, exclusive, ticket) {
                Grant::Granted => {}
                other => return other,
            }
        }
        let last = rows.last().filter(|_| live >= scan.limit).map(|&last| self.base.store.key(table, last));
        let (low, high) = scan.read_up_to(last.as_ref());
        let held = &mut self.held.entry(holder.txn).or_default().locks;
        self.base.share_range(holder, (table, low, high), held);
        Grant::Granted
    }

    /// Locks a record that is written without having been read. An absent record must not be in a
    /// range that another transaction has locked.
    fn lock_write(&mut self, write: &Write, holder: Holder, ticket: Ticket) -> Grant {
        let table = write.column.table;
        let place = self.base.store.find(write.column, &write.key);
        let live = place
            .row()
            .is_some_and(|row| self.base.store.record(At { row, column: write.column }).is_present());
        let other = |range: &&RangeLock| range.txn != holder.txn && range.contains(&write.key);
        if !live && let Some(range) = self.base.store.ranges(table).iter().find(other) {
            let range = range.lock;
            let lock = self.base.store.lock_by_id(range).expect("a locked range has a lock");
            let others = lock.sharers.clone();
            return self.conflict(WaitsFor::Range(range), holder, true, &others, &[], ticket);
        }
        let at = self.row_to_lock(write.column, &write.key);
        self.lock(at, holder, true, ticket)
    }

    pub(super) fn finish(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.base.install_locked(txn, stamp, writes);
        self.release(txn, Some(stamp));
    }

    /// Releases all locks of a transaction. If it committed, its reads are pinned first.
    pub(super) fn release(&mut self, txn: TxnId, committed: Option<Timestamp>) {
        let parked = self.held.get(&txn).and_then(|held| held.ticket);
        self.stop_waiting(txn);
        let Some(held) = self.held.remove(&txn) else { return };
        if let Some(ticket) = parked {
            // Its request is still parked. No task waits for the answer, and the request must not
            // lock anything when it is handled again.
            self.held.insert(txn, HeldLocks { cancelled: Some(Abort::Refused), ..HeldLocks::default() });
            self.base.released.push(ticket);
        }
        self.base.drop_locks(txn, &held.locks, committed);
    }

    /// A transaction of this shard was wounded: its parked requests are cancelled everywhere, and
    /// its coordinator aborts it.
    pub(super) fn wound(&mut self, txn: TxnId) {
        let Some(running) = self.running.get_mut(&txn) else { return };
        if running.committing || std::mem::replace(&mut running.wounded, true) {
            return;
        }
        self.outgoing.extend(running.asked.iter().map(|&shard| (shard, Request::Cancel(txn))));
    }

    /// Whether a transaction still holds the locks that it was granted here.
    pub(super) fn holds(&self, txn: TxnId) -> bool {
        self.held.get(&txn).is_some_and(|held| held.cancelled.is_none() && held.ticket.is_none())
    }

    /// Whether the transaction may commit; from now on it cannot be wounded.
    pub(super) fn begin_commit(&mut self, txn: TxnId) -> bool {
        let running = self.running.entry(txn).or_default();
        running.committing = true;
        !running.wounded
    }
}

impl<S: Scheme> Voter for TwoPl<S> {
    fn ready(&mut self, txn: TxnId, _: Timestamp, _: &[ReadRef]) -> bool {
        self.holds(txn)
    }

    fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.finish(txn, stamp, writes);
    }

    fn release(&mut self, txn: TxnId) {
        self.release(txn, None);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_runtime::LowWater;
    use plimsoll_types::{IndexKind, Partitioning, ShardId, TableId, TableSpec};

    use super::*;
    use crate::attempt::ProtocolOptions;
    use crate::base::{Base, Layout};
    use crate::protocol::{self, Protocol};
    use crate::testing::scheme_config;
    use crate::timestamps::Dst;
    use crate::votes;
    use crate::work::Footprint;

    /// What a transaction of so many steps costs, in keys looked for: each step scans a range,
    /// reads a key in it and writes it, in requests of their own.
    fn lookups(steps: u64) -> u64 {
        let table = TableId(0);
        let spec = TableSpec::new("t", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
        let layout = Layout::in_one_process([spec], 1);
        let base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        let mut shard = TwoPl::new(base, ProtocolOptions::default());
        let txn = TxnId { coordinator: ShardId(0), number: 1 };
        let holder = Holder { age: 1, txn };
        let mut work: Footprint<Dst> = Footprint::default();
        for step in 0..steps {
            let (key, next) = (Key::of_u64(10 * step), Key::of_u64(10 * step + 5));
            let (mut scan, mut get) = (Reads::default(), Reads::default());
            scan.scan(Scan::range(table.row(), key.clone(), next));
            get.get(table.row(), key.clone());
            shard.base.seal(ShardId(0), &mut scan);
            let mut acquire = |reads: &Reads, writes: &mut [Write]| {
                let acquired = shard.acquire(holder, reads, writes, &Timestamp::ZERO, 0);
                assert!(matches!(acquired, Ok(Some(_))), "nobody else is there");
            };
            acquire(&scan, &mut []);
            acquire(&get, &mut []);
            let write = work.writes.push(table.row(), &key, Change::Put, ShardId(0), b"value");
            acquire(&Reads::default(), std::slice::from_mut(write));
            write.locked = true;
        }
        let held = &shard.held[&txn].locks;
        assert_eq!((held.exclusive.len() as u64, held.ranges.len()), (steps, 1));
        shard.finish(txn, Timestamp(1000), &work.writes.pack(ShardId(0)));
        assert_eq!((shard.base.store.locks(), shard.held.len()), (0, 0));
        shard.base.store.operations().lookups
    }

    #[test]
    fn a_coordinator_whose_channel_is_reset_loses_the_locks_that_are_not_voted_on_at_once() {
        let (table, voter) = (TableId(0), ShardId(1));
        let spec = TableSpec::new("t", IndexKind::Hash, Partitioning::Hash { bytes: 0 });
        let layout = Layout { processes: vec![0, 1, 2].into(), ..Layout::in_one_process([spec], 1) };
        let base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
        let mut shard = TwoPl::new(base, ProtocolOptions::default());
        for peer in 1..3 {
            protocol::connected(&mut shard, ShardId(peer), Some(1));
        }
        let coordinator = ShardId(2);
        let lock = |shard: &mut TwoPl<Dst>, number| {
            let txn = TxnId { coordinator, number };
            let mut work: Footprint<Dst> = Footprint::default();
            let write =
                work.writes.push(table.row(), &Key::of_u64(number), Change::Put, ShardId(0), b"value");
            let (holder, mut reads) = (Holder { age: number, txn }, Reads::default());
            reads.get(table.row(), Key::of_u64(100 + number));
            let locked =
                shard.acquire(holder, &reads, std::slice::from_mut(write), &Timestamp::ZERO, number as u32);
            write.locked = true;
            (locked.map(|found| found.is_some()), work.writes.pack(ShardId(0)))
        };
        let (open, recorded) = (lock(&mut shard, 1), lock(&mut shard, 2));
        assert_eq!((open.0, recorded.0), (Ok(true), Ok(true)));
        let txn = TxnId { coordinator, number: 2 };
        votes::enter_record(&mut shard, txn, Timestamp(9), recorded.1, vec![(ShardId(0), 1), (voter, 1)]);

        protocol::connected(&mut shard, coordinator, None);
        assert_eq!(shard.held.len(), 2, "what is queued now may reach another life of its receiver");
        shard.tick(Timestamp(1));
        // What the other voter says decides on the one that has a vote here.
        assert!(shard.held.keys().eq([&txn]), "{:?}", shard.held);
        let asked: Vec<_> = shard.base.votes.outgoing().map(|(to, _)| to).collect();
        assert_eq!(asked, [voter]);
        assert_eq!(lock(&mut shard, 1).0, Err(Abort::Refused), "the vote stays, whatever comes late");

        // No request waits for an outcome that cannot be known for now: neither one that meets a
        // write of that transaction nor one that meets a read.
        let meets = |shard: &mut TwoPl<Dst>, key: u64| {
            let at = shard.row_to_lock(table.row(), &Key::of_u64(key));
            let older = Holder { age: 0, txn: TxnId { coordinator: ShardId(0), number: key } };
            shard.lock(at, older, true, key as u32)
        };
        assert!([2, 102].iter().all(|&key| matches!(meets(&mut shard, key), Grant::Wait)));
        shard.base.released.clear();
        protocol::connected(&mut shard, voter, None);
        for key in [2, 102] {
            assert!(shard.base.released.contains(&(key as u32)), "a request that waits is handled again");
            assert!(matches!(meets(&mut shard, key), Grant::Refused(Abort::Unknown)));
        }
    }

    #[test]
    fn a_key_that_is_written_comes_after_a_reader_of_its_absence_that_had_locked_it_before() {
        let (table, key) = (TableId(0), Key::of_u64(1));
        for index in [IndexKind::Hash, IndexKind::Ordered] {
            let spec = TableSpec::new("t", index, Partitioning::Hash { bytes: 0 });
            let layout = Layout::in_one_process([spec], 1);
            let base = Base::<Dst>::new(&layout, &scheme_config(0, 1), LowWater::new(1, 1));
            let mut shard = TwoPl::new(base, ProtocolOptions::default());
            let txn = |number| TxnId { coordinator: ShardId(0), number };
            let (writer, reader) = (Holder { age: 1, txn: txn(1) }, Holder { age: 2, txn: txn(2) });
            // A piece on the store finds nothing, and locks the key without a row.
            let locks = &mut shard.held.entry(reader.txn).or_default().locks;
            shard.base.share_range(reader, (table, key.clone(), Some(key.just_after())), locks);

            let mut get = Reads::default();
            get.update(table.row(), key.clone());
            let absent = shard.acquire(writer, &get, &mut [], &Timestamp::ZERO, 1);
            assert!(matches!(absent, Ok(Some(_))), "both may read that it is absent");
            let mut work: Footprint<Dst> = Footprint::default();
            let write = work.writes.push(table.row(), &key, Change::Put, ShardId(0), b"value");
            let mut put = |shard: &mut TwoPl<Dst>| {
                let writes = std::slice::from_mut(&mut *write);
                shard.acquire(writer, &Reads::default(), writes, &Timestamp::ZERO, 2)
            };
            assert!(matches!(put(&mut shard), Ok(None)), "the range is locked");
            shard.release(reader.txn, Some(Timestamp(100)));
            let locked = put(&mut shard).expect("it is the older one").expect("the range is free");
            assert_eq!(locked.observed, Timestamp(100), "{index:?}");
        }
    }

    #[test]
    fn the_cost_of_a_transaction_grows_with_its_operations_and_not_with_their_square() {
        let (one, ten) = (lookups(200), lookups(2_000));
        assert!(ten <= 11 * one, "{one} for 200 steps, {ten} for ten times as many");
    }
}
