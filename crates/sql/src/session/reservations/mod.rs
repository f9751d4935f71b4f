//! Reservations decide which session writes a row next.
//!
//! A statement that writes a row reserves it first, and a second one that would write the same row
//! waits until the transaction of the first is over. Without that both would go on, and the one
//! that commits later would be refused and start again, and again.
//!
//! *Nothing correct rests on a reservation.* The database looks at every commit whether it is
//! serializable; a reservation only decides who goes first. So a transaction with many writes stops
//! reserving, reads need no reservation, and a node or a message that is lost costs time only.
//!
//! A session that has waited has read what is no longer so. It starts again ([`super::journal`])
//! and keeps what it has reserved, so that nobody is before it the second time. It gives up what it
//! has done before it waits, because with locks in the database (two-phase locking) the one that it
//! waits for could wait for it. A transaction that cannot start again keeps its locks, and so does
//! one with savepoints. Nobody sees such a circle, so these wait for a bounded time only
//! ([`HELD_US`]).
//!
//! Two sessions that wait for each other would wait for ever. A session waits for one row at a
//! time, and all sessions and queues of a node are behind one lock, so the session that asks last
//! sees a circle on its node: it gives back what it has reserved, and starts again behind the
//! others.
//!
//! **Over nodes.** Each row has a *keeper*, the node that has the row, which keeps the queue for
//! sessions of all nodes. Asking it takes a message there and back, which would be wasted on rows
//! that nobody else writes. So sessions of other nodes ask it only for rows at which their node has
//! met others lately, and for those that a client locks by itself (`FOR UPDATE`); until then they
//! queue among themselves. No session sees a circle over nodes at once: one that has waited for a
//! while sends a probe along the waits, and when the probe comes back, the session of the circle
//! with the highest number starts again. If a connection breaks, both ends forget what went over
//! it. The rules are in docs/protocols/reservations.md.

mod messages;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::ops::Bound;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire;

use messages::Message;
pub(super) use table::Progress;
use table::{Outgoing, Table};

use super::cancel::Places;
use super::conversation::Session;
use super::trace::Trace;
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

/// The same for a row that another node keeps. How many are before it the session hears when it
/// asks, and when it comes to the front.
const LOOK_MAX_ELSEWHERE_US: u64 = 500;

/// How long a session waits for another at most while its transaction holds locks for which the
/// other one may wait, in microseconds, if the transaction can start again.
const HELD_US: u64 = 100_000;

/// The same if it cannot: then its client gets a serialization failure.
const HELD_LAST_US: u64 = 1_000_000;

/// How long a session waits for the first answer of a row's keeper, in microseconds. If there is
/// none, it queues among the sessions of its node.
const ANSWER_US: i64 = 100_000;

/// How long a session waits until it sends a first probe, in microseconds. The next ones come when
/// it has waited twice as long, and every [`PROBE_MAX_US`] at last.
const PROBE_US: i64 = 10_000;

/// See [`PROBE_US`].
const PROBE_MAX_US: i64 = 160_000;

/// Rows that are looked at before those that reserve some can go on.
const SHOWN_AT_ONCE: usize = 1024;

#[expect(clippy::disallowed_types, reason = "sessions of all shards of a node meet here")]
type Lock<T> = std::sync::Mutex<T>;

/// What a node knows of who writes which row next.
#[derive(Default)]
pub struct Reservations(Lock<Table>);

/// Sends a message to the sessions of another node, by one of its shards.
pub type Sender = Rc<dyn Fn(u16, Vec<u8>)>;

impl Reservations {
    fn with<T>(&self, call: impl FnOnce(&mut Table) -> T) -> T {
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rows that are reserved here, and sessions that wait for one.
    pub(super) fn size(&self) -> usize {
        self.with(|table| table.size())
    }

    /// All rows that are reserved here. Sessions can reserve others while it looks.
    pub(super) fn all(&self) -> Vec<ShownLock> {
        let mut all: Vec<ShownLock> = Vec::new();
        loop {
            let from = all.last().map_or(Bound::Unbounded, |last| Bound::Excluded(last.key.as_slice()));
            let more: Vec<ShownLock> = self.with(|table| {
                let rows = table.rows_from(from).take(SHOWN_AT_ONCE);
                rows.map(|(key, holder, waiters)| ShownLock {
                    key: key.clone(),
                    holder,
                    waiters: waiters.collect(),
                })
                .collect()
            });
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    /// How many rows each session has reserved here, and which sessions of this node wait for one.
    pub(super) fn counts(&self) -> (BTreeMap<u32, usize>, BTreeSet<u32>) {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.with(|table| {
                let rows = table.rows_from(from).take(SHOWN_AT_ONCE);
                rows.inspect(|(_, holder, _)| *counts.entry(*holder).or_default() += 1)
                    .last()
                    .map(|(key, ..)| key.clone())
            });
            if next.is_none() {
                return (counts, self.with(|table| table.waiting().collect()));
            }
            last = next;
        }
    }

    /// A session of this node asks for a row whose queue this node keeps, and for a place in the
    /// queue if it may wait.
    #[cfg(test)]
    pub(super) fn ask(&self, session: u32, key: &[u8], may_wait: bool) -> Progress {
        self.with(|table| table.ask(session, key, may_wait))
    }

    /// A session of this node gives back rows whose queues this node keeps.
    #[cfg(test)]
    pub(super) fn release(&self, session: u32, keys: &BTreeSet<Vec<u8>>) {
        self.with(|table| keys.iter().for_each(|key| table.give_up(session, key, &mut Outgoing::new())));
    }

    /// Receives a message, which has come from a shard of another node. Returns messages that are to
    /// be sent, each with the shard that it is for.
    pub(super) fn receive(&self, from: u16, bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        // Bytes that are no message come from another program only.
        let Ok(message) = wire::whole(bytes) else { return Vec::new() };
        let mut out = Outgoing::new();
        self.with(|table| table.receive(from, message, &mut out));
        written(out).collect()
    }

    /// Messages to a shard of another node, and from it, may be lost. Returns messages that are to be
    /// sent.
    pub(super) fn disconnected(&self, peer: u16) -> Vec<(u16, Vec<u8>)> {
        let mut out = Outgoing::new();
        self.with(|table| table.disconnected(peer, &mut out));
        written(out).collect()
    }
}

fn written(out: Outgoing) -> impl Iterator<Item = (u16, Vec<u8>)> {
    out.into_iter().map(|(shard, message)| (shard, wire::encoded(&message)))
}

/// A session that asks for rows.
#[derive(Clone)]
struct Asker {
    places: Arc<Places>,
    session: u32,
    /// Sends messages to other nodes, if there are any.
    sender: Option<Sender>,
}

impl Asker {
    /// Works on the node's table, and sends the messages that come of it.
    fn with<T>(&self, call: impl FnOnce(&mut Table, &mut Outgoing) -> T) -> T {
        let mut out = Outgoing::new();
        let result = self.places.reservations().with(|table| call(table, &mut out));
        if let Some(sender) = &self.sender {
            written(out).for_each(|(shard, bytes)| sender(shard, bytes));
        }
        result
    }
}

/// What a session has reserved, given back when it is dropped.
pub(super) struct Reserved {
    asker: Asker,
    /// The rows, with the shards of other nodes that keep them.
    keys: BTreeMap<Vec<u8>, Option<u16>>,
}

impl Reserved {
    pub(super) fn new(places: Arc<Places>, session: u32, sender: Option<Sender>) -> Reserved {
        Reserved { asker: Asker { places, session, sender }, keys: BTreeMap::new() }
    }

    /// Gives all back.
    pub(super) fn release(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let session = self.asker.session;
        let mut elsewhere: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        let keys = std::mem::take(&mut self.keys);
        self.asker.with(|table, out| {
            for (key, keeper) in keys {
                match keeper {
                    None => table.give_up(session, &key, out),
                    Some(shard) => {
                        table.returned(&key);
                        elsewhere.entry(shard).or_default().push(key);
                    }
                }
            }
            out.extend(
                elsewhere.into_iter().map(|(shard, keys)| (shard, Message::Release { session, keys })),
            );
        });
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let session = self.asker.session;
        self.asker.with(|table, out| table.leave(session, out));
        if planted(Mutant::ReservationKept) {
            return;
        }
        self.release();
    }
}

/// The wait of a session for a row. If it is dropped, the session does not want the row.
struct Waiting {
    asker: Asker,
    /// The shard of another node that keeps the row's queue.
    keeper: Option<u16>,
    key: Vec<u8>,
    is_kept: bool,
}

impl Waiting {
    fn look(&self) -> Progress {
        self.asker.with(|table, _| table.look(self.asker.session, &self.key))
    }

    /// The session has got the row, and gives it back by itself.
    fn keep(mut self) {
        self.is_kept = true;
        self.asker.with(|table, _| table.keep(self.asker.session));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let Asker { session, .. } = self.asker;
        self.asker.with(|table, out| {
            table.leave(session, out);
            // This node may have given the row to the session since that looked.
            if self.keeper.is_none() {
                table.give_up(session, &self.key, out);
            }
        });
    }
}

impl<W: World> Session<'_, W> {
    /// Reserves a row that is to be written. If another session has it, waits until it has not;
    /// what was read before that is no longer so, and the transaction starts again if it can. So it
    /// does if another has written the row since it began, and need not find out when it commits.
    pub(super) async fn reserve(&mut self, key: &[u8], deadline_us: Option<i64>) -> Result<(), Stop> {
        if self.reserved.keys.contains_key(key) {
            return Ok(());
        }
        self.reserve_at(self.queue(key, false), key, deadline_us).await?;
        let is_reserved = self.reserved.keys.contains_key(key);
        match is_reserved && self.is_overwritten(key) && self.can_start_over() {
            true => Err(outdated()),
            false => Ok(()),
        }
    }

    /// The shard of another node that keeps a row.
    fn keeper(&self, key: &[u8]) -> Option<u16> {
        self.reserved.asker.sender.as_ref()?;
        self.world.keeper(key)
    }

    /// The shard of another node at which the session queues for a row; none if it queues among the
    /// sessions of its node. `locks` says that the client locks the row by itself.
    fn queue(&self, key: &[u8], locks: bool) -> Option<u16> {
        let keeper = self.keeper(key)?;
        let now_us = self.world.now_us();
        let asks = self.reserved.asker.with(|table, _| table.queues_at_keeper(key, keeper, locks, now_us));
        asks.then_some(keeper)
    }

    /// The transaction was refused because of another: those that write the same rows on other nodes
    /// do not see what it has reserved on its own.
    pub(super) fn warm_rows(&self) {
        let now_us = self.world.now_us();
        for (key, keeper) in &self.reserved.keys {
            if keeper.is_none() && self.keeper(key).is_some() {
                self.reserved.asker.with(|table, _| table.warm(key, now_us));
            }
        }
    }

    async fn reserve_at(
        &mut self,
        keeper: Option<u16>,
        key: &[u8],
        deadline_us: Option<i64>,
    ) -> Result<(), Stop> {
        if self.reserved.keys.contains_key(key) || self.reserved.keys.len() >= RESERVED_MAX {
            return Ok(());
        }
        let (keeper, asked) = self.ask(keeper, key, true).await;
        let waiting = match asked {
            Ok(Progress::Circle) => return Err(self.circle()),
            Ok(_) => {
                self.reserved.keys.insert(key.to_vec(), keeper);
                return Ok(());
            }
            Err(waiting) => waiting,
        };
        if keeper.is_some() {
            let now_us = self.world.now_us();
            self.reserved.asker.with(|table, _| table.warm(key, now_us));
        }
        let starts_over = self.can_start_over();
        // The other one may wait for locks that this one has in the database. With savepoints they
        // are kept, since an error of this statement need not be the end of the block.
        if starts_over && self.transaction.level() == 0 {
            if let Some(open) = &mut self.data.open {
                let trace = std::mem::replace(&mut open.trace, Trace::none());
                self.keep_trace(trace);
            }
            self.abandon().await;
        }
        let held_us = match self.data.may_hold_locks() && self.world.store().has_locks() {
            true if starts_over => HELD_US,
            true => HELD_LAST_US,
            false => u64::MAX,
        };
        let since_us = self.world.now_us();
        let waited = self.wait_for(&waiting, deadline_us, held_us).await;
        self.waited_us += self.world.now_us().saturating_sub(since_us);
        match waited? {
            Waited::Got => {}
            Waited::Circle => return Err(self.circle()),
            Waited::TooLong => {
                self.give_way();
                return Err(Stop::Conflict("two transactions may have been waiting for each other".into()));
            }
        }
        waiting.keep();
        self.reserved.keys.insert(key.to_vec(), keeper);
        match starts_over {
            true => Err(Stop::Conflict("another transaction was writing the same row".into())),
            // If the other one has not written after all, this one can still commit.
            false => Ok(()),
        }
    }

    /// Gives back what is reserved. The statements have to be run again, and not only what they have
    /// done, so that their rows are reserved again, behind the others.
    fn give_way(&mut self) {
        self.reserved.release();
        self.say_all_again();
    }

    /// It would wait for ever, and gives way.
    fn circle(&mut self) -> Stop {
        self.give_way();
        Stop::Conflict("two transactions were waiting for each other".into())
    }

    /// Asks for a row: the shard of another node that keeps its queue, or this node if there is no
    /// such shard or it does not answer. Returns where the session has asked, and how far it is, or
    /// its wait if it has to wait, or has waited.
    async fn ask(
        &self,
        keeper: Option<u16>,
        key: &[u8],
        may_wait: bool,
    ) -> (Option<u16>, Result<Progress, Waiting>) {
        let asker = &self.reserved.asker;
        let waiting = |keeper| Waiting { asker: asker.clone(), keeper, key: key.to_vec(), is_kept: false };
        if let Some(shard) = keeper {
            asker.with(|table, out| table.ask_keeper(shard, asker.session, key, may_wait, out));
            let waiting = waiting(keeper);
            match self.first_answer(&waiting).await {
                Progress::Asked => {
                    let now_us = self.world.now_us();
                    asker.with(|table, _| table.note_silence(shard, now_us));
                }
                progress @ Progress::Got { has_waited } if !(has_waited && may_wait) => {
                    waiting.keep();
                    return (keeper, Ok(progress));
                }
                Progress::Refused => return (keeper, Ok(Progress::Refused)),
                _ => return (keeper, Err(waiting)),
            }
        }
        let progress = asker.with(|table, _| table.ask(asker.session, key, may_wait));
        match progress {
            Progress::Behind(_) => (None, Err(waiting(None))),
            progress => (None, Ok(progress)),
        }
    }

    /// The first answer of a row's keeper; [`Progress::Asked`] if there is none in time.
    async fn first_answer(&self, waiting: &Waiting) -> Progress {
        let since_us = self.world.now_us();
        loop {
            let progress = waiting.look();
            let waited_us = self.world.now_us().saturating_sub(since_us);
            if progress != Progress::Asked || waited_us >= ANSWER_US {
                return progress;
            }
            self.world.sleep(LOOK_US).await;
        }
    }

    /// Reserves a row that is to be given out. Says whether it is reserved, or left out.
    pub(super) async fn reserve_for(
        &mut self,
        reserve: Reserve,
        deadline_us: Option<i64>,
    ) -> Result<bool, Stop> {
        let Reserve { key, locked, wait } = reserve;
        if self.reserved.keys.contains_key(&key) {
            return Ok(true);
        }
        let keeper = self.queue(&key, true);
        if wait == Wait::Block {
            self.reserve_at(keeper, &key, deadline_us).await?;
        } else if !self.take(keeper, &key).await {
            if wait == Wait::Skip {
                return Ok(false);
            }
            let error = format!("could not obtain lock on row in relation \"{}\"", locked.table.name);
            return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error).into());
        }
        // Others may have written it since the transaction began. It is told now, and not when the
        // transaction commits after it has done its work.
        if self.can_start_over() && self.is_outdated(space(&locked.table), key).await? {
            return Err(outdated());
        }
        Ok(true)
    }

    /// Reserves a row if no other session has it. Says whether none has.
    async fn take(&mut self, keeper: Option<u16>, key: &[u8]) -> bool {
        if self.reserved.keys.len() >= RESERVED_MAX {
            let Asker { session, .. } = self.reserved.asker;
            return self.reserved.asker.with(|table, _| !table.is_of_another(session, key));
        }
        let (keeper, asked) = self.ask(keeper, key, false).await;
        let is_free = matches!(asked, Ok(Progress::Got { .. }));
        if is_free {
            self.reserved.keys.insert(key.to_vec(), keeper);
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

    /// Progress until the session has a row, for `held_us` microseconds at most.
    async fn wait_for(
        &self,
        waiting: &Waiting,
        deadline_us: Option<i64>,
        held_us: u64,
    ) -> Result<Waited, SqlError> {
        let since_us = self.world.now_us();
        let limit_us = self.settings.number("lock_timeout").saturating_mul(1000);
        let look_max_us = if waiting.keeper.is_some() { LOOK_MAX_ELSEWHERE_US } else { LOOK_MAX_US };
        let mut probe_us = PROBE_US;
        loop {
            let before = match waiting.look() {
                Progress::Got { .. } | Progress::Refused => return Ok(Waited::Got),
                Progress::Circle => return Ok(Waited::Circle),
                Progress::Asked => 1,
                Progress::Behind(before) => u64::try_from(before.max(1)).unwrap_or(u64::MAX),
            };
            self.world.sleep(before.saturating_mul(before).saturating_mul(LOOK_US).min(look_max_us)).await;
            self.check_time(deadline_us)?;
            let waited_us = self.world.now_us().saturating_sub(since_us);
            if u64::try_from(waited_us).is_ok_and(|waited_us| waited_us >= held_us) {
                return Ok(Waited::TooLong);
            }
            if limit_us > 0 && waited_us >= limit_us {
                let error = "canceling statement due to lock timeout";
                return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error));
            }
            if waiting.asker.sender.is_some() && waited_us >= probe_us {
                probe_us = waited_us.saturating_add(waited_us.min(PROBE_MAX_US));
                waiting.asker.with(|table, out| table.probe(waiting.asker.session, out));
            }
        }
    }
}

/// The conflict of a transaction that has reserved a row which another has written since it began.
fn outdated() -> Stop {
    Stop::Conflict("another transaction has written a row that was to be reserved".into())
}

/// How a wait has ended.
enum Waited {
    /// The session has the row.
    Got,
    /// It would wait for ever.
    Circle,
    /// Perhaps.
    TooLong,
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
