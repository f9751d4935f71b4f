//! Shards in a simulated world: one thread, virtual time, every misfortune drawn from one seed.
//!
//! A [`World`] runs the very executor that threads run ([`crate::ShardEnv`]) and supplies what is
//! around it. Whatever happens is an event in one queue, ordered by virtual time and, at one time,
//! by when it was put there. An event is handled at its instant and puts later ones into the queue:
//! a pass its end (`lives`), what leaves a shard then its arrival (`network`, `channel`) or its end
//! on disk (`disk`), a fault its end (`nemesis`). Nothing looks at a real clock, nothing iterates
//! in an order that differs from run to run. So a seed, a [`Hardware`], [`Faults`] and the code of
//! the nodes together are one execution, and [`World::hash`] says cheaply whether two were the
//! same.
//!
//! Shards live on machines. A clock, a pause, a crash and the links of the network belong to a
//! machine; the shards of one talk through its memory. What a shard has on disk outlives it, as far
//! as it was synced (`platter`). Tasks that play clients have connections of bytes with shards
//! (`streams`).
//!
//! Example. Two machines, a partition between 1 ms and 4 ms. At 2 ms a task on shard 0 calls shard
//! 1: the pass costs a microsecond, then the packet is sent and lost. It is sent again after 1 ms,
//! in vain, and after another 2 ms, at 5 ms; 20 µs later shard 1 wakes, handles the request, and
//! the reply travels back. The task saw a slow call and nothing else.
//!
//! Invariants: a channel delivers exactly once and in order within a connection; `Env::clock`
//! never falls within a life of a shard; a shard makes at most one pass at a time, and none while
//! its machine stands still or is down; skipping a fault changes nothing before it would have
//! begun.
//!
//! Left out: memory and queues that run full, failure detection (a call to a machine that is down
//! waits until it is back and the channel is reset), and the bytes of messages (a batch is encoded
//! only where somebody wants it, [`World::encode`], and as one piece; what its size costs is only
//! asked in worlds with [`Costs`], which know no faults).

mod channel;
mod clock;
mod costs;
mod disk;
mod draw;
mod faults;
mod lives;
mod nemesis;
mod network;
mod platter;
mod socket;
mod streams;
mod threads;
mod trace;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use plimsoll_types::{ShardId, Timestamp};

use crate::{Env, Participant, Pending, ShardEnv, Tasks};
use clock::Clock;
pub use clock::EPOCH_NS;
use costs::Ledger;
pub use costs::{Costs, Pass, PassCost, Usage, Weight};
use disk::Disks;
use draw::Draw;
pub use faults::{Faults, Hardware};
use lives::Shard;
use nemesis::Nemesis;
pub use nemesis::{Fault, Link, Occurrence};
use network::Network;
pub use socket::Dialer;
use streams::Streams;
use threads::Threads;
use trace::Trace;
pub use trace::{Carried, Event};

/// Tells the true time.
#[derive(Clone, Debug)]
pub struct Watch(Rc<Cell<u64>>);

impl Watch {
    /// What a perfect clock reads, in Unix nanoseconds.
    pub fn true_time(&self) -> Timestamp {
        Timestamp(EPOCH_NS + self.0.get())
    }
}

/// Makes a shard's node at the beginning of each of its lives. Told the number of the life, the
/// same for all shards of a machine, and larger than all before.
pub type Maker<N> = Box<dyn FnMut(u64) -> N>;

/// What is to happen at some time.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A packet reaches its machine.
    Arrival { flight: u32 },
    /// A batch reaches another shard of its machine.
    Handover { handover: u32 },
    /// A timer of a shard may be due.
    Timer { shard: ShardId },
    /// A pass that was planned begins.
    Pass { shard: ShardId, number: u32 },
    /// The present pass is over.
    PassEnd { shard: ShardId, life: u32, idle: bool },
    /// A shard tells another what it has received.
    Acknowledge { from: ShardId, to: ShardId },
    /// A shard looks whether it has to send again.
    Resend { from: ShardId, to: ShardId },
    /// A part of a connection of bytes reaches its machine.
    Segment { flight: u32 },
    /// A disk has done the first operation of its queue.
    Transfer { shard: ShardId, turn: u32 },
    /// The next fault begins.
    Nemesis,
    /// The process of a machine starts anew, unless it has crashed since.
    Restart { machine: usize, life: u32 },
    /// A fault ends.
    End { index: u32 },
}

/// What is to happen and when. The earlier is the greater, for a heap that gives the greatest
/// first.
struct Planned {
    /// Time and number in one word, which is compared at once; no two have one number.
    key: u128,
    what: What,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.key == other.key
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // What a heap asks.
    #[inline]
    fn le(&self, other: &Planned) -> bool {
        self.key >= other.key
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// What is to happen, by time and then by the order in which it was decided.
struct Queue {
    now_ns: u64,
    /// The same, for those who hold a [`Watch`].
    shown_ns: Rc<Cell<u64>>,
    pushed: u64,
    heap: BinaryHeap<Planned>,
}

impl Queue {
    fn push(&mut self, at_ns: u64, what: What) {
        assert!(at_ns >= self.now_ns, "nothing happens in the past");
        self.heap.push(Planned { key: u128::from(at_ns) << 64 | u128::from(self.pushed), what });
        self.pushed += 1;
    }

    fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|next| (next.key >> 64) as u64)
    }

    fn pop(&mut self) -> Option<What> {
        let Planned { key, what } = self.heap.pop()?;
        self.pass_to((key >> 64) as u64);
        Some(what)
    }

    fn pass_to(&mut self, time_ns: u64) {
        self.now_ns = time_ns;
        self.shown_ns.set(time_ns);
    }
}

/// What the shards of a machine share.
struct Machine {
    clock: Clock,
    /// How many faults make it stand still, and how many keep it down.
    paused: u32,
    down: u32,
    /// Whether its process is about to start anew.
    restarts: bool,
    /// If there are fewer than shards.
    threads: Option<Threads>,
}

/// What is done at the beginning of a life.
type Beginning<N> = Rc<dyn Fn(&ShardEnv<N>)>;

/// Sends from a shard to another a timestamp that is an hour ahead of the first one's clock.
type Liar<N> = Rc<dyn Fn(&ShardEnv<N>, ShardId)>;

/// Shards, machines, a network, and what goes wrong with them.
pub struct World<N: Participant> {
    seed: u64,
    hardware: Hardware,
    faults: Faults,
    queue: Queue,
    shards: Vec<Shard<N>>,
    machines: Vec<Machine>,
    network: Network<N>,
    disks: Disks,
    streams: Streams,
    /// See [`World::spare`].
    spared: bool,
    nemesis: Option<Nemesis>,
    /// Faults that have begun or were skipped.
    occurrences: Vec<Occurrence>,
    /// Those that last.
    active: BTreeMap<u32, Fault>,
    skipped: BTreeSet<u32>,
    by_hand: u32,
    beginnings: Vec<Beginning<N>>,
    /// Sends a shard a timestamp that is far ahead.
    liar: Option<Liar<N>>,
    /// Only in worlds that predict how fast something is.
    ledger: Option<Ledger<N>>,
    trace: Trace<N>,
}

impl<N: Participant> World<N> {
    /// A world at virtual time 0, one shard per maker, all machines up.
    pub fn new(hardware: &Hardware, faults: &Faults, seed: u64, makers: Vec<Maker<N>>) -> World<N> {
        World::build(hardware, faults, seed, makers, None)
    }

    /// A world whose passes and batches cost what they are said to. It has no faults, and none may
    /// be inflicted on it.
    pub fn with_costs(hardware: &Hardware, costs: Costs<N>, seed: u64, makers: Vec<Maker<N>>) -> World<N> {
        World::build(hardware, &Faults::none(), seed, makers, Some(costs))
    }

    fn build(
        hardware: &Hardware,
        faults: &Faults,
        seed: u64,
        makers: Vec<Maker<N>>,
        costs: Option<Costs<N>>,
    ) -> World<N> {
        assert!(hardware.shards_per_machine > 0, "a machine has a shard");
        let (shards, per_machine) = (makers.len(), hardware.shards_per_machine as usize);
        assert!(shards <= usize::from(u16::MAX), "shards have numbers of 16 bits");
        let count = shards.div_ceil(per_machine);
        let machine = |number: usize| {
            let mut draw = Draw::new(seed, "clock", number as u64);
            let (offset_ns, drift_ppm) = (draw.around(faults.offset_ns), draw.around(faults.drift_ppm));
            let fewer = |costs: &Costs<N>| costs.threads.filter(|&threads| threads < per_machine);
            let threads = costs.as_ref().and_then(fewer).map(Threads::new);
            Machine { clock: Clock::new(offset_ns, drift_ppm), paused: 0, down: 0, restarts: false, threads }
        };
        let mut world = World {
            seed,
            hardware: hardware.clone(),
            faults: faults.clone(),
            queue: Queue { now_ns: 0, shown_ns: Rc::default(), pushed: 0, heap: BinaryHeap::new() },
            shards: makers.into_iter().enumerate().map(|(i, make)| Shard::new(make, seed, i)).collect(),
            machines: (0..count).map(machine).collect(),
            network: Network::new(seed, shards, count, costs.is_none()),
            disks: Disks::new(hardware, seed, shards, count),
            streams: Streams::new(seed),
            spared: false,
            nemesis: None,
            occurrences: Vec::new(),
            active: BTreeMap::new(),
            skipped: BTreeSet::new(),
            by_hand: Occurrence::BY_HAND,
            beginnings: Vec::new(),
            liar: None,
            ledger: costs.map(|costs| Ledger::new(costs, shards, count)),
            trace: Trace::new(),
        };
        for machine in 0..count {
            world.start(machine);
        }
        world.introduce();
        let nemesis = Nemesis::new(faults, seed, shards, per_machine, world.disks.exist());
        if let Some(first_ns) = nemesis.next_ns() {
            world.queue.push(first_ns, What::Nemesis);
            world.nemesis = Some(nemesis);
        }
        world
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// How many machines they live on.
    pub fn machines(&self) -> usize {
        self.machines.len()
    }

    /// The machine of a shard.
    pub fn machine(&self, shard: ShardId) -> usize {
        shard.index() / self.hardware.shards_per_machine as usize
    }

    /// Virtual time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.queue.now_ns
    }

    /// Virtual time for tasks, which cannot look at the world they are in. They are observers here,
    /// not part of what is simulated: they record when they began and ended.
    pub fn observer(&self) -> Watch {
        Watch(self.queue.shown_ns.clone())
    }

    /// What a perfect clock reads, in Unix nanoseconds.
    pub fn true_time(&self) -> Timestamp {
        Timestamp(EPOCH_NS + self.now())
    }

    /// What the clock of a shard's machine reads. Can fall, unlike what the shard makes of it.
    pub fn clock(&self, shard: ShardId) -> Timestamp {
        self.machines[self.machine(shard)].clock.at(self.now())
    }

    /// By how much any machine's clock has been wrong so far, at most, in nanoseconds.
    pub fn clock_error_ns(&self) -> u64 {
        self.machines.iter().map(|machine| machine.clock.worst_ns(self.now())).max().unwrap_or(0)
    }

    /// The environment of a shard's present life; `None` while it is down.
    pub fn env(&self, shard: ShardId) -> Option<&ShardEnv<N>> {
        self.shards[shard.index()].env.as_ref()
    }

    /// How many lives of a shard have begun.
    pub fn lives(&self, shard: ShardId) -> u32 {
        self.shards[shard.index()].life.div_ceil(2)
    }

    /// Looks at a shard's node between two of its steps; `None` while the shard is down.
    pub fn node<R>(&self, shard: ShardId, look: impl FnOnce(&mut N) -> R) -> Option<R> {
        self.env(shard).map(|env| env.local(look))
    }

    /// What has begun on a shard and has not come to its end; `None` while the shard is down. Who
    /// waits for something that will not come stays here.
    pub fn pending(&self, shard: ShardId) -> Option<Pending> {
        self.env(shard).map(Tasks::pending)
    }

    /// Starts a task on a shard; it is made in its first poll. It ends with the shard's life.
    /// Returns whether the shard is up.
    pub fn spawn_on<F>(&mut self, shard: ShardId, task: impl FnOnce(ShardEnv<N>) -> F + 'static) -> bool
    where
        F: Future<Output = ()> + 'static,
    {
        let Some(env) = self.env(shard).cloned() else { return false };
        let inner = env.clone();
        env.spawn(async move { task(inner).await });
        self.poke(shard);
        true
    }

    /// What shall be done at the beginning of each life of every shard, the present ones included:
    /// tasks that always run are spawned there.
    pub fn on_start(&mut self, beginning: impl Fn(&ShardEnv<N>) + 'static) {
        let beginning: Beginning<N> = Rc::new(beginning);
        self.beginnings.push(beginning.clone());
        for shard in (0..self.shards.len()).map(|shard| ShardId(shard as u16)) {
            if let Some(env) = self.env(shard).cloned() {
                beginning(&env);
                self.poke(shard);
            }
        }
    }

    /// What a shard does to send another a timestamp that is an hour ahead
    /// ([`Fault::FutureStamp`]): only participants know what a message is.
    pub fn lie_by(&mut self, liar: impl Fn(&ShardEnv<N>, ShardId) + 'static) {
        self.liar = Some(Rc::new(liar));
    }

    fn begin_life(&self, shard: ShardId) {
        if let Some(env) = self.env(shard) {
            self.beginnings.iter().for_each(|beginning| beginning(env));
        }
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(what) = self.queue.pop() else { return false };
        match what {
            What::Arrival { flight } => self.arrive(flight),
            What::Handover { handover } => self.handed_over(handover),
            What::Pass { shard, number } => self.planned_pass(shard, number),
            What::Timer { shard } => self.timer(shard),
            What::PassEnd { shard, life, idle } => self.end_pass(shard, life, idle),
            What::Acknowledge { from, to } => self.acknowledge(from, to),
            What::Resend { from, to } => self.resend(from, to),
            What::Segment { flight } => self.segment_arrives(flight),
            What::Transfer { shard, turn } => self.end_operation(shard, turn),
            What::Restart { machine, life } => self.restart(machine, life),
            What::Nemesis => self.strike(),
            What::End { index } => self.end(index),
        }
        true
    }

    /// Handles all events up to a virtual time, which it then is.
    pub fn run_until(&mut self, time_ns: u64) {
        while self.queue.next_ns().is_some_and(|next_ns| next_ns <= time_ns) {
            self.step();
        }
        self.queue.pass_to(self.queue.now_ns.max(time_ns));
    }

    /// Handles events as long as the condition holds. Returns false if they ran out before: it
    /// holds for ever.
    pub fn run_while(&mut self, mut condition: impl FnMut(&World<N>) -> bool) -> bool {
        while condition(self) {
            if !self.step() {
                return false;
            }
        }
        true
    }

    /// A number that depends on every event so far, its time and its order.
    pub fn hash(&self) -> u64 {
        self.trace.hash
    }

    /// Gives every further event with its virtual time to a hook.
    pub fn trace(&mut self, hook: impl FnMut(u64, &Event) + 'static) {
        self.trace.hook = Some(Box::new(hook));
    }

    /// Shows every further message to a hook, when its batch leaves a shard: from whom, to whom,
    /// and what.
    pub fn watch_messages(&mut self, hook: impl FnMut(ShardId, ShardId, Carried<'_, N>) + 'static) {
        self.trace.message_hook = Some(Box::new(hook));
    }

    /// Leaves out faults of these numbers. All others are drawn as before.
    pub fn skip(&mut self, indices: impl IntoIterator<Item = u32>) {
        self.skipped.extend(indices);
    }

    /// No machines but these crash by themselves. There is at least one.
    pub fn only_crash(&mut self, machines: Range<usize>) {
        assert!(!machines.is_empty() && machines.end <= self.machines(), "there are such machines");
        if let Some(nemesis) = &mut self.nemesis {
            nemesis.mortal = machines;
        }
    }

    /// Has all machines crash at a time now and then, instead of one.
    pub fn crash_together(&mut self) {
        if let Some(nemesis) = &mut self.nemesis {
            nemesis.together = true;
        }
    }

    /// Whether machines are spared from crashes for now. A crash that would begin meanwhile is left
    /// out.
    pub fn spare(&mut self, spared: bool) {
        self.spared = spared;
    }

    /// The faults that have begun so far, those that were skipped included.
    pub fn occurrences(&self) -> &[Occurrence] {
        &self.occurrences
    }

    /// Lets a fault begin now. Returns the number by which it ends.
    pub fn inflict(&mut self, fault: Fault) -> u32 {
        assert!(self.ledger.is_none(), "a world with costs has no faults");
        let (index, begin_ns) = (self.by_hand, self.now());
        self.by_hand += 1;
        self.occurrences.push(Occurrence { index, begin_ns, end_ns: u64::MAX, fault: fault.clone() });
        self.begin(index, fault);
        index
    }

    /// Lets a fault end now; one that is over stays so.
    pub fn end(&mut self, index: u32) {
        let Some(fault) = self.active.remove(&index) else { return };
        self.trace.record(self.queue.now_ns, Event::Ends { index });
        match fault {
            Fault::Partition(links) => {
                links.iter().for_each(|link| self.network.link(link.from, link.to).cut -= 1);
                links.iter().for_each(|link| self.release_segments(link.from, link.to));
            }
            Fault::Slowdown(Link { from, to }, factor) => {
                let slow = &mut self.network.link(from, to).slow;
                slow.swap_remove(slow.iter().position(|&other| other == factor).expect("a slow link"));
            }
            Fault::Clog(Link { from, to }) => {
                let link = self.network.link(from, to);
                link.clogged -= 1;
                if link.clogged == 0 {
                    self.unclog(from, to);
                }
                self.release_segments(from, to);
            }
            Fault::Pause(machine) => {
                self.machines[machine].paused -= 1;
                if self.machines[machine].paused == 0 {
                    self.resume(machine);
                }
            }
            Fault::Crash(machine) => self.is_up_again(machine),
            Fault::Blackout => (0..self.machines.len()).for_each(|machine| self.is_up_again(machine)),
            Fault::SlowDisk(machine, factor) => self.speed_up(machine, factor),
            Fault::StallDisk(machine) => self.unstall(machine),
            Fault::FullDisk(machine) => self.disks.unfill(machine),
            Fault::Step(..) | Fault::Reset(..) | Fault::FutureStamp(..) => {}
        }
    }

    /// Sets all clocks right. What a shard makes of its clock does not fall.
    pub fn set_clocks(&mut self) {
        let now_ns = self.queue.now_ns;
        for machine in 0..self.machines.len() {
            let clock = &mut self.machines[machine].clock;
            let by_ns = (EPOCH_NS + now_ns) as i64 - clock.at(now_ns).0 as i64;
            clock.step(now_ns, by_ns);
            self.look_at_timers(machine);
        }
    }

    /// Ends every fault, and no other will begin; packets are no longer lost, doubled or held back,
    /// and disks do what they are asked. Clocks stay as they are, unless they are set
    /// ([`World::set_clocks`]). A run can finish then, and what
    /// does not is stuck.
    pub fn heal_all(&mut self) {
        self.nemesis = None;
        self.network.calm = true;
        self.disks.calm = true;
        while let Some((&index, _)) = self.active.first_key_value() {
            self.end(index);
        }
    }

    /// The nemesis lets the next fault begin.
    fn strike(&mut self) {
        let Some(nemesis) = &mut self.nemesis else { return };
        let occurrence = nemesis.draw();
        let next_ns = nemesis.next_ns().expect("a nemesis does not tire");
        self.queue.push(next_ns.max(self.queue.now_ns), What::Nemesis);
        let Occurrence { index, end_ns, fault, .. } = occurrence.clone();
        self.occurrences.push(occurrence);
        let spared = self.spared && matches!(fault, Fault::Crash(_) | Fault::Blackout);
        if !self.skipped.contains(&index) && !spared {
            if !fault.is_instant() {
                self.queue.push(end_ns, What::End { index });
            }
            self.begin(index, fault);
        }
    }

    fn begin(&mut self, index: u32, fault: Fault) {
        self.trace.record(self.queue.now_ns, Event::Begins { index });
        if !fault.is_instant() {
            self.active.insert(index, fault.clone());
        }
        match fault {
            Fault::Partition(links) => {
                links.iter().for_each(|link| self.network.link(link.from, link.to).cut += 1);
            }
            Fault::Slowdown(Link { from, to }, factor) => self.network.link(from, to).slow.push(factor),
            Fault::Clog(Link { from, to }) => self.network.link(from, to).clogged += 1,
            Fault::Step(machine, by_ns) => {
                self.machines[machine].clock.step(self.queue.now_ns, by_ns);
                self.look_at_timers(machine);
            }
            Fault::Reset(shard, peer) => {
                assert_ne!(self.machine(shard), self.machine(peer), "memory is not reset");
                if self.env(shard).is_some() {
                    self.reset(shard, peer);
                    self.reset_streams(shard, peer);
                }
            }
            Fault::FutureStamp(shard, peer) => {
                if let (Some(liar), Some(env)) = (self.liar.clone(), self.env(shard).cloned()) {
                    liar(&env, peer);
                    self.poke(shard);
                }
            }
            Fault::Pause(machine) => self.machines[machine].paused += 1,
            Fault::SlowDisk(machine, factor) => self.disks.slow_down(machine, factor),
            Fault::StallDisk(machine) => self.disks.stall(machine),
            Fault::FullDisk(machine) => self.disks.fill(machine),
            Fault::Crash(machine) => self.goes_down(machine),
            Fault::Blackout => (0..self.machines.len()).for_each(|machine| self.goes_down(machine)),
        }
    }

    fn goes_down(&mut self, machine: usize) {
        self.machines[machine].down += 1;
        if self.machines[machine].down == 1 {
            self.crash(machine, true);
        }
    }

    fn is_up_again(&mut self, machine: usize) {
        self.machines[machine].down -= 1;
        if self.machines[machine].down == 0 {
            self.start(machine);
        }
    }
}

impl<N: Participant> Drop for World<N> {
    /// Drops the tasks, which hold the shards that hold them.
    fn drop(&mut self) {
        for shard in &self.shards {
            if let Some(env) = &shard.env {
                env.end();
            }
        }
    }
}
