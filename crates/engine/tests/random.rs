//! Random transactions, all at once, on very little data, and then everything that must hold.
//!
//! Under every protocol and scheme, on one to three shards, a few clients per shard run for a
//! fraction of a second. Some run *interactive* transactions that read, write, insert, delete and
//! scan at random and dawdle in between; some run *procedures* with pieces on several shards; some
//! only read, at several stalenesses. All draw from one fixed seed, though threads see to it that
//! no two runs are the same. The transactions are those of the simulator
//! (`plimsoll_sim::workload::random`); here they run on real threads.
//!
//! Afterwards:
//! * the recorded history goes to the checker: serializable, under DST strictly so, in sessions
//!   where there are snapshots;
//! * *values* are checked, to which the checker is blind: a transaction writes its own number
//!   everywhere, so what was read must be what the recorded writer wrote;
//! * transfers moved money about, so its sum is the same in every scan of the accounts;
//! * read-only transactions at snapshots never aborted;
//! * a transaction that reads and writes every row commits at once: no lock was left behind;
//! * under DST the garbage is collected once all is quiet.
//!
//! A stale read-only transaction is recorded as having begun so much earlier: then its promise is
//! the usual one.
//!
//! Left out: faults. Shards share one process and its fate.

mod common;

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use common::Setup;
use plimsoll_engine::Engine;
use plimsoll_runtime::real::Clock;
use plimsoll_sim::client::{Client, ClientResults, Observer};
use plimsoll_sim::workload::random::{self, MAX_STALENESS_NS};
use plimsoll_types::history::{Install, Transaction as Recorded};
use plimsoll_types::{Abort, Partitioning, ShardId, Timestamp};

const SEED: u64 = 20_170_301;
/// How long the clients of one setup run, at least.
const RUN_NS: u64 = 120_000_000;
/// How much each of them commits, at least, however slow the machine.
const COMMITTED: usize = 20;
/// A client that is still running so much later is stuck.
const STUCK: Duration = Duration::from_secs(60);
const CLIENTS_PER_SHARD: u64 = 5;

/// What shards sample at the beginning of a pass. A client on a shard arrives with the pass, so its
/// transactions begin at the sample; they are answered when this says so.
#[derive(Clone)]
struct Times(Clock);

impl Observer for Times {
    fn began(&self, sample: Timestamp) -> u64 {
        sample.0
    }

    fn ended(&self) -> u64 {
        self.0.now().0
    }
}

// The experiment.

#[test]
fn random_transactions_of_occ_are_serializable_under_every_scheme() {
    on_one_to_three_shards("occ");
}

#[test]
fn random_transactions_of_wait_die_are_serializable_under_every_scheme() {
    on_one_to_three_shards("wait_die");
}

#[test]
fn random_transactions_of_wound_wait_are_serializable_under_every_scheme() {
    on_one_to_three_shards("wound_wait");
}

#[test]
fn random_transactions_of_no_wait_are_serializable_under_every_scheme() {
    on_one_to_three_shards("no_wait");
}

#[test]
fn random_transactions_of_client_2pc_are_serializable_under_every_scheme() {
    on_one_to_three_shards("client_2pc");
}

fn on_one_to_three_shards(protocol: &'static str) {
    let setups = (1..=3).flat_map(|shards| common::with_protocol(protocol, shards));
    let told = |setup| run(setup).into_iter().map(move |failure| format!("{setup:?}: {failure}"));
    let failures: Vec<String> = setups.flat_map(told).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What does not hold in a setup.
fn run(setup: Setup) -> Vec<String> {
    let engine = common::start(setup, random::tables(), MAX_STALENESS_NS);
    load(&engine);
    let (done, results) = mpsc::channel();
    for client in 0..CLIENTS_PER_SHARD * setup.shards as u64 {
        start_client(&engine, client, done.clone());
    }
    drop(done);
    let mut left = ClientResults::default();
    for _ in 0..CLIENTS_PER_SHARD * setup.shards as u64 {
        let Ok(one) = results.recv_timeout(STUCK) else {
            return vec!["a client is stuck".to_owned()];
        };
        left.join(one);
    }
    judge(&engine, left)
}

fn load(engine: &Engine) {
    for (partition, table, key, number) in random::rows() {
        let shards = match engine.layout().tables[table.index()].partitioning {
            Partitioning::Everywhere => engine.shards().collect(),
            _ => vec![engine.layout().placement.shard(random::slot(partition))],
        };
        for shard in shards {
            let key = key.clone();
            engine.on_shard(shard, move |shard| shard.load_row(table, &key, &[&number.to_be_bytes()]));
        }
    }
}

fn start_client(engine: &Engine, client: u64, done: Sender<ClientResults>) {
    let shard = ShardId((client / CLIENTS_PER_SHARD) as u16);
    let (pair, times) = (engine.pair(), Times(engine.runtime().clock()));
    engine.spawn_on(shard, move |shard| async move {
        let mut client = Client::new(shard, pair, times, SEED, client as u32);
        let end = client.shard.clock().0 + RUN_NS;
        while client.shard.clock().0 < end || client.left.transactions.len() < COMMITTED {
            client.random().await;
            client.shard.pause().await;
        }
        let _ = done.send(client.left);
    });
}

/// What does not hold after a run.
fn judge(engine: &Engine, mut left: ClientResults) -> Vec<String> {
    let mut failures = Vec::new();
    let pair = engine.pair();
    let serializable = pair.serializable();
    if left.transactions.len() < COMMITTED * CLIENTS_PER_SHARD as usize {
        failures.push(format!("only {} transactions committed", left.transactions.len()));
    }
    if pair.reads_at_snapshots() && left.read_only_aborts > 0 {
        failures.push(format!("{} read-only transactions aborted", left.read_only_aborts));
    }
    if serializable {
        failures.extend(left.torn.iter().take(3).cloned());
    }
    failures.extend(left.broken.iter().take(3).cloned());
    // What was sent last arrives.
    for _ in 0..20 {
        common::round(engine);
    }
    let clock = engine.runtime().clock();
    let begin = clock.now().0;
    let (done, result) = mpsc::channel();
    engine.spawn_on(ShardId(0), move |shard| async move {
        let mut result = random::rewrite_all(&*shard).await;
        // An insert that was undone may be in the way under OCC, until it is collected. A lock
        // would stay.
        for _ in 0..20 {
            if !matches!(result, Err(Abort::Validation)) {
                break;
            }
            result = random::rewrite_all(&*shard).await;
        }
        let _ = done.send(result);
    });
    match result.recv_timeout(STUCK) {
        Ok(Ok(committed)) => {
            let recorded = committed.recorded.map(|recorded| *recorded).unwrap_or_default();
            left.transactions.push(Recorded {
                id: committed.id,
                label: "rewrite all",
                read_only: false,
                timestamp: committed.stamp.filter(|_| pair.has_scalars()),
                session: u32::MAX,
                begin,
                end: clock.now().0,
                writes: Some(committed.writes as u32),
                reads: recorded.reads,
                scans: recorded.scans,
            });
        }
        Ok(Err(abort)) => failures.push(format!("a lock was left behind: {abort}")),
        Err(_) => failures.push("a lock was left behind: the last transaction waits for it".to_owned()),
    }
    common::round(engine);
    let installs: Vec<Vec<Install>> = common::installs(engine);
    failures.extend(random::wrong_values(&left, &installs, &BTreeSet::new()).into_iter().take(3));
    // Under 2PL an oracle's number tells nothing of what was only read.
    let sessions = pair.has_times() || !pair.has_locks();
    let report = common::check(engine, left.transactions, installs, sessions);
    if serializable && !report.passed() {
        failures.push(report.to_string());
    }
    if pair.has_times() {
        let garbage = drain(engine);
        if garbage > 0 {
            failures.push(format!("{garbage} pieces of garbage are left"));
        }
    }
    failures
}

/// How much garbage is left on all shards although nothing runs any more.
fn drain(engine: &Engine) -> u64 {
    let mut garbage = 0;
    for _ in 0..500 {
        let left = |shard| {
            let status = engine.status(shard);
            status.garbage + status.kept
        };
        garbage = engine.shards().map(left).sum();
        if garbage == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    garbage
}
