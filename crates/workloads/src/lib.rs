//! Workloads, written once: tables, deterministic loading, transactions, invariants.
//!
//! A workload knows nothing of protocols, shards or threads: it says which tables it needs, what they
//! hold at the start, what a client does next, and which conditions must hold. Benchmarks, the simulator
//! and correctness tests all drive the same object.

pub mod micro;
pub mod random;
pub mod smallbank;
#[cfg(test)]
mod testing;
pub mod tpcc;

use plimsoll_txn::chopping::{Chopping, PieceType, Unrepairable};
use plimsoll_txn::procedure::Procedure;
use plimsoll_txn::protocol::ProtocolOptions;
use plimsoll_txn::shipped::Unpack;
use plimsoll_types::{Key, ShardId, Slot, TableId, TableSpec};

/// Takes the rows of a load: table, key, one value per column group.
pub type Sink<'a> = &'a mut dyn FnMut(TableId, Key, &[&[u8]]);

/// A benchmark's data, transactions and invariants.
pub trait Workload: Clone + Send + Sync + 'static {
    /// All its transactions, usually an enum.
    type Procedure: Procedure;
    /// What one client keeps between transactions: its random numbers and its home.
    type Client: 'static;
    /// A read-only transaction that reads what the invariants of one unit speak about.
    type Audit: Procedure + Send;

    /// Its name on the command line.
    const NAME: &'static str;
    /// Its transaction types, in the order of [`Workload::kind`].
    const KINDS: &'static [Kind];
    /// Names of the sums that committed transactions add to; see [`Workload::tally`].
    const SUMS: &'static [&'static str];

    /// The tables, in the order of their [`TableId`]s.
    fn tables(&self) -> Vec<TableSpec>;

    /// The types of pieces that its read-write transactions are made of, if they are one-shot; and how to decode one.
    fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
        None
    }

    /// The same, checked; `None` if they are not one-shot.
    fn chopping(&self) -> Result<Option<(Chopping, Unpack)>, Unrepairable> {
        self.pieces()
            .map(|(types, unpack)| Chopping::new(types).map(|chopping| (chopping, unpack)))
            .transpose()
    }

    /// Protocol options with what ROCOCO has to know of it; what it cannot run it refuses ([`Workload::chopping`]).
    fn protocol_options(&self) -> ProtocolOptions {
        let chopping = self.chopping().ok().flatten();
        chopping.map_or_else(ProtocolOptions::default, |(chopping, unpack)| ProtocolOptions {
            immediate_pieces: chopping.bits(),
            unpack: Some(unpack),
            ..ProtocolOptions::default()
        })
    }

    /// How many units the data is loaded in (a warehouse, a block of accounts). Units load in parallel
    /// and independently: a unit's rows depend only on the workload's seed and the unit's number.
    fn units(&self) -> usize;

    /// The slot all rows of a unit live in, or `None` for rows that every shard gets (immutable tables).
    fn unit_slot(&self, unit: usize) -> Option<Slot>;

    /// Produces the rows of a unit: `sink(table, key, one value per column group)`. Ordered tables may
    /// come in any order, ascending is fastest.
    fn load(&self, unit: usize, sink: Sink<'_>);

    /// About how many bytes of memory the loaded data takes, with indexes.
    fn bytes_estimate(&self) -> u64;

    /// A client bound to a shard. `client` is unique over all shards, the same for the same seed, and never
    /// used twice on one database: keys that a client inserts may contain it.
    /// `owner` tells which shard owns a slot, so that a client can choose a home on its own shard.
    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Self::Client;

    /// The client's next transaction, inputs drawn, not started.
    fn next(&self, client: &mut Self::Client) -> Self::Procedure;

    /// The transaction's type: a position in [`Workload::KINDS`].
    fn kind(procedure: &Self::Procedure) -> usize;

    /// Adds what a committed transaction did to the sums (positions in [`Workload::SUMS`]).
    fn tally(procedure: &Self::Procedure, sums: &mut [i64]);

    /// Read-only transactions that together read all that the invariants need.
    fn audits(&self) -> Vec<Self::Audit>;

    /// A read-only transaction for the online check, cheap enough to run while writers do.
    fn online_audit(&self, number: usize) -> Self::Audit;

    /// Judges one audit that ran in one snapshot: conditions that hold at every moment.
    fn judge_snapshot(&self, audit: &Self::Audit) -> Vec<Check>;

    /// Judges all audits of [`Workload::audits`] after a run: the conditions that hold at every moment,
    /// and those that compare the data with what the drivers counted since the load.
    fn judge(&self, audits: &[Self::Audit], tally: &Tally) -> Vec<Check>;
}

/// A transaction type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in reports, snake case.
    pub name: &'static str,
    /// Whether it is declared read-only.
    pub read_only: bool,
}

/// What the drivers counted since the load: committed transactions only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Committed transactions by [`Workload::kind`].
    pub committed: Vec<u64>,
    /// Sums by [`Workload::SUMS`].
    pub sums: Vec<i64>,
}

plimsoll_types::wire!(struct Tally { committed, sums });

impl Tally {
    /// Adds what another driver of the same workload has counted.
    pub fn add(&mut self, other: &Tally) {
        self.committed.resize(self.committed.len().max(other.committed.len()), 0);
        self.sums.resize(self.sums.len().max(other.sums.len()), 0);
        self.committed.iter_mut().zip(&other.committed).for_each(|(sum, n)| *sum += n);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, n)| *sum += n);
    }
}

/// An invariant's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The condition.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// Where and how it is violated, or what was compared.
    pub detail: String,
}
