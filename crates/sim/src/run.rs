//! One world: from a plan to a verdict.
//!
//! 1. Shards with the protocol's nodes, and an oracle if the scheme has one, begin in a world with faults.
//! 2. Clients run their transactions. Everything that shards install and clients see is recorded, and held against
//!    what is known by then (`online.rs`).
//! 3. All faults end. Whoever is not done some virtual seconds later is stuck.
//! 4. What was sent last arrives; then no lock may be left, garbage goes, everything can be read and written.
//! 5. The history is judged (`judge.rs`).
//!
//! A panic, which is a violated assertion, ends the world and is a verdict as well; where panics abort the process,
//! the caller has to see to it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_runtime::sim::{EPOCH_NS, Faults, Maker, Occurrence, Watch, World};
use plimsoll_runtime::{Env, LowWater, ShardEnv, Tasks};
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::base::{Base, Layout, OnInstall};
use plimsoll_txn::envelope::{Answer, Envelope};
use plimsoll_txn::messages::{Common, CommonReply, MoveOutcome};
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::timestamp::{OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::{with_interactive_pair, with_pair};
use plimsoll_types::history::{History, Transaction as Recorded};
use plimsoll_types::random::Rng;
use plimsoll_types::{Partitioning, Placement, SLOTS, ShardId, Slot, TableId, TableSpec, Timestamp};
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};
use plimsoll_workloads::{Tally, Workload};

use crate::client::{Client, Left, Observer};
use crate::judge;
use crate::online::Online;
use crate::plan::{Nth, Plan, WorkloadName};
use crate::recorder::Recorder;
use crate::workload::{append, cycle, pieces, random};

/// Virtual time after which faults end, whether or not the clients are done.
const TROUBLE_NS: u64 = 20_000_000_000;
/// Virtual time that clients have to finish once all faults have ended, and an audit to find its end.
const PATIENCE_NS: u64 = 20_000_000_000;
/// So much more for each transaction of a client, besides its wait for a clock that is wrong.
const PATIENCE_EACH_NS: u64 = 400_000_000;
/// Virtual time in which everything arrives that was sent last, besides what shards wait for before they ask.
const QUIET_NS: u64 = 500_000_000;

/// Virtual time between one move of slots and the next, on average.
const MOVE_EVERY_NS: u64 = 1_000_000;
/// So many other slots move at most, most of them without rows: what they tell is soon told.
const EMPTY: usize = 16;
/// The stream of random numbers that moves are drawn from.
const MOVES_STREAM: u64 = 11 << 32;

/// Something that must not have happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What kind of thing.
    pub kind: String,
    /// What happened, in words.
    pub detail: String,
}

/// What came of a world.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Depends on every event; equal for equal plans.
    pub hash: u64,
    /// Virtual time that it took, in nanoseconds.
    pub virtual_ns: u64,
    /// Transactions that committed.
    pub transactions: u64,
    /// Attempts that aborted.
    pub aborts: u64,
    /// Times that slots moved.
    pub moves: u64,
    /// Faults that began.
    pub faults: Vec<Occurrence>,
    /// The largest error of any clock, in nanoseconds.
    pub clock_error_ns: u64,
    /// What must not have happened, in the order in which it was found.
    pub violations: Vec<Violation>,
    /// What clients and shards have recorded.
    pub history: History,
    /// The tables that the history is about.
    pub tables: Arc<[TableSpec]>,
    /// What attempts of list-append did.
    pub appended: Vec<append::Attempted>,
}

/// When the client of a transaction was answered, in virtual nanoseconds; `None` if it crashed before.
pub fn answered_ns(transaction: &Recorded) -> Option<u64> {
    (transaction.end < u64::MAX).then(|| transaction.end.saturating_sub(EPOCH_NS))
}

/// Runs the world of a plan, and records what happens in it if somebody wants to look at it.
pub fn run(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    #[cfg(feature = "mutants")]
    plimsoll_types::mutants::plant(plan.mutant);
    let outcome = catch_unwind(AssertUnwindSafe(|| world(plan, recorder)));
    let outcome = outcome.unwrap_or_else(|panic| Outcome::panicked(&*panic));
    #[cfg(feature = "mutants")]
    plimsoll_types::mutants::plant(None);
    outcome
}

/// Runs it under its pair. A panic is for the caller.
fn world(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let pair = plan.legal_pair();
    match plan.workload {
        WorkloadName::Random | WorkloadName::Cycle | WorkloadName::Append => {
            with_interactive_pair!(pair, P => interactive::<P>(plan, recorder))
        }
        WorkloadName::Pieces => with_pair!(pair, P => pieces::<P>(plan, recorder)),
        WorkloadName::SmallBank => {
            let mut parameters = smallbank::Parameters::new(plan.shards as u64, plan.keys);
            (parameters.seed, parameters.closed, parameters.distributed_pct) = (plan.seed, true, 50.0);
            let bank = SmallBank::new(parameters).expect("the parameters are possible");
            with_pair!(pair, P => benchmark::<P, _>(plan, recorder, bank))
        }
        WorkloadName::Micro => {
            let parameters = micro::Parameters {
                tuples_per_shard: plan.keys,
                tuples_per_transaction: 4,
                distributed_pct: 40.0,
                seed: plan.seed,
                ..micro::Parameters::new(plan.shards as u64)
            };
            let micro = Micro::new(parameters).expect("the parameters are possible");
            with_pair!(pair, P => benchmark::<P, _>(plan, recorder, micro))
        }
        WorkloadName::Tpcc => {
            let warehouses = if plan.spread { plan.shards.div_ceil(2) } else { plan.shards };
            let mut parameters = tpcc::Parameters::small(warehouses as u32);
            (parameters.seed, parameters.spread) = (plan.seed, plan.spread);
            (parameters.items, parameters.customers_per_district) = (plan.keys as u32, 10);
            let tpcc = Tpcc::new(parameters).expect("the parameters are possible");
            with_pair!(pair, P => benchmark::<P, _>(plan, recorder, tpcc))
        }
    }
}

impl Outcome {
    /// What comes of a world whose code panicked with this.
    pub fn panicked(payload: &(dyn Any + Send)) -> Outcome {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let detail = text.unwrap_or_else(|| "a panic without words".to_owned());
        let violations = vec![Violation { kind: "assertion".to_owned(), detail }];
        Outcome { violations, ..Outcome::default() }
    }
}

/// Sees the world from outside.
#[derive(Clone)]
pub struct Outsider {
    watch: Watch,
    /// If transactions have an order.
    online: Option<Rc<RefCell<Online>>>,
}

impl Outsider {
    /// One that tells the true time, and no more.
    pub fn new(watch: Watch) -> Outsider {
        Outsider { watch, online: None }
    }
}

impl Observer for Outsider {
    fn began(&self, _: Timestamp) -> u64 {
        self.watch.true_time().0
    }

    fn ended(&self) -> u64 {
        self.watch.true_time().0
    }

    fn recorded(&self, transaction: &Recorded) {
        if let Some(online) = &self.online {
            online.borrow_mut().recorded(transaction);
        }
    }
}

/// A client leaves behind what it has even if its machine crashes.
struct Leaving<P: LegalPair> {
    client: SimClient<P>,
    sink: Rc<RefCell<Left>>,
}

impl<P: LegalPair> Drop for Leaving<P> {
    fn drop(&mut self) {
        self.client.crash();
        self.sink.borrow_mut().join(std::mem::take(&mut self.client.left));
    }
}

type SimClient<P> = Client<P, Outsider>;

/// A world with its database.
pub(crate) struct Setting<P: LegalPair> {
    pub(crate) world: World<P>,
    pub(crate) tables: Arc<[TableSpec]>,
    pub(crate) placement: Arc<Placement>,
    /// All shards.
    shards: usize,
    /// Those that hold data, the first of them.
    data_shards: usize,
    /// After so long everything has arrived and nobody asks any more.
    quiet_ns: u64,
    /// Slots with rows.
    used: BTreeSet<Slot>,
    /// How often slots have moved.
    moved: Rc<Cell<u64>>,
    recorder: Option<Recorder>,
    /// What watches timestamps, if transactions are ordered by them.
    pub(crate) online: Option<Rc<RefCell<Online>>>,
}

impl<P: LegalPair> Setting<P> {
    fn new(
        plan: &Plan,
        tables: Vec<TableSpec>,
        options: ProtocolOptions,
        recorder: Option<Recorder>,
    ) -> Setting<P> {
        let process = |shard: usize| shard / plan.hardware.shards_per_machine as usize;
        let shards = plan.shards_in_all();
        let members = match plan.fronts {
            0 => process(shards - 1) + 1,
            _ => plan.crashing().start,
        };
        let layout = Layout {
            tables: tables.into(),
            placement: Arc::new(Placement::even(plan.shards)),
            processes: (0..shards).map(|shard| process(shard) as u16).collect(),
        };
        let counters: Vec<_> = (0..=process(shards)).map(|_| Arc::new(AtomicU64::new(0))).collect();
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
            process: process(shard),
            processes: members,
            visitors: shards.min(members * plan.hardware.shards_per_machine as usize)..shards,
            process_counter: counters[process(shard)].clone(),
            first_attempt: 1,
            patience_ns: plan.patience_ns(),
        };
        let (machines, per_machine) = (process(shards - 1) + 1, plan.hardware.shards_per_machine as usize);
        let slots = P::Scheme::slots(&config(0));
        let low_water = move |machine: usize| {
            let others: Vec<usize> = (0..machines).filter(|&other| other != machine).collect();
            let first = machine * per_machine;
            LowWater::among(first..shards.min(first + per_machine), slots, &others)
        };
        // Of each machine, that of its present life: the first of its shards that begins another makes it anew.
        let low_waters: Vec<_> =
            (0..machines).map(|machine| Rc::new(RefCell::new((0, low_water(machine))))).collect();
        let options = ProtocolOptions { lock_policy: plan.lock_policy, one_round: plan.one_round, ..options };
        let watched = recorder.is_some();
        let online: Option<Rc<RefCell<Online>>> =
            judge::has_order::<P>().then(|| Rc::new(RefCell::new(Online::new(layout.tables.clone()))));
        let makers = (0..shards + usize::from(P::Scheme::ORACLE)).map(|shard| {
            let (layout, config) = (layout.clone(), config(shard));
            // The oracle has none; it is given any.
            let machine = process(shard.min(shards - 1));
            let (present, online) = (low_waters[machine].clone(), online.clone());
            let make = move |life| {
                let config = SchemeConfig { first_attempt: life, ..config.clone() };
                if present.borrow().0 < life {
                    *present.borrow_mut() = (life, low_water(machine));
                }
                let mut base = Base::new(&layout, &config, present.borrow().1.clone());
                base.installs = Some(Vec::new());
                let online = online.clone();
                base.on_install = online.map(|online| -> OnInstall {
                    Box::new(move |install| online.borrow_mut().installed(install))
                });
                base.steps = watched.then(Vec::new);
                P::new(base, options)
            };
            Box::new(make) as Maker<P>
        });
        // Machines with data never crash by themselves, nor does the oracle's, whatever the plan says: nothing makes up yet
        // for what they forget.
        let crashing = plan.crashing();
        let crashes_per_s = if crashing.is_empty() { 0.0 } else { plan.faults.crashes_per_s };
        let faults = Faults { crashes_per_s, ..plan.faults.clone() };
        let mut world = World::new(&plan.hardware, &faults, plan.seed, makers.collect());
        world.skip(plan.skip.iter().copied());
        if !crashing.is_empty() {
            world.only_crash(crashing);
        }
        if plan.encoded {
            world.encode();
        }
        if let Some(recorder) = &recorder {
            recorder.listen(&mut world);
        }
        let Layout { tables, placement, .. } = layout;
        Setting {
            world,
            tables,
            placement,
            shards,
            data_shards: plan.shards,
            quiet_ns: QUIET_NS + 3 * plan.patience_ns(),
            used: BTreeSet::new(),
            moved: Rc::default(),
            recorder,
            online,
        }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> + use<P> {
        (0..self.shards as u16).map(ShardId)
    }

    fn load(&mut self, shard: ShardId, table: TableId, key: &plimsoll_types::Key, values: &[&[u8]]) {
        self.used.extend(self.tables[table.index()].partitioning.slot(key));
        let loaded = self.world.node(shard, |node| node.base().store.load(table, key, values));
        loaded.expect("a world begins with all shards up");
    }

    fn load_numbers(&mut self, rows: Vec<(u64, TableId, plimsoll_types::Key, u64)>) {
        for (_, table, key, number) in rows {
            let shards = match self.tables[table.index()].partitioning.slot(&key) {
                Some(slot) => vec![self.placement.shard(slot)],
                None => self.placement.holders().collect(),
            };
            shards.into_iter().for_each(|shard| self.load(shard, table, &key, &[&number.to_be_bytes()]));
        }
    }

    /// Goes on until `done`, or until some virtual time.
    fn go_on(&mut self, until_ns: u64, done: impl Fn() -> bool) {
        while !done() && self.world.now() < until_ns {
            let stepped = self.world.step();
            if let Some(recorder) = &self.recorder {
                recorder.look(&self.world, self.shards());
            }
            if !stepped {
                return;
            }
        }
    }

    /// Runs a task on a shard to its end, in a world without faults; `None` if it does not end.
    pub(crate) fn run_on<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        shard: ShardId,
        task: impl FnOnce(ShardEnv<P>) -> F + 'static,
    ) -> Option<R> {
        let result = Rc::new(RefCell::new(None));
        let slot = result.clone();
        self.world.spawn_on(shard, move |env| {
            let task = task(env);
            async move {
                let done = task.await;
                *slot.borrow_mut() = Some(done);
            }
        });
        let until_ns = self.world.now() + PATIENCE_NS;
        self.go_on(until_ns, || result.borrow().is_some());
        result.take()
    }

    /// Lets the clients run: `body` is one transaction, given the client and its workload's own state, and `skip` is what is to
    /// be done in the place of one that is left out. Clients of a machine that crashes are others when it starts again, and do
    /// what is left to do.
    fn clients<T: 'static>(
        &mut self,
        plan: &Plan,
        state: impl Fn(usize, ShardId) -> T + 'static,
        skip: impl Fn(&mut T) + Clone + 'static,
        body: impl AsyncFn(&mut SimClient<P>, &mut T) + Clone + 'static,
    ) -> (Left, Option<String>) {
        let (clients, all, pauses) = (plan.clients, plan.clients_in_all(), plan.pauses);
        let world = Rc::new(plan.clone());
        let running = Rc::new(Cell::new(all));
        let left = Rc::new(RefCell::new(Left::default()));
        let to_do: Rc<[Cell<usize>]> = vec![Cell::new(plan.transactions); all].into();
        let watch = self.outsider();
        let (seed, data_shards, sink, ends) = (plan.seed, self.data_shards, left.clone(), running.clone());
        let lives: Vec<Cell<usize>> = vec![Cell::new(0); self.shards];
        self.world.on_start(move |env| {
            let shard = env.shard();
            // The oracle has no clients.
            let Some(begun) = lives.get(shard.index()) else { return };
            let life = begun.replace(begun.get() + 1);
            // Where it is at home there is data.
            let home = ShardId((shard.index() % data_shards) as u16);
            for number in (0..clients).map(|number| shard.index() * clients + number) {
                let (to_do, ends, inner) = (to_do.clone(), ends.clone(), env.clone());
                let (body, skip, world) = (body.clone(), skip.clone(), world.clone());
                let session = life * all + number;
                let mut state = state(session, home);
                let mut client = Client::new(env.clone(), watch.clone(), seed, session as u32);
                client.pauses = pauses;
                let mut leaving = Leaving { client, sink: sink.clone() };
                env.spawn(async move {
                    let to_do = &to_do[number];
                    while to_do.get() > 0 {
                        let place = world.transactions - to_do.get() + 1;
                        if world.runs(Nth { client: number, place }) {
                            // What a transaction does depends on nothing that others did.
                            leaving.client.rng = Rng::new(seed, (session as u64) << 32 | place as u64);
                            body(&mut leaving.client, &mut state).await;
                            inner.pause().await;
                        } else {
                            skip(&mut state);
                        }
                        to_do.set(to_do.get() - 1);
                        if to_do.get() == 0 {
                            ends.set(ends.get() - 1);
                        }
                    }
                });
            }
        });
        self.move_slots(plan, running.clone());
        self.go_on(TROUBLE_NS, || running.get() == 0);
        self.world.heal_all();
        let each_ns = PATIENCE_EACH_NS + 2 * self.world.clock_error_ns();
        let patience_ns = PATIENCE_NS + each_ns * plan.transactions as u64;
        let until_ns = self.world.now() + patience_ns;
        self.go_on(until_ns, || running.get() == 0);
        let stuck = (running.get() > 0).then(|| {
            let seconds = patience_ns / 1_000_000_000;
            format!("{} clients are not done {seconds} s after all faults ended", running.get())
        });
        self.rest();
        if let Some(recorder) = &self.recorder {
            recorder.attempts(&left.borrow().attempts);
        }
        (left.take(), stuck)
    }

    /// Has slots move between shards with data, one time after the other, as long as clients run.
    fn move_slots(&mut self, plan: &Plan, running: Rc<Cell<usize>>) {
        let (moves, shards, moved) = (plan.moves, plan.shards as u64, self.moved.clone());
        let used = self.used.clone();
        if shards < 2 || moves == 0 {
            return;
        }
        let mut rng = Rng::new(plan.seed, MOVES_STREAM);
        self.world.spawn_on(ShardId(0), move |env| async move {
            for _ in 0..moves {
                env.sleep(rng.below(2 * MOVE_EVERY_NS)).await;
                if running.get() == 0 {
                    break;
                }
                let from = rng.below(shards);
                let to = (from + 1 + rng.below(shards - 1)) % shards;
                let one_in = 1 << rng.below(3);
                let placement = env.local(|node| node.base().placement().clone());
                let mut slots = used.clone();
                slots.retain(|_| rng.below(one_in) == 0);
                slots.extend((0..EMPTY).map(|_| Slot(rng.below(SLOTS as u64) as u16)));
                let owned = slots.into_iter().filter(|&slot| placement.shard(slot).0 == from as u16);
                let slots: Vec<Slot> = owned.collect();
                let request = Common::Move { slots, to: ShardId(to as u16), asked: false };
                let outcome =
                    env.call(ShardId(from as u16), Envelope::Common(request)).await.map(Answer::common);
                if let Ok(CommonReply::MoveOver(MoveOutcome::Moved)) = outcome {
                    moved.set(moved.get() + 1);
                }
            }
        });
    }

    fn outsider(&self) -> Outsider {
        Outsider { online: self.online.clone(), ..Outsider::new(self.world.observer()) }
    }

    /// After so long a snapshot contains everything: an oracle has heard of it, and the slowest clock has passed what the
    /// fastest has stamped.
    pub(crate) fn settled_ns(&self) -> u64 {
        10_000_000 + 2 * self.world.clock_error_ns()
    }

    /// Lets everything arrive that is on its way.
    pub(crate) fn rest(&mut self) {
        let until_ns = self.world.now() + self.quiet_ns;
        self.go_on(until_ns, || false);
    }
}

/// Those workloads of this crate whose transactions' operations come one by one.
fn interactive<P: InteractivePair>(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let (tables, rows) = match plan.workload {
        WorkloadName::Cycle => (cycle::tables(), cycle::rows(plan.keys)),
        WorkloadName::Append => (append::tables(), Vec::new()),
        _ => (random::tables(), random::rows_of(plan.keys)),
    };
    let mut setting = Setting::<P>::new(plan, tables, ProtocolOptions::default(), recorder);
    setting.load_numbers(rows);
    // Lists are empty at the beginning.
    setting.used.extend((0..plan.keys).map(Partitioning::modulo));
    let (workload, keys) = (plan.workload, plan.keys);
    let (left, stuck) = setting.clients(
        plan,
        |_, _| (),
        |_| (),
        async move |client: &mut SimClient<P>, _: &mut ()| match workload {
            WorkloadName::Cycle => client.cycle(keys).await,
            WorkloadName::Append => client.append(keys).await,
            _ => client.random_of(keys).await,
        },
    );
    judge::judge(plan, setting, left, stuck, &mut |setting, left, found| {
        judge::last_look(plan, setting, left, found);
    })
}

/// The workload of this crate whose transactions are pieces.
fn pieces<P: LegalPair>(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let options = pieces::protocol_options();
    let mut setting = Setting::<P>::new(plan, pieces::tables(), options, recorder);
    setting.load_numbers(pieces::rows_of(plan.keys));
    setting.used.extend((0..plan.keys).map(Partitioning::modulo));
    let keys = plan.keys;
    let (left, stuck) = setting.clients(
        plan,
        |_, _| (),
        |_| (),
        async move |client: &mut SimClient<P>, _: &mut ()| client.pieces_of(keys).await,
    );
    judge::judge(plan, setting, left, stuck, &mut |_, _, _| ())
}

/// A benchmark's workload, small.
fn benchmark<P: LegalPair, W: Workload>(plan: &Plan, recorder: Option<Recorder>, workload: W) -> Outcome {
    let mut setting = Setting::<P>::new(plan, workload.tables(), workload.protocol_options(), recorder);
    for unit in 0..workload.units() {
        let shards = match workload.unit_slot(unit) {
            Some(slot) => vec![setting.placement.shard(slot)],
            None => setting.shards().collect(),
        };
        for shard in shards {
            workload.load(unit, &mut |table, key, values| setting.load(shard, table, &key, values));
        }
    }
    let placement = setting.placement.clone();
    let (begins, skips, runs) = (workload.clone(), workload.clone(), workload.clone());
    let (left, stuck) = setting.clients(
        plan,
        move |number, shard| begins.client(number, shard, &|slot| placement.shard(slot)),
        move |state| drop(skips.next(state)),
        async move |client: &mut SimClient<P>, state: &mut W::Client| client.benchmark(&runs, state).await,
    );
    judge::judge(plan, setting, left, stuck, &mut |setting, left, found| {
        if plan.scheme != "rc" {
            found.violations.extend(audits(setting, &workload, left));
        }
    })
}

/// The workload's own invariants, at the end. They need snapshots, and every scheme has one when all is quiet.
fn audits<P: LegalPair, W: Workload>(setting: &mut Setting<P>, workload: &W, left: &Left) -> Vec<Violation> {
    let mut done = Vec::new();
    for (number, mut audit) in workload.audits().into_iter().enumerate() {
        let shard = ShardId((number % setting.shards) as u16);
        let observer = setting.outsider();
        let settled_ns = setting.settled_ns();
        let audited = setting.run_on(shard, move |env| async move {
            let mut client: SimClient<P> = Client::new(env, observer, 0, 0);
            client.env.sleep(settled_ns).await;
            let attempt = client.attempt(0);
            let committed = client.procedure("audit", attempt, &mut audit).await;
            matches!(committed, Ok(Some(_))).then_some(audit)
        });
        match audited.flatten() {
            Some(audit) => done.push(audit),
            None => {
                let detail = format!("audit {number} of {} found no end", W::NAME);
                return vec![Violation { kind: "stuck".to_owned(), detail }];
            }
        }
    }
    let mut tally = Tally { committed: vec![0; W::KINDS.len()], sums: vec![0; W::SUMS.len()] };
    tally.committed.iter_mut().zip(&left.tally.committed).for_each(|(sum, n)| *sum += n);
    tally.sums.iter_mut().zip(&left.tally.sums).for_each(|(sum, n)| *sum += n);
    let failed = workload.judge(&done, &tally).into_iter().filter(|check| !check.ok);
    failed.map(|check| Violation { kind: check.name, detail: check.detail }).collect()
}

impl<P: LegalPair> Setting<P> {
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            hash: self.world.hash(),
            virtual_ns: self.world.now(),
            moves: self.moved.get(),
            faults: self.world.occurrences().to_vec(),
            clock_error_ns: self.world.clock_error_ns(),
            ..Outcome::default()
        }
    }
}
