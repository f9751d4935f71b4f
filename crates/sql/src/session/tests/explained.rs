//! What `EXPLAIN ANALYZE` says that a query has taken of the database.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::reservations::Progress;
use super::ask_in;
use super::writers::begun;

const TABLE: [&str; 2] = ["create table t (id int primary key, n int)", "insert into t values (1, 1)"];

#[test]
fn the_snapshot_is_told_or_that_there_is_none_yet() {
    let (world, places) = begun(&TABLE);
    let answers = ask_in(&world, &places, &["explain analyze select * from t where id = 1"]);
    let stamp = answers.iter().find_map(|answer| answer.strip_prefix("D Snapshot: "));
    assert!(stamp.is_some_and(|stamp| stamp.parse::<u64>().is_ok()), "{answers:?}");
    assert!(answers.iter().any(|answer| answer == "D Waited for Reserved Rows: 0.000 ms"), "{answers:?}");
    assert!(!answers.iter().any(|answer| answer.contains("Shards")), "it has no shards: {answers:?}");
    let answers = ask_in(&world, &places, &["begin", "explain analyze select 1"]);
    assert!(answers.iter().any(|answer| answer == "D Snapshot: none yet"), "{answers:?}");
}

#[test]
fn the_time_is_told_that_a_query_has_waited_for_rows() {
    let (world, places) = begun(&TABLE);
    let keys: BTreeSet<Vec<u8>> = (0..8).map(|table| vec![0, 0, 0x40, table, 0, 0x80, 0, 0, 1]).collect();
    for key in &keys {
        assert_eq!(places.reservations().ask(99, key, false), Progress::Got { has_waited: false });
    }
    let (others, mut sleeps) = (Arc::clone(&places), 0);
    *world.during.borrow_mut() = Box::new(move || {
        sleeps += 1;
        if sleeps == 100 {
            others.reservations().release(99, &keys);
        }
    });
    let answers = ask_in(&world, &places, &["explain analyze select * from t where id = 1 for update"]);
    let waited = answers.iter().find_map(|answer| answer.strip_prefix("D Waited for Reserved Rows: "));
    let waited = waited.and_then(|waited| waited.strip_suffix(" ms")).map(str::parse::<f64>);
    assert!(matches!(waited, Some(Ok(waited)) if waited > 1.0), "{answers:?}");
}
