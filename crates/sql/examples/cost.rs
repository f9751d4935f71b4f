//! What a statement costs without a network: messages of a client come from memory, replies are
//! dropped.
#![allow(clippy::disallowed_methods)] // It measures.

#[path = "../src/testing.rs"]
#[allow(dead_code)]
mod testing;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use plimsoll_sql::session::{Closed, Places, Stream, World, serve};
use plimsoll_sql::store::memory::Memory as Database;

/// Statements per measurement.
const STATEMENTS: u32 = 20_000;

/// Measurements, of which the shortest counts: others use the machine too.
const MEASUREMENTS: u32 = 15;

/// A client that says something once and then the same again and again.
struct Memory {
    begin: Vec<u8>,
    again: Vec<u8>,
    left: u32,
}

impl Stream for Memory {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let bytes = match self.left {
            0 => return Ok(0),
            STATEMENTS => &self.begin,
            _ => &self.again,
        };
        self.left -= 1;
        buffer.extend(bytes);
        Ok(bytes.len())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        std::hint::black_box(bytes);
        Ok(())
    }
}

/// Nothing changes.
struct Still(Database);

impl World for Still {
    type Store = Database;

    fn store(&self) -> &Database {
        &self.0
    }

    fn now_us(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        0
    }

    async fn pause(&self) {}

    async fn sleep(&self, _us: u64) {}
}

fn main() {
    use testing::{bind, execute, message, parse, query, start, sync};
    let extended = |text: &str, parameters: &[Option<&[u8]>]| {
        [
            parse("", text, &[]),
            bind("", "", &[], parameters, &[]),
            message(b'D', b"P\0"),
            execute("", 0),
            sync(),
        ]
        .concat()
    };
    let prepared = |parameters: &[Option<&[u8]>]| {
        [bind("", "s", &[], parameters, &[]), message(b'D', b"P\0"), execute("", 0), sync()].concat()
    };
    let argument: &[Option<&[u8]>] = &[Some(b"41")];
    for (name, once, again) in [
        ("select 1, prepared", parse("s", "select 1", &[]), prepared(&[])),
        ("select $1::int + 1, prepared", parse("s", "select $1::int + 1", &[]), prepared(argument)),
        ("select 1, extended", Vec::new(), extended("select 1", &[])),
        ("select 1, simple", Vec::new(), query("select 1")),
    ] {
        let begin = [start(0, &[("user", "u")]), once].concat();
        let measure = |_| {
            let mut memory = Memory { begin: begin.clone(), again: again.clone(), left: STATEMENTS };
            let begun = Instant::now();
            let Poll::Ready(()) = pin!(serve(&mut memory, &Still(Database::default()), &Places::new(0, 1)))
                .poll(&mut Context::from_waker(Waker::noop()))
            else {
                unreachable!("nothing waits");
            };
            begun.elapsed().as_nanos() / u128::from(STATEMENTS)
        };
        let shortest = (0..MEASUREMENTS).map(measure).min().unwrap_or_default();
        println!("{name}: {shortest} ns");
    }
}
