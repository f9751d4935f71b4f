//! A running database of one process: shards with a protocol, tables, perhaps an oracle.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};

use plimsoll_checker::Install;
use plimsoll_runtime::real::{RealEnv, Runtime};
use plimsoll_runtime::{Env, LowWater};
use plimsoll_store::TableMemory;
use plimsoll_txn::base::{Base, Counters, Layout};
use plimsoll_txn::protocol::{Protocol, ProtocolOptions};
use plimsoll_txn::timestamp::{OracleOptions, Scheme, SchemeConfig};
use plimsoll_types::{Key, ShardId, TableId, TableSpec};

/// Rows loaded in one step of a shard, about 200 µs.
const ROWS_PER_STEP: usize = 1000;

/// How an engine is set up.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Shards that hold data: threads.
    pub shards: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether shard i is bound to core i.
    pub pin: bool,
    /// What the protocol leaves open.
    pub protocol: ProtocolOptions,
    /// How an oracle is asked.
    pub oracle: OracleOptions,
    /// RC only: no older versions.
    pub single_version: bool,
    /// The largest staleness a snapshot may ask for, in nanoseconds.
    pub max_staleness_ns: u64,
    /// Whether every read and every installed version is recorded, for the checker.
    pub record: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            shards: 1,
            seed: 1,
            pin: true,
            protocol: ProtocolOptions::default(),
            oracle: OracleOptions::default(),
            single_version: false,
            max_staleness_ns: 0,
            record: false,
        }
    }
}

/// The shards of a database.
pub struct Engine<P: Protocol> {
    runtime: Runtime<P>,
    layout: RwLock<Layout>,
    shards: usize,
}

impl<P: Protocol> Engine<P> {
    /// Starts the shards with empty tables.
    pub fn start(tables: Vec<TableSpec>, options: EngineOptions) -> std::io::Result<Engine<P>> {
        let layout = Layout::in_one_process(tables, options.shards);
        let process_counter = Arc::new(AtomicU64::new(0));
        let config = |shard| SchemeConfig {
            shard: ShardId(shard as u16),
            data_shards: options.shards,
            max_staleness_ns: options.max_staleness_ns,
            oracle: options.oracle,
            single_version: options.single_version,
            process: 0,
            processes: 1,
            process_counter: process_counter.clone(),
            first_attempt: 1,
            patience_ns: plimsoll_txn::votes::PATIENCE_NS,
        };
        let low_water = LowWater::new(options.shards, P::Scheme::slots(&config(0)));
        let nodes = options.shards + usize::from(P::Scheme::ORACLE);
        let makers = (0..nodes).map(|shard| {
            let (layout, config, low_water) = (layout.clone(), config(shard), low_water.clone());
            let make = move || {
                let mut base = Base::new(&layout, &config, low_water);
                base.installs = options.record.then(Vec::new);
                P::new(base, options.protocol)
            };
            Box::new(make) as Box<dyn FnOnce() -> P + Send>
        });
        let runtime = Runtime::start(makers.collect(), options.seed, options.pin)?;
        Ok(Engine { runtime, layout: RwLock::new(layout), shards: options.shards })
    }

    /// Shards that hold data.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<P> {
        (0..self.shards as u16).map(ShardId)
    }

    /// Tables and placement.
    pub fn layout(&self) -> Layout {
        self.layout.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an empty table. Transactions may use it once this has returned.
    pub fn create_table(&self, spec: TableSpec) -> TableId {
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        for shard in 0..self.runtime.shards() as u16 {
            let spec = spec.clone();
            self.on_shard(ShardId(shard), move |_, base| base.create_table(spec));
        }
        layout.tables = layout.tables.iter().cloned().chain([spec]).collect();
        TableId((layout.tables.len() - 1) as u16)
    }

    /// Puts rows, one value per column group, into a table that nobody uses yet. Each key is loaded once.
    pub fn load(&self, table: TableId, rows: Vec<(Key, Vec<Vec<u8>>)>) {
        let layout = self.layout();
        let partitioning = layout.tables[table.index()].partitioning;
        let mut by_shard = vec![Vec::new(); self.shards];
        for row in rows {
            match partitioning.slot(&row.0) {
                Some(slot) => by_shard[layout.placement.shard(slot).index()].push(row),
                None => by_shard.iter_mut().for_each(|rows| rows.push(row.clone())),
            }
        }
        for (shard, mut rows) in self.shards().zip(by_shard) {
            while !rows.is_empty() {
                let rest = rows.split_off(rows.len().min(ROWS_PER_STEP));
                let step = std::mem::replace(&mut rows, rest);
                self.on_shard(shard, move |_, base| {
                    for (key, values) in step {
                        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
                        base.store.load(table, &key, &values);
                    }
                });
            }
        }
    }

    /// The threads.
    pub fn runtime(&self) -> &Runtime<P> {
        &self.runtime
    }

    /// Looks at a shard's share of the database, between two of its steps.
    pub fn on_shard<R: Send + 'static>(
        &self,
        shard: ShardId,
        look: impl FnOnce(&RealEnv<P>, &mut Base<P::Scheme>) -> R + Send + 'static,
    ) -> R {
        self.runtime.run_on(shard, move |env| async move {
            let inner = env.clone();
            env.local(move |node| look(&inner, node.base()))
        })
    }

    /// Rows and bytes of every table over all shards.
    pub fn memory(&self) -> Vec<TableMemory> {
        let mut total = vec![TableMemory::default(); self.layout().tables.len()];
        for shard in self.shards() {
            let tables = total.len();
            let here = self.on_shard(shard, move |_, base| {
                (0..tables).map(|table| base.store.memory(TableId(table as u16))).collect::<Vec<_>>()
            });
            for (sum, table) in total.iter_mut().zip(here) {
                sum.rows += table.rows;
                sum.bytes += table.bytes;
            }
        }
        total
    }

    /// What a shard has counted, and how many messages it has sent to others.
    pub fn counters(&self, shard: ShardId) -> (Counters, u64) {
        self.on_shard(shard, |env, base| (base.counters, env.messages()))
    }

    /// Takes what a shard has recorded: the versions it installed, in order.
    pub fn take_installs(&self, shard: ShardId) -> Vec<Install> {
        self.on_shard(shard, |_, base| base.installs.as_mut().map(std::mem::take).unwrap_or_default())
    }
}
