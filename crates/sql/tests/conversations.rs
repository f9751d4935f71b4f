//! Bytes that no client would send, to both servers: every reply has to be the same, message by
//! message and field by field.

mod common;
#[path = "../src/testing.rs"]
mod testing;

use common::postgres::Postgres;
use common::{Raw, plimsoll};
use testing::{bind, execute, message, parse, query, start, sync};

/// A query that fails as it runs, not before.
const FAILS: &str = "select 1 / g from generate_series(0, 0) g";

/// A reply without what differs: files and lines of PostgreSQL, tables of columns.
fn shown((kind, body): (u8, Vec<u8>)) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = match kind {
        b'E' | b'N' => {
            let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
            let ours = fields.filter(|field| !b"FLR".contains(&field[0]));
            ours.map(text).collect::<Vec<_>>().join("|")
        }
        _ => text(&body),
    };
    format!("{} {shown:?}", char::from(kind))
}

/// What a server answers to messages and then to a farewell.
fn answers(port: u16, messages: &[Vec<u8>]) -> Vec<String> {
    let mut raw = Raw::connect(port, &start(0, &[("user", "postgres"), ("database", "postgres")]));
    raw.until_ready();
    raw.send(&messages.concat());
    raw.send(&message(b'X', b""));
    std::iter::from_fn(|| raw.message()).map(shown).collect()
}

#[test]
fn replies_are_postgresqls() {
    let Some(postgres) = Postgres::start() else { return };
    let port = plimsoll();
    let describe = |target: &[u8]| message(b'D', target);
    let close = |target: &[u8]| message(b'C', target);
    let run = |text: &str| [parse("", text, &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat();
    let conversations: &[(&str, Vec<Vec<u8>>)] = &[
        (
            "one statement",
            vec![
                parse("", "select $1::int4 + 1 as n", &[]),
                describe(b"S\0"),
                bind("", "", &[], &[Some(b"41")], &[]),
                describe(b"P\0"),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "binary",
            vec![
                parse("", "select $1::int8, $2::text, true", &[]),
                bind("", "", &[1], &[Some(&[0, 0, 0, 0, 0, 0, 0, 7]), None], &[1]),
                describe(b"P\0"),
                execute("", 0),
                sync(),
            ],
        ),
        ("types that are given", vec![parse("", "select $1, $2", &[23, 25]), describe(b"S\0"), sync()]),
        ("a type that nobody knows", vec![parse("", "select $1", &[]), describe(b"S\0"), sync()]),
        (
            "limits",
            vec![
                parse("", "select generate_series(1, 3)", &[]),
                bind("p", "", &[], &[], &[]),
                execute("p", 2),
                execute("p", 1),
                execute("p", 1),
                execute("p", 0),
                close(b"Pp\0"),
                sync(),
            ],
        ),
        (
            "exactly the limit",
            vec![
                parse("", "select 1", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 1),
                execute("", 1),
                sync(),
            ],
        ),
        (
            "portals end with the transaction",
            vec![parse("s", "select 1", &[]), bind("p", "s", &[], &[], &[]), sync(), execute("p", 0), sync()],
        ),
        (
            "portals live in a block",
            vec![
                query("begin"),
                parse("s", "select generate_series(1, 3)", &[]),
                bind("p", "s", &[], &[], &[]),
                execute("p", 1),
                sync(),
                execute("p", 1),
                sync(),
                query("commit"),
                execute("p", 1),
                sync(),
            ],
        ),
        (
            "portals and savepoints",
            vec![
                query("begin; savepoint a"),
                parse("s", "select 1", &[]),
                bind("p", "s", &[], &[], &[]),
                sync(),
                query("rollback to a"),
                execute("p", 0),
                sync(),
                query("rollback"),
            ],
        ),
        (
            "portals that outlive a savepoint",
            vec![
                query("begin; savepoint a"),
                parse("s", "select 1", &[]),
                bind("p", "s", &[], &[], &[]),
                sync(),
                query("release a; savepoint b; rollback to b"),
                execute("p", 0),
                sync(),
                query("rollback"),
            ],
        ),
        (
            "an error skips",
            vec![
                parse("", "selec", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 0),
                query("select 1"),
                sync(),
                query("select 2"),
            ],
        ),
        ("an error of execution", vec![run(FAILS), run("select 1"), sync()]),
        (
            "duplicates",
            vec![
                parse("s", "select 1", &[]),
                parse("s", "select 1", &[]),
                sync(),
                close(b"Ss\0"),
                close(b"Ss\0"),
                parse("s", "select 1", &[]),
                bind("p", "s", &[], &[], &[]),
                bind("p", "s", &[], &[], &[]),
                sync(),
            ],
        ),
        (
            "what does not exist",
            vec![
                bind("", "x", &[], &[], &[]),
                sync(),
                describe(b"Sx\0"),
                sync(),
                describe(b"Px\0"),
                sync(),
                execute("x", 0),
                sync(),
                bind("", "", &[], &[], &[]),
                sync(),
                describe(b"S\0"),
                sync(),
            ],
        ),
        (
            "counts that do not fit",
            vec![
                parse("s", "select $1::int4, $2::int4", &[]),
                bind("", "s", &[], &[], &[]),
                sync(),
                bind("", "s", &[0, 0, 0], &[None, None], &[]),
                sync(),
                bind("", "s", &[], &[None, None], &[0, 0, 0]),
                sync(),
            ],
        ),
        (
            "values that do not fit",
            vec![
                parse("s", "select $1::int4", &[]),
                bind("", "s", &[], &[Some(b"x")], &[]),
                sync(),
                bind("q", "s", &[1], &[Some(b"x")], &[]),
                sync(),
                bind("", "s", &[1], &[Some(b"")], &[]),
                sync(),
            ],
        ),
        (
            "texts that are none",
            vec![
                parse("s", "select $1::text", &[]),
                bind("", "s", &[], &[Some(b"\xc3(")], &[]),
                sync(),
                bind("", "s", &[1], &[Some(b"a\0b")], &[]),
                sync(),
                message(b'Q', b"select '\xff'\0"),
            ],
        ),
        (
            "several statements in one",
            vec![
                parse("", "select 1; select 2", &[]),
                sync(),
                parse("", "", &[]),
                describe(b"S\0"),
                bind("", "", &[], &[], &[]),
                describe(b"P\0"),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "control in the extended protocol",
            vec![
                run("begin"),
                run("set geqo = off"),
                run("commit"),
                run("show geqo"),
                run("rollback"),
                sync(),
                run("commit"),
                sync(),
            ],
        ),
        (
            "a block over several syncs",
            vec![
                run("begin"),
                sync(),
                run(FAILS),
                sync(),
                run("select 1"),
                sync(),
                parse("", "rollback", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "a utility statement twice",
            vec![
                parse("", "set geqo = off", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 0),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "begin twice",
            vec![
                parse("", "begin", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 0),
                execute("", 0),
                sync(),
                query("rollback"),
            ],
        ),
        (
            "empty in a failed block",
            vec![
                query("begin; x"),
                parse("", "", &[]),
                bind("", "", &[], &[], &[]),
                sync(),
                query(""),
                query("rollback"),
            ],
        ),
        (
            "described in a failed block",
            vec![
                parse("q", "select 1", &[]),
                parse("u", "set geqo = off", &[]),
                sync(),
                query("begin; x"),
                describe(b"Sq\0"),
                sync(),
                describe(b"Su\0"),
                sync(),
                bind("", "u", &[], &[], &[]),
                sync(),
                query("rollback"),
            ],
        ),
        (
            "a show",
            vec![
                parse("", "show geqo", &[]),
                describe(b"S\0"),
                bind("", "", &[], &[], &[]),
                describe(b"P\0"),
                execute("", 0),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "an execute",
            vec![
                query("prepare a (int) as select $1 as n, 'x' as x"),
                parse("", "execute a (1)", &[]),
                describe(b"S\0"),
                bind("", "", &[], &[], &[1]),
                describe(b"P\0"),
                execute("", 0),
                sync(),
            ],
        ),
        (
            "settings are reported",
            vec![
                query(
                    "set datestyle = 'sql, dmy'; set timezone = 'Europe/Berlin'; set application_name = 'x'",
                ),
                query("begin; set local intervalstyle = iso_8601"),
                query("rollback"),
                query("set timezone = default"),
                run("set datestyle = german"),
                sync(),
            ],
        ),
        (
            "messages with bytes left",
            vec![
                message(b'Q', b"select 1\0x"),
                message(b'S', b"x"),
                message(b'H', b""),
                message(b'D', b"X\0"),
                sync(),
                message(b'Q', b"select 1"),
            ],
        ),
        (
            "a COPY that there is not",
            vec![message(b'd', b"1\n"), message(b'c', b""), message(b'f', b"no\0"), query("select 1")],
        ),
        (
            "a simple query ends the unnamed statement",
            vec![parse("", "select 1", &[]), sync(), query("select 2"), bind("", "", &[], &[], &[]), sync()],
        ),
        ("parameters of a simple query", vec![query("select $1"), query("select $2::int")]),
        (
            "discard",
            vec![
                parse("s", "select 1", &[]),
                sync(),
                query("discard all"),
                bind("", "s", &[], &[], &[]),
                sync(),
                run("discard all"),
                sync(),
            ],
        ),
    ];
    let mut differences = Vec::new();
    for (name, messages) in conversations {
        let [theirs, ours] = [postgres.port, port].map(|port| answers(port, messages));
        if ours != theirs {
            differences.push(format!(
                "{name}:\n  ours    {}\n  theirs  {}",
                ours.join("\n          "),
                theirs.join("\n          ")
            ));
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_request_to_cancel_ends_a_long_query() {
    let port = plimsoll();
    for (minor, bytes) in [(0, 4), (2, 32)] {
        let mut raw = Raw::connect(port, &start(minor, &[("user", "u")]));
        let begin = raw.until_ready();
        let (_, key) = begin.iter().find(|(kind, _)| *kind == b'K').expect("a key");
        assert_eq!(key.len(), 4 + bytes);
        raw.send(&query("select generate_series(1, 1000000000)"));
        while raw.message().expect("rows").0 != b'D' {}
        let length = u32::try_from(8 + key.len()).expect("short").to_be_bytes();
        let request = [&length, &80_877_102u32.to_be_bytes(), key.as_slice()].concat();
        // The server closes without an answer.
        assert!(Raw::connect(port, &request).message().is_none());
        let end = raw.until_ready();
        let error = shown(end[end.len() - 2].clone());
        assert!(error.contains("C57014|Mcanceling statement due to user request"), "{error}");
    }
}
