//! Simple queries, and what is refused.

use proptest::prelude::*;

use super::{ask, raw, talk};
use crate::testing::{message, query, start};

#[test]
fn simple_queries_are_answered_one_by_one() {
    assert_eq!(ask(&["show geqo"]), ["T geqo", "D on", "C SHOW", "Z I"]);
    assert_eq!(ask(&[""]), ["I", "Z I"]);
    assert_eq!(ask(&["; -- nothing\n;"]), ["I", "Z I"]);
    assert_eq!(
        ask(&["select 1 as a, null as b; values (2), (3)"]),
        ["T a,b", "D 1,NULL", "C SELECT 1", "T column1", "D 2", "D 3", "C SELECT 2", "Z I"]
    );
    assert_eq!(
        ask(&["set geqo = off; selec 1", "show geqo"]),
        ["E ERROR 42601 syntax error at or near \"selec\" 17", "Z I", "T geqo", "D on", "C SHOW", "Z I"]
    );
    assert_eq!(ask(&["show all"])[0], "T name,setting,description");
}

#[test]
fn what_is_not_there_is_named() {
    let answers = ask(&["create view v as select 1", "create database d", "begin; prepare transaction 'x'"]);
    let expected = [
        "E ERROR 0A000 CREATE VIEW is not supported",
        "Z I",
        "E ERROR 0A000 CREATE DATABASE is not supported",
        "Z I",
        "C BEGIN",
        "E ERROR 55000 prepared transactions are disabled",
        "Z E",
    ];
    assert_eq!(answers, expected);
    let call = talk(&[message(b'F', b"xxxx"), query("show geqo")]);
    assert_eq!(call[..2], ["E ERROR 0A000 function calls by identifier are not supported", "Z I"]);
}

#[test]
fn bad_messages_end_the_session_or_the_statement() {
    assert_eq!(
        talk(&[message(b'!', b""), query("show geqo")]),
        ["E FATAL 08P01 invalid frontend message type 33"]
    );
    assert_eq!(talk(&[b"Q\xff\xff\xff\xff".to_vec()]), ["E FATAL 08P01 invalid message length"]);
    assert_eq!(talk(&[message(b'Q', b"select 1")]), ["E ERROR 08P01 invalid string in message", "Z I"]);
    assert_eq!(talk(&[message(b'X', b""), query("show geqo")]), Vec::<String>::new());
    assert_eq!(
        talk(&[query("select '\u{e9}'"), message(b'Q', b"select '\xe9'\0")])[4..],
        ["E ERROR 22021 invalid byte sequence for encoding \"UTF8\": 0xe9 0x27", "Z I"]
    );
    // A COPY that has failed may have rows on the way.
    assert_eq!(talk(&[message(b'd', b"1\n"), message(b'c', b""), query("")]), ["I", "Z I"]);
}

#[test]
fn what_nests_deeply_is_answered_on_the_stack_of_a_shard() {
    let asked = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for levels in [30, 100, 300, 1_000, 3_000, 20_000] {
            let around = |before: &str, after: &str| {
                format!("select {}1{}", before.repeat(levels), after.repeat(levels))
            };
            for text in [
                around("1+", ""),
                around("-", ""),
                around("not ", "=1"),
                around("abs(", ")"),
                around("(select ", ")"),
                around("array[", "]"),
                around("case when true then ", " end"),
                around("", "::int"),
                around("", " union all select 1"),
                format!("select 1 from (values (1)) a{}", " join (values (1)) b on true".repeat(levels)),
                format!("prepare a as select {}1", "1+".repeat(levels)),
                format!("create table u (a int default {}1)", "1+".repeat(levels)),
                format!("insert into t values ({}1)", "1+".repeat(levels)),
                format!("select from t where {}true", "a = 1 and ".repeat(levels)),
                format!("delete from t where {}true{}", "not (".repeat(levels), ")".repeat(levels)),
            ] {
                let answers = ask(&["create table t (a int)", &text]);
                assert_eq!(answers.last().map(String::as_str), Some("Z I"));
                let error = answers.iter().find(|answer| answer.starts_with("E "));
                let state = error.and_then(|error| error.get(8..10));
                assert!([None, Some("54"), Some("42")].contains(&state), "{levels}: {error:?}");
                assert!(levels > 100 || !text.contains("1+1") || error.is_none(), "{error:?}");
            }
        }
    });
    asked.expect("a thread").join().expect("no panic");
}

proptest! {
    #[test]
    fn no_bytes_of_a_client_panic(
        pieces: Vec<Vec<u8>>,
        kinds in "[QPBDECHSFXdcfp]{0,8}",
        body: Vec<u8>,
    ) {
        raw(pieces.clone());
        let messages: Vec<Vec<u8>> = kinds.bytes().map(|kind| message(kind, &body)).collect();
        raw([vec![start(0, &[("user", "u")])], messages, pieces].concat());
    }

    #[test]
    fn no_text_panics(text in "(begin|commit|set|local|show|savepoint a|rollback to a|[a-z0-9'$;,= ]| ){0,40}") {
        let answers = ask(&[&text, "rollback", "show geqo"]);
        prop_assert_eq!(answers.last().map(String::as_str), Some("Z I"));
    }
}
