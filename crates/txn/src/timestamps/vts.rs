//! VTS: a vector of counters, published by an oracle.
//!
//! Each shard is a *slot* with a counter of its own. A read-write transaction stamps its versions
//! ⟨slot, c⟩ with the next number of its slot and, once they are installed, reports it together
//! with its dependencies: the stamps of all versions it read or overwrote, and of the validated
//! readers on the shards where it overwrites (without them a snapshot could contain a transaction
//! but not one that read what it has overwritten; the published description leaves them out). The
//! oracle advances V\[slot\] to c when c − 1 and all dependencies are in ([`published`]); a
//! snapshot is a copy of V and contains ⟨slot, c⟩ iff c <= V\[slot\]. So a snapshot never contains
//! a transaction without what it depends on, and nobody waits under locks; but the vector travels
//! to every shard that a read-only transaction reads at.
//!
//! Stamps of different slots have no order: a record's versions follow one another by installation.
//! *Compression* gives each process one slot: its shards draw from one counter, and the oracle
//! publishes the gap-free prefix.
//!
//! A stamp is packed into 64 bits: the slot in the top 16, the counter below. ⟨0, 0⟩ is the initial
//! load.
//!
//! **When something is lost.**
//!
//! * *A channel* breaks between a shard and the oracle. A shard keeps what it has reported until it
//!   finds it published, and reports it again over the next channel; what comes twice counts once.
//! * *A coordinator* is gone that comes and goes, a client. Its slot is another's one day, and its
//!   last reports may have gone with it. So it stamps with what the oracle has let it have, and
//!   when it is gone all of that is settled ([`claims`]). What has become of its transactions those
//!   find who have voted (`votes.rs`); none that they have committed is missing from the vector,
//!   none of what it depends on is, and nobody can commit another.
//!
//! **Logs.** Without them a shard with data, and the oracle, keep nothing. If shards log, so do
//! these, and each of them may begin another life:
//!
//! * Every shard stamps with what it has claimed, and those with data have slots of their own like
//!   clients. So the stamps of a life that is over are settled like those of a client that is gone.
//!   A shard is asked about its own slot as well: what is under way there no other shard knows. It
//!   knows of something undecided until it has [`Service::finished`] all that it has stamped.
//! * A shard with data logs the latest stamps that have validated reads or installed versions on
//!   it, and which stamps it is too late to vote for: other shards rely on both.
//! * The oracle logs what it lets shards claim. Its next life settles all of that, whether or not
//!   the shard that has claimed it lives; such a shard claims other stamps. What it had published
//!   it forgets. It tells nothing before all is published that its former lives may have
//!   published.

mod claims;
mod published;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_types::Ticket;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Malformed;
use plimsoll_types::{ShardId, Timestamp};

use super::oracle::{LocalCopy, Waiting};
use crate::service::{Inquiry, Kept, Service};
use crate::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};
use claims::{CLAIM, Claims, Over};
use published::{Published, Report};

const COUNTER_BITS: u32 = 48;
/// So many reports travel in one message at most.
const REPORTS_MAX: usize = 1024;

fn pack(slot: usize, counter: u64) -> Timestamp {
    assert!(counter < 1 << COUNTER_BITS, "a slot's counter stays below 2^48");
    Timestamp((slot as u64) << COUNTER_BITS | counter)
}

#[inline]
fn unpack(stamp: Timestamp) -> (usize, u64) {
    ((stamp.0 >> COUNTER_BITS) as usize, stamp.0 & ((1 << COUNTER_BITS) - 1))
}

/// The largest counter of each slot; slots beyond the end are 0.
type Vector = Vec<u64>;

fn join(vector: &mut Vector, slot: usize, counter: u64) {
    if vector.len() <= slot {
        vector.resize(slot + 1, 0);
    }
    vector[slot] = vector[slot].max(counter);
}

/// The stamps in a vector that are not in another.
fn stamps_above(vector: &Vector, other: &Vector) -> Vec<Timestamp> {
    let known = other.iter().copied().chain(std::iter::repeat(0));
    let above = vector.iter().zip(known).enumerate().filter(|(_, (counter, known))| *counter > known);
    above.map(|(slot, (&counter, _))| pack(slot, counter)).collect()
}

/// VTS on one shard, or the oracle.
#[derive(Debug)]
pub struct Vts {
    shard: ShardId,
    oracle: ShardId,
    slot: usize,
    /// Whether this shard stamps only with what it has claimed: its process comes and goes, or shards
    /// log.
    claiming: bool,
    options: OracleOptions,
    clock: Timestamp,
    /// The counter that this shard draws from: its own, or the one of the process.
    counter: Arc<AtomicU64>,
    /// The last that it may draw: the end of its claim.
    through: u64,
    /// The counters that it has drawn and not finished, if it has data and claims: such a shard is
    /// asked about its own slot.
    drawn: Option<BTreeSet<u64>>,
    /// Whether it wants more, and whether it has asked for them.
    wants: bool,
    stamps: Waiting,
    /// Stamps that were waited for.
    arrived: BTreeMap<Ticket, Timestamp>,
    known: Arc<Vector>,
    /// The latest stamps of each slot that have validated reads or installed versions on this
    /// shard.
    readers: Vector,
    /// Of each slot, the last stamp that it is too late to vote for.
    over: Vector,
    /// What the log has of either, and whether there is more.
    logged: (Vector, Vector),
    news: bool,
    snapshots: LocalCopy,
    reports: Vec<Arc<Report>>,
    /// What was reported, or is to be, and is not known to be published; by counter.
    unpublished: BTreeMap<u64, Arc<Report>>,
    published: Published,
    claims: Claims,
    /// The oracle's: what its former lives may have published.
    former: Vector,
    /// The oracle's: who is to be told what is published once that is.
    asking: Vec<ShardId>,
    answers: Vec<(ShardId, Message)>,
}

/// What travels between a shard and the oracle.
#[derive(Clone, Debug)]
pub enum Message {
    /// Commits to publish.
    Report(Vec<Arc<Report>>),
    /// What is published?
    AskVector,
    /// The answer.
    Published(Arc<Vector>),
    /// More counters, please.
    Claim,
    /// The answer.
    Claimed {
        /// They come after this one, or after the last that it has used.
        after: u64,
        /// The last of them.
        through: u64,
    },
    /// A claim is over: nobody may be voted for any more with such a stamp. Is anything of it
    /// undecided?
    Inquire {
        /// Whose it was.
        of: ShardId,
        /// The slot.
        slot: u16,
        /// The last counter.
        through: u64,
        /// Which inquiry it is.
        number: u64,
    },
    /// The answer.
    Left {
        /// Which inquiry it was.
        number: u64,
        /// If nothing is: the largest stamp of each slot that has validated reads or installed
        /// versions there.
        seen: Option<Vec<u64>>,
    },
}

plimsoll_types::wire!(
    enum Message {
        Report(reports) = 0,
        AskVector = 1,
        Published(vector) = 2,
        Claim = 3,
        Claimed { after, through } = 4,
        Inquire { of, slot, through, number } = 5,
        Left { number, seen } = 6,
    }
);

/// How many slots are of shards with data, or of their processes; the clients' follow.
fn members(config: &SchemeConfig) -> usize {
    match config.oracle.compress && !config.logs {
        true => config.processes,
        false => config.holders().count(),
    }
}

impl Vts {
    /// The next stamp.
    fn draw(&mut self) -> Timestamp {
        // Relaxed: the counter orders nothing but itself; versions travel by message.
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(counter <= self.through, "a shard stamps with what it has claimed");
        self.wants |= self.claiming && self.through - counter == CLAIM / 2;
        if let Some(drawn) = &mut self.drawn {
            drawn.insert(counter);
        }
        pack(self.slot, counter)
    }

    /// The shard may stamp with more.
    fn claimed(&mut self, after: u64, through: u64, released: &mut Vec<Ticket>) {
        self.counter.fetch_max(after, Ordering::Relaxed);
        self.through = through;
        while self.stamps.outstanding() > 0 {
            for ticket in self.stamps.answered() {
                let stamp = self.draw();
                self.arrived.insert(ticket, stamp);
                released.push(ticket);
            }
        }
    }

    fn settle(&mut self, Over { slot, through, dependencies }: Over) {
        self.published.settle(slot, through, dependencies);
    }

    /// Whether all is published that former lives of the oracle may have published.
    fn publishes(&self) -> bool {
        self.former.iter().zip(&self.published.vector).all(|(former, now)| former <= now)
    }

    fn vector(&self) -> Message {
        Message::Published(Arc::new(self.published.vector.clone()))
    }
}

impl Scheme for Vts {
    const NAME: &'static str = "vts";
    const READ_ONLY: ReadOnly = ReadOnly::Snapshot;
    const SCALAR: bool = false;
    const REPORTS: bool = true;
    const ORACLE: bool = true;

    type Mark = ();
    type Snapshot = Arc<Vector>;
    type Observed = Vector;

    fn new(config: &SchemeConfig) -> Vts {
        let slots = Self::slots(config);
        let is_client = config.clients.contains(&config.shard.index());
        let claiming = is_client || config.logs;
        let (slot, counter) = match config.oracle.compress && !config.logs {
            _ if is_client => (members(config) + config.shard.index() - config.clients.start, Arc::default()),
            true => (config.process, config.process_counter.clone()),
            false => (config.shard.index(), Arc::default()),
        };
        Vts {
            shard: config.shard,
            oracle: config.oracle_shard(),
            slot,
            claiming,
            options: config.oracle,
            clock: Timestamp::ZERO,
            counter,
            through: if claiming { 0 } else { u64::MAX },
            drawn: (config.logs && !is_client).then(BTreeSet::new),
            wants: false,
            stamps: Waiting::default(),
            arrived: BTreeMap::new(),
            known: Arc::new(vec![0; slots]),
            readers: Vec::new(),
            over: Vec::new(),
            logged: Default::default(),
            news: false,
            snapshots: LocalCopy::new(config.oracle),
            reports: Vec::new(),
            unpublished: BTreeMap::new(),
            published: Published::new(slots),
            claims: Claims::new(config, members(config)),
            former: Vec::new(),
            asking: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn slots(config: &SchemeConfig) -> usize {
        members(config) + config.clients.len()
    }

    fn tick(&mut self, clock: Timestamp) {
        self.clock = clock;
    }

    fn observe(observed: &mut Vector, stamp: Timestamp) {
        let (slot, counter) = unpack(stamp);
        if counter > 0 {
            join(observed, slot, counter);
        }
    }

    fn join(observed: &mut Vector, other: &Vector) {
        other.iter().enumerate().for_each(|(slot, &counter)| join(observed, slot, counter));
    }

    fn stamp(&mut self, _: &Vector) -> Timestamp {
        self.draw()
    }

    fn snapshot(&mut self, freshness: Freshness) -> Option<Arc<Vector>> {
        let serves = self.snapshots.serves(self.clock) && Self::sees(&self.known, freshness.at_least);
        serves.then(|| self.known.clone())
    }

    #[inline]
    fn sees(at: &Arc<Vector>, stamp: Timestamp) -> bool {
        let (slot, counter) = unpack(stamp);
        counter <= at.get(slot).copied().unwrap_or_default()
    }

    fn place(_: &Arc<Vector>) -> Option<Timestamp> {
        None
    }

    fn low(&self, low: &mut [u64]) {
        low.copy_from_slice(&self.known);
    }

    fn lower(at: &Arc<Vector>, low: &mut [u64]) {
        low.iter_mut().zip(at.iter()).for_each(|(low, &at)| *low = (*low).min(at));
    }

    fn raise(&mut self, low: &[u64]) {
        if low.iter().zip(self.known.iter()).any(|(low, known)| low > known) {
            self.known = Arc::new(low.iter().zip(self.known.iter()).map(|(&a, &b)| a.max(b)).collect());
        }
    }

    #[inline]
    fn passed(watermark: &[u64], stamp: Timestamp) -> bool {
        let (slot, counter) = unpack(stamp);
        counter <= watermark[slot]
    }
}

impl Service<Vector> for Vts {
    type Message = Message;

    fn pinned(&mut self, stamp: Timestamp) {
        Self::observe(&mut self.readers, stamp);
        self.news = true;
    }

    fn observe_pinned(&self, observed: &mut Vector) {
        Self::join(observed, &self.readers);
    }

    fn adopt(&mut self, pinned: &Vector) {
        Self::join(&mut self.readers, pinned);
        self.news = true;
    }

    #[inline]
    fn ready(&self) -> bool {
        !self.claiming || self.counter.load(Ordering::Relaxed) < self.through
    }

    fn want_stamp(&mut self, ticket: Ticket) {
        self.stamps.gather(ticket);
    }

    fn take_stamp(&mut self, ticket: Ticket) -> Option<Timestamp> {
        self.arrived.remove(&ticket)
    }

    fn over(&self, stamp: Timestamp) -> bool {
        let (slot, counter) = unpack(stamp);
        self.over.get(slot).is_some_and(|&over| counter <= over)
    }

    fn finished(&mut self, stamp: Timestamp, committed: Option<&Vector>) {
        let (slot, counter) = unpack(stamp);
        if let Some(drawn) = &mut self.drawn {
            drawn.remove(&counter);
        }
        let counters = committed.into_iter().flatten().copied();
        let dependencies = (0..=u16::MAX).zip(counters).filter(|&(_, counter)| counter > 0).collect();
        let report = Arc::new(Report { counter, slot: slot as u16, dependencies });
        self.unpublished.insert(counter, report.clone());
        self.reports.push(report);
    }

    fn want_snapshot(&mut self, ticket: Ticket) {
        self.snapshots.waiting.gather(ticket);
    }

    fn awaits_snapshot(&self) -> bool {
        self.snapshots.waiting.outstanding() > 0
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>, released: &mut Vec<Ticket>) {
        if self.shard == self.oracle {
            self.asking.retain(|&asking| asking != peer);
            return self.claims.met(peer, life);
        }
        if peer != self.oracle {
            return;
        }
        for waiting in [&mut self.stamps, &mut self.snapshots.waiting] {
            match life {
                Some(_) => waiting.ask_again(),
                None => waiting.give_up(released),
            }
        }
        self.reports.clear();
        if life.is_some() {
            self.reports.extend(self.unpublished.values().cloned());
        }
        if self.claiming {
            // Whether its claim is still its own, it is yet to hear.
            (self.through, self.wants) = (0, life.is_some());
        }
    }

    fn inquiry(message: &Message) -> Option<Inquiry> {
        match *message {
            // What has no vote yet will not get one.
            Message::Inquire { of, .. } => Some(Inquiry { of, below: u64::MAX, locks: false }),
            _ => None,
        }
    }

    fn answer(&mut self, from: ShardId, inquiry: &Message, left: bool) {
        if let Message::Inquire { slot, through, number, .. } = *inquiry {
            join(&mut self.over, slot.into(), through);
            self.news = true;
            let mut left = left;
            if usize::from(slot) == self.slot {
                // It has to make another claim; what it has stamped under this one goes on.
                self.through = if self.through <= through { 0 } else { self.through };
                let first = self.drawn.as_ref().and_then(BTreeSet::first);
                left |= first.is_some_and(|&first| first <= through);
            }
            let seen = (!left).then(|| self.readers.clone());
            self.answers.push((from, Message::Left { number, seen }));
        }
    }

    fn lost(&mut self, ticket: Ticket) -> bool {
        self.stamps.lost(ticket) || self.snapshots.waiting.lost(ticket)
    }

    fn receive(&mut self, from: ShardId, message: &mut Message, released: &mut Vec<Ticket>) {
        match message {
            // The oracle.
            Message::Report(reports) => reports.drain(..).for_each(|report| self.published.report(report)),
            Message::AskVector if self.publishes() => self.answers.push((from, self.vector())),
            Message::AskVector => self.asking.push(from),
            Message::Claim => self.answers.extend(self.claims.claim(from).map(|claimed| (from, claimed))),
            Message::Left { number, seen } => {
                if let Some((over, claimed)) = self.claims.heard(from, *number, seen.as_ref()) {
                    self.settle(over);
                    self.answers.extend(claimed);
                }
            }
            Message::Inquire { .. } => unreachable!("an inquiry is answered"),
            // The shard that asked.
            Message::Published(vector) => {
                let published = vector.get(self.slot).copied().unwrap_or_default();
                self.unpublished = self.unpublished.split_off(&(published + 1));
                // Joined: the shard may have woken up above what the oracle had published when it
                // answered.
                self.raise(vector);
                released.extend(self.snapshots.renew(self.clock));
            }
            Message::Claimed { after, through } => self.claimed(*after, *through, released),
        }
    }

    fn has_news(&self) -> bool {
        self.news || self.claims.has_news()
    }

    fn news(&mut self) -> Vec<Kept> {
        self.news = false;
        let (pinned, over) = &mut self.logged;
        let new = [
            Kept::Pinned(stamps_above(&self.readers, pinned)),
            Kept::Over(stamps_above(&self.over, over)),
            Kept::Claimed(self.claims.news()),
        ];
        pinned.clone_from(&self.readers);
        over.clone_from(&self.over);
        new.into_iter().filter(has_stamps).collect()
    }

    fn kept(&self) -> Vec<Kept> {
        let none = Vector::new();
        let all = [
            Kept::Pinned(stamps_above(&self.readers, &none)),
            Kept::Over(stamps_above(&self.over, &none)),
            Kept::Claimed(self.claims.kept()),
        ];
        all.into_iter().filter(has_stamps).collect()
    }

    fn restore(&mut self, kept: Kept) -> Result<(), Malformed> {
        let slots = self.known.len();
        let vector = |stamps: Vec<Timestamp>| {
            let mut vector = Vector::new();
            for (slot, counter) in stamps.into_iter().map(unpack) {
                if slot >= slots {
                    return Err(Malformed("a stamp of a slot that there is not"));
                }
                join(&mut vector, slot, counter);
            }
            Ok(vector)
        };
        match kept {
            Kept::Pinned(_) if planted(Mutant::PinsLost) => {}
            Kept::Pinned(stamps) => Self::join(&mut self.readers, &vector(stamps)?),
            Kept::Over(stamps) => Self::join(&mut self.over, &vector(stamps)?),
            Kept::Claimed(stamps) => Self::join(&mut self.former, &vector(stamps)?),
            Kept::Reserved(_) => return Err(Malformed("what another timestamp scheme keeps")),
        }
        Ok(())
    }

    fn restored(&mut self) {
        self.logged = (self.readers.clone(), self.over.clone());
        self.claims.restored(&self.former);
    }

    fn published(&self) -> u64 {
        self.published.published()
    }

    fn unpublished(&self) -> u64 {
        let here = self.unpublished.len() + self.claims.ending();
        here as u64 + self.published.unpublished()
    }

    fn due(&self) -> Option<u64> {
        self.claims.due()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Message)>) {
        self.published.close();
        self.claims.inquire(self.clock, send);
        if !self.asking.is_empty() && self.publishes() {
            let vector = self.vector();
            send.extend(self.asking.drain(..).map(|from| (from, vector.clone())));
        }
        send.append(&mut self.answers);
        // They are sent again over the next channel.
        if self.stamps.down {
            return self.reports.clear();
        }
        let most = if self.options.batch { REPORTS_MAX } else { 1 };
        while !self.reports.is_empty() {
            let rest = self.reports.split_off(self.reports.len().min(most));
            send.push((self.oracle, Message::Report(std::mem::replace(&mut self.reports, rest))));
        }
        let mut claims = self.stamps.send(true).count();
        if std::mem::take(&mut self.wants) && claims == 0 {
            self.stamps.ask_ahead();
            claims = 1;
        }
        send.extend((0..claims).map(|_| (self.oracle, Message::Claim)));
        let asks = self.snapshots.ask(self.options.batch, self.clock);
        send.extend((0..asks).map(|_| (self.oracle, Message::AskVector)));
    }
}

fn has_stamps(kept: &Kept) -> bool {
    !matches!(kept, Kept::Pinned(stamps) | Kept::Over(stamps) | Kept::Claimed(stamps) if stamps.is_empty())
}

#[cfg(test)]
mod tests {
    use super::claims::INQUIRE_NS;
    use super::*;
    use crate::testing::scheme_config;

    const A: ShardId = ShardId(0);
    const B: ShardId = ShardId(1);
    const ORACLE: ShardId = ShardId(2);
    const CLIENT: ShardId = ShardId(3);
    const OTHER: ShardId = ShardId(4);

    #[test]
    fn a_stamp_packs_slot_and_counter() {
        assert_eq!(unpack(pack(3, 77)), (3, 77));
        assert!(Vts::sees(&Arc::new(vec![0, 5]), pack(1, 5)));
        assert!(!Vts::sees(&Arc::new(vec![0, 5]), pack(1, 6)));
        assert!(Vts::sees(&Arc::new(vec![0]), Timestamp::ZERO));
    }

    /// Two shards with data, an oracle and two clients.
    fn vts(shard: ShardId) -> Vts {
        let oracle = OracleOptions { compress: false, ..OracleOptions::default() };
        let mut vts = Vts::new(&SchemeConfig { clients: 3..5, oracle, ..scheme_config(shard.0, 2) });
        vts.tick(Timestamp(1));
        vts
    }

    /// Everything that these have to say to each other, until nobody has anything to say. Tells
    /// whom it has released.
    fn talk(all: &mut [(ShardId, &mut Vts)], left: &dyn Fn(ShardId) -> bool) -> Vec<Ticket> {
        let mut released = Vec::new();
        loop {
            let mut said = Vec::new();
            for (from, vts) in &mut *all {
                let mut sent = Vec::new();
                vts.outgoing(&mut sent);
                sent.retain(|(_, message)| !matches!(message, Message::AskVector));
                said.extend(sent.into_iter().map(|(to, message)| (*from, to, message)));
            }
            if said.is_empty() {
                return released;
            }
            for (from, to, mut message) in said {
                let Some((_, vts)) = all.iter_mut().find(|(shard, _)| *shard == to) else { continue };
                match Vts::inquiry(&message) {
                    Some(_) => vts.answer(from, &message, left(to)),
                    None => vts.receive(from, &mut message, &mut released),
                }
            }
        }
    }

    const NOTHING: &dyn Fn(ShardId) -> bool = &|_| false;

    fn connect(one: (ShardId, &mut Vts), other: (ShardId, &mut Vts), life: Option<u64>) -> Vec<Ticket> {
        let mut released = Vec::new();
        one.1.connected(other.0, life, &mut released);
        other.1.connected(one.0, life, &mut released);
        released
    }

    #[test]
    fn a_shard_whose_channel_broke_reports_again_what_it_does_not_know_to_be_published() {
        let (mut a, mut oracle) = (vts(A), vts(ORACLE));
        let stamps: Vec<Timestamp> = (0..3).map(|_| a.stamp(&Vec::new())).collect();
        a.finished(stamps[0], Some(&Vec::new()));
        talk(&mut [(A, &mut a), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(oracle.published.vector, [1, 0, 0, 0]);
        a.finished(stamps[2], None);
        a.outgoing(&mut Vec::new());
        connect((A, &mut a), (ORACLE, &mut oracle), None);
        a.finished(stamps[1], Some(&vec![0, 0]));
        a.outgoing(&mut Vec::new());
        connect((A, &mut a), (ORACLE, &mut oracle), Some(7));
        assert_eq!(a.unpublished(), 3);
        talk(&mut [(A, &mut a), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(oracle.published.vector, [3, 0, 0, 0]);
        let mut published = Message::Published(Arc::new(oracle.published.vector.clone()));
        a.snapshots.waiting.ask_ahead();
        a.receive(ORACLE, &mut published, &mut Vec::new());
        assert_eq!((a.unpublished(), oracle.unpublished()), (0, 0));
    }

    #[test]
    fn a_client_stamps_with_what_it_has_claimed_and_only_then() {
        let (mut client, mut oracle) = (vts(CLIENT), vts(ORACLE));
        client.want_stamp(1);
        let released = connect((CLIENT, &mut client), (ORACLE, &mut oracle), None);
        assert_eq!((released, client.lost(1)), (vec![1], true), "there is no oracle");
        connect((CLIENT, &mut client), (ORACLE, &mut oracle), Some(7));
        assert!(!client.ready());
        client.want_stamp(2);
        assert_eq!(talk(&mut [(CLIENT, &mut client), (ORACLE, &mut oracle)], NOTHING), [2]);
        assert_eq!(client.take_stamp(2), Some(pack(2, 1)));
        assert!(client.ready());
        // Half of it is used: it asks for more before it has none.
        client.counter.store(CLAIM / 2 - 1, Ordering::Relaxed);
        client.stamp(&Vec::new());
        talk(&mut [(CLIENT, &mut client), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(client.through, 2 * CLAIM);
        // Its channel breaks, and is mended in time.
        for life in [None, Some(7)] {
            connect((CLIENT, &mut client), (ORACLE, &mut oracle), life);
            assert!(!client.ready());
        }
        talk(&mut [(CLIENT, &mut client), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(client.stamp(&Vec::new()), pack(2, CLAIM / 2 + 1));
        assert_eq!(oracle.unpublished(), 0, "it is nobody's former claim");
    }

    #[test]
    fn the_stamps_of_a_client_that_is_gone_are_published_with_what_they_may_depend_on() {
        let (mut a, mut b, mut oracle) = (vts(A), vts(B), vts(ORACLE));
        let mut client = vts(CLIENT);
        connect((CLIENT, &mut client), (ORACLE, &mut oracle), Some(7));
        talk(&mut [(CLIENT, &mut client), (ORACLE, &mut oracle)], NOTHING);
        // It has read on B what A's coordinator wrote there, and written on A.
        let read = a.stamp(&Vec::new());
        b.pinned(read);
        let lost = client.stamp(&Vec::new());
        a.pinned(lost);
        oracle.connected(CLIENT, None, &mut Vec::new());
        let mut all = |oracle: &mut Vts, left: &dyn Fn(ShardId) -> bool| {
            talk(&mut [(A, &mut a), (B, &mut b), (ORACLE, oracle)], left);
            (a.over(lost), b.over(lost), oracle.published.vector.clone(), oracle.unpublished())
        };
        assert_eq!(all(&mut oracle, NOTHING), (false, false, vec![0; 4], 1), "it may come back");
        oracle.tick(Timestamp(oracle.due().expect("it is waited for")));
        let left = all(&mut oracle, &|shard| shard == A);
        assert_eq!(left, (true, true, vec![0; 4], 1), "A does not know the outcome");
        oracle.tick(Timestamp(oracle.clock.0 + INQUIRE_NS));
        assert_eq!(all(&mut oracle, NOTHING), (true, true, vec![0; 4], 1), "what it has read is not in");
        a.finished(read, Some(&Vec::new()));
        talk(&mut [(A, &mut a), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(oracle.published.vector, [1, 0, CLAIM, 0]);
        assert_eq!((oracle.published(), oracle.unpublished()), (1, 0));
    }

    #[test]
    fn who_takes_the_place_of_another_goes_on_behind_it_and_waits_until_that_is_settled() {
        let (mut a, mut b, mut oracle) = (vts(A), vts(B), vts(ORACLE));
        let (mut first, mut second) = (vts(CLIENT), vts(CLIENT));
        connect((CLIENT, &mut first), (ORACLE, &mut oracle), Some(7));
        talk(&mut [(CLIENT, &mut first), (ORACLE, &mut oracle)], NOTHING);
        let late = first.stamp(&Vec::new());
        oracle.connected(CLIENT, None, &mut Vec::new());
        connect((CLIENT, &mut second), (ORACLE, &mut oracle), Some(8));
        second.want_stamp(1);
        let mut all = |oracle: &mut Vts, left: &dyn Fn(ShardId) -> bool| {
            talk(&mut [(A, &mut a), (B, &mut b), (CLIENT, &mut second), (ORACLE, oracle)], left)
        };
        assert!(all(&mut oracle, &|shard| shard == B).is_empty());
        oracle.tick(Timestamp(oracle.clock.0 + INQUIRE_NS));
        assert_eq!(all(&mut oracle, NOTHING), [1]);
        assert_eq!(second.take_stamp(1), Some(pack(2, CLAIM + 1)));
        assert!(a.over(late) && !a.over(pack(2, CLAIM + 1)));
        assert_eq!(oracle.published.vector, [0, 0, CLAIM, 0]);
    }

    #[test]
    fn a_client_that_was_cut_off_too_long_is_given_other_stamps() {
        let (mut a, mut b, mut oracle) = (vts(A), vts(B), vts(ORACLE));
        let mut client = vts(OTHER);
        connect((OTHER, &mut client), (ORACLE, &mut oracle), Some(7));
        talk(&mut [(OTHER, &mut client), (ORACLE, &mut oracle)], NOTHING);
        let late = client.stamp(&Vec::new());
        connect((OTHER, &mut client), (ORACLE, &mut oracle), None);
        talk(&mut [(ORACLE, &mut oracle)], NOTHING);
        oracle.tick(Timestamp(oracle.due().expect("it is waited for")));
        // It reads what A's coordinator has written after A was asked for the first time; that is
        // not forgotten.
        let mut sent = Vec::new();
        oracle.outgoing(&mut sent);
        for (to, message) in &sent {
            let shard = if *to == A { &mut a } else { &mut b };
            shard.answer(ORACLE, message, false);
        }
        let written = b.stamp(&Vec::new());
        a.pinned(written);
        connect((OTHER, &mut client), (ORACLE, &mut oracle), Some(7));
        talk(&mut [(A, &mut a), (B, &mut b), (OTHER, &mut client), (ORACLE, &mut oracle)], NOTHING);
        assert!(a.over(late) && b.over(late), "nobody votes for it any more");
        assert_eq!(client.stamp(&Vec::new()), pack(3, CLAIM + 1));
        assert_eq!(oracle.published.vector, [0; 4], "it may depend on what is not published");
        b.finished(written, Some(&Vec::new()));
        client.finished(late, None);
        talk(&mut [(B, &mut b), (OTHER, &mut client), (ORACLE, &mut oracle)], NOTHING);
        assert_eq!(oracle.published.vector, [0, 1, 0, CLAIM]);
    }
    /// The same where shards log, with what a former life has kept.
    fn logging(shard: ShardId, former: Option<&Vts>) -> Vts {
        let mut vts = Vts::new(&SchemeConfig { clients: 3..5, logs: true, ..scheme_config(shard.0, 2) });
        vts.tick(Timestamp(1));
        let kept = former.map(Vts::kept).unwrap_or_default();
        kept.into_iter().for_each(|kept| vts.restore(kept).expect("it has kept it"));
        vts.restored();
        vts
    }

    #[test]
    fn an_oracle_that_comes_back_settles_all_that_was_claimed_before_it_tells_anything() {
        let (mut a, mut b, mut oracle) = (logging(A, None), logging(B, None), logging(ORACLE, None));
        [&mut a, &mut b].into_iter().for_each(|shard| shard.want_stamp(1));
        talk(&mut [(A, &mut a), (B, &mut b), (ORACLE, &mut oracle)], NOTHING);
        let written = a.take_stamp(1).expect("it has claimed some");
        assert!(oracle.has_news() && b.take_stamp(1) == Some(pack(1, 1)));
        // The oracle ends, and A's other life has read what B wrote there. B is about to write.
        a.pinned(pack(1, 1));
        let mut oracle = logging(ORACLE, Some(&oracle));
        let mut a = logging(A, Some(&a));
        connect((B, &mut b), (ORACLE, &mut oracle), Some(7));
        b.snapshots.waiting.ask_ahead();
        oracle.receive(B, &mut Message::AskVector, &mut Vec::new());
        b.want_stamp(2);
        let mut all = |oracle: &mut Vts, b: &mut Vts| {
            talk(&mut [(A, &mut a), (B, b), (ORACLE, oracle)], NOTHING);
            (a.over(written), oracle.publishes())
        };
        assert_eq!(all(&mut oracle, &mut b), (true, false), "B has not finished what it has stamped");
        assert!(oracle.published.vector[0] == 0 && b.take_stamp(2).is_none());
        b.finished(pack(1, 1), Some(&Vec::new()));
        oracle.tick(Timestamp(1 + INQUIRE_NS));
        assert_eq!(all(&mut oracle, &mut b), (true, true));
        assert_eq!(oracle.published.vector, [CLAIM, CLAIM, 0, 0]);
        assert_eq!(b.take_stamp(2), Some(pack(1, CLAIM + 1)), "of another claim");
    }

    #[test]
    fn what_a_shard_has_told_others_its_next_life_knows() {
        let mut a = logging(A, None);
        a.pinned(pack(1, 3));
        a.answer(ORACLE, &Message::Inquire { of: CLIENT, slot: 2, through: CLAIM, number: 1 }, false);
        let kept = a.news();
        assert_eq!(kept, [Kept::Pinned(vec![pack(1, 3)]), Kept::Over(vec![pack(2, CLAIM)])]);
        assert!(!a.has_news());
        a.pinned(pack(0, 4));
        assert_eq!(a.news(), [Kept::Pinned(vec![pack(0, 4)])], "only what is new");
        let mut next = logging(A, None);
        kept.into_iter().for_each(|kept| next.restore(kept).expect("it has kept it"));
        assert!(next.over(pack(2, CLAIM)) && next.readers == [0, 3]);
        let foreign = Kept::Pinned(vec![pack(77, 1)]);
        assert!(next.restore(foreign).is_err(), "there is no such slot");
    }
}
