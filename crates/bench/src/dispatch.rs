//! From names to types: the closed list of workloads, each under every pair of protocol and timestamp scheme
//! ([`plimsoll_txn::pairs::LEGAL_PAIRS`]).

use std::sync::atomic::AtomicBool;

use plimsoll_args::{Refusal, refuse};
use plimsoll_engine::{Cluster, machine};
use plimsoll_page::progress::Progress;
use plimsoll_txn::chopping::{Chopping, Unrepairable};
use plimsoll_txn::pairs::{Pair, Protocol};
use plimsoll_txn::{with_interactive_pair, with_pair};
use plimsoll_types::TableSpec;
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};
use plimsoll_workloads::{Sink, Workload};

use crate::cli::plan::{BenchPlan, WorkloadPlan, refuse_more_than_memory};
use crate::report::model::Run;
use crate::report::pieces::PieceGraph;
use crate::run::{self, Failure, Joining, LoadReport};

/// The workload of a plan.
pub enum AnyWorkload {
    /// TPC-C.
    Tpcc(Tpcc),
    /// SmallBank.
    SmallBank(SmallBank),
    /// The microbenchmarks.
    Micro(Micro),
}

impl AnyWorkload {
    /// Its tables.
    pub fn tables(&self) -> Vec<TableSpec> {
        match self {
            AnyWorkload::Tpcc(tpcc) => tpcc.tables(),
            AnyWorkload::SmallBank(bank) => bank.tables(),
            AnyWorkload::Micro(micro) => micro.tables(),
        }
    }

    /// How its transactions are cut into pieces, checked.
    pub fn chopping(&self) -> Result<Chopping, Unrepairable> {
        match self {
            AnyWorkload::Tpcc(tpcc) => tpcc.chopping(),
            AnyWorkload::SmallBank(bank) => bank.chopping(),
            AnyWorkload::Micro(micro) => micro.chopping(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            AnyWorkload::Tpcc(_) => Tpcc::NAME,
            AnyWorkload::SmallBank(_) => SmallBank::NAME,
            AnyWorkload::Micro(_) => Micro::NAME,
        }
    }

    /// How they are cut, as a document has it.
    pub fn graph(&self, chopping: &Chopping) -> PieceGraph {
        PieceGraph::new(self.name(), chopping, &self.tables())
    }

    /// How many units its rows are loaded in.
    pub fn units(&self) -> usize {
        match self {
            AnyWorkload::Tpcc(tpcc) => tpcc.units(),
            AnyWorkload::SmallBank(bank) => bank.units(),
            AnyWorkload::Micro(micro) => micro.units(),
        }
    }

    /// Produces the rows of a unit.
    pub fn load_unit(&self, unit: usize, sink: Sink<'_>) {
        match self {
            AnyWorkload::Tpcc(tpcc) => tpcc.load(unit, sink),
            AnyWorkload::SmallBank(bank) => bank.load(unit, sink),
            AnyWorkload::Micro(micro) => micro.load(unit, sink),
        }
    }
}

/// Makes the workload, or says why that is impossible. `memory_bytes` are free for data (0: unknown).
pub fn workload(plan: &BenchPlan, memory_bytes: u64) -> Result<AnyWorkload, Refusal> {
    let (workload, bytes) = match &plan.workload {
        WorkloadPlan::Tpcc(scale) => {
            let parameters = tpcc::Parameters {
                items: scale.items,
                customers_per_district: scale.customers_per_district,
                stock_level_districts: scale.stock_level_districts,
                remote_item_pct: scale.remote_items_percent,
                remote_payment_pct: scale.remote_payments_percent,
                split_columns: scale.split_columns,
                spread: scale.spread,
                seed: plan.seed,
                ..tpcc::Parameters::new(scale.warehouses)
            };
            let tpcc = Tpcc::new(parameters).map_err(Refusal::from)?;
            let bytes = tpcc.bytes_estimate();
            (AnyWorkload::Tpcc(tpcc), bytes)
        }
        WorkloadPlan::SmallBank(scale) => {
            let parameters = smallbank::Parameters {
                distributed_pct: scale.distributed_percent,
                global: scale.global,
                seed: plan.seed,
                ..smallbank::Parameters::new(plan.shards as u64, scale.accounts_per_shard)
            };
            let bank = SmallBank::new(parameters).map_err(Refusal::from)?;
            let bytes = bank.bytes_estimate();
            (AnyWorkload::SmallBank(bank), bytes)
        }
        WorkloadPlan::Micro(scale) => {
            let parameters = micro::Parameters {
                tuples_per_shard: scale.tuples_per_shard,
                tuples_per_transaction: scale.tuples_per_transaction,
                read_only_pct: scale.read_only_percent,
                read_share_pct: scale.read_share_percent,
                distributed_pct: scale.distributed_percent,
                participants: scale.participants,
                zipf: scale.zipf,
                spin_rounds: machine::rounds_in(scale.spin, micro::spin),
                seed: plan.seed,
                ..micro::Parameters::new(plan.shards as u64)
            };
            let micro = Micro::new(parameters).map_err(Refusal::from)?;
            let bytes = micro.bytes_estimate();
            (AnyWorkload::Micro(micro), bytes)
        }
    };
    refuse_more_than_memory(bytes, memory_bytes)?;
    if plan.pairs.iter().any(|pair| pair.protocol == Protocol::Rococo) {
        workload.chopping().map_err(|why| Refusal::from(why.to_string()))?;
    }
    Ok(workload)
}

/// Refuses a cluster that has other tables than the workload.
pub fn refuse_other_tables(workload: &AnyWorkload, cluster: &Cluster) -> Result<(), Refusal> {
    let (needed, name) = (workload.tables(), workload.name());
    let instead = "put what the same command prints with --tables into its file, and start its nodes anew";
    for (place, table) in needed.iter().enumerate() {
        match cluster.tables.get(place) {
            Some(has) if has == table => {}
            Some(has) if has.name == table.name => refuse!(
                "table {:?} of cluster {:?} is not as {name} needs it at this scale: give the scale that the file was \
                 written for, or {instead}",
                has.name,
                cluster.name
            ),
            Some(has) => refuse!(
                "cluster {:?} has a table {:?} where {name} needs {:?}: {instead}",
                cluster.name,
                has.name,
                table.name
            ),
            None => refuse!(
                "cluster {:?} has no table {:?}, which {name} needs: {instead}",
                cluster.name,
                table.name
            ),
        }
    }
    match cluster.tables.get(needed.len()) {
        None => Ok(()),
        Some(more) => {
            refuse!("cluster {:?} has a table {:?}, which {name} has not: {instead}", cluster.name, more.name)
        }
    }
}

/// Loads a workload's rows into the cluster of a plan.
pub fn load_cluster(
    workload: &AnyWorkload,
    cluster: &Cluster,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<LoadReport, Failure> {
    with_interactive_pair!(cluster.pair, P => run::load_cluster::<P>(workload, cluster, progress, interrupted))
}

/// Runs a workload under a pair.
pub fn run(
    workload: &AnyWorkload,
    plan: &BenchPlan,
    pair: Pair,
    repetition: u32,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<Run, Failure> {
    match workload {
        AnyWorkload::Tpcc(tpcc) => run_pair(tpcc, plan, pair, repetition, progress, interrupted),
        AnyWorkload::SmallBank(bank) => run_pair(bank, plan, pair, repetition, progress, interrupted),
        AnyWorkload::Micro(micro) => run_pair(micro, plan, pair, repetition, progress, interrupted),
    }
}

/// Runs a workload of a known type under a pair.
pub fn run_pair<W: Workload>(
    workload: &W,
    plan: &BenchPlan,
    pair: Pair,
    repetition: u32,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<Run, Failure> {
    with_pair!(pair, P => run::run::<P, W>(workload, plan, pair, repetition, progress, interrupted))
}

/// Is one of the processes of a run that another process leads.
pub fn serve(workload: &AnyWorkload, plan: &BenchPlan) -> std::io::Result<()> {
    let joining = Joining::meet()?;
    let pair = joining.pair(plan)?;
    with_pair!(pair, P => match workload {
        AnyWorkload::Tpcc(tpcc) => joining.serve::<P, Tpcc>(tpcc, plan),
        AnyWorkload::SmallBank(bank) => joining.serve::<P, SmallBank>(bank, plan),
        AnyWorkload::Micro(micro) => joining.serve::<P, Micro>(micro, plan),
    })
}
