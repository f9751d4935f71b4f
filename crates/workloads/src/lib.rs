//! Workloads, written once: tables, deterministic loading, transactions, invariants.
//!
//! A workload knows nothing of protocols, shards or threads: it says which tables it needs, what
//! they hold at the start, what a client does next, and which conditions must hold. Benchmarks, the
//! simulator and correctness tests all drive the same object.

mod any;
mod blocks;
pub mod micro;
pub mod registry;
pub mod rows;
pub mod smallbank;
#[cfg(test)]
mod testing;
pub mod tpcc;
pub mod tpce;
mod verdict;

pub use any::{AnyAudit, AnyClient, AnyTransaction, AnyWorkload};
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::chopping::{Chopping, PieceType, Unrepairable};
use plimsoll_txn::executable::AnyProcedure;
use plimsoll_txn::procedure::Procedure;
use plimsoll_txn::shipped::Unpack;
use plimsoll_types::{Abort, Key, ShardId, Slot, TableId, TableSpec};

/// Takes the rows of a load: table, key, one value per column group.
pub type Sink<'a> = &'a mut dyn FnMut(TableId, Key, &[&[u8]]);

/// So many transactions are drawn, by clients at so many homes at most, to see whether they are
/// what the types of their pieces say: a few milliseconds, and what one transaction in a hundred
/// does is hardly missed.
const DRAWN: usize = 512;
const HOMES_MAX: usize = 8;

/// Of a row that is loaded and never deleted, and is not there: the piece came from another
/// process, and names what it likes.
const NOT_LOADED: Abort = Abort::Refused;

/// A benchmark's data, transactions and invariants.
pub trait Workload: Clone + Send + Sync + 'static {
    /// All its transactions, usually an enum.
    type Procedure: Procedure + AnyProcedure + Send + 'static;
    /// What one client keeps between transactions: its random numbers and its home.
    type Client: 'static;
    /// A read-only transaction that reads what the invariants of one unit speak about.
    type Audit: Procedure + AnyProcedure + Send + 'static;

    /// Its name on the command line.
    const NAME: &'static str;
    /// Its transaction types, in the order of [`Workload::kind`].
    const KINDS: &'static [Kind];
    /// Names of the sums that committed transactions add to; see [`Workload::tally`].
    const SUMS: &'static [&'static str];
    /// Whether transactions read immutable rows that every shard gets without declaring them, so
    /// that a client that holds no data needs copies of its own.
    const READS_COPIES_AT_HAND: bool = false;

    /// The tables, in the order of their [`TableId`]s.
    fn tables(&self) -> Vec<TableSpec>;

    /// The types of pieces that its read-write transactions are made of, if they are one-shot; and
    /// how to decode one.
    fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
        None
    }

    /// The same, checked ([`Chopping::new`]), and compared with transactions that are drawn for it
    /// ([`Chopping::check`]).
    fn chopping(&self) -> Result<Chopping, Unrepairable> {
        let Some((types, _)) = self.pieces() else {
            return Err(Unrepairable(
                "Its transactions are not cut into pieces that name what they touch.".to_owned(),
            ));
        };
        let (chopping, tables) = (Chopping::new(types)?, self.tables());
        // With every slot on a shard of its own transactions are as distributed as they get.
        let homes: Vec<Slot> =
            (0..self.units()).filter_map(|unit| self.unit_slot(unit)).take(HOMES_MAX).collect();
        for &Slot(home) in &homes {
            let mut client = self.client(0, ShardId(home), &|slot| ShardId(slot.0));
            for _ in 0..DRAWN / homes.len() {
                let mut procedure = self.next(&mut client, 0);
                let Kind { name, read_only, .. } = Self::KINDS[Self::kind(&procedure)];
                if !read_only {
                    chopping.check(name, &mut procedure, &tables)?;
                }
            }
        }
        Ok(chopping)
    }

    /// Protocol options with what ROCOCO has to know of it; what it cannot run is refused before
    /// ([`Workload::chopping`]).
    fn protocol_options(&self) -> ProtocolOptions {
        let chopped = self.pieces().and_then(|(types, unpack)| Some((Chopping::new(types).ok()?, unpack)));
        chopped.map_or_else(ProtocolOptions::default, |(chopping, unpack)| ProtocolOptions {
            immediate_pieces: chopping.bits(),
            unpack: Some(unpack),
            ..ProtocolOptions::default()
        })
    }

    /// How many units the data is loaded in (a warehouse, a block of accounts). Units load in
    /// parallel and independently: a unit's rows depend only on the workload's seed and the unit's
    /// number.
    fn units(&self) -> usize;

    /// The slot all rows of a unit live in, or `None` for rows that every shard gets (immutable
    /// tables).
    fn unit_slot(&self, unit: usize) -> Option<Slot>;

    /// Produces the rows of a unit: `sink(table, key, one value per column group)`. Ordered tables
    /// may come in any order, ascending is fastest.
    fn load(&self, unit: usize, sink: Sink<'_>);

    /// A client bound to a shard. `client` is unique over all shards, the same for the same seed,
    /// and never used twice on one database: keys that a client inserts may contain it. `owner`
    /// tells which shard owns a slot, so that a client can choose a home on its own shard. The
    /// lower 16 bits of `client` number the clients of a run, those above them the run.
    fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> Self::Client;

    /// The client's next transaction, inputs drawn, not started. `now_ns` is its shard's clock, for
    /// clients in whose world time passes; the same moments give the same transactions.
    fn next(&self, client: &mut Self::Client, now_ns: u64) -> Self::Procedure;

    /// What became of the client's transaction: committed with these outputs, or given up. Each
    /// that was drawn is told once, before the next one is drawn, unless its outcome is unknown.
    fn done(&self, _client: &mut Self::Client, _procedure: &Self::Procedure, _committed: bool) {}

    /// The transaction's type: a position in [`Workload::KINDS`].
    fn kind(procedure: &Self::Procedure) -> usize;

    /// Adds what a committed transaction did to the sums (positions in [`Workload::SUMS`]).
    fn tally(procedure: &Self::Procedure, sums: &mut [i64]);

    /// Rows that a committed transaction has read, if it counts them: those of copies that are
    /// everywhere are left out.
    fn rows_read(_procedure: &Self::Procedure) -> Option<u32> {
        None
    }

    /// What the workload itself counts, by name: of the clients of this process, since the load.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Read-only transactions that together read all that the invariants need.
    fn audits(&self) -> Vec<Self::Audit>;

    /// A read-only transaction for the online check, cheap enough to run while writers do.
    fn online_audit(&self, number: usize) -> Self::Audit;

    /// Tells an online audit, before it runs, what the one before it has seen. Both are the same
    /// client's, whose snapshots do not go back.
    fn follow(&self, _audit: &mut Self::Audit, _last: &Self::Audit) {}

    /// Judges one audit that ran in one snapshot: conditions that hold at every moment.
    fn judge_snapshot(&self, audit: &Self::Audit) -> Vec<Check>;

    /// What drivers must have counted since the load for the data to be as it is, by all of
    /// [`Workload::audits`]. A further run on the same data begins to count there. Nothing is
    /// judged here: where the data tells the same number twice and differently, this goes by one of
    /// the two, and [`Workload::judge`] compares both with it.
    fn found(&self, audits: &[&Self::Audit]) -> Tally;

    /// Transactions that give up what earlier runs have left open, by what all of
    /// [`Workload::audits`] have seen. A further run on the same data begins with them, one after
    /// the other, and counts them like its clients'.
    fn clean_ups(&self, _audits: &[&Self::Audit]) -> Vec<Self::Procedure> {
        Vec::new()
    }

    /// Why its clients cannot go on, as a sentence, if they cannot: a run ends with it.
    fn exhausted(&self) -> Option<&'static str> {
        None
    }

    /// Judges all audits of [`Workload::audits`] after a run: the conditions that hold at every
    /// moment, and those that compare the data with what the drivers counted since the load.
    fn judge(&self, audits: &[Self::Audit], tally: &Tally) -> Vec<Check>;
}

/// A transaction type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name in reports, snake case.
    pub name: &'static str,
    /// Whether it is declared read-only.
    pub read_only: bool,
    /// How many committed ones count as one transaction of the mix; 0: they are not part of it.
    pub per: u32,
    /// Its share of the mix by the specification, in hundredths of a per cent; 0: it prescribes
    /// none.
    pub nominal: u32,
}

impl Kind {
    /// A type whose transactions write.
    pub const fn writing(name: &'static str) -> Kind {
        Kind { name, read_only: false, per: 1, nominal: 0 }
    }

    /// A type whose transactions only read.
    pub const fn reading(name: &'static str) -> Kind {
        Kind { name, read_only: true, per: 1, nominal: 0 }
    }

    /// The same, of which this many count as one, or which is not part of the mix (0).
    pub const fn per(self, per: u32) -> Kind {
        Kind { per, ..self }
    }

    /// The same with a prescribed share of the mix, in hundredths of a per cent.
    pub const fn nominal(self, nominal: u32) -> Kind {
        Kind { nominal, ..self }
    }
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

#[cfg(test)]
mod tests {
    use plimsoll_txn::shipped::unpack;

    use super::{
        Check, Kind, PieceType, ShardId, Sink, Slot, TableSpec, Tally, Unpack, Workload, micro, smallbank,
        tpcc,
    };
    use crate::micro::Micro;
    use crate::smallbank::SmallBank;
    use crate::tpcc::Tpcc;

    #[test]
    fn transactions_of_benchmarks_are_what_the_types_of_their_pieces_say() {
        for warehouses in [1, 5] {
            let tpcc = Tpcc::new(tpcc::Parameters::small(warehouses)).expect("the parameters are valid");
            assert_eq!(tpcc.chopping().map(|chopping| chopping.bits()), Ok(0b1011101));
        }
        for shards in [1, 4] {
            let all = micro::Parameters { tuples_per_transaction: 4, ..micro::Parameters::new(shards) };
            for participants in [0, shards] {
                let parameters = micro::Parameters { participants, ..all.clone() };
                let micro = Micro::new(parameters).expect("the parameters are valid");
                assert_eq!(micro.chopping().map(|chopping| chopping.bits()), Ok(0));
            }
            let bank =
                smallbank::Parameters { distributed_pct: 0.0, ..smallbank::Parameters::new(shards, 700) };
            let bank = SmallBank::new(bank).expect("the parameters are valid");
            assert!(bank.chopping().is_ok(), "{:?}", bank.chopping());
        }
    }

    #[test]
    fn a_bank_between_shards_is_refused_by_name() {
        let bank = SmallBank::new(smallbank::Parameters::new(2, 700)).expect("the parameters are valid");
        let why = bank.chopping().expect_err("money comes from one shard and goes to another").to_string();
        assert!(why.contains("send_payment.from -C- send_payment.from' -S- send_payment.to'"), "{why}");
    }

    /// The microbenchmarks, whose pieces say that they only read.
    #[derive(Clone)]
    struct Lying(Micro);

    impl Workload for Lying {
        type Procedure = micro::Transaction;
        type Client = micro::Client;
        type Audit = micro::Audit;

        const NAME: &'static str = "lying";
        const KINDS: &'static [Kind] = Micro::KINDS;
        const SUMS: &'static [&'static str] = Micro::SUMS;

        fn tables(&self) -> Vec<TableSpec> {
            self.0.tables()
        }

        fn pieces(&self) -> Option<(Vec<PieceType>, Unpack)> {
            let (types, _) = self.0.pieces()?;
            let columns = types[0].touches.iter().map(|(column, _)| *column);
            let reads = PieceType::new(types[0].transaction, types[0].name, 0).reads(columns).many();
            Some((vec![reads], unpack::<micro::Transaction>))
        }

        fn units(&self) -> usize {
            self.0.units()
        }

        fn unit_slot(&self, unit: usize) -> Option<Slot> {
            self.0.unit_slot(unit)
        }

        fn load(&self, unit: usize, sink: Sink<'_>) {
            self.0.load(unit, sink);
        }

        fn client(&self, client: usize, shard: ShardId, owner: &dyn Fn(Slot) -> ShardId) -> micro::Client {
            self.0.client(client, shard, owner)
        }

        fn next(&self, client: &mut micro::Client, now_ns: u64) -> micro::Transaction {
            self.0.next(client, now_ns)
        }

        fn kind(procedure: &micro::Transaction) -> usize {
            Micro::kind(procedure)
        }

        fn tally(procedure: &micro::Transaction, sums: &mut [i64]) {
            Micro::tally(procedure, sums);
        }

        fn audits(&self) -> Vec<micro::Audit> {
            self.0.audits()
        }

        fn online_audit(&self, number: usize) -> micro::Audit {
            self.0.online_audit(number)
        }

        fn judge_snapshot(&self, audit: &micro::Audit) -> Vec<Check> {
            self.0.judge_snapshot(audit)
        }

        fn found(&self, audits: &[&micro::Audit]) -> Tally {
            self.0.found(audits)
        }

        fn judge(&self, audits: &[micro::Audit], tally: &Tally) -> Vec<Check> {
            self.0.judge(audits, tally)
        }
    }

    #[test]
    fn a_workload_whose_transactions_are_not_what_its_types_say_is_refused_before_it_runs() {
        let lying = Lying(Micro::new(micro::Parameters::new(2)).expect("the parameters are valid"));
        assert_eq!(
            lying.chopping().expect_err("it writes").to_string(),
            "rococo cannot run this workload: read_write.part writes tuples: declare it with `.writes` in its type."
        );
    }
}
