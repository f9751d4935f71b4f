//! A benchmark on a cluster that runs: what its file says, and what flags say.
//!
//! Protocol, scheme and shards are the cluster's, and so are its tables, which must be the
//! workload's. How many rows there are, what transactions do, how many at a time and for how long
//! is the client's. `--tables` and `--load` are added to the command that is to run: they look at
//! the flags that decide about tables and rows.

use std::path::PathBuf;

use plimsoll_args::{Refusal, refuse};
use plimsoll_engine::Cluster;
use plimsoll_txn::pairs::Pair;

use super::BenchArgs;
use super::plan::BenchPlan;

/// The same as flags of a database that has the shards, the protocol and the scheme of a cluster.
fn scaled(args: BenchArgs, cluster: &Cluster) -> BenchArgs {
    let Pair { protocol, scheme } = cluster.pair;
    let shards = cluster.nodes.iter().map(|node| node.shards as u64).sum();
    BenchArgs {
        shards: Some(shards),
        oversubscribe: true,
        protocol: Some(protocol),
        scheme: Some(scheme),
        ..args
    }
}

impl BenchArgs {
    /// Flags that say what the database is, which a cluster says itself.
    fn of_the_database(&self) -> [(&'static str, bool); 12] {
        [
            ("protocol", self.protocol.is_some()),
            ("scheme", self.scheme.is_some()),
            ("compare", self.compare.is_some()),
            ("lock-policy", self.lock_policy.is_some()),
            ("one-round", self.one_round),
            ("oracle-batch", self.oracle_batch.is_some()),
            ("oracle-compress", self.oracle_compress.is_some()),
            ("oracle-prefetch", self.oracle_prefetch.is_some()),
            ("rc-single-version", self.rc_single_version),
            ("processes", self.processes.is_some()),
            ("shards", self.shards.is_some()),
            ("oversubscribe", self.oversubscribe),
        ]
    }

    /// The cluster at a place. Flags that contradict its file are refused.
    fn cluster_at(&mut self, place: &str) -> Result<Cluster, Refusal> {
        let secret: Option<PathBuf> = self.secret_file.take();
        let cluster =
            plimsoll::find(place, secret.as_deref()).map_err(|error| Refusal::from(error.to_string()))?;
        match self.of_the_database().into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => refuse!("--{flag} is said by the cluster's file: leave it out"),
            None => Ok(cluster),
        }
    }

    /// The plan of a workload whose tables are wanted, for the shards of a cluster that is named or
    /// for any others.
    pub fn validate_tables(mut self, cores: usize) -> Result<BenchPlan, Refusal> {
        self.workload()?;
        match self.cluster.take() {
            Some(place) => {
                let cluster = self.cluster_at(&place)?;
                scaled(self, &cluster).validate(cores, 0)
            }
            None => BenchArgs { oversubscribe: true, ..self }.validate(cores, 0),
        }
    }

    /// The plan of a run on a cluster, or of its load.
    pub(super) fn on_cluster(mut self, place: &str, cores: usize) -> Result<BenchPlan, Refusal> {
        self.workload()?;
        let fill = self.load == Some(None);
        if fill {
            self.load = None;
        }
        let cluster = self.cluster_at(place)?;
        if self.coordinators.is_some() {
            refuse!(
                "--coordinators is for databases of one's own; on a cluster this client coordinates all: leave it out"
            );
        }
        if self.memory.is_some() {
            refuse!("--memory is for databases of one's own; give it to the nodes, with plimsoll start");
        }
        if self.check {
            refuse!("--check needs the versions that nodes install, which they do not keep: leave it out");
        }
        if self.runs.is_some_and(|runs| runs > 1) {
            refuse!(
                "--runs needs data that is new each time, and on a cluster each run goes on with what the one before has \
                 left: give 1, and repeat the command"
            );
        }
        if self.staleness.is_some_and(|staleness| staleness > cluster.max_staleness) {
            refuse!("--staleness is more than the cluster keeps: raise max_staleness_ms in its file");
        }
        if let Some(node) = cluster.processes().find(|node| node.http.is_none()) {
            refuse!("{node} has no `http` address, which a run needs to know how it is: add one to the file");
        }
        let plan = scaled(self, &cluster).validate(cores, 0)?;
        Ok(BenchPlan { cluster: Some(cluster), fill, coordinators: 1, ..plan })
    }
}
