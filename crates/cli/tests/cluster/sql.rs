//! Clients of PostgreSQL at a node.
#![expect(clippy::disallowed_types, reason = "a client of PostgreSQL has a socket of its own")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use plimsoll::{Error, IndexKind, Key, Partitioning, TableSpec};

use crate::scene::{Scene, free_ports, plimsoll, refused};
use crate::waiting::until;

/// A node that is killed when the test ends.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads until the server is ready for the next statement. Returns the types of its messages and
/// the bytes of all of them.
fn answer(connection: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let (mut types, mut all) = (String::new(), Vec::new());
    while !types.ends_with('Z') {
        let mut head = [0; 5];
        connection.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        connection.read_exact(&mut body)?;
        types.push(char::from(head[0]));
        all.append(&mut body);
    }
    Ok((types, all))
}

/// A session with the node that listens there.
fn session(address: &str) -> TcpStream {
    until("the node listens", || try_session(address).ok())
}

fn try_session(address: &str) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(Duration::from_secs(60)))?;
    let parameters = b"user\0me\0database\0db\0\0";
    connection.write_all(&(parameters.len() as u32 + 8).to_be_bytes())?;
    connection.write_all(&(3u32 << 16).to_be_bytes())?;
    connection.write_all(parameters)?;
    assert!(answer(&mut connection)?.0.starts_with('R'), "the node asks for no password");
    Ok(connection)
}

/// What a statement answers: the values of all rows, what CommandComplete says, errors with their
/// state.
fn said(connection: &mut TcpStream, statement: &str) -> Vec<String> {
    try_said(connection, statement).expect("the node answers")
}

/// The same, of a node that may be killed.
fn try_said(connection: &mut TcpStream, statement: &str) -> io::Result<Vec<String>> {
    let (types, mut bytes) = try_ask(connection, statement)?;
    let mut said = Vec::new();
    for kind in types.chars() {
        // Messages are without their heads, so each has to be taken apart to find the next.
        let text = |bytes: &mut Vec<u8>| {
            let end = bytes.iter().position(|byte| *byte == 0).expect("a text ends");
            let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
            bytes.drain(..=end);
            text
        };
        match kind {
            'T' => {
                let columns = u16::from_be_bytes([bytes[0], bytes[1]]);
                bytes.drain(..2);
                for _ in 0..columns {
                    text(&mut bytes);
                    bytes.drain(..18);
                }
            }
            'D' => {
                let columns = u16::from_be_bytes([bytes[0], bytes[1]]);
                bytes.drain(..2);
                for _ in 0..columns {
                    let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    bytes.drain(..4);
                    let length = usize::try_from(length).unwrap_or(0);
                    said.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
                    bytes.drain(..length);
                }
            }
            'C' => said.push(text(&mut bytes)),
            'E' => {
                while bytes[0] != 0 {
                    let field = text(&mut bytes);
                    if let Some(state) = field.strip_prefix('C') {
                        said.push(state.to_owned());
                    }
                }
                bytes.drain(..1);
            }
            _ => {}
        }
    }
    Ok(said)
}

fn ask(connection: &mut TcpStream, statement: &str) -> (String, Vec<u8>) {
    try_ask(connection, statement).expect("the node answers")
}

fn try_ask(connection: &mut TcpStream, statement: &str) -> io::Result<(String, Vec<u8>)> {
    let mut message = vec![b'Q'];
    message.extend((statement.len() as u32 + 5).to_be_bytes());
    message.extend(statement.as_bytes());
    message.push(0);
    connection.write_all(&message)?;
    answer(connection)
}

#[test]
fn clients_of_postgresql_ask_the_shards_of_a_node() {
    let ports: Vec<String> = free_ports(4).iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let [listen, http, sql, other] = &ports[..] else { unreachable!("four were asked for") };
    let arguments = ["start", "--table", "entry", "--shards", "2"];
    let node = plimsoll(&arguments)
        .args(["--listen", listen, "--http", http, "--sql", sql])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let _node = Node(node);
    // More than there are shards, so that each has some.
    let mut connections: Vec<TcpStream> = (0..8).map(|_| session(sql)).collect();
    for connection in &mut connections {
        let (types, bytes) = ask(connection, "select 6 * 7 as answer, current_user");
        assert_eq!(types, "TDCZ");
        assert!(bytes.windows(2).any(|two| two == b"42") && bytes.windows(2).any(|two| two == b"me"));
        assert!(ask(connection, "select 1 / 0").0.ends_with("EZ"), "an error, and the session goes on");
        assert_eq!(
            ask(connection, "select 1; select * from entry").0,
            "TDCEZ",
            "a table of bytes is not seen"
        );
    }
    let outside = ["start", "--table", "entry", "--listen", other, "--sql", "0.0.0.0:5432"];
    assert!(refused(&outside).contains("it has to be a loopback address"));
    let without = refused(&["start", "--table", "entry", "--scheme", "none", "--sql", other]);
    assert!(without.contains("--sql: there is no SQL under occ/none"), "{without}");
    let taken = refused(&["start", "--table", "plimsoll.sql:hash", "--listen", other]);
    assert!(taken.contains("table \"plimsoll.sql\": names with a dot in them"), "{taken}");
}

#[test]
fn tables_are_made_at_one_node_used_at_all_and_there_after_all_were_killed() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 2, 1]).with_sql();
    (1..=3).for_each(|id| scene.start(id));
    let addresses: Vec<String> = scene.sql.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let [mut one, mut two, mut three] = [0, 1, 2].map(|node: usize| session(&addresses[node]));
    until("all are there", || scene.status().1.then_some(()));
    let made = "create table t (id int primary key, n int not null); \
                create table all_over (id int primary key, n int) with (replicated = true)";
    assert_eq!(said(&mut one, made), ["CREATE TABLE", "CREATE TABLE"]);
    assert_eq!(said(&mut two, "insert into t select g, 10 from generate_series(1, 100) g"), ["INSERT 0 100"]);
    assert_eq!(said(&mut three, "select count(*), sum(n) from t"), ["100", "1000", "SELECT 1"]);
    assert_eq!(said(&mut one, "insert into all_over values (1, 7)"), ["INSERT 0 1"]);
    assert_eq!(said(&mut three, "select n from all_over where id = 1"), ["7", "SELECT 1"]);
    // The sum of all rows stays the same while sessions at all nodes move amounts between them.
    std::thread::scope(|scope| {
        for (number, address) in addresses.iter().enumerate() {
            scope.spawn(move || {
                let mut session = session(address);
                for round in 0..40 {
                    let (from, to) = (1 + (number * 31 + round * 7) % 100, 1 + (number * 17 + round * 13 + 1) % 100);
                    let moves = format!(
                        "begin; update t set n = n - 1 where id = {from}; update t set n = n + 1 where id = {to}; commit"
                    );
                    let answer = said(&mut session, &moves);
                    let done = answer == ["BEGIN", "UPDATE 1", "UPDATE 1", "COMMIT"];
                    assert!(done || answer.last().map(String::as_str) == Some("40001"), "{answer:?}");
                    if !done {
                        // The block has failed, unless it was its COMMIT that did.
                        ask(&mut session, "rollback");
                    }
                    // A statement by itself is tried again by the server.
                    let alone = "update t set n = n + 0 where id = 1";
                    assert_eq!(said(&mut session, alone), ["UPDATE 1"]);
                }
            });
        }
    });
    assert_eq!(said(&mut two, "select sum(n), count(*) from t"), ["1000", "100", "SELECT 1"]);
    (1..=3).for_each(|id| scene.kill(id));
    (1..=3).for_each(|id| scene.start(id));
    let mut again = session(&addresses[1]);
    until("all are there again", || scene.status().1.then_some(()));
    assert_eq!(said(&mut again, "select sum(n), count(*) from t"), ["1000", "100", "SELECT 1"]);
    assert_eq!(said(&mut again, "select n from all_over"), ["7", "SELECT 1"]);
    assert_eq!(said(&mut again, "drop table t; select * from t"), ["DROP TABLE", "42P01"]);
    assert_eq!(said(&mut again, "drop table t"), ["DROP TABLE"], "the error took the first back");
}

/// Moves amounts between rows, with a note of each move, until it is told to stop. Returns the
/// moves that were acknowledged.
fn moves(address: &str, client: usize, stop: &AtomicBool) -> Vec<usize> {
    let mut done = Vec::new();
    let mut connection = None;
    for round in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        let Some(session) = &mut connection else {
            std::thread::sleep(Duration::from_millis(20));
            connection = try_session(address).ok();
            continue;
        };
        let (from, to) = ((client * 31 + round * 7) % 40, (client * 17 + round * 13 + 1) % 40);
        let statements = [
            "begin".to_owned(),
            format!("update account set n = n - 1 where id = {from}"),
            format!("update account set n = n + 1 where id = {to}"),
            format!("insert into move values ({client}, {round}, 'move {client} {round}')"),
            "commit".to_owned(),
        ];
        for statement in statements {
            match try_said(session, &statement) {
                Ok(said) if said == ["COMMIT"] => done.push(round),
                Ok(said) if ["BEGIN", "UPDATE 1", "INSERT 0 1"].contains(&said[0].as_str()) => {}
                // A conflict, a node that is gone, or one that does not serve yet.
                Ok(said) if ["40001", "40003", "57P03", "08006"].contains(&said[0].as_str()) => {
                    if try_said(session, "rollback").is_err() {
                        connection = None;
                    }
                    break;
                }
                Ok(said) => panic!("{statement}: {said:?}"),
                Err(_) => {
                    connection = None;
                    break;
                }
            }
        }
    }
    done
}

/// The session's last timestamp.
fn last_timestamp(connection: &mut TcpStream) -> u64 {
    let shown = said(connection, "show plimsoll.last_timestamp");
    shown[0].parse().expect("a number")
}

#[test]
fn a_session_that_only_reads_sees_the_past_if_it_allows_that_and_never_goes_back() {
    let mut scene = Scene::under("max_staleness_ms = 2000\n", &[2]).with_sql();
    scene.start(1);
    let sql = format!("127.0.0.1:{}", scene.sql[0]);
    let (mut writer, mut reader) = (session(&sql), session(&sql));
    said(&mut writer, "create table t (id int primary key, n int)");
    said(&mut writer, "insert into t values (1, 0)");
    std::thread::sleep(Duration::from_millis(2_100));

    let asked = ["set plimsoll.staleness = '2s'", "set default_transaction_read_only = on"];
    asked.iter().for_each(|setting| drop(said(&mut reader, setting)));
    let mut latest = 0;
    let number = |said: Vec<String>| said[0].parse::<i32>().expect("a number");
    let seen = until("a snapshot is old enough to miss a commit", || {
        latest += 1;
        said(&mut writer, &format!("update t set n = {latest}"));
        let before = last_timestamp(&mut reader);
        let seen = number(said(&mut reader, "select n from t"));
        assert!(last_timestamp(&mut reader) >= before, "what was read does not go back");
        (seen < latest).then_some(seen)
    });
    assert!(last_timestamp(&mut reader) < last_timestamp(&mut writer), "{seen} of {latest}");
    // What the session writes itself it sees, however old its snapshots may be.
    said(&mut reader, "begin read write; update t set n = -1; commit");
    assert_eq!(number(said(&mut reader, "select n from t")), -1);
    // A statement that may write reads what is newest.
    said(&mut writer, "update t set n = 7");
    said(&mut reader, "set default_transaction_read_only = off");
    assert_eq!(number(said(&mut reader, "select n from t")), 7);

    let refused = said(&mut reader, "set plimsoll.staleness = '2001ms'; begin read only; select n from t");
    assert!(refused.iter().any(|line| line.contains("22023")), "{refused:?}");
}

#[test]
fn tables_of_sql_and_those_that_clients_make_do_not_meet() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 1]).with_sql();
    (1..=2).for_each(|id| scene.start(id));
    let address = |scene: &Scene, node: usize| format!("127.0.0.1:{}", scene.sql[node]);
    let mut one = session(&address(&scene, 0));
    until("all are there", || scene.status().1.then_some(()));
    let before = "create table before (id int primary key); insert into before values (1), (2)";
    assert_eq!(said(&mut one, before), ["CREATE TABLE", "INSERT 0 2"]);
    let db = scene.connect();
    let spec = TableSpec::new("jobs", IndexKind::Ordered, Partitioning::Hash { bytes: 0 });
    let jobs = db.create_table(spec).unwrap();
    let write = |txn: &mut plimsoll::Txn<'_>| -> Result<(), Error> {
        (0..40).try_for_each(|key| txn.put(jobs, &Key::of_u64(key), b"a job"))
    };
    db.transact(write).unwrap();
    let after = "create table jobs (id int primary key); insert into jobs values (1), (2), (3)";
    assert_eq!(said(&mut one, after), ["CREATE TABLE", "INSERT 0 3"]);
    let count = "select count(*) from before; select count(*) from jobs";
    for round in 0..2 {
        let mut two = session(&address(&scene, 1));
        assert_eq!(said(&mut two, count), ["2", "SELECT 1", "3", "SELECT 1"], "round {round}");
        let rows = until("the client is connected", || db.transact(|txn| txn.scan(jobs, ..)).ok());
        assert!(
            rows.len() == 40 && rows.iter().all(|(_, value)| value == b"a job"),
            "round {round}: {rows:?}"
        );
        (1..=2).for_each(|id| scene.kill(id));
        (1..=2).for_each(|id| scene.start(id));
        until("all are there again", || scene.status().1.then_some(()));
    }
}

/// What was acknowledged outlives nodes that are killed, and indexes have what their tables have.
#[test]
fn indexed_tables_outlive_nodes_that_are_killed_under_sessions() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 2, 1]).with_sql();
    (1..=3).for_each(|id| scene.start(id));
    let addresses: Vec<String> = scene.sql.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut one = session(&addresses[0]);
    until("all are there", || scene.status().1.then_some(()));
    let made = "create table account (id int primary key, n int not null); create index by_n on account (n); \
                create table move (client int, round int, note text unique, primary key (client, round)); \
                insert into account select g, 100 from generate_series(0, 39) g";
    assert_eq!(said(&mut one, made), ["CREATE TABLE", "CREATE INDEX", "CREATE TABLE", "INSERT 0 40"]);
    drop(one);
    let stop = AtomicBool::new(false);
    let done: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let (stop, addresses) = (&stop, &addresses);
        let clients: Vec<_> =
            (0..6).map(|client| scope.spawn(move || moves(&addresses[client % 3], client, stop))).collect();
        for id in [2, 1, 3, 2] {
            std::thread::sleep(Duration::from_millis(700));
            scene.kill(id);
            std::thread::sleep(Duration::from_millis(200));
            scene.start(id);
            until("all are there again", || scene.status().1.then_some(()));
        }
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, SeqCst);
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    });
    let mut again = session(&addresses[1]);
    let sums = "select sum(n), count(*) from account";
    let whole = until("nothing is in doubt any more", || {
        let found = said(&mut again, sums);
        (found.len() == 3).then_some(found)
    });
    assert_eq!(whole, ["4000", "40", "SELECT 1"]);
    for (client, rounds) in done.iter().enumerate() {
        assert!(!rounds.is_empty(), "client {client} has done nothing");
        for round in rounds.iter().step_by(1 + rounds.len() / 50) {
            let note = format!("select round from move where note = 'move {client} {round}'");
            assert_eq!(said(&mut again, &note), [round.to_string(), "SELECT 1".to_owned()]);
        }
        let count = format!("select count(*) >= {} from move where client = {client}", rounds.len());
        assert_eq!(said(&mut again, &count), ["t", "SELECT 1"]);
    }
    let by_index = "select count(*) from (select n, count(*) as c from account group by n) g \
                    where c <> (select count(*) from account a where a.n = g.n)";
    assert_eq!(said(&mut again, by_index), ["0", "SELECT 1"]);
    let by_note = "select count(*) from move m where not exists \
                   (select from move o where o.note = m.note and o.round = m.round)";
    assert_eq!(said(&mut again, by_note), ["0", "SELECT 1"]);
}

/// Sends rows after a `COPY`, and the statements that follow in the same block. Returns what all of
/// it came to.
fn fill(connection: &mut TcpStream, copy: &str, rows: &str) -> Vec<String> {
    let mut message = vec![b'Q'];
    message.extend((copy.len() as u32 + 5).to_be_bytes());
    message.extend(copy.as_bytes());
    message.push(0);
    message.push(b'd');
    message.extend((rows.len() as u32 + 4).to_be_bytes());
    message.extend(rows.as_bytes());
    message.extend([b'c', 0, 0, 0, 4]);
    connection.write_all(&message).expect("the node listens");
    let (types, bytes) = answer(connection).expect("the node answers");
    let states = ["40001", "42P01", "25P02", "XX000"];
    let has = |text: &&str| bytes.windows(text.len()).any(|some| some == text.as_bytes());
    let failed = states.into_iter().filter(|state| types.contains('E') && has(state));
    failed.chain(types.contains('C').then_some("COPY")).map(str::to_owned).collect()
}

/// Keys that sessions add by themselves, and tables that others make, lie among the keys that a
/// block has found absent.
#[test]
fn blocks_make_and_fill_tables_while_others_make_more() {
    let mut scene = Scene::under("durability = \"sync\"\n", &[1, 2, 1]).with_sql();
    (1..=3).for_each(|id| scene.start(id));
    let addresses: Vec<String> = scene.sql.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut one = session(&addresses[0]);
    until("all are there", || scene.status().1.then_some(()));
    assert_eq!(said(&mut one, "create table old (a int primary key)"), ["CREATE TABLE"]);
    let rows: String = (0..20_000).map(|row| format!("{row}\t{}\n", row % 10)).collect();
    let stop = AtomicBool::new(false);
    let (rounds, made) = std::thread::scope(|scope| {
        let (stop, addresses, rows) = (&stop, &addresses, &rows);
        let makers: Vec<_> = (0..2)
            .map(|maker: usize| {
                scope.spawn(move || {
                    let (mut session, mut made) = (session(&addresses[maker + 1]), 0);
                    while !stop.load(SeqCst) {
                        let table = format!("made_{maker}_{made}");
                        let makes = format!(
                            "begin; create table {table} (a int primary key, b int unique); \
                             create table {table}_as as select 1 as a; commit"
                        );
                        let answer = said(&mut session, &makes);
                        assert_eq!(answer, ["BEGIN", "CREATE TABLE", "SELECT 1", "COMMIT"]);
                        assert_eq!(said(&mut session, &format!("drop table {table}_as")), ["DROP TABLE"]);
                        made += 1;
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    made
                })
            })
            .collect();
        let mut loads = 0;
        for round in 0..6 {
            let begun = [
                "begin".to_owned(),
                "select count(*) from old".to_owned(),
                format!("create table a_{round} (a int, b int)"),
                format!("create table b_{round} (a int primary key, b int)"),
                format!("create table c_{round} (a int primary key references b_{round})"),
                format!("insert into old values ({round})"),
            ];
            for statement in begun {
                let answer = said(&mut one, &statement);
                assert!(
                    answer.iter().all(|word| word.len() != 5 || word == "BEGIN"),
                    "{statement}: {answer:?}"
                );
            }
            assert_eq!(fill(&mut one, &format!("copy b_{round} from stdin"), rows), ["COPY"]);
            assert_eq!(said(&mut one, &format!("insert into c_{round} values (7)")), ["INSERT 0 1"]);
            assert_eq!(said(&mut one, "commit"), ["COMMIT"]);
            assert_eq!(said(&mut one, &format!("truncate c_{round}, b_{round}")), ["TRUNCATE TABLE"]);
            let again =
                [format!("begin; truncate c_{round}, b_{round}"), format!("copy b_{round} from stdin")];
            assert_eq!(said(&mut one, &again[0]), ["BEGIN", "TRUNCATE TABLE"]);
            assert_eq!(fill(&mut one, &again[1], rows), ["COPY"]);
            assert_eq!(said(&mut one, "commit"), ["COMMIT"]);
            let copied = format!("create table d_{round} as select * from b_{round}");
            assert_eq!(said(&mut one, &copied), ["SELECT 20000"]);
            assert_eq!(
                said(&mut one, &format!("alter table d_{round} add primary key (a)")),
                ["ALTER TABLE"]
            );
            loads += 1;
        }
        stop.store(true, SeqCst);
        (loads, makers.into_iter().map(|maker| maker.join().expect("it ends")).collect::<Vec<u32>>())
    });
    assert!(made.iter().all(|made| *made > 0), "{made:?}");
    let mut three = session(&addresses[2]);
    for round in 0..rounds {
        let sums =
            format!("select (select sum(b) from b_{round}), (select sum(b) from d_{round} where a >= 0)");
        assert_eq!(said(&mut three, &sums), ["90000", "90000", "SELECT 1"]);
    }
}

#[test]
fn sessions_of_different_nodes_wait_for_rows_that_they_lock() {
    let mut scene = Scene::new(&[1, 2, 1]).with_sql();
    // A node without clients of its own keeps queues as well.
    scene.sql.truncate(2);
    (1..=3).for_each(|id| scene.start(id));
    let addresses: Vec<String> = scene.sql.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let [mut one, mut two] = [0, 1].map(|node: usize| session(&addresses[node]));
    until("all are there", || scene.status().1.then_some(()));
    assert_eq!(said(&mut one, "create table t (id int primary key, n int not null)"), ["CREATE TABLE"]);
    assert_eq!(said(&mut one, "insert into t select g, 1 from generate_series(1, 12) g"), ["INSERT 0 12"]);
    assert_eq!(
        said(&mut one, "begin; select count(*) from (select 1 from t for update) l").pop().unwrap(),
        "SELECT 1"
    );
    for id in 1..=12 {
        let nowait = format!("select n from t where id = {id} for update nowait");
        assert_eq!(said(&mut two, &nowait), ["55P03"], "row {id}");
    }
    assert_eq!(said(&mut two, "select n from t for update skip locked"), ["SELECT 0"]);
    assert_eq!(
        said(&mut two, "set lock_timeout = 100; select n from t where id = 5 for update"),
        ["SET", "55P03"]
    );
    let (done, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let waits =
                "begin; select n from t where id = 5 for update; update t set n = n + 1 where id = 5; commit";
            done.send(said(&mut two, waits)).unwrap();
        });
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
        assert_eq!(said(&mut one, "update t set n = 7 where id = 5; commit"), ["UPDATE 1", "COMMIT"]);
        let answer = told.recv_timeout(Duration::from_secs(20)).expect("the row comes to it");
        assert_eq!(answer, ["BEGIN", "7", "SELECT 1", "UPDATE 1", "COMMIT"]);
    });
    assert_eq!(said(&mut one, "select n from t where id = 5"), ["8", "SELECT 1"]);
}

#[test]
fn two_that_wait_for_each_other_at_different_nodes_both_come_to_an_end() {
    let mut scene = Scene::new(&[1, 1, 1]).with_sql();
    (1..=3).for_each(|id| scene.start(id));
    let addresses: Vec<String> = scene.sql.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut first = session(&addresses[2]);
    until("all are there", || scene.status().1.then_some(()));
    assert_eq!(said(&mut first, "create table t (id int primary key, n int not null)"), ["CREATE TABLE"]);
    assert_eq!(said(&mut first, "insert into t select g, 0 from generate_series(1, 12) g"), ["INSERT 0 12"]);
    // Over many pairs of rows, whose keepers are each other's nodes, one of the two, and the third.
    for (a, b) in (1..12).map(|id| (id, id + 1)) {
        let both_have_one = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for (address, mine, other) in [(&addresses[0], a, b), (&addresses[1], b, a)] {
                let both_have_one = &both_have_one;
                scope.spawn(move || {
                    let mut session = session(address);
                    let lock = |id| format!("select id from t where id = {id} for update");
                    let found = |id: i32| [id.to_string(), "SELECT 1".to_owned()];
                    assert_eq!(said(&mut session, "begin"), ["BEGIN"]);
                    assert_eq!(said(&mut session, &lock(mine)), found(mine));
                    both_have_one.wait();
                    assert_eq!(said(&mut session, &lock(other)), found(other));
                    let adds = format!("update t set n = n + 1 where id in ({mine}, {other}); commit");
                    assert_eq!(said(&mut session, &adds), ["UPDATE 2", "COMMIT"]);
                });
            }
        });
    }
    assert_eq!(said(&mut first, "select sum(n) from t"), ["44", "SELECT 1"]);
}

#[test]
fn a_session_that_removes_rows_does_not_wait_for_its_own_locks() {
    let mut scene = Scene::under("protocol = \"two_pl\"\n", &[2]).with_sql();
    scene.start(1);
    let mut session = session(&format!("127.0.0.1:{}", scene.sql[0]));
    for table in ["a", "b"] {
        let made =
            format!("create table {table} (id int); insert into {table} select generate_series(1, 3000)");
        assert_eq!(said(&mut session, &made), ["CREATE TABLE", "INSERT 0 3000"]);
    }
    let drops = "begin; drop table a; commit; begin; drop table b";
    assert_eq!(said(&mut session, drops), ["BEGIN", "DROP TABLE", "COMMIT", "BEGIN", "DROP TABLE"]);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(said(&mut session, "commit"), ["COMMIT"]);
    assert_eq!(
        said(&mut session, "select count(*) from pg_class where relname in ('a', 'b')"),
        ["0", "SELECT 1"]
    );
}
