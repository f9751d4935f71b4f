//! The judge of a history of lists.
//!
//! A list that was read after everything is over gives the order of all appends to it. Appends of
//! one transaction to one list are one version of it, and a list that is read is the version that
//! its length says. That is a history with named versions, which `plimsoll-checker` judges:
//! dependencies, cycles, and a name for each cycle by its anti-dependencies. What cannot be put in
//! such terms comes first:
//!
//! * *lost append*: it was acknowledged and is nowhere;
//! * *aborted append (G1a)*: its transaction was told to have failed, and it is there, or somebody
//!   has read it;
//! * *duplicate append*: it is there twice;
//! * *incompatible order*: a list was read that is not the beginning of what it became.
//!
//! What is found bounds the isolation that the database can have had:
//!
//! | found | at best |
//! |---|---|
//! | any of those above, G0, G1c | nothing |
//! | G-single (lost update, fractured read, read skew), long fork | read committed |
//! | other G2 (write skew, read-only anomaly) | snapshot isolation |
//! | nothing | serializable |
//!
//! REPEATABLE READ is held to snapshot isolation: that is what the databases here mean by it, but
//! for MySQL's, whose updates see what its reads do not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use plimsoll_checker::{Options, check};
use plimsoll_types::history::{History, Install, Read, Transaction, Version};
use plimsoll_types::{Key, ShardId, TableId, Timestamp, TxnId};

use crate::target::Isolation;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// This number was appended to this list.
    Append(u64, u64),
    /// This list held these numbers.
    Read(u64, Vec<u64>),
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It aborted.
    Aborted,
    /// Nobody knows.
    Unknown,
}

/// One attempt, as its session saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Whose it was.
    pub session: u32,
    /// When it began, in nanoseconds of one clock.
    pub begin_ns: u64,
    /// When it ended, likewise.
    pub end_ns: u64,
    /// How.
    pub end: End,
    /// Whether it was begun as read-only.
    pub read_only: bool,
    /// What it did, as far as it came.
    pub operations: Vec<Operation>,
}

/// What an isolation level is worth, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Not even read committed.
    Nothing,
    /// Read committed.
    ReadCommitted,
    /// Snapshot isolation.
    Snapshot,
    /// Serializable.
    Serializable,
}

impl Level {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Nothing => "less than read committed",
            Level::ReadCommitted => "read committed",
            Level::Snapshot => "snapshot isolation",
            Level::Serializable => "serializable",
        }
    }
}

/// What a configured level has to be; none if nothing was asked for.
pub fn promised(isolation: Isolation) -> Option<Level> {
    match isolation {
        Isolation::Database => None,
        Isolation::ReadCommitted => Some(Level::ReadCommitted),
        Isolation::RepeatableRead => Some(Level::Snapshot),
        Isolation::Serializable => Some(Level::Serializable),
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// How often each anomaly was found.
    pub totals: BTreeMap<String, u64>,
    /// Some of them, told.
    pub examples: Vec<String>,
    /// How many dependencies there are between transactions.
    pub dependencies: u64,
}

impl Judgement {
    /// The best isolation that these anomalies allow.
    pub fn level(&self) -> Level {
        let of = |kind: &String| match kind.as_str() {
            "long fork (G2-item)" => Level::ReadCommitted,
            kind if kind.contains("(G-single)") => Level::ReadCommitted,
            kind if kind.contains("(G2") => Level::Snapshot,
            _ => Level::Nothing,
        };
        self.totals.keys().map(of).min().unwrap_or(Level::Serializable)
    }

    /// Adds what was found in another history.
    pub fn merge(&mut self, other: Judgement) {
        for example in other.examples {
            // One of each kind tells enough.
            let kind = |example: &str| example.split_once(": ").map(|(kind, _)| kind.to_owned());
            if !self.examples.iter().any(|known| kind(known) == kind(&example)) {
                self.examples.push(example);
            }
        }
        other.totals.into_iter().for_each(|(name, count)| *self.totals.entry(name).or_default() += count);
        self.dependencies += other.dependencies;
    }

    fn add(&mut self, kind: &str, example: impl FnOnce() -> String) {
        let count = self.totals.entry(kind.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            self.examples.push(format!("{kind}: {}", example()));
        }
    }
}

/// Judges attempts, given what every list held when all was over; lists that are not named were
/// empty.
pub fn judge(attempts: &[Attempt], last: &BTreeMap<u64, Vec<u64>>) -> Judgement {
    let mut judgement = Judgement::default();
    let mut writers: BTreeMap<u64, usize> = BTreeMap::new();
    for (number, attempt) in attempts.iter().enumerate() {
        for operation in &attempt.operations {
            if let Operation::Append(_, appended) = operation {
                writers.insert(*appended, number);
            }
        }
    }
    let ends = |number: &u64| writers.get(number).map(|&writer| attempts[writer].end);
    let empty = Vec::new();
    for (list, numbers) in last {
        let mut seen = BTreeSet::new();
        for number in numbers {
            if !seen.insert(number) {
                judgement.add("duplicate append", || format!("list {list} holds {number} twice"));
            }
            if ends(number) == Some(End::Aborted) {
                judgement.add("aborted append (G1a)", || {
                    format!("list {list} holds {number}, whose transaction was told to have failed")
                });
            }
        }
    }
    for attempt in attempts.iter().filter(|attempt| attempt.end == End::Committed) {
        for operation in &attempt.operations {
            match operation {
                Operation::Append(list, number) => {
                    if !last.get(list).unwrap_or(&empty).contains(number) {
                        judgement.add("lost append", || {
                            format!("{number} was appended to list {list} and acknowledged, and is not in it")
                        });
                    }
                }
                Operation::Read(list, numbers) => {
                    if let Some(number) = numbers.iter().find(|number| ends(number) == Some(End::Aborted)) {
                        judgement.add("aborted append (G1a)", || {
                            format!("{number}, whose transaction has failed, was read from list {list}")
                        });
                    } else if !last.get(list).unwrap_or(&empty).starts_with(numbers) {
                        judgement.add("incompatible order", || {
                            format!("list {list} was read as {numbers:?}, and in the end did not begin so")
                        });
                    }
                }
            }
        }
    }
    if judgement.totals.is_empty() {
        cycles(attempts, last, &writers, &mut judgement);
    }
    judgement
}

/// Looks for cycles in a history whose lists make sense.
fn cycles(
    attempts: &[Attempt],
    last: &BTreeMap<u64, Vec<u64>>,
    writers: &BTreeMap<u64, usize>,
    judgement: &mut Judgement,
) {
    let column = TableId(0).row();
    let id = |number: usize| TxnId { number: number as u64 + 1, coordinator: ShardId(0) };
    let installs = last.iter().flat_map(|(list, numbers)| {
        (1..).zip(numbers).filter_map(move |(position, number)| {
            let txn = id(*writers.get(number)?);
            Some(Install { txn, column, key: Key::of_u64(*list), stamp: Timestamp(position), delete: false })
        })
    });
    let appended = |attempt: &Attempt| {
        attempt.operations.iter().any(|operation| match operation {
            Operation::Append(list, number) => last.get(list).is_some_and(|numbers| numbers.contains(number)),
            Operation::Read(..) => false,
        })
    };
    let transactions = attempts.iter().enumerate().filter(|(_, attempt)| match attempt.end {
        End::Committed => true,
        // Something of it is there, so it did commit; what it has read came before that.
        End::Unknown => appended(attempt),
        End::Aborted => false,
    });
    let transactions = transactions.map(|(number, attempt)| Transaction {
        id: id(number),
        label: if attempt.read_only { "read" } else { "append" },
        read_only: attempt.read_only,
        timestamp: None,
        session: attempt.session,
        begin: attempt.begin_ns,
        end: attempt.end_ns,
        writes: None,
        reads: attempt
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Read(list, numbers) => Some(Read {
                    column,
                    key: Key::of_u64(*list),
                    version: Version::At(Timestamp(numbers.len() as u64)),
                }),
                Operation::Append(..) => None,
            })
            .collect(),
        scans: Vec::new(),
    });
    let history = History { transactions: transactions.collect(), installs: vec![installs.collect()] };
    let report = check(&history, Options::default(), &|_| "list".to_owned());
    judgement.dependencies = report.edges;
    for (kind, total) in &report.totals {
        judgement.totals.insert((*kind).to_owned(), *total);
    }
    for violation in &report.violations {
        let told = judgement.examples.iter().any(|example| example.starts_with(violation.kind));
        if !told {
            judgement.examples.push(violation.to_string());
        }
    }
}

/// The history as other judges of lists read it (Elle and its kin): two lines of JSON for each
/// attempt, when it began and how it ended.
pub fn lines(attempts: &[Attempt]) -> String {
    let mut events: Vec<(u64, bool, &Attempt)> = attempts
        .iter()
        .flat_map(|attempt| [(attempt.begin_ns, false, attempt), (attempt.end_ns, true, attempt)])
        .collect();
    events.sort_by_key(|&(time_ns, ended, attempt)| (time_ns, ended, attempt.session));
    let mut text = String::new();
    for (index, (time_ns, ended, attempt)) in events.into_iter().enumerate() {
        let (kind, known) = match (ended, attempt.end) {
            (false, _) => ("invoke", false),
            (true, End::Committed) => ("ok", true),
            (true, End::Aborted) => ("fail", false),
            (true, End::Unknown) => ("info", false),
        };
        let value = attempt.operations.iter().map(|operation| match operation {
            Operation::Append(list, number) => format!(r#"["append",{list},{number}]"#),
            Operation::Read(list, numbers) if known => format!(r#"["r",{list},{numbers:?}]"#),
            Operation::Read(list, _) => format!(r#"["r",{list},null]"#),
        });
        let value = value.collect::<Vec<_>>().join(",");
        let _ = writeln!(
            text,
            r#"{{"index":{index},"type":"{kind}","f":"txn","process":{},"time":{time_ns},"value":[{value}]}}"#,
            attempt.session
        );
    }
    text
}

#[cfg(test)]
mod tests {
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
        let read = |list, numbers: &[u64]| Read(list, numbers.to_vec());
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
            (
                "duplicate append",
                Level::Nothing,
                vec![(Committed, vec![Append(0, 1)])],
                vec![(0, vec![1, 1])],
            ),
        ];
        for (name, level, attempts, last) in &cases {
            let attempts: Vec<_> = attempts.iter().map(|(end, operations)| (*end, &operations[..])).collect();
            let last: Vec<_> = last.iter().map(|(list, numbers)| (*list, &numbers[..])).collect();
            assert_eq!(judged(&attempts, &last), (vec![(*name).to_owned()], *level));
        }
    }

    #[test]
    fn what_nobody_knows_may_have_happened() {
        let none: (Vec<String>, Level) = (Vec::new(), Level::Serializable);
        assert_eq!(judged(&[(Unknown, &[Append(0, 1)])], &[]), none);
        assert_eq!(judged(&[(Unknown, &[Append(0, 1)])], &[(0, &[1])]), none);
        assert_eq!(judged(&[(Aborted, &[Append(0, 1)]), (Committed, &[Read(0, vec![])])], &[]), none);
        assert_eq!(
            judged(&[(Committed, &[Append(0, 1)]), (Committed, &[Read(0, vec![1])])], &[(0, &[1])]),
            none
        );
    }
}
