//! Clients of PostgreSQL at a node.
#![expect(clippy::disallowed_types, reason = "a client of PostgreSQL has a socket of its own")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::scene::{free_ports, plimsoll, refused};
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
fn answer(connection: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut types, mut all) = (String::new(), Vec::new());
    while !types.ends_with('Z') {
        let mut head = [0; 5];
        connection.read_exact(&mut head).expect("the node answers");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        connection.read_exact(&mut body).expect("a message is whole");
        types.push(char::from(head[0]));
        all.append(&mut body);
    }
    (types, all)
}

fn ask(connection: &mut TcpStream, statement: &str) -> (String, Vec<u8>) {
    let mut message = vec![b'Q'];
    message.extend((statement.len() as u32 + 5).to_be_bytes());
    message.extend(statement.as_bytes());
    message.push(0);
    connection.write_all(&message).expect("the node reads");
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
    let connect = || TcpStream::connect(sql).ok();
    let mut connections = vec![until("the node listens", connect)];
    // More than there are shards, so that each has some.
    connections.extend((0..7).filter_map(|_| connect()));
    assert_eq!(connections.len(), 8);
    for connection in &mut connections {
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("it is a socket");
        let parameters = b"user\0me\0database\0db\0\0";
        connection.write_all(&(parameters.len() as u32 + 8).to_be_bytes()).expect("the node reads");
        connection.write_all(&(3u32 << 16).to_be_bytes()).expect("the node reads");
        connection.write_all(parameters).expect("the node reads");
        assert!(answer(connection).0.starts_with('R'), "the node asks for no password");
    }
    for connection in &mut connections {
        let (types, bytes) = ask(connection, "select 6 * 7 as answer, current_user");
        assert_eq!(types, "TDCZ");
        assert!(bytes.windows(2).any(|two| two == b"42") && bytes.windows(2).any(|two| two == b"me"));
        assert!(ask(connection, "select 1 / 0").0.ends_with("EZ"), "an error, and the session goes on");
        assert_eq!(ask(connection, "select 1; select * from entry").0, "TDCEZ", "no table is seen yet");
    }
    let outside = ["start", "--table", "entry", "--listen", other, "--sql", "0.0.0.0:5432"];
    assert!(refused(&outside).contains("it has to be a loopback address"));
}
