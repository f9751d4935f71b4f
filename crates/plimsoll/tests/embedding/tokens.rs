//! Sessions that go on in another process.

use std::time::Duration;

use plimsoll::{Database, Error, Freshness, IndexKind, Key, Options, Pair, Schema, Token, TokenError};
use plimsoll_txn::timestamp::MAX_OFFSET_NS;

/// Of a session of this database that has seen so much.
fn token(db: &Database, seen: u64) -> Token {
    format!("{}{seen:016x}", &db.token().expect("dst has times").to_string()[..20]).parse().unwrap()
}

fn open(pair: &str) -> Database {
    let mut schema = Schema::new();
    schema.table("numbers", IndexKind::Hash).expect("it can be declared");
    let pair = Pair::parse(pair).expect("there is such a pair");
    let max_staleness = if pair.has_staleness() { Duration::from_secs(60) } else { Duration::ZERO };
    let options = Options { shards: 2, pair, max_staleness, ..Options::default() };
    Database::open(schema, options).expect("it can be opened")
}

#[test]
fn a_token_is_read_as_it_was_written_and_nothing_else_is() {
    let db = open("occ/dst");
    for seen in [0, 0x64, u64::MAX] {
        let token = token(&db, seen);
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    let of_an_era = "v2-0000000000000001-0000000000000064-0000000000000003";
    assert_eq!(of_an_era.parse::<Token>().expect("it is one").to_string(), of_an_era);
    let refused = |text: &str| text.parse::<Token>().expect_err("it is none");
    let (whole, arabic) = ("0000000000000064", "\u{664}".repeat(8));
    for text in [
        "",
        "v2-",
        "v2",
        "64",
        "v2-64-64",
        &format!("v2-{whole}"),
        &format!("v2-{whole}-"),
        &format!("v2-{whole}-{whole}0"),
        &format!("v2-{whole}-{whole} "),
        &format!("v2-{whole}-{whole}-"),
        &format!("v2-{whole}-{whole}-{:016x}", 0),
        &format!("v2-{whole}-{whole}-{whole}-{whole}"),
        &format!("v2-+000000000000064-{whole}"),
        &format!("v2-{whole}-000000000000006g"),
        &format!("v2-{whole}-{arabic}"),
        &format!("v-{whole}"),
        &format!("vx-{whole}-{whole}"),
    ] {
        assert_eq!(refused(text), TokenError::Malformed, "{text:?}");
    }
    assert_eq!(refused(&format!("v1-{whole}")), TokenError::Version);
    assert_eq!(refused(&format!("v3-{whole}-{whole}")), TokenError::Version);
    assert!(TokenError::Malformed.to_string().ends_with("v2-0000000000000000-0000000000000000"));
}

#[test]
fn a_token_of_another_database_is_refused() {
    let (one, two) = (open("occ/dst"), open("occ/dst"));
    let token = one.session().token().expect("dst has times");
    assert!(one.session_with(token).is_ok());
    assert_eq!(two.session_with(token).err(), Some(TokenError::OtherDatabase));
}

#[test]
fn a_session_goes_on_where_another_was() {
    let db = open("occ/dst");
    let (table, key) = (db.table("numbers").expect("it was declared"), Key::of_u64(1));
    let written: Result<(), Error> = db.transact(|txn| txn.put(table, &key, b"value"));
    written.expect("it commits");
    let stale = Freshness::Stale(Duration::from_secs(30));
    let read = |session: &Database| session.snapshot(stale)?.get(table, &key);
    let other = db.session_with(db.token().expect("dst has times")).expect("it is of this moment");
    assert_eq!(read(&db.session()), Ok(None), "so long ago there was nothing");
    assert_eq!(read(&other), Ok(Some(b"value".to_vec())));
    // A session of somebody who has seen nothing promises nothing.
    let nothing = db.session().token().expect("dst has times");
    assert_eq!(read(&db.session_with(nothing).expect("it is long past")), Ok(None));
}

#[test]
fn what_a_session_writes_comes_after_what_it_has_seen_elsewhere() {
    for pair in ["occ/dst", "two_pl/dst"] {
        let db = open(pair);
        let (table, key) = (db.table("numbers").expect("it was declared"), Key::of_u64(1));
        let clock = db.snapshot(Freshness::Newest).expect("it is taken").timestamp().0;
        let seen = clock + MAX_OFFSET_NS / 5;
        let session = db.session_with(token(&db, seen)).expect("clocks may be so far apart");
        let written: Result<(), Error> = session.transact(|txn| txn.put(table, &key, b"value"));
        written.expect("it commits");
        let stamp = session.token().expect("dst has times").to_string();
        assert!(stamp > token(&db, seen).to_string(), "{pair}: {stamp}");
    }
}

#[test]
fn a_session_has_seen_what_a_transaction_showed_it_and_did_not_commit() {
    for pair in ["occ/dst", "two_pl/dst"] {
        let db = open(pair);
        let (table, key) = (db.table("numbers").expect("it was declared"), Key::of_u64(1));
        let written: Result<(), Error> = db.transact(|txn| txn.put(table, &key, b"value"));
        written.expect("it commits");
        let session = db.session();
        let refused: Result<(), Error> = session.transact(|txn| txn.insert(table, &key, b"another"));
        assert!(matches!(refused, Err(Error::Exists { .. })), "{pair}: {refused:?}");
        let stale = session.snapshot(Freshness::Stale(Duration::from_secs(30))).expect("it is taken");
        assert_eq!(stale.get(table, &key), Ok(Some(b"value".to_vec())), "{pair}");
    }
}

#[test]
fn a_token_from_the_far_future_is_refused_and_moves_nobodys_time() {
    let db = open("occ/dst");
    let clock = |db: &Database| db.snapshot(Freshness::Newest).expect("it is taken").timestamp().0;
    let hour = Duration::from_secs(3600);
    let before = clock(&db);
    for seen in [u64::MAX, before + hour.as_nanos() as u64] {
        let refused = db.session_with(token(&db, seen)).err();
        assert!(matches!(refused, Some(TokenError::Ahead(by)) if by > hour / 2), "{refused:?}");
    }
    assert!(clock(&db) < before + hour.as_nanos() as u64 / 2, "nobody was told of it");
    // A clock that is a little behind is no reason to refuse anybody: the snapshot is at the token,
    // or later.
    let seen = clock(&db) + MAX_OFFSET_NS / 2;
    let near = token(&db, seen);
    let session = db.session_with(near).expect("clocks may be so far apart");
    assert!(clock(&session) >= seen);
    db.close();
    assert_eq!(db.session_with(near).err(), Some(TokenError::Closed));
}

#[test]
fn where_timestamps_are_no_times_a_session_stays_in_its_process() {
    for pair in ["occ/gts", "two_pl/vts"] {
        let db = open(pair);
        let scheme = Pair::parse(pair).unwrap().scheme;
        assert_eq!(db.token(), Err(TokenError::Scheme(scheme)));
        let token = open("occ/dst").token().expect("dst has times");
        assert_eq!(db.session_with(token).err(), Some(TokenError::Scheme(scheme)));
    }
    // Where there are no snapshots everybody reads what is newest, and a token asks for nothing.
    for pair in ["occ/none", "two_pl/rc"] {
        let db = open(pair);
        let token = db.token().expect("a session may be handed on");
        drop(db.session_with(token).expect("and taken over"));
    }
}
