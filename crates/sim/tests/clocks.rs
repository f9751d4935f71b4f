//! Clocks that are wrong: answers wait for them, but not for long.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_runtime::LowWater;
use plimsoll_runtime::sim::{Faults, Hardware, Maker, World};
use plimsoll_store::At;
use plimsoll_txn::attempt::{Attempt, ProtocolOptions};
use plimsoll_txn::base::{Base, Layout};
use plimsoll_txn::execute::execute;
use plimsoll_txn::pairs::LegalPair;
use plimsoll_txn::procedure::{Access, Piece, Procedure, Reads};
use plimsoll_txn::protocols::{Occ, TwoPl};
use plimsoll_txn::timestamp::{MAX_OFFSET_NS, SchemeConfig};
use plimsoll_txn::timestamps::Dst;
use plimsoll_txn::work::Footprint;
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, ShardId, Slot, TableId, TableSpec, Timestamp,
};

const T: TableId = TableId(0);

/// Writes the only record, or reads it.
struct Touch {
    write: bool,
    read: Option<Vec<u8>>,
}

impl Procedure for Touch {
    fn read_only(&self) -> bool {
        !self.write
    }

    fn stage(&self, stage: usize) -> usize {
        usize::from(stage == 0)
    }

    fn home(&self, _: Piece) -> Slot {
        Partitioning::modulo(0)
    }

    fn reads(&self, _: Piece, reads: &mut Reads) {
        reads.get(T.row(), Key::of_u64(0));
    }

    fn execute<A: Access>(&mut self, _: Piece, access: &mut A) -> Result<(), Abort> {
        self.read = access.get(T.row(), &Key::of_u64(0))?.map(<[u8]>::to_vec);
        if self.write { access.put(T.row(), &Key::of_u64(0), b"new") } else { Ok(()) }
    }
}

plimsoll_txn::executable!(Touch);

/// One shard with a record.
fn world<P: LegalPair>() -> World<P> {
    let table = TableSpec::new("t", IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
    let layout =
        Layout { tables: [table].into(), placement: Arc::new(Placement::even(1)), processes: [0].into() };
    let make = move |_| {
        let config = SchemeConfig::in_one_process(ShardId(0), 1);
        P::new(Base::new(&layout, &config, LowWater::new(1, 1)), ProtocolOptions::default())
    };
    let makers = vec![Box::new(make) as Maker<P>];
    let world = World::new(&Hardware::default(), &Faults::none(), 1, makers);
    world
        .node(ShardId(0), |node| node.base().store.load(T, &Key::of_u64(0), &[b"old"]))
        .expect("the shard is up");
    world
}

/// How long it takes to write a record whose mark is so far ahead of the clock, how many answers
/// did not wait for their timestamps, and what is read afterwards.
fn write<P: LegalPair>(ahead_ns: u64) -> (u64, u64, Vec<u8>) {
    let mut world = world::<P>();
    let now = world.clock(ShardId(0)).0;
    world
        .node(ShardId(0), |node| {
            let store = &mut node.base().store;
            let row = store.find(T.row(), &Key::of_u64(0)).row().expect("it was loaded");
            let mark = &mut store.record_mut(At { row, column: T.row() }).mark;
            plimsoll_store::Mark::raise(mark, Timestamp(now + ahead_ns));
        })
        .expect("the shard is up");
    let (took, read) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(None)));
    let (tell, told, watch) = (took.clone(), read.clone(), world.observer());
    world.spawn_on(ShardId(0), move |env| async move {
        let mut touch = Touch { write: true, read: None };
        let begun = watch.true_time().0;
        let result = execute::<P>(&env, Attempt::default(), &mut touch, &mut Footprint::default()).await;
        result.expect("there is nobody to conflict with");
        tell.set(Some(watch.true_time().0 - begun));
        touch.write = false;
        let result = execute::<P>(&env, Attempt::default(), &mut touch, &mut Footprint::default()).await;
        result.expect("a snapshot does not abort");
        told.set(touch.read);
    });
    world.run_until(10 * MAX_OFFSET_NS);
    let early = world.node(ShardId(0), |node| node.base().counters.early_answers).expect("the shard is up");
    (took.take().expect("it was answered"), early, read.take().expect("it was read"))
}

fn answers_wait_for_clocks_but_not_for_long<P: LegalPair>() {
    for ahead_ns in [0, 1_000_000, MAX_OFFSET_NS - 1_000_000, 3_600_000_000_000] {
        let (took_ns, early, read) = write::<P>(ahead_ns);
        let waits_ns = ahead_ns.min(MAX_OFFSET_NS);
        // The shard wakes, and executes, for a moment.
        let expected = waits_ns.saturating_sub(100_000)..waits_ns + 100_000;
        assert!(expected.contains(&took_ns), "{took_ns} ns for {ahead_ns} ns");
        assert_eq!(early, u64::from(ahead_ns > MAX_OFFSET_NS), "{ahead_ns}");
        assert_eq!(read, b"new", "a shard reads its own commits, {ahead_ns}");
    }
}

#[test]
fn answers_of_occ_wait_for_clocks_but_not_for_long() {
    answers_wait_for_clocks_but_not_for_long::<Occ<Dst>>();
}

#[test]
fn answers_of_two_pl_wait_for_clocks_but_not_for_long() {
    answers_wait_for_clocks_but_not_for_long::<TwoPl<Dst>>();
}
