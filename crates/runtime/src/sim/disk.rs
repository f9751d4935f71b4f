//! The disks of a simulated world: what operations take, when they fail, what a crash leaves.
//!
//! Every shard has a disk of its own, if the hardware has any; what goes wrong with it, but for
//! errors of single operations, happens to all disks of a machine at once. A disk carries out one
//! operation after the other. What an operation does it does at its end, when its answer is put
//! into the inbox of the shard. A disk that is *slow* takes longer while it is; one that is
//! *stalled* ends nothing until it no longer is; on a *full* one nothing grows. Operations leave a
//! shard at the end of a pass, as messages do.
//!
//! A crash of a machine ends the queue of each disk somewhere: of what was under way some
//! operations are carried out still. Then it is drawn for the whole machine whether the power
//! failed as well; if so, the [`Platter`] is left with what it may be left with, else with
//! everything. The new life asks anew; no answer of the old one reaches it.
//!
//! Whether an operation fails and how long it takes comes from streams of its own for each shard,
//! and so does what a power failure leaves; they are drawn for every operation alike.
//!
//! Left out: rot that stays and writes that go astray (with one copy there is no remedy; a wrong
//! read is wrong once), disks that never come back, shards of one machine that wait for each
//! other's transfers, a page cache whose reads are faster.

use std::collections::VecDeque;

use plimsoll_types::ShardId;

use super::draw::Draw;
use super::faults::{Faults, Hardware};
use super::platter::Platter;
use super::trace::Event;
use super::{What, World};
use crate::Participant;
use crate::disk::{Completed, DiskFault, Operation, Outcome, Submitted};
use crate::shard::{Batch, Message};

/// One shard's disk, over all of the shard's lives.
pub(super) struct Disk {
    platter: Platter,
    /// Not carried out yet; the first is under way.
    queue: VecDeque<Submitted>,
    /// How long the first one takes if the disk is not slow, and when it ends.
    usual_ns: u64,
    due_ns: u64,
    /// Which event of the queue is that end.
    turn: u32,
    /// The first operation could not end because the disk was stalled.
    held: bool,
    /// Streams: what goes wrong, how long it takes, what a crash leaves.
    fate: Draw,
    delay: Draw,
    loss: Draw,
}

/// What is wrong with the disks of a machine, at present.
#[derive(Default)]
struct Trouble {
    /// By what each slowdown multiplies.
    slow: Vec<u64>,
    stalled: u32,
    full: u32,
}

/// All disks.
pub(super) struct Disks {
    /// By shard; none if the hardware has none.
    disks: Vec<Disk>,
    /// By machine.
    trouble: Vec<Trouble>,
    /// By machine: whether the power fails.
    power: Vec<Draw>,
    /// Operations no longer fail, and reads are right.
    pub(super) calm: bool,
}

impl Disks {
    pub(super) fn new(hardware: &Hardware, seed: u64, shards: usize, machines: usize) -> Disks {
        let disk = |number| Disk {
            platter: Platter::default(),
            queue: VecDeque::new(),
            usual_ns: 0,
            due_ns: u64::MAX,
            turn: 0,
            held: false,
            fate: Draw::new(seed, "disk fate", number),
            delay: Draw::new(seed, "disk delay", number),
            loss: Draw::new(seed, "disk loss", number),
        };
        let count = if hardware.disk_bytes > 0 { shards } else { 0 };
        Disks {
            disks: (0..count as u64).map(disk).collect(),
            trouble: (0..machines).map(|_| Trouble::default()).collect(),
            power: (0..machines as u64).map(|machine| Draw::new(seed, "power", machine)).collect(),
            calm: false,
        }
    }

    pub(super) fn exist(&self) -> bool {
        !self.disks.is_empty()
    }

    pub(super) fn slow_down(&mut self, machine: usize, factor: u64) {
        self.trouble[machine].slow.push(factor);
    }

    pub(super) fn stall(&mut self, machine: usize) {
        self.trouble[machine].stalled += 1;
    }

    pub(super) fn fill(&mut self, machine: usize) {
        self.trouble[machine].full += 1;
    }

    pub(super) fn unfill(&mut self, machine: usize) {
        self.trouble[machine].full -= 1;
    }
}

/// What is drawn for an operation before it is carried out.
struct Fate {
    fails: bool,
    /// Bytes by which files can grow.
    room: u64,
    /// Probability that a read is wrong.
    corrupt: f64,
}

impl Disk {
    /// How long the first operation takes if the disk is not slow.
    fn draw_ns(&mut self, hardware: &Hardware) -> u64 {
        let operation = &self.queue.front().expect("an operation is under way").operation;
        let syncs = matches!(operation, Operation::Sync { .. } | Operation::SyncDirectory);
        let usual_ns = hardware.disk_ns
            + if syncs { hardware.disk_sync_ns } else { 0 }
            + (hardware.disk_kib_ns).saturating_mul(operation.length() as u64) / 1024;
        let jitter_ns = self.delay.below((usual_ns as f64 * hardware.disk_jitter) as u64);
        let tail = self.delay.chance(hardware.disk_tail);
        let tail_ns = self.delay.below(hardware.disk_tail_ns);
        (usual_ns + jitter_ns + if tail { tail_ns } else { 0 }).max(1)
    }

    fn fate(&mut self, operation: &Operation, world: &(&Hardware, &Faults), full: bool, calm: bool) -> Fate {
        let (hardware, faults) = *world;
        let rate = match operation {
            Operation::Read { .. } | Operation::List => faults.read_errors,
            Operation::Sync { .. } | Operation::SyncDirectory => faults.sync_errors,
            _ => faults.write_errors,
        };
        let fails = self.fate.chance(rate) && !calm;
        let room = if full { 0 } else { hardware.disk_bytes.saturating_sub(self.platter.used()) };
        Fate { fails, room, corrupt: if calm { 0.0 } else { faults.corrupt_reads } }
    }

    fn carry_out(&mut self, operation: &Operation, fate: Fate) -> Result<Outcome, DiskFault> {
        let Fate { fails, room, corrupt } = fate;
        if fails {
            self.fail(operation, room);
            return Err(DiskFault::IO);
        }
        let platter = &mut self.platter;
        match *operation {
            Operation::Read { file, offset, length } => {
                let mut bytes = platter.read(file, offset, length)?;
                let (wrong, bit) = (self.fate.chance(corrupt), self.fate.below(8 * bytes.len() as u64));
                if wrong && !bytes.is_empty() {
                    bytes[bit as usize / 8] ^= 1 << (bit % 8);
                }
                return Ok(Outcome::Bytes(bytes));
            }
            Operation::Write { file, offset, ref bytes } => {
                let size = platter.size(file);
                if size.is_none() && offset > 0 {
                    return Err(DiskFault::NotFound);
                }
                if offset > size.unwrap_or(0) {
                    return Err(DiskFault::Hole);
                }
                let growth = (offset + bytes.len() as u64).saturating_sub(size.unwrap_or(0));
                if growth > room || (size.is_none() && room == 0) {
                    self.fail(operation, room);
                    return Err(DiskFault::Full);
                }
                platter.write(file, offset, bytes);
            }
            Operation::Truncate { file, size } => platter.truncate(file, size)?,
            Operation::Sync { file } => platter.sync(file)?,
            Operation::Rename { from, to } => platter.rename(from, to)?,
            Operation::Remove { file } => platter.remove(file)?,
            Operation::SyncDirectory => platter.sync_directory(),
            Operation::List => return Ok(Outcome::Files(platter.list())),
        }
        Ok(Outcome::Done)
    }

    /// What an operation that fails may do all the same.
    fn fail(&mut self, operation: &Operation, room: u64) {
        let platter = &mut self.platter;
        let happens = self.fate.chance(0.5);
        match *operation {
            Operation::Write { file, offset, ref bytes } => {
                let size = platter.size(file);
                let fits = (size.unwrap_or(0) + room).saturating_sub(offset).min(bytes.len() as u64);
                let part = self.fate.below(fits + 1) as usize;
                let makes = size.is_none() && offset == 0 && room > 0;
                if happens && (makes || size.is_some_and(|size| offset <= size)) {
                    platter.write(file, offset, &bytes[..part]);
                }
            }
            // There may be no such file, which changes nothing.
            Operation::Truncate { file, size } if happens => drop(platter.truncate(file, size)),
            Operation::Rename { from, to } if happens => drop(platter.rename(from, to)),
            Operation::Remove { file } if happens => drop(platter.remove(file)),
            Operation::Sync { file } => platter.fail_sync(file, &mut self.loss),
            _ => {}
        }
    }
}

impl<N: Participant> World<N> {
    /// Operations leave a shard, at the end of a pass.
    pub(super) fn submit(&mut self, shard: ShardId, operations: Vec<Submitted>) {
        let disk = &mut self.disks.disks[shard.index()];
        let idle = disk.queue.is_empty();
        disk.queue.extend(operations);
        if idle {
            self.begin_operation(shard);
        }
    }

    /// The first operation of a disk's queue begins, if there is one.
    fn begin_operation(&mut self, shard: ShardId) {
        let disk = &mut self.disks.disks[shard.index()];
        disk.due_ns = u64::MAX;
        if !disk.queue.is_empty() {
            disk.usual_ns = disk.draw_ns(&self.hardware);
            self.plan_end(shard);
        }
    }

    /// The operation that is under way ends when it does at the present speed, if that is earlier
    /// than was planned.
    fn plan_end(&mut self, shard: ShardId) {
        let machine = self.machine(shard);
        let disk = &mut self.disks.disks[shard.index()];
        let slow = &self.disks.trouble[machine].slow;
        let lasts_ns = slow.iter().fold(disk.usual_ns, |lasts_ns, &factor| lasts_ns.saturating_mul(factor));
        let at_ns = self.queue.now_ns.saturating_add(lasts_ns);
        if at_ns < disk.due_ns {
            (disk.due_ns, disk.turn) = (at_ns, disk.turn.wrapping_add(1));
            self.queue.push(at_ns, What::Transfer { shard, turn: disk.turn });
        }
    }

    /// The disks of a machine are a little less slow.
    pub(super) fn speed_up(&mut self, machine: usize, factor: u64) {
        let slow = &mut self.disks.trouble[machine].slow;
        slow.swap_remove(slow.iter().position(|&other| other == factor).expect("a slow disk"));
        for index in self.residents(machine) {
            if self.disks.disks.get(index).is_some_and(|disk| !disk.queue.is_empty() && !disk.held) {
                self.plan_end(ShardId(index as u16));
            }
        }
    }

    /// An operation has taken its time.
    pub(super) fn end_operation(&mut self, shard: ShardId, turn: u32) {
        let machine = self.machine(shard);
        let disk = &mut self.disks.disks[shard.index()];
        if disk.turn != turn {
            return;
        }
        if self.disks.trouble[machine].stalled > 0 {
            disk.held = true;
            return;
        }
        let completed = self.carry_out(shard);
        let messages = vec![Message::Disk(Box::new(completed))];
        self.shards[shard.index()].inbox.push_back(Batch { from: shard, messages });
        self.poke(shard);
        self.begin_operation(shard);
    }

    /// Takes the first operation out of the queue of a disk and carries it out, come what may.
    fn carry_out(&mut self, shard: ShardId) -> Completed {
        let full = self.disks.trouble[self.machine(shard)].full > 0;
        let disk = &mut self.disks.disks[shard.index()];
        let Submitted { number, operation } = disk.queue.pop_front().expect("an operation is under way");
        let fate = disk.fate(&operation, &(&self.hardware, &self.faults), full, self.disks.calm);
        let result = disk.carry_out(&operation, fate);
        let (verb, file) = (operation.verb(), operation.file());
        let length = match &result {
            Ok(Outcome::Bytes(bytes)) => bytes.len(),
            _ => operation.length(),
        };
        let fault = result.as_ref().err().copied();
        self.trace.record(self.queue.now_ns, Event::Disk { shard, verb, file, length, fault });
        Completed { number, result: result.map_err(|fault| operation.failed(fault)) }
    }

    /// The disks of a machine are no longer stalled.
    pub(super) fn unstall(&mut self, machine: usize) {
        self.disks.trouble[machine].stalled -= 1;
        if self.disks.trouble[machine].stalled > 0 {
            return;
        }
        for index in self.residents(machine) {
            if let Some(disk) = self.disks.disks.get_mut(index)
                && std::mem::take(&mut disk.held)
            {
                let turn = disk.turn;
                self.end_operation(ShardId(index as u16), turn);
            }
        }
    }

    /// A machine crashes, or only its process: what its disks still do, and what they are left
    /// with.
    pub(super) fn crash_disks(&mut self, machine: usize, may_lose_power: bool) {
        if !self.disks.exist() {
            return;
        }
        let power = &mut self.disks.power[machine];
        let faults = &self.faults;
        let (fails, torn) = (power.chance(faults.power_failures), power.chance(faults.torn_writes));
        let fails = fails && may_lose_power;
        for index in self.residents(machine) {
            let shard = ShardId(index as u16);
            let disk = &mut self.disks.disks[index];
            disk.turn = disk.turn.wrapping_add(1);
            disk.held = false;
            let left = disk.loss.below(disk.queue.len() as u64 + 1) as usize;
            while self.disks.disks[index].queue.len() > left {
                self.carry_out(shard);
            }
            let disk = &mut self.disks.disks[index];
            disk.queue.clear();
            if fails {
                disk.platter.fail_power(torn, &mut disk.loss);
            }
            let checksum = disk.platter.checksum();
            self.trace.record(self.queue.now_ns, Event::Crashed { shard, power: fails, torn, checksum });
        }
    }
}
