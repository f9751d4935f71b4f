//! Conversations: what a client sends, and all that it is answered.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::{Closed, Places, Stream, World, serve};
use crate::testing::{bind, execute, message, parse, query, start, sync};

/// A client that sends its bytes in pieces and keeps what it is answered.
struct Client {
    sends: Vec<Vec<u8>>,
    received: Vec<u8>,
    /// The longest write.
    longest: usize,
}

impl Stream for Client {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        if self.sends.is_empty() {
            return Ok(0);
        }
        let piece = self.sends.remove(0);
        buffer.extend(&piece);
        Ok(piece.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.longest = self.longest.max(bytes.len());
        self.received.extend(bytes);
        Ok(())
    }
}

/// A world whose clock goes a millisecond per pause.
struct Still {
    now_us: Cell<i64>,
    pauses: Cell<u64>,
    /// What a pause does.
    during: RefCell<Box<dyn FnMut()>>,
}

impl World for Still {
    fn now_us(&self) -> i64 {
        self.now_us.get()
    }

    fn random(&self) -> u64 {
        0x0102_0304_0506_0708
    }

    async fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
        self.now_us.set(self.now_us.get() + 1_000);
        (self.during.borrow_mut())();
    }
}

fn world() -> Still {
    Still { now_us: Cell::new(0), pauses: Cell::new(0), during: RefCell::new(Box::new(|| ())) }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing in these tests waits"),
    }
}

/// What a client is answered to pieces, from the first byte on.
fn served(sends: Vec<Vec<u8>>, world: &Still, places: &Arc<Places>) -> Client {
    let mut client = Client { sends, received: Vec::new(), longest: 0 };
    block_on(serve(&mut client, world, places));
    client
}

fn raw(sends: Vec<Vec<u8>>) -> Vec<u8> {
    served(sends, &world(), &Places::new(0, 4)).received
}

/// What a session is answered after its start.
fn talk(sends: &[Vec<u8>]) -> Vec<String> {
    let mut all = vec![start(0, &[("user", "u"), ("database", "d")])];
    all.extend_from_slice(sends);
    let answers = shown(&raw(all));
    let ready = answers.iter().position(|answer| answer == "Z I").expect("the session begins");
    answers[ready + 1..].to_vec()
}

/// What simple queries are answered.
fn ask(queries: &[&str]) -> Vec<String> {
    talk(&queries.iter().map(|text| query(text)).collect::<Vec<_>>())
}

/// Replies as text: the type, then what matters of the body.
fn shown(mut bytes: &[u8]) -> Vec<String> {
    let mut answers = Vec::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        let (length, _) = rest.split_first_chunk::<4>().expect("a length");
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("it is short");
        let body = &rest[4..length];
        bytes = &rest[length..];
        let text = |body: &[u8]| String::from_utf8_lossy(body).replace('\0', " ").trim().to_owned();
        let answer = match kind {
            b'T' => {
                let mut names = Vec::new();
                let mut rest = &body[2..];
                while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                    names.push(text(&rest[..end]));
                    rest = &rest[end + 19..];
                }
                format!("T {}", names.join(","))
            }
            b'D' => {
                let mut values = Vec::new();
                let mut rest = &body[2..];
                while let Some((length, after)) = rest.split_first_chunk::<4>() {
                    let length = i32::from_be_bytes(*length);
                    let value = &after[..usize::try_from(length).unwrap_or(0)];
                    values.push(if length < 0 { "NULL".to_owned() } else { text(value) });
                    rest = &after[value.len()..];
                }
                format!("D {}", values.join(","))
            }
            b'E' | b'N' => {
                let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
                let fields = fields.filter(|field| !b"SHD".contains(&field[0]));
                let fields: Vec<String> = fields.map(|field| text(&field[1..])).collect();
                format!("{} {}", char::from(kind), fields.join(" "))
            }
            b't' => format!(
                "t {}",
                body[2..]
                    .chunks(4)
                    .map(|oid| u32::from_be_bytes(oid.try_into().expect("four")).to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            kind => format!("{} {}", char::from(kind), text(body)).trim().to_owned(),
        };
        answers.push(answer);
    }
    answers
}

const ABORTED: &str =
    "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block";

#[test]
fn a_session_begins_with_what_drivers_read() {
    let answers = shown(&raw(vec![start(0, &[("user", "u"), ("application_name", "é")])]));
    let expected = [
        "R",
        "S application_name ??",
        "S client_encoding UTF8",
        "S DateStyle ISO, MDY",
        "S default_transaction_read_only off",
        "S in_hot_standby off",
        "S integer_datetimes on",
        "S IntervalStyle postgres",
        "S is_superuser on",
        "S server_encoding UTF8",
    ];
    assert_eq!(answers[..10], expected);
    assert!(answers[10].starts_with("S server_version 15.0 (Plimsoll "), "{}", answers[10]);
    assert_eq!(answers[11], "S session_authorization u");
    assert_eq!(answers.last().map(String::as_str), Some("Z I"));
    let key = |minor| {
        let bytes = raw(vec![start(minor, &[("user", "u")])]);
        let place = bytes.windows(4).position(|it| it[0] == b'K' && it[1..] == [0, 0, 0]).expect("a key");
        bytes[place + 4]
    };
    assert_eq!((key(0), key(2)), (12, 40));
}

#[test]
fn what_precedes_the_start_is_answered_in_any_order() {
    let request = |code: u32| [8u32.to_be_bytes(), code.to_be_bytes()].concat();
    let (tls, gss) = (request(80_877_103), request(80_877_104));
    let begin = start(9999, &[("user", "u"), ("_pq_.x", "1")]);
    for order in
        [vec![tls.clone(), gss.clone()], vec![gss.clone(), tls.clone()], vec![[tls.clone(), gss].concat()]]
    {
        let bytes = raw([order, vec![begin.clone()]].concat());
        assert_eq!(bytes[..3], *b"NNv");
    }
    let twice = raw(vec![tls.clone(), tls]);
    assert_eq!(shown(&twice[1..]), ["E FATAL 08P01 a client may ask for encryption once"]);
}

#[test]
fn starts_are_refused_in_postgresqls_words() {
    let refused = |parameters: &[(&str, &str)]| shown(&raw(vec![start(0, parameters)])).join("; ");
    assert_eq!(refused(&[]), "E FATAL 28000 no PostgreSQL user name specified in startup packet");
    assert_eq!(
        refused(&[("user", "u"), ("foo", "1")]),
        "E FATAL 42704 unrecognized configuration parameter \"foo\""
    );
    assert_eq!(
        refused(&[("user", "u"), ("options", "-c work_mem=1")]),
        "E FATAL 22023 1 kB is outside the valid range for parameter \"work_mem\" (64 .. 2147483647)"
    );
    assert_eq!(
        refused(&[("user", "u"), ("replication", "true")]),
        "E FATAL 0A000 replication is not supported"
    );
    let full = served(vec![start(0, &[("user", "u")])], &world(), &Places::new(0, 0)).received;
    assert_eq!(shown(&full), ["E FATAL 53300 sorry, too many clients already"]);
}

#[test]
fn startup_settings_are_what_reset_goes_back_to() {
    let begin =
        start(0, &[("user", "u"), ("options", "-c work_mem=1MB --geqo=off"), ("TimeZone", "europe/berlin")]);
    let asked = query("set work_mem = 100; reset all; show work_mem; show geqo; show timezone");
    let answers = shown(&raw(vec![begin, asked]));
    let rows: Vec<&str> = answers.iter().filter(|it| it.starts_with("D ")).map(String::as_str).collect();
    assert_eq!(rows, ["D 1MB", "D off", "D Europe/Berlin"]);
}

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

#[test]
fn what_is_not_there_is_named() {
    let answers = ask(&[
        "create table t (i int)",
        "copy t from stdin",
        "declare c cursor for select 1",
        "begin; prepare transaction 'x'",
    ]);
    let expected = [
        "E ERROR 0A000 CREATE TABLE is not supported",
        "Z I",
        "E ERROR 0A000 COPY is not supported",
        "Z I",
        "E ERROR 0A000 DECLARE CURSOR is not supported",
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
fn a_long_query_gives_way_and_writes_in_pieces() {
    let world = world();
    let sends = vec![start(0, &[("user", "u")]), query("select generate_series(1, 20000), repeat('x', 50)")];
    let client = served(sends, &world, &Places::new(0, 1));
    assert_eq!(world.pauses.get(), 20_000 / 256);
    assert!(client.longest <= 64 << 10, "{}", client.longest);
    let answers = shown(&client.received);
    assert_eq!(answers[answers.len() - 2..], ["C SELECT 20000", "Z I"]);
}

#[test]
fn a_long_query_is_cancelled_or_times_out() {
    let places = Places::new(0, 1);
    let world = world();
    let other = Arc::clone(&places);
    *world.during.borrow_mut() = Box::new(move || {
        let secret = 0x0102_0304_0506_0708u64.to_be_bytes();
        other.cancel(1, &secret[..4]);
    });
    let sends =
        vec![start(0, &[("user", "u")]), query("select generate_series(1, 1000000000)"), query("show geqo")];
    let answers = shown(&served(sends, &world, &places).received);
    let error = answers.iter().position(|it| it.starts_with("E ")).expect("an error");
    let expected =
        ["E ERROR 57014 canceling statement due to user request", "Z I", "T geqo", "D on", "C SHOW", "Z I"];
    assert_eq!(answers[error..], expected);
    let answers = ask(&["set statement_timeout = 5", "select generate_series(1, 1000000000)"]);
    assert_eq!(
        answers[answers.len() - 2..],
        ["E ERROR 57014 canceling statement due to statement timeout", "Z I"]
    );
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
            ] {
                let answers = ask(&[&text]);
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
