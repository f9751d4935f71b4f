//! Fewer cores than shards: who runs, and who waits for a core.
//!
//! Only worlds that predict how fast something is have this; in all others every shard has a core. A thread keeps its
//! core while it has something to do and while it spins, and gives it back when it sleeps. Who wants one and finds none
//! waits; a core goes to the one who has run least so far, counted as an operating system does: who has slept does
//! not save up more than a slice. A thread gives way between two passes, to one who has run less, once it has had its
//! slice; an operating system cannot tell work from spinning. Changing over takes a while.
//!
//! Left out: threads that are bound to a core, and that a pass can be interrupted.

use plimsoll_types::ShardId;

use super::World;
use crate::Node;

/// How long a thread runs before another gets its turn, in nanoseconds: about what Linux does on two cores.
const SLICE_NS: u64 = 1_500_000;
/// How long it takes until another thread runs, in nanoseconds.
const SWITCH_NS: u64 = 2_000;

/// The cores of a machine.
#[derive(Debug)]
pub(super) struct Cores {
    free: usize,
    waiting: Vec<ShardId>,
}

impl Cores {
    pub(super) fn new(count: usize) -> Cores {
        Cores { free: count, waiting: Vec::new() }
    }
}

/// What a thread has had of the cores.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// When it got the core that it has.
    since_ns: Option<u64>,
    /// How long it has run before, adjusted when it wakes.
    used_ns: u64,
}

impl<N: Node> World<N> {
    /// Whether the shard has a core now. Otherwise it waits for one, and its pass begins when it has it.
    pub(super) fn has_core(&mut self, id: ShardId) -> bool {
        let machine = self.machine(id);
        let now_ns = self.queue.now_ns;
        let Some(cores) = &mut self.machines[machine].cores else { return true };
        let share = &mut self.shards[id.index()].share;
        if share.since_ns.is_some() {
            return true;
        }
        if cores.free > 0 {
            cores.free -= 1;
            share.since_ns = Some(now_ns);
            return true;
        }
        if cores.waiting.contains(&id) {
            return false;
        }
        cores.waiting.push(id);
        let running = |world: &Self, i: usize| world.shards[i].share.since_ns.map(|since_ns| (i, since_ns));
        let least_ns = self
            .residents(machine)
            .filter_map(|i| running(self, i))
            .map(|(i, since_ns)| self.shards[i].share.used_ns + now_ns.saturating_sub(since_ns))
            .min()
            .unwrap_or(0);
        let share = &mut self.shards[id.index()].share;
        share.used_ns = share.used_ns.max(least_ns.saturating_sub(SLICE_NS));
        false
    }

    /// A shard that has made a pass lets another run if it is that one's turn.
    pub(super) fn offer_core(&mut self, id: ShardId) {
        let machine = self.machine(id);
        let now_ns = self.queue.now_ns;
        let Some(cores) = &self.machines[machine].cores else { return };
        let Some(since_ns) = self.shards[id.index()].share.since_ns else { return };
        let used_ns = self.shards[id.index()].share.used_ns + now_ns.saturating_sub(since_ns);
        let over = now_ns.saturating_sub(since_ns) >= SLICE_NS;
        let turn = |waiter: &ShardId| self.shards[waiter.index()].share.used_ns < used_ns;
        if over && cores.waiting.iter().any(turn) {
            self.give_core(id);
        }
    }

    /// A shard has no use for its core any more, or has to do without: whoever has run least gets it.
    pub(super) fn give_core(&mut self, id: ShardId) {
        let machine = self.machine(id);
        let now_ns = self.queue.now_ns;
        let Some(cores) = &mut self.machines[machine].cores else { return };
        let share = &mut self.shards[id.index()].share;
        let Some(since_ns) = share.since_ns.take() else { return };
        share.used_ns += now_ns.saturating_sub(since_ns);
        let shards = &self.shards;
        let next = (0..cores.waiting.len()).min_by_key(|&i| shards[cores.waiting[i].index()].share.used_ns);
        match next.map(|next| cores.waiting.remove(next)) {
            None => cores.free += 1,
            Some(next) => {
                self.shards[next.index()].share.since_ns = Some(now_ns + SWITCH_NS);
                self.plan_pass(next, now_ns + SWITCH_NS);
            }
        }
    }
}
