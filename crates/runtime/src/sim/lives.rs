//! A simulated shard: when it makes its passes, and how its lives begin and end.
//!
//! A pass happens at one instant, the one at which it begins: it sees the inbox and the clock of
//! that moment. It costs time in proportion to the work it did, and what it sends leaves when that
//! time is over; what arrives meanwhile waits for the next pass. A shard whose pass leaves nothing
//! to do makes one more a little later, as a thread that spins would. If that has nothing to do
//! either it takes no time, and the shard sleeps until something arrives or a timer is due, and
//! wakes up a little late.
//!
//! A machine that stands still begins and ends no pass. A crash takes tasks, calls, waiting
//! requests and the node; what is on disk is another matter (`disk`).

use std::collections::VecDeque;

use plimsoll_types::{ShardId, Timestamp};

use super::clock::Clock;
use super::costs::Pass;
use super::draw::Draw;
use super::trace::Event;
use super::{Maker, What, World};
use crate::disk::Submitted;
use crate::real::{CONVERSATION_NS, SPIN_NS};
use crate::shard::{Batch, Outside, ShardClock, ShardEnv};
use crate::{Env, Participant};

/// After so long at most a process starts anew whose life is over, in virtual nanoseconds.
const RESTART_NS: u64 = 5_000_000;

/// What a shard is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The end of its pass is in the queue.
    Busy,
    /// Nothing, but it is about to look whether there is something to do.
    Spinning,
    /// Nothing, until something arrives.
    Asleep,
    /// Something has arrived, and the next pass is in the queue.
    Waking,
}

/// One shard, over all of its lives.
pub(super) struct Shard<N: Participant> {
    make: Maker<N>,
    /// `None` while its machine is down.
    pub(super) env: Option<ShardEnv<N>>,
    /// How many lives have begun or ended: odd while it is up.
    pub(super) life: u32,
    pub(super) state: State,
    /// When the next pass begins unless it is poked before, and which event of the queue is the one
    /// that says so.
    next_pass_ns: u64,
    next_pass: u32,
    /// When the next event is that stands for its timers; one that has become needless comes all
    /// the same.
    timer_ns: u64,
    /// It could not go on because its machine stood still.
    stalled: bool,
    /// Delivered, not yet handled.
    pub(super) inbox: VecDeque<Batch<N>>,
    /// To be sent at the end of the present pass.
    pub(super) outbox: Vec<(ShardId, Batch<N>)>,
    /// For its disk, at the end of the present pass.
    operations: Vec<Submitted>,
    /// What passes cost, and how late the shard wakes.
    cpu: Draw,
}

impl<N: Participant> Shard<N> {
    pub(super) fn new(make: Maker<N>, seed: u64, number: usize) -> Shard<N> {
        Shard {
            make,
            env: None,
            life: 0,
            state: State::Asleep,
            next_pass_ns: u64::MAX,
            next_pass: 0,
            timer_ns: u64::MAX,
            stalled: false,
            inbox: VecDeque::new(),
            outbox: Vec::new(),
            operations: Vec::new(),
            cpu: Draw::new(seed, "cpu", number as u64),
        }
    }

    /// The number of its present life, or of the last if it is down. Between two lives there is
    /// room for numbers that are counted from there.
    pub(super) fn number(&self) -> u64 {
        (u64::from(self.life.div_ceil(2)).saturating_sub(1) << 32) + 1
    }
}

/// What a pass sees of the world.
struct Surroundings<'a, N: Participant> {
    inbox: &'a mut VecDeque<Batch<N>>,
    outbox: &'a mut Vec<(ShardId, Batch<N>)>,
    operations: &'a mut Vec<Submitted>,
    clock: &'a Clock,
    now_ns: u64,
}

impl<N: Participant> Outside<N> for Surroundings<'_, N> {
    fn arrived(&mut self) -> Option<Batch<N>> {
        self.inbox.pop_front()
    }

    fn clock(&mut self) -> Timestamp {
        self.clock.at(self.now_ns)
    }

    fn send(&mut self, to: ShardId, batch: Batch<N>) {
        self.outbox.push((to, batch));
    }

    fn submit(&mut self, mut operations: Vec<Submitted>) {
        self.operations.append(&mut operations);
    }
}

impl<N: Participant> World<N> {
    /// There is something for this shard to do.
    pub(super) fn poke(&mut self, id: ShardId) {
        match self.shards[id.index()].state {
            State::Busy | State::Waking => {}
            State::Spinning => self.begin_pass(id),
            State::Asleep if self.kept_awake(id) => self.begin_pass(id),
            State::Asleep => {
                let shard = &mut self.shards[id.index()];
                shard.state = State::Waking;
                let late_ns = shard.cpu.below(self.hardware.wake_ns);
                self.plan_pass(id, self.queue.now_ns + late_ns);
            }
        }
    }

    /// The next pass begins at this time, if not earlier.
    pub(super) fn plan_pass(&mut self, id: ShardId, at_ns: u64) {
        let shard = &mut self.shards[id.index()];
        if at_ns < shard.next_pass_ns {
            shard.next_pass_ns = at_ns;
            shard.next_pass = shard.next_pass.wrapping_add(1);
            self.queue.push(at_ns, What::Pass { shard: id, number: shard.next_pass });
        }
    }

    /// A pass that was planned begins, unless another has begun or was planned since.
    pub(super) fn planned_pass(&mut self, id: ShardId, number: u32) {
        if self.shards[id.index()].next_pass == number {
            self.begin_pass(id);
        }
    }

    pub(super) fn begin_pass(&mut self, id: ShardId) {
        let now_ns = self.queue.now_ns;
        let machine = self.machine(id);
        let residents = self.residents(machine);
        let shard = &mut self.shards[id.index()];
        shard.next_pass_ns = u64::MAX;
        shard.next_pass = shard.next_pass.wrapping_add(1);
        if shard.env.is_none() {
            return;
        }
        if self.machines[machine].paused > 0 {
            shard.state = State::Waking;
            shard.stalled = true;
            return;
        }
        if !self.take_thread(id) {
            self.shards[id.index()].state = State::Waking;
            return;
        }
        let shard = &mut self.shards[id.index()];
        let env = shard.env.as_ref().expect("it was up just now");
        let clock = &self.machines[machine].clock;
        let (inbox, outbox, operations) = (&mut shard.inbox, &mut shard.outbox, &mut shard.operations);
        let (mut local_batches, mut remote_batches) = (0, 0);
        let mut count = |peer: ShardId| match residents.contains(&peer.index()) {
            true => local_batches += 1,
            false => remote_batches += 1,
        };
        if self.ledger.is_some() {
            inbox.iter().for_each(|batch| count(batch.from));
        }
        let worked = env.pass(&mut Surroundings { inbox, outbox, operations, clock, now_ns });
        if self.ledger.is_some() {
            outbox.iter().for_each(|(to, _)| count(*to));
        }
        if env.is_over() && !std::mem::replace(&mut self.machines[machine].restarts, true) {
            let at_ns = now_ns + 1 + shard.cpu.below(RESTART_NS);
            self.queue.push(at_ns, What::Restart { machine, life: shard.life });
        }
        let (messages, polls, idle) = (worked.messages, worked.polls, worked.idle());
        if idle && !env.is_ready() && outbox.is_empty() && operations.is_empty() && self.ledger.is_none() {
            env.park();
            shard.state = State::Asleep;
            self.trace.record(now_ns, Event::Pass { shard: id, messages, polls, end_ns: now_ns });
            self.plan_timer(id);
            return;
        }
        let hardware = &self.hardware;
        let cost_ns = match &mut self.ledger {
            None => {
                hardware.pass_ns
                    + hardware.message_ns.saturating_mul(messages as u64)
                    + hardware.poll_ns.saturating_mul(polls as u64)
            }
            Some(ledger) => {
                let sent = outbox.iter().map(|(_, batch)| batch.messages.len()).sum();
                let handled = worked.handled;
                let pass = Pass { received: messages, sent, local_batches, remote_batches, polls, handled };
                env.local(|node| ledger.pass(id, node, pass))
            }
        };
        let jitter_ns = shard.cpu.around((cost_ns as f64 * hardware.cpu_jitter.min(1.0)) as u64);
        // At least a nanosecond, so that time goes on.
        let end_ns = now_ns + cost_ns.saturating_add_signed(jitter_ns).max(1);
        shard.state = State::Busy;
        self.trace.record(now_ns, Event::Pass { shard: id, messages, polls, end_ns });
        let life = shard.life;
        self.queue.push(end_ns, What::PassEnd { shard: id, life, idle });
    }

    pub(super) fn end_pass(&mut self, id: ShardId, life: u32, idle: bool) {
        let machine = self.machine(id);
        let shard = &mut self.shards[id.index()];
        if shard.life != life {
            return;
        }
        if self.machines[machine].paused > 0 {
            shard.stalled = true;
            return;
        }
        let mut outbox = std::mem::take(&mut shard.outbox);
        for (to, batch) in outbox.drain(..) {
            self.dispatch(id, to, batch);
        }
        let operations = std::mem::take(&mut self.shards[id.index()].operations);
        if !operations.is_empty() {
            self.submit(id, operations);
        }
        if self.streams.exist {
            self.send_streams(id);
        }
        let shard = &mut self.shards[id.index()];
        shard.outbox = outbox;
        shard.state = State::Spinning;
        self.give_thread(id);
        let shard = &mut self.shards[id.index()];
        let env = shard.env.as_ref().expect("a shard that makes a pass is up");
        if !shard.inbox.is_empty() || env.is_ready() {
            self.begin_pass(id);
            return;
        }
        if idle {
            env.park();
            shard.state = State::Asleep;
        } else {
            let spin_ns = if self.ledger.is_some() { CONVERSATION_NS } else { SPIN_NS };
            let look_ns = self.queue.now_ns + 1 + shard.cpu.below(spin_ns);
            self.plan_pass(id, look_ns);
        }
        self.plan_timer(id);
    }

    /// Plans the pass that the next timer needs. The wait is measured by true time: a clock that is
    /// slow will have to be waited for once more, as with a thread that sleeps.
    fn plan_timer(&mut self, id: ShardId) {
        let now_ns = self.queue.now_ns;
        let reads = self.machines[self.machine(id)].clock.at(now_ns).0;
        let shard = &mut self.shards[id.index()];
        if let Some(due) = shard.env.as_ref().and_then(ShardEnv::due) {
            // Later than now, so that time goes on.
            let at_ns = now_ns.saturating_add(due.saturating_sub(reads).max(1));
            if at_ns < shard.timer_ns {
                shard.timer_ns = at_ns;
                self.queue.push(at_ns, What::Timer { shard: id });
            }
        }
    }

    /// A timer may be due.
    pub(super) fn timer(&mut self, id: ShardId) {
        let shard = &mut self.shards[id.index()];
        if shard.timer_ns <= self.queue.now_ns {
            shard.timer_ns = u64::MAX;
        }
        match shard.state {
            State::Spinning | State::Asleep => self.begin_pass(id),
            State::Busy | State::Waking => {}
        }
    }

    /// The shards of a machine.
    pub(super) fn residents(&self, machine: usize) -> std::ops::Range<usize> {
        let per_machine = self.hardware.shards_per_machine as usize;
        machine * per_machine..((machine + 1) * per_machine).min(self.shards.len())
    }

    /// A machine goes on after it stood still.
    pub(super) fn resume(&mut self, machine: usize) {
        for index in self.residents(machine) {
            let shard = &mut self.shards[index];
            if !std::mem::take(&mut shard.stalled) {
                continue;
            }
            let (id, life) = (ShardId(index as u16), shard.life);
            match shard.state {
                State::Busy => self.end_pass(id, life, false),
                _ => self.begin_pass(id),
            }
        }
    }

    /// The clock of a machine was set: timers may be due.
    pub(super) fn look_at_timers(&mut self, machine: usize) {
        for index in self.residents(machine) {
            if self.shards[index].state != State::Busy {
                self.plan_timer(ShardId(index as u16));
            }
        }
    }

    /// The process of a machine starts anew, as its shards have asked for.
    pub(super) fn restart(&mut self, machine: usize, life: u32) {
        let first = self.residents(machine).start;
        if self.shards[first].life == life {
            self.crash(machine, false);
            self.start(machine);
        }
    }

    /// Shards of a machine that is down lose everything, but for what their disks keep. Perhaps its
    /// power fails as well.
    pub(super) fn crash(&mut self, machine: usize, power: bool) {
        self.machines[machine].restarts = false;
        for index in self.residents(machine) {
            let shard = &mut self.shards[index];
            shard.life += 1;
            shard.state = State::Asleep;
            shard.stalled = false;
            shard.next_pass_ns = u64::MAX;
            shard.next_pass = shard.next_pass.wrapping_add(1);
            shard.inbox.clear();
            shard.outbox.clear();
            shard.operations.clear();
            if let Some(env) = shard.env.take() {
                env.end();
            }
        }
        self.crash_streams(machine);
        self.crash_disks(machine, power);
    }

    /// The shards of a machine start, for the first time or again.
    pub(super) fn start(&mut self, machine: usize) {
        let shards = self.shards.len();
        let now_ns = self.queue.now_ns;
        for index in self.residents(machine) {
            let id = ShardId(index as u16);
            let clock = ShardClock::Stepped(self.machines[machine].clock.at(now_ns));
            let shard = &mut self.shards[index];
            shard.life += 1;
            let lives = shard.life.div_ceil(2);
            let random = Draw::new(self.seed, "shard", (index as u64) << 32 | u64::from(lives)).next();
            let number = shard.number();
            let (node, disk) = ((shard.make)(number), self.disks.exist());
            shard.env = Some(ShardEnv::new(id, shards, 0..shards, node, clock, random, disk));
            self.trace.record(now_ns, Event::Start { shard: id, life: lives });
            if lives > 1 {
                for peer in (0..shards).map(|peer| ShardId(peer as u16)) {
                    if self.machine(peer) != machine {
                        self.reset(id, peer);
                    }
                }
            }
        }
        for index in self.residents(machine) {
            let id = ShardId(index as u16);
            self.begin_life(id);
            self.poke(id);
        }
    }
}
