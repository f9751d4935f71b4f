//! A web handler whose pages are cheap and whose visitors see their own changes.
//!
//! Pages are read in snapshots of the past, which wait for no writer. Such a snapshot may lack what
//! the visitor has just written. So the session travels in a cookie, as a token: the snapshot of
//! the server that reads next begins at what this visitor has seen.
//!
//! `cargo run --example web`

use std::time::Duration;

use plimsoll::{Database, Error, Freshness, IndexKind, Key, KeyRange, Options, Schema, TableId};

/// How old a page may be.
const STALENESS: Duration = Duration::from_secs(60);

/// What a framework would hand over.
struct Request<'a> {
    path: &'a str,
    body: &'a str,
    cookie: Option<&'a str>,
}

/// What it would send.
struct Response {
    status: u16,
    body: String,
    cookie: String,
}

fn handle(db: &Database, notes: TableId, request: &Request<'_>) -> Response {
    // A cookie that is malformed, or of another database, is as good as none.
    let token = request.cookie.and_then(|cookie| cookie.parse().ok());
    let continued = token.and_then(|token| db.session_with(token).ok());
    let session = continued.unwrap_or_else(|| db.session());
    let answer = match request.path {
        "/add" => add(&session, notes, request.body).map(|number| (201, format!("note {number}"))),
        "/" => page(&session, notes).map(|page| (200, page)),
        _ => Ok((404, "there is no such page".to_owned())),
    };
    let (status, body) = answer.unwrap_or_else(|error| match error {
        // Others were in the way for as long as `patience` allows.
        Error::Contended { .. } | Error::Overloaded { .. } => (503, "try again".to_owned()),
        error => (500, error.to_string()),
    });
    let cookie = session.token().map(|token| token.to_string()).unwrap_or_default();
    Response { status, body, cookie }
}

/// The newest note comes first in the table.
fn key(number: u64) -> Key {
    Key::build().desc().u64(number).finish()
}

fn add(session: &Database, notes: TableId, text: &str) -> Result<u64, Error> {
    session.transact(|txn| {
        let newest = txn.scan(notes, KeyRange::from(..).limit(1))?.pop();
        let number = newest.map_or(Ok(0), |(key, _)| key.read().desc().u64())? + 1;
        txn.put(notes, &key(number), text.as_bytes())?;
        Ok(number)
    })
}

fn page(session: &Database, notes: TableId) -> Result<String, Error> {
    let snapshot = session.snapshot(Freshness::Stale(STALENESS))?;
    let rows = snapshot.scan(notes, KeyRange::from(..).limit(10))?.collect::<Result<Vec<_>, Error>>()?;
    let texts: Vec<_> = rows.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect();
    Ok(texts.join(", "))
}

/// The lines that the example prints.
pub fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut schema = Schema::new();
    let notes = schema.table("notes", IndexKind::Ordered)?;
    let options = Options { max_staleness: STALENESS, ..Options::default() };
    let (db, other) = (Database::open(schema.clone(), options.clone())?, Database::open(schema, options)?);
    let ask = |path, body, cookie| handle(&db, notes, &Request { path, body, cookie });

    let first = ask("/add", "milk", None);
    let second = ask("/add", "bread", Some(&first.cookie));
    let foreign = other.token()?.to_string();
    let answers = [
        ask("/", "", Some(&second.cookie)),
        // Another visitor sees the page as it was a minute ago.
        ask("/", "", None),
        ask("/", "", Some(&foreign)),
        ask("/nowhere", "", None),
    ];
    let told = |answer: &Response| format!("{} {}", answer.status, answer.body);
    Ok([first, second].iter().chain(&answers).map(told).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
