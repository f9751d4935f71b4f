//! Long statements.

use std::sync::Arc;

use super::{ask, served, shown, world};
use crate::session::Places;
use crate::testing::{query, start};

#[test]
fn a_long_query_gives_way_and_writes_in_pieces() {
    let world = world();
    let sends = vec![start(0, &[("user", "u")]), query("select generate_series(1, 20000), repeat('x', 50)")];
    let client = served(sends, &world, &Places::new(0, 1));
    assert!((620..635).contains(&world.pauses.get()), "{}", world.pauses.get());
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
