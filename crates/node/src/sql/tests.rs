//! Transactions of sessions on the shards of nodes in this process.

use std::future::{Future, poll_fn};
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use plimsoll_engine::{Cluster, Engine};
use plimsoll_sessions::{NodeStore, ShardStore};
use plimsoll_sql::catalog::{Column, Placement, Table};
use plimsoll_sql::encoding::key;
use plimsoll_sql::store::{Asked, Failure, Pair, Purpose, Range, Space, Store};
use plimsoll_sql::types::{Datum, Oid};
use plimsoll_txn::any_shard::AnyShard;
use plimsoll_types::{Key, Partitioning, RangePlace, ShardId};

use super::node_store;

/// How long the tests wait for what comes soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster of nodes, each with the given number of shards, that are connected to each other.
fn nodes(protocol: &str, count: usize, shards: usize) -> (Cluster, Vec<Engine>) {
    let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let listeners: Vec<TcpListener> = (0..count).map(bind).collect();
    let mut text = format!("cluster = \"sessions\"\nprotocol = \"{protocol}\"\n");
    for (number, listener) in (1..).zip(&listeners) {
        let address = listener.local_addr().expect("it listens");
        text += &format!("[[node]]\nid = {number}\naddress = \"{address}\"\nshards = {shards}\n");
    }
    let cluster = Cluster::parse(&text).expect("it is a cluster");
    let join =
        |(node, listener)| Engine::join(&cluster, node, listener, None, None, None).expect("it starts");
    let engines: Vec<Engine> = (1..).zip(listeners).map(join).collect();
    engines.iter().for_each(|engine| engine.wait_for_others(PATIENCE).expect("all are there"));
    (cluster, engines)
}

/// A node that is a cluster by itself, with what its stores have in common.
fn alone(protocol: &str, shards: usize) -> (Engine, Arc<NodeStore>) {
    let (cluster, mut engines) = nodes(protocol, 1, shards);
    let engine = engines.pop().expect("there is one node");
    let store = node_store(&engine, &cluster).expect("the pair has SQL");
    (engine, store)
}

/// Has a session do something on a shard.
fn on<T: Send + 'static, F: Future<Output = T> + 'static>(
    engine: &Engine,
    node: &Arc<NodeStore>,
    shard: u16,
    session: impl FnOnce(ShardStore) -> F + Send + 'static,
) -> T {
    let node = node.clone();
    engine.run_on(ShardId(shard), move |shard| session(ShardStore::new(shard, node)))
}

/// A key of a table whose rows live together if they have the same first number.
fn row(first: u32, second: u32) -> Vec<u8> {
    Key::build().u32(100).u8(4).u32(first).u32(second).finish().to_bytes()
}

/// All rows of a range.
async fn all(
    store: &ShardStore,
    transaction: &mut <ShardStore as Store>::Transaction,
    range: Range,
) -> Result<Vec<Pair>, Failure> {
    let (mut pairs, mut rest) = (Vec::new(), Some(range));
    while let Some(range) = rest {
        let (some, more) = store.scan(transaction, range, usize::MAX).await?;
        pairs.extend(some);
        rest = more;
    }
    Ok(pairs)
}

/// Writes a row in a transaction of its own.
async fn write(store: &ShardStore, key: &[u8], value: &[u8]) -> Result<(), Failure> {
    let mut transaction = store.begin(Purpose::Write).await?;
    store.put(&mut transaction, Space::Parted, key, Some(value)).await?;
    store.commit(transaction).await.map(drop)
}

fn state(failure: &Failure) -> String {
    match failure {
        Failure::Conflict(why) => format!("conflict: {why}"),
        Failure::Error(error) => error.state.as_str().to_owned(),
    }
}

/// Waits until nothing is locked, open or registered on a shard.
fn wait_until_idle(engine: &Engine, shard: u16) {
    let begun = Instant::now();
    // A snapshot is heard of once it is a millisecond old.
    std::thread::sleep(Duration::from_millis(5));
    loop {
        let status = engine.status(ShardId(shard));
        if status.locks == 0 && status.remembered == 0 && status.oldest_snapshot.is_none() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "something was left behind: {status:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_a_session_commits_others_see_on_every_shard() {
    for protocol in ["occ", "two_pl"] {
        let (engine, node) = alone(protocol, 2);
        let written = on(&engine, &node, 0, |store| async move {
            let mut transaction = store.begin(Purpose::Write).await?;
            for (first, second) in (0..4u32).flat_map(|first| (0..300).map(move |second| (first, second))) {
                let value = (first + second).to_be_bytes();
                store.put(&mut transaction, Space::Parted, &row(first, second), Some(&value)).await?;
            }
            store.put(&mut transaction, Space::Parted, &row(2, 7), None).await?;
            store.put(&mut transaction, Space::Copied, b"name", Some(b"everywhere")).await?;
            let own = store.get(&mut transaction, Space::Copied, &[b"name".to_vec()]).await?;
            store.commit(transaction).await?;
            Ok::<_, Failure>(own)
        });
        assert_eq!(written, Ok(vec![Some(b"everywhere".to_vec())]), "{protocol}");
        for (shard, purpose) in [(0, Purpose::NEWEST), (1, Purpose::NEWEST), (1, Purpose::Write)] {
            let seen = on(&engine, &node, shard, move |store| async move {
                let mut transaction = store.begin(purpose).await?;
                let copied =
                    store.get(&mut transaction, Space::Copied, &[b"name".to_vec(), b"no".to_vec()]).await?;
                assert_eq!(copied, [Some(b"everywhere".to_vec()), None]);
                let keys = [row(3, 5), row(2, 7), row(0, 0)];
                let values = store.get(&mut transaction, Space::Parted, &keys).await?;
                assert_eq!(values, [Some(8u32.to_be_bytes().to_vec()), None, Some(vec![0; 4])]);
                let (low, high) = (row(1, 10), Some(row(3, 0)));
                let range = Range { space: Space::Parted, low, high, reverse: false };
                let up = all(&store, &mut transaction, range.clone()).await?;
                let mut down =
                    all(&store, &mut transaction, Range { reverse: true, ..range.clone() }).await?;
                down.reverse();
                assert_eq!(up, down);
                let none = all(&store, &mut transaction, Range { high: Some(row(0, 1)), ..range }).await?;
                assert!(none.is_empty(), "it ends before it begins");
                store.commit(transaction).await?;
                Ok::<_, Failure>(up.into_iter().map(|(key, _)| key).collect::<Vec<_>>())
            });
            let rows = (1..3).flat_map(|first| (0..300).map(move |second| (first, second)));
            let rows = rows.filter(|&row| row != (2, 7) && row >= (1, 10));
            assert_eq!(seen, Ok(rows.map(|(first, second)| row(first, second)).collect()), "{protocol}");
        }
        (0..2).for_each(|shard| wait_until_idle(&engine, shard));
    }
}

#[test]
fn of_two_that_change_what_both_have_read_one_meets_a_conflict() {
    let (engine, node) = alone("occ", 1);
    let outcome = on(&engine, &node, 0, |store| async move {
        write(&store, &row(1, 1), b"old").await?;
        let (mut one, mut other) = (store.begin(Purpose::Write).await?, store.begin(Purpose::Write).await?);
        let mut reader = store.begin(Purpose::NEWEST).await?;
        for transaction in [&mut one, &mut other] {
            store.get(transaction, Space::Parted, &[row(1, 1)]).await?;
            store.put(transaction, Space::Parted, &row(1, 1), Some(b"new")).await?;
        }
        store.commit(one).await?;
        let lost = store.commit(other).await.expect_err("it has read what was changed");
        let read = store.get(&mut reader, Space::Parted, &[row(1, 1)]).await?;
        assert_eq!(read, [Some(b"old".to_vec())], "a snapshot does not change");
        let refused = store.put(&mut reader, Space::Parted, &row(1, 1), None).await;
        let refused = refused.expect_err("it only reads");
        store.rollback(reader).await;
        Ok::<_, Failure>((lost, state(&refused)))
    });
    let (lost, refused) = outcome.expect("nothing else is in the way");
    assert!(matches!(lost, Failure::Conflict(_)), "{lost:?}");
    assert_eq!(refused, "25006");
    wait_until_idle(&engine, 0);
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing_behind() {
    for protocol in ["occ", "two_pl"] {
        let (engine, node) = alone(protocol, 2);
        let written = on(&engine, &node, 0, |store| async move { write(&store, &row(1, 1), b"old").await });
        assert_eq!(written, Ok(()));
        for _ in 0..3 {
            let dropped = on(&engine, &node, 0, |store| async move {
                let mut transaction = store.begin(Purpose::Write).await?;
                store.get(&mut transaction, Space::Parted, &[row(1, 1), row(2, 1)]).await?;
                store.put(&mut transaction, Space::Parted, &row(1, 1), Some(b"lost")).await?;
                store.put(&mut transaction, Space::Copied, b"name", Some(b"lost")).await?;
                drop(transaction);
                drop(store.begin(Purpose::NEWEST).await?);
                Ok::<_, Failure>(())
            });
            assert_eq!(dropped, Ok(()), "nobody is in the way");
            (0..2).for_each(|shard| wait_until_idle(&engine, shard));
        }
        let read = on(&engine, &node, 1, |store| async move {
            write(&store, &row(2, 1), b"new").await?;
            let mut transaction = store.begin(Purpose::NEWEST).await?;
            store.get(&mut transaction, Space::Parted, &[row(1, 1), row(2, 1)]).await
        });
        assert_eq!(read, Ok(vec![Some(b"old".to_vec()), Some(b"new".to_vec())]), "{protocol}");
    }
}

#[test]
fn what_reads_ask_of_shards_is_counted() {
    for protocol in ["occ", "two_pl"] {
        let (engine, node) = alone(protocol, 2);
        let counted = on(&engine, &node, 0, |store| async move {
            let mut transaction = store.begin(Purpose::Write).await?;
            let before = store.counted(&mut transaction);
            store.count(&mut transaction);
            let keys: Vec<Vec<u8>> = (0..64).map(|first| row(first, 0)).collect();
            store.get(&mut transaction, Space::Parted, &keys).await?;
            // What was read once is not asked for again.
            store.get(&mut transaction, Space::Parted, &keys[..2]).await?;
            let after = store.counted(&mut transaction);
            store.rollback(transaction).await;
            Ok::<_, Failure>((before, after))
        });
        let asked = Asked { shards: 2, requests: 1 };
        assert_eq!(counted, Ok((None, Some(asked))), "{protocol}");
    }
}

#[test]
fn an_operation_that_is_dropped_ends_and_its_transaction_is_rolled_back() {
    let (engine, node) = alone("two_pl", 2);
    on(&engine, &node, 0, |store| async move {
        let (mut older, mut younger) =
            (store.begin(Purpose::Write).await?, store.begin(Purpose::Write).await?);
        for first in 0..4 {
            store.put(&mut younger, Space::Parted, &row(first, 0), Some(b"younger")).await?;
        }
        {
            let keys: Vec<Vec<u8>> = (0..4).map(|first| row(first, 0)).collect();
            let mut read = pin!(store.get(&mut older, Space::Parted, &keys));
            let polled = poll_fn(|context| Poll::Ready(read.as_mut().poll(context).is_ready())).await;
            assert!(!polled, "the older one waits for locks of the younger one");
        }
        let over = store.get(&mut older, Space::Parted, &[row(9, 9)]).await;
        assert_eq!(over.as_ref().map_err(state), Err("25P02".to_owned()));
        drop(older);
        store.commit(younger).await
    })
    .expect("the older one only reads");
    (0..2).for_each(|shard| wait_until_idle(&engine, shard));
    let written = on(&engine, &node, 1, |store| async move { write(&store, &row(1, 0), b"next").await });
    assert_eq!(written, Ok(()));
}

#[test]
fn what_a_transaction_writes_is_limited() {
    let (cluster, engines) = nodes("occ", 2, 1);
    let node = node_store(&engines[0], &cluster).expect("the pair has SQL");
    let failures = on(&engines[0], &node, 0, |store| async move {
        let mut transaction = store.begin(Purpose::Write).await?;
        let long = store.put(&mut transaction, Space::Parted, &[1; 4097], Some(b"")).await;
        let mut transaction = store.begin(Purpose::Write).await?;
        let large = vec![0; 9 << 20];
        let row_too_long = store.put(&mut transaction, Space::Parted, b"key", Some(&large)).await;
        let mut transaction = store.begin(Purpose::Write).await?;
        for number in 0..3 {
            store.put(&mut transaction, Space::Parted, &row(number, 0), Some(&large[..8 << 20])).await?;
        }
        let too_much = store.put(&mut transaction, Space::Parted, &row(3, 0), Some(&large[..8 << 20])).await;
        Ok::<_, Failure>([long, row_too_long, too_much])
    });
    for (failure, word) in
        failures.expect("what is allowed is done").into_iter().zip(["4097", "9437184", "33554432"])
    {
        let Err(Failure::Error(error)) = failure else { panic!("{failure:?}") };
        assert!(error.state.as_str() == "54000" && error.message.contains(word), "{error}");
    }
}

#[test]
fn what_needs_a_node_that_is_gone_fails_soon() {
    let (cluster, mut engines) = nodes("occ", 2, 1);
    drop(engines.pop());
    let engine = engines.pop().expect("there is another node");
    let store = node_store(&engine, &cluster).expect("the pair has SQL").with_patience(200_000_000);
    let table = cluster.sql_tables().expect("the pair has SQL")[0];
    let home = move |shard: &dyn AnyShard, first| shard.home(table, &Key::new(&row(first, 0)));
    let found = engine.on_shard(ShardId(0), move |shard| {
        [0, 1]
            .map(|holder| (0..).find(|&first| home(shard, first) == ShardId(holder)).expect("each has some"))
    });
    let begun = Instant::now();
    let states = on(&engine, &store, 0, move |store| async move {
        let [here, there] = found.map(|first| row(first, 0));
        write(&store, &here, b"here").await?;
        let mut states = Vec::new();
        for purpose in [Purpose::NEWEST, Purpose::Write] {
            let mut transaction = store.begin(purpose).await?;
            let read = store.get(&mut transaction, Space::Parted, &[here.clone(), there.clone()]).await;
            states.push(state(&read.expect_err("half of it is out of reach")));
        }
        states.push(state(&write(&store, &there, b"there").await.expect_err("it is out of reach")));
        let mut transaction = store.begin(Purpose::Write).await?;
        let copied = match store.put(&mut transaction, Space::Copied, b"name", Some(b"")).await {
            Ok(()) => store.commit(transaction).await.map(drop),
            failed => failed,
        };
        states.push(state(&copied.expect_err("a copy is out of reach")));
        Ok::<_, Failure>(states)
    });
    assert_eq!(states, Ok(vec!["57P03".to_owned(); 4]));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// SQL writes the byte of a key that tells the partition part, and the database reads it.
#[test]
fn rows_that_share_the_columns_they_are_placed_by_share_a_slot() {
    let column = |oid| Column { not_null: true, ..Column::new("c", oid, -1) };
    for (first, values) in [
        (Oid::INT4, [Datum::Int4(7), Datum::Int4(8)]),
        (Oid::TEXT, [Datum::text("a"), Datum::text("a\u{1}b")]),
    ] {
        let table = Table {
            id: 16_384,
            rows: 16_384,
            columns: vec![column(first), column(Oid::TEXT)],
            primary: vec![0, 1],
            placement: Placement::Hash(1),
            ..Table::new("public", "t")
        };
        let byte = key::partition_byte(&table).expect("it can be");
        for value in values {
            let low = key::prefix(table.rows, byte, &[(first, &value)]).expect("it is short");
            let high = key::after_prefix(&low).map(|high| Key::new(&high));
            let place = Partitioning::Own.range_place(&Key::new(&low), high.as_ref());
            let RangePlace::Slot(slot) = place else { panic!("{first:?}: not one slot: {place:?}") };
            for second in ["", "x", "another one that is long"] {
                let row = [value.clone(), Datum::text(second)];
                let key = Key::new(&key::row_key(&table, &row).expect("it is short"));
                assert_eq!(Partitioning::Own.slot(&key), Some(slot), "{row:?}");
            }
        }
    }
}
