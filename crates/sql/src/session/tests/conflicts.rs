//! What a client is told of the transaction that was in its way.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use super::super::Places;
use super::writers::{begun, meanwhile};
use super::{Still, ask_in, served, world_over};
use crate::testing::{query, start};

/// The details of the errors that queries are answered with.
fn details(world: &Still, places: &Arc<Places>, queries: &[&str]) -> Vec<String> {
    let mut sends = vec![start(0, &[("user", "u"), ("database", "d")])];
    sends.extend(queries.iter().map(|text| query(text)));
    let received = served(sends, world, places).received;
    let (mut rest, mut found) = (received.as_slice(), Vec::new());
    while let Some((kind, body)) = rest.split_first() {
        let (length, _) = body.split_first_chunk::<4>().expect("a length");
        let (message, next) = body.split_at(usize::try_from(u32::from_be_bytes(*length)).expect("short"));
        rest = next;
        if *kind == b'E' {
            let fields: Vec<&[u8]> = message[4..].split(|byte| *byte == 0).collect();
            let text = |field: u8| {
                let value = fields.iter().find_map(|it| it.strip_prefix(&[field]));
                value.map_or(String::new(), |value| String::from_utf8_lossy(value).into_owned())
            };
            if text(b'C') == "40001" {
                assert_eq!(text(b'H'), "The transaction might succeed if retried.");
            }
            let detail = text(b'D');
            // The timestamp is the store's affair.
            let detail = match detail.split_once(" at timestamp ") {
                Some((detail, stamp)) => {
                    assert!(stamp.trim_end_matches('.').parse::<u64>().is_ok(), "{stamp}");
                    detail.to_owned()
                }
                None => detail,
            };
            found.push(format!("{} {} {detail}", text(b'C'), text(b't')));
        }
    }
    found
}

const PAUSE: &str = "select count(*) from generate_series(1, 2000)";

const TABLES: [&str; 5] = [
    "create table t (id int primary key, n int, s text unique)",
    "insert into t select g, 0, 's' || g from generate_series(1, 9) g",
    "create table pairs (a text, b date, primary key (a, b))",
    "create table loose (n int)",
    "create index t_n on t (n desc)",
];

#[test]
fn the_row_that_was_in_the_way_is_named_and_who_has_written_it() {
    for (read, others, expected) in [
        (
            "select n from t where id = 5",
            &["set application_name = 'bank'", "update t set n = 1 where id = 5"][..],
            "t Key (id)=(5) of table \"t\" has changed since this transaction read it; \
             session 2 (application \"bank\") wrote it",
        ),
        (
            "select n from t where id in (2, 5)",
            &["delete from t where id = 5"],
            "t Key (id)=(5) of table \"t\" has changed since this transaction read it; \
             session 2 wrote it",
        ),
        (
            "select id from t where s = 'new'",
            &["insert into t values (10, 0, 'new')"],
            "t Key (s)=(new) of index \"t_s_key\" of table \"t\" has changed since this \
             transaction read it; session 2 wrote it",
        ),
        (
            "select sum(n) from t where id > 3",
            &["update t set n = 7 where id = 8"],
            "t A range of the keys of table \"t\" has changed since this transaction read it; \
             session 2 wrote key (id)=(8)",
        ),
        (
            "select count(*) from t where n = 4",
            &["update t set n = 4 where id = 8"],
            "t A range of the keys of index \"t_n\" of table \"t\" has changed since this \
             transaction read it; session 2 wrote key (n)=(4)",
        ),
        (
            "select count(*) from pairs where a = 'x' and b = '2020-01-02'",
            &["insert into pairs values ('x', '2020-01-02')"],
            "pairs Key (a, b)=(x, 2020-01-02) of table \"pairs\" has changed since this \
             transaction read it; session 2 wrote it",
        ),
        (
            "select count(*) from loose",
            &["insert into loose values (1)"],
            "loose A range of the keys of table \"loose\" has changed since this transaction read \
             it; session 2 wrote a row",
        ),
    ] {
        // The first block is run again, and the second, which has called a volatile function, is
        // only read again.
        for pause in [PAUSE, "select count(random()) from generate_series(1, 2000)"] {
            let (world, places) = begun(&TABLES);
            meanwhile(&world, &places, others);
            let block = ["begin", read, pause, "insert into t values (100)", "commit"];
            let found = details(&world, &places, &block);
            assert_eq!(found, [format!("40001 {expected}")], "{read}; {pause}");
        }
    }
}

#[test]
fn a_definition_that_was_changed_is_named() {
    let (world, places) = begun(&TABLES);
    meanwhile(&world, &places, &["alter table t add column x int"]);
    let found = details(
        &world,
        &places,
        &["begin", "select * from t where id = 1", PAUSE, "insert into loose values (1)", "commit"],
    );
    let expected = "40001 t The definition of \"t\" has changed since this transaction read it";
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
}

/// A block that has failed as it was committed is over: the next one of the session is run again as
/// if there had been none.
#[test]
fn a_conflict_is_no_burden_to_the_next_transaction() {
    let (world, places) = begun(&TABLES);
    let (other, others) = (world_over(world.store.clone()), Arc::clone(&places));
    let (pauses, changes) = (Cell::new(0), Rc::new(Cell::new(0)));
    let changed = Rc::clone(&changes);
    *world.during.borrow_mut() = Box::new(move || {
        pauses.set(pauses.get() + 1);
        if pauses.get() % 160 == 2 {
            changed.set(changed.get() + 1);
            let answers = ask_in(&other, &others, &["update t set n = n + 1 where id = 5"]);
            assert_eq!(answers, ["C UPDATE 1"]);
        }
    });
    let block = ["begin", "select n from t where id = 5", PAUSE, "insert into t values (100)", "commit"];
    let next = [
        "begin",
        "select count(*) from t where n >= 0",
        PAUSE,
        PAUSE,
        "insert into t values (100)",
        "commit",
    ];
    let answers = ask_in(&world, &places, &[&block[..], &next].concat());
    assert!(changes.get() >= 2, "each of them is disturbed");
    let errors: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].starts_with('E')).collect();
    let first_end = answers.iter().rposition(|answer| answer == "C BEGIN").expect("the second begins") - 1;
    assert_eq!(errors, [first_end], "{answers:?}");
    assert!(answers[first_end].starts_with("E ERROR 40001"), "{answers:?}");
    assert_eq!(answers.last().map(String::as_str), Some("C COMMIT"));
}
