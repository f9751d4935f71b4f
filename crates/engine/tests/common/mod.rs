//! What the integration tests share: every protocol under every timestamp scheme, and the way from
//! a running database to the checker.
//!
//! A *setup* is a protocol with its lock policy, a scheme, and a number of shards.

// Each test file uses its part.
#![allow(dead_code)]

use plimsoll_checker::{Options, Report};
use plimsoll_engine::{Engine, EngineOptions};
use plimsoll_txn::attempt::{LockPolicy, ProtocolOptions};
use plimsoll_txn::pairs::{LEGAL_PAIRS, Pair, Protocol};
use plimsoll_types::history::{History, Install, Transaction, of_one_copy};
use plimsoll_types::{ColumnGroup, Partitioning, ShardId, TableSpec};

/// What the database under test is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// `occ`, `client_2pc`, or 2PL by the name of its lock policy.
    pub protocol: &'static str,
    /// Its protocol and scheme.
    pub pair: Pair,
    /// Only of interest to 2PL.
    pub lock_policy: LockPolicy,
    /// How many shards hold data.
    pub shards: usize,
}

/// All protocols, 2PL with each lock policy, in the order of reports.
pub const PROTOCOLS: [&str; 5] = ["occ", "wait_die", "wound_wait", "no_wait", "client_2pc"];
/// The schemes, in the order of reports.
pub const SCHEMES: [&str; 5] = ["dst", "gts", "vts", "none", "rc"];

/// Every protocol and lock policy with every scheme that it can have.
pub fn everywhere(shards: usize) -> impl Iterator<Item = Setup> {
    PROTOCOLS.into_iter().flat_map(move |protocol| with_protocol(protocol, shards))
}

/// One protocol with every scheme that it can have.
pub fn with_protocol(protocol: &'static str, shards: usize) -> Vec<Setup> {
    let lock_policy = match protocol {
        "wound_wait" => LockPolicy::WoundWait,
        "no_wait" => LockPolicy::NoWait,
        _ => LockPolicy::WaitDie,
    };
    let of = match protocol {
        "occ" => Protocol::Occ,
        "client_2pc" => Protocol::Client2pc,
        _ => Protocol::TwoPl,
    };
    let setup = |scheme: &str| {
        let pair = LEGAL_PAIRS.iter().find(|pair| (pair.protocol, pair.scheme.name()) == (of, scheme));
        pair.map(|&pair| Setup { protocol, pair, lock_policy, shards })
    };
    SCHEMES.into_iter().filter_map(setup).collect()
}

/// Starts a database that records everything. Its threads float: tests run side by side.
pub fn start(setup: Setup, tables: Vec<TableSpec>, max_staleness_ns: u64) -> Engine {
    let options = EngineOptions {
        shards: setup.shards,
        pin: None,
        protocol: ProtocolOptions { lock_policy: setup.lock_policy, ..ProtocolOptions::default() },
        max_staleness_ns,
        record: true,
        ..EngineOptions::default()
    };
    Engine::start(setup.pair, tables, options).expect("a test may start a few threads")
}

/// Makes every shard, the oracle's included, take a pass, one after the other: what a shard had
/// sent before is on its way, and what had arrived is handled. Returns how many messages shards
/// have sent each other so far.
pub fn round(engine: &Engine) -> u64 {
    let shards = (0..engine.runtime().shards() as u16).map(ShardId);
    shards.map(|shard| engine.on_shard(shard, |shard| shard.messages())).sum()
}

/// What every shard has installed, in order.
pub fn installs(engine: &Engine) -> Vec<Vec<Install>> {
    engine.shards().map(|shard| engine.take_installs(shard)).collect()
}

/// What the recorded history of a database promises, and whether it keeps it.
pub fn check(
    engine: &Engine,
    transactions: Vec<Transaction>,
    mut installs: Vec<Vec<Install>>,
    sessions: bool,
) -> Report {
    let tables = engine.layout().tables.clone();
    let copied = |column: ColumnGroup| tables[column.table.index()].partitioning == Partitioning::Everywhere;
    assert_eq!(of_one_copy(&mut installs, copied), [0; 0], "copies of a table have got different versions");
    let pair = engine.pair();
    let snapshots = pair.has_snapshots();
    let options = Options {
        scalar: pair.has_scalars() && snapshots,
        // In one process the clock has no error, so DST is strict; the other schemes promise less.
        realtime: pair.has_times(),
        sessions: sessions && snapshots,
        complete: true,
    };
    let names = |column: ColumnGroup| tables[column.table.index()].name.clone();
    let mut history = History { transactions, installs };
    if options.scalar && history.transactions.iter().any(|txn| txn.timestamp.is_none()) {
        // A read-write transaction that wrote nothing has no GTS number. It is part of the graph,
        // which needs none, but cannot be replayed.
        let report =
            plimsoll_checker::check(&history, Options { complete: true, ..Options::default() }, &names);
        if !report.passed() {
            return report;
        }
        history.transactions.retain(|txn| txn.timestamp.is_some() || txn.writes != Some(0));
    }
    plimsoll_checker::check(&history, options, &names)
}
