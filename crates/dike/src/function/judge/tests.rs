use super::*;
use Operation::{Append, Read};

fn judged(attempts: &[(End, &[Operation])], last: &[(u64, &[u64])]) -> (Vec<String>, Level) {
    let attempts: Vec<Attempt> = (0..)
        .zip(attempts)
        .map(|(session, (end, operations))| Attempt {
            session,
            begin_ns: 0,
            end_ns: 1,
            end: *end,
            read_only: operations.iter().all(|operation| matches!(operation, Read(..))),
            operations: operations.to_vec(),
        })
        .collect();
    let last = last.iter().map(|(list, numbers)| (*list, numbers.to_vec())).collect();
    let judgement = judge(&attempts, &last);
    (judgement.totals.keys().cloned().collect(), judgement.level())
}

use End::{Aborted, Committed, Unknown};

/// An anomaly, what it leaves of isolation, attempts that show it, and what lists held in the
/// end.
type Case = (&'static str, Level, Vec<(End, Vec<Operation>)>, Vec<(u64, Vec<u64>)>);

#[test]
fn every_anomaly_has_its_name_and_bounds_the_level() {
    let cases: [Case; 9] = [
        (
            "write skew (G2-item)",
            Level::Snapshot,
            vec![
                (Committed, vec![read(0, &[]), Append(1, 1)]),
                (Committed, vec![read(1, &[]), Append(0, 2)]),
            ],
            vec![(0, vec![2]), (1, vec![1])],
        ),
        (
            "fractured read (G-single)",
            Level::ReadCommitted,
            vec![
                (Committed, vec![Append(0, 1), Append(1, 2)]),
                (Committed, vec![read(0, &[]), read(1, &[2])]),
            ],
            vec![(0, vec![1]), (1, vec![2])],
        ),
        (
            "lost update (G-single)",
            Level::ReadCommitted,
            vec![(Committed, vec![read(0, &[]), Append(0, 1)]), (Committed, vec![Append(0, 2)])],
            vec![(0, vec![2, 1])],
        ),
        (
            "circular information flow (G1c)",
            Level::Nothing,
            vec![
                (Committed, vec![Append(0, 1), read(1, &[2])]),
                (Committed, vec![Append(1, 2), read(0, &[1])]),
            ],
            vec![(0, vec![1]), (1, vec![2])],
        ),
        (
            "write cycle (G0)",
            Level::Nothing,
            vec![
                (Committed, vec![Append(0, 1), Append(1, 2)]),
                (Committed, vec![Append(0, 3), Append(1, 4)]),
            ],
            vec![(0, vec![1, 3]), (1, vec![4, 2])],
        ),
        (
            "aborted append (G1a)",
            Level::Nothing,
            vec![(Aborted, vec![Append(0, 1)]), (Committed, vec![read(0, &[1])])],
            vec![],
        ),
        ("lost append", Level::Nothing, vec![(Committed, vec![Append(0, 1)])], vec![]),
        (
            "incompatible order",
            Level::Nothing,
            vec![
                (Committed, vec![Append(0, 1)]),
                (Committed, vec![Append(0, 2)]),
                (Committed, vec![read(0, &[2])]),
            ],
            vec![(0, vec![1, 2])],
        ),
        ("duplicate append", Level::Nothing, vec![(Committed, vec![Append(0, 1)])], vec![(0, vec![1, 1])]),
    ];
    for (name, level, attempts, last) in &cases {
        let attempts: Vec<_> = attempts.iter().map(|(end, operations)| (*end, &operations[..])).collect();
        let last: Vec<_> = last.iter().map(|(list, numbers)| (*list, &numbers[..])).collect();
        assert_eq!(judged(&attempts, &last), (vec![(*name).to_owned()], *level));
    }
}

/// The same with several anomalies, in alphabetical order.
#[track_caller]
fn expect(attempts: &[(End, &[Operation])], last: &[(u64, &[u64])], anomalies: &[&str], level: Level) {
    let anomalies: Vec<String> = anomalies.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(judged(attempts, last), (anomalies, level));
}

fn read(list: u64, numbers: &[u64]) -> Operation {
    Read(list, numbers.to_vec())
}

#[test]
fn a_write_skew_does_not_hide_a_long_fork() {
    let skew: [(End, &[Operation]); 2] =
        [(Committed, &[read(0, &[]), Append(1, 1)]), (Committed, &[read(1, &[]), Append(0, 1)])];
    let last: [(u64, &[u64]); 2] = [(0, &[1]), (1, &[1])];
    expect(&skew, &last, &["write skew (G2-item)"], Level::Snapshot);
    let (one, other) = ([read(0, &[1]), read(1, &[])], [read(0, &[]), read(1, &[1])]);
    let fork = [skew[0], skew[1], (Committed, &one), (Committed, &other)];
    expect(&fork, &last, &["long fork (G2-item)", "write skew (G2-item)"], Level::ReadCommitted);
    // One of the readers alone makes a read-only anomaly, and no long fork.
    let anomaly = [skew[0], skew[1], (Committed, &one)];
    expect(&anomaly, &last, &["write skew (G2-item)"], Level::Snapshot);
}

#[test]
fn many_knots_are_as_bad_as_the_worst_of_them() {
    let mut attempts = Vec::new();
    let mut last = Vec::new();
    for list in (0..200).step_by(2) {
        attempts.push((Committed, vec![read(list, &[]), Append(list + 1, 1)]));
        attempts.push((Committed, vec![read(list + 1, &[]), Append(list, 2)]));
        last.extend([(list, vec![2]), (list + 1, vec![1])]);
    }
    let of = |attempts: &[(End, Vec<Operation>)], last: &[(u64, Vec<u64>)]| {
        let attempts: Vec<_> = attempts.iter().map(|(end, operations)| (*end, &operations[..])).collect();
        let last: Vec<_> = last.iter().map(|(list, numbers)| (*list, &numbers[..])).collect();
        judged(&attempts, &last)
    };
    assert_eq!(of(&attempts, &last).1, Level::Snapshot);
    attempts.push((Committed, vec![read(900, &[]), Append(900, 1)]));
    attempts.push((Committed, vec![Append(900, 2)]));
    last.push((900, vec![2, 1]));
    assert_eq!(of(&attempts, &last).1, Level::ReadCommitted);
}

#[test]
fn what_is_seen_of_a_transaction_in_doubt_commits_all_of_it() {
    let pair: &[Operation] = &[Append(0, 1), Append(1, 2)];
    let half: &[Operation] = &[read(0, &[1]), read(1, &[])];
    let fractured = &["fractured read (G-single)", NOT_ATOMIC];
    // A list in the end proves the commit.
    expect(&[(Unknown, pair), (Committed, half)], &[(0, &[1])], fractured, Level::Nothing);
    expect(&[(Unknown, pair)], &[(0, &[1])], &[NOT_ATOMIC], Level::Nothing);
    expect(&[(Unknown, pair)], &[(1, &[2])], &[NOT_ATOMIC], Level::Nothing);
    // So does a read, and what was read and is gone is lost.
    let lost = &["fractured read (G-single)", INCOMPATIBLE, LOST];
    expect(&[(Unknown, pair), (Committed, half)], &[], lost, Level::Nothing);
    // All of it is there, and half of it was seen.
    let all: [(u64, &[u64]); 2] = [(0, &[1]), (1, &[2])];
    expect(&[(Unknown, pair), (Committed, half)], &all, &fractured[..1], Level::ReadCommitted);
    expect(&[(Unknown, pair), (Committed, &[read(0, &[1]), read(1, &[2])])], &all, &[], Level::Serializable);
    // What has read it is committed as well, if something of that was seen.
    let chain: [(End, &[Operation]); 2] = [(Unknown, pair), (Unknown, &[read(0, &[1]), Append(2, 3)])];
    expect(&chain, &[(2, &[3])], &[INCOMPATIBLE, LOST], Level::Nothing);
    expect(&chain, &[], &[], Level::Serializable);
    // What has failed proves nothing.
    expect(&[(Unknown, pair), (Aborted, &[read(0, &[1])])], &[], &[], Level::Serializable);
}

#[test]
fn what_is_lost_of_an_acknowledged_transaction_has_not_been_read_either() {
    let pair: &[Operation] = &[Append(0, 1), Append(1, 2)];
    let half: &[Operation] = &[read(0, &[1]), read(1, &[])];
    let found = &["fractured read (G-single)", LOST];
    expect(&[(Committed, pair), (Committed, half)], &[(0, &[1])], found, Level::Nothing);
}

#[test]
fn appends_of_one_transaction_to_one_list_are_one_version() {
    let twice: &[Operation] = &[read(0, &[]), Append(0, 1), Append(0, 2)];
    let both: &[Operation] = &[read(0, &[1, 2])];
    expect(&[(Committed, twice), (Committed, both)], &[(0, &[1, 2])], &[], Level::Serializable);
    expect(&[(Committed, twice), (Committed, &[read(0, &[])])], &[(0, &[1, 2])], &[], Level::Serializable);
    let between = &["intermediate append (G1b)"];
    expect(&[(Committed, twice), (Committed, &[read(0, &[1])])], &[(0, &[1, 2])], between, Level::Nothing);
    expect(&[(Committed, twice)], &[(0, &[2, 1])], &[INCOMPATIBLE], Level::Nothing);
    let torn = &["write cycle (G0)"];
    expect(&[(Committed, twice), (Committed, &[Append(0, 3)])], &[(0, &[1, 3, 2])], torn, Level::Nothing);
    // The same number may be in two lists.
    let same: [(End, &[Operation]); 2] = [(Committed, &[Append(0, 1)]), (Committed, &[Append(1, 1)])];
    expect(&same, &[(0, &[1]), (1, &[1])], &[], Level::Serializable);
    expect(&same, &[(0, &[1])], &[LOST], Level::Nothing);
}

#[test]
fn a_transaction_reads_what_it_has_appended_and_not_what_it_will_append() {
    let own: &[Operation] = &[Append(0, 1), read(0, &[7, 1]), Append(0, 2), read(0, &[7, 1, 2])];
    let other: (End, &[Operation]) = (Committed, &[Append(0, 7)]);
    expect(&[other, (Committed, own)], &[(0, &[7, 1, 2])], &[], Level::Serializable);
    let forgotten: &[Operation] = &[Append(0, 1), read(0, &[])];
    expect(&[(Committed, forgotten)], &[(0, &[1])], &["own append not read"], Level::Nothing);
    let early: &[Operation] = &[read(0, &[1]), Append(0, 1)];
    expect(&[(Committed, early)], &[(0, &[1])], &["own append read too early"], Level::Nothing);
    // Between its reads another has come.
    let unrepeatable: &[Operation] = &[read(0, &[]), Append(0, 1), read(0, &[7, 1])];
    let found = judged(&[other, (Committed, unrepeatable)], &[(0, &[7, 1])]);
    assert_eq!(found, (vec!["lost update (G-single)".to_owned()], Level::ReadCommitted));
}

#[test]
fn a_number_that_nobody_has_appended_to_a_list_is_no_part_of_it() {
    expect(&[], &[(0, &[9])], &[OF_NOBODY], Level::Nothing);
    expect(&[(Committed, &[read(0, &[9])])], &[], &[OF_NOBODY], Level::Nothing);
    let elsewhere: (End, &[Operation]) = (Committed, &[Append(0, 1)]);
    expect(&[elsewhere], &[(1, &[1])], &[OF_NOBODY, LOST], Level::Nothing);
}

#[test]
fn what_nobody_knows_may_have_happened() {
    let none: (Vec<String>, Level) = (Vec::new(), Level::Serializable);
    assert_eq!(judged(&[(Unknown, &[Append(0, 1)])], &[]), none);
    assert_eq!(judged(&[(Unknown, &[Append(0, 1)])], &[(0, &[1])]), none);
    assert_eq!(judged(&[(Aborted, &[Append(0, 1)]), (Committed, &[Read(0, vec![])])], &[]), none);
    assert_eq!(judged(&[(Committed, &[Append(0, 1)]), (Committed, &[Read(0, vec![1])])], &[(0, &[1])]), none);
}
