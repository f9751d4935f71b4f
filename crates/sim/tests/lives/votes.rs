//! Votes that are lost, come late, or are not heard of.

use plimsoll_runtime::Tasks;
use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_runtime::ShardEnv;
use plimsoll_runtime::sim::Fault;
use plimsoll_store::At;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::InteractivePair;
use plimsoll_txn::protocols::Occ;
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamps::Dst;
use plimsoll_types::{Abort, Key, SLOTS};

use crate::stage::*;

crate::under_each! {
    what_was_read_in_a_life_that_is_over_is_not_relied_upon
    those_who_voted_find_the_outcome_without_their_coordinator
    a_vote_that_is_lost_ends_the_transaction
    a_vote_that_is_lost_with_the_coordinator_blocks_nobody
    what_one_knows_outweighs_what_it_said_before
    a_coordinator_that_has_lost_a_vote_asks_the_others_first
    read_locks_do_not_outlive_their_coordinator
    write_locks_do_not_outlive_their_coordinator
    what_was_read_under_a_lock_that_is_lost_is_not_relied_upon
    a_vote_that_comes_after_the_refusal_is_refused
    a_coordinator_that_is_not_answered_asks
    who_has_voted_waits_for_the_outcome
    a_column_that_was_found_absent_stays_so_when_its_row_is_linked
    what_was_found_absent_is_held_until_the_decision
}

pub fn what_was_read_in_a_life_that_is_over_is_not_relied_upon<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let (go, went) = (Rc::new(RefCell::new(false)), Rc::new(RefCell::new(false)));
    let (goes, went_on) = (go.clone(), went.clone());
    let ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
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

pub fn those_who_voted_find_the_outcome_without_their_coordinator<P: InteractivePair>() {
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

pub fn a_vote_that_is_lost_ends_the_transaction<P: InteractivePair>() {
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

pub fn a_vote_that_is_lost_with_the_coordinator_blocks_nobody<P: InteractivePair>() {
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
fn one_knows<P: InteractivePair>() -> (Stage<P>, Ended, u32) {
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

pub fn what_one_knows_outweighs_what_it_said_before<P: InteractivePair>() {
    let (mut stage, _, cut) = one_knows::<P>();
    stage.restart(D);
    stage.restart(C);
    stage.world.end(cut);
    stage.pass(5 * PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

pub fn a_coordinator_that_has_lost_a_vote_asks_the_others_first<P: InteractivePair>() {
    let (mut stage, ended, cut) = one_knows::<P>();
    stage.restart(D);
    stage.world.end(cut);
    stage.pass(PATIENCE_NS / 4);
    assert_eq!(ended.take(), Some(Ok(())));
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// One column of a row is found absent and another is written, which gives the row a place: whoever
/// fills the first comes after that.
pub fn a_column_that_was_found_absent_stays_so_when_its_row_is_linked<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        assert_eq!(txn.get(&env, WIDE.group(0), &key(A)).await?, None);
        txn.put(&env, WIDE.group(1), &key(A), b"new").await?;
        txn.put(&env, TABLE.row(), &key(B), b"new").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    let other = stage.begin_at(A, async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.put(&env, WIDE.group(0), &key(A), b"other").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(20 * MS);
    assert!(!matches!(other.take(), Some(Ok(()))), "it is held, or locked");
    stage.world.end(cut);
    stage.pass(3 * PATIENCE_NS);
    assert_eq!(ended.take(), Some(Ok(())));
    let bounds = stage.world.node(id(A), |node| {
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

pub fn read_locks_do_not_outlive_their_coordinator<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
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

/// Two shards hold locks, or are about to be asked for them and their votes at once, and only one
/// is reached.
pub fn a_vote_that_comes_after_the_refusal_is_refused<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    if P::NAME != "client_2pc" {
        stage.pass_until(|stage| [A, B].iter().all(|&machine| stage.locks(machine) > 0));
    }
    let cut = stage.cut(&[(C, B)]);
    stage.pass_until_voted(&[A]);
    // A asks B, who says no, and must remember that it has.
    stage.pass(2 * PATIENCE_NS);
    assert!(!stage.in_doubt(A), "it knows that the transaction is aborted");
    assert!(ended.borrow().is_none(), "the coordinator waits for B");
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"old", b"old"], "both or none");
    assert_eq!(ended.take(), Some(Err(Abort::Refused)));
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// The coordinator's own shard is asked before it votes.
#[test]
pub fn who_votes_last_is_bound_by_its_refusal() {
    type P = Occ<Dst>;
    let mut stage = Stage::<P>::new();
    let cut = stage.cut(&[(A, D), (B, D)]);
    let ended = stage.begin_at(A, async |env| write::<P>(env, &[A, B, D]).await);
    stage.pass_until_voted(&[B]);
    stage.pass(2 * PATIENCE_NS);
    assert!(!stage.in_doubt(B), "it knows that the transaction is aborted");
    assert!(ended.borrow().is_none(), "the coordinator waits for D");
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!([A, B, D].map(|shard| stage.value(shard)), [b"old"; 3], "all or none");
    assert_eq!(ended.take(), Some(Err(Abort::Refused)));
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// Those who voted have found out meanwhile that all have.
pub fn a_coordinator_that_is_not_answered_asks<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    stage.pass(3 * PATIENCE_NS);
    assert!(ended.borrow().is_none(), "nobody was told");
    stage.reset(C, A);
    stage.reset(C, B);
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    assert_eq!(ended.take(), Some(Ok(())), "what is there was answered");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

pub fn who_has_voted_waits_for_the_outcome<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(C, A), (B, A)]);
    stage.pass(3 * PATIENCE_NS);
    assert_eq!(ended.take(), Some(Ok(())), "the client was answered");
    stage.world.end(cut);
    stage.pass(PATIENCE_NS);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"], "both or none");
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// Whoever has read says nothing for too long; another overwrites that, and what the first will
/// overwrite.
pub fn what_was_read_under_a_lock_that_is_lost_is_not_relied_upon<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.get(&env, TABLE.row(), &key(A)).await?;
        env.sleep(3 * PATIENCE_NS).await;
        txn.put(&env, TABLE.row(), &key(B), b"late").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(2 * PATIENCE_NS);
    let other = stage.begin_at(D, async |env| write::<P>(env, &[A, B]).await);
    stage.pass(100 * MS);
    assert_eq!(other.take(), Some(Ok(())), "nobody is in its way");
    stage.pass(2 * PATIENCE_NS);
    assert_eq!(
        [A, B].map(|shard| stage.value(shard)),
        [b"new", b"new"],
        "it comes before and after the other"
    );
    assert!(matches!(ended.take(), Some(Err(_))));
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

pub fn write_locks_do_not_outlive_their_coordinator<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass_until(|stage| [A, B].iter().all(|&machine| stage.locks(machine) > 0));
    stage.restart(C);
    stage.pass(10 * PATIENCE_NS);
    stage.is_at_rest();
    let ended = stage.begin(async |env| write::<P>(env, &[A, B]).await);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
}

/// The coordinator's own shard votes, too. Nobody fills what was found absent until the outcome is
/// known.
pub fn what_was_found_absent_is_held_until_the_decision<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let absent = || Key::of_u64((SLOTS + A) as u64);
    let ended: Ended = stage.begin_at(B, async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        assert_eq!(txn.get(&env, TABLE.row(), &absent()).await?, None);
        for record in [A, B] {
            txn.put(&env, TABLE.row(), &key(record), b"new").await?;
        }
        txn.commit(&env).await.map(drop)
    });
    stage.pass_until_voted(&[A]);
    let cut = stage.cut(&[(A, B)]);
    let other = stage.begin_at(D, async move |env: ShardEnv<P>| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.put(&env, TABLE.row(), &absent(), b"other").await?;
        txn.commit(&env).await.map(drop)
    });
    stage.pass(20 * MS);
    assert!(!matches!(*other.borrow(), Some(Ok(()))), "it is held, or locked");
    stage.world.end(cut);
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}
