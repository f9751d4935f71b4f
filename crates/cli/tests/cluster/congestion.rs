//! Clients that have much on its way: to a node that does not take it, or in many transactions at a
//! time.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll::{Cluster, Database, Error, Key, Options, ShardId, TableId};
use plimsoll_engine::Engine;

const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster of one node of one shard, which is in this process.
fn node() -> (Cluster, Engine) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    let text = format!(
        "cluster = \"one\"\nclients = 1\n\
         [[node]]\nid = 1\naddress = \"{address}\"\nshards = 1\n\
         [[table]]\nname = \"entry\"\n"
    );
    let cluster = Cluster::parse(&text).expect("it is a cluster");
    let engine = Engine::join(&cluster, 1, listener, None, None, None).expect("it starts");
    (cluster, engine)
}

/// A client that loses patience soon, though not before it is connected.
fn impatient(cluster: &Cluster, patience: Duration) -> Database {
    let begun = Instant::now();
    loop {
        match Database::connect(cluster, Options { patience, ..Options::default() }) {
            Ok(db) => return db,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    }
}

#[test]
fn a_client_begins_nothing_new_while_much_waits_for_a_node() {
    let (cluster, node) = node();
    let db = impatient(&cluster, Duration::from_millis(200));
    let table = db.table("entry").expect("there is one");
    let (release, held) = std::sync::mpsc::channel::<()>();
    node.spawn_on(ShardId(0), move |_| async move {
        let _ = held.recv();
    });
    let much = vec![0; 7 << 20];
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            db.transact(|txn| (0..4).try_for_each(|number| txn.put(table, &Key::of_u64(number), &much)))
        });
        let begun = Instant::now();
        let nothing = || db.transact(|_| Ok::<(), Error>(()));
        while !matches!(nothing(), Err(Error::Congested { .. })) {
            assert!(begun.elapsed() < PATIENCE, "it is never told that much waits");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(release);
        while nothing().is_err() {
            assert!(begun.elapsed() < PATIENCE, "the node takes what has waited");
        }
        assert!(matches!(writes.join().expect("it ends"), Ok(()) | Err(Error::InDoubt { .. })));
    });
}

#[test]
fn of_transactions_that_write_much_a_client_runs_a_few_at_a_time() {
    /// Begins so many, each in a thread of its own while those before it are under way.
    fn at_once(db: &Database, table: TableId, count: u64) -> Result<(), Error> {
        let next = || match count {
            1 => db.transact(|txn| txn.put(table, &Key::of_u64(0), b"little")),
            _ => at_once(db, table, count - 1),
        };
        db.transact(|txn| {
            txn.put(table, &Key::of_u64(count), &vec![0; 1 << 20])?;
            std::thread::scope(|scope| scope.spawn(next).join().expect("it ends"))
        })
    }
    let (cluster, _node) = node();
    let db = impatient(&cluster, Duration::from_secs(2));
    let table = db.table("entry").expect("there is one");
    assert_eq!(at_once(&db, table, 8), Ok(()));
    let refused = at_once(&db, table, 9);
    assert!(matches!(refused, Err(Error::Congested { .. })), "{refused:?}");
    assert_eq!(at_once(&db, table, 8), Ok(()), "all turns were given back");
}
