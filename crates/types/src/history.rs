//! What is recorded about a run, and by whom.
//!
//! Two witnesses report independently. Each *coordinator* reports the transactions that it answered
//! as committed: what they read, in which version, and when. Each *shard* reports the versions that
//! it installed, in the order in which it did so. Neither knows what the other says, and the
//! checker holds one against the other.
//!
//! A record's versions are the initial one, present or absent, followed by its installs in the
//! order of its shard. A version is identified within its record by its stamp. Nothing is said
//! about which rows the initial load contains: a row read at [`Timestamp::ZERO`] was loaded, and of
//! a row that nobody read in its initial version nothing is known.
//!
//! What belongs into a history and what does not:
//!
//! * Aborted attempts are left out, with all they read.
//! * A read answered from the transaction's own buffered writes is left out, in scans as well: it
//!   depends on nothing.
//! * A record installed several times by one transaction is installed once, in its last state.
//! * Recording begins with the initial load and misses nothing, so that every version read is
//!   known.

use std::collections::BTreeMap;

use crate::{ColumnGroup, Key, Timestamp, TxnId};

/// Everything recorded about one run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The committed transactions, in any order.
    pub transactions: Vec<Transaction>,
    /// One list per shard: what it installed, in the order in which it installed. A record belongs
    /// to one shard, so that its order of versions is exact.
    pub installs: Vec<Vec<Install>>,
}

/// One committed transaction, recorded by its coordinator.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// The attempt that committed.
    pub id: TxnId,
    /// What it does, e.g. `"payment"`; only for people.
    pub label: &'static str,
    /// Whether it ran as a read-only transaction. An RO sees the versions up to and including its
    /// timestamp, an RW depends only on those below its own.
    pub read_only: bool,
    /// The commit timestamp of an RW, the snapshot of an RO; `None` under schemes without a scalar
    /// order.
    pub timestamp: Option<Timestamp>,
    /// Whom it was run for. Transactions of one session follow one another.
    pub session: u32,
    /// When it was invoked, in nanoseconds of a clock that all transactions share.
    pub begin: u64,
    /// When it was answered, on the same clock; not before `begin`.
    pub end: u64,
    /// How many records it installed on all shards together, if its coordinator counted them.
    pub writes: Option<u32>,
    /// Its point reads. The same record may occur more than once.
    pub reads: Vec<Read>,
    /// Its range scans.
    pub scans: Vec<ScanRead>,
}

/// A point read: one record, one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Table and column group of the record.
    pub column: ColumnGroup,
    /// Key of the record.
    pub key: Key,
    /// What was found.
    pub version: Version,
}

crate::wire!(struct Read { column, key, version });

/// Which version was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// No row: it never existed, or the version read is a tombstone. Which of the two is not known.
    Absent,
    /// The live row with this stamp; [`Timestamp::ZERO`] is the initial load's.
    At(Timestamp),
}

crate::wire!(
    enum Version {
        Absent = 0,
        At(stamp) = 1,
    }
);

/// A range scan: every row of the range that is not in `rows` was seen as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRead {
    /// Table and column group scanned.
    pub column: ColumnGroup,
    /// The first key of the range.
    pub low: Key,
    /// The first key beyond the range, `None` if it has no end. A scan that stopped early, because
    /// it had as many rows as it wanted, covers only the keys up to where it stopped.
    pub high: Option<Key>,
    /// The live rows seen, each with its stamp, in any order.
    pub rows: Vec<(Key, Timestamp)>,
}

crate::wire!(struct ScanRead { column, low, high, rows });

/// A version installed, recorded by the record's shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The transaction that wrote it.
    pub txn: TxnId,
    /// Table and column group of the record.
    pub column: ColumnGroup,
    /// Key of the record.
    pub key: Key,
    /// The version's name within the record. Under a scalar scheme, its writer's commit timestamp.
    pub stamp: Timestamp,
    /// Whether the version is a tombstone.
    pub delete: bool,
}

crate::wire!(struct Install { txn, column, key, stamp, delete });

/// An attempt of a session, as far as [`events`] need it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Whose it was.
    pub session: u32,
    /// When it began, in nanoseconds of one clock.
    pub begin_ns: u64,
    /// When it ended, likewise.
    pub end_ns: u64,
    /// Whether it committed.
    pub committed: bool,
}

/// The beginnings and ends of attempts in the order in which a history in lines has them: the place
/// of the attempt, and whether it is its end. Those of a session have to be in its order.
///
/// They are in the order of time, and each session's are in its own order, even where an attempt
/// takes no time or the next one begins in the very nanosecond in which it ends. What different
/// sessions do in one nanosecond counts as concurrent, for the clock does not tell its order:
/// beginnings come first and commits last, but for what a session does after it has committed.
pub fn events(spans: impl IntoIterator<Item = Span>) -> Vec<(usize, bool)> {
    let mut events = Vec::new();
    // What each session did last: when, and its rank among what happened then.
    let mut last: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (at, span) in spans.into_iter().enumerate() {
        for (time_ns, ended) in [(span.begin_ns, false), (span.end_ns, true)] {
            let rank = match (ended, span.committed) {
                (false, _) => 0,
                (true, false) => 1,
                (true, true) => 1 << 32,
            };
            let before = last.get(&span.session).filter(|(before_ns, _)| *before_ns == time_ns);
            let rank = before.map_or(rank, |(_, before)| rank.max(before + 1));
            last.insert(span.session, (time_ns, rank));
            events.push((time_ns, rank, span.session, at, ended));
        }
    }
    events.sort_unstable();
    events.into_iter().map(|(.., at, ended)| (at, ended)).collect()
}

/// Leaves what was installed in tables with a copy on every shard to the first of these shards, for
/// a checker that knows one place for each record. Returns the shards, by their position, whose
/// copies have not got the same versions in the same order as the first.
pub fn of_one_copy(installs: &mut [Vec<Install>], copied: impl Fn(ColumnGroup) -> bool) -> Vec<usize> {
    let versions = |installs: &[Install]| {
        let mut versions: Vec<Install> =
            installs.iter().filter(|install| copied(install.column)).cloned().collect();
        versions.sort_by(|a, b| (a.column, &a.key).cmp(&(b.column, &b.key)));
        versions
    };
    let Some((first, others)) = installs.split_first_mut() else { return Vec::new() };
    let first = versions(first);
    let mut differ = Vec::new();
    for (position, other) in (1..).zip(others) {
        if versions(other) != first {
            differ.push(position);
        }
        other.retain(|install| !copied(install.column));
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts of sessions (session, begin, end, committed) in the order of a history in lines:
    /// `b2` is the beginning of the third, `e2` its end.
    fn lines(attempts: &[(u32, u64, u64, bool)]) -> String {
        let span = |&(session, begin_ns, end_ns, committed)| Span { session, begin_ns, end_ns, committed };
        let word = |(at, ended)| format!("{}{at}", if ended { "e" } else { "b" });
        events(attempts.iter().map(span)).into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_attempt_begins_before_it_ends_and_a_session_does_one_after_the_other() {
        // One that takes no time, after one that ended in the same nanosecond.
        assert_eq!(lines(&[(1, 5, 5, true)]), "b0 e0");
        assert_eq!(lines(&[(1, 3, 5, true), (1, 5, 5, true), (1, 5, 9, true)]), "b0 e0 b1 e1 b2 e2");
        assert_eq!(lines(&[(1, 3, 5, false), (1, 5, 5, false), (1, 5, 5, true)]), "b0 e0 b1 e1 b2 e2");
        assert_eq!(lines(&[(1, 5, 5, true), (1, 5, 5, false), (1, 5, 6, true)]), "b0 e0 b1 e1 b2 e2");
    }

    #[test]
    fn what_sessions_do_in_one_nanosecond_is_concurrent() {
        assert_eq!(lines(&[(1, 3, 5, true), (2, 5, 8, true)]), "b0 b1 e0 e1");
        assert_eq!(lines(&[(1, 5, 5, true), (2, 5, 5, true)]), "b0 b1 e0 e1");
        assert_eq!(lines(&[(2, 5, 6, true), (1, 3, 5, false), (1, 5, 5, true)]), "b1 b0 e1 b2 e2 e0");
    }
}
