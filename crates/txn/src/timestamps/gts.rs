//! GTS: a global counter, the timestamp oracle.
//!
//! A read-write transaction that holds all its locks fetches the next number and stamps its versions with
//! it; fetched under locks, numbers agree with the order of conflicts. When everything is installed it
//! reports the number, and the oracle advances *stable* over the gap-free prefix of reported numbers: numbers
//! commit out of order, and a snapshot at 9 must not miss 7. Read-only transactions read at stable and never
//! wait, but are as stale as the slowest transaction. A number whose transaction aborted is reported as well:
//! it stands for nothing, but stable must pass it.
//!
//! Worked example: A fetches 7, B fetches 8, B reports 8; stable stays 6. A aborts and reports 7; stable is 8.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use plimsoll_runtime::Ticket;
use plimsoll_types::{ShardId, Timestamp};

use plimsoll_types::mutants::{Mutant, planted};

use super::oracle::{LocalCopy, Waiting};
use crate::timestamp::{Freshness, OracleOptions, ReadOnly, Scheme, SchemeConfig};

/// GTS on one shard, or the oracle.
#[derive(Debug)]
pub struct Gts {
    oracle: ShardId,
    options: OracleOptions,
    clock: Timestamp,
    stable: Timestamp,
    stamps: Waiting,
    snapshots: LocalCopy,
    arrived: BTreeMap<Ticket, Timestamp>,
    reports: Vec<Timestamp>,
    counter: Counter,
    answers: Vec<(ShardId, Message)>,
    /// Numbers that a mutant has fetched and not used yet.
    spare: VecDeque<Timestamp>,
}

/// The oracle's own state.
#[derive(Debug, Default)]
struct Counter {
    issued: u64,
    stable: u64,
    /// Reported numbers above the gap-free prefix.
    reported: BinaryHeap<Reverse<u64>>,
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
}

plimsoll_types::wire!(
    enum Message {
        Fetch(count) = 0,
        Fetched(first) = 1,
        Report(numbers) = 2,
        AskStable = 3,
        Stable(stable) = 4,
    }
);

impl Counter {
    fn report(&mut self, number: u64) {
        self.reported.push(Reverse(number));
        while self.reported.peek() == Some(&Reverse(self.stable + 1))
            || planted(Mutant::GapIgnored) && !self.reported.is_empty()
        {
            let Reverse(next) = self.reported.pop().expect("it was looked at");
            self.stable = self.stable.max(next);
        }
        assert!(self.stable <= self.issued, "only numbers that were issued are reported");
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
    type Message = Message;

    fn new(config: &SchemeConfig) -> Gts {
        Gts {
            oracle: config.oracle_shard(),
            options: config.oracle,
            clock: Timestamp::ZERO,
            stable: Timestamp::ZERO,
            stamps: Waiting::default(),
            snapshots: LocalCopy::new(config.oracle),
            arrived: BTreeMap::new(),
            reports: Vec::new(),
            counter: Counter::default(),
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

    fn finished(&mut self, stamp: Timestamp, _: Option<&()>) {
        self.reports.push(stamp);
    }

    fn snapshot(&mut self, freshness: Freshness) -> Option<Timestamp> {
        (self.snapshots.serves(self.clock) && freshness.at_least <= self.stable).then_some(self.stable)
    }

    fn want_snapshot(&mut self, ticket: Ticket) {
        self.snapshots.gather(ticket);
    }

    fn awaits_snapshot(&self) -> bool {
        self.snapshots.is_awaited()
    }

    fn connected(&mut self, peer: ShardId) {
        if peer == self.oracle {
            self.stamps.ask_again();
            self.snapshots.ask_again();
        }
    }

    fn sees(at: &Timestamp, stamp: Timestamp) -> bool {
        stamp <= *at
    }

    fn place(at: &Timestamp) -> Option<Timestamp> {
        Some(*at)
    }

    fn receive(&mut self, from: ShardId, message: &mut Message, released: &mut Vec<Ticket>) {
        match message {
            // The oracle.
            Message::Fetch(count) => {
                self.answers.push((from, Message::Fetched(self.counter.issued + 1)));
                self.counter.issued += *count;
            }
            Message::Report(numbers) => numbers.iter().for_each(|number| self.counter.report(number.0)),
            Message::AskStable => self.answers.push((from, Message::Stable(self.counter.stable))),
            // The shard that asked.
            Message::Fetched(first) => {
                let tickets = self.stamps.answered();
                if planted(Mutant::PrefetchedNumbers) {
                    self.spare.push_back(Timestamp(*first + tickets.len() as u64));
                }
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

    fn outgoing(&mut self, send: &mut Vec<(ShardId, Message)>) {
        send.append(&mut self.answers);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_waits_for_the_gap_to_close() {
        let mut counter = Counter { issued: 9, ..Counter::default() };
        (1..=6).for_each(|n| counter.report(n));
        counter.report(8);
        assert_eq!(counter.stable, 6);
        counter.report(7);
        assert_eq!(counter.stable, 8);
    }
}
