//! What is seen while a transaction is under way comes before it.

use plimsoll_runtime::Tasks;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::InteractivePair;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::{Abort, Timestamp};

use crate::stage::*;

crate::under_each! {
    who_commits_comes_after_what_was_answered_here_meanwhile
    who_commits_comes_after_what_its_session_has_seen_meanwhile
}

/// A transaction with all its data on another machine, whose clock stamps it under OCC. Another on
/// its own machine, of a session that has met a clock ahead of theirs, has been shown something at
/// a snapshot meanwhile.
pub fn who_commits_comes_after_what_was_answered_here_meanwhile<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.get(&env, TABLE.row(), &key(A)).await?;
        let at_least = Timestamp(env.clock().0 + 10 * MS);
        let freshness = Freshness { at_least, ..Freshness::default() };
        let mut look = Transaction::begin(&env, Attempt { freshness, ..Attempt::default() }, true).await?;
        look.get(&env, TABLE.row(), &key(B)).await?;
        let seen = look.shown();
        assert!(seen >= Some(at_least));
        txn.put(&env, TABLE.row(), &key(A), b"new").await?;
        let stamp = txn.commit(&env).await?.stamp;
        assert!(stamp >= seen, "{seen:?} was answered before {stamp:?}");
        look.rollback(&env).await;
        Ok::<_, Abort>(())
    });
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
    assert_eq!(stage.value(A), b"new");
}

/// Its session has been elsewhere.
pub fn who_commits_comes_after_what_its_session_has_seen_meanwhile<P: InteractivePair>() {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(async |env| {
        let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
        txn.get(&env, TABLE.row(), &key(A)).await?;
        let seen = Timestamp(env.clock().0 + 10 * MS);
        txn.follow(&env, seen);
        txn.put(&env, TABLE.row(), &key(A), b"new").await?;
        let stamp = txn.commit(&env).await?.stamp;
        assert!(stamp > Some(seen), "its session has seen {seen:?} before {stamp:?}");
        Ok::<_, Abort>(())
    });
    stage.pass(100 * MS);
    assert_eq!(ended.take(), Some(Ok(())));
    assert_eq!(stage.value(A), b"new");
}
