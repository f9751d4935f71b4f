//! The views of the schema `plimsoll`: what a node knows of itself.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::super::{Closed, Places, Stream, serve};
use super::writers::begun;
use super::{Still, ask_in, block_on, served, world_over};
use crate::catalog::pg::ShownNode;
use crate::testing::{bind, execute, message, parse, query, start, sync};

const PAUSE: &str = "select count(*) from generate_series(1, 2000)";

/// The rows that a session is answered, without what is around them.
fn rows(answers: &[String]) -> Vec<String> {
    answers.iter().filter_map(|answer| answer.strip_prefix("D ")).map(str::to_owned).collect()
}

/// What another session sees when one pauses for the second time.
fn seen_beside(
    world: &Still,
    places: &Arc<Places>,
    queries: &[&str],
    look: &'static [&'static str],
) -> Vec<String> {
    let (other, its) = (world_over(world.store.clone()), Arc::clone(places));
    let found = Rc::new(RefCell::new(Vec::new()));
    let (mut pauses, seen) = (0, Rc::clone(&found));
    *world.during.borrow_mut() = Box::new(move || {
        pauses += 1;
        if pauses == 2 {
            seen.replace(rows(&ask_in(&other, &its, look)));
        }
    });
    ask_in(world, places, queries);
    *world.during.borrow_mut() = Box::new(|| ());
    found.take()
}

const TABLE: [&str; 2] =
    ["create table t (id int primary key, n int)", "insert into t values (1, 1), (2, 2)"];

#[test]
fn sessions_see_each_other() {
    let (world, places) = begun(&TABLE);
    let look = &[
        "set application_name = 'looks'",
        "select pid, user_name, application_name, state, statement from plimsoll.sessions order by pid",
        "select pid, application_name, state, query from pg_stat_activity order by pid",
    ];
    let seen = seen_beside(&world, &places, &["set application_name = 'works'", PAUSE], look);
    let [one, two] = [format!("works,active,{PAUSE}"), "active,select pid".to_owned()];
    assert_eq!(seen[0], format!("1,u,{one}"), "{seen:?}");
    assert!(seen[1].starts_with("2,u,") && seen[1].contains(&two), "{seen:?}");
    assert_eq!(seen[2], format!("1,{one}"), "{seen:?}");
    // Those that are gone are not there any more.
    let alone = rows(&ask_in(&world, &places, &["select count(*) from plimsoll.sessions"]));
    assert_eq!(alone, ["1"]);
}

#[test]
fn rows_that_are_reserved_are_shown_with_their_transactions() {
    let (world, places) = begun(&TABLE);
    let block = ["begin", "update t set n = 5 where id = 2", PAUSE, "rollback"];
    let look = &[
        "select * from plimsoll.locks",
        "select pid, snapshot > 0, rows_reserved, age_ms >= 0 from plimsoll.transactions where rows_reserved > 0",
    ];
    let seen = seen_beside(&world, &places, &block, look);
    assert_eq!(seen, ["public,t,(id)=(2),1,{}", "1,t,1,t"]);
    let left = "select (select count(*) from plimsoll.locks), count(*) from plimsoll.transactions";
    // The one that looks has one itself.
    assert_eq!(rows(&ask_in(&world, &places, &[left])), ["0,1"]);
}

#[test]
fn statements_are_counted_by_their_texts_without_literals() {
    let (world, places) = begun(&TABLE);
    let queries: Vec<String> =
        (1..=5).map(|id| format!("select n from t where id = {id} and n < 9")).collect();
    ask_in(&world, &places, &queries.iter().map(String::as_str).collect::<Vec<_>>());
    ask_in(&world, &places, &["update t set n = n + 1", "select nothing from t"]);
    ask_in(&world, &places, &["select id from t where n > 1", "select id from t where n > '1'"]);
    let look = "select statement, calls, rows, aborts, repeats, total_ms >= max_ms from plimsoll.statements";
    let seen = rows(&ask_in(&world, &places, &[look]));
    for expected in [
        "select n from t where id = $1 and n < $2,5,2,0,0,t",
        "update t set n = n + $1,1,2,0,0,t",
        "select nothing from t,1,0,0,0,t",
        "select id from t where n > $1,2,4,0,0,t",
    ] {
        assert!(seen.iter().any(|row| row == expected), "{expected}: {seen:?}");
    }
}

#[test]
fn what_comes_or_goes_in_pieces_is_counted_once() {
    let (world, places) = begun(&TABLE);
    let begin = start(0, &[("user", "u"), ("database", "d")]);
    let lines = message(b'd', b"3\t3\n4\t4\n");
    served(vec![begin.clone(), query("copy t from stdin"), lines, message(b'c', b"")], &world, &places);
    let text = "select id from t order by id";
    let portal = [parse("", text, &[]), bind("", "", &[], &[], &[]), execute("", 3), execute("", 3), sync()];
    served([vec![begin.clone()], portal.to_vec()].concat(), &world, &places);
    served(vec![begin, query(" "), execute("nothing", 0), sync()], &world, &places);
    let look = "select statement, calls, rows from plimsoll.statements order by statement";
    let seen = rows(&ask_in(&world, &places, &[look]));
    assert!(
        ["copy t from stdin,1,2", &format!("{text},1,4")].iter().all(|it| seen.iter().any(|row| row == it)),
        "{seen:?}"
    );
    assert!(seen.iter().all(|row| !row.trim_start().starts_with(',')), "{seen:?}");
}

#[test]
fn a_session_that_ends_in_a_block_leaves_nothing() {
    let (world, places) = begun(&TABLE);
    ask_in(&world, &places, &["begin", "update t set n = 5 where id = 2"]);
    let counts = "select (select count(*) from plimsoll.locks), (select count(*) from plimsoll.sessions), \
                  (select count(*) from plimsoll.transactions)";
    // The one that looks is there itself.
    assert_eq!(rows(&ask_in(&world, &places, &[counts])), ["0,1,1"]);
    assert_eq!(places.shown().filter(|shown| shown.is_some()).count(), 0);
}

#[test]
fn a_session_that_is_idle_has_the_name_that_it_was_given_last() {
    let (world, places) = begun(&[]);
    let (other, its) = (world_over(world.store.clone()), Arc::clone(&places));
    let names = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&names);
    let name = |name: &str| query(&format!("set application_name = '{}'", name.repeat(100)));
    let look = Box::new(move || {
        let look = "select state, application_name from plimsoll.sessions where pid = 1";
        seen.borrow_mut().extend(rows(&ask_in(&other, &its, &[look])));
    });
    let mut client = Looking { sends: vec![start(0, &[("user", "u")]), name("b"), name("c")], look };
    block_on(serve(&mut client, &world, &places));
    let expected = ["", "b", "c"].map(|name| format!("idle,{}", name.repeat(63)));
    assert_eq!(names.take(), expected);
}

/// A client that looks before it sends, but for the first time.
struct Looking<F> {
    sends: Vec<Vec<u8>>,
    look: Box<F>,
}

impl<F: FnMut()> Stream for Looking<F> {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        if self.sends.first().is_none_or(|first| first.get(4..6) != Some(&[0, 3])) {
            (self.look)();
        }
        if self.sends.is_empty() {
            return Ok(0);
        }
        let next = self.sends.remove(0);
        buffer.extend_from_slice(&next);
        Ok(next.len())
    }

    async fn write(&mut self, _bytes: &[u8]) -> Result<(), Closed> {
        Ok(())
    }
}

#[test]
fn what_is_run_again_and_what_is_in_vain_is_counted() {
    let (world, places) = begun(&TABLE);
    let block = ["begin", "select n from t where id = 1", PAUSE, "update t set n = 7 where id = 2", "commit"];
    seen_beside(&world, &places, &block, &["update t set n = 8 where id = 1"]);
    let look = "select sum(aborts), sum(repeats) > 0 from plimsoll.statements";
    assert_eq!(rows(&ask_in(&world, &places, &[look])), ["1,t"]);
}

#[test]
fn nodes_are_those_that_are_told() {
    let (world, places) = begun(&[]);
    assert_eq!(rows(&ask_in(&world, &places, &["select * from plimsoll.nodes"])), [""; 0]);
    places.tell_nodes(|| {
        let address = "127.0.0.1:7000".to_owned();
        vec![ShownNode { id: 1, address, shards: 2, is_connected: true, is_this: true }]
    });
    let seen = rows(&ask_in(&world, &places, &["select * from plimsoll.nodes"]));
    assert_eq!(seen, ["1,127.0.0.1:7000,2,t,t"]);
}

#[test]
fn the_schema_is_in_the_catalog() {
    let (world, places) = begun(&[]);
    let views = "select relname from pg_class c join pg_namespace n on n.oid = relnamespace \
                 where nspname = 'plimsoll' and relkind = 'v' order by 1";
    let seen = rows(&ask_in(&world, &places, &[views]));
    assert_eq!(seen, ["locks", "nodes", "sessions", "snapshots", "statements", "transactions"]);
}
