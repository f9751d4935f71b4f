//! `plimsoll calibrate`: what things cost on this machine.
//!
//! 1. The executor alone: passes, polls, messages (`executor`), and sockets (`loopback`).
//! 2. Workloads on one shard, all data local, under none, rc and dst: each at several mixes of its transactions.
//!    How much of which work a transaction does, a world counts that runs the same; how long it takes, the benchmark
//!    measures; what the work costs follows (`fit`). Then, the same way, what messages and coordination cost: distributed
//!    microbenchmarks on two shards under rc.
//! 3. The proof: every protocol under every scheme on one shard and on two, predicted and measured anew. What step 2 has
//!    learned from is among it: none, rc and dst on one shard, and micro under rc on two. Errors are printed.
//!
//! What disturbs a machine only slows it, for minutes at a time. So everything is measured in several rounds, in turns,
//! and what counts is the best: of a benchmark the upper tenth of its tenths of a second.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_sim::scale::model::{AccessCosts, CostModel, Done, KINDS_MAX, VERSION};
use plimsoll_sim::scale::{Cluster, Prediction, predict};
use plimsoll_txn::timestamps::{Gts, Vts};
use plimsoll_workloads::Workload;
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};
use serde::Serialize;

use super::fit::{Measurement, fit};

use super::{executor, loopback, oracle};
use crate::cli::plan::{BenchPlan, JsonOutput, OraclePlan, Pair, SmallBankPlan, WorkloadPlan};
use crate::cli::{LockPolicy, Protocol, Scheme};
use crate::dispatch;
use crate::machine;
use crate::report::progress::Progress;

/// Transactions in flight per shard.
const CONCURRENCY: usize = 8;
/// What a network card needs for a batch, in nanoseconds. There is none to measure in one machine: ten million a second.
const FRAME_NS: f64 = 100.0;
/// How often everything is measured, in turns.
const ROUNDS: u32 = 4;
/// Transactions of a world that only counts.
const COUNTED: u64 = 30_000;

/// Predicted and measured.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// What ran.
    pub workload: &'static str,
    /// Its protocol.
    pub protocol: &'static str,
    /// Its scheme.
    pub scheme: &'static str,
    /// Shards of one process.
    pub shards: usize,
    /// Committed transactions per second, predicted.
    pub predicted_tps: f64,
    /// And measured.
    pub measured_tps: f64,
    /// Aborted attempts per attempt, predicted.
    pub predicted_aborts: f64,
    /// And measured.
    pub measured_aborts: f64,
}

impl Proof {
    /// By how much of the measured value the predicted one is off.
    pub fn error(&self) -> f64 {
        self.predicted_tps / self.measured_tps - 1.0
    }
}

/// Measures, and holds what it does against the interruption.
pub struct Calibration<'a> {
    /// How long each measurement takes.
    pub time: Duration,
    /// Where progress goes.
    pub progress: Progress,
    /// Ends it.
    pub interrupted: &'a AtomicBool,
}

/// The pairs that step 2 learns from.
const LEARNED: [Pair; 6] = {
    const fn pair(protocol: Protocol, scheme: Scheme) -> Pair {
        Pair { protocol, scheme }
    }
    [
        pair(Protocol::Occ, Scheme::None),
        pair(Protocol::Occ, Scheme::Rc),
        pair(Protocol::Occ, Scheme::Dst),
        pair(Protocol::TwoPl, Scheme::None),
        pair(Protocol::TwoPl, Scheme::Rc),
        pair(Protocol::TwoPl, Scheme::Dst),
    ]
};

impl Calibration<'_> {
    /// Steps 1 and 2.
    pub fn model(&self) -> std::io::Result<CostModel> {
        self.progress.note("what the executor and sockets cost");
        let executor = executor::measure(self.time, ROUNDS)?;
        let loopback = loopback::loopback(self.time, ROUNDS)?;
        let about = machine::describe();
        let mut model = CostModel {
            version: VERSION,
            machine: format!("{}, {} cores", about.cpu, about.cores),
            source: format!(
                "plimsoll calibrate, commit {}, {}; the network is the loopback interface, frame_ns is assumed",
                machine::COMMIT,
                machine::utc_now()
            ),
            shards_per_node: 1,
            concurrency: CONCURRENCY as u32,
            pass_ns: executor.pass_ns,
            poll_ns: executor.poll_ns,
            message_ns: executor.message_ns,
            batch_ns: executor.batch_ns,
            remote_batch_ns: loopback.batch_ns,
            coordinated_ns: 500.0,
            gts: oracle::measure::<Gts>(self.time / 4, &executor),
            vts: oracle::measure::<Vts>(self.time / 4, &executor),
            local_ns: executor.local_ns as u64,
            wake_ns: 2 * loopback.latency_ns as u64,
            latency_ns: loopback.latency_ns as u64,
            jitter_ns: loopback.latency_ns as u64 / 4,
            frame_ns: FRAME_NS,
            gigabits_per_s: loopback.gigabits_per_s,
            access: Default::default(),
        };
        let tpcc = self.learn(&model, &tpcc_mixes())?;
        model.access.insert("tpcc".to_owned(), tpcc);
        let smallbank = self.learn(&model, &smallbank_mixes())?;
        model.access.insert("smallbank".to_owned(), smallbank);
        let micro = self.learn(&model, &micro_mixes())?;
        model.access.insert("micro".to_owned(), micro);
        if machine::cores() > 1 {
            self.learn_coordination(&mut model)?;
        }
        Ok(model)
    }

    /// What accesses cost, from mixes of one workload's transactions.
    fn learn<W: Workload>(&self, model: &CostModel, mixes: &[W]) -> std::io::Result<AccessCosts> {
        let guess = AccessCosts {
            attempt_ns: [100.0; KINDS_MAX],
            lookup_ns: 50.0,
            scanned_ns: 20.0,
            link_ns: 100.0,
            install_ns: 50.0,
            mark_ns: 5.0,
        };
        // One price for the attempts of all types, unless there are enough mixes to tell them apart.
        self.progress.note(format!("what {} costs: {} measurements", W::NAME, mixes.len() * LEARNED.len()));
        let kinds = if mixes.len() > W::KINDS.len() { W::KINDS.len() } else { 1 };
        let runs: Vec<_> = mixes.iter().flat_map(|mix| LEARNED.map(|pair| (mix, pair))).collect();
        let measured = self.measure(&runs, 1)?;
        let mut measurements = Vec::new();
        for ((mix, pair), (measured_tps, _)) in runs.into_iter().zip(measured) {
            let counted = self.count(mix, pair, 1, model, guess, COUNTED);
            let done = counted.done.share(counted.committed.max(1) as f64);
            let executor = model.price(&AccessCosts::default(), &Default::default(), &done);
            let mut amounts = vec![done.lookups, done.scanned, done.links, done.installs, done.marks];
            match kinds {
                1 => amounts.push(done.attempts.iter().sum()),
                _ => amounts.extend(&done.attempts[..kinds]),
            }
            let nanoseconds = (1e9 / measured_tps - executor).max(1.0);
            measurements.push(Measurement { amounts, nanoseconds });
        }
        let mut first =
            vec![guess.lookup_ns, guess.scanned_ns, guess.link_ns, guess.install_ns, guess.mark_ns];
        first.extend(&guess.attempt_ns[..kinds]);
        let mut prices = fit(&measurements, &first);
        // What a workload never does has no price; the guess would look like one.
        for (number, price) in prices.iter_mut().enumerate() {
            if measurements.iter().all(|measurement| measurement.amounts[number] == 0.0) {
                *price = 0.0;
            }
        }
        let [lookup_ns, scanned_ns, link_ns, install_ns, mark_ns, ref attempts @ ..] = prices[..] else {
            unreachable!("there are as many prices as amounts")
        };
        let attempt_ns =
            std::array::from_fn(
                |kind| if kinds == 1 { attempts[0] } else { *attempts.get(kind).unwrap_or(&0.0) },
            );
        Ok(AccessCosts { attempt_ns, lookup_ns, scanned_ns, link_ns, install_ns, mark_ns })
    }

    /// What it costs to coordinate and to carry messages, from distributed transactions on two shards: what the prices
    /// so far do not explain.
    fn learn_coordination(&self, model: &mut CostModel) -> std::io::Result<()> {
        let access = model.access["micro"];
        self.progress.note("what distributed transactions cost: 6 measurements");
        let guess = [model.coordinated_ns, 2.0 * model.message_ns];
        let mixes = [2.0, 10.0, 50.0].map(|distributed_pct| {
            let parameters = micro::Parameters { distributed_pct, ..micro::Parameters::new(2) };
            Micro::new(parameters).expect("these parameters are possible")
        });
        let pairs = [Protocol::Occ, Protocol::TwoPl].map(|protocol| Pair { protocol, scheme: Scheme::Rc });
        let runs: Vec<_> = mixes.iter().flat_map(|mix| pairs.map(|pair| (mix, pair))).collect();
        let measured = self.measure(&runs, 2)?;
        // Counts depend on timing a little, timing on the prices: the second time counts with the prices of the first.
        for _ in 0..2 {
            let mut measurements = Vec::new();
            for ((mix, pair), (tps, _)) in runs.iter().zip(&measured) {
                let counted = self.count(*mix, *pair, 2, model, access, COUNTED);
                let done = counted.done.share(counted.committed.max(1) as f64);
                let others = Done { coordinated: 0.0, messages: 0.0, ..done };
                let explained = model.price(&access, &Default::default(), &others);
                measurements.push(Measurement {
                    amounts: vec![done.coordinated, done.messages],
                    nanoseconds: (2e9 / tps - explained).max(1.0),
                });
            }
            [model.coordinated_ns, model.message_ns] =
                fit(&measurements, &guess)[..].try_into().expect("two prices");
        }
        Ok(())
    }

    /// Step 3.
    pub fn proofs(&self, model: &CostModel, shards: usize) -> std::io::Result<Vec<Proof>> {
        let mut proofs = Vec::new();
        let parameters = tpcc::Parameters::new(shards as u32);
        self.prove(model, &Tpcc::new(parameters).expect("possible"), shards, &mut proofs)?;
        let parameters = smallbank::Parameters::new(shards as u64, 100_000);
        self.prove(model, &SmallBank::new(parameters).expect("possible"), shards, &mut proofs)?;
        let parameters = micro::Parameters::new(shards as u64);
        let parameters =
            micro::Parameters { distributed_pct: if shards > 1 { 10.0 } else { 0.0 }, ..parameters };
        self.prove(model, &Micro::new(parameters).expect("possible"), shards, &mut proofs)?;
        Ok(proofs)
    }

    fn prove<W: Workload>(
        &self,
        model: &CostModel,
        workload: &W,
        shards: usize,
        proofs: &mut Vec<Proof>,
    ) -> std::io::Result<()> {
        self.progress.note(format!("predicting and measuring {}, shards: {shards}", W::NAME));
        let schemes = [Scheme::None, Scheme::Rc, Scheme::Dst, Scheme::Gts, Scheme::Vts];
        let pairs =
            [Protocol::Occ, Protocol::TwoPl].map(|protocol| schemes.map(|scheme| Pair { protocol, scheme }));
        let runs: Vec<_> = pairs.concat().into_iter().map(|pair| (workload, pair)).collect();
        let measured = match self.measure(&runs, shards) {
            Err(_) if self.interrupted.load(Relaxed) => return Ok(()),
            measured => measured?,
        };
        for ((_, pair), (measured_tps, measured_aborts)) in runs.into_iter().zip(measured) {
            let predicted = self.count(workload, pair, shards, model, model.access[W::NAME], 4 * COUNTED);
            if self.interrupted.load(Relaxed) {
                return Ok(());
            }
            proofs.push(Proof {
                workload: W::NAME,
                protocol: pair.protocol.name(),
                scheme: pair.scheme.name(),
                shards,
                predicted_tps: predicted.throughput(),
                measured_tps,
                predicted_aborts: predicted.abort_rate(),
                measured_aborts,
            });
        }
        Ok(())
    }

    /// Of each run: committed transactions per second, and the share of attempts that aborted.
    fn measure<W: Workload>(&self, runs: &[(&W, Pair)], shards: usize) -> std::io::Result<Vec<(f64, f64)>> {
        let mut measured = vec![(Vec::new(), 0, 0); runs.len()];
        for _ in 0..ROUNDS {
            for (&(workload, pair), (intervals, committed, aborts)) in runs.iter().zip(&mut measured) {
                let plan = bench_plan(pair, shards, self.time / ROUNDS);
                let run = dispatch::run_pair(workload, &plan, pair, 1, self.progress, self.interrupted)
                    .map_err(std::io::Error::other)?;
                if self.interrupted.load(Relaxed) {
                    return Err(std::io::Error::other("interrupted"));
                }
                *committed += run.committed;
                *aborts +=
                    run.transactions.iter().map(|(_, kind)| kind.aborted - kind.aborts.user).sum::<u64>();
                match run.timeline.throughput_tps.len() {
                    0 => intervals.push(run.throughput_tps),
                    _ => intervals.extend(run.timeline.throughput_tps),
                }
            }
        }
        let summary = |(mut intervals, committed, aborts): (Vec<f64>, u64, u64)| {
            intervals.sort_by(f64::total_cmp);
            (intervals[intervals.len() * 9 / 10], aborts as f64 / (aborts + committed).max(1) as f64)
        };
        Ok(measured.into_iter().map(summary).collect())
    }

    /// The same in a world.
    fn count<W: Workload>(
        &self,
        workload: &W,
        pair: Pair,
        shards: usize,
        model: &CostModel,
        access: AccessCosts,
        transactions: u64,
    ) -> Prediction {
        let cluster = Cluster {
            nodes: 1,
            shards_per_node: shards,
            oracle_inside: true,
            cores: Some(machine::cores()),
            concurrency: CONCURRENCY,
            protocol: pair.protocol.name(),
            scheme: pair.scheme.name(),
            oracle: Default::default(),
            transactions,
            seed: 1,
        };
        predict(&cluster, model, access, workload, &|| self.interrupted.load(Relaxed))
    }
}

/// Mixes that tell lookups, scans, inserts and updates apart. The standard mix counts twice: it is what people run.
fn tpcc_mixes() -> Vec<Tpcc> {
    let mixes = [
        [45, 43, 4, 4, 4],
        [45, 43, 4, 4, 4],
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [10, 0, 0, 1, 0],
    ];
    let with = |mix| Tpcc::new(tpcc::Parameters { mix, ..tpcc::Parameters::new(1) });
    mixes.into_iter().map(|mix| with(mix).expect("these parameters are possible")).collect()
}

fn smallbank_mixes() -> Vec<SmallBank> {
    let with = |closed| smallbank::Parameters { closed, ..smallbank::Parameters::new(1, 100_000) };
    [false, true].map(|closed| SmallBank::new(with(closed)).expect("these parameters are possible")).into()
}

fn micro_mixes() -> Vec<Micro> {
    let shares = [(50.0, 50.0), (0.0, 0.0), (0.0, 50.0), (0.0, 100.0), (100.0, 0.0)];
    let with = |(read_only_pct, read_share_pct)| micro::Parameters {
        read_only_pct,
        read_share_pct,
        distributed_pct: 0.0,
        ..micro::Parameters::new(1)
    };
    shares.map(|share| Micro::new(with(share)).expect("these parameters are possible")).into()
}

/// A benchmark without checks on the way.
fn bench_plan(pair: Pair, shards: usize, duration: Duration) -> BenchPlan {
    BenchPlan {
        workload: WorkloadPlan::SmallBank(SmallBankPlan { accounts_per_shard: 0, distributed_percent: 0.0 }),
        pairs: vec![pair],
        lock_policy: LockPolicy::WaitDie,
        staleness: Duration::ZERO,
        oracle: OraclePlan { batch: true, compress: true, prefetch: false },
        rc_single_version: false,
        shards,
        processes: None,
        cluster: None,
        concurrency: CONCURRENCY,
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
