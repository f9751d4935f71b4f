//! `plimsoll calibrate`: what things cost on this machine.
//!
//! 1. The executor alone: passes, polls, messages (`executor`), and sockets (`loopback`).
//! 2. Benchmarks, in turns (`turns`): those that prices are learned from and those that prove them.
//! 3. Prices. Workloads on one shard, all data local, under none, rc and dst, each at several mixes
//!    of its transactions: how much of which work a transaction does, a world counts that runs the
//!    same; how long it takes, was measured; what the work costs follows (`fit`). What two cores
//!    cost each other is how much less than twice as fast two shards are that have nothing to do
//!    with each other; TPC-E has no such shards, and no such factor. Then, the same way as before,
//!    what messages, coordination, locks, validation and executions in vain cost, and what an
//!    oracle's scheme adds: distributed transactions on two shards, of TPC-C and SmallBank more of
//!    them than usual, of micro fewer and more, of TPC-E those that ask for securities, and all
//!    workloads on one shard under gts and vts. What a message costs the oracle shows on two
//!    shards, where it shares a thread with one of them, unless there are more cores.
//! 4. The proof: OCC and 2PL under every scheme on one shard and on two, predicted, and measured in
//!    benchmarks of its own. On one shard these are configurations that step 3 has learned from, on
//!    two they are not. Errors are printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_engine::machine;
use plimsoll_page::progress::Progress;
use plimsoll_txn::pairs::{Pair, Protocol, Scheme};
use plimsoll_txn::timestamps::{Gts, Vts};
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};
use plimsoll_workloads::tpce::{self, Tpce};
use plimsoll_workloads::{AnyWorkload, Workload};
use serde::Serialize;

use super::fit::{Measurement, fit};
use super::turns::{self, Bench, CONCURRENCY, Measured, ROUNDS};
use super::{executor, loopback, oracle};
use crate::predict::model::{AccessCosts, CostModel, Done, KINDS_MAX, OracleCosts, VERSION};

/// What a network card needs for a batch, in nanoseconds. There is none to measure in one machine:
/// ten million a second.
const FRAME_NS: f64 = 100.0;
/// So often prices are learned from counts that depend on them.
const REFINED: u32 = 4;
/// Number of other mixes that the first mix of a workload outweighs: it is what people run.
const STANDARD: usize = 8;
/// What is learned, in the order of [`Benches`].
const WORKLOADS: [&str; 4] = [Tpcc::NAME, SmallBank::NAME, Micro::NAME, Tpce::NAME];
/// First guesses at what it costs to lock a record, to coordinate an attempt, and to execute
/// something in vain, in nanoseconds.
const LOCK_NS: f64 = 50.0;
const COORDINATED_NS: f64 = 500.0;
const VAIN_NS: f64 = 200.0;
/// SmallBank's accounts per shard.
const ACCOUNTS: u64 = 100_000;
/// TPC-E's customers per load unit, of which there is one per shard: a whole one takes as long to
/// load as a measurement takes.
const CUSTOMERS: u32 = 200;
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

/// The pairs that are learned from.
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

/// The benchmarks of a calibration.
struct Benches {
    /// By workload: one shard, the standard mix under all pairs first.
    alone: [Vec<Bench>; WORKLOADS.len()],
    /// By workload: two shards that have nothing to do with each other.
    crowded: [Vec<Bench>; WORKLOADS.len()],
    /// Transactions that are more than one step of their shard.
    coordinated: Vec<Bench>,
    /// What is predicted.
    proofs: Vec<Bench>,
}

impl Benches {
    /// What a new model needs, on so many cores, and its proof.
    fn new(cores: usize, proof: bool) -> Benches {
        let alone = [
            Bench::all(&tpcc_mixes(), &LEARNED, 1),
            Bench::all(&smallbank_mixes(), &LEARNED, 1),
            Bench::all(&micro_mixes(), &LEARNED, 1),
            Bench::all(&tpce_mixes(), &LEARNED, 1),
        ];
        let (crowded, coordinated) = match cores {
            1 => Default::default(),
            _ => (crowded(), coordinated()),
        };
        Benches { alone, crowded, coordinated, proofs: if proof { proofs(cores) } else { Vec::new() } }
    }

    /// All that was measured.
    fn measured(&self) -> Vec<Measured> {
        let learned = self.alone.iter().chain(&self.crowded).flatten().chain(&self.coordinated);
        learned.chain(&self.proofs).map(Bench::measured).collect()
    }

    fn measure(&mut self, calibration: &Calibration<'_>) -> std::io::Result<()> {
        let learned = self.alone.iter_mut().chain(&mut self.crowded).flatten().chain(&mut self.coordinated);
        let mut all: Vec<&mut Bench> = learned.chain(&mut self.proofs).collect();
        turns::measure(&mut all, calibration.time, calibration.progress, calibration.interrupted)
    }
}

impl Calibration<'_> {
    /// A new model, its proof if that is wanted, and all that was measured.
    pub fn model(&self, proof: bool) -> std::io::Result<(CostModel, Vec<Proof>, Vec<Measured>)> {
        self.progress.note("what the executor and sockets cost");
        let executor = executor::measure(self.time, ROUNDS)?;
        let loopback = loopback::loopback(self.time, ROUNDS)?;
        let (gts, vts) =
            (oracle::measure::<Gts>(self.time, &executor), oracle::measure::<Vts>(self.time, &executor));
        let mut benches = Benches::new(machine::cores(), proof);
        benches.measure(self)?;
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
            validated_ns: 0.0,
            gts,
            vts,
            local_ns: executor.local_ns as u64,
            wake_ns: 2 * loopback.latency_ns as u64,
            latency_ns: loopback.latency_ns as u64,
            jitter_ns: loopback.latency_ns as u64 / 4,
            frame_ns: FRAME_NS,
            gigabits_per_s: loopback.gigabits_per_s,
            access: Default::default(),
        };
        let kinds = [Tpcc::KINDS.len(), SmallBank::KINDS.len(), Micro::KINDS.len(), Tpce::KINDS.len()];
        for (benches, kinds) in benches.alone.iter().zip(kinds) {
            self.progress.note(&format!("what {} costs: {} worlds", benches[0].workload, benches.len()));
            let access = self.learn(&model, benches, kinds);
            model.access.insert(benches[0].workload.to_owned(), access);
        }
        for (alone, crowded) in
            benches.alone.iter().zip(&benches.crowded).filter(|(_, both)| !both.is_empty())
        {
            let factors = alone.iter().zip(crowded).map(|(one, two)| 2.0 * one.tps() / two.tps());
            let mean = factors.sum::<f64>() / crowded.len() as f64;
            let access = model.access.get_mut(alone[0].workload).expect("it was learned");
            access.crowded = mean.clamp(1.0, 9.0);
        }
        if !benches.coordinated.is_empty() {
            self.learn_coordination(&mut model, &benches.coordinated);
        }
        if self.interrupted.load(Relaxed) {
            return Err(std::io::Error::other("interrupted"));
        }
        let proofs = self.compare(&model, &benches.proofs);
        Ok((model, proofs, benches.measured()))
    }

    /// The proof of a model that is there, and all that was measured for it.
    pub fn prove(&self, model: &CostModel) -> std::io::Result<(Vec<Proof>, Vec<Measured>)> {
        if let Some(missing) = WORKLOADS.iter().find(|workload| !model.access.contains_key(**workload)) {
            return Err(std::io::Error::other(format!("the cost model has no prices of {missing}")));
        }
        let mut benches = proofs(machine::cores());
        let mut all: Vec<&mut Bench> = benches.iter_mut().collect();
        turns::measure(&mut all, self.time, self.progress, self.interrupted)?;
        Ok((self.compare(model, &benches), benches.iter().map(Bench::measured).collect()))
    }

    /// What accesses cost, from mixes of one workload's transactions.
    fn learn(&self, model: &CostModel, benches: &[Bench], kinds: usize) -> AccessCosts {
        let guess = AccessCosts {
            attempt_ns: [100.0; KINDS_MAX],
            lookup_ns: 50.0,
            scanned_ns: 20.0,
            link_ns: 100.0,
            install_ns: 50.0,
            kept_ns: 30.0,
            mark_ns: 5.0,
            pin_ns: 10.0,
            lock_ns: LOCK_NS,
            coordinated_ns: COORDINATED_NS,
            vain_ns: VAIN_NS,
            crowded: 1.0,
        };
        // One price for the attempts of all types, unless there are enough mixes to tell them
        // apart.
        let kinds = if benches.len() / LEARNED.len() > kinds { kinds } else { 1 };
        let mut measurements = Vec::new();
        for (number, bench) in benches.iter().enumerate() {
            let counted = bench.count(model, guess, COUNTED, self.interrupted);
            let done = counted.done.share(counted.committed.max(1) as f64);
            let executor = model.price(&AccessCosts::default(), &Default::default(), &done);
            let Done { lookups, scanned, links, installs, kept, marks, pins, .. } = done;
            let mut amounts = vec![lookups, scanned, links, installs, kept, marks, pins];
            match kinds {
                1 => amounts.push(done.attempts.iter().sum()),
                _ => amounts.extend(&done.attempts[..kinds]),
            }
            let of_ns = 1e9 / bench.tps();
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
        AccessCosts {
            attempt_ns,
            lookup_ns,
            scanned_ns,
            link_ns,
            install_ns,
            kept_ns,
            mark_ns,
            pin_ns,
            ..guess
        }
    }

    /// What the prices so far do not explain, of transactions that are more than one step of their
    /// shard: what it costs to coordinate, to carry messages, to lock and to validate, and what an
    /// oracle's scheme adds to each access.
    fn learn_coordination(&self, model: &mut CostModel, benches: &[Bench]) {
        let (gts_ns, vts_ns) = (model.gts.report_ns, model.vts.report_ns);
        // An oracle carries two messages, one that it receives and the answer.
        let (message_ns, oracle_ns) = (2.0 * model.message_ns, 4.0 * model.message_ns);
        let mut guess = [message_ns, 100.0, 20.0, gts_ns, 5.0, oracle_ns, vts_ns, 20.0, oracle_ns].to_vec();
        guess.extend([LOCK_NS; WORKLOADS.len()]);
        guess.extend([COORDINATED_NS; WORKLOADS.len()]);
        guess.extend([VAIN_NS; WORKLOADS.len()]);
        // Counts depend on timing a little, timing on the prices: each time counts with the prices
        // of the time before.
        for time in 1..=REFINED {
            self.progress.note(&format!(
                "what distributed transactions, locks and oracles cost: {} worlds, {time} of {REFINED} times",
                benches.len()
            ));
            let measurements: Vec<Measurement> =
                benches.iter().map(|bench| self.coordinated(model, bench)).collect();
            let prices = fit(&measurements, &guess);
            let (shared, own) = prices.split_at(guess.len() - 3 * WORKLOADS.len());
            let [message_ns, handled_ns, validated_ns, ref oracles @ ..] = *shared else {
                unreachable!("there are as many prices as guesses")
            };
            (model.message_ns, model.handled_ns) = (message_ns, handled_ns);
            model.validated_ns = validated_ns;
            for (costs, prices) in [&mut model.gts, &mut model.vts].into_iter().zip(oracles.chunks(3)) {
                (costs.report_ns, costs.access_ns, costs.message_ns) = (prices[0], prices[1], prices[2]);
            }
            for (number, workload) in WORKLOADS.iter().enumerate() {
                let access = model.access.get_mut(*workload).expect("it was learned");
                let price = |kind: usize| own[kind * WORKLOADS.len() + number];
                (access.lock_ns, access.coordinated_ns, access.vain_ns) = (price(0), price(1), price(2));
            }
        }
    }

    /// What is left to explain of a coordinated transaction's time: cores that wait for messages
    /// are not at work.
    fn coordinated(&self, model: &CostModel, bench: &Bench) -> Measurement {
        let access = &model.access[bench.workload];
        let counted = bench.count(model, *access, COUNTED, self.interrupted);
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
        let under = |scheme, amount| if bench.pair.scheme == scheme { amount } else { 0.0 };
        let own = |amount| WORKLOADS.map(|workload| if workload == bench.workload { amount } else { 0.0 });
        let accesses = done.lookups + done.scanned + done.installs;
        let crowded = if bench.shards > 1 { access.crowded } else { 1.0 };
        // An oracle that shares a thread with a shard takes its time from transactions.
        let (oracle, oracle_busy) = match bench.shards < machine::cores() {
            true => (Done::default(), 0.0),
            false => (counted.oracle.share(counted.committed.max(1) as f64), counted.oracle_busy),
        };
        let busy = (counted.busy.min(1.0) * bench.shards as f64 + oracle_busy).min(machine::cores() as f64);
        let of_ns = busy * 1e9 / bench.tps() / crowded;
        let oracle_costs = OracleCosts { message_ns: 0.0, ..model.oracle(bench.pair.scheme.name()) };
        Measurement {
            amounts: [
                done.messages,
                done.handled,
                done.validated,
                under(Scheme::Gts, done.reports),
                under(Scheme::Gts, accesses),
                under(Scheme::Gts, oracle.messages),
                under(Scheme::Vts, done.reports),
                under(Scheme::Vts, accesses),
                under(Scheme::Vts, oracle.messages),
            ]
            .into_iter()
            .chain(own(done.locks))
            .chain(own(done.coordinated))
            .chain(own(done.vain))
            .collect(),
            nanoseconds: of_ns
                - model.price(access, &OracleCosts::default(), &others)
                - model.oracle_price(&oracle_costs, &oracle),
            of_ns,
        }
    }

    /// Predicts what was measured.
    fn compare(&self, model: &CostModel, benches: &[Bench]) -> Vec<Proof> {
        let mut line = self.progress.line("predicting", benches.len() as u64);
        let mut proofs = Vec::new();
        for bench in benches {
            let (protocol, scheme) = (bench.pair.protocol.name(), bench.pair.scheme.name());
            line.show(proofs.len() as u64, || {
                format!("{} {protocol}/{scheme}, shards: {}", bench.workload, bench.shards)
            });
            let access = model.access[bench.workload];
            let predicted = bench.count(model, access, 4 * COUNTED, self.interrupted);
            if self.interrupted.load(Relaxed) {
                break;
            }
            proofs.push(Proof {
                workload: bench.workload,
                protocol,
                scheme,
                shards: bench.shards,
                predicted_tps: predicted.throughput(),
                measured_tps: bench.tps(),
                predicted_aborts: predicted.abort_rate(),
                measured_aborts: bench.aborts(),
            });
        }
        proofs
    }
}

/// By workload: two shards that have nothing to do with each other.
fn crowded() -> [Vec<Bench>; WORKLOADS.len()] {
    let tpcc = tpcc::Parameters { remote_item_pct: 0.0, remote_payment_pct: 0.0, ..tpcc::Parameters::new(2) };
    let bank = smallbank::Parameters { distributed_pct: 0.0, ..smallbank::Parameters::new(2, ACCOUNTS) };
    let micro = micro::Parameters { distributed_pct: 0.0, ..micro::Parameters::new(2) };
    [
        Bench::all(&[tpcc_of(tpcc)], &LEARNED, 2),
        Bench::all(&[smallbank_of(bank)], &LEARNED, 2),
        Bench::all(&[micro_of(micro)], &LEARNED, 2),
        // Securities are anywhere: TPC-E does not stay on its shard.
        Vec::new(),
    ]
}

/// Distributed transactions on two shards, more of them than usual or fewer, and one shard that
/// asks an oracle.
fn coordinated() -> Vec<Bench> {
    let oracles = [Scheme::Gts, Scheme::Vts]
        .map(|scheme| [Protocol::Occ, Protocol::TwoPl].map(|protocol| Pair { protocol, scheme }));
    let oracles = oracles.as_flattened();
    let micro =
        |distributed_pct| micro_of(micro::Parameters { distributed_pct, ..micro::Parameters::new(2) });
    let tpcc =
        tpcc::Parameters { remote_item_pct: 2.0, remote_payment_pct: 30.0, ..tpcc::Parameters::new(2) };
    let tpcc = [tpcc_of(tpcc)];
    let bank = smallbank::Parameters { distributed_pct: 10.0, ..smallbank::Parameters::new(2, ACCOUNTS) };
    let bank = [smallbank_of(bank)];
    let brokerage = [tpce_of(2, [0, 0, 180, 140, 0, 101, 0, 0])];
    [
        Bench::all(&[2.0, 5.0, 20.0].map(micro), &LEARNED, 2),
        Bench::all(&[micro(5.0), micro(20.0)], oracles, 2),
        Bench::all(&tpcc, &LEARNED, 2),
        Bench::all(&tpcc, oracles, 2),
        Bench::all(&bank, &LEARNED, 2),
        Bench::all(&bank, oracles, 2),
        Bench::all(&brokerage, &LEARNED, 2),
        Bench::all(&brokerage, oracles, 2),
        Bench::all(&tpcc_mixes()[..1], oracles, 1),
        Bench::all(&smallbank_mixes()[..1], oracles, 1),
        Bench::all(&micro_mixes()[..1], oracles, 1),
        Bench::all(&tpce_mixes()[..1], oracles, 1),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every protocol under every scheme, on one shard and, if there are as many cores, on two.
fn proofs(cores: usize) -> Vec<Bench> {
    let schemes = [Scheme::None, Scheme::Rc, Scheme::Dst, Scheme::Gts, Scheme::Vts];
    let pairs =
        [Protocol::Occ, Protocol::TwoPl].map(|protocol| schemes.map(|scheme| Pair { protocol, scheme }));
    let on = |shards: usize| {
        let tpcc = tpcc_of(tpcc::Parameters::new(shards as u32));
        let bank = smallbank_of(smallbank::Parameters::new(shards as u64, ACCOUNTS));
        let distributed_pct = if shards > 1 { 10.0 } else { 0.0 };
        let micro = micro::Parameters { distributed_pct, ..micro::Parameters::new(shards as u64) };
        [
            Bench::all(&[tpcc], pairs.as_flattened(), shards),
            Bench::all(&[bank], pairs.as_flattened(), shards),
            Bench::all(&[micro_of(micro)], pairs.as_flattened(), shards),
            Bench::all(&[tpce_of(shards as u32, tpce::DECK)], pairs.as_flattened(), shards),
        ]
    };
    (1..=2).filter(|&shards| shards <= cores).flat_map(on).flatten().collect()
}

/// Mixes that tell lookups, scans, inserts and updates apart, the standard one first.
fn tpcc_mixes() -> Vec<Arc<dyn AnyWorkload>> {
    let mixes = [
        [45, 43, 4, 4, 4],
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1],
        [10, 0, 0, 1, 0],
    ];
    mixes.map(|mix| tpcc_of(tpcc::Parameters { mix, ..tpcc::Parameters::new(1) })).into()
}

fn smallbank_mixes() -> Vec<Arc<dyn AnyWorkload>> {
    let with = |closed| smallbank::Parameters { closed, ..smallbank::Parameters::new(1, ACCOUNTS) };
    [false, true].map(|closed| smallbank_of(with(closed))).into()
}

fn micro_mixes() -> Vec<Arc<dyn AnyWorkload>> {
    let shares = [(50.0, 50.0), (0.0, 0.0), (0.0, 50.0), (0.0, 100.0), (100.0, 0.0)];
    let with = |(read_only_pct, read_share_pct)| micro::Parameters {
        read_only_pct,
        read_share_pct,
        distributed_pct: 0.0,
        ..micro::Parameters::new(1)
    };
    shares.map(|share| micro_of(with(share))).into()
}

/// The specification's mix, then one kind of customers' transactions each: reads of many prices,
/// of many trades, of a customer's holdings and past orders; orders, with the market's answers.
fn tpce_mixes() -> Vec<Arc<dyn AnyWorkload>> {
    let decks = [
        tpce::DECK,
        [0, 0, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 1, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
    ];
    decks.map(|deck| tpce_of(1, deck)).into()
}

/// TPC-E on `shards` shards. The deck has the number of cards of each kind.
fn tpce_of(shards: u32, deck: [u32; 8]) -> Arc<dyn AnyWorkload> {
    let mut parameters = tpce::Parameters { deck, ..tpce::Parameters::new(shards) };
    (parameters.scale.customers_per_unit, parameters.scale.daily_market_days) = (CUSTOMERS, 30);
    Arc::new(Tpce::new(parameters))
}

fn tpcc_of(parameters: tpcc::Parameters) -> Arc<dyn AnyWorkload> {
    Arc::new(Tpcc::new(parameters).expect("these parameters are possible"))
}

fn smallbank_of(parameters: smallbank::Parameters) -> Arc<dyn AnyWorkload> {
    Arc::new(SmallBank::new(parameters).expect("these parameters are possible"))
}

fn micro_of(parameters: micro::Parameters) -> Arc<dyn AnyWorkload> {
    Arc::new(Micro::new(parameters).expect("these parameters are possible"))
}
