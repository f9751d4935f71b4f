//! The client's queue for a hot item, for databases that roll back instead of letting a transaction
//! wait.
//!
//! Under snapshot isolation a database may abort the second writer of an item at once. Nothing
//! queues then, and transactions that shall compete would mostly be on their way back to the start.
//! The paper's remedy (section 6.3.5): a transaction that was rolled back because of contention
//! joins a queue in the client and runs again when those before it are done. It competes all the
//! time: see [`super::contention`].
//!
//! A [`ContentionQueue`] is the order and nothing else; the caller lets a transaction sleep and
//! wakes the one that is named. In short:
//!
//! ```text
//! loop {
//!     run the transaction                    committed: leave(ticket), wake whom it names, done
//!     rolled back by contention:             ticket = enter() unless it has one
//!     sleep until may_run(ticket)
//! }
//! ```
//!
//! The first in the queue keeps its place while it tries again: a newcomer that has not been rolled
//! back yet may have been faster, and it can happen a few times.

use std::collections::VecDeque;

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Who waits for one hot item, in order.
#[derive(Clone, Debug, Default)]
pub struct ContentionQueue {
    waiting: VecDeque<Ticket>,
    next: u64,
}

impl ContentionQueue {
    /// Takes the last place.
    pub fn enter(&mut self) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back(ticket);
        ticket
    }

    /// Whether everybody before this ticket is done.
    pub fn may_run(&self, ticket: Ticket) -> bool {
        self.waiting.front() == Some(&ticket)
    }

    /// Gives a place back, at any time: the transaction has committed or given up. Returns whose
    /// turn it is now, if that has changed. Giving back twice does nothing.
    pub fn leave(&mut self, ticket: Ticket) -> Option<Ticket> {
        let at = self.waiting.iter().position(|&waiting| waiting == ticket)?;
        self.waiting.remove(at);
        if at == 0 { self.waiting.front().copied() } else { None }
    }

    /// How many wait, the one whose turn it is included.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_entering() {
        let mut queue = ContentionQueue::default();
        let [a, b, c] = [queue.enter(), queue.enter(), queue.enter()];
        assert!(queue.may_run(a) && !queue.may_run(b) && queue.len() == 3);
        assert_eq!(queue.leave(a), Some(b));
        assert!(queue.may_run(b));
        assert_eq!(queue.leave(b), Some(c));
        assert_eq!(queue.leave(c), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn whoever_gives_up_in_the_middle_wakes_nobody() {
        let mut queue = ContentionQueue::default();
        let [a, b, c] = [queue.enter(), queue.enter(), queue.enter()];
        assert_eq!(queue.leave(b), None);
        assert_eq!(queue.leave(b), None, "twice does nothing");
        assert_eq!(queue.leave(a), Some(c));
    }
}
