//! Two servers side by side: sessions on threads of this process, and a real PostgreSQL, which is
//! the specification. Both listen on the loopback interface and end with the test.
//!
//! The clients are Debian's packages.

#![allow(dead_code)] // Every test binary uses its part.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // Clients have sockets and clocks.

pub mod postgres;

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, SystemTime};

use plimsoll_sql::session::{Closed, Places, Stream, World, serve};
use plimsoll_sql::store::memory::Memory;

/// Seconds from 1970 to 2000.
const EPOCH_S: u64 = 946_684_800;

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
struct Here(Memory);

impl World for Here {
    type Store = Memory;

    fn store(&self) -> &Memory {
        &self.0
    }

    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_S));
        i64::try_from(since.expect("it is after 2000").as_micros()).expect("it is before 292277")
    }

    fn random(&self) -> u64 {
        RandomState::new().hash_one(())
    }

    async fn pause(&self) {}

    async fn sleep(&self, us: u64) {
        thread::sleep(Duration::from_micros(us));
    }
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
    let database = Memory::default();
    let accept = move || {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            socket.set_nodelay(true).expect("a socket");
            let (places, here) = (Arc::clone(&places), Here(database.clone()));
            let session = move || block_on(serve(&mut Socket(socket), &here, &places));
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
