//! Does the order agree with what clients could observe?
//!
//! Serializability alone allows a reader to be arbitrarily stale. Two stronger promises concern the
//! clock:
//!
//! * **Real time**: whoever begins after an RW was answered sees what it did. With scalar
//!   timestamps it gets no smaller one than every RW answered before it began. Under DST in one
//!   process this holds exactly, because an answer leaves only when the clock has reached the
//!   timestamp. Between processes whose clocks differ by ε it does not hold, and is not to be
//!   checked.
//! * **Sessions**: the same within one session, and after ROs as well. That is to read one's own
//!   writes, and not to read what is older than what one has read.
//!
//! Equal ones are in order. Of transactions with one timestamp, those that write depend on none of
//! the others (a dependency would have made it larger, which the replay checks), and those that
//! only read may depend on those that write, but not the other way round. So whatever order they
//! had in time can be theirs: a cycle would have to go from one that was answered to one that began
//! later, or from a writer to a reader that saw it, which ended later than the writer began; and so
//! on for ever later.
//!
//! Example: T1 commits at @5 and is answered at 40 ns; at 50 ns an RO begins with snapshot @3. It
//! is a consistent snapshot, and one without T1: a real-time violation.
//!
//! Both are found in one pass over the answers in their order, with a running maximum. Without
//! scalar timestamps there is nothing to compare; `graph.rs` adds the order of time to the graph
//! instead.

use plimsoll_types::Timestamp;

use crate::index::Index;
use crate::report::Report;
use crate::words::Words;

/// Transactions in the order of their answers.
pub(crate) struct Answers {
    order: Vec<u32>,
    /// The place of the last one that the one at a place comes after, in time.
    before: Vec<Option<usize>>,
}

impl Answers {
    /// All recorded transactions. A transaction that begins in the very nanosecond of an answer
    /// overlaps it: two readings of a clock on two threads say no more.
    pub fn of_all(index: &Index) -> Answers {
        let order = ordered(index, (0..index.history.transactions.len() as u32).collect());
        let of = |txn: u32| &index.history.transactions[txn as usize];
        let ends: Vec<u64> = order.iter().map(|&txn| of(txn).end).collect();
        let before = |(at, &txn): (usize, &u32)| {
            ends.partition_point(|&end| end < of(txn).begin).min(at).checked_sub(1)
        };
        Answers { before: order.iter().enumerate().map(before).collect(), order }
    }

    /// The transactions of each session, sessions in ascending order. One follows another, whatever
    /// is recorded as its beginning: that of a stale snapshot may lie further back.
    pub fn by_session(index: &Index) -> Vec<Answers> {
        let session = |txn: u32| index.history.transactions[txn as usize].session;
        let mut all: Vec<u32> = (0..index.history.transactions.len() as u32).collect();
        all.sort_by_key(|&txn| session(txn));
        let of_one = |txns: &[u32]| Answers {
            order: ordered(index, txns.to_vec()),
            before: (0..txns.len()).map(|at| at.checked_sub(1)).collect(),
        };
        all.chunk_by(|&a, &b| session(a) == session(b)).map(of_one).collect()
    }

    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The place of the last answer that the transaction at a place comes after.
    pub fn before(&self, at: usize) -> Option<usize> {
        self.before[at]
    }

    /// Calls `found` with (earlier, later) for each transaction whose timestamp does not follow on
    /// those answered before it, among the ones that `counts`.
    fn compare(&self, index: &Index, counts: impl Fn(u32) -> bool, mut found: impl FnMut(u32, u32)) {
        let of = |txn: u32| &index.history.transactions[txn as usize];
        let timestamp = |txn: u32| of(txn).timestamp.unwrap_or(Timestamp::ZERO);
        // The largest timestamp up to each place.
        let mut largest: Vec<Option<u32>> = Vec::with_capacity(self.order.len());
        let mut so_far: Option<u32> = None;
        for &txn in &self.order {
            if counts(txn) && so_far.is_none_or(|so_far| timestamp(so_far) < timestamp(txn)) {
                so_far = Some(txn);
            }
            largest.push(so_far);
        }
        for (at, &txn) in self.order.iter().enumerate() {
            let earlier = self.before(at).and_then(|before| largest[before]);
            if let (Some(earlier), Some(own)) = (earlier, of(txn).timestamp)
                && timestamp(earlier) > own
            {
                found(earlier, txn);
            }
        }
    }
}

/// By their answers; where these are of one moment, as recorded.
fn ordered(index: &Index, mut transactions: Vec<u32>) -> Vec<u32> {
    transactions.sort_unstable_by_key(|&txn| (index.history.transactions[txn as usize].end, txn));
    transactions
}

/// Whatever begins after an RW was answered is ordered after it.
pub(crate) fn check_realtime(index: &Index, words: &Words, report: &mut Report) {
    let read_write = |txn: u32| !index.history.transactions[txn as usize].read_only;
    Answers::of_all(index).compare(index, read_write, |earlier, later| {
        let begin = index.history.transactions[later as usize].begin;
        report.add("real-time order violated", || {
            tell(index, words, earlier, later, &format!("began at {begin} ns"))
        });
    });
}

/// The transactions of a session are ordered as it ran them.
pub(crate) fn check_sessions(index: &Index, words: &Words, report: &mut Report) {
    for answers in Answers::by_session(index) {
        answers.compare(
            index,
            |_| true,
            |earlier, later| {
                report.add("session order violated", || {
                    tell(index, words, earlier, later, "followed in the same session")
                });
            },
        );
    }
}

fn tell(index: &Index, words: &Words, earlier: u32, later: u32, what: &str) -> String {
    words.begin();
    let end = index.history.transactions[earlier as usize].end;
    let (before, after, again) = (words.txn(earlier), words.txn(later), words.txn(earlier));
    format!(
        "{before} was answered at {end} ns, and {after} {what}, but its timestamp is smaller than that of {again}"
    )
}
