//! Timestamps that are far ahead of a node's clock, over TCP: a node believes none of them, says so,
//! and nobody is slowed down by what it did not believe.
//!
//! Stamps are compared and not times: a mark that had been believed would show in the next stamp.

use plimsoll_txn::any_shard::SnapshotRead;
use plimsoll_txn::attempt::Attempt;
use plimsoll_txn::procedure::Reads;
use plimsoll_txn::timestamp::Freshness;
use plimsoll_types::{Abort, Timestamp};

use super::tests::{HOUR_NS, PATIENCE, nodes_under};
use super::*;

const TABLE: TableId = TableId(0);

/// A client whose clock is off by this offset, which no node sets right.
fn client(cluster: &Cluster, place: usize, offset_ns: i64) -> Engine {
    let clock = Clock::with_offset(Clock::new().offset().saturating_add_signed(offset_ns));
    let network = cluster.network(Role::Client { place }, clock, None, None);
    let engine = Engine::take_part(cluster, Outside { network: Some(network), ..Outside::default() }, None)
        .expect("it starts");
    engine.wait_for_others(PATIENCE).expect("all are there");
    engine
}

fn coordinator(engine: &Engine) -> ShardId {
    engine.coordinators().next().expect("it coordinates")
}

/// The first keys that belong to a shard.
fn keys_of(engine: &Engine, shard: u16, count: usize) -> Vec<u64> {
    let layout = engine.layout();
    let home = |key: &u64| {
        let slot = layout.tables[TABLE.index()].partitioning.slot(&Key::of_u64(*key));
        slot.map(|slot| layout.placement.shard(slot)) == Some(ShardId(shard))
    };
    (0..).filter(home).take(count).collect()
}

/// Reads some keys and writes others in one transaction, which is tried again after conflicts.
fn transact(engine: &Engine, read: &[u64], written: &[u64]) -> Result<Timestamp, Abort> {
    let (read, written) = (read.to_vec(), written.to_vec());
    engine.run_on(coordinator(engine), move |shard| async move {
        let interactive = shard.interactive().expect("operations come one by one");
        let attempt = Attempt { age: shard.clock().0, ..Attempt::default() };
        loop {
            let once = async {
                let mut txn = interactive.begin(attempt, false).await?;
                for &key in &read {
                    interactive.get(&mut txn, TABLE.row(), &Key::of_u64(key)).await?;
                }
                for &key in &written {
                    interactive.put(&mut txn, TABLE.row(), &Key::of_u64(key), b"value").await?;
                }
                interactive.commit(txn).await
            };
            match once.await {
                Ok(committed) => return Ok(committed.stamp.unwrap_or_default()),
                Err(Abort::ClockAhead) => return Err(Abort::ClockAhead),
                Err(_) => shard.sleep(1_000_000).await,
            }
        }
    })
}

/// Reads keys of a shard at the newest snapshot that there is by the client's clock.
fn read(engine: &Engine, from: u16, keys: &[u64]) -> SnapshotRead {
    let mut reads = Reads::default();
    keys.iter().for_each(|&key| reads.get(TABLE.row(), Key::of_u64(key)));
    engine.run_on(coordinator(engine), move |shard| async move {
        let Ok(snapshot) = shard.take_snapshot(Freshness::default()).await else {
            panic!("no oracle is asked for a snapshot")
        };
        let read = shard.read_at(shard.next_id(), ShardId(from), &snapshot.at, reads).await;
        shard.release_snapshot(snapshot.held);
        read.expect("the node is connected")
    })
}

/// Whether a stamp is one that a clock of now leads to.
fn is_of_now(stamp: Timestamp) -> bool {
    stamp.0 < Clock::new().now().0 + MAX_OFFSET_NS
}

fn refused(engine: &Engine) -> u64 {
    engine.own().map(|shard| engine.status(ShardId(shard as u16)).counters.future_stamps).sum()
}

const PROTOCOLS: [&str; 3] = ["occ", "two_pl", "client_2pc"];

fn pair(protocol: &str, scheme: &str) -> String {
    format!("protocol = \"{protocol}\"\nscheme = \"{scheme}\"\nclients = 2")
}

#[test]
fn a_snapshot_an_hour_ahead_reads_nothing_and_moves_no_mark() {
    for protocol in PROTOCOLS {
        let (cluster, nodes) = nodes_under(&pair(protocol, "dst"), &[0]);
        let (good, bad) = (client(&cluster, 0, 0), client(&cluster, 1, HOUR_NS));
        let keys = keys_of(&good, 0, 4);
        let before = transact(&good, &[], &keys).expect("nothing is in its way");
        assert!(matches!(read(&bad, 0, &keys), SnapshotRead::ClockAhead), "{protocol}");
        assert_eq!(refused(&nodes[0]), 1, "{protocol}");
        let after = transact(&good, &keys, &keys).expect("nothing is in its way");
        assert!(before < after && is_of_now(after), "{protocol}: {before:?}, {after:?}");
        assert!(matches!(read(&good, 0, &keys), SnapshotRead::Found(_)), "{protocol}");
        assert_eq!((refused(&nodes[0]), refused(&good)), (1, 0), "{protocol}");
    }
}

#[test]
fn a_client_whose_clock_is_an_hour_ahead_commits_nothing_and_holds_nothing() {
    for protocol in PROTOCOLS {
        let (cluster, nodes) = nodes_under(&pair(protocol, "dst"), &[0, 0]);
        let (good, bad) = (client(&cluster, 0, 0), client(&cluster, 1, HOUR_NS));
        let (here, there) = (keys_of(&good, 0, 2), keys_of(&good, 1, 2));
        let both: Vec<u64> = here.iter().chain(&there).copied().collect();
        transact(&good, &[], &both).expect("nothing is in its way");
        // On one node; on both; where it has only read.
        for (read, written) in [(&[][..], &here[..]), (&[], &both), (&here, &there), (&both, &both)] {
            assert_eq!(transact(&bad, read, written), Err(Abort::ClockAhead), "{protocol}");
        }
        let stamp = transact(&good, &both, &both).expect("its locks are gone");
        assert!(is_of_now(stamp), "{protocol}: {stamp:?}");
        assert!(nodes.iter().map(refused).sum::<u64>() >= 4, "{protocol}");
    }
}

#[test]
fn a_clock_that_is_less_than_half_a_second_ahead_is_believed() {
    for protocol in PROTOCOLS {
        let (cluster, nodes) = nodes_under(&pair(protocol, "dst"), &[0, 0]);
        let (good, fast) = (client(&cluster, 0, 0), client(&cluster, 1, 300_000_000));
        let both = [keys_of(&good, 0, 2), keys_of(&good, 1, 2)].concat();
        for engine in [&fast, &good, &fast] {
            transact(engine, &both, &both).expect("clocks may be so far apart");
            assert!(matches!(read(engine, 0, &both[..2]), SnapshotRead::Found(_)), "{protocol}");
        }
        assert_eq!(nodes.iter().map(refused).sum::<u64>(), 0, "{protocol}");
    }
}

#[test]
fn what_a_node_with_a_clock_an_hour_ahead_has_stamped_goes_nowhere_else() {
    for protocol in PROTOCOLS {
        let (cluster, nodes) = nodes_under(&pair(protocol, "dst"), &[0, HOUR_NS]);
        let good = client(&cluster, 0, 0);
        let (here, there) = (keys_of(&good, 0, 2), keys_of(&good, 1, 2));
        transact(&good, &[], &here).expect("nothing is in its way");
        let ahead = transact(&nodes[1], &[], &there).expect("it believes itself");
        assert!(!is_of_now(ahead), "{protocol}: {ahead:?}");
        let both = [here.clone(), there.clone()].concat();
        assert_eq!(transact(&good, &there, &here), Err(Abort::ClockAhead), "{protocol}");
        assert_eq!(transact(&good, &[], &both), Err(Abort::ClockAhead), "{protocol}");
        assert_eq!(transact(&nodes[1], &[], &here), Err(Abort::ClockAhead), "{protocol}");
        let stamp = transact(&good, &here, &here);
        let stamp = stamp.unwrap_or_else(|abort| panic!("{protocol}: {abort}"));
        assert!(is_of_now(stamp), "{protocol}: {stamp:?}");
    }
}

#[test]
fn slots_do_not_leave_a_node_whose_marks_are_an_hour_ahead() {
    let (cluster, nodes) = nodes_under(&pair("occ", "dst"), &[0, HOUR_NS]);
    let good = client(&cluster, 0, 0);
    let there = keys_of(&good, 1, 1);
    transact(&nodes[1], &[], &there).expect("it believes itself");
    let layout = good.layout();
    let partitioning = layout.tables[TABLE.index()].partitioning;
    let slot = partitioning.slot(&Key::of_u64(there[0])).expect("it has a place");
    let moved = good.run_on(coordinator(&good), move |shard| async move {
        shard.move_slots(ShardId(1), vec![slot], ShardId(0)).await
    });
    assert_eq!(moved, Some(plimsoll_txn::messages::MoveOutcome::ClockAhead));
}

#[test]
fn stamps_of_versions_without_marks_are_held_against_the_clock_too() {
    for protocol in ["occ", "two_pl"] {
        let (cluster, nodes) = nodes_under(&pair(protocol, "rc"), &[0, 0]);
        let (good, bad) = (client(&cluster, 0, 0), client(&cluster, 1, HOUR_NS));
        let both = [keys_of(&good, 0, 2), keys_of(&good, 1, 2)].concat();
        assert_eq!(transact(&bad, &[], &both), Err(Abort::ClockAhead), "{protocol}");
        let stamp = transact(&good, &both, &both).expect("its locks are gone");
        assert!(is_of_now(stamp) && refused(&nodes[0]) + refused(&nodes[1]) > 0, "{protocol}");
    }
    // Numbers that count versions have nothing to do with clocks.
    for protocol in PROTOCOLS {
        let (cluster, nodes) = nodes_under(&pair(protocol, "none"), &[0, 0]);
        let bad = client(&cluster, 1, HOUR_NS);
        let both = [keys_of(&bad, 0, 2), keys_of(&bad, 1, 2)].concat();
        transact(&bad, &both, &both).expect("nothing is in its way");
        assert_eq!(nodes.iter().map(refused).sum::<u64>(), 0, "{protocol}");
    }
}
