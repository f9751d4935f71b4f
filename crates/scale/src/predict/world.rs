//! A world in which everything has a price, without its pair.
//!
//! Only the world's own code depends on the pair: what shards do, what they have counted, and how
//! it begins. Clients and readings go through a [`PricedWorld`], and so are compiled once for all
//! pairs.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_runtime::sim::{Carried, Costs, Maker, Usage, Watch, World};
use plimsoll_runtime::{Env, LowWater, ShardEnv, Task};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::envelope::Envelope;
use plimsoll_txn::messages::Common;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::Reads;
use plimsoll_txn::service::Service;
use plimsoll_txn::timestamp::{Scheme, SchemeConfig};
use plimsoll_types::wire::Wire;
use plimsoll_types::{ShardId, TxnId};

use super::model::{Done, KINDS_MAX};
use super::{Cluster, MESSAGE_BYTES, STALE_LATENCIES, Shared};

/// A shard of any pair, in a world that counts what it does.
pub(super) trait PricedShard {
    /// It as clients see it.
    fn any(&self) -> Rc<dyn AnyShard>;

    /// What it has done, ever, with these attempts.
    fn done(&self, attempts: [f64; KINDS_MAX]) -> Done;

    /// A round trip to the oracle. What is all on this shard has been reported by then, for the
    /// channel keeps the order; a transaction that wrote elsewhere reports once that is installed,
    /// which is not waited for. The oracle handles a message more than the paper's, whose report is
    /// the request.
    fn round_trip(&self, oracle: ShardId, txn: TxnId) -> Task;
}

impl<P: LegalPair> PricedShard for ShardEnv<P> {
    fn any(&self) -> Rc<dyn AnyShard> {
        P::any(self.clone())
    }

    fn done(&self, attempts: [f64; KINDS_MAX]) -> Done {
        self.local(|node| done(node, attempts))
    }

    fn round_trip(&self, oracle: ShardId, txn: TxnId) -> Task {
        let nothing = Common::Read { txn, reads: Reads::default() };
        let answer = self.call(oracle, Envelope::Common(nothing));
        Box::pin(async move {
            let _answer = answer.await;
        })
    }
}

/// A world of any pair, without faults.
pub(super) trait PricedWorld {
    /// See [`World::now`].
    fn now(&self) -> u64;
    /// See [`World::observer`].
    fn observer(&self) -> Watch;
    /// See [`World::usage`].
    fn usage(&self, shard: ShardId) -> Usage;
    /// See [`World::run_while`]. The condition is given the virtual time.
    fn run_while(&mut self, condition: &dyn Fn(u64) -> bool);
    /// A shard.
    fn shard(&self, shard: ShardId) -> Rc<dyn PricedShard>;
    /// See [`World::spawn_on`].
    fn spawn_on(&mut self, shard: ShardId, task: Box<dyn FnOnce(Rc<dyn PricedShard>) -> Task>);
}

impl<P: LegalPair> PricedWorld for World<P> {
    fn now(&self) -> u64 {
        World::now(self)
    }

    fn observer(&self) -> Watch {
        World::observer(self)
    }

    fn usage(&self, shard: ShardId) -> Usage {
        World::usage(self, shard)
    }

    fn run_while(&mut self, condition: &dyn Fn(u64) -> bool) {
        World::run_while(self, |world| condition(world.now()));
    }

    fn shard(&self, shard: ShardId) -> Rc<dyn PricedShard> {
        Rc::new(self.env(shard).expect("no shard of a world without faults is down").clone())
    }

    fn spawn_on(&mut self, shard: ShardId, task: Box<dyn FnOnce(Rc<dyn PricedShard>) -> Task>) {
        World::spawn_on(self, shard, |env| task(Rc::new(env)));
    }
}

/// What a shard has done, ever, with these attempts.
fn done<P: LegalPair>(node: &mut P, attempts: [f64; KINDS_MAX]) -> Done {
    let base = node.base();
    let operations = base.store.operations();
    Done {
        attempts,
        lookups: operations.lookups as f64,
        scanned: operations.scanned as f64,
        links: operations.links as f64,
        installs: operations.installs as f64,
        kept: operations.kept as f64,
        marks: base.counters.mark_raises as f64,
        pins: base.counters.pins as f64,
        locks: base.counters.locks as f64,
        validated: base.counters.validated as f64,
        coordinated: base.counters.coordinated as f64,
        vain: base.counters.vain as f64,
        reports: base.counters.reports as f64,
        ..Done::default()
    }
}

/// What the schemes of all shards are told, and of the oracle's, which is the last.
fn configs(cluster: &Cluster, latency_ns: u64) -> Vec<SchemeConfig> {
    let shards = cluster.shards();
    let counters: Vec<_> = (0..=cluster.nodes).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let config = |shard: usize| {
        let process = shard / cluster.shards_per_node;
        SchemeConfig {
            shard: ShardId(shard as u16),
            data_shards: shards,
            max_staleness_ns: if cluster.nodes > 1 { STALE_LATENCIES * latency_ns } else { 0 },
            oracle: cluster.oracle,
            single_version: false,
            process,
            processes: cluster.nodes,
            clients: shards..shards,
            process_counter: counters[process].clone(),
            first_attempt: 1,
            patience_ns: plimsoll_txn::timestamp::PATIENCE_NS,
            logs: false,
        }
    };
    (0..=shards).map(config).collect()
}

/// A world with the empty database of a cluster.
pub(super) fn begin<P: LegalPair>(
    cluster: &Cluster,
    layout: &Layout,
    options: ProtocolOptions,
    shared: &Rc<Shared>,
) -> Box<dyn PricedWorld> {
    let (shards, model) = (cluster.shards(), &shared.model);
    let configs = configs(cluster, model.latency_ns);
    let low_water = LowWater::new(shards, P::Scheme::slots(&configs[0]));
    let makers = (0..shards + usize::from(P::Scheme::ORACLE)).map(|shard| {
        let (layout, config, low_water) = (layout.clone(), configs[shard].clone(), low_water.clone());
        let make = move |_| P::new(Base::new(&layout, &config, low_water.clone()), options);
        Box::new(make) as Maker<P>
    });
    let (oracle, shared) = (shards, shared.clone());
    let mut published = 0;
    let costs = Costs {
        pass: Box::new(move |shard, node: &mut P, pass| {
            if shard.index() != oracle {
                return shared.charge(shard, pass, |attempts| done(node, attempts));
            }
            let outcomes = node.base().scheme.published() - published;
            published += outcomes;
            shared.charge_oracle(shard, pass, outcomes)
        }),
        weight: Box::new(|carried| {
            MESSAGE_BYTES
                + match carried {
                    Carried::Request(request, _) => request.bytes(),
                    Carried::Reply(reply, _) => reply.bytes(),
                }
        }),
        threads: cluster.threads,
        frame_ns: model.frame_ns,
        byte_ns: 8.0 / model.gigabits_per_s,
    };
    let per_machine = cluster.shards_per_node + usize::from(cluster.oracle_inside);
    Box::new(World::with_costs(&model.hardware(per_machine), costs, cluster.seed, makers.collect()))
}
