//! A benchmark on a cluster: what its file says, and what is left to flags.
//!
//! The file of a cluster may name a workload with its scale, `workload = "smallbank --accounts 10000"`: nodes load it when they start,
//! and `plimsoll bench --cluster` runs it. What is loaded, and under which protocol and scheme, is the cluster's; what
//! transactions do, how many at a time and for how long is the client's.

use std::path::PathBuf;

use clap::Parser;
use plimsoll::{Cluster, Pair};

use super::plan::{BenchPlan, Refusal, refuse};
use super::{BenchArgs, Cli, Command};

/// The plan of the workload that the nodes of a cluster load; none if its file names none.
pub fn loaded(cluster: &Cluster, cores: usize) -> Result<Option<BenchPlan>, Refusal> {
    match args(cluster)? {
        Some(args) => scaled(args, cluster).validate(cores, 0).map(Some),
        None => Ok(None),
    }
}

/// The flags that the file of a cluster has.
fn args(cluster: &Cluster) -> Result<Option<BenchArgs>, Refusal> {
    let Some(line) = &cluster.workload else { return Ok(None) };
    let words = ["plimsoll", "bench"].into_iter().chain(line.split_whitespace());
    let wrong = |why: String| Refusal::from(format!("the cluster's workload = {line:?} cannot be: {why}"));
    let args = match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Bench(args)) if args.other.is_none() => *args,
        Ok(_) => return Err(wrong("it is no benchmark with tables".to_owned())),
        Err(error) => {
            return Err(wrong(error.render().to_string().lines().next().unwrap_or_default().to_owned()));
        }
    };
    match args.of_the_run().into_iter().chain(args.of_the_database()).find(|(_, given)| *given) {
        Some((flag, _)) => Err(wrong(format!("--{flag} is no matter of what is loaded, leave it out"))),
        None => Ok(Some(args)),
    }
}

/// The same for all shards of a cluster.
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
    /// Flags that say how a run is made.
    fn of_the_run(&self) -> [(&'static str, bool); 10] {
        [
            ("cluster", self.cluster.is_some()),
            ("concurrency", self.concurrency.is_some()),
            ("rate", self.rate.is_some()),
            ("warmup", self.warmup.is_some()),
            ("duration", self.duration.is_some()),
            ("runs", self.runs.is_some()),
            ("check", self.check),
            ("check-online", self.check_online.is_some()),
            ("json", self.json.is_some()),
            ("report", self.report.is_some()),
        ]
    }

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

    /// Flags that say what is loaded.
    fn of_the_load(&self) -> [(&'static str, bool); 9] {
        [
            ("warehouses", self.warehouses.is_some()),
            ("warehouses-per-shard", self.warehouses_per_shard.is_some()),
            ("spread", self.spread),
            ("items", self.items.is_some()),
            ("customers", self.customers.is_some()),
            ("split-columns", self.split_columns.is_some()),
            ("accounts", self.accounts.is_some()),
            ("tuples", self.tuples.is_some()),
            ("seed", self.seed.is_some()),
        ]
    }

    /// The plan of a run on a cluster.
    pub(super) fn on_cluster(mut self, place: &str, cores: usize) -> Result<BenchPlan, Refusal> {
        let name = self.workload_name()?;
        let secret: Option<PathBuf> = self.secret_file.take();
        let cluster =
            Cluster::find(place, secret.as_deref()).map_err(|error| Refusal::from(error.to_string()))?;
        let Some(file) = args(&cluster)? else {
            refuse!(
                "the cluster {:?} has loaded no benchmark: write workload = \"{name} ...\" into its file instead of \
                 tables, and start its nodes",
                cluster.name
            );
        };
        if file.workload != Some(name) {
            let has = file.workload.map(|has| has.to_string()).unwrap_or_default();
            refuse!("the nodes of the cluster have loaded {has}, not {name}: say `plimsoll bench {has}`");
        }
        for (flag, given) in self.of_the_database().into_iter().chain(self.of_the_load()) {
            if given {
                refuse!("--{flag} is said by the cluster's file: leave it out");
            }
        }
        if self.coordinators.is_some() {
            refuse!(
                "--coordinators is for databases of one's own; on a cluster this client coordinates all: leave it out"
            );
        }
        if self.check {
            refuse!("--check needs the versions that nodes install, which they do not keep: leave it out");
        }
        if self.runs.is_some_and(|runs| runs > 1) {
            refuse!(
                "--runs needs data that is new each time: give 1, and start the nodes anew for another run"
            );
        }
        if self.staleness.is_some_and(|staleness| staleness > cluster.max_staleness) {
            refuse!("--staleness is more than the cluster keeps: raise max_staleness_ms in its file");
        }
        if let Some(node) = cluster.processes().find(|node| node.http.is_none()) {
            refuse!("{node} has no `http` address, which a run needs to know how it is: add one to the file");
        }
        let merged = BenchArgs {
            warehouses: file.warehouses,
            warehouses_per_shard: file.warehouses_per_shard,
            spread: file.spread,
            items: file.items,
            customers: file.customers,
            split_columns: file.split_columns,
            accounts: file.accounts,
            tuples: file.tuples,
            seed: file.seed,
            // Whichever of the two the client gives takes the place of the one in the file.
            distributed: self.distributed.or(file.distributed.filter(|_| !self.global)),
            global: self.global || file.global && self.distributed.is_none(),
            remote_payments: self.remote_payments.or(file.remote_payments),
            districts: self.districts.or(file.districts),
            tuples_per_transaction: self.tuples_per_transaction.or(file.tuples_per_transaction),
            read_only: self.read_only.or(file.read_only),
            read_share: self.read_share.or(file.read_share),
            participants: self.participants.or(file.participants),
            zipf: self.zipf.or(file.zipf),
            spin: self.spin.or(file.spin),
            ..self
        };
        let plan = scaled(merged, &cluster).validate(cores, 0)?;
        Ok(BenchPlan { cluster: Some(cluster), coordinators: 1, ..plan })
    }
}
