//! `plimsoll bench`: load, run, check, report.
//!
//! Each shard runs a number of clients, tasks in a closed loop: draw a transaction, attempt it until it commits
//! or its own logic gives it up, with the same inputs, then the next. Throughput is what is committed between
//! the end of the warm-up and the end of the run. Latency is from the first attempt to the answer, for every
//! transaction. Sums and counts for the invariants go on from the load to the very end.
//!
//! A comparison runs its pairs one after the other, A B C A B C, each on a freshly loaded database, and takes
//! ratios within a repetition.

mod checks;
mod client;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use plimsoll::engine::{Engine, EngineOptions};
use plimsoll_runtime::Env;
use plimsoll_txn::protocol::{LockPolicy as Policy, Protocol, ProtocolOptions};
use plimsoll_txn::timestamp::{OracleOptions, Scheme};
use plimsoll_types::{Abort, ShardId};
use plimsoll_workloads::Workload;
use quanta::Clock;

use crate::cli::LockPolicy;
use crate::cli::plan::{BenchPlan, Pair};
use crate::machine;
use crate::report::model::{
    Aborts, CheckerFigures, Latency, Load, Run, TableSize, Timeline, TransactionType,
};
use crate::report::progress::{LoadSample, Progress, RunSample};
use client::{Counts, Finished};

/// How often progress and the timeline are sampled.
const SAMPLE: Duration = Duration::from_millis(100);
/// With `--check`, a run ends early when so many transactions are recorded: about what fits into memory.
const RECORDED_MAX: u64 = 2_000_000;

/// What clients and the main thread share.
pub struct Control {
    phase: AtomicU8,
    /// Per shard: committed, aborted attempts.
    live: Vec<(AtomicU64, AtomicU64)>,
    clock: Clock,
    /// What transactions are ordered by; the moments of recorded answers are read off it.
    shards_clock: plimsoll_runtime::real::Clock,
}

/// A run's phases, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Nothing counts but the sums.
    WarmUp,
    /// Everything counts.
    Measure,
    /// Clients end their transactions.
    Stop,
}

impl Control {
    fn set(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// The present phase.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measure,
            _ => Phase::Stop,
        }
    }

    fn sum(&self, of: impl Fn(&(AtomicU64, AtomicU64)) -> &AtomicU64) -> u64 {
        self.live.iter().map(|shard| of(shard).load(Relaxed)).sum()
    }
}

/// Runs a workload under one pair, on a database of its own.
pub fn run<P: Protocol, W: Workload>(
    workload: &W,
    plan: &BenchPlan,
    pair: Pair,
    repetition: u32,
    progress: Progress,
    interrupted: &AtomicBool,
) -> std::io::Result<Run> {
    let clock = Clock::new();
    let options = EngineOptions {
        shards: plan.shards,
        seed: plan.seed,
        pin: plan.shards <= machine::cores(),
        protocol: ProtocolOptions {
            lock_policy: match plan.lock_policy {
                LockPolicy::WaitDie => Policy::WaitDie,
                LockPolicy::WoundWait => Policy::WoundWait,
                LockPolicy::NoWait => Policy::NoWait,
            },
        },
        oracle: OracleOptions {
            batch: plan.oracle.batch,
            compress: plan.oracle.compress,
            prefetch: plan.oracle.prefetch,
        },
        single_version: plan.rc_single_version,
        max_staleness_ns: plan.staleness.as_nanos() as u64,
        record: plan.check,
    };
    let engine = Engine::<P>::start(workload.tables(), options)?;
    let mut run = Run {
        workload: W::NAME.to_owned(),
        protocol: P::NAME.to_owned(),
        scheme: P::Scheme::NAME.to_owned(),
        serializable: P::Scheme::SERIALIZABLE,
        config: plan.config(pair),
        repetition,
        ..Run::default()
    };
    run.load = load(workload, &engine, &clock, progress, &pair.to_string());
    let control = Arc::new(Control {
        phase: AtomicU8::new(Phase::WarmUp as u8),
        live: (0..plan.shards).map(|_| Default::default()).collect(),
        clock: clock.clone(),
        shards_clock: engine.runtime().clock(),
    });

    // Clients.
    let (done, finished) = mpsc::channel::<Finished>();
    for shard in engine.shards() {
        client::start(&engine, shard, workload, plan, &control, done.clone());
    }
    drop(done);
    let online = (plan.check_online_per_second > 0)
        .then(|| checks::start_online(&engine, workload, &control, plan.check_online_per_second));

    // Warm-up and measurement.
    let line = progress.run(format!("{} {pair}", W::NAME), plan.warmup + plan.duration);
    let started = clock.raw();
    let elapsed = || clock.delta(started, clock.raw());
    let mut line = line;
    let mut sample = |warm: bool| {
        let sample = RunSample {
            elapsed: elapsed(),
            committed: control.sum(|shard| &shard.0),
            aborted: control.sum(|shard| &shard.1),
            memory_bytes: machine::resident_bytes(),
        };
        line.running(sample, warm);
        sample
    };
    while elapsed() < plan.warmup && !interrupted.load(Relaxed) {
        std::thread::sleep(SAMPLE.min(plan.warmup.saturating_sub(elapsed())));
        sample(false);
    }
    let before: Vec<_> = engine.shards().map(|shard| engine.counters(shard)).collect();
    let cpu = machine::process_cpu_seconds();
    let measured = clock.raw();
    control.set(Phase::Measure);
    let mut timeline = Timeline { interval_seconds: SAMPLE.as_secs_f64(), throughput_tps: Vec::new() };
    let mut last = (control.sum(|shard| &shard.0), clock.raw());
    loop {
        let over = clock.delta(measured, clock.raw());
        if over >= plan.duration || interrupted.load(Relaxed) {
            break;
        }
        std::thread::sleep(SAMPLE.min(plan.duration - over));
        let committed = sample(true).committed;
        let now = clock.raw();
        let seconds = clock.delta(last.1, now).as_secs_f64();
        timeline.throughput_tps.push((committed - last.0) as f64 / seconds);
        last = (committed, now);
        if plan.check && committed > RECORDED_MAX {
            progress.note("enough transactions are recorded for the checker; the run ends early");
            break;
        }
    }
    control.set(Phase::Stop);
    run.seconds = clock.delta(measured, clock.raw()).as_secs_f64();
    run.cpu_seconds = machine::process_cpu_seconds() - cpu;
    run.interrupted = interrupted.load(Relaxed);
    run.timeline = timeline;
    line.busy("finishing transactions");
    let finished: Vec<Finished> = finished.iter().collect();
    let online = online.map(|receiver| receiver.recv().expect("the online check ends with the run"));

    // Figures.
    let after: Vec<_> = engine.shards().map(|shard| engine.counters(shard)).collect();
    let grown = |of: &dyn Fn(&(plimsoll_txn::base::Counters, u64)) -> u64| -> u64 {
        before.iter().zip(&after).map(|(before, after)| of(after) - of(before)).sum()
    };
    run.read_only_waits = grown(&|(counters, _)| counters.read_only_waits);
    run.read_only_restarts = grown(&|(counters, _)| counters.read_only_restarts);
    run.oracle_messages = grown(&|(counters, _)| counters.oracle_messages);
    let messages = grown(&|(_, messages)| *messages);
    fill(&mut run, W::KINDS, &finished, messages);
    run.fill_rates(plan.shards.min(machine::cores()));
    for (spec, memory) in engine.layout().tables.iter().zip(engine.memory()) {
        run.tables.push(&spec.name, TableSize { rows: memory.rows as u64, bytes: memory.bytes as u64 });
        run.memory_bytes += memory.bytes as u64;
    }

    // Checks.
    line.busy("checking invariants");
    run.checks = checks::invariants(&engine, workload, &finished);
    run.checks.extend(online.into_iter().flatten());
    if plan.check {
        line.busy("checking the history");
        let begun = clock.raw();
        let (check, transactions, dependencies) = checks::history(&engine, finished);
        let seconds = clock.delta(begun, clock.raw()).as_secs_f64();
        run.checker = Some(CheckerFigures { transactions, dependencies, seconds });
        run.checks.push(check);
    }
    drop(line);
    Ok(run)
}

/// Loads all units, those of different shards in parallel.
fn load<P: Protocol, W: Workload>(
    workload: &W,
    engine: &Engine<P>,
    clock: &Clock,
    progress: Progress,
    title: &str,
) -> Load {
    let begun = clock.raw();
    let units: Vec<usize> = (0..workload.units()).collect();
    let (rows, loaded) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (done, finished) = mpsc::channel::<()>();
    let mut total = 0;
    for shard in engine.shards() {
        let placement = engine.layout().placement.clone();
        let mine: Vec<usize> = (units.iter().copied())
            .filter(|&unit| workload.unit_slot(unit).is_none_or(|slot| placement.shard(slot) == shard))
            .collect();
        total += mine.len() as u64;
        let (workload, rows, loaded, done) = (workload.clone(), rows.clone(), loaded.clone(), done.clone());
        engine.runtime().spawn_on(shard, move |env| async move {
            for unit in mine {
                env.local(|node| {
                    let store = &mut node.base().store;
                    let counts = workload.unit_slot(unit).is_some() || shard == ShardId(0);
                    workload.load(unit, &mut |table, key, values| {
                        store.load(table, &key, values);
                        rows.fetch_add(u64::from(counts), Relaxed);
                    });
                });
                loaded.fetch_add(1, Relaxed);
                env.pause().await;
            }
            drop(done);
        });
    }
    drop(done);
    let mut line = progress.load(format!("loading {} for {title}", W::NAME), total);
    while let Err(mpsc::RecvTimeoutError::Timeout) = finished.recv_timeout(SAMPLE) {
        line.loading(LoadSample {
            elapsed: clock.delta(begun, clock.raw()),
            units: loaded.load(Relaxed),
            rows: rows.load(Relaxed),
            memory_bytes: machine::resident_bytes(),
        });
    }
    drop(line);
    let seconds = clock.delta(begun, clock.raw()).as_secs_f64();
    let memory_bytes = engine.memory().iter().map(|table| table.bytes as u64).sum();
    Load { seconds, rows: rows.load(Relaxed), memory_bytes }
}

/// What the clients counted while it counted.
fn fill(run: &mut Run, kinds: &[plimsoll_workloads::Kind], finished: &[Finished], messages: u64) {
    let (mut distributed, mut all) = (0, [0; Abort::ALL.len()]);
    for (kind, declared) in kinds.iter().enumerate() {
        let mut sum = Counts::default();
        for shard in finished {
            sum.add(&shard.counts[kind]);
        }
        run.committed += sum.committed;
        distributed += sum.distributed;
        all.iter_mut().zip(sum.aborts).for_each(|(all, aborts)| *all += aborts);
        let aborted: u64 = sum.aborts.iter().sum();
        if declared.read_only {
            run.read_only_aborts += aborted - sum.aborts[Abort::User.index()];
        }
        run.transactions.push(
            declared.name,
            TransactionType {
                committed: sum.committed,
                aborted,
                aborts: Aborts::from_counts(sum.aborts),
                read_only: declared.read_only,
                distributed_share: sum.distributed as f64 / sum.committed.max(1) as f64,
                mean_keys_read: None,
                mean_keys_written: Some(sum.written as f64 / sum.committed.max(1) as f64),
                latency_us: Latency::from_nanoseconds(&sum.latency),
            },
        );
    }
    run.aborts = Aborts::from_counts(all);
    run.distributed_share = distributed as f64 / run.committed.max(1) as f64;
    run.messages_per_transaction = messages as f64 / run.committed.max(1) as f64;
}
