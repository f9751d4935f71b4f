//! Drivers that people use, each with a program of its own in `suites`: it plays the same part
//! against PostgreSQL 15 and against this server, and what it prints has to be the same.
//!
//! The drivers come from registries, so they may be missing: then the test says NOT RUN, or fails
//! if
//! `PLIMSOLL_DRIVERS_REQUIRED` is set. To have them:
//!
//! ```text
//! python3 -m venv drivers && drivers/bin/pip install 'psycopg[binary]' asyncpg sqlalchemy
//! mvn dependency:get -Dartifact=org.postgresql:postgresql:42.7.4 -Dtransitive=false
//! PLIMSOLL_PYTHON=drivers/bin/python PLIMSOLL_JDBC=postgresql-42.7.4.jar cargo test --test drivers
//! ```

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::plimsoll;
use common::postgres::Postgres;

/// If it is set, a driver that is missing is a failure.
const REQUIRED: &str = "PLIMSOLL_DRIVERS_REQUIRED";

fn missing(what: &str) {
    assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set, and {what} is missing");
    eprintln!("NOT RUN: {what} is missing; the head of tests/drivers.rs says how to have it");
}

fn suite(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites").join(name)
}

/// Runs a program against both servers, and says where what it prints differs first.
fn play(program: impl Fn() -> Command) {
    let Some(postgres) = Postgres::start() else { return };
    let [ours, theirs] = [plimsoll(), postgres.port].map(|port| {
        let output = program().arg(port.to_string()).output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "port {port}: {text}{error}");
        text
    });
    assert!(theirs.lines().count() > 20, "{theirs}");
    for (place, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", place + 1);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

fn python(module: &str, program: &str) {
    let python = std::env::var("PLIMSOLL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return missing(&format!("the Python module {module}"));
    }
    play(|| {
        let mut command = Command::new(&python);
        command.arg(suite(program));
        command
    });
}

#[test]
fn psycopg_finds_what_it_finds_in_postgresql() {
    python("psycopg", "with_psycopg.py");
}

#[test]
fn asyncpg_finds_what_it_finds_in_postgresql() {
    python("asyncpg", "with_asyncpg.py");
}

#[test]
fn sqlalchemy_finds_what_it_finds_in_postgresql() {
    python("sqlalchemy, psycopg", "with_sqlalchemy.py");
}

#[test]
fn jdbc_finds_what_it_finds_in_postgresql() {
    let jar = std::env::var_os("PLIMSOLL_JDBC").map(PathBuf::from).filter(|jar| jar.exists());
    let Some(jar) = jar else { return missing("the jar of pgJDBC") };
    if Command::new("java").arg("-version").output().is_err() {
        return missing("java");
    }
    play(|| {
        let mut command = Command::new("java");
        command.arg("-cp").arg(&jar).arg(suite("WithJdbc.java"));
        command
    });
}
