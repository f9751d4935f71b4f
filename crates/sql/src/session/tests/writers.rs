//! Sessions that write the same rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::Places;
use super::super::reservations::Progress;
use super::{Still, ask_in, world_over};
use crate::store::memory::Memory;

/// A world in which statements have been run.
pub(super) fn begun(queries: &[&str]) -> (Still, Arc<Places>) {
    let (world, places) = (world_over(Memory::default()), Places::new(0, 4));
    let answers = ask_in(&world, &places, queries);
    assert!(answers.iter().all(|answer| !answer.starts_with('E')), "{answers:?}");
    (world, places)
}

/// Lets another session run statements when one pauses for the second time.
pub(super) fn meanwhile(world: &Still, places: &Arc<Places>, queries: &'static [&'static str]) {
    let (other, places) = (world_over(world.store.clone()), Arc::clone(places));
    let mut pauses = 0;
    *world.during.borrow_mut() = Box::new(move || {
        pauses += 1;
        if pauses == 2 {
            let answers = ask_in(&other, &places, queries);
            assert!(answers.iter().all(|answer| !answer.starts_with('E')), "{answers:?}");
        }
    });
}

/// An index is made and has passed the row that is new, but has not come to the one with the same
/// value, when that goes. The entry is the new row's, and stays.
#[test]
fn a_row_that_goes_takes_no_entry_of_another_along() {
    let (deleted, updated): (&[&str], &[&str]) = (
        &["insert into t values (1, 900)", "delete from t where id = 900"],
        &["insert into t values (1, 900)", "update t set n = -1 where id = 900"],
    );
    for others in [deleted, updated] {
        let (world, places) = begun(&[
            "create table t (id int primary key, n int)",
            "insert into t select g, g from generate_series(2, 1000) g",
        ]);
        meanwhile(&world, &places, others);
        let answers = ask_in(&world, &places, &["create unique index t_n on t (n)"]);
        assert_eq!(answers, ["C CREATE INDEX"]);
        *world.during.borrow_mut() = Box::new(|| ());
        let answers =
            ask_in(&world, &places, &["select id from t where n = 900", "insert into t values (0, 900)"]);
        assert_eq!(answers[..3], ["T id", "D 1", "C SELECT 1"], "{others:?}");
        assert!(answers[3].starts_with("E ERROR 23505"), "{answers:?}");
    }
}

/// How long a statement has waited for a row says nothing of how often it has met a conflict.
#[test]
fn a_statement_that_has_waited_long_is_run_again() {
    let (world, places) =
        begun(&["create table t (id int primary key, n int)", "insert into t values (1, 1)"]);
    // The first row of each of the first tables, one of which it is.
    let keys = (0..8).map(|table| vec![0, 0, 0x40, table, 0, 0x80, 0, 0, 1]);
    let keys: BTreeSet<Vec<u8>> = keys.collect();
    for key in &keys {
        assert_eq!(places.reservations().ask(99, key, false), Progress::Got { has_waited: false });
    }
    let others = Arc::clone(&places);
    let mut sleeps = 0;
    *world.during.borrow_mut() = Box::new(move || {
        sleeps += 1;
        if sleeps == 310_000 {
            others.reservations().release(99, &keys);
        }
    });
    let answers = ask_in(&world, &places, &["update t set n = n + 1 where id = 1 returning n"]);
    assert!(world.now_us.get() > 15_000_000, "{}", world.now_us.get());
    assert_eq!(answers, ["T n", "D 2", "C UPDATE 1"]);
}

#[test]
fn a_transaction_is_not_run_again_under_other_settings() {
    // What others write while the count pauses is in the way of the update.
    let begin = "begin; set local timezone = 'UTC'";
    let (write, set) = ("insert into s values (current_setting('timezone'))", "set local timezone = 'EST'");
    let count = "select count(*) from generate_series(1, 2000)";
    let (update, read) = ("update t set n = n + 1 where id = 1", "select s, n from s, t");
    for (statements, last) in [
        (&[begin, write, set, count, update, "commit", read][..], "E ERROR 40001"),
        (&[begin, set, write, count, update, "commit", read][..], "D EST,12"),
        (&[begin, "insert into s values (statement_timestamp())", count, update, "commit", read][..], "E"),
        (&[begin, "insert into s values (now())", count, update, "commit", read][..], "D 2000-01-01"),
    ] {
        let (world, places) = begun(&[
            "create table t (id int primary key, n int)",
            "insert into t values (1, 1)",
            "create table s (s text)",
        ]);
        meanwhile(&world, &places, &["update t set n = n + 10"]);
        let answers = ask_in(&world, &places, statements);
        let is_met = answers.iter().any(|answer| answer.starts_with(last));
        assert!(is_met, "{statements:?}: {answers:?}");
    }
}

/// An update of a row that another session has written since the snapshot begins again with what the
/// other has written, before its client is told anything.
#[test]
fn an_update_finds_what_others_have_written_since_its_transaction_began() {
    for first in ["select n from t where id = 2", "update t set n = n + 1 where id = 2", "savepoint s"] {
        let (world, places) =
            begun(&["create table t (id int primary key, n int)", "insert into t values (1, 1), (2, 2)"]);
        meanwhile(&world, &places, &["update t set n = n + 10 where id = 1"]);
        let count = "select count(*) from generate_series(1, 2000)";
        let update = "update t set n = n + 1 where id = 1 returning n";
        let answers = ask_in(&world, &places, &["begin", first, count, update, "commit"]);
        assert_eq!(answers[answers.len() - 3..], ["D 12", "C UPDATE 1", "C COMMIT"], "{first}");
        let answers = ask_in(&world, &places, &["select sum(n) from t"]);
        let sum = if first.starts_with("update") { "D 15" } else { "D 14" };
        assert_eq!(answers[1], sum, "what was written before is written once");
    }
}

/// A block that cannot be run again, since its client was told what is no longer so, is over. No
/// savepoint leads back to what was there when that was found out.
#[test]
fn going_back_to_a_savepoint_saves_no_block_that_was_lost() {
    let (world, places) = begun(&[
        "create table t (id int primary key, n int)",
        "insert into t values (1, 5)",
        "create table u (id int primary key, n int)",
        "insert into u values (1, 0)",
        "create table log (n int)",
    ]);
    meanwhile(&world, &places, &["begin; update t set n = 10; update u set n = n + 1; commit"]);
    let answers = ask_in(
        &world,
        &places,
        &[
            "begin",
            "insert into log select n from t where id = 1 returning n",
            "savepoint s",
            "select count(*) from generate_series(1, 2000)",
            "update u set n = n + 1 where id = 1",
            "rollback to s",
            "select 1",
            "commit",
            "select n from log",
        ],
    );
    let met = answers.iter().position(|answer| answer.starts_with("E ERROR 40001"));
    let rest = &answers[met.expect("the client was told 5")..];
    assert_eq!(rest[1], "C ROLLBACK");
    assert!(!rest.contains(&"C COMMIT".to_owned()), "{rest:?}");
    assert_eq!(rest.last().map(String::as_str), Some("C SELECT 0"), "{rest:?}");
}
