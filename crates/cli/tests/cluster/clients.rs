//! Clients of nodes that are all there: what they write and see, what is counted, and what a
//! message may hold.

use std::thread;
use std::time::Duration;

use plimsoll::{
    Abort, Database, Error, Freshness, Key, KeyRange, OpenError, Row, TokenError, Txn, VALUE_MAX,
    WRITTEN_MAX_CLUSTER,
};
use plimsoll_runtime::real::FRAME_MAX;
use serde_json::Value;

use crate::scene::{Scene, account, balance, fill, metric, path, plimsoll, total, transfers};
use crate::waiting::until;

#[test]
fn clients_transact_against_nodes_that_are_other_processes() {
    const ACCOUNTS: u64 = 12;
    let mut scene = Scene::new(&[1, 2]);
    scene.start(1);
    scene.start(2);
    let db = scene.connect();
    fill(&db, ACCOUNTS);
    thread::scope(|scope| {
        for client in 0..3 {
            let scene = &scene;
            scope.spawn(move || transfers(&scene.connect(), client, ACCOUNTS, 60));
        }
    });
    assert_eq!(total(&db, ACCOUNTS), ACCOUNTS * 1000);

    // Scans, over all shards and in order; what is there already; what one client wrote another
    // sees.
    let entries = db.table("entry").unwrap();
    db.transact(|txn| -> Result<(), Error> {
        (0..50).try_for_each(|number| txn.insert(entries, &Key::of_u64(number), b"entry"))
    })
    .unwrap();
    let other = scene.connect();
    let scanned: Vec<Key> = other
        .snapshot(Freshness::Newest)
        .unwrap()
        .scan(entries, ..)
        .unwrap()
        .map(|row| row.unwrap().0)
        .collect();
    assert_eq!(scanned, (0..50).map(Key::of_u64).collect::<Vec<_>>());
    let twice = other.transact(|txn| txn.insert(entries, &Key::of_u64(7), b"again"));
    assert!(matches!(twice, Err(Error::Exists { .. })), "{twice:?}");

    let (status, well) = until("the cluster is ready", || Some(scene.status()).filter(|(_, well)| *well));
    assert!(well);
    let rows = |node: usize| status["nodes"][node]["state"]["tables"].as_array().unwrap().clone();
    let count = |node: usize| rows(node).iter().map(|table| table["rows"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(count(0) + count(1), ACCOUNTS + 50, "{status}");
    assert!(count(0) > 0 && count(1) > 0, "both hold some: {status}");
    assert_eq!(scene.get(1, "/ready").0, 200);
    assert_eq!(scene.get(1, "/health"), (200, "the shards make passes\n".to_owned()));
    let (code, metrics) = scene.get(2, "/metrics");
    assert_eq!(code, 200);
    assert!(metrics.contains("plimsoll_table_rows{table=\"account\"}"), "{metrics}");
    assert!(metrics.contains("plimsoll_peer_connected{peer=\"1\"} 2\n"), "{metrics}");

    // Who leads which shard, and what the clocks say.
    let leaders = |status: &Value| -> Vec<Option<u64>> {
        status["shards"].as_array().unwrap().iter().map(|shard| shard["leader"].as_u64()).collect()
    };
    assert_eq!(leaders(&status), [Some(1), Some(2), Some(2)], "{status}");
    let slots = status["shards"].as_array().unwrap().iter().map(|shard| shard["slots"].as_u64().unwrap());
    assert_eq!(slots.sum::<u64>(), 4096, "{status}");
    let ahead = until("the clocks have been compared", || {
        let (status, _) = scene.status();
        assert_eq!(status["clock_reference"], 1);
        status["nodes"][1]["clock_ahead_seconds"]
            .as_f64()
            .zip(status["nodes"][1]["clock_error_seconds"].as_f64())
    });
    assert!(ahead.0.abs() <= ahead.1 + 0.5, "they have one clock: {ahead:?}");
    let shown = plimsoll(&["status", path(&scene.file())]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let words: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    for row in [["0", "node", "1"], ["1", "node", "2"], ["2", "node", "2"]] {
        assert!(words.iter().any(|words| words[..] == row), "{row:?}: {shown}");
    }
    assert!(shown.contains("clocks are compared with that of node 1"), "{shown}");

    // All is unlocked, and nobody remembers a vote.
    until("votes are forgotten", || {
        let (status, _) = scene.status();
        let shards = |node: usize| status["nodes"][node]["state"]["shards"].as_array().unwrap().clone();
        let left = |shard: &Value| shard["locks"].as_u64().unwrap() + shard["votes"].as_u64().unwrap();
        (0..2).all(|node| shards(node).iter().map(left).sum::<u64>() == 0).then_some(())
    });

    // SIGTERM is a way to stop.
    scene.signal(1, "-TERM");
    let status = until("the node stops", || scene.nodes[0].as_mut().unwrap().try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    let (status, well) = scene.status();
    assert!(!well, "a node is down");
    assert_eq!(leaders(&status), [None, Some(2), Some(2)], "{status}");
    until("the other has noticed", || (scene.get(2, "/ready").0 == 503).then_some(()));
    let alone = scene.connect_within(Duration::from_secs(2));
    assert!(
        matches!(&alone, Err(OpenError::Unreachable { nodes, .. }) if nodes == &[1]),
        "{:?}",
        alone.err()
    );
}

#[test]
fn clients_count_how_transactions_end_and_nodes_count_votes_installs_and_refusals() {
    const ACCOUNTS: u64 = 12;
    const ROUNDS: u64 = 10;
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let (db, rival) = (scene.connect(), scene.connect());
    let table = db.table("account").unwrap();
    fill(&db, ACCOUNTS);
    // Each writes on both nodes.
    for _ in 0..ROUNDS {
        let written: Result<(), Error> = db.transact(|txn| {
            (0..ACCOUNTS).try_for_each(|number| txn.put(table, &account(number), &1000u64.to_be_bytes()))
        });
        written.unwrap();
    }
    assert_eq!(total(&db, ACCOUNTS), ACCOUNTS * 1000);
    // Another overwrites what this one has read.
    let mut attempts = 0;
    let met: Result<(), Error> = db.transact(|txn| {
        attempts += 1;
        let had = balance(txn.get(table, &account(0))?);
        if attempts == 1 {
            rival.transact(|txn| txn.put(table, &account(0), &1u64.to_be_bytes()))?;
        }
        txn.put(table, &account(0), &(had + 1).to_be_bytes())
    });
    met.unwrap();
    let given_up = db.transact(|txn| txn.insert(table, &account(0), b"there is one"));
    assert!(matches!(given_up, Err(Error::Exists { .. })), "{given_up:?}");

    let stats = db.stats();
    let aborts = |stats: &plimsoll::Stats| Abort::ALL.map(|reason| stats.aborts(reason)).iter().sum::<u64>();
    assert_eq!((stats.read_write.committed, stats.read_write.aborted), (ROUNDS + 2, 0), "{stats:?}");
    // A snapshot was taken, and an insert has found that there was nothing for it to do.
    assert_eq!((stats.read_only.committed, stats.read_only.aborted), (1, 1), "{stats:?}");
    assert!(attempts >= 2 && aborts(&stats) >= attempts && stats.aborts(Abort::User) == 1, "{stats:?}");
    assert_eq!((rival.stats().read_write.committed, rival.stats().read_only.committed), (1, 0));
    let line = format!(
        "plimsoll_transactions_total{{type=\"read_write\",outcome=\"committed\"}} {}\n",
        stats.read_write.committed
    );
    assert!(stats.prometheus().contains(&line), "{}", stats.prometheus());

    // The nodes have seen parts of them; the last outcomes are on their way.
    let metrics = |id: usize| scene.get(id, "/metrics").1;
    for id in 1..=2 {
        until("all outcomes are known", || {
            let text = metrics(id);
            let (votes, outcomes) = ("plimsoll_votes_total", "plimsoll_outcomes_total");
            let all = metric(&text, votes, "vote=\"record\"") >= ROUNDS
                && metric(&text, outcomes, "outcome=\"committed\"") >= ROUNDS
                && metric(&text, "plimsoll_installs_total", "") >= ROUNDS;
            all.then_some(())
        });
        let text = metrics(id);
        assert!(metric(&text, "plimsoll_snapshot_reads_total", "") >= 1, "{text}");
        assert!(text.contains("plimsoll_outcomes_asked_total{shard="), "{text}");
    }
    let refused: u64 = (1..=2).map(|id| metric(&metrics(id), "plimsoll_aborts_total", "reason=")).sum();
    assert!(refused >= 1, "{}{}", metrics(1), metrics(2));
}

#[test]
fn a_client_that_is_given_a_token_sees_what_another_has_written() {
    let mut scene = Scene::under("max_staleness_ms = 120000\n", &[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    let (first, second) = (scene.connect(), scene.connect());
    fill(&first, 4);
    let table = first.table("account").unwrap();
    let write = |db: &Database, amount: u64| {
        db.transact(|txn| txn.put(table, &account(1), &amount.to_be_bytes())).unwrap();
        db.token().unwrap().to_string()
    };
    let long_ago = Freshness::Stale(Duration::from_secs(60));
    let stale = |db: &Database| db.snapshot(long_ago).unwrap().get(table, &account(1)).unwrap();
    let token = write(&first, 2000);
    assert_eq!(stale(&second.session()), None, "a minute ago there was nothing");
    let session = second.session_with(token.parse().unwrap()).unwrap();
    assert_eq!(balance(stale(&session)), 2000);
    let seen: Result<u64, Error> = session.transact(|txn| Ok(balance(txn.get(table, &account(1))?)));
    assert_eq!(seen, Ok(2000));
    // And back.
    let token = write(&session, 3000);
    assert_eq!(balance(stale(&first)), 2000, "what its own session has seen");
    assert_eq!(balance(stale(&first.session_with(token.parse().unwrap()).unwrap())), 3000);
    // What was read only is handed on as well.
    let reader = second.session();
    assert_eq!(balance(reader.snapshot(Freshness::Newest).unwrap().get(table, &account(1)).unwrap()), 3000);
    let third = scene.connect();
    let token = reader.token().unwrap().to_string();
    assert_eq!(balance(stale(&third.session_with(token.parse().unwrap()).unwrap())), 3000);
    let invented = format!("{}{:016x}", &token[..20], u64::MAX);
    let invented = third.session_with(invented.parse().unwrap()).err();
    assert!(matches!(invented, Some(TokenError::Ahead(_))), "{invented:?}");
}

#[test]
fn clients_that_come_together_all_find_a_place() {
    let mut scene = Scene::new(&[1, 1]);
    (1..=2).for_each(|id| scene.start(id));
    drop(scene.connect());
    let scene = &scene;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..25).for_each(|_| drop(scene.connect())));
        }
    });
}

#[test]
fn what_is_read_may_be_longer_than_a_message_and_what_is_written_may_not() {
    const ROWS: u64 = 12;
    let mut scene = Scene::new(&[1]);
    scene.start(1);
    let db = scene.connect();
    let table = db.table("entry").unwrap();
    let long = |number: u64| vec![number as u8; VALUE_MAX];
    let keys: Vec<Key> = (0..ROWS).map(Key::of_u64).collect();
    for number in 0..ROWS {
        let put = |txn: &mut Txn<'_>| txn.put(table, &keys[number as usize], &long(number));
        db.transact(put).unwrap();
    }
    assert!(VALUE_MAX * ROWS as usize > FRAME_MAX);
    let right = |number: u64, value: &[u8]| {
        value.len() == VALUE_MAX && value.iter().all(|&byte| byte == number as u8)
    };
    let snapshot = db.snapshot(Freshness::Newest).unwrap();
    let values = snapshot.get_many(table, &keys).unwrap();
    assert!((0..ROWS).zip(&values).all(|(number, value)| right(number, value.as_ref().unwrap())));
    let rows = snapshot.scan(table, ..).unwrap().map(Result::unwrap);
    assert!((0..ROWS).eq(rows.enumerate().map(|(number, (key, value))| {
        assert!(key == keys[number] && right(number as u64, &value));
        number as u64
    })));
    let scanned = db.transact(|txn| txn.scan(table, ..)).unwrap();
    assert!(scanned.iter().zip(&keys).all(|((key, _), asked)| key == asked));
    assert!(
        scanned.len() == keys.len()
            && (0..ROWS).zip(&scanned).all(|(number, (_, value))| right(number, value))
    );
    let values = db.transact(|txn| txn.get_many(table, &keys)).unwrap();
    assert!((0..ROWS).zip(&values).all(|(number, value)| right(number, value.as_ref().unwrap())));
    let from_the_end = || KeyRange::from(..=&keys[9]).reverse();
    let by_cursor = db.transact(|txn| -> Result<Vec<Row>, Error> {
        let (mut cursor, mut rows) = (txn.cursor(table, from_the_end())?, Vec::new());
        while let Some(row) = cursor.next(txn)? {
            rows.push(row);
        }
        Ok(rows)
    });
    let in_snapshot: Vec<Row> = snapshot.scan(table, from_the_end()).unwrap().map(Result::unwrap).collect();
    let in_transaction = db.transact(|txn| txn.scan(table, from_the_end())).unwrap();
    for rows in [by_cursor.unwrap(), in_snapshot, in_transaction] {
        assert!((0..=9).rev().eq(rows.into_iter().map(|(key, value)| {
            let number = key.read().u64().unwrap();
            assert!(right(number, &value));
            number
        })));
    }

    let write = |bytes: usize| {
        db.transact(|txn| keys.iter().take(4).try_for_each(|key| txn.put(table, key, &vec![9; bytes])))
    };
    assert_eq!(write(VALUE_MAX), Err(Error::TooMuchWritten { max: WRITTEN_MAX_CLUSTER }));
    assert!(right(0, &db.snapshot(Freshness::Newest).unwrap().get(table, &keys[0]).unwrap().unwrap()));
    assert_eq!(write(VALUE_MAX - 100), Ok(()));
}
