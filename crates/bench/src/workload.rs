//! A workload to run: made from its plan, and fit for the cluster that it runs on.

use std::sync::Arc;

use plimsoll_args::{Refusal, refuse};
use plimsoll_engine::Cluster;
use plimsoll_txn::chopping::Chopping;
use plimsoll_txn::pairs::Protocol;
use plimsoll_workloads::AnyWorkload;

use crate::cli::plan::BenchPlan;
use crate::report::pieces::PieceGraph;

/// Makes the workload of a plan, or says why that is impossible.
pub fn make(plan: &BenchPlan) -> Result<Arc<dyn AnyWorkload>, Refusal> {
    let workload = plan.scale.make().map_err(Refusal::from)?;
    if plan.pairs.iter().any(|pair| pair.protocol == Protocol::Rococo) {
        workload.chopping().map_err(|why| Refusal::from(why.to_string()))?;
    }
    Ok(workload)
}

/// How its transactions are cut into pieces, as a document has it.
pub fn graph(workload: &dyn AnyWorkload, chopping: &Chopping) -> PieceGraph {
    PieceGraph::new(workload.name(), chopping, &workload.tables())
}

/// Refuses a cluster that has other tables than the workload.
pub fn refuse_other_tables(workload: &dyn AnyWorkload, cluster: &Cluster) -> Result<(), Refusal> {
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
