//! 2PL: strict two-phase locking, distributed, with a choice of what to do about conflicts.
//!
//! Growing phase: a record is locked when it is read, shared, or exclusively if the transaction has declared
//! that it will write it; what it only writes is locked before it commits. Writes are buffered. When the last
//! lock is granted the commit stamp is final: above the versions read and above the bounds of what is
//! overwritten, the bounds taken while the exclusive lock is held. Shrinking phase: each shard installs the
//! writes, raises the marks of what was only read (PIN) and only then releases the locks; the mark of a record
//! must not be missing when the next writer gets its lock.
//!
//! Worked example, under DST: T holds a shared lock on `x` (@5) and upgrades it. Between the two grants a
//! read-only transaction has read `x` at 9 without waiting, for shared locks make nobody wait. The bound is
//! read again at the upgrade: 9, and T commits at 10. With the bound of the first grant it would commit at 6,
//! underneath that reader.
//!
//! *Conflicts.* Wait-die: whoever is older than all that stand in its way waits, others abort. Wound-wait:
//! whoever is older takes the lock away (its owner's coordinator is told, unless it is already committing), others
//! wait. No-wait: abort. Age is that of the first attempt. Waiting requests count as standing in the way of
//! later ones they conflict with, under wait-die in the order of arrival, under wound-wait in the order of age.
//!
//! *Phantoms.* A scan locks its range on the shard: an exact predicate lock, which inserts into the range
//! conflict with ([`crate::locks`]). A locked absent key is an empty row.
//!
//! A step that runs on the coordinator's own shard to the end, commit included, only checks for locks: see
//! [`crate::protocol`]. Within one process PIN and the release of shared locks travel with the install.
//! In other processes locks may be lost: there what was only read is pinned in a round of its own, which asks whether
//! its locks are still held, and what is written is voted on ([`crate::votes`]).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_runtime::{Env, Handled, Node, Ticket};
use plimsoll_store::{At, Holder, LockId, Visited, Waiter};
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ColumnGroup, Key, ShardId, Timestamp, TxnId};

use crate::base::{Base, Common, CommonReply};
use crate::fetched::{Fetched, ReadRef};
use crate::local::just_after;
use crate::locks::Locks;
use crate::parts::Part;
use crate::procedure::{Intent, Reads, Scan};
use crate::protocol::{self, LockPolicy, Open, Protocol, ProtocolOptions, Rest, Stop};
use crate::steps::{About, What};
use crate::timestamp::Scheme;
use crate::votes::{self, Voter};
use crate::work::{Change, Packed, Work, Write};

/// 2PL on one shard.
pub struct TwoPl<S: Scheme> {
    base: Base<S>,
    policy: LockPolicy,
    /// What each transaction has locked here, or waits for.
    held: BTreeMap<TxnId, Held>,
    /// Transactions this shard coordinates, and whether they were wounded (wound-wait).
    running: BTreeMap<TxnId, Running>,
    outgoing: Vec<(ShardId, Request<S>)>,
}

#[derive(Debug, Default)]
struct Held {
    locks: Locks,
    /// Its parked request.
    ticket: Option<Ticket>,
    /// The queues it stands in. Handled again, a request may come to wait elsewhere, or not at all.
    queued: Vec<WaitsFor>,
    /// Why waiting ends: its coordinator has given it up, or this shard has refused it.
    cancelled: Option<Abort>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WaitsFor {
    Record(At),
    Range(LockId),
}

#[derive(Debug, Default)]
struct Running {
    wounded: bool,
    /// All locks are held: too late to wound it.
    committing: bool,
    /// Shards that may have a parked request of it.
    asked: Vec<ShardId>,
}

/// What a participant is asked.
pub enum Request<S: Scheme> {
    /// The same under every protocol.
    Common(Common<S>),
    /// Locks what is read, and what is written blindly, then reads.
    Acquire {
        /// Who locks.
        holder: Holder,
        /// What to lock and read.
        reads: Reads,
        /// What to lock exclusively without reading.
        writes: Vec<Write>,
        /// What the transaction is ordered after so far.
        observed: S::Observed,
    },
    /// Installs the writes on this shard, pins what was only read, and releases all locks.
    Finish {
        /// Who holds the locks.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
        /// The writes.
        writes: Packed,
        /// Whether to answer when it is done.
        answer: bool,
    },
    /// In another process than the coordinator, where nothing is written: pins what was read, and releases all locks.
    Pin {
        /// Who holds the locks.
        txn: TxnId,
        /// The commit stamp, final.
        stamp: Timestamp,
    },
    /// Releases all locks.
    Abort(TxnId),
    /// To the coordinator's shard: an older transaction wants a lock of this one.
    Wound(TxnId),
    /// To a participant: the transaction does not wait any longer.
    Cancel(TxnId),
    /// What has to do with votes.
    Vote(votes::Request),
}

plimsoll_types::wire!(<S: Scheme> enum Request<S> {
    Common(common) = 0,
    Acquire { holder, reads, writes, observed } = 1,
    Finish { txn, stamp, writes, answer } = 2,
    Abort(txn) = 3,
    Wound(txn) = 4,
    Cancel(txn) = 5,
    Vote(request) = 6,
    Pin { txn, stamp } = 7
});

/// What it answers.
pub enum Reply<S: Scheme> {
    /// The same under every protocol.
    Common(CommonReply<S>),
    /// All is locked; this was read. What is overwritten is observed as well.
    Acquired(Fetched<S>),
    /// The transaction must abort.
    Refused(Abort),
    /// All is installed.
    Finished,
    /// Whether all locks were still held.
    Pinned(bool),
    /// What has to do with votes.
    Vote(votes::Reply),
}

plimsoll_types::wire!(<S: Scheme> enum Reply<S> {
    Common(common) = 0,
    Acquired(fetched) = 1,
    Refused(abort) = 2,
    Finished = 3,
    Vote(reply) = 4,
    Pinned(held) = 5
});

/// Whether a lock is to be had.
enum Grant {
    Granted,
    Wait,
    Refused(Abort),
}

impl<S: Scheme> Node for TwoPl<S> {
    type Request = Request<S>;
    type Reply = Reply<S>;

    fn handle(&mut self, from: ShardId, request: &mut Request<S>, ticket: Ticket) -> Handled<Reply<S>> {
        match request {
            Request::Common(common) => self.base.handle(from, common, ticket).map(Reply::Common),
            Request::Acquire { holder, reads, writes, observed } => {
                let acquired = self.acquire(*holder, reads, writes, observed, ticket);
                if !matches!(acquired, Ok(None)) {
                    self.stop_waiting(holder.txn);
                }
                if acquired.is_err() && self.held.get(&holder.txn).is_some_and(|held| held.locks.is_empty()) {
                    self.held.remove(&holder.txn);
                }
                match acquired {
                    Ok(Some(fetched)) => Handled::Reply(Reply::Acquired(fetched)),
                    Ok(None) => Handled::Wait,
                    Err(abort) => Handled::Reply(Reply::Refused(self.base.refused(abort))),
                }
            }
            Request::Finish { txn, stamp, writes, answer } => {
                self.finish(*txn, *stamp, writes);
                if *answer { Handled::Reply(Reply::Finished) } else { Handled::Done }
            }
            Request::Pin { txn, stamp } => {
                let held = self.holds(*txn);
                if held {
                    self.release(*txn, Some(*stamp));
                    self.base.votes.close(*txn);
                }
                Handled::Reply(Reply::Pinned(held))
            }
            Request::Abort(txn) => {
                self.release(*txn, None);
                self.base.votes.close(*txn);
                Handled::Done
            }
            Request::Vote(request) => votes::handle(self, from, request).map(Reply::Vote),
            Request::Wound(txn) => {
                self.wound(*txn);
                Handled::Done
            }
            Request::Cancel(txn) => {
                if let Some(held) = self.held.get_mut(txn) {
                    held.cancelled = Some(Abort::Wounded);
                    self.base.released.extend(held.ticket);
                }
                Handled::Done
            }
        }
    }

    fn released(&mut self) -> &mut Vec<Ticket> {
        &mut self.base.released
    }

    fn pass(&mut self, clock: Timestamp) {
        self.base.pass(clock);
        votes::tick(self, clock);
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>) {
        self.base.connected(peer, life);
    }

    fn due(&self) -> Option<u64> {
        self.base.due()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Request<S>)>) {
        send.append(&mut self.outgoing);
        send.extend(self.base.votes.outgoing().map(|(to, request)| (to, Request::Vote(request))));
        self.base.outgoing(|to, common| send.push((to, Request::Common(common))));
    }

    fn park(&mut self) {
        self.base.park();
    }
}

/// The participant.
impl<S: Scheme> TwoPl<S> {
    /// Locks everything, or waits with what it has. Handled again after a wait, it finds its own locks.
    fn acquire(
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
        let gets = reads.gets.iter().map(|(column, key, _)| (*column, key));
        for (column, key) in gets.chain(writes.iter().map(|write| (write.column, &write.key))) {
            self.base.may_lock(holder.txn, column, key)?;
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
        // All is locked. The bounds are read now: a reader that came between a shared and an exclusive grant
        // is in them.
        let mut fetched = self.base.fetch(holder.txn, None, reads).expect("the newest version is never gone");
        S::join(&mut fetched.observed, so_far);
        let exclusive =
            self.held.get(&holder.txn).map(|held| held.locks.exclusive.clone()).unwrap_or_default();
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
        for write in writes.iter() {
            let place = self.base.store.find(write.column, &write.key);
            let at = At { row: place.row().expect("a locked record is linked"), column: write.column };
            if write.change == Change::Insert && self.base.store.record(at).is_present() {
                return Err(Abort::User);
            }
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
        // An upgrade goes before all that wait: they wait for its shared lock.
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
                held.shared.retain(|&shared| shared != at);
                held.exclusive.push(at);
                // Every grant publishes a lower bound above the bound of the record, so that a reader that has
                // raised the mark never waits for two owners.
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

    /// Waits, wounds or gives up.
    fn conflict(
        &mut self,
        place: WaitsFor,
        holder: Holder,
        exclusive: bool,
        holders: &[Holder],
        ahead: &[Holder],
        ticket: Ticket,
    ) -> Grant {
        let may_wait = match self.policy {
            LockPolicy::NoWait => false,
            LockPolicy::WaitDie => holders.iter().chain(ahead).all(|other| holder < *other),
            LockPolicy::WoundWait => {
                for victim in holders.iter().filter(|other| holder < **other) {
                    self.outgoing.push((victim.txn.coordinator, Request::Wound(victim.txn)));
                }
                true
            }
        };
        self.base.step(holder.txn, |base| {
            let item = match place {
                WaitsFor::Record(at) => base.item(at),
                WaitsFor::Range(lock) => base.item_of_range(lock),
            };
            let by = holders.iter().chain(ahead).map(|other| other.txn).next();
            if may_wait { What::Waits(item, by) } else { What::Refused(item, Abort::WriteConflict, by) }
        });
        if !may_wait {
            // A ghost that was linked for this lock is not left behind.
            if let WaitsFor::Record(at) = place {
                self.base.store.tidy_lock(at);
            }
            return Grant::Refused(Abort::WriteConflict);
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

    /// The request is answered: it leaves all queues it still stands in.
    fn stop_waiting(&mut self, txn: TxnId) {
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
                // Those behind it may go on.
                self.base.released.extend(lock.waiting.iter().map(|waiter| waiter.ticket));
            }
        }
        if let WaitsFor::Record(at) = place {
            self.base.store.tidy_lock(at);
        }
    }

    /// Locks the rows of a range as the scan meets them, and the range itself as far as the scan goes.
    fn lock_range(&mut self, scan: &Scan, holder: Holder, exclusive: bool, ticket: Ticket) -> Grant {
        let ColumnGroup { table, group } = scan.column;
        let mut rows = Vec::new();
        let mut live = 0;
        self.base.store.scan(table, &scan.low, scan.high.as_ref(), |found, visited| {
            if let Visited::Row(row) = visited {
                rows.push(row);
                live += usize::from(found.record(row, group).is_present());
            }
            // A row that is locked exclusively by another may turn out either way; it is waited for first.
            if live >= scan.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        for &row in &rows {
            match self.lock(At { row, column: scan.column }, holder, exclusive, ticket) {
                Grant::Granted => {}
                other => return other,
            }
        }
        let high = match rows.last() {
            Some(&last) if live >= scan.limit => Some(just_after(&self.base.store.key(table, last))),
            _ => scan.high.clone(),
        };
        let held = &mut self.held.entry(holder.txn).or_default().locks;
        let same = |range: &&plimsoll_store::RangeLock| range.low == scan.low && range.high == high;
        let mut known = self.base.store.ranges(table).iter().filter(same);
        if known.any(|range| held.ranges.contains(&(table, range.lock))) {
            return Grant::Granted;
        }
        self.base.share_range(holder, (table, scan.low.clone(), high), held);
        Grant::Granted
    }

    /// Locks a record that is written without having been read; an absent one must not be in a range that
    /// somebody else has scanned.
    fn lock_write(&mut self, write: &Write, holder: Holder, ticket: Ticket) -> Grant {
        let table = write.column.table;
        let ranges = self.base.store.ranges(table).iter().filter(|range| range.contains(&write.key));
        let ranges: Vec<LockId> = ranges.map(|range| range.lock).collect();
        let place = self.base.store.find(write.column, &write.key);
        let live = place
            .row()
            .is_some_and(|row| self.base.store.record(At { row, column: write.column }).is_present());
        if !live {
            for range in ranges {
                let lock = self.base.store.lock_by_id(range).expect("a locked range has a lock");
                let others = lock.sharers.iter().filter(|sharer| sharer.txn != holder.txn);
                let others: Vec<Holder> = others.copied().collect();
                if !others.is_empty() {
                    return self.conflict(WaitsFor::Range(range), holder, true, &others, &[], ticket);
                }
            }
        }
        let at = self.row_to_lock(write.column, &write.key);
        self.lock(at, holder, true, ticket)
    }

    fn finish(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed) {
        self.base.install_locked(txn, stamp, writes);
        self.release(txn, Some(stamp));
    }

    /// Releases all locks of a transaction; if it committed, what it read is pinned first.
    fn release(&mut self, txn: TxnId, committed: Option<Timestamp>) {
        let parked = self.held.get(&txn).and_then(|held| held.ticket);
        self.stop_waiting(txn);
        let Some(held) = self.held.remove(&txn) else { return };
        if let Some(ticket) = parked {
            // Nobody is interested in it any more. It must not lock anything when it is handled again.
            self.held.insert(txn, Held { cancelled: Some(Abort::Refused), ..Held::default() });
            self.base.released.push(ticket);
        }
        self.base.drop_locks(txn, &held.locks, committed);
    }

    /// A transaction of this shard was wounded: wherever it waits, it stops, and its coordinator aborts it.
    fn wound(&mut self, txn: TxnId) {
        let Some(running) = self.running.get_mut(&txn) else { return };
        if running.committing || std::mem::replace(&mut running.wounded, true) {
            return;
        }
        self.outgoing.extend(running.asked.iter().map(|&shard| (shard, Request::Cancel(txn))));
    }

    /// Whether a transaction still has the locks here that it was granted.
    fn holds(&self, txn: TxnId) -> bool {
        self.held.get(&txn).is_some_and(|held| held.cancelled.is_none() && held.ticket.is_none())
    }

    /// Whether the transaction may commit; from now on it cannot be wounded.
    fn begin_commit(&mut self, txn: TxnId) -> bool {
        let running = self.running.entry(txn).or_default();
        running.committing = true;
        !running.wounded
    }
}

impl<S: Scheme> Voter for TwoPl<S> {
    fn voting(request: votes::Request) -> Request<S> {
        Request::Vote(request)
    }

    fn voted(reply: Reply<S>) -> votes::Reply {
        match reply {
            Reply::Vote(reply) => reply,
            _ => unreachable!("a request to do with votes has such a reply"),
        }
    }

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

/// The coordinator.
impl<S: Scheme> Protocol for TwoPl<S> {
    type Scheme = S;
    const NAME: &'static str = "two_pl";
    const LOCKS: bool = true;

    fn new(base: Base<S>, options: ProtocolOptions) -> TwoPl<S> {
        TwoPl {
            base,
            policy: options.lock_policy,
            held: BTreeMap::new(),
            running: BTreeMap::new(),
            outgoing: Vec::new(),
        }
    }

    fn base(&mut self) -> &mut Base<S> {
        &mut self.base
    }

    fn common(request: Common<S>) -> Request<S> {
        Request::Common(request)
    }

    fn common_reply(reply: Reply<S>) -> CommonReply<S> {
        match reply {
            Reply::Common(reply) => reply,
            _ => unreachable!("a common request has a common reply"),
        }
    }

    fn about(request: &Request<S>) -> About {
        match request {
            Request::Common(common) => common.about(),
            Request::Acquire { holder, reads, writes, .. } => {
                let writes = writes.iter().map(|write| (write.column, &write.key));
                About::new("ACQUIRE", Some(holder.txn)).reads(reads).writes(writes)
            }
            Request::Finish { txn, writes, .. } => {
                let writes = writes.iter().map(|(column, key, _)| (column, key));
                About::new("FINISH", Some(*txn)).writes(writes)
            }
            Request::Pin { txn, .. } => About::new("PIN", Some(*txn)),
            Request::Vote(request) => request.about(),
            Request::Abort(txn) => About::new("ABORT", Some(*txn)),
            Request::Wound(txn) => About::new("WOUND", Some(*txn)),
            Request::Cancel(txn) => About::new("CANCEL", Some(*txn)),
        }
    }

    fn answer(reply: &Reply<S>) -> &'static str {
        match reply {
            Reply::Common(reply) => reply.answer(),
            Reply::Acquired(_) => "acquired",
            Reply::Refused(_) => "refused",
            Reply::Finished => "finished",
            Reply::Pinned(true) => "pinned",
            Reply::Pinned(false) => "refused",
            Reply::Vote(reply) => reply.answer(),
        }
    }

    async fn read<E: Env<Self>>(
        env: &E,
        open: &mut Open<S>,
        batches: Vec<(ShardId, Reads)>,
    ) -> Result<(), Abort> {
        let batches = batches.into_iter().map(|(shard, reads)| (shard, reads, Vec::new())).collect();
        acquire(env, open, batches).await
    }

    async fn wrote<E: Env<Self>>(env: &E, open: &mut Open<S>) -> Result<(), Abort> {
        lock_writes(env, open).await
    }

    async fn commit<E: Env<Self>>(
        env: &E,
        open: &mut Open<S>,
        rest: Option<impl Rest<S>>,
    ) -> Result<(), Stop> {
        let txn = open.holder.txn;
        // The last locks for what has been written so far.
        lock_writes(env, open).await.map_err(Stop::Abort)?;
        // What is left executes on the store, checking for locks as it goes. From here to the stamp nothing
        // else runs on this shard; to the end, if no other process has to be asked anything.
        let alone = env.local(|node| !open.touched.iter().any(|&shard| node.base.votes.elsewhere(shard)));
        if let Err(stop) = env.local(|node| node.last(open, alone, rest)) {
            return Err(match stop {
                Stop::Abort(abort) => Stop::Abort(Self::abort(env, open, abort).await),
                Stop::Conflict if env.local(|node| node.policy == LockPolicy::NoWait) => {
                    Stop::Abort(Self::abort(env, open, Abort::WriteConflict).await)
                }
                other => other,
            });
        }
        // The stamp: every lock is held.
        if !env.local(|node| node.begin_commit(txn)) {
            return Err(Stop::Abort(Self::abort(env, open, Abort::Wounded).await));
        }
        let Some(stamp) = protocol::stamp(env, open).await else {
            return Err(Stop::Abort(Self::abort(env, open, Abort::Unknown).await));
        };
        let voting = !alone && votes::needed(env, txn, &open.work.writes.shards());
        if !alone {
            env.local(|node| node.base.pin_local(txn, &open.work, stamp));
            let written = open.work.writes.shards();
            let pinned = pin_elsewhere(env, open, &written, stamp).await;
            if !pinned && S::REPORTS && open.work.needs_stamp() {
                env.local(|node| node.base.finished(stamp, None));
            }
            let decided = match pinned {
                true if voting => votes::decide(env, open, stamp, |_, _| Vec::new()).await,
                true => Ok(()),
                false => Err(Abort::Refused),
            };
            if let Err(abort) = decided {
                return Err(Stop::Abort(Self::abort(env, open, abort).await));
            }
        }
        // Shrinking phase.
        env.local(|node| node.finish_here(open, voting, stamp));
        finish_elsewhere(env, open, voting, stamp);
        let shards = open.shards();
        open.work.commit(txn, open.work.needs_stamp().then_some(stamp), shards);
        Ok(())
    }

    async fn abort<E: Env<Self>>(env: &E, open: &mut Open<S>, why: Abort) -> Abort {
        let (me, txn) = (env.shard(), open.holder.txn);
        // The procedure gave up because of what it has read: that must be so as long as its locks are held.
        let why = match why {
            Abort::User if !pin_elsewhere(env, open, &[], Timestamp::ZERO).await => Abort::Refused,
            why => why,
        };
        for shard in std::mem::take(&mut open.touched) {
            match shard == me {
                true => env.local(|node| node.release(txn, None)),
                false => env.send(shard, Request::Abort(txn)),
            }
        }
        env.local(|node| {
            node.running.remove(&txn);
            node.base.step(txn, |_| What::Aborts(why));
        });
        why
    }
}

impl<S: Scheme> TwoPl<S> {
    /// Executes what is left directly on the store. If the transaction has to ask for its stamp, or another process for
    /// anything, what it read and wrote is then locked, which nobody can be in the way of within this step.
    fn last(&mut self, open: &mut Open<S>, alone: bool, rest: Option<impl Rest<S>>) -> Result<(), Stop> {
        let (holder, me) = (open.holder, self.base.shard);
        if self.running.get(&holder.txn).is_some_and(|running| running.wounded) {
            return Err(Stop::Abort(Abort::Wounded));
        }
        let at_once = alone && self.base.stamps_at_once();
        protocol::execute_rest(&mut self.base, open, rest, !at_once)?;
        if at_once {
            return Ok(());
        }
        let base = &mut self.base;
        for write in open.work.writes.iter().filter(|write| write.shard == me && write.place.is_some()) {
            base.may_lock(holder.txn, write.column, &write.key).map_err(Stop::Abort)?;
        }
        let reads = open.work.local_reads.len() + open.work.local_ranges.len();
        if reads > 0 && !base.may_lock_reads() {
            return Err(Stop::Abort(Abort::StaleTerm));
        }
        let held = &mut self.held.entry(holder.txn).or_default().locks;
        for read in &open.work.local_reads {
            if let ReadRef::Row { at, .. } = *read {
                self.base.share(holder, at, held);
            }
        }
        for range in open.work.local_ranges.drain(..) {
            self.base.share_range(holder, range, held);
        }
        let Work { observed, writes, .. } = &mut open.work;
        for write in writes.iter_mut().filter(|write| write.shard == me && write.place.is_some()) {
            let (at, _) = self.base.grant(holder, write, observed, &mut held.exclusive);
            let lock = self.base.store.lock_mut(at);
            lock.sharers.retain(|sharer| *sharer != holder);
            held.shared.retain(|&shared| shared != at);
            write.locked = true;
        }
        open.touch(me);
        Ok(())
    }

    /// Installs, pins and releases on the coordinator's own shard.
    fn finish_here(&mut self, open: &Open<S>, voted: bool, stamp: Timestamp) {
        let (me, txn) = (self.base.shard, open.holder.txn);
        if voted {
            // Without a write here there was nothing to vote on.
            self.release(txn, Some(stamp));
        } else {
            self.base.pin_local(txn, &open.work, stamp);
            self.base.install_checked(txn, stamp, &open.work, me);
            self.finish(txn, stamp, &open.work.writes.pack(me));
        }
        self.running.remove(&txn);
    }
}

/// Locks and reads, one message per shard; on refusal the transaction is aborted everywhere.
async fn acquire<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut Open<S>,
    batches: Vec<(ShardId, Reads, Vec<Write>)>,
) -> Result<(), Abort> {
    let holder = open.holder;
    let wounded = |node: &mut TwoPl<S>| node.running.get(&holder.txn).is_some_and(|running| running.wounded);
    if env.local(wounded) {
        // Where it would wait from now on nobody would tell it to stop.
        return Err(TwoPl::abort(env, open, Abort::Wounded).await);
    }
    if !open.meet(env, batches.iter().map(|(shard, ..)| *shard)) {
        return Err(TwoPl::abort(env, open, Abort::Unknown).await);
    }
    let mut calls = Vec::with_capacity(batches.len());
    for (shard, reads, writes) in batches {
        open.touch(shard);
        env.local(|node| {
            node.base.votes.owe(holder.txn.number, shard);
            let asked = &mut node.running.entry(holder.txn).or_default().asked;
            if !asked.contains(&shard) {
                asked.push(shard);
            }
        });
        let observed = open.work.observed.clone();
        let request = Request::Acquire { holder, reads: reads.clone(), writes, observed };
        calls.push((shard, reads, env.call(shard, request)));
    }
    let mut refused = None;
    for (shard, reads, call) in calls {
        match call.await {
            Ok(Reply::Acquired(fetched)) => {
                if !planted(Mutant::BoundIgnored) {
                    S::join(&mut open.work.observed, &fetched.observed);
                }
                open.parts.push(Part { shard, reads, fetched, locked: true });
            }
            Ok(Reply::Refused(abort)) => refused = Some(abort),
            Ok(_) => unreachable!("a lock request is granted or refused"),
            Err(_) => refused = Some(Abort::Unknown),
        }
    }
    if env.local(wounded) {
        refused = Some(Abort::Wounded);
    }
    match refused {
        None => Ok(()),
        Some(abort) => Err(TwoPl::abort(env, open, abort).await),
    }
}

/// Locks the writes that are not locked yet.
async fn lock_writes<S: Scheme, E: Env<TwoPl<S>>>(env: &E, open: &mut Open<S>) -> Result<(), Abort> {
    let Open { work, parts, .. } = &mut *open;
    let first = work.writes.locked();
    let new = work.writes.since(first);
    // What was read to be written is locked exclusively since then. Present: that nobody has locked a range around
    // an absent key is still to be seen.
    for write in new.iter_mut().filter(|write| write.change != Change::Insert) {
        write.locked = parts.read_for_update(write.shard, write.column, &write.key);
    }
    let mut batches: Vec<(ShardId, Reads, Vec<Write>)> = Vec::new();
    let mut new: Vec<Write> = new.iter().filter(|write| !write.locked).cloned().collect();
    new.sort_by_key(|write| write.shard);
    for write in new {
        match batches.last_mut() {
            Some((shard, _, writes)) if *shard == write.shard => writes.push(write),
            _ => batches.push((write.shard, Reads::default(), vec![write])),
        }
    }
    if batches.is_empty() {
        return Ok(());
    }
    acquire(env, open, batches).await?;
    open.work.writes.since(first).iter_mut().for_each(|write| write.locked = true);
    Ok(())
}

/// Pins what was read in other processes, but for these shards, and releases its locks. Returns false if one of them was
/// lost.
async fn pin_elsewhere<S: Scheme, E: Env<TwoPl<S>>>(
    env: &E,
    open: &mut Open<S>,
    written: &[ShardId],
    stamp: Timestamp,
) -> bool {
    let txn = open.holder.txn;
    let only_read =
        |shard: &ShardId| !written.contains(shard) && env.local(|node| node.base.votes.elsewhere(*shard));
    let calls: Vec<_> = (open.touched.iter().copied().filter(only_read))
        .map(|shard| (shard, env.call(shard, Request::Pin { txn, stamp })))
        .collect();
    let mut pinned = true;
    for (shard, call) in calls {
        match call.await {
            Ok(Reply::Pinned(_)) if planted(Mutant::PinIgnored) => {}
            Ok(Reply::Pinned(true)) => open.touched.retain(|&touched| touched != shard),
            _ => pinned = false,
        }
    }
    pinned
}

/// Tells the other shards to install, pin and release. Nobody waits, except for an oracle that must not
/// hear of the commit before it is installed everywhere.
fn finish_elsewhere<S: Scheme, E: Env<TwoPl<S>>>(env: &E, open: &mut Open<S>, voted: bool, stamp: Timestamp) {
    let (me, txn) = (env.shard(), open.holder.txn);
    // Who voted reports when all have installed.
    let report = S::REPORTS && open.work.needs_stamp() && !voted;
    let mut calls = Vec::new();
    for shard in std::mem::take(&mut open.touched).into_iter().filter(|&shard| shard != me) {
        let writes = open.work.writes.pack(shard);
        if report {
            calls.push(env.call(shard, Request::Finish { txn, stamp, writes, answer: true }));
        } else {
            env.send(shard, Request::Finish { txn, stamp, writes, answer: false });
        }
    }
    if report {
        let observed = open.work.observed.clone();
        let inner = env.clone();
        env.spawn(async move {
            for call in calls {
                let _ = call.await;
            }
            inner.local(|node| node.base.finished(stamp, Some(&observed)));
        });
    }
}
