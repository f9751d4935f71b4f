//! What the microbenchmarks promise, on the simplest database that can run them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_txn::procedure::{Piece, Procedure};
use plimsoll_types::Placement;

use super::*;
use crate::testing::{Database, run_audit};

fn micro(shards: u64, change: impl Fn(&mut Parameters)) -> Micro {
    let mut parameters = Parameters::new(shards);
    parameters.tuples_per_shard = 1500;
    change(&mut parameters);
    Micro::new(parameters).expect("the parameters are possible")
}

fn client(micro: &Micro, number: usize, shard: u16) -> Client {
    let placement = Placement::even(micro.parameters.shards as usize);
    micro.client(number, ShardId(shard), &|slot| placement.shard(slot))
}

/// Runs so many transactions and returns what a driver would have counted.
fn run(micro: &Micro, database: &mut Database, transactions: usize) -> Tally {
    let mut tally = Tally { committed: vec![0; 2], sums: vec![0; 1] };
    let mut clients: Vec<_> =
        (0..micro.parameters.shards as u16).map(|shard| client(micro, shard.into(), shard)).collect();
    for i in 0..transactions {
        let clients_len = clients.len();
        let mut transaction = micro.next(&mut clients[i % clients_len], 0);
        assert_eq!(database.run(&mut transaction), Ok(()));
        assert_eq!(database.counts.updated.len() as u64, transaction.updates);
        tally.committed[Micro::kind(&transaction)] += 1;
        Micro::tally(&transaction, &mut tally.sums);
    }
    tally
}

fn judged(micro: &Micro, database: &mut Database, tally: &Tally) -> Vec<Check> {
    let audits: Vec<_> =
        micro.audits().into_iter().map(|mut audit| run_audit(database, &mut audit)).collect();
    micro.judge(&audits, tally)
}

/// The verdicts of the online audits of all classes.
fn online(micro: &Micro, database: &mut Database) -> Vec<Check> {
    let audits = (0..micro.classes as usize).map(|number| micro.online_audit(number));
    audits.flat_map(|mut audit| micro.judge_snapshot(&run_audit(database, &mut audit))).collect()
}

#[test]
fn tuples_count_their_updates_after_any_run() {
    for (read_share, read_only, distributed) in [(0.0, 0.0, 0.0), (20.0, 50.0, 10.0), (70.0, 10.0, 100.0)] {
        let micro = micro(3, |p| {
            (p.read_share_pct, p.read_only_pct, p.distributed_pct) = (read_share, read_only, distributed);
        });
        let mut database = Database::load(&micro);
        let tally = run(&micro, &mut database, 3000);
        assert_eq!(tally.committed.iter().sum::<u64>(), 3000);
        assert_eq!(tally.sums[0] as u64, tally.committed[0] * micro.updates);
        for interrupt_after in [None, Some(77)] {
            database.interrupt_after = interrupt_after;
            for check in
                judged(&micro, &mut database, &tally).into_iter().chain(online(&micro, &mut database))
            {
                assert!(check.ok, "{check:?}");
            }
        }
        let mut cheated = tally.clone();
        cheated.sums[0] += 1;
        assert!(!judged(&micro, &mut database, &cheated)[1].ok);
    }
}

#[test]
fn the_audit_of_a_class_finds_a_transaction_of_which_a_part_is_missing() {
    let micro = micro(2, |p| (p.read_only_pct, p.read_share_pct) = (0.0, 60.0));
    assert!(micro.classes > 5 && micro.updates == 4);
    let whole = Database::load(&micro);
    let mut transaction = micro.next(&mut client(&micro, 0, 0), 0);
    let mut database = whole.clone();
    assert_eq!(database.run(&mut transaction), Ok(()));
    assert!(online(&micro, &mut database).iter().all(|check| check.ok));
    let updated: Vec<u64> = transaction.tuples().filter(|tuple| tuple.1).map(|tuple| tuple.0).collect();
    // Every part of its updates, but for none and all.
    for part in 1..(1 << updated.len()) - 1 {
        let mut torn = whole.clone();
        for (number, &key) in updated.iter().enumerate().filter(|(number, _)| part >> number & 1 == 1) {
            assert!(number < 4);
            torn.write(TUPLES.row(), Key::of_u64(key), &1u64.to_le_bytes());
        }
        assert_eq!(online(&micro, &mut torn).iter().filter(|check| !check.ok).count(), 1, "{part:b}");
    }
    database.remove(TUPLES.row(), &Key::of_u64(1));
    assert!(!judged(&micro, &mut database, &Tally::default())[0].ok);
}

#[test]
fn the_share_that_is_only_read_is_exact() {
    for (count, share, updates) in [
        (10, 0.0, 10),
        (10, 20.0, 8),
        (10, 25.0, 7),
        (10, 100.0, 0),
        (1, 50.0, 0),
        (3, 40.0, 2),
        (200, 99.5, 1),
        (0, 50.0, 0),
    ] {
        let micro = micro(2, |p| {
            (p.tuples_per_transaction, p.read_share_pct, p.read_only_pct) = (count, share, 30.0);
        });
        assert_eq!(micro.parameters.updates(), updates);
        let mut client = client(&micro, 0, 1);
        let mut kinds = [0; 2];
        for _ in 0..200 {
            let transaction = micro.next(&mut client, 0);
            let expected = if transaction.read_only() { 0 } else { updates };
            assert_eq!(transaction.tuples().filter(|tuple| tuple.1).count() as u64, expected);
            let keys: BTreeSet<u64> = transaction.tuples().map(|tuple| tuple.0).collect();
            assert_eq!(keys.len() as u64, count, "tuples differ");
            let classes: BTreeSet<u64> = keys.iter().map(|key| key % 1500 % micro.classes).collect();
            assert!(classes.len() <= 1, "tuples are of one class");
            kinds[Micro::kind(&transaction)] += 1;
        }
        assert!((30..90).contains(&kinds[1]), "{kinds:?}");
    }
}

#[test]
fn tuples_are_as_local_as_asked_and_all_equally_likely() {
    for distributed in [0.0, 10.0, 50.0, 100.0] {
        let micro = micro(4, |p| (p.tuples_per_shard, p.distributed_pct) = (405, distributed));
        assert_eq!((micro.classes, 405 % micro.classes), (3, 0));
        let mut client = client(&micro, 7, 2);
        let mut hits: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..40_000 {
            micro.next(&mut client, 0).tuples().for_each(|tuple| *hits.entry(tuple.0).or_default() += 1);
        }
        let of_block = |block: u64| hits.range(block * 405..(block + 1) * 405).map(|(_, n)| n).sum::<u32>();
        let away = distributed / 100.0 * 400_000.0 / 3.0;
        for (block, expected) in [(0, away), (1, away), (2, 400_000.0 - 3.0 * away), (3, away)] {
            let hits_of_block = f64::from(of_block(block));
            assert!((hits_of_block - expected).abs() <= 1500.0, "block {block}: {hits_of_block}");
            let mean = hits_of_block / 405.0;
            for (tuple, &n) in hits.range(block * 405..(block + 1) * 405) {
                assert!(
                    (f64::from(n) - mean).abs() < 6.0 * mean.sqrt(),
                    "tuple {tuple}: {n} instead of {mean}"
                );
            }
        }
    }
    // Classes of two sizes: the larger ones are drawn more often.
    let micro = micro(1, |p| (p.tuples_per_shard, p.tuples_per_transaction) = (1507, 2));
    assert_eq!(micro.classes, 3);
    let mut client = client(&micro, 0, 0);
    let mut classes = [0u32; 3];
    (0..150_700).for_each(|_| classes[(micro.next(&mut client, 0).tuples[0].key % 3) as usize] += 1);
    assert!(classes[0].abs_diff(50_300) < 800 && classes[2].abs_diff(50_200) < 800, "{classes:?}");
}

#[test]
fn a_block_is_a_piece_and_the_one_at_home_comes_last() {
    let micro = micro(3, |p| (p.distributed_pct, p.tuples_per_transaction) = (60.0, 8));
    let mut client = client(&micro, 0, 1);
    let mut pieces_seen = BTreeSet::new();
    let mut at_home = 0;
    for _ in 0..1000 {
        let transaction = micro.next(&mut client, 0);
        let pieces = transaction.stage(0);
        assert_eq!(transaction.stage(1), 0);
        let homes: Vec<_> =
            (0..pieces).map(|number| transaction.home(Piece { stage: 0, number }).0).collect();
        assert!(
            homes[..pieces - 1].iter().all(|&home| home != 1),
            "the piece at home is the last if there is one"
        );
        at_home += u32::from(homes[pieces - 1] == 1);
        assert_eq!(homes.iter().collect::<BTreeSet<_>>().len(), pieces);
        pieces_seen.insert(pieces);
    }
    assert_eq!(pieces_seen, BTreeSet::from([1, 2, 3]));
    // None of eight tuples is at home in 0.6^8 of all: those have no piece there.
    assert!((950..1000).contains(&at_home), "{at_home}");
}

#[test]
fn a_transaction_without_tuples_only_spins() {
    let micro = micro(2, |p| {
        (p.tuples_per_transaction, p.read_only_pct, p.spin_rounds) = (0, 0.0, 10);
    });
    let mut database = Database::load(&micro);
    let transaction = micro.next(&mut client(&micro, 0, 1), 0);
    assert_eq!((transaction.stage(0), transaction.spin_rounds), (1, 10));
    assert_eq!(transaction.home(Piece { stage: 0, number: 0 }), Slot(1));
    let tally = run(&micro, &mut database, 10);
    assert_eq!((tally.committed, tally.sums), (vec![10, 0], vec![0]));
    assert!(online(&micro, &mut database).iter().all(|check| check.ok));
}

#[test]
fn blocks_are_loaded_independently_and_clients_draw_the_same_every_time() {
    let micro = micro(3, |_| ());
    let rows = |unit| {
        let mut rows = Vec::new();
        micro.load(unit, &mut |table, key, values| rows.push((table, key, values.concat())));
        rows
    };
    assert_eq!(rows(1), rows(1));
    assert_eq!(rows(2)[0], (TUPLES, Key::of_u64(3000), vec![0; 8]));
    assert_eq!(Database::load(&micro).count(TUPLES.row()) as u64, micro.tuples());
    let draw = |number| {
        let mut client = client(&micro, number, 0);
        (0..20).map(|_| format!("{:?}", micro.next(&mut client, 0))).collect::<Vec<_>>()
    };
    assert_eq!(draw(4), draw(4));
    assert_ne!(draw(4), draw(5));
}

#[test]
fn impossible_parameters_are_refused_in_a_sentence() {
    let bad = |change: fn(&mut Parameters)| {
        let mut parameters = Parameters::new(2);
        change(&mut parameters);
        Micro::new(parameters).expect_err("the parameters are bad")
    };
    assert!(bad(|p| p.shards = 0).starts_with("The microbenchmark needs 1 to 4096 shards"));
    assert!(bad(|p| p.tuples_per_shard = 0).contains("at least 1 tuple"));
    assert!(bad(|p| p.tuples_per_shard = 9).contains("at most 9 different ones of 9 tuples, not 10"));
    assert!(bad(|p| p.tuples_per_transaction = 1001).contains("at most 1000 different ones"));
    assert!(bad(|p| p.read_only_pct = 101.0).contains("read-only transactions"));
    assert!(bad(|p| p.read_share_pct = -1.0).contains("only read"));
    assert!(bad(|p| p.distributed_pct = f64::NAN).contains("distributed share"));
}

#[test]
fn a_transaction_takes_part_on_exactly_so_many_shards() {
    for participants in 1..=4 {
        let micro = micro(4, |p| (p.participants, p.tuples_per_transaction) = (participants, 9));
        let mut client = client(&micro, 0, 2);
        for _ in 0..200 {
            let mut tuples = BTreeMap::new();
            for (tuple, _) in micro.next(&mut client, 0).tuples() {
                *tuples.entry(tuple / 1500).or_insert(0) += 1;
            }
            assert_eq!(tuples.len() as u64, participants, "{tuples:?}");
            assert!(tuples.contains_key(&2), "its own is among them");
            assert!(tuples.values().max().unwrap() - tuples.values().min().unwrap() <= 1, "{tuples:?}");
        }
    }
    let refused = |change: fn(&mut Parameters)| {
        let mut parameters = Parameters::new(2);
        change(&mut parameters);
        Micro::new(parameters).err()
    };
    assert!(refused(|p| p.participants = 3).is_some_and(|why| why.contains("at most 2")));
    assert!(refused(|p| p.zipf = 1.0).is_some_and(|why| why.contains("below 1")));
}

#[test]
fn zipfian_tuples_are_hot_on_every_shard_and_still_count_their_updates() {
    let micro = micro(2, |p| (p.zipf, p.tuples_per_transaction, p.read_only_pct) = (0.99, 5, 0.0));
    let mut counts = BTreeMap::new();
    let mut first = client(&micro, 0, 0);
    for _ in 0..2000 {
        micro.next(&mut first, 0).tuples().for_each(|(tuple, _)| *counts.entry(tuple).or_insert(0) += 1);
    }
    // In a block of 1,500 the hottest tuple is drawn more often than one of all in the middle.
    assert!(counts[&0] > 800 && counts[&0] > 50 * counts.get(&700).copied().unwrap_or(0), "{}", counts[&0]);
    let mut database = Database::load(&micro);
    let tally = run(&micro, &mut database, 500);
    for check in judged(&micro, &mut database, &tally).into_iter().chain(online(&micro, &mut database)) {
        assert!(check.ok, "{check:?}");
    }
}
