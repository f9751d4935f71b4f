//! Where rows are.

use super::super::Places;
use super::{ask_in, block_on, world};
use crate::store::{Purpose, Range, Space, Store};

/// Fifth bytes of the keys of all rows, which say by what part of the key they are placed.
fn parts(queries: &[&str]) -> (Vec<String>, Vec<u8>) {
    let world = world();
    let answers = ask_in(&world, &Places::new(0, 4), queries);
    let all = Range { space: Space::Parted, low: vec![0, 0, 64, 0], high: None, reverse: false };
    let (pairs, _) = block_on(async {
        let mut reading = world.store.begin(Purpose::NEWEST).await.expect("there is memory");
        world.store.scan(&mut reading, all, usize::MAX).await.expect("there is memory")
    });
    (answers, pairs.iter().map(|(key, _)| key[4]).collect())
}

#[test]
fn rows_are_placed_by_the_columns_that_a_table_is_partitioned_by() {
    let insert = "insert into t values (1, 2, 3)";
    for (by, part) in [("", 4), ("partition by hash (a)", 4), ("partition by hash (b, a)", 12)] {
        let create = format!("create table t (a int, b bigint, c int, primary key (a, b, c)) {by}");
        let (answers, parts) = parts(&[&create, insert]);
        assert_eq!(
            (answers, parts),
            (vec!["C CREATE TABLE".into(), "C INSERT 0 1".into()], vec![part]),
            "{by}"
        );
    }
    for (by, error) in [
        (
            "partition by hash (b)",
            "0A000 PARTITION BY HASH names columns that are not the first of the primary key",
        ),
        ("partition by hash (a, c)", "0A000 PARTITION BY HASH names columns"),
        ("partition by hash (nosuch)", "42703 column \"nosuch\" named in partition key does not exist"),
        ("partition by hash ((a + 1))", "0A000 PARTITION BY an expression"),
        ("partition by range (a)", "0A000 PARTITION BY but HASH"),
    ] {
        let (answers, _) =
            parts(&[&format!("create table t (a int, b bigint, c int, primary key (a, b, c)) {by}")]);
        assert!(answers[0].starts_with(&format!("E ERROR {error}")), "{answers:?}");
    }
}
