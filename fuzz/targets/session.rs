//! A session of SQL over a database in memory, and any bytes from its client after it has logged
//! in: messages, statements, rows of `COPY`. Nothing panics, and what the session answers is whole
//! messages.
//!
//! The first byte says whether what follows is one statement in text, which gets further than raw
//! messages do, or messages as they are.
#![no_main]

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use plimsoll_sql::session::{Closed, Places, Stream, World, serve};
use plimsoll_sql::store::memory::Memory;

struct Client<'a> {
    sends: &'a [&'a [u8]],
    received: Vec<u8>,
}

impl Stream for Client<'_> {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let Some((piece, rest)) = self.sends.split_first() else { return Ok(0) };
        self.sends = rest;
        buffer.extend(*piece);
        Ok(piece.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.received.extend(bytes);
        Ok(())
    }
}

/// A world whose clock goes a hundred milliseconds per pause, so that nothing runs for long.
struct Hurried {
    now_us: Cell<i64>,
    store: Memory,
}

impl World for Hurried {
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
        self.now_us.set(self.now_us.get() + 100_000);
    }

    async fn sleep(&self, us: u64) {
        self.now_us.set(self.now_us.get().saturating_add_unsigned(us));
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("inputs are short");
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

/// Logs in, for statements of two seconds at most.
static START: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let parameters = b"user\0u\0database\0d\0options\0-c statement_timeout=2000\0\0";
    let length = u32::try_from(parameters.len() + 8).expect("it is short");
    [&length.to_be_bytes()[..], &(3u32 << 16).to_be_bytes(), parameters].concat()
});

const TABLES: &[u8] = b"create table t (id int primary key, a text, b numeric, c timestamptz unique); \
    insert into t values (1, 'one', 1.5, '2024-02-29'), (2, null, null, null); \
    create table u (id serial primary key, t int references t, v int[] default '{1,2}')\0";

/// A database with some tables.
static DATABASE: LazyLock<Memory> = LazyLock::new(|| {
    let memory = Memory::default();
    talk(&memory, &[&START, &message(b'Q', TABLES)]);
    memory
});

fn talk(memory: &Memory, sends: &[&[u8]]) {
    let world = Hurried { now_us: Cell::new(0), store: memory.clone() };
    let mut client = Client { sends, received: Vec::new() };
    let places: Arc<Places> = Places::new(0, 4);
    let ended = {
        let mut session = pin!(serve(&mut client, &world, &places));
        session.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    assert!(ended == Poll::Ready(()), "nothing here waits for anybody");
    let mut rest = &client.received[..];
    while let Some((_, after)) = rest.split_first() {
        let (length, _) = after.split_first_chunk().expect("a message has a length");
        let length = u32::from_be_bytes(*length) as usize;
        rest = after.get(length..).expect("a message is whole");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    // What the input has changed is there for none after it.
    let memory = DATABASE.copied();
    match kind % 2 {
        0 => {
            let text: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).chain([0]).collect();
            talk(&memory, &[&START, &message(b'Q', &text)]);
        }
        _ => talk(&memory, &[&START, bytes]),
    }
});
