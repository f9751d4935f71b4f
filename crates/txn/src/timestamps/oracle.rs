//! What GTS and VTS share: asking an oracle from within the passes of a shard.
//!
//! Requests gather on the shard while its transactions run; at the end of the pass one message carries them
//! all (*coalescing*; with batching switched off, each goes alone). A number is never fetched before the
//! transaction that uses it holds all its locks: an older number could order its versions wrongly.
//! The oracle answers in the order of arrival, so answers need no names.

use std::collections::VecDeque;

use plimsoll_runtime::Ticket;

/// Requests of one sort that wait for the oracle's answer.
#[derive(Debug, Default)]
pub struct Waiting {
    gathered: Vec<Ticket>,
    /// One entry per message on its way.
    asked: VecDeque<Vec<Ticket>>,
}

impl Waiting {
    /// A request joins the next message.
    pub fn gather(&mut self, ticket: Ticket) {
        self.gathered.push(ticket);
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

    /// The channel to the oracle is a new one: what was asked over the former one, or before there was any, will not be
    /// answered, and is asked again.
    pub fn ask_again(&mut self) {
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
}
