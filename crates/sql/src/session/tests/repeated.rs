//! Transactions that cannot be run again, over a database in which any key that is added is in the
//! way of any transaction that has found one absent.

use std::cell::Cell;
use std::rc::Rc;

use super::super::Places;
use super::{Still, ask_in, world_over};
use crate::store::memory::Memory;

const SUM: &str = "select count(*), sum(b) from t";

fn ask(world: &Still, queries: &[&str]) -> Vec<String> {
    ask_in(world, &Places::new(0, 4), queries)
}

fn errors(answers: &[String]) -> Vec<&String> {
    answers.iter().filter(|answer| answer.starts_with('E')).collect()
}

#[test]
fn tables_that_are_made_and_filled_together_are_not_in_each_others_way() {
    for statements in [
        &["create table t (a int primary key, b int); create table u (a int primary key)"][..],
        &["begin", "create table t (a int, b int)", "create table u (a int unique)", "commit"],
        &["create table t as select g as a, 1 as b from generate_series(1, 9000) g"],
        &[
            "create table old (a int primary key)",
            "begin",
            "select * from old",
            "create table t as select g as a, 1 as b from generate_series(1, 9000) g",
            "insert into old values (1)",
            "savepoint s",
            "alter table t add primary key (a)",
            "commit",
        ],
        &[
            "create table t as select g as a, 1 as b from generate_series(1, 9000) g",
            "alter table t add primary key (a)",
        ],
    ] {
        let answers = ask(&world_over(Memory::coarse()), statements);
        assert_eq!(errors(&answers), [""; 0], "{statements:?}");
    }
}

#[test]
fn a_block_that_others_make_tables_beside_commits_if_it_has_read_what_there_still_is() {
    for (other, is_conflict) in [
        ("create table another (a int)", false),
        ("insert into seen values (3)", true),
        ("delete from seen where a = 1", true),
        ("update seen set a = 3 where a = 2", true),
        ("create table t (a int)", true),
        ("create table u (a int)", true),
        ("insert into unseen values (3)", false),
    ] {
        let world = world_over(Memory::coarse());
        ask(
            &world,
            &[
                "create table seen (a int primary key)",
                "create table unseen (a int primary key)",
                "insert into seen values (1), (2)",
            ],
        );
        let (beside, done) = (world.store.clone(), Rc::new(Cell::new(false)));
        let is_done = Rc::clone(&done);
        *world.during.borrow_mut() = Box::new(move || {
            if !is_done.replace(true) {
                assert_eq!(errors(&ask(&world_over(beside.clone()), &[other])), [""; 0]);
            }
        });
        let block = [
            "begin",
            "create table t (a int, b int)",
            "create table u (a int)",
            "select * from seen order by a",
            "insert into t select g, 1 from generate_series(1, 9000) g",
            "commit",
        ];
        let answers = ask(&world, &block);
        assert!(done.get(), "the other session has come");
        let expected = if is_conflict { vec!["E ERROR 40001"] } else { vec![] };
        let states: Vec<&str> = errors(&answers).iter().map(|error| &error[..13]).collect();
        assert_eq!(states, expected, "{other}: {answers:?}");
        let kept = ask(&world, &[SUM]);
        assert_eq!(kept.iter().any(|row| row.contains("9000")), !is_conflict, "{other}: {kept:?}");
    }
}
