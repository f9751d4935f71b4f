//! Tables that are filled in the transaction that makes them, which does not always commit.

use std::sync::Arc;

use super::super::Places;
use super::super::definition::{left_key, note_key, written_note};
use super::{Still, ask_in, block_on, world, world_over};
use crate::store::memory::Memory;
use crate::store::{Pair, Purpose, Range, Space, Store};

const FILL: &str = "create table t as select g from generate_series(1, 9000) g";

/// All that is there under the numbers of tables, and all marks of such.
pub(super) fn there(store: &Memory) -> Vec<Pair> {
    let of = |space, low: Vec<u8>, high| {
        let (mut all, mut left) = (Vec::new(), Some(Range { space, low, high, reverse: false }));
        while let Some(range) = left {
            let (pairs, rest) = block_on(async {
                let mut reading = store.begin(Purpose::NEWEST).await.expect("there is memory");
                store.scan(&mut reading, range, usize::MAX).await.expect("there is memory")
            });
            all.extend(pairs);
            left = rest;
        }
        all
    };
    let marks = of(Space::Copied, vec![0, 0, 0, 0, 2], Some(vec![0, 0, 0, 0, 4]));
    [of(Space::Parted, vec![0, 0, 64, 0], None), marks].concat()
}

type Write = (Space, Vec<u8>, Option<Vec<u8>>);

fn put(store: &Memory, pairs: &[Write]) {
    block_on(async {
        let mut writing = store.begin(Purpose::Write).await.expect("there is memory");
        for (space, key, value) in pairs {
            store.put(&mut writing, *space, key, value.as_deref()).await.expect("there is memory");
        }
        store.commit(writing).await.expect("nobody else writes");
    });
}

fn ask(world: &Still, queries: &[&str]) -> Vec<String> {
    ask_in(world, &Places::new(0, 4), queries)
}

#[test]
fn what_is_loaded_in_vain_is_removed() {
    for ends in ["rollback", "select 1 / 0", ""] {
        let world = world();
        ask(&world, &["begin", FILL, ends]);
        assert_eq!(there(&world.store), [], "{ends}");
    }
    let world = world();
    ask(&world, &["begin", "savepoint s", FILL, "rollback to s", "commit"]);
    assert_eq!(there(&world.store), []);
    ask(&world, &["begin", FILL, "drop table t", "commit"]);
    assert_eq!(there(&world.store), []);
    ask(&world, &["begin", FILL, "commit", "select 1"]);
    assert_eq!(there(&world.store).len(), 9000, "rows, and no mark");
}

#[test]
fn rows_of_a_session_that_is_gone_are_removed_after_an_hour() {
    let world = world();
    world.now_us.set(10_000_000_000);
    let number = 40_000_u32;
    let row = |last: u8| [&number.to_be_bytes()[..], &[0, last]].concat();
    let noted = |age_us: i64| (Space::Copied, note_key(number), Some(written_note(10_000_000_000 - age_us)));
    let drop = || ask(&world, &["create table x (a int)", "drop table x"]);
    put(
        &world.store,
        &[noted(60_000_000), (Space::Parted, row(1), Some(vec![])), (Space::Parted, row(2), Some(vec![]))],
    );
    drop();
    assert_eq!(there(&world.store).len(), 3, "its session may be at work");
    put(&world.store, &[noted(3_700_000_000)]);
    drop();
    assert_eq!(there(&world.store), []);
}

/// Another session takes it for gone: once this many rows are written.
fn filled_while_rows_are_removed(after: usize) -> (Vec<String>, usize) {
    let (world, other) = (world(), Memory::default());
    let world = Still { store: other.clone(), ..world };
    let mut done = false;
    *world.during.borrow_mut() = Box::new(move || {
        let there = there(&other);
        let mut notes = there.iter().filter(|(key, _)| key.starts_with(&[0, 0, 0, 0, 3]));
        let Some((note, _)) = notes.next_back().filter(|_| !done && there.len() > after) else { return };
        done = true;
        let (note, number): (_, [u8; 4]) = (note.clone(), *note.last_chunk().expect("a number"));
        put(
            &other,
            &[(Space::Copied, note, None), (Space::Copied, left_key(Space::Parted, &number), Some(vec![]))],
        );
        ask(&world_over(other.clone()), &["create table x (a int)", "drop table x"]);
    });
    let places: Arc<Places> = Places::new(0, 4);
    let answers = ask_in(&world, &places, &["begin", FILL, "select random() < 2", "commit", "table t"]);
    (answers, there(&world.store).len())
}

#[test]
fn a_session_whose_rows_were_removed_does_not_commit() {
    let (answers, left) = filled_while_rows_are_removed(8832);
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR 40001")), "{:?}", answers.last());
    assert!(answers.iter().any(|answer| answer.starts_with("E ERROR 42P01")), "{:?}", answers.last());
    assert_eq!(left, 0);
}

#[test]
fn a_statement_whose_rows_were_removed_is_run_again() {
    let (answers, left) = filled_while_rows_are_removed(0);
    assert_eq!((answers.last().map(String::as_str), left), (Some("C SELECT 9000"), 9000));
}
