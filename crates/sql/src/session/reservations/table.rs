//! The table of a node: the rows whose queues the node keeps, and what the node's sessions wait for.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use plimsoll_types::mutants::{Mutant, planted};

use super::messages::{Message, Probe, Step};

/// Maximum number of steps of a probe: two for each session. A circle of more is not found.
const STEPS_MAX: u16 = 1024;

/// How long a row is hot since sessions were last seen to meet others at it, in microseconds.
const HOT_FOR_US: i64 = 1_000_000;

/// How often that has to be seen before the row is hot.
const HOT_FROM: u32 = 2;

/// Maximum number of rows of which that is counted.
const HOT_MAX: usize = 4096;

/// How long a shard that did not answer is not asked, in microseconds.
const SILENT_FOR_US: i64 = 1_000_000;

/// Messages that are to be sent, each with the shard that it is for.
pub(super) type Outgoing = Vec<(u16, Message)>;

/// A session that has a row or waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Party {
    session: u32,
    /// The shard by which the session's node is reached; `None` for a session of this node.
    via: Option<u16>,
}

/// A row that is reserved.
struct Row {
    holder: Party,
    queue: VecDeque<Party>,
}

/// A row that a session of this node has asked for and not got.
struct Wait {
    key: Vec<u8>,
    /// The shard of another node that keeps the row's queue.
    keeper: Option<u16>,
    /// Where this node keeps the queue the progress is [`Progress::Asked`], or a circle was found:
    /// the rest is in the queue.
    progress: Progress,
}

impl Wait {
    /// Whether the session still waits.
    fn goes_on(&self) -> bool {
        matches!(self.progress, Progress::Asked | Progress::Behind(_))
    }
}

/// How far a session is with a row that it has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::session) enum Progress {
    /// The row's keeper has not answered.
    Asked,
    /// It waits behind this many sessions.
    Behind(usize),
    /// It has the row.
    Got {
        /// Whether another session had the row before.
        has_waited: bool,
    },
    /// Another session has the row, and this one does not wait.
    Refused,
    /// It would wait for itself.
    Circle,
}

plimsoll_types::wire!(
    enum Progress {
        Behind(sessions) = 0,
        Got { has_waited } = 1,
        Refused = 2,
        Circle = 3;
        Self::Asked
    }
);

/// How often sessions were seen to meet those of other nodes at a row.
struct Heat {
    count: u32,
    seen_us: i64,
}

impl Heat {
    fn is_over(&self, now_us: i64) -> bool {
        now_us.saturating_sub(self.seen_us) >= HOT_FOR_US
    }
}

/// What a node knows of reservations.
#[derive(Default)]
pub(super) struct Table {
    rows: BTreeMap<Vec<u8>, Row>,
    waits: BTreeMap<u32, Wait>,
    /// Rows with other keepers at which sessions of this node have met others.
    heat: BTreeMap<Vec<u8>, Heat>,
    /// When rows that are no longer hot were last removed from these, in microseconds.
    cooled_us: i64,
    /// Rows that sessions of this node have, or wait for, at other keepers, and how many sessions.
    at_keepers: BTreeMap<Vec<u8>, usize>,
    /// Shards of other nodes that did not answer, and until when they are not asked.
    silent: BTreeMap<u16, i64>,
}

impl Table {
    /// How many rows are reserved here, and how many sessions of this node wait for a row.
    pub(super) fn size(&self) -> usize {
        self.rows.len() + self.waits.len()
    }

    /// The rows that are reserved here, in their order: the key, the session that has the row, and
    /// the sessions that wait for it.
    pub(super) fn rows_from(
        &self,
        from: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&Vec<u8>, u32, impl Iterator<Item = u32>)> {
        let rows = self.rows.range::<[u8], _>((from, Bound::Unbounded));
        rows.map(|(key, row)| (key, row.holder.session, row.queue.iter().map(|party| party.session)))
    }

    /// The sessions of this node that wait for a row.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.waits.iter().filter(|(_, wait)| wait.goes_on()).map(|(session, _)| *session)
    }

    /// A session of this node asks for a row whose queue this node keeps, and for a place in the
    /// queue if it may wait.
    pub(super) fn ask(&mut self, session: u32, key: &[u8], may_wait: bool) -> Progress {
        let progress = self.ask_for(Party { session, via: None }, key, may_wait);
        if !matches!(progress, Progress::Behind(_)) {
            return progress;
        }
        self.waits.insert(session, Wait { key: key.to_vec(), keeper: None, progress: Progress::Asked });
        let holder = self.rows.get(key).map(|row| row.holder);
        if holder.is_some_and(|holder| self.leads_to(holder, session)) {
            self.leave(session, &mut Outgoing::new());
            return Progress::Circle;
        }
        progress
    }

    /// A session of any node asks for a row whose queue this node keeps.
    fn ask_for(&mut self, party: Party, key: &[u8], may_wait: bool) -> Progress {
        let Some(row) = self.rows.get_mut(key) else {
            self.rows.insert(key.to_vec(), Row { holder: party, queue: VecDeque::new() });
            return Progress::Got { has_waited: false };
        };
        if row.holder.session == party.session {
            return Progress::Got { has_waited: false };
        }
        if !may_wait {
            return Progress::Refused;
        }
        let place = row.queue.iter().position(|waiting| waiting.session == party.session);
        let place = place.unwrap_or(row.queue.len());
        if place == row.queue.len() {
            row.queue.push_back(party);
        }
        Progress::Behind(1 + place)
    }

    /// A session of this node asks another node's shard that keeps the row's queue.
    pub(super) fn ask_keeper(
        &mut self,
        keeper: u16,
        session: u32,
        key: &[u8],
        may_wait: bool,
        out: &mut Outgoing,
    ) {
        *self.at_keepers.entry(key.to_vec()).or_default() += 1;
        let wait = Wait { key: key.to_vec(), keeper: Some(keeper), progress: Progress::Asked };
        self.waits.insert(session, wait);
        out.push((keeper, Message::Ask { session, key: key.to_vec(), may_wait }));
    }

    /// A session of this node neither has nor wants a row any more that it has asked another keeper
    /// for.
    pub(super) fn returned(&mut self, key: &[u8]) {
        if let Some(count) = self.at_keepers.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.at_keepers.remove(key);
            }
        }
    }

    /// Whether a session of this node queues for a row at the row's keeper, which is another node,
    /// and not among the sessions of its own node. It does where sessions of its node have asked
    /// the keeper already, and if the row is hot; and if the client locks the row by itself, unless
    /// sessions queue for it here.
    pub(super) fn queues_at_keeper(&self, key: &[u8], keeper: u16, locks: bool, now_us: i64) -> bool {
        if self.silent.get(&keeper).is_some_and(|until_us| now_us < *until_us) {
            return false;
        }
        self.at_keepers.contains_key(key) || self.is_hot(key, now_us) || locks && !self.rows.contains_key(key)
    }

    /// A shard of another node has not answered.
    pub(super) fn note_silence(&mut self, keeper: u16, now_us: i64) {
        self.silent.insert(keeper, now_us.saturating_add(SILENT_FOR_US));
    }

    /// How far a session of this node is with a row that it waits for.
    pub(super) fn look(&self, session: u32, key: &[u8]) -> Progress {
        let Some(wait) = self.waits.get(&session).filter(|wait| wait.key == key) else {
            // The session was given the row, whose queue this node keeps.
            return Progress::Got { has_waited: true };
        };
        match (wait.progress, wait.keeper) {
            (Progress::Asked, None) => {
                let queue = self.rows.get(key).map(|row| &row.queue);
                let place = queue.and_then(|queue| queue.iter().position(|it| it.session == session));
                Progress::Behind(1 + place.unwrap_or_default())
            }
            (progress, _) => progress,
        }
    }

    /// A session of this node has got the row that it waited for, and keeps it.
    pub(super) fn keep(&mut self, session: u32) {
        self.waits.remove(&session);
    }

    /// Whether another session has a row whose queue this node keeps.
    pub(super) fn is_of_another(&self, session: u32, key: &[u8]) -> bool {
        self.rows.get(key).is_some_and(|row| row.holder.session != session)
    }

    /// Whether a session waits, over any number of others, for a session of this node, as far as
    /// this node knows the waits.
    fn leads_to(&self, from: Party, session: u32) -> bool {
        let mut at = from;
        // There is no circle yet, so this comes to an end.
        loop {
            if at.via.is_some() || planted(Mutant::EdgeLost) {
                return false;
            }
            if at.session == session {
                return true;
            }
            let wait = self.waits.get(&at.session).filter(|wait| wait.keeper.is_none());
            let Some(row) = wait.and_then(|wait| self.rows.get(&wait.key)) else { return false };
            at = row.holder;
        }
    }

    /// A session of this node waits no more, and does not want what it may have got meanwhile.
    pub(super) fn leave(&mut self, session: u32, out: &mut Outgoing) {
        let Some(wait) = self.waits.remove(&session) else { return };
        match wait.keeper {
            Some(keeper) => {
                self.returned(&wait.key);
                if wait.progress != Progress::Refused {
                    out.push((keeper, Message::Release { session, keys: vec![wait.key] }));
                }
            }
            None => self.give_up(session, &wait.key, out),
        }
    }

    /// A session neither has nor wants a row any more whose queue this node keeps.
    pub(super) fn give_up(&mut self, session: u32, key: &[u8], out: &mut Outgoing) {
        let Some(row) = self.rows.get_mut(key) else { return };
        row.queue.retain(|waiting| waiting.session != session);
        if row.holder.session == session {
            self.pass_on(key, out);
        }
    }

    /// Gives a row to the next session in its queue.
    fn pass_on(&mut self, key: &[u8], out: &mut Outgoing) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let Some(next) = row.queue.pop_front() else {
            self.rows.remove(key);
            return;
        };
        row.holder = next;
        let first = row.queue.front().copied();
        match next.via {
            Some(_) => answer(next, key, Progress::Got { has_waited: true }, out),
            None => drop(self.waits.remove(&next.session)),
        }
        if let Some(first) = first {
            answer(first, key, Progress::Behind(1), out);
        }
    }

    /// Sends a probe for a session of this node that has waited for long.
    pub(super) fn probe(&mut self, session: u32, out: &mut Outgoing) {
        let Some(wait) = self.waits.get(&session) else { return };
        let (wanted, next) = (wait.key.clone(), Step::Row(wait.key.clone()));
        let probe = Probe { origin: session, wanted, via: None, highest: session, steps: 0, next };
        match wait.keeper {
            Some(keeper) => out.push((keeper, Message::Probe(probe))),
            None => self.follow(probe, out),
        }
    }

    /// Goes on with a probe as far as this node knows the waits.
    fn follow(&mut self, mut probe: Probe, out: &mut Outgoing) {
        loop {
            if probe.steps >= STEPS_MAX || planted(Mutant::EdgeLost) {
                return;
            }
            let is_first = probe.steps == 0;
            probe.steps += 1;
            match &probe.next {
                Step::Row(key) => {
                    let row = self.rows.get(key);
                    let has_place = |row: &Row| row.queue.iter().any(|it| it.session == probe.origin);
                    if is_first && !row.is_some_and(has_place) {
                        // The queue was lost, or the answer was, or is on its way.
                        let origin = Party { session: probe.origin, via: probe.via };
                        answer(origin, &probe.wanted, Progress::Got { has_waited: true }, out);
                        return;
                    }
                    let Some(holder) = row.map(|row| row.holder) else { return };
                    if holder.session == probe.origin {
                        if probe.highest == probe.origin {
                            self.close(probe, out);
                        }
                        return;
                    }
                    probe.highest = probe.highest.max(holder.session);
                    probe.next = Step::Session(holder.session);
                    if let Some(shard) = holder.via {
                        out.push((shard, Message::Probe(probe)));
                        return;
                    }
                }
                Step::Session(session) => {
                    let wait = self.waits.get(session).filter(|wait| wait.goes_on());
                    let Some(wait) = wait else { return };
                    probe.next = Step::Row(wait.key.clone());
                    if let Some(keeper) = wait.keeper {
                        out.push((keeper, Message::Probe(probe)));
                        return;
                    }
                }
            }
        }
    }

    /// A probe has come back to the session that it began with.
    fn close(&mut self, Probe { origin: session, wanted, via, .. }: Probe, out: &mut Outgoing) {
        match via {
            Some(_) => answer(Party { session, via }, &wanted, Progress::Circle, out),
            None => self.advance(session, &wanted, Progress::Circle),
        }
    }

    /// A session of this node has come further with a row.
    fn advance(&mut self, session: u32, key: &[u8], progress: Progress) {
        // A session that waits no more has released what it may have got.
        if let Some(wait) = self.waits.get_mut(&session)
            && wait.key == key
            && !matches!(wait.progress, Progress::Got { .. })
        {
            wait.progress = progress;
        }
    }

    /// Receives a message, which has come from a shard of another node.
    pub(super) fn receive(&mut self, from: u16, message: Message, out: &mut Outgoing) {
        match message {
            Message::Ask { session, key, may_wait } => {
                let party = Party { session, via: Some(from) };
                let progress = self.ask_for(party, &key, may_wait);
                answer(party, &key, progress, out);
            }
            Message::Answer { session, key, progress } => self.advance(session, &key, progress),
            Message::Release { session, keys } => {
                keys.iter().for_each(|key| self.give_up(session, key, out));
            }
            Message::Probe(probe) => {
                let via = probe.via.or(Some(from));
                self.follow(Probe { via, ..probe }, out);
            }
        }
    }

    /// Messages to a shard of another node, and from it, may be lost: sessions that asked by that
    /// shard have nothing here any more, and sessions of this node wait for nothing there.
    pub(super) fn disconnected(&mut self, peer: u16, out: &mut Outgoing) {
        let via = Some(peer);
        let concerned = |row: &Row| row.holder.via == via || row.queue.iter().any(|it| it.via == via);
        let rows = self.rows.iter().filter(|(_, row)| concerned(row));
        let keys: Vec<Vec<u8>> = rows.map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(row) = self.rows.get_mut(&key) else { continue };
            row.queue.retain(|waiting| waiting.via != via);
            if row.holder.via == via {
                self.pass_on(&key, out);
            }
        }
        for wait in self.waits.values_mut().filter(|wait| wait.keeper == via) {
            wait.progress = Progress::Got { has_waited: true };
        }
    }

    /// Whether sessions of several nodes write a row at present.
    fn is_hot(&self, key: &[u8], now_us: i64) -> bool {
        let heat = self.heat.get(key);
        heat.is_some_and(|heat| heat.count >= HOT_FROM && !heat.is_over(now_us))
    }

    /// A session of this node has met another at a row with another keeper.
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

/// Tells a session of another node how far it is with a row. One of this node looks by itself.
fn answer(party: Party, key: &[u8], progress: Progress, out: &mut Outgoing) {
    if let Party { session, via: Some(shard) } = party {
        out.push((shard, Message::Answer { session, key: key.to_vec(), progress }));
    }
}
