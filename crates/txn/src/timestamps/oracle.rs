//! What GTS and VTS share: asking an oracle from within the passes of a shard.
//!
//! Requests gather on the shard while its transactions run; at the end of the pass one message
//! carries them all (*coalescing*; with batching switched off, each goes alone). A number is never
//! fetched before the transaction that uses it holds all its locks: an older number could order its
//! versions wrongly. The oracle answers in the order of arrival, so answers need no names.

use std::collections::{BTreeSet, VecDeque};

use plimsoll_types::Ticket;
use plimsoll_types::Timestamp;

use crate::timestamp::OracleOptions;

/// Requests of one sort that wait for the oracle's answer.
#[derive(Debug, Default)]
pub struct Waiting {
    gathered: Vec<Ticket>,
    /// One entry per message on its way.
    asked: VecDeque<Vec<Ticket>>,
    /// The oracle cannot be reached.
    pub down: bool,
    /// Those who need not wait any more.
    lost: BTreeSet<Ticket>,
}

impl Waiting {
    /// A request joins the next message.
    pub fn gather(&mut self, ticket: Ticket) {
        match self.down {
            true => drop(self.lost.insert(ticket)),
            false => self.gathered.push(ticket),
        }
    }

    /// The oracle can be reached no more. Nobody waits for it: who comes now, and who has asked, is
    /// [`Waiting::lost`].
    pub fn give_up(&mut self, released: &mut Vec<Ticket>) {
        let waiting: Vec<Ticket> = self.asked.drain(..).flatten().chain(self.gathered.drain(..)).collect();
        self.lost.extend(&waiting);
        released.extend(waiting);
        self.down = true;
    }

    /// Whether a request will not be answered. Said once.
    pub fn lost(&mut self, ticket: Ticket) -> bool {
        self.lost.remove(&ticket)
    }

    /// The requests that travel in one message each, now that it is time to send.
    pub fn send(&mut self, batch: bool) -> impl Iterator<Item = usize> {
        let first = self.asked.len();
        if batch && !self.gathered.is_empty() {
            self.asked.push_back(std::mem::take(&mut self.gathered));
        } else {
            self.asked.extend(self.gathered.drain(..).map(|ticket| vec![ticket]));
        }
        self.asked.range(first..).map(Vec::len)
    }

    /// Asks although nobody waits, to keep a local copy fresh.
    pub fn ask_ahead(&mut self) {
        self.asked.push_back(Vec::new());
    }

    /// The channel to the oracle is a new one: what was asked over the former one, or before there
    /// was any, will not be answered, and is asked again.
    pub fn ask_again(&mut self) {
        self.down = false;
        let asked: Vec<Ticket> = self.asked.drain(..).flatten().collect();
        self.gathered.splice(0..0, asked);
    }

    /// How many messages are on their way.
    pub fn outstanding(&self) -> usize {
        self.asked.len()
    }

    /// The oldest message was answered: those who waited for it.
    pub fn answered(&mut self) -> Vec<Ticket> {
        self.asked.pop_front().expect("the oracle answers what it was asked")
    }
}

/// How stale a shard's copy may get while nobody asks for it, in nanoseconds; the watermark depends
/// on it.
const REFRESH_NS: u64 = 1_000_000;

/// What is known of a shard's copy of what snapshots are made from.
#[derive(Debug)]
pub struct LocalCopy {
    prefetch: bool,
    /// When it was renewed, by the clock of the pass before: messages are handled before the clock
    /// is looked at.
    renewed: Timestamp,
    /// The first clock after that. Where the oracle is far away a shard that does nothing else
    /// would find every answer too old, and ask again at once.
    looked: Timestamp,
    /// With prefetching: whether it was used since a newer one was asked for.
    used: bool,
    /// Who wants a newer one.
    pub waiting: Waiting,
}

impl LocalCopy {
    /// One that there is nothing in yet.
    pub fn new(options: OracleOptions) -> LocalCopy {
        LocalCopy {
            prefetch: options.prefetch,
            renewed: Timestamp::ZERO,
            looked: Timestamp::ZERO,
            used: false,
            waiting: Waiting::default(),
        }
    }

    /// Whether a snapshot may be made from it in this pass. Without prefetching only by those who
    /// were just released with it. With it as long as it is new enough, for a shard that has slept
    /// has asked nobody; it outlives the oracle.
    pub fn serves(&mut self, clock: Timestamp) -> bool {
        self.used |= self.prefetch;
        let age_ns = clock.0.saturating_sub(self.renewed.0);
        let will_do = self.prefetch && (age_ns <= REFRESH_NS || self.waiting.down);
        self.renewed > Timestamp::ZERO && (age_ns == 0 || will_do)
    }

    /// A newer one has come: those who waited for it.
    pub fn renew(&mut self, clock: Timestamp) -> Vec<Ticket> {
        self.renewed = clock;
        self.looked = Timestamp::ZERO;
        self.waiting.answered()
    }

    /// How many messages are to ask for a newer one, now that it is time to send.
    pub fn ask(&mut self, batch: bool, clock: Timestamp) -> usize {
        let asked = self.waiting.send(batch).count();
        if self.renewed > Timestamp::ZERO && self.looked == Timestamp::ZERO {
            self.looked = clock;
        }
        let due = self.used || clock.0.saturating_sub(self.looked.0) > REFRESH_NS;
        let may = self.waiting.outstanding() == 0 && !self.waiting.down && clock > Timestamp::ZERO;
        if asked == 0 && !(due && may) {
            return 0;
        }
        self.used = false;
        if asked == 0 {
            self.waiting.ask_ahead();
        }
        asked.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_over_a_channel_that_is_no_more_is_asked_again_in_its_order() {
        let mut waiting = Waiting::default();
        waiting.ask_ahead();
        waiting.gather(1);
        assert_eq!(waiting.send(true).collect::<Vec<_>>(), [1]);
        waiting.gather(2);
        waiting.ask_again();
        assert_eq!(waiting.outstanding(), 0);
        assert_eq!(waiting.send(true).collect::<Vec<_>>(), [2]);
        assert_eq!(waiting.answered(), [1, 2]);
    }

    #[test]
    fn a_copy_that_is_prefetched_is_asked_for_when_it_was_used_and_otherwise_now_and_then() {
        let mut copy = LocalCopy::new(OracleOptions { prefetch: true, ..OracleOptions::default() });
        let at = |ns| Timestamp(10 * REFRESH_NS + ns);
        assert!(!copy.serves(at(0)), "there is nothing in it");
        copy.waiting.gather(7);
        assert_eq!(copy.ask(true, at(0)), 1);
        assert_eq!(copy.ask(true, at(1)), 0, "one at a time");
        assert_eq!(copy.renew(at(2)), [7]);
        assert_eq!(copy.ask(true, at(4)), 0, "nobody has used it");
        assert!(copy.serves(at(5)));
        assert_eq!(copy.ask(true, at(5)), 1);
        assert!(copy.renew(at(6)).is_empty());
        assert_eq!(copy.ask(true, at(7)), 0);
        assert_eq!(copy.ask(true, at(6 + REFRESH_NS)), 0);
        assert_eq!(copy.ask(true, at(8 + REFRESH_NS)), 1, "it must not get too old");
        assert!(copy.serves(at(6 + REFRESH_NS)));
        assert!(!copy.serves(at(7 + REFRESH_NS)), "nobody has asked in time");
        copy.waiting.give_up(&mut Vec::new());
        assert!(copy.serves(at(8 + REFRESH_NS)), "better than nothing");
        assert_eq!(copy.ask(true, at(8 + REFRESH_NS)), 0);
    }

    #[test]
    fn an_answer_from_far_away_is_not_asked_for_again_at_once() {
        let mut copy = LocalCopy::new(OracleOptions { prefetch: true, ..OracleOptions::default() });
        let at = |refreshes: u64| Timestamp((10 + refreshes) * REFRESH_NS);
        assert_eq!(copy.ask(true, at(0)), 1, "there is none yet");
        // The pass before its answer was the one that asked.
        copy.renew(at(0));
        assert_eq!(copy.ask(true, at(5)), 0);
        assert_eq!(copy.ask(true, at(6)), 0);
        assert_eq!(copy.ask(true, at(7)), 1);
    }

    #[test]
    fn without_prefetching_a_copy_serves_those_who_waited_for_it() {
        let mut copy = LocalCopy::new(OracleOptions::default());
        copy.waiting.gather(7);
        assert_eq!(copy.ask(true, Timestamp(1)), 1);
        assert_eq!(copy.renew(Timestamp(2)), [7]);
        assert!(copy.serves(Timestamp(2)));
        assert!(!copy.serves(Timestamp(3)));
    }

    #[test]
    fn nobody_waits_for_an_oracle_that_cannot_be_reached() {
        let mut waiting = Waiting::default();
        waiting.gather(1);
        assert_eq!(waiting.send(true).count(), 1);
        waiting.gather(2);
        let mut released = Vec::new();
        waiting.give_up(&mut released);
        assert_eq!(released, [1, 2]);
        waiting.gather(3);
        assert!([1, 2, 3].into_iter().all(|ticket| waiting.lost(ticket)));
        assert!(!waiting.lost(1), "it is said once");
        waiting.ask_again();
        waiting.gather(4);
        assert!(!waiting.lost(4));
        assert_eq!(waiting.send(true).collect::<Vec<_>>(), [1]);
        assert_eq!(waiting.answered(), [4]);
    }
}
