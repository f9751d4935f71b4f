//! Reservations: who of a node's sessions writes a row next.
//!
//! A statement that writes a row reserves it first, and a second one that would write the same row
//! waits until the transaction of the first is over. Without that both would go on, and the one
//! that commits later would be refused and start again, and again.
//!
//! *Nothing correct rests on a reservation.* The database looks at every commit whether it is
//! serializable; a reservation only decides who goes first. So there are none over the sessions of
//! other nodes, whose conflicts are seen at the commit; a transaction with many writes stops
//! reserving; and reads need none.
//!
//! Whoever has waited has read what is no longer so. It starts again ([`super::journal`]) and keeps
//! what it has reserved, so that nobody is before it the second time. It gives up what it has done
//! before it waits, because with locks in the database (two-phase locking) the one that it waits
//! for could wait for it. A transaction that cannot start again keeps its locks, and so does one
//! with savepoints. Nobody sees such a circle, so these wait for a bounded time only ([`HELD_US`]).
//!
//! Two that wait for each other would wait for ever. A session waits for one row at a time, and all
//! of them are behind one lock, so who asks last sees the circle: it gives back what it has
//! reserved, and starts again behind the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::ops::Bound;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use plimsoll_types::mutants::{Mutant, planted};

use super::cancel::Places;
use super::conversation::Session;
use super::{Stop, World};
use crate::analyze::plan::Wait;
use crate::catalog::pg::ShownLock;
use crate::execute::lock::Reserve;
use crate::execute::scan::space;
use crate::store::{Space, Store};
use crate::{SqlError, SqlState};

/// Rows that a transaction reserves at most.
const RESERVED_MAX: usize = 1000;

/// How long a session that is the next one for a row sleeps until it looks again whether the row is
/// its own, in microseconds. Those behind it look more seldom.
const LOOK_US: u64 = 50;

/// How long any session sleeps at most, in microseconds.
const LOOK_MAX_US: u64 = 5_000;

/// How long a session waits for another at most while its transaction holds locks for which the
/// other one may wait, in microseconds, if the transaction can start again.
const HELD_US: u64 = 100_000;

/// The same if it cannot: then its client gets a serialization failure.
const HELD_LAST_US: u64 = 1_000_000;

/// Rows that are looked at before those that reserve some can go on.
const SHOWN_AT_ONCE: usize = 1024;

#[expect(clippy::disallowed_types, reason = "sessions of all shards of a node meet here")]
type Lock<T> = std::sync::Mutex<T>;

/// The rows that sessions of a node have reserved.
#[derive(Default)]
pub struct Reservations(Lock<Table>);

#[derive(Default)]
struct Table {
    rows: BTreeMap<Vec<u8>, Row>,
    /// The row that each session waits for.
    waits: BTreeMap<u32, Vec<u8>>,
}

struct Row {
    holder: u32,
    queue: VecDeque<u32>,
}

/// What has become of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The row is reserved.
    Granted,
    /// It waits in the row's queue.
    Waits,
    /// If it did, it would wait for ever.
    Circle,
}

impl Reservations {
    fn with<T>(&self, call: impl FnOnce(&mut Table) -> T) -> T {
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rows that are reserved, and sessions that wait for one.
    pub(super) fn size(&self) -> usize {
        self.with(|table| table.rows.len() + table.waits.len())
    }

    /// All rows that are reserved. Sessions can reserve others while it looks.
    pub(super) fn all(&self) -> Vec<ShownLock> {
        let mut all: Vec<ShownLock> = Vec::new();
        let lock = |(key, row): (&Vec<u8>, &Row)| ShownLock {
            key: key.clone(),
            holder: row.holder,
            waiters: row.queue.iter().copied().collect(),
        };
        loop {
            let from = all.last().map_or(Bound::Unbounded, |last| Bound::Excluded(&last.key));
            let range = (from.map(Vec::as_slice), Bound::Unbounded);
            let more: Vec<ShownLock> =
                self.with(|table| table.rows.range::<[u8], _>(range).take(SHOWN_AT_ONCE).map(lock).collect());
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    /// How many rows each session has reserved, and which sessions wait for one.
    pub(super) fn counts(&self) -> (BTreeMap<u32, usize>, BTreeSet<u32>) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.with(|table| {
                let rows = table.rows.range::<[u8], _>((from, Bound::Unbounded)).take(SHOWN_AT_ONCE);
                rows.inspect(|(_, row)| *counts.entry(row.holder).or_default() += 1)
                    .last()
                    .map(|it| it.0.clone())
            });
            if next.is_none() {
                return (counts, self.with(|table| table.waits.keys().copied().collect()));
            }
            last = next;
        }
    }

    /// Asks for a row, and for a place in its queue if it may wait.
    pub(super) fn ask(&self, session: u32, key: &[u8], may_wait: bool) -> Answer {
        self.with(|table| {
            let Some(row) = table.rows.get_mut(key) else {
                table.rows.insert(key.to_vec(), Row { holder: session, queue: VecDeque::new() });
                return Answer::Granted;
            };
            if row.holder == session {
                return Answer::Granted;
            }
            if !may_wait {
                return Answer::Waits;
            }
            let holder = row.holder;
            row.queue.push_back(session);
            table.waits.insert(session, key.to_vec());
            if table.leads_to(holder, session) {
                table.leave(session);
                return Answer::Circle;
            }
            Answer::Waits
        })
    }

    /// How many sessions are before this one; none if it has the row.
    fn before(&self, session: u32, key: &[u8]) -> usize {
        self.with(|table| match table.rows.get(key) {
            Some(row) if row.holder != session => {
                1 + row.queue.iter().position(|waiting| *waiting == session).unwrap_or_default()
            }
            _ => 0,
        })
    }

    /// A session waits no more.
    fn leave(&self, session: u32) {
        self.with(|table| table.leave(session));
    }

    /// A session does not want the row any more that it waited for, and that it may have by now.
    fn give_up(&self, session: u32, key: &[u8]) {
        self.with(|table| {
            table.leave(session);
            table.release(session, key);
        });
    }

    /// Whether another session has a row.
    fn is_of_another(&self, session: u32, key: &[u8]) -> bool {
        self.with(|table| table.rows.get(key).is_some_and(|row| row.holder != session))
    }

    /// A session gives rows back.
    pub(super) fn release(&self, session: u32, keys: &BTreeSet<Vec<u8>>) {
        self.with(|table| keys.iter().for_each(|key| table.release(session, key)));
    }
}

impl Table {
    /// Whether a session waits, over any number of others, for another.
    fn leads_to(&self, session: u32, other: u32) -> bool {
        let mut at = session;
        // There is no circle yet, so this comes to an end.
        loop {
            if planted(Mutant::EdgeLost) {
                return false;
            }
            if at == other {
                return true;
            }
            let Some(row) = self.waits.get(&at).and_then(|key| self.rows.get(key)) else { return false };
            at = row.holder;
        }
    }

    fn leave(&mut self, session: u32) {
        if let Some(key) = self.waits.remove(&session)
            && let Some(row) = self.rows.get_mut(&key)
        {
            row.queue.retain(|waiting| *waiting != session);
        }
    }

    fn release(&mut self, session: u32, key: &[u8]) {
        let Some(row) = self.rows.get_mut(key).filter(|row| row.holder == session) else { return };
        match row.queue.pop_front() {
            Some(next) => {
                row.holder = next;
                self.waits.remove(&next);
            }
            None => drop(self.rows.remove(key)),
        }
    }
}

/// What a session has reserved, given back when it is dropped.
pub(super) struct Reserved {
    places: Arc<Places>,
    session: u32,
    keys: BTreeSet<Vec<u8>>,
}

impl Reserved {
    pub(super) fn new(places: Arc<Places>, session: u32) -> Reserved {
        Reserved { places, session, keys: BTreeSet::new() }
    }

    fn table(&self) -> &Reservations {
        self.places.reservations()
    }

    /// Gives all back.
    pub(super) fn release(&mut self) {
        if !self.keys.is_empty() {
            let keys = std::mem::take(&mut self.keys);
            self.table().release(self.session, &keys);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.table().leave(self.session);
        if planted(Mutant::ReservationKept) {
            return;
        }
        self.release();
    }
}

/// A session that waits for a row. If it is dropped before it has got it, it does not want it.
struct Waiting<'a> {
    table: &'a Reservations,
    session: u32,
    key: &'a [u8],
    has_got: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // The row may have come to it since it looked.
        if !self.has_got {
            self.table.give_up(self.session, self.key);
        }
    }
}

impl<W: World> Session<'_, W> {
    /// Reserves a row that is to be written. If another session has it, waits until it has not;
    /// what was read before that is no longer so, and the transaction starts again if it can.
    pub(super) async fn reserve(&mut self, key: &[u8], deadline_us: Option<i64>) -> Result<(), Stop> {
        if self.reserved.keys.contains(key) || self.reserved.keys.len() >= RESERVED_MAX {
            return Ok(());
        }
        let session = self.reserved.session;
        match self.reserved.table().ask(session, key, true) {
            Answer::Granted => {
                self.reserved.keys.insert(key.to_vec());
                return Ok(());
            }
            Answer::Circle => {
                self.reserved.release();
                return Err(Stop::Conflict("two transactions were waiting for each other".into()));
            }
            Answer::Waits => {}
        }
        let starts_over = self.can_start_over();
        // The other one may wait for locks that this one has in the database. With savepoints they
        // are kept, since an error of this statement need not be the end of the block.
        if starts_over && self.transaction.level() == 0 {
            self.abandon().await;
        }
        let held_us = match self.data.may_hold_locks() && self.world.store().has_locks() {
            true if starts_over => HELD_US,
            true => HELD_LAST_US,
            false => u64::MAX,
        };
        let since_us = self.world.now_us();
        let waited = self.wait_for(key, deadline_us, held_us).await;
        self.waited_us += self.world.now_us().saturating_sub(since_us);
        if !waited? {
            self.reserved.release();
            return Err(Stop::Conflict("two transactions may have been waiting for each other".into()));
        }
        self.reserved.keys.insert(key.to_vec());
        match starts_over {
            true => Err(Stop::Conflict("another transaction was writing the same row".into())),
            // If the other one has not written after all, this one can still commit.
            false => Ok(()),
        }
    }

    /// Reserves a row that is to be given out. Says whether it is reserved, or left out.
    pub(super) async fn reserve_for(
        &mut self,
        reserve: Reserve,
        deadline_us: Option<i64>,
    ) -> Result<bool, Stop> {
        let Reserve { key, locked, wait } = reserve;
        if self.reserved.keys.contains(&key) {
            return Ok(true);
        }
        if wait != Wait::Block && !self.take(&key) {
            if wait == Wait::Skip {
                return Ok(false);
            }
            let error = format!("could not obtain lock on row in relation \"{}\"", locked.table.name);
            return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error).into());
        }
        self.reserve(&key, deadline_us).await?;
        // Others may have written it since the transaction began. It is told now, and not when the
        // transaction commits after it has done its work.
        if self.can_start_over() && self.is_outdated(space(&locked.table), key).await? {
            return Err(Stop::Conflict(
                "another transaction has written a row that was to be reserved".into(),
            ));
        }
        Ok(true)
    }

    /// Reserves a row if no other session has it. Says whether none has.
    fn take(&mut self, key: &[u8]) -> bool {
        let (table, session) = (self.reserved.table(), self.reserved.session);
        if self.reserved.keys.len() >= RESERVED_MAX {
            return !table.is_of_another(session, key);
        }
        let is_free = table.ask(session, key, false) == Answer::Granted;
        if is_free {
            self.reserved.keys.insert(key.to_vec());
        }
        is_free
    }

    /// Whether a row is another one by now than the transaction sees.
    async fn is_outdated(&mut self, space: Space, key: Vec<u8>) -> Result<bool, Stop> {
        // Its own rows are newer.
        if self.data.has_written() {
            return Ok(false);
        }
        let keys = [key];
        let seen = self.get(space, &keys).await?;
        let newest = self.get_newest(space, &keys);
        if !self.world.store().has_locks() {
            return Ok(newest.await? != seen);
        }
        // Reading waits for who writes the row, who may wait for locks of this transaction.
        match within(self.world.sleep(HELD_US), newest).await {
            Some(newest) => Ok(newest? != seen),
            None => Ok(true),
        }
    }

    /// Waits until the session has a row. Returns false if it has waited for `held_us` microseconds
    /// before.
    async fn wait_for(&self, key: &[u8], deadline_us: Option<i64>, held_us: u64) -> Result<bool, SqlError> {
        let (table, session) = (self.reserved.table(), self.reserved.session);
        let since_us = self.world.now_us();
        let limit_us = self.settings.number("lock_timeout").saturating_mul(1000);
        let mut waiting = Waiting { table, session, key, has_got: false };
        loop {
            let before = u64::try_from(table.before(session, key)).unwrap_or(u64::MAX);
            if before == 0 {
                break;
            }
            self.world.sleep(before.saturating_mul(before).saturating_mul(LOOK_US).min(LOOK_MAX_US)).await;
            self.check_time(deadline_us)?;
            let waited_us = self.world.now_us().saturating_sub(since_us);
            if u64::try_from(waited_us).is_ok_and(|waited_us| waited_us >= held_us) {
                return Ok(false);
            }
            if limit_us > 0 && waited_us >= limit_us {
                let error = "canceling statement due to lock timeout";
                return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error));
            }
        }
        waiting.has_got = true;
        Ok(true)
    }
}

/// What a future comes to; `None` if another ends before.
async fn within<T>(end: impl Future<Output = ()>, result: impl Future<Output = T>) -> Option<T> {
    let (mut end, mut result) = (pin!(end), pin!(result));
    poll_fn(|context| match result.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> BTreeSet<Vec<u8>> {
        keys.iter().map(|key| key.as_bytes().to_vec()).collect()
    }

    #[test]
    fn rows_go_to_those_who_wait_in_the_order_in_which_they_came() {
        let table = Reservations::default();
        assert_eq!(table.ask(1, b"a", true), Answer::Granted);
        assert_eq!(table.ask(1, b"a", true), Answer::Granted);
        assert_eq!(table.ask(2, b"a", true), Answer::Waits);
        assert_eq!(table.ask(3, b"a", true), Answer::Waits);
        assert_eq!(table.ask(4, b"a", false), Answer::Waits);
        table.release(1, &keys(&["a"]));
        assert_eq!((table.before(2, b"a"), table.before(3, b"a")), (0, 1));
        // What another has is not given back.
        table.release(1, &keys(&["a"]));
        table.leave(3);
        table.release(2, &keys(&["a"]));
        assert_eq!(table.ask(5, b"a", true), Answer::Granted);
    }

    #[test]
    fn who_closes_a_circle_does_not_wait() {
        let table = Reservations::default();
        for (session, key) in [(1, b"a"), (2, b"b"), (3, b"c")] {
            assert_eq!(table.ask(session, key, true), Answer::Granted);
        }
        assert_eq!(table.ask(1, b"b", true), Answer::Waits);
        assert_eq!(table.ask(2, b"c", true), Answer::Waits);
        assert_eq!(table.ask(3, b"a", true), Answer::Circle);
        assert_eq!(table.ask(4, b"a", true), Answer::Waits);
        table.release(3, &keys(&["c"]));
        assert_eq!(table.before(2, b"c"), 0);
        // The circle is found although its last edge came by a grant.
        table.release(2, &keys(&["b"]));
        assert_eq!(table.before(1, b"b"), 0);
        assert_eq!(table.ask(1, b"c", true), Answer::Waits);
        assert_eq!(table.ask(2, b"a", true), Answer::Circle);
    }

    #[test]
    fn a_row_is_given_back_that_came_when_it_was_wanted_no_more() {
        let table = Reservations::default();
        assert_eq!(table.ask(1, b"a", true), Answer::Granted);
        for (session, has_got) in [(2, true), (3, false)] {
            assert_eq!(table.ask(session, b"a", true), Answer::Waits);
            let waiting = Waiting { table: &table, session, key: b"a", has_got };
            table.release(session - 1, &keys(&["a"]));
            assert_eq!(table.before(session, b"a"), 0);
            drop(waiting);
        }
        assert_eq!(table.ask(4, b"a", false), Answer::Granted);
    }

    #[test]
    fn nothing_is_left_of_those_who_are_gone() {
        let places = Places::new(0, 1);
        let mut one = Reserved::new(places.clone(), 1);
        assert_eq!(one.table().ask(1, b"a", true), Answer::Granted);
        one.keys.insert(b"a".to_vec());
        assert_eq!(places.reservations().ask(2, b"a", true), Answer::Waits);
        drop(Reserved::new(places.clone(), 2));
        drop(one);
        let left = places.reservations().with(|table| (table.rows.len(), table.waits.len()));
        assert_eq!(left, (0, 0));
    }
}
