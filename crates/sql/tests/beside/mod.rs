//! Runs a statement here and on a PostgreSQL 15 that is started beside, and compares what comes
//! out: the columns' names and types, the rows as text, or the error's state, message, hint, detail
//! and place.

#![allow(dead_code)] // Every user takes its part.

#[path = "../common/postgres.rs"]
mod postgres;

use plimsoll_sql::SqlError;
use plimsoll_sql::analyze::{Catalog, analyze};
use plimsoll_sql::catalog::Relation;
use plimsoll_sql::execute::fuel::Fuel;
use plimsoll_sql::execute::{Context, Step};
use plimsoll_sql::types::{Format, Style, encode};
pub use postgres::Postgres;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Rows that are compared at most.
const ROWS_MAX: usize = 10_000;

/// Fuel with which a statement never pauses.
pub const PLENTY: u32 = u32::MAX;

/// A session with PostgreSQL.
pub async fn connect(server: &Postgres) -> Client {
    let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("a session");
    tokio::spawn(connection);
    client
}

/// The statements of `tests/statements`, each with the name of its file.
pub fn statements() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statements");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("statements")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("statements");
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("--")) {
            all.push((name.clone(), line.trim_end_matches(';').to_owned()));
        }
    }
    all
}

/// What a statement comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Names and types of columns, and rows.
    Rows(Vec<(String, u32)>, Vec<Vec<Option<String>>>),
    /// State, message, detail, hint, place.
    Error(String, String, Option<String>, Option<String>, Option<u32>),
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Rows(columns, rows) => {
                for (name, oid) in columns {
                    write!(f, "{name}:{} ", plimsoll_sql::types::Oid(*oid).display())?;
                }
                for row in rows.iter().take(20) {
                    let shown: Vec<&str> =
                        row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
                    write!(f, "| {} ", shown.join(", "))?;
                }
                Ok(())
            }
            Outcome::Error(state, message, detail, hint, place) => {
                write!(f, "{state} {message} at {place:?}")?;
                if let Some(detail) = detail {
                    write!(f, " DETAIL {detail}")?;
                }
                if let Some(hint) = hint {
                    write!(f, " HINT {hint}")?;
                }
                Ok(())
            }
        }
    }
}

struct Settings;

impl Catalog for Settings {
    fn setting(&self, name: &str) -> Option<String> {
        match name.to_ascii_lowercase().as_str() {
            "search_path" => Some("\"$user\", public".to_owned()),
            "timezone" => Some("UTC".to_owned()),
            "datestyle" => Some("ISO, MDY".to_owned()),
            "application_name" => Some(String::new()),
            _ => None,
        }
    }

    fn set(&self, _name: &str, value: &str, _local: bool) -> Result<String, SqlError> {
        Ok(value.to_owned())
    }

    fn user(&self) -> &str {
        "postgres"
    }

    fn database(&self) -> &str {
        "postgres"
    }

    fn relation(&self, _schema: &str, _name: &str) -> Result<Option<Relation>, SqlError> {
        Ok(None)
    }
}

/// Types of the parameters, and names and types of the columns, of a statement that is only
/// prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Prepared {
    /// They.
    Types(Vec<String>, Vec<(String, String)>),
    /// State and message.
    Error(String, String),
}

/// What preparing a statement comes to here.
pub fn prepared_ours(text: &str) -> Prepared {
    let parsed = pg_query::parse(text, pg_query::ParserOptions::default()).expect("a tree");
    let statement = parsed.protobuf.stmts.first().and_then(|statement| statement.stmt.as_deref());
    match analyze(statement.expect("a statement"), text, &[], &Settings) {
        Ok(query) => {
            let column =
                |column: &plimsoll_sql::analyze::Column| (column.name.clone(), column.oid.catalog_name());
            Prepared::Types(
                query.parameters.iter().map(|oid| oid.catalog_name()).collect(),
                query.columns.iter().map(column).collect(),
            )
        }
        Err(error) => Prepared::Error(error.state.as_str().to_owned(), error.message),
    }
}

/// What it comes to in PostgreSQL.
pub async fn prepared_theirs(client: &Client, text: &str) -> Prepared {
    match client.prepare(text).await {
        Ok(statement) => Prepared::Types(
            statement.params().iter().map(|oid| oid.name().to_owned()).collect(),
            statement
                .columns()
                .iter()
                .map(|column| (column.name().to_owned(), column.type_().name().to_owned()))
                .collect(),
        ),
        Err(error) => {
            let error = error.as_db_error().expect("an error of the database");
            Prepared::Error(error.code().code().to_owned(), error.message().to_owned())
        }
    }
}

/// What a statement comes to here.
pub fn ours(text: &str) -> Outcome {
    paused(text, PLENTY).0
}

/// What a statement comes to that pauses after every so many units of work, and how often it does.
pub fn paused(text: &str, units: u32) -> (Outcome, usize) {
    let mut pauses = 0;
    let outcome = watched(text, units, &mut || pauses += 1);
    (outcome, pauses)
}

/// What a statement comes to, where something is called at each of its pauses.
pub fn watched(text: &str, units: u32, pause: &mut dyn FnMut()) -> Outcome {
    match try_ours(text, units, pause) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Error(
            error.state.as_str().to_owned(),
            error.message,
            error.detail,
            error.hint,
            error.position,
        ),
    }
}

fn try_ours(text: &str, units: u32, pause: &mut dyn FnMut()) -> Result<Outcome, SqlError> {
    let parsed = match pg_query::parse(text, pg_query::ParserOptions::default()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let message = error.to_string();
            return Err(SqlError::new(plimsoll_sql::SqlState::SYNTAX_ERROR, message));
        }
    };
    let statement = parsed.protobuf.stmts.first().and_then(|statement| statement.stmt.as_deref());
    let statement = statement.expect("a statement");
    let style = Style::default();
    let query = analyze(statement, text, &[], &Settings)?;
    let fuel = Fuel::new(units);
    let context = Context {
        catalog: &Settings,
        style: &style,
        transaction_us: 0,
        statement_us: 0,
        clock: &|| 0,
        random: &|| 4,
        backend: 1,
        fuel: &fuel,
        volatile: &std::cell::Cell::new(false),
    };
    let columns = query.columns.iter().map(|column| (column.name.clone(), column.oid.0)).collect();
    let mut run = query.start(Vec::new());
    let mut rows = Vec::new();
    loop {
        let row = match run.next(&query, &context)? {
            Step::Row(row) => row,
            Step::Pause => {
                pause();
                fuel.refill();
                continue;
            }
            Step::Fetch(_) | Step::Reserve(_) | Step::Ask(_) => {
                unreachable!("there are no tables and sequences")
            }
            Step::End => break,
        };
        let mut shown = Vec::new();
        for (value, column) in row.iter().zip(&query.columns) {
            if value.is_null() {
                shown.push(None);
                continue;
            }
            let mut out = Vec::new();
            encode(value, column.oid, Format::Text, &style, &mut out)?;
            shown.push(Some(String::from_utf8(out).expect("text")));
        }
        rows.push(shown);
        if rows.len() >= ROWS_MAX {
            break;
        }
    }
    Ok(Outcome::Rows(columns, rows))
}

/// What it comes to in PostgreSQL.
pub async fn theirs(client: &Client, text: &str) -> Outcome {
    let error = |error: tokio_postgres::Error| {
        let Some(error) = error.as_db_error() else { panic!("{text}: {error}") };
        let place = match error.position() {
            Some(tokio_postgres::error::ErrorPosition::Original(place)) => Some(*place),
            _ => None,
        };
        Outcome::Error(
            error.code().code().to_owned(),
            error.message().to_owned(),
            error.detail().map(str::to_owned),
            error.hint().map(str::to_owned),
            place,
        )
    };
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(found) => return error(found),
    };
    let statement = match client.prepare(text).await {
        Ok(statement) => statement,
        Err(found) => return error(found),
    };
    let columns =
        statement.columns().iter().map(|column| (column.name().to_owned(), column.type_().oid())).collect();
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|place| row.get(place).map(str::to_owned)).collect())
        }
        _ => None,
    });
    Outcome::Rows(columns, rows.take(ROWS_MAX).collect())
}
