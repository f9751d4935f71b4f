//! What only client-driven two-phase commit does: shards vote before the stamp is known, and those
//! that were only read do.

use plimsoll_runtime::ShardEnv;
use plimsoll_runtime::sim::Fault;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::protocols::Client2pc;
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamps::Dst;
use plimsoll_types::Abort;

use crate::stage::*;

#[test]
pub fn those_who_voted_find_the_largest_stamp_without_their_coordinator() {
    let mut stage = Stage::<Client2pc<Dst>>::new();
    // Only A knows of it.
    let mark = stage.read_ahead(A);
    let ended = stage.begin(async |env| write::<Client2pc<Dst>>(env, &[A, B]).await);
    stage.pass_until_voted(&[A, B]);
    let cut = stage.cut(&[(A, C), (B, C)]);
    let crash = stage.world.inflict(Fault::Crash(C));
    stage.pass(3 * PATIENCE_NS);
    assert!(ended.borrow().is_none(), "nobody was told");
    assert!(stage.stamp(B, B) > mark, "B knows what A has asked for");
    assert_eq!(stage.stamp(A, A), stage.stamp(B, B));
    stage.world.end(cut);
    stage.world.end(crash);
    assert_eq!([A, B].map(|shard| stage.value(shard)), [b"new", b"new"]);
    stage.pass(3 * PATIENCE_NS);
    stage.is_at_rest();
}

/// Reads A and writes B.
async fn read_and_write(env: ShardEnv<Client2pc<Dst>>) -> Result<(), Abort> {
    let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
    txn.get(&env, TABLE.row(), &key(A)).await?;
    txn.put(&env, TABLE.row(), &key(B), b"new").await?;
    txn.commit(&env).await.map(drop)
}

#[test]
pub fn a_shard_that_was_only_read_votes_and_holds_what_was_read() {
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
    assert!(stage.stamp(A, A) > stage.stamp(B, B), "who overwrites what was read comes after the reader");
}

#[test]
pub fn a_vote_that_is_lost_where_it_was_only_read_ends_the_transaction() {
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
