//! Benchmarks that are measured in turns.
//!
//! Machines that others share are faster now and slower then, for a second or for minutes. Figures
//! that are to be held against each other must not have been taken in different minutes: so
//! everything is measured in several rounds, each a short run of every benchmark. A slow minute
//! costs each of them a round.
//!
//! Of a benchmark the mean of the best quarter of its tenths of a second counts. The speed of such
//! a machine has two values rather than a middle, often a factor of two apart: a median lies on one
//! side or the other by chance, and a maximum is an accident.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_args::JsonOutput;
use plimsoll_bench::cli::LockPolicy;
use plimsoll_bench::cli::plan::{BenchPlan, OraclePlan, Side};
use plimsoll_bench::run;
use plimsoll_engine::machine;
use plimsoll_page::progress::Progress;
use plimsoll_txn::pairs::Pair;
use plimsoll_workloads::{AnyWorkload, smallbank};
use serde::Serialize;

use crate::predict::model::{AccessCosts, CostModel};
use crate::predict::{Cluster, Prediction, predict};

/// Transactions in flight per shard.
pub const CONCURRENCY: usize = 8;
/// How often everything is measured.
pub const ROUNDS: u32 = 16;

/// A benchmark, and what was measured of it so far.
pub struct Bench {
    /// The name of the workload.
    pub workload: &'static str,
    /// Its protocol and scheme.
    pub pair: Pair,
    /// On so many shards of one process.
    pub shards: usize,
    /// The workload.
    load: Arc<dyn AnyWorkload>,
    /// Committed transactions per second, in the tenths of a second of all rounds.
    tenths: Vec<f64>,
    committed: u64,
    aborted: u64,
}

/// What was measured of a benchmark, for the record.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// What ran.
    pub workload: &'static str,
    /// Its protocol.
    pub protocol: &'static str,
    /// Its scheme.
    pub scheme: &'static str,
    /// Shards of one process.
    pub shards: usize,
    /// Committed transactions per second, in the tenths of a second of all rounds.
    pub tenths_tps: Vec<f64>,
}

impl Bench {
    /// A benchmark of which nothing was measured yet.
    pub fn new(load: Arc<dyn AnyWorkload>, pair: Pair, shards: usize) -> Bench {
        let workload = load.name();
        Bench { workload, pair, shards, load, tenths: Vec::new(), committed: 0, aborted: 0 }
    }

    /// Several mixes of a workload under several pairs.
    pub fn all(mixes: &[Arc<dyn AnyWorkload>], pairs: &[Pair], shards: usize) -> Vec<Bench> {
        let under = |mix: &Arc<dyn AnyWorkload>, pair| Bench::new(mix.clone(), pair, shards);
        mixes.iter().flat_map(|mix| pairs.iter().map(move |&pair| under(mix, pair))).collect()
    }

    /// Committed transactions per second, measured.
    pub fn tps(&self) -> f64 {
        let mut tenths = self.tenths.clone();
        tenths.sort_by(|one, other| other.total_cmp(one));
        tenths.truncate(tenths.len().div_ceil(4));
        tenths.iter().sum::<f64>() / tenths.len() as f64
    }

    /// All of it, for the record.
    pub fn measured(&self) -> Measured {
        Measured {
            workload: self.workload,
            protocol: self.pair.protocol.name(),
            scheme: self.pair.scheme.name(),
            shards: self.shards,
            tenths_tps: self.tenths.clone(),
        }
    }

    /// Aborted attempts per attempt, measured.
    pub fn aborts(&self) -> f64 {
        self.aborted as f64 / (self.aborted + self.committed).max(1) as f64
    }

    /// The same in a world with these prices, until so many transactions have committed.
    pub fn count(
        &self,
        model: &CostModel,
        access: AccessCosts,
        transactions: u64,
        interrupted: &AtomicBool,
    ) -> Prediction {
        let cluster = Cluster {
            nodes: 1,
            shards_per_node: self.shards,
            oracle_inside: true,
            threads: Some(machine::cores()),
            concurrency: CONCURRENCY,
            protocol: self.pair.protocol.name(),
            scheme: self.pair.scheme.name(),
            oracle: Default::default(),
            awaits_report: false,
            transactions,
            doublings: 0,
            seed: 1,
        };
        predict(&cluster, model, access, &self.load, &|| interrupted.load(Relaxed))
    }

    fn measure(&mut self, duration: Duration, interrupted: &AtomicBool) -> std::io::Result<()> {
        let plan = plan(self.pair, self.shards, duration);
        let side = Side { pair: self.pair, durability: None };
        let run = run::run(&self.load, &plan, side, 1, Progress::Silent, interrupted);
        let run = run.map_err(std::io::Error::other)?;
        self.committed += run.committed;
        self.aborted += run.transactions.iter().map(|(_, kind)| kind.aborted - kind.aborts.user).sum::<u64>();
        match run.timeline.throughput_tps.len() {
            0 => self.tenths.push(run.throughput_tps),
            _ => self.tenths.extend(run.timeline.throughput_tps),
        }
        Ok(())
    }
}

/// Measures them all, each for so long in all its rounds together.
pub fn measure(
    benches: &mut [&mut Bench],
    time: Duration,
    progress: Progress,
    interrupted: &AtomicBool,
) -> std::io::Result<()> {
    let mut line = progress.line("measuring", u64::from(ROUNDS) * benches.len() as u64);
    let mut done = 0;
    for round in 1..=ROUNDS {
        for bench in &mut *benches {
            line.show(done, || {
                let Bench { workload, pair, shards, .. } = bench;
                let (protocol, scheme) = (pair.protocol.name(), pair.scheme.name());
                format!("round {round}/{ROUNDS} · {workload} {protocol}/{scheme}, shards: {shards}")
            });
            bench.measure(time / ROUNDS, interrupted)?;
            if interrupted.load(Relaxed) {
                return Err(std::io::Error::other("interrupted"));
            }
            done += 1;
        }
    }
    Ok(())
}

/// A benchmark without checks on the way.
fn plan(pair: Pair, shards: usize, duration: Duration) -> BenchPlan {
    BenchPlan {
        // Of the workload's flags only a report tells, and there is none.
        scale: Arc::new(smallbank::Parameters::new(shards as u64, 0)),
        pairs: vec![pair],
        lock_policy: LockPolicy::WaitDie,
        one_round: false,
        staleness: Duration::ZERO,
        oracle: OraclePlan { batch: true, compress: true, prefetch: false },
        rc_single_version: false,
        shards,
        processes: None,
        cluster: None,
        data_dir: None,
        kept: plimsoll_engine::Durability::Sync,
        durabilities: Vec::new(),
        replay_raw: false,
        fill: false,
        loads: Vec::new(),
        concurrency: CONCURRENCY,
        coordinators: shards,
        memory: None,
        rate: None,
        warmup: duration / 3,
        duration,
        runs: 1,
        seed: 1,
        check: false,
        check_online_per_second: 0,
        json: JsonOutput::None,
        report: None,
        quiet: true,
    }
}
