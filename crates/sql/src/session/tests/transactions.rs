//! Blocks and savepoints.

use super::{ABORTED, ask};

#[test]
fn an_error_undoes_what_the_query_has_set() {
    let answers = ask(&["set geqo = off; show foo; set geqo = on", "show geqo"]);
    let expected = [
        "C SET",
        "E ERROR 42704 unrecognized configuration parameter \"foo\"",
        "Z I",
        "T geqo",
        "D on",
        "C SHOW",
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn a_block_fails_as_a_whole_and_says_so() {
    let answers = ask(&[
        "begin",
        "set geqo = off",
        "show foo",
        "show geqo",
        "savepoint a",
        "release a",
        "commit",
        "show geqo",
    ]);
    let expected = [
        "C BEGIN",
        "Z T",
        "C SET",
        "Z T",
        "E ERROR 42704 unrecognized configuration parameter \"foo\"",
        "Z E",
        ABORTED,
        "Z E",
        ABORTED,
        "Z E",
        ABORTED,
        "Z E",
        "C ROLLBACK",
        "Z I",
        "T geqo",
        "D on",
        "C SHOW",
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn a_savepoint_saves_a_block() {
    let answers = ask(&[
        "begin; set timezone = 'Asia/Tokyo'; savepoint a; set timezone = 'UTC'; savepoint b",
        "show foo",
        "rollback to c",
        "rollback to a",
        "commit",
    ]);
    let expected = [
        "C BEGIN",
        "C SET",
        "C SAVEPOINT",
        "C SET",
        "C SAVEPOINT",
        "Z T",
        "E ERROR 42704 unrecognized configuration parameter \"foo\"",
        "Z E",
        "E ERROR 3B001 savepoint \"c\" does not exist",
        "Z E",
        "C ROLLBACK",
        "S TimeZone Asia/Tokyo",
        "Z T",
        "C COMMIT",
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn what_has_no_block_warns() {
    let none = "N WARNING 25P01 there is no transaction in progress";
    assert_eq!(ask(&["commit"]), [none, "C COMMIT", "Z I"]);
    assert_eq!(ask(&["rollback"]), [none, "C ROLLBACK", "Z I"]);
    assert_eq!(
        ask(&["begin; begin"]),
        ["C BEGIN", "N WARNING 25001 there is already a transaction in progress", "C BEGIN", "Z T"]
    );
    assert_eq!(
        ask(&["set local geqo = off"]),
        ["N WARNING 25P01 SET LOCAL can only be used in transaction blocks", "C SET", "Z I"]
    );
    assert_eq!(ask(&["set client_min_messages = error", "commit"])[2..], ["C COMMIT", "Z I"]);
    assert_eq!(
        ask(&["commit and chain"]),
        ["E ERROR 25P01 COMMIT AND CHAIN can only be used in transaction blocks", "Z I"]
    );
    assert_eq!(
        ask(&["savepoint a; show geqo"]),
        ["E ERROR 25P01 SAVEPOINT can only be used in transaction blocks", "Z I"]
    );
    assert_eq!(
        ask(&["begin; discard all"]),
        ["C BEGIN", "E ERROR 25001 DISCARD ALL cannot run inside a transaction block", "Z E"]
    );
}

#[test]
fn a_begin_among_several_statements_makes_a_block_of_all() {
    let answers = ask(&["set geqo = off; begin; show geqo", "rollback; show geqo"]);
    let expected = [
        "C SET",
        "C BEGIN",
        "T geqo",
        "D off",
        "C SHOW",
        "Z T",
        "C ROLLBACK",
        "T geqo",
        "D on",
        "C SHOW",
        "Z I",
    ];
    assert_eq!(answers, expected);
    // A COMMIT among them ends what was before it.
    let answers = ask(&["set geqo = off; commit; set geqo = on; show foo", "show geqo"]);
    assert!(answers.contains(&"D off".to_owned()), "{answers:?}");
}

#[test]
fn a_chained_transaction_is_of_the_same_kind() {
    let answers = ask(&[
        "begin read only",
        "commit and chain",
        "show transaction_read_only",
        "commit",
        "show transaction_read_only",
    ]);
    let rows: Vec<&str> = answers.iter().filter(|it| it.starts_with("D ")).map(String::as_str).collect();
    assert_eq!(rows, ["D on", "D off"]);
}
