//! Waiting in the client's queue for a hot district ([`ContentionQueue`]): a transaction that was
//! rolled back there tries again when those before it are done.

use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::control::queue::{ContentionQueue, Ticket};

/// The queue of one hot district.
#[derive(Default)]
pub struct Turnstile {
    queue: Mutex<ContentionQueue>,
    moved: Notify,
}

/// A place in it, given back when dropped.
pub struct Waiting<'a> {
    turnstile: &'a Turnstile,
    ticket: Ticket,
}

impl Turnstile {
    /// Takes the last place.
    pub fn enter(&self) -> Waiting<'_> {
        let ticket = self.queue().enter();
        Waiting { turnstile: self, ticket }
    }

    fn queue(&self) -> MutexGuard<'_, ContentionQueue> {
        self.queue.lock().expect("nobody panics with the queue")
    }
}

impl Waiting<'_> {
    /// Waits until everybody before is done.
    pub async fn turn(&self) {
        loop {
            // Asked for first: whoever leaves between the look and the wait is noticed.
            let moved = self.turnstile.moved.notified();
            if self.turnstile.queue().may_run(self.ticket) {
                return;
            }
            moved.await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.turnstile.queue().leave(self.ticket).is_some() {
            self.turnstile.moved.notify_waiters();
        }
    }
}
