//! GTS: a global counter, the timestamp oracle.
//!
//! A read-write transaction that holds all its locks fetches the next number and stamps its
//! versions with it; fetched under locks, numbers agree with the order of conflicts. When
//! everything is installed it reports the number, and the oracle advances *stable* over the
//! gap-free prefix of reported numbers: numbers commit out of order, and a snapshot at 9 must not
//! miss 7. Read-only transactions read at stable and never wait, but are as stale as the slowest
//! transaction. A number whose transaction aborted is reported as well: it stands for nothing, but
//! stable must pass it.
//!
//! Worked example: A fetches 7, B fetches 8, B reports 8; stable stays 6. A aborts and reports 7;
//! stable is 8.
//!
//! **When something is lost.** A number that is never reported would hold stable back for ever, so
//! the oracle knows who has which.
//!
//! * *A channel* breaks between a shard and the oracle, with fetches, answers and reports on their
//!   way. Transactions that wait for the oracle give up meanwhile. Over the next channel the shard
//!   says first which numbers it still has ([`Message::Resume`]); the others it never heard of, or
//!   is done with.
//! * *A coordinator* is gone. Its transactions may have been voted on and be installed yet, by
//!   those who voted (`votes.rs`). So the oracle asks every shard with data whether it knows of
//!   anything of that coordinator that is undecided ([`Message::Inquire`]), again and again, until
//!   each has said no once. That is final: a number is fetched when all locks are held, so what
//!   holds none and is not decided on a shard will never be written there. Only then do the numbers
//!   stand for nothing, or for something that is installed.
//! * *The oracle* itself keeps nothing. Another life of it would begin at 1; whoever runs it sees
//!   to it that nobody who knows of larger numbers ever meets it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_types::Ticket;
use plimsoll_types::{ShardId, Timestamp};

use plimsoll_types::mutants::{Mutant, planted};

use super::oracle::{LocalCopy, Waiting};
use crate::service::{self, Service};
use crate::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};

/// How often the oracle asks about a coordinator that is gone, in nanoseconds.
const INQUIRE_NS: u64 = 100_000_000;

/// GTS on one shard, or the oracle.
#[derive(Debug)]
pub struct Gts {
    shard: ShardId,
    oracle: ShardId,
    /// How many shards may have data, the first of all.
    holders: usize,
    patience_ns: u64,
    options: OracleOptions,
    clock: Timestamp,
    stable: Timestamp,
    stamps: Waiting,
    snapshots: LocalCopy,
    arrived: BTreeMap<Ticket, Timestamp>,
    reports: Vec<Timestamp>,
    /// Numbers that this shard has and has not reported.
    open: BTreeSet<Timestamp>,
    /// Whether the oracle can be reached anew, and is yet to hear which numbers those are.
    resume: bool,
    counter: Counter,
    /// The oracle's: the life of each shard that it has met.
    lives: BTreeMap<ShardId, u64>,
    /// The oracle's: coordinators that are gone and have numbers.
    gone: BTreeMap<Owner, Inquiry>,
    inquiries: u64,
    answers: Vec<(ShardId, Message)>,
    /// Numbers that a mutant has fetched and not used yet.
    spare: VecDeque<Timestamp>,
}

/// A coordinator, in one of its lives.
type Owner = (ShardId, u64);

/// The oracle's own state.
#[derive(Debug, Default)]
struct Counter {
    stable: u64,
    /// Of the numbers above stable that were given out: who has it; `None` if it was reported.
    issued: VecDeque<Option<Owner>>,
}

/// What the oracle does about a coordinator that is gone and has numbers.
#[derive(Debug)]
struct Inquiry {
    number: u64,
    /// When to ask next, in nanoseconds.
    next: u64,
    /// The first number of an attempt of a later life.
    below: u64,
    /// Shards that may have something left.
    left: BTreeSet<ShardId>,
}

/// What travels between a shard and the oracle.
#[derive(Debug)]
pub enum Message {
    /// So many transactions hold all their locks and want a number.
    Fetch(u64),
    /// The first of the numbers fetched; the others follow it.
    Fetched(u64),
    /// These numbers are installed everywhere, or stand for nothing.
    Report(Vec<Timestamp>),
    /// What is stable?
    AskStable,
    /// The answer.
    Stable(u64),
    /// Over a new channel: of all numbers that were given to this shard it has these.
    Resume(Vec<Timestamp>),
    /// Is anything undecided of a coordinator that is gone?
    Inquire {
        /// The coordinator.
        of: ShardId,
        /// Attempts from here on are not meant.
        below: u64,
        /// Which inquiry it is: answers to an earlier one, about the same coordinator, come too
        /// late.
        number: u64,
    },
    /// The answer.
    Left {
        /// Which inquiry it was.
        number: u64,
        /// Whether there is.
        left: bool,
    },
}

plimsoll_types::wire!(
    enum Message {
        Fetch(count) = 0,
        Fetched(first) = 1,
        Report(numbers) = 2,
        AskStable = 3,
        Stable(stable) = 4,
        Resume(open) = 5,
        Inquire { of, below, number } = 6,
        Left { number, left } = 7,
    }
);

impl Counter {
    /// Gives out so many numbers. Returns the first.
    fn fetch(&mut self, count: u64, owner: Owner) -> u64 {
        let first = self.last() + 1;
        self.issued.extend((0..count).map(|_| Some(owner)));
        first
    }

    /// The last number that was given out.
    fn last(&self) -> u64 {
        self.stable + self.issued.len() as u64
    }

    fn report(&mut self, number: u64) {
        assert!(number <= self.last(), "only numbers that were issued are reported");
        // What was lost on its way and made good may come again.
        let Some(place) = number.checked_sub(self.stable + 1) else { return };
        self.issued[place as usize] = None;
        if planted(Mutant::GapIgnored) {
            self.issued.drain(..=place as usize);
            self.stable = number;
        }
        self.advance();
    }

    fn advance(&mut self) {
        while let Some(None) = self.issued.front() {
            self.issued.pop_front();
            self.stable += 1;
        }
    }

    /// All numbers of an owner but these stand for nothing, or are installed.
    fn close(&mut self, owner: Owner, open: &BTreeSet<Timestamp>) {
        for (number, issued) in (self.stable + 1..).zip(&mut self.issued) {
            if *issued == Some(owner) && !open.contains(&Timestamp(number)) {
                *issued = None;
            }
        }
        self.advance();
    }

    fn has(&self, owner: Owner) -> bool {
        self.issued.contains(&Some(owner))
    }
}

impl Scheme for Gts {
    const NAME: &'static str = "gts";
    const READ_ONLY: ReadOnly = ReadOnly::Snapshot;
    const AT_ONCE: bool = false;
    const SCALAR: bool = true;
    const REPORTS: bool = true;
    const ORACLE: bool = true;

    type Mark = ();
    type Snapshot = Timestamp;
    type Observed = ();

    fn new(config: &SchemeConfig) -> Gts {
        Gts {
            shard: config.shard,
            oracle: config.oracle_shard(),
            holders: config.holders().count(),
            patience_ns: config.patience_ns,
            options: config.oracle,
            clock: Timestamp::ZERO,
            stable: Timestamp::ZERO,
            stamps: Waiting::default(),
            snapshots: LocalCopy::new(config.oracle),
            arrived: BTreeMap::new(),
            reports: Vec::new(),
            open: BTreeSet::new(),
            resume: false,
            counter: Counter::default(),
            lives: BTreeMap::new(),
            gone: BTreeMap::new(),
            inquiries: 0,
            answers: Vec::new(),
            spare: VecDeque::new(),
        }
    }

    fn tick(&mut self, clock: Timestamp) {
        self.clock = clock;
    }

    fn observe(_: &mut (), _: Timestamp) {}

    fn join(_: &mut (), _: &()) {}

    fn stamp(&mut self, _: &()) -> Timestamp {
        unreachable!("a GTS number is fetched")
    }

    fn snapshot(&mut self, freshness: Freshness) -> Option<Timestamp> {
        (self.snapshots.serves(self.clock) && freshness.at_least <= self.stable).then_some(self.stable)
    }

    fn sees(at: &Timestamp, stamp: Timestamp) -> bool {
        stamp <= *at
    }

    fn place(at: &Timestamp) -> Option<Timestamp> {
        Some(*at)
    }

    fn low(&self, low: &mut [u64]) {
        low[0] = self.stable.0;
    }

    fn lower(at: &Timestamp, low: &mut [u64]) {
        low[0] = low[0].min(at.0);
    }

    fn raise(&mut self, low: &[u64]) {
        self.stable.raise(Timestamp(low[0]));
    }

    fn passed(watermark: &[u64], stamp: Timestamp) -> bool {
        stamp.0 <= watermark[0]
    }
}

impl Service<()> for Gts {
    type Message = Message;

    fn want_stamp(&mut self, ticket: Ticket) {
        if planted(Mutant::PrefetchedNumbers)
            && let Some(number) = self.spare.pop_front()
        {
            self.arrived.insert(ticket, number);
            return;
        }
        self.stamps.gather(ticket);
    }

    fn take_stamp(&mut self, ticket: Ticket) -> Option<Timestamp> {
        self.arrived.remove(&ticket)
    }

    fn lost(&mut self, ticket: Ticket) -> bool {
        self.stamps.lost(ticket) || self.snapshots.waiting.lost(ticket)
    }

    fn finished(&mut self, stamp: Timestamp, _: Option<&()>) {
        self.open.remove(&stamp);
        self.reports.push(stamp);
    }

    fn want_snapshot(&mut self, ticket: Ticket) {
        self.snapshots.waiting.gather(ticket);
    }

    fn awaits_snapshot(&self) -> bool {
        self.snapshots.waiting.outstanding() > 0
    }

    fn connected(&mut self, peer: ShardId, life: Option<u64>, released: &mut Vec<Ticket>) {
        if self.shard == self.oracle {
            return self.met(peer, life);
        }
        if peer != self.oracle {
            return;
        }
        self.resume = life.is_some();
        for waiting in [&mut self.stamps, &mut self.snapshots.waiting] {
            match life {
                Some(_) => waiting.ask_again(),
                None => waiting.give_up(released),
            }
        }
    }

    fn inquiry(message: &Message) -> Option<service::Inquiry> {
        match *message {
            Message::Inquire { of, below, .. } => Some(service::Inquiry { of, below, locks: true }),
            _ => None,
        }
    }

    fn answer(&mut self, from: ShardId, inquiry: &Message, left: bool) {
        if let Message::Inquire { number, .. } = *inquiry {
            self.answers.push((from, Message::Left { number, left }));
        }
    }

    fn receive(&mut self, from: ShardId, message: &mut Message, released: &mut Vec<Ticket>) {
        match message {
            // The oracle.
            Message::Fetch(count) => {
                let owner = (from, self.life(from));
                self.answers.push((from, Message::Fetched(self.counter.fetch(*count, owner))));
            }
            Message::Report(numbers) => numbers.iter().for_each(|number| self.counter.report(number.0)),
            Message::AskStable => self.answers.push((from, Message::Stable(self.counter.stable))),
            Message::Resume(open) => {
                let owner = (from, self.life(from));
                self.gone.remove(&owner);
                self.counter.close(owner, &open.drain(..).collect());
            }
            Message::Left { number, left } => self.heard(from, *number, *left),
            Message::Inquire { .. } => unreachable!("an inquiry is answered"),
            // The shard that asked.
            Message::Fetched(first) => {
                let tickets = self.stamps.answered();
                if planted(Mutant::PrefetchedNumbers) {
                    self.spare.push_back(Timestamp(*first + tickets.len() as u64));
                }
                self.open.extend((*first..).map(Timestamp).take(tickets.len()));
                self.arrived.extend(tickets.iter().zip(*first..).map(|(&ticket, n)| (ticket, Timestamp(n))));
                released.extend(tickets);
            }
            Message::Stable(stable) => {
                self.stable.raise(Timestamp(*stable));
                released.extend(self.snapshots.renew(self.clock));
            }
        }
    }

    fn published(&self) -> u64 {
        self.counter.stable
    }

    fn unpublished(&self) -> u64 {
        self.counter.issued.len() as u64
    }

    fn due(&self) -> Option<u64> {
        self.gone.values().map(|inquiry| inquiry.next).min()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Message)>) {
        self.inquire(send);
        send.append(&mut self.answers);
        // What is not open any more will be known from what still is.
        if self.stamps.down {
            return self.reports.clear();
        }
        if std::mem::take(&mut self.resume) {
            self.reports.clear();
            send.push((self.oracle, Message::Resume(self.open.iter().copied().collect())));
        }
        // Reports first: a snapshot that is asked for in the same pass may then include them.
        if self.options.batch {
            if !self.reports.is_empty() {
                send.push((self.oracle, Message::Report(std::mem::take(&mut self.reports))));
            }
        } else {
            send.extend(self.reports.drain(..).map(|n| (self.oracle, Message::Report(vec![n]))));
        }
        let spare = u64::from(planted(Mutant::PrefetchedNumbers));
        let fetches = self.stamps.send(self.options.batch).map(|n| Message::Fetch(n as u64 + spare));
        send.extend(fetches.map(|fetch| (self.oracle, fetch)));
        let asks = self.snapshots.ask(self.options.batch, self.clock);
        send.extend((0..asks).map(|_| (self.oracle, Message::AskStable)));
    }
}

/// What an oracle does about coordinators that come and go.
impl Gts {
    /// The life in which a shard is connected; shards of the oracle's own process have but one.
    fn life(&self, shard: ShardId) -> u64 {
        self.lives.get(&shard).copied().unwrap_or_default()
    }

    fn met(&mut self, peer: ShardId, life: Option<u64>) {
        let Some(life) = life else {
            // It may come back.
            let owner = (peer, self.life(peer));
            return self.begin_inquiry(owner, self.clock.0 + self.patience_ns, u64::MAX);
        };
        let before = self.lives.insert(peer, life).unwrap_or(life);
        if before != life {
            self.gone.remove(&(peer, before));
            self.begin_inquiry((peer, before), self.clock.0, life);
        }
    }

    fn begin_inquiry(&mut self, owner: Owner, next: u64, below: u64) {
        if self.counter.has(owner) {
            let left = (0..self.holders as u16).map(ShardId).collect();
            self.inquiries += 1;
            self.gone.insert(owner, Inquiry { number: self.inquiries, next, below, left });
        }
    }

    /// Asks those who may have something left.
    fn inquire(&mut self, send: &mut Vec<(ShardId, Message)>) {
        for (&(of, _), inquiry) in &mut self.gone {
            if inquiry.next <= self.clock.0 {
                inquiry.next = self.clock.0 + INQUIRE_NS;
                let Inquiry { number, below, .. } = *inquiry;
                let message = |&shard: &ShardId| (shard, Message::Inquire { of, below, number });
                send.extend(inquiry.left.iter().map(message));
            }
        }
    }

    /// A shard has answered.
    fn heard(&mut self, from: ShardId, number: u64, left: bool) {
        let asked = self.gone.iter_mut().find(|(_, inquiry)| inquiry.number == number && !left);
        let Some((&owner, inquiry)) = asked else { return };
        inquiry.left.remove(&from);
        if inquiry.left.is_empty() {
            self.gone.remove(&owner);
            self.counter.close(owner, &BTreeSet::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scheme_config;

    const A: ShardId = ShardId(0);
    const B: ShardId = ShardId(1);
    const ORACLE: ShardId = ShardId(2);

    #[test]
    fn stable_waits_for_the_gap_to_close() {
        let mut counter = Counter::default();
        counter.fetch(9, (A, 1));
        (1..=6).for_each(|n| counter.report(n));
        counter.report(8);
        assert_eq!(counter.stable, 6);
        counter.report(7);
        assert_eq!(counter.stable, 8);
    }

    /// Takes what one side has to send to the other.
    fn carry(from: &mut Gts, of: ShardId, to: &mut Gts) -> Vec<Ticket> {
        let (mut sent, mut released) = (Vec::new(), Vec::new());
        from.outgoing(&mut sent);
        for (_, mut message) in sent {
            match Gts::inquiry(&message) {
                Some(_) => to.answer(of, &message, false),
                None => to.receive(of, &mut message, &mut released),
            }
        }
        released
    }

    #[test]
    fn a_shard_whose_channel_broke_says_which_numbers_it_has() {
        let (mut shard, mut oracle) = (Gts::new(&scheme_config(0, 2)), Gts::new(&scheme_config(2, 2)));
        oracle.connected(A, Some(7), &mut Vec::new());
        (0..3).for_each(|ticket| shard.want_stamp(ticket));
        carry(&mut shard, A, &mut oracle);
        assert_eq!(carry(&mut oracle, ORACLE, &mut shard), [0, 1, 2]);
        assert_eq!(shard.take_stamp(0), Some(Timestamp(1)));
        // One is reported, and the report is lost; two more are fetched, and the answer is lost.
        shard.finished(Timestamp(1), Some(&()));
        shard.outgoing(&mut Vec::new());
        (3..5).for_each(|ticket| shard.want_stamp(ticket));
        carry(&mut shard, A, &mut oracle);
        let mut released = Vec::new();
        shard.connected(ORACLE, None, &mut released);
        assert_eq!(released, [3, 4]);
        assert!(shard.lost(3) && shard.lost(4) && !shard.lost(1));
        shard.want_stamp(5);
        assert!(shard.lost(5), "nobody waits for an oracle that cannot be reached");
        shard.finished(Timestamp(2), None);
        for side in [(&mut oracle, A), (&mut shard, ORACLE)] {
            side.0.connected(side.1, Some(7), &mut Vec::new());
        }
        carry(&mut shard, A, &mut oracle);
        assert_eq!((oracle.published(), oracle.unpublished()), (2, 3), "it has 3");
        shard.finished(Timestamp(3), Some(&()));
        carry(&mut shard, A, &mut oracle);
        assert_eq!((oracle.published(), oracle.unpublished()), (5, 0));
    }

    #[test]
    fn numbers_of_a_coordinator_that_is_gone_count_when_no_shard_has_anything_left_of_it() {
        let mut oracle = Gts::new(&scheme_config(2, 2));
        let client = ShardId(3);
        oracle.tick(Timestamp(1));
        oracle.connected(client, Some(10), &mut Vec::new());
        oracle.receive(client, &mut Message::Fetch(2), &mut Vec::new());
        oracle.receive(A, &mut Message::Fetch(1), &mut Vec::new());
        oracle.receive(A, &mut Message::Report(vec![Timestamp(3)]), &mut Vec::new());
        oracle.connected(client, None, &mut Vec::new());
        let asked = |oracle: &mut Gts| -> Vec<ShardId> {
            let mut sent = Vec::new();
            oracle.outgoing(&mut sent);
            let inquiry = service::Inquiry { of: client, below: 20, locks: true };
            sent.retain(|(_, message)| Gts::inquiry(message) == Some(inquiry));
            sent.into_iter().map(|(to, _)| to).collect()
        };
        assert!(asked(&mut oracle).is_empty(), "it may come back");
        // Another has its place; what it fetches is its own.
        oracle.connected(client, Some(20), &mut Vec::new());
        oracle.receive(client, &mut Message::Resume(Vec::new()), &mut Vec::new());
        oracle.receive(client, &mut Message::Fetch(1), &mut Vec::new());
        assert_eq!(asked(&mut oracle), [A, B]);
        let left = |oracle: &mut Gts, number, from, left| {
            oracle.receive(from, &mut Message::Left { number, left }, &mut Vec::new());
            oracle.published()
        };
        assert_eq!(left(&mut oracle, 2, A, false), 0);
        assert_eq!(left(&mut oracle, 2, B, true), 0, "something is undecided there");
        assert_eq!(left(&mut oracle, 1, B, false), 0, "the answer to a question from before comes too late");
        oracle.tick(Timestamp(1 + INQUIRE_NS));
        assert_eq!(asked(&mut oracle), [B], "it is asked again");
        assert_eq!(left(&mut oracle, 2, B, false), 3);
        assert_eq!(oracle.unpublished(), 1, "that of the other");
    }
}
