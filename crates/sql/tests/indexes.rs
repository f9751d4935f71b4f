//! An index changes how fast rows are found and which are refused, and nothing else: random queries
//! over a table with indexes come to what they come to without, and in PostgreSQL.
//!
//! A longer run: `PLIMSOLL_TEST_INDEXES_S=600 cargo test -p plimsoll-sql --test indexes`, from
//! another seed with `PLIMSOLL_TEST_SEED`.

#![allow(clippy::disallowed_types)] // How long it takes is asked the clock.

mod common;
mod indexed;

use std::time::{Duration, Instant};

use common::plimsoll;
use common::postgres::Postgres;
use indexed::{Order, Random, Table};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// For how long tables are made, in seconds, unless the environment says otherwise.
const SECONDS: u64 = 4;

/// Differences that are shown at most.
const SHOWN: usize = 8;

/// Statements that write to a table, and queries over it.
const WRITES: usize = 25;
const QUERIES: usize = 40;

/// Rows, or the state of an error.
type Outcome = Result<Vec<Vec<Option<String>>>, String>;

async fn connect(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("a session");
    tokio::spawn(connection);
    client
}

/// A value without what equal values may differ in.
fn normal(value: &str) -> String {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-');
    match value {
        "-0" => "0".to_owned(),
        _ if is_number && value.contains('.') => value.trim_end_matches('0').trim_end_matches('.').to_owned(),
        _ => value.to_owned(),
    }
}

async fn ask(client: &Client, statement: &str, order: Order) -> Outcome {
    let messages = match client.simple_query(statement).await {
        Ok(messages) => messages,
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error}"));
            return Err(error.code().code().to_owned());
        }
    };
    let mut rows: Vec<Vec<Option<String>>> = Vec::new();
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|place| row.get(place).map(normal)).collect());
            }
            SimpleQueryMessage::CommandComplete(count) => rows.push(vec![Some(format!("{count} rows"))]),
            _ => {}
        }
    }
    if order == Order::Any {
        rows.sort();
    }
    Ok(rows)
}

/// Two servers, and what differs.
struct Beside {
    theirs: Client,
    ours: Client,
    differences: Vec<String>,
    statements: usize,
    not_there: usize,
}

impl Beside {
    async fn compare(&mut self, seed: u64, statement: &str, order: Order) -> (bool, Outcome) {
        let (ours, theirs) =
            (ask(&self.ours, statement, order).await, ask(&self.theirs, statement, order).await);
        self.statements += 1;
        self.note(seed, statement, &ours, &theirs);
        (ours.is_ok(), theirs)
    }

    fn note(&mut self, seed: u64, statement: &str, ours: &Outcome, theirs: &Outcome) {
        if *ours == Err("0A000".to_owned()) {
            self.not_there += 1;
        } else if ours != theirs {
            let shown = |outcome: &Outcome| format!("{outcome:?}").chars().take(1500).collect::<String>();
            let (our, their) = (shown(ours), shown(theirs));
            self.differences
                .push(format!("seed {seed}: {statement}\n  here:       {our}\n  PostgreSQL: {their}\n"));
        }
    }

    async fn both(&self, statement: &str) {
        for client in [&self.ours, &self.theirs] {
            let outcome = ask(client, statement, Order::Any).await;
            assert!(outcome.is_ok(), "{statement}: {outcome:?}");
        }
    }

    /// Writes to the table in a transaction, in part within a savepoint.
    async fn write(&mut self, seed: u64, table: &mut Table, random: &mut Random) {
        let before = table.remembered();
        self.both("begin").await;
        if random.percent(30) {
            self.both("savepoint s").await;
            let is_done = self.change(seed, table, random).await;
            if !is_done || random.percent(60) {
                self.both("rollback to s").await;
                table.reset_indexes(&before);
            } else if random.percent(50) {
                self.both("release s").await;
            }
        }
        if self.change(seed, table, random).await {
            self.both("commit").await;
        } else {
            self.both("rollback").await;
            table.reset_indexes(&before);
        }
    }

    /// A statement that writes. Says whether it did so on both sides.
    async fn change(&mut self, seed: u64, table: &mut Table, random: &mut Random) -> bool {
        let statement = table.write(random);
        let (ours, theirs) =
            (ask(&self.ours, &statement, Order::Any).await, ask(&self.theirs, &statement, Order::Any).await);
        self.statements += 1;
        // Whether an UPDATE of several rows meets a key depends on which it begins with.
        let is_refused = |outcome: &Outcome| *outcome == Err("23505".to_owned());
        let may_differ = statement.starts_with("update") && (is_refused(&ours) || is_refused(&theirs));
        let is_done = ours.is_ok() && theirs.is_ok();
        if !may_differ {
            self.note(seed, &statement, &ours, &theirs);
        }
        is_done
    }

    async fn table(&mut self, seed: u64) {
        let random = &mut Random(seed);
        let mut table = Table::new(random);
        for statement in table.create(random) {
            let (ours, theirs) = self.compare(seed, &statement, Order::Any).await;
            if !ours || theirs.is_err() {
                return;
            }
        }
        for _ in 0..WRITES {
            self.write(seed, &mut table, random).await;
        }
        self.both("insert into p select * from x").await;
        for (reading, order) in table.readings() {
            let _ = self.compare(seed, &reading, order).await;
        }
        for _ in 0..QUERIES {
            let (query, order) = table.query(random);
            let (_, theirs) = self.compare(seed, &query.replace("{t}", "x"), order).await;
            let query = query.replace("{t}", "p");
            let ours = ask(&self.ours, &query, order).await;
            self.note(seed, &query, &ours, &theirs);
        }
    }
}

#[test]
fn rows_are_the_same_with_and_without_indexes() {
    let Some(server) = Postgres::start() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seconds = number("PLIMSOLL_TEST_INDEXES_S").unwrap_or(SECONDS);
    let first = number("PLIMSOLL_TEST_SEED").unwrap_or(1);
    let port = plimsoll();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (theirs, ours) = (connect(server.port).await, connect(port).await);
        let mut beside = Beside { theirs, ours, differences: Vec::new(), statements: 0, not_there: 0 };
        beside.both("set client_min_messages = error").await;
        let begun = Instant::now();
        let mut seed = first;
        while begun.elapsed() < Duration::from_secs(seconds) && beside.differences.len() < SHOWN {
            beside.table(seed).await;
            seed += 1;
        }
        let Beside { differences, statements, not_there, .. } = beside;
        eprintln!("{} tables, {statements} statements, {not_there} not there", seed - first);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        assert!(statements > 50 && not_there * 10 < statements, "{not_there} of {statements} are not there");
    });
}
