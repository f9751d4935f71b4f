//! Fewer threads than shards: a thread makes passes of its shards in turn, as it does in
//! [`crate::real`].
//!
//! Only worlds that predict how fast something is have this; in all others every shard has a thread
//! of its own. A shard that is to make a pass while its thread is busy with another's waits, and
//! who has waited longest is next. A thread sleeps when all of its shards do.
//!
//! Left out: the short passes of shards that have nothing to do.

use std::collections::VecDeque;

use plimsoll_types::ShardId;

use super::World;
use super::lives::State;
use crate::Participant;

/// The threads of a machine. Shards are dealt to them in turn.
#[derive(Debug)]
pub(super) struct Threads(Vec<Thread>);

#[derive(Clone, Debug, Default)]
struct Thread {
    busy: bool,
    waiting: VecDeque<ShardId>,
}

impl Threads {
    pub(super) fn new(count: usize) -> Threads {
        Threads(vec![Thread::default(); count.max(1)])
    }
}

impl<N: Participant> World<N> {
    fn thread(&mut self, id: ShardId) -> Option<&mut Thread> {
        let machine = self.machine(id);
        let place = id.index() - self.residents(machine).start;
        let threads = &mut self.machines[machine].threads.as_mut()?.0;
        let count = threads.len();
        Some(&mut threads[place % count])
    }

    /// Takes the shard's thread for a pass. Otherwise the shard waits for it, and its pass begins
    /// when it has it.
    pub(super) fn take_thread(&mut self, id: ShardId) -> bool {
        let Some(thread) = self.thread(id) else { return true };
        if !thread.busy {
            thread.busy = true;
            return true;
        }
        if !thread.waiting.contains(&id) {
            thread.waiting.push_back(id);
        }
        false
    }

    /// A pass has ended: the next of the thread's shards begins its own.
    pub(super) fn give_thread(&mut self, id: ShardId) {
        let Some(thread) = self.thread(id) else { return };
        thread.busy = false;
        if let Some(next) = thread.waiting.pop_front() {
            self.begin_pass(next);
        }
    }

    /// Whether another shard keeps the thread of this one awake.
    pub(super) fn kept_awake(&self, id: ShardId) -> bool {
        let machine = self.machine(id);
        let Some(threads) = &self.machines[machine].threads else { return false };
        let residents = self.residents(machine);
        let of_thread =
            residents.filter(|other| (other.abs_diff(id.index())).is_multiple_of(threads.0.len()));
        of_thread.into_iter().any(|other| self.shards[other].state != State::Asleep)
    }
}
