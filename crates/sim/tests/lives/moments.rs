//! Something happens to a transaction after each single event of it.
//!
//! The transaction reads on one machine and writes on two others. Whatever happens, both writes are
//! there or none, as those who were told anything were told, and nothing is left: no lock, no vote,
//! no graph. An abort says that nothing was written, [`Abort::Unknown`] too: whoever is told one
//! tries again.

use plimsoll_runtime::ShardEnv;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::interactive::Transaction;
use plimsoll_txn::pairs::{InteractivePair, LegalPair};
use plimsoll_txn::protocols::{Client2pc, Occ, Rococo, TwoPl};
use plimsoll_txn::timestamp::PATIENCE_NS;
use plimsoll_txn::timestamps::NoTimestamps;
use plimsoll_types::Abort;

use crate::stage::*;

crate::under_each! {
    a_coordinator_may_end_at_any_moment
    a_coordinator_may_be_cut_off_at_any_moment
    a_channel_may_be_reset_at_any_moment
    a_shard_that_was_only_read_may_end_at_any_moment
}

crate::under! {
    rococo: Rococo;
    a_coordinator_may_end_at_any_moment
    a_coordinator_may_be_cut_off_at_any_moment
    a_channel_may_be_reset_at_any_moment
}

#[test]
fn without_timestamps_a_coordinator_may_end_at_any_moment() {
    a_coordinator_may_end_at_any_moment::<Occ<NoTimestamps>>();
    a_coordinator_may_end_at_any_moment::<TwoPl<NoTimestamps>>();
    a_coordinator_may_end_at_any_moment::<Client2pc<NoTimestamps>>();
    a_coordinator_may_end_at_any_moment::<Rococo<NoTimestamps>>();
}

/// Reads D, and writes A and B.
async fn read_and_write<P: LegalPair>(env: ShardEnv<P>) -> Result<(), Abort> {
    play(&env, &mut Play::reads(&[D]).and_writes(&[A, B])).await
}

/// The transaction begins, so many events happen, and then something else. Returns what the
/// coordinator was told, if anything, and whether everything was over before.
fn after<P: LegalPair, R>(moment: usize, happens: impl Fn(&mut Stage<P>) -> R) -> (Stage<P>, Ended, bool, R) {
    let mut stage = Stage::<P>::new();
    let ended = stage.begin(read_and_write);
    for _ in 0..moment {
        stage.world.step();
    }
    let over = ended.borrow().is_some() && ![A, B].iter().any(|&machine| stage.is_under_way(machine));
    let come_of_it = happens(&mut stage);
    stage.pass(10 * PATIENCE_NS);
    (stage, ended, over, come_of_it)
}

/// Returns after how many moments the writes are there, and after how many they are not.
fn at_every_moment<P: LegalPair>(answered: bool, happens: impl Fn(&mut Stage<P>)) -> [usize; 2] {
    let mut count = [0, 0];
    for moment in 0.. {
        let (mut stage, ended, over, ()) = after(moment, &happens);
        let values = [A, B].map(|machine| stage.value(machine));
        assert_eq!(values[0], values[1], "both or none, moment {moment}");
        let new = values[0] == b"new";
        match *ended.borrow() {
            Some(Ok(())) => assert!(new, "what was answered is there, moment {moment}"),
            Some(Err(abort)) => assert!(!new, "{abort:?} is not there, moment {moment}"),
            None => assert!(!answered, "everybody is answered, moment {moment}"),
        }
        stage.is_at_rest();
        count[usize::from(!new)] += 1;
        if over {
            return count;
        }
    }
    unreachable!("moments do not end")
}

pub fn a_coordinator_may_end_at_any_moment<P: LegalPair>() {
    let [kept, gone] = at_every_moment::<P>(false, |stage| stage.restart(C));
    assert!(kept > 0 && gone > 0, "kept at {kept} moments, gone at {gone}");
}

pub fn a_coordinator_may_be_cut_off_at_any_moment<P: LegalPair>() {
    let links = [A, B, D].map(|machine| [(C, machine), (machine, C)]);
    // A client that commits asks again until it is answered.
    let [kept, _] = at_every_moment::<P>(true, |stage| {
        let cut = stage.cut(links.as_flattened());
        stage.pass(3 * PATIENCE_NS);
        stage.world.end(cut);
    });
    assert!(kept > 0);
}

pub fn a_channel_may_be_reset_at_any_moment<P: LegalPair>() {
    for (from, to) in [(C, A), (A, C), (C, B), (B, C), (C, D), (D, C)] {
        let [kept, _] = at_every_moment::<P>(true, |stage| stage.reset(from, to));
        assert!(kept > 0);
    }
}

/// Under 2PL that is one with read locks only: before they are pinned, then until the votes, and
/// then. What was read there is forgotten, and another transaction overwrites it at once, and one
/// of the writes with it. Who comes after somebody at one place does so at the other.
pub fn a_shard_that_was_only_read_may_end_at_any_moment<P: InteractivePair>() {
    let mut count = [0, 0];
    for moment in 0.. {
        let (mut stage, ended, over, other) = after::<P, _>(moment, |stage| {
            stage.restart(D);
            stage.begin_at(D, async |env: ShardEnv<P>| {
                let mut txn = Transaction::begin(&env, Attempt::default(), false).await?;
                txn.put(&env, TABLE.row(), &key(D), b"other").await?;
                txn.put(&env, TABLE.row(), &key(A), b"other").await?;
                txn.commit(&env).await.map(drop)
            })
        });
        let [ended, other] = [ended, other].map(|ended| ended.take().expect("both are answered").is_ok());
        let written = |both: bool| if both { b"new".as_slice() } else { b"old" };
        let first = if other { b"other" } else { written(ended) };
        let last = if other { b"other" } else { written(false) };
        let values = [A, B, D].map(|machine| stage.value(machine));
        assert_eq!(values, [first, written(ended), last], "moment {moment}: {ended} and {other}");
        stage.is_at_rest();
        count[usize::from(!ended)] += 1;
        if over {
            break;
        }
    }
    assert!(count.iter().all(|&times| times > 0), "committed, and not: {count:?}");
}
