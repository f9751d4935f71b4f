//! Conversations: what a client sends, and all that it is answered.

mod conflicts;
mod constraints;
mod explained;
mod extended;
mod loading;
mod placement;
mod repeated;
mod running;
mod simple;
mod start;
mod transactions;
mod views;
mod writers;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{Closed, Places, Stream, World, serve};
use crate::store::memory::Memory;
use crate::testing::{query, start};

/// A client that sends its bytes in pieces and keeps what it is answered.
struct Client {
    sends: Vec<Vec<u8>>,
    received: Vec<u8>,
    /// The longest write.
    longest: usize,
}

impl Stream for Client {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        if self.sends.is_empty() {
            return Ok(0);
        }
        let piece = self.sends.remove(0);
        buffer.extend(&piece);
        Ok(piece.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.longest = self.longest.max(bytes.len());
        self.received.extend(bytes);
        Ok(())
    }
}

/// A world whose clock goes a millisecond per pause.
struct Still {
    now_us: Cell<i64>,
    pauses: Cell<u64>,
    /// What a pause does.
    during: RefCell<Box<dyn FnMut()>>,
    store: Memory,
}

impl World for Still {
    type Store = Memory;

    fn store(&self) -> &Memory {
        &self.store
    }

    fn now_us(&self) -> i64 {
        self.now_us.get()
    }

    fn random(&self) -> u64 {
        0x0102_0304_0506_0708
    }

    async fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
        self.now_us.set(self.now_us.get() + 1_000);
        (self.during.borrow_mut())();
    }

    async fn sleep(&self, us: u64) {
        self.now_us.set(self.now_us.get() + i64::try_from(us).unwrap_or(0));
        (self.during.borrow_mut())();
    }
}

fn world() -> Still {
    world_over(Memory::default())
}

/// A world over a database that others may use as well.
fn world_over(store: Memory) -> Still {
    Still { now_us: Cell::new(0), pauses: Cell::new(0), during: RefCell::new(Box::new(|| ())), store }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing in these tests waits"),
    }
}

/// What a client is answered to pieces, from the first byte on.
fn served(sends: Vec<Vec<u8>>, world: &Still, places: &Arc<Places>) -> Client {
    let mut client = Client { sends, received: Vec::new(), longest: 0 };
    block_on(serve(&mut client, world, places));
    client
}

fn raw(sends: Vec<Vec<u8>>) -> Vec<u8> {
    served(sends, &world(), &Places::new(0, 4)).received
}

/// What a session is answered after its start.
fn talk(sends: &[Vec<u8>]) -> Vec<String> {
    let mut all = vec![start(0, &[("user", "u"), ("database", "d")])];
    all.extend_from_slice(sends);
    let answers = shown(&raw(all));
    let ready = answers.iter().position(|answer| answer == "Z I").expect("the session begins");
    answers[ready + 1..].to_vec()
}

/// What simple queries are answered in a world.
fn ask_in(world: &Still, places: &Arc<Places>, queries: &[&str]) -> Vec<String> {
    let mut sends = vec![start(0, &[("user", "u"), ("database", "d")])];
    sends.extend(queries.iter().map(|text| query(text)));
    let answers = shown(&served(sends, world, places).received);
    let ready = answers.iter().position(|answer| answer == "Z I").expect("the session begins");
    answers[ready + 1..].iter().filter(|answer| !answer.starts_with('Z')).cloned().collect()
}

/// What simple queries are answered.
fn ask(queries: &[&str]) -> Vec<String> {
    talk(&queries.iter().map(|text| query(text)).collect::<Vec<_>>())
}

/// Replies as text: the type, then what matters of the body.
fn shown(mut bytes: &[u8]) -> Vec<String> {
    let mut answers = Vec::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        let (length, _) = rest.split_first_chunk::<4>().expect("a length");
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("it is short");
        let body = &rest[4..length];
        bytes = &rest[length..];
        let text = |body: &[u8]| String::from_utf8_lossy(body).replace('\0', " ").trim().to_owned();
        let answer = match kind {
            b'T' => {
                let mut names = Vec::new();
                let mut rest = &body[2..];
                while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                    names.push(text(&rest[..end]));
                    rest = &rest[end + 19..];
                }
                format!("T {}", names.join(","))
            }
            b'D' => {
                let mut values = Vec::new();
                let mut rest = &body[2..];
                while let Some((length, after)) = rest.split_first_chunk::<4>() {
                    let length = i32::from_be_bytes(*length);
                    let value = &after[..usize::try_from(length).unwrap_or(0)];
                    values.push(if length < 0 { "NULL".to_owned() } else { text(value) });
                    rest = &after[value.len()..];
                }
                format!("D {}", values.join(","))
            }
            b'E' | b'N' => {
                let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
                let fields = fields.filter(|field| !b"SHD".contains(&field[0]));
                let fields: Vec<String> = fields.map(|field| text(&field[1..])).collect();
                format!("{} {}", char::from(kind), fields.join(" "))
            }
            b't' => format!(
                "t {}",
                body[2..]
                    .chunks(4)
                    .map(|oid| u32::from_be_bytes(oid.try_into().expect("four")).to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            kind => format!("{} {}", char::from(kind), text(body)).trim().to_owned(),
        };
        answers.push(answer);
    }
    answers
}

pub(super) const ABORTED: &str =
    "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block";
