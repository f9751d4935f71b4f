//! The messages about votes, and their encoding.

use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::fetched::ReadRef;
use crate::trace::About;
use crate::work::Packed;

/// A shard's vote on a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vote {
    /// To commit, with this stamp or a larger one.
    Record(Timestamp),
    /// To abort.
    Refuse,
}

/// The result of all votes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All were RECORD, and this is the largest of their stamps.
    Committed(Timestamp),
    /// One was REFUSE.
    Aborted,
}

/// Requests to voters, and from them.
#[derive(Debug)]
pub enum Request {
    /// All locks are held and the stamp is final.
    Record {
        /// The transaction.
        txn: TxnId,
        /// Its stamp, final.
        stamp: Timestamp,
        /// Its writes on this shard.
        writes: Packed,
        /// Its reads on this shard that it has not locked: this shard validates them first.
        reads: Vec<ReadRef>,
        /// The shards that it writes, which all vote, and the lives in which they hold its locks.
        voters: Vec<(ShardId, u64)>,
    },
    /// From a coordinator: the outcome, which the voter acknowledges.
    Outcome {
        /// The transaction.
        txn: TxnId,
        /// The outcome.
        outcome: Outcome,
    },
    /// From a coordinator: asks for the vote.
    Ask(TxnId),
    /// From another voter: asks for the vote, which [`Request::Told`] answers.
    Inquire {
        /// The transaction.
        txn: TxnId,
        /// The outcome, if the sender knows it.
        outcome: Option<Outcome>,
        /// Asks for a promise: not to commit unless a voter knows that the transaction is
        /// committed. The coordinator's life is over, and this is the first number of its present
        /// one.
        doubt: Option<u64>,
    },
    /// Answers [`Request::Inquire`].
    Told {
        /// The transaction.
        txn: TxnId,
        /// The vote.
        vote: Vote,
        /// The outcome, if the sender knows it.
        outcome: Option<Outcome>,
        /// Whether the sender has given the promise of [`Request::Inquire`].
        promised: bool,
    },
    /// From a coordinator: a vote is lost. Asks for the outcome if it is known, and else for the
    /// promise of [`Request::Inquire`].
    Doubt(TxnId),
    /// To a silent coordinator: asks which attempts are settled.
    Remind,
    /// From a coordinator: the attempts that it will not ask about any more.
    Settled {
        /// The first number of its present life.
        first: u64,
        /// All its attempts below this number are settled.
        below: u64,
    },
}

/// The answers of voters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The vote.
    Vote(Vote),
    /// The outcome, if it is known.
    Outcome(Option<Outcome>),
    /// The vote is REFUSE, because the stamp is too far ahead of the voter's clock.
    ClockAhead,
    /// The vote is REFUSE, because the voter has no memory for what would be written.
    Full(Abort),
}

impl Request {
    /// What the request is about, for the trace.
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
    /// The answer in a word, for the trace.
    pub(crate) fn answer(&self) -> &'static str {
        match self {
            Reply::Vote(Vote::Record(_)) => "record",
            Reply::Vote(Vote::Refuse) | Reply::ClockAhead | Reply::Full(_) => "refuse",
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
        ClockAhead = 2,
        Full(why) = 3,
    }
);
