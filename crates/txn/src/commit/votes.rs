//! Atomic commit between processes: votes.
//!
//! The shards of one process share its fate, and what one sends to another arrives: a transaction
//! that holds all its locks, and whose reads are valid, is committed, and tells the others to
//! install. Between processes a channel can be reset and a process can end, so the shards that a
//! transaction writes *vote*. A vote is the first of two entries that a shard makes for a
//! transaction:
//!
//! * RECORD, if the transaction owns its locks there: a stamp, the writes, and who else votes;
//! * REFUSE, in every other state.
//!
//! The transaction is committed if all votes are RECORD, and aborted if one is REFUSE. Its stamp is
//! the largest of those in the votes: under 2PL they are all the one that the coordinator has
//! chosen, under client-driven two-phase commit each is what that shard needs
//! ([`crate::protocols::Client2pc`]), and so under OCC if the coordinator's shard votes last, with
//! the largest. There is no other record of it, and so the rules are few:
//!
//! 1. A coordinator may give up alone until it has sent its first RECORD, or as long as its own
//!    shard has not voted. From
//!    then on it *asks*: silence says nothing.
//! 2. Whoever is asked and has not voted refuses, and drops the transaction's locks.
//! 3. A shard whose locks are held by a transaction that has not voted refuses after a while by
//!    itself
//!    ([`PATIENCE_NS`]), so that a dead coordinator leaves no lock behind. After RECORD it may not:
//!    it asks the others.
//! 4. A vote is kept until everybody who votes knows the outcome and the coordinator will not ask
//!    again.
//!
//! Example. T writes on A and B and has locked both. RECORD reaches A; the channel to B is reset.
//! After a while B refuses, by itself or because A or T's coordinator asks. A had voted RECORD and
//! hears of B's refusal: it aborts. Had B voted and only its answer been lost, everybody who asks
//! would hear RECORD and commit.
//!
//! A shard that is written alone decides alone, and installs when it votes.
//!
//! *Forgetting.* A coordinator knows the least number of an attempt of its own that is not settled,
//! and tells those who may hold votes now and then ([`Request::Settled`]): all below is forgotten.
//! Numbers grow with the clock from process to process, so a coordinator that has begun a new life
//! says the same of its former ones, with one difference: not everybody need have heard of their
//! outcomes. Those who know one tell the others, and forget when all know.
//!
//! *Lives.* A process that ends takes its data and its votes with it, and a process that is started
//! again is another: it must not be asked how its former life has voted, and rows have other places
//! there. A channel connects two lives, so whoever sends knows whom it reaches
//! ([`plimsoll_runtime::Participant::connected`]); a transaction notes the life in which it met a
//! shard, and those who vote are named with theirs. A vote that was lost with its life is replaced
//! by what the others know. If nobody knows the outcome the transaction is aborted, under two
//! conditions: its coordinator has lost the vote itself, or its life is over as well; and all
//! others have promised not to commit any more because of what they were told before.
//!
//! What is said and what is kept of it is in [`crate::ballot`], what a coordinator does in
//! `coordinator`; here is what a shard does that votes. Votes are entries of a log in memory, and
//! the shard is all its replicas. Left out, therefore: terms, and what a promoted backup does.

mod coordinator;

use plimsoll_runtime::Handled;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{ShardId, Timestamp, TxnId};

use crate::ballot::{Doubt, Outcome, Reply, Request, State, Vote};
use crate::fetched::ReadRef;
use crate::protocol::Interactive;
use crate::service::Service as _;
use crate::work::Packed;
pub(crate) use coordinator::{ask, conclude, decide, needed, voters};

/// How long a shard waits for word of a transaction that holds locks there before it does something
/// about it, in nanoseconds.
pub const PATIENCE_NS: u64 = 1_000_000_000;

/// A protocol whose transactions vote, as its participants are seen from here.
pub(crate) trait Voter: Interactive {
    /// Whether the transaction owns the locks here that it was granted, and what it has read
    /// without locking it is still current; pins that.
    fn ready(&mut self, txn: TxnId, stamp: Timestamp, reads: &[ReadRef]) -> bool;

    /// Installs the writes and drops the locks.
    fn install(&mut self, txn: TxnId, stamp: Timestamp, writes: &Packed);

    /// Drops the locks.
    fn release(&mut self, txn: TxnId);
}

/// Handles a request.
pub(crate) fn handle<P: Voter>(node: &mut P, from: ShardId, request: &mut Request) -> Handled<Reply> {
    match request {
        Request::Record { txn, stamp, writes, reads, voters } => {
            let (writes, voters) = (std::mem::take(writes), std::mem::take(voters));
            Handled::Reply(Reply::Vote(record(node, *txn, *stamp, writes, reads, voters)))
        }
        Request::Outcome { txn, outcome } => {
            let votes = &node.base().votes;
            let recorded = matches!(votes.state(*txn), Some(State::Recorded { .. }));
            // Somebody was promised that the word of a coordinator whose life is over comes too
            // late.
            Handled::Reply(Reply::Outcome(
                match *outcome != Outcome::Aborted && recorded && votes.fenced(*txn) {
                    true => None,
                    false => Some(learn(node, *txn, *outcome).unwrap_or(*outcome)),
                },
            ))
        }
        Request::Doubt(txn) => {
            vote(node, *txn);
            Handled::Reply(Reply::Outcome(promise(node, *txn)))
        }
        Request::Ask(txn) => Handled::Reply(Reply::Vote(vote(node, *txn))),
        Request::Inquire { txn, outcome: known, doubt } => {
            if let Some(first) = *doubt {
                node.base().votes.hear_settled(txn.coordinator, first, 0);
                promise(node, *txn);
            }
            if let Some(outcome) = *known {
                learn_from_voter(node, *txn, outcome);
            }
            let vote = match known {
                // Whoever has forgotten knew.
                Some(_) if node.base().votes.state(*txn).is_none() => Vote::Refuse,
                _ => vote(node, *txn),
            };
            let votes = &mut node.base().votes;
            let outcome = match votes.state(*txn) {
                Some(state) => state.outcome(),
                None => *known,
            };
            let promised = doubt.is_some();
            votes.send(from, Request::Told { txn: *txn, vote, outcome, promised });
            Handled::Done
        }
        Request::Told { txn, vote, outcome, promised } => {
            told(node, from, *txn, *vote, *outcome, *promised);
            Handled::Done
        }
        Request::Remind => {
            let next = node.base().next_attempt();
            node.base().votes.tell_settled(from, next);
            Handled::Done
        }
        Request::Settled { first, below } => {
            let votes = &mut node.base().votes;
            votes.hear_settled(from, *first, *below);
            for orphan in votes.forget(from) {
                node.release(orphan);
            }
            Handled::Done
        }
    }
}

/// The vote on a transaction whose locks are all held.
fn record<P: Voter>(
    node: &mut P,
    txn: TxnId,
    stamp: Timestamp,
    writes: Packed,
    reads: &[ReadRef],
    voters: Vec<(ShardId, u64)>,
) -> Vote {
    let base = node.base();
    let ready = base.votes.unvoted(txn) && !base.scheme.over(stamp) && node.ready(txn, stamp, reads);
    if !ready && !planted(Mutant::LateRecord) {
        return vote(node, txn);
    }
    enter_record(node, txn, stamp, writes, voters);
    Vote::Record(stamp)
}

/// Enters RECORD: the locks are held until the outcome is known. Who votes alone knows it.
pub(crate) fn enter_record<P: Voter>(
    node: &mut P,
    txn: TxnId,
    stamp: Timestamp,
    writes: Packed,
    voters: Vec<(ShardId, u64)>,
) {
    let told = Vec::new();
    let state = match voters.len() {
        1 => {
            node.install(txn, stamp, &writes);
            State::Known { stamp, committed: true, voters, told }
        }
        _ => State::Recorded { stamp, writes, voters, told, doubt: Doubt::No },
    };
    node.base().votes.enter(txn, state);
}

/// The vote, which is REFUSE if there was none.
pub(crate) fn vote<P: Voter>(node: &mut P, txn: TxnId) -> Vote {
    match node.base().votes.state(txn) {
        Some(State::Recorded { stamp, .. } | State::Known { stamp, .. }) => Vote::Record(*stamp),
        Some(State::Refused) => Vote::Refuse,
        None | Some(State::Open) if planted(Mutant::RefusalNotPlanted) => Vote::Refuse,
        None | Some(State::Open) => {
            node.release(txn);
            node.base().votes.enter(txn, State::Refused);
            Vote::Refuse
        }
    }
}

/// From now on the shard does not commit because of what others have voted. Returns the outcome if
/// it is known.
fn promise<P: Voter>(node: &mut P, txn: TxnId) -> Option<Outcome> {
    let state = node.base().votes.state_mut(txn)?;
    if let State::Recorded { doubt: doubt @ Doubt::No, .. } = state {
        *doubt = Doubt::Promised;
    }
    state.outcome()
}

/// The outcome of a transaction is known. Returns what it has been here all along, or is from now
/// on; `None` if it was forgotten.
fn learn<P: Voter>(node: &mut P, txn: TxnId, outcome: Outcome) -> Option<Outcome> {
    let state = node.base().votes.state_mut(txn)?;
    match std::mem::replace(state, State::Refused) {
        State::Recorded { stamp: voted, writes, voters, .. } => {
            let (stamp, committed) = match outcome {
                Outcome::Committed(stamp) => (stamp, true),
                Outcome::Aborted => (voted, false),
            };
            *state = State::Known { stamp, committed, voters, told: Vec::new() };
            node.base().counters.outcomes[usize::from(committed)] += 1;
            match committed {
                true => node.install(txn, stamp, &writes),
                false => node.release(txn),
            }
            Some(outcome)
        }
        known @ State::Known { .. } => {
            *state = known;
            state.outcome()
        }
        // It says no, whatever the other says.
        State::Open | State::Refused => {
            node.release(txn);
            Some(Outcome::Aborted)
        }
    }
}

/// The same, and it was others who vote that knew it.
fn learn_from_voter<P: Voter>(node: &mut P, txn: TxnId, outcome: Outcome) {
    let base = node.base();
    let news = matches!(base.votes.state(txn), Some(State::Recorded { .. }));
    base.counters.outcomes_asked += u64::from(news);
    learn(node, txn, outcome);
}

/// Takes another vote into account: the stamp is the largest.
pub(crate) fn join(stamp: &mut Timestamp, vote: Timestamp) {
    if !planted(Mutant::VotesNotJoined) {
        stamp.raise(vote);
    }
}

/// Another who votes has told its vote.
fn told<P: Voter>(
    node: &mut P,
    from: ShardId,
    txn: TxnId,
    vote: Vote,
    outcome: Option<Outcome>,
    promised: bool,
) {
    let votes = &mut node.base().votes;
    let fenced = votes.fenced(txn);
    let Some(state) = votes.state_mut(txn) else { return };
    match state {
        State::Recorded { stamp, voters, told, doubt, .. } => {
            let mut outcome = outcome;
            match vote {
                Vote::Record(vote) => join(stamp, vote),
                Vote::Refuse => outcome = outcome.or(Some(Outcome::Aborted)),
            }
            if !told.contains(&from) && (promised || *doubt != Doubt::Asks) {
                told.push(from);
            }
            let all = *doubt == Doubt::No && told.len() + 1 == voters.len();
            if let Some(outcome) = outcome.or(all.then_some(Outcome::Committed(*stamp))) {
                learn_from_voter(node, txn, outcome);
            }
        }
        // A coordinator that lives may still ask. Who is the last to be told is seen when it is
        // looked at again.
        State::Known { told, .. }
            if (outcome.is_some() || vote == Vote::Refuse) && fenced && !told.contains(&from) =>
        {
            told.push(from);
        }
        _ => {}
    }
}

/// A new pass has begun: does something about transactions of which nothing is heard.
pub(crate) fn tick<P: Voter>(node: &mut P, clock: Timestamp) {
    node.base().votes.pass(clock);
    let mut reminded = Vec::new();
    while let Some(txn) = node.base().votes.overdue() {
        let me = node.base().shard;
        let votes = &mut node.base().votes;
        let fenced = votes.fenced(txn);
        match votes.state(txn).expect("an overdue entry is there") {
            State::Open if planted(Mutant::WaitsForEver) => {}
            State::Open => {
                vote(node, txn);
            }
            State::Recorded { .. } if planted(Mutant::GivesUpInDoubt) => {
                learn(node, txn, Outcome::Aborted);
            }
            State::Recorded { .. } => {
                if votes.doubts(txn) {
                    learn_from_voter(node, txn, Outcome::Aborted);
                }
            }
            known @ State::Known { voters, told, .. } if fenced => {
                let (others, outcome) = (votes.others(voters, told), known.outcome());
                match others.asked.is_empty() && !others.unknown {
                    true => votes.close(txn),
                    false => votes.inquire(others.asked, txn, outcome, None),
                }
            }
            State::Refused if fenced => votes.close(txn),
            State::Known { .. } | State::Refused if txn.coordinator == me => {}
            State::Known { .. } | State::Refused => {
                if !reminded.contains(&txn.coordinator) {
                    reminded.push(txn.coordinator);
                    votes.send(txn.coordinator, Request::Remind);
                }
            }
        }
    }
}
