//! The microbenchmarks of the DST paper: transactions over a few 8-byte tuples that do nothing but
//! cost what is to be measured.
//!
//! One table of tuples, numbered 0, 1, ..., dealt out in *blocks* of
//! [`Parameters::tuples_per_shard`] consecutive numbers, one block per slot, so block b lives on
//! shard b. A transaction takes [`Parameters::tuples_per_transaction`] different ones: each of its
//! client's own block or, with [`Parameters::distributed_pct`], of one on another shard. It is one
//! of two kinds:
//!
//! | transaction | what it does |
//! |---|---|
//! | read_write | reads an exact number of its tuples, adds 1 to all others, and spins for a while |
//! | read_only | reads its tuples in one snapshot |
//!
//! | figure of the paper | what it shows | parameters |
//! |---|---|---|
//! | 6(b) | what a stamp costs | no tuples, read-write only, spin 1 to 1,400 µs |
//! | 6(c) | what a snapshot costs | read-only, ten tuples, 90 % at home |
//! | 15(a) | what waiting for writers costs | half of each kind, ten tuples of hardly more, half at home |
//! | 15(b) | what raising marks costs | read-write only, ten tuples at home, 0 to 100 % of them only read |
//!
//! RAMCloud's transaction benchmarks fit in as well: write-only transactions over 1 to 5 shards
//! ([`Parameters::participants`]) show what a participant costs, five tuples of a Zipfian
//! distribution ([`Parameters::zipf`]) what contention does.
//!
//! **The invariant.** A tuple counts how often it was updated. So after a run the tuples add up to
//! the updates that clients were told of: one that is lost, done twice or done by halves shows. And
//! because every read-write transaction adds the same number u to the sum, a snapshot of all tuples
//! adds up to a multiple of u. Reading all tuples twice a second would be a load of its own,
//! though, and no validated reader would ever finish. Hence the tuples of a transaction are
//! *congruent*: their positions in their blocks have the same remainder, divided by
//! [`Parameters::classes`]. Whatever adds to one *class* adds u to it, so a snapshot of one class,
//! some 500 tuples, shows a transaction that it tears, unless another torn one makes up for it.
//!
//! For example two shards of 100,000 tuples, transactions of ten, eight of them updates: there are
//! 400 classes, and a class is 250 tuples of each block. A position is drawn from all: 31,207 say,
//! in class 7. Then ten tuples of class 7 are drawn, of either block. Whoever reads class 7 in one
//! snapshot must find a multiple of 8.
//!
//! Congruent tuples are no nearer to each other than others are, neither in the index nor in
//! memory; each tuple is as likely as any other, and two transactions have as many tuples in
//! common, on average, as without classes. They are only a little less evenly spread: fewer pairs
//! of transactions conflict (a sixth fewer in the example), each in more tuples.
//!
//! **The spin** is a number of rounds of a loop, because transactions have no clock. Who knows a
//! clock finds out how many rounds take how long ([`spin`]).
//!
//! **What differs from the paper.** Keys are uniform. The released generator draws all tuples of
//! figure 6(c) from uniformly chosen machines; here 90 % are local, as the text says. The ten
//! tuples of figure 15(a) are not fixed ones, but any ten of a table that has hardly more. Scans
//! are left out: TPC-C has some.

mod audit;
mod flags;
mod transaction;

use plimsoll_txn::chopping::PieceType;
use plimsoll_txn::shipped::{Unpack, unpack};
use plimsoll_types::{IndexKind, Key, Partitioning, SLOTS, ShardId, Slot, TableId, TableSpec};

pub use audit::Audit;
pub use flags::MicroFlags;
pub use transaction::{Transaction, spin};

pub use crate::blocks::Client;
use crate::{Check, Kind, Sink, Tally, Workload};
use audit::{all_there, counts_updates, seen_whole};
use plimsoll_types::random::Zipf;
use transaction::{Part, Tuple};

/// Tuples: number (u64) → how often it was updated (u64, little-endian).
pub const TUPLES: TableId = TableId(0);

/// A class has about so many tuples in all blocks together.
const CLASS: u64 = 500;
/// Shares of more tuples would take longer to add up than a run.
const ZIPF_MAX: u64 = 10_000_000;
/// More tuples are not what a microbenchmark is about, and finding out that they differ takes a
/// while.
const TUPLES_PER_TRANSACTION_MAX: u64 = 1000;

/// What the tuples are and what transactions do with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// How many blocks of tuples there are; block b lives in slot b, hence on shard `b % shards`.
    pub shards: u64,
    /// Tuples in a block.
    pub tuples_per_shard: u64,
    /// Tuples that a transaction reads or updates, all different; 0: it does nothing but begin,
    /// spin and commit.
    pub tuples_per_transaction: u64,
    /// Share of the transactions that are read-only, in per cent.
    pub read_only_pct: f64,
    /// Share of the tuples of a read-write transaction that it only reads, in per cent: of ten
    /// tuples and 25 per cent exactly three, always.
    pub read_share_pct: f64,
    /// Share of the tuples that are on another shard, in per cent; the paper's 90 % local are 10 %
    /// here.
    pub distributed_pct: f64,
    /// Blocks that every transaction touches, its own among them, with as many tuples in each, or
    /// one more; 0: as `distributed_pct` has it.
    pub participants: u64,
    /// How unevenly the tuples of a block are drawn, below 1: see [`Zipf`]; 0: all are alike.
    /// Transactions are not congruent then, since the class would say too much about the tuple; all
    /// tuples are one class.
    pub zipf: f64,
    /// Rounds that a read-write transaction spins; see [`spin`].
    pub spin_rounds: u64,
    /// Seed of the clients. The load is the same for all.
    pub seed: u64,
}

impl Parameters {
    /// The DST authors' setting: 100,000 tuples per shard, ten per transaction, a tenth of them on
    /// other shards. Half of the transactions are read-only, and half of the tuples of the others.
    pub fn new(shards: u64) -> Parameters {
        Parameters {
            shards,
            tuples_per_shard: 100_000,
            tuples_per_transaction: 10,
            read_only_pct: 50.0,
            read_share_pct: 50.0,
            distributed_pct: 10.0,
            participants: 0,
            zipf: 0.0,
            spin_rounds: 0,
            seed: 1,
        }
    }

    /// Says in one sentence what is wrong with the parameters.
    pub fn validate(&self) -> Result<(), String> {
        if !(1..=SLOTS as u64).contains(&self.shards) {
            return Err(format!("The microbenchmark needs 1 to {SLOTS} shards, not {}.", self.shards));
        }
        if !(1..=1 << 40).contains(&self.tuples_per_shard) {
            return Err(format!(
                "The microbenchmark needs at least 1 tuple per shard (and at most 2^40), not {}.",
                self.tuples_per_shard
            ));
        }
        let most = self.tuples_per_shard.min(TUPLES_PER_TRANSACTION_MAX);
        if self.tuples_per_transaction > most {
            return Err(format!(
                "A transaction takes at most {most} different ones of {} tuples, not {}.",
                self.tuples_per_shard, self.tuples_per_transaction
            ));
        }
        let most = self.shards.min(self.tuples_per_transaction);
        if self.participants > most {
            return Err(format!(
                "{} tuples of {} shards are on at most {most} of them, not on {}.",
                self.tuples_per_transaction, self.shards, self.participants
            ));
        }
        if !(0.0..1.0).contains(&self.zipf) || self.zipf > 0.0 && self.tuples_per_shard > ZIPF_MAX {
            return Err(format!(
                "A Zipfian distribution has an exponent from 0 to below 1, not {}, and at most {ZIPF_MAX} tuples per shard.",
                self.zipf
            ));
        }
        for (name, percent) in [
            ("share of read-only transactions", self.read_only_pct),
            ("share of tuples that are only read", self.read_share_pct),
            ("distributed share", self.distributed_pct),
        ] {
            if !(0.0..=100.0).contains(&percent) {
                return Err(format!("The {name} is between 0 and 100 per cent, not {percent}."));
            }
        }
        Ok(())
    }

    /// How many tuples a read-write transaction updates, of those that it takes; the share that it
    /// only reads is rounded to a whole number of tuples.
    pub fn updates(&self) -> u64 {
        let reads = (self.tuples_per_transaction as f64 * self.read_share_pct / 100.0).round();
        self.tuples_per_transaction - reads as u64
    }

    /// How many classes there are: all tuples of a transaction have one remainder, divided by this
    /// number. A class leaves a transaction at least a fourfold choice in every block, unless there
    /// are too few tuples.
    pub fn classes(&self) -> u64 {
        if self.zipf > 0.0 {
            return 1;
        }
        let in_block = (CLASS / self.shards).max(4 * self.tuples_per_transaction).max(1);
        (self.tuples_per_shard / in_block).max(1)
    }
}

/// The microbenchmarks as a workload.
#[derive(Clone, Debug)]
pub struct Micro {
    parameters: Parameters,
    classes: u64,
    updates: u64,
    zipf: Option<Zipf>,
}

impl Micro {
    /// The workload with these parameters, or what is wrong with them.
    pub fn new(parameters: Parameters) -> Result<Micro, String> {
        parameters.validate()?;
        let zipf = (parameters.zipf > 0.0).then(|| Zipf::new(parameters.tuples_per_shard, parameters.zipf));
        Ok(Micro { classes: parameters.classes(), updates: parameters.updates(), zipf, parameters })
    }

    /// What it was made with.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The number of tuples.
    pub fn tuples(&self) -> u64 {
        self.parameters.shards * self.parameters.tuples_per_shard
    }
}

impl Workload for Micro {
    type Procedure = Transaction;
    type Client = Client;
    type Audit = Audit;

    const NAME: &'static str = "micro";
    const KINDS: &'static [Kind] = &[Kind::writing("read_write"), Kind::reading("read_only")];
    const SUMS: &'static [&'static str] = &["updates"];

    fn tables(&self) -> Vec<TableSpec> {
        let blocks = Partitioning::Range { bytes: 8, span: self.parameters.tuples_per_shard };
        vec![TableSpec::new("tuples", IndexKind::Hash, blocks)]
    }

    fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
        Some((transaction::pieces(), unpack::<Transaction>))
    }

    fn units(&self) -> usize {
        self.parameters.shards as usize
    }

    fn unit_slot(&self, unit: usize) -> Option<Slot> {
        Some(Slot(unit as u16))
    }

    fn load(&self, unit: usize, sink: Sink<'_>) {
        let span = self.parameters.tuples_per_shard;
        for tuple in unit as u64 * span..(unit as u64 + 1) * span {
            sink(TUPLES, Key::of_u64(tuple), &[&0u64.to_le_bytes()]);
        }
    }

    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Client {
        Client::new(self.parameters.seed, client, self.parameters.shards, shard, owner)
    }

    fn next(&self, client: &mut Client, _: u64) -> Transaction {
        let Parameters { tuples_per_shard: span, tuples_per_transaction: count, .. } = self.parameters;
        let Client { rng, blocks } = client;
        let read_only = rng.pct(self.parameters.read_only_pct);
        let home = blocks.home(rng);
        let updates = if read_only { 0 } else { self.updates };
        let class = rng.below(span) % self.classes;
        let in_class = (span - class).div_ceil(self.classes);
        let mut tuples: Vec<Tuple> = Vec::with_capacity(count as usize);
        let mut all_here = true;
        let mut taking_part = vec![home];
        // Slots may have moved to one shard since: then there are no more.
        let participants = self.parameters.participants.min(blocks.elsewhere() as u64 + 1);
        while (taking_part.len() as u64) < participants {
            let block = blocks.other(rng);
            if !taking_part.contains(&block) {
                taking_part.push(block);
            }
        }
        for number in 0..count {
            let mut block = taking_part[number as usize % taking_part.len()];
            let by_chance = self.parameters.participants == 0 && blocks.elsewhere() > 0;
            if by_chance && rng.pct(self.parameters.distributed_pct) {
                block = blocks.other(rng);
            }
            all_here &= block == home;
            // Another number instead of one that is taken, but of the same block: the locality
            // stays as asked.
            let key = loop {
                let position = match &self.zipf {
                    Some(zipf) => zipf.draw(rng),
                    None => class + rng.below(in_class) * self.classes,
                };
                let key = u64::from(block) * span + position;
                if tuples.iter().all(|tuple| tuple.key != key) {
                    break key;
                }
            };
            tuples.push(Tuple { key, slot: Slot(block), update: number < updates });
        }
        let mut away = Vec::new();
        if !all_here {
            tuples.sort_unstable_by_key(|tuple| (tuple.slot.0 == home, tuple.slot));
            let mut end = 0;
            for part in tuples.chunk_by(|a, b| a.slot == b.slot).filter(|part| part[0].slot.0 != home) {
                end += part.len();
                away.push(Part { slot: part[0].slot, end });
            }
        }
        let spin_rounds = if read_only { 0 } else { self.parameters.spin_rounds };
        Transaction { tuples, away, home: Slot(home), read_only, updates, spin_rounds }
    }

    fn kind(procedure: &Transaction) -> usize {
        usize::from(procedure.read_only)
    }

    fn tally(procedure: &Transaction, sums: &mut [i64]) {
        sums[0] += procedure.updates as i64;
    }

    fn audits(&self) -> Vec<Audit> {
        let span = self.parameters.tuples_per_shard;
        (0..self.parameters.shards).map(|block| Audit::new(span, block..block + 1, 0, 1)).collect()
    }

    /// A class, in one snapshot.
    fn online_audit(&self, number: usize) -> Audit {
        let Parameters { shards, tuples_per_shard, .. } = self.parameters;
        Audit::new(tuples_per_shard, 0..shards, number as u64 % self.classes, self.classes)
    }

    fn judge_snapshot(&self, audit: &Audit) -> Vec<Check> {
        let mut checks = vec![all_there([audit])];
        if audit.blocks() == self.parameters.shards {
            checks.push(seen_whole(audit.total(), self.updates));
        }
        checks
    }

    fn found(&self, audits: &[&Audit]) -> Tally {
        let updates: u64 = audits.iter().map(|audit| audit.total()).sum();
        Tally { committed: Vec::new(), sums: vec![updates as i64] }
    }

    fn judge(&self, audits: &[Audit], tally: &Tally) -> Vec<Check> {
        let total = audits.iter().map(Audit::total).sum();
        let updates = tally.sums.first().copied().unwrap_or(0);
        vec![all_there(audits), counts_updates(total, updates)]
    }
}

#[cfg(test)]
mod tests;
