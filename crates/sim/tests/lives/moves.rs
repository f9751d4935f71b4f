//! Slots that move in the middle of a transaction.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_runtime::{Env, ShardEnv, Tasks};
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::envelope::{Answer, Envelope};
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::messages::{Common, CommonReply, MoveOutcome};
use plimsoll_txn::pairs::InteractivePair;
use plimsoll_txn::procedure::Scan;
use plimsoll_txn::protocols::{Client2pc, Occ};
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamps::Dst;
use plimsoll_types::{Key, SLOTS, Slot, Timestamp};

use crate::stage::*;

crate::under_each! {
    a_slot_does_not_move_between_the_answer_and_the_install
    what_moves_is_sent_again_when_the_channel_breaks
    who_writes_after_a_move_comes_after_those_who_read_before_it
    a_scan_finds_what_moves_meanwhile
}

/// Asks a machine to give the slot of its record to another.
async fn give<P: InteractivePair>(env: ShardEnv<P>, from: usize, to: usize) -> MoveOutcome {
    let to = id(to);
    let most = Timestamp(u64::MAX >> 1);
    let request = Common::Move { slots: vec![Slot(from as u16)], to, most, asked: false };
    match env.call(id(from), Envelope::Common(request)).await.map(Answer::common) {
        Ok(CommonReply::MoveOver(outcome)) => outcome,
        _ => panic!("whoever is asked to move something says what came of it"),
    }
}

/// Who has the record of a machine.
fn holders<P: InteractivePair>(stage: &Stage<P>, record: usize) -> Vec<usize> {
    let has = |&machine: &usize| {
        stage
            .world
            .node(id(machine), |node| node.base().store.find(TABLE.row(), &key(record)).row().is_some())
            == Some(true)
    };
    [A, B, D].iter().copied().filter(has).collect()
}

pub fn a_slot_does_not_move_between_the_answer_and_the_install<P: InteractivePair>() {
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

pub fn what_moves_is_sent_again_when_the_channel_breaks<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let cut = stage.cut(&[(A, B)]);
    let moved = stage.begin_at(A, async |env| give::<P>(env, A, B).await);
    stage.pass(10 * MS);
    assert_eq!(holders(&stage, A), [0; 0], "it is under way");
    let read = stage.begin(async |env| {
        let mut txn = Transaction::begin(&env, Attempt::default(), true).await?;
        txn.get(&env, TABLE.row(), &key(A)).await
    });
    stage.pass(10 * MS);
    assert!(read.borrow().is_none(), "a reader waits for it");
    stage.reset(A, B);
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

/// The mark of a reader whose clock is ahead is above every version.
pub fn who_writes_after_a_move_comes_after_those_who_read_before_it<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let mark = stage.read_ahead(A);
    let moved = stage.begin_at(A, async |env| give::<P>(env, A, B).await);
    stage.pass(10 * MS);
    assert_eq!(moved.take(), Some(MoveOutcome::Moved));
    let ended = stage.begin_at(B, async |env| write::<P>(env, &[A]).await);
    stage.pass(200 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
    assert!(stage.stamp(A, B) > mark, "the snapshot at {mark:?} has not seen {:?}", stage.stamp(A, B));
    assert_eq!(stage.value(A), b"new");
    stage.is_at_rest();
}

/// A transaction finds a key absent; then its slot moves, and another fills it and writes what the
/// first then overwrites. Under 2PL the slot would not move.
pub fn what_was_absent_before_a_move_is_not_relied_upon<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let absent = || Key::of_u64((SLOTS + A) as u64);
    let go = Rc::new(Cell::new(false));
    let goes = go.clone();
    let ended: Ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        assert_eq!(txn.get(&env, TABLE.row(), &absent()).await?, None);
        while !goes.get() {
            env.sleep(MS).await;
        }
        txn.put(&env, TABLE.row(), &key(D), b"late").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(10 * MS);
    let moved = stage.begin_at(A, async |env| give::<P>(env, A, B).await);
    stage.pass(10 * MS);
    assert_eq!(moved.take(), Some(MoveOutcome::Moved));
    let other: Ended = stage.begin_at(B, async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.put(&env, TABLE.row(), &absent(), b"new").await?;
        txn.put(&env, TABLE.row(), &key(D), b"new").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(100 * MS);
    assert_eq!(other.take(), Some(Ok(())));
    go.set(true);
    stage.pass(100 * MS);
    assert_eq!(stage.value(D), b"new", "it comes before and after the other");
    assert!(matches!(ended.take(), Some(Err(_))));
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

#[test]
fn what_was_absent_before_a_move_is_looked_at_again() {
    what_was_absent_before_a_move_is_not_relied_upon::<Occ<Dst>>();
    what_was_absent_before_a_move_is_not_relied_upon::<Client2pc<Dst>>();
}

/// A row goes from a shard that was not asked yet to one that was.
pub fn a_scan_finds_what_moves_meanwhile<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let cut = stage.cut(&[(C, A)]);
    let rows = stage.begin(async |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), true).await?;
        txn.scan(&env, &Scan::prefix(ORDERED.row(), Key::new(&[]))).await.map(|rows| rows.len())
    });
    stage.pass(10 * MS);
    assert!(rows.borrow().is_none(), "A has not been asked");
    let moved = stage.begin_at(A, async |env| give::<P>(env, A, D).await);
    stage.pass(10 * MS);
    assert_eq!(moved.take(), Some(MoveOutcome::Moved));
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!(rows.take(), Some(Ok(3)), "all three rows");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}
