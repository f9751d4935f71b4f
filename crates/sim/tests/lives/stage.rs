//! Three machines with a record each, and a fourth that coordinates.

use plimsoll_runtime::Tasks;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_runtime::sim::{Fault, Faults, Hardware, Link, Maker, World};
use plimsoll_runtime::{LowWater, ShardEnv};
use plimsoll_store::At;
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::execute::execute;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::shipped::{Items, OneShot, Shipped, unpack};
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamp::{OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::work::Footprint;
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, ShardId, Slot, TableId, TableSpec, Timestamp,
};

pub const TABLE: TableId = TableId(0);
/// Its rows have two columns with records of their own; there are none yet.
pub const WIDE: TableId = TableId(1);
/// It can be scanned, and has the same records as the first.
pub const ORDERED: TableId = TableId(2);
/// Three machines with data, and one without.
pub const A: usize = 0;
pub const B: usize = 1;
pub const D: usize = 2;
pub const C: usize = 3;
pub const MS: u64 = 1_000_000;

pub fn key(shard: usize) -> Key {
    Key::of_u64(shard as u64)
}

pub fn id(machine: usize) -> ShardId {
    ShardId(machine as u16)
}

/// What a task has come to, when it is over.
pub type Later<R> = Rc<RefCell<Option<R>>>;
/// What became of a transaction.
pub type Ended = Later<Result<(), Abort>>;

pub struct Stage<P: LegalPair> {
    pub world: World<P>,
}

impl<P: LegalPair> Stage<P> {
    pub fn new() -> Stage<P> {
        let spec = |name, index| TableSpec::new(name, index, Partitioning::Modulo { bytes: 8 });
        let wide = spec("wide", IndexKind::Hash).with_groups(&["a", "b"]);
        let tables = vec![spec("t", IndexKind::Hash), wide, spec("ordered", IndexKind::Ordered)];
        let placement = Arc::new(Placement::even(3));
        let layout = Layout { tables: tables.into(), placement, processes: vec![0, 1, 2, 3].into() };
        let makers = (0..4).map(|shard: usize| {
            let layout = layout.clone();
            let make = move |life| {
                let config = SchemeConfig {
                    shard: id(shard),
                    data_shards: 4,
                    max_staleness_ns: 0,
                    oracle: OracleOptions::default(),
                    single_version: false,
                    process: shard,
                    processes: 4,
                    clients: 4..4,
                    process_counter: Arc::new(AtomicU64::new(0)),
                    first_attempt: life,
                    patience_ns: PATIENCE_NS,
                    logs: false,
                };
                let others: Vec<usize> = (0..4).filter(|&other| other != shard).collect();
                let low_water = LowWater::among(shard..shard + 1, P::Scheme::slots(&config), &others);
                let mut base = Base::new(&layout, &config, low_water);
                if shard != C {
                    base.store.load(TABLE, &key(shard), &[b"old"]);
                    base.store.load(ORDERED, &key(shard), &[b"old"]);
                }
                P::new(base, ProtocolOptions { unpack: Some(unpack::<Play>), ..ProtocolOptions::default() })
            };
            Box::new(make) as Maker<P>
        });
        let hardware = Hardware { shards_per_machine: 1, ..Hardware::default() };
        Stage { world: World::new(&hardware, &Faults::none(), 1, makers.collect()) }
    }

    /// Something begins at the coordinator; what comes of it is found in the cell.
    pub fn begin<R: 'static>(&mut self, task: impl AsyncFnOnce(ShardEnv<P>) -> R + 'static) -> Later<R> {
        self.begin_at(C, task)
    }

    pub fn begin_at<R: 'static>(
        &mut self,
        machine: usize,
        task: impl AsyncFnOnce(ShardEnv<P>) -> R + 'static,
    ) -> Later<R> {
        let (result, place) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
        let slot = result.clone();
        place.replace(Some(task));
        self.world.spawn_on(id(machine), move |env| async move {
            let task = place.borrow_mut().take().expect("a task is started once");
            let done = task(env).await;
            slot.replace(Some(done));
        });
        result
    }

    /// Time passes.
    pub fn pass(&mut self, ns: u64) {
        let until_ns = self.world.now() + ns;
        self.world.run_until(until_ns);
    }

    /// Whether a machine has voted for a transaction and does not know the outcome.
    pub fn in_doubt(&self, machine: usize) -> bool {
        self.world.node(id(machine), |node| node.base().in_doubt()) == Some(1)
    }

    /// Whether a machine has something to do with a transaction that is not over, as far as it
    /// knows.
    pub fn is_under_way(&self, machine: usize) -> bool {
        self.in_doubt(machine) || self.world.node(id(machine), |node| node.remembered()) > Some(0)
    }

    /// How many locks are held on a machine.
    pub fn locks(&self, machine: usize) -> usize {
        self.world.node(id(machine), |node| node.base().store.locks()).expect("the machine is up")
    }

    /// Until these have voted; nobody has heard yet of the last vote.
    pub fn pass_until_voted(&mut self, machines: &[usize]) {
        self.pass_until(|stage| machines.iter().all(|&machine| stage.in_doubt(machine)));
    }

    /// Until this is so; what comes of it has not been heard of yet.
    pub fn pass_until(&mut self, so: impl Fn(&Stage<P>) -> bool) {
        while !so(self) {
            assert!(self.world.now() < 10 * PATIENCE_NS, "it comes to that");
            self.world.step();
        }
    }

    /// What is sent over these links is lost, or sent again when they are mended.
    pub fn cut(&mut self, links: &[(usize, usize)]) -> u32 {
        let links = links.iter().map(|&(from, to)| Link { from, to }).collect();
        self.world.inflict(Fault::Partition(links))
    }

    /// What two machines have sent each other and has not arrived is lost, and they are told so.
    pub fn reset(&mut self, one: usize, other: usize) {
        self.world.inflict(Fault::Reset(id(one), id(other)));
    }

    /// A machine ends, and begins again.
    pub fn restart(&mut self, machine: usize) {
        let crash = self.world.inflict(Fault::Crash(machine));
        self.world.end(crash);
    }

    pub fn value(&mut self, shard: usize) -> Vec<u8> {
        let read = self.begin(async move |env| {
            loop {
                let mut reader = Play::reads(&[shard]);
                match play(&env, &mut reader).await {
                    Ok(()) => return reader.seen.remove(0),
                    Err(_) => env.sleep(MS).await,
                }
            }
        });
        self.pass(1000 * MS);
        read.take().expect("nobody is in the way of a reader").expect("the record is there")
    }

    /// The stamp of the newest version of a record that a machine has.
    pub fn stamp(&self, record: usize, machine: usize) -> Timestamp {
        let stamp = self.world.node(id(machine), |node| {
            let store = &mut node.base().store;
            let row = store.find(TABLE.row(), &key(record)).row().expect("the record is there");
            store.record(At { row, column: TABLE.row() }).stamp()
        });
        stamp.expect("the machine is up")
    }

    /// Nothing is locked any more, and nobody remembers anything.
    pub fn is_at_rest(&mut self) {
        for shard in [A, B, D] {
            let left = self
                .world
                .node(id(shard), |node| (node.base().store.locks(), node.base().votes(), node.remembered()));
            assert_eq!(left, Some((0, 0, 0)), "locks, votes and graphs on {shard}");
        }
    }
}

impl<P: InteractivePair> Stage<P> {
    /// A reader at a machine whose clock is ahead leaves a mark behind. Returns its snapshot.
    pub fn read_ahead(&mut self, record: usize) -> Timestamp {
        self.world.inflict(Fault::Step(D, 100 * MS as i64));
        self.pass(10 * MS);
        let read = self.begin_at(D, async move |env| {
            let mut txn = Transaction::begin(&env, Attempt::default(), true).await?;
            txn.get(&env, TABLE.row(), &key(record)).await?;
            txn.commit(&env).await.map(|committed| committed.stamp)
        });
        self.pass(10 * MS);
        let stamp = read.take().expect("it has read").expect("readers do not abort");
        stamp.expect("at a snapshot")
    }
}

/// Writes these records.
pub async fn write<P: InteractivePair>(env: ShardEnv<P>, records: &[usize]) -> Result<(), Abort> {
    let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
    for &record in records {
        txn.put(&env, TABLE.row(), &key(record), b"new").await?;
    }
    txn.commit(&env).await.map(drop)
}

/// Runs a procedure once.
pub async fn play<P: LegalPair>(env: &ShardEnv<P>, procedure: &mut Play) -> Result<(), Abort> {
    execute(env, Attempt::default(), procedure, &mut Footprint::default()).await
}

/// Reads some records and then writes some, each in a piece of its own: under every protocol.
#[derive(Clone)]
pub struct Play {
    reads: Vec<Key>,
    writes: Vec<Key>,
    seen: Vec<Option<Vec<u8>>>,
}

plimsoll_types::wire!(struct Play { reads, writes, seen });

impl Play {
    pub fn reads(records: &[usize]) -> Play {
        let reads: Vec<Key> = records.iter().map(|&record| key(record)).collect();
        Play { seen: vec![None; reads.len()], reads, writes: Vec::new() }
    }

    pub fn and_writes(self, records: &[usize]) -> Play {
        Play { writes: records.iter().map(|&record| key(record)).collect(), ..self }
    }

    fn key(&self, Piece { stage, number }: Piece) -> &Key {
        if stage == 0 { &self.reads[number] } else { &self.writes[number] }
    }
}

impl Procedure for Play {
    fn read_only(&self) -> bool {
        self.writes.is_empty()
    }

    fn stage(&self, stage: usize) -> usize {
        [&self.reads, &self.writes].get(stage).map_or(0, |keys| keys.len())
    }

    fn home(&self, piece: Piece) -> Slot {
        Partitioning::modulo(self.key(piece).leading_int(8))
    }

    fn reads(&self, piece: Piece, reads: &mut Reads) {
        if piece.stage == 0 {
            reads.get(TABLE.row(), self.key(piece).clone());
        }
    }

    fn execute<X: Access>(&mut self, piece: Piece, access: &mut X) -> Result<(), Abort> {
        match piece.stage {
            0 => self.seen[piece.number] = access.get(TABLE.row(), self.key(piece))?.map(<[u8]>::to_vec),
            _ => access.put(TABLE.row(), self.key(piece), b"new")?,
        }
        Ok(())
    }

    fn shipped(&mut self) -> Option<&mut dyn Shipped> {
        Some(self)
    }
}

plimsoll_txn::executable!(Play);

impl OneShot for Play {
    fn piece_type(&self, piece: Piece) -> usize {
        piece.stage
    }

    fn items(&self, piece: Piece, items: &mut Items) {
        match piece.stage {
            0 => items.read(TABLE.row(), self.key(piece).clone()),
            _ => items.write(TABLE.row(), self.key(piece).clone()),
        }
    }

    fn absorb(&mut self, piece: Piece, executed: &Play) {
        if piece.stage == 0 {
            self.seen[piece.number].clone_from(&executed.seen[piece.number]);
        }
    }
}
