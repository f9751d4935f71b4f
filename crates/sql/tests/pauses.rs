//! A statement never holds its shard: it pauses wherever it is, and then others run, and it can be
//! cancelled. What it answers does not depend on where it pauses.

mod beside;

use std::io;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use beside::{ours, paused, statements};
use plimsoll_sql::session::{Closed, Places, Stream, World, serve};
use plimsoll_sql::store::memory::Memory;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// Statements of all shapes, whose answers take many rows.
const SHAPES: &[&str] = &[
    "select count(*), sum(x), min(x), max(x) from generate_series(1, 1000) x",
    "select x from generate_series(1, 300) x where x % 100 = 0",
    "select x, count(*) from generate_series(1, 300) a, lateral (select a % 7) b(x) group by x order by x",
    "select * from generate_series(1, 20) a, generate_series(1, 20) b where a * b = 100",
    "select * from generate_series(1, 20) a left join generate_series(5, 9) b on a = b * 2",
    "select * from generate_series(1, 5) a left join lateral generate_series(a, 3) b on b > 1",
    "select x from generate_series(1, 100) x order by x % 10 desc, x limit 7 offset 3",
    "select x % 5 from generate_series(1, 20) x order by 1 fetch first 6 rows with ties",
    "select distinct x % 7 from generate_series(1, 100) x order by 1",
    "select distinct on (x % 3) x % 3, x from generate_series(1, 20) x order by 1, 2 desc",
    "select x % 9 from generate_series(1, 99) x union select x from generate_series(5, 12) x order by 1",
    "select x % 9 from generate_series(1, 99) x intersect all select x / 2 from generate_series(5, 12) x",
    "select x % 9 from generate_series(1, 99) x except all select x / 2 from generate_series(5, 12) x",
    "select x % 9 from generate_series(1, 99) x except select x / 2 from generate_series(5, 12) x",
    "select string_agg(x::text, ',' order by x % 3, x desc), array_agg(distinct x % 4) \
     from generate_series(1, 30) x",
    "select x % 3, count(distinct x % 5), sum(x order by x) filter (where x > 4) \
     from generate_series(1, 60) x group by 1 order by 1",
    "select generate_series(1, 4), generate_series(1, 2), unnest(array['a', 'b', 'c'])",
    "select x, generate_series(1, x) from generate_series(0, 4) x",
    "select (select count(*) from generate_series(1, 500))",
    "select (select count(*) from generate_series(1, x)) from generate_series(1, 40) x",
    "select (select sum(y) from generate_series(1, x) y where y % 2 = (select x % 2)) \
     from generate_series(1, 12) x",
    "select x from generate_series(1, 30) x where exists (select from generate_series(1, 9) y where y = x)",
    "select x from generate_series(1, 30) x where x in (select y * 3 from generate_series(1, 9) y)",
    "select x from generate_series(1, 30) x where x > all (select y from generate_series(1, 25) y)",
    "select x from generate_series(1, 9) x where x not in (select y from generate_series(2, 8) y union all \
     select case when x = 1 then null::int end)",
    "select (select count(*) from generate_series(1, 5)) in (select (select y + 2) \
     from generate_series(x, x + 3) y) from generate_series(1, 9) x",
    "select array(select y from generate_series(1, x) y) from generate_series(0, 5) x",
    "select x, (select (select (select count(*) from generate_series(1, x)))) from generate_series(1, 9) x",
    "select random() = random(), (select count(*) from generate_series(1, 9)) + (select count(*) \
     from generate_series(1, 7))",
    "select case when (select true from generate_series(1, 5) limit 1) then x else 1 / (x - x) end \
     from generate_series(1, 3) x",
    "select (select y from generate_series(1, 2) y)",
    "select 1 / (x - 5), (select count(*) from generate_series(1, 9)) from generate_series(1, 9) x",
    "select x from generate_series(1, 9) x order by (select count(*) from generate_series(1, x)) desc",
    "select (select count(*) from generate_series(1, x)), count(*) from generate_series(1, 9) x group by 1 \
     order by 1",
    "select sum((select count(*) from generate_series(1, x))), max(x) filter (where x in \
     (select y from generate_series(1, 4) y)) from generate_series(1, 9) x",
    "select * from generate_series(1, (select max(y) from generate_series(1, 6) y)) x \
     limit (select count(*) from generate_series(1, 4))",
    "select * from generate_series(1, 6) a join generate_series(1, 6) b \
     on a = b and exists (select from generate_series(1, 3) c where c = a)",
    "values ((select count(*) from generate_series(1, 9))), ((select count(*) from generate_series(1, 4)))",
    "select generate_series(1, (select count(*) from generate_series(1, 3)))",
    "with a as (select x from generate_series(1, 20) x) select count(*) from a, a b where a.x < b.x",
    "select array[1, 2, 3] @> array(select y from generate_series(2, 3) y), \
     2 = any (array(select y from generate_series(1, 5) y))",
    "select upper(repeat('x', 3000)) || (select max(y) from generate_series(1, 20) y) || repeat('y', 5000)",
];

/// Statements that would run for hours.
const ENDLESS: &[&str] = &[
    "select count(*) from generate_series(1, 1000000000000)",
    "select generate_series(1, 1000000000000)",
    "select x from generate_series(1, 1000000000000) x where x < 0",
    "select x from generate_series(1, 1000000000000) x offset 1000000000000",
    "select count(*) from generate_series(1, 50000) a, generate_series(1, 50000) b, generate_series(1, 50000) c",
    "select a from generate_series(1, 50000) a join generate_series(1, 50000) b on a * b < 0",
    "select count(*) from generate_series(1, 1000000000) a, lateral generate_series(1, a) b",
    "select x % 7, count(*) from generate_series(1, 1000000000000) x group by 1",
    "select distinct x % 7 from generate_series(1, 1000000000000) x",
    "select x % 7 from generate_series(1, 1000000000000) x union select 3",
    "select 3 intersect select x from generate_series(1, 1000000000000) x",
    "select 3 except all select x from generate_series(1, 1000000000000) x",
    "select (select count(*) from generate_series(1, 1000000000000))",
    "select (select count(*) from generate_series(1, 1000000000) y where y > x) from generate_series(1, 9) x",
    "select exists (select from generate_series(1, 1000000000000) y where y < 0)",
    "select count(*) from generate_series(1, 1000000000) x where x < 0 or x not in (select 0)",
    "select sum((select max(y) from generate_series(1, x) y)) from generate_series(1, 1000000000) x",
    "select * from generate_series(1, (select count(*) from generate_series(1, 1000000000000)))",
];

#[test]
fn answers_do_not_depend_on_pauses() {
    let all = statements().into_iter().map(|(_, text)| text);
    let (mut statements, mut pauses) = (0, 0);
    for text in all.chain(SHAPES.iter().map(|text| (*text).to_owned())) {
        let expected = ours(&text);
        for units in [1, 2, 7] {
            let (outcome, count) = paused(&text, units);
            assert_eq!(outcome, expected, "{text}, with fuel for {units}");
            pauses += count;
        }
        statements += 1;
    }
    assert!(statements > 400 && pauses > 5_000, "{statements} statements, {pauses} pauses");
}

#[test]
fn every_shape_pauses() {
    let pauses = |text: &str| paused(text, 1).1;
    let few: Vec<_> = SHAPES.iter().filter(|text| pauses(text) < 2).map(|text| ours(text)).collect();
    assert!(few.is_empty(), "{few:?}");
}

/// The bytes of a connection.
struct Socket(TcpStream);

impl Stream for Socket {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Closed> {
        let mut piece = [0; 1 << 12];
        loop {
            self.0.readable().await.map_err(|_| Closed)?;
            match self.0.try_read(&mut piece) {
                Ok(count) => {
                    buffer.extend(&piece[..count]);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Closed),
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let mut written = 0;
        while written < bytes.len() {
            self.0.writable().await.map_err(|_| Closed)?;
            match self.0.try_write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Closed),
            }
        }
        Ok(())
    }
}

/// The world of a shard, whose tasks take turns.
struct Shard(Instant, Memory);

impl World for Shard {
    type Store = Memory;

    fn store(&self) -> &Memory {
        &self.1
    }

    fn now_us(&self) -> i64 {
        i64::try_from(self.0.elapsed().as_micros()).expect("it is short")
    }

    fn random(&self) -> u64 {
        4
    }

    async fn pause(&self) {
        tokio::task::yield_now().await;
    }

    async fn sleep(&self, us: u64) {
        tokio::time::sleep(Duration::from_micros(us)).await;
    }
}

/// Serves sessions as tasks of one thread. Says the port.
fn shard() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let accept = async move {
        let (places, begun) = (Places::new(0, 10), Instant::now());
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        loop {
            let (socket, _) = listener.accept().await.expect("a connection");
            let places = places.clone();
            tokio::task::spawn_local(async move {
                serve(&mut Socket(socket), &Shard(begun, Memory::default()), &places).await
            });
        }
    };
    let serve = move || runtime().block_on(LocalSet::new().run_until(accept));
    thread::Builder::new().name("shard".into()).spawn(serve).expect("a thread");
    port
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn session(port: u16) -> Client {
    let config = format!("host=127.0.0.1 port={port} user=u");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("a session");
    tokio::spawn(connection);
    client
}

/// Far longer than anything here takes, and far shorter than the statements would.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it does not take long")
}

#[test]
fn a_long_query_is_cancelled_while_another_session_goes_on() {
    let port = shard();
    runtime().block_on(async {
        let (busy, other) = (session(port).await, session(port).await);
        let cancel = busy.cancel_token();
        let running = tokio::spawn(async move {
            let error = busy.simple_query(ENDLESS[0]).await.expect_err("it is cancelled");
            (busy, error)
        });
        for _ in 0..100 {
            soon(other.simple_query("select 1")).await.expect("an answer");
        }
        assert!(!running.is_finished());
        soon(cancel.cancel_query(NoTls)).await.expect("a request");
        let (busy, error) = soon(running).await.expect("a task");
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        soon(busy.simple_query("select 1")).await.expect("the session goes on");
    });
}

#[test]
fn every_long_query_heeds_statement_timeout() {
    let port = shard();
    runtime().block_on(async {
        let client = session(port).await;
        soon(client.simple_query("set statement_timeout = 20")).await.expect("a setting");
        for text in ENDLESS {
            let error = soon(client.simple_query(text)).await.expect_err(text);
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{text}: {error}");
        }
    });
}

#[test]
fn many_short_statements_take_turns_with_others() {
    let port = shard();
    runtime().block_on(async {
        let (busy, other) = (session(port).await, session(port).await);
        let texts = "select repeat('x', 100000);".repeat(5_000);
        let running = tokio::spawn(async move { busy.simple_query(&texts).await.map(|rows| rows.len()) });
        let mut turns = 0;
        while !running.is_finished() {
            soon(other.simple_query("select 1")).await.expect("an answer");
            turns += 1;
        }
        assert!(soon(running).await.expect("a task").expect("answers") >= 10_000);
        assert!(turns > 2, "{turns}");
    });
}
