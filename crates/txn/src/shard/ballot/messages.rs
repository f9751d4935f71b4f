//! What is said about votes, and how it travels.

use plimsoll_types::{ShardId, Timestamp, TxnId};

use crate::fetched::ReadRef;
use crate::trace::About;
use crate::work::Packed;

/// A shard's vote on a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// To commit, with no smaller stamp than this.
    Record(Timestamp),
    /// To abort.
    Refuse,
}

/// What all votes together come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All were RECORD, and this is the largest of their stamps.
    Committed(Timestamp),
    /// One was REFUSE.
    Aborted,
}

/// What is asked of those who vote.
#[derive(Debug)]
pub enum Request {
    /// All locks are held and the stamp is final.
    Record {
        /// The transaction.
        txn: TxnId,
        /// Its stamp.
        stamp: Timestamp,
        /// What it writes here.
        writes: Packed,
        /// What it has read here and not locked: to be validated first.
        reads: Vec<ReadRef>,
        /// The shards that it writes, which all vote, and the lives in which they hold its locks.
        voters: Vec<(ShardId, u64)>,
    },
    /// The outcome, which will be acknowledged.
    Outcome {
        /// The transaction.
        txn: TxnId,
        /// What has become of it.
        outcome: Outcome,
    },
    /// From a coordinator: the vote.
    Ask(TxnId),
    /// From another who votes: the vote, to be [`Request::Told`].
    Inquire {
        /// The transaction.
        txn: TxnId,
        /// The outcome, if the one who asks knows it.
        outcome: Option<Outcome>,
        /// To be promised: not to commit unless somebody knows that it is committed. The
        /// coordinator's life is over, and this is the first number of its present one.
        doubt: Option<u64>,
    },
    /// Answers [`Request::Inquire`].
    Told {
        /// The transaction.
        txn: TxnId,
        /// The vote.
        vote: Vote,
        /// The outcome, if the one who answers knows it.
        outcome: Option<Outcome>,
        /// Whether it has promised.
        promised: bool,
    },
    /// From a coordinator: a vote is lost. The outcome, or the promise of [`Request::Inquire`].
    Doubt(TxnId),
    /// To a coordinator that says nothing: what is settled?
    Remind,
    /// From a coordinator: what it will not ask for any more.
    Settled {
        /// The first number of its present life.
        first: u64,
        /// All attempts below are settled.
        below: u64,
    },
}

/// What those who vote answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The vote.
    Vote(Vote),
    /// The outcome, if it is known.
    Outcome(Option<Outcome>),
}

impl Request {
    /// What it is about, for whoever watches.
    pub(crate) fn about(&self) -> About {
        match self {
            Request::Record { txn, writes, .. } => {
                let writes = writes.iter().map(|(column, key, _)| (column, key));
                About::new("RECORD", Some(*txn)).writes(writes)
            }
            Request::Outcome { txn, outcome: Outcome::Committed(_) } => About::new("COMMIT", Some(*txn)),
            Request::Outcome { txn, outcome: Outcome::Aborted } => About::new("ABORT", Some(*txn)),
            Request::Ask(txn) => About::new("ASK", Some(*txn)),
            Request::Inquire { txn, .. } => About::new("INQUIRE", Some(*txn)),
            Request::Told { txn, .. } => About::new("TOLD", Some(*txn)),
            Request::Doubt(txn) => About::new("DOUBT", Some(*txn)),
            Request::Remind => About::new("REMIND", None),
            Request::Settled { .. } => About::new("SETTLED", None),
        }
    }
}

impl Reply {
    /// It in a word, for whoever watches.
    pub(crate) fn answer(&self) -> &'static str {
        match self {
            Reply::Vote(Vote::Record(_)) => "record",
            Reply::Vote(Vote::Refuse) => "refuse",
            Reply::Outcome(Some(_)) => "known",
            Reply::Outcome(None) => "in doubt",
        }
    }
}

plimsoll_types::wire!(
    enum Vote {
        Record(stamp) = 0,
        Refuse = 1,
    }
);

plimsoll_types::wire!(
    enum Outcome {
        Committed(stamp) = 0,
        Aborted = 1,
    }
);

plimsoll_types::wire!(enum Request {
    Record { txn, stamp, writes, reads, voters } = 0,
    Outcome { txn, outcome } = 1,
    Ask(txn) = 2,
    Inquire { txn, outcome, doubt } = 3,
    Told { txn, vote, outcome, promised } = 4,
    Remind = 5,
    Settled { first, below } = 6,
    Doubt(txn) = 7
});

plimsoll_types::wire!(
    enum Reply {
        Vote(vote) = 0,
        Outcome(outcome) = 1,
    }
);
