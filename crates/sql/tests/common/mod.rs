//! Two servers side by side: sessions on threads of this process, and a real PostgreSQL, which is
//! the specification. Both listen on the loopback interface and end with the test.
//!
//! The clients are Debian's packages. PostgreSQL refuses to be root, so a root starts it as
//! `nobody`. Where it is not installed the tests say so and compare nothing.

#![allow(dead_code)] // Every test binary uses its part.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // Clients have sockets and clocks.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_sql::session::{Closed, Places, Stream, World, serve};

/// Seconds from 1970 to 2000.
const EPOCH_S: u64 = 946_684_800;

/// How long PostgreSQL may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of a connection that waits in its system calls.
struct Socket(TcpStream);

impl Stream for Socket {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let mut piece = [0; 16 << 10];
        let count = self.0.read(&mut piece).map_err(|_| Closed)?;
        buffer.extend(&piece[..count]);
        Ok(count)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.0.write_all(bytes).map_err(|_| Closed)
    }
}

/// The world of this process.
struct Here;

impl World for Here {
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_S));
        i64::try_from(since.expect("it is after 2000").as_micros()).expect("it is before 292277")
    }

    fn random(&self) -> u64 {
        RandomState::new().hash_one(())
    }

    async fn pause(&self) {}
}

/// Runs a future none of whose parts waits elsewhere than in a system call.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("sockets wait in their system calls"),
    }
}

/// Serves sessions, one thread each, for as long as this process lives. Says the port.
pub fn plimsoll() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let places = Places::new(0, 100);
    let accept = move || {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            let places = Arc::clone(&places);
            let session = move || block_on(serve(&mut Socket(socket), &Here, &places));
            thread::Builder::new().name("session".into()).spawn(session).expect("a thread");
        }
    };
    thread::Builder::new().name("listener".into()).spawn(accept).expect("a thread");
    port
}

/// Where a program of PostgreSQL is, if it is installed.
pub fn program(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    places.sort();
    places.push("/usr/bin".into());
    places.iter().map(|place| place.join(name)).find(|path| path.exists())
}

/// A PostgreSQL 15, until it is dropped.
pub struct Postgres {
    directory: tempfile::TempDir,
    process: Child,
    pub port: u16,
}

impl Postgres {
    /// Starts one. None if it is not installed: then the test says NOT RUN.
    pub fn start() -> Option<Postgres> {
        let (Some(initdb), Some(postgres)) = (program("initdb"), program("postgres")) else {
            eprintln!("NOT RUN: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("sql-").tempdir().expect("a directory");
        if is_root() {
            assert!(
                Command::new("chown").arg("nobody").arg(directory.path()).status().expect("chown").success()
            );
        }
        let data = directory.path().join("data");
        let as_nobody = |program: PathBuf| {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]);
            if is_root() {
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            }
            command.arg(program).arg("-D").arg(&data).current_dir(directory.path());
            command.env("TZ", "UTC").stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made = as_nobody(initdb)
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .status();
        assert!(made.expect("initdb").success());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.expect("a free port").port();
        let process = as_nobody(postgres)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-c", "shared_buffers=16MB", "-k"])
            .arg(directory.path())
            .spawn()
            .expect("the server starts");
        let mut server = Postgres { directory, process, port };
        let begun = Instant::now();
        while !psql(port, &["-c", "select 1"], "").status.success() {
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not answer");
            assert!(server.process.try_wait().expect("a process").is_none(), "PostgreSQL has ended");
            thread::sleep(Duration::from_millis(50));
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

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id");
    id.stdout.starts_with(b"0\n")
}

/// Runs psql against a port with a script as its input.
pub fn psql(port: u16, arguments: &[&str], script: &str) -> Output {
    let mut client = Command::new(program("psql").expect("psql is installed"))
        .args(["-X", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()])
        .args(arguments)
        .env("PGTZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql starts");
    let mut input = client.stdin.take().expect("an input");
    input.write_all(script.as_bytes()).unwrap_or_default();
    drop(input);
    client.wait_with_output().expect("psql ends")
}

/// What a process wrote, errors after the rest, with its port left out.
pub fn written(output: &Output, port: u16) -> String {
    let text = [output.stdout.as_slice(), b"--\n", output.stderr.as_slice()].concat();
    String::from_utf8(text).expect("UTF-8").replace(&port.to_string(), "PORT")
}

/// A connection that says what it likes.
pub struct Raw {
    socket: BufReader<TcpStream>,
}

impl Raw {
    pub fn connect(port: u16, start: &[u8]) -> Raw {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        let mut raw = Raw { socket: BufReader::new(socket) };
        raw.send(start);
        raw
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).expect("the server is there");
    }

    /// The next message: its type and its body; none at the end.
    pub fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.socket.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes"));
        let mut body = vec![0; usize::try_from(length).expect("it is short") - 4];
        self.socket.read_exact(&mut body).expect("a body");
        Some((head[0], body))
    }

    /// All messages up to and with the next ReadyForQuery.
    pub fn until_ready(&mut self) -> Vec<(u8, Vec<u8>)> {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|(kind, _)| *kind != b'Z') {
            messages.push(self.message().expect("the server answers"));
        }
        messages
    }
}
