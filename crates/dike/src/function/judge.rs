//! The judge of a history of lists.
//!
//! A list that was read after everything is over gives the order of all appends to it. Appends of
//! one transaction to one list that follow one another are one version of it, and a list that is
//! read is the version that its length says. What a transaction has appended itself is no part of
//! what it reads from others. That is a history with named versions, which `plimsoll-checker`
//! judges: dependencies, cycles, and a name for each cycle by its anti-dependencies. What cannot be
//! put in such terms comes first:
//!
//! * *lost append*: its transaction is committed, and it is nowhere;
//! * *not atomic*: the same, of a transaction in doubt of which something else is there;
//! * *aborted append (G1a)*: its transaction was told to have failed, and it is there, or was read;
//! * *intermediate append (G1b)*: it was read without what its transaction appended to the same
//!   list afterwards;
//! * *duplicate append*: it is there twice;
//! * *append of nobody*: it is in a list, and no transaction has appended it there;
//! * *incompatible order*: a list was read that is not the beginning of what it became, or two
//!   appends of one transaction are in the wrong order;
//! * *own append not read*: a transaction has read a list without what it had appended to it;
//! * *own append read too early*: or with what it appended to it only afterwards.
//!
//! A transaction in doubt is committed if a number of its own is in a list in the end, or was read
//! by a transaction that is committed. Then all that it has appended must be there, as if it had
//! been acknowledged, and what it has read counts. If nothing of it was seen, it may have aborted.
//!
//! *A lost number* has no place in the order of its list. But lists only grow: a transaction that
//! has read the list without the number comes before the number's transaction, one that has read it
//! with the number comes after. So each lost number is a record of its own, absent and then
//! present. A transaction in doubt appends 1 to x and 2 to y; x becomes `[1]`, y stays empty, and
//! another transaction has read both so. The number in x proves the commit, 2 is lost, and the
//! other transaction is a fractured read besides.
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

use std::collections::BTreeMap;

use plimsoll_checker::{Options, check};
use plimsoll_types::history::{History, Install, Read, Transaction, Version};
use plimsoll_types::{Key, ShardId, TableId, Timestamp, TxnId};

use super::attempts::{Attempt, End, Operation};
use crate::target::Isolation;

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

/// The name of an append that is nowhere although its transaction is committed.
const LOST: &str = "lost append";
/// The same, if another append of a transaction in doubt is there.
const NOT_ATOMIC: &str = "not atomic";
/// A list was read that is not the beginning of what it became.
const INCOMPATIBLE: &str = "incompatible order";
/// The transaction of an append was told to have failed.
const ABORTED: &str = "aborted append (G1a)";
/// No transaction has appended it.
const OF_NOBODY: &str = "append of nobody";

/// Judges attempts, given what every list held when all was over; lists that are not named were
/// empty.
pub fn judge(attempts: &[Attempt], last: &BTreeMap<u64, Vec<u64>>) -> Judgement {
    let mut judgement = Judgement::default();
    let lists = Lists::new(attempts, last);
    lists.check_ends(&mut judgement);
    for number in lists.committed() {
        lists.check_attempt(number, &mut judgement);
    }
    // What is lost leaves the other versions in order.
    let kinds = judgement.totals.keys();
    let ordered = kinds.map(String::as_str).all(|kind| matches!(kind, LOST | NOT_ATOMIC | INCOMPATIBLE));
    if ordered && lists.begin_as_read() {
        lists.check_cycles(&mut judgement);
    }
    judgement
}

/// A list that was read by an attempt, with what is known of it.
struct ListRead<'a> {
    list: u64,
    /// All that was read.
    numbers: &'a [u64],
    /// What others have appended, if it ends with what the attempt itself has appended so far.
    of_others: Option<&'a [u64]>,
}

/// Attempts, and what became of the lists.
struct Lists<'a> {
    attempts: &'a [Attempt],
    last: &'a BTreeMap<u64, Vec<u64>>,
    /// Which attempt has appended a number to a list, and as which of its appends to this list.
    writers: BTreeMap<(u64, u64), (usize, usize)>,
    /// Where a number is in a list in the end.
    places: BTreeMap<(u64, u64), usize>,
    /// What each attempt has appended to each list, in its order.
    appended: BTreeMap<(usize, u64), Vec<u64>>,
    /// Whether each attempt is committed: it was acknowledged, or it is in doubt and was seen.
    committed: Vec<bool>,
}

impl<'a> Lists<'a> {
    fn new(attempts: &'a [Attempt], last: &'a BTreeMap<u64, Vec<u64>>) -> Lists<'a> {
        let mut writers = BTreeMap::new();
        let mut appended: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
        for (number, attempt) in attempts.iter().enumerate() {
            for operation in &attempt.operations {
                if let Operation::Append(list, append) = operation {
                    let so_far = appended.entry((number, *list)).or_default();
                    writers.insert((*list, *append), (number, so_far.len()));
                    so_far.push(*append);
                }
            }
        }
        let place = |list: u64| move |(at, number): (usize, &u64)| ((list, *number), at);
        let places = last.iter().flat_map(|(list, numbers)| numbers.iter().enumerate().map(place(*list)));
        let committed = attempts.iter().map(|attempt| attempt.end == End::Committed).collect();
        let mut lists = Lists { attempts, last, writers, places: places.collect(), appended, committed };
        lists.find_proofs();
        lists
    }

    /// Finds the attempts in doubt that are committed, because something of them was seen.
    fn find_proofs(&mut self) {
        let mut seen: Vec<(u64, u64)> = self.places.keys().copied().collect();
        let mut open: Vec<usize> = self.committed().collect();
        loop {
            for number in seen.drain(..) {
                if let Some(&(writer, _)) = self.writers.get(&number)
                    && self.attempts[writer].end == End::Unknown
                    && !std::mem::replace(&mut self.committed[writer], true)
                {
                    open.push(writer);
                }
            }
            let Some(reader) = open.pop() else { break };
            for read in self.reads(reader) {
                seen.extend(read.numbers.iter().map(|number| (read.list, *number)));
            }
        }
    }

    /// The attempts that are committed.
    fn committed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.attempts.len()).filter(|&number| self.committed[number])
    }

    /// What an attempt has read.
    fn reads(&self, reader: usize) -> Vec<ListRead<'a>> {
        let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut reads = Vec::new();
        for operation in &self.attempts[reader].operations {
            match operation {
                Operation::Append(list, number) => own.entry(*list).or_default().push(*number),
                Operation::Read(list, numbers) => {
                    let of_others = numbers.strip_suffix(own.get(list).map_or(&[][..], Vec::as_slice));
                    reads.push(ListRead { list: *list, numbers, of_others });
                }
            }
        }
        reads
    }

    /// The end of the attempt that has appended this number to this list, if there is one.
    fn end(&self, list: u64, number: u64) -> Option<End> {
        self.writers.get(&(list, number)).map(|&(writer, _)| self.attempts[writer].end)
    }

    /// Whether a number that a committed attempt has appended to this list is not in it.
    fn is_lost(&self, list: u64, number: u64) -> bool {
        let committed = |&(writer, _): &(usize, usize)| self.committed[writer];
        !self.places.contains_key(&(list, number)) && self.writers.get(&(list, number)).is_some_and(committed)
    }

    /// What was read of others' appends, without those that are lost.
    fn kept(&self, list: u64, of_others: &[u64]) -> Vec<u64> {
        of_others.iter().copied().filter(|&number| !self.is_lost(list, number)).collect()
    }

    /// Looks at what lists held in the end.
    fn check_ends(&self, judgement: &mut Judgement) {
        for (list, numbers) in self.last {
            // How many of its appends each attempt has had so far.
            let mut newest: BTreeMap<usize, usize> = BTreeMap::new();
            for (at, number) in numbers.iter().enumerate() {
                if self.places[&(*list, *number)] != at {
                    judgement.add("duplicate append", || format!("list {list} holds {number} twice"));
                    continue;
                }
                let Some(&(writer, place)) = self.writers.get(&(*list, *number)) else {
                    judgement.add(OF_NOBODY, || {
                        format!("list {list} holds {number}, which nobody has appended to it")
                    });
                    continue;
                };
                if self.attempts[writer].end == End::Aborted {
                    judgement.add(ABORTED, || {
                        format!("list {list} holds {number}, whose transaction was told to have failed")
                    });
                }
                if newest.insert(writer, place).is_some_and(|before| before > place) {
                    judgement.add(INCOMPATIBLE, || {
                        format!("list {list} holds {number} behind what its transaction appended later")
                    });
                }
            }
        }
    }

    /// Looks at what a committed attempt has appended and read.
    fn check_attempt(&self, number: usize, judgement: &mut Judgement) {
        let attempt = &self.attempts[number];
        let appends = attempt.operations.iter().filter_map(|operation| match operation {
            Operation::Append(list, append) => Some((*list, *append)),
            Operation::Read(..) => None,
        });
        for (list, append) in appends.clone().filter(|&(list, append)| self.is_lost(list, append)) {
            let kept = appends.clone().find(|append| self.places.contains_key(append));
            match (attempt.end, kept) {
                (End::Unknown, Some((where_kept, kept))) => judgement.add(NOT_ATOMIC, || {
                    format!(
                        "list {where_kept} holds {kept}, so its transaction is committed, and {append}, which it \
                         appended to list {list}, is not in it"
                    )
                }),
                (End::Unknown, None) => judgement.add(LOST, || {
                    format!("{append} was appended to list {list} by a transaction that others saw, and is not in it")
                }),
                _ => judgement.add(LOST, || {
                    format!("{append} was appended to list {list} and acknowledged, and is not in it")
                }),
            }
        }
        for read in self.reads(number) {
            self.check_read(number, &read, judgement);
        }
    }

    fn check_read(&self, reader: usize, read: &ListRead<'_>, judgement: &mut Judgement) {
        let ListRead { list, numbers, of_others } = *read;
        let Some(of_others) = of_others else {
            return judgement.add("own append not read", || {
                format!("list {list} was read as {numbers:?} by a transaction that had just appended to it")
            });
        };
        let by_reader = |number: &&u64| self.writers.get(&(list, **number)).is_some_and(|it| it.0 == reader);
        if let Some(number) = of_others.iter().find(by_reader) {
            return judgement.add("own append read too early", || {
                format!("{number} was read from list {list} by the transaction that appended it afterwards")
            });
        }
        if let Some(number) = numbers.iter().find(|&&number| self.end(list, number) == Some(End::Aborted)) {
            return judgement.add(ABORTED, || {
                format!("{number}, whose transaction has failed, was read from list {list}")
            });
        }
        if let Some(number) = numbers.iter().find(|&&number| self.end(list, number).is_none()) {
            return judgement.add(OF_NOBODY, || {
                format!("{number} was read from list {list}, and nobody has appended it to that")
            });
        }
        if !self.numbers(list).starts_with(of_others) {
            return judgement.add(INCOMPATIBLE, || {
                format!("list {list} was read as {of_others:?}, and in the end did not begin so")
            });
        }
        let unread = |number: &u64| {
            let writer = self.writers[&(list, *number)].0;
            let later = self.appended[&(writer, list)].iter();
            let place = |later: &&u64| self.places.get(&(list, **later));
            later.clone().find(|later| place(later).is_some_and(|&place| place >= of_others.len()))
        };
        if let Some((number, later)) = of_others.iter().find_map(|number| Some((number, unread(number)?))) {
            judgement.add("intermediate append (G1b)", || {
                format!("{number} was read from list {list}, and {later} of the same transaction was not")
            });
        }
    }

    /// What a list held in the end.
    fn numbers(&self, list: u64) -> &'a [u64] {
        self.last.get(&list).map_or(&[], Vec::as_slice)
    }

    /// Whether every list, but for what is lost of it, was read as a beginning of what it became.
    fn begin_as_read(&self) -> bool {
        self.committed().flat_map(|reader| self.reads(reader)).all(|read| {
            read.of_others.is_some_and(|of_others| {
                self.numbers(read.list).starts_with(&self.kept(read.list, of_others))
            })
        })
    }

    /// Looks for cycles.
    fn check_cycles(&self, judgement: &mut Judgement) {
        let (of_lists, of_lost) = (TableId(0).row(), TableId(1).row());
        let id = |number: usize| TxnId { number: number as u64 + 1, coordinator: ShardId(0) };
        let lost: Vec<(u64, u64, usize)> = self
            .writers
            .iter()
            .filter(|&(&(list, number), _)| self.is_lost(list, number))
            .map(|(&(list, number), &(writer, _))| (list, number, writer))
            .collect();
        let lost_key =
            |list: u64, number: u64| Key::new(&[list.to_be_bytes(), number.to_be_bytes()].concat());
        let mut installs = Vec::new();
        for (list, numbers) in self.last {
            let writer = |number: &u64| self.writers[&(*list, *number)].0;
            let mut length = 0;
            for version in numbers.chunk_by(|one, next| writer(one) == writer(next)) {
                length += version.len();
                installs.push(Install {
                    txn: id(writer(&version[0])),
                    column: of_lists,
                    key: Key::of_u64(*list),
                    stamp: Timestamp(length as u64),
                    delete: false,
                });
            }
        }
        for &(list, number, writer) in &lost {
            let (txn, key) = (id(writer), lost_key(list, number));
            installs.push(Install { txn, column: of_lost, key, stamp: Timestamp(1), delete: false });
        }
        let read = |column, key, at: usize| Read { column, key, version: Version::At(Timestamp(at as u64)) };
        let reads = |reader: usize| {
            let mut reads = Vec::new();
            for ListRead { list, of_others, .. } in self.reads(reader) {
                let of_others = of_others.expect("lists make sense");
                reads.push(read(of_lists, Key::of_u64(list), self.kept(list, of_others).len()));
                for &(_, number, _) in lost.iter().filter(|it| it.0 == list && it.2 != reader) {
                    let seen = usize::from(of_others.contains(&number));
                    reads.push(read(of_lost, lost_key(list, number), seen));
                }
            }
            reads
        };
        let transactions = self.committed().map(|number| {
            let attempt = &self.attempts[number];
            Transaction {
                id: id(number),
                label: if attempt.read_only { "read" } else { "append" },
                read_only: attempt.read_only,
                timestamp: None,
                session: attempt.session,
                begin: attempt.begin_ns,
                end: attempt.end_ns,
                writes: None,
                reads: reads(number),
                scans: Vec::new(),
            }
        });
        let history = History { transactions: transactions.collect(), installs: vec![installs] };
        let name = |column| if column == of_lists { "list" } else { "lost append" }.to_owned();
        let report = check(&history, Options::default(), &name);
        judgement.dependencies = report.edges;
        for (kind, total) in &report.totals {
            *judgement.totals.entry((*kind).to_owned()).or_default() += *total;
        }
        for violation in &report.violations {
            if !judgement.examples.iter().any(|example| example.starts_with(violation.kind)) {
                judgement.examples.push(violation.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests;
