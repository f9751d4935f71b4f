//! Runs a statement here and on a PostgreSQL 15 that is started beside, and compares what comes
//! out: the columns' names and types, the rows as text, or the error's state, message, hint, detail
//! and place.

#![allow(dead_code)] // Every user takes its part.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_sql::SqlError;
use plimsoll_sql::analyze::{Catalog, analyze};
use plimsoll_sql::execute::Context;
use plimsoll_sql::types::{Format, Style, encode};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows that are compared at most.
const ROWS_MAX: usize = 10_000;

/// A PostgreSQL that runs until it is dropped.
pub struct Server {
    directory: PathBuf,
    port: u16,
    process: Child,
}

/// Where PostgreSQL 15 is, if it is installed.
fn programs() -> Option<PathBuf> {
    let place = PathBuf::from("/usr/lib/postgresql/15/bin");
    place.join("initdb").exists().then_some(place)
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

impl Server {
    /// Starts one; none if PostgreSQL 15 is not installed.
    pub fn start() -> Option<Server> {
        let programs = programs()?;
        let directory = tempfile::Builder::new().prefix("sql-").tempdir().expect("a directory").keep();
        if is_root() {
            run(Command::new("chown").arg("nobody").arg(&directory));
        }
        let as_nobody = |program: &str| {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]);
            if is_root() {
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            }
            command.arg(programs.join(program)).current_dir(&directory);
            command
        };
        let data = directory.join("data");
        run(as_nobody("initdb")
            .args(["--auth=trust", "--username=plimsoll", "--encoding=UTF8", "--locale=C", "-N", "-D"])
            .arg(&data));
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("a free port").port();
        drop(socket);
        let process = as_nobody("postgres")
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-c", "timezone=UTC"])
            .args(["-c", "max_stack_depth=2MB", "-c", "shared_buffers=16MB", "-k"])
            .arg(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        Some(Server { directory, port, process })
    }

    /// A connection, once the server answers.
    pub async fn connect(&self) -> Client {
        let config = format!("host=127.0.0.1 port={} user=plimsoll dbname=postgres", self.port);
        let begun = Instant::now();
        loop {
            match tokio_postgres::connect(&config, NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    return client;
                }
                Err(error) => {
                    assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not answer: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg("-QUIT").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
        "plimsoll"
    }

    fn database(&self) -> &str {
        "postgres"
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
    match try_ours(text) {
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

fn try_ours(text: &str) -> Result<Outcome, SqlError> {
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
    let context = Context {
        catalog: &Settings,
        style: &style,
        transaction_us: 0,
        statement_us: 0,
        clock: &|| 0,
        random: &|| 4,
        backend: 1,
    };
    let columns = query.columns.iter().map(|column| (column.name.clone(), column.oid.0)).collect();
    let mut run = query.start(Vec::new());
    let mut rows = Vec::new();
    while let Some(row) = run.next(&query, &context)? {
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
