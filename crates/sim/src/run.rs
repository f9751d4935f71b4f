//! One world: from a plan to a verdict.
//!
//! 1. Shards with the protocol's nodes, and an oracle if the scheme has one, begin in a world with
//!    faults (`world.rs`).
//! 2. Clients run their transactions. Everything that shards install and clients see is recorded,
//!    and held against what is known by then (`online.rs`).
//! 3. All faults end. If no client finishes a transaction in some virtual seconds, those left are
//!    stuck.
//! 4. What was sent last arrives; then no lock may be left, garbage goes, everything can be read
//!    and written.
//! 5. The history is judged (`judge.rs`).
//!
//! A panic, which is a violated assertion, ends the world and is a verdict as well; where panics
//! abort the process, the caller has to see to it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::Task;
use plimsoll_runtime::sim::{EPOCH_NS, Occurrence, Watch};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_txn::attempt::ProtocolOptions;
use plimsoll_txn::base::Layout;
use plimsoll_txn::messages::MoveOutcome;
use plimsoll_txn::pairs::Pair;
use plimsoll_txn::with_pair;
use plimsoll_types::history::{History, Install, Transaction as Recorded};
use plimsoll_types::random::Rng;
use plimsoll_types::{
    Key, Partitioning, Placement, SLOTS, ShardId, Slot, TableId, TableSpec, Timestamp, TxnId,
};
use plimsoll_workloads::micro::{self, Micro};
use plimsoll_workloads::smallbank::{self, SmallBank};
use plimsoll_workloads::tpcc::{self, Tpcc};
use plimsoll_workloads::tpce::{self, Tpce};
use plimsoll_workloads::{AnyClient, AnyWorkload};

use crate::client::{Client, ClientResults, Observer};
use crate::judge;
use crate::online::Online;
use crate::plan::{Nth, Plan, WorkloadName};
use crate::recorder::Recorder;
#[cfg(feature = "sql")]
use crate::sql;
use crate::workload::{append, cycle, pieces, random};
use crate::world::{AnyWorld, Blueprint, Lives, take_installs};

/// Virtual time after which faults end, whether or not the clients are done.
const TROUBLE_NS: u64 = 20_000_000_000;
/// Virtual time in which, once all faults have ended, some client has to finish a transaction, and
/// an audit to find its end; without a wait for a clock that is wrong.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Virtual time in which everything arrives that was sent last, besides what shards wait for before
/// they ask.
const QUIET_NS: u64 = 500_000_000;

/// Virtual time between two looks whether a shard has read its log.
const LOOK_NS: u64 = 1_000_000;
/// Virtual time between one move of slots and the next, on average.
const MOVE_EVERY_NS: u64 = 1_000_000;
/// Slots that move besides those with rows, at most. Most of them have no rows, and what they tell
/// is soon told.
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
    /// Transactions that were answered and lost, as the durability allows.
    pub lost: u64,
    /// Times that a shard came back from an image and the log behind it.
    pub from_images: u64,
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
    /// What transactions of sessions of SQL did.
    #[cfg(feature = "sql")]
    pub deeds: sql::deed::Deeds,
}

/// When the client of a transaction was answered, in virtual nanoseconds; `None` if it crashed
/// before.
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
    match plan.workload {
        WorkloadName::Random | WorkloadName::Reverse | WorkloadName::Cycle | WorkloadName::Append => {
            interactive(plan, recorder)
        }
        WorkloadName::Pieces => pieces(plan, recorder),
        #[cfg(feature = "sql")]
        WorkloadName::Sql => sessions(plan, recorder),
        WorkloadName::SmallBank => {
            let mut parameters = smallbank::Parameters::new(plan.shards as u64, plan.keys);
            (parameters.seed, parameters.closed, parameters.distributed_pct) = (plan.seed, true, 50.0);
            let bank = SmallBank::new(parameters).expect("the parameters are possible");
            benchmark(plan, recorder, Arc::new(bank))
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
            benchmark(plan, recorder, Arc::new(micro))
        }
        WorkloadName::Tpcc => {
            let warehouses = if plan.spread { plan.shards.div_ceil(2) } else { plan.shards };
            let mut parameters = tpcc::Parameters::small(warehouses as u32);
            (parameters.seed, parameters.spread) = (plan.seed, plan.spread);
            (parameters.items, parameters.customers_per_district) = (plan.keys as u32, 10);
            let tpcc = Tpcc::new(parameters).expect("the parameters are possible");
            benchmark(plan, recorder, Arc::new(tpcc))
        }
        WorkloadName::Tpce => {
            let mut parameters = tpce::Parameters::small(plan.shards as u32);
            parameters.scale.customers_per_unit = plan.keys as u32;
            (parameters.seed, parameters.local_pct) = (plan.seed, 50.0);
            benchmark(plan, recorder, Arc::new(Tpce::new(parameters)))
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
    /// The last moment that was told, to any client.
    told: Rc<Cell<u64>>,
    /// If transactions have an order.
    online: Option<Rc<RefCell<Online>>>,
}

impl Outsider {
    /// One that tells the true time, and no more.
    pub fn new(watch: Watch) -> Outsider {
        Outsider { watch, told: Rc::default(), online: None }
    }
}

impl Observer for Outsider {
    fn began(&self, _: Timestamp) -> u64 {
        self.watch.true_time().0
    }

    fn ended(&self) -> u64 {
        self.watch.true_time().0
    }

    fn moment(&self) -> u64 {
        self.told.set(self.watch.true_time().0.max(self.told.get() + 1));
        self.told.get()
    }

    fn recorded(&self, transaction: &Recorded) {
        if let Some(online) = &self.online {
            online.borrow_mut().recorded(transaction);
        }
    }
}

/// A client leaves behind what it has even if its machine crashes.
struct ClientTask {
    client: SimClient,
    sink: Rc<RefCell<ClientResults>>,
}

impl Drop for ClientTask {
    fn drop(&mut self) {
        self.client.crash();
        self.sink.borrow_mut().join(std::mem::take(&mut self.client.left));
    }
}

type SimClient = Client<Outsider>;

/// A benchmark's workload, with its part of a client.
type Benchmark = (Arc<dyn AnyWorkload>, Box<dyn AnyClient>);

/// What clients need besides a shard.
enum Needs {
    /// Nothing: the workload is one of this crate.
    Nothing,
    /// A benchmark's workload.
    Benchmark(Arc<dyn AnyWorkload>),
    /// Sessions of SQL.
    #[cfg(feature = "sql")]
    Sessions(Rc<sql::Nodes>),
}

/// What a client has besides a shard.
enum Has {
    Nothing,
    Benchmark(Benchmark),
    #[cfg(feature = "sql")]
    Session(sql::client::Caller),
}

/// A client's way through its transactions.
struct Way {
    plan: Rc<Plan>,
    has: Has,
    /// Which of the clients it is. A client that begins after a crash has the number of the one
    /// that it follows.
    number: usize,
    /// By client: transactions that are still to be done.
    to_do: Rc<[Cell<usize>]>,
    /// Clients that are not done.
    running: Rc<Cell<usize>>,
}

impl Way {
    async fn go(self, mut leaving: ClientTask) {
        let Way { plan, mut has, number, to_do, running } = self;
        let to_do = &to_do[number];
        while !leaving.client.shard.serves() {
            leaving.client.shard.sleep(LOOK_NS).await;
        }
        while to_do.get() > 0 {
            let place = plan.transactions - to_do.get() + 1;
            if plan.runs(Nth { client: number, place }) {
                // What a transaction does depends on nothing that others did.
                let stream = u64::from(leaving.client.session) << 32 | place as u64;
                leaving.client.rng = Rng::new(plan.seed, stream);
                transaction(&mut leaving.client, &plan, &mut has).await;
                leaving.client.shard.pause().await;
            } else if let Has::Benchmark((_, own)) = &mut has {
                own.draw(leaving.client.shard.clock().0);
                own.done(false);
            }
            to_do.set(to_do.get() - 1);
            if to_do.get() == 0 {
                running.set(running.get() - 1);
            }
        }
    }
}

/// One transaction of a client.
async fn transaction(client: &mut SimClient, plan: &Plan, has: &mut Has) {
    match (plan.workload, has) {
        (_, Has::Benchmark((workload, own))) => client.benchmark(&**workload, &mut **own).await,
        #[cfg(feature = "sql")]
        (_, Has::Session(caller)) => client.sql(caller, plan.keys).await,
        (WorkloadName::Cycle, _) => client.cycle(plan.keys).await,
        (WorkloadName::Append, _) => client.append(plan.keys).await,
        (WorkloadName::Pieces, _) => client.pieces_of(plan.keys).await,
        _ => client.random_of(plan.keys).await,
    }
}

/// A world with its database.
pub(crate) struct Setting {
    pub(crate) world: Box<dyn AnyWorld>,
    pub(crate) pair: Pair,
    pub(crate) tables: Arc<[TableSpec]>,
    pub(crate) placement: Arc<Placement>,
    /// All shards.
    shards: usize,
    /// Those that hold data, the first of them.
    data_shards: usize,
    /// After so long everything has arrived and no shard asks any more.
    quiet_ns: u64,
    /// Slots with rows.
    used: BTreeSet<Slot>,
    /// How often slots have moved.
    moved: Rc<Cell<u64>>,
    recorder: Option<Recorder>,
    /// By shard: what it installed in all its lives, if shards log.
    lives: Vec<Rc<RefCell<Lives>>>,
    /// What watches timestamps, if transactions are ordered by them.
    pub(crate) online: Option<Rc<RefCell<Online>>>,
    /// See [`Outsider::told`].
    told: Rc<Cell<u64>>,
}

impl Setting {
    fn new(
        plan: &Plan,
        tables: Vec<TableSpec>,
        options: ProtocolOptions,
        recorder: Option<Recorder>,
    ) -> Setting {
        let (pair, shards) = (plan.legal_pair(), plan.shards_in_all());
        let process = |shard: usize| plan.machine(shard) as u16;
        let layout = Layout {
            tables: tables.into(),
            placement: Arc::new(Placement::even(plan.shards)),
            processes: (0..shards).map(process).collect(),
        };
        let online = (judge::has_order(pair) && !plan.logs)
            .then(|| Rc::new(RefCell::new(Online::new(layout.tables.clone()))));
        let options = ProtocolOptions { lock_policy: plan.lock_policy, one_round: plan.one_round, ..options };
        let lives: Vec<Rc<RefCell<Lives>>> = (0..shards).map(|_| Rc::default()).collect();
        let blueprint = Blueprint {
            plan,
            layout: &layout,
            options,
            recorder: recorder.as_ref(),
            online: online.clone(),
            lives: &lives,
        };
        let world = with_pair!(pair, P => blueprint.begin::<P>());
        let Layout { tables, placement, .. } = layout;
        Setting {
            world,
            pair,
            tables,
            placement,
            shards,
            data_shards: plan.shards,
            quiet_ns: QUIET_NS + 3 * plan.patience_ns(),
            used: BTreeSet::new(),
            moved: Rc::default(),
            recorder,
            lives: if plan.logs { lives } else { Vec::new() },
            online,
            told: Rc::default(),
        }
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shards as u16).map(ShardId)
    }

    /// The oracle's shard, if there is one and it logs.
    fn logging_oracle(&self, plan: &Plan) -> Option<ShardId> {
        (plan.logs && self.pair.has_oracle()).then_some(ShardId(self.shards as u16))
    }

    fn load(&mut self, shard: ShardId, table: TableId, key: &Key, values: &[&[u8]]) {
        self.used.extend(self.tables[table.index()].partitioning.slot(key));
        let home = self.world.shard(shard).expect("a world begins with all shards up");
        home.load_row(table, key, values);
    }

    fn load_numbers(&mut self, rows: Vec<(u64, TableId, Key, u64)>) {
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
                recorder.look(&*self.world, self.shards());
            }
            if !stepped {
                return;
            }
        }
    }

    /// Runs a task on a shard to its end; `None` if it does not end although the faults have, which
    /// they do for the rest of the run if it takes too long.
    pub(crate) fn run_on<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        shard: ShardId,
        task: impl FnOnce(Rc<dyn AnyShard>) -> F + 'static,
    ) -> Option<R> {
        let result = Rc::new(RefCell::new(None));
        let slot = result.clone();
        let task = move |shard| {
            let task = task(shard);
            Box::pin(async move {
                let done = task.await;
                *slot.borrow_mut() = Some(done);
            }) as Task
        };
        self.world.spawn_on(shard, Box::new(task));
        for _ in 0..2 {
            let until_ns = self.world.now() + PATIENCE_NS + 2 * self.world.clock_error_ns();
            self.go_on(until_ns, || result.borrow().is_some());
            if result.borrow().is_some() {
                break;
            }
            self.heal();
        }
        result.take()
    }

    /// Ends the faults of the world, so that what is still not done some time later is stuck.
    fn heal(&mut self) {
        self.world.heal_all();
        // Machines whose clocks are further apart refuse each other's timestamps, and would go on
        // to do so for as long as the clients run.
        if !self.pair.has_oracle() && judge::clocks_are_far_apart(self.world.clock_error_ns()) {
            self.world.set_clocks();
        }
    }

    /// Lets the clients run, with what they need. Clients of a machine
    /// that crashes are others when it starts again, and do what is left to do.
    fn clients(&mut self, plan: &Plan, needs: Needs) -> (ClientResults, Option<String>) {
        let (clients, all) = (plan.clients, plan.clients_in_all());
        let world = Rc::new(plan.clone());
        let running = Rc::new(Cell::new(all));
        let left = Rc::new(RefCell::new(ClientResults::default()));
        let to_do: Rc<[Cell<usize>]> = vec![Cell::new(plan.transactions); all].into();
        let (watch, placement) = (self.outsider(), self.placement.clone());
        let (pair, data_shards) = (self.pair, self.data_shards);
        self.keep_rows(plan);
        let (sink, ends, left_to_do) = (left.clone(), running.clone(), to_do.clone());
        let lives: Vec<Cell<usize>> = vec![Cell::new(0); self.shards];
        self.world.on_start(Box::new(move |shard| {
            let index = shard.shard().index();
            // The oracle has no clients.
            let Some(begun) = lives.get(index) else { return };
            let life = begun.replace(begun.get() + 1);
            #[cfg(feature = "sql")]
            if let Needs::Sessions(nodes) = &needs {
                nodes.of(index, life).begin(&*shard);
            }
            // Where a client is at home there is data.
            let home = ShardId((index % data_shards) as u16);
            for number in (0..clients).map(|number| index * clients + number) {
                let session = life * all + number;
                let has = match &needs {
                    Needs::Nothing => Has::Nothing,
                    Needs::Benchmark(workload) => {
                        let own = workload.client(session, home, &|slot| placement.shard(slot));
                        Has::Benchmark((workload.clone(), own))
                    }
                    #[cfg(feature = "sql")]
                    Needs::Sessions(nodes) => Has::Session(sql::client::Caller::new(nodes.of(index, life))),
                };
                let way = Way {
                    plan: world.clone(),
                    has,
                    number,
                    to_do: left_to_do.clone(),
                    running: ends.clone(),
                };
                let mut client = Client::new(shard.clone(), pair, watch.clone(), world.seed, session as u32);
                client.pauses = world.pauses;
                client.either_order = world.workload == WorkloadName::Reverse;
                shard.start(Box::pin(way.go(ClientTask { client, sink: sink.clone() })));
            }
        }));
        self.move_slots(plan, running.clone());
        self.go_on(TROUBLE_NS, || running.get() == 0);
        self.heal();
        let stuck = self.await_clients(&to_do, &running).or_else(|| self.await_shards(plan));
        self.rest();
        if let Some(recorder) = &self.recorder {
            recorder.attempts(&left.borrow().attempts);
        }
        let mut left = left.take();
        self.lose(&mut left);
        (left, stuck)
    }

    /// If shards log, lets them write what was loaded before any machine crashes.
    fn keep_rows(&mut self, plan: &Plan) {
        if !plan.logs {
            return;
        }
        for shard in self.shards().chain(self.logging_oracle(plan)) {
            let kept = self.run_on(shard, |shard| async move {
                while !shard.serves() {
                    shard.sleep(LOOK_NS).await;
                }
                shard.stable().await;
            });
            assert!(kept.is_some(), "what was loaded is written");
        }
        self.world.spare(false);
    }

    /// Waits, after faults have ended, until all clients are done, as long as any of them gets on:
    /// where disks are slow and rows few, that may be a long time. Returns how many do not.
    fn await_clients(&mut self, to_do: &[Cell<usize>], running: &Cell<usize>) -> Option<String> {
        let patience_ns = PATIENCE_NS + 2 * self.world.clock_error_ns();
        let left = || to_do.iter().map(Cell::get).sum::<usize>();
        while running.get() > 0 {
            let before = left();
            let until_ns = self.world.now() + patience_ns;
            self.go_on(until_ns, || running.get() == 0);
            if left() == before {
                let seconds = patience_ns / 1_000_000_000;
                return Some(format!(
                    "{} clients are left, and none has finished a transaction in {seconds} s without faults",
                    running.get()
                ));
            }
        }
        None
    }

    /// If shards log, waits until all serve: a machine may have crashed just before the faults
    /// ended, when no client of it was left. Returns which shard does not come back.
    fn await_shards(&mut self, plan: &Plan) -> Option<String> {
        let logging = if plan.logs { self.data_shards } else { 0 };
        let shards: Vec<ShardId> = self.shards().take(logging).chain(self.logging_oracle(plan)).collect();
        let until_ns = self.world.now() + PATIENCE_NS;
        // All at the same time: one that serves may yet begin anew, with another that comes back.
        let serves = |world: &dyn AnyWorld, shard| world.shard(shard).is_some_and(|shard| shard.serves());
        while let Some(shard) = shards.iter().copied().find(|&shard| !serves(&*self.world, shard)) {
            let now_ns = self.world.now();
            self.go_on((now_ns + LOOK_NS).min(until_ns), || false);
            if self.world.now() == now_ns {
                let seconds = PATIENCE_NS / 1_000_000_000;
                return Some(format!("shard {} does not serve {seconds} s after all faults ended", shard.0));
            }
        }
        // The cut passes what the fastest clock has stamped when that of the first shard has.
        if plan.to_cut {
            let until_ns = self.world.now() + self.settled_ns();
            self.go_on(until_ns, || false);
        }
        None
    }

    /// Has slots move between shards with data, one time after the other, as long as clients run.
    fn move_slots(&mut self, plan: &Plan, running: Rc<Cell<usize>>) {
        let (moves, shards, moved) = (plan.moves, plan.shards as u64, self.moved.clone());
        let used = self.used.clone();
        if shards < 2 || moves == 0 {
            return;
        }
        let (seed, left) = (plan.seed, Rc::new(Cell::new(moves)));
        let move_some = move |shard: Rc<dyn AnyShard>| async move {
            let mut rng = Rng::new(seed, MOVES_STREAM + (moves - left.get()) as u64);
            while left.get() > 0 {
                left.set(left.get() - 1);
                shard.sleep(rng.below(2 * MOVE_EVERY_NS)).await;
                if running.get() == 0 {
                    break;
                }
                let from = rng.below(shards);
                let to = (from + 1 + rng.below(shards - 1)) % shards;
                let one_in = 1 << rng.below(3);
                let placement = shard.placement();
                let mut slots = used.clone();
                slots.retain(|_| rng.below(one_in) == 0);
                slots.extend((0..EMPTY).map(|_| Slot(rng.below(SLOTS as u64) as u16)));
                let owned = slots.into_iter().filter(|&slot| placement.shard(slot).0 == from as u16);
                let slots: Vec<Slot> = owned.collect();
                let outcome = shard.move_slots(ShardId(from as u16), slots, ShardId(to as u16)).await;
                if let Some(MoveOutcome::Moved) = outcome {
                    moved.set(moved.get() + 1);
                }
            }
        };
        // A shard that crashes goes on when it is back.
        self.world.on_start(Box::new(move |shard| {
            if shard.shard() == ShardId(0) {
                shard.start(Box::pin(move_some.clone()(shard.clone())));
            }
        }));
    }

    fn outsider(&self) -> Outsider {
        Outsider {
            online: self.online.clone(),
            told: self.told.clone(),
            ..Outsider::new(self.world.observer())
        }
    }

    /// After so long a snapshot contains everything: an oracle has heard of it, and the slowest
    /// clock has passed what the fastest has stamped.
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
fn interactive(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let (tables, rows) = match plan.workload {
        WorkloadName::Cycle => (cycle::tables(), cycle::rows(plan.keys)),
        WorkloadName::Append => (append::tables(), Vec::new()),
        _ => (random::tables(), random::rows_of(plan.keys)),
    };
    let mut setting = Setting::new(plan, tables, ProtocolOptions::default(), recorder);
    setting.load_numbers(rows);
    // Lists are empty at the beginning.
    setting.used.extend((0..plan.keys).map(Partitioning::modulo));
    let (left, stuck) = setting.clients(plan, Needs::Nothing);
    judge::judge(plan, setting, left, stuck, &mut |setting, left, found| {
        judge::last_look(plan, setting, left, found);
    })
}

/// The workload of this crate whose transactions are pieces.
fn pieces(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let mut setting = Setting::new(plan, pieces::tables(), pieces::protocol_options(), recorder);
    setting.load_numbers(pieces::rows_of(plan.keys));
    setting.used.extend((0..plan.keys).map(Partitioning::modulo));
    let (left, stuck) = setting.clients(plan, Needs::Nothing);
    judge::judge(plan, setting, left, stuck, &mut |_, _, _| ())
}

/// Sessions of SQL.
#[cfg(feature = "sql")]
fn sessions(plan: &Plan, recorder: Option<Recorder>) -> Outcome {
    let mut setting = Setting::new(plan, sql::tables(), ProtocolOptions::default(), recorder);
    let nodes = sql::Nodes::new(plan, setting.shards);
    let (nodes, keys) = (Rc::new(nodes), plan.keys);
    let first = Rc::new(nodes.patient());
    let unmade = sql::first_statements(keys).into_iter().find_map(|text| {
        let (node, asked) = (first.clone(), text.clone());
        match setting.run_on(ShardId(0), move |shard| sql::set_up(shard, node, asked)) {
            Some(made) => made.err(),
            None => Some(format!("a statement that makes the tables is not answered: {text}")),
        }
    });
    if let Some(why) = unmade {
        return judge::judge(plan, setting, ClientResults::default(), Some(why), &mut |_, _, _| ());
    }
    for shard in setting.shards() {
        let rows = setting.world.newest_rows(shard, TableId(0).row()).unwrap_or_default();
        setting.used.extend(rows.iter().filter_map(|(key, ..)| Partitioning::Own.slot(key)));
    }
    let (left, stuck) = setting.clients(plan, Needs::Sessions(nodes.clone()));
    judge::judge(plan, setting, left, stuck, &mut |setting, left, found| {
        sql::judge::judge(setting, &nodes, left, found);
    })
}

/// A benchmark's workload, small.
fn benchmark(plan: &Plan, recorder: Option<Recorder>, workload: Arc<dyn AnyWorkload>) -> Outcome {
    let mut setting = Setting::new(plan, workload.tables(), workload.protocol_options(), recorder);
    for unit in 0..workload.units() {
        let shards = match workload.unit_slot(unit) {
            Some(slot) => vec![setting.placement.shard(slot)],
            None => setting.shards().collect(),
        };
        for shard in shards {
            workload.load(unit, &mut |table, key, values| setting.load(shard, table, &key, values));
        }
    }
    let (left, stuck) = setting.clients(plan, Needs::Benchmark(workload.clone()));
    judge::judge(plan, setting, left, stuck, &mut |setting, left, found| {
        if plan.scheme != "rc" {
            found.violations.extend(audits(setting, &*workload, left));
        }
    })
}

/// The workload's own invariants, at the end. They need snapshots, and every scheme has one when
/// all is quiet.
fn audits(setting: &mut Setting, workload: &dyn AnyWorkload, left: &ClientResults) -> Vec<Violation> {
    let mut done = Vec::new();
    for (number, mut audit) in workload.audits().into_iter().enumerate() {
        let shard = ShardId((number % setting.shards) as u16);
        let observer = setting.outsider();
        let (pair, settled_ns) = (setting.pair, setting.settled_ns());
        let audited = setting.run_on(shard, move |shard| async move {
            let mut client = Client::new(shard, pair, observer, 0, 0);
            client.shard.sleep(settled_ns).await;
            let attempt = client.attempt(0);
            let committed = client.procedure("audit", attempt, audit.procedure()).await;
            matches!(committed, Ok(Some(_))).then_some(audit)
        });
        match audited.flatten() {
            Some(audit) => done.push(audit),
            None => {
                let detail = format!("audit {number} of {} found no end", workload.name());
                return vec![Violation { kind: "stuck".to_owned(), detail }];
            }
        }
    }
    let mut tally = workload.no_tally();
    tally.add(&left.tally);
    let failed = workload.judge(done, &tally).into_iter().filter(|check| !check.ok);
    failed.map(|check| Violation { kind: check.name, detail: check.detail }).collect()
}

impl Setting {
    /// Takes out of what clients have left what a database that went back to a cut has lost: of
    /// what has begun before all shards were back, that with a timestamp above, if nothing that it
    /// wrote is there. What is there in part stays, and will be found wrong.
    fn lose(&self, left: &mut ClientResults) {
        let mut cuts: Vec<(u64, Timestamp)> =
            self.lives.iter().flat_map(|lives| lives.borrow().cuts.clone()).collect();
        // Of those that come later, the lowest.
        cuts.sort_unstable();
        for at in (1..cuts.len()).rev() {
            cuts[at - 1].1 = cuts[at - 1].1.min(cuts[at].1);
        }
        let is_above = |begin: u64, stamp: Timestamp| {
            cuts.get(cuts.partition_point(|&(back, _)| back <= begin)).is_some_and(|&(_, cut)| stamp > cut)
        };
        let there: BTreeSet<TxnId> =
            self.lives.iter().flat_map(|lives| lives.borrow().transactions()).collect();
        let is_lost = |it: &Recorded| {
            it.timestamp.is_some_and(|stamp| is_above(it.begin, stamp))
                && (it.writes == Some(0) || !there.contains(&it.id))
        };
        let lost: Vec<bool> = left.transactions.iter().map(is_lost).collect();
        left.lost += lost.iter().filter(|&&lost| lost).count() as u64;
        let gone: BTreeSet<_> = (left.transactions.iter().zip(&lost))
            .filter(|&(_, &lost)| lost)
            .map(|(it, _)| (it.session, it.timestamp))
            .collect();
        // What they saw is noted along with them.
        let mut of_transaction = lost.iter();
        left.transactions.retain(|_| of_transaction.next() == Some(&false));
        let mut of_transaction = lost.iter();
        left.values.retain(|_| of_transaction.next() == Some(&false));
        left.appended.retain(|it| it.timestamp.is_none() || !gone.contains(&(it.session, it.timestamp)));
    }

    /// Takes what all shards have installed.
    pub(crate) fn take_installs(&self) -> Vec<Vec<Install>> {
        let is_copied = |table: TableId| self.tables[table.index()].partitioning == Partitioning::Everywhere;
        match self.lives.is_empty() {
            false => take_installs(&self.lives, is_copied),
            true => {
                let of = |shard| self.world.shard(shard).map(|shard| shard.take_installs());
                self.shards().map(|shard| of(shard).unwrap_or_default()).collect()
            }
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            hash: self.world.hash(),
            virtual_ns: self.world.now(),
            moves: self.moved.get(),
            from_images: self.lives.iter().map(|lives| lives.borrow().from_images).sum(),
            faults: self.world.occurrences().to_vec(),
            clock_error_ns: self.world.clock_error_ns(),
            ..Outcome::default()
        }
    }
}
