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
//! * *The oracle* is gone. Without logs its next life would begin at 1; the processes of the
//!   database see to it that none of them meets it. If shards log, the oracle has a log with one
//!   number in it, the last that it may have given out, and its next life gives out larger ones.
//!   The smaller ones are decided in two ways. A coordinator that lives says over its new channel
//!   which numbers it still has, and reports them later. About all others the oracle inquires as
//!   above: about former lives of coordinators, and about coordinators that do not come. Then the
//!   numbers of its former lives are published at once; before that no shard is told what is
//!   stable. A shard says what it has before it answers an inquiry, because no other shard knows
//!   what it has under way on itself alone.
//!
//! Example. The oracle has reserved numbers up to 100, and A and B, a client, have 7 and 8 when it
//! ends. Its next life gives out 101. A says that it has 7. B has ended, and all shards answer that
//! nothing of B's is undecided. A reports 7: now 100 is stable.

mod counter;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_types::Ticket;
use plimsoll_types::{ShardId, Timestamp};

use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::wire::Malformed;

use super::oracle::{LocalCopy, Waiting};
use crate::service::{self, Kept, Service};
use crate::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};
use counter::{Counter, Owner};

/// How often the oracle asks about a coordinator that is gone, in nanoseconds.
const INQUIRE_NS: u64 = 100_000_000;

/// GTS on one shard, or the oracle.
#[derive(Debug)]
pub struct Gts {
    shard: ShardId,
    oracle: ShardId,
    /// How many shards may have data, the first of all.
    holders: usize,
    /// The shards that may have numbers.
    coordinators: Vec<ShardId>,
    /// The number of the shard's first attempt, which tells its present life from others.
    first_attempt: u64,
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
    /// The oracle's, after a restart: coordinators that may have had numbers of former lives of the
    /// oracle, in other lives than those that have told which they have.
    former: BTreeMap<ShardId, Inquiry>,
    inquiries: u64,
    /// The oracle's: who is to be told what is stable once that is known.
    asking: Vec<ShardId>,
    answers: Vec<(ShardId, Message)>,
    /// Numbers that a mutant has fetched and not used yet.
    spare: VecDeque<Timestamp>,
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
#[derive(Clone, Debug)]
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
    /// Over a new channel, or at the beginning of a life: of all numbers that were given to this
    /// shard it has these.
    Resume {
        /// The number of the first attempt of its present life.
        life: u64,
        /// The numbers.
        open: Vec<Timestamp>,
    },
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
        Resume { life, open } = 5,
        Inquire { of, below, number } = 6,
        Left { number, left } = 7,
    }
);

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
            coordinators: config.coordinators().collect(),
            first_attempt: config.first_attempt,
            patience_ns: config.patience_ns,
            options: config.oracle,
            clock: Timestamp::ZERO,
            stable: Timestamp::ZERO,
            stamps: Waiting::default(),
            snapshots: LocalCopy::new(config.oracle),
            arrived: BTreeMap::new(),
            reports: Vec::new(),
            open: BTreeSet::new(),
            // A shard of the oracle's own process is never told that it is connected.
            resume: config.logs && config.shard != config.oracle_shard(),
            counter: Counter::default(),
            lives: BTreeMap::new(),
            gone: BTreeMap::new(),
            former: BTreeMap::new(),
            inquiries: 0,
            asking: Vec::new(),
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
            Message::AskStable if self.publishes() => {
                self.answers.push((from, Message::Stable(self.counter.stable)));
            }
            Message::AskStable => self.asking.push(from),
            Message::Resume { life, open } => self.resumed((from, *life), &open.drain(..).collect()),
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

    fn has_news(&self) -> bool {
        self.shard == self.oracle && self.counter.is_low()
    }

    fn news(&mut self) -> Vec<Kept> {
        match self.has_news() {
            true => vec![Kept::Reserved(self.counter.reserve())],
            false => Vec::new(),
        }
    }

    fn kept(&self) -> Vec<Kept> {
        let reserved = self.counter.reserved();
        Some(Kept::Reserved(reserved)).filter(|_| reserved > 0).into_iter().collect()
    }

    fn restore(&mut self, kept: Kept) -> Result<(), Malformed> {
        match kept {
            Kept::Reserved(to) if self.shard == self.oracle => self.counter.restore(to),
            _ => return Err(Malformed("what another shard keeps, or another timestamp scheme")),
        }
        Ok(())
    }

    fn restored(&mut self) {
        if !self.counter.has_former_lives() {
            return;
        }
        for coordinator in self.coordinators.clone() {
            let inquiry = self.inquiry_of(self.clock.0, u64::MAX);
            self.former.insert(coordinator, inquiry);
        }
    }

    fn published(&self) -> u64 {
        self.counter.stable
    }

    fn unpublished(&self) -> u64 {
        self.counter.open()
    }

    fn due(&self) -> Option<u64> {
        self.gone.values().chain(self.former.values()).map(|inquiry| inquiry.next).min()
    }

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Message)>) {
        self.inquire(send);
        if !self.asking.is_empty() && self.publishes() {
            let stable = self.counter.stable;
            send.extend(self.asking.drain(..).map(|from| (from, Message::Stable(stable))));
        }
        // Before all answers: of what this shard has on itself only the oracle is told, and only so.
        let resumes = !self.stamps.down && std::mem::take(&mut self.resume);
        if resumes {
            self.reports.clear();
            let open = self.open.iter().copied().filter(|_| !planted(Mutant::OldNumberTaken)).collect();
            send.push((self.oracle, Message::Resume { life: self.first_attempt, open }));
        }
        send.append(&mut self.answers);
        // What is not open any more will be known from what still is.
        if self.stamps.down {
            return self.reports.clear();
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
        self.asking.retain(|&asking| asking != peer);
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

    /// A coordinator has said in one of its lives which numbers it has. Only its former lives are
    /// to be asked about from then on.
    fn resumed(&mut self, owner: Owner, open: &BTreeSet<Timestamp>) {
        let (coordinator, life) = owner;
        self.lives.insert(coordinator, life);
        self.gone.remove(&owner);
        self.counter.resume(owner, open);
        if self.former.contains_key(&coordinator) {
            let inquiry = self.inquiry_of(self.clock.0, life);
            self.former.insert(coordinator, inquiry);
        }
    }

    /// Whether all numbers of former lives of the oracle are decided.
    fn publishes(&self) -> bool {
        let decided = self.former.is_empty() && !self.counter.has_old();
        decided || planted(Mutant::PublishedTooHigh)
    }

    fn inquiry_of(&mut self, next: u64, below: u64) -> Inquiry {
        self.inquiries += 1;
        let left = (0..self.holders as u16).map(ShardId).collect();
        Inquiry { number: self.inquiries, next, below, left }
    }

    fn begin_inquiry(&mut self, owner: Owner, next: u64, below: u64) {
        if self.counter.has(owner) {
            let inquiry = self.inquiry_of(next, below);
            self.gone.insert(owner, inquiry);
        }
    }

    /// Asks those who may have something left.
    fn inquire(&mut self, send: &mut Vec<(ShardId, Message)>) {
        let gone = self.gone.iter_mut().map(|(&(of, _), inquiry)| (of, inquiry));
        let former = self.former.iter_mut().map(|(&of, inquiry)| (of, inquiry));
        for (of, inquiry) in gone.chain(former) {
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
        let is_over = |inquiry: &mut Inquiry| {
            let asked = inquiry.number == number && !left;
            asked && inquiry.left.remove(&from) && inquiry.left.is_empty()
        };
        let gone = self.gone.iter_mut().find_map(|(&owner, inquiry)| is_over(inquiry).then_some(owner));
        if let Some(owner) = gone {
            self.gone.remove(&owner);
            self.counter.close(owner, &BTreeSet::new());
        }
        self.former.retain(|_, inquiry| !is_over(inquiry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scheme_config;

    const A: ShardId = ShardId(0);
    const B: ShardId = ShardId(1);
    const ORACLE: ShardId = ShardId(2);

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
        let config = SchemeConfig { first_attempt: 7, ..scheme_config(0, 2) };
        let (mut shard, mut oracle) = (Gts::new(&config), Gts::new(&scheme_config(2, 2)));
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
        let resume = Message::Resume { life: 20, open: Vec::new() };
        oracle.receive(client, &mut resume.clone(), &mut Vec::new());
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
    /// An oracle in its next life, which has read the log of the former.
    fn next_life(former: &Gts) -> Gts {
        let mut oracle = Gts::new(&SchemeConfig { logs: true, clients: 3..4, ..scheme_config(2, 2) });
        oracle.tick(Timestamp(1));
        former.kept().into_iter().for_each(|kept| oracle.restore(kept).expect("an oracle has kept it"));
        oracle.restored();
        oracle
    }

    fn receive(oracle: &mut Gts, from: ShardId, mut message: Message) {
        oracle.receive(from, &mut message, &mut Vec::new());
    }

    /// What the oracle sends to a shard.
    fn sent_to(oracle: &mut Gts, shard: ShardId) -> Vec<Message> {
        let mut sent = Vec::new();
        oracle.outgoing(&mut sent);
        sent.into_iter().filter(|(to, _)| *to == shard).map(|(_, message)| message).collect()
    }

    #[test]
    fn an_oracle_that_comes_back_publishes_what_its_former_life_gave_out_when_all_of_it_is_decided() {
        let (mut former, client) = (Gts::new(&scheme_config(2, 2)), ShardId(3));
        assert!(former.has_news(), "nothing is reserved");
        former.news();
        [A, B, client].into_iter().for_each(|shard| receive(&mut former, shard, Message::Fetch(1)));
        let mut oracle = next_life(&former);
        let reserved = former.counter.reserved();
        receive(&mut oracle, B, Message::AskStable);
        receive(&mut oracle, A, Message::Fetch(1));
        // It asks for all that coordinators may have had.
        let inquiries = |oracle: &mut Gts, shard| -> Vec<(ShardId, u64, u64)> {
            let inquiry = |message| match message {
                Message::Inquire { of, below, number } => Some((of, below, number)),
                Message::Fetched(first) if shard == A => {
                    assert_eq!(first, reserved + 1);
                    None
                }
                message => panic!("{message:?}"),
            };
            sent_to(oracle, shard).into_iter().filter_map(inquiry).collect()
        };
        let asked = inquiries(&mut oracle, A);
        assert_eq!(
            asked.iter().map(|&(of, below, _)| (of, below)).collect::<Vec<_>>(),
            [(A, u64::MAX), (B, u64::MAX), (client, u64::MAX)]
        );
        // A lives and has its number. B is in another life and has none.
        receive(&mut oracle, A, Message::Resume { life: 5, open: vec![Timestamp(1)] });
        receive(&mut oracle, B, Message::Resume { life: 6, open: Vec::new() });
        oracle.tick(Timestamp(1 + INQUIRE_NS));
        let asked = inquiries(&mut oracle, B);
        let below: Vec<u64> = asked.iter().map(|&(_, below, _)| below).collect();
        assert_eq!(below, [5, 6, u64::MAX]);
        for (from, left) in [(A, false), (B, true), (B, false)] {
            assert!(!oracle.publishes());
            for &(_, _, number) in &asked {
                receive(&mut oracle, from, Message::Left { number, left });
            }
        }
        assert!(!oracle.publishes(), "A has not reported");
        assert!(sent_to(&mut oracle, B).is_empty());
        receive(&mut oracle, A, Message::Report(vec![Timestamp(1)]));
        assert!(matches!(sent_to(&mut oracle, B)[..], [Message::Stable(stable)] if stable == reserved));
        assert_eq!(oracle.unpublished(), 1, "that of this life");
    }

    #[test]
    fn a_coordinator_says_what_it_has_before_it_answers() {
        let mut shard = Gts::new(&SchemeConfig { logs: true, ..scheme_config(0, 2) });
        shard.answer(ORACLE, &Message::Inquire { of: A, below: u64::MAX, number: 1 }, false);
        let mut sent = Vec::new();
        shard.outgoing(&mut sent);
        assert!(matches!(sent[0].1, Message::Resume { life: 1, .. }), "{sent:?}");
        assert!(matches!(sent[1].1, Message::Left { .. }), "{sent:?}");
    }
}
