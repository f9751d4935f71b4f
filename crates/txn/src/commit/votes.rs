//! Atomic commit between processes: votes.
//!
//! The shards of one process share its fate, and messages between them are not lost: a transaction
//! that holds all its locks, and whose reads are valid, is committed, and its coordinator tells the
//! other shards to install. Between processes a channel can be reset and a process can end, so the
//! shards that a transaction writes *vote*. A vote is the first of two entries that a shard makes
//! for a transaction:
//!
//! * RECORD, if the transaction owns its locks there: a stamp, the writes, and the list of all
//!   voters;
//! * REFUSE, in every other state.
//!
//! The transaction is committed if all votes are RECORD, and aborted if one is REFUSE. Its stamp is
//! the largest of those in the votes. Under 2PL all are the stamp that the coordinator has chosen.
//! Under client-driven two-phase commit each is the least stamp that fits that shard
//! ([`crate::protocols::Client2pc`]), and so under OCC if the coordinator's shard votes last, with
//! the largest. There is no other record of the outcome, so the rules are few:
//!
//! 1. A coordinator may abort alone until it has sent its first RECORD, or as long as its own shard
//!    has not voted. From then on it *asks*: silence is not an answer.
//! 2. A shard that is asked before it has voted votes REFUSE, and drops the transaction's locks.
//! 3. A shard votes REFUSE by itself if a transaction holds locks there and the channel to its
//!    coordinator is reset, or the coordinator is silent for
//!    [`PATIENCE_NS`](crate::timestamp::PATIENCE_NS), so that a dead coordinator leaves no lock
//!    behind. After RECORD it may not: it asks the other voters.
//! 4. A shard keeps its vote until all voters know the outcome and the coordinator will not ask
//!    again.
//!
//! Example. T writes on A and B and has locked both. RECORD reaches A; the channel to B is reset.
//! After a while B votes REFUSE, by itself or because A or T's coordinator asks. A has voted
//! RECORD, hears of B's refusal and aborts. If instead B had voted RECORD and only its answer was
//! lost, every shard that asks would hear RECORD, and T would commit.
//!
//! A shard that is the only voter decides alone, and installs when it votes.
//!
//! *Forgetting.* A coordinator knows its least attempt number that is not settled, and sends it
//! from time to time to the shards that may hold votes ([`Request::Settled`]): they forget all
//! attempts below it. Numbers grow with the clock from process to process, so a coordinator in a
//! new life thereby settles its former lives too, with one difference: some voters may not have
//! learned the outcomes. Voters that know one tell the others, and forget it when all know.
//!
//! *Lives.* When a process ends, its data and its votes are lost. A restarted process is a
//! different one: it must not be asked how its former life has voted, and its rows have other
//! places. A channel connects two lives, so a sender knows which life it reaches
//! ([`plimsoll_runtime::Participant::connected`]). A transaction notes the life in which it first
//! met a shard, and the list of voters names their lives. If a vote is lost with its life, the
//! other voters' knowledge replaces it. If no voter knows the outcome, the transaction is aborted,
//! under two conditions: its coordinator has itself found the vote lost, or the coordinator's life
//! is over as well; and all other voters have promised not to commit because of votes that they
//! were told before.
//!
//! The messages and the state are in [`crate::ballot`], the coordinator's part is in `coordinator`,
//! and the voter's part is here. If shards log, votes are in their logs and outlive the process: then
//! a list of voters names logs instead of lives ([`Votes::lineage`](crate::ballot::Votes)), each
//! shard is a fate of its own, and the shards of one process vote as well. Left out: terms, and what
//! a promoted backup does.

mod coordinator;

use plimsoll_runtime::Handled;
use plimsoll_types::mutants::{Mutant, planted};
use plimsoll_types::{Abort, ShardId, Timestamp, TxnId};

use crate::ballot::{Doubt, Outcome, Reply, Request, State, Vote};
use crate::fetched::ReadRef;
use crate::protocol::Interactive;
use crate::service::Service as _;
use crate::work::Packed;
pub(crate) use coordinator::{ask, conclude, decide, needed, voters};

/// What voting needs of a protocol's participant.
pub(crate) trait Voter: Interactive {
    /// Whether the transaction still owns the locks that it was granted here, and its reads without
    /// locks are still current. Pins these reads.
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
            let base = node.base();
            if base.votes.unvoted(*txn) && base.believe(from, *stamp).is_err() {
                base.refused(Abort::ClockAhead);
                vote(node, *txn);
                return Handled::Reply(Reply::ClockAhead);
            }
            if base.votes.unvoted(*txn)
                && let Err(full) = base.admit(writes.written_bytes())
            {
                base.refused(full);
                vote(node, *txn);
                return Handled::Reply(Reply::Full(full));
            }
            Handled::Reply(Reply::Vote(record(node, *txn, *stamp, writes, reads, voters)))
        }
        Request::Outcome { txn, outcome } => {
            let votes = &node.base().votes;
            let recorded = matches!(votes.state(*txn), Some(State::Recorded { .. }));
            // This shard may have promised another voter to ignore a coordinator whose life is
            // over.
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
                // No entry: this shard has learned the outcome and forgotten it, so its vote no
                // longer matters.
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

/// Votes on a transaction that holds all its locks.
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

/// Enters RECORD: the locks are held until the outcome is known. A single voter knows it at once.
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

/// The vote; REFUSE is entered if there was none.
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

/// From now on the shard does not commit because of other shards' votes. Returns the outcome if it
/// is known.
fn promise<P: Voter>(node: &mut P, txn: TxnId) -> Option<Outcome> {
    let votes = &mut node.base().votes;
    if matches!(votes.state(txn), Some(State::Recorded { doubt: Doubt::No, .. }))
        && let Some(State::Recorded { doubt, .. }) = votes.state_mut(txn)
    {
        *doubt = Doubt::Promised;
    }
    votes.state(txn)?.outcome()
}

/// Takes the outcome of a transaction. Returns the outcome that this shard had entered before, or
/// enters now; `None` if it has no entry.
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
        // This shard has not voted RECORD, so the transaction is aborted whatever the sender says.
        State::Open | State::Refused => {
            node.release(txn);
            Some(Outcome::Aborted)
        }
    }
}

/// The same, if another voter has told the outcome.
fn learn_from_voter<P: Voter>(node: &mut P, txn: TxnId, outcome: Outcome) {
    let base = node.base();
    let news = matches!(base.votes.state(txn), Some(State::Recorded { .. }));
    base.counters.outcomes_asked += u64::from(news);
    learn(node, txn, outcome);
}

/// Joins another vote: the stamp becomes the larger of the two.
pub(crate) fn join(stamp: &mut Timestamp, vote: Timestamp) {
    if !planted(Mutant::VotesNotJoined) {
        stamp.raise(vote);
    }
}

/// Another voter has told its vote.
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
    let Some(state) = votes.hearsay_mut(txn) else { return };
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
        // Only if the coordinator's life is over: a living one may still ask. `tick` checks later
        // whether all voters have been told.
        State::Known { told, .. }
            if (outcome.is_some() || vote == Vote::Refuse) && fenced && !told.contains(&from) =>
        {
            told.push(from);
        }
        _ => {}
    }
}

/// Acts on the transactions of coordinators whose channels were reset and are not back. If such a
/// coordinator is dead no message will end its transactions; if it lives, its requests are lost and
/// most of its transactions will fail. So this shard acts as if it had waited long enough. It does
/// so in a pass, and not when it is told of the reset: a request that was queued then could reach
/// another life of its receiver than the one that the sender knew.
fn cut_off<P: Voter>(node: &mut P) {
    for peer in std::mem::take(&mut node.base().votes.lost) {
        for txn in node.base().votes.undecided_of(peer) {
            let votes = &node.base().votes;
            if votes.reaches(peer) && !votes.fenced(txn) || planted(Mutant::WaitsForEver) {
                continue;
            }
            if votes.unvoted(txn) {
                vote(node, txn);
            } else if node.base().votes.doubts(txn) {
                learn_from_voter(node, txn, Outcome::Aborted);
            }
        }
    }
}

/// A new pass has begun: acts on transactions that the shard has not heard of for too long.
pub(crate) fn tick<P: Voter>(node: &mut P, clock: Timestamp) {
    node.base().votes.pass(clock);
    if !node.base().serves_transactions() {
        return;
    }
    cut_off(node);
    let mut reminded = Vec::new();
    while let Some(txn) = node.base().votes.overdue() {
        let me = node.base().shard;
        let votes = &mut node.base().votes;
        let fenced = votes.fenced(txn);
        match votes.state(txn).expect("an overdue entry is there") {
            State::Open if planted(Mutant::WaitsForEver) => {}
            // A coordinator of this process does not end without this shard.
            State::Open if !votes.in_another_process(txn.coordinator) && !fenced => {}
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
