//! The extended protocol.

use super::{ABORTED, ask, talk};
use crate::testing::{bind, execute, message, parse, query, sync};

#[test]
fn the_extended_protocol_answers_each_message() {
    let statement = [
        parse("s", "select $1::int4 + 1 as n", &[]),
        message(b'D', b"Ss\0"),
        bind("", "s", &[], &[Some(b"41")], &[]),
        message(b'D', b"P\0"),
        execute("", 0),
        sync(),
    ];
    let expected = ["1", "t 23", "T n", "2", "T n", "D 42", "C SELECT 1", "Z I"];
    assert_eq!(talk(&statement), expected);
    assert_eq!(talk(&[statement.concat()]), expected, "pipelined");
    let bytes: Vec<Vec<u8>> = statement.concat().into_iter().map(|byte| vec![byte]).collect();
    assert_eq!(talk(&bytes), expected, "byte by byte");
}

#[test]
fn a_statement_that_is_no_query_is_prepared_too() {
    let answers = talk(&[
        parse("", "begin", &[]),
        bind("", "", &[], &[], &[]),
        message(b'D', b"P\0"),
        execute("", 0),
        execute("", 0),
        sync(),
        parse("", "", &[]),
        bind("", "", &[], &[], &[]),
        message(b'D', b"S\0"),
        sync(),
        parse("", "rollback", &[]),
        bind("", "", &[], &[], &[]),
        execute("", 0),
        sync(),
    ]);
    let expected = [
        "1",
        "2",
        "n",
        "C BEGIN",
        "E ERROR 55000 portal \"\" cannot be run",
        "Z E",
        "1",
        ABORTED,
        "Z E",
        "1",
        "2",
        "C ROLLBACK",
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn rows_come_up_to_a_limit() {
    let answers = talk(&[
        parse("", "select * from generate_series(1, 5) g", &[]),
        bind("p", "", &[], &[], &[]),
        execute("p", 2),
        execute("p", 2),
        execute("p", -1),
        execute("p", 2),
        message(b'C', b"Pp\0"),
        execute("p", 0),
        sync(),
        execute("p", 0),
        sync(),
    ]);
    let gone = "E ERROR 34000 portal \"p\" does not exist";
    let expected = [
        "1",
        "2",
        "D 1",
        "D 2",
        "s",
        "D 3",
        "D 4",
        "s",
        "D 5",
        "C SELECT 1",
        "C SELECT 0",
        "3",
        gone,
        "Z I",
        gone,
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn an_error_skips_to_the_next_sync() {
    let answers = talk(&[
        parse("a", "select 1", &[]),
        parse("a", "select 2", &[]),
        parse("b", "select 3", &[]),
        query("show geqo"),
        message(b'H', &[]),
        sync(),
        bind("", "b", &[], &[], &[]),
        sync(),
        bind("", "a", &[], &[], &[]),
        execute("", 0),
        sync(),
    ]);
    let expected = [
        "1",
        "E ERROR 42P05 prepared statement \"a\" already exists",
        "Z I",
        "E ERROR 26000 prepared statement \"b\" does not exist",
        "Z I",
        "2",
        "D 1",
        "C SELECT 1",
        "Z I",
    ];
    assert_eq!(answers, expected);
}

#[test]
fn binds_that_do_not_fit_are_refused() {
    let refused = |bytes: Vec<u8>| {
        let answers = talk(&[parse("s", "select $1::int4", &[]), bytes, sync()]);
        answers[1].clone()
    };
    assert_eq!(
        refused(bind("", "s", &[], &[], &[])),
        "E ERROR 08P01 bind message supplies 0 parameters, but prepared statement \"s\" requires 1"
    );
    assert_eq!(
        refused(bind("", "s", &[0, 0], &[Some(b"1")], &[])),
        "E ERROR 08P01 bind message has 2 parameter formats but 1 parameters"
    );
    assert_eq!(
        refused(bind("", "s", &[], &[Some(b"1")], &[0, 0])),
        "E ERROR 08P01 bind message has 2 result formats but query has 1 columns"
    );
    assert_eq!(
        refused(bind("p", "s", &[], &[Some(b"x")], &[])),
        "E ERROR 22P02 invalid input syntax for type integer: \"x\" portal \"p\" parameter $1 = '...'"
    );
    assert_eq!(refused(bind("", "s", &[1], &[Some(b"123")], &[]))[..13], *"E ERROR 08P01");
    assert_eq!(refused(bind("", "s", &[], &[Some(b"\xff")], &[]))[..13], *"E ERROR 22021");
    assert_eq!(
        refused(parse("", "select 1; select 2", &[])),
        "E ERROR 42601 cannot insert multiple commands into a prepared statement"
    );
}

#[test]
fn statements_are_prepared_in_sql_as_well() {
    let answers = ask(&[
        "prepare a (int, text) as select $1 + 1 as n, $2 as t",
        "execute a (1.5, 'x')",
        "execute a (1)",
        "prepare a as select 1",
        "deallocate a",
        "execute a",
        "deallocate all",
        "discard all",
    ]);
    let expected = [
        "C PREPARE",
        "Z I",
        "T n,t",
        "D 3,x",
        "C SELECT 1",
        "Z I",
        "E ERROR 42601 wrong number of parameters for prepared statement \"a\"",
        "Z I",
        "E ERROR 42P05 prepared statement \"a\" already exists",
        "Z I",
        "C DEALLOCATE",
        "Z I",
        "E ERROR 26000 prepared statement \"a\" does not exist",
        "Z I",
        "C DEALLOCATE ALL",
        "Z I",
        "C DISCARD ALL",
        "Z I",
    ];
    assert_eq!(answers, expected);
}
