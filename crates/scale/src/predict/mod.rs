//! How fast a cluster would be: the protocols' own code in a world where everything has a price.
//!
//! [`predict`] loads a workload into as many shards as the cluster would have, lets clients run
//! transactions on them, and measures in virtual time: throughput, latencies, aborts, what the
//! cores, the network and the oracle were busy with. Protocols, schemes, workloads and the executor
//! are those of production, so conflicts, retries, waits and messages are not modelled but happen;
//! only time is, by a [`CostModel`]. A node is a machine with so many shards; the oracle, if the
//! scheme has one, has a machine to itself, and so it has for the schemes that do not need it in
//! the DST paper's comparison (§5). Prices come from measurements (`plimsoll calibrate`) or from a
//! paper.
//!
//! A transaction's latency counts what its shard does for it and what it waits for. Within a pass
//! the clock of the world stands still, so both ends of it are set to where in the pass they are:
//! the price of what the pass has done by then.
//!
//! What is measured is a window of a closed loop, and clients of such a loop can get stuck: a
//! transaction type that hardly commits keeps more and more of them, until few are left for the
//! others. A window too short to show that says little. So a window is *stationary* if every type's
//! share of what ends is within a tenth of its weight, and both halves have as many commits as each
//! other, up to a twentieth. Else the next window begins, twice as long, up to a limit.
//!
//! Left out: faults, clocks that differ, disks, replication, and clients that are elsewhere.
//! Watermarks are known everywhere at once.

pub mod model;
pub mod published;
pub mod study;
mod world;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::Task;
use plimsoll_runtime::sim::{EPOCH_NS, Pass, Watch};
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::base::Layout;
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair};
use plimsoll_txn::timestamp::OracleOptions;
use plimsoll_txn::with_pair;
use plimsoll_types::{Abort, Placement, ShardId};
use plimsoll_workloads::{AnyClient, AnyWorkload};

use model::{AccessCosts, CostModel, Done, KINDS_MAX, OracleCosts};
use world::{PricedShard, PricedWorld};

/// The longest back-off after repeated aborts, in nanoseconds, as in benchmarks.
const BACK_OFF_MAX_NS: u64 = 64_000;
/// Virtual time after which a window ends, however little was done in it, in nanoseconds.
const LONG_NS: u64 = 2_000_000_000;
/// Maximum age of a snapshot when the last node hears of it, in latencies.
const STALE_LATENCIES: u64 = 20;
/// Minimum length of a window, in latencies.
const LATENCIES: u64 = 50;
/// How often a window is doubled at most, in figures that people look at.
pub const DOUBLINGS: u32 = 3;
/// By what part of its weight the share of a transaction type may be off in a stationary window.
const SHARE_OFF: f64 = 0.1;
/// By what part of their mean the commits of both halves of a stationary window may differ.
const HALVES_OFF: f64 = 0.05;
/// Transactions that are drawn to see what the weights of their types are.
const DRAWN: usize = 50_000;
/// Length of a message's header and of a batch's, in bytes.
const MESSAGE_BYTES: u64 = 8;

/// A cluster and what it is to run.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Nodes that hold data.
    pub nodes: usize,
    /// Shards of each.
    pub shards_per_node: usize,
    /// Whether the oracle is a shard of the only node, instead of a machine of its own.
    pub oracle_inside: bool,
    /// Threads of a node, if its shards, the oracle among them, have to share them.
    pub threads: Option<usize>,
    /// Transactions in flight per shard.
    pub concurrency: usize,
    /// `occ`, `two_pl`, `client_2pc` or `rococo`.
    pub protocol: &'static str,
    /// `dst`, `gts`, `vts`, `rc` or `none`.
    pub scheme: &'static str,
    /// How an oracle is asked.
    pub oracle: OracleOptions,
    /// Whether a read-write transaction takes a round trip to the oracle longer, as in the DST
    /// paper, where it waits for its report to be answered (Figure 4, line 6 of COMMIT). Its shard
    /// reports it in the background in any case.
    pub awaits_report: bool,
    /// Transactions to commit in the first window; a quarter as many go before.
    pub transactions: u64,
    /// How often the window is doubled at most until it is stationary.
    pub doublings: u32,
    /// Chooses everything that is drawn.
    pub seed: u64,
}

impl Cluster {
    /// Shards that hold data.
    pub fn shards(&self) -> usize {
        self.nodes * self.shards_per_node
    }
}

/// What came of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// Virtual seconds measured.
    pub seconds: f64,
    /// Transactions committed.
    pub committed: u64,
    /// Those over several shards.
    pub distributed: u64,
    /// Attempts that aborted, but for those whose own logic said no.
    pub aborts: u64,
    /// Attempts of read-only transactions that aborted.
    pub read_only_aborts: u64,
    /// By transaction type: latencies in nanoseconds, in the order in which they were answered.
    pub latencies: Vec<(&'static str, Vec<u32>)>,
    /// By transaction type, in the same order: attempts that aborted, but for those whose own logic
    /// said no.
    pub aborts_by: Vec<u64>,
    /// By transaction type, in the same order: whether it only reads.
    pub read_only: Vec<bool>,
    /// By transaction type, in the same order: how many have ended, those included whose own logic
    /// said no.
    pub ended: Vec<u64>,
    /// Whether it is of a stationary window. If not, a longer one would have another result.
    pub stationary: bool,
    /// Share of the time that data shards have worked, on average.
    pub busy: f64,
    /// Share of the time that the oracle has worked, or its network card, whichever is more.
    pub oracle_busy: f64,
    /// Messages between shards.
    pub messages: u64,
    /// Bytes between nodes.
    pub bytes: u64,
    /// What the data shards have done.
    pub done: Done,
    /// What the oracle has done: its passes, the messages that it has received, the outcomes among
    /// them.
    pub oracle: Done,
}

impl Prediction {
    /// Nothing yet, of this workload's transactions.
    fn of_nothing(workload: &dyn AnyWorkload) -> Prediction {
        let kinds = workload.kinds();
        Prediction {
            latencies: kinds.iter().map(|kind| (kind.name, Vec::new())).collect(),
            aborts_by: vec![0; kinds.len()],
            ended: vec![0; kinds.len()],
            read_only: kinds.iter().map(|kind| kind.read_only).collect(),
            ..Prediction::default()
        }
    }

    /// Transactions per second.
    pub fn throughput(&self) -> f64 {
        self.committed as f64 / self.seconds
    }

    /// Aborted attempts per attempt.
    pub fn abort_rate(&self) -> f64 {
        self.aborts as f64 / (self.aborts + self.committed).max(1) as f64
    }

    /// A quantile of all latencies, in nanoseconds.
    pub fn latency_ns(&self, quantile: f64) -> u32 {
        quantile_of(self.latencies.iter().flat_map(|(_, latencies)| latencies).copied().collect(), quantile)
    }

    /// A quantile of the latencies of all types that only read, or of all others, in nanoseconds;
    /// nothing if there were none.
    pub fn latency_of_class_ns(&self, read_only: bool, quantile: f64) -> Option<u32> {
        let of_class = self.latencies.iter().zip(&self.read_only).filter(|(_, only)| **only == read_only);
        let latencies: Vec<u32> = of_class.flat_map(|((_, latencies), _)| latencies).copied().collect();
        (!latencies.is_empty()).then(|| quantile_of(latencies, quantile))
    }

    /// A quantile of the latencies of a transaction type, in nanoseconds; 0 if there were none.
    pub fn latency_of_ns(&self, kind: &str, quantile: f64) -> u32 {
        self.of(kind).map_or(0, |(latencies, _)| quantile_of(latencies.to_vec(), quantile))
    }

    /// Transactions of a type per second.
    pub fn throughput_of(&self, kind: &str) -> f64 {
        self.of(kind).map_or(0.0, |(latencies, _)| latencies.len() as f64 / self.seconds)
    }

    /// Which share of the attempts of a transaction type has committed; 1 if there were none.
    pub fn committed_share_of(&self, kind: &str) -> f64 {
        let Some((latencies, aborts)) = self.of(kind) else { return 1.0 };
        match latencies.len() as u64 + aborts {
            0 => 1.0,
            attempts => latencies.len() as f64 / attempts as f64,
        }
    }

    fn of(&self, kind: &str) -> Option<(&[u32], u64)> {
        let number = self.latencies.iter().position(|(name, _)| *name == kind)?;
        Some((&self.latencies[number].1, self.aborts_by[number]))
    }
}

fn quantile_of(mut latencies: Vec<u32>, quantile: f64) -> u32 {
    if latencies.is_empty() {
        return 0;
    }
    let position = ((latencies.len() - 1) as f64 * quantile) as usize;
    *latencies.select_nth_unstable(position).1
}

/// Runs a cluster, or as much of it as there is before `stop` says so.
pub fn predict(
    cluster: &Cluster,
    model: &CostModel,
    access: AccessCosts,
    workload: &Arc<dyn AnyWorkload>,
    stop: &dyn Fn() -> bool,
) -> Prediction {
    let pair = Pair::parse(&format!("{}/{}", cluster.protocol, cluster.scheme));
    let pair = pair.and_then(|pair| pair.legal(LEGAL_PAIRS)).expect("a cluster runs a legal pair");
    let shared = Rc::new(Shared {
        model: model.clone(),
        access,
        oracle: model.oracle(cluster.scheme),
        crowded: if cluster.shards_per_node > 1 { access.crowded } else { 1.0 },
        has_oracle: pair.has_oracle(),
        awaits_report: cluster.awaits_report && pair.has_oracle(),
        meters: (0..=cluster.shards()).map(|_| Meter::default()).collect(),
        counts: RefCell::new(Counts {
            measuring: false,
            committed: 0,
            ends_ns: Vec::new(),
            prediction: Prediction::of_nothing(&**workload),
        }),
    });
    let mut world = loaded(cluster, pair, &**workload, &shared);
    start_clients(&mut *world, cluster, workload, &shared);
    let weights = weights(&**workload, cluster);
    let mut transactions = cluster.transactions;
    warm_up(&mut *world, transactions / 4, &shared, stop);
    for _ in 0..cluster.doublings {
        let prediction = measure(&mut *world, cluster, transactions, &weights, &shared, stop);
        // A window that time has ended would be no longer the next time.
        if prediction.stationary || prediction.seconds >= LONG_NS as f64 / 1e9 || stop() {
            return prediction;
        }
        shared.counts.borrow_mut().prediction = Prediction::of_nothing(&**workload);
        transactions *= 2;
    }
    measure(&mut *world, cluster, transactions, &weights, &shared, stop)
}

/// Which share of the mix each transaction type has: by the specification, else of what a client
/// draws.
fn weights(workload: &dyn AnyWorkload, cluster: &Cluster) -> Vec<f64> {
    let kinds = workload.kinds();
    let mut numbers: Vec<u64> = kinds.iter().map(|kind| kind.nominal.into()).collect();
    if numbers.iter().all(|&nominal| nominal == 0) {
        let placement = Placement::even(cluster.shards());
        let number = cluster.shards() * cluster.concurrency;
        let mut client = workload.client(number, ShardId(0), &|slot| placement.shard(slot));
        for _ in 0..DRAWN {
            numbers[client.draw(EPOCH_NS)] += 1;
            client.done(false);
        }
    }
    let all: u64 = numbers.iter().sum();
    numbers.into_iter().map(|number| number as f64 / all as f64).collect()
}

/// Whether every type's share of what has ended is its weight, up to a tenth and what chance
/// explains, which are two standard deviations; and whether as many have committed before the
/// middle of the window as behind it.
fn is_stationary(ended: &[u64], weights: &[f64], first_half: usize, committed: usize) -> bool {
    let all = ended.iter().sum::<u64>() as f64;
    let on_weight = |(&ended, &weight): (&u64, &f64)| {
        let due = weight * all;
        (ended as f64 - due).abs() <= SHARE_OFF * due + 2.0 * due.sqrt()
    };
    let half = committed as f64 / 2.0;
    committed > 0
        && ended.iter().zip(weights).all(on_weight)
        && 2.0 * (first_half as f64 - half).abs() <= HALVES_OFF * half
}

/// What is known of a shard besides its node.
#[derive(Default)]
struct Meter {
    /// Attempts begun, and everything done up to the end of the last pass.
    attempts: Cell<[f64; KINDS_MAX]>,
    before: Cell<Done>,
}

/// The counts of all clients.
struct Counts {
    measuring: bool,
    committed: u64,
    /// When those of the window have committed, in nanoseconds of the world, ascending.
    ends_ns: Vec<u64>,
    prediction: Prediction,
}

impl Counts {
    /// An attempt has aborted. Counted at once: under contention some transactions never end.
    fn aborted(&mut self, kind: usize, read_only: bool) {
        if self.measuring {
            self.prediction.aborts += 1;
            self.prediction.aborts_by[kind] += 1;
            self.prediction.read_only_aborts += u64::from(read_only);
        }
    }

    /// The logic of a transaction has said no.
    fn refused(&mut self, kind: usize) {
        if self.measuring {
            self.prediction.ended[kind] += 1;
        }
    }
}

struct Shared {
    model: CostModel,
    access: AccessCosts,
    oracle: OracleCosts,
    /// What every price is multiplied by.
    crowded: f64,
    /// Whether the last shard is an oracle.
    has_oracle: bool,
    /// Whether read-write transactions wait until it has answered their report.
    awaits_report: bool,
    meters: Vec<Meter>,
    counts: RefCell<Counts>,
}

impl Shared {
    /// What the present pass of a shard has cost so far.
    fn so_far_ns(&self, id: ShardId, shard: &dyn PricedShard) -> f64 {
        let meter = &self.meters[id.index()];
        self.price(&shard.done(meter.attempts.get()).since(&meter.before.get()))
    }

    fn price(&self, done: &Done) -> f64 {
        self.crowded * self.model.price(&self.access, &self.oracle, done)
    }
}

impl Shared {
    /// Runs a world until `transactions` more have committed and `ns` of virtual time have passed,
    /// or `long_ns` have.
    fn run(
        &self,
        world: &mut dyn PricedWorld,
        transactions: u64,
        ns: u64,
        long_ns: u64,
        stop: &dyn Fn() -> bool,
    ) {
        let committed = || self.counts.borrow().committed;
        let (transactions, begin_ns) = (committed() + transactions, world.now());
        let over = |ns_passed: u64| {
            (committed() >= transactions && ns_passed >= ns) || ns_passed >= long_ns || stop()
        };
        world.run_while(&|now_ns| !over(now_ns - begin_ns));
    }
}

/// Lets the clients of a world warm up.
fn warm_up(world: &mut dyn PricedWorld, transactions: u64, shared: &Shared, stop: &dyn Fn() -> bool) {
    shared.run(world, transactions, LATENCIES * shared.model.latency_ns / 4, LONG_NS / 4, stop);
}

/// Measures the clients of a world for a window in which `transactions` commit.
fn measure(
    world: &mut dyn PricedWorld,
    cluster: &Cluster,
    transactions: u64,
    weights: &[f64],
    shared: &Shared,
    stop: &dyn Fn() -> bool,
) -> Prediction {
    let begin = Reading::of(world, cluster, shared);
    shared.counts.borrow_mut().measuring = true;
    shared.run(world, transactions, LATENCIES * shared.model.latency_ns, LONG_NS, stop);
    let end = Reading::of(world, cluster, shared);
    let ends_ns = std::mem::take(&mut shared.counts.borrow_mut().ends_ns);
    let middle_ns = begin.now_ns.midpoint(end.now_ns);
    let first_half = ends_ns.partition_point(|&ns| ns < middle_ns);

    let mut prediction = std::mem::take(&mut shared.counts.borrow_mut().prediction);
    let elapsed_ns = (end.now_ns - begin.now_ns).max(1) as f64;
    prediction.seconds = elapsed_ns / 1e9;
    prediction.stationary = is_stationary(&prediction.ended, weights, first_half, ends_ns.len());
    prediction.busy = (end.cpu_ns - begin.cpu_ns) as f64 / elapsed_ns / cluster.shards() as f64;
    prediction.oracle_busy = (end.oracle_ns - begin.oracle_ns) as f64 / elapsed_ns;
    prediction.oracle_busy =
        prediction.oracle_busy.max((end.oracle_card_ns - begin.oracle_card_ns) as f64 / elapsed_ns);
    prediction.messages = end.messages - begin.messages;
    prediction.bytes = end.bytes - begin.bytes;
    prediction.done = end.done.since(&begin.done);
    prediction.oracle = end.oracle.since(&begin.oracle);
    prediction
}

/// Everything that is counted outside of clients.
struct Reading {
    now_ns: u64,
    cpu_ns: u64,
    oracle_ns: u64,
    oracle_card_ns: u64,
    messages: u64,
    bytes: u64,
    done: Done,
    oracle: Done,
}

impl Reading {
    fn of(world: &dyn PricedWorld, cluster: &Cluster, shared: &Shared) -> Reading {
        let mut reading = Reading {
            now_ns: world.now(),
            cpu_ns: 0,
            oracle_ns: 0,
            oracle_card_ns: 0,
            messages: 0,
            bytes: 0,
            done: Done::default(),
            oracle: shared.meters[cluster.shards()].before.get(),
        };
        for index in 0..cluster.shards() {
            let usage = world.usage(ShardId(index as u16));
            reading.cpu_ns += usage.cpu_ns;
            reading.messages += usage.messages;
            if index % cluster.shards_per_node == 0 {
                reading.bytes += usage.bytes;
            }
            reading.done = reading.done.and(&shared.meters[index].before.get());
        }
        if shared.has_oracle {
            let oracle = world.usage(ShardId(cluster.shards() as u16));
            (reading.oracle_ns, reading.oracle_card_ns) = (oracle.cpu_ns, oracle.card_ns);
            reading.messages += oracle.messages;
            reading.bytes += if cluster.oracle_inside { 0 } else { oracle.bytes };
        }
        reading
    }
}

/// A world with the loaded database of a cluster.
fn loaded(
    cluster: &Cluster,
    pair: Pair,
    workload: &dyn AnyWorkload,
    shared: &Rc<Shared>,
) -> Box<dyn PricedWorld> {
    let shards = cluster.shards();
    let placement = Arc::new(Placement::even(shards));
    let layout = Layout {
        tables: workload.tables().into(),
        placement: placement.clone(),
        processes: (0..shards).map(|shard| (shard / cluster.shards_per_node) as u16).collect(),
    };
    let options = workload.protocol_options();
    let world = with_pair!(pair, P => world::begin::<P>(cluster, &layout, options, shared));
    for unit in 0..workload.units() {
        let shards = match workload.unit_slot(unit) {
            Some(slot) => vec![placement.shard(slot)],
            None => (0..shards as u16).map(ShardId).collect(),
        };
        for shard in shards {
            let shard = world.shard(shard).any();
            workload.load(unit, &mut |table, key, values| shard.load_row(table, &key, values));
        }
    }
    for (index, meter) in shared.meters.iter().enumerate().take(shards) {
        meter.before.set(world.shard(ShardId(index as u16)).done(Default::default()));
    }
    world
}

impl Shared {
    /// A pass of a data shard is over: what has it cost?
    fn charge(&self, shard: ShardId, pass: Pass, done: impl FnOnce([f64; KINDS_MAX]) -> Done) -> u64 {
        let meter = &self.meters[shard.index()];
        let before = meter.before.get();
        let now = Done {
            passes: before.passes + 1.0,
            polls: before.polls + pass.polls as f64,
            messages: before.messages + (pass.received + pass.sent) as f64,
            handled: before.handled + pass.handled as f64,
            batches: before.batches + pass.local_batches as f64,
            remote_batches: before.remote_batches + pass.remote_batches as f64,
            ..done(meter.attempts.get())
        };
        meter.before.set(now);
        self.price(&now.since(&before)) as u64
    }

    /// A pass of the oracle is over.
    fn charge_oracle(&self, oracle: ShardId, pass: Pass, outcomes: u64) -> u64 {
        let (messages, reports) = (pass.received as f64, outcomes as f64);
        let done = Done { passes: 1.0, messages, reports, ..Done::default() };
        let meter = &self.meters[oracle.index()];
        meter.before.set(meter.before.get().and(&done));
        (self.crowded * self.model.oracle_price(&self.oracle, &done)) as u64
    }
}

fn start_clients(
    world: &mut dyn PricedWorld,
    cluster: &Cluster,
    workload: &Arc<dyn AnyWorkload>,
    shared: &Rc<Shared>,
) {
    let placement = Placement::even(cluster.shards());
    for number in 0..cluster.shards() * cluster.concurrency {
        let shard = ShardId((number / cluster.concurrency) as u16);
        let client = workload.client(number, shard, &|slot| placement.shard(slot));
        let (workload, shared, watch) = (workload.clone(), shared.clone(), world.observer());
        let task = |shard| Box::pin(run_client(shard, watch, workload, client, shared)) as Task;
        world.spawn_on(shard, Box::new(task));
    }
}

/// One client: a closed loop of transactions, as in benchmarks.
async fn run_client(
    priced: Rc<dyn PricedShard>,
    watch: Watch,
    workload: Arc<dyn AnyWorkload>,
    mut client: Box<dyn AnyClient>,
    shared: Rc<Shared>,
) {
    let (shard, kinds) = (priced.any(), workload.kinds());
    let mut coordinator = shard.coordinator();
    let meter = &shared.meters[shard.shard().index()];
    // By type: how many have committed of those that count as one, since when, and whether one of
    // them took several shards.
    let mut parts = vec![(0, 0.0, false); kinds.len()];
    let now_ns = || (watch.true_time().0 - EPOCH_NS) as f64 + shared.so_far_ns(shard.shard(), &*priced);
    loop {
        let kind = client.draw(shard.clock().0);
        let (read_only, per) = (kinds[kind].read_only, kinds[kind].per);
        let begin_ns = now_ns();
        let attempt = Attempt { age: shard.clock().0, ..Attempt::default() };
        let mut aborts = 0u32;
        let committed = loop {
            let mut attempts = meter.attempts.get();
            attempts[kind] += 1.0;
            meter.attempts.set(attempts);
            match coordinator.execute(attempt, client.procedure()).await {
                Ok(()) => break true,
                Err(Abort::User) => break false,
                Err(_) => {
                    aborts += 1;
                    shared.counts.borrow_mut().aborted(kind, read_only);
                }
            }
            shard.pause().await;
            if aborts > 2 {
                let limit = (1000 << aborts.min(16)).min(BACK_OFF_MAX_NS);
                shard.sleep(shard.random() % limit).await;
            }
        };
        if shared.awaits_report && committed && !read_only {
            let oracle = ShardId(shared.meters.len() as u16 - 1);
            priced.round_trip(oracle, coordinator.committed().id).await;
        }
        if !committed && per > 0 {
            shared.counts.borrow_mut().refused(kind);
        }
        if committed && per > 0 {
            let (number, since_ns, distributed) = &mut parts[kind];
            if *number == 0 {
                (*since_ns, *distributed) = (begin_ns, false);
            }
            *number += 1;
            *distributed |= coordinator.committed().shards > 1;
            if *number == per {
                *number = 0;
                let mut counts = shared.counts.borrow_mut();
                counts.committed += 1;
                if counts.measuring {
                    counts.ends_ns.push(watch.true_time().0 - EPOCH_NS);
                    let prediction = &mut counts.prediction;
                    prediction.committed += 1;
                    prediction.ended[kind] += 1;
                    prediction.distributed += u64::from(*distributed);
                    prediction.latencies[kind].1.push((now_ns() - *since_ns) as u32);
                }
            }
        }
        client.done(committed);
        if shard.clock().0 == attempt.age {
            shard.pause().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_stationary_if_types_have_their_shares_and_halves_are_alike() {
        let weights = [0.96, 0.04];
        assert!(is_stationary(&[9_600, 400], &weights, 5_000, 10_000));
        assert!(is_stationary(&[9_640, 360], &weights, 4_900, 10_000));
        assert!(!is_stationary(&[9_700, 300], &weights, 5_000, 10_000), "a type lags behind");
        assert!(is_stationary(&[97, 3], &weights, 50, 100), "that is chance");
        assert!(!is_stationary(&[9_600, 400], &weights, 5_200, 10_000), "it becomes slower");
        assert!(!is_stationary(&[0, 0], &weights, 0, 0), "nothing has committed");
    }
}
