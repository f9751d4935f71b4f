//! A world without its pair.
//!
//! Only the world's own code depends on the pair: what shards do, and how it begins. Everything
//! else that happens to a world, from its clients to its judge, goes through an [`AnyWorld`], and
//! so is compiled once for all pairs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_replication::{Identity, Settings};
use plimsoll_runtime::sim::{Faults, Maker, Occurrence, Watch, World};
use plimsoll_runtime::{Env, LowWater, ShardEnv, Task, Tasks};
use plimsoll_store::Visited;
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::base::{Base, Layout, OnInstall};
use plimsoll_txn::envelope::Envelope;
use plimsoll_txn::messages::Common;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::{Reads, Scan};
use plimsoll_txn::timestamp::{Freshness, OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::trace::Step;
use plimsoll_types::history::Install;
use plimsoll_types::{ColumnGroup, IndexKind, Key, Order, ShardId, TableId, TableSpec, Timestamp, TxnId};

use crate::online::Online;
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::workload::random;

/// A log of small segments, so that a world has many, with an image every some 64 entries.
const LOG: Settings = Settings { segment_bytes: 16 << 10, image_bytes: 8 << 10 };
/// How far ahead of a clock the timestamps are that should not be believed, in nanoseconds.
const HOUR_NS: u64 = 3_600_000_000_000;
/// How many keys of a hash table a read in the future tries.
const KEYS_READ: u64 = 64;

/// A world of any pair.
pub(crate) trait AnyWorld {
    /// See [`World::now`].
    fn now(&self) -> u64;
    /// See [`World::true_time`].
    fn true_time(&self) -> Timestamp;
    /// See [`World::clock_error_ns`].
    fn clock_error_ns(&self) -> u64;
    /// See [`World::observer`].
    fn observer(&self) -> Watch;
    /// See [`World::step`].
    fn step(&mut self) -> bool;
    /// See [`World::hash`].
    fn hash(&self) -> u64;
    /// See [`World::occurrences`].
    fn occurrences(&self) -> &[Occurrence];
    /// See [`World::heal_all`].
    fn heal_all(&mut self);
    /// See [`World::set_clocks`].
    fn set_clocks(&mut self);
    /// See [`World::spare`].
    fn spare(&mut self, spared: bool);
    /// See [`World::spawn_on`].
    fn spawn_on(&mut self, shard: ShardId, task: Box<dyn FnOnce(Rc<dyn AnyShard>) -> Task>);
    /// See [`World::on_start`].
    fn on_start(&mut self, beginning: Box<dyn Fn(Rc<dyn AnyShard>)>);
    /// A shard in its present life; `None` while it is down.
    fn shard(&self, shard: ShardId) -> Option<Rc<dyn AnyShard>>;
    /// Takes the steps that were recorded on a shard since the last time, and reads its clock.
    fn take_steps(&self, shard: ShardId) -> Option<(Timestamp, Vec<Step>)>;
    /// The newest versions of a table's rows on a shard, in key order.
    fn newest_rows(&self, shard: ShardId, column: ColumnGroup) -> Option<Vec<(Key, Timestamp, Vec<u8>)>>;
}

impl<P: LegalPair> AnyWorld for World<P> {
    fn now(&self) -> u64 {
        World::now(self)
    }

    fn true_time(&self) -> Timestamp {
        World::true_time(self)
    }

    fn clock_error_ns(&self) -> u64 {
        World::clock_error_ns(self)
    }

    fn observer(&self) -> Watch {
        World::observer(self)
    }

    fn step(&mut self) -> bool {
        World::step(self)
    }

    fn hash(&self) -> u64 {
        World::hash(self)
    }

    fn occurrences(&self) -> &[Occurrence] {
        World::occurrences(self)
    }

    fn heal_all(&mut self) {
        World::heal_all(self);
    }

    fn set_clocks(&mut self) {
        World::set_clocks(self);
    }

    fn spare(&mut self, spared: bool) {
        World::spare(self, spared);
    }

    fn spawn_on(&mut self, shard: ShardId, task: Box<dyn FnOnce(Rc<dyn AnyShard>) -> Task>) {
        World::spawn_on(self, shard, |env| task(P::any(env)));
    }

    fn on_start(&mut self, beginning: Box<dyn Fn(Rc<dyn AnyShard>)>) {
        World::on_start(self, move |env| beginning(P::any(env.clone())));
    }

    fn shard(&self, shard: ShardId) -> Option<Rc<dyn AnyShard>> {
        self.env(shard).cloned().map(P::any)
    }

    fn take_steps(&self, shard: ShardId) -> Option<(Timestamp, Vec<Step>)> {
        let steps = self.node(shard, |node| node.base().steps.as_mut().map(std::mem::take)).flatten()?;
        Some((self.env(shard)?.clock(), steps))
    }

    fn newest_rows(&self, shard: ShardId, column: ColumnGroup) -> Option<Vec<(Key, Timestamp, Vec<u8>)>> {
        self.node(shard, |node| {
            let mut rows = Vec::new();
            node.base().store.scan(column.table, &Key::MIN, None, |found, visited| {
                if let Visited::Row(row) = visited
                    && let Some(value) = found.newest(row, column.group).map(<[u8]>::to_vec)
                {
                    rows.push((found.key(row), found.record(row, column.group).stamp(), value));
                }
                ControlFlow::Continue(())
            });
            rows
        })
    }
}

/// What a world is made of, but for the pair.
pub(crate) struct Blueprint<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) layout: &'a Layout,
    pub(crate) options: ProtocolOptions,
    /// Keeps what happens in the world.
    pub(crate) recorder: Option<&'a Recorder>,
    /// Watches timestamps.
    pub(crate) online: Option<Rc<RefCell<Online>>>,
    /// By shard: what it installed in all its lives, if shards log.
    pub(crate) lives: &'a [Rc<RefCell<Lives>>],
}

/// What a shard has installed in all its lives. An image has the newest versions only, so a shard
/// that comes back does not install all of it again.
#[derive(Default)]
pub(crate) struct Lives {
    /// With the indexes of the entries that they are in, and their places among those of all
    /// shards.
    installs: Vec<(u64, u64, Install)>,
    /// What the log has again, perhaps: places, by index and transaction and record.
    before: BTreeMap<(u64, TxnId, ColumnGroup, Key), u64>,
    /// How often the shard came back from an image.
    pub(crate) from_images: u64,
    /// The cuts to which it went back, and when, in nanoseconds of the true time.
    pub(crate) cuts: Vec<(u64, Timestamp)>,
    /// What tells that time.
    pub(crate) watch: Option<Watch>,
}

impl Lives {
    /// The log is read from this index, or has been read to its end. What an earlier life had
    /// behind the index, and is no more, was not on disk; and what is installed again later is new.
    fn replays(&mut self, from: Option<u64>) {
        let Some(from) = from else { return self.before.clear() };
        let again = self.installs.extract_if(.., |(index, ..)| *index >= from);
        let known =
            again.map(|(index, place, install)| ((index, install.txn, install.column, install.key), place));
        // It may be read more than once, if the disk fails.
        self.before.extend(known);
        self.from_images += u64::from(from > 0);
    }

    /// A version was installed. `next` counts those of all shards.
    fn installed(&mut self, index: u64, install: &Install, next: &Cell<u64>) {
        let Install { txn, column, ref key, .. } = *install;
        let known = self.before.remove(&(index, txn, column, key.clone()));
        let place = known.unwrap_or_else(|| next.replace(next.get() + 1));
        self.installs.push((index, place, install.clone()));
    }

    /// The transactions that have installed something.
    pub(crate) fn transactions(&self) -> Vec<TxnId> {
        self.installs.iter().map(|(.., install)| install.txn).collect()
    }

    /// What is above a cut has never been; perhaps it is gone only now.
    fn goes_back(&mut self, cut: Timestamp, now: bool) {
        self.installs.retain(|(.., install)| install.stamp <= cut);
        let now = self.watch.as_ref().filter(|_| now).map(|watch| watch.true_time().0);
        self.cuts.extend(now.map(|now| (now, cut)));
    }
}

/// Takes what shards installed, in order. Versions of a record that is not copied are all with the
/// shard that installed the first of them, wherever it moved.
pub(crate) fn take_installs(
    lives: &[Rc<RefCell<Lives>>],
    is_copied: impl Fn(TableId) -> bool,
) -> Vec<Vec<Install>> {
    let of_shard = |(shard, lives): (usize, &Rc<RefCell<Lives>>)| {
        let installs = std::mem::take(&mut lives.borrow_mut().installs);
        installs.into_iter().map(move |(_, place, install)| (place, shard, install)).collect::<Vec<_>>()
    };
    let mut all: Vec<(u64, usize, Install)> = lives.iter().enumerate().flat_map(of_shard).collect();
    all.sort_by_key(|(place, ..)| *place);
    let (mut homes, mut installs) = (BTreeMap::new(), vec![Vec::new(); lives.len()]);
    for (_, shard, install) in all {
        let home = match is_copied(install.column.table) {
            true => shard,
            false => *homes.entry((install.column, install.key.clone())).or_insert(shard),
        };
        installs[home].push(install);
    }
    installs
}

impl Blueprint<'_> {
    /// What the schemes of all shards are told, and of the oracle's, which is the last.
    fn configs(&self) -> Vec<SchemeConfig> {
        let (plan, shards) = (self.plan, self.plan.shards_in_all());
        let members = match plan.fronts {
            0 => self.plan.machine(shards - 1) + 1,
            _ => plan.without_data().start,
        };
        let counters: Vec<_> = (0..=self.plan.machine(shards)).map(|_| Arc::new(AtomicU64::new(0))).collect();
        let config = |shard: usize| SchemeConfig {
            shard: ShardId(shard as u16),
            data_shards: shards,
            max_staleness_ns: random::MAX_STALENESS_NS,
            oracle: OracleOptions {
                batch: !plan.seed.is_multiple_of(3),
                compress: plan.seed.is_multiple_of(2),
                prefetch: plan.seed.is_multiple_of(5),
            },
            single_version: false,
            process: self.plan.machine(shard),
            processes: members,
            clients: shards.min(members * plan.hardware.shards_per_machine as usize)..shards,
            process_counter: counters[self.plan.machine(shard)].clone(),
            first_attempt: 1,
            patience_ns: plan.patience_ns(),
            logs: plan.logs,
        };
        (0..=shards).map(config).collect()
    }

    /// The faults of the world. Machines with data never crash by themselves unless shards log, nor
    /// does the oracle's, whatever the plan says: nothing makes up for what they forget.
    fn faults(&self) -> Faults {
        let none_crashes = self.plan.mortal().is_empty();
        let crashes_per_s = if none_crashes { 0.0 } else { self.plan.faults.crashes_per_s };
        Faults { crashes_per_s, ..self.plan.faults.clone() }
    }

    /// The world under a pair.
    pub(crate) fn begin<P: LegalPair>(&self) -> Box<dyn AnyWorld> {
        let (plan, shards) = (self.plan, self.plan.shards_in_all());
        let configs = self.configs();
        let slots = P::Scheme::slots(&configs[0]);
        let low_waters = LowWaters::of_machines(self, slots);
        let (watched, logs, database) = (self.recorder.is_some(), plan.logs, plan.seed);
        let oracle = shards;
        let (data_shards, to_cut, places) = (plan.shards, plan.to_cut, Rc::new(Cell::new(0)));
        let makers = (0..shards + usize::from(P::Scheme::ORACLE)).map(|shard| {
            let (layout, config, options) = (self.layout.clone(), configs[shard].clone(), self.options);
            let low_waters = (shard != oracle).then(|| low_waters[self.plan.machine(shard)].clone());
            let (online, lives) = (self.online.clone(), self.lives.get(shard).cloned());
            let next = places.clone();
            let make = move |life| {
                let next = next.clone();
                let config = SchemeConfig { first_attempt: life, ..config.clone() };
                // The oracle has none; it is given any.
                let none = || LowWater::among(0..1, slots, &[]);
                let low_water = low_waters.as_ref().map_or_else(none, |low_waters| low_waters.in_life(life));
                let mut base = Base::new(&layout, &config, low_water);
                base.installs = Some(Vec::new());
                base.on_install = online.clone().map(told);
                base.steps = watched.then(Vec::new);
                match &lives {
                    Some(lives) if logs && shard < data_shards => {
                        let (lives, replays, cuts) = (lives.clone(), lives.clone(), lives.clone());
                        base.on_replay = Some(Box::new(move |from| replays.borrow_mut().replays(from)));
                        base.on_install = Some(Box::new(move |index, install| {
                            lives.borrow_mut().installed(index, install, &next);
                        }));
                        let identity = Identity { database, shard: shard as u16, lineage: 0 };
                        base.on_cut = Some(Box::new(move |cut, now| cuts.borrow_mut().goes_back(cut, now)));
                        base.log(identity, LOG, to_cut);
                    }
                    // The oracle installs nothing.
                    _ if logs && shard == oracle => {
                        base.log(Identity { database, shard: shard as u16, lineage: 0 }, LOG, false);
                    }
                    // As a client's, it begins anew after a crash.
                    _ if to_cut => base.others_go_back(),
                    _ if logs => base.others_log(),
                    _ => {}
                }
                P::new(base, options)
            };
            Box::new(make) as Maker<P>
        });
        let mut world = World::new(&plan.hardware, &self.faults(), plan.seed, makers.collect());
        world.skip(plan.skip.iter().copied());
        if !plan.mortal().is_empty() {
            world.only_crash(plan.mortal());
        }
        if to_cut {
            world.crash_together();
            let watch = world.observer();
            self.lives.iter().for_each(|lives| lives.borrow_mut().watch = Some(watch.clone()));
        }
        // Rows are loaded first.
        world.spare(plan.logs);
        if plan.encoded {
            world.encode();
        }
        if plan.faults.future_stamps_per_s > 0.0 {
            let (config, tables) = (configs[0].clone(), self.layout.tables.clone());
            world.lie_by(move |env, to| read_in_the_future(env, to, &config, &tables));
        }
        if let Some(recorder) = self.recorder {
            recorder.listen(&mut world);
        }
        Box::new(world)
    }
}

/// Has a shard read all ordered tables of another, and some keys of the others, at a snapshot an
/// hour ahead of its clock, if the scheme has such snapshots.
fn read_in_the_future<P: LegalPair>(
    env: &ShardEnv<P>,
    to: ShardId,
    config: &SchemeConfig,
    tables: &[TableSpec],
) {
    let mut liar = P::Scheme::new(config);
    liar.tick(Timestamp(env.clock().0 + HOUR_NS));
    let Some(snapshot) = liar.snapshot(Freshness::default()) else { return };
    let read = env.local(|node| {
        let base = node.base();
        let mut reads = Reads::default();
        for (table, spec) in (0..).map(TableId).zip(tables) {
            if spec.index == IndexKind::Ordered {
                let scan = Scan {
                    column: table.row(),
                    low: Key::MIN,
                    high: None,
                    limit: usize::MAX,
                    order: Order::Ascending,
                };
                reads.scan(scan);
                continue;
            }
            for key in (0..KEYS_READ).map(Key::of_u64).filter(|key| base.home(table, key) == to) {
                reads.get(table.row(), key);
            }
        }
        base.seal(to, &mut reads);
        Common::read_at(base.next_id(), snapshot, reads)
    });
    env.send(to, Envelope::Common(read));
}

/// Tells what watches timestamps of what is installed.
fn told(online: Rc<RefCell<Online>>) -> OnInstall {
    Box::new(move |_, install| online.borrow_mut().installed(install))
}

/// The low-water marks of a machine, which are those of its present life: the first of its shards
/// that begins another life makes them anew.
struct LowWaters {
    make: Box<dyn Fn() -> Arc<LowWater>>,
    present: RefCell<Arc<LowWater>>,
    life: Cell<u64>,
}

impl LowWaters {
    /// Those of all machines with shards, for watermarks of so many values.
    fn of_machines(blueprint: &Blueprint<'_>, slots: usize) -> Vec<Rc<LowWaters>> {
        let shards = blueprint.plan.shards_in_all();
        let (machines, per_machine) =
            (blueprint.plan.machine(shards - 1) + 1, blueprint.plan.hardware.shards_per_machine as usize);
        let of = |machine: usize| {
            let make = Box::new(move || {
                let others: Vec<usize> = (0..machines).filter(|&other| other != machine).collect();
                let first = machine * per_machine;
                LowWater::among(first..shards.min(first + per_machine), slots, &others)
            });
            let present = RefCell::new(make());
            Rc::new(LowWaters { make, present, life: Cell::new(0) })
        };
        (0..machines).map(of).collect()
    }

    /// Those of this life, which is the present one or the next.
    fn in_life(&self, life: u64) -> Arc<LowWater> {
        if self.life.get() < life {
            self.life.set(life);
            *self.present.borrow_mut() = (self.make)();
        }
        self.present.borrow().clone()
    }
}
