//! `plimsoll bench`: load, run, check, report.
//!
//! Each shard runs a number of clients, tasks in a closed loop: draw a transaction, attempt it
//! until it commits or its own logic gives it up, with the same inputs, then the next. Throughput
//! is what is committed between the end of the warm-up and the end of the run. Latency is from the
//! first attempt to the answer, for every transaction. Sums and counts for the invariants go on
//! from the load to the very end.
//!
//! A run is led from here and carried out by *sites* (`site.rs`): one in this process, or with
//! `--processes` several processes that this one starts (`members.rs`). All that is said between
//! them is orders and answers, and the leader does not know where its sites are. With `--cluster`
//! the one site is a client of a cluster that runs already, whose rows were loaded before
//! (`load.rs`). With `--replay-raw` the run's last act is to write to bare files what its logs
//! wrote (`raw.rs`).

mod checks;
mod client;
mod load;
mod members;
mod raw;
mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_engine::machine;
use plimsoll_page::progress::Progress;
use plimsoll_txn::base::GraphSize;
use plimsoll_txn::pairs::Pair;
use plimsoll_types::Abort;
use plimsoll_types::wire::Malformed;
use plimsoll_workloads::{AnyWorkload, Tally};
use quanta::Clock;

use crate::cli::plan::{BenchPlan, Side};
use crate::report::model::{
    Aborts, Check, CheckerFigures, DiskFigures, Graph, Latency, Load, Run, TableSize, Timeline,
    TransactionType, per,
};
use crate::report::progress::{LoadLine, LoadSample, RunLine, RunSample};
use client::{Counts, Finished};
pub use load::{LoadReport, load_cluster};
use members::Members;
pub use members::{Failure, Joining};
use site::{Answer, Order, Sample, Site, Unsettled};

/// How often progress and the timeline are sampled.
const SAMPLE: Duration = Duration::from_millis(100);
/// How often a site is asked whether it is done with something.
const POLL: Duration = Duration::from_millis(2);
/// How long the last transactions may take.
const STOP_MAX: Duration = Duration::from_secs(60);
/// How long what is on its way while no client runs may take to arrive.
const SETTLE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of transactions that a run with `--check` records before it ends early: about
/// what fits into memory.
const RECORDED_MAX: u64 = 2_000_000;

/// Where a run is carried out.
enum Sites {
    Here(Box<Site>),
    Members(Members),
}

impl Sites {
    fn start(workload: &Arc<dyn AnyWorkload>, plan: &BenchPlan, pair: Pair) -> Result<Sites, Failure> {
        if let Some(cluster) = &plan.cluster {
            return Ok(Sites::Here(Box::new(Site::connect(workload, plan, cluster)?)));
        }
        let Some(processes) = plan.processes else {
            return Ok(Sites::Here(Box::new(Site::start(workload, plan, pair, None)?)));
        };
        let mut shards = vec![plan.shards_per_process(); processes];
        if pair.has_oracle() {
            shards.push(1);
        }
        let pair = plan.pairs.iter().position(|&other| other == pair);
        Ok(Sites::Members(Members::start(&shards, pair.expect("a plan's pairs are run"))?))
    }

    /// Gives all the same order. `part` takes the answer apart.
    fn ask<T>(&mut self, order: &Order, part: impl Fn(Answer) -> Option<T>) -> Result<Vec<T>, Failure> {
        let answers = match self {
            Sites::Here(site) => vec![heard(site.obey(order))?],
            Sites::Members(members) => members.ask(order)?,
        };
        answers.into_iter().enumerate().map(|(node, answer)| expected(node, part(answer))).collect()
    }

    fn tell(&mut self, order: &Order) -> Result<(), Failure> {
        self.ask(order, |answer| matches!(answer, Answer::Done).then_some(())).map(drop)
    }

    fn sample(&mut self) -> Result<Sample, Failure> {
        let samples = self.ask(&Order::Sample, |answer| match answer {
            Answer::Sample(sample) => Some(sample),
            _ => None,
        })?;
        Ok(samples.into_iter().fold(Sample::default(), Sample::sum))
    }

    fn tables(&mut self) -> Result<Vec<TableSize>, Failure> {
        let sites = self.ask(&Order::Tables, |answer| match answer {
            Answer::Tables(tables) => Some(tables),
            _ => None,
        })?;
        let mut sums: Vec<TableSize> = Vec::new();
        for tables in sites {
            sums.resize(tables.len(), TableSize::default());
            for (sum, table) in sums.iter_mut().zip(tables) {
                sum.rows += table.rows;
                sum.bytes += table.bytes;
            }
        }
        Ok(sums)
    }

    /// What is still on its way. No client runs.
    fn unsettled(&mut self) -> Result<Unsettled, Failure> {
        let sites = self.ask(&Order::Settle, |answer| match answer {
            Answer::Unsettled(open) => Some(open),
            _ => None,
        })?;
        Ok(sites.into_iter().fold(Unsettled::default(), Unsettled::sum))
    }

    /// Waits until nothing is on its way, but not for ever. Returns what still is.
    fn settle(&mut self, pair: Pair, clock: &Clock) -> Result<Unsettled, Failure> {
        let begun = clock.raw();
        loop {
            let open = self.unsettled()?;
            if open.is_nothing(pair) || clock.delta(begun, clock.raw()) >= SETTLE_MAX {
                return Ok(open);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Closes the database, and writes to bare files what its logs wrote, if they were recorded.
    fn replay(self, interrupted: &AtomicBool) -> Result<Option<DiskFigures>, Failure> {
        match self {
            Sites::Here(site) => site.replay(interrupted).map_err(Failure::Here),
            Sites::Members(_) => Ok(None),
        }
    }

    /// Audits the data, from one of the sites.
    fn audit(&mut self, tally: Tally) -> Result<Vec<Check>, Failure> {
        let order = Order::Audit(tally);
        let answer = match self {
            Sites::Here(site) => heard(site.obey(&order))?,
            Sites::Members(members) => members.ask_one(0, &order)?,
        };
        let checks = match answer {
            Answer::Checks(checks) => Some(checks),
            _ => None,
        };
        expected(0, checks)
    }
}

/// What a site in this process has answered.
fn heard(answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failed(why) => Err(Failure::Here(why)),
        answer => Ok(answer),
    }
}

/// A site answers what it is asked; another program at the end of a pipe need not.
fn expected<T>(node: usize, part: Option<T>) -> Result<T, Failure> {
    part.ok_or(Failure::Confused { node, what: Malformed("an answer to another question") })
}

/// Runs a workload as one side of a plan says, on a database of its own.
pub fn run(
    workload: &Arc<dyn AnyWorkload>,
    plan: &BenchPlan,
    side: Side,
    repetition: u32,
    progress: Progress,
    interrupted: &AtomicBool,
) -> Result<Run, Failure> {
    let (clock, pair) = (Clock::new(), side.pair);
    let mut run = Run {
        workload: workload.name().to_owned(),
        protocol: pair.protocol.name().to_owned(),
        scheme: pair.scheme.name().to_owned(),
        serializable: pair.serializable(),
        durability: side.durability.map(|durability| durability.to_string()),
        config: plan.config(pair),
        repetition,
        ..Run::default()
    };
    let mut sites = Sites::start(workload, plan, pair)?;
    if plan.cluster.is_some() {
        // The run counts from what it finds, and a client that was killed may have left
        // transactions that are decided later.
        sites.settle(pair, &clock)?;
    }
    run.load = load_all(&mut sites, &clock, progress, format!("loading {} for {side}", workload.name()))?;
    sites.tell(&Order::Begin(plan.concurrency, plan.rate))?;

    // Warm-up and measurement.
    let mut line = RunLine::new(progress, format!("{} {side}", workload.name()), plan.warmup + plan.duration);
    let started = clock.raw();
    let elapsed = || clock.delta(started, clock.raw());
    let mut sample = |sites: &mut Sites, warm: bool| {
        let sample = sites.sample()?;
        let elapsed = elapsed();
        let Sample { committed, aborted, resident_bytes: memory_bytes, .. } = sample;
        line.show(RunSample { elapsed, committed, aborted, memory_bytes }, warm);
        Ok::<(u64, bool), Failure>((committed, sample.full))
    };
    while elapsed() < plan.warmup && !interrupted.load(Relaxed) {
        std::thread::sleep(SAMPLE.min(plan.warmup.saturating_sub(elapsed())));
        if sample(&mut sites, false)?.1 {
            break;
        }
    }
    sites.tell(&Order::Count)?;
    let (measured, busy) = (clock.raw(), machine::busy_seconds());
    let mut timeline = Timeline { interval_seconds: SAMPLE.as_secs_f64(), throughput_tps: Vec::new() };
    let (committed, mut full) = sample(&mut sites, true)?;
    let mut last = (committed, clock.raw());
    loop {
        let over = clock.delta(measured, clock.raw());
        if over >= plan.duration || full || interrupted.load(Relaxed) {
            break;
        }
        std::thread::sleep(SAMPLE.min(plan.duration - over));
        let committed;
        (committed, full) = sample(&mut sites, true)?;
        let now = clock.raw();
        let seconds = clock.delta(last.1, now).as_secs_f64();
        timeline.throughput_tps.push((committed - last.0) as f64 / seconds);
        last = (committed, now);
        if plan.check && committed > RECORDED_MAX {
            progress.note("enough transactions are recorded for the checker; the run ends early");
            break;
        }
    }
    run.seconds = clock.delta(measured, clock.raw()).as_secs_f64();
    sites.tell(&Order::Stop)?;
    run.machine_cpu_seconds = machine::busy_seconds() - busy;
    run.interrupted = interrupted.load(Relaxed);
    run.memory_full = full;
    if full {
        progress.note("memory is full; the run ends early, and its figures are those so far: see --memory");
    }
    run.timeline = timeline;
    line.busy("finishing transactions");
    let stopped = clock.raw();
    loop {
        let Sample { running, .. } = sites.sample()?;
        if running == 0 {
            break;
        }
        if clock.delta(stopped, clock.raw()) > STOP_MAX {
            return Err(Failure::Stuck { running });
        }
        std::thread::sleep(POLL);
    }
    let open = sites.settle(pair, &clock)?;

    // Figures.
    let figures = sites.ask(&Order::Finish, |answer| match answer {
        Answer::Finished(figures) => Some(figures),
        _ => None,
    })?;
    let (mut finished, mut messages, mut online) = (Finished::default(), 0, Vec::new());
    let (mut graph_sent_bytes, mut graph, mut graph_max) = (0, GraphSize::default(), GraphSize::default());
    for site in figures {
        finished.add(site.finished);
        messages += site.messages;
        run.cpu_seconds += site.cpu_seconds;
        run.read_only_waits += site.read_only_waits;
        run.read_only_restarts += site.read_only_restarts;
        run.oracle_messages += site.oracle_messages;
        graph_sent_bytes += site.graph_sent_bytes;
        graph += site.graph;
        graph_max += site.graph_max;
        run.links.extend(site.links);
        online.extend(site.checks);
        for (name, figure) in site.workload {
            match run.workload_figures.get_mut(&name) {
                Some(sum) => *sum += figure,
                None => run.workload_figures.push(name, figure),
            }
        }
    }
    fill(&mut run, workload.kinds(), &finished.counts, messages);
    if pair.has_graph() {
        run.graph = Some(Graph {
            bytes_per_transaction: per(graph_sent_bytes as f64, run.committed as f64),
            vertices: graph.vertices,
            vertices_max: graph_max.vertices,
            memory_bytes: graph.bytes,
            memory_bytes_max: graph_max.bytes,
        });
    }
    run.fill_rates(plan.shards.min(machine::cores()));
    for (spec, size) in workload.tables().iter().zip(sites.tables()?) {
        run.tables.push(&spec.name, size);
        run.memory_bytes += size.bytes;
    }

    // Checks.
    line.busy("checking invariants");
    run.checks = sites.audit(finished.tally)?;
    run.checks.extend(online);
    if plan.processes.is_some() || plan.cluster.is_some() || !open.is_nothing(pair) {
        run.checks.push(open.check(pair));
    }
    if plan.check {
        line.busy("checking the history");
        let begun = clock.raw();
        let stale = pair.has_staleness();
        let staleness_ns = if stale { plan.staleness.as_nanos() as u64 } else { 0 };
        let (mut recorded, mut installs) = (Vec::new(), Vec::new());
        let sites = sites.ask(&Order::History, |answer| match answer {
            Answer::History(recorded, installs) => Some((recorded, installs)),
            _ => None,
        })?;
        for (of_clients, of_shards) in sites {
            recorded.extend(of_clients);
            installs.extend(of_shards);
        }
        let (check, transactions, dependencies) =
            checks::history(&**workload, pair, plan.shards, staleness_ns, recorded, installs);
        let seconds = clock.delta(begun, clock.raw()).as_secs_f64();
        run.checker = Some(CheckerFigures { transactions, dependencies, seconds });
        run.checks.push(check);
    }
    if plan.replay_raw {
        line.busy("writing the same to bare files");
        run.disk = sites.replay(interrupted)?;
    }
    drop(line);
    Ok(run)
}

/// Loads all units.
fn load_all(sites: &mut Sites, clock: &Clock, progress: Progress, title: String) -> Result<Load, Failure> {
    let begun = clock.raw();
    sites.tell(&Order::Load)?;
    let mut now = sites.sample()?;
    let mut line = LoadLine::new(progress, title, now.units);
    while now.loaded < now.units {
        std::thread::sleep(POLL);
        now = sites.sample()?;
        line.show(LoadSample {
            elapsed: clock.delta(begun, clock.raw()),
            units: now.loaded,
            rows: now.rows,
            memory_bytes: now.resident_bytes,
        });
    }
    let seconds = clock.delta(begun, clock.raw()).as_secs_f64();
    let memory_bytes = sites.tables()?.iter().map(|table| table.bytes).sum();
    Ok(Load { seconds, rows: now.rows, memory_bytes })
}

/// What the clients counted while it counted.
fn fill(run: &mut Run, kinds: &[plimsoll_workloads::Kind], counts: &[Counts], messages: u64) {
    let (mut distributed, mut all) = (0, [0; Abort::ALL.len()]);
    let mut latency = Counts::default().latency;
    for (declared, sum) in kinds.iter().zip(counts) {
        if declared.per > 0 {
            run.committed += sum.committed;
            distributed += sum.distributed;
            latency.add(&sum.latency).expect("histograms of the same size can be added");
        }
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
                per: declared.per,
                distributed_share: sum.distributed as f64 / sum.committed.max(1) as f64,
                mean_keys_read: sum.read.map(|read| per(read as f64, sum.committed as f64)),
                nominal_share: (declared.nominal > 0).then(|| f64::from(declared.nominal) / 1e4),
                mean_keys_written: Some(sum.written as f64 / sum.committed.max(1) as f64),
                latency_us: Latency::from_nanoseconds(&sum.latency),
            },
        );
    }
    run.latency_us = Latency::from_nanoseconds(&latency);
    run.aborts = Aborts::from_counts(all);
    run.distributed_share = distributed as f64 / run.committed.max(1) as f64;
    run.messages_per_transaction = messages as f64 / run.committed.max(1) as f64;
}
