//! Who makes things go wrong: what, when, to whom, for how long.
//!
//! The nemesis draws one occurrence after another from the seed, each kind of fault from a stream
//! of its own, and looks at nothing else: not at what the world does, nor at whether a machine is
//! up. So the list of occurrences is the same whatever is done about them, and each has a number by
//! which a world can be told to leave it out ([`super::World::skip`]). A shrinker leaves out ever
//! more of them and keeps what still fails.
//!
//! Faults of one kind can overlap: a link is cut until the last partition that cut it is over.

use std::ops::Range;

use super::draw::Draw;
use super::faults::Faults;
use plimsoll_types::ShardId;

/// How many of the crashes are of all machines, where some are.
const TOGETHER: f64 = 0.25;

/// A direction from one machine to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Link {
    /// The sending machine.
    pub from: usize,
    /// The receiving machine.
    pub to: usize,
}

/// Something that goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// What is sent over these links is lost.
    Partition(Vec<Link>),
    /// Packets sent over this link take so many times as long.
    Slowdown(Link, u64),
    /// Nothing arrives over this link; at the end, all at once.
    Clog(Link),
    /// A machine's clock is set by so many nanoseconds. Has no duration.
    Step(usize, i64),
    /// The first shard begins a new connection of its channel to the second. Has no duration.
    Reset(ShardId, ShardId),
    /// The first shard sends the second, of another machine, a timestamp that is an hour ahead of its
    /// clock. Has no duration.
    FutureStamp(ShardId, ShardId),
    /// A machine stands still. Its network does not: packets are received and acknowledged.
    Pause(usize),
    /// The shards of a machine lose everything but what is on disk; at the end, they start again.
    Crash(usize),
    /// Every machine crashes; at the end, all start again.
    Blackout,
    /// The disks of a machine take so many times as long.
    SlowDisk(usize, u64),
    /// The disks of a machine do nothing; at the end, they go on.
    StallDisk(usize),
    /// On the disks of a machine nothing can grow.
    FullDisk(usize),
}

impl Fault {
    /// Whether it is over as soon as it has happened.
    pub(super) fn is_instant(&self) -> bool {
        matches!(self, Fault::Step(..) | Fault::Reset(..) | Fault::FutureStamp(..))
    }
}

/// A fault at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrence {
    /// Its number. Those of the nemesis count from 0, those inflicted by hand from
    /// [`Occurrence::BY_HAND`].
    pub index: u32,
    /// When it begins, in virtual nanoseconds.
    pub begin_ns: u64,
    /// When it ends; if it was inflicted by hand, `u64::MAX`.
    pub end_ns: u64,
    /// What it is.
    pub fault: Fault,
}

impl Occurrence {
    /// Number of the first fault that was inflicted by hand.
    pub const BY_HAND: u32 = 1 << 31;
}

#[derive(Clone, Copy)]
enum Kind {
    Partition,
    Slowdown,
    Clog,
    Step,
    Reset,
    FutureStamp,
    Pause,
    Crash,
    SlowDisk,
    StallDisk,
    FullDisk,
}

/// One kind of fault that happens again and again.
struct Source {
    kind: Kind,
    /// Between two occurrences, on average.
    gap_ns: u64,
    next_ns: u64,
    draw: Draw,
}

/// Draws occurrences in the order of their beginnings.
pub(super) struct Nemesis {
    faults: Faults,
    machines: u64,
    /// Those that crash.
    pub(super) mortal: Range<usize>,
    /// Whether all of them crash together now and then.
    pub(super) together: bool,
    shards: u64,
    shards_per_machine: u64,
    sources: Vec<Source>,
    drawn: u32,
}

impl Nemesis {
    pub(super) fn new(
        faults: &Faults,
        seed: u64,
        shards: usize,
        shards_per_machine: usize,
        disks: bool,
    ) -> Nemesis {
        let machines = shards.div_ceil(shards_per_machine) as u64;
        let network = machines > 1;
        let kinds = [
            (Kind::Partition, "partition", faults.partitions_per_s, network),
            (Kind::Slowdown, "slowdown", faults.slowdowns_per_s, network),
            (Kind::Clog, "clog", faults.clogs_per_s, network),
            (Kind::Step, "step", faults.steps_per_s, true),
            (Kind::Reset, "reset", faults.resets_per_s, network),
            (Kind::FutureStamp, "future stamp", faults.future_stamps_per_s, network),
            (Kind::Pause, "pause", faults.pauses_per_s, true),
            (Kind::Crash, "crash", faults.crashes_per_s, true),
            (Kind::SlowDisk, "slow disk", faults.disk_slowdowns_per_s, disks),
            (Kind::StallDisk, "stalled disk", faults.disk_stalls_per_s, disks),
            (Kind::FullDisk, "full disk", faults.disk_fulls_per_s, disks),
        ];
        let mut sources = Vec::new();
        for (kind, name, rate_per_s, can_happen) in kinds {
            if rate_per_s > 0.0 && can_happen {
                let mut draw = Draw::new(seed, name, 0);
                let gap_ns = ((1e9 / rate_per_s) as u64).clamp(1, u64::MAX / 4);
                let next_ns = draw.below(2 * gap_ns);
                sources.push(Source { kind, gap_ns, next_ns, draw });
            }
        }
        let (shards, shards_per_machine) = (shards as u64, shards_per_machine as u64);
        let mortal = 0..machines as usize;
        Nemesis {
            faults: faults.clone(),
            machines,
            mortal,
            together: false,
            shards,
            shards_per_machine,
            sources,
            drawn: 0,
        }
    }

    /// When the next fault begins.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.sources.iter().map(|source| source.next_ns).min()
    }

    /// The fault that begins next.
    pub(super) fn draw(&mut self) -> Occurrence {
        let next = (0..self.sources.len()).min_by_key(|&i| self.sources[i].next_ns);
        let next = next.expect("a nemesis without faults is not asked");
        let source = &mut self.sources[next];
        let (kind, begin_ns) = (source.kind, source.next_ns);
        let mut draw = source.draw.clone();
        // At least a nanosecond, so that time goes on.
        source.next_ns = begin_ns.saturating_add(1 + draw.below(2 * source.gap_ns));
        let lasts_ns = match kind {
            Kind::Partition => self.faults.partition_ns,
            Kind::Slowdown => self.faults.slowdown_ns,
            Kind::Clog => self.faults.clog_ns,
            Kind::Pause => self.faults.pause_ns,
            Kind::Crash => self.faults.down_ns,
            Kind::SlowDisk => self.faults.disk_slowdown_ns,
            Kind::StallDisk => self.faults.disk_stall_ns,
            Kind::FullDisk => self.faults.disk_full_ns,
            Kind::Step | Kind::Reset | Kind::FutureStamp => 0,
        };
        let end_ns = begin_ns.saturating_add(draw.below(lasts_ns.saturating_mul(2)));
        let fault = self.fault(kind, &mut draw);
        self.sources[next].draw = draw;
        self.drawn += 1;
        Occurrence { index: self.drawn - 1, begin_ns, end_ns, fault }
    }

    fn fault(&self, kind: Kind, draw: &mut Draw) -> Fault {
        match kind {
            Kind::Partition => self.partition(draw),
            Kind::Slowdown => Fault::Slowdown(self.link(draw), self.faults.slowdown_factor.max(1)),
            Kind::Clog => Fault::Clog(self.link(draw)),
            Kind::Step => Fault::Step(self.machine(draw), draw.around(self.faults.step_ns)),
            Kind::Reset => {
                let (from, to) = self.pair(draw);
                Fault::Reset(from, to)
            }
            Kind::FutureStamp => {
                let (from, to) = self.pair(draw);
                Fault::FutureStamp(from, to)
            }
            Kind::Pause => Fault::Pause(self.machine(draw)),
            Kind::Crash if self.together && draw.chance(TOGETHER) => Fault::Blackout,
            Kind::Crash => {
                let Range { start, end } = self.mortal;
                Fault::Crash(start + draw.below((end - start) as u64) as usize)
            }
            Kind::SlowDisk => Fault::SlowDisk(self.machine(draw), self.faults.disk_slowdown_factor.max(1)),
            Kind::StallDisk => Fault::StallDisk(self.machine(draw)),
            Kind::FullDisk => Fault::FullDisk(self.machine(draw)),
        }
    }

    fn machine(&self, draw: &mut Draw) -> usize {
        draw.below(self.machines) as usize
    }

    fn link(&self, draw: &mut Draw) -> Link {
        let from = self.machine(draw);
        let to = (from + 1 + draw.below(self.machines - 1) as usize) % self.machines as usize;
        Link { from, to }
    }

    /// Two machines from each other, or some machines from all others.
    fn partition(&self, draw: &mut Draw) -> Fault {
        let one_way = draw.chance(self.faults.one_way);
        let mut links = Vec::new();
        if draw.chance(0.5) {
            links.push(self.link(draw));
        } else {
            let mut side: Vec<bool> = (0..self.machines).map(|_| draw.chance(0.5)).collect();
            // One at least is on either side.
            let Link { from, to } = self.link(draw);
            (side[from], side[to]) = (true, false);
            for from in (0..side.len()).filter(|&from| side[from]) {
                links.extend((0..side.len()).filter(|&to| !side[to]).map(|to| Link { from, to }));
            }
        }
        if !one_way {
            let back: Vec<Link> =
                links.iter().map(|&Link { from, to }| Link { from: to, to: from }).collect();
            links.extend(back);
        }
        Fault::Partition(links)
    }

    /// Two shards of different machines.
    fn pair(&self, draw: &mut Draw) -> (ShardId, ShardId) {
        let link = self.link(draw);
        let mut shard = |machine: usize| {
            let first = machine as u64 * self.shards_per_machine;
            let here = self.shards_per_machine.min(self.shards - first);
            ShardId((first + draw.below(here)) as u16)
        };
        (shard(link.from), shard(link.to))
    }
}
