//! Clients: closed loops of transactions on a shard.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use plimsoll_engine::Engine;
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::{Attempt, Committed};
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::history::{Read, ScanRead, Transaction};
use plimsoll_types::wire::{Input, Malformed, Sink, Wire};
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};
use plimsoll_workloads::{AnyClient, AnyWorkload, Kind, Tally};

use super::site::{Control, Phase};
use crate::cli::plan::{BenchPlan, CLIENTS_MAX};

/// The longest back-off after repeated aborts, in nanoseconds, within a process and between
/// processes: some times as long as a distributed transaction holds its locks.
pub const BACK_OFF_MAX_NS: [u64; 2] = [64_000, 1_000_000];

/// A transaction that is refused this often in a row lacks a row that it needs. A shard that takes
/// the client for dead refuses one or a few.
const REFUSALS_MAX: u32 = 100;

/// Longer latencies count as this long, in nanoseconds.
const LATENCY_MAX_NS: u64 = 100_000_000_000;

/// What is counted per transaction type, while it counts.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Committed transactions.
    pub committed: u64,
    /// Those that took more than one shard.
    pub distributed: u64,
    /// Records written by committed transactions.
    pub written: u64,
    /// Aborted attempts by reason.
    pub aborts: [u64; Abort::ALL.len()],
    /// Rows that they have read, if they count them.
    pub read: Option<u64>,
    /// Nanoseconds from the first attempt to the answer.
    pub latency: Histogram<u64>,
}

impl Default for Counts {
    fn default() -> Counts {
        let latency = Histogram::new_with_max(LATENCY_MAX_NS, 3).expect("three digits are possible");
        Counts { committed: 0, distributed: 0, written: 0, read: None, aborts: Default::default(), latency }
    }
}

impl Counts {
    /// Adds another shard's counts.
    pub fn add(&mut self, other: &Counts) {
        self.committed += other.committed;
        self.distributed += other.distributed;
        self.written += other.written;
        self.read = match (self.read, other.read) {
            (None, None) => None,
            (mine, other) => Some(mine.unwrap_or(0) + other.unwrap_or(0)),
        };
        self.aborts.iter_mut().zip(other.aborts).for_each(|(mine, other)| *mine += other);
        self.latency.add(&other.latency).expect("histograms of the same size can be added");
    }
}

/// A histogram travels as its values and how often each occurred.
impl Wire for Counts {
    fn encode(&self, out: &mut impl Sink) {
        (self.committed, self.distributed, self.written).encode(out);
        self.read.encode(out);
        let latencies: Vec<(u64, u64)> =
            self.latency.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect();
        (self.aborts.to_vec(), latencies).encode(out);
    }

    fn decode(input: &mut Input<'_>) -> Result<Counts, Malformed> {
        let (committed, distributed, written) = Wire::decode(input)?;
        let read = Wire::decode(input)?;
        let (aborts, latencies): (Vec<u64>, Vec<(u64, u64)>) = Wire::decode(input)?;
        let aborts = aborts.try_into().map_err(|_| Malformed("a wrong number of reasons to abort"))?;
        let mut counts = Counts { committed, distributed, written, read, aborts, ..Counts::default() };
        for (latency, count) in latencies {
            counts.latency.saturating_record_n(latency, count);
        }
        Ok(counts)
    }
}

/// What a shard's clients, or those of several shards, leave behind.
#[derive(Default)]
pub struct Finished {
    /// By transaction type, the measured interval only.
    pub counts: Vec<Counts>,
    /// Everything since the load.
    pub tally: Tally,
    /// Every committed transaction, if the run is recorded.
    pub recorded: Vec<Recorded>,
}

plimsoll_types::wire!(struct Finished { counts, tally; recorded });

impl Finished {
    /// Adds what others have left.
    pub fn add(&mut self, other: Finished) {
        self.counts.resize(self.counts.len().max(other.counts.len()), Counts::default());
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, other)| mine.add(other));
        self.tally.add(&other.tally);
        self.recorded.extend(other.recorded);
    }
}

/// A committed transaction, as its client saw it.
pub struct Recorded {
    kind: u16,
    id: TxnId,
    timestamp: Option<Timestamp>,
    session: u32,
    begin: u64,
    end: u64,
    writes: u32,
    reads: Vec<Read>,
    scans: Vec<ScanRead>,
}

plimsoll_types::wire!(struct Recorded { kind, id, timestamp, session, begin, end, writes, reads, scans });

impl Recorded {
    fn new(committed: Committed, kind: usize, session: u32, begin: u64, end: u64) -> Recorded {
        let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
        Recorded {
            kind: kind as u16,
            id: committed.id,
            timestamp: committed.stamp,
            session,
            begin,
            end,
            writes: committed.writes as u32,
            reads: recorded.reads,
            scans: recorded.scans,
        }
    }

    /// For the checker. The snapshot of a read-only transaction may be `staleness_ns` nanoseconds
    /// old.
    pub fn transaction(self, kinds: &[Kind], staleness_ns: u64) -> Transaction {
        let Recorded { kind, id, timestamp, session, begin, end, writes, reads, scans } = self;
        let declared = kinds[usize::from(kind)];
        let begin = if declared.read_only { begin.saturating_sub(staleness_ns) } else { begin };
        Transaction {
            id,
            label: declared.name,
            read_only: declared.read_only,
            timestamp,
            session,
            begin,
            end,
            writes: Some(writes),
            reads,
            scans,
        }
    }
}

struct Shared {
    kinds: &'static [Kind],
    finished: RefCell<Finished>,
    clients: Cell<usize>,
    done: Cell<Option<Sender<Finished>>>,
}

/// Starts a shard's clients. When all have ended, what they have counted is sent. `run_bits`
/// distinguishes the clients from those of other runs on the same data; its lower 16 bits are zero.
pub fn start(
    engine: &Engine,
    shard: ShardId,
    workload: &Arc<dyn AnyWorkload>,
    plan: &BenchPlan,
    control: &Arc<Control>,
    run_bits: usize,
    done: Sender<Finished>,
) {
    let (workload, control, placement) =
        (workload.clone(), control.clone(), engine.layout().placement.clone());
    let clients = plan.concurrency;
    let all_clients = (clients * plan.coordinators) as u64;
    let interval_ns = plan.rate.map(|rate| all_clients * 1_000_000_000 / rate);
    let staleness_ns = plan.staleness.as_nanos() as u64;
    let scalar = engine.pair().has_scalars();
    engine.spawn_on(shard, move |env| async move {
        let shared = Rc::new(Shared {
            kinds: workload.kinds(),
            finished: RefCell::new(Finished {
                counts: vec![Counts::default(); workload.kinds().len()],
                tally: workload.no_tally(),
                recorded: Vec::new(),
            }),
            clients: Cell::new(clients),
            done: Cell::new(Some(done)),
        });
        for number in 0..clients {
            // On a cluster a client's shard comes after all nodes', which may use up the numbers.
            let number = (shard.index() * clients + number) % CLIENTS_MAX;
            let client = workload.client(run_bits | number, shard, &|slot| placement.shard(slot));
            let (control, shared) = (control.clone(), shared.clone());
            let inner = env.clone();
            let pace = interval_ns.map(|interval_ns| {
                // The clients take turns.
                let first = env.clock().0 + interval_ns * (number as u64 % all_clients) / all_clients;
                Pace { interval_ns, due: first }
            });
            env.start(Box::pin(async move {
                let client = (client, number as u32, pace);
                run(&*inner, client, staleness_ns, scalar, &control, &shared).await;
                shared.clients.set(shared.clients.get() - 1);
                if shared.clients.get() == 0
                    && let Some(done) = shared.done.take()
                {
                    let _ = done.send(shared.finished.take());
                }
            }));
        }
    });
}

/// When a client's transactions are due.
struct Pace {
    interval_ns: u64,
    /// The next one.
    due: u64,
}

/// A transaction of the mix that consists of several, as far as they have committed.
#[derive(Clone, Copy, Default)]
struct Begun {
    parts: u32,
    /// When the first began, on the run's clock, and how much too late that was.
    begin: u64,
    late_ns: u64,
    /// Whether one of them took more than one shard.
    distributed: bool,
    /// Records that they wrote.
    written: u64,
}

/// The longest sleep between two looks whether the run goes on, in nanoseconds.
const DOZE_MAX_NS: u64 = 50_000_000;

/// One client, until the run stops.
async fn run(
    env: &dyn AnyShard,
    (mut client, session, mut pace): (Box<dyn AnyClient>, u32, Option<Pace>),
    staleness_ns: u64,
    scalar: bool,
    control: &Control,
    shared: &Shared,
) {
    let mut coordinator = env.coordinator();
    let live = control.live(env.shard());
    let freshness = Freshness { staleness_ns, at_least: Timestamp::ZERO };
    let mut begun = vec![Begun::default(); shared.kinds.len()];
    loop {
        let phase = control.phase();
        if phase == Phase::Stop {
            return;
        }
        let mut late_ns = 0;
        if let Some(pace) = &mut pace {
            let now = env.clock().0;
            if now < pace.due {
                env.sleep((pace.due - now).min(DOZE_MAX_NS)).await;
                continue;
            }
            late_ns = now - pace.due;
            pace.due += pace.interval_ns;
        }
        let kind = client.draw(env.clock().0);
        let begin = control.clock.raw();
        // The request of a client on another machine would have been in the inbox when this pass
        // began.
        let attempt = Attempt { age: env.clock().0, freshness };
        let (mut aborts, mut refusals) = (0u32, 0u32);
        let committed = loop {
            match coordinator.execute(attempt, client.procedure()).await {
                Ok(()) => break true,
                Err(abort) => {
                    if phase == Phase::Measure {
                        shared.finished.borrow_mut().counts[kind].aborts[abort.index()] += 1;
                    }
                    if abort == Abort::User {
                        break false;
                    }
                    if matches!(abort, Abort::Full | Abort::DiskFull) {
                        // Nearly every write would be refused from now on, so the run is over.
                        control.full.store(true, Relaxed);
                        break false;
                    }
                    refusals = if abort == Abort::Refused { refusals + 1 } else { 0 };
                    if refusals == REFUSALS_MAX {
                        // The first one that is told ends the run.
                        let _ = control.refused.set(shared.kinds[kind].name);
                        break false;
                    }
                    live.1.store(live.1.load(Relaxed) + 1, Relaxed);
                    aborts += 1;
                }
            }
            env.pause().await;
            if aborts > 2 {
                let limit = (1000 << aborts.min(16)).min(control.back_off_max_ns);
                env.sleep(env.random() % limit).await;
            }
        };
        if committed {
            let committed = coordinator.committed();
            let (per, group) = (shared.kinds[kind].per, &mut begun[kind]);
            if group.parts == 0 {
                *group = Begun { late_ns, begin, ..Begun::default() };
            }
            group.parts += 1;
            group.distributed |= committed.shards > 1;
            group.written += committed.writes as u64;
            let whole = group.parts >= per;
            live.0.store(live.0.load(Relaxed) + u64::from(whole && per > 0), Relaxed);
            let mut finished = shared.finished.borrow_mut();
            finished.tally.committed[kind] += 1;
            client.tally(&mut finished.tally.sums);
            if whole {
                let group = std::mem::take(group);
                if phase == Phase::Measure && control.phase() == Phase::Measure {
                    let counts = &mut finished.counts[kind];
                    counts.committed += 1;
                    counts.distributed += u64::from(group.distributed);
                    counts.written += group.written;
                    if let Some(rows) = client.rows_read() {
                        counts.read = Some(counts.read.unwrap_or(0) + u64::from(rows));
                    }
                    let latency = control.clock.delta_as_nanos(group.begin, control.clock.raw());
                    counts.latency.saturating_record(group.late_ns + latency);
                }
            }
            if committed.recorded.is_some() {
                let (begin, end) = (attempt.age, control.shards_clock.now().0);
                let mut committed = std::mem::take(committed);
                committed.stamp = committed.stamp.filter(|_| scalar);
                finished.recorded.push(Recorded::new(committed, kind, session, begin, end));
            }
        }
        client.done(committed);
        // Everybody gets a turn before the next transaction, unless this one has already waited.
        if env.clock().0 == attempt.age {
            env.pause().await;
        }
    }
}
