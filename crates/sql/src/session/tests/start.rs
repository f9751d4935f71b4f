//! How sessions begin.

use super::{raw, served, shown, world};
use crate::session::Places;
use crate::testing::{query, start};

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
