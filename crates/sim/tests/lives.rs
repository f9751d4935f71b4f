//! Machines that end and begin again while transactions are under way: what each must not believe of the other's former
//! life, and that nobody is left waiting.
//!
//! Three machines hold a record each, a fourth coordinates. Links are cut to stop the world at a certain point.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_runtime::sim::{Fault, Faults, Hardware, Link, Maker, World};
use plimsoll_runtime::{Env, LowWater, ShardEnv};
use plimsoll_store::At;
use plimsoll_txn::base::{Base, Common, CommonReply, Layout};
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::moves::MoveOutcome;
use plimsoll_txn::protocol::{Attempt, Protocol, ProtocolOptions};
use plimsoll_txn::protocols::{Client2pc, Occ, TwoPl};
use plimsoll_txn::timestamp::{OracleOptions, Scheme, SchemeConfig};
use plimsoll_txn::timestamps::{Dst, NoTimestamps};
use plimsoll_txn::votes::PATIENCE_NS;
use plimsoll_types::{
    Abort, IndexKind, Key, Partitioning, Placement, ShardId, Slot, TableId, TableSpec, Timestamp,
};

const TABLE: TableId = TableId(0);
/// Its rows have two columns with records of their own; there are none yet.
const WIDE: TableId = TableId(1);
/// Three machines with data, and one without.
const A: usize = 0;
const B: usize = 1;
const D: usize = 2;
const C: usize = 3;
const MS: u64 = 1_000_000;

fn key(shard: usize) -> Key {
    Key::of_u64(shard as u64)
}

/// What became of a transaction, when it is over.
type Ended = Rc<RefCell<Option<Result<(), Abort>>>>;

struct Stage<P: Protocol> {
    world: World<P>,
}

impl<P: Protocol> Stage<P> {
    fn new() -> Stage<P> {
        let spec = |name| TableSpec::new(name, IndexKind::Hash, Partitioning::Modulo { bytes: 8 });
        let tables = vec![spec("t"), spec("wide").with_groups(&["a", "b"])];
        let placement = Arc::new(Placement::even(3));
        let layout = Layout { tables: tables.into(), placement, processes: vec![0, 1, 2, 3].into() };
        let makers = (0..4).map(|shard: usize| {
            let layout = layout.clone();
            let make = move |life| {
                let config = SchemeConfig {
                    shard: ShardId(shard as u16),
                    data_shards: 4,
                    max_staleness_ns: 0,
                    oracle: OracleOptions::default(),
                    single_version: false,
                    process: shard,
                    processes: 4,
                    visitors: 4..4,
                    process_counter: Arc::new(AtomicU64::new(0)),
                    first_attempt: life,
                    patience_ns: PATIENCE_NS,
                };
                let others: Vec<usize> = (0..4).filter(|&other| other != shard).collect();
                let low_water = LowWater::among(shard..shard + 1, P::Scheme::slots(&config), &others);
                let mut base = Base::new(&layout, &config, low_water);
                if shard != C {
                    base.store.load(TABLE, &key(shard), &[b"old"]);
                }
                P::new(base, ProtocolOptions::default())
            };
            Box::new(make) as Maker<P>
        });
        let hardware = Hardware { shards_per_machine: 1, ..Hardware::default() };
        Stage { world: World::new(&hardware, &Faults::none(), 1, makers.collect()) }
    }

    /// Something begins at the coordinator; what comes of it is found in the cell.
    fn begin<R: 'static>(
        &mut self,
        task: impl AsyncFnOnce(ShardEnv<P>) -> R + 'static,
    ) -> Rc<RefCell<Option<R>>> {
        self.begin_at(C, task)
    }

    fn begin_at<R: 'static>(
        &mut self,
        machine: usize,
        task: impl AsyncFnOnce(ShardEnv<P>) -> R + 'static,
    ) -> Rc<RefCell<Option<R>>> {
        let (result, place) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
        let slot = result.clone();
        place.replace(Some(task));
        self.world.spawn_on(ShardId(machine as u16), move |env| async move {
            let task = place.borrow_mut().take().expect("a task is started once");
            let done = task(env).await;
            slot.replace(Some(done));
        });
        result
    }

    /// Time passes.
    fn pass(&mut self, ns: u64) {
        let until_ns = self.world.now() + ns;
        self.world.run_until(until_ns);
    }

    /// Whether a machine has voted for a transaction and does not know the outcome.
    fn in_doubt(&self, machine: usize) -> bool {
        self.world.node(ShardId(machine as u16), |node| node.base().in_doubt()) == Some(1)
    }

    /// Until these have voted; nobody has heard yet of the last vote.
    fn pass_until_voted(&mut self, machines: &[usize]) {
        while !machines.iter().all(|&machine| self.in_doubt(machine)) {
            assert!(self.world.now() < 100 * MS, "it comes to voting");
            self.world.step();
        }
    }

    /// What is sent over these links is lost, or sent again when they are mended.
    fn cut(&mut self, links: &[(usize, usize)]) -> u32 {
        let links = links.iter().map(|&(from, to)| Link { from, to }).collect();
        self.world.inflict(Fault::Partition(links))
    }

    /// A machine ends, and begins again.
    fn restart(&mut self, machine: usize) {
        let crash = self.world.inflict(Fault::Crash(machine));
        self.world.end(crash);
    }

    fn value(&mut self, shard: usize) -> Vec<u8> {
        let read = self.begin(async move |env| {
            loop {
                let read = async {
                    let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), true).await?;
                    let value = txn.get(&env, TABLE.row(), &key(shard)).await?;
                    txn.commit(&env).await.map(|_| value)
                };
                match read.await {
                    Ok(value) => return value,
                    Err(_) => env.sleep(MS).await,
                }
            }
        });
        self.pass(1000 * MS);
        read.take().expect("nobody is in the way of a reader").expect("the record is there")
    }

    /// The stamp of the newest version.
    fn stamp(&self, shard: usize) -> Timestamp {
        let stamp = self.world.node(ShardId(shard as u16), |node| {
            let store = &mut node.base().store;
            let row = store.find(TABLE.row(), &key(shard)).row().expect("the record is there");
            store.record(At { row, column: TABLE.row() }).stamp()
        });
        stamp.expect("the machine is up")
    }

    /// Nothing is locked any more, and nobody remembers anything.
    fn is_at_rest(&mut self) {
        for shard in [A, B, D].map(|shard| ShardId(shard as u16)) {
            let left = self.world.node(shard, |node| (node.base().store.locks(), node.base().votes()));
            assert_eq!(left, Some((0, 0)), "locks and votes on {shard:?}");
        }
    }
}

/// Writes these records.
async fn write<P: Protocol>(env: ShardEnv<P>, records: &[usize]) -> Result<(), Abort> {
    let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
    for &record in records {
        txn.put(&env, TABLE.row(), &key(record), b"new").await?;
    }
    txn.commit(&env).await.map(drop)
}

/// Under every protocol.
macro_rules! under_each {
    ($($name:ident)*) => {
        mod occ {
            $(#[test]
            fn $name() {
                super::$name::<super::Occ<super::Dst>>();
            })*
        }

        mod two_pl {
            $(#[test]
            fn $name() {
                super::$name::<super::TwoPl<super::Dst>>();
            })*
        }

        mod client_2pc {
            $(#[test]
            fn $name() {
                super::$name::<super::Client2pc<super::Dst>>();
            })*
        }
    };
}

under_each! {
    what_was_read_in_a_life_that_is_over_is_not_relied_upon
    those_who_voted_find_the_outcome_without_their_coordinator
    a_vote_that_is_lost_ends_the_transaction
    a_vote_that_is_lost_with_the_coordinator_blocks_nobody
    what_one_knows_outweighs_what_it_said_before
    a_coordinator_that_has_lost_a_vote_asks_the_others_first
    read_locks_do_not_outlive_their_coordinator
    a_column_that_was_found_absent_stays_so_when_its_row_is_linked
    a_slot_does_not_move_between_the_answer_and_the_install
    what_moves_is_sent_again_when_the_channel_breaks
    a_coordinator_may_end_at_any_moment
    a_coordinator_may_be_cut_off_at_any_moment
}

#[test]
fn without_timestamps_a_coordinator_may_end_at_any_moment() {
    a_coordinator_may_end_at_any_moment::<Occ<NoTimestamps>>();
    a_coordinator_may_end_at_any_moment::<TwoPl<NoTimestamps>>();
    a_coordinator_may_end_at_any_moment::<Client2pc<NoTimestamps>>();
}

/// What is left of a transaction that reads on one machine and writes on two, when its coordinator ends, or is cut off for a
/// while, after each single event: both writes or none, what the coordinator was told, and no lock.
fn at_every_moment<P: Protocol>(ends: bool) {
    let (mut kept, mut gone) = (0, 0);
    for moment in 0.. {
        let mut stage = Stage::<P>::new();
        let ended: Ended = stage.begin(async |env| {
            let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
            txn.get(&env, TABLE.row(), &key(D)).await?;
            for record in [A, B] {
                txn.put(&env, TABLE.row(), &key(record), b"new").await?;
            }
            txn.commit(&env).await.map(drop)
        });
        for _ in 0..moment {
            stage.world.step();
        }
        let over = ended.borrow().is_some() && ![A, B].iter().any(|&machine| stage.in_doubt(machine));
        if ends {
            stage.restart(C);
        } else {
            let links = [A, B, D].map(|machine| [(C, machine), (machine, C)]);
            let cut = stage.cut(links.as_flattened());
            stage.pass(3 * PATIENCE_NS);
            stage.world.end(cut);
        }
        stage.pass(10 * PATIENCE_NS);
        let values = [A, B].map(|machine| stage.value(machine));
        assert_eq!(values[0], values[1], "both or none, moment {moment}");
        let new = values[0] == b"new";
        match *ended.borrow() {
            Some(Ok(())) => assert!(new, "what was answered is there, moment {moment}"),
            None => assert!(ends, "everybody is answered, moment {moment}"),
            Some(Err(Abort::Unknown)) => {}
            Some(Err(abort)) => assert!(!new, "{abort:?} is not there, moment {moment}"),
        }
        stage.is_at_rest();
        if new {
            kept += 1
        } else {
            gone += 1
        }
        if over {
            break;
        }
    }
    // A client that commits asks again until it is answered.
    assert!(kept > 0 && (gone > 0 || !ends), "kept at {kept} moments, gone at {gone}");
}

fn a_coordinator_may_end_at_any_moment<P: Protocol>() {
    at_every_moment::<P>(true);
}

fn a_coordinator_may_be_cut_off_at_any_moment<P: Protocol>() {
    at_every_moment::<P>(false);
}

fn what_was_read_in_a_life_that_is_over_is_not_relied_upon<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let (go, went) = (Rc::new(RefCell::new(false)), Rc::new(RefCell::new(false)));
    let (goes, went_on) = (go.clone(), went.clone());
    let ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
        txn.get(&env, TABLE.row(), &key(A)).await?;
        went_on.replace(true);
        while !*goes.borrow() {
            env.sleep(MS).await;
        }
        txn.put(&env, TABLE.row(), &key(B), b"new").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(10 * MS);
    assert!(*went.borrow(), "it has read");
    stage.restart(A);
    stage.pass(10 * MS);
    go.replace(true);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Err(Abort::Unknown)));
    assert_eq!(stage.value(B), b"old");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

fn those_who_voted_find_the_outcome_without_their_coordinator<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    let crash = stage.world.inflict(Fault::Crash(C));
    stage.pass(3 * PATIENCE_NS);
    assert!(ended.borrow().is_none(), "nobody was told");
    stage.world.end(cut);
    stage.world.end(crash);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

fn a_vote_that_is_lost_ends_the_transaction<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A]);
    let cut = stage.cut(&[(A, C)]);
    stage.pass(20 * MS);
    assert!(stage.in_doubt(A) && stage.in_doubt(B));
    stage.restart(A);
    stage.world.end(cut);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Err(Abort::Unknown)));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"old"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

fn a_vote_that_is_lost_with_the_coordinator_blocks_nobody<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A]);
    let cut = stage.cut(&[(A, C), (B, C), (A, B)]);
    stage.pass(20 * MS);
    assert!(stage.in_doubt(A) && stage.in_doubt(B));
    stage.restart(A);
    stage.restart(C);
    stage.world.end(cut);
    stage.pass(5 * PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"old"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// A has heard that all have voted; B has heard from A before that, and from D nothing at all.
fn one_knows<P: Protocol>() -> (Stage<P>, Ended, u32) {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B, D]).await);
    stage.pass_until_voted(&[D]);
    let (from_a, cut) = (stage.cut(&[(D, A)]), stage.cut(&[(D, C), (D, B)]));
    stage.pass(PATIENCE_NS + PATIENCE_NS / 2);
    assert_eq!([A, B].map(|machine| stage.in_doubt(machine)), [true, true], "they have told each other");
    stage.world.end(from_a);
    stage.pass(PATIENCE_NS);
    assert_eq!([A, B].map(|machine| stage.in_doubt(machine)), [false, true]);
    (stage, ended, cut)
}

fn what_one_knows_outweighs_what_it_said_before<P: Protocol>() {
    let (mut stage, _, cut) = one_knows::<P>();
    stage.restart(D);
    stage.restart(C);
    stage.world.end(cut);
    stage.pass(5 * PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

fn a_coordinator_that_has_lost_a_vote_asks_the_others_first<P: Protocol>() {
    let (mut stage, ended, cut) = one_knows::<P>();
    stage.restart(D);
    stage.world.end(cut);
    stage.pass(PATIENCE_NS / 4);
    assert_eq!(ended.take(), Some(Ok(())));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// Asks a machine to give the slot of its record to another.
async fn give<P: Protocol>(env: ShardEnv<P>, from: usize, to: usize) -> MoveOutcome {
    let to = ShardId(to as u16);
    let request = Common::Move { slots: vec![Slot(from as u16)], to, asked: false };
    match env.call(ShardId(from as u16), P::common(request)).await.map(P::common_reply) {
        Ok(CommonReply::MoveOver(outcome)) => outcome,
        _ => panic!("whoever is asked to move something says what came of it"),
    }
}

/// Who has the record of a machine.
fn holders<P: Protocol>(stage: &Stage<P>, record: usize) -> Vec<usize> {
    let has = |&machine: &usize| {
        let shard = ShardId(machine as u16);
        stage.world.node(shard, |node| node.base().store.find(TABLE.row(), &key(record)).row().is_some())
            == Some(true)
    };
    [A, B, D].iter().copied().filter(has).collect()
}

fn a_slot_does_not_move_between_the_answer_and_the_install<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(C, A), (B, A)]);
    let moved = stage.begin_at(D, async |env| give::<P>(env, A, D).await);
    stage.pass(PATIENCE_NS / 2);
    assert_eq!(ended.take(), Some(Ok(())), "the client was answered");
    assert!(stage.in_doubt(A) && moved.borrow().is_none());
    assert_eq!(holders(&stage, A), [A]);
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!(moved.take(), Some(MoveOutcome::Moved));
    assert_eq!(holders(&stage, A), [D]);
    assert_eq!([A, B].map(|record| stage.value(record)), [b"new", b"new"]);
    let ended = stage.begin(async |env| write::<P>(env, &[A, D]).await);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())), "the coordinator has learned where it is");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

fn what_moves_is_sent_again_when_the_channel_breaks<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let cut = stage.cut(&[(A, B)]);
    let moved = stage.begin_at(A, async |env| give::<P>(env, A, B).await);
    stage.pass(10 * MS);
    assert_eq!(holders(&stage, A), [0; 0], "it is under way");
    let read = stage.begin(async |env| {
        let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), true).await?;
        txn.get(&env, TABLE.row(), &key(A)).await
    });
    stage.pass(10 * MS);
    assert!(read.borrow().is_none(), "a reader waits for it");
    stage.world.inflict(Fault::Reset(ShardId(A as u16), ShardId(B as u16)));
    stage.world.end(cut);
    stage.pass(1000 * MS);
    assert_eq!(moved.take(), Some(MoveOutcome::Moved));
    assert_eq!(holders(&stage, A), [B]);
    if P::NAME != "two_pl" {
        assert_eq!(read.take(), Some(Ok(Some(b"old".to_vec()))));
    }
    assert_eq!(stage.value(A), b"old");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// One column of a row is found absent and another is written, which gives the row a place: whoever fills the first comes
/// after that.
fn a_column_that_was_found_absent_stays_so_when_its_row_is_linked<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
        assert_eq!(txn.get(&env, WIDE.group(0), &key(A)).await?, None);
        txn.put(&env, WIDE.group(1), &key(A), b"new").await?;
        txn.put(&env, TABLE.row(), &key(B), b"new").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    let other = stage.begin_at(A, async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
        txn.put(&env, WIDE.group(0), &key(A), b"other").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(20 * MS);
    assert!(!matches!(other.take(), Some(Ok(()))), "it is held, or locked");
    stage.world.end(cut);
    stage.pass(3 * PATIENCE_NS);
    assert_eq!(ended.take(), Some(Ok(())));
    let bounds = stage.world.node(ShardId(A as u16), |node| {
        let store = &mut node.base().store;
        let place = store.find(WIDE.row(), &key(A));
        let row = place.row().expect("it was linked");
        let [absent, written] = [0, 1].map(|group| At { row, column: WIDE.group(group) });
        (store.bound(Some(store.record(absent)), WIDE, place.cover()), store.record(written).stamp())
    });
    let (bound, stamp) = bounds.expect("the machine is up");
    assert!(bound >= stamp, "{bound:?} is below {stamp:?}");
    stage.is_at_rest();
}

fn read_locks_do_not_outlive_their_coordinator<P: Protocol>() {
    let mut stage = Stage::<P>::new();
    stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin::<P, _>(&env, Attempt::default(), false).await?;
        for shard in [A, B] {
            txn.get(&env, TABLE.row(), &key(shard)).await?;
        }
        env.sleep(u64::MAX / 4).await;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(10 * MS);
    stage.restart(C);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
}

// What only client-driven two-phase commit does: shards vote before the stamp is known, and those that were only read do.

#[test]
fn those_who_voted_find_the_largest_stamp_without_their_coordinator() {
    let mut stage = Stage::<Client2pc<Dst>>::new();
    // A reader whose clock is ahead leaves a mark on A that only A knows of.
    stage.world.inflict(Fault::Step(D, 100 * MS as i64));
    stage.pass(10 * MS);
    let read = stage.begin_at(D, async move |env: ShardEnv<Client2pc<Dst>>| {
        let mut txn = Transaction::begin::<Client2pc<Dst>, _>(&env, Attempt::default(), true).await?;
        txn.get(&env, TABLE.row(), &key(A)).await?;
        txn.commit(&env).await.map(|committed| committed.stamp)
    });
    stage.pass(10 * MS);
    let mark = read.take().expect("it has read").expect("readers do not abort").expect("at a snapshot");
    let ended = stage.begin(async |env| write::<Client2pc<Dst>>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    let crash = stage.world.inflict(Fault::Crash(C));
    stage.pass(3 * PATIENCE_NS);
    assert!(ended.borrow().is_none(), "nobody was told");
    assert!(stage.stamp(B) > mark, "B knows what A has asked for");
    assert_eq!(stage.stamp(A), stage.stamp(B));
    stage.world.end(cut);
    stage.world.end(crash);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// Reads A and writes B.
async fn read_and_write(env: ShardEnv<Client2pc<Dst>>) -> Result<(), Abort> {
    let mut txn = Transaction::begin::<Client2pc<Dst>, _>(&env, Attempt::default(), false).await?;
    txn.get(&env, TABLE.row(), &key(A)).await?;
    txn.put(&env, TABLE.row(), &key(B), b"new").await?;
    txn.commit(&env).await.map(drop)
}

#[test]
fn a_shard_that_was_only_read_votes_and_holds_what_was_read() {
    let mut stage = Stage::<Client2pc<Dst>>::new();
    let ended = stage.begin(read_and_write);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C), (A, B), (B, A)]);
    stage.restart(C);
    stage.pass(PATIENCE_NS);
    let other = stage.begin_at(D, async |env| write::<Client2pc<Dst>>(env, &[A]).await);
    stage.pass(100 * MS);
    assert_eq!(other.take(), Some(Err(Abort::WriteConflict)), "nobody overwrites it before the decision");
    stage.world.end(cut);
    stage.pass(3 * PATIENCE_NS);
    assert!(ended.borrow().is_none(), "nobody was told");
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
    let other = stage.begin_at(D, async |env| write::<Client2pc<Dst>>(env, &[A]).await);
    stage.pass(100 * MS);
    assert_eq!(other.take(), Some(Ok(())));
    assert!(stage.stamp(A) > stage.stamp(B), "who overwrites what was read comes after the reader");
}

#[test]
fn a_vote_that_is_lost_where_it_was_only_read_ends_the_transaction() {
    let mut stage = Stage::<Client2pc<Dst>>::new();
    let ended = stage.begin(read_and_write);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C)]);
    stage.pass(20 * MS);
    stage.restart(A);
    stage.world.end(cut);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Err(Abort::Unknown)));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"old"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

#[test]
fn a_prepare_that_comes_after_the_refusal_is_refused() {
    let mut stage = Stage::<Client2pc<Dst>>::new();
    let cut = stage.cut(&[(C, B)]);
    let ended = stage.begin(async |env| write::<Client2pc<Dst>>(env, &[A, B]).await);
    stage.pass_until_voted(&[A]);
    assert!(!stage.in_doubt(B), "it has heard of nothing");
    // A asks B, who says no, and must remember that it has.
    stage.pass(2 * PATIENCE_NS);
    assert!(!stage.in_doubt(A), "it knows that the transaction is aborted");
    assert!(ended.borrow().is_none(), "the coordinator waits for B");
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!(ended.take(), Some(Err(Abort::Refused)));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"old"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}
