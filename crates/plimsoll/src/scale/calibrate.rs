//! `plimsoll calibrate`: what things cost on this machine.
//!
//! 1. The executor alone: passes, polls, messages (`executor`), and sockets (`loopback`).
//! 2. Workloads on one shard, all data local, under none, rc and dst: each at several mixes of its transactions.
//!    How much of which work a transaction does, a world counts that runs the same; how long it takes, the benchmark
//!    measures; what the work costs follows (`fit`). What two cores cost each other is how much less than twice as fast two
//!    shards are that have nothing to do with each other. Then, the same way as before, what messages, coordination, locks,
//!    validation and executions in vain cost, and what an oracle's scheme adds: distributed transactions on two shards, of TPC-C and SmallBank
//!    more of them than usual, and all workloads on one shard under gts and vts. What a message costs the oracle shows on two
//!    shards, where it shares a thread with one of them, unless there are more cores.
//! 3. The proof: every protocol under every scheme on one shard and on two, predicted and measured anew. What step 2 has
//!    learned from is among it: everything on one shard, and micro under none, rc and dst on two. Errors are printed.
//!
//! What disturbs a machine only slows it, for a second or for minutes. So everything is measured in several rounds, in turns,
//! and what counts is the best: of a benchmark the upper tenth of its tenths of a second.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_page::progress::Progress;
use plimsoll_sim::scale::model::{AccessCosts, CostModel, Done, KINDS_MAX, OracleCosts, VERSION};
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

/// Transactions in flight per shard.
const CONCURRENCY: usize = 8;
/// What a network card needs for a batch, in nanoseconds. There is none to measure in one machine: ten million a second.
const FRAME_NS: f64 = 100.0;
/// How often everything is measured, in turns.
const ROUNDS: u32 = 12;
/// So often prices are learned from counts that depend on them.
const REFINED: u32 = 4;
/// So many other mixes the first of a workload outweighs: it is what people run.
const STANDARD: usize = 8;
/// What is learned.
const WORKLOADS: [&str; 3] = [Tpcc::NAME, SmallBank::NAME, Micro::NAME];
/// First guesses at what it costs to coordinate an attempt, and to execute something in vain, in nanoseconds.
const COORDINATED_NS: f64 = 500.0;
const VAIN_NS: f64 = 200.0;
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

/// A benchmark whose transactions are coordinated, measured.
struct CoordinatedRun {
    workload: &'static str,
    scheme: Scheme,
    shards: usize,
    tps: f64,
    count: Box<Count>,
}

/// Counts what a run does, in a world with these prices.
type Count = dyn Fn(&Calibration<'_>, &CostModel) -> Prediction;

impl CoordinatedRun {
    /// What is left to explain of a transaction's time: cores that wait for messages are not at work.
    fn measurement(&self, calibration: &Calibration<'_>, model: &CostModel) -> Measurement {
        let counted = (self.count)(calibration, model);
        let done = counted.done.share(counted.committed.max(1) as f64);
        let others = Done {
            messages: 0.0,
            handled: 0.0,
            coordinated: 0.0,
            vain: 0.0,
            locks: 0.0,
            validated: 0.0,
            reports: 0.0,
            ..done
        };
        let access = &model.access[self.workload];
        let under = |scheme, amount| if self.scheme == scheme { amount } else { 0.0 };
        let own = |amount| WORKLOADS.map(|workload| if workload == self.workload { amount } else { 0.0 });
        let accesses = done.lookups + done.scanned + done.installs;
        let crowded = if self.shards > 1 { access.crowded } else { 1.0 };
        // An oracle that shares a thread with a shard takes its time from transactions.
        let (oracle, oracle_busy) = match self.shards < machine::cores() {
            true => (Done::default(), 0.0),
            false => (counted.oracle.share(counted.committed.max(1) as f64), counted.oracle_busy),
        };
        let busy = (counted.busy.min(1.0) * self.shards as f64 + oracle_busy).min(machine::cores() as f64);
        let of_ns = busy * 1e9 / self.tps / crowded;
        let oracle_costs = OracleCosts { message_ns: 0.0, ..model.oracle(self.scheme.name()) };
        Measurement {
            amounts: [
                done.messages,
                done.handled,
                done.locks,
                done.validated,
                under(Scheme::Gts, done.reports),
                under(Scheme::Gts, accesses),
                under(Scheme::Gts, oracle.messages),
                under(Scheme::Vts, done.reports),
                under(Scheme::Vts, accesses),
                under(Scheme::Vts, oracle.messages),
            ]
            .into_iter()
            .chain(own(done.coordinated))
            .chain(own(done.vain))
            .collect(),
            nanoseconds: of_ns
                - model.price(access, &OracleCosts::default(), &others)
                - model.oracle_price(&oracle_costs, &oracle),
            of_ns,
        }
    }
}

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
            handled_ns: 0.0,
            batch_ns: executor.batch_ns,
            remote_batch_ns: loopback.batch_ns,
            lock_ns: 0.0,
            validated_ns: 0.0,
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
            let [one, two] = [1, 2].map(|warehouses| {
                let all = tpcc::Parameters::new(warehouses);
                Tpcc::new(tpcc::Parameters { remote_item_pct: 0.0, remote_payment_pct: 0.0, ..all })
            });
            self.learn_crowding(&mut model, one.expect("possible"), two.expect("possible"))?;
            let [one, two] = [1, 2].map(|shards| {
                let all = smallbank::Parameters::new(shards, 100_000);
                SmallBank::new(smallbank::Parameters { distributed_pct: 0.0, ..all }).expect("possible")
            });
            self.learn_crowding(&mut model, one, two)?;
            let [one, two] = [1, 2].map(|shards| {
                let all = micro::Parameters::new(shards);
                Micro::new(micro::Parameters { distributed_pct: 0.0, ..all }).expect("possible")
            });
            self.learn_crowding(&mut model, one, two)?;
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
            kept_ns: 30.0,
            mark_ns: 5.0,
            pin_ns: 10.0,
            coordinated_ns: COORDINATED_NS,
            vain_ns: VAIN_NS,
            crowded: 1.0,
        };
        // One price for the attempts of all types, unless there are enough mixes to tell them apart.
        self.progress.note(&format!("what {} costs: {} measurements", W::NAME, mixes.len() * LEARNED.len()));
        let kinds = if mixes.len() > W::KINDS.len() { W::KINDS.len() } else { 1 };
        let runs: Vec<_> = mixes.iter().flat_map(|mix| LEARNED.map(|pair| (mix, pair))).collect();
        let measured = self.measure(&runs, 1)?;
        let mut measurements = Vec::new();
        for (number, ((mix, pair), (measured_tps, _))) in runs.into_iter().zip(measured).enumerate() {
            let counted = self.count(mix, pair, 1, model, guess, COUNTED);
            let done = counted.done.share(counted.committed.max(1) as f64);
            let executor = model.price(&AccessCosts::default(), &Default::default(), &done);
            let Done { lookups, scanned, links, installs, kept, marks, pins, .. } = done;
            let mut amounts = vec![lookups, scanned, links, installs, kept, marks, pins];
            match kinds {
                1 => amounts.push(done.attempts.iter().sum()),
                _ => amounts.extend(&done.attempts[..kinds]),
            }
            let of_ns = 1e9 / measured_tps;
            let times = if number < LEARNED.len() { STANDARD } else { 1 };
            let measurement = Measurement { amounts, nanoseconds: of_ns - executor, of_ns };
            measurements.extend(std::iter::repeat_n(measurement, times));
        }
        let AccessCosts { lookup_ns, scanned_ns, link_ns, install_ns, kept_ns, mark_ns, pin_ns, .. } = guess;
        let mut first = vec![lookup_ns, scanned_ns, link_ns, install_ns, kept_ns, mark_ns, pin_ns];
        first.extend(&guess.attempt_ns[..kinds]);
        let prices = fit(&measurements, &first);
        let [lookup_ns, scanned_ns, link_ns, install_ns, kept_ns, mark_ns, pin_ns, ref attempts @ ..] =
            prices[..]
        else {
            unreachable!("there are as many prices as amounts")
        };
        let attempt_ns =
            std::array::from_fn(
                |kind| if kinds == 1 { attempts[0] } else { *attempts.get(kind).unwrap_or(&0.0) },
            );
        Ok(AccessCosts {
            attempt_ns,
            lookup_ns,
            scanned_ns,
            link_ns,
            install_ns,
            kept_ns,
            mark_ns,
            pin_ns,
            ..guess
        })
    }

    /// What two shards that have nothing to do with each other cost each other.
    fn learn_crowding<W: Workload>(&self, model: &mut CostModel, one: W, two: W) -> std::io::Result<()> {
        self.progress.note(&format!("what two cores cost each other under {}: 12 measurements", W::NAME));
        let alone = self.measure(&LEARNED.map(|pair| (&one, pair)), 1)?;
        let both = self.measure(&LEARNED.map(|pair| (&two, pair)), 2)?;
        let factors = alone.iter().zip(&both).map(|((one, _), (two, _))| 2.0 * one / two);
        let mean = factors.sum::<f64>() / LEARNED.len() as f64;
        model.access.get_mut(W::NAME).expect("it was learned").crowded = mean.clamp(1.0, 9.0);
        Ok(())
    }

    /// What the prices so far do not explain, of transactions that are more than one step of their shard: what it costs to
    /// coordinate, to carry messages, to lock and to validate, and what an oracle's scheme adds to each access.
    fn learn_coordination(&self, model: &mut CostModel) -> std::io::Result<()> {
        self.progress.note("what distributed transactions, locks and oracles cost: 54 measurements");
        let micro = |distributed_pct| {
            let parameters = micro::Parameters { distributed_pct, ..micro::Parameters::new(2) };
            Micro::new(parameters).expect("these parameters are possible")
        };
        let oracles = [Scheme::Gts, Scheme::Vts]
            .map(|scheme| [Protocol::Occ, Protocol::TwoPl].map(|protocol| Pair { protocol, scheme }));
        let mut runs = self.runs(&[2.0, 10.0, 50.0].map(micro), &LEARNED, 2)?;
        runs.extend(self.runs(&[micro(50.0)], oracles.as_flattened(), 2)?);
        let parameters = tpcc::Parameters { remote_item_pct: 3.0, ..tpcc::Parameters::new(2) };
        let parameters = tpcc::Parameters { remote_payment_pct: 45.0, ..parameters };
        let mixes = [Tpcc::new(parameters).expect("possible")];
        runs.extend(self.runs(&mixes, &LEARNED, 2)?);
        runs.extend(self.runs(&mixes, oracles.as_flattened(), 2)?);
        let parameters = smallbank::Parameters::new(2, 100_000);
        let parameters = smallbank::Parameters { distributed_pct: 10.0, ..parameters };
        let mixes = [SmallBank::new(parameters).expect("possible")];
        runs.extend(self.runs(&mixes, &LEARNED, 2)?);
        runs.extend(self.runs(&mixes, oracles.as_flattened(), 2)?);
        runs.extend(self.runs(&tpcc_mixes()[..1], oracles.as_flattened(), 1)?);
        runs.extend(self.runs(&smallbank_mixes()[..1], oracles.as_flattened(), 1)?);
        runs.extend(self.runs(&micro_mixes()[..1], oracles.as_flattened(), 1)?);
        let (gts_ns, vts_ns) = (model.gts.report_ns, model.vts.report_ns);
        // An oracle carries two messages, one that it receives and the answer.
        let (message_ns, oracle_ns) = (2.0 * model.message_ns, 4.0 * model.message_ns);
        let mut guess =
            [message_ns, 100.0, 50.0, 20.0, gts_ns, 5.0, oracle_ns, vts_ns, 20.0, oracle_ns].to_vec();
        guess.extend([COORDINATED_NS; WORKLOADS.len()]);
        guess.extend([VAIN_NS; WORKLOADS.len()]);
        // Counts depend on timing a little, timing on the prices: each time counts with the prices of the time before.
        for _ in 0..REFINED {
            let measurements: Vec<Measurement> =
                runs.iter().map(|run| run.measurement(self, model)).collect();
            let prices = fit(&measurements, &guess);
            let (shared, own) = prices.split_at(guess.len() - 2 * WORKLOADS.len());
            let [message_ns, handled_ns, lock_ns, validated_ns, ref oracles @ ..] = *shared else {
                unreachable!("there are as many prices as guesses")
            };
            (model.message_ns, model.handled_ns) = (message_ns, handled_ns);
            (model.lock_ns, model.validated_ns) = (lock_ns, validated_ns);
            for (costs, prices) in [&mut model.gts, &mut model.vts].into_iter().zip(oracles.chunks(3)) {
                (costs.report_ns, costs.access_ns, costs.message_ns) = (prices[0], prices[1], prices[2]);
            }
            let (coordinated, vain) = own.split_at(WORKLOADS.len());
            for (workload, (&coordinated_ns, &vain_ns)) in WORKLOADS.iter().zip(coordinated.iter().zip(vain))
            {
                let access = model.access.get_mut(*workload).expect("it was learned");
                (access.coordinated_ns, access.vain_ns) = (coordinated_ns, vain_ns);
            }
        }
        Ok(())
    }

    /// Measures so many mixes of one workload under so many pairs, and says how to count them.
    fn runs<W: Workload>(
        &self,
        mixes: &[W],
        pairs: &[Pair],
        shards: usize,
    ) -> std::io::Result<Vec<CoordinatedRun>> {
        let runs: Vec<_> = mixes.iter().flat_map(|mix| pairs.iter().map(move |&pair| (mix, pair))).collect();
        let measured = self.measure(&runs, shards)?;
        let run = |((mix, pair), (tps, _)): ((&W, Pair), (f64, f64))| {
            let mix = mix.clone();
            let count = move |calibration: &Calibration<'_>, model: &CostModel| {
                calibration.count(&mix, pair, shards, model, model.access[W::NAME], COUNTED)
            };
            CoordinatedRun { workload: W::NAME, scheme: pair.scheme, shards, tps, count: Box::new(count) }
        };
        Ok(runs.into_iter().zip(measured).map(run).collect())
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
        self.progress.note(&format!("predicting and measuring {}, shards: {shards}", W::NAME));
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
            threads: Some(machine::cores()),
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

/// Mixes that tell lookups, scans, inserts and updates apart, the standard one first.
fn tpcc_mixes() -> Vec<Tpcc> {
    let mixes = [
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
        one_round: false,
        staleness: Duration::ZERO,
        oracle: OraclePlan { batch: true, compress: true, prefetch: false },
        rc_single_version: false,
        shards,
        processes: None,
        cluster: None,
        concurrency: CONCURRENCY,
        coordinators: shards,
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
