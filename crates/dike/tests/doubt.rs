//! COMMITs in doubt: the server has committed, and the client is told something else, or nothing.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use common::{Server, all_hold, block_on, connector, errors, never, ran};
use plimsoll_dike::config::Config;
use plimsoll_dike::function::{Tested, Verdict, deadlock, isolation, render, snapshot};
use plimsoll_dike::target::Isolation;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of the answer to a COMMIT that the server has done.
#[derive(Clone, Copy)]
enum Fate {
    /// The client gets an error with this SQLSTATE instead.
    Told(&'static str),
    /// The connection breaks.
    Cut,
}

/// A proxy before a PostgreSQL, and its address. Of every `of` answers to COMMIT one has this fate.
async fn proxy(server: u16, fate: Fate, of: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens").to_string();
    let commits = Arc::new(AtomicU64::new(0));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
            // Messages are passed on one by one, and must not wait for each other.
            for socket in [&client, &server] {
                socket.set_nodelay(true).expect("a socket");
            }
            let ((mut from_client, to_client), (from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            let commits = commits.clone();
            tokio::spawn(async move {
                tokio::select! {
                    _ = copy(&mut from_client, &mut to_server) => {}
                    _ = answers(from_server, to_client, fate, of, &commits) => {}
                }
            });
        }
    });
    address
}

/// Passes on what a server says, but for some answers to COMMIT.
async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    fate: Fate,
    of: u64,
    commits: &AtomicU64,
) -> std::io::Result<()> {
    loop {
        // A letter, and how long the rest is, the length included.
        let mut message = vec![0; 5];
        server.read_exact(&mut message).await?;
        let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]) as usize;
        message.resize(1 + length, 0);
        server.read_exact(&mut message[5..]).await?;
        let committed = message[0] == b'C' && &message[5..] == b"COMMIT\0";
        if committed && commits.fetch_add(1, Relaxed) % of == of - 1 {
            let Fate::Told(code) = fate else { return Ok(()) };
            let fields = format!("SERROR\0VERROR\0C{code}\0Mthe proxy says so\0\0");
            message = vec![b'E'];
            message.extend((fields.len() as u32 + 4).to_be_bytes());
            message.extend(fields.as_bytes());
        }
        client.write_all(&message).await?;
    }
}

/// A loaded database of four warehouses.
async fn loaded(server: &Server) -> Config {
    let mut config = server.config(4);
    config.target.isolation = Isolation::RepeatableRead;
    common::loaded(&config).await;
    config
}

/// The same database through a proxy.
async fn through(server: &Server, config: &Config, fate: Fate, of: u64) -> Config {
    let mut config = config.clone();
    config.target.endpoints = vec![proxy(server.port, fate, of).await];
    config
}

fn show(tested: &Tested) {
    println!("{}", render(std::slice::from_ref(tested)));
}

#[test]
fn a_commit_whose_completion_is_unknown_is_in_doubt_and_not_repeated() {
    let server = Server::postgres();
    block_on(async {
        let direct = loaded(&server).await;
        let mut config = through(&server, &direct, Fate::Told("40003"), 50).await;
        let (tested, _) = isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        show(&tested);
        assert_eq!(tested.verdict, Verdict::Passed, "{tested:?}");
        assert!(tested.figures["in_doubt"] > 0.0, "{tested:?}");

        // Alone it has no conflicts: whatever is tried again was in doubt.
        config.run.terminals = 1;
        let run = ran(&config).await;
        let failed = errors(&run);
        assert!(matches!(failed[..], [("in_doubt", 1..)]), "{failed:?}");
        assert_eq!(run.sum(&run.retries), 0);
        all_hold(&direct).await;
    });
}

#[test]
fn a_commit_that_is_said_to_have_aborted_must_have_left_nothing() {
    let server = Server::postgres();
    block_on(async {
        let config = through(&server, &loaded(&server).await, Fate::Told("40001"), 50).await;
        let (tested, _) = isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        show(&tested);
        assert_eq!(tested.verdict, Verdict::Failed, "{tested:?}");
        assert!(tested.details.iter().any(|detail| detail.contains("(G1a)")), "{tested:?}");
    });
}

#[test]
fn an_outage_is_no_verdict() {
    let server = Server::postgres();
    block_on(async {
        let direct = loaded(&server).await;
        let config = through(&server, &direct, Fate::Cut, 50).await;
        let (isolation, _) = isolation::test(&config, &connector(&config), &never()).await.expect("tested");
        let snapshot = snapshot::test(&config, &connector(&config), &never()).await.expect("tested");
        // This one commits less often.
        let config = through(&server, &direct, Fate::Cut, 5).await;
        let deadlock = deadlock::test(&config, &connector(&config), &never()).await.expect("tested");
        for tested in [isolation, snapshot, deadlock] {
            show(&tested);
            assert_eq!(tested.verdict, Verdict::Passed, "{tested:?}");
            assert!(tested.figures["outages"] > 0.0, "{tested:?}");
        }
        // What they have changed is as it was.
        all_hold(&direct).await;
    });
}

#[test]
fn a_database_that_goes_away_and_comes_back_is_judged_by_what_was_seen() {
    let mut server = Server::postgres();
    block_on(async {
        let mut config = loaded(&server).await;
        config.test.duration_s = 3.0;
        let connector = connector(&config);
        let stop = never();
        let (isolation, snapshot, ()) = tokio::join!(
            isolation::test(&config, &connector, &stop),
            snapshot::test(&config, &connector, &stop),
            async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                server.kill();
                server.start_again();
            }
        );
        for tested in [isolation.expect("tested").0, snapshot.expect("tested")] {
            show(&tested);
            assert_eq!(tested.verdict, Verdict::Passed, "{tested:?}");
            assert!(tested.figures["outages"] > 0.0, "{tested:?}");
        }
        all_hold(&config).await;
    });
}
