//! Reservations: which session writes a row next.
//!
//! A statement that writes a row reserves it first, and a second one that would write the same row
//! waits until the transaction of the first is over. Without that both would go on, and the one
//! that commits later would be refused and start again, and again.
//!
//! *Nothing correct rests on a reservation.* The database looks at every commit whether it is
//! serializable; a reservation only decides who goes first. So a transaction with many writes stops
//! reserving, reads need none, and what becomes of a reservation when a node or a message is lost
//! is a question of time only.
//!
//! Whoever has waited has read what is no longer so. It starts again ([`super::journal`]) and keeps
//! what it has reserved, so that nobody is before it the second time. It gives up what it has done
//! before it waits, because with locks in the database (two-phase locking) the one that it waits
//! for could wait for it. A transaction that cannot start again keeps its locks, and so does one
//! with savepoints. Nobody sees such a circle, so these wait for a bounded time only ([`HELD_US`]).
//!
//! Two that wait for each other would wait for ever. A session waits for one row at a time, and all
//! of a node are behind one lock, so who asks last sees the circle: it gives back what it has
//! reserved, and starts again behind the others.
//!
//! **Over nodes.** Each row has a node that keeps its queue: the one that has the row. To ask it
//! takes a message there and back, which would be wasted on rows that nobody else writes. So
//! sessions of other nodes ask it only for rows at which their node has met others lately, and for
//! those that a client locks by itself (`FOR UPDATE`); until then they queue among themselves. A
//! circle over nodes nobody sees at once: a session that has waited for a while sends a probe along
//! the waits, and when it comes back, the session of the circle with the highest number starts
//! again. If a connection breaks, both ends forget what went over it.

mod table;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::ops::Bound;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire;

use table::{Table, Told, Waits};
use words::Word;

pub(super) use table::Answer;

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

/// Sends bytes to the sessions of another node, by one of its shards.
pub type Teller = Rc<dyn Fn(u16, Vec<u8>)>;

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

    /// Asks for a row that is kept here, and for a place in its queue if it may wait.
    pub(super) fn ask(&self, session: u32, key: &[u8], may_wait: bool) -> Answer {
        self.with(|table| table.ask(session, key, may_wait))
    }

    /// A session of this node gives back rows that are kept here.
    #[cfg(test)]
    pub(super) fn release(&self, session: u32, keys: &BTreeSet<Vec<u8>>) {
        self.with(|table| keys.iter().for_each(|key| table.give_up(session, key, &mut Told::new())));
    }

    /// Takes what a shard of another node says, and says what is to be sent, by shards.
    pub(super) fn hear(&self, from: u16, bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        // What is not understood is of no use to anybody.
        let Ok(word) = wire::whole(bytes) else { return Vec::new() };
        let mut told = Told::new();
        self.with(|table| table.hear(from, word, &mut told));
        written(told).collect()
    }

    /// The connection to a shard of another node is new or gone. Says what is to be sent.
    pub(super) fn cut_off(&self, shard: u16) -> Vec<(u16, Vec<u8>)> {
        let mut told = Told::new();
        self.with(|table| table.cut_off(shard, &mut told));
        written(told).collect()
    }
}

fn written(told: Told) -> impl Iterator<Item = (u16, Vec<u8>)> {
    told.into_iter().map(|(shard, word)| (shard, wire::encoded(&word)))
}

/// A session, to the tables of reservations.
#[derive(Clone)]
struct Party {
    places: Arc<Places>,
    session: u32,
    /// Reaches other nodes, if there are any.
    teller: Option<Teller>,
}

impl Party {
    /// Works on the node's table, and sends what it says.
    fn with<T>(&self, call: impl FnOnce(&mut Table, &mut Told) -> T) -> T {
        let mut told = Told::new();
        let result = self.places.reservations().with(|table| call(table, &mut told));
        if let Some(teller) = &self.teller {
            written(told).for_each(|(shard, bytes)| teller(shard, bytes));
        }
        result
    }
}

/// What a session has reserved, given back when it is dropped.
pub(super) struct Reserved {
    party: Party,
    /// The rows, with the shards of other nodes that keep them.
    keys: BTreeMap<Vec<u8>, Option<u16>>,
}

impl Reserved {
    pub(super) fn new(places: Arc<Places>, session: u32, teller: Option<Teller>) -> Reserved {
        Reserved { party: Party { places, session, teller }, keys: BTreeMap::new() }
    }

    /// Asks for a row that is kept here.
    fn ask(&self, key: &[u8], may_wait: bool) -> Answer {
        self.party.places.reservations().ask(self.party.session, key, may_wait)
    }

    /// Gives all back.
    pub(super) fn release(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let session = self.party.session;
        let mut elsewhere: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        let keys = std::mem::take(&mut self.keys);
        self.party.with(|table, told| {
            for (key, keeper) in keys {
                match keeper {
                    None => table.give_up(session, &key, told),
                    Some(shard) => {
                        table.is_back(&key);
                        elsewhere.entry(shard).or_default().push(key);
                    }
                }
            }
            told.extend(elsewhere.into_iter().map(|(shard, keys)| (shard, Word::Release { session, keys })));
        });
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let session = self.party.session;
        self.party.with(|table, told| table.leave(session, told));
        if planted(Mutant::ReservationKept) {
            return;
        }
        self.release();
    }
}

/// A session that waits for a row. If it is dropped before it has got it, it does not want it.
struct Waiting {
    party: Party,
    key: Vec<u8>,
    is_over: bool,
}

impl Waiting {
    fn look(&mut self) -> Waits {
        let state = self.party.with(|table, _| table.look(self.party.session, &self.key));
        self.is_over |= matches!(state, Waits::Got { .. } | Waits::Refused);
        state
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // The row may have come to it since it looked.
        if !self.is_over {
            let Party { session, .. } = self.party;
            self.party.with(|table, told| {
                table.leave(session, told);
                table.give_up(session, &self.key, told);
            });
        }
    }
}

impl<W: World> Session<'_, W> {
    /// Reserves a row that is to be written. If another session has it, waits until it has not;
    /// what was read before that is no longer so, and the transaction starts again if it can.
    pub(super) async fn reserve(&mut self, key: &[u8], deadline_us: Option<i64>) -> Result<(), Stop> {
        self.reserve_at(self.queue(key, false), key, deadline_us).await
    }

    /// The shard of another node that keeps a row.
    fn keeper(&self, key: &[u8]) -> Option<u16> {
        self.reserved.party.teller.as_ref()?;
        self.world.keeper(key)
    }

    /// The shard of another node at which the session queues for a row that its client wants for
    /// itself, or not; none if it queues among the sessions of its node.
    fn queue(&self, key: &[u8], wants: bool) -> Option<u16> {
        let keeper = self.keeper(key)?;
        let now_us = self.world.now_us();
        let is_away = self.reserved.party.with(|table, _| table.queues_away(key, keeper, wants, now_us));
        is_away.then_some(keeper)
    }

    /// The shard that keeps a row has said nothing.
    fn note_silence(&self, shard: u16) {
        let now_us = self.world.now_us();
        self.reserved.party.with(|table, _| table.is_silent(shard, now_us));
    }

    /// The transaction was refused because of another: those that write the same rows on other nodes
    /// do not see what it has reserved on its own.
    pub(super) fn warm_rows(&self) {
        let now_us = self.world.now_us();
        for (key, keeper) in &self.reserved.keys {
            if keeper.is_none() && self.keeper(key).is_some() {
                self.reserved.party.with(|table, _| table.warm(key, now_us));
            }
        }
    }

    async fn reserve_at(
        &mut self,
        mut keeper: Option<u16>,
        key: &[u8],
        deadline_us: Option<i64>,
    ) -> Result<(), Stop> {
        if self.reserved.keys.contains_key(key) || self.reserved.keys.len() >= RESERVED_MAX {
            return Ok(());
        }
        let mut asked = None;
        if let Some(shard) = keeper {
            let mut waiting = self.ask_keeper(shard, key, true);
            match self.first_answer(&mut waiting).await {
                Waits::Got { has_waited: false } => {
                    self.reserved.keys.insert(key.to_vec(), keeper);
                    return Ok(());
                }
                Waits::Asked => {
                    self.note_silence(shard);
                    keeper = None;
                }
                _ => {
                    let now_us = self.world.now_us();
                    self.reserved.party.with(|table, _| table.warm(key, now_us));
                    asked = Some(waiting);
                }
            }
        }
        let mut waiting = match asked {
            Some(waiting) => waiting,
            None => match self.reserved.ask(key, true) {
                Answer::Granted => {
                    self.reserved.keys.insert(key.to_vec(), None);
                    return Ok(());
                }
                Answer::Circle => return Err(self.circle()),
                Answer::Waits => {
                    Waiting { party: self.reserved.party.clone(), key: key.to_vec(), is_over: false }
                }
            },
        };
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
        let waited = self.wait_for(&mut waiting, keeper, deadline_us, held_us).await;
        self.waited_us += self.world.now_us().saturating_sub(since_us);
        match waited? {
            Waited::Got => {}
            Waited::Circle => return Err(self.circle()),
            Waited::TooLong => {
                self.reserved.release();
                return Err(Stop::Conflict("two transactions may have been waiting for each other".into()));
            }
        }
        self.reserved.keys.insert(key.to_vec(), keeper);
        match starts_over {
            true => Err(Stop::Conflict("another transaction was writing the same row".into())),
            // If the other one has not written after all, this one can still commit.
            false => Ok(()),
        }
    }

    /// It would wait for ever, and gives way.
    fn circle(&mut self) -> Stop {
        self.reserved.release();
        Stop::Conflict("two transactions were waiting for each other".into())
    }

    /// Asks the shard of another node that keeps a row.
    fn ask_keeper(&self, shard: u16, key: &[u8], may_wait: bool) -> Waiting {
        let party = self.reserved.party.clone();
        party.with(|table, told| table.ask_keeper(shard, party.session, key, may_wait, told));
        Waiting { party, key: key.to_vec(), is_over: false }
    }

    /// What a row's keeper says first; that it was asked, if it says nothing.
    async fn first_answer(&self, waiting: &mut Waiting) -> Waits {
        let since_us = self.world.now_us();
        loop {
            let state = waiting.look();
            let waited_us = self.world.now_us().saturating_sub(since_us);
            if state != Waits::Asked || waited_us >= ANSWER_US {
                return state;
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
            return Err(Stop::Conflict(
                "another transaction has written a row that was to be reserved".into(),
            ));
        }
        Ok(true)
    }

    /// Reserves a row if no other session has it. Says whether none has.
    async fn take(&mut self, mut keeper: Option<u16>, key: &[u8]) -> bool {
        if self.reserved.keys.len() >= RESERVED_MAX {
            let Party { session, .. } = self.reserved.party;
            return self.reserved.party.with(|table, _| !table.is_of_another(session, key));
        }
        let mut is_free = false;
        if let Some(shard) = keeper {
            let mut waiting = self.ask_keeper(shard, key, false);
            match self.first_answer(&mut waiting).await {
                Waits::Got { .. } => is_free = true,
                Waits::Asked => {
                    self.note_silence(shard);
                    keeper = None;
                }
                _ => {}
            }
        }
        if keeper.is_none() {
            is_free = self.reserved.ask(key, false) == Answer::Granted;
        }
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

    /// Waits until the session has a row, for `held_us` microseconds at most.
    async fn wait_for(
        &self,
        waiting: &mut Waiting,
        keeper: Option<u16>,
        deadline_us: Option<i64>,
        held_us: u64,
    ) -> Result<Waited, SqlError> {
        let since_us = self.world.now_us();
        let limit_us = self.settings.number("lock_timeout").saturating_mul(1000);
        let look_max_us = if keeper.is_some() { LOOK_MAX_ELSEWHERE_US } else { LOOK_MAX_US };
        let mut probe_us = PROBE_US;
        loop {
            let before = match waiting.look() {
                Waits::Got { .. } | Waits::Refused => return Ok(Waited::Got),
                Waits::Circle => return Ok(Waited::Circle),
                Waits::Asked => 1,
                Waits::Behind(before) => u64::try_from(before).unwrap_or(u64::MAX),
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
            if waiting.party.teller.is_some() && waited_us >= probe_us {
                probe_us = waited_us.saturating_add(waited_us.min(PROBE_MAX_US));
                waiting.party.with(|table, told| table.probe(waiting.party.session, told));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// How many sessions are before one; none if it has the row.
    fn before(table: &Reservations, session: u32, key: &[u8]) -> usize {
        match table.with(|table| table.look(session, key)) {
            Waits::Behind(before) => before,
            _ => 0,
        }
    }

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
        assert_eq!((before(&table, 2, b"a"), before(&table, 3, b"a")), (0, 1));
        // What another has is not given back.
        table.release(1, &keys(&["a"]));
        table.with(|table| table.leave(3, &mut Told::new()));
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
        assert_eq!(before(&table, 2, b"c"), 0);
        // The circle is found although its last edge came by a grant.
        table.release(2, &keys(&["b"]));
        assert_eq!(before(&table, 1, b"b"), 0);
        assert_eq!(table.ask(1, b"c", true), Answer::Waits);
        assert_eq!(table.ask(2, b"a", true), Answer::Circle);
    }

    #[test]
    fn a_row_is_given_back_that_came_when_it_was_wanted_no_more() {
        let places = Places::new(0, 1);
        let table = places.reservations();
        assert_eq!(table.ask(1, b"a", true), Answer::Granted);
        for (session, is_over) in [(2, true), (3, false)] {
            assert_eq!(table.ask(session, b"a", true), Answer::Waits);
            let party = Party { places: places.clone(), session, teller: None };
            let waiting = Waiting { party, key: b"a".to_vec(), is_over };
            table.release(session - 1, &keys(&["a"]));
            assert_eq!(before(table, session, b"a"), 0);
            drop(waiting);
        }
        assert_eq!(table.ask(4, b"a", false), Answer::Granted);
    }

    #[test]
    fn nothing_is_left_of_those_who_are_gone() {
        let places = Places::new(0, 1);
        let mut one = Reserved::new(places.clone(), 1, None);
        assert_eq!(places.reservations().ask(1, b"a", true), Answer::Granted);
        one.keys.insert(b"a".to_vec(), None);
        assert_eq!(places.reservations().ask(2, b"a", true), Answer::Waits);
        drop(Reserved::new(places.clone(), 2, None));
        drop(one);
        assert_eq!(places.reserved(), 0);
    }

    /// Three nodes, and what is on its way between them. The shard of a node has its number, and so
    /// has its first session, in hundreds.
    struct Nodes {
        tables: [Table; 3],
        sent: VecDeque<(u16, u16, Word)>,
    }

    impl Nodes {
        fn new() -> Nodes {
            Nodes { tables: std::array::from_fn(|_| Table::default()), sent: VecDeque::new() }
        }

        fn at<T>(&mut self, node: u16, call: impl FnOnce(&mut Table, &mut Told) -> T) -> T {
            let mut told = Told::new();
            let result = call(&mut self.tables[usize::from(node)], &mut told);
            self.sent.extend(told.into_iter().map(|(to, word)| (node, to, word)));
            result
        }

        fn deliver(&mut self) {
            while let Some((from, to, word)) = self.sent.pop_front() {
                assert_eq!(wire::whole::<Word>(&wire::encoded(&word)), Ok(word.clone()));
                self.at(to, |table, told| table.hear(from, word, told));
            }
        }

        /// A session asks for a row that a node keeps; what it sees then.
        fn ask(&mut self, session: u32, keeper: u16, key: &[u8], may_wait: bool) -> Waits {
            let node = u16::try_from(session / 100).unwrap();
            if node == keeper {
                return match self.at(node, |table, _| table.ask(session, key, may_wait)) {
                    Answer::Granted => Waits::Got { has_waited: false },
                    Answer::Waits => Waits::Behind(1),
                    Answer::Circle => Waits::Circle,
                };
            }
            self.at(node, |table, told| table.ask_keeper(keeper, session, key, may_wait, told));
            assert_eq!(self.look(session, key), Waits::Asked);
            self.deliver();
            self.look(session, key)
        }

        fn look(&mut self, session: u32, key: &[u8]) -> Waits {
            self.at(u16::try_from(session / 100).unwrap(), |table, _| table.look(session, key))
        }

        fn release(&mut self, session: u32, keeper: u16, key: &[u8]) {
            let node = u16::try_from(session / 100).unwrap();
            self.at(node, |table, told| match node == keeper {
                true => table.give_up(session, key, told),
                false => told.push((keeper, Word::Release { session, keys: vec![key.to_vec()] })),
            });
            self.deliver();
        }
    }

    #[test]
    fn sessions_of_all_nodes_wait_in_one_queue() {
        let mut nodes = Nodes::new();
        assert_eq!(nodes.ask(100, 0, b"a", true), Waits::Got { has_waited: false });
        assert_eq!(nodes.ask(200, 0, b"a", false), Waits::Refused);
        assert_eq!(nodes.ask(200, 0, b"a", true), Waits::Behind(1));
        assert_eq!(nodes.ask(101, 0, b"a", true), Waits::Behind(2));
        assert_eq!(nodes.ask(1, 0, b"a", true), Waits::Behind(1), "it looks by itself");
        assert_eq!(nodes.look(1, b"a"), Waits::Behind(3));
        nodes.release(100, 0, b"a");
        assert_eq!(nodes.look(200, b"a"), Waits::Got { has_waited: true });
        assert_eq!((nodes.look(101, b"a"), nodes.look(1, b"a")), (Waits::Behind(1), Waits::Behind(2)));
        // One in the middle does not want it any more.
        nodes.at(0, |table, told| table.leave(1, told));
        nodes.release(200, 0, b"a");
        assert_eq!(nodes.look(101, b"a"), Waits::Got { has_waited: true });
        nodes.release(101, 0, b"a");
        assert!(nodes.tables.iter().all(|table| table.size() == 0));
    }

    #[test]
    fn a_circle_over_nodes_is_left_by_its_last_session() {
        let mut nodes = Nodes::new();
        for (session, keeper, key) in [(0, 1, b"b"), (100, 2, b"c"), (200, 0, b"a"), (1, 1, b"d")] {
            assert_eq!(nodes.ask(session, keeper, key, true), Waits::Got { has_waited: false });
        }
        for (session, keeper, key) in [(0, 0, b"a"), (100, 1, b"b"), (200, 2, b"c"), (101, 2, b"c")] {
            assert!(matches!(nodes.ask(session, keeper, key, true), Waits::Behind(_)));
        }
        // The last one waits for the circle, and is not in it.
        for (session, key, is_last) in
            [(0, b"a", false), (101, b"c", false), (100, b"b", false), (200, b"c", true)]
        {
            nodes.at(u16::try_from(session / 100).unwrap(), |table, told| table.probe(session, told));
            nodes.deliver();
            assert_eq!(nodes.look(session, key) == Waits::Circle, is_last, "{session}");
        }
    }

    #[test]
    fn a_connection_that_breaks_leaves_nobody_waiting() {
        let mut nodes = Nodes::new();
        assert_eq!(nodes.ask(100, 0, b"a", true), Waits::Got { has_waited: false });
        assert_eq!(nodes.ask(101, 0, b"a", true), Waits::Behind(1));
        assert_eq!(nodes.ask(200, 0, b"a", true), Waits::Behind(2));
        nodes.at(0, |table, told| table.cut_off(1, told));
        nodes.at(1, |table, told| table.cut_off(0, told));
        nodes.deliver();
        assert_eq!(nodes.look(200, b"a"), Waits::Got { has_waited: true }, "those before it are gone");
        assert_eq!(nodes.look(101, b"a"), Waits::Got { has_waited: true }, "it goes on without");
        // What was reserved there is given back in vain.
        nodes.release(100, 0, b"a");
        assert_eq!(nodes.ask(1, 0, b"a", false), Waits::Behind(1));
        // A queue that was lost is noticed by a probe.
        assert_eq!(nodes.ask(101, 0, b"a", true), Waits::Behind(1));
        nodes.tables[0] = Table::default();
        nodes.at(1, |table, told| table.probe(101, told));
        nodes.deliver();
        assert_eq!(nodes.look(101, b"a"), Waits::Got { has_waited: true });
    }

    #[test]
    fn sessions_of_a_node_queue_in_one_place() {
        let mut nodes = Nodes::new();
        let away = |nodes: &mut Nodes, wants, now_us| {
            nodes.at(1, |table, _| table.queues_away(b"a", 0, wants, now_us))
        };
        assert!(away(&mut nodes, true, 0) && !away(&mut nodes, false, 0));
        // One of them has it among themselves.
        assert_eq!(nodes.ask(100, 1, b"a", true), Waits::Got { has_waited: false });
        assert!(!away(&mut nodes, true, 0));
        nodes.release(100, 1, b"a");
        // One of them has asked its keeper.
        assert_eq!(nodes.ask(100, 0, b"a", true), Waits::Got { has_waited: false });
        assert!(away(&mut nodes, false, 0));
        assert_eq!(nodes.ask(101, 0, b"a", false), Waits::Refused);
        assert_eq!(nodes.tables[1].waiting().count(), 0, "who is refused does not wait");
        nodes.at(1, |table, _| table.is_back(b"a"));
        nodes.release(100, 0, b"a");
        assert!(!away(&mut nodes, false, 0));
        // Nobody is asked who says nothing.
        nodes.at(1, |table, _| table.is_silent(0, 5));
        assert!(!away(&mut nodes, true, 1_000_004) && away(&mut nodes, true, 1_000_005));
    }

    #[test]
    fn a_row_is_hot_while_others_are_met_at_it() {
        let mut table = Table::default();
        let is_hot = |table: &Table, key, now_us| table.queues_away(key, 0, false, now_us);
        table.warm(b"a", 0);
        assert!(!is_hot(&table, b"a", 1), "once is chance");
        table.warm(b"a", 10);
        assert!(
            is_hot(&table, b"a", 1_000_009) && !is_hot(&table, b"a", 1_000_010) && !is_hot(&table, b"b", 11)
        );
        table.warm(b"a", 2_000_000);
        assert!(!is_hot(&table, b"a", 2_000_001));
        (0..10_000u32).for_each(|key| table.warm(&key.to_be_bytes(), 2_000_000));
        table.warm(b"a", 2_000_000);
        assert!(is_hot(&table, b"a", 2_000_001), "room is made for what is old only");
    }

    #[test]
    fn no_bytes_panic() {
        let table = Reservations::default();
        let mut random = plimsoll_types::random::Rng::new(7, 1);
        for _ in 0..20_000 {
            let length = random.below(24);
            let bytes: Vec<u8> = (0..length).map(|_| random.below(8) as u8).collect();
            table.hear(random.below(3) as u16, &bytes);
        }
    }
}
