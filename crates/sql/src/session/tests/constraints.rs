//! Constraints and definitions among several sessions.

use std::collections::VecDeque;

use super::loading::there;
use super::{Still, ask, block_on, raw, served, shown, world};
use crate::session::{Closed, Places, Stream, serve};
use crate::testing::{query, start};

/// Bytes that a client sends, and what happens before.
type Step<'a> = (Vec<u8>, Box<dyn FnMut() + 'a>);

/// A client that does something before each of its queries.
struct Scripted<'a> {
    steps: VecDeque<Step<'a>>,
    received: Vec<u8>,
}

impl Stream for Scripted<'_> {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let Some((bytes, mut before)) = self.steps.pop_front() else { return Ok(0) };
        before();
        buffer.extend(&bytes);
        Ok(bytes.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.received.extend(bytes);
        Ok(())
    }
}

/// What queries of a session of its own are answered in a world.
fn say(world: &Still, queries: &[&str]) -> Vec<String> {
    let mut sends = vec![start(0, &[("user", "u"), ("database", "d")])];
    sends.extend(queries.iter().map(|text| query(text)));
    let answers = shown(&served(sends, world, &Places::new(0, 4)).received);
    let ready = answers.iter().position(|answer| answer == "Z I").expect("the session begins");
    answers[ready + 1..].to_vec()
}

/// What a session is answered, between whose queries another one says something: each with what the
/// other says before it.
fn between(world: &Still, queries: &[(&str, &str)]) -> Vec<String> {
    let nothing: Box<dyn FnMut()> = Box::new(|| ());
    let mut steps = VecDeque::from([(start(0, &[("user", "u"), ("database", "d")]), nothing)]);
    for (own, other) in queries {
        let before = move || {
            if !other.is_empty() {
                let answers = say(world, &[other]);
                assert!(answers.iter().all(|answer| !answer.starts_with("E ")), "{other}: {answers:?}");
            }
        };
        steps.push_back((query(own), Box::new(before)));
    }
    let mut client = Scripted { steps, received: Vec::new() };
    block_on(serve(&mut client, world, &Places::new(1, 4)));
    shown(&client.received)
}

fn rows(world: &Still, text: &str) -> Vec<String> {
    let answers = say(world, &[text]);
    answers.into_iter().filter_map(|answer| answer.strip_prefix("D ").map(str::to_owned)).collect()
}

#[test]
fn errors_name_what_they_are_about() {
    let answers = ask(&[
        "create table p (a int primary key); \
         create table t (a int not null check (a > 0) unique, b int references p)",
        "insert into t values (0)",
        "insert into t values (null)",
        "insert into t values (1, 5)",
        "insert into t values (1); insert into t values (1)",
    ]);
    let errors: Vec<&str> = answers.iter().filter_map(|it| it.strip_prefix("E ERROR ")).collect();
    let expected = [
        "23514 new row for relation \"t\" violates check constraint \"t_a_check\" public t t_a_check",
        "23502 null value in column \"a\" of relation \"t\" violates not-null constraint public t a",
        "23503 insert or update on table \"t\" violates foreign key constraint \"t_b_fkey\" public t t_b_fkey",
        "23505 duplicate key value violates unique constraint \"t_a_key\" public t t_a_key",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn a_key_is_not_taken_away_while_a_row_comes_that_names_it() {
    let world = world();
    say(&world, &["create table p (a int primary key); create table c (x int references p)"]);
    say(&world, &["insert into p values (1), (2)"]);
    let answers = between(
        &world,
        &[("begin", ""), ("insert into c values (1)", ""), ("commit", "delete from p where a = 1")],
    );
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR")), "{answers:?}");
    assert_eq!(rows(&world, "select count(*) from c"), ["0"]);
    let answers = between(
        &world,
        &[("begin", ""), ("delete from p where a = 2", ""), ("commit", "insert into c values (2)")],
    );
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR")), "{answers:?}");
    assert_eq!(rows(&world, "select (select count(*) from c), (select count(*) from p)"), ["1,1"]);
}

#[test]
fn a_condition_that_is_added_meanwhile_holds_of_what_is_written() {
    let world = world();
    say(&world, &["create table t (a int)"]);
    let answers = between(
        &world,
        &[("begin", ""), ("insert into t values (-1)", ""), ("commit", "alter table t add check (a > 0)")],
    );
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR")), "{answers:?}");
    assert_eq!(rows(&world, "select count(*) from t"), ["0"]);
}

#[test]
fn a_column_that_is_dropped_meanwhile_is_not_written() {
    let world = world();
    say(&world, &["create table t (a int, b int)", "insert into t values (1, 10)"]);
    let answers = between(
        &world,
        &[
            ("begin", ""),
            ("update t set b = b + 1", ""),
            ("commit", "alter table t drop column b; alter table t add column b int default 7"),
        ],
    );
    // Either it comes first, or it is refused or run again.
    let outcome = rows(&world, "select a, b from t");
    let is_refused = answers.iter().any(|answer| answer.starts_with("E ERROR"));
    assert_eq!(outcome, [if is_refused { "1,7" } else { "1,8" }], "{answers:?}");
}

#[test]
fn two_sessions_never_get_the_same_number() {
    let world = world();
    say(&world, &["create sequence s; create table t (id int default nextval('s') primary key, who text)"]);
    let other = "insert into t (who) select 'other' from generate_series(1, 70)";
    let own = "insert into t (who) select 'own' from generate_series(1, 70)";
    between(&world, &[(own, other), (own, other), (own, other)]);
    assert_eq!(rows(&world, "select count(*), count(distinct id) from t"), ["420,420"]);
    // By itself each session sees its numbers in order.
    let alone = rows(&world, "select nextval('s') - lag from (select nextval('s') as lag) q");
    assert_eq!(alone, ["1"]);
}

#[test]
fn numbers_are_not_given_back_by_a_rollback_and_no_other_sequence_gets_the_state() {
    let answers = raw(vec![
        start(0, &[("user", "u"), ("database", "d")]),
        query("begin; create sequence s; select nextval('s'), nextval('s'); rollback"),
        query("create sequence s; select nextval('s')"),
        query("begin; select nextval('s'); rollback"),
        query("select nextval('s')"),
    ]);
    let rows: Vec<String> = shown(&answers).into_iter().filter(|answer| answer.starts_with("D ")).collect();
    assert_eq!(rows, ["D 1,2", "D 1", "D 2", "D 3"]);
}

#[test]
fn a_sequence_that_is_dropped_meanwhile_has_no_next_number() {
    let world = world();
    say(&world, &["create sequence s"]);
    let asked = "select nextval('s')";
    let answers =
        between(&world, &[("begin", ""), (asked, ""), (asked, "drop sequence s"), ("rollback", "")]);
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR 40001")), "{answers:?}");
    // Its state does not come back.
    assert_eq!(there(&world.store), []);
}

#[test]
fn numbers_go_on_though_the_sequence_begins_again_meanwhile() {
    let world = world();
    say(&world, &["create sequence s"]);
    let many = "select max(nextval('s')) from generate_series(1, 50)";
    let answers = between(&world, &[(many, ""), (many, "alter sequence s restart 1000")]);
    let rows: Vec<&String> = answers.iter().filter(|answer| answer.starts_with("D ")).collect();
    assert_eq!(rows, ["D 50", "D 1049"]);
}

#[test]
fn a_plan_for_a_table_that_was_rolled_back_is_not_used_again() {
    let undo = [("rollback", "commit"), ("rollback to a", "commit")];
    for change in
        ["truncate t", "alter table t add column c int", "drop table t; create table t (a int, b int)"]
    {
        for (undo, end) in undo {
            let prepare = "prepare p as insert into t values (1, 1)";
            let insert = "insert into t values (2, 2)";
            let answers = ask(&[
                "create table t (a int, b int)",
                "begin",
                "savepoint a",
                change,
                prepare,
                "execute p",
                insert,
                "insert into t values (3, 3)",
                undo,
                "execute p",
                insert,
                end,
                "select a, b from t order by a",
                "delete from t",
            ]);
            let rows: Vec<&String> = answers.iter().filter(|answer| answer.starts_with("D ")).collect();
            assert_eq!(rows, ["D 1,1", "D 2,2"], "{change}, {undo}: {answers:?}");
            assert_eq!(answers[answers.len() - 2], "C DELETE 2", "{change}, {undo}: {answers:?}");
        }
    }
}
