//! The table: rows that are kept on this node, and what the node's sessions wait for.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_types::mutants::{Mutant, planted};

use super::words::{At, Probe, Word};

/// Steps that a probe goes at most. No circle that matters is longer.
const STEPS_MAX: u16 = 1024;

/// How long a row counts as one that several nodes write, in microseconds since that was seen last.
const HOT_FOR_US: i64 = 1_000_000;

/// How often that has to be seen.
const HOT_FROM: u32 = 2;

/// Rows of which that is remembered at most.
const HOT_MAX: usize = 4096;

/// How long a shard is not asked that has said nothing, in microseconds.
const SILENT_FOR_US: i64 = 1_000_000;

/// Messages, with the shards that they go to.
pub(super) type Told = Vec<(u16, Word)>;

/// A session that has a row or waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Party {
    session: u32,
    /// The shard of another node that it asked by.
    via: Option<u16>,
}

/// A row that is reserved.
struct Row {
    holder: Party,
    queue: VecDeque<Party>,
}

/// What a session of this node waits for.
struct Wait {
    key: Vec<u8>,
    /// The shard of another node that keeps the row.
    keeper: Option<u16>,
    state: Waits,
}

/// How far that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waits {
    /// Nothing has come from the row's keeper.
    Asked,
    /// It waits behind this many.
    Behind(usize),
    /// It has the row, and has waited if another had it.
    Got {
        /// Whether another had it.
        has_waited: bool,
    },
    /// Another has the row, and the session does not wait.
    Refused,
    /// If it went on, it would wait for ever.
    Circle,
}

/// What has become of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::session) enum Answer {
    /// The row is reserved.
    Granted,
    /// It waits in the row's queue.
    Waits,
    /// If it did, it would wait for ever.
    Circle,
}

/// How often it was seen that nodes meet at a row.
struct Heat {
    count: u32,
    seen_us: i64,
}

/// What a node knows of reservations.
#[derive(Default)]
pub(super) struct Table {
    rows: BTreeMap<Vec<u8>, Row>,
    waits: BTreeMap<u32, Wait>,
    /// Rows of other nodes that sessions of this one have met others at.
    heat: BTreeMap<Vec<u8>, Heat>,
    /// When it was last looked which of these are no longer hot, in microseconds.
    cooled_us: i64,
    /// Rows that sessions of this node have, or wait for, at their keepers, and how many.
    away: BTreeMap<Vec<u8>, usize>,
    /// Shards of other nodes that do not answer, and until when they are not asked.
    silent: BTreeMap<u16, i64>,
}

impl Table {
    /// Rows that are reserved here, and sessions of this node that wait for one.
    pub(super) fn size(&self) -> usize {
        self.rows.len() + self.waits.len()
    }

    /// The first rows from a key on that are reserved here: who has each, and who waits.
    pub(super) fn rows_from(
        &self,
        from: std::ops::Bound<&[u8]>,
    ) -> impl Iterator<Item = (&Vec<u8>, u32, impl Iterator<Item = u32>)> {
        let rows = self.rows.range::<[u8], _>((from, std::ops::Bound::Unbounded));
        rows.map(|(key, row)| (key, row.holder.session, row.queue.iter().map(|party| party.session)))
    }

    /// Sessions of this node that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.waits.keys().copied()
    }

    /// A session of this node asks for a row that is kept here, and for a place in its queue if it
    /// may wait.
    pub(super) fn ask(&mut self, session: u32, key: &[u8], may_wait: bool) -> Answer {
        let party = Party { session, via: None };
        match self.ask_for(party, key, may_wait) {
            Waits::Got { .. } => return Answer::Granted,
            Waits::Refused => return Answer::Waits,
            _ => {}
        }
        self.waits.insert(session, Wait { key: key.to_vec(), keeper: None, state: Waits::Asked });
        let holder = self.rows.get(key).map(|row| row.holder.session);
        if holder.is_some_and(|holder| self.leads_to(holder, session)) {
            self.leave(session, &mut Told::new());
            return Answer::Circle;
        }
        Answer::Waits
    }

    /// A session of any node asks for a row that is kept here.
    fn ask_for(&mut self, party: Party, key: &[u8], may_wait: bool) -> Waits {
        let Some(row) = self.rows.get_mut(key) else {
            self.rows.insert(key.to_vec(), Row { holder: party, queue: VecDeque::new() });
            return Waits::Got { has_waited: false };
        };
        if row.holder.session == party.session {
            return Waits::Got { has_waited: false };
        }
        if !may_wait {
            return Waits::Refused;
        }
        if !row.queue.iter().any(|waiting| waiting.session == party.session) {
            row.queue.push_back(party);
        }
        let place = row.queue.iter().position(|waiting| waiting.session == party.session);
        Waits::Behind(1 + place.unwrap_or_default())
    }

    /// A session of this node asks the shard that keeps a row on another.
    pub(super) fn ask_keeper(
        &mut self,
        keeper: u16,
        session: u32,
        key: &[u8],
        may_wait: bool,
        told: &mut Told,
    ) {
        *self.away.entry(key.to_vec()).or_default() += 1;
        let wait = Wait { key: key.to_vec(), keeper: Some(keeper), state: Waits::Asked };
        self.waits.insert(session, wait);
        told.push((keeper, Word::Ask { session, key: key.to_vec(), may_wait }));
    }

    /// A session of this node neither has nor wants a row any more at its keeper.
    pub(super) fn is_back(&mut self, key: &[u8]) {
        if let Some(count) = self.away.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.away.remove(key);
            }
        }
    }

    /// Whether a session of this node queues at a row's keeper, and not among the sessions of its
    /// node. It does where others of its node do, and if nodes meet there; and if the client wants
    /// the row for itself, unless others of its node queue here.
    pub(super) fn queues_away(&self, key: &[u8], keeper: u16, wants: bool, now_us: i64) -> bool {
        if self.silent.get(&keeper).is_some_and(|until_us| now_us < *until_us) {
            return false;
        }
        self.away.contains_key(key) || self.is_hot(key, now_us) || wants && !self.rows.contains_key(key)
    }

    /// The shard that keeps a row has said nothing.
    pub(super) fn is_silent(&mut self, keeper: u16, now_us: i64) {
        self.silent.insert(keeper, now_us.saturating_add(SILENT_FOR_US));
    }

    /// How far a session of this node is that waits for a row. If it has got it, or will not, it
    /// waits no more.
    pub(super) fn look(&mut self, session: u32, key: &[u8]) -> Waits {
        let Some(wait) = self.waits.get(&session).filter(|wait| wait.key == key) else {
            // It was given the row, which is kept here.
            return Waits::Got { has_waited: true };
        };
        match (wait.state, wait.keeper) {
            (Waits::Asked, None) => {
                let queue = self.rows.get(key).map(|row| &row.queue);
                let place = queue.and_then(|queue| queue.iter().position(|it| it.session == session));
                Waits::Behind(1 + place.unwrap_or_default())
            }
            (state @ Waits::Got { .. }, _) => {
                self.waits.remove(&session);
                state
            }
            (Waits::Refused, _) => {
                self.waits.remove(&session);
                self.is_back(key);
                Waits::Refused
            }
            (state, _) => state,
        }
    }

    /// Whether another session has a row that is kept here.
    pub(super) fn is_of_another(&self, session: u32, key: &[u8]) -> bool {
        self.rows.get(key).is_some_and(|row| row.holder.session != session)
    }

    /// Whether a session waits, over any number of others, for another, as far as this node sees.
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
            let wait = self.waits.get(&at).filter(|wait| wait.keeper.is_none());
            let row = wait.and_then(|wait| self.rows.get(&wait.key));
            let Some(row) = row.filter(|row| row.holder.via.is_none()) else { return false };
            at = row.holder.session;
        }
    }

    /// A session of this node waits no more. What it may have got it does not want.
    pub(super) fn leave(&mut self, session: u32, told: &mut Told) {
        let Some(wait) = self.waits.remove(&session) else { return };
        match wait.keeper {
            Some(keeper) => {
                self.is_back(&wait.key);
                told.push((keeper, Word::Release { session, keys: vec![wait.key] }));
            }
            None => self.give_up(session, &wait.key, told),
        }
    }

    /// A session neither has nor wants a row any more that is kept here.
    pub(super) fn give_up(&mut self, session: u32, key: &[u8], told: &mut Told) {
        let Some(row) = self.rows.get_mut(key) else { return };
        row.queue.retain(|waiting| waiting.session != session);
        if row.holder.session == session {
            self.pass_on(key, told);
        }
    }

    /// Gives a row to the next in its queue.
    fn pass_on(&mut self, key: &[u8], told: &mut Told) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let Some(next) = row.queue.pop_front() else {
            self.rows.remove(key);
            return;
        };
        row.holder = next;
        let session = next.session;
        match next.via {
            Some(shard) => {
                told.push((shard, Word::Granted { session, key: key.to_vec(), has_waited: true }));
            }
            None => drop(self.waits.remove(&session)),
        }
        let first = self.rows.get(key).and_then(|row| row.queue.front());
        if let Some(Party { session, via: Some(shard) }) = first {
            told.push((*shard, Word::Queued { session: *session, key: key.to_vec(), before: 1 }));
        }
    }

    /// Sends a probe for a session of this node that has waited for long.
    pub(super) fn probe(&mut self, session: u32, told: &mut Told) {
        let Some(wait) = self.waits.get(&session) else { return };
        let at = At::Row(wait.key.clone());
        let wanted = wait.key.clone();
        let probe = Probe { origin: session, wanted, via: None, highest: session, steps: 0, at };
        match wait.keeper {
            Some(keeper) => told.push((keeper, Word::Probe(probe))),
            None => self.follow(probe, told),
        }
    }

    /// Follows waits as far as this node knows them.
    fn follow(&mut self, mut probe: Probe, told: &mut Told) {
        loop {
            if probe.steps >= STEPS_MAX || planted(Mutant::EdgeLost) {
                return;
            }
            let is_first = probe.steps == 0;
            probe.steps += 1;
            match &probe.at {
                At::Row(key) => {
                    let row = self.rows.get(key);
                    let waits = |row: &Row| row.queue.iter().any(|it| it.session == probe.origin);
                    if is_first && !row.is_some_and(waits) {
                        // The queue was lost, or the answer, which may be on its way once more.
                        if let Some(shard) = probe.via {
                            let (session, key) = (probe.origin, probe.wanted);
                            told.push((shard, Word::Granted { session, key, has_waited: true }));
                        }
                        return;
                    }
                    let Some(holder) = row.map(|row| row.holder) else { return };
                    if holder.session == probe.origin {
                        if probe.highest == probe.origin {
                            self.close(probe, told);
                        }
                        return;
                    }
                    probe.highest = probe.highest.max(holder.session);
                    probe.at = At::Session(holder.session);
                    if let Some(shard) = holder.via {
                        told.push((shard, Word::Probe(probe)));
                        return;
                    }
                }
                At::Session(session) => {
                    let wait = self.waits.get(session);
                    let waits = |wait: &&Wait| matches!(wait.state, Waits::Asked | Waits::Behind(_));
                    let Some(wait) = wait.filter(waits) else { return };
                    probe.at = At::Row(wait.key.clone());
                    if let Some(keeper) = wait.keeper {
                        told.push((keeper, Word::Probe(probe)));
                        return;
                    }
                }
            }
        }
    }

    /// A probe has come back to where it began.
    fn close(&mut self, Probe { origin: session, wanted: key, via, .. }: Probe, told: &mut Told) {
        match via {
            Some(shard) => told.push((shard, Word::Circle { session, key })),
            None => self.turn(session, &key, Waits::Circle),
        }
    }

    /// Something has come for a session of this node that waits for a row.
    fn turn(&mut self, session: u32, key: &[u8], state: Waits) {
        // If it waits no more, it has said so.
        if let Some(wait) = self.waits.get_mut(&session)
            && wait.key == key
            && !matches!(wait.state, Waits::Got { .. })
        {
            wait.state = state;
        }
    }

    /// Takes what a shard of another node says.
    pub(super) fn hear(&mut self, from: u16, word: Word, told: &mut Told) {
        match word {
            Word::Ask { session, key, may_wait } => {
                let party = Party { session, via: Some(from) };
                let answer = match self.ask_for(party, &key, may_wait) {
                    Waits::Got { has_waited } => Word::Granted { session, key, has_waited },
                    Waits::Behind(before) => {
                        Word::Queued { session, key, before: u16::try_from(before).unwrap_or(u16::MAX) }
                    }
                    _ => Word::Refused { session, key },
                };
                told.push((from, answer));
            }
            Word::Queued { session, key, before } => {
                self.turn(session, &key, Waits::Behind(before.max(1).into()));
            }
            Word::Granted { session, key, has_waited } => {
                self.turn(session, &key, Waits::Got { has_waited });
            }
            Word::Refused { session, key } => self.turn(session, &key, Waits::Refused),
            Word::Circle { session, key } => self.turn(session, &key, Waits::Circle),
            Word::Release { session, keys } => {
                keys.iter().for_each(|key| self.give_up(session, key, told));
            }
            Word::Probe(probe) => {
                // It has left its node just now, or before.
                let via = probe.via.or(Some(from));
                self.follow(Probe { via, ..probe }, told);
            }
        }
    }

    /// What went to and came from a shard of another node may be lost: its sessions neither have
    /// nor want anything here, and those of this node wait for nothing there.
    pub(super) fn cut_off(&mut self, shard: u16, told: &mut Told) {
        let via = Some(shard);
        let concerned = |row: &Row| row.holder.via == via || row.queue.iter().any(|it| it.via == via);
        let rows = self.rows.iter().filter(|(_, row)| concerned(row));
        let keys: Vec<Vec<u8>> = rows.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(row) = self.rows.get_mut(&key) else { continue };
            row.queue.retain(|waiting| waiting.via != via);
            if row.holder.via == via {
                self.pass_on(&key, told);
            }
        }
        for wait in self.waits.values_mut().filter(|wait| wait.keeper == via) {
            wait.state = Waits::Got { has_waited: true };
        }
    }

    /// Whether sessions of several nodes write a row at present.
    fn is_hot(&self, key: &[u8], now_us: i64) -> bool {
        let heat = self.heat.get(key);
        heat.is_some_and(|heat| heat.count >= HOT_FROM && !heat.is_over(now_us))
    }

    /// A session of this node has met another at a row that is kept elsewhere.
    pub(super) fn warm(&mut self, key: &[u8], now_us: i64) {
        if self.heat.len() >= HOT_MAX && !self.heat.contains_key(key) {
            if now_us.saturating_sub(self.cooled_us) >= HOT_FOR_US {
                self.cooled_us = now_us;
                self.heat.retain(|_, heat| !heat.is_over(now_us));
            }
            if self.heat.len() >= HOT_MAX {
                return;
            }
        }
        let heat = self.heat.entry(key.to_vec()).or_insert(Heat { count: 0, seen_us: now_us });
        heat.count = if heat.is_over(now_us) { 1 } else { heat.count.saturating_add(1) };
        heat.seen_us = now_us;
    }
}

impl Heat {
    fn is_over(&self, now_us: i64) -> bool {
        now_us.saturating_sub(self.seen_us) >= HOT_FOR_US
    }
}
