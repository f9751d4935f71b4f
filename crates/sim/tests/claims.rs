//! VTS, and clients that end, or lose the oracle, while a transaction of theirs is on its way: what
//! becomes of it is seen by all or by nobody, and the vector goes on.
//!
//! Two machines hold a record each, a third coordinates and comes and goes, a fourth is the oracle.
//! Links are cut to stop the world at a certain point.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::sim::{Fault, Faults, Hardware, Link, Maker, World};
use plimsoll_runtime::{LowWater, ShardEnv};
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::protocols::{Occ, TwoPl};
use plimsoll_txn::service::Service as _;
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamp::{Freshness, OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::timestamps::Vts;
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, ShardId, TableId, TableSpec, Timestamp,
};

const TABLE: TableId = TableId(0);
/// Two machines with data, a client, and the oracle.
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const ORACLE: usize = 3;
const MS: u64 = 1_000_000;
/// The oracle takes a client for dead after this, long before its locks are dropped.
const SOON_NS: u64 = 10 * MS;

fn key(shard: usize) -> Key {
    Key::of_u64(shard as u64)
}

fn shard(machine: usize) -> ShardId {
    ShardId(machine as u16)
}

/// What became of a write, when it is over.
type Ended = Rc<RefCell<Option<Result<Timestamp, Abort>>>>;

struct Stage<P: LegalPair> {
    world: World<P>,
}

impl<P: InteractivePair<Scheme = Vts>> Stage<P> {
    fn new() -> Stage<P> {
        let tables = vec![TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 8 })];
        let layout = Layout {
            tables: tables.into(),
            placement: Arc::new(Placement::even(2)),
            processes: vec![0, 1, 2].into(),
        };
        let makers = (0..4).map(|machine: usize| {
            let layout = layout.clone();
            let make = move |life| {
                let config = SchemeConfig {
                    shard: shard(machine),
                    data_shards: 3,
                    max_staleness_ns: 0,
                    oracle: OracleOptions::default(),
                    single_version: false,
                    process: machine,
                    processes: 2,
                    clients: 2..3,
                    process_counter: Arc::default(),
                    first_attempt: life,
                    patience_ns: if machine == ORACLE { SOON_NS } else { PATIENCE_NS },
                    logs: false,
                };
                let others: Vec<usize> = (0..3).filter(|&other| other != machine).collect();
                let low_water = LowWater::among(machine..machine + 1, Vts::slots(&config), &others);
                let mut base = Base::new(&layout, &config, low_water);
                if machine < C {
                    base.store.load(TABLE, &key(machine), &[b"old"]);
                }
                P::new(base, ProtocolOptions::default())
            };
            Box::new(make) as Maker<P>
        });
        let hardware = Hardware { shards_per_machine: 1, ..Hardware::default() };
        let mut world = World::new(&hardware, &Faults::none(), 1, makers.collect());
        world.run_until(world.now() + 10 * MS);
        Stage { world }
    }

    /// Something begins on a machine; what comes of it is found in the cell.
    fn begin<R: 'static>(
        &mut self,
        machine: usize,
        task: impl AsyncFnOnce(ShardEnv<P>) -> R + 'static,
    ) -> Rc<RefCell<Option<R>>> {
        let (result, place) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(Some(task))));
        let slot = result.clone();
        self.world.spawn_on(shard(machine), move |env| async move {
            let task = place.borrow_mut().take().expect("a task is started once");
            let done = task(env).await;
            slot.replace(Some(done));
        });
        result
    }

    /// The client writes "new" into these records.
    fn write(&mut self, records: &'static [usize]) -> Ended {
        self.begin(C, async move |env: ShardEnv<P>| {
            let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
            for &record in records {
                txn.put(&env, TABLE.row(), &key(record), b"new").await?;
            }
            txn.commit(&env).await.map(|committed| committed.stamp.expect("a write has a stamp"))
        })
    }

    fn pass(&mut self, ns: u64) {
        let until_ns = self.world.now() + ns;
        self.world.run_until(until_ns);
    }

    fn pass_until(&mut self, happens: impl Fn(&mut P) -> bool, machine: usize) {
        let until_ns = self.world.now() + 100 * MS;
        while self.world.node(shard(machine), |node| happens(node)) != Some(true) {
            assert!(self.world.now() < until_ns, "it comes to that");
            self.world.step();
        }
    }

    fn in_doubt(&self, machine: usize) -> bool {
        self.world.node(shard(machine), |node| node.base().in_doubt()) == Some(1)
    }

    fn cut(&mut self, links: &[(usize, usize)]) -> u32 {
        let links = links.iter().map(|&(from, to)| Link { from, to }).collect();
        self.world.inflict(Fault::Partition(links))
    }

    /// The client's process ends, and another takes its place.
    fn restart(&mut self) {
        let crash = self.world.inflict(Fault::Crash(C));
        self.world.end(crash);
    }

    /// The oracle and the client lose each other, or find each other again.
    fn connect(&mut self, life: Option<u64>) {
        for (machine, peer) in [(ORACLE, C), (C, ORACLE)] {
            let told = self.world.node(shard(machine), |node| node.connected(shard(peer), life));
            told.expect("both are up");
        }
    }

    /// Both records in one snapshot of a machine, at least as new as this.
    fn snapshot(&mut self, machine: usize, at_least: Timestamp) -> Vec<Vec<u8>> {
        self.read(machine, at_least, &[A, B])
    }

    fn read(&mut self, machine: usize, at_least: Timestamp, records: &'static [usize]) -> Vec<Vec<u8>> {
        let read = self.begin(machine, async move |env: ShardEnv<P>| {
            let attempt = Attempt { freshness: Freshness { at_least, ..Freshness::default() }, age: 0 };
            let mut txn = Transaction::begin(&env, attempt, true).await?;
            let mut read = Vec::new();
            for &record in records {
                read.push(txn.get(&env, TABLE.row(), &key(record)).await?.expect("it is there"));
            }
            txn.commit(&env).await.map(|_| read)
        });
        self.pass(50 * MS);
        read.take().expect("nobody is in the way of a reader").expect("the oracle can be reached")
    }

    /// All that was stamped is published, nothing is locked, and nobody remembers anything.
    fn is_at_rest(&mut self) {
        self.pass(3 * PATIENCE_NS);
        for machine in [A, B] {
            let left =
                self.world.node(shard(machine), |node| (node.base().store.locks(), node.base().votes()));
            assert_eq!(left, Some((0, 0)), "locks and votes on machine {machine}");
        }
        let unpublished = self.world.node(shard(ORACLE), |node| node.base().scheme.unpublished());
        assert_eq!(unpublished, Some(0));
    }

    /// Both are written by whoever is in the client's place, and that is seen.
    fn goes_on(&mut self) {
        let ended = self.write(&[A, B]);
        self.pass(100 * MS);
        let stamp = ended.take().expect("it is over").expect("nobody is in its way");
        assert_eq!(self.snapshot(C, stamp), [b"new", b"new"]);
        self.is_at_rest();
        assert_eq!(self.snapshot(A, Timestamp::ZERO), [b"new", b"new"]);
    }
}

const OLD: [&[u8]; 2] = [b"old", b"old"];

/// Under every protocol.
macro_rules! under_each {
    ($($name:ident)*) => {
        mod occ {
            $(#[test]
            fn $name() {
                super::$name::<super::Occ<super::Vts>>();
            })*
        }

        mod two_pl {
            $(#[test]
            fn $name() {
                super::$name::<super::TwoPl<super::Vts>>();
            })*
        }
    };
}

under_each! {
    a_client_that_ends_with_locks_and_no_stamp_holds_nobody_back
    a_client_that_ends_between_two_votes_has_written_nothing
    what_a_client_has_committed_is_seen_when_all_have_installed_it
    a_stamp_is_too_late_when_its_claim_is_over
    a_client_that_loses_the_oracle_waits_for_it_and_goes_on_with_what_it_had
}

fn a_client_that_ends_with_locks_and_no_stamp_holds_nobody_back<P: InteractivePair<Scheme = Vts>>() {
    let mut stage = Stage::<P>::new();
    stage.write(&[A, B]);
    stage.pass_until(|node| node.base().store.locks() == 1, A);
    stage.restart();
    stage.pass(2 * PATIENCE_NS);
    assert_eq!(stage.snapshot(C, Timestamp::ZERO), OLD);
    stage.is_at_rest();
    stage.goes_on();
}

fn a_client_that_ends_between_two_votes_has_written_nothing<P: InteractivePair<Scheme = Vts>>() {
    let mut stage = Stage::<P>::new();
    stage.write(&[A, B]);
    stage.pass_until(|node| node.base().store.locks() == 1, B);
    let cut = stage.cut(&[(C, B)]);
    stage.pass(20 * MS);
    assert!(stage.in_doubt(A) && !stage.in_doubt(B));
    // A asks B as soon as it has lost the client.
    let apart = stage.cut(&[(A, B)]);
    stage.restart();
    stage.pass(PATIENCE_NS / 2);
    let unpublished = |stage: &Stage<P>| {
        stage.world.node(shard(ORACLE), |node| node.base().scheme.unpublished()) != Some(0)
    };
    assert!(unpublished(&stage), "A does not know what B will say");
    stage.world.end(apart);
    assert_eq!(stage.snapshot(A, Timestamp::ZERO), OLD);
    stage.pass(2 * PATIENCE_NS);
    assert!(!unpublished(&stage));
    assert_eq!(stage.snapshot(A, Timestamp::ZERO), OLD);
    stage.world.end(cut);
    stage.is_at_rest();
    stage.goes_on();
}

fn what_a_client_has_committed_is_seen_when_all_have_installed_it<P: InteractivePair<Scheme = Vts>>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.write(&[A, B]);
    stage.pass_until(|node| node.base().in_doubt() == 1, B);
    // B hears of nothing any more; A is told, and with the client the only one who would have
    // reported it ends.
    let cut = stage.cut(&[(C, B), (A, B)]);
    stage.pass(20 * MS);
    assert!(!stage.in_doubt(A) && stage.in_doubt(B));
    ended.take().expect("the client was answered").expect("all have voted");
    stage.restart();
    stage.pass(4 * PATIENCE_NS);
    assert_eq!(stage.read(A, Timestamp::ZERO, &[A]), [b"old"], "half of it is installed, none of it is seen");
    stage.world.end(cut);
    stage.is_at_rest();
    assert_eq!(stage.snapshot(A, Timestamp::ZERO), [b"new", b"new"]);
    stage.goes_on();
}

fn a_stamp_is_too_late_when_its_claim_is_over<P: InteractivePair<Scheme = Vts>>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.write(&[B]);
    stage.pass_until(|node| node.base().store.locks() == 1, B);
    // It lives, but its vote is slow, and the oracle has lost sight of it.
    let cut = stage.cut(&[(C, B)]);
    stage.pass(5 * MS);
    stage.connect(None);
    for _ in 0..10 {
        assert_eq!(stage.snapshot(A, Timestamp::ZERO), OLD);
    }
    let unpublished = stage.world.node(shard(ORACLE), |node| node.base().scheme.unpublished());
    assert_eq!(unpublished, Some(0), "all of its claim is published");
    assert!(ended.borrow().is_none());
    stage.world.end(cut);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Err(Abort::Refused)));
    assert_eq!(stage.snapshot(A, Timestamp::ZERO), OLD);
    stage.connect(Some(1));
    stage.pass(10 * MS);
    stage.goes_on();
}

fn a_client_that_loses_the_oracle_waits_for_it_and_goes_on_with_what_it_had<
    P: InteractivePair<Scheme = Vts>,
>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.write(&[A]);
    stage.pass(100 * MS);
    let before = ended.take().expect("it is over").expect("nobody is in its way");
    stage.connect(None);
    let ended = stage.write(&[A, B]);
    stage.pass(SOON_NS / 2);
    assert_eq!(ended.take(), Some(Err(Abort::Unknown)), "nobody has a stamp for it");
    stage.connect(Some(1));
    let ended = stage.write(&[A, B]);
    stage.pass(100 * MS);
    let after = ended.take().expect("it is over").expect("nobody is in its way");
    assert!(before < after && after.0 - before.0 < 10, "{before:?} and {after:?} are of one claim");
    stage.goes_on();
}
