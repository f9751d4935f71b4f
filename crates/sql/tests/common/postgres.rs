//! A real PostgreSQL 15, which is the specification. It listens on the loopback interface and ends
//! with the test.
//!
//! PostgreSQL refuses to be root, so a root starts it as `nobody`. Where it is not installed the
//! tests say so and compare nothing.

#![allow(clippy::disallowed_types)] // Whether the server answers is asked over a socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long PostgreSQL may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a session of the user `postgres` begins.
const STARTUP: &[u8] = b"\0\0\0\x17\0\x03\0\0user\0postgres\0\0";

/// A PostgreSQL, until it is dropped.
pub struct Postgres {
    directory: tempfile::TempDir,
    process: Child,
    pub port: u16,
}

impl Postgres {
    /// Starts one. None if it is not installed: then the test says NOT RUN.
    pub fn start() -> Option<Postgres> {
        let programs = PathBuf::from("/usr/lib/postgresql/15/bin");
        if !programs.join("initdb").exists() {
            eprintln!("NOT RUN: PostgreSQL 15 is not installed (apt-get install postgresql-15)");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("sql-").tempdir().expect("a directory");
        if is_root() {
            let owned = Command::new("chown").arg("nobody").arg(directory.path()).status();
            assert!(owned.expect("chown").success());
        }
        let as_nobody = |program: &str| {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]);
            if is_root() {
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            }
            command.arg(programs.join(program)).arg("-D").arg(directory.path().join("data"));
            command.current_dir(directory.path()).env("TZ", "UTC");
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made = as_nobody("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .status();
        assert!(made.expect("initdb").success());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.expect("a free port").port();
        let process = as_nobody("postgres")
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-c", "timezone=UTC"])
            .args(["-c", "max_stack_depth=2MB", "-c", "shared_buffers=16MB", "-k"])
            .arg(directory.path())
            .spawn()
            .expect("the server starts");
        let mut server = Postgres { directory, process, port };
        let begun = Instant::now();
        while !answers(port) {
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not answer");
            assert!(server.process.try_wait().expect("a process").is_none(), "PostgreSQL has ended");
            thread::sleep(Duration::from_millis(50));
        }
        // It has the schema that the database under test has besides PostgreSQL's.
        for database in ["template1", "postgres"] {
            let schema = "create schema plimsoll; grant usage on schema plimsoll to public";
            let made = Command::new(programs.join("psql"))
                .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres", "-d", database])
                .args(["-qc", schema])
                .status();
            assert!(made.expect("psql").success());
        }
        Some(server)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the server lets a session begin.
fn answers(port: u16) -> bool {
    let mut reply = [0];
    TcpStream::connect(("127.0.0.1", port))
        .and_then(|mut socket| socket.write_all(STARTUP).and_then(|()| socket.read_exact(&mut reply)))
        .is_ok_and(|()| reply == *b"R")
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    id.stdout.starts_with(b"0\n")
}
